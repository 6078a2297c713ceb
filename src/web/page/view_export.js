// What is seen as a file: PNG, SVG, CSV.
import { SvgPen, drawChart } from "./chart.js";
import { el, tell } from "./dom.js";
import { chartLook } from "./theme.js";
import { viewer, windowOf } from "./view_state.js";

function saveAs(name, blob) {
    const a = el("a", { href: URL.createObjectURL(blob), download: name });
    a.click();
    setTimeout(() => URL.revokeObjectURL(a.href), 10000);
}
const stem = () => viewer.files[0].name.replace(/\.[^.]*$/, "");

const LEGEND_ROW = 20, GAP = 14, LEGEND_FONT = "600 12px sans-serif";
const ruler = document.createElement("canvas").getContext("2d");
// Names of lines from left to right, in as many rows as they need.
function legendOf(panel, width) {
    ruler.font = LEGEND_FONT;
    let x = 0, row = 0;
    const list = panel.lines().map((line) => {
        const text = (panel.diff ? "Δ " : "") + panel.nameOf(line) + panel.unitNote(line.entry), pen = panel.pen(line), wide = (pen ? 28 : 0) + ruler.measureText(text).width;
        if (x > 0 && x + wide > width) { x = 0; row++; }
        const place = { text, pen, x, y: (row + 0.5) * LEGEND_ROW };
        x += wide + 20;
        return place;
    });
    return { list, height: (row + 1) * LEGEND_ROW + 4 };
}
function sheet() { // panels below each other, as wide as the widest
    const list = viewer.panels.filter((p) => p.entries.length), width = Math.max(640, ...list.map((p) => p.place.clientWidth));
    let y = GAP;
    const places = list.map((panel) => {
        const h = Math.max(120, panel.height() || panel.place.clientHeight), at = y, legend = legendOf(panel, width - 8);
        y += legend.height + h + GAP;
        return { panel, y: at, h, legend };
    });
    return { places, width: width + 2 * GAP, height: y };
}
function drawSheet(pen, s) {
    const look = chartLook();
    pen.fillStyle = look.panel;
    pen.fillRect(0, 0, s.width, s.height);
    for (const { panel, y, h, legend } of s.places) {
        pen.save();
        pen.translate(GAP, y);
        pen.font = LEGEND_FONT;
        pen.textBaseline = "middle";
        pen.textAlign = "left";
        for (const l of legend.list) {
            if (l.pen) {
                pen.strokeStyle = l.pen.colour;
                pen.lineWidth = 3;
                pen.setLineDash(l.pen.dash);
                pen.beginPath();
                pen.moveTo(4 + l.x, l.y);
                pen.lineTo(24 + l.x, l.y);
                pen.stroke();
            }
            pen.fillStyle = look.text;
            pen.fillText(l.text, 4 + l.x + (l.pen ? 28 : 0), l.y);
        }
        pen.setLineDash([]);
        pen.translate(0, legend.height);
        const chart = panel.chart(s.width - 2 * GAP, h);
        chart.select = null;
        drawChart(pen, chart, look);
        pen.restore();
    }
}
export function savePng() {
    const s = sheet(), canvas = document.createElement("canvas"), ratio = 2;
    canvas.width = s.width * ratio;
    canvas.height = s.height * ratio;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    drawSheet(pen, s);
    canvas.toBlob((blob) => (blob ? saveAs(stem() + ".png", blob) : tell("The picture is too large for this browser.")));
}
export function saveSvg() {
    const s = sheet(), pen = new SvgPen(document.createElement("canvas").getContext("2d"));
    drawSheet(pen, s);
    saveAs(stem() + ".svg", new Blob([pen.text(s.width, s.height)], { type: "image/svg+xml" }));
}

// Samples of the window if they are not too many, else the extremes of pixels as they are drawn. A line per time;
// values of signals that have no sample then stay empty.
const MOST_ROWS = 1 << 17;
export async function saveCsv() {
    const columns = [];
    for (const panel of viewer.panels.filter((p) => p.kind === "time")) {
        const [from, to] = windowOf(panel);
        for (const l of panel.lines()) {
            const name = (panel.diff ? "difference of " : "") + l.entry.signal.name + (viewer.files.length > 1 ? " in " + l.file.name : "");
            const unit = panel.unitOf(l.entry), head = unit && unit !== "1" ? name + " [" + unit + "]" : name, c = l.conversion;
            if (columns.some((o) => o.head === head)) { continue; }
            const s = await viewer.source.rows(l.track, from, to, MOST_ROWS, false);
            if (s.all <= MOST_ROWS && !s.thinned) {
                columns.push({ head, t: s.t, v: s.low.map((x) => c.k * x + c.d) });
                continue;
            }
            const [e] = await viewer.source.look([l.track], from, to, 2000);
            columns.push({ head: head + " min", t: e.t, v: e.low.map((x) => c.k * x + c.d) }, { head: head + " max", t: e.t, v: e.high.map((x) => c.k * x + c.d) });
        }
    }
    if (columns.length === 0) { tell("There is no panel over time to be written."); return; }
    saveAs(stem() + ".csv", new Blob([csvOf(columns)], { type: "text/csv" }));
}
const quoted = (s) => (/[",\n]/.test(s) ? "\"" + s.replace(/"/g, "\"\"") + "\"" : s);
function csvOf(columns) {
    const at = columns.map(() => 0), lines = ["time," + columns.map((c) => quoted(c.head)).join(",")];
    for (;;) {
        let t = Infinity;
        columns.forEach((c, k) => { if (at[k] < c.t.length && c.t[at[k]] < t) { t = c.t[at[k]]; } });
        if (t === Infinity) { break; }
        lines.push(t + "," + columns.map((c, k) => {
            if (at[k] >= c.t.length || c.t[at[k]] !== t) { return ""; }
            const v = c.v[at[k]++];
            return Number.isFinite(v) ? String(v) : "NaN";
        }).join(","));
    }
    return lines.join("\n") + "\n";
}
