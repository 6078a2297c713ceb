// Test benches: a card for each, and the emergency stop.
import { $, el, mark, say, show, tell } from "./dom.js";
import { DASH, MINUS, NARROW, count, duration, figure } from "./numbers.js";
import { lastOf } from "./samples.js";
import { send } from "./socket.js";
import { noEmergency, onGate, run, stopping } from "./state.js";

const PLACES = ["registered", "prepared", "conditioning", "conditioned", "running", "stopping", "safe"];
const CONDITIONING = 2, RUNNING = 4, STOPPING = 5, SAFE = 6;
const STEPS = ["torque off", "speed down", "voltage down", "cool down", "stand down", "safe"];
const SOURCES = { bench: "the bench", model: "the model", coming: "the model; the bench comes back" };
const USES = ["auto", "bench", "model"];
const ESTIMATES = 6; // rows of a card, of the stand-in and of twins each

let cards = new Map(); // unit -> card
let pressed = false;   // the emergency stop, by this page

// ---- numbers -------------------------------------------------------------------------------

const known = (x) => x !== null && x !== undefined && !Number.isNaN(x);
const number = (x, digits) => (known(x) ? figure(x, digits || 4) : DASH);
const bound = (x) => (known(x) ? String(Number(x.toPrecision(6))).replace("-", MINUS) : "");
const measure = (unit) => (unit && unit !== "1" ? NARROW + unit : "");
const signed = (x) => (known(x) ? (x > 0 ? "+" : "") + figure(x, 3) : DASH);
function elapsed(s) { // s, as a stopwatch would show it
    if (!known(s)) { return ""; }
    if (s < 99.95) { return Math.max(0, s).toFixed(1) + NARROW + "s"; }
    const whole = Math.round(s);
    return Math.floor(whole / 60) + ":" + String(whole % 60).padStart(2, "0") + NARROW + "min";
}

// ---- limits --------------------------------------------------------------------------------

export function limitRow(q) {
    const row = {
        name: q.name,
        fill: el("i", { class: "fill" }), zero: el("i", { class: "zero" }),
        low: el("i", { class: "end" }), high: el("i", { class: "end" }),
        needle: el("i", { class: "needle" }), set: el("i", { class: "set" }),
        min: el("span"), max: el("span"),
        value: el("b"), wanted: el("span", { class: "wanted" }), margin: el("span", { class: "margin" }),
    };
    row.track = el("div", { class: "track", "aria-hidden": "true" },
        row.fill, row.zero, row.low, row.high, row.needle, row.set);
    row.box = el("li", { class: "limit" },
        el("span", { class: "name", text: q.name, title: q.name }),
        el("div", { class: "scale" }, row.track, el("div", { class: "ends" }, row.min, row.max)),
        el("span", { class: "value" }, row.value, el("span", { class: "unit", text: measure(q.unit) })),
        el("span", { class: "beside" }, row.wanted, row.margin));
    return row;
}
// Part of the drawn range, which goes a little beyond the limits on both sides.
function scaleOf(q) {
    const all = [q.measured, q.set, q.min, q.max].filter(known);
    let low = known(q.min) ? q.min : Math.min(0, ...all), high = known(q.max) ? q.max : Math.max(0, ...all);
    if (!(high > low)) { high = low + 1; }
    const edge = 0.05 * (high - low);
    low -= edge;
    high += edge;
    return (x) => Math.max(0, Math.min(1, (x - low) / (high - low)));
}
function put(node, part) {
    const left = (100 * part).toFixed(2) + "%";
    if (node.style.left !== left) { node.style.left = left; }
}
// What is measured may be beyond by its noise.
const beyond = (q) => known(q.distance) && q.distance < 0 && !(q.margin >= -1);
function quality(q) {
    if (q.clamped || beyond(q)) { return "bad"; }
    return known(q.margin) && q.margin < 10 ? "watch" : "good";
}
function marginText(q) {
    if (!q.side) { return ""; }
    const name = q.side === "max" ? "upper" : "lower";
    if (beyond(q)) { return figure(-q.distance, 3) + measure(q.unit) + " beyond the " + name + " limit"; }
    if (q.clamped) { return "held at a limit"; }
    if (q.distance <= 0) { return "at the " + name + " limit"; }
    if (known(q.margin)) { return q.margin.toFixed(q.margin < 9.95 ? 1 : 0) + NARROW + "% to the " + name + " limit"; }
    return figure(q.distance, 3) + measure(q.unit) + " to the " + name + " limit";
}
export function refreshLimit(row, q) {
    const at = scaleOf(q), origin = at(known(q.min) && q.min > 0 ? q.min : known(q.max) && q.max < 0 ? q.max : 0);
    mark(row.box, "data-q", quality(q));
    show(row.needle, known(q.measured));
    show(row.fill, known(q.measured));
    if (known(q.measured)) {
        const x = at(q.measured);
        put(row.needle, x);
        put(row.fill, Math.min(x, origin));
        const width = (100 * Math.abs(x - origin)).toFixed(2) + "%";
        if (row.fill.style.width !== width) { row.fill.style.width = width; }
    }
    show(row.set, known(q.set));
    if (known(q.set)) { put(row.set, at(q.set)); }
    show(row.low, known(q.min));
    show(row.high, known(q.max));
    if (known(q.min)) { put(row.low, at(q.min)); }
    if (known(q.max)) { put(row.high, at(q.max)); }
    put(row.zero, origin);
    say(row.min, bound(q.min));
    say(row.max, bound(q.max));
    say(row.value, number(q.measured));
    say(row.wanted, known(q.set) ? "set " + number(q.set) : "");
    say(row.margin, marginText(q));
}

