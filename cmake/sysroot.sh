#!/bin/sh
# cmake/sysroot.sh ARCHITECTURE FOLDER: what Cardan is linked with, of Debian's arm64 or armhf packages, unpacked into FOLDER.
# apt has a configuration and state of its own below FOLDER and only downloads: the host's packages and architectures
# stay as they are, and root is not needed. Nothing happens when it is there. CARDAN_DEBIAN names another mirror.
set -eu
architecture=$1 folder=$2
packages="libc6-dev libexpat1-dev libzip-dev libyaml-dev liblapacke-dev libcmocka-dev zlib1g-dev libdeflate-dev libmatio-dev
libcairo2-dev libsodium-dev libwebsockets-dev libsundials-dev libsuitesparse-dev libsqlite3-dev libnlopt-dev libopenblas0-pthread
libopenmpi-dev libpython3-dev"
# Programs, and what SUNDIALS has for clusters, are not linked.
wanted="^(lib|zlib|linux-libc-dev|x11proto|uuid-dev)"
spared='^lib(pmpi|pmix|hypre|petsc|trilinos|superlu|scalapack|mumps|slepc|ptscotch|scotch|boost|python3.*-(minimal|stdlib)|perl|icu|fftw|[alt]san|gcc-12-dev
        |hwloc|fabric|ibverbs|psm|ucx|rdmacm|gl(x|u|es|vnd|apc)|drm|llvm|binutils|combblas|spooles|netcdf|metis|munge|ocl|glib2.0-dev-bin)'
release=$(. /etc/os-release && echo "${VERSION_CODENAME:-bookworm}")
stamp="$release $architecture $(echo $packages)"
[ "$(cat "$folder/ready" 2>/dev/null)" != "$stamp" ] || exit 0

rm -rf "$folder" && mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
apt=$folder/apt
mkdir -p "$apt/etc/preferences.d" "$apt/etc/sources.list.d" "$apt/lists/partial" "$apt/cache/archives/partial"
: >"$apt/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${CARDAN_DEBIAN:-http://deb.debian.org/debian} $release main" \
    >"$apt/etc/sources.list"
cat >"$apt/apt.conf" <<END
APT { Architecture "$architecture"; Architectures { "$architecture"; }; Install-Recommends "false"; Sandbox::User ""; };
Dir { Etc "$apt/etc"; Etc::Parts "/dev/null"; State "$apt"; State::Lists "$apt/lists"; State::Status "$apt/status";
      Cache "$apt/cache"; Cache::Archives "$apt/cache/archives"; };
Acquire::Languages "none";
Debug::NoLocking "true";
END
export APT_CONFIG="$apt/apt.conf"
fail() { tail -n 20 "$apt/log" >&2; echo "cardan: no sysroot for $architecture, see $apt/log" >&2; exit 1; }
apt-get update -q >"$apt/log" 2>&1 || fail
# shellcheck disable=SC2086
apt-get install -y -qq --print-uris $packages >"$apt/uris" 2>>"$apt/log" || fail
names=$(awk '{ sub(/_.*/, "", $2); print $2 }' "$apt/uris" | grep -E "$wanted" | grep -vE "$(echo "$spared" | tr -d ' \n')")
# shellcheck disable=SC2086
(cd "$apt/cache/archives" && apt-get download -q $names) >>"$apt/log" 2>&1 || fail
# What dpkg-shlibdeps asks: which package a library is of, and since when that has its symbols
mkdir -p "$folder/dpkg/info"
for package in "$apt"/cache/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar -C "$folder" -x --wildcards --wildcards-match-slash --exclude='./usr/share/[!p]*' \
        --exclude='./usr/bin/*' --exclude='./usr/lib/python*' --exclude='./var/*'
    name=$folder/dpkg/info/$(dpkg-deb -f "$package" Package)
    dpkg-deb --fsys-tarfile "$package" | tar -t | sed -n "s|^\./\(.*lib.*[.]so.*\)|$folder/\1|p" >"$name.list"
    dpkg-deb -e "$package" "$name.d"
    for file in symbols shlibs; do [ ! -e "$name.d/$file" ] || mv "$name.d/$file" "$name.$file"; done
    rm -rf "$name.d"
    { dpkg-deb -f "$package" && printf 'Status: install ok installed\n\n'; } >>"$folder/dpkg/status"
done
# Links with absolute targets would lead out of the folder.
find "$folder/usr" "$folder/etc" "$folder/lib" -type l -lname '/*' 2>/dev/null | while read -r link; do
    ln -sfn "$folder$(readlink "$link")" "$link"
done
# What Debian's scripts choose when packages are installed: OpenBLAS, as on the host
for file in "$folder"/usr/lib/*/openblas-pthread/lib*.so.?; do
    place=$(dirname "$(dirname "$file")") name=$(basename "$file")
    ln -sf "$file" "$place/$name"
    ln -sf "$file" "$place/${name%.?}"
done
for library in blas lapack; do ln -sf "$library-netlib.pc" "$place/pkgconfig/$library.pc"; done
rm -rf "$apt/cache" "$apt/lists"
echo "$stamp" >"$folder/ready"
