"""The kill campaign with real processes: master, bench, emulator of the network and guard are killed
and stopped in every state that a bench in soft real time can be in, at five moments of each, two
benches and a car around them. What moves comes to rest within the deadman's time and the stop time of
its sheet, no set value acts behind the deadman's time, the other bench comes down too, and whoever
was stopped and goes on moves nothing.

Short in the suite: every state once, with processes and signals in turn. CARDAN_KILLS=all is the
whole product, AT_ONCE sessions beside each other. CARDAN_KILLS_SEED chooses the moments and which of
the benches dies; CARDAN_KILLS_TABLE is a file for a line per case, CARDAN_KILLS_ONLY
says some of them, as in 'RUNNING master, SIGSTOP guard 3'."""

import itertools
import os
import random
import re
import signal
import threading
import time
import unittest

from bench_field import Beside, Bench, Field

ALL = os.environ.get("CARDAN_KILLS") == "all"
SEED = int(os.environ.get("CARDAN_KILLS_SEED", "1"))
TABLE = os.environ.get("CARDAN_KILLS_TABLE")
AT_ONCE = int(os.environ.get("CARDAN_KILLS_AT_ONCE", "10" if ALL else "6"))
# What a kill waits for, and for how long at most behind it: about the time that a bench is in the
# state when nobody disturbs the session. INITIALIZING and SENDING_I last as long as one PDU is worked
# on: the kill comes around that PDU.
STATES = {"ALIVE": (None, 0.2), "CONFIGURATION": ("CONFIGURATION", 4), "PREPARING": ("PREPARING", 1),
          "PREPARED": ("PREPARED", 0.1), "CONFIGURING": ("CONFIGURING", 1.2),
          "CONFIGURED": ("CONFIGURED", 0.2), "INITIALIZING": ("CONFIGURED", 0.4),
          "INITIALIZED": ("INITIALIZED", 0.15), "SENDING_I": ("INITIALIZED", 0.25),
          "SYNCHRONIZING": ("SYNCHRONIZING", 0.4), "SYNCHRONIZED": ("SYNCHRONIZED", 0.1),
          "RUNNING": ("RUNNING", 2), "STOPPING": ("STOPPING", 3.2), "STOPPED": ("STOPPED", 0.1),
          "ERRORHANDLING": ("ERRORHANDLING", 4), "ERRORRESOLVED": ("ERRORRESOLVED", 0.1)}
VICTIMS = ("master", "bench", "emulator", "guard")
SIGNALS = (signal.SIGKILL, signal.SIGSTOP)
MOMENTS = range(5)
HEART, WATCHDOG, GUARD = 3, 2, 2  # s
STOP_TIME = 8  # s, on the sheets of both benches, without cooling down
RUN = 5  # phase in which set values act
lock = threading.Lock()


