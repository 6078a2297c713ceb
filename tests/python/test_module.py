"""The Python module: what it computes against the command and against closed forms, and what it says when misused.

    python test_module.py BUILD_FOLDER
"""
import copy
import csv
import doctest
import functools
import gc
import importlib
import math
import os
import pickle
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings

import numpy as np

BUILD = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else "build"
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
import cardan  # noqa: E402
from cardan import _lib  # noqa: E402

OSCILLATOR = os.path.join(ROOT, "examples", "oscillator", "oscillator.yaml")
FMUS = os.path.join(BUILD, "fmus", "fmi2")


@cardan.unit(inputs=["u"], outputs=["y"], parameters={"T": 0.5})
class Lag:
    """T y' = u - y by explicit Euler."""

    def initialize(self, t):
        self.y = 0.0
        self.seen = []

    def step(self, t, h):
        self.seen.append(t)
        self.y += h * (self.u - self.y) / self.T


def lag_system(**more):
    s = cardan.System()
    s.add("source", signal={"shape": "constant", "value": 2})
    s.add("lag", Lag, **more)
    s.connect("source.y", "lag.u", predict="hold")
    return s.options(step=0.1, stop=1)


class Layout(unittest.TestCase):
    @unittest.skipUnless(shutil.which("cc"), "needs a compiler")
    def test_structs_are_those_of_the_headers(self):
        for name in ("_analysis", "_circuit", "_show", "_tools"):
            importlib.import_module("cardan." + name)
        lines, expected = [], []
        for name, struct in [*_lib.STRUCTS.items(), *_lib.PREFIXES.items()]:
            if name in _lib.STRUCTS:
                lines.append(f'printf("%zu\\n", sizeof({name}));')
                expected.append(f"{name} {_lib.c.sizeof(struct)}")
            for field, _ in struct._fields_:
                lines.append(f'printf("%zu %zu\\n", offsetof({name}, {field}), sizeof((({name}*)0)->{field}));')
                f = getattr(struct, field)
                expected.append(f"{name}.{field} {f.offset} {f.size}")
        with tempfile.TemporaryDirectory() as folder:
            source, program = os.path.join(folder, "layout.c"), os.path.join(folder, "layout")
            with open(source, "w") as f:
                f.write("#include <cardan/cardan.h>\n#include <stdio.h>\nint main(void)\n{\n" + "\n".join(lines)
                        + "\nreturn 0;\n}\n")
            subprocess.run(["cc", "-std=c17", "-I", os.path.join(ROOT, "include"), source, "-o", program], check=True)
            found = subprocess.run([program], check=True, capture_output=True, text=True).stdout.split("\n")
        self.assertEqual([e.split(" ", 1)[1] for e in expected], found[:-1])


def grow(me, t, h):
    """x'' = 0.1 x' + f, nearly."""
    for _ in range(4):
        me.v += h / 4 * (me.f + 0.1 * me.v)
        me.x += h / 4 * me.v


