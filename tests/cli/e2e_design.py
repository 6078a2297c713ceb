"""cardan coupling design and cardan reproduce: numbers, files, and what is refused."""

import json
import math
import os
import unittest

from e2e import EndToEnd

# Solutions of independent programs (NumPy and SciPy).
WIENER9 = [7.564977391125395, -5.719216113364641, -4.876395975503735, 0.3674640852008697,
           3.634849169244162, 2.8027840242116047, -0.5124650338798896, -2.5812333573725277,
           0.3192358103387624]


# The two-mass oscillator of Baumann 2020.
LOOP = """loop: 1
step: 1 ms
latency: 3
transfers:
  - { num: [1], den: [10, 0.01, 100] }
  - { num: [100, 0.2, 10.0001, 0.01], den: [20, 0.02, 1] }
elements: [zoh, zoh]
"""


def torque(n):
    """The synthetic torque of the benchmark, with its filtered gear shift."""
    t = 0.01 * n
    shift = (math.tanh((t - 3.2) / .04) - math.tanh((t - 3.6) / .04)) / 2
    return (100 * (1 - math.exp(-t / 0.7)) + 8 * math.sin(1.3 * t) + 6 * math.sin(3.1 * t + .5)
            + 12 * math.sin(6.7 * t + 1.1) + 20 * math.sin(9.7 * t + 2)
            + 1.6 * (0.35 + math.exp(-((t - 6) / 1.2) ** 2))
            * (4 * math.sin(34 * t + .3) + 2.5 * math.sin(45 * t + 1.7)
               + 1.5 * math.sin(53 * t + .9)) - 110 * shift)


class Recorded(EndToEnd):
    def recording(self, samples=1200, name="bench.csv", value=torque):
        rows = "".join(f"{0.01 * n!r},{value(n)!r}\n" for n in range(samples))
        return self.write(name, "time,torque [N.m]\n" + rows)


