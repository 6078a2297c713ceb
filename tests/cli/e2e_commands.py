"""Commands that do not run anything: help, completions, info, check, compare, plot."""

import json
import math
import os
import re
import shutil
import struct
import subprocess
import unittest
import zipfile
import zlib
from xml.etree import ElementTree

from e2e import CARDAN, EndToEnd, fmu

class Help(EndToEnd):
    def commands(self):
        """All of them, by their names."""
        lines = self.cardan("help", "commands").stdout.splitlines()
        return [re.split(r"  +", line.strip())[0] for line in lines if line.startswith("  ")]

    def test_alone_it_shows_the_commands_and_exits_with_2(self):
        done = self.cardan(code=2)
        for word in {name.split()[0] for name in self.commands()}:
            self.assertRegex(done.stderr, rf"\b{word}\b")

    def test_the_overview_is_aligned_and_fits_on_a_screen(self):
        lines = self.cardan("help").stdout.splitlines()
        self.assertLess(len(lines), 24)
        starts = [re.match(r"  \w+ +", line) for line in lines[3:-2]]
        self.assertEqual(len({m.end() for m in starts if m}), 1, "not aligned")
        for name in ("", "commands", "coupling", "benches", "circuits", "tools", "start", "formats", "units",
                     "exit-codes", "environment"):
            with self.subTest(name):
                text = self.cardan("help", *name.split()).stdout
                self.assertEqual([line for line in text.splitlines() if len(line) > 80], [])

    def test_old_names_go_on_with_a_hint(self):
        self.write("torque.csv", "time,torque\n" + "".join(f"{i / 100},{i % 7}\n" for i in range(200)))
        call = ("compensate", "torque.csv", "--latency", "2", "--algorithms", "zoh")
        hint = "cardan: 'compensate' is called 'coupling compensate' now; the old name works in this version\n"
        old, now = self.cardan(*call), self.cardan("coupling", *call)
        self.assertEqual((old.stdout, old.stderr), (now.stdout, hint))
        self.assertEqual(now.stderr, "")
        self.assertEqual(self.cardan(*call, "--json").stderr, "")
        self.assertEqual(self.cardan("help", "compensate").stdout, self.cardan("help", "coupling", "compensate").stdout)
        self.cardan("benches", code=2, says="'cardan help benches' tells about it")

    def test_help_and_version_go_to_standard_output(self):
        self.assertIn("Usage: cardan", self.cardan("--help").stdout)
        said = self.cardan("--version").stdout
        self.assertRegex(said, r"^cardan \d+\.\d+\.\d+\n")
        for line in r"commit +([0-9a-f]{7,} of \d{4}-\d\d-\d\d|not known)", r"compiler +(gcc|clang) \d+\.", \
                r"machine +built for \w+, runs on \w+ \w+", r"features +FMI 1.0 2.0 3.0, .*DCP 1.0":
            self.assertRegex(said, f"(?m)^{line}")

    def test_every_command_has_help_with_an_example(self):
        self.assertGreater(len(self.commands()), 40)
        for command in self.commands():
            with self.subTest(command):
                text = self.cardan(*command.split(), "--help").stdout
                self.assertIn(f"Usage: cardan {command}", text)
                self.assertRegex(text, rf"\nExample:\n  .*cardan {command}")
                self.assertEqual(text, self.cardan("help", *command.split()).stdout)

    def test_unknown_words_get_the_nearest(self):
        self.cardan("rn", code=2, says="unknown command 'rn', did you mean run?")
        self.cardan("help", "chek", code=2, says="did you mean check?")
        self.cardan("run", "x", "--stop-tme", "1", code=2, says="did you mean --stop-time?")
        self.cardan("--versio", code=2, says="did you mean --version?")
        self.write("model.fmu", "")
        self.cardan("model.fmu", code=2, says="did you mean 'cardan run model.fmu'?")

    def test_docs_are_what_the_tables_say(self):
        with open(os.path.join(os.environ["CARDAN_DOCS"], "reference", "commands.md"), encoding="utf-8") as f:
            self.assertEqual(f.read(), self.cardan("man", "--format", "markdown").stdout,
                             "renew it: cardan man --format markdown > docs/reference/commands.md")

    @unittest.skipUnless(shutil.which("groff"), "no groff here")
    def test_the_manual_page_is_proper_roff(self):
        os.mkdir(self.path("man1"))
        self.cardan("man", "--directory", "man1")
        pages = sorted(os.listdir(self.path("man1")))
        self.assertEqual(set(pages), {"cardan.1"} | {f"cardan-{name.split()[0]}.1" for name in self.commands()})
        with open(self.path("man1/cardan-run.1"), encoding="utf-8") as f:
            self.assertEqual(f.read(), self.cardan("man", "run").stdout)
        for command in self.commands():
            with open(self.path(f"man1/cardan-{command.split()[0]}.1"), encoding="utf-8") as f:
                page = f.read().replace("\\-", "-")
            for option in re.findall(r"^ +(?:-\w, )?(--[\w-]+)", self.cardan("help", *command.split()).stdout, re.M):
                self.assertIn(option, page)
        done = subprocess.run(["groff", "-man", "-Tascii", "-ww", *pages], text=True, cwd=self.path("man1"),
                              capture_output=True, check=True)
        self.assertEqual(done.stderr, "")
        self.assertIn("where FMUs are unpacked", done.stdout)
        self.cardan("man", "--directory", "nix", code=1, says="nix/cardan.1: No such file")

    def test_a_full_standard_output_is_an_error(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([CARDAN, "--help"], stdout=full, stderr=subprocess.PIPE,
                                  text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cardan: standard output: No space left", done.stderr)


class Completion(EndToEnd):
    def complete(self, *words):
        """What bash offers for the last of these words."""
        script = self.write("c.bash", self.cardan("completion", "bash").stdout)
        line = " ".join(f"'{w}'" for w in (CARDAN, *words))
        code = (f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words)}; _cardan; "
                'printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "-c", code], cwd=self.folder, capture_output=True,
                              text=True, check=True)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_bash_completes_commands_options_choices_and_files(self):
        self.assertLessEqual({"check", "compare", "coupling", "circuit", "can", "completion"},
                             set(self.complete("c")))
        self.assertEqual(self.complete("coupling", "de"), ["design"])
        self.assertEqual(self.complete("help", "exit"), ["exit-codes"])
        self.assertEqual(self.complete("help", "dcp", "em"), ["emulate"])
        self.assertEqual(self.complete("run", "--st"),
                         ["--start-time", "--stop-time", "--step", "--stream",
                          "--stream-signals"])
        self.assertEqual(self.complete("run", "--predict", "l"), ["linear"])
        self.assertEqual(self.complete("run", "--progress", "=", "j"), ["json"])
        self.assertEqual(self.complete("run", "--progress", "="), ["auto", "json", "none"])
        self.assertEqual(self.complete("completion", ""), ["bash", "zsh", "fish"])
        for name in ("a.fmu", "a.yaml", "a.csv", "a.txt"):
            self.write(name, "")
        self.assertEqual(sorted(self.complete("run", "a")), ["a.fmu", "a.yaml"])
        self.assertEqual(self.complete("compare", "a"), ["a.csv"])
        self.assertEqual(self.complete("run", "--input", "=", "a.c"), ["a.csv"])
        self.assertEqual(self.complete("run", "--stop-time", ""), [])
        self.assertEqual(self.complete("nonsense", ""), [])

    def test_names_come_out_of_the_files_on_the_line(self):
        self.oscillator()
        self.assertEqual(self.complete("run", "oscillator.yaml", "--set", "second.m"), ["second.m2="])
        self.assertEqual(self.complete("run", "oscillator.yaml", "--variables", "first.f"), ["first.f"])
        self.assertEqual(self.complete("run", fmu("lo_mono"), "--set", "m"), ["m1=", "m2="])
        self.write("r.csv", "time,speed,torque\n0,1,2\n1,2,3\n")
        self.assertEqual(self.complete("coupling", "compensate", "r.csv", "--signal", "t"), ["torque"])
        self.assertEqual(self.complete("report", "r.csv", "--plot", "speed,t"), ["speed,torque"])
        self.write("broken.yaml", "units: [")
        for wrong in ("nix.yaml", "broken.yaml", "/dev/null", "."):
            self.assertEqual(self.complete("run", wrong, "--set", ""), [])

    def test_no_code_of_an_fmu_is_run_for_it(self):
        # its modelDescription.xml says all; there is no binary to run
        with zipfile.ZipFile(fmu("lo_mono")) as archive, zipfile.ZipFile(self.path("bare.fmu"), "w") as bare:
            bare.writestr("modelDescription.xml", archive.read("modelDescription.xml"))
        self.assertEqual(self.complete("run", "bare.fmu", "--set", "m"), ["m1=", "m2="])

    @unittest.skipUnless(shutil.which("zsh"), "no zsh here")
    def test_zsh_offers_the_same(self):
        script = self.write("_cardan", self.cardan("completion", "zsh").stdout)
        subprocess.run(["zsh", "-n", script], check=True)
        self.oscillator()
        # what the script hands to zsh's own functions
        code = (f"_describe() {{ print -l -- $shown }}; compset() {{ }}; _files() {{ print -- files $2 }}; "
                f"compdef() {{ }}; source {script}; "
                "for line in 'coupling de' 'run oscillator.yaml --set second.m' 'run osc'; do "
                f"words=({CARDAN} ${{=line}}); CURRENT=$#words; PREFIX=$words[-1]; _cardan; done")
        done = subprocess.run(["zsh", "-fc", code], cwd=self.folder, capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, "")
        lines = done.stdout.splitlines()
        self.assertTrue(lines[0].startswith("design:make a coupling algorithm"), lines)
        self.assertTrue(lines[1].startswith("second.m2=:"), lines)
        self.assertTrue(lines[2].startswith("files *.(") and "yaml" in lines[2], lines)

    @unittest.skipUnless(shutil.which("zsh"), "no zsh here")
    def test_tab_in_zsh_completes(self):
        """An interactive zsh on a terminal of its own, in which somebody presses Tab."""
        os.mkdir(self.path("functions"))
        self.write("functions/_cardan", self.cardan("completion", "zsh").stdout)
        self.oscillator()
        typed = self.write("tab.zsh", """zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1=READY; fpath=($1/functions \\$fpath); autoload -U compinit; compinit -u -d $1/dump; PATH=$2:\\$PATH; cd $1"
zpty -w shell 'print STAR''TED'
zpty -r -m shell out '*STARTED*'
zpty -w -n shell "$3"$'\\t'
repeat 100; do
    sleep 0.1
    while zpty -r -t shell part; do print -rn -- $part; seen+=$part; done
    [[ $seen == *"$4"* ]] && break
done
zpty -d shell
""".replace("\\\\", "\\"))
        for line, expected in (("cardan coupling desi", "design "), ("cardan run osc", "oscillator.yaml"),
                               ("cardan run oscillator.yaml --set second.m", "second.m2=")):
            done = subprocess.run(["zsh", "-f", typed, self.folder, os.path.dirname(CARDAN), line, expected],
                                  cwd=self.folder, env=dict(os.environ, TERM="dumb"), capture_output=True, text=True,
                                  timeout=60, check=True)
            self.assertIn(expected, done.stdout, line)

    @unittest.skipUnless(shutil.which("fish"), "no fish here")
    def test_fish_offers_the_same(self):
        script = self.write("cardan.fish", self.cardan("completion", "fish").stdout)
        self.oscillator()
        environment = dict(os.environ, PATH=os.path.dirname(CARDAN) + ":" + os.environ["PATH"], HOME=self.folder)

        def offered(line):
            done = subprocess.run(["fish", "--no-config", "-c", f"source {script}; complete -C '{line}'"],
                                  cwd=self.folder, env=environment, capture_output=True, text=True, check=True)
            self.assertEqual(done.stderr, "")
            return [row.split("\t")[0] for row in done.stdout.splitlines()]

        self.assertEqual(offered("cardan coupling de"), ["design"])
        self.assertEqual(offered("cardan run oscillator.yaml --set second.m"), ["second.m2="])
        self.assertEqual(offered("cardan run osc"), ["oscillator.yaml"])
        self.assertEqual(offered("cardan run --predict=l"), ["--predict=linear"])

    def test_other_shells_are_refused(self):
        self.cardan("completion", "tcsh", code=2, says="expected bash, zsh or fish")