// ---- a card --------------------------------------------------------------------------------

function makeCard(unit) {
    const c = { unit, limits: [], limitKey: "", estimates: [], use: "", known: false };
    c.word = el("span", { class: "word" });
    c.since = el("span", { class: "since" });
    c.facts = el("span", { class: "facts-line" });
    c.places = PLACES.map((name) => {
        const time = el("span", { class: "time" });
        return { time, box: el("li", null, el("span", { class: "dot", "aria-hidden": "true" }), el("span", { class: "label", text: name }), time) };
    });
    c.say = el("p", { class: "bench-say", role: "status" });
    c.heatBar = el("i");
    c.heatText = el("span");
    c.heat = el("div", { class: "heat", hidden: true },
        el("div", { class: "heat-track", role: "progressbar", "aria-label": "Conditioning of " + unit, "aria-valuemin": "0", "aria-valuemax": "100" }, c.heatBar),
        c.heatText);
    c.limitList = el("ul", { class: "limits", "aria-label": "Limits of " + unit });
    c.steps = STEPS.map((name) => {
        const time = el("span", { class: "time" });
        return { time, box: el("li", null, el("span", { class: "tick", "aria-hidden": "true" }), el("span", { class: "label", text: name }), time) };
    });
    c.stop = el("div", { class: "stops", hidden: true }, el("h4", { text: "Safe stop" }),
        el("ol", { "aria-label": "Safe stop of " + unit }, ...c.steps.map((s) => s.box)));
    c.source = el("b");
    c.blend = el("i");
    c.counts = el("span", { class: "note" });
    c.reason = el("p", { class: "note" });
    c.choice = el("div", { class: "choice", role: "group", "aria-label": "Who drives " + unit, hidden: true });
    c.drive = el("div", { class: "drive", hidden: true },
        el("p", { class: "drive-line" }, el("span", { class: "drive-word", text: "Driven by " }, c.source), c.counts, c.choice),
        el("div", { class: "blend", title: "How much of what the run gets is the bench's own", "aria-hidden": "true" }, c.blend), c.reason);
    c.twin = el("table", { class: "estimates", "aria-label": "Estimates beside what is measured at " + unit, hidden: true });
    c.box = el("article", { class: "bench", "data-unit": unit, "aria-label": "Bench " + unit },
        el("div", { class: "bench-in" },
            el("div", { class: "bench-head" }, el("h3", { text: unit, title: unit }), c.word, c.since, c.facts),
            el("ol", { class: "strip", "aria-label": "Session of " + unit }, ...c.places.map((p) => p.box)),
            c.say, c.heat,
            el("div", { class: "bench-body" }, c.limitList, el("div", { class: "bench-side" }, c.stop, c.drive, c.twin))));
    return c;
}

