"""cardan run --exchange and cardan replay: equal where nothing is changed, told where it is."""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import time
import unittest

from e2e import CARDAN, EndToEnd, fmu

SYSTEM = """cardan: 1
units:
  one: {{ fmu: {one}, parameters: {{ m2: 100, k2: 10, c2: 0.01, x2: 1, v2: 0 }} }}
  two: {{ fmu: {two}, parameters: {{ m1: 1, k1: 10, c1: 0.01, kc: 10, cc: 0.01, x1: 1, v1: 0 }} }}
connections:
  - from: one.x2
    to: two.x2
    coupling: {{ algorithm: zoh, channel: {{ {channel}, seed: 4 }}, shadow: [foh] }}
  - {{ from: one.v2, to: two.v2 }}
  - {{ from: two.f, to: one.f, coupling: {{ algorithm: zoh, channel: {{ {channel}, seed: 5 }} }} }}
run: {{ step: {step}, stop: {stop} }}
results: {{ file: run.csv, exchange: run.exchange.mf4 }}
"""
COMMANDS = """cardan: 1
units:
  bed: {{ fmu: {bed}, parameters: {{ seed: 1 }} }}
  car: {{ fmu: {car}, parameters: {{ seed: 1 }} }}
connections:
  - from: bed.torque
    to: car.torque
    coupling:
      algorithm: {algorithm}
      channel: {{ delay: 57.5 ms, jitter: 12 ms, loss: 0.05, seed: 1 }}
  - from: car.shaft_speed
    to: bed.speed_ref
    coupling: {{ algorithm: zoh, channel: {{ delay: 30 ms, jitter: 12 ms, loss: 0.05, seed: 2 }} }}
  - from: car.torque_request
    to: bed.torque_request
    coupling: {{ algorithm: zoh, channel: {{ delay: 30 ms, jitter: 12 ms, seed: 3 }} }}
  - {{ from: car.torque_limit, to: bed.torque_limit, predict: hold }}
run: {{ step: 10 ms, stop: 6 s }}
results: {{ file: run.csv, exchange: run.exchange.mf4 }}
"""
BAD = "delay: 30 ms, jitter: 12 ms, loss: 0.05, duplicate: 0.05"


