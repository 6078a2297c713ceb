#!/usr/bin/env python3
"""The coupling FMU in FMPy: what the library's element gives, bit for bit, FMI 2.0 and 3.0.

peer_coupling_fmu.py REFERENCE CC: the program coupling_reference, and a C compiler. The signal is
the torque benchmark with a hard shift and noise, once with a known latency, once with stamps that
come late, twice, never and out of order, in micro steps. All numbers have to be the same; they
come from the same code, compiled twice. Each element meets every signal, and each version of FMI
every signal with every second element. Then `cardan run` with the FMU between two oscillators,
against the eigenvalues and powers of the matrix that is one step of the loop: 1e-7 J of 10 J, as
500000 steps round differently. With --all every element in both versions, and more loops.
"""

import csv
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
import zipfile

import numpy as np
from fmpy import extract, read_model_description, simulate_fmu
from fmpy.fmi2 import FMU2Slave
from fmpy.fmi3 import FMU3Slave
from fmpy.validation import validate_fmu

from golden import ALL, CARDAN, HERE, TMP, Checks, cardan, fmu, run

REFERENCE, CC = sys.argv[1:3]
STEP, K = 0.01, 6
ROWS = ("k", "jump", "active", "samples", "filled", "late", "jumps", "not_finite")
WORDS = ("zoh", "foh", "eros", "wiener", "ridge", "rls", "auto")
NETWORK = ("{algorithm: network, network: {W1: [[2, -1]], W2: [[1], [-1]], "
           "W3: [0.9900990099009901, -0.9900990099009901]}}")
ELEMENTS = dict({word: word for word in WORDS}, network=NETWORK,
                smooth="{algorithm: auto, reconstruct: smooth}",
                switch="{algorithm: eros, detect: spectrum, react: switch}")


def torque():
    """The torque benchmark with a hard shift and noise, 12 s in steps of 10 ms."""
    out, state = [], 12345
    for n in range(1200):
        t = STEP * n
        y = (100 * (1 - math.exp(-t / 0.7)) + 8 * math.sin(1.3 * t) + 6 * math.sin(3.1 * t + 0.5)
             + 12 * math.sin(6.7 * t + 1.1) + 20 * math.sin(9.7 * t + 2)
             + 1.6 * (0.35 + math.exp(-((t - 6) / 1.2) ** 2))
             * (4 * math.sin(34 * t + 0.3) + 2.5 * math.sin(45 * t + 1.7)
                + 1.5 * math.sin(53 * t + 0.9)))
        noise = -6.0
        for _ in range(12):
            state = (1664525 * state + 1013904223) % 2**32
            noise += state / 2**32
        out.append(y - 110 * (3.2 <= t < 3.6) + 0.3 * noise)
    return out


SIGNAL = torque()


class Unit:
    """An instance in FMPy by names of variables, arrays as lists."""

    def __init__(self, path, version, **parameters):
        self.md = read_model_description(path)
        self.version = version
        self.folder = extract(path, unzipdir=tempfile.mkdtemp(dir=TMP))
        self.variables = {v.name: v for v in self.md.modelVariables}
        kind = FMU2Slave if version == 2 else FMU3Slave
        self.fmu = kind(guid=self.md.guid if version == 2 else self.md.instantiationToken,
                        unzipDirectory=self.folder, instanceName="unit",
                        modelIdentifier=self.md.coSimulation.modelIdentifier)
        self.fmu.instantiate()
        for name, value in parameters.items():
            self.set(name, value)

    def begin(self, **inputs):
        if self.version == 2:
            self.fmu.setupExperiment(startTime=0.0)
            self.fmu.enterInitializationMode()
        else:
            self.fmu.enterInitializationMode(startTime=0.0)
        for name, value in inputs.items():
            self.set(name, value)
        self.initial = self.get("y") if "y" in self.variables else None
        self.fmu.exitInitializationMode()

    def _call(self, verb, name):
        type_ = self.variables[name].type
        if self.version == 2:
            type_ = {"Enumeration": "Integer"}.get(type_, type_)
        else:
            type_ = {"Enumeration": "Int64"}.get(type_, type_)
        return getattr(self.fmu, verb + type_)

    def set(self, name, value):
        values = value if isinstance(value, list) else [value]
        self._call("set", name)([self.variables[name].valueReference], values)

    def get(self, name):
        v = self.variables[name]
        if v.dimensions:
            return list(self._call("get", name)([v.valueReference],
                                                nValues=int(v.dimensions[0].start)))
        value = self._call("get", name)([v.valueReference])[0]
        return bool(value) if v.type == "Boolean" else value

    def getter(self, names):
        """Many scalars as integers, with a call per type."""
        calls = {}
        for place, name in enumerate(names):
            call = self._call("get", name)
            _, references, places = calls.setdefault(call.__name__, (call, [], []))
            references.append(self.variables[name].valueReference)
            places.append(place)

        def get():
            out = [0] * len(names)
            for call, references, places in calls.values():
                for place, value in zip(places, call(references)):
                    out[place] = int(value)
            return out
        return get

    def set_all(self, names, values):
        if len(names) == 1:
            self.set(names[0], values)
        else:
            for name, value in zip(names, values):
                self.set(name, value)

    def get_all(self, names):
        values = [self.get(name) for name in names]
        return values[0] if isinstance(values[0], list) else values

    def step(self, t, h):
        self.fmu.doStep(currentCommunicationPoint=t, communicationStepSize=h)

    def end(self):
        self.fmu.terminate()
        self.fmu.freeInstance()
        shutil.rmtree(self.folder, ignore_errors=True)


