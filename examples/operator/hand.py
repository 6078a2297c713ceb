"""Operates a desk or a driver of Cardan from a script: what the page does, with nothing but Python.

    hand.py URL UNIT COMMAND...

    prepare, start, stop           the run of a desk; start takes the unit and waits until it runs
    take, give                     of a driver in a run that goes
    LEVER=VALUE[@RATE]             go there (a desk: at a rate)
    wait:SIGNAL=VALUE              until the signal is within 2 % of that, signs of life meanwhile

While it has the unit it gives a sign of life ten times a second; when it ends, nobody has it.
"""

import base64
import json
import os
import socket
import struct
import sys
import threading
import time
from urllib.parse import parse_qs, urlsplit


class Page:
    """A WebSocket at /ws, text messages only."""

    def __init__(self, url):
        parts = urlsplit(url)
        token = parse_qs(parts.query)["token"][0]
        self.s, self.lock, self.id, self.replies = socket.create_connection((parts.hostname, parts.port)), threading.Lock(), 0, {}
        key = base64.b64encode(os.urandom(16)).decode()
        self.s.sendall((f"GET /ws?token={token} HTTP/1.1\r\nHost: {parts.netloc}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: cardan.live.1\r\n\r\n").encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self.exactly(1)
        if b" 101 " not in head.split(b"\r\n")[0]:
            sys.exit("refused: " + head.split(b"\r\n")[0].decode())

    def exactly(self, n):
        data = b""
        while len(data) < n:
            piece = self.s.recv(n - len(data))
            if not piece:
                sys.exit("the connection was closed")
            data += piece
        return data

    def send(self, opcode, payload):
        mask, n = os.urandom(4), len(payload)
        length = bytes([0x80 | n]) if n < 126 else bytes([0x80 | 126]) + struct.pack(">H", n)
        with self.lock:
            self.s.sendall(bytes([0x80 | opcode]) + length + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(payload)))

    def say(self, verb, **members):
        with self.lock:
            self.id += 1
            number = self.id
        self.send(1, json.dumps({"id": number, "do": verb, **members}).encode())
        return number

    def next(self):
        """The next message that is JSON."""
        while True:
            first, second = self.exactly(2)
            n = second & 0x7F
            n = struct.unpack(">H", self.exactly(2))[0] if n == 126 else struct.unpack(">Q", self.exactly(8))[0] if n == 127 else n
            data = self.exactly(n)
            if first & 0x0F == 9:
                self.send(10, data)
            elif first & 0x0F == 8:
                sys.exit("the run has ended")
            elif first & 0x0F == 1:
                return json.loads(data)

    def until(self, fits):
        while True:
            m = self.next()
            if fits(m):
                return m

    def do(self, verb, **members):
        number = self.say(verb, **members)
        reply = self.until(lambda m: m["is"] == "reply" and m["id"] == number)
        if not reply["ok"]:
            sys.exit(f"{verb}: {reply['error']}")


def take(page, unit):
    page.do("take", unit=unit)

    def beat():
        while True:
            page.say("drive", unit=unit)
            time.sleep(0.1)
    threading.Thread(target=beat, daemon=True).start()


def value_of(m, signal):
    for b in m.get("benches", []):
        for q in b["limits"]:
            if f"{b['unit']}.{q['name']}" == signal:
                return q["measured"]
    return None


def main(url, unit, *commands):
    page = Page(url)
    for command in commands:
        if command == "prepare":
            page.do("prepare")
            page.until(lambda m: m["is"] == "status" and m["state"] == "waiting")
        elif command == "start":
            take(page, unit)
            page.do("start")
        elif command == "take":
            take(page, unit)
        elif command == "give":
            page.do("release", unit=unit)
        elif command == "stop":
            page.do("stop")
            page.until(lambda m: m["is"] == "status" and m["state"] == "ended")
        elif command.startswith("wait:"):
            signal, value = command[5:].split("=")
            page.until(lambda m, s=signal, v=float(value): abs((value_of(m, s) or 0) - v) <= 0.02 * abs(v))
        else:
            lever, value = command.split("=")
            target, _, rate = value.partition("@")
            page.do("go", lever=f"{unit}.{lever}", target=float(target), **({"rate": float(rate)} if rate else {}))
        print(command, flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
