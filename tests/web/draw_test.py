"""The page on which connections are drawn: `cardan new --ui` and `cardan connect --ui` in a browser."""

import json
import os
import shutil
import subprocess
from urllib.parse import parse_qs, urlsplit

import client
from browser import CARDAN, BrowserTest, expect

FMUS = os.environ["CARDAN_FMUS"]

# Two masses and a spring with nothing connected, with comments and a layout of their own.
BARE = """# A comment that stays.
cardan: 1

units:   # two of them
  first: { fmu: first.fmu }
  second:
    fmu: second.fmu   # the other mass

run: { step: 1 ms, stop: 1 s }   # a second
results: out.csv
"""


class Drawing(BrowserTest):
    def files(self):
        shutil.copy(os.path.join(FMUS, "fmi2", "lo_fd1.fmu"), self.path("first.fmu"))
        shutil.copy(os.path.join(FMUS, "fmi2", "lo_fd2.fmu"), self.path("second.fmu"))

    def bare(self, **how):
        self.files()
        with open(self.path("system.yaml"), "w", encoding="utf-8") as f:
            f.write(BARE)
        return self.drawn(self.serve("draw", "connect", "system.yaml", "--ui"), **how)

    def drawn(self, url, **how):
        page = self.visit(url, **how)
        expect(page.locator("body")).to_have_attribute("data-state", "ready")
        return page

    def port(self, page, name, kind="Input"):
        return page.get_by_role("button", name=kind + " " + name, exact=False)

    def text(self, name="system.yaml"):
        with open(self.path(name), encoding="utf-8") as f:
            return f.read()

    def drag(self, page, a, b):
        ends = [x.bounding_box() for x in (a, b)]
        (x0, y0), (x1, y1) = [(e["x"] + e["width"] / 2, e["y"] + e["height"] / 2) for e in ends]
        page.mouse.move(x0, y0)
        page.mouse.down()
        page.mouse.move((x0 + x1) / 2, (y0 + y1) / 2)
        page.mouse.move(x1, y1)
        page.mouse.up()

    # ---- tests

    def test_connections_are_drawn_refused_undone_and_saved_without_touching_anything_else(self):
        page = self.bare()
        expect(page.locator("#file")).to_have_text("2 units, 0 connections")
        self.drag(page, self.port(page, "first.f ", "Output"), self.port(page, "second.f"))
        expect(page.locator("#file")).to_have_text("2 units, 1 connection, not saved")
        self.assertEqual(self.text(), BARE, "nothing is written before Save")
        # a velocity is no force: the sentence is that of check
        wrong = BARE.replace("units:", "connections: [ second.v2 -> first.x2 ]\nunits:")
        with open(self.path("wrong.yaml"), "w", encoding="utf-8") as f:
            f.write(wrong)
        said = subprocess.run([CARDAN, "check", "wrong.yaml"], cwd=self.folder, capture_output=True, text=True,
                              check=False, timeout=60).stderr
        self.drag(page, self.port(page, "second.v2", "Output"), self.port(page, "first.x2"))
        expect(page.locator("#say")).to_be_visible()
        self.assertIn(page.locator("#say").inner_text(), said)
        self.assertIn("cannot be converted", page.locator("#say").inner_text())
        expect(page.locator("#file")).to_have_text("2 units, 1 connection, not saved")
        self.drag(page, self.port(page, "first.x2"), self.port(page, "second.x2", "Output"))  # from the input, too
        expect(page.locator("#file")).to_have_text("2 units, 2 connections, not saved")
        page.keyboard.press("Control+z")
        page.keyboard.press("Control+z")
        expect(page.locator("#file")).to_have_text("2 units, 0 connections")  # as it is in the file
        page.keyboard.press("Control+y")
        expect(page.locator("#file")).to_have_text("2 units, 1 connection, not saved")
        page.locator("#set-step").fill("2 ms")
        page.keyboard.press("Enter")
        self.until(page, "document.getElementById('undo').title && document.getElementById('set-step').was === '2 ms'")
        page.locator("#set-step").fill("-1 ms")
        page.keyboard.press("Enter")
        expect(page.locator("#say")).to_contain_text("step")
        expect(page.locator("#set-step")).to_have_value("2 ms")
        page.locator("#save").click()
        expect(page.locator("#save")).to_have_text("Saved")
        self.assertEqual(self.text(), BARE.replace("step: 1 ms", "step: 2 ms").replace(
            "the other mass\n", "the other mass\nconnections:\n  - first.f -> second.f\n"))
        subprocess.run([CARDAN, "run", "system.yaml", "--quiet"], cwd=self.folder, check=True, timeout=60)

    def test_keys_alone_connect_remove_and_save(self):
        page = self.bare()
        page.keyboard.press("/")
        page.keyboard.type("first.f")
        expect(page.locator("#found")).to_have_text("1 found")
        page.keyboard.press("Enter")
        page.keyboard.press("Escape")
        page.keyboard.press("Tab")
        while page.evaluate("!document.activeElement.closest('#world')"):
            page.keyboard.press("Tab")
        self.until(page, "document.activeElement.port.full === 'first.f'")
        page.keyboard.press("Enter")
        expect(page.locator("#hint")).to_contain_text("From first.f")
        page.keyboard.press("PageDown")
        page.keyboard.press("ArrowDown")
        self.until(page, "document.activeElement.port.full === 'second.f'")
        page.keyboard.press("Enter")
        expect(page.locator("#file")).to_have_text("2 units, 1 connection, not saved")
        expect(self.port(page, "second.f")).to_be_focused()
        page.keyboard.press("Delete")
        expect(page.locator("#file")).to_have_text("2 units, 0 connections, not saved")
        page.keyboard.press("p")  # what is proposed
        expect(page.locator("#file")).to_have_text("2 units, 1 connection, not saved")
        page.keyboard.press("Control+s")
        expect(page.locator("#save")).to_have_text("Saved")
        self.assertIn("  - first.f -> second.f\n", self.text())

    def test_a_file_that_is_there_or_has_changed_is_not_overwritten_without_asking(self):
        self.files()
        with open(self.path("system.yaml"), "w", encoding="utf-8") as f:
            f.write("somebody's\n")
        page = self.drawn(self.serve("draw", "new", "first.fmu", "second.fmu", "--no-trial", "--ui"))
        expect(page.locator("#file")).to_have_text("2 units, 3 connections, not saved")
        page.locator("#save").click()
        expect(page.locator("#ask")).to_be_visible()
        page.get_by_role("button", name="Keep the file").click()
        self.assertEqual(self.text(), "somebody's\n")
        page.locator("#save").click()
        page.get_by_role("button", name="Overwrite").click()
        expect(page.locator("#save")).to_have_text("Saved")
        self.assertIn("# Made by: cardan new first.fmu second.fmu\n", self.text())
        self.assertIn("  - second.x2 -> first.x2 # same name, both in m\n", self.text())
        with open(self.path("system.yaml"), "a", encoding="utf-8") as f:
            f.write("# mine\n")
        page.keyboard.press("Control+z")
        self.drag(page, self.port(page, "first.energy", "Output"), self.port(page, "second.f"))
        expect(page.locator("#say")).to_be_visible()  # has a source already, or is no force
        page.locator("#set-stop").fill("2 s")
        page.keyboard.press("Enter")
        expect(page.locator("#save")).to_have_text("Save")
        page.locator("#save").click()
        expect(page.locator("#ask")).to_be_visible()
        page.keyboard.press("Escape")
        self.assertTrue(self.text().endswith("# mine\n"))
        self.end(self.process)
        self.assertIn("not saved", self.said)
        self.lost_is_fine = True

    def test_two_pages_do_not_overwrite_each_other(self):
        one = self.bare()
        two = self.drawn(one.url + "?token=" + one.evaluate("sessionStorage.getItem('cardan.token')"))
        self.drag(one, self.port(one, "first.f ", "Output"), self.port(one, "second.f"))
        expect(one.locator("#file")).to_have_text("2 units, 1 connection, not saved")
        self.drag(two, self.port(two, "second.x2", "Output"), self.port(two, "first.x2"))
        expect(two.locator("#say")).to_contain_text("changed elsewhere")
        expect(two.locator("#file")).to_have_text("2 units, 1 connection, not saved")
        self.drag(two, self.port(two, "second.x2", "Output"), self.port(two, "first.x2"))
        expect(two.locator("#file")).to_have_text("2 units, 2 connections, not saved")

    def test_light_dark_and_narrow_are_readable_and_whole(self):
        for theme, width in (("light", 1400), ("dark", 1400), ("light", 360), ("dark", 360)):
            with self.subTest(theme=theme, width=width):
                self.files()
                shutil.copy(os.path.join(FMUS, "fmi2", "drive_shaft.fmu"), self.path("shaft.fmu"))
                url = self.serve("draw", "new", "first.fmu", "second.fmu", "shaft.fmu", "--no-trial", "--ui")
                page = self.drawn(url, theme=theme, width=width, height=800)
                page.locator("#text-box summary").click()
                expect(page.locator("#text")).to_contain_text("cardan: 1")
                page.locator("#looks .go").first.click()
                expect(page.locator("#chosen")).to_be_visible()
                self.until(page, "document.getAnimations().length === 0")
                self.accessible(page)
                self.nothing_is_cut_off(page)
                self.end(self.process)
                self.lost_is_fine = True

    def test_hostile_clients_get_nothing_and_change_nothing(self):
        self.files()
        with open(self.path("system.yaml"), "w", encoding="utf-8") as f:
            f.write(BARE)
        url = urlsplit(self.serve("draw", "connect", "system.yaml", "--ui"))
        port, token, protocol = url.port, parse_qs(url.query)["token"][0], "cardan.draw.1"
        for how in ({"token": "0" * 32}, {"token": token, "origin": "http://evil.example"},
                    {"token": token, "host": "evil.example:" + str(port)}):
            self.assertEqual(client.WebSocket(port, protocol=protocol, **how).status, 403)
        for other in ("cardan.live.1", "cardan.view.1"):  # there is no run, and there are no results
            with self.assertRaises((client.Closed, OSError)):
                client.WebSocket(port, token, protocol=other).receive()
        for send in (lambda w: w.say(" " * (2 << 20)), lambda w: w.frame(client.BINARY, b"\1\2"),
                     lambda w: w.frame(client.TEXT, b"{", length=2 ** 40)):
            w = client.WebSocket(port, token, protocol=protocol)
            try:
                send(w)
            except OSError:
                pass
            self.assertIn(w.ending().code, (1003, 1009, 1006, None))
            w.close()
        w = client.WebSocket(port, token, protocol=protocol)
        w.next("hello")
        line = "a.y -> b.u\nresults: /etc/passwd"
        for message in ("", "[" * 100000, "{}", "[1]", '{"id":-1,"do":"text"}', '{"id":1,"do":"rm"}', '{"id":1,"do":"connect"}',
                        json.dumps({"id": 1, "do": "connect", "version": 0, "from": "first.f", "to": line}),
                        json.dumps({"id": 1, "do": "connect", "version": 0, "from": "x" * 5000, "to": "second.f"}),
                        json.dumps({"id": 1, "do": "connect", "version": 9, "from": "first.f", "to": "second.f"}),
                        json.dumps({"id": 1, "do": "set", "version": 0, "key": "path", "value": "/etc/passwd"}),
                        json.dumps({"id": 1, "do": "set", "version": 0, "key": "step", "value": "1 ms, stop: 9 s"}),
                        json.dumps({"id": 1, "do": "set", "version": 0, "key": "results", "value": "a\nb"})):
            w.say(message)
            self.assertTrue(w.next("reply").get("error"), message[:80])
        w.say('{"id":2,"do":"text"}')
        self.assertEqual(w.next("reply", lambda m: m["id"] == 2)["text"], BARE)
        w.close()
        self.assertEqual(self.text(), BARE)
