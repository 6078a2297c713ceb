#!/usr/bin/env python3
"""Makes the pictures of the documentation: make pictures, or pictures.py [NAME ...] (some take a minute, in real time).

Each is what a command of the documentation writes, or a page as headless Chromium shows it; they lie in docs/images.
The surroundings come from the environment: CARDAN_BUILD, the folder with cardan and fmus/.
"""
import base64
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("CARDAN_BUILD", os.path.join(ROOT, "build")))
CARDAN, FMUS = os.path.join(BUILD, "cardan"), os.path.join(BUILD, "fmus")
OUT = os.path.join(ROOT, "docs", "images")
HIGH = 1400, 900


class Place:
    """A folder with what a picture needs, and the processes that serve it."""

    def __init__(self, browser):
        self.folder, self.browser, self.processes = tempfile.mkdtemp(prefix="pictures_"), browser, []

    def cardan(self, *arguments):
        subprocess.run([CARDAN, *arguments], cwd=self.folder, check=True, capture_output=True, timeout=300)

    def system(self, path, name, *edits):
        """A system of examples/ under another name; edits are pairs of patterns and what stands there instead."""
        with open(os.path.join(ROOT, "examples", path), encoding="utf-8") as f:
            text = re.sub(r"[./]*build/fmus", FMUS, f.read())
        for old, new in edits:
            text, n = re.subn(old, new, text)
            assert n, f"{path} has no {old}"
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as f:
            f.write(text)

    def serve(self, word, *arguments):
        """The address that stands behind `word` in what a command says; its output is read no further."""
        p = subprocess.Popen([CARDAN, *arguments], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.processes.append(p)
        for line in p.stdout:
            found = re.search(word + r"\s+(\S+)", line)
            if found:
                return found[1]
        raise SystemExit(f"cardan {' '.join(arguments)} does not say '{word}'")

    def page(self, url, theme="light", size=HIGH):
        page = self.browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=theme).new_page()
        page.goto(url)
        return page

    def end(self):
        for p in self.processes:
            p.terminate()
            p.wait()
        shutil.rmtree(self.folder)


def until(page, condition):
    assert page.evaluate("async () => { const end = performance.now() + 90000; const is = () => (" + condition + ");"
                         " while (!is() && performance.now() < end) { await new Promise((r) => setTimeout(r, 20)); }"
                         " return Boolean(is()); }"), condition


def shoot(page, name, locator=None):
    (locator or page).screenshot(path=os.path.join(OUT, name + ".png"))


def keep(place, *names):
    for name in names:
        shutil.copy(os.path.join(place.folder, name), OUT)


# ---- one function per picture, named like it; several names: made together ----------------------------------------

def live(place):
    place.system("realtime/drive.yaml", "drive.yaml")
    url = place.serve("live", "run", "drive.yaml", "--ui", "--pace", "realtime", "-o", "drive.mf4")
    pages = {theme: place.page(url, theme) for theme in ("light", "dark")}
    for theme, page in pages.items():
        until(page, "window.cardanLive && cardanLive.plots().length > 0 && cardanLive.plots()[0].newest > 10")
        shoot(page, "live-" + theme)


def view(place):
    place.system("realtime/drive.yaml", "drive.yaml")
    for name, kp in (("run", "1.2"), ("soft", "0.6")):
        place.cardan("run", "drive.yaml", "--pace", "free", "--stop-time", "20", "--set", "controller.kp=" + kp, "-o", name + ".mf4")
    panels = [{"signals": [{"name": "cycle.target"}, {"name": "shaft.speed"}]},
              {"signals": [{"name": "motor.torque"}, {"name": "motor.temperature", "axis": 1}]},
              {"kind": "xy", "signals": [{"name": "shaft.speed"}, {"name": "motor.torque"}]},
              {"signals": [{"name": "shaft.speed"}], "diff": True}]
    page = place.page(place.serve("view", "view", "run.mf4", "soft.mf4"), size=(1600, 1000))
    until(page, "window.cardanView && cardanView.speed.first")
    page.evaluate("""(panels) => { const v = cardanView.viewer, of = (n) => v.signals.find((s) => s.name === n);
        for (const p of v.panels.slice()) { p.actions.remove(p); }
        for (const want of panels) {
            cardanView.addTo(null, want.signals.map((s) => of(s.name)));
            const p = v.panels[v.panels.length - 1];
            want.signals.forEach((s, i) => { p.entries[i].axis = s.axis || 0; });
            p.set({ kind: want.kind || "time", diff: Boolean(want.diff) });
        }
        v.panels[0].actions.cursor(4, 0);
        v.panels[0].actions.cursor(9, 1); }""", panels)
    until(page, "cardanView.viewer.panels.every((p) => !p.wants() && (p.kind === 'time' ? p.readFor === cardanView.viewer.cursors.join() : p.computed))")
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    shoot(page, "view-light")


