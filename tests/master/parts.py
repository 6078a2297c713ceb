#!/usr/bin/env python3
"""Keeps the parts of the master apart: a part of struct crd_master is written in its own folder only.
Others may read where the run is, its lists and how it ended; of the rest they see functions."""
import os
import re
import sys

# part of struct crd_master -> folders of src/master that own it ("": the files beside master.h)
OWNERS = {
    "life": {"", "step"}, "clock": {"step"}, "lanes": {"step"}, "duties": {"step"}, "control": {"step"}, "rollback": {"step"},
    "iteration": {"step"}, "solvers": {"step"}, "async": {"step"}, "tuning": {"step"}, "connections": {"connection"},
    "energy": {"energy"}, "verdict": {"verdict"}, "record": {"record"}, "events": {"record"},
    "pace": {"pace"}, "models": {"models"}, "guard": {"guard"}, "live": {"live"}, "exchange": {"replay"},
}
READABLE = {"life", "clock", "connections", "energy"}
USE = re.compile(r"\bm->(\w+)(?:\.|->)(\w+)((?:\.\w+|\[[^][]*\]|->\w+)*)\s*(\+\+|--|[-+*/|&]?=(?!=))?")


def check_line(folder, line):
    """What is wrong with the line of a source in this folder, or None."""
    for use in USE.finditer(line):
        part, field, _, assigned = use.groups()
        if part not in OWNERS or folder in OWNERS[part]:
            continue
        if assigned:
            return f"{part}.{field} is written outside of its part"
        if part not in READABLE:
            return f"{part}.{field} is the inside of another part"
    return None


def check_tree(root):
    bad, count = [], 0
    base = os.path.join(root, "src", "master")
    for folder, _, files in os.walk(base):
        for f in sorted(files):
            if not f.endswith((".c", ".h")):
                continue
            path = os.path.join(folder, f)
            own = os.path.relpath(folder, base).replace(".", "", 1) if folder == base else os.path.relpath(folder, base)
            with open(path, encoding="utf-8") as source:
                for number, line in enumerate(source, 1):
                    count += len(USE.findall(line))
                    wrong = check_line(own, line)
                    if wrong:
                        bad.append(f"{os.path.relpath(path, root)}:{number}: {wrong}")
    return bad, count


def self_test():
    wrong = [("live", "    m->clock.time = 0;"), ("live", "    m->life.end_member += 1;"),
             ("pace", "    if (m->record.recorder) {"), ("verdict", "m->connections.predictions[i].rms = 0;"),
             ("", "m->control.step.h++;"), ("replay", "    m->live->state == 3")]
    right = [("step", "m->clock.n = 1;"), ("live", "if (m->clock.time == 0) {"), ("record", "m->record.spare = NULL;"),
             ("energy", "x = m->connections.predictions[i].rms;"), ("plan", "m->plan->times.tick")]
    failed = [w for w in wrong if not check_line(*w)] + [r for r in right if check_line(*r)]
    print(f"{len(wrong) + len(right)} lines, {len(failed)} judged wrongly: {failed}")
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1] == "--self-test":
        sys.exit(self_test())
    problems, uses = check_tree(sys.argv[1])
    print("\n".join(problems) or f"{uses} uses of parts keep the rules")
    sys.exit(1 if problems or uses < 100 else 0)
