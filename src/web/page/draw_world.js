// Boxes and wires: where they are, what they look like, which part of it is in sight.
import { arrange } from "./arrange.js";
import { beginCanvas } from "./chart.js";
import { $, el, mark, say, show } from "./dom.js";
import { model } from "./draw_model.js";
import { colours } from "./theme.js";

const ROW = 25, HEAD = 46, END = 8, GAP = 150, BELOW = 26;
const ruler = document.createElement("canvas").getContext("2d");
const widthOf = (text, font) => { ruler.font = font; return ruler.measureText(text).width; };

export const camera = { x: 0, y: 0, k: 1 };

// ---- places ----------------------------------------------------------------------------------------

function sizeOf(u) {
    const family = getComputedStyle(document.body).fontFamily, small = "13px " + family;
    const widest = (list) => Math.min(190, Math.max(0, ...list.map((p) => widthOf(p.name, small) + (p.measure ? 6 + widthOf(p.measure, small) : 0))));
    const ports = widest(u.left) + widest(u.right) + 12 + 36 * ((u.left.length > 0) + (u.right.length > 0));
    u.w = Math.round(Math.min(420, Math.max(170, ports, widthOf(u.name, "600 15px " + family) + 60)));
}
const heightOf = (u) => (u.open ? HEAD + Math.max(u.left.length, u.right.length) * ROW + END : HEAD);

// Layers by what feeds what, cut into columns that are not too high; whoever is alone stands behind.
export function placeAll() {
    const units = model.units, lines = model.wires.concat(model.looks);
    units.forEach(sizeOf);
    const plan = arrange(units, lines.map((l) => ({ from_unit: l.from.unit.index, to_unit: l.to.unit.index })), { pitch: ROW });
    const area = units.reduce((sum, u) => sum + (u.w + GAP) * (heightOf(u) + BELOW), 0), most = Math.max(640, Math.sqrt(area) * 0.8);
    const layers = plan.layers.filter(Boolean).map((layer) => layer.filter((v) => v.unit >= 0).map((v) => units[v.unit]));
    model.columns = [];
    for (const layer of [...layers, plan.alone.map((i) => units[i])]) {
        let column = null, high = 0;
        for (const u of layer) {
            if (!column || high + heightOf(u) > most) {
                column = [];
                high = 0;
                model.columns.push(column);
            }
            column.push(u);
            high += heightOf(u) + BELOW;
        }
    }
    stack();
}
// Heights have changed: the order stays.
export function stack() {
    let x = 0;
    for (const column of model.columns) {
        const w = Math.max(...column.map((u) => u.w)), high = column.reduce((sum, u) => sum + heightOf(u) + BELOW, -BELOW);
        let y = -high / 2;
        for (const u of column) {
            Object.assign(u, { x: Math.round(x + (w - u.w) / 2), y: Math.round(y), h: heightOf(u) });
            u.left.forEach((p, i) => { p.x = u.x; p.y = u.y + (u.open ? HEAD + (i + 0.5) * ROW : HEAD / 2); });
            u.right.forEach((p, i) => { p.x = u.x + u.w; p.y = u.y + (u.open ? HEAD + (i + 0.5) * ROW : HEAD / 2); });
            if (u.box) { place(u); }
            y += u.h + BELOW;
        }
        x += w + GAP;
    }
}
function place(u) {
    u.box.style.transform = "translate(" + u.x + "px," + u.y + "px)";
    u.box.style.width = u.w + "px";
    u.box.style.height = u.h + "px";
}

// ---- boxes -----------------------------------------------------------------------------------------

