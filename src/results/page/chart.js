// The drawing of pages: axes, lines, extremes of pixels, states, events and cursors.
//
// A chart is data: drawChart(pen, chart, look) draws it with a pen, which is a canvas' context or an
// SvgPen, and returns where things are. Nothing here knows a page.

const MINUS_SIGN = "\u2212", THIN_SPACE = "\u202f";

// ---- ticks -----------------------------------------------------------------------------------------

// Steps of 1, 2, 5 * 10^n; about `room` / `space` of them.
export function ticksOf(from, to, room, space, whole) {
    const span = to - from;
    if (!(span > 0) || !Number.isFinite(span)) { return { at: [from], step: 1 }; }
    const rough = span * (space / Math.max(room, space));
    let step = 10 ** Math.floor(Math.log10(rough));
    for (const k of [1, 2, 5, 10]) {
        if (step * k >= rough) { step *= k; break; }
    }
    if (whole && step < 1) { step = 1; }
    const at = [], first = Math.ceil(from / step - 1e-9);
    for (let i = 0; i < 1000 && (first + i) * step <= to + 1e-9 * span; i++) { at.push((first + i) * step); }
    return { at, step };
}
// As many digits as the step needs.
export function tickText(x, step) {
    const size = Math.max(Math.abs(x), step);
    if (Math.abs(x) < step * 1e-6) { return "0"; }
    if (size >= 1e6 || size < 1e-4) {
        const digits = Math.max(0, Math.min(12, Math.floor(Math.log10(Math.abs(x)) + 1e-9) - Math.floor(Math.log10(step) + 1e-9)));
        const far = x.toExponential(digits).replace("e+", "e"), plain = Math.abs(x) < 1e15 ? x.toFixed(Math.max(0, Math.min(12, -Math.floor(Math.log10(step) + 1e-9)))) : far;
        return (Math.abs(x) >= 1e6 && plain.length <= far.length ? plain : far).replace(/-/g, MINUS_SIGN);
    }
    const decimals = Math.max(0, Math.min(12, -Math.floor(Math.log10(step) + 1e-9)));
    return x.toFixed(decimals).replace("-", MINUS_SIGN);
}
function logTicks(low, high, room) { // decades of a scale that has logarithms
    const at = [], every = Math.max(1, Math.ceil((high - low) * 26 / Math.max(room, 26)));
    for (let k = Math.ceil(low); k <= high; k++) { if (k % every === 0) { at.push(k); } }
    return { at, step: 1 };
}
const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";
const powerText = (k) => "10" + (k < 0 ? "⁻" : "") + String(Math.abs(k)).replace(/\d/g, (d) => SUPERSCRIPTS[d]);

const LARGEST_DRAWN = 4e307; // differences to what is beyond are numbers, too
// A range with air around what is in it.
export function airy(low, high, share) {
    if (!(low <= high)) { return [0, 1]; }
    low = Math.max(-LARGEST_DRAWN, Math.min(LARGEST_DRAWN, low));
    high = Math.max(-LARGEST_DRAWN, Math.min(LARGEST_DRAWN, high));
    const size = Math.max(Math.abs(low), Math.abs(high));
    const air = high - low > 1e-12 * size ? (share || 0.07) * (high - low) : size > 0 ? 0.1 * size : 1;
    return [low - air, high + air];
}

// Least and largest value between two times: data = {t, low, high, n}, high is low for samples.
export function extent(data, from, to, into) {
    const a = Math.max(0, firstAtOrBehind(data.t, data.n, from) - 1), b = Math.min(data.n - 1, firstAtOrBehind(data.t, data.n, to));
    for (let i = a; i <= b; i++) {
        const low = data.low[i], high = data.high[i];
        if (low < into[0]) { into[0] = low; }
        if (high > into[1]) { into[1] = high; }
    }
    return into;
}
export function firstAtOrBehind(times, n, t) {
    let low = 0, high = n;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (times[middle] < t) { low = middle + 1; } else { high = middle; }
    }
    return low;
}

// ---- a pen that writes SVG -------------------------------------------------------------------------

