#!/bin/sh
# cmake/venv.sh DIR REQUIREMENTS [OPTIONAL]: a virtual environment with these packages, made once.
# Of the optional file each line is tried alone; what cannot be installed is named and left out.
set -eu
dir=$1
requirements=$2
optional=${3:-}
# A half-made environment, from a set-up that was interrupted, is made again.
"$dir/bin/python" -m pip --version >/dev/null 2>&1 || {
    echo "installing Python tools into $dir"
    python3 -m venv --clear "$dir"
}
install() {
    "$dir/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
}
install -r "$requirements" || {
    echo "cardan: the packages of $requirements could not be installed into $dir" >&2
    exit 1
}
[ -z "$optional" ] || grep -Ev '^ *(#|-|$)' "$optional" | while read -r package; do
    install "$package" >/dev/null 2>&1 || echo "$package: not to be had here, left out" >&2
done
touch "$dir/ready"
