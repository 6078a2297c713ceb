#!/usr/bin/env python3
"""MAT files of Cardan, version 5 read by scipy and version 7.3 by h5py: every bit.

record_peer (the first argument) writes them through the recorder.
"""

import os
import subprocess
import sys

import h5py
import numpy as np
import scipy.io

from golden import TMP, Checks
from recorded import ATTACHMENTS, COMMENTS, LABELS, ROWS, UNITS, fast, same

RECORD = sys.argv[1]
VARIABLES = {"unit.x": "unit_x", "unit.noise": "unit_noise", "unit.f32": "unit_f32",
             "v[1]": "v_1", "v[2]": "v_2"}
# The column "time" is the variable time_2, since time is the time.
NAMES = {"time_2": "time"}


class Version5:
    def __init__(self, path):
        self.data = scipy.io.loadmat(path)

    def numbers(self, name):
        return self.data[name].ravel()

    def texts(self, name):
        return [str(t).rstrip() for t in self.data[name]]

    def text(self, name):
        value = self.data[name]
        return str(value[0]) if value.size else ""

    def is_logical(self, name):
        return True  # scipy drops the mark

    def signals(self):
        rows = []
        for s in self.data["signals"].ravel():
            rows.append({f: str(s[f][0]) if s[f].size else "" for f in s.dtype.names})
        return rows


class Version73:
    def __init__(self, path):
        self.data = h5py.File(path)

    def numbers(self, name):
        return self.data[name][()].ravel()

    def chars(self, dataset):
        if "MATLAB_empty" in dataset.attrs:
            return [""]
        return [bytes(np.ascontiguousarray(row, "<u2")).decode("utf-16-le")
                for row in dataset[()].T]

    def texts(self, name):
        return [t.rstrip() for t in self.chars(self.data[name])]

    def text(self, name):
        return self.chars(self.data[name])[0]

    def is_logical(self, name):
        return self.data[name].attrs["MATLAB_class"] == b"logical"

    def signals(self):
        group = self.data["signals"]
        columns = {f: [self.chars(self.data[r])[0] for r in group[f][()].ravel()] for f in group}
        return [dict(zip(columns, row)) for row in zip(*columns.values())]


def check(checks, what, mode, reader):
    path = os.path.join(TMP, f"{mode}.mat")
    subprocess.run([RECORD, mode, path], check=True, timeout=60)
    with open(path, "rb") as f:
        head = f.read(128)
    checks.true(f"{what}: its head says so", (b"MATLAB 7.3" in head) == (reader is Version73),
                head[:20].decode())
    file = reader(path)
    expected = fast(ROWS)
    for name, values in expected.items():
        variable = VARIABLES.get(name, name)
        is_text = isinstance(values, list)
        text = same(values, file.texts(variable) if is_text else file.numbers(variable))
        checks.true(f"{what}: {name} as {variable}", not text, text or "all bits")
    checks.true(f"{what}: Booleans are logical", file.is_logical("on"))
    signals = file.signals()
    found = [(s["variable"], s["name"], s["unit"], s["description"]) for s in signals]
    wanted = [(VARIABLES.get(n, n), NAMES.get(n, n), UNITS.get(n, ""), COMMENTS.get(n, ""))
              for n in expected if n != "time"]
    checks.true(f"{what}: signals", found == wanted, str(found[:3]))
    labels = [s["labels"] for s in signals if s["name"] == "gear"]
    checks.true(f"{what}: labels", labels == ["; ".join(f"{k} = {v}" for k, v in LABELS.items())],
                str(labels))
    for name, _, data in ATTACHMENTS:
        variable = name.split(".")[0].replace("-", "_")
        checks.true(f"{what}: {variable}", file.text(variable) == data.decode())


def main():
    checks = Checks(__doc__)
    check(checks, "version 5", "one5", Version5)
    check(checks, "version 7.3", "one73", Version73)
    check(checks, "by itself version 5", "one", Version5)
    checks.end()


if __name__ == "__main__":
    main()
