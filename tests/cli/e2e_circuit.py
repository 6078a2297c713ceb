"""cardan circuit: what it computes, what it records, what it says about itself."""

import glob
import json
import math
import os
import signal
import subprocess
import time
import unittest

from e2e import CARDAN, HERE, EndToEnd, near

EXAMPLES = os.path.join(HERE, "..", "..", "examples", "circuits")
DATA = os.path.join(HERE, "..", "circuit", "data")

RC = """RC low-pass, 1 ms
.param R=1k
V1 in 0 1
R1 in out {R}
C1 out 0 1u ic=0
.tran 10u 5m uic
"""

DRIVEN = """a source that is an input
.input u unit=V start=2 source=V1
V1 in 0 0
R1 in out 1k
R2 out 0 1k
.tran 1m 10m
.output half=v(out) i(R1)
"""


class Simulating(EndToEnd):
    def test_a_low_pass_follows_its_exponential(self):
        self.write("rc.cir", RC)
        self.cardan("circuit", "rc.cir", "-o", "rc.csv")
        names, (t, vin, vout) = self.table("rc.csv")
        self.assertEqual(names, ["time", "v(in)", "v(out)"])
        self.assertEqual(len(t), 501)
        for time_, v in zip(t, vout):
            self.assertTrue(near(v, 1 - math.exp(-time_ / 1e-3), 1e-5), (time_, v))

    def test_the_table_tells_what_the_recording_holds(self):
        self.write("rc.cir", RC + ".output v(out) i(R1)\n")
        self.cardan("circuit", "rc.cir", "-o", "rc.csv")
        t = self.column("rc.csv", "time")
        report = self.cardan_json("circuit", "rc.cir")
        table = self.cardan("circuit", "rc.cir").stdout.splitlines()
        self.assertEqual(table[0].split(), ["signal", "final", "min", "max", "mean", "rms"])
        for row, signal_ in zip(table[1:], report["signals"]):
            y = self.column("rc.csv", signal_["name"])
            span = t[-1] - t[0]
            pairs = list(zip(t[1:], t, y[1:], y))
            mean = sum((a - b) * (p + q) / 2 for a, b, p, q in pairs) / span
            square = sum((a - b) * (p * p + p * q + q * q) / 3 for a, b, p, q in pairs) / span
            want = [y[-1], min(y), max(y), mean, math.sqrt(square)]
            got = [signal_[k] for k in ("final", "min", "max", "mean", "rms")]
            for a, b in zip(got, want):
                self.assertTrue(near(a, b, 1e-9 * max(map(abs, y))), (signal_, want))
            self.assertEqual(row.split()[0], signal_["name"])
            for text, b in zip(row.split()[2:], got):
                self.assertTrue(near(float(text), b, 1e-5 * abs(b) + 1e-300), (row, b))

    def test_formats_hold_the_same(self):
        self.write("rc.cir", RC)
        for name in ("a.csv", "a.mf4", "a.mat"):
            self.cardan("circuit", "rc.cir", "-o", name, says="501 rows of 2 signals in " + name)
        self.cardan("compare", "a.csv", "a.mf4")
        self.cardan("compare", "a.csv", "a.mat")
        info = self.cardan_json("info", "a.mf4")
        self.assertIn("netlist.cir", json.dumps(info))
        self.assertIn("RC low-pass", json.dumps(info))
        self.cardan("plot", "a.mf4", "-o", "a.svg")
        out = self.cardan("circuit", "rc.cir", "-q", "-o", "-").stdout
        with open(self.path("a.csv"), encoding="utf-8") as f:
            self.assertEqual(out, f.read())

    def test_signals_are_chosen_by_pattern_and_without_case(self):
        self.write("rc.cir", RC + ".output twice={2*v(out)} unit=V\n")
        for chosen, names in [
            ("V(OUT), i(R1)", ["V(OUT)", "i(R1)"]),
            ("v(*)", ["v(in)", "v(out)"]),
            ("i(*1)", ["i(v1)", "i(r1)", "i(c1)"]),
            ("v(in,out), twice", ["v(in,out)", "twice"]),
            ("v(out), v(*), v(0)", ["v(out)", "v(in)", "v(0)"]),
        ]:
            with self.subTest(chosen):
                report = self.cardan_json("circuit", "rc.cir", "--signals", chosen)
                self.assertEqual([s["name"] for s in report["signals"]], names)
        report = self.cardan_json("circuit", "rc.cir", "--signals", "v(in,out), v(in), v(out)")
        a, b, c = [s["final"] for s in report["signals"]]
        self.assertTrue(near(a, b - c, 1e-12))

    def test_signals_that_are_not_there(self):
        self.write("rc.cir", RC)
        for chosen, says in [
            ("v(otu)", ["--signals 'v(otu)'", "no node fits 'otu'", "did you mean 'out'"]),
            ("i(R2)", ["no part fits 'r2'", "did you mean"]),
            ("v(in,nix)", ["no node fits 'nix'"]),
            ("speed", ["no .output fits 'speed'", "v(node)"]),
            ("x(out)", ["--signals 'x(out)'", "expected v(node)"]),
            ("v(out", ["--signals 'v(out'", "expected v(node)"]),
            (" , ", ["expected a list"]),
        ]:
            with self.subTest(chosen):
                self.cardan("circuit", "rc.cir", "--signals", chosen, code=2, says=says)

    def test_every_nth_step_and_the_end_of_a_run(self):
        self.write("rc.cir", RC)
        self.cardan("circuit", "rc.cir", "--every", "100", "-o", "a.csv")
        t = self.column("a.csv", "time")
        self.assertEqual([round(x, 9) for x in t], [0, 1e-3, 2e-3, 3e-3, 4e-3, 5e-3])
        self.cardan("circuit", "rc.cir", "--from", "4 ms", "-o", "b.csv")
        t = self.column("b.csv", "time")
        self.assertEqual(len(t), 101)
        self.assertTrue(near(t[0], 4e-3, 1e-12))
        self.write("late.cir", RC.replace(".tran 10u 5m", ".tran 10u 5m 4m 20u"))
        self.cardan("circuit", "late.cir", "-o", "c.csv")
        self.cardan("compare", "b.csv", "c.csv")
        r = self.cardan_json("circuit", "late.cir", "--variable")
        self.assertLessEqual(r["longest_step"], 20.001e-6)
        # 5 ms are no multiple of 3 ms: what is passed is not simulated
        report = self.cardan_json("circuit", "rc.cir", "--step", "3 ms")
        self.assertEqual((report["steps"], report["time"]), (1, 3e-3))

    def test_parameters_from_outside(self):
        self.write("rc.cir", RC)
        slow = self.cardan_json("circuit", "rc.cir", "-D", "R=2k")["signals"][1]["final"]
        self.assertTrue(near(slow, 1 - math.exp(-2.5), 1e-5), slow)
        same = self.cardan_json("circuit", "rc.cir", "--param", "r=2e3")["signals"][1]["final"]
        self.assertEqual(slow, same)
        self.cardan("circuit", "rc.cir", "-D", "Q=1", code=2, says=["rc.cir", 'no .param "q"'])
        self.cardan("circuit", "rc.cir", "-D", "R=much", code=2, says=["R=much", "name=number"])
        self.cardan("circuit", "rc.cir", "-D", "R", code=2, says=["name=number"])

    def test_inputs_have_a_start_a_set_and_a_recording(self):
        self.write("in.cir", DRIVEN)
        self.assertEqual(self.cardan_json("circuit", "in.cir")["signals"][0]["final"], 1)
        for text, half in [("u=6", 3), ("U = 500 mV", 0.25)]:
            report = self.cardan_json("circuit", "in.cir", "--set", text.replace(" = ", "="))
            self.assertTrue(near(report["signals"][0]["final"], half, 1e-12), text)
        self.write("ramp.csv", "time,other,U\n0,0,0\n0.004,0,8\n0.01,0,8\n")
        self.cardan("circuit", "in.cir", "--input", "ramp.csv", "-o", "r.csv")
        t, half = self.column("r.csv", "time"), self.column("r.csv", "half")
        for a, b in zip(t, half):
            self.assertTrue(near(b, min(4, 1000 * a), 1e-9), (a, b))

    def test_inputs_that_are_wrong(self):
        self.write("in.cir", DRIVEN)
        self.write("rc.cir", RC)
        for arguments, says in [
            (["in.cir", "--set", "w=1"], ["--set 'w=1'", "no input 'w'", "u"]),
            (["in.cir", "--set", "u=high"], ["--set 'u=high'", "expected a number", "V"]),
            (["in.cir", "--set", "u=1 A"], ["--set 'u=1 A'", "expected a number"]),
            (["in.cir", "--set", "u"], ["expected input=value"]),
            (["rc.cir", "--set", "u=1"], ["no input 'u'", "no .input"]),
            (["in.cir", "--input", "nix.csv"], ["nix.csv"]),
        ]:
            with self.subTest(arguments):
                self.cardan("circuit", *arguments, code=2, says=says)
        self.write("w.csv", "time,w\n0,0\n1,1\n")
        self.cardan("circuit", "in.cir", "--input", "w.csv", code=2,
                    says=["w.csv", "in.cir", "inputs are u"])
        self.write("gap.csv", "time,u\n0,0\n0.001,\n0.002,1\n")
        self.cardan("circuit", "in.cir", "--input", "gap.csv", code=2, says=["gap.csv", "u"])

    def test_methods_and_forms_agree(self):
        self.write("rlc.cir", "rlc\nV1 1 0 sin(0 1 50)\nR1 1 2 10\nL1 2 3 10m\nC1 3 0 10u\n"
                              ".tran 20u 40m\n.output v(3) i(L1)\n")
        self.cardan("circuit", "rlc.cir", "--method", "gauss4", "-o", "best.csv")
        best = self.column("best.csv", "v(3)")
        for method in ("bdf1", "bdf2", "bdf3", "tr", "tr-carried", "trbdf2", "gauss2"):
            with self.subTest(method):
                report = self.cardan_json("circuit", "rlc.cir", "--method", method, "-o", "x.csv")
                self.assertEqual(report["method"], method)
                worst = max(abs(a - b) for a, b in zip(best, self.column("x.csv", "v(3)")))
                self.assertLess(worst, 0.1 if method == "bdf1" else 0.01)
        dae = self.cardan_json("circuit", "rlc.cir", "--form", "dae")
        auto = self.cardan_json("circuit", "rlc.cir")
        self.assertEqual(dae["form"], "dae")
        for a, b in zip(dae["signals"], auto["signals"]):
            self.assertTrue(near(a["final"], b["final"], 1e-9), (a, b))

    def test_variable_steps(self):
        self.write("rc.cir", RC)
        report = self.cardan_json("circuit", "rc.cir", "--variable", "-o", "v.csv")
        t, v = self.column("v.csv", "time"), self.column("v.csv", "v(out)")
        self.assertEqual(len(t), report["steps"] + 1)
        self.assertTrue(near(t[-1], 5e-3, 1e-15))
        self.assertLess(report["steps"], 200)
        self.assertLess(report["shortest_step"], report["longest_step"])
        for a, b in zip(t, v):
            self.assertTrue(near(b, 1 - math.exp(-a / 1e-3), 2e-3), (a, b))
        fine = self.cardan_json("circuit", "rc.cir", "--variable", "--relative", "1e-7")
        self.assertGreater(fine["steps"], 2 * report["steps"])
        capped = self.cardan_json("circuit", "rc.cir", "--variable", "--largest-step", "20 us")
        self.assertLessEqual(capped["longest_step"], 20.001e-6)

    def test_a_chosen_step_keeps_the_accuracy(self):
        self.write("rlc.cir", "rlc\nV1 1 0 sin(0 1 50)\nR1 1 2 10\nL1 2 3 10m\nC1 3 0 10u\n"
                              ".tran 20u 40m\n.output v(3)\n")
        done = self.cardan("circuit", "rlc.cir", "--accuracy", "0.1 %", says="chosen")
        self.assertRegex(done.stderr, r"chosen +(bdf|tr|gauss)\w* with steps of .* v\(3\)")
        report = self.cardan_json("circuit", "rlc.cir", "--accuracy", "1e-3", "-o", "x.csv")
        self.assertLessEqual(report["chosen"]["error"], 1e-3)
        self.assertEqual(report["chosen"]["step"], report["step"])
        self.assertEqual(report["chosen"]["steps"], report["steps"])
        rough = self.cardan_json("circuit", "rlc.cir", "--accuracy", "0.1", "--step", "1 ms")
        self.assertGreater(rough["step"], 20e-6)
        self.assertLessEqual(rough["chosen"]["error"], 0.1)
        self.cardan("circuit", "rlc.cir", "--accuracy", "0.1", "--step", "10 us", says="hint")
        self.cardan("circuit", "rlc.cir", "--method", "gauss4", "-o", "best.csv")
        best = self.cardan_json("compare", "x.csv", "best.csv", code=1)["signals"][0]
        y = self.column("best.csv", "v(3)")
        self.assertLess(best["rms_error"], 2e-3 * (max(y) - min(y)))

    def test_standard_input_and_pipes(self):
        done = self.cardan("circuit", "-", input=RC)
        self.assertIn("v(out)", done.stdout)
        self.cardan("circuit", "-", input="x\nR1 1 0\n", code=2, says="standard input:2")
        os.mkfifo(self.path("pipe"))
        with subprocess.Popen(["sh", "-c", 'printf "%s" "$0" > pipe', RC], cwd=self.folder):
            self.assertIn("v(out)", self.cardan("circuit", "pipe").stdout)


