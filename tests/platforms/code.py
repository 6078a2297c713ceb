"""code.py ROOT FOLDER [COMPILER=OPTIONS ...]: the same bits from every compiler, optimisation level, architecture and C library.

Coupling elements (every algorithm that needs no file, on a signal with noise, jumps, late, lost and repeated samples) and circuits
(seven netlists, several methods) are compiled from the tree's sources, run, and what they give is compared by SHA-256 with what
gcc -O2 makes. MAY_DIFFER says where something else than the compiler decides."""
import glob
import hashlib
import math
import os
import re
import shutil
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT, FOLDER = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
ELEMENTS = ["zoh", "foh", "eros", "wiener", "ridge", "rls", "auto", "{algorithm: auto, reconstruct: smooth}",
            "{algorithm: eros, detect: spectrum, react: switch}",
            "{algorithm: network, network: {W1: [[2, -1]], W2: [[1], [-1]], W3: [0.99, -0.99]}}"]
METHODS = [("auto", "tr"), ("dae", "gauss2"), ("nodal", "trbdf2")]
ABSENT = 1 if os.environ.get("CARDAN_TEST_ARM") else 77  # not failed, but skipped, where make test-arm has not been
SYSROOT = os.path.join(ROOT, "build/sysroot")
# name: compiler, options, what runs the programs, circuits too (they need KLU)
VARIANTS = {
    "gcc -O2": (["gcc"], ["-O2"], [], True),
    "gcc -O0": (["gcc"], ["-O0"], [], True),
    "gcc -O3": (["gcc"], ["-O3"], [], True),
    "clang -O2": (["clang"], ["-O2"], [], True),
    "clang -O3": (["clang"], ["-O3"], [], True),
    "gcc -O2, a processor of 2006": ("gcc -O2", None, ["qemu-x86_64", "-cpu", "core2duo"], True),
    "arm64 gcc -O2": (["aarch64-linux-gnu-gcc", f"--sysroot={SYSROOT}/arm64"], ["-O2"], ["qemu-aarch64", "-L", f"{SYSROOT}/arm64"], True),
    "armhf gcc -O2": (["arm-linux-gnueabihf-gcc", f"--sysroot={SYSROOT}/armhf"], ["-O2"], ["qemu-arm", "-L", f"{SYSROOT}/armhf"], True),
    "musl gcc -O2": (["musl-gcc"], ["-O2", "-static"], [], False),
}
# What may differ from the reference, at most so far (of the largest value), and why. All else has to be the same bits.
FUSED = "Debian compiles KLU for arm64 with fused multiply-adds"
NO_FMA = "glibc's sin, exp and log round differently without fused multiply-adds"
MAY_DIFFER = {
    "arm64 gcc -O2": (r"circuit (\w+ dae|rlc) ", 1e-10, FUSED),
    "gcc -O2, a processor of 2006": (r"circuit ", 1e-12, NO_FMA),
    "musl gcc -O2": (r"coupling .*auto", 1e-12, "musl has other exp and log"),
}
# Instead of gcc -O2: what has no fused multiply-adds is the same bits among itself.
REFERENCES = {"armhf gcc -O2": "gcc -O2, a processor of 2006"}


def torque():
    """1200 samples with a hard shift and noise; numbers that no libm has rounded."""
    state, out = 12345, []
    for n in range(1200):
        noise = 0
        for _ in range(12):
            state = (1664525 * state + 1013904223) % 2**32
            noise += state
        phase = (n % 97) / 97
        out.append(100 * phase * (1 - phase) * 4 + (n % 13) - 110 * (320 <= n < 360) + noise / 2**33 - 3)
    return out


def script():
    """What coupling_reference reads: stamps that come late, twice, never and out of order."""
    lines, pending = [], []
    for n, y in enumerate(torque()):
        for k, (due, m, value) in enumerate(list(pending)):
            if due <= n:
                lines.append(f"push {value!r} {m * 0.01!r} {m}")
        pending = [p for p in pending if p[0] > n]
        if n % 41 != 7:
            pending.append((n + 3 + (n % 29 == 5) * 2, n, y))
        if n % 53 == 11:
            pending.append((n + 4, n, y))
        lines += [f"eval {n * 0.01 + part * 0.0025!r}" for part in range(4)]
    return "\n".join(lines) + "\n"


def call(words, **options):
    done = subprocess.run(words, capture_output=True, timeout=900, **options)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)[:300]}: exit code {done.returncode}\n{done.stderr.decode(errors='replace')[-2000:]}")
    return done.stdout


