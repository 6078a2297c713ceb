#!/usr/bin/env python3
"""The experiment of Baumann 2024, recomputed from what it has recorded: golden_experiment.py EXAMPLES

Errors, peaks and energies of all runs from their CSV files; estimates of ZOH, FOH, EROS, the optimal
algorithm and the networks from the torque that was sent, by the published formulas; and the closed loop
without noise by another program with another integrator at a tenth of the step, against the FMUs.
"""
import json
import math
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "golden"))
os.environ["CARDAN_SYSTEMS"] = sys.argv[1]
import golden
import numpy as np
from golden import Checks

K, DT = 6, 0.01
checks = Checks("the experiment of Baumann 2024")
folder = os.path.join(golden.TMP, "experiment")
told = json.loads(golden.cardan("bench", "experiment", "--json", "-o", folder).stdout)
runs = {r["id"]: r for r in told["runs"]}
series = {name: golden.parse(os.path.join(folder, name + ".csv")) for name in runs}


# ---- tables

for name, run in runs.items():
    s = series[name]
    t, y, e = s["time [s]"], s["sent [N.m]"], s["received [N.m]"]
    yy, ee, ye = y @ y, e @ e, y @ e
    magnitude = math.sqrt(yy / ee) - 1
    phase = math.acos(min(ye / math.sqrt(yy * ee), 1)) / math.pi
    if name != "ideal":
        checks.near(f"{name}: 100 M", 100 * magnitude, run["M"], 1e-9)
        checks.near(f"{name}: 100 P", 100 * phase, run["P"], 1e-9)
        checks.near(f"{name}: 100 C", 100 * math.hypot(magnitude, phase), run["C"], 1e-9)
    before = np.argmax(e[t < 3.2])
    checks.near(f"{name}: peak", t[before], run["peak"], DT / 2)
    # The torque is held over a step (FOH and EROS go on), the speed is a line.
    w = s["shaft_speed [rad/s]"]
    energy = DT * np.sum(e[:-1] * (w[:-1] + w[1:]) / 2) + DT * e[-1] * w[-1]
    checks.near(f"{name}: energy", 1, run["energy"] / energy, 2e-3)

zoh, ideal = runs["zoh"], runs["ideal"]
for name in ("optimal", "trained", "least-squares", "auto"):
    checks.true(f"{name}: energy nearer to the ideal coupling's than that of ZOH",
                abs(runs[name]["energy"] - ideal["energy"]) < abs(zoh["energy"] - ideal["energy"]))
for name, most in (("optimal", -35), ("trained", -40), ("least-squares", -40), ("auto", -40)):
    checks.true(f"{name}: C against ZOH {runs[name]['change']:.1f} %, at most {most} %",
                100 * (runs[name]["C"] / zoh["C"] - 1) <= most)

# ---- estimates at macro points


def past(y, taps):
    """Rows n >= K + taps: the newest sample that has arrived, the one before ..."""
    n = np.arange(K + taps, len(y))
    return n, np.stack([y[n - K - i] for i in range(taps)], axis=1)


def eros():
    slope = np.zeros(K + 3)
    g = (K + 2) / (K + 1)
    for i, x in ((0, g), (1, -1), (K + 1, -g), (K + 2, 1)):
        slope[i] += x
    a = K * slope
    a[0] += 1
    return a


def network(n):
    def leaky(x):
        return np.where(x < 0, n["alpha"] * x, x)
    W1, W2 = np.array(n["W1"]), np.array(n["W2"])
    return lambda y: leaky((y @ W1.T + n["b1"]) @ W2.T + n["b2"]) @ np.array(n["W3"]) + n["b3"]


linear = {"zoh": np.array([1.0]), "foh": np.array([K + 1.0, -K]), "eros": eros(),
          "optimal": np.array(json.loads(runs["optimal"]["element"])["weights"]["a"])}
for name, a in linear.items():
    y, e = series[name]["sent [N.m]"], series[name]["received [N.m]"]
    n, x = past(y, len(a))
    checks.near(f"{name}: estimates", 0, np.max(np.abs(x @ a - e[n])), 1e-8)
for name in ("trained", "least-squares"):
    y, e = series[name]["sent [N.m]"], series[name]["received [N.m]"]
    n, x = past(y, 9)
    f = network(json.loads(runs[name]["element"])["network"])
    checks.near(f"{name}: estimates", 0, np.max(np.abs(f(x) - e[n])), 1e-8)

# ---- the closed loop, by another program

