#!/usr/bin/env python3
"""The README's table of speed, and where its numbers come from.

    readme.py check            the table says what benchmarks/results/readme.json has
    readme.py renew FILE       takes FILE, what `make bench` wrote (build/bench.json), into both, with the machine

Renew it on a quiet machine only: ratios of a busy one are not those of the code.
"""
import datetime
import json
import os
import platform
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KEPT = os.path.join(ROOT, "benchmarks", "results", "readme.json")
README = os.path.join(ROOT, "README.md")
COLUMNS = [("master/chain", n) for n in (2, 10, 100, 1000)] + [("master/chain-csv", 100)]


def names(version):
    return [f"{group}/fmi{version}/N={n}" for group, n in COLUMNS]


def row_of(ratios, version):
    return f"| FMI {version}.0 | " + " | ".join(f"{ratios[x]:.1f}" for x in names(version)) + " |"


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        model = re.search(r"model name\s*: (.*)", f.read())
    return {"cpu": model[1] if model else platform.machine(), "cores": os.cpu_count(), "kernel": platform.release(),
            "load": os.getloadavg()[0]}


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def check():
    kept, text, wrong = json.loads(read(KEPT)), read(README), []
    for version in (2, 3):
        if row_of(kept["ratios"], version) not in text:
            wrong.append(f"README.md has no row '{row_of(kept['ratios'], version)}'")
    cores = f"{kept['machine']['cores']} cores of an {kept['machine']['cpu']}"
    if cores not in text:
        wrong.append(f"README.md does not say '{cores}'")
    for what, value in kept["others"].items():
        if value not in re.sub(r"\s+", " ", text):
            wrong.append(f"README.md does not say '{value}' ({what})")
    print("\n".join(wrong) or "the README's numbers are those of benchmarks/results/readme.json")
    return 1 if wrong else 0


def renew(path):
    kept = json.loads(read(KEPT))
    measured = {r["name"]: r["ratio"] for r in json.loads(read(path))}
    missing = [n for v in (2, 3) for n in names(v) if n not in measured]
    if missing:
        print(f"{path}: no row {missing[0]}; expected what 'make bench' writes", file=sys.stderr)
        return 1
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    text = read(README)
    for version in (2, 3):
        text = text.replace(row_of(kept["ratios"], version), row_of(measured, version))
    old = f"{kept['machine']['cores']} cores of an {kept['machine']['cpu']}"
    kept.update(measured=str(datetime.date.today()), commit=commit, machine=machine(),
                ratios={n: measured[n] for v in (2, 3) for n in names(v)})
    text = text.replace(old, f"{kept['machine']['cores']} cores of an {kept['machine']['cpu']}")
    with open(README, "w", encoding="utf-8") as f:
        f.write(text)
    with open(KEPT, "w", encoding="utf-8") as f:
        f.write(json.dumps(kept, indent=1) + "\n")
    return check()


if __name__ == "__main__":
    sys.exit(check() if sys.argv[1:] == ["check"] else renew(sys.argv[2]) if sys.argv[1:2] == ["renew"] and
             len(sys.argv) == 3 else (print(__doc__), 2)[1])
