// The desk: levers of drivers, moved by hand. Who has taken a seat gives signs of life while the page
// is there to be seen; without them the run does what its description says. docs/how-to/operator.md
import { limitRow, refreshLimit } from "./benches.js";
import { $, el, mark, say, show, store, tell } from "./dom.js";
import { NARROW, exact, figure, plain, withUnit } from "./numbers.js";
import { watch } from "./plots.js";
import { SIZE, ring } from "./samples.js";
import { send } from "./socket.js";
import { canCommand, now, onGate, run, standing } from "./state.js";

const BEAT = 100;  // ms between two signs of life
const QUICK = 20;  // ms between two positions of a pedal
const KEPT = "cardan.seat"; // what this tab had: a page that is loaded again within the silence has it still

let seats = []; // { unit, spec, index, mine, rows, sent, dirty }

// ---- taking and giving back ----------------------------------------------------------------------

function setMine(seat, mine, why) {
    if (seat.mine && !mine && why) { tell(why); }
    seat.mine = mine;
    if (mine) { seat.rows.forEach((r) => { r.wanted = targetOf(seat, r); }); }
    refreshDesk();
}
export function takeSeat(seat, done) {
    send("take", { unit: seat.unit }, (reply) => {
        if (reply.ok) { setMine(seat, true); } else { tell(reply.error); }
        if (done) { done(reply.ok); }
    });
}
function give(seat) {
    send("release", { unit: seat.unit }, (reply) => { if (!reply.ok) { tell(reply.error); } });
    setMine(seat, false);
}
// Start of a desk: whoever starts has it. Others start as they did.
export function takeAll(then) {
    const free = seats.filter((s) => !s.mine);
    if (!run.hello.desk || free.length === 0) { then(); return; }
    let left = free.length, good = true;
    for (const s of free) {
        takeSeat(s, (ok) => {
            good = good && ok;
            if (--left === 0 && good) { then(); }
        });
    }
}

// ---- signs of life ---------------------------------------------------------------------------------

// A page that nobody sees drives nothing.
function beat(seat, force) {
    if (!seat.mine || !run.connected || document.hidden || standing() === null) { return; }
    const t = now();
    if (t - seat.sent < (force ? QUICK : BEAT) || seat.waits > 20) { return; }
    seat.sent = t;
    seat.dirty = false;
    seat.waits++;
    store.set("sessionStorage", KEPT, JSON.stringify({ unit: seat.unit, at: Date.now() }));
    const values = run.hello.desk ? undefined : seat.rows.map((r) => r.wanted);
    send("drive", { unit: seat.unit, values }, (reply) => {
        seat.waits--;
        if (!reply.ok) { setMine(seat, false, reply.error); }
    });
}
export function beatAll() {
    for (const s of seats) { beat(s, s.dirty); }
}

// ---- levers ----------------------------------------------------------------------------------------

const statusOf = (seat) => ((run.status && run.status.seats) || [])[seat.index] || null;
function targetOf(seat, row) {
    const s = statusOf(seat), t = s ? s.targets[row.index] : null;
    return t === null || t === undefined ? row.lever.rest : t;
}
// What the run has: at the input that the lever is connected to.
function valueOf(row) {
    const links = run.status ? run.status.links : [];
    return row.link >= 0 && links[row.link] ? links[row.link].value : null;
}
const finite = (x) => x !== null && x !== undefined;
const range = (l) => (finite(l.min) || finite(l.max) ? withUnit(exact(l.min) + " … " + exact(l.max), l.unit) : "no limits known");