// What matters most about a bench, in a sentence.
function sentence(b, place) {
    const because = b.reason_name && b.reason_name !== "none" ? "stopped by " + b.reason_name : "";
    if (place >= STOPPING) {
        const own = b.reason > 1 ? b.why || b.stopping : place === SAFE ? "" : b.stopping.replace(/^stop: /, "");
        return { kind: b.reason > 1 ? "bad" : "", text: [because, own].filter(Boolean).join(": ") };
    }
    if (b.lost) { return { kind: "bad", text: "It does not answer" + (known(b.last_data) ? " since " + elapsed(b.now - b.last_data) : "") + "." }; }
    if (place < CONDITIONING && b.missing) { return { kind: "watch", text: b.missing }; }
    if (b.limits.some((q) => q.clamped) && b.why) { return { kind: "bad", text: b.why }; }
    if (place < STOPPING && /^(refused|fault)/.test(b.why)) { return { kind: "bad", text: b.why }; }
    return { kind: "", text: "" };
}
function wordOf(b) {
    if (b.lost && b.place < SAFE) { return "no answer"; }
    if (b.place < 0) { return b.state < 0 ? "not reached yet" : "waits"; }
    if (b.place === STOPPING && b.phase_name) { return b.phase_name; }
    return PLACES[b.place];
}
function toneOf(b) {
    if (b.lost && b.place < SAFE) { return "bad"; }
    if (b.place === STOPPING) { return b.reason > 1 ? "bad" : "watch"; }
    if (b.place === SAFE) { return "done"; }
    if (b.place === RUNNING) { return "good"; }
    return b.place === CONDITIONING ? "warm" : b.place >= 0 ? "done" : "none";
}

function refreshStrip(c, b) {
    const first = b.entered.find(known);
    c.places.forEach((p, i) => {
        const at = b.entered[i];
        mark(p.box, "data-is", i === b.place ? "now" : i < b.place && known(at) ? "done" : i < b.place ? "passed" : "ahead");
        mark(p.box, "aria-current", i === b.place ? "step" : null);
        say(p.time, known(at) ? (at === first ? "0" + NARROW + "s" : elapsed(at - first)) : "");
    });
}
function refreshHeat(c, b) {
    const warm = b.place === CONDITIONING && b.heat !== null;
    show(c.heat, warm || (b.place === CONDITIONING && b.progress !== ""));
    if (c.heat.hidden) { return; }
    const part = warm && b.heat.first > 0 ? Math.max(0, Math.min(1, 1 - b.heat.now / b.heat.first)) : 0;
    const scale = "scaleX(" + part.toFixed(3) + ")";
    if (c.heatBar.style.transform !== scale) { c.heatBar.style.transform = scale; }
    mark(c.heatBar.parentNode, "aria-valuenow", String(Math.round(100 * part)));
    const left = warm ? figure(b.heat.now, 3) + NARROW + "K to go" : "";
    say(c.heatText, [b.progress.replace(/^conditioning: /, ""), left].filter(Boolean).join(" · "));
}
function refreshStop(c, b) {
    const asked = stopping() && b.place >= 0 && b.place < STOPPING && b.extension;
    show(c.stop, b.stop !== null || asked);
    const times = b.stop || [];
    const next = times.findIndex((t) => !known(t));
    c.steps.forEach((s, i) => {
        const done = known(times[i]);
        mark(s.box, "data-is", done ? "done" : b.stop !== null && i === next ? "now" : "ahead");
        say(s.time, done ? elapsed(times[i]) : b.stop !== null && i === next ? "…" : "");
    });
}
function refreshDrive(c, b) {
    const s = b.standby;
    show(c.drive, s !== null);
    if (s === null) { return; }
    say(c.source, SOURCES[s.source] || s.source);
    mark(c.drive, "data-source", s.source);
    const scale = "scaleX(" + (known(s.weight) ? Math.max(0, Math.min(1, s.weight)) : 0).toFixed(3) + ")";
    if (c.blend.style.transform !== scale) { c.blend.style.transform = scale; }
    say(c.counts, s.takeovers || s.returns
        ? count(s.takeovers) + " takeover" + (s.takeovers === 1 ? "" : "s") + ", " + count(s.returns) + " return" + (s.returns === 1 ? "" : "s") : "");
    say(c.reason, s.text);
    show(c.reason, s.text !== "");
}
function refreshCard(c, b) {
    c.known = true;
    mark(c.box, "data-tone", toneOf(b));
    mark(c.box, "data-place", b.place < 0 ? "none" : PLACES[b.place]);
    say(c.word, wordOf(b));
    const since = b.place >= 0 && known(b.entered[b.place]) ? b.now - b.entered[b.place] : null;
    say(c.since, known(since) && b.place < SAFE ? "for " + elapsed(since) : "");
    const facts = [b.state_name, known(b.round_trip) ? "round trip " + duration(b.round_trip) : "",
        b.clamps ? count(b.clamps) + NARROW + "× clamped" : "", b.refused ? count(b.refused) + NARROW + "× refused" : "", b.security,
        ...(b.calibrations || []).map((k) => k.name + " calibrated " + k.date.slice(0, 10) + " by " + k.by)];
    say(c.facts, facts.filter(Boolean).join(" · "));
    if (known(b.round_trip_max)) { mark(c.facts, "title", "round trip " + duration(b.round_trip_max) + " at worst, " + b.gap + " numbers on their way"); }
    refreshStrip(c, b);
    const line = sentence(b, b.place);
    say(c.say, line.text);
    mark(c.say, "data-kind", line.kind);
    show(c.say, line.text !== "");
    refreshHeat(c, b);
    const key = b.limits.map((q) => q.name + " " + q.unit).join("\n");
    if (key !== c.limitKey) {
        c.limitKey = key;
        c.limits = b.limits.map(limitRow);
        c.limitList.replaceChildren(...c.limits.map((r) => r.box));
    }
    b.limits.forEach((q, i) => refreshLimit(c.limits[i], q));
    show(c.limitList, b.limits.length > 0);
    mark(c.limitList, "title", b.place >= STOPPING ? "As it was before the stop: no data come any more" : null);
    refreshStop(c, b);
    refreshDrive(c, b);
    mark(c.box, "data-side", c.stop.hidden && c.drive.hidden && c.twin.hidden ? "no" : "yes");
}

