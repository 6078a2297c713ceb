// Connections drawn by hand or by keys. The server changes the description and says what is wrong; the page shows it.
import { Asker } from "./ask.js";
import { $, el, press, say, show, tell } from "./dom.js";
import { freeInputs, mayFit, model, takeModel, takeState } from "./draw_model.js";
import { bring, buildBoxes, camera, drawWires, fitAll, look, openUnit, placeAll, refreshBox, rubberTo, stack, wireAt, wireKey, worldAt, zoomAt } from "./draw_world.js";
import { NARROW, count, duration } from "./numbers.js";
import { beginTheme, onTheme } from "./theme.js";

let begun = null;   // the port at which a connection has begun
let current = null; // the element of the drawing that Tab leads to
const MOST_LISTED = 60;

// ---- what is asked ---------------------------------------------------------------------------------

let last = Promise.resolve(); // one change after the other: each knows the state behind the one before
function change(what, members) {
    last = last.then(async () => {
        try {
            show_((await model.source.ask(what, Object.assign({ version: model.state.version }, members))).state);
            return true;
        } catch (e) {
            if (e.reply && e.reply.state) { show_(e.reply.state); }
            tell(e.message);
            return false;
        }
    });
    return last;
}
async function connect(a, b) {
    const [from, to] = a.out ? [a, b] : [b, a];
    letGo();
    if (await change("connect", { from: from.full, to: to.full })) { choose(to.wires[0] || null); }
}
async function disconnect(wire) {
    if (await change("disconnect", { from: wire.from.full, to: wire.to.full })) { choose(null); }
}
async function save(overwrite) {
    await last;
    try {
        const reply = await model.source.ask("save", { version: model.state.version, overwrite });
        show_(reply.state);
        if (!reply.exists) { tell(model.hello.path + " is saved. Go on with: cardan run " + model.hello.path); return; }
        say($("ask-text"), model.hello.path + " is there already, and it is not what this page has read or written. Overwriting it cannot be undone.");
        $("ask").returnValue = "";
        $("ask").showModal();
    } catch (e) {
        if (e.reply && e.reply.state) { show_(e.reply.state); }
        tell(e.message);
    }
}

// ---- what is shown ---------------------------------------------------------------------------------

