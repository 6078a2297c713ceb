#!/bin/sh
# cmake/wltc.sh DIR: the WLTC class 3b (UN GTR 15) as DIR/wltc3b.csv, from the PyPI package wltp. The
# cycle is not part of this tree. Nothing happens when it is there; where it cannot be had, what needs
# it is skipped.
set -eu
dir=$1
[ ! -f "$dir/wltc3b.csv" ] || exit 0
mkdir -p "$dir"
echo "fetching the WLTC into $dir"
python=python3 # Debian's own has no pip
if ! python3 -m pip --version >/dev/null 2>&1; then
    python3 -m venv "$dir/venv" && python=$dir/venv/bin/python
fi
"$python" - "$dir" <<'END' || echo "cardan: without the WLTC, the powertrain is tested with the NEDC alone" >&2
import ast, glob, hashlib, os, re, subprocess, sys, zipfile
folder = sys.argv[1]
digest = "2687f9ba7c97fd2ad7b883b1a40422ba7fd3c77ab21b4464dc4a96d1809485eb"
done = subprocess.run([sys.executable, "-m", "pip", "download", "wltp==0.1.2a0", "--no-deps", "--quiet",
                       "--only-binary", ":all:", "--disable-pip-version-check", "--timeout", "30",
                       "--retries", "1", "-d", folder],
                      capture_output=True, text=True)
wheels = glob.glob(os.path.join(folder, "wltp-*.whl"))
if done.returncode or not wheels:
    sys.exit("pip download wltp: " + (done.stderr.strip().splitlines() or ["nothing came"])[-1])
with open(wheels[0], "rb") as f:
    if hashlib.sha256(f.read()).hexdigest() != digest:
        sys.exit(f"{wheels[0]}: not the expected file")
with zipfile.ZipFile(wheels[0]) as z:
    text = z.read("wltp/cycles/class3.py").decode()
# The cycle of class b is the list in its function; nothing of the package is executed.
found = re.search(r"def class_data_b.*?cycle = (\[.*?\])", text, re.S)
cycle = ast.literal_eval(found[1]) if found else []
parts = [(0, 588, 11140.3), (589, 1021, 17121.2), (1022, 1476, 25782.2), (1477, 1800, 29714.9)]
if len(cycle) != 1801 or max(cycle) != 131.3:
    sys.exit(f"{wheels[0]}: no WLTC class 3b, but {len(cycle)} values")
for first, last, total in parts:
    found = sum(cycle[first:last + 1])
    if abs(found - total) > 0.05:
        sys.exit(f"WLTC: the sum over {first} s to {last} s is {found:.1f}, expected {total}")
path = os.path.join(folder, "wltc3b.csv")
with open(path + ".part", "w") as f:
    f.write("time,speed [km/h]\n" + "".join(f"{t},{v}\n" for t, v in enumerate(cycle)))
os.replace(path + ".part", path)
END
rm -rf "$dir/venv"
