"""Attacks on the verdict: random systems with exact solutions, through the command as a user types it.

    attack.py --first SEED --count N [--list FILE]     prints what is wrong and silent, and the rates; exit code 1 if there is any

A system is two or three units with linear equations: the oscillator FMUs of Rodriguez (2021) with random values, as Co-Simulation,
as Model Exchange or as black boxes, or a random network cut into two circuits. Schemes, predictions, elements, steps of units, iteration,
control and the course (decaying, driven, started out of rest, kept at an offset) are drawn, too. The truth is a matrix exponential in plain Python.

    wrong    an output that others use is off by more than a tenth of its RMS, at the communication points
    good     all of them are right to a hundredth
"""

import argparse
import csv
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import zipfile

CARDAN = os.environ["CARDAN"]
FMUS = os.environ["CARDAN_FMUS"]
WRONG, GOOD = 0.1, 0.01
PREDICT = ("auto", "auto", "auto", "hold", "hold", "linear", "taylor1", "taylor2", "hermite", "ab2", "ab3")
MARKS = {"\u2714": "green", "\u25CB": "unknown", "\u26A0": "amber", "\u2716": "red"}
ELEMENTS = ("zoh", "foh", "eros", "auto")


# ---- exact solutions ---------------------------------------------------------------------------

def product(a, b):
    columns = list(zip(*b))
    return [[sum(x * y for x, y in zip(row, column)) for column in columns] for row in a]


def exponential(a):
    n = len(a)
    size = max(sum(map(abs, row)) for row in a)
    halvings = max(0, math.ceil(math.log2(size / 0.1))) if size > 0 else 0
    a = [[x / 2**halvings for x in row] for row in a]
    total = [[float(i == j) for j in range(n)] for i in range(n)]
    term = total
    for k in range(1, 14):
        term = [[x / k for x in row] for row in product(term, a)]
        total = [[x + y for x, y in zip(r, s)] for r, s in zip(total, term)]
    for _ in range(halvings):
        total = product(total, total)
    return total


class Exact:
    """z' = M z from z0, at times that are mostly a grid: one exponential per distance."""

    def __init__(self, matrix, start, outputs):
        self.matrix, self.start, self.outputs = matrix, start, outputs
        self.steps = {}

    def courses(self, times):
        z, now = list(self.start), 0.0
        courses = {name: [] for name in self.outputs}
        for t in times:
            h = t - now
            if h > 0:
                key = float(f"{h:.9e}")
                if key not in self.steps:
                    if len(self.steps) > 3000:
                        self.steps.clear()
                    self.steps[key] = exponential([[x * h for x in row] for row in self.matrix])
                z = [sum(x * y for x, y in zip(row, z)) for row in self.steps[key]]
                now = t
            for name, row in self.outputs.items():
                courses[name].append(sum(x * y for x, y in zip(row, z)))
        return courses


# ---- systems -----------------------------------------------------------------------------------

def black_box(folder, name, version):
    """The FMU without what lets others look inside: derivatives of outputs stay, partial ones go."""
    path = os.path.join(folder, f"bb{version}_{name}.fmu")
    if os.path.exists(path):
        return path
    with zipfile.ZipFile(os.path.join(FMUS, f"fmi{version}", name + ".fmu")) as old, zipfile.ZipFile(path, "w") as new:
        for entry in old.infolist():
            data = old.read(entry)
            if entry.filename == "modelDescription.xml":
                text = data.decode()
                for word in ("providesDirectionalDerivatives", "providesDirectionalDerivative"):
                    text = text.replace(f'{word}="true"', f'{word}="false"')
                data = text.encode()
            new.writestr(entry, data)
    return path


def log_uniform(draw, low, high):
    return math.exp(draw.uniform(math.log(low), math.log(high)))


