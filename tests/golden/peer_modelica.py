#!/usr/bin/env python3
"""Result files of Modelica tools, written here by the byte, by scipy and by h5py: every bit of every
name, alias and constant, in both layouts, both byte orders and both precisions."""

import csv
import json
import os
import struct

import h5py
import numpy as np
import scipy.io

from golden import TMP, Checks, cardan, fmu

# name, description, (data, column from 1, negative: sign changed)
NAMES = [("Time", "Time in [s]", (0, 1)),
         ("motor.phi", "Absolute angle [rad|deg]", (2, 2)),
         ("motor.flange.phi", "The same again [rad|deg]", (2, 2)),
         ("motor.reaction", "Its opposite [N.m]", (2, -3)),
         ("motor.tau", "Torque [N.m]", (2, 3)),
         ("on", "Switch [:#(type=Boolean)]", (2, 4)),
         ("level", "Level in [0, 10]", (2, 5)),
         ("gear", "Ratio, from a list [1:#(type=Integer)]", (2, 5)),
         ("k", "Gain [1]", (1, 2)),
         ("minus_k", "Its negative", (1, -2)),
         ("\u00fcber", "Temperature of the \u00d6lwanne [K|degC]", (1, 3))]
TIMES = np.array([0, 0.25, 0.5, 0.5, 1.0])  # two rows at the event
DATA = np.array([TIMES, [0.1, 1 / 3, -2.5, 2.5, 1e-30], [1, 2, 3, 4.7, -0.0], [0, 0, 0, 1, 1],
                 [3, 1, 4, 1, 5]]).T
CONSTANTS = np.array([[0.0, 1.0], [0.3, 0.3], [293.15, 293.15]]).T
UNITS = {"motor.phi": "rad", "motor.flange.phi": "rad", "motor.reaction": "N.m", "motor.tau": "N.m",
         "on": "", "level": "", "gear": "1", "k": "1", "minus_k": "", "\u00fcber": "K"}


def char_matrix(texts, fill):
    coded = [t.encode() for t in texts]
    width = max(map(len, coded))
    return np.array([list(c.ljust(width, fill)) for c in coded], dtype=np.uint8)


def matrices(lying, precision, once=False, fill=b" ", of=NAMES):
    """Name -> matrix as it stands in the file."""
    found = {"Aclass": char_matrix(["Atrajectory", "1.1", "", "binTrans" if lying else "binNormal"], fill)}
    constants = CONSTANTS[:1] if once else CONSTANTS
    for name, value in (("name", char_matrix([n for n, _, _ in of], fill)),
                        ("description", char_matrix([d for _, d, _ in of], fill)),
                        ("dataInfo", np.array([[t, c, 0, -1] for _, _, (t, c) in of], dtype=np.int32)),
                        ("data_1", constants.astype(precision)), ("data_2", DATA.astype(precision))):
        found[name] = value.T if lying else value
    return found


def write_4(path, content, order):
    """Version 4, see its layout in MathWorks' description: five numbers, the name, columns."""
    kinds = {"float64": 0, "float32": 1, "int32": 2, "uint8": 5}
    with open(path, "wb") as f:
        for name, m in content.items():
            kind = kinds[m.dtype.name]
            mopt = (1000 if order == ">" else 0) + 10 * kind + (1 if m.dtype == np.uint8 else 0)
            f.write(struct.pack(order + "5i", mopt, *m.shape, 0, len(name) + 1))
            f.write(name.encode() + b"\0" + m.astype(m.dtype.newbyteorder(order)).tobytes("F"))


def write_5(path, content):
    """By scipy, compressed; texts as it writes them."""
    texts = {n: np.array([bytes(row).decode("latin-1") for row in m]) if m.dtype == np.uint8 else m
             for n, m in content.items()}
    scipy.io.savemat(path, texts, do_compression=True)


def set_class(dataset, kind):
    as_matlab = h5py.h5t.C_S1.copy()  # of its length, without a zero behind it
    as_matlab.set_size(len(kind))
    h5py.h5a.create(dataset.id, b"MATLAB_class", as_matlab, h5py.h5s.create(h5py.h5s.SCALAR)).write(
        np.array(kind, dtype=f"S{len(kind)}"), mtype=as_matlab)


def sign_73(path):
    with open(path, "r+b") as f:
        f.write(b"MATLAB 7.3 MAT-file".ljust(116) + b" " * 8 + struct.pack("<HH", 0x0200, 0x4D49))


