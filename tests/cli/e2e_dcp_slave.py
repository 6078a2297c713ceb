"""cardan dcp slave and describe: real processes on loopback, asked by a master of our own."""

import json
import os
import re
import signal
import socket
import struct
import subprocess
import time
import unittest
import xml.etree.ElementTree as xml

from e2e import CARDAN, EndToEnd, fmu

PATIENCE = 60  # s, for anything that will come

NRT, SRT = 2, 1
ALIVE, CONFIGURATION, PREPARED, CONFIGURED = 0, 1, 3, 5
SYNCHRONIZED, RUNNING, COMPUTED, STOPPED, ERRORRESOLVED = 10, 11, 13, 16, 18
FLOAT64, STRING, INT32 = 9, 10, 6
TYPES = {"Float64": FLOAT64, "String": STRING, "Int32": INT32}
LOOPBACK = 0x7F000001


class Slave:
    """The command, its ready lines and its end."""

    def __init__(self, test, *arguments, code=0):
        self.test, self.code = test, code
        self.process = subprocess.Popen(
            [CARDAN, "dcp", "slave", *map(str, arguments)], cwd=test.folder, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=test.environment(leaks=True))
        test.addCleanup(self.kill)

    def address(self):
        line = self.process.stdout.readline()
        found = re.match(r"listening at (udp|tcp)://([\d.]+):(\d+)$", line)
        if not found:
            self.test.fail(line + self.process.stderr.read())
        return found[1], (found[2], int(found[3]))

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def end(self, number=None):
        """What it said; `number`: the signal that ends it."""
        if number:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=PATIENCE)
        self.test.assertEqual(self.process.returncode, self.code, out + err)
        for word in ("AddressSanitizer", "runtime error"):
            self.test.assertNotIn(word, err)
        return out, err


