// A panel of the viewer: its signals, what is fetched for them, how it looks, what hands do with it.
import { SvgPen, STATE_HEIGHT, airy, beginCanvas, drawChart, extent, firstAtOrBehind, tickText } from "./chart.js";
import { $, el, say, show, tail } from "./dom.js";
import { DASH, NARROW, duration, figure, withUnit } from "./numbers.js";
import { chartLook, colours } from "./theme.js";
import { alike, between, conversion, convert, histogram, resample, spectrum } from "./view_math.js";
import { changed, clampWindow, holdsValue, isState, setWindow, showAll, viewer, windowOf } from "./view_state.js";

export const KINDS = [["time", "Time"], ["xy", "X-Y"], ["spectrum", "Spectrum"], ["histogram", "Histogram"]];
const DASHES = [[], [7, 4], [2, 3], [10, 3, 2, 3], [4, 2]];
const EVENT_COLOURS = { warning: "watch", overrun: "watch", error: "bad", mark: "accent" };
export const MOST_ENTRIES = 16;

const inSight = new IntersectionObserver((list) => {
    for (const e of list) { e.target.panel.seen = e.isIntersecting; }
    changed();
}, { rootMargin: "200px" });

export class Panel {
    constructor(actions) { // {remove, move, activate}
        this.actions = actions;
        this.kind = "time";
        this.diff = false;
        this.own = null;       // a window of its own
        this.entries = [];     // {signal, axis, unit, slot}
        this.strips = new Map(); // key of a track -> strip
        this.have = null;      // {from, to, density} that they were asked for
        this.seen = true;
        this.hover = NaN;
        this.select = null;
        this.readings = [];    // at the cursors, per line
        this.computed = null;  // of other kinds than time
        this.build();
    }
    build() {
        this.canvas = el("canvas", { tabindex: "0", role: "img" });
        this.place = el("div", { class: "plot" }, this.canvas);
        this.kindBox = el("select", { "aria-label": "What the panel shows", onchange: () => this.set({ kind: this.kindBox.value }) },
            ...KINDS.map(([value, text]) => el("option", { value, text })));
        this.diffBox = el("button", { type: "button", class: "quiet", "aria-pressed": "false", title: "Differences to the reference file",
            text: "Δ ref", onclick: () => this.set({ diff: !this.diff }) });
        this.ownBox = el("button", { type: "button", class: "quiet", "aria-pressed": "false", title: "A zoom of its own",
            text: "Own zoom", onclick: () => this.set({ own: this.own ? null : windowOf(null).slice() }) });
        this.titleBox = el("h3", { class: "panel-title" });
        this.legend = el("table", { class: "lines" });
        this.noteBox = el("p", { class: "note", role: "status" });
        this.box = el("figure", { class: "panel view-panel", tabindex: "-1" },
            el("div", { class: "head" }, this.titleBox, this.kindBox, this.diffBox, this.ownBox,
                el("button", { type: "button", class: "quiet close", "aria-label": "Close the panel", title: "Close the panel", text: "×",
                    onclick: () => this.actions.remove(this) })),
            el("div", { class: "legend-scroll" }, this.legend), this.place, this.noteBox);
        this.box.panel = this;
        this.resizer = new ResizeObserver(() => changed());
        this.resizer.observe(this.place);
        inSight.observe(this.box);
        this.box.addEventListener("focusin", () => this.actions.activate(this));
        this.box.addEventListener("pointerdown", () => this.actions.activate(this));
        this.hands();
    }
    destroy() {
        this.resizer.disconnect();
        inSight.unobserve(this.box);
        this.box.remove();
    }
    set(what) {
        Object.assign(this, what);
        this.computed = null;
        this.refresh();
    }
    refresh() { // after its signals or settings have changed
        this.kindBox.value = this.kind;
        this.diffBox.setAttribute("aria-pressed", String(this.diff));
        show(this.diffBox, viewer.files.length > 1);
        this.ownBox.setAttribute("aria-pressed", String(Boolean(this.own)));
        show(this.ownBox, this.kind === "time");
        this.readings = [];
        this.computed = null;
        this.legendRows = null;
        changed();
    }
    add(signal) {
        if (this.entries.some((e) => e.signal === signal)) { return true; }
        if (this.entries.length >= MOST_ENTRIES) { return false; }
        let slot = 0;
        while (this.entries.some((e) => e.slot === slot)) { slot++; }
        this.entries.push(Object.assign({ signal, unit: null, slot, axis: 0 }, this.placeOf(signal)));
        this.refresh();
        return true;
    }
    // A signal joins the axis whose unit of measure it can have, and gets that; a second unit has the right axis.
    placeOf(signal) {
        if (isState(signal)) { return {}; }
        const units = viewer.hello.units, plain = this.entries.filter((e) => !isState(e.signal));
        const on = [0, 1].map((k) => plain.find((e) => e.axis === k)), fits = on.map((e) => e && alike(units, e.signal.unit, signal.unit));
        const axis = fits[0] || !on[0] ? 0 : fits[1] || !on[1] ? 1 : 0;
        const unit = fits[axis] && (units[signal.unit] || []).find(([name]) => name === this.unitOf(on[axis]));
        return { axis, unit: unit && unit[0] !== signal.unit ? unit[0] : null };
    }
    // Of all signals at the axis that can have it.
    chooseUnit(entry, name) {
        for (const e of this.entries.filter((o) => o.axis === entry.axis && !isState(o.signal))) {
            if ((viewer.hello.units[e.signal.unit] || []).some(([n]) => n === name)) {
                e.unit = name === e.signal.unit ? null : name;
            }
        }
        this.refresh();
    }
    drop(entry) {
        this.entries.splice(this.entries.indexOf(entry), 1);
        this.refresh();
        if (this.entries.length === 0) { this.actions.remove(this); }
    }
    // Lines of the panel: an entry in every file that has it and is shown.
    lines() {
        const list = [], shown = viewer.files.filter((f) => f.shown);
        for (const entry of this.entries) {
            for (const f of shown) {
                const s = entry.signal.of[f.index];
                if (s < 0) { continue; }
                let track = [f.index, s];
                if (this.diff && viewer.files.length > 1) {
                    const r = entry.signal.of[viewer.reference];
                    if (f.index === viewer.reference || r < 0 || isState(entry.signal)) { continue; }
                    track = [f.index, s, viewer.reference, r];
                }
                list.push({ entry, file: f, track, key: track.join(","), conversion: conversion(viewer.hello.units,
                    entry.signal.units[f.index] || entry.signal.unit, entry.unit || entry.signal.unit, this.diff) });
            }
        }
        return list;
    }
    colour(line) {
        const alone = this.entries.length === 1 && viewer.files.length > 1;
        return colours.series[(alone ? line.file.index : line.entry.slot) % colours.series.length];
    }
    dash(line) { return this.entries.length === 1 ? [] : DASHES[line.file.index % DASHES.length]; }
    isX(line) { return this.kind === "xy" && line.entry === this.entries[0]; } // has no line of its own
    pen(line) { // how it is drawn: {colour, dash}, or null
        const bars = isState(line.entry.signal) && line.entry.signal.type !== "boolean" && !this.diff && this.kind === "time";
        return bars || this.isX(line) ? null : { colour: this.colour(line), dash: this.kind === "histogram" ? [] : this.dash(line) };
    }
    nameOf(line) {
        return line.entry.signal.name + (viewer.files.length > 1 ? " · " + line.file.name : "") + (this.isX(line) ? " (x)" : "");
    }
    unitOf(entry) { return entry.unit || entry.signal.unit; }
    unitNote(entry) { // in legends of pictures, where the axis cannot say it
        const unit = this.unitOf(entry), plain = this.entries.filter((e) => (this.kind !== "time" || e.axis === entry.axis) && !isState(e.signal));
        return unit && unit !== "1" && plain.some((e) => this.unitOf(e) !== unit) ? " [" + unit + "]" : "";
    }

