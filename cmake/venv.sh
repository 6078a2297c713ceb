#!/bin/sh
# cmake/venv.sh DIR REQUIREMENTS: a virtual environment with these packages, made once.
set -eu
dir=$1
requirements=$2
[ -x "$dir/bin/python" ] || python3 -m venv "$dir"
"$dir/bin/pip" install --quiet --disable-pip-version-check -r "$requirements"
touch "$dir/ready"
