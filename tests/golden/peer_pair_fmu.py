#!/usr/bin/env python3
"""Two sides of a wave pair as FMUs in FMPy: a stiff shaft over a late and lossy link.

The plants are written here, an engine (0.25 kg.m2) that owns the flow and a spring, damper and load
that own the effort; so is the network, and the undelayed shaft to compare with. One side is of FMI
2.0, the other of FMI 3.0. Limits are the medians of drive trains in docs/explanation/pairs.md's prototype, calm
and over a bad network. The energy at both ports is worked out here, too: what the pair creates is
at most what its sides call their debt.
"""

import math
import os
import random
import tempfile

from fmpy import extract, read_model_description
from fmpy.fmi2 import FMU2Slave
from fmpy.fmi3 import FMU3Slave
from fmpy.validation import validate_fmu

from golden import TMP, Checks, cardan

h, H, STOP = 1e-3, 10, 12.0  # inner step, inner steps of a macro step, end
PACKET = ("run", "number", "time", "effort", "flow", "effort_sum", "flow_sum", "granted",
          "impedance", "echo")
J, LOAD, C, D = 0.25, 2.0, 60.0, 3.0


def drive(t):
    return 30 + 20 * math.sin(1.3 * t) + 6 * math.sin(5.1 * t)


def drag(w):
    return 0.02 * w * abs(w) + 8 * math.tanh(20 * w)


class Engine:
    """J w' = drive - e, by Euler's method in steps of 50 us."""

    def __init__(self):
        self.w, self.mean = 0.0, 0.0

    def own(self):
        return self.w

    def step(self, t, effort):
        total = 0.0
        for i in range(20):
            before = self.w
            self.w += h / 20 * (drive(t + (i + 0.5) * h / 20) - effort) / J
            total += 0.5 * (before + self.w)
        self.mean = total / 20


class Load:
    """e = C twist + D (f - w), LOAD w' = e - drag."""

    def __init__(self):
        self.w = self.twist = self.flow = self.mean = 0.0

    def own(self):
        return C * self.twist + D * (self.flow - self.w)

    def step(self, t, flow):
        self.flow, total = flow, 0.0
        for _ in range(20):
            e = self.own()
            total += e
            self.w += h / 20 * (e - drag(self.w)) / LOAD
            self.twist += h / 20 * (flow - self.w)
        self.mean = total / 20


def undelayed():
    """The speed of the engine at macro steps, Heun's method at 10 us."""
    x, out, small = [0.0, 0.0, 0.0], [], 1e-5

    def slope(t, y):
        r = C * y[2] + D * (y[0] - y[1])
        return [(drive(t) - r) / J, (r - drag(y[1])) / LOAD, y[0] - y[1]]

    for n in range(int(round(STOP / small))):
        if n % 1000 == 0:
            out.append(x[0])
        a = slope(n * small, x)
        b = slope((n + 1) * small, [x[i] + small * a[i] for i in range(3)])
        x = [x[i] + 0.5 * small * (a[i] + b[i]) for i in range(3)]
    return out


class Side:
    def __init__(self, path, version, impedance):
        md = read_model_description(path)
        at = {v.name: v.valueReference for v in md.modelVariables}
        kind = FMU2Slave if version == 2 else FMU3Slave
        self.fmu = kind(guid=md.guid if version == 2 else md.instantiationToken,
                        unzipDirectory=extract(path, unzipdir=tempfile.mkdtemp(dir=TMP)),
                        instanceName="side", modelIdentifier=md.coSimulation.modelIdentifier)
        self.fmu.instantiate()
        self.put = self.fmu.setReal if version == 2 else self.fmu.setFloat64
        self.read = self.fmu.getReal if version == 2 else self.fmu.getFloat64
        self.own, self.mean, self.action = [at["own"]], [at["own"], at["mean"]], [at["action"]]
        self.far = [at["far." + n] for n in PACKET]
        self.packet = [at["packet." + n] for n in PACKET]
        self.debt = [at["debt"]]
        self.put([at["impedance"]], [impedance])
        if version == 2:
            self.fmu.setupExperiment(startTime=0.0)
            self.fmu.enterInitializationMode()
        else:
            self.fmu.enterInitializationMode(startTime=0.0)
        self.fmu.exitInitializationMode()

    def act(self, own, mean):
        self.put(self.mean, [own, mean])
        return self.read(self.action)[0]

    def end(self):
        self.fmu.terminate()
        self.fmu.freeInstance()


