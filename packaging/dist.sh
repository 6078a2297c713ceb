#!/bin/sh
# packaging/dist.sh FOLDER: cardan-VERSION.tar.gz of what is committed, the same bytes each time; builds without git.
set -eu
version=$(sed -n 's/^project(cardan VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
mkdir -p "$1"
git archive --format=tar --prefix="cardan-$version/" HEAD | gzip -9n >"$1/cardan-$version.tar.gz.part"
mv "$1/cardan-$version.tar.gz.part" "$1/cardan-$version.tar.gz"
echo "$1/cardan-$version.tar.gz"
