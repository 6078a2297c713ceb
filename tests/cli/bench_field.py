"""A test field for the tests: two benches in processes of their own, a car around them, and what
their traces say about how they stopped."""

import csv
import json
import os
import signal
import subprocess
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

from e2e import CARDAN, FMUS, HERE, EndToEnd

PATIENCE = 180  # s, for anything that will come
SPEED_DOWN, SAFE = 6, 10  # phases
SAFE_SPEED = 100  # 1/min: the voltage is held above


class Beside(unittest.TestSuite):
    """Tests that wait for clocks most of the time, some at once."""

    at_once = 3

    def run(self, result, debug=False):
        lock = threading.Lock()

        def one(test):
            own = unittest.TestResult()
            test.run(own)
            with lock:
                result.startTest(test)
                for name in ("failures", "errors", "skipped"):
                    getattr(result, name).extend(getattr(own, name))
                if own.wasSuccessful() and not own.skipped:
                    result.addSuccess(test)
                else:
                    print(f"{test.id()}: " + "".join(
                        text for _, text in own.failures + own.errors + own.skipped), flush=True)
                result.stopTest(test)

        with ThreadPoolExecutor(self.at_once) as pool:
            list(pool.map(one, self))
        return result


class Process:
    """A command that runs beside the test. Its output goes to files: nobody has to read along."""

    def __init__(self, test, name, *command):
        self.test, self.name = test, name
        self.begin = time.monotonic()
        self.out, self.err = test.path(name + ".out"), test.path(name + ".err")
        unpack = test.path(name + "_unpack")  # whoever is killed leaves something there
        os.makedirs(unpack, exist_ok=True)
        with open(self.out, "w") as out, open(self.err, "w") as err:
            self.process = subprocess.Popen([str(c) for c in command], cwd=test.folder,
                                            stdout=out, stderr=err,
                                            env=dict(os.environ, TMPDIR=unpack))
        test.addCleanup(self.kill)

    def says(self):
        with open(self.out, encoding="utf-8") as f:
            return f.read()

    def complains(self):
        with open(self.err, encoding="utf-8") as f:
            return f.read()

    def wait_for(self, found, what):
        """Until `found()` is not None; its value."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            value = found()
            if value is not None:
                return value
            if self.process.poll() is not None:
                value = found()
                if value is not None:
                    return value
                self.test.fail(f"{self.name} ended before {what}: {self.says()}{self.complains()}")
            time.sleep(0.01)
        self.test.fail(f"{self.name}: {what} did not come\n{self.says()}{self.complains()}")

    def send(self, number):
        self.process.send_signal(number)

    def ended(self, code=0):
        self.process.wait(timeout=PATIENCE)
        said = self.says() + self.complains()
        self.test.assertEqual(self.process.returncode, code, said)
        for part in ("AddressSanitizer", "runtime error", "ThreadSanitizer"):
            self.test.assertNotIn(part, said)
        return self.complains()

    def cpu_share(self):
        """Of its time so far, while it runs."""
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        used = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return used / (time.monotonic() - self.begin)

    def kill(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait()


class Bench(Process):
    def __init__(self, test, kind, *options, prefix=(), listen="udp://127.0.0.1:0", name=None):
        self.trace = test.path((name or kind) + "_trace.csv")
        super().__init__(test, name or kind, *prefix, CARDAN, "bench", kind, "--listen", listen,
                         "--write-description", test.path(kind + ".dcpx"), "--trace", self.trace,
                         "--json", *options)
        self.address = self.wait_for(lambda: next(
            (e["address"] for e in self.events() if e["event"] == "listening"), None), "listening")

    def events(self):
        text = self.says()
        return [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]

    def phases(self):
        return [e["phase"] for e in self.events() if e["event"] == "phase"]

    def until(self, phase):
        self.wait_for(lambda: phase in self.phases() or None, phase)

    def last(self, field, event="phase"):
        return [e[field] for e in self.events() if e["event"] == event][-1]

    def summary(self):
        """Ends it; what it counted."""
        self.send(signal.SIGTERM)
        self.ended()
        end = self.events()[-1]
        self.test.assertEqual(end["event"], "ended")
        # every PDU that came is one of these
        self.test.assertEqual(end["received"], end["requests"] + end["dropped"] + end["data_in"] +
                              end["data_old"] + end["data_dropped"])
        self.test.assertEqual(end["data_old"], end["data_duplicates"] + end["data_reordered"])
        self.test.assertEqual(end["unread"], 0)
        return end

    def rows(self):
        """The trace by the names of its columns; a row that is being written is left out."""
        with open(self.trace, newline="", encoding="utf-8") as f:
            text = f.read()
        lines = list(csv.reader(text[:text.rfind("\n") + 1].splitlines()))
        names = [n.split(" [")[0] for n in lines[0]]
        return [dict(zip(names, map(float, line))) for line in lines[1:]]


class Field(EndToEnd):
    """The two benches and the car, and a bad network between them if wanted."""

    watchdog = "300 ms"
    step = "10 ms"

    def benches(self, ice=(), em=(), **options):
        common = ["--speed-up", "500", "--watchdog", self.watchdog, "--realtime"]
        return (Bench(self, "ice", *common, *ice, **options),
                Bench(self, "em", *common, *em, **options))

    def emulator(self, engine, machine, *options, prefix=(), listen="udp://127.0.0.1:0"):
        listens = listen if isinstance(listen, tuple) else (listen, listen)
        link = Process(self, "link", *prefix, CARDAN, "dcp", "emulate", "--listen", listens[0],
                       "--to", engine.address, "--listen", listens[1], "--to", machine.address,
                       "--json", "--realtime", *options)
        channels = link.wait_for(
            lambda: json.loads(link.says())["channels"] if link.says().endswith("\n") else None,
            "listening")
        link.addresses = [c["at"] for c in channels]
        return link

    def passed(self, link):
        """Ends the emulator; what became of everything that came to it."""
        link.send(signal.SIGTERM)
        link.ended()
        end = json.loads(link.says().splitlines()[-1])
        for way in ("there", "back"):
            c = end[way]
            self.assertEqual(c["received"] + c["duplicated"],
                             c["sent"] + c["lost"] + c["cut"] + c["queue_full"] + c["no_room"] +
                             c["nowhere"] + c["unsent"] + c["waiting"])
            self.assertEqual(c["nowhere"] + c["unsent"] + c["waiting"] + c["no_room"], 0)
        return end

    def system(self, engine, machine, stop, name="field", **more):
        values = {"fmus": os.path.join(FMUS, "fmi2"), "engine": engine, "machine": machine,
                  "step": self.step, "stop": stop, "watchdog": self.watchdog, "gap": 200,
                  "lead": "0 s", "session": "", "units": "", "pace": "realtime",
                  "torque": "controller.machine_torque", "soc": "battery.soc",
                  "file": name + ".mf4"}
        values.update(more)
        with open(os.path.join(HERE, "two_benches.yaml"), encoding="utf-8") as f:
            return self.write(name + ".yaml", f.read() % values)

    def start(self, name="field", *options, prefix=()):
        return Process(self, "run_" + name, *prefix, CARDAN, "run", name + ".yaml", "--json",
                       "--quiet", *options)

    @staticmethod
    def report(run):
        return json.loads(run.says())

    def links(self, run):
        return {u["name"]: u["link"] for u in self.report(run)["units"] if u["link"]}

    def turning(self, *benches):
        """Until they run, with a torque and at speed."""
        for bench in benches:
            bench.until("run")
            bench.wait_for(lambda b=bench: any(
                r["phase"] == 5 and r["speed"] > 1000 and
                (r.get("voltage_dc", 400) > 320 and abs(r.get("torque_ref", 10)) > 5)
                for r in b.rows()[-3:]) or None, "speed, voltage and torque")

    def check_stop(self, bench, reason, watchdog=None):
        """The trace of the last stop: torque first, then speed, then voltage; and why."""
        bench.until("safe")
        self.assertEqual(bench.last("reason"), reason, bench.says())
        rows = bench.wait_for(lambda: next((r for r in [bench.rows()] if r[-1]["phase"] == SAFE),
                                           None), "the end of the trace")
        begin = max(i for i, r in enumerate(rows) if r["phase"] == 5) + 1
        before, stop = rows[begin - 1], rows[begin:]
        self.assertEqual(stop[0]["phase"], SPEED_DOWN)
        self.assertEqual([r["phase"] for r in stop], sorted(r["phase"] for r in stop))
        # torque at once, whatever the speed
        set_torque = "pedal_ref" if "pedal_ref" in before else "torque_ref"
        for r in stop:
            self.assertEqual(r[set_torque], 0, r)
        gone = next(r["time"] for r in stop if self.without_torque(r))
        # then speed, down all the way, at its rate
        slow = next(r["time"] for r in stop if abs(r["speed"]) <= SAFE_SPEED)
        self.assertGreater(before["speed"], 1000)
        self.assertLess(gone, slow)
        for a, b in zip(stop, stop[1:]):
            self.assertLessEqual(b["speed_ref"], a["speed_ref"] + 1e-6)
        # then voltage: held while it is fast
        if "voltage_dc" in before:
            self.assertGreater(before["voltage_dc"], 300)
            for r in stop:
                if r["speed"] > SAFE_SPEED + 20:
                    self.assertGreater(r["voltage_dc"], before["voltage_dc"] - 20, r)
            low = next(r["time"] for r in stop if r["voltage_dc"] < 60)
            self.assertLess(slow, low)
            self.assertLess(abs(rows[-1]["voltage_dc"]), 10)
        self.assertLess(abs(rows[-1]["speed"]), 10)
        self.assertTrue(self.without_torque(rows[-1]))
        if watchdog is not None:  # it begins when data have been missing for so long, and no later
            self.assertGreater(before["data_age"], watchdog - 0.02)
            self.assertLess(stop[0]["data_age"], watchdog + 0.005)
        return before, stop

    @staticmethod
    def without_torque(row):
        """Nothing is driven any more: an engine drags."""
        return row["fuel"] < 1e-4 if "fuel" in row else abs(row["torque_calc"]) < 5

    def check_recording(self, until, name="field", finished=True):
        """It opens, has the run up to there, and can be drawn."""
        info = self.cardan_json("info", name + ".mf4")
        self.assertEqual(info["finished"], finished)
        self.assertGreaterEqual(info["stop"], until)
        self.cardan("plot", name + ".mf4", "--variables", "machine.speed", "-o", name + ".svg")
        self.assertTrue(os.path.getsize(self.path(name + ".svg")) > 1000)
        return info
