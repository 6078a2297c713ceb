#!/bin/sh
# cmake/setup.sh [GROUP ...]: installs what the build and the tests need from Debian, and says
# nothing when it is there. Groups add to that: test (browsers for the pages, a peer for the
# circuits, clang and its tools), bench (the same peer), fuzz, tidy, deb (Debian packages), arm (cross compilers and their emulator), mcu (the same of
# microcontrollers), vm (a virtual machine with another kernel),
# cluster (Slurm and Open MPI).
set -eu
packages="build-essential cmake ninja-build pkg-config groff-base unzip
python3 python3-venv libpython3-dev
libexpat1-dev libzip-dev libyaml-dev liblapacke-dev libcmocka-dev
zlib1g-dev libdeflate-dev libmatio-dev libcairo2-dev libsodium-dev libwebsockets-dev libsundials-dev
libsuitesparse-dev libsqlite3-dev libnlopt-dev"
for group in "$@"; do
    case $group in
    test) packages="$packages chromium firefox-esr fonts-dejavu-core ngspice clang libclang-rt-dev clang-tidy clang-format gcc-aarch64-linux-gnu libc6-dev-arm64-cross zsh fish abigail-tools" ;;
    bench) packages="$packages ngspice" ;;
    fuzz) packages="$packages clang libclang-rt-dev" ;;
    deb) packages="$packages debhelper dh-python po-debconf fakeroot lintian debootstrap buildah libopenmpi-dev" ;;
    tidy) packages="$packages clang-tidy clang-format" ;;
    arm) packages="$packages clang qemu-user musl-tools gcc-aarch64-linux-gnu libc6-dev-arm64-cross gcc-arm-linux-gnueabihf libc6-dev-armhf-cross" ;;
    mcu) packages="$packages gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm" ;;
    vm) packages="$packages qemu-system-x86 busybox-static can-utils iproute2" ;;
    cluster) packages="$packages slurm-wlm munge openmpi-bin libopenmpi-dev" ;;
    *) echo "setup.sh: no group $group; there are test, bench, fuzz, tidy, deb, arm, mcu, vm and cluster" >&2 && exit 2 ;;
    esac
done
# On other distributions CMake names what is missing.
command -v dpkg-query >/dev/null && command -v apt-get >/dev/null || exit 0
# shellcheck disable=SC2086
installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' $packages 2>/dev/null || true)
missing=""
for p in $packages; do
    echo "$installed" | grep -qx "$p installed" || missing="$missing $p"
done
[ -n "$missing" ] || exit 0
as_root=""
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || {
        echo "cardan: please install as root: apt-get install$missing" >&2
        exit 1
    }
    as_root="sudo"
fi
echo "installing:$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2086
if ! { $as_root apt-get update -qq && $as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get -o DPkg::Lock::Timeout=900 install -y -qq --no-install-recommends $missing; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "cardan: could not install:$missing" >&2
    exit 1
fi
