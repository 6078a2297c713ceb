"""Twins and time: stamps count, a start that nobody said is found, and what is said holds.

Recordings are made here, from the closed solution of the network, without Cardan.
"""

import math
import random
import unittest

from e2e import EndToEnd

RC = """two capacities in a row
.thermal
heat       q0 1 10
resistance r1 1 2 1
resistance r2 2 3 2
resistance r3 3 0 3
capacity   c1 2 0.1 start=-1
capacity   c2 3 0.2 start=1
.endthermal
.output T1=t(1) T2=t(2) T3=t(3)
.tran 10m 5 uic
.end
"""
TWIN = """circuit: rc.cir
step: 10 ms
sensors:
  T2: { sd: 0.5 }
  T3: { sd: 0.5 }
sources:
  q0: { model: constant, start: 5, sd: 10 }
"""
R1, R2, R3, C1, C2 = VALUES = (1, 2, 3, 0.1, 0.2)
Q = 10
STEP = 0.01
NETLIST_START = (-1, 1)


def exact(t, start):
    """z(t) = s + exp(A t) (start - s) by the two eigenvalues of A."""
    a, b, c, d = -1 / (R2 * C1), 1 / (R2 * C1), 1 / (R2 * C2), -(1 / R2 + 1 / R3) / C2
    steady = (Q * (R2 + R3), Q * R3)
    x, y = start[0] - steady[0], start[1] - steady[1]
    half, root = (a + d) / 2, math.sqrt((a - d)**2 / 4 + b * c)
    one, two = half + root, half - root
    e, f = math.exp(one * t), math.exp(two * t)
    mean, rise = (one * f - two * e) / (one - two), (e - f) / (one - two)
    return (steady[0] + (mean + rise * a) * x + rise * b * y,
            steady[1] + rise * c * x + (mean + rise * d) * y)


def grid(first, count):
    return [first + k * STEP for k in range(count)]


class TwinTime(EndToEnd):
    def setUp(self):
        super().setUp()
        self.write("rc.cir", RC)
        self.write("twin.yaml", TWIN)

    def record(self, times, rng, start=NETLIST_START, start_at=0.0, shift=0.0, sd=0.5, head=None,
               scale=1, name="test.csv"):
        lines = [head or "time,T1,T2,T3"]
        for t in times:
            z = exact(t - start_at, start)
            values = [y + rng.gauss(0, sd) for y in (z[0] + R1 * Q, *z)]
            lines.append(",".join([repr((t + shift) * scale), *(f"{y:.6f}" for y in values)]))
        self.write(name, "\n".join(lines) + "\n")

    def tune(self, *more, code=0):
        return self.cardan_json("twin", "tune", "rc.cir", "--sensors", "T1,T2,T3", "--sd", "0.5",
                                "--estimate", "r1,r2,r3,c1,c2", "--points", "0", "-m", "test.csv",
                                *more, code=code)

    def monte_carlo(self, record, *more, runs=25, code=0):
        """Share of 95 % intervals that hold the truth, and how often each judgement is right."""
        held = white = sized = fits = 0
        for seed in range(runs):
            record(random.Random(seed))
            told = self.tune(*more, code=code)
            for got, want in zip(told["unknowns"], VALUES):
                held += abs(math.log(want / got["value"])) <= 1.96 * got["sd"] / got["value"]
            left = told["residual"]
            white += left["white"]
            sized += left["variance_low"] <= left["variance"] <= left["variance_high"]
            fits += left["start_fits"] is True
        return held / (5 * runs), white / runs, sized / runs, fits / runs


