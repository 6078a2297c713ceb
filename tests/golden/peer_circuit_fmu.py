#!/usr/bin/env python3
"""The FMU of `cardan export circuit` in FMPy: what `cardan circuit` gives, bit for bit.

peer_circuit_fmu.py CC: a C compiler. FMI 2.0 and 3.0: FMPy's validation finds nothing; runs, other
parameters, a second run after a reset, instances side by side, states saved, restored, and serialised
into another instance, derivatives of outputs and inputs, the FMU built from its own sources (with --all also that of FMI
2.0).
"""

import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
import zipfile
from ctypes import c_double, c_int32, c_uint32

import numpy as np
from fmpy import extract, read_model_description, simulate_fmu
from fmpy.fmi2 import FMU2Slave
from fmpy.fmi3 import FMU3Slave
from fmpy.validation import validate_fmu

from golden import ALL, HERE, TMP, Checks, cardan, parse

CC = sys.argv[1]
DATA = os.path.join(HERE, "..", "circuit", "data")
# A diode, a switch, an inductor, an input, and times without rounding
BOOST = """step-up converter
.param l=1m duty=0.5 ron={10m}
.input load unit=A start=0.5
Vin in 0 12
L1 in sw {l} ic=0
S1 sw 0 gate 0 sm
D1 sw out dd
C1 out 0 100u ic=12
I1 out 0 input(load)
Vg gate 0 pulse(0 1 0 1u 1u {duty*128u} 128u)
.model sm sw(vt=0.5 ron={ron} roff=1meg)
.model dd d(is=1e-12)
.tran 0.0000009765625 0.002 uic
.output v(out) i(L1) p={v(out)*load} unit=W
"""
STEP, STOP = 2.0**-17, 2.0**-9
OUTPUTS = ["v(out)", "i(L1)", "p"]


