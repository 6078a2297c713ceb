"""The viewer of results in a browser: `cardan view` on small recordings whose numbers are known.

Nothing sleeps: everything waits for what has to come. Chromium is the system's; without it, or without
Playwright, the tests are skipped.
"""

import json
import math
import os
import re
import subprocess
import unittest

from browser import CARDAN, BrowserTest, expect


def ramp_csv(path, scale=1.0, rows=2001, step=0.01):
    """x = 2 t, speed in rad/s, a Boolean, a mode, a signal with a gap."""
    with open(path, "w", encoding="utf-8") as f:
        f.write("time,plant.x [m],motor.speed [rad/s],on,mode,gap [V]\n")
        for i in range(rows):
            t = i * step
            gap = "NaN" if 5 <= t < 8 else str(round(math.sin(t), 9))
            f.write(f"{t:.10g},{scale * 2 * t:.12g},{scale * 10 * math.pi:.15g},{'true' if t >= 4 else 'false'},"
                    f"{'idle' if t < 10 else 'drive'},{gap}\n")


class Viewer(BrowserTest):
    def serve(self, *files):
        return super().serve("view", "view", *files)

    def open(self, url, theme="light", width=1300, height=850):
        return self.visit(url, theme=theme, width=width, height=height)

    def ready(self, page):
        """Panels are drawn from all of the file."""
        self.until(page, "window.cardanView && cardanView.viewer.panels.length > 0 && cardanView.viewer.panels.every("
                         "(p) => p.entries.length === 0 || (p.shape && p.lines().every((l) => p.strips.get(l.key) && p.strips.get(l.key).part === 1)))")

    def one(self, *names, **how):
        """A page with one panel that has these signals."""
        ramp_csv(self.path("run.csv"))
        page = self.open(self.serve("run.csv"), **how)
        self.ready(page)
        page.evaluate("(names) => { const v = cardanView.viewer; for (const p of v.panels.slice()) { p.actions.remove(p); }"
                      " cardanView.addTo(null, names.map((n) => v.byName.get(n))); }", list(names))
        self.ready(page)
        return page

    # ---- tests

    def test_signals_are_found_and_added_by_keyboard_alone(self):
        ramp_csv(self.path("run.csv"))
        page = self.open(self.serve("run.csv"))
        self.ready(page)
        page.keyboard.press("n")
        page.keyboard.press("/")
        page.keyboard.type("motor rad")
        expect(page.locator("#signal-count")).to_have_text("1 of 5")
        page.keyboard.press("Enter")
        self.until(page, "cardanView.viewer.active.entries.map((e) => e.signal.name).join() === 'motor.speed'")
        page.keyboard.press("Control+A")
        page.keyboard.type("gap")
        page.keyboard.press("Shift+Enter")  # a panel of its own
        self.until(page, "cardanView.viewer.active.entries.map((e) => e.signal.name).join() === 'gap'")
        self.ready(page)
        page.evaluate("cardanView.viewer.active.canvas.focus()")
        page.keyboard.press("+")
        self.until(page, "cardanView.viewer.to - cardanView.viewer.from < 15")
        page.keyboard.press("0")
        self.until(page, "cardanView.viewer.to - cardanView.viewer.from > 20")
        page.keyboard.press("a")
        expect(page.locator("#cursor-box")).to_be_visible()
        before = page.evaluate("cardanView.viewer.panels.length")
        page.keyboard.press("Delete")
        self.until(page, f"cardanView.viewer.panels.length === {before} - 1")

    def test_cursors_tell_values_differences_and_slopes(self):
        page = self.one("plant.x")
        page.evaluate("{ const p = cardanView.viewer.active; p.actions.cursor(3.005, 0); p.actions.cursor(7.255, 1); }")
        row = page.locator(".view-panel .lines tbody tr")
        expect(row.locator("td.number").nth(1)).to_have_text("6.01000")
        expect(row.locator("td.number").nth(2)).to_have_text("14.5100")
        expect(row.locator("td.number").nth(3)).to_have_text("8.5000")
        expect(row.locator("td.number").nth(4)).to_contain_text("2.000")  # m/s
        expect(page.locator("#cursor-d")).to_have_text(re.compile(r"^4\.250?\s"))
        page.keyboard.press("Escape")
        expect(page.locator("#cursor-box")).to_be_hidden()

    def test_a_cursor_never_shows_the_value_of_another_time(self):
        """What is not read yet is an ellipsis: values of a cursor that was elsewhere, or not there, are not shown for it."""
        page = self.one("plant.x")
        page.evaluate("cardanView.viewer.active.actions.cursor(3.005, 0)")
        numbers = page.locator(".view-panel .lines tbody td.number:not(.now)")
        expect(numbers.nth(0)).to_have_text("6.01000")
        page.evaluate("() => { cardanView.viewer.source.at = () => new Promise((done) => { cardanView.answer = done; }); }")
        page.evaluate("cardanView.viewer.active.actions.cursor(7.255, 1)")
        expect(numbers.nth(1)).to_have_text("…")
        expect(numbers.nth(0)).to_have_text("6.01000")
        page.evaluate("cardanView.viewer.active.actions.cursor(9, 0)")
        expect(numbers.nth(0)).to_have_text("…")

    def test_units_of_measure_are_a_choice(self):
        page = self.one("motor.speed")
        page.locator(".unit-choice").select_option("rpm")
        page.evaluate("cardanView.viewer.active.actions.cursor(5, 0)")
        expect(page.locator(".view-panel .lines td.number").nth(1)).to_have_text("300.000")  # 10 pi rad/s

    def test_a_second_unit_has_the_right_axis_and_signals_of_an_axis_share_theirs(self):
        page = self.one("plant.x", "motor.speed")
        self.assertEqual(page.evaluate("cardanView.viewer.active.entries.map((e) => e.axis)"), [0, 1])
        self.assertEqual(page.evaluate("cardanView.viewer.active.timeChart(600, 300).axes.map((a) => a.unit)"), ["m", "rad/s"])
        page.evaluate("{ const v = cardanView.viewer; v.active.add(v.byName.get('gap')); }")  # V: a third one
        units = page.evaluate("['xyChart', 'spectrumChart', 'histogramChart'].map((f) => { const c = cardanView.viewer.active[f](600, 300);"
                              " return [c.xUnit || '', c.axes[0].unit]; })")
        self.assertEqual(units, [["m", ""], ["Hz", ""], ["", ""]])  # no axis says the unit of one of several
        with open(self.path("more.csv"), "w", encoding="utf-8") as f:
            f.write("time,a [m],b [mm],c [km]\n0,1,1,1\n1,2,2,2\n")
        page = self.open(self.serve("more.csv"))
        self.ready(page)
        page.evaluate("{ const v = cardanView.viewer; for (const p of v.panels.slice()) { p.actions.remove(p); }"
                      " cardanView.addTo(null, ['a', 'b', 'c'].map((n) => v.byName.get(n))); }")
        self.ready(page)
        tops = "cardanView.viewer.active.timeChart(600, 300).lines.map((l) => l.data.low[1])"
        self.assertEqual(page.evaluate(tops), [2, 0.002, 2000])
        page.locator(".unit-choice").nth(1).select_option("mm")  # one axis, one unit
        self.assertEqual(page.evaluate(tops), [2000, 2, 2e6])
        with open(self.path("bare.csv"), "w", encoding="utf-8") as f:
            f.write("time,a,b,c\n0,1,1,1\n1,2,2,2\n")
        page = self.open(self.serve("more.csv", "bare.csv"))  # a unit that a file does not say is that of the first one that does
        self.ready(page)
        page.evaluate("{ const v = cardanView.viewer; for (const p of v.panels.slice()) { p.actions.remove(p); }"
                      " cardanView.addTo(null, [v.byName.get('a')]); v.active.chooseUnit(v.active.entries[0], 'mm'); }")
        self.ready(page)
        self.assertEqual(page.evaluate(tops), [2000, 2000])
        page = self.open(self.serve("more.csv"))
        self.ready(page)
        page.evaluate("{ const v = cardanView.viewer; for (const p of v.panels.slice()) { p.actions.remove(p); }"
                      " cardanView.addTo(null, ['a', 'b', 'c'].map((n) => v.byName.get(n))); v.active.chooseUnit(v.active.entries[0], 'mm'); }")
        self.assertEqual(page.evaluate("cardanView.viewer.active.timeChart(600, 300).axes.map((a) => a.unit)"), ["mm"])

    def test_files_with_other_units_and_texts_are_never_mixed_up(self):
        with open(self.path("a.csv"), "w", encoding="utf-8") as f:
            f.write("time [s],T [degC],x [N.m],n [rad/s],mode\n" + "".join(f"{i},{20 + i},{i},{i},{'on' if i < 5 else 'off'}\n" for i in range(11)))
        with open(self.path("b.csv"), "w", encoding="utf-8") as f:
            f.write("time [ms],T [K],x [N.cm],n [1/min],mode\n"
                    + "".join(f"{1000 * i},{293.15 + 2 * i},{100 * i},{9 * i},{'broken' if i < 5 else 'on'}\n" for i in range(11)))
        page = self.open(self.serve("a.csv", "b.csv"))
        self.ready(page)
        self.assertEqual(page.evaluate("cardanView.viewer.signals.map((s) => s.name)"), ["T", "x", "n", "mode", "n [1/min]"])
        last = ("(name) => { const v = cardanView.viewer; for (const p of v.panels.slice()) { p.actions.remove(p); }"
                " cardanView.addTo(null, [v.byName.get(name)]); }")
        lows = "cardanView.viewer.active.timeChart(600, 300).lines.map((l) => l.data.low[10])"
        for name, difference in (("T", 10), ("x", 0)):
            page.evaluate(last, name)
            self.ready(page)
            a, b = page.evaluate(lows)
            self.assertAlmostEqual(b - a, difference, places=9)
            page.get_by_role("button", name="Δ ref").click()
            self.ready(page)
            self.assertAlmostEqual(page.evaluate(lows)[0], difference, places=9)
            at = page.evaluate("cardanView.viewer.source.at([cardanView.viewer.active.lines()[0].track], [10, 10])")
            self.assertAlmostEqual(at[0][0][1], difference, places=9)
        page.evaluate(last, "mode")
        self.ready(page)
        states = ("cardanView.viewer.active.timeChart(600, 300).states.map((s) => [0, 9].map((i) => {"
                  " const v = s.data.low[i]; return [s.textOf(v), s.colourOf(v)]; }))")
        self.until(page, "cardanView.viewer.byName.get('mode').texts.every((t) => t.length === 2)")
        (on, off), (broken, again) = page.evaluate(states)
        self.assertEqual([on[0], off[0], broken[0], again[0]], ["on", "off", "broken", "on"])
        self.assertEqual(on[1], again[1])
        self.assertEqual(len({on[1], off[1], broken[1]}), 3)
        subprocess.run([CARDAN, "view", "a.csv", "b.csv", "--export", "page.html"], cwd=self.folder, check=True, capture_output=True, timeout=60)
        page = self.open("file://" + self.path("page.html"))
        self.ready(page)
        page.evaluate(last, "mode")
        self.ready(page)
        self.assertEqual(page.evaluate(states), [[on, off], [broken, again]])
        page.evaluate(last, "T")
        page.get_by_role("button", name="Δ ref").click()
        self.ready(page)
        self.assertAlmostEqual(page.evaluate(lows)[0], 10, places=9)

    def test_gaps_and_states_are_seen(self):
        page = self.one("gap", "mode")
        s = page.evaluate("{ const v = cardanView.viewer, c = v.active.timeChart(600, 300), g = c.lines[0].data;"
                          " ({ states: c.states.length, gaps: Array.from(g.low).filter((x) => x !== x).length, n: g.n,"
                          "    texts: [c.states[0].textOf(0), c.states[0].textOf(1)], at: Array.from(c.states[0].data.low) }) }")
        self.assertEqual(s["states"], 1)
        self.assertAlmostEqual(s["gaps"] / s["n"], 3 / 20, delta=0.01)
        self.assertEqual(s["texts"], ["idle", "drive"])
        self.assertAlmostEqual(sum(s["at"]) / len(s["at"]), 0.5, delta=0.01)  # half of the time each

    def test_files_lie_over_each_other_and_their_difference_is_exact(self):
        ramp_csv(self.path("run.csv"))
        ramp_csv(self.path("other.csv"), scale=1.5, rows=301, step=0.05)
        page = self.open(self.serve("run.csv", "other.csv"))
        self.ready(page)
        page.evaluate("{ const v = cardanView.viewer; for (const p of v.panels.slice()) { p.actions.remove(p); } cardanView.addTo(null, [v.byName.get('plant.x')]); }")
        self.ready(page)
        expect(page.locator(".lines tbody tr")).to_have_count(2)
        page.get_by_role("button", name="Δ ref").click()
        expect(page.locator(".lines tbody tr")).to_have_count(1)
        self.ready(page)
        page.evaluate("cardanView.viewer.active.actions.cursor(10, 0)")
        expect(page.locator(".lines td.number").nth(1)).to_have_text("10.0000")  # 3 t - 2 t

    def test_spectrum_histogram_and_xy(self):
        with open(self.path("run.csv"), "w", encoding="utf-8") as f:
            f.write("time,s,c\n")
            for i in range(4096):
                t = i / 1024
                # an odd number of periods: 4096 phases, all different
                f.write(f"{t},{0.7 * math.sin(2 * math.pi * 64.25 * t):.12g},{0.7 * math.cos(2 * math.pi * 64.25 * t):.12g}\n")
        page = self.open(self.serve("run.csv"))
        self.ready(page)
        page.evaluate("{ const v = cardanView.viewer; for (const p of v.panels.slice()) { p.actions.remove(p); } cardanView.addTo(null, [v.byName.get('s')]); }")
        kind = page.get_by_label("What the panel shows")
        kind.select_option("spectrum")
        self.until(page, "cardanView.viewer.active.computed && cardanView.viewer.active.computed.made.length === 1")
        peak = page.evaluate("{ const s = cardanView.viewer.active.computed.made[0]; let k = 0; for (let i = 0; i < s.a.length; i++) { if (s.a[i] > s.a[k]) { k = i; } } [s.f[k], s.a[k]] }")
        self.assertAlmostEqual(peak[0], 64.25, delta=0.05)
        self.assertAlmostEqual(peak[1], 0.7, delta=0.002)
        kind.select_option("histogram")
        self.until(page, "cardanView.viewer.active.computed && cardanView.viewer.active.computed.made && cardanView.viewer.active.computed.made.parts")
        parts = page.evaluate("Array.from(cardanView.viewer.active.computed.made.parts[0])")
        self.assertAlmostEqual(sum(parts), 1, places=9)
        self.assertGreater(parts[0], 3 * parts[30])  # a sine is mostly at its ends
        page.evaluate("cardanView.addTo(cardanView.viewer.active, [cardanView.viewer.byName.get('c')])")
        kind.select_option("xy")
        self.until(page, "cardanView.viewer.active.computed && cardanView.viewer.active.computed.made && cardanView.viewer.active.computed.made[0] && cardanView.viewer.active.computed.made[0].x")
        worst = page.evaluate("{ const s = cardanView.viewer.active.computed.made[0]; Math.max(...Array.from(s.x, (x, i) => Math.abs(Math.hypot(x, s.y[i]) - 0.7))) }")
        self.assertLess(worst, 1e-9)  # a circle

    def test_a_layout_is_saved_beside_the_file_on_request_only_and_used_again(self):
        page = self.one("plant.x", "gap")
        self.assertFalse(os.path.exists(self.path("run.csv.view.json")))
        page.evaluate("cardanView.setWindow(null, 2, 9)")
        page.get_by_role("button", name="Save layout").click()
        expect(page.locator("#say")).to_contain_text("run.csv.view.json")
        with open(self.path("run.csv.view.json"), encoding="utf-8") as f:
            kept = json.load(f)
        self.assertEqual([s["name"] for s in kept["panels"][0]["signals"]], ["plant.x", "gap"])
        page = self.open(self.serve("run.csv"))
        self.ready(page)
        self.assertEqual(page.evaluate("cardanView.layout()"), kept)

    def test_what_is_seen_is_exported(self):
        page = self.one("plant.x")
        page.evaluate("cardanView.setWindow(null, 2, 3)")
        self.ready(page)
        with page.expect_download() as csv:
            page.locator("#export").select_option("csv")
        with open(csv.value.path(), encoding="utf-8") as f:
            lines = f.read().splitlines()
        self.assertEqual(lines[0], "time,plant.x [m]")
        for line in lines[1:]:
            t, x = map(float, line.split(","))
            self.assertAlmostEqual(x, 2 * t, places=9)
        self.assertIn(len(lines), (101, 102, 103))
        with page.expect_download() as svg:
            page.locator("#export").select_option("svg")
        with open(svg.value.path(), encoding="utf-8") as f:
            text = f.read()
        self.assertIn("plant.x", text)
        self.assertGreater(len(re.findall(r"L[\d.]", text)), 80)
        with page.expect_download() as png:
            page.locator("#export").select_option("png")
        with open(png.value.path(), "rb") as f:
            self.assertEqual(f.read(8), b"\x89PNG\r\n\x1a\n")

    def test_a_hundred_thousand_signals_are_a_list_of_some(self):
        n = 100000
        with open(self.path("wide.csv"), "w", encoding="utf-8") as f:
            f.write("time," + ",".join(f"unit{i // 100}.signal{i}" for i in range(n)) + "\n")
            for t in range(2):
                f.write(str(t) + "," + ",".join(["1"] * n) + "\n")
        page = self.open(self.serve("wide.csv"))
        self.ready(page)
        self.assertLess(page.locator(".signal").count(), 80)
        page.locator("#filter").fill("signal99998")
        expect(page.locator("#signal-count")).to_contain_text("1 of 100")
        expect(page.locator(".signal .name")).to_have_text("unit999.signal99998")

    def test_signals_are_dragged_into_panels(self):
        page = self.one("plant.x")
        page.locator(".signal", has_text="gap").drag_to(page.locator(".view-panel canvas"))
        self.until(page, "cardanView.viewer.panels[0].entries.map((e) => e.signal.name).join() === 'plant.x,gap'")
        page.locator(".signal", has_text="motor.speed").dblclick()
        self.until(page, "cardanView.viewer.panels[0].entries.length === 3")

    def test_it_is_readable_in_both_themes_and_nothing_is_cut_off_on_a_phone(self):
        ramp_csv(self.path("run.csv"))
        ramp_csv(self.path("other.csv"), scale=1.1)
        url = self.serve("run.csv", "other.csv")
        for theme in ("light", "dark"):
            for width, height in ((1300, 850), (360, 800)):
                with self.subTest(theme=theme, width=width):
                    page = self.open(url, theme, width, height)
                    self.ready(page)
                    page.evaluate("{ const p = cardanView.viewer.active; p.actions.cursor(3, 0); p.actions.cursor(6, 1); }")
                    expect(page.locator("#cursor-b")).to_contain_text("6")
                    self.accessible(page)
                    self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), width)
                    out = page.evaluate("(w) => Array.from(document.querySelectorAll('header button, header select, header dd, .view-panel, .view-panel .head > *'))"
                                        ".filter((n) => n.offsetParent && n.getBoundingClientRect().width > 0).filter((n) => { const b = n.getBoundingClientRect(); return b.left < -0.5 || b.right > w + 0.5; })"
                                        ".map((n) => n.id || n.className)", width)
                    self.assertEqual(out, [])
                    if width == 360:
                        page.locator("#toggle-list").click()
                        expect(page.locator("#filter")).to_be_visible()
                        self.accessible(page)

    def test_panels_never_lie_over_each_other(self):
        """Eight panels of all kinds with cursors: more than fit into any of these windows."""
        ramp_csv(self.path("run.csv"))
        ramp_csv(self.path("other.csv"), scale=1.1)
        url = self.serve("run.csv", "other.csv")
        for width, height in ((1400, 900), (1000, 700), (360, 800)):
            with self.subTest(width=width):
                page = self.open(url, "light", width, height)
                self.ready(page)
                page.evaluate("{ const v = cardanView.viewer; for (const p of v.panels.slice()) { p.actions.remove(p); }"
                              " for (let i = 0; i < 8; i++) { cardanView.addTo(null, ['plant.x', 'motor.speed', 'gap'].slice(i % 2).map((n) => v.byName.get(n))); }"
                              " ['time', 'xy', 'spectrum', 'histogram'].forEach((kind, i) => v.panels[2 * i].set({ kind }));"
                              " v.panels[1].actions.cursor(3, 0); v.panels[1].actions.cursor(6, 1); }")
                expect(page.locator(".view-panel").nth(1).locator("td.number:not(.now)").nth(1)).not_to_have_text(re.compile("^[…–]?$"))
                over = page.evaluate("""() => {
                  const boxes = Array.from(document.querySelectorAll(".view-panel"), (n) => n.getBoundingClientRect());
                  return boxes.flatMap((a, i) => boxes.slice(i + 1).filter((b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom).map(() => i)); }""")
                self.assertEqual(over, [])
                cut = """() => Array.from(document.querySelectorAll(".view-panel")).flatMap((p) => {
                  const box = p.getBoundingClientRect(), plot = p.querySelector("canvas").getBoundingClientRect();
                  const right = Array.from(p.querySelectorAll("td.number")).filter((n) => n.getBoundingClientRect().right > box.right).map((n) => n.textContent);
                  return plot.bottom > box.bottom + 0.5 ? right.concat("plot") : right; })"""
                self.until(page, f"({cut})().length === 0")  # plots have the size of their place a frame later

    def test_lines_of_several_files_are_told_apart_by_their_legend(self):
        ramp_csv(self.path("run.csv"))
        ramp_csv(self.path("other.csv"), scale=1.1)
        page = self.open(self.serve("run.csv", "other.csv"))
        self.ready(page)
        page.evaluate("{ const v = cardanView.viewer; for (const p of v.panels.slice()) { p.actions.remove(p); }"
                      " cardanView.addTo(null, ['plant.x', 'motor.speed', 'mode'].map((n) => v.byName.get(n))); }")
        self.ready(page)
        looks = page.evaluate("Array.from(document.querySelectorAll('.swatch'), (n) => getComputedStyle(n).background)")
        drawn = page.evaluate("cardanView.viewer.active.timeChart(600, 300).lines.map((l) => l.colour + l.dash)")
        self.assertEqual(len(set(looks[:4])), 4)
        self.assertEqual(len(set(drawn)), 4)
        self.assertEqual(["gradient" in x for x in looks], [False, True, False, True, False, False])
        with page.expect_download() as svg:
            page.locator("#export").select_option("svg")
        with open(svg.value.path(), encoding="utf-8") as f:
            self.assertGreaterEqual(f.read().count("stroke-dasharray"), 4)  # in the legend as in the plot

    def test_numbers_at_the_end_of_the_range_and_times_since_1970_are_drawn(self):
        with open(self.path("odd.csv"), "w", encoding="utf-8") as f:
            f.write("time,x\n1700000000,1e308\n1700000001,-1e308\n1700000002,1e-300\n1700000003,inf\n1700000004,nan\n")
        page = self.open(self.serve("odd.csv"))
        self.ready(page)
        with page.expect_download() as svg:
            page.locator("#export").select_option("svg")
        with open(svg.value.path(), encoding="utf-8") as f:
            text = f.read()
        self.assertRegex(text, r">4(\.0)?e307<")
        self.assertRegex(text, r">1700000002(\.0)?<")
        self.assertNotIn("NaN", text)
        expect(page.locator("#file")).to_have_text("1 signal, CSV")

    def test_an_exported_page_needs_no_server(self):
        ramp_csv(self.path("run.csv"))
        subprocess.run([CARDAN, "view", "run.csv", "--export", "page.html", "--variables", "plant.*"], cwd=self.folder,
                       check=True, capture_output=True, timeout=60)
        page = self.open("file://" + self.path("page.html"))
        self.ready(page)
        self.assertEqual(page.evaluate("cardanView.viewer.signals.map((s) => s.name)"), ["plant.x"])
        page.evaluate("cardanView.viewer.active.actions.cursor(3, 0)")
        expect(page.locator(".lines td.number").nth(1)).to_have_text("6.00000")


if __name__ == "__main__":
    unittest.main()