export function buildBoxes() {
    for (const u of model.units) {
        if (u.box) { u.box.remove(); }
        u.head = el("button", { type: "button", class: "unit-head", tabindex: "-1", "aria-expanded": String(u.open) },
            el("b", { text: u.name }), el("span", { class: "small", text: u.failure ? "could not be opened" : u.kind }), u.count = el("span", { class: "count" }));
        u.head.unit = u;
        u.head.title = u.failure || u.name;
        u.rows = el("div", { class: "rows" });
        u.box = el("div", { class: "block" + (u.failure ? " failed" : ""), role: "group", "aria-label": "Unit " + u.name }, u.head, u.rows);
        u.built = false;
        $("world").append(u.box);
        refreshBox(u);
    }
}
function buildRows(u) {
    u.built = u.left.length + u.right.length;
    const side = (list, cls) => el("div", { class: cls }, ...list.map((p) => {
        p.box = el("button", { type: "button", class: "port", tabindex: "-1" }, el("i", { "aria-hidden": "true" }), el("span", { class: "name", text: p.name }), el("span", { class: "small", text: p.measure }));
        p.box.port = p;
        return p.box;
    }));
    u.rows.replaceChildren(side(u.left, "ins"), side(u.right, "outs"));
}
export function refreshBox(u) { // what is said at it
    u.box.classList.toggle("folded", !u.open);
    u.head.setAttribute("aria-expanded", String(u.open));
    say(u.count, u.open ? "" : u.left.length + " in · " + u.right.length + " out");
    if (u.open && u.built !== u.left.length + u.right.length) { buildRows(u); }
    show(u.rows, u.open);
    if (!u.open) { return; }
    for (const p of u.left.concat(u.right)) {
        const proposal = !p.out && p.wires.length === 0 ? model.proposed.get(p) : null, state = p.wires.length ? "used" : p.given ? "given" : proposal ? "look" : "";
        mark(p.box, "data-is", state);
        const text = p.wires.length ? (p.out ? "goes to " : "comes from ") + p.wires.map((w) => (p.out ? w.to : w.from).full).join(", ")
            : p.given ? "has a start value" : proposal ? "proposed: " + proposal.from.full : p.out ? "not used" : "free";
        mark(p.box, "aria-label", (p.out ? "Output " : "Input ") + p.full + (p.measure ? " in " + p.measure : "") + ", " + p.type + ", " + text);
        mark(p.box, "title", p.full + "\n" + p.type + (p.size > 1 ? " [" + p.size + "]" : "") + (p.measure ? " in " + p.measure : "") + "\n" + text);
    }
}
export function openUnit(u, open) {
    if (u.open === open) { return; }
    u.open = open;
    refreshBox(u);
    stack();
    drawWires();
}

// ---- wires -----------------------------------------------------------------------------------------

export function wirePath(x0, y0, x1, y1) {
    const d = Math.max(40, Math.abs(x1 - x0) / 2);
    return "M" + x0 + " " + y0 + "C" + (x0 + d) + " " + y0 + " " + (x1 - d) + " " + y1 + " " + x1 + " " + y1;
}
// Back to a column that stands further left: round below both boxes, `k` lanes from them.
function wayBack(l, k) {
    const { x: x0, y: y0 } = l.from, { x: x1, y: y1 } = l.to, out = x0 + 20 + 7 * k, into = x1 - 20 - 7 * k, r = 9;
    const low = Math.max(l.from.unit.y + l.from.unit.h, l.to.unit.y + l.to.unit.h) + 10 + 7 * k;
    const bend = (sx, sy, vertical) => "q" + (vertical ? "0 " + sy * r + " " : sx * r + " 0 ") + sx * r + " " + sy * r;
    return "M" + x0 + " " + y0 + "H" + (out - r) + bend(1, 1, false) + "V" + (low - r) + bend(-1, 1, true) + "H" + (into + r) + bend(-1, -1, false)
        + "V" + (y1 + r) + bend(1, -1, true) + "H" + x1;
}
export const wireKey = (l) => l.from.full + " -> " + l.to.full;
let drawn = []; // lines with their path, and what they cover
export function drawWires(chosen) {
    if (chosen !== undefined) { model.chosen = chosen; }
    const seen = new Set(), lanes = new Map();
    drawn = [];
    for (const l of [...model.looks, ...model.wires]) {
        const { from: a, to: b } = l, where = a.x + " " + a.y + " " + b.x + " " + b.y;
        const back = b.x < a.x + 20, pair = a.unit.index + " " + b.unit.index, lane = lanes.get(pair) || 0;
        if (!a.unit.open && !b.unit.open && seen.has(where) && wireKey(l) !== model.chosen) { continue; } // between two folded units one line stands for all
        seen.add(where);
        if (back) { lanes.set(pair, lane + 1); }
        const air = back ? 90 : 40, low = back ? Math.max(a.unit.y + a.unit.h, b.unit.y + b.unit.h) + 60 : Math.max(a.y, b.y);
        drawn.push({ l, path: new Path2D(back ? wayBack(l, lane % 6) : wirePath(a.x, a.y, b.x, b.y)), proposed: l.line === undefined,
            x0: Math.min(a.x, b.x) - air, x1: Math.max(a.x, b.x) + air, y0: Math.min(a.y, b.y) - 8, y1: low + 8 });
    }
    look();
}
export const rubber = { path: null };   // the line at the hand
export function rubberTo(a, b) {
    rubber.path = a ? new Path2D(wirePath(...a, ...b)) : null;
    look();
}
function styleOfWire(w) {
    if (wireKey(w.l) === model.chosen || w.l === model.hover) { return [colours.accent, 3.25, w.proposed ? [6, 5] : []]; }
    return w.proposed ? [colours.watch, 1.75, [6, 5]] : [w.l.sure === "likely" ? colours.watch : colours.line, 2, []];
}
function paint() {
    const box = $("canvas"), width = box.clientWidth, height = box.clientHeight, { x, y, k } = camera;
    const pen = beginCanvas($("wires"), width, height), ratio = window.devicePixelRatio || 1;
    pen.setTransform(ratio * k, 0, 0, ratio * k, ratio * x, ratio * y);
    const stroke = (path, [colour, size, dash]) => {
        pen.strokeStyle = colour;
        pen.lineWidth = Math.max(size, 0.9 / k);
        pen.setLineDash(dash);
        pen.stroke(path);
    };
    const [x0, x1, y0, y1] = [-x / k, (width - x) / k, -y / k, (height - y) / k];
    const inSight = drawn.filter((w) => w.x1 > x0 && w.x0 < x1 && w.y1 > y0 && w.y0 < y1);
    pen.globalAlpha = document.body.classList.contains("searching") ? 0.3 : inSight.length > 400 ? 0.55 : 1;
    const last = (w) => wireKey(w.l) === model.chosen || w.l === model.hover;
    for (const w of inSight) { if (!last(w)) { stroke(w.path, styleOfWire(w)); } }
    pen.globalAlpha = 1;
    for (const w of inSight) { if (last(w)) { stroke(w.path, styleOfWire(w)); } }
    if (rubber.path) { stroke(rubber.path, [colours.accent, 2.5, [4, 4]]); }
    $("world").style.transform = "translate(" + x + "px," + y + "px) scale(" + k + ")";
    mark($("world"), "data-far", k < 0.33 ? "yes" : null); // names of variables are smaller than anybody reads
    for (const u of model.units) { show(u.box, u.x + u.w > x0 - 60 && u.x < x1 + 60 && u.y + u.h > y0 - 60 && u.y < y1 + 60); }
}
export function wireAt([x, y]) {
    const pen = $("wires").getContext("2d"), air = 7 / camera.k;
    pen.save();
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.lineWidth = 2 * air;
    const hit = drawn.filter((w) => x > w.x0 - air && x < w.x1 + air && y > w.y0 - air && y < w.y1 + air).reverse().find((w) => pen.isPointInStroke(w.path, x, y));
    pen.restore();
    return hit ? hit.l : null;
}