class Info(EndToEnd):
    def test_an_fmu_in_words(self):
        for version in (2, 3):
            with self.subTest(version):
                text = self.cardan("info", fmu("lo_mono", version)).stdout
                for part in (f"FMI {version}.0", "Co-Simulation", "x1", "output", "kg", "N/m"):
                    self.assertIn(part, text)

    def test_an_fmu_as_json(self):
        for version in (2, 3):
            with self.subTest(version):
                j = self.cardan_json("info", fmu("lo_fd1", version))
                self.assertEqual(j["fmi_version"], f"{version}.0")
                self.assertTrue(j["cosimulation"])
                self.assertTrue(j["platforms"])
                variables = {v["name"]: v for v in j["variables"]}
                self.assertEqual(variables["x2"]["causality"], "input")
                self.assertEqual(variables["f"]["causality"], "output")
                self.assertEqual(variables["m1"]["unit"], "kg")
                self.assertEqual(float(variables["m1"]["start"]), 1)
                self.assertEqual(set(j["output_dependencies"]["f"]) & {"x2", "v2"}, {"x2", "v2"})

    def test_units_and_enumerations_of_an_fmu(self):
        for version in (2, 3):
            with self.subTest(version):
                j = self.cardan_json("info", fmu("lo_mono", version))
                units = {u["name"]: u for u in j["units"]}
                self.assertEqual(units["N.s/m"]["base"], {"kg": 1, "s": -1})
                self.assertEqual(units["J"]["base"], {"kg": 1, "m": 2, "s": -2})
                self.assertEqual((units["m"]["factor"], units["m"]["offset"]), (1, 0))
                j = self.cardan_json("info", fmu("types", version))
                self.assertIn({"red": 1, "green": 2, "blue": 3}, j["enumerations"].values())

    def test_info_shows_what_model_exchange_offers(self):
        for version in (2, 3):
            with self.subTest(version):
                x = self.cardan_json("info", fmu("thermostat", version))["model_exchange_capabilities"]
                self.assertEqual((x["states"], x["event_indicators"]), (1, 2))
                self.assertTrue(x["get_set_state"] and x["directional_derivatives"])
                self.assertFalse(x["completed_step"])
                self.assertEqual(len(x["derivative_dependencies"]), 1)
                text = self.cardan("info", fmu("thermostat", version)).stdout
                self.assertIn("exchange      1 state, 2 event indicators\n", text)
                j = self.cardan_json("info", fmu("nlo_mono", version))
                self.assertIsNone(j["model_exchange_capabilities"])
                self.assertNotIn("event indicator", self.cardan("info", fmu("nlo_mono", version)).stdout)

    def test_output_that_cannot_be_written_is_an_error(self):
        self.write("r.csv", "time,a\n0,1\n2,-3\n")
        for what in (fmu("lo_mono"), self.oscillator(), "r.csv"):
            for form in ([], ["--json"]):
                with self.subTest(what=what, form=form), open("/dev/full", "wb") as full:
                    done = subprocess.run([CARDAN, "info", what, *form], cwd=self.folder,
                                          env=self.environment(), stdout=full,
                                          stderr=subprocess.PIPE, text=True)
                    self.assertNotEqual(done.returncode, 0)
                    self.assertIn("standard output: No space left", done.stderr)

    def test_json_ends_with_a_line(self):
        self.assertTrue(self.cardan("info", fmu("lo_mono"), "--json").stdout.endswith("}\n"))

    def test_all_types_of_fmi_3(self):
        j = self.cardan_json("info", fmu("types", 3))
        types = {v["type"] for v in j["variables"]}
        self.assertLessEqual({"Float64", "Boolean", "String"}, types)
        self.cardan("info", "--all", fmu("types", 3))

    def test_a_system_and_a_recording(self):
        j = self.cardan_json("info", self.oscillator())
        self.assertEqual([u["name"] for u in j["units"]], ["first", "second"])
        self.assertEqual(j["connections"][2]["from"], "first.f")
        self.assertIn("first.f", self.cardan("info", "oscillator.yaml").stdout)
        self.write("r.csv", "time,a,b\n0,1,x\n2,-3,y\n")
        j = self.cardan_json("info", "r.csv")
        self.assertEqual((j["rows"], j["start"], j["stop"]), (2, 0, 2))
        self.assertEqual((j["signals"][0]["min"], j["signals"][0]["max"]), (-3, 1))
        self.assertTrue(j["signals"][1]["text"])
        self.assertIn("2 rows", self.cardan("info", "r.csv").stdout)

    def test_what_a_system_does_about_its_errors(self):
        self.write("q.yaml", """cardan: 1
units:
  motor: { fmu: a.fmu, real: true, refresh: no }
  mass: { fmu: b.fmu }
connections:
  - { from: motor.torque, to: mass.f, predict: hermite, scale: 10 }
  - mass.v -> motor.speed
bonds:
  - { name: shaft, action: motor.torque, flow: mass.v, correct: gated, mu: 0.5 }
run: { control: { tolerance: 1e-4, first: 1 ms, reject: true }, iterate: true, monitor: defect }
""")
        text = self.cardan("info", "q.yaml").stdout
        for part in ("system of 2 units, 2 connections and 1 bond\n",
                     "predict       auto, feedthrough fresh, monitor defect\n",
                     "control       h211b, relative tolerance 0.0001, first 0.001 s, reject 1\n",
                     "iterate       iqn-ils, relative tolerance 1e-08, at most 10 sweeps, "
                     "otherwise explicit\n",
                     "motor.torque  ->  mass.f       hermite",
                     "bond shaft  motor.torque  x  mass.v  correct gated"):
            self.assertIn(part, text)
        j = self.cardan_json("info", "q.yaml")
        self.assertEqual((j["units"][0]["real"], j["units"][0]["refresh"]), (True, "no"))
        self.assertEqual([c["predict"] for c in j["connections"]], ["hermite", "auto"])
        self.assertEqual([c["scale"] for c in j["connections"]], [10, None])
        self.assertEqual(j["bonds"], [dict(name="shaft", action="motor.torque", flow="mass.v",
                                           correct="gated", mu=0.5, ki=None, limiter=None,
                                           forget=None)])
        run = j["run"]
        self.assertEqual((run["control"]["tolerance"], run["control"]["reject"]), (1e-4, 1))
        self.assertEqual((run["iterate"]["sweeps"], run["monitor"]), (10, ["defect"]))
        j = self.cardan_json("info", self.oscillator())
        self.assertEqual((j["run"]["predict"], j["run"]["control"], j["run"]["iterate"], j["bonds"]),
                         ("hold", None, None, []))

    def test_what_is_not_there(self):
        self.cardan("info", "nix.fmu", code=2, says="nix.fmu: no such file")
        self.cardan("info", "unpack", code=2, says="without modelDescription.xml")


