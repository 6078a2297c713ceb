"""Large systems: twice as many units and connections take twice the time and memory."""

import os
import subprocess
import sys
import unittest

from e2e import CARDAN, HERE, EndToEnd, fmu

TOOL = os.path.join(HERE, "..", "tools", "make_large_system.py")
UNITS = 4000


class Scale(EndToEnd):
    def measure(self, units, shape, model, keys=""):
        """CPU seconds and bytes of one step with everything before and behind it."""
        subprocess.run([sys.executable, TOOL, "--units", str(units), "--shape", shape, "--fmu",
                        fmu(model, 3), "--keys", keys, self.path("large.yaml")], check=True)
        with open(self.path("said"), "w", encoding="utf-8") as said:
            child = subprocess.Popen([CARDAN, "run", "large.yaml", "-o", "none", "--isolate",
                                      "none"], cwd=self.folder, env=self.environment(),
                                     stdout=said, stderr=said)
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        with open(self.path("said"), encoding="utf-8") as said:
            self.assertEqual(child.returncode, 0, said.read()[-2000:])
        return used.ru_utime + used.ru_stime, 1024 * used.ru_maxrss

    def grows(self, shape, model, keys=""):
        """Time at most 3 x as long with twice as many: 4 would be quadratic, 2 is linear."""
        best = [min(self.measure(n, shape, model, keys) for _ in range(2))
                for n in (UNITS, 2 * UNITS)]
        (t1, m1), (t2, m2) = best
        self.assertLess(t2, 3 * t1 + 0.05, f"{shape} of {model} {keys}: {t1:.3f} s, {t2:.3f} s")
        return (m2 - m1) / UNITS

    def test_units_by_themselves(self):
        # 2.3 KB beyond the 0.4 KB of the FMU
        self.assertLess(self.grows("none", "chain"), 3200)

    def test_a_chain(self):
        self.assertLess(self.grows("chain", "chain"), 7000)

    def test_many_loops(self):
        self.grows("pairs", "chain")
        self.grows("pairs", "feedthrough")  # algebraic ones

    def test_one_loop_of_all(self):
        self.grows("ring", "feedthrough", "scheme: gauss-seidel")

    def test_a_star(self):
        self.grows("star", "chain", "scheme: gauss-seidel")

    def test_a_mesh_with_ten_connections_to_each(self):
        self.grows("mesh", "mesh")

    def test_the_report_shows_some_and_json_has_all(self):
        self.measure(1000, "chain", "chain")
        with open(self.path("said"), encoding="utf-8") as said:
            self.assertIn("and 950 more units", said.read())
        j = self.cardan_json("run", "large.yaml", "-o", "none", "--isolate", "none")
        self.assertEqual(len(j["units"]), 1000)


if __name__ == "__main__":
    unittest.main()