def export(element, version, *options, name="coupling"):
    path = os.path.join(TMP, f"{name}{version}.fmu")
    cardan("export", "coupling", element, "--fmi", version, "--step", "10ms", "-o", path,
           "--name", name, *options)
    return path


def known_latency(y):
    """(t, h, u, stamp, sequence, what the element gets) per step; the FMU knows k."""
    t = 0.0
    for n in range(len(y)):
        u = y[max(n - K, 0)]
        yield t, STEP, u, None, None, (u, t - K * STEP, -1)
        t += STEP


def disturbed(y, sequences):
    """Micro steps of 2.5 ms; samples with jitter, loss and duplicates, out of order."""
    dice = random.Random(5)
    arrivals = []
    for n, value in enumerate(y):
        for _ in range(1 + (dice.random() < 0.05)):
            if dice.random() > 0.05:
                arrivals.append((n * STEP + 0.0575 + dice.uniform(-0.02, 0.02), n, value))
    arrivals.sort()
    t, h, newest = 0.0, STEP / 4, None
    for _ in range(4 * len(y)):
        given = (None,) * 4
        if arrivals and arrivals[0][0] <= t:
            _, n, value = arrivals.pop(0)
            stamp, number = n * STEP + 1e-5 * (n % 7), n if sequences else -1
            pushed = (value, stamp, number) if n != newest else None
            newest, given = n, (value, stamp, number, pushed)
        yield t, h, *given
        t += h


def ask(lines, element, start):
    done = subprocess.run([REFERENCE, element, start], input="\n".join(lines) + "\n", text=True,
                          capture_output=True, timeout=120, check=True)
    return [line.split() for line in done.stdout.splitlines()]


def compare(checks, what, path, version, scenario, start, **parameters):
    scenario = list(scenario)
    lines, places = ["eval 0"], []
    marked = received = False
    for i, (t, h, u, stamp, _, pushed) in enumerate(scenario):
        if pushed:
            if stamp is not None and not marked:
                marked = True
                lines.append("reset")
            received = True
            lines.append("push %r %r %d" % pushed)
        if received:  # until then u is all that is known
            lines += [f"eval {t!r}", f"eval {t + h!r}"]
            places.append(i)
    with zipfile.ZipFile(path) as z, open(os.path.join(TMP, "element.json"), "wb") as f:
        f.write(z.read("resources/element.json"))
    expected = ask(lines, f.name, repr(start))[1:]
    unit = Unit(path, version, **parameters)
    unit.begin(u=start)
    checks.true(f"{what}: y = u at the beginning", unit.initial == start, f"{unit.initial}")
    rows_of = unit.getter(ROWS)
    wrong, compared = [], 0
    for i, (t, h, u, stamp, sequence, _) in enumerate(scenario):
        if u is not None:
            unit.set("u", u)
        if stamp is not None:
            unit.set("stamp", stamp)
            unit.set("sequence", sequence)
        rows = []
        if u is not None:
            rows.append((0, unit.get("y"), rows_of()))
        unit.step(t, h)
        rows.append((1, unit.get("y"), rows_of()))
        if not places or i < places[0]:
            continue
        for at, y, others in rows:
            row = expected[2 * (i - places[0]) + at]
            compared += 1
            if y != float.fromhex(row[0]) or others != [int(x) for x in row[1:]]:
                wrong.append((i, at, y, float.fromhex(row[0]), others, row[1:]))
    counts = {r: unit.get(r) for r in ROWS}
    unit.end()
    checks.true(what, not wrong and compared > 1000,
                f"{compared} rows, {counts}" + (f", first difference {wrong[0]}" if wrong else ""))
    return counts