def write_73(path, content):
    with h5py.File(path, "w", userblock_size=512) as f:
        for name, m in content.items():
            text = m.dtype == np.uint8
            d = f.create_dataset(name, data=(m.astype(np.uint16) if text else m).T)
            kind = "char" if text else {"float64": "double", "float32": "single"}.get(m.dtype.name, m.dtype.name)
            set_class(d, kind)
            if text:
                d.attrs["MATLAB_int_decode"] = np.int32(2)
    sign_73(path)


def expected(table, precision):
    data = (DATA if table == 2 else CONSTANTS).astype(precision).astype(float)
    return data[:, 0], {n: (1 if c > 0 else -1) * data[:, abs(c) - 1]
                        for n, _, (t, c) in NAMES if t == table}


def check(checks, what, path, precision, ascii_only=False):
    info = json.loads(cardan("info", path, "--json").stdout)
    names = {s["name"]: s for s in info["signals"]}
    good = "Modelica result" in info["format"]
    good &= [g["rows"] for g in info["groups"]] == [5, 2]
    for name, unit in UNITS.items():
        if ascii_only and not name.isascii():
            continue
        good &= name in names and names[name]["unit"] == unit
    good &= names["level"]["description"] == "Level in [0, 10]"
    good &= names["motor.phi"]["description"] == "Absolute angle"
    for table in (1, 2):
        time, columns = expected(table, precision)
        reference = os.path.join(TMP, "reference.csv")
        with open(reference, "w", newline="", encoding="utf-8") as f:
            out = csv.writer(f)
            wanted = [n for n in columns if n.isascii() or not ascii_only]
            out.writerow(["time", *wanted])
            for i, t in enumerate(time):
                out.writerow([repr(float(t)), *(repr(float(columns[n][i])) for n in wanted)])
        pairs = [a for n in wanted for a in ("--pair", f"{n}={n}")]
        said = cardan("compare", reference, path, "--tolerance", "0", "--absolute", "0", *pairs)
        good &= f"0 of {len(wanted)} signals differ" in said.stdout
    checks.true(what, good)


def all_layouts(checks):
    for lying in (True, False):
        for precision in (np.float32, np.float64):
            name = f"{'binTrans' if lying else 'binNormal'} {precision.__name__}"
            content = matrices(lying, precision)
            path = os.path.join(TMP, "result.mat")
            for order in "<>":
                write_4(path, content, order)
                check(checks, f"MAT 4 {order} {name}", path, precision)
            write_4(path, matrices(lying, precision, fill=b"\0"), "<")
            check(checks, f"MAT 4 filled with zeros {name}", path, precision)
            write_4(path, matrices(lying, precision, once=True), "<")
            check(checks, f"MAT 4 constants once {name}", path, precision)
            scipy.io.savemat(path, {n: m for n, m in content.items() if m.dtype != np.uint8}, format="4")
            rest = {n: m for n, m in content.items() if m.dtype == np.uint8}
            tail = os.path.join(TMP, "tail.mat")
            write_4(tail, rest, "<")
            with open(path, "ab") as f, open(tail, "rb") as t:
                f.write(t.read())
            check(checks, f"MAT 4 by scipy {name}", path, precision)
            # these code texts otherwise: only what all agree on
            content = matrices(lying, precision, of=NAMES[:-1])
            write_5(path, content)
            check(checks, f"MAT 5 {name}", path, precision, ascii_only=True)
            write_73(path, content)
            check(checks, f"MAT 7.3 {name}", path, precision, ascii_only=True)


