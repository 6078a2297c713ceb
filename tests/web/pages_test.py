"""One page leads to the next: a watched run to the viewer of its results, and its report, in both themes and on a phone."""

import os
import subprocess
import sys

from browser import CARDAN, BrowserTest, expect

SYSTEM = """cardan: 1
units:
  first: { fmu: "%s/fmi2/lo_fd1.fmu" }
  second: { fmu: "%s/fmi2/lo_fd2.fmu" }
connections:
  - second.x2 -> first.x2
  - second.v2 -> first.v2
  - first.f -> second.f
run: { step: 1 ms, stop: 1 s }
results: run.mf4
"""


class Pages(BrowserTest):
    def setUp(self):
        super().setUp()
        fmus = os.environ["CARDAN_FMUS"]
        with open(self.path("system.yaml"), "w", encoding="utf-8") as f:
            f.write(SYSTEM % (fmus, fmus))

    def test_a_run_that_goes_on_serving_leads_to_its_results_by_keys_alone(self):
        page = self.visit(self.serve("live", "run", "system.yaml", "--ui", "--ui-wait", "--ui-keep"))
        expect(page.locator("#start")).to_be_enabled()
        page.keyboard.press("Space")
        expect(page.locator("#banner-view")).to_be_visible()
        page.locator("#banner-view").focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**/view.html")
        self.until(page, "window.cardanView && cardanView.viewer.panels.some((p) => p.entries.length && p.shape && p.strips.size)")
        expect(page.locator("#files .file-name")).to_have_text("run.mf4")
        names = page.evaluate("cardanView.viewer.signals.map((s) => s.name)")
        self.assertTrue({"first.f", "second.x2"} <= set(names), names)
        self.assertIsNone(self.process.poll(), "until Ctrl-C")

    def test_the_report_is_readable_in_both_themes_and_whole_on_a_phone(self):
        subprocess.run([CARDAN, "run", "system.yaml", "--quiet"], cwd=self.folder, check=True, timeout=120)
        subprocess.run([CARDAN, "report", "run.mf4", "-o", "report.html"], cwd=self.folder, check=True, timeout=120)
        for theme, width in (("light", 1200), ("dark", 1200), ("light", 360), ("dark", 360)):
            with self.subTest(theme=theme, width=width):
                page = self.visit("file://" + self.path("report.html") + "#" + theme, theme=theme, width=width, height=800)
                self.until(page, "document.documentElement.dataset.ready === 'yes'")
                page.locator("figure.plot").first.scroll_into_view_if_needed()
                expect(page.locator("figure.plot.drawn canvas").first).to_be_visible()
                self.until(page, "document.getAnimations().length === 0")
                self.accessible(page)
                self.nothing_is_cut_off(page)

    def test_the_site_of_the_documentation_is_searched_from_the_disk(self):
        mkdocs = os.path.join(os.path.dirname(sys.executable), "mkdocs")
        if not os.path.exists(mkdocs):
            self.skipTest("no mkdocs here; tests/tools/requirements.txt has it")
        root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
        subprocess.run([mkdocs, "build", "--strict", "--quiet", "--site-dir", self.path("site")], cwd=root, check=True, timeout=300)
        page = self.visit("file://" + self.path("site/how-to/view.html"))
        page.locator("a[data-bs-target='#mkdocs_search_modal']").click()
        query = page.locator("#mkdocs-search-query")
        expect(query).to_be_visible()
        query.fill("PlotJuggler")
        query.press("Shift")  # before the index is there as well as afterwards
        page.locator("#mkdocs-search-results a").first.click()
        expect(page.locator("body")).to_contain_text("PlotJuggler")