def oscillator(draw, folder, s):
    """Two masses between three spring-dampers, in three ways of cutting."""
    m1, m2 = log_uniform(draw, 0.1, 10), log_uniform(draw, 0.1, 10)
    k1, k2, kc = (log_uniform(draw, 10, 1000) for _ in range(3))
    zeta = draw.choice((0, 0, 0.001, 0.01, 0.05, 0.2, 0.7))
    c1, c2, cc = (2 * zeta * draw.uniform(0.3, 1) * math.sqrt(k * m) for k, m in ((k1, m1), (k2, m2), (kc, min(m1, m2))))
    start = [draw.uniform(-1, 1), draw.uniform(-10, 10), draw.uniform(-1, 1), draw.uniform(-10, 10)]
    kind = draw.choice(("fd", "fd", "fd", "dd", "ff"))
    nature = draw.choice(("open", "open", "closed", "me"))
    version = draw.choice((2, 3))
    values = {"m1": m1, "m2": m2, "k1": k1, "k2": k2, "kc": kc, "c1": c1, "c2": c2, "cc": cc,
              "x1": start[0], "v1": start[1], "x2": start[2], "v2": start[3]}

    def unit(name, *own):
        path = black_box(folder, name, version) if nature == "closed" else os.path.join(FMUS, f"fmi{version}", name + ".fmu")
        given = ", ".join(f"{k}: {values[k]!r}" for k in own)
        more = ", interface: model-exchange" if nature == "me" and "spring" not in name else ""
        return f"{{ fmu: {path}, parameters: {{ {given} }}{more}%s }}"

    one, two, link = ("m1", "k1", "c1", "x1", "v1"), ("m2", "k2", "c2", "x2", "v2"), ("kc", "cc")
    if kind == "fd":
        s.units = {"a": unit("lo_fd1", *one, *link), "b": unit("lo_fd2", *two)}
        s.links = [("b.x2", "a.x2"), ("b.v2", "a.v2"), ("a.f", "b.f")]
    elif kind == "dd":
        s.units = {"a": unit("lo_dd1", *one, *link), "b": unit("lo_dd2", *two, *link)}
        s.links = [("b.x2", "a.x2"), ("b.v2", "a.v2"), ("a.x1", "b.x1"), ("a.v1", "b.v1")]
    else:
        s.units = {"a": unit("lo_ff1", *one), "b": unit("lo_ff2", *two), "k": unit("lo_ffspring", *link)}
        s.links = [("a.x1", "k.x1"), ("a.v1", "k.v1"), ("b.x2", "k.x2"), ("b.v2", "k.v2"), ("k.f", "a.f"), ("k.f", "b.f")]
        if nature == "me":
            s.units["k"] = unit("lo_ffspring", *link).replace(", interface: model-exchange", "")
    s.matrix = [[0, 1, 0, 0], [-(k1 + kc) / m1, -(c1 + cc) / m1, kc / m1, cc / m1],
                [0, 0, 0, 1], [kc / m2, cc / m2, -(k2 + kc) / m2, -(c2 + cc) / m2]]
    s.start = start
    rows = {"a.x1": [1, 0, 0, 0], "a.v1": [0, 1, 0, 0], "b.x2": [0, 0, 1, 0], "b.v2": [0, 0, 0, 1]}
    force = [kc, cc, -kc, -cc]
    rows["a.f"] = rows["k.f"] = force
    s.outputs = {source: rows[source] for source, _ in s.links}
    fast, slow = math.sqrt((max(k1, k2) + kc) / min(m1, m2)), math.sqrt(min(k1, k2) / (max(m1, m2)))
    s.fast = fast
    s.stop = draw.choice((2, 5, 20, 60)) * 2 * math.pi / math.sqrt(fast * slow)
    s.word = f"oscillator {kind} {nature} fmi{version} zeta {zeta}"
    s.black = nature == "closed"


