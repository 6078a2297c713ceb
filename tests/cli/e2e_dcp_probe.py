"""cardan dcp scan, link and conform: real processes on loopback."""

import re
import signal
import socket
import subprocess
import threading
import unittest

from e2e import CARDAN, EndToEnd, fmu

PATIENCE = 60  # s, for anything that will come


class Waiting:
    """A command that waits, its ready lines and its end."""

    def __init__(self, test, *arguments, lines=1):
        self.test = test
        self.process = subprocess.Popen(
            [CARDAN, *map(str, arguments)], cwd=test.folder, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=dict(test.environment(leaks=True), TMPDIR=test.folder))
        test.addCleanup(self.kill)
        self.addresses = []
        for _ in range(lines):
            line = self.process.stdout.readline()
            found = re.match(r"listening at (\S+)$", line)
            if not found:
                test.fail(line + self.process.stderr.read())
            self.addresses.append(found[1])

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=PATIENCE)
        self.test.assertEqual(self.process.returncode, 0, out + err)
        # What was asked for: no heartbeat. Nothing else is said.
        self.test.assertRegex(err, r"\A(cardan: warning: no heartbeat: [^\n]*\n)?\Z")
        return out


def unused_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Probe(EndToEnd):
    def slave(self, name="driven_oscillator"):
        return Waiting(self, "dcp", "slave", fmu(name), "--listen", "udp://127.0.0.1:0",
                       "--listen", "tcp://127.0.0.1:0", "--write-description", "slave.dcpx",
                       lines=2)

    def yes_man(self):
        """Answers RSP_ack to everything, and ALIVE to INF_state."""
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind(("127.0.0.1", 0))

        def serve():
            while True:
                data, peer = s.recvfrom(2048)
                if data == b"end":
                    return
                if len(data) >= 4:
                    state = data[0] == 0x80
                    s.sendto((b"\xb2" if state else b"\xb0") + data[1:4] + b"\x00" * state, peer)

        thread = threading.Thread(target=serve)
        thread.start()
        self.addCleanup(s.close)
        self.addCleanup(thread.join)
        self.addCleanup(s.sendto, b"end", s.getsockname())
        return "udp://127.0.0.1:%d" % s.getsockname()[1]


class Scan(Probe):
    def test_slaves_with_their_states_and_descriptions(self):
        slave = self.slave()
        found = self.cardan_json("dcp", "scan", "slave.dcpx", *slave.addresses)
        self.assertEqual((found["answered"], found["addresses"]), (2, 2))
        for one in found["slaves"]:
            self.assertEqual((one["state"], one["name"], one["uuid_fits"]),
                             ("ALIVE", "driven_oscillator", True))
            self.assertGreater(one["round_trip"], 0)
        udp = slave.addresses[0]
        with open(self.path("slave.dcpx"), encoding="utf-8") as f:
            text = f.read()
        other = re.sub(r'uuid="........', 'uuid="00c0ffee', text)
        self.write("other.dcpx", other)
        found = self.cardan_json("dcp", "scan", "other.dcpx")
        self.assertEqual({one["uuid_fits"] for one in found["slaves"]}, {False})
        table = self.cardan("dcp", "scan", udp, "slave.dcpx", "other.dcpx").stdout
        self.assertIn(udp, table)
        self.assertIn("2 slaves at 2 addresses", table)
        # nobody has noticed
        self.assertIn("0 sessions", slave.end())

    def test_where_nobody_is(self):
        port = unused_port()
        done = self.cardan("dcp", "scan", f"127.0.0.1:{port}", "--timeout", "50 ms", code=1,
                           says=f"no slave answers at 127.0.0.1:{port}")
        self.assertIn("no answer", done.stdout)
        self.assertIn("no connection", done.stdout)
        done = self.cardan("dcp", "scan", f"udp://127.0.0.0/29:{port}", "--timeout", "50ms", code=1)
        self.assertEqual(done.stdout, "0 slaves at 6 addresses\n")

    def test_arguments_that_are_wrong(self):
        for argument, says in (("10.0.0.0/8", "/20"), ("ftp://host", "unknown transport"),
                               ("10.0.0.1:99999", "1 to 65535"), ("missing.dcpx", "missing.dcpx")):
            self.cardan("dcp", "scan", argument, code=2, says=says)


