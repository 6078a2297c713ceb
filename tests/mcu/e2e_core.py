"""libcardan-core on the host: what it needs of a C library, that it computes what libcardan computes, and the drive of
examples/controller as a slave of cardan run."""
import csv
import io
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import boards
import core
import twins

# Of freestanding C17, <string.h> and <math.h>; <stdio.h> for the declarations of what small.h replaces.
HEADERS = {"ctype", "float", "inttypes", "limits", "math", "stdarg", "stdatomic", "stdbool", "stddef", "stdint", "stdio", "stdlib", "string", "strings"}
FUNCTIONS = {"acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "cos", "cosh", "erfc", "exp", "expm1", "floor", "fmax", "fmin", "fmod",
             "hypot", "ldexp", "llround", "log", "log10", "nearbyint", "nextafter", "pow", "rint", "round", "sin", "sincos", "sinh", "sqrt", "tan", "tanh", "trunc", "memchr", "memcmp", "memcpy", "memmove", "memset", "strchr", "strcasecmp", "strcmp", "strcspn", "strlen", "strncasecmp", "strncmp",
             "strrchr", "strspn", "tolower"}
COMPILER = {"__ctype_b_loc", "__ctype_tolower_loc", "_GLOBAL_OFFSET_TABLE_"}  # of the host's compiler and <ctype.h>


