"""The operator's desk and drivers from outside: benches in processes of their own, and clients of the
page's socket that do what pages do, and what they should not."""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

from bench_run import CARDAN, PATIENCE, Process
from client import Closed, WebSocket

TMP = os.environ.get("CARDAN_TMP")
SILENCE = "4 s"  # longer than a busy machine lets a process wait
RC = """* a pedal moves a voltage, which another one follows slowly
.input u source=V1 unit=V
V1 in 0 0
R1 in out 1k
C1 out 0 100u
.output v(out)
.end
"""
SYSTEM = """
cardan: 1
units:
  human:
    driver:
      accelerator: { min: 0, max: 100, unit: V, rate: 300, gamepad: button 7 }
      brake: { min: 0, max: 100, unit: "%", rest: 20 }
      selector: { items: [P, R, N, D] }
    silence: 3 s
  car: { circuit: rc.cir }
connections:
  - human.accelerator -> car.u
run: { step: 10 ms, stop: 1 h, pace: realtime }
results: { file: run.csv, exchange: exchange.mf4 }
"""


class Hand:
    """A page that gives signs of life, by a thread of its own, until it is dropped."""

    def __init__(self, test, port, token, unit):
        self.page, self.unit, self.values, self.alive = WebSocket(port, token), unit, None, True
        self.lock, self.ids, self.replies = threading.Lock(), 1000000, {}
        test.assertEqual(self.page.status, 101)
        self.beating = None

    def take(self):
        reply = self.page.do("take", unit=self.unit)
        if reply["ok"]:
            self.beating = threading.Thread(target=self.beat, daemon=True)
            self.beating.start()
        return reply

    def beat(self):
        while self.alive:
            with self.lock:
                self.ids += 1
                members = {} if self.values is None else {"values": self.values}
                try:
                    self.page.say(json.dumps({"id": self.ids, "do": "drive", "unit": self.unit, **members}))
                except OSError:
                    return
            time.sleep(0.05)  # the rhythm of a page; nothing is judged by it

    def do(self, verb, **members):
        with self.lock:
            self.page.id += 1
            number = self.page.id
            self.page.say(json.dumps({"id": number, "do": verb, **members}))
        return self.page.next("reply", lambda m: m["id"] == number)

    def drop(self):
        self.alive = False
        self.page.close()


class Web(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="desk_", dir=TMP)
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def command(self, name, *arguments):
        p = Process(self, self.folder, name, *arguments)
        p.url = p.says(r"live\s+(http\S+)\n")[1]
        p.port = int(re.search(r":(\d+)/", p.url)[1])
        p.token = p.url.split("token=")[1]
        return p

    def hand(self, p, unit):
        h = Hand(self, p.port, p.token, unit)
        self.addCleanup(h.drop)
        return h

    def rows(self, name):
        with open(os.path.join(self.folder, name), newline="", encoding="utf-8") as f:
            return list(csv.DictReader(f))