    // ---- what is fetched

    width() { return Math.max(60, this.place.clientWidth); }
    wants() { // {lines, from, to, density} or null
        if (this.kind !== "time" || !this.seen || this.entries.length === 0) { return null; }
        const [from, to] = windowOf(this), density = this.width() / (to - from), h = this.have;
        const lines = this.lines().filter((l) => {
            const s = this.strips.get(l.key);
            if (!s || s.part < 1) { return true; }
            if (s.error) { return false; }
            const [a, b] = viewer.whole;
            const inside = h && Math.max(from, a) >= h.from - 1e-9 * (b - a) && Math.min(to, b) <= h.to + 1e-9 * (b - a);
            return !inside || (!s.samples && h.density < 0.8 * density) || h.density > 8 * density;
        });
        return lines.length ? { lines: this.lines(), from, to, density } : null;
    }
    take(lines, strips, asked) {
        const kept = new Map();
        lines.forEach((l, i) => kept.set(l.key, strips[i]));
        this.strips = kept;
        this.have = asked;
        changed();
    }
    shownStrip(line) {
        const s = this.strips.get(line.key);
        if (!s) { return null; }
        const c = line.conversion;
        if (!s.shown || s.shown.k !== c.k || s.shown.d !== c.d) { s.shown = { k: c.k, d: c.d, strip: convert(s, c) }; }
        return s.shown.strip;
    }
    // Other kinds than time look at samples of the window.
    async compute() {
        const [from, to] = windowOf(this), lines = this.lines(), key = [this.kind, from, to, lines.map((l) => l.key + l.conversion.k).join(";")].join("|");
        if (this.kind === "time" || (this.computed && this.computed.key === key) || this.computing) { return; }
        this.computing = true;
        try {
            const thin = this.kind === "xy", most = thin ? 20000 : 1 << 18, rows = [];
            for (const l of lines) {
                const s = await viewer.source.rows(l.track, from, to, most, thin);
                rows.push(Object.assign(convert(s, l.conversion), { all: s.all, thinned: s.thinned }));
            }
            this.computed = { key, lines, rows, made: this.make(lines, rows), note: this.sampleNote(rows, most, thin) };
        } catch (e) {
            this.computed = { key, lines: [], rows: [], made: null, note: e.message };
        }
        this.computing = false;
        changed();
    }
    sampleNote(rows, most, thin) {
        const longest = Math.max(0, ...rows.map((r) => r.all));
        if (rows.some((r) => r.thinned)) { return "of the extremes that this copy has, not of all samples"; }
        if (longest <= most) { return ""; }
        return thin ? "one sample in " + Math.ceil(longest / most) + " of " + longest
            : "of the " + most + " samples in the middle of " + longest + "; zoom in to see others";
    }
    make(lines, rows) {
        if (this.kind === "spectrum") {
            return lines.map((l, i) => ({ line: l, ...spectrum(rows[i].t, rows[i].low) })).filter((s) => s.f);
        }
        if (this.kind === "histogram") {
            const h = histogram(rows.map((r) => r.low), 60);
            return h && { lines, edges: h.edges, parts: h.parts };
        }
        const first = this.entries[0]; // x-y: the first signal is x
        return lines.flatMap((l, i) => {
            const x = lines.findIndex((o) => o.entry === first && o.file === l.file);
            if (l.entry === first || x < 0) { return []; }
            return [{ line: l, x: resample(rows[x], rows[i].t), y: rows[i].low }];
        });
    }

