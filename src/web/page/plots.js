// The panel of plots: which signals are in which plot, and when plots are drawn.
import { watchedByBenches } from "./benches.js";
import { watchedByDesk } from "./desk.js";
import { Card } from "./card.js";
import { $, el, press, say, show, store, tell } from "./dom.js";
import { refreshClock } from "./header.js";
import { NARROW } from "./numbers.js";
import { SIZE, ring } from "./samples.js";
import { send } from "./socket.js";
import { now, ownerOf, run } from "./state.js";
import { onTheme } from "./theme.js";
import { LENGTHS, hold, refreshView, unzoom, view } from "./view.js";

export const WATCH_LIMIT = 64;
const CARD_LIMIT = 8;
let cards = [];
const chosen = [];
export const onChosen = (f) => chosen.push(f); // other signals are plotted
export const chosenSignals = () => new Set(cards.flatMap((card) => card.signals));
export const plots = () => cards;
onTheme(() => { for (const card of cards) { card.restyle(); } });

// What was picked and where, for this file.
const layoutKey = () => "cardan.layout." + (run.hello.file || run.hello.title || "");
function storeCards() {
    store.set("localStorage", layoutKey(), JSON.stringify({
        cards: cards.map((c) => c.signals.map((s) => s.name)), length: view.length,
    }));
}
export function restoreCards() {
    for (const card of cards) { card.remove(); }
    cards = [];
    const known = new Map(run.hello.signals.map((s) => [s.name, s]));
    let kept = null;
    try { kept = JSON.parse(store.get("localStorage", layoutKey())); } catch (e) { kept = null; }
    const span = run.hello.stop === null ? Infinity : run.hello.stop - run.hello.start;
    view.length = kept && LENGTHS.includes(kept.length) ? kept.length : span <= 10 ? 0 : 10;
    let left = WATCH_LIMIT;
    if (kept && Array.isArray(kept.cards)) {
        for (const names of kept.cards.filter(Array.isArray)) {
            const signals = names.filter((n) => known.has(n)).slice(0, Math.min(CARD_LIMIT, left)).map((n) => known.get(n));
            left -= signals.length;
            if (signals.length) { cards.push(new Card(signals, moveTo)); }
        }
    }
    if (cards.length === 0) {
        for (const s of defaults()) { place(s); }
    }
    view.held = false;
    view.zoom = null;
    refreshView();
    layCards();
}
function defaults() { // outputs that somebody uses, then the others
    const used = new Set(run.hello.links.map((l) => l.from_signal).filter((i) => i >= 0));
    const plainOnes = (s) => !/\.(coupling|bond)\./.test(s.name) && run.hello.units.some((u) => u.name === ownerOf(s));
    const list = run.hello.signals.map((s, i) => [used.has(i) ? 0 : plainOnes(s) ? 1 : 2, i, s]);
    list.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    return list.slice(0, 6).map((x) => x[2]);
}
function place(signal) { // beside others of its unit of measure
    let card = cards.find((c) => c.signals.length < CARD_LIMIT && c.signals[0] && c.signals[0].unit === signal.unit);
    if (!card) {
        card = new Card([], moveTo);
        cards.push(card);
    }
    card.add(signal);
}
function layCards() {
    show($("no-cards"), cards.length === 0);
    say($("no-cards"), run.hello.signals.length ? "No signal is chosen. Press / and pick some." : "There is nothing to plot.");
    cards.forEach((card, i) => {
        $("cards").append(card.box);
        card.number = i + 1;
    });
    for (const card of cards) { card.legend(cards.length); }
    view.changed = true;
}
export function toggle(signal, on) {
    if (on && cards.reduce((n, c) => n + c.signals.length, 0) >= WATCH_LIMIT) {
        tell("A page watches at most " + WATCH_LIMIT + " signals.");
        return;
    }
    const at = cards.find((c) => c.signals.includes(signal));
    if (on && !at) {
        place(signal);
    } else if (!on && at) {
        drop(at, signal);
    }
    layCards();
    storeCards();
    watch();
}
function drop(card, signal) {
    card.take(signal);
    if (card.signals.length === 0) {
        card.remove();
        cards.splice(cards.indexOf(card), 1);
    }
}
function moveTo(card, signal, where) {
    if (where === "remove") {
        toggle(signal, false);
        return;
    }
    let to = where === "new" ? null : cards[Number(where)];
    if (to === card) { return; }
    if (!to) {
        to = new Card([], moveTo);
        cards.push(to);
    }
    if (to.signals.length >= CARD_LIMIT) {
        tell("Plot " + to.number + " has " + CARD_LIMIT + " signals already.");
    } else {
        drop(card, signal);
        to.add(signal);
    }
    layCards();
    storeCards();
    watch();
}

