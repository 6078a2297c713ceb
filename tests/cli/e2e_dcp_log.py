"""cardan dcp log: captures that Cardan, tshark and others write, pipes, JSON, an interface."""

import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import unittest

from e2e import CARDAN, HERE, EndToEnd

PATIENCE = 60  # s
RIG = os.path.join(HERE, "..", "dcp", "data", "rig.dcpx")
UUID = bytes.fromhex("6f1d2c3b4a594e688f700123456789ab")

REGISTER = struct.pack("<BHBB", 1, 0, 1, 0) + UUID + bytes([2, 1, 0])
SESSION = [  # (to the slave, bytes)
    (True, REGISTER),
    (False, struct.pack("<BHB", 0xB0, 0, 1)),
    (False, bytes([0xE0, 1, 1])),
    (True, struct.pack("<BHBHHQ", 0x23, 1, 1, 10, 0, 11)),
    (False, struct.pack("<BHB", 0xB0, 1, 1)),
    (True, struct.pack("<BHBHHQB", 0x22, 2, 1, 20, 0, 1, 9)),
    (False, struct.pack("<BHBHH", 0xB1, 2, 1, 3, 0x2012)),
    (False, struct.pack("<BHHd", 0xF0, 0, 10, 12.5)),
    (True, struct.pack("<BHHd", 0xF0, 0, 20, float("nan"))),
]


def ipv4(protocol, inner):
    return struct.pack(">BBHHHBBHII", 0x45, 0, 20 + len(inner), 0, 0, 64, protocol, 0, 0x7F000001,
                       0x7F000001) + inner


def udp(source, target, data):
    return ipv4(17, struct.pack(">HHHH", source, target, 8 + len(data), 0) + data)


def pcap(frames, link=1, order="<", magic=0xA1B2C3D4):
    out = struct.pack(order + "IHHIIII", magic, 2, 4, 0, 0, 65535, link)
    for i, f in enumerate(frames):
        out += struct.pack(order + "IIII", 1000 + i, 500000, len(f), len(f)) + f
    return out


def ethernet(packet):
    return bytes(12) + b"\x08\x00" + packet


def session_frames():
    return [udp(8081, 8080, d) if there else udp(8080, 8081, d) for there, d in SESSION]


