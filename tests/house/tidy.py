#!/usr/bin/env python3
"""tidy.py [--fast] ROOT BUILD: clang-tidy with the checks of .clang-tidy finds nothing in src/. --fast leaves the static
analyser out, which takes thirty times as long as all other checks together. What the analyser finds and we have looked at
stands in analyser.txt, with the reason why it is none; all else fails. Exit code 77 where there is no clang-tidy."""
import os
import re
import shutil
import sys

import commands

HERE = os.path.dirname(os.path.abspath(__file__))
DEFINES = ("src/base/context.c", "src/base/json.c", "src/circuit/scan.c")
FOUND = re.compile(r"^(?P<file>[^:\n]+):\d+:\d+: (?:warning|error): (?P<text>.*?) \[(?P<check>clang-analyzer-[^,\]]+)")


def read_known(path):
    """{(file, check, text)} of lines "file | check | text | why"; a reason is needed."""
    known = set()
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            if line.strip() and not line.startswith("#"):
                parts = [p.strip() for p in line.split(" | ")]
                if len(parts) != 4 or not parts[3]:
                    raise SystemExit(f"{path}:{number}: expected 'file | check | text | why'")
                known.add(tuple(parts[:3]))
    return known


def findings(root, said):
    """(file, check, text, line as it was printed) of each finding of the analyser."""
    for line in said.splitlines():
        m = FOUND.match(line)
        if m:
            yield os.path.relpath(m["file"], root), m["check"], m["text"].rstrip(), line


def analyse(root, build, names):
    """Asserts hold, and failing fails: analyser.h. Sources that define its functions cannot have it in front."""
    known = read_known(os.path.join(HERE, "analyser.txt"))
    checks = "--checks=-bugprone-*,-cert-*,-misc-*,-performance-*,-portability-*,-readability-*"
    flags = [f"--extra-arg=-I{root}/src", f"--extra-arg=-I{root}/include", "--extra-arg=-UNDEBUG"]
    helped = ["--extra-arg=-include", f"--extra-arg={HERE}/analyser.h"]
    calls = [(name, ["clang-tidy", "-p", build, "--quiet", checks, *flags,
                     *(helped if name not in DEFINES else []), name], root) for name in names]
    bad, seen = 0, set()
    for name, code, said in commands.run_all(calls):
        if code:
            bad += 1
            print(said)
        for file, check, text, line in findings(root, said):
            seen.add((file, check, text))
            if (file, check, text) not in known:
                bad += 1
                print(line)
    for file, check, text in sorted(known - seen):
        print(f"analyser.txt: {file} | {check} | {text}: is not found any more, the line can go")
    print(f"{len(calls)} files, {bad} findings of the analyser that are not in analyser.txt, {len(known & seen)} that are")
    return 1 if bad or not calls else 0


def main():
    fast = sys.argv[1] == "--fast"
    root, build = (os.path.abspath(name) for name in sys.argv[1 + fast:])
    if not shutil.which("clang-tidy"):
        print("no clang-tidy here; cmake/setup.sh test installs it")
        return 77
    names = [name for name, _, _ in commands.read(build, root, ["src"])]
    calls = [(name, ["clang-tidy", "-p", build, "--quiet", "--warnings-as-errors=*", "--checks=-clang-analyzer-*", name],
              root) for name in names]
    code = commands.judge(calls, "with findings of clang-tidy")
    return code if fast else max(code, analyse(root, build, names))


if __name__ == "__main__":
    sys.exit(main())