def every_element(checks):
    y = SIGNAL
    with open(os.path.join(HERE, "..", "coupling", "torque_samples.csv"), newline="",
              encoding="utf-8") as f:
        for row in csv.DictReader(f):
            checks.near(f"the signal, n = {row['n']}", float(row["S2_noise"]), y[int(row["n"])],
                        1e-11)
    for i, (word, element) in enumerate(ELEMENTS.items()):
        for version in (2, 3):
            path = export(element, version)
            name = f"FMI {version}.0 {word}"
            problems = validate_fmu(path)
            checks.true(f"{name}: valid", not problems, f"{problems}")
            even = (i + version) % 2 == 0
            if ALL or even:
                compare(checks, f"{name}, known latency", path, version, known_latency(y), y[0],
                        latency=float(K))
                compare(checks, f"{name}, stamps and numbers", path, version, disturbed(y, True),
                        y[0])
            if ALL or not even:
                counts = compare(checks, f"{name}, time stamps", path, version,
                                 disturbed(y, False), y[0])
                checks.true(f"{name}: the stamps were disturbed",
                            counts["filled"] > 20 and counts["late"] > 20, f"{counts}")


def several_signals(checks):
    """Three signals in one FMU are three FMUs: arrays, name[1] in FMI 2.0, names."""
    y = SIGNAL[:400]
    for version in (2, 3):
        one = export("auto", version)
        many = export("auto", version, "--signals", "3", name="many")
        named = export("auto", version, "--signals", "x,v,F", name="named")
        for path in (many, named):
            checks.true(f"FMI {version}.0 {os.path.basename(path)}: valid", not validate_fmu(path))
        units = [Unit(one, version) for _ in range(3)]
        array, names = Unit(many, version), Unit(named, version)
        for u in units:
            u.begin()
        in_names = ["u.x", "u.v", "u.F"]
        in_array = [f"u[{i}]" for i in (1, 2, 3)] if version == 2 else ["u"]
        array.begin()
        names.begin()
        t, same = 0.0, True
        for value in y:
            inputs = [value, -2 * value, value * value]
            for u, x in zip(units, inputs):
                u.set("u", x)
                u.step(t, STEP)
            array.set_all(in_array, inputs)
            names.set_all(in_names, inputs)
            array.step(t, STEP)
            names.step(t, STEP)
            expected = [u.get("y") for u in units]
            for unit, variables in ((array, in_array), (names, in_names)):
                same = same and unit.get_all(v.replace("u", "y") for v in variables) == expected
            t += STEP
        checks.true(f"FMI {version}.0: three signals in one FMU are as three FMUs", same)
        for u in units + [array, names]:
            u.end()


def run_over(path, version, y):
    unit = Unit(path, version, latency=float(K))
    unit.begin(u=y[0])
    out, t = [], 0.0
    for value in y:
        unit.set("u", value)
        unit.step(t, STEP)
        out.append(unit.get("y"))
        t += STEP
    unit.end()
    return out


def own_sources(checks):
    """The FMU builds from its own sources, without any option, and gives the same."""
    y = SIGNAL
    for version in (2, 3):
        path = export("auto", version)
        folder = extract(path, unzipdir=os.path.join(TMP, f"sources{version}"))
        sources = os.path.join(folder, "sources")
        where = ("modelDescription.xml", "File") if version == 2 else \
            ("sources/buildDescription.xml", "SourceFile")
        build = ET.parse(os.path.join(folder, where[0]))
        files = [e.get("name") for e in build.iter(where[1])]
        libraries = ["-l" + e.get("name") for e in build.iter("Library")] or ["-lm"]
        binaries = os.path.join(folder, "binaries")
        platform = os.listdir(binaries)[0]
        library = os.path.join(binaries, platform, "coupling.so")
        os.remove(library)
        elsewhere = os.path.join(TMP, "elsewhere")  # nothing is found by chance
        os.makedirs(elsewhere, exist_ok=True)
        done = subprocess.run([CC, "-shared", "-fPIC", "-o", library,
                               *[os.path.join(sources, f) for f in files],
                               *libraries], cwd=elsewhere, capture_output=True,
                              text=True, timeout=300, check=False)
        checks.true(f"FMI {version}.0: {len(files)} sources compile", done.returncode == 0,
                    done.stderr[-300:])
        again = os.path.join(TMP, f"again{version}.fmu")
        with zipfile.ZipFile(again, "w") as z:
            for where, _, names in os.walk(folder):
                for n in names:
                    full = os.path.join(where, n)
                    z.write(full, os.path.relpath(full, folder))
        checks.true(f"FMI {version}.0: the FMU from its own sources gives the same",
                    run_over(again, version, y) == run_over(path, version, y))