    // ---- how it looks

    chart(width, height) {
        return { time: () => this.timeChart(width, height), spectrum: () => this.spectrumChart(width, height),
            histogram: () => this.histogramChart(width, height), xy: () => this.xyChart(width, height) }[this.kind]();
    }
    timeChart(width, height) {
        const [from, to] = windowOf(this), ranges = [[Infinity, -Infinity], [Infinity, -Infinity]], lines = [], states = [];
        for (const l of this.lines()) {
            const s = this.shownStrip(l);
            if (!s) { continue; }
            if (isState(l.entry.signal) && !this.diff) {
                states.push(this.stateOf(l, s));
                continue;
            }
            extent(s, from, to, ranges[l.entry.axis]);
            lines.push({ axis: l.entry.axis, data: s, colour: this.colour(l), dash: this.dash(l), width: 1.6, steps: holdsValue(l.entry.signal),
                faint: l.file.index && this.entries.length > 1 ? 0.8 : 1, dots: true });
        }
        const second = lines.some((l) => l.axis === 1);
        const axes = lines.length || !states.length ? [this.axis(ranges[0], 0)] : [];
        if (second) { axes.push(this.axis(ranges[1], 1)); }
        return { width, height, from, to, xUnit: "s", left: 54, axes, lines, states, events: viewer.events ? this.events() : [],
            cursors: this.cursors(), select: this.select };
    }
    stateOf(l, s) {
        const signal = l.entry.signal, labels = signal.labels[l.file.index], texts = signal.texts[l.file.index];
        const several = viewer.files.filter((f) => f.shown).length > 1;
        const all = Array.from(new Set(signal.of.flatMap((s, i) => [...signal.labels[i].values(), ...signal.texts[i]]))); // a text has one colour
        return { name: several ? l.file.name : signal.name, data: s, until: viewer.whole[1],
            textOf: (v) => labels.get(v) || texts[v] || (signal.type === "boolean" ? (v ? "true" : "false") : String(v)),
            colourOf: (v) => {
                if (signal.type === "boolean") { return v ? this.colour(l) : null; }
                const k = all.indexOf(labels.get(v) || texts[v]);
                return colours.series[((k < 0 ? Math.abs(Math.round(v)) : k) + l.entry.slot) % colours.series.length];
            } };
    }
    axis(range, k) {
        const [low, high] = airy(range[0], range[1]), mine = this.entries.filter((e) => e.axis === k && !(isState(e.signal) && !this.diff));
        return { low, high, unit: this.commonUnit(mine), whole: mine.length > 0 && mine.every((e) => e.signal.type === "integer") };
    }
    commonUnit(entries) { // of an axis: none if there are several
        const units = new Set(entries.map((e) => this.unitOf(e)));
        return units.size === 1 ? [...units][0].replace(/^1$/, "") : "";
    }
    events() {
        return viewer.files.filter((f) => f.shown).flatMap((f) => f.events.filter((e) => EVENT_COLOURS[e[1]])
            .map(([t, kind]) => [t, colours[EVENT_COLOURS[kind]]]));
    }
    cursors() {
        const list = viewer.cursors.map((t, i) => ({ t, colour: i ? colours.fault : colours.accent, name: "AB"[i] })).filter((c) => !Number.isNaN(c.t));
        if (!Number.isNaN(viewer.hover)) { list.unshift({ t: viewer.hover, colour: colours.muted, name: "" }); }
        return list;
    }
    spectrumChart(width, height) {
        const made = (this.computed && this.computed.made) || [];
        let top = 0, last = 1;
        for (const s of made) { for (let i = 1; i < s.a.length; i++) { if (s.a[i] > top) { top = s.a[i]; } } last = Math.max(last === 1 ? 0 : last, s.f[s.f.length - 1]); }
        const high = top > 0 ? Math.ceil(Math.log10(top) + 0.05) : 0, low = high - 6, floor = 10 ** low;
        const lines = made.map((s) => {
            const v = s.a.map((x) => Math.max(x, floor * 0.5));
            return { axis: 0, data: { t: s.f.subarray(1), low: v.subarray(1), high: v.subarray(1), n: s.f.length - 1, samples: true },
                colour: this.colour(s.line), dash: this.dash(s.line), width: 1.5 };
        });
        return { width, height, from: 0, to: last || 1, xUnit: "Hz", left: 54, axes: [{ low, high, log: true, unit: this.commonUnit(this.entries) }], lines };
    }
    histogramChart(width, height) {
        const made = this.computed && this.computed.made;
        if (!made) { return { width, height, from: 0, to: 1, axes: [{ low: 0, high: 1, unit: "" }], lines: [] }; }
        const top = Math.max(0.01, ...made.parts.flatMap((p) => Array.from(p)));
        return { width, height, from: made.edges[0], to: made.edges[made.edges.length - 1], xUnit: this.commonUnit(this.entries), left: 54,
            axes: [{ low: 0, high: 108 * top, unit: "%" }],
            lines: made.lines.map((l, i) => ({ bars: true, data: { t: made.edges, low: made.parts[i].map((x) => 100 * x), n: made.parts[i].length },
                colour: this.colour(l), faint: made.lines.length > 1 ? 0.5 : 0.8 })) };
    }
    xyChart(width, height) {
        const made = (this.computed && this.computed.made) || [], x = [Infinity, -Infinity], y = [Infinity, -Infinity];
        for (const s of made) {
            for (let i = 0; i < s.x.length; i++) {
                if (s.x[i] < x[0]) { x[0] = s.x[i]; }
                if (s.x[i] > x[1]) { x[1] = s.x[i]; }
                if (s.y[i] < y[0]) { y[0] = s.y[i]; }
                if (s.y[i] > y[1]) { y[1] = s.y[i]; }
            }
        }
        const [from, to] = airy(x[0], x[1], 0.03), [low, high] = airy(y[0], y[1]), first = this.entries[0];
        return { width, height, from, to, xUnit: first ? this.unitOf(first) : "", left: 54,
            axes: [{ low, high, unit: this.commonUnit(this.entries.slice(1)) }],
            lines: made.map((s) => ({ plain: true, axis: 0, colour: this.colour(s.line), dash: this.dash(s.line), width: 1.4,
                data: { t: s.x, low: gaps(s.x, s.y), high: s.y, n: s.x.length, samples: true } })) };
    }
    height() { // states alone need little
        const lines = this.lines();
        if (this.kind === "time" && lines.length && !this.diff && lines.every((l) => isState(l.entry.signal))) { return 40 + STATE_HEIGHT * lines.length; }
        return 0;
    }
    draw() {
        const fixed = this.height();
        this.place.style.height = fixed ? fixed + "px" : "";
        this.place.classList.toggle("fixed", fixed > 0);
        if (!this.seen) { return; }
        const width = this.place.clientWidth, height = this.place.clientHeight;
        if (width < 40 || height < 30) { return; }
        this.shape = drawChart(beginCanvas(this.canvas, width, height), this.chart(width, height), chartLook());
        this.canvas.style.width = width + "px";
        this.canvas.style.height = height + "px";
        this.tell();
    }
    picture(measure, width, height) { // the panel as SVG parts
        const pen = new SvgPen(measure);
        drawChart(pen, this.chart(width, height), chartLook());
        return pen;
    }

