"""The operator's desk and a driver in a browser, as page_test.py does it for the rest of the page."""

import os
import re
import signal
import subprocess
import unittest

import e2e_desk
import page_test
from browser import CHROMIUM, QUIET, BrowserTest, expect

PAD = """() => {
    window.pad = { connected: true, axes: [0, 0, 0, 0], buttons: Array.from({ length: 17 }, () => ({ value: 0 })) };
    navigator.getGamepads = () => (window.pad ? [null, window.pad] : []);
}"""


class DeskPage(BrowserTest):
    # What those tests do to look, without the tests themselves.
    open, state, event = (getattr(page_test.LivePage, name) for name in ("open", "state", "event"))
    bench, desk, rows, at_rest, command = (
        getattr(e2e_desk.Desk, name) for name in ("bench", "desk", "rows", "at_rest", "command"))

    def lever(self, page, name):
        return page.get_by_role("group", name="desk." + name, exact=True)

    def go(self, page, name, target, rate=""):
        row = self.lever(page, name)
        row.get_by_label("Target of " + name).fill(str(target))
        row.get_by_label("Rate of " + name).fill(str(rate))
        row.get_by_role("button", name="Go").click()

    def begin(self, page):
        expect(page.locator("#start span")).to_have_text("Prepare")
        page.locator("#start").click()
        self.state(page, "waiting")
        page.locator("#start").click()
        self.state(page, "running")
        expect(page.locator(".seat .who")).to_have_text("yours")

    def test_a_bench_is_operated_from_the_page(self):
        bench = self.bench()
        desk = self.desk("--case", "speed 0..2000 1/min; torque 0..0.2 N.m; voltage 0..30 V", "--calibration", "c.json")
        page = self.open(desk)
        expect(page.locator("#banner")).to_contain_text("Nothing has begun.")
        expect(page.locator("#desk")).to_be_hidden()
        self.begin(page)
        self.go(page, "voltage_ref", 24)
        self.go(page, "speed_ref", 1000, 2000)
        speed = page.locator('article[data-unit="bench"] .limit', has=page.locator('.name[title="speed"]')).locator(".value b")
        expect(speed).to_have_text(re.compile("^(99[0-9]|100[0-9]|1000)"))
        self.event(page, "desk.speed_ref to 1000 rpm at 2000 rpm/s")

        # Limits are drawn and told; what cannot be is refused where it was typed.
        expect(self.lever(page, "speed_ref").locator(".ends")).to_have_text("02000")
        self.go(page, "speed_ref", 5000)
        expect(self.lever(page, "speed_ref").locator(".error")).to_have_text("desk.speed_ref = 5000 rpm, expected 0 to 2000 rpm")
        self.go(page, "speed_ref", "fast")
        expect(self.lever(page, "speed_ref").locator(".error")).to_contain_text("expected a number")

        # By keys alone: to the desk, a target, Enter.
        page.keyboard.press("Escape")
        page.keyboard.press("d")
        self.until(page, "document.activeElement.id === 'desk'")
        row = self.lever(page, "speed_ref")
        row.get_by_label("Target of speed_ref").focus()
        row.get_by_label("Target of speed_ref").press("Control+a")
        page.keyboard.type("300")
        page.keyboard.press("Enter")
        expect(speed).to_have_text(re.compile("^(29[0-9]|30[0-9])"))

        # A sensor is calibrated by two points, here the same one, which is refused in words.
        page.get_by_text("Calibrate a sensor").click()
        page.get_by_label("Sensor", exact=True).select_option("bench.speed")
        store = page.get_by_role("button", name="Store")
        store.click()
        expect(page.locator(".calibration .error")).to_contain_text("Expected a sensor, and for both points")
        for i in (1, 2):
            page.get_by_label(f"Reference of point {i}").fill("300")
            button = page.get_by_role("button", name=f"Take point {i}")
            self.until(page, "cardanLive.samples('bench.speed').length > 50")
            button.click()
        page.get_by_label("Who calibrates").fill("E. Noether")
        store.click()
        expect(page.locator(".calibration .error")).to_contain_text("calibration of speed: 300 rpm twice")

        # Another page looks on and has no lever.
        other = self.open(desk, theme="dark")
        expect(other.locator(".seat .who")).to_have_text("another page has it")
        expect(self.lever(other, "speed_ref").get_by_role("button", name="Go")).to_be_disabled()
        other.locator(".seat .take").click()
        expect(other.locator("#say")).to_contain_text("another page has 'desk'")
        other.close()

        # Loaded again within the silence it is still ours, and the bench still turns.
        page.reload()
        expect(page.locator(".seat .who")).to_have_text("yours")
        self.state(page, "running")
        expect(speed).to_have_text(re.compile("^(29[0-9]|30[0-9])"))
        for _ in range(2):
            page.locator("#stop").click()
        self.state(page, "ended")
        self.at_rest(bench)

        # And once more.
        expect(page.locator("#start span")).to_have_text("Acknowledge")
        self.lost_is_fine = True
        page.locator("#start").click()
        self.begin(page)
        page.get_by_role("button", name="Emergency stop of all benches").click()
        self.state(page, "failed")
        expect(page.locator("#banner")).to_contain_text("emergency stop by page")
        expect(page.locator("#start span")).to_have_text("Acknowledge")
        desk.process.send_signal(signal.SIGINT)
        self.assertEqual(desk.wait(), 1)

    def test_a_page_out_of_sight_stops_the_bench(self):
        bench = self.bench()
        desk = self.desk()
        page = self.open(desk)
        self.begin(page)
        self.go(page, "voltage_ref", 24)
        self.go(page, "speed_ref", 500)
        page.evaluate("Object.defineProperty(document, 'hidden', { get: () => true })")
        desk.says(r"nobody had the desk")
        self.at_rest(bench)
        expect(page.locator("#banner")).to_contain_text("A unit ended the run.")
        desk.process.send_signal(signal.SIGINT)
        self.assertEqual(desk.wait(), 0)

    def test_a_browser_that_is_killed_while_the_machine_turns_stops_the_bench(self):
        bench = self.bench()
        desk = self.desk()
        folder = os.path.join(self.folder, "browser")
        browser = subprocess.Popen([CHROMIUM, "--headless=new", *QUIET, "--remote-debugging-port=0", "--user-data-dir=" + folder,
                                    "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True)

        def kill():
            try:
                os.killpg(browser.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            browser.wait()
            browser.stderr.close()
        self.addCleanup(kill)
        line = ""
        while "DevTools listening" not in line:
            line = browser.stderr.readline()
            self.assertTrue(line, "the browser did not start")
        remote = self.playwright.chromium.connect_over_cdp(re.search(r":(\d+)/", line).expand(r"http://127.0.0.1:\1"))
        page = remote.contexts[0].new_page()
        page.goto(desk.url)
        self.begin(page)
        self.go(page, "voltage_ref", 24)
        self.go(page, "speed_ref", 1500)
        speed = page.locator('article[data-unit="bench"] .limit', has=page.locator('.name[title="speed"]')).locator(".value b")
        expect(speed).to_have_text(re.compile("^1[45][0-9][0-9]"))
        os.killpg(browser.pid, signal.SIGKILL)
        desk.says(r"nobody had the desk")
        self.at_rest(bench)
        self.assertIn("its page was silent for 10 s", desk.said())
        desk.process.send_signal(signal.SIGINT)
        self.assertEqual(desk.wait(), 0)

    def test_a_driver_has_sliders_a_selector_and_a_gamepad(self):
        for name, text in (("rc.cir", e2e_desk.RC), ("s.yaml", e2e_desk.SYSTEM.replace("silence: 3 s", "silence: 10 s"))):
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as f:
                f.write(text)
        run = self.command("run", "run", "s.yaml", "--ui", "--ui-address", "127.0.0.1:0")
        context = self.context(theme="dark", width=900)
        context.add_init_script("(" + PAD + ")()")
        page = context.new_page()
        page.on("websocket", lambda w: self.asked.add("127.0.0.1"))
        page.goto(run.url)
        pedal = page.get_by_role("slider", name="accelerator")
        expect(pedal).to_be_disabled()  # nobody has it
        page.get_by_role("button", name="Take").click()
        expect(pedal).to_be_enabled()
        value = page.get_by_role("group", name="human.accelerator").locator(".value b")
        pedal.focus()
        page.keyboard.press("End")
        expect(value).to_have_text("100.0")
        page.keyboard.press("Home")
        expect(value).to_have_text("0")
        page.get_by_role("radio", name="D").click()
        expect(page.get_by_role("radio", name="D")).to_have_attribute("aria-checked", "true")
        page.evaluate("window.pad.buttons[7].value = 0.5")
        expect(value).to_have_text("50.00")
        page.evaluate("window.pad = null")  # pulled out
        expect(value).to_have_text("0")
        self.assertTrue(page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing sticks out")
        page.get_by_role("button", name="Give back").click()
        expect(pedal).to_be_disabled()
        run.process.send_signal(signal.SIGINT)
        run.wait()


if __name__ == "__main__":
    unittest.main(verbosity=2)
