// The panel of real time: lateness and work of the cycles, counts, overruns.
import { $, el, say, show, svg } from "./dom.js";
import { DASH, NARROW, count, duration, exact } from "./numbers.js";
import { ended, now, run, unitName } from "./state.js";

let paceDrawn = 0, overrunsShown = "", notesShown = "";
export function refreshPace() {
    const p = run.status.pace;
    if (!p) { return; }
    const rate = p.factor === 1 ? "at real time" : "at " + exact(p.factor) + NARROW + "× real time";
    const every = p.period > 0 ? ", every " + duration(p.period) : "";
    say($("pace-word"), p.on ? rate + every : "not paced: as fast as possible");
    const quantiles = (row, q, on) => ["p50", "p99", "p9999", "max"].forEach((key, i) => {
        say(row.cells[i + 1], on && q && p.cycles > 0 ? duration(q[key]) : DASH);
    });
    quantiles($("q-late"), p.lateness, p.on);
    quantiles($("q-busy"), p.busy, true);
    if (now() - paceDrawn > 480 || ended()) {
        paceDrawn = now();
        drawHistograms(p);
        drawCounts(p);
    }
    const notes = JSON.stringify(p.notes || []);
    if (notes !== notesShown) {
        notesShown = notes;
        $("notes").replaceChildren(...(p.notes || []).map((n) => el("li", { text: n })));
    }
    const kept = JSON.stringify(p.kept || []);
    if (kept !== overrunsShown) {
        overrunsShown = kept;
        show($("overruns-title"), (p.kept || []).length > 0);
        $("overrun-list").tBodies[0].replaceChildren(...(p.kept || []).slice().reverse().map((o) => el("tr", null,
            el("td", { class: "r", text: exact(Number(o.time.toFixed(run.clockDigits))) + NARROW + "s" }),
            el("td", { class: "r", text: duration(o.late) + " late", title: "Cycle " + o.cycle }),
            el("td", { class: "r", text: duration(o.busy) + " busy" }),
            el("td", { text: unitName(o.unit) }))));
    }
}
function drawCounts(p) {
    const list = [
        ["Cycles", count(p.cycles)], ["Longest burst", p.on ? count(p.burst) : DASH], ["Skipped", p.on ? count(p.skipped) : DASH],
        ["Grid moved by", p.on ? duration(p.moved) : DASH],
        ["Page faults", count(p.minor_faults) + " minor, " + count(p.major_faults) + " major"],
        ["Context switches", count(p.voluntary) + " own, " + count(p.involuntary) + " forced"],
        ["Scheduling", [p.fifo ? "FIFO " + p.priority : "ordinary", p.pinned ? "CPU " + p.cpu : "",
            p.locked ? "memory locked" : ""].filter(Boolean).join(", ")],
        ["Clock set", count(p.clock_steps) + NARROW + "×"],
        ["Rows not shown", count(run.status.lost_rows)],
    ];
    const box = $("counts");
    if (box.children.length !== list.length) {
        box.replaceChildren(...list.map(() => el("div", null, el("dt"), el("dd"))));
    }
    list.forEach(([name, text], i) => {
        say(box.children[i].firstChild, name);
        say(box.children[i].lastChild, text);
    });
}
const next_ = (edge) => edge + 0.25e-9 * 2 ** Math.floor(Math.log2(edge * 1e9) + 1e-9); // end of a bucket
// Bars over the logarithm of the duration; heights are logarithms too, else the tail, which
// matters, could not be seen.
function drawHistograms(p) {
    const box = $("histograms"), width = box.clientWidth;
    if (width < 80) { return; }
    const sets = [["Lateness", p.on ? p.histogram.lateness || [] : [], "late"], ["Cycle time", p.histogram.busy || [], "busy"]];
    const filled = sets.filter((s) => s[1].length > 0);
    if (filled.length === 0) {
        box.replaceChildren();
        return;
    }
    let low = Infinity, high = 0;
    for (const [, list] of filled) {
        for (const [edge] of list) {
            if (edge > 0) { low = Math.min(low, edge); }
            high = Math.max(high, edge);
        }
    }
    if (p.period > 0) { high = Math.max(high, p.period * 1.1); }
    if (!(low < Infinity)) { low = 1e-7; }
    const a = Math.floor(Math.log10(low) + 1e-9), b = Math.max(a + 1, Math.ceil(Math.log10(Math.max(high, low) * 1.2)));
    const left = 2, right = width - 2, x = (s) => left + (right - left) * (Math.log10(Math.max(s, 10 ** a)) - a) / (b - a);
    const each = box.closest(".big") ? 150 : 62, top = 14, height = filled.length * (each + top) + 18;
    const what = filled.map((f) => f[0].toLowerCase()).join(" and ");
    const s = svg("svg", { width, height, role: "img", "aria-label": "Histograms of " + what });
    filled.forEach(([name, list, cls], k) => {
        const base = (k + 1) * (each + top);
        const most = Math.log10(1 + Math.max(...list.map((e) => e[1])));
        for (let d = a; d <= b; d++) {
            s.append(svg("path", { class: "tick", d: "M" + Math.round(x(10 ** d)) + ".5 " + (base - each) + "V" + base }));
        }
        let bars = "";
        for (const [edge, n] of list) {
            const x0 = x(edge), x1 = Math.max(x0 + 1, x(next_(Math.max(edge, 10 ** a))) - 0.5);
            const h = Math.max(1.5, (each - 4) * Math.log10(1 + n) / most);
            bars += "M" + x0.toFixed(1) + " " + base + "V" + (base - h).toFixed(1) + "H" + x1.toFixed(1) + "V" + base + "z";
        }
        s.append(svg("path", { class: "bars " + cls, d: bars }), svg("path", { class: "axis", d: "M0 " + (base + 0.5) + "H" + width }),
            svg("text", { class: "label", x: 2, y: base - each - 3, text: name }));
        if (k === 0) { s.append(svg("text", { class: "label end", x: width - 2, y: base - each - 3, text: "log of counts" })); }
        if (p.on && p.period > 0) {
            s.append(svg("path", { class: "period", d: "M" + x(p.period).toFixed(1) + " " + (base - each) + "V" + base }));
        }
    });
    for (let d = a; d <= b; d++) {
        const anchor = d === a ? "start" : d === b ? "end" : "middle";
        const crowded = (right - left) / (b - a) < 60; // those at the ends reach into their neighbours' room
        if (crowded && (d === a + 1 || d === b - 1)) { continue; }
        s.append(svg("text", { class: "label", x: x(10 ** d), y: height - 4, "text-anchor": anchor, text: duration(10 ** d, 1) }));
    }
    if (p.on && p.period > 0) {
        const at = x(p.period);
        s.append(svg("text", { class: "label period-word", x: at - 4, y: top + 10, "text-anchor": "end", text: "period" }));
    }
    box.replaceChildren(s);
}

export function redrawPace() { // at another size
    paceDrawn = 0;
    if (run.status) { refreshPace(); }
}
