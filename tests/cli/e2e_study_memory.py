"""Studies of FMUs that remember in their libraries what was before: a run is as in a process of its own, whoever makes it."""

import os
import sqlite3
import unittest
import zipfile

from e2e import EndToEnd, fmu

LIBRARIES = os.environ["CARDAN_REMEMBERS"]
DESCRIPTION = """<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="remembers" guid="x">
  <CoSimulation modelIdentifier="remembers"/>
  <ModelVariables>
    <ScalarVariable name="y" valueReference="0" causality="output"><Real/></ScalarVariable>
    <ScalarVariable name="p" valueReference="1" causality="parameter" variability="fixed"><Real start="0"/></ScalarVariable>
  </ModelVariables>
  <ModelStructure><Outputs><Unknown index="1"/></Outputs></ModelStructure>
</fmiModelDescription>
"""
STUDY = "study: 1\nsystem: s.yaml\n{}vary: {{ a.p: [{}] }}\nkeep: {{ y: a.y }}\n"


def library(where):
    with open(os.path.join(LIBRARIES, f"remembers_{where}.so"), "rb") as f:
        return f.read()


def platform():
    with zipfile.ZipFile(fmu("lo_fd1")) as z:
        return next(n.split("/")[1] for n in z.namelist() if n.startswith("binaries/") and n.endswith(".so"))


class Memory(EndToEnd):
    studies = 0

    def make(self, where, folder=False):
        with zipfile.ZipFile(self.path("a.fmu"), "w") as z:
            z.writestr("modelDescription.xml", DESCRIPTION)
            z.writestr(f"binaries/{platform()}/remembers.so", library(where))
            if where == "sibling":
                z.writestr(f"binaries/{platform()}/sibling.so", library("static"))
        if folder:
            with zipfile.ZipFile(self.path("a.fmu")) as z:
                z.extractall(self.path("unpacked"))
        name = "unpacked" if folder else "a.fmu"
        self.write("s.yaml", f"cardan: 1\nunits: {{ a: {{ fmu: {name} }} }}\nrun: {{ step: 10 ms, stop: 50 ms }}\n")

    def study(self, values, *arguments, isolate=False):
        self.studies += 1
        name = f"{self.studies}.study"
        self.write("study.yaml", STUDY.format("isolate: true\n" if isolate else "", ", ".join(map(str, values))))
        self.cardan_json("study", "run", "study.yaml", "--database", name, *arguments, code=(0, 1))
        with sqlite3.connect(self.path(name)) as c:
            return c.execute('SELECT "a.p", state, y FROM runs ORDER BY id').fetchall()

    def alone(self, value):
        """y at the end of a run in a process of its own."""
        self.cardan("run", "s.yaml", "--set", f"a.p={value}", "-q", "-o", "alone.csv")
        return self.column("alone.csv", "a.y")[-1]

    def test_no_run_sees_what_others_have_left(self):
        values = [10 + i for i in range(9)]
        for where in ("nothing", "static", "heap", "thread", "sibling", "draws", "seed", "lingers"):
            with self.subTest(where=where):
                self.make(where)
                alone = self.alone(values[-1])
                self.assertEqual(alone == 1, where not in ("draws", "seed"))
                expected = [(v, 2, alone) for v in values]
                self.assertEqual(self.study(values, "--workers", 1), expected)
                self.assertEqual(self.study(values, "--workers", 2, "--chunk", 1), expected)
                self.assertEqual(self.study(values, isolate=True), expected)

    def test_nor_in_a_folder_that_is_not_ours(self):
        values = [10 + i for i in range(5)]
        for where in ("static", "heap", "lingers"):
            with self.subTest(where=where):
                self.make(where, folder=True)
                self.assertEqual(self.study(values, "--workers", 1), [(v, 2, 1) for v in values])

    def test_nor_behind_one_that_failed_or_crashed(self):
        # Fatal in a step, abort() when it is freed, which is behind its end, and in a step.
        values = [10, 1, 11, 12, 2, 13, 14, 3, 15, 16]
        for where in ("nothing", "static", "lingers"):
            self.make(where)
            for arguments in (("--workers", 1), ("--workers", 2, "--chunk", 1)):
                with self.subTest(where=where, arguments=arguments):
                    expected = [(v, {1: 4, 3: 6}.get(v, 2), None if v in (1, 3) else 1) for v in values]
                    self.assertEqual(self.study(values, *arguments), expected)


if __name__ == "__main__":
    unittest.main()
