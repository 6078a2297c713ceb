#!/usr/bin/env python3
"""Units of datagrams against partners in Python, over loopback.

e2e_frames.py CARDAN: a stream of TCP that is cut at any byte, a drive over UDP through the emulator of bad
networks with what it counts, the capture, a stand-in for a partner that falls silent.
"""
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading

LAYOUT = """layout: 1
kind: { at: 0, type: uint8 }
messages:
  set: { direction: send, id: 1, cycle: 10 ms, counter: n,
         fields: { n: { at: 1, type: uint16 }, u: { type: float64 } } }
  a: { direction: receive, id: 2, cycle: 10 ms, counter: n, checksum: { field: c, type: crc32 },
       fields: { n: { at: 1, type: uint16 }, y: { type: float64, byte_order: big }, c: { type: uint32 } } }
  b: { direction: receive, id: 3, cycle: 50 ms, fields: { z: { at: 1, type: int32, scale: 0.001 } } }
"""
SYSTEM = """cardan: 1
units:
  source: { signal: { shape: ramp, amplitude: 5, duration: 1 s } }
  far: { frames: "%s", layout: l.yaml, link: { %s }%s }
connections: [ { from: source.y, to: far.set.u } ]
run: { step: 10 ms, stop: %g s }
results: r.csv
"""


def crc(data):
    import binascii
    return data + struct.pack("<I", binascii.crc32(data))


def message_a(n, y):
    return crc(struct.pack("<BH", 2, n % 65536) + struct.pack(">d", y))


def message_b(z):
    return struct.pack("<Bi", 3, round(1000 * z))


def run(cardan, folder, address, link="", more="", stop=0.5):
    with open(os.path.join(folder, "l.yaml"), "w") as f:
        f.write(LAYOUT)
    with open(os.path.join(folder, "s.yaml"), "w") as f:
        f.write(SYSTEM % (address, link, more, stop))
    done = subprocess.run([cardan, "run", "s.yaml", "--json"], cwd=folder, capture_output=True, text=True, timeout=60)
    return done, json.loads(done.stdout)


def link_of(result):
    return next(u["link"] for u in result["units"] if u["name"] == "far")


