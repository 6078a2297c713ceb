"""A bench with a stand-in, in processes of their own: one is killed, the run goes on, another one
comes at the same address and takes part again."""

import json
import os
import re
import signal
import subprocess
import time
import unittest

from e2e import CARDAN, EndToEnd

CASE = """\
time [s],speed [rpm],torque [N.m],voltage [V],oil [degC]
0,0,0,350,25
1,2000,0,350,25
1.5,2000,50,350,25
60,2000,50,350,25
"""


class Standby(EndToEnd):
    def bench(self, listen):
        process = subprocess.Popen(
            [CARDAN, "bench", "em", "--listen", listen, "--write-description",
             self.path("em.dcpx"), "--speed-up", "500", "--ideal"], cwd=self.folder, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=dict(os.environ, TMPDIR=self.folder))
        self.addCleanup(self.end, process)
        found = re.match(r"listening at (\S+)", process.stdout.readline())
        self.assertTrue(found, process.poll())
        process.address = found[1]
        return process

    def end(self, process):
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
        for part in ("AddressSanitizer", "runtime error"):
            self.assertNotIn(part, err)
        return out

    def system(self, address, stop, more=""):
        self.write("case.csv", CASE)
        self.write("em.yaml", f"""\
cardan: 1
units:
  case: {{ replay: case.csv }}
  em:
    dcp: "{address}"
    description: em.dcpx
    session: {{ mode: srt, lead: 100 ms, timeout: 50 ms, contact: 200 ms }}
    bench: {{ watchdog: 1 s }}
    {more}
    standby: {{ replay: case.csv, after: 150 ms, fade: 200 ms }}
connections:
  - case.speed -> em.speed_ref
  - case.torque -> em.torque_ref
  - case.voltage -> em.voltage_ref
  - case.oil -> em.oil_ref
run: {{ step: 10 ms, stop: {stop}, predict: hold }}
results: em.csv
""")

    def events(self, name):
        return self.cardan_json("info", name)["events"]

    def test_a_killed_bench_is_stood_in_for_and_another_takes_its_place(self):
        first = self.bench("udp://127.0.0.1:0")
        self.system(first.address, "9 s")
        run = subprocess.Popen([CARDAN, "run", "em.yaml", "--exchange", "em.mf4", "--json"],
                               cwd=self.folder, text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env=self.environment())
        self.addCleanup(lambda: run.poll() is None and run.kill())
        for line in first.stdout:
            if line.startswith("phase run"):
                break
        time.sleep(1.7)  # it carries load by now
        first.kill()
        first.wait()
        second = self.bench(first.address)
        out, err = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 0, err)
        for part in ("AddressSanitizer", "runtime error"):
            self.assertNotIn(part, err)
        report = json.loads(out)
        em = next(u for u in report["units"] if u["name"] == "em")
        self.assertGreaterEqual(em["standby"]["takeovers"], 1, err)
        self.assertGreaterEqual(em["standby"]["returns"], 1, err)
        self.assertGreater(em["standby"]["stood_in"], 1)
        self.assertLess(em["standby"]["stood_in"], 7)
        # It kept its pace without the bench, which paced it until then.
        self.assertGreater(report["wall_time"], 8.9)
        self.assertLess(report["wall_time"], 13)
        marks = [e["text"] for e in self.events("em.mf4") if e["kind"] == "mark"]
        # The second bench may answer in the place of the first before that is missed.
        quick = "em: the stand-in takes over: the DCP slave is ALIVE: it was restarted" in marks[0]
        order = ["em: the stand-in takes over: ", "em: the bench runs again",
                 "em: the bench is in use again"]
        if not quick:
            order[:1] = ["em: the stand-in takes over: no new data for 150 ms", "em: the bench is lost: "]
        rest = iter(marks)  # a machine that is busy elsewhere may add some
        for text in order:
            self.assertTrue(any(m.startswith(text) for m in rest), marks)
        names, columns = self.table("em.csv")
        r = {re.sub(r" \[.*", "", n): c for n, c in zip(names, columns)}
        # No step, once it turns: of a difference a twentieth fades in a row.
        for name, most in (("em.speed", 110), ("em.torque", 10)):
            y = r[name][150:]
            self.assertLess(max(abs(a - b) for a, b in zip(y, y[1:])), most, name)
        self.assertAlmostEqual(r["em.speed"][-1], 2000, delta=10)
        self.assertAlmostEqual(r["em.torque"][-1], 50, delta=5)
        self.assertLess(min(r["em.standby.weight"]), 0.01)
        out = self.end(second)
        self.assertIn("phase run", out)
        self.assertIn("stopped by master", out)

    def test_a_run_may_begin_without_its_bench(self):
        bench = self.bench("udp://127.0.0.1:0")  # for its description
        self.end(bench)
        self.system(bench.address, "0.5 s")
        self.cardan("run", "em.yaml", code=1, says="em")
        stand_in = self.cardan_json("info", "em.yaml")["units"][1]["standby"]
        self.assertEqual(stand_in["source"], "replay")
        self.assertIn("its stand-in", self.cardan("info", "em.yaml").stdout)
        done = self.cardan_json("run", "em.yaml", "--set", "em.standby.use=model")
        self.assertEqual(done["units"][1]["standby"]["source"], "model")
        self.assertAlmostEqual(done["units"][1]["standby"]["stood_in"], 0.5)
        self.assertGreater(done["wall_time"], 0.45)  # in real time all the same
        done = self.cardan("run", "em.yaml", "--set", "em.standby.use=model")
        self.assertIn("standby  em: the stand-in was in use for 500 ms of 500 ms; 0 takeovers",
                      done.stderr)

    def test_what_is_wrong_with_a_stand_in_is_said_with_its_place(self):
        self.end(self.bench("udp://127.0.0.1:0"))
        self.system("udp://127.0.0.1:9", "1 s", more="parameters: { standby.use: nobody }")
        self.cardan("check", "em.yaml", code=2, says=["em.yaml", "standby.use", "auto, bench"])
        self.write("case.csv", "time [s],other\n0,1\n1,2\n")
        self.system("udp://127.0.0.1:9", "1 s")
        self.write("case.csv", CASE.replace("speed", "pace").replace("torque", "load"))
        self.cardan("check", "em.yaml", code=2, says=["unit 'em'", "names"])

    def test_sessions_of_their_own_share_neither_slave_nor_capture(self):
        self.end(self.bench("udp://127.0.0.1:0"))
        unit = """\
  {name}:
    dcp: "udp://127.0.0.1:{port}"
    description: em.dcpx
    session: {{ mode: srt, capture: all.pcapng }}
    standby: {{ replay: case.csv }}
"""
        self.write("case.csv", CASE)
        for port, says in ((9, "'udp://127.0.0.1:9' is the slave of unit 'a' already"),
                           (10, "unit 'a' writes to")):
            self.write("two.yaml", "cardan: 1\nunits:\n" + unit.format(name="a", port=9) +
                       unit.format(name="b", port=port) + "run: { step: 10 ms, stop: 1 s }\n")
            self.cardan("check", "two.yaml", code=2, says=["unit 'b'", says])


if __name__ == "__main__":
    unittest.main()
