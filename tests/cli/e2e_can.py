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
                ("      Set:", "      Sett:", "bad.yaml:9: units.drive.send: 'Sett', expected a message of drive.dbc"),
                ("      Actual:", "      Set:", "bad.yaml:11: units.drive.receive: Set is sent already (line 9)"),
                ("counter: Count", "counter: Cnt", "units.drive.send.Set.counter: 'Cnt', expected a field"),
                ("type: crc8", "type: crc16", "bad.yaml:9: Set: Crc cannot be the checksum crc16"),
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


if __name__ == "__main__":
    unittest.main()
