"""An output of "-" is standard output, and nothing else stands there; pictures in every format."""

import csv
import json
import os
import re
import subprocess
import unittest
import zipfile
from io import BytesIO

from e2e import CARDAN, EndToEnd, fmu

HERE = os.path.dirname(os.path.abspath(__file__))
TORQUE = os.path.join(HERE, "..", "..", "examples", "recordings", "torque.csv")
RLC = os.path.join(HERE, "..", "..", "examples", "circuits", "rlc.cir")
BODE = ("coupling", "analyze", "zoh", "foh", "--latency", "0,1", "--step", "10ms")
LATE = ("--signal", "torque", "--latency", "6")


def is_csv(data):
    rows = list(csv.reader(data.decode().splitlines()))
    return len(rows) > 2 and len({len(x) for x in rows}) == 1 and all(map(float, rows[1])) is not None


def is_archive(data):
    return "modelDescription.xml" in (n := zipfile.ZipFile(BytesIO(data)).namelist()) or \
        "SystemStructure.ssd" in n


def is_page(data):
    return data.startswith(b"<!DOCTYPE html>") and data.rstrip().endswith(b"</html>")


def is_svg(data):
    return data.startswith(b"<svg ") and data.rstrip().endswith(b"</svg>")


# Every command that has -o: where it is new, its "-" is to be thought of (and this list to be changed).
EXPECTED = ["bench desk", "bench experiment", "bench session", "build", "can log", "check", "circuit",
            "coupling compensate", "coupling design", "coupling learn", "coupling link", "dcp describe", "dcp key",
            "dcp link", "dcp matrix", "export", "frames log", "key pair", "new", "plot", "replay", "report", "run",
            "schema", "study export", "study plot", "study report", "twin run", "twin tune"]


class Stdout(EndToEnd):
    def setUp(self):
        super().setUp()
        self.oscillator()
        self.cardan("run", "oscillator.yaml", "-q", "-o", "x.csv")

    def raw(self, *arguments):
        done = subprocess.run([CARDAN, *arguments], cwd=self.folder, env=self.environment(),
                              capture_output=True, timeout=100)
        self.assertEqual(done.returncode, 0, (arguments, done.stderr))
        return done

    def test_every_output_can_be_a_pipe(self):
        cases = ((("run", "oscillator.yaml", "-o", "-"), is_csv),
                 (("circuit", RLC, "-o", "-"), is_csv),
                 (("new", "lo_fd1.fmu", "lo_fd2.fmu", "-o", "-"), lambda d: b"\ncardan: 1\n" in d),
                 ((*BODE, "--csv", "-"), is_csv), ((*BODE, "--plot", "-"), is_svg),
                 (("coupling", "compensate", TORQUE, *LATE, "-o", "-"), is_csv),
                 (("coupling", "compensate", TORQUE, *LATE, "--plot", "-"), is_svg),
                 (("coupling", "design", TORQUE, *LATE, "--method", "wiener", "-o", "-"),
                  lambda d: d.startswith(b"algorithm") or b"\nalgorithm" in d or d.startswith(b"{")),
                 (("export", "coupling", "eros", "--step", "10ms", "-o", "-"), is_archive),
                 (("export", "ssp", "oscillator.yaml", "-o", "-"), is_archive),
                 (("report", "x.csv", "-o", "-"), is_page),
                 (("report", "x.csv", "--plot", "first.x1", "-o", "-"), is_svg),
                 (("plot", "x.csv", "-o", "-"), is_svg), (("schema", "-o", "-"), json.loads),
                 (("dcp", "describe", "lo_fd2.fmu", "-o", "-"), lambda d: b"<dcpSlaveDescription" in d))
        for arguments, good in cases:
            with self.subTest(arguments):
                data = self.raw(*arguments).stdout
                self.assertTrue(good(data), data[:200])
                # into a file that has something already, as >> does: nothing is lost
                with open(self.path("all"), "wb") as f:
                    f.write(b"before\n")
                    f.flush()
                    subprocess.run([CARDAN, *arguments], cwd=self.folder, stdout=f, timeout=100,
                                   env=self.environment(), stderr=subprocess.DEVNULL, check=True)
                with open(self.path("all"), "rb") as f:
                    self.assertTrue(f.read().startswith(b"before\n" + data[:20]))
        self.assertFalse(os.path.exists(self.path("-")))
        self.assertEqual(os.listdir(self.unpack), [])

    def test_no_command_makes_a_file_of_that_name(self):
        """Each command whose help has -o knows what "-" is: a command that is new is noticed."""
        manual = self.cardan("man", "--format", "markdown").stdout
        commands = re.split(r"\n### ", manual)[1:]
        having = sorted(c.split("\n")[0].strip("`").replace("cardan ", "") for c in commands
                        if re.search(r"\| `-o, --output", c))
        self.assertEqual(having, EXPECTED)

    def test_what_is_no_file_or_is_secret_is_refused(self):
        self.cardan("bench", "experiment", "-o", "-", code=2, says="into a folder, expected its name")
        self.cardan("dcp", "key", "-o", "-", code=2, says="it is never printed")
        self.cardan("key", "pair", "127.0.0.1:9", "-o", "-", code=2, says="nobody else can read")
        self.assertFalse(os.path.exists(self.path("-")))

    def test_json_needs_standard_output_for_itself(self):
        for arguments in (("run", "oscillator.yaml", "-o", "-"), ("circuit", RLC, "-o", "-"),
                          (*BODE, "--plot", "-"), ("coupling", "compensate", TORQUE, *LATE, "-o", "-")):
            self.cardan(*arguments, "--json", code=2, says="both write to standard output")

    def test_pictures_of_all_commands_in_all_formats(self):
        begin = {"svg": b"<svg ", "png": b"\x89PNG", "pdf": b"%PDF"}
        for arguments in ((*BODE, "--plot"), ("coupling", "compensate", TORQUE, *LATE, "--plot"),
                          ("coupling", "analyze", TORQUE, "--signal", "torque", "--plot"),
                          ("report", "x.csv", "--plot", "first.x1,second.x2", "-o")):
            for ending, first in begin.items():
                with self.subTest(arguments[:2] + (ending,)):
                    self.cardan(*arguments, "p." + ending)
                    with open(self.path("p." + ending), "rb") as f:
                        self.assertEqual(f.read(len(first)), first)
            text = self.raw(*arguments, "terminal").stdout.decode()
            self.assertTrue(any("⠀" < c <= "⣿" for c in text), text)
            self.assertFalse(os.path.exists(self.path("terminal")))
            self.cardan(*arguments, "p.bmp", code=2, says="should end in .svg, .png or .pdf")



if __name__ == "__main__":
    unittest.main()
