"""cardan export c on the host: the file compiles anywhere and computes what cardan circuit computes."""
import os
import shutil
import subprocess
import tempfile
import unittest

import boards
import circuits


class ExportC(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("CARDAN_TMP"))
        self.addCleanup(shutil.rmtree, self.folder)

    def model(self, name, **options):
        return circuits.Model(os.path.join(self.folder, "m%d" % len(os.listdir(self.folder))), name, **options)

    def test_double_precision_has_the_bits_of_the_reference_form(self):
        for name in circuits.CIRCUITS:
            with self.subTest(circuit=name):
                m = self.model(name)
                rows, _ = m.run("host")
                reference = m.reference()
                self.assertEqual(len(rows), len(reference))
                self.assertEqual(rows, reference)
                self.assertGreater(circuits.worst([reference[0]] * len(rows), reference), 0.01)

    def test_single_precision_is_within_a_millionth(self):
        for name in circuits.CIRCUITS:
            with self.subTest(circuit=name):
                m = self.model(name, single=True)
                rows, _ = m.run("host")
                self.assertLess(circuits.worst(rows, m.reference()), 1e-6)

    def test_every_method_that_is_offered_has_the_same_bits(self):
        for method in ("tr", "bdf1", "bdf2", "bdf3", "trbdf2"):
            with self.subTest(method=method):
                m = self.model("parts", extra=["--method", method])
                self.assertEqual(m.run("host")[0], m.reference())

    def test_the_file_needs_three_headers_and_no_memory(self):
        m = self.model("parts")
        with open(m.file, encoding="utf-8") as f:
            text = f.read()
        included = {line.split()[1] for line in text.splitlines() if line.startswith("#include")}
        self.assertEqual(included, {'"model.h"', "<math.h>", "<string.h>"})
        obj = os.path.join(m.folder, "model.o")
        boards.checked([os.environ.get("CC", "cc"), "-std=c17", "-pedantic-errors", "-O2", "-Wall", "-Wextra", "-Werror",
                        "-ffreestanding", "-c", m.file, "-o", obj])
        needed = {line.split()[-1] for line in boards.checked(["nm", "-u", obj]).splitlines() if line.strip()}
        allowed = {"exp", "expm1", "log", "log1p", "pow", "sin", "cos", "tanh", "sqrt", "fmin", "fmax", "fabs", "floor",
                   "nearbyint", "memcpy", "memset", "__stack_chk_fail", "_GLOBAL_OFFSET_TABLE_"}
        self.assertLessEqual(needed, allowed)
        written = boards.checked(["size", "-A", obj])
        data = sum(int(line.split()[1]) for line in written.splitlines() if line.split()[:1] in (["." + n] for n in ("data", "bss")))
        self.assertEqual(data, 0, "everything that changes is in the struct")

    def test_a_step_that_does_not_converge_is_an_error_and_leaves_the_state(self):
        m = self.model("rectifier", extra=["--iterations", "6"])
        main = os.path.join(m.folder, "main.c")
        with open(main, "w", encoding="utf-8") as f:
            f.write('#include "model.h"\n#include <string.h>\nint main(void) { static model a, b; model_begin(&a);\n'
                    "for (int k = 0; k < 2000; k++) { b = a; if (model_step(&a, 0)) {\n"
                    "return memcmp(a.x, b.x, sizeof a.x) || memcmp(a.limit, b.limit, sizeof a.limit) || a.steps != b.steps ? 2 : 7; } }\n"
                    "return 3; }\n")
        program = os.path.join(m.folder, "a.out")
        boards.checked([os.environ.get("CC", "cc"), "-std=c17", "-I", m.folder, m.file, main, "-lm", "-o", program])
        self.assertEqual(subprocess.run([program], check=False).returncode, 7)

    def refused(self, *arguments):
        done = subprocess.run([circuits.CARDAN, "export", "c", *arguments], capture_output=True, text=True, cwd=self.folder,
                              check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(os.listdir(self.folder), [])
        return done.stderr

    def test_what_cannot_be_is_refused(self):
        rlc = circuits.CIRCUITS["rlc"][0]
        self.assertIn("expected bdf1, bdf2, bdf3, tr or trbdf2", self.refused(rlc, "--method", "gauss2"))
        self.assertIn("expected bdf1, bdf2, bdf3, tr or trbdf2", self.refused(rlc, "--method", "tr-carried"))
        self.assertIn("ends with .c", self.refused(rlc, "-o", "rlc.fmu"))
        self.assertIn("has to be called rlc.c", self.refused(rlc, "-o", "other.c", "--name", "rlc"))
        self.assertIn("--latency is for a coupling element", self.refused(rlc, "--latency", "3"))
        self.assertIn("name of C", self.refused(rlc, "--name", "r-l-c"))


if __name__ == "__main__":
    unittest.main()