def network(draw, folder, s):
    """R, L and C on either side of a node; a source at the left."""
    r1, r2, r3 = log_uniform(draw, 0.2, 5), log_uniform(draw, 0.2, 5), log_uniform(draw, 1, 50)
    inductor, c1, c2 = log_uniform(draw, 2e-3, 5e-2), log_uniform(draw, 2e-4, 5e-3), log_uniform(draw, 2e-4, 5e-3)
    amplitude, frequency = draw.choice(((10, 5), (10, 50), (0, 1))), None
    amplitude, frequency = amplitude
    offset = draw.choice((0, 0, 50))
    begin = draw.choice((0, 20)) if amplitude or offset else 20
    method = draw.choice(("tr", "trbdf2", "gauss4"))
    name = f"{s.seed}"
    left = f"""left
V1 s 0 sin({offset} {amplitude} {frequency})
R1 s a {r1!r}
L1 a b {inductor!r} ic=0
C1 b 0 {c1!r} ic={begin}
.input il unit=A start=0
B1 b 0 i={{il}}
.tran 10u 1 uic
.output vb=v(b)
.end
"""
    right = f"""right
.input vb unit=V start={begin}
B1 b 0 v={{vb}}
R2 b c {r2!r}
C2 c 0 {c2!r} ic=0
R3 c 0 {r3!r}
.tran 10u 1 uic
.output i2=i(R2) vc=v(c)
.end
"""
    for side, text in (("a", left), ("b", right)):
        with open(os.path.join(folder, f"{name}{side}.cir"), "w", encoding="utf-8") as f:
            f.write(text)
    w = 2 * math.pi * frequency
    # i(L1), v(b), v(c), sin, cos, 1
    s.matrix = [[-r1 / inductor, -1 / inductor, 0, amplitude / inductor, 0, offset / inductor],
                [1 / c1, -1 / (r2 * c1), 1 / (r2 * c1), 0, 0, 0],
                [0, 1 / (r2 * c2), -1 / (r2 * c2) - 1 / (r3 * c2), 0, 0, 0],
                [0, 0, 0, 0, w, 0], [0, 0, 0, -w, 0, 0], [0] * 6]
    s.start = [0, begin, 0, 0, 1, 1]
    s.outputs = {"a.vb": [0, 1, 0, 0, 0, 0], "b.i2": [0, 1 / r2, -1 / r2, 0, 0, 0]}
    s.links = [("a.vb", "b.vb"), ("b.i2", "a.il")]
    s.fast = max(1 / (r2 * c1) + 1 / (r2 * c2), 1 / math.sqrt(inductor * c1), w)
    s.units = {x: f"{{ circuit: {name}{x}.cir, solver: {{ method: {method}, step: INNER }}%s }}" for x in "ab"}
    slow = min(r1 / inductor, 1 / ((r2 + r3) * c2))
    s.stop = draw.choice((2, 5, 20)) / slow
    s.word = f"network {method} {amplitude} V {frequency} Hz + {offset} V"
    s.black = False


