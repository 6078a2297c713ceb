"""The pages in Firefox: each is drawn, taken in by keys, whole on a phone, without fault for axe-core, and silent.

What they do is tested in Chromium; here it is what another engine makes of them. Skipped where there is no Firefox.
"""

import os
import shutil
import subprocess
import tempfile
import unittest

from browser import CARDAN, TMP, ServedTest
from firefox import FIREFOX, Firefox

FMUS = os.environ["CARDAN_FMUS"]
SYSTEM = """cardan: 1
units: { first: { fmu: first.fmu }, second: { fmu: second.fmu } }
connections:
  - second.x2 -> first.x2
  - second.v2 -> first.v2
  - first.f -> second.f
run: { step: 1 ms, stop: 1 s }
results: run.mf4
"""
# Colours of the first canvas that is `in` something
INKS = """(where) => { const c = document.querySelector(where + ' canvas');
  const d = new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer); return new Set(d).size; }"""


@unittest.skipUnless(FIREFOX, "no firefox here; cmake/setup.sh test installs it")
class Pages(ServedTest):
    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.mkdtemp(prefix="firefox_", dir=TMP)
        cls.firefox = Firefox(cls.home)

    @classmethod
    def tearDownClass(cls):
        cls.firefox.close()
        shutil.rmtree(cls.home, ignore_errors=True)

    def setUp(self):
        super().setUp()
        for name, fmu in (("first.fmu", "lo_fd1.fmu"), ("second.fmu", "lo_fd2.fmu")):
            shutil.copy(os.path.join(FMUS, "fmi2", fmu), self.path(name))
        self.write(SYSTEM)

    def write(self, text):
        with open(self.path("system.yaml"), "w", encoding="utf-8") as f:
            f.write(text)

    def run_it(self):
        subprocess.run([CARDAN, "run", "system.yaml", "--quiet"], cwd=self.folder, check=True, timeout=120)

    def visit(self, url, width=1300, height=850):
        page = self.firefox.open(url, width, height)
        self.addCleanup(page.close)
        return page

    def fine(self, page):
        self.nothing_is_cut_off(page)
        self.assertEqual(page.complaints, [], "the console is silent")
        self.assertLessEqual(page.asked, {"127.0.0.1", None, ""}, "nothing leaves the host")
        self.accessible(page)

    def drawn(self, page):
        self.until(page, "window.cardanView && cardanView.viewer.panels.length > 0 && cardanView.viewer.panels.every((p) =>"
                         " p.entries.length === 0 || (p.shape && p.lines().every((l) => p.strips.get(l.key) && p.strips.get(l.key).part === 1)))")

    def test_results_are_drawn_found_by_keys_and_read_on_a_phone(self):
        self.run_it()
        url = self.serve("view", "view", "run.mf4")
        page = self.visit(url)
        self.drawn(page)
        self.assertGreater(page.evaluate(INKS, "#panels"), 5)
        page.press("n", "/", *"second v2")
        self.until(page, "document.getElementById('signal-count').textContent.startsWith('1 of')")
        page.press("Enter")
        self.until(page, "cardanView.viewer.active.entries.map((e) => e.signal.name).join() === 'second.v2'")
        self.drawn(page)
        self.fine(page)
        phone = self.visit(url, 360, 740)
        self.drawn(phone)
        self.fine(phone)

    def test_a_run_is_started_by_a_key_watched_and_followed_to_its_results(self):
        page = self.visit(self.serve("live", "run", "system.yaml", "--ui", "--ui-wait", "--ui-keep"))
        self.until(page, "!document.getElementById('start').disabled")
        page.press("Space")
        self.until(page, "document.getElementById('state-word').textContent === 'ended'")
        self.until(page, "cardanLive.rows() > 0 && document.querySelector('.chart canvas')")
        self.assertGreater(page.evaluate(INKS, ".chart"), 5)
        self.fine(page)
        self.until(page, "!document.getElementById('banner-view').hidden")
        page.evaluate("document.getElementById('banner-view').focus()")
        page.press("Enter")
        self.until(page, "location.pathname.endsWith('view.html')")
        self.drawn(page)

    def test_a_report_is_drawn(self):
        self.run_it()
        subprocess.run([CARDAN, "report", "run.mf4", "-o", "report.html"], cwd=self.folder, check=True, timeout=120)
        for width in (1200, 360):
            for theme in ("light", "dark"):
                with self.subTest(width=width, theme=theme):
                    page = self.visit("file://" + self.path("report.html") + "#" + theme, width)
                    self.until(page, "document.documentElement.dataset.ready === 'yes'")
                    page.evaluate("document.querySelector('figure.plot').scrollIntoView()")
                    self.until(page, "document.querySelector('figure.plot.drawn canvas') && document.getAnimations().length === 0")
                    self.assertGreater(page.evaluate(INKS, "figure.plot.drawn"), 5)
                    self.fine(page)

    def test_connections_are_drawn_by_keys(self):
        self.write(SYSTEM.replace("  - first.f -> second.f\n", ""))
        page = self.visit(self.serve("draw", "connect", "system.yaml", "--ui"))
        self.until(page, "document.body.dataset.state === 'ready'")
        self.fine(page)
        page.press("/", *"first.f")
        self.until(page, "document.getElementById('found').textContent === '1 found'")
        page.press("Enter", "Escape", "Tab")
        for _ in range(20):
            if page.evaluate("Boolean(document.activeElement.closest('#world'))"):
                break
            page.press("Tab")
        self.until(page, "document.activeElement.port && document.activeElement.port.full === 'first.f'")
        page.press("Enter")
        page.press("PageDown", "ArrowDown")
        self.until(page, "document.activeElement.port.full === 'second.f'")
        page.press("Enter")
        self.until(page, "document.getElementById('file').textContent.startsWith('2 units, 3 connections')")


if __name__ == "__main__":
    unittest.main()
