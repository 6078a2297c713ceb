#!/usr/bin/env python3
"""portable.py ROOT CC: what is called portable is. `coupling` and `quality` are C17 and nothing else, `base`, `circuit` and
`twin` C17 with POSIX.1-2008: each file includes only headers of that list, and compiles with -std=c17 -pedantic-errors, where
names that only Linux or GNU has are not declared. --self-test: a file with a wrong header and one with a wrong call are found."""
import glob
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

C17 = """assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic stdbool
stddef stdint stdio stdlib stdnoreturn string tgmath time uchar wchar wctype""".split()
POSIX = "fcntl fnmatch poll pthread strings unistd sys/mman sys/stat sys/types sys/wait dirent".split()
# Beyond: getrandom() of Linux, the BSDs and macOS, KLU, and SSE2 behind an #ifdef.
BESIDE = {"base": ["sys/random"], "circuit": ["klu", "suitesparse/klu", "emmintrin"], "twin": []}
MODULES = {"coupling": ([], C17), "quality": ([], C17)}
for name, more in BESIDE.items():
    MODULES[name] = (["-D_XOPEN_SOURCE=700"], C17 + POSIX + more)
FLAGS = ["-std=c17", "-pedantic-errors", "-Werror=implicit-function-declaration", "-fsyntax-only", '-DCRD_VERSION="0"']


def wrong_headers(path, allowed):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    return [f"{path}: <{h}.h> is not in the list" for h in re.findall(r"^\s*#\s*include\s+<([^>]+)\.h>", text, re.M) if h not in allowed]


def refused(compiler, path, root, options):
    includes = [f"-I{root}/include", f"-I{root}/src", "-I/usr/include/suitesparse"]
    done = subprocess.run([compiler, *FLAGS, *options, *includes, path], capture_output=True, text=True)
    return done.stderr.strip().splitlines()[:3] if done.returncode else []


def look(root, compiler, files, options, allowed):
    found = [line for path in files for line in wrong_headers(path, allowed)]
    sources = [path for path in files if path.endswith(".c")]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for lines in pool.map(lambda path: refused(compiler, path, root, options), sources):
            found += lines
    return found


def self_test(root, compiler):
    with tempfile.TemporaryDirectory() as folder:
        texts = {"epoll.c": "#include <sys/epoll.h>\n", "gnu.c": "#include <string.h>\nvoid* f(char* s);\nvoid* f(char* s) { return rawmemchr(s, 0); }\n",
                 "good.c": "#include <math.h>\ndouble f(double x);\ndouble f(double x) { return sin(x); }\n"}
        wrong = []
        for name, text in texts.items():
            path = os.path.join(folder, name)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            if bool(look(root, compiler, [path], [], C17)) == (name == "good.c"):
                wrong.append(name)
    for name in wrong:
        print(f"{name} was not judged as it is")
    return 1 if wrong else 0


def main():
    root, compiler = sys.argv[1:3]
    if "--self-test" in sys.argv:
        return self_test(root, compiler)
    found, count = [], 0
    for module, (options, allowed) in MODULES.items():
        files = sorted(glob.glob(f"{root}/src/{module}/**/*.[ch]", recursive=True)) + [f"{root}/include/cardan/{module}.h"]
        count += len(files)
        found += look(root, compiler, files, options, allowed)
    print("\n".join(found) or f"{count} files of {', '.join(MODULES)}: portable")
    return 1 if found or count < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
