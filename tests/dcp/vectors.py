#!/usr/bin/env python3
"""The wire format of encryption and pairing, computed again with nothing of Cardan's: BLAKE2b of hashlib, X25519 of
RFC 7748 and ChaCha20-Poly1305 of RFC 8439 written out here and held against the vectors of those RFCs.

vectors.py SECURE_VECTORS DOC: takes apart what the program says two partners have sent each other, and holds the
numbers that stand in docs/reference/dcp.md against its own.
"""
import hashlib
import re
import struct
import subprocess
import sys

P = 2**255 - 19


def x25519(secret, point):
    k = bytearray(secret)
    k[0] &= 248
    k[31] = k[31] & 127 | 64
    k, u = int.from_bytes(k, "little"), int.from_bytes(point, "little") & (2**255 - 1)
    x2, z2, x3, z3, swap = 1, 0, u, 1, 0
    for t in reversed(range(255)):
        bit = k >> t & 1
        if swap ^ bit:
            x2, x3, z2, z3 = x3, x2, z3, z2
        swap = bit
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        aa, bb, da, cb = a * a % P, b * b % P, d * a % P, c * b % P
        e = aa - bb
        x3, z3 = (da + cb)**2 % P, u * (da - cb)**2 % P
        x2, z2 = aa * bb % P, e * (aa + 121665 * e) % P
    if swap:
        x2, z2 = x3, z3
    return (x2 * pow(z2, P - 2, P) % P).to_bytes(32, "little")


BASE = bytes([9]) + bytes(31)


def chacha_block(key, counter, nonce):
    start = [0x61707865, 0x3320646e, 0x79622d32, 0x6b206574, *struct.unpack("<8I", key), counter,
             *struct.unpack("<3I", nonce)]
    s = list(start)

    def quarter(a, b, c, d):
        for x, y, z, r in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            s[x] = (s[x] + s[y]) & 0xffffffff
            s[z] ^= s[x]
            s[z] = (s[z] << r | s[z] >> (32 - r)) & 0xffffffff

    for _ in range(10):
        for i in range(4):
            quarter(i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return struct.pack("<16I", *((a + b) & 0xffffffff for a, b in zip(s, start)))


def poly1305(key, message):
    r = int.from_bytes(key[:16], "little") & 0x0ffffffc0ffffffc0ffffffc0fffffff
    a = 0
    for i in range(0, len(message), 16):
        a = (a + int.from_bytes(message[i:i + 16] + b"\1", "little")) * r % (2**130 - 5)
    return ((a + int.from_bytes(key[16:], "little")) & (2**128 - 1)).to_bytes(16, "little")


def seal(key, nonce, plain, head):
    stream = b"".join(chacha_block(key, i + 1, nonce) for i in range(len(plain) // 64 + 1))
    sealed = bytes(a ^ b for a, b in zip(plain, stream))

    def pad(b):
        return b + bytes(-len(b) % 16)

    tag = poly1305(chacha_block(key, 0, nonce)[:32],
                   pad(head) + pad(sealed) + struct.pack("<QQ", len(head), len(sealed)))
    return sealed + tag


def blake(key, *parts, size=32):
    return hashlib.blake2b(b"".join(parts), key=key, digest_size=size).digest()


def check_primitives():
    """RFC 7748 section 5.2 (one iteration), RFC 8439 section 2.8.2."""
    k = u = BASE
    assert x25519(k, u).hex() == "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079"
    key, nonce = bytes(range(0x80, 0xa0)), bytes.fromhex("070000004041424344454647")
    head = bytes.fromhex("50515253c0c1c2c3c4c5c6c7")
    text = (b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
            b"sunscreen would be it.")
    assert seal(key, nonce, text, head)[-16:].hex() == "1ae10b594f09e26a7e902ecbd0600691"


def association(key, greeting, answer, secret):
    """Keys from first to second speaker, from second to first, and of the answer."""
    shared = x25519(secret, answer[18:50])
    root = blake(key, b"cardan dcp association\0", shared, greeting, answer[:50])
    return [blake(root, bytes([i])) for i in range(3)]


def check_wire(key, said):
    """What two partners have sent: greeting, answer, data there and back."""
    greeting, answer, there, back = (bytes.fromhex(said[k]) for k in ("greeting", "answer", "there", "back"))
    secret = bytes.fromhex(said["secret"])
    hello = blake(key, b"cardan dcp handshake\0")
    assert greeting[:2] == bytes([0xD1, 1]) and greeting[10:42] == x25519(secret, BASE)
    assert greeting[57:] == blake(hello, greeting[:57], size=16), "tag of the greeting"
    assert answer[:2] == bytes([0xD2, 1]) and answer[2:10] == greeting[2:10]
    keys = association(key, greeting, answer, secret)
    assert answer[50:] == blake(keys[2], answer[:50], size=16), "tag of the answer"
    for packet, k, to, plain in ((there, keys[0], answer[10:18], b"question"), (back, keys[1], greeting[2:10], b"answer")):
        head = packet[:18]
        assert head[:2] == bytes([0xD3, 1]) and head[2:10] == to
        assert packet[18:] == seal(k, bytes(4) + head[10:18], plain, head), "sealed data"
    return {"greeting": greeting, "answer": answer, "there": there, "back": back}


def pairing(secrets, randoms, sides, old=b""):
    """Key and code of two sides (role, days, name)."""
    messages = []
    for kind, secret, random, (role, days, name) in zip((0xE3, 0xE2), secrets, randoms, sides):
        messages.append(bytes([kind, 1, role]) + struct.pack("<HB", days, len(name)) + name.ljust(32, b"\0") +
                        x25519(secret, BASE) + random)
    shared = x25519(secrets[0], x25519(secrets[1], BASE))
    transcript = blake(b"", b"cardan pair transcript\0", *messages)
    root = blake(shared, b"cardan pair root\0", transcript, old)
    code = int.from_bytes(blake(root, b"\3")[:8], "little") % 10**8
    return blake(root, b"\0").hex(), f"{code // 10000:04d} {code % 10000:04d}"


def check_pairing(doc):
    got = pairing([bytes(range(32)), bytes(range(0x40, 0x60))], [bytes(range(0x80, 0xA0)), bytes(range(0xC0, 0xE0))],
                  [(1, 30, b"desk"), (2, 400, b"hall7")])
    for number in got:
        assert number in doc, f"docs/reference/dcp.md does not have {number} of pairing"
    return got


def main(program, doc):
    check_primitives()
    with open(doc, encoding="utf-8") as f:
        text = f.read()
    said = dict(line.split(" ", 1) for line in subprocess.run([program], check=True, capture_output=True,
                                                              text=True).stdout.splitlines())
    check_wire(bytes(range(32)), said)
    documented = dict(re.findall(r"^    (secret|greeting|answer|there|back) +([0-9a-f]+)$", text, re.M))
    assert len(documented) == 5, "docs/reference/dcp.md lacks vectors"
    check_wire(bytes(range(32)), documented)
    check_pairing(text)
    return 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--pairing"]:
        print(pairing([bytes(range(32)), bytes(range(0x40, 0x60))],
                      [bytes(range(0x80, 0xA0)), bytes(range(0xC0, 0xE0))], [(1, 30, b"desk"), (2, 400, b"hall7")]))
        sys.exit(0)
    sys.exit(main(*sys.argv[1:]))
