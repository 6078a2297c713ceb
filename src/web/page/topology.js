// The panel of units and connections as a drawing.
import { FOOT, placeUnits } from "./arrange.js";
import { $, el, mark, say, svg } from "./dom.js";
import { faulty, knownMisses, quality } from "./misses.js";
import { NARROW, count, duration, figure } from "./numbers.js";
import { onSelect, select } from "./selection.js";
import { SHAPES, run, stopping } from "./state.js";

const ruler = document.createElement("canvas").getContext("2d");
function textWidth(text, font) {
    ruler.font = font;
    return ruler.measureText(text).width;
}
function clip(text, font, room) {
    if (textWidth(text, font) <= room) { return text; }
    let low = 1, high = text.length;
    while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (textWidth(text.slice(0, middle) + "…", font) <= room) { low = middle; } else { high = middle - 1; }
    }
    return text.slice(0, low) + "…";
}

// With names at the ports where there is room, else without and with larger type.
const ROOMY = { ports: true, pitch: 24, head: 62, gap: 128, name: 15, small: 12, most: 250, least: 128 };
const DENSE = { ports: false, pitch: 25, head: 58, gap: 110, name: 17, small: 13.5, most: 180, least: 100 };
const AIRY = Object.assign({}, DENSE, { pitch: 36 }); // where height is left
const LEAST = 0.6; // scale

let drawing = null; // {units: [...], links: [...], svg, width, height}
export function buildTopology() {
    drawing = null;
    if (run.hello.units.length === 0) {
        $("drawing").replaceChildren(el("p", { class: "empty", text: "The system has no units." }));
        return;
    }
    drawTopology(ROOMY);
    if (fitTopology() < 0.85) {
        drawTopology(DENSE);
        if (fitTopology() * drawing.height < 0.65 * $("drawing").clientHeight) { drawTopology(AIRY); }
    }
    fitTopology();
    showSelectedUnits();
    refreshTopology();
}
function drawTopology(look) {
    const units = run.hello.units, links = run.hello.links;
    const family = getComputedStyle(document.body).fontFamily;
    const bold = "600 " + look.name + "px " + family, small = look.small + "px " + family;
    const plan = placeUnits(units, links, look, {
        name: (text) => textWidth(text, bold), small: (text) => textWidth(text, small),
    });
    drawing = { units: [], links: [], width: plan.width, height: plan.height, look };
    const layers = { lines: svg("g"), boxes: svg("g"), texts: svg("g") }, labels = [];
    // Lines that climb come last: their numbers have room on both sides.
    const climbs = links.map((l, i) => {
        const { a, b, back } = plan.ends[i], right = back ? l.from_unit : l.to_unit, left = back ? l.to_unit : l.from_unit;
        return a ? (back ? 1 : -1) * (plan.at[right].y + b.y - plan.at[left].y - a.y) > 0 : false;
    });
    const sequence = links.map((l, i) => i).sort((i, k) => climbs[i] - climbs[k] || i - k);
    for (const i of sequence) {
        const l = links[i], self = l.from_unit === l.to_unit;
        drawing.links[i] = self ? drawSelf(l, i, plan.at[l.from_unit], plan.selves[l.from_unit].indexOf(i), layers)
            : drawLink(l, i, plan.ends[i], plan.at, climbs[i], labels, layers);
    }
    units.forEach((u, i) => {
        drawing.units[i] = drawUnit(u, i, plan.at[i], plan.ports[i], look, { bold, small });
        layers.boxes.append(drawing.units[i].g);
    });
    drawing.svg = svg("svg", {
        class: look.ports ? "roomy" : "dense", viewBox: "0 0 " + plan.width + " " + plan.height,
        role: "group", "aria-label": "Units and connections",
    }, layers.lines, layers.boxes, layers.texts);
    $("drawing").replaceChildren(drawing.svg);
}
function drawUnit(u, i, v, p, look, fonts) {
    const g = svg("g", {
        class: "unit-box", tabindex: "0", role: "button", "aria-label": "Unit " + u.name,
        transform: "translate(" + v.x + " " + v.y + ")",
    });
    const bar = svg("rect", { class: "bar", x: 12, y: 46, width: 0, height: 4, rx: 2 });
    const state = svg("path", {
        class: "mark", transform: "translate(" + (v.w - 28) + " 11) scale(0.8)", d: SHAPES.running,
    });
    const word = svg("text", { class: "small", x: 12, y: 39 });
    const spent = svg("text", { class: "small end", x: v.w - 12, y: 39 });
    g.append(svg("title", { text: u.name + " (" + u.kind + ")" }),
        svg("rect", { class: "frame", width: v.w, height: v.h, rx: 8 }),
        svg("text", { class: "name", x: 12, y: 22, text: clip(u.name, fonts.bold, v.w - 44) }), state, word, spent,
        svg("rect", { class: "track", x: 12, y: 46, width: v.w - 24, height: 4, rx: 2 }), bar);
    if (look.ports) {
        const half = Math.max(40, (v.w - 30) / (p.left.length && p.right.length ? 2 : 1));
        const port = (cls, x) => (q) => svg("text", { class: cls, x, y: q.y + 4, text: clip(q.text, fonts.small, half) });
        g.append(...p.left.map(port("port", 12)), ...p.right.map(port("port end", v.w - 12)));
    }
    const choose = () => select({ unit: run.selected.unit === i ? -1 : i, link: -1 });
    g.addEventListener("click", choose);
    g.addEventListener("keydown", (e) => {
        if (e.key === "Enter" || e.key === " ") {
            e.preventDefault();
            e.stopPropagation();
            choose();
        }
    });
    return { g, bar, state, word, spent, w: v.w, small: fonts.small };
}

