"""The live page in a browser, in front of a run of the built command.

A run is started, the address that it prints is opened in headless Chromium, and what a user would
see and do is seen and done. Nothing sleeps: everything waits for what has to come. Chromium is the
system's (no browser is fetched); without it, or without Playwright, the tests are skipped.
"""

import json
import os
import re
import signal
import socket
import subprocess
import unittest

from bench_run import Bench, BenchRun
from browser import CARDAN, PATIENCE, TMP, BrowserTest, expect

FMUS = os.environ["CARDAN_FMUS"]
EXAMPLES = os.environ["CARDAN_EXAMPLES"]
LONG = "600"  # s; runs are stopped by the tests


class Run:
    """`cardan run --ui` on an example, until it has printed its address."""

    def __init__(self, test, *options, name="drive.mf4", system="realtime/drive.yaml", stop=LONG, changes=()):
        with open(os.path.join(EXAMPLES, system), encoding="utf-8") as f:
            text = f.read().replace("../../build/fmus", FMUS)
        for old, new in changes:
            test.assertIn(old, text)
            text = text.replace(old, new)
        self.system = os.path.join(test.folder, os.path.basename(system))
        with open(self.system, "w", encoding="utf-8") as f:
            f.write(text)
        self.results = os.path.join(test.folder, name)
        self.process = subprocess.Popen(
            [CARDAN, "run", self.system, "--ui", "--stop-time", stop, "--output", self.results, *options],
            cwd=test.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        test.addCleanup(self.end)
        self.said = ""
        for line in self.process.stderr:
            self.said += line
            found = re.match(r"live\s+(http\S+)", line)
            if found:
                self.url = found[1]
                return
        raise AssertionError("no address of a page: " + self.said)

    def wait(self):
        """Exit code, when the run has ended by itself."""
        self.said += self.process.communicate(timeout=PATIENCE / 1000)[1]
        return self.process.returncode

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def events(self):
        done = subprocess.run([CARDAN, "info", self.results, "--json"], capture_output=True, text=True,
                              check=True, timeout=60)
        return json.loads(done.stdout)["events"]

    def columns(self, *names):
        """Times and values of the result file, as another program reads them."""
        from asammdf import MDF
        with MDF(self.results) as recording:
            signals = [recording.get(name) for name in names]
            return [list(signals[0].timestamps)] + [list(s.samples) for s in signals]


class LivePage(BrowserTest):
    def open(self, run, **how):
        return self.visit(run.url, **how)

    def moving(self, page):
        """The plots get data: rows come and the view advances."""
        self.until(page, "window.cardanLive && cardanLive.rows() > 0 && cardanLive.plots().length > 0 && cardanLive.plots()[0].newest > -Infinity")  # not NaN
        before = page.evaluate("({rows: cardanLive.rows(), to: cardanLive.plots()[0].newest})")
        self.until(
            page, "cardanLive.rows() > b.rows + 20 && cardanLive.plots()[0].newest > b.to && "
            "cardanLive.plots().every(p => p.points > 1)", before)

    def state(self, page, word):
        expect(page.locator("#state-word")).to_have_text(word)

    def stop(self, run, page, press):
        """Two presses within three seconds, which a busy machine may miss."""
        for _ in range(5):
            press()
            press()
            try:
                expect(page.locator("#state-word")).to_have_text("ended", timeout=4000)
                break
            except AssertionError:
                continue
        self.state(page, "ended")
        self.assertEqual(run.wait(), 0, run.said)

    def event(self, page, text):
        expect(page.locator("#event-list p", has_text=text).first).to_be_visible()

    def clock(self, page):
        return float(page.locator("#clock").inner_text())

    def link(self, page, to):
        return page.locator("#links tbody", has=page.locator(f'button[title$="→ {to}"]'))

    # ---- tests

    def test_what_is_seen_is_the_run_and_what_is_done_arrives_in_it(self):
        run = Run(self)
        page = self.open(run)
        self.state(page, "running")
        self.moving(page)
        expect(page.locator("#title")).to_have_text("Electric drive over a network")
        self.assertNotIn("token", page.url)  # of the address line
        self.assertEqual(page.locator(".unit-box").count(), 4)
        self.assertEqual(page.locator(".edge").count(), 6)
        expect(page.locator("#pairs")).to_be_hidden()  # there are none
        # What is drawn has colours other than the ground's.
        inks = page.evaluate("""() => {
            const c = document.querySelector('.chart canvas'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
            const seen = new Set();
            for (let i = 0; i < d.length; i += 4) { seen.add(d[i] + ',' + d[i + 1] + ',' + d[i + 2] + ',' + d[i + 3]); }
            return seen.size; }""")
        self.assertGreater(inks, 10)

        # A parameter: refused with a reason beside the field, restored, set.
        field = page.get_by_label("limit")
        row = page.locator(".setting", has=field)
        field.fill("1e9")
        field.press("Enter")
        expect(row.locator(".error")).to_contain_text("400")
        field.press("Escape")
        expect(field).to_have_value("60")
        expect(row.locator(".error")).to_be_hidden()
        field.fill("2.5 N.m")
        field.press("Enter")
        self.event(page, "controller.limit = 2.5")
        expect(field).to_have_value("2.5")

        # Another algorithm by its name, one as JSON, one that there is not.
        torque = self.link(page, "shaft.torque")
        expect(torque.locator("td.word")).to_have_text(re.compile("eros"))
        torque.locator(".row-name").click()
        torque.get_by_label("Algorithm of shaft.torque").select_option("zoh")
        expect(torque.locator("td.word")).to_have_text(re.compile("zoh"))
        element = torque.get_by_label("Element as JSON for shaft.torque")
        element.fill('{"algorithm": "nonsense"}')
        element.press("Enter")
        expect(torque.locator(".error")).to_contain_text("nonsense")
        element.fill('{"algorithm": "foh"}')
        element.press("Enter")
        expect(torque.locator("td.word")).to_have_text(re.compile("foh"))
        expect(torque.locator(".error")).to_be_hidden()

        # Faults: one that ends by itself, one that is cleared.
        target = self.link(page, "controller.target")
        target.locator(".row-name").click()
        target.get_by_label("Fault at controller.target").select_option("value")
        target.get_by_label("Value of the fault").fill("-50")
        target.get_by_label("Duration of the fault").fill("2")
        target.get_by_role("button", name="Inject").click()
        expect(target.locator(".first .fault")).to_contain_text("value")
        expect(page.locator(".edge[data-fault]")).to_have_count(1)
        expect(target.locator(".first .fault")).to_be_hidden()
        expect(page.locator(".edge[data-fault]")).to_have_count(0)
        target.get_by_label("Fault at controller.target").select_option("hold")
        target.get_by_label("Duration of the fault").fill("")
        target.get_by_role("button", name="Inject").click()
        expect(target.locator(".first .fault")).to_contain_text("until cleared")
        target.get_by_role("button", name="Clear").click()
        expect(target.locator(".first .fault")).to_be_hidden()

        # A mark; then the end, by keys.
        page.locator("#mark-text").fill("seen from two metres")
        page.locator("#mark-text").press("Enter")
        self.event(page, "seen from two metres")
        page.locator("#mark-text").press("Escape")
        samples = page.evaluate("['shaft.speed', 'controller.demand'].map(n => cardanLive.samples(n))")
        page.keyboard.press("s")
        self.state(page, "running")
        self.stop(run, page, lambda: page.keyboard.press("s"))
        expect(page.locator("#banner")).to_contain_text("It was stopped.")
        expect(page.locator("#banner")).to_contain_text(run.results)
        expect(page.locator("#start")).to_be_disabled()

        # The file agrees with the page.
        times, speed, demand, error, goal = run.columns(
            "shaft.speed", "controller.demand", "controller.error", "cycle.target")
        for seen, recorded in zip(samples, (speed, demand)):
            self.assertGreater(len(seen), 100)
            at = {round(t * 1000): x for t, x in zip(times, recorded)}
            for t, x in seen:
                self.assertEqual(x, at[round(t * 1000)], f"at {t} s")
        self.assertEqual(self.clock(page), round(times[-1], 3))
        self.until(page, "Math.abs(Number(Array.from(document.querySelectorAll('.legend li')).find((l) => l.textContent.includes("
                   "'shaft.speed')).querySelector('.number').textContent.replace('\u2212', '-')) - b) <= 1e-4 * Math.abs(b)", speed[-1])
        events = run.events()
        when = {}
        for part in ("controller.limit = 2.5", "shaft.torque: zoh", "shaft.torque: foh", "fault at controller.target: value",
                     "fault at controller.target: hold", "fault at controller.target cleared", "seen from two metres"):
            found = [e for e in events if part in e["text"]]
            self.assertTrue(found, f"{part} is not recorded: {events}")
            when[part] = found[0]["time"]
        since = when["controller.limit = 2.5"]
        self.assertGreater(max(x for t, x in zip(times, demand) if t < since), 2.5)
        self.assertLessEqual(max(abs(x) for t, x in zip(times, demand) if t > since + 0.01), 2.5)
        # While the target was stuck the controller saw -50 instead of it.
        begin = when["fault at controller.target: value"]
        during = [e + v for t, e, v in zip(times, error, speed) if begin + 0.02 < t < begin + 1.98]
        self.assertGreater(len(during), 300)
        self.assertLess(max(abs(x + 50) for x in during), 2)
        after = [e + v - g for t, e, v, g in zip(times, error, speed, goal) if begin + 2.05 < t < begin + 2.1]
        self.assertLess(max(map(abs, after), default=0), 2)

    def test_start_pause_step_and_stop_by_mouse_and_by_key(self):
        run = Run(self, "--ui-wait")
        page = self.open(run)
        self.state(page, "waiting")
        expect(page.locator("#banner")).to_contain_text("waits before its first step")
        page.keyboard.press(".")
        self.state(page, "paused")
        expect(page.locator("#clock")).to_have_text("0.001")
        page.locator("#step").click()
        expect(page.locator("#clock")).to_have_text("0.002")
        page.keyboard.press(" ")
        self.state(page, "running")
        self.moving(page)
        page.locator("#start").click()
        self.state(page, "paused")
        stands = page.evaluate("cardanLive.rows()")
        page.keyboard.press(".")
        self.until(page, "cardanLive.rows() === b + 1", stands)
        before = page.evaluate("cardanLive.samples('shaft.speed').at(-1)[0]")
        page.locator("#step").click()
        expect(page.locator("#clock")).to_have_text(f"{before + 0.001:.3f}")
        # Panels, keys, filter.
        page.keyboard.press("?")
        expect(page.locator("#keys")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator("#keys")).to_be_hidden()
        page.keyboard.press("4")
        expect(page.locator("#realtime")).to_be_focused()
        page.keyboard.press("4")
        expect(page.locator("#plots")).to_be_hidden()
        page.keyboard.press("Escape")
        expect(page.locator("#plots")).to_be_visible()
        page.keyboard.press("/")
        expect(page.locator("#filter")).to_be_focused()
        page.keyboard.type("temperature")
        expect(page.locator("#signals label:visible")).to_have_count(1)
        page.locator("#signals label:visible input").check()
        page.keyboard.press("Escape")
        expect(page.locator(".legend li", has_text="motor.temperature")).to_be_visible()
        # Zoom by dragging, back by a double click.
        over = page.locator(".card canvas").first
        box = over.bounding_box()
        page.mouse.move(box["x"] + 100, box["y"] + 20)
        page.mouse.down()
        page.mouse.move(box["x"] + 140, box["y"] + 25, steps=4)
        page.mouse.up()
        expect(page.locator("#unzoom")).to_be_visible()
        self.until(page, "cardanLive.plots().every(p => p.to - p.from < 3)")
        over.dblclick()
        expect(page.locator("#unzoom")).to_be_hidden()
        # One press does not stop it; two do.
        said = page.evaluate("() => { const b = document.getElementById('stop'); b.click(); return b.textContent; }")
        self.assertIn("Press again", said)
        expect(page.locator("#stop")).to_have_text(re.compile("^Stop"))  # forgotten after a while
        self.assertIsNone(run.process.poll())
        self.stop(run, page, page.locator("#stop").click)

    def test_reload_many_tabs_and_both_themes_do_no_harm(self):
        run = Run(self)
        page = self.open(run)
        self.moving(page)
        page.locator("#pick").click()
        page.get_by_role("group", name="motor").get_by_text("temperature").click()
        expect(page.locator(".legend li", has_text="motor.temperature")).to_be_visible()
        page.locator("#theme").click()
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        field = page.get_by_label("limit")
        field.fill("55")
        field.press("Enter")
        self.event(page, "controller.limit = 55")
        page.reload()
        self.moving(page)
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        expect(page.locator(".legend li", has_text="motor.temperature")).to_be_visible()
        expect(page.get_by_label("limit")).to_have_value("55")  # what is set, not what was at the start
        # Five more, closed without a word.
        context = self.context(width=420, height=300)
        tabs = [context.new_page() for _ in range(5)]
        for tab in tabs:
            tab.goto(run.url, wait_until="commit")
        for tab in tabs:
            self.until(tab, "window.cardanLive && cardanLive.rows() > 0")
        self.assertEqual(tabs[0].evaluate("document.documentElement.scrollWidth"), 420, "nothing sticks out")
        context.close()
        for theme in ("light", "dark"):
            shown = self.open(run, theme=theme)
            self.moving(shown)
            self.assertEqual(shown.locator("html").get_attribute("data-theme"), theme)
            dark = shown.evaluate("getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).every(x => x < 60)")
            self.assertEqual(dark, theme == "dark")
            picture = os.path.join(TMP or self.folder, f"live-{theme}.png")
            shown.screenshot(path=picture)
            self.assertGreater(os.path.getsize(picture), 20000)
        self.moving(page)
        self.stop(run, page, page.locator("#stop").click)
        self.assertTrue(any("stop" in e["text"] for e in run.events()))

    def test_a_read_only_page_watches_and_nothing_else(self):
        run = Run(self, "--ui-read-only")
        page = self.open(run)
        self.moving(page)
        expect(page.locator("#read-only")).to_be_visible()
        for name in ("#start", "#step", "#stop", "#mark-text"):
            expect(page.locator(name)).to_be_disabled()
            expect(page.locator(name)).to_have_attribute("title", "Not possible: read-only")
        self.link(page, "shaft.torque").locator(".row-name").click()
        expect(page.get_by_label("Algorithm of shaft.torque")).to_be_disabled()
        expect(page.get_by_role("button", name="Inject")).to_be_disabled()
        for key in (" ", ".", "s", "s"):
            page.keyboard.press(key)
        # Past the page, too.
        answer = page.evaluate("""token => new Promise((done) => {
            const s = new WebSocket('ws://' + location.host + '/ws?token=' + token, 'cardan.live.1');
            s.onmessage = (m) => {
                const text = typeof m.data === 'string' ? JSON.parse(m.data) : {};
                if (text.is === 'hello') { s.send(JSON.stringify({ id: 7, do: 'stop' })); }
                if (text.is === 'reply') { s.close(); done(text); }
            }; })""", run.url.split("token=")[1])
        self.assertEqual((answer["id"], answer["ok"]), (7, False))
        self.assertIn("read-only", answer["error"])
        self.moving(page)
        self.state(page, "running")
        run.process.send_signal(signal.SIGINT)
        self.state(page, "ended")
        expect(page.locator("#banner")).to_contain_text("It was stopped.")
        run.wait()

    def test_a_page_that_lost_its_run_finds_the_next_one(self):
        self.lost_is_fine = True
        with socket.create_server(("127.0.0.1", 0)) as free:
            address = f"127.0.0.1:{free.getsockname()[1]}"
        run = Run(self, "--ui-token", "bench-token-of-the-lab", "--ui-address", address)
        page = self.open(run)
        self.moving(page)
        run.process.kill()
        self.state(page, "no connection")
        expect(page.locator("#banner")).to_contain_text("The connection was lost.")
        expect(page.locator("#start")).to_be_disabled()
        again = Run(self, "--ui-token", "bench-token-of-the-lab", "--ui-address", address, name="again.mf4")
        self.assertEqual(again.url, run.url)
        self.state(page, "running")
        self.moving(page)
        expect(page.locator("#banner")).to_be_hidden()

    def test_wave_pairs_show_what_becomes_of_their_energy(self):
        run = Run(self, "--ui-wait", system="systems/shaft_pair.yaml", stop="60", changes=[
            ("inner: 1 ms", "inner: 1 ms\n    over: commands"), ("impedance: 6 N.m.s/rad", "impedance: 1 N.m.s/rad"),
            ("{ delay: 60 ms, jitter: 50 ms, loss: 10 % }", "{ delay: 20 ms, jitter: 15 ms }")])
        page = self.open(run)
        self.state(page, "waiting")
        expect(page.locator("#links td.word")).to_have_text(["wave pair", "wave pair"])
        row = page.locator("#pairs tbody")
        expect(row).to_have_count(1)
        expect(row.locator(".row-name")).to_have_attribute("title", "shaft: second.omega2 ⇄ first.tau")
        expect(row.locator("td.r")).to_have_text(["0 / 0\u202fJ", "0 / 0\u202fJ", "0"])
        self.assertEqual(page.evaluate("document.documentElement.scrollWidth <= innerWidth"), True)
        page.keyboard.press(" ")
        self.state(page, "ended")
        self.assertEqual(run.wait(), 0, run.said)
        # The same run again, without a page, reports the same.
        again = subprocess.run([CARDAN, "run", run.system, "--stop-time", "60", "--output", "none", "--json"],
                               cwd=self.folder, capture_output=True, text=True, check=True, timeout=60)
        sides = json.loads(again.stdout)["pairs"]
        self.assertEqual([s["unit"] for s in sides], ["second", "first"])
        shown = [re.sub("[\u202fJ]", "", cell).replace("\u2212", "-").split(" / ") for cell in row.locator("td.r").all_inner_texts()]
        for cell, key in zip(shown, ("tank", "dumped")):
            self.assertTrue(any(side[key] for side in sides), key)
            for text, side in zip(cell, sides, strict=True):
                self.assertAlmostEqual(float(text), side[key], delta=max(0.006 * abs(side[key]), 5.1e-5), msg=key)  # four decimals
        self.assertGreater(sides[0]["predicted"], 0)
        self.assertEqual(shown[2], [str(sides[0]["predicted"])])

    # ---- benches

    def place(self, page, name):
        expect(page.locator('.bench[data-unit="em"] .strip [aria-current="step"] .label')).to_have_text(name)

    def test_a_bench_is_conditioned_runs_and_stops_at_once_when_the_button_is_pressed(self):
        bench = Bench(self, self.folder, "--speed-up", "30")
        model = f"    standby: {{ fmu: {FMUS}/fmi2/pt_machine.fmu, after: 5 s, fade: 200 ms }}"
        run = BenchRun(self, self.folder, bench, initial="oil 45 degC", standby=model)
        page = self.open(run)
        card = page.locator('.bench[data-unit="em"]')
        stop = page.get_by_role("button", name="Emergency stop of all benches")

        # Before the run is ready there is a bench, how far it is, and the button.
        self.state(page, "starting")
        expect(page.locator("#title")).to_have_text("A machine on its bench")
        self.place(page, "conditioning")
        expect(card.locator(".heat")).to_contain_text("oil")
        expect(card.get_by_role("progressbar")).to_be_visible()
        expect(stop).to_be_enabled()
        expect(page.locator("#start")).to_be_disabled()
        expect(card.locator(".limit .name")).to_have_text(["speed", "torque", "voltage", "oil", "winding", "current"])

        # It runs: the speed rises beside its limit.
        self.state(page, "running")
        self.place(page, "running")
        speed = card.locator(".limit").first
        expect(speed.locator(".value b")).to_have_text(re.compile("^1[45]"))
        expect(speed.locator(".ends")).to_have_text("06500")
        expect(speed.locator(".margin")).to_contain_text("to the upper limit")
        expect(card.locator(".stops")).to_be_hidden()
        torque = self.link(page, "em.torque_ref")
        torque.locator(".row-name").click()
        torque.get_by_label("Algorithm of em.torque_ref").select_option("zoh")
        expect(torque.locator("td.word")).to_have_text(re.compile("zoh"))
        self.event(page, "em.torque_ref: zoh")

        # Its model says the same beside it; it takes over and gives back.
        torque = card.locator(".estimates tr", has=page.locator('th[title^="em.model.torque\u202f"]')).locator("td")
        expect(torque.nth(0)).to_have_text(re.compile("^(3[89]|4[012])"))
        expect(torque.nth(1)).to_have_text(re.compile("^(3[89]|4[012])"))
        self.assertLess(abs(float(torque.nth(2).inner_text().replace("\u2212", "-"))), 2)
        drive = card.locator(".drive")
        expect(drive).to_contain_text("Driven by the bench")
        expect(card.get_by_role("button", name="Automatic")).to_have_attribute("aria-pressed", "true")
        card.get_by_role("button", name="Use model").click()
        expect(drive).to_contain_text("Driven by the model")
        expect(drive).to_contain_text("1 takeover")
        self.event(page, "em.standby.use = model")
        expect(card.get_by_role("button", name="Use model")).to_have_attribute("aria-pressed", "true")
        card.get_by_role("button", name="Use bench").click()
        expect(drive).to_contain_text("Driven by the bench")
        expect(drive).to_contain_text("1 return")

        # One press. The bench stops in its order, which is seen to its end.
        stop.click()
        self.place(page, "stopping")
        self.state(page, "stopping")
        expect(page.locator("#banner")).to_contain_text("emergency stop by page 127.0.0.1 at t = ")
        expect(page.locator("#banner")).to_contain_text("The benches come to rest.")
        expect(stop).to_be_disabled()
        self.state(page, "failed")
        self.place(page, "safe")
        expect(card.locator(".stops li")).to_have_count(6)
        expect(card.locator('.stops li[data-is="done"]')).to_have_count(6)
        expect(card.locator(".stops li .time").first).to_have_text("0.0\u202fs")
        expect(card.locator(".bench-say")).to_contain_text("stopped by master")
        expect(page.locator("#banner")).to_contain_text("em.mf4")
        self.assertEqual(run.wait(), 1, run.said())
        self.assertIn("emergency stop by page 127.0.0.1 at t = ", run.said())
        self.assertEqual(bench.wait(), 0, bench.said())
        self.assertIn("phase speed down, stopped by master", bench.said())
        self.assertEqual(bench.phases()[-1], "safe")

    def test_the_button_has_keys_and_is_in_reach_in_a_narrow_window(self):
        bench = Bench(self, self.folder)
        run = BenchRun(self, self.folder, bench, initial="oil 80 degC")
        page = self.open(run, theme="dark", width=420, height=700)
        stop = page.get_by_role("button", name="Emergency stop of all benches")
        self.place(page, "conditioning")
        page.mouse.wheel(0, 3000)
        self.until(page, "(() => { const r = document.getElementById('emergency').getBoundingClientRect();"
                   " return r.width > 100 && r.top >= 0 && r.bottom <= innerHeight && r.right <= innerWidth; })()")
        self.assertTrue(page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing sticks out")
        # Wherever the focus is, and whatever lies over the page.
        page.keyboard.press("?")
        expect(page.locator("#keys")).to_contain_text("emergency stop")
        self.until(page, "(() => { const r = document.getElementById('emergency').getBoundingClientRect();"
                   " const at = document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2);"
                   " return at && at.closest('#emergency') !== null || document.getElementById('keys').contains(at); })()")
        expect(stop).to_be_enabled()
        page.keyboard.press("Control+Shift+X")
        self.state(page, "failed")
        page.keyboard.press("Escape")
        expect(page.locator("#keys")).to_be_hidden()
        expect(page.locator("#banner")).to_contain_text("emergency stop by page 127.0.0.1 during the initialisation")
        self.assertEqual(run.wait(), 1, run.said())
        self.assertEqual(bench.wait(), 0, bench.said())
        self.assertIn("stopped by master", bench.said())

    def test_a_page_that_may_only_watch_shows_benches_and_no_way_to_stop_them(self):
        bench = Bench(self, self.folder, "--speed-up", "500")
        run = BenchRun(self, self.folder, bench, "--ui-read-only", stop="3 s")
        page = self.open(run)
        stop = page.locator("#emergency")
        self.place(page, "running")
        expect(stop).to_be_disabled()
        expect(stop).to_have_attribute("title", "Not possible: read-only")
        page.keyboard.press("Control+Shift+X")
        self.state(page, "ended")
        expect(page.locator("#banner")).to_contain_text("It reached its stop time.")
        self.place(page, "safe")
        self.assertEqual(run.wait(), 0, run.said())

    def test_a_run_without_benches_has_no_button(self):
        run = Run(self)
        page = self.open(run)
        self.moving(page)
        expect(page.locator("#emergency")).to_be_hidden()
        expect(page.locator("#benches")).to_be_hidden()


if __name__ == "__main__":
    unittest.main(verbosity=2)
