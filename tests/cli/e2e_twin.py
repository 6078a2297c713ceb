"""cardan twin: from a netlist and a recording to estimates, and what is said when it cannot be."""

import math
import random
import unittest

from e2e import EndToEnd

RC = """two capacities in a row
.param rout=3
.thermal
heat       q0 1 10
resistance r1 1 2 1
resistance r2 2 3 2
resistance r3 3 0 {rout}
capacity   c1 2 0.1 start=-1
capacity   c2 3 0.2 start=1
.endthermal
.output T1=t(1) T2=t(2) T3=t(3)
.tran 2m 2 uic
.end
"""
TWIN = """circuit: rc.cir
step: 2 ms
sensors:
  T2: { sd: 0.5 }
  T3: { sd: 0.5 }
sources:
  q0: { model: walk, noise: 1e-4, start: 5, sd: 10 }
"""


class Twin(EndToEnd):
    def setUp(self):
        super().setUp()
        self.write("rc.cir", RC)
        self.write("twin.yaml", TWIN)

    def measure(self, name="test.csv", netlist="rc.cir", sd=0.5, seed=1, change=None, head=None):
        """A simulation with noise as a recording; `change` bends its rows of texts."""
        self.cardan("circuit", netlist, "-q", "-o", "truth.csv")
        names, columns = self.table("truth.csv")
        noise = random.Random(seed)
        rows = [[repr(t), *(f"{x + noise.gauss(0, sd):.5f}" for x in xs)]
                for t, *xs in zip(*columns)]
        rows = change(rows) if change else rows
        self.write(name, "\n".join(",".join(r) for r in [head or names, *rows]) + "\n")
        return name


