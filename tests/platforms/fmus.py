"""fmus.py FOLDER CARDAN FMUS CARDAN_ARM64: FMUs with binaries for several machines. `export --platforms` and `build --platforms` add them;
the FMU of a coupling element and one of the examples give the same bits here and, through their other binary, on arm64; circuits and
twins, whose library goes into the binary, do but for the rounding of that library (docs/reference/platforms.md). An FMU without a
binary for the machine says which it has."""
import os
import shutil
import subprocess
import sys
import zipfile

FOLDER, CARDAN, FMUS, ARM = (os.path.abspath(p) for p in sys.argv[1:5])
ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
EMULATED = ["qemu-aarch64", "-L", f"{ROOT}/build/sysroot/arm64", ARM]
MACHINES = {"linux64": 62, "x86_64-linux": 62, "aarch64-linux": 183, "aarch32-linux": 40}  # e_machine of ELF


def call(*words, code=0, **environment):
    done = subprocess.run(words, capture_output=True, text=True, cwd=FOLDER, timeout=600, env=dict(
        os.environ, XDG_CACHE_HOME=f"{FOLDER}/cache", TMPDIR=FOLDER, CARDAN_ISOLATE="none", **environment))
    assert done.returncode == code, f"exit code {done.returncode}: {' '.join(words)}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def platforms(fmu):
    found = {}
    with zipfile.ZipFile(os.path.join(FOLDER, fmu)) as z:
        for name in z.namelist():
            if name.endswith(".so"):
                found[name.split("/")[1]] = int.from_bytes(z.read(name)[18:20], "little")
    assert all(MACHINES[p] == machine for p, machine in found.items()), found
    return sorted(found)


def result(command, fmu, name, *options):
    call(*command, "run", fmu, "-q", "-o", name, *options)
    with open(os.path.join(FOLDER, name), "rb") as f:
        return f.read()


def without(fmu, platform, sources, name):
    """A copy that lost a platform, and its sources."""
    with zipfile.ZipFile(os.path.join(FOLDER, fmu)) as old, zipfile.ZipFile(os.path.join(FOLDER, name), "w") as new:
        for entry in old.infolist():
            if f"binaries/{platform}/" not in entry.filename and (sources or not entry.filename.startswith("sources/")):
                new.writestr(entry, old.read(entry))


def needed(fmu, platform):
    """What its binary for a platform asks the loader for."""
    with zipfile.ZipFile(os.path.join(FOLDER, fmu)) as z:
        binary = z.extract(next(n for n in z.namelist() if n.startswith(f"binaries/{platform}/")), FOLDER)
    text = subprocess.run(["readelf", "-d", binary], capture_output=True, text=True, check=True).stdout
    return sorted(line.split("[")[1].rstrip("]") for line in text.splitlines() if "(NEEDED)" in line)


def worst(here, there):
    """The largest difference, of the column's largest value."""
    columns = [list(zip(*([float(x) if x else 0.0 for x in line.split(",")] for line in text.decode().splitlines()[1:]))) for text in (here, there)]
    return max(max(abs(a - b) for a, b in zip(x, y, strict=True)) / (max(map(abs, x)) or 1) for x, y in zip(*columns, strict=True))


def circuits_and_twins():
    cross = {f"CC_{p}_linux": f"{triplet}-gcc --sysroot={ROOT}/build/sysroot/{root}"
             for p, triplet, root in (("aarch64", "aarch64-linux-gnu", "arm64"), ("aarch32", "arm-linux-gnueabihf", "armhf"))}
    for kind, file, version, options in (("circuit", "circuits/ladder.cir", "2", ["--step", "10 us", "--stop-time", "1 ms"]),
                                         ("circuit", "circuits/rectifier.cir", "3", ["--step", "100 us", "--stop-time", "20 ms"]),
                                         ("twin", "prototype/machine_twin.yaml", "2", ["--step", "0.1 s", "--stop-time", "10 s"])):
        own, fmu = ("linux64", "x86_64-linux")[version == "3"], os.path.splitext(os.path.basename(file))[0] + ".fmu"
        call(CARDAN, "export", kind, f"{ROOT}/examples/{file}", "--fmi", version, "--platforms", f"aarch64-linux,aarch32-linux,{own}",
             "-o", fmu, **cross)
        assert platforms(fmu) == sorted(["aarch32-linux", "aarch64-linux", own]), platforms(fmu)
        for platform in platforms(fmu):
            assert not [n for n in needed(fmu, platform) if not n.startswith(("libc.", "libm.", "libgcc_s.", "ld-linux"))], \
                (fmu, platform, needed(fmu, platform))
        here, there = result([CARDAN], fmu, "here.csv", *options), result(EMULATED, fmu, "there.csv", *options)
        assert here.count(b"\n") > 90 and worst(here, there) < 1e-9, f"{fmu}: {worst(here, there)} of the largest value on arm64"
    # Libraries for the other machine are missing here: which, and where they may come from
    text = call(CARDAN, "export", "circuit", f"{ROOT}/examples/circuits/ladder.cir", "--platforms", "aarch64-linux", "-o", "wrong.fmu", code=1,
                CC_aarch64_linux=f"aarch64-linux-gnu-gcc --sysroot={FOLDER}/cache")
    assert "it wants libraries for aarch64-linux" in text and not os.path.exists(f"{FOLDER}/wrong.fmu"), text