function show_(state) {
    const fresh = !model.state || state.version !== model.state.version;
    takeState(state);
    if (fresh) {
        for (const u of model.units) { refreshBox(u); }
        stack();
        drawWires();
        tellLists();
        readText();
    }
    const s = model.state;
    $("undo").disabled = s.undo === 0;
    $("redo").disabled = s.redo === 0;
    $("save").disabled = s.saved;
    say($("save"), s.saved ? "Saved" : "Save");
    const name = model.hello.title || model.hello.path.replace(/^.*\//, "");
    say($("title"), name);
    $("title").title = model.hello.path;
    say($("file"),  many(model.units.length, "unit") + ", " + many(model.wires.length, "connection") + (s.saved ? "" : ", not saved"));
    document.title = (s.saved ? "" : "• ") + name + " – Cardan";
    for (const [key, text] of [["step", s.step === null ? "" : typed(s.step)], ["stop", s.stop === null ? "" : typed(s.stop)], ["results", s.results]]) {
        const input = $("set-" + key);
        if (document.activeElement !== input || fresh) { input.value = input.was = text; }
    }
    tellChosen();
}
const many = (n, word) => count(n) + " " + word + (n === 1 ? "" : "s");
const typed = (seconds) => duration(seconds, 6).replace(NARROW, " ").replace("µ", "u").replace(/(\.\d*?)0+(?= )/, "$1").replace(/\.(?= )/, "");

const more = (n, shown) => (n > (shown || MOST_LISTED) ? [el("li", { class: "note", text: "and " + count(n - (shown || MOST_LISTED)) + " more" })] : []);
function tellLists() {
    const s = model.state, doubtful = model.looks, likely = model.wires.filter((w) => w.sure === "likely"), frees = freeInputs();
    const errors = s.errors, warnings = s.warnings, shown = Math.max(Math.min(errors, MOST_LISTED), 8);
    say($("check-count"), errors ? many(errors, "error") : warnings ? many(warnings, "warning") : "ok");
    $("check-count").className = errors ? "bad" : warnings ? "watch" : "good";
    $("findings").replaceChildren(...s.findings.slice(0, shown).map(([severity, line, text]) =>
        el("li", { class: severity }, el("b", { text: severity === "error" ? "Error" : "Warning" }), el("span", { text: (line ? " line " + line + ": " : ": ") + text }))),
    ...more(errors + warnings, shown), ...(s.findings.length ? [] : [el("li", { class: "note", text: "Nothing is wrong: it can be run." })]));
    say($("look-count"), count(doubtful.length + likely.length));
    const item = (l, button) => el("li", null, el("button", { type: "button", class: "quiet go", title: l.why, onclick: () => goTo(l) },
        el("span", { text: l.from.full }), el("span", { class: "arrow", text: " → " }), el("span", { text: l.to.full })),
    el("div", { class: "row" }, el("span", { class: "mark " + l.sure, text: l.sure }), el("span", { class: "note", text: l.why }), button));
    $("looks").replaceChildren(...doubtful.slice(0, MOST_LISTED).map((l) => item(l, el("button", { type: "button", text: "Connect", "aria-label": "Connect " + wireKey(l), onclick: () => connect(l.from, l.to) }))),
        ...likely.slice(0, MOST_LISTED).map((l) => item(l, el("button", { type: "button", text: "Remove", "aria-label": "Remove " + wireKey(l), onclick: () => disconnect(l) }))),
        ...more(Math.max(doubtful.length, likely.length)), ...(doubtful.length + likely.length ? [] : [el("li", { class: "note", text: "No connection is doubtful." })]));
    say($("free-count"), count(frees.length));
    $("frees").replaceChildren(...frees.slice(0, MOST_LISTED).map((p) => el("li", null, el("button", { type: "button", class: "quiet go", onclick: () => focusPort(p) },
        el("span", { text: p.full }), el("span", { class: "unit", text: p.measure ? " " + p.measure : "" })))), ...more(frees.length),
    ...(frees.length ? [] : [el("li", { class: "note", text: "Every " + (doubtful.length ? "other " : "") + "input gets its value from somewhere." })]));
}
async function readText() {
    if ($("text-box").open) { say($("text"), (await model.source.ask("text", {})).text); }
}

// ---- choosing --------------------------------------------------------------------------------------

const wireOf = (key) => model.wires.find((w) => wireKey(w) === key) || model.looks.find((l) => wireKey(l) === key) || null;
function choose(wire) {
    drawWires(wire ? wireKey(wire) : null);
    tellChosen();
}
function tellChosen() {
    const wire = model.chosen ? wireOf(model.chosen) : null;
    show($("chosen"), wire !== null);
    if (!wire) { return; }
    const proposed = wire.line === undefined, end = (p, word) => [el("dt", { text: word }), el("dd", null, el("b", { text: p.full }), el("span", { class: "unit", text: " " + [p.measure, p.type].filter(Boolean).join(", ") }))];
    $("chosen-body").replaceChildren(el("dl", null, ...end(wire.from, "from"), ...end(wire.to, "to"),
        ...(wire.sure || wire.why ? [el("dt", { text: proposed ? "proposed" : "mark" }), el("dd", null, el("span", { class: "mark " + wire.sure, text: wire.sure }), el("span", { text: " " + wire.why }))] : []),
        ...(wire.line ? [el("dt", { text: "line" }), el("dd", { text: wire.line })] : [])),
    wire.line === 0 ? el("p", { class: "note", text: "It belongs to the system below this description." })
        : el("button", { type: "button", class: proposed ? "main" : "danger", text: proposed ? "Connect" : "Remove", onclick: () => (proposed ? connect(wire.from, wire.to) : disconnect(wire)) }));
}
function goTo(l) {
    openUnit(l.to.unit, true);
    choose(l);
    focusPort(l.to);
}

// ---- a connection on its way -----------------------------------------------------------------------

function begin(p) {
    letGo();
    begun = p;
    document.body.dataset.connecting = p.out ? "out" : "in";
    p.box.classList.add("begun");
    markFits();
    say($("hint"), "From " + p.full + ": choose " + (p.out ? "an input" : "an output") + ", Esc lets go.");
}
function markFits() {
    for (const box of $("world").querySelectorAll(".port")) { box.classList.toggle("fits", mayFit(begun, box.port)); }
}
function letGo() {
    if (begun && begun.box) { begun.box.classList.remove("begun"); }
    begun = null;
    delete document.body.dataset.connecting;
    rubberTo(null);
    say($("hint"), "");
}
function pick(p) { // a click, or Enter
    if (begun === p) { letGo(); return; }
    if (begun && begun.out !== p.out) { connect(begun, p); return; }
    if (!p.out && p.wires.length) { letGo(); choose(p.wires[0]); return; }
    begin(p);
    if (!p.out && model.proposed.has(p)) { choose(model.proposed.get(p)); }
}
function pull(x, y) {
    const at = [begun.x, begun.y];
    if (begun.out) { rubberTo(at, [x, y]); } else { rubberTo([x, y], at); }
}

// ---- hands -----------------------------------------------------------------------------------------

const fingers = new Map();
let hand = null, opening = 0; // {what, x, y, moved, ...}
function handDown(e) {
    const box = $("canvas"), at = e.target;
    if (e.button > 1 || at.closest("#hint")) { return; }
    fingers.set(e.pointerId, e);
    if (fingers.size === 2) { letGo(); hand = { what: "pinch" }; return; }
    const port = at.closest && at.closest(".port");
    hand = { what: port ? "port" : "ground", port: port && port.port, head: at.closest(".unit-head"), wire: at.closest(".block") ? null : wireAt(worldAt(e)), x: e.clientX, y: e.clientY, cx: camera.x, cy: camera.y, moved: false, before: begun };
    if (!port) { box.setPointerCapture(e.pointerId); } else if (at.hasPointerCapture && at.hasPointerCapture(e.pointerId)) { at.releasePointerCapture(e.pointerId); }
}
function handMove(e) {
    if (!hand || !fingers.has(e.pointerId)) { if (begun) { pull(...worldAt(e)); } hover(e); return; }
    if (hand.what === "pinch") {
        const [a, b] = Array.from(fingers.values()), was = Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
        fingers.set(e.pointerId, e);
        const [c, d] = Array.from(fingers.values()), now = Math.hypot(c.clientX - d.clientX, c.clientY - d.clientY), r = $("canvas").getBoundingClientRect();
        if (was > 0) { zoomAt((c.clientX + d.clientX) / 2 - r.left, (c.clientY + d.clientY) / 2 - r.top, now / was); }
        return;
    }
    const dx = e.clientX - hand.x, dy = e.clientY - hand.y;
    if (!hand.moved && Math.hypot(dx, dy) < 5) { return; }
    if (!hand.moved && hand.what === "port") { begin(hand.port); }
    hand.moved = true;
    if (hand.what === "ground") {
        camera.x = hand.cx + dx;
        camera.y = hand.cy + dy;
        look();
        return;
    }
    pull(...worldAt(e));
    const head = document.elementFromPoint(e.clientX, e.clientY)?.closest(".unit-head"); // a folded unit opens below a waiting hand
    if (head !== hand.over) {
        clearTimeout(opening);
        hand.over = head;
        if (head && !head.unit.open) { opening = setTimeout(() => { openUnit(head.unit, true); if (begun) { markFits(); } }, 450); }
    }
}
function hover(e) {
    const over = e.target.closest && e.target.closest("#canvas") && !e.target.closest(".block") ? wireAt(worldAt(e)) : null;
    if (over === (model.hover || null)) { return; }
    model.hover = over;
    $("canvas").title = over ? wireKey(over) + (over.line === undefined ? "\nproposed, " + over.sure : over.sure ? "\n" + over.sure : "") + (over.why ? ": " + over.why : "") : "";
    $("canvas").classList.toggle("over", over !== null);
    look();
}
function handUp(e) {
    const was = hand;
    fingers.delete(e.pointerId);
    clearTimeout(opening);
    hand = null;
    if (!was || was.what === "pinch" || e.type === "pointercancel") { letGo(); return; }
    if (was.what === "port" && was.moved) {
        const target = document.elementFromPoint(e.clientX, e.clientY)?.closest(".port");
        if (target && begun && target.port !== begun && target.port.out !== begun.out) { connect(begun, target.port); } else { letGo(); }
    } else if (was.what === "ground" && !was.moved) {
        if (was.head) { setCurrent(was.head, true); openUnit(was.head.unit, !was.head.unit.open); } else if (was.wire) { choose(was.wire); } else { letGo(); choose(null); }
    } else if (was.what === "port") {
        setCurrent(was.port.box, true);
        pick(was.port);
    }
}
function wheel(e) {
    e.preventDefault();
    const r = $("canvas").getBoundingClientRect();
    if (e.shiftKey) { camera.x -= e.deltaY || e.deltaX; look(); return; }
    zoomAt(e.clientX - r.left, e.clientY - r.top, 1.0015 ** Math.max(-300, Math.min(300, -e.deltaY)));
}

// ---- keys ------------------------------------------------------------------------------------------

function setCurrent(box, focus) {
    if (current) { current.tabIndex = -1; }
    current = box;
    box.tabIndex = 0;
    if (focus) { box.focus({ preventScroll: true }); }
}
function focusPort(p) {
    openUnit(p.unit, true);
    setCurrent(p.box, true);
    bring(p.unit.x, p.y, p.unit.w);
}
function focusUnit(u) {
    setCurrent(u.head, true);
    bring(u.x, u.y, u.w);
}
function neighbour(way) { // from the head or a port to the next
    const p = document.activeElement.port, u = p ? p.unit : document.activeElement.unit;
    if (!u) { return; }
    const order = model.columns.flat(), i = order.indexOf(u);
    if (way === "PageDown" || way === "PageUp") { focusUnit(order[(i + (way === "PageDown" ? 1 : order.length - 1)) % order.length]); return; }
    if (!p) {
        if (way === "ArrowDown" && u.open && (u.left[0] || u.right[0])) { focusPort(u.left[0] || u.right[0]); return; }
        const next = { ArrowDown: order[i + 1], ArrowUp: order[i - 1], ArrowRight: beside(u, 1), ArrowLeft: beside(u, -1) }[way];
        if (next) { focusUnit(next); }
        return;
    }
    const list = p.out ? u.right : u.left, k = list.indexOf(p), other = p.out ? u.left : u.right;
    if (way === "ArrowDown" && k + 1 < list.length) { focusPort(list[k + 1]); }
    if (way === "ArrowUp") { if (k > 0) { focusPort(list[k - 1]); } else { focusUnit(u); } }
    const across = (way === "ArrowRight") !== p.out;
    if ((way === "ArrowLeft" || way === "ArrowRight") && across && other.length) { focusPort(other[Math.min(k, other.length - 1)]); return; }
    if (way === "ArrowLeft" || way === "ArrowRight") { const next = beside(u, way === "ArrowRight" ? 1 : -1); if (next) { focusUnit(next); } }
}
function beside(u, way) {
    const i = model.columns.findIndex((c) => c.includes(u)), column = model.columns[i + way];
    return column ? column.reduce((best, v) => (Math.abs(v.y - u.y) < Math.abs(best.y - u.y) ? v : best)) : null;
}
function worldKey(e) {
    const p = e.target.port, u = e.target.unit;
    if (e.key.startsWith("Arrow") || e.key.startsWith("Page")) { e.preventDefault(); neighbour(e.key); return; }
    if (e.key === "Enter" || e.key === " ") {
        e.preventDefault();
        if (p) { pick(p); } else if (u) { openUnit(u, !u.open); }
    }
    if (e.key.toLowerCase() === "p" && p && !p.out && model.proposed.has(p) && !p.wires.length) { connect(model.proposed.get(p).from, p); }
    if ((e.key === "Delete" || e.key === "Backspace") && p && !p.out && p.wires.length) { e.stopPropagation(); disconnect(p.wires[0]); }
}
function pageKey(e) {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName), held = e.ctrlKey || e.metaKey, key = e.key.toLowerCase();
    if (document.querySelector("dialog[open]")) { return; }
    if (held && key === "s") { e.preventDefault(); save(false); return; }
    if (typing) { return; }
    if (held && (key === "z" || key === "y")) { e.preventDefault(); change(key === "y" || e.shiftKey ? "redo" : "undo", {}); return; }
    if (held || e.altKey) { return; }
    const box = $("canvas"), wire = model.chosen ? wireOf(model.chosen) : null;
    const keys = { "/": () => $("filter").focus(), f: fitAll, "+": () => zoomAt(box.clientWidth / 2, box.clientHeight / 2, 1.25), "=": () => zoomAt(box.clientWidth / 2, box.clientHeight / 2, 1.25),
        "-": () => zoomAt(box.clientWidth / 2, box.clientHeight / 2, 0.8), "?": () => $("keys").showModal(), escape: () => { letGo(); choose(null); },
        delete: () => { if (wire && wire.line) { disconnect(wire); } } };
    if (keys[key]) { e.preventDefault(); keys[key](); }
}

