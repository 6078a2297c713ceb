"""Habits that users bring along from other tools, shells and spreadsheets."""

import fcntl
import os
import pty
import shutil
import signal
import struct
import subprocess
import termios
import time
import unittest
import zipfile

from e2e import CARDAN, EndToEnd, fmu, near


class OtherTools(EndToEnd):
    def test_options_of_fmpy_are_taken(self):
        self.write("in.csv", "time,f\n0,0\n1,1\n")
        self.cardan("run", fmu("lo_fd2"), "-q", "--stop-time", "1", "--output-interval", "0.1",
                    "--input-file", "in.csv", "--output-file=out.csv")
        self.assertEqual(len(self.column("out.csv", "time")), 11)

    def test_options_and_commands_of_others_are_translated(self):
        self.cardan("run", fmu("lo_mono"), "--start-values", "m1", "2", code=2, says="--set NAME=")
        self.cardan("run", fmu("lo_mono"), "--resultFile=a.csv", code=2, says="here it is --output")
        self.cardan("info", fmu("lo_mono"), "--start-values", "m1", "2", code=2,
                    says="'cardan info --help' lists them")
        self.cardan("simulate", fmu("lo_mono"), code=2, says="did you mean run?")
        self.cardan("validate", fmu("lo_mono"), code=2, says="did you mean check?")


class Values(EndToEnd):
    def last(self, *arguments):
        self.cardan("run", fmu("types", 3), "-q", "-o", "o.csv", "--stop-time", "0.01", *arguments)
        return [column[-1] for column in self.table("o.csv")[1][1:]]

    def refuse(self, value, says):
        self.cardan("run", fmu("types", 3), "-q", "--set", value, code=2, says=says)

    def test_arrays_may_be_lists_in_brackets(self):
        for text in ("[4, 5,6]", "{4;5;6}", "4 5 6", "[4 5 6]"):
            with self.subTest(text):
                self.assertEqual(self.last("--set", "in_f64s=" + text, "--variables", "out_f64s"),
                                 [4, 5, 6])
        self.refuse("in_f64s=[4,5]", "2 values were given, expected 3")

    def test_truth_is_read_as_python_yaml_and_spreadsheets_write_it(self):
        self.assertEqual(self.last("--set", "in_bs=[True, no, ON]", "--variables", "out_bs"),
                         [1, 0, 1])
        self.refuse("in_b=maybe", "'maybe', expected true, false")

    def test_numbers_beyond_the_range_are_refused_but_infinity_is_one(self):
        self.refuse("in_f64=1e400", "'1e400' is too large")
        self.refuse("in_f64=-1e400", "'-1e400' is too large")
        self.last("--set", "in_f64=-inf", "--variables", "out_b")

    def test_several_values_for_one_are_not_taken_for_a_unit(self):
        self.refuse("in_f64=1 2", "several values, expected one")

    def test_elements_of_arrays_are_recorded_by_their_names(self):
        for version in (2, 3):
            for pattern, names in (("out_f64s[2]", ["out_f64s[2]"]),
                                   ("out_bs[*]", ["out_bs[1]", "out_bs[2]", "out_bs[3]"])):
                with self.subTest(version=version, pattern=pattern):
                    self.cardan("run", fmu("types", version), "-q", "-o", "o.csv", "--variables",
                                pattern)
                    self.assertEqual(self.table("o.csv")[0][1:], names)

    def test_info_lists_the_items_of_enumerations(self):
        for version in (2, 3):
            said = self.cardan("info", fmu("types", version), "--variables", "*_e").stdout
            self.assertRegex(said, r"\nin_e +red 1, green 2, blue 3\n")
            said = self.cardan("info", fmu("types", version), "--variables", "*_f64").stdout
            self.assertNotIn("items", said)


class Recordings(EndToEnd):
    def test_cells_without_a_value_do_not_count(self):
        self.write("in.csv", "time,f,g\n0,,1\n0.25,1,\n0.5,,\n1,2,3\n2,,\n")
        self.write("s.yaml", "cardan: 1\nunits: { r: { replay: in.csv }, "
                             "h: { replay: in.csv, interpolation: hold } }\n"
                             "run: { step: 250 ms, stop: 2 s }\nresults: o.csv\n")
        self.cardan("run", "s.yaml", says="in.csv: 2 columns are without a value in some rows, "
                                          "first 'f' at 0")
        for name, values in (("r.f", [1, 1, 4 / 3, 5 / 3, 2, 2, 2, 2, 2]),
                             ("r.g", [1, 1.5, 2, 2.5, 3, 3, 3, 3, 3]),
                             ("h.f", [1, 1, 1, 1, 2, 2, 2, 2, 2]),
                             ("h.g", [1, 1, 1, 1, 3, 3, 3, 3, 3])):
            got = self.column("o.csv", name)
            self.assertTrue(all(near(a, b, 1e-12) for a, b in zip(got, values)), (name, got))

    def test_a_text_in_a_column_of_numbers_is_found(self):
        self.write("in.csv", "time,f\n0,1\n0.5,abc\n1,2\n")
        self.cardan("run", fmu("lo_fd2"), "--input", "in.csv", code=2,
                    says="in.csv: column 'f' at time 0.5: 'abc', expected a number")


