"""cardan export coupling: FMUs from words, files and inline elements, and what is refused."""

import hashlib
import json
import os
import stat
import unittest
import xml.etree.ElementTree as ET
import zipfile

from e2e import EndToEnd

YAML = """element: 1
name: torque
step: 10 ms
algorithm: wiener
taps: 9
latency: 6
"""
NETWORK = ("{algorithm: network, latency: 3, network: {W1: [[2, -1]], W2: [[1], [-1]], "
           "W3: [0.9900990099009901, -0.9900990099009901]}}")


class ExportCoupling(EndToEnd):
    def export(self, *arguments, **options):
        return self.cardan("export", "coupling", *arguments, **options)

    def names(self, fmu):
        with zipfile.ZipFile(self.path(fmu)) as z:
            self.assertIsNone(z.testzip())
            return z.namelist()

    def description(self, fmu):
        with zipfile.ZipFile(self.path(fmu)) as z:
            return ET.fromstring(z.read("modelDescription.xml"))

    def element(self, fmu):
        with zipfile.ZipFile(self.path(fmu)) as z:
            return json.loads(z.read("resources/element.json"))

    def variables(self, fmu):
        return {v.get("name"): v for v in self.description(fmu).find("ModelVariables")}

    def digest(self, name):
        with open(self.path(name), "rb") as f:
            return hashlib.sha256(f.read()).hexdigest()

    def refused(self, *arguments, says, code=2):
        before = sorted(os.listdir(self.folder))
        self.export(*arguments, code=code, says=says)
        self.assertEqual(sorted(os.listdir(self.folder)), before, "something was left behind")

    # ---- sides of pairs

    def test_a_side_of_a_pair(self):
        done = self.export("pair-flow", "--step", "1ms", "-o", "side.fmu")
        self.assertEqual(done.stdout, "side.fmu: wave port of a unit that owns the flow, inner "
                                      "step 1 ms, FMI 2.0\n")
        self.assertEqual(self.element("side.fmu"), {"pair": "flow", "name": "side", "step": 0.001})
        variables = self.variables("side.fmu")
        for name in ("own", "mean", "acted", "far.number", "far.granted"):
            self.assertEqual(variables[name].get("causality"), "input")
        for name in ("action", "packet.number", "packet.granted", "tank", "debt"):
            self.assertEqual(variables[name].get("causality"), "output")
        self.assertEqual(float(variables["macro_step"].find("Real").get("start")), 0.01)
        self.cardan("run", "side.fmu", "--stop-time", "1", "-q")
        done = self.cardan("run", "side.fmu", "--set", "impedance=-1", "-q", code=1)
        self.assertIn("impedance = -1, expected > 0", done.stderr)
        done = self.cardan("run", "side.fmu", "--set", "macro_step=1e-4", "-q", code=1)
        self.assertIn("macro step = 0.0001 s, expected at least the inner step", done.stderr)
        self.refused("pair-effort", says="pair-effort, expected --step with its inner step")
        self.refused("pair-effort", "--step", "1ms", "--latency", "2",
                     says="pair-effort with --latency, expected --step")
        self.refused("pair-effort", "--step", "1ms", "--name", "a b", says="name = 'a b', expected")

    # ---- what is written

    def test_a_word_is_enough(self):
        done = self.export("eros", "--step", "10ms", "-o", "link.fmu")
        self.assertEqual(done.stdout, "link.fmu: eros, 1 signal, macro step 10 ms, FMI 2.0\n")
        self.assertEqual(done.stderr, "")
        names = self.names("link.fmu")
        self.assertEqual(names[0], "modelDescription.xml")
        self.assertIn("resources/element.json", names)
        self.assertIn("documentation/licenses/license.txt", names)
        self.assertTrue(any(n.startswith("binaries/") and n.endswith("/link.so") for n in names))
        self.assertIn("sources/fmi2.c", names)
        self.assertFalse([n for n in names if "fmi3" in n])
        root = self.description("link.fmu")
        self.assertEqual(root.get("fmiVersion"), "2.0")
        self.assertEqual(root.get("modelName"), "link")
        self.assertRegex(root.get("generationTool"), r"^Cardan \d+\.\d+\.\d+$")
        listed = {"sources/" + f.get("name") for f in root.iter("File")}
        self.assertEqual(listed, {n for n in names if n.endswith(".c")})
        wanted = {"u": "input", "stamp": "input", "sequence": "input", "macro_step": "parameter",
                  "latency": "parameter", "threshold": "parameter", "learn_server": "parameter",
                  "y": "output", "k": "output", "jump": "output", "active": "output",
                  "samples": "output", "filled": "output", "jumps": "output",
                  "not_finite": "output"}
        variables = self.variables("link.fmu")
        for name, causality in wanted.items():
            self.assertEqual(variables[name].get("causality"), causality)
        self.assertIn("link", self.cardan("info", "link.fmu").stdout)
        self.assertIn("ok", self.cardan("check", "link.fmu").stdout)

    def test_fmi_3_has_arrays_and_says_how_it_is_built(self):
        done = self.export("auto", "--step", "1ms", "--signals", "3", "--fmi", "3", "-o", "a.fmu")
        self.assertIn("auto, 3 signals, macro step 1 ms, FMI 3.0", done.stdout)
        names = self.names("a.fmu")
        self.assertFalse([n for n in names if "fmi2" in n])
        with zipfile.ZipFile(self.path("a.fmu")) as z:
            build = ET.fromstring(z.read("sources/buildDescription.xml"))
        self.assertEqual({"sources/" + f.get("name") for f in build.iter("SourceFile")},
                         {n for n in names if n.endswith(".c")})
        variables = self.variables("a.fmu")
        for name in ("u", "y", "k", "jump", "active", "samples"):
            self.assertEqual(variables[name].find("Dimension").get("start"), "3")
        self.assertIsNone(variables["stamp"].find("Dimension"))
        self.cardan("check", "a.fmu")

    def test_fmi_2_has_elements_that_depend_on_their_own_signal_alone(self):
        self.export("eros", "--step", "1ms", "--signals", "2", "-o", "two.fmu")
        root = self.description("two.fmu")
        order = [v.get("name") for v in root.find("ModelVariables")]
        self.assertEqual(order[:2], ["u[1]", "u[2]"])
        outputs = {order[int(u.get("index")) - 1]: u.get("dependencies")
                   for u in root.find("ModelStructure/Outputs")}
        self.assertEqual(outputs["y[1]"], "1 3 4")
        self.assertEqual(outputs["y[2]"], "2 3 4")

    def test_named_signals(self):
        self.export("eros", "--step", "1ms", "--signals", "torque,speed", "-o", "two.fmu")
        variables = self.variables("two.fmu")
        for name in ("u.torque", "u.speed", "y.torque", "y.speed", "k.torque", "jump.speed"):
            self.assertIn(name, variables)
        self.assertEqual(self.element("two.fmu")["signals"], ["torque", "speed"])

    def test_commands_are_inputs(self):
        self.export("{algorithm: commands, commands: [pedal, bench.speed]}", "--step", "10ms", "-o",
                    "knows.fmu")
        root = self.description("knows.fmu")
        order = [v.get("name") for v in root.find("ModelVariables")]
        outputs = {order[int(u.get("index")) - 1]: u.get("dependencies")
                   for u in root.find("ModelStructure/Outputs")}
        inputs = ("u", "stamp", "sequence", "pedal", "bench.speed")
        self.assertEqual({order[int(i) - 1] for i in outputs["y"].split()}, set(inputs))
        variables = self.variables("knows.fmu")
        for name in inputs:
            self.assertEqual(variables[name].get("causality"), "input")
        self.assertEqual(variables["command_delay"].get("causality"), "parameter")
        self.cardan("check", "knows.fmu")
        self.refused("commands", "--step", "10ms", "-o", "x.fmu",
                     says="the algorithm commands without any, expected their names")
        self.write("clash.yaml", "algorithm: commands\nstep: 10 ms\ncommands: [stamp]\n")
        self.refused("clash.yaml", "-o", "x.fmu", says="clash.yaml: command 'stamp', expected")

    def test_commands_tell_an_fmu_of_a_jump_that_has_not_arrived(self):
        # u is the pedal behind 50 ms of lag, 6 steps late; the run's y is for a step further on.
        pedal, torque = [], []
        for n in range(3001):
            pedal.append((n // 29 * 7919) % 100 / 10)
            torque.append((torque or [0])[-1] * 0.8 + 2 * pedal[n])
        rows = [f"{n / 100},{torque[max(n - 6, 0)]},{pedal[n]}" for n in range(3001)]
        drive = self.write("jumps.csv", "time,u,pedal\n" + "\n".join(rows) + "\n")
        errors = []
        for element in ("auto", "{algorithm: commands, commands: [pedal]}"):
            self.export(element, "--step", "10ms", "--latency", "6", "-o", "link.fmu")
            self.cardan("run", "link.fmu", "-q", "-o", "y.csv", "--input", drive, "--step", "10ms",
                        "--stop-time", "30", "--predict", "hold")
            y = self.column("y.csv", "y")
            errors.append(sum(abs(y[n] - torque[n]) for n in range(1000, 3001)))
        self.assertLess(errors[1], 0.5 * errors[0])

    def test_a_latency_beyond_the_usual_largest_one_is_compensated_to_the_end_of_a_step(self):
        self.export("eros", "--step", "10ms", "--latency", "20", "-o", "far.fmu")
        self.assertEqual((self.element("far.fmu")["latency"], self.element("far.fmu")["latency-max"]),
                         (20, 21))

    def test_files_and_inline_elements(self):
        self.write("torque.yaml", YAML)
        done = self.export("torque.yaml")
        self.assertTrue(done.stdout.startswith("torque.fmu: "), done.stdout)
        self.assertEqual(self.variables("torque.fmu")["latency"][0].get("start"), "6")
        e = self.element("torque.fmu")
        self.assertEqual((e["name"], e["algorithm"], e["taps"], e["step"]),
                         ("torque", "wiener", 9, 0.01))
        # The element of an FMU is an element again.
        self.write("again.json", json.dumps(e))
        self.export("again.json", "-o", "again.fmu")
        self.assertEqual(self.digest("again.fmu"), self.digest("torque.fmu"))
        self.export("{algorithm: wiener, taps: 9, name: torque, step: 10 ms, latency: 6}", "-o",
                    "inline.fmu")
        self.assertEqual(self.digest("inline.fmu"), self.digest("torque.fmu"))

    def test_options_come_before_the_element(self):
        self.write("torque.yaml", YAML)
        self.export("torque.yaml", "--step", "2ms", "--latency", "2.5", "--name", "other", "-o",
                    "x.fmu")
        variables = self.variables("x.fmu")
        self.assertEqual(variables["macro_step"][0].get("start"), "0.002")
        self.assertEqual(variables["latency"][0].get("start"), "2.5")
        self.assertEqual(self.description("x.fmu").get("modelName"), "other")
        self.assertTrue(any(n.endswith("/other.so") for n in self.names("x.fmu")))

    def test_the_file_gives_the_name_if_nothing_else_does(self):
        self.export("zoh", "--step", "1s", "-o", "2nd link-b.fmu")
        self.assertEqual(self.description("2nd link-b.fmu").get("modelName"), "_2nd_link_b")
        self.cardan("run", "2nd link-b.fmu", "-q", "-o", "x.csv")

    def test_equal_input_gives_equal_bytes(self):
        for version in ("2", "3"):
            self.export("auto", "--step", "1ms", "--fmi", version, "--name", "a", "-o", "a.fmu")
            self.export("auto", "--step", "1ms", "--fmi", version, "--name", "a", "-o", "b.fmu")
            self.assertEqual(self.digest("a.fmu"), self.digest("b.fmu"))
            self.export("auto", "--step", "2ms", "--fmi", version, "--name", "a", "-o", "b.fmu")
            self.assertNotEqual(self.digest("a.fmu"), self.digest("b.fmu"))

    # ---- how it runs

    def drive(self):
        rows = [f"{n / 100},{(n * n) % 17 + n / 10}" for n in range(101)]
        return self.write("drive.csv", "time,u\n" + "\n".join(rows) + "\n")

    def run_alone(self, fmu, *arguments, output="out.csv", **options):
        self.cardan("run", fmu, "-q", "-o", output, "--input", self.drive(), "--step", "10ms",
                    "--stop-time", "1", "--predict", "hold", *arguments, **options)
        return self.column(output, "y") if not options.get("code") else None

    def test_hold_gives_the_samples_back_one_step_later(self):
        for version in ("2", "3"):
            self.export("zoh", "--step", "10ms", "--fmi", version, "-o", "zoh.fmu")
            y = self.run_alone("zoh.fmu")
            u = [(n * n) % 17 + n / 10 for n in range(101)]
            for n in range(1, 101):
                self.assertAlmostEqual(y[n], u[n - 1], delta=1e-9)
            self.assertEqual(self.column("out.csv", "samples")[-1], 100)

    def test_macro_steps_are_those_of_the_element(self):
        self.export("zoh", "--step", "50ms", "-o", "zoh.fmu")
        y = self.run_alone("zoh.fmu")
        self.assertEqual(self.column("out.csv", "samples")[-1], 20)
        for n in range(1, 101):
            m = (n - 1) // 5 * 5  # the last sample before
            self.assertAlmostEqual(y[n], (m * m) % 17 + m / 10, delta=1e-9)

    def test_networks_of_every_depth_and_constants(self):
        line = self.write("line.yaml", "algorithm: network\nlatency: 1\nstart: foh\n")
        self.export(line, "--step", "10ms", "-o", "line.fmu")
        usual = self.run_alone("line.fmu")
        for neurons in ("[2]", "[4, 4, 2]", "[3, 2, 4, 2]"):
            text = f"{{algorithm: network, latency: 1, start: foh, neurons: {neurons}}}"
            self.export(text, "--step", "10ms", "-o", "deep.fmu")
            for a, b in zip(self.run_alone("deep.fmu"), usual):
                self.assertAlmostEqual(a, b, delta=1e-9)
        text = "{algorithm: linear, any-gain: true, weights: {a: [0.5], b: 2}}"
        self.export(text, "--step", "10ms", "-o", "b.fmu")
        y = self.run_alone("b.fmu")
        u = [(n * n) % 17 + n / 10 for n in range(101)]
        for n in range(1, 101):
            self.assertAlmostEqual(y[n], 0.5 * u[n - 1] + 2, delta=1e-9)

    def test_without_a_learning_server_it_runs_on(self):
        for version in ("2", "3"):
            self.export(NETWORK, "--step", "10ms", "--fmi", version, "-o", "net.fmu")
            alone = self.run_alone("net.fmu")
            self.assertEqual(set(self.column("out.csv", "learning")), {1})
            address = "unix:" + self.path("nobody")
            self.assertEqual(self.run_alone("net.fmu", "--set", f"learn_server={address}"), alone)
            self.assertEqual(self.column("out.csv", "learning")[-1], 2)
            self.run_alone("net.fmu", "--set", "learn_server=nonsense", code=1,
                           says="learn_server")

    def test_wrong_parameters_fail_with_a_sentence(self):
        self.export("eros", "--step", "10ms", "-o", "eros.fmu")
        self.run_alone("eros.fmu", "--set", "macro_step=0", code=1,
                       says="macro_step = 0, expected > 0")
        self.run_alone("eros.fmu", "--set", "learn_server=unix:/tmp/x", code=1,
                       says="learn_server: ")

    # ---- what is refused

    def test_elements_that_are_wrong(self):
        self.refused("heroes", "--step", "1ms", "-o", "x.fmu", says="eros")
        self.refused("nothing.yaml", "-o", "x.fmu", says="nothing.yaml")
        self.write("wrong.yaml", YAML.replace("taps: 9", "taps: many"))
        self.refused("wrong.yaml", "-o", "x.fmu", says="wrong.yaml:5: ")
        self.write("wrong.yaml", YAML.replace("taps", "tabs"))
        self.refused("wrong.yaml", "-o", "x.fmu", says="taps")
        self.write("wrong.json", "{")
        self.refused("wrong.json", "-o", "x.fmu", says="wrong.json:1: ")
        self.refused("eros", "-o", "x.fmu",
                     says="eros has no macro step: say it with --step, as in --step 10ms")
        self.refused("eros", "--step", "0ms", "-o", "x.fmu", says="--step")

    def test_signals_that_are_wrong(self):
        for text, says in (("0", "--signals 0, expected 1 to 1000, or names"),
                           ("-1", "expected 1 to 1000"), ("1001", "expected 1 to 1000"),
                           ("99999999999999999999", "expected"), ("a,,b", "a name is empty"),
                           ("a,", "a name is empty"), ("a,a", "--signals: 'a' is there twice"),
                           ("a b", "signal 'a b', expected letters"), ("", "empty value")):
            self.refused("eros", "--step", "1ms", "--signals=" + text, "-o", "x.fmu", says=says)

    def test_names_that_are_wrong(self):
        for name in ("two words", "3d", "a-b", "ä", "x" * 200, "a/b"):
            self.refused("eros", "--step", "1ms", "--name", name, "-o", "x.fmu",
                         says="expected letters, digits and '_'")
        self.write("named.yaml", YAML.replace("name: torque", "name: the torque"))
        self.refused("named.yaml", says="name = 'the torque', expected letters")

    def test_options_of_the_other_kind_and_unknown_kinds(self):
        self.refused("eros", "--step", "1ms", "--author", "me",
                     says="--author is an option of cardan export ssp")
        self.cardan("export", "ssp", "x.yaml", "--fmi", "3", code=2,
                    says="--fmi is an option of cardan export coupling")
        self.cardan("export", "tea", "x", code=2, says="'tea' is nothing that can be exported")
        self.cardan("export", "coupling", code=2, says="ELEMENT is missing")

    def test_what_cannot_be_written_leaves_nothing(self):
        self.refused("eros", "--step", "1ms", "-o", "no/such/x.fmu", says="no/such/x.fmu", code=1)
        os.mkdir(self.path("folder.fmu"))
        self.refused("eros", "--step", "1ms", "-o", "folder.fmu", says="folder.fmu", code=1)
        self.assertEqual(os.listdir(self.path("folder.fmu")), [])
        self.write("torque.yaml", YAML)
        self.refused("torque.yaml", "-o", "torque.yaml", says="would overwrite")
        with open(self.path("torque.yaml"), encoding="utf-8") as f:
            self.assertEqual(f.read(), YAML)

    @unittest.skipIf(os.geteuid() == 0, "root writes everywhere")
    def test_a_folder_that_is_not_ours(self):
        os.mkdir(self.path("closed"))
        os.chmod(self.path("closed"), stat.S_IRUSR | stat.S_IXUSR)
        self.refused("eros", "--step", "1ms", "-o", "closed/x.fmu", says="closed/x.fmu", code=1)


if __name__ == "__main__":
    unittest.main()
