"""Runs that record on a disk of 1 MB, a tmpfs in a namespace of its own. Ends with code 77 where
namespaces are not allowed."""

import os
import subprocess
import sys
import unittest

from e2e import CARDAN, EndToEnd
from e2e_study import Study

USER = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
UNSHARE = ["unshare", *USER, "--mount", "sh", "-c"]
# The disk is gone with the namespace: what is on it goes to the folder `out`.
ON_SMALL_DISK = """
mount -t tmpfs -o size=1m tmpfs disk || exit 99
"$@"; code=$?
cp disk/* out/
exit $code
"""
SYSTEM = """cardan: 1
units: {{ s: {{ signal: {{ shape: sine, amplitude: 1, frequency: 0.317 Hz }} }} }}
run: {{ step: 1 ms, stop: {stop} s }}
results: {{ file: disk/r.{format}{more} }}
"""


class SmallDisk(EndToEnd):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("disk"))
        os.mkdir(self.path("out"))

    def run_on_it(self, format_, *options, stop=100, more="", code=0, says=()):
        self.write("s.yaml", SYSTEM.format(stop=stop, format=format_, more=more))
        done = subprocess.run([*UNSHARE, ON_SMALL_DISK, "sh", CARDAN, "run", "s.yaml", *options],
                              cwd=self.folder, env=self.environment(), capture_output=True,
                              text=True, timeout=300)
        self.assertEqual(done.returncode, code, done.stderr)
        for part in says:
            self.assertIn(part, " ".join(done.stderr.split()))
        return done

    def rows(self, name):
        """Number of rows, first and last time; Cardan's own reader says that the file is whole."""
        g = self.cardan_json("info", name)["groups"][0]
        return g["rows"], g["start"], g["stop"]

    def test_the_run_stops_and_what_fits_is_there(self):
        for format_ in ("csv", "mf4", "mat"):
            with self.subTest(format_):
                self.run_on_it(format_, stop=1000, code=1, says=["No space left", "rows"])
                rows, start, _ = self.rows(f"out/r.{format_}")
                size = os.path.getsize(self.path(f"out/r.{format_}"))
                self.assertEqual(start, 0)
                # MAT needs the room twice, as its rows are collected before
                self.assertGreater(size, (0.3 if format_ == "mat" else 0.9) * (1 << 20))
                self.assertGreater(rows, 7000)

    def test_rows_are_thinned_out_and_the_whole_run_is_recorded(self):
        for format_ in ("csv", "mf4"):
            with self.subTest(format_):
                self.run_on_it(format_, "--on-full", "thin", stop=400, says=["thinned out"])
                rows, start, stop = self.rows(f"out/r.{format_}")
                self.assertEqual(start, 0)
                self.assertGreater(stop, 390)
                self.assertGreater(rows, 7000)
                self.assertGreater(os.path.getsize(self.path(f"out/r.{format_}")), 0.3 * (1 << 20))

    def test_the_run_goes_on_without_its_record(self):
        done = self.run_on_it("mf4", "--on-full", "drop", "--json", stop=1000, code=1,
                              says=["the run went on without them"])
        self.assertIn('"end": "stop time"', done.stdout)
        rows, start, _ = self.rows("out/r.mf4")
        self.assertEqual(start, 0)
        self.assertGreater(rows, 7000)

    def test_the_rest_goes_to_a_second_place(self):
        for format_ in ("csv", "mf4", "mat"):
            with self.subTest(format_):
                self.run_on_it(format_, stop=400, more=f", on_full: out/rest.{format_}",
                               says=["the rest is in", f"out/rest.{format_}"])
                rows, start, last = self.rows(f"out/r.{format_}")
                rest, first, stop = self.rows(f"out/rest.{format_}")
                self.assertEqual(rows + rest, 400001)
                if format_ == "mat":  # it needs the room twice: its first block does not fit
                    self.assertEqual((rows, first, stop), (0, 0, 400))
                    continue
                self.assertEqual((start, stop), (0, 400))
                self.assertAlmostEqual(first, last + 0.001, 9)

    def test_what_is_no_policy(self):
        self.run_on_it("csv", "--on-full", "rest.mf4", code=2, says=["rest.mf4", "the same ending"])
        self.run_on_it("csv", more=", on_full: never", code=2,
                       says=["s.yaml:4: results.on_full: 'never', expected stop, thin, drop, or"])


class Studies(Study):
    """What fits counts, and the same command makes the rest when there is room."""

    def on_disk(self, kilobytes, *words):
        """In a folder `disk` of so many kilobytes; what lies in `before` is on it, and it goes to `before` again."""
        script = (f"mount -t tmpfs -o size={kilobytes}k tmpfs disk || exit 99\ncp -r before/. disk/ || exit 98\n"
                  '"$@"; code=$?\nrm -rf before/*\ncp -r disk/. before/\nexit $code\n')
        done = subprocess.run([*UNSHARE, script, "sh", CARDAN, "study", *words], cwd=self.folder, env=self.environment(),
                              capture_output=True, text=True, timeout=120, check=False)
        return done.returncode, " ".join(done.stderr.split())

    def setUp(self):
        super().setUp()
        for name in ("disk", "before"):
            os.mkdir(self.path(name))
        self.oscillator(stop="2 ms", count=1000)

    def check(self):
        done = self.counts("s.yaml", "--database", "before/s.study")
        self.assertEqual((done["done"], done["open"]), (2000, 0))
        self.counts("s.yaml", "--database", "local.study")
        self.assertEqual(self.rows("before/s.study"), self.rows("local.study"))

    def test_the_study_has_no_room(self):
        code, said = self.on_disk(320, "run", "s.yaml", "--database", "disk/s.study")
        self.assertEqual(code, 1, said)
        self.assertIn("there is no room on the disk: make some and run again", said)
        self.check()

    def test_the_results_of_a_chunk_have_no_room(self):
        self.counts("s.yaml", "--database", "before/s.study", "--executor", "list", "--chunk", 2000)
        code, said = self.on_disk(340, "work", "disk/s.study.chunks/1.chunk")
        self.assertEqual(code, 1, said)
        self.assertIn("results cannot be written: No space left on device", said)
        self.assertIn("the same command makes the rest", said)
        before = self.cardan_json("study", "merge", "before/s.study")
        self.assertTrue(0 < before["merged"] < 2000, before)
        self.cardan("study", "work", "before/s.study.chunks/1.chunk")
        self.assertEqual(self.cardan_json("study", "merge", "before/s.study")["open"], 0)
        self.assertEqual(os.listdir(self.path("before")), ["s.study"])
        self.check()


if __name__ == "__main__":
    if subprocess.run([*UNSHARE, "mount -t tmpfs tmpfs /mnt"], capture_output=True).returncode:
        print("no namespace with a disk of its own here")
        sys.exit(77)
    unittest.main(verbosity=2)