class Check(EndToEnd):
    def test_a_right_system_is_ok(self):
        done = self.cardan("check", self.oscillator())
        self.assertIn("ok: 2 units, 3 connections", done.stdout)
        j = self.cardan_json("check", "oscillator.yaml")
        self.assertTrue(j["ok"])
        self.assertEqual(j["warnings"], [])
        self.assertIn("first.f", j["signals"])
        self.assertFalse(os.path.exists(self.path("coupled.csv")), "check must not run anything")

    def test_a_single_fmu_is_ok(self):
        self.assertIn("ok: 1 unit, 0 connections", self.cardan("check", fmu("lo_mono")).stdout)

    def test_what_is_wrong_is_in_the_json_too(self):
        with open(self.path(self.oscillator()), encoding="utf-8") as f:
            self.write("wrong.yaml", f.read().replace("first.f", "first.ff"))
        j = self.cardan_json("check", "wrong.yaml", code=2)
        self.assertFalse(j["ok"])
        self.assertEqual(j["exit_code"], 2)
        self.assertIn("wrong.yaml:9", j["error"])

    def test_everything_that_is_wrong_is_told_in_the_order_of_the_file(self):
        text = """cardan: 1
units:
  first: { fmu: %s, parameters: { m9: 3, c1: 4 V } }
  second: { fmuu: x.fmu }
  third: { fmu: %s, stepp: 3 ms, step: 10 m }
connections:
  - second.x2 -> first.x2
  - third.q -> first.v2
  - third.x2 -> nobody.u # äöü
  - { from: third.v, to: first.v2, coupling: { algorithm: foh, delay: 3 ms } }
run: { stop: 1 s, coupling: foh }
result: run.csv
""" % (fmu("lo_fd1"), fmu("lo_fd2"))
        self.write("bad.yaml", text)
        done = self.cardan("check", "bad.yaml", code=2)
        j = self.cardan_json("check", "bad.yaml", code=2)
        lines = text.splitlines()
        found = [(f["line"], lines[f["line"] - 1][f["column"] - 1:f["end_column"] - 1]) for f in j["findings"]]
        # second.x2 -> first.x2 is no mistake of its own; of units and connections with wrong keys the
        # variables are looked at, too
        self.assertEqual(found, [(3, "m9"), (3, "c1"), (4, "fmuu"), (5, "stepp"), (5, "10 m"), (8, "q"),
                                 (9, "nobody.u"), (10, "first.v2"), (10, "delay"), (11, "coupling"), (12, "result")])
        self.assertEqual(j["error"], "bad.yaml:3: " + j["findings"][0]["text"])
        self.assertIn("it belongs to channel", done.stderr)
        self.assertIn("it belongs to connection", done.stderr)
        self.assertIn("did you mean 'results'?", done.stderr)
        self.assertIn("bad.yaml: 11 errors, 0 warnings", done.stderr)
        self.assertIn("     9 |   - third.x2 -> nobody.u", done.stderr)
        self.assertRegex(done.stderr, r"(?m)^       \| {17}\^~{7}$")
        # others end at their first mistake, as they did
        self.assertEqual(self.cardan("run", "bad.yaml", code=2).stderr.count("cardan: "), 1)

    def test_units_that_are_right_are_looked_at_beside_wrong_ones(self):
        self.write("half.yaml", """cardan: 1
units:
  first: { fmu: %s }
  second: { fmu: gone.fmu }
  third: { fmu: %s }
connections:
  - third.q -> first.x2
  - second.v2 -> first.v2
  - third.x2 -> third.f
""" % (fmu("lo_fd1"), fmu("lo_fd2")))
        j = self.cardan_json("check", "half.yaml", code=2)
        self.assertEqual([f["line"] for f in j["findings"]], [4, 7, 9])

    def test_variables_and_files_are_told_beside_wrong_keys(self):
        text = """cardan: 1
units:
  first: { fmu: %s, parameter: { m: 2 } }
  second: { fmu: %s }
  third: { fmu: gone.fmu }
connections:
  - second.x2 -> first.x3
  - { from: second.w2, to: first.v9, delay: 3 ms }
  - { from: first.f, to: second.f, coupling: { algorithm: erros, shadow: [zohh], loss: 0.1 } }
  - first.ff -> secnd.f
run: { step: 1 m, stop: 1 s }
bonds: [[first.f, second.zz]]
results: coupled.xls
""" % (fmu("lo_fd1"), fmu("lo_fd2"))
        self.write("bad.yaml", text)
        options = ("--scheme", "jakobi", "--pace", "3y", "--set", "first.qq=3", "--set", "nobody.m=1")
        j = self.cardan_json("check", "bad.yaml", *options, code=2)
        lines = text.splitlines()
        found = [(f["line"], lines[f["line"] - 1][f["column"] - 1:f["end_column"] - 1])
                 for f in j["findings"] if f["line"]]
        self.assertEqual(found, [(3, "parameter"), (5, "gone.fmu"), (7, "x3"), (8, "w2"), (8, "v9"), (8, "delay"), (9, "erros"),
                                 (9, "zohh"), (9, "loss"), (10, "secnd.f"), (11, "1 m"), (12, "zz"), (13, "coupled.xls")])
        self.assertEqual(self.cardan("check", "bad.yaml", *options, code=2).stderr.count("^"), 13, "each has its caret")
        said = [f["text"].split(":")[0] for f in j["findings"] if not f["line"]]
        self.assertEqual(said, ["--pace", "--scheme", "--set", "--set"])

    def test_all_keys_of_elements_are_told_beside_wrong_keys(self):
        text = """cardan: 1
units: { first: { fmu: %s }, second: { fmu: %s } }
connections:
  - from: second.x2
    to: first.x2
    gian: 2
    coupling:
      tops: 3
      taps: 900
      algorithm: wiener
      channel: { stpe: 1 ms }
      latency: soon
      shadow: [eors, { algorithm: wiener, tapz: 3, taps: x }]
  - { from: second.v2, to: first.v2, coupling: { algorithm: erso, taps: 3, foo: 1, latency-max: many } }
  - { from: first.f, to: second.f, coupling: { algorithm: ridge, towards: { algorithm: wiener, tops: 1, taps: y } } }
""" % (fmu("lo_fd1"), fmu("lo_fd2"))
        self.write("elements.yaml", text)
        lines = text.splitlines()
        found = [(f["line"], lines[f["line"] - 1][f["column"] - 1:f["end_column"] - 1])
                 for f in self.cardan_json("check", "elements.yaml", code=2)["findings"]]
        self.assertEqual(found, [(6, "gian"), (8, "tops"), (9, "taps"), (11, "stpe"), (12, "soon"), (13, "eors"), (13, "tapz"),
                                 (13, "x"), (14, "erso"), (14, "foo"), (14, "many"), (15, "tops"), (15, "y")])
        self.assertEqual(self.cardan("run", "elements.yaml", code=2).stderr.count("cardan: "), 1)

    def test_of_what_is_given_twice_the_first_counts(self):
        self.write("twice.yaml", """cardan: 1
units:
  first: { fmu: %s }
  second: { fmu: %s }
units: { first: { fmu: gone.fmu } }
connections: [second.x2 -> first.x2]
""" % (fmu("lo_fd1"), fmu("lo_fd2")))
        found = self.cardan_json("check", "twice.yaml", code=2)["findings"]
        self.assertEqual([(f["severity"], f["line"]) for f in found], [("error", 5)])

    def test_marks_of_lists_in_one_line_stand_below_the_item_that_is_meant(self):
        text = """cardan: 1
units: { first: { fmu: %s }, second: { fmu: %s } }
connections: [second.x2 -> first.x2, first.f -> second.x2, { from: second.v2, to: first.x2 }, "second.v2 -> first.f9"]
bonds: [[first.f, second.v2], [first.f, second.v2, 3]]
""" % (fmu("lo_fd1"), fmu("lo_fd2"))
        self.write("row.yaml", text)
        lines = text.splitlines()
        found = [(f["column"], lines[f["line"] - 1][f["column"] - 1:f["end_column"] - 1])
                 for f in self.cardan_json("check", "row.yaml", code=2)["findings"]]
        row = lines[2]
        self.assertEqual(found, [(row.index("second.x2, {") + 1, "second.x2"), (row.index("first.x2 }") + 1, "first.x2"),
                                 (row.index("f9") + 1, "f9"), (31, "[first.f, second.v2, 3]")])

    def test_a_system_can_be_checked_with_every_option_of_a_run_that_changes_it(self):
        self.oscillator()
        for options, says in ((("--pace", "realtime"), None), (("--control", "1e-3"), None), (("--tolerance", "1e-6"), None),
                              (("--interval", "10 ms"), None), (("--guard", "stop"), None), (("--max-defect", "1 %"), None),
                              (("--max-energy", "1 %"), "no power bond"), (("--overrun", "stop"), "--pace too"),
                              (("-o", "a.xyz"), "a.xyz"), (("-o", "oscillator.yaml"), "would be overwritten|overwrite"),
                              (("--exchange", "a.csv"), ".mf4"), (("--no-quality", "--guard", "stop"), "switches off"),
                              (("--max-overruns", "0"), "--pace too"), (("--variables", "nobody"), "no variable matches")):
            with self.subTest(options):
                done = self.cardan("check", "oscillator.yaml", *options, code=2 if says else 0)
                self.assertRegex(done.stderr, says or "^")
        help_of = {c: set(re.findall(r"--[a-z][a-z-]+", self.cardan(c, "--help").stdout)) for c in ("run", "check")}
        only_run = {x for x in help_of["run"] - help_of["check"] if not re.match(r"--(ui|stream|estop)", x)}
        self.assertEqual(only_run, {"--watchdog", "--no-watchdog", "--save-weights", "--save-state", "--at", "--resume", "--progress", "--quiet"})

    def test_all_connections_of_a_package_are_looked_at(self):
        self.oscillator()
        self.cardan("export", "ssp", "oscillator.yaml", "-o", "o.ssp")
        with zipfile.ZipFile(self.path("o.ssp")) as z:
            z.extractall(self.path("ssp"))
        with open(self.path("ssp/SystemStructure.ssd")) as f:
            text = f.read()
        for old, new in (('startConnector="v2"', 'startConnector="v3"'), ('endConnector="f"', 'endConnector="g"')):
            self.assertIn(old, text)
            text = text.replace(old, new)
        self.write("ssp/SystemStructure.ssd", text)
        lines = text.splitlines()
        j = self.cardan_json("check", "ssp/SystemStructure.ssd", code=2)
        found = [lines[f["line"] - 1][f["column"] - 1:f["end_column"] - 1] for f in j["findings"]]
        self.assertEqual(found, ["v3", "g"])
        shutil.make_archive(self.path("bad"), "zip", self.path("ssp"))
        os.rename(self.path("bad.zip"), self.path("bad.ssp"))
        packed = self.cardan_json("check", "bad.ssp", code=2)["findings"]
        self.assertEqual([(f["file"], f["line"]) for f in packed],
                         [("bad.ssp/SystemStructure.ssd", f["line"]) for f in j["findings"]])

    def test_the_times_of_a_run_can_be_tried(self):
        self.oscillator()
        self.assertIn("in steps of 2 ms", self.cardan("check", "oscillator.yaml", "--step", "2 ms").stdout)
        self.cardan("check", "oscillator.yaml", "--start-time", "5", "--stop-time", "1", code=2, says="before")


