"""cardan export ssp: packages that run like what they were made of, and what is refused."""

import math
import os
import random
import unittest
import xml.etree.ElementTree as ET
import zipfile

from e2e import EndToEnd, fmu

SSD = "{http://ssp-standard.org/SSP1/SystemStructureDescription}"
SSV = "{http://ssp-standard.org/SSP1/SystemStructureParameterValues}"


class Export(EndToEnd):
    def names(self, package):
        with zipfile.ZipFile(self.path(package)) as z:
            self.assertIsNone(z.testzip())
            return sorted(z.namelist())

    def document(self, package, name="SystemStructure.ssd"):
        with zipfile.ZipFile(self.path(package)) as z:
            return ET.fromstring(z.read(name))

    def content(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def test_a_package_runs_like_its_description(self):
        system = self.oscillator()
        done = self.cardan("export", "ssp", system)
        self.assertEqual(done.stdout, "oscillator.ssp: 2 units, 3 connections, SSP 1.0\n")
        self.assertEqual(done.stderr, "")
        self.assertEqual(self.names("oscillator.ssp"),
                         ["SystemStructure.ssd", "resources/lo_fd1.fmu", "resources/lo_fd2.fmu",
                          "resources/oscillator.ssv"])
        root = self.document("oscillator.ssp")
        self.assertEqual(root.get("version"), "1.0")
        self.assertEqual(root.get("name"), "oscillator")
        self.cardan("check", "oscillator.ssp")
        self.cardan("run", system, "-q", "-o", "a.csv")
        self.cardan("run", "oscillator.ssp", "-q", "-o", "b.csv")
        self.assertEqual(self.content("a.csv"), self.content("b.csv"))
        # and so does a package of the package
        self.cardan("export", "ssp", "oscillator.ssp", "-o", "again.ssp", "--ssp-version", "2")
        self.assertEqual(self.document("again.ssp").get("version"), "2.0")
        self.cardan("run", "again.ssp", "-q", "-o", "c.csv")
        self.assertEqual(self.content("a.csv"), self.content("c.csv"))

    def test_a_broken_file_is_named_by_its_package(self):
        self.cardan("export", "ssp", self.oscillator())
        with zipfile.ZipFile(self.path("oscillator.ssp")) as good, \
                zipfile.ZipFile(self.path("broken.ssp"), "w") as bad:
            for name in good.namelist():
                bad.writestr(name, "broken" if name.endswith("fd2.fmu") else good.read(name))
        self.cardan("check", "broken.ssp", code=2, says="unit 'second': "
                    "broken.ssp/resources/lo_fd2.fmu: not a zip archive")

    def test_fmi_3_and_signals_too(self):
        self.oscillator(3)
        self.write("push.yaml", "cardan: 1\n"
                                "units:\n"
                                "  mass: { fmu: lo_fd2.fmu, parameters: { v2: 0 } }\n"
                                "  push: { signal: { shape: sine, frequency: 2 Hz, unit: N } }\n"
                                "connections: [ push.y -> mass.f ]\n"
                                "run: { step: 1 ms, stop: 0.1 }\n")
        done = self.cardan("export", "ssp", "push.yaml", "-o", "p.ssp",
                           says="p.ssp: 1 unit is no FMU (push): only Cardan runs")
        self.assertIn("2 units, 1 connection", done.stdout)
        self.cardan("run", "push.yaml", "-q", "-o", "a.csv")
        self.cardan("run", "p.ssp", "-q", "-o", "b.csv")
        self.assertEqual(self.content("a.csv"), self.content("b.csv"))

    def test_recordings_go_along(self):
        self.oscillator()
        self.write("my force.csv", "time,f\n0,0\n0.1,5\n")
        self.write("rec.yaml", "cardan: 1\n"
                               "units:\n"
                               "  mass: { fmu: lo_fd2.fmu }\n"
                               "  drive: { replay: my force.csv, time_offset: 10 ms }\n"
                               "connections: [ drive.f -> mass.f ]\n"
                               "run: { step: 1 ms, stop: 0.1 }\n")
        self.cardan("export", "ssp", "rec.yaml", "-o", "sub.ssp", says="(drive)")
        self.assertIn("resources/my_force.csv", self.names("sub.ssp"))
        self.cardan("run", "rec.yaml", "-q", "-o", "a.csv")
        os.rename(self.path("my force.csv"), self.path("gone.csv"))
        self.cardan("run", "sub.ssp", "-q", "-o", "b.csv")
        for signal in ("mass.x2", "mass.v2", "drive.f"):
            self.assertEqual(self.column("a.csv", signal), self.column("b.csv", signal))

    def test_set_changes_what_is_packed(self):
        self.oscillator()
        self.cardan("export", "ssp", "oscillator.yaml", "--set", "first.m1=2500 g", "-o", "x.ssp")
        values = {p.get("name"): p[0].get("value")
                  for p in self.document("x.ssp", "resources/oscillator.ssv").iter(SSV + "Parameter")}
        self.assertEqual(values, {"first.m1": "2.5"})

    def test_a_single_fmu(self):
        self.cardan("export", "ssp", fmu("lo_fd2"), "--set", "m2=3", "--author", "A & B")
        root = self.document("lo_fd2.ssp")
        self.assertEqual(root.get("author"), "A & B")
        kinds = {c.get("name"): c.get("kind") for c in root.iter(SSD + "Connector")}
        self.assertEqual((kinds["f"], kinds["x2"], kinds["m2"]), ("input", "output", "parameter"))
        self.cardan("export", "ssp", fmu("lo_fd2"), "--set", "m2=3", "--only-used", "-o", "u.ssp")
        used = [c.get("name") for c in self.document("u.ssp").iter(SSD + "Connector")]
        self.assertEqual(used, ["m2"])
        self.cardan("run", "u.ssp", "-q", "--stop-time", "0.01", "-o", "a.csv")

    def test_an_unpacked_fmu_is_packed(self):
        with zipfile.ZipFile(fmu("lo_fd2")) as z:
            z.extractall(self.path("open"))
        self.cardan("export", "ssp", "open")
        self.cardan("run", "open.ssp", "-q", "--stop-time", "0.01", "-o", "a.csv")
        self.assertEqual(self.names("open.ssp"), ["SystemStructure.ssd", "resources/open.fmu"])

    def test_equal_systems_give_equal_bytes(self):
        self.oscillator()
        self.cardan("export", "ssp", "oscillator.yaml", "-o", "a.ssp")
        os.utime(self.path("lo_fd1.fmu"), (1, 1))
        self.cardan("export", "ssp", "oscillator.yaml", "-o", "b.ssp")
        self.assertEqual(self.content("a.ssp"), self.content("b.ssp"))

    def test_a_description_over_a_package(self):
        self.oscillator()
        self.cardan("export", "ssp", "oscillator.yaml")
        self.write("over.yaml", "cardan: 1\n"
                                "system: oscillator.ssp\n"
                                "units: { first: { parameters: { m1: 4 } } }\n"
                                "run: { stop: 0.05 s }\n")
        self.write("plain.yaml", "cardan: 1\n"
                                 "units:\n"
                                 "  first: { fmu: lo_fd1.fmu, parameters: { m1: 4 } }\n"
                                 "  second: { fmu: lo_fd2.fmu }\n"
                                 "connections:\n"
                                 "  - second.x2 -> first.x2\n"
                                 "  - second.v2 -> first.v2\n"
                                 "  - first.f -> second.f\n"
                                 "run: { step: 1 ms, stop: 0.05, predict: hold }\n")
        self.cardan("run", "over.yaml", "-q", "-o", "a.csv")
        self.cardan("run", "plain.yaml", "-q", "-o", "b.csv")
        self.assertEqual(self.content("a.csv"), self.content("b.csv"))
        self.write("over.yaml", "cardan: 1\nsystem: oscillator.ssp\n"
                                "connections: [ first.x1 -> second.f ]\n")
        self.cardan("check", "over.yaml", code=2,
                    says=("over.yaml:3:", "'second.f' gets its value from first.f in ",
                          "SystemStructure.ssd:"))

    def test_a_variant_becomes_a_package(self):
        self.oscillator()
        self.cardan("export", "ssp", "oscillator.yaml")
        with zipfile.ZipFile(self.path("oscillator.ssp"), "a") as z:
            text = z.read("SystemStructure.ssd").decode()
            self.assertIn('stopTime="0.1"', text)
            z.writestr("winter.ssd", text.replace('stopTime="0.1"', 'stopTime="0.03"'))
        self.cardan("export", "ssp", "oscillator.ssp", "--variant", "winter", "-o", "w.ssp")
        experiment = self.document("w.ssp").find(SSD + "DefaultExperiment")
        self.assertEqual(experiment.get("stopTime"), "0.03")
        self.assertEqual([n for n in self.names("w.ssp") if n.endswith(".ssd")],
                         ["SystemStructure.ssd"])
        self.cardan("export", "ssp", "oscillator.ssp", "--variant", "sumer", "-o", "s.ssp", code=2,
                    says="winter")

    def test_what_is_refused(self):
        self.oscillator()
        for form in ("ssp SYSTEM | coupling ELEMENT | ", " | c NETLIST", " is missing"):
            self.cardan("export", code=2, says=form)
        self.cardan("export", "ssp", code=2, says="SYSTEM is missing: cardan export ssp SYSTEM")
        self.cardan("export", "oscillator.yaml", code=2, says="expected: cardan export ssp SYSTEM")
        self.cardan("export", "ssp", "gone.yaml", code=2, says="gone.yaml: no such file")
        self.cardan("export", "ssp", "oscillator.yaml", "--ssp-version", "3", code=2,
                    says="expected one of 1|2")
        self.cardan("export", "ssp", "oscillator.yaml", "-o", "no/x.ssp", code=1,
                    says="no/x.ssp: cannot be written")
        before = self.content("lo_fd1.fmu")
        self.cardan("export", "ssp", "oscillator.yaml", "-o", "lo_fd1.fmu", code=2,
                    says="would overwrite the file of a unit")
        self.cardan("export", "ssp", "oscillator.yaml", "-o", "oscillator.yaml", code=2,
                    says="would overwrite what it is made of")
        self.assertEqual(before, self.content("lo_fd1.fmu"))
        self.cardan("export", "ssp", "oscillator.yaml")
        self.cardan("export", "ssp", "oscillator.ssp", code=2, says="choose another file with --output")
        self.write("wrong.yaml", "cardan: 1\n"
                                 "units: { a: { fmu: lo_fd1.fmu }, b: { fmu: lo_fd2.fmu } }\n"
                                 "connections:\n"
                                 "  - a.force -> b.f\n")
        self.cardan("export", "ssp", "wrong.yaml", code=2,
                    says="wrong.yaml:4: unit 'a' has no variable 'force'")
        self.assertFalse(os.path.exists(self.path("wrong.ssp")))


def parameter_set(*values):
    """An SSV; its parameters stand from line 3 on."""
    rows = "\n".join(f'<ssv:Parameter name="{name}">{value}</ssv:Parameter>' for name, value in values)
    return (f'<ssv:ParameterSet xmlns:ssv="{SSV[1:-1]}" version="1.0" name="heavy">\n'
            f"<ssv:Parameters>\n{rows}\n</ssv:Parameters></ssv:ParameterSet>\n")


def real(value, unit=None):
    return f'<ssv:Real value="{value}"' + (f' unit="{unit}"' if unit else "") + "/>"


MAPPING = """<m:ParameterMapping xmlns:m="http://ssp-standard.org/SSP1/SystemStructureParameterMapping"
    xmlns:c="http://ssp-standard.org/SSP1/SystemStructureCommon" version="1.0">
  <m:MappingEntry source="mass" target="{target}"><c:LinearTransformation factor="2" offset="0.5"/>
  </m:MappingEntry></m:ParameterMapping>
"""


class Parameters(EndToEnd):
    def same(self, ran, expected):
        """Two runs with equal results, other than that without any options."""
        self.cardan("run", *ran, "-q", "-o", "a.csv")
        self.cardan("run", *expected, "-q", "-o", "b.csv")
        self.cardan("run", ran[0], "-q", "-o", "c.csv")
        with open(self.path("a.csv"), "rb") as a, open(self.path("b.csv"), "rb") as b, \
                open(self.path("c.csv"), "rb") as c:
            rows = a.read()
            self.assertEqual(rows, b.read())
            self.assertNotEqual(rows, c.read())

    def test_a_parameter_set_counts_like_set(self):
        self.oscillator()
        self.write("p.ssv", parameter_set(("first.m1", real(2500, "g")), ("second.m2", real(3))))
        self.same(["oscillator.yaml", "--parameters", "p.ssv"],
                  ["oscillator.yaml", "--set", "first.m1=2.5", "--set", "second.m2=3"])
        self.cardan("export", "ssp", "oscillator.yaml", "-o", "o.ssp")
        self.same(["o.ssp", "--parameters", "p.ssv"],
                  ["oscillator.yaml", "--set", "first.m1=2.5", "--set", "second.m2=3"])
        self.write("q.ssv", parameter_set(("first.m1", real(4))))
        self.same(["o.ssp", "--parameters", "p.ssv", "--parameters", "q.ssv"],
                  ["o.ssp", "--set", "first.m1=4", "--set", "second.m2=3"])
        self.same(["o.ssp", "--set", "first.m1=5", "--parameters", "p.ssv"],
                  ["o.ssp", "--set", "first.m1=5", "--set", "second.m2=3"])
        self.cardan("export", "ssp", "oscillator.yaml", "--parameters", "p.ssv", "-o", "heavy.ssp")
        self.cardan("run", "heavy.ssp", "-q", "-o", "d.csv")
        self.cardan("run", "oscillator.yaml", "--parameters", "p.ssv", "-q", "-o", "e.csv")
        self.assertEqual(self.column("d.csv", "second.x2"), self.column("e.csv", "second.x2"))

    def test_of_a_single_fmu(self):
        self.write("p.ssv", parameter_set(("m2", real(2)), ("first.m1", real(3))))
        done = self.cardan("run", fmu("lo_fd2"), "--parameters", "p.ssv", "-q", "-o", "a.csv",
                           says="p.ssv:4: parameter 'first.m1' fits no variable")
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.cardan("check", fmu("lo_fd2"), "--parameters", "p.ssv",
                    says="p.ssv:4: parameter 'first.m1' fits no variable")
        self.cardan("run", fmu("lo_fd2"), "--set", "m2=2", "-q", "-o", "b.csv")
        self.assertEqual(self.column("a.csv", "x2"), self.column("b.csv", "x2"))

    def test_with_a_mapping(self):
        self.oscillator()
        self.write("p.ssv", parameter_set(("mass", real(1)), ("first.k1", real(99))))
        self.write("p.ssm", MAPPING.format(target="first.m1"))
        self.same(["oscillator.yaml", "--parameters", "p.ssv:p.ssm"],
                  ["oscillator.yaml", "--set", "first.m1=2.5"])
        # Numbers that are not to be converted arrive as they are, in the exported package too.
        self.write("g.ssv", parameter_set(("mass", real(2.5, "g"))))
        self.write("g.ssm", MAPPING.format(target="first.m1").replace(
            'target=', 'suppressUnitConversion="true" target=').replace(
                '<c:LinearTransformation factor="2" offset="0.5"/>', ""))
        self.cardan("export", "ssp", "oscillator.yaml", "--parameters", "g.ssv:g.ssm", "-o", "g.ssp")
        for what in (["oscillator.yaml", "--parameters", "g.ssv:g.ssm"], ["g.ssp"]):
            self.cardan("run", *what, "-q", "-o", "g.csv")
            self.assertEqual(self.column("g.csv", "second.x2"), self.column("b.csv", "second.x2"))
        os.rename(self.path("p.ssv"), self.path("a:b.ssv"))  # a name is a name
        self.cardan("check", "oscillator.yaml", "--parameters", "a:b.ssv")
        self.same(["oscillator.yaml", "--parameters", "a:b.ssv:p.ssm"],
                  ["oscillator.yaml", "--set", "first.m1=2.5"])

    def test_what_is_wrong_is_said_with_its_line(self):
        self.oscillator()

        def refused(value, says, code=2, name="first.m1"):
            self.write("p.ssv", parameter_set(("first.k1", real(1)), (name, value)))
            self.cardan("check", "oscillator.yaml", "--parameters", "p.ssv", code=code, says=says)

        refused(real(1, "s"), "p.ssv:4: unit 'first': 'm1' = '1': 's' cannot be converted into its "
                              "unit 'kg'")
        refused('<ssv:String value="x"/>', "p.ssv:4: unit 'first': 'm1' = 'x', expected a number")
        refused('<ssv:Boolean value="true"/>', "p.ssv:4: unit 'first': 'm1' = 'true', expected a")
        refused(real("1 2"), "p.ssv:4: unit 'first': 'm1' = '1 2': several values, expected one")
        refused(real("1,5"), "cardan: p.ssv:4: Real value = '1,5', expected numbers")
        refused(real(1.5), "p.ssv:4: unit 'first': 'substeps' = '1.5', expected a whole number",
                name="first.substeps")
        refused('<ssv:Enumeration value="rk5"/>', "p.ssv:4: unit 'first': 'solver' = 'rk5', expected "
                "one of exact, semi_implicit, rk4", name="first.solver")
        refused(real(1), "p.ssv:4: parameter 'mass' fits no variable of unit 'first' and is ignored",
                code=0, name="first.mass")
        refused(real(1, "stone"), "p.ssv:4: unit 'first': 'm1' = '1' in 'stone', which is not known: "
                                  "taken as it is, in kg", code=0)
        self.write("p.ssv", parameter_set(("nobody.m1", real(1))))
        self.cardan("check", "oscillator.yaml", "--parameters", "p.ssv",
                    says="p.ssv: nothing in it fits the system")
        for wrong, says in (("no.ssv", "no.ssv: no such file"),
                            ("p.ssv:no.ssm", "no.ssm: no such file"),
                            ("p.ssv:", "--parameters 'p.ssv:', expected FILE.ssv:FILE.ssm"),
                            ("p.ssv:p.ssv", "the root is 'ParameterSet', expected ParameterMapping"),
                            ("lo_fd1.fmu", "lo_fd1.fmu:1: ")):
            done = self.cardan("check", "oscillator.yaml", "--parameters", wrong, code=2, says=says)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.cardan("run", "p.ssv", code=2, says="p.ssv: parameters alone cannot be run")

    def test_info_lists_them(self):
        self.write("p.ssv", parameter_set(("first.m1", real(2500, "g")), ("on", '<ssv:Boolean value="1"/>')))
        self.write("p.ssm", MAPPING.format(target="first.m1"))
        text = self.cardan("info", "p.ssv").stdout
        self.assertEqual(text, "p.ssv: SSP 1.0, parameter set heavy, 2 parameters\n\n"
                               "  parameter  type     value  unit\n"
                               "  first.m1   Real     2500   g\n"
                               "  on         Boolean  true\n")
        text = self.cardan("info", "p.ssm").stdout
        self.assertEqual(text, "p.ssm: SSP 1.0, parameter mapping, 1 entry\n\n"
                               "  target    source  change\n"
                               "  first.m1  mass    2 x + 0.5\n")
        j = self.cardan_json("info", "p.ssv")
        self.assertEqual((j["kind"], j["name"]), ("ssv", "heavy"))
        self.assertEqual(j["parameters"][0],
                         {"name": "first.m1", "type": "Real", "value": "2500", "unit": "g"})
        j = self.cardan_json("info", "p.ssm")
        self.assertEqual(j["entries"],
                         [{"target": "first.m1", "source": "mass", "change": "2 x + 0.5"}])
        self.assertEqual(len(self.cardan_json("info", "p.ssv", "--variables", "f*")["parameters"]), 1)


# name: base unit, factor, offset
MEASURES = {"m": ("m", 1.0, 0.0), "mm": ("m", 1e-3, 0.0), "hand": ("m", 0.1016, 0.0),
            "K": ("K", 1.0, 0.0), "degC": ("K", 1.0, 273.15), "warmth": ("K", 0.8, 100.0)}


def units(tag, names):
    return "".join(f'<{tag}Unit name="{n}"><{tag}BaseUnit {MEASURES[n][0]}="1" factor="{MEASURES[n][1]!r}" '
                   f'offset="{MEASURES[n][2]!r}"/></{tag}Unit>' for n in names)


class Ways(EndToEnd):
    """Signals through connectors of nested systems: units and changes at random, expected values
    from the rule of the standard, hop by hop. A connector without a unit keeps that of the value;
    the units of FMUs count where the SSD says nothing."""

    def feedthrough(self, output, given, relative):
        """y = a u + b with units of y and u."""
        with zipfile.ZipFile(fmu("feedthrough")) as a, zipfile.ZipFile(self.path("f.fmu"), "w") as b:
            for name in a.namelist():
                data = a.read(name)
                if name == "modelDescription.xml":
                    text = data.decode().replace(
                        "<LogCategories>",
                        f"<UnitDefinitions>{units('', MEASURES)}</UnitDefinitions><LogCategories>", 1)
                    if output:
                        text = text.replace("<Real/>", f'<Real unit="{output}" relativeQuantity='
                                                       f'"{str(relative).lower()}"/>')
                    if given:
                        text = text.replace('<Real start="0"/>', f'<Real start="0" unit="{given}"/>')
                    data = text.encode()
                b.writestr(name, data)

    @staticmethod
    def connector(name, kind, unit):
        said = f' unit="{unit}"' if unit else ""
        return f'<Connector name="{name}" kind="{kind}"><c:Real{said}/></Connector>'

    def system(self, name, connector, content, connection):
        return (f'<System name="{name}"><Connectors>{connector}</Connectors><Elements>{content}'
                f"</Elements><Connections>{connection}</Connections></System>")

    def draw(self, r, left, entered):
        """A way with `left` systems around its source and `entered` around its end: the units of
        its connectors, the changes between them, the SSD, names of source and end."""
        base = r.choice("mK")
        pick = lambda: r.choice([n for n in MEASURES if MEASURES[n][0] == base] + ["", ""])
        nodes = [pick() for _ in range(left + entered + 2)]
        hops = [(r.choice([(1, 0), (2, -7.5), (-0.5, 3)]), r.random() < 0.2) for _ in nodes[1:]]
        relative = r.random() < 0.25
        ends = pick(), pick()
        self.feedthrough(*ends, relative)

        def connect(hop, start, end):
            (factor, offset), suppressed = hops[hop]
            change = f'<c:LinearTransformation factor="{factor}" offset="{offset}"/>' if factor != 1 else ""
            more = ' suppressUnitConversion="true"' if suppressed else ""
            return f"<Connection {start} {end}{more}>{change}</Connection>"

        source = f'<Component name="a" source="f.fmu"><Connectors>{self.connector("y", "output", nodes[0])}' \
                 "</Connectors></Component>"
        start, unit = 'startElement="a" startConnector="y"', "a"
        for i in range(left):
            source = self.system(f"o{i}", self.connector("q", "output", nodes[i + 1]), source,
                                 connect(i, start, 'endConnector="q"'))
            start, unit = f'startElement="o{i}" startConnector="q"', f"o{i}.{unit}"
        target = f'<Component name="b" source="f.fmu"><Connectors>{self.connector("u", "input", nodes[-1])}' \
                 f'{self.connector("y", "output", "")}</Connectors></Component>'
        end, other = 'endElement="b" endConnector="u"', "b"
        for i in range(entered):
            at = len(nodes) - 2 - i
            target = self.system(f"i{i}", self.connector("p", "input", nodes[at]), target,
                                 connect(at, 'startConnector="p"', end))
            end, other = f'endElement="i{i}" endConnector="p"', f"i{i}.{other}"
        self.write("t.ssd", f'<SystemStructureDescription xmlns="{SSD[1:-1]}" version="1.0" name="t" '
                            'xmlns:c="http://ssp-standard.org/SSP1/SystemStructureCommon">'
                            f'<System name="t"><Elements>{source}{target}</Elements><Connections>'
                            f'{connect(left, start, end)}</Connections></System><Units>'
                            f'{units("c:", ["hand", "warmth"])}</Units></SystemStructureDescription>')
        nodes[0], nodes[-1] = nodes[0] or ends[0], nodes[-1] or ends[1]
        return nodes, hops, relative and bool(ends[0]), unit, other

    @staticmethod
    def arrives(x, nodes, hops, relative):
        now, suppressed = nodes[0], False
        for unit, ((factor, offset), skip) in zip(nodes[1:], hops):
            suppressed = suppressed or skip
            if unit:
                if now and not suppressed:
                    (_, f, o), (_, g, p) = MEASURES[now], MEASURES[unit]
                    x = (x * f + (0 if relative else o - p)) / g
                now, suppressed = unit, False
            x = factor * x + offset if factor != 1 else x
        return x

    def test_what_arrives_is_what_the_hops_make_of_it(self):
        for seed in range(24):
            r = random.Random(seed)
            nodes, hops, relative, a, b = self.draw(r, r.randrange(3), r.randrange(4))
            expected = self.arrives(3.0, nodes, hops, relative)
            setup = ["--set", f"{a}.a=0", "--set", f"{a}.b=3", "--set", f"{b}.a=1", "--set", f"{b}.b=0",
                     "--stop-time", "0.01", "--step", "0.01", "-q", "-o", "t.csv"]
            self.cardan("export", "ssp", "t.ssd", "-o", "e1.ssp")
            self.cardan("export", "ssp", "t.ssd", "-o", "e2.ssp", "--ssp-version", "2")
            for what in ("t.ssd", "e1.ssp", "e2.ssp"):
                self.cardan("run", what, *setup)
                got = self.column("t.csv", f"{b}.y")[0]
                self.assertTrue(math.isclose(got, expected, rel_tol=1e-9, abs_tol=1e-9),
                                f"seed {seed}, {what}: {got}, expected {expected}; {nodes} {hops}")


if __name__ == "__main__":
    unittest.main()