function field(id, label, title) {
    return el("input", { id, type: "text", inputmode: "decimal", class: "cmd", autocomplete: "off", spellcheck: "false", "aria-label": label, title });
}
// A set value of a bench: where to, how fast, go, hold.
function setRow(seat, lever, index) {
    const name = seat.unit + "." + lever.name, id = "lever-" + seat.index + "-" + index;
    const row = { lever, index, gauge: limitRow({ name: lever.name, unit: lever.unit }) };
    row.target = field(id, "Target of " + lever.name, range(lever));
    row.rate = field(id + "-rate", "Rate of " + lever.name, finite(lever.rate) ? "up to " + withUnit(exact(lever.rate), lever.unit + "/s") : "at once unless given");
    row.rate.placeholder = finite(lever.rate) ? plain(lever.rate) : "at once";
    row.error = el("p", { class: "error", role: "alert", hidden: true });
    const number = (text) => (text.trim() === "" ? null : Number(text.trim().replace(",", ".")));
    const ask = (members) => send("go", Object.assign({ lever: name }, members), (reply) => {
        show(row.error, !reply.ok);
        say(row.error, reply.ok ? "" : reply.error);
    });
    const refuse = (text) => { say(row.error, text); show(row.error, true); };
    const go = () => {
        const target = number(row.target.value), rate = number(row.rate.value);
        if (target === null || Number.isNaN(target)) { refuse("Target: expected a number, " + range(lever) + "."); return; }
        if (Number.isNaN(rate)) { refuse("Rate: expected a number in " + (lever.unit || "1") + "/s, or nothing."); return; }
        ask(rate === null ? { target } : { target, rate });
    };
    for (const f of [row.target, row.rate]) {
        f.addEventListener("keydown", (e) => { if (e.key === "Enter") { go(); } });
    }
    const per = lever.unit && lever.unit !== "1" ? lever.unit : "";
    row.box = el("div", { class: "lever", role: "group", "aria-label": name }, row.gauge.box,
        el("div", { class: "lever-do" },
            el("label", { for: id, text: "Target" }), row.target, el("span", { class: "unit", text: per }),
            el("label", { for: id + "-rate", text: "Rate" }), row.rate, el("span", { class: "unit", text: per ? per + "/s" : "1/s" }),
            el("button", { type: "button", class: "cmd go", text: "Go", onclick: go }),
            el("button", { type: "button", class: "cmd", text: "Hold", title: "Stay where it is", onclick: () => ask({ target: null }) })),
        row.error);
    return row;
}
function moveTo(seat, row, x) {
    row.wanted = x;
    seat.dirty = true;
    beat(seat, true);
    refreshRow(seat, row);
}
// A pedal: where the hand is, it is.
function pedalRow(seat, lever, index) {
    const row = { lever, index, wanted: lever.rest, value: el("b"), said: el("output", { class: "lever-value" }) };
    const name = el("span", { class: "name", text: lever.name, title: seat.unit + "." + lever.name });
    const pad = lever.gamepad ? el("span", { class: "note", text: "gamepad: " + lever.gamepad }) : null;
    if (lever.items.length) {
        row.buttons = lever.items.map((text, i) => el("button", { type: "button", class: "cmd", role: "radio", text, onclick: () => moveTo(seat, row, i) }));
        row.control = el("div", { class: "choice", role: "radiogroup", "aria-label": lever.name }, ...row.buttons);
    } else {
        const bounded = finite(lever.min) && finite(lever.max);
        row.control = el("input", {
            type: bounded ? "range" : "number", class: "cmd", min: lever.min, max: lever.max, "aria-label": lever.name,
            step: lever.whole ? 1 : bounded ? (lever.max - lever.min) / 1000 : "any",
        });
        row.control.value = lever.rest;
        row.control.addEventListener("input", () => {
            const x = Number(row.control.value);
            if (row.control.value !== "" && Number.isFinite(x)) { moveTo(seat, row, x); }
        });
    }
    row.box = el("div", { class: "pedal", role: "group", "aria-label": seat.unit + "." + lever.name },
        name, row.control, el("span", { class: "value" }, row.value, el("span", { class: "unit", text: lever.unit && lever.unit !== "1" ? NARROW + lever.unit : "" })), pad);
    return row;
}

// ---- gamepads ----------------------------------------------------------------------------------------

