#!/usr/bin/env python3
"""tidy.py [--fast] ROOT BUILD: clang-tidy with the checks of .clang-tidy finds nothing in src/. --fast
leaves the static analyser out, which takes thirty times as long as all other checks together. Exit
code 77 where there is no clang-tidy."""
import os
import shutil
import sys

import commands


def main():
    fast = sys.argv[1] == "--fast"
    root, build = (os.path.abspath(name) for name in sys.argv[1 + fast:])
    if not shutil.which("clang-tidy"):
        print("no clang-tidy here; cmake/setup.sh test installs it")
        return 77
    checks = ["--checks=-clang-analyzer-*"] if fast else []
    calls = [(name, ["clang-tidy", "-p", build, "--quiet", "--warnings-as-errors=*", *checks, name], root)
             for name, _, _ in commands.read(build, root, ["src"])]
    return commands.judge(calls, "with findings of clang-tidy")


if __name__ == "__main__":
    sys.exit(main())
