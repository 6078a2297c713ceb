#!/usr/bin/env python3
"""Builds docs/contributing/circuit-part.md into a copy of the sources and runs its test.

    circuit_part.py SOURCE CC INCLUDES

Blocks below `<!-- file: PATH -->` become that file; a block below `<!-- line: PATH above TEXT -->` is put
above the only line of that file which has the text in it.
"""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

MARK = re.compile(r"<!-- (file|line): (\S+)(?: above (.+?))? -->\n```\w*\n(.*?)```\n", re.S)
MODULES = ("base", "circuit")  # what a circuit is made of


def copy_sources(source, tree):
    for folder in ["include", "src/shared"] + ["src/" + m for m in MODULES]:
        shutil.copytree(os.path.join(source, folder), os.path.join(tree, folder))


def apply_page(page, tree):
    count = 0
    for kind, path, above, body in MARK.findall(page):
        count += 1
        path = os.path.join(tree, path)
        if kind == "file":
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as f:
                f.write(body)
            continue
        with open(path) as f:
            text = f.read()
        assert text.count(above) == 1, f"{path}: '{above}' is there {text.count(above)} times"
        at = text.rindex("\n", 0, text.index(above)) + 1
        with open(path, "w") as f:
            f.write(text[:at] + body + text[at:])
    assert count == 3, f"the page has {count} blocks, expected 3"


def compile_all(cc, includes, tree):
    files = [os.path.join(tree, "tests/circuit/test_cubic.c")]
    for module in MODULES:
        for folder, _, names in os.walk(os.path.join(tree, "src", module)):
            files += [os.path.join(folder, n) for n in names if n.endswith(".c") and n != "on_board.c"]
    flags = ["-std=gnu17", "-D_GNU_SOURCE", '-DCRD_VERSION="0"', "-ffp-contract=off", "-O1", "-Wall",
             "-Wextra", "-Wno-psabi", "-I" + tree + "/include", "-I" + tree + "/src", "-I" + includes]

    def one(number):
        out = os.path.join(tree, f"{number}.o")
        subprocess.run([cc, *flags, "-c", files[number], "-o", out], check=True)
        return out

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(one, range(len(files))))
    program = os.path.join(tree, "test_cubic")
    subprocess.run([cc, *objects, "-lklu", "-lm", "-lpthread", "-o", program], check=True)
    return program


def main():
    source, cc, includes = sys.argv[1:]
    with open(os.path.join(source, "docs/contributing/circuit-part.md")) as f:
        page = f.read()
    with tempfile.TemporaryDirectory() as tree:
        copy_sources(source, tree)
        apply_page(page, tree)
        return subprocess.run([compile_all(cc, includes, tree)], timeout=60).returncode


sys.exit(main())
