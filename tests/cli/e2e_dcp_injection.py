"""PDUs of others than the master, over real sockets: other addresses of loopback and other ports, every
type, right and wrong sequence ids, in every state that can be stayed in. Nothing acts on them, and
the slave has counted every one."""

import csv
import json
import re
import socket
import struct
import subprocess
import unittest
import uuid
import xml.etree.ElementTree as ElementTree

from e2e import CARDAN, EndToEnd, fmu

PATIENCE = 60  # s, for anything that will come
REQUESTS = [*range(0x01, 0x0B), *range(0x20, 0x2C), 0x80, 0x81, 0x82]
OTHERS = [0x00, 0x55, 0xB0, 0xB1, 0xB2, 0xB3, 0xB4, 0xE0, 0xE1]
NRT = 2


class Master:
    """The little that a master needs, in its own words."""

    def __init__(self, test, to):
        self.test, self.to, self.seq, self.state, self.data = test, to, 0, 0, 0
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(PATIENCE)
        test.addCleanup(self.socket.close)

    def ask(self, kind, body=b"", want=0xB0):
        self.seq += 1
        self.socket.sendto(struct.pack("<BHB", kind, self.seq, 1) + body, self.to)
        while True:
            answer = self.socket.recv(2048)
            if 0xB0 <= answer[0] < 0xE0:
                self.test.assertEqual((answer[0], *struct.unpack_from("<H", answer, 1)),
                                      (want, self.seq), f"{kind:#x}: {answer.hex()}")
                return answer

    def change(self, kind, to, body=b""):
        self.ask(kind, bytes([self.state]) + body)
        while self.ask(0x80, want=0xB2)[4] != to:
            pass
        self.state = to

    def feed(self, value):
        self.socket.sendto(struct.pack("<BHHd", 0xF0, self.data, 20, value), self.to)
        self.data += 1


