"""cardan dcp emulate with real processes: probes and slaves, two networks, a tunnel, bad options."""

import json
import os
import signal
import socket
import struct
import subprocess
import time
import unittest

from e2e import CARDAN, EndToEnd, fmu

PATIENCE = 60  # s, for anything that will come

INF_STATE, STATE_ACK, CFG_TARGET, CFG_SOURCE, RSP_ACK, DEREGISTER = 0x80, 0xB2, 0x25, 0x26, 0xB0, 0x02


# Three hosts in a row: the master's and the bench's reach each other through the one between only.
NAMESPACES = """
set -e
mount -t tmpfs tmpfs /run
for host in master link bench; do ip netns add $host; done
ip link add m0 netns master type veth peer name l0 netns link
ip link add b0 netns bench type veth peer name l1 netns link
ip -n master addr add 10.1.0.1/24 dev m0
ip -n link addr add 10.1.0.2/24 dev l0
ip -n link addr add 10.2.0.2/24 dev l1
ip -n bench addr add 10.2.0.1/24 dev b0
ip -n master link set m0 up
ip -n link link set l0 up
ip -n link link set l1 up
ip -n bench link set b0 up
touch namespaces
ip netns exec bench $CARDAN dcp slave $FMU --plain --listen $TRANSPORT://10.2.0.1:8080 \\
    --write-description bench.dcpx > slave.out & slave=$!
ip netns exec link $CARDAN dcp emulate --plain --listen $TRANSPORT://10.1.0.2:8080 \\
    --to $TRANSPORT://10.2.0.1:8080 --delay '2 ms' --jitter '1 ms' --json > link.out & link=$!
for i in $(seq 600); do if [ -s slave.out ] && [ -s link.out ]; then break; fi; sleep 0.1; done
ip netns exec master $CARDAN run far.yaml || code=$?
kill -INT $slave $link
wait $slave
wait $link
exit ${code:-0}
"""


def ip(text):
    return struct.unpack(">I", socket.inet_aton(text))[0]


