"""The live page's server under good and bad clients, over a small run that goes on meanwhile."""

import json
import os
import resource
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import tempfile
import time
import unittest

import client
from client import Closed, WebSocket, request

RUN = os.environ["WEB_RUN"]
TMP = os.environ.get("CARDAN_TMP")
TOKEN = "0123456789abcdef"
PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src", "web", "page")


class Server:
    """web_run with these options."""

    def __init__(self, test, *options, token=TOKEN):
        more = ["--token", token] if token else []
        self.p = subprocess.Popen([RUN, *more, *options], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
        test.addCleanup(self.kill)
        self.url = self.p.stdout.readline().strip()
        self.port = int(self.url.rsplit(":", 1)[1].split("/")[0]) if "token" in self.url else 0

    def kill(self):
        if self.p.poll() is None:
            self.p.kill()
        self.p.communicate()

    def end(self):
        """Waits; what it said."""
        out, err = self.p.communicate(timeout=60)
        for bad in ("AddressSanitizer", "runtime error", "ThreadSanitizer"):
            assert bad not in err, err
        assert self.p.returncode == 0, (self.p.returncode, out, err)
        return out


class Web(unittest.TestCase):
    def serve(self, *options, **more):
        return Server(self, *options, **more)

    def open(self, server, **options):
        w = WebSocket(server.port, TOKEN, **options)
        self.addCleanup(w.close)
        self.assertEqual(w.status, 101)
        return w

    def finish(self, server, reader=None):
        """Ends the run by the page and lets the server say how it was."""
        reader = reader or self.open(server)
        if not reader.greeted:
            reader.next("hello")
        self.assertTrue(reader.do("stop")["ok"])
        reader.ending()
        said = server.end()
        self.assertIn("ended 0", said)
        return said


    def refused(self, server, **options):
        """The status of a WebSocket that is not wanted."""
        w = WebSocket(server.port, TOKEN, **options)
        w.close()
        return w.status


class Http(Web):
    def test_the_page_is_there_for_everybody_and_the_rest_for_the_token(self):
        s = self.serve()
        modules = sorted(n for n in os.listdir(PAGE) if n.endswith(".js"))
        self.assertIn("live.js", modules)
        for path, kind in (("/", "text/html"), ("/live.css", "text/css"),
                           *(("/" + name, "text/javascript") for name in modules),
                           ("/chart.js", "text/javascript"), ("/icon.svg", "image/svg+xml")):
            status, fields, body = request(s.port, path)
            self.assertEqual(status, 200, path)
            self.assertTrue(fields["content-type"].startswith(kind), path)
            self.assertGreater(len(body), 50, path)
            self.assertNotIn(TOKEN.encode(), body)
        for path in ("/metrics", "/metrics?token=", "/metrics?token=wrong",
                     f"/metrics?token={TOKEN}x", f"/metrics?token={TOKEN[:-1]}",
                     f"/metrics?tokens={TOKEN}", "/ws", "/metrics?token=" + "a" * 1000):
            self.assertEqual(request(s.port, path)[0], 403, path)
        for wrong in ("Bearer x", f"Basic {TOKEN}", "Bearer", TOKEN):
            self.assertEqual(request(s.port, "/metrics", headers=[f"Authorization: {wrong}"])[0], 403)
        by_header = request(s.port, "/metrics", headers=[f"Authorization: Bearer {TOKEN}"])
        self.assertEqual(by_header[0], 200)
        w = self.open(s)
        w.next("status")
        status, fields, body = request(s.port, f"/metrics?token={TOKEN}")
        self.assertEqual(status, 200)
        self.assertIn("version=0.0.4", fields["content-type"])
        self.assertIn(b"cardan_unit_steps_total{unit=\"clock\"}", body)
        self.assertIn(b"cardan_live_readers 1\n", body)
        self.finish(s, w)

    def test_every_answer_carries_the_headers_that_keep_others_out(self):
        s = self.serve()
        for path, host in (("/", None), ("/nothing", None), ("/metrics", None), ("/", "evil.org")):
            fields = request(s.port, path, host=host)[1]
            self.assertIn("default-src 'none'", fields["content-security-policy"])
            self.assertIn("frame-ancestors 'none'", fields["content-security-policy"])
            self.assertEqual(fields["x-content-type-options"], "nosniff")
            self.assertEqual(fields["referrer-policy"], "no-referrer")
            self.assertEqual(fields["cache-control"], "no-store")
            self.assertNotIn("access-control-allow-origin", fields)
        self.finish(s)

    def test_hosts_and_origins_of_others_are_refused(self):
        s = self.serve()
        here = f"127.0.0.1:{s.port}"
        for host in ("evil.org", f"evil.org:{s.port}", "127.0.0.1", "127.0.0.1:1",
                     f"{here}.evil.org", f"localhost.evil.org:{s.port}"):
            self.assertEqual(request(s.port, "/", host=host)[0], 403, host)
            self.assertEqual(self.refused(s, host=host), 403, host)
        for host in (here, f"localhost:{s.port}", f"[::1]:{s.port}"):
            self.assertEqual(request(s.port, "/", host=host)[0], 200, host)
        for origin in ("http://evil.org", "null", f"https://{here}", "http://127.0.0.1",
                       f"http://localhost:{s.port}", f"http://{here}.evil.org"):
            self.assertEqual(request(s.port, "/", headers=[f"Origin: {origin}"])[0], 403, origin)
            self.assertEqual(self.refused(s, origin=origin), 403, origin)
        self.assertEqual(request(s.port, "/", headers=[f"Origin: http://{here}"])[0], 200)
        w = self.open(s, origin=f"http://{here}")
        two = "GET / HTTP/1.1\r\nHost: {0}\r\nHost: evil.org\r\n\r\n".format(here)
        with client.connect(s.port) as c:
            c.sendall(two.encode())
            self.assertEqual(client.read_head(c)[0], 403)
        none = client.connect(s.port)
        none.sendall(b"GET / HTTP/1.1\r\n\r\n")
        self.assertEqual(client.read_head(none)[0], 403)
        none.close()
        self.finish(s, w)

    def test_there_is_only_get_and_head(self):
        s = self.serve()
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
            status, fields, _ = request(s.port, "/", method=method, body=b"a=b")
            self.assertEqual(status, 405, method)
            self.assertEqual(fields["allow"], "GET, HEAD")
        status, fields, body = request(s.port, "/live.js", method="HEAD")
        self.assertEqual((status, body), (200, b""))
        self.assertGreater(int(fields["content-length"]), 0)
        for path in ("/nothing", "/../../etc/passwd", "/%2e%2e/x", "/live.js/", "/" + "a" * 3000,
                     "/index.html", "/index.html%00", "/page/live.js"):
            try:
                self.assertIn(request(s.port, path)[0], (400, 403, 404, 414), path)
            except (Closed, ConnectionError):
                pass  # refused in its own way
        self.finish(s)

    def test_a_connection_can_ask_for_more_than_one_thing(self):
        s = self.serve()
        with client.connect(s.port) as c:
            for _ in range(3):
                for path in ("/", "/chart.js", "/nothing", "/live.js"):
                    status, _, body = request(s.port, path, s=c)
                    self.assertEqual(status, 404 if path == "/nothing" else 200)
        self.finish(s)

    def test_garbage_instead_of_http_does_no_harm(self):
        s = self.serve()
        junk = [b"\x00" * 100, b"\xff" * 5000, b"GET", b"GET / HTTP/1.1\r\nHost: ", b"\r\n\r\n\r\n",
                b"GET / HTTP/9.9\r\n\r\n", b"CONNECT evil.org:80 HTTP/1.1\r\nHost: evil.org\r\n\r\n",
                b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00" * 9,
                b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"a" * 500,
                b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 20000 + b"\r\n\r\n",
                b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 5000 + b"\r\n",
                b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\nabc",
                b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
                b"GET /ws?token=" + TOKEN.encode() + b" HTTP/1.1\r\nUpgrade: websocket\r\n\r\n",
                b"GET /ws?token=" + TOKEN.encode() + b" HTTP/1.1\r\nHost: 127.0.0.1:"
                + str(s.port).encode() + b"\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
                b"GET /ws HTTP/1.1\r\nUpgrade: h2c\r\nHTTP2-Settings: AAAA\r\n\r\n",
                b"GET / HTTP/1.1\r\nUpgrade: gopher\r\nConnection: Upgrade\r\n\r\n"]
        for bytes_ in junk:
            with client.connect(s.port) as c:
                c.settimeout(0.2)
                try:
                    c.sendall(bytes_)
                    while c.recv(65536):
                        pass
                except OSError:
                    pass  # timeouts and resets are fine; what counts is below
            self.assertEqual(request(s.port, "/")[0], 200, bytes_[:60])
        self.finish(s)


class Reading(Web):
    def test_a_reader_is_greeted_and_told(self):
        s = self.serve()
        w = self.open(s)
        self.assertEqual(w.fields["sec-websocket-protocol"], "cardan.live.1")
        hello = w.next("hello")
        self.assertEqual([u["name"] for u in hello["units"]], ["clock", "int", "loose"])
        self.assertIn("clock.y", [x["name"] for x in hello["signals"]])
        self.assertEqual(hello["title"], 'a "small" run')
        self.assertEqual(hello["links"][0]["to"], "int.u")
        self.assertIn("int.a", [x["name"] for x in hello["settings"]])
        first = w.next("status", lambda m: m["state"] == "running")
        self.assertEqual(len(first["units"]), 3)
        later = w.next("status", lambda m: m["number"] > first["number"])
        self.assertGreater(later["time"], first["time"])
        self.assertEqual(later["readers"], 1)
        self.finish(s, self.open(s))
        ends = w.next("status", lambda m: m["state"] == "ended")
        self.assertEqual(ends["end"], "interrupted")
        self.assertEqual(w.ending().code, 1000)

    def test_only_the_right_subprotocol_or_none_is_spoken(self):
        s = self.serve()
        self.assertEqual(self.refused(s, protocol="chat"), 0)
        self.assertEqual(self.refused(s, protocol="knock"), 0)
        w = self.open(s, protocol=None)
        self.assertNotIn("sec-websocket-protocol", w.fields)
        self.assertEqual(self.refused(s, path="/"), 404)
        self.assertEqual(self.refused(s, path="/metrics"), 404)
        self.finish(s, w)

    def test_a_large_run_is_told_whole(self):
        s = self.serve("--units", "900")
        readers = [self.open(s) for _ in range(3)]
        for w in readers:
            hello = w.next("hello")
            self.assertEqual(len(hello["units"]), 902)
            self.assertEqual(hello["units"][-1]["name"], "loose899")
            self.assertEqual(len(w.next("status")["units"]), 902)
            names = [x["name"] for x in hello["signals"]][:64]
            self.assertTrue(w.do("watch", signals=names)["ok"])
            self.assertEqual(w.next("frame").signals, 64)
        for w in readers[1:]:
            w.close()
        self.finish(s, readers[0])

    def test_events_come_once_and_in_order(self):
        s = self.serve()
        w = self.open(s)
        w.next("hello")
        for i in range(3):
            self.assertTrue(w.do("mark", text=f"mark {i}")["ok"])
        late = self.open(s)
        got = [e for e in (late.next("event", lambda m: m["kind"] == "mark") for _ in range(3))]
        self.assertEqual([e["number"] for e in got], sorted({e["number"] for e in got}))
        self.assertIn("mark 2", got[2]["text"])
        self.finish(s, self.open(s))

    def test_frames_have_the_watched_signals_in_their_order(self):
        s = self.serve()
        w = self.open(s)
        w.next("hello")
        self.assertTrue(w.do("watch", signals=["int.y", "clock.y"])["ok"])
        last, frames = -1.0, 0
        while frames < 5:
            f = w.next("frame")
            frames += 1
            self.assertEqual(f.signals, 2)
            self.assertLessEqual(f.rows, 400)
            for t, y in zip(f.time, f.values[1]):
                self.assertGreater(t, last)
                self.assertAlmostEqual(t, y, delta=0.0011)  # the clock says what time it is
                last = t
        self.assertTrue(w.do("watch", signals=["clock.y"])["ok"])
        self.assertEqual(w.next("frame", ).signals, 1)
        self.assertTrue(w.do("watch", signals=[])["ok"])
        r = w.do("watch", signals=["no.such"])
        self.assertFalse(r["ok"])
        self.assertIn("no.such", r["error"])
        self.finish(s, self.open(s))

    def test_a_fast_run_is_thinned_and_shown_to_its_end(self):
        s = self.serve("--fast", "--wait", "--stop", "20")
        w = self.open(s)
        w.next("hello")
        self.assertTrue(w.do("watch", signals=["clock.y"])["ok"])
        self.assertTrue(w.do("start")["ok"])
        last, status = 0, None
        while not (status and status["state"] == "ended"):
            opcode, data = w.receive()
            if opcode == client.BINARY:
                f = client.Frame(data)
                self.assertLessEqual(f.rows, 400)
                last = f.time[-1]
            else:
                m = json.loads(data)
                status = m if m["is"] == "status" else status
        self.assertEqual(status["end"], "stop time")
        self.assertGreater(last, 10)  # rows are far apart in so fast a run
        self.assertIn("ended 0 at 20", s.end())


class Steering(Web):
    def test_commands_take_effect_and_are_answered(self):
        s = self.serve("--wait")
        w = self.open(s)
        w.next("hello")
        w.next("status", lambda m: m["state"] == "waiting")
        r = w.do("step", count=3)
        self.assertTrue(r["ok"], r)
        st = w.next("status", lambda m: m["state"] == "paused")
        self.assertEqual(st["cycles"], 3)
        self.assertTrue(w.do("set", name="int.a", value=2.5)["ok"])
        self.assertTrue(w.do("fault", to="int.u", kind="offset", value=1)["ok"])
        self.assertTrue(w.do("start")["ok"])
        st = w.next("status", lambda m: m["state"] == "running" and m["links"][0]["fault"] == "offset")
        self.assertIsNone(st["links"][0]["fault_left"])
        self.assertTrue(w.do("clear", to="")["ok"])
        w.next("status", lambda m: m["links"][0]["fault"] == "none")
        self.assertTrue(w.do("pause")["ok"])
        w.next("status", lambda m: m["state"] == "paused")
        for verb, members, part in (
                ("set", {"name": "int.nothing", "value": 1}, "int.nothing"),
                ("set", {"name": "int.a", "value": "1 V"}, "V"),
                ("fault", {"to": "no.where", "kind": "hold"}, "no.where"),
                ("couple", {"to": "int.u", "element": "nonsense"}, ""),
                ("dance", {}, "dance"), ("start", {"x": 1}, '"x"'), ("mark", {"text": 3}, "a number")):
            r = w.do(verb, **members)
            self.assertFalse(r["ok"], verb)
            self.assertIn(part, r["error"])
        self.assertTrue(w.do("stop")["ok"])
        self.assertEqual(w.next("status", lambda m: m["state"] == "ended")["end"], "interrupted")
        s.end()

    def test_who_did_it_is_in_the_record(self):
        s = self.serve()
        w = self.open(s)
        w.next("hello")
        self.assertTrue(w.do("set", name="int.a", value="3")["ok"])
        e = w.next("event", lambda m: "int.a" in m["text"])
        self.assertIn("page 127.0.0.1", e["text"])
        self.finish(s, self.open(s))

    def test_a_read_only_page_may_only_watch(self):
        s = self.serve("--read-only")
        w = self.open(s)
        self.assertTrue(w.next("hello")["read_only"])
        self.assertTrue(w.do("watch", signals=["clock.y"])["ok"])
        for verb, members in (("stop", {}), ("pause", {}), ("mark", {"text": "x"}),
                              ("set", {"name": "int.a", "value": 1})):
            r = w.do(verb, **members)
            self.assertFalse(r["ok"])
            self.assertIn("read-only", r["error"])
        seen = w.next("status")["cycles"]
        w.next("status", lambda m: m["state"] == "running" and m["cycles"] > seen)


class Rude(Web):
    def test_messages_that_are_no_json_or_too_large_end_the_connection(self):
        s = self.serve()
        for send, code in ((lambda w: w.say("hello"), 1007),
                           (lambda w: w.say(b"{\"id\":1,\"do\":\"\xff\xfe\"}"), 1007),
                           (lambda w: w.say(""), 1007),
                           (lambda w: w.say("[" * 16384), 1007),
                           (lambda w: w.say(" " * 16385), 1009),
                           (lambda w: w.say(" " * 200000), 1009),
                           (lambda w: w.frame(client.TEXT, b"{", length=2 ** 40), 1009),
                           (lambda w: w.frame(client.BINARY, b"\x01\x02"), 1003)):
            w = self.open(s)
            w.next("hello")
            try:
                send(w)
            except OSError:
                pass  # it may be closed while we still send
            c = w.ending()
            self.assertIn(c.code, (code, None))  # a reset may overtake the reason
            w.close()
        self.finish(s)

    def test_fragments_are_put_together(self):
        s = self.serve()
        w = self.open(s)
        w.next("hello")
        message = json.dumps({"id": 5, "do": "mark", "text": "in pieces"}).encode()
        w.frame(client.TEXT, message[:1], final=False)
        w.frame(client.PING, b"meanwhile")
        for i in range(1, len(message) - 1):
            w.frame(0, message[i:i + 1], final=False)
        w.frame(0, b"", final=False)
        w.frame(0, message[-1:], final=True)
        self.assertTrue(w.next("reply", lambda m: m["id"] == 5)["ok"])
        exact = json.dumps({"id": 6, "do": "clear", "to": ""})
        w.say(exact + " " * (16384 - len(exact)))
        self.assertTrue(w.next("reply", lambda m: m["id"] == 6)["ok"])
        for _ in range(5):  # more than a message may have, in small pieces
            w.frame(client.TEXT if _ == 0 else 0, b" " * 4000, final=False)
        self.assertIn(w.ending().code, (1009, None))
        self.finish(s)

    def test_frames_against_the_protocol_end_the_connection(self):
        s = self.serve()
        for opcode, masked in ((client.TEXT | 0x70, True), (3, True), (11, True), (0, True),
                               (client.TEXT, False)):
            w = self.open(s)
            w.next("hello")
            w.frame(opcode, b"abc", masked=masked)
            try:
                self.assertIsNotNone(w.ending())
            except TimeoutError:
                self.fail(f"opcode {opcode}, masked {masked} is taken")
            w.close()
        for n in range(30):
            w = self.open(s)
            try:
                w.s.sendall(os.urandom(400 * n))
            except OSError:
                pass
            w.close()
        self.finish(s)

    def test_a_flood_of_commands_ends_the_connection(self):
        s = self.serve()
        w = self.open(s)
        w.next("hello")
        frame = json.dumps({"id": 1, "do": "clear", "to": ""})
        try:
            for _ in range(2000):
                w.say(frame)
        except OSError:
            pass
        self.assertIn(w.ending().code, (1008, None))
        self.finish(s)

    def test_sixteen_readers_are_served_and_more_are_asked_to_come_again(self):
        s = self.serve()
        readers = [WebSocket(s.port, TOKEN) for _ in range(20)]
        self.assertEqual([w.status for w in readers], [101] * 16 + [503] * 4)
        for w in readers[:16]:
            w.next("hello")
        self.assertEqual(request(s.port, "/")[0], 200)
        for w in readers[4:]:
            w.close()
        deadline = time.monotonic() + client.PATIENCE
        while True:  # places come back when the server has seen them go
            w = WebSocket(s.port, TOKEN)
            if w.status == 101 or time.monotonic() > deadline:
                break
            w.close()
        self.assertEqual(w.status, 101)
        w.next("status", lambda m: m["readers"] == 5)
        for other in readers[:4]:
            other.close()
        self.finish(s, w)
        w.close()

    def test_reloading_a_hundred_times_leaves_nothing_behind(self):
        s = self.serve()
        for i in range(100):
            w = WebSocket(s.port, TOKEN)
            self.assertIn(w.status, (101, 503))
            if i % 3 == 0 and w.status == 101:
                w.next("hello")
            if i % 3 == 1:
                w.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            w.close()
        w = self.open(s)
        w.next("status", lambda m: m["readers"] == 1)
        self.finish(s, self.open(s))

    def test_a_reader_that_never_reads_does_not_hold_up_the_run(self):
        s = self.serve("--wait", "--stop", "1.5")
        deaf = WebSocket(s.port, TOKEN)
        deaf.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.say(json.dumps({"id": 1, "do": "watch", "signals": ["clock.y", "int.y", "int.x"]}))
        for i in range(150):
            deaf.say(json.dumps({"id": i, "do": "dance"}))
        w = self.open(s)
        w.next("hello")
        self.assertTrue(w.do("watch", signals=["clock.y"])["ok"])
        self.assertTrue(w.do("start")["ok"])
        st = w.next("status", lambda m: m["state"] == "ended")
        self.assertEqual(st["end"], "stop time")
        self.assertEqual(st["lost_rows"], 0)
        self.assertIn("ended 0 at 1.5 lost 0", s.end())
        deaf.close()

    def test_a_hundred_silent_connections_do_not_keep_a_reader_out(self):
        s = self.serve()
        silent = [client.connect(s.port) for _ in range(60)]
        w = self.open(s)
        w.next("hello")
        self.assertEqual(request(s.port, "/")[0], 200)
        more = [client.connect(s.port) for _ in range(60)]  # beyond what is held at a time
        w.next("status")
        for c in silent + more:
            c.close()
        self.finish(s, w)


    def test_a_thousand_idle_connections_leave_places_for_who_has_the_token(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        s = self.serve()
        first = self.open(s)
        first.next("hello")
        idle = []
        for i in range(1000):
            c = client.connect(s.port)
            self.addCleanup(c.close)
            # nothing, a part of a request, or a whole one without a token, and then silence
            c.sendall((b"", b"GET /ws?tok", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")[i % 3])
            idle.append(c)
        w = self.open(s)  # all of them still there, as far as they are concerned
        w.next("hello")
        self.assertEqual(request(s.port, f"/metrics?token={TOKEN}")[0], 200)
        first.next("status")
        # One that says nothing is not held for long, also if nobody else wants its place.
        with self.assertRaises((ConnectionError, Closed)):
            client.read_head(idle[-1])
            client.read_head(idle[-1])
        self.finish(s, w)


class Starting(Web):
    def fails(self, *options, says):
        done = subprocess.run([RUN, *options], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(says, done.stderr)
        self.assertNotIn("Sanitizer", done.stderr)

    def test_addresses_that_others_reach_have_to_be_meant(self):
        self.fails("--address", "0.0.0.0", says="explicitly")
        self.fails("--address", "0.0.0.0", "--open", says="certificate")
        self.fails("--address", "203.0.113.7", "--open", "--plain", says="none of this machine")
        self.fails("--address", "example.org", says="numeric")
        self.fails("--token", "short", says="expected 8 to 128")
        s = self.serve("--address", "0.0.0.0", "--open", "--plain", "--stop", "0.3")
        self.assertNotIn("0.0.0.0", s.url)
        out, err = s.p.communicate(timeout=60)
        self.assertIn("others than this machine", err)
        self.assertIn("without TLS", err)

    def test_a_port_that_is_taken_is_an_error_only_if_it_was_asked_for(self):
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            self.fails("--address", f"127.0.0.1:{port}", says="another program listens there")
        first, second = self.serve(), self.serve()
        self.assertNotEqual(first.port, second.port)
        self.finish(first)
        self.finish(second)

    def test_every_run_has_its_own_token(self):
        tokens = set()
        for _ in range(3):
            s = self.serve("--stop", "0.1", token=None)
            tokens.add(s.url.split("token=")[1])
            s.end()
        self.assertEqual(len(tokens), 3)
        self.assertTrue(all(len(t) == 32 for t in tokens))

    def test_ipv6(self):
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError:
            self.skipTest("no IPv6 here")
        s = self.serve("--address", "[::1]")
        self.assertIn("http://[::1]:", s.url)
        with client.connect(s.port, "::1") as c:
            status, _, _ = request(s.port, "/", host=f"[::1]:{s.port}", s=c)
            self.assertEqual(status, 200)

    def test_streams_work_without_a_page(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ear:
            ear.bind(("127.0.0.1", 0))
            ear.settimeout(client.PATIENCE)
            s = self.serve("--no-page", "--stream", f"pj://127.0.0.1:{ear.getsockname()[1]}",
                           "--stop", "0.5")
            self.assertEqual(s.url, "")
            last, rows = -1, 0
            while last < 0.45:
                data = ear.recv(65536)
                self.assertLess(len(data), 1400)
                for row in json.loads(data):
                    self.assertGreater(row["timestamp"], last)
                    last = row["timestamp"]
                    self.assertAlmostEqual(row["clock"]["y"], last, delta=0.0011)
                    self.assertEqual(set(row["int"]), {"y"})
                    rows += 1
            s.end()
        self.assertGreater(rows, 100)


class Command(Web):
    """cardan run --ui, from its first line to Ctrl-C."""

    def test_a_run_of_the_command_is_watched_and_steered(self):
        folder = tempfile.mkdtemp(prefix="web_", dir=TMP)
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        with open(os.path.join(folder, "s.yaml"), "w", encoding="utf-8") as f:
            f.write("cardan: 1\ntitle: A page\nunits:\n  a:\n    signals:\n"
                    "      x: { shape: sine, amplitude: 5, frequency: 1 Hz, unit: N.m }\n"
                    "run: { step: 1 ms, stop: 1 h, pace: realtime }\n")
        p = subprocess.Popen([os.environ["CARDAN"], "run", "s.yaml", "--ui", "--ui-wait",
                              "--ui-token", TOKEN, "-o", "r.csv"], cwd=folder, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(lambda: p.poll() is None and p.kill())
        said = ""
        while "http://" not in said:
            line = p.stderr.readline()
            self.assertTrue(line, said)
            said += line
        port = int(said.rsplit(":", 1)[1].split("/")[0])
        w = WebSocket(port, TOKEN)
        self.addCleanup(w.close)
        hello = w.next("hello")
        self.assertEqual((hello["title"], hello["signals"][0]["name"]), ("A page", "a.x"))
        self.assertTrue(w.do("watch", signals=["a.x"])["ok"])
        w.next("status", lambda m: m["state"] == "waiting")
        self.assertTrue(w.do("start")["ok"])
        self.assertLessEqual(max(map(abs, w.next("frame").values[0])), 5)
        self.assertTrue(w.do("mark", text="here")["ok"])
        self.assertIn("here", w.next("event", lambda m: "here" in m["text"])["text"])
        p.send_signal(signal.SIGINT)
        self.assertEqual(w.next("status", lambda m: m["state"] == "ended")["end"], "interrupted")
        self.assertEqual(w.ending().code, 1000)
        _, more = p.communicate(timeout=60)
        self.assertNotIn("Sanitizer", more)
        self.assertIn("interrupted", more)


class Benches(Web):
    """Runs of the command with a test bench in a process of its own."""

    def setUp(self):
        from bench_run import Bench, BenchRun
        self.folder = tempfile.mkdtemp(prefix="web_", dir=TMP)
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.bench = lambda *options: Bench(self, self.folder, *options)
        self.run_it = lambda bench, *options, **more: BenchRun(self, self.folder, bench, *options, **more)

    def page(self, run):
        w = WebSocket(run.port, run.token)
        self.addCleanup(w.close)
        self.assertEqual(w.status, 101)
        return w

    def em(self, w, where):
        return w.next("benches", lambda m: where(m["benches"][0]))["benches"][0]

    def test_an_emergency_stops_a_bench_that_is_conditioned(self):
        bench = self.bench()  # as slow as life
        run = self.run_it(bench, initial="oil 80 degC")
        w = self.page(run)
        wait = w.next("wait")
        self.assertEqual((wait["state"], wait["title"], wait["read_only"]), ("starting", "A machine on its bench", False))
        em = self.em(w, lambda b: b["phase_name"] == "conditioning" and b["heat"])
        self.assertEqual((em["unit"], em["place"], em["stop"]), ("em", 2, None))
        self.assertEqual(em["security"], "plain, this host")  # page/benches.js shows it beside the link
        self.assertGreater(em["heat"]["first"], 40)
        self.assertIn("oil", em["progress"])
        self.assertEqual([(q["name"], q["min"], q["max"]) for q in em["limits"][:2]],
                         [("speed", 0, 6500), ("torque", -250, 250)])
        self.assertIn("not ready", w.do("mark", text="x")["error"])
        self.assertTrue(w.do("emergency")["ok"])
        over = w.next("wait", lambda m: m["state"] == "ended")
        message = "emergency stop by page 127.0.0.1 during the initialisation"
        self.assertEqual((over["end"], over["message"]), ("failed", message))
        self.assertEqual(w.ending().code, 1000)
        self.assertEqual(run.wait(), 1)
        self.assertIn(message, run.said())
        self.assertEqual(bench.wait(), 0)
        self.assertIn("stopped by master", bench.said())
        self.assertEqual(bench.phases()[-1], "safe")
        self.assertNotIn("run", bench.phases())

    def test_the_end_is_seen_until_the_bench_is_at_rest(self):
        bench = self.bench("--speed-up", "500")
        run = self.run_it(bench)
        w = self.page(run)
        em = self.em(w, lambda b: any(q["name"] == "speed" and (q["measured"] or 0) > 1400 for q in b["limits"]))
        self.assertEqual((em["state_name"], em["phase_name"], em["place"]), ("RUNNING", "run", 4))
        speed = next(q for q in em["limits"] if q["name"] == "speed")
        self.assertEqual((speed["unit"], speed["side"], speed["clamped"]), ("1/min", "max", False))
        self.assertAlmostEqual(speed["margin"], 100 * (speed["max"] - speed["measured"]) / speed["max"], delta=0.01)
        self.assertTrue(w.do("emergency")["ok"])
        status = w.next("status", lambda m: m["state"] == "stopping")
        self.assertEqual(status["end"], "failed")
        self.assertRegex(status["message"], r"^emergency stop by page 127.0.0.1 at t = [0-9.]+ s$")
        self.assertEqual(w.do("emergency")["ok"], True)  # twice is once
        self.assertEqual(w.do("mark", text="late")["error"], "the run has ended")
        em = self.em(w, lambda b: b["place"] == 6)
        self.assertEqual(em["reason_name"], "master")
        self.assertEqual(em["stop"][0], 0)
        self.assertEqual(em["stop"], sorted(em["stop"]))
        self.assertGreater(em["stop"][1], 0.05)  # the speed came down on a ramp
        self.assertEqual(w.next("status", lambda m: m["state"] == "ended")["end"], "failed")
        w.ending()
        self.assertEqual(run.wait(), 1)
        self.assertIn(status["message"], run.said())
        self.assertEqual(bench.wait(), 0)
        self.assertIn("phase speed down, stopped by master", bench.said())
        order = ["speed down", "voltage down", "cool down", "stand down", "safe"]
        stop = [p for p in bench.phases() if p in order]
        self.assertEqual(sorted(stop, key=order.index), stop)
        events = subprocess.run([os.environ["CARDAN"], "info", "em.mf4", "--json"], cwd=self.folder,
                                capture_output=True, text=True, check=True, timeout=60)
        self.assertIn(status["message"], [e["text"] for e in json.loads(events.stdout)["events"]])

    def test_a_bench_that_cannot_be_reached_is_named_on_the_page(self):
        bench = self.bench()
        bench.kill()
        run = self.run_it(bench, "--ui-keep")
        w = self.page(run)
        over = w.next("wait", lambda m: m["state"] == "ended")
        self.assertEqual(over["end"], "failed")
        self.assertIn("unit 'em'", over["message"])
        self.assertEqual(w.do("emergency")["error"], "the run has ended")
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(), 1)
        self.assertIn(over["message"], run.said())

    def test_why_a_bench_stopped_is_on_the_page(self):
        bench = self.bench("--speed-up", "500", "--fault", "stuck-torque@1.2s")
        run = self.run_it(bench)
        w = self.page(run)
        self.assertIn("lost torque control", self.em(w, lambda b: b["why"])["why"])
        over = w.next("status", lambda m: m["state"] == "ended")
        self.assertEqual(over["end"], "failed")
        self.assertIn("lost torque control", over["message"])
        self.assertEqual(run.wait(), 1)
        self.assertIn(over["message"], run.said())

    def test_a_bench_that_dies_is_named_on_the_page(self):
        bench = self.bench("--speed-up", "500")
        run = self.run_it(bench, watchdog="1 s")
        w = self.page(run)
        w.next("status", lambda m: m["state"] == "running" and m["time"] > 0.3)
        bench.kill()
        over = w.next("status", lambda m: m["state"] in ("stopping", "ended"))
        self.assertEqual(over["end"], "failed")
        self.assertIn("unit 'em'", over["message"])
        self.assertEqual(run.wait(), 1)
        self.assertIn(over["message"], run.said())

    def test_who_may_only_watch_does_not_stop_a_bench(self):
        bench = self.bench("--speed-up", "500")
        run = self.run_it(bench, "--ui-read-only")
        w = self.page(run)
        self.em(w, lambda b: b["place"] == 4)
        self.assertIn("read-only", w.do("emergency")["error"])
        w.next("status", lambda m: m["state"] == "running" and m["time"] > 0.3)
        run.process.send_signal(signal.SIGINT)
        over = w.next("status", lambda m: m["state"] == "ended")
        self.assertEqual(over["end"], "interrupted", over["message"])
        self.assertEqual(run.wait(), 1)
        self.assertEqual(bench.wait(), 0)


class Tls(Web):
    def test_with_a_certificate_everything_is_https(self):
        if not shutil.which("openssl"):
            self.skipTest("no openssl to make a certificate")
        folder = tempfile.mkdtemp(prefix="web_", dir=TMP)
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        cert, key = os.path.join(folder, "c.pem"), os.path.join(folder, "k.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                        "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key,
                        "-out", cert], check=True, capture_output=True)
        s = self.serve("--cert", cert, "--key", key)
        self.assertTrue(s.url.startswith("https://"))
        trust = ssl.create_default_context(cafile=cert)
        plain = client.connect

        def secure(port, host="127.0.0.1"):
            return trust.wrap_socket(plain(port, host), server_hostname="127.0.0.1")

        client.connect = secure
        try:
            self.assertEqual(request(s.port, "/live.js")[0], 200)
            w = self.open(s, origin=f"https://127.0.0.1:{s.port}")
            w.next("hello")
            self.assertTrue(w.do("watch", signals=["clock.y"])["ok"])
            self.assertGreater(w.next("frame").rows, 0)
            self.assertEqual(self.refused(s, origin=f"http://127.0.0.1:{s.port}"), 403)
            self.finish(s, self.open(s))
        finally:
            client.connect = plain

    def test_files_that_are_no_certificates_are_named(self):
        with tempfile.NamedTemporaryFile("w", suffix=".pem", dir=TMP) as f:
            f.write("nonsense")
            f.flush()
            for arguments, says in ((["--cert", f.name, "--key", f.name], "no TLS with certificate"),
                                    (["--cert", "/nonexistent", "--key", f.name], "/nonexistent"),
                                    (["--cert", f.name], "the key is missing")):
                done = subprocess.run([RUN, *arguments], capture_output=True, text=True, timeout=60)
                self.assertEqual(done.returncode, 1)
                self.assertIn(says, done.stderr)


if __name__ == "__main__":
    unittest.main()