class Runs(unittest.TestCase):
    def test_a_run_is_that_of_the_command(self):
        run = cardan.System(OSCILLATOR).run(stop=0.5)
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "o.csv")
            subprocess.run([os.path.join(BUILD, "cardan"), "run", OSCILLATOR, "--stop-time", "0.5", "--output", out],
                           check=True, capture_output=True)
            with open(out) as f:
                rows = list(csv.reader(f))
            self.assertTrue(cardan.compare(run, out, relative=0, absolute=0))
        names = [n.split(" [")[0] for n in rows[0]]
        column = [float(r[names.index("first.f")]) for r in rows[1:]]
        self.assertEqual(column, run["first.f"].tolist())
        self.assertTrue(run.verdict.ok)
        self.assertEqual(run.ended, "stop time")

    def test_what_ends_with_exit_code_3_is_not_ok(self):
        spoilt = [OSCILLATOR, {"step": 0.1, "stop": 20}]  # the estimate says it; nobody has stopped it
        unknown = cardan.System()  # nobody knows the units: it swings up by what it is
        mass = cardan.unit(type("Mass", (), {"initialize": lambda me, t: setattr(me, "v", 0.0), "step": grow}),
                           inputs=["f"], outputs={"x": 1.0})
        spring = cardan.unit(type("Spring", (), {"step": lambda me, t, h: setattr(me, "f", -4 * me.x)}),
                             inputs=["x"], outputs={"f": -4.0})
        unknown.add("mass", mass).add("spring", spring).connect("mass.x", "spring.x").connect("spring.f", "mass.f")
        for system, options in ((cardan.System(spoilt[0]), spoilt[1]), (unknown, {"step": 0.02, "stop": 160})):
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                run = system.run(**options)
            self.assertFalse(run.verdict.ok, run.verdict.document)
            self.assertEqual([w.category for w in said], [cardan.VerdictWarning])
            self.assertRegex(str(said[0].message), "of its RMS|thousand")
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([os.path.join(BUILD, "cardan"), "run", OSCILLATOR, "--step", "0.1", "--stop-time", "20",
                                   "--output", os.path.join(folder, "o.csv")], capture_output=True)
        self.assertEqual(done.returncode, 3)

    def test_an_array_is_the_library_s_memory_and_outlives_its_names(self):
        run = cardan.System(OSCILLATOR).run(stop=0.2)
        a, b = run["first.f"], run["first.f"]
        at = run._table().columns[run.names.index("first.f")].values
        self.assertEqual(a.ctypes.data, at)
        self.assertEqual(b.ctypes.data, at)
        self.assertFalse(a.flags.writeable)
        copy = a.copy()
        del run, b
        gc.collect()
        for _ in range(20):
            np.random.rand(1000)
        self.assertTrue((a == copy).all())

    def test_a_class_is_the_recursion_it_says(self):
        run = lag_system(parameters={"T": 0.25}).run()
        y = [0.0]
        for _ in range(10):
            y.append(y[-1] + 0.1 * (2 - y[-1]) / 0.25)
        self.assertEqual(run["lag.y"].tolist(), y)

    def test_a_function_follows_its_inputs_at_once(self):
        s = cardan.System()
        s.add("t", signal={"shape": "ramp", "duration": 1})
        s.add("f", cardan.unit(outputs=["a", "b"])(lambda t, u, *, k=3.0: (k * u, t)))
        s.connect("t.y", "f.u").set("f.k", 4).record("f.*", "t.y")
        run = s.run(step=0.125, stop=0.5)
        self.assertEqual(run["f.b"].tolist(), run["t"].tolist())
        self.assertEqual(run["f.a"].tolist(), (4 * run["f.u"]).tolist())
        self.assertGreater(run["f.u"][-1], 0.4)

    def test_values_are_set_and_read_between_steps(self):
        s = cardan.System().add("lag", Lag).options(step=0.1, stop=1)
        with s.start() as run:
            y = 0.0
            for t in run.steps():
                run.set("lag.u", t)
                self.assertEqual(run.get("lag.y"), y)
                y += 0.1 * (t - y) / 0.5
        self.assertEqual(run["lag.y"][-1], y)
        with self.assertRaises(cardan.StateError):
            run.set("lag.u", 1)

    def test_pandas_if_it_is_there(self):
        try:
            import pandas  # noqa: F401
        except ImportError:
            self.skipTest("pandas is not installed")
        frame = lag_system().run().to_pandas()
        self.assertEqual(frame["lag.y"].iloc[0], 0)
        with tempfile.TemporaryDirectory() as folder:  # a unit that is recorded at times of its own
            path = os.path.join(folder, "rates.yaml")
            with open(path, "w", encoding="utf-8") as f:
                f.write("cardan: 1\nunits:\n  p: { signal: { shape: sine, frequency: 2 } }\n"
                        f"  slow: {{ fmu: {FMUS}/lo_fd2.fmu, step: 100 ms }}\n"
                        f"run: {{ step: 10 ms, stop: 1 s }}\nresults: {folder}/run.mf4\n")
            run = cardan.System(path).run()
            frame = run.to_pandas()
        self.assertEqual((len(frame), frame["slow.x2"].count(), frame["p.y"].count()), (101, 11, 101))
        self.assertEqual(frame["slow.x2"].dropna().index.tolist(), run.times("slow.x2").tolist())

    def test_two_systems_run_in_two_threads(self):
        found = {}

        def go(k):
            found[k] = cardan.System(OSCILLATOR).run(stop=1)["first.f"].tobytes()

        threads = [threading.Thread(target=go, args=(k,)) for k in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(found[0], found[1])

    def interrupted(self, f):
        """KeyboardInterrupt leaves it, as by Ctrl-C a moment later."""
        def interrupt(*_):
            raise KeyboardInterrupt
        before = signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            self.assertRaises(KeyboardInterrupt, f)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def test_many_steps_at_once_can_be_interrupted(self):
        push = cardan.System().add("push", signal={"shape": "sine", "frequency": 2}).options(step=0.1, stop=1e9)
        with push.start(snapshots=False) as run:
            self.interrupted(lambda: run.advance(10**9))
            here = run.time
            self.assertTrue(run.advance())  # it stands where it was, and goes on
            self.assertAlmostEqual(run.time, here + 0.1, 6)
            run.cancel()

    @unittest.skipUnless(_lib.fast, "ctypes forgets exceptions before the first line of a callback")
    def test_a_unit_in_python_can_be_interrupted_wherever_it_is(self):
        """Also before the first line of its method, where most interrupts come: none is lost, and no step is left out."""
        @cardan.unit(inputs=["u"], outputs=["n"])
        class Count:
            def step(self, t, h):
                self.n += 1

        for _ in range(5):
            run = cardan.System().add("count", Count).start(step=0.125, stop=1e7, snapshots=False)
            self.interrupted(run.complete)
            n, t = run["count.n"], run["t"]
            self.assertTrue(len(n) > 10 and (n == 8 * t).all())

    def test_steps_come_in_any_portions(self):
        found = []
        for portions in ([1000], [1] * 1000, [257, 300, 443]):
            with lag_system().start(stop=100) as run:
                self.assertEqual([run.advance(n) for n in portions], [True] * (len(portions) - 1) + [False])
                self.assertFalse(run.advance(300))
            found.append(run["lag.y"].tobytes())
        self.assertEqual(len(set(found)), 1)

    def test_another_thread_cancels(self):
        s = cardan.System().add("lag", Lag).options(step=1e-4, stop=1e6)
        with s.start(snapshots=False) as run:
            threading.Timer(0.05, run.cancel).start()
            run.complete()
        self.assertEqual(run.ended, "interrupted")


class OneAtATime(unittest.TestCase):
    def refused(self, run, state):
        """Everything that would go into the library beside who is there; a run can be watched and cancelled."""
        self.assertEqual((run.time, run.ended), (state.seen, ""))
        calls = [run.advance, lambda: run.get("lag.y"), lambda: run.set("lag.T", 1), run.finish, run.complete, run.reset, run.save,
                 run.close, run._repr_html_, lambda: run["lag.y"], lambda: run.times("lag.y"), lambda: run.names, lambda: run.units,
                 lambda: run.verdict, lambda: run.description, lambda: run.restore(state), lambda: run.write("x.csv"),
                 lambda: cardan.compare(run, run), lambda: state.time, lambda: run.save("x.state")]
        said = []
        for call in calls:
            with self.assertRaises(cardan.StateError) as caught:
                call()
            said.append(str(caught.exception))
        self.assertEqual(len(set(said)), 1)
        self.assertIn("one call at a time", said[0])

    def busy(self, within, until):
        """A run whose unit calls `within(run, state)` in its fifth step."""
        failed = []

        class Curious:
            def initialize(self, t):
                self.n = 0

            def step(self, t, h):
                self.n += 1
                if self.n == 5:
                    try:
                        box[1].seen = box[0].time
                        within(*box)
                    except BaseException as e:
                        failed.append(e)
        s = lag_system().add("z", cardan.unit(inputs=["u"], outputs=["y"])(Curious))
        run = s.start()
        box = [run, run.save()]
        run.advance(8)
        self.assertEqual(failed, [])
        self.assertAlmostEqual(run.time, until)
        return run

    def test_a_unit_does_not_call_into_its_own_run(self):
        self.busy(self.refused, 0.8).complete()

    def test_a_second_thread_is_refused_and_may_watch_and_cancel(self):
        def within(run, state):
            failed = []

            def other():
                try:
                    self.refused(run, state)
                    run.cancel()
                except BaseException as e:
                    failed.append(e)
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
            self.assertEqual(failed, [])
        self.assertEqual(self.busy(within, 0.5).ended, "interrupted")

    def test_a_state_that_goes_while_its_run_is_busy_is_freed_later(self):
        run = self.busy(lambda run, state: None, 0.8)
        lost = run.save()
        with run._gate:
            del lost
            gc.collect()
            self.assertEqual(len(run._lost), 1)
        run.save()
        self.assertEqual(run._lost, [])

    def test_a_run_that_nobody_knows_any_more_goes_on_to_the_end_of_its_step(self):
        holder = []
        run = lag_system().add("z", cardan.unit(lambda u: holder.clear() or 0.0 * gc.collect())).start()
        advance = run.advance
        holder.append(run)
        del run
        self.assertTrue(advance(3))
        self.assertEqual(holder, [])
        del advance
        gc.collect()

    def test_arrays_of_a_closed_run_stay_what_they_are(self):
        run = cardan.System(OSCILLATOR).run(stop=0.2)
        a = run["first.f"]
        copy = a.copy()
        run.close()
        for _ in range(3):
            cardan.System(OSCILLATOR).run(stop=0.2).close()
        self.assertEqual(a.tobytes(), copy.tobytes())

    def test_what_owns_memory_is_not_copied(self):
        run = lag_system().start()
        for of in (run, run.save()):
            for f in (pickle.dumps, copy.copy, copy.deepcopy):
                self.assertRaises(TypeError, f, of)
        self.assertRaises(TypeError, cardan.State)
        run.close()

    def test_a_forked_process_leaves_runs_alone(self):
        """Threads of a run are not in the child, and its units are the parent's."""
        whole = cardan.System(OSCILLATOR).options(isolate="all").run(stop=0.1)
        runs = [cardan.System(OSCILLATOR).options(isolate="all").start(stop=0.1),
                cardan.System(OSCILLATOR).options(threads=2).start(stop=0.1)]
        for run in runs:
            run.advance(10)
        state, advance = runs[1].save(), runs[1].advance
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            try:
                for call in (runs[0].advance, runs[0].finish, advance, runs[1].save, lambda: runs[1].restore(state)):
                    try:
                        call()
                        os._exit(1)
                    except cardan.StateError as e:
                        if "forked" not in str(e):
                            os._exit(2)
                if len(whole["first.f"]) != 101 or not whole.verdict.ok or runs[0].time != 0.01:
                    os._exit(3)
                runs[0].close()
                runs.clear()
                del whole, state, advance, run
                gc.collect()
                again = cardan.System(OSCILLATOR).options(isolate="all").run(stop=0.1)
                os._exit(0 if again.ended == "stop time" else 4)
            finally:
                os._exit(5)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        for run in runs:
            run.complete()
            self.assertEqual(run["first.f"].tobytes(), whole["first.f"].tobytes())

    def test_failures_reach_other_processes(self):
        s = cardan.System().add("bad", cardan.unit(lambda t, u: 1 / 0))
        with self.assertRaises(cardan.UnitError) as caught:
            s.run(step=0.1, stop=1)
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((type(again), str(again), again.run), (cardan.UnitError, str(caught.exception), None))


class Fast(unittest.TestCase):
    @unittest.skipUnless(_lib.fast, "no headers of Python when it was built")
    def test_ctypes_alone_computes_the_same_bits(self):
        code = (f"import sys; sys.argv = ['x', {BUILD!r}]; sys.path.insert(0, {HERE!r})\n"
                "from test_module import *\nfrom cardan import _lib\nassert not _lib.fast\n"
                "s = lag_system().add('half', cardan.unit(lambda u, *, k=0.5: k * u)).connect('lag.y', 'half.u')\n"
                "with s.start() as r:\n    for t in r.steps(): r.set('lag.T', 0.3 + t); r.get('half.y')\n"
                "print({n: r[n].tobytes().hex() for n in r.names})")
        texts = [subprocess.run([sys.executable, "-c", code.replace("not _lib", "not _lib" if off else "_lib")],
                                capture_output=True, text=True,
                                env={**os.environ, "CARDAN_NO_FAST": off,
                                     "PYTHONPATH": os.path.join(ROOT, "python")}) for off in ("", "1")]
        self.assertEqual([t.stderr for t in texts], ["", ""])
        self.assertEqual(texts[0].stdout, texts[1].stdout)
        self.assertIn("half.y", texts[0].stdout)

    def test_methods_of_a_closed_or_lost_run_raise(self):
        run = lag_system().start()
        advance, get, put = run.advance, run.get, run.set
        self.assertTrue(advance())
        self.assertEqual(get("source.y"), 2.0)
        run.close()
        for call in (advance, lambda: get("source.y"), lambda: put("lag.T", 1.0), lambda: get("nothing")):
            self.assertRaises(cardan.StateError, call)
        del run
        gc.collect()
        for call in (advance, lambda: get("source.y"), lambda: put("lag.T", 1.0)):
            self.assertRaises((cardan.StateError, RuntimeError), call)

    def test_a_function_that_fails_ends_the_run_at_once(self):
        calls = []

        def bad(u):
            calls.append(u)
            if len(calls) > 5:
                raise ValueError("no more")
            return u
        s = cardan.System().add("p", signal={"shape": "constant", "value": 1}).add("bad", cardan.unit(bad))
        s.connect("p.y", "bad.u", predict="hold").options(step=0.1, stop=100)
        with self.assertRaises(cardan.UnitError) as caught:
            s.run()
        self.assertIsInstance(caught.exception.__cause__, ValueError)
        self.assertLess(len(calls), 9)


class GoingBack(unittest.TestCase):
    def check(self, system, **options):
        whole = system.run(**options)
        with system.start(**options) as run:
            run.advance(7)
            state = run.save()
            with run.branch():
                run.advance(5)
            self.assertEqual(run.time, state.time)
            while run.advance(3):
                pass
            run.restore(state)
            while run.advance():
                pass
            self.assertTrue(all(run[n].tobytes() == whole[n].tobytes() for n in whole.names))
            run.reset()
            self.assertEqual(len(run["t"]), 1)
            while run.advance(100):
                pass
        self.assertTrue(all(run[n].tobytes() == whole[n].tobytes() for n in whole.names))

    def test_fmus(self):
        self.check(cardan.System(OSCILLATOR), stop=0.1)

    def test_units_in_python_with_what_they_remember(self):
        self.check(lag_system(), stop=2)
        with lag_system().start() as run:
            run.advance(4)
            state = run.save()
            run.advance(4)
            run.restore(state)
            self.assertEqual(len(run._instances[0].object.seen), 4)

    def test_couplings_with_random_numbers(self):
        s = cardan.System(OSCILLATOR)
        s.connect("first.f", "second.f", coupling={"algorithm": "auto", "channel": {
            "delay": "2 ms", "jitter": "1 ms", "loss": "3 %"}})
        self.check(s, stop=0.2)

    def test_arrays_of_a_run_that_goes_on_are_copies(self):
        with lag_system().start() as run:
            run.advance(5)
            before = run["lag.y"]
            kept = before.copy()
            run.reset()
            run.set("lag.T", 0.1)
            run.advance(5)
            self.assertTrue((before == kept).all())

    def in_a_file(self, make, code, stop=0.2):
        """Resumed in this process and in another one: the same bits as an uninterrupted run."""
        with tempfile.TemporaryDirectory() as d:
            os.environ["CARDAN_STATE_KEY"] = os.path.join(d, "key")
            file = os.path.join(d, "state")
            with make().start(stop=stop) as run:
                run.advance(7)
                self.assertIsNone(run.save(file))
                while run.advance(5):
                    pass
            with make().resume(file, stop=stop) as again:
                while again.advance(3):
                    pass
            for n in run.names:
                self.assertEqual(run[n][8:].tobytes(), again[n].tobytes(), n)
            sentence = subprocess.run(
                [sys.executable, "-c", f"import sys; sys.argv = ['x', {BUILD!r}]; sys.path.insert(0, {HERE!r})\n"
                 f"from test_module import *\nwith {code}.resume({file!r}, stop={stop}) as r:\n"
                 "    r.complete()\nfor n in r.names: print(n, r[n].tobytes().hex())"],
                capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(cardan.__file__))})
            self.assertEqual(sentence.stderr, "")
            self.assertEqual(sentence.stdout.splitlines(), [f"{n} {again[n].tobytes().hex()}" for n in again.names])
            with open(file, "r+b") as f:
                f.seek(200)
                f.write(b"!")
            with self.assertRaises(cardan.FormatError) as e:
                make().resume(file)
            self.assertIn("was changed", str(e.exception))

    def test_files(self):
        self.in_a_file(lambda: cardan.System(OSCILLATOR), "cardan.System(OSCILLATOR)")
        self.in_a_file(lag_system, "lag_system()", stop=2)
        self.assertRaises(cardan.NotFound, lambda: lag_system().resume("/nowhere/state"))

    def test_an_object_that_cannot_be_pickled_runs_and_is_named_when_it_is_saved(self):
        class Locked(Lag.code):
            def initialize(self, t):
                super().initialize(t)
                self.lock = threading.Lock()
        s = cardan.System().add("shut", cardan.unit(inputs=["u"], outputs=["y"], parameters={"T": 0.5})(Locked))
        s.set("shut.u", 1).options(step=0.1, stop=1)
        with s.start() as run:
            run.advance(2)
            for call in (run.save, lambda: run.save("never.state"), run.reset, lambda: run.branch().__enter__()):
                with self.assertRaises(cardan.Unsupported) as caught:
                    call()
                self.assertIn("unit 'shut' cannot be saved", str(caught.exception))
                self.assertIsInstance(caught.exception.__cause__, TypeError)
            self.assertFalse(os.path.exists("never.state"))
            run.complete()
        self.assertEqual(run["shut.y"].tolist(), s.run()["shut.y"].tolist())

    def test_who_cannot_be_saved_is_named(self):
        with cardan.System().add("r", fmu=os.path.join(FMUS, "resource.fmu"), isolate="none").start() as run:
            try:
                run.save()
            except cardan.Unsupported as e:
                self.assertIn("unit 'r'", str(e))