def build(name, pool):
    compiler, options, _, circuits = VARIANTS[name]
    place = os.path.join(FOLDER, re.sub(r"\W+", "_", name))
    os.makedirs(place, exist_ok=True)
    flags = [*options, "-std=gnu17", "-D_GNU_SOURCE", "-DNDEBUG", "-ffp-contract=off", "-w", '-DCRD_VERSION="0"', f"-I{ROOT}/include",
             f"-I{ROOT}/src", *([f"-I{compiler[1][10:]}/usr/include/suitesparse"] if len(compiler) > 1 else ["-I/usr/include/suitesparse"])]
    programs = {"coupling": ("base coupling", "tests/golden/coupling_reference.c", ["-lm"])}
    if circuits:
        programs["circuit"] = ("base circuit", "tests/circuit/run_peer.c", ["-lklu", "-lm"])
    out = {}
    for program, (modules, main, libraries) in programs.items():
        sources = [s for m in modules.split() for s in sorted(glob.glob(f"{ROOT}/src/{m}/**/*.c", recursive=True)) if not s.endswith("/on_board.c")] + [f"{ROOT}/{main}"]
        objects = [os.path.join(place, os.path.relpath(s, ROOT).replace("/", "_")[:-2] + ".o") for s in sources]
        missing = [(s, o) for s, o in zip(sources, objects) if not os.path.exists(o) or os.path.getmtime(o) < os.path.getmtime(s)]
        list(pool.map(lambda pair: call([*compiler, *flags, "-c", pair[0], "-o", pair[1]]), missing))
        out[program] = os.path.join(place, program)
        call([*compiler, *options, *objects, *libraries, "-o", out[program]])
    return out


def results(programs, runner, place):
    """Name -> bytes of all numbers."""
    out = {}
    for i, element in enumerate(ELEMENTS):
        path = os.path.join(FOLDER, f"element{i}.json")
        with open(path, "w", encoding="utf-8") as f:
            text = element if element.startswith("{") else f"{{algorithm: {element}}}"
            f.write(re.sub(r"([A-Za-z_]\w*)", r'"\1"', text).replace("{", '{"step": 0.01, ', 1))
        out[f"coupling {element}"] = call([*runner, programs["coupling"], path, "0"], input=script().encode())
    for netlist in sorted(glob.glob(f"{ROOT}/examples/circuits/*.cir")) if "circuit" in programs else []:
        step = {"buck": 2e-7, "ladder": 2.5e-3, "pmsm": 0.5, "rc_lowpass": 1e-5, "rectifier": 2e-5, "rlc": 2.5e-3, "thermal_inverter": 0.01}
        name = os.path.basename(netlist)[:-4]
        for form, method in METHODS:
            if (name, form) == ("rectifier", "dae"):
                continue  # ideal diodes: refused in this form
            path = os.path.join(place, f"{name}.out")
            done = subprocess.run([*runner, programs["circuit"], netlist, path, form, method, repr(step[name]), "0"], capture_output=True)
            with open(path, "rb") as f:
                out[f"circuit {name} {form} {method}"] = f.read() if done.returncode == 0 else f"refused {done.returncode}".encode()
            os.remove(path)
    return out


def numbers(data):
    if data.startswith(b"time"):
        rows = data[data.index(b"\n") + 1:]
        return struct.unpack(f"<{len(rows) // 8}d", rows)
    return [float.fromhex(word) if "x" in word else float(word) for word in data.decode().split()]


def distance(a, b):
    """The largest difference, of the largest value."""
    x, y = numbers(a), numbers(b)
    if len(x) != len(y):
        return math.inf
    return max(map(lambda p, q: abs(p - q), x, y), default=0) / max(max(map(abs, x), default=0), 1e-300)


def judge(name, found, reference, of):
    """Prints what differs; True: nothing that should not."""
    same = {what for what in found if hashlib.sha256(found[what]).digest() == hashlib.sha256(reference[what]).digest()}
    print(f"{name}: {len(same)} of {len(found)} results are the same bits as those of {of}")
    pattern, limit, why = MAY_DIFFER.get(name, ("$^", 0, ""))
    good = True
    for what in sorted(set(found) - same):
        far = distance(reference[what], found[what])
        expected = bool(re.match(pattern, what)) and far <= limit
        good = good and expected
        print(f"    {what}: {far:.2g} of the largest value; {why if expected else 'not expected'}")
    return good


def missing(name):
    """What is not here."""
    compiler, _, runner, _ = VARIANTS[name]
    tools = [w for w in (runner[:1] + ([compiler[0]] if isinstance(compiler, list) else [])) if not shutil.which(w)]
    sysroot = [w[10:] for w in compiler if w.startswith("--sysroot=") and not os.path.exists(w[10:] + "/ready")]
    return ", ".join(tools + sysroot)


def main():
    chosen = [v for v in VARIANTS if v == "gcc -O2" or not sys.argv[3:] or any(v.startswith(w) for w in sys.argv[3:])]
    chosen = [v for v in VARIANTS if v in chosen or v in [REFERENCES.get(c) for c in chosen]]
    os.makedirs(FOLDER, exist_ok=True)
    good, found, built, absent = True, {}, {}, False
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for name in chosen:
            if missing(name):
                print(f"{name}: not looked at, {missing(name)} is not here")
                absent = True
                continue
            compiler, _, runner, _ = VARIANTS[name]
            built[name] = built[compiler] if isinstance(compiler, str) else build(name, pool)
            found[name] = results(built[name], runner, FOLDER)
            of = REFERENCES.get(name, "gcc -O2")
            good = judge(name, found[name], found[of], of) and good
    reference = found["gcc -O2"]
    refused = [what for what, data in reference.items() if data.startswith(b"refused") or len(data) < 1000]
    if refused:
        print(f"nothing to compare: {', '.join(refused)}")
    if not good or refused:
        return 1
    return ABSENT if absent else 0


if __name__ == "__main__":
    sys.exit(main())