def states(checks):
    """A state that is set again goes on as before; it cannot leave the process."""
    y = SIGNAL[:300]
    for version in (2, 3):
        path = export("auto", version)
        unit = Unit(path, version)
        unit.begin()
        fmu, runs = unit.fmu, []
        state = None
        for attempt in range(2):
            t, out = 0.0, []
            for n, value in enumerate(y):
                if attempt and n < 150:
                    t += STEP
                    continue
                if n == 150 and not attempt:
                    state = fmu.getFMUState()
                unit.set("u", value)
                unit.step(t, STEP)
                out.append(unit.get("y"))
                t += STEP
            runs.append(out[-150:])
            unit.set("u", 1e9)
            unit.get("y")
            fmu.setFMUState(state)
        checks.true(f"FMI {version}.0: a restored state goes on as before", runs[0] == runs[1])
        md = unit.md.coSimulation
        checks.true(f"FMI {version}.0: says that states are not serialised",
                    md.canGetAndSetFMUstate and not md.canSerializeFMUstate)
        fmu.freeFMUState(state)
        unit.end()


def fmpy_alone(checks):
    """simulate_fmu with a table of inputs, as a user of FMPy would."""
    y = SIGNAL
    for version in (2, 3):
        path = export("auto", version, "--latency", K)
        t = np.arange(len(y)) * STEP
        table = np.zeros(len(y), dtype=[("time", float), ("u", float)])
        table["time"] = t
        table["u"] = [y[max(n - K, 0)] for n in range(len(y))]
        out = simulate_fmu(path, step_size=STEP, output_interval=STEP, stop_time=t[-1],
                           input=table, output=["y", "k", "samples"])
        hold = table["u"][:-1]
        late = np.sqrt(np.mean((hold - np.array(y[1:])) ** 2))
        error = np.sqrt(np.mean((out["y"][1:] - np.array(y[1:])) ** 2))
        checks.true(f"FMI {version}.0: FMPy runs it and the estimate is better than the signal",
                    error < 0.85 * late and out["samples"][-1] == len(y) - 1,
                    f"RMS {error:.3f}, held {late:.3f}")


def bad_resources(checks):
    """An FMU whose element was spoilt refuses to start and says why."""
    path = export("eros", 2)
    for text, says in (("{}", "element.json"), ("", "element.json"),
                       ('{"element": 1, "name": "coupling", "step": 0.01, "algorithm": "eros", '
                        '"signals": 2}', "token")):
        spoilt = os.path.join(TMP, "spoilt.fmu")
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(spoilt, "w") as new:
            for entry in old.infolist():
                data = old.read(entry)
                new.writestr(entry.filename,
                             text if entry.filename == "resources/element.json" else data)
        done = cardan("run", spoilt, "-o", "x.csv", code=1)
        checks.true(f"spoilt resources are refused: {text[:20]!r}", says in done.stderr,
                    done.stderr)


# ---- with a learning server --------------------------------------------------------------------

ZOH_NETWORK = ("{algorithm: network, latency: 3, detect: none, network: {W1: [[1, 0, 0, 0]], "
               "W2: [[1], [-1]], W3: [0.9900990099009901, -0.9900990099009901]}}")


