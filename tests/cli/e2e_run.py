"""cardan run: options, results, reports, the end by Ctrl-C."""

import csv
import json
import os
import pty
import shutil
import signal
import subprocess
import time
import unittest

from e2e import CARDAN, EndToEnd, fmu, near


class SingleFmu(EndToEnd):
    def test_it_runs_without_any_description(self):
        for version in (2, 3):
            with self.subTest(version):
                self.cardan("run", fmu("lo_mono", version), "--stop-time", "0.1", "--step", "1 ms",
                            says=["101 rows in lo_mono.csv", "x real time", "stop time reached"])
                names, columns = self.table("lo_mono.csv")
                self.assertEqual(names[0], "time")
                self.assertIn("x1", names)
                self.assertEqual(len(columns[0]), 101)
                self.assertTrue(near(columns[0][-1], 0.1, 1e-15))

    def test_both_versions_give_the_same(self):
        for version in (2, 3):
            self.cardan("run", fmu("lo_mono", version), "-q", "-o", f"v{version}.csv")
        self.cardan("compare", "v2.csv", "v3.csv", "--tolerance", "1e-12")

    def test_set_changes_a_parameter_with_its_unit(self):
        run = ["run", fmu("lo_mono"), "-q", "--stop-time", "0.1", "--step-size=1 ms"]
        self.cardan(*run, "-o", "a.csv", "--set", "m1=2")
        self.cardan(*run, "-o", "b.csv", "--set", "m1=2000 g")
        self.cardan(*run, "-o", "c.csv")
        self.cardan("compare", "a.csv", "b.csv", "--tolerance", "1e-12")
        self.cardan("compare", "a.csv", "c.csv", "--tolerance", "1e-6", code=1)

    def test_the_last_set_wins(self):
        run = ["run", fmu("lo_mono"), "-q", "--stop-time", "0.1", "--step", "0.01"]
        self.cardan(*run, "-o", "a.csv", "--set", "m1=2", "--set", "m1=3")
        self.cardan(*run, "-o", "b.csv", "--set", "m1=3")
        self.cardan("compare", "a.csv", "b.csv", "--tolerance", "0", "--absolute", "0")

    def test_an_input_file_drives_inputs_of_the_same_names(self):
        rows = "".join(f"{0.01 * i:.2f},{5 * i},7\n" for i in range(11))
        self.write("in.csv", "time,f,nix\n" + rows)
        self.cardan("run", fmu("lo_fd2"), "--input", "in.csv", "--step", "0.01", "--stop-time",
                    "0.1", "--variables", "*", "--predict", "hold", says="column 'nix' is not used")
        # The value of a step's beginning is held over it, and recorded at its end.
        f = self.column("lo_fd2.csv", "f")
        self.assertTrue(all(near(f[i], 5 * (i - 1), 1e-9) for i in range(1, 11)), f)
        self.cardan("run", fmu("lo_fd2"), "-q", "-o", "free.csv", "--step", "0.01", "--stop-time",
                    "0.1", "--variables", "*")
        self.cardan("compare", "lo_fd2.csv", "free.csv", "--variables", "x2", "--tolerance", "1e-6",
                    code=1)

    def test_an_input_file_is_followed_by_continuous_inputs_and_held_by_discrete_ones(self):
        self.write("in.csv", "time,in_f64,in_i32\n0,0,0\n1,10,10\n")
        j = self.cardan_json("run", fmu("types", 3), "--input", "in.csv", "--step", "0.25",
                             "--stop-time", "1.25", "--variables", "out_f64", "--variables",
                             "out_i32", "--predict", "hold", "-q")
        self.assertEqual(self.column("types.csv", "out_f64"), [0, 0, 2.5, 5, 7.5, 10])
        self.assertEqual(self.column("types.csv", "out_i32"), [0, 0, 0, 0, 0, 10])
        self.assertLessEqual(sum(u["share"] for u in j["units"]), 1 + 1e-9)

    def test_an_input_file_changes_tunable_parameters_between_steps(self):
        self.write("in.csv", "time,par_f64,par_i32\n0,1,10\n0.5,2,20\n1,3,30\n")
        for version in (2, 3):
            self.cardan("run", fmu("types", version), "--input", "in.csv", "--step", "0.25",
                        "--stop-time", "1.25", "--variables", "par_out_f64", "--variables",
                        "par_out_i32", "-q", "-o", "p.csv")
            self.assertEqual(self.column("p.csv", "par_out_f64"), [1, 1, 1, 2, 2, 3])
            self.assertEqual(self.column("p.csv", "par_out_i32"), [10, 10, 10, 20, 20, 30])

    def test_variables_and_interval_choose_what_is_recorded(self):
        self.cardan("run", fmu("lo_mono"), "-q", "--stop-time", "0.1", "--step", "1 ms",
                    "--variables", "x?", "--variables", "m1", "--interval", "10 ms", "-o", "r.csv")
        names, columns = self.table("r.csv")
        self.assertEqual(names[0], "time")
        self.assertEqual(set(names[1:]), {"x1", "x2", "m1"})
        self.assertEqual(len(columns[0]), 11)

    def test_a_unit_row_is_read_again(self):
        self.cardan("run", fmu("lo_mono"), "-q", "--stop-time", "0.1", "--unit-row", "-o", "r.csv")
        units = {s["name"]: s["unit"] for s in self.cardan_json("info", "r.csv")["signals"]}
        self.assertEqual(units["x1"], "m")

    def test_output_none_writes_nothing(self):
        before = set(os.listdir(self.folder))
        self.cardan("run", fmu("lo_mono"), "--stop-time", "0.1", "-o", "none",
                    says="results  not recorded")
        self.assertEqual(set(os.listdir(self.folder)), before)

    def test_an_unpacked_folder_runs_too(self):
        shutil.unpack_archive(fmu("lo_mono"), self.path("model"), "zip")
        self.cardan("run", "model", "-q", "--stop-time", "0.1")
        self.assertTrue(os.path.exists(self.path("model.csv")))

    def test_json_report(self):
        j = self.cardan_json("run", fmu("lo_mono"), "-q", "--stop-time", "1", "--step", "0.01")
        self.assertEqual((j["end"], j["steps"], j["rows"], j["exit_code"]), ("stop time", 100, 101, 0))
        self.assertEqual(j["results"], "lo_mono.csv")
        self.assertEqual(j["units"][0]["steps"], 100)
        self.assertEqual((j["error"], j["warnings"]), (None, []))

    def test_quiet_is_quiet(self):
        done = self.cardan("run", fmu("lo_mono"), "--quiet", "--stop-time", "0.1")
        self.assertEqual((done.stdout, done.stderr), ("", ""))

    def test_a_unit_that_ends_the_run_is_named(self):
        self.cardan("run", fmu("faulty"), "--set", "mode=6", "--step", "0.01",
                    says="a unit ended the run: faulty")
        self.assertLess(self.column("faulty.csv", "time")[-1], 0.6)

    def test_an_event_and_all_types_are_recorded(self):
        for version in (2, 3):
            self.cardan("run", fmu("events", version), "-q")
            bounces = self.column("events.csv", "bounces")
            self.assertEqual(bounces[0], 0)
            self.assertGreater(bounces[-1], 1)
            self.assertEqual(bounces, sorted(bounces))
            self.cardan("run", fmu("types", version), "-q", "--variables", "*")
            with open(self.path("types.csv"), newline="", encoding="utf-8") as f:
                first = next(csv.DictReader(f))
            self.assertEqual(float(first["out_f64"]), 0.1)
            self.assertEqual(first["out_i32"], "-32")
            self.assertEqual(first["out_b"], "1")
            self.assertEqual(first["out_e"], "2")
            self.assertEqual(first["out_s"], 'a < b & "c"')
            self.assertEqual(first.get("out_bin"), "00ff10" if version == 3 else None)