class Intervals(TwinTime):
    """The limits are those of the promise: 85 % of 95 % intervals, and verdicts that are wrong
    once in a hundred times."""

    def check(self, got, fits=1.0):
        self.assertGreaterEqual(got[0], 0.85, got)
        self.assertGreaterEqual(got[1], 0.9, got)
        self.assertGreaterEqual(got[2], 0.9, got)
        self.assertGreaterEqual(got[3], 0.9 * fits, got)

    def test_a_recording_that_begins_a_step_after_the_start(self):
        self.check(self.monte_carlo(lambda rng: self.record(grid(STEP, 500), rng)))

    def test_a_recording_that_begins_at_the_start(self):
        self.check(self.monte_carlo(lambda rng: self.record(grid(0, 500), rng)))

    def test_a_start_that_nobody_said(self):
        for first in (3.7, -1.0, 1.7e9):
            with self.subTest(first):
                def anywhere(rng):
                    start = (rng.uniform(-30, 30), rng.uniform(-30, 30))
                    self.record(grid(0, 500), rng, start, shift=first)
                self.check(self.monte_carlo(anywhere, runs=15), fits=0)
                told = self.tune()
                self.assertFalse(told["time"]["start_known"])
                self.assertEqual([u["name"] for u in told["unknowns"][5:]],
                                 ["start of c1", "start of c2"])

    def test_a_start_that_is_said(self):
        self.check(self.monte_carlo(
            lambda rng: self.record(grid(0.2, 500), rng, start_at=0.005), "--start", "5 ms",
            runs=15))

    def test_rows_at_any_time(self):
        def irregular(rng):
            times, t = [], 0.004
            for _ in range(500):
                times.append(round(t, 6))
                t += rng.uniform(0.3, 1.7) * STEP
            self.record(times, rng)
        self.check(self.monte_carlo(irregular))
        told = self.tune()
        self.assertTrue(told["time"]["irregular"])

    def test_gaps(self):
        def with_gaps(rng):
            times = grid(STEP, 700)
            self.record(times[:20] + times[60:300] + times[460:], rng)
        self.check(self.monte_carlo(with_gaps, runs=15))
        self.assertEqual(self.tune()["time"]["gaps"], 200)

    def test_a_start_that_is_not_the_netlists_is_said(self):
        """Cut off by one step and counted from 0: what is left looks white, intervals miss."""
        def cut(rng):
            self.record(grid(STEP, 500), rng, shift=-STEP)
        held, _, _, fits = self.monte_carlo(cut, code=3)
        self.assertLess(held, 0.85)  # nobody could do better: the stamps are wrong
        self.assertEqual(fits, 0)
        done = self.cardan("twin", "tune", "rc.cir", "--sensors", "T1,T2,T3", "--sd", "0.5",
                           "--estimate", "r1,r2", "-m", "test.csv", code=3)
        self.assertIn("the start is NOT as the netlist says", done.stdout)
        self.assertIn("--fit-start", done.stdout)
        self.check(self.monte_carlo(cut, "--fit-start", runs=15), fits=0)


    def test_a_model_that_misses_something_is_said(self):
        """A capacity that is wrong by a third and not looked for."""
        self.write("rc.cir", RC.replace("c2 3 0.2", "c2 3 0.15"))
        for seed in range(5):
            self.record(grid(STEP, 500), random.Random(seed))
            told = self.cardan_json("twin", "tune", "rc.cir", "--sensors", "T1,T2,T3", "--sd",
                                    "0.5", "--estimate", "r1,r2,r3", "-m", "test.csv", code=3)
            left = told["residual"]
            self.assertFalse(left["white"], left)
            self.assertGreater(left["variance"], left["variance_high"])


class Bands(TwinTime):
    def test_bands_of_a_run_hold_wherever_the_recording_begins(self):
        for first, start in ((STEP, NETLIST_START), (42.0, (25, -10))):
            with self.subTest(first):
                at = 0 if first == STEP else first
                self.record(grid(first, 500), random.Random(3), start, start_at=at)
                done = self.cardan("twin", "run", "twin.yaml", "-m", "test.csv", "-o", "out.csv")
                self.assertEqual("not known" in done.stdout, first != STEP)
                names, columns = self.table("out.csv")
                of = dict(zip(names, columns))
                self.assertAlmostEqual(of["time"][0], first, places=9)
                truth = [exact(t - at, start)[0] for t in of["time"]]
                inside = sum(a <= x <= b for x, a, b in zip(truth, of["T2.low"], of["T2.high"]))
                self.assertGreater(inside, 0.85 * len(truth))

    def test_a_gap_is_gone_alone_and_irregular_rows_count_where_they_are(self):
        rng = random.Random(1)
        times = [0.004, 0.0173, 0.02, 0.0349, 0.5] + grid(0.51, 300)
        self.record(times, rng)
        done = self.cardan("twin", "run", "twin.yaml", "-m", "test.csv", "-o", "out.csv")
        self.assertIn("irregular", done.stdout)
        self.assertRegex(done.stdout, r"gaps +46 steps without a row")
        got = self.column("out.csv", "time")
        for t in times:
            self.assertIn(round(t, 9), [round(x, 9) for x in got])