function readPad(pad, lever) {
    const [kind, number, reversed] = lever.gamepad.split(" ");
    if (kind === "button") {
        const b = pad.buttons[Number(number)];
        return b ? b.value : null;
    }
    const a = pad.axes[Number(number)];
    return a === undefined ? null : (reversed ? 1 - a : 1 + a) / 2; // -1 .. 1
}
function pollPads() {
    const pad = navigator.getGamepads ? Array.from(navigator.getGamepads()).find((p) => p && p.connected) : null;
    for (const seat of seats) {
        if (!seat.mine) { continue; }
        for (const row of seat.rows) {
            if (!row.lever.gamepad || run.hello.desk) { continue; }
            const part = pad ? readPad(pad, row.lever) : null;
            if (part === null && row.byPad) { // it was pulled out
                row.byPad = false;
                row.part = undefined;
                moveTo(seat, row, row.lever.rest);
            } else if (part !== null && Math.abs(part - (row.part === undefined ? part : row.part)) > 0.002) {
                row.byPad = true;
                const x = row.lever.min + Math.max(0, Math.min(1, part)) * (row.lever.max - row.lever.min);
                moveTo(seat, row, row.lever.whole ? Math.round(x) : x);
                row.part = part;
            } else if (part !== null && row.part === undefined) {
                row.part = part;
            }
        }
    }
}

// ---- what is shown -------------------------------------------------------------------------------------

function refreshRow(seat, row) {
    const value = valueOf(row);
    if (row.gauge) {
        const l = row.lever, target = targetOf(seat, row);
        refreshLimit(row.gauge, { unit: l.unit, min: l.min, max: l.max, set: target, measured: value, margin: null, distance: null, side: "" });
        return;
    }
    say(row.value, finite(value) ? figure(value, 4) : figure(row.wanted, 4));
    if (row.buttons) {
        row.buttons.forEach((b, i) => mark(b, "aria-checked", i === row.wanted ? "true" : "false"));
    } else if (document.activeElement !== row.control || row.byPad) {
        row.control.value = row.wanted;
    }
}
export function refreshDesk() {
    for (const seat of seats) {
        const s = statusOf(seat), other = s && s.taken && !seat.mine;
        if (!seat.mine) { seat.rows.forEach((r) => { r.wanted = s && s.taken ? targetOf(seat, r) : r.lever.rest; }); }
        say(seat.who, seat.mine ? "yours" : other ? "another page has it" : "nobody has it");
        mark(seat.box, "data-is", seat.mine ? "mine" : other ? "other" : "free");
        say(seat.button, seat.mine ? "Give back" : "Take");
        seat.rows.forEach((r) => refreshRow(seat, r));
        const off = canCommand() && seat.mine ? "" : "1";
        for (const node of seat.list.querySelectorAll(".cmd")) {
            if (node.dataset.off !== off) { node.dataset.off = off; }
            node.disabled = off === "1";
        }
    }
}

// ---- calibration ---------------------------------------------------------------------------------------

