#!/usr/bin/env python3
"""Cycles of the hybrid car that are learned: golden_cycles.py EXAMPLES [--all]

30 s of the NEDC in which the engine starts, drives beside the machine and stops, over links of 25 ms: run 6 has
at most a hundredth of the error of the hold, without jitter and with jitter of a whole step. With --all also 200 s
over 60 ms.
"""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.abspath(sys.argv[1])
sys.path.insert(0, os.path.join(HERE, "..", "golden"))
os.environ["CARDAN_SYSTEMS"] = EXAMPLES
import golden
from golden import Checks

checks = Checks("cycles of the hybrid car")


def learn(start, stop, channel):
    edits = [("replay: nedc.csv", f"replay: {EXAMPLES}/nedc.csv"), ("delay: 60 ms", channel),
             ("start: 0 s", f"start: {start} s"), ("stop: 30 s", f"stop: {stop} s")]
    path = golden.place("hybrid_late", "2", edits)
    done = golden.cardan("coupling", "learn", "cycle", path, "-o", os.path.join(golden.TMP, "learned.json"), "--json")
    return [run["part"] for run in json.loads(done.stdout)["runs"] if run["what"] == "learn"]


cases = [(116, 146, "delay: 25 ms"), (116, 146, "delay: 25 ms, jitter: 10 ms")]
if golden.ALL:
    cases.append((0, 200, "delay: 60 ms"))
for case in cases:
    parts = learn(*case)
    what = f"{case[0]} s to {case[1]} s, {case[2]}"
    checks.true(f"{what}: run 6 is there", len(parts) == 5, " ".join(f"{part:.3g}" for part in parts))
    checks.below(f"{what}: run 6, of the first error", parts[-1], 0.01)
    checks.true(f"{what}: monotone from run 2 on", all(b < a for a, b in zip(parts, parts[1:])))
checks.end()