def learning(checks):
    """The network that a server sends is used; the server's death is not noticed."""
    address = "unix:" + os.path.join(os.path.relpath(TMP), "server")
    server = subprocess.Popen([CARDAN, "coupling", "learn", "serve", "--listen", address, "--every", "500",
                               "--method", "ridge", "--duration", "100"],
                              stdout=subprocess.PIPE, text=True)
    try:
        said = server.stdout.readline()  # it listens
        for version in (2, 3):
            path = export(ZOH_NETWORK, version)
            unit = Unit(path, version, learn_server=address)
            unit.begin(u=0.0)
            errors, t, after = [], 0.0, None
            for n in range(1000000):
                unit.set("u", math.sin(0.3 * (n - 3)))
                errors.append(abs(unit.get("y") - math.sin(0.3 * n)))
                unit.step(t, STEP)
                t += STEP
                if after is None and n % 100 == 0 and unit.get("networks") > 0:
                    after = n
                if after is not None and n == after + 2000:
                    break
            before, last = max(errors[100:200]), max(errors[-100:])
            checks.true(f"FMI {version}.0: learns from a server ({said.strip()})",
                        after is not None and last < 0.1 * before and unit.get("rollbacks") == 0
                        and unit.get("learning") == 4,
                        f"network after {after} samples, error {before:.3g}, then {last:.3g}")
            if version == 3:
                server.kill()
                server.wait()
                worst = 0
                for i in range(n + 1, n + 1000):
                    unit.set("u", math.sin(0.3 * (i - 3)))
                    worst = max(worst, abs(unit.get("y") - math.sin(0.3 * i)))
                    unit.step(t, STEP)
                    t += STEP
                checks.true("FMI 3.0: the server was killed, the network stays",
                            unit.get("learning") == 2 and worst < 0.1 * before,
                            f"error {worst:.3g}")
            unit.end()
    finally:
        server.kill()
        server.stdout.close()
        server.wait()


# ---- between two oscillators -------------------------------------------------------------------

# Baumann (2020): mass 1 (100 kg) sends position and speed, the other side with mass 2 (1 kg) and
# the spring between them sends its force; each 3 ms late, in steps of 1 ms. The coupling FMU steps
# as well, so that samples are 4 ms old when its output is used, which it knows.
SYSTEM = """cardan: 1
units:
  one: { fmu: %s, parameters: { m2: 100, k2: 10, c2: 0.01, x2: 1, v2: 0 } }
  two: { fmu: %s, parameters: { m1: 1, k1: 10, c1: 0.01, kc: 10, cc: 0.01, x1: 1, v1: 0 } }
  link: { fmu: %s }
connections:
  - { from: one.x2, to: link.u.x, coupling: { algorithm: zoh, channel: { delay: 3 ms } } }
  - { from: one.v2, to: link.u.v, coupling: { algorithm: zoh, channel: { delay: 3 ms } } }
  - { from: two.f, to: link.u.F, coupling: { algorithm: zoh, channel: { delay: 3 ms } } }
  - { from: link.y.x, to: two.x2, predict: %s }
  - { from: link.y.v, to: two.v2, predict: %s }
  - { from: link.y.F, to: one.f, predict: %s }
run: { step: 1 ms, stop: 500 s }
results: osc.csv
"""


def propagation(k, c, m, h):
    """x'' = (-k x - c v + f) / m over h, f constant: the matrix, and what f adds."""
    a = np.array([[0, 1, 0], [-k / m, -c / m, 1 / m], [0, 0, 0]]) * h
    e, term = np.eye(3), np.eye(3)
    for i in range(1, 20):
        term = term @ a / i
        e = e + term
    return e[:2, :2], e[:2, 2]


def weights(algorithm, k):
    if algorithm == "zoh":
        return [1.0]
    if algorithm == "foh":
        return [k + 1.0, -float(k)]
    g, a = (k + 2) / (k + 1), np.zeros(k + 3)
    for i, x in ((0, g), (1, -1), (k + 1, -g), (k + 2, 1)):  # Baumann (2024), eq. 20 with its k
        a[i] += k * x
    a[0] += 1
    return list(a)