def draw(place):
    models = [os.path.join(FMUS, "fmi2", f"drive_{name}.fmu") for name in ("controller", "motor", "shaft")]
    page = place.page(place.serve(r"\w+(?= +http)", "new", *models, "-o", "drive.yaml", "--ui"))
    until(page, "!document.querySelector('#units, body').textContent.includes('loading')")
    page.evaluate("new Promise((done) => setTimeout(done, 800))")
    shoot(page, "draw")


def report(place):
    place.system("systems/pendula.yaml", "pendula.yaml")
    place.cardan("run", "pendula.yaml", "-o", "pendula.mf4")
    place.cardan("run", "pendula.yaml", "-o", "coarse.mf4", "--predict", "hold", "--step", "10 ms")
    place.cardan("report", "coarse.mf4", "--reference", "pendula.mf4", "-o", "report.html")
    halves = []
    for theme, where in (("light", None), ("dark", "signals")):
        page = place.page(f"file://{place.folder}/report.html#{theme}", theme, (700, 790))
        until(page, "document.documentElement.dataset.ready === 'yes'")
        if where:
            page.evaluate("(id) => document.getElementById(id).scrollIntoView({behavior: 'instant'})", where)
            page.wait_for_selector("figure.drawn")
        halves.append(base64.b64encode(page.screenshot()).decode())
    page = place.page("about:blank", size=(1400, 790))
    page.set_content("<body style='margin:0;display:flex'>" + "".join(f"<img src='data:image/png;base64,{h}'>" for h in halves))
    until(page, "Array.from(document.images).every((i) => i.complete)")
    shoot(page, "report")


def desk(place):
    address = place.serve("listening at", "bench", "backtoback", "--listen", "udp://127.0.0.1:0", "--write-description", "b.dcpx",
                          "--speed-up", "500", "--watchdog", "5 s")
    assert address
    url = place.serve("live", "bench", "desk", "b.dcpx", "--ui-address", "127.0.0.1:0", "--estop-address", "127.0.0.1:0",
                      "--silence", "10 s", "--case", "speed 0..2000 1/min; torque -0.2..0.2 N.m; voltage 0..30 V", "--calibration", "c.json")
    page = place.page(url)
    for word, state in (("Prepare", "waiting"), ("Start", "running")):
        page.locator("#start", has_text=word).click()
        page.locator("body[data-state=" + state + "]").wait_for()
    for name, target, rate in (("voltage_ref", 24, ""), ("speed_ref", 1000, 2000)):
        row = page.get_by_role("group", name="desk." + name, exact=True)
        row.get_by_label("Target of " + name).fill(str(target))
        row.get_by_label("Rate of " + name).fill(str(rate))
        row.get_by_role("button", name="Go").click()
    speed = page.locator('article[data-unit="bench"] .limit', has=page.locator('.name[title="speed"]')).locator(".value b")
    speed.get_by_text(re.compile("^(99[0-9]|100[0-9]|1000)")).wait_for()
    shoot(page, "desk-light")


def prototype(place):
    """make demo, with a look at its page while both benches run: also benches-light and session.svg."""
    demo = subprocess.Popen(["sh", os.path.join(ROOT, "examples/prototype/demo.sh")], stdout=subprocess.PIPE, text=True,
                            env=dict(os.environ, CARDAN_BUILD=BUILD))
    page = None
    for line in demo.stdout:
        found = re.search(r"the page: (http\S+)", line)
        if found:
            page = place.page(found[1], size=(1600, 1000))
        if "the machine's bench is gone" in line:
            until(page, "cardanLive.rows() > 0 && cardanLive.plots().some((p) => p.newest > 9)")
            shoot(page, "prototype")
            shoot(page, "benches-light", page.locator("#benches"))
    assert demo.wait() == 0
    shutil.copy(os.path.join(BUILD, "demo", "session.svg"), OUT)


def plot(place):
    place.system("oscillator/oscillator.yaml", "oscillator.yaml")
    place.cardan("run", "oscillator.yaml", "-o", "oscillator.mf4")
    place.cardan("plot", "oscillator.mf4", "--panel", "first.x1,second.x2", "--panel", "first.f,first.energy", "--dpi", "150", "-o", "plot.png")
    keep(place, "plot.png")


def oscillator(place):
    subprocess.run(["sh", os.path.join(ROOT, "examples/oscillator/oscillator.sh")], check=True, capture_output=True,
                   env=dict(os.environ, CARDAN_BUILD=BUILD))
    shutil.copy(os.path.join(BUILD, "oscillator", "oscillator.svg"), OUT)


