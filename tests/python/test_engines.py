"""Elements, loops, designs, circuits, twins and papers from Python: against closed forms and against the command, and misused.

    python test_engines.py BUILD_FOLDER
"""
import json
import logging
import math
import os
import pickle
import subprocess
import sys
import tempfile
import unittest

import numpy as np

BUILD = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else "build"
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import cardan  # noqa: E402

FMUS = os.path.join(BUILD, "fmus", "fmi2")
RC = """low pass
.param R=1k
.input u source=v1 start=1
V1 in 0 1
R1 in out {R}
C1 out 0 1u ic=0
.output y=v(out)
.tran 10u 5m uic
.end
"""
CAPACITIES = """two capacities in a row
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
TWIN = {"twin": 1, "circuit": "rc.cir", "step": 0.01, "sensors": {"T1": {"at": "T1", "sd": 0.5}, "T2": {"at": "T2", "sd": 0.5}},
        "parameters": {"r1": {"parts": ["r1"], "start": 2, "sd": 1}}}


def command(*arguments):
    done = subprocess.run([os.path.join(BUILD, "cardan"), *arguments, "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)

    def write(self, name, text):
        with open(name, "w", encoding="utf-8") as f:
            f.write(text)
        return name

    def fails(self, kind, part, f, place=None):
        with self.assertRaises(kind) as caught:
            f()
        self.assertIn(part, str(caught.exception))
        if place is not None:
            self.assertEqual(caught.exception.place, place)
        self.assertIsInstance(pickle.loads(pickle.dumps(caught.exception)), kind)


class Elements(Case):
    def test_a_held_sample_is_a_dead_time(self):
        """G = e^{-jkx} (1 - e^{-jx}) / (jx), x = omega step."""
        x = np.linspace(0.01, 3, 50)
        for k in (0, 3):
            r = cardan.analyze("zoh", 0.02, k, omega=x / 0.02)
            g = np.exp(-1j * k * x) * (1 - np.exp(-1j * x)) / (1j * x)
            self.assertLess(np.abs(r.response - g).max(), 1e-12)
            self.assertLess(np.abs(r.gain - np.abs(g)).max(), 1e-12)
            self.assertLess(np.abs(r.phase - np.degrees(np.unwrap(np.angle(g)))).max(), 1e-9)
            self.assertEqual((r.a.tolist(), r.dc, r.b), ([1.0], 1.0, 0.0))

    def test_numbers_are_those_of_the_command(self):
        j = command("coupling", "analyze", "eros", "--latency", "6", "--step", "10ms")
        r = cardan.analyze("eros", 0.01, latency=0.06)
        self.assertEqual((r.k, r.norm, r.dc, r.a.tolist()), (6, j["norm"], j["dc"], j["a"]))
        self.assertEqual(r.peaks.tolist(), j["peaks"])
        self.assertEqual([100 * r.limits.magnitude, 100 * r.limits.phase], [j["limits"]["magnitude"], j["limits"]["phase"]])

    def test_files_and_mappings(self):
        e = {"algorithm": "foh", "step": 0.01, "latency": 2}
        self.write("e.yaml", "algorithm: foh\nstep: 10 ms\nlatency: 2\n")
        with open("f.json", "w") as f:
            json.dump(e, f)
        a, b, d = (cardan.analyze(x) for x in (e, "./e.yaml", "./f.json"))
        self.assertTrue((a.gain == b.gain).all() and (a.gain == d.gain).all())
        self.assertEqual(a.k, 2)
        table = cardan.compensate(np.sin(np.arange(0, 9, 0.01)), 0.01, 0.02, ["zoh", "./e.yaml"])
        self.assertLess(table["./e.yaml"].rms, table["zoh"].rms)

    def test_a_design_is_that_of_the_command_and_works_in_a_system(self):
        t = np.arange(0, 20, 0.01)
        y = np.sin(6 * t) + 0.3 * np.sin(11 * t)
        np.savetxt("y.csv", np.c_[t, y], delimiter=",", header="time,y", comments="", fmt="%.17g")
        for method in ("wiener", "bounded", "savitzky-golay"):
            j = command("coupling", "design", "y.csv", "--signal", "y", "--latency", "3,5", "--method", method)
            d = cardan.design(method, signal=y, step=0.01, k=[5, 3, 3])
            self.assertEqual([w.k for w in d], [3, 5])
            for w, row in zip(d, j["designs"]):
                self.assertLess(np.abs(w.a - row["a"]).max(), 1e-12 * np.abs(w.a).max())
                self.assertAlmostEqual(100 * w.C, row["C"], 9)
        d = cardan.design("wiener", signal=y, step=0.01, k=5)
        s = cardan.System().add("y", replay={"t": t, "u": y}).add("to", cardan.unit(lambda u: u))
        s.connect("y.u", "to.u", coupling={**d.element, "channel": {"delay": "50 ms"}})
        with s.start(step=0.01, stop=19) as run:
            for _ in run.steps():
                pass
        error, held = run["to.y"][200:] - run["y.u"][200:], y[195:1896] - y[200:1901]
        self.assertLess(np.sqrt(np.mean(error ** 2)), 0.5 * np.sqrt(np.mean(held ** 2)))

    def test_a_spectrum_knows_its_power(self):
        t = np.arange(0, 100, 0.01)
        s = cardan.spectrum(3 + 2 * np.sin(2 * np.pi * t), 0.01)  # whole periods
        self.assertAlmostEqual(s.mean, 3, 9)
        self.assertAlmostEqual(s.variance, 2, 1)
        self.assertAlmostEqual(s.half, 2 * np.pi, 0)
        self.assertAlmostEqual(float(s.omega[np.argmax(s.density)]), 2 * np.pi, 0)

    def test_mistakes(self):
        self.fails(cardan.NotFound, "did you mean 'eros'", lambda: cardan.analyze("eross", 0.01, 2))
        self.fails(cardan.RangeError, "expected k or latency", lambda: cardan.analyze("eros", 0.01))
        self.fails(cardan.RangeError, "one of them", lambda: cardan.analyze("eros", 0.01, 2, latency=0.02))
        self.fails(cardan.RangeError, "above 0", lambda: cardan.analyze("eros", 0, 2))
        self.fails(TypeError, "whole number", lambda: cardan.analyze("eros", 0.1, 2.0))
        self.fails(cardan.FormatError, "did you mean 'latency'", lambda: cardan.analyze({"algorithm": "eros", "latensy": 2}, 0.1))
        self.fails(cardan.Unsupported, "", lambda: cardan.analyze("rls", 0.1, 2))
        self.fails(cardan.RangeError, "rise", lambda: cardan.analyze("foh", 0.1, 2, omega=[3, 1]))
        self.fails(cardan.RangeError, "lower one first", lambda: cardan.design(step=0.1, band=(3, 1), k=2))
        self.fails(cardan.RangeError, "constant", lambda: cardan.design(step=0.1, signal=np.zeros(100), k=2))
        self.fails(cardan.RangeError, "nan", lambda: cardan.design(step=0.1, signal=[1, math.nan] * 50, k=2))
        self.fails(cardan.RangeError, "expected one of moment", lambda: cardan.design("best", step=0.1, band=3, k=1))
        self.fails(TypeError, "weights", lambda: cardan.design("optimal", step=0.1, band=3, k=1, omega=2))
        self.fails(cardan.RangeError, "two algorithms", lambda: cardan.compensate([1, 2], 1, 0, ["zoh", "zoh"]))
        self.fails(cardan.RangeError, "noise is nan", lambda: cardan.design(step=0.1, band=3, k=1, noise=math.nan))
        self.fails(cardan.RangeError, "segment", lambda: cardan.spectrum([1, 2], 0.1))


class Loops(Case):
    def test_margins_of_an_integrator_with_a_hold(self):
        """L = 2/s zoh: |G| = sinc, its phase that of half a step; the phase margin is 90 - omega (k + 1/2) step."""
        loop = cardan.analyze_loop({"loop": 1, "step": 0.01, "latency": 4, "transfers": [{"num": [2], "den": [0, 1]}],
                                    "elements": ["zoh"]})
        self.assertTrue(loop.stable)
        self.assertEqual(loop.unstable, 0)
        crossing = float(loop.phase_margins[0][1])
        self.assertAlmostEqual(2 / crossing * np.sinc(crossing * 0.01 / 2 / np.pi), 1, 9)
        self.assertAlmostEqual(loop.phase_margin, 90 - math.degrees(crossing * 0.045), 6)
        self.assertAlmostEqual(loop.delay_margin, math.radians(loop.phase_margin) / crossing, 9)
        at = np.argmin(np.abs(loop.omega - 2))
        w = loop.omega[at]
        x = 0.01 * w
        g = 2 / (1j * w) * np.exp(-4j * x) * (1 - np.exp(-1j * x)) / (1j * x)
        self.assertLess(abs(loop.L[at] - g), 1e-9)
        self.assertAlmostEqual(loop.min_distance, float(np.abs(1 + loop.L).min()), 3)
        late = cardan.analyze_loop({"loop": 1, "step": 0.01, "latency": 4, "transfers": [{"num": [2], "den": [0, 1]}],
                                    "elements": ["zoh"]}, latency=0.8)
        self.assertFalse(late.stable)

    def test_a_system_is_that_of_the_command(self):
        links = "".join(f"  - {{ from: {a}, to: {b}, coupling: {{ algorithm: foh, latency: 1 }} }}\n"
                        for a, b in (("a.f", "b.f"), ("b.x2", "a.x2"), ("b.v2", "a.v2")))
        self.write("s.yaml", f"cardan: 1\nunits: {{ a: {{ fmu: {FMUS}/lo_fd1.fmu }}, b: {{ fmu: {FMUS}/lo_fd2.fmu }} }}\n"
                             f"connections:\n{links}run: {{ step: 1 ms, stop: 1 s }}\n")
        for at in ((), ("--at", "0.5s")):
            j = command("coupling", "analyze", "s.yaml", *at)
            loop = cardan.analyze_loop(cardan.System("s.yaml"), at=0.5 if at else None)
            self.assertEqual(loop.stable, j["stable"])
            self.assertEqual([loop.min_distance, loop.min_omega], j["min_distance"])
            shown = [[z.real, z.imag] for z in loop.modes[:len(j["modes"]["after"])]]
            self.assertEqual(shown, j["modes"]["after"][:len(shown)])
        stable = cardan.analyze_loop(cardan.System("s.yaml"), k=0)
        self.assertLess(stable.modes[0].real, loop.modes[0].real)

    def test_mistakes(self):
        self.fails(cardan.NotFound, "No such file", lambda: cardan.analyze_loop("nowhere.yaml"))
        self.fails(cardan.FormatError, "step", lambda: cardan.analyze_loop({"loop": 1}))
        self.fails(TypeError, "object", lambda: cardan.analyze_loop({"loop": object()}))
        self.fails(cardan.RangeError, "no time", lambda: cardan.analyze_loop({"loop": 1}, at=1))
        one = {"loop": 1, "step": 0.01, "latency": 4, "transfers": [{"num": [2], "den": [0, 1]}]}
        self.fails(cardan.NotFound, "did you mean", lambda: cardan.analyze_loop({**one, "elements": ["zohh"]}))
        self.fails(cardan.NotFound, "nix.yaml", lambda: cardan.analyze_loop({**one, "elements": ["nix.yaml"]}))


class Circuits(Case):
    def test_a_low_pass_is_the_exponential(self):
        c = cardan.Circuit(self.write("rc.cir", RC), R=500)
        self.assertEqual((c.inputs, c.outputs, c.nodes), (["u"], ["y"], ["in", "out"]))
        run = c.run(signals=["y", "i(R1)"], inputs={"U": 2})
        self.assertLess(np.abs(run["y"] - 2 * (1 - np.exp(-run["t"] / 5e-4))).max(), 1e-3)
        self.assertEqual(run.units, {"y": "V", "i(R1)": "A"})
        self.assertEqual(c.run(every=100, start=1e-3)["t"].round(9).tolist(), [0.001, 0.002, 0.003, 0.004, 0.005])
        self.assertLess(c.run(variable=True).steps, 200)
        exact = c.run(accuracy=1e-4)
        self.assertLess(np.abs(exact["y"] - (1 - np.exp(-exact["t"] / 5e-4))).max(), 1e-4)

    def test_an_input_moves_along_lines(self):
        c = cardan.Circuit(self.write("rc.cir", RC))
        t = np.linspace(0, 5e-3, 7)
        y = c.run(inputs={"u": (t, 1000 * t)})["y"][-1]
        self.assertAlmostEqual(float(y), 1000 * (5e-3 - 1e-3 * (1 - math.exp(-5))), 5)
        np.savetxt("in.csv", np.c_[t, 1000 * t], delimiter=",", header="time,u", comments="", fmt="%.17g")
        self.assertEqual(float(y), command("circuit", "rc.cir", "--input", "in.csv", "--quiet")["signals"][0]["final"])

    def test_examples_are_the_command_s_to_the_last_bit(self):
        folder = os.path.join(ROOT, "examples", "circuits")
        for name in ("rectifier.cir", "rlc.cir", "ladder.cir"):
            file = os.path.join(folder, name)
            subprocess.run([os.path.join(BUILD, "cardan"), "circuit", file, "-o", "o.csv", "--quiet"], check=True)
            self.assertTrue(cardan.compare(dict(cardan.Circuit(file).run()), "o.csv", relative=0, absolute=0))

    def test_mistakes(self):
        file = self.write("rc.cir", RC)
        c = cardan.Circuit(file)
        self.fails(cardan.NotFound, "did you mean 'out'", lambda: c.run(signals=["v(otu)"]))
        self.fails(cardan.NotFound, "no .param", lambda: cardan.Circuit(file, Q=3))
        self.fails(cardan.NotFound, "nowhere", lambda: cardan.Circuit("nowhere.cir"))
        self.fails(cardan.NotFound, "no input 'v'", lambda: c.run(inputs={"v": 1}))
        self.fails(cardan.RangeError, "rising", lambda: c.run(inputs={"u": ([0, 0], [1, 2])}))
        self.fails(cardan.RangeError, "no number", lambda: c.run(inputs={"u": math.nan}))
        self.fails(cardan.RangeError, "fixed step", lambda: c.run(inputs={"u": ([0, 1], [1, 2])}, variable=True))
        self.fails(cardan.RangeError, "expected one of bdf1", lambda: c.run(method="euler"))
        self.fails(cardan.RangeError, "above 0", lambda: c.run(stop=-1))
        self.fails(TypeError, "seconds", lambda: c.run(stop="1 s"))
        self.fails(cardan.RangeError, "at most", lambda: c.run(step=1e-300))
        self.fails(cardan.RangeError, "no more than stop", lambda: c.run(step=10, stop=1))
        self.fails(cardan.RangeError, "2 times and 1 values", lambda: c.run(inputs={"u": ([0, 1], [1])}))
        self.fails(cardan.NotFound, "did you mean", lambda: c.run()["yy"])
        c.close()
        self.fails(cardan.StateError, "closed", c.run)


class Twins(Case):
    def test_estimates_are_those_of_the_command(self):
        self.write("rc.cir", CAPACITIES)
        truth = cardan.Circuit("rc.cir").run()
        noise = np.random.default_rng(3).normal(0, 0.5, (2, len(truth["t"])))
        t, measured = truth["t"][1:], {"T1": (truth["T1"] + noise[0])[1:], "T2": (truth["T2"] + noise[1])[1:]}
        np.savetxt("m.csv", np.c_[t, measured["T1"], measured["T2"]], delimiter=",", header="time,T1,T2", comments="", fmt="%.17g")
        with open("twin.yaml", "w") as f:
            json.dump(TWIN, f)
        command("twin", "run", "twin.yaml", "--measurements", "m.csv", "-o", "e.csv")
        theirs = np.genfromtxt("e.csv", delimiter=",", names=True, deletechars="")
        for source in ("twin.yaml", TWIN):
            found = cardan.Twin(source).run(t, measured)
            for name in ("T1", "T3", "r1"):
                self.assertTrue((found[name] == theirs[name]).all(), name)
        self.assertAlmostEqual(float(found["r1"][-1]), 1, 1)
        self.assertLess(abs(found["r1"][-1] - 1), 4 * found["r1.sd"][-1])

    def test_a_step_takes_what_there_is(self):
        self.write("rc.cir", CAPACITIES)
        twin = cardan.Twin(TWIN)
        before = twin.estimates["T1"]
        now = twin.step({"T1": 9.0})
        self.assertLess(now["T1"].sd, before.sd)
        self.assertEqual((twin.sensor("T1")["used"], twin.sensor("T2")["missing"]), (1, 1))
        twin.step([9.0, math.nan], time=0.035)
        self.assertAlmostEqual(twin.time, 0.035, 12)
        self.fails(cardan.NotFound, "no sensor 'T9'", lambda: twin.step({"T9": 1}))
        self.fails(cardan.RangeError, "expected 2: T1, T2", lambda: twin.step([1]))
        self.fails(cardan.RangeError, "infinite", lambda: twin.step([math.inf, 1]))
        self.fails(cardan.RangeError, "expected after", lambda: twin.step([1, 1], time=0.01))
        self.fails(cardan.RangeError, "expected 3", lambda: twin.run([1, 2, 3], {"T1": [1, 2]}))
        self.fails(cardan.FormatError, "did you mean sensors", lambda: cardan.Twin({**TWIN, "sensrs": {}}))
        self.fails(cardan.NotFound, "nowhere", lambda: cardan.Twin("nowhere.yaml"))
        twin.close()
        self.fails(cardan.StateError, "closed", lambda: twin.step([1, 1]))
        self.fails(cardan.StateError, "closed", lambda: twin.estimates)


class Papers(Case):
    def test_a_table_of_a_paper(self):
        table = cardan.reproduce("baumann2024", "table1.*")
        self.assertTrue(table.ok)
        row = next(r for r in table if r["id"] == "table1.zoh.k0.magnitude")
        # ZOH: |sinc(x / 2)| = 0.97 (Baumann 2024, table 1: 27.13 % of Nyquist's frequency)
        self.assertAlmostEqual(np.sinc(row["ours"] / 100 / 2), 0.97, 9)
        self.assertIn("table1.zoh.k0.magnitude", table._repr_html_())
        self.fails(cardan.CardanError, "baumann2024", lambda: cardan.reproduce("nobody1900"))
        self.fails(cardan.CardanError, "fits no row", lambda: cardan.reproduce("baumann2024", "nix.*"))
        self.fails(cardan.NotFound, "no paper", lambda: cardan.reproduce("--help"))


class Parts(Case):
    """Systems: arrays as recordings, arrays in units, and what is said where a thing is added."""

    def test_arrays_are_recordings(self):
        t = np.array([0.0, 1.0, 2.0])
        s = cardan.System().add("r", replay={"t": t, "a": [0, 10, 0], "b": 2 * t}, interpolation="linear").options(step=0.5, stop=2)
        folder = s._folder
        run = s.run()
        self.assertEqual(run["r.a"].tolist(), [0, 5, 10, 5, 0])
        self.assertEqual(run["r.b"].tolist(), [0, 1, 2, 3, 4])
        del run, s
        self.assertFalse(os.path.exists(folder))
        new = cardan.System
        self.fails(cardan.RangeError, "shape", lambda: new().add("r", replay={"t": t, "y": [1, 2]}))
        self.fails(cardan.NotFound, "no times", lambda: new().add("r", replay={"y": t}))
        self.fails(TypeError, "complex", lambda: new().add("r", replay={"t": t, "y": 1j * t}))
        self.fails(TypeError, "datetime", lambda: new().add("r", replay={"t": t.astype("datetime64[s]"), "y": t}))
        self.fails(cardan.RangeError, "no rows", lambda: new().add("r", replay={"t": [], "y": []}))
        self.fails(cardan.RangeError, "ascending", lambda: new().add("r", replay={"t": t[::-1], "y": t}))
        self.fails(cardan.RangeError, "ascending", lambda: cardan.compare({"t": [0, math.nan, 2], "y": t}, {"t": t, "y": t}))

    def test_arrays_in_units(self):
        @cardan.unit(outputs={"y": np.zeros(3), "sum": 0.0})
        def scale(u=np.ones(3), *, k=np.arange(3.0)):
            return {"y": k * u, "sum": u.sum()}

        @cardan.unit(inputs={"u": np.zeros(3)}, outputs={"x": [1, 2, 3]})
        class Integral:
            def step(self, t, h):
                self.x = self.x + h * self.u

        s = cardan.System().add("s", scale, parameters={"k": [1, 2, 4]}).add("i", Integral).options(step=0.5, stop=2)
        s.connect("s.y", "i.u", predict="hold")
        with s.start() as run:
            run.set("s.u", [1, 2, 3])
            run.advance(1)
            warm = run.save()
            run.advance(2)
            ends = run.get("i.x")
            run.restore(warm)
            run.advance(2)
            self.assertEqual(run.get("i.x").tolist(), ends.tolist())
            # Three steps of 1/2 with k u; in the first of them the connection holds what was there before, k.
            self.assertEqual(ends.tolist(), [1 + 0.5 * 1 + 1, 2 + 0.5 * 2 + 4, 3 + 0.5 * 4 + 12])
            self.assertEqual(run.get("s.sum"), 6.0)
            self.fails(cardan.RangeError, "expected 3", lambda: run.set("s.u", [1, 2]))

        short = cardan.unit(outputs={"y": np.zeros(3)})(lambda u: [1, 2])
        with self.assertRaises(cardan.UnitError) as caught:
            cardan.System().add("f", short).run(stop=1, step=0.1)
        self.assertIsInstance(caught.exception.__cause__, ValueError)
        self.assertIn("expected (3,)", str(caught.exception))
        self.fails(ValueError, "one dimension", lambda: cardan.unit(outputs={"y": np.zeros((2, 2))})(lambda u: u))

    def test_a_part_is_looked_at_where_it_is_added(self):
        new = cardan.System
        self.fails(cardan.FormatError, "did you mean 'fmu'", lambda: new().add("a", fmuu="x"), "units.a.fmuu")
        self.fails(cardan.FormatError, "frequency", lambda: new().add("a", signal={"shape": "sine"}), "units.a.signal")
        s = new().connect("a.y", "b.u")
        self.fails(cardan.FormatError, "did you mean 'gain'", lambda: s.connect("a.y", "b.u", gainn=1), "connections[1].gainn")
        self.fails(cardan.FormatError, "unit.variable", lambda: s.connect("ay", "b.u"))
        self.fails(cardan.NotFound, "'eros'", lambda: s.connect("a.y", "b.v", coupling="eross"), "connections[1].coupling")
        self.fails(cardan.CardanError, "parsec", lambda: s.options(stop="3 parsec"), "run.stop")
        self.fails(cardan.CardanError, "did you mean", lambda: s.options(shceme="jacobi"), "run.shceme")
        self.fails(cardan.CardanError, "probe", lambda: s.bond("a.y", "b.y", correct="x"), "bonds[0].correct")
        self.assertEqual((len(s._connections), s._options, s._bonds), (1, {}, []))  # nothing of it stays

    def test_lines_of_the_library_go_to_logging(self):
        with self.assertLogs("cardan", logging.WARNING) as seen:
            run = cardan.System().add("f", cardan.unit(lambda u: u)).run(step=0.1, stop=1)
        self.assertIn("f.u is not connected", "\n".join(seen.output))
        self.assertIn("f.u is not connected", run.log[0][1])


if __name__ == "__main__":
    unittest.main(verbosity=1)
