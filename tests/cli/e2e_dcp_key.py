"""cardan dcp key, what it protects, and cardan check on DCP over CAN."""

import os
import re
import signal
import stat
import subprocess

from e2e import CARDAN, HERE, EndToEnd, fmu

CAN = os.path.join(os.path.dirname(HERE), "dcp", "data", "can.xml")


class Key(EndToEnd):
    def test_a_key_is_made_for_its_owner_only_and_never_over_another(self):
        done = self.cardan("dcp", "key", "-o", "a.key")
        self.assertIn("a.key: a new key", done.stdout)
        with open(self.path("a.key"), encoding="ascii") as f:
            first = f.read()
        self.assertRegex(first, r"^[0-9a-f]{64}\n$")
        self.assertEqual(stat.S_IMODE(os.stat(self.path("a.key")).st_mode), 0o600)
        self.assertNotIn(first.strip(), done.stdout + done.stderr)
        self.cardan("dcp", "key", "-o", "a.key", code=1, says="there is such a file already")
        self.cardan("dcp", "key", "-o", "b.key")
        with open(self.path("b.key"), encoding="ascii") as f:
            self.assertNotEqual(f.read(), first)
        self.cardan("dcp", "key", code=2, says="-o FILE")

    def test_a_slave_with_a_key_talks_to_who_has_it(self):
        for name in ("right.key", "wrong.key"):
            self.cardan("dcp", "key", "-o", name)
        slave = subprocess.Popen(
            [CARDAN, "dcp", "slave", fmu("lo_mono"), "--listen", "udp://127.0.0.1:0", "--listen",
             "tcp://127.0.0.1:0", "--key", "right.key"], cwd=self.folder, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment(leaks=True))
        self.addCleanup(lambda: (slave.kill(), slave.communicate()) if slave.poll() is None else 0)
        at = [re.match(r"listening at (\S+)$", slave.stdout.readline())[1] for _ in range(2)]

        def states(*key):
            done = self.run_scan(*at, "--timeout", "2 s" if "right.key" in key else "0.2 s", *key)
            return [line.split()[1] for line in done.splitlines() if "://" in line]

        self.assertEqual(states("--key", "right.key"), ["ALIVE", "ALIVE"])
        self.assertEqual(states("--key", "wrong.key"), ["-", "-"])
        self.assertEqual(states(), ["-", "-"])
        self.assertEqual(states("--key", "right.key"), ["ALIVE", "ALIVE"])
        slave.send_signal(signal.SIGTERM)
        out, err = slave.communicate(timeout=60)
        self.assertEqual(slave.returncode, 0, out + err)
        self.assertEqual(err.count("does not have our key"), 1, err)
        self.assertEqual(err.count("sends without encryption"), 1, err)

    def run_scan(self, *arguments):
        done = subprocess.run([CARDAN, "dcp", "scan", *arguments], cwd=self.folder, text=True,
                              env=self.environment(), capture_output=True, timeout=120)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return done.stdout


class BeyondThisHost(EndToEnd):
    """Who listens or connects beyond loopback has a key, or says plain."""

    def test_all_who_listen_or_connect_ask_for_a_key_or_the_word(self):
        far = ("cardan: 1\nunits:\n  a: { dcp: 'udp://192.0.2.1:9', description: lo.dcpx,\n"
               "    session: { contact: 0%s } }\nrun: { step: 10 ms, stop: 1 s }\n")
        self.cardan("dcp", "key", "-o", "k.key")
        self.cardan("dcp", "describe", fmu("lo_mono"), "-o", "lo.dcpx")
        slave = ("dcp", "slave", fmu("lo_mono"))
        for command in ((*slave, "--listen", "udp://0.0.0.0:0"),
                        (*slave, "--listen", "udp://127.0.0.1:0", "--listen", "tcp://0.0.0.0:0"),
                        ("bench", "em", "--listen", "udp://0.0.0.0:0"),
                        ("learn", "serve", "--listen", "tcp:0.0.0.0:0"),
                        ("learn", "serve", "--listen", "tcp:[::]:0"),
                        ("dcp", "emulate", "--listen", "udp://0.0.0.0:0", "--to", "udp://127.0.0.1:9"),
                        ("dcp", "emulate", "--listen", "udp://127.0.0.1:0", "--to", "udp://192.0.2.1:9"),
                        ("dcp", "link", "--echo", "udp://0.0.0.0:0"),
                        ("run", self.write("bare.yaml", far % ""))):
            with self.subTest(command=command):
                self.cardan(*command, code=2, says=("is beyond this host", "plain"))
        self.cardan(*slave, "--key", "k.key", "--plain", code=2, says="a key and plain at once")
        # with either word the run gets as far as asking; nobody is there
        for word in ("plain: true", "key: k.key"):
            done = self.cardan("run", self.write("word.yaml", far % (", " + word)), code=1)
            self.assertNotIn("is beyond this host", done.stderr)

    def test_a_bench_with_a_key_talks_to_who_has_it(self):
        self.cardan("dcp", "key", "-o", "k.key")
        bench = subprocess.Popen([CARDAN, "bench", "em", "--listen", "udp://0.0.0.0:0", "--key", "k.key"],
                                 cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env=self.environment(leaks=True))
        self.addCleanup(lambda: (bench.kill(), bench.communicate()) if bench.poll() is None else 0)
        port = re.match(r"listening at udp://0.0.0.0:(\d+)$", bench.stdout.readline())[1]
        self.cardan("dcp", "scan", f"udp://127.0.0.1:{port}", "--key", "k.key")
        self.cardan("dcp", "scan", f"udp://127.0.0.1:{port}", "--timeout", "0.2 s", code=1)


class Can(EndToEnd):
    def test_a_file_of_can_is_checked(self):
        self.assertIn("ok: 30 messages, 0 errors", self.cardan("check", CAN).stdout)
        with open(CAN, encoding="utf-8") as f:
            text = f.read()
        bad = self.write("bad.xml", text.replace('canId="281"', 'canId="280"'))
        done = self.cardan("check", bad, code=2, says="breaks 1 rule of DCP")
        self.assertRegex(done.stdout, r"bad\.xml:26: error: .*canId = 280.*\(C06\)")
        found = self.cardan_json("check", bad, code=2)
        self.assertFalse(found["ok"])
        self.assertIn({"severity": "error", "code": "C06", "line": 26}.items(),
                      [{k: f[k] for k in ("severity", "code", "line")}.items()
                       for f in found["findings"]])
        self.cardan("check", self.write("cut.xml", text[:200]), code=2, says="cut.xml:")