// ---- search ----------------------------------------------------------------------------------------

let hits = [], hit = -1;
function search() {
    const words = $("filter").value.toLowerCase().split(/\s+/).filter(Boolean), has = (key) => words.every((w) => key.includes(w));
    hit = -1;
    hits = words.length ? model.units.flatMap((u) => [...(has(u.name.toLowerCase()) ? [u] : []), ...u.left.concat(u.right).filter((p) => has(p.key))]) : [];
    const found = new Set(hits), units = new Set(hits.map((x) => x.unit || x));
    document.body.classList.toggle("searching", words.length > 0);
    look();
    for (const u of model.units) { u.box.classList.toggle("hit", units.has(u)); }
    for (const box of $("world").querySelectorAll(".port")) { box.classList.toggle("hit", found.has(box.port)); }
    say($("found"), words.length ? (hits.length ? count(hits.length) + " found" : "nothing found") : "");
}
function searchKey(e) {
    if (e.key === "Escape") { $("filter").value = ""; search(); $("filter").blur(); }
    if (e.key !== "Enter" || !hits.length) { return; }
    e.preventDefault();
    hit = (hit + (e.shiftKey ? hits.length - 1 : 1)) % hits.length;
    const x = hits[hit];
    if (x.unit) { openUnit(x.unit, true); setCurrent(x.box, false); bring(x.unit.x, x.y, x.unit.w); x.box.classList.add("hit"); } else { setCurrent(x.head, false); bring(x.x, x.y, x.w); }
    say($("found"), (hit + 1) + " of " + count(hits.length));
}

