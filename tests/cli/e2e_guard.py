"""Who watches a run with test benches when something dies, with real processes: machines come to rest,
the record is whole, and what happened is said with its cause. e2e_kills.py kills in all states."""

import os
import re
import resource
import signal
import socket
import struct
import unittest
import urllib.error
import urllib.request

from bench_field import Beside, Bench, Field, Process
from e2e import CARDAN, fmu

KEY_EVENT = struct.Struct("llHHi")  # struct input_event
EV_KEY = 1
TOKEN = "0123456789abcdef"
# A large process on a busy machine may be dying for longer than its watchdog.
GONE = r"the master \(process \d+\) (is gone|has had no heart beat for)"


class Guarded(Field):
    watchdog = "60 s"  # of the benches: what stops them here is somebody else

    def begin(self, *options, ice=(), em=(), stop="60 s", **more):
        self.engine, self.machine = self.benches(ice, em)
        self.system(self.engine.address, self.machine.address, stop, **more)
        self.run_ = self.start("field", "--session-record", "s.csv", *options)
        return self.run_

    def slow(self):
        """Benches that are conditioned for minutes."""
        self.engine, self.machine = (
            Bench(self, kind, "--speed-up", "1", "--watchdog", self.watchdog) for kind in ("ice", "em"))
        path = self.system(self.engine.address, self.machine.address, "1 s",
                           session=", patience: 30 min")
        with open(path, encoding="utf-8") as f:
            text = f.read()
        for medium in ("coolant 60 degC; oil", "oil"):
            text = text.replace(", gap: 200 }", f', initial: "{medium} 60 degC; tolerance 2 K" }}', 1)
        self.write("field.yaml", text)
        self.run_ = self.start("field", "--session-record", "s.csv")
        self.engine.until("conditioning")
        self.machine.until("conditioning")
        return self.run_

    def children(self, name):
        """Processes of this name that the run has started."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
                    comm, rest = f.read().split("(", 1)[1].rsplit(")", 1)
            except OSError:
                continue  # it is gone
            state, parent = rest.split()[:2]
            if comm == name and int(parent) == self.run_.process.pid and state != "Z":
                found.append(int(pid))
        return found

    def guard(self, but=None):
        return self.run_.wait_for(
            lambda: next((p for p in self.children("cardan-guard") if p != but), None), "a guard")

    def guard_says(self, pattern):
        """The sentence of the guard, which may come when the run is gone: this, and that both rest."""
        run = self.run_

        class Err:  # the guard outlives the run, and so do its words
            poll = staticmethod(lambda: None)

        run.process, process = Err, run.process
        try:
            said = run.wait_for(lambda: next((line for line in run.complains().splitlines()
                                              if line.startswith("cardan guard: ")), None), "the guard")
        finally:
            run.process = process
        self.assertRegex(said, pattern)
        for name in ("engine", "machine"):
            self.assertIn(f"; '{name}' is at rest", said)
        return said

    def check_rest(self, *benches, reason="master"):
        for bench in benches or (self.engine, self.machine):
            bench.until("safe")
            self.assertEqual(bench.last("reason"), reason, bench.says())
            rows = bench.wait_for(lambda b=bench: next(
                (r for r in [b.rows()] if r and r[-1]["phase"] in (0, 10)), None), "rest")
            self.assertLess(abs(rows[-1]["speed"]), 10)

    def post(self, path, token=TOKEN, method="POST"):
        request = urllib.request.Request(f"{self.url}{path}?token={token}", method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as e:
            with e:
                return e.code, ""

    def answers(self, path):
        try:
            return self.post(path, method="GET")[0] == 200 or None
        except OSError:
            return None

    def stop_options(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        return "--estop-address", f"127.0.0.1:{port}", "--estop-token", TOKEN

    def check_fenced(self, cause):
        """The run ends red with a whole record."""
        said = self.run_.ended(code=1)
        self.assertIn("the guard has taken the benches", said)
        self.assertIn(cause, said)
        self.check_recording(0)
        self.assertIn(cause, self.cardan("bench", "session", "s.csv").stdout)


class Master(Guarded):
    def test_a_master_that_is_killed_has_its_benches_stopped_by_the_guard(self):
        run = self.begin()
        self.turning(self.engine, self.machine)
        guard = self.guard()
        run.send(signal.SIGKILL)
        run.process.wait()
        self.check_rest()
        self.guard_says(GONE + r".* after [\d.]+ s; recorded up to there: field.mf4")
        self.engine.wait_for(lambda: None if os.path.exists(f"/proc/{guard}") else True, "its end")
        rows = self.check_recording(0.1)["rows"]  # the guard has finished it
        self.assertIn("the guard has ended it: the master",
                      self.cardan("bench", "session", "s.csv").stdout)
        try:
            import asammdf
        except ImportError:
            return
        with asammdf.MDF(self.path("field.mf4")) as m:  # no repair, and not a copy of it
            self.assertEqual(m.original_name.name, "field.mf4")
            self.assertEqual(len(m.get("machine.speed").samples), rows)

    def test_a_master_that_is_stopped_commands_no_bench_when_it_wakes_up(self):
        run = self.begin()
        self.turning(self.engine, self.machine)
        run.send(signal.SIGSTOP)
        self.check_rest()
        self.guard_says(r"no heart beat for 2\.\d s: it is stopped \(SIGSTOP\)")
        run.send(signal.SIGCONT)
        self.check_fenced("it is stopped (SIGSTOP)")
        for bench in (self.engine, self.machine):
            self.assertEqual(bench.phases()[-1], "safe")
            self.assertLess(abs(bench.rows()[-1]["speed"]), 10)

    def test_benches_that_are_conditioned_for_a_master_that_is_killed_come_to_rest(self):
        run = self.slow()
        run.send(signal.SIGKILL)
        run.process.wait()
        self.check_rest()
        self.guard_says(GONE)

    def test_a_run_that_does_not_go_on_is_ended(self):
        """Its cycle waits for a slave for ever, everything else of the process lives."""
        model = Process(self, "model", CARDAN, "dcp", "slave", fmu("pt_machine"), "--listen",
                        "udp://127.0.0.1:0", "--write-description", self.path("model.dcpx"))
        where = model.wait_for(lambda: next(iter(re.findall(r"udp://\S+", model.says())), None), "it")
        self.begin(units=f"""\
  model: {{ dcp: "{where}", description: model.dcpx, session: {{ retries: 1000, mode: nrt }} }}
