"""Bad things that happen to coupled benches, with real processes: whatever it is, each bench comes
to rest by itself in the order torque, speed, voltage, the recording opens, and somebody says why."""

import signal
import time
import unittest

from bench_field import Beside, Field
from e2e import fmu


class BadThings(Field):
    def test_a_bench_that_is_killed_ends_the_run_and_the_other_bench(self):
        engine, machine = self.benches()
        self.system(engine.address, machine.address, "30 s")
        run = self.start()
        self.turning(engine, machine)
        machine.send(signal.SIGKILL)
        self.assertIn("unit 'machine' at t = ", run.ended(code=1))
        report = self.report(run)
        self.assertEqual((report["end"], report["end_unit"]), ("failed", "machine"))
        self.check_stop(engine, "master")
        self.check_recording(report["time"] - 0.02)
        self.assertEqual(machine.rows()[-1]["phase"], 5)  # its trace is whole up to there

    def test_a_master_that_is_killed_leaves_benches_that_stop_by_themselves(self):
        engine, machine = self.benches()
        self.system(engine.address, machine.address, "30 s")
        run = self.start("field", "--no-watchdog")
        self.turning(engine, machine)
        begin = time.monotonic()
        time.sleep(1.5)
        run.send(signal.SIGKILL)
        run.process.wait()
        lasted = time.monotonic() - begin
        self.check_stop(engine, "watchdog", watchdog=0.3)
        self.check_stop(machine, "watchdog", watchdog=0.3)
        self.check_recording(lasted - 0.7, finished=False)  # written five times a second
        self.cardan("plot", "em_trace.csv", "--variables", "speed", "-o", "trace.svg")

    def test_a_network_that_is_cut_for_ever_stops_both_benches_within_their_watchdog(self):
        engine, machine = self.benches()
        link = self.emulator(engine, machine, "--cut", "2 s..")
        self.system(*link.addresses, "30 s")
        run = self.start()
        self.assertIn("no new data for 0.3", run.ended(code=1))
        self.assertIn(self.report(run)["end_unit"], ("engine", "machine"))
        self.check_stop(engine, "watchdog", watchdog=0.3)
        self.check_stop(machine, "watchdog", watchdog=0.3)
        self.check_recording(1)
        counts = self.passed(link)
        self.assertGreater(counts["there"]["cut"], 0)
        self.assertGreater(counts["back"]["cut"], 0)

    def test_a_network_that_comes_back_after_a_second_finds_benches_at_rest(self):
        engine, machine = self.benches()
        link = self.emulator(engine, machine, "--cut", "2 s..3 s")
        self.system(*link.addresses, "30 s")
        run = self.start()
        self.assertIn("no new data for 0.3", run.ended(code=1))
        self.check_stop(engine, "watchdog", watchdog=0.3)
        self.check_stop(machine, "watchdog", watchdog=0.3)
        self.check_recording(1)
        # They are free again: the next run has them.
        self.system(engine.address, machine.address, "0.5 s", name="next")
        self.start("next").ended()

    def test_who_has_the_patience_lives_through_a_cut_of_a_second(self):
        self.watchdog = "3 s"
        engine, machine = self.benches()
        link = self.emulator(engine, machine, "--cut", "2 s..3 s")
        self.system(*link.addresses, "4 s")
        run = self.start()
        run.ended()
        links = self.links(run)
        for bench, link_of in ((engine, links["engine"]), (machine, links["machine"])):
            self.check_stop(bench, "master")
            end = bench.summary()
            self.assertGreater(end["data_lost"], 80)  # at 100 Hz
            self.assertEqual(end["data_in"] + end["data_lost"], link_of["out"] + 2)  # at the start
            self.assertEqual(end["data_out"], link_of["in"] + link_of["lost"] + 2)
        self.passed(link)

    def test_set_values_outside_of_the_limits_are_clamped_and_said(self):
        engine, machine = self.benches()
        self.system(engine.address, machine.address, "2 s", torque="wild.torque",
                    units="  wild: { signals: { torque: { shape: step, start: 1 s, amplitude: 400, "
                          "unit: N.m } } }")
        run = self.start()
        run.ended()
        self.check_stop(engine, "master")
        self.check_stop(machine, "master")
        most = max(r["torque_ref"] for r in machine.rows())
        self.assertEqual(most, 250)
        self.assertEqual(machine.summary()["clamps"], 0)  # the master's side kept to it already
        events = [e["text"] for e in self.check_recording(1.9)["events"]]
        self.assertTrue(any("'machine': clamped: torque = 400 N.m, used 250" in e for e in events),
                        events)

    def test_a_measured_value_beyond_its_bounds_is_a_fault(self):
        engine, machine = self.benches(em=["--fault", "sensor-loss:torque@1s"])
        self.system(engine.address, machine.address, "30 s")
        run = self.start()
        said = run.ended(code=1)
        self.assertIn("unit 'machine' at t = ", said)
        self.assertIn("fault: torque measured nan N.m, allowed -320 to 320", said)
        self.assertEqual(self.report(run)["end_unit"], "machine")
        self.check_stop(engine, "master")
        self.check_stop(machine, "trip")
        self.assertIn("torque = nan N.m, allowed -320 to 320", machine.last("why"))
        self.check_recording(0.9)

    def test_a_model_that_says_nan_ends_the_run_before_a_bench_hears_of_it(self):
        engine, machine = self.benches()
        self.system(engine.address, machine.address, "30 s", soc="broken.y",
                    units="  broken: { fmu: %s, parameters: { mode: 5, when: 1 } }" % fmu("faulty"))
        run = self.start()
        said = run.ended(code=1)
        self.assertRegex(said, "unit 'broken' at t = .* output 'y' is not a number")
        self.assertEqual(self.report(run)["end_unit"], "broken")
        for bench in (engine, machine):
            self.check_stop(bench, "master")
            self.assertEqual(bench.summary()["not_numbers"], 0)
        self.check_recording(0.9)

    def test_an_overrun_ends_the_run_where_it_is_told_to(self):
        self.watchdog = "5 s"
        engine, machine = self.benches()
        self.system(engine.address, machine.address, "30 s",
                    pace="{ factor: realtime, overrun: stop, slack: 200 ms }")
        run = self.start()
        self.turning(engine, machine)
        run.send(signal.SIGSTOP)
        time.sleep(0.5)
        run.send(signal.SIGCONT)
        self.assertIn("'overrun: stop'", run.ended(code=3))
        self.assertEqual(self.report(run)["end"], "overrun")
        self.check_stop(engine, "master")
        self.check_stop(machine, "master")
        self.check_recording(0.3)

    def test_a_master_that_stands_still_finds_benches_that_have_stopped(self):
        engine, machine = self.benches()
        self.system(engine.address, machine.address, "30 s")
        run = self.start("field", "--no-watchdog")
        self.turning(engine, machine)
        run.send(signal.SIGSTOP)
        self.check_stop(engine, "watchdog", watchdog=0.3)
        self.check_stop(machine, "watchdog", watchdog=0.3)
        run.send(signal.SIGCONT)
        said = run.ended(code=1)
        self.assertRegex(said, "the bench says: fault: watchdog|no new data for")
        self.check_recording(0.3)

    def test_a_second_master_is_refused_and_the_first_goes_on(self):
        engine, machine = self.benches()
        self.system(engine.address, machine.address, "3 s")
        self.system(engine.address, machine.address, "3 s", name="other")
        run = self.start()
        self.turning(engine, machine)
        other = self.start("other")
        said = other.ended(code=1)
        self.assertIn("unit 'engine'", said)
        self.assertIn("in RUNNING, in a run of another master", said)
        run.ended()
        self.assertEqual(self.report(run)["end"], "stop time")
        self.check_stop(engine, "master")
        self.check_stop(machine, "master")
        self.check_recording(2.9)


def load_tests(loader, tests, pattern):
    return Beside(loader.loadTestsFromTestCase(BadThings))


if __name__ == "__main__":
    unittest.main()
