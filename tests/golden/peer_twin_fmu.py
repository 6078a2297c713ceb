#!/usr/bin/env python3
"""The FMU of `cardan export twin` in FMPy: what `cardan twin run` gives.

FMI 2.0 and 3.0: FMPy's validation finds nothing; a run along a recording, a sensor that drops out,
a second run after a reset, states saved, restored, and serialised into another instance, longer
steps, and steps that do not fit.
"""

import os
import random
import shutil
import tempfile

import numpy as np
from fmpy import extract, read_model_description
from fmpy.fmi2 import FMU2Slave
from fmpy.fmi3 import FMU3Slave
from fmpy.validation import validate_fmu

from golden import TMP, Checks, cardan, parse

NETLIST = """two capacities in a row
.thermal
heat       q0 1 10
resistance r1 1 2 1
resistance r2 2 3 2
resistance r3 3 0 3
capacity   c1 2 0.1 start=-1
capacity   c2 3 0.2 start=1
.endthermal
.output T1=t(1) T2=t(2) T3=t(3)
.tran 0.001953125 2 uic
"""
TWINS = {
    "follow": "sources: { q0: { model: walk, noise: 1e-4, start: 5, sd: 10 } }\n",
    "find": "parameters: { r3: { start: 2, drift: 1e-7 } }\n",
}
STEP, STEPS = 2.0**-9, 600
OUTPUTS = ["T1", "T1.sd", "T2", "T3"]


def write(name, text):
    path = os.path.join(TMP, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def measure():
    """A simulation with noise; one sensor is missing for a while."""
    cardan("circuit", write("rc.cir", NETLIST), "-q", "-o", "truth.csv")
    truth, noise = parse(os.path.join(TMP, "truth.csv")), random.Random(5)
    rows = []
    for i, t in enumerate(truth["time"][:STEPS + 1]):
        y = [float(truth[n][i]) + noise.gauss(0, 0.5) for n in ("T2", "T3")]
        rows.append((float(t), y[0], float("nan") if 200 <= i < 300 else y[1]))
    write("test.csv", "time,T2,T3\n" + "".join(f"{t!r},{a!r},{b!r}\n" for t, a, b in rows))
    return rows[1:]


class Unit:
    """An instance in FMPy."""

    def __init__(self, path, version):
        self.md = read_model_description(path)
        self.version = version
        self.folder = extract(path, unzipdir=tempfile.mkdtemp(dir=TMP))
        self.reference = {v.name: v.valueReference for v in self.md.modelVariables}
        kind = FMU2Slave if version == 2 else FMU3Slave
        self.fmu = kind(guid=self.md.guid if version == 2 else self.md.instantiationToken,
                        unzipDirectory=self.folder, instanceName="unit",
                        modelIdentifier=self.md.coSimulation.modelIdentifier)
        self.fmu.instantiate()
        self.begin()

    def begin(self):
        if self.version == 2:
            self.fmu.setupExperiment(startTime=0.0)
            self.fmu.enterInitializationMode()
        else:
            self.fmu.enterInitializationMode(startTime=0.0)
        self.fmu.exitInitializationMode()
        self.t = 0.0

    def references(self, names):
        return [self.reference[n] for n in names]

    def status(self):
        get = self.fmu.getInteger if self.version == 2 else self.fmu.getInt32
        return list(get(self.references(["T2.status", "T3.status"])))

    def run(self, rows, h=STEP):
        out = []
        two = self.version == 2
        for _, *y in rows:
            (self.fmu.setReal if two else self.fmu.setFloat64)(
                self.references(["T2.measured", "T3.measured"]), y)
            self.fmu.doStep(currentCommunicationPoint=self.t, communicationStepSize=h)
            self.t += h
            out.append(list((self.fmu.getReal if two else self.fmu.getFloat64)(
                self.references(OUTPUTS))))
        return out

    def call(self, two, three, *arguments):
        return getattr(self.fmu, two if self.version == 2 else three)(*arguments)

    def end(self):
        self.fmu.freeInstance()
        shutil.rmtree(self.folder, ignore_errors=True)


def run_of(checks, name, version, rows, own):
    what = f"{name}, FMI {version}.0"
    path = os.path.join(TMP, f"{name}{version}.fmu")
    cardan("export", "twin", name + ".yaml", "--fmi", version, "-o", path)
    problems = validate_fmu(path)
    checks.true(f"{what}: FMPy's validation", not problems, "; ".join(problems))
    unit = Unit(path, version)
    checks.true(f"{what}: nothing is measured at first", unit.status() == [1, 1])
    found = np.array(unit.run(rows))
    for k, column in enumerate(OUTPUTS):
        expected = own[column] if column in own else (own["T1.high"] - own["T1.low"]) / 3.92
        checks.below(f"{what}: {column} is that of cardan twin run",
                     np.max(np.abs(found[:, k] - expected[:STEPS])), 1e-9)
    checks.true(f"{what}: all sensors are good", unit.status() == [0, 0])
    unit.fmu.reset()
    unit.begin()
    half = STEPS // 2
    unit.run(rows[:250])
    checks.true(f"{what}: the sensor that is missing is said", unit.status() == [0, 1])
    unit.run(rows[250:half])
    t, state = unit.t, unit.call("getFMUstate", "getFMUState")
    first = unit.run(rows[half:])
    checks.true(f"{what}: the same after a reset", np.array_equal(first, found[half:]))
    unit.call("setFMUstate", "setFMUState", state)
    unit.t = t
    checks.true(f"{what}: a restored state goes on as before",
                np.array_equal(unit.run(rows[half:]), found[half:]))
    data = unit.call("serializeFMUstate", "serializeFMUState", state)
    other = Unit(path, version)
    other.run(rows[:7])
    copy = other.call("deSerializeFMUstate", "deserializeFMUState", data)
    other.call("setFMUstate", "setFMUState", copy)
    other.t = t
    checks.true(f"{what}: a serialised state goes on in another instance",
                np.array_equal(other.run(rows[half:]), found[half:]), f"{len(data)} bytes")
    wide = Unit(path, version)
    last = wide.run(rows[3::4], 4 * STEP)[-1]
    checks.below(f"{what}: longer steps go to the same",
                 np.max(np.abs(np.array(last)[2:] - found[-1][2:])), 1.0)
    try:
        wide.run(rows[:1], 1.5 * STEP)
        refused = False
    except Exception:  # FMPy raises for every status but OK and warning
        refused = True
    checks.true(f"{what}: a step that does not fit is refused", refused)
    other.call("freeFMUstate", "freeFMUState", copy)
    unit.call("freeFMUstate", "freeFMUState", state)
    for u in (unit, other, wide):
        u.end()
    return found


def main():
    checks = Checks(__doc__)
    rows = measure()
    for name, unknown in TWINS.items():
        write(name + ".yaml", f"circuit: rc.cir\nstep: {STEP}\n"
              "sensors: { T2: { sd: 0.5 }, T3: { sd: 0.5 } }\n" + unknown)
        cardan("twin", "run", name + ".yaml", "-m", "test.csv", "-o", "own.csv")
        own = parse(os.path.join(TMP, "own.csv"))
        both = [run_of(checks, name, version, rows, own) for version in (2, 3)]
        checks.true(f"{name}: FMI 2.0 and 3.0 give the same", np.array_equal(*both))
    checks.end()


if __name__ == "__main__":
    main()
