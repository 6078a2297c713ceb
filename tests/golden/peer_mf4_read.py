#!/usr/bin/env python3
"""Recordings of asammdf (MF4), scipy (MAT 5) and h5py (MAT 7.3), read by Cardan.

The same numbers go into a CSV file with 17 digits; `cardan compare` with tolerance 0 has to find
every bit equal.
"""

import json
import os

import h5py
import numpy as np
import scipy.io
from asammdf import MDF, Signal

from golden import TMP, Checks, cardan

RNG = np.random.default_rng(20261115)
EXACT = ("--tolerance", 0, "--absolute", 0)
SPANS = {}  # CSV file -> its first and last time


def path(name):
    return os.path.join(TMP, name)


def number(x):
    if isinstance(x, (bytes, str)):
        return '"' + (x.decode() if isinstance(x, bytes) else x).replace('"', '""') + '"'
    return "%.17g" % x if isinstance(x, (float, np.floating)) else str(int(x))


def write_csv(name, time, columns):
    SPANS[name] = float(time[0]), float(time[-1])
    with open(path(name), "w", encoding="utf-8") as f:
        f.write(",".join(["time", *columns]) + "\n")
        for k, t in enumerate(time):
            f.write(",".join([number(t), *(number(c[k]) for c in columns.values())]) + "\n")


def equal(checks, what, file, csv, *patterns):
    """`file` has what `csv` has; with patterns only these signals."""
    chosen = [x for p in patterns for x in ("--variables", p)]
    for pair in ((file, csv), (csv, file)):
        text = ""
        try:
            done = cardan("compare", *map(path, pair), *EXACT, *chosen, "--json")
            found = json.loads(done.stdout)
            if (found["start"], found["stop"]) != SPANS[csv]:
                text = f"{found['start']} to {found['stop']} s, expected {SPANS[csv]}"
        except AssertionError as e:
            text = str(e)
        checks.true(f"{what}: {pair[0]} against {pair[1]}", not text, text or "all bits")


def integers(kind, n):
    info = np.iinfo(kind)
    values = RNG.integers(info.min, info.max, n, dtype=kind, endpoint=True)
    values[:2] = info.min, info.max
    return values


def fast(n=3000):
    time = np.arange(n) * 1e-3 + 0.25
    columns = {"sine": np.sin(7 * time),
               "noise": RNG.normal(size=n) * 10.0**RNG.integers(-300, 300, n),
               "single": RNG.normal(size=n).astype("<f4"), "big": RNG.normal(size=n).astype(">f8"),
               "half": RNG.normal(size=n).astype("<f2")}
    for kind in ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8"):
        columns[kind] = integers(kind, n)
    columns["motorola"] = integers("u2", n).astype(">u2")
    columns["motorola4"] = integers("i4", n).astype(">i4")
    return time, columns


def slow(n=200):
    time = np.arange(n) * 0.02
    return time, {"temperature": 20 + RNG.normal(size=n), "level": integers("u1", n)}


def signals(time, columns):
    return [Signal(v, time, name=k) for k, v in columns.items()]


def layouts(checks):
    rasters = fast(), slow()
    for i, (time, columns) in enumerate(rasters):
        write_csv(f"raster{i}.csv", time, columns)
    for version in ("4.00", "4.10", "4.11", "4.20"):
        for compression in (0, 1, 2):
            name = f"layout_{version}_{compression}.mf4"
            with MDF(version=version) as mdf:
                for i, (time, columns) in enumerate(rasters):
                    mdf.append(signals(time, columns), comment=f"raster {i}", common_timebase=True)
                mdf.save(path(name), compression=compression, overwrite=True)
            for i, (time, columns) in enumerate(rasters):
                equal(checks, f"MDF {version}, compression {compression}, raster {i}", name,
                      f"raster{i}.csv", *columns)
    with MDF(version="4.10") as mdf:  # many blocks on a list
        mdf.configure(write_fragment_size=4096)
        mdf.append(signals(*rasters[0]), common_timebase=True)
        mdf.save(path("fragments.mf4"), compression=2, overwrite=True)
        mdf.save(path("fragments0.mf4"), compression=0, overwrite=True)
    for name in ("fragments.mf4", "fragments0.mf4"):
        equal(checks, "data in many small blocks", name, "raster0.csv")


