"""Whatever is wrong: the exit code, a sentence that names the place, and a record that is whole."""

import os
import re
import resource
import shutil
import unittest
import zipfile

from e2e import EndToEnd, fmu


class Options(EndToEnd):
    def test_numbers_that_make_no_sense(self):
        model = fmu("lo_mono")
        for option, value, part in [
            ("--step", "0", "--step = '0', expected > 0"),
            ("--step", "-1 ms", "expected > 0"),
            ("--step", "nan", "finite"),
            ("--step", "fast", "expected a number in s"),
            ("--step", "1 kg", "expected a number in s"),
            ("--stop-time", "inf", "finite"),
            ("--tolerance", "0", "expected > 0"),
            ("--interval", "-1", "expected >= 0"),
            ("--threads", "0", "from 1 to 1024 or auto"),
            ("--predict", "cubic", "expected one of auto|hold|linear|quadratic|taylor1|"),
            ("--control", "0", "--control = '0', expected > 0"),
            ("--control", "fine", "--control = 'fine', expected a number"),
            ("--scheme", "jakobi", "jacobi"),
            ("--log-level", "loud", "expected one of error|warning|info|debug"),
        ]:
            with self.subTest(option + " " + value):
                self.cardan("run", model, option, value, code=2, says=part)

    def test_stop_before_start(self):
        self.cardan("run", fmu("lo_mono"), "--start-time", "2", "--stop-time", "1", code=2,
                    says=["stop", "1", "before", "start", "2"])
        # as long as the FMU's own experiment, which ends before that
        self.assertIn("1000 s to 10", self.cardan("run", fmu("lo_mono"), "--start-time", "1000", "-o", "none").stderr)
        self.cardan("run", fmu("lo_mono"), "--stop-time=-1", code=2, says="stop")

    def test_files_that_cannot_be_written(self):
        self.cardan("run", fmu("lo_mono"), "-o", "nix/r.csv", code=1, says="nix/r.csv")
        self.cardan("run", fmu("lo_mono"), "-o", "r.xyz", code=2, says="r.xyz")
        os.mkdir(self.path("folder.csv"))
        self.cardan("run", fmu("lo_mono"), "-o", "folder.csv", code=1, says="folder.csv")

    def test_results_do_not_overwrite_what_is_read(self):
        self.write("in.csv", "time,f\n0,1\n1,1\n")
        self.cardan("run", fmu("lo_fd2"), "--input", "in.csv", "-o", "in.csv", code=2,
                    says="in.csv: the results would overwrite the input of the run")
        os.symlink(self.path("in.csv"), self.path("same.csv"))
        self.cardan("run", fmu("lo_fd2"), "--input", "in.csv", "-o", "same.csv", code=2,
                    says="overwrite")
        self.cardan("run", self.oscillator(), "-o", "oscillator.yaml", code=2, says="overwrite")

    def test_start_values(self):
        model = fmu("lo_mono")
        self.cardan("run", model, "--set", "m3=1", code=2, says=["--set", "m3", "did you mean"])
        self.cardan("run", model, "--variables", "x3", code=2,
                    says=["no variable matches 'x3'", "did you mean 'x1'"])
        self.cardan("run", model, "--set", "m1=heavy", code=2, says=["--set", "m1", "heavy"])
        self.cardan("run", model, "--set", "m1=1 s", code=2, says=["--set", "m1", "kg"])
        self.cardan("run", model, "--set", "m1", code=2, says="expected variable=value")
        self.cardan("run", model, "--input", "nix.csv", code=2, says="nix.csv")


