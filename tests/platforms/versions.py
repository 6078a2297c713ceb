"""versions.py ROOT CARDAN COMPILE_COMMANDS: there is one version number, and nothing asks for more of a processor than its architecture has.

CMakeLists.txt has the number; CHANGELOG.md has a section with it, dated, before all others; the command says it, with commit,
compiler, architecture and features; the interface is compared with that of its minor version. What is compiled is compiled for
every processor of the architecture: wider kernels stand in functions of their own, which are chosen when the program runs."""
import json
import os
import re
import subprocess
import sys


def main():
    root, cardan, commands = sys.argv[1:4]
    read = lambda name: open(os.path.join(root, name), encoding="utf-8").read()
    version = re.search(r"^project\(cardan VERSION ([0-9.]+)", read("CMakeLists.txt"), re.M).group(1)
    changes = re.search(r"^## \[(.*)\] - (.*)$", read("CHANGELOG.md"), re.M)
    assert changes.group(1) == version, f"CHANGELOG.md begins with {changes.group(1)}, the version is {version}"
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", changes.group(2)), f"CHANGELOG.md: {version} is dated \"{changes.group(2)}\""
    minor = ".".join(version.split(".")[:2])
    assert os.path.exists(os.path.join(root, f"tests/layers/interface-{minor}.txt")), f"no interface of {minor} to compare with"
    said = subprocess.run([cardan, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()
    assert said[0] == f"cardan {version}", said[0]
    assert [line.split()[0] for line in said[1:]] == ["commit", "compiler", "machine", "features"], said

    with open(commands, encoding="utf-8") as f:
        wrong = {w for entry in json.load(f) for w in entry["command"].split()
                 if re.match(r"-m(arch|cpu|tune)=|-m(avx|sse|fma|bmi|f16c|popcnt)|-ffast-math|-Ofast", w)}
    assert not wrong, f"compiled with {sorted(wrong)}: other processors end with SIGILL, or results differ"
    print(f"{version} everywhere")
    return 0


if __name__ == "__main__":
    sys.exit(main())
