"""Studies that look for something, that go on from a state, that are watched while they run."""

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import time
import unittest
import urllib.error
import urllib.request

from e2e import CARDAN, EndToEnd, fmu

OSCILLATOR = """cardan: 1
units: {{ first: {{ fmu: {} }}, second: {{ fmu: {} }} }}
connections: [second.x2 -> first.x2, second.v2 -> first.v2, first.f -> second.f]
run: {{ step: 1 ms, stop: {}, scheme: jacobi, predict: hold }}
"""
MASS = "cardan: 1\nunits: {{ mass: {{ fmu: {} }} }}\nrun: {{ step: 1 ms, stop: {} }}\n"


class Search(EndToEnd):
    def formula(self, what, vary, options, limits="", name="s.yaml"):
        """A study of a function: its run is one step of one unit, which is not looked at."""
        self.write("mass.yaml", MASS.format(fmu("lo_fd2"), "1 ms"))
        names = " ".join("$" + f for f in re.findall(r"^  (\w+):", vary, re.M))
        return self.write(name, f"study: 1\nsystem: mass.yaml\nvary:\n{vary}change: {{ title: {names} }}\n"
                                f"keep: {{ y: '= {what}' }}\n{limits}optimise: {{ minimise: y, {options} }}\n")

    def look(self, *arguments, code=0):
        return self.cardan_json("study", "optimise", *arguments, code=code)

    def rows(self, columns, name="s.study"):
        with sqlite3.connect(self.path(name)) as c:
            return c.execute(f"SELECT {columns} FROM runs ORDER BY id").fetchall()