// ---- who drives, and what the model says ---------------------------------------------------

function buildChoice(c) {
    const name = c.unit + ".standby.use";
    const setting = run.hello && run.hello.settings.find((s) => s.name === name);
    show(c.choice, Boolean(setting));
    if (!setting) { return; }
    const words = { auto: "Automatic", bench: "Use bench", model: "Use model" };
    c.use = USES[setting.start] || "";
    c.choice.replaceChildren(...USES.map((use) => el("button", {
        type: "button", class: "cmd", "data-use": use, text: words[use],
        onclick: () => send("set", { name, value: use }, (reply) => { if (!reply.ok) { tell(reply.error); } }),
    })));
    refreshUse(c);
}
function refreshUse(c) {
    for (const button of c.choice.children) { mark(button, "aria-pressed", button.dataset.use === c.use ? "true" : "false"); }
}
// Outputs with an estimate beside them: of the stand-in, and of twins that the bench feeds.
function standInRows(c, signals) {
    const prefix = c.unit + ".model.", used = new Set(run.hello.links.map((l) => l.from)), own = (s) => c.unit + "." + s.name.slice(prefix.length);
    const rows = run.hello.signals.filter((s) => s.name.startsWith(prefix)).map((s) => (
        { name: s.name.slice(prefix.length), unit: s.unit, model: s.name, measured: signals.has(own(s)) ? own(s) : "", sd: "", shift: 0 }));
    rows.sort((a, b) => used.has(b.measured) - used.has(a.measured)); // what the run uses comes first
    return rows.slice(0, ESTIMATES);
}
function twinRows(u, signals) {
    const unit = run.hello.units[u].name + ".", sources = new Map(run.hello.links.map((l) => [l.to, l.from]));
    const own = run.hello.signals.filter((s) => s.owner === u && s.type === "real" && s.name.startsWith(unit) && !s.name.endsWith(".sd"));
    return own.slice(0, ESTIMATES).map((s) => {
        const measured = sources.get(s.name + ".measured") || "", from = signals.get(measured);
        const shift = from && from.unit === "degC" && s.unit === "K" ? -273.15 : 0;
        return {
            name: s.name.slice(unit.length), unit: shift ? from.unit : s.unit, model: s.name, shift,
            measured: from && (shift || from.unit === s.unit) ? measured : "", sd: signals.has(s.name + ".sd") ? s.name + ".sd" : "",
        };
    });
}
function findEstimates(c) {
    const signals = new Map(run.hello.signals.map((s) => [s.name, s]));
    const at = run.hello.units.findIndex((u) => u.name === c.unit);
    const isTwin = (u) => /twin/.test((run.hello.units[u] || {}).kind || "");
    const twins = Array.from(new Set(run.hello.links.filter((l) => l.from_unit === at && isTwin(l.to_unit)).map((l) => l.to_unit)));
    const groups = [["stand-in", standInRows(c, signals)], ...twins.map((u) => [run.hello.units[u].name, twinRows(u, signals)])];
    c.estimates = groups.flatMap((g) => g[1]);
    c.twin.replaceChildren(...groups.filter((g) => g[1].length > 0).map(([name, rows]) => el("tbody", null,
        el("tr", { class: "of" }, el("th", { scope: "rowgroup", text: name, title: name }), ...["measured", "model", "difference"].map((text) => el("th", { scope: "col", class: "r", text }))),
        ...rows.map((r) => {
            r.cells = [0, 1, 2].map(() => el("td", { class: "r" }));
            const unit = el("span", { class: "unit", text: measure(r.unit) });
            return el("tr", null, el("th", { scope: "row", title: r.model + measure(r.unit) }, el("span", { text: r.name }), unit), ...r.cells);
        }))));
    show(c.twin, c.estimates.length > 0);
}
export function refreshEstimates() {
    for (const c of cards.values()) {
        for (const r of c.estimates) {
            const measured = r.measured ? lastOf(r.measured) : NaN, model = lastOf(r.model) + r.shift;
            say(r.cells[0], number(measured));
            say(r.cells[1], number(model));
            const sd = r.sd ? lastOf(r.sd) : NaN;
            say(r.cells[2], known(measured) && known(model) ? signed(measured - model) : known(sd) ? "±" + NARROW + figure(sd, 2) : DASH);
        }
    }
}

