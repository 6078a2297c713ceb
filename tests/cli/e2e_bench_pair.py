"""A power bond with a wave pair over benches in processes of their own, through an emulated network,
while the master, a bench or the network is killed: who is left comes to rest in its order, and what
the ports have given was there."""

import signal
import time
import unittest

from bench_field import Beside, Field

STOP_TIME = 8  # s, on the sheets of both benches
BONDS = """\
bonds:
  - { name: machine shaft, action: machine.torque_calc, flow: vehicle.shaft_speed, pair: wave,
      impedance: 20 N.m.s/rad, inner: 1 ms }
run: {"""


class Pair(Field):
    watchdog = "1 s"

    def begin(self, stop):
        self.engine, self.machine = self.benches(em=("--pair", "speed_ref:torque_calc"))
        self.link = self.emulator(self.engine, self.machine, "--delay", "20 ms", "--jitter", "10 ms",
                                  "--loss", "0.02")
        path = self.system(*self.link.addresses, stop)
        with open(path, encoding="utf-8") as f:
            text = f.read()
        self.write("field.yaml", text.replace("run: {", BONDS, 1))
        return self.start("field", "--watchdog", "2 s")

    def check_ports(self, run):
        """Both sides have acted, and the books of the one here are right."""
        here, there = self.report(run)["pairs"]
        self.assertEqual(["vehicle", "machine"], [here["unit"], there["unit"]])
        self.assertGreater(here["taken"], 5)
        for side in (here, there):
            self.assertGreater(side["granted"], 0)
        self.assertAlmostEqual(here["tank"], here["absorbed"] - here["spent"] + here["received"] -
                               here["granted"] - here["dumped"], delta=1e-6 * (1 + here["absorbed"]))

    def test_a_run_that_ends(self):
        run = self.begin("3 s")
        run.ended()
        self.check_ports(run)
        for bench in (self.engine, self.machine):
            self.check_stop(bench, "master")

    def test_the_master_is_killed(self):
        run = self.begin("120 s")
        self.turning(self.engine, self.machine)
        run.send(signal.SIGKILL)
        for bench in (self.engine, self.machine):  # by the run's guard, or by their own deadman
            bench.until("safe")
            self.check_stop(bench, "master" if bench.last("reason") == "master" else "watchdog")

    def test_the_bench_with_the_port_is_killed(self):
        run = self.begin("120 s")
        self.turning(self.engine, self.machine)
        self.machine.send(signal.SIGKILL)
        begin = time.monotonic()
        said = run.ended(1)
        self.assertIn("machine", said)
        self.assertLess(time.monotonic() - begin, 20)
        self.engine.until("safe")
        self.check_ports(run)

    def test_the_network_is_gone(self):
        run = self.begin("120 s")
        self.turning(self.engine, self.machine)
        self.link.send(signal.SIGKILL)
        for bench in (self.engine, self.machine):
            self.check_stop(bench, "watchdog", 1)
        run.ended(1)
        self.check_ports(run)


def load_tests(loader, tests, pattern):
    return Beside(loader.loadTestsFromTestCase(Pair))


if __name__ == "__main__":
    unittest.main()