class Replay(EndToEnd):
    def system(self, name="s.yaml", channel=BAD, step="10 ms", stop="5 s"):
        return self.write(name, SYSTEM.format(one=fmu("lo_fd2"), two=fmu("lo_fd1"),
                                              channel=channel, step=step, stop=stop))

    def record(self, *more):
        self.system()
        self.cardan("run", "s.yaml", "-q", *more)

    def same(self, signals, a, b):
        for name in signals:
            self.assertEqual(self.column(a, name), self.column(b, name), name)

    def test_nothing_changed_is_the_recorded_run(self):
        self.record()
        done = self.cardan("replay", "run.exchange.mf4", "-o", "again.csv")
        self.assertIn("the replay equals the recorded run\n", done.stdout)
        names, _ = self.table("run.csv")
        self.same(names, "run.csv", "again.csv")
        for played, signals in (("one", ["two.f", "two.x1", "two.v1", "two.energy"]),
                                ("two", ["one.x2", "one.v2", "one.energy"])):
            done = self.cardan("replay", "run.exchange.mf4", "--play", played, "-o", "again.csv")
            self.assertIn("open and closed loop are the same", done.stdout.replace("\n         ", " "))
            self.same(signals, "run.csv", "again.csv")

    def test_elements_that_know_commands_do_the_same_again(self):
        for algorithm in ("commands", "auto"):
            self.write("k.yaml", COMMANDS.format(bed=fmu("pt_testbed"), car=fmu("pt_accelerate"),
                                                 algorithm=algorithm))
            report = self.cardan_json("run", "k.yaml")
            self.assertEqual(len(report["couplings"][0]["commands"]), 3)
            for played in ((), ("--play", "bed")):
                done = self.cardan("replay", "run.exchange.mf4", *played, "-o", "again.csv")
                self.assertIn("the replay equals the recorded run", done.stdout)
                self.same(["car.speed", "car.torque_used"], "run.csv", "again.csv")

    def test_the_recording_has_the_settings_of_its_run(self):
        self.record("--set", "one.m2=50", "--predict", "linear", "--step", "5 ms")
        report = self.cardan_json("replay", "run.exchange.mf4", "--exchange", "none")
        self.assertTrue(report["replays"][0]["equal"])
        self.assertIsNone(report["replays"][0]["exchange"])  # the one that was compared is gone
        self.cardan("replay", "run.exchange.mf4", "s.yaml", code=2,
                    says="recorded with a step of 0.005 s, but s.yaml has a step of 0.01 s")
        report = self.cardan_json("replay", "run.exchange.mf4", "s.yaml", "--step", "5 ms")
        self.assertFalse(report["replays"][0]["equal"])  # another mass

    def test_another_system_is_told(self):
        self.record()
        plain = SYSTEM.format(one=fmu("lo_fd2"), two=fmu("lo_fd1"), channel=BAD, step="10 ms", stop="5 s")
        plain = re.sub(r"\{ from: two.f.*", "two.f -> one.f", plain)
        self.write("plain.yaml", plain)
        done = self.cardan("replay", "run.exchange.mf4", "plain.yaml")
        self.assertIn("two.f -> one.f had a coupling in the recorded run and has none in plain.yaml",
                      done.stdout.replace("\n         ", " "))
        other = re.sub(r"connections:.*(?=run:)", "connections: [ eins.v2 -> zwei.v2 ]\n",
                       plain.replace("one", "eins").replace("two", "zwei"), flags=re.S)
        self.write("other.yaml", other)
        self.cardan("replay", "run.exchange.mf4", "other.yaml", code=2,
                    says="is of another system: other.yaml has no connection like one.x2 -> two.x2")

    def test_another_algorithm_open_and_closed(self):
        self.record()
        report = self.cardan_json("replay", "run.exchange.mf4", "--play", "one", "--algorithm", "foh",
                                  "--both", "-o", "what.csv")
        self.assertEqual(report["played"], ["one"])
        self.assertEqual([r["kind"] for r in report["replays"]], ["open", "closed"])
        opened, closed = report["replays"]
        self.assertEqual([i["to"] for i in opened["inputs"]], ["one.f"])
        self.assertEqual(len(closed["inputs"]), 3)
        self.assertFalse(opened["equal"])
        self.assertRegex(opened["verdict"], r"^valid as open loop only: 'one' would have seen f "
                         r"differ by [\d.]+ % \(from t = [\d.]+ s on\); in a closed loop it would "
                         r"have answered$")
        self.assertIn("closed loop with the recorded delays", closed["verdict"])
        in_use = {t["to"]: t for t in opened["couplings"] if t["in_use"]}
        self.assertEqual(in_use["one.f"]["algorithm"], "foh")
        shadow = [t for t in opened["couplings"] if not t["in_use"]][0]
        self.assertEqual(shadow["C"], in_use["two.x2"]["C"])  # the same algorithm beside it
        difference = report["differences"][-1]
        self.assertAlmostEqual(difference["C"], closed["couplings"][-1]["C"] - in_use["one.f"]["C"])
        # The closed loop is the run that would have been made with it, as far as all is known.
        self.assertTrue(os.path.exists(self.path("what-closed.csv")))
        self.write("foh.yaml", self.read("s.yaml").replace("zoh", "foh"))
        self.cardan("run", "foh.yaml", "-q", "-o", "real.csv", "--exchange", "none")
        self.same(["one.x2", "two.f"], "real.csv", "what-closed.csv")

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as f:
            return f.read()

    def test_one_input_may_have_another_algorithm(self):
        self.record()
        report = self.cardan_json("replay", "run.exchange.mf4", "--algorithm", "two.x2=eros")
        labels = [t["algorithm"] for t in report["replays"][0]["couplings"] if t["in_use"]]
        self.assertEqual(labels, ["eros", "zoh"])
        self.cardan("replay", "run.exchange.mf4", "--algorithm", "two.v2=eros", code=2,
                    says="the connection to two.v2 has no coupling")
        self.cardan("replay", "run.exchange.mf4", "--algorithm", "erros", code=2, says="eros")

    def test_a_replay_keeps_the_clock(self):
        self.system(stop="1 s")
        self.cardan("run", "s.yaml", "-q")
        begin = time.monotonic()
        report = self.cardan_json("replay", "run.exchange.mf4", "--play", "two", "--pace", "4x")
        self.assertGreater(time.monotonic() - begin, 0.24)
        self.assertTrue(report["replays"][0]["equal"])

    def slave(self, model):
        process = subprocess.Popen(
            [CARDAN, "dcp", "slave", model, "--listen", "udp://127.0.0.1:0",
             "--write-description", self.path("bench.dcpx")], cwd=self.folder, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=dict(os.environ, TMPDIR=self.folder))
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        return re.match(r"listening at (\S+)", process.stdout.readline())[1]

    def test_a_bench_is_played_from_what_it_sent(self):
        address = self.slave(fmu("lo_fd1"))
        for mode in ("nrt", "srt"):
            with self.subTest(mode):
                self.write("bench.yaml", f"""cardan: 1
units:
  model: {{ fmu: {fmu("lo_fd2")} }}
  bench: {{ dcp: "{address}", description: bench.dcpx, session: {{ mode: {mode} }} }}
connections:
  - {{ from: model.x2, to: bench.x2, predict: hold }}
  - {{ from: model.v2, to: bench.v2, predict: hold }}
  - {{ from: bench.f, to: model.f, coupling: {{ algorithm: foh, latency: 1 }} }}
run: {{ step: 10 ms, stop: 1 s }}
""")
                self.cardan("run", "bench.yaml", "-q", "-o", "run.csv", "--exchange", "x.mf4")
                self.cardan("replay", "x.mf4", code=2, says="unit 'bench' is reached over a network "
                            "and is not run again; --play bench")
                report = self.cardan_json("replay", "x.mf4", "--play", "bench", "-o", "again.csv")
                self.assertTrue(report["replays"][0]["equal"], report)
                self.same(["model.x2", "model.v2", "model.energy"], "run.csv", "again.csv")
                report = self.cardan_json("replay", "x.mf4", "--play", "bench", "--algorithm", "zoh")
                self.assertIn("'bench' would have seen", report["replays"][0]["verdict"])

    def test_a_full_disk_does_not_end_the_run(self):
        self.system(stop="400 s")
        limit = 1000000  # bytes of a file: more than the results and the FMUs have
        done = self.cardan("run", "s.yaml", "-o", "run.csv", "--interval", "10", code=1,
                           says=["run.exchange.mf4: writing the results failed"],
                           preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE,
                                                                 (limit, limit)))
        self.assertEqual(self.column("run.csv", "time")[-1], 400, done.stderr)

    def test_what_is_asked_wrongly_is_told(self):
        self.record()
        self.cardan("replay", "run.exchange.mf4", "--play", "too", code=2, says="did you mean two?")
        self.cardan("replay", "run.exchange.mf4", "--both", code=2, says="--play UNIT too")
        self.cardan("replay", "run.exchange.mf4", "--play", "one", "--play", "two", code=2,
                    says="nothing left to run")
        self.cardan("replay", "run.exchange.mf4", "-o", "run.exchange.mf4", code=2,
                    says="would overwrite its recording")
        self.cardan("replay", "run.csv", code=2, says="no recording of exchanged samples")
        self.cardan("replay", "nowhere.mf4", code=2, says="nowhere.mf4")
        self.write("t.yaml", self.read("s.yaml").replace("two.v2", "two.x1"))
        self.cardan("replay", "run.exchange.mf4", "t.yaml", "--play", "one", code=2,
                    says="no samples of the connection one.v2 -> two.x1; it has one.x2 -> two.x2, "
                         "one.v2 -> two.v2, two.f -> one.f")

    def test_files_that_are_gone_are_told(self):
        for name in ("lo_fd1", "lo_fd2"):
            shutil.copy(fmu(name), self.folder)
        self.write("s.yaml", SYSTEM.format(one="lo_fd2.fmu", two="lo_fd1.fmu", channel=BAD,
                                           step="10 ms", stop="1 s"))
        self.cardan("run", "s.yaml", "-q")
        os.remove(self.path("s.yaml"))  # the recording has it
        self.assertTrue(self.cardan_json("replay", "run.exchange.mf4")["replays"][0]["equal"])
        os.remove(self.path("lo_fd2.fmu"))
        self.cardan("replay", "run.exchange.mf4", code=2, says="lo_fd2.fmu")
        self.cardan("replay", "run.exchange.mf4", "--play", "one")  # it is not needed

    def test_a_run_that_was_killed_is_replayed_up_to_there(self):
        self.system(stop="1000 s")
        run = subprocess.Popen([CARDAN, "run", "s.yaml", "-q", "--pace", "5x", "-o", "none"],
                               cwd=self.folder, env=self.environment(), stderr=subprocess.DEVNULL)
        path = self.path("run.exchange.mf4")
        empty = None
        for _ in range(600):  # until blocks are there
            time.sleep(0.1)
            size = os.path.getsize(path) if os.path.exists(path) else 0
            empty = empty or size
            if empty and size > empty + 20000:
                break
        run.send_signal(signal.SIGKILL)
        run.wait()
        shutil.rmtree(self.unpack)
        os.mkdir(self.unpack)
        done = self.cardan("replay", "run.exchange.mf4", "--play", "one", "--json")
        report = json.loads(done.stdout)
        self.assertTrue(report["unfinished"])
        self.assertGreater(report["end"], 1)
        self.assertLess(report["end"], 1000)
        self.assertIn("cut off; it is replayed up to t = ", report["replays"][0]["notes"][0])
        self.assertTrue(report["replays"][0]["equal"])


if __name__ == "__main__":
    unittest.main()
