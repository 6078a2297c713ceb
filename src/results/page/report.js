// Plots of the report: reads the data inside the page. chart.js, which draws, stands above in the same module.
(function () {
    const root = document.documentElement;
    const info = JSON.parse(document.getElementById("cardan").textContent);
    const figures = Array.from(document.querySelectorAll("figure.plot"));
    const drawn = new Map(); // figure -> what is drawn in it
    let whole = [info.start, info.stop];
    if (whole[0] === null || whole[1] === null) { whole = [0, 1]; }
    if (!(whole[0] < whole[1])) { whole = [whole[0] - 0.5, whole[1] + 0.5]; }
    let view = whole.slice();
    let printing = false, cursor = NaN;

    const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
    let look = {};
    function readColours() {
        look = { series: [], font: "12px system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif" };
        for (let i = 0; i < 8; i++) { look.series.push(css("--s" + i)); }
        for (const name of ["text", "muted", "grid", "accent", "warning", "error", "overrun", "mark"]) { look[name] = css("--" + name); }
        look.panel = css("--ground");
    }

    // ---- numbers

    // As many digits as a double has, without the noise of the last ones.
    function exact(x) {
        return String(Number(x.toPrecision(15))).replace("-", "\u2212");
    }
    function brief(x) {
        const size = Math.abs(x);
        if (x === 0) { return "0"; }
        if (size >= 1e6 || size < 1e-4) {
            return x.toExponential(6).replace(/\.?0+e/, "e").replace("e+", "e").replace(/-/g, "\u2212");
        }
        return String(Number(x.toPrecision(9))).replace("-", "\u2212");
    }

    // ---- data

    function decode(line) {
        const text = atob(document.getElementById(line.id).textContent);
        const bytes = new Uint8Array(text.length);
        for (let i = 0; i < text.length; i++) { bytes[i] = text.charCodeAt(i); }
        const regular = line.dt !== undefined;
        const n = bytes.length / (regular ? 12 : 16);
        const low = new Float64Array(bytes.buffer, 0, n).map((v) => (Number.isFinite(v) ? v : NaN));
        const rest = bytes.slice(8 * n).buffer;
        const t = regular ? Float64Array.from(new Uint32Array(rest), (row) => line.t0 + row * line.dt) : new Float64Array(rest);
        return { t, low, high: low, n, samples: true };
    }

    // The point of a line at the cursor: the one before it where values hold, else the nearest.
    function pointAt(data, t, holds) {
        const next = firstAtOrBehind(data.t, data.n, t);
        if (next === 0 || (next < data.n && data.t[next] === t)) { return next; }
        if (next >= data.n || holds) { return next - 1; }
        return t - data.t[next - 1] <= data.t[next] - t ? next - 1 : next;
    }

    // ---- drawing

    const dashes = [[], [9, 3, 2, 3], [2, 3], [12, 5], [5, 2]];

    function styleOf(line, signals) {
        const run = info.runs[line.run];
        const alone = signals === 1; // then colours tell the runs apart
        const colour = (alone ? line.run : line.signal) % 8;
        if (line.band) { return { colour, dash: [], width: 0.8, faint: 0.45 }; }
        if (run.reference) { return { colour, dash: [7, 5], width: 2.4, faint: 0.6 }; }
        if (alone) { return { colour, dash: [], width: 1.6, faint: 1 }; }
        return { colour, dash: dashes[line.run % dashes.length], width: 1.6,
                 faint: line.run ? 0.75 : 1 };
    }

    const isState = (plot) => plot.kind === "boolean" || plot.kind === "enumeration";
    const heightOf = (c) => (isState(c.plot) ? 40 + STATE_HEIGHT * c.lines.length : printing ? 205 : 260);
    const widthOf = (c) => (printing ? 680 : Math.max(280, Math.floor(c.place.clientWidth)));

    function textOf(plot) {
        const labels = new Map(plot.labels || []);
        if (plot.kind === "boolean") { return (v) => (v > 0.5 ? "true" : "false"); }
        return (v) => labels.get(v) || (plot.kind === "enumeration" ? brief(v) : exact(v));
    }
    // The colour of a state; null: nothing is the case.
    function stateColour(plot, line, v) {
        const series = look.series;
        if (plot.kind === "boolean") { return v > 0.5 ? series[line.style.colour] : null; }
        const k = (plot.labels || []).findIndex((l) => l[0] === v);
        return series[(k < 0 ? Math.abs(Math.round(v)) : k) % series.length];
    }

    function setView(min, max) {
        if (!(max > min)) { return; }
        const span = Math.min(max - min, whole[1] - whole[0]), from = Math.min(Math.max(min, whole[0]), whole[1] - span);
        view = [from, from + span];
        root.classList.toggle("zoomed", span < whole[1] - whole[0]);
        repaint();
    }

    function draw(figure) {
        if (drawn.has(figure)) { return; }
        const plot = info.plots[+figure.dataset.plot], signals = new Set(plot.lines.map((l) => l.signal)).size;
        const c = { figure, plot, place: figure.querySelector(".chart"), canvas: document.createElement("canvas"), shape: null,
                    select: null, text: textOf(plot), stale: true, near: true };
        c.lines = plot.lines.map((line) => ({ line, data: decode(line), shown: true, style: styleOf(line, signals),
                                              name: nameOf(line), holds: plot.kind !== "real" }));
        c.canvas.tabIndex = 0;
        c.canvas.setAttribute("role", "img");
        c.canvas.setAttribute("aria-label", figure.querySelector("figcaption").textContent +
            ". Arrow keys move, plus and minus zoom, 0 shows all.");
        c.place.append(c.canvas);
        legend(c);
        takeHands(c.canvas, {
            box: () => c.shape, window: () => view, show: setView, all: () => setView(whole[0], whole[1]),
            hover: (x) => { cursor = Number.isNaN(x) ? NaN : c.shape.tOf(x); repaint(); },
            select: (pixels) => { c.select = pixels; repaint(); },
        });
        drawn.set(figure, c);
        figure.classList.add("drawn");
        paint(c);
        watcher.observe(figure);
    }
    function nameOf(line) {
        const run = info.runs[line.run];
        return info.runs.length > 1 ? `${line.name} \u00B7 ${run.reference ? "reference " : ""}${run.label}` : line.name;
    }

    // What the cursor reads: a point of each line.
    function readings(c) {
        return c.lines.map((l) => {
            const i = Number.isNaN(cursor) || l.data.n === 0 ? -1 : pointAt(l.data, cursor, l.holds);
            return i < 0 ? { t: NaN, v: NaN } : { t: l.data.t[i], v: l.data.low[i] };
        });
    }
    function yAxis(c, lines) {
        const range = [Infinity, -Infinity];
        for (const l of lines) { extent(l.data, view[0], view[1], range); }
        const [low, high] = airy(range[0], range[1], 0.06);
        return { low, high, whole: c.plot.kind === "integer" };
    }
    function chartOf(c, read, width, height) {
        const shown = c.lines.filter((l) => l.shown), states = isState(c.plot), series = look.series;
        const lines = states ? [] : shown.map((l) => ({
            data: l.data, colour: series[l.style.colour], width: l.style.width, dash: l.style.dash, faint: l.style.faint,
            steps: l.holds, dots: !l.line.band, line: l.line }));
        const low = lines.find((l) => l.line.band === "low"), high = lines.find((l) => l.line.band === "high");
        return { width, height, from: view[0], to: view[1], xUnit: "s", left: 64, names: 110, lines,
            axes: states ? [] : [yAxis(c, shown)], bands: low && high ? [[low, high]] : [], events: info.events.map(([t, kind]) => [t, look[kind] || look.mark]),
            states: states ? shown.map((l) => ({ name: l.name, data: l.data, textOf: c.text,
                                                 colourOf: (v) => stateColour(c.plot, l, v) })) : [],
            cursors: [{ t: cursor, colour: look.muted }], select: c.select,
            marks: states ? [] : c.lines.flatMap((l, i) => (l.shown && !l.line.band ? [{ ...read[i], colour: series[l.style.colour] }] : [])) };
    }
    function paint(c) {
        const width = widthOf(c), height = heightOf(c), read = readings(c);
        // At least two pixels per pixel: plots stay sharp on paper.
        c.shape = drawChart(beginCanvas(c.canvas, width, height, 2), chartOf(c, read, width, height), look);
        c.canvas.style.width = width + "px";
        c.canvas.style.height = height + "px";
        c.figure.shape = c.shape; // for tests and the curious
        c.stale = false;
        const known = read.filter((r) => !Number.isNaN(r.t)), near = (r) => Math.abs(r.t - cursor);
        const time = known.length ? known.reduce((a, b) => (near(b) < near(a) ? b : a)).t : NaN;
        c.time.textContent = Number.isNaN(time) ? "\u2013" : exact(time) + " s";
        c.lines.forEach((l, i) => {
            l.value.textContent = Number.isNaN(read[i].v) ? "\u2013" : c.text(read[i].v);
        });
    }
    let asked = 0;
    function repaint() { // soon, and only what is seen
        for (const c of drawn.values()) { c.stale = true; }
        asked = asked || setTimeout(() => {
            asked = 0;
            for (const c of drawn.values()) { if (c.stale && c.near && !c.figure.hidden) { paint(c); } }
        }, 0);
    }

    // Names in the legend are buttons: a click or the keyboard hides and shows a line. The marker
    // is drawn like the line.
    function legend(c) {
        const make = (tag, name, ...children) => {
            const e = document.createElement(tag);
            e.className = name;
            e.append(...children);
            return e;
        };
        const list = make("ul", "legend");
        c.time = make("span", "value", "\u2013");
        list.append(make("li", "time", make("span", "name", "time"), c.time));
        for (const l of c.lines) {
            const marker = make("i", l.style.dash.length ? "swatch dashed" : "swatch");
            marker.style.cssText = `--c:var(--s${l.style.colour});opacity:${l.style.faint}`;
            const button = make("button", "name", ...(c.plot.kind === "enumeration" ? [] : [marker]), l.name); // its values have colours
            button.type = "button";
            button.setAttribute("aria-pressed", "true");
            button.addEventListener("click", () => {
                l.shown = !l.shown;
                button.setAttribute("aria-pressed", String(l.shown));
                repaint();
            });
            l.value = make("span", "value", "\u2013");
            list.append(make("li", "series", button, l.value));
        }
        c.figure.append(list);
    }

    function resize() {
        for (const c of drawn.values()) { if (!c.figure.hidden) { paint(c); } }
    }

    // ---- the page

    const button = document.getElementById("theme");
    function setTheme(name, keep) {
        root.dataset.theme = name;
        if (keep) { try { localStorage.setItem("cardan-theme", name); } catch (e) { /* as it is */ } }
        button.textContent = name === "dark" ? "Light" : "Dark";
        button.setAttribute("aria-label", `Use the ${name === "dark" ? "light" : "dark"} theme`);
        button.setAttribute("aria-pressed", String(name === "dark"));
        readColours();
        repaint();
    }
    setTheme(root.dataset.theme || "light", false);
    button.hidden = false;
    button.addEventListener("click", () => setTheme(root.dataset.theme === "dark" ? "light" : "dark", true));

    const filter = document.getElementById("filter"), found = document.getElementById("found");
    function applyFilter() {
        const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
        let n = 0;
        for (const f of figures) {
            const text = `${f.dataset.names} ${f.querySelector("figcaption").textContent}`.toLowerCase();
            f.hidden = !words.every((w) => text.includes(w));
            n += !f.hidden;
        }
        document.querySelectorAll("h3.owner").forEach((h) => {
            let any = false;
            for (let e = h.nextElementSibling; e && e.matches("figure.plot"); e = e.nextElementSibling) {
                any = any || !e.hidden;
            }
            h.hidden = !any;
        });
        found.textContent = words.length ? `${n} of ${figures.length} plots` : "";
        resize();
    }
    if (filter) {
        filter.addEventListener("input", applyFilter);
        document.getElementById("reset").addEventListener("click", () => setView(whole[0], whole[1]));
    }

    // A plot is drawn when it comes near the window; all of them for paper.
    const watcher = new IntersectionObserver((entries) => {
        for (const e of entries) {
            if (e.isIntersecting) { draw(e.target); }
            const c = drawn.get(e.target);
            if (c) { c.near = e.isIntersecting; }
            if (c && c.near && c.stale) { paint(c); }
        }
    }, { rootMargin: "400px 0px" });
    for (const f of figures) { // what is in the window at once: not every surrounding has frames
        if (f.getBoundingClientRect().top < innerHeight + 400) {
            draw(f);
        } else {
            watcher.observe(f);
        }
    }

    let before = null, closed = [];
    addEventListener("beforeprint", () => {
        printing = true;
        before = root.dataset.theme;
        closed = Array.from(document.querySelectorAll("details:not([open])"));
        closed.forEach((d) => { d.open = true; });
        setTheme("light", false);
        figures.forEach(draw);
        resize();
    });
    addEventListener("afterprint", () => {
        printing = false;
        closed.forEach((d) => { d.open = false; });
        if (before) { setTheme(before, false); }
        resize();
    });
    let waiting = 0;
    addEventListener("resize", () => {
        cancelAnimationFrame(waiting);
        waiting = requestAnimationFrame(resize);
    });
    addEventListener("hashchange", () => {
        const name = location.hash.slice(1);
        if (name === "dark" || name === "light") { setTheme(name, false); }
    });
    root.dataset.ready = "yes";
})();
