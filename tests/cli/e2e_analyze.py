"""cardan coupling analyze: elements, loops, systems of FMUs and recordings, against the reference numbers."""

import csv
import json
import math
import os
import unittest
import xml.etree.ElementTree

from e2e import HERE, EndToEnd, fmu, near

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")

# Baumann (2024), Table 1, recomputed: magnitude and phase in per cent of Nyquist for k = 0, 1, 3, 6
TABLE1 = {
    "zoh": [(27.13244676, 3.333333333), (27.13244676, 1.111111111), (27.13244676, 0.4761904762),
            (27.13244676, 0.2564102564)],
    "foh": [(8.664212166, 18.19914369), (4.017546321, 9.099571847), (1.974752626, 4.549785924),
            (1.124205789, 2.599877671)],
    "eros": [(18.15131516, 16.28153267), (8.755314108, 7.614273662), (4.142028717, 3.856450521),
             (2.294217584, 2.241303535)],
}
EROS_PEAKS = [(8.051145, 58.2748), (17.058513, 139.3879), (20.926359, 225.0398),
              (18.467235, 311.6252)]

# The two-mass oscillator of Baumann (2020), coupling A: closed-loop mode 1 with G_p, and of the exact
# map with outputs sampled after and before the update
ZOH = {"poles": 9.842950618131232e-05, "after": 7.349285e-5, "before": 1.233661e-4}
FOH = {"poles": -7.4811521e-5, "after": -7.481155e-5, "before": -7.481149e-5}
MODE2 = {"zoh": -0.009848438069177854}

LOOP = """loop: 1
step: 1 ms
latency: 3
transfers:
  - { num: [1], den: [10, 0.01, 100] }
  - { num: [100, 0.2, 10.0001, 0.01], den: [20, 0.02, 1] }
elements: [zoh, zoh]
"""

SYSTEM = """cardan: 1
units:
  one: {{ fmu: {one}{interface}, parameters: {{ m2: 100, k2: 10, c2: 0.01, x2: 1, v2: 0 }} }}
  two: {{ fmu: {two}{interface}, parameters: {{ m1: 1, k1: 10, c1: 0.01, kc: 10, cc: 0.01, x1: 1, v1: 0 }} }}
connections:
  - {{ from: two.f, to: one.f, coupling: {{ algorithm: zoh, channel: {{ delay: 3 ms }} }} }}
  - {{ from: one.x2, to: two.x2, coupling: {{ algorithm: zoh, channel: {{ delay: 3 ms }} }} }}
  - {{ from: one.v2, to: two.v2, coupling: {{ algorithm: zoh, channel: {{ delay: 3 ms }} }} }}
run: {{ step: 1 ms, stop: 1 s }}
"""


def relative(a, b):
    return abs(a / b - 1)


