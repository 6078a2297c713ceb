#!/usr/bin/env python3
"""MF4 files of Cardan read by asammdf: every bit, finished and killed at any moment.

record_peer (the first argument) writes them through the recorder.
"""

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
from asammdf import MDF

from golden import ALL, TMP, Checks
from recorded import ATTACHMENTS, COMMENTS, EVENTS, LABELS, ROWS, UNITS, fast, same, slow

RECORD = sys.argv[1]


def texts(samples):
    return [bytes(s).split(b"\0")[0].decode() for s in samples]


def check_group(checks, what, mdf, group, expected):
    found = mdf.groups[group]
    checks.true(f"{what}: channels of group {group}",
                [c.name for c in found.channels] == list(expected),
                " ".join(c.name for c in found.channels))
    for name, values in expected.items():
        signal_ = mdf.get(name, group=group, raw=True)
        samples = signal_.samples
        text = same(values, texts(samples) if isinstance(values, list) else samples)
        checks.true(f"{what}: {name}", not text, text or f"{len(samples)} values, all bits")
        if not isinstance(values, list):
            stamps = same(expected["time"], signal_.timestamps)
            checks.true(f"{what}: times of {name}", not stamps, stamps)


def check_description(checks, mdf):
    for group in (0, 1):
        for channel in mdf.groups[group].channels:
            name = channel.name
            if name == "time":
                checks.true("the master's unit is s, its type time",
                            (channel.unit, channel.channel_type, channel.sync_type) == ("s", 2, 1))
                continue
            checks.true(f"unit and comment of {name}",
                        (channel.unit, channel.comment) ==
                        (UNITS.get(name, ""), COMMENTS.get(name, "")),
                        f"{channel.unit!r} {channel.comment!r}")
    names = [g.channel_group.acq_name for g in mdf.groups]
    checks.true("rasters have their names", names == ["1 ms", "10 ms", "never", "once"], str(names))
    on = texts(mdf.get("on").samples)
    checks.true("Booleans read false and true",
                on == ["true" if v else "false" for v in fast(ROWS)["on"]])
    gear = mdf.get("gear").samples
    wrong = [k for k, v in enumerate(fast(ROWS)["gear"])
             if v in LABELS and bytes(gear[k]).split(b"\0")[0].decode() != LABELS[v]]
    checks.true("enumerations read as their labels", not wrong, str(wrong[:3]))
    checks.true("the title is the file's comment", "a &lt;test&gt; &amp; more" in
                mdf.header.comment, mdf.header.comment)
    checks.true("start time to the nanosecond", mdf.header.abs_time == 1700000000123456789,
                str(mdf.header.abs_time))
    tool = mdf.file_history[0].comment
    checks.true("the history names the tool", "<tool_id>cardan</tool_id>" in tool, tool)


def check_extras(checks, mdf, events, attachments):
    found = [(e.name, e.comment, e.sync_base * e.sync_factor) for e in mdf.events]
    checks.true(f"{len(events)} events", found == events, str(found))
    found = [(a.file_name, a.mime, bytes(a.extract())) for a in mdf.attachments]
    checks.true(f"{len(attachments)} attachments", found == attachments,
                str([(n, m, len(d)) for n, m, d in found]))


