"""Netlists as units of systems: what they compute together, and what is said when they cannot."""

import os
import shutil
import unittest

from e2e import FMUS, HERE, EndToEnd
from e2e_dcp_slave import Slave

EXAMPLES = os.path.join(HERE, "..", "..", "examples")

# The loudspeaker of the examples as one circuit: velocity is the voltage of node 4, force a current.
LOUDSPEAKER = """loudspeaker
Vamp  1 0 sin(0 4 60)
R1    1 2 6
L1    2 3 0.5m
Vs    3 5 0
Eemf  5 0 4 0 7
Fcone 0 4 Vs 7
Cm    4 0 15m
Rc    4 0 {1/1.5}
Lk    4 0 {1/2000}
.output i=i(L1) v=v(4)
.tran 10u 0.2 uic
"""

FILTER = """low-pass with an input
.param R=1k
.input u unit=V start=2 source=V1
V1 in 0 0
R1 in out {R}
C1 out 0 1u ic=0
.tran 50u 10m uic
.output out=v(out) current=i(R1)
"""

RUNAWAY = """a law that ends
.input u source=Vin
Vin 1 0 0
R1 1 2 1
C1 2 0 1 ic=0
Bbad 2 0 i={sqrt(1-v(1))}
.output y=v(2)
.tran 1m 1 uic
"""


