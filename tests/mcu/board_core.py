"""libcardan-core on emulated boards: coupling elements with the host's bits and what they cost, and the drive of
examples/controller as a slave of cardan run over the board's Ethernet, with the host's results."""
import os
import shutil
import tempfile
import unittest

import boards
import circuits
import core
import twins


class OnBoards(unittest.TestCase):
    def setUp(self):
        if not boards.have_boards():
            self.skipTest("without arm-none-eabi-gcc and qemu-system-arm there is no board: make test-mcu installs them")
        self.folder = tempfile.mkdtemp(dir=os.environ["CARDAN_TMP"])
        self.addCleanup(shutil.rmtree, self.folder)

    def elements(self, target, single, own=False):
        program = os.path.join(self.folder, "elements_" + target)
        core.build_elements(target, program, own=own, single=single)
        return core.rows(boards.run(target, program))

    def test_elements_have_the_bits_of_the_host(self):
        for single in (False, True):
            for m4, m7, host in zip(*(self.elements(target, single) for target in ("m4", "m7", "host")), strict=True):
                with self.subTest(element=m4.name, single=single):
                    self.assertEqual(m4.said, host.said)
                    self.assertEqual(m7.said, host.said)

    def test_what_elements_cost(self):
        found = [self.elements(target, single, own=True) for target in ("m4", "m7") for single in (False, True)]
        for m4, m4_single, m7, m7_single in zip(*found, strict=True):
            print("\n| %s | %d | %d | %d | %d | %d | %d |" % (m4.name, m4.memory, m4.instructions, m7.instructions, m4_single.memory,
                  m4_single.instructions, m7_single.instructions), end="", flush=True)
            with self.subTest(element=m4.name):
                # A fifth of what 168 MHz have for a sample at 1 kHz; of the others, docs/how-to/controllers.md has the numbers
                if m4.name in ("zoh", "foh", "eros", "error-space", "moment", "savitzky-golay", "wiener", "network", "error-curves"):
                    self.assertLess(m4.instructions, 168000 // 5)
                    self.assertLess(m4_single.instructions, 168000 // 5)
                if "compact" in m4.name or m4.name == "eros+rebase":
                    self.assertLess(m4_single.instructions, 168000 // 5)

    def test_auto_with_commands_a_wave_pair_and_a_slave_fit_into_128_kb_of_flash(self):
        for target in ("m4", "m7"):
            program = core.build_whole(target, self.folder)
            _, memory, refused, _, _ = boards.numbers(boards.run(target, program))
            flash, _ = boards.sizes(program)
            print("\nauto with two commands, wave pair and slave, %s: %d bytes of flash, %d of memory" % (target, flash, memory), flush=True)
            self.assertLess(flash, 128 << 10)
            self.assertEqual(refused, 0)

    def test_compact_in_single_precision_they_fit_into_32_kb_of_memory_and_a_fifth_of_the_time(self):
        flags = ["-DCOMMANDS=2", "-DMEMORY=25088"]
        want = boards.numbers(boards.run("host", core.build_whole("host", self.folder, ["-DCOMMANDS=2", "-DMEMORY=60000"])))[0]
        for target in ("m4", "m7"):
            # The linker refuses what needs more flash or memory, its stack included.
            program = core.build_whole(target, self.folder, flags, single=True, flash=128 << 10, ram=32 << 10, stack=4608)
            x, memory, refused, most, stack = boards.numbers(boards.run(target, program))
            flash, ram = boards.sizes(program)
            print("\ncompact, single precision, %s: %d bytes of flash, %d of memory with a stack of 4608, of which %d were used; the core took %d; "
                  "%d instructions" % (target, flash, ram, stack, memory, most), flush=True)
            self.assertEqual(refused, 0)
            self.assertLess(stack, 4608)
            self.assertLess(most, 168000 // 5)
            self.assertLess(abs(x - want), 1e-6 * abs(want))

    def test_exported_twins_have_the_bits_of_the_host(self):
        functions = [os.path.join(boards.HERE, "functions.c")]
        for name in twins.TWINS:
            twin = twins.Twin(os.path.join(self.folder, name), name)
            same, _ = twin.run("host", flags=["-fno-builtin"], more=functions)
            reference = twin.reference()
            for target in boards.BOARDS:
                with self.subTest(twin=name, board=target):
                    # With the same functions of <math.h> on both, then with its own C library, whose exp and log round otherwise
                    self.assertEqual(twin.run(target, flags=["-fno-builtin"], more=functions)[0], same)
                    rows, (memory, refused, most) = twin.run(target)
                    self.assertEqual(refused, 0)
                    self.assertLess(circuits.worst(twin.banded(rows), reference), 1e-9)
                    print("\n| %s, %s | %d bytes of flash | %d of memory | %d instructions |"
                          % (name, target, boards.sizes(os.path.join(twin.folder, "twin_" + target))[0], memory, most), end="", flush=True)

    def test_exported_elements_have_the_bits_of_the_host(self):
        for name, subject, _, _, latency in core.ELEMENTS:
            core.export_element(self.folder, subject, latency)
            want = core.run_element("host", self.folder)
            for target in ("m4", "m7"):
                with self.subTest(element=name, board=target):
                    self.assertEqual(core.run_element(target, self.folder), want)

    def test_the_drive_has_the_results_of_the_host(self):
        port = core.free_port()
        want, _, run = core.run_drive("host", core.build_drive("host", self.folder, port), self.folder, port)
        self.assertEqual(run.returncode, 0, run.stderr)
        for target in ("m4", "m7"):
            with self.subTest(board=target):
                port = core.free_port()
                program = core.build_drive(target, self.folder, port, memory=18 << 10)
                got, said, run = core.run_drive(target, program, self.folder, port)
                self.assertEqual(run.returncode, 0, run.stderr)
                self.assertEqual(got, want)
                memory, refused, stack, _, steps = boards.numbers(said.strip().splitlines()[-1])
                self.assertEqual((refused, steps), (0, 1000))
                flash, ram = boards.sizes(program)
                self.assertLess(flash, 128 << 10)
                self.assertLess(ram, 32 << 10)  # with the stack
                print("\ndrive, %s: %d bytes of flash, %d of memory with a stack of 10240, of which %d were used; the core took %d"
                      % (target, flash, ram, stack, memory), flush=True)


if __name__ == "__main__":
    unittest.main()