class Commands(Twin):
    def test_check_says_what_can_be_found(self):
        line = ["twin", "check", "rc.cir", "--sd", "0.5", "--estimate", "r1,r2,r3"]
        done = self.cardan(*line, "--sensors", "T1,T2,T3")
        self.assertIn("rank 3 of 3", done.stdout)
        self.assertIn("1000 measurements every 0.002 s, 3 sensors", done.stdout)
        told = self.cardan_json(*line, "--sensors", "T1,T2,T3")
        self.assertEqual(told["rank"], 3)
        self.assertEqual([u["name"] for u in told["unknowns"]], ["r1", "r2", "r3"])
        # More is asked for than can be told: by name, and with the exit code of a wrong input
        done = self.cardan(*line, "--sensors", "T2,T3", code=2,
                           says="1 of 3 unknowns cannot be told: r1")
        self.assertIn("not at all", done.stdout)

    def test_place_finds_the_sensor_that_is_missing(self):
        told = self.cardan_json("twin", "place", "rc.cir", "--sensors", "T3", "--sd", "0.5",
                                "--estimate", "r1,r2,r3", "--count", "1")
        self.assertEqual([p["node"] for p in told["places"]], ["1"])
        self.assertEqual(told["places"][0]["rank"], 3)
        self.cardan("twin", "place", "rc.cir", "--sensors", "T3", "--sd", "0.5", "--estimate",
                    "r1", "--at", "nix", code=2, says="no node 'nix'")

    def test_tune_finds_values_and_writes_a_twin_that_runs(self):
        self.measure()
        told = self.cardan_json("twin", "tune", "rc.cir", "--sensors", "T1,T2,T3", "--sd", "0.5",
                                "--estimate", "r1:10,r2:0.1,r3:10", "-m", "test.csv", "-o",
                                "tuned.yaml")
        self.assertTrue(told["converged"])
        for got, want in zip(told["unknowns"], (1, 2, 3)):
            self.assertLess(abs(got["value"] - want), 4 * got["sd"])
            self.assertLess(got["sd"], 0.02 * want)
        done = self.cardan("twin", "run", "tuned.yaml", "-m", "test.csv", "-o", "out.csv")
        self.assertIn("1000 steps of 0.002 s", done.stdout)

    def test_run_gives_estimates_with_bands_that_hold(self):
        self.measure()
        told = self.cardan_json("twin", "run", "twin.yaml", "-m", "test.csv", "-o", "out.csv")
        self.assertEqual(told["steps"], 1000)
        last = {e["name"]: e for e in told["estimates"]}
        self.assertLess(abs(last["q0"]["value"] - 10), 4 * last["q0"]["sd"])
        names, columns = self.table("out.csv")
        self.assertEqual(names[:4], ["time", "T1", "T1.low", "T1.high"])
        self.assertEqual(names[-2:], ["T3.measured", "T3.innovation"])
        of = dict(zip(names, columns))
        truth = self.column("truth.csv", "T2")[1:]
        inside = sum(a <= x <= b for x, a, b in zip(truth, of["T2.low"], of["T2.high"]))
        self.assertGreater(inside, 0.85 * len(truth))
        error = math.sqrt(sum((x - y)**2 for x, y in zip(truth[200:], of["T2"][200:])) / 800)
        self.assertLess(error, 0.2)  # measured with 0.5

    def test_columns_may_have_other_names_and_units(self):
        """A thermometer in degC and one in mK: what the netlist has is in K."""
        def to_units(rows):
            return [[r[0], r[1], repr(float(r[2]) - 273.15), repr(float(r[3]) * 1000)]
                    for r in rows]
        self.measure()
        want = self.cardan_json("twin", "run", "twin.yaml", "-m", "test.csv")
        self.measure("units.csv", change=to_units,
                     head=["time [s]", "a [K]", "b [degC]", "c [mK]"])
        got = self.cardan_json("twin", "run", "twin.yaml", "-m", "units.csv", "--map", "b=T2",
                               "--map", "c=T3")
        for a, b in zip(got["estimates"], want["estimates"]):
            self.assertAlmostEqual(a["value"], b["value"], places=6)

    def test_a_sensor_that_drops_out_widens_the_band(self):
        def gap(rows):
            return [[*r[:2], "" if 400 <= i < 600 else r[2], "" if 400 <= i < 600 else r[3]]
                    for i, r in enumerate(rows)]
        self.measure(change=gap)
        done = self.cardan("twin", "run", "twin.yaml", "-m", "test.csv", "-o", "out.csv")
        self.assertRegex(done.stdout, r"T2 +800 +200 +0")
        low, high = self.column("out.csv", "T1.low"), self.column("out.csv", "T1.high")
        width = [b - a for a, b in zip(low, high)]
        self.assertGreater(width[595], 1.2 * width[395])
        self.assertLess(width[-1], width[595])

    def test_rows_that_are_missing_are_gaps(self):
        def without(rows):
            return rows[:300] + rows[350:]
        self.measure(change=without)
        done = self.cardan("twin", "run", "twin.yaml", "-m", "test.csv")
        self.assertRegex(done.stdout, r"T2 +950 +50 +0")

    def test_stuck_and_wild_sensors_are_reported(self):
        def stuck(rows):
            return [[*r[:3], rows[700][3] if i > 700 else r[3]] for i, r in enumerate(rows)]
        self.measure(change=stuck)
        told = self.cardan_json("twin", "run", "twin.yaml", "-m", "test.csv")
        self.assertEqual([s["stuck"] for s in told["sensors"]], [False, True])
        self.measure(change=lambda rows: [
            [*r[:3], repr(float(r[3]) + (40 if i > 700 else 0))] for i, r in enumerate(rows)])
        told = self.cardan_json("twin", "run", "twin.yaml", "-m", "test.csv")
        self.assertEqual([s["wild"] for s in told["sensors"]], [False, True])
        self.assertGreater(told["sensors"][1]["refused"], 250)
        self.assertLess(abs(told["estimates"][1]["value"] - self.column("truth.csv", "T2")[-1]), 1)