// ---- the part in sight -----------------------------------------------------------------------------

let due = 0;
export function look() {
    if (!due) { due = requestAnimationFrame(() => { due = 0; paint(); }); }
}
export function zoomAt(x, y, factor) {
    const k = Math.min(2.5, Math.max(0.04, camera.k * factor)), f = k / camera.k;
    Object.assign(camera, { x: x - (x - camera.x) * f, y: y - (y - camera.y) * f, k });
    look();
}
export function fitAll() {
    const box = $("canvas"), air = 36, us = model.units;
    if (!us.length) { return; }
    const x0 = Math.min(...us.map((u) => u.x)), x1 = Math.max(...us.map((u) => u.x + u.w)), y0 = Math.min(...us.map((u) => u.y)), y1 = Math.max(...us.map((u) => u.y + u.h));
    const k = Math.min(1.15, (box.clientWidth - 2 * air) / (x1 - x0), (box.clientHeight - 2 * air) / (y1 - y0));
    camera.k = Math.max(box.clientWidth < 700 ? 0.5 : 0.04, k); // a small screen shows a part
    camera.x = Math.max((box.clientWidth - (x0 + x1) * camera.k) / 2, box.clientWidth < 700 ? 14 - x0 * camera.k : -Infinity);
    camera.y = (box.clientHeight - (y0 + y1) * camera.k) / 2;
    look();
}
export function bring(x, y, w) { // into sight, large enough to be read
    const box = $("canvas");
    if (camera.k < 0.6) { camera.k = 0.9; }
    const left = x * camera.k + camera.x, top = y * camera.k + camera.y, air = 60;
    if (left < air || left + w * camera.k > box.clientWidth - air) { camera.x = box.clientWidth / 2 - (x + w / 2) * camera.k; }
    if (top < air || top > box.clientHeight - air) { camera.y = box.clientHeight / 2 - y * camera.k; }
    look();
}
export const worldAt = (e) => { const r = $("canvas").getBoundingClientRect(); return [(e.clientX - r.left - camera.x) / camera.k, (e.clientY - r.top - camera.y) / camera.k]; };
