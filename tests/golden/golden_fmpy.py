#!/usr/bin/env python3
"""Each example FMU alone in FMPy and in `cardan run`: same outputs at every step, FMI 2.0 and 3.0.

Over its default experiment (at most 500 steps, with --all 2000) with its start values, and once more
with every continuous input driven by a sine, which FMPy samples and Cardan replays from a file.
Tolerance 1e-12 of the signal's largest value, at least of 1: both call the same FMU in the same
order, but the step of FMPy is the difference of two times, rounded to 1e-16 s.
"""

import contextlib
import io
import os
import sys

import numpy as np
from fmpy import read_model_description, simulate_fmu

from golden import ALL, FMUS, HERE, TMP, Checks, run

sys.path.insert(0, os.path.join(HERE, "..", "tools"))
from fmpy_check import columns  # noqa: E402  (elements of arrays as columns)

TOLERANCE = 1e-12


def experiment(md):
    step = float(md.defaultExperiment.stepSize)
    return step, round(min(float(md.defaultExperiment.stopTime) / step, 2000 if ALL else 500))


def drive(md, step, count):
    """A sine for each continuous input, as FMPy wants it, and as a file for Cardan."""
    names = [v.name for v in md.modelVariables if v.causality == "input" and not v.dimensions and
             v.type in ("Real", "Float64") and v.variability in (None, "continuous")]
    if not names:
        return None, None
    start = {v.name: float(v.start or 0) for v in md.modelVariables if v.name in names}
    t = np.arange(count + 1) * step
    data = np.zeros(len(t), dtype=[("time", float)] + [(n, float) for n in names])
    data["time"] = t
    for i, n in enumerate(names):
        phase = 2 * np.pi * (3 + i) * t / t[-1]
        data[n] = start[n] + 0.01 * (1 + abs(start[n])) * np.sin(phase)
    file = os.path.join(TMP, "drive.csv")
    np.savetxt(file, data, delimiter=",", fmt="%.17g", comments="",
               header=",".join(data.dtype.names))
    return data, file


def last_of_each_time(result):
    """FMPy records an event twice; Cardan shows what comes after it."""
    times = result["time"]
    return result[np.append(np.diff(times) > 1e-9, True)]


def compare(checks, path, name, md, driven):
    step, count = experiment(md)
    signal, file = drive(md, step, count) if driven else (None, None)
    if driven and signal is None:
        return
    outputs = [v.name for v in md.modelVariables
               if v.causality == "output" and v.type not in ("String", "Binary")]
    options = {}
    if getattr(md.coSimulation, "hasEventMode", False):
        options = dict(use_event_mode=True, early_return_allowed=True)
    with contextlib.redirect_stdout(io.StringIO()):  # warnings about inputs that are not driven
        theirs = simulate_fmu(path, fmi_type="CoSimulation", step_size=step, output_interval=step,
                              stop_time=count * step, output=outputs, input=signal, **options)
    theirs = columns(last_of_each_time(theirs))
    arguments = [a for n in theirs if n != "time" for a in ("--variables", n.replace("[", "[[]"))]
    if driven:
        arguments += ["--input", file, "--predict", "hold"]
    ours = run(path, *arguments, step=step, stop_time=count * step)
    worst, where = 0.0, "-"
    times = np.round(theirs["time"] / step).astype(int)
    checks.true(f"{name}: rows", len(ours["time"]) == count + 1 and len(times) >= count + 1,
                f"{len(ours['time'])}")
    on_grid = np.abs(theirs["time"] - times * step) < 1e-9
    for n, values in theirs.items():
        x, y = np.asarray(values, float)[on_grid], ours[n][times[on_grid]]
        d = np.max(np.abs(x - y)) / max(1, np.max(np.abs(x)))
        d = np.inf if np.isnan(d) else d  # and stays the worst
        if d > worst:
            worst, where = d, n
    checks.true(name, worst <= TOLERANCE,
                f"{len(theirs) - 1} outputs, {on_grid.sum()} rows, difference {worst:.2g} "
                f"in {where}")


def main():
    checks = Checks(__doc__)
    names = sorted(n for n in os.listdir(os.path.join(FMUS, "fmi2")) if n.endswith(".fmu"))
    for name in names:
        for version in ("fmi2", "fmi3"):
            path = os.path.join(FMUS, version, name)
            md = read_model_description(path)
            if not md.coSimulation:  # those are in peer_me.py
                continue
            for driven in (False, True):
                compare(checks, path, f"{version}/{name}{' driven' if driven else ''}", md, driven)
    checks.end()


if __name__ == "__main__":
    main()
