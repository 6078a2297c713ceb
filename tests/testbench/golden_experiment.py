#!/usr/bin/env python3
"""The experiment of Baumann 2024, recomputed from what it has recorded: golden_experiment.py EXAMPLES

Both plants: errors, peaks and energies of all runs from their CSV files; estimates of ZOH, FOH, EROS, the
optimal algorithm, the networks and FOH with switching (both readings of the detection) from the torque that
was sent, by the published formulas; and the closed loop without noise by another program with another
integrator at a tenth of the step, against the FMUs.
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


def past(y, taps):
    """Rows n >= K + taps: the newest sample that has arrived, the one before ..."""
    n = np.arange(K + taps, len(y))
    return n, np.stack([y[n - K - i] for i in range(taps)], axis=1)


def jumps(y, first_bin):
    """Eq. 38 to 42 with N = 8 and the bins first_bin to 4: is the sample a discontinuity?"""
    window = 0.5 * (1 - np.cos(np.pi * np.arange(1, 9) / 8))
    total = [np.abs(np.fft.rfft(window * (y[n - 7:n + 1] - y[n])))[first_bin:].sum()
             for n in range(7, len(y))]
    found = np.zeros(len(y), dtype=bool)
    found[8:] = np.array(total[1:]) > 5 * np.array(total[:-1])
    return found


def check_tables(plant, runs, series):
    for name, run in runs.items():
        s = series[name]
        t, y, e = s["time [s]"], s["sent [N.m]"], s["received [N.m]"]
        yy, ee, ye = y @ y, e @ e, y @ e
        magnitude = math.sqrt(yy / ee) - 1
        phase = math.acos(min(ye / math.sqrt(yy * ee), 1)) / math.pi
        label = f"{plant}, {name}"
        if name != "ideal":
            checks.near(f"{label}: 100 M", 100 * magnitude, run["M"], 1e-9)
            checks.near(f"{label}: 100 P", 100 * phase, run["P"], 1e-9)
            checks.near(f"{label}: 100 C", 100 * math.hypot(magnitude, phase), run["C"], 1e-9)
        before = np.argmax(e[t < 3.2])
        checks.near(f"{label}: peak", t[before], run["peak"], DT / 2)
        # The torque is held over a step (FOH and EROS go on), the speed is a line.
        w = s["shaft_speed [rad/s]"]
        energy = DT * np.sum(e[:-1] * (w[:-1] + w[1:]) / 2) + DT * e[-1] * w[-1]
        checks.near(f"{label}: energy", 1, run["energy"] / energy, 2e-3)


def check_estimates(plant, runs, series):
    """At macro points."""
    linear = {"zoh": np.array([1.0]), "foh": np.array([K + 1.0, -K]), "eros": eros(),
              "optimal": np.array(json.loads(runs["optimal"]["element"])["weights"]["a"])}
    for name, a in linear.items():
        y, e = series[name]["sent [N.m]"], series[name]["received [N.m]"]
        n, x = past(y, len(a))
        checks.near(f"{plant}, {name}: estimates", 0, np.max(np.abs(x @ a - e[n])), 1e-8)
    for name in ("trained", "least-squares"):
        y, e = series[name]["sent [N.m]"], series[name]["received [N.m]"]
        n, x = past(y, 9)
        f = network(json.loads(runs[name]["element"])["network"])
        checks.near(f"{plant}, {name}: estimates", 0, np.max(np.abs(f(x) - e[n])), 1e-8)
    for name, first_bin in (("foh-switch", 1), ("foh-switch-above", 2)):
        y, e = series[name]["sent [N.m]"], series[name]["received [N.m]"]
        n, x = past(y, 2)
        found = jumps(y, first_bin)[n - K]
        said = np.where(found, x[:, 0], x @ linear["foh"])  # the sample before it is not used
        checks.near(f"{plant}, {name}: estimates", 0, np.max(np.abs(said - e[n])), 1e-8)
        checks.near(f"{plant}, {name}: discontinuities", np.sum(found), runs[name]["jumps"], 0)


for plant in ("edges", "smooth"):
    folder = os.path.join(golden.TMP, plant)
    told = json.loads(golden.cardan("bench", "experiment", "--plant", plant, "--json", "-o", folder).stdout)
    runs = {r["id"]: r for r in told["runs"]}
    series = {name: golden.parse(os.path.join(folder, name + ".csv")) for name in runs}
    check_tables(plant, runs, series)
    check_estimates(plant, runs, series)

# ---- the closed loop, by another program

# The defaults of the models have to be those of the first.
EDGES = {"bed.t_throttle": 0.019, "bed.t_air": 0.125, "bed.t_fast": 0.0105, "bed.damping": 0.02,
         "bed.filter_delay": 0.0035, "car.stiffness": 9900, "car.damping": 32, "car.uneven": 0.15,
         "car.kp": 19700, "car.ki": 8200, "car.t_foot": 0.055, "car.machine_share": 0.15,
         "car.inertia": 0.39, "car.ratio1": 10.5, "car.ratio2": 7.2, "car.launch_speed": 90,
         "car.pace": 1.31, "car.roughness": 1.16, "car.begin": 0.4, "car.shift_down": 0.01,
         "car.shift_open": 0.103, "car.shift_up": 0.084}
SMOOTH = {"bed.t_throttle": 0.03, "bed.t_air": 0.05, "bed.t_fast": 0.02, "bed.damping": 0.45,
          "bed.filter_delay": 0.01, "car.stiffness": 15000, "car.damping": 40, "car.uneven": 0.2,
          "car.kp": 8500, "car.ki": 4000, "car.t_foot": 0.1, "car.inertia": 0.3, "car.pace": 1,
          "car.roughness": 1, "car.shift_down": 0.15, "car.shift_open": 0.15, "car.shift_up": 0.3}
PLAN = [0, 0.5, 2.9, 5.0, 6.4, 8.6, 11.0, 12.1, 14.0, 14.8, 16.4, 16.9, 18.0]


def smooth(x):
    x = min(max(x, 0.0), 1.0)
    return x * x * (3 - 2 * x)


def simulate(p, h=5e-5):
    """ZOH with six steps of latency, no noise, no unsteadiness: torque that left the bed, each 10 ms.

    Euler at 50 us, the low-pass of the measurement too, which the bed samples at 1 kHz."""
    throttle = air = torque = low = rate = 0.0
    idle = p["car.launch_speed"]
    w = reference = slow = 90.0
    dyno = integral = 0.005 * w
    v = turn = twist = angle = urge = force = machine = 0.0
    speed_ref, request, limit, given = 90.0, 0.0, 400.0, 0.0
    sent = []
    first, second = p["car.ratio1"], p["car.ratio2"]
    ratio, speed, wish, top = first, idle, 0.0, 400.0
    open_at = 3.2 + p["car.shift_down"]
    close_at = open_at + p["car.shift_open"]
    plan = [p["car.pace"] * (even + p["car.roughness"] * (x - even))
            for x, even in ((x, i * (1.8886 - 0.0289 * i)) for i, x in enumerate(PLAN))]
    begin, delay = p["car.begin"], p["bed.filter_delay"]
    per = round(DT / h)
    for n in range(1200):
        sent.append(low)
        speed_ref, request, limit = speed, wish, top  # exchanged at macro points
        given = sent[n - K] if n >= K else 0.0
        for i in range(per):
            t = (n * per + i) * h
            # the bed
            throttle += h / p["bed.t_throttle"] * (min(max(request, 0), 400) - throttle)
            air += h / p["bed.t_air"] * (throttle - air)
            slow += h / 0.1 * (w - slow)
            most = min(max(limit, 0), 400)
            target = min(max(min(air, most) - p["bed.damping"] * (w - slow), 0), most)
            torque += h / p["bed.t_fast"] * (target - torque)
            change = (speed_ref - reference) / 0.015
            reference += h * change
            band = 1 / (3 * 4e-3)
            miss = reference - w
            dyno += h / 4e-3 * (band * miss + integral + change - dyno)
            integral += h * band * band / 3 * miss
            w += h * (torque + dyno - 0.005 * w)
            acceleration = (3 * (torque - low) - 3 * delay * rate) / delay**2
            rate += h * acceleration
            low += h * rate
            # the car
            since = max(t - begin, 0)
            k = min(int(since), 11)
            a = plan[k + 1] - plan[k] if t >= begin else 0.0
            e = plan[k] + a * (since - k) - v
            closed = 1 - smooth((t - 3.2) / p["car.shift_down"]) + smooth((t - close_at) / p["car.shift_up"])
            ratio = first + (second - first) * smooth((t - open_at) / p["car.shift_open"])
            if closed > 0.99 and t > begin:
                urge += h * p["car.ki"] * e
            drag = v * (1.6 + 0.40 * v)
            want = 1900 * a + 165 + drag + p["car.kp"] * e + urge if t >= begin else 0.0
            force += h / p["car.t_foot"] * (want - force)
            total = max(force, 0) * 0.33 / (ratio * 0.95)
            share = min(max(p["car.machine_share"] * total, 0), 50)
            machine += h / 0.03 * (share - machine)
            wish = min(max(total - share, 0), 400)
            shaft = p["car.stiffness"] * twist * (1 + p["car.uneven"] * math.sin(angle))
            shaft += p["car.damping"] * (turn - v / 0.33)
            turn += h * (closed * ratio * 0.95 * (given + machine) - shaft) / (p["car.inertia"] * ratio * ratio + 1)
            v = max(v + h * (shaft / 0.33 - (165 + max(-force, 0)) * math.tanh(v / 0.05) - drag) / 1900, 0)
            twist += h * (turn - v / 0.33)
            angle += h * v / 0.33
            free = ratio * max(turn, 0)
            speed = free + idle * math.exp(-free / idle)
            top = closed * wish if closed < 1 else 400.0
    return np.array(sent)


system = golden.place("zoh")
for plant, parameters in (("edges", EDGES), ("smooth", {**EDGES, **SMOOTH})):
    sets = {**parameters, "bed.noise": 0, "bed.resolution": 0, "car.unsteadiness": 0}
    if plant == "edges":
        sets = {name: x for name, x in sets.items() if x == 0}
    out = os.path.join(golden.TMP, "zoh.csv")
    golden.cardan("run", system, "-q", "-o", out, "--variables", "bed.torque",
                  *(f"--set={name}={x}" for name, x in sets.items()))
    ours = golden.parse(out)["bed.torque"][:1200]
    other = simulate(parameters)
    # First-order integrators at 500 us and at 50 us: they differ by what the coarser one misses.
    size = math.sqrt(np.mean(other ** 2))
    checks.below(f"{plant}, closed loop without noise: difference, part of the torque",
                 math.sqrt(np.mean((ours - other) ** 2)) / size, 5e-3)
    change = [100 * math.acos(y[K:] @ y[:-K] / math.sqrt(y[K:] @ y[K:] * (y[:-K] @ y[:-K]))) / math.pi
              for y in (ours, other)]
    checks.near(f"{plant}, closed loop without noise: 100 P of ZOH", change[1], change[0], 0.05)
checks.end()
