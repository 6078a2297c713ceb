"""Systems as neighbours write them: SSP folders that lead outside, prefixes that nobody declared,
steps in annotations, OspSystemStructure.xml."""

import os
import shutil
import unittest
import zipfile

from e2e import EndToEnd, fmu

SSD = ('<?xml version="1.0" encoding="UTF-8"?>\n'
       '<ssd:SystemStructureDescription name="two" version="1.0"'
       ' xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription"%s>\n'
       '<ssd:System name="root"><ssd:Elements>\n'
       '<ssd:Component name="first" source="%s/lo_fd1.fmu"><ssd:Connectors>'
       '<ssd:Connector name="x2" kind="input"/><ssd:Connector name="v2" kind="input"/>'
       '<ssd:Connector name="f" kind="output"/></ssd:Connectors>%s</ssd:Component>\n'
       '<ssd:Component name="second" source="%s/lo_fd2.fmu"><ssd:Connectors>'
       '<ssd:Connector name="x2" kind="output"/><ssd:Connector name="v2" kind="output"/>'
       '<ssd:Connector name="f" kind="input"/></ssd:Connectors></ssd:Component>\n'
       '</ssd:Elements><ssd:Connections>\n'
       '<ssd:Connection startElement="second" startConnector="x2" endElement="first" endConnector="x2"/>\n'
       '<ssd:Connection startElement="second" startConnector="v2" endElement="first" endConnector="v2"/>\n'
       '<ssd:Connection startElement="first" startConnector="f" endElement="second" endConnector="f"/>\n'
       '</ssd:Connections></ssd:System>\n'
       '<ssd:DefaultExperiment stopTime="0.1">%s</ssd:DefaultExperiment>\n'
       '</ssd:SystemStructureDescription>\n')
OSP_STEP = ('<ssd:Annotations><ssc:Annotation type="com.opensimulationplatform"><osp:Algorithm>'
            '<osp:FixedStepAlgorithm baseStepSize="%s"/></osp:Algorithm></ssc:Annotation></ssd:Annotations>')
HINT = ('<ssd:Annotations><ssc:Annotation type="com.opensimulationplatform">'
        '<osp:StepSizeHint value="0.0041"/></ssc:Annotation></ssd:Annotations>')
SPACES = (' xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon"'
          ' xmlns:osp="http://opensimulationplatform.com/SSP/OSPAnnotations"')

OSP = """<?xml version="1.0" encoding="utf-8"?>
<OspSystemStructure xmlns="http://opensimulationplatform.com/MSMI/OSPSystemStructure" version="0.1">
  <StartTime>0</StartTime><EndTime>0.1</EndTime><BaseStepSize>0.001</BaseStepSize>
  <Algorithm>%(algorithm)s</Algorithm>
  <Simulators>
    <Simulator name="first" source="../fmus/lo_fd1.fmu" stepSize="%(step)s">
      <InitialValues><InitialValue variable="m1"><Real value="2"/></InitialValue></InitialValues>
    </Simulator>
    <Simulator name="second" source="../fmus/lo_fd2.fmu"/>
    %(more)s
  </Simulators>
  %(functions)s
  <Connections>%(connections)s</Connections>
</OspSystemStructure>
"""
PAIR = ('<VariableConnection><Variable simulator="%s" name="%s"/><Variable simulator="%s" name="%s"/>'
        '</VariableConnection>')
# the second one stands the wrong way round: the FMUs say which is the output
PAIRS = (PAIR % ("second", "x2", "first", "x2") + PAIR % ("first", "v2", "second", "v2") +
         PAIR % ("first", "f", "second", "f"))
SIGNAL = ('<SignalConnection><Variable simulator="%s" name="%s"/><Signal function="%s" name="%s"/>'
          '</SignalConnection>')
YAML = """cardan: 1
units:
  first: { fmu: fmus/lo_fd1.fmu, parameters: { m1: 2 }%s }
  second: { fmu: fmus/lo_fd2.fmu }
connections:
  - %s
  - second.v2 -> first.v2
  - %s
run: { step: 1 ms, stop: 0.1 s }
"""