// ---- the beginning ---------------------------------------------------------------------------------

function takeHello(hello) {
    takeModel(hello);
    $("lost").hidden = true;
    model.source.ask("state", {}).then((reply) => {
        takeState(reply.state);
        model.state = null;
        placeAll();
        buildBoxes();
        stack();
        show_(reply.state);
        fitAll();
        if (model.columns[0] && model.columns[0][0]) { setCurrent(model.columns.flat()[0].head, false); }
        document.body.dataset.state = "ready";
    });
}
model.source = new Asker("cardan.draw.1", (what, m) => {
    if (what === "hello") { takeHello(m); }
    if (what === "lost") { show($("lost"), true); document.body.dataset.state = "lost"; }
});
beginTheme();
onTheme(() => { if (model.state) { look(); } });
new ResizeObserver(() => { if (model.state) { look(); } }).observe($("canvas"));
const box = $("canvas");
box.addEventListener("pointerdown", handDown);
addEventListener("pointermove", handMove);
addEventListener("pointerup", handUp);
addEventListener("pointercancel", handUp);
box.addEventListener("wheel", wheel, { passive: false });
$("world").addEventListener("keydown", worldKey);
addEventListener("keydown", pageKey);
$("filter").addEventListener("input", search);
$("filter").addEventListener("keydown", searchKey);
press("undo", () => change("undo", {}));
press("redo", () => change("redo", {}));
press("save", () => save(false));
press("fit", fitAll);
press("zoom-in", () => zoomAt(box.clientWidth / 2, box.clientHeight / 2, 1.25));
press("zoom-out", () => zoomAt(box.clientWidth / 2, box.clientHeight / 2, 0.8));
press("help", () => $("keys").showModal());
press("fold", () => {
    const open = !model.units.some((u) => u.open);
    for (const u of model.units) { u.open = open; refreshBox(u); }
    say($("fold"), open ? "Fold all" : "Open all");
    placeAll();
    drawWires();
    fitAll();
});
$("ask").addEventListener("close", () => { if ($("ask").returnValue === "yes") { save(true); } });
$("text-box").addEventListener("toggle", readText);
for (const key of ["step", "stop", "results"]) {
    const input = $("set-" + key);
    input.addEventListener("change", async () => {
        const text = input.value.trim();
        if (text === input.was) { return; }
        if (!await change("set", { key, value: text })) { input.value = input.was; }
    });
}
$("run").addEventListener("submit", (e) => { e.preventDefault(); document.activeElement.blur(); });
addEventListener("beforeunload", (e) => { if (model.state && !model.state.saved && model.state.undo > 0) { e.preventDefault(); } });
addEventListener("focus", () => { if (model.state && document.body.dataset.state === "ready") { model.source.ask("state", {}).then((r) => show_(r.state)).catch(() => {}); } });
