"""cardan coupling learn with real processes: a server, an element beside it, and one of the two dying."""

import json
import math
import os
import queue
import signal
import socket
import struct
import subprocess
import threading
import time
import unittest

from e2e import CARDAN, EndToEnd

ELEMENT = os.environ["CARDAN_LEARN_ELEMENT"]
PATIENCE = 120  # s, for anything that will come

# Training that does not end in a test's life.
FOR_EVER = ("--every", 500, "--keep", 20000, "--epochs", 1000000, "--protect", 0)

HELLO, SAMPLES, NETWORK, OUTCOME, BYE = range(1, 6)
SWAPPED, REFUSED, ROLLED_BACK, KEPT = range(1, 5)


def message(kind, body):
    return b"CRDL" + struct.pack("<BBHI", 1, kind, 0, len(body)) + body


class Element:
    """An element that steps when it is told to."""

    def __init__(self, test, address):
        self.test = test
        self.process = subprocess.Popen([ELEMENT, address], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        test.addCleanup(self.end)

    def step(self, count):
        self.process.stdin.write(f"step {count}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            self.test.fail("the element ended: " + self.process.stderr.read())
        state = json.loads(line)
        self.test.assertTrue(state["finite"])
        return state

    def until(self, condition, count=500, what=""):
        """Step until it is so."""
        end = time.monotonic() + PATIENCE
        while True:
            state = self.step(count)
            if condition(state):
                return state
            self.test.assertLess(time.monotonic(), end, f"{what} does not come: {state}")

    def end(self):
        if self.process.stderr.closed:
            return
        if self.process.poll() is None:
            self.process.stdin.close()
            self.test.assertEqual(self.process.wait(PATIENCE), 0)
        self.process.stdout.close()
        errors = self.process.stderr.read()
        self.process.stderr.close()
        self.test.assertNotIn("Sanitizer", errors)


class Server:
    def __init__(self, test, address, *options, json_lines=True):
        self.test = test
        self.process = subprocess.Popen(
            [CARDAN, "coupling", "learn", "serve", "--listen", address, *map(str, options)]
            + (["--json"] if json_lines else []),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        test.addCleanup(self.kill)
        self.lines = queue.Queue()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        self.first = self.line()
        if not self.first:
            test.fail("no server: " + self.process.stderr.read())

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put("")

    def line(self):
        """The next line, "" at the end; an exception if nothing comes."""
        return self.lines.get(timeout=PATIENCE)

    def event(self, kind):
        while True:
            line = self.line()
            if not line:
                self.test.fail(f"the server ended before '{kind}'")
            event = json.loads(line)
            if event["event"] == kind:
                return event

    def used(self):
        """Processor time so far, s."""
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as f:
            return int(f.read().rsplit(")", 1)[1].split()[11]) / os.sysconf("SC_CLK_TCK")

    def stop(self, how=signal.SIGTERM):
        """Ends it; what it has said since, and its errors."""
        self.process.send_signal(how)
        self.test.assertEqual(self.process.wait(PATIENCE), 0)
        errors = self.process.stderr.read()
        self.test.assertNotIn("Sanitizer", errors)
        out = []
        while line := self.line():
            out.append(line)
        return "".join(out), errors

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.reader.join()
        self.process.stdout.close()
        self.process.stderr.close()


class Learning(EndToEnd):
    def setUp(self):
        super().setUp()
        self.short = os.path.relpath(self.path("s"))  # paths of sockets are short
        self.address = "unix:" + min(self.path("s"), self.short, key=len)

    def test_an_element_learns_and_the_server_ends_with_a_summary(self):
        server = Server(self, self.address, "--every", 1000, "--keep", 5000, "--epochs", 100)
        self.assertEqual(json.loads(server.first), {"event": "listening", "address": self.address})
        element = Element(self, self.address)
        before = element.step(900)
        self.assertEqual(before["link"], "online")
        state = element.until(lambda s: s["swaps"] > 0, what="a network")
        trained = server.event("trained")
        self.assertEqual((trained["element"], trained["k"], trained["sent"]), ("e2e.torque", 6, True))
        self.assertLess(trained["rms_after"], trained["rms_before"])
        element.step(3000)
        after = element.step(1000)
        self.assertLess(after["rms"], 0.7 * before["rms"])
        server.event("kept")
        element.end()
        server.event("left")
        summary = json.loads(server.stop()[0].splitlines()[-1])
        self.assertEqual(summary["event"], "summary")
        self.assertEqual(summary["elements"], 1)
        self.assertGreaterEqual(summary["trainings"], 1)
        self.assertGreaterEqual(summary["kept"], 1)
        self.assertFalse(os.path.exists(self.path("s")))
        self.assertGreater(state["sent"], 0)

    def test_words_for_people(self):
        server = Server(self, self.address, "--every", 1000, "--epochs", 20, json_lines=False)
        self.assertEqual(server.first, f"listening at {self.address}\n")
        element = Element(self, self.address)
        element.until(lambda s: s["swaps"] > 0, what="a network")
        element.end()
        out, _ = server.stop(signal.SIGINT)
        self.assertIn("e2e.torque: joined with a network of 12-4-2-1", out)
        self.assertRegex(out, r"e2e\.torque: trained on \d+ samples for k = 6 in \d+ ms, "
                              r"held out rms .*, sent as network 1")
        self.assertIn("e2e.torque: network 1 swapped", out)
        self.assertRegex(out.splitlines()[-1], r"^1 element, \d+ trainings?, \d+ networks? sent: ")

    def test_a_server_killed_while_it_trains_costs_the_learning_only(self):
        server = Server(self, self.address, *FOR_EVER)
        element = Element(self, self.address)
        element.step(2000)
        server.event("joined")
        used = server.used()
        # Serving alone costs next to nothing: it trains, for minutes.
        state = element.until(lambda s: server.used() > used + 0.3, count=1, what="training")
        self.assertEqual((state["link"], state["networks"]), ("online", 0))
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        state = element.until(lambda s: s["link"] == "offline", what="the loss")
        self.assertEqual((state["swaps"], state["malformed"]), (0, 0))
        lonely = element.step(5000)
        self.assertLess(lonely["rms"], 1)
        self.assertGreater(lonely["dropped"], 1000)
        # The file of the dead one is in nobody's way, and the element finds the new one.
        self.assertTrue(os.path.exists(self.path("s")))
        server = Server(self, self.address, "--every", 1000, "--keep", 5000, "--epochs", 100)
        state = element.until(lambda s: s["swaps"] > 0, what="learning after all")
        self.assertEqual(state["connects"], 2)
        element.step(3000)
        self.assertLess(element.step(1000)["rms"], 0.7 * lonely["rms"])
        element.end()
        server.stop()

    def test_a_server_killed_as_it_sends_a_network_leaves_an_element_that_works(self):
        element = Element(self, self.address)
        for connects in range(1, 5):
            server = Server(self, self.address, "--every", 1000, "--keep", 5000, "--epochs", 20)
            element.until(lambda s: s["connects"] == connects, count=100, what="the connection")
            element.step(1200)
            server.event("trained")
            server.process.send_signal(signal.SIGKILL)  # before, after or while it comes through
            server.process.wait()
            state = element.until(lambda s: s["link"] == "offline", what="the loss")
            self.assertEqual((state["malformed"], state["refused"]), (0, 0))
            self.assertEqual(state["swaps"], state["networks"])
            self.assertLess(element.step(1000)["rms"], 1)

    def test_a_signal_ends_the_server_while_it_trains(self):
        server = Server(self, self.address, *FOR_EVER)
        element = Element(self, self.address)
        element.step(2000)
        server.event("joined")
        server.stop()
        self.assertFalse(os.path.exists(self.path("s")))
        self.assertEqual(element.until(lambda s: s["link"] == "offline", what="the end")["swaps"], 0)

    def hear(self, connection):
        """The next message of the element: kind and body."""
        def take(count):
            data = b""
            while len(data) < count:
                more = connection.recv(count - len(data))
                self.assertTrue(more, "the element has hung up")
                data += more
            return data
        head = take(12)
        self.assertEqual(head[:5], b"CRDL\x01")
        kind, _, length = struct.unpack("<BHI", head[5:])
        return kind, take(length)

    def listen(self):
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(self.address[5:])
        listener.listen()
        listener.settimeout(PATIENCE)
        return listener

    def accept(self, listener):
        connection, _ = listener.accept()
        connection.settimeout(PATIENCE)
        self.addCleanup(connection.close)
        return connection

    def own_network(self, hello):
        """Shape, alpha and weights as the HELLO has them."""
        length, = struct.unpack_from("<H", hello)
        return hello[2 + length + 8:]

    def test_a_server_that_dies_within_a_network_leaves_the_old_one(self):
        listener = self.listen()
        element = Element(self, self.address)
        element.step(1)
        connection = self.accept(listener)
        kind, hello = self.hear(connection)
        self.assertEqual(kind, HELLO)
        network = message(NETWORK, struct.pack("<qdd", 1, 1, 0.5) + self.own_network(hello))
        connection.sendall(network[:len(network) // 2])
        before = element.step(500)
        self.assertEqual((before["link"], before["networks"]), ("online", 0))
        connection.close()
        listener.close()
        os.unlink(self.address[5:])
        state = element.until(lambda s: s["link"] == "offline", what="the loss")
        self.assertEqual((state["networks"], state["swaps"], state["malformed"]), (0, 0, 0))
        # A real one takes its place.
        server = Server(self, self.address, "--every", 1000, "--keep", 5000, "--epochs", 100)
        element.until(lambda s: s["swaps"] > 0, what="learning after all")
        element.step(3000)
        self.assertLess(element.step(1000)["rms"], 0.7 * before["rms"])
        element.end()
        server.stop()

    def test_weights_of_the_wrong_size_or_worth_are_refused_and_told(self):
        listener = self.listen()
        element = Element(self, self.address)
        element.step(1)
        connection = self.accept(listener)
        _, hello = self.hear(connection)
        own = self.own_network(hello)
        shape, weights = own[:14], own[14:]
        other = struct.pack("<HHHd", 2, 2, 2, 0.01) + bytes(8 * (2 * 5 + 5))
        nan = shape + struct.pack("<d", math.nan) * (len(weights) // 8)
        louder = shape + weights[:-8] + struct.pack("<d", 5.0)  # constants come out 5 higher
        for generation, network in enumerate((other, nan, louder), 1):
            connection.sendall(message(NETWORK, struct.pack("<qdd", generation, 1, 0.5) + network))
            element.until(lambda s: s["refused"] == generation, what="the refusal")
            kind, body = self.hear(connection)
            while kind == SAMPLES:
                kind, body = self.hear(connection)
            self.assertEqual((kind, *struct.unpack("<qB", body)), (OUTCOME, generation, REFUSED))
        state = element.step(100)
        self.assertEqual((state["link"], state["swaps"], state["connects"]), ("online", 0, 1))
        # Nonsense ends the connection; the element goes on.
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        state = element.until(lambda s: s["malformed"] == 1, what="the end")
        self.assertLess(state["rms"], 1)

    def test_who_says_nothing_or_nonsense_is_dismissed(self):
        server = Server(self, self.address)
        silent, rude = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
        for s in (silent, rude):
            self.addCleanup(s.close)
            s.settimeout(PATIENCE)
            s.connect(self.address[5:])
        rude.sendall(b"hello?" * 10)
        kind, body = self.hear(rude)
        self.assertEqual((kind, body), (BYE, b"\x02"))
        kind, body = self.hear(silent)  # after ten seconds
        self.assertEqual((kind, body), (BYE, b"\x03"))
        _, errors = server.stop()
        self.assertIn("this is no learning message", errors)
        self.assertIn("it does not say what it is", errors)

    def test_an_address_in_use_is_refused(self):
        Server(self, self.address)
        done = subprocess.run([CARDAN, "coupling", "learn", "serve", "--listen", self.address], capture_output=True,
                              text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 1)
        self.assertIn("in use", done.stderr)

    def test_it_serves_over_tcp_for_a_time(self):
        done = self.cardan("coupling", "learn", "serve", "--listen", "tcp:127.0.0.1:0", "--duration", "0.2 s")
        self.assertRegex(done.stdout, r"listening at tcp:127\.0\.0\.1:[1-9]\d*\n0 elements")

    def test_calls_that_make_no_sense(self):
        self.cardan("coupling", "learn", code=2, says="serve|train")
        self.cardan("coupling", "learn", "sreve", code=2, says="did you mean serve?")
        self.cardan("coupling", "learn", "serve", code=2, says="--listen")
        self.cardan("coupling", "learn", "serve", "x", "--listen", "unix:x", code=2, says="unexpected argument 'x'")
        self.cardan("coupling", "learn", "serve", "--listen", "localhost", code=2, says="expected unix:PATH")
        self.cardan("coupling", "learn", "serve", "--listen", "tcp:localhost:1", code=2, says="numeric")
        self.cardan("coupling", "learn", "serve", "--listen", "unix:x", "--every", "1.5", code=2, says="whole number")
        self.cardan("coupling", "learn", "serve", "--listen", "unix:x", "--hold-out", "1", code=2, says="--hold-out")
        self.cardan("coupling", "learn", "serve", "--listen", "unix:nowhere/x", code=1, says="nowhere/x")
        self.cardan("coupling", "learn", "train", code=2, says="RECORDING is missing")
        self.cardan("coupling", "learn", "train", "x.csv", code=2, says="--latency")
        self.cardan("coupling", "learn", "train", "x.csv", "--latency", 6, code=2, says="x.csv")


class Training(EndToEnd):
    def setUp(self):
        super().setUp()
        rows = ["time,torque,flat"]
        for n in range(3000):
            t = 0.01 * n
            y = (math.sin(6.7 * t) + 0.6 * math.sin(9.7 * t + 2) + 0.15 * math.sin(34 * t + 0.3)
                 + 0.002 * math.sin(7919.0 * n * n))
            rows.append(f"{t:.2f},{y!r},0")
        self.write("bench.csv", "\n".join(rows) + "\n")

    def train(self, *more, code=0):
        return self.cardan("coupling", "learn", "train", "bench.csv", "--signal", "torque", "--latency", 6,
                           *more, code=code)

    def test_a_better_element_is_written_and_is_an_element(self):
        done = self.train("-o", "torque.yaml")
        self.assertIn("held out", done.stdout)
        self.assertIn("torque.yaml: written", done.stdout)
        # It is where the next training starts.
        again = json.loads(self.train("--start", "torque.yaml", "--json", "--force").stdout)
        self.assertEqual(again["shape"], [25, 4, 2])
        first = json.loads(self.train("--json").stdout)
        self.assertTrue(first["better"])
        self.assertAlmostEqual(again["held_out"]["before"], first["held_out"]["after"],
                               delta=1e-9 * first["held_out"]["after"])
        self.assertIsNone(first["written"])

    def test_the_same_call_gives_the_same_file(self):
        self.train("--epochs", 30, "--batch", 100, "-o", "a.json")
        self.train("--epochs", 30, "--batch", 100, "-o", "b.json")
        texts = []
        for name in ("a.json", "b.json"):
            with open(self.path(name), encoding="utf-8") as f:
                texts.append(f.read())
        self.assertEqual(*texts)
        element = json.loads(texts[0])
        self.assertEqual((element["algorithm"], element["name"]), ("network", "torque"))
        self.assertEqual(len(element["network"]["W1"][0]), 25)

    def test_least_squares_from_a_named_element(self):
        r = json.loads(self.train("--method", "ridge", "--start", "eros", "--json", "-o", "e.json").stdout)
        self.assertLess(r["held_out"]["after"], 0.5 * r["held_out"]["before"])
        self.assertEqual((r["method"], r["k"], r["written"]), ("ridge", 6, "e.json"))
        r = json.loads(self.cardan("coupling", "learn", "train", "bench.csv", "--signal", "torque",
                                   "--latency", "60 ms", "--method", "ridge", "--start", "e.json",
                                   "--json", "--force").stdout)
        self.assertEqual(r["k"], 6)

    def test_what_is_not_better_is_not_written_unless_forced(self):
        flat = ("coupling", "learn", "train", "bench.csv", "--signal", "flat", "--latency", 6, "-o", "flat.yaml")
        done = self.cardan(*flat, code=1, says="--force would write it")
        self.assertIn("held out", done.stdout)
        self.assertFalse(os.path.exists(self.path("flat.yaml")))
        self.cardan(*flat, "--force")
        self.assertTrue(os.path.exists(self.path("flat.yaml")))

    def test_calls_that_make_no_sense(self):
        train = ("coupling", "learn", "train", "bench.csv", "--latency", 6)
        self.cardan(*train, code=2, says="--signal")
        self.cardan(*train, "--signal", "torqe", code=2, says="did you mean 'torque'?")
        self.cardan(*train, "--signal", "torque", "--start", "auto", code=2,
                    says="expected a network or a linear")
        self.cardan(*train, "--signal", "torque", "--start", "nothing.yaml", code=2, says="nothing.yaml")
        self.cardan(*train, "--signal", "torque", "--epochs", "0.5", code=2, says="--epochs")
        self.cardan(*train, "--signal", "torque", "--alpha", "-1", code=2, says="alpha")
        self.cardan(*train, "--signal", "torque", "--to", "0.1", code=2, says="bench.csv")
        self.cardan("coupling", "learn", "train", "bench.csv", "--signal", "torque", "--latency", "4..6", code=2,
                    says="one latency")
        self.cardan(*train, "--signal", "torque", "-o", "nowhere/x.yaml", code=1, says="nowhere/x.yaml")


if __name__ == "__main__":
    unittest.main()