def others(checks):
    path = os.path.join(TMP, "other.mat")
    # version 1.0, what Dymola exports as plotted
    write_4(path, {"Aclass": char_matrix(["Atrajectory", "1.0", "Stored by Dymola", "binNormal"], b" "),
                   "names": char_matrix(["Time", "x", "y"], b" "), "data": DATA[:, :3].copy()}, "<")
    signals = json.loads(cardan("info", path, "--json").stdout)["signals"]
    checks.true("version 1.0", [(s["name"], s["min"], s["max"]) for s in signals] ==
                [("x", -2.5, 2.5), ("y", 0.0, 4.7)])
    write_4(path, {"Aclass": char_matrix(["AlinearSystem", "1.0", "", "binNormal"], b" ")}, "<")
    checks.true("a linear system is no result",
                "'AlinearSystem'" in cardan("info", path, code=2).stderr)
    for what, change in (("column", ("dataInfo", (4, 1), 9)), ("table", ("dataInfo", (4, 0), 70)),
                         ("fraction", ("dataInfo", (4, 1), 0)), ("absent", ("dataInfo", (4, 0), 7))):
        content = matrices(False, np.float64)
        name, place, value = change
        content[name][place] = value
        write_4(path, content, "<")
        checks.true(f"a wrong {what} is refused", "other.mat: Modelica result: " in
                    cardan("info", path, code=2).stderr)
    write_4(path, matrices(True, np.float64), "<")
    with open(path, "r+b") as f:
        f.truncate(os.path.getsize(path) - 9)
    checks.true("cut off", "cut off" in cardan("info", path, code=2).stderr)
    # it drives a run, is drawn and reported
    write_4(path, matrices(True, np.float64), "<")
    cardan("run", fmu("lo_fd1"), "--input", path, "--input-map", "motor.tau=v2", "--input-unit",
           "motor.tau=m/s", "--predict", "hold", "--stop-time", "1", "--variables", "v2", "-q", "-o", "driven.csv")
    v2 = np.loadtxt(os.path.join(TMP, "driven.csv"), delimiter=",", skiprows=1)
    checks.near("a result as input", 2.0, float(v2[251, 1]), 0.02)
    cardan("plot", path, "-o", "drawn.svg")
    cardan("report", path, "-o", "report.html")
    # rows that were taken back: 0 1 2 2 [3] [3] 2.5 4 with values 0 ... 7
    content = {"Aclass": matrices(True, float)["Aclass"], "name": char_matrix(["time", "x"], b"\0").T,
               "description": char_matrix(["", "x"], b"\0").T,
               "dataInfo": np.array([[0, 1, 0, -1], [2, 2, 0, -1]], dtype=np.int32).T,
               "data_1": np.zeros((1, 2)),
               "data_2": np.array([[0, 1, 2, 2, 3, 3, 2.5, 4.0], np.arange(8.0)])}
    back = os.path.join(TMP, "back.mat")
    write_4(back, content, "<")
    with open(os.path.join(TMP, "kept.csv"), "w", encoding="utf-8") as f:
        f.write("time,x\n0,0\n1,1\n2,2\n2,3\n2.5,6\n4,7\n")
    done = cardan("compare", "kept.csv", back, "--tolerance", "0", "--absolute", "0")
    checks.true("rows that were taken back", "0 of 1 signal differs" in done.stdout and
                "2 rows that were taken back are left out, the first is row 5" in done.stderr, done.stderr)
    # a constant against a signal that is only equal at both ends
    with open(os.path.join(TMP, "bulge.csv"), "w", encoding="utf-8") as f:
        f.write("time,k\n0,0.3\n0.5,0.4\n1,0.3\n")
    said = cardan("compare", path, "bulge.csv", "--pair", "k=k", code=1).stdout
    checks.true("a constant is compared at all times", "k=k" in said and " 0.4 " in said, said)
    # cells that hold themselves, in version 7.3
    with h5py.File(path, "w", userblock_size=512) as f:
        cell = f.create_dataset("c", (1, 1), dtype=h5py.ref_dtype)
        set_class(cell, "cell")
        cell[0, 0] = cell.ref
    sign_73(path)
    checks.true("a cell that holds itself", "more than 32 deep" in cardan("info", path, code=2).stderr)
    # 20,000 aliases of a long signal cost their names alone
    rows = 20000
    names = ["time"] + [f"alias{i}" for i in range(20000)]
    write_4(path, {"Aclass": matrices(True, float)["Aclass"], "name": char_matrix(names, b"\0").T,
                   "description": char_matrix(["x"] * len(names), b"\0").T,
                   "dataInfo": np.array([[0, 1, 0, -1]] + [[2, (-1) ** i * 2, 0, -1] for i in range(20000)],
                                        dtype=np.int32).T,
                   "data_1": np.zeros((1, 2)),
                   "data_2": np.array([np.arange(rows) * 1.0, np.ones(rows)])}, "<")
    limited = f"ulimit -v 2000000; exec {os.environ['CARDAN']} compare {path} {path}"
    checks.true("aliases share their values (3.2 GB otherwise)", os.system(f"({limited}) >/dev/null") == 0)


def main():
    checks = Checks(__doc__)
    all_layouts(checks)
    others(checks)
    checks.end()


if __name__ == "__main__":
    main()
