#!/usr/bin/env python3
"""Captures of Cardan opened by tshark: headers and checksums as it sees them, and every PDU of the
golden files as tools/dcp.lua shows it.

capture_peer (the first argument) writes the captures, tools/dcp.lua is the second, a folder for
files the third. Exit code 77, skipped, where there is no tshark.
"""

import glob
import os
import shutil
import subprocess
import sys

PEER, LUA, TMP = sys.argv[1:4]
HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = sorted(glob.glob(os.path.join(HERE, "golden", "*.txt")))
PORTS = "40001-40002"
bad = 0


def check(what, ok, detail=""):
    global bad
    if not ok:
        bad += 1
        print(f"{what}: {detail}")


def capture(transport, name, files):
    """The path of a capture and the texts of its PDUs."""
    path = os.path.join(TMP, f"peer_{name}_{transport}.pcapng")
    done = subprocess.run([PEER, path, transport, *files], capture_output=True, text=True,
                          check=True)
    return path, done.stdout.splitlines()


def fields(path, names, *options):
    command = ["tshark", "-n", "-X", f"lua_script:{LUA}", "-r", path, "-T", "fields",
               "-E", "separator=|"]
    for n in names:
        command += ["-e", n]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=True)
    complaints = [line for line in done.stderr.splitlines() if "Running as user" not in line]
    check(path, not complaints, "\n".join(complaints[:5]))
    return [line.split("|") for line in done.stdout.splitlines()]


def same(what, got, want):
    check(what, len(got) == len(want), f"{len(got)} PDUs, expected {len(want)}")
    for i, (g, w) in enumerate(zip(got, want)):
        check(f"{what}: PDU {i + 1}", g == w, f"\n  {g}\nexpected\n  {w}")


def checksums(transport):
    path, texts = capture(transport, "golden", GOLDEN)
    rows = fields(path, ["ip.checksum.status", f"{transport}.checksum.status", "frame.protocols"],
                  "-o", "ip.check_checksum:TRUE", "-o", f"{transport}.check_checksum:TRUE")
    check(transport, len(rows) == len(texts), f"{len(rows)} packets, expected {len(texts)}")
    for i, (ip, inner, protocols) in enumerate(rows):
        good = ip == "1" and inner == "1" and f"ip:{transport}" in protocols
        check(f"{transport}: packet {i + 1}", good,
              f"checksums {ip} {inner} (1 is good) in {protocols}")


def golden_by_port(transport):
    path, texts = capture(transport, "golden", GOLDEN)
    got = [r[0] for r in fields(path, ["dcp.summary"], "-o", f"dcp.{transport}_ports:{PORTS}")]
    # An empty datagram is none of the dissector's business.
    same(f"{transport} by port", got, [t if t != "-" or transport == "tcp" else "" for t in texts])


def golden_by_contents(transport):
    """Without a port: all that follows the first PDU that can be nothing else."""
    path, texts = capture(transport, "golden", GOLDEN)
    got = [r[0] for r in fields(path, ["dcp.summary"])]
    first = next((i for i, g in enumerate(got) if g), len(got))
    check(f"{transport} by contents", first < 20, f"the first is number {first + 1}")
    same(f"{transport} by contents", got[first:],
         [t if t != "-" or transport == "tcp" else "" for t in texts[first:]])


def split_over_segments():
    source = os.path.join(TMP, "peer_large.txt")
    payloads = ["ab" * 70000, "cd" * 3, "ef" * 130000]
    with open(source, "w", encoding="utf-8") as f:
        for i, p in enumerate(payloads):
            f.write(f"M>S  f0{i:02x}000700{p}  ; {i}\n")
    path, _ = capture("tcp", "large", [source])
    rows = fields(path, ["dcp.seq", "dcp.data_id", "dcp.length"], "-o", f"dcp.tcp_ports:{PORTS}")
    got = [r for r in rows if r[0]]
    same("split PDUs", got, [[str(i), "7", str(5 + len(p) // 2)] for i, p in enumerate(payloads)])
    check("split PDUs", len(rows) == 2 + 1 + 2, f"{len(rows)} segments, expected 5")


def main():
    if not shutil.which("tshark"):
        print("skipped: there is no tshark (Debian: apt install tshark)")
        return 77
    for transport in ("udp", "tcp"):
        checksums(transport)
        golden_by_port(transport)
        golden_by_contents(transport)
    split_over_segments()
    print("bad:", bad)
    return bad > 0


sys.exit(main())