class System(EndToEnd):
    def test_two_fmus_give_the_monolithic_solution(self):
        for version in (2, 3):
            with self.subTest(version):
                self.cardan("run", self.oscillator(version), "--step", "20 us",
                            says=["in coupled.csv", "first", "second"])
                self.cardan("run", fmu("lo_mono", version), "-q", "--stop-time", "0.1", "--step",
                            "20 us", "-o", "mono.csv")
                x = self.column("coupled.csv", "first.x1")
                y = self.column("mono.csv", "x1")
                self.assertEqual(len(x), len(y))
                self.assertEqual(len(x), 5001)
                scale = max(map(abs, y))
                self.assertLess(max(abs(a - b) for a, b in zip(x, y)), 1e-3 * scale)

    def test_schemes_and_predictions_matter(self):
        system = self.oscillator()
        self.cardan("run", system, "-q", "-o", "jacobi.csv")
        self.cardan("run", system, "-q", "-o", "seidel.csv", "--scheme", "gauss-seidel")
        self.cardan("run", system, "-q", "-o", "nested.csv", "--scheme",
                    "gauss-seidel: [first, second]")
        self.cardan("run", system, "-q", "-o", "linear.csv", "--predict", "linear")
        self.cardan("compare", "jacobi.csv", "seidel.csv", code=1)
        self.cardan("compare", "jacobi.csv", "linear.csv", code=1)
        self.table("nested.csv")

    def test_threads_do_not_change_a_bit(self):
        system = self.oscillator()
        self.cardan("run", system, "-q", "-o", "one.csv", "--threads", "1")
        self.cardan("run", system, "-q", "-o", "two.csv", "--threads", "2")
        with open(self.path("one.csv"), "rb") as a, open(self.path("two.csv"), "rb") as b:
            self.assertEqual(a.read(), b.read())

    def test_set_names_unit_and_variable(self):
        system = self.oscillator()
        self.cardan("run", system, "-q", "-o", "a.csv")
        self.cardan("run", system, "-q", "-o", "b.csv", "--set", "second.m2=2 kg")
        self.cardan("compare", "a.csv", "b.csv", "--tolerance", "1e-3", code=1)
        self.cardan("run", system, "--set", "secnd.m2=2", code=2, says=["--set", "second"])
        self.cardan("run", system, "--set", "second.m3=2", code=2, says=["--set", "m3", "m2"])
        self.cardan("run", system, "--set", "second.m2", code=2, says="expected unit.variable=value")

    def test_an_input_file_drives_free_inputs_only(self):
        with open(self.path(self.oscillator()), encoding="utf-8") as f:
            text = f.read()
        self.write("open.yaml", text.replace("  - { from: first.f, to: second.f }\n", ""))
        self.write("in.csv", "time,second.f,first.x2,first.x1\n0,100,1,1\n1,100,1,1\n")
        self.cardan("run", "open.yaml", "--input", "in.csv", "--variables", "second.*",
                    says=["'first.x2' is not used: the input has a connection already",
                          "'first.x1' is not used: the variable of this name is neither an input nor "
                          "a tunable parameter"])
        self.assertEqual(set(self.column("coupled.csv", "second.f")[1:]), {100})
        self.write("other.csv", "time,a\n0,1\n")
        self.cardan("run", "open.yaml", "--input", "other.csv", code=2,
                    says=["none of its columns names an input", "second.f"])

    def test_an_unconnected_input_is_a_warning(self):
        with open(self.path(self.oscillator()), encoding="utf-8") as f:
            text = f.read()
        self.write("open.yaml", text.replace("  - { from: first.f, to: second.f }\n", ""))
        self.cardan("run", "open.yaml", says=["cardan: warning: ", "second.f"])
        j = self.cardan_json("check", "open.yaml")
        self.assertEqual(len(j["warnings"]), 1)