class Shown(unittest.TestCase):
    def test_a_system_is_its_drawing_or_what_is_wrong_with_it(self):
        svg = cardan.System(OSCILLATOR)._repr_html_()
        self.assertTrue(svg.startswith("<svg") and svg.count('class="box"') == 2 and svg.count("marker-end") == 3, svg)
        ids = re.findall(r'id="([^"]+)"', svg + cardan.System(OSCILLATOR)._repr_html_())
        self.assertEqual(len(ids), len(set(ids)))  # of two drawings on one page
        self.assertIn("nowhere.yaml", cardan.System("nowhere.yaml")._repr_html_())
        self.assertIn("&lt;", cardan.System()._repr_html_())

    def test_a_run_is_its_verdict_and_plots(self):
        run = cardan.System(OSCILLATOR).run(stop=0.2)
        page = run._repr_html_()
        for part in ("guard calm", "second.v2 → first.v2", "<svg", "first.x1", "m/s"):
            self.assertIn(part, page)
        with lag_system().start() as begun:
            self.assertIn("going on", begun._repr_html_())
        begun.close()
        self.assertIn("closed", begun._repr_html_())

    def test_a_run_has_the_colour_of_its_report(self):
        """9 % of error by the estimate are no green bar."""
        two = cardan.System(OSCILLATOR)
        held = lag_system(parameters={"T": 5}).add("back", Lag).connect("lag.y", "back.u", predict="hold")
        loop = cardan.System().add("a", Lag).add("b", cardan.unit(lambda u: -0.5 * u)).options(step=0.1, stop=1)
        loop.connect("a.y", "b.u").connect("b.y", "a.u")
        loop.set("a.u", 1)
        runs = {"doubtful": [two.run(stop=2)], "good": [two.run(stop=0.1, step=1e-5)],
                None: [held.run(), loop.run(), two.run(stop=0.5, guard="off"), two.run(stop=0.1, monitor="none"),
                       two.run(stop=0.1, monitor="none", guard="off"), cardan.System().add("lag", Lag).run(stop=1, step=0.1)]}
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for expected, run in [(e, r) for e, rs in runs.items() for r in rs]:
                with open(run.show(os.path.join(folder, "r.html"), browser=False), encoding="utf-8") as f:
                    report = re.search(r'class="verdict (\w+)"', f.read()).group(1)
                self.assertEqual(run.verdict.state, report, run.verdict.document)
                self.assertIn(f"cardan.Verdict {report}", repr(run.verdict))
                if expected:
                    self.assertEqual(report, expected)
        page = runs["doubtful"][0]._repr_html_()
        self.assertIn("doubtful, guard calm, estimated error 9 % of RMS", page)
        self.assertIn("#d68910", page)
        self.assertIn("second.v2 is 9 % of its RMS", page)

    def test_a_run_becomes_files_and_a_report(self):
        run = cardan.System(OSCILLATOR).run(stop=0.2)
        with tempfile.TemporaryDirectory() as folder:
            for end in ("csv", "mf4", "mat"):
                path = os.path.join(folder, "run." + end)
                run.write(path)
                self.assertTrue(cardan.compare(run, path, relative=0, absolute=0))
            with open(run.show(os.path.join(folder, "report.html"), browser=False), encoding="utf-8") as f:
                text = f.read()
            self.assertIn("second.v2", text)
            self.assertIn("topology", text)
            with self.assertRaises(cardan.ReadWriteError):
                run.write(os.path.join(folder, "nowhere", "a.csv"))
            with self.assertRaises(cardan.Unsupported):
                run.write("a.xyz")
        with open(run.show(browser=False), "rb") as f:
            self.assertIn(b"</html>", f.read())

    def test_the_page_of_a_run(self):
        import urllib.request
        s = cardan.System().add("push", signal={"shape": "sine", "frequency": 2}).options(step="1 ms", stop=1)
        for system in (s, cardan.System(OSCILLATOR)):
            with system.live(browser=False, stop=0.5) as live:
                with urllib.request.urlopen(live.url) as page:
                    self.assertIn(b"<html", page.read())
                self.assertIn(live.url, live._repr_html_())
            self.assertIsNotNone(live._process.returncode)
        with self.assertRaises(cardan.Unsupported):
            lag_system().live()
        with self.assertRaises(cardan.RangeError):
            cardan.System("nowhere.yaml").live(browser=False)
        with self.assertRaises(cardan.Unsupported):
            cardan.System(OSCILLATOR).add("x", signal={"shape": "constant"}).live()

    def test_progress_on_a_terminal_goes_when_it_is_done(self):
        import contextlib
        import io
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            cardan.System(OSCILLATOR).run(stop=0.2, progress=True)
            shown = said.getvalue()
            cardan.System(OSCILLATOR).run(stop=0.2)
        self.assertIn("of 0.2 s", shown)
        self.assertTrue(shown.endswith("\r\x1b[K"))
        self.assertEqual(said.getvalue(), shown)

    def test_xarray_and_matplotlib_if_they_are_there(self):
        run = cardan.System(OSCILLATOR).run(stop=0.1)
        try:
            import matplotlib
            import xarray  # noqa: F401
        except ImportError:
            self.skipTest("xarray or matplotlib is not installed")
        data = run.to_xarray()
        self.assertEqual(data["first.f"].attrs["units"], "N")
        self.assertTrue((data["first.f"].values == run["first.f"]).all())
        matplotlib.use("Agg")
        self.assertEqual(len(run.plot("first.f", "first.x1", "second.x2")), 2)
        with self.assertRaises(cardan.NotFound):
            run.plot("first.zz")

    def test_what_is_not_installed_is_named(self):
        from unittest import mock
        run = lag_system().run()
        for package, call in (("pandas", run.to_pandas), ("xarray", run.to_xarray), ("matplotlib", run.plot)):
            hidden = {k: None for k in [package, *[m for m in sys.modules if m.startswith(package + ".")]]}
            with mock.patch.dict(sys.modules, {**hidden, package: None}):
                with self.assertRaises(ImportError) as caught:
                    call()
            self.assertIn(f"pip install {package}", str(caught.exception))
        code = "import sys; sys.modules['gymnasium'] = None\ntry: import cardan.gym\nexcept ImportError as e: print(e)"
        said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        self.assertIn("pip install gymnasium", said)


