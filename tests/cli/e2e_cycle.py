"""cardan coupling learn cycle: the hybrid with engine and machine 60 ms away, learned, run, changed; what is refused."""

import json
import math
import os
import unittest

from e2e import EndToEnd, FMUS, HERE

SOURCE = os.path.join(HERE, "..", "..", "examples", "powertrain")


class Cycle(EndToEnd):
    two_runs = None  # what they taught, as text

    def learn_two_runs(self):
        """c.json of two runs, learned once for all tests."""
        if not Cycle.two_runs:
            self.cardan("coupling", "learn", "cycle", "late.yaml", "--runs", 2, "-o", "c.json")
            with open(self.path("c.json"), encoding="utf-8") as f:
                Cycle.two_runs = f.read()
        self.write("c.json", Cycle.two_runs)
        return Cycle.two_runs

    def setUp(self):
        super().setUp()
        with open(os.path.join(SOURCE, "hybrid_late.yaml"), encoding="utf-8") as f:
            text = f.read().replace("../../build/fmus", FMUS)
        self.text = text.replace("nedc.csv", os.path.abspath(os.path.join(SOURCE, "nedc.csv")))
        self.write("late.yaml", self.text)

    def learned(self, text=None, file="c.json"):
        return (text or self.text).replace("  predict: hold", "  predict: hold\n  learned: " + file)

    def speeds(self, text, name):
        """Speed of the shaft in a run of this system."""
        system = self.write(name + ".yaml", text.replace("hybrid_late.mf4", name + ".csv"))
        self.cardan("run", system, "--output", name + ".csv", "--variables", "vehicle.shaft_speed")
        with open(self.path(name + ".csv"), encoding="utf-8") as f:
            return [float(line.split(",")[-1]) for line in f.read().splitlines()[1:]]

    def test_run_6_has_a_twentieth_of_the_first_error_and_later_runs_have_it_too(self):
        said = self.cardan_json("coupling", "learn", "cycle", "late.yaml", "-o", "c.json")
        runs = [r for r in said["runs"] if not r["what"].startswith("identify")]
        self.assertEqual(len(said["runs"]) - len(runs), 4)
        self.assertLessEqual(len(runs), 6)
        self.assertLessEqual(said["error"], 0.05 * said["first_error"])
        for a, b in zip(runs[1:], runs[2:]):
            self.assertLess(b["error"], a["error"])
        prompt = self.speeds(self.text.replace("delay: 60 ms", "delay: 0 ms"), "prompt")
        late = self.speeds(self.text, "late2")
        with_it = self.speeds(self.learned(), "with")
        error = [math.sqrt(sum((a - b) ** 2 for a, b in zip(x, prompt)) / len(prompt))
                 for x in (late, with_it)]
        self.assertLess(error[1], 0.2 * error[0], error)
        run = self.cardan_json("run", "with.yaml", "--output", "none")
        self.assertAlmostEqual(run["learned"]["error"], said["error"], delta=1e-4 * said["first_error"])
        self.assertIsNone(run["learned"]["until"])
        self.assertEqual(run["guard"]["state"], "calm", run["guard"])  # the car stands for 11 s: rounding is no growth
        self.assertLess(run["worst_defect"], 0.03)

    def test_where_both_bonds_work_it_is_a_third_and_jitter_of_a_step_leaves_it_no_worse(self):
        text = self.text.replace("start: 0 s", "start: 116 s").replace("stop: 30 s", "stop: 146 s")
        error = {}
        for jitter in (0, 5, 10):  # ms, where a step is 10 ms and the latency 25 ms
            self.write("late.yaml", text.replace("delay: 60 ms", f"delay: 25 ms, jitter: {jitter} ms"))
            said = self.cardan_json("coupling", "learn", "cycle", "late.yaml", "--runs", 4, "-o", "c.json")
            error[jitter] = said["error"] / said["first_error"]
        self.assertLess(error[0], 1 / 3, error)
        self.assertEqual(error[5], error[0])  # samples come in the same step
        self.assertLessEqual(error[10], 1, error)

    def test_another_cycle_or_link_is_noticed_and_nothing_is_used(self):
        self.learn_two_runs()
        for change, says in (
                (("delay: 60 ms", "delay: 70 ms"), "another link: it is 'link engine.torque"),
                (("algorithm: zoh", "algorithm: foh"), "another link"),
                (("winding_in: 30", "winding_in: 31"), "another cycle: it is 'unit machine"),
                (("time_offset: -0.35 s", "time_offset: -0.5 s"), "another cycle: it is 'unit ahead"),
                (("stop: 30 s", "stop: 20 s"), "another cycle: it is 'run: 0 s to 20 s")):
            plain = self.speeds(self.text.replace(*change), "plain")
            system = self.write("other.yaml", self.learned(self.text.replace(*change)))
            self.cardan("run", system, "--output", "none", says=[says, "goes on without"])
            self.assertEqual(plain, self.speeds(self.learned(self.text.replace(*change)), "same"))

    def test_another_latency_or_drive_is_noticed_in_the_run(self):
        file = json.loads(self.learn_two_runs())
        system = self.write("learned.yaml", self.learned())

        def changed(change, says):
            other = json.loads(json.dumps(file))
            change(other)
            self.write("c.json", json.dumps(other))
            self.cardan("run", system, "--output", "none", says=[says, "goes on without"])

        changed(lambda c: c["signals"][1].update(latency=4), "the latency of engine.speed_ref was")
        speed = [d["name"] for d in file["driven"]].index("cycle.speed")
        changed(lambda c: c["driven"][speed]["samples"].__setitem__(slice(2000, None), [99] * 1001),
                "at t = 20 s cycle.speed was 15, when it was learned 99")
        changed(lambda c: c["signals"][1].update(sent=[0] * 3001), "this is another cycle")

    def test_files_that_cannot_be_used_are_told_and_the_run_goes_on(self):
        text = self.learn_two_runs()
        for bad, says in ((text[:5000], "d.json:2: not valid JSON"),
                          (text.replace('"version": 1', '"version": 7'), "version = 7, expected 1"),
                          (text.replace('"correction": [0', '"correction": [NaN'), "d.json"),
                          (text.replace('"correction": [', '"correction": [null,'), "values, expected 3001"),
                          ("{}", "no learned cycle"), ("", "d.json")):
            self.write("d.json", bad)
            system = self.write("d.yaml", self.learned(file="d.json"))
            self.cardan("run", system, "--output", "none", "--stop-time", 1,
                        says=["d.yaml: run.learned: ", says, "goes on without"])
        os.remove(self.path("d.json"))
        self.cardan("run", "d.yaml", "--output", "none", "--stop-time", 1, says="no such file")

    def test_systems_that_cannot_be_learned_are_refused(self):
        self.cardan("coupling", "learn", "cycle", code=2, says="SYSTEM is missing")
        self.cardan("coupling", "learn", "cycle", "late.yaml", code=2, says="--output is missing")
        self.cardan("coupling", "learn", "cycle", "late.yaml", "-o", "c.json", "--stop-time", 1, code=2,
                    says="the cycle has 101 samples of 0.01 s, expected at least 256")
        self.write("none.yaml", self.text[:self.text.index("bonds:")] +
                   self.text[self.text.index("run:\n"):])
        self.cardan("coupling", "learn", "cycle", "none.yaml", "-o", "c.json", code=2, says="no power bond")
        self.write("prompt.yaml", self.text.replace(
            ", coupling: { algorithm: zoh, channel: { delay: 60 ms } }", ""))
        self.cardan("coupling", "learn", "cycle", "prompt.yaml", "-o", "c.json", code=2,
                    says="no signal of a power bond is late")
        self.assertFalse(os.path.exists(self.path("c.json")))

    def test_a_loop_that_diverges_is_refused_and_so_is_the_pair_that_would_hold_it(self):
        with open(os.path.join(SOURCE, "..", "systems", "shaft_pair.yaml"), encoding="utf-8") as f:
            pair = f.read().replace("../../build/fmus", FMUS)
        late = ", coupling: { algorithm: zoh, channel: { delay: 60 ms } } }"
        held = pair[:pair.index("    pair: wave")] + pair[pair.index("run:"):]
        for a, b in (("second.omega2", "first.omega2"), ("first.tau", "second.tau")):
            held = held.replace(f"- {a} -> {b}", f"- {{ from: {a}, to: {b}{late}")
        self.write("held.yaml", held)
        self.cardan("coupling", "learn", "cycle", "held.yaml", "-o", "c.json", code=1,
                    says=["run 1: at t = ", "stable without it", "'pair: wave' on the bond"])
        self.write("pair.yaml", pair)
        self.cardan("coupling", "learn", "cycle", "pair.yaml", "-o", "c.json", code=2,
                    says="signals of bonds with 'pair: wave' cannot be learned")
        self.assertFalse(os.path.exists(self.path("c.json")))


if __name__ == "__main__":
    unittest.main()
