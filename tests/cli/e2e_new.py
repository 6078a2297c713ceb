"""cardan new and cardan connect: systems out of files, connections that are proposed, added and removed."""

import glob
import json
import os
import re
import shutil
import subprocess
import unittest

from e2e import CARDAN, FMUS, EndToEnd, fmu

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")


class Proposals(EndToEnd):
    """The systems of examples/ without their connections: which ones are found again, and with which mark."""

    def describe_bench(self, name):
        """The description that an emulated bench writes when it begins to listen."""
        bench = subprocess.Popen([CARDAN, "bench", name, "--listen", "udp://127.0.0.1:0", "--write-description",
                                  self.path(name + ".dcpx")], cwd=self.folder, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        bench.stdout.readline()
        bench.terminate()
        bench.communicate()

    def stripped(self, path):
        """The connections of an example, and its description without them in the folder of the test."""
        name = os.path.basename(path)
        with open(path) as f:
            text = f.read().replace("../../build/fmus", FMUS).replace("../circuits", EXAMPLES + "/circuits")
        golden = {(c["from"], c["to"]) for c in
                  self.cardan_json("connect", self.write(name, text), "list")["connections"]}
        for key in ("connections", "bonds", "run", "results"):
            text = re.sub(rf"^{key}:.*\n(?:(?:[ #-].*)?\n)*", "", text, flags=re.M)
        return golden, self.write(name, text)

    def test_connections_of_the_examples_are_found_and_none_is_wrong_without_a_mark(self):
        for name in ("backtoback", "em", "ice", "battery"):
            self.describe_bench(name)
        count, found, marks, missed = 0, 0, {"sure": [0, 0], "likely": [0, 0], "doubtful": [0, 0]}, []
        wrong = []
        for path in sorted(glob.glob(os.path.join(EXAMPLES, "*", "*.yaml"))):
            with open(path) as f:
                if not re.search(r"^connections:", f.read(), re.M):
                    continue
            for beside in os.listdir(os.path.dirname(path)):
                if beside.endswith((".csv", ".cir", ".dbc", ".layout.yaml", "_twin.yaml")):
                    shutil.copy(os.path.join(os.path.dirname(path), beside), self.folder)
            golden, stripped = self.stripped(path)
            proposals = self.cardan_json("connect", stripped, "propose")["proposals"]
            count += len(golden)
            proposed = {(p["from"], p["to"]): p for p in proposals}
            found += len(golden & set(proposed))
            missed += [(os.path.basename(path), *g) for g in sorted(golden - set(proposed))]
            inputs = {to for _, to in golden}
            for pair, p in proposed.items():
                # what an example leaves at its start value is no mistake that it can show
                right = pair in golden
                if right or pair[1] in inputs or p["sure"] == "sure":
                    marks[p["sure"]][0 if right else 1] += 1
                if not right and p["sure"] != "doubtful":
                    wrong.append((os.path.basename(path), p["sure"], *pair, p["why"]))
        print(f"{found} of {count} connections found; right and wrong: {marks}")
        for w in missed:
            print("missed", *w)
        for w in wrong:
            print("wrong", *w)
        self.assertGreaterEqual(found, 0.8 * count)
        self.assertEqual([], [w for w in wrong if w[1] == "sure"])

    def test_names_that_were_never_seen_before(self):
        """Written down before it was run: other people's words, with what a reader would say about each pair."""
        signals = {
            "engineSim": "{ Mout: { shape: constant, unit: N.m }, n_act: { shape: constant, unit: rpm } }",
            "road": "{ slope: { shape: constant, unit: rad }, v_wind: { shape: constant, unit: km/h } }",
            "pump": "{ p_out: { shape: constant, unit: bar }, flow: { shape: constant, unit: m3/s } }",
        }
        self.write("wheel.cir", """* names of another house
.input Trq unit=N.m start=0
.input roadSlope unit=rad start=0
.input windSpeed unit=m/s start=0
.input pressure_in unit=Pa start=0
.input force unit=N start=0
V1 a 0 1
R1 a 0 {1 + Trq + roadSlope + windSpeed + pressure_in + force}
""")
        text = "cardan: 1\nunits:\n" + "".join(f"  {n}: {{ signals: {s} }}\n" for n, s in signals.items())
        self.write("words.yaml", text + "  wheel: { circuit: wheel.cir }\n")
        found = {p["to"]: (p["from"], p["sure"]) for p in
                 self.cardan_json("connect", "words.yaml", "propose")["proposals"]}
        self.assertEqual("engineSim.Mout", found["wheel.Trq"][0])
        self.assertEqual(("road.slope", "sure"), found["wheel.roadSlope"])
        self.assertEqual("road.v_wind", found["wheel.windSpeed"][0])
        self.assertEqual("pump.p_out", found["wheel.pressure_in"][0])
        self.assertNotIn("wheel.force", found)  # nothing is in N


class Edits(EndToEnd):
    """cardan connect changes the lines of a connection, and nothing else."""

    BLOCK = """# a comment at the beginning
cardan: 1
units:
  first: { fmu: %s }
  second: { fmu: %s } # behind a unit

connections:
  # about x2
  - second.x2 -> first.x2   # in metres
  - from: second.v2
    to: first.v2
    predict: linear # a mapping over lines
  # - first.f -> second.f # doubtful: looks alike

run: { step: 1 ms, stop: 10 ms } # äöü
"""

    def system(self, text):
        return self.write("s.yaml", text % (fmu("lo_fd1"), fmu("lo_fd2")))

    def text(self):
        with open(self.path("s.yaml"), newline="") as f:
            return f.read()

    def test_a_comment_is_put_to_use_and_everything_else_stays(self):
        self.system(self.BLOCK)
        before = self.text()
        self.cardan("connect", "s.yaml", "add", "first.f -> second.f")
        self.assertEqual(before.replace("  # - first.f", "  - first.f"), self.text())

    def test_what_is_added_and_removed_again_leaves_the_file_as_it_was(self):
        flow = re.sub(r"connections:\n(.*\n)+?\n", "connections: [ second.x2 -> first.x2 ] # all\n\n", self.BLOCK)
        none = re.sub(r"connections:\n(.*\n)+?\n", "\n", self.BLOCK)
        empty = re.sub(r"connections:\n(.*\n)+?\n", "connections: []\n\n", self.BLOCK)
        bare = re.sub(r"connections:\n(.*\n)+?\n", "connections:\n  # nothing yet\n\n", self.BLOCK)
        plain = self.BLOCK.replace("  # - first.f -> second.f # doubtful: looks alike\n", "")
        for name, text in {"plain": plain, "flow": flow, "none": none, "empty": empty, "bare": bare,
                           "dos": plain.replace("\n", "\r\n")}.items():
            self.system(text)
            before = self.text()
            self.cardan("connect", "s.yaml", "add", "first.f -> second.f")
            added = self.text()
            self.assertIn(("first.f", "second.f"), self.connections(), name)
            self.cardan("connect", "s.yaml", "remove", "second.f")
            self.assertNotIn(("first.f", "second.f"), self.connections(), name)
            if name in ("plain", "flow", "dos", "bare"):
                self.assertEqual(before, self.text(), name)
            for line in before.splitlines():
                if not line.startswith("connections"):
                    self.assertIn(line, added.splitlines(), name)

    def connections(self):
        return {(c["from"], c["to"]) for c in self.cardan_json("connect", "s.yaml")["connections"]}

    def test_a_mapping_over_lines_goes_as_a_whole(self):
        self.system(self.BLOCK)
        before = self.text()
        self.cardan("connect", "s.yaml", "remove", "second.v2 -> first.v2")
        self.assertEqual(re.sub(r"  - from: second(.*\n){3}", "", before), self.text())

    def test_what_would_be_wrong_is_refused_before_the_file_is_touched(self):
        self.system(self.BLOCK)
        before = self.text()
        self.cardan("connect", "s.yaml", "add", "first.f -> first.x2", code=2, says=["x2"])
        self.cardan("connect", "s.yaml", "add", "first.x1 -> second.f", code=2, says=["cannot be converted"])
        self.cardan("connect", "s.yaml", "add", "first.q -> second.f", code=2, says=["q"])
        self.cardan("connect", "s.yaml", "add", "nonsense", code=2, says=["unit.output -> unit.input"])
        self.cardan("connect", "s.yaml", "remove", "first.f -> second.f", code=2, says=["there is no connection"])
        self.cardan("connect", "s.yaml", "ad", "a.b -> c.d", code=2, says=["did you mean 'add'"])
        self.assertEqual(before, self.text())


class New(EndToEnd):
    def read(self, name="system.yaml"):
        with open(self.path(name)) as f:
            return f.read()

    def test_from_two_fmus_to_a_judged_result_without_an_editor(self):
        self.cardan("new", fmu("lo_fd1"), fmu("lo_fd2"))
        self.cardan("check", "system.yaml")
        self.cardan("run", "system.yaml", "--max-error", "0.01")
        self.assertIn("# yaml-language-server: $schema=", self.read().splitlines()[0])
        self.assertIn("#   - [lo_fd1.f, lo_fd2.v2]", self.read())  # N times m/s
        self.cardan("new", fmu("lo_fd1"), code=2, says=["system.yaml exists", "--force"])
        done = self.cardan("new", fmu("lo_fd1"), "--force")
        self.assertIn("1 unit, 0 connections, 2 inputs free", done.stdout)
        self.cardan("run", "system.yaml")

    def test_what_cannot_be_used_is_said_and_the_rest_is_written(self):
        os.mkdir(self.path("parts"))
        shutil.copy(fmu("lo_fd1"), self.path("parts/lo_fd1.fmu"))
        shutil.copy(fmu("lo_fd1", 3), self.path("lo_fd1.fmu"))  # the same name, and another version
        self.write("parts/text.fmu", "no FMU")
        self.write("parts/readme.md", "is not looked at")
        self.write("untimed.csv", "a,b\n")
        done = self.cardan("new", "parts", "lo_fd1.fmu", "untimed.csv", "gone.fmu", "udp://127.0.0.1:1",
                           says=["text.fmu: not a zip archive", "untimed.csv", "gone.fmu: no such file",
                                 "needs the description"])
        for name in ("text.fmu", "untimed.csv", "gone.fmu", "udp://"):
            self.assertRegex(self.read(), rf"(?m)^  # not used: .*{name}")
        self.assertIn("lo_fd1_2: { fmu: lo_fd1.fmu } # FMU 3.0", self.read())
        self.assertNotIn("readme", self.read() + done.stderr)
        self.cardan("run", "system.yaml")
        self.cardan("new", "gone.fmu", "-o", "none.yaml", code=2, says=["gone.fmu: no such file"])
        self.assertFalse(os.path.exists(self.path("none.yaml")))

    def test_a_recording_without_time_is_warned_of(self):
        self.write("rec.csv", "v,x\n0,1\n1,2\n")
        warning = "rec.csv:1: no column is called time; the first one, 'v', is taken for it, in seconds"
        for command in (["new", "rec.csv", "-o", "rec.yaml"], ["check", "rec.yaml"]):
            self.assertEqual(self.cardan(*command, says=warning).stderr.count("warning"), 1, command)
        self.write("timed.csv", "time,x\n0,1\n1,2\n")
        self.assertEqual(self.cardan("new", "timed.csv", "-o", "timed.yaml").stderr, "")

    def test_a_recording_drives_what_its_columns_are_called_and_a_netlist_is_a_unit(self):
        self.write("drive.csv", "time,f [N]\n0,0\n0.1,100\n")
        self.write("rc.cir", "* rc\nV1 in 0 1\nR1 in out 1k\nC1 out 0 1u\n.tran 1u 10m\n.end\n")
        self.cardan("new", fmu("lo_fd2"), "drive.csv", "rc.cir")
        self.assertIn("- drive.f -> lo_fd2.f", self.read())
        self.assertIn("rc: { circuit: rc.cir }", self.read())
        self.cardan("run", "system.yaml")

    def test_results_do_not_take_the_place_of_a_recording(self):
        self.cardan("run", fmu("lo_fd1"), "--stop-time", "0.1", "-o", "drive.mf4", "--quiet")
        self.cardan("new", fmu("lo_fd2"), "drive.mf4", "-o", "drive.yaml")
        self.cardan("run", "drive.yaml")
        self.assertIn("drive_results.mf4", os.listdir(self.folder))

    def test_what_is_written_keeps_to_the_schema_and_results_have_units(self):
        self.cardan("new", fmu("van_der_pol"))  # nothing to connect: the list is empty
        self.assertRegex(self.read("system.yaml"), r"(?m)^connections:\s*$")
        schema = json.loads(self.cardan("schema").stdout)
        self.assertEqual(schema["properties"]["connections"]["type"], ["array", "null"])
        self.cardan("new", fmu("lo_fd1"), fmu("lo_fd2"), "-o", "two.yaml")
        self.cardan("run", "two.yaml", "--stop-time", "0.1")
        signals = self.cardan_json("info", "two.mf4")["signals"]
        self.assertEqual({s["name"]: s["unit"] for s in signals}["lo_fd1.f"], "N")

    def test_numbered_names_without_words_are_names_too(self):
        count = 3000
        self.write("many.csv", "time," + ",".join(f"sig{i}.val" for i in range(count)) + "\n0" + ",1" * count + "\n")
        self.write("many.cir", "* many\n" + "".join(f".input sig{i}_val start=0\n" for i in range(count)) + "V1 a 0 1\nR1 a 0 1\n")
        self.cardan("new", "many.csv", "many.cir", "--no-trial")
        lines = re.findall(r"(?m)^  - \"?many\.sig(\d+)\.val -> many_2\.sig(\d+)_val", self.read())
        self.assertEqual(len(lines), count)
        self.assertTrue(all(a == b for a, b in lines))

    def test_an_ssp_is_gone_on_from(self):
        self.cardan("new", fmu("lo_fd1"), fmu("lo_fd2"))
        self.cardan("export", "ssp", "system.yaml", "-o", "pair.ssp")
        self.write("push.csv", "time,w\n0,0\n1,1\n")
        self.cardan("new", "pair.ssp", "push.csv", "-o", "more.yaml")
        self.assertIn("system: pair.ssp", self.read("more.yaml"))
        self.assertNotIn("\n  - ", self.read("more.yaml"))  # all inputs have a source in the SSP
        self.cardan("check", "more.yaml")
        self.write("short.yaml", self.read().replace("step: 1 ms, stop: 10 s", "step: 50 us, stop: 2 s"))
        self.cardan("export", "ssp", "short.yaml", "-o", "short.ssp")
        done = self.cardan("new", "short.ssp", "-o", "again.yaml")  # its times win over those of its units
        self.assertIn("2 units, 0 connections beside the 3 of the SSP", done.stdout)
        self.assertIn("run: { step: 50 us, stop: 2 s } # as the SSP says", self.read("again.yaml"))

    def test_questions_are_answered_from_a_pipe(self):
        self.write("force.csv", "time,p [N],q [N]\n0,0,1\n1,1,1\n")
        for answer, line in (("", "  # - force.p -> lo_fd2.f"), ("y\n", "  - force.p -> lo_fd2.f"),
                             ("force.q\n", "  - force.q -> lo_fd2.f"), ("lo_fd2.x2\nno\n", "  # - force.p -> lo_fd2.f"),
                             ("nobody.x\nforce.q\n", "  - force.q -> lo_fd2.f")):
            done = self.cardan("new", fmu("lo_fd2"), "force.csv", "--force", "--interactive", input=answer)
            self.assertIn(line, self.read(), answer)
        self.assertIn("there is no unit 'nobody'", done.stderr)

    def test_a_trial_run_that_hangs_or_crashes_is_no_harm(self):
        for mode, says in ((11, "not done after 4 s"), (7, "crash|ended|segmentation")):
            self.write("bad.yaml", "cardan: 1\nunits: { bad: { fmu: %s, parameters: { mode: %d, when: 0 } } }\n" %
                       (fmu("faulty"), mode))
            self.cardan("export", "ssp", "bad.yaml", "-o", "bad.ssp")
            self.cardan("new", "bad.ssp", "--force", says=["the trial run failed"])
            self.assertRegex(self.read(), rf"(?m)^run: .*# .*trial run: .*({says})")


if __name__ == "__main__":
    unittest.main()
