#!/usr/bin/env python3
"""A drive that speaks datagrams: an inertia with friction behind the messages of drive.layout.yaml.

drive.py [PORT [SECONDS [FAULT]]]: begins when the first set value comes, ends SECONDS later or a second after the
last one. FAULT: 'crc' damages every tenth checksum, 'stuck' lets the counter stand from the 50th message on, 'short'
leaves out the last byte of every tenth, 'gone' falls silent after 60.
"""
import binascii
import socket
import struct
import sys
import time

INERTIA, FRICTION, CYCLE = 0.05, 0.1, 0.005  # kg.m2, N.m.s/rad, s


def sealed(body):
    return body + struct.pack(">H", binascii.crc_hqx(body, 0xFFFF))


def main(port=5620, seconds=60.0, fault=""):
    wire = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    wire.bind(("127.0.0.1", int(port)))
    print("ready", flush=True)
    torque = speed = 0.0
    count, taken, wrong = 0, 0, 0
    first, partner, due = None, None, None
    wire.settimeout(30)
    while True:
        try:
            data, partner = wire.recvfrom(100)
            first = first or time.monotonic()
            due = due or first
            if len(data) == 7 and data[0] == 0x10 and sealed(data[:-2]) == data:
                torque = struct.unpack_from(">h", data, 2)[0] / 10 if data[4] & 1 else 0.0
                taken += 1
            else:
                wrong += 1
        except socket.timeout:
            if first is None or time.monotonic() - due > 1:
                break
        now = time.monotonic()
        if now - first > float(seconds):
            break
        while due <= now:
            speed += CYCLE / INERTIA * (torque - FRICTION * speed)
            shown = min(count, 50) if fault == "stuck" else count
            message = sealed(struct.pack(">BBfhB", 0x20, shown % 256, speed, round(10 * torque), 1))
            if fault == "crc" and count % 10 == 9:
                message = message[:-1] + bytes([message[-1] ^ 1])
            if fault == "short" and count % 10 == 9:
                message = message[:-1]
            if fault != "gone" or count < 60:
                wire.sendto(message, partner)
            count += 1
            due += CYCLE
        wire.settimeout(max(0.0005, due - time.monotonic()))
    print(f"{taken} set values, {wrong} wrong, {count} answers", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
