#!/usr/bin/env python3
"""A plain drive on a CAN bus of this host: the messages of drive.dbc, a speed and a torque that follow their set values.

drive.py [GROUP:PORT [SECONDS [FAULT]]]: sends Actual every 10 ms for SECONDS. Without Set for 0.1 s it is off, as a drive
should be. FAULT: 'crc' damages every tenth checksum; with the 60th set values ('gone@200': the 200th, 'gone@fast': above 900 1/min) 'gone'
falls silent, 'counter' counts no more, 'stuck' shows the same values for ever, and 'wild' turns by itself.
"""
import socket
import struct
import sys
import time

CYCLE, SLOW, FAST, WATCHDOG = 0.01, 0.05, 0.02, 0.1  # s: cycle, time constants of speed and torque


def crc8(data):  # SAE J1850
    crc = 0xFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc << 1 ^ 0x1D if crc & 0x80 else crc << 1) & 0xFF
    return crc ^ 0xFF


def sockets(bus):
    group, port = bus.split(":")
    come, go = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    come.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    come.bind((group, int(port)))
    come.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group) + socket.inet_aton("127.0.0.1"))
    go.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
    go.bind(("127.0.0.1", 0))
    return come, go, (group, int(port))


def frames(packet):
    """Identifiers and data of the frames in a packet of cannelloni."""
    at = 5
    for _ in range(struct.unpack_from(">H", packet, 3)[0]):
        name, length = struct.unpack_from(">IB", packet, at)
        yield name, packet[at + 5:at + 5 + length]
        at += 5 + length


def main(bus="239.74.163.2:43113", seconds=60.0, fault=""):
    come, go, to = sockets(bus)
    fault, _, begin = fault.partition("@")
    print("ready", flush=True)
    want = speed = shown = torque = load = 0.0
    enabled, late, heard, count, stood, taken, wrong = False, False, 0.0, 0, 0, 0, 0
    first = due = time.monotonic()
    while due - first < float(seconds):
        come.settimeout(max(0.0005, due - time.monotonic()))
        try:
            packet, sender = come.recvfrom(65536)
            for name, data in frames(packet) if sender != go.getsockname() else ():
                if name != 100:
                    continue
                if len(data) != 8 or crc8(data[:7]) != data[7]:
                    wrong += 1
                    continue
                want, load = struct.unpack_from("<hh", data)
                enabled, heard, taken = bool(data[5] & 0x10), time.monotonic(), taken + 1
        except socket.timeout:
            pass
        while due <= time.monotonic():
            runs, late = enabled and due - heard < WATCHDOG, late or (speed > 900 if begin == "fast" else taken >= int(begin or 60))
            speed += CYCLE / SLOW * ((0.1 * want if runs else 0) - speed)
            torque += CYCLE / FAST * ((0.01 * load if runs else 0) - torque)
            stood = stood if late else count
            if late and fault == "wild":
                speed = 2700
            if not late or fault != "stuck":
                shown = speed
            data = struct.pack("<h", round(10 * shown)) + struct.pack(">h", round(100 * torque))
            data += bytes([0, (2 if runs else 1) << 4, stood % 16 if late and fault == "counter" else count % 16])
            data += bytes([crc8(data) ^ (1 if fault == "crc" and count % 10 == 9 else 0)])
            if fault != "gone" or not late:
                go.sendto(struct.pack(">BBBHIB", 2, 0, count % 256, 1, 101, 8) + data, to)
            count += 1
            due += CYCLE
    print(f"{taken} set values, {wrong} wrong, {count} answers, speed {speed:.1f}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