class Interrupt(EndToEnd):
    def start(self, *arguments):
        return subprocess.Popen([CARDAN, *arguments], cwd=self.folder, env=self.environment(),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def interrupt(self, number):
        """A run that would take days, ended after its first line of progress."""
        process = self.start("run", fmu("lo_mono"), "--stop-time", "1e9", "--step", "1 ms",
                             "--progress=json", "--json", "--interval", "1", "-o", "long.csv")
        first = json.loads(process.stderr.readline())
        self.assertEqual((first["start"], first["stop"]), (0, 1e9))
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, err)
        self.assertIn("cardan: interrupted at t = ", err)
        self.assertIn("recorded in long.csv", err)
        j = json.loads(out)
        self.assertEqual((j["end"], j["exit_code"]), ("interrupted", 1))
        self.assertGreaterEqual(j["time"], first["time"])
        times = self.column("long.csv", "time")
        self.assertEqual(len(times), j["rows"])
        self.assertLessEqual(j["time"] - times[-1], 1 + 1e-9)
        self.assertEqual(os.listdir(self.unpack), [])

    def test_ctrl_c_ends_cleanly_with_everything_recorded(self):
        self.interrupt(signal.SIGINT)

    def test_so_does_sigterm(self):
        self.interrupt(signal.SIGTERM)

    def test_more_of_them_end_a_step_that_never_ends(self):
        process = self.start("run", fmu("faulty"), "--set", "mode=11", "--set", "when=0")
        end = time.monotonic() + 60
        while not os.path.exists(self.path("faulty.csv")) and time.monotonic() < end:
            self.assertIsNone(process.poll())
        code = None
        while code is None and time.monotonic() < end:
            process.send_signal(signal.SIGINT)
            try:
                code = process.wait(timeout=0.05)
            except subprocess.TimeoutExpired:
                pass
        process.communicate()
        # 1 if the first one came before the first step.
        self.assertIn(code, (-signal.SIGINT, 1))