// ---- what is watched -------------------------------------------------------------------------------

export function watch() {
    const names = [];
    for (const card of cards) {
        for (const s of card.signals) {
            if (!names.includes(s.name)) { names.push(s.name); }
        }
    }
    for (const name of [...watchedByDesk(), ...watchedByBenches()]) {
        if (!names.includes(name) && names.length < WATCH_LIMIT) { names.push(name); }
    }
    send("watch", { signals: names }, (reply) => {
        if (reply.ok) { ring.watch(names); } else { tell(reply.error); }
        view.changed = true;
    });
    for (const f of chosen) { f(); }
}

// ---- pictures --------------------------------------------------------------------------------------

// At most 25 pictures a second, none when nothing is new or nobody looks.
export const frames = { times: new Float32Array(512), count: 0, gaps: new Float32Array(512), last: 0 };
function loop(stamp) {
    requestAnimationFrame(loop);
    if (!view.changed || stamp - frames.last < 38 || !run.hello) { return; }
    const begin = now();
    view.changed = false;
    if (view.zoom) {
        [view.from, view.to] = view.zoom;
    } else if (!view.held && ring.rows > 0) {
        const newest = ring.newest(), oldest = ring.time[ring.oldestRow() & (SIZE - 1)];
        if (view.length === 0) {
            const stop = run.hello.stop !== null && run.hello.stop - run.hello.start <= 10 ? run.hello.stop : newest;
            view.from = oldest;
            view.to = Math.max(newest, stop, oldest + 1e-9);
        } else {
            view.from = Math.max(newest - view.length, Math.min(oldest, newest));
            view.to = view.from + view.length;
        }
    } else if (ring.rows === 0) {
        view.from = run.hello.start;
        view.to = run.hello.start + (view.length || (run.hello.stop > run.hello.start ? run.hello.stop - run.hello.start : 10));
    }
    let row = -1;
    if (view.hover && ring.rows > 0) {
        const t = view.hover.card.timeAt(view.hover.x);
        row = Math.min(ring.rowAt(t), ring.rows - 1);
        if (row > ring.oldestRow() && t - ring.time[(row - 1) & (SIZE - 1)] < ring.time[row & (SIZE - 1)] - t) { row--; }
    }
    for (const card of cards) {
        card.draw(row);
        card.values(row);
    }
    refreshClock();
    frames.times[frames.count % 512] = now() - begin;
    frames.gaps[frames.count % 512] = stamp - frames.last;
    frames.last = stamp;
    frames.count++;
}

// ---- length of the view ----------------------------------------------------------------------------

export function beginPlots() {
    $("windows").append(...LENGTHS.map((length) => el("button", {
        type: "button", role: "radio", "data-length": length, text: length ? length + NARROW + "s" : "all",
        title: length ? "The last " + length + " s of simulated time" : "All that the page has kept",
        onclick: () => {
            view.length = length;
            view.zoom = null;
            refreshView();
            if (run.hello) { storeCards(); }
        },
    })));
    $("windows").addEventListener("keydown", (e) => {
        const way = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[e.key];
        if (way) {
            e.preventDefault();
            const list = Array.from($("windows").children);
            const to = list[(list.indexOf(e.target) + way + list.length) % list.length];
            to.click();
            to.focus();
        }
    });
    press("hold", () => hold(!view.held));
    press("unzoom", unzoom);
    refreshView();
    requestAnimationFrame(loop);
}
