"""cardan new on systems with the names of other tools (foreign_systems.py), on which it was not developed."""

import re
import unittest
import zipfile
from xml.sax.saxutils import quoteattr

from e2e import EndToEnd, fmu
from foreign_systems import SYSTEMS

SI = {"rad/s": "rad='1' s='-1'", "N.m": "kg='1' m='2' s='-2'", "N": "kg='1' m='1' s='-2'", "m": "m='1'",
      "W": "kg='1' m='2' s='-3'", "K": "K='1'", "Pa": "kg='1' m='-1' s='-2'", "kg/s": "kg='1' s='-1'",
      "m3/s": "m='3' s='-1'", "1/min": "rad='1' s='-1' factor='0.10471975511965977'", "A": "A='1'",
      "degC": "K='1' offset='273.15'", "V": "kg='1' m='2' s='-3' A='-1'", "m/s": "m='1' s='-1'", "W/m2": "kg='1' s='-3'"}


def split(name):
    """"F[N]" -> F, N; "f[1]" has no unit of measure."""
    found = re.fullmatch(r"(.*)\[((?!\d+\])[^\[\]]+)\]", name)
    return (found[1], found[2]) if found else (name, "")


def description(name, inputs, outputs):
    variables, units = "", set()
    for reference, (text, causality) in enumerate([(x, "input") for x in inputs] + [(x, "output") for x in outputs], 1):
        variable, unit = split(text)
        units |= {unit} - {""}
        variables += (f'<ScalarVariable name={quoteattr(variable)} valueReference="{reference}" causality="{causality}">'
                      f'<Real{" start=" + chr(34) + "0" + chr(34) if causality == "input" else ""}'
                      f'{" unit=" + quoteattr(unit) if unit else ""}/></ScalarVariable>')
    defined = "".join(f'<Unit name={quoteattr(u)}><BaseUnit {SI[u]}/></Unit>' for u in sorted(units))
    given = "".join(f'<Unknown index="{len(inputs) + i + 1}"/>' for i in range(len(outputs)))
    return (f'<?xml version="1.0"?><fmiModelDescription fmiVersion="2.0" modelName="{name}" guid="g">'
            f'<CoSimulation modelIdentifier="{name}"/>'
            + (f"<UnitDefinitions>{defined}</UnitDefinitions>" if defined else "")
            + f"<ModelVariables>{variables}</ModelVariables><ModelStructure><Outputs>{given}</Outputs></ModelStructure>"
              "</fmiModelDescription>")


class Foreign(EndToEnd):
    def propose(self, system):
        """What is connected, and what stands there as a comment."""
        for unit, (inputs, outputs) in SYSTEMS[system][0].items():
            with zipfile.ZipFile(self.path(unit + ".fmu"), "w") as z:
                z.writestr("modelDescription.xml", description(unit, inputs, outputs))
                z.writestr(f"binaries/linux64/{unit}.so", "never loaded: the trial run fails, and that is told")
        self.cardan("new", *[u + ".fmu" for u in SYSTEMS[system][0]], "-o", "new.yaml", "--force")
        with open(self.path("new.yaml"), encoding="utf-8") as f:
            text = f.read()
        lines = re.findall(r"""^ *(#?) *- ['"]?(\S+?) -> ([^\s'"]+)['"]?(.*)$""", text[text.find("\nconnections:"):], re.M)
        return [[(f"{a} -> {b}", why) for mark, a, b, why in lines if bool(mark) == aside] for aside in (False, True)]

    def test_connections_are_found_and_none_that_is_sure_is_wrong(self):
        truth = found = 0
        for system, (_, right) in SYSTEMS.items():
            with self.subTest(system):
                active, _ = self.propose(system)
                wrong = [(c, why) for c, why in active if c not in right]
                self.assertTrue(all("likely" in why for _, why in wrong), wrong)
                self.assertLessEqual(len(wrong), 1)
            truth += len(right)
            found += len({c for c, _ in active} & set(right))
        self.assertGreaterEqual(found, 0.8 * truth, f"{found} of {truth}")

    def test_two_units_with_nothing_but_u_and_y_are_proposed_as_a_comment(self):
        for system in ("om_pi", "sl_ports"):
            active, aside = self.propose(system)
            self.assertEqual(active, [])
            self.assertEqual({c for c, _ in aside}, set(SYSTEMS[system][1]))

    def test_a_name_that_is_equal_wins_over_the_name_of_a_unit(self):
        active, _ = self.propose("sl_camel")
        self.assertEqual({c for c, _ in active}, set(SYSTEMS["sl_camel"][1]))

    def test_control_characters_of_a_foreign_file_spoil_neither_the_description_nor_the_terminal(self):
        with open(fmu("rot_1"), "rb") as f, open(self.path("a.fmu"), "wb") as out:
            out.write(f.read())
        for name, variable in (("named", "x&#x9b;31m"), ("broken", "x&#x9b;31m&#10;y")):  # XML lets U+009B in
            with zipfile.ZipFile(self.path(name + ".fmu"), "w") as z:
                z.writestr("modelDescription.xml", description(name, ["u"], ["y"]).replace('name="u"', f'name="{variable}"')
                           .replace('modelName="', 'modelName="m&#x9b;31m'))
                z.writestr(f"binaries/linux64/{name}.so", "never loaded")
        done = self.cardan("new", "a.fmu", "named.fmu", "broken.fmu", "-o", "x.yaml", "--no-trial",
                           says="not used: unit 'broken'")
        with open(self.path("x.yaml"), encoding="utf-8") as f:
            text = f.read()
        self.assertIn("# free: named.x?31m", text)
        told = self.cardan("check", "x.yaml")
        shown = self.cardan("info", "named.fmu")
        self.assertIn("m?31mnamed", shown.stdout)
        for said in (text, done.stdout, done.stderr, told.stdout, told.stderr, shown.stdout):
            self.assertNotIn("\u009b", said)

    def test_files_that_are_none_are_told_and_the_rest_is_written(self):
        for name, source in (("a", fmu("rot_1")), ("c", fmu("rot_2"))):
            with open(source, "rb") as f, open(self.path(name + ".fmu"), "wb") as out:
                out.write(f.read())
        self.write("no.fmu", "hello")
        done = self.cardan("new", "a.fmu", "no.fmu", "gone.fmu", "c.fmu", "-o", "x.yaml",
                           says=["not used: unit 'no': no.fmu: not a zip archive", "not used: gone.fmu: no such file"])
        self.assertIn("2 units, 2 connections", done.stdout)


if __name__ == "__main__":
    unittest.main()
