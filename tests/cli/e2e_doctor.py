"""cardan doctor on this machine: every check has its line, and the models of a system theirs."""

import json
import os
import re
import signal
import subprocess
import time
import unittest

from e2e import CARDAN, EndToEnd, fmu

STATES = {"ok", "warn", "fail", "n.a."}
AREAS = ["kernel", "rights", "scheduling", "CPU", "memory", "network", "time", "ports", "sandbox",
         "measurement", "models"]


class Doctor(EndToEnd):
    def doctor(self, *arguments, code=None):
        """Text and exit code of one run; whether this machine is ready is its own business."""
        done = subprocess.run([CARDAN, "doctor", *arguments], cwd=self.folder,
                              env=self.environment(), capture_output=True, text=True, timeout=120)
        self.assertNotIn("AddressSanitizer", done.stderr)
        self.assertNotIn("runtime error", done.stderr)
        self.assertIn(done.returncode, [0, 3] if code is None else [code], done.stderr)
        self.assertEqual(os.listdir(self.unpack), [])
        return done

    def checks(self, *arguments):
        done = self.doctor(*arguments, "--json")
        report = json.loads(done.stdout)
        self.assertEqual(report["exit_code"], done.returncode)
        return report

    def test_json_has_everything_of_every_check(self):
        for profile in ("desk", "soft", "hard"):
            report = self.checks("--duration", "0.2s", "--profile", profile)
            self.assertEqual(report["profile"], profile)
            states = [c["state"] for c in report["checks"]]
            self.assertEqual(report["ready"], "fail" not in states)
            self.assertEqual({s: states.count(s) for s in STATES}, report["counts"])
            areas = [AREAS.index(c["area"]) for c in report["checks"]]
            self.assertEqual(areas, sorted(areas))
            self.assertEqual(set(areas), set(range(10)))
            for c in report["checks"]:
                self.assertIn(c["state"], STATES)
                self.assertTrue(c["id"] and c["found"] and c["why"], c)
                self.assertEqual(c["fix"] is not None, c["state"] in ("warn", "fail"), c)
                if c["state"] == "fail":
                    self.assertEqual(c["need"], "needed", c)

    def test_measurements_count_their_samples(self):
        report = self.checks("--duration", "0.2s")
        for name in ("wake_up", "round_trip"):
            m = report[name]
            self.assertEqual(m["period"], 0.001)
            self.assertTrue(0 < m["samples"] <= 200, m)
            self.assertIsNone(m["p99_9"], "200 samples cannot tell it")
            self.assertLessEqual(m["p50"], m["max"])
        self.assertIn("half of the step left for work", report["supported"]["sentence"])
        self.assertGreater(report["supported"]["step"], 0)
        report = self.checks("--duration", "0")
        self.assertIsNone(report["wake_up"])
        self.assertIsNone(report["supported"]["step"])

    def test_lines_fit_100_columns_and_name_every_area(self):
        for profile in ("desk", "soft", "hard"):
            text = self.doctor("--duration", "0", "--profile", profile, "--all").stdout
            for line in text.splitlines():
                self.assertLessEqual(len(line), 100, line)
            self.assertNotIn("\033", text)
            for area in AREAS[:-1]:
                self.assertIn(f"\n{area}\n", "\n" + text)
        short = self.doctor("--duration", "0", "--profile", "desk").stdout
        self.assertIn("--all shows", short)
        self.assertLess(len(short), len(text))

    def test_a_step_that_no_machine_keeps_fails(self):
        done = self.doctor("--duration", "0.2s", "--step", "1ns", code=3)
        self.assertRegex(done.stdout, r"fail  step 1 ns +supports steps down to")
        self.assertIn("needs what failed: ", done.stderr)

    def test_wrong_calls_say_what_is_right(self):
        self.cardan("doctor", "--profile", "firm", code=2, says="desk")
        self.cardan("doctor", "--port", "http", code=2, says="expected a number from 1 to 65535")
        self.cardan("doctor", "--interface", "nic99", code=2, says="nic99: there is none")
        self.cardan("doctor", "--cpu", "1000", code=2, says="this machine has CPUs 0")
        self.cardan("doctor", "--cpu", "2000", code=2, says="expected 0 to 1023")
        self.cardan("doctor", "--priority", "100", code=2, says="expected 1 to 99")
        self.cardan("doctor", "--step", "0", code=2, says="--step")
        self.cardan("doctor", "--duration", "2h", code=2, says="an hour at most")
        self.cardan("doctor", "nothing.yaml", code=2, says="nothing.yaml")

    def test_the_models_of_a_system_are_tried(self):
        report = self.checks(self.oscillator(), "--duration", "0.2s")
        found = {(c["id"], c["subject"]): c for c in report["checks"] if c["area"] == "models"}
        units = sorted(s for i, s in found if i == "fmu-binary")
        self.assertEqual(len(units), 2)
        for unit in units:
            self.assertEqual(found["fmu-binary", unit]["state"], "ok")
            self.assertEqual(found["fmu-tool", unit]["found"], "needs none")
            self.assertRegex(found["step-time", unit]["found"], r" of its .* the worst of \d+")
        self.assertRegex(found["dry-run", None]["found"], r"^\d+ steps of .* of real time$")
        self.assertEqual([f for f in os.listdir(self.folder) if f.endswith(".csv")], [])

    def test_an_fmu_without_a_binary_for_this_machine_fails(self):
        bent = self.bend(fmu("lo_fd1"), remove=["binaries/", "sources/"],
                         add={"binaries/win64/x.dll": b"MZ"})
        done = self.doctor(bent, "--duration", "0.1s", "--profile", "desk", code=3)
        self.assertIn("fail  binary", done.stdout)
        self.assertIn("fmu-binary", done.stderr)
        self.assertIn("not made", done.stdout)

    def test_an_fmu_whose_library_is_junk_fails_in_the_dry_run(self):
        bent = self.bend(fmu("lo_fd1"), remove=["binaries/"],
                         add={"binaries/linux64/lo_fd1.so": b"\x7fELF junk"})
        report = self.checks(bent, "--duration", "0.1s", "--profile", "desk")
        dry = [c for c in report["checks"] if c["id"] == "dry-run"]
        self.assertEqual([c["state"] for c in dry], ["fail"], dry)

    def test_a_system_with_slaves_is_not_run(self):
        slave = os.path.join(os.path.dirname(os.path.abspath(__file__)), "slave.dcpx")
        self.write("bench.yaml", "cardan: 1\nunits:\n"
                   f"  b: {{ dcp: 'udp://127.0.0.1:9', description: {slave} }}\n"
                   "run: { step: 2 ms, stop: 1 s }\n")
        report = self.checks("bench.yaml", "--duration", "0.1s", "--profile", "desk")
        self.assertEqual(report["step"], 0.002)
        dry = [c for c in report["checks"] if c["id"] == "dry-run"]
        self.assertEqual([c["state"] for c in dry], ["n.a."], dry)
        self.assertIn("DCP slaves", dry[0]["found"])

    def test_ctrl_c_ends_with_what_was_measured(self):
        p = subprocess.Popen([CARDAN, "doctor", "--duration", "50s", "--json"], cwd=self.folder,
                             env=self.environment(), stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
        # The measurement has begun once its threads are there.
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with open(f"/proc/{p.pid}/status", encoding="utf-8") as f:
                if int(re.search(r"Threads:\s+(\d+)", f.read()).group(1)) > 1:
                    break
            time.sleep(0.05)
        time.sleep(0.3)
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=60)
        self.assertIn(p.returncode, (0, 3), err)
        report = json.loads(out)
        self.assertGreater(report["wake_up"]["samples"], 0)
        self.assertLess(report["wake_up"]["samples"], 45000)


if __name__ == "__main__":
    unittest.main()
