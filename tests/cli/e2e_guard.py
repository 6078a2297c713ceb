"""Who watches a run with test benches when something dies, with real processes: machines come to rest,
the record is whole, and what happened is said with its cause."""

import re
import signal
import unittest

from bench_field import Beside, Bench, Field


class Killed(Field):
    """A bench that dies is noticed within seconds, whatever it was doing."""

    def check_lost(self, said, name, state):
        found = re.search(r"'%s'.* is lost: no answer to \w+, sent \d+ times; it was last received "
                          r"([\d.]+) s ago, in %s" % (name, state), said)
        self.assertTrue(found, said)
        self.assertLess(float(found[1]), 8)  # of 3 s, on the clock of the master

    def test_a_bench_that_dies_while_others_are_conditioned_is_named(self):
        engine = Bench(self, "ice", "--speed-up", "1", "--watchdog", self.watchdog)  # minutes
        machine = Bench(self, "em", "--speed-up", "1", "--watchdog", self.watchdog)
        path = self.system(engine.address, machine.address, "1 s", session=", patience: 30 min")
        with open(path, encoding="utf-8") as f:
            text = f.read()
        for medium in ("coolant 60 degC; oil", "oil"):
            text = text.replace(", gap: 200 }", f', initial: "{medium} 60 degC; tolerance 2 K" }}', 1)
        self.write("field.yaml", text)
        run = self.start()
        engine.until("conditioning")
        machine.until("conditioning")
        machine.process.kill()
        self.check_lost(run.ended(code=1), "machine", "CONFIGURING")
        engine.until("safe")


def load_tests(loader, tests, pattern):
    return Beside(loader.loadTestsFromTestCase(Killed))


if __name__ == "__main__":
    unittest.main()
