"""Two emulated benches in processes of their own and the master between them: the session of
Rautenberg 2023, its record, and its Figure 7 (cardan bench session)."""

import json
import os
import re
import signal
import subprocess
import unittest
import xml.etree.ElementTree as ET

from e2e import CARDAN, EndToEnd

SYSTEM = """\
cardan: 1
units:
  case:
    signals:
      speed: {{ shape: constant, value: 600, unit: rpm }}
      torque: {{ shape: step, start: 0.4 s, amplitude: 20, unit: N.m }}
      voltage: {{ shape: constant, value: 80, unit: V }}
      oil: {{ shape: constant, value: 40, unit: degC }}
      coolant: {{ shape: constant, value: 60, unit: degC }}
  em:
    dcp: "{em}"
    description: em.dcpx
    session: {{ mode: srt }}
    bench: {{ case: "{case}", initial: "oil 40 degC; tolerance 2 K", watchdog: 5 s, gap: 1000 }}
  ice:
    dcp: "{ice}"
    description: ice.dcpx
    session: {{ mode: srt }}
    bench: {{ initial: "coolant 60 degC; oil 40 degC; tolerance 2 K", watchdog: 5 s, gap: 1000 }}
connections:
  - case.speed -> em.speed_ref
  - case.torque -> em.torque_ref
  - case.voltage -> em.voltage_ref
  - case.oil -> em.oil_ref
  - case.speed -> ice.speed_ref
  - case.coolant -> ice.coolant_ref
  - case.oil -> ice.oil_ref
run: {{ step: 10 ms, stop: 1 s, predict: hold }}
results: {{ file: run.csv, session: session.csv }}
"""
CALM = "speed 0..700 1/min; torque 0..30 N.m; avoid speed 0..50 1/min with torque"