class Saying(EndToEnd):
    def test_the_report_adds_up(self):
        self.write("rc.cir", RC)
        r = self.cardan_json("circuit", "rc.cir", "-o", "a.csv")
        self.assertEqual((r["steps"], r["rows"], r["parts"], r["nodes"]), (500, 501, 3, 3))
        self.assertEqual((r["end"], r["exit_code"], r["error"]), ("stop time", 0, None))
        self.assertTrue(near(r["time"], 5e-3, 1e-15))
        self.assertLessEqual(r["step_time_mean"], r["step_time_worst"])
        self.assertLessEqual(500 * r["step_time_mean"], r["wall_time"])
        self.assertTrue(near(r["real_time_factor"] * r["wall_time"], r["time"], 1e-9))
        self.assertTrue(near(r["cpu_time_per_second"] * r["time"], r["cpu_time"], 1e-9))
        self.assertEqual(r["iterations_worst"], 1)
        self.assertEqual(r["title"], "RC low-pass, 1 ms")
        d = self.cardan_json("circuit", os.path.join(DATA, "rectifier.cir"))
        self.assertLess(1, d["iterations_mean"])
        self.assertLessEqual(d["iterations_mean"], d["iterations_worst"])
        self.assertLessEqual(d["iterations_worst_time"], 1)

    def test_netlists_as_ltspice_writes_them(self):
        self.write("lt.cir", """* C:\\users\\draft1.asc\r
V1 N001 0 SINE(0 5 1k)\r
D1 N001 out 1N4148\r
R1 out 0 1k\r
C1 out 0 0.1µF\r
B1 b 0 V={gain}*V(out)+IF(V(N001)>0, 1, 2)\r
R2 b 0 1Meg\r
.param gain=2\r
.model 1N4148 D(Is=2.52n Rs=.568 N=1.752 Cjo=4p M=.4 tt=20n Iave=200m Vpk=75 mfg=OnSemi type=silicon)\r
.tran 0 2m 0 1u\r
.backanno\r
.end\r
""")
        report = self.cardan("circuit", "lt.cir", "-o", "lt.csv").stderr
        self.assertIn("in 2000 steps of 1 us", report)
        names, (_, vin, out, b) = self.table("lt.csv")
        self.assertEqual(names, ["time", "v(n001)", "v(out)", "v(b)"])
        self.assertTrue(4 < max(out) < 4.6, max(out))
        for x, y, z in zip(vin, out, b):
            self.assertTrue(near(z, 2 * y + (1 if x > 0 else 2), 1e-9), (x, y, z))
        self.write("auto.cir", "t\nV1 a 0 1\nR1 a b 1k\nC1 b 0 1\u03bc ic=0\n.tran 5m uic\n")
        report = self.cardan("circuit", "auto.cir").stderr
        self.assertIn(".tran names no step: 5e-06 s, a thousandth of the run", report)
        self.assertIn("in 1000 steps of 5 us", report)
        self.write("rser.cir", "t\nV1 a 0 1\nL1 a 0 1m Rser=1\n.tran 1u 1m\n")
        self.cardan("circuit", "rser.cir", code=2, says="write a resistor in series")

    def test_what_is_passed_over_is_said_once(self):
        self.write("ac.cir", "t\nV1 1 0 dc 1 ac 1\nR1 1 0 1\n.ac dec 10 1 1k\n.print tran v(1)\n"
                             ".ac dec 10 1 1k\n.tran 1m 10m\n")
        done = self.cardan("circuit", "ac.cir", says=["ac.cir:4: .ac", "ac.cir:5: .print"])
        self.assertEqual(done.stderr.count(".ac "), 1)
        self.assertEqual(self.cardan("circuit", "ac.cir", "-q").stderr, "")
        self.assertEqual(self.cardan("circuit", "ac.cir", "--log-level", "warning").stderr.count(
            "passed over"), 0)

    def test_many_nodes_are_not_all_shown(self):
        parts = "".join(f"R{i} n{i} n{i + 1} 1\n" for i in range(300))
        self.write("many.cir", f"many\nV1 n0 0 1\n{parts}Rend n300 0 1\n.tran 1m 3m\n")
        done = self.cardan("circuit", "many.cir", says=["200 of 301 nodes", "--signals"])
        self.assertLess(len(done.stdout.splitlines()), 50)
        self.assertIn("160 more", done.stdout)
        self.assertEqual(len(self.cardan_json("circuit", "many.cir")["signals"]), 200)
        chosen = self.cardan_json("circuit", "many.cir", "--signals", "v(*)")
        self.assertEqual(len(chosen["signals"]), 301)

    def test_lines_are_no_wider_than_a_terminal(self):
        for path in sorted(glob.glob(os.path.join(EXAMPLES, "*.cir"))):
            name = os.path.basename(path)
            with open(path, encoding="utf-8") as f:
                self.write(name, f.read())
            for arguments in ([name], [name, "--structure"]):
                with self.subTest(arguments):
                    done = self.cardan("circuit", *arguments)
                    for line in (done.stdout + done.stderr).splitlines():
                        self.assertLessEqual(len(line), 100, line)

    def test_an_interrupted_run_keeps_what_it_has(self):
        self.write("rc.cir", RC)
        with subprocess.Popen([CARDAN, "circuit", "rc.cir", "--stop", "100000", "-o", "a.csv"],
                              cwd=self.folder, stderr=subprocess.PIPE, text=True) as run:
            for _ in range(1000):
                if os.path.exists(self.path("a.csv")) and os.path.getsize(self.path("a.csv")):
                    break
                time.sleep(0.01)
            run.send_signal(signal.SIGINT)
            err = run.communicate(timeout=60)[1]
        self.assertEqual(run.returncode, 1, err)
        self.assertIn("interrupted at t = ", err)
        self.assertIn("recorded in a.csv", err)
        t = self.column("a.csv", "time")
        self.assertTrue(near(t[-1], (len(t) - 1) * 1e-5, 1e-9))
        self.assertIn(f"{len(t)} rows", err)


