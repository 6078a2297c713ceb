"""What the tests of pages share: a command that serves, headless Chromium, pages that complain are failures, axe-core.

Nothing sleeps: everything waits for what has to come. Chromium is the system's (no browser is fetched); without it,
or without Playwright, the tests are skipped.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from urllib.parse import urlsplit

try:
    from playwright.sync_api import expect, sync_playwright
except ImportError:
    expect = sync_playwright = None
try:
    import axe_playwright_python
except ImportError:
    axe_playwright_python = None

CARDAN = os.environ["CARDAN"]
TMP = os.environ.get("CARDAN_TMP")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--no-first-run"]
PATIENCE = int(os.environ.get("CARDAN_PATIENCE", "60000"))  # ms; a test that waits longer has failed


class ServedTest(unittest.TestCase):
    """In a folder of its own, in front of any browser whose pages can `evaluate`."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="page_", dir=TMP)
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def serve(self, word, *arguments):
        """A command that serves a page, until it has printed the address behind `word`."""
        self.process = subprocess.Popen([CARDAN, *arguments], cwd=self.folder, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, self.process)
        said = ""
        for line in self.process.stderr:
            said += line
            found = re.match(word + r"\s+(http\S+)", line)
            if found:
                return found[1]
        raise AssertionError("no address: " + said)

    def end(self, process):
        if process.poll() is None:
            process.terminate()
        if not process.stdout.closed:
            self.said = process.communicate()[0]
        return process.returncode

    def until(self, page, condition, before=None):
        """Waits in the page. (wait_for_function evaluates text, which the page's policy forbids.)"""
        fine = page.evaluate(
            f"async (b) => {{ const end = performance.now() + {PATIENCE};"
            " const is = () => (" + condition + ");"
            " while (!is() && performance.now() < end) { await new Promise((r) => setTimeout(r, 15)); }"
            " return Boolean(is()); }", before)
        self.assertTrue(fine, condition)

    def accessible(self, page):
        """Nothing that axe-core finds fault with, contrast among it."""
        if axe_playwright_python is None:
            self.skipTest("no axe-core here; tests/tools/requirements.txt has it")
        with open(os.path.join(os.path.dirname(axe_playwright_python.__file__), "axe.min.js"), encoding="utf-8") as f:
            page.evaluate(f.read() + "; null")
        found = page.evaluate("axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa']})"
                              ".then((r) => JSON.parse(JSON.stringify(r.violations)))")  # a tree, not a graph
        self.maxDiff = None
        self.assertEqual([(v["id"], [n["html"][:120] + " " + n["failureSummary"] for n in v["nodes"][:3]])
                          for v in found], [])

    def nothing_is_cut_off(self, page):
        """The page is not wider than its window, nor is anything in it that does not scroll or clip by itself."""
        wide = page.evaluate("""() => {
          const clips = (n) => { for (let p = n.parentElement; p; p = p.parentElement) {
            const s = getComputedStyle(p); if (s.overflowX !== "visible") { return true; } } return false; };
          return Array.from(document.querySelectorAll("body *")).filter((n) => { const r = n.getBoundingClientRect();
            return r.width > 0 && r.height > 0 && (r.right > innerWidth + 1 || r.left < -1) && !clips(n); })
            .map((n) => n.outerHTML.slice(0, 100)); }""")
        self.assertEqual(wide, [])
        self.assertTrue(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


@unittest.skipUnless(sync_playwright, "no Playwright here; tests/tools/requirements.txt has it")
@unittest.skipUnless(CHROMIUM, "no chromium here; cmake/setup.sh test installs it")
class BrowserTest(ServedTest):
    @classmethod
    def setUpClass(cls):
        expect.set_options(timeout=PATIENCE)
        cls.playwright = sync_playwright().start()
        cls.browser = cls.playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.playwright.stop()

    def setUp(self):
        super().setUp()
        self.complaints, self.asked = [], set()
        self.lost_is_fine = False  # Chromium logs every connection that fails

    def tearDown(self):
        complaints = [c for c in self.complaints if not (self.lost_is_fine and "WebSocket connection" in c)]
        self.assertEqual(complaints, [], "the console is silent")
        self.assertLessEqual(self.asked, {"127.0.0.1", None, ""}, "nothing leaves the host")

    def context(self, theme="light", width=1400, height=900, **more):
        context = self.browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme,
                                           accept_downloads=True, **more)
        self.addCleanup(context.close)
        context.set_default_timeout(PATIENCE)
        context.on("request", lambda r: self.asked.add(urlsplit(r.url).hostname))
        context.on("console", lambda m: m.type in ("error", "warning") and self.complaints.append(m.text))
        context.on("weberror", lambda e: self.complaints.append(str(e.error)))
        return context

    def visit(self, url, **how):
        page = self.context(**how).new_page()
        page.on("websocket", lambda w: self.asked.add(urlsplit(w.url).hostname))
        page.goto(url)
        return page
