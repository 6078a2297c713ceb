"""Random calls with random arguments: the interpreter never dies, nothing hangs, and what is said is a sentence.

    python test_random_calls.py [CALLS [SEED [LIBRARY BUILD]]]      each seed's calls in a process of its own

Calls go to everything that is public: systems, runs, states, units, results, tools, environments; arguments are right ones,
nearly right ones and nonsense; runs are closed, finished, forked and advanced by two threads in between. An exception has to be
one of Cardan's, or a TypeError, ValueError ... as Python's own functions raise it, and has to say something.
"""
import atexit
import copy
import gc
import inspect
import itertools
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings

CALLS, SEED = (int(sys.argv[i]) if len(sys.argv) > i else d for i, d in ((1, 4000), (2, 27)))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PART = 2500  # calls of a process
FINE = (TypeError, ValueError, KeyError, AttributeError, OverflowError, LookupError, ImportError, OSError)


class Broken(Exception):
    """What a unit raises."""


def world():
    import numpy as np

    import cardan

    @cardan.unit(inputs=["u"], outputs=["y"], parameters={"T": 0.5})
    class Lag:
        def initialize(self, t):
            self.y = 0.0

        def step(self, t, h):
            if self.u == 13:
                raise Broken("thirteen")
            self.y += h * (self.u - self.y) / self.T

    @cardan.unit(outputs=["a", "b"])
    def pair(u, *, k=2.0):
        if u > 100:
            return u  # one too few
        return k * u, float("nan") if u == 7 else u

    def meddle(u):
        """Calls into the runs it knows, its own among them."""
        for x in list(known):
            try:
                getattr(x, next(words))()
            except FINE + (cardan.CardanError,):
                pass
        return u

    known, words = [], itertools.cycle(["close", "advance", "save", "reset", "finish", "cancel", "complete", "_repr_html_"])
    return np, cardan, Lag, pair, (cardan.unit(meddle), known)


