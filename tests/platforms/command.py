"""command.py FOLDER CARDAN FMUS [NAME CARDAN FMUS]...: runs of the command give the same bits with any number of threads, with
every FMU in a worker, with another compiler or optimisation, on a processor without AVX, and on arm64.

The first command is the reference; the others are builds of the same tree (arm64: run by qemu-aarch64). What a run, a circuit, a
study of coupling algorithms writes is compared by SHA-256; MAY_DIFFER says where something else decides."""
import csv
import hashlib
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
ABSENT = 1 if os.environ.get("CARDAN_TEST_ARM") else 77  # not failed, but skipped, where make test-arm has not been
SYSROOT = os.path.join(ROOT, "build/sysroot")
SYSTEMS = {"oscillator_fd": "4 s", "oscillator_coupled": "4 s", "oscillator_multirate": "1 s", "nonlinear_oscillator": "4 s", "crane_fd": "1 s",
           "pendula": "4 s", "rotational": "10 s", "stop": "10 s", "shaft_pair": "4 s", "loudspeaker": "0.05 s", "cooling": "60 s", "ecar": "1 s"}
CIRCUITS = ("rlc", "rectifier", "thermal_inverter", "pmsm")
RUNNERS = {"arm64": ["qemu-aarch64", "-L", f"{SYSROOT}/arm64"], "armhf": ["qemu-arm", "-L", f"{SYSROOT}/armhf"],
           "a processor of 2006": ["qemu-x86_64", "-cpu", "core2duo"]}


def placed(name, fmus, folder):
    """A system whose FMUs are those of this build."""
    systems = os.path.join(ROOT, "examples/systems")
    with open(os.path.join(systems, name + ".yaml"), encoding="utf-8") as f:
        text = f.read().replace("../../build/fmus", fmus)
    text = re.sub(r"circuit: ([^ ,}]+)", lambda m: "circuit: " + os.path.join(systems, m.group(1)), text)
    path = os.path.join(folder, name + ".yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def cases(fmus, folder, options):
    """Name -> (arguments, file that is written)."""
    for name, stop in SYSTEMS.items():
        out = os.path.join(folder, name + ".csv")
        yield name, ["run", placed(name, fmus, folder), "-q", "--guard", "off", "--stop-time", stop, "-o", out, *options], out
    if options:
        return
    for name in CIRCUITS:
        out = os.path.join(folder, f"circuit_{name}.csv")
        yield f"circuit {name}", ["circuit", f"{ROOT}/examples/circuits/{name}.cir", "-q", "-o", out], out
    out = os.path.join(folder, "compensate.csv")
    yield "coupling compensate", ["coupling", "compensate", f"{ROOT}/examples/recordings/torque.csv", "--signal", "torque", "--latency", "6",
                                  "-q", "-o", out], out


def run(command, fmus, folder, options=(), environment=None):
    os.makedirs(folder, exist_ok=True)
    found = {}
    for name, words, out in cases(fmus, folder, options):
        done = subprocess.run([*command, *words], capture_output=True, text=True, timeout=600, env=dict(os.environ, TMPDIR=folder, **(environment or {})))
        if done.returncode != 0:
            print(f"{' '.join(words)}: exit code {done.returncode}\n{done.stderr[-600:]}")
            return None
        with open(out, "rb") as f:
            found[name] = f.read()
        os.remove(out)
    return found


def distance(a, b):
    """The largest difference, of the largest value of its column."""
    rows = [list(csv.reader(data.decode().splitlines())) for data in (a, b)]
    if len(rows[0]) != len(rows[1]) or rows[0][0] != rows[1][0]:
        return float("inf")
    far = 0.0
    for x, y in zip(zip(*rows[0][1:]), zip(*rows[1][1:])):
        try:
            p, q = [float(v) for v in x], [float(v) for v in y]
        except ValueError:
            far = max(far, 0.0 if x == y else float("inf"))
            continue
        size = max(map(abs, p))
        far = max(far, max(abs(u - v) for u, v in zip(p, q)) / size if size else max(map(abs, q)))
    return far


NO_FMA = "glibc's sin, exp and log round differently without fused multiply-adds"
MAY_DIFFER = {
    "arm64": (r"circuit rlc", 1e-10, "Debian compiles KLU for arm64 with fused multiply-adds"),
    "a processor of 2006": (r"circuit |pendula", 1e-12, NO_FMA),
    "libm without FMA": (r"circuit |pendula", 1e-12, NO_FMA),
}


def main():
    folder = os.path.abspath(sys.argv[1])
    absent = [w for w in [*sys.argv[2::3], *[RUNNERS[n][0] for n in sys.argv[4::3] if n in RUNNERS]] if not shutil.which(w)]
    if absent:
        print(f"not here: {', '.join(absent)}; make test-arm makes it")
        return ABSENT
    shutil.rmtree(folder, ignore_errors=True)
    own, fmus = [sys.argv[2]], os.path.abspath(sys.argv[3])
    reference = run(own, fmus, os.path.join(folder, "reference"))
    if not reference:
        return 1
    variants = [("two threads", own, fmus, ["--threads", "2"], {}), ("every FMU in a worker", own, fmus, ["--isolate", "all"], {})]
    rest = sys.argv[4:]
    for name, command, place in zip(rest[::3], rest[1::3], rest[2::3]):
        # Emulated processes have no sandbox for workers.
        variants.append((name, [*RUNNERS.get(name, []), command], os.path.abspath(place), [], {"CARDAN_ISOLATE": "none"} if name in RUNNERS else {}))
    # The C library's sine and exponential without fused multiply-adds, as old processors have it
    variants.append(("libm without FMA", own, fmus, [], {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4"}))
    good = True
    for name, command, place, options, environment in variants:
        found = run(command, place, os.path.join(folder, re.sub(r"\W+", "_", name)), options, environment)
        if found is None:
            good = False
            continue
        same = {what for what in found if hashlib.sha256(found[what]).digest() == hashlib.sha256(reference[what]).digest()}
        print(f"{name}: {len(same)} of {len(found)} results are the same bits")
        for what in sorted(set(found) - same):
            far = distance(reference[what], found[what])
            pattern, limit, why = MAY_DIFFER.get(name, ("$^", 0, ""))
            expected = bool(re.match(pattern, what)) and far <= limit
            good = good and expected
            print(f"    {what}: {far:.2g} of the largest value; {why if expected else 'not expected'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
