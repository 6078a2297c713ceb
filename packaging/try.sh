#!/bin/sh
# packaging/try.sh FOLDER: installs the packages of FOLDER into a new Debian 12 root, uses them as somebody without rights, purges them.
set -eu
folder=$1
root=$folder/root
[ "$(id -u)" -eq 0 ] || { echo "cardan: a new root is made and entered by root; try sudo make test-deb" >&2; exit 2; }
[ -e "$folder/root.tar" ] || {
    rm -rf "$root.new"
    debootstrap --variant=minbase bookworm "$root.new" >"$folder/root.log" 2>&1 || { tail -n 5 "$folder/root.log" >&2; exit 1; }
    tar -C "$root.new" -cf "$folder/root.tar.part" . && mv "$folder/root.tar.part" "$folder/root.tar"
    rm -rf "$root.new"
}
rm -rf "$root" && mkdir -p "$root" && tar -C "$root" -xf "$folder/root.tar"
leave() { umount "$root/dev/shm" "$root/proc" 2>/dev/null || true; }
trap leave EXIT
mount -t proc proc "$root/proc"
mkdir -p "$root/dev/shm" && mount -t tmpfs -o size=256m tmpfs "$root/dev/shm"
cp /etc/resolv.conf "$root/etc/resolv.conf"
mkdir "$root/packages" && cp "$folder"/*.deb "$root/packages"
rm -f "$root"/packages/*-dbgsym_*

inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }
user() { inside su somebody -c "cd && $1" 2>&1; }
quiet() { "$@" >"$folder/try.log" 2>&1 || { tail -n 20 "$folder/try.log" >&2; echo "cardan: failed: $*" >&2; exit 1; }; }
expect() { printf '%s\n' "$2" | grep -q "$1" || { printf 'cardan: expected %s, found:\n%s\n' "$1" "$2" >&2; exit 1; }; }
size() { inside dpkg-query -W -f '${Installed-Size}\n' "$@" | awk '{ s += $1 } END { print s }'; }
install() { # the packages named, out of the folder
    for p in "$@"; do set -- "$@" "/packages/$(basename "$root/packages/${p}"_*.deb)"; shift; done
    quiet inside apt-get install -y -q --no-install-recommends "$@"
}

quiet inside apt-get update -q
quiet inside apt-get install -y -q --no-install-recommends adduser debconf # what is on every machine does not count
inside dpkg-query -W -f '${Package}\n' | sort >"$folder/before"
echo 'cardan cardan/realtime boolean true' | inside debconf-set-selections
install cardan cardan-examples
inside dpkg-query -W -f '${Package}\n' | sort >"$folder/after"
# shellcheck disable=SC2046
kilobytes=$(size $(comm -13 "$folder/before" "$folder/after"))
own=$(size cardan cardan-examples)
echo "installed: $own KiB of cardan and its examples, $kilobytes KiB with all they depend on"
[ "$own" -lt 61440 ] || { echo "cardan: above 60 MB" >&2; exit 1; }
expect '@realtime - rtprio 95' "$(cat "$root/etc/security/limits.d/cardan.conf")"
quiet inside adduser --quiet --disabled-password --gecos '' somebody

expect '^cardan [0-9]' "$(user 'cardan --version')"
expect 'oscillator' "$(user 'cardan example list')"
quiet user 'cardan example copy oscillator mine'
expect 'cardan-worker *there' "$(user 'cardan doctor' || true)"
name=$(user 'ls mine/*.yaml | head -n 1')
expect 'stop time reached' "$(user "cd mine && cardan run $(basename "$name") --output result.mf4")"
quiet user 'cardan view mine/result.mf4 --export page.html'
expect '</html>' "$(user 'tail -c 200 page.html')"
expect 'cardan' "$(user 'cardan dcp slave --help' | head -n 1)"

install libcardan0 libcardan-dev python3-cardan
expect 'it runs' "$(user "python3 -c 'import cardan; s = cardan.System(\"$name\"); r = s.run(); print(\"it runs\", cardan.__version__)'")"
install cardan-doc
[ -e "$root/usr/share/doc/cardan/docs/README.md" ] || { echo "cardan: cardan-doc has no README.md" >&2; exit 1; }
expect 'cardan' "$(inside sh -c 'ls /lib/systemd/system' | grep '^cardan-slave@.service')"

quiet inside apt-get purge -y -q 'cardan*' 'libcardan*' 'python3-cardan'
left=$(inside find /etc /usr /lib /var/lib/systemd -iname '*cardan*' -not -path '/usr/share/doc/*' | head)
[ -z "$left" ] || { printf 'cardan: purged, but left behind:\n%s\n' "$left" >&2; exit 1; }
echo "installed, tried and purged"
