"""Circuits exported as C: what they compute, on the host and on boards, is what cardan circuit does.

The four circuits of Rodriguez (2021, 3.4) with their methods and steps, and one that has every kind of part,
waveform and use in it. In double precision results are the same bits; where libm differs (a board's is newlib),
and in single precision, they are within 1e-6 of the largest value.
"""
import csv
import os
import re
import subprocess

import boards

CARDAN = os.environ["CARDAN"]
EXAMPLES = os.path.join(boards.HERE, "..", "..", "examples", "circuits")
DATA = os.path.join(boards.HERE, "data")
CIRCUITS = {  # file, options, steps
    "rlc": (os.path.join(EXAMPLES, "rlc.cir"), ["--method", "tr"], 4000),
    "ladder": (os.path.join(DATA, "ladder.cir"), ["--method", "bdf3"], 400),
    "rectifier": (os.path.join(DATA, "rectifier.cir"), ["--method", "tr"], 2000),
    "motor": (os.path.join(EXAMPLES, "pmsm.cir"), ["--method", "bdf2"], 1000),
    "parts": (os.path.join(DATA, "parts.cir"), ["--method", "trbdf2"], 1000),
}


class Model:
    def __init__(self, folder, name, single=False, extra=()):
        self.path, options, self.steps = CIRCUITS[name]
        self.options = [*options, *extra]
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        self.file = os.path.join(folder, "model.c")
        precision = ["--precision", "single"] if single else []
        self.said = boards.checked([CARDAN, "export", "c", self.path, "--name", "model", "-o", self.file,
                                    *self.options, *precision])
        with open(os.path.join(folder, "model.h"), encoding="utf-8") as f:
            header = f.read()
        self.inputs = re.findall(r"^// u\[\d+\].* begins with (\S+)$", header, re.M)

    def run(self, target, every=1, flags=()):
        """Rows of outputs, and the most instructions that a step took (0 on the host)."""
        program = os.path.join(self.folder, target)
        inputs = "".join(x + "," for x in self.inputs)
        boards.build(target, [self.file, os.path.join(boards.HERE, "model.c")], program,
                     ["-I", self.folder, "-DSTEPS=%d" % self.steps, "-DEVERY=%d" % every,
                      "-DINPUTS=%s" % inputs, *flags])
        lines = boards.run(target, program).splitlines()
        return [boards.numbers(line) for line in lines[:-1]], boards.numbers(lines[-1])[0]

    def reference(self, form="dae"):
        result = os.path.join(self.folder, "reference.csv")
        with open(self.path, encoding="utf-8") as f:
            step = re.search(r"^\.tran (\S+)", f.read(), re.M).group(1)
        unit = {"m": 1e-3, "u": 1e-6}.get(step[-1])
        seconds = float(step[:-1]) * unit if unit else float(step)
        boards.checked([CARDAN, "circuit", self.path, "--form", form, "--stop",
                        repr((self.steps + 0.25) * seconds), "-o", result, *self.options])
        with open(result, encoding="utf-8") as f:
            rows = [row for row in csv.reader(f) if row and re.match(r"[-0-9.]", row[0])]
        return [[float(x) for x in row[1:]] for row in rows]


def worst(rows, reference):
    """The largest difference, each output relative to its largest value."""
    worst_of_all = 0.0
    for i in range(len(reference[0])):
        scale = max(abs(row[i]) for row in reference)
        assert scale > 0, "output %d is always 0: nothing is compared" % i
        worst_of_all = max(worst_of_all, max(abs(a[i] - b[i]) for a, b in zip(rows, reference)) / scale)
    return worst_of_all
