#!/usr/bin/env python3
"""FMUs made by pythonfmu (FMI 2.0), pythonfmu3 (FMI 3.0) and FMPy (containers), run in Cardan.

The models of peer/ are built during the test and run alone, coupled with an FMU of ours, and with
each other; expected values are computed here by the same operations in the same order, so that most
have to be equal to the last bit. Their libraries embed Python without linking to it: libpython is that of
the python3 in $VIRTUAL_ENV, found and loaded by Cardan.
"""

import csv
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from asammdf import MDF

from golden import HERE, TMP, Checks, cardan, fmu
from golden_coupled import held

EMBED = {"VIRTUAL_ENV": sys.prefix, "PATH": os.path.join(sys.prefix, "bin") + ":" + os.environ["PATH"],
         "PYTHONDONTWRITEBYTECODE": "1"}
STEP = 0.01


def build(checks):
    for version, package, more in (("2", "pythonfmu", "Motor"), ("3", "pythonfmu3", "Shaft")):
        for model in ("Lag", "Gain", "Broken", more):
            script = os.path.join(HERE, "peer", model + version + ".py")
            done = subprocess.run([sys.executable, "-B", "-m", package, "build", "-f", script, "-d",
                                   TMP], capture_output=True, text=True)
            path = os.path.join(TMP, model + version + ".fmu")
            checks.true(f"{package} builds {model}{version}.fmu",
                        done.returncode == 0 and os.path.exists(path), done.stderr)
            cardan("check", path)


def texts(name):
    """Columns of a result as they are written."""
    with open(os.path.join(TMP, name), newline="", encoding="utf-8") as f:
        rows = list(csv.reader(f))
    return dict(zip(rows[0], zip(*rows[1:])))


def write(name, text):
    with open(os.path.join(TMP, name), "w", encoding="utf-8") as f:
        f.write(text)
    return name


def run(*arguments, code=0):
    return cardan("run", "-q", "-o", "out.csv", *arguments, code=code, environment=EMBED)


def equal(checks, what, expected, found):
    """Lists that have to be equal; shows the first difference."""
    bad = [i for i, (a, b) in enumerate(zip(expected, found)) if a != b]
    text = f"row {bad[0]}: expected {expected[bad[0]]!r}, found {found[bad[0]]!r}" if bad else \
        f"{len(found)} rows"
    checks.true(what, not bad and len(expected) == len(found), text)


def numbers(column):
    return [float(x) for x in column]


def lag(inputs, y, T):
    out = [y]
    for u, on in inputs:
        if on:
            y += STEP * (u - y) / T
        out.append(y)
    return out


def alone(checks):
    count = 100
    inputs = [(1 + 0.5 * k / count, k % 10 != 0) for k in range(count + 1)]
    rows = "".join(f"{k * STEP!r},{u!r},{int(on)}\n" for k, (u, on) in enumerate(inputs))
    write("drive.csv", "time,u,on\n" + rows)
    for version in "23":
        name = f"Lag{version}"
        run(f"{name}.fmu", "--step", STEP, "--stop-time", 1, "--variables", "*", "--input",
            "drive.csv", "--set", "T=0.2", "--set", "limit=7", "--set", "label=two words ä",
            "--set", "y=0.125", "--predict", "hold")
        r = texts("out.csv")
        y = lag(inputs[:count], 0.125, 0.2)
        equal(checks, f"{name}: y with parameters and driven inputs", y, numbers(r["y"]))
        equal(checks, f"{name}: count", [min(k, 7) for k in range(count + 1)],
              numbers(r["count"]))
        equal(checks, f"{name}: above", [False] + [v > 0.5 for v in y[1:]],
              [x == "1" for x in r["above"]])
        equal(checks, f"{name}: text", [f"two words ä {min(k, 7)}" for k in range(count + 1)],
              r["text"])
        checks.true(f"{name}: label", set(r["label"]) == {"two words ä"})
    run("Lag3.fmu", "--step", STEP, "--stop-time", 0.5, "--variables", "*", "--set",
        "weights=0.5 -2 1e3", "--set", "big=-9007199254740993", "--set",
        "huge=18446744073709551615")
    r = texts("out.csv")
    y = lag([(0.0, True)] * 50, 0.25, 0.1)
    for i, w in enumerate((0.5, -2, 1e3)):
        equal(checks, f"Lag3: powers[{i + 1}] of an array parameter",
              [0.0] + [w * v for v in y[1:]], numbers(r[f"powers[{i + 1}]"]))
    equal(checks, "Lag3: Int64 beyond 2^53",
          ["0"] + [str(-9007199254740993 + min(k, 10)) for k in range(1, 51)], r["big_out"])
    checks.true("Lag3: UInt64 beyond 2^63", set(r["huge"]) == {"18446744073709551615"})
    for version in "23":
        run(f"Gain{version}.fmu", "--step", STEP, "--stop-time", 0.1, "--set", "a=-3", "--set",
            "b=0.5", "--set", "u=2", "--variables", "y")
        equal(checks, f"Gain{version}: y = a u + b", [-5.5] * 11, numbers(texts("out.csv")["y"]))