function drawLink(l, i, end, at, climbs, labels, layers) {
    const { a, b, back, route } = end;
    const first = at[back ? l.to_unit : l.from_unit], last = at[back ? l.from_unit : l.to_unit];
    const points = [[first.x + first.w, first.y + a.y]];
    for (const bend of route.slice(1, -1)) {
        const y = bend.y + bend.h * (end.at + 0.5) / end.of;
        points.push([bend.x, y], [bend.x + bend.w, y]);
    }
    points.push([last.x, last.y + b.y]);
    let d = "M" + points[0].join(" ");
    for (let k = 1; k < points.length; k++) {
        const [x0, y0] = points[k - 1], [x1, y1] = points[k];
        if (Math.abs(y1 - y0) < 0.5) {
            d += "L" + x1 + " " + y1;
        } else {
            // Flat where the number stands, at the source.
            const m = x0 + (x1 - x0) * (points.length > 2 ? 0.5 : back ? 0.35 : 0.65);
            d += "C" + m + " " + y0 + " " + m + " " + y1 + " " + x1 + " " + y1;
        }
    }
    const tip = back ? points[0] : points[points.length - 1], way = back ? -1 : 1;
    const arrow = "M" + tip[0] + " " + tip[1] + "l" + -way * 9 + " -4.5v9z";
    // Beside the source, above the line: ports are far enough apart for that.
    const source = back ? points[points.length - 1] : points[0];
    const straight = points.length === 2 && Math.abs(points[1][1] - points[0][1]) < 0.5;
    const x = straight ? (points[0][0] + points[1][0]) / 2 : source[0] + way * 12;
    const anchor = straight ? "middle" : back ? "end" : "start";
    const wide = 36 + 9 * Math.min(9, 1 + l.unit.length);
    const x0 = x - wide * { start: 0, middle: 0.5, end: 1 }[anchor];
    const meets = (place) => labels.find((o) => x0 < o.x1 && o.x0 < x0 + wide && Math.abs(place - o.y) < 17);
    let y = source[1] - 6;
    if (climbs && meets(y) && !meets(y + 21)) { y += 21; } // below the line, which goes up
    for (let more = meets(y), tries = 0; more && tries < 8; more = meets(y), tries++) { // never upon each other
        y = more.y + (y < more.y ? -17 : 17);
    }
    labels.push({ x0, x1: x0 + wide, y });
    return drawEdge(l, i, d, arrow, [x, y], anchor, layers);
}
function drawSelf(l, i, v, k, layers) {
    const y = v.y + v.h - FOOT - 6 - 18 * k;
    const d = "M" + (v.x + v.w) + " " + y + "h26v16h-26";
    const arrow = "M" + (v.x + v.w) + " " + (y + 16) + "l9 -4.5v9z";
    return drawEdge(l, i, d, arrow, [v.x + v.w + 30, y + 12], "start", layers);
}
function drawEdge(l, i, d, arrow, label, anchor, layers) {
    const line = svg("path", { class: "line none", d });
    const head = svg("path", { class: "arrow", d: arrow });
    const hit = svg("path", { class: "hit", d });
    const g = svg("g", { class: "edge" }, svg("title", { text: l.from + " → " + l.to }), hit, line, head);
    g.addEventListener("click", () => select({ unit: -1, link: run.selected.link === i ? -1 : i }));
    layers.lines.append(g);
    const number = svg("tspan", { class: "number" }), unit = svg("tspan", { class: "measure" });
    const fault = svg("tspan", { class: "fault" });
    const text = svg("text", { class: "edge-text", x: label[0], y: label[1], "text-anchor": anchor },
        fault, number, unit);
    text.addEventListener("click", () => select({ unit: -1, link: run.selected.link === i ? -1 : i }));
    layers.texts.append(text);
    const measure = l.unit && l.unit !== "1" ? NARROW + l.unit : "";
    say(unit, measure.length > 9 ? measure.slice(0, 8) + "…" : measure);
    return { g, line, text, number, fault };
}
function fitTopology() {
    if (!drawing || !drawing.svg) { return 1; }
    const box = $("drawing"), w = box.clientWidth - 16, h = box.clientHeight - 12;
    if (w < 50) { return 1; }
    const wide = w / drawing.width, high = h > 60 ? h / drawing.height : wide;
    const fit = Math.min(1.5, wide, high), scale = Math.max(LEAST, fit);
    drawing.svg.style.width = drawing.width * scale + "px";
    drawing.svg.style.height = drawing.height * scale + "px";
    return fit;
}