class Kill(Field):
    watchdog = f"{WATCHDOG} s"

    def __init__(self, *case):  # state, victim, signal, moment
        super().__init__()
        self.case = case
        self.random = random.Random(f"{SEED} {self.id()}")

    def id(self):
        return " ".join(getattr(c, "name", str(c)) for c in self.case)

    __str__ = id

    def begin(self):
        """Both benches warm their oil, which turns them; the network takes 50 ms each way."""
        state = self.case[0]
        fault = ("--fault", "emergency-stop@1s") if state.startswith("ERROR") else ()
        # The supply is on when the configuration is over, however long that takes on this machine.
        start_up = "15 s" if state == "PREPARING" else "6 s"
        common = ("--speed-up", "200", "--watchdog", self.watchdog, "--start-up", start_up, "--realtime")
        self.engine = Bench(self, "ice", *common)
        self.machine = Bench(self, "em", *common, *fault)
        self.link = self.emulator(self.engine, self.machine, "--delay", "50 ms")
        path = self.system(*self.link.addresses, "2 s", lead="0.5 s")
        with open(path, encoding="utf-8") as f:
            text = f.read()
        for medium in ("coolant 45 degC; oil", "oil"):
            text = text.replace(", gap: 200 }", f', gap: 200, initial: "{medium} 45 degC; tolerance 4 K" }}', 1)
        self.write("field.yaml", text)
        self.run_ = self.start("field", "--watchdog", f"{GUARD} s", "--session-record", "s.csv")

    def guard(self):
        """The process that guards the run now."""
        try:
            for task in os.listdir(f"/proc/{self.run_.process.pid}/task"):
                with open(f"/proc/{self.run_.process.pid}/task/{task}/children", encoding="utf-8") as f:
                    for pid in map(int, f.read().split()):
                        with open(f"/proc/{pid}/comm", encoding="utf-8") as g:
                            if g.read() == "cardan-guard\n":
                                return pid
        except OSError:
            pass  # it is gone
        return None

    @staticmethod
    def states(bench):
        return re.findall(r'"state": *"(\w+)"', bench.says()) or ["ALIVE"]

    def reach(self, bench, state):
        """Until it has come to that state, and a part of the state behind it. False: the session has
        ended before, as a session in real time does where the machine has no time for it."""
        event, seconds = STATES[state]
        while event and event not in self.states(bench):
            if self.run_.process.poll() is not None and event not in self.states(bench):
                return False
            time.sleep(0.01)
        time.sleep(seconds * (self.case[3] + self.random.random()) / len(MOMENTS))
        return True

    def deadman(self, state, victim):
        """Until the stop of a bench that is left begins at the latest."""
        if state in ("STOPPING", "STOPPED", "ERRORHANDLING", "ERRORRESOLVED"):
            return 0
        if victim == "bench":
            return HEART  # session.alive of the master, which stops the other one
        return WATCHDOG if state in ("RUNNING", "SYNCHRONIZED") else HEART

    def check_rest(self, bench, since, deadman, slack=0.5, stop_time=STOP_TIME):
        """From that time of its trace on. The slack is for what is between two processes; the clock is
        the bench's own."""
        def rests():  # also who was never driven
            phase = (re.findall(r'"phase": *"([\w ]+)"', bench.says()) or ["idle"])[-1]
            return True if phase in ("idle", "preparation", "safe") else None
        if bench.process.poll() is None:
            bench.wait_for(rests, "rest")
        rows = bench.rows()
        for r in rows:
            behind = r["time"] - since
            if behind > deadman + slack:
                self.assertNotEqual(r["phase"], RUN, (bench.name, behind, r))
            if behind > deadman + stop_time + slack:
                self.assertLess(abs(r["speed"]), 10, (bench.name, behind, r))
                self.assertTrue(self.without_torque(r), (bench.name, behind, r))

    @staticmethod
    def last_time(bench, at=None):
        """Of its trace; at that time of the computer's clock. A bench at rest writes no rows, and this
        process may get no time between looking at a trace and killing somebody: what counts is
        when the last row was written."""
        while True:
            written = os.stat(bench.trace).st_mtime_ns
            with open(bench.trace, "rb") as f:
                f.seek(max(0, os.path.getsize(bench.trace) - 2000))
                lines = f.read().decode().split("\n")[1:-1]  # whole ones
            if os.stat(bench.trace).st_mtime_ns == written:
                break
        last = float(lines[-1].split(",")[0]) if lines else 0
        return last if at is None else last + at - written / 1e9

    def end(self):
        """The run ends by itself, without a crash; with it its guard."""
        run = self.run_
        guard = self.guard()
        run.process.wait(timeout=120)
        said = run.says() + run.complains()
        for part in ("AddressSanitizer", "runtime error"):
            self.assertNotIn(part, said)
        if guard:
            self.engine.wait_for(lambda: None if os.path.exists(f"/proc/{guard}") else True, "its end")
        return run.process.returncode

    def come_to(self, state, victim, first):
        """A session that is there: the bench that may die, the one that shows the state."""
        for again in range(4):
            self.begin()
            dies = self.engine if first else self.machine
            if victim == "guard" or state == "ALIVE":
                self.run_.wait_for(self.guard, "a guard")
            shown = self.machine if state.startswith("ERROR") or victim != "bench" else dies
            if self.reach(shown, state):
                return dies, shown
            self.assertLess(again, 3, f"{state} did not come: {shown.says()}{self.run_.complains()}")
            self.leave()

    def leave(self):
        for process in (self.run_, self.link, self.engine, self.machine):
            process.kill()

    def hit(self, target, victim, number):
        """False: it had ended by itself. A master that has is there until its code is asked for."""
        try:
            os.kill(target, number)
        except (ProcessLookupError, TypeError):  # no such process, and no guard
            return False
        if victim == "master" and number == signal.SIGKILL:
            return self.run_.process.wait(timeout=60) == -signal.SIGKILL
        return victim != "master" or self.run_.process.poll() is None

    def check_ended(self, left):
        """A session that was over when the kill came: nothing is driven from then on."""
        self.assertIn(self.end(), (0, 1), self.run_.complains())
        for bench, since in left.items():
            bench.wait_for(lambda b=bench: self.states(b)[-1] == "ALIVE" or None, "to be let go")
            self.check_rest(bench, since, 0, slack=0.1, stop_time=0)

    def runTest(self):
        state, victim, number, _ = self.case
        first = self.random.random() < 0.5
        for again in range(4):
            dies, shown = self.come_to(state, victim, first)
            was = self.states(shown)[-1]
            target = {"master": self.run_.process.pid, "bench": dies.process.pid,
                      "emulator": self.link.process.pid, "guard": self.guard()}[victim]
            left = [b for b in (self.engine, self.machine) if victim != "bench" or b is not dies]
            deadman = {b: self.deadman(self.states(b)[-1], victim) for b in left}
            stopped = time.monotonic()
            hit = self.hit(target, victim, number)
            killed = time.time()
            since = {b: self.last_time(b, killed) for b in left}
            if hit:
                break
            self.check_ended(since)
            self.note(was, self.run_.process.returncode, "ended by itself")
            self.leave()
        else:
            return
        try:
            code = self.judge(was, dies, target, since, deadman, stopped)
        except AssertionError as wrong:
            story = [f"{b.name}: {b.says()[-2000:]}" for b in (self.engine, self.machine)]
            raise AssertionError("\n".join([str(wrong), self.run_.complains(), *story])) from None
        self.note(was, code)

    def note(self, *words):
        if TABLE:
            with lock, open(TABLE, "a", encoding="utf-8") as f:
                print(self.id(), *words, file=f)

    def judge(self, was, dies, target, since, deadman, stopped):
        """After the kill; the exit code of the run."""
        _, victim, number, _ = self.case
        if victim == "guard":
            code = self.end()
            if number == signal.SIGSTOP:
                try:
                    os.kill(target, signal.SIGCONT)  # a run that ended meanwhile has left it
                except ProcessLookupError:
                    pass
            fault = any("ERRORHANDLING" in self.states(b) for b in since)
            self.assertIn(code, (1,) if fault else (0, 1), self.run_.complains())
            for bench in since:
                self.check_rest(bench, float("inf"), 0)
            return code
        for bench in since:
            self.check_rest(bench, since[bench], deadman[bench])
        if number == signal.SIGSTOP:  # it goes on, as if nothing had been
            # Behind the time in which a bench is missed, 4 s, with some for a busy computer: one
            # that answers before is taken back, and the session goes on.
            time.sleep(max(0, stopped + HEART + 3 - time.monotonic()))
            awake = self.last_time(dies)
            os.kill(target, signal.SIGCONT)
            if victim == "bench" and was != "ALIVE":
                # Its time goes on where it stood still: the master feeds it until it is missed.
                self.check_rest(dies, awake, HEART + WATCHDOG)
        code = self.end()
        if (victim, number) == ("master", signal.SIGKILL):
            self.assertEqual(code, -signal.SIGKILL)
        else:
            missed = victim == "bench" and was != "ALIVE" and self.deadman(was, victim) > 0
            self.assertIn(code, (1,) if missed else (0, 1), self.run_.complains())
        # And still. Who is stopped before anything was registered goes on with the run.
        for bench in since if was != "ALIVE" else ():
            self.check_rest(bench, since[bench], deadman[bench])
        return code


def cases():
    whole = [(s, v, n, m) for s in STATES for v in VICTIMS for n in SIGNALS for m in MOMENTS]
    only = os.environ.get("CARDAN_KILLS_ONLY")
    if only:
        return [c for c in whole if any(
            all(w in (c[0], c[1], c[2].name, str(c[3])) for w in some.split())
            for some in only.split(","))]
    if ALL:
        random.Random(SEED).shuffle(whole)
        return whole
    turn = itertools.cycle(itertools.product(SIGNALS, VICTIMS))
    return [(s, v, n, SEED % 5) for s, (n, v) in zip(STATES, turn)]


def load_tests(loader, tests, pattern):
    suite = Beside(Kill(*c) for c in cases())
    suite.at_once = AT_ONCE
    return suite


if __name__ == "__main__":
    unittest.main()
