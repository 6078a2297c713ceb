"""How runs with test benches begin, and what they live through, with real processes: nobody waits
for what others need, and what is wrong is known before a machine has become warm for it."""

import csv
import signal
import time
import unittest

from bench_field import Beside, Bench, Field
from e2e import fmu

STAND_IN = """\
    standby: { fmu: %s, names: { torque_calc: torque }, after: 150 ms }
"""
NOBODY = "udp://127.0.0.1:9"
CONFIGURING = 4


class Start(Field):
    def system_with(self, engine, machine, stop, *changes, name="field", **more):
        """The machine has a stand-in, and so a session of its own."""
        path = self.system(engine, machine, stop, name=name, **more)
        with open(path, encoding="utf-8") as f:
            text = f.read()
        for medium in ("coolant 60 degC; oil", "oil"):
            text = text.replace(", gap: 200 }",
                                f', initial: "{medium} 60 degC; tolerance 2 K" }}', 1)
        at = text.index("  battery:")
        text = text[:at] + STAND_IN % fmu("pt_machine") + text[at:]
        for old, new in changes:
            self.assertIn(old, text)
            text = text.replace(old, new)
        return self.write(name + ".yaml", text)

    def bench(self, kind, speed_up, *options):
        return Bench(self, kind, "--speed-up", str(speed_up), "--watchdog", self.watchdog, *options)

    def described(self, kind):
        """Only its description: nobody is there."""
        bench = self.bench(kind, 500)
        bench.summary()

    def states(self, name, bench):
        with open(self.path(name), newline="", encoding="utf-8") as f:
            rows = list(csv.reader(f))
        at = rows[0].index(bench + ".state")
        return [(float(r[0]), int(r[at])) for r in rows[2:]]

    def test_benches_are_conditioned_at_the_same_time(self):
        engine, machine = self.benches()
        self.system_with(engine.address, machine.address, "0.1 s")
        self.start("field", "--session-record", "s.csv").ended()
        spans = []
        for bench in ("engine", "machine"):
            states = self.states("s.csv", bench)
            begin = next(t for t, s in states if s == CONFIGURING)
            spans.append((begin, next(t for t, s in states if t > begin and s != CONFIGURING)))
        self.assertLess(spans[1][0], spans[0][1], spans)
        self.assertLess(spans[0][0], spans[1][1], spans)

    def test_a_bench_that_is_missing_is_said_while_another_is_conditioned(self):
        self.described("em")
        engine = self.bench("ice", 1)  # minutes
        self.system_with(engine.address, NOBODY, "1 s", session=", patience: 30 min, contact: 1 s")
        run = self.start("field", "--session-record", "s.csv")
        engine.until("conditioning")
        self.assertIn("because of unit 'machine': no DCP slave answers at " + NOBODY,
                      run.ended(code=1))
        engine.until("safe")
        self.assertNotIn(5, [s for _, s in self.states("s.csv", "engine")])

    def test_who_loses_patience_says_what_the_bench_is_doing(self):
        engine, machine = self.bench("ice", 500, "--start-up", "10 min"), self.bench("em", 500)
        self.system_with(engine.address, machine.address, "1 s", session=", patience: 1 s")
        said = self.start().ended(code=1)
        self.assertIn("is in PREPARING for more than 1 s, expected PREPARED; the bench says: "
                      "preparation: missing fuel pump running", said)
        self.assertNotIn("stop:", said)

    def test_who_has_little_patience_waits_for_benches_that_come_to_rest(self):
        engine, machine = self.benches()
        self.system(engine.address, machine.address, "1.5 s", session=", patience: 1 s")
        run = self.start()
        run.ended()
        for bench in (engine, machine):
            self.assertEqual((bench.phases()[-1], bench.last("reason")), ("safe", "master"))

    def test_a_model_that_fails_is_known_before_a_bench_is_waited_for(self):
        engine, machine = self.bench("ice", 1), self.bench("em", 1)
        self.system_with(engine.address, machine.address, "1 s", ("soc_start: 0.5", "soc_start: 7"),
                         session=", patience: 30 min")
        self.assertIn("unit 'battery' at the start", self.start().ended(code=1))
        for bench in (engine, machine):
            bench.summary()
            self.assertNotIn("conditioned", bench.phases())

    def test_a_step_that_does_not_fit_is_refused_before_anything_is_said_to_a_bench(self):
        engine, machine = self.bench("ice", 1), self.bench("em", 1)
        self.system_with(engine.address, machine.address, "1 s", ("{ step: 10 ms", "{ step: 2.5 ms"))
        self.assertIn("is not a multiple of the slave's time resolution", self.start().ended(code=2))
        for bench in (engine, machine):
            self.assertEqual(bench.summary()["requests"], 0)

    def live_through_a_cut(self, step):
        self.watchdog, self.step = "1 s", step
        engine, machine = self.benches()
        link = self.emulator(engine, machine, "--cut", "3 s..3.3 s")
        self.system(*link.addresses, "4 s")
        with open(self.path("field.yaml"), encoding="utf-8") as f:
            text = f.read().replace(", gap: 200", "").replace("resolution: 10 ms", "resolution: 1 ms")
        self.write("field.yaml", text)
        run = self.start()
        run.ended()
        for name in ("engine", "machine"):  # 1 kHz: of 300 numbers in a row none comes
            self.assertGreater(self.links(run)[name]["lost"], 200)

    def test_a_cut_that_is_shorter_than_the_watchdogs_is_a_gap_and_no_more(self):
        self.live_through_a_cut("10 ms")

    def test_a_cut_is_no_more_where_the_run_has_steps_of_a_millisecond(self):
        self.live_through_a_cut("1 ms")

    def test_the_operator_who_stops_a_bench_is_named(self):
        engine, machine = self.benches()
        self.system(engine.address, machine.address, "30 s")
        run = self.start()
        self.turning(engine, machine)
        engine.send(signal.SIGINT)
        self.assertIn("the bench says: stop: by its operator", run.ended(code=1))
        self.check_stop(machine, "master")

    def test_a_run_that_is_killed_leaves_no_record_of_another_session(self):
        engine, machine = self.benches()
        self.system(engine.address, machine.address, "30 s")
        self.write("s.csv", "of yesterday")
        run = self.start("field", "--session-record", "s.csv", "--no-watchdog")
        machine.until("run")
        run.send(signal.SIGKILL)
        run.process.wait()
        said = self.cardan("bench", "session", "s.csv").stdout
        self.assertIn("the run has not come to its end", said)
        begin = time.monotonic()
        done = self.cardan("run", "field.yaml", "--session-record", "nowhere/s.csv", code=1)
        self.assertIn("nowhere/s.csv: cannot write the record of the session", done.stderr)
        self.assertLess(time.monotonic() - begin, 10)

    def test_the_table_of_a_session_says_when_a_stand_in_was_in_use(self):
        self.write("s.csv", """\
time,utc,master.state,em.state,em.phase,em.source,em.heat,note
[s],[s],,,,,[K],
0,1794797430,5,11,5,0,nan,
1,1794797431,5,11,5,1,nan,
2,1794797432,5,11,5,2,nan,
3,1794797433,5,0,5,2,nan,
4,1794797434,5,11,5,2,nan,
6,1794797436,5,11,5,0,nan,
7,1794797437,7,15,6,0,nan,stop time
""")
        rows = [line.split(None, 5)[4:] for line in self.cardan(
            "bench", "session", "s.csv").stdout.splitlines() if " em " in line]
        self.assertEqual([" ".join(r).split() for r in rows],
                         [["RUNNING", "run", "1", "s"], ["RUNNING", "run", "(stand-in)", "2", "s"],
                          ["ALIVE", "(stand-in)", "1", "s"],
                          ["RUNNING", "run", "(stand-in)", "2", "s"], ["RUNNING", "run", "1", "s"],
                          ["STOPPING", "speed", "down", "0", "s"]])


def load_tests(loader, tests, pattern):
    return Beside(loader.loadTestsFromTestCase(Start))


if __name__ == "__main__":
    unittest.main(verbosity=2)