def finished(checks):
    path = os.path.join(TMP, "finished.mf4")
    subprocess.run([RECORD, "finish", path], check=True, timeout=60)
    with MDF(path) as mdf:
        checks.true("finished: version 4.10", mdf.version == "4.10" and
                    mdf.identification.file_identification == b"MDF     ", mdf.version)
        check_group(checks, "finished", mdf, 0, fast(ROWS))
        check_group(checks, "finished", mdf, 1, slow(ROWS // 10))
        check_group(checks, "finished", mdf, 2, {"time": np.zeros(0),
                                                 "never": np.zeros(0, np.int32)})
        check_group(checks, "finished", mdf, 3, {"time": np.array([0.005]),
                                                 "once": np.array([-7], np.int32)})
        check_description(checks, mdf)
        check_extras(checks, mdf, EVENTS, ATTACHMENTS)


def killed(checks, after):
    """After `after` thousand rows were handed over, wherever the writer is then."""
    path = os.path.join(TMP, "killed.mf4")
    with subprocess.Popen([RECORD, "endless", path], stdout=subprocess.PIPE) as child:
        got = 0
        while got < after:
            piece = child.stdout.read1(after - got)
            if not piece:
                break
            got += len(piece)
        child.send_signal(signal.SIGKILL)
    with open(path, "rb") as f:
        checks.true(f"killed after {after}000 rows: the file says that it is unfinished",
                    f.read(8) == b"UnFinMF ")
    with MDF(path) as mdf:
        what = f"killed after {after}000 rows"
        for group, rows in ((0, fast), (1, slow)):
            count = mdf.groups[group].channel_group.cycles_nr
            text = ""
            for name, values in rows(count).items():
                samples = mdf.get(name, group=group, raw=True).samples
                text = text or same(values, texts(samples) if isinstance(values, list)
                                    else samples)
            checks.true(f"{what}: {count} rows of group {group}, all bits", not text, text)
            if group == 0 and after >= 20:
                checks.true(f"{what}: most of them are there", count >= 1000 * after - 15000,
                            str(count))
        check_extras(checks, mdf, [e for e in EVENTS[:2]][:len(mdf.events)], ATTACHMENTS[:3])


def cut_off(checks):
    """A file that lost its end, wherever: finished by the function that a guard calls."""
    path, cut = os.path.join(TMP, "killed.mf4"), os.path.join(TMP, "cut.mf4")
    with open(path, "rb") as f:
        whole = f.read()
    draw = random.Random(1)
    counts = set()
    for size in [draw.randrange(20000, len(whole)) for _ in range(20)] + [len(whole)]:
        with open(cut, "wb") as f:
            f.write(whole[:size])
        subprocess.run([RECORD, "mend", cut], check=True, timeout=60)
        with MDF(cut) as mdf:
            text = "" if mdf.identification.file_identification == b"MDF     " else "unfinished"
            for group, rows in ((0, fast), (1, slow)):
                count = mdf.groups[group].channel_group.cycles_nr
                counts.add(count)
                for name, values in rows(count).items():
                    samples = mdf.get(name, group=group, raw=True).samples
                    text = text or same(values, texts(samples) if isinstance(values, list)
                                        else samples)
        checks.true(f"cut off after {size} bytes and finished: rows are whole", not text, text)
    checks.true("some end earlier", len(counts) > 3, str(counts))


def counted(path):
    """Records of the first two groups, as the file says now."""
    try:
        with MDF(path) as mdf:
            return [g.channel_group.cycles_nr for g in mdf.groups[:2]]
    except Exception:  # not even a head yet
        return [0, 0]


def slowly(checks):
    """A run that records little: its rows are in the file before long, each raster's."""
    path = os.path.join(TMP, "slowly.mf4")
    with subprocess.Popen([RECORD, "idle", path], stdout=subprocess.PIPE) as child:
        child.stdout.read(1)
        end = time.monotonic() + 60  # a guard against hanging
        while counted(path) != [300, 30] and time.monotonic() < end:
            time.sleep(0.05)
        child.send_signal(signal.SIGKILL)
    with MDF(path) as mdf:
        check_group(checks, "killed while idle", mdf, 0, fast(300))
        check_group(checks, "killed while idle", mdf, 1, slow(30))
        check_extras(checks, mdf, EVENTS[:1], ATTACHMENTS[:3])


def main():
    checks = Checks(__doc__)
    finished(checks)
    slowly(checks)
    for after in (1, 2, 3, 5, 8, 13, 20, 21, 22, 34, 55, 89) if ALL else (1, 3, 8, 21):
        killed(checks, after)
    cut_off(checks)
    checks.end()


if __name__ == "__main__":
    main()
