"""Digital twins as units of systems and as FMUs: what they estimate there, and what is refused."""

import os
import shutil
import subprocess
import unittest
import xml.etree.ElementTree as ET
import zipfile

from e2e_twin import RC, TWIN, Twin

SYSTEM = """cardan: 1
units:
  bench: { replay: test.csv }
  twin: { twin: twin.yaml }
connections:
  - { from: bench.T2, to: twin.T2.measured }
  - { from: bench.T3, to: twin.T3.measured }
run: { step: 2 ms, stop: 2 s }
"""
# The heat is what a controller wants; the real resistance is not that of the twin's netlist.
LOOP = """cardan: 1
units:
  plant: { circuit: plant.cir }
  twin: { twin: loop.yaml }
  heat: { signal: { shape: sine, offset: 10, amplitude: 5, frequency: 1 } }
connections:
  - { from: heat.y, to: plant.q }
  - { from: heat.y, to: twin.q }
  - { from: plant.T2, to: twin.T2.measured }
  - { from: plant.T3, to: twin.T3.measured }
run: { step: 2 ms, stop: 10 s }
"""


class Systems(Twin):
    def near(self, a, b, tolerance=1e-9):
        self.assertEqual(len(a), len(b))
        self.assertLess(max(abs(x - y) for x, y in zip(a, b)), tolerance)

    def test_a_unit_estimates_what_the_command_does(self):
        self.measure()
        self.write("system.yaml", SYSTEM)
        self.cardan("twin", "run", "twin.yaml", "-m", "test.csv", "-o", "own.csv")
        done = self.cardan("check", "system.yaml")
        self.assertIn("ok: 2 units, 2 connections", done.stdout)
        self.assertIn("twin.yaml", self.cardan("info", "system.yaml").stdout)
        self.cardan("run", "system.yaml", "-q", "-o", "unit.csv")
        for name in ("T1", "T2", "q0"):
            self.near(self.column("unit.csv", "twin." + name)[1:], self.column("own.csv", name))
        width = [(b - a) / 3.92 for a, b in zip(self.column("own.csv", "T1.low"),
                                                self.column("own.csv", "T1.high"))]
        self.near(self.column("unit.csv", "twin.T1.sd")[1:], width)
        status = self.column("unit.csv", "twin.T2.status")
        self.assertEqual(status[0], 1)  # nothing was measured yet
        self.assertEqual(max(status[1:]), 0)

    def test_an_input_that_nobody_feeds_is_a_sensor_that_is_missing(self):
        self.measure()
        self.write("system.yaml", SYSTEM.replace("  - { from: bench.T3, to: twin.T3.measured }\n",
                                                 ""))
        self.cardan("run", "system.yaml", "-q", "-o", "unit.csv")
        self.assertEqual(set(self.column("unit.csv", "twin.T3.status")), {1})
        self.assertEqual(self.column("unit.csv", "twin.T2.status")[-1], 0)
        error = abs(self.column("unit.csv", "twin.T3")[-1] - self.column("truth.csv", "T3")[-1])
        self.assertLess(error, 1)

    def test_longer_steps_measure_less_often(self):
        self.measure()
        self.write("system.yaml", SYSTEM.replace("twin.yaml }", "twin.yaml, step: 20 ms }"))
        self.cardan("run", "system.yaml", "-q", "-o", "unit.csv")
        t3 = self.column("unit.csv", "twin.T3")
        self.assertLess(abs(t3[-1] - self.column("truth.csv", "T3")[-1]), 0.6)

    def test_a_twin_runs_beside_its_plant(self):
        plant = RC.replace("\n.param", "\n.input q unit=W start=10\n.param", 1).replace(
            "q0 1 10", "q0 1 input(q)")
        self.write("rc.cir", plant)
        self.write("plant.cir", plant.replace("r2 2 3 2", "r2 2 3 2.6"))
        self.write("loop.yaml", TWIN.split("sources:")[0].replace("0.5", "0.05") +
                   "parameters: { r2: { sd: 0.5 } }\n")
        self.write("loop_system.yaml", LOOP)
        self.cardan("run", "loop_system.yaml", "-q", "-o", "loop.csv")
        r2, sd = self.column("loop.csv", "twin.r2"), self.column("loop.csv", "twin.r2.sd")
        self.assertLess(abs(r2[0] - 2), 1e-9)
        self.assertLess(abs(r2[-1] - 2.6), 0.01)
        self.assertLess(sd[-1], 0.1 * sd[0])

    def test_steps_that_do_not_fit_are_found_by_the_check(self):
        self.measure()
        for old, new, says in (("step: 2 ms, stop", "step: 3 ms, stop", "multiples of 0.002 s"),
                               ("step: 2 ms, stop", "step: 1 ms, stop", "give it 'step: 0.002'"),
                               ("twin.yaml }", "twin.yaml, step: 5 ms }",
                                "expected a multiple of the 0.002 s of twin.yaml")):
            self.write("system.yaml", SYSTEM.replace(old, new))
            self.cardan("check", "system.yaml", code=2, says=["unit 'twin'", says])
        self.write("system.yaml", SYSTEM.replace("step: 2 ms, stop", "step: 1 ms, stop").replace(
            "twin.yaml }", "twin.yaml, step: 2 ms }"))
        self.cardan("run", "system.yaml", "-q", "-o", "unit.csv")

    def test_descriptions_that_are_wrong_are_found_by_the_check(self):
        self.measure()
        self.write("system.yaml", SYSTEM)
        for text, says in ((TWIN.replace("sensors:", "senors:"), ["twin.yaml:3", "senors"]),
                           (TWIN.replace("step: 2 ms\n", ""), ["step is missing"]),
                           (TWIN.replace("  q0: {", "  T1: { parts: q0,"), ["'T1'"]),
                           (TWIN.replace("T3: {", "T3: { at: t(9),"), ["T3", "9"]),
                           (TWIN.replace("rc.cir", "gone.cir"), ["gone.cir"]),
                           ("[", ["twin.yaml"])):
            with self.subTest(says[0]):
                self.write("twin.yaml", text)
                self.cardan("check", "system.yaml", code=2, says=["unit 'twin'", *says])
        os.remove(self.path("twin.yaml"))
        self.cardan("check", "system.yaml", code=2, says=["unit 'twin'", "twin.yaml"])
        self.write("twin.yaml", TWIN)
        self.write("system.yaml", SYSTEM.replace("twin.T3.measured", "twin.T3"))
        self.cardan("check", "system.yaml", code=2, says=["T3"])
        self.write("system.yaml", SYSTEM.replace("twin.yaml }", "twin.yaml, solver: {} }"))
        self.cardan("check", "system.yaml", code=2, says=["solver"])
        self.write("system.yaml", SYSTEM)
        self.cardan("export", "ssp", "system.yaml", code=2, says="cardan export twin")

    def test_a_twin_alone_is_no_system(self):
        for command in ("info", "check", "run"):
            self.cardan(command, "twin.yaml", code=2,
                        says=["twin.yaml:1", "not a system description", "'cardan twin'"])

    def test_divergence_ends_the_run_with_the_name_of_the_unit(self):
        self.measure(change=lambda rows: [
            [*r[:2], repr((-1)**i * 1e9), repr((-1)**(i // 2) * 1e9)]
            for i, r in enumerate(rows)])
        self.write("system.yaml", SYSTEM)
        self.cardan("run", "system.yaml", "-q", "-o", "unit.csv", code=1,
                    says=["unit 'twin'", "the filter diverged at t = "])


class Export(Twin):
    def export(self, *arguments, **options):
        return self.cardan("export", "twin", *arguments, **options)

    def test_an_fmu_has_measurements_in_and_estimates_out(self):
        for version in (2, 3):
            done = self.export("twin.yaml", "--fmi", version, "-o", "x.fmu")
            self.assertEqual(done.stdout, "x.fmu: 2 sensors, 1 source and 0 values to find, 3 "
                             f"outputs, steps of 2 ms, FMI {version}.0\n")
            with zipfile.ZipFile(self.path("x.fmu")) as z:
                self.assertIsNone(z.testzip())
                names = z.namelist()
                root = ET.fromstring(z.read("modelDescription.xml"))
            for name in ("resources/circuit.cir", "resources/twin.json", "sources/twin_ud.c",
                         "documentation/licenses/libraries.txt"):
                self.assertIn(name, names)
            rows = {v.get("name"): v for v in root.find("ModelVariables")}
            self.assertLessEqual({"T2.measured", "T1", "T1.sd", "q0", "q0.sd", "T2.status"},
                                 set(rows))
            row = rows["T2.measured"][0] if version == 2 else rows["T2.measured"]
            self.assertEqual(row.get("start"), "NaN")
            self.assertEqual(row.get("unit"), "K")
            cs = root.find("CoSimulation").attrib
            state = "state" if version == 2 else "State"
            self.assertEqual(cs["canSerializeFMU" + state], "true")
            self.assertLess(os.path.getsize(self.path("x.fmu")), 1000000)
            self.cardan("check", "x.fmu")
            self.assertIn("T2.measured", self.cardan("info", "x.fmu").stdout)

    def test_the_binary_asks_for_no_library_and_shows_functions_of_fmi_alone(self):
        for version in (2, 3):
            self.export("twin.yaml", "--fmi", version, "-o", "x.fmu")
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
            self.assertEqual([s for s in symbols if not s.startswith(f"fmi{version}")], [])
            shutil.rmtree(self.path("binaries"))

    def test_the_fmu_estimates_what_the_unit_does(self):
        """Also with .param from the description and parts of the netlist in another file."""
        self.measure()
        lines = RC.split("\n")
        self.write("rc.cir", "\n".join(lines[:4] + [".include parts.inc"] + lines[7:]))
        self.write("parts.inc", "\n".join(lines[4:7]) + "\n")
        self.write("twin.yaml", TWIN + "values: { rout: 3.5 }\n"
                   "parameters: { r2: { start: 2.5 } }\nfilter: reduced\n")
        self.write("unit.yaml", SYSTEM)
        self.cardan("run", "unit.yaml", "-q", "-o", "unit.csv")
        for version in (2, 3):
            self.export("twin.yaml", "--fmi", version, "-o", "x.fmu")
            self.write("fmu.yaml", SYSTEM.replace("twin: twin.yaml", "fmu: x.fmu"))
            self.cardan("run", "fmu.yaml", "-q", "-o", "fmu.csv")
            names, unit = self.table("unit.csv")
            self.assertEqual(self.table("fmu.csv")[0], names)
            for name, a, b in zip(names, unit, self.table("fmu.csv")[1]):
                scale = max(map(abs, a)) + 1
                self.assertLess(max(abs(x - y) for x, y in zip(a, b)), 1e-9 * scale, name)

    def test_steps_that_do_not_fit_are_refused_by_the_fmu(self):
        self.export("twin.yaml", "-o", "x.fmu")
        self.cardan("run", "x.fmu", "--step", "4ms", "-q", "-o", "x.csv")
        self.cardan("run", "x.fmu", "--step", "3ms", "-q", "-o", "x.csv", code=1,
                    says="expected a multiple of the twin's step of 0.002 s")

    def test_equal_input_gives_equal_bytes(self):
        for version in ("2", "3"):
            both = []
            for name in ("a.fmu", "b.fmu"):
                self.export("twin.yaml", "--fmi", version, "--name", "a", "-o", name)
                with open(self.path(name), "rb") as f:
                    both.append(f.read())
            self.assertEqual(*both)

    def test_what_is_refused_leaves_nothing_behind(self):
        self.write("bad.yaml", TWIN.replace("step: 2 ms\n", ""))
        before = sorted(os.listdir(self.folder))
        for line, says in ((["gone.yaml"], "gone.yaml"), (["bad.yaml"], "step is missing"),
                           (["rc.cir"], "rc.cir"), (["twin.yaml", "--fmi", "1"], "--fmi"),
                           (["twin.yaml", "--step", "1ms"],
                            "--step is an option of cardan export coupling, dcp, circuit"),
                           (["twin.yaml", "--name", "a b"], "expected letters, digits"),
                           (["twin.yaml", "-o", "twin.yaml"], "would overwrite"),
                           (["twin.yaml", "-o", "rc.cir"], "would overwrite"),
                           ([], "TWIN.yaml is missing")):
            with self.subTest(says):
                self.export(*line, code=2, says=says)
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_spoilt_resources_are_refused_by_the_fmu(self):
        self.export("twin.yaml", "-o", "x.fmu")
        for file, text, says in (("circuit.cir", "t\nR1 a 0\n", "circuit.cir:2"),
                                 ("twin.json", "{", "twin.json"),
                                 ("twin.json", "{ \"circuit\": \"circuit.cir\", \"step\": 1, "
                                  "\"sensors\": { \"T2\": { \"sd\": 1 } } }", "token")):
            self.bend(self.path("x.fmu"), "bent.fmu", remove=["resources/" + file],
                      add={"resources/" + file: text})
            self.cardan("run", "bent.fmu", "-q", "-o", "x.csv", code=1, says=says)


if __name__ == "__main__":
    unittest.main()