class Compare(EndToEnd):
    def setUp(self):
        super().setUp()
        self.write("a.csv", "time,x,y\n0,0,1\n1,1,1\n2,2,1\n")
        self.write("b.csv", "time,x,y\n0,0,1\n1,1.5,1\n2,2,1\n")
        self.write("c.csv", "time,x\n0,0\n1,1\n2,2\n")

    def test_equal_results_exit_with_0(self):
        self.assertIn("0 of 2 signals differ", self.cardan("compare", "a.csv", "a.csv").stdout)

    def test_it_says_which_where_and_by_how_much(self):
        j = self.cardan_json("compare", "a.csv", "b.csv", "--tolerance", "1e-3", code=1)
        self.assertEqual((j["equal"], j["different"]), (False, 1))
        x = j["signals"][0]
        self.assertEqual((x["name"], x["first_time"], x["max_error"]), ("x", 1, 0.5))
        self.assertEqual((x["value_a"], x["value_b"]), (1, 1.5))
        self.assertIn("1 of 2 signals differ",
                      self.cardan("compare", "a.csv", "b.csv", code=1).stdout)

    def test_tolerances_and_patterns_decide(self):
        self.cardan("compare", "a.csv", "b.csv", "--tolerance", "0.3")
        self.cardan("compare", "a.csv", "b.csv", "--absolute", "0.6")
        self.cardan("compare", "a.csv", "b.csv", "--variables", "y")
        self.cardan("compare", "a.csv", "b.csv", "--variables", "yy", code=2,
                    says="'yy' fits no signal")

    def test_a_pattern_that_nearly_fits_is_corrected_from_either_file(self):
        self.write("d.csv", "time,x,velocity\n0,0,1\n2,2,1\n")
        for pair in (("a.csv", "d.csv"), ("d.csv", "a.csv")):
            self.cardan("compare", *pair, "--variables", "velocty", code=2,
                        says="'velocty' fits no signal, did you mean velocity?")

    def test_a_missing_signal_is_a_difference(self):
        done = self.cardan("compare", "a.csv", "c.csv", code=1)
        self.assertIn("only in A", done.stdout)

    def test_wrong_calls_exit_with_2(self):
        self.cardan("compare", "a.csv", code=2, says="cardan compare A B [C]")
        self.cardan("compare", "a.csv", "nix.csv", code=2, says="nix.csv")
        self.cardan("compare", "a.csv", "a.csv", "--tolerance", "nan", code=2, says="finite")
        self.cardan("compare", "a.csv", "a.csv", "--tolerance=-1", code=2, says="expected >= 0")


