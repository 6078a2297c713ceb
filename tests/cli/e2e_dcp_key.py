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


class Pair(EndToEnd):
    """cardan key pair, show and revoke, and what the keys are good for."""

    def side(self, *arguments):
        process = subprocess.Popen([CARDAN, "key", "pair", *arguments], cwd=self.folder, text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=self.environment(leaks=True))
        self.addCleanup(lambda: (process.kill(), process.communicate()) if process.poll() is None else 0)
        return process

    def environment(self, leaks=False):
        return dict(super().environment(leaks), XDG_CONFIG_HOME=self.path("config"))

    def pair(self, other="master", answers=("yes", "yes"), bench=("--role", "bench"), more=()):
        """The two processes, and their codes."""
        listening = self.side("--listen", "tcp://127.0.0.1:0", *bench, "--name", "hall7", *more)
        address = re.match(r"listening at (\S+)$", listening.stdout.readline())[1]
        calling = self.side(address, "--role", other, "--name", "desk", *more)
        codes = []
        for process, answer in ((calling, answers[0]), (listening, answers[1])):
            lines = [process.stdout.readline(), process.stdout.readline()]
            codes.append(re.match(r"the code is (\d{4} \d{4})$", lines[1])[1])
            process.stdin.write(answer + "\n")
            process.stdin.flush()
        return calling, listening, codes

    def ends(self, process, code):
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, code, out + err)
        return out + err

    def test_two_hosts_pair_and_the_roles_count(self):
        calling, listening, codes = self.pair()
        self.assertEqual(codes[0], codes[1])
        self.assertIn("of this master for bench hall7", self.ends(calling, 0))
        self.assertIn("of this bench for master desk", self.ends(listening, 0))
        master, bench = self.path("config/cardan/keys/hall7.key"), self.path("config/cardan/keys/desk.key")
        for file in (master, bench):
            self.assertEqual(stat.S_IMODE(os.stat(file).st_mode), 0o600)
        shown = [self.cardan("key", "show", file).stdout for file in (master, bench)]
        self.assertEqual(*[re.search(r"key ([0-9a-f]{16}) ", text)[1] for text in shown])
        with open(master, encoding="ascii") as f:
            secret = re.search(r"^key (\w+)$", f.read(), re.M)[1]
        self.assertNotIn(secret, "".join(shown))
        slave = ("dcp", "slave", fmu("lo_mono"), "--listen", "udp://127.0.0.1:0")
        self.cardan(*slave, "--key", master, code=2, says="the key of a master, expected one of a bench")
        running = subprocess.Popen([CARDAN, *slave, "--key", bench, "--write-description", "lo.dcpx"], cwd=self.folder,
                                   text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=dict(self.environment(leaks=True), TMPDIR=self.folder))
        self.addCleanup(lambda: (running.kill(), running.communicate()) if running.poll() is None else 0)
        at = re.match(r"listening at (\S+)$", running.stdout.readline())[1]
        system = ("cardan: 1\nunits:\n  a: { dcp: '%s', description: lo.dcpx, session: { key: %s } }\n"
                  "run: { step: 10 ms, stop: 0.1 s }\nresults: out.csv\n")
        self.cardan("run", self.write("good.yaml", system % (at, master)))
        self.cardan("run", self.write("bad.yaml", system % (at, bench)), code=2,
                    says="the key of a bench, expected one of a master")
        self.cardan("key", "revoke", master)
        self.cardan("run", "good.yaml", code=2, says=("is revoked", "hall7.key"))
        self.cardan("key", "show", bench, code=2, says="is revoked")

    def test_codes_that_are_not_confirmed_make_no_key(self):
        calling, listening, _ = self.pair(answers=("no", "yes"))
        self.assertIn("no key was made", self.ends(calling, 1))
        listening.kill()
        self.assertFalse(os.path.exists(self.path("config/cardan/keys/hall7.key")))
        self.assertFalse(os.path.exists(self.path("config/cardan/keys/desk.key")))
        self.cardan("key", "pair", "tcp://127.0.0.1:1", code=2, says="--role is missing")

    def test_files_of_keys_that_others_may_read_are_refused(self):
        self.cardan("dcp", "key", "-o", "open.key")
        os.chmod(self.path("open.key"), 0o640)
        self.cardan("dcp", "slave", fmu("lo_mono"), "--key", "open.key", code=2,
                    says=("open.key", "mode 640", "refused", "expected 600"))


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
                        ("coupling", "learn", "serve", "--listen", "tcp:0.0.0.0:0"),
                        ("coupling", "learn", "serve", "--listen", "tcp:[::]:0"),
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