const escapeXml = (s) => String(s).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", "\"": "&quot;" }[c]));
const short2 = (x) => String(Math.round(x * 100) / 100);
export class SvgPen {
    constructor(measure) { // a canvas' context, for the widths of texts
        this.measure = measure;
        this.parts = [];
        this.clips = 0;
        this.stack = [];
        Object.assign(this, { strokeStyle: "#000", fillStyle: "#000", lineWidth: 1, font: "12px sans-serif", textAlign: "left",
            textBaseline: "alphabetic", globalAlpha: 1, lineJoin: "miter", dash: [], d: "", open: 0, dx: 0, dy: 0 });
    }
    save() {
        const { strokeStyle, fillStyle, lineWidth, font, textAlign, textBaseline, globalAlpha, lineJoin, dash, open, dx, dy } = this;
        this.stack.push({ strokeStyle, fillStyle, lineWidth, font, textAlign, textBaseline, globalAlpha, lineJoin, dash, open, dx, dy });
        this.open = 0;
    }
    restore() {
        for (; this.open > 0; this.open--) { this.parts.push("</g>"); }
        Object.assign(this, this.stack.pop());
    }
    translate(x, y) { this.dx += x; this.dy += y; }
    setLineDash(dash) { this.dash = dash; }
    beginPath() { this.d = ""; }
    moveTo(x, y) { this.d += "M" + short2(x + this.dx) + " " + short2(y + this.dy); }
    lineTo(x, y) { this.d += "L" + short2(x + this.dx) + " " + short2(y + this.dy); }
    rect(x, y, w, h) { this.d += `M${short2(x + this.dx)} ${short2(y + this.dy)}h${short2(w)}v${short2(h)}h${short2(-w)}z`; }
    arc(x, y, r) { this.d += `M${short2(x + this.dx - r)} ${short2(y + this.dy)}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`; }
    closePath() { this.d += "z"; }
    clip() {
        const id = "c" + this.clips++;
        this.parts.push(`<clipPath id="${id}"><path d="${this.d}"/></clipPath><g clip-path="url(#${id})">`);
        this.open++;
    }
    faint() { return this.globalAlpha < 1 ? ` opacity="${this.globalAlpha}"` : ""; }
    stroke() {
        const dash = this.dash.length ? ` stroke-dasharray="${this.dash.join(" ")}"` : "";
        this.parts.push(`<path d="${this.d}" fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}" stroke-linejoin="${this.lineJoin}"${dash}${this.faint()}/>`);
    }
    fill() { this.parts.push(`<path d="${this.d}" fill="${this.fillStyle}"${this.faint()}/>`); }
    fillRect(x, y, w, h) {
        this.parts.push(`<rect x="${short2(x + this.dx)}" y="${short2(y + this.dy)}" width="${short2(Math.max(w, 0))}" height="${short2(Math.max(h, 0))}" fill="${this.fillStyle}"${this.faint()}/>`);
    }
    measureText(text) {
        this.measure.font = this.font;
        return this.measure.measureText(text);
    }
    fillText(text, x, y) {
        const anchor = { center: "middle", right: "end" }[this.textAlign] || "start";
        const size = parseFloat(this.font.match(/[\d.]+px/)[0]);
        const down = { top: 0.8, middle: 0.35 }[this.textBaseline] || 0;
        this.parts.push(`<text x="${short2(x + this.dx)}" y="${short2(y + this.dy + down * size)}" font-size="${size}" text-anchor="${anchor}" fill="${this.fillStyle}"${/^6/.test(this.font) ? " font-weight=\"600\"" : ""}${this.faint()}>${escapeXml(text)}</text>`);
    }
    text(width, height) {
        return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="system-ui, 'DejaVu Sans', sans-serif">\n${this.parts.join("\n")}\n</svg>\n`;
    }
}

// ---- lines -----------------------------------------------------------------------------------------

const WILD = 1e6; // px; what lies farther out is drawn there: canvases do not take any number
const tame = (y) => (y < -WILD ? -WILD : y > WILD ? WILD : y);

function samplePath(pen, s, xOf, yOf, a, b) {
    const { t, low } = s.data;
    let down = false, last = 0;
    for (let i = a; i <= b; i++) {
        const v = low[i];
        if (!(v === v)) { down = false; continue; }
        const x = xOf(t[i]), y = tame(yOf(v));
        if (!down) {
            pen.moveTo(x, y);
            if (i === b || low[i + 1] !== low[i + 1]) { pen.lineTo(x + 0.5, y); } // alone
        } else {
            if (s.steps) { pen.lineTo(x, last); }
            pen.lineTo(x, y);
        }
        down = true;
        last = y;
    }
    if (s.steps && down && s.until !== undefined) { pen.lineTo(xOf(s.until), last); }
}
function sampleDots(pen, s, xOf, yOf, a, b) {
    const { t, low } = s.data;
    pen.fillStyle = s.colour;
    pen.beginPath();
    for (let i = a; i <= b; i++) {
        if (low[i] === low[i]) { const x = xOf(t[i]), y = tame(yOf(low[i])); pen.moveTo(x + 2.5, y); pen.arc(x, y, 2.5, 0, 7); }
    }
    pen.fill();
}
function extremePath(pen, s, xOf, yOf, a, b) {
    const { t, low, high } = s.data;
    let down = false, last = 0;
    for (let i = a; i <= b; i++) {
        if (!(low[i] === low[i])) { down = false; continue; }
        const x = xOf(t[i]), y0 = tame(yOf(low[i])), y1 = tame(yOf(high[i]));
        const near = !down || Math.abs(last - y0) <= Math.abs(last - y1);
        if (down) { pen.lineTo(x, near ? y0 : y1); } else { pen.moveTo(x, y0); }
        if (Math.abs(y1 - y0) > 0.3) { pen.lineTo(x, near ? y1 : y0); } else if (!down) { pen.lineTo(x + 0.5, y0); }
        last = near ? y1 : y0;
        down = true;
    }
}
// Where pixels are full from low to high, rectangles cost a tenth of a line. Where they are not, rectangles are stairs.
const FULL = 40; // px from low to high, on average
function extremeColumns(pen, s, xOf, yOf, a, b, box) {
    const { t, low, high } = s.data, w = s.width || 1.5, top = box.top - 2, bottom = box.top + box.height + 2;
    pen.fillStyle = s.colour;
    let lastLow = NaN, lastHigh = NaN, x = xOf(t[a]);
    for (let i = a; i <= b; i++) {
        const next = i < b ? xOf(t[i + 1]) : x + 1;
        let y0 = yOf(high[i]), y1 = yOf(low[i]);
        if (y0 === y0) {
            const upper = y0, lower = y1;
            if (y0 > lastLow) { y0 = lastLow; } // touch the neighbour
            if (y1 < lastHigh) { y1 = lastHigh; }
            lastHigh = upper;
            lastLow = lower;
            y0 = Math.max(y0 - w / 2, top);
            y1 = Math.min(y1 + w / 2, bottom);
            if (y1 > y0) { pen.fillRect(x, y0, Math.max(1, Math.min(next - x, 4)), y1 - y0); }
        } else {
            lastLow = lastHigh = NaN;
        }
        x = next;
    }
}
function drawLine(pen, s, xOf, yOf, from, to, box) {
    const d = s.data;
    if (d.n === 0) { return; }
    const a = s.plain ? 0 : Math.max(0, firstAtOrBehind(d.t, d.n, from) - 1);
    const b = s.plain ? d.n - 1 : Math.min(d.n - 1, firstAtOrBehind(d.t, d.n, to));
    if (b < a) { return; }
    pen.globalAlpha = s.faint || 1;
    if (!d.samples && !(s.dash && s.dash.length)) {
        let heights = 0;
        for (let i = a; i <= b; i += 4) { const h = yOf(d.low[i]) - yOf(d.high[i]); if (h > 0) { heights += h; } }
        if (heights * 4 > FULL * (b - a + 1)) {
            extremeColumns(pen, s, xOf, yOf, a, b, box);
            pen.globalAlpha = 1;
            return;
        }
    }
    pen.strokeStyle = s.colour;
    pen.lineWidth = s.width || 1.5;
    pen.lineJoin = "bevel"; // round ones cost five times as much
    pen.setLineDash(s.dash || []);
    pen.beginPath();
    if (d.samples) { samplePath(pen, s, xOf, yOf, a, b); } else { extremePath(pen, s, xOf, yOf, a, b); }
    pen.stroke();
    pen.setLineDash([]);
    if (d.samples && s.dots && (b - a) * 7 < box.width) { sampleDots(pen, s, xOf, yOf, a, b); }
    pen.globalAlpha = 1;
}

// Between two lines: the bounds of an estimate.
function drawBand(pen, low, high, xOf, yOf) {
    const a = low.data, b = high.data;
    let begun = false;
    const to = (d, i) => {
        if (!(d.low[i] === d.low[i])) { return; }
        pen[begun ? "lineTo" : "moveTo"](xOf(d.t[i]), tame(yOf(d.low[i])));
        begun = true;
    };
    pen.beginPath();
    for (let i = 0; i < a.n; i++) { to(a, i); }
    for (let i = b.n - 1; i >= 0; i--) { to(b, i); }
    if (!begun) { return; }
    pen.closePath();
    pen.fillStyle = low.colour;
    pen.globalAlpha = 0.18;
    pen.fill();
    pen.globalAlpha = 1;
}

function drawBars(pen, s, xOf, yOf) { // t: edges (n + 1), low: heights (n)
    pen.fillStyle = s.colour;
    pen.globalAlpha = s.faint || 0.75;
    const base = yOf(0);
    for (let i = 0; i < s.data.n; i++) {
        const x0 = xOf(s.data.t[i]), x1 = xOf(s.data.t[i + 1]), y = yOf(s.data.low[i]);
        if (base - y > 0.05) { pen.fillRect(x0 + 0.5, y, Math.max(1, x1 - x0 - 1), base - y); }
    }
    pen.globalAlpha = 1;
}

// ---- states ----------------------------------------------------------------------------------------

export const STATE_HEIGHT = 22;
function drawStates(pen, s, xOf, y, from, to, box, look) {
    const d = s.data, h = STATE_HEIGHT - 6, right = box.left + box.width;
    pen.font = look.font;
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    pen.fillStyle = look.muted;
    pen.fillText(fit(pen, s.name, box.left - 12), box.left - 8, y + h / 2);
    if (d.n === 0) { return; }
    pen.save();
    pen.beginPath();
    pen.rect(box.left, y - 1, box.width, h + 2);
    pen.clip();
    pen.textAlign = "left";
    const a = Math.max(0, firstAtOrBehind(d.t, d.n, from) - 1), b = Math.min(d.n - 1, firstAtOrBehind(d.t, d.n, to));
    for (let i = a; i <= b;) {
        const mixed = d.low[i] !== d.high[i] && d.low[i] === d.low[i], v = d.low[i];
        let k = i + 1; // the same value goes on
        while (k <= b && (mixed ? d.low[k] !== d.high[k] && d.low[k] === d.low[k] : Object.is(d.low[k], v) && Object.is(d.high[k], v))) { k++; }
        const x0 = Math.max(box.left, xOf(d.t[i])), x1 = Math.min(right, k < d.n ? xOf(d.t[k]) : xOf(s.until === undefined ? d.t[d.n - 1] : s.until));
        if (v === v && x1 >= box.left && x0 <= right) { drawState(pen, s, mixed, v, x0, y, Math.max(x1 - x0, 0.75), h, look); }
        i = k;
    }
    pen.restore();
}
function drawState(pen, s, mixed, v, x, y, w, h, look) {
    const colour = mixed ? look.muted : s.colourOf(v);
    if (colour === null) { // false: a line
        pen.fillStyle = look.grid;
        pen.fillRect(x, y + h - 2, w, 2);
        return;
    }
    pen.fillStyle = colour;
    pen.globalAlpha = mixed ? 0.45 : 0.9;
    pen.fillRect(x, y, w, h);
    pen.globalAlpha = 1;
    if (w > 18 && !mixed) {
        pen.fillStyle = ink(colour);
        const text = fit(pen, s.textOf(v), w - 7, 3, false);
        if (text) { pen.fillText(text, x + 5, y + h / 2 + 0.5); }
        pen.fillStyle = look.panel;
        pen.fillRect(x, y, 1, h);
    }
}
// Black or white, whichever is easier to read on it (WCAG's luminance).
export function ink(colour) {
    const c = parseInt(colour.slice(1), 16);
    const l = [c >> 16, (c >> 8) & 255, c & 255].map((x) => (x / 255 <= 0.04045 ? x / 255 / 12.92 : ((x / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * l[0] + 0.7152 * l[1] + 0.0722 * l[2] > 0.179 ? "#000000" : "#ffffff";
}
// What of a text there is room for: the end of names, which tells them apart, and the beginning of states.
export function fit(pen, text, room, least = 2, end = true) {
    const part = (n) => (end ? "…" + text.slice(-n) : text.slice(0, n) + "…");
    if (pen.measureText(text).width <= room) { return text; }
    let n = text.length - 1;
    while (n >= least && pen.measureText(part(n)).width > room) { n--; }
    return n >= least ? part(n) : "";
}

// ---- the whole -------------------------------------------------------------------------------------

// chart = {width, height, from, to, xUnit, xTicks, axes: [{low, high, unit, log, whole, labels}], lines: [{axis, data:
// {t, low, high, n, samples}, colour, width, dash, steps, faint, dots, plain, bars}], states: [{name, data, colourOf, textOf, until}],
// bands: [[low, high]], events: [[t, colour]], cursors: [{t, colour, name}], marks: [{t, v, axis, colour}], select: [x0, x1],
// note, left: least room of the left axis, names: that of the names of states}
// look = {text, muted, grid, panel, accent, font}
export function layoutChart(pen, chart, look) {
    pen.font = look.font;
    const states = (chart.states || []).length * STATE_HEIGHT, lines = chart.axes.length > 0;
    const bottom = 24, top = 10;
    const height = Math.max(10, chart.height - top - bottom - states - (states && lines ? 6 : 0));
    const widths = chart.axes.map((axis) => {
        const at = axis.log ? logTicks(axis.low, axis.high, height) : axis.labels ? { at: axis.labels.map((l) => l[0]).filter((v) => v >= axis.low && v <= axis.high), step: 1 }
            : ticksOf(axis.low, axis.high, height, 30, axis.whole);
        axis.ticks = at.at;
        axis.texts = axis.labels ? axis.labels.filter((l) => l[0] >= axis.low && l[0] <= axis.high).map((l) => l[1])
            : at.at.map((v) => (axis.log ? powerText(v) : tickText(v, at.step)));
        return Math.min(130, Math.max(...axis.texts.map((s) => pen.measureText(s).width), axis.unit ? pen.measureText(axis.unit).width : 0, 0) + 16);
    });
    const least = states ? chart.names || 92 : chart.left || 48;
    const left = Math.round(Math.min(Math.max(least, widths[0] || 0), chart.width * 0.4)), right = Math.round(widths[1] || 16);
    const box = { left, top, width: Math.max(10, chart.width - left - right), height: lines ? height : 0 };
    box.states = top + (lines ? height + 6 : 0);
    box.bottom = box.states + states - (states ? 0 : lines ? 6 : 0);
    return box;
}

function drawAxes(pen, chart, look, box, xOf, yOf) {
    pen.lineWidth = 1;
    pen.strokeStyle = look.grid;
    pen.fillStyle = look.muted;
    pen.textBaseline = "middle";
    const x = ticksOf(chart.from, chart.to, box.width, 78);
    pen.beginPath();
    for (const t of x.at) {
        const at = Math.round(xOf(t)) + 0.5;
        pen.moveTo(at, box.top);
        pen.lineTo(at, box.bottom);
    }
    chart.axes.forEach((axis, k) => {
        for (const v of k === 0 ? axis.ticks : []) {
            const at = Math.round(yOf[0](v)) + 0.5;
            pen.moveTo(box.left, at);
            pen.lineTo(box.left + box.width, at);
        }
    });
    pen.stroke();
    pen.textAlign = "center";
    pen.textBaseline = "top";
    x.at.forEach((t, i) => {
        const text = (chart.xText || tickText)(t, x.step) + (i === x.at.length - 1 && chart.xUnit ? THIN_SPACE + chart.xUnit : "");
        const half = pen.measureText(text).width / 2, at = xOf(t);
        pen.fillText(text, Math.min(Math.max(at, half + 1), chart.width - half - 1), box.bottom + 7);
    });
    pen.textBaseline = "middle";
    chart.axes.forEach((axis, k) => {
        pen.textAlign = k ? "left" : "right";
        pen.fillStyle = axis.colour || look.muted;
        axis.ticks.forEach((v, i) => {
            const y = yOf[k](v);
            if (axis.unit && y < box.top + 17) { return; } // the unit stands there
            pen.fillText(fit(pen, axis.texts[i], 122), k ? box.left + box.width + 8 : box.left - 8, y);
        });
        if (axis.unit) {
            pen.font = "600 " + look.font;
            pen.fillText(axis.unit, k ? box.left + box.width + 8 : box.left - 8, box.top + 4);
            pen.font = look.font;
        }
    });
}

// Where events are dense there is a band.
function drawEvents(pen, chart, box, xOf) {
    const places = new Map();
    for (const [t, colour] of chart.events || []) {
        if (t < chart.from || t > chart.to) { continue; }
        if (!places.has(colour)) { places.set(colour, []); }
        places.get(colour).push(Math.round(xOf(t)) + 0.5);
    }
    pen.lineWidth = 1.25;
    for (const [colour, list] of places) {
        list.sort((a, b) => a - b);
        pen.strokeStyle = pen.fillStyle = colour;
        for (let first = 0, last = 0; first < list.length; first = ++last) {
            while (last + 1 < list.length && list[last + 1] - list[last] < 8) { last++; }
            pen.globalAlpha = 0.14;
            pen.fillRect(list[first], box.top, list[last] - list[first], box.bottom - box.top);
            pen.globalAlpha = 1;
            pen.setLineDash([3, 4]);
            pen.beginPath();
            for (const x of new Set([list[first], list[last]])) {
                pen.moveTo(x, box.top);
                pen.lineTo(x, box.bottom);
            }
            pen.stroke();
            pen.setLineDash([]);
        }
    }
}

function drawCursors(pen, chart, look, box, xOf) {
    pen.font = "600 " + look.font;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    for (const c of chart.cursors || []) {
        if (!(c.t >= chart.from && c.t <= chart.to)) { continue; }
        const x = Math.round(xOf(c.t)) + 0.5;
        pen.strokeStyle = pen.fillStyle = c.colour;
        pen.lineWidth = c.name ? 1.25 : 1;
        pen.beginPath();
        pen.moveTo(x, box.top);
        pen.lineTo(x, box.bottom);
        pen.stroke();
        if (c.name) {
            pen.fillRect(x - 8, box.top - 8, 16, 15);
            pen.fillStyle = ink(c.colour);
            pen.fillText(c.name, x, box.top);
        }
    }
    pen.font = look.font;
}

function drawMarks(pen, chart, look, xOf, yOf) { // points of lines that are read
    pen.lineWidth = 1.5;
    pen.strokeStyle = look.panel;
    for (const m of chart.marks || []) {
        if (!(m.t >= chart.from && m.t <= chart.to) || !(m.v === m.v)) { continue; }
        pen.fillStyle = m.colour;
        pen.beginPath();
        pen.arc(xOf(m.t), tame(yOf[m.axis || 0](m.v)), 4, 0, 7);
        pen.fill();
        pen.stroke();
    }
}

export function drawChart(pen, chart, look) {
    const box = layoutChart(pen, chart, look);
    const scale = box.width / (chart.to - chart.from), xOf = (t) => box.left + (t - chart.from) * scale;
    const yOf = chart.axes.map((axis) => {
        const k = box.height / (axis.high - axis.low), base = box.top + box.height;
        return axis.log ? (v) => base - (Math.log10(v) - axis.low) * k : (v) => base - (v - axis.low) * k;
    });
    const lin = chart.axes.map((axis, i) => (axis.log ? (v) => box.top + box.height - (v - axis.low) * box.height / (axis.high - axis.low) : yOf[i]));
    drawAxes(pen, chart, look, box, xOf, lin);
    pen.save();
    pen.beginPath();
    pen.rect(box.left, box.top - 1, box.width, box.bottom - box.top + 2);
    pen.clip();
    drawEvents(pen, chart, box, xOf);
    for (const [low, high] of chart.bands || []) { drawBand(pen, low, high, xOf, yOf[low.axis || 0]); }
    for (const s of chart.lines) {
        if (s.bars) { drawBars(pen, s, xOf, yOf[0]); } else { drawLine(pen, s, xOf, yOf[s.axis || 0], chart.from, chart.to, box); }
    }
    pen.restore();
    (chart.states || []).forEach((s, i) => drawStates(pen, s, xOf, box.states + i * STATE_HEIGHT + 3, chart.from, chart.to, box, look));
    if (chart.select) {
        pen.fillStyle = look.accent;
        pen.globalAlpha = 0.16;
        pen.fillRect(Math.min(...chart.select), box.top, Math.abs(chart.select[1] - chart.select[0]), box.bottom - box.top);
        pen.globalAlpha = 1;
    }
    drawCursors(pen, chart, look, box, xOf);
    drawMarks(pen, chart, look, xOf, yOf);
    if (chart.note) {
        pen.fillStyle = look.muted;
        pen.textAlign = "left";
        pen.textBaseline = "top";
        pen.fillText(fit(pen, chart.note, box.width - 12, 3, false), box.left + 6, box.top + 3);
    }
    box.xOf = xOf;
    box.tOf = (x) => chart.from + (x - box.left) / scale;
    box.yOf = yOf;
    return box;
}

// A canvas as sharp as its screen, or sharper; returns its context, in CSS pixels, empty.
export function beginCanvas(canvas, width, height, sharpness) {
    const ratio = Math.max(window.devicePixelRatio || 1, sharpness || 1), w = Math.round(width * ratio), h = Math.round(height * ratio);
    const pen = canvas.getContext("2d");
    if (canvas.width !== w || canvas.height !== h) {
        canvas.width = w;
        canvas.height = h;
    }
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    return pen;
}

// ---- hands -----------------------------------------------------------------------------------------

// On the canvas of a chart over time: dragging chooses a window, a double click shows all; arrows, plus, minus and 0 do
// the same. hands = {box() -> what drawChart returned, window() -> [from, to], hover(x or NaN), select([x0, x1] or null),
// show(from, to), all()}
export function takeHands(canvas, hands) {
    let down = NaN, moved = false;
    const at = (e) => {
        const box = hands.box();
        return Math.min(Math.max(e.clientX - canvas.getBoundingClientRect().left, box.left), box.left + box.width);
    };
    canvas.addEventListener("pointermove", (e) => hands.box() && hands.hover(at(e)));
    canvas.addEventListener("pointerleave", () => hands.hover(NaN));
    const move = (e) => {
        moved = moved || Math.abs(at(e) - down) > 4;
        if (moved) { hands.select([down, at(e)]); }
    };
    const up = (e) => {
        for (const [type, f] of [["pointermove", move], ["pointerup", up], ["pointercancel", up]]) { window.removeEventListener(type, f); }
        hands.select(null);
        if (moved && e.type === "pointerup") { hands.show(...[down, at(e)].sort((a, b) => a - b).map(hands.box().tOf)); }
    };
    canvas.addEventListener("pointerdown", (e) => {
        if (!hands.box() || e.button !== 0) { return; }
        down = at(e);
        moved = false;
        for (const [type, f] of [["pointermove", move], ["pointerup", up], ["pointercancel", up]]) { window.addEventListener(type, f); }
    });
    canvas.addEventListener("dblclick", hands.all);
    canvas.addEventListener("keydown", (e) => {
        const [a, b] = hands.window(), zoom = (k) => hands.show((a + b) / 2 - k * (b - a), (a + b) / 2 + k * (b - a));
        const keys = { ArrowLeft: () => hands.show(a - 0.1 * (b - a), b - 0.1 * (b - a)), ArrowRight: () => hands.show(a + 0.1 * (b - a), b + 0.1 * (b - a)),
            "+": () => zoom(0.35), "=": () => zoom(0.35), "-": () => zoom(0.5 / 0.7), 0: hands.all };
        if (e.ctrlKey || e.metaKey || e.altKey || !keys[e.key]) { return; }
        e.preventDefault();
        keys[e.key]();
    });
}
