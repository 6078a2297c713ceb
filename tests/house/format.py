#!/usr/bin/env python3
"""format.py ROOT: every C file is as clang-format 14 has it (.clang-format). Lists those that are not.
Exit code 77 where there is no clang-format 14: others lay some lines out otherwise."""
import os
import re
import shutil
import subprocess
import sys

import commands


def main():
    root = os.path.abspath(sys.argv[1])
    tool = shutil.which("clang-format-14") or shutil.which("clang-format")
    version = subprocess.run([tool, "--version"], stdout=subprocess.PIPE, text=True).stdout if tool else ""
    if not re.search(r"version 14\.", version):
        print("no clang-format 14 here; cmake/setup.sh test installs Debian's")
        return 77
    files = commands.tracked(root, ".c", ".h")
    some = [files[i:i + 50] for i in range(0, len(files), 50)]
    calls = [("", [tool, "--dry-run", "-Werror", *names], root) for names in some]
    bad = sorted({found[1] for _, _, said in commands.run_all(calls)
                  for found in re.finditer(r"^(\S+?):\d+:\d+: error:", said, re.M)})
    for name in bad:
        print(name)
    print(f"{len(files)} files, {len(bad)} are not as clang-format has them" + ("; make format mends that" if bad else ""))
    return 1 if bad or not files else 0


if __name__ == "__main__":
    sys.exit(main())
