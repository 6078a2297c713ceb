#!/usr/bin/env python3
"""FMUs of FMI 1.0 from the tests, by `cardan run` and by FMPy, against closed forms.

  slave   Co-Simulation: x' = -2 x + u from x = 1, solved exactly over each step with a held input, so
          that FMPy and Cardan can differ by rounding only: x = u/2 + (1 - u/2) exp(-2 t)
  ball    Model Exchange: free fall between impacts at known times, from 1 m with e = 0.7; at rest below 0.05 m/s

The argument is the folder with both, unpacked.

Tolerances. Co-Simulation: 1e-12, rounding of 100 steps. Model Exchange with rtol = 1e-8: 50 rtol, as
in peer_me.py; rows within a step of an impact are compared at their own time by the closed form,
which is continuous in the height. FMPy does not know negated aliases: they are compared with the closed form alone.
"""

import os
import sys
import zipfile

import numpy as np
from fmpy import simulate_fmu

from golden import TMP, Checks, cardan, run


def pack(folder):
    path = os.path.join(TMP, os.path.basename(folder) + ".fmu")
    with zipfile.ZipFile(path, "w") as z:
        for base, _, files in os.walk(folder):
            for name in files:
                full = os.path.join(base, name)
                z.write(full, os.path.relpath(full, folder))
    return path


def ball(t, g=9.81, e=0.7, rest=0.05):
    hit = np.sqrt(2 / g)
    v = g * hit
    out = np.where(t < hit, 1 - g / 2 * t**2, 0.0)
    while True:
        v *= e
        if v < rest:
            return out
        tau = t - hit
        hit += 2 * v / g
        out = np.where((tau >= 0) & (t < hit), (v - g / 2 * tau) * tau, out)


def main():
    folder = sys.argv[1]
    checks = Checks(__doc__)
    slave, me = (pack(os.path.join(folder, name)) for name in ("slave", "ball"))

    names = ["x", "minus_x", "y", "steps", "minus_steps", "m"]
    ours = run(slave, *[a for n in names for a in ("--variables", n)], sets={"u": 3, "n": 4}, stop_time=2,
               step=0.02)
    theirs = simulate_fmu(slave, stop_time=2, output_interval=0.02, output=["x", "y", "steps", "m"],
                          start_values={"u": 3, "n": 4})
    t = ours["time"]
    exact = 1.5 - 0.5 * np.exp(-2 * t)
    checks.near("slave: rows", len(t), len(theirs["time"]), 0)
    checks.below("slave: x", np.max(np.abs(ours["x"] - exact)), 1e-12)
    checks.below("slave: negated alias", np.max(np.abs(ours["minus_x"] + exact)), 1e-12)
    for name in ("x", "y", "steps", "m"):
        checks.below(f"slave: {name} of FMPy", np.max(np.abs(ours[name] - theirs[name])), 1e-12)
    checks.below("slave: steps", np.max(np.abs(ours["steps"] + ours["minus_steps"])), 0)

    ours = run(me, "--variables", "h", "--variables", "depth", "--variables", "bounces", stop_time=2, step=0.01,
               tolerance=1e-8)
    theirs = simulate_fmu(me, stop_time=2, output_interval=0.01, output=["h", "bounces"],
                          relative_tolerance=1e-8, record_events=False)
    exact = ball(ours["time"])
    checks.below("ball: h", np.max(np.abs(ours["h"] - exact)), 50e-8)
    checks.below("ball: negated alias", np.max(np.abs(ours["h"] + ours["depth"])), 0)
    checks.below("ball: h of FMPy", np.max(np.abs(ball(theirs["time"]) - theirs["h"])), 50e-8)
    checks.near("ball: bounces of FMPy", ours["bounces"][-1], theirs["bounces"][-1], 0)

    # the ball drives the slave: initialised in the order of the values
    with open(os.path.join(TMP, "both.yaml"), "w", encoding="utf-8") as f:
        f.write("cardan: 1\nunits:\n  s: { fmu: slave.fmu }\n  b: { fmu: ball.fmu }\n"
                "connections:\n  - { from: b.h, to: s.u, predict: hold }\nrun: { step: 10 ms, stop: 1 s }\n")
    names = [a for n in ("s.x", "s.y", "b.h") for a in ("--variables", n)]
    both = run(os.path.join(TMP, "both.yaml"), *names)
    checks.near("system: y follows h at the start", both["s.y"][0], 2, 1e-12)
    x = 1.0
    worst = 0.0
    for n in range(len(both["time"]) - 1):
        u = both["b.h"][n]
        x = u / 2 + (x - u / 2) * np.exp(-0.02)
        worst = max(worst, abs(x - both["s.x"][n + 1]))
    checks.below("system: x from held h", worst, 1e-12)

    with open(os.path.join(TMP, "twice.yaml"), "w", encoding="utf-8") as f:
        f.write("cardan: 1\nunits:\n  s: { fmu: slave.fmu }\n  b: { fmu: ball.fmu }\n"
                "connections:\n  - b.h -> s.u\n  - b.v -> s.minus_u\nrun: { step: 10 ms, stop: 1 s }\n")
    said = cardan("check", "twice.yaml", code=2).stderr
    checks.true("an input and its negated alias cannot both be driven", "one input with opposite signs" in said)
    checks.end()


if __name__ == "__main__":
    main()