class Log(EndToEnd):
    def save(self, name, data):
        with open(self.path(name), "wb") as f:
            f.write(data)
        return name

    def test_a_session_has_names_and_values(self):
        noise = [udp(5353, 5353, b"\x00\x00\x84\x00mdns"), ipv4(1, b"ping"), b"\x60" + bytes(60)]
        self.save("x.pcap", pcap([ethernet(f) for f in session_frames() + noise]))
        lines = self.cardan("dcp", "log", "x.pcap", "--description", RIG).stdout.splitlines()
        self.assertEqual(len(lines), len(SESSION) + 1)
        self.assertRegex(lines[0], r"^ +0\.000000  udp://127\.0\.0\.1:8081 -> 127\.0\.0\.1:8080  "
                                   r"STC_register seq=0 rcv=1 state_id=ALIVE uuid=6f1d")
        self.assertIn("   3.000000  ", lines[3])
        self.assertIn("source_vr=11 (shaft.speed)", lines[3])
        self.assertIn("error=0x2012 (INVALID_VALUE_REFERENCE)", lines[6])
        self.assertTrue(lines[7].endswith("DAT_input_output seq=0 data_id=10 shaft.speed=12.5"))
        self.assertTrue(lines[8].endswith("data_id=20 drive.u_dc=NaN"), lines[8])
        self.assertEqual(lines[9], "9 PDUs, 3 other packets")

    def test_json_is_one_object_for_each(self):
        self.save("x.pcap", pcap([ethernet(f) for f in session_frames()]))
        lines = [json.loads(x) for x in self.cardan("dcp", "log", "x.pcap", "--description", RIG,
                                                    "--json").stdout.splitlines()]
        self.assertEqual(lines[0]["type"], "STC_register")
        self.assertEqual(lines[0]["time"], 1000.5)
        self.assertEqual(lines[0]["from"], "udp://127.0.0.1:8081")
        self.assertEqual(lines[7]["values"], {"shaft.speed": 12.5})
        self.assertEqual(lines[8]["values"], {"drive.u_dc": "NaN"})
        self.assertNotIn("seq", lines[2])
        self.assertEqual(lines[-1]["event"], "ended")
        self.assertEqual((lines[-1]["pdus"], lines[-1]["other"]), (9, 0))

    def test_what_it_writes_reads_back_the_same(self):
        self.save("x.pcap", pcap([ethernet(f) for f in session_frames()], order=">",
                                 magic=0xA1B23C4D))
        first = self.cardan("dcp", "log", "x.pcap", "--write", "y.pcapng").stdout
        self.assertEqual(first, self.cardan("dcp", "log", "y.pcapng").stdout)
        self.assertEqual(self.cardan("dcp", "log", "y.pcapng", "--count", 2).stdout.count("\n"), 3)
        with open(self.path("y.pcapng"), "rb") as f:
            piped = subprocess.run([CARDAN, "dcp", "log", "-"], stdin=f, capture_output=True,
                                   text=True, timeout=PATIENCE)
        self.assertEqual(piped.stdout, first)

    def test_tshark_sees_what_it_writes_and_it_sees_what_tshark_writes(self):
        if not shutil.which("tshark"):
            self.skipTest("no tshark")
        self.save("x.pcap", pcap([ethernet(f) for f in session_frames()]))
        want = self.cardan("dcp", "log", "x.pcap", "--write", "y.pcapng").stdout
        for form in ("pcap", "pcapng", "nsecpcap"):
            done = subprocess.run(["tshark", "-r", "y.pcapng", "-F", form, "-w", "z." + form],
                                  cwd=self.folder, capture_output=True, timeout=PATIENCE)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.cardan("dcp", "log", "z." + form).stdout, want, form)

    def test_what_cannot_be_read_is_said(self):
        self.save("x.csv", b"time,x\n0,1\n")
        self.save("cut.pcap", pcap(session_frames(), link=101)[:-3])
        self.cardan("dcp", "log", "x.csv", code=2, says="not a capture")
        self.cardan("dcp", "log", "cut.pcap", code=2, says="ends within a packet")
        self.cardan("dcp", "log", "none.pcap", code=2, says="none.pcap")
        self.cardan("dcp", "log", code=2, says="expected either a capture")
        self.cardan("dcp", "log", "cut.pcap", "--interface", "lo", code=2, says="expected either")
        self.cardan("dcp", "log", "cut.pcap", "--write", "cut.pcap", code=2, says="another file")
        self.cardan("dcp", "log", "cut.pcap", "--port", "0", code=2, says="--port '0'")
        self.cardan("dcp", "log", "--interface", "nosuch0", code=2, says="there is none")

    def test_an_interface_is_read_along(self):
        p = subprocess.Popen([CARDAN, "dcp", "log", "--interface", "lo", "--write", "w.pcapng"],
                             cwd=self.folder, env=self.environment(), stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
        self.addCleanup(p.kill)
        if p.stdout.readline() != "listening on lo\n":
            errors = p.communicate(timeout=PATIENCE)[1]
            self.assertIn("cap_net_raw", errors)
            self.skipTest("no right to read along")
        a = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        b = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(a.close)
        self.addCleanup(b.close)
        a.bind(("127.0.0.1", 0))
        b.bind(("127.0.0.1", 0))
        a.sendto(bytes([0x80, 0x34, 0x12, 9]), b.getsockname())
        while "INF_state seq=4660 rcv=9" not in (line := p.stdout.readline()):
            self.assertTrue(line, "it ended")
        self.assertIn("127.0.0.1:%d -> 127.0.0.1:%d" % (a.getsockname()[1], b.getsockname()[1]),
                      line)
        p.send_signal(signal.SIGINT)
        out, errors = p.communicate(timeout=PATIENCE)
        self.assertEqual(p.returncode, 0, errors)
        self.assertIn(" PDU", out)
        self.assertIn("INF_state seq=4660 rcv=9", self.cardan("dcp", "log", "w.pcapng").stdout)


if __name__ == "__main__":
    unittest.main()