def feedback(checks):
    """A lag of theirs and y = a u + b of ours in a loop, Jacobi and Gauss-Seidel."""
    for theirs in "23":
        for ours in "23":
            file = write("feedback.yaml", f"""
cardan: 1
units:
  lag: {{ fmu: Lag{theirs}.fmu, parameters: {{ T: 0.2 }} }}
  back: {{ fmu: {fmu('feedthrough', ours)}, parameters: {{ a: -0.5, b: 1 }} }}
connections: [lag.y -> back.u, back.y -> lag.u]
run: {{ step: {STEP}, stop: 1, predict: hold }}
""")
            for scheme in ("jacobi", "gauss-seidel: [lag, back]"):
                run(file, "--scheme", scheme)
                r = texts("out.csv")
                y, u = 0.25, -0.5 * 0.25 + 1
                expected = [y]
                for _ in range(100):
                    before = y
                    y += STEP * (u - y) / 0.2
                    u = -0.5 * (before if scheme == "jacobi" else y) + 1
                    expected.append(y)
                equal(checks, f"Lag{theirs} with our feedthrough (FMI {ours}), {scheme}", expected,
                      numbers(r["lag.y"]))


def loop(checks):
    """An algebraic loop at the start through both: y = 2 (0.25 y + 3) + 1 = 14."""
    for version in "23":
        file = write("loop.yaml", f"""
cardan: 1
units:
  gain: {{ fmu: Gain{version}.fmu }}
  ours: {{ fmu: {fmu('feedthrough', version)}, parameters: {{ a: 0.25, b: 3 }} }}
connections: [gain.y -> ours.u, ours.y -> gain.u]
run: {{ step: {STEP}, stop: 0.1, predict: hold }}
""")
        run(file)
        checks.near(f"Gain{version} in an algebraic loop with ours", 14,
                    numbers(texts("out.csv")["gain.y"])[0], 1e-8)


def together(checks):
    """FMI 2.0 and 3.0 of theirs in one process, two of each, with one thread and two."""
    file = write("together.yaml", f"""
cardan: 1
units:
  a: {{ fmu: Lag2.fmu }}
  b: {{ fmu: Lag3.fmu, parameters: {{ T: 0.05 }} }}
  c: {{ fmu: Lag2.fmu, parameters: {{ T: 0.3, y: 1 }} }}
  d: {{ fmu: Lag3.fmu, parameters: {{ label: d }} }}
connections: [a.y -> b.u, b.y -> c.u, c.y -> d.u, d.y -> a.u, a.above -> b.on]
run: {{ step: {STEP}, stop: 1, predict: hold }}
""")
    y, T, on = [0.25, 0.25, 1.0, 0.25], (0.1, 0.05, 0.3, 0.1), False
    expected = [list(y)]
    for _ in range(100):
        u = [y[3], y[0], y[1], y[2]]
        y = [v if k == 1 and not on else v + STEP * (u[k] - v) / T[k] for k, v in enumerate(y)]
        on = y[0] > 0.5
        expected.append(list(y))
    data = []
    for threads in "12":
        run(file, "--threads", threads)
        r = texts("out.csv")
        for k, unit in enumerate("abcd"):
            equal(checks, f"four of theirs in a ring, {threads} threads: {unit}.y",
                  [row[k] for row in expected], numbers(r[unit + ".y"]))
        with open(os.path.join(TMP, "out.csv"), "rb") as f:
            data.append(f.read())
    checks.true("one thread and two give the same bytes", data[0] == data[1])


