#!/usr/bin/env python3
"""clang.py ROOT BUILD FOLDER...: clang reads every source file of the folders that the build compiles,
with the build's flags, and has nothing to warn of. Exit code 77 where there is no clang."""
import os
import shutil
import sys

import commands


def main():
    root, build, folders = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3:]
    if not shutil.which("clang"):
        print("no clang here; cmake/setup.sh test installs it")
        return 77
    calls = [(name, ["clang", *words, "-Werror", "-fsyntax-only", os.path.join(root, name)], folder)
             for name, words, folder in commands.read(build, root, folders)]
    return commands.judge(calls, "with warnings of clang")


if __name__ == "__main__":
    sys.exit(main())