class Caller:
    def __init__(self, seed):
        self.np, self.cardan, self.Lag, self.pair, (self.meddler, self.meddled) = world()
        self.arrays = []  # and what was in them
        self.r = random.Random(seed)
        self.calls = self.raised = 0
        self.kinds = {}
        self.folder = tempfile.mkdtemp()
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        os.chdir(self.folder)
        fmus = os.path.join(os.environ.get("CARDAN_BUILD", os.path.join(ROOT, "build")), "fmus", "fmi2")
        # Copies: whatever takes a path may write there.
        self.files = [os.path.join(self.folder, n) for n in ("oscillator.yaml", "rc_lowpass.cir", "lo_fd2.fmu", "README.md")]
        self.oscillator = self.files[0]
        for path, of in zip(self.files[1:], (os.path.join(ROOT, "examples", "circuits", "rc_lowpass.cir"),
                                             os.path.join(fmus, "lo_fd2.fmu"), os.path.join(ROOT, "README.md"))):
            shutil.copy(of, path)
        with open(os.path.join(ROOT, "examples", "oscillator", "oscillator.yaml"), encoding="utf-8") as f:
            self.description = f.read().replace("../../build/fmus/fmi2", fmus)
        self.mend()
        try:
            import cardan.gym
            self.gym = cardan.gym
        except ImportError:
            self.gym = "is not installed"
        self.files += ["nowhere.fmu", self.folder, "", "/dev/null", "a\0b"]
        with open("twin.yaml", "w", encoding="utf-8") as f:
            f.write("twin: 1\ncircuit: rc.cir\nstep: 10 ms\nsensors: { T: { at: t(2), sd: 0.5 } }\n"
                    "parameters: { r1: { parts: [r1], start: 2 } }\n")
        with open("rc.cir", "w", encoding="utf-8") as f:
            f.write("t\n.thermal\nheat q0 1 10\nresistance r1 1 2 1\nresistance r2 2 0 3\ncapacity c1 2 0.1 start=0\n.endthermal\n"
                    ".input u\n.output T=t(1)\n.tran 10m 1 uic\n.end\n")
        with open("loop.yaml", "w", encoding="utf-8") as f:
            f.write("loop: 1\nstep: 10 ms\nlatency: 3\ntransfers: [{ num: [2], den: [0, 1] }]\nelements: [foh]\n")
        with open("push.yaml", "w", encoding="utf-8") as f:
            f.write("study: 1\nsystem: oscillator.yaml\nvary: { second.k2: [900, 1100] }\nkeep: { peak: max second.x2 }\n")
        self.files += [os.path.join(self.folder, n) for n in ("push.yaml", "twin.yaml", "rc.cir", "loop.yaml")]
        self.systems, self.runs, self.states, self.others = [], [], [], []
        t = self.np.arange(0, 1, 0.1)
        self.names = ["lag.y", "lag.u", "lag.T", "pair.a", "pair.u", "pair.k", "source.y", "t", "lag", "first.f", "Lag.y", ""]
        self.plain = [0, 1, -1, 2, 0.1, 1e-3, 13, 7, 101, 0.0, -0.0, 1e300, float("nan"), float("inf"), 10**30, -10**30,
                      2**63, None, True, "", "x", "lag.y", "lag.u", "lag.T", "pair.a", "pair.u", "source.y", "first.f", "t",
                      "10 ms", "3 parsec", "1 N", "a.b.c", "lag.u[3]", "\0", "é", "x" * 5000, b"y", [], [1, 2], (1, 2), {},
                      {"a": 1}, {"t": t, "y": t}, {"t": t, "y": t[1:]}, object(), t, t[::-1], t.reshape(2, 5),
                      self.np.ones(3, complex), self.np.array(["a"]), 1j, range(3), lambda: 1, print, int, self.Lag, self.pair]
        self.keys = ["step", "stop", "fmu", "circuit", "signal", "replay", "parameters", "coupling", "predict", "scheme", "gain",
                     "offset", "isolate", "unit", "delay", "start", "monitor", "control", "every", "relative", "latency", "u"]

    def value(self):
        x = self.r.random()
        if x < 0.08:
            return self.r.choice(self.files)
        if x < 0.12 and self.states:
            return self.r.choice(self.states)
        if x < 0.15 and self.runs:
            return self.r.choice(self.runs)
        if x < 0.17:
            return os.path.join(self.folder, self.r.choice(["a.csv", "a.mf4", "b.state", "c.html", "d.xyz"]))
        return self.r.choice(self.plain)

    def mend(self):
        with open(self.oscillator, "w", encoding="utf-8") as f:
            f.write(self.description)

    def system(self):
        c, s = self.cardan, self.cardan.System()
        if self.r.random() < 0.15:
            self.mend()
            return c.System(self.oscillator).options(stop=0.05)
        s.add("source", signal={"shape": "sine", "frequency": 2}).add("lag", self.Lag).add("pair", self.pair)
        if self.r.random() < 0.5:
            s.connect("source.y", "lag.u", predict="hold")
        if self.r.random() < 0.5:
            s.connect("lag.y", "pair.u", predict="hold")
        return s.options(step=0.1, stop=self.r.choice([1, 5]))

    def environment(self):
        names = {"observations": ["lag.y"], "actions": ["lag.u"], "reward": self.r.choice([None, "lag.y", lambda v: 1 / v["lag.y"]]),
                 "failed": self.r.choice(["raise", "end"])}
        s = self.cardan.System().add("lag", self.Lag).options(step=0.1, stop=1)
        found = self.gym.Env(s, **names) if self.r.random() < 0.5 else self.gym.VectorEnv(s, 3, threads=self.r.choice([1, 2]), **names)
        found.reset(seed=1)
        return found

    def targets(self):
        """What can be called now, with how many arguments are usual."""
        c, r = self.cardan, self.r
        x = r.random()
        if x < 0.1 or not self.systems:
            return lambda: self.systems.append(self.system()), False
        if x < 0.35:
            s = r.choice(self.systems)
            name = r.choice(["add", "connect", "bond", "options", "record", "set", "check", "start", "run", "_repr_html_", "__repr__",
                             "start", "start", "resume"])
            return getattr(s, name, None), True
        if x < 0.85 and self.runs:
            run = r.choice(self.runs)
            name = r.choice([n for n in dir(run) if not n.startswith("_") and n not in ("show", "branch", "steps", "plot")]
                            + ["__getitem__", "get", "set", "advance", "advance", "_repr_html_", "__contains__", "steps", "branch"])
            if isinstance(getattr(type(run), name, None), property):
                return lambda: getattr(run, name), False
            return getattr(run, name), True
        if r.random() < 0.3 and self.others:
            other = r.choice(self.others)
            name = r.choice([n for n in dir(type(other)) if not n.startswith("_")] + ["__getitem__", "run", "run", "step", "step"])
            if isinstance(getattr(type(other), name, None), property):
                return lambda: getattr(other, name), False
            return getattr(other, name, None), True
        if r.random() < 0.1 and not isinstance(self.gym, str):
            return r.choice([self.gym.Env, self.gym.VectorEnv, self.environment]), True
        if r.random() < 0.02:
            return r.choice([c.study.Study, c.study.check, c.study.run, c.study.optimise]), True
        if r.random() < 0.1:
            return (lambda: c.Circuit("rc.cir")) if r.random() < 0.5 else (lambda: c.Twin("twin.yaml")), False
        return r.choice([c.System, c.unit, c.compensate, c.compare, c.algorithms, c.Unit, c.design, c.analyze, c.analyze_loop,
                         c.spectrum, c.Circuit, c.Twin]), True

    def arguments(self, f):
        """Mostly as many and of such a kind as its signature asks for."""
        r = self.r
        try:
            parameters = list(inspect.signature(f).parameters.values())
        except (TypeError, ValueError):
            parameters = []
        if not parameters or r.random() < 0.1:
            return ([self.value() for _ in range(r.choice([0, 1, 1, 2, 2, 3]))],
                    {r.choice(self.keys): self.value() for _ in range(r.choice([0, 0, 0, 1, 2]))})
        arguments, named = [], {}
        for p in parameters:
            likely = {"name": self.names, "source": self.names, "target": self.names, "action": self.names, "flow": self.names,
                      "of": ["foh", "zoh", {"algorithm": "eros", "latency": 2}, *self.files[-1:], *self.systems], "k": [0, 1, 3, [1, 2], -1, 2.0],
                      "file": self.files, "method": ["wiener", "moment", "bounded", "tr", "bdf2"], "band": [3, (1, 3), (3, 1)],
                      "measurements": [[1.0], {"T": 1.0}, {"T": float("nan")}, {"T": self.plain[-13]}, [1, 2]],
                      "inputs": [None, {"u": 1}, {"u": ([0, 1], [1, 2])}], "stop": [0.1, 1, -1], "signals": [["t(2)"], "t(*)", "x"],
                      "names": self.names, "patterns": ["lag.*", "*", "t", "["], "steps": [0, 1, 2, 5, -1, 10**30, True],
                      "every": [0, 1, 3], "state": self.states or [None], "signal": self.plain[-13:], "step": [0.1, 0.01, 0, -1],
                      "latency": [0, 0.05, -1], "algorithms": [["zoh"], ["auto", "nix"], [], "zoh", [{"name": "x"}], [3]],
                      "path": [os.path.join(self.folder, e) for e in ("a.csv", "a.mf4", "b.state", "c.d")], "progress": [None, False],
                      "a": self.runs + self.plain[-20:], "b": self.runs + self.plain[-20:]}.get(p.name, self.plain)
            value = r.choice(likely) if r.random() < 0.75 else self.value()
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
                if p.default is p.empty or r.random() < 0.3:
                    arguments.append(value)
                else:
                    break
            elif p.kind is p.VAR_POSITIONAL:
                arguments += [value] * r.randrange(2)
            elif r.random() < 0.15:
                named[r.choice(self.keys) if p.kind is p.VAR_KEYWORD else p.name] = value
        if r.random() < 0.1:
            (arguments.pop if arguments and r.random() < 0.5 else lambda: arguments.append(self.value()))()
        return arguments, named

    def once(self):
        f, takes = self.targets()
        if f is None:
            return
        arguments, named = self.arguments(f) if takes else ([], {})
        name = getattr(f, "__name__", "")
        if name in ("advance", "run", "complete"):  # not until the end of the world
            arguments = [a for a in arguments if not (isinstance(a, (int, float)) and abs(a) > 1000)]
            named = {k: a for k, a in named.items() if k not in ("stop", "step")}
        if name == "reproduce":
            return
        self.calls += 1
        self.last = (name, arguments, named)
        try:
            found = f(*arguments, **named)
            if inspect.isgenerator(found):
                for _, _ in zip(found, range(5)):
                    pass
            elif hasattr(found, "__enter__") and name == "branch":
                with found:
                    pass
            for kind, into in ((self.cardan.Run, self.runs), (self.cardan.State, self.states), (self.cardan.System, self.systems),
                               ((self.cardan.Circuit, self.cardan.Twin, self.cardan.CircuitRun, self.cardan.study.Study,
                                 *([] if isinstance(self.gym, str) else [self.gym.Env, self.gym.VectorEnv])), self.others)):
                if isinstance(found, kind) and all(found is not x for x in into):
                    into.append(found)
            for into in (self.runs, self.states, self.systems, self.others):
                while len(into) > 6:
                    into.pop(self.r.randrange(len(into)))
        except (self.cardan.CardanError, *FINE) as e:
            self.raised += 1
            self.kinds[type(e).__name__] = self.kinds.get(type(e).__name__, 0) + 1
            if not str(e).strip():
                raise AssertionError(f"{type(e).__name__} without a word") from e
            if "ctypes" in str(e) or "argument 1:" in str(e):
                raise AssertionError(f"that is no sentence: {e}") from e

    def keep(self):
        """Arrays stay what they are, whatever becomes of their run."""
        for run in self.runs:
            try:
                a = run["t"] if run.ended else None
            except (self.cardan.CardanError, *FINE):
                continue
            if a is not None and len(self.arrays) < 20:
                self.arrays.append((a, a.tobytes()))
        assert all(a.tobytes() == was for a, was in self.arrays), "an array has changed"
        if self.arrays and self.r.random() < 0.5:
            self.arrays.pop(self.r.randrange(len(self.arrays)))

    def copies(self):
        """Of what owns memory there are none."""
        for x in [*self.runs, *self.states]:
            for f in (copy.copy, copy.deepcopy, pickle.dumps):
                try:
                    f(x)
                except TypeError:
                    continue
                raise AssertionError(f"{f.__name__} of {x!r}")
        for x in [*self.systems, *self.others]:
            try:
                self.r.choice([copy.copy, copy.deepcopy, pickle.dumps])(x)
            except (pickle.PickleError, self.cardan.CardanError, *FINE):
                pass

    def damaged(self):
        """A saved state with any bit changed, cut off, or longer is refused."""
        system = self.system()
        run = system.start()
        path = os.path.join(self.folder, "whole.state")
        try:
            run.advance(3)
            run.save(path)
        except self.cardan.CardanError:
            return
        with open(path, "rb") as f:
            data = bytearray(f.read())
        system.resume(path).close()
        for _ in range(5):
            bad = bytearray(data)
            how, at = self.r.randrange(4), self.r.randrange(len(data))
            if how == 0:
                bad[at] ^= 1 << self.r.randrange(8)
            elif how == 1:
                del bad[at:]
            elif how == 2:
                bad += bytes([self.r.randrange(256)]) * self.r.randrange(1, 5000)
            else:
                bad[at:at + 8] = self.r.randrange(1 << 64).to_bytes(8, "little")
            if bad == data:
                continue
            with open(path, "wb") as f:
                f.write(bad)
            try:
                system.resume(path)
            except (self.cardan.FormatError, self.cardan.StateError, self.cardan.Unsupported, self.cardan.ReadWriteError) as e:
                assert "whole.state" in str(e), e
                continue
            raise AssertionError(f"a damaged state was resumed: {how} at {at}")

    def callbacks(self):
        """Functions that are called back, and raise or call into the run."""
        run = self.system().start()

        def progress(time):
            if self.r.random() < 0.3:
                raise Broken("progress")
            self.meddle_once(run)
        try:
            run.complete(progress)
        except (Broken, self.cardan.CardanError, *FINE):
            pass
        try:
            meddling = self.cardan.System().add("m", self.meddler).add("p", signal={"shape": "constant"}).options(step=0.1, stop=1)
            run = meddling.start()
            self.meddled[:] = [run, *self.runs]
            run.complete()
        except (Broken, self.cardan.CardanError, *FINE):
            pass
        finally:
            self.meddled.clear()

    def meddle_once(self, run):
        try:
            getattr(run, self.r.choice(["close", "advance", "save", "reset", "finish", "cancel", "__exit__", "steps"]))()
        except (self.cardan.CardanError, *FINE):
            pass

    def shared(self):
        """Threads in one run, its states and its end."""
        run = self.system().start()
        states = [run.save()]
        calls = [lambda: run.advance(20), lambda: run.get("lag.y"), lambda: run.set("lag.T", 1), run.reset, lambda: run["lag.y"],
                 lambda: states.append(run.save()), lambda: states.pop(), lambda: run.restore(states[-1]), lambda: run.verdict,
                 lambda: run.time, lambda: run.ended, lambda: run.names, run._repr_html_, lambda: self.cardan.compare(run, run),
                 lambda: list(zip(run.steps(), range(3))), lambda: states[-1].size]
        if self.r.random() < 0.5:
            calls += [run.close, run.finish, run.cancel]
        order = [[self.r.choice(calls) for _ in range(60)] for _ in range(3)]
        bad = []

        def go(mine):
            for f in mine:
                try:
                    f()
                except (self.cardan.CardanError, *FINE):
                    pass
                except BaseException as e:
                    bad.append(e)
        ts = [threading.Thread(target=go, args=(mine,)) for mine in order]
        for t in ts:
            t.start()
        for t in ts:
            t.join()
        assert not bad, bad

    def threads(self):
        """Two threads at runs of their own, and at each other's cancel."""
        runs = [self.system().start() for _ in range(2)]
        def go(i):
            for _ in range(20):
                try:
                    runs[i].advance(1)
                    runs[1 - i].time
                except (self.cardan.CardanError, *FINE):
                    pass
        ts = [threading.Thread(target=go, args=(i,)) for i in range(2)]
        for t in ts:
            t.start()
        for t in ts:
            t.join()

    def fork(self):
        """A child uses and frees what it inherited, without doing its parent any harm."""
        run = self.system().start()
        run.advance(2)
        before = run.time
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            try:
                run.advance(1)
                self.system().run()
            except (self.cardan.CardanError, *FINE):
                pass
            os._exit(0)
        end = time.monotonic() + 30
        while True:
            got, status = os.waitpid(pid, os.WNOHANG)
            if got:
                break
            if time.monotonic() > end:
                os.kill(pid, signal.SIGKILL)
                raise AssertionError("a child that was forked hangs")
            time.sleep(0.005)
        assert status == 0, f"the child ended with {status}"
        assert run.time == before and run.advance(1) in (True, False)
        run.close()


