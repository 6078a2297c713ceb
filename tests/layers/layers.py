#!/usr/bin/env python3
"""Keeps the include rules: a module includes headers of modules in rows below its own, those for users
(cardan/) and those that modules share (shared/), its own private headers, and nothing else of the
project. A header for users includes headers for users only and declares nothing that begins with crdi_.
Also: base and coupling include no foreign library, and `export` (what goes into FMUs) includes only
cardan/model.h; its program that describes them, which does not, uses the units of cardan/base.h."""
import os
import re
import sys

ROWS = [
    ["cli", "web", "python"],
    ["study", "testbench", "reproduce", "serve", "dcptools", "guard"],
    ["master"],
    ["unit", "core"],
    ["coupling", "analysis", "learn", "quality", "fmi", "ssp", "dcp", "circuit", "twin", "system", "results"],
    ["num", "archive", "xml", "sandbox", "wire"],
    ["base"],
]
SIBLINGS = {("analysis", "coupling"), ("learn", "coupling"), ("ssp", "system"), ("system", "quality"),
            ("twin", "circuit"), ("cli", "web"), ("reproduce", "testbench")}
# Headers that belong to no folder of their own: their row is that of base.
LOW_HEADERS = {"model"}
# Further headers of a module whose names do not say whose they are.
OWNERS = {"pace": "master", "live": "master", "board": "unit", "pair": "coupling"}
LIBC = set("""assert ctype errno fcntl float inttypes limits locale math pthread sched semaphore setjmp
signal stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib string strings time unistd dirent
dlfcn fenv ftw glob sys/mman sys/random sys/resource sys/stat sys/time sys/types sys/uio sys/wait
sys/syscall linux/futex xlocale termios sys/ioctl""".split())
LIBC_ONLY = {"base", "coupling"}

# What a header for users must not declare: a function, a type or a macro of the inside.
INSIDE = re.compile(r"(?:^|[^*\w])(crdi_\w+)\s*\(|^\s*#\s*define\s+(CRDI_\w+)|\}\s*(crdi_\w+)\s*;")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def row_of(module):
    for i, row in enumerate(ROWS):
        if module in row:
            return i
    return None


def owner_of(header):
    """The module of a header in cardan/ or shared/: dcp.h is one of dcp."""
    if header in OWNERS:
        return OWNERS[header]
    return header if row_of(header) is not None else header.split("_")[0]


def check_include(module, path, kind, target):
    """What is wrong with this include line, or None."""
    if kind == "<":
        if module in LIBC_ONLY and target.removesuffix(".h") not in LIBC:
            return f"{module} links against libc alone and must not include <{target}>"
        return None
    if path.startswith("src/fmi/export/"):
        inside = "/" not in target or target.startswith("fmi/export/")
        describes = path == "src/fmi/export/describe.h" and target == "cardan/base.h"
        if not inside and not describes and target != "cardan/model.h":
            return f'export goes into FMUs and must not include "{target}"'
        return None
    if target.startswith("shared/") and path.startswith("include/"):
        return f'a header for users must not include "{target}", which is not installed'
    if target.startswith(("cardan/", "shared/")):
        name = target.split("/", 1)[1].removesuffix(".h")
        if name == "cardan":
            return None if row_of(module) == 0 else "cardan/cardan.h is for users, not for modules"
        name = owner_of(name)
        if name == module or name in LOW_HEADERS:
            return None
        below = row_of(name)
        if below is None:
            return f'"{target}" belongs to no module'
        if below <= row_of(module) and (module, name) not in SIBLINGS:
            return f"{module} must not include {target}: it stands beside or above"
        return None
    owner = target.split("/")[0] if "/" in target else module
    if row_of(owner) is not None and owner != module:
        return f'"{target}" is private to {owner}'
    return None


def modules_of(root):
    for folder, _, files in os.walk(os.path.join(root, "src")):
        for f in files:
            if f.endswith((".c", ".h")):
                full = os.path.join(folder, f)
                path = os.path.relpath(full, root)
                folder_name = path.split(os.sep)[1]
                module = owner_of(f.removesuffix(".h")) if folder_name == "shared" else folder_name
                yield module, path, full
    for f in sorted(os.listdir(os.path.join(root, "include", "cardan"))):
        name = f.removesuffix(".h")
        if name != "cardan":
            module = "base" if name in LOW_HEADERS else owner_of(name)
            yield module, f"include/cardan/{f}", os.path.join(root, "include", "cardan", f)


def check_tree(root):
    bad, count = [], 0
    for module, path, full in modules_of(root):
        if row_of(module) is None:
            bad.append(f"{path}: folder '{module}' is in no row")
            continue
        with open(full, encoding="utf-8") as f:
            for number, line in enumerate(f, 1):
                inside = INSIDE.search(line.split("//")[0]) if path.startswith("include") else None
                if inside:
                    name = next(g for g in inside.groups() if g)
                    bad.append(f"{path}:{number}: {name} is not for users: src/shared is the place")
                m = INCLUDE.match(line)
                if m:
                    count += 1
                    wrong = check_include(module, path.replace(os.sep, "/"), m[1], m[2])
                    if wrong:
                        bad.append(f"{path}:{number}: {wrong}")
    return bad, count


def self_test():
    wrong = [
        ("fmi", "src/fmi/x.c", '"', "cardan/unit.h"),
        ("fmi", "src/fmi/x.c", '"', "cardan/system.h"),
        ("master", "src/master/x.c", '"', "fmi/archive.h"),
        ("master", "src/master/x.c", '"', "cardan/cardan.h"),
        ("base", "src/base/x.c", "<", "expat.h"),
        ("fmi", "src/fmi/x.c", '"', "cardan/dcp.h"),
        ("fmi", "src/fmi/export/x.c", '"', "cardan/base.h"),
        ("fmi", "src/fmi/x.c", '"', "shared/live.h"),
        ("unit", "include/cardan/unit.h", '"', "shared/base.h"),
    ]
    right = [
        ("master", "src/master/x.c", '"', "cardan/unit.h"),
        ("master", "src/master/x.c", '"', "master/master.h"),
        ("analysis", "src/analysis/x.c", '"', "cardan/coupling.h"),
        ("base", "src/base/x.c", "<", "math.h"),
        ("unit", "src/unit/x.c", '"', "cardan/dcp.h"),
        ("fmi", "src/fmi/export/x.c", '"', "cardan/model.h"),
        ("fmi", "src/fmi/x.c", '"', "shared/base.h"),
    ]
    failed = [w for w in wrong if not check_include(*w)] + [r for r in right if check_include(*r)]
    print(f"{len(wrong) + len(right)} rules, {len(failed)} wrong: {failed}")
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1] == "--self-test":
        sys.exit(self_test())
    problems, lines = check_tree(sys.argv[1])
    print("\n".join(problems) or f"{lines} include lines keep the rules")
    sys.exit(1 if problems or lines < 50 else 0)