function unitState(s) {
    if (s.failed) { return { state: "failed", word: "failed" }; }
    const word = s.link && s.link.state && !stopping() ? s.link.state : "";
    if (s.is_late) { return { state: "late", word: word || "late" }; }
    if (stopping()) { return { state: "ended", word: "ended" }; }
    const all = run.status.state;
    return { state: all === "running" || all === "paused" ? all : "waiting", word: word || all };
}
function refreshUnit(d, u, s) {
    const { state, word } = unitState(s);
    mark(d.g, "data-state", state);
    mark(d.state, "d", SHAPES[state]);
    const kind = (u.real ? "real · " : u.remote ? "remote · " : "") + u.kind;
    const extra = s.late > 0 ? " · " + count(s.late) + NARROW + "× late" : "";
    const right = !drawing.look.ports || s.last === null || !s.steps ? "" : duration(s.last, 2);
    const linked = s.link && s.link.state && !stopping();
    const left = (linked ? word : state === "running" || state === "ended" ? kind : word + " · " + kind) + extra;
    if (d.left !== left || d.right !== right) {
        d.left = left;
        d.right = right;
        say(d.spent, right);
        say(d.word, clip(left, d.small, d.w - 32 - (right ? textWidth(right, d.small) : 0)));
    }
    const room = u.budget || u.step / (run.hello.factor || 1);
    const part = room > 0 && s.last !== null ? Math.min(1, s.last / room) : 0;
    mark(d.bar, "width", (part * (d.w - 24)).toFixed(1));
    mark(d.bar, "data-part", part >= 1 ? "over" : part > 0.8 ? "much" : null);
    const title = [u.name + " (" + kind + "), " + word,
        "last step " + duration(s.last) + ", longest " + duration(s.worst) + " of " + duration(room) + (u.budget ? " (budget)" : ""),
        s.late ? "late " + s.late + " times" : "",
        s.link ? "in " + s.link.in + ", out " + s.link.out + ", lost " + s.link.lost + ", age " + duration(s.link.age) : "",
    ].filter(Boolean).join("\n");
    say(d.g.firstChild, title);
}
export function refreshTopology() {
    if (!drawing || !run.status || knownMisses() < run.hello.links.length) { return; }
    run.status.units.forEach((s, i) => {
        if (drawing.units[i] && run.hello.units[i]) { refreshUnit(drawing.units[i], run.hello.units[i], s); }
    });
    run.status.links.forEach((s, i) => {
        const d = drawing.links[i], l = run.hello.links[i];
        if (!d || !l) { return; }
        mark(d.line, "class", "line " + quality(i));
        mark(d.g, "data-fault", faulty(s) ? "yes" : null);
        say(d.fault, !faulty(s) ? "" : drawing.look.ports ? "▲ " + s.fault + " " : "▲ ");
        say(d.number, figure(s.value, 4));
    });
}

function showSelectedUnits() {
    const what = run.selected;
    if (!drawing) { return; }
    drawing.units.forEach((d, i) => {
        const l = run.hello.links[what.link], near = what.link >= 0 && (l.from_unit === i || l.to_unit === i);
        d.g.classList.toggle("chosen", i === what.unit);
        d.g.classList.toggle("near", near);
    });
    drawing.links.forEach((d, i) => {
        const l = run.hello.links[i];
        const near = what.unit >= 0 && (l.from_unit === what.unit || l.to_unit === what.unit);
        d.g.classList.toggle("chosen", i === what.link || near);
        d.text.classList.toggle("chosen", i === what.link || near);
    });
    drawing.svg.classList.toggle("focused", what.unit >= 0 || what.link >= 0);
}

let drawnFor = 0;
export function beginTopology() {
    onSelect(showSelectedUnits);
    new ResizeObserver(() => {
        const size = $("drawing").clientWidth;
        if (run.hello && size > 50 && Math.abs(size - drawnFor) > 60) { // another size: perhaps another look
            drawnFor = size;
            buildTopology();
        } else {
            fitTopology();
        }
    }).observe($("drawing"));
}
