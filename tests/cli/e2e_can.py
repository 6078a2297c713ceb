"""cardan can log and send: a bus of this host, logs as candump has them, signals, recordings."""

import json
import os
import signal
import subprocess
import sys
import time
import unittest

from e2e import CARDAN, HERE, EndToEnd

DRIVE = os.path.join(HERE, "..", "wire", "data", "drive_latin1_crlf.dbc")
CAN = os.path.join(HERE, "..", "..", "examples", "can")
POWERTRAIN = os.path.join(HERE, "..", "wire", "data", "powertrain.dbc")
BUS = f"udp://239.74.163.3:{20000 + os.getpid() % 20000}"
LOG = """(1436509052.249713) vcan0 064#ED03000000100000
(1436509052.260000) vcan0 065#E803F4FF64100000
  vcan0  066   [4]  78 50 00 00
(1436509052.270000) vcan0 12345678##1AB
(1436509052.280000) vcan0 064#D007000000100000
"""


class Can(EndToEnd):
    def listen(self, *arguments):
        """A listener on the bus that is ready."""
        p = subprocess.Popen([CARDAN, "can", "log", BUS, *arguments], cwd=self.folder, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(p.kill)
        self.assertIn("listening", (p.stdout if "--json" in arguments else p.stderr).readline())
        return p

    def test_what_is_sent_is_logged(self):
        p = self.listen("-n", "4")
        self.cardan("can", "send", BUS, "123#DEADBEEF", "00000123##1AB", "7FF#R2")
        self.cardan("can", "send", BUS, "--dbc", DRIVE, "Set:SpeedRef=100.5,Enable=1")
        out, err = p.communicate(timeout=60)
        self.assertEqual([line.split()[2] for line in out.splitlines()],
                         ["123#DEADBEEF", "00000123##1AB", "7FF#R2", "064#ED03000000100000"], err)
        self.write("x.log", out)
        again = self.listen("--json")
        self.assertIn("4 frames", self.cardan("can", "send", BUS, "--log", "x.log", "--speed", "0").stdout)
        rows = [json.loads(again.stdout.readline()) for _ in range(4)]
        self.assertEqual([r["frame"] for r in rows], [line.split()[2] for line in out.splitlines()])
        again.send_signal(signal.SIGINT)
        out, err = again.communicate(timeout=60)
        self.assertEqual(again.returncode, 0, err)
        self.assertEqual(json.loads(out.splitlines()[-1])["frames"], 4)

    def test_cyclic_frames(self):
        # The k-th leaves no earlier than k periods behind the beginning of sending, however late it is.
        p = self.listen("-n", "5")
        begin = time.monotonic()
        self.cardan("can", "send", BUS, "001#", "--period", "100ms", "-n", "5")
        self.assertGreaterEqual(time.monotonic() - begin, 0.4)
        self.assertEqual(len(p.communicate(timeout=60)[0].splitlines()), 5)

    def test_a_log_as_signals(self):
        self.write("drive.log", LOG)
        rows = [json.loads(line) for line in
                self.cardan("can", "log", "drive.log", "--dbc", DRIVE, "--json").stdout.splitlines()]
        # 0x03ED = 1005 tenths; 0xFFF4 = -12 hundredths; 0x64 tenths and bit 44; 0x78 - 40
        self.assertEqual(rows[0]["signals"]["SpeedRef"], 100.5)
        self.assertEqual(rows[1]["signals"]["Torque"], -0.12)
        self.assertEqual(rows[1]["signals"]["Voltage"], 10)
        self.assertEqual(rows[1]["signals"]["Ready"], 1)
        self.assertEqual(rows[2]["signals"]["Winding"], 80)
        self.assertNotIn("signals", rows[3])
        self.assertEqual(rows[5]["unknown"], 1)
        text = self.cardan("can", "log", "drive.log", "--dbc", DRIVE, "--message", "Act*").stdout
        self.assertEqual(len(text.splitlines()), 1)
        self.assertIn("Torque=-0.12 N.m", text)
        self.assertIn("Ready=1 'bereit'", text)

    def test_a_log_as_a_recording(self):
        self.write("drive.log", LOG.replace("  vcan0  066", "(1436509052.265000)  vcan0  066"))
        self.cardan("can", "log", "drive.log", "--dbc", DRIVE, "-o", "drive.csv")
        with open(self.path("drive.csv"), encoding="utf-8") as f:
            rows = [line.split(",") for line in f.read().splitlines()]
        at = rows[0].index("Set.SpeedRef")
        self.assertEqual([r[at] for r in rows[1:]], ["100.5", "100.5", "100.5", "200"])
        self.assertAlmostEqual(float(rows[4][0]), 0.030287, places=9)
        self.cardan("can", "log", "drive.log", "--dbc", DRIVE, "-o", "drive.mf4")
        info = self.cardan_json("info", "drive.mf4")
        self.assertEqual({g["name"]: g["rows"] for g in info["groups"]},
                         {"Set": 2, "Actual": 1, "Temperatures": 1})
        self.assertIn("2015-07-10T06:17:32", json.dumps(info))

    def test_multiplexed_signals_are_there_or_not(self):
        self.write("x.log", "can0 12C#01D0070000000000\ncan0 12C#00D0070000000000\n")
        rows = [json.loads(line)["signals"] for line in
                self.cardan("can", "log", "x.log", "--dbc", POWERTRAIN, "--json").stdout.splitlines()[:2]]
        self.assertEqual(rows[0]["CellMax"], 2)
        self.assertNotIn("PackVoltage", rows[0])
        self.assertEqual(rows[1]["PackVoltage"], 200)

    def test_a_log_that_is_ended_takes_what_is_there(self):
        # The process stands still while frames come: all are in its socket when it is told to end.
        p = self.listen()
        p.send_signal(signal.SIGSTOP)
        while "T" not in open(f"/proc/{p.pid}/stat", encoding="ascii").read().split(")")[1].split()[0]:
            pass
        self.cardan("can", "send", BUS, *(f"{i:03X}#{i:02X}" for i in range(100)))
        p.send_signal(signal.SIGINT)
        p.send_signal(signal.SIGCONT)
        out, err = p.communicate(timeout=60)
        self.assertEqual(len(out.splitlines()), 100, err)
        self.assertEqual(p.returncode, 0, err)

    def drive(self, seconds, fault=""):
        """The drive of examples/can on a bus of its own, in a folder with its files."""
        for name in ("drive.dbc", "drive.yaml"):
            with open(os.path.join(CAN, name), encoding="utf-8") as f:
                self.write(name, f.read().replace("udp://239.74.163.2:43113", BUS))
        p = subprocess.Popen([sys.executable, os.path.join(CAN, "drive.py"), BUS[6:], str(seconds), fault],
                             cwd=self.folder, text=True, stdout=subprocess.PIPE)
        self.addCleanup(p.kill)
        self.assertEqual(p.stdout.readline(), "ready\n")
        return p

    def run_drive(self, *arguments, **how):
        return self.cardan("run", "drive.yaml", *arguments, **how)

    def test_a_drive_as_a_unit(self):
        p = self.drive(30)
        said = self.run_drive()
        self.assertNotIn("wrong checksum", said.stderr)
        with open(self.path("drive.csv"), encoding="utf-8") as f:
            rows = [line.split(",") for line in f.read().splitlines()]
        self.assertEqual(rows[0], ["time", "driver.y", "drive.Actual.Speed", "drive.Actual.Torque",
                                   "drive.Actual.State"])
        # 0.8 s behind the step the speed, of 50 ms, is as good as there; it never goes beyond
        speeds = [float(r[2]) for r in rows[1:]]
        self.assertEqual(float(rows[1][2]), 0)
        self.assertGreater(max(speeds), 990)
        self.assertLessEqual(max(speeds), 1000)
        self.assertIsNone(p.poll())

    def test_mistakes_of_a_drive_are_counted(self):
        self.drive(30, "crc")
        said = self.run_drive().stderr
        self.assertRegex(said, r"'Actual' \(8 bytes\): \d+ taken; \d+ with a wrong checksum")

    def test_a_drive_that_falls_silent(self):
        self.drive(30, "gone")
        with open(self.path("drive.yaml"), encoding="utf-8") as f:
            text = f.read()
        self.write("drive.yaml", text.replace("    parameters:", "    link: { timeout: 50 ms }\n    parameters:")
                   .replace("stop: 1 s", "stop: 20 s"))
        self.run_drive(code=1, says=f"no valid message 'Actual' from {BUS}")

    def test_a_stand_in_for_a_drive(self):
        self.drive(30, "gone")
        with open(self.path("drive.yaml"), encoding="utf-8") as f:
            text = f.read()
        self.write("drive.yaml", text.replace("    parameters:", """    standby:
      after: 300 ms
      signals: { v: { shape: constant, value: -1, unit: 1/min }, m: { shape: constant, value: 0, unit: N.m },
                 s: { shape: constant, value: 3 } }
      names: { Actual.Speed: v, Actual.Torque: m, Actual.State: s }
    parameters:""").replace("stop: 1 s", "stop: 2 s"))
        self.assertIn("the bench is not back", self.run_drive().stderr)

    def test_a_unit_with_mistakes(self):
        self.drive(0)
        with open(self.path("drive.yaml"), encoding="utf-8") as f:
            text = f.read()
        for old, new, says in (
                ("      Set:", "      Sett:", "bad.yaml:12: units.drive.send: 'Sett', expected a message of drive.dbc"),
                ("      Actual:", "      Set:", "bad.yaml:14: units.drive.receive: Set is sent already (line 12)"),
                ("counter: Count", "counter: Cnt", "units.drive.send.Set.counter: 'Cnt', expected a field"),
                ("type: crc8", "type: crc16", "bad.yaml:12: Set: Crc cannot be the checksum crc16"),
                ("    dbc: drive.dbc\n", "", "the key 'dbc' is missing"),
                ("drive.dbc", "none.dbc", "none.dbc: no such file"),
                ("    parameters:", "    layout: x\n    parameters:", "'layout' is for units with the key 'frames' only"),
                ("    parameters:", "    link: { listen: true }\n    parameters:", "link.listen means nothing")):
            self.write("bad.yaml", text.replace(old, new, 1))
            self.cardan("check", "bad.yaml", code=2, says=says)
        self.write("bad.yaml", text.replace(BUS, "udp://127.0.0.1:5000"))
        self.cardan("run", "bad.yaml", says="expected a multicast group", code=2)

    def test_bad_input(self):
        self.cardan("can", "send", BUS, "--dbc", DRIVE, "Set:SpeedRef=9999", code=2,
                    says="Set.SpeedRef = 9999, expected -3000 to 3000 1/min")
        self.cardan("can", "send", BUS, "--dbc", DRIVE, "Set:Speed=1", code=2, says="no signal 'Speed'")
        self.cardan("can", "send", BUS, "12#", code=2, says="expected a frame as 123#DEADBEEF")
        self.cardan("can", "send", BUS, code=2, says="expected either frames")
        self.cardan("can", "log", "udp://127.0.0.1:5000", code=2, says="expected a multicast group")
        self.cardan("can", "log", "none.log", code=2, says="none.log: no such file")
        self.write("bad.log", "can0 123#00\ncan0 12G#00\n")
        self.cardan("can", "log", "bad.log", code=2, says="bad.log:2: ")
        self.cardan("can", "log", "bad.log", "-o", "x.csv", code=2, says="is said by --dbc FILE")
        self.write("bad.dbc", "BO_ 1 A: 8 X\n SG_ S : 60|8@1+ (1,0) [0|0] \"\" X\n")
        self.cardan("can", "log", "bad.log", "--dbc", "bad.dbc", code=2, says="bad.dbc:2: A: S ends at bit 67")

    def test_check_of_dbc_files(self):
        self.assertEqual(self.cardan("check", DRIVE).stdout, "ok: DBC file of 3 messages\n")
        self.assertEqual(self.cardan_json("info", DRIVE)["messages"][0]["name"], "Set")
        head = 'BO_ 1 A: 8 X\n SG_ M M : 0|8@1+ (1,0) [0|0] "" X\n'
        for line, says in ((' SG_ S : 4|8@1+ (1,0) [0|0] "" X\n', "bad.dbc:3: A: S (from bit 4, 8 bits) overlaps M"),
                           (' SG_ S : 60|8@1+ (1,0) [0|0] "" X\n', "bad.dbc:3: A: S ends at bit 67"),
                           ("SG_MUL_VAL_ 1 M Nobody 0-1;\n", "bad.dbc:3: "),
                           ('BO_ 2 B: 8 X\n SG_ T m1 : 0|8@1+ (1,0) [0|0] "" X\n', "no signal with M")):
            self.write("bad.dbc", head + line)
            self.cardan("check", "bad.dbc", code=2, says=says)

    def test_captures_of_a_unit_are_read_back(self):
        self.drive(30)
        with open(self.path("drive.yaml"), encoding="utf-8") as f:
            text = f.read()
        self.write("drive.yaml", text.replace("    parameters:", "    link: { capture: bus.pcapng }\n    parameters:"))
        self.run_drive()
        rows = [json.loads(line) for line in
                self.cardan("can", "log", "bus.pcapng", "--dbc", "drive.dbc", "--json").stdout.splitlines()]
        sent = [r["signals"]["Count"] for r in rows if r.get("message") == "Set"]
        self.assertGreater(len(sent), 90)
        self.assertEqual(sent, [i % 16 for i in range(len(sent))])  # every one of them, in order
        self.assertGreater(len([r for r in rows if r.get("message") == "Actual"]), 50)
        self.assertEqual(rows[-1]["unknown"], 0)
        # What is written is what was read.
        first = self.cardan("can", "log", "bus.pcapng", "--write", "again.pcapng").stdout
        self.assertEqual(self.cardan("can", "log", "again.pcapng").stdout, first)
        self.cardan("can", "log", "bus.pcapng", "--write", "bus.pcapng", code=2, says="is what is read")
        self.assertRegex(self.cardan("dcp", "log", "bus.pcapng").stdout, r"^0 PDUs, \d+ other packets \(\d+ of CAN: --matrix")
        with open(self.path("bus.pcapng"), "rb") as f:
            data = f.read()
        with open(self.path("cut.pcapng"), "wb") as f:
            f.write(data[:-3])
        self.cardan("can", "log", "cut.pcapng", code=2, says="the capture ends within a packet")

    def test_the_emulator_between_two_buses(self):
        # Of what passes the counters are exact; the seed decides, not the load of the host.
        far = BUS.replace("163.3", "163.4")
        here, there = "can://" + BUS[6:], "can://" + far[6:]
        emulator = subprocess.Popen([CARDAN, "dcp", "emulate", "--listen", here, "--to", there, "--delay", "3 ms", "--jitter",
                                     "1 ms", "--loss", "0.2", "--duplicate", "0.1", "--json", "--capture", "both.pcapng"],
                                    cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(emulator.kill)
        self.assertIn("listening", emulator.stdout.readline())
        p = subprocess.Popen([CARDAN, "can", "log", far], cwd=self.folder, text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        self.addCleanup(p.kill)
        self.assertIn("listening", p.stderr.readline())
        frames = [f"{i:03X}#{i:04X}" for i in range(200)]
        self.cardan("can", "send", BUS, *frames)
        back = self.listen("-n", "201")
        self.cardan("can", "send", BUS, *frames[:1])
        self.cardan("can", "send", far, "7FF#AB")
        while "7FF#AB" not in back.stdout.readline():
            pass
        back.kill()
        back.communicate()
        emulator.send_signal(signal.SIGINT)
        counts = json.loads(emulator.communicate(timeout=60)[0].splitlines()[-1])
        path = counts["there"]
        self.assertEqual(path["received"], 201)
        self.assertEqual(path["received"] + path["duplicated"],
                         path["sent"] + path["lost"] + path["waiting"] + path["unsent"])
        # Binomial: 40 of 200 are lost, deviation 5.7, and 18 of the others come twice, 4.1: five of them
        self.assertTrue(11 <= path["lost"] <= 69 and 1 <= path["duplicated"] <= 39, path)
        self.assertEqual(counts["back"]["sent"] + counts["back"]["lost"], 1 + counts["back"]["duplicated"])
        p.send_signal(signal.SIGINT)
        got = [line.split()[2] for line in p.communicate(timeout=60)[0].splitlines()]
        got.remove("7FF#AB")
        self.assertEqual(len(got), path["sent"])
        self.assertTrue(set(got) <= set(frames))
        seen = self.cardan("can", "log", "both.pcapng").stderr
        self.assertEqual(seen, f"{201 + path['sent'] + 1 + counts['back']['sent']} frames\n")
        self.cardan("dcp", "emulate", "--listen", here, "--to", "udp://127.0.0.1:9", code=2, says="a CAN bus goes with another one")
        self.cardan("dcp", "emulate", "--listen", here, "--to", here, code=2, says="expected two buses")

    CIRCUIT = "low-pass\n.param R=1k C=1u\nV1 in 0 0\nR1 in out {R}\nC1 out 0 {C}\n.tran 10u 20m\n.input V1\n.output v(out) i(R1)\n.end\n"
    SYSTEM = """cardan: 1
units:
  step: { signal: { shape: step, amplitude: 1, start: 5 ms, unit: V } }
  low:
    dcp: ADDRESS
    description: low.dcpx
    session: { matrix: bus.xml }
connections: [ step.y -> low.V1 ]
run: { step: 1 ms, stop: 20 ms }
results: run.csv
"""

    def dcp(self, *arguments):
        """A circuit as a DCP slave on the bus, with its files and a system for it."""
        at = "can://" + BUS[6:]
        self.write("low.cir", self.CIRCUIT)
        self.write("dcp.yaml", self.SYSTEM.replace("ADDRESS", at))
        self.cardan("dcp", "describe", "low.cir", "--resolution", "1ms", "--address", "can://x", "-o", "low.dcpx")
        self.assertIn("0 warnings", self.cardan("check", "low.dcpx").stdout)
        self.cardan("dcp", "matrix", "low.dcpx", "-o", "bus.xml")
        self.assertIn("0 errors, 0 warnings, 0 notes", self.cardan("check", "bus.xml").stdout)
        p = subprocess.Popen([CARDAN, "dcp", "slave", "low.cir", "--listen", at, "--matrix", "bus.xml", "--resolution", "1ms",
                              "--heartbeat", "5s", *arguments], cwd=self.folder, text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        self.addCleanup(p.kill)
        self.assertEqual(p.stdout.readline(), f"listening at {at}\n")
        return p

    def rows(self, name):
        with open(self.path(name), encoding="utf-8") as f:
            return f.read()

    def test_dcp_over_can_is_what_the_circuit_is_alone(self):
        slave = self.dcp("--once", "--capture", "slave.pcapng")
        self.cardan("check", "dcp.yaml")
        text = self.rows("dcp.yaml")
        self.write("dcp.yaml", text.replace("bus.xml }", "bus.xml, capture: master.pcapng }"))
        self.cardan("run", "dcp.yaml")
        out, err = slave.communicate(timeout=60)
        self.assertEqual(slave.returncode, 0, err)
        self.assertIn("1 session, 20 steps, 0 late", out)
        over_can = self.rows("run.csv")
        self.write("alone.yaml", "\n".join(line for line in text.replace("dcp: can", "circuit: low.cir # ").splitlines()
                                           if "description" not in line and "session" not in line))
        self.cardan("run", "alone.yaml")
        self.assertEqual(self.rows("run.csv"), over_can)
        # Both ends have seen the same, and what it says is read with names and values.
        log = ("dcp", "log", "--matrix", "bus.xml", "--description", "low.dcpx")
        seen = [line.split(maxsplit=1)[1] for line in self.cardan(*log, "master.pcapng").stdout.splitlines()[:-1]]
        other = [line.split(maxsplit=1)[1] for line in self.cardan(*log, "slave.pcapng").stdout.splitlines()[:-1]]
        self.assertEqual(sorted(seen), sorted(other))
        self.assertIn("can://0 -> 1  STC_register rcv=1 state_id=ALIVE op_mode=NRT", seen)
        self.assertEqual(len([x for x in seen if "DAT_input_output data_id=1 V1=" in x]), 21)
        self.assertEqual(seen.count("can://0 -> 1  STC_do_step rcv=1 state_id=RUNNING steps=1"), 20)
        last = [x for x in seen if " v(out)=" in x][-1].split("v(out)=")[1]
        self.assertEqual(float(last), float(over_can.splitlines()[-1].split(",")[2]))

    def test_dcp_over_can_in_real_time_through_the_emulator(self):
        self.dcp("--once")
        far = BUS.replace("163.3", "163.5")
        emulator = subprocess.Popen([CARDAN, "dcp", "emulate", "--listen", "can://" + far[6:], "--to", "can://" + BUS[6:],
                                     "--delay", "2 ms", "--json"], cwd=self.folder, text=True, stdout=subprocess.PIPE)
        self.addCleanup(emulator.kill)
        self.assertIn("listening", emulator.stdout.readline())
        text = self.rows("dcp.yaml").replace(BUS[6:], far[6:])
        self.write("dcp.yaml", text.replace("bus.xml }", "bus.xml, mode: srt }").replace("stop: 20 ms", "stop: 300 ms"))
        said = self.cardan("run", "dcp.yaml").stderr
        self.assertIn("the guard does not reach a CAN bus", said)
        end = [float(x) for x in self.rows("run.csv").splitlines()[-1].split(",")]
        self.assertAlmostEqual(end[2], 1, places=6)  # 295 time constants behind the step
        emulator.send_signal(signal.SIGINT)
        counts = json.loads(emulator.communicate(timeout=60)[0].splitlines()[-1])
        self.assertGreaterEqual(counts["there"]["sent"], 300)

    def test_a_slave_that_dies_on_the_bus(self):
        slave = self.dcp()
        self.write("dcp.yaml", self.rows("dcp.yaml").replace("bus.xml }", "bus.xml, mode: srt, timeout: 50 ms, alive: 500 ms }")
                   .replace("stop: 20 ms", "stop: 60 s"))
        p = subprocess.Popen([CARDAN, "run", "dcp.yaml", "--log-level", "info"], cwd=self.folder, text=True,
                             stderr=subprocess.PIPE)
        self.addCleanup(p.kill)
        for line in p.stderr:
            if "RUNNING" in line:
                break
        slave.kill()
        said = p.communicate(timeout=60)[1]
        self.assertEqual(p.returncode, 1, said)
        self.assertIn("the DCP slave at can://1 is lost", said)

    def test_dcp_over_can_with_mistakes(self):
        self.dcp()
        text, matrix = self.rows("dcp.yaml"), self.rows("bus.xml")
        for old, new, says in (
                ("    session: { matrix: bus.xml }\n", "", "needs session: { matrix: FILE }"),
                ("bus.xml }", "none.xml }", "none.xml: no such file"),
                ("bus.xml }", "bus.xml, id: 7 }", "has no <DcpSlave> with the uuid of low.dcpx and this id"),
                ("bus.xml }", "bus.xml, key: k }", "session.key means nothing on a CAN bus"),
                ("dcp: can://" + BUS[6:], "dcp: udp://127.0.0.1:8080", "session.matrix is for slaves on a CAN bus")):
            self.write("bad.yaml", text.replace(old, new, 1))
            self.cardan("check", "bad.yaml", code=2, says=says)
        self.write("bad.xml", matrix.replace('canId="258"', 'canId="257"'))
        self.write("bad.yaml", text.replace("bus.xml", "bad.xml"))
        self.cardan("check", "bad.yaml", code=2, says="bad.xml:6: <STC_prepare> has canId = 257, which <STC_deregister> in line 5")
        # A message that has lost a value, a parameter that the file does not have: told before anything runs.
        self.write("bad.xml", matrix.replace('<Receiver dcpId="0"/>', '<Receiver dcpId="1"/>', 1))
        self.cardan("run", "bad.yaml", code=2, says="is in no message of bad.xml as an output to the master")
        self.write("bad.yaml", text.replace("description:", "parameters: { R: 2000 }\n    description:"))
        self.cardan("run", "bad.yaml", code=2, says="the parameter R is set here, but not to the same in bus.xml")
        self.write("bad.yaml", text.replace("bus.xml }", "bus.xml, contact: 100 ms, timeout: 20 ms }")
                   .replace("163.3:", "163.6:"))
        self.cardan("run", "bad.yaml", code=1, says="no DCP slave answers at can://1")
        self.cardan("dcp", "slave", "low.cir", "--listen", "can://" + BUS[6:], code=2, says="belong together")
        self.write("udp.dcpx", self.cardan("dcp", "describe", "low.cir").stdout)
        self.cardan("dcp", "matrix", "udp.dcpx", code=2, says="udp.dcpx: the slave does not offer CAN")
        self.cardan("dcp", "matrix", "low.dcpx", "--first-id", "2047", code=2, says="expected them below 2048")

    def test_a_bench_of_a_drive_whose_counter_stands_still(self):
        with open(os.path.join(HERE, "..", "..", "docs", "reference", "can.md"), encoding="utf-8") as f:
            page = f.read()
        port = 30000 + os.getpid() % 10000
        for name in ("gateway.yaml", "drive-bench.yaml", "session.yaml"):
            text = page.split(f"<!-- file: {name} -->")[1].split("```")[1].split("\n", 1)[1]
            self.write(name, text.replace("udp://239.74.163.2:43113", BUS).replace("9394", str(port)).replace("stop: 2 s", "stop: 60 s")
                       .replace("contact: 1 s, timeout: 100 ms", "contact: 60 s, timeout: 1500 ms").replace("watchdog: 500 ms", "watchdog: 5 s")
                       .replace("heartbeat: 3 s", "heartbeat: 30 s"))
        drive = self.drive(100, "counter@fast")
        slave = subprocess.Popen([CARDAN, "dcp", "slave", "gateway.yaml", "--bench", "drive-bench.yaml", "--listen", f"udp://127.0.0.1:{port}",
                                  "--write-description", "drive.dcpx", "--once"], cwd=self.folder, text=True, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        self.addCleanup(slave.kill)
        self.assertIn("listening", slave.stdout.readline())
        self.cardan("run", "session.yaml", code=1, says=("no valid message 'Actual' from", "one that stood still"))
        self.assertIn("one that stood still", slave.communicate(timeout=60)[1])
        self.assertEqual(slave.returncode, 1)
        drive.kill()
        drive.communicate()


if __name__ == "__main__":
    unittest.main()
