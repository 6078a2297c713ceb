#!/bin/sh
# cmake/ngspice.sh DIR: the netlists that come with ngspice (its examples and its own tests) into
# DIR, from the source that Debian builds its package from. Nothing happens when they are there;
# where they cannot be had, a test is skipped.
set -eu
dir=$1
version=39.3+ds
sum=d2a934d057c66364d96f451dd7845e38109dde0e0d57287a6b33a525c7289647
[ ! -f "$dir/ready" ] || exit 0
rm -rf "$dir"
mkdir -p "$dir"
echo "fetching ngspice's examples into $dir"
python3 - "$dir" "$version" "$sum" <<'END' || echo "cardan: without ngspice's examples, circuits are not compared with them" >&2
import hashlib, io, os, sys, tarfile, urllib.request
folder, version, digest = sys.argv[1:]
name = f"ngspice_{version}.orig.tar.gz"
places = ["http://deb.debian.org/debian/pool/main/n/ngspice/",
          "http://snapshot.debian.org/archive/debian/20230601T000000Z/pool/main/n/ngspice/"]
for place in places:
    try:
        data = urllib.request.urlopen(place + name.replace("+", "%2B"), timeout=60).read()
    except OSError as e:
        print(f"{place}{name}: {e}", file=sys.stderr)
        continue
    if hashlib.sha256(data).hexdigest() != digest:
        print(f"{place}{name}: not the expected file", file=sys.stderr)
        continue
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for member in tar:
            parts = member.name.split("/")
            if not member.isfile() or ".." in parts or not {"examples", "tests"} & set(parts[1:2]):
                continue
            path = os.path.join(folder, *parts[1:])
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as f:
                f.write(tar.extractfile(member).read())
    open(os.path.join(folder, "ready"), "w").close()
    break
else:
    sys.exit(1)
END