class Process:
    """A command that says in its first lines where it listens, and ends with a summary."""

    def __init__(self, test, *arguments, lines=1):
        self.test = test
        self.process = subprocess.Popen([CARDAN, *map(str, arguments)], cwd=test.folder,
                                        env=test.environment(), stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        test.addCleanup(self.kill)
        self.ready = [self.process.stdout.readline() for _ in range(lines)]
        if not self.ready[-1]:
            test.fail("it did not start: " + self.process.stderr.read())

    def end(self, number=signal.SIGINT):
        self.process.send_signal(number)
        out, errors = self.process.communicate(timeout=PATIENCE)
        self.test.assertEqual(self.process.returncode, 0, errors)
        self.test.assertNotIn("Sanitizer", errors)
        return out

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()


class Emulate(EndToEnd):
    def udp(self, host="127.0.0.1"):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind((host, 0))
        s.settimeout(PATIENCE)
        self.addCleanup(s.close)
        return s

    def emulate(self, *arguments, slaves=1):
        p = Process(self, "dcp", "emulate", *arguments, "--json")
        p.at = [c["at"] for c in json.loads(p.ready[0])["channels"]]
        self.assertEqual(len(p.at), slaves)
        return p

    @staticmethod
    def address(text):
        host, port = text.split("://")[1].split(":")
        return host, int(port)

    def ended(self, process, number=signal.SIGINT):
        end = json.loads(process.end(number).splitlines()[-1])
        self.assertEqual(end["event"], "ended")
        for way in ("there", "back"):
            c = end[way]
            self.assertEqual(c["received"] + c["duplicated"],
                             c["sent"] + c["lost"] + c["queue_full"] + c["no_room"] + c["nowhere"] +
                             c["unsent"] + c["waiting"])
        return end

    def ask(self, master, at, slave, request, answer):
        """A request goes to the slave, its answer back."""
        master.sendto(request, at)
        got, source = slave.recvfrom(4096)
        slave.sendto(answer, source)
        back, whence = master.recvfrom(4096)
        self.assertEqual(back, answer)
        self.assertEqual(whence, at)
        return got, source

    def test_a_request_and_its_answer_take_their_time(self):
        slave, master = self.udp(), self.udp()
        to = "udp://127.0.0.1:%d" % slave.getsockname()[1]
        p = self.emulate("--listen", "udp://127.0.0.1:0", "--to", to, "--delay", "50 ms",
                         "--back", "delay=150 ms")
        begin = time.monotonic()
        got, _ = self.ask(master, self.address(p.at[0]), slave, bytes([INF_STATE, 1, 0, 1]),
                          bytes([STATE_ACK, 1, 0, 1, 0]))
        self.assertEqual(got, bytes([INF_STATE, 1, 0, 1]))
        self.assertGreaterEqual(time.monotonic() - begin, 0.2)
        end = self.ended(p, signal.SIGTERM)
        self.assertEqual((end["there"]["sent"], end["back"]["sent"]), (1, 1))

    def test_data_pass_through_ports_that_close_when_the_slave_is_deregistered(self):
        slave, master, data = self.udp(), self.udp("127.0.0.3"), self.udp("127.0.0.3")
        to = "udp://127.0.0.1:%d" % slave.getsockname()[1]
        p = self.emulate("--listen", "udp://127.0.0.2:0", "--to", to)
        at = self.address(p.at[0])
        # The slave shall send to the master's data port: it is told one of the emulator's.
        request = struct.pack("<BHBHBHI", CFG_TARGET, 7, 1, 10, 0, data.getsockname()[1],
                              ip("127.0.0.3"))
        got, _ = self.ask(master, at, slave, request, struct.pack("<BHB", RSP_ACK, 7, 1))
        self.assertEqual(got[:7], request[:7])
        port, address = struct.unpack("<HI", got[7:])
        self.assertEqual(address, ip("127.0.0.1"))
        slave.sendto(b"\xf0\0\0\x0a\0data", ("127.0.0.1", port))
        self.assertEqual(data.recv(4096), b"\xf0\0\0\x0a\0data")
        # The slave shall listen: the emulator does so at the same port of its own address.
        free = self.udp()
        number = free.getsockname()[1]
        request = struct.pack("<BHBHBHI", CFG_SOURCE, 8, 1, 20, 0, number, ip("127.0.0.2"))
        got, _ = self.ask(master, at, slave, request, struct.pack("<BHB", RSP_ACK, 8, 1))
        self.assertEqual(struct.unpack("<HI", got[7:]), (number, ip("127.0.0.1")))
        master.sendto(b"\xf0\0\0\x14\0more", ("127.0.0.2", number))
        self.assertEqual(free.recv(4096), b"\xf0\0\0\x14\0more")
        self.ask(master, at, slave, bytes([DEREGISTER, 9, 0, 1, 1]),
                 struct.pack("<BHB", RSP_ACK, 9, 1))
        end = self.ended(p)
        self.assertEqual((end["opened"], end["closed"], end["rewritten"]), (2, 2, 2))

    def test_a_slave_that_shares_the_address_gets_another_port(self):
        slave, master = self.udp(), self.udp()
        to = "udp://127.0.0.1:%d" % slave.getsockname()[1]
        p = self.emulate("--listen", "udp://127.0.0.1:0", "--to", to, "--data-ports", "20000-60000")
        free = self.udp()
        number = free.getsockname()[1]
        free.close()
        request = struct.pack("<BHBHBHI", CFG_SOURCE, 8, 1, 20, 0, number, ip("127.0.0.1"))
        got, _ = self.ask(master, self.address(p.at[0]), slave, request,
                          struct.pack("<BHB", RSP_ACK, 8, 1))
        port, _ = struct.unpack("<HI", got[7:])
        self.assertNotEqual(port, number)
        self.assertTrue(20000 <= port <= 60000)
        inner = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(inner.close)
        inner.bind(("127.0.0.1", port))
        inner.settimeout(PATIENCE)
        master.sendto(b"\xf0\0\0\x14\0more", ("127.0.0.1", number))
        self.assertEqual(inner.recv(4096), b"\xf0\0\0\x14\0more")
        self.ended(p)

    def test_losses_duplicates_and_their_seed(self):
        counts = []
        for _ in range(2):
            slave, master = self.udp(), self.udp()
            to = "udp://127.0.0.1:%d" % slave.getsockname()[1]
            p = self.emulate("--listen", "udp://127.0.0.1:0", "--to", to, "--loss", "0.3",
                             "--duplicate", "0.5", "--corrupt", "0.1", "--seed", 7)
            at = self.address(p.at[0])
            for i in range(150):
                master.sendto(struct.pack("<BHB", INF_STATE, i, 1), at)
            end = time.monotonic() + PATIENCE
            got = 0
            slave.settimeout(0.3)
            try:
                while time.monotonic() < end:
                    slave.recv(4096)
                    got += 1
            except TimeoutError:
                pass
            there = self.ended(p)["there"]
            self.assertEqual(there["received"], 150)
            self.assertEqual(there["sent"], got)
            counts.append((there["lost"], there["duplicated"], there["corrupted"]))
        self.assertEqual(counts[0], counts[1])
        self.assertTrue(25 < counts[0][0] < 70, counts)
        self.assertTrue(30 < counts[0][1] < 80, counts)

    def test_streams_pass_whole(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        listener.settimeout(PATIENCE)
        to = "tcp://127.0.0.1:%d" % listener.getsockname()[1]
        p = self.emulate("--listen", "tcp://127.0.0.1:0", "--to", to, "--loss", "0.5", "--repeat",
                         "10 ms", "--jitter", "5 ms", "--delay", "5 ms")
        master = socket.create_connection(self.address(p.at[0]), PATIENCE)
        self.addCleanup(master.close)
        pdus = [struct.pack("<IBHB", 4, INF_STATE, i, 1) for i in range(50)]
        master.sendall(b"".join(pdus))
        slave, _ = listener.accept()
        self.addCleanup(slave.close)
        slave.settimeout(PATIENCE)
        got = b""
        while len(got) < 50 * 8:
            got += slave.recv(4096)
        self.assertEqual(got, b"".join(pdus))
        slave.sendall(struct.pack("<IBHBB", 5, STATE_ACK, 49, 1, 0))
        answer = b""
        while len(answer) < 9:
            answer += master.recv(4096)
        self.assertEqual(answer[4], STATE_ACK)
        master.close()  # the other side learns it
        self.assertEqual(slave.recv(10), b"")
        end = self.ended(p)
        self.assertEqual(end["there"]["sent"], 50)
        self.assertGreater(end["there"]["repeated"], 10)

    def test_two_of_them_are_a_tunnel_for_control_and_data(self):
        self.cardan("dcp", "key", "-o", "link.key")
        slave, master, data = self.udp(), self.udp(), self.udp()
        to = "udp://127.0.0.1:%d" % slave.getsockname()[1]
        far = self.emulate("--listen", "udp://127.0.0.5:0", "--to", to, "--listen-key", "link.key")
        near = self.emulate("--listen", "udp://127.0.0.4:0", "--to", far.at[0], "--to-key",
                            "link.key", "--capture", "near.pcapng")
        at = self.address(near.at[0])
        request = struct.pack("<BHBHBHI", CFG_TARGET, 7, 1, 10, 0, data.getsockname()[1],
                              ip("127.0.0.1"))
        got, _ = self.ask(master, at, slave, request, struct.pack("<BHB", RSP_ACK, 7, 1))
        port, address = struct.unpack("<HI", got[7:])
        slave.sendto(b"\xf0\0\0\x0a\0data", (socket.inet_ntoa(struct.pack(">I", address)), port))
        self.assertEqual(data.recv(4096), b"\xf0\0\0\x0a\0data")
        # Whoever has no key gets no answer, and the slave does not hear it.
        master.sendto(bytes([INF_STATE, 1, 0, 1]), self.address(far.at[0]))
        self.ask(master, at, slave, bytes([INF_STATE, 2, 0, 1]), bytes([STATE_ACK, 2, 0, 1, 0]))
        self.assertEqual(self.ended(near)["there"]["sent"], 2)
        self.assertEqual(self.ended(far)["there"]["sent"], 2)
        self.assertGreater(os.path.getsize(self.path("near.pcapng")), 200)

    def test_it_stands_between_two_networks(self):
        units = f"first: {{ fmu: {fmu('rot_1')} }}\n  second: "
        rest = """
connections:
  - second.omega2 -> first.omega2
  - first.tau -> second.tau
run: { step: 10 ms, stop: 0.2 s, predict: hold }
results: """
        self.write("near.yaml", f"cardan: 1\nunits:\n  {units}{{ fmu: {fmu('rot_2')} }}{rest}near.csv\n")
        self.cardan("run", "near.yaml")
        for transport in ("udp", "tcp"):
            self.write("far.yaml", f'cardan: 1\nunits:\n  {units}{{ dcp: "{transport}://10.1.0.2:8080", session: {{ plain: true }}, '
                                   f"description: bench.dcpx }}{rest}{transport}.csv\n")
            for name in ("namespaces", "slave.out", "link.out"):
                if os.path.exists(self.path(name)):
                    os.remove(self.path(name))
            done = subprocess.run(
                ["unshare", "--map-root-user", "--net", "--mount", "sh", "-c", NAMESPACES],
                cwd=self.folder, capture_output=True, text=True, timeout=4 * PATIENCE,
                env=dict(self.environment(), CARDAN=CARDAN, FMU=fmu("rot_2"), TRANSPORT=transport))
            if not os.path.exists(self.path("namespaces")):
                self.skipTest("no network namespaces: " + done.stderr)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.table(transport + ".csv"), self.table("near.csv"))
            with open(self.path("link.out"), encoding="utf-8") as f:
                end = json.loads(f.read().splitlines()[-1])
            self.assertEqual((end["opened"], end["closed"]), (1, 1))
            self.assertGreater(end["there"]["sent"], 40)

    def test_a_recording_of_a_link_is_played(self):
        slave, master = self.udp(), self.udp()
        to = "udp://127.0.0.1:%d" % slave.getsockname()[1]
        self.write("link.csv", "time [s],latency [ms]\n0,200\n1000,200\n")
        p = self.emulate("--listen", "udp://127.0.0.1:0", "--to", to, "--there", "trace=link.csv")
        begin = time.monotonic()
        self.ask(master, self.address(p.at[0]), slave, bytes([INF_STATE, 1, 0, 1]),
                 bytes([STATE_ACK, 1, 0, 1, 0]))
        self.assertGreaterEqual(time.monotonic() - begin, 0.2)
        self.ended(p)
        self.write("lost.csv", "time,latency\n0,NaN\n1000,NaN\n")
        p = self.emulate("--listen", "udp://127.0.0.1:0", "--to", to, "--trace", "lost.csv")
        master.sendto(bytes([INF_STATE, 1, 0, 1]), self.address(p.at[0]))
        end = time.monotonic() + PATIENCE
        slave.settimeout(0.2)
        with self.assertRaises(TimeoutError):
            slave.recv(10)
        self.assertLess(time.monotonic(), end)
        self.assertEqual(self.ended(p)["there"]["lost"], 1)

    def test_the_summary_in_words(self):
        p = Process(self, "dcp", "emulate", "--listen", "udp://127.0.0.1:0", "--to",
                    "udp://127.0.0.1:9", "--listen", "tcp://127.0.0.1:0", "--to",
                    "tcp://127.0.0.1:9", lines=2)
        self.assertRegex(p.ready[0], r"^listening at udp://127\.0\.0\.1:\d+ for udp://127.0.0.1:9\n")
        self.assertRegex(p.ready[1], r"^listening at tcp://")
        out = p.end()
        self.assertRegex(out, r"received +0 +0\n")
        self.assertIn("0 ports for data opened, 0 closed", out)

    def test_what_makes_no_sense_is_said(self):
        pair = ("--listen", "udp://127.0.0.1:0", "--to", "udp://127.0.0.1:9")
        rows = [
            ((), "expected a pair for each slave"),
            (("--listen", "udp://127.0.0.1:0"), "1 times --listen and 0 times --to"),
            ((*pair, "--delay", "fast"), "--delay 'fast', expected a time such as '20 ms'"),
            ((*pair, "--loss", "30"), "--loss '30', expected a part from 0 to 1"),
            ((*pair, "--rate", "1 furlong"), "--rate '1 furlong', expected bytes per second"),
            ((*pair, "--distribution", "cauchy"), "expected uniform, normal or gamma"),
            ((*pair, "--back", "dealy=1 s"), "did you mean delay?"),
            ((*pair, "--back", "delay=x"), "--back delay 'x', expected a time"),
            ((*pair, "--cut", "3 s..2 s"), "--cut '3 s..2 s', expected times such as '2 s..3 s'"),
            ((*pair, "--there", "cut=2 s"), "--there cut '2 s', expected times such as"),
            ((*pair, "--cut", "1 s..2 s,"), "--cut '1 s..2 s,', expected times"),
            ((*pair, "--cut", ",".join(["1..2"] * 9)), "or '2 s..' for ever; 8 at most"),
            ((*pair, "--correlation", "1"), "correlation = 1"),
            ((*pair, "--trace", "none.csv"), "none.csv"),
            ((*pair, "--trace", "x.csv", "--delay", "1 s"), "expected no --delay"),
            ((*pair, "--far-address", "nowhere"), "--far-address 'nowhere'"),
            ((*pair, "--data-ports", "9"), "--data-ports '9', expected two ports"),
            (("--listen", "udp://0.0.0.0:0", "--to", "udp://127.0.0.1:9", "--plain"), "all interfaces"),
            (("--listen", "udp://127.0.0.1:0", "--to", "tcp://127.0.0.1:9"), "same transport"),
            (("--listen", "http://127.0.0.1", "--to", "udp://127.0.0.1:9"), "unknown transport"),
        ]
        for arguments, says in rows:
            self.cardan("dcp", "emulate", *arguments, code=2, says=says)
        self.cardan("dcp", "emulate", *pair, "--capture", "no/such/x.pcapng", code=1,
                    says="no/such/x.pcapng")


if __name__ == "__main__":
    unittest.main()