def part(calls, seed):
    warnings.simplefilter("ignore")
    with open(os.devnull, "w") as null:
        os.dup2(null.fileno(), 1)
    caller = Caller(seed)
    while caller.calls < calls:
        try:
            caller.once()
        except BaseException:
            sys.stderr.write(f"seed {seed}, call {caller.calls}: {str(caller.last)[:1000]}\n")
            raise
        if caller.r.random() < 0.002:
            caller.threads()
        if caller.r.random() < 0.001:
            caller.fork()
        if caller.r.random() < 0.003:
            caller.r.choice([caller.shared, caller.callbacks, caller.damaged])()
        if caller.r.random() < 0.01:
            caller.keep()
            caller.copies()
        if caller.r.random() < 0.02:
            gc.collect()
    sys.stderr.write(f"{caller.calls} calls, {caller.raised} raised: {caller.kinds}\n")


def spawned(queue):
    import cardan
    queue.put(cardan.System().add("p", signal={"shape": "sine", "frequency": 2}).run(stop=1, step=0.1)["p.y"].tobytes())


def fixed():
    """A run in a process that was spawned, and FMUs that fail, crash, overflow their stack and exit in processes of their own."""
    import multiprocessing

    import cardan
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    child = context.Process(target=spawned, args=(queue,))
    child.start()
    child.join(60)
    assert child.exitcode == 0, child.exitcode
    assert queue.get() == cardan.System().add("p", signal={"shape": "sine", "frequency": 2}).run(stop=1, step=0.1)["p.y"].tobytes()
    fmu = os.path.join(os.environ.get("CARDAN_BUILD", os.path.join(ROOT, "build")), "fmus", "fmi2", "faulty.fmu")
    for mode, kind, part in ((3, cardan.UnitError, "fmi2DoStep"), (7, cardan.UnitCrash, "Segmentation fault"),
                             (8, cardan.UnitCrash, "crashed"), (12, cardan.UnitCrash, "exit()")):
        try:
            cardan.System().add("f", fmu=fmu, isolate="process").set("f.mode", mode).run(stop=1, step=0.01)
            raise AssertionError(f"mode {mode} raised nothing")
        except cardan.CardanError as e:
            assert isinstance(e, kind) and part in str(e) and "unit 'f' at t = 0.5" in str(e), e
            assert len(e.run["f.y"]) == 51 and abs(e.run["t"][-1] - 0.5) < 1e-9, e.run["t"]  # what there was is there
    sys.stderr.write("spawned and crashed\n")


def main():
    if len(sys.argv) > 3 and sys.argv[3] == "fixed":
        fixed()
        return
    if len(sys.argv) > 3 and sys.argv[3] == "part":
        part(CALLS, SEED)
        return
    begun = time.monotonic()
    subprocess.run([sys.executable, "-X", "faulthandler", __file__, "0", "0", "fixed"], check=True, timeout=120)
    for i in range((CALLS + PART - 1) // PART):
        done = subprocess.run([sys.executable, "-X", "faulthandler", __file__, str(min(PART, CALLS - i * PART)), str(SEED + i),
                               "part"], stderr=subprocess.PIPE, text=True, timeout=600)
        if done.returncode != 0:
            print(done.stderr[-6000:])
            sys.exit(f"seed {SEED + i}: the interpreter ended with {done.returncode}")
        print(f"seed {SEED + i}: {done.stderr.strip().splitlines()[-1]}, {time.monotonic() - begun:.1f} s", flush=True)


if __name__ == "__main__":
    main()