    // ---- legend

    title() {
        const names = this.entries.map((e) => e.signal.name);
        return (this.diff ? "Δ " : "") + (names.length > 3 ? names.slice(0, 3).join(", ") + " …" : this.kind === "xy" && names.length > 1
            ? names.slice(1).join(", ") + " over " + names[0] : names.join(", "));
    }
    tell() {
        const lines = this.lines(), key = lines.map((l) => l.key + (l.entry.unit || "") + l.entry.axis + l.file.name).join("|") + this.kind;
        if (this.legendKey !== key || !this.legendRows) { this.buildLegend(lines); this.legendKey = key; }
        say(this.titleBox, this.title());
        this.titleBox.title = this.title();
        this.canvas.setAttribute("aria-label", this.title() + ". Arrow keys move, plus and minus zoom, 0 shows all, A and B set cursors.");
        lines.forEach((l, i) => this.legendRows[i] && this.tellRow(this.legendRows[i], l));
        const strips = lines.map((l) => this.strips.get(l.key)), error = strips.find((s) => s && s.error);
        const part = Math.min(1, ...strips.map((s) => (s ? s.part : 0)));
        let note = this.entries.length ? "" : "Drop signals here.";
        if (this.kind === "time" && error) { note = error.error; }
        if (this.kind === "time" && !error && lines.length && part < 1) { note = "preview: " + Math.floor(100 * part) + NARROW + "% read, peaks may be missing"; }
        if (this.kind !== "time" && this.computed) { note = this.computed.note; }
        if (this.kind === "xy" && this.entries.length < 2) { note = "X-Y needs a second signal: the first one is x."; }
        if (this.diff && lines.length === 0) { note = "There is no other file with these signals to be compared with the reference."; }
        say(this.noteBox, note);
        show(this.noteBox, note !== "");
    }
    buildLegend(lines) {
        const both = viewer.cursors.every((t) => !Number.isNaN(t)), any = viewer.cursors.some((t) => !Number.isNaN(t));
        const heads = ["", "", "", ...(this.kind === "time" ? [any ? "A" : "", any ? "B" : "", both ? "B " + DASH + " A" : "", both ? "slope" : ""] : []), ""];
        this.legendRows = lines.map((l) => this.buildRow(l));
        const head = any && this.kind === "time" ? [el("thead", null, el("tr", null, ...heads.map((text) => el("th", { text, scope: "col" }))))] : [];
        this.legend.replaceChildren(...head, el("tbody", null, ...this.legendRows.map((r) => r.row)));
    }
    buildRow(l) {
        const e = l.entry, options = viewer.hello.units[e.signal.unit] || [];
        const swatch = el("i", { class: "swatch", "aria-hidden": "true" });
        const unit = options.length > 1 ? el("select", { class: "unit-choice", "aria-label": "Unit of " + e.signal.name, onchange: () => {
            this.chooseUnit(e, unit.value);
        } }, ...options.map(([name]) => el("option", { value: name, text: name }))) : el("span", { class: "unit", text: e.signal.unit === "1" ? "" : e.signal.unit });
        if (options.length > 1) { unit.value = this.unitOf(e); }
        const cells = Array.from({ length: 4 }, () => el("td", { class: "number" }));
        const menu = el("select", { class: "more", "aria-label": "More for " + e.signal.name, title: "More", onchange: () => {
            const what = menu.value;
            menu.value = "";
            if (what === "axis") { e.axis = 1 - e.axis; this.refresh(); }
            if (what === "remove") { this.drop(e); }
            if (what === "new") { this.drop(e); this.actions.move(e.signal); }
        } }, el("option", { value: "", text: "⋯" }), el("option", { value: "axis", text: e.axis ? "to the left axis" : "to the right axis" }),
        el("option", { value: "new", text: "to a new panel" }), el("option", { value: "remove", text: "remove" }));
        const name = this.nameOf(l);
        const hover = el("td", { class: "number now" });
        const row = el("tr", { draggable: "true", ondragstart: (x) => { x.dataTransfer.setData("text/x-cardan", JSON.stringify([e.signal.name])); x.dataTransfer.effectAllowed = "copy"; } },
            el("th", { scope: "row", title: name + (e.signal.description ? "\n" + e.signal.description : "") }, swatch, tail("name", name), e.axis && this.kind === "time" ? el("span", { class: "unit", text: " ▸" }) : null),
            el("td", null, unit), hover, ...(this.kind === "time" ? cells : []), el("td", null, menu));
        return { row, cells, hover, swatch };
    }
    tellRow(r, l) {
        r.swatch.style.background = swatch(this.pen(l));
        if (this.kind !== "time") { return; }
        say(r.hover, Number.isNaN(viewer.hover) ? "" : this.textAt(l, viewer.hover));
        const given = this.readings.find((x) => x.key === l.key), v = [NaN, NaN];
        [0, 1].forEach((i) => {
            const t = viewer.cursors[i], sides = given && given.at[i];
            if (Number.isNaN(t) || !sides) { say(r.cells[i], Number.isNaN(t) ? "" : DASH); return; }
            const [t0, , t1] = sides;
            if (given.times[i] !== t && !(t0 !== null && t1 !== null && t >= t0 && t <= t1)) { say(r.cells[i], "…"); return; } // of another time
            const raw = between(sides, t, holdsValue(l.entry.signal));
            v[i] = raw * l.conversion.k + l.conversion.d;
            say(r.cells[i], this.valueText(l, v[i]));
        });
        const [a, b] = viewer.cursors, unit = this.unitOf(l.entry), fine = !isState(l.entry.signal) && !Number.isNaN(v[0]) && !Number.isNaN(v[1]);
        say(r.cells[2], fine ? figure(v[1] - v[0], 5) : "");
        say(r.cells[3], fine && a !== b ? withUnit(figure((v[1] - v[0]) / (b - a), 4), (unit && unit !== "1" ? unit : "1") + "/s") : "");
    }
    valueText(l, v) {
        const s = l.entry.signal;
        if (Number.isNaN(v)) { return DASH; }
        if (isState(s) && !this.diff) { return this.stateOf(l, null).textOf(v); }
        return figure(v, 6);
    }
    textAt(l, t) { // of what is drawn: where pixels have several samples, from to
        const s = this.shownStrip(l);
        if (!s || s.n === 0) { return DASH; }
        const k = firstAtOrBehind(s.t, s.n, t), i = k < s.n && s.t[k] === t ? k : k - 1;
        if (i < 0 || (i === s.n - 1 && s.samples && t > s.t[i] && !holdsValue(l.entry.signal))) { return DASH; }
        if (s.samples && !holdsValue(l.entry.signal) && i + 1 < s.n) {
            return this.valueText(l, between([s.t[i], s.low[i], s.t[i + 1], s.low[i + 1]], t, false));
        }
        return s.low[i] === s.high[i] ? this.valueText(l, s.low[i]) : this.valueText(l, s.low[i]) + " … " + this.valueText(l, s.high[i]);
    }

