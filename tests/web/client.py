"""A small client for the tests: HTTP and WebSocket over a plain socket, so that it can be rude."""

import base64
import hashlib
import json
import os
import socket
import struct
import time

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
PATIENCE = 60  # s; a test that waits longer has failed


class Closed(Exception):
    """The other side has gone; with the code that it gave, if any."""

    def __init__(self, code=None, reason=""):
        super().__init__(f"closed {code} {reason}")
        self.code, self.reason = code, reason


def connect(port, host="127.0.0.1"):
    s = socket.create_connection((host, port), timeout=PATIENCE)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def read_head(s):
    """Everything up to the empty line, byte by byte so that nothing behind it is taken."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = s.recv(1)
        if not byte:
            raise Closed(reason=f"after {head!r}")
        head += byte
    lines = head.decode("latin-1").split("\r\n")
    fields = dict(line.split(":", 1) for line in lines[1:] if ":" in line)
    return int(lines[0].split()[1]), {k.lower(): v.strip() for k, v in fields.items()}


def request(port, path, method="GET", host=None, headers=(), body=b"", s=None):
    """Status, headers, body."""
    own = s is None
    s = s or connect(port)
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host or f'127.0.0.1:{port}'}", *headers]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    try:
        s.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        status, fields = read_head(s)
        content, length = b"", int(fields.get("content-length", 0)) if method != "HEAD" else 0
        while len(content) < length:
            piece = s.recv(length - len(content))
            if not piece:
                raise Closed(reason="in a body")
            content += piece
    finally:
        if own:
            s.close()
    return status, fields, content


class WebSocket:
    def __init__(self, port, token, host=None, origin=None, protocol="cardan.live.1", path="/ws"):
        self.s = connect(port)
        key = base64.b64encode(os.urandom(16)).decode()
        headers = ["Upgrade: websocket", "Connection: Upgrade", f"Sec-WebSocket-Key: {key}",
                   "Sec-WebSocket-Version: 13"]
        if protocol:
            headers.append(f"Sec-WebSocket-Protocol: {protocol}")
        if origin:
            headers.append(f"Origin: {origin}")
        where = f"{path}?token={token}" if token is not None else path
        try:
            lines = [f"GET {where} HTTP/1.1", f"Host: {host or f'127.0.0.1:{port}'}", *headers]
            self.s.sendall("\r\n".join(lines).encode() + b"\r\n\r\n")
            self.status, self.fields = read_head(self.s)
        except (Closed, ConnectionError):
            self.status, self.fields = 0, {}
        if self.status == 101:
            accept = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
            assert self.fields["sec-websocket-accept"] == base64.b64encode(accept).decode()
        self.id = 0
        self.greeted = False

    def close(self):
        self.s.close()

    def frame(self, opcode, payload, final=True, masked=True, length=None):
        n = len(payload) if length is None else length
        head = bytes([opcode | (0x80 if final else 0)])
        bit = 0x80 if masked else 0
        if n < 126:
            head += bytes([bit | n])
        elif n < 65536:
            head += bytes([bit | 126]) + struct.pack(">H", n)
        else:
            head += bytes([bit | 127]) + struct.pack(">Q", n)
        if masked:
            mask = os.urandom(4)
            head += mask
            payload = bytes(b ^ mask[i % 4] for i, b in enumerate(payload))
        self.s.sendall(head + payload)

    def say(self, text):
        self.frame(TEXT, text.encode() if isinstance(text, str) else text)

    def exactly(self, n):
        data = b""
        while len(data) < n:
            try:
                piece = self.s.recv(n - len(data))
            except ConnectionResetError:
                piece = b""
            if not piece:
                raise Closed()
            data += piece
        return data

    def receive(self):
        """The next message, (opcode, bytes). Pings are answered on the way."""
        message, kind = b"", None
        while True:
            first, second = self.exactly(2)
            n = second & 0x7F
            if n == 126:
                n = struct.unpack(">H", self.exactly(2))[0]
            elif n == 127:
                n = struct.unpack(">Q", self.exactly(8))[0]
            payload = self.exactly(n)
            opcode = first & 0x0F
            if opcode == PING:
                self.frame(PONG, payload)
            elif opcode == CLOSE:
                code = struct.unpack(">H", payload[:2])[0] if n >= 2 else None
                try:
                    self.frame(CLOSE, payload[:2])
                except OSError:
                    pass
                raise Closed(code, payload[2:].decode())
            elif opcode != PONG:
                kind = opcode or kind
                message += payload
                if first & 0x80:
                    return kind, message

    def next(self, what, where=lambda m: True):
        """The next message of that kind: "hello", ..., or "frame"."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            opcode, data = self.receive()
            if opcode == BINARY:
                if what == "frame":
                    return Frame(data)
                continue
            m = json.loads(data)
            self.greeted = self.greeted or m["is"] == "hello"
            if m["is"] == what and where(m):
                return m
        raise AssertionError(f"no {what}")

    def do(self, verb, **members):
        """A command and its reply."""
        self.id += 1
        self.say(json.dumps({"id": self.id, "do": verb, **members}))
        return self.next("reply", lambda m: m["id"] == self.id)

    def ending(self):
        """How the other side closes, whatever it says before."""
        try:
            while True:
                self.receive()
        except Closed as c:
            return c


class Frame:
    def __init__(self, data):
        kind, self.rows, self.signals, self.lost = struct.unpack_from("<4I", data)
        assert kind == 1 and len(data) == 16 + 8 * self.rows * (1 + self.signals)
        numbers = struct.unpack_from(f"<{self.rows * (1 + self.signals)}d", data, 16)
        self.time = numbers[:self.rows]
        self.values = [numbers[self.rows * (1 + k):self.rows * (2 + k)]
                       for k in range(self.signals)]