class Coupled(EndToEnd):
    def bench(self, kind):
        process = subprocess.Popen(
            [CARDAN, "bench", kind, "--listen", "udp://127.0.0.1:0", "--write-description",
             self.path(kind + ".dcpx"), "--watchdog", "10 s", "--speed-up", "1000"],
            cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=dict(os.environ, TMPDIR=self.folder))
        self.addCleanup(self.end, process)
        found = re.match(r"listening at (\S+)", process.stdout.readline())
        self.assertTrue(found)
        return process, found[1]

    def end(self, process):
        if process.stdout.closed:
            return ""
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, err), (0, ""))
        return out

    def record(self, name):
        """The columns of a record of a session: names to texts."""
        with open(self.path(name), encoding="utf-8") as f:
            lines = f.read().splitlines()
        self.assertEqual(len(lines[0].split(",")), 12)
        rows = [line.split(",", 11) for line in lines[2:]]
        return {n: [r[i] for r in rows] for i, n in enumerate(lines[0].split(","))}

    def course(self, values):
        return [v for i, v in enumerate(values) if i == 0 or v != values[i - 1]]

    def interrupt_in_the_middle(self, *options):
        """A run that is told to stop when its first half second is over."""
        process = subprocess.Popen(
            [CARDAN, "run", "two.yaml", "--stop-time", "60", "--progress", "json", *options],
            cwd=self.folder, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        said = []
        for line in process.stderr:
            said.append(line)
            if line.startswith("{") and json.loads(line)["time"] > 0.5:
                process.send_signal(signal.SIGINT)
                break
        said.append(process.stderr.read())
        process.stderr.close()
        self.assertEqual(process.wait(timeout=60), 1, "".join(said))
        self.assertIn("cardan: interrupted at t = ", "".join(said))

    def test_a_session_with_abort_and_restart_and_its_picture(self):
        (em, em_at), (ice, ice_at) = self.bench("em"), self.bench("ice")

        # A case outside of the limits: nobody is asked for anything.
        self.write("two.yaml", SYSTEM.format(em=em_at, ice=ice_at, case="speed 0..9000 1/min"))
        self.cardan("run", "two.yaml", code=2, says="speed")
        r = self.record("session.csv")
        self.assertEqual((set(r["em.state"]), set(r["master.state"])), ({"-1"}, {"0"}))
        self.assertIn("6500", r["note"][-1])

        self.write("two.yaml", SYSTEM.format(em=em_at, ice=ice_at, case=CALM))
        self.interrupt_in_the_middle("-o", "a_run.csv", "--session-record", "a.csv")
        self.cardan("run", "two.yaml", "--session-record", "b.csv")  # again from ALIVE
        for name, end in (("a.csv", '"interrupted"'), ("b.csv", '"stop time"')):
            r = self.record(name)
            # Short states may pass between two looks. The numbers are those of Table 7.
            master = [int(x) for x in self.course(r["master.state"])]
            self.assertEqual([x for x in master if x != 8], [0, 1, 2, 3, 5, 7, 0], r)
            for unit in ("em", "ice"):
                states = [int(x) for x in self.course(r[unit + ".state"])]
                self.assertEqual(states[-1], 0)
                for state in (1, 4, 5, 11, 15, 16):
                    self.assertIn(state, states)
                self.assertLess(states.index(11), states.index(15))
                phases = [int(x) for x in self.course(r[unit + ".phase"])]
                order = [x for x in phases if 6 <= x <= 10]
                self.assertEqual(order, sorted(order))  # speed, voltage, standstill, safe
                self.assertEqual(order[-1], 10)
            self.assertEqual(r["note"][-1], end)
        r = self.record("a.csv")  # cold: the one that is done first waits for the other
        done = [r[u + ".state"].index("5") for u in ("em", "ice")]
        self.assertEqual(r["master.state"].index("3"), max(done))
        heat = [float(x) for x in self.course(r["ice.heat"]) if x != "nan"]
        self.assertAlmostEqual(heat[0], 35, delta=1)  # from 25 to 60 degC
        self.assertEqual(heat[-1], 0)

        done = self.cardan("bench", "session", "b.csv", "a.csv", "-o", "fig.svg", "--results",
                           "run.csv", "--results", "a_run.csv", "--variables", "em.speed")
        self.assertRegex(done.stdout, r"a\.csv: \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ, .* s: interrupted")
        self.assertLess(done.stdout.index("a.csv:"), done.stdout.index("b.csv:"))
        self.assertRegex(done.stdout, r"(?m)^ +\d+\.\d{3} s +master +5  RUN ")
        self.assertRegex(done.stdout, r"(?m) em +15  STOPPING +speed down ")
        root = ET.parse(self.path("fig.svg")).getroot()
        texts = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
        for text in ("REGISTER", "RUN", "ALIVE", "RUNNING", "STOPPING", "master", "em", "ice",
                     "em.speed", "distance from the temperature of the start"):
            self.assertIn(text, texts)
        j = self.cardan_json("bench", "session", "a.csv", "b.csv")
        self.assertEqual([x["file"] for x in j["records"]], ["a.csv", "b.csv"])
        self.assertGreater(j["records"][1]["time"], j["records"][0]["duration"])
        self.assertEqual([e["name"] for e in j["records"][0]["master"]][-1], "REGISTER")
        self.assertEqual(j["records"][0]["benches"][1]["heat"][-1]["value"], 0)
        self.assertIsNone(j["picture"])
        for process in (em, ice):
            self.assertIn("2 sessions, ", self.end(process))

    def test_what_is_no_record_of_a_session_is_told(self):
        good = "time,utc,master.state,em.state,em.phase,em.source,em.heat,note\n[s],[s],,,,,[K],\n"
        self.write("a.csv", good + "0,1000,0,0,0,0,nan,\n2,1002,5,11,5,0,0,\"over\"\n")
        self.write("b.csv", good + "0,1001,0,0,0,0,nan,\n2,1003,5,11,5,0,0,\n")
        self.write("c.csv", good + "0,1000,0,19,0,0,nan,\n")
        self.write("d.csv", good + "0,1000,0,0.5,0,0,nan,\n")
        self.write("e.csv", "time,x\n0,1\n")
        self.write("f.csv", good)
        self.write("r.csv", "time,v\n0,1\n1,2\n")
        self.write("g.csv", good + "0,1000,0,0,0,0,nan,\n2,1002,0,4,3,0,3,\n")
        self.assertIn("a.csv: 1970-01-01T00:16:40Z, 2.000 s: over",
                      self.cardan("bench", "session", "a.csv").stdout)
        for arguments, says in (
                (["a.csv", "b.csv"], "b.csv begins 1 s before a.csv ends"),
                (["c.csv"], "c.csv:3: em.state is 19, expected a whole number from -1 to 18"),
                (["d.csv"], "d.csv:3: em.state is 0.5"),
                (["e.csv"], "e.csv: not a record of a session: it has no column 'master.state'"),
                (["f.csv"], "f.csv"),
                (["nothing.csv"], "nothing.csv"),
                (["a.csv", "-o", "a.bmp"], "a.bmp: pictures are written as SVG"),
                (["a.csv", "-o", "a.csv"], "a.csv: the picture would overwrite a record"),
                (["a.csv", "--results", "r.csv"], "--results is about the picture"),
                (["a.csv", "-o", "x.svg", "--variables", "w"], "expected --results FILE too"),
                (["a.csv", "-o", "x.svg", "--results", "r.csv", "--variables", "w"], "w"),
                (["a.csv", "-o", "x.svg", "--results", "r.csv", "--results", "r.csv"],
                 "more results than records"),
                (["g.csv", "-o", "x.svg", "--results", "r.csv"], "no run began in this session")):
            with self.subTest(arguments):
                done = subprocess.run([CARDAN, "bench", "session", *arguments], cwd=self.folder,
                                      capture_output=True, text=True, check=False)
                self.assertIn(done.returncode, (1, 2), done.stderr)
                self.assertIn(says, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_as_many_signals_are_drawn_as_is_said_whatever_the_record_has(self):
        names = [f"b{i}.state" for i in range(16)]  # neither phases nor heat
        self.write("wide.csv", f"time,utc,master.state,{','.join(names)}\n"
                   f"0,1000,0{',1' * 16}\n1,1001,4{',12' * 16}\n")
        self.write("run.csv", f"time,{','.join(f'signal{i}' for i in range(20))}\n"
                   f"0{',1' * 20}\n0.5{',2' * 20}\n")
        done = self.cardan("bench", "session", "wide.csv", "-o", "wide.svg", "--results", "run.csv")
        self.assertIn("only the first 12 signals are drawn, 8 are left out", done.stderr)
        with open(self.path("wide.svg"), encoding="utf-8") as f:
            self.assertEqual(len(set(re.findall(r"signal\d+", f.read()))), 12)

    def test_a_record_needs_a_bench_and_a_file_of_its_own(self):
        self.write("none.yaml", "cardan: 1\nunits: { s: { signals: { x: { shape: constant, value: 1 "
                   "} } } }\nresults: run.csv\n")
        for name, says in (("s.csv", "the system has no test bench"),
                           ("run.csv", "the results and the record of the session go to the same"),
                           ("s.mf4", "expected a file whose name ends in .csv, or none")):
            self.cardan("run", "none.yaml", "--session-record", name, code=2, says=says)
        self.cardan("run", "none.yaml", "--session-record", "none")
        self.write("none.yaml", "cardan: 1\nunits: { s: { signals: { x: { shape: constant, value: 1 "
                   "} } } }\nresults: { session: s.mf4 }\n")
        self.cardan("check", "none.yaml", code=2,
                    says="none.yaml:3: results: session: 's.mf4', expected a file whose name ends")


if __name__ == "__main__":
    unittest.main()