class Terminal(EndToEnd):
    """Standard error is a terminal."""

    def watch(self, until, *arguments, **environment):
        master, slave = pty.openpty()
        process = subprocess.Popen([CARDAN, *arguments], cwd=self.folder, stderr=slave,
                                   stdout=subprocess.DEVNULL,
                                   env=dict(self.environment(), TERM="xterm", **environment))
        os.close(slave)
        seen = b""
        interrupted = False
        while True:
            try:
                part = os.read(master, 4096)
            except OSError:  # the other end is closed
                part = b""
            if not part:
                break
            seen += part
            if until in seen and not interrupted:
                interrupted = True
                process.send_signal(signal.SIGINT)
        os.close(master)
        return process.wait(timeout=60), seen.decode()

    def test_a_long_run_shows_a_line_and_erases_it(self):
        code, seen = self.watch(b" left", "run", fmu("lo_mono"), "--stop-time", "1e9", "--step",
                                "1 ms", "-o", "none")
        self.assertEqual(code, 1)
        self.assertRegex(seen, r"\rrun: [^\n]* of 1e\+09 s, 0 %, [^\n]* x real time, [^\n]* left\x1b\[K")
        shown, after = seen.rsplit(" left", 1)
        self.assertTrue(after.startswith("\x1b[K\r\x1b[K"), after)
        self.assertIn("interrupted at t = ", after)

    def test_no_color_is_honoured(self):
        for environment, colored in (({}, True), ({"NO_COLOR": "1"}, False)):
            code, seen = self.watch(b"never", "run", "nix.fmu", **environment)
            self.assertEqual(code, 2)
            self.assertEqual("\x1b[31m" in seen, colored, seen)
            self.assertIn("nix.fmu: no such file", seen)


if __name__ == "__main__":
    unittest.main()
