// A plot: lines over time and a legend with numbers. The data are ours, uPlot draws them.
/* global uPlot */
import { $, el, say } from "./dom.js";
import { DASH, NARROW, tick, timeTick, value } from "./numbers.js";
import { PACK, PACKED, SIZE, extremes, pair, ring } from "./samples.js";
import { nameOf, run } from "./state.js";
import { colours } from "./theme.js";
import { unzoom, view, zoomTo } from "./view.js";

const SYNC = "cardan";

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
        this.data = [[]];
        this.low = 0;
        this.high = 1;
        this.number = 0;
        this.plot = null;
        this.chart = el("div", { class: "chart" });
        this.unit = el("span", { class: "unit" });
        this.time = el("span", { class: "at" });
        this.list = el("ul", { class: "legend" });
        this.box = el("figure", { class: "card" },
            this.chart, el("figcaption", null, el("p", null, this.unit, this.time), this.list));
        this.observer = new ResizeObserver(() => this.resize());
        this.observer.observe(this.chart);
        this.seen = true;
        this.box.card = this;
        sight.observe(this.box);
        $("cards").append(this.box);
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
        if (this.plot) { this.plot.destroy(); }
        this.plot = null;
        this.box.remove();
        if (view.hover === this) { view.hover = null; }
    }
    resize() {
        const w = this.chart.clientWidth, h = this.chart.clientHeight;
        if (w < 40 || h < 40) { return; }
        if (!this.plot) {
            this.build(w, h);
        } else if (this.plot.width !== w || this.plot.height !== h) {
            this.plot.setSize({ width: w, height: h });
        }
        view.changed = true;
    }
    restyle() { // other lines or other colours: a new plot, the data are ours
        if (this.plot) {
            this.plot.destroy();
            this.plot = null;
        }
        this.resize();
        for (const row of this.list.children) {
            if (row.swatch) { row.swatch.style.background = colours.series[row.slot]; }
        }
        view.changed = true;
    }
    build(width, height) {
        const font = "12px " + getComputedStyle(document.body).fontFamily;
        const axis = {
            stroke: colours.muted, font, grid: { stroke: colours.grid, width: 1 },
            ticks: { show: false }, gap: 6,
        };
        const card = this;
        this.data = [[], ...this.signals.map(() => [])];
        this.plot = new uPlot({
            width, height, pxAlign: 1, legend: { show: false }, padding: [10, 18, 0, 0],
            cursor: {
                y: false, sync: { key: SYNC, scales: ["x", null], setSeries: false },
                drag: { x: true, y: false, setScale: false },
                points: { size: 7 },
                bind: { dblclick: () => () => { unzoom(); return null; } },
            },
            select: { show: true },
            scales: {
                x: { time: false, auto: false, range: () => [view.from, view.to] },
                y: { range: () => [card.low, card.high] },
            },
            axes: [
                Object.assign({ size: 24, space: 60, values: (u, ticks) => ticks.map(timeTick) }, axis),
                Object.assign({ size: 62, space: 28, values: (u, ticks) => ticks.map(tick) }, axis),
            ],
            series: [{}, ...this.signals.map((s, i) => ({
                label: s.name, stroke: colours.series[this.slots[i]], width: 1.75, spanGaps: false, pxAlign: 0,
                points: { show: false },
                paths: s.type === "real" ? undefined : uPlot.paths.stepped({ align: 1 }),
            }))],
            hooks: {
                drawAxes: [(u) => { u.ctx.lineJoin = "bevel"; }], // round ones cost five times as much
                setSelect: [(u) => {
                    const { left, width: w } = u.select;
                    if (w > 4) {
                        zoomTo(u.posToVal(left, "x"), u.posToVal(left + w, "x"));
                        u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
                    }
                }],
            },
        }, this.data, this.chart);
        this.plot.over.addEventListener("pointerenter", () => { view.hover = card; view.changed = true; });
        this.plot.over.addEventListener("pointerleave", () => {
            if (view.hover === card) { view.hover = null; }
            view.changed = true;
        });
    }
    legend(count_) { // of so many plots
        const units = [...new Set(this.signals.map((s) => s.unit || "1"))];
        say(this.unit, units.length === 1 && units[0] !== "1" ? units[0] : "");
        this.box.style.setProperty("--rows", this.signals.length);
        this.box.classList.toggle("crowded", this.signals.length > 5);
        this.box.setAttribute("aria-label", "Plot " + this.number);
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
    draw() {
        if (!this.plot || !this.seen) { return; }
        const u = this.plot, width = Math.max(50, u.bbox.width / devicePixelRatio);
        const oldest = ring.oldestRow();
        let first = Math.max(oldest, ring.rowAt(view.from) - 1), last = Math.min(ring.rows - 1, ring.rowAt(view.to));
        const x = this.data[0];
        const n = last - first + 1;
        if (n <= 0) {
            for (const column of this.data) { column.length = 0; }
        } else {
            let stride = 1;
            while (n / stride > (many() ? width / 2 : width)) { stride *= 2; }
            const packed = stride >= PACK, per = packed ? PACK / 2 : 1;
            const times = packed ? ring.packedTime : ring.time, mask = (packed ? PACKED : SIZE) - 1;
            if (packed) {
                first = Math.floor(first / PACK) * 2;
                last = Math.floor(last / PACK) * 2 + 1;
                stride /= per;
            }
            grid(times, mask, first, last, stride, x);
            this.signals.forEach((s, i) => {
                const samples = ring.signals.get(s.name);
                lines(samples ? (packed ? samples.m : samples.v) : null, mask, first, last, stride, this.data[i + 1], x.length);
            });
        }
        this.range();
        for (let k = 1; k < u.series.length; k++) { u.series[k].width = many() ? 1 : 1.75; }
        u.batch(() => {
            u.setData(this.data, false);
            u.setScale("x", { min: view.from, max: view.to });
        });
    }
    // The range follows at once when a line leaves it and comes back only when much is unused.
    range() {
        let low = Infinity, high = -Infinity;
        for (let k = 1; k < this.data.length; k++) {
            for (const y of this.data[k]) {
                if (y !== null) {
                    if (y < low) { low = y; }
                    if (y > high) { high = y; }
                }
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

// Points of a line: each row if there is room, else the extremes of `stride` rows; strides begin
// at multiples of themselves, so that what is drawn does not flicker while it moves.
function grid(times, mask, first, last, stride, out) {
    out.length = 0;
    if (stride === 1) {
        for (let i = first; i <= last; i++) { out.push(times[i & mask]); }
        return;
    }
    for (let b = first; b <= last; b = b - b % stride + stride) {
        const end = Math.min(b - b % stride + stride - 1, last);
        out.push(times[b & mask], times[end & mask]);
    }
}
function lines(v, mask, first, last, stride, out, length) {
    out.length = length;
    if (!v) {
        out.fill(null);
        return;
    }
    let k = 0;
    if (stride === 1) {
        for (let i = first; i <= last; i++) {
            const y = v[i & mask];
            out[k++] = Number.isFinite(y) ? y : null;
        }
        return;
    }
    for (let b = first; b <= last; b = b - b % stride + stride) {
        extremes(v, mask, b, Math.min(b - b % stride + stride - 1, last));
        out[k++] = Number.isFinite(pair[0]) ? pair[0] : null;
        out[k++] = Number.isFinite(pair[1]) ? pair[1] : null;
    }
}
