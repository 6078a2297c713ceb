"""cardan export circuit: netlists as FMUs that need nobody, and what is refused."""

import hashlib
import os
import shutil
import stat
import subprocess
import unittest
import xml.etree.ElementTree as ET
import zipfile

from e2e import HERE, EndToEnd

DATA = os.path.join(HERE, "..", "circuit", "data")
FILTER = """low-pass <of> "second" order & more
.param r=1k c={100n} twice={2*r}
.include parts/part.inc
.input U unit=V start=1
Vin in 0 input(U)
X1 in mid part
X2 mid out part
.tran 5u 5m uic
.output v(out) i1=i(x1.r) unit=mA sum={v(out)+U} unit=V
.end
"""
PART = """.subckt part a b
R a b {r}
C b 0 {c} ic=0
.ends
.end
what stands here is not read
"""


class ExportCircuit(EndToEnd):
    def setUp(self):
        super().setUp()
        self.write("filter.cir", FILTER)
        os.mkdir(self.path("parts"))
        self.write("parts/part.inc", PART)

    def export(self, *arguments, **options):
        return self.cardan("export", "circuit", *arguments, **options)

    def description(self, fmu):
        with zipfile.ZipFile(self.path(fmu)) as z:
            return ET.fromstring(z.read("modelDescription.xml"))

    def variables(self, fmu):
        return {v.get("name"): v for v in self.description(fmu).find("ModelVariables")}

    def refused(self, *arguments, says, code=2):
        before = sorted(os.listdir(self.folder))
        self.export(*arguments, code=code, says=says)
        self.assertEqual(sorted(os.listdir(self.folder)), before, "something was left behind")

    def digest(self, name):
        with open(self.path(name), "rb") as f:
            return hashlib.sha256(f.read()).hexdigest()

    # ---- what is written

    def test_a_netlist_is_enough(self):
        done = self.export("filter.cir")
        self.assertEqual(done.stdout, "filter.fmu: 5 parts, 1 input, 3 outputs, 3 parameters, "
                         "trapezoidal rule, steps of at most 5 us, FMI 2.0\n")
        self.assertEqual(done.stderr, "")
        with zipfile.ZipFile(self.path("filter.fmu")) as z:
            self.assertIsNone(z.testzip())
            names = z.namelist()
            netlist = z.read("resources/circuit.cir").decode()
            notice = z.read("documentation/licenses/libraries.txt").decode()
        self.assertEqual(names[0], "modelDescription.xml")
        self.assertIn("documentation/licenses/license.txt", names)
        self.assertIn("sources/circuit_model.c", names)
        self.assertFalse([n for n in names if "fmi3" in n])
        self.assertIn("R a b {r}", netlist)  # the included file is in it
        self.assertIn("* .include parts/part.inc", netlist)
        self.assertNotIn("not read", netlist)
        for word in ("KLU", "BTF", "Lesser General Public License"):
            self.assertIn(word, notice)
        self.assertLess(os.path.getsize(self.path("filter.fmu")), 1000000)
        self.cardan("check", "filter.fmu", says=())

    def test_variables_are_those_of_the_netlist(self):
        for version in (2, 3):
            self.export("filter.cir", "--fmi", version, "--param", "r=2k", "--name", "lp", "-o",
                        "x.fmu")
            root, rows = self.description("x.fmu"), self.variables("x.fmu")
            self.assertEqual(root.get("modelName"), "lp")
            self.assertEqual(root.get("description"), 'low-pass <of> "second" order & more')
            self.assertEqual(set(rows) - {"time"}, {"U", "v(out)", "i1", "sum", "r", "c", "step"})
            of = {name: (v[0] if version == 2 else v).attrib for name, v in rows.items()
                  if name != "time"}
            self.assertEqual(of["U"]["start"], "1")
            self.assertEqual(of["U"]["unit"], "V")
            self.assertEqual(of["i1"]["unit"], "mA")
            self.assertEqual(of["r"]["start"], "2000")  # what --param says
            self.assertAlmostEqual(float(of["step"]["start"]), 5e-6)
            self.assertEqual(rows["r"].get("variability"), "fixed")
            units = {u.get("name"): u[0].attrib for u in root.find("UnitDefinitions")}
            self.assertEqual(units["mA"], {"A": "1", "factor": "0.001"})
            cs = root.find("CoSimulation").attrib
            self.assertEqual(cs["canHandleVariableCommunicationStepSize"], "true")
            self.assertEqual(cs["maxOutputDerivativeOrder"], "1")
            state = "state" if version == 2 else "State"
            self.assertEqual(cs["canGetAndSetFMU" + state], "true")
            self.assertEqual(cs["canSerializeFMU" + state], "true")
            self.assertEqual(cs["canInterpolateInputs" if version == 2 else
                                "providesIntermediateUpdate"], "true")
            structure = root.find("ModelStructure")
            outputs = structure.find("Outputs") if version == 2 else structure.findall("Output")
            first = structure.find("InitialUnknowns") if version == 2 else \
                structure.findall("InitialUnknown")
            # Of the outputs only the sum has the input in it; at the start all depend on it.
            self.assertEqual([bool(u.get("dependencies")) for u in outputs], [False, False, True])
            self.assertEqual(len({u.get("dependencies") for u in first}), 1)
            self.assertEqual(len(first[0].get("dependencies").split()), 4)

    def test_the_binary_asks_for_no_library_and_shows_functions_of_fmi_alone(self):
        for version in (2, 3):
            self.export("filter.cir", "--fmi", version, "-o", "x.fmu")
            with zipfile.ZipFile(self.path("x.fmu")) as z:
                name = next(n for n in z.namelist() if n.endswith(".so"))
                z.extract(name, self.folder)
            dynamic = subprocess.run(["readelf", "-dW", self.path(name)], text=True, check=True,
                                     capture_output=True).stdout
            needed = {line.split("[")[1].rstrip("]") for line in dynamic.splitlines()
                      if "(NEEDED)" in line}
            self.assertLessEqual({n.split(".")[0] for n in needed}, {"libc", "libm", "ld-linux"})
            symbols = subprocess.run(["nm", "-D", "--defined-only", self.path(name)], text=True,
                                     check=True, capture_output=True).stdout.split()[2::3]
            self.assertGreater(len(symbols), 20)
            self.assertEqual([s for s in symbols if not s.startswith(f"fmi{version}")], [])
            shutil.rmtree(self.path("binaries"))

    def test_equal_input_gives_equal_bytes(self):
        for version in ("2", "3"):
            line = ["filter.cir", "--fmi", version, "--name", "a"]
            self.export(*line, "-o", "a.fmu")
            self.export(*line, "-o", "b.fmu")
            self.assertEqual(self.digest("a.fmu"), self.digest("b.fmu"))
            self.export(*line, "--method", "bdf2", "-o", "b.fmu")
            self.assertNotEqual(self.digest("a.fmu"), self.digest("b.fmu"))

    # ---- how it runs

    def same(self, a, b):
        with open(self.path(a), "rb") as f, open(self.path(b), "rb") as g:
            self.assertEqual(f.read(), g.read())

    def test_it_gives_the_bytes_of_the_circuit(self):
        for name, method, version in (("rlc", "tr", 2), ("rectifier", "bdf2", 3),
                                      ("inverter", "bdf1", 2), ("pmsm", "trbdf2", 3),
                                      ("scrlc", "gauss2", 2)):
            netlist = os.path.join(DATA, name + ".cir")
            stop = {"rlc": "1 s", "pmsm": "100 s"}.get(name, "100 ms")
            self.cardan("circuit", netlist, "--method", method, "--stop", stop, "-q", "-o",
                        "own.csv")
            self.export(netlist, "--fmi", version, "--method", method, "-o", "x.fmu")
            self.cardan("run", "x.fmu", "--stop-time", stop, "-q", "-o", "fmu.csv")
            self.same("own.csv", "fmu.csv")

    def test_parameters_and_steps_are_those_of_the_run(self):
        line = ["--stop-time", "2 ms", "--step", "5us", "-q", "-o", "fmu.csv"]
        for version in (2, 3):
            self.cardan("circuit", "filter.cir", "--param", "r=330", "--set", "U=3", "--stop",
                        "2 ms", "--step", "2.5 us", "--every", 2, "-q", "-o", "own.csv")
            self.export("filter.cir", "--fmi", version, "-o", "x.fmu")
            self.cardan("run", "x.fmu", "--set", "r=330", "--set", "U=3", "--set", "step=2.5e-6",
                        *line)
            own = self.column("own.csv", "v(out)")
            fmu = self.column("fmu.csv", "v(out)")
            self.assertEqual(len(own), len(fmu))
            self.assertLess(max(abs(a - b) for a, b in zip(own, fmu)), 1e-12)
            self.cardan("run", "x.fmu", "--set", "step=0", *line, code=1,
                        says="step = 0 s, expected > 0")

    def test_communication_steps_may_be_longer_and_vary(self):
        self.export("filter.cir", "-o", "x.fmu")
        self.cardan("run", "x.fmu", "--step", "5us", "--stop-time", "2 ms", "-q", "-o", "a.csv")
        self.cardan("run", "x.fmu", "--step", "1ms", "--stop-time", "2 ms", "-q", "-o", "b.csv")
        self.cardan("run", "x.fmu", "--step", "17us", "--stop-time", "2 ms", "-q", "-o", "c.csv")
        last = [self.column(f"{x}.csv", "v(out)")[-1] for x in "abc"]
        self.assertGreater(last[0], 0.5)
        self.assertAlmostEqual(last[0], last[1], delta=1e-12)
        self.assertAlmostEqual(last[0], last[2], delta=1e-5)

    def test_two_circuits_are_coupled_by_a_run(self):
        """A voltage divider cut in two, both of the same FMU, with inputs that move in a step."""
        self.write("source.cir", "source\n.input i unit=A\nV1 a 0 sin(0 10 50)\nR1 a b 10\n"
                   "C1 b 0 10u ic=0\nI1 b 0 input(i)\n.tran 10u 10m uic\n.output v=v(b)\n")
        self.write("load.cir", "load\n.input v unit=V\nV1 b 0 input(v)\nR2 b c 20\nL1 c 0 10m "
                   "ic=0\n.tran 10u 10m uic\n.output i=i(r2)\n")
        self.write("whole.cir", "both\nV1 a 0 sin(0 10 50)\nR1 a b 10\nC1 b 0 10u ic=0\nR2 b c 20\n"
                   "L1 c 0 10m ic=0\n.tran 1u 10m uic\n.output v=v(b) i=i(r2)\n")
        self.cardan("circuit", "whole.cir", "--every", 10, "-q", "-o", "whole.csv")
        whole = self.column("whole.csv", "i")
        for version in (2, 3):
            for name in ("source", "load"):
                self.export(name + ".cir", "--fmi", version, "-o", name + ".fmu")
            self.write("both.yaml", "cardan: 1\nunits:\n  s: { fmu: source.fmu }\n"
                       "  l: { fmu: load.fmu }\nconnections:\n  - { from: s.v, to: l.v }\n"
                       "  - { from: l.i, to: s.i }\nrun: { step: 10 us, stop: 10 ms, "
                       "predict: linear }\n")
            self.cardan("run", "both.yaml", "-q", "-o", "both.csv")
            i = self.column("both.csv", "l.i")
            self.assertEqual(len(i), len(whole))
            self.assertLess(max(abs(a - b) for a, b in zip(i, whole)), 2e-4 * max(whole))

    def test_a_step_without_a_solution_is_reported(self):
        self.write("log.cir", "t\nB1 a 0 V={1+1m*ln(0.5-time)}\nR1 a b 1\nC1 b 0 1 ic=0\n"
                   ".tran 10m 1 uic\n.output v(b)\n")
        self.export("log.cir", "-o", "x.fmu")
        self.cardan("run", "x.fmu", "--log-level", "debug", "-o", "x.csv", code=1,
                    says=("t = 0.5 s", "a shorter step may help"))

    # ---- what is refused

    def test_netlists_that_are_wrong(self):
        def text(*lines):
            self.write("x.cir", "\n".join(("title",) + lines) + "\n")
        self.refused("gone.cir", "-o", "x.fmu", says="gone.cir")
        self.refused(".", "-o", "x.fmu", says="a folder, expected a netlist")
        text("V1 in 0 1", "R1 in 0 1", ".tran 1 1")
        self.refused("x.cir", says="x.cir has no outputs, and an FMU without is of no use: add a "
                     "line such as .output v(in)")
        text("V1 in 0 1", "R1 in 0 1", ".output v(in)")
        self.refused("x.cir", says="x.cir has no .tran that says the step: say it with --step")
        text("V1 in 0 1", "R1 in 0", ".tran 1 1", ".output v(in)")
        self.refused("x.cir", says="x.cir:3: ")
        text("V1 in 0 1", "V2 in 0 2", ".tran 1 1", ".output v(in)")
        self.refused("x.cir", says="v2")  # a loop of voltage sources
        text("V1 in 0 1", "R1 in 0 1", ".include parts/none.inc", ".tran 1 1", ".output v(in)")
        self.refused("x.cir", says="x.cir:4: .include: parts/none.inc")
        text(".param y=1", "V1 in 0 1", "R1 in 0 {y}", ".tran 1 1", ".output y=v(in)")
        self.refused("x.cir", says="two variables are called 'y'")

    def test_options_that_are_wrong(self):
        for line, says in ((["--fmi", "1"], "--fmi"), (["--fmi", "x"], "--fmi"),
                           (["--step", "0us"], "--step"), (["--step", "-1us"], "--step"),
                           (["--step", "1V"], "--step"), (["--method", "euler"], "--method"),
                           (["--param", "q=3"], "there is no .param \"q\""),
                           (["--param", "r"], "expected name=number"),
                           (["--param", "r=much"], "expected name=number"),
                           (["--name", "a b"], "expected letters, digits"),
                           (["--name", "x" * 200], "expected letters, digits"),
                           (["--signals", "2"], "--signals is an option of cardan export coupling"),
                           (["--mode", "nrt"], "--mode is an option of cardan export dcp")):
            self.refused("filter.cir", *line, says=says)
        self.cardan("export", "circuit", code=2, says="NETLIST is missing")
        self.cardan("export", "ssp", "x.yaml", "--method", "tr", code=2,
                    says="--method is an option of cardan export circuit")
        self.cardan("export", "ssp", "x.yaml", "--fmi", 3, code=2,
                    says="--fmi is an option of cardan export coupling, dcp, circuit and twin")

    def test_for_other_machines_it_says_what_it_is_linked_with(self):
        for version in ("2", "3"):
            self.export("filter.cir", "--fmi", version)
            with zipfile.ZipFile(self.path("filter.fmu")) as z:
                build = ET.fromstring(z.read("sources/buildDescription.xml"))
            self.assertEqual([e.get("name") for e in build.iter("Library")],
                             ["klu", "btf", "amd", "colamd", "suitesparseconfig", "m"])
        # What it has for this machine stays as it is, and nobody compiles anything.
        self.export("filter.cir", "--fmi", "3", "--platforms", "x86_64-linux" if os.uname().machine == "x86_64" else "aarch64-linux")
        with zipfile.ZipFile(self.path("filter.fmu")) as z:
            self.assertEqual(len([n for n in z.namelist() if n.endswith(".so")]), 1)
        os.remove(self.path("filter.fmu"))
        self.refused("filter.cir", "--platforms", "pdp11", says="--platforms: 'pdp11' is none of those that can be built for")

    def test_what_cannot_be_written_leaves_nothing(self):
        self.refused("filter.cir", "-o", "no/such/x.fmu", says="no/such/x.fmu", code=1)
        os.mkdir(self.path("folder.fmu"))
        self.refused("filter.cir", "-o", "folder.fmu", says="folder.fmu", code=1)
        for own in ("filter.cir", "parts/part.inc"):
            self.refused("filter.cir", "-o", own, says="would overwrite")

    @unittest.skipIf(os.geteuid() == 0, "root writes everywhere")
    def test_a_folder_that_is_not_ours(self):
        os.mkdir(self.path("closed"))
        os.chmod(self.path("closed"), stat.S_IRUSR | stat.S_IXUSR)
        self.refused("filter.cir", "-o", "closed/x.fmu", says="closed/x.fmu", code=1)

    def test_spoilt_resources_are_refused_by_the_fmu(self):
        self.export("filter.cir", "-o", "x.fmu")
        for file, text, says in (("circuit.cir", "t\nR1 a 0\n", "resources/circuit.cir:2"),
                                 ("circuit.settings", "", "resources/circuit.settings:1"),
                                 ("circuit.settings", "Cardan circuit 1\nname y\nmethod tr\n",
                                  "token")):  # another model
            self.bend(self.path("x.fmu"), "bent.fmu", remove=["resources/" + file],
                      add={"resources/" + file: text})
            self.cardan("run", "bent.fmu", "-q", "-o", "x.csv", code=1, says=says)
        self.bend(self.path("x.fmu"), "bent.fmu", remove=["resources/circuit.cir"])
        self.cardan("run", "bent.fmu", "-q", "-o", "x.csv", code=1, says="circuit.cir")


if __name__ == "__main__":
    unittest.main()