class System:
    """Everything about one system, drawn from its seed."""

    def __init__(self, seed, folder):
        draw = random.Random(seed)
        self.seed = seed
        (oscillator if draw.random() < 0.75 else network)(draw, folder, self)
        self.step = float(f"{log_uniform(draw, 0.004, 1.2) / self.fast:.3g}")
        steps = min(max(round(self.stop / self.step), 40), 5000)
        self.stop = steps * self.step
        self.predict = draw.choice(PREDICT)
        self.scheme = draw.choice(("jacobi", "gauss-seidel"))
        way = draw.choice(("plain", "plain", "plain", "plain", "rates", "iterate", "control", "element", "element"))
        if way == "control" and steps > 2500:
            way = "plain"
        self.way = way
        run = {"step": f"{self.step!r} s", "stop": f"{self.stop!r} s", "predict": self.predict, "scheme": self.scheme}
        rates = {name: "" for name in self.units}
        self.every = dict.fromkeys(self.units, 1)  # ticks of a unit: its outputs are those of its own communication points
        if way == "rates":
            slow = draw.choice(sorted(rates))
            self.every[slow] = draw.choice((2, 4, 10))
            rates[slow] = f", step: {self.step * self.every[slow]!r} s"
        if way == "iterate":
            run["iterate"] = "true"
        if way == "control":
            run["control"] = repr(10 ** draw.uniform(-3 if self.predict == "hold" else -5, -1.5))
            del run["step"]
        element = ""
        if way == "element":
            algorithm = draw.choice(ELEMENTS)
            delay = draw.choice((0, 0, 1, 2, 5))
            channel = f", channel: {{ delay: {delay * self.step!r} s }}" if delay else ""
            element = f", coupling: {{ algorithm: {algorithm}{channel} }}"
            self.way = f"{algorithm} {delay}"
        alone = draw.choice((None, None, draw.randrange(len(self.links))))
        self.settings = f"{self.word}; {self.way} {self.predict} {self.scheme}, {steps} steps, {self.step * self.fast:.3g} of the fastest"
        lines = ["cardan: 1", "units:"]
        for name, text in self.units.items():
            text = text.replace("INNER", f"{self.step / 20!r} s")
            lines.append(f"  {name}: {text % rates[name]}")
        lines.append("connections:")
        for i, (source, target) in enumerate(self.links):
            lines.append(f"  - {{ from: {source}, to: {target}{element if alone in (None, i) else ''} }}")
        if way == "control":  # rows at a grid: one exponential for all of them
            lines.append(f"results: {{ interval: {self.stop / 400!r} s }}")
        lines.append("run: { " + ", ".join(f"{k}: {v}" for k, v in run.items()) + " }")
        self.text = "\n".join(lines) + "\n"
        self.name = f"{seed}.yaml"
        with open(os.path.join(folder, self.name), "w", encoding="utf-8") as f:
            f.write(self.text)


# ---- one attack --------------------------------------------------------------------------------

def rms(values):
    return math.sqrt(sum(x * x for x in values) / len(values)) if values else 0.0


def cardan(folder, *arguments):
    return subprocess.run([CARDAN, *arguments], cwd=folder, capture_output=True, text=True, timeout=900, check=False)


class Outcome:
    """What the command said, and what is true."""

    def __init__(self, system, folder):
        record, table = f"{system.seed}.mf4", f"{system.seed}.csv"
        done = cardan(folder, "run", system.name, "--json", "-o", record)
        self.code, self.said = done.returncode, done.stderr
        self.verdict = json.loads(done.stdout) if done.stdout else {}
        cardan(folder, "run", system.name, "-q", "-o", table)
        cardan(folder, "report", record, "-o", f"{system.seed}.md")
        self.mark = "?"
        try:
            with open(os.path.join(folder, f"{system.seed}.md"), encoding="utf-8") as f:
                text = f.read()
            found = [(text.find(c), word) for c, word in MARKS.items() if c in text]
            self.mark = min(found)[1] if found else "?"
        except OSError:
            pass
        self.errors = self.compare(system, os.path.join(folder, table))
        self.worst = max(self.errors.values(), default=math.nan)
        for name in (record, table, f"{system.seed}.md"):
            try:
                os.remove(os.path.join(folder, name))
            except OSError:
                pass

    @staticmethod
    def compare(system, path):
        try:
            with open(path, newline="", encoding="utf-8") as f:
                rows = list(csv.reader(f))
        except OSError:
            return {}
        columns = {name: [float(row[i]) for row in rows[1:]] for i, name in enumerate(rows[0])}
        exact = Exact(system.matrix, system.start, system.outputs).courses(columns["time"])
        errors = {}
        for name, course in exact.items():
            every = system.every[name.split(".")[0]]
            course = course[::every]
            e = rms([x - y if abs(x) < 1e150 else 1e150 for x, y in zip(columns[name][::every], course)])
            errors[name] = e / rms(course) if rms(course) > 0 else math.nan
        return errors


