"""Studies with the real command: the same bits whoever makes the runs, whatever is killed on the way."""

import contextlib
import csv
import json
import os
import random
import signal
import sqlite3
import subprocess
import time
import unittest
import zipfile

from e2e import CARDAN, EndToEnd, fmu

KILLS = int(os.environ.get("CARDAN_STUDY_KILLS", "6"))
SYSTEM = """cardan: 1
units:
  first: {{ fmu: {} }}
  second: {{ fmu: {} }}
connections: [second.x2 -> first.x2, second.v2 -> first.v2, first.f -> second.f]
run: {{ step: 1 ms, stop: {}, scheme: jacobi, predict: hold }}
"""
STUDY = """study: 1
title: How stiff
system: osc.yaml
vary:
  second.k2: {{ uniform: [500, 1500] }}
  run.predict: [hold, linear]
sample: {{ method: {}, count: {} }}
keep:
  x2: second.x2
  peak: max second.x2
  v: rms second.v2
  defect: defect
  ratio: = peak / sqrt(second_k2)
"""
COLUMNS = 'id, state, "second.k2", "run.predict", x2, peak, v, defect, ratio'


class Study(EndToEnd):
    def oscillator(self, stop="0.2 s", method="random", count=20):
        self.write("osc.yaml", SYSTEM.format(fmu("lo_fd1"), fmu("lo_fd2"), stop))
        return self.write("s.yaml", STUDY.format(method, count))

    def rows(self, name="s.study"):
        with sqlite3.connect(self.path(name)) as c:
            return c.execute(f"SELECT {COLUMNS} FROM runs ORDER BY id").fetchall()

    def counts(self, *arguments, code=0):
        return self.cardan_json("study", "run", *arguments, code=code)

    def to_the_end(self, *arguments):
        """As long as it takes: on a busy machine almost all runs are left. Folders of the killed may be there."""
        done = subprocess.run([CARDAN, "study", "run", "s.yaml", "--json", *arguments], cwd=self.folder, env=self.environment(),
                              stdout=subprocess.PIPE, text=True, check=True, timeout=800)
        return json.loads(done.stdout)


