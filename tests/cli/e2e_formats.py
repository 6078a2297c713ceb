"""Files of all kinds: what info says, what drives a run, results in every format, killed runs."""

import json
import math
import os
import shutil
import subprocess
import time
import unittest
import zipfile

from e2e import CARDAN, HERE, EndToEnd, fmu, near

try:
    from asammdf import MDF
except ImportError:
    MDF = None


class Info(EndToEnd):
    def results(self):
        for ending in ("csv", "mf4", "mat"):
            self.cardan("run", fmu("types"), "--stop-time", "0.1", "-q", "-o", "run." + ending)
        return ["run.csv", "run.mf4", "run.mat"]

    def test_recordings_of_all_formats_say_the_same(self):
        seen = []
        for name in self.results():
            j = self.cardan_json("info", name)
            self.assertEqual((j["kind"], j["rows"], j["start"], j["stop"], j["finished"]),
                             ("recording", 11, 0, 0.1, True))
            self.assertIn("11 rows from 0 s to 0.1 s", self.cardan("info", name).stdout)
            seen.append([(s["name"], s["min"], s["max"]) for s in j["signals"]
                         if not s["text"] and "bin" not in s["name"]])
        self.assertEqual(seen[0], seen[1])
        self.assertEqual(seen[0], seen[2])
        formats = [self.cardan_json("info", n)["format"] for n in ("run.csv", "run.mf4", "run.mat")]
        self.assertEqual(formats, ["CSV", "MDF 4.10", "MAT 5"])

    def test_an_mf4_tells_what_ran(self):
        self.results()
        j = self.cardan_json("info", "run.mf4")
        self.assertEqual([a["name"] for a in j["attachments"]],
                         ["cardan-run.json", "cardan-verdict.json"])
        self.assertEqual([(e["kind"], e["time"]) for e in j["events"]],
                         [("start", 0), ("stop", 0.1)])

    def test_a_dcp_slave_alone_and_in_its_archive(self):
        shutil.copy(os.path.join(HERE, "slave.dcpx"), self.folder)
        with zipfile.ZipFile(self.path("slave.dcp"), "w", zipfile.ZIP_DEFLATED) as z:
            z.write(self.path("slave.dcpx"), "v1.0/dcpSlaveDescription.dcpx")
        shutil.copy(self.path("slave.dcp"), self.path("no_ending"))
        for name in ("slave.dcpx", "slave.dcp", "no_ending"):
            with self.subTest(name):
                said = self.cardan("info", name).stdout
                self.assertIn("DCP 1.0 slave, pump", said)
                self.assertIn("1/2000 s (fixed)", said)
                self.assertRegex(said, r"speed +Input +Float64 +rad/s +10 +0 +300 +continuous")
                self.assertRegex(said, r"taps +Output +Uint8\[4\]")
                j = self.cardan_json("info", name)
                self.assertEqual(j["operation_modes"], ["SoftRealTime", "NonRealTime"])
                self.assertEqual(j["capabilities"], ["canAcceptConfigPdus", "canHandleReset"])
                self.assertEqual([v["name"] for v in j["variables"]],
                                 ["speed", "pressure", "taps", "gain"])
                self.assertEqual(j["variables"][0]["unit"], "rad/s")
        self.assertEqual(len(self.cardan_json("info", "slave.dcp", "--variables", "ta*")["variables"]),
                         1)
        self.cardan("run", "slave.dcp", code=2, says="a DCP slave cannot be run")

    def test_patterns_that_fit_nothing_are_told(self):
        self.results()
        shutil.copy(os.path.join(HERE, "slave.dcpx"), self.folder)
        for name in ("run.mf4", fmu("lo_mono"), "slave.dcpx"):
            self.cardan("info", name, "--variables", "qq*", code=2, says="'qq*' fits no")

    def test_what_is_empty_or_cut_off_is_refused_with_its_name(self):
        self.results()
        shutil.copy(fmu("lo_mono"), self.path("run.fmu"))
        shutil.copy(os.path.join(HERE, "slave.dcpx"), self.path("run.dcpx"))
        for ending in ("mf4", "mat", "fmu", "dcpx"):
            with open(self.path("run." + ending), "rb") as f:
                data = f.read()
            for length in (0, 10, len(data) // 3, len(data) * 2 // 3):
                name = f"cut{length}.{ending}"
                with open(self.path(name), "wb") as f:
                    f.write(data[:length])
                with self.subTest(name):
                    self.cardan("info", name, code=2, says=name + ":")
        self.write("empty.csv", "")
        self.cardan("info", "empty.csv", code=2, says="empty.csv:1: empty")

    def test_a_file_larger_than_memory_is_told_with_its_name(self):
        try:
            with open(self.path("huge.csv"), "wb") as f:
                f.truncate(1 << 42)  # it has no blocks on the disk
        except OSError as e:
            self.skipTest(f"no file of 4 TiB here: {e}")
        self.cardan("info", "huge.csv", code=1, says=("huge.csv: needs ", "this machine has"))

    def test_xml_that_is_broken_or_a_bomb_is_refused(self):
        self.write("a.dcpx", "<dcpSlaveDescription>\n<OpMode>\n</dcpSlaveDescription>")
        self.cardan("info", "a.dcpx", code=2, says="a.dcpx:3: not well-formed XML")
        bomb = '<!DOCTYPE a [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>'
        for name in ("b.dcpx", "b.ssd", "b.ssv"):
            self.write(name, bomb + "<dcpSlaveDescription>&b;</dcpSlaveDescription>")
            self.cardan("info", name, code=2, says=name + ":1: a DOCTYPE, which is refused")
        self.write("c.dcpx", "<a>" * 100000)
        self.cardan("info", "c.dcpx", code=2, says="nested deeper")
        self.write("d.dcpx", "<a/>")
        self.cardan("info", "d.dcpx", code=2, says="expected a dcpSlaveDescription")

    def test_pipes_are_read_once(self):
        self.results()
        with open(self.path("run.csv"), encoding="utf-8") as f:
            text = f.read()
        for name in ("-", "/dev/stdin"):
            self.assertIn("11 rows", self.cardan("info", name, input=text).stdout)
        self.cardan("compare", "/dev/stdin", "run.mf4", input=text)
        self.write("s.yaml", "cardan: 1\nunits: { s: { signal: { shape: constant } } }\n"
                             "run: { step: 1 ms, stop: 1 ms }\n")
        with open(self.path("s.yaml"), encoding="utf-8") as f:
            self.cardan("check", "/dev/stdin", input=f.read())
        self.cardan("run", fmu("lo_fd2"), "--input", "/dev/stdin", input=text, code=2,
                    says="has to be read twice")
        with open(self.path("run.mf4"), "rb") as f:
            done = subprocess.run([CARDAN, "info", "-"], input=f.read(), capture_output=True,
                                  env=self.environment())
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"only CSV can be read from a pipe", done.stderr)

    def test_folders_are_no_recordings(self):
        self.results()
        os.mkdir(self.path("folder.mf4"))
        self.cardan("compare", "run.csv", "folder.mf4", code=2, says="folder.mf4: a folder, expected")
        self.cardan("info", "folder.mf4", code=2, says="folder.mf4: a folder without")