KNOWN = (
    # Died away after a large beginning: green before, wrong by a fifth of the RMS.
    ("decays", """cardan: 1
units:
  a: { fmu: FMUS/fmi3/lo_fd1.fmu, parameters: { m1: 1, k1: 100, c1: 10, x1: 1, v1: -10, kc: 100, cc: 8 } }
  b: { fmu: FMUS/fmi3/lo_fd2.fmu, parameters: { m2: 1, k2: 100, c2: 10, x2: -1, v2: 5 } }
connections: [ b.x2 -> a.x2, b.v2 -> a.v2, a.f -> b.f ]
run: { step: 20 ms, stop: 60 s, predict: hold }
""", [[0, 1, 0, 0], [-200, -18, 100, 8], [0, 0, 0, 1], [100, 8, -200, -18]], [1, -10, -1, 5],
     {"b.x2": [0, 0, 1, 0], "b.v2": [0, 0, 0, 1], "a.f": [100, 8, -100, -8]}),
)


class Known:
    """A system that was green and wrong."""

    def __init__(self, name, text, matrix, start, outputs, folder):
        self.seed, self.name, self.settings, self.black = name, f"{name}.yaml", name, False
        self.matrix, self.start, self.outputs = matrix, start, outputs
        self.every = dict.fromkeys("abk", 1)
        with open(os.path.join(folder, self.name), "w", encoding="utf-8") as f:
            f.write(text.replace("FMUS", FMUS))


class Rates:
    """What came out of many attacks."""

    def __init__(self):
        self.tally, self.silent, self.noisy, self.good = {}, [], [], 0

    def add(self, system, out):
        kind = ("failed" if out.code not in (0, 3) or math.isnan(out.worst) else
                "wrong" if out.worst > WRONG else "good" if out.worst < GOOD else "between")
        key = (kind, out.mark, out.code)
        self.tally[key] = self.tally.get(key, 0) + 1
        line = f"{system.seed}: {kind}, {out.mark}, exit {out.code}, off by {100 * out.worst:.3g} % of RMS: {system.settings}"
        if kind == "failed" or (kind == "wrong" and out.mark not in ("amber", "red")):
            self.silent.append(line)
        self.good += kind == "good"
        if kind == "good" and out.mark != "green":
            self.noisy.append(line)
        return kind

    def report(self):
        for key in sorted(self.tally):
            print(*key, self.tally[key])
        print(f"wrong and silent, or failed: {len(self.silent)}")
        print("\n".join(self.silent))
        print(f"good, and not green: {len(self.noisy)} of {self.good}")
        print("\n".join(self.noisy))
        return not self.silent and len(self.noisy) <= max(1, 0.05 * self.good)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--list", help="a line of JSON per system")
    o = parser.parse_args()
    rates = Rates()
    log = open(o.list, "w", encoding="utf-8") if o.list else None
    with tempfile.TemporaryDirectory() as folder:
        for case in KNOWN:
            system = Known(*case, folder)
            out = Outcome(system, folder)
            assert out.worst > WRONG, out.worst
            rates.add(system, out)
        for seed in range(o.first, o.first + o.count):
            system = System(seed, folder)
            out = Outcome(system, folder)
            kind = rates.add(system, out)
            if log:
                v = {k: x for k, x in out.verdict.items() if k in ("flows", "couplings", "guard", "advice", "worst_error", "worst_defect", "worst_part")}
                log.write(json.dumps({"seed": seed, "kind": kind, "mark": out.mark, "code": out.code, "errors": out.errors, "worst": out.worst,
                                      "settings": system.settings, "note": out.verdict.get("error_note"), **v}) + "\n")
                log.flush()
    return 0 if rates.report() else 1


if __name__ == "__main__":
    sys.exit(main())
