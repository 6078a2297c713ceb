"""Netlists and options that are wrong: the exit code, the place, and what would be right."""

import os
import resource
import shutil
import unittest

from e2e import CARDAN, HERE, EndToEnd

GOOD = "t\nV1 1 0 1\nR1 1 2 1k\nC1 2 0 1u\n.tran 10u 1m\n"
DATA = os.path.join(HERE, "..", "circuit", "data")


class Netlists(EndToEnd):
    def refuse(self, text, *says, check=False):
        """The netlist is refused, also by cardan check; nothing is left behind."""
        self.write("bad.cir", text)
        self.cardan("circuit", "bad.cir", "-o", "out.csv", code=2, says=says)
        self.assertFalse(os.path.exists(self.path("out.csv")))
        if check:
            self.cardan("check", "bad.cir", code=2, says=says)

    def test_circuits_that_have_no_solution(self):
        for what, text, says in [
            ("floating nodes", "t\nV1 1 0 1\nR1 1 0 1\nR2 2 3 1\n.tran 1m 1\n",
             ["bad.cir:4", "node 2 (and 1 more) floats", "ground"]),
            ("no ground", "t\nV1 1 2 1\nR1 1 2 1\n.tran 1m 1\n",
             ["bad.cir:2", "floats", "node 0"]),
            ("loop of sources", "t\nV1 1 0 1\nV2 1 0 2\nR1 1 0 1\n.tran 1m 1\n",
             ["bad.cir:3", "loop of voltage sources", "v2, v1", "a resistance in it would do"]),
            ("loop of three", "t\nV1 1 0 1\nV2 2 1 2\nE1 2 0 1 0 3\nR1 1 0 1\n.tran 1m 1\n",
             ["bad.cir:4", "e1", "v1", "v2"]),
            ("cutset", "t\nI1 0 1 1\nI2 1 0 1\nV1 2 0 1\nR1 2 0 1\n.tran 1m 1\n",
             ["bad.cir:2", "cutset of current sources", "i1", "node 1", "a resistance"]),
        ]:
            with self.subTest(what):
                self.refuse(text, *says, check=True)

    def test_values_that_make_no_sense(self):
        for part, says in [
            (".thermal\nresistance r a b 0", ["r = 0", "expected > 0"]),
            (".thermal\ncapacity c a -5", ["c = -5", "expected > 0"]),
            ("L2 1 2 1\nL3 1 2 1\nK1 L2 L3 1.5", ["K1 = 1.5"]),
            ("R2 1 2 1x2", ['"1x2" is not a number']),
            ("R2 1 2 {1/0}", ["divides 1 by 0"]),
            ("R2 1 2 {sqrt(-4)}", ["-4"]),
            ("R2 1 2 {nix}", ['"nix"']),
            ("R2 1 2", ["the end of the line"]),
            ("R2 1", ["a node is expected"]),
        ]:
            with self.subTest(part):
                line = 5 + part.count("\n")
                end = "\n.endthermal" if "thermal" in part else ""
                self.refuse(GOOD.replace(".tran", part + end + "\n.tran"), f"bad.cir:{line}", *says)

    def test_values_that_are_odd(self):
        for part, says in [
            ("R2 1 2 0", "R2 = 0 Ohm"),
            ("C2 1 2 0", "C2 = 0 F"),
            ("C2 1 2 -1n", "C2 = -1e-09 F is negative"),
            ("L2 2 3 0\nR3 3 0 1k", "L2 = 0 H"),
            ("R2 1 2 -5k", "R2 = -5000 Ohm is negative"),
        ]:
            with self.subTest(part):
                self.write("odd.cir", GOOD.replace(".tran", part + "\n.tran"))
                self.cardan("circuit", "odd.cir", says=["warning: ", "odd.cir:5", says])

    def test_names_that_do_not_exist(self):
        for line, says in [
            ("D1 2 0 nix", ["D1", 'no model "nix"']),
            ("S1 1 2 1 0 nix", ["S1", 'no model "nix"']),
            ("X1 1 2 nix", ["X1", 'no subcircuit "nix"']),
            ("F1 1 2 Vnix 2", ["vnix"]),
            ("L2 1 2 1\nK1 L2 Lnix 0.5", ["lnix"]),
            (".output v(9)", ['no node "9"']),
            (".output i(R9)", ['no part "r9"']),
            (".ic v(9)=1", ['no node "9"']),
            (".include nix.inc", ["nix.inc", "no such file"]),
            (".input a source=R1", ["no source"]),
            (".input a source=V1 unit=fnord", ['no unit "fnord"']),
            (".trans 1m 1", ['".trans" is not supported', ".tran"]),
            ("Q1 1 2 0 m", ['"Q1"', "not supported"]),
            ("R1 1 0 5", ["r1 is there twice", "line 3"]),
        ]:
            with self.subTest(line):
                self.refuse(GOOD + line + "\n", "bad.cir:", *says)

    def test_definitions_that_need_themselves(self):
        self.refuse("t\n.subckt a 1\nX1 1 b\n.ends\n.subckt b 1\nX2 1 a\n.ends\nV1 1 0 1\n"
                    "X1 1 a\n.tran 1m 1\n", "bad.cir:6", "subcircuit a contains itself")
        self.refuse(GOOD + ".include bad.cir\n", "bad.cir:6", "includes itself")
        self.write("b.inc", ".include bad.cir\n")
        self.refuse(GOOD + ".include b.inc\n", "b.inc:1", "bad.cir includes itself")
        self.refuse("t\n.param a={b} b={a}\nV1 1 0 {a}\nR1 1 0 1\n", "bad.cir:2", "a")
        self.refuse("t\n.subckt a 1\nR1 1 0 1\nV1 1 0 1\n.tran 1m 1\n", "bad.cir:5", ".subckt a",
                    "line 2", ".ends")

    def test_times_that_make_no_sense(self):
        self.refuse(GOOD.replace("10u 1m", "0 0"), "bad.cir:5", "step 0 s", "> 0")
        self.refuse(GOOD.replace("10u 1m", "10u -1m"), "bad.cir:5", "stop -0.001 s", "> 0")
        self.refuse(GOOD.replace("10u 1m", ""), "bad.cir:5", "step and stop")
        self.refuse(GOOD.replace("10u 1m", "10u 1m 2m"), "bad.cir:5", "start 0.002 s", "0.001 s")
        self.refuse(GOOD.replace("10u 1m", "10u 1m 0 -1u"), "bad.cir:5", "longest step -1e-06 s")
        self.write("none.cir", GOOD.replace(".tran 10u 1m", ""))
        self.cardan("circuit", "none.cir", code=2, says=["none.cir", "no .tran", "--step"])
        self.cardan("circuit", "none.cir", "--step", "1 us", code=2,
                    says=["none.cir", "no .tran", "--stop"])
        self.cardan("circuit", "none.cir", "--step", "1 us", "--stop", "1 ms")
        self.write("good.cir", GOOD)
        for option, value, says in [
            ("--step", "0", "--step = '0', expected > 0"),
            ("--step", "-1 us", "expected > 0"),
            ("--step", "10u", "expected a number in s"),
            ("--step", "2 ms", "step 0.002 s, expected no more than stop, 0.001 s"),
            ("--step", "1e-300", "steps"),
            ("--stop", "0", "--stop = '0', expected > 0"),
            ("--stop", "-1", "expected > 0"),
            ("--from", "1 ms", "--from = 0.001 s, expected less than stop"),
            ("--every", "0", "--every = '0', expected at least 1"),
        ]:
            with self.subTest(option + " " + value):
                self.cardan("circuit", "good.cir", option, value, code=2, says=says)

    def test_what_is_no_netlist(self):
        self.cardan("circuit", "nix.cir", code=2, says="nix.cir: no such file")
        os.mkdir(self.path("folder.cir"))
        self.cardan("circuit", "folder.cir", code=2, says="folder.cir: a folder, expected a netlist")
        self.refuse("", "bad.cir:1", "no parts")
        self.refuse("only a title\n", "no parts")
        with open(self.path("noise.cir"), "wb") as f:
            f.write(bytes((i * i * 7 + i // 3) % 256 for i in range(20000)))
        self.cardan("circuit", "noise.cir", code=2, says=["noise.cir:1", "plain text"])
        shutil.copy(CARDAN, self.path("program.cir"))
        self.cardan("circuit", "program.cir", code=2, says=["program.cir:1", "plain text"])
        self.write("a.csv", "time,x\n0,1\n1,2\n")
        self.cardan("circuit", "a.csv", code=2, says="a.csv:")

    def test_lines_of_ten_megabytes(self):
        ten = 10_000_000
        for text, says in [
            ("R2 1 2 " + "1" * ten + "x", "is not a number"),
            ("R" + "2" * ten + " 1 2 5", "longer than 255 bytes"),
            ("R2 1 2 " + "(" * ten, "bad.cir:5"),
            ("R2 1 2 {" + "(" * ten, "bad.cir:5"),
        ]:
            with self.subTest(text[:9] + "..."):
                self.write("bad.cir", GOOD.replace(".tran", text + "\n.tran"))
                done = self.cardan("circuit", "bad.cir", code=2, says=["bad.cir:5", says])
                self.assertLess(len(done.stderr), 300)

    def test_a_million_parts_are_read_in_seconds(self):
        with open(self.path("million.cir"), "w", encoding="utf-8") as f:
            f.write("million\nV1 n0 0 1\n")
            for i in range(333333):
                f.write(f"R{i} n{i} n{i + 1} 10\nL{i} n{i + 1} m{i} 1m\nC{i} m{i} 0 1u\n")
            f.write(".tran 1m 1\n")
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        self.cardan("circuit", "million.cir", "--signals", "nix", code=2, says="no .output")
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, 10)

    def test_a_run_that_fails_on_its_way(self):
        shutil.copy(os.path.join(DATA, "rectifier.cir"), self.folder)
        r = self.cardan_json("circuit", "rectifier.cir", "--iterations", "2", "-o", "a.csv", code=1)
        self.assertEqual((r["end"], r["status"]), ("failed", "CRD_E_CONVERGENCE"))
        self.assertRegex(r["error"], r"rectifier.cir: .* at t = [\d.e-]+ s .*converge.* d\d")
        self.assertEqual(len(self.column("a.csv", "time")), r["rows"])
        self.assertEqual(r["rows"], r["steps"] + 1)
        self.cardan("circuit", "rectifier.cir", "--iterations", "2", code=1,
                    says=["did not converge", "failed"])


class Options(EndToEnd):
    def test_words_that_do_not_exist(self):
        self.write("good.cir", GOOD)
        for option, value, says in [
            ("--method", "euler", "expected one of bdf1|bdf2|bdf3|tr|tr-carried|trbdf2|gauss2|gauss4"),
            ("--method", "bdf4", "did you mean"),
            ("--form", "spice", "expected one of auto|dae|nodal"),
            ("--start", "cold", "expected one of tr|minimum|constant"),
            ("--projection", "exact", "--method tr-carried"),
            ("--iterations", "0", "--iterations = '0', expected at least 1"),
            ("--tolerance", "2", "below 1"),
            ("--accuracy", "2", "below 1"),
            ("--accuracy", "0", "expected > 0"),
            ("--relative", "1e-4", "no --variable"),
        ]:
            with self.subTest(option + " " + value):
                self.cardan("circuit", "good.cir", option, value, code=2, says=says)
        self.cardan("circuit", "good.cir", "--method", "tr-carried", "--projection", "some", code=2,
                    says=["--projection = 'some'", "none, exact or a penalty"])
        self.cardan("circuit", "good.cir", "--methods", "tr", code=2, says="did you mean --method?")
        self.cardan("circuit", code=2, says="FILE is missing")

    def test_options_that_exclude_each_other(self):
        self.write("good.cir", GOOD)
        self.write("u.csv", "time,u\n0,0\n1,1\n")
        for arguments in (["--accuracy", "1e-3", "--method", "tr"],
                          ["--accuracy", "1e-3", "--variable"],
                          ["--variable", "--input", "u.csv"],
                          ["--structure", "--realtime"],
                          ["--structure", "-o", "a.csv"],
                          ["--realtime", "--variable"],
                          ["--iterations", "3", "--fixed-iterations", "3"]):
            with self.subTest(arguments):
                self.cardan("circuit", "good.cir", *arguments, code=2, says="exclude each other")
        self.cardan("circuit", "good.cir", "--variable", "--smallest-step", "1 ms",
                    "--largest-step", "1 us", code=2, says=["--smallest-step", "--largest-step"])
        for method in ("gauss2", "tr-carried"):
            self.cardan("circuit", "good.cir", "--variable", "--method", method, code=2)

    def test_results_that_cannot_be_written(self):
        self.write("good.cir", GOOD)
        self.cardan("circuit", "good.cir", "-o", "nix/a.csv", code=1, says="nix/a.csv")
        self.cardan("circuit", "good.cir", "-o", "a.xyz", code=2, says="a.xyz")
        os.mkdir(self.path("folder.csv"))
        self.cardan("circuit", "good.cir", "-o", "folder.csv", code=1, says="folder.csv")
        os.symlink(self.path("good.cir"), self.path("same.csv"))
        self.cardan("circuit", "good.cir", "-o", "same.csv", code=2,
                    says="would overwrite the netlist")
        with open(self.path("good.cir"), encoding="utf-8") as f:
            self.assertEqual(f.read(), GOOD)
        self.cardan("circuit", "good.cir", "-o", "-", "--json", code=2, says="standard output")
        self.assertEqual(sorted(os.listdir(self.folder)),
                         ["folder.csv", "good.cir", "same.csv", "unpack"])

    def test_errors_are_json_too(self):
        self.write("bad.cir", "t\nR1 1 0\n")
        r = self.cardan_json("circuit", "bad.cir", code=2)
        self.assertEqual((r["exit_code"], r["status"]), (2, "CRD_E_FORMAT"))
        self.assertIn("bad.cir:2", r["error"])


if __name__ == "__main__":
    unittest.main()