class Plot(EndToEnd):
    def test_results_lie_over_each_other(self):
        self.write("a.csv", "time,x,y\n0,0,1\n1,1,1\n")
        self.write("b.csv", "time,x\n0,0\n1,2\n")
        self.assertIn("both.svg: 2 signals of 2 results",
                      self.cardan("plot", "a.csv", "b.csv", "-o", "both.svg").stdout)
        with open(self.path("both.svg"), encoding="utf-8") as f:
            text = f.read()
        self.assertIn("<svg", text)
        self.assertIn("</svg>", text)
        self.cardan("plot", "a.csv", "--variables", "x")
        self.assertTrue(os.path.exists(self.path("a.svg")))

    def lines_of(self, *arguments):
        """The curves of a picture that have three points (keys have two), and its texts."""
        svg = self.cardan("plot", *arguments, "-o", "-").stdout
        return re.findall(r'<path [^>]*d="(M[^" ]* [^" ]* [^" ]*)"', svg), re.findall(r"<text[^>]*>([^<]*)</text>", svg)

    def test_units_of_measure_of_several_results_become_those_of_the_first(self):
        """What cannot be converted has a panel of its own: numbers of one unit never stand at the axis of another."""
        self.write("a.csv", "time [s],T [degC],x [N.m],n [rad/s],bare\n0,20,1,0,1\n1,30,2,10,2\n2,25,3,0,1\n")
        self.write("b.csv", "time [ms],T [K],x [N.cm],n [1/min],bare [m]\n0,293.15,100,0,1\n1000,303.15,200,90,2\n2000,298.15,300,0,1\n")
        curves, texts = self.lines_of("a.csv", "b.csv")
        self.assertEqual([t for t in texts if t in ("T", "x", "n", "bare", "degC", "K", "N.m", "N.cm", "rad/s", "1/min")].count("n"), 2)
        self.assertIn("1/min", texts)
        for unit in ("K", "N.cm"):
            self.assertNotIn(unit, texts)
        self.assertEqual(len(curves), 8)
        for k in (0, 2, 5):  # T, x, and what says no unit lie over each other; n has two panels
            self.assertEqual(curves[k], curves[k + 1])
        curves, texts = self.lines_of("a.csv", "b.csv", "--panel", "T,n")
        self.assertEqual(curves[0], curves[1])
        self.assertIn("n, b [1/min]", texts)
        curves, texts = self.lines_of("a.csv", "b.csv", "--xy", "T,x")
        self.assertEqual(curves[0], curves[1])
        self.cardan("plot", "a.csv", "b.csv", "--xy", "T,n", code=2, says="n is in '1/min', which cannot be drawn over 'rad/s'")

    def test_signals_of_one_name_are_told_apart_by_their_groups(self):
        self.oscillator()
        self.cardan("run", "oscillator.yaml", "--exchange", "ex.mf4", "-o", "none")
        _, texts = self.lines_of("ex.mf4", "--variables", "value *")
        self.assertEqual([t for t in texts if t.startswith("value")],
                         [f"value ({c})" for c in ("second.x2 -&gt; first.x2", "second.v2 -&gt; first.v2", "first.f -&gt; second.f")])

    def test_what_cannot_be_drawn(self):
        self.write("t.csv", "time,x\n0,a\n1,b\n")
        self.cardan("plot", "t.csv", code=2, says="no numeric signal")
        self.write("a.csv", "time,x\n0,1\n")
        self.cardan("plot", "a.csv", "-o", "a.csv", code=2, says="overwrite")
        self.cardan("plot", "a.csv", "-o", "nix/a.svg", code=1, says="nix/a.svg")
        self.cardan("plot", "a.csv", "-o", "a.svg")  # one sample
        self.write("n.csv", "time,x\n0,nan\n1,nan\n")
        self.cardan("plot", "n.csv", "-o", "n.png")
        self.write("n.csv", "time,x\n")
        self.cardan("plot", "n.csv", "-o", "n.png", code=2, says="n.csv: there is no row in it")
        self.write("back.csv", "time,x\n0,1\n2,1\n1,1\n")
        self.cardan("plot", "back.csv", code=2, says="time goes back")
        self.cardan("plot", "a.csv", "--panel", "y", code=2, says="fits no signal")
        self.cardan("plot", "a.csv", "--xy", "x", code=2, says="expected two signals")
        self.cardan("plot", "a.csv", "--size", "wide", code=2, says="expected a width")
        pictures = []
        for size in ("12x6cm", "12cmx6cm", "120x60"):  # the unit behind is that of both
            self.cardan("plot", "a.csv", "--size", size, "-o", "size.svg")
            with open(self.path("size.svg"), encoding="utf-8") as f:
                pictures.append(f.read())
        self.assertEqual(pictures, pictures[:1] * 3)
        self.cardan("plot", "a.csv", "--size", "10", "-o", "s.png", code=2, says="no room")
        self.cardan("plot", "a.csv", "--dpi", "1e6", "-o", "s.png", code=2, says="pixels")
        self.cardan("plot", "a.csv", "--from", "5", code=2, says="no row from 5 s")

    def wave(self, rows=20001):
        """A slow sine in m with one thin peak, its square in J, and what a coupling says."""
        lines = ["time,u.x [m],u.e [J],u.x.coupling.error [m]"]
        for i in range(rows):
            x = 3.0 if i == rows // 3 else math.sin(i * 4e-4)
            lines.append(f"{i * 1e-3:.3f},{x},{x * x},0")
        self.write("w.csv", "\n".join(lines) + "\n")

    def pixels(self, name):
        """Rows of (red, green, blue) of a PNG with 8 bits per channel."""
        with open(self.path(name), "rb") as f:
            data = f.read()
        self.assertEqual(data[:8], b"\x89PNG\r\n\x1a\n")
        at, packed = 8, b""
        while at < len(data):
            length, kind = struct.unpack(">I4s", data[at:at + 8])
            body = data[at + 8:at + 8 + length]
            self.assertEqual(zlib.crc32(kind + body), struct.unpack(">I", data[at + 8 + length:][:4])[0])
            if kind == b"IHDR":
                width, height, depth, color = struct.unpack(">IIBB", body[:10])
            elif kind == b"IDAT":
                packed += body
            at += 12 + length
        self.assertEqual((kind, depth), (b"IEND", 8))
        step = {2: 3, 6: 4}[color]
        raw, rows, before = zlib.decompress(packed), [], bytes(width * step)
        for y in range(height):
            line = bytearray(raw[y * (width * step + 1):(y + 1) * (width * step + 1)])
            filter_type, line = line[0], line[1:]
            for i in range(len(line)):
                a = line[i - step] if i >= step else 0
                b, c = before[i], before[i - step] if i >= step else 0
                p = a + b - c
                paeth = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
                line[i] = (line[i] + (0, a, b, (a + b) // 2, paeth)[filter_type]) & 255
            rows.append([tuple(line[i:i + 3]) for i in range(0, len(line), step)])
            before = line
        return rows

    def test_a_png_has_its_size_and_the_peak_of_one_sample(self):
        self.wave()
        self.cardan("plot", "w.csv", "--panel", "u.x", "--size", "100x50", "--dpi", "96", "-o", "w.png")
        rows = self.pixels("w.png")
        self.assertEqual((len(rows[0]), len(rows)), (378, 189))
        # y goes from -1 to 3 or 4 ticks above; blue of Okabe and Ito: the peak is its only point above sin = 1
        blue = [[r < 90 and 80 < g < 170 and b > 150 for r, g, b in row] for row in rows]
        columns = [i for row in blue[25:60] for i, on in enumerate(row) if on]
        self.assertTrue(columns)
        self.assertLess(max(columns) - min(columns), 6)
        place = sum(columns) / len(columns)
        below = [i for row in blue[60:] for i, on in enumerate(row) if on]
        share = (place - min(below)) / (max(below) - min(below))
        self.assertAlmostEqual(share, 1 / 3, delta=0.02)

    def test_pdf_and_svg_have_their_size_and_texts(self):
        self.wave(2001)
        self.cardan("plot", "w.csv", "--size", "120x80", "-o", "w.pdf")
        with open(self.path("w.pdf"), "rb") as f:
            data = f.read()
        self.assertTrue(data.startswith(b"%PDF-1.") and data.rstrip().endswith(b"%%EOF"))
        box = re.search(rb"MediaBox \[ 0 0 ([0-9.]+) ([0-9.]+)", data)
        self.assertAlmostEqual(float(box[1]), 120 / 25.4 * 72, delta=0.1)
        self.assertAlmostEqual(float(box[2]), 80 / 25.4 * 72, delta=0.1)
        svg = self.cardan("plot", "w.csv", "--panel", "u.x,u.e", "-o", "-").stdout
        texts = [t.text for t in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
        for text in ("u.x", "u.e", "m", "J", "time / s"):
            self.assertIn(text, texts)

    def test_what_couplings_say_is_drawn_when_asked_for(self):
        self.wave(101)
        self.assertIn("2 signals of 1 result\n1 signal of couplings left out",
                      self.cardan("plot", "w.csv").stdout)
        self.assertIn("3 signals", self.cardan("plot", "w.csv", "--all").stdout)
        self.assertIn("1 signal ", self.cardan("plot", "w.csv", "--variables", "*.error").stdout)

    def test_long_results_make_small_pictures(self):
        self.wave(200001)
        self.cardan("plot", "w.csv", "--panel", "u.x", "-o", "w.svg")
        self.assertLess(os.path.getsize(self.path("w.svg")), 60000)

    def test_many_signals_share_panels_and_the_rest_is_said(self):
        n = 100000
        self.write("many.csv", "time," + ",".join(f"s{i}" for i in range(n)) + "\n"
                   + ("0" + ",1" * n + "\n") * 2)
        done = self.cardan("plot", "many.csv", "-o", "many.svg")
        self.assertIn("168 signals of 1 result", done.stdout)
        self.assertIn("99832 are left out", done.stderr)

    def test_a_terminal_gets_letters(self):
        self.write("r.csv", "time,x [m]\n0,0\n1,1\n")
        lines = self.cardan("plot", "r.csv", "--terminal", "--width", "42").stdout.splitlines()
        self.assertEqual(lines[0], " " * 11 + "x  [m]")
        drawn = [line[11:31] for line in lines[1:11]]
        self.assertEqual([min(i for i, c in enumerate(row) if c != " ") for row in drawn],
                         list(range(18, -1, -2)))  # a straight line from below left
        self.assertEqual([line[:11].strip(" \u2502\u2524") for line in lines[1:11]],
                         ["1.0", "", "0.8", "", "0.6", "0.4", "", "0.2", "", "0"])
        self.assertEqual(lines[10], "        0 \u2524\u2860\u280a" + " " * 18 + "\u2502")
        self.assertEqual(lines[11], "          \u2514\u252c\u2500\u2500\u2500\u252c\u2500\u2500\u2500\u252c"
                         "\u2500\u2500\u252c\u2500\u2500\u2500\u252c\u2500\u2500\u2500\u252c\u2518")
        self.assertEqual(lines[-1].strip(), "time / s")
        self.assertNotIn("\033", "".join(lines))


if __name__ == "__main__":
    unittest.main()