class Structure(EndToEnd):
    def test_the_published_counts(self):
        for name, counts in [("rlc", (8, 5, 3)), ("rectifier", (20, 19, 1)),
                             ("pmsm_relative", (49, 40, 9)), ("rc_thermal", (10, 8, 2)),
                             ("scrlc", (13, 9, 4))]:
            with self.subTest(name):
                r = self.cardan_json("circuit", os.path.join(DATA, name + ".cir"), "--structure",
                                     "--form", "dae")
                s = r["structure"]
                self.assertEqual(s["form"], "dae")
                self.assertEqual((s["variables"], s["constraints"], s["differential"]), counts)

    def test_parts_inputs_outputs_and_parameters(self):
        path = os.path.join(EXAMPLES, "thermal_inverter.cir")
        r = self.cardan_json("circuit", path, "--structure")
        self.assertEqual(sum(r["parts_by_kind"].values()), r["parts"])
        self.assertEqual(r["parts_by_kind"]["heat capacities"], 8)
        self.assertEqual([(x["name"], x["unit"], x["start"]) for x in r["inputs"]],
                         [("loss", "W", 60), ("fan", "rpm", 2000)])
        self.assertEqual([x["name"] for x in r["outputs"]], ["Tj", "Tcase", "Tfins", "Qair"])
        text = self.cardan("circuit", path, "--structure").stdout
        for part in ("thermal resistances", "differential equations", "input", "rpm", "Qair"):
            self.assertIn(part, text)
        buck = self.cardan_json("circuit", os.path.join(EXAMPLES, "buck.cir"), "--structure", "-D",
                                "duty=0.25")
        self.assertEqual(buck["parameters"]["duty"], 0.25)

    def test_info_and_check_know_netlists(self):
        path = os.path.join(EXAMPLES, "buck.cir")
        self.assertIn("voltage-controlled switches", self.cardan("info", path).stdout)
        self.assertEqual(self.cardan_json("info", path)["kind"], "netlist")
        self.assertIn("ok: 8 parts, 6 nodes", self.cardan("check", path).stdout)
        self.assertTrue(self.cardan_json("check", path)["ok"])
        self.write("bad.cir", "t\nV1 1 0 1\nR2 2 3 1\n")
        self.cardan("check", "bad.cir", code=2, says=["bad.cir:3", "floats"])
        self.assertFalse(self.cardan_json("check", "bad.cir", code=2)["ok"])
        self.cardan("info", "bad.cir", code=2, says="bad.cir:3")

    def test_as_a_unit_of_a_run_it_does_the_same(self):
        path = os.path.join(EXAMPLES, "rc_lowpass.cir")
        self.cardan("run", path, "-o", "unit.csv")
        self.cardan("circuit", path, "-o", "circuit.csv")
        self.cardan("compare", "circuit.csv", "unit.csv")