    // ---- hands

    at(e) { return e.clientX - this.canvas.getBoundingClientRect().left; }
    zoomAt(t, factor) {
        const [a, b] = windowOf(this);
        setWindow(this, t - (t - a) * factor, t + (b - t) * factor);
    }
    pan(share) {
        const [a, b] = windowOf(this), d = share * (b - a), [c, e] = clampWindow(a + d, b + d);
        setWindow(this, c, e);
    }
    hands() {
        let down = null;
        const c = this.canvas;
        c.addEventListener("wheel", (e) => {
            if (!this.shape || this.kind !== "time") { return; }
            e.preventDefault();
            if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) { this.pan((e.deltaX || e.deltaY) / 1000); return; }
            this.zoomAt(this.shape.tOf(this.at(e)), 1.0015 ** Math.max(-400, Math.min(400, e.deltaY)));
        }, { passive: false });
        c.addEventListener("pointerdown", (e) => {
            if (!this.shape || this.kind !== "time" || e.button > 1) { return; }
            const x = this.at(e), near = viewer.cursors.findIndex((t) => !Number.isNaN(t) && Math.abs(this.shape.xOf(t) - x) < 6);
            const way = near >= 0 ? "cursor" : e.pointerType === "touch" || e.shiftKey || e.button === 1 ? "pan" : "zoom";
            down = { x, way, near, window: windowOf(this).slice(), moved: false };
            c.setPointerCapture(e.pointerId);
        });
        c.addEventListener("pointermove", (e) => {
            if (!this.shape || this.kind !== "time") { return; }
            const x = this.at(e), t = this.shape.tOf(x);
            viewer.hover = x >= this.shape.left && x <= this.shape.left + this.shape.width ? t : NaN;
            if (down && Math.abs(x - down.x) > 4) { down.moved = true; }
            if (down && down.way === "cursor") { viewer.cursors[down.near] = t; this.actions.cursor(); }
            if (down && down.moved && down.way === "pan") {
                const [a, b] = down.window, d = (down.x - x) * (b - a) / this.shape.width;
                setWindow(this, ...clampWindow(a + d, b + d));
            }
            this.select = down && down.moved && down.way === "zoom" ? [down.x, x] : null;
            changed();
        });
        const up = (e) => {
            if (!down) { return; }
            const x = this.at(e), select = this.select, was = down;
            down = this.select = null;
            if (select && e.type === "pointerup") { setWindow(this, this.shape.tOf(Math.min(...select)), this.shape.tOf(Math.max(...select))); }
            if (!was.moved && was.way !== "cursor" && e.type === "pointerup") { this.actions.cursor(this.shape.tOf(x), e.altKey || e.ctrlKey || e.shiftKey ? 1 : 0); }
            changed();
        };
        c.addEventListener("pointerup", up);
        c.addEventListener("pointercancel", up);
        c.addEventListener("pointerleave", () => { viewer.hover = NaN; changed(); });
        c.addEventListener("dblclick", () => showAll(this));
        c.addEventListener("keydown", (e) => this.key(e));
    }
    key(e) {
        const [a, b] = windowOf(this), i = e.shiftKey ? 1 : 0;
        const keys = { ArrowLeft: () => this.pan(-0.1), ArrowRight: () => this.pan(0.1), "+": () => this.zoomAt((a + b) / 2, 0.7), "=": () => this.zoomAt((a + b) / 2, 0.7),
            "-": () => this.zoomAt((a + b) / 2, 1 / 0.7), 0: () => showAll(this), Home: () => setWindow(this, viewer.whole[0], viewer.whole[0] + b - a),
            End: () => setWindow(this, viewer.whole[1] - (b - a), viewer.whole[1]),
            a: () => this.actions.cursor((a + b) / 2, 0), b: () => this.actions.cursor((a + b) / 2, 1), Delete: () => this.actions.remove(this) };
        if (e.altKey && (e.key === "ArrowLeft" || e.key === "ArrowRight")) { // the cursor, pixel by pixel
            const t = Number.isNaN(viewer.cursors[i]) ? (a + b) / 2 : viewer.cursors[i];
            this.actions.cursor(t + (e.key === "ArrowLeft" ? -1 : 1) * 2 * (b - a) / this.width(), i);
            e.preventDefault();
            return;
        }
        const f = !e.ctrlKey && !e.metaKey && keys[e.key.length === 1 ? e.key.toLowerCase() : e.key];
        if (f) { e.preventDefault(); f(); }
    }
    store() {
        return { kind: this.kind, diff: this.diff, own: this.own, signals: this.entries.map((e) => ({ name: e.signal.name, axis: e.axis, unit: e.unit })) };
    }
}
// A line as the background of a small box: what is dashed in the plot is dashed here.
function swatch(pen) {
    if (!pen || !pen.dash.length) { return pen ? pen.colour : "none"; }
    let x = 0;
    const stops = pen.dash.map((d, i) => { const from = x; x += d; return (i % 2 ? "transparent " : pen.colour + " ") + from + "px " + x + "px"; });
    return "repeating-linear-gradient(90deg, " + stops.join(", ") + ")";
}
const gaps = (x, y) => y.map((v, i) => (Number.isFinite(x[i]) ? v : NaN));
export const timeText = (t, span) => (Number.isNaN(t) ? DASH : tickText(t, (span || viewer.to - viewer.from) / 2000) + NARROW + "s");
export const spanText = (t) => duration(t, 4);
export const panelBox = () => $("panels");
