#!/usr/bin/env python3
"""symbols.py LIBRARY LIST [--write]: the shared library exports what the committed list has, and all of it
begins with crd_. A change of the interface is seen here; if it is meant, --write makes the list anew:
    python3 tests/layers/symbols.py build/libcardan.so tests/layers/symbols.txt --write
and CHANGELOG.md says what users have to change."""
import os
import subprocess
import sys


def exported(library):
    done = subprocess.run(["nm", "-D", "--defined-only", library], stdout=subprocess.PIPE, text=True, check=True)
    return {line.split()[-1].split("@")[0] for line in done.stdout.splitlines() if line.split()[-2] != "A"}


def main():
    library, path = sys.argv[1:3]
    now = exported(library)
    if "--write" in sys.argv:
        with open(path, "w", encoding="utf-8") as f:
            f.write("".join(name + "\n" for name in sorted(now)))
        return 0
    with open(path, encoding="utf-8") as f:
        listed = set(f.read().split())
    for name in sorted(now - listed):
        print(f"{name} leaves the library and is not in the list")
    for name in sorted(listed - now):
        print(f"{name} is in the list and does not leave the library any more")
    foreign = sorted(name for name in now if not name.startswith("crd_"))
    for name in foreign:
        print(f"{name} leaves the library and does not begin with crd_")
    print(f"{len(now)} symbols leave {os.path.basename(library)}")
    if now != listed:
        print(f"if that is meant: python3 {os.path.relpath(__file__)} {library} {os.path.relpath(path)} --write")
    return 1 if now != listed or foreign or not now else 0


if __name__ == "__main__":
    sys.exit(main())