// ---- the emergency stop --------------------------------------------------------------------

function gateEmergency() {
    const button = $("emergency"), reason = noEmergency();
    const over = stopping();
    show(button, cards.size > 0);
    mark(document.body, "data-benches", cards.size > 0 ? "yes" : null);
    show($("benches"), cards.size > 0);
    if (button.disabled !== (reason !== "")) { button.disabled = reason !== ""; }
    mark(button, "data-is", pressed ? "pressed" : over ? "over" : "armed");
    say($("emergency-why"), pressed && !over ? "sent to all benches" : over ? "" : reason);
    mark(button, "title", reason ? "Not possible: " + reason : "Stops all benches at once (Ctrl+Shift+X)");
}
export function pressEmergency() {
    if (cards.size === 0 || noEmergency() !== "" || pressed) { return; }
    pressed = true;
    gateEmergency();
    send("emergency", {}, (reply) => {
        if (reply.ok) { return; }
        pressed = false;
        tell(reply.error);
        gateEmergency();
    });
}

// ---- what comes ----------------------------------------------------------------------------

export function takeBenches(list) { // true: there are others than before, with other signals to watch
    const names = list.map((b) => b.unit), others = names.join("\n") !== Array.from(cards.keys()).join("\n");
    if (others) {
        cards = new Map(names.map((name) => [name, makeCard(name)]));
        $("bench-cards").replaceChildren(...Array.from(cards.values(), (c) => c.box));
        mark($("bench-cards"), "data-count", String(names.length));
        if (run.hello) { meetBenches(); }
    }
    for (const b of list) { refreshCard(cards.get(b.unit), b); }
    gateEmergency();
    return others;
}
export function meetBenches() {
    for (const c of cards.values()) {
        buildChoice(c);
        findEstimates(c);
    }
    gateEmergency();
}
export function learnUse(e) { // what was set, by whichever page
    const set = e.kind === "mark" ? /^(?:page \S+: )?(.+)\.standby\.use = (\S+)/.exec(e.text) : null;
    const c = set && cards.get(set[1]);
    if (c) {
        c.use = set[2];
        refreshUse(c);
    }
}
export const anyBench = () => cards.size > 0;
export const rearmEmergency = () => { pressed = false; }; // another connection, perhaps another run
export const watchedByBenches = () =>
    Array.from(cards.values()).flatMap((c) => c.estimates.flatMap((r) => [r.model, r.measured, r.sd].filter(Boolean)));

export function beginBenches() {
    onGate(gateEmergency);
    $("emergency").addEventListener("pointerdown", (e) => { if (e.button === 0) { pressEmergency(); } }); // not when it is let go
    $("emergency").addEventListener("click", pressEmergency); // by keys
}
