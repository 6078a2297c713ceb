#!/usr/bin/env python3
"""Validate and simulate exported FMUs with FMPy: fmpy_check.py FMUS_DIR [PATTERN]

FMUS_DIR holds fmi2/ and fmi3/ with FMUs of the same names. Each is validated, simulated over its
default experiment (at most 2000 steps), and the outputs that both versions have are compared to
1e-12 of their size. An FMU with event mode runs with it as well and has to end at the same values;
one without Co-Simulation runs as Model Exchange.
One line per FMU; exit 1 if anything is wrong.
"""

import fnmatch
import os
import sys

import numpy as np
from fmpy import read_model_description, simulate_fmu
from fmpy.validation import validate_fmu

TOLERANCE = 1e-12


def run(path):
    """Problems found by the validation, and the recorded outputs."""
    problems = validate_fmu(path)
    md = read_model_description(path)
    experiment = md.defaultExperiment
    step = float(experiment.stepSize)
    stop = min(float(experiment.stopTime), 2000 * step)
    outputs = [v.name for v in md.modelVariables
               if v.causality == "output" and v.type not in ("String", "Binary")]
    kind = "CoSimulation" if md.coSimulation else "ModelExchange"
    options = dict(fmi_type=kind, step_size=step, output_interval=step, stop_time=stop,
                   output=outputs)
    result = simulate_fmu(path, **options)
    if getattr(md.coSimulation, "hasEventMode", False):
        events = simulate_fmu(path, use_event_mode=True, early_return_allowed=True, **options)
        for name in outputs:
            if not abs(float(events[name][-1]) - float(result[name][-1])) <= 1e-9:
                problems.append(f"{name} ends at {events[name][-1]:g} with event mode, "
                                f"at {result[name][-1]:g} without")
    return problems, result


def columns(result):
    """Name -> samples; elements of arrays get names like those of FMI 2.0."""
    out = {}
    for name in result.dtype.names:
        values = result[name]
        if values.ndim == 1:
            out[name] = values
        else:
            for i in range(values.shape[1]):
                out[f"{name}[{i + 1}]"] = values[:, i]
    return out


def difference(a, b):
    """Largest difference in units of the tolerance's base, with the column's name."""
    worst, where = 0.0, "-"
    a, b = columns(a), columns(b)
    if set(a) != set(b):
        return np.inf, "columns differ: " + " ".join(sorted(set(a) ^ set(b)))
    for name in a:
        x, y = np.asarray(a[name], float), np.asarray(b[name], float)
        if x.shape != y.shape:
            return np.inf, name
        if not (np.isfinite(x).all() and np.isfinite(y).all()):
            return np.inf, name
        d = np.max(np.abs(x - y) / np.maximum(1.0, np.abs(x)))
        if d > worst:
            worst, where = d, name
    return worst, where


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    folder, pattern = sys.argv[1], (sys.argv[2:] or ["*"])[0]
    names = [sorted(n for n in os.listdir(os.path.join(folder, v))
                    if n.endswith(".fmu") and fnmatch.fnmatch(n[:-4], pattern))
             for v in ("fmi2", "fmi3")]
    failed = 0
    if names[0] != names[1] or not names[0]:
        sys.exit(f"fmpy_check: {folder}: fmi2/ has {len(names[0])} FMUs, fmi3/ {len(names[1])}")
    for name in names[0]:
        try:
            found2, result2 = run(os.path.join(folder, "fmi2", name))
            found3, result3 = run(os.path.join(folder, "fmi3", name))
            found = [f"FMI 2: {p}" for p in found2] + [f"FMI 3: {p}" for p in found3]
            worst, where = difference(result2, result3)
            if not worst <= TOLERANCE:
                found.append(f"FMI 2 and 3 differ by {worst:g} in {where}")
            text = f"{len(result2)} rows, difference {worst:g}"
        except Exception as e:  # whatever FMPy raises is this FMU's problem
            found, text = [f"{type(e).__name__}: {e}"], ""
        failed += bool(found)
        print(f"{'FAILED' if found else 'ok    '} {name}: {'; '.join(found) or text}", flush=True)
    print(f"{len(names[0])} FMUs in two versions, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