class Emulator:
    """Between the run and a partner at `to`; `listen` is its address, `counts` what it says at the end."""

    def __init__(self, cardan, to, *more):
        transport = to.split(":")[0]
        self.process = subprocess.Popen([cardan, "dcp", "emulate", "--raw", "--json", "--seed", "3", "--listen",
                                         f"{transport}://127.0.0.1:0", "--to", to, *more], stdout=subprocess.PIPE,
                                        text=True)
        ready = self.process.stdout.readline()
        found = re.search(transport + r"://127\.0\.0\.1:\d+", ready)
        assert found, ready
        self.listen = found[0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        self.counts = json.loads(self.process.communicate(timeout=20)[0].splitlines()[-1])


def stream(cardan, folder, faults=None):
    """Answers each set value that has come whole; bytes leave in pieces of 1, 2, 3, ... bytes, across messages."""
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    seen = []

    def serve():
        wire, _ = server.accept()
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        rest, size, n = b"", 1, 0
        while True:
            data = wire.recv(7)  # never a whole message of 11 bytes
            if not data:
                return
            rest += data
            while len(rest) >= 11:
                assert rest[0] == 1, rest
                seen.append(struct.unpack("<Hd", rest[1:11]))
                rest = rest[11:]
                answer = message_a(n, seen[-1][1] + 1) + (message_b(-7.5) if n % 5 == 0 else b"")
                n += 1
                while answer:
                    wire.sendall(answer[:size])
                    answer, size = answer[size:], size % 17 + 1

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    far = f"tcp://127.0.0.1:{port}"
    if faults:
        with Emulator(cardan, far, *faults) as emulator:
            done, result = run(cardan, folder, emulator.listen)
        counts = emulator.counts
        assert counts["there"]["repeated"] > 0 and counts["back"]["repeated"] > 0, counts
        assert counts["there"]["lost"] == counts["back"]["lost"] == 0, counts
    else:
        done, result = run(cardan, folder, far)
    assert done.returncode == 0, done.stderr
    thread.join(10)
    link = link_of(result)
    assert link["bad"] == link["lost"] == link["duplicates"] == 0, link
    assert [n for n, _ in seen] == list(range(len(seen))), seen[:5]
    last = open(os.path.join(folder, "r.csv")).read().splitlines()
    at = {name: i for i, name in enumerate(last[0].split(","))}
    row = last[-1].split(",")
    assert float(row[at["far.b.z"]]) == -7.5, row
    assert float(row[at["far.a.y"]]) in {u + 1 for _, u in seen}, row


def emulated_stream(cardan, folder):
    """Through the emulator: late, and a loss costs a stream time only."""
    stream(cardan, folder, ("--delay", "3 ms", "--loss", "0.05"))


def alien(cardan, folder):
    """A stream of nobody's messages."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            wire, _ = server.accept()
            wire.sendall(b"HTTP/1.1 400 Bad Request\r\n")

    threading.Thread(target=serve, daemon=True).start()
    done, _ = run(cardan, folder, f"tcp://127.0.0.1:{server.getsockname()[1]}", "contact: 0.5 s")
    assert done.returncode != 0 and "no valid message 'a'" in done.stderr, done.stderr


def emulated(cardan, folder):
    """Through the emulator: what it loses and damages is what the link counts."""
    far = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    far.bind(("127.0.0.1", 0))
    port = far.getsockname()[1]

    def serve():
        n = 0
        while True:
            data, partner = far.recvfrom(100)
            if data == b"end":
                return
            far.sendto(message_a(n, n), partner)
            n += 1
            far.sendto(message_b(0), partner)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    with Emulator(cardan, f"udp://127.0.0.1:{port}", "--back", "loss=0.1", "--back", "corrupt=0.1", "--back",
                  "delay=2 ms") as emulator:
        done, result = run(cardan, folder, emulator.listen, "capture: c.pcapng", stop=2)
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"end", ("127.0.0.1", port))
    thread.join(10)
    assert done.returncode == 0, done.stderr
    link = link_of(result)
    assert link["lost"] > 0 and link["bad"] > 0 and "checksum" in done.stderr, (link, done.stderr)
    text = json.dumps(emulator.counts)
    assert '"lost"' in text and '"corrupted"' in text, text
    capture = open(os.path.join(folder, "c.pcapng"), "rb").read()
    assert capture.count(message_a(40, 40)) <= 1 and capture.count(b"\x01\x20\x00") >= 1, len(capture)
    packets, at = 0, 0
    while at < len(capture):  # blocks of pcapng
        kind, length = struct.unpack_from("<II", capture, at)
        packets += kind == 6
        at += length
    assert packets >= link["in"] + link["out"] + link["bad"], (packets, link)


def stands_in(cardan, folder):
    """The partner falls silent: a model takes over, the run ends well."""
    far = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    far.bind(("127.0.0.1", 0))

    def serve():
        for n in range(40):
            _, partner = far.recvfrom(100)
            far.sendto(message_a(n, 4), partner)
            far.sendto(message_b(4), partner)

    threading.Thread(target=serve, daemon=True).start()
    more = (", standby: { signals: { y: { shape: constant, amplitude: -1 }, z: { shape: constant, amplitude: -1 } },"
            " names: { a.y: y, b.z: z }, after: 200 ms, fade: 10 ms }")
    done, result = run(cardan, folder, f"udp://127.0.0.1:{far.getsockname()[1]}", "timeout: 0", more, stop=1.5)
    assert done.returncode == 0, done.stderr
    rows = open(os.path.join(folder, "r.csv")).read().splitlines()
    at = rows[0].split(",").index("far.a.y")
    assert float(rows[5].split(",")[at]) == 4 and abs(float(rows[-1].split(",")[at]) + 1) < 1e-3, rows[-1]
    standby = next(u["standby"] for u in result["units"] if u["name"] == "far")
    assert standby["takeovers"] == 1, standby


def main(cardan):
    for case in (stream, emulated_stream, alien, emulated, stands_in):
        with tempfile.TemporaryDirectory() as folder:
            case(os.path.abspath(cardan), folder)
            print(f"{case.__name__}: fine", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
