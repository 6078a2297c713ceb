"""Twins exported as C for libcardan-core: the two of Rodriguez (2021, 4.4.4), a junction whose losses are not known
(states and a source) and values of parts (extended), and that of examples/prototype, which has an input."""
import csv
import math
import os
import re

import boards
import core

DATA = os.path.join(boards.HERE, "data")
ROWS, EVERY = {"junction": 300, "values": 60, "machine": 300}, 10  # one of values, in which matrices are made anew, takes long on a board
TWINS = {"junction": os.path.join(DATA, "junction.yaml"), "values": os.path.join(DATA, "values.yaml"),
         "machine": os.path.join(core.ROOT, "examples", "prototype", "machine_twin.yaml")}


def noise(count):
    state = 1
    for _ in range(count):
        state = (state * 1664525 + 1013904223) % 2**32
        yield (state - 2**31) / 2**31  # of variance 1/3


class Twin:
    def __init__(self, folder, name):
        self.folder, self.path, self.count = folder, TWINS[name], ROWS[name]
        self.file = os.path.join(folder, "twin.c")
        os.makedirs(folder, exist_ok=True)
        self.said = boards.checked([core.CARDAN, "export", "c", self.path, "--name", "twin", "-o", self.file])
        with open(os.path.join(folder, "twin.h"), encoding="utf-8") as f:
            header = f.read()
        self.sensors, self.outputs, self.sources, self.values = (re.findall(r"^    twin_%s_(\w+) = \d+,$" % kind, header, re.M)
                                                                 for kind in ("sensor", "output", "source", "value"))
        self.step = float(re.search(r"^#define twin_STEP (\S+)", header, re.M).group(1))
        self.measure()

    def measure(self):
        """What the network says of itself, with noise, a value that is missing and one that is wrong, for the host and for twin.c."""
        with open(self.path, encoding="utf-8") as f:
            netlist = re.search(r"^circuit: (\S+)", f.read(), re.M).group(1)
        truth = os.path.join(self.folder, "truth.csv")
        boards.checked([core.CARDAN, "circuit", os.path.join(os.path.dirname(self.path), netlist), "--method", "tr", "--step", repr(self.step),
                        "--stop", repr((self.count + 0.25) * self.step), "-o", truth])
        with open(truth, encoding="utf-8") as f:
            lines = [row for row in csv.reader(f) if row and not row[0].startswith("#")]
        columns = [next(k for k, name in enumerate(lines[0]) if name.split(" ")[0] == s) for s in self.sensors]
        rows = [[float(row[k]) for k in columns] for row in lines[1:] if re.match(r"[-0-9.]", row[0])][1:self.count + 1]
        assert len(rows) == self.count, len(rows)
        for row, *random in zip(rows, *[iter(noise(self.count * len(columns)))] * len(columns)):
            row[:] = [y + 0.8 * r for y, r in zip(row, random)]
        rows[20][0], rows[33][1] = None, rows[33][1] + 40
        with open(os.path.join(self.folder, "measured.csv"), "w", encoding="utf-8") as f:
            f.write("time," + ",".join(self.sensors) + "\n")
            for n, row in enumerate(rows):
                f.write(",".join([repr((n + 1) * self.step)] + ["" if y is None else repr(y) for y in row]) + "\n")
        with open(os.path.join(self.folder, "measured.h"), "w", encoding="utf-8") as f:
            f.write("#include <math.h>\nenum { ROWS = %d, EVERY = %d, SENSORS = %d, OUTPUTS = %d, SOURCES = %d, VALUES = %d };\n" % (
                self.count, EVERY, len(self.sensors), len(self.outputs), len(self.sources), len(self.values)))
            f.write("static const double measured[ROWS][SENSORS] = {\n")
            for row in rows:
                f.write("    {%s},\n" % ", ".join("NAN" if y is None else y.hex() for y in row))
            f.write("};\n")

    def reference(self):
        """Of cardan twin run: rows of values and the lower ends of their bands."""
        result = os.path.join(self.folder, "result.csv")
        boards.checked([core.CARDAN, "twin", "run", self.path, "-m", os.path.join(self.folder, "measured.csv"), "-o", result, "-q"])
        with open(result, encoding="utf-8") as f:
            lines = [row for row in csv.reader(f) if row and not row[0].startswith("#")]
        names = [name.split(" ")[0] for name in lines[0]]
        at = [names.index(name + more) for name in self.outputs + self.sources + self.values for more in ("", ".low")]
        rows = [[float(row[k]) for k in at] for row in lines[1:] if re.match(r"[-0-9.]", row[0])]
        return rows[-self.count:][EVERY - 1::EVERY]

    def banded(self, rows):
        """Rows of twin.c as those of reference()."""
        logarithmic = 2 * len(self.outputs + self.sources)
        return [[x if k % 2 == 0 else row[k - 1] / math.exp(1.96 * x / row[k - 1]) if k > logarithmic else row[k - 1] - 1.96 * x
                 for k, x in enumerate(row)] for row in rows]

    def run(self, target, flags=(), more=()):
        """Rows, then memory, refused allocations and the most instructions of a step."""
        program = os.path.join(self.folder, "twin_" + target)
        boards.build(target, [os.path.join(boards.HERE, "twin.c"), self.file, core.library(target)[0], *more], program,
                     ["-I", self.folder, "-I", os.path.join(core.ROOT, "include"), *flags])
        *rows, last = boards.run(target, program).splitlines()
        return [boards.numbers(line) for line in rows], boards.numbers(last)
