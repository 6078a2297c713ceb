"""cardan report: what it writes, and what a browser makes of it.

The pages are opened in Chromium without a network. A copy of the page gets a script at its end that
uses the page as a reader would and leaves what it saw in the page; pictures are looked at by pixel.
"""

import html.parser
import json
import os
import re
import shutil
import struct
import subprocess
import unittest
import zlib

from e2e import EndToEnd, fmu

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WIDTH, HEIGHT = 1000, 2600

SYSTEM = """
cardan: 1
title: Oscillator in two parts
units:
  first: { fmu: lo_fd1.fmu, parameters: { m1: 2 } }
  second: { fmu: lo_fd2.fmu }
connections:
  - { from: second.x2, to: first.x2 }
  - { from: second.v2, to: first.v2 }
  - { from: first.f, to: second.f }
run: { step: 1 ms, stop: 1 s }
"""

EVIL = """time,</script><img src=x onerror=document.title='hacked'>,on,"a""b'&amp;",note
0,1,0,2,<script>document.title='hacked'</script>
1,5,1,3,--><b>bold</b>
2,2,0,nan,plain
3,3,1,4,plain
"""


class Page(html.parser.HTMLParser):
    """Headings, tables and everything that could make a browser ask somebody."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.headings, self.texts, self.asks = [], [], [], []
        self.open = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.open.append(tag)
        for name, value in attributes:
            if name in ("src", "href", "action", "background", "srcset", "ping", "xlink:href"):
                self.asks.append((tag, name, value))
            assert not name.startswith("on"), (tag, name, value)

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if self.open and self.open[-1] in ("h1", "h2", "h3"):
            self.headings.append(data)
        if not self.open or self.open[-1] not in ("script", "style"):
            self.texts.append(data)


def read_png(path, needed=None):
    """Width, height, bytes per pixel, and the rows of RGB bytes; only so many if the rest is not needed."""
    with open(path, "rb") as f:
        data = f.read()
    at, packed = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
        elif kind == b"IDAT":
            packed += body
        at += 12 + length
    assert depth == 8 and colour in (2, 6), "a PNG with 8 bit RGB or RGBA"
    n = 3 if colour == 2 else 4
    raw, stride = zlib.decompress(packed), width * n
    rows, above = [], bytearray(stride)
    for y in range(needed or height):
        method = raw[y * (stride + 1)]
        row = bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        if method == 2:
            row = bytearray((a + b) & 255 for a, b in zip(row, above))
        elif method:
            for x in range(stride):
                left = row[x - n] if x >= n else 0
                corner = above[x - n] if x >= n else 0
                up = above[x]
                if method == 1:
                    guess = left
                elif method == 3:
                    guess = (left + up) // 2
                else:
                    p = left + up - corner
                    guess = min((abs(p - left), 0, left), (abs(p - up), 1, up),
                                (abs(p - corner), 2, corner))[2]
                row[x] = (row[x] + guess) & 255
        rows.append(row)
        above = row
    return width, height, n, rows


class Report(EndToEnd):
    def setUp(self):
        super().setUp()
        for name in ("lo_fd1", "lo_fd2"):
            shutil.copy(fmu(name), self.folder)
        self.write("system.yaml", SYSTEM)

    def run_system(self, name="run.mf4", *more):
        self.cardan("run", "system.yaml", "-q", "-o", name, *more)
        return name

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as f:
            return f.read()


class ReportFiles(Report):
    """What does not need a browser."""

    def test_an_mf4_tells_everything(self):
        self.run_system()
        self.assertIn("run.html", self.cardan("report", "run.mf4").stdout)
        page = Page(self.read("run.html"))
        text = " ".join(page.texts)
        self.assertEqual(page.asks, [])
        for heading in ("System", "What ran", "Quality", "Signals", "Where the time went", "Statistics"):
            self.assertIn(heading, page.headings)
        for part in ("Reached its stop time 1 s", "system.yaml", "lo_fd1.fmu", "m1", "jacobi"):
            self.assertIn(part, text)
        self.assertIn("svg", page.tags)
        self.assertIn("first.x1", text)

    def test_csv_with_the_description_beside_it(self):
        self.run_system("run.csv")
        self.cardan("report", "run.csv")
        self.assertNotIn("lo_fd1.fmu", self.read("run.html"))
        self.cardan("report", "run.csv", "--system", "system.yaml", "-o", "with.html", "--title",
                    "A & B")
        text = " ".join(Page(self.read("with.html")).texts)
        self.assertIn("lo_fd1.fmu", text)
        self.assertIn("A & B", text)
        self.assertNotIn("Machine", text)  # the description does not know it

    def test_markdown_with_pictures_beside_it(self):
        self.run_system()
        self.cardan("report", "run.mf4", "--format", "md")
        text = self.read("run.md")
        links = re.findall(r"!\[[^]]*\]\(([^)]+)\)", text)
        self.assertGreaterEqual(len(links), 4)
        for link in links:
            self.assertIn("<svg", self.read(link))
        for line in text.splitlines():
            self.assertNotRegex(line, r"^\|.*[^|]$", "a row that does not end")
        self.assertIn("## Statistics", text)

    def test_a_picture_of_some_signals(self):
        self.run_system()
        self.cardan("report", "run.mf4", "--plot", "first.x1,second.x2", "-o", "x.svg")
        self.assertIn("second.x2", self.read("x.svg"))
        self.assertNotIn("first.f<", self.read("x.svg"))
        self.write("array.csv", 'time,"x[1,1]","x[1,2]",y\n0,1,2,3\n1,2,3,4\n')
        self.assertIn("2 lines", self.cardan("report", "array.csv", "--plot", "x[1,2],y").stdout)
        self.assertIn("x[1,2]", self.read("array.svg"))
        self.cardan("report", "run.mf4", "--plot", "nix", "-o", "x.svg", code=2, says="nix")
        self.cardan("report", "run.mf4", "--plot", "first.x1", "-o", "x.bmp", code=2, says=".svg")

    def test_what_cannot_be_is_said(self):
        self.run_system("run.csv")
        before = self.read("run.csv")
        self.cardan("report", "run.csv", "-o", "run.csv", code=2, says="overwrite")
        self.cardan("report", "run.csv", "--system", "system.yaml", "-o", "system.yaml", code=2,
                    says="overwrite")
        self.assertEqual(self.read("run.csv"), before)
        self.cardan("report", code=2, says="RESULT")
        self.cardan("report", "nix.mf4", code=2, says="nix.mf4")
        self.cardan("report", "run.csv", "--variables", "nix", code=2, says="nix")
        self.cardan("report", "run.csv", "-o", "nix/run.html", code=1, says="nix/run.html")
        self.cardan("report", "run.csv", "-o", "run.pdf", code=2, says="prints the HTML as PDF")
        self.cardan("report", "run.csv", "-o", "run.md", "--format", "html", code=2, says="--format")
        self.assertEqual([n for n in os.listdir(self.folder) if ".part" in n], [])


@unittest.skipUnless(CHROMIUM, "no chromium here; cmake/setup.sh test installs it")
class ReportInBrowser(Report):
    def browse(self, page, *what, fragment=""):
        profile = self.path("profile")
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                   "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
                   "--disable-background-networking", "--disable-component-update",
                   "--force-device-scale-factor=1", f"--user-data-dir={profile}",
                   "--host-resolver-rules=MAP * ~NOTFOUND", f"--window-size={WIDTH},{HEIGHT}",
                   "--virtual-time-budget=5000", *what, f"file://{self.path(page)}{fragment}"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=120,
                              env=dict(os.environ, HOME=self.folder))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def use(self, page, script, fragment=""):
        """Runs a script at the end of a copy of the page and gives what it returns."""
        text = self.read(page)
        end = text.rindex("</body>")
        probe = ("<script>const plotBox = (f) => { const c = f.querySelector('canvas').getBoundingClientRect(), s = f.shape;\n"
                 "return { left: c.left + s.left, top: c.top + s.top, right: c.left + s.left + s.width,\n"
                 "width: s.width, bottom: c.top + s.top + s.height }; };\n"
                 "window.addEventListener('load', async () => {\n"
                 "const tick = () => new Promise((done) => setTimeout(done, 60));\n"
                 "let seen; try { seen = await (async () => {" + script + "})(); }\n"
                 "catch (e) { seen = {error: String(e) + e.stack}; }\n"
                 "const out = document.createElement('pre'); out.id = 'seen';\n"
                 "out.textContent = JSON.stringify(seen); document.body.appendChild(out); });</script>")
        self.write("probe.html", text[:end] + probe + text[end:])
        dom = self.browse("probe.html", "--dump-dom", fragment=fragment)
        found = re.search(r'<pre id="seen">(.*?)</pre>', dom, re.S)
        self.assertTrue(found, "the page's script did not end")
        seen = json.loads(found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
        self.assertNotIn("error", seen or {}, seen)
        return seen

    def test_plots_are_drawn_in_both_themes(self):
        self.run_system()
        self.cardan("report", "run.mf4")
        grounds = {}
        for theme in ("light", "dark"):
            boxes = self.use("run.html", """
                await tick();
                return Array.from(document.querySelectorAll('figure.drawn')).map((e) => {
                    const b = plotBox(e);
                    return [b.left, b.top, b.right, b.bottom].map(Math.round); });""",
                             fragment="#" + theme)
            boxes = [b for b in boxes if b[3] < HEIGHT - 150]
            self.assertGreaterEqual(len(boxes), 2)
            self.browse("run.html", f"--screenshot={self.path(theme + '.png')}", fragment="#" + theme)
            width, height, n, rows = read_png(self.path(theme + ".png"), max(b[3] for b in boxes))
            grounds[theme] = sum(rows[4][4 * n:4 * n + 3]) / 3
            for left, top, right, bottom in boxes:
                drawn, looked = 0, range(left, right, 4)
                for x in looked:
                    column = [rows[y][x * n:x * n + 3] for y in range(top, bottom)]
                    drawn += any(max(p) - min(p) > 70 for p in column)  # a colour, not a grey
                share = drawn / len(looked)
                self.assertGreater(share, 0.9, f"{theme}: line in {share:.0%} of {left, top}")
        self.assertGreater(grounds["light"], 230)
        self.assertLess(grounds["dark"], 60)

    def test_an_estimate_is_drawn_with_its_band(self):
        rows = [f"{t / 100},{t},{t - 30},{t + 30},{1 - t}" for t in range(101)]
        self.write("twin.csv", "time,T1,T1.low,T1.high,other\n" + "\n".join(rows) + "\n")
        self.cardan("report", "twin.csv")
        page = self.read("twin.html")
        self.assertIn("<b>T1 with its band</b>", page)
        plots = json.loads(re.search(r'id="cardan">(.*?)</script>', page, re.S)[1])["plots"]
        self.assertEqual([[(line["name"], line.get("band")) for line in p["lines"]] for p in plots],
                         [[("T1", None), ("T1.low", "low"), ("T1.high", "high")],
                          [("other", None)]])
        box = self.use("twin.html", """
            await tick();
            const b = plotBox(document.querySelector('figure.drawn'));
            return [b.left, b.top, b.right, b.bottom].map(Math.round);""", fragment="#light")
        self.browse("twin.html", f"--screenshot={self.path('band.png')}", fragment="#light")
        _, _, n, rows = read_png(self.path("band.png"), box[3])
        x = (box[0] + box[2]) // 2
        column = [rows[y][x * n:x * n + 3] for y in range(box[1], box[3])]
        shaded = sum(10 < max(p) - min(p) < 90 for p in column)  # a faint colour: 60 of 172 units
        self.assertGreater(shaded / len(column), 0.28)
        self.assertLess(shaded / len(column), 0.42)

    def test_readers_can_zoom_hide_filter_and_change_the_theme(self):
        self.run_system()
        self.cardan("report", "run.mf4")
        seen = self.use("run.html", """
            const seen = {}, figures = Array.from(document.querySelectorAll('figure.plot'));
            const over = document.querySelector('figure canvas'), box = plotBox(figures[0]);
            const mouse = (type, share) => over.dispatchEvent(
                new PointerEvent(type, {bubbles: true, cancelable: true, button: 0, view: window,
                    clientX: box.left + share * box.width, clientY: box.top + 50}));
            const key = (name) => over.dispatchEvent(new KeyboardEvent('keydown', {key: name, bubbles: true}));
            const texts = () => Array.from(document.querySelectorAll('.legend .value'))
                .map((e) => e.textContent);
            seen.drawn = document.querySelectorAll('figure.drawn').length;
            mouse('pointermove', 0.5); await tick();
            seen.values = texts();
            mouse('pointerdown', 0.25); mouse('pointermove', 0.3); mouse('pointermove', 0.5);
            mouse('pointerup', 0.5); await tick();
            seen.zoomed = document.documentElement.classList.contains('zoomed');
            seen.reset = getComputedStyle(document.getElementById('reset')).display;
            mouse('pointermove', 0); await tick();
            seen.first = texts();
            mouse('pointermove', 0.9999); await tick();
            seen.last = texts();
            mouse('dblclick', 0.5); await tick();
            seen.whole = !document.documentElement.classList.contains('zoomed');
            key('+'); key('ArrowRight'); await tick();
            mouse('pointermove', 0); await tick();
            seen.byKeys = texts();
            key('0'); await tick();
            seen.wholeAgain = !document.documentElement.classList.contains('zoomed');
            const name = document.querySelector('.legend button');
            const inked = () => over.getContext('2d').getImageData(0, 0, over.width, over.height).data
                .reduce((n, x, i, d) => n + (i % 4 === 0 && d[i + 2] > d[i] + 70), 0);
            mouse('pointerleave', 0); await tick();
            seen.ink = [inked()];
            name.click(); await tick();
            seen.hidden = name.getAttribute('aria-pressed');
            seen.ink.push(inked());
            name.click(); await tick();
            seen.shown = name.getAttribute('aria-pressed');
            seen.ink.push(inked());
            const filter = document.getElementById('filter');
            filter.value = 'second X2'; filter.dispatchEvent(new Event('input'));
            seen.filtered = figures.filter((f) => !f.hidden).map((f) => f.dataset.names);
            filter.value = ''; filter.dispatchEvent(new Event('input'));
            const theme = () => document.documentElement.dataset.theme;
            seen.before = theme();
            document.getElementById('theme').click();
            seen.after = theme();
            seen.kept = localStorage.getItem('cardan-theme');
            seen.requests = performance.getEntriesByType('resource').length;
            return seen;""", fragment="#light")
        self.assertGreaterEqual(seen["drawn"], 2)
        times = [float(v[:-2]) for v in seen["values"] if v.endswith(" s")]
        self.assertEqual(len(times), seen["drawn"], "the cursor is in all plots")
        for t in times:
            self.assertAlmostEqual(t, 0.5, delta=0.01)
        self.assertTrue(seen["zoomed"])
        self.assertNotEqual(seen["reset"], "none")
        for t in [float(v[:-2]) for v in seen["first"] if v.endswith(" s")]:
            self.assertAlmostEqual(t, 0.25, delta=0.01)  # all plots show the same time
        for t in [float(v[:-2]) for v in seen["last"] if v.endswith(" s")]:
            self.assertAlmostEqual(t, 0.5, delta=0.01)
        self.assertTrue(seen["whole"])
        for t in [float(v[:-2]) for v in seen["byKeys"] if v.endswith(" s")]: # 0.7 of the time, a tenth of that to the right
            self.assertAlmostEqual(t, 0.15 + 0.07, delta=0.01)
        self.assertTrue(seen["wholeAgain"])
        self.assertEqual((seen["hidden"], seen["shown"]), ("false", "true"))
        self.assertGreater(seen["ink"][0], 100)
        self.assertLess(seen["ink"][1], seen["ink"][0] / 2, "the first line is gone")
        self.assertEqual(seen["ink"][2], seen["ink"][0])
        self.assertEqual(seen["filtered"], ["second.x2"])
        self.assertEqual((seen["before"], seen["after"], seen["kept"]), ("light", "dark", "dark"))
        self.assertEqual(seen["requests"], 0)

    def test_the_cursor_shows_the_values_of_the_file(self):
        rows = [(0.1 * k, 100000 + 1e-7 * k, k % 2, -k) for k in range(11)]
        self.write("v.csv", "time,x,on,i\n" + "".join(",".join(map(repr, r)) + "\n" for r in rows))
        self.cardan("report", "v.csv")
        seen = self.use("v.html", """
            const over = document.querySelector('figure canvas'), box = plotBox(document.querySelector('figure'));
            over.dispatchEvent(new PointerEvent('pointermove', {bubbles: true, view: window,
                clientX: box.left + 0.3 * box.width, clientY: box.top + 50}));
            await tick();
            return Array.from(document.querySelectorAll('.legend li')).map((e) =>
                [e.querySelector('.name').textContent, e.querySelector('.value').textContent]);""")
        values = dict(map(tuple, seen))
        self.assertEqual(values["x"], "100000.0000003")
        self.assertEqual(float(values["time"][:-2]), 0.3)

    def test_hostile_names_stay_names(self):
        self.write("evil.csv", EVIL)
        self.cardan("report", "evil.csv", "--title", "</title><script>document.title='hacked'</script>")
        self.assertNotIn("<img", self.read("evil.html"))
        seen = self.use("evil.html", """
            await tick();
            return {title: document.title, images: document.images.length,
                    bold: document.querySelectorAll('td b').length,
                    drawn: document.querySelectorAll('figure.drawn').length,
                    text: document.body.innerText}""")
        self.assertIn("<script>", seen["title"])
        self.assertEqual((seen["images"], seen["bold"]), (0, 0))
        self.assertGreaterEqual(seen["drawn"], 1)
        self.assertIn("</script><img src=x onerror=document.title='hacked'>", seen["text"])

    def test_units_of_measure_of_several_runs_become_those_of_the_first(self):
        self.write("a.csv", "time,T [degC],n [rad/s]\n0,20,0\n1,30,10\n")
        self.write("b.csv", "time,T [K],n [1/min]\n0,293.15,0\n1,303.15,90\n")
        self.cardan("report", "a.csv", "b.csv", "-o", "both.md")
        rows = [line.split("|")[1:6] for line in self.read("both.md").splitlines() if re.match(r"\|[Tn][ |]", line)]
        self.assertEqual(rows, [["T", "a", "degC", "20", "30"], ["T", "b", "degC", "20", "30"],
                                ["n", "a", "rad/s", "0", "10"], ["n &#91;1/min&#93;", "b", "1/min", "0", "90"]])

    def test_several_runs_and_a_reference_lie_over_each_other(self):
        self.run_system("a.mf4")
        self.run_system("b.mf4", "--set", "first.m1=3")
        self.run_system("bench.csv", "--set", "first.m1=4")
        self.cardan("report", "a.mf4", "b.mf4", "--reference", "bench.csv", "-o", "all.html")
        seen = self.use("all.html", """
            await tick();
            return {names: Array.from(document.querySelector('.legend').querySelectorAll('.name'))
                        .map((e) => e.textContent),
                    dashed: document.querySelector('.legend').querySelectorAll('.dashed').length}""")
        names = " | ".join(seen["names"])
        for part in ("a", "b", "reference bench"):
            self.assertIn("\u00b7 " + part, names)
        self.assertGreaterEqual(seen["dashed"], 1)
        text = " ".join(Page(self.read("all.html")).texts)
        self.assertIn("The same units and connections as above.", text)
        self.assertEqual(text.count("Parameters that differ from their start values"), 2)

    def test_warnings_do_not_hide_the_line(self):
        shutil.copy(fmu("faulty"), self.folder)
        self.cardan("run", "faulty.fmu", "-q", "--step", "1ms", "--set", "mode=1", "--set", "when=0.5",
                    "-o", "warned.mf4", "--isolate", "none")
        self.cardan("report", "warned.mf4")
        left, top, right, bottom = self.use("warned.html", """
            await tick();
            const b = plotBox(document.querySelector('figure.drawn'));
            return [b.left, b.top, b.right, b.bottom].map(Math.round);""", fragment="#light")
        self.browse("warned.html", f"--screenshot={self.path('warned.png')}", fragment="#light")
        _, _, n, rows = read_png(self.path("warned.png"), bottom)
        middle = (left + right) // 2
        column = lambda x: [rows[y][x * n:x * n + 3] for y in range(top, bottom)]
        blue = [any(p[2] > p[0] + 70 for p in column(x)) for x in range(middle + 5, right - 5)]
        self.assertGreater(sum(blue) / len(blue), 0.95, "the line is in front")
        # what an FMU says once more is left out: there is one place, in the middle
        marked = any(p[0] > p[2] + 15 for x in range(middle - 5, middle + 6) for p in column(x))
        self.assertTrue(marked, "the warning is there")
        self.assertFalse(any(p[0] > p[2] + 15 for p in column((left + middle) // 2)))

    def test_a_wide_system_is_seen_whole(self):
        units = "".join(f"  u{k}: {{ fmu: lo_fd{k % 2 + 1}.fmu }}\n" for k in range(12))
        wires = "".join(f"  - u{k}.{'x2' if k % 2 else 'f'} -> u{k + 1}.{'x2' if k % 2 else 'f'}\n"
                        for k in range(11))
        self.write("wide.yaml", f"cardan: 1\nunits:\n{units}connections:\n{wires}"
                                "run: { step: 1 ms, stop: 10 ms }\n")
        self.cardan("run", "wide.yaml", "-q", "-o", "wide.mf4")
        self.cardan("report", "wide.mf4")
        seen = self.use("wide.html", """
            const box = document.querySelector('.drawing'), svg = box.querySelector('svg');
            return {inside: svg.getBoundingClientRect().width, room: box.clientWidth,
                    own: svg.viewBox.baseVal.width, shown: box.scrollWidth}""")
        self.assertLess(seen["inside"], 0.7 * seen["own"], seen)
        self.assertGreater(seen["inside"], 0.5 * seen["own"], "it can still be read")

    def test_all_plots_are_drawn_for_paper(self):
        names = [f"u{k}.x" for k in range(30)]
        rows = ["time," + ",".join(names)]
        rows += [",".join([str(0.1 * t)] + [str(t * k) for k in range(30)]) for t in range(20)]
        self.write("many.csv", "\n".join(rows) + "\n")
        self.cardan("report", "many.csv")
        seen = self.use("many.html", """
            const drawn = () => document.querySelectorAll('figure.drawn').length;
            const before = drawn();
            dispatchEvent(new Event('beforeprint'));
            const theme = document.documentElement.dataset.theme, paper = drawn();
            dispatchEvent(new Event('afterprint'));
            return {before, paper, theme, after: document.documentElement.dataset.theme}""",
                        fragment="#dark")
        self.assertLess(seen["before"], 30, "plots out of sight wait")
        self.assertEqual((seen["paper"], seen["theme"], seen["after"]), (30, "light", "dark"))
        self.browse("many.html", f"--print-to-pdf={self.path('many.pdf')}")
        with open(self.path("many.pdf"), "rb") as f:
            pdf = f.read()
        self.assertTrue(pdf.startswith(b"%PDF-"))
        self.assertGreater(len(re.findall(rb"/Type\s*/Page\b", pdf)), 5)


if __name__ == "__main__":
    unittest.main()
