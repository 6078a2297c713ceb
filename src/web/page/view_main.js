// The viewer: panels, files, cursors, what is fetched when, layouts.
import { $, el, press, say, show, tell } from "./dom.js";
import { DASH, count, counted } from "./numbers.js";
import { beginTheme, onTheme } from "./theme.js";
import { saveCsv, savePng, saveSvg } from "./view_export.js";
import { beginList, refreshList } from "./view_list.js";
import { Panel, spanText, timeText } from "./view_panel.js";
import { openSource } from "./view_source.js";
import { changed, isState, onViewer, remember, remembered, setWindow, showAll, takeHello, viewer, windowOf } from "./view_state.js";

const MOST_PANELS = 64;
viewer.hover = NaN;

// ---- panels ----------------------------------------------------------------------------------------

const actions = {
    remove(panel) {
        const i = viewer.panels.indexOf(panel);
        if (i < 0) { return; }
        viewer.panels.splice(i, 1);
        panel.destroy();
        const next = viewer.panels[Math.min(i, viewer.panels.length - 1)] || null;
        activate(next);
        if (next) { next.canvas.focus({ preventScroll: true }); }
        changed();
    },
    move(signal) { addTo(null, [signal]); },
    activate,
    cursor(t, i) {
        if (t !== undefined) { viewer.cursors[i] = t; }
        for (const p of viewer.panels) { p.legendRows = null; }
        readCursors();
        changed();
    },
};
function activate(panel) {
    viewer.active = panel;
    for (const p of viewer.panels) { p.box.classList.toggle("active", p === panel); }
}
function newPanel() {
    if (viewer.panels.length >= MOST_PANELS) { tell("There are " + MOST_PANELS + " panels already."); return null; }
    const panel = new Panel(actions);
    viewer.panels.push(panel);
    $("panels").insertBefore(panel.box, $("drop-new"));
    takesDrops(panel.box, (names) => addTo(panel, names.map((n) => viewer.byName.get(n)).filter(Boolean)));
    activate(panel);
    return panel;
}
function addTo(panel, signals) {
    const to = panel || newPanel();
    if (!to) { return; }
    for (const s of signals) { if (!to.add(s)) { tell("This panel has 16 signals already."); break; } }
    to.refresh();
    activate(to);
    changed();
}
function takesDrops(box, take) {
    const ours = (e) => Array.from(e.dataTransfer.types).includes("text/x-cardan");
    box.addEventListener("dragover", (e) => { if (ours(e)) { e.preventDefault(); e.dataTransfer.dropEffect = "copy"; box.classList.add("over"); } });
    box.addEventListener("dragleave", () => box.classList.remove("over"));
    box.addEventListener("drop", (e) => {
        if (!ours(e)) { return; }
        e.preventDefault();
        box.classList.remove("over");
        document.body.classList.remove("dragging");
        take(JSON.parse(e.dataTransfer.getData("text/x-cardan")));
    });
}

// ---- what is fetched -------------------------------------------------------------------------------