def failures(checks):
    for version in "23":
        name = f"Broken{version}"
        done = run(f"{name}.fmu", "--step", STEP, "--stop-time", 1, code=1)
        checks.true(f"{name}: an exception in do_step ends the run",
                    f"'{name}' at t = 0.5" in done.stderr and "DoStep" in done.stderr, done.stderr)
        equal(checks, f"{name}: what came before is recorded",
              [round(k * STEP, 12) for k in range(51)],
              [round(t, 12) for t in numbers(texts("out.csv")["time"])])
    checks.true("Broken3: the exception's text is told", "out of cheese" in done.stderr)
    wrong = dict(EMBED, CARDAN_LIBPYTHON="/no/such/libpython.so")
    done = cardan("run", "Lag2.fmu", "-o", "none", code=1, environment=wrong)
    checks.true("a libpython that is not there is named", "/no/such/libpython.so" in done.stderr, done.stderr)


def isolated(checks):
    """In a worker process, whose sandbox has to let Python and numpy through."""
    for name in ("Lag2", "Lag3"):
        run(f"{name}.fmu", "--step", STEP, "--stop-time", 1)
        here = texts("out.csv")
        run(f"{name}.fmu", "--step", STEP, "--stop-time", 1, "--isolate", "all")
        checks.true(f"{name}: isolated it gives the same", texts("out.csv") == here)