class Design(Recorded):
    def test_commands_stand_beside_the_designs(self):
        """A torque that follows steps of a pedal by a lag: no linear design sees them coming."""
        y, rows = 0.0, []
        for n in range(6000):
            pedal = 0.5 + 0.5 * math.sin(12.9898 * (n // 60)) ** 3
            rows.append(f"{0.01 * n!r},{100 * y!r},{pedal!r}\n")
            y += (pedal - y) * (1 - math.exp(-0.01 / 0.05))
        path = self.write("steps.csv", "time,torque,pedal\n" + "".join(rows))
        arguments = ["coupling", "design", path, "--signal", "torque", "--latency", "6,8", "--method", "wiener", "--json"]
        found = json.loads(self.cardan(*arguments, "--command", "pedal").stdout)
        for design, row in zip(found["designs"], found["with_commands"], strict=True):
            self.assertEqual(design["k"], row["k"])
            self.assertAlmostEqual(design["C_zoh"], row["C_zoh"], delta=0.01 * row["C_zoh"])
            self.assertLess(row["C"], 0.5 * min(design["C"], row["C_zoh"]))
        self.assertNotIn("with_commands", json.loads(self.cardan(*arguments).stdout))
        done = self.cardan("coupling", "design", "--latency", "6", "--band", "1..10", "--command", "pedal", code=2)
        self.assertIn("--command: what a command does is learned from a recording", done.stderr)
        done = self.cardan(*arguments, "--command", "gear", code=2)
        self.assertIn("gear", done.stderr)

    def designs(self, *arguments):
        done = self.cardan_json("coupling", "design", *arguments)
        return {(d["method"], d["k"]): d for d in done["designs"]}

    def test_the_weights_of_the_objective_and_its_front(self):
        of = ("--latency", "2", "--method", "optimal", "--band", "0.1..10", "--magnitude-band",
              "0.1..55", "--step", "10ms", "--taps", "4")
        one = self.designs(*of, "--alpha", "10", "--beta", "0.1", "--gamma", "10")["optimal", 2]
        self.assertAlmostEqual(one["J"], 10 * one["J_m"] + 0.1 * one["J_p"] + 10 * one["J_r"], 9)
        front = self.cardan_json("coupling", "design", *of, "--pareto", "--csv", "p.csv", "--plot", "p.svg")
        rows = front["pareto"]
        self.assertGreater(len(rows), 9)
        # All three trade: from the best of one to the best of another the other two get worse.
        for what, factor in (("J_m", 3), ("J_p", 1.2), ("norm", 3)):
            self.assertGreater(max(d[what] for d in rows), factor * min(d[what] for d in rows), what)
        quiet = min(rows, key=lambda d: d["norm"])
        self.assertGreater(quiet["delta"], 0)
        for d in rows:
            def weighed(x):
                return (front["alpha"] * x["J_m"] + d["beta"] * x["J_p"] + d["gamma"] * x["J_r"]
                        + d["delta"] * x["norm"] ** 2)

            # Of its own weights each design is the best, and none beats it in everything.
            self.assertLessEqual(weighed(d), 1.02 * min(map(weighed, rows)) + 1e-6, d)
            self.assertFalse([x for x in rows if x["J_m"] < d["J_m"] and x["J_p"] < d["J_p"]
                              and x["norm"] < d["norm"]], d)
        with open(self.path("p.csv"), encoding="utf-8") as file:
            self.assertEqual(len(file.read().splitlines()), 1 + len(rows))
        with open(self.path("p.svg"), encoding="utf-8") as file:
            self.assertIn("J_p", file.read())
        self.cardan("coupling", "design", *of, "--alpha", "-1", code=2, says="alpha")
        self.cardan("coupling", "design", *of, "--delta", "-1", code=2, says="delta")

    def test_a_weight_on_noise_makes_quieter_designs(self):
        of = ("--latency", "6", "--method", "optimal", "--band", "0.1..10", "--magnitude-band",
              "0.1..55", "--step", "10ms", "--taps", "6")
        before = math.inf
        for delta in (0, 1e-5, 1e-4, 1e-3, 1e3):
            d = self.designs(*of, "--delta", str(delta))["optimal", 6]
            norm = math.sqrt(sum(a * a for a in d["a"]))
            self.assertAlmostEqual(d["norm"], norm, 9)
            self.assertAlmostEqual(d["J"], d["J_m"] + 0.01 * d["J_p"] + 1000 * d["J_r"]
                                   + delta * norm ** 2, 9)
            self.assertLess(norm, before * (1 + 1e-6))
            before = norm
        # All that counts then is the least norm with sum 1: the mean of the samples.
        for a in d["a"]:
            self.assertAlmostEqual(a, 1 / 6, 3)

    def test_a_constant_about_the_mean(self):
        recording = self.recording()
        of = ("coupling", "design", recording, "--signal", "torque", "--latency", "6", "--method", "wiener")
        d = self.cardan_json(*of, "--constant", "-o", "b.yaml")["designs"][0]
        plain = self.cardan_json(*of)["designs"][0]
        y = [torque(n) for n in range(1200)]
        mean = sum(y) / len(y)
        self.assertEqual(plain["b"], 0)
        self.assertAlmostEqual(sum(plain["a"]), 1, 9)
        self.assertAlmostEqual(d["b"] / (mean * (1 - sum(d["a"]))), 1, 9)
        self.assertGreater(abs(d["b"]), 1e-3)

        def mean_square(one):
            estimates = [one["b"] + sum(a * y[n - 6 - i] for i, a in enumerate(one["a"]))
                         for n in range(100, 1200)]
            return sum((e - x) ** 2 for e, x in zip(estimates, y[100:])), estimates

        # The element says the same, sample by sample.
        self.cardan("coupling", "compensate", recording, "--signal", "torque", "--latency", "6", "--algorithms",
                    "b.yaml", "-o", "e.csv")
        with open(self.path("e.csv"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        head = lines[0].split(",")
        at = next(i for i, name in enumerate(head) if i > 1)
        _, estimates = mean_square(d)
        for n in (400, 700, 1100):
            self.assertAlmostEqual(float(lines[1 + n].split(",")[at]), estimates[n - 100], 6)
        self.cardan("coupling", "design", "--band", "0.1..10", "--step", "10ms", "--latency", "6", "--method",
                    "wiener", "--constant", code=2, says="expected a recording")

    def test_all_methods_for_the_published_bands(self):
        d = self.designs("--band", "0.1..10", "--magnitude-band", "0.1..55", "--step", "10ms",
                         "--latency", "6")
        self.assertEqual({m for m, _ in d},
                         {"moment", "savitzky-golay", "wiener", "optimal", "bounded"})
        best = d["optimal", 6]
        self.assertTrue(0.13049 <= best["J"] <= 0.13054, best["J"])
        for (method, _), one in d.items():
            self.assertAlmostEqual(sum(one["a"]), 1, places=8)
            self.assertGreaterEqual(one["J"], best["J"] - 1e-9, method)
        self.assertAlmostEqual(d["bounded", 6]["peak"]["gain"], 13.0742, delta=0.02)

    def test_the_objective_of_2020(self):
        d = self.designs("--band", "1..6", "--step", "1ms", "--latency", "3", "--taps", "4")
        self.assertLessEqual(d["optimal", 3]["J"], 7.3e-9)
        for got, want in zip(d["moment", 3]["a"], [23 / 3, -31 / 6, -37 / 6, 14 / 3]):
            self.assertAlmostEqual(got, want, places=8)

    def test_a_table_over_k_becomes_an_element(self):
        self.cardan("coupling", "design", self.recording(), "--latency", "4..9", "--method", "wiener",
                    "--taps", "25", "-o", "torque.yaml")
        with open(self.path("torque.yaml"), encoding="utf-8") as f:
            element = json.load(f)
        self.assertEqual([w["k"] for w in element["weights"]], list(range(4, 10)))
        self.assertEqual(element["step"], 0.01)
        self.assertEqual(element["name"], "torque")
        self.assertTrue(all(abs(sum(w["a"]) - 1) < 1e-9 for w in element["weights"]))

    def test_a_recording_says_where_its_signal_lives(self):
        done = self.cardan_json("coupling", "design", self.recording(), "--latency", "60 ms", "--method", "all",
                                "--taps", "25")
        # most of the power lies below 10 rad/s, the driveline swings at 34 to 53
        self.assertTrue(9 < done["phase_band"][1] < 13, done["phase_band"])
        self.assertTrue(48 < done["magnitude_band"][1] < 60, done["magnitude_band"])
        wiener = next(d for d in done["designs"] if d["method"] == "wiener")
        self.assertEqual(wiener["k"], 6)
        self.assertLess(wiener["C"], 0.65 * wiener["C_zoh"])
        self.assertAlmostEqual(wiener["C_zoh"], 4.483569, delta=1e-6)

    def test_a_loop_that_swings_near_the_nyquist_frequency_is_not_called_stable(self):
        # Nyquist's curve with G_p has no encirclement; the exact map over a macro step grows.
        self.write("lag.yaml", "loop: 1\nstep: 10 ms\nlatency: 6\ntransfers: [{num: [2], den: [1, 0.3]}]\n"
                               "elements: [zoh]\n")
        for method, stable in (("optimal", False), ("bounded", True)):
            got = self.cardan_json("coupling", "design", "--band", "0.1..10", "--step", "10ms", "--latency", "6",
                                   "--method", method, "--loop", "lag.yaml", "-o", "e.yaml")
            self.assertEqual(got["designs"][0]["margins"]["stable"], stable)
            loop = self.cardan_json("coupling", "analyze", "lag.yaml", "--element", "e.yaml")
            self.assertEqual((loop["stable"], loop["unstable_poles"]), (stable, 0))

    def test_margins_of_the_loop_that_it_goes_into(self):
        self.write("loop.yaml", LOOP)
        d = self.designs("--band", "1..6", "--step", "1ms", "--latency", "3", "--taps", "4",
                         "--loop", "loop.yaml")
        self.assertTrue(d["moment", 3]["margins"]["stable"])
        # an independent computation of the moment design's margin: as without any latency
        self.assertAlmostEqual(d["moment", 3]["margins"]["phase_deg"], 0.066994, delta=1e-4)
        self.assertFalse(d["wiener", 3]["margins"]["stable"])
        self.cardan("coupling", "design", "--band", "1..6", "--step", "1ms", "--latency", "3", "--loop",
                    "nothing.yaml", code=2, says="nothing.yaml")

    def test_wrong_words_are_named(self):
        good = ("--band", "1..6", "--step", "1ms", "--latency", "3")
        for arguments, says in (
                ((), "expected --latency"),
                (("--latency", "3"), "expected --band and --step, or a recording"),
                (good[:-1] + ("3..1",), "--latency: '3..1', expected"),
                (good[:-1] + ("many",), "--latency: 'many', expected"),
                (good[:-1] + ("1 kg",), "--latency: '1 kg', expected"),
                (good[:-1] + ("400",), "--latency: '400', expected"),
                (("--band", "6..1") + good[2:], "--band: '6..1', expected"),
                (("--band", "1..6 kg") + good[2:], "--band: '1..6 kg', expected"),
                (("--band", "1..9000") + good[2:], "9000"),
                (good + ("--method", "magic"), "magic"),
                (good + ("-o", "x.yaml"), "expected --method"),
                (good + ("--taps", "2", "--method", "moment"), "taps = 2"),
                (good + ("--taps", "0", "--method", "wiener"), "taps = 0"),
                (good + ("--taps", "auto"), "--taps = 'auto', expected a whole number from 0"),
                (good + ("--degree", "-1"), "--degree = '-1', expected a whole number from 0"),
        ):
            self.cardan("coupling", "design", *arguments, code=2, says=says)

    def test_a_gap_in_the_recording_is_named(self):
        with open(self.recording(), encoding="utf-8") as f:
            rows = f.read().splitlines()
        self.write("gap.csv", "\n".join(rows[:300] + rows[340:]) + "\n")
        self.cardan("coupling", "design", "gap.csv", "--latency", "6", code=2,
                    says=["'torque' has a gap from 2.99 s to 3.38 s", "--from and --to"])
        self.cardan("coupling", "design", "gap.csv", "--latency", "6", "--from", "3.4", "--method", "wiener")
        self.cardan("coupling", "design", "gap.csv", "--latency", "6", "--signal", "torqe", code=2,
                    says="did you mean 'torque'?")

    def test_a_sample_is_used_when_the_next_step_begins(self):
        arguments = ("--band", "0.1..10", "--step", "10ms", "--method", "moment", "--latency")
        for text, k in (("57.5 ms", 6), ("60 ms", 6), ("0.06s", 6), ("0 s", 0), ("1.2 s", 120)):
            self.assertEqual(list(self.designs(*arguments, text)), [("moment", k)])
        self.cardan("coupling", "design", *arguments, "1.201 s", code=2, says="--latency: '1.201 s', expected")

    def test_bands_have_units(self):
        arguments = ("--step", "10ms", "--latency", "3", "--method", "moment", "--band")
        for text in ("0.1..2 Hz", "0.0001..0.002kHz", f"{0.2 * math.pi!r}..{4 * math.pi!r} rad/s"):
            band = self.cardan_json("coupling", "design", *arguments, text)["phase_band"]
            self.assertAlmostEqual(band[0], 0.2 * math.pi, places=12)
            self.assertAlmostEqual(band[1], 4 * math.pi, places=12)

    def test_a_table_for_long_latencies_is_used_at_them(self):
        self.cardan("coupling", "design", self.recording(), "--latency", "12,20,30", "--method", "wiener",
                    "-o", "long.json")
        with open(self.path("long.json"), encoding="utf-8") as f:
            element = json.load(f)
        self.assertEqual(element["latency-max"], 33)
        done = self.cardan("coupling", "compensate", "bench.csv", "--latency", "30", "--algorithms",
                           "long.json,{algorithm: linear, reconstruct: hold, react: rebase, "
                           "latency-max: 33, name: alone, weights: "
                           f"{json.dumps(element['weights'][2])}}}", "--json")
        self.assertNotIn("latency-max", done.stderr)
        a, b = json.loads(done.stdout)
        self.assertEqual(a["C"], b["C"])
        self.cardan("coupling", "design", "bench.csv", "--latency", "120", "--method", "moment", "-o", "m.json")
        self.cardan("coupling", "compensate", "bench.csv", "--latency", "120", "--algorithms", "m.json")

    def test_recordings_are_not_overwritten_nor_devices_replaced(self):
        r = self.recording()
        with open(r, encoding="utf-8") as f:
            before = f.read()
        arguments = ("--latency", "6", "--method", "moment", "-o")
        self.cardan("coupling", "design", r, *arguments, r, code=2, says="would overwrite the recording")
        os.symlink("target.json", self.path("link.json"))
        for _ in range(2):
            self.cardan("coupling", "design", r, *arguments, "link.json")
            self.assertTrue(os.path.islink(self.path("link.json")))
            self.cardan("coupling", "compensate", r, "--latency", "6", "--algorithms", "target.json")
        os.mkfifo(self.path("pipe"))
        reader = os.open(self.path("pipe"), os.O_RDONLY | os.O_NONBLOCK)
        self.cardan("coupling", "design", r, *arguments, "pipe")
        self.assertEqual(json.loads(os.read(reader, 65536))["name"], "torque")
        os.close(reader)
        self.cardan("coupling", "design", r, *arguments, "/dev/full", code=1,
                    says="/dev/full: cannot be written: No space left")
        with open(r, encoding="utf-8") as f:
            self.assertEqual(f.read(), before)

    def test_recordings_that_say_nothing_are_named(self):
        for name, value, says in (
                ("const.csv", lambda n: -0.03, "const.csv: 'torque' is constant"),
                ("huge.csv", lambda n: 1e200 + n * 1e190, "huge.csv: 'torque' has no number"),
                ("spike.csv", lambda n: 1e200 if n == 7 else n % 5, "gap from 0.07 s to 0.07 s (1 "
                 "sample missing")):
            r = self.recording(100, name, value)
            self.cardan("coupling", "design", r, "--latency", "3", code=2, says=says)
            self.cardan("coupling", "link", "design", r, "--latency", "3", code=2, says=says)
        r = self.recording(7, "short.csv")
        self.cardan("coupling", "design", r, "--latency", "3", code=2, says="short.csv: the recording has 7")
        self.cardan("coupling", "link", "design", r, "--latency", "3", code=2, says="7 samples, expected at")

    def test_nothing_is_written_where_nothing_can_be(self):
        self.cardan("coupling", "design", "--band", "1..6", "--step", "1ms", "--latency", "3", "--method",
                    "wiener", "-o", "no/such/folder.yaml", code=1, says="no/such/folder.yaml")
        self.assertEqual(os.listdir(self.folder), ["unpack"])


class Link(Recorded):
    def candidates(self, *arguments):
        done = self.cardan_json("coupling", "link", "design", self.recording(), *arguments)
        return done, {c["algorithm"]: c for c in done["candidates"]}

    def test_a_given_link(self):
        done, c = self.candidates("--latency", "57.5ms", "--jitter", "0.5ms", "-o", "t.json",
                                  "--fmu", "t.fmu")
        self.assertEqual(done["link"]["k"], 6)
        self.assertEqual([x["algorithm"] for x in done["candidates"] if x["chosen"]],
                         [min(c.values(), key=lambda x: x["C"])["algorithm"]])
        self.assertLess(c["wiener, long"]["C"], 0.6 * c["zoh"]["C"])
        with open(self.path("t.json"), encoding="utf-8") as f:
            self.assertEqual(json.load(f)["step"], 0.01)
        self.assertIn("coupling element torque", self.cardan("info", "t.fmu").stdout)

    def test_a_measured_link(self):
        rows = "".join(f"{0.01 * i!r},{55 + (7 * i) % 11}\n" for i in range(500) if i % 50 != 7)
        self.write("ping.csv", "time,latency [ms]\n" + rows)
        done, _ = self.candidates("--link", "ping.csv")
        link = done["link"]
        self.assertEqual(link["lost"], 10)
        self.assertAlmostEqual(link["mean"], 0.060, delta=0.0005)
        self.assertEqual((link["low"], link["high"]), (0.055, 0.065))
        self.assertEqual((link["k"], link["k_max"]), (6, 9))

    def test_in_a_loop_only_what_keeps_it_stable_is_chosen(self):
        self.write("loop.yaml", LOOP)
        rows = "".join(f"{0.001 * n!r},{math.sin(0.0045 * n)!r}\n" for n in range(4000))
        self.write("force.csv", "time,force\n" + rows)
        done = self.cardan_json("coupling", "link", "design", "force.csv", "--latency", "3", "--loop",
                                "loop.yaml", "--taps", "4")
        c = {x["algorithm"]: x for x in done["candidates"]}
        self.assertFalse(c["zoh"]["margins"]["stable"])
        self.assertTrue(c["foh"]["margins"]["stable"])
        self.assertIsNone(c["auto"]["margins"])
        chosen = [x for x in done["candidates"] if x["chosen"]]
        self.assertTrue(len(chosen) == 1 and chosen[0]["margins"]["stable"], chosen)

    def test_links_that_make_no_sense_are_named(self):
        r = self.recording()
        self.write("kg.csv", "time,latency [kg]\n0,1\n0.01,1\n")
        self.write("minus.csv", "time,latency [ms]\n0,1\n0.01,-1\n0.02,1\n")
        for arguments, says in (
                (("desing", r), "expected cardan coupling link design"),
                (("design",), "expected a recording"),
                (("design", r), "expected either --latency, or --link"),
                (("design", r, "--latency", "1 kg"), "'1 kg'"),
                (("design", r, "--latency", "6", "--jitter", "1 s"), "less jitter"),
                (("design", r, "--latency", "6", "--loss", "1"), "part < 1"),
                (("design", r, "--latency", "2 s"), "too much to be compensated"),
                (("design", r, "--link", "kg.csv"), "is in 'kg'"),
                (("design", r, "--link", "minus.csv"), "expected >= 0"),
        ):
            self.cardan("coupling", "link", *arguments, code=2, says=says)
        for written in ("-o", "--fmu"):
            for read in (r, "minus.csv"):
                self.cardan("coupling", "link", "design", r, "--link", "minus.csv", written, read, code=2,
                            says="would overwrite the recording")

    def test_a_link_without_latency(self):
        self.write("none.csv", "time,latency [ms]\n0,0\n0.01,0\n0.02,0\n")
        done, c = self.candidates("--link", "none.csv", "--taps", "3")
        self.assertEqual((done["link"]["k"], c["zoh"]["rms"]), (0, 0))

    def test_the_longest_link_that_can_be_compensated(self):
        r = self.recording(600)
        self.cardan("coupling", "link", "design", r, "--latency", "115", "--loss", "0.1", "--taps", "3", "-o",
                    "e.json")
        self.cardan("coupling", "compensate", r, "--latency", "117", "--algorithms", "e.json")
        self.cardan("coupling", "link", "design", r, "--latency", "116", "--loss", "0.1", code=2,
                    says="more than 115 macro steps")


class Reproduce(EndToEnd):
    def test_rows_as_json(self):
        done = self.cardan_json("reproduce", "baumann2024")
        rows = {r["id"]: r for r in done["rows"]}
        self.assertTrue(all(r["ok"] for r in rows.values()))
        self.assertEqual(rows["table1.eros.k6.phase"]["published"], 2.26)
        self.assertAlmostEqual(rows["table1.eros.k6.phase"]["ours"], 2.241303535, places=8)
        self.assertLessEqual({"id", "published", "ours", "reference", "tolerance", "ok"},
                             set(rows["design.j"]))
        # the second verdict: a row may be right and its print not
        self.assertEqual(rows["table1.eros.k6.phase"]["print"], "agrees")
        self.assertEqual(rows["fig9.eros.gain"]["print"], "refuted")
        self.assertEqual(rows["table2.eros.switch.s1"]["print"], "not comparable")
        self.assertIn("not published", rows["table2.eros.switch.s1"]["why"])
        self.assertIsNone(rows["design.j"]["print"])
        self.assertEqual(done["counts"], {"judged": 77, "ok": 77, "not_judged": 0, "printed": 53,
                                          "agree": 33, "refuted": 2, "not_comparable": 18})
        for r in rows.values():
            far = r["published"] is not None and \
                abs(r["ours"] - r["published"]) > 0.05 * abs(r["published"])
            self.assertFalse(far and r["print"] == "agrees", r)
            self.assertEqual(bool(r["why"]), r["print"] in ("refuted", "not comparable"), r)

    def test_the_last_line_counts_both_verdicts(self):
        done = self.cardan("reproduce", "baumann2024", "--only", "fig9.*")
        self.assertIn("8 of 8 rows within their tolerance; of 6 printed values 2 agree, 2 are "
                      "refuted, 2 cannot be compared\n", done.stdout)
        done = self.cardan("reproduce", "baumann2024", "--only", "table1.zoh.k0.phase")
        self.assertIn("1 of 1 rows within their tolerance; of 1 printed value 1 agrees, 0 are "
                      "refuted, 0 cannot be compared\n", done.stdout)

    def test_papers_about_quality(self):
        for paper, row in (("glumac2023", "variable.*"), ("rodriguez2021-ch5", "target.*")):
            rows = self.cardan_json("reproduce", paper, "--only", row)["rows"]
            self.assertTrue(rows and all(r["ok"] for r in rows), paper)

    def test_circuits_without_times(self):
        rows = self.cardan_json("reproduce", "rodriguez2021-ch3", "--quick", "--only", "table3.*",
                                "--figures", "circuits")["rows"]
        self.assertTrue(all(r["ok"] and r["rule"] != "shown" for r in rows))
        rows = {r["id"]: r for r in rows}
        self.assertEqual(rows["table3.7.bdf2.v"]["published"], 0.84)
        self.assertAlmostEqual(rows["table3.7.bdf2.v"]["ours"], 0.842275, places=5)
        files = os.listdir(self.path("circuits"))
        self.assertLessEqual({"fig3.12a.csv", "fig3.12b.svg", "fig3.14.csv", "fig3.14.svg"},
                             set(files))
        names, columns = self.table("circuits/fig3.14.csv")
        self.assertEqual((names[0], len(columns[0])), ("t [s]", 21))

    def test_figures_are_written(self):
        self.cardan("reproduce", "baumann2020", "--figures", "pictures")
        files = os.listdir(self.path("pictures"))
        self.assertIn("fig5-7.csv", files)
        self.assertIn("fig5-7.svg", files)
        names, columns = self.table("pictures/fig5-7.csv")
        self.assertEqual(names[0], "omega [rad/s]")
        self.assertEqual(columns[0], sorted(columns[0]))

    def test_what_is_not_there_is_named(self):
        self.cardan("reproduce", "einstein1905", code=2, says="no paper 'einstein1905'")
        self.cardan("reproduce", "baumann2024", "--only", "table9.*", code=2, says="'table9.*'")


if __name__ == "__main__":
    unittest.main()
