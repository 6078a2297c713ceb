"""Benches whose masters are killed or stopped, as processes; units that a file makes benches."""

import csv
import os
import re
import signal
import subprocess
import time
import unittest

from e2e import CARDAN, EndToEnd, fmu

BENCH = """\
bench: 1
quantities:
  speed:
    role: speed
    set: speed_ref
    measured: speed
    limits: 0..6500 1/min rate 4000 1/min/s
    trip: -100..7000 1/min
  torque:
    role: torque
    set: torque_ref
    measured: torque
    limits: -200..200 N.m rate 5000 N.m/s
  voltage:
    role: voltage
    set: voltage_ref
    measured: voltage_dc
    limits: 0..400 V rate 500 V/s
avoid: speed 0..50 1/min with torque
induced: 0.05
stop: { order: [torque, speed, voltage], safe_speed: 100, rate: 2000, patience: 10 s }
"""

STOP_TIME = 8  # s, of the sheet of the EM bench
PHASES = {"run": 5, "safe": 10, "armed": 11}


class Process(EndToEnd):
    def start(self, *arguments):
        process = subprocess.Popen([CARDAN, *arguments], cwd=self.folder, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   env=dict(os.environ, TMPDIR=self.folder))
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        try:
            process.communicate(timeout=60)
        except ValueError:  # closed already
            pass

    def listening(self, *arguments):
        process = self.start(*arguments)
        process.said, found = "", None
        while not found:
            line = process.stdout.readline()
            self.assertTrue(line, process.said)
            process.said += line
            found = re.match(r"listening at (\S+)", line)
        process.address = found[1]
        return process


class Killed(Process):
    def bench(self):
        return self.listening("bench", "em", "--listen", "udp://127.0.0.1:0",
                              "--write-description", "em.dcpx", "--speed-up", "100", "--trace",
                              "trace.csv")

    def master(self, bench, lead="0"):
        self.write("em.yaml", f"""\
cardan: 1
units:
  em:
    dcp: "{bench.address}"
    description: em.dcpx
    session: {{ mode: srt, lead: {lead} }}
    bench: {{ }}
    parameters: {{ speed_ref: 3000, torque_ref: 40, voltage_ref: 350 }}
run: {{ step: 10 ms, stop: 1000 s }}
""")
        return self.start("run", "em.yaml", "--quiet")

    def rows(self):
        with open(self.path("trace.csv"), encoding="utf-8") as f:
            table = list(csv.reader(f)) or [[]]
        names = [re.sub(r" \[.*", "", n) for n in table[0]]
        return [dict(zip(names, map(float, r))) for r in table[1:] if len(r) == len(names)]

    def wait_for(self, condition):
        until = time.monotonic() + 60
        while time.monotonic() < until:
            rows = self.rows() if os.path.exists(self.path("trace.csv")) else []
            if rows and condition(rows[-1]):
                return rows
        self.fail(f"waited for a minute: {rows[-1] if rows else 'no rows'}")

    def check_rest(self, dead):
        """At rest within watchdog and stop time, in the bench's own time."""
        rows = self.wait_for(lambda r: r["phase"] == PHASES["safe"])
        after = [r for r in rows if r["time"] > dead]
        rest = next(r["time"] for r in after if r["phase"] == PHASES["safe"])
        self.assertLess(rest - dead, 3 + 0.5 + STOP_TIME)
        # Standstill is 1 1/min as it is measured; the true speed may be the noise of its sensor away.
        self.assertLess(abs(rows[-1]["speed"]), 2)
        for r in rows:  # nothing acts that is older than the watchdog
            if r["phase"] == PHASES["run"]:
                self.assertLessEqual(r["data_age"], 0.52)
        return rows

    def test_a_master_that_is_killed_in_the_run(self):
        bench = self.bench()
        master = self.master(bench)
        rows = self.wait_for(lambda r: r["speed"] > 2900)
        master.kill()
        self.check_rest(rows[-1]["time"])

    def test_a_master_that_is_stopped_in_the_run_and_goes_on(self):
        bench = self.bench()
        master = self.master(bench)
        rows = self.wait_for(lambda r: r["speed"] > 2900)
        master.send_signal(signal.SIGSTOP)
        self.check_rest(rows[-1]["time"])
        master.send_signal(signal.SIGCONT)
        self.assertNotEqual(master.wait(timeout=60), 0)  # and is told that its bench has stopped
        self.assertLess(abs(self.rows()[-1]["speed"]), 1)

    def test_a_master_that_is_killed_while_the_bench_synchronizes(self):
        bench = self.bench()
        master = self.master(bench, lead="3 s")
        rows = self.wait_for(lambda r: r["phase"] == PHASES["armed"])
        master.kill()
        rows = self.check_rest(rows[-1]["time"])
        self.assertLess(max(abs(r["speed"]) for r in rows), 300)  # it was told 3000
        self.assertLess(max(abs(r["torque_calc"]) for r in rows), 5)


