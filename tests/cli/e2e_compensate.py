"""cardan coupling compensate: what each algorithm would have done to a recorded signal."""

import json
import math
import os
import unittest

from e2e import EndToEnd


def noise():
    """Nearly Gaussian, sigma 1, the same on every machine."""
    x = 12345
    while True:
        total = -6
        for _ in range(12):
            x = (1664525 * x + 1013904223) % 2 ** 32
            total += x / 2 ** 32
        yield total


def torque(n, hard=False):
    """The synthetic torque of the benchmark, with its gear shift filtered or hard."""
    t = 0.01 * n
    shift = (320 <= n < 360) if hard else (math.tanh((t - 3.2) / .04)
                                           - math.tanh((t - 3.6) / .04)) / 2
    return (100 * (1 - math.exp(-t / 0.7)) + 8 * math.sin(1.3 * t) + 6 * math.sin(3.1 * t + .5)
            + 12 * math.sin(6.7 * t + 1.1) + 20 * math.sin(9.7 * t + 2)
            + 1.6 * (0.35 + math.exp(-((t - 6) / 1.2) ** 2))
            * (4 * math.sin(34 * t + .3) + 2.5 * math.sin(45 * t + 1.7)
               + 1.5 * math.sin(53 * t + .9)) - 110 * shift)


