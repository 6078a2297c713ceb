#!/usr/bin/env python3
"""python.py COMMAND FMUS SCRATCH: what the Python module costs beside C. Prints lines

    name value unit floor limit note

for the driver; value / floor is the ratio. Times are those of the processor, the best of some, so that a machine with other
things to do says nearly the same. Differences stand beside what they may be at most, as the floor."""
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import time

COMMAND, FMUS, SCRATCH = sys.argv[1:4]
C_US = float(sys.argv[4]) if len(sys.argv) > 4 else 0.0  # advance and get in C, us
MODULE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "python")
sys.path.insert(0, MODULE)
import cardan  # noqa: E402

clock = time.process_time
FD1, FD2 = (os.path.join(FMUS, "fmi2", n) for n in ("lo_fd1.fmu", "lo_fd2.fmu"))


def row(name, value, unit, floor, limit, note):
    print(f"python/{name} {value:.6g} {unit} {floor:.6g} {limit:g} {note}", flush=True)


def best(f, repeats=5):
    return min(f() for _ in range(repeats))


def timed(f):
    begin = clock()
    f()
    return clock() - begin


def oscillator(**options):
    """README's: two FMUs, in process."""
    s = cardan.System().add("first", fmu=FD1, isolate="none").add("second", fmu=FD2, isolate="none")
    s.connect("first.f", "second.f").connect("second.x2", "first.x2").connect("second.v2", "first.v2")
    return s.options(step="1 ms", monitor="none", guard="off", **options)


def imports():
    def one(code):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": MODULE})
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    bare, own, both = (best(lambda c=c: one(c), 7) for c in ("pass", "import cardan", "import cardan, numpy"))
    row("import", 1e3 * (own - bare), "ms", 100, 1, f"import cardan {1e3 * (own - bare):.1f} ms, with NumPy {1e3 * (both - bare):.1f} ms")


def steps():
    n = 100000
    with oscillator(stop=1e9).start(snapshots=False) as run:
        advance, get = run.advance, run.get
        get("second.x2")

        def loop():
            for _ in range(n):
                advance(1)
                get("second.x2")
        us = 1e6 * best(lambda: timed(loop)) / n
        run.cancel()
    if C_US > 0:
        row("step-get", us - C_US, "us", 0.5, 1, f"advance and get {us:.3f} us, in C {C_US:.3f} us: more by {us - C_US:.3f} us")


def whole_run():
    """Processor time of 10^6 steps beyond that of 10^5, in both."""
    file = os.path.join(SCRATCH, "python.yaml")
    with open(file, "w", encoding="utf-8") as f:
        f.write(f"cardan: 1\nunits: {{ first: {{ fmu: {os.path.abspath(FD1)}, isolate: none }}, "
                f"second: {{ fmu: {os.path.abspath(FD2)}, isolate: none }} }}\n"
                "connections:\n  - { from: first.f, to: second.f }\n"
                "  - { from: second.x2, to: first.x2 }\n  - { from: second.v2, to: first.v2 }\n"
                "run: { step: 1 ms, stop: 1 s, monitor: none, guard: off }\n")

    def command(stop):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([COMMAND, "run", file, "--stop-time", str(stop), "--output", os.path.join(SCRATCH, "python.mf4"), "--quiet"],
                       check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def module(stop):
        return timed(lambda: cardan.System(file).run(stop=stop, progress=False))
    found = [[f(stop) for f, stop in ((command, 1100), (module, 1100), (command, 100), (module, 100))] for _ in range(5)]
    theirs, ours = (min(r[i] for r in found) - min(r[2 + i] for r in found) for i in (0, 1))
    row("run", ours, "s", theirs, 1.02, f"10^6 steps, recorded: {ours:.3f} s in memory, the command {theirs:.3f} s into MF4")


def function():
    n = 100000

    def twice(u):
        return 2.0 * u

    def system(*more):
        s = cardan.System().add("source", signal={"shape": "sine", "frequency": 2})
        for unit in more:
            s.add("unit", unit).connect("source.y", "unit.u", predict="hold")
        with s.options(step="1 ms", stop=1e9, monitor="none", guard="off").record("source.y").start(snapshots=False) as run:
            found = best(lambda: timed(lambda: run.advance(n)))
            run.cancel()
        return found

    def bare():
        for _ in range(n):
            twice(1.5)
    call = 1e6 * best(lambda: timed(bare)) / n
    more = 1e6 * (system(cardan.unit(twice)) - system()) / n
    row("function", more - call, "us", 1, 1, f"a function as a unit {more:.3f} us a step, the bare call {call:.3f} us")


def back():
    with oscillator(stop=1e9).start() as run:
        run.advance(100)

        def resets():
            for _ in range(2000):
                run.reset()
        us = 1e6 * best(lambda: timed(resets)) / 2000
        run.advance(100)
        warm = run.save()

        def branches():
            for _ in range(1000):
                run.restore(warm)
                run.advance(10)
        s = best(lambda: timed(branches))
        run.cancel()
    row("reset", us, "us", 20, 1, f"reset of two FMUs {us:.2f} us")
    row("branches", s, "s", 1, 1, f"1,000 branches of 10 steps {s:.4f} s")


def environments(queue=None):
    import cardan.gym
    import numpy as np
    n, many = 2000, 64
    envs = cardan.gym.VectorEnv(oscillator(stop=1e6), many, observations=["second.x2", "second.v2"], reward="second.x2")
    envs.reset(seed=1)
    action = np.zeros((many, 0))

    def loop():
        for _ in range(n):
            envs.step(action)
    rate = n * many / best(lambda: timed(loop))
    envs.close()
    if queue:
        queue.put(rate)
    return rate


def gym():
    try:
        import gymnasium  # noqa: F401
    except ImportError:
        return
    queue = multiprocessing.get_context("spawn").SimpleQueue()
    two = [multiprocessing.get_context("spawn").Process(target=environments, args=(queue,)) for _ in range(2)]
    for p in two:
        p.start()
    for p in two:
        p.join()
    rate = queue.get() + queue.get()
    with oscillator(stop=1e9).start(snapshots=False) as run:
        bare = 1e5 / best(lambda: timed(lambda: run.advance(100000)))
        run.cancel()
    row("gym", 1e6 / rate, "us", 1, 1, f"{rate / 1e6:.2f} million steps/s of two processes' time, one run's bare loop {bare / 1e6:.2f} million")


if __name__ == "__main__":
    for measure in (imports, steps, whole_run, function, back, gym):
        measure()
