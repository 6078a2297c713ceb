#!/bin/sh
# packaging/try_arm64.sh FOLDER: what can be said here of the packages of arm64 in FOLDER: that Debian's arm64 has what they depend on,
# that this machine refuses them, that all machine code in them is of arm64, and that the command runs under qemu-user.
set -eu
export LC_ALL=C.UTF-8
folder=$(cd "$1" && pwd) architecture=arm64
sysroot=$PWD/build/sysroot/$architecture
fail() { printf 'cardan: %s\n' "$1" >&2; exit 1; }
quiet() { "$@" >"$folder/try.log" 2>&1 || { tail -n 20 "$folder/try.log" >&2; fail "failed: $*"; }; }
expect() { printf '%s\n' "$2" | grep -q "$1" || fail "$(printf 'expected %s, found:\n%s' "$1" "$2")"; }
rm -rf "$folder"/root "$folder"/try && mkdir -p "$folder/root" "$folder/try"
set --
for package in "$folder"/*.deb; do
    case $package in
    *-dbgsym_*) continue ;;
    *_all.deb) ;;
    *"_$architecture.deb") ;;
    *) fail "$package is of another architecture" ;;
    esac
    set -- "$@" "$package"
    dpkg-deb -x "$package" "$folder/root"
done
[ $# -eq 6 ] || fail "$# packages, expected 6"

# Debian has what they depend on; with the sysroot's configuration of apt, as if nothing were installed
export APT_CONFIG="$sysroot/apt/apt.conf"
mkdir -p "$sysroot/apt/lists/partial" "$sysroot/apt/cache/archives/partial"
quiet apt-get update -q
quiet apt-get install --simulate -q "$@"
expect '^Conf python3-cardan' "$(cat "$folder/try.log")"
unset APT_CONFIG
rm -rf "$sysroot/apt/lists" "$sysroot/apt/cache"

expect "package architecture ($architecture) does not match system" "$(dpkg --no-act --install "$folder"/cardan_*.deb 2>&1 || true)"

# All machine code is of that machine
machine() { readelf -h "$1" 2>/dev/null | sed -n 's/ *Machine: *//p'; }
expected=$(machine "$sysroot"/lib/*/libc.so.6)
find "$folder/root" -type f \( -name '*.so*' -o -perm -100 \) | while read -r file; do
    found=$(machine "$file")
    [ -z "$found" ] || [ "$found" = "$expected" ] || fail "$file is for $found, expected $expected"
done

emulated() { (cd "$folder/try" && qemu-aarch64 -L "$sysroot" "$folder/root/usr/bin/cardan" "$@" 2>&1) || true; }
expect "^cardan [0-9].*" "$(emulated --version)"
expect oscillator "$(emulated example list)"
emulated example copy oscillator mine >/dev/null
cd "$folder/try/mine"
expect 'stop time reached' "$(emulated run mine/oscillator.yaml --output mine/result.mf4)"
emulated view mine/result.mf4 --export mine/page.html >/dev/null
expect '</html>' "$(tail -c 200 page.html)"
expect 'cardan dcp slave' "$(emulated dcp slave --help)"
echo "of $architecture: dependencies can be met, refused here, and under qemu-aarch64 the command runs"
