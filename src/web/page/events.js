// The panel of events, and marks.
import { $, el, say, show } from "./dom.js";
import { DASH, NARROW, count, minus } from "./numbers.js";
import { send } from "./socket.js";
import { run } from "./state.js";

const KINDS = ["error", "overrun", "warning", "mark", "start", "stop"];
const EVENTS_SHOWN = 400;
let events = [], freshEvents = [], lastEvent = 0, counts = {}, hiddenKinds = new Set(), eventTimer = 0;
export function forgetEvents() {
    events = [];
    freshEvents = [];
    lastEvent = 0;
    counts = {};
    $("event-list").replaceChildren();
    show($("no-events"), true);
    refreshKinds();
}
// False: it was there already.
export function takeEvent(e) {
    if (e.number <= lastEvent) { return false; }
    lastEvent = e.number;
    counts[e.kind] = (counts[e.kind] || 0) + 1;
    events.push(e);
    if (events.length > 2000) { events.splice(0, 500); }
    freshEvents.push(e);
    if (!eventTimer) { eventTimer = setTimeout(showEvents, 60); }
    return true;
}
function eventRow(e) {
    return el("li", { "data-kind": e.kind },
        el("span", { class: "when", text: e.time === null ? DASH : minus(e.time.toFixed(run.clockDigits)) + NARROW + "s" }),
        el("span", { class: "kind", text: e.kind }), el("p", { text: e.text }));
}
function showEvents() {
    eventTimer = 0;
    const list = $("event-list");
    const rows = freshEvents.filter((e) => !hiddenKinds.has(e.kind)).slice(-EVENTS_SHOWN).reverse().map(eventRow);
    freshEvents = [];
    list.prepend(...rows);
    while (list.children.length > EVENTS_SHOWN) { list.lastChild.remove(); }
    show($("no-events"), list.children.length === 0);
    refreshKinds();
}
function refilter() {
    $("event-list").replaceChildren();
    freshEvents = events.slice();
    showEvents();
    say($("no-events"), events.length ? "None of these kinds." : "No events yet.");
}
function buildKinds() {
    $("kinds").replaceChildren(...KINDS.map((kind) => {
        const button = el("button", {
            type: "button", "data-kind": kind, "aria-pressed": "true", onclick: () => {
                if (hiddenKinds.has(kind)) { hiddenKinds.delete(kind); } else { hiddenKinds.add(kind); }
                button.setAttribute("aria-pressed", hiddenKinds.has(kind) ? "false" : "true");
                refilter();
            },
        }, el("span", { text: kind }), el("b"));
        return button;
    }));
}
function refreshKinds() {
    for (const button of $("kinds").children) {
        const n = counts[button.dataset.kind] || 0;
        say(button.lastChild, n ? count(n) : "");
        show(button, n > 0);
    }
}

export function beginEvents() {
    buildKinds();
    $("mark").addEventListener("submit", (e) => {
        e.preventDefault();
        const text = $("mark-text").value.trim();
        if (!text) { return; }
        send("mark", { text }, (reply) => {
            show($("mark-error"), !reply.ok);
            if (reply.ok) { $("mark-text").value = ""; } else { say($("mark-error"), reply.error); }
        });
    });
}