class Systems(EndToEnd):
    def example(self, name):
        """A system of the examples, its netlists and FMUs beside it."""
        with open(os.path.join(EXAMPLES, "systems", name), encoding="utf-8") as f:
            text = f.read().replace("../../build/fmus", FMUS)
        text = text.replace("../circuits/", os.path.join(EXAMPLES, "circuits", ""))
        for file in os.listdir(os.path.join(EXAMPLES, "systems")):
            if file.endswith(".cir"):
                shutil.copy(os.path.join(EXAMPLES, "systems", file), self.folder)
        return self.write(name, text)

    def largest(self, got, want):
        self.assertEqual(len(got), len(want))
        scale = max(abs(x) for x in want)
        return max(abs(a - b) for a, b in zip(got, want)) / scale

    def test_a_loudspeaker_of_circuit_and_fmu_is_that_of_one_circuit(self):
        self.example("loudspeaker.yaml")
        self.write("whole.cir", LOUDSPEAKER)
        # what is asked here is the coupling; auto holds for some steps at first
        self.cardan("run", "loudspeaker.yaml", "--quiet", "--predict", "taylor2")
        self.cardan("circuit", "whole.cir", "--every", 10, "-o", "whole.csv", "--quiet")
        for mine, whole in (("coil.i", "i"), ("cone.v2", "v")):
            got, want = self.column("loudspeaker.csv", mine), self.column("whole.csv", whole)
            self.assertLess(self.largest(got, want), 0.02, mine)  # nothing to predict from at first
            self.assertLess(self.largest(got[200:], want[200:]), 1e-3, mine)
        # iterated it is that circuit, to the error of the steps
        self.cardan("run", "loudspeaker.yaml", "--quiet", "--iterate")
        error = self.largest(self.column("loudspeaker.csv", "cone.v2"),
                             self.column("whole.csv", "v"))
        self.assertLess(error, 5e-5)

    def test_a_cooled_inverter_follows_its_losses(self):
        self.example("cooling.yaml")
        with open(os.path.join(EXAMPLES, "circuits", "thermal_inverter.cir"),
                  encoding="utf-8") as f:
            text = f.read()
        # the same cycle inside: the reference steps onto its corners
        text = text.replace(".input loss unit=W start=60\n", "").replace(
            "heat        switches junction {loss}",
            "heat switches junction pwl(0 60 60 60 60.0001 180 120 180 120.0001 30 240 30 "
            "240.0001 100)")
        text = text.replace(".input fan unit=rpm start=2000\n",
                            "Vfan speed 0 pwl(0 1500 150 1500 200 4000)\nRfan speed 0 1\n")
        text = text.replace("{0.35/(1+fan/1500)}", "{0.35/(1+v(speed)/1500)}")
        self.assertNotIn(".input", text)
        self.write("whole.cir", text)
        self.cardan("run", "cooling.yaml", "--quiet")
        self.cardan("circuit", "whole.cir", "--every", 100, "-o", "whole.csv", "--quiet")
        for name in ("Tj", "Tcase", "Tfins", "Qair"):
            got = self.column("cooling.csv", "inverter." + name)
            want = self.column("whole.csv", name)
            rise = max(want) - min(want)
            worst = max(abs(a - b) for a, b in zip(got, want))
            self.assertLess(worst, 3e-3 * rise, name)

    def test_a_netlist_alone_is_run_as_an_fmu_is(self):
        self.write("filter.cir", FILTER)
        self.cardan("run", "filter.cir", "-o", "run.csv", says="stop time reached")
        self.cardan("circuit", "filter.cir", "-o", "circuit.csv", "--quiet")
        names, columns = self.table("run.csv")
        self.assertEqual(names, ["time", "out", "current"])
        self.assertEqual(columns[1], self.column("circuit.csv", "out"))
        self.cardan("run", "filter.cir", "--set", "R=2k", code=2, says="'R' = '2k'")
        self.cardan("run", "filter.cir", "--set", "R=2000", "--set", "u=3", "--quiet",
                    "-o", "set.csv")
        self.cardan("circuit", "filter.cir", "--param", "R=2k", "--set", "u=3", "--quiet",
                    "-o", "param.csv")
        self.assertEqual(self.column("set.csv", "out"), self.column("param.csv", "out"))
        self.write("u.csv", "time,u\n0,0\n0.01,5\n")
        self.cardan("run", "filter.cir", "--input", "u.csv", "--quiet", "-o", "input.csv")
        self.cardan("circuit", "filter.cir", "--input", "u.csv", "--quiet", "-o", "input2.csv")
        error = self.largest(self.column("input.csv", "out"), self.column("input2.csv", "out"))
        self.assertLess(error, 1e-9)
        self.write("w.csv", "time,w\n0,0\n0.01,5\n")
        self.cardan("run", "filter.cir", "--input", "w.csv", code=2, says="inputs are u")

    def test_systems_are_described(self):
        self.example("loudspeaker.yaml")
        self.cardan("check", "loudspeaker.yaml")
        self.assertIn("circuit  loudspeaker_coil.cir", self.cardan("info", "loudspeaker.yaml").stdout)
        units = self.cardan_json("info", "loudspeaker.yaml")["units"]
        self.assertEqual([u["source"] for u in units], ["circuit", "FMU"])
        self.cardan("run", "loudspeaker.yaml", "-o", "run.mf4", "--quiet")
        self.cardan("report", "run.mf4", "-o", "run.html")
        with open(self.path("run.html"), encoding="utf-8") as f:
            self.assertIn("loudspeaker_coil.cir", f.read())

    def test_a_system_with_a_circuit_is_a_slave_but_no_package(self):
        self.example("loudspeaker.yaml")
        self.cardan("dcp", "describe", "loudspeaker.yaml", "-o", "s.dcpx")
        self.cardan("check", "s.dcpx")
        with open(self.path("s.dcpx"), encoding="utf-8") as f:
            self.assertIn('"coil.i"', f.read())
        self.cardan("export", "ssp", "loudspeaker.yaml", code=2,
                    says=("unit 'coil' is a circuit", "cardan export circuit"))
        self.assertFalse(os.path.exists(self.path("loudspeaker.ssp")))

    def test_a_netlist_is_a_slave_with_parameters(self):
        self.write("filter.cir", FILTER)
        self.cardan("dcp", "describe", "filter.cir", "-o", "filter.dcpx")
        slave = Slave(self, "filter.cir", "--once", "--listen", "udp://127.0.0.1:0")
        transport, (host, port) = slave.address()
        self.write("master.yaml", f"""cardan: 1
units:
  far: {{ dcp: "{transport}://{host}:{port}", description: filter.dcpx, parameters: {{ R: 2000 }} }}
  source: {{ signal: {{ shape: constant, value: 3, unit: V }} }}
connections: [ source.y -> far.u ]
run: {{ step: 1 ms, stop: 10 ms, predict: hold }}
results: far.csv
""")
        self.cardan("run", "master.yaml", "--quiet")
        slave.end()
        self.cardan("run", "filter.cir", "--step", "1ms", "--set", "R=2000", "--set", "u=3",
                    "--quiet", "-o", "near.csv")
        self.assertEqual(self.column("far.csv", "far.out"), self.column("near.csv", "out"))