class Mistakes(unittest.TestCase):
    def fails(self, kind, part, f):
        with self.assertRaises(kind) as caught:
            f()
        self.assertIn(part, str(caught.exception))
        return caught.exception

    def test_names_and_places(self):
        self.fails(cardan.NotFound, "nowhere.yaml", lambda: cardan.System("nowhere.yaml").run())
        s = lag_system().connect("lag.y", "source.y")
        e = self.fails(cardan.CardanError, "source.y", s.run)
        s = lag_system().connect("lag.yy", "lag.u")
        e = self.fails(cardan.CardanError, "", s.check)
        s = lag_system()
        s._connections[0]["gaim"] = 2
        e = self.fails(cardan.CardanError, "did you mean", s.check)
        self.assertEqual(e.place, "connections[0].gaim")
        self.assertIn("did you mean", e.hint)
        e = self.fails(cardan.CardanError, "stop", lambda: lag_system().run(stop="ten"))
        self.assertEqual(e.place, "run.stop")
        e = self.fails(cardan.CardanError, "", lambda: lag_system().add("x", fmv="a.fmu"))
        self.assertEqual(e.place, "units.x.fmv")
        self.fails(cardan.RangeError, "already", lambda: lag_system().add("lag", Lag))
        self.fails(cardan.RangeError, "nan", lambda: lag_system().options(step=float("nan")))
        self.fails(TypeError, "object", lambda: lag_system().options(step=object()))
        self.fails(cardan.NotFound, "no parameter", lambda: cardan.System().add("a", Lag, parameters={"Q": 1}))

    def test_runs(self):
        with lag_system().start() as run:
            self.fails(cardan.NotFound, "did you mean", lambda: run["lag.yy"])
            self.fails(cardan.NotFound, "", lambda: run.get("lag.z"))
            self.fails(cardan.StateError, "connected", lambda: run.set("lag.u", 1))
            self.fails(cardan.RangeError, "nan", lambda: run.set("lag.T", float("nan")))
            for _ in range(2):  # the first look at a name goes another way
                self.fails(TypeError, "lag.T is str, expected a number", lambda: run.set("lag.T", "fast"))
            self.fails(TypeError, "lag.T is timedelta64", lambda: run.set("lag.T", np.timedelta64(1, "s")))
            self.fails(cardan.RangeError, "too large", lambda: run.set("lag.T", 10**400))
            self.fails(cardan.RangeError, "steps is -1", lambda: run.advance(-1))
            self.fails(TypeError, "whole number", lambda: run.advance(True))
            run.set(name="lag.T", value=0.5)
            self.assertEqual((run.get(name="lag.T"), run.advance(steps=2)), (0.5, True))
            self.fails(TypeError, "", lambda: run.restore(None))
            with lag_system().start() as other:
                self.fails(cardan.StateError, "this run", lambda: run.restore(other.save()))
        self.fails(cardan.StateError, "finished", run.save)
        run.close()
        for f in (lambda: run["t"], run.advance, run.save, run.reset, lambda: run.get("lag.y"), lambda: run.verdict):
            self.fails(cardan.StateError, "", f)
        run.close()

    def test_exceptions_of_units_arrive_with_their_traceback(self):
        @cardan.unit
        def bad(t, u):
            return 1 / (t - 0.5)

        s = cardan.System().add("bad", bad).options(step=0.125, stop=1)
        with self.assertRaises(cardan.CardanError) as caught:
            s.run()
        self.assertIsInstance(caught.exception.__cause__, ZeroDivisionError)
        trace = caught.exception.__cause__.__traceback__
        while trace.tb_next:
            trace = trace.tb_next
        self.assertEqual(trace.tb_frame.f_code.co_name, "bad")
        self.assertLess(caught.exception.run.time, 0.51)
        for value in ("text", None, (1, 2), float("nan")):
            with self.assertRaises(cardan.CardanError):
                cardan.System().add("x", cardan.unit(lambda u: value)).run(step=0.1, stop=1)

        class Interrupts:
            def step(self, t, h):
                raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            cardan.System().add("x", cardan.unit(inputs=["u"])(Interrupts)).run(step=0.1, stop=1)

    def test_units(self):
        new = cardan.System
        for wrong in ({"a": 1, "b": 2, "c": 3}, {"a": 1}, {1, 2}, 3.0):
            self.fails(cardan.UnitError, "a, b", lambda: new().add("u", cardan.unit(outputs=["a", "b"])(lambda u: wrong)).run(
                stop=1, step=0.1))
        self.fails(cardan.UnitError, "unit 'u' failed: TypeError: unit <lambda>: y is str, expected a number",
                   lambda: new().add("u", cardan.unit(lambda u: "3")).run(stop=1, step=0.1))
        self.fails(cardan.UnitError, "complex", lambda: new().add("u", cardan.unit(outputs={"y": [0, 0]})(
            lambda u: np.array([1j, 2]))).run(stop=1, step=0.1))
        self.fails(TypeError, "expected a number", lambda: cardan.unit(lambda u=None: u))
        self.assertEqual(new().add("u", cardan.unit(functools.partial(lambda a, b: a + b, 1))).run(stop=1, step=0.1)["u.y"][0], 1)
        self.assertEqual(self.fails(cardan.RangeError, "the system has no units", new().run).place, "")
        self.fails(TypeError, "step", lambda: cardan.unit(type("A", (), {})))
        self.fails(ValueError, "two variables", lambda: cardan.unit(inputs=["y"])(lambda y: y))
        self.fails(TypeError, "*", lambda: cardan.unit(lambda *u: 0))
        self.fails(ValueError, "no name", lambda: cardan.unit(inputs=["a b"], outputs=["y"])(Lag.code))

    def test_tools(self):
        t = np.arange(0, 5, 0.01)
        found = cardan.compensate(np.sin(6 * t), 0.01, 0.05, ["zoh", "foh"])
        late = np.concatenate([np.zeros(5), np.sin(6 * t)[:-5]])  # a hold is the signal, five samples late
        self.assertTrue(np.allclose(found["zoh"].estimate[5:], late[5:], atol=1e-15))
        self.fails(cardan.NotFound, "did you mean", lambda: cardan.compensate(t, 0.01, 0, ["zho"]))
        self.fails(cardan.RangeError, "dimensions", lambda: cardan.compensate(np.ones((2, 2)), 0.01))
        self.fails(cardan.RangeError, "", lambda: cardan.compensate(t, -1))
        for wrong, part in ((t + 1j, "complex"), ([str(x) for x in t], "<U"), (t.astype("timedelta64[s]"), "timedelta"),
                            ([None, 1.0], "NoneType")):
            self.fails(TypeError, part, lambda: cardan.compensate(wrong, 0.01))
        self.fails(cardan.RangeError, "none is a number", lambda: cardan.compensate([math.nan] * 9, 0.01))
        self.fails(cardan.RangeError, "sample 1 = inf", lambda: cardan.compensate([1.0, math.inf], 0.01, 0, ["zoh"]))
        hidden = np.ma.array(np.append(t, 1e9), mask=[False] * len(t) + [True])  # what a mask hides was never sent
        with self.assertWarnsRegex(UserWarning, "1 of 501 samples"):
            self.assertLess(cardan.compensate(hidden, 0.01, 0.05, ["zoh"])["zoh"].worst, 0.06)
        self.assertFalse(cardan.compare({"t": t, "y": t}, {"t": t, "y": t + 1}))
        self.fails(cardan.RangeError, "shape", lambda: cardan.compare({"t": t, "y": t[1:]}, {"t": t, "y": t}))

    def test_random_calls_do_not_end_the_interpreter(self):
        folder = tempfile.TemporaryDirectory()  # save("x") makes a file
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        os.environ["CARDAN_STATE_KEY"] = os.path.join(folder.name, "key")
        r = random.Random(27)
        values = [0, 1, -1, 1.5, float("nan"), float("inf"), None, "x", "lag.y", "lag.u", "lag.T", b"y", [], [1, 2], {},
                  10**30, -10**30, "\0", "é", object(), np.ones(3), np.ones((2, 2)), True]
        names = ["advance", "get", "set", "reset", "save", "restore", "finish", "cancel", "close", "__getitem__", "verdict",
                 "names", "time", "ended", "log", "units", "description", "__contains__", "branch"]
        states = []
        calls = 0
        for _ in range(60):
            s = cardan.System().add("lag", Lag).options(step=0.1, stop=3)
            run = s.start()
            for _ in range(40):
                name = r.choice(names if r.random() < 0.97 else ["close", "finish"])
                arguments = [r.choice(values + states[-3:]) for _ in range(r.randrange(3))]
                if name == "advance" and any(isinstance(a, (int, float)) and a is not True and abs(a) > 100 for a in arguments):
                    continue
                calls += 1
                try:
                    f = getattr(run, name)
                    x = f(*arguments) if callable(f) else f
                    if isinstance(x, cardan.State):
                        states.append(x)
                except (cardan.CardanError, TypeError, ValueError, AttributeError, OverflowError, _lib.c.ArgumentError):
                    pass
        self.assertGreater(calls, 1000)


