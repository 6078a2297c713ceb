"""The tool over a folder of FMUs, over FMUs of our own: what runs, what does not, and why."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
FMUS = os.environ["CARDAN_FMUS"]


class Foreign(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="foreign_test_", dir=os.environ.get("CARDAN_TMP"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.fmus = os.path.join(self.folder, "fmus")
        os.makedirs(os.path.join(self.fmus, "deeper"))

    def take(self, name, version, to, change=None):
        """A copy of an FMU, with entries that `change` gives another content, or none."""
        with zipfile.ZipFile(os.path.join(FMUS, f"fmi{version}", name + ".fmu")) as old, \
                zipfile.ZipFile(os.path.join(self.fmus, to), "w") as new:
            for e in old.namelist():
                data = change(e, old.read(e)) if change else old.read(e)
                if data is not None:
                    new.writestr(e, data)

    def run_over(self, *more):
        out = os.path.join(self.folder, "out.json")
        done = subprocess.run([sys.executable, "-B", os.path.join(HERE, "run.py"), self.fmus, "--cardan",
                               os.environ["CARDAN"], "--json", out, "--seconds", "20", "--memory", "0", *more],
                              capture_output=True, text=True, timeout=300)
        with open(out, encoding="utf-8") as f:
            j = json.load(f)
        return done, j["total"], {os.path.basename(r["fmu"]): r for r in j["fmus"]}

    def test_each_fmu_has_a_line_with_the_reason(self):
        self.take("lo_fd2", 2, "driven.fmu")
        self.take("types", 3, "deeper/types.fmu")
        self.take("faulty", 2, "faulty.fmu")
        self.take("lo_fd2", 2, "windows.fmu", lambda e, b: None
                  if e.endswith(".so") or e.startswith("sources/") else b)
        self.take("lo_fd2", 2, "broken.fmu",
                  lambda e, b: b"no library" if e.endswith(".so") else b)
        with open(os.path.join(self.fmus, "no.fmu"), "w", encoding="utf-8") as f:
            f.write("no zip")
        done, total, rows = self.run_over("--jobs", "2", "--at-least", "90")
        self.assertEqual(total["fmus"], 6, done.stdout)
        self.assertEqual(total["runnable"], 4)
        self.assertEqual(total["run"], 3)
        self.assertEqual(done.returncode, 1)  # 75 % are less than 90
        for name in ("driven.fmu", "types.fmu"):
            stages = rows[name]["stages"]
            self.assertEqual(rows[name]["verdict"], "runs")
            for stage in ("info", "check", "alone", "sine", "system", "isolated"):
                self.assertEqual(stages[stage]["result"], "ok", name)
        self.assertEqual(rows["windows.fmu"]["verdict"], "no binary for this platform")
        self.assertEqual(rows["no.fmu"]["verdict"], "no FMU")
        self.assertEqual(rows["broken.fmu"]["verdict"], "fails")
        self.assertIn("cannot be loaded", rows["broken.fmu"]["reason"])
        for row in rows.values():
            self.assertIn(os.path.relpath(row["fmu"], self.fmus), done.stdout)
        self.assertIn("6 FMUs, 4 can run here, 3 do: 75.0 %", done.stdout)

    def test_a_difference_from_another_importer_is_seen(self):
        sys.path.insert(0, HERE)
        import run  # pylint: disable=import-outside-toplevel
        for name, text in (("a.csv", "time,y,z\n0,1,5\n1,2,5\n"),
                           ("b.csv", "time,y,z,more\n0,1.0,5,0\n1,2.000001,5,0\n"),
                           ("c.csv", "time,y\n0,1\n"), ("d.csv", "time,y\n0,1\n1,nan\n")):
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as f:
                f.write(text)
        path = lambda name: os.path.join(self.folder, name)  # noqa: E731
        self.assertEqual(run.distance(path("a.csv"), path("a.csv"))[0], 0)
        worst, where = run.distance(path("a.csv"), path("b.csv"))
        self.assertAlmostEqual(worst, 5e-7, delta=1e-9)
        self.assertEqual(where, "y")
        self.assertEqual(run.distance(path("a.csv"), path("c.csv"))[0], float("inf"))
        self.assertEqual(run.distance(path("a.csv"), path("d.csv"))[0], float("inf"))


if __name__ == "__main__":
    unittest.main()
