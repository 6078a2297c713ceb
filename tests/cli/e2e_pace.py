"""Runs on the clock: options, summary, limits, and the page beside them. Nothing here expects the
machine to be fast: runs that must be late are asked for a pace that no machine keeps."""

import base64
import json
import os
import signal
import socket
import struct
import subprocess
import threading
import unittest
import urllib.error
import urllib.parse
import urllib.request

from e2e import CARDAN, EndToEnd

SYSTEM = """cardan: 1
units:
  wave: { signal: { shape: sine, amplitude: 2, frequency: 5 Hz } }
  steps: { signals: { a: { shape: step }, b: { shape: ramp, duration: 0.1 } } }
run: { step: 1 ms, stop: %s s%s }
"""


class Socket:
    """As much of RFC 6455 as the page needs: texts out, texts in."""

    def __init__(self, url):
        u = urllib.parse.urlsplit(url)
        self.socket = socket.create_connection((u.hostname, u.port), timeout=20)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET /ws?{u.query} HTTP/1.1\r\nHost: {u.netloc}\r\n"
                             "Upgrade: websocket\r\nConnection: Upgrade\r\n"
                             f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
                             "Sec-WebSocket-Protocol: cardan.live.1\r\n\r\n").encode())
        head = b""
        while b"\r\n\r\n" not in head:
            head += self.exactly(1)
        assert b" 101 " in head.split(b"\r\n")[0], head

    def exactly(self, n):
        data = b""
        while len(data) < n:
            part = self.socket.recv(n - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def send(self, **message):
        data = json.dumps(message).encode()
        length = bytes([0x80 | len(data)]) if len(data) < 126 else (
            bytes([0xFE]) + struct.pack(">H", len(data)))
        mask = os.urandom(4)
        self.socket.sendall(b"\x81" + length + mask +
                            bytes(c ^ mask[i % 4] for i, c in enumerate(data)))

    def until(self, wanted):
        """The first JSON message that is wanted."""
        while True:
            head = self.exactly(2)
            n = head[1] & 0x7F
            n = struct.unpack(">H", self.exactly(2))[0] if n == 126 else (
                struct.unpack(">Q", self.exactly(8))[0] if n == 127 else n)
            data = self.exactly(n)
            if head[0] & 0xF == 1:
                message = json.loads(data)
                if wanted(message):
                    return message


class Pace(EndToEnd):
    def system(self, stop=0.1, pace=", pace: 10x"):
        return self.write("s.yaml", SYSTEM % (stop, pace))

    def test_the_summary_says_how_the_clock_was_kept(self):
        self.system()
        done = self.cardan("run", "s.yaml", "-o", "none")
        self.assertRegex(done.stderr, r"pace     10x, 100 cycles of 100 us; ")
        self.assertIn("grid drift 0", " ".join(done.stderr.split()))
        self.assertRegex(done.stderr, r"  per cycle +p50 +p99 +p99.99 +max +load\n"
                                      r"  wake-up after its deadline +[0-9.]+ [nmu]?s .* - ")
        self.assertRegex(done.stderr, r"system   .*memory (not )?locked")
        self.assertNotIn("link ", done.stderr)

    def test_info_tells_the_pace_of_a_system(self):
        self.write("s.yaml", "cardan: 1\nunits: { a: { signal: { shape: step }, budget: 2 ms } }\n"
                   "run: { pace: { factor: 2x, overrun: skip, spin: 50 us, cpu: 1 } }\n"
                   "results: { file: r.csv, exchange: x.mf4 }\n")
        said = self.cardan("info", "s.yaml").stdout
        self.assertIn("pace          2x, overrun skip, spin 50 us, priority 80, CPU 1\n", said)
        self.assertIn("exchange      x.mf4\n", said)
        self.assertIn("budget 2 ms", said)
        j = self.cardan_json("info", "s.yaml")
        self.assertEqual(j["run"]["pace"], {
            "factor": 2, "overrun": "skip", "slack": 0, "spin": 5e-5, "priority": 80, "cpu": 1,
            "lock": True, "required": False})
        self.assertEqual((j["exchange"], j["units"][0]["budget"]), ("x.mf4", 0.002))

    def test_a_run_that_is_free_says_nothing_about_the_clock(self):
        self.system(pace="")
        report = self.cardan_json("run", "s.yaml", "-o", "none")
        self.assertIsNone(report["pace"])
        self.assertNotIn("pace  ", self.cardan("run", "s.yaml", "-o", "none").stderr)
        self.system()
        self.assertIsNone(self.cardan_json("run", "s.yaml", "-o", "none", "--pace", "free")["pace"])

    def test_json_has_every_cycle(self):
        self.system()
        report = self.cardan_json("run", "s.yaml", "-o", "none", "--pace", "5x")
        pace = report["pace"]
        self.assertEqual((pace["factor"], pace["cycles"], pace["drift"]), (5, 100, 0))
        self.assertAlmostEqual(pace["period"], 2e-4)
        for key in ("lateness", "busy"):
            self.assertEqual(pace[key]["count"], 100)
            self.assertEqual(sum(n for _, n in pace[key]["histogram"]), 100)
            self.assertLessEqual(pace[key]["min"], pace[key]["p50"])
            self.assertLessEqual(pace[key]["p50"], pace[key]["p99"])
            self.assertLessEqual(pace[key]["p99"], pace[key]["max"])
            self.assertIsNone(pace[key]["p99.99"])
        self.assertEqual(len(pace["overruns"]), min(pace["overrun_count"], 128))
        self.assertGreaterEqual(report["wall_time"], 0.019)
        self.assertEqual([u["link"] for u in report["units"]], [None, None])

    def test_limits_give_exit_code_3_and_the_reason(self):
        self.system()
        late = self.cardan("run", "s.yaml", "-o", "none", "--pace", "1e6", "--max-overruns", 7,
                           code=3, says=["of 100 cycles were late, the worst ",
                                         "more than --max-overruns = 7"])
        self.assertIn("not kept: ", late.stderr)
        self.assertIn("overrun at ", late.stderr)
        self.cardan("run", "s.yaml", "-o", "none", "--max-lateness", "1 ns", code=3,
                    says=["a cycle began ", "more than --max-lateness = 1 ns"])
        self.cardan("run", "s.yaml", "-o", "none", "--pace", "1e6", "--max-overruns", 100,
                    "--max-lateness", "1 h")
        report = self.cardan_json("run", "s.yaml", "-o", "none", "--pace", "1e6", "--max-overruns",
                                  0, code=3)
        self.assertEqual((report["status"], report["end"]), ("CRD_E_LIMIT", "stop time"))

    def test_a_late_cycle_ends_the_run_if_it_is_to(self):
        self.system()
        done = self.cardan("run", "s.yaml", "-o", "run.mf4", "--pace", "1e6", "--overrun", "stop",
                           code=3, says=["ended by a late cycle", "('overrun: stop')",
                                         "everything up to there is recorded in run.mf4"])
        self.assertRegex(done.stderr, r"cardan: cycle \d+ at t = [0-9.e-]+ s was done [0-9.]+ "
                                      r"[nmu]?s late")
        report = self.cardan_json("run", "s.yaml", "-o", "none", "--pace",
                                  "{factor: 1e6, overrun: stop}", code=3)
        self.assertEqual((report["end"], report["pace"]["overrun_count"]), ("overrun", 1))
        self.assertLess(report["steps"], 100)
        self.cardan("report", "run.mf4", "-o", "run.html")
        with open(self.path("run.html"), encoding="utf-8") as f:
            html = f.read()
        self.assertIn("by a late cycle", html)
        self.assertIn('<h2 id="realtime">Real time</h2>', html)
        self.assertIn('<svg class="pace"', html)

    def test_stretching_and_skipping_are_told(self):
        self.system()
        for policy, key in (("stretch", "moved"), ("skip", "skipped")):
            report = self.cardan_json("run", "s.yaml", "-o", "none", "--pace", "1e6", "--overrun",
                                      policy)
            self.assertGreater(report["pace"][key], 0)
            self.assertEqual(report["pace"]["drift"], 0)

    def test_options_that_make_no_sense_are_refused(self):
        self.system(pace="")
        for arguments, says in (
                (["--pace", "fast"], "--pace: 'fast', expected realtime, free, or a factor"),
                (["--pace", "{overrun: never}"], "--pace: overrun: 'never' is not known"),
                (["--overrun", "stop"], "--overrun is about runs on the clock"),
                (["--max-overruns", "0"], "--max-overruns is about runs on the clock"),
                (["--max-lateness", "1 ms"], "--max-lateness is about runs on the clock"),
                (["--pace", "2x", "--max-lateness", "1 m"], "max-lateness"),
                (["--pace", "2x", "--overrun", "panic"], "overrun"),
                (["--ui-wait"], "--ui-wait is about the page, expected --ui too"),
                (["--ui-token", "x"], "--ui-token is about the page"),
                (["--ui", "--ui-wait", "--ui-read-only"], "nobody could press Start"),
                (["--ui", "--ui-cert", "c.pem"], "--ui-cert needs --ui-key too"),
                (["--ui", "--ui-address", "0.0.0.0:0"], "(--ui-open)"),
                (["--ui", "--ui-address", "0.0.0.0:0", "--ui-open"],
                 "(--ui-cert and --ui-key, or --ui-plain)"),
                (["--stream-signals", "a.*"], "expected --stream pj://HOST:PORT too"),
                (["--stream", "http://x"], "pj://"),
                (["--exchange", "x.csv"], "--exchange x.csv, expected a file whose name ends in"),
                (["-o", "a.mf4", "--exchange", "a.mf4"], "go to the same file")):
            output = [] if "-o" in arguments else ["-o", "none"]
            self.cardan("run", "s.yaml", *output, *arguments, code=2, says=says)

    def test_exchanged_samples_are_counted_and_recorded(self):
        report = self.cardan_json("run", self.oscillator(), "-o", "none", "--exchange", "x.mf4",
                                  "--pace", "10x")
        self.assertEqual(report["exchange"], "x.mf4")
        self.assertEqual(report["exchanged"], 3 * 101)
        self.cardan("info", "x.mf4")
        self.system(pace="")
        report = self.cardan_json("run", "s.yaml", "-o", "none")
        self.assertEqual((report["exchange"], report["exchanged"]), (None, 0))

    def test_a_budget_is_told(self):
        self.oscillator()
        self.write("b.yaml", "cardan: 1\nunits:\n  first: { fmu: lo_fd1.fmu, budget: 50 ms }\n"
                   "  second: { fmu: lo_fd2.fmu }\nconnections: [ second.x2 -> first.x2 ]\n"
                   "run: { step: 1 ms, stop: 0.05 s, pace: realtime }\n")
        done = self.cardan("run", "b.yaml", "-o", "none")
        self.assertRegex(done.stderr, "budget   unit 'first', 50 ms: (never late|\\d+ cycles? went on)")
        report = self.cardan_json("run", "b.yaml", "-o", "none")
        self.assertEqual([u["budget"] for u in report["units"]], [0.05, None])

    def test_signals_are_streamed(self):
        self.system(stop=0.3, pace=", pace: realtime")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as juggler:
            juggler.bind(("127.0.0.1", 0))
            juggler.settimeout(20)
            port = juggler.getsockname()[1]
            self.cardan("run", "s.yaml", "-o", "none", "--stream", f"pj://127.0.0.1:{port}",
                        "--stream-signals", "wave.*")
            text = juggler.recv(65536).decode()
            self.assertNotIn("steps", text)
            self.assertIn("wave", text)
            self.assertTrue(json.loads(text))

    def test_progress_tells_of_overruns(self):
        self.system(stop=0.5, pace=", pace: realtime")
        done = self.cardan("run", "s.yaml", "-o", "none", "--progress", "json", "-q")
        lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
        self.assertTrue(lines)
        self.assertTrue(all({"overruns", "lateness", "time"} <= set(x) for x in lines))

    def test_an_interrupt_ends_a_paced_run_cleanly(self):
        self.system(stop=100, pace=", pace: realtime")
        with subprocess.Popen([CARDAN, "run", "s.yaml", "-o", "run.csv", "--progress", "json"],
                              cwd=self.folder, env=self.environment(), text=True,
                              stderr=subprocess.PIPE) as run:
            for line in run.stderr:
                if line.startswith("{"):
                    break
            run.send_signal(signal.SIGINT)
            said = run.stderr.read()
        self.assertEqual(run.returncode, 1, said)
        self.assertIn("everything up to there is recorded in run.csv", said)
        self.table("run.csv")


class Page(EndToEnd):
    def start(self, *arguments, stop=100):
        self.write("s.yaml", SYSTEM % (stop, ", pace: realtime"))
        run = subprocess.Popen([CARDAN, "run", "s.yaml", "-o", "run.csv", "--ui", "--ui-address",
                                "127.0.0.1:0", *arguments], cwd=self.folder,
                               env=self.environment(), text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
        self.addCleanup(lambda: (run.kill(), run.wait(), run.stdout.close(), run.stderr.close()))
        dead = threading.Timer(60, run.kill)
        dead.start()
        self.addCleanup(dead.cancel)
        self.url = None
        for line in run.stderr:
            if line.startswith("live  "):
                self.url = line.split()[1]
                break
        self.assertIsNotNone(self.url, "no address was printed")
        return run

    def end(self, run, code):
        out, said = run.communicate(timeout=60)
        self.assertEqual(run.returncode, code, said)
        self.assertNotIn("Sanitizer", said)
        return out, said

    def test_start_and_stop_from_the_page_are_a_clean_end(self):
        run = self.start("--ui-wait", "--json")
        self.assertIn("?token=", self.url)
        page = Socket(self.url)
        hello = page.until(lambda m: m["is"] == "hello")
        self.assertEqual([u["name"] for u in hello["units"]], ["wave", "steps"])
        waiting = page.until(lambda m: m["is"] == "status" and m["state"] == "waiting")
        self.assertEqual(waiting["cycles"], 0)
        page.send(id=1, do="start")
        page.until(lambda m: m["is"] == "status" and m["cycles"] > 20)
        page.send(id=2, do="stop")
        page.until(lambda m: m["is"] == "status" and m["state"] == "ended")
        page.socket.close()
        out, said = self.end(run, 0)
        self.assertIn("ended from the page", said)
        report = json.loads(out)
        self.assertEqual((report["end"], report["exit_code"]), ("page", 0))
        self.assertGreater(report["steps"], 20)
        self.assertEqual(len(self.table("run.csv")[1][0]), report["rows"])

    def test_without_the_token_there_is_nothing_to_see(self):
        run = self.start("--ui-token", "a-token-of-mine", "--ui-wait")
        self.assertTrue(self.url.endswith("?token=a-token-of-mine"))
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(self.url.split("?")[0] + "metrics?token=wrong", timeout=20)
        self.assertEqual(refused.exception.code, 403)
        refused.exception.close()
        with urllib.request.urlopen(self.url.replace("/?", "/metrics?"), timeout=20) as metrics:
            self.assertIn("cardan_", metrics.read().decode())
        run.send_signal(signal.SIGINT)
        _, said = self.end(run, 1)
        self.assertIn("interrupted at t = 0 s", said)

    def test_the_page_stays_if_it_is_to(self):
        run = self.start("--ui-keep", stop=0.05)
        for line in run.stderr:
            if line.startswith("live  "):
                break
        self.assertIn("the page stays until Ctrl-C", line)
        with urllib.request.urlopen(self.url, timeout=20) as page:
            self.assertIn("<html", page.read().decode().lower())
        run.send_signal(signal.SIGINT)
        self.end(run, 0)


if __name__ == "__main__":
    unittest.main()
