#!/usr/bin/env python3
"""The FMU of `cardan export dcp` in FMPy: what the slave's own FMU gives there, bit for bit.

peer_dcp_fmu.py CC: a C compiler. The slave is `cardan dcp slave` on loopback, in NRT. FMI 2.0 and
3.0; FMPy's validation finds nothing; a second run gives the same, and so does the FMU built from its
own sources.
"""

import os
import signal
import subprocess
import sys
import zipfile

import numpy as np
from fmpy import read_model_description, simulate_fmu
from fmpy.validation import validate_fmu

from golden import CARDAN, TMP, Checks, cardan, fmu

CC = sys.argv[1]
STEP, STOP = 1 / 64, 0.5  # times without rounding: FMPy's step is a difference of two


class Slave:
    def __init__(self, unit):
        self.description = os.path.join(TMP, "slave.dcpx")
        self.process = subprocess.Popen(
            [CARDAN, "dcp", "slave", unit, "--listen", "udp://127.0.0.1:0", "--write-description",
             self.description], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline().startswith("listening at ")

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        out = self.process.communicate(timeout=60)[0]
        return self.process.returncode, out.strip()


def drive():
    t = np.arange(round(STOP / STEP) + 1) * STEP
    data = np.zeros(len(t), dtype=[("time", float), ("u", float)])
    data["time"] = t
    data["u"] = np.sin(9 * t)
    return data


def simulated(path, **start):
    return simulate_fmu(path, fmi_type="CoSimulation", step_size=STEP, output_interval=STEP,
                        stop_time=STOP, output=["x", "v", "a"], input=drive(),
                        start_values=start)


def same(a, b):
    return all(np.array_equal(a[n], b[n]) for n in ("time", "x", "v", "a"))


def built(path, version):
    """The FMU with a library that was compiled from its sources alone."""
    folder = os.path.join(TMP, f"sources{version}")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
    sources = [os.path.join(folder, "sources", n) for n in os.listdir(folder + "/sources")
               if n.endswith(".c")]
    library = next(os.path.join(d, n) for d, _, names in os.walk(folder + "/binaries")
                   for n in names if n.endswith(".so"))
    os.remove(library)
    subprocess.run([CC, "-shared", "-fPIC", "-O1", "-std=gnu17", "-fvisibility=hidden", "-o",
                    library, *sources, "-lm"], check=True)
    target = os.path.join(TMP, f"built{version}.fmu")
    with zipfile.ZipFile(target, "w") as archive:
        for d, _, names in os.walk(folder):
            for n in names:
                archive.write(os.path.join(d, n), os.path.relpath(os.path.join(d, n), folder))
    return target


def main():
    checks = Checks(__doc__)
    own = fmu("driven_oscillator")
    expected = simulated(own, zeta=0.25)
    slave = Slave(own)
    runs = 0
    for version in (2, 3):
        path = os.path.join(TMP, f"far{version}.fmu")
        cardan("export", "dcp", slave.description, "--fmi", version, "--step", STEP, "-o",
               path)
        problems = validate_fmu(path)
        checks.true(f"FMI {version}.0: FMPy's validation", not problems, "; ".join(problems))
        md = read_model_description(path)
        names = [v.name for v in md.modelVariables]
        checks.true(f"FMI {version}.0: variables", {"u", "x", "dcp.address", "dcp.mode"} <=
                    set(names), " ".join(names))
        for what, file in (("", path), (" again", path), (" from its sources",
                                                         built(path, version))):
            checks.true(f"FMI {version}.0{what}: all bits of the slave's own FMU",
                        same(expected, simulated(file, zeta=0.25)))
            runs += 1
    other = simulated(path, zeta=0.5)
    checks.true("another parameter gives something else", not same(expected, other))
    code, said = slave.end()
    checks.true("the slave ends in order", code == 0 and f"{runs + 1} sessions" in said, said)
    checks.end()


if __name__ == "__main__":
    main()