class Elements(EndToEnd):
    def test_table_1_in_one_command(self):
        found = self.cardan_json("coupling", "analyze", "zoh", "foh", "eros", "--latency", "0,1,3,6",
                                 "--step", "10ms")
        self.assertEqual(len(found), 12)
        for i, (name, rows) in enumerate(TABLE1.items()):
            for j, (k, row) in enumerate(zip((0, 1, 3, 6), rows)):
                got = found[4 * i + j]
                self.assertEqual((got["element"], got["k"]), (name, k))
                self.assertLess(relative(got["limits"]["magnitude"], row[0]), 1e-9)
                self.assertLess(relative(got["limits"]["phase"], row[1]), 1e-9)
        text = self.cardan("coupling", "analyze", "zoh", "foh", "eros", "-k", "0,1,3,6", "--step", "10ms").stdout
        for number in ("27.1324468", "18.1991437", "2.2942176", "leads", "lags", "amplifies"):
            self.assertIn(number, text)

    def test_peaks_and_weights_of_one_element(self):
        got = self.cardan_json("coupling", "analyze", "eros", "--latency", "6", "--step", "10ms")
        self.assertLess(relative(got["limits"]["magnitude"], 2.294217584), 1e-9)
        self.assertLess(relative(got["limits"]["phase"], 2.241303535), 1e-9)
        for (gain, omega), (a, b) in zip(got["peaks"], EROS_PEAKS):
            self.assertTrue(near(gain, a, 1e-6) and near(omega, b, 1e-4), (gain, omega))
        self.assertEqual(got["k"], 6)
        self.assertEqual(got["step"], 0.01)
        self.assertEqual(len(got["a"]), 9)
        self.assertAlmostEqual(sum(got["a"]), 1, 12)
        self.assertAlmostEqual(sum(got["A"]), 0, 12)
        same = self.cardan_json("coupling", "analyze", "eros", "--latency", "60 ms", "--step", "10ms")
        self.assertEqual(same, got)

    def test_a_time_is_rounded_up_to_the_raster_on_which_samples_are_used(self):
        for latency, k in (("57.5ms", 6), ("60ms", 6), ("60.1ms", 7), ("0ms", 0)):
            self.assertEqual(self.cardan_json("coupling", "analyze", "eros", "-k", latency, "--step", "10ms")["k"], k)
        own = self.cardan_json("coupling", "analyze", "{algorithm: eros, latency: 57.5 ms}", "--step", "10ms")
        self.assertEqual(own["k"], 6)

    def test_limits_follow_the_tolerances(self):
        wide = self.cardan_json("coupling", "analyze", "foh", "-k", "3", "--step", "1ms", "--magnitude", "10",
                                "--phase", "0.1")
        usual = self.cardan_json("coupling", "analyze", "foh", "-k", "3", "--step", "1ms")
        self.assertGreater(wide["limits"]["magnitude"], usual["limits"]["magnitude"])
        self.assertLess(wide["limits"]["phase"], usual["limits"]["phase"])

    def test_weights_that_miss_a_constant_have_no_magnitude_limit_to_offer(self):
        got = self.cardan_json("coupling", "analyze", "{algorithm: linear, weights: {a: [0.9]}, any-gain: true}", "-k", "1",
                               "--step", "10ms")
        self.assertEqual(got["limits"]["magnitude"], 0)
        self.assertGreater(got["limits"]["phase"], 0.5)
        self.assertAlmostEqual(got["dc"], 0.9, 12)

    def test_bode_data_and_plot(self):
        self.cardan("coupling", "analyze", "eros", "-k", "6", "--step", "10ms", "--csv", "bode.csv", "--plot",
                    "bode.svg", "--omega", "1,58.27484,139.387906", "--json")
        names, columns = self.table("bode.csv")
        self.assertEqual(names, ["omega [rad/s]", "gain", "phase [deg]"])
        self.assertTrue(near(columns[1][1], 8.051145, 1e-6))
        self.assertTrue(near(columns[1][2], 17.058513, 1e-6))
        xml.etree.ElementTree.parse(self.path("bode.svg"))
        self.cardan("coupling", "analyze", "foh", "eros", "-k", "6", "--step", "10ms", "--csv", "range.csv",
                    "--db", "--omega", "0.1..50 Hz", "--points", "7")
        names, columns = self.table("range.csv")
        self.assertEqual(len(names), 5)
        self.assertEqual(len(columns[0]), 7)
        self.assertAlmostEqual(columns[0][-1], 100 * math.pi, 9)
        self.assertTrue(near(columns[1][0], 0, 0.1))  # dB

    def test_each_piece_of_a_network_is_analysed(self):
        got = self.cardan_json("coupling", "analyze", "{algorithm: network, start: foh, latency: 3}", "--step",
                               "1ms")
        self.assertEqual(len(got["pieces"]), 1)  # what was morphed is linear
        self.assertEqual(got["k"], 3)
        for a, b in zip(got["a"], (4, -3)):
            self.assertAlmostEqual(a, b, 12)
        self.write("net.yaml", "algorithm: network\nlatency: 2\nany-gain: true\nnetwork:\n  alpha: 0\n"
                   "  W1: [[1, 0], [0, 1]]\n  W2: [[1, 0], [0, 1]]\n  W3: [0.5, 0.5]\n")
        got = self.cardan_json("coupling", "analyze", "net.yaml", "--step", "1ms")
        pieces = sorted(tuple(p["a"]) for p in got["pieces"])
        self.assertEqual(pieces, [(0, 0), (0, 0.5), (0.5, 0), (0.5, 0.5)])
        self.assertEqual(got["limits"]["magnitude"], 0)  # of the worst

    def test_bad_input_gets_one_sentence(self):
        self.write("bent.yaml", "algorithm: eross\n")
        for arguments, says in (
            (["erros", "-k", "1", "--step", "1ms"], "did you mean"),
            (["eros", "--step", "1ms"], "expected --latency"),
            (["eros", "-k", "1"], "expected --step"),
            (["eros", "-k", "-1", "--step", "1ms"], "--latency"),
            (["eros", "-k", "6,3", "--step", "1ms"], "--latency"),
            (["eros", "-k", "1", "--step", "0"], "step"),
            (["eros", "-k", "1", "--step", "1ms", "--omega", "1,3,2"], "does not rise"),
            (["eros", "-k", "1", "--step", "1ms", "--omega", "1,x"], "expected a frequency"),
            (["eros", "-k", "1", "--step", "1ms", "--omega", "5..5"], "the lower one first"),
            (["eros", "-k", "1", "--step", "1ms", "--omega", "1..1e9"], "expected 0 to 200000"),
            (["eros", "-k", "1", "--step", "1ms", "--omega", "1..2", "--points", "1"],
             "at least 2"),
            (["eros", "-k", "1", "--step", "1ms", "--plot", "bode.bmp"], "should end in .svg"),
            (["auto", "-k", "1", "--step", "1ms"], "not one linear function"),
            (["bent.yaml", "-k", "1", "--step", "1ms"], "bent.yaml:1"),
            (["none.yaml"], "none.yaml: no such file"),
            (["eros", "loop.yaml"], "loop.yaml: no such file"),
            (["eros", "-k", "1", "--step", "1ms", "--element", "foh"], "--element is for loops"),
            (["eros", "-k", "1", "--step", "1ms", "--require-stable"], "only a loop or a system"),
        ):
            done = self.cardan("coupling", "analyze", *arguments, code=2, says=says)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


