"""cardan.study: what it gives against the command and against runs of the module itself; over pools; misused.

    python test_study.py BUILD_FOLDER
"""
import concurrent.futures
import doctest
import math
import os
import sqlite3
import sys
import tempfile
import threading
import unittest

import numpy as np

BUILD = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else "build"
import cardan  # noqa: E402
import cardan.study  # noqa: E402

FMUS = os.path.join(BUILD, "fmus", "fmi2")
SYSTEM = f"""cardan: 1
units:
  first: {{ fmu: {FMUS}/lo_fd1.fmu }}
  second: {{ fmu: {FMUS}/lo_fd2.fmu }}
connections: [second.x2 -> first.x2, second.v2 -> first.v2, first.f -> second.f]
run: {{ step: 1 ms, stop: 50 ms, predict: hold }}
"""
STUDY = """study: 1
title: How stiff
system: osc.yaml
vary:
  second.k2: { uniform: [500, 1500] }
  run.predict: [hold, linear]
sample: { method: random, count: 20 }
keep: { x2: second.x2, peak: max second.x2 }
"""


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        self.write("osc.yaml", SYSTEM)
        self.write("s.yaml", STUDY)

    def write(self, name, text):
        with open(name, "w", encoding="utf-8") as f:
            f.write(text)
        return name

    def same(self, a, b):
        for name in ("run", "state", "reason", *a.names):
            self.assertEqual(a[name].tolist(), b[name].tolist(), name)


