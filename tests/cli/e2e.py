"""What the end-to-end tests share: the built command, a folder per test, FMUs to bend."""

import csv
import json
import math
import os
import shutil
import subprocess
import tempfile
import unittest
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
CARDAN = os.environ["CARDAN"]
FMUS = os.environ["CARDAN_FMUS"]
TMP = os.environ.get("CARDAN_TMP")


def fmu(name, version=2):
    return os.path.join(FMUS, f"fmi{version}", name + ".fmu")


class EndToEnd(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="e2e_", dir=TMP)
        self.unpack = self.path("unpack")  # where the command unpacks FMUs
        os.mkdir(self.unpack)
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)
        return self.path(name)

    def environment(self, leaks=False):
        # FMI forbids to free an instance after a fatal error: the FMU leaks then.
        more = {"ASAN_OPTIONS": "detect_leaks=0"} if leaks else {}
        return dict(os.environ, TMPDIR=self.unpack, **more)

    def cardan(self, *arguments, code=0, says=(), leaks=False, **options):
        """Run the command in the test's folder and check its exit code and what it says."""
        done = subprocess.run([CARDAN, *map(str, arguments)], cwd=self.folder,
                              env=self.environment(leaks), capture_output=True, text=True,
                              timeout=120, **options)
        what = f"cardan {' '.join(map(str, arguments))}\n{done.stdout}\n{done.stderr}"
        self.assertIn(done.returncode, code if isinstance(code, tuple) else (code,), what)
        code = done.returncode
        for part in [says] if isinstance(says, str) else says:
            self.assertIn(part, done.stderr, what)
        self.assertNotIn("AddressSanitizer", done.stderr, what)
        self.assertNotIn("runtime error", done.stderr, what)
        self.assertEqual(os.listdir(self.unpack), [], "left behind by " + what)
        if code and (done.stderr or code != 1):  # differing results are no message
            self.assertIn("cardan: ", done.stderr, what)
        return done

    def cardan_json(self, *arguments, code=0):
        return json.loads(self.cardan(*arguments, "--json", code=code).stdout)

    def table(self, name):
        """Column names and columns of numbers; every row must be whole."""
        with open(self.path(name), newline="", encoding="utf-8") as f:
            text = f.read()
        self.assertTrue(text.endswith("\n"), f"{name} ends within a row")
        rows = list(csv.reader(text.splitlines()))
        self.assertTrue(all(len(r) == len(rows[0]) for r in rows), f"{name} has torn rows")
        return rows[0], [[float(x) for x in column] for column in zip(*rows[1:])]

    def column(self, name, signal):
        names, columns = self.table(name)
        self.assertIn(signal, names)
        return columns[names.index(signal)]

    def oscillator(self, version=2):
        """The two-FMU system beside its FMUs."""
        for name in ("lo_fd1", "lo_fd2"):
            shutil.copy(fmu(name, version), self.folder)
        shutil.copy(os.path.join(HERE, "oscillator.yaml"), self.folder)
        return "oscillator.yaml"

    def bend(self, source, name="bent.fmu", remove=(), add=None, xml=None):
        """A copy of an FMU without some entries, with others, with its description changed."""
        with zipfile.ZipFile(source) as old, zipfile.ZipFile(self.path(name), "w") as new:
            for entry in old.infolist():
                if any(entry.filename.startswith(r) for r in remove):
                    continue
                data = old.read(entry)
                if entry.filename == "modelDescription.xml" and xml:
                    data = xml(data.decode()).encode()
                new.writestr(entry.filename, data)
            for entry, data in (add or {}).items():
                new.writestr(entry, data)
        return name

    def black_box(self, name, version=2):
        """The FMU without partial derivatives."""
        def without(text):
            for word in ("providesDirectionalDerivatives", "providesDirectionalDerivative"):
                text = text.replace(word + '="true"', word + '="false"')
            return text
        return self.bend(fmu(name, version), f"{name}{version}.fmu", xml=without)


def near(a, b, tolerance):
    return math.isfinite(a) and abs(a - b) <= tolerance
