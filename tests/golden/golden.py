"""What the golden tests share: systems run by the built command, and checks that show both numbers.

From the environment: CARDAN, the command; CARDAN_FMUS, the folder with fmi2/ and fmi3/;
CARDAN_SYSTEMS, the example systems; CARDAN_TMP, where to work. With --all every combination is run
(`make test-long`), else those that say something new.
"""

import atexit
import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
CARDAN = os.environ["CARDAN"]
FMUS = os.environ["CARDAN_FMUS"]
SYSTEMS = os.environ["CARDAN_SYSTEMS"]
TMP = tempfile.mkdtemp(prefix="golden_", dir=os.environ.get("CARDAN_TMP"))
atexit.register(shutil.rmtree, TMP, ignore_errors=True)

IN_SYSTEMS = re.compile(r"\.\./\.\./build/fmus/fmi2/(\w+)\.fmu")
KINDS = ("2", "3", "mixed")  # FMI versions of the units; mixed: 2, 3, 2, ...
ALL = "--all" in sys.argv


def kinds(turn):
    """All three, or one of them in turn."""
    return KINDS if ALL else (KINDS[turn % 3],)


def fmu(name, kind="2"):
    return os.path.join(FMUS, "fmi" + kind, name + ".fmu")


def parse(path):
    """Name -> array of a result; text columns are left out."""
    with open(path, newline="", encoding="utf-8") as f:
        names = next(csv.reader(f))
        rows = np.loadtxt(f, delimiter=",", ndmin=2)
    return dict(zip(names, rows.T))


SPOILT = (0, 3)  # published runs that are mostly error end with 3, as they should


def cardan(*arguments, code=0, environment=None):
    done = subprocess.run([CARDAN, *map(str, arguments)], cwd=TMP, capture_output=True, text=True,
                          timeout=120, env=dict(os.environ, **(environment or {})))
    if done.returncode not in (code if isinstance(code, tuple) else (code,)):
        raise AssertionError(f"exit code {done.returncode}, expected {code}: cardan "
                             f"{' '.join(map(str, arguments))}\n{done.stdout}{done.stderr}")
    return done


def place(system, kind="2", edits=(), folder=None):
    """An example system with FMUs of this kind; each edit (old, new) has to find its text."""
    with open(os.path.join(SYSTEMS, system + ".yaml"), encoding="utf-8") as f:
        text = f.read()
    for old, new in edits:
        if old not in text:
            raise AssertionError(f"{system}.yaml has no '{old}'")
        text = text.replace(old, new)
    count = [0]

    def path(match):
        count[0] += 1
        version = kind if kind in "23" else "23"[(count[0] + 1) % 2]
        return os.path.join(folder or FMUS, "fmi" + version, match.group(1) + ".fmu")

    text = IN_SYSTEMS.sub(path, text)
    text = re.sub(r"circuit: ([^ ,}]+)", lambda m: "circuit: " + os.path.join(SYSTEMS, m.group(1)), text)
    file = os.path.join(TMP, f"{system}_{kind}.yaml")
    with open(file, "w", encoding="utf-8") as f:
        f.write(text)
    return file


def run(what, *arguments, sets=None, output="out.csv", **options):
    """Run a file; `sets` are start values, other options are those of the command (stop_time=1).
    Without the guard: among the published runs are some that swing up."""
    out = os.path.join(TMP, output)
    line = ["run", what, "-q", "-o", out, "--guard", "off", *arguments]
    for name, value in (sets or {}).items():
        line += ["--set", f"{name}={value}"]
    for name, value in options.items():
        line += ["--" + name.replace("_", "-"), value]
    cardan(*line, code=SPOILT)
    return parse(out)


def rewritten(names, *edits):
    """A folder like CARDAN_FMUS with copies of these FMUs; each edit (pattern, new) has to find
    something in each description."""
    folder = tempfile.mkdtemp(dir=TMP)
    for version in ("fmi2", "fmi3"):
        os.mkdir(os.path.join(folder, version))
        for name in names:
            target = os.path.join(folder, version, name + ".fmu")
            with zipfile.ZipFile(os.path.join(FMUS, version, name + ".fmu")) as old, \
                    zipfile.ZipFile(target, "w") as new:
                for entry in old.infolist():
                    data = old.read(entry)
                    if entry.filename == "modelDescription.xml":
                        for pattern, text in edits:
                            data, found = re.subn(pattern, text, data)
                            assert found, f"{name} has no {pattern}"
                    new.writestr(entry, data)
    return folder


NO_OUTPUT_DERIVATIVES = (rb'maxOutputDerivativeOrder="\d+"', b'maxOutputDerivativeOrder="0"')


def without_output_derivatives(*names):
    """Copies of these FMUs that say they give no derivatives.

    Rodriguez (2021) holds the inputs of the first step; the master would take derivatives of the
    outputs instead where units offer them.
    """
    return rewritten(names, NO_OUTPUT_DERIVATIVES)


def black_boxes(*names):
    """Copies of these FMUs that can do nothing but steps, and do not say what depends on what."""
    return rewritten(names, NO_OUTPUT_DERIVATIVES,
                     (rb'(canInterpolateInputs|canGetAndSetFMU[sS]tate|canSerializeFMU[sS]tate|'
                      rb'provides\w+Derivatives?|providesIntermediateUpdate)="true"',
                      rb'\1="false"'),
                     (rb' dependencies="[^"]*"', b""))


class Checks:
    """Counts, prints expected and found values, and ends the process with the verdict."""

    def __init__(self, title):
        self.count = self.failed = 0
        print(title, flush=True)

    def true(self, what, good, text=""):
        self.count += 1
        self.failed += not good
        text = " | ".join(text.split("\n")).strip(" |")
        print(f"{'ok    ' if good else 'FAILED'} {what}{': ' if text else ''}{text}", flush=True)

    def near(self, what, expected, found, tolerance):
        """Absolute tolerance; NaN fails."""
        self.true(what, abs(found - expected) <= tolerance,
                  f"expected {expected:.10g}, found {found:.10g}, difference "
                  f"{abs(found - expected):.2g}, tolerance {tolerance:.2g}")

    def below(self, what, found, limit):
        self.true(what, found <= limit, f"{found:.4g}, limit {limit:.4g}")

    def end(self):
        print(f"{self.count} checks, {self.failed} failed")
        sys.exit(1 if self.failed or not self.count else 0)


def printed(text, relative):
    """Value and absolute tolerance of a published number: its own digits, and `relative`."""
    digits = re.fullmatch(r"[-+]?(\d+)\.?(\d*)(?:[eE]([-+]?\d+))?", text)
    last = int(digits.group(3) or 0) - len(digits.group(2))
    return float(text), 0.5 * 10.0**last + relative * abs(float(text))


def table(name):
    """Rows of a reference file as dicts; lines with # are comments."""
    with open(os.path.join(HERE, "cosim", name), newline="", encoding="utf-8") as f:
        return list(csv.DictReader(line for line in f if not line.startswith("#")))