class BenchFile(Process):
    def slave(self, text, *more):
        self.write("bench.yaml", text)
        return ["dcp", "slave", fmu("pt_machine"), "--bench", "bench.yaml", "--listen",
                "udp://127.0.0.1:0", *more]

    def test_a_unit_is_a_bench(self):
        slave = self.listening(*self.slave(BENCH, "--write-description", "motor.dcpx"))
        self.assertIn("inputs without a role have no limits and are set as they come, before a run and "
                      "in a stop, too: oil_ref, winding_in", slave.said)
        with open(self.path("motor.dcpx"), encoding="utf-8") as f:
            text = f.read()
        self.assertIn('canHandleReset="true"', text)
        self.assertIn("speed 0..6500 1/min rate 4000 1/min/s", text)
        self.write("motor.yaml", f"""\
cardan: 1
units:
  motor:
    dcp: "{slave.address}"
    description: motor.dcpx
    session: {{ mode: srt }}
    bench: {{ case: "speed 0..2000 1/min; torque -60..60 N.m; avoid speed 0..50 1/min with torque" }}
    parameters: {{ speed_ref: 500, torque_ref: 150, voltage_ref: 340 }}
run: {{ step: 10 ms, stop: 2 s }}
results: motor.csv
""")
        for _ in range(2):  # it comes back
            done = self.cardan("run", "motor.yaml")
            self.assertIn("torque was 150 N.m and was kept at 60", done.stderr)
            self.assertIn("still so at the end", done.stderr)
            names, columns = self.table("motor.csv")
            r = {re.sub(r" \[.*", "", n): c for n, c in zip(names, columns)}
            top = 2000 * 3.141592653589793 / 30
            self.assertAlmostEqual(max(r["motor.speed"]), top, delta=1e-6)  # 500 rad/s was wanted
            self.assertAlmostEqual(max(r["motor.torque"]), 60, delta=1e-6)
            self.assertEqual(r["motor.speed"][0], 0)
        said = self.cardan_json("run", "motor.yaml", "--quiet")["warnings"]  # quiet: there at least
        self.assertIn("torque was 150 N.m and was kept at 60", " ".join(said))

    def test_what_is_wrong_with_a_file_is_said_with_its_line(self):
        cases = [
            ("[torque, speed, voltage]", "[voltage, speed, torque]",
             "bench.yaml:21: stop.order: 'speed' is not what can come here"),
            ("role: torque", "role: speed", "bench.yaml:10: quantities.torque: role: speed is the "
             "speed already (line 3)"),
            ("0..6500 1/min rate", "6500..0 1/min rate",
             "bench.yaml:7: quantities.speed.limits: 'speed 6500..0 1/min rate 4000 1/min/s': the "
             "range ends before it begins"),
            ("limits: 0..400 V rate 500 V/s", 'limits: ""', "bench.yaml:18: quantities.voltage"),
            ("limits: -200..200 N.m rate", "limits: rate",
             "bench.yaml:13: quantities.torque: limits: 'rate 5000 N.m/s' is a rate without a range"),
            ("set: torque_ref", "set: torqe_ref", "did you mean 'torque_ref'?"),
            ("0..400 V rate 500 V", "0..400 A rate 500 A", "its limits are in 'A'"),
            ("0..400 V", "..400 V", "expected a lower and an upper bound"),
            ("    set: voltage_ref\n", "", "voltage cannot be stopped"),
            ("induced", "inducd", "did you mean 'induced'?"),
            ("0..6500 1/min rate", "5..5 1/min rate",
             "bench.yaml:7: quantities.speed.limits: a range of one value"),
            ("role: torque", "role: torque\n    safe: 150",
             "bench.yaml:11: quantities.torque: safe: a stop ends with torque 0 and not with 150"),
            ("safe_speed: 100", "safe_speed: 100, standstill: 5000",
             "bench.yaml:21: stop.standstill: 5000, expected at most safe_speed, which is 100"),
            ("avoid: speed 0..50 1/min with torque", "avoid: speed 0..50 1/min",
             "bench.yaml:19: avoid: "),
        ]
        for old, new, says in cases:
            self.assertIn(old, BENCH)
            self.cardan(*self.slave(BENCH.replace(old, new)), code=2, says=says)
        self.cardan("dcp", "slave", fmu("pt_machine"), "--bench", "none.yaml", code=2,
                    says="none.yaml: no such file")

    def test_a_file_without_a_guard_says_so(self):
        for key, says in (("watchdog: 0", "watchdog 0"), ("watchdog: 1 h", "watchdog 3600 s"),
                          ("heartbeat: 1 h", "heartbeat 3600 s")):
            slave = self.start(*self.slave(BENCH + key + "\n"))
            self.assertIn("is not safe: " + says, slave.stdout.readline())


if __name__ == "__main__":
    unittest.main()
