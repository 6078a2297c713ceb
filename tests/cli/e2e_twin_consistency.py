"""cardan twin run says whether its bands are as wide as its errors: NIS always, NEES with a truth.

Recordings are made here: a network whose source walks, with exact steps, without Cardan.
"""

import math
import random
import unittest

from e2e import EndToEnd
from e2e_twin_time import RC

R2, R3, C1, C2 = 2, 3, 0.1, 0.2
STEP, SD, WALK = 0.01, 0.5, 0.01  # s, K, W^2 per step


def flow():
    """exp(A h) by the two eigenvalues of A."""
    a, b, c, d = -1 / (R2 * C1), 1 / (R2 * C1), 1 / (R2 * C2), -(1 / R2 + 1 / R3) / C2
    half, root = (a + d) / 2, math.sqrt((a - d)**2 / 4 + b * c)
    one, two = half + root, half - root
    e, f = math.exp(one * STEP), math.exp(two * STEP)
    mean, rise = (one * f - two * e) / (one - two), (e - f) / (one - two)
    return (mean + rise * a, rise * b), (rise * c, mean + rise * d)


FLOW = flow()
TRUTH = ["--truth", "a=2", "--truth", "b=T3", "--truth", "q=q0"]


class Consistency(EndToEnd):
    def setUp(self):
        super().setUp()
        self.write("rc.cir", RC)
        self.describe()

    def describe(self, sd=SD, walk=WALK):
        self.write("twin.yaml", f"circuit: rc.cir\nstep: 10 ms\nsensors:\n  T2: {{ sd: {sd} }}\n"
                   f"  T3: {{ sd: {sd} }}\nsources:\n"
                   f"  q0: {{ model: walk, noise: {walk}, start: 10, sd: 3 }}\n")

    def record(self, seed, walk=WALK, first=STEP, change=None):
        rng = random.Random(seed)
        q, z = 10 + rng.gauss(0, 3), (-1 + rng.gauss(0, 1), 1 + rng.gauss(0, 1))
        rows = []
        for k in range(500):
            steady = (q * (R2 + R3), q * R3)
            x, y = z[0] - steady[0], z[1] - steady[1]
            z = tuple(s + f[0] * x + f[1] * y for s, f in zip(steady, FLOW))
            q += rng.gauss(0, math.sqrt(walk))
            rows.append([first + k * STEP, z[0] + rng.gauss(0, SD), z[1] + rng.gauss(0, SD), *z, q])
        rows = change(rows) if change else rows
        self.write("test.csv", "time,T2,T3,a,b,q\n" +
                   "".join(",".join("" if x is None else repr(x) for x in r) + "\n" for r in rows))

    def verdicts(self, *seeds, truth=(), walk=WALK, **more):
        """Per seed what is said of the whole, and of all sensors and truths."""
        out = []
        for seed in seeds:
            self.record(seed, walk, **more)
            told = self.cardan_json("twin", "run", "twin.yaml", "-m", "test.csv", *truth)
            of = {(c["name"], c["test"]): c["verdict"] for c in told["consistency"]}
            out.append((told["verdict"], of[("all sensors", "NIS")], of.get(("all truths", "NEES"))))
        return out

    def test_a_twin_that_is_right_is_called_consistent(self):
        for walk in (WALK, 0):  # without noise an error stays: one recording is worth little
            with self.subTest(walk):
                self.describe(walk=walk)
                got = self.verdicts(*range(25), truth=TRUTH, walk=walk)
                self.assertGreaterEqual(sum(g[1] == "consistent" for g in got), 23, got)
                self.assertGreaterEqual(sum(g[2] == "consistent" for g in got), 23, got)

    def test_a_start_that_is_found_does_not_look_cautious(self):
        got = self.verdicts(*range(15), first=7.0)
        self.assertGreaterEqual(sum(g[0] == "consistent" for g in got), 14, got)

    def test_sds_that_are_too_small_and_too_large(self):
        self.describe(sd=SD / 2)
        self.assertEqual({g[0] for g in self.verdicts(*range(8), truth=TRUTH)}, {"too confident"})
        self.assertEqual({g[1] for g in self.verdicts(*range(8))}, {"too confident"})
        self.describe(sd=2 * SD)
        self.assertEqual({g[0] for g in self.verdicts(*range(8))}, {"too cautious"})

    def test_a_source_that_moves_though_the_twin_does_not_think_so(self):
        self.describe(walk=0)
        got = self.verdicts(*range(8), truth=TRUTH)
        self.assertEqual({g for g in got}, {("too confident",) * 3})
        done = self.cardan("twin", "run", "twin.yaml", "-m", "test.csv")
        self.assertIn("the twin is TOO CONFIDENT", done.stdout)

    def test_a_truth_tells_what_innovations_cannot(self):
        """A sensor that reads 3 K too much, and a source that explains it: NIS is right."""
        self.describe(walk=1)
        shifted = [(v, n, t) for v, n, t in self.verdicts(
            *range(6), truth=TRUTH, walk=1,
            change=lambda rows: [[r[0], r[1] + 5, r[2] + 3, *r[3:]] for r in rows])]
        self.assertEqual({n for _, n, _ in shifted}, {"consistent"})
        self.assertEqual({t for _, _, t in shifted}, {"too confident"})
        self.assertEqual({v for v, _, _ in shifted}, {"too confident"})

    def test_outliers_are_refused_and_said(self):
        self.record(3, change=lambda rows: [
            [r[0], r[1] + (50 if k % 20 == 19 else 0), *r[2:]] for k, r in enumerate(rows)])
        done = self.cardan("twin", "run", "twin.yaml", "-m", "test.csv")
        self.assertRegex(done.stdout, r"T2 +NIS .* consistent, but 5 % refused")
        self.assertIn("more measurements were refused than chance explains", done.stdout)
        self.assertTrue(self.cardan_json("twin", "run", "twin.yaml", "-m", "test.csv")
                        ["too_many_refused"])

    def test_the_table(self):
        self.record(1)
        done = self.cardan("twin", "run", "twin.yaml", "-m", "test.csv", *TRUTH)
        self.assertRegex(done.stdout, r"consistency +mean +right +in 95 %")
        self.assertRegex(done.stdout, r"all sensors +NIS +[01.0-9]+ +0\.889 \.\. 1\.12 +9\d\.\d %")
        self.assertRegex(done.stdout, r"q0 +NEES ")
        told = self.cardan_json("twin", "run", "twin.yaml", "-m", "test.csv")
        self.assertEqual([(c["name"], c["test"]) for c in told["consistency"]],
                         [("T2", "NIS"), ("T3", "NIS"), ("all sensors", "NIS")])
        self.assertEqual(told["consistency"][0]["rows"], 500)

    def test_a_truth_with_holes_counts_where_it_is(self):
        self.record(1, change=lambda rows: [[*r[:5], r[5] if k % 10 == 0 else None]
                                            for k, r in enumerate(rows)])
        told = self.cardan_json("twin", "run", "twin.yaml", "-m", "test.csv", *TRUTH)
        self.assertEqual([c["rows"] for c in told["consistency"][3:]], [500, 500, 50, 500])

    def test_truths_that_are_none(self):
        self.record(1)
        for truth, says in (("nix=T2", "test.csv has no column 'nix'"),
                            ("a=nix", "'nix' is no output, source, value to find or node"),
                            ("a=", "'' is no output"), ("=T2", "no column ''")):
            with self.subTest(truth):
                self.cardan("twin", "run", "twin.yaml", "-m", "test.csv", "--truth", truth, code=2,
                            says=["--truth '" + truth + "'", says])


if __name__ == "__main__":
    unittest.main()