class Optimum(Search):
    PLANE = "  a: { uniform: [-1, 1] }\n  b: { uniform: [-1, 1] }\n"

    def test_each_method_finds_the_least_of_a_valley_over_a_list(self):
        for method, runs, within in (("cobyla", 300, 1e-3), ("bobyqa", 300, 1e-3), ("sbplx", 600, 1e-3),
                                     ("direct", 300, 1e-2), ("isres", 900, 5e-2)):
            self.formula("(a - 0.3)^2 + 2*(b + 0.4)^2 + a*b/4 + abs(c - 1)", self.PLANE + "  c: [0, 1, 2]\n",
                         f"method: {method}, runs: {runs}", name=f"{method}.yaml")
            best = self.look(f"{method}.yaml")["best"]
            # The gradient is zero at 2a + b/4 = 0.6, a/4 + 4b = -1.6.
            b = (-1.6 - 0.3 / 4) / (4 - 1 / 32)
            a = 0.3 - b / 8
            least = (a - 0.3) ** 2 + 2 * (b + 0.4) ** 2 + a * b / 4
            self.assertEqual(best["c"], 1, method)
            self.assertGreaterEqual(best["y"], least - 1e-12)
            self.assertLess(best["y"] - least, within, method)

    def test_limits_hold_and_are_where_the_least_lies(self):
        self.formula("a + b", "  a: { loguniform: [0.1, 2] }\n  b: { uniform: [0.1, 2] }\n", "runs: 300",
                     "limits: [y < 3 && a * b > 0.25, a < b * 4]\n")
        best = self.look("s.yaml")["best"]
        self.assertGreater(best["a"] * best["b"], 0.25)
        self.assertLess(best["y"] - 1, 1e-2)
        self.formula("a + b", self.PLANE, "runs: 40", "limits: [a > 2]\n", name="n.yaml")
        self.cardan("study", "optimise", "n.yaml", code=3, says="no run keeps all limits")

    def test_the_configuration_with_the_least_error_for_its_work(self):
        self.write("osc.yaml", OSCILLATOR.format(fmu("lo_fd1"), fmu("lo_fd2"), "2 s"))
        study = ("study: 1\nsystem: osc.yaml\nvary:\n  run.step: {}\n  run.scheme: [jacobi, gauss-seidel]\n"
                 "  run.predict: [hold, linear, quadratic, hermite]\nkeep: {{ error: error, work: work, digits: = log10(error) }}\n"
                 "limits: [work < 2000.5]\n{}")
        self.write("s.yaml", study.format("{ loguniform: [0.2 ms, 20 ms] }", "optimise: { minimise: digits, runs: 150 }\n"))
        done = self.look("s.yaml")
        self.assertLessEqual(done["best"]["work"], 2000)
        self.assertLessEqual(done["made"], 150)
        # By trying all of them with the shortest step that the work allows.
        self.write("all.yaml", study.format("[1 ms]", ""))
        self.cardan("study", "run", "all.yaml")
        best = min(self.rows('error, "run.scheme", "run.predict"', "all.study"))
        self.assertEqual((done["best"]["run.scheme"], done["best"]["run.predict"]), best[1:])
        self.assertLess(done["best"]["error"], 1.1 * best[0])

    def test_killed_and_shared_it_is_the_same_search(self):
        self.formula("(1 - a)^2 + 10*(b - a^2)^2 + c", "  a: { uniform: [-2, 2] }\n  b: { uniform: [-1, 3] }\n  c: [0, 0.1]\n",
                     "runs: 160")
        calm = self.look("s.yaml", "--database", "calm.study")
        for killed in range(4):
            run = subprocess.Popen([CARDAN, "study", "optimise", "s.yaml", "-q"], cwd=self.folder, env=self.environment(),
                                   stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            while run.poll() is None:
                if os.path.exists(self.path("s.study")):
                    try:
                        if len(self.rows("id")) > 15 * (killed + 1):
                            run.kill()
                    except sqlite3.OperationalError:
                        pass  # not made yet
            run.wait()
        both = [subprocess.Popen([CARDAN, "study", "optimise", "s.yaml", "--json"], cwd=self.folder, env=self.environment(),
                                 stdout=subprocess.PIPE, text=True) for _ in range(2)]
        for p in both:
            self.assertEqual(json.loads(p.communicate(timeout=60)[0])["least"], calm["least"])
        columns = "state, a, b, c, y"
        self.assertEqual(sorted(self.rows(columns)), sorted(self.rows(columns, "calm.study")))
        self.assertEqual(len(set(self.rows("key"))), len(self.rows("key")))
        self.assertLessEqual(len(self.rows("id")), 160)
        shutil.rmtree(self.unpack)  # what was killed left it there
        os.mkdir(self.unpack)
        self.assertEqual(self.look("s.yaml")["made"], 0)

    def test_what_is_no_number_is_walked_around(self):
        # sqrt of a negative number over more than half of the square.
        self.formula("sqrt(a + b - 0.2) + (a - b)^2", self.PLANE, "runs: 200")
        best = self.look("s.yaml")["best"]
        self.assertLess(best["y"], 0.3)
        self.formula("sqrt(-1 - a^2)", "  a: { uniform: [-1, 1] }\n", "runs: 60", name="n.yaml")
        done = self.look("n.yaml", code=3)
        self.assertEqual({s["ended"] for s in done["searches"]}, {"no start", "behind"} & {s["ended"] for s in done["searches"]})

    def test_bad_input_is_told(self):
        for vary, options, limits, says in (
                (self.PLANE, "runs: 4", "", ["optimise.runs: 4, and there are 8 points to begin from"]),
                (self.PLANE, "method: bobyqa", "limits: [a < 0]\n", ["bobyqa knows no limits; cobyla and isres do"]),
                (self.PLANE, "method: cobyal", "", ["cobyal", "did you mean 'cobyla'"]),
                ("  a: { normal: [0, 1] }\n", "runs: 50", "", ["s.yaml:4", "vary.a: optimise looks between two ends"])):
            self.formula("a", vary, options, limits)
            self.cardan("study", "optimise", "s.yaml", code=2, says=says)
        path = self.formula("a", self.PLANE, "runs: 50")
        self.cardan("study", "run", "s.yaml", code=2, says="'cardan study optimise' makes its runs")
        self.cardan("study", "optimise", "s.yaml", "--executor", "list", code=2, says="--executor list: a search has to know")
        with open(path, encoding="utf-8") as f:
            text = f.read()
        self.write("s.yaml", text.replace("minimise: y", "minimise: z"))
        self.cardan("study", "optimise", "s.yaml", code=2, says="'z' is none of what is kept")
        self.write("p.yaml", text[:text.index("optimise")] + "sample: { count: 3 }\n")
        self.cardan("study", "optimise", "p.yaml", code=2, says="nothing is looked for, as optimise: { minimise: y }")


class State(Search):
    def warm(self, stop="150 ms"):
        self.write("mass.yaml", MASS.format(fmu("lo_fd2"), stop))
        self.cardan("run", "mass.yaml", "--isolate", "none", "-o", "none", "--save-state", "m.state", "--at", "0.1", "-q")

    def study(self, vary, more=""):
        return self.write("s.yaml", f"study: 1\nsystem: mass.yaml\nstate: m.state\nvary: {{ {vary} }}\n"
                                    f"keep: {{ x: mass.x2, low: min mass.x2, n: steps }}\n{more}")

    def test_what_comes_after_varies(self):
        self.warm()
        self.study("mass.f: [0 N, 500 N, 1000 N, 1500 N]")
        self.cardan("study", "run", "s.yaml")
        rows = self.rows('state, "mass.f", x, low')
        self.assertEqual([r[0] for r in rows], [2] * 4)
        self.cardan("run", "mass.yaml", "-q", "-o", "m.csv")
        with open(self.path("m.csv"), encoding="utf-8") as f:
            plain = [float(line.split(",")[1]) for line in f.readlines()[1:]]
        self.assertEqual(rows[0][2], plain[-1])  # to the last bit
        self.assertEqual(rows[0][3], min(plain[100:]))  # behind the state alone
        for k in (2, 3):  # it is linear
            self.assertAlmostEqual(rows[k][2] - rows[0][2], k * (rows[1][2] - rows[0][2]), places=9)
        self.write("k.yaml", "study: 1\nsystem: mass.yaml\nstate: m.state\nvary: { mass.f: [0 kN, 0.5 kN, 1 kN, 1.5 kN] }\n"
                             "keep: { x: mass.x2 }\n")
        self.cardan("study", "run", "k.yaml")
        self.assertEqual([r[2] for r in rows], [r[0] for r in self.rows("x", "k.study")])

    def test_what_cannot_vary_behind_a_state_is_told(self):
        self.warm()
        for vary, more, says in (
                ("mass.k2: [900, 1000]", "", ["s.yaml:4", "fixed parameter"]),
                ("mass.x9: [900, 1000]", "", ["s.yaml:4", "x9"]),
                ("run.step: [1 ms, 2 ms]", "", ["s.yaml:4", "run.step", "part of the run up to the state"]),
                ("mass.f: [1 kN, 2 m]", "", ["s.yaml:4"]),
                ("mass.f: [1 m, 2 m]", "", ["vary.mass.f: in m, and the variable is in N"]),
                ("a: [1, 2]", "change: { title: $a }\n", ["stands in change"]),
                ("run.stop: [50 ms, 80 ms]", "", ["s.yaml:3: state: ", "where the run is over already"])):
            self.study(vary, more)
            self.cardan("study", "run", "s.yaml", code=(1, 2), says=says)
        self.study("mass.f: [1 kN]")
        self.write("at.yaml", "study: 1\nsystem: mass.yaml\nstate: m.state\nvary: { mass.f: [1 kN] }\nkeep: { x: mass.x2 at 50 ms }\n")
        self.cardan("study", "check", "at.yaml", code=1, says=["at.yaml:5: keep.x: 'mass.x2 at 50 ms'", "it begins behind it"])
        self.write("m.state", "nothing of that kind")
        self.cardan("study", "run", "s.yaml", code=(1, 2), says="is no saved state")

    def test_another_state_is_refused(self):
        self.warm()
        self.study("mass.f: [1 kN]")
        self.cardan("study", "run", "s.yaml")
        self.cardan("run", "mass.yaml", "--isolate", "none", "-o", "none", "--save-state", "m.state", "--at", "0.12", "-q")
        self.cardan("study", "run", "s.yaml", code=1, says=["the state that runs go on from has changed since the study began", "--database"])
        self.cardan("run", "mass.yaml", "--save-state", "m.state", "--at", "0.1", "-q", "-o", "m.csv")
        self.cardan("study", "run", "s.yaml", "--database", "t.study", code=(1, 2),
                    says=["s.yaml:3: state: "])


class Watch(Search):
    TOKEN = "0123456789abcdef"

    def get(self, url, path, token=TOKEN):
        with urllib.request.urlopen(f"{url}{path}?token={token}", timeout=20) as answer:
            return answer.read().decode()

    def test_pictures_fill_up_on_a_page(self):
        self.write("osc.yaml", OSCILLATOR.format(fmu("lo_fd1"), fmu("lo_fd2"), "1 s"))
        self.write("s.yaml", "study: 1\ntitle: How stiff\nsystem: osc.yaml\nvary: { second.k2: { uniform: [900, 1100] } }\n"
                             "sample: { count: 20000 }\nkeep: { peak: max second.x2 }\n")
        run = subprocess.Popen([CARDAN, "study", "run", "s.yaml", "--watch", "--ui-token", self.TOKEN, "--ui-address", ":0"],
                               cwd=self.folder, env=self.environment(), stderr=subprocess.PIPE, text=True)
        try:
            line = run.stderr.readline()
            url = re.search(r"(http://\S+?)/\?token", line).group(1)
            self.assertIn("/sheet.js", self.get(url, "/"))
            with self.assertRaises(urllib.error.HTTPError) as refused:
                self.get(url, "/sheet.json", "wrong-token-wrong")
            self.assertEqual(refused.exception.code, 403)
            about, end = {}, time.monotonic() + 60
            while about.get("number", 0) < 2 and time.monotonic() < end:
                about = json.loads(self.get(url, "/sheet.json"))
                picture = self.get(url, "/sheet.svg")
            self.assertGreaterEqual(about["number"], 2)
            self.assertEqual(about["title"], "How stiff")
            self.assertRegex(about["line"], r"of 20,000 runs")
            self.assertIn("second.k2", picture)
            self.assertIn("peak", picture)
        finally:
            run.send_signal(signal.SIGINT)
            run.communicate(timeout=30)

    def test_a_page_needs_to_be_asked_for(self):
        self.formula("a", "  a: { uniform: [-1, 1] }\n", "runs: 50")
        self.cardan("study", "optimise", "s.yaml", "--ui-address", ":0", code=2, says="expected --watch too")


if __name__ == "__main__":
    unittest.main()
