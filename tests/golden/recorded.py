"""The values that tests/results/record_peer.c records, computed again."""

import numpy as np

ROWS = 20000
LABELS = {3: "drive", -1: "reverse", 0: "neutral <&> ä"}
UNITS = {"unit.x": "N.m", "unit.noise": "1", "unit.f32": "rad/s", "v[1]": "m", "v[2]": "m",
         "time_2": "h", "slow.x": "K"}
COMMENTS = {"unit.x": "a seventh, Größe", "on": "a Boolean",
            "time_2": "has the name of the master"}
ATTACHMENTS = [("system.yaml", "application/yaml", "cardan: 1\n# ä\n".encode()),
               ("cardan-run.json", "application/json", (b'{"key": 12}\n' * 417)[:5000]),
               ("empty.txt", "text/plain", b""),
               ("cardan-verdict.json", "application/json", b'{"ok": true}')]
EVENTS = [("start", "", 0.0), ("warning", "x is large, Größe <7>", 1.0),
          ("overrun", "step 12500 took 3 ms", 12.5), ("error", "it broke", 19.75),
          ("stop", "the end", 19.999)]


def noise(i):
    with np.errstate(over="ignore"):
        x = (i.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        x ^= x >> np.uint64(29)
        x *= np.uint64(0xBF58476D1CE4E5B9)
    return x ^ (x >> np.uint64(32))


def fast(count):
    """Name -> what is stored, of the first raster; texts as lists of str."""
    i = np.arange(count, dtype=np.int64)
    n = noise(i)
    raw = n.astype("<u8").tobytes()
    return {
        "time": i * 1e-3,
        "unit.x": i / 7 - 3,
        "unit.noise": (n >> np.uint64(11)).astype(float) * 2.0**-53 - 0.5,
        "unit.f32": (i / 3).astype(np.float32),
        "i8": i.astype(np.int8), "u8": i.astype(np.uint8),
        "i16": (7 * i).astype(np.int16), "u16": (7 * i).astype(np.uint16),
        "i32": n.astype(np.uint32).view(np.int32), "u32": n.astype(np.uint32),
        "i64": n.view(np.int64), "u64": n,
        "on": (i // 100 % 2).astype(np.uint8),
        "gear": i // 50 % 5 - 1,
        "text": ["" if k % 10 == 9 else f"{k // 10} ä" for k in range(count)],
        "raw": [raw[8 * k:8 * k + k % 9].hex() for k in range(count)],
        "v[1]": np.full(count, 4.25),
        "v[2]": np.where(i < 1000, -1.0, 1e300),
        "time_2": i.astype(float),
    }


def slow(count):
    i = np.arange(count, dtype=np.int64)
    return {"time": i * 1e-2, "slow.x": 300 + i / 9, "slow.on": (i % 3 == 0).astype(np.uint8)}


def same(expected, found):
    """Equal in type, length and every bit; a text about the first difference, else ""."""
    if isinstance(expected, list):
        bad = [k for k, (a, b) in enumerate(zip(expected, found)) if a != b]
        if len(expected) != len(found) or bad:
            k = bad[0] if bad else min(len(expected), len(found))
            return f"{len(found)} of {len(expected)} texts, first difference in row {k}: " \
                   f"{list(found)[k:k + 1]!r}"
        return ""
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return f"{found.dtype} {found.shape}, expected {expected.dtype} {expected.shape}"
    bits = f"u{expected.dtype.itemsize}"
    bad = np.flatnonzero(expected.view(bits) != np.ascontiguousarray(found).view(bits))
    if bad.size:
        return f"row {bad[0]}: {found[bad[0]]!r}, expected {expected[bad[0]]!r}"
    return ""