class Link(Probe):
    def test_an_echo_and_a_recording_of_the_link(self):
        for transport in ("udp", "tcp"):
            echo = Waiting(self, "dcp", "link", "--echo", f"{transport}://127.0.0.1:0")
            r = self.cardan_json("dcp", "link", echo.addresses[0], "--count", 100, "--interval",
                                 "1 ms", "--step", "10 ms", "-o", "link.csv", "--timeout", "20 s")
            self.assertEqual((r["echo"], r["sent"], r["answered"], r["lost"]),
                             (True, 100, 100, 0))
            trip = r["round_trip"]
            self.assertTrue(0 <= trip["least"] <= trip["median"] <= trip["p999"] <= trip["most"])
            self.assertLessEqual(abs(r["clock"]["offset"]), r["clock"]["error"] + 1e-3)
            self.assertGreaterEqual(r["advice"]["k_max"], r["advice"]["k"])
            times, latency = self.table("link.csv")[1]
            self.assertEqual(len(times), 100)
            self.assertAlmostEqual(times[99], 0.099, places=12)
            self.assertTrue(all(0 <= x < 20 for x in latency))
            self.assertIn("101 answered, ", echo.end(signal.SIGINT))
        rows = "".join(f"{0.01 * n!r},{n * n % 17}\n" for n in range(200))
        self.write("bench.csv", "time,torque [N.m]\n" + rows)
        design = self.cardan_json("coupling", "link", "design", "bench.csv", "--link", "link.csv", "--taps", 3)
        self.assertEqual(design["link"]["packets"], 100)
        self.assertEqual(design["link"]["k"], r["advice"]["k"])

    def test_a_slave_tells_half_of_the_round_trip(self):
        slave = self.slave()
        done = self.cardan("dcp", "link", slave.addresses[0], "--count", 50, "--timeout", "20 s")
        for text in ("ALIVE, 50 packets (INF_state)", "50 answered, 0 lost", "99.9 %", "#",
                     "half of the round trip", "macro step", "element: {algorithm: auto"):
            self.assertIn(text, done.stdout)
        done = self.cardan("dcp", "link", slave.addresses[0], "--count", 5, "--timeout", "20 s", "-o",
                           "none/link.csv", code=1, says="none/link.csv")
        self.assertIn("5 answered", done.stdout)  # what was measured is told all the same
        slave.end()

    def test_nobody_and_nonsense(self):
        port = unused_port()
        self.cardan("dcp", "link", f"tcp://127.0.0.1:{port}", "--timeout", "50 ms", code=2,
                    says="connection")
        self.cardan("dcp", "link", "udp://127.0.0.1:9", "--payload", 43, code=2, says="44 to")
        self.cardan("dcp", "link", "udp://127.0.0.1:0", code=2, says="port 0")
        self.cardan("dcp", "link", "--echo", "127.0.0.1:9", code=2, says="no transport")


