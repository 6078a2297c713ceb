"""The wheel of this build in a new environment that has NumPy and nothing else, without a compiler on its path: what it
loads is inside of it, and the module's tests pass there.

    python test_wheel.py BUILD_FOLDER
"""
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile

BUILD = os.path.abspath(sys.argv[1])
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# What every Linux of the wheel's tag has.
OUTSIDE = re.compile(r"^(ld-linux.*|libc|libm|libdl|librt|libpthread|libresolv|libutil|libgcc_s|libstdc\+\+)[.-]")
LOADS = """
import re, sys
import cardan, os
cardan.System().add("a", signal={"shape": "sine", "frequency": 1}).run(stop=1, step=0.1)
maps = open("/proc/self/maps").read()
print("\\n".join(sorted({m for m in re.findall(r"/\\S+$", maps, re.M) if ".so" in m})))
print(cardan._lib._find())
"""


def environment(folder):
    """A new one, with the NumPy of the tests' own."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = os.path.join(folder, "bin", "python")
    into = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('platlib'))"], check=True,
                          capture_output=True, text=True).stdout.strip()
    for name in ("numpy", "numpy.libs"):
        os.symlink(os.path.join(sysconfig.get_path("platlib"), name), os.path.join(into, name))
    return python, into


def main():
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run([sys.executable, os.path.join(ROOT, "python", "build_wheel.py"), folder], check=True,
                              env={**os.environ, "CARDAN_WHEEL_BUILD": BUILD}, stdout=subprocess.PIPE, text=True)
        wheel = made.stdout.strip()
        assert re.search(r"-py3-none-manylinux_2_\d+_\w+\.whl$", wheel), wheel
        python, into = environment(os.path.join(folder, "new"))
        subprocess.run([sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "install", "-q",
                        "--no-index", "--no-deps", wheel], check=True)
        tools = os.path.dirname(python)
        env = {"PATH": tools, "HOME": folder, "CARDAN_INSIDE": into}
        assert not shutil.which("cc", path=tools)
        said = subprocess.run([python, "-c", LOADS], check=True, env=env, stdout=subprocess.PIPE, text=True).stdout.split()
        assert said.pop() == os.path.join(into, "cardan", "_lib", "libcardan.so"), said
        mine = [p for p in said if "/cardan" in p]
        assert len(mine) > 20, mine  # library and what it needs
        numpy = os.path.realpath(os.path.join(into, "numpy"))
        allowed = (os.path.realpath(into), numpy, numpy + ".libs", sysconfig.get_path("stdlib"))
        for path in said:
            inside = os.path.realpath(path).startswith(allowed) or os.path.basename(path).startswith("libpython")
            of_python = "lib-dynload" in path or OUTSIDE.match(os.path.basename(path))
            # what the interpreter itself is linked with (its ctypes: libffi; its zlib, bz2, lzma)
            own = re.match(r"lib(ffi|z|bz2|lzma|expat|crypto|ssl|uuid)\.so", os.path.basename(path))
            assert inside or of_python or own, f"{path} is outside of the wheel"
        for name in os.listdir(os.path.join(into, "cardan", "_lib")):
            text = subprocess.run(["ldd", os.path.join(into, "cardan", "_lib", name)], check=True, capture_output=True,
                                  text=True).stdout
            for file, path in re.findall(r"^\s*(\S+) => (\S+)", text, re.M):
                assert path.startswith(into) or OUTSIDE.match(file), f"{name} needs {file} at {path}"
        version = subprocess.run([os.path.join(tools, "cardan"), "--version"], check=True, env=env, capture_output=True,
                                 text=True).stdout
        assert version.startswith("cardan "), version
        for test in ("test_module.py", "test_engines.py"):
            subprocess.run([python, os.path.join(HERE, test), BUILD], check=True, env=env)


main()
