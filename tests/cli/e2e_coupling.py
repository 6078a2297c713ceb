"""Couplings in a system: what is recorded and reported, in every format, and what is refused."""

import json
import math
import os
import unittest

from e2e import EndToEnd, fmu, near

SYSTEM = """cardan: 1
units:
  source:
    signals:
      force: {{ shape: sine, frequency: 0.5, amplitude: 20, offset: 100, unit: N }}
  other: {{ fmu: {fmu} }}
connections:
  - from: source.force
    to: other.f
    coupling:
      algorithm: {algorithm}
      channel: {{ {channel} }}
      shadow: [zoh, {{ algorithm: wiener, taps: 9, name: band }}]
{more}
run: {{ step: 10 ms, stop: 5 s }}
"""

# A low-pass of 80 ms at rest answers to steps, its answer comes 60 ms late.
LOW_PASS = """low-pass
.input u unit=V source=V1
V1 in 0 0
R1 in out 80k
C1 out 0 1u ic=0
.tran 1m 1 uic
.output y=v(out)
"""
ANSWER = """cardan: 1
units:
  source: {{ signals: {{ u: {{ shape: prbs, duration: 0.5 s, amplitude: 20, start: 0.3 s, unit: V }} }} }}
  far: {{ circuit: low_pass.cir }}
  near: {{ circuit: low_pass.cir }}
connections:
  - source.u -> far.u
  - from: far.y
    to: near.u
    coupling: {{ algorithm: commands, channel: {{ delay: 60 ms }}{more} }}
run: {{ step: 10 ms, stop: {stop} s }}
"""

LOSSY = "delay: 57.5 ms, jitter: 20 ms, loss: 0.05, burst: 2, duplicate: 0.02, seed: 5"
SIGNALS = ["other.f.coupling.error", "other.f.coupling.k", "other.f.coupling.jump",
           "other.f.coupling.active", "other.f.coupling.zoh.error", "other.f.coupling.band.error"]