class Loops(EndToEnd):
    def mode(self, spots):
        return min(spots, key=lambda s: abs(abs(s[1]) - 0.38681))

    def check_oscillator(self, got, reference, tolerance=1e-9, modes=True):
        self.assertTrue(near(self.mode(got["poles"])[0], reference["poles"], tolerance), got["poles"])
        for which in ("after", "before") if modes else ():
            self.assertTrue(near(self.mode(got["modes"][which])[0], reference[which],
                                 max(tolerance, 1e-10)), got["modes"])

    def test_transfer_functions(self):
        self.write("loop.yaml", LOOP)
        got = self.cardan_json("coupling", "analyze", "loop.yaml")
        self.assertEqual((got["stable"], got["unstable_poles"], got["encirclements"]),
                         (False, 2, 2))
        self.check_oscillator(got, ZOH, modes=False)
        margin, omega = got["phase_margins"][1]
        self.assertTrue(near(margin, -0.08814442634416843, 1e-5))
        self.assertTrue(near(omega, 0.3868114667648213, 1e-9))
        self.assertLess(relative(got["min_distance"][0], 1.538411e-3), 2e-5)
        self.assertEqual(got["delay_margin"], 0)
        got = self.cardan_json("coupling", "analyze", "loop.yaml", "--element", "foh")
        self.assertEqual((got["stable"], got["unstable_poles"]), (True, 0))
        self.assertTrue(near(got["phase_margins"][1][0], 0.066994, 1e-5))
        text = self.cardan("coupling", "analyze", "loop.yaml").stdout
        self.assertIn("NOT stable", text)
        self.assertIn("-0.08814443 deg", text)
        self.assertIn("give units and links instead", text)

    def test_published_weights(self):
        # eq. (12) and (20) of Baumann (2020)
        self.write("loop.yaml", LOOP)
        for a, any_gain, pole, margin in (
            ([2.4748, -0.6470, -0.1664, -0.6664], True, -4.9765915280734507e-05, 0.044938),
            ([6.5103, -1.5509, -9.9296, 5.9702], False, -7.478696512446471e-05, 0.066972),
        ):
            element = json.dumps({"algorithm": "linear", "any-gain": any_gain, "weights": {"a": a}})
            got = self.cardan_json("coupling", "analyze", "loop.yaml", "--element", element)
            self.assertTrue(near(self.mode(got["poles"])[0], pole, 1e-9))
            self.assertTrue(near(got["phase_margins"][1][0], margin, 1e-5))
            self.assertTrue(got["stable"])

    def test_matrices_and_links(self):
        got = self.cardan_json("coupling", "analyze", os.path.join(EXAMPLES, "loops", "two_mass_links.yaml"))
        self.assertFalse(got["stable"])
        self.assertTrue(got["one_loop"])
        self.check_oscillator(got, ZOH)
        self.assertTrue(near(got["phase_margins"][1][0], -0.088144, 1e-5))
        got = self.cardan_json("coupling", "analyze", os.path.join(EXAMPLES, "loops", "two_mass_links.yaml"),
                               "--element", "foh", "--latency", "3ms")
        self.assertTrue(got["stable"])
        self.check_oscillator(got, FOH)

    def test_margins_that_are_asked_for(self):
        self.write("loop.yaml", LOOP)
        self.cardan("coupling", "analyze", "loop.yaml", "--require-stable", code=3, says="it is not stable")
        stable = ("coupling", "analyze", "loop.yaml", "--element", "foh")
        self.cardan(*stable, "--require-stable", "--min-phase-margin", "0.06", "--min-delay-margin",
                    "3ms", "--min-distance", "0.001", "--min-gain-margin", "2")
        self.cardan(*stable, "--min-phase-margin", "10", code=3, says="the phase margin is 0.066994 deg")
        self.cardan(*stable, "--min-delay-margin", "4ms", code=3, says="the delay margin is 0.0030")
        self.cardan(*stable, "--min-distance", "0.1", code=3, says="|1 + L| is 0.0011")
        self.write("lag.yaml", "loop: 1\nstep: 1 ms\ntransfers: [{num: [4], den: [1, 3, 3, 1]}]\n")
        self.cardan("coupling", "analyze", "lag.yaml", "--min-gain-margin", "1.9")
        self.cardan("coupling", "analyze", "lag.yaml", "--min-gain-margin", "2.1", code=3,
                    says="the gain margin is a factor 2 at 1.732")

    def test_curve_and_picture(self):
        self.write("loop.yaml", LOOP)
        self.cardan("coupling", "analyze", "loop.yaml", "--csv", "curve.csv", "--plot", "curve.svg")
        names, columns = self.table("curve.csv")
        self.assertEqual(names, ["omega [rad/s]", "Re L", "Im L", "gain", "phase [deg]"])
        self.assertGreater(len(columns[0]), 1000)
        self.assertEqual(columns[0], sorted(columns[0]))
        self.assertLess(min(math.hypot(1 + re, im) for re, im in zip(columns[1], columns[2])), 2e-3)
        for re, im, gain in zip(columns[1], columns[2], columns[3]):
            self.assertTrue(near(math.hypot(re, im), gain, 1e-12 * gain))
        root = xml.etree.ElementTree.parse(self.path("curve.svg")).getroot()
        self.assertTrue(root.tag.endswith("svg"))

    def test_integrators_and_networks_of_several_loops(self):
        self.write("free.yaml", "loop: 1\nstep: 1 ms\nlatency: 2\n"
                   "transfers: [{num: [4, 4], den: [0, 0, 1]}]\nelements: [foh]\n")
        got = self.cardan_json("coupling", "analyze", "free.yaml")
        self.assertTrue(got["stable"])
        self.assertEqual(got["open_axis_poles"], 2)
        self.write("two.yaml", "loop: 1\nstep: 10 ms\nunits:\n"
                   "  a: { A: [[-1, 0], [0, -2]], B: [[1, 0], [0, 1]], C: [[1, 0], [0, 1]] }\n"
                   "links:\n"
                   "  - { from: a.1, to: a.1, gain: -3, element: zoh, latency: 1 }\n"
                   "  - { from: a.2, to: a.2, gain: 1.5 , element: foh, latency: 0 }\n")
        got = self.cardan_json("coupling", "analyze", "two.yaml")
        self.assertTrue(got["stable"])
        self.assertFalse(got["one_loop"])
        self.assertIsNone(got["delay_margin"])
        self.cardan("coupling", "analyze", "two.yaml", "--min-phase-margin", "1", code=2, says="use --min-distance")

    def test_bad_loops_are_named_with_their_line(self):
        cases = (
            ("latency: 3", "latency: three", "loop.yaml:3: latency: expected"),
            ("step: 1 ms", "step: -1 ms", "loop.yaml:2: step: expected a time"),
            ("step: 1 ms", "speed: 1 ms", "expected step"),
            ("loop: 1", "loop: 2", "loop.yaml:1: loop: expected 1"),
            ("num: [1]", "nun: [1]", "loop.yaml:5: unknown key 'nun', did you mean 'num'?"),
            ("num: [1]", "num: []", "loop.yaml:5: num: expected a list"),
            ("num: [1]", "num: [a]", "loop.yaml:5: num: expected a number"),
            ("den: [20, 0.02, 1]", "den: [20, 0.02, 0]", "loop.yaml:6: den: the last coefficient"),
            ("den: [20, 0.02, 1]", "den: [20]", "expected a proper one"),
            ("[zoh, zoh]", "[zoh, zohh]", "loop.yaml:7: "),
            ("[zoh, zoh]", "[zoh, {algorithm: zoh, taps: 3}]", "loop.yaml:7: "),
            ("[zoh, zoh]", "zoh", "loop.yaml:7: elements: expected a list"),
            ("elements:", "elemants:", "loop.yaml:7: unknown key 'elemants'"),
            ("transfers:", "transfer:", "expected transfers"),
        )
        for old, new, says in cases:
            self.assertIn(old, LOOP)
            self.write("loop.yaml", LOOP.replace(old, new, 1))
            done = self.cardan("coupling", "analyze", "loop.yaml", code=2, says=says)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        with open(os.path.join(EXAMPLES, "loops", "two_mass_links.yaml"), encoding="utf-8") as f:
            links = f.read()
        for old, new, says in (
            ("[[0], [0.01]]", "[[0], [0.01], [0]]", "B has 3 rows, expected 2"),
            ("[[0, 1], [-0.1, -0.0001]]", "[[0, 1], [-0.1]]", "A: row 2 has 1 numbers, expected 2"),
            ("from: spring.F", "from: spring.G", "'spring.G' is no output of the units"),
            ("to: mass.F", "to: mass.2", "'mass.2' is no input of the units"),
            ("inputs: [F]", "inputs: [F, G]", "inputs: expected a list of 1 names"),
            ("element: zoh", "elements: zoh", "unknown key 'elements', did you mean 'element'?"),
        ):
            self.write("links.yaml", links.replace(old, new, 1))
            self.cardan("coupling", "analyze", "links.yaml", code=2, says=("links.yaml:", says))
        for text in ("", "loop: 1", "loop: [", "loop: 1\nunits: 3\n", "loop: 1\nstep: 1\nunits: {}\n",
                     "loop: 1\nstep: 1ms\ntransfers: {}\n", "{loop: 1, step: 1ms, units: {A: [[]]}}"):
            self.write("loop.yaml", text)
            self.cardan("coupling", "analyze", "loop.yaml", code=2, says="loop.yaml")

    def test_oscillator_of_two_fmus(self):
        for version in (2, 3):
            for interface in ("", ", interface: model-exchange", ", interface: co-simulation"):
                self.write("system.yaml", SYSTEM.format(
                    one=fmu("lo_fd2", version), two=fmu("lo_fd1", version), interface=interface))
                got = self.cardan_json("coupling", "analyze", "system.yaml")
                self.assertFalse(got["stable"])
                self.assertTrue(got["exact"])
                self.assertEqual(got["unstable_poles"], 2)
                self.assertEqual([e["k"] for e in got["elements"]], [3, 3, 3])
                self.check_oscillator(got, ZOH)
                got = self.cardan_json("coupling", "analyze", "system.yaml", "--element", "foh")
                self.assertTrue(got["stable"])
                self.check_oscillator(got, FOH)
        self.cardan("coupling", "analyze", "system.yaml", "--require-stable", code=3, says="it is not stable")
        late = self.cardan_json("coupling", "analyze", "system.yaml", "--at", "0.2 s")  # linear: the same there
        self.check_oscillator(late, ZOH)

    def test_a_run_grows_as_the_exact_map_says(self):
        # Units step with the inputs that they were given before: outputs are sampled before the update.
        self.write("system.yaml", SYSTEM.format(one=fmu("lo_fd2"), two=fmu("lo_fd1"), interface=""))
        predicted = self.mode(self.cardan_json("coupling", "analyze", "system.yaml")["modes"]["before"])
        self.cardan("run", "system.yaml", "-q", "--stop-time", "1500", "--output-interval", "0.1",
                    "-o", "run.csv")
        names, columns = self.table("run.csv")
        t, x, v = columns[0], *(columns[names.index(n)] for n in ("one.x2", "one.v2"))
        envelope = [(a, math.log(math.hypot(b, c / predicted[1])))
                    for a, b, c in zip(t, x, v) if a > 400]  # the fast mode has gone by then
        mean = [sum(p[i] for p in envelope) / len(envelope) for i in (0, 1)]
        growth = (sum((a - mean[0]) * (b - mean[1]) for a, b in envelope) /
                  sum((a - mean[0]) ** 2 for a, b in envelope))
        self.assertTrue(near(growth, predicted[0], 1e-6), (growth, predicted))

    def test_differences_come_near_enough(self):
        for version in (2, 3):
            names = [self.black_box(n, version) for n in ("lo_fd2", "lo_fd1")]
            self.write("system.yaml", SYSTEM.format(one=names[0], two=names[1], interface=""))
            got = self.cardan_json("coupling", "analyze", "system.yaml")
            self.assertFalse(got["exact"])
            self.assertFalse(got["stable"])
            self.check_oscillator(got, ZOH, 1e-9)

    def test_what_cannot_be_linearised_says_what_is_missing(self):
        self.write("system.yaml", f"cardan: 1\nunits:\n  a: {{ fmu: {fmu('nlo_fd1')} }}\n"
                   f"  b: {{ fmu: {fmu('nlo_fd2')} }}\n"
                   "connections:\n  - a.f -> b.f\n  - b.x2 -> a.x2\n  - b.v2 -> a.v2\n")
        self.cardan("coupling", "analyze", "system.yaml", code=2, says=("unit 'a'", "needs Model Exchange"))
        self.write("one.yaml", f"cardan: 1\nunits:\n  a: {{ fmu: {fmu('lo_fd2')} }}\n")
        self.cardan("coupling", "analyze", "one.yaml", code=2, says="there is no loop")

    def test_of_pairs_it_says_what_is_guaranteed(self):
        with open(os.path.join(HERE, "../../examples/systems/shaft_pair.yaml")) as f:
            text = f.read()
        for n in ("rot_1", "rot_2"):
            text = text.replace(f"../../build/fmus/fmi2/{n}.fmu", fmu(n))
        self.write("system.yaml", text)
        self.cardan("coupling", "analyze", "system.yaml", code=2,
                    says=("gives both units together no more than it got", "no loop is left"))

    def test_links_without_element_are_direct(self):
        text = SYSTEM.format(one=fmu("lo_fd2"), two=fmu("lo_fd1"), interface="")
        text = text.replace("coupling: { algorithm: zoh, channel: { delay: 3 ms } }", "gain: 1", 2)
        self.write("system.yaml", text)
        got = self.cardan_json("coupling", "analyze", "system.yaml")
        self.assertEqual((got["direct_links"], len(got["elements"])), (2, 1))
        text = text.replace(", coupling: { algorithm: zoh, channel: { delay: 3 ms } }", "")
        self.write("system.yaml", text)
        got = self.cardan_json("coupling", "analyze", "system.yaml")  # the oscillator as one piece
        self.assertTrue(near(self.mode(got["poles"])[0], -7.481156e-5, 1e-9))
        self.assertTrue(near(got["phase_margins"][1][0], 0.066994, 1e-5))
        self.assertTrue(near(got["delay_margin"], 3.022842e-3, 1e-9))