class Compensate(EndToEnd):
    def recording(self, name="bench.csv", rows=range(1200), holes=()):
        random = noise()
        lines = ["time,torque [N.m],hard [N.m],gear"]
        for n in rows:
            e = 0.3 * next(random)
            clean = "" if n in holes else repr(torque(n))
            lines.append(f"{0.01 * n!r},{clean},{torque(n, True) + e!r},first")
        return self.write(name, "\n".join(lines) + "\n")

    def results(self, *arguments):
        return {r["algorithm"]: r for r in self.cardan_json("coupling", "compensate", *arguments)}

    def test_fixed_algorithms_have_the_published_errors(self):
        r = self.results(self.recording(), "--signal", "torque", "--latency", "6",
                         "--algorithms", "all")
        for name, C in (("zoh", 4.483569), ("foh", 3.784368), ("eros", 6.914798),
                        ("foh+switch", 3.784368), ("eros+switch", 6.914798)):
            self.assertAlmostEqual(r[name]["C"], C, delta=1e-6, msg=name)
        self.assertEqual(r["zoh"]["change"], 0)
        self.assertEqual(r["zoh"]["overshoot"], 0)
        self.assertAlmostEqual(r["eros"]["change"], 100 * (6.914798 / 4.483569 - 1), delta=1e-4)
        for one in r.values():
            self.assertAlmostEqual(math.hypot(one["M"], one["P"]), one["C"], delta=1e-9)
            self.assertEqual(one["samples"], 1200)
            self.assertGreaterEqual(one["worst"], one["rms"])
        self.assertLess(r["auto"]["change"], -49)
        self.assertGreaterEqual(len(r), 13)

    def test_the_best_stands_first(self):
        rows = self.cardan_json("coupling", "compensate", self.recording(), "--signal", "hard", "--latency",
                                "6")
        errors = [r["C"] for r in rows]
        self.assertEqual(errors, sorted(errors))
        r = {one["algorithm"]: one for one in rows}
        for name, C in (("zoh", 5.214881), ("foh", 10.953338), ("eros", 17.525848),
                        ("foh+switch", 5.096866), ("eros+switch", 7.385768)):
            self.assertAlmostEqual(r[name]["C"], C, delta=1e-6, msg=name)
        self.assertEqual(r["eros+switch"]["jumps"], 2)
        self.assertGreater(r["eros"]["overshoot"], 7 * r["eros+switch"]["overshoot"])
        done = self.cardan("coupling", "compensate", self.recording(), "--signal", "hard", "--latency", "6")
        lines = done.stdout.splitlines()
        self.assertIn("hard [N.m], 1200 samples, one each 10 ms, latency 60 ms (6 steps)",
                      lines[0])
        self.assertEqual(lines[2].split()[:3], ["algorithm", "C", "[%]"])
        self.assertEqual([line.split()[0] for line in lines[3:]],
                         [one["algorithm"] for one in rows])

    def test_words_files_and_inline_elements(self):
        self.write("mine.yaml", "name: mine\nalgorithm: wiener\ntaps: 25\nreact: none\n")
        r = self.results(self.recording(), "--signal", "torque", "--latency", "6", "--algorithms",
                         "zoh, {algorithm: wiener, taps: 25, react: none},mine.yaml",
                         "--algorithms", "eros,eros")
        self.assertEqual(set(r), {"zoh", "wiener 25", "mine", "eros", "eros (2)"})
        self.assertEqual(r["mine"]["C"], r["wiener 25"]["C"])
        self.assertAlmostEqual(r["mine"]["change"], -45, delta=1)

    def test_a_network_that_jitters_and_loses(self):
        file = self.recording()
        channel = ("--signal", "torque", "--latency", "57.5 ms", "--algorithms", "zoh,wiener,auto")
        still = self.results(file, *channel)
        self.assertAlmostEqual(still["zoh"]["C"], 4.483569, delta=1e-6)
        self.assertEqual((still["zoh"]["latency_mean"], still["zoh"]["latency_max"]), (6, 6))
        bad = channel + ("--jitter", "20 ms", "--loss", "5 %")
        r = self.results(file, *bad)
        self.assertTrue(30 < r["zoh"]["lost"] < 90)
        self.assertGreater(r["zoh"]["latency_max"], 7)
        self.assertLess(r["auto"]["change"], -45)
        self.assertEqual(r, self.results(file, *bad, "--seed", "1"))
        self.assertNotEqual(r, self.results(file, *bad, "--seed", "2"))

    def test_a_longer_latency_than_usual(self):
        r = self.results(self.recording(), "--signal", "torque", "--latency", "40",
                         "--algorithms", "zoh,foh")
        self.assertEqual(r["foh"]["latency_max"], 40)

    def test_another_step_and_a_part_of_the_recording(self):
        r = self.results(self.recording(), "--signal", "torque", "--latency", "3", "--step",
                         "20 ms", "--from", "1", "--to", "5 s", "--algorithms", "zoh")
        self.assertEqual(r["zoh"]["samples"], 201)

    def test_spaces_between_algorithms_do_not_count(self):
        r = self.results(self.recording(), "--signal", "torque", "--latency", "3", "--algorithms",
                         " zoh , eros\t")
        self.assertEqual(set(r), {"zoh", "eros"})

    def test_rows_that_jitter_need_a_step(self):
        rows = "".join(f"{0.01 * n + (0.0005 if n == 20 else 0)!r},{n}\n" for n in range(50))
        self.write("jitter.csv", "time,y\n" + rows)
        self.cardan("coupling", "compensate", "jitter.csv", "--latency", "1", code=2,
                    says="the rows of 'y' are not equally far apart (0.01 s mostly)")
        self.cardan("coupling", "compensate", "jitter.csv", "--latency", "1", "--step", "10 ms",
                    "--algorithms", "zoh")

    def test_between_its_rows_a_recording_is_a_line(self):
        rows = "".join(f"{0.01 * n!r},{5 - 3 * n}\n" for n in range(50))
        self.write("ramp.csv", "time,y\n" + rows)
        self.cardan("coupling", "compensate", "ramp.csv", "--latency", "1", "--step", "4ms", "--from", "0.101",
                    "--algorithms", "foh", "-o", "fine.csv")
        time, y = self.column("fine.csv", "time"), self.column("fine.csv", "y")
        self.assertEqual(len(y), 98)
        for t, one in zip(time, y):
            self.assertAlmostEqual(one, 5 - 300 * t, places=9)

    def test_estimates_are_written(self):
        file = self.recording()
        self.cardan("coupling", "compensate", file, "--signal", "torque", "--latency", "6", "--algorithms",
                    "zoh,foh", "-o", "out.csv", "--plot", "out.svg")
        names, columns = self.table("out.csv")
        self.assertEqual(sorted(names), ["time", "torque", "torque.foh", "torque.zoh"])
        y, zoh = self.column("out.csv", "torque"), self.column("out.csv", "torque.zoh")
        foh = self.column("out.csv", "torque.foh")
        self.assertEqual(len(y), 1200)
        self.assertEqual(zoh[:6], y[:1] * 6)
        self.assertEqual(zoh[6:], y[:-6])
        self.assertAlmostEqual(foh[500], 7 * y[494] - 6 * y[493], delta=1e-9)
        with open(self.path("out.svg"), encoding="utf-8") as f:
            picture = f.read()
        for text in ("torque", "foh", "zoh", "around the largest error of foh"):
            self.assertIn(text, picture)
        for name in ("out.mf4", "out.mat"):
            self.cardan("coupling", "compensate", file, "--signal", "torque", "--latency", "6",
                        "--algorithms", "zoh", "-o", name)
            r = self.results(self.path(name), "--signal", "torque", "--latency", "6",
                             "--algorithms", "zoh")
            self.assertAlmostEqual(r["zoh"]["C"], 4.483569, delta=1e-6)

    def test_gaps_are_told_and_not_filled(self):
        file = self.recording("holes.csv", holes=set(range(500, 520)) | {700})
        done = self.cardan("coupling", "compensate", file, "--signal", "torque", "--latency", "6",
                           "--algorithms", "zoh,foh", "--json",
                           says="'torque' has 2 gaps (5 s to 5.19 s, 7 s to 7 s): 21 samples "
                                "count as never sent")
        r = {one["algorithm"]: one for one in json.loads(done.stdout)}
        self.assertEqual(r["zoh"]["samples"], 1179)
        self.assertEqual(r["zoh"]["latency_max"], 26)
        rows = [n for n in range(1200) if not 500 <= n < 520]
        cut = self.recording("cut.csv", rows=rows)
        done = self.cardan("coupling", "compensate", cut, "--signal", "torque", "--latency", "6",
                           "--algorithms", "zoh", "--json", says="has 1 gap (5 s to 5.19 s)")
        self.assertEqual(json.loads(done.stdout)[0]["samples"], 1180)

    def test_what_is_wrong_is_said(self):
        file = self.recording()
        good = ("--signal", "torque", "--latency", "6")
        self.write("bad.yaml", "algorithm: wiener\nbands: [[0, 10, 1], [5, 6, 1]]\n")
        self.write("odd.csv", "time,y\n0,1\n1,2\n1.3,3\n4.1,4\n9,1\n")
        for arguments, says in (
                ((file, "--latency", "6"), "has 3 signals, expected --signal"),
                ((file, "--signal", "torqe", "--latency", "6"), "did you mean 'torque'?"),
                ((file, "--signal", "gear", "--latency", "6"), "is text"),
                ((file, "--signal", "torque"), "expected --latency"),
                ((file, "--signal", "torque", "--latency", "1.5"), "--latency = '1.5', expected"),
                ((file, "--signal", "torque", "--latency", "-1"), "--latency"),
                ((file, "--signal", "torque", "--latency", "6 m"), "--latency = '6 m', expected"),
                ((file, "--signal", "torque", "--latency", "121"), "at most 120"),
                ((file, *good, "--jitter", "1 s"), "at most"),
                ((file, *good, "--jitter", "70 ms"), "--jitter = 0.07 s is more than"),
                ((file, *good, "--loss", "5"), "--loss = '5', expected a part"),
                ((file, *good, "--loss", "5 m"), "--loss = '5 m', expected a part"),
                ((file, *good, "--duplicate", "nan"), "--duplicate = 'nan', expected a part"),
                ((file, *good, "--burst", "0"), "--burst = 0, expected at least 1"),
                ((file, *good, "--seed", "-5"), "--seed = '-5', expected a whole number"),
                ((file, *good, "--step", "1e-8"), "expected at most 1e+08 of them"),
                ((file, *good, "--algorithms", "/"), "/: a folder, expected the description"),
                ((file, *good, "--algorithms", "erso"), "did you mean 'eros'?"),
                ((file, *good, "--algorithms", "eros,,foh"), "--algorithms = 'eros,,foh'"),
                ((file, *good, "--algorithms", "linear"), "needs the key 'weights'"),
                ((file, *good, "--algorithms", "{algorithm: eros"), "not valid YAML"),
                ((file, *good, "--algorithms", "{algorithm: eros, taps: 3}"), "has no use for"),
                ((file, *good, "--algorithms", "missing.yaml"), "missing.yaml: no such file"),
                ((file, *good, "--algorithms", "{algorithm: wiener, bands: [[0, 400, 1]]}"),
                 "cardan: wiener: bands: band 1 reaches up to 400 rad/s"),
                ((file, *good, "--algorithms", "bad.yaml"), "bad.yaml:2: bands: band 2"),
                ((file, *good, "--from", "5", "--to", "4"), "expected times within"),
                ((file, *good, "--plot", "out.bmp"), "should end in .svg"),
                ((file, *good, "-o", "out.xyz"), "out.xyz"),
                ((file, *good, "-o", file), "would overwrite the recording"),
                (("odd.csv", "--latency", "1"), "expected --step"),
                (("none.csv", "--latency", "1"), "none.csv"),
        ):
            with self.subTest(arguments=arguments):
                self.cardan("coupling", "compensate", *arguments, code=2, says=says)

    def test_a_constant_or_zero_signal_is_no_crash(self):
        for name, value in (("zero.csv", "0"), ("one.csv", "1")):
            self.write(name, "time,y\n" + "".join(f"{0.1 * n!r},{value}\n" for n in range(50)))
            r = self.results(name, "--latency", "3")
            self.assertEqual(r["zoh"]["rms"], 0)
            self.assertLess(r["auto"]["worst"], 1e-12)
            self.assertEqual(r["zoh"]["C"], None if value == "0" else r["foh"]["C"])
        done = self.cardan("coupling", "compensate", "zero.csv", "--latency", "3")
        self.assertNotIn("nan", done.stdout)

    def test_an_element_for_another_step_is_warned_of(self):
        self.write("mine.yaml", "algorithm: eros\nstep: 20 ms\nlatency-max: 2\n")
        done = self.cardan("coupling", "compensate", self.recording(), "--signal", "torque", "--latency", "6",
                           "--algorithms", "mine.yaml",
                           says=("is made for a macro step of 0.02 s", "latency-max"))
        self.assertIn("eros", done.stdout)
        self.assertTrue(os.path.exists(self.path("mine.yaml")))

    def test_odd_commands_are_told(self):
        """Constant, a copy, no numbers, from behind the signal; and the signal itself."""
        rows = []
        for n in range(1500):
            pedal = (n // 70 * 7 % 11) / 11
            late = (max(n - 12, 0) // 70 * 7 % 11) / 11
            odd = "nan" if n % 5 == 0 else repr(pedal)
            rows.append(f"{n / 100!r},{50 * late + 3 * math.sin(0.05 * n)!r},{pedal!r},{pedal!r},3,{odd},{45 * late!r}\n")
        self.write("odd.csv", "time,torque,pedal,copy,const,nan,model\n" + "".join(rows))

        def told(*names):
            arguments = [word for name in names for word in ("--command", name)]
            return self.cardan("coupling", "compensate", "odd.csv", "--signal", "torque", "--latency", "6",
                               "--algorithms", "zoh,auto,commands", *arguments).stdout
        self.assertRegex(told("const"), r"const +0\.0 % +0 +constant: says nothing")
        self.assertRegex(told("pedal", "copy"), r"copy .*moves in step with pedal")
        self.assertIn("300 values of commands no number: the last good one stood", told("nan"))
        self.assertNotIn("no number", told("pedal"))
        self.assertRegex(self.cardan("coupling", "compensate", "odd.csv", "--signal", "torque", "--latency", "6", "--algorithms",
                                     "zoh,commands", "--command", "pedal", "--command-delay", "5s").stdout,
                         r"pedal +0\.0 % +0 +never told in time")
        smith = ("coupling", "compensate", "odd.csv", "--signal", "torque", "--latency", "6", "--algorithms")
        self.cardan(*smith, "zoh,smith", "--command", "const", "--command", "pedal", code=2,
                    says="smith: --command 2 times, expected the output of the model alone, or an element that names it, "
                         "such as '{algorithm: smith, commands: [pedal]}'")
        for element in "smith", "{algorithm: smith, commands: [model]}":
            others = () if element == "smith" else ("--command", "const")
            self.assertRegex(self.cardan(*smith, element, "--command", "model", *others).stdout,
                             r"account for [89][\d.]* %.*\n\n.*\nmodel +[89]")
        self.cardan("coupling", "compensate", "odd.csv", "--signal", "torque", "--latency", "6", "--command", "torque",
                    code=2, says="--command torque is the signal itself, expected something that was sent")


if __name__ == "__main__":
    unittest.main()