class Stimuli(EndToEnd):
    def drive(self, text, *arguments, stop="2", name="cycle.csv", says=(), code=0):
        """The input v2 (m/s) of lo_fd1 driven by a file; its value after each of some times."""
        if text is not None:
            with open(self.path(name), "wb") as f:
                f.write(text if isinstance(text, bytes) else text.encode())
        self.cardan("run", fmu("lo_fd1"), "--input", name, "--stop-time", stop, "--variables", "v2",
                    "--predict", "hold", "-o", "o.csv", *arguments, code=code, says=says)
        if code:
            return None
        # A row shows the input that its step began with.
        times, values = (self.column("o.csv", c) for c in ("time", "v2"))
        return lambda t: values[min(range(len(times)), key=lambda i: abs(times[i] - t - 0.001))]

    def check(self, value, pairs):
        for t, expected in pairs:
            self.assertTrue(near(value(t), expected, 1e-9), (t, value(t), expected))

    def test_drive_cycles_as_people_have_them(self):
        rows = [(0, 0), (1, 36), (2, 0)]

        def lines(separator, end="\n", head="", scale=1):
            return head + "".join(f"{t * scale}{separator}{v}{end}" for t, v in rows)

        for text in (lines(",", head="time,v2 [km/h]\n"),
                     lines(",", head="time [s],v2 (km/h)\n"),
                     lines(",", head="t/s,v2/(km/h)\n"),
                     lines(",", head="time,v2\ns,km/h\n"),
                     lines(",", head="time,v2\n[s],[km/h]\n"),
                     lines(";", head="time;v2 [km/h]\n").replace("1;36", "0,5;18\n1;36,0"),
                     lines("\t", "\r\n", "# NEDC\r\n# part, one\r\ntime\tv2 [km/h]\r\n"),
                     b"\xef\xbb\xbf" + lines(";", "\r\n", "sep=;\r\ntime;v2 [km/h]\r\n")[:-2].encode(),
                     lines(",", ",\n", "time,v2 [km/h],\n"),
                     lines(",", head="time [ms],v2 [km/h]\n", scale=1000),
                     lines(" ", head="# time v2[km/h]\n"),
                     ",time,v2 [km/h]\n" + "".join(f"{i},{t},{v}\n" for i, (t, v) in enumerate(rows)),
                     ):
            with self.subTest(text):
                self.check(self.drive(text, "-q"), [(0.5, 5), (1, 10), (1.5, 5)])

    def test_options_say_what_the_file_does_not(self):
        text = "time,speed\n10,0\n11,36\n12,0\n"
        mapped = ("--input-map", "speed=v2", "--input-unit", "speed=km/h", "--input-offset", "-10")
        self.check(self.drive(text, *mapped), [(0.5, 5), (1, 10), (1.5, 5)])
        self.check(self.drive(text, *mapped, "--input-repeat", stop="5"),
                   [(0.5, 5), (1, 10), (2.5, 5), (3, 10), (4.5, 5)])
        self.check(self.drive(text, *mapped, "--input-hold", "speed"),
                   [(0.5, 0), (1, 10), (1.5, 10)])
        self.drive(text, "--input-map", "speed=v2", says="begins at 10, after the run's start")

    def test_options_that_fit_nothing_are_mistakes(self):
        text = "time,speed\n0,0\n1,36\n"
        for arguments, says in (
                ((), "none of its columns names an input that is free; inputs are x2, v2; "
                     "--input-map COLUMN=INPUT"),
                (("--input-map", "sped=v2"), "'sped' fits no column of cycle.csv"),
                (("--input-map", "speed=v3"), "speed=v3: no such input, did you mean v2?"),
                (("--input-map", "speed"), "expected COLUMN=INPUT"),
                (("--input-map", "speed=v2", "--input-unit", "speed=kmh"), "no unit 'kmh' is known"),
                (("--input-map", "speed=v2", "--input-unit", "speed=kg"), "cannot be converted"),
                (("--input-map", "speed=v2", "--input-hold", "q*"), "'q*' fits no column"),
                (("--input-map", "speed=v2", "--input-hold", "*", "--input-linear", "speed"),
                 "both fit column 'speed'"),
                (("--input-map", "speed=v2", "--input-offset", "1 m"), "expected a number in s")):
            with self.subTest(arguments):
                self.drive(text, *arguments, code=2, says=says)

    def test_options_without_a_file_are_mistakes(self):
        for option in (("map", "a=b"), ("unit", "a=m"), ("hold", "a"), ("linear", "a"), ("repeat",),
                       ("offset", "1")):
            self.cardan("run", fmu("lo_fd1"), "--input-" + option[0], *option[1:], code=2,
                        says=f"--input-{option[0]} says how a file is used, but there is no --input")

    def test_units_that_nobody_knows_are_warned_of(self):
        value = self.drive("time,v2 [kmh]\n0,0\n1,36\n2,0\n",
                           says="column 'v2': no unit 'kmh' is known, its numbers are taken as they "
                                "are, for an input in m/s; --input-unit v2=UNIT")
        self.check(value, [(1, 36)])

    def test_files_that_cannot_be_meant(self):
        for text, says in (("0,0\n1,36\n", "begins with the number 0, expected column names"),
                           ("time,v2\n0,5,1,5\n", "semicolons must separate them"),
                           ("time,v2\n1,1\n0,1\n", "cycle.csv:3: time goes back from 1 to 0"),
                           ("time,v2\n00:00:01,1\n", "time '00:00:01' is not a finite number"),
                           ("time,v2 [kg]\n0,1\n", "cannot be converted"),
                           ("time,v2\r0,1\r", "lines end in CR alone"),
                           ("t\0i\0", "a zero byte"), ("", "empty")):
            with self.subTest(text):
                self.drive(text, code=2, says=says)

    def test_what_is_odd_about_a_file_is_said_once(self):
        self.write("cut.csv", "time,v2\n0,0\n1,1\n2,1\n3")
        done = self.cardan("run", fmu("lo_fd1"), "--input", "cut.csv", "--stop-time", "2", "-o", "none")
        self.assertEqual(done.stderr.count("cut.csv:5: the last line is incomplete"), 1, done.stderr)

    def test_a_name_with_blanks_and_umlauts(self):
        self.drive("time,v2\n0,1\n2,1\n", name="mein zyklus \u00fc.csv")

    def test_recordings_in_every_format_drive_alike(self):
        self.write("s.yaml", "cardan: 1\nunits:\n  s: { signals: { v2: { shape: sine, frequency: 1 Hz,"
                             " unit: m/s }, x2: { shape: ramp, duration: 1 s, unit: m } } }\n"
                             "run: { step: 1 ms, stop: 2 s }\nresults: { unit_row: true, file: a.csv }\n")
        for ending in ("csv", "mf4", "mat"):
            self.cardan("run", "s.yaml", "-q", "-o", "s." + ending)
            self.cardan("run", fmu("lo_fd1"), "-q", "--input", "s." + ending, "--input-map",
                        "s.v2=v2", "--input-map", "s.x2=x2", "--stop-time", "2", "-o",
                        ending + ".mf4")
        for ending in ("mf4", "mat"):
            self.cardan("compare", "csv.mf4", ending + ".mf4", "--tolerance", "0", "--absolute", "0")

    def test_several_rasters_of_an_mf4_drive_together(self):
        self.write("s.yaml", "cardan: 1\nunits:\n"
                             "  fast: { signal: { shape: sine, frequency: 1 Hz } }\n"
                             "  slow: { signal: { shape: ramp, duration: 2 s }, step: 10 ms }\n"
                             "run: { step: 1 ms, stop: 2 s }\nresults: s.mf4\n")
        self.cardan("run", "s.yaml", "-q")
        j = self.cardan_json("info", "s.mf4")
        self.assertEqual(sorted(g["rows"] for g in j["groups"]), [201, 2001])
        self.cardan("run", fmu("lo_fd1"), "-q", "--input", "s.mf4", "--input-map", "fast.y=v2",
                    "--input-map", "slow.y=x2", "--stop-time", "2", "-o", "o.csv", "--variables",
                    "v2", "--variables", "x2", "--predict", "hold")
        times = self.column("o.csv", "time")
        for name, f in (("v2", lambda t: math.sin(2 * math.pi * t)), ("x2", lambda t: t / 2)):
            values = self.column("o.csv", name)
            for i in (251, 505, 1999):
                self.assertTrue(near(values[i], f(times[i - 1]), 1e-9), (name, times[i]))