// One question at a time; panels that share a window ask together. The window is asked for with half of itself on
// both sides, so that moving does not wait.
let asking = false, again = 0;
export const speed = { looks: [], frames: [], first: 0 };
async function fetchStrips() {
    if (asking || !viewer.source) { return; }
    const groups = new Map();
    for (const panel of viewer.panels) {
        const w = panel.wants();
        if (!w) { continue; }
        const key = w.from + "," + w.to;
        if (!groups.has(key)) { groups.set(key, { from: w.from, to: w.to, density: 0, wants: [] }); }
        const g = groups.get(key);
        g.density = Math.max(g.density, w.density);
        g.wants.push({ panel, lines: w.lines });
    }
    const g = groups.values().next().value;
    if (!g) { return; }
    asking = true;
    try {
        const half = (g.to - g.from) / 2, air = 0.02 * (viewer.whole[1] - viewer.whole[0]);
        const from = Math.max(g.from - half, viewer.whole[0] - air), to = Math.max(Math.min(g.to + half, viewer.whole[1] + air), from);
        const density = g.density * Math.min(window.devicePixelRatio || 1, 2);
        const pixels = Math.max(16, Math.min(16384, Math.round((to - from) * density))), tracks = [], place = new Map();
        for (const w of g.wants) {
            for (const l of w.lines) { if (!place.has(l.key)) { place.set(l.key, tracks.length); tracks.push(l.track); } }
        }
        const begin = performance.now();
        const strips = [];
        for (let i = 0; i < tracks.length; i += 500) { strips.push(...await viewer.source.look(tracks.slice(i, i + 500), from, to, pixels)); }
        speed.looks.push(performance.now() - begin);
        for (const w of g.wants) { w.panel.take(w.lines, w.lines.map((l) => strips[place.get(l.key)]), { from, to, density: density }); }
        await readTexts(g.wants);
        const unready = strips.some((s) => s.part < 1);
        clearTimeout(again);
        if (unready) { again = setTimeout(changed, 120); }
        asking = false;
        if (unready) { waitForMore(); } else { changed(); }
    } catch (e) {
        asking = false;
        tell(e.message);
    }
}
let resting = false; // what is being read is asked for again in a while, not at once
function waitForMore() {
    resting = true;
    setTimeout(() => { resting = false; changed(); }, 120);
}
async function readTexts(wants) {
    for (const { lines } of wants) {
        for (const l of lines.filter((x) => x.entry.signal.type === "text")) { l.entry.signal.texts[l.file.index] = await viewer.source.texts(l.track); }
    }
}
let reading = false;
async function readCursors() {
    const times = viewer.cursors.map((t) => (Number.isNaN(t) ? 0 : t));
    if (reading || viewer.cursors.every((t) => Number.isNaN(t))) { return; }
    reading = true;
    try {
        const asked = viewer.cursors.slice();
        for (const panel of viewer.panels.filter((p) => p.kind === "time")) {
            const lines = panel.lines();
            if (!lines.length) { continue; }
            const values = await viewer.source.at(lines.map((l) => l.track), times);
            panel.readings = lines.map((l, i) => ({ key: l.key, at: values[i], times: asked }));
            panel.readFor = asked.join();
        }
        reading = false;
        if (asked.join() !== viewer.cursors.join()) { readCursors(); }
    } catch (e) {
        reading = false;
        tell(e.message);
    }
    changed();
}

// ---- a picture -------------------------------------------------------------------------------------

function drawAll() {
    if (!viewer.hello) { return; }
    const begin = performance.now();
    for (const panel of viewer.panels) { panel.draw(); }
    const drawn = viewer.panels.some((p) => p.strips.size);
    if (drawn && !speed.first) { speed.first = performance.now(); }
    speed.frames.push(performance.now() - begin);
    if (speed.frames.length > 4096) { speed.frames.splice(0, 2048); }
    tellHeader();
    if (!resting) { fetchStrips(); }
    for (const panel of viewer.panels) { if (panel.kind !== "time" && panel.seen) { panel.compute(); } }
    const stale = viewer.panels.some((p) => p.kind === "time" && p.entries.length && p.readFor !== viewer.cursors.join());
    const missing = viewer.panels.some((p) => p.kind === "time" && p.entries.length && p.readings.length === 0);
    if (viewer.cursors.some((t) => !Number.isNaN(t)) && (stale || missing)) { readCursors(); }
}
function tellHeader() {
    const [a, b] = windowOf(null), [x, y] = viewer.cursors;
    say($("window-text"), timeText(a) + " " + DASH + " " + timeText(b));
    show($("empty"), viewer.panels.length === 0);
    show($("cursor-box"), !(Number.isNaN(x) && Number.isNaN(y)));
    say($("cursor-a"), timeText(x));
    say($("cursor-b"), timeText(y));
    const both = !Number.isNaN(x) && !Number.isNaN(y);
    say($("cursor-d"), both ? spanText(y - x) : DASH);
    say($("cursor-f"), both && x !== y ? (1 / Math.abs(y - x)).toPrecision(4) + " Hz" : DASH);
}

// ---- files -----------------------------------------------------------------------------------------