class Coupling(EndToEnd):
    def system(self, algorithm="foh", channel="delay: 60 ms", more=""):
        return self.write("s.yaml", SYSTEM.format(fmu=fmu("lo_fd2"), algorithm=algorithm,
                                                  channel=channel, more=more))

    def test_signals_of_a_coupling_are_listed_and_recorded(self):
        names = self.cardan_json("check", self.system())["signals"]
        self.assertEqual([n for n in names if "coupling" in n], SIGNALS)
        self.cardan("run", "s.yaml", "-q", "-o", "all.csv")
        self.assertEqual([n for n in self.table("all.csv")[0] if "coupling" in n], SIGNALS)
        self.assertEqual(self.column("all.csv", SIGNALS[1]), [0] * 6 + [6] * 495)
        y, foh, zoh = (self.column("all.csv", n) for n in ("source.force", SIGNALS[0], SIGNALS[4]))
        for n in range(7, 501):
            self.assertTrue(near(zoh[n], y[n - 6] - y[n], 1e-9), n)
            self.assertTrue(near(foh[n], 7 * y[n - 6] - 6 * y[n - 7] - y[n], 1e-9), n)

    def test_a_learning_server_that_is_not_there_is_told(self):
        self.system(algorithm="network", more="      start: foh\n      latency: 6\n"
                    "      learn: unix:nobody.sock\n")
        done = self.cardan("run", "s.yaml", "-o", "run.csv")
        self.assertIn("learning other.f, network: the server was never reached", done.stderr)

    def answer(self, more="", stop=20):
        self.write("low_pass.cir", LOW_PASS)
        return self.write("a.yaml", ANSWER.format(more=more, stop=stop))

    def rms(self, *args):
        return self.cardan_json("run", "a.yaml", "-o", "none", *args)["couplings"][0]["rms"]

    def test_what_was_learned_of_commands_is_saved_and_used(self):
        self.answer()
        done = self.cardan("run", "a.yaml", "-o", "none", "--save-weights", "learned")
        self.assertIn("weights of near.u: learned/near.u.json", done.stderr)
        self.assertEqual(os.listdir(self.path("learned")), ["near.u.json"])
        with open(self.path("learned/near.u.json"), encoding="utf-8") as f:
            learned = json.load(f)
        self.assertEqual(learned["commands"], ["far.u"])
        low, high = learned["weights"]["range"]
        self.assertLess(low, high)
        self.answer(stop=4)
        first = self.rms()
        self.answer(more=", weights: learned/near.u.json", stop=4)
        self.assertLess(self.rms("--save-weights", "learned"), 0.7 * first)
        told = self.cardan_json("run", "a.yaml", "-o", "none", "--save-weights", "learned")
        self.assertEqual(told["weights"], [{"to": "near.u", "file": "learned/near.u.json"}])
        self.answer(stop=0.2)
        done = self.cardan("run", "a.yaml", "-o", "none", "--save-weights", "few")
        self.assertIn("weights of near.u: not enough was learned, nothing is saved", done.stderr)
        self.assertEqual(os.listdir(self.path("few")), [])

    def test_weights_that_cannot_be_saved_are_refused_before_the_run(self):
        self.answer()
        self.write("alone.yaml", ANSWER.format(more="", stop=1).replace(
            "algorithm: commands", "algorithm: auto, commands: none"))
        done = self.cardan("run", "alone.yaml", "--save-weights", "w", "-o", "r.csv", code=2)
        self.assertIn("no connection has an element that learns commands", done.stderr)
        self.answer()
        done = self.cardan("run", "a.yaml", "--save-weights", "a.yaml", "-o", "r.csv", code=1)
        self.assertIn("--save-weights a.yaml: Not a directory, expected a folder", done.stderr)
        self.assertFalse(os.path.exists(self.path("r.csv")))

    def test_patterns_choose_them_as_others(self):
        self.cardan("run", self.system(), "-q", "-o", "some.csv", "--variables", "*.coupling.*error")
        self.assertEqual(self.table("some.csv")[0],
                         ["time", SIGNALS[0], SIGNALS[4], SIGNALS[5]])
        self.system(more="      record: false\n")
        self.assertNotIn("coupling", ",".join(self.cardan_json("check", "s.yaml")["signals"]))

    def test_all_formats_have_them(self):
        self.system(channel=LOSSY)
        seen = []
        for ending in ("csv", "mf4", "mat"):
            self.cardan("run", "s.yaml", "-q", "-o", "run." + ending)
            j = self.cardan_json("info", "run." + ending)
            found = {s["name"]: (s["min"], s["max"]) for s in j["signals"]}
            self.assertTrue(set(SIGNALS) <= set(found), ending)
            seen.append(found)
        self.assertEqual(seen[0], seen[1])
        self.assertEqual(seen[0], seen[2])
        j = self.cardan_json("info", "run.mf4")
        self.assertEqual(next(s["unit"] for s in j["signals"] if s["name"] == SIGNALS[0]), "N")

    def test_a_report_scores_the_algorithm_and_its_shadows(self):
        self.system("zoh", LOSSY)
        said = self.cardan("run", "s.yaml", "-o", "none").stderr
        self.assertRegex(said, r"source.force -> other.f +zoh +0\.\d+")
        self.assertRegex(said, r" +band \(shadow\) +0\.\d+")
        self.assertRegex(said, r"hint +source.force -> other.f: 'band' would have been \d+ % "
                               r"better than 'zoh'")
        j = self.cardan_json("run", "s.yaml", "-o", "none", "-q")
        c = j["couplings"][0]
        self.assertEqual((c["from"], c["to"], c["algorithm"], c["step"]),
                         ("source.force", "other.f", "zoh", 0.01))
        self.assertEqual([s["algorithm"] for s in c["shadows"]], ["zoh", "band"])
        self.assertEqual(c["C"], c["shadows"][0]["C"])
        self.assertLess(c["shadows"][1]["C"], 0.5 * c["C"])
        self.assertEqual(c["sent"], 501)
        self.assertTrue(5 < c["lost"] < 60 and c["late"] > 0 and c["duplicates"] > 0, c)
        self.assertTrue(5 < c["k_mean"] < 7.5 and c["k_max"] >= 7, c)
        self.assertIn("band", c["hint"])
        self.assertAlmostEqual(c["C"], math.hypot(c["M"], c["P"]), 12)

    def test_the_record_tells_how_it_went(self):
        try:
            from asammdf import MDF
        except ImportError:
            self.skipTest("asammdf is not here")
        self.cardan("run", self.system(channel=LOSSY), "-q", "-o", "run.mf4")
        with MDF(self.path("run.mf4")) as m:
            files = {a.file_name: m.extract_attachment(i)[0] for i, a in enumerate(m.attachments)}
        verdict = json.loads(files["cardan-verdict.json"])
        self.assertEqual(verdict["couplings"][0]["sent"], 501)
        self.assertEqual([s["algorithm"] for s in verdict["couplings"][0]["shadows"]],
                         ["zoh", "band"])
        ran = json.loads(files["cardan-run.json"])["connections"][0]["coupling"]
        self.assertEqual((ran["algorithm"], ran["channel"]["burst"], ran["channel"]["seed"]),
                         ("foh", 2, 5))

    def test_threads_and_repetition_change_no_byte(self):
        self.system("auto", LOSSY)
        texts = []
        for threads in ("1", "2", "1"):
            self.cardan("run", "s.yaml", "-q", "-o", "run.csv", "--threads", threads)
            with open(self.path("run.csv"), "rb") as f:
                texts.append(f.read())
        self.assertEqual(texts[0], texts[1])
        self.assertEqual(texts[0], texts[2])

    def test_trouble_becomes_a_warning(self):
        self.system(more="      latency-max: 3\n")
        j = self.cardan_json("run", "s.yaml", "-o", "none")
        self.assertIn("latency above latency-max = 3: 495", " ".join(j["warnings"]))
        self.assertEqual(j["couplings"][0]["beyond"], 495)

    def test_nonsense_is_refused_with_its_line(self):
        self.system(channel="delay: 60 ms, step: 15 ms")
        self.cardan("check", "s.yaml", code=2,
                    says=["s.yaml:", "its step of 0.015 s is not a multiple of the run's tick"])
        self.system("fohh")
        self.cardan("check", "s.yaml", code=2, says=["s.yaml:11: ", "fohh"])
        with open(self.system(), encoding="utf-8") as f:
            text = f.read()
        for old, new, says in (
                ("source.force\n", "other.solver\n", "expected a real number"),
                ("taps: 9", "taps: 0", "taps"),
                ("delay: 60 ms", "delay: 1e9 s", "on their way at once"),
                ("delay: 60 ms", "dellay: 60 ms", "delay")):
            with self.subTest(new):
                self.assertIn(old, text)
                self.write("bad.yaml", text.replace(old, new))
                self.cardan("check", "bad.yaml", code=2, says=["bad.yaml:", says])


if __name__ == "__main__":
    unittest.main()