// Two points: what it is by a better instrument, and what was measured meanwhile, over a second.
const MEAN = 1; // s
function meanOf(name) {
    const s = ring.signals.get(name);
    if (!s || ring.rows === 0) { return null; }
    let sum = 0, n = 0;
    for (let row = ring.rows - 1; row >= Math.max(0, ring.rows - SIZE + 1) && ring.time[row & (SIZE - 1)] > ring.newest() - MEAN; row--) {
        const x = s.v[row & (SIZE - 1)];
        if (Number.isFinite(x)) { sum += x; n++; }
    }
    return n > 0 ? sum / n : null;
}
let calibrated = ""; // the signal that is chosen
export const watchedByDesk = () => (calibrated ? [calibrated] : []);
function buildCalibration() {
    const own = run.hello.units.findIndex((u) => /^DCP/.test(u.kind) || u.name === "bench");
    const outputs = run.hello.signals.filter((s) => s.owner === own && s.type === "real" && !/\.bench\./.test(s.name));
    const choice = el("select", { class: "cmd", "aria-label": "Sensor" }, el("option", { value: "", text: "Sensor …" }),
        ...outputs.map((s) => el("option", { value: s.name, text: withUnit(s.name.split(".").slice(1).join("."), s.unit) })));
    const error = el("p", { class: "error", role: "alert", hidden: true }), done = el("p", { class: "note", role: "status" });
    const points = [1, 2].map((i) => {
        const p = { measured: null, reference: field("point-" + i, "Reference of point " + i, "By a better instrument"), value: el("b", { text: "–" }) };
        p.button = el("button", {
            type: "button", class: "cmd", text: "Take point " + i, onclick: () => {
                p.measured = calibrated ? meanOf(calibrated) : null;
                say(p.value, p.measured === null ? "–" : figure(p.measured, 6));
            },
        });
        p.box = el("span", { class: "point" }, el("label", { for: "point-" + i, text: "Reference" }), p.reference, p.button, el("span", { text: "measured " }, p.value));
        return p;
    });
    const by = el("input", { type: "text", class: "cmd", maxlength: "47", placeholder: "Your name", "aria-label": "Who calibrates", autocomplete: "off" });
    const refuse = (text) => { say(error, text); show(error, text !== ""); };
    choice.addEventListener("change", () => {
        calibrated = choice.value;
        points.forEach((p) => { p.measured = null; say(p.value, "–"); });
        refuse("");
        watch();
    });
    const store_ = el("button", {
        type: "button", class: "cmd go", text: "Store", onclick: () => {
            const pairs = points.map((p) => [p.reference.value.trim() === "" ? NaN : Number(p.reference.value.replace(",", ".")), p.measured]);
            if (!calibrated || pairs.some((p) => !Number.isFinite(p[0]) || p[1] === null)) {
                refuse("Expected a sensor, and for both points a reference and a press of Take point.");
                return;
            }
            send("calibrate", { name: calibrated, points: pairs, by: by.value }, (reply) => {
                refuse(reply.ok ? "" : reply.error);
                say(done, reply.ok ? "Stored. The bench uses it when it is started the next time." : "");
            });
        },
    });
    return el("details", { class: "calibration" }, el("summary", { text: "Calibrate a sensor" }),
        el("div", { class: "lever-do" }, choice, ...points.map((p) => p.box), by, store_), error, done);
}

export function buildDesk() {
    const before = new Set(seats.filter((s) => s.mine).map((s) => s.unit));
    seats = (run.hello.seats || []).map((spec, index) => {
        const seat = { unit: spec.unit, spec, index, mine: false, sent: 0, waits: 0, dirty: false };
        seat.who = el("span", { class: "who", role: "status" });
        seat.button = el("button", { type: "button", class: "cmd take", text: "Take", onclick: () => (seat.mine ? give(seat) : takeSeat(seat)) });
        const make = run.hello.desk ? setRow : pedalRow;
        seat.rows = spec.levers.map((lever, i) => Object.assign(make(seat, lever, i), {
            link: run.hello.links.findIndex((l) => l.from === spec.unit + "." + lever.name),
        }));
        seat.list = el("div", { class: run.hello.desk ? "levers" : "pedals" }, ...seat.rows.map((r) => r.box));
        const silence = withUnit(exact(spec.silence), "s");
        const then = spec.stop ? "the bench is stopped" : "the levers go to rest";
        seat.box = el("section", { class: "seat", "aria-label": spec.unit },
            el("div", { class: "seat-head" }, el("h3", { text: spec.unit }), seat.who, seat.button,
                el("span", { class: "note", text: "After " + silence + " without this page, or with it out of sight, " + then + "." })),
            seat.list, run.hello.calibrates ? buildCalibration() : null);
        return seat;
    });
    $("seats").replaceChildren(...seats.map((s) => s.box));
    show($("desk"), seats.length > 0);
    mark(document.body, "data-desk", seats.length > 0 ? "yes" : null);
    for (const seat of seats) {
        let kept = null;
        try { kept = JSON.parse(store.get("sessionStorage", KEPT)); } catch (e) { /* not ours */ }
        const fresh = kept && kept.unit === seat.unit && Date.now() - kept.at < 1000 * seat.spec.silence;
        if (before.has(seat.unit) || fresh) { takeSeat(seat); }
    }
    refreshDesk();
}
export const forgetSeats = () => { for (const s of seats) { s.mine = false; s.waits = 0; } }; // another connection

export function beginDesk() {
    onGate(refreshDesk);
    setInterval(() => { beatAll(); }, BEAT);
    const poll = () => {
        pollPads();
        for (const s of seats) { if (s.dirty) { beat(s, true); } }
        requestAnimationFrame(poll);
    };
    requestAnimationFrame(poll);
}