class Studies(Case):
    def test_the_examples(self):
        found = doctest.testmod(cardan.study)
        self.assertEqual(found.failed, 0)
        self.assertGreater(found.attempted, 3)

    def test_a_run_is_what_the_module_itself_gives(self):
        s = cardan.study.run("s.yaml")
        self.assertEqual((len(s), s.counts["done"], s.names), (40, 40, ["second.k2", "run.predict", "x2", "peak"]))
        for row in (0, 39):
            system = cardan.System("osc.yaml").set("second.k2", repr(float(s["second.k2"][row])))
            run = system.run(predict=s["run.predict"][row])
            self.assertEqual((run["second.x2"][-1], run["second.x2"].max()), (s["x2"][row], s["peak"][row]))
        self.assertAlmostEqual(s.statistics["peak"]["mean"], s["peak"].mean(), places=12)
        best = s.rows("id > 0", sort="-peak", most=3)
        self.assertEqual([r["peak"] for r in best], sorted(s["peak"], reverse=True)[:3])
        self.assertEqual(sorted(os.listdir(".")), ["osc.yaml", "s.study", "s.yaml"])
        self.assertEqual(cardan.study.check("s.yaml")["runs"], 40)
        again = cardan.study.run("s.study")  # nothing is left to do
        self.same(again, cardan.study.Study("s.yaml"))

    def test_it_leaves_as_tables_and_pictures(self):
        s = cardan.study.run("s.yaml")
        try:
            import pandas
        except ImportError:
            pandas = None
        if pandas:
            frame = s.to_pandas()
            self.assertEqual(frame["peak"].tolist(), s["peak"].tolist())
            self.assertEqual(set(frame["state"]), {"done"})
            self.assertEqual(frame.index.tolist(), list(range(1, 41)))
        picture = s.plot(scatter=["second.k2,peak"], tornado="peak")
        self.assertIn("<svg", picture._repr_svg_())
        self.assertIn("How stiff: 40 done", s._repr_html_())
        with open(s.report("r.html"), encoding="utf-8") as f:
            self.assertIn("<html", f.read())
        s.export("seven.csv", run=7, signals=["second.x2"])
        with open("seven.csv", encoding="utf-8") as f:
            self.assertEqual(float(f.read().split()[-1].split(",")[-1]), s["x2"][6])

    def test_pools_give_the_same_bits(self):
        here = cardan.study.run("s.yaml", database="here.study")
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            there = cardan.study.run("s.yaml", client=pool, chunk=7)
            self.assertFalse(os.path.exists("s.study.chunks"))
            self.same(here, there)
            self.write("s.yaml", STUDY.replace("count: 20", "count: 25"))
            self.assertEqual(len(cardan.study.run("s.yaml", client=pool)), 50)

    def test_what_a_worker_made_before_it_died_is_kept(self):
        here = cardan.study.run("s.yaml", database="here.study")
        done = threading.Event()

        class Dying(concurrent.futures.ThreadPoolExecutor):
            """Every first answer is lost half-way."""
            seen = set()

            def submit(self, f, chunk, workers):
                def broken():
                    rows, why = f(chunk, workers)
                    if chunk in Dying.seen:
                        return rows, why
                    Dying.seen.add(chunk)
                    done.set()
                    return rows[:len(rows) // 2], "somewhere: killed"
                return super().submit(broken)
        with Dying(2) as pool:
            self.same(here, cardan.study.run("s.yaml", client=pool, chunk=10))
        self.assertTrue(done.is_set())

    def test_workers_that_cannot_are_told_and_nothing_is_lost(self):
        class Broken(concurrent.futures.ThreadPoolExecutor):
            def submit(self, *_):
                return super().submit(self.fail)

            def fail(self):
                raise ModuleNotFoundError("No module named 'cardan'")
        with Broken(1) as pool, self.assertRaisesRegex(cardan.UnitError, "need the module cardan.*tries again"):
            cardan.study.run("s.yaml", client=pool, chunk=10)
        self.assertEqual(cardan.study.Study("s.yaml").counts["open"], 40)
        self.assertEqual(cardan.study.run("s.yaml").counts["done"], 40)

    def test_a_search(self):
        self.write("s.yaml", "study: 1\nsystem: osc.yaml\nvary: { second.k2: { uniform: [500, 1500] } }\nkeep: { x2: second.x2, "
                             "d: = (second_k2 - 777)^2 }\noptimise: { minimise: d, runs: 40, method: bobyqa }\n")
        s = cardan.study.optimise("s.yaml")
        self.assertAlmostEqual(s.best["second.k2"], 777, delta=1)
        self.assertAlmostEqual(s.best["d"], s["d"].min(), places=15)
        with self.assertRaisesRegex(cardan.RangeError, "optimise"):
            cardan.study.run("s.yaml")

    def test_sensitivities(self):
        self.write("s.yaml", STUDY.replace("  run.predict: [hold, linear]\n", "  second.c2: { uniform: [1, 2] }\n").replace(
            "random, count: 20", "saltelli, count: 32"))
        found = cardan.study.run("s.yaml").sensitivity
        self.assertEqual([(f["kept"], f["factor"]) for f in found],
                         [(k, f) for k in ("x2", "peak") for f in ("second.k2", "second.c2")])

    def test_numbers_that_do_not_exist_and_states(self):
        self.write("f.yaml", f"cardan: 1\nunits: {{ a: {{ fmu: {FMUS}/faulty.fmu }} }}\nrun: {{ step: 10 ms, stop: 1 s }}\n")
        self.write("s.yaml", "study: 1\nsystem: f.yaml\nvary: { a.mode: [0, 3], a.when: [0.5] }\nkeep: { y: a.y, t: first a.y > 9 }\n")
        s = cardan.study.run("s.yaml")
        self.assertEqual((s.counts["done"], s.counts["failed"]), (1, 1))
        self.assertTrue(np.isnan(s["t"]).all())
        self.assertTrue(math.isnan(s["y"][1]) and "unit 'a'" in s["reason"][1], s["reason"])


class Misuse(Case):
    def test_what_is_wrong_is_said(self):
        for kind, says, call in (
                (cardan.RangeError, "no.yaml", lambda: cardan.study.run("no.yaml")),
                (cardan.CardanError, "makes them", lambda: cardan.study.Study("s.yaml")),
                (cardan.RangeError, "is no client", lambda: cardan.study.run("s.yaml", client=3)),
                (cardan.CardanError, "--again", lambda: cardan.study.run("s.yaml", again="fialed")),
                (cardan.CardanError, "-x.yaml", lambda: cardan.study.run("-x.yaml"))):
            with self.assertRaisesRegex(kind, says):
                call()
        self.write("w.yaml", STUDY.replace("count: 20", "count: 20000000"))
        with self.assertRaisesRegex(cardan.RangeError, "40,000,000 runs.*--yes"):
            cardan.study.run("w.yaml")
        s = cardan.study.run("s.yaml")
        with self.assertRaisesRegex(cardan.NotFound, "no column 'peek'"):
            s["peek"]
        with self.assertRaisesRegex(cardan.NotFound, "no picture"):
            s.plot(pie="peak")
        with self.assertRaisesRegex(cardan.RangeError, "condition"):
            s.rows("peak >")
        self.write("osc.yaml", SYSTEM.replace("50 ms", "60 ms"))
        with self.assertRaisesRegex(cardan.CardanError, "osc.yaml has changed since the study began"):
            cardan.study.run("s.yaml")

    def test_a_file_that_breaks_under_it(self):
        s = cardan.study.run("s.yaml")
        with open("s.study", "r+b") as f:
            f.write(b"nothing at all " * 400)
        with self.assertRaises(cardan.CardanError):
            s["peak"]
        with self.assertRaises(cardan.CardanError):
            cardan.study.Study("s.yaml")
        os.remove("s.study")
        with self.assertRaises(cardan.ReadWriteError):
            s["peak"]
        self.assertFalse(os.path.exists("s.study"))

    def test_names_that_are_no_identifiers(self):
        self.write("a b'\"?#%.yaml", STUDY.replace("x2: second.x2", "'x \"2': second.x2"))
        try:
            s = cardan.study.run("a b'\"?#%.yaml")
        except cardan.CardanError as e:
            self.assertIn("x \"2", str(e))
            self.write("a b'\"?#%.yaml", STUDY)
            s = cardan.study.run("a b'\"?#%.yaml")
        self.assertEqual(len(s["peak"]), 40)
        with sqlite3.connect("a b'\"?#%.study") as c:
            self.assertEqual(c.execute("SELECT count(*) FROM runs").fetchone()[0], 40)


if __name__ == "__main__":
    unittest.main(verbosity=1)
