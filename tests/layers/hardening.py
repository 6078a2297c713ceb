#!/usr/bin/env python3
"""Programs and libraries as they are built: PIE, full RELRO, no executable stack, guard words, FORTIFY, no RUNPATH.

hardening.py FILE...: reads them with readelf, and starts the programs in a folder with planted libraries.
"""
import os
import re
import subprocess
import sys
import tempfile


def read(file, *options):
    return subprocess.run(["readelf", "-W", *options, file], check=True, capture_output=True, text=True).stdout


def missing(file):
    """What the file lacks."""
    head, dynamic, segments, symbols = read(file, "-h"), read(file, "-d"), read(file, "-l"), read(file, "--dyn-syms")
    stack = re.search(r"GNU_STACK.* (R\S*) +0x\w+$", segments, re.M)
    rules = {
        "position independent (DYN)": "DYN (" in head,
        "GNU_RELRO": "GNU_RELRO" in segments,
        "BIND_NOW": re.search(r"\(FLAGS_1\).*\bNOW\b|\(BIND_NOW\)|\(FLAGS\).*BIND_NOW", dynamic),
        "a stack without code": stack and "E" not in stack.group(1),
        "no TEXTREL": "TEXTREL" not in dynamic,
        "guard words (__stack_chk_fail)": "__stack_chk_fail" in symbols,
        "FORTIFY (a function *_chk)": re.search(r"__(mem|str|v?sn?|f?)\w*_chk\b", symbols.replace("__stack_chk", "")),
        "no RUNPATH, no RPATH": not re.search(r"\((RUNPATH|RPATH)\)", dynamic),
    }
    return [name for name, good in rules.items() if not good]


def loads_planted(program):
    """Whether a library that lies in the current folder is loaded."""
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", read(program, "-d"))
    with tempfile.TemporaryDirectory() as folder:
        for name in needed:
            with open(os.path.join(folder, name), "w") as f:
                f.write("not a library")  # ld.so refuses to start with it, if it looks here
        env = {k: v for k, v in os.environ.items() if not k.startswith("LD_")}
        done = subprocess.run([program, "--version"], cwd=folder, env=env, capture_output=True, text=True)
        return "invalid ELF header" in done.stderr or "file too short" in done.stderr


def main(files):
    failed = False
    for file in files:
        lacks = missing(file)
        if "Executable" in read(file, "-h") and loads_planted(os.path.abspath(file)):
            lacks.append("that libraries in the current folder are not looked at")
        for what in lacks:
            failed = True
            print(f"{file}: expected {what}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
