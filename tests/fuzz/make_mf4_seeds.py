#!/usr/bin/env python3
"""make_mf4_seeds.py FOLDER: small MF4 files, one for each way of laying things out."""

import os
import struct
import sys
import zlib


class File:
    def __init__(self, mark=b"MDF", version=410, flags=0):
        text = b"%-8s%d.%02d    seeds   " % (mark, version // 100, version % 100)
        self.bytes = bytearray(text.ljust(28, b"\0") + struct.pack("<H", version))
        self.bytes = self.bytes.ljust(60, b"\0") + struct.pack("<HH", flags, 0)
        self.hd = self.block("HD", [0] * 6, struct.pack("<Q24x", 10**18))
        self.tails = {}

    def block(self, tag, links=(), data=b""):
        self.bytes += b"\0" * (-len(self.bytes) % 8)
        at = len(self.bytes)
        self.bytes += b"##" + tag.encode() + b"\0" * 4
        self.bytes += struct.pack("<QQ", 24 + 8 * len(links) + len(data), len(links))
        self.bytes += struct.pack(f"<{len(links)}Q", *links) + data
        return at

    def link(self, block, i, to):
        struct.pack_into("<Q", self.bytes, block + 24 + 8 * i, to)

    def chain(self, i, block):
        """Hang a block on the end of the chain that begins at link i of HD."""
        if i in self.tails:
            self.link(self.tails[i], 0, block)
        else:
            self.link(self.hd, i, block)
        self.tails[i] = block

    def text(self, text):
        return self.block("MD" if text.startswith("<") else "TX", (), text.encode() + b"\0")

    def channel(self, name, type=0, sync=0, kind=4, shift=0, byte=0, bits=64, flags=0, invalid=0,
                cc=0, data=0, unit=""):
        name, unit = self.text(name), self.text(unit) if unit else 0
        return self.block("CN", [0, 0, name, 0, cc, data, unit, 0], struct.pack(
            "<BBBBIIIIBBH6d", type, sync, kind, shift, byte, bits, flags, invalid, 0, 0, 0,
            *[0.0] * 6))

    def conversion(self, type, values, texts=()):
        return self.block("CC", [0, 0, 0, 0, *texts], struct.pack(
            f"<BBHHHdd{len(values)}d", type, 0, 0, len(texts), len(values), 0, 0, *values))

    def group(self, channels, records, size, data, invalid=0, flags=0):
        for a, b in zip(channels, channels[1:]):
            self.link(a, 0, b)
        cg = self.block("CG", [0, channels[0], 0, 0, 0, 0], struct.pack(
            "<QQHHIII", 0, records, flags, 0, 0, size, invalid))
        self.chain(0, self.block("DG", [0, cg, data, 0], bytes(8)))

    def dz(self, data, columns=0, kind=b"DT"):
        plain = data
        if columns:
            rows = len(data) // columns
            whole = rows * columns
            plain = b"".join(data[c:whole:columns] for c in range(columns)) + data[whole:]
        packed = zlib.compress(plain)
        head = struct.pack("<2sBBIQQ", kind, columns > 0, 0, columns, len(data), len(packed))
        return self.block("DZ", (), head + packed)

    def listed(self, blocks, head=False):
        lengths = struct.pack("<II", 0, len(blocks)) + bytes(8 * len(blocks))
        dl = self.block("DL", [0, *blocks], lengths)
        return self.block("HL", [dl], bytes(8)) if head else dl


def records(n):
    return b"".join(struct.pack("<dfhB", 0.1 * k, k * k, -k, k % 3) for k in range(n))


def channels(f, **options):
    line = f.conversion(1, [-1.0, 0.5])
    names = [f.text(t) for t in ("off", "on", "idle", "?")]
    return [f.channel("time", 2, 1, unit="s"), f.channel("x", bits=32, byte=8, unit="m", **options),
            f.channel("n", kind=2, bits=16, byte=12, cc=line),
            f.channel("mode", kind=0, bits=8, byte=14, cc=f.conversion(7, [0, 1, 2], names))]


def seeds():
    f = File()
    f.group(channels(f), 20, 15, f.block("DT", (), records(20)))
    history = f.text("<FHcomment><TX>made</TX><tool_id>seeds</tool_id></FHcomment>")
    f.chain(1, f.block("FH", [0, history], bytes(16)))
    f.link(f.hd, 5, f.text("<HDcomment><TX>a &lt;file&gt;</TX></HDcomment>"))
    yield "plain", f
    f = File(version=400)
    d = records(20)
    f.group(channels(f), 20, 15, f.listed([f.block("DT", (), d[:100]), f.block("DT", (), d[100:])]))
    yield "listed", f
    f = File()
    f.group(channels(f), 20, 15, f.listed([f.dz(d[:150]), f.dz(d[150:])], True))
    f.group(channels(f), 20, 15, f.dz(d, 15))
    yield "deflated", f
    f = File(version=411)
    rows = b"".join(struct.pack(">dQH", 0.5 * k, k << 40, 0x7C00 + k) + bytes([k * 37 % 256])
                    for k in range(8))
    f.group([f.channel("t", 2, 1, kind=5), f.channel("bits", kind=1, shift=3, bits=39, byte=8),
             f.channel("signed", kind=3, shift=1, bits=62, byte=8),
             f.channel("half", kind=5, bits=16, byte=16, flags=2, invalid=1),
             f.channel("void", kind=0, bits=8, byte=17, flags=1)],
            8, 18, f.block("DT", (), rows), 1)
    yield "big_endian", f
    f = File()
    texts = [b"one\0", b"", "zw\u00f6lf\0".encode()]
    places, sd = [], b""
    for t in texts:
        places.append(len(sd))
        sd += struct.pack("<I", len(t)) + t
    words = b"ab", "\u00e4".encode("utf-16-le")
    rows = b"".join(struct.pack("<dQ6s", k, places[k % 3], words[k % 2]) for k in range(6))
    f.group([f.channel("t", 2, 1), f.channel("far", 1, kind=7, byte=8, data=f.block("SD", (), sd)),
             f.channel("near", kind=6, byte=16, bits=48),
             f.channel("wide", kind=8, byte=16, bits=48)], 6, 22, f.block("DT", (), rows))
    f.group([f.channel("index", 3, 1, kind=0, bits=0, cc=f.conversion(1, [0, 0.1])),
             f.channel("q", kind=0, bits=8, cc=f.conversion(2, [0, 2, 1, 0, 0, 4])),
             f.channel("virtual", 6, kind=0, bits=0)], 3, 1, f.block("DT", (), b"\1\2\3"))
    yield "texts", f
    f = File(b"UnFinMF", flags=5)
    f.group(channels(f), 0, 15, len(f.bytes) + 1000)
    f.bytes += b"\0" * (-len(f.bytes) % 8)
    dt = f.block("DT", (), records(10) + b"rest")
    struct.pack_into("<Q", f.bytes, dt + 8, 24)
    f.link(f.tails[0], 2, dt)
    yield "unfinished", f
    f = File()
    f.group(channels(f), 4, 15, f.block("DT", (), records(4)))
    packed = zlib.compress(b"{}" * 50)
    f.chain(3, f.block("AT", [0, f.text("a.json"), f.text("application/json"), 0], struct.pack(
        "<HHI16sQQ", 3, 0, 0, bytes(16), 100, len(packed)) + packed))
    f.chain(3, f.block("AT", [0, f.text("b"), 0, 0], struct.pack(
        "<HHI16sQQ", 1, 0, 0, bytes(16), 3, 3) + b"abc"))
    for k, name in enumerate(("start", "warning", "other")):
        links = [0, 0, 0, f.text(name), f.text("<EVcomment><TX>text</TX></EVcomment>")]
        f.chain(4, f.block("EV", links, struct.pack("<BBBB12xqd", 6, 1, 0, 2, k * 10**8, 1e-9)))
    yield "attached", f
    f = File()
    outer = f.channel("struct", kind=10, byte=8, bits=56)
    inner = channels(f)[1:]
    f.link(inner[0], 0, inner[1])
    f.link(outer, 1, inner[0])
    f.group([f.channel("t", 2, 1), outer], 5, 15, f.block("DT", (), records(5)))
    yield "nested", f


def main():
    os.makedirs(sys.argv[1], exist_ok=True)
    for name, f in seeds():
        with open(os.path.join(sys.argv[1], name + ".mf4"), "wb") as out:
            out.write(f.bytes)


if __name__ == "__main__":
    main()