class Import(unittest.TestCase):
    def test_what_is_not_needed_is_not_imported(self):
        """`import cardan` takes less than 100 ms; NumPy would take most of them."""
        code = ("import sys, cardan; sys.exit(' '.join(m for m in ('numpy', 'inspect', 'subprocess', 'cardan._circuit', 'cardan._show')"
                " if m in sys.modules))")
        here = os.path.dirname(os.path.dirname(cardan.__file__))  # -S: what other packages import at the start is not ours
        done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": here})
        self.assertEqual(done.stderr.strip(), "")

    def test_every_name_is_there(self):
        space = {}
        exec("from cardan import *", space)
        self.assertEqual([n for n in cardan.__all__ if n not in space or n not in dir(cardan)], [])
        with self.assertRaises(AttributeError):
            cardan.nothing_of_that_name
        with self.assertRaises(AttributeError):  # not a call with cut addresses
            _lib.lib.crd_circuit_drift


class Docs(unittest.TestCase):
    def test_examples_in_docstrings(self):
        for name in ("", "._analysis", "._circuit", "._run", "._system", "._tools", "._unit"):
            module = importlib.import_module("cardan" + name)
            failed, _ = doctest.testmod(module, extraglobs={n: getattr(cardan, n) for n in ("unit", "System", "compensate")})
            self.assertEqual(failed, 0)

    def run_page(self, *path):
        with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
            text = f.read().replace("build/", BUILD + os.sep)
        before, space = os.getcwd(), {}
        os.chdir(ROOT)
        try:
            for block in re.findall(r"^```python\n(.*?)^```", text, re.M | re.S):
                exec(block, space)
        finally:
            os.chdir(before)
        return space

    def test_the_readme_runs(self):
        space = self.run_page("README.md")
        self.assertLess(space["worst"], 0.001)
        self.assertEqual(space["run"].ended, "")

    def test_the_page_runs(self):
        for name in os.listdir(BUILD):
            if name.startswith("stiff."):  # a study of FMUs that may be others by now
                os.remove(os.path.join(BUILD, name))
        space = self.run_page("docs", "how-to", "python.md")
        self.assertEqual(len(space["ends"]), 3)
        self.assertLess(space["best"].rms, space["table"]["zoh"].rms)
        self.assertTrue(space["same"])

    def test_exceptions_can_be_pickled(self):
        self.assertEqual(str(pickle.loads(pickle.dumps(cardan.RangeError("no")))), "no")


if __name__ == "__main__":
    unittest.main(verbosity=1)