function buildFiles() {
    $("files").replaceChildren(...viewer.files.map((f) => {
        const box = el("input", { type: "checkbox", checked: true, onchange: () => { f.shown = box.checked; refreshPanels(); } });
        box.checked = f.shown;
        const rows = f.groups.reduce((n, g) => Math.max(n, g[1]), 0);
        const reference = viewer.files.length > 1 ? el("button", { type: "button", class: "quiet reference", "aria-pressed": String(f.index === viewer.reference),
            title: "Differences are taken to this file", text: "ref", onclick: () => { viewer.reference = f.index; buildFiles(); refreshPanels(); } }) : null;
        return el("li", { title: f.path + "\n" + f.format + (f.program ? ", " + f.program : "") },
            el("label", null, box, el("span", { class: "file-name", text: f.name }), el("span", { class: "unit", text: counted(rows, "row") + (f.unfinished ? ", unfinished" : "") })), reference);
    }));
}
function refreshPanels() { for (const p of viewer.panels) { p.refresh(); } }

function buildEvents() {
    const list = viewer.files.flatMap((f) => f.events.map(([t, kind, text]) => ({ t, kind, text, f }))).sort((a, b) => a.t - b.t);
    show($("events-box"), list.length > 0);
    say($("events-count"), count(list.length));
    $("event-list").replaceChildren(...list.slice(0, 500).map((e) => el("li", null,
        el("button", { type: "button", class: "quiet", "data-kind": e.kind, onclick: () => {
            const [a, b] = windowOf(null), span = Math.min(b - a, (viewer.whole[1] - viewer.whole[0]) / 10);
            setWindow(null, e.t - span / 2, e.t + span / 2);
            actions.cursor(e.t, 0);
        } }, el("b", { text: timeText(e.t) }), el("span", { text: " " + (e.text || e.kind) })))));
}

// ---- layouts ---------------------------------------------------------------------------------------

const layout = () => ({ cardan_view: 1, window: [viewer.from, viewer.to], cursors: viewer.cursors.map((t) => (Number.isNaN(t) ? null : t)),
    reference: viewer.reference, events: viewer.events, columns: viewer.columns, panels: viewer.panels.map((p) => p.store()) });
const isWindow = (w) => Array.isArray(w) && w.length === 2 && w.every(Number.isFinite) && w[0] < w[1];
function useLayout(l) {
    let missing = 0;
    for (const p of Array.isArray(l.panels) ? l.panels : []) {
        const known = (Array.isArray(p.signals) ? p.signals : []).filter((s) => s && viewer.byName.has(s.name));
        missing += (Array.isArray(p.signals) ? p.signals.length : 0) - known.length;
        if (!known.length) { continue; }
        const panel = newPanel();
        if (!panel) { break; }
        for (const s of known) {
            panel.add(viewer.byName.get(s.name));
            Object.assign(panel.entries[panel.entries.length - 1], { axis: s.axis === 1 ? 1 : 0, unit: typeof s.unit === "string" ? s.unit : null });
        }
        panel.set({ kind: ["time", "xy", "spectrum", "histogram"].includes(p.kind) ? p.kind : "time", diff: p.diff === true, own: isWindow(p.own) ? p.own : null });
    }
    if (isWindow(l.window)) { [viewer.from, viewer.to] = l.window; }
    if (Array.isArray(l.cursors)) { viewer.cursors = [0, 1].map((i) => (Number.isFinite(l.cursors[i]) ? l.cursors[i] : NaN)); }
    if (Number.isInteger(l.reference) && l.reference >= 0 && l.reference < viewer.files.length) { viewer.reference = l.reference; }
    viewer.events = l.events !== false;
    if ([0, 1, 2, 3].includes(l.columns)) { viewer.columns = l.columns; }
    if (missing) { tell(missing + " signals of the layout are in none of the files."); }
}
// Without one: some signals, those of one unit of measure together; internals of couplings last.
function firstPanels() {
    const plain = viewer.signals.filter((s) => !/\.(coupling|bond|defect)\b/.test(s.name)), list = (plain.length ? plain : viewer.signals).slice(0, 8);
    const byUnit = new Map();
    for (const s of list) {
        const key = isState(s) ? "states" : s.unit || s.name;
        if (!byUnit.has(key)) { byUnit.set(key, []); }
        byUnit.get(key).push(s);
    }
    for (const signals of Array.from(byUnit.values()).slice(0, 4)) { addTo(null, signals.slice(0, 4)); }
}

