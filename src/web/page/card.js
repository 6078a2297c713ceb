// A plot: lines over time and a legend with numbers.
import { beginCanvas, drawChart, takeHands } from "./chart.js";
import { $, el, say } from "./dom.js";
import { DASH, NARROW, value } from "./numbers.js";
import { PACK, PACKED, SIZE, extremes, pair, ring } from "./samples.js";
import { nameOf, run } from "./state.js";
import { chartLook, colours } from "./theme.js";
import { unzoom, view, zoomTo } from "./view.js";

const AXIS = 62; // px

// What is scrolled away or covered is not drawn.
const sight = new IntersectionObserver((list) => {
    for (const e of list) { e.target.card.seen = e.isIntersecting; }
    view.changed = true;
});

export class Card {
    constructor(signals, move) { // move(card, signal, where): the menu of a signal
        this.move = move;
        this.signals = signals;
        this.slots = signals.map((s, i) => i); // colour of each
        this.lines = [];  // {signal, data, ...} of drawChart, one per signal
        this.low = 0;
        this.high = 1;
        this.number = 0;
        this.shape = null; // where things were drawn
        this.select = null;
        this.canvas = el("canvas", { tabindex: "0", role: "img" });
        this.chart = el("div", { class: "chart" }, this.canvas);
        this.unit = el("span", { class: "unit" });
        this.time = el("span", { class: "at" });
        this.list = el("ul", { class: "legend" });
        this.box = el("figure", { class: "card" },
            this.chart, el("figcaption", null, el("p", null, this.unit, this.time), this.list));
        this.observer = new ResizeObserver(() => { view.changed = true; });
        this.observer.observe(this.chart);
        takeHands(this.canvas, {
            box: () => this.shape, window: () => [view.from, view.to], show: zoomTo, all: unzoom,
            hover: (x) => {
                view.hover = Number.isNaN(x) ? null : { card: this, x };
                view.changed = true;
            },
            select: (pixels) => {
                this.select = pixels;
                view.changed = true;
            },
        });
        this.seen = true;
        this.box.card = this;
        sight.observe(this.box);
        $("cards").append(this.box);
        this.restyle();
    }
    add(signal) {
        let slot = 0;
        while (this.slots.includes(slot)) { slot++; }
        this.signals.push(signal);
        this.slots.push(slot);
        this.restyle();
    }
    take(signal) {
        const i = this.signals.indexOf(signal);
        this.signals.splice(i, 1);
        this.slots.splice(i, 1);
        this.restyle();
    }
    remove() {
        this.observer.disconnect();
        sight.unobserve(this.box);
        this.box.remove();
        if (view.hover && view.hover.card === this) { view.hover = null; }
    }
    restyle() { // other lines or other colours
        this.lines = this.signals.map((signal, i) => ({
            signal, colour: colours.series[this.slots[i]], steps: signal.type !== "real",
            data: { t: new Float64Array(0), low: new Float64Array(0), high: new Float64Array(0), n: 0, samples: true },
        }));
        for (const row of this.list.children) {
            if (row.swatch) { row.swatch.style.background = colours.series[row.slot]; }
        }
        view.changed = true;
    }
    // The time under the pointer, wherever the plot has moved to meanwhile.
    timeAt(x) {
        return this.shape ? view.from + (x - this.shape.left) / this.shape.width * (view.to - view.from) : NaN;
    }
    legend(count_) { // of so many plots
        const units = [...new Set(this.signals.map((s) => s.unit || "1"))];
        say(this.unit, units.length === 1 && units[0] !== "1" ? units[0] : "");
        this.box.style.setProperty("--rows", this.signals.length);
        this.box.classList.toggle("crowded", this.signals.length > 5);
        this.box.setAttribute("aria-label", "Plot " + this.number);
        this.canvas.setAttribute("aria-label", this.signals.map((s) => s.name).join(", ") +
            ". Arrow keys move, plus and minus zoom, 0 shows the whole view.");
        const rows = this.signals.map((s, i) => {
            const swatch = el("i", { class: "swatch", "aria-hidden": "true" });
            swatch.style.background = colours.series[this.slots[i]];
            const number = el("output", { class: "number" });
            const menu = el("select", {
                class: "more", "aria-label": "Move " + s.name, title: "Move or remove",
                onchange: () => {
                    const where = menu.value;
                    menu.value = "";
                    this.move(this, s, where);
                },
            }, el("option", { value: "", text: "⋯" }), ...Array.from({ length: count_ }, (x, k) =>
                el("option", { value: k, text: "to plot " + (k + 1), disabled: k + 1 === this.number })),
            el("option", { value: "new", text: "to a new plot" }), el("option", { value: "remove", text: "remove" }));
            const row = el("li", null, swatch,
                nameOf(s), number,
                units.length > 1 ? el("span", { class: "unit", text: s.unit }) : null, menu);
            row.number = number;
            row.swatch = swatch;
            row.slot = this.slots[i];
            return row;
        });
        this.list.replaceChildren(...rows);
    }
    // Numbers beside the names: at the cursor if there is one, else the newest.
    values(row) {
        this.signals.forEach((s, i) => {
            const line = this.list.children[i], samples = ring.signals.get(s.name);
            if (!line || !line.number) { return; }
            if (!samples || ring.rows === 0) {
                say(line.number, DASH);
            } else {
                say(line.number, value(row < 0 ? samples.last : samples.v[row & (SIZE - 1)], s.type));
            }
        });
        say(this.time, row < 0 ? "" : "at " + ring.time[row & (SIZE - 1)].toFixed(run.clockDigits) + NARROW + "s");
    }
    draw(row) { // row: under the pointer, -1 none
        const width = this.chart.clientWidth, height = this.chart.clientHeight;
        if (!this.seen || width < 40 || height < 40) { return; }
        this.fill(Math.max(50, width - AXIS));
        this.range();
        const thin = many() ? 1 : 1.75, at = row < 0 ? NaN : ring.time[row & (SIZE - 1)];
        for (const line of this.lines) { line.width = thin; }
        this.shape = drawChart(beginCanvas(this.canvas, width, height), {
            width, height, left: AXIS, from: view.from, to: view.to, xUnit: "s", lines: this.lines, select: this.select,
            axes: [{ low: this.low, high: this.high, whole: this.signals.every((s) => s.type === "integer") }],
            cursors: [{ t: at, colour: colours.muted }],
            marks: this.lines.map((line) => ({ t: at, v: valueAt(line.signal, row), colour: line.colour })),
        }, chartLook());
        this.canvas.style.width = width + "px";
        this.canvas.style.height = height + "px";
    }
    fill(width) { // the lines' points: rows of the view, or extremes of several
        let first = Math.max(ring.oldestRow(), ring.rowAt(view.from) - 1), last = Math.min(ring.rows - 1, ring.rowAt(view.to));
        const n = last - first + 1;
        let stride = 1;
        while (n / stride > (many() ? width / 2 : width)) { stride *= 2; }
        const packed = stride >= PACK, per = packed ? PACK / 2 : 1;
        const times = packed ? ring.packedTime : ring.time, mask = (packed ? PACKED : SIZE) - 1;
        if (packed) {
            first = Math.floor(first / PACK) * 2;
            last = Math.floor(last / PACK) * 2 + 1;
            stride /= per;
        }
        const x = grid(times, mask, first, last, stride);
        for (const { signal, data } of this.lines) {
            const samples = ring.signals.get(signal.name);
            if (data.low.length < x.length) { data.low = data.high = new Float64Array(2 * x.length); }
            data.t = x;
            data.n = samples ? x.length : 0;
            if (samples) { points(packed ? samples.m : samples.v, mask, first, last, stride, data.low); }
        }
    }
    // The range follows at once when a line leaves it and comes back only when much is unused.
    range() {
        let low = Infinity, high = -Infinity;
        for (const { data } of this.lines) {
            for (let i = 0; i < data.n; i++) {
                const y = data.low[i];
                if (y < low) { low = y; }
                if (y > high) { high = y; }
            }
        }
        if (!(low <= high)) { low = this.low; high = this.high; if (!(low < high)) { low = 0; high = 1; } }
        const size = Math.max(Math.abs(low), Math.abs(high));
        if (high - low < 1e-9 * size || high === low) {
            const half = size > 0 ? 0.05 * size : 0.5;
            low -= half;
            high += half;
        }
        const span = high - low;
        if (low < this.low || high > this.high || span < 0.6 * (this.high - this.low)) {
            this.low = low - 0.08 * span;
            this.high = high + 0.08 * span;
        }
    }
}