class Results(EndToEnd):
    def test_the_ending_chooses_the_format_in_any_case(self):
        for ending, begin in (("csv", b"time"), ("MF4", b"MDF "), ("mat", b"MATLAB 5"),
                              ("Csv", b"time")):
            self.cardan("run", fmu("lo_mono"), "-q", "--stop-time", "0.1", "-o", "r." + ending)
            with open(self.path("r." + ending), "rb") as f:
                self.assertEqual(f.read(len(begin)), begin)
        for ending in ("tsv", "h5", "xlsx", "txt", "mdf"):
            self.cardan("run", fmu("lo_mono"), "-q", "-o", "r." + ending, code=2,
                        says="the name should end in .csv, .mf4 or .mat")

    def test_formats_and_rasters_compare(self):
        names = []
        for ending in ("csv", "mf4", "mat"):
            names.append("a." + ending)
            self.cardan("run", fmu("lo_mono"), "-q", "--stop-time", "1", "-o", names[-1])
        for a in names:
            for b in names:
                self.cardan("compare", a, b, "--tolerance", "0", "--absolute", "0")
        self.cardan("run", fmu("lo_mono"), "-q", "--stop-time", "1", "--interval", "10 ms", "-o",
                    "coarse.mf4")
        self.cardan("compare", "coarse.mf4", "a.csv", "--tolerance", "0", "--absolute", "0")
        self.cardan("compare", "a.mat", "coarse.mf4", code=1)  # lines between 10 ms do not suffice
        self.cardan("run", fmu("lo_mono"), "-q", "--stop-time", "1", "--set", "m1=2", "-o", "b.mf4")
        j = self.cardan_json("compare", "a.mat", "b.mf4", code=1)
        self.assertFalse(j["equal"])
        self.write("u.csv", "time,x1 [mm]\n0,0\n1,1\n")
        self.write("v.csv", "time,x1 [m]\n0,0\n1,1\n")
        self.cardan("compare", "u.csv", "v.csv", code=1,
                    says="x1 is in 'mm' in u.csv and in 'm' in v.csv; the latter is converted")
        self.write("w.csv", "time,x1 [m]\n0,0\n1,0.001\n")
        self.cardan("compare", "u.csv", "w.csv", says="the latter is converted")
        self.cardan("compare", "w.csv", "u.csv", "--pair", "x1=x1", says="the latter is converted")
        self.write("n.csv", "time,x1 [N]\n0,0\n1,1\n")
        done = self.cardan("compare", "v.csv", "n.csv", code=1,
                           says="x1 is in 'm' in v.csv and in 'N' in n.csv; that cannot be compared and counts as different")
        self.assertIn("1 of 1 signal differs", done.stdout)
        self.cardan("compare", "v.csv", "n.csv", "--richardson", code=2,
                    says="x1 is in 'm' in v.csv and in 'N' in n.csv, expected runs of one system")
        self.write("bare.csv", "time,x1\n0,0\n1,1\n")
        self.cardan("compare", "bare.csv", "n.csv")  # what says no unit is any
        self.write("late.csv", "time,x1\n5,0\n6,0\n")
        self.cardan("compare", "a.mf4", "late.csv", code=2)

    def test_a_slave_description_is_checked_by_the_rules_of_dcp(self):
        rig = os.path.join(HERE, "..", "dcp", "data", "rig.dcpx")
        with open(rig, encoding="utf-8") as f:
            text = f.read()
        self.write("rig.dcpx", text)
        self.assertIn("ok: 1", self.cardan("check", "rig.dcpx").stdout)
        self.assertTrue(self.cardan_json("check", "rig.dcpx")["ok"])
        broken = text.replace('valueReference="2"', 'valueReference="1"')
        self.assertNotEqual(broken, text)
        self.write("broken.dcpx", broken)
        done = self.cardan("check", "broken.dcpx", code=2, says="broken.dcpx breaks 1 rule of DCP")
        self.assertRegex(done.stdout, r"broken.dcpx:\d+: error: .*\(V\d+\)")
        j = json.loads(self.cardan("check", "broken.dcpx", "--json", code=2).stdout)
        self.assertEqual([f["severity"] for f in j["findings"]].count("error"), 1)
        self.cardan("check", "none.dcpx", code=2, says="none.dcpx")

    def test_a_killed_run_leaves_what_it_had(self):
        arguments = ["run", fmu("lo_mono"), "-q", "--interval", "0.1"]
        process = subprocess.Popen([CARDAN, *arguments, "--stop-time", "1e9", "-o", "killed.mf4"],
                                   cwd=self.folder, env=self.environment())
        try:
            for _ in range(600):
                if process.poll() is not None or self.size("killed.mf4") > 20000000:
                    break
                time.sleep(0.1)
        finally:
            process.kill()
            process.wait()
        self.assertGreater(self.size("killed.mf4"), 20000000)  # several blocks: a begun one is lost
        shutil.rmtree(self.unpack)  # nobody was left to remove what it unpacked
        os.mkdir(self.unpack)
        self.assertIn("not closed by its writer", self.cardan("info", "killed.mf4").stdout)
        j = self.cardan_json("info", "killed.mf4")
        self.assertFalse(j["finished"])
        self.assertEqual(len(j["signals"]), 6)
        self.assertGreater(j["rows"], 100)
        self.assertEqual([a["name"] for a in j["attachments"]], ["cardan-run.json"])
        self.assertEqual([e["kind"] for e in j["events"]], ["start"])
        until = min(j["stop"], 100)
        self.cardan(*arguments, "--stop-time", str(until), "-o", "whole.csv")
        for pair in (("killed.mf4", "whole.csv"), ("whole.csv", "killed.mf4")):
            c = json.loads(self.cardan("compare", *pair, "--tolerance", "0", "--absolute", "0",
                                       "--json").stdout)
            self.assertTrue(c["equal"])
            self.assertAlmostEqual(c["stop"], until)
        if MDF:
            with MDF(self.path("killed.mf4")) as m:
                self.assertEqual(len(m.get("x1").samples), j["rows"])

    def size(self, name):
        return os.path.getsize(self.path(name)) if os.path.exists(self.path(name)) else 0


if __name__ == "__main__":
    unittest.main()
