"""cardan bench experiment: tables, files, and the same bits for the same seed."""

import base64
import os
import re
import unittest
from xml.dom import minidom

from e2e import EndToEnd

README = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "README.md")
RUNS = ["ideal", "zoh", "foh", "eros", "foh-switch", "eros-switch", "foh-switch-above",
        "eros-switch-above", "optimal", "trained",
        "least-squares", "auto", "commands"]


class BenchExperiment(EndToEnd):
    def test_tables_files_and_report(self):
        done = self.cardan("bench", "experiment", "-o", "out")
        for part in ("100 C  100 M  100 P  against ZOH", "network, trained", "ideal coupling",
                     "Where it differs from the paper", "out/report.html"):
            self.assertIn(part, done.stdout)
        for goal in ("Table 2, bins 1-4: methods on the other side", "Table 2, bins 2-4: methods on the other side",
                     "Table 2, bins 1-4: pairs of 21 in another order", "Table 2, bins 2-4: pairs of 21 in another order",
                     "Table 3, ideal coupling: peak", "Table 3, ideal coupling: energy",
                     "network, trained: C against ZOH"):
            self.assertRegex(done.stdout, rf"{goal}.* met\n")
        for name in RUNS:
            names, columns = self.table(f"out/{name}.csv")
            self.assertEqual(names[0], "time [s]")
            self.assertEqual(len(columns[0]), 1200)
            self.assertGreater(os.path.getsize(self.path(f"out/{name}.mf4")), 10000)
        self.assertIn("car.torque_used", str(self.cardan_json("info", "out/auto.mf4")))
        for name in ("torque", "bode", "spectrum"):
            minidom.parse(self.path(f"out/{name}.svg"))
        with open(self.path("out/report.html"), encoding="utf-8") as f:
            page = f.read()
        pictures = re.findall(r'src="data:image/svg\+xml;base64,([^"]*)"', page)
        for picture, name in zip(pictures, ("torque", "spectrum", "bode"), strict=True):
            with open(self.path(f"out/{name}.svg"), "rb") as f:
                self.assertEqual(base64.b64decode(picture), f.read())
        self.assertEqual(page.count("<table>"), 3)
        self.assertIsNone(re.search(r'(src|href)="(?!data:)', page))  # self-contained
        # The report has the numbers of the terminal.
        for row in re.findall(r"^  (auto|optimal) +(\d\.\d\d) ", done.stdout, re.M):
            self.assertTrue(f'<td>{row[0]}</td><td class="n">{row[1]}</td>' in page, row)

    def test_the_table_of_the_readme_is_what_the_command_says(self):
        given = self.cardan_json("bench", "experiment")
        told = {r["id"]: r for r in given["runs"]}
        with open(README, encoding="utf-8") as f:
            text = f.read()
        rows = re.findall(r"^\| (.*?) \| (\d\.\d\d) %(?:, ([+-]\d+) %)? \|", text, re.M)
        ours = ("zoh", "foh", "eros", "foh-switch", "eros-switch", "optimal", "trained", "auto", "commands")
        self.assertEqual(len(rows), len(ours))
        for (name, error, change), run in zip(rows, ours):
            self.assertEqual((name, error, change or "+0"),
                             (name, f"{told[run]['C']:.2f}", f"{told[run]['change']:+.0f}"))
        other = [g["ours"] for g in given["goals"] if "pairs of 21 in another order" in g["what"]]
        self.assertRegex(text, rf"Of the 21 pairs of methods of the paper's Table 2, {21 - max(other):.0f}\s+come")
        smooth = {r["id"]: r for r in self.cardan_json("bench", "experiment", "--plant", "smooth")["runs"]}
        self.assertIn(f"(`--plant smooth`) `auto` has {smooth['auto']['change']:.0f} %", text)

    def test_equal_seeds_give_equal_bits_and_others_do_not(self):
        first, second = self.cardan_json("bench", "experiment", "--step", "20 ms"), self.cardan_json(
            "bench", "experiment", "--step", "20ms", "--seed", "1")
        other = self.cardan_json("bench", "experiment", "--step", "20 ms", "--seed", "2")
        self.assertEqual(first, second)
        smooth = self.cardan_json("bench", "experiment", "--step", "20 ms", "--plant", "smooth")
        self.assertEqual([first["plant"], smooth["plant"]], ["edges", "smooth"])
        self.assertNotEqual([r["C"] for r in first["runs"]], [r["C"] for r in smooth["runs"]])
        self.assertEqual([r["id"] for r in first["runs"]], RUNS)
        self.assertEqual(first["k"], 3)
        self.assertNotEqual([r["C"] for r in first["runs"]], [r["C"] for r in other["runs"]])

    def test_commands_know_the_shift_after_one_run_that_they_have_learned_from(self):
        self.cardan("bench", "experiment", "-o", "before", "--seed", "2")
        self.cardan("bench", "experiment", "-o", "now")
        of = ["--signal", "bed.torque", "--latency", "6", "--command-delay", "10ms"]
        for name in ("torque_request", "torque_limit", "shaft_speed"):
            of += ["--command", "car." + name]
        self.cardan("coupling", "learn", "train", "before/zoh.mf4", *of, "-o", "learned.json")
        told = self.cardan_json("coupling", "compensate", "now/zoh.mf4", *of, "--algorithms", "zoh,auto,learned.json")
        change = [r["change"] for r in told
                  if "change" in r and r["algorithm"] not in ("zoh", "auto")]
        self.assertEqual(len(change), 1)
        self.assertLess(change[0], -50)

    def test_mistakes_are_told(self):
        for options, says in (
                (("--latency", "300ms"), "latency: 0.3 s, expected more than 0 and at most 0.2 s"),
                (("--latency", "3 m"), "--latency = '3 m', expected a number in s"),
                (("--jitter", "60ms"), "jitter: 0.06 s, expected 0 to 0.0575 s"),
                (("--step", "7ms"), "step: 0.007 s, expected whole milliseconds"),
                (("--step", "2ms"), "is 29.0 macro steps of 0.002 s, expected 16 at most"),
                (("--plant", "rough"), "--plant = 'rough', expected one of edges|smooth"),
                (("--seed", "-1"), "--seed")):
            self.cardan("bench", "experiment", *options, code=2, says=says)
        self.cardan("bench", "experiment", "-o", "no/such/folder", code=1, says="no/such/folder")
        self.write("file", "")
        self.cardan("bench", "experiment", "-o", "file", "--step", "50ms", code=1, says="file/ideal.mf4")


if __name__ == "__main__":
    unittest.main()
