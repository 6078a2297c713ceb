#!/usr/bin/env python3
"""Circuits through ngspice and through Cardan: waveforms agree to 1e-3 of their range.

    peer_ngspice.py RUN_PEER FOLDER                the circuits of peer/ and the thesis's benchmarks
    peer_ngspice.py RUN_PEER FOLDER EXAMPLES       the netlists that come with ngspice

Of the examples every one with a transient analysis is read. What is refused has to be refused in a
sentence with file and line; the others have to agree. Exit code 77, skipped, without ngspice or
without the examples.
"""

import collections
import glob
import os
import re
import shutil
import sys

from ngspice import (cardan, deck, distance, electric, logical_lines, ngspice, read_text)

PROGRAM, TMP = sys.argv[1:3]
EXAMPLES = sys.argv[3] if len(sys.argv) > 3 else None
HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT = 1e-3
SUFFIXES = {"t": 1e12, "g": 1e9, "meg": 1e6, "k": 1e3, "m": 1e-3, "u": 1e-6, "n": 1e-9,
            "p": 1e-12, "f": 1e-15}
NUMBER = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)(meg|[tgkmunpf])?[a-z]*", re.I)
REFUSAL = re.compile(r"^(.*?):(\d+): .{10,}")
# ngspice finds a switching time no better than its steps, and that adds up in an oscillator.
# In a ring of 34 switches the edges are 90 ps apart after 80 ns with steps of 10 ps, 5 ps with 1 ps.
LARGEST = {"hysteresis.cir": 1e-8, "switch-oscillators.cir": 3e-13}
SHIFT = {"switch-oscillators.cir": 2e-4}  # of the duration, that edges may differ
# Chaos: two solutions part, however exact they are. Compared are so many seconds.
UNTIL = {"roessler-attractor.cir": 60.0, "switch-oscillators.cir": 20e-9}
GIVEN = {"alter-1.cir": ".tran 100p 50n", "memristor.sp": ".tran 0.1n 10n"}  # 100 MHz
bad = 0


def check(what, ok, detail):
    global bad
    bad += not ok
    print(f"{what}: {'ok' if ok else 'BAD'}, {detail}", flush=True)


def number(word):
    match = NUMBER.fullmatch(word)
    if not match:
        return None
    return float(match.group(1)) * SUFFIXES.get((match.group(2) or "").lower(), 1.0)


def transient(lines):
    """Step and stop of .tran; None: there is none, or not in numbers."""
    for line in lines:
        words = line.split(";")[0].split("$")[0].split()
        if words and words[0].lower() == ".tran":
            numbers = [number(w) for w in words[1:3]]
            if len(numbers) == 2 and None not in numbers and min(numbers) > 0:
                return numbers
    return None


def compare(what, path, text, folder, largest=None, until=None):
    """text: what ngspice is given. Returns (distance, sentence); distance None: ngspice cannot."""
    step, stop = transient(logical_lines(text))
    largest = largest or min(step / 2, stop / 4000)
    if until and until < stop:
        text = re.sub(r"^(\s*\.tran\s+\S+\s+)\S+", rf"\g<1>{until:g}", text, flags=re.M | re.I)
    peer, problem = ngspice(deck(text, largest), folder, "peer_" + re.sub(r"\W", "_", what))
    if problem:
        return None, problem
    own, problem, code = cardan(PROGRAM, path, TMP, step / 10, relative=1e-6)
    if problem:
        return float("inf"), f"exit code {code}: {problem}"
    shift = SHIFT.get(os.path.basename(what), 2e-5)
    far, where, count = distance(own, peer, until=until, width=shift)
    return (far if count else float("inf")), f"{far:.1e} of {count} signals, {where or 'all equal'}"


