"""cardan export c on emulated boards: the circuits of Rodriguez (2021, 3.4) on a Cortex-M4F and a Cortex-M7."""
import os
import shutil
import tempfile
import unittest

import boards
import circuits

FUNCTIONS = [os.path.join(boards.HERE, "functions.c"), "-fno-builtin"]


class OnBoards(unittest.TestCase):
    def setUp(self):
        if not boards.have_boards():
            self.skipTest("without arm-none-eabi-gcc and qemu-system-arm there is no board: make test-mcu installs them")
        self.folder = tempfile.mkdtemp(dir=os.environ.get("CARDAN_TMP"))
        self.addCleanup(shutil.rmtree, self.folder)

    def test_circuits_compute_what_the_host_computes(self):
        for name in circuits.CIRCUITS:
            m = circuits.Model(os.path.join(self.folder, name), name)
            s = circuits.Model(os.path.join(self.folder, name + "_single"), name, single=True)
            reference = m.reference()
            same, _ = m.run("host", flags=FUNCTIONS)
            for target in boards.BOARDS:
                with self.subTest(circuit=name, board=target):
                    # With its own C library, whose sin and exp round otherwise than the host's
                    rows, double = m.run(target)
                    self.assertLess(circuits.worst(rows, reference), 1e-12)
                    # With the same functions of <math.h> on both
                    self.assertEqual(m.run(target, flags=FUNCTIONS)[0], same)
                    rows, single = s.run(target)
                    self.assertLess(circuits.worst(rows, reference), 1e-6)
                    print("\n%s, %s: at most %d instructions of a step, %d in single precision; %d bytes of flash, %d of memory"
                          % (name, target, double, single, *boards.sizes(os.path.join(m.folder, target))), flush=True)


if __name__ == "__main__":
    unittest.main()