// Many lines are drawn thin and with fewer points, for machines without a graphics card.
const many = () => ring.order.length > 12;

const valueAt = (signal, row) => (row >= 0 && ring.signals.has(signal.name) ? ring.signals.get(signal.name).v[row & (SIZE - 1)] : NaN);

// Points of a line: each row if there is room, else the extremes of `stride` rows; strides begin
// at multiples of themselves, so that what is drawn does not flicker while it moves.
function grid(times, mask, first, last, stride) {
    const out = [];
    if (stride === 1) {
        for (let i = first; i <= last; i++) { out.push(times[i & mask]); }
        return out;
    }
    for (let b = first; b <= last; b = b - b % stride + stride) {
        const end = Math.min(b - b % stride + stride - 1, last);
        out.push(times[b & mask], times[end & mask]);
    }
    return out;
}
const finite = (y) => (Number.isFinite(y) ? y : NaN);
function points(v, mask, first, last, stride, out) {
    let k = 0;
    if (stride === 1) {
        for (let i = first; i <= last; i++) { out[k++] = finite(v[i & mask]); }
        return;
    }
    for (let b = first; b <= last; b = b - b % stride + stride) {
        extremes(v, mask, b, Math.min(b - b % stride + stride - 1, last));
        out[k++] = finite(pair[0]);
        out[k++] = finite(pair[1]);
    }
}
