// Plots of the report: reads the data inside the page, draws with uPlot.
// Lines of one plot have times of their own; they are put on one axis of times, where `undefined`
// means "this line has no point here" and `null` is a gap in the line.
"use strict";
(function () {
    const root = document.documentElement;
    const info = JSON.parse(document.getElementById("cardan").textContent);
    const figures = Array.from(document.querySelectorAll("figure.plot"));
    const drawn = new Map(); // figure -> uPlot
    let whole = [info.start, info.stop];
    if (whole[0] === null || whole[1] === null) { whole = [0, 1]; }
    if (!(whole[0] < whole[1])) { whole = [whole[0] - 0.5, whole[1] + 0.5]; }
    let view = whole.slice();
    let printing = false;

    const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
    let colours = {};
    function readColours() {
        colours = { series: [] };
        for (let i = 0; i < 8; i++) { colours.series.push(css("--s" + i)); }
        for (const name of ["text", "muted", "grid", "warning", "error", "overrun", "mark"]) {
            colours[name] = css("--" + name);
        }
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
        const values = new Float64Array(bytes.buffer, 0, n);
        const rest = bytes.slice(8 * n).buffer;
        if (!regular) { return { x: new Float64Array(rest), y: values }; }
        const rows = new Uint32Array(rest), x = new Float64Array(n);
        for (let i = 0; i < n; i++) { x[i] = line.t0 + rows[i] * line.dt; }
        return { x, y: values };
    }

    // One axis of times for several lines. A time that a line has twice (an event) stays twice.
    function join(lines) {
        const at = lines.map(() => 0), x = [], ys = lines.map(() => []);
        for (;;) {
            let t = Infinity;
            lines.forEach((l, k) => { if (at[k] < l.x.length && l.x[at[k]] < t) { t = l.x[at[k]]; } });
            if (t === Infinity) { break; }
            let most = 0;
            lines.forEach((l, k) => {
                let n = 0;
                while (at[k] < l.x.length && l.x[at[k]] === t) {
                    const v = l.y[at[k]++];
                    ys[k][x.length + n++] = Number.isFinite(v) ? v : null;
                }
                most = Math.max(most, n);
            });
            for (let n = 0; n < most; n++) { x.push(t); }
        }
        ys.forEach((y) => {
            y.length = x.length;
            for (let i = 0; i < y.length; i++) { if (!(i in y)) { y[i] = undefined; } }
        });
        return [x, ...ys];
    }

    // The point of a line at the cursor: the one before it where values hold, else the nearest.
    function pointAt(u, k, i, t, holds) {
        if (k === 0) { return i; }
        const x = u.data[0], y = u.data[k];
        let left = Math.min(i + 1, x.length - 1);
        while (left >= 0 && (y[left] === undefined || x[left] > t)) { left--; }
        let right = left + 1;
        while (right < x.length && y[right] === undefined) { right++; }
        if (left < 0) { return Math.min(right, x.length - 1); }
        if (right >= x.length || holds) { return left; }
        return t - x[left] <= x[right] - t ? left : right;
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

    function faded(colour, alpha) {
        if (alpha >= 1) { return colour; }
        const c = parseInt(colour.slice(1), 16);
        return `rgba(${c >> 16},${(c >> 8) & 255},${c & 255},${alpha})`;
    }

    // Vertical lines at warnings, errors, overruns and marks, behind the signals. Where they are
    // dense there is a band.
    function drawEvents(u) {
        const g = u.ctx, box = u.bbox, near = 8 * uPlot.pxRatio;
        const places = {};
        for (const [t, kind] of info.events) {
            if (t < u.scales.x.min || t > u.scales.x.max) { continue; }
            (places[kind] = places[kind] || []).push(Math.round(u.valToPos(t, "x", true)));
        }
        g.save();
        g.lineWidth = 2;
        g.setLineDash([4, 5]);
        for (const kind of Object.keys(places)) {
            const at = places[kind].sort((a, b) => a - b);
            g.strokeStyle = g.fillStyle = colours[kind] || colours.mark;
            for (let first = 0, last = 0; first < at.length; first = ++last) {
                while (last + 1 < at.length && at[last + 1] - at[last] < near) { last++; }
                g.globalAlpha = 0.16;
                g.fillRect(at[first], box.top, at[last] - at[first], box.height);
                g.globalAlpha = 1;
                g.beginPath();
                for (const x of new Set([at[first], at[last]])) {
                    g.moveTo(x, box.top);
                    g.lineTo(x, box.top + box.height);
                }
                g.stroke();
            }
        }
        g.restore();
    }

    // Between the bounds of an estimate.
    function bandsOf(plot, signals) {
        const bands = [];
        plot.lines.forEach((line, k) => {
            const low = plot.lines.findIndex((l) => l.band === "low" && l.run === line.run);
            if (line.band !== "high" || low < 0) { return; }
            const colour = styleOf(line, signals).colour;
            bands.push({ series: [k + 1, low + 1], fill: () => faded(colours.series[colour], 0.2) });
        });
        return bands;
    }

    function setView(min, max) {
        if (!(max > min)) { return; }
        view = [min, max];
        root.classList.toggle("zoomed", min > whole[0] || max < whole[1]);
        for (const u of drawn.values()) {
            if (u.scales.x.min !== min || u.scales.x.max !== max) { u.setScale("x", { min, max }); }
        }
    }

    function valuesOf(plot, data, signals) {
        const labels = new Map((plot.labels || []).map(([v, text]) => [v, text]));
        const lane = (line) => 1.6 * (signals - 1 - line.signal);
        if (plot.kind === "boolean") {
            plot.lines.forEach((line, k) => {
                data[k + 1] = data[k + 1].map((v) => (v === undefined || v === null ? v : v + lane(line)));
            });
            return { text: (line, v) => (v - lane(line) > 0.5 ? "true" : "false"), lane };
        }
        if (plot.kind === "enumeration") {
            return { text: (line, v) => labels.get(v) || brief(v), labels };
        }
        return { text: (line, v) => exact(v) };
    }

    function yAxis(plot, values, signals) {
        const axis = { stroke: () => colours.muted, grid: { stroke: () => colours.grid, width: 1 },
                       ticks: { stroke: () => colours.grid, width: 1, size: 5 },
                       font: "12px system-ui, sans-serif", gap: 6,
                       values: (u, at) => at.map((v) => (v === null ? "" : brief(v))) };
        if (plot.kind === "boolean") {
            const at = [];
            for (let k = 0; k < signals; k++) { at.push(1.6 * k, 1.6 * k + 1); }
            axis.splits = () => at;
            axis.values = (u, list) => list.map((v, i) => (i % 2 ? "true" : "false"));
        } else if (plot.kind === "enumeration") {
            const at = Array.from(values.labels.keys()).sort((a, b) => a - b);
            axis.splits = (u, k, min, max) => at.filter((v) => v >= min && v <= max);
            axis.values = (u, list) => list.map((v) => values.labels.get(v));
        } else if (plot.kind === "integer") {
            axis.incrs = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1e5, 1e6, 1e7, 1e8,
                          1e9, 1e12, 1e15, 1e18];
        }
        // As wide as its longest text.
        axis.size = (u, list) => {
            const longest = (list || []).reduce((n, v) => Math.max(n, String(v).length), 0);
            return Math.min(150, Math.max(64, 22 + 7 * longest));
        };
        return axis;
    }

    function yRange(plot, signals) {
        if (plot.kind === "boolean") { return () => [-0.25, 1.6 * (signals - 1) + 1.25]; }
        if (plot.kind === "enumeration") {
            return (u, min, max) => [(min === null ? 0 : min) - 0.4, (max === null ? 1 : max) + 0.4];
        }
        return (u, min, max) => {
            if (min === null || !Number.isFinite(min)) { return [0, 1]; }
            const size = Math.max(Math.abs(min), Math.abs(max));
            let air = 0.06 * (max - min);
            if (!(max - min > 1e-12 * size)) { air = size > 0 ? 0.1 * size : 1; }
            return [min - air, max + air];
        };
    }

    function widthOf(figure) {
        return Math.max(280, Math.floor(figure.querySelector(".chart").clientWidth));
    }

    function lanesOf(plot) {
        return Math.max(...plot.lines.map((l) => l.signal), 0) + 1;
    }
    function heightOf(plot) {
        return plot.kind === "boolean" ? 70 + 38 * lanesOf(plot) : 260;
    }

    function draw(figure) {
        if (drawn.has(figure)) { return; }
        const plot = info.plots[+figure.dataset.plot];
        const signals = new Set(plot.lines.map((l) => l.signal)).size;
        const data = join(plot.lines.map(decode));
        const lanes = lanesOf(plot);
        const values = valuesOf(plot, data, lanes);
        const holds = plot.kind !== "real";
        const series = plot.lines.map((line) => {
            const style = styleOf(line, signals);
            const run = info.runs[line.run];
            return {
                label: info.runs.length > 1
                    ? `${line.name} \u00B7 ${run.reference ? "reference " : ""}${run.label}` : line.name,
                stroke: () => faded(colours.series[style.colour], style.faint),
                width: style.width,
                dash: style.dash.length ? style.dash.map((n) => n * uPlot.pxRatio) : undefined,
                paths: holds ? uPlot.paths.stepped({ align: 1 }) : undefined,
                points: { show: data[0].length < 2 ? true : line.band ? false : undefined, size: 5 },
                value: (u, v, k, i) => (v === null || v === undefined || i === null
                    ? "\u2013" : values.text(line, v)),
                cardan: style,
            };
        });
        const axis = { stroke: () => colours.muted, grid: { stroke: () => colours.grid, width: 1 },
                       ticks: { stroke: () => colours.grid, width: 1, size: 5 },
                       font: "12px system-ui, sans-serif", size: 34, gap: 4,
                       values: (u, at) => at.map((t, i) =>
                           (t === null ? "" : brief(t) + (i === at.length - 1 ? " s" : ""))) };
        const u = new uPlot({
            width: widthOf(figure),
            height: heightOf(plot),
            padding: [8, 26, 0, 0],
            scales: { x: { time: false, range: (self, min, max) => [min, max] },
                      y: { range: yRange(plot, lanes) } },
            axes: [axis, yAxis(plot, values, lanes)],
            series: [{ label: "time", value: (self, t) => (t === null ? "\u2013" : exact(t) + " s") },
                     ...series],
            bands: bandsOf(plot, signals),
            legend: { markers: { width: 0, fill: () => "none" } },
            cursor: {
                drag: { x: true, y: false, dist: 4 },
                points: { size: 7 },
                sync: { key: "cardan", setSeries: false, scales: ["x", null],
                        filters: { pub: (type) => type === "mousemove" || type === "mouseleave" } },
                dataIdx: (self, k, i, t) => pointAt(self, k, i, t, holds),
                bind: { dblclick: () => () => { setView(whole[0], whole[1]); return null; } },
            },
            hooks: {
                drawAxes: [drawEvents],
                setScale: [(self, key) => {
                    if (key === "x") { setView(self.scales.x.min, self.scales.x.max); }
                }],
            },
        }, data, figure.querySelector(".chart"));
        drawn.set(figure, u);
        legend(u, plot, series);
        u.setScale("x", { min: view[0], max: view[1] });
        figure.classList.add("drawn");
    }

    // Names in the legend are buttons: a click or the keyboard hides and shows a line. The marker
    // is drawn like the line.
    function legend(u, plot, series) {
        const rows = u.root.querySelectorAll(".u-legend .u-series");
        rows.forEach((row, k) => {
            if (k === 0) { return; }
            const style = series[k - 1].cardan, marker = row.querySelector(".u-marker");
            if (marker) {
                marker.className = "u-marker swatch";
                marker.style.cssText = `--c:var(--s${style.colour});opacity:${style.faint}`;
                if (style.dash.length) { marker.classList.add("dashed"); }
            }
            const head = row.querySelector("th");
            head.tabIndex = 0;
            head.setAttribute("role", "button");
            head.setAttribute("aria-pressed", "true");
            const note = () => head.setAttribute("aria-pressed", String(u.series[k].show));
            head.addEventListener("click", () => setTimeout(note));
            head.addEventListener("keydown", (e) => {
                if (e.key !== "Enter" && e.key !== " ") { return; }
                e.preventDefault();
                u.setSeries(k, { show: !u.series[k].show });
                note();
            });
        });
    }

    function resize() {
        for (const [figure, u] of drawn) {
            if (figure.hidden) { continue; }
            const width = printing ? 680 : widthOf(figure);
            const plot = info.plots[+figure.dataset.plot], full = heightOf(plot);
            const height = printing && plot.kind !== "boolean" ? 205 : full;
            if (width !== u.width || height !== u.height) { u.setSize({ width, height }); }
        }
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
        for (const u of drawn.values()) { u.redraw(false, true); }
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
            if (e.isIntersecting) {
                draw(e.target);
                watcher.unobserve(e.target);
            }
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
