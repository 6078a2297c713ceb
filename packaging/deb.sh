#!/bin/sh
# packaging/deb.sh FOLDER [ARCHITECTURE]: Debian packages of what is committed, in FOLDER; lintian has to be content. Those of another
# ARCHITECTURE are built against the libraries that cmake/sysroot.sh has put into build/sysroot.
set -eu
folder=$1 other=""
[ "${2-$(dpkg --print-architecture)}" = "$(dpkg --print-architecture)" ] || other="--host-arch $2 --no-check-builddeps"
version=$(sed -n 's/^project(cardan VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
tarball=$(sh packaging/dist.sh build/dist)
work=$folder/work
rm -rf "$work" && mkdir -p "$work"
tar -xzf "$tarball" -C "$work"
tree=$work/cardan-$version
cp -r packaging/debian "$tree/debian"
[ -z "$other" ] || { mkdir "$tree/build" && ln -s "$PWD/build/sysroot" "$tree/build/sysroot"; }
# The version and its date stand in CHANGELOG.md; what is not released yet is newer than all before it.
date=$(sed -n "s/^## \[$version\] - \([0-9]\{4\}-[0-9-]*\).*/\1/p" CHANGELOG.md)
suffix=""
[ -n "$date" ] || { suffix="~$(git log -1 --format=%cd.%h --date=format:%Y%m%d%H%M)"; date=$(git log -1 --format=%cs); }
cat >"$tree/debian/changelog" <<END
cardan ($version$suffix) unstable; urgency=medium

  * What changed for users is in /usr/share/doc/cardan/CHANGELOG.md.

 -- Cardan maintainers <maintainers@cardan-project.org>  $(LC_ALL=C date -u -d "$date" '+%a, %d %b %Y 00:00:00 +0000')
END
# shellcheck disable=SC2086
(cd "$tree" && DEB_BUILD_OPTIONS="nocheck parallel=$(nproc)" dpkg-buildpackage $other -b -us -uc >../build.log 2>&1) ||
    { tail -n 30 "$work/build.log" >&2; echo "cardan: the packages were not built, see $work/build.log" >&2; exit 1; }
rm -f "$folder"/*.deb
mv "$work"/*.deb "$work"/*.buildinfo "$work"/*.changes "$folder"
if command -v lintian >/dev/null; then
    lintian --fail-on error,warning --profile debian --suppress-tags initial-upload-closes-no-bugs "$folder"/*.changes
fi
ls "$folder"/*.deb