class Archives(EndToEnd):
    def refuse(self, name, *says, code=2):
        for command in ("info", "run", "check"):
            with self.subTest(command):
                self.cardan(command, name, code=code, says=[name, *says])

    def test_not_a_zip(self):
        self.write("no.fmu", "this is not a zip at all")
        self.refuse("no.fmu", "zip")
        self.write("empty.fmu", "")
        self.refuse("empty.fmu")

    def test_no_model_description(self):
        self.refuse(self.bend(fmu("lo_mono"), remove=["modelDescription.xml"]),
                    "modelDescription.xml")

    def test_entries_that_leave_the_folder(self):
        for entry in ("../evil", "resources/../../evil", "/tmp/evil"):
            name = self.bend(fmu("lo_mono"), add={entry: "x"})
            with self.subTest(entry):
                self.cardan("run", name, code=2, says=[name, "evil"])

    def test_links(self):
        self.bend(fmu("lo_mono"))
        link = zipfile.ZipInfo("resources/link")
        link.create_system = 3
        link.external_attr = 0o120777 << 16
        with zipfile.ZipFile(self.path("bent.fmu"), "a") as z:
            z.writestr(link, "/etc/passwd")
        self.cardan("run", "bent.fmu", code=2, says=["bent.fmu", "resources/link"])

    def test_xml_with_a_dtd(self):
        name = self.bend(fmu("lo_mono"), xml=lambda x: re.sub(
            r"\?>", '?><!DOCTYPE a [<!ENTITY b "bbbb">]>', x, count=1))
        self.refuse(name, "DOCTYPE")

    def test_xml_that_is_cut(self):
        self.refuse(self.bend(fmu("lo_mono"), xml=lambda x: x[: len(x) // 2]), "modelDescription.xml")

    def test_an_unknown_version(self):
        self.refuse(self.bend(fmu("lo_mono"),
                              xml=lambda x: x.replace('fmiVersion="2.0"', 'fmiVersion="9.0"')), "9.0")

    def test_no_binary_for_this_platform(self):
        name = self.bend(fmu("lo_mono"), remove=["binaries/", "sources/"],
                         add={"binaries/win64/lo_mono.dll": "MZ"})
        self.cardan("run", name, code=2, says=[name, "win64"])

    def test_a_library_that_is_none(self):
        with zipfile.ZipFile(fmu("lo_mono")) as z:
            library = [n for n in z.namelist() if n.endswith(".so")][0]
        name = self.bend(fmu("lo_mono"), remove=["binaries/"], add={library: "not an ELF file"})
        self.cardan("run", name, code=1, says="lo_mono.so")

    def test_a_library_that_lacks_a_function(self):
        for version in (2, 3):
            with zipfile.ZipFile(fmu("lo_mono", version)) as z:
                library = [n for n in z.namelist() if n.endswith(".so")][0]
                binary = z.read(library)
            wanted, other = b"fmi%dDoStep\0" % version, b"fmi%dDoStop\0" % version
            self.assertIn(wanted, binary)
            name = self.bend(fmu("lo_mono", version), remove=["binaries/"],
                             add={library: binary.replace(wanted, other)})
            with self.subTest(version):
                done = self.cardan("run", name, code=2, says=f"fmi{version}DoStep")
                self.assertNotIn("rows in", done.stderr)

    def test_a_wrong_guid(self):
        for version, key in ((2, "guid"), (3, "instantiationToken")):
            name = self.bend(fmu("lo_mono", version),
                             xml=lambda x, key=key: re.sub(f'{key}="[^"]*"', f'{key}="wrong"', x))
            with self.subTest(version):
                self.cardan("run", name, code=1, says="bent")


class Systems(EndToEnd):
    def change(self, old, new):
        with open(self.path(self.oscillator()), encoding="utf-8") as f:
            text = f.read()
        self.assertIn(old, text)
        return os.path.basename(self.write("wrong.yaml", text.replace(old, new)))

    def test_descriptions_that_are_wrong(self):
        cases = [
            ("scheme: jacobi", "scheem: jacobi", "scheme"),
            ("step: 1 ms", "step: 0", "step"),
            ("step: 1 ms", "step: -1 ms", "step"),
            ("step: 1 ms", "step: .nan", "step"),
            ("stop: 0.1 s", "stop: -1 s", "stop"),
            ("lo_fd2.fmu", "lo_fd3.fmu", "lo_fd3.fmu"),
            ("from: first.f,", "from: first.ff,", "did you mean"),
            ("from: first.f,", "from: frst.f,", "did you mean"),
            ("from: first.f,", "from: second.f,", "second.f"),
            ("to: second.f ", "to: second.x2 ", "second.x2"),
            ("m1: 1", "m9: 1", "m9"),
            ("cardan: 1", "cardan: [", "wrong.yaml:"),
        ]
        for old, new, part in cases:
            with self.subTest(new):
                name = self.change(old, new)
                for command in ("check", "run"):
                    done = self.cardan(command, name, code=2, says=part)
                    self.assertIn("wrong.yaml", done.stderr)

    def test_two_sources_for_one_input(self):
        name = self.change("  - { from: second.v2, to: first.v2 }\n",
                           "  - { from: second.v2, to: first.v2 }\n"
                           "  - { from: second.x2, to: first.v2, convert_units: false }\n")
        self.cardan("check", name, code=2, says=["wrong.yaml:9", "first.v2"])

    def test_the_line_is_named(self):
        self.cardan("check", self.change("from: first.f,", "from: first.ff,"), code=2,
                    says="wrong.yaml:9:")

    def test_a_recording_cannot_be_run(self):
        self.write("r.csv", "time,a\n0,1\n")
        self.cardan("run", "r.csv", code=2, says="a recording cannot be run")


class UnitsThatFail(EndToEnd):
    """From t = 0.5 on the FMU goes wrong as its parameter says; rows up to there are recorded."""

    def run_mode(self, mode, code, says, version=2, last=0.5):
        self.cardan("run", fmu("faulty", version), "--set", f"mode={mode}", "--step", "0.01",
                    "--stop-time", "1", code=code, says=says, leaks=mode == 4)
        times = self.column("faulty.csv", "time")
        self.assertLess(abs(times[-1] - last), 0.0101, f"mode {mode}")
        j = self.cardan_json("info", "faulty.csv")
        self.assertEqual(j["rows"], len(times))

    def test_each_fault(self):
        for version in (2, 3):
            for mode, code, says, last in [
                (0, 0, "stop time reached", 1),
                (1, 0, "as asked for", 1),
                (3, 1, ["faulty", "as asked for", "0.5"], 0.5),
                (4, 1, ["faulty", "atal", "0.5"], 0.5),
                (5, 1, ["faulty", "'y' is not a number"], 0.5),
                (6, 0, "a unit ended the run: faulty", 0.5),
                (7, 1, ["faulty", "crash", "DoStep"], 0.5),
                (8, 1, ["faulty", "crash", "DoStep"], 0.5),
                (12, 1, ["faulty", "exit()", "DoStep"], 0.5),
            ]:
                with self.subTest(f"FMI {version}, mode {mode}"):
                    self.run_mode(mode, code, says, version, last)

    def test_a_connected_output_that_is_no_number(self):
        for version in (2, 3):
            self.write("nan.yaml", f"""
cardan: 1
units:
  source: {{ fmu: {fmu("faulty", version)}, parameters: {{ mode: 5 }} }}
  sink: {{ fmu: {fmu("lo_fd2", version)} }}
connections:
  - {{ from: source.y, to: sink.f, convert_units: false }}
run: {{ step: 10 ms, stop: 1 s }}
""")
            self.cardan("run", "nan.yaml", code=1, says=["source", "'y'", "NaN", "0.49"])
            self.assertLess(abs(self.column("nan.csv", "time")[-1] - 0.5), 0.0101)

    def test_a_discarded_step(self):
        self.cardan("run", fmu("faulty"), "--set", "mode=2", "--step", "0.01", code=1,
                    says=["faulty", "iscard"])

    def test_a_start_that_fails(self):
        self.cardan("run", fmu("faulty"), "--set", "mode=9", code=1,
                    says=["faulty", "as asked for"])

    def test_the_json_report_of_a_failure(self):
        j = self.cardan_json("run", fmu("faulty"), "-q", "--set", "mode=3", "--step", "0.01", code=1)
        self.assertEqual((j["end"], j["end_unit"], j["exit_code"]), ("failed", "faulty", 1))
        self.assertIn("fmi2DoStep", j["error"])
        j = self.cardan_json("run", fmu("faulty"), "-q", "--set", "mode=7", "--step", "0.01", code=1)
        self.assertEqual((j["status"], j["exit_code"]), ("CRD_E_CRASH", 1))


class FullDisk(EndToEnd):
    def test_a_device_without_room(self):
        os.symlink("/dev/full", self.path("full.csv"))
        self.cardan("run", fmu("lo_mono"), "-o", "full.csv", code=1,
                    says=["full.csv", "No space left"])

    def test_what_fits_is_readable(self):
        limit = 1000000
        self.cardan("run", fmu("lo_mono"), "--stop-time", "100", "--step", "1 ms", "-o", "r.csv",
                    code=1, says=["r.csv", "rows"],
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        self.assertLessEqual(os.path.getsize(self.path("r.csv")), limit)
        names, columns = self.table("r.csv")
        self.assertGreater(len(columns[0]), 100)
        self.assertIn("rows", self.cardan("info", "r.csv").stdout)


if __name__ == "__main__":
    unittest.main()