def own_circuits():
    for path in sorted(glob.glob(os.path.join(HERE, "peer", "*.cir"))):
        name = os.path.basename(path)
        far, text = compare(name, path, read_text(path), TMP, largest=LARGEST.get(name))
        check(name, far is not None and far < LIMIT, text)
    data = os.path.join(HERE, "data")
    for name in ("rlc", "scrlc", "rc_thermal", "inverter", "pmsm"):
        path = os.path.join(data, name + ".cir")
        text = read_text(path)
        with open(os.path.join(data, "airgap.inc"), encoding="utf-8") as f:
            text = text.replace(".include airgap.inc", f.read().rstrip())
        far, text = compare(name, path, electric(text), TMP)
        check(name, far is not None and far < LIMIT, text)
    # Without a junction capacitance ngspice does not get past the zero of the current.
    text = read_text(os.path.join(data, "rectifier.cir"))
    text = text.replace("rs=1m", "rs=1m cjo=100p").replace(".tran 0.5m", ".tran 0.05m")
    path = os.path.join(TMP, "rectifier_cjo.cir")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    far, text = compare("rectifier", path, electric(text), TMP)
    check("rectifier", far is not None and far < LIMIT, text)


def example_text(path):
    """The netlist with its transient analysis, and where that comes from: its own card, moved out
    of .control, or ours where it has none."""
    text = read_text(path)
    if transient(logical_lines(text)):
        return text, "own"
    lines = text.split("\n")
    for line in lines:
        words = line.split()
        if words and words[0].lower() == "tran" and transient(["." + line.strip()]):
            return "\n".join([lines[0], "." + line.strip()] + lines[1:]), "moved"
    kept = [line for line in lines if not line.lower().startswith(".tran")]
    card = GIVEN.get(os.path.basename(path), ".tran 1u 200u")
    if re.search(r"^[cl].*\sic\s*=", text, re.M | re.I):
        card += " uic"  # of a transient analysis, or they would stand there for nothing
    return "\n".join([kept[0], card] + kept[1:]), "ours"


def kind_of(sentence):
    """Refusals in groups: without names."""
    sentence = re.sub(r'^[^ ]*: (?=")|^[^ "]+: ', "", sentence)
    return re.sub(r'"[^"]*"|\b[a-z]*\d\w*\b', "...", sentence)


def examples():
    counts, reasons, accepted = collections.Counter(), collections.Counter(), []
    files = [p for p in glob.glob(os.path.join(EXAMPLES, "**", "*"), recursive=True)
             if re.search(r"\.(cir|sp|spi|net|ckt|spice)$", p, re.I)
             and not os.path.basename(p).startswith(("peer_", "moved_"))]
    for path in sorted(files):
        name = os.path.relpath(path, EXAMPLES)
        text, whose = example_text(path)
        counts["with a transient analysis" if whose != "ours" else "without, given one"] += 1
        if whose != "own":
            path = os.path.join(os.path.dirname(path), "moved_" + os.path.basename(path))
            with open(path, "w", encoding="latin-1") as f:
                f.write(text)
        _, problem, code = cardan(PROGRAM, path, TMP, 0.0, check=True)
        if code == 3:
            match = REFUSAL.match(problem)
            if not match:
                check(name, False, f"the refusal names no line: {problem}")
            counts["refused, " + ("without" if whose == "ours" else "with")] += 1
            reasons[kind_of(problem[match.end(2) + 2:] if match else problem)] += 1
            continue
        if code:
            check(name, False, f"exit code {code}: {problem}")
            continue
        accepted.append((name, path, text, whose))
    for name, path, text, whose in accepted:
        base = os.path.basename(name)
        far, said = compare(name, path, "\n".join(logical_lines(text)), os.path.dirname(path),
                            largest=LARGEST.get(base), until=UNTIL.get(base))
        if far is None:
            counts["not run by ngspice itself"] += 1
            print(f"{name}: left out, {said}")
            continue
        counts["compared, " + ("without" if whose == "ours" else "with")] += 1
        check(name, far < LIMIT, said)
    for reason, count in reasons.most_common():
        print(f"refused {count:4}: {reason}")
    for what, count in sorted(counts.items()):
        print(f"{count:4} {what}")
    check("enough to compare", counts["compared, with"] >= 10, f"{counts['compared, with']}")


def main():
    if not shutil.which("ngspice"):
        print("skipped: there is no ngspice (Debian: apt install ngspice)")
        return 77
    os.makedirs(TMP, exist_ok=True)
    if not EXAMPLES:
        own_circuits()
    elif os.path.exists(os.path.join(EXAMPLES, "ready")):
        examples()
    else:
        print(f"skipped: {EXAMPLES} has no examples of ngspice (sh cmake/ngspice.sh {EXAMPLES})")
        return 77
    print("bad:", bad)
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