def main():
    absent = [w for w in (EMULATED[0], ARM, "aarch64-linux-gnu-gcc", "arm-linux-gnueabihf-gcc") if not shutil.which(w)]
    if absent:
        print(f"not here: {', '.join(absent)}; make test-arm makes it")
        return 1 if os.environ.get("CARDAN_TEST_ARM") else 77
    shutil.rmtree(FOLDER, ignore_errors=True)
    os.makedirs(FOLDER)
    for version, own in (("2", "linux64"), ("3", "x86_64-linux")):
        fmu = f"eros{version}.fmu"
        call(CARDAN, "export", "coupling", "eros", "--step", "10ms", "--fmi", version, "--platforms", "aarch64-linux,aarch32-linux", "-o", fmu)
        assert platforms(fmu) == sorted(["aarch32-linux", "aarch64-linux", own]), platforms(fmu)
        options = ["--stop-time", "1 s", "--step", "10 ms", "--set", "u=1"]
        here, there = result([CARDAN], fmu, "here.csv", *options), result(EMULATED, fmu, "there.csv", *options)
        assert here == there and here.count(b"\n") > 90, f"FMI {version}: the coupling FMU differs on arm64"

    circuits_and_twins()
    call(CARDAN, "build", f"{FMUS}/fmi2/lo_fd1.fmu", "--platforms", "arm64", code=2)
    call(CARDAN, "build", f"{FMUS}/fmi2/lo_fd1.fmu", "--platforms", "aarch64-linux,linux64,aarch64-linux", "-o", "both.fmu")
    assert platforms("both.fmu") == ["aarch64-linux", "linux64"], platforms("both.fmu")
    assert result([CARDAN], "both.fmu", "here.csv", "--stop-time", "1 s") == result(EMULATED, "both.fmu", "there.csv", "--stop-time", "1 s")

    # A compiler for another machine is found out, and nothing is written
    text = call(CARDAN, "build", f"{FMUS}/fmi2/lo_fd2.fmu", "--platforms", "aarch64-linux", "-o", "wrong.fmu", code=1, CC_aarch64_linux="gcc")
    assert "does not compile for aarch64-linux" in text and not os.path.exists(f"{FOLDER}/wrong.fmu"), text
    text = call(CARDAN, "export", "coupling", "eros", "--step", "1ms", "--platforms", "aarch64-linux", "-o", "wrong.fmu", code=2,
                CC_aarch64_linux="no-such-compiler")
    assert "no C compiler for aarch64-linux" in text and not os.path.exists(f"{FOLDER}/wrong.fmu"), text

    without("both.fmu", "linux64", False, "arm.fmu")
    text = call(CARDAN, "run", "arm.fmu", code=2)
    assert "binaries for: aarch64-linux" in text and "with its sources" in text, text
    without("both.fmu", "linux64", True, "sources.fmu")
    assert result([CARDAN], "sources.fmu", "built.csv", "--stop-time", "1 s") == result([CARDAN], "both.fmu", "here.csv", "--stop-time", "1 s")
    print("FMUs with binaries for x86-64, arm64 and armhf: the same bits on x86-64 and arm64")
    return 0


if __name__ == "__main__":
    sys.exit(main())