class Link:
    def __init__(self, delay, jitter, loss, seed):
        self.delay, self.jitter, self.loss = delay, jitter, loss
        self.random, self.flights = random.Random(seed), []

    def send(self, t, values):
        if self.random.random() >= self.loss:
            self.flights.append((t + self.delay + self.jitter * self.random.random(), values))

    def due(self, t):
        here = [v for at, v in self.flights if at <= t + 1e-9]
        self.flights = [f for f in self.flights if f[0] > t + 1e-9]
        return here


def run_pair(fmus, delay, jitter, loss):
    """Speeds at macro steps, energies created, largest stored, debts."""
    tau = delay + 0.5 * jitter + h * H
    b = 1 / (1 / math.sqrt(C * math.sqrt(J * LOAD)) + tau / LOAD)
    sides = [Side(fmus[0], 2, b), Side(fmus[1], 3, b)]
    plants = [Engine(), Load()]
    links = [Link(delay, jitter, loss, 1), Link(delay, jitter, loss, 2)]
    speeds, given, most, number = [], 0.0, 0.0, [0, 0]
    means = [math.nan, math.nan]
    for n in range(int(round(STOP / h))):
        t = n * h
        actions = []
        if n % H == 0:
            speeds.append(plants[0].w)
            for i in range(2):
                here = links[1 - i].due(t)
                if here:  # the newest has all in it
                    sides[i].put(sides[i].far, max(here, key=lambda packet: packet[1]))
        for i in range(2):
            actions.append(sides[i].act(plants[i].own(), means[i]))
            packet = list(sides[i].read(sides[i].packet))
            if packet[1] > number[i]:
                number[i] = packet[1]
                links[i].send(t, packet)
        for i in range(2):
            plants[i].step(t, actions[i])
            sides[i].fmu.doStep(currentCommunicationPoint=t, communicationStepSize=h)
            means[i] = plants[i].mean
        # into the engine: -e f, into the load: e f
        given += h * (plants[1].mean * actions[1] - actions[0] * plants[0].mean)
        most = max(most, 0.5 * J * plants[0].w ** 2 + 0.5 * LOAD * plants[1].w ** 2
                   + 0.5 * C * plants[1].twist ** 2)
    debts = sum(s.read(s.debt)[0] for s in sides)
    for s in sides:
        s.end()
    return speeds, given, most, debts


def main():
    checks = Checks("two sides of a pair as FMUs in FMPy")
    fmus = [os.path.join(TMP, "engine_side.fmu"), os.path.join(TMP, "load_side.fmu")]
    cardan("export", "coupling", "pair-flow", "--step", "1ms", "-o", fmus[0])
    cardan("export", "coupling", "pair-effort", "--step", "1ms", "--fmi", "3", "-o", fmus[1])
    for path in fmus:
        problems = validate_fmu(path)
        checks.true(f"{os.path.basename(path)} is valid", not problems, str(problems)[:200])
    want = undelayed()
    span = max(want) - min(want)
    for delay, jitter, loss, limit in ((0.01, 0, 0, 0.0196), (0.06, 0, 0, 0.0506),
                                       (0.06, 0.05, 0.1, 0.078), (0.2, 0, 0, 0.15)):
        speeds, created, most, debts = run_pair(fmus, delay, jitter, loss)
        error = math.sqrt(sum((a - b) ** 2 for a, b in zip(speeds, want)) / len(want)) / span
        label = f"{1e3 * delay:g} ms, jitter {1e3 * jitter:g} ms, loss {loss:g}"
        checks.true(f"{label}: error {100 * error:.2f} %", error < limit, f"limit {limit}")
        checks.true(f"{label}: created {created:.3g} J, debts {debts:.3g} J",
                    created <= debts + 1e-6 * most and debts < 0.02 * most, f"stored {most:.3g} J")
    checks.end()


if __name__ == "__main__":
    main()
