"""cardan run with units that are DCP slaves in processes of their own."""

import os
import re
import signal
import subprocess
import unittest

from e2e import CARDAN, EndToEnd, fmu


class DcpRun(EndToEnd):
    def slave(self, model, *options, listen="udp://127.0.0.1:0"):
        """A slave process; the address where it listens, and its description."""
        name = os.path.basename(model).split(".")[0]
        description = self.path(name + ".dcpx")
        process = subprocess.Popen(
            [CARDAN, "dcp", "slave", model, "--listen", listen, "--write-description", description,
             *options], cwd=self.folder, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=dict(os.environ, TMPDIR=self.folder))
        self.addCleanup(self.end, process)
        line = process.stdout.readline()
        found = re.match(r"listening at (\S+)", line)
        self.assertTrue(found, line)
        process.address = found[1]
        return process

    def end(self, process):
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            out, err = process.communicate(timeout=60)
        except ValueError:  # done already
            return
        for part in ("AddressSanitizer", "runtime error", "ThreadSanitizer"):
            self.assertNotIn(part, err)

    def system(self, name, first, second, more="", run="step: 10 ms, stop: 2 s, predict: hold"):
        return self.write(name + ".yaml", f"""\
cardan: 1
units:
  first: {{ {first} }}
  second: {{ {second} }}
connections:
  - second.omega2 -> first.omega2
  - first.tau -> second.tau
run: {{ {run} }}
results: {name}.csv
{more}""")

    def local(self):
        self.system("local", f"fmu: {fmu('rot_1')}", f"fmu: {fmu('rot_2')}")
        self.cardan("run", "local.yaml")

    def remote(self, name, a, b, session="{ }", **more):
        return self.system(
            name, f'dcp: "{a.address}", description: rot_1.dcpx, session: {session}',
            f'dcp: "{b.address}", description: rot_2.dcpx, session: {session}', **more)

    def same(self, name):
        one, two = self.table(name + ".csv"), self.table("local.csv")
        self.assertEqual(one[0], two[0])
        self.assertEqual(one[1], two[1])  # bit by bit

    def test_slaves_in_steps_give_the_numbers_of_the_fmus(self):
        self.local()
        for transport in ("udp", "tcp"):
            with self.subTest(transport):
                a = self.slave(fmu("rot_1"), listen=transport + "://127.0.0.1:0")
                b = self.slave(fmu("rot_2"), listen=transport + "://127.0.0.1:0")
                system = self.remote("dcp_" + transport, a, b)
                self.assertIn("2 units", self.cardan("check", system).stdout)
                for turn in range(2):  # slaves stay, for the next run
                    done = self.cardan("run", system)
                    self.assertIn("DCP NRT", done.stderr)
                    self.assertNotIn("warning", done.stderr)
                    self.same("dcp_" + transport)

    def test_slaves_and_fmus_mix(self):
        self.local()
        b = self.slave(fmu("rot_2"))
        self.system("mixed", f"fmu: {fmu('rot_1')}",
                    f'dcp: "{b.address}", description: rot_2.dcpx')
        self.cardan("run", "mixed.yaml")
        self.same("mixed")

    def test_a_whole_system_is_a_slave(self):
        self.local()
        a = self.slave(self.path("local.yaml"))
        self.write("outer.yaml", f"""\
cardan: 1
units:
  both: {{ dcp: "{a.address}", description: local.dcpx }}
run: {{ step: 10 ms, stop: 2 s }}
results: outer.csv
""")
        self.cardan("run", "outer.yaml")
        self.assertEqual(self.column("outer.csv", "both.first.tau"),
                         self.column("local.csv", "first.tau"))

    def test_slaves_share_a_key_and_a_wrong_key_gets_no_answer(self):
        self.local()
        self.cardan("dcp", "key", "-o", "good.key")
        self.cardan("dcp", "key", "-o", "bad.key")
        a = self.slave(fmu("rot_1"), "--key", "good.key")
        b = self.slave(fmu("rot_2"), "--key", "good.key")
        self.remote("sealed", a, b, session="{ key: good.key, capture: sealed.pcapng }")
        self.cardan("run", "sealed.yaml")
        self.same("sealed")
        self.assertGreater(os.path.getsize(self.path("sealed.pcapng")), 10000)
        self.remote("forged", a, b, session="{ key: bad.key, contact: 0.2 s, timeout: 50 ms, retries: 2 }")
        done = self.cardan("run", "forged.yaml", code=1)
        self.assertIn("first", done.stderr)

    def test_real_time_takes_its_time_and_accounts_for_it(self):
        a, b = self.slave(fmu("rot_1")), self.slave(fmu("rot_2"))
        self.remote("srt", a, b, session="{ mode: srt }",
                    run="step: 10 ms, stop: 1 s, predict: hold")
        report = self.cardan_json("run", "srt.yaml")
        self.assertEqual(report["steps"], 100)
        self.assertEqual([u["kind"] for u in report["units"]], ["DCP SRT"] * 2)
        self.assertGreaterEqual(report["wall_time"], 1.0)  # never faster than the clock
        self.assertEqual(len(self.column("srt.csv", "first.tau")), 101)

    def test_a_slave_that_dies_is_named_and_the_other_is_free_again(self):
        a, b = self.slave(fmu("rot_1")), self.slave(fmu("rot_2"))
        system = self.remote("dies", a, b, session="{ mode: srt, contact: 0.2 s, timeout: 50 ms, retries: 2 }",
                             run="step: 10 ms, stop: 60 s, predict: hold")
        run = subprocess.Popen([CARDAN, "run", system, "--log-level", "info"], cwd=self.folder,
                               env=self.environment(), text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
        lines = []
        for line in run.stderr:  # until both run
            lines.append(line)
            if sum("RUNNING" in x for x in lines) == 2:
                break
        b.kill()
        out, err = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 1, err)
        self.assertIn("failed: second", err)
        self.assertIn("cardan: unit 'second' at t = ", err)
        # The other one can be used at once.
        self.write("after.yaml", f"""\
cardan: 1
units: {{ first: {{ dcp: "{a.address}", description: rot_1.dcpx }} }}
run: {{ step: 10 ms, stop: 100 ms }}
""")
        self.cardan("run", "after.yaml")

    def test_a_slave_that_is_ended_says_so(self):
        a, b = self.slave(fmu("rot_1")), self.slave(fmu("rot_2"))
        system = self.remote("ended", a, b, session="{ mode: srt }",
                             run="step: 10 ms, stop: 60 s, predict: hold")
        run = subprocess.Popen([CARDAN, "run", system, "--log-level", "info"], cwd=self.folder,
                               env=self.environment(), text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
        seen = 0
        for line in run.stderr:
            seen += "RUNNING" in line
            if seen == 2:
                break
        b.send_signal(signal.SIGINT)
        out, err = b.communicate(timeout=60)
        self.assertEqual(b.returncode, 0, err)
        self.assertIn("1 session, ", out)
        out, err = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 1, err)
        self.assertIn("stopped by itself", err)

    def test_an_interrupted_run_leaves_the_slaves_free(self):
        a, b = self.slave(fmu("rot_1")), self.slave(fmu("rot_2"))
        system = self.remote("stopped", a, b, session="{ mode: srt }",
                             run="step: 10 ms, stop: 60 s, predict: hold")
        run = subprocess.Popen([CARDAN, "run", system, "--log-level", "info"], cwd=self.folder,
                               env=self.environment(), text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
        lines = []
        for line in run.stderr:
            lines.append(line)
            if sum("RUNNING" in x for x in lines) == 2:
                break
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 1, err)
        self.assertEqual(err.count("ALIVE"), 2, err)
        self.assertRegex(err, r"interrupted at t = .* recorded in .*stopped\.csv")
        self.assertNotIn("failed", err)

    def test_what_a_slave_says_about_its_failure_is_in_the_sentence(self):
        a = self.slave(fmu("faulty"))
        self.write("fails.yaml", f"""\
cardan: 1
units:
  u: {{ dcp: "{a.address}", description: faulty.dcpx, parameters: {{ mode: 3, when: 0.05 }} }}
run: {{ step: 10 ms, stop: 100 ms }}
""")
        report = self.cardan_json("run", "fails.yaml", code=1)
        self.assertIn("its last message: ", report["error"])
        self.assertIn("as asked for", report["error"])

    def test_what_is_wrong_is_said(self):
        a = self.slave(fmu("rot_1"))
        for session, code, says in (
                ("mode: hrt", 2, "does not offer hrt, expected nrt or srt"),
                ("resolution: 3 h", 2, "session.resolution"),
                ("resolution: 7 ms", 2, "not a multiple"),
                ("local: 192.0.2.1", 1, "192.0.2.1")):
            with self.subTest(session):
                self.write("wrong.yaml", f"""\
cardan: 1
units: {{ first: {{ dcp: "{a.address}", description: rot_1.dcpx, session: {{ {session} }} }} }}
run: {{ step: 10 ms, stop: 100 ms }}
""")
                done = self.cardan("run", "wrong.yaml", code=code, says=says)
                self.assertIn("first", done.stderr)
        self.write("nobody.yaml", """\
cardan: 1
units:
  first: { dcp: "udp://127.0.0.1:9", description: rot_1.dcpx, session: { contact: 0.2 s, timeout: 20 ms, retries: 2 } }
run: { step: 10 ms, stop: 100 ms }
""")
        self.cardan("run", "nobody.yaml", code=1, says=["first", "127.0.0.1:9"])
        self.assertIn("DCP  udp://127.0.0.1:9", self.cardan("info", "nobody.yaml").stdout)
        self.write("keyless.yaml", """\
cardan: 1
units:
  first: { dcp: "udp://127.0.0.1:9", description: rot_1.dcpx, session: { key: none.key } }
run: { step: 10 ms, stop: 100 ms }
""")
        self.cardan("check", "keyless.yaml", code=2, says=["first", "none.key"])
        self.cardan("export", "ssp", "nobody.yaml", code=2, says="cardan export dcp")


if __name__ == "__main__":
    unittest.main()