class Conform(Probe):
    def verdicts(self, *arguments, code=0):
        done = self.cardan_json("dcp", "conform", *arguments, code=code)
        return done, {c["id"]: c["verdict"] for c in done["cases"]}

    def test_our_slave_passes_over_udp(self):
        slave = self.slave()
        done, v = self.verdicts(slave.addresses[0], "--description", "slave.dcpx",
                                "--include-risky", "--timeout", "20 s", "--patience", "60 s")
        odd = [c for c in done["cases"] if c["verdict"] not in ("pass", "skip")]
        self.assertEqual(odd, [])
        self.assertGreater(done["passed"], 80)
        self.assertEqual(v["rt.run"], "pass")
        self.assertEqual(v["nrt.steps"], "pass")
        slave.end()

    def test_our_bench_passes_what_leads_through_runs_errors_and_resets(self):
        bench = Waiting(self, "bench", "em", "--listen", "udp://127.0.0.1:0",
                        "--write-description", "em.dcpx")
        done, v = self.verdicts(bench.addresses[0], "--description", "em.dcpx", "--only", "[dehr]*",
                                "--timeout", "20 s", "--patience", "60 s")
        self.assertEqual([c for c in done["cases"] if c["verdict"] not in ("pass", "skip")], [])
        self.assertEqual((v["rt.run"], v["heartbeat.missed"], v["reset.stopped"]), ("pass",) * 3)

    def test_our_slave_passes_over_tcp_and_patterns_choose(self):
        slave = self.slave()
        done, v = self.verdicts(slave.addresses[1], "--description", "slave.dcpx", "--mode", "nrt",
                                "--only", "state.*", "--timeout", "20 s", "--patience", "60 s")
        self.assertEqual(done["failed"], 0)
        self.assertTrue(all(name.startswith("state.") for name in v))
        self.assertEqual(v["state.COMPUTED"], "pass")
        table = self.cardan("dcp", "conform", slave.addresses[1], "--description", "slave.dcpx",
                            "--only", "register.uuid", "--timeout", "20 s").stdout
        self.assertIn("RSP_nack INVALID_UUID (0x2011)", table)
        self.assertIn("1 passed, 0 failed", table)
        slave.end()

    def test_a_slave_that_says_yes_to_everything_fails(self):
        self.slave().end()  # for its description
        done, v = self.verdicts(self.yes_man(), "--description", "slave.dcpx", "--only", "[ar]*",
                                "--timeout", "50 ms", "--patience", "50 ms", code=1)
        self.assertEqual((v["alive.state"], v["alive.requests"]), ("pass", "FAIL"))
        self.assertEqual((v["register.uuid"], v["register.ok"]), ("FAIL", "FAIL"))
        self.assertGreater(done["failed"], 5)

    def test_a_slave_that_is_gone_is_started_again_and_the_report_says_what_was_said(self):
        self.slave().end()  # for its description
        port = unused_port()
        command = (f"{CARDAN} dcp slave {fmu('driven_oscillator')} --listen udp://127.0.0.1:{port}")
        done, v = self.verdicts(f"udp://127.0.0.1:{port}", "--description", "slave.dcpx",
                                "--only", "re*", "--timeout", "2 s", "--patience", "60 s",
                                "--restart", command, "--report", "slave.html")
        self.assertEqual((done["failed"], done["not_played"], v["register.ok"]), (0, 0, "pass"))
        case = next(c for c in done["cases"] if c["id"] == "register.uuid")
        self.assertEqual(case["clause"], "3.4.7.4, Table 110")
        self.assertRegex(case["pdus"][0], "^> 01.* STC_register seq=")
        self.assertRegex(case["pdus"][1], "^< b1.* RSP_nack resp_seq=.* error=0x2011$")
        with open(f"{self.folder}/slave.html", encoding="utf-8") as f:
            page = f.read()
        self.assertIn("3.4.7.4, Table 110", page)
        self.assertIn("error=0x2011", page)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.bind(("127.0.0.1", port))  # it was ended with the test

    def test_what_is_missing_is_named(self):
        self.slave().end()
        port = unused_port()
        self.cardan("dcp", "conform", f"127.0.0.1:{port}", code=2, says="--description")
        self.cardan("dcp", "conform", f"127.0.0.1:{port}", "--description", "slave.dcpx",
                    "--timeout", "50 ms", code=2, says="no slave answers")
        self.cardan("dcp", "conform", f"127.0.0.1:{port}", "--description", "slave.dcpx",
                    "--mode", "hrt", code=2, says="HRT")


if __name__ == "__main__":
    unittest.main()