class RealTime(EndToEnd):
    def look(self, *arguments):
        """Whatever the machine does, the numbers fit together and the exit code follows from them."""
        done = subprocess.run([CARDAN, "circuit", *arguments, "--realtime", "--seconds", "0.1",
                               "--json"], cwd=self.folder, capture_output=True, text=True,
                              env=self.environment(), timeout=120)
        r = json.loads(done.stdout)
        self.assertEqual(done.returncode, 0 if r["held"] else 3, done.stderr)
        self.assertEqual(r["exit_code"], done.returncode)
        self.assertEqual(r["held"], r["worst"] <= r["step"])
        self.assertEqual(r["held"], r["longer_than_step"] == 0)
        self.assertLessEqual(r["p50"], r["p99"])
        self.assertLessEqual(r["p99"], r["p99.99"])
        self.assertLessEqual(r["p99.99"], r["worst"])
        self.assertLessEqual(r["worst_uninterrupted"], r["worst"])
        self.assertLessEqual(r["mean"], r["worst"])
        self.assertLessEqual(r["mean"] * r["steps"], r["seconds"])
        self.assertTrue(near(r["load"], r["mean"] / r["step"], 1e-9 * r["load"]))
        self.assertTrue(near(r["steps_per_second_worst"] * r["worst"], 1, 1e-9))
        self.assertGreaterEqual(r["seconds"], 0.1)
        return r, done.stderr

    def test_the_numbers_fit_together(self):
        self.write("rc.cir", RC)
        r, _ = self.look("rc.cir")
        self.assertEqual(r["step"], 1e-5)
        self.look(os.path.join(DATA, "rectifier.cir"), "--fixed-iterations", "10")

    def test_a_step_that_no_machine_holds(self):
        self.write("rc.cir", RC)
        r, err = self.look("rc.cir", "--step", "1 ns")
        self.assertFalse(r["held"])
        self.assertGreater(r["load"], 1)
        self.assertIn("a step of 1 ns is not held", err)
        done = self.cardan("circuit", "rc.cir", "--step", "1 ns", "--realtime", "--seconds", "0.1",
                           code=3)
        self.assertRegex(done.stdout, r"holds [\d ]+ steps/s: .* at worst")

    def test_a_step_that_every_machine_holds(self):
        self.write("rc.cir", RC)
        r, _ = self.look("rc.cir", "--step", "1000 s", "--stop", "1000000 s")
        self.assertTrue(r["held"])
        self.assertEqual(r["longer_than_step"], 0)