class Mistakes(EndToEnd):
    def system(self, unit, more=""):
        self.write("filter.cir", FILTER)
        return self.write("s.yaml", f"cardan: 1\nunits:\n  a: {{ {unit} }}\n"
                          "  b: { circuit: filter.cir }\nrun: { step: 1 ms, stop: 10 ms }\n" + more)

    def test_mistakes_are_told_by_check_and_by_run(self):
        for unit, more, parts in (
                ("circuit: none.cir", "", ("s.yaml:3: unit 'a'", "none.cir", "no such file")),
                ("circuit: filter.cir, parameters: { S: 1 }", "", ("no variable 'S'",)),
                ("circuit: filter.cir, parameters: { out: 1 }", "", ("'out'", "output")),
                ("circuit: filter.cir, parameters: { R: high }", "", ("'R'", "'high'")),
                ("circuit: filter.cir, solver: { step: 0 us }", "", ("solver.step", "greater than 0")),
                ("circuit: filter.cir, solver: { step: -1 }", "", ("greater than 0",)),
                ("circuit: filter.cir, solver: { method: bdf }", "", ("'bdf'", "bdf1")),
                ("circuit: filter.cir", "connections: [ b.current -> a.u ]\n",
                 ("in 'A'", "in 'V'", "cannot be converted")),
                ("circuit: filter.cir", "connections: [ b.aut -> a.u ]\n", ("did you mean 'out'?",)),
                ("circuit: filter.cir", "connections: [ b.out -> a.current ]\n", ("a.current",))):
            self.system(unit, more)
            self.cardan("check", "s.yaml", code=2, says=parts)
            self.cardan("run", "s.yaml", code=2, says=parts)

    def test_netlists_that_are_wrong_are_named_with_file_and_line(self):
        self.system("circuit: bad.cir")
        for text, parts in (("t\nR1 1 0 zwei\n", "bad.cir:2"),
                            ("t\nV1 1 0 1\nV2 1 0 2\n", ("v2, v1", "unit 'a'")),
                            ("", "bad.cir"),
                            ("\x00\x01\xff binary", "bad.cir"),
                            ("t\n.include bad.cir\n", "bad.cir")):
            self.write("bad.cir", text)
            self.cardan("check", "s.yaml", code=2, says=parts)

    def test_an_input_without_connection_keeps_its_start(self):
        self.system("circuit: filter.cir")
        self.cardan("run", "s.yaml", "-o", "s.csv", says="a.u is not connected")
        self.write("quiet.cir", "t\nV1 1 0 1\nR1 1 0 1\n.tran 1m 2m\n")
        self.system("circuit: quiet.cir")
        self.cardan("check", "s.yaml", says="neither .input nor .output")

    def test_a_step_that_fails_names_unit_part_and_time(self):
        self.write("runaway.cir", RUNAWAY)
        self.write("s.yaml", """cardan: 1
units:
  plant: { circuit: runaway.cir }
  ramp: { signal: { shape: ramp, duration: 0.5 s, amplitude: 2 } }
connections: [ ramp.y -> plant.u ]
run: { step: 10 ms, stop: 1 s }
results: s.csv
""")
        done = self.cardan("run", "s.yaml", code=1, says=("unit 'plant'", "at t = 0.2", "bbad"))
        self.assertNotIn("stop time reached", done.stderr)
        self.assertGreaterEqual(len(self.column("s.csv", "time")), 24)  # what came before stays


if __name__ == "__main__":
    unittest.main()
