"""musl.py ROOT MUSL_GCC FOLDER: base and coupling with another C library: built by musl-gcc with -std=c17 -pedantic-errors, and
their tests run, statically linked. cmocka.h of this folder stands in for cmocka, which Debian has for glibc alone."""
import glob
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

TESTS = ["coupling/" + name for name in ("linear", "error_curves", "element", "detect", "network", "bank", "commands", "score", "outliers")]
TESTS += ["base/" + name for name in ("json", "quantity", "text")]


def main():
    root, compiler, folder = sys.argv[1:4]
    if not shutil.which(compiler):
        print(f"not here: {compiler}; make test-arm installs it")
        return 1 if os.environ.get("CARDAN_TEST_ARM") else 77
    os.makedirs(folder, exist_ok=True)
    here = os.path.dirname(os.path.abspath(__file__))
    flags = ["-D_XOPEN_SOURCE=700", '-DCRD_VERSION="0"', f"-I{root}/include", f"-I{root}/src", "-ffp-contract=off"]

    def call(*words):
        done = subprocess.run([compiler, *words], capture_output=True, text=True)
        return done.stderr[:2000] if done.returncode else ""

    def compile_source(path):
        target = os.path.join(folder, os.path.relpath(path, root).replace("/", "_")[:-2] + ".o")
        return target, call("-std=c17", "-pedantic-errors", "-O1", *flags, "-c", path, "-o", target)

    def run_test(name):
        module, base = name.split("/")
        program = os.path.join(folder, "test_" + base)
        wrong = call("-std=gnu17", "-w", "-O0", "-static", f"-I{here}", f"-I{root}/tests", *flags, "-D_GNU_SOURCE", "-U_XOPEN_SOURCE",
                     f'-DTEST_SOURCE_DIR="{root}/tests"', f'-DTEST_BUILD_DIR="{folder}"', f"{root}/tests/{module}/test_{base}.c", library,
                     "-lm", "-o", program)
        if wrong:
            return name, False, wrong
        done = subprocess.run([program], capture_output=True, text=True, timeout=300)
        return name, done.returncode == 0, done.stdout + done.stderr

    sources = sorted(glob.glob(f"{root}/src/base/*.c") + glob.glob(f"{root}/src/coupling/*.c"))
    good = True
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        made = list(pool.map(compile_source, sources))
        library = os.path.join(folder, "libcore.a")  # as in the build: a test may have a source of its own copy
        if os.path.exists(library):
            os.remove(library)
        subprocess.run(["ar", "rcs", library, *(target for target, wrong in made if not wrong)], check=True)
        for _, wrong in made:
            if wrong:
                print(wrong)
                good = False
        for name, passed, text in pool.map(run_test, [t for t in TESTS if good]):
            print(f"{name}: {text.strip().splitlines()[-1] if passed else text}")
            good = good and passed
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