def conversions(checks):
    n = 500
    time = np.arange(n) * 0.01
    raw = integers("u2", n)
    few = (np.arange(n) % 4).astype("u1")
    with MDF(version="4.10") as mdf:
        mdf.append([
            Signal(raw, time, name="linear", unit="km/h", conversion={"a": 0.0078125, "b": -40.5}),
            Signal(raw, time, name="odd", conversion={"a": 0.1, "b": 0.3}),
            Signal(few, time, name="rational", conversion={
                "P1": 0.0, "P2": 2.0, "P3": 1.0, "P4": 0.0, "P5": 0.0, "P6": 4.0}),
            Signal(few, time, name="mode", conversion={
                "val_0": 0, "val_1": 1, "val_2": 2, "text_0": b"off", "text_1": b"on",
                "text_2": b"idle", "default": b"?"})], common_timebase=True)
        mdf.save(path("conversions.mf4"), overwrite=True)
        expected = {k: mdf.get(k).samples for k in ("linear", "odd", "rational")}
    expected["mode"] = few  # labels are kept, the numbers are the values
    write_csv("conversions.csv", time, expected)
    equal(checks, "conversions", "conversions.mf4", "conversions.csv")


def texts(checks):
    n = 300
    time = np.arange(n) * 0.1
    words = [("", "on", "off", "a,b", 'say "x"', "Größe", "3.5")[k % 7] for k in range(n)]
    data = np.array([w.encode() for w in words])
    with MDF(version="4.10") as mdf:
        mdf.append([Signal(data, time, name="word", encoding="utf-8"),
                    Signal(np.arange(n, dtype="f8"), time, name="x")], common_timebase=True)
        for compression in (0, 2):
            mdf.save(path(f"texts{compression}.mf4"), compression=compression, overwrite=True)
    write_csv("texts.csv", time, {"word": words, "x": np.arange(n, dtype="f8")})
    for compression in (0, 2):
        equal(checks, "texts", f"texts{compression}.mf4", "texts.csv")


def invalid(checks):
    n = 100
    time = np.arange(n) * 0.1
    x = np.arange(n, dtype="f8")
    gone = np.arange(n) % 10 == 3
    with MDF(version="4.10") as mdf:
        mdf.append([Signal(x, time, name="x", invalidation_bits=gone),
                    Signal(x + 1, time, name="y")], common_timebase=True)
        mdf.save(path("invalid.mf4"), overwrite=True)
    write_csv("invalid.csv", time, {"x": np.where(gone, np.nan, x), "y": x + 1})
    equal(checks, "values marked as invalid are NaN", "invalid.mf4", "invalid.csv")


def refused(checks):
    write_csv("any.csv", [0.0, 1.0], {"x": [1.0, 2.0]})
    time = np.arange(10) * 0.1
    for version, words in (("3.30", "4.00 to 4.20"), ("2.14", "4.00 to 4.20")):
        with MDF(version=version) as mdf:
            mdf.append([Signal(time, time, name="x")])
            name = mdf.save(path(f"old{version}.mdf"), overwrite=True)
        done = cardan("compare", name, path("any.csv"), code=2)
        checks.true(f"MDF {version} is refused with the way out",
                    words in done.stderr and "asammdf" in done.stderr, done.stderr)
    # An unsorted file: two channel groups below one data group, made from a sorted one.
    with MDF(version="4.10") as mdf:
        mdf.append([Signal(time, time, name="x")])
        mdf.append([Signal(time, time, name="y")])
        mdf.save(path("sorted.mf4"), overwrite=True)
    with open(path("sorted.mf4"), "rb") as f:
        data = bytearray(f.read())
    places = [i for i in range(0, len(data), 8) if data[i:i + 4] == b"##CG"]
    data[places[0] + 24:places[0] + 32] = places[1].to_bytes(8, "little")
    with open(path("unsorted.mf4"), "wb") as f:
        f.write(data)
    done = cardan("compare", path("unsorted.mf4"), path("any.csv"), code=2)
    checks.true("an unsorted file is refused with the way out",
                "not sorted" in done.stderr and "asammdf" in done.stderr, done.stderr)
    with open(path("cut.mf4"), "wb") as f:
        f.write(data[:len(data) - 100])
    done = cardan("compare", path("cut.mf4"), path("any.csv"), code=2)
    checks.true("a file that was cut is refused with an offset", "offset" in done.stderr,
                done.stderr)