class Runs(Study):
    def test_a_run_gives_what_cardan_run_gives(self):
        self.oscillator()
        done = self.counts("s.yaml")
        self.assertEqual((done["runs"], done["done"], done["open"]), (40, 40, 0))
        for run in (1, 40):
            row = self.rows()[run - 1]
            self.cardan("run", "osc.yaml", "--set", f"second.k2={row[2]!r}", "--predict", row[3], "-q", "-o", "r.csv")
            with open(self.path("r.csv"), encoding="utf-8") as f:
                table = list(csv.DictReader(f))
            x2 = [float(r["second.x2"]) for r in table]
            v2 = [float(r["second.v2"]) for r in table]
            self.assertEqual(row[4], x2[-1])
            self.assertEqual(row[5], max(x2))
            self.assertEqual(row[8], max(x2) / row[2] ** 0.5)
            mean = sum((a * a + a * b + b * b) / 3 for a, b in zip(v2, v2[1:])) / (len(v2) - 1)
            self.assertAlmostEqual(row[6] / mean ** 0.5, 1, places=12)

    def test_the_bits_do_not_depend_on_workers(self):
        self.oscillator()
        self.counts("s.yaml", "--workers", 1)
        self.counts("s.yaml", "--workers", 3, "--chunk", 1, "--database", "three.study")
        self.assertEqual(self.rows(), self.rows("three.study"))

    def test_added_points_are_added_and_nothing_is_made_twice(self):
        self.oscillator()
        self.counts("s.yaml")
        before = self.rows()
        self.assertEqual(self.counts("s.yaml")["made"], 0)
        self.oscillator(count=25)
        done = self.counts("s.yaml")
        self.assertEqual((done["made"], done["runs"]), (10, 50))
        self.assertEqual(self.rows()[:40], before)
        self.write("s.yaml", STUDY.format("random", 25).replace("[hold, linear]", "[hold, linear, quadratic]"))
        self.assertEqual(self.counts("s.yaml")["made"], 25)
        self.assertEqual(self.rows()[:40], before)

    def test_a_changed_system_is_refused_by_name(self):
        path = self.oscillator()
        self.counts("s.yaml")
        self.write("osc.yaml", SYSTEM.format(fmu("lo_fd1"), fmu("lo_fd2"), "0.3 s"))
        self.cardan("study", "run", "s.yaml", code=1, says=["osc.yaml has changed since the study began", "--database"])
        os.remove(self.path("s.study"))
        with open(fmu("lo_fd2"), "rb") as f:
            other = f.read()
        with open(self.path("two.fmu"), "wb") as f:
            f.write(other)
        self.write("osc.yaml", SYSTEM.format(fmu("lo_fd1"), "two.fmu", "0.2 s"))
        self.counts("s.yaml")
        with open(fmu("lo_fd2", 3), "rb") as f, open(self.path("two.fmu"), "wb") as g:
            g.write(f.read())
        self.cardan("study", "run", "s.yaml", code=1, says=["two.fmu of unit 'second' has changed", "SHA-256"])
        with open(self.path("two.fmu"), "wb") as f:
            f.write(other)
        with open(path, encoding="utf-8") as f:
            text = f.read()
        self.write("s.yaml", text.replace("max second.x2", "min second.x2"))
        self.cardan("study", "run", "s.yaml", code=1, says="keep: peak: min second.x2 where it had peak: max second.x2")
        self.write("s.yaml", text.replace("[500, 1500]", "[500, 1600]"))
        self.cardan("study", "run", "s.yaml", code=1, says="40 of the 40 points that it has are none of")

    def copy(self, path, name):
        with open(path, "rb") as f, open(self.path(name), "wb") as g:
            g.write(f.read())

    def test_files_vary_and_each_of_them_has_to_stay_what_it_is(self):
        self.copy(fmu("lo_fd2"), "light.fmu")
        self.copy(fmu("lo_fd2", 3), "heavy.fmu")
        self.write("cells.inc", ".param r=2\n")
        self.write("load.cir", "a load\n.include cells.inc\nV1 a 0 1\nR1 a 0 {r}\n.output i=i(R1)\n.end\n")
        self.write("zoh.yaml", "algorithm: zoh\n")
        self.write("osc.yaml", SYSTEM.format(fmu("lo_fd1"), "light.fmu", "50 ms").replace(
            "connections", "  load: { circuit: load.cir }\nconnections").replace(
            "first.f -> second.f", "{ from: first.f, to: second.f, coupling: zoh.yaml }"))
        study = ("study: 1\nsystem: osc.yaml\nvary: { plant: [light.fmu, heavy.fmu], second.k2: [900, 1000] }\n"
                 "change: { units: { second: { fmu: $plant } } }\nkeep: { x: second.x2, i: load.i }\n")
        self.write("s.yaml", study)
        self.assertEqual(self.counts("s.yaml")["done"], 4)
        with sqlite3.connect(self.path("s.study")) as c:
            self.assertEqual(c.execute("SELECT count(DISTINCT x), min(i) FROM runs").fetchone(), (2, 0.5))
        for name, text in (("heavy.fmu", None), ("cells.inc", ".param r=3\n"), ("zoh.yaml", "algorithm: foh\n")):
            with open(self.path(name), "rb") as f:
                was = f.read()
            if text:
                self.write(name, text)
            else:
                self.copy(fmu("lo_fd2"), name)
            self.cardan("study", "run", "s.yaml", code=1, says=f"{name} has changed since the study began")
            with open(self.path(name), "wb") as f:
                f.write(was)
        # A value that comes first, and one that is added, with its file.
        self.copy(fmu("lo_fd2"), "new.fmu")
        self.write("s.yaml", study.replace("[light.fmu,", "[new.fmu, light.fmu,"))
        self.assertEqual(self.counts("s.yaml")["made"], 2)
        os.remove(self.path("heavy.fmu"))
        self.cardan("study", "run", "s.yaml", code=1, says="heavy.fmu took part when the study began, and is gone")

    def test_a_package_a_twin_and_what_was_learned_have_to_stay_too(self):
        self.write("osc.yaml", SYSTEM.format(fmu("lo_fd1"), fmu("lo_fd2"), "5 ms"))
        self.cardan("export", "ssp", "osc.yaml")
        with zipfile.ZipFile(self.path("osc.ssp")) as z:
            z.extractall(self.path("open"))
        inner = next(n for n in os.listdir(self.path("open/resources")) if n.startswith("lo_fd2"))
        self.write("heat.cir", "a capacity\n.thermal\nheat q0 1 10\nresistance r1 1 2 1\nresistance r2 2 0 2\n"
                               "capacity c1 2 0.1 start=0\n.endthermal\n.output T=t(2)\n.tran 2m 2 uic\n.end\n")
        self.write("twin.yaml", "circuit: heat.cir\nstep: 2 ms\nsensors: { T: { sd: 0.5 } }\n")
        self.write("twins.yaml", "cardan: 1\nunits: { twin: { twin: twin.yaml }, u: { signal: { shape: sine, frequency: 1, offset: 1 } } }\n"
                                 "connections: [u.y -> twin.T.measured]\nrun: { step: 2 ms, stop: 10 ms }\n")
        self.write("c.json", "{}")  # not learned here: the run goes on without
        self.write("learned.yaml", SYSTEM.format(fmu("lo_fd1"), fmu("lo_fd2"), "5 ms").replace("run: {", "run: { learned: c.json,"))
        for system, keep, changed in (
                ("osc.ssp", "second.x2", "osc.ssp"), ("open/SystemStructure.ssd", "second.x2", "open/SystemStructure.ssd"),
                ("open/SystemStructure.ssd", "second.x2", "open/resources/" + inner), ("twins.yaml", "twin.T", "twin.yaml"),
                ("twins.yaml", "twin.T", "heat.cir"), ("learned.yaml", "second.x2", "c.json")):
            with self.subTest(system=system, changed=changed):
                self.write("s.yaml", f"study: 1\nsystem: {system}\nvary: {{ x: [1, 2] }}\nchange: {{ title: $x }}\nkeep: {{ y: {keep} }}\n")
                with contextlib.suppress(FileNotFoundError):
                    os.remove(self.path("s.study"))
                self.assertEqual(self.counts("s.yaml")["done"], 2)
                with open(self.path(changed), "rb") as f:
                    was = f.read()
                if changed.endswith((".ssp", ".fmu")):
                    with zipfile.ZipFile(self.path(changed), "a") as z:
                        z.writestr("documentation/more.txt", "more")
                else:
                    with open(self.path(changed), "ab") as f:
                        f.write(b"\n")
                self.cardan("study", "run", "s.yaml", code=1, says=[os.path.basename(changed), "has changed since the study began"])
                with open(self.path(changed), "wb") as f:
                    f.write(was)
                self.assertEqual(self.counts("s.yaml")["made"], 0)

    def test_another_seed_or_kind_is_refused(self):
        self.write("osc.yaml", SYSTEM.format(fmu("lo_fd1"), fmu("lo_fd2"), "2 ms"))
        text = ("study: 1\nsystem: osc.yaml\nrepeat: 2\nvary: { k: [1, 2] }\nsample: { seed: 4 }\n"
                "change: { title: $k $seed }\nkeep: { x: second.x2 }\n")
        self.write("s.yaml", text)
        self.counts("s.yaml")
        self.write("s.yaml", text.replace("seed: 4", "seed: 5").replace("[1, 2]", "[1, 2, 3]"))
        self.cardan("study", "run", "s.yaml", code=1, says="sample.seed is 5 where it was 4")
        text = text.replace("repeat: 2\n", "")
        self.write("t.yaml", text)
        self.counts("t.yaml")
        self.write("t.yaml", text + "optimise: { minimise: x }\n")
        self.cardan("study", "optimise", "t.yaml", code=1, says="optimise is new")
        self.counts("s.yaml", "--database", ":memory:")  # a file as any other
        self.assertTrue(os.path.getsize(self.path(":memory:")))

    def test_bad_input_is_told(self):
        self.oscillator()
        study = STUDY.format("random", 20)
        for wrong, right, says in (
                ("k2", "k9", ["w.yaml:5: ", "k9"]),
                ("max second.x2", "max second.x9", ["w.yaml:10: keep.peak:", "x9"]),
                ("max second.x2", "maximum second.x2", ["keep.peak", "expected SIGNAL, min"]),
                ("run.predict:", "run.predcit:", ["predcit", "predict"]),
                ("= peak / sqrt(second_k2)", "= peak / sqrt(secnd_k2)", ["secnd_k2"]),
                ("[500, 1500]", "[500, 1500], min: 2000", ["w.yaml:5: vary.second.k2: an empty range: min and max"]),
                ("defect: defect", "defect: C second.g", ["w.yaml:12: keep.defect: 'C second.g'", "connection with coupling"]),
                ("second.k2:", "stiffness:", ["$stiffness somewhere in change"]),
                ("x2: second.x2", "state: second.x2", ["'state' is a column of every study"]),
                ("run.predict: [hold, linear]", "run.stop: [0, 1]", ["w.yaml:6: vary.run.stop: stop time is 0"]),
                ("count: 20", "count: 10000000", ["20,000,000 runs", "--yes"])):
            self.write("w.yaml", study.replace(wrong, right))
            code = 2
            done = subprocess.run([CARDAN, "study", "run", "w.yaml"], cwd=self.folder, capture_output=True, text=True,
                                  env=self.environment(), timeout=60, stdin=subprocess.DEVNULL)
            self.assertEqual(done.returncode, code, (right, done.stderr))
            for part in says:
                self.assertIn(part, done.stderr)
        self.write("no.study", "this is no database, but long enough to be one" * 9)
        self.cardan("study", "show", "no.study", code=1)
        self.cardan("study", "show", "s.yaml", code=2, says="'cardan study run s.yaml' makes them")
        self.cardan("study", "run", "s.yaml", "--executor", "slrum", code=2, says="--executor 'slrum' is not known")

    def test_a_damaged_or_foreign_file_is_told_and_runs_nothing(self):
        self.oscillator()
        self.counts("s.yaml")
        with open(self.path("s.study"), "rb") as f:
            whole = f.read()

        def write(name, data):
            for end in ("", "-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    os.remove(self.path(name + end))
            with open(self.path(name), "wb") as f:
                f.write(data)

        def spoil(name, *statements):
            write(name, whole)
            with contextlib.closing(sqlite3.connect(self.path(name))) as c, c:
                for sql in statements:
                    c.execute(sql)

        for sql, says in (("UPDATE runs SET state = 99 WHERE id = 3", "run 3 has state 99"),
                          ("UPDATE runs SET state = -1", "has state -1"),
                          ("UPDATE runs SET id = -5 WHERE id = 2", "run -5 has state 2, expected runs from 1"),
                          ("DROP TABLE runs", "no such table: runs"),
                          ("ALTER TABLE runs DROP COLUMN peak", "peak"),
                          ("UPDATE meta SET value = 'study: 1' WHERE key = 'text'", "system"),
                          ("UPDATE meta SET value = '2' WHERE key = 'format'", "no study of cardan of this version: format 2")):
            spoil("bad.study", sql)
            for words in (("show", "bad.study"), ("export", "bad.study", "-o", "bad.csv"), ("report", "bad.study", "-o", "b.html")):
                self.cardan("study", *words, code=(1, 2), says=says)
        # What a schema would do is not done.
        spoil("bad.study", "ALTER TABLE runs RENAME TO other", "CREATE VIEW runs AS SELECT * FROM other")
        self.cardan("study", "show", "bad.study", code=1, says="view")
        spoil("bad.study", "CREATE TRIGGER t AFTER UPDATE ON runs BEGIN DELETE FROM runs; END", "UPDATE runs SET state = 0 WHERE id = 1")
        self.assertEqual(len(self.rows("bad.study")), 0)  # it works for whoever lets it
        spoil("bad.study", "UPDATE runs SET state = 0 WHERE id = 1",
              "CREATE TRIGGER t AFTER UPDATE ON runs BEGIN DELETE FROM runs; END")
        self.counts("s.yaml", "--database", "bad.study")
        self.assertEqual(len(self.rows("bad.study")), 40)
        # Bytes that are others: told, or not met, but nothing ends by a signal.
        draw = random.Random(5)
        for _ in range(24):
            bad = bytearray(whole)
            for _ in range(draw.randint(1, 40)):
                bad[draw.randrange(len(bad))] = draw.randrange(256)
            write("bad.study", bad[:draw.randint(1, len(bad))] if draw.random() < 0.3 else bad)
            self.cardan("study", "show", "bad.study", code=(0, 1, 2))

    def test_what_goes_wrong_is_a_row_with_its_reason(self):
        self.write("f.yaml", f"cardan: 1\nunits: {{ a: {{ fmu: {fmu('faulty')} }} }}\nrun: {{ step: 10 ms, stop: 1 s }}\n")
        # healthy, error, NaN, SIGSEGV, endless, exit()
        self.write("s.yaml", "study: 1\nsystem: f.yaml\ntimeout: 2 s\nvary: { a.mode: [0, 3, 5, 7, 11, 12], a.when: "
                             "[0.1, 0.5] }\nkeep: { y: a.y, t: time }\nlimits: [t > 0.5, y < 0.99 || a_when < 0.3]\n")
        for mode, says in ((11, "timeout of 1 s"), (12, "exit"), (7, "Segmentation"), (3, "fmi2DoStep")):
            self.write("c.yaml", f"study: 1\nsystem: f.yaml\ntimeout: 1 s\nvary: {{ a.mode: [{mode}, 0] }}\nkeep: {{ y: a.y }}\n")
            self.cardan("study", "check", "c.yaml", code=1, says=["c.yaml: the first run", says])
        done = self.counts("s.yaml", "--workers", 2)
        self.assertEqual([done[k] for k in ("done", "limit", "failed", "diverged", "crashed", "hung", "open")],
                         [1, 1, 2, 2, 4, 2, 0])
        with sqlite3.connect(self.path("s.study")) as c:
            reasons = dict(c.execute('SELECT "a.mode" || state, reason FROM runs WHERE state > 2').fetchall())
        self.assertIn("not kept: y < 0.99", reasons["0.03"])
        self.assertIn("Segmentation", reasons["7.06"])
        self.assertIn("timeout of 2 s", reasons["11.07"])
        self.assertIn("exit", reasons["12.06"])
        # Words in a name say nothing; a study of which nothing came says so, however quiet.
        self.write("n.yaml", f"cardan: 1\nunits: {{ finance: {{ fmu: {fmu('faulty')} }} }}\nrun: {{ step: 10 ms, stop: 1 s }}\n")
        self.write("q.yaml", "study: 1\nsystem: n.yaml\nvary: { finance.mode: [3], finance.when: [0.1, 0.5] }\nkeep: { y: finance.y }\n")
        self.cardan("study", "run", "q.yaml", "--quiet", says=["2 of 2 runs came to no end", "run 1 failed: unit 'finance'"])
        shown = self.cardan("study", "show", "s.yaml", "--failed", "--rows", 0).stdout
        self.assertIn("unit 'a' at t = 0.1", shown)
        self.cardan("study", "run", "s.yaml", "--again", "failed", "--max-failed", 3, code=3, says="11 runs are not good")

    def test_what_cardan_run_would_not_let_pass_is_not_done(self):
        self.write("osc.yaml", SYSTEM.format(fmu("lo_fd1"), fmu("lo_fd2"), "2 s"))
        self.write("s.yaml", "study: 1\nsystem: osc.yaml\nvary: { run.step: [1 ms, 10 ms, 20 ms, 50 ms] }\nkeep: { x: second.x2 }\n")
        done = self.counts("s.yaml")
        self.assertEqual((done["done"], done["limit"]), (1, 3))
        with sqlite3.connect(self.path("s.study")) as c:
            rows = c.execute('SELECT "run.step", state, ifnull(reason, \'\'), x FROM runs').fetchall()
        for step, state, reason, x in rows:
            said = self.cardan("run", "osc.yaml", "--step", f"{step:g} ms", "-q", "-o", "none", code=0 if state == 2 else 3).stderr
            self.assertIn(reason, said)
            self.assertIsNotNone(x)

    def test_elements_channels_and_seeds_vary_by_change(self):
        self.write("osc.yaml", SYSTEM.format(fmu("lo_fd1"), fmu("lo_fd2"), "0.2 s").replace(
            "first.f -> second.f", "{ from: first.f, to: second.f, coupling: { algorithm: zoh } }"))
        self.write("s.yaml", "study: 1\nsystem: osc.yaml\nrepeat: 3\nvary: { algorithm: [zoh, eros], jitter: [0 ms, 2 ms] }\n"
                             "change:\n  connections:\n    - from: first.f\n      to: second.f\n      coupling:\n"
                             "        algorithm: $algorithm\n        channel: { delay: 3 ms, jitter: $jitter, seed: $seed }\n"
                             "keep: { x2: second.x2, C: C second.f }\n")
        self.assertEqual(self.counts("s.yaml")["done"], 12)
        with open(self.path("s.yaml"), encoding="utf-8") as f:
            self.write("w.yaml", f.read().replace("C: C second.f", "C: C second.f against foh"))
        self.cardan("study", "check", "w.yaml", code=2, says="keep.C: 'C second.f against foh', expected one of its elements in shadow")
        with sqlite3.connect(self.path("s.study")) as c:
            kinds = c.execute("SELECT algorithm, jitter, count(DISTINCT x2), count(C) FROM runs GROUP BY 1, 2").fetchall()
        # Without jitter nothing is random; with it every repetition has a seed of its own.
        self.assertEqual(sorted(kinds), [("eros", 0.0, 1, 3), ("eros", 2.0, 3, 3), ("zoh", 0.0, 1, 3), ("zoh", 2.0, 3, 3)])

    def test_tables_and_recordings_leave(self):
        self.oscillator()
        self.counts("s.yaml")
        self.cardan("study", "export", "s.yaml", "-o", "all.csv", "--where", "peak > 0", "--sort=-peak")
        with open(self.path("all.csv"), encoding="utf-8") as f:
            table = list(csv.DictReader(f))
        self.assertEqual(len(table), 40)
        self.assertEqual([float(r["peak"]) for r in table], sorted((r[5] for r in self.rows()), reverse=True))
        self.cardan("study", "export", "s.yaml", "--run", 7, "-o", "seven.csv", "--variables", "second.x2")
        with open(self.path("seven.csv"), encoding="utf-8") as f:
            self.assertEqual(float(list(csv.DictReader(f))[-1]["second.x2"]), self.rows()[6][4])
        chosen = [r[0] for r in self.rows() if r[5] > 5.5]
        self.assertTrue(0 < len(chosen) < 40)
        self.cardan("study", "export", "s.yaml", "--where", "peak > 5.5", "--variables", "second.x2", "-o", "high-{run}.csv")
        self.assertEqual(sorted(n for n in os.listdir(self.folder) if n.startswith("high-")), sorted(f"high-{i}.csv" for i in chosen))
        for i in chosen:
            with open(self.path(f"high-{i}.csv"), encoding="utf-8") as f:
                table = list(csv.DictReader(f))
            self.assertEqual((list(table[0]), float(table[-1]["second.x2"])), (["time", "second.x2"], self.rows()[i - 1][4]))
        self.cardan("study", "export", "s.yaml", "--run", 41, "-o", "no.csv", code=2, says="has no run 41")
        self.cardan("study", "show", "s.yaml", "--where", "peak >", code=2, says="expected a condition over columns")
        self.cardan("study", "show", "s.yaml", "--where", "1; DROP TABLE runs", code=2)
        self.cardan("study", "show", "s.yaml", "--where", '"second.k3" > 1', code=2, says='second.k3')
        self.assertEqual(len(self.rows()), 40)
        shown = self.cardan_json("study", "show", "s.yaml", "--rows", 2)
        self.assertEqual(len(shown["rows"]), 2)
        peaks = [r[5] for r in self.rows()]
        of = {s["name"]: s for s in shown["statistics"]}["peak"]
        self.assertAlmostEqual(of["mean"], sum(peaks) / 40, places=12)

    def test_pictures_and_a_report_are_made(self):
        self.oscillator()
        self.counts("s.yaml")
        self.cardan("study", "plot", "s.yaml", "--scatter", "second.k2,peak", "--heat", "second.k2,x2,peak", "--tornado",
                    "peak", "--convergence", "peak", "--histogram", "peak", "-o", "all.svg")
        with open(self.path("all.svg"), encoding="utf-8") as f:
            svg = f.read()
        for part in ("How stiff", "second.k2", "95 %: from", "runs", "peak"):
            self.assertIn(part, svg)
        self.assertIn("peak", self.cardan("study", "plot", "s.yaml", "--terminal", "--histogram", "peak").stdout)
        self.cardan("study", "plot", "s.yaml", "--scatter", "second.k2", "-o", "x.svg", code=2, says="expected 2 columns")
        self.cardan("study", "plot", "s.yaml", "--scatter", "run.predict,x2", "-o", "x.svg", code=2, says="has words")
        self.cardan("study", "plot", "s.yaml", "--tornado", "peek", "-o", "x.svg", code=2, says="no column 'peek'")
        self.cardan("study", "report", "s.yaml", "-o", "s.html")
        with open(self.path("s.html"), encoding="utf-8") as f:
            html = f.read()
        for part in ("How stiff", "40 runs, 0 of them not good", "= peak / sqrt(second_k2)", "<svg", "second.k2"):
            self.assertIn(part, html)
        self.assertEqual([n for n in os.listdir(self.folder) if n.endswith(".tmp")], [])

    def test_two_studies_are_compared_run_by_run(self):
        self.oscillator()
        self.counts("s.yaml")
        self.oscillator(count=25)
        self.counts("s.yaml", "--database", "more.study")
        same = self.cardan_json("study", "compare", "s.study", "more.study")
        self.assertEqual((same["common"], same["only_a"], same["only_b"]), (40, 0, 10))
        with sqlite3.connect(self.path("more.study")) as c:
            c.execute("UPDATE runs SET peak = peak * 1.01 WHERE id = 3")
        self.cardan("study", "compare", "s.study", "more.study", "--tolerance", "0.1")
        done = self.cardan_json("study", "compare", "s.study", "more.study", code=1)
        peak = {n["name"]: n for n in done["numbers"]}["peak"]
        self.assertEqual((peak["differ"], peak["run"]), (1, 3))
        self.write("t.yaml", STUDY.format("random", 20).replace("count: 20", "count: 20, seed: 9"))
        self.counts("t.yaml")
        self.cardan("study", "compare", "s.study", "t.study", code=2, says="have no run in common")

    def test_ishigami_by_the_command(self):
        self.write("osc.yaml", f"cardan: 1\nunits: {{ mass: {{ fmu: {fmu('lo_fd2')} }} }}\nrun: {{ step: 1 ms, stop: 1 ms }}\n")
        factors = "".join(f"  x{i}: {{ uniform: [-3.141592653589793, 3.141592653589793] }}\n" for i in (1, 2, 3))
        self.write("s.yaml", f"study: 1\nsystem: osc.yaml\nvary:\n{factors}sample: {{ method: saltelli, count: 128 }}\n"
                             "change: { title: $x1 $x2 $x3 }\n"
                             "keep: { t: time, y: = sin(x1) + 7*sin(x2)^2 + 0.1*x3^4*sin(x1) }\n")
        self.assertEqual(self.counts("s.yaml")["done"], 640)
        found = [s for s in self.cardan_json("study", "show", "s.yaml")["sobol"] if s["kept"] == "y"]
        for s, (first, total) in zip(found, ((0.3139, 0.5576), (0.4424, 0.4424), (0, 0.2437))):
            self.assertTrue(s["first_low"] <= first <= s["first_high"], s)
            self.assertTrue(s["total_low"] <= total <= s["total_high"], s)

    def test_two_commands_share_a_study(self):
        self.oscillator(count=200)
        both = [subprocess.Popen([CARDAN, "study", "run", "s.yaml", "--workers", "1", "--json"], cwd=self.folder,
                                 env=self.environment(), stdout=subprocess.PIPE, text=True) for _ in range(2)]
        done = [json.loads(p.communicate(timeout=60)[0]) for p in both]
        self.assertEqual([p.returncode for p in both], [0, 0])
        self.assertEqual(self.counts("s.yaml")["done"], 400, done)
        self.counts("s.yaml", "--database", "one.study")
        self.assertEqual(self.rows(), self.rows("one.study"))

    def test_a_command_ends_when_all_is_made_whoever_had_it(self):
        self.oscillator()
        self.counts("s.yaml")
        other = subprocess.Popen(["sleep", "600"])
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        with open(f"/proc/{other.pid}/stat", encoding="utf-8") as f:
            start = f.read().rsplit(")", 1)[1].split()[19]
        before = self.rows()
        with contextlib.closing(sqlite3.connect(self.path("s.study"))) as c, c:  # it has the last ten, and the first ten are open
            c.execute("INSERT INTO owners VALUES(7, ?, ?, ?, ?)", (os.uname().nodename, other.pid, start, time.time() + 1000))
            c.execute("UPDATE runs SET state = 1, owner = 7 WHERE id > 30")
            c.execute("UPDATE runs SET state = 0 WHERE id <= 10")
        run = subprocess.Popen([CARDAN, "study", "run", "s.yaml", "--json"], cwd=self.folder, env=self.environment(),
                               stdout=subprocess.PIPE, text=True)
        end = time.monotonic() + 60
        while sum(r[1] == 2 for r in self.rows()) < 30 and time.monotonic() < end:
            time.sleep(0.02)
        self.assertIsNone(run.poll())
        other.kill()
        other.wait()
        done = json.loads(run.communicate(timeout=60)[0])
        self.assertEqual((run.returncode, done["done"], done["open"], done["made"]), (0, 40, 0, 20))
        self.assertEqual(self.rows(), before)


class Kills(Study):
    """Whoever is killed whenever: nothing is lost, doubled or different."""

    def children(self, pid):
        with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as f:
            return [int(c) for c in f.read().split()]

    def test_one_run_whose_worker_is_killed_five_times_is_still_to_be_made(self):
        self.write("f.yaml", f"cardan: 1\nunits: {{ a: {{ fmu: {fmu('faulty')} }} }}\nrun: {{ step: 10 ms, stop: 1 s }}\n")
        self.write("s.yaml", "study: 1\nsystem: f.yaml\nvary: { a.mode: [11], a.when: [0.1] }\nkeep: { y: a.y }\n")  # endless
        run = subprocess.Popen([CARDAN, "study", "run", "s.yaml", "--json"], cwd=self.folder, env=self.environment(),
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        killed, end = set(), time.monotonic() + 60
        while len(killed) < 5 and run.poll() is None and time.monotonic() < end:
            with contextlib.suppress(OSError, sqlite3.Error), contextlib.closing(sqlite3.connect(self.path("s.study"))) as c:
                if c.execute("SELECT state FROM runs").fetchall() == [(1,)]:
                    for child in set(self.children(run.pid)) - killed:
                        os.kill(child, signal.SIGKILL)
                        killed.add(child)
        run.send_signal(signal.SIGINT)
        done = json.loads(run.communicate(timeout=60)[0])
        self.assertEqual((done["open"], done["crashed"], len(killed)), (1, 0, 5), done)

    def test_killed_again_and_again(self):
        draw = random.Random(4)
        self.oscillator(stop="1 s", count=100 + 80 * KILLS)
        with open(self.path("all.log"), "w", encoding="utf-8") as log:
            kills = rounds = 0
            while kills < KILLS:
                rounds += 1
                run = subprocess.Popen([CARDAN, "study", "run", "s.yaml", "--workers", "2"], cwd=self.folder,
                                       env=self.environment(), stderr=log, stdout=log)
                whole = draw.random() < 0.5
                time.sleep(draw.uniform(0.02, 0.6))
                while run.poll() is None and kills < KILLS:
                    try:
                        victims = [run.pid] if whole else self.children(run.pid)
                        if victims:
                            os.kill(draw.choice(victims), signal.SIGKILL)
                            kills += 1
                    except (OSError, ProcessLookupError):
                        pass
                    if whole:
                        break
                    time.sleep(draw.uniform(0.05, 0.4))
                    whole = draw.random() < 0.5
                if kills >= KILLS and not whole:
                    run.kill()
                run.wait(timeout=60)
                self.assertLess(rounds, 20 * KILLS)
        with sqlite3.connect(self.path("s.study")) as c:
            left = c.execute("SELECT count(*) FROM runs WHERE state < 2").fetchone()[0]
        print(f"{kills} kills, {left} of {2 * (100 + 80 * KILLS)} runs were left")
        done = self.to_the_end()
        self.assertEqual(done["done"], 2 * (100 + 80 * KILLS))
        with sqlite3.connect(self.path("s.study")) as c:
            self.assertEqual(c.execute("PRAGMA integrity_check").fetchone()[0], "ok")
        self.to_the_end("--database", "calm.study")
        self.assertEqual(self.rows(), self.rows("calm.study"))


if __name__ == "__main__":
    unittest.main()