class Files(EndToEnd):
    def test_dash_is_standard_output(self):
        done = self.cardan("run", fmu("lo_mono"), "-q", "-o", "-", "--stop-time", "0.01")
        self.assertEqual(done.stdout.splitlines()[0][:8], "time,f,x")
        self.assertEqual(len(done.stdout.splitlines()), 12)
        self.cardan("run", fmu("lo_mono"), "-q", "-o", "-", "--json", code=2,
                    says="both write to standard output")
        self.assertEqual(os.listdir(self.folder), ["unpack"])

    def test_a_description_comes_out_of_a_pipe(self):
        self.oscillator()
        with open(self.path("oscillator.yaml"), encoding="utf-8") as f:
            text = f.read()
        self.cardan("run", "oscillator.yaml", "-q", "-o", "a.csv")
        self.cardan("run", "-", "-q", "-o", "b.csv", input=text)
        self.cardan("compare", "a.csv", "b.csv", "--tolerance", "0", "--absolute", "0")
        self.cardan("check", "-", input=text)
        self.cardan("check", "-", input=text.replace("connections", "conections"), code=2,
                    says="standard input:")
        self.cardan("check", "-", input="", code=2, says="standard input: the text is empty")
        self.cardan("run", "-", input="cardan: 1\nunits: { s: { signal: { shape: constant } } }\n",
                    says="rows in system.csv")

    def test_the_folder_one_is_in_can_be_run(self):
        with zipfile.ZipFile(fmu("lo_fd2")) as z:
            z.extractall(self.path("model.d"))
        for inside, path in ((".", "."), ("sources", ".."), ("sources", "../.")):
            done = subprocess.run([CARDAN, "run", path, "--stop-time", "0.01"], text=True,
                                  cwd=self.path(os.path.join("model.d", inside)),
                                  env=self.environment(), capture_output=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("11 rows in model.d.csv", done.stderr)
        self.cardan("run", "model.d/modelDescription.xml", code=2, says="expected an .fmu or")

    def test_names_of_other_formats_are_refused_before_the_run(self):
        self.oscillator()
        with open(self.path("oscillator.yaml"), encoding="utf-8") as f:
            lines = [x for x in f.read().splitlines() if not x.startswith("results")]
        self.write("other.yaml", "\n".join([*lines, "results: a.xlsx", ""]))
        self.cardan("check", "other.yaml", code=2, says="a.xlsx: results are written as CSV, MDF or")
        self.cardan("run", fmu("lo_mono"), "-q", "-o", "a.csv")
        self.cardan("plot", "a.csv", "-o", "a.bmp", code=2, says="should end in .svg, .png or .pdf")
        self.assertFalse(os.path.exists(self.path("a.bmp")))


class Endings(EndToEnd):
    @unittest.skipUnless(shutil.which("timeout"), "timeout(1) is not here")
    def test_timeout_which_signals_twice_leaves_a_whole_result(self):
        done = subprocess.run(["timeout", "-s", "INT", "1", CARDAN, "run", fmu("lo_mono"),
                               "--stop-time", "1e9", "--interval", "1", "-o", "o.csv"],
                              cwd=self.folder, env=self.environment(), capture_output=True,
                              text=True, timeout=60)
        self.assertEqual(done.returncode, 124)
        self.assertIn("interrupted at t = ", done.stderr)
        self.table("o.csv")
        self.assertEqual(os.listdir(self.unpack), [])

    def test_the_progress_line_fits_a_narrow_terminal(self):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 30, 0, 0))
        process = subprocess.Popen([CARDAN, "run", fmu("lo_mono"), "--stop-time", "1e9", "-o",
                                    "none"], cwd=self.folder, stderr=slave,
                                   env=dict(self.environment(), TERM="xterm"))
        os.close(slave)
        seen = b""
        end = time.monotonic() + 60
        while b"\x1b[K" not in seen and time.monotonic() < end:
            seen += os.read(master, 4096)
        process.send_signal(signal.SIGINT)
        try:
            while os.read(master, 4096):
                pass
        except OSError:
            pass
        os.close(master)
        self.assertEqual(process.wait(timeout=60), 1)
        line = seen.split(b"\x1b[K")[0]
        self.assertEqual(line[:5], b"\rrun:")
        self.assertLess(len(line) - 1, 30)


if __name__ == "__main__":
    unittest.main()