class BadInput(Twin):
    def run_twin(self, text=None, *more, code=2, says=(), data="test.csv"):
        if text:
            self.write("bad.yaml", text)
        return self.cardan("twin", "run", "bad.yaml" if text else "twin.yaml", "-m", data,
                           *more, code=code, says=says)

    def test_sensors_on_what_is_not_there(self):
        self.measure()
        for command in ("check", "place", "tune", "run"):
            self.cardan("twin", command, "rc.cir", "--sensors", "T9=t(9)", "--sd", "1",
                        "--estimate", "r1", "-m", "test.csv", "--map", "T2=T9", code=2,
                        says=["T9", "t(9)"])
        self.run_twin(TWIN.replace("T3: {", "T3: { at: t(33),"), says=["T3", "33"])
        self.run_twin(TWIN.replace("T3: {", "T3: { at: i(r9),"), says=["T3", "r9"])
        self.run_twin(TWIN.replace("T3: {", "T3: { at: 'v(2'  ,"), says=["T3", "v(2"])
        self.run_twin(TWIN.replace("T3:", "T4:"), says=["T4"])

    def test_more_unknowns_than_can_be_observed(self):
        self.measure()
        text = TWIN + "parameters: { r1: {} }\n"
        self.run_twin(text, says=["cannot be told", "r1"])
        self.cardan("twin", "tune", "bad.yaml", "-m", "test.csv", "-o", "x.yaml", code=2,
                    says=["cannot be told", "r1"])

    def test_descriptions_that_are_wrong(self):
        self.measure()
        for old, new, says in [
            ("step: 2 ms", "step: 0 ms", ["bad.yaml:2", "step", "expected > 0"]),
            ("step: 2 ms", "step: 2 kg", ["bad.yaml:2", "step"]),
            ("sd: 0.5", "sd: -1", ["bad.yaml:4", "sensors.T2.sd", "expected > 0"]),
            ("{ sd: 0.5 }", "{ }", ["sensors.T2", "sd is missing"]),
            ("sd: 0.5 }", "sd: 0.5, id: 3 }", ["sensors.T2", "no such key", "sd"]),
            ("sensors:", "senors:", ["senors", "did you mean sensors?"]),
            ("q0:", "q7:", ["bad.yaml:7", "sources.q7", 'no part "q7"']),
            ("  q0:", "  r1:", ["r1", "expected V or I"]),
            ("walk", "jump", ["model", "expected one of constant, walk"]),
            (", noise: 1e-4", "", ["sources.q0", "noise is missing"]),
            ("rc.cir", "gone.cir", ["bad.yaml:1", "gone.cir"]),
            ("circuit: rc.cir", "filter: auto", ["circuit is missing"]),
            ("step: 2 ms", "values: { x: 3 }\nstep: 2 ms", ["x"]),
            ("sensors:", "sensors: [", ["bad.yaml"]),
        ]:
            with self.subTest(new):
                self.assertIn(old, TWIN)
                self.run_twin(TWIN.replace(old, new, 1), says=says)
        self.cardan("twin", "run", "gone.yaml", "-m", "test.csv", code=2, says="gone.yaml")
        self.cardan("twin", "run", "twin.yaml", code=2, says="no --measurements")
        self.cardan("twin", "run", "twin.yaml", "--sensors", "T1", "-m", "test.csv", code=2,
                    says="--sensors")
        self.cardan("twin", "run", "rc.cir", "-m", "test.csv", code=2, says="no --sensors")

    def test_a_description_that_is_too_large_is_refused_not_cut_off(self):
        comment = "# nothing but a comment that fills a line of sixty-four bytes....\n"
        comments = comment * 66000
        self.assertGreater(len(comments), 4.3e6)
        self.write("large.yaml", TWIN + comments + "no_such_key: 1\n")
        for line in (["check", "large.yaml"], ["run", "large.yaml", "-m", "test.csv"]):
            self.cardan("twin", *line, code=2,
                        says="large.yaml: larger than 4 MiB, expected the description of a twin")
        self.write("bad.yaml", TWIN + comment * 40000 + "no_such_key: 1\n")
        self.cardan("twin", "check", "bad.yaml", code=2, says="no_such_key")

    def test_values_of_the_netlist_can_be_given(self):
        self.write("other.cir", RC.replace("rout=3", "rout=5"))
        self.measure(netlist="other.cir")
        self.write("five.yaml", TWIN + "values: { rout: 5 }\n")
        told = self.cardan_json("twin", "run", "five.yaml", "-m", "test.csv")
        self.assertLess(abs(told["estimates"][-1]["value"] - 10), 0.5)

    def test_networks_that_are_not_linear(self):
        rest = "V1 1 0 1\nR1 1 2 1k\nC1 2 0 1u ic=0\n.tran 1m 1 uic\n.output T2=v(2) T3=v(1)\n"
        self.measure("test.csv")
        for part, says in (("D1 2 0 dd\n.model dd d(is=1n)", "d1"),
                           ("B1 2 0 I={v(2)*v(2)}", "b1"),
                           ("S1 2 0 1 0 sm\n.model sm sw(vt=2)", "s1")):
            self.write("bend.cir", "t\n" + part + "\n" + rest)
            with self.subTest(part):
                for command in (["check"], ["run", "-m", "test.csv"]):
                    done = self.cardan("twin", *command, "bend.cir", "--sensors", "T2", "--sd", "1",
                                       "--estimate", "r1", code=2, says=["bend.cir:2", "linear"])
                    self.assertIn(says, done.stderr.lower())

    def test_recordings_that_do_not_fit(self):
        self.measure()
        self.run_twin(data="gone.csv", says="gone.csv")
        self.measure("few.csv", change=lambda rows: rows[:1])
        self.run_twin(data="few.csv", says=["few.csv", "1 row, expected three or more"])
        self.measure("other.csv", head=["time", "T1", "T2", "X"])
        self.run_twin(data="other.csv", says=["other.csv", "no column for sensor T3",
                                              "--map COLUMN=T3"])
        self.cardan("twin", "run", "twin.yaml", "-m", "test.csv", "--start", "0.9ms", "--step", "2ms")
        self.measure("text.csv", change=lambda rows: [[*r[:3], "warm"] for r in rows])
        self.run_twin(data="text.csv", says=["text.csv"])

    def test_options_that_make_no_sense(self):
        self.measure()
        for line, says in ((["--map", "T2"], "expected COLUMN=NAME"),
                           (["--map", "T2=T9"], "'T9' is neither a sensor nor an .input"),
                           (["--from", "1.5 s", "--to", "1 s"], "leave nothing of 0 s to 2 s"),
                           (["--from", "9 s"], "leave nothing"),
                           (["--step", "1 ns"], "is the time in seconds, and the step right?"),
                           (["-o", "test.csv"], "would overwrite"),
                           (["-o", "rc.cir"], "would overwrite")):
            with self.subTest(line):
                self.run_twin(None, *line, says=says)
        self.cardan("twin", "tune", "twin.yaml", "-m", "test.csv", "-o", "twin.yaml", code=2,
                    says="would overwrite")
        self.write("far.csv", "time,T2,T3\n0,1,1\n0.002,1,2\n0.004,2,1\n1e9,1,2\n")
        self.run_twin(data="far.csv", says=["far.csv", "4 rows over 5e+11 steps"])
        for line, says in ((["--sensors", "T2:abc"], "'abc', expected a number"),
                           (["--sensors", "T2"], "expected T2:SD"),
                           (["--sensors", "T2:1,T2:1"], "'T2' is given twice"),
                           (["--sensors", "T2:1", "--estimate", "r1:x"], "expected a number"),
                           (["--sensors", "T2:1", "--unknown", "q0:walk"],
                            "sources.q0: noise is missing"),
                           (["--sensors", "T2:1"], "nothing to find"),
                           (["--sensors", "T2:1", "--estimate", "r1", "--step", "1 ps"],
                            "expected 1 to 10000000")):
            with self.subTest(line):
                self.cardan("twin", "check", "rc.cir", *line, code=2, says=says)

    def test_time_that_does_not_go_on(self):
        self.measure("twice.csv", change=lambda rows: rows[:10] + rows[9:])
        self.run_twin(data="twice.csv", says=["twice.csv", "time", "twice"])
        self.measure("back.csv", change=lambda rows: rows[:10] + rows[20:30] + rows[10:20]
                     + rows[30:])
        self.run_twin(data="back.csv", says=["back.csv"])

    def test_measurements_that_are_no_numbers_are_missing(self):
        self.measure("nan.csv", change=lambda rows: [
            [*r[:2], "NaN" if i % 10 == 5 else "inf" if i % 10 == 7 else r[2], r[3]]
            for i, r in enumerate(rows)])
        done = self.run_twin(data="nan.csv", code=0)
        self.assertRegex(done.stdout, r"T2 +800 +200 +0")
        self.measure("none.csv", change=lambda rows: [[*r[:2], "nan", r[3]] for r in rows])
        self.run_twin(data="none.csv", says=["none.csv", "column T2 has no number"])

    def test_units_that_do_not_fit(self):
        self.measure("volts.csv", head=["time [s]", "T1 [K]", "T2 [V]", "T3 [K]"])
        self.run_twin(data="volts.csv", says=["volts.csv", "column T2 is in V, expected K"])

    def test_a_constant_channel_is_warned_of(self):
        self.measure("flat.csv", change=lambda rows: [[*r[:2], "21.5", r[3]] for r in rows])
        done = self.cardan("twin", "tune", "rc.cir", "--sensors", "T2,T3", "--sd", "0.5",
                           "--estimate", "r2", "-m", "flat.csv", code=3)
        self.assertIn("column T2 is constant (21.5)", done.stderr)

    def test_divergence_is_said_and_ends_the_run(self):
        """Every sensor says what the model can never do."""
        self.measure("mad.csv", change=lambda rows: [
            [*r[:2], repr((-1)**i * 1e9), repr((-1)**(i // 2) * 1e9)]
            for i, r in enumerate(rows)])
        done = self.cardan("twin", "run", "twin.yaml", "-m", "mad.csv", "-o", "mad.out.csv", code=1,
                           says=["the filter diverged at t = ", "every sensor contradicts"])
        self.assertNotIn("estimate at the end", done.stdout)


if __name__ == "__main__":
    unittest.main()