def text_attribute(dataset, name, text):
    """Ends with a zero, as MATLAB and libmatio want it; h5py itself would fill up with zeros."""
    kind = h5py.h5t.C_S1.copy()
    kind.set_size(len(text) + 1)
    attribute = h5py.h5a.create(dataset.id, name.encode(), kind, h5py.h5s.create(h5py.h5s.SCALAR))
    attribute.write(np.array(text.encode(), dtype=f"S{len(text) + 1}"), mtype=kind)


def matlab(checks):
    time, columns = fast(500)
    columns = {k: v.astype(v.dtype.newbyteorder("=")) for k, v in columns.items() if k != "half"}
    matrix = RNG.normal(size=(500, 3))
    flags = RNG.integers(0, 2, 500).astype(bool)
    expected = dict(columns, flags=flags.astype("u1"),
                    **{f"matrix[{i + 1}]": matrix[:, i] for i in range(3)})
    write_csv("matlab.csv", time, expected)
    content = dict(columns, time=time, matrix=matrix, flags=flags)
    for compressed in (False, True):
        name = f"scipy{compressed:d}.mat"
        scipy.io.savemat(path(name), content, do_compression=compressed, oned_as="column")
        equal(checks, "scipy" + ", compressed" * compressed, name, "matlab.csv")
    scipy.io.savemat(path("rows.mat"), dict(columns, t=time), oned_as="row")
    equal(checks, "scipy, rows, t", "rows.mat", "matlab.csv", *columns)
    scipy.io.savemat(path("series.mat"), {
        name: {"time": time, "data": values} for name, values in columns.items()})
    equal(checks, "scipy, timeseries", "series.mat", "matlab.csv", *columns)
    classes = {"f8": "double", "f4": "single", "u1": "uint8", "i1": "int8", "u2": "uint16",
               "i2": "int16", "u4": "uint32", "i4": "int32", "u8": "uint64", "i8": "int64"}
    for packed in (None, "gzip"):
        name = f"h5py_{packed}.mat"
        with h5py.File(path(name), "w", userblock_size=512) as f:
            for key, values in content.items():
                stored = values.astype("u1") if values.dtype == bool else values
                # HDF5 has the dimensions the other way round
                d = f.create_dataset(key, data=np.atleast_2d(stored.T), compression=packed)
                kind = "logical" if values.dtype == bool else classes[values.dtype.str[1:]]
                text_attribute(d, "MATLAB_class", kind)
                if kind == "logical":
                    d.attrs["MATLAB_int_decode"] = np.int32(1)
        with open(path(name), "r+b") as f:
            f.write(b"MATLAB 7.3 MAT-file, made by h5py".ljust(116) + bytes(8) + b"\0\2IM")
        equal(checks, f"h5py, compression {packed}", name, "matlab.csv")


def main():
    checks = Checks(__doc__)
    layouts(checks)
    conversions(checks)
    texts(checks)
    invalid(checks)
    refused(checks)
    matlab(checks)
    checks.end()


if __name__ == "__main__":
    main()