// ---- the page --------------------------------------------------------------------------------------

function setColumns(n) {
    viewer.columns = n;
    $("panels").dataset.columns = n;
    $("columns").value = String(n);
    changed();
}
function begin(hello) {
    takeHello(hello);
    say($("title"), viewer.files.map((f) => f.name).join(", "));
    document.title = viewer.files[0].name + " – Cardan";
    say($("file"), counted(viewer.signals.length, "signal") + ", " + viewer.files.map((f) => f.format).filter((x, i, all) => all.indexOf(x) === i).join(", "));
    if (hello.start === null) { say($("empty"), "There is no row in it."); }
    if (hello.layout) { useLayout(hello.layout); }
    if (viewer.panels.length === 0) { firstPanels(); showAll(null); }
    if (hello.layout_error) { tell(hello.layout_error); }
    if (viewer.panels.length) { activate(viewer.panels[0]); }
    $("show-events").checked = viewer.events;
    show($("save"), viewer.source.live);
    buildFiles();
    buildEvents();
    setColumns(viewer.columns);
    refreshList();
    document.body.dataset.state = "ready";
    changed();
}

function keys(e) {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName);
    if (e.key === "Escape" && document.body.classList.contains("listing")) { openList(false); return; }
    if (typing || e.ctrlKey || e.metaKey || e.altKey) { return; }
    if (e.key === "/") { e.preventDefault(); openList(true); $("filter").focus(); }
    if (e.key === "n") { addTo(null, []); }
    if (e.key === "?") { $("keys").showModal(); }
    if (e.key === "f") { showAll(null); }
    if (e.key === "Escape") { viewer.cursors = [NaN, NaN]; actions.cursor(); }
}
function openList(open) {
    document.body.classList.toggle("listing", open);
    $("toggle-list").setAttribute("aria-expanded", String(open));
    if (open) { refreshList(); }
}
const around = (factor) => () => { const [a, b] = windowOf(null), m = (a + b) / 2; setWindow(null, m - (m - a) * factor, m + (b - m) * factor); };

beginTheme();
onTheme(() => { refreshPanels(); });
onViewer(drawAll);
beginList((signal, fresh) => addTo(fresh ? null : viewer.active, [signal]));
takesDrops($("drop-new"), (names) => addTo(null, names.map((n) => viewer.byName.get(n)).filter(Boolean)));
takesDrops($("panels"), (names) => { if (!viewer.panels.length) { addTo(null, names.map((n) => viewer.byName.get(n)).filter(Boolean)); } });
press("fit", () => showAll(null));
press("zoom-in", around(0.5));
press("zoom-out", around(2));
press("no-cursors", () => { viewer.cursors = [NaN, NaN]; actions.cursor(); });
press("toggle-list", () => openList(!document.body.classList.contains("listing")));
press("help", () => $("keys").showModal());
press("add-panel", () => { addTo(null, []); openList(true); $("filter").focus(); });
press("save", () => viewer.source.save(layout()).then(() => tell("Saved as " + viewer.hello.layout_file + ".", true), (e) => tell(e.message)));
$("export").addEventListener("change", () => {
    const what = $("export").value;
    $("export").value = "";
    Promise.resolve().then({ png: savePng, svg: saveSvg, csv: saveCsv }[what]).catch((e) => tell(e.message));
});
$("columns").addEventListener("change", () => { remember("columns", $("columns").value); setColumns(Number($("columns").value)); });
$("show-events").addEventListener("change", () => { viewer.events = $("show-events").checked; changed(); });
viewer.columns = Number(remembered("columns", "0")) || 0;
document.addEventListener("keydown", keys);
window.cardanView = { viewer, speed, addTo, layout, changed, setWindow, source: () => viewer.source };
viewer.source = openSource((what, m) => {
    if (what === "hello") { begin(m); }
    if (what === "lost") {
        document.body.dataset.state = "lost";
        $("lost").hidden = false;
    }
});