PLAN = [0, 0.5, 2.9, 5.0, 6.4, 8.6, 11.0, 12.1, 14.0, 14.8, 16.4, 16.9, 18.0]


def smooth(x):
    x = min(max(x, 0.0), 1.0)
    return x * x * (3 - 2 * x)


def simulate(h=5e-5):
    """ZOH with six steps of latency, no noise, no unsteadiness: torque that left the bed, each 10 ms.

    Euler at 50 us, the low-pass of the measurement too, which the bed samples at 1 kHz."""
    throttle = air = torque = low = rate = 0.0
    w = reference = slow = 90.0
    dyno = integral = 0.005 * w
    v = turn = twist = angle = urge = force = machine = 0.0
    speed_ref, request, limit, given = 90.0, 0.0, 400.0, 0.0
    sent = []
    ratio, speed, wish, top = 10.5, 90.0, 0.0, 400.0
    per = round(DT / h)
    for n in range(1200):
        sent.append(low)
        speed_ref, request, limit = speed, wish, top  # exchanged at macro points
        given = sent[n - K] if n >= K else 0.0
        for i in range(per):
            t = (n * per + i) * h
            # the bed
            throttle += h / 0.03 * (min(max(request, 0), 400) - throttle)
            air += h / 0.05 * (throttle - air)
            slow += h / 0.1 * (w - slow)
            most = min(max(limit, 0), 400)
            torque += h / 0.02 * (min(max(min(air, most) - 0.45 * (w - slow), 0), most) - torque)
            change = (speed_ref - reference) / 0.015
            reference += h * change
            band = 1 / (3 * 4e-3)
            miss = reference - w
            dyno += h / 4e-3 * (band * miss + integral + change - dyno)
            integral += h * band * band / 3 * miss
            w += h * (torque + dyno - 0.005 * w)
            acceleration = (3 * (torque - low) - 3 * 0.01 * rate) / 1e-4
            rate += h * acceleration
            low += h * rate
            # the car
            since = max(t - 0.4, 0)
            k = min(int(since), 11)
            a = PLAN[k + 1] - PLAN[k] if t >= 0.4 else 0.0
            e = PLAN[k] + a * (since - k) - v
            closed = 1 - smooth((t - 3.2) / 0.15) + smooth((t - 3.5) / 0.3)
            ratio = 10.5 + (7.2 - 10.5) * smooth((t - 3.35) / 0.15)
            if closed > 0.99 and t > 0.4:
                urge += h * 4000 * e
            drag = v * (1.6 + 0.40 * v)
            want = 1900 * a + 165 + drag + 8500 * e + urge if t >= 0.4 else 0.0
            force += h / 0.1 * (want - force)
            total = max(force, 0) * 0.33 / (ratio * 0.95)
            share = min(max(0.15 * total, 0), 50)
            machine += h / 0.03 * (share - machine)
            wish = min(max(total - share, 0), 400)
            shaft = 15e3 * twist * (1 + 0.2 * math.sin(angle)) + 40 * (turn - v / 0.33)
            turn += h * (closed * ratio * 0.95 * (given + machine) - shaft) / (0.3 * ratio * ratio + 1)
            v = max(v + h * (shaft / 0.33 - (165 + max(-force, 0)) * math.tanh(v / 0.05) - drag) / 1900, 0)
            twist += h * (turn - v / 0.33)
            angle += h * v / 0.33
            free = ratio * max(turn, 0)
            speed = free + 90 * math.exp(-free / 90)
            top = closed * wish if closed < 1 else 400.0
    return np.array(sent)


system = golden.place("zoh")
out = os.path.join(golden.TMP, "zoh.csv")
golden.cardan("run", system, "-q", "-o", out, "--variables", "bed.torque", "--set", "bed.noise=0",
              "--set", "bed.resolution=0", "--set", "car.unsteadiness=0")
ours = golden.parse(out)["bed.torque"][:1200]
other = simulate()
# First-order integrators at 500 us and at 50 us: they differ by what the coarser one misses.
size = math.sqrt(np.mean(other ** 2))
checks.below("closed loop without noise: difference, part of the torque",
             math.sqrt(np.mean((ours - other) ** 2)) / size, 5e-3)
change = [100 * math.acos(y[K:] @ y[:-K] / math.sqrt(y[K:] @ y[K:] * (y[:-K] @ y[:-K]))) / math.pi
          for y in (ours, other)]
checks.near("closed loop without noise: 100 P of ZOH", change[1], change[0], 0.05)
checks.end()