def write(name, text):
    path = os.path.join(TMP, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def export(netlist, version, *options, name="model"):
    path = os.path.join(TMP, f"{name}{version}.fmu")
    cardan("export", "circuit", netlist, "--fmi", version, "-o", path, "--name", name, *options)
    return path


class Unit:
    """An instance in FMPy."""

    def __init__(self, path, version, **parameters):
        self.md = read_model_description(path)
        self.version = version
        self.folder = extract(path, unzipdir=tempfile.mkdtemp(dir=TMP))
        self.reference = {v.name: v.valueReference for v in self.md.modelVariables}
        kind = FMU2Slave if version == 2 else FMU3Slave
        self.fmu = kind(guid=self.md.guid if version == 2 else self.md.instantiationToken,
                        unzipDirectory=self.folder, instanceName="unit",
                        modelIdentifier=self.md.coSimulation.modelIdentifier)
        self.fmu.instantiate()
        self.parameters = parameters
        self.begin()

    def begin(self):
        for name, value in self.parameters.items():
            self.set(name, value)
        if self.version == 2:
            self.fmu.setupExperiment(startTime=0.0)
            self.fmu.enterInitializationMode()
        else:
            self.fmu.enterInitializationMode(startTime=0.0)
        self.fmu.exitInitializationMode()
        self.t = 0.0

    def set(self, name, value):
        (self.fmu.setReal if self.version == 2 else self.fmu.setFloat64)(
            [self.reference[name]], [value])

    def get(self, names):
        return (self.fmu.getReal if self.version == 2 else self.fmu.getFloat64)(
            [self.reference[n] for n in names])

    def slope(self, name):
        reference, order, value = c_uint32(self.reference[name]), c_int32(1), c_double()
        if self.version == 2:
            self.fmu.fmi2GetRealOutputDerivatives(self.fmu.component, reference, 1, order, value)
        else:
            self.fmu.fmi3GetOutputDerivatives(self.fmu.component, reference, 1, order, value, 1)
        return value.value

    def step(self, h=STEP):
        self.fmu.doStep(currentCommunicationPoint=self.t, communicationStepSize=h)
        self.t += h

    def run(self, steps, load=None):
        out = []
        for i in range(steps):
            if load:
                self.set("load", load(i))
            self.step()
            out.append(self.get(OUTPUTS))
        return out

    def save(self):
        return self.fmu.getFMUstate() if self.version == 2 else self.fmu.getFMUState()

    def restore(self, state, t):
        (self.fmu.setFMUstate if self.version == 2 else self.fmu.setFMUState)(state)
        self.t = t

    def free(self, state):
        (self.fmu.freeFMUstate if self.version == 2 else self.fmu.freeFMUState)(state)

    def to_bytes(self, state):
        return (self.fmu.serializeFMUstate if self.version == 2
                else self.fmu.serializeFMUState)(state)

    def from_bytes(self, data):
        return (self.fmu.deSerializeFMUstate if self.version == 2
                else self.fmu.deserializeFMUState)(data)

    def end(self):
        self.fmu.terminate()
        self.fmu.freeInstance()
        shutil.rmtree(self.folder, ignore_errors=True)


def load_of(i):
    return 0.5 + 0.25 * ((i // 16) % 3)


def as_the_command_does(checks):
    for name, stop, every in (("rlc", 1.0, 4), ("rectifier", 0.05, 2), ("inverter", 0.02, 1),
                              ("pmsm", 200.0, 2), ("scrlc", 0.5, 4)):
        netlist = os.path.join(DATA, name + ".cir")
        own = os.path.join(TMP, "own.csv")
        cardan("circuit", netlist, "--stop", stop, "--every", every, "-q", "-o", own)
        expected = parse(own)
        step = expected["time"][1]
        for version in (2, 3):
            path = export(netlist, version, name=name)
            problems = validate_fmu(path)
            checks.true(f"{name}, FMI {version}.0: FMPy's validation", not problems,
                        "; ".join(problems))
            names = [n for n in expected if n != "time"]
            found = simulate_fmu(path, step_size=step, output_interval=step, stop_time=stop,
                                 output=names)
            same = len(found) == len(expected["time"]) and \
                all(np.array_equal(found[n], expected[n]) for n in names)
            checks.true(f"{name}, FMI {version}.0: all bits of cardan circuit", same,
                        f"{len(found)} rows")


def life(checks, netlist):
    steps = round(STOP / STEP)
    alone = {}
    for version in (2, 3):
        path = export(netlist, version)
        what = f"FMI {version}.0"
        problems = validate_fmu(path)
        checks.true(f"{what}: FMPy's validation", not problems, "; ".join(problems))
        unit = Unit(path, version)
        alone[version] = unit.run(steps, load_of)
        unit.fmu.reset()
        unit.begin()
        checks.true(f"{what}: the same after a reset", unit.run(steps, load_of) == alone[version])
        other = Unit(path, version, l=2e-3, duty=0.25)
        expected = other.run(steps, load_of)
        checks.true(f"{what}: parameters matter", expected[-1] != alone[version][-1])
        unit.fmu.reset()
        unit.begin()
        other.fmu.reset()
        other.begin()
        pair = [(unit.run(1, lambda _, k=i: load_of(k))[0],
                 other.run(1, lambda _, k=i: load_of(k))[0]) for i in range(steps)]
        checks.true(f"{what}: two instances do not know of each other",
                    pair == list(zip(alone[version], expected)))
        unit.end()
        other.end()
        states(checks, path, version, alone[version])
        slopes(checks, path, version)
    checks.true("FMI 2.0 and 3.0 give the same", alone[2] == alone[3])
    largest = np.max(np.abs(np.array(alone[2])), axis=0)
    checks.true("the converter works", largest[0] > 13 and largest[1] > 0.5, f"{largest}")


def states(checks, path, version, expected):
    what, half = f"FMI {version}.0", len(expected) // 2
    rest = expected[half:]
    unit = Unit(path, version)
    unit.run(half, load_of)
    t, state = unit.t, unit.save()
    first = unit.run(len(rest), lambda i: load_of(half + i))
    unit.restore(state, t)
    again = unit.run(len(rest), lambda i: load_of(half + i))
    checks.true(f"{what}: a restored state goes on as before", first == rest and again == rest)
    unit.step(STEP / 3)  # another step inside
    unit.restore(state, t)
    checks.true(f"{what}: also after steps of another length",
                unit.run(len(rest), lambda i: load_of(half + i)) == rest)
    data = unit.to_bytes(state)
    other = Unit(path, version, l=5e-3)  # with other parameters: the state has its own
    other.run(7)
    copy = other.from_bytes(data)
    other.restore(copy, t)
    checks.true(f"{what}: a serialised state goes on in another instance",
                other.run(len(rest), lambda i: load_of(half + i)) == rest, f"{len(data)} bytes")
    spoilt = bytearray(data)
    spoilt[-20] ^= 64
    damaged = other.from_bytes(bytes(spoilt))
    try:
        other.restore(damaged, t)
        refused = False
    except Exception:  # FMPy raises for every status but OK and warning
        refused = True
    checks.true(f"{what}: a damaged state is refused", refused)
    other.free(damaged)
    other.free(copy)
    other.fmu.freeInstance()
    unit.free(state)
    unit.end()


def slopes(checks, path, version):
    unit, worst, largest = Unit(path, version), 0.0, 0.0
    for _ in range(100):
        before = unit.get(["i(L1)"])[0]
        unit.step()
        slope = (unit.get(["i(L1)"])[0] - before) / STEP
        largest = max(largest, abs(slope))
        if unit.t % 64e-6 > 2 * STEP:  # not where the switch moves
            worst = max(worst, abs(unit.slope("i(L1)") - slope))
    checks.true(f"FMI {version}.0: derivatives of outputs", worst < 0.02 * largest,
                f"{worst:.3g} A/s of {largest:.3g} A/s away from differences")
    unit.end()


def moving_inputs(checks):
    """An input with its derivatives over wide steps is the same as many short ones."""
    netlist = write("rc.cir", "rc\n.input u\nV1 a 0 input(u)\nR1 a b 1\nC1 b 0 1 ic=0\n"
                    ".tran 0.015625 1 uic\n.output y=v(b)\n")
    path = export(netlist, 2, name="rc")
    wide, fine = Unit(path, 2), Unit(path, 2)
    worst = 0.0
    for i in range(16):
        t = i * 0.25
        wide.set("u", 1 + t - t * t)
        vr, order = wide.reference["u"], 1
        wide.fmu.setRealInputDerivatives([vr], [order], [1 - 2 * t])
        wide.fmu.setRealInputDerivatives([vr], [2], [-2.0])
        wide.step(0.25)
        for _ in range(16):
            s = fine.t + 2.0**-6
            fine.set("u", 1 + s - s * s)
            fine.step(2.0**-6)
        worst = max(worst, abs(wide.get(["y"])[0] - fine.get(["y"])[0]))
    checks.below("inputs follow their derivatives", worst, 1e-13)
    wide.end()
    fine.end()


def own_sources(checks, netlist):
    """The FMU builds from its own sources with the libraries of the system."""
    for version in (2, 3) if ALL else (3,):
        path = export(netlist, version)
        folder = extract(path, unzipdir=tempfile.mkdtemp(dir=TMP))
        where = ("modelDescription.xml", "File") if version == 2 else \
            ("sources/buildDescription.xml", "SourceFile")
        build = ET.parse(os.path.join(folder, where[0]))
        files = [os.path.join(folder, "sources", e.get("name")) for e in build.iter(where[1])]
        libraries = [e.get("name") for e in build.iter("Library")]
        if version == 3:
            checks.true("FMI 3.0 says which libraries it is linked with",
                        libraries == ["klu", "btf", "amd", "colamd", "suitesparseconfig", "m"],
                        " ".join(libraries))
        library = next(os.path.join(d, n) for d, _, names in os.walk(os.path.join(folder, "binaries"))
                       for n in names if n.endswith(".so"))
        os.remove(library)
        done = subprocess.run([CC, "-shared", "-fPIC", "-O0", "-std=gnu17", "-ffp-contract=off",
                               "-fvisibility=hidden", "-o", library, *files, "-lklu", "-lm"],
                              capture_output=True, text=True, timeout=300, check=False)
        checks.true(f"FMI {version}.0: {len(files)} sources compile", done.returncode == 0,
                    done.stderr[-300:])
        again = os.path.join(TMP, f"again{version}.fmu")
        with zipfile.ZipFile(again, "w") as archive:
            for d, _, names in os.walk(folder):
                for n in names:
                    full = os.path.join(d, n)
                    archive.write(full, os.path.relpath(full, folder))
        a, b = Unit(path, version), Unit(again, version)
        found = [np.array(u.run(256, load_of)) for u in (a, b)]
        a.end()
        b.end()
        checks.below(f"FMI {version}.0: from its own sources",
                     np.max(np.abs(found[0] - found[1])), 1e-9)


def main():
    checks = Checks(__doc__)
    netlist = write("boost.cir", BOOST)
    as_the_command_does(checks)
    life(checks, netlist)
    moving_inputs(checks)
    own_sources(checks, netlist)
    checks.end()


if __name__ == "__main__":
    main()
