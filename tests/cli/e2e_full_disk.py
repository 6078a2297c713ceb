"""Runs that record on a disk of 1 MB, a tmpfs in a namespace of its own. Ends with code 77 where
namespaces are not allowed."""

import os
import subprocess
import sys
import unittest

from e2e import CARDAN, EndToEnd

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


if __name__ == "__main__":
    if subprocess.run([*UNSHARE, "mount -t tmpfs tmpfs /mnt"], capture_output=True).returncode:
        print("no namespace with a disk of its own here")
        sys.exit(77)
    unittest.main(verbosity=2)
