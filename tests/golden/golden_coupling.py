#!/usr/bin/env python3
"""The two-mass oscillator of Baumann (2020) over an emulated channel of 3 ms, through `cardan run`.

Energies after 500 s and growth rates of the slow mode against the monodromy matrix of the sampled
loop, worked out independently. A force at a macro step can be sampled before or after the inputs
are updated there; the master samples before ("minus"): outputs belong to the inputs of the step that
has just ended. The FMUs propagate their linear halves exactly for inputs that are lines, so what
differs from the monodromy is rounding over 500 000 steps: 1e-8 relative allows for it (found: 1e-10).
"""

import numpy as np

from golden import KINDS, Checks, fmu, place, run

HOLD = ", reconstruct: hold, detect: none"
GIVEN = "linear, detect: none, any-gain: true, weights: { k: 3, a: [%s] }"
# What stands for `foh` in the example; energy at 500 s in J and growth rate of mode 1 in 1/s.
ROWS = (
    ("zoh", 8.528479679205738, 1.233660518618962e-4),
    ("foh", 6.993870970935435, -7.481148671576836e-05),
    ("eros", 6.993855398960119, -7.481185860746318e-05),
    ("foh" + HOLD, 7.350504861468861, -2.512599912601059e-05),
    (GIVEN % "6.5103, -1.5509, -9.9296, 5.9702", 7.170806100885377, -4.9850294630581616e-05),
)
VARIABLES = ("--variables", "one.[xv]2", "--variables", "two.[xv]1")
REFERENCE = 6.993858097688207, -7.481156135769051e-05


def energy(r, names):
    x1, v1, x2, v2 = (r[n] for n in names)
    return 50 * v1**2 + 0.5 * v2**2 + 5 * x1**2 + 5 * x2**2 + 5 * (x1 - x2) ** 2


def growth(x):
    """Real part of the slow mode, from rows of 1 s: two modes are a recursion of four terms."""
    y = x[10:]  # behind what the start of the sampled loop leaves
    columns = np.column_stack([y[3 - i:len(y) - 1 - i] for i in range(4)])
    weights = np.linalg.lstsq(columns, y[4:], rcond=None)[0]
    roots = np.log(np.roots(np.concatenate([[1], -weights])))
    return roots[np.argmin(np.abs(roots - 0.3868j))].real


def oscillate(algorithm, kind="2", **options):
    file = place("oscillator_coupled", kind, [("algorithm: foh", "algorithm: " + algorithm),
                                              (", shadow: [zoh, eros]", "")])
    return run(file, *VARIABLES, **options)


COUPLED = ("one.x2", "one.v2", "two.x1", "two.v1")


def energies(checks):
    start = {"m1": 100, "k1": 10, "c1": .01, "m2": 1, "k2": 10, "c2": .01, "kc": 10, "cc": .01,
             "x1": 1, "v1": 0, "x2": 1, "v2": 0}
    r = run(fmu("lo_mono"), sets=start, step=1e-3, stop_time=500, interval=1)
    e = energy(r, ("x1", "v1", "x2", "v2"))
    checks.near("one FMU: energy after 500 s", REFERENCE[0], e[-1], 1e-8 * REFERENCE[0])
    for algorithm, want, rate in ROWS:
        r = oscillate(algorithm, stop_time=500, interval=1)
        e = energy(r, COUPLED)
        checks.near(f"{algorithm}: energy at the start", 10, e[0], 1e-12)
        checks.near(f"{algorithm}: energy after 500 s", want, e[-1], 1e-8 * want)
        checks.near(f"{algorithm}: growth rate", rate, growth(r["one.x2"]), 1e-9)
    for kind in KINDS[1:]:
        r = oscillate("foh", kind, stop_time=500, interval=1)
        checks.near(f"foh, FMI {kind}: energy after 500 s", ROWS[1][1],
                    energy(r, COUPLED)[-1], 1e-8 * ROWS[1][1])


def finer_units(checks):
    """The curve between two samples is what units with finer steps see."""
    r = oscillate("foh", stop_time=50, interval=1)
    want = energy(r, COUPLED)[-1]
    file = place("oscillator_coupled", "2", [(", shadow: [zoh, eros]", ""), ("step: 1 ms", "step: 0.25 ms"),
                                             ("delay: 3 ms", "delay: 3 ms, step: 1 ms")])
    r = run(file, *VARIABLES, stop_time=50, interval=1)
    checks.near("foh, units at 0.25 ms: energy after 50 s", want, energy(r, COUPLED)[-1],
                1e-6 * want)


if __name__ == "__main__":
    c = Checks("oscillator over a channel")
    energies(c)
    finer_units(c)
    c.end()
