#!/bin/sh
# Installs what the build and the tests need from Debian, and says nothing when it is there.
set -eu
packages="build-essential cmake ninja-build pkg-config clang libclang-rt-14-dev python3 python3-venv
libexpat1-dev libzip-dev libyaml-dev libjansson-dev liblapacke-dev libcmocka-dev"
missing=""
for p in $packages; do
    dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null | grep -qx installed || missing="$missing $p"
done
[ -z "$missing" ] && exit 0
command -v apt-get >/dev/null || {
    echo "cardan: please install:$missing" >&2
    exit 1
}
as_root=""
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || {
        echo "cardan: please install as root:$missing" >&2
        exit 1
    }
    as_root="sudo"
fi
echo "installing:$missing"
$as_root apt-get update -qq
# shellcheck disable=SC2086
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $missing >/dev/null