class Desk(Web):
    def bench(self, *options, kind="backtoback"):
        p = Process(self, self.folder, "bench", "bench", kind, "--listen", "udp://127.0.0.1:0", "--write-description",
                    "b.dcpx", "--trace", "trace.csv", "--watchdog", "5 s", "--speed-up", "500", *options)
        p.says(r"listening at (\S+)\n")
        p.phases = lambda: re.findall(r"^phase ([a-z ]+)", p.said(), re.M)
        return p

    def desk(self, *options):
        silence = () if "--silence" in options else ("--silence", "10 s")
        return self.command("desk", "bench", "desk", "b.dcpx", "--ui-address", "127.0.0.1:0", "--estop-address",
                            "127.0.0.1:0", *silence, *options)

    def running(self, desk, **levers):
        """A hand at a bench that runs with these set values."""
        h = self.hand(desk, "desk")
        h.page.next("wait", lambda m: m["asks"])
        self.assertTrue(h.page.do("prepare")["ok"])
        h.page.next("status", lambda m: m["state"] == "waiting")
        self.assertTrue(h.take()["ok"])
        self.assertTrue(h.do("start")["ok"])
        for name, value in levers.items():
            self.assertTrue(h.do("go", lever="desk." + name, target=value)["ok"])
            h.page.next("benches", lambda m, n=name, v=value: any(
                q["name"] == n.removesuffix("_ref") and q["measured"] is not None and abs(q["measured"] - v) < 0.02 * abs(v)
                for q in m["benches"][0]["limits"]))
        return h

    def end(self, desk, code=0):
        desk.process.send_signal(signal.SIGINT)
        self.assertEqual(desk.wait(), code, desk.said())

    def at_rest(self, bench):
        """The trace ends with a machine that stands, without torque and voltage."""
        bench.says(r"phase safe")
        last = self.rows("trace.csv")[-1]
        self.assertLess(abs(float(last["speed [rpm]"])), 30)
        self.assertLess(abs(float(last["voltage_ref [V]"])), 0.1)
        self.assertEqual(float(last["torque_ref [N.m]"]), 0)

    def test_a_bench_is_operated_by_hand(self):
        bench = self.bench()
        desk = self.desk("-o", "d.csv", "--session-record", "s.csv", "--case", "speed 0..2000 1/min; torque 0..0.2 N.m; voltage 0..30 V")
        w = self.hand(desk, "desk").page
        wait = w.next("wait")
        self.assertEqual((wait["asks"], wait["desk"], wait["state"]), (True, True, "starting"))
        self.assertIn("not ready", w.do("start")["error"])
        self.assertNotIn("phase", bench.said())  # nobody has spoken to it
        h = self.running(desk, voltage_ref=24, speed_ref=1000)
        hello = self.hand(desk, "desk").page.next("hello")
        self.assertEqual(hello["settings"], [])  # nothing goes past the desk
        levers = {x["name"]: x for x in hello["seats"][0]["levers"]}
        self.assertEqual((levers["speed_ref"]["max"], levers["torque_ref"]["max"]), (2000, 0.2))  # what was agreed
        for wrong, part in (({"target": 2001}, "expected 0 to 2000 rpm"), ({"target": -1}, "expected 0 to 2000"),
                            ({"target": 5, "rate": 1e6}, "up to 20000 rpm/s"), ({"target": 5, "rate": 0}, "above 0")):
            self.assertIn(part, h.do("go", lever="desk.speed_ref", **wrong)["error"])
        self.assertIn("no lever of 'desk'", h.do("go", lever="desk.sped", target=1)["error"])
        self.assertIn("no driver is called 'des'", h.do("take", unit="des")["error"])
        self.assertIn("cannot stand still", h.do("pause")["error"])
        self.assertTrue(h.do("go", lever="desk.speed_ref", target=0, rate=500)["ok"])
        self.assertTrue(h.do("go", lever="desk.speed_ref", target=None)["ok"])  # hold
        self.assertTrue(h.do("stop")["ok"])
        h.page.next("status", lambda m: m["state"] == "ended")
        self.end(desk)
        self.at_rest(bench)
        self.assertIn("stopped", desk.said())
        rows = self.rows("d.csv")
        column = next(c for c in rows[0] if c.startswith("desk.speed_ref"))
        set_values = [float(r[column]) for r in rows]
        self.assertEqual(set_values[0], 0)
        self.assertEqual(max(set_values), 1000)
        steps = [abs(b - a) for a, b in zip(set_values, set_values[1:])]
        self.assertLessEqual(max(steps), 20000 * 0.01 + 1e-6)
        self.assertTrue(all(s <= 500 * 0.01 + 1e-6 for s in steps[set_values.index(1000) + 1:]))  # the slow way down
        with open(os.path.join(self.folder, "s.csv"), encoding="utf-8") as f:
            self.assertIn('"stopped by a command"', f.read())

    def test_who_closes_the_page_stops_the_bench(self):
        bench = self.bench()
        desk = self.desk("--silence", SILENCE)
        h = self.running(desk, voltage_ref=24, speed_ref=800)
        h.drop()
        desk.says(r"nobody had the desk")
        self.at_rest(bench)
        self.assertIn("its page was silent for 4 s", desk.said())
        self.assertEqual([p for p in bench.phases() if p in ("run", "speed down", "voltage down", "stand down", "safe")],
                         ["run", "speed down", "voltage down", "stand down", "safe"])
        self.end(desk)

    def test_a_start_without_anybody_at_the_desk_ends(self):
        bench = self.bench()
        desk = self.desk("--silence", SILENCE)
        w = self.hand(desk, "desk").page
        w.next("wait")
        self.assertTrue(w.do("prepare")["ok"])
        w.next("status", lambda m: m["state"] == "waiting")
        self.assertTrue(w.do("start")["ok"])
        desk.says(r"nobody has taken it for 4 s")
        bench.says(r"phase safe")
        self.assertLess(max(abs(float(r["speed [rpm]"])) for r in self.rows("trace.csv")), 5)
        self.end(desk)

    def test_of_two_pages_one_has_the_desk(self):
        self.bench()
        desk = self.desk()
        h = self.running(desk, voltage_ref=24, speed_ref=500)
        other = self.hand(desk, "desk")
        other.page.next("hello")
        self.assertIn("another page has 'desk'", other.take()["error"])
        for verb, members in (("go", {"lever": "desk.speed_ref", "target": 2000}), ("drive", {"unit": "desk"}),
                              ("drive", {"unit": "desk", "values": [0] * 7}), ("release", {"unit": "desk"})):
            self.assertIn("does not have 'desk'", other.page.do(verb, **members)["error"])
        self.assertTrue(h.do("release", unit="desk")["ok"])
        h.alive = False
        h.beating.join()
        self.assertTrue(other.take()["ok"])  # within the silence: the bench goes on
        self.assertIn("does not have 'desk'", h.do("go", lever="desk.speed_ref", target=1)["error"])
        self.assertTrue(other.do("go", lever="desk.speed_ref", target=0)["ok"])
        self.assertTrue(other.do("emergency")["ok"])  # the other one may do that, too: everybody may
        self.assertEqual(other.page.next("status", lambda m: m["state"] == "ended")["end"], "failed")
        self.end(desk, code=1)

    def test_a_page_that_floods_loses_the_desk_and_the_bench_stops(self):
        bench = self.bench()
        desk = self.desk("--silence", SILENCE)
        h = self.running(desk, voltage_ref=24, speed_ref=500)
        h.alive = False
        h.beating.join()
        with self.assertRaises((Closed, OSError)):
            while True:
                for _ in range(250):
                    h.page.say('{"id":1,"do":"go","lever":"desk.speed_ref","target":2000,"rate":1}')
                closed = h.page.ending()
                self.assertEqual(closed.code, 1008)
                raise closed
        desk.says(r"nobody had the desk")
        self.at_rest(bench)
        self.end(desk)

    def test_a_fault_is_acknowledged_and_the_bench_prepared_again(self):
        bench = self.bench("--fault", "emergency-stop@0.5s")
        desk = self.desk("-o", "d.csv")
        h = self.hand(desk, "desk")
        h.page.next("wait")
        self.assertTrue(h.page.do("prepare")["ok"])
        h.page.next("status", lambda m: m["state"] == "waiting")
        self.assertIn("has begun already", h.page.do("prepare")["error"])
        self.assertTrue(h.take()["ok"])
        self.assertTrue(h.do("start")["ok"])
        over = h.page.next("status", lambda m: m["state"] == "ended")
        self.assertEqual(over["end"], "failed")
        h.alive = False
        h.beating.join()
        bench.says(r"phase safe")
        self.assertTrue(h.do("prepare")["ok"])  # acknowledged
        desk.says(r"(?s)live .*live ")
        w = self.hand(desk, "desk").page  # at the same place, with the same token
        self.assertTrue(w.next("wait")["asks"])
        self.assertTrue(w.do("prepare")["ok"])
        w.next("status", lambda m: m["state"] == "waiting")
        self.assertTrue(w.do("stop")["ok"])
        desk.says(r"session 2")
        self.assertTrue(os.path.exists(os.path.join(self.folder, "d-2.csv")))
        self.end(desk)

    def test_a_sensor_is_calibrated_by_two_points_and_the_bench_uses_it(self):
        wrong = ("--ideal", "--misread", "speed=0.9+0.5")
        bench = self.bench(*wrong)
        desk = self.desk("--calibration", "c.json", "--session-record", "s.csv")
        h = self.hand(desk, "desk")
        h.page.next("wait", lambda m: m["asks"])
        self.assertTrue(h.page.do("prepare")["ok"])
        h.page.next("status", lambda m: m["state"] == "waiting")
        self.assertTrue(h.take()["ok"])
        self.assertTrue(h.do("start")["ok"])

        def measured(set_value, expected):
            """The speed that is measured once it stands still near to what is expected."""
            self.assertTrue(h.do("go", lever="desk.speed_ref", target=set_value)["ok"])
            m = h.page.next("benches", lambda m: abs((m["benches"][0]["limits"][0]["measured"] or 0) - expected) < 1)
            return m["benches"][0]["limits"][0]["measured"]
        self.assertTrue(h.do("go", lever="desk.voltage_ref", target=30)["ok"])
        speeds = h.page.next("benches")["benches"][0]["limits"]
        self.assertEqual(speeds[0]["name"], "speed", speeds)
        at = [[1000, measured(1000, 900.5)], [2000, measured(2000, 1800.5)]]
        for points, by, part in (([at[0], at[0]], "A", "twice"), ([at[0], [2000, at[0][1]]], "A", "different readings"),
                                 ([[1000, at[1][1]], [2000, at[0][1]]], "A", "the reading falls while the value rises"),
                                 ([[0, 0], [1000, 100]], "A", "gain = 10, expected 0.5 to 2"),
                                 ([[0, 0], [10, 10]], "A", "expected 468 at least, a twentieth of its range"),
                                 ([[0, 5000], [1000, 6000]], "A", "off by more than the two points are apart"),
                                 (at, "", "nobody has done it"), (at[:1], "A", "expected two of reference"),
                                 ([[None, 1], [2, 3]], "A", "expected two of reference")):
            self.assertIn(part, h.do("calibrate", name="bench.speed", points=points, by=by)["error"])
        self.assertIn("no measured value", h.do("calibrate", name="bench.sped", points=at, by="A")["error"])
        self.assertFalse(os.path.exists(os.path.join(self.folder, "c.json")))
        self.assertTrue(h.do("calibrate", name="bench.speed", points=at, by="E. Noether")["ok"])
        with open(os.path.join(self.folder, "c.json"), encoding="utf-8") as f:
            stored = json.load(f)["sensors"][0]
        self.assertEqual((stored["name"], stored["by"], stored["unit"]), ("speed", "E. Noether", "rpm"))
        self.assertRegex(stored["date"], r"^20\d\d-\d\d-\d\dT")
        # The sensor reads 0.9 x + 0.5, so x = (reading - 0.5) / 0.9
        self.assertAlmostEqual(stored["gain"], 1 / 0.9, delta=3e-3)  # each point is within 1 of 1000
        self.assertAlmostEqual(stored["offset"], -0.5 / 0.9, delta=4)
        self.assertTrue(h.do("stop")["ok"])
        h.page.next("status", lambda m: m["state"] == "ended")
        self.end(desk)
        bench.process.send_signal(signal.SIGINT)
        self.assertEqual(bench.wait(), 0)

        bench = self.bench(*wrong, "--calibration", "c.json")
        desk = self.desk("--calibration", "c.json", "--session-record", "s.csv")
        h = self.running(desk, voltage_ref=30, speed_ref=1500)  # measured as set: it reads right now
        b = h.page.next("benches")["benches"][0]
        self.assertEqual([(c["name"], c["by"]) for c in b["calibrations"]], [("speed", "E. Noether")])
        # A second calibration begins from the readings, not from what the first one made of them.
        again = [[1000, 1000], [2000, 2000]]
        self.assertTrue(h.do("calibrate", name="bench.speed", points=again, by="A. Second")["ok"])
        with open(os.path.join(self.folder, "c.json"), encoding="utf-8") as f:
            second = json.load(f)["sensors"]
        self.assertEqual((len(second), second[0]["by"]), (1, "A. Second"))
        self.assertAlmostEqual(second[0]["gain"], stored["gain"], delta=1e-9)
        self.assertAlmostEqual(second[0]["offset"], stored["offset"], delta=1e-6)
        self.assertTrue(h.do("stop")["ok"])
        h.page.next("status", lambda m: m["state"] == "ended")
        self.end(desk)
        with open(os.path.join(self.folder, "s.csv"), encoding="utf-8") as f:
            self.assertRegex(f.read(), r"speed calibrated 20\S+ by E. Noether")
        for text, part in (('{"calibration": 2}', "is no calibration"),
                           (json.dumps({"calibration": 1, "sensors": [{**stored, "gain": 1}]}), "but its points give"),
                           (json.dumps({"calibration": 1, "sensors": [{**stored, "name": "sped"}]}), "no such output"),
                           (json.dumps({"calibration": 1, "sensors": [{**stored, "unit": "V"}]}), "no such output")):
            with open(os.path.join(self.folder, "bad.json"), "w", encoding="utf-8") as f:
                f.write(text)
            done = subprocess.run([CARDAN, "bench", "backtoback", "--calibration", "bad.json", "--listen", "udp://127.0.0.1:0"],
                                  cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE, check=False)
            self.assertIn(part, done.stderr)
            self.assertNotEqual(done.returncode, 0)

    def test_a_unit_that_is_served_as_a_bench_has_a_desk_and_calibrations(self):
        sensor = {"name": "v(out)", "unit": "V", "points": [[0, 0], [10, 5]], "gain": 2, "offset": 0,
                  "date": "2026-11-17T13:45:00Z", "by": "me"}
        for name, text in (("rc.cir", RC), ("c.json", json.dumps({"calibration": 1, "sensors": [sensor]})),
                           ("bench.yaml", "bench: 1\ncalibration: c.json\nquantities:\n  level: { role: other, set: u, "
                            "measured: v(out), limits: 0..10 V rate 100 V/s }\nwatchdog: 5 s\n")):
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as f:
                f.write(text)
        slave = Process(self, self.folder, "slave", "dcp", "slave", "rc.cir", "--bench", "bench.yaml", "--listen", "udp://127.0.0.1:0",
                        "--write-description", "b.dcpx")
        slave.says(r"listening at (\S+)\n")
        desk = self.desk()
        h = self.hand(desk, "desk")
        h.page.next("wait", lambda m: m["asks"])
        self.assertTrue(h.page.do("prepare")["ok"])
        h.page.next("status", lambda m: m["state"] == "waiting")
        self.assertTrue(h.take()["ok"])
        self.assertTrue(h.do("start")["ok"])
        self.assertTrue(h.do("go", lever="desk.u", target=4)["ok"])
        b = h.page.next("benches")["benches"][0]
        self.assertEqual([(c["name"], c["gain"]) for c in b["calibrations"]], [("v(out)", 2)])
        self.assertTrue(h.do("watch", signals=["bench.v(out)"])["ok"])
        for _ in range(1000):
            if abs(h.page.next("frame").values[0][-1] - 8) < 0.01:  # 4 V, read by a sensor that needs a gain of 2
                break
        else:
            self.fail("the sensor is not calibrated")
        self.assertTrue(h.do("stop")["ok"])
        h.page.next("status", lambda m: m["state"] == "ended")
        self.end(desk)

    def test_a_plain_slave_is_refused(self):
        with open(os.path.join(self.folder, "rc.cir"), "w", encoding="utf-8") as f:
            f.write(RC)
        with open(os.path.join(self.folder, "rc.yaml"), "w", encoding="utf-8") as f:
            f.write("cardan: 1\nunits: { rc: { circuit: rc.cir } }\nrun: { step: 10 ms, stop: 1 s }\n")
        subprocess.run([CARDAN, "dcp", "describe", "rc.cir", "-o", "rc.dcpx"], cwd=self.folder, check=True, timeout=PATIENCE,
                       stdout=subprocess.DEVNULL)
        done = subprocess.run([CARDAN, "bench", "desk", "rc.dcpx"], cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE,
                              check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("has no bench extension", done.stderr)


class Driver(Web):
    def setUp(self):
        super().setUp()
        with open(os.path.join(self.folder, "rc.cir"), "w", encoding="utf-8") as f:
            f.write(RC)
        self.write(SYSTEM)

    def write(self, text):
        with open(os.path.join(self.folder, "s.yaml"), "w", encoding="utf-8") as f:
            f.write(text)

    def run_it(self, *options):
        return self.command("run", "run", "s.yaml", "--ui", "--ui-address", "127.0.0.1:0", *options)

    def test_a_driver_moves_the_car_and_a_replay_has_the_same_bits(self):
        run = self.run_it("--ui-wait")
        h = self.hand(run, "human")
        hello = h.page.next("hello")
        self.assertEqual([x["name"] for x in hello["seats"][0]["levers"]], ["accelerator", "brake", "selector"])
        self.assertEqual(hello["seats"][0]["levers"][2]["items"], ["P", "R", "N", "D"])
        self.assertFalse(hello["desk"])
        h.values = [0, 20, 0]
        self.assertTrue(h.take()["ok"])
        self.assertTrue(h.do("start")["ok"])
        self.assertTrue(h.do("watch", signals=["human.accelerator", "human.brake", "human.selector", "car.v(out)"])["ok"])
        last = lambda f: [v[-1] for v in f.values]  # noqa: E731
        for values in ([80, 0, 3], [33.25, 10, 2], [100, 0, 3]):
            h.values = values
            h.page.next("frame", lambda m: True)
            for _ in range(1000):
                if last(h.page.next("frame"))[:3] == values:
                    break
            else:
                self.fail(f"the levers do not come to {values}")
        h.alive = False  # silent, with the connection open: a browser that hangs
        h.beating.join()
        for _ in range(1000):
            if last(h.page.next("frame"))[:3] == [0, 20, 0]:
                break
        else:
            self.fail("the levers do not go to rest")
        h.page.next("status", lambda m: m["seats"][0] == {"taken": False, "lost": 1, "targets": [100, 0, 3]})
        self.assertIn("does not have 'human'", h.do("drive", unit="human", values=[100, 0, 3])["error"])
        self.assertTrue(h.do("stop")["ok"])
        self.assertEqual(run.wait(), 0, run.said())
        self.assertIn("its levers go to rest", run.said())
        again = subprocess.run([CARDAN, "replay", "exchange.mf4", "--play", "human", "-o", "again.csv"], cwd=self.folder,
                               capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(again.returncode, 0, again.stderr)
        first, second = self.rows("run.csv"), self.rows("again.csv")
        output = next(c for c in first[0] if c.startswith("car.v(out)"))
        self.assertGreater(max(float(r[output]) for r in first), 20)
        n = min(len(first), len(second))
        self.assertGreater(n, len(first) - 3)
        self.assertEqual([r[output] for r in second[:n]], [r[output] for r in first[:n]])
        closed = subprocess.run([CARDAN, "replay", "exchange.mf4"], cwd=self.folder, capture_output=True, text=True,
                                timeout=PATIENCE, check=False)
        self.assertIn("'human' is driven by hand and is not run again; --play human", closed.stderr)

    def test_a_page_that_may_only_look_drives_nothing(self):
        run = self.run_it("--ui-read-only")
        w = self.hand(run, "human").page
        w.next("hello")
        for verb, members in (("take", {"unit": "human"}), ("drive", {"unit": "human", "values": [100, 0, 3]}),
                              ("go", {"lever": "human.accelerator", "target": 100}), ("prepare", {})):
            self.assertIn("read-only", w.do(verb, **members)["error"])
        status = w.next("status", lambda m: m["time"] > 0.5)
        self.assertEqual(status["links"][0]["value"], 0)
        run.process.send_signal(signal.SIGINT)
        run.wait()

    def test_what_a_driver_cannot_be_is_said_with_its_line(self):
        lever = "accelerator: { min: 0, max: 100, unit: V, rate: 300, gamepad: button 7 }"
        for old, new, part in (
                (", pace: realtime", "", "is driven by hand, which needs a run that keeps the clock"),
                (", pace: realtime", ", pace: 2x", "expected 'pace: realtime'"),
                (lever, "accelerator: { min: 5, max: 5 }", "s.yaml:6: units.human.driver.accelerator: min = 5 and max = 5"),
                (lever, "accelerator: { min: 1, max: 5 }", "rest = 0, expected a value of its range, 1 to 5"),
                (lever, "accelerator: { min: 0, max: 1, gamepad: wheel }", "expected 'button 7', 'axis 1'"),
                (lever, "accelerator: { gamepad: axis 1 }", "a gamepad moves from min to max"),
                (lever, "accelerator: { unit: furlong }", "unit: 'furlong' is not known"),
                (lever, "accelerator: { whole: true, rate: 3 }", "whole numbers change at once"),
                ("{ items: [P, R, N, D] }", "{ items: [P, R], max: 3 }", "items are the numbers 0 to 1"),
                ("silence: 3 s", "silence: 11 s", "silence: 11 s, expected 10 s at most"),
                ("silence: 3 s", "on_silence: shout", "Expected one of rest, stop"),
                ("silence: 3 s", "standby: { fmu: x.fmu }", "nobody stands in for a driver"),
                ("car: { circuit: rc.cir }", "car: { circuit: rc.cir, silence: 1 s }", "'silence' is for units with the key 'driver' only")):
            self.assertIn(old, SYSTEM)
            self.write(SYSTEM.replace(old, new))
            done = subprocess.run([CARDAN, "run", "s.yaml", "--stop-time", "1"], cwd=self.folder, capture_output=True, text=True,
                                  timeout=PATIENCE, check=False)
            self.assertNotEqual(done.returncode, 0, new)
            self.assertIn(part, done.stderr)

    def test_without_a_page_it_is_said_that_nobody_drives(self):
        done = subprocess.run([CARDAN, "run", "s.yaml", "--stop-time", "0.2"], cwd=self.folder, capture_output=True, text=True,
                              timeout=PATIENCE, check=True)
        self.assertIn("'human' is driven by hand and nobody can: it stays at rest; expected --ui", done.stderr)


if __name__ == "__main__":
    unittest.main()