class Neighbours(EndToEnd):
    def setUp(self):
        super().setUp()
        os.makedirs(self.path("fmus"))
        os.makedirs(self.path("here"))
        for name in ("lo_fd1", "lo_fd2"):
            shutil.copy(fmu(name), self.path("fmus"))

    def osp(self, algorithm="fixedStep", step="0.001", functions="", connections=PAIRS, more=""):
        self.write("here/OspSystemStructure.xml", OSP % locals())
        return "here/OspSystemStructure.xml"

    def same(self, what, first, second):
        """Both run with held values and agree to the last bit."""
        for path, name in ((first, "a.csv"), (second, "b.csv")):
            self.cardan("run", path, "--predict", "hold", "-q", "-o", name, "--variables", "first.*",
                        "--variables", "second.*")
        self.assertIn("0 of 26 signals differ",
                      self.cardan("compare", "a.csv", "b.csv", "--tolerance", "0", "--absolute", "0").stdout, what)

    def test_folders_lead_outside_and_archives_do_not(self):
        self.write("here/SystemStructure.ssd", SSD % ("", "../fmus", "", "../fmus", ""))
        self.assertIn("2 units, 3 connections", self.cardan("check", "here").stdout)
        with zipfile.ZipFile(self.path("packed.ssp"), "w") as z:
            z.write(self.path("here/SystemStructure.ssd"), "SystemStructure.ssd")
        self.cardan("check", "packed.ssp", code=2, says="'../fmus/lo_fd1.fmu' leaves the package")

    def test_a_package_inside_of_a_folder_stays_inside(self):
        self.write("here/inner.ssd", SSD % ("", "../fmus", "", "../fmus", ""))
        with zipfile.ZipFile(self.path("here/in.ssp"), "w") as z:
            z.write(self.path("here/inner.ssd"), "SystemStructure.ssd")
        os.remove(self.path("here/inner.ssd"))
        outer = SSD % ("", "../fmus", "", "../fmus", "")
        outer = outer.replace("</ssd:Elements>", '<ssd:Component name="third" source="in.ssp" '
                              'type="application/x-ssp-package"/></ssd:Elements>')
        self.write("here/SystemStructure.ssd", outer)
        self.cardan("check", "here", code=2, says="leaves the package")

    def test_prefixes_that_nobody_declared(self):
        text = SSD % (' xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon"', "../fmus", "",
                      "../fmus", OSP_STEP % "0.002")
        self.write("here/SystemStructure.ssd", text)
        done = self.cardan("check", "here", says="the prefix 'osp' is not declared")
        self.assertIn("in steps of 2 ms", done.stdout)
        self.write("here/SystemStructure.ssd", text.replace(" xmlns:ssd=", " xmlns:other="))
        self.cardan("check", "here", says="'ssd' is not declared, taken for that of http://ssp-standard.org")
        self.write("here/SystemStructure.ssd", text.replace("</ssd:System>", "</ssd:Sys>"))
        self.cardan("check", "here", code=2, says="mismatched tag")

    def test_steps_in_annotations(self):
        self.write("here/SystemStructure.ssd", SSD % (SPACES, "../fmus", HINT, "../fmus", OSP_STEP % "1e-3"))
        self.assertIn("in steps of 1 ms", self.cardan("check", "here").stdout)
        units = {u["name"]: u for u in self.cardan_json("run", "here", "-o", "none")["units"]}
        self.assertEqual((units["first"]["steps"], units["second"]["steps"]), (25, 100))
        self.write("here/SystemStructure.ssd", SSD % (SPACES, "../fmus", "", "../fmus", OSP_STEP % "x"))
        self.cardan("check", "here", code=2, says="SystemStructure.ssd:11: FixedStepAlgorithm: baseStepSize = 'x'")
        other = (OSP_STEP % "1").replace("FixedStepAlgorithm", "Ecco")
        self.write("here/SystemStructure.ssd", SSD % (SPACES, "../fmus", "", "../fmus", other))
        self.cardan("check", "here", says="the algorithm 'Ecco' is not known here")

    def test_a_start_behind_what_the_fmus_think_of(self):
        text = (SSD % ("", "../fmus", "", "../fmus", "")).replace('stopTime="0.1"', 'startTime="20"')
        self.write("here/SystemStructure.ssd", text)
        self.assertIn("20 s to 30 s in steps of", self.cardan("check", "here").stdout)  # theirs: 0 s to 10 s
        self.write("here/SystemStructure.ssd", text.replace('startTime="20"', 'startTime="20" stopTime="20"'))
        self.cardan("check", "here", code=2, says="the stop must come after the start")

    def test_an_osp_structure_runs_like_its_yaml(self):
        plain = ("second.x2 -> first.x2", "first.f -> second.f")
        self.same("plain", self.osp(), self.write("a.yaml", YAML % ("", *plain)))
        self.same("step", self.osp(step="0.0019"), self.write("b.yaml", YAML % (", step: 2 ms", *plain)))
        self.assertIn("0 s to 0.1 s in steps of 1 ms", self.cardan("check", "here").stdout)  # the folder
        self.assertIn("2 units", self.cardan("info", "here/OspSystemStructure.xml").stdout)
        self.write("on.yaml", "cardan: 1\nsystem: here/OspSystemStructure.xml\nrun: { stop: 0.05 }\n")
        self.assertIn("0 s to 0.05 s", self.cardan("check", "on.yaml").stdout)

    def test_functions(self):
        functions = '<Functions><LinearTransformation name="scale" factor="0.5" offset="0.01"/></Functions>'
        connections = (SIGNAL % ("first", "x2", "scale", "out") + SIGNAL % ("second", "x2", "scale", "in") +
                       PAIRS.split("</VariableConnection>", 1)[1])
        scaled = ("{ from: second.x2, to: first.x2, gain: 0.5, offset: 0.01 }", "first.f -> second.f")
        self.same("scale", self.osp(functions=functions, connections=connections),
                  self.write("a.yaml", YAML % ("", *scaled)))
        # the sum of one force and itself is twice the force, at the same time
        functions = '<Functions><Sum name="both" inputCount="2"/></Functions>'
        connections = (SIGNAL % ("first", "f", "both", "in[0]") + SIGNAL % ("first", "f", "both", "in[1]") +
                       SIGNAL % ("second", "f", "both", "out") + PAIRS.rsplit("<VariableConnection>", 1)[0])
        doubled = ("second.x2 -> first.x2", "{ from: first.f, to: second.f, gain: 2 }")
        self.same("sum", self.osp(functions=functions, connections=connections),
                  self.write("b.yaml", YAML % ("", *doubled)))

        # an input of a unit from another unit, and one from a sum
        functions = '<Functions><Sum name="one" inputCount="1"/></Functions>'
        connections = (PAIR % ("second", "x2", "first", "x2") + SIGNAL % ("second", "v2", "one", "in[0]") +
                       SIGNAL % ("first", "v2", "one", "out") + PAIR % ("first", "f", "second", "f"))
        plain = ("second.x2 -> first.x2", "first.f -> second.f")
        self.same("sum of one", self.osp(functions=functions, connections=connections),
                  self.write("c.yaml", YAML % ("", *plain)))

    def test_groups_of_variables(self):
        group = '<OspModelDescription version="0.1"><VariableGroups>%s</VariableGroups></OspModelDescription>'
        port = ('<LinearMechanicalPort name="port"><Force name="force"><Variable ref="f"/></Force>'
                '<LinearVelocity name="motion"><Variable ref="x2"/><Variable ref="v2"/></LinearVelocity>'
                '</LinearMechanicalPort>')
        self.write("fmus/lo_fd1_OspModelDescription.xml", group % port)
        self.write("here/lo_fd2_OspModelDescription.xml", group % port)
        ends = ('<VariableGroupConnection><VariableGroup simulator="first" name="%s"/>'
                '<VariableGroup simulator="second" name="port"/></VariableGroupConnection>')
        plain = ("second.x2 -> first.x2", "first.f -> second.f")
        self.same("groups", self.osp(connections=ends % "port"), self.write("a.yaml", YAML % ("", *plain)))
        self.osp(connections=ends % "prt")
        self.cardan("check", "here", code=2, says="first has no group of variables 'prt'")
        self.osp(connections=ends % "motion")
        self.cardan("check", "here", code=2, says="different numbers of variables")
        os.remove(self.path("here/lo_fd2_OspModelDescription.xml"))
        self.osp(connections=ends % "port")
        self.cardan("check", "here", code=2, says="'second' has no groups of variables, expected lo_fd2_Osp")

    def test_what_is_wrong_in_an_osp_structure(self):
        for change, says in (
                (dict(algorithm="ecco"), "the algorithm 'ecco' is not known here"),
                (dict(connections=PAIR % ("first", "f", "second", "x2")), "are both outputs"),
                (dict(connections=PAIR % ("first", "x2", "second", "f")), "are no output of their FMUs"),
                (dict(connections=PAIR % ("first", "f", "thrd", "f")), "simulator 'thrd'"),
                (dict(functions='<Functions><Cubic name="c"/></Functions>'), "function Cubic, expected"),
                (dict(functions='<Functions><Sum name="c" inputCount="0"/></Functions>'), "inputCount = '0'"),
                (dict(step="x"), "Simulator = 'x', expected a number"),
                (dict(more='<Simulator name="t" source="none.fmu"/>'), "there is no file"),
                (dict(more='<Simulator name="first" source="../fmus/lo_fd1.fmu"/>'), "first")):
            with self.subTest(says):
                self.cardan("check", self.osp(**change), code=0 if "ecco" in says else 2, says=says)


if __name__ == "__main__":
    unittest.main()