def pairs(place):
    """With the link, and the same two units without a link, in steps of 0.1 ms."""
    place.system("systems/shaft_pair.yaml", "pair.yaml")
    place.system("systems/shaft_pair.yaml", "undelayed.yaml", (r"(?s)bonds:.*?\n\n", ""), ("step: 10 ms", "step: 0.1 ms"))
    for name in ("pair", "undelayed"):
        place.cardan("run", name + ".yaml", "-o", name + ".csv")
    place.cardan("plot", "pair.csv", "undelayed.csv", "--variables", "second.omega2", "-o", "pairs.svg")
    keep(place, "pairs.svg")


def cycles(place):
    """What `coupling learn cycle` says of its runs, over a logarithmic axis."""
    shutil.copy(os.path.join(ROOT, "examples/powertrain/nedc.csv"), place.folder)
    place.system("powertrain/hybrid_late.yaml", "late.yaml")
    done = subprocess.run([CARDAN, "coupling", "learn", "cycle", "late.yaml", "-o", "c.json", "--json"], cwd=place.folder, check=True,
                          capture_output=True, text=True, timeout=600)
    best = dict(enumerate((100 * run["error"] for run in json.loads(done.stdout)["runs"] if run["what"] in ("hold", "learn")), 1))
    low = math.floor(math.log10(min(best.values())))
    x, y = lambda n: 34 + 76 * n, lambda p: 30 + 170 * (1 - math.log10(p)) / (1 - low)
    parts = [f'<line x1="70" x2="530" y1="{y(10.0 ** k):.1f}" y2="{y(10.0 ** k):.1f}" stroke="#ddd"/>'
             f'<text x="62" y="{y(10.0 ** k) + 4:.1f}" text-anchor="end">{10.0 ** k:g} %</text>' for k in range(0, low - 1, -2)]
    parts += [f'<polyline fill="none" stroke="#1f6fb4" stroke-width="2" points="{" ".join(f"{x(n)},{y(p):.1f}" for n, p in best.items())}"/>']
    parts += [f'<circle cx="{x(n)}" cy="{y(p):.1f}" r="4" fill="#1f6fb4"/><text x="{x(n) + 8}" y="{y(p) - 7:.1f}">{p:.2g}</text>'
              f'<text x="{x(n)}" y="228" text-anchor="middle">{n}</text>' for n, p in best.items()]
    with open(os.path.join(OUT, "cycles.svg"), "w", encoding="utf-8") as f:
        f.write('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 560 260" font-family="sans-serif" font-size="12">\n'
                '<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(parts) +
                '\n<text x="300" y="248" text-anchor="middle">run (1: held; identification left out)</text>'
                '<text x="70" y="18">coupling error of its range, hybrid on a part of the NEDC, 60 ms each way</text></svg>\n')


def study(place):
    """The pictures of the study in docs/how-to/study.md, and the page of one that is eighty times as large while it is made."""
    place.system("oscillator/oscillator.yaml", "oscillator.yaml")
    place.system("oscillator/spring.yaml", "spring.yaml")
    place.system("oscillator/spring.yaml", "large.yaml", ("count: 50", "count: 4000"))
    place.cardan("study", "run", "spring.yaml")
    place.cardan("study", "plot", "spring.yaml", "--scatter", "second.k2,peak", "--tornado", "peak", "--convergence", "peak", "-o", "study.svg")
    keep(place, "study.svg")
    page = place.page(place.serve("watch", "study", "run", "large.yaml", "--watch"), size=(1200, 900))
    until(page, "/^[1-9],[0-9]{3} of/m.test(document.body.innerText) && document.getElementById('picture').naturalWidth")
    shoot(page, "study-watch")


PICTURES = {"live-light.png": live, "live-dark.png": live, "view-light.png": view, "draw.png": draw, "report.png": report,
            "desk-light.png": desk, "prototype.png": prototype, "benches-light.png": prototype, "session.svg": prototype,
            "plot.png": plot, "oscillator.svg": oscillator, "pairs.svg": pairs, "cycles.svg": cycles,
            "study.svg": study, "study-watch.png": study}


def main(names):
    missing = set(os.listdir(OUT)) ^ set(PICTURES)
    if names == ["--list"]:
        print("\n".join(sorted(missing)) or "each picture of docs/images is made by tests/docs/pictures.py")
        return 1 if missing else 0
    unknown = set(names) - set(PICTURES)
    if unknown:
        raise SystemExit(f"no picture {sorted(unknown)[0]}, expected some of {', '.join(sorted(PICTURES))}")
    from playwright.sync_api import sync_playwright  # not for --list
    makers = dict.fromkeys(PICTURES[n] for n in names or PICTURES)
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"])
        for make in makers:
            place = Place(browser)
            try:
                make(place)
            finally:
                place.end()
            print("made " + ", ".join(n for n, f in PICTURES.items() if f is make), flush=True)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