class Injection(EndToEnd):
    def start(self, *arguments):
        process = subprocess.Popen([CARDAN, *arguments, "--json"], cwd=self.folder, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=self.environment(leaks=True))
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        line = json.loads(process.stdout.readline())
        port = int(re.search(r"udp://127.0.0.1:(\d+)", json.dumps(line))[1])
        return process, ("127.0.0.1", port)

    def strangers(self):
        found = []
        for host in ("127.0.0.66", "127.0.0.1"):
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            s.bind((host, 0))
            s.setblocking(False)
            self.addCleanup(s.close)
            found.append(s)
        return found

    def storm(self, master):
        """One of each by each stranger; how many."""
        sent = 0
        for s in self.outside:
            for ahead in (1, 2, 0, 700):
                for kind in [*REQUESTS, *OTHERS]:
                    body = bytes([master.state]) if kind < 0x20 else b""
                    s.sendto(struct.pack("<BHB", kind, (master.seq + ahead) & 0xFFFF, 1) + body,
                             master.to)
                s.sendto(struct.pack("<BHHd", 0xF0, (master.data + ahead - 1) & 0xFFFF, 20, 1e3),
                         master.to)
                sent += len(REQUESTS) + len(OTHERS) + 1
            # It has read them all when it answers the master; few enough for its socket's buffer.
            self.assertEqual(master.ask(0x80, want=0xB2)[4], master.state)
        return sent

    def answers(self):
        """Types that strangers were answered with."""
        found = set()
        for s in self.outside:
            try:
                while True:
                    found.add(s.recv(2048)[0])
            except BlockingIOError:
                pass
        return found

    def test_nobody_but_the_master_moves_a_slave(self):
        process, to = self.start("dcp", "slave", fmu("driven_oscillator"), "--listen",
                                 "udp://127.0.0.1:0", "--write-description", "slave.dcpx")
        root = ElementTree.parse(self.path("slave.dcpx")).getroot()
        value = {kind: int(root.find(f".//Variable[{kind}]").get("valueReference"))
                 for kind in ("Input", "Output")}
        self.outside, m, sent = self.strangers(), Master(self, to), 0
        m.change(0x01, 1, uuid.UUID(root.get("uuid")).bytes + bytes([NRT, 1, 0]))
        sent += self.storm(m)
        resolution = root.find(".//Resolution")
        m.ask(0x20, struct.pack("<II", int(resolution.get("numerator", 1)),
                                int(resolution.get("denominator", 1000))))
        m.ask(0x22, struct.pack("<HHQB", 20, 0, value["Input"], 9))
        m.ask(0x2B, struct.pack("<HB", 20, 0))
        m.ask(0x26, struct.pack("<HBHI", 20, 0, to[1], 0x7F000001))
        m.change(0x03, 3)
        sent += self.storm(m)
        m.change(0x04, 5)
        m.feed(0.5)
        sent += self.storm(m)
        m.change(0x06, 10, struct.pack("<q", 0))
        sent += self.storm(m)
        m.change(0x06, 11, struct.pack("<q", 0))
        for _ in range(3):
            sent += self.storm(m)
            m.feed(0.25)
            m.change(0x07, 13, struct.pack("<I", 1))
            sent += self.storm(m)
            m.change(0x08, 11)
        m.change(0x09, 16)
        sent += self.storm(m)
        m.change(0x02, 0)
        self.assertLessEqual(self.answers(), {0xB2})  # who asks for the state may be told it
        process.terminate()
        out, err = process.communicate(timeout=PATIENCE)
        end = json.loads(out.splitlines()[-1])
        self.assertEqual((end["event"], end["steps"], end["sessions"]), ("ended", 3, 1), err)
        self.assertEqual(end["received"], sent + m.seq + m.data)
        self.assertEqual(end["data_in"], m.data)
        # asking for the state is a request that is answered; everything else is dropped
        states = sent // (len(REQUESTS) + len(OTHERS) + 1)
        self.assertEqual(end["requests"], m.seq + states)
        self.assertEqual(end["dropped"], sent - states)
        self.assertGreater(end["data_foreign"], 0)

    def test_nobody_but_the_master_turns_a_bench(self):
        """As an attacker would do it who has seen ids and numbers: 6000 1/min and 200 N.m, ahead."""
        process, to = self.start("bench", "em", "--listen", "udp://127.0.0.1:0", "--ideal",
                                 "--watchdog", "20 s", "--heartbeat", "60 s", "--trace", "em.csv",
                                 "--write-description", "em.dcpx")
        root = ElementTree.parse(self.path("em.dcpx")).getroot()
        names = ("torque_ref", "speed_ref", "voltage_ref", "oil_ref")
        found = {v.get("name"): int(v.get("valueReference")) for v in root.iter("Variable")}
        self.outside, m, injected = self.strangers(), Master(self, to), 0

        def data(ahead, torque, speed):
            return struct.pack("<BHHdddd", 0xF0, (m.data + ahead) & 0xFFFF, 20, torque, speed, 300, 25)

        m.change(0x01, 1, uuid.UUID(root.get("uuid")).bytes + bytes([1, 1, 0]))  # SRT
        m.ask(0x20, struct.pack("<II", 1, 1000))
        for pos, name in enumerate(names):
            m.ask(0x22, struct.pack("<HHQB", 20, pos, found[name], 9))
        m.ask(0x2B, struct.pack("<HB", 20, 0))
        m.ask(0x26, struct.pack("<HBHI", 20, 0, to[1], 0x7F000001))
        for kind, state, body in ((0x03, 3, b""), (0x04, 5, b""), (0x06, 10, struct.pack("<q", 0)),
                                  (0x06, 11, struct.pack("<q", 0))):
            m.change(kind, state, body)
            for s in self.outside:
                s.sendto(data(0, 200, 6000), to)
                injected += 1
        for _ in range(200):  # as fast as the bench answers
            self.assertEqual(m.ask(0x80, want=0xB2)[4], 11)
            for s in self.outside:
                for ahead in (0, 1, 40):
                    s.sendto(data(ahead, 200, 6000), to)
                    injected += 1
            m.socket.sendto(data(0, 0, 500), to)
            m.data += 1
        m.change(0x09, 16)
        m.change(0x02, 0)
        process.terminate()
        out, err = process.communicate(timeout=PATIENCE)
        end = json.loads(out.splitlines()[-1])
        self.assertEqual(end["data_in"], m.data, err)
        self.assertEqual(end["data_foreign"] + end["data_dropped"], injected)  # before CONFIGURED
        self.assertGreater(end["data_foreign"], 1000)
        with open(self.path("em.csv"), encoding="utf-8", newline="") as f:
            rows = list(csv.DictReader(f))
        most = {k: max(abs(float(row[k])) for row in rows)
                for k in ("speed_ref [rpm]", "speed [rpm]", "torque_ref [N.m]")}
        self.assertGreater(most["speed [rpm]"], 1)  # it was driven
        self.assertLessEqual(most["speed_ref [rpm]"], 500)
        self.assertLess(most["speed [rpm]"], 550)
        self.assertEqual(most["torque_ref [N.m]"], 0)


if __name__ == "__main__":
    unittest.main()
