"""How fast the viewer is on a recording: view_speed.py CARDAN FILE [PANELS]

First picture (from the start of the navigation), the time until all is read, zooms to random windows from the call
to the exact picture, and frames per second of many panels while panning. Nothing is asserted: machines differ.
"""

import os
import re
import shutil
import subprocess
import sys
import time

from playwright.sync_api import sync_playwright

ZOOM = """async () => {
  const v = cardanView.viewer, [a, b] = v.whole, times = [];
  let seed = 7;
  const random = () => { seed = (seed * 16807) % 2147483647; return seed / 2147483647; };
  for (let i = 0; i < 60; i++) {
    const span = (b - a) * 10 ** (-6 * random()), from = a + random() * (b - a - span), begin = performance.now();
    cardanView.setWindow(null, from, from + span);
    await new Promise((done) => { const look = () => {
      const fine = v.panels.every((p) => !p.wants() || !p.seen);
      if (fine) { requestAnimationFrame(() => done()); } else { setTimeout(look, 1); } }; requestAnimationFrame(look); });
    times.push(performance.now() - begin);
  }
  times.sort((x, y) => x - y);
  return { median: times[30], p95: times[56], worst: times[59] };
}"""
PAN = """async (count) => {
  const v = cardanView.viewer, [a, b] = v.whole;
  for (const p of v.panels.slice()) { p.actions.remove(p); }
  for (let i = 0; i < count; i++) { cardanView.addTo(null, [v.signals[i % v.signals.length]]); }
  document.getElementById("panels").style.gridTemplateColumns = "repeat(6, minmax(0, 1fr))";
  for (const p of v.panels) { p.place.style.minHeight = "90px"; }
  cardanView.setWindow(null, a, a + (b - a) / 10);
  const done = () => v.panels.every((p) => p.lines().every((l) => p.strips.get(l.key) && p.strips.get(l.key).part === 1));
  while (!done()) { await new Promise((r) => setTimeout(r, 50)); }
  const draws = cardanView.speed.frames.length, begin = performance.now(), seen = v.panels.filter((p) => p.seen).length;
  let frames = 0;
  while (performance.now() - begin < 5000) {
    const from = a + (b - a) * 0.4 * (performance.now() - begin) / 5000;
    cardanView.setWindow(null, from, from + (b - a) / 10);
    await new Promise((r) => requestAnimationFrame(r));
    frames++;
  }
  const list = cardanView.speed.frames.slice(draws).sort((x, y) => x - y);
  return { seen, fps: 1000 * frames / (performance.now() - begin), drawMedian: list[list.length >> 1] };
}"""


def main(cardan, path, panels=30):
    server = subprocess.Popen([cardan, "view", path], stderr=subprocess.PIPE, text=True)
    url = re.search(r"http\S+", server.stderr.readline())[0]
    print(f"{os.path.getsize(path) / 1e9:.2f} GB, load {os.getloadavg()[0]:.1f}")
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_context(viewport={"width": 1600, "height": 1000}).new_page()
        begin = time.monotonic()
        page.goto(url)
        first = page.evaluate("async () => { while (!window.cardanView || !cardanView.speed.first) { await new Promise((r) => setTimeout(r, 5)); } return cardanView.speed.first; }")
        page.evaluate("async () => { const v = cardanView.viewer; while (!v.panels.every((p) => p.lines().every((l) => p.strips.get(l.key) && p.strips.get(l.key).part === 1))) { await new Promise((r) => setTimeout(r, 20)); } }")
        print(f"first picture {first:.0f} ms, all read {1000 * (time.monotonic() - begin):.0f} ms")
        zoom = page.evaluate(ZOOM)
        print("zoom: median {median:.0f} ms, p95 {p95:.0f} ms, worst {worst:.0f} ms".format(**zoom))
        pan = page.evaluate(PAN, panels)
        print("{0} panels ({seen} in sight) while panning: {fps:.1f} frames/s, drawing {drawMedian:.1f} ms".format(panels, **pan))
        print(f"server memory {open(f'/proc/{server.pid}/status').read().split('VmHWM:')[1].split()[0]} kB, load {os.getloadavg()[0]:.1f}")
        browser.close()
    server.terminate()


if __name__ == "__main__":
    main(*sys.argv[1:3], *map(int, sys.argv[3:4]))
