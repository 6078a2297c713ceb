"""Signals of DBC files decoded and encoded as cantools does it, bit by bit, on random frames."""
import glob
import math
import os
import random
import struct
import subprocess
import sys
import tempfile

import cantools

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import dbc_maker

PEER = sys.argv[1]
FRAMES = 1300000 if "--all" in sys.argv else 20000  # a fifth of them have selectors of no signal
HERE = os.path.dirname(os.path.abspath(__file__))
MADE = 14


def same(a, b):
    return a == b or (isinstance(a, float) and math.isnan(a) and math.isnan(b))


def raw_of(signal, bits):
    """The raw value as cantools has it, out of 64 bits."""
    if signal.conversion.is_float:
        form = "<f" if signal.length == 32 else "<d"
        return struct.unpack(form, struct.pack("<Q", bits)[:signal.length // 8])[0]
    return bits - (1 << 64) if signal.is_signed and bits >> 63 else bits


class Layout:
    """A message, as both know it."""

    def __init__(self, message, names):
        self.message = message
        self.signals = [message.get_signal_by_name(n) for n in names]
        assert sorted(names) == sorted(s.name for s in message.signals), (message.name, names)
        self.form = struct.Struct("<" + "BQd" * len(names) + f"{message.length}s" * 2)
        self.whole = all(s.length <= 53 or s.conversion.is_float for s in self.signals)


def load(path):
    """Messages in the order of the peer; what it says about them is compared."""
    db = cantools.database.load_file(path, encoding="cp1252")
    said = subprocess.run([PEER, path], capture_output=True, text=True, encoding="utf-8")
    assert said.returncode == 0, (path, said.stdout)
    messages, lines = [], []
    for line in said.stdout.split("\n"):
        if line.startswith("BO "):
            lines.append((line.split(), []))
        elif line.startswith("SG "):
            lines[-1][1].append(line)
    for head, signals in lines:
        m = db.get_message_by_name(head[1])
        assert (m.frame_id, m.is_extended_frame, m.is_fd or m.length > 8, m.length) == \
            (int(head[2]), head[3] == "1", head[4] == "1", int(head[5])), (path, head)
        assert math.isclose(float(head[6]), (m.cycle_time or 0) / 1e3), (path, head)
        for line in signals:
            s = m.get_signal_by_name(line.split()[1])
            assert int(line.split()[3]) == len(s.choices or []), (path, line)
            assert f' "{s.unit or ""}" ' in line, (path, line)
        messages.append(Layout(m, [line.split()[1] for line in signals]))
    assert len(messages) == len([m for m in db.messages if m.name != "VECTOR__INDEPENDENT_SIG_MSG"])
    return messages


def check_frame(layout, data, result, counts):
    m = layout.message
    fields = layout.form.unpack(result)
    ours = {s.name: (fields[3 * i + 1], fields[3 * i + 2])
            for i, s in enumerate(layout.signals) if fields[3 * i]}
    try:
        raw = m.decode(data, decode_choices=False, scaling=False)
        scaled = m.decode(data, decode_choices=False)
    except cantools.database.DecodeError:
        counts["no such multiplexor"] += 1
        return
    assert set(raw) == set(ours), (m.name, data.hex(), sorted(raw), sorted(ours))
    inside = layout.whole
    for s in layout.signals:
        if s.name not in ours:
            continue
        bits, value = ours[s.name]
        assert same(raw_of(s, bits), raw[s.name]), (m.name, s.name, data.hex(), bits, raw[s.name])
        theirs = scaled[s.name]
        if isinstance(theirs, int) and abs(theirs) > 1 << 53:
            assert math.isclose(value, theirs, rel_tol=4e-16), (m.name, s.name, value, theirs)
        else:
            assert same(float(theirs), value), (m.name, s.name, data.hex(), value, theirs)
        inside &= (s.minimum is None or s.minimum == s.maximum or s.minimum <= theirs <= s.maximum) and \
            math.isfinite(theirs)
        counts["signals"] += 1
    if any(math.isnan(v) for v in raw.values()):
        counts["with NaN"] += 1
        return
    assert m.encode(raw, scaling=False, strict=False) == fields[-2], (m.name, data.hex())
    counts["encoded by raw values"] += 1
    if inside:
        assert m.encode(scaled, strict=False) == fields[-1], (m.name, data.hex(), fields[-1].hex())
        counts["encoded by values"] += 1


def check_file(path, frames, rng, counts, folder):
    messages = load(path)
    chosen = [rng.randrange(len(messages)) for _ in range(frames)]
    datas = [rng.randbytes(messages[i].message.length) for i in chosen]
    frame_file, result_file = os.path.join(folder, "frames"), os.path.join(folder, "results")
    with open(frame_file, "wb") as f:
        for i, d in zip(chosen, datas):
            f.write(struct.pack("<H", i) + d.ljust(64, b"\0"))
    subprocess.run([PEER, path, frame_file, result_file], check=True)
    with open(result_file, "rb") as f:
        for i, d in zip(chosen, datas):
            check_frame(messages[i], d, f.read(messages[i].form.size), counts)
        assert f.read() == b""
    counts["frames"] += frames


def main():
    rng = random.Random(25)
    counts = dict.fromkeys(["frames", "signals", "encoded by raw values", "encoded by values",
                            "with NaN", "no such multiplexor"], 0)
    with tempfile.TemporaryDirectory() as folder:
        files = sorted(glob.glob(os.path.join(HERE, "data", "*.dbc")))
        for seed in range(MADE):
            files.append(os.path.join(folder, f"made{seed}.dbc"))
            with open(files[-1], "wb") as f:
                f.write(dbc_maker.make_dbc(seed))
        assert len(files) >= 20
        for path in files:
            check_file(path, FRAMES // len(files), rng, counts, folder)
    print(len(files), "files,", ", ".join(f"{v} {k}" for k, v in counts.items()))
    assert counts["encoded by values"] > counts["frames"] / 4
    assert counts["no such multiplexor"] < counts["frames"] / 2


main()