class Master:
    """A master over UDP or TCP. Control and data pass one socket, so that their order is known."""

    def __init__(self, test, transport, address, description):
        self.test, self.tcp, self.seq, self.data_seq = test, transport == "tcp", 0, 0
        self.address = address
        if self.tcp:
            self.socket = socket.create_connection(address, timeout=PATIENCE)
            self.server = socket.create_server(("127.0.0.1", 0))
            self.data_port = self.server.getsockname()[1]
            self.server.settimeout(PATIENCE)
        else:
            self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.socket.bind(("127.0.0.1", 0))
            self.socket.settimeout(PATIENCE)
            self.data_port = self.socket.getsockname()[1]
        test.addCleanup(self.close)
        root = xml.parse(description).getroot()
        self.uuid = bytes.fromhex(root.get("uuid").replace("-", ""))
        self.variables = {}
        for v in root.iter("Variable"):
            kind = v[0][0].tag
            self.variables[v.get("name")] = (int(v.get("valueReference")), TYPES.get(kind))
        self.states, self.logs, self.data = [], [], []
        self.incoming = None  # TCP: the connection on which data come

    def close(self):
        self.socket.close()
        if self.tcp:
            self.server.close()
            if self.incoming:
                self.incoming.close()

    # ---- PDUs

    def send(self, pdu):
        if self.tcp:
            self.socket.sendall(struct.pack("<I", len(pdu)) + pdu)
        else:
            self.socket.sendto(pdu, self.address)

    @staticmethod
    def exactly(stream, n):
        data = b""
        while len(data) < n:
            part = stream.recv(n - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def framed(self, stream):
        return self.exactly(stream, struct.unpack("<I", self.exactly(stream, 4))[0])

    def receive(self):
        pdu = self.framed(self.socket) if self.tcp else self.socket.recv(65536)
        if pdu[0] == 0xE0:
            self.states.append(pdu[2])
        elif pdu[0] == 0xE1:
            self.logs.append((pdu[10], pdu[15:].decode()))
        elif pdu[0] == 0xF0:
            self.data.append(pdu)
        else:
            return pdu
        return None

    def ask(self, kind, body=b"", good=0xB0):
        head = struct.pack("<BHB", kind, self.seq, 1)
        self.seq = (self.seq + 1) & 0xFFFF
        self.send(head + body)
        answer = None
        while answer is None:
            answer = self.receive()
        self.test.assertEqual(answer[0], good, f"request {kind:#x}: {answer.hex()}")
        return answer

    def state(self):
        return self.states[-1] if self.states else ALIVE

    def until(self, *states):
        while self.state() not in states:
            self.receive()
        return self.state()

    def change(self, kind, body=b"", to=(), before=None):
        before = self.state() if before is None else before
        self.states.append(-1)
        self.ask(kind, bytes([before]) + body)
        return self.until(*to)

    # ---- a session

    def register(self, mode):
        self.change(0x01, self.uuid + bytes([mode, 1, 0]), (CONFIGURATION,), ALIVE)

    def configure(self, inputs, outputs, numerator=0, denominator=0):
        transport = 4 if self.tcp else 0
        if denominator:
            self.ask(0x20, struct.pack("<II", numerator, denominator))
        for pos, name in enumerate(inputs):
            vr, kind = self.variables[name]
            self.ask(0x22, struct.pack("<HHQB", 20, pos, vr, kind))
        for pos, name in enumerate(outputs):
            self.ask(0x23, struct.pack("<HHQ", 10, pos, self.variables[name][0]))
        if inputs:
            self.ask(0x2B, struct.pack("<HB", 20, 0))
            self.ask(0x26, struct.pack("<HBHI", 20, transport, self.address[1], LOOPBACK))
        self.ask(0x2B, struct.pack("<HB", 10, 0))
        self.ask(0x21, struct.pack("<IH", 1, 10))
        self.ask(0x25, struct.pack("<HBHI", 10, transport, self.data_port, LOOPBACK))

    def parameter(self, name, value):
        vr, kind = self.variables[name]
        packed = struct.pack("<d" if kind == FLOAT64 else "<i", value)
        self.ask(0x27, struct.pack("<QB", vr, kind) + packed)

    def log(self):
        for level in range(5):
            self.ask(0x2A, bytes([0, level, 2]))

    def prepare(self):
        self.change(0x03, to=(PREPARED,))
        self.change(0x04, to=(CONFIGURED,))
        if self.tcp:
            self.incoming = self.server.accept()[0]
            self.incoming.settimeout(PATIENCE)

    def run(self):
        self.change(0x06, bytes(8), (SYNCHRONIZED,))
        self.change(0x06, bytes(8), (RUNNING,))

    def give(self, payload):
        self.send(struct.pack("<BHH", 0xF0, self.data_seq, 20) + payload)
        self.data_seq += 1

    def take(self):
        """The payload of the next data."""
        while not self.data:
            if self.tcp:
                self.data.append(self.framed(self.incoming))
            else:
                self.receive()
        return self.data.pop(0)[5:]

    def step(self, steps=1):
        self.change(0x07, struct.pack("<I", steps), (COMPUTED,))
        self.change(0x08, to=(RUNNING,))
        return self.take()

    def stop(self):
        self.change(0x09, to=(STOPPED,))

    def reset(self):
        self.change(0x0A, to=(CONFIGURATION,))
        if self.incoming:
            self.incoming.close()

    def leave(self):
        self.change(0x02, to=(ALIVE,))


class DcpSlave(EndToEnd):
    def slave(self, *arguments, code=0):
        s = Slave(self, *arguments, "--write-description", "x.dcpx", code=code)
        transport, address = s.address()
        return s, Master(self, transport, address, self.path("x.dcpx"))

    def test_a_described_fmu_has_no_findings(self):
        for name, version in (("types", 2), ("types", 3), ("faulty", 3), ("lo_fd1", 2)):
            done = self.cardan("dcp", "describe", fmu(name, version), "-o", "d.dcpx",
                               "--address", "tcp://192.168.2.7:9000", "--hrt")
            self.assertIn(f"slave '{name}'", done.stdout)
            self.assertIn("0 errors, 0 warnings, 0 notes", self.cardan("check", "d.dcpx").stdout)
            self.cardan("dcp", "describe", fmu(name, version), "-o", "d.dcp")
            self.assertIn("0 errors, 0 warnings, 0 notes", self.cardan("check", "d.dcp").stdout)
        text = self.cardan("dcp", "describe", fmu("lo_fd1"), "--set", "m1=2.5").stdout
        m1 = [v for v in xml.fromstring(text).iter("Variable") if v.get("name") == "m1"][0]
        self.assertEqual(m1[0][0].get("start"), "2.5")
        self.cardan("dcp", "describe", fmu("lo_fd1"), "-o", "d.xml", code=2, says=".dcpx or .dcp")
        self.cardan("dcp", "describe", "none.fmu", code=2, says="none.fmu")
        self.cardan("dcp", "describe", fmu("lo_fd1"), "--set", "m9=1", code=2, says="m9")

    def test_a_system_is_described_by_what_is_free(self):
        self.oscillator()
        with open(self.path("oscillator.yaml"), encoding="utf-8") as f:
            text = f.read().replace("  - { from: first.f, to: second.f }\n", "")
        self.write("free.yaml", text)
        self.cardan("dcp", "describe", "free.yaml", "-o", "free.dcpx")
        self.assertIn("0 errors, 0 warnings, 0 notes", self.cardan("check", "free.dcpx").stdout)
        names = {v.get("name"): v[0].tag
                 for v in xml.parse(self.path("free.dcpx")).getroot().iter("Variable")}
        self.assertEqual(names["second.f"], "Input")
        self.assertEqual(names["first.f"], "Output")
        self.assertEqual(names["first.m1"], "Parameter")
        self.assertNotIn("first.x2", names)
        s, m = self.slave("free.yaml", "--listen", "udp://127.0.0.1:0")
        m.register(NRT)
        m.configure(["second.f"], ["second.x2"])
        m.prepare()
        m.run()
        m.give(struct.pack("<d", 3.0))
        x = struct.unpack("<d", m.step(100))[0]
        m.stop()
        m.leave()
        s.end(signal.SIGTERM)
        # the same without DCP
        self.write("same.yaml", text.replace("second: { fmu: lo_fd2.fmu }",
                                             "second: { fmu: lo_fd2.fmu, parameters: { f: 3 } }"))
        self.cardan("run", "same.yaml")
        self.assertEqual(self.column("coupled.csv", "second.x2")[-1], x)

    def run_twice(self, transport):
        s, m = self.slave(fmu("lo_fd2"), "--listen", f"{transport}://127.0.0.1:0", "--once",
                          "--capture", "all.pcapng")
        m.register(NRT)
        runs = []
        for turn in range(2):
            m.data_seq = 0
            m.configure(["f"], ["x2", "v2"], 1, 100)
            m.prepare()
            m.run()
            rows = []
            for n in range(20):
                m.give(struct.pack("<d", 5.0 if n % 3 else -1.0))
                rows.append(struct.unpack("<2d", m.step(1 + n % 2)))
            runs.append(rows)
            m.stop()
            if turn == 0:
                m.reset()
        m.leave()
        out, _ = s.end()
        self.assertIn("1 session, 60 steps, 0 late;", out)
        self.assertGreater(os.path.getsize(self.path("all.pcapng")), 5000)
        self.assertEqual(runs[0], runs[1])
        return runs[0]

    def test_runs_over_udp_and_tcp_are_the_same(self):
        self.assertEqual(self.run_twice("udp"), self.run_twice("tcp"))

    def test_real_time_paces_itself_and_a_signal_ends_it(self):
        s, m = self.slave(fmu("lo_fd2"), "--listen", "udp://127.0.0.1:0", "--listen",
                          "tcp://127.0.0.1:0", "--log-level", "info")
        transport, _ = s.address()  # both at once
        self.assertEqual(transport, "tcp")
        m.register(SRT)
        m.configure(["f"], ["x2"], 1, 100)
        m.prepare()
        m.run()
        begin = time.monotonic()
        for _ in range(30):
            m.take()
        self.assertGreater(time.monotonic() - begin, 0.2)
        m.stop()
        m.leave()
        out, err = s.end(signal.SIGINT)
        self.assertRegex(out, r"1 session, \d+ steps, \d+ late; \d+ PDUs received, \d+ sent")
        for state in ("CONFIGURATION", "RUNNING", "STOPPED", "ALIVE"):
            self.assertIn("state " + state, err)

    def test_an_fmu_that_crashes_ends_in_error_and_the_slave_lives_on(self):
        s, m = self.slave(fmu("faulty"), "--listen", "udp://127.0.0.1:0")
        m.register(NRT)
        for mode, says in ((7, "crashed in fmi2DoStep"), (3, "as asked for"), (12, "exit()")):
            m.logs.clear()
            m.log()
            m.parameter("mode", mode)
            m.parameter("when", 0.015)
            m.configure([], ["y"], 1, 100)
            m.prepare()
            m.run()
            m.step()
            m.step()
            self.assertEqual(m.change(0x07, struct.pack("<I", 1), (COMPUTED, ERRORRESOLVED)),
                             ERRORRESOLVED)
            self.assertEqual(m.ask(0x81, good=0xB3)[4:6], b"\x01\x10")
            self.assertIn(says, " ".join(text for _, text in m.logs))
            m.reset()
        m.leave()
        out, err = s.end(signal.SIGTERM)
        self.assertIn("crashed in fmi2DoStep", err)
        self.assertIn("1 session,", out)

    def test_an_fmu_that_crashes_in_the_slaves_own_process_ends_it(self):
        # Its heap may be damaged or locked: one sentence, and nothing after it.
        system = ("cardan: 1\nunits:\n  bad: { fmu: %s, parameters: { mode: %d, when: 0.015 } }\n%srun: { step: 0.01 }\n")
        for more in ("", "  other: { fmu: %s }\n" % fmu("lo_mono")):
            for mode, says in ((7, "crashed in fmi2DoStep (Segmentation fault)"), (12, "with exit() in fmi2DoStep")):
                self.write("s.yaml", system % (fmu("faulty"), mode, more))
                s, m = self.slave("s.yaml", "--listen", "udp://127.0.0.1:0", "--isolate", "none")
                s.code = 1
                m.register(NRT)
                m.configure([], ["bad.y"], 1, 100)
                m.prepare()
                m.run()
                m.step()
                m.step()
                m.send(struct.pack("<BHBBI", 0x07, m.seq, 1, m.state(), 1))
                _, err = s.end()
                self.assertIn("unit 'bad'", err)
                self.assertIn(says, err)
                self.assertEqual(err.count("unit 'bad'"), 1, err)

    def test_a_given_description_is_used_or_refused(self):
        self.cardan("dcp", "describe", fmu("lo_fd2"), "-o", "own.dcpx")
        with open(self.path("own.dcpx"), encoding="utf-8") as f:
            text = f.read()
        self.write("other.dcpx", text.replace('name="f" valueReference="0"',
                                              'name="f" valueReference="77"'))
        s, m = self.slave(fmu("lo_fd2"), "--description", "other.dcpx", "--listen",
                          "udp://127.0.0.1:0")
        self.assertEqual(m.variables["f"][0], 77)
        control = next(xml.parse(self.path("x.dcpx")).getroot().iter("Control"))
        self.assertEqual(int(control.get("port")), m.address[1])  # where it is now
        m.register(NRT)
        m.configure(["f"], ["x2"], 1, 100)
        m.prepare()
        m.run()
        m.give(struct.pack("<d", 1.0))
        m.step()
        s.end(signal.SIGTERM)
        self.write("bad.dcpx", text.replace('name="f" ', 'name="g" '))
        self.cardan("dcp", "slave", fmu("lo_fd2"), "--description", "bad.dcpx", "--listen",
                    "udp://127.0.0.1:0", code=2, says="there is no variable 'g' to be served")

    def test_mistakes_are_told(self):
        self.cardan("dcp", "slave", fmu("lo_fd2"), "--listen", "http://x", code=2, says="http://x")
        self.cardan("dcp", "slave", fmu("lo_fd2"), "--allow", "10.0.0.0/33", "--listen",
                    "udp://127.0.0.1:0", code=2, says="--allow '10.0.0.0/33'")
        self.cardan("dcp", "slave", fmu("lo_fd2"), "--max-size", "70000", "--listen",
                    "udp://127.0.0.1:0", code=2, says="expected 1 to 65000")
        self.cardan("dcp", "slave", "x.yaml", code=2, says="x.yaml")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
            self.cardan("dcp", "slave", fmu("lo_fd2"), "--listen", f"udp://127.0.0.1:{port}",
                        code=1, says=str(port))

    def test_json_and_failures_of_a_single_session(self):
        s = Slave(self, fmu("faulty"), "--listen", "udp://127.0.0.1:0", "--json", "--once",
                  "--write-description", "x.dcpx", "--set", "mode=3", "--set", "when=0", code=1)
        ready = json.loads(s.process.stdout.readline())
        self.assertEqual(ready["event"], "listening")
        port = int(ready["addresses"][0].rsplit(":", 1)[1])
        m = Master(self, "udp", ("127.0.0.1", port), self.path("x.dcpx"))
        m.register(NRT)
        m.configure([], ["y"], 1, 100)
        m.prepare()
        m.run()
        m.change(0x07, struct.pack("<I", 1), (ERRORRESOLVED,))
        m.leave()
        out, err = s.end()
        ended = json.loads(out)
        self.assertEqual(ended["event"], "ended")
        self.assertEqual(ended["sessions"], 1)
        self.assertIn("as asked for", ended["failure"])
        self.assertIn("as asked for", err)


if __name__ == "__main__":
    unittest.main()