class Core(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ["CARDAN_TMP"])
        self.addCleanup(shutil.rmtree, self.folder)

    def test_it_needs_little_of_a_c_library(self):
        _, obj = core.library("host")
        self.assertLessEqual(core.undefined(obj), FUNCTIONS | COMPILER)
        for path in core.sources():
            with open(path, encoding="utf-8") as f:
                included = set(re.findall(r"^#include <([\w/]+)\.h>", f.read(), re.M))
            self.assertLessEqual(included, HEADERS, path)
        written = boards.checked(["size", "-A", obj])
        data = sum(int(line.split()[1]) for line in written.splitlines() if line.split()[:1] and re.match(r"\.(data|bss)(\.|$)(?!rel)", line.split()[0]))
        self.assertLess(data, 512, "what changes is in the memory that it is given")

    def test_elements_compute_what_those_of_libcardan_compute(self):
        program = os.path.join(self.folder, "elements")
        core.build_elements("host", program)
        ours = core.rows(boards.run("host", program))
        whole = core.rows(boards.checked([os.environ["ELEMENTS"]]))
        self.assertGreater(len(ours), 17)
        # The memory differs: libcardan keeps longer sentences.
        self.assertEqual([(r.name, r.said) for r in ours], [(r.name, r.said) for r in whole])
        for row in ours:
            self.assertGreater(len(set(row.said)), 10, row.name)

    def test_elements_in_single_precision_are_near_those_in_double(self):
        _, obj = core.library("host", single=True)
        self.assertLessEqual(core.undefined(obj), FUNCTIONS | {name + "f" for name in FUNCTIONS} | COMPILER)
        program = os.path.join(self.folder, "elements")
        core.build_elements("host", program, single=True)
        double = core.rows(boards.checked([os.environ["ELEMENTS"]]))
        for one, two in zip(core.rows(boards.run("host", program)), double, strict=True):
            with self.subTest(element=one.name):
                self.assertLessEqual(core.apart(one, two), core.SINGLE.get(one.name, 1e-6))
                self.assertLessEqual(one.memory, two.memory)
        # A program for the other precision does not link.
        with self.assertRaisesRegex(AssertionError, "crd_core_start"):
            boards.build("host", [os.path.join(boards.HERE, "elements.c"), core.library("host", single=True)[0]], program, core.flags_of(False))

    def test_a_drive_is_a_slave_of_cardan_run(self):
        port = core.free_port()
        program = core.build_drive("host", self.folder, port)
        text, said, run = core.run_drive("host", program, self.folder, port, torque=5)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn(" bytes of memory, 0 refused", said)
        table = list(csv.DictReader(io.StringIO(text)))
        self.assertEqual(len(table), 201)
        torque = [float(row["drive.torque"]) for row in table]
        self.assertEqual(max(torque), 5)  # 12 were asked for, the test case allows 5
        self.assertEqual(min(torque), -5)
        self.assertEqual({row["drive.bench.status"] for row in table[2:]}, {"5"})
        self.assertGreater(max(float(row["drive.speed"]) for row in table), 10)

    def test_exported_elements_have_the_bits_of_libcardan(self):
        for name, subject, method, taps, latency in core.ELEMENTS:
            with self.subTest(element=name):
                said = core.export_element(self.folder, subject, latency)
                self.assertRegex(said, r"an estimate takes at most \d+ sums and products; state \d+ doubles")
                flags = ["-DWITH_CORE", "-DMETHOD=CRD_METHOD_" + method, "-DTAPS=%d" % taps, "-DHOLD=0", "-I", os.path.join(core.ROOT, "include")]
                rows = core.run_element("host", self.folder, flags, more=os.environ["LIBRARIES"].split(";"))
                if latency:
                    self.assertEqual(rows[0][0], 0.5)  # its start
                rows = rows[latency:]  # before its first sample libcardan believes in other latencies
                self.assertEqual([row[0::2] for row in rows], [row[1::2] for row in rows])
                self.assertGreater(len({row[0] for row in rows}), 250)
                core.export_element(self.folder, subject, latency, "--precision", "single")
                single = core.run_element("host", self.folder)[latency:]
                largest = max(abs(row[0]) for row in rows)
                worst = max(abs(a - b) for one, two in zip(single, rows) for a, b in zip(one, two[0::2])) / largest
                self.assertLess(worst, 1e-6)

    def test_exported_twins_have_the_bits_of_cardan_twin_run(self):
        for name in twins.TWINS:
            with self.subTest(twin=name):
                twin = twins.Twin(os.path.join(self.folder, name), name)
                self.assertRegex(twin.said, r"a step takes at most \d+ sums, products and comparisons, and \d+ divisions")
                rows, (_, refused, _) = twin.run("host")
                self.assertEqual(refused, 0)
                self.assertEqual(twin.banded(rows), twin.reference())
                self.assertEqual(len(rows), twins.ROWS[name] // twins.EVERY)
                self.assertEqual(len({row[0] for row in rows}), len(rows))

    def test_export_c_refuses_elements_that_need_more(self):
        def refused(*arguments):
            done = subprocess.run([core.CARDAN, "export", "c", *arguments], capture_output=True, text=True, cwd=self.folder, check=False)
            self.assertEqual((done.returncode, os.listdir(self.folder)), (2, []), done.stderr)
            return done.stderr
        self.assertIn("expected --latency STEPS, 0 to 120", refused("{algorithm: eros, detect: none}", "--step", "1ms"))
        self.assertIn("has no macro step: say it with --step", refused("{algorithm: eros, detect: none}", "--latency", "3"))
        self.assertIn("is not one linear function", refused("{algorithm: ridge, detect: none}", "--step", "1ms", "--latency", "3"))
        self.assertIn("eros detects discontinuities", refused("eros", "--step", "1ms", "--latency", "3"))
        self.assertIn("for a netlist", refused("eros", "--step", "1ms", "--latency", "3", "--method", "tr"))
        self.assertIn("did you mean", refused("eross", "--step", "1ms", "--latency", "3"))

    def test_a_port_without_a_clock_is_told(self):
        archive, _ = core.library("host")
        source, program = os.path.join(self.folder, "a.c"), os.path.join(self.folder, "a.out")
        with open(source, "w", encoding="utf-8") as f:
            f.write('#include "cardan/core.h"\n#include <stdio.h>\nstatic char memory[8192]; int main(void) { const char* why = 0;\n'
                    "crd_core_port port = {0}; crd_core* core = crd_core_start(&port, memory, sizeof memory, &why);\n"
                    "puts(why); return core ? 1 : 0; }\n")
        boards.checked([os.environ.get("CC", "cc"), "-I", os.path.join(core.ROOT, "include"), source, archive, "-lm", "-o", program])
        self.assertIn("port: time is NULL; expected a function that says the time in s", boards.checked([program]))

    def test_export_c_refuses_twins_that_are_not_for_controllers(self):
        def refused(path, *arguments):
            done = subprocess.run([core.CARDAN, "export", "c", path, *arguments], capture_output=True, text=True, cwd=self.folder, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual([f for f in os.listdir(self.folder) if f.endswith((".c", ".h"))], [])
            return done.stderr
        junction = twins.TWINS["junction"]
        self.assertIn("its numbers are doubles", refused(junction, "--precision", "single"))
        self.assertIn("--latency is for a coupling element", refused(junction, "--latency", "3"))
        with open(junction, encoding="utf-8") as f:
            text = f.read().replace("inverter.cir", os.path.join(twins.DATA, "inverter.cir"))
        with open(os.path.join(self.folder, "old.yaml"), "w", encoding="utf-8") as f:
            f.write(text + "filter: thesis\n")
        self.assertIn("the published filter is there to compare with", refused("old.yaml"))
        with open(os.path.join(self.folder, "wrong.yaml"), "w", encoding="utf-8") as f:
            f.write(text.replace("sd: 0.5", "sd: -1"))
        self.assertIn("wrong.yaml:", refused("wrong.yaml"))

    def test_export_c_refuses_what_is_no_slave(self):
        def refused(*arguments):
            done = subprocess.run([core.CARDAN, "export", "c", *arguments], capture_output=True, text=True, cwd=self.folder, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            return done.stderr
        drive = os.path.join(core.CONTROLLER, "drive.dcpx")
        self.assertIn("--method is for a netlist", refused(drive, "--method", "tr"))
        with open(os.path.join(self.folder, "broken.dcpx"), "w", encoding="utf-8") as f:
            f.write("<dcpSlaveDescription/>")
        self.assertIn("broken.dcpx:1: ", refused("broken.dcpx"))
        self.assertEqual(os.listdir(self.folder), ["broken.dcpx"])


if __name__ == "__main__":
    unittest.main()