""")
        self.turning(self.engine, self.machine)
        model.send(signal.SIGSTOP)
        self.check_rest()
        self.guard_says("the run stands still: no step for 2.* lives")
        self.check_fenced("the run stands still")

    def test_with_a_key_the_same_holds(self):
        self.cardan("dcp", "key", "-o", "k.key")
        key = ("--key", self.path("k.key"))
        run = self.begin(ice=key, em=key, session=", key: k.key")
        self.turning(self.engine, self.machine)
        run.send(signal.SIGKILL)
        run.process.wait()
        self.check_rest()
        self.guard_says(GONE)

    def test_with_a_key_for_each_bench_the_same_holds(self):
        for name in ("ice", "em"):
            self.cardan("dcp", "key", "-o", name + ".key")
        self.engine, self.machine = self.benches(("--key", self.path("ice.key")),
                                                 ("--key", self.path("em.key")))
        path = self.system(self.engine.address, self.machine.address, "60 s")
        with open(path, encoding="utf-8") as f:
            text = f.read()
        for name in ("ice", "em"):
            text = text.replace("lead: 0 s }", f"lead: 0 s, key: {name}.key }}", 1)
        self.write("field.yaml", text)
        self.run_ = self.start()
        self.turning(self.engine, self.machine)
        self.run_.send(signal.SIGKILL)
        self.run_.process.wait()
        self.check_rest()
        self.guard_says(GONE)

    def test_what_is_lost_of_a_mat_file_is_said_before_and_after(self):
        self.engine, self.machine = self.benches()
        self.system(self.engine.address, self.machine.address, "60 s", file="field.mat")
        self.run_ = run = Process(self, "run_field", CARDAN, "run", "field.yaml")
        self.turning(self.engine, self.machine)
        self.assertIn("field.mat is written when the run has come to its end", run.complains())
        run.send(signal.SIGKILL)
        run.process.wait()
        self.check_rest()
        self.guard_says("LOST, as files of this kind are written at the end: field.mat")

    def test_over_tcp_the_same_holds(self):
        self.engine = Bench(self, "ice", "--speed-up", "500", "--watchdog", self.watchdog,
                            listen="tcp://127.0.0.1:0")
        self.machine = Bench(self, "em", "--speed-up", "500", "--watchdog", self.watchdog,
                             listen="tcp://127.0.0.1:0")
        self.system(self.engine.address, self.machine.address, "60 s")
        self.run_ = self.start()
        self.turning(self.engine, self.machine)
        self.run_.send(signal.SIGKILL)
        self.run_.process.wait()
        self.check_rest()
        self.guard_says(GONE)


class Links(Guarded):
    def test_how_a_link_is_secured_stands_in_report_and_record(self):
        self.cardan("dcp", "key", "-o", "k.key")
        key = ("--key", self.path("k.key"))
        run = self.begin(ice=key, em=key, stop="0.3 s", session=", key: k.key")
        run.ended()
        known = re.search(r"key ([0-9a-f]{16}) of a group", self.cardan("bench", "session", "s.csv").stdout)
        self.assertTrue(known)
        said = known[0]
        self.assertEqual(self.cardan_json("bench", "session", "s.csv")["records"][0]["security"],
                         f"engine: {said}; machine: {said}")
        self.assertEqual({name: link["security"] for name, link in self.links(run).items()},
                         {"engine": said, "machine": said})
        self.cardan("report", "field.mf4", "-o", "r.html")
        with open(self.path("r.html"), encoding="utf-8") as f:
            page = f.read()
        self.assertRegex(page, r">Security<")
        self.assertGreaterEqual(page.count(said), 2)


class Guard(Guarded):
    def test_another_guard_takes_the_place_of_one_that_is_killed_or_stopped(self):
        self.engine, self.machine = self.benches()
        self.system(self.engine.address, self.machine.address, "60 s")
        self.run_ = run = Process(self, "run_field", CARDAN, "run", "field.yaml", "--watchdog", "1 s",
                                  *self.stop_options())
        self.turning(self.engine, self.machine)
        first = self.guard()
        os.kill(first, signal.SIGKILL)
        second = self.guard(but=first)
        os.kill(second, signal.SIGSTOP)
        third = self.guard(but=second)
        run.wait_for(lambda: run.complains().count("another one is started") == 2 or None, "words")
        self.assertIn("was ended by signal 9", run.complains())
        self.assertIn("does not run any more", run.complains())
        self.assertNotIn(third, (first, second))
        run.wait_for(lambda: self.answers("/state"), "its page")
        run.send(signal.SIGKILL)  # the third knows everything that the first one knew
        run.process.wait()
        self.check_rest()
        self.guard_says(GONE)

    def test_a_run_to_its_end_leaves_no_guard_behind(self):
        run = self.begin(stop="0.5 s")
        guard = self.guard()
        run.ended()
        self.assertFalse(os.path.exists(f"/proc/{guard}"))
        self.assertNotIn("guard", run.complains())

    def test_what_is_wrong_is_told_before_a_bench_is_asked_for_anything(self):
        engine, machine = self.benches()
        self.system(engine.address, machine.address, "1 s")
        for options, says in (
                (("--estop-input", "/dev/null"), "'/dev/null' is no input, expected key:DEVICE"),
                (("--estop-input", "key:nowhere"), "nowhere: No such file or directory"),
                (("--estop-address", "127.0.0.1:99999"), "99999"),
                (("--estop-address", "192.0.2.1:8422"), "the emergency stop cannot be at 192.0.2.1:8422"),
                (("--estop-token", "short"), "has 5 characters, expected 8 to 128"),
                (("--no-watchdog", "--estop-token", TOKEN), "--estop-token is about the guard"),
                (("--watchdog", "0 s"), "--watchdog")):
            done = self.cardan("run", "field.yaml", "-o", "none", *options, code=2)
            self.assertIn(says, done.stderr)
        for bench in (engine, machine):
            self.assertEqual(bench.summary()["requests"], 0)


class Stop(Guarded):
    def test_the_page_of_the_guard_stops_the_benches_through_a_flood(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
        self.begin(*self.stop_options())
        self.turning(self.engine, self.machine)
        port = int(self.url.rsplit(":", 1)[1])
        for i in range(1000):
            c = socket.create_connection(("127.0.0.1", port), timeout=60)
            self.addCleanup(c.close)
            c.sendall((b"", b"POST /stop?tok")[i % 2])
        for token in ("", "wrong", TOKEN[:-1], TOKEN + "x"):
            self.assertEqual(self.post("/stop", token)[0], 403)
        self.assertEqual(sorted(self.post("/state", method="GET")[1].splitlines()),
                         ["engine RUNNING", "machine RUNNING"])
        self.assertIn("EMERGENCY STOP", self.post("/", method="GET")[1])
        self.assertEqual(self.post("/stop", method="GET")[0], 404)
        self.assertIsNone(self.run_.process.poll())  # none of that stops anything
        self.assertEqual(self.post("/stop")[0], 200)
        self.check_rest()
        self.guard_says("emergency stop by page 127.0.0.1")
        self.check_fenced("emergency stop by page 127.0.0.1")

    def test_the_command_shows_guards_and_stops_their_benches(self):
        run = self.begin()
        self.turning(self.engine, self.machine)
        guard = self.guard()
        shown = self.cardan_json("guard", "show", guard)["guards"]
        self.assertEqual([(g["guard"], g["run"], g["phase"]) for g in shown],
                         [(guard, run.process.pid, "running")])
        self.assertEqual(sorted(b["name"] + " " + b["state"] for b in shown[0]["benches"]),
                         ["engine RUNNING", "machine RUNNING"])
        self.assertEqual(self.cardan_json("guard", "show", run.process.pid)["guards"][0]["guard"], guard)
        self.assertRegex(self.cardan("guard", "show").stdout, rf"{guard} +machine +RUNNING")
        self.cardan("guard", "stop", "1", code=2, says="no guard of yours")
        self.cardan("guard", "stop", "engine", code=2, says="'engine' is no process")
        self.assertIsNone(run.process.poll())  # none of that stops anything
        os.kill(guard, signal.SIGSTOP)  # nor does that hinder it: another guard does it
        stopped = self.cardan_json("guard", "stop", guard)["benches"]
        self.assertEqual(sorted((b["name"], b["rest"]) for b in stopped),
                         [("engine", True), ("machine", True)])
        self.check_rest()
        self.guard_says("emergency stop by 'cardan guard stop' of ")
        self.check_fenced("emergency stop by 'cardan guard stop' of ")

    def test_a_key_of_this_machine_stops_the_benches(self):
        os.mkfifo(self.path("keys"))
        self.begin("--estop-input", "key:keys:28")
        self.turning(self.engine, self.machine)
        with open(self.path("keys"), "wb", buffering=0) as keys:
            for kind, code, value in ((EV_KEY, 30, 1), (EV_KEY, 28, 0), (0, 0, 0), (2, 28, 1)):
                keys.write(KEY_EVENT.pack(0, 0, kind, code, value))  # none of them
            self.guard()
            press = KEY_EVENT.pack(0, 0, EV_KEY, 28, 1)
            keys.write(press[:7])
            keys.write(press[7:])
            self.check_rest()
        self.guard_says("emergency stop by key 28 of keys; ")
        self.check_fenced("emergency stop by key 28 of keys")

    def test_a_contact_that_opens_stops_the_benches(self):
        self.write("value", "1\n")
        self.watchdog = "60 s"
        run = self.begin("--estop-input", f"gpio:{self.path('value')}")
        self.turning(self.engine, self.machine)
        self.write("value", "0\n")
        self.check_rest()
        self.guard_says("emergency stop by the contact ")
        self.assertIn("emergency stop by the contact", run.ended(code=1))


class Bench_(Guarded):
    """A bench that dies is noticed within seconds, whatever it was doing."""

    def check_lost(self, said, name, state):
        found = re.search(r"'%s'.* is lost: no answer to \w+, sent \d+ times; it was last received "
                          r"([\d.]+) s ago, in %s" % (name, state), said)
        self.assertTrue(found, said)
        self.assertLess(float(found[1]), 8)  # of 3 s, on the clock of the master

    def test_a_bench_that_dies_while_others_are_conditioned_is_named(self):
        run = self.slow()
        self.machine.process.kill()
        self.check_lost(run.ended(code=1), "machine", "CONFIGURING")
        self.check_rest(self.engine)

    def test_a_bench_that_dies_while_it_stops_is_named_and_the_other_comes_to_rest(self):
        run = self.begin()
        self.turning(self.engine, self.machine)
        run.send(signal.SIGTERM)
        self.machine.until("speed down")
        self.machine.process.send_signal(signal.SIGSTOP)
        self.check_lost(run.ended(code=1), "machine", r"\w+")
        self.check_rest(self.engine)


def load_tests(loader, tests, pattern):
    return Beside(test for c in (Master, Links, Guard, Stop, Bench_) for test in loader.loadTestsFromTestCase(c))


if __name__ == "__main__":
    unittest.main()