SPEED = """loop: 1
step: 10 ms
latency: 30 ms
units:
  motor: { A: [[-2]], B: [[2]], C: [[1]], inputs: [u], outputs: [speed] }
  controller: { A: [[0]], B: [[1]], C: [[3]], D: [[2]], inputs: [e], outputs: [u] }
links:
  - { from: motor.speed, to: controller.e, gain: -1, element: zoh%s }
  - { from: controller.u, to: motor.u, element: zoh }
"""


class Varied(EndToEnd):
    """Latencies that vary, losses, elements that adapt."""

    def test_without_anything_that_varies_nothing_is_said_of_it(self):
        self.write("speed.yaml", SPEED % "")
        self.assertNotIn("varied", self.cardan_json("coupling", "analyze", "speed.yaml"))

    def test_worst_case_and_mean_square(self):
        self.write("speed.yaml", SPEED % "")
        v = self.cardan_json("coupling", "analyze", "speed.yaml", "--jitter", "20ms", "--loss", "20 %",
                             "--require-stable")["varied"]
        self.assertEqual(v["worst_case"]["verdict"], "stable")
        self.assertLess(v["worst_case"]["growth_high"], 1)
        self.assertEqual(v["mean_square"]["verdict"], "stable")
        self.assertEqual([(e["k_min"], e["k_max"], e["loss"], e["losses"], e["losses_assumed"])
                          for e in v["elements"]], [(1, 5, 0.2, 3, True)] * 2)
        self.assertTrue(any("in a row" in n for n in v["not_covered"]))
        text = self.cardan("coupling", "analyze", "speed.yaml", "--jitter", "20ms", "--loss", "0.2").stdout
        for part in ("3 (assumed)", "stable for every sequence", "mean square: stable", "not covered:"):
            self.assertIn(part, text)

    def test_a_sequence_that_grows_is_shown(self):
        self.write("speed.yaml", SPEED % "")
        v = self.cardan_json("coupling", "analyze", "speed.yaml", "--element", "foh", "--latency", "2..4")["varied"]
        worst = v["worst_case"]
        self.assertEqual(worst["verdict"], "unstable")
        self.assertGreater(worst["growth_low"], 1)
        self.assertTrue(all(2 <= a <= 4 for step in worst["ages"] for a in step))
        self.assertEqual(len(worst["ages"]), len(worst["arrivals"]))
        self.cardan("coupling", "analyze", "speed.yaml", "--element", "foh", "--latency", "2..4",
                    "--require-stable", code=3, says="not stable")

    def test_a_link_has_its_own(self):
        self.write("speed.yaml", SPEED % ", latency: 1..2, loss: 0.1, losses: 1")
        elements = self.cardan_json("coupling", "analyze", "speed.yaml")["varied"]["elements"]
        self.assertEqual([(e["k_min"], e["k_max"], e["loss"], e["losses"]) for e in elements],
                         [(1, 2, 0.1, 1), (3, 3, 0, 0)])

    def test_elements_that_adapt_get_a_bound(self):
        self.write("speed.yaml", SPEED % "")
        for name in ("auto", "ridge", "rls"):
            a = self.cardan_json("coupling", "analyze", "speed.yaml", "--element", name)["varied"]["adapting"]
            self.assertGreater(a["gain_limit"], 1)
            self.assertFalse(a["holds"])
        self.cardan("coupling", "analyze", "speed.yaml", "--element", "auto", "--require-stable", code=3,
                    says="gain-limit")
        limited = "{algorithm: auto, gain-limit: %g}"
        self.cardan("coupling", "analyze", "speed.yaml", "--element", limited % 1, "--require-stable")
        self.cardan("coupling", "analyze", "speed.yaml", "--element", limited % 5, "--require-stable", code=3,
                    says="gain-limit")
        self.cardan("coupling", "analyze", "speed.yaml", "--element", "{algorithm: auto, reconstruct: smooth}",
                    code=2, says="smooth has no linear form")

    def test_channels_of_a_system_count(self):
        text = SYSTEM.format(one=fmu("lo_fd2"), two=fmu("lo_fd1"), interface="")
        self.write("system.yaml", text.replace("delay: 3 ms", "delay: 3 ms, jitter: 2 ms, loss: 0.2"))
        text = self.cardan("coupling", "analyze", "system.yaml").stdout
        self.assertIn("what varies is below", text)
        v = self.cardan_json("coupling", "analyze", "system.yaml")["varied"]
        self.assertEqual([(e["k_min"], e["k_max"], e["loss"]) for e in v["elements"]],
                         [(1, 5, 0.2)] * 3)
        self.assertIn(v["worst_case"]["verdict"], ("unstable", "not decided"))
        self.write("burst.yaml", text and SYSTEM.format(
            one=fmu("lo_fd2"), two=fmu("lo_fd1"), interface="").replace(
                "delay: 3 ms", "delay: 3 ms, loss: 0.2, burst: 2"))
        v = self.cardan_json("coupling", "analyze", "burst.yaml")["varied"]
        self.assertIn("not independent", v["mean_square"]["reason"])

    def test_a_run_has_the_ages_that_are_taken(self):
        # delay 3 ms +- 1.7 ms in steps of 1 ms: a sample is used after 2 to 5 steps; the newest is older
        # than a if none of those of age 0 .. a has arrived
        text = SYSTEM.format(one=fmu("lo_fd2"), two=fmu("lo_fd1"), interface="").replace(
            "delay: 3 ms", "delay: 3 ms, jitter: 1.7 ms, loss: 0.3").replace("stop: 1 s", "stop: 20 s")
        self.write("system.yaml", text)
        elements = self.cardan_json("coupling", "analyze", "system.yaml")["varied"]["elements"]
        self.assertEqual([(e["k_min"], e["k_max"]) for e in elements], [(2, 5)] * 3)
        self.cardan("run", "system.yaml", "-o", "run.csv")
        with open(self.path("run.csv"), newline="") as f:
            rows = list(csv.DictReader(f))[50:]
        for name in (n for n in rows[0] if n.endswith("coupling.k")):
            ages, older = [int(float(r[name])) for r in rows], 1
            for age in range(10):
                arrived = 0.7 * min(max((age - 1.3) / 3.4, 0), 1)
                self.assertLess(abs(ages.count(age) / len(ages) - older * arrived), 0.02, (name, age))
                older *= 1 - arrived

    def test_bad_input_says_what_would_be_right(self):
        self.write("speed.yaml", SPEED % "")
        for options, part in ((("--latency", "5..2"), "the smaller one first"),
                              (("--latency", ".."), "expected macro steps"),
                              (("--loss", "1"), "below 1"),
                              (("--loss", "120 %"), "expected a part"),
                              (("--latency", "2..5", "--jitter", "10ms"), "expected one of the two"),
                              (("--jitter", "2 s"), "macro steps"),
                              (("--losses", "101", "--loss", "0.1"), "at most 100")):
            self.cardan("coupling", "analyze", "speed.yaml", *options, code=2, says=part)
        self.cardan("coupling", "analyze", "zoh", "--step", "1ms", "-k", "1", "--jitter", "2ms", code=2,
                    says="for a loop or a system")
        for line, part in (("loss: 1.5", "loss: 1.5, expected a part"), ("losses: -1", "in a row at most"),
                           ("latency: 5..2", "'5..2', expected macro steps"), ("jitter: soon", "a time")):
            self.write("bad.yaml", SPEED % (", " + line))
            self.cardan("coupling", "analyze", "bad.yaml", code=2, says=("bad.yaml:8", part))
        self.write("step.yaml", (SPEED % "").replace("step: 10 ms\n", "jitter: 2 ms\n"))
        self.cardan("coupling", "analyze", "step.yaml", code=2, says="expected step")


