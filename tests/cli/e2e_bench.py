"""cardan bench: emulated benches in processes of their own, driven by cardan run."""

import json
import os
import re
import signal
import subprocess
import unittest

from e2e import CARDAN, EndToEnd

EM_CASE = """\
time [s],speed [rpm],torque [N.m],voltage [V],oil [degC]
0,0,0,350,30
1,2000,0,350,30
1.5,2000,100,350,30
9,2000,100,350,30
"""


class Bench(EndToEnd):
    def bench(self, kind, *options):
        """A bench process; `.address` is where it listens."""
        process = subprocess.Popen(
            [CARDAN, "bench", kind, "--listen", "udp://127.0.0.1:0", "--write-description",
             self.path(kind + ".dcpx"), "--watchdog", "10 s", *options], cwd=self.folder, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=dict(os.environ, TMPDIR=self.folder))
        self.addCleanup(self.end, process)
        line = process.stdout.readline()
        if "--json" in options:
            process.address = json.loads(line)["address"]
        else:
            found = re.match(r"listening at (\S+)", line)
            self.assertTrue(found, line + process.stderr.read() if process.poll() else line)
            process.address = found[1]
        return process

    def end(self, process, number=signal.SIGTERM):
        """What it has said since it listened."""
        if process.stdout.closed:
            return ""
        if process.poll() is None:
            process.send_signal(number)
        out, err = process.communicate(timeout=60)
        for part in ("AddressSanitizer", "runtime error", "ThreadSanitizer"):
            self.assertNotIn(part, err)
        self.assertEqual(process.returncode, 0, err)
        return out

    def system(self, bench, stop, session="{ }", plan="{ }", name="em"):
        self.write("case.csv", EM_CASE)
        return self.write(name + ".yaml", f"""\
cardan: 1
units:
  case: {{ replay: case.csv }}
  em:
    dcp: "{bench.address}"
    description: em.dcpx
    session: {session}
    bench: {plan}
connections:
  - case.speed -> em.speed_ref
  - case.torque -> em.torque_ref
  - case.voltage -> em.voltage_ref
  - case.oil -> em.oil_ref
run: {{ step: 10 ms, stop: {stop}, predict: hold }}
results: {name}.csv
""")

    def results(self, name):
        names, columns = self.table(name)
        return {re.sub(r" \[.*", "", n): c for n, c in zip(names, columns)}

    def test_a_bench_follows_its_case_stops_in_order_and_runs_again(self):
        bench = self.bench("em", "--speed-up", "500")
        self.system(bench, "3 s", plan='{ case: "speed 0..2000 1/min; torque 0..100 N.m; voltage '
                    '0..350 V; avoid speed 0..50 1/min with torque", initial: "oil 30 degC" }',
                    session="{ patience: 60 s }")
        for turn in range(2):
            self.cardan("run", "em.yaml")
            r = self.results("em.csv")
            self.assertAlmostEqual(r["em.speed"][-1], 2000, delta=5)
            self.assertAlmostEqual(r["em.torque"][-1], 99.5, delta=3)
            self.assertAlmostEqual(r["em.torque_calc"][-1], 100, delta=1.5)
            self.assertAlmostEqual(r["em.power_mech"][-1], 99.5 * 2000 * 3.14159 / 30, delta=500)
            self.assertAlmostEqual(r["em.oil_in"][-1], 30, delta=2)
            self.assertGreater(r["em.torque_max"][-1], 240)
        out = self.end(bench)
        phases = re.findall(r"phase ([^,\n]+)", out)
        order = ["idle", "preparation", "prepared", "conditioning", "conditioned", "armed", "run", "speed down",
                 "voltage down", "stand down", "safe"]  # short ones may pass unseen
        second = phases.index("safe") + 1
        for seen in (phases[:second], phases[second:]):
            self.assertEqual(sorted(seen, key=order.index), seen, out)
            self.assertLessEqual({"run", "speed down", "safe"}, set(seen), out)
        self.assertIn("stopped by master", out)
        self.assertIn("2 sessions, ", out)

    def test_a_fault_ends_the_run_with_the_words_of_the_bench(self):
        bench = self.bench("em", "--fault", "stuck-torque@1.2s", "--json")
        self.system(bench, "9 s", session="{ mode: srt }")
        done = self.cardan("run", "em.yaml", code=1)
        self.assertIn("the bench says: fault: lost torque control", done.stderr)
        self.assertGreater(len(self.results("em.csv")["time"]), 50)  # readable up to there
        events = [json.loads(line) for line in self.end(bench).splitlines()]
        stop = [e for e in events if e.get("phase") == "speed down"][0]
        self.assertEqual((stop["reason"], stop["why"]), ("checklist", "lost torque control"))
        self.assertEqual(events[-1]["event"], "ended")
        self.assertEqual(events[-1]["phase"], "safe")

    def test_a_case_outside_of_the_limits_is_refused_before_anything_turns(self):
        bench = self.bench("em")
        self.system(bench, "1 s", plan='{ case: "speed 0..9000 1/min" }')
        self.cardan("check", "em.yaml", code=2, says="speed")
        self.cardan("run", "em.yaml", code=2, says="speed")
        self.assertNotIn("phase", self.end(bench, signal.SIGINT))

    def test_ended_in_a_run_it_stops_in_order(self):
        bench = self.bench("em")
        self.system(bench, "30 s", session="{ mode: srt }")
        run = subprocess.Popen([CARDAN, "run", "em.yaml", "--quiet"], cwd=self.folder, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=self.environment())
        said = ""
        while "phase run\n" not in said:
            line = bench.stdout.readline()
            self.assertTrue(line, said)
            said += line
        out = self.end(bench)
        _, err = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 1, err)
        self.assertIn("stopped by operator", out)
        self.assertIn("phase safe", out)

    def test_the_other_benches_run_in_steps(self):
        ice, small = self.bench("ice"), self.bench("backtoback", "--ideal")
        self.write("case.csv", """\
time [s],speed [rpm],pedal [%],torque [N.m],voltage [V]
0,0,0,0,35
1,2000,0,0,35
1.5,2000,40,0.2,35
3,2000,40,0.2,35
""")
        self.write("both.yaml", f"""\
cardan: 1
units:
  case: {{ replay: case.csv }}
  ice: {{ dcp: "{ice.address}", description: ice.dcpx }}
  small: {{ dcp: "{small.address}", description: backtoback.dcpx }}
connections:
  - case.speed -> ice.speed_ref
  - case.pedal -> ice.pedal_ref
  - case.speed -> small.speed_ref
  - case.torque -> small.torque_ref
  - case.voltage -> small.voltage_ref
run: {{ step: 10 ms, stop: 3 s, predict: hold }}
results: both.csv
""")
        self.cardan("run", "both.yaml")
        r = self.results("both.csv")
        self.assertAlmostEqual(r["ice.speed"][-1], 2000, delta=5)
        self.assertGreater(r["ice.torque"][-1], 100)
        self.assertAlmostEqual(r["small.speed"][-1], 2000, delta=2)
        self.assertAlmostEqual(r["small.current"][-1], 0.2 / 48.6e-3, delta=0.05)

    def test_what_is_wrong_is_said(self):
        for options, says in (
                (["--fault", "fire@1s"], "fault 'fire', expected overtemperature"),
                (["--fault", "stuck-torque"], "overtemperature@30s"),
                (["--fault", "sensor-loss:smell@1s"], "no output 'smell'"),
                (["--speed-up", "5000"], "speed-up 5000, expected 1 to 1000"),
                (["--listen", "udp://nobody"], "nobody"),
                (["--write-description", "em.txt"], "ends with .dcpx or .dcp")):
            with self.subTest(options):
                self.cardan("bench", "em", *options, code=2, says=says)
        self.cardan("bench", "em", "--trace", "nowhere/em.csv", "--listen", "udp://127.0.0.1:0",
                    code=1, says="--trace nowhere/em.csv: No such file")
        self.cardan("bench", "backtoback", "--fault", "coolant-loss@1s", code=2,
                    says="has no coolant")
        self.cardan("bench", code=2, says="em, ice, backtoback")
        self.assertIn("derating", self.cardan("help", "bench", "em").stdout)


if __name__ == "__main__":
    unittest.main()
