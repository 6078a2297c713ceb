#!/usr/bin/env python3
"""Fields and checksums of Cardan against Python: bits one by one, struct, binascii, division of polynomials.

peer_codec.py WIRE_TOOL
"""
import binascii
import random
import struct
import subprocess
import sys

UNSIGNED, SIGNED, FLOAT32, FLOAT64 = range(4)
PAD = 8


def positions(start, length, big):
    """Bits of a field, the least significant first, as (byte, bit)."""
    if not big:
        return [divmod(start + i, 8) for i in range(length)]
    out, byte, bit = [], start // 8, start % 8
    for _ in range(length):
        out.append((byte, bit))
        byte, bit = (byte, bit - 1) if bit else (byte + 1, 7)
    return out[::-1]


def field_case(rng):
    size = rng.randint(1, 24)
    kind = rng.choice([UNSIGNED, UNSIGNED, SIGNED, SIGNED, FLOAT32, FLOAT64])
    length = {FLOAT32: 32, FLOAT64: 64}.get(kind, rng.randint(1, 64))
    big = rng.random() < 0.5
    start = rng.randrange(8 * size)
    where = positions(start, length, big)
    if max(b for b, _ in where) >= size:
        return None
    factor, offset = (1.0, 0.0) if rng.random() < 0.5 else (rng.uniform(-9, 9) or 1.0, rng.uniform(-50, 50))
    data = bytes(rng.randrange(256) for _ in range(size))
    new = rng.getrandbits(length)
    line = f"field {start} {length} {int(big)} {kind} {factor!r} {offset!r} {new:x} {data.hex()}"
    return line, (where, length, kind, factor, offset, new, data)


def judge_field(answer, case):
    where, length, kind, factor, offset, new, data = case
    raw_text, value_text, bytes_text, whole, again = answer.split()
    raw = sum((data[b] >> i & 1) << k for k, (b, i) in enumerate(where))
    number = raw
    if kind == SIGNED and raw >> (length - 1):
        number = raw - (1 << length)
    elif kind == FLOAT32:
        number = struct.unpack("<f", raw.to_bytes(4, "little"))[0]
    elif kind == FLOAT64:
        number = struct.unpack("<d", raw.to_bytes(8, "little"))[0]
    shown = number % (1 << 64) if kind == SIGNED else raw
    assert int(raw_text, 16) == shown, ("raw", raw_text, hex(shown))
    if number == number and abs(number) != float("inf"):
        assert float.fromhex(value_text) == float(number) * factor + offset, ("value", value_text)
        if kind <= SIGNED and length <= 40:  # what was read can be sent again, as it was
            assert (whole, again) == ("1", raw_text), ("again", whole, again)
    want = bytearray(data)
    for k, (b, i) in enumerate(where):
        want[b] = want[b] & ~(1 << i) | (new >> k & 1) << i
    assert bytes_text == want.hex() + "a5" * PAD, ("put", bytes_text, want.hex())


def division(data, bits, polynomial, start, final):
    """The remainder as in a textbook: the message times x^bits, the start value into its first bits."""
    value = int.from_bytes(data, "big") << bits
    value ^= start << (8 * len(data))
    for i in range(8 * len(data) - 1, -1, -1):
        if value >> (i + bits) & 1:
            value ^= ((1 << bits) | polynomial) << i
    return value ^ final


CHECKSUMS = {
    "sum8": (1, lambda d: sum(d) & 255),
    "xor8": (1, lambda d: __import__("functools").reduce(lambda a, b: a ^ b, d, 0)),
    "crc8": (1, lambda d: division(d, 8, 0x1D, 0xFF, 0xFF)),
    "crc8-2f": (1, lambda d: division(d, 8, 0x2F, 0xFF, 0xFF)),
    "crc16": (2, lambda d: binascii.crc_hqx(d, 0xFFFF)),
    "crc32": (4, binascii.crc32),
}
# Of "123456789", as catalogues of CRCs have them.
KNOWN = {"crc8": 0x4B, "crc8-2f": 0xDF, "crc16": 0x29B1, "crc32": 0xCBF43926, "sum8": 0xDD, "xor8": 0x31}


def checksum_case(rng):
    name = rng.choice(list(CHECKSUMS))
    width, compute = CHECKSUMS[name]
    data = bytes(rng.randrange(256) for _ in range(rng.randint(width, 40)))
    own = rng.randint(0, len(data) - width)
    first = rng.randint(0, len(data))
    count = rng.randint(0, len(data) - first)
    end = first + count if count else len(data)
    over = bytes(x for i, x in enumerate(data) if first <= i < end and not own <= i < own + width)
    return f"checksum {name} {first} {count} {own} {data.hex()}", compute(over) if over or name != "crc8" else None


def main(tool):
    rng = random.Random(25)
    lines, checks = [], []
    while len(lines) < 30000:
        case = field_case(rng)
        if case:
            lines.append(case[0])
            checks.append(lambda answer, c=case[1]: judge_field(answer, c))
    def same(answer, want):
        assert int(answer, 16) == want, (answer, hex(want))
    for name, want in KNOWN.items():
        width = CHECKSUMS[name][0]
        lines.append(f"checksum {name} 0 9 9 {(b'123456789' + bytes(width)).hex()}")
        checks.append(lambda answer, w=want: same(answer, w))
    for _ in range(5000):
        line, want = checksum_case(rng)
        if want is not None:
            lines.append(line)
            checks.append(lambda answer, w=want: same(answer, w))
    done = subprocess.run([tool], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    answers = done.stdout.splitlines()
    assert len(answers) == len(lines), (len(answers), len(lines))
    for line, answer, check in zip(lines, answers, checks):
        try:
            check(answer)
        except (AssertionError, ValueError) as e:
            print(f"{line}\n  {answer}\n  {e!r}")
            return 1
    print(f"{len(lines)} fields and checksums agree")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