class BadInput(TwinTime):
    def refused(self, *more, says, command="run"):
        self.cardan("twin", command, "twin.yaml", "-m", "test.csv", *more, code=2, says=says)

    def test_stamps_that_are_no_times(self):
        for stamp, says in (("nan", "'nan' is not a finite number"), ("", "not a finite number"),
                            ("inf", "'inf' is not a finite number"),
                            ("0.005", "goes back from 0.01 to 0.005")):
            with self.subTest(stamp):
                self.write("test.csv", f"time,T2,T3\n0,1,2\n0.01,2,1\n{stamp},1,1\n0.03,1,2\n")
                self.refused(says=["test.csv:4", says])
        self.write("test.csv", "time,T2,T3\n0,1,2\n0.01,2,1\n0.01,1,1\n0.03,1,2\n")
        self.refused(says=["test.csv", "0.01", "twice"])

    def test_milliseconds_that_are_called_seconds(self):
        rng = random.Random(1)
        self.record(grid(0, 300), rng, scale=1000)
        self.refused(says=["test.csv", "rows are 10 s apart, but the twin's step is 0.01 s",
                           "is the time in seconds?"])
        self.record(grid(0, 300), rng, scale=1e-3)
        self.refused(says=["rows are 1e-05 s apart", "is the time in seconds?"])
        # with their unit they are read, and whoever says the step is believed
        self.record(grid(0, 300), rng, scale=1000, head="time [ms],T1,T2,T3")
        told = self.cardan_json("twin", "run", "twin.yaml", "-m", "test.csv")
        self.assertAlmostEqual(told["end"], 2.99, places=9)
        # a netlist has a .tran to compare with
        self.record(grid(0, 300), rng, scale=1000)
        done = self.cardan("twin", "tune", "rc.cir", "--sensors", "T2,T3", "--sd", "0.5",
                           "--estimate", "c1,c2", "-m", "test.csv")
        self.assertIn("is the time in seconds?", done.stderr)

    def test_rows_that_are_too_near_are_said(self):
        times = [t + d for t in grid(STEP, 100) for d in (0, 5e-5)]
        self.record(times, random.Random(1))
        for command in (["run", "twin.yaml"], ["run", "twin.yaml", "--step", "10 ms"]):
            done = self.cardan("twin", *command, "-m", "test.csv")
            self.assertRegex(done.stdout, r"crowded +100 rows less than 0.02 of a step")
        self.write("test.csv", "time,T2,T3\n" + "".join(f"{k}e307,1,2\n" for k in range(9)))
        self.refused("--step", "1e307", says="too long for the network")

    def test_too_few_rows(self):
        self.record([0.1], random.Random(1))
        self.refused(says=["test.csv", "1 row, expected three or more"])
        self.record(grid(STEP, 5), random.Random(1))
        done = self.cardan("twin", "tune", "rc.cir", "--sensors", "T2,T3", "--sd", "0.5",
                           "--estimate", "c1", "-m", "test.csv")
        self.assertIn("cannot be told from so few rows", done.stdout)
        self.assertNotIn("Ljung-Box", done.stdout)
        self.record(grid(STEP, 50), random.Random(1))
        self.refused("--auto-noise", says="50 rows do not tell which noise is right")

    def test_noise_is_chosen_with_gaps_and_few_rows(self):
        """Rows without a measurement are no innovations, and short recordings are less flat."""
        times = grid(STEP, 500)
        self.record(times[:150] + times[300:], random.Random(5))
        self.write("twin.yaml", TWIN.replace("constant", "walk, noise: 1e-4"))
        done = self.cardan("twin", "run", "twin.yaml", "-m", "test.csv", "--auto-noise")
        self.assertRegex(done.stdout, r"noise +\S+ of q0 per step: Ljung-Box")
        self.assertNotIn("misses something", done.stderr)

    def test_a_start_after_the_recording(self):
        self.record(grid(0, 100), random.Random(1))
        self.refused("--start", "2 s", says=["0 to 0.99 s has no row after the start at 2 s"])
        done = self.cardan("twin", "run", "twin.yaml", "-m", "test.csv", "--start", "0.5 s")
        self.assertRegex(done.stdout, r"before +50 rows before the start at 0.5 s")

    def test_a_far_start_is_not_gone_to_the_end_of_time(self):
        self.record(grid(0, 100), random.Random(1), shift=1.7e9)
        self.refused("--start", "0", says=["100 rows over 1.7e+11 steps", "--start"])
        self.cardan("twin", "run", "twin.yaml", "-m", "test.csv")

    def test_the_published_filter_has_one_step(self):
        self.write("twin.yaml", TWIN + "filter: thesis\n")
        self.record([0.01, 0.02, 0.027, 0.04, 0.05], random.Random(1))
        self.cardan("twin", "run", "twin.yaml", "-m", "test.csv", code=2,
                    says="the published filter has one step")

    def test_an_input_that_is_not_known(self):
        self.write("rc.cir", RC.replace(".output", ".input p start=10 source=q0\n.output"))
        self.write("twin.yaml", TWIN.replace("q0: { model: constant, start: 5, sd: 10 }", "")
                   .replace("sources:\n  ", ""))
        self.write("test.csv", "time,T2,T3,p\n0,1,2,10\n0.01,2,1,\n0.02,1,1,10\n0.03,1,2,10\n")
        self.cardan("twin", "run", "twin.yaml", "-m", "test.csv", code=2,
                    says=["test.csv", "column p has no number at 0.01 s"])


if __name__ == "__main__":
    unittest.main()
