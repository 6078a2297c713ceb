"""An emulated test bench in a process of its own and a run with a page in front of it."""

import os
import re
import subprocess
import time

CARDAN = os.environ["CARDAN"]
PATIENCE = 60  # s; a test that waits longer has failed

SYSTEM = """
cardan: 1
title: A machine on its bench
units:
  case:
    signals:
      speed: {{ shape: ramp, start: 0.2 s, duration: 1 s, amplitude: 1500, unit: rpm }}
      torque: {{ shape: step, start: 1.5 s, amplitude: 40, unit: N.m }}
      voltage: {{ shape: constant, value: 350, unit: V }}
      oil: {{ shape: constant, value: 30, unit: degC }}
  em:
    dcp: "{address}"
    description: em.dcpx
    session: {{ mode: srt, resolution: 10 ms, patience: 10 min }}
    bench: {{ case: "speed 0..1500 1/min; torque 0..{torque} N.m; voltage 0..400 V; avoid speed 0..50 1/min with torque", initial: "{initial}", watchdog: {watchdog}, gap: 1000 }}
{standby}
connections:
  - case.speed -> em.speed_ref
  - {{ from: case.torque, to: em.torque_ref, coupling: foh }}
  - case.voltage -> em.voltage_ref
  - case.oil -> em.oil_ref
run: {{ step: 10 ms, stop: {stop}, predict: hold, pace: realtime }}
results: em.mf4
"""


class Process:
    """Its output goes to a file, so that it never waits for a reader."""

    def __init__(self, test, folder, name, *command):
        self.test, self.name = test, name
        self.log = os.path.join(folder, name + ".log")
        with open(self.log, "w", encoding="utf-8") as f:
            self.process = subprocess.Popen([CARDAN, *command], cwd=folder, stdout=f, stderr=f)
        test.addCleanup(self.kill)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def said(self):
        with open(self.log, encoding="utf-8") as f:
            return f.read()

    def says(self, pattern):
        """Waits until its output has this; the match."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            over = self.process.poll() is not None
            found = re.search(pattern, self.said())
            if found:
                return found
            if over:
                break
            time.sleep(0.01)
        self.test.fail(f"{self.name} did not say {pattern}: {self.said()}")

    def wait(self):
        """Exit code."""
        code = self.process.wait(timeout=PATIENCE)
        for bad in ("AddressSanitizer", "runtime error", "ThreadSanitizer"):
            self.test.assertNotIn(bad, self.said())
        return code


class Bench(Process):
    def __init__(self, test, folder, *options):
        super().__init__(test, folder, "bench", "bench", "em", "--listen", "udp://127.0.0.1:0",
                         "--write-description", "em.dcpx", "--once", "--watchdog", "5 s", *options)
        self.address = self.says(r"listening at (\S+)\n")[1]

    def phases(self):
        return re.findall(r"^phase ([a-z ]+)", self.said(), re.M)


class BenchRun(Process):
    """`cardan run --ui`, until it has printed its address."""

    def __init__(self, test, folder, bench, *options, torque=100, initial="oil 30 degC", stop="10 min", standby="",
                 watchdog="5 s"):
        with open(os.path.join(folder, "em.yaml"), "w", encoding="utf-8") as f:
            f.write(SYSTEM.format(address=bench.address, torque=torque, initial=initial, stop=stop, standby=standby,
                                  watchdog=watchdog))
        super().__init__(test, folder, "run", "run", "em.yaml", "--ui", "--ui-address", "127.0.0.1:0", *options)
        self.url = self.says(r"live\s+(http\S+)\n")[1]
        self.port = int(re.search(r":(\d+)/", self.url)[1])
        self.token = self.url.split("token=")[1]