class Examples(EndToEnd):
    def test_they_do_what_they_say(self):
        found = {os.path.basename(p) for p in glob.glob(os.path.join(EXAMPLES, "*.cir"))}
        self.assertLessEqual({"rc_lowpass.cir", "buck.cir", "thermal_inverter.cir", "ladder.cir",
                              "rectifier.cir"}, found)

        def signals(name, *more):
            r = self.cardan_json("circuit", os.path.join(EXAMPLES, name), *more)
            return {s["name"]: s for s in r["signals"]}

        self.assertTrue(near(signals("rc_lowpass.cir")["v(out)"]["max"], 1 - math.exp(-5), 1e-3))
        buck = signals("buck.cir", "--from", "2 ms")
        self.assertTrue(near(buck["Vout"]["mean"], 11.6, 0.1), buck)
        self.assertTrue(near(buck["IL"]["mean"], buck["Vout"]["mean"] / 4, 0.05), buck)
        heat = signals("thermal_inverter.cir", "--set", "loss=100", "--step", "100 ms")
        # in the end the air takes what the six switches give
        self.assertTrue(near(heat["Qair"]["final"], 300, 3), heat)
        self.assertTrue(near(heat["Tj"]["final"] - heat["Tcase"]["final"], 18, 0.1), heat)
        ladder = signals("ladder.cir")
        self.assertLess(ladder["tenth"]["max"], 1e-3)
        self.assertTrue(near(ladder["first"]["max"], 5.435, 0.01), ladder)
        dc = signals("rectifier.cir", "--from", "40 ms")
        self.assertTrue(290 < dc["Vdc"]["mean"] < 310, dc)
        self.assertTrue(near(dc["Iload"]["mean"], dc["Vdc"]["mean"] / 100, 1e-6), dc)


if __name__ == "__main__":
    unittest.main()