def container(checks):
    """Our two halves of the oscillator inside a container of FMPy, which couples them itself.

    A container for FMI 2.0 and one for 3.0; inside FMI 3.0, as FMPy 0.3.32 cannot connect reals of
    FMI 2.0.
    """
    from fmpy import read_model_description
    from fmpy.container_fmu.cli import create_container_fmu
    from fmpy.container_fmu.config import Component, Configuration, Connection
    from fmpy.model_description import (CoSimulation, DefaultExperiment, ModelDescription,
                                        ModelVariable, Unknown)
    for version in "23":
        parts, maps = [], {}
        for name in ("lo_fd1", "lo_fd2"):
            md = read_model_description(fmu(name, "3"))
            parts.append(Component(name=name, filename=Path(fmu(name, "3")), modelDescription=md))
            maps[name] = {v.name: v for v in md.modelVariables}
        real = "Real" if version == "2" else "Float64"
        exposed = {
            ModelVariable(name="m2", type=real, causality="parameter", variability="tunable",
                          initial="exact", start="2"): [(parts[1], maps["lo_fd2"]["m2"])],
            ModelVariable(name="x1", type=real, causality="output", variability="continuous",
                          initial="calculated"): [(parts[0], maps["lo_fd1"]["x1"])],
            ModelVariable(name="x2", type=real, causality="output", variability="continuous",
                          initial="calculated"): [(parts[1], maps["lo_fd2"]["x2"])]}
        links = [Connection(parts[1], [maps["lo_fd2"][n]], parts[0], [maps["lo_fd1"][n]])
                 for n in ("x2", "v2")]
        links.append(Connection(parts[0], [maps["lo_fd1"]["f"]], parts[1], [maps["lo_fd2"]["f"]]))
        variables = [ModelVariable(name="time", type=real, causality="independent",
                                   variability="continuous"), *exposed]
        unknowns = [Unknown(variable=v) for v in variables[2:]]
        md = ModelDescription(
            fmiVersion=version + ".0", modelName="Container", instantiationToken="{one}",
            generationTool="FMPy", modelVariables=variables, outputs=unknowns,
            initialUnknowns=unknowns, defaultExperiment=DefaultExperiment(stopTime="1"),
            coSimulation=CoSimulation(modelIdentifier="container_fmu",
                                      canHandleVariableCommunicationStepSize=True,
                                      fixedInternalStepSize=1e-3))
        folder = Path(TMP, "container")
        folder.mkdir(exist_ok=True)
        path = Path(TMP, f"Container{version}.fmu")
        create_container_fmu(Configuration(parallelDoStep=False, modelDescription=md,
                                           components=parts, connections=links,
                                           variableMappings=exposed), folder, path)
        cardan("check", path)
        cardan("run", path, "-q", "-o", "out.csv", "--step", "1 ms", "--stop-time", 1, "--set",
               "m2=1.5")
        theirs = texts("out.csv")
        # After a step the container hands x2 and v2 on and then asks for the force: f is fresh.
        P1, Q1 = held(np.array([[0, 1], [-110, 0]]), np.array([[0, 0], [100, 0]]), 1e-3)
        P2, Q2 = held(np.array([[0, 1], [-1000 / 1.5, 0]]), np.array([[0], [1 / 1.5]]), 1e-3)
        a, b = np.array([0.0, 100]), np.array([0.0, -100])
        expected = [(a[0], b[0])]
        for _ in range(1000):
            a, b = P1 @ a + Q1 @ b, P2 @ b + Q2[:, 0] * 100 * (a[0] - b[0])
            expected.append((a[0], b[0]))
        for k, name in enumerate(("x1", "x2")):
            found = numbers(theirs[name])
            d = np.max([abs(e[k] - x) for e, x in zip(expected, found)])
            checks.true(f"Container{version}.fmu: {name} against the recursion",
                        d <= 1e-10 and len(found) == len(expected),
                        f"{len(found)} rows, difference {d:.2g}, limit 1e-10")


def from_nothing(checks):
    """Four commands from two FMUs of two other tools to a plotted, judged result; none is an editor."""
    done = cardan("new", "Motor2.fmu", "Shaft3.fmu", "-o", "drive.yaml", environment=EMBED)
    checks.true("new connects what is called alike", "2 units, 2 connections" in done.stdout, done.stdout)
    cardan("run", "drive.yaml", "-o", "drive.mf4", "--max-defect", "1 %", environment=EMBED)
    cardan("plot", "drive.mf4", "-o", "drive.svg")
    cardan("report", "drive.mf4", "-o", "drive.html")
    svg, html = (Path(TMP, name).read_text(encoding="utf-8") for name in ("drive.svg", "drive.html"))
    checks.true("the plot names both signals", "Motor2.torque" in svg and "Shaft3.speed" in svg)
    checks.true("the report says how the run went", 'class="verdict' in html and "does not say how" not in html)
    # d/dt (torque, speed) = A (torque, speed) + b, after 2 s; the models step by Euler with 1 ms
    matrix, constant = np.array([[-50, -2], [50, -0.5]]), np.array([200, 0])
    rest = np.linalg.solve(matrix, -constant)
    values, vectors = np.linalg.eig(matrix)
    end = rest - (vectors * np.exp(2 * values) @ np.linalg.solve(vectors, rest)).real
    with MDF(os.path.join(TMP, "drive.mf4")) as record:
        checks.near("the speed after 2 s", end[1], record.get("Shaft3.speed").samples[-1], 0.02)


def main():
    checks = Checks(__doc__)
    build(checks)
    alone(checks)
    feedback(checks)
    loop(checks)
    together(checks)
    failures(checks)
    isolated(checks)
    container(checks)
    from_nothing(checks)
    checks.end()


if __name__ == "__main__":
    main()