class Recordings(EndToEnd):
    def record(self, name="signal.csv", gap=False):
        with open(self.path(name), "w", newline="", encoding="utf-8") as f:
            rows = csv.writer(f)
            rows.writerow(["time", "torque", "flat"])
            for n in range(8000):
                t = 0.01 * n
                y = 3 + 5 * math.sin(4 * t) + 2 * math.sin(9 * t)
                if not (gap and 2000 <= n < 2050):
                    rows.writerow([f"{t:.2f}", f"{y:.12g}", 1])
        return name

    def test_bandwidth_and_macro_step(self):
        got = self.cardan_json("coupling", "analyze", self.record(), "--signal", "torque", "--latency", "1",
                               "--element", "foh", "--element", "eros")
        self.assertLess(relative(got["variance"], 12.5 + 2), 0.05)
        self.assertTrue(9 <= got["bandwidth"] <= 10, got["bandwidth"])
        self.assertAlmostEqual(got["mean"], 3, 1)
        for e, phase, magnitude in zip(got["elements"], (9.099571847, 7.614273662),
                                       (4.017546321, 8.755314108)):
            step = math.pi * min(phase, magnitude) / 100 / got["bandwidth"]
            self.assertLess(relative(e["step"], step), 1e-8)
        self.assertIn("eros with k = 1", got["suggestion"])

    def test_a_latency_in_time_may_be_too_long(self):
        name = self.record()
        got = self.cardan_json("coupling", "analyze", name, "--signal", "torque", "--latency", "200 ms")
        self.assertTrue(all(e["step"] is None for e in got["elements"]))
        self.assertIn("too long", got["suggestion"])
        got = self.cardan_json("coupling", "analyze", name, "--signal", "torque", "--latency", "2 ms",
                               "--element", "eros")
        e = got["elements"][0]
        self.assertEqual(e["k"], 1)
        self.assertGreater(e["step"], 2e-3)
        self.assertGreater(e["keeps"], got["bandwidth"])

    def test_spectrum_as_file_and_picture(self):
        self.cardan("coupling", "analyze", self.record(), "--signal", "torque", "--csv", "s.csv", "--plot", "s.svg")
        self.cardan("coupling", "analyze", self.record(), "--signal", "torque", "--segment", "2048")
        names, (omega, density) = self.table("s.csv")
        width = omega[1]
        self.assertLess(relative(sum(density) * width, 14.5), 0.05)
        peak = max(range(len(density)), key=lambda i: density[i])
        self.assertTrue(near(omega[peak], 4, width))
        xml.etree.ElementTree.parse(self.path("s.svg"))

    def test_gaps_and_constants_are_refused_with_the_place(self):
        name = self.record(gap=True)
        self.cardan("coupling", "analyze", name, "--signal", "torque", code=2,
                    says=("a gap from 2", "--from and --to"))
        self.cardan("coupling", "analyze", name, "--signal", "torque", "--from", "25 s")
        self.cardan("coupling", "analyze", name, "--signal", "flat", "--from", "25 s", code=2, says="is constant")
        self.cardan("coupling", "analyze", name, "--signal", "torqe", code=2, says="did you mean 'torque'?")
        self.cardan("coupling", "analyze", name, code=2, says="expected --signal")
        self.cardan("coupling", "analyze", name, "--signal", "torque", "--from", "25 s", "--part", "2", code=2,
                    says="between 0 and 1")
        self.cardan("coupling", "analyze", name, "--signal", "torque", "--from", "25 s", "--segment", "100",
                    code=2, says="a power of two")
        self.cardan("coupling", "analyze", name, "--signal", "torque", "--from", "25 s", "--csv", name, code=2,
                    says="would be overwritten")


if __name__ == "__main__":
    unittest.main()
