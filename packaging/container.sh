#!/bin/sh
# packaging/container.sh FOLDER: builds packaging/Containerfile out of the packages in FOLDER, upon the Debian root that try.sh
# has left there, and runs what is in it. By buildah, without a daemon, a registry or namespaces.
set -eu
folder=$(cd "$1" && pwd)
buildah() { command buildah --root "$folder/containers" --runroot "$folder/containers.run" --storage-driver vfs "$@"; }
leave() { buildah rm --all >/dev/null 2>&1 || true; rm -rf "$folder/containers" "$folder/containers.run"; }
trap leave EXIT
leave
quiet() { "$@" >"$folder/container.log" 2>&1 || { tail -n 20 "$folder/container.log" >&2; echo "cardan: failed: $*" >&2; exit 1; }; }
expect() { printf '%s\n' "$2" | grep -q "$1" || { printf 'cardan: expected %s, found:\n%s\n' "$1" "$2" >&2; exit 1; }; }

base=$(buildah from scratch)
quiet buildah add "$base" "$folder/root.tar" /
quiet buildah commit "$base" localhost/debian
quiet buildah bud --isolation chroot --build-arg BASE=localhost/debian -f packaging/Containerfile -t localhost/cardan "$folder"
mine=$(buildah from localhost/cardan)
inside() { buildah run --isolation chroot "$mine" -- "$@" 2>&1; }
expect '^cardan [0-9]' "$(inside cardan --version)"
expect '^cardan$' "$(inside id -un)"
expect 'stop time reached' "$(inside sh -c 'cd /tmp && cardan example copy oscillator mine && cd mine && cardan run oscillator.yaml --output result.mf4')"
expect 'it runs' "$(inside python3 -c 'import cardan; print("it runs", cardan.__version__)')"
echo "the container runs"