def loop(algorithm, k):
    """One step of the whole loop as a matrix: x2, v2, then the past of x1, v1, F, newest first.

    Samples are k steps old, estimates are held, F is what its side says at the end of a step.
    """
    a = weights(algorithm, k)
    past = k + len(a)
    n = 2 + 3 * past
    p1, g1 = propagation(10, 0.01, 100, 1e-3)
    p2, g2 = propagation(20, 0.02, 1, 1e-3)
    at = [2, 2 + past, 2 + 2 * past]
    y = np.zeros((3, n))
    for s in range(3):
        y[s, at[s] + k:at[s] + k + len(a)] = a
    one, two = np.zeros((2, n)), np.zeros((2, n))
    one[:, [at[0], at[1]]] = p1
    one += np.outer(g1, y[2])
    two[:, :2] = p2
    two += np.outer(g2, 10 * y[0] + 0.01 * y[1])
    force = 10 * (two[0] - y[0]) + 0.01 * (two[1] - y[1])
    step = np.zeros((n, n))
    step[:2] = two
    for row, new in zip(at, (one[0], one[1], force)):
        step[row] = new
        for i in range(1, past):
            step[row + i, row + i - 1] = 1
    start = np.zeros(n)
    start[0] = 1
    start[at[0]:at[0] + past] = 1
    return step, start, at


def growth(step):
    """Of the slow mode, 1/s."""
    values = np.log(np.linalg.eigvals(step).astype(complex)[np.abs(np.linalg.eigvals(step)) > 0.5])
    slow = values[np.abs(np.abs(values.imag) * 1e3 - 0.3868) < 0.05]
    return float(np.max(slow.real)) * 1e3


def energy(x1, v1, x2, v2):
    return 50 * v1**2 + 5 * x1**2 + 0.5 * v2**2 + 5 * x2**2 + 5 * (x2 - x1)**2


def expected_energy(algorithm, k):
    step, start, at = loop(algorithm, k)
    z = np.linalg.matrix_power(step, 500000) @ start
    return energy(z[at[0]], z[at[1]], z[0], z[1])


def energy_at_the_end(algorithm, version, predict):
    link = os.path.join(TMP, f"link{version}.fmu")
    cardan("export", "coupling", algorithm, "--fmi", version, "--step", "1ms", "--latency", 3,
           "--signals", "x,v,F", "-o", link)
    system = os.path.join(TMP, "oscillators.yaml")
    with open(system, "w", encoding="utf-8") as f:
        f.write(SYSTEM % (fmu("lo_fd2", str(version)), fmu("lo_fd1", str(version)), link,
                          *[predict] * 3))
    r = run(system, "--variables", "one.[xv]2", "--variables", "two.[xv]1", "--variables",
            "link.k.F", output="oscillators.csv", interval="1 s")
    e = energy(r["one.x2"], r["one.v2"], r["two.x1"], r["two.v1"])
    return e[0], e[-1], r["link.k.F"][-1]


def oscillators(checks):
    # The matrix against published monodromies: F before the update of the inputs.
    checks.near("loop of k = 3, zoh: growth", 1.233661e-4, growth(loop("zoh", 3)[0]), 1e-9)
    checks.near("loop of k = 3, foh: growth", -2.512600e-5, growth(loop("foh", 3)[0]), 1e-9)
    checks.near("loop of k = 3, zoh: energy", 8.528480, expected_energy("zoh", 3), 1e-5)
    for version in (2, 3):
        for algorithm in ("zoh", "foh", "eros") if ALL else ("zoh",) if version == 3 else ("foh",):
            what = f"FMI {version}.0 {algorithm} between the oscillators"
            rate = growth(loop(algorithm, 4)[0])
            first, last, k = energy_at_the_end(algorithm, version, "hold")
            checks.near(f"{what}: energy at the start", 10, first, 1e-12)
            checks.near(f"{what}: energy after 500 s", expected_energy(algorithm, 4), last, 1e-7)
            checks.true(f"{what}: k", k == 4, f"{k:g}")
            grows = algorithm == "zoh"
            checks.true(f"{what}: {'grows' if grows else 'decays'}", (rate > 0) == grows,
                        f"{rate:.6g} 1/s")
    # With the estimate followed to the end of the step the damping is that of the uncut system:
    # -7.481e-5 1/s, 6.993858 J.
    for algorithm, expected in (("foh", 6.993871), ("eros", 6.993855))[0 if ALL else 1:]:
        _, last, _ = energy_at_the_end(algorithm, 2, "linear")
        checks.near(f"{algorithm}, followed over the step: energy after 500 s", expected, last,
                    1e-5)


def main():
    checks = Checks(__doc__)
    every_element(checks)
    several_signals(checks)
    own_sources(checks)
    states(checks)
    fmpy_alone(checks)
    bad_resources(checks)
    learning(checks)
    oscillators(checks)
    checks.end()


if __name__ == "__main__":
    main()
