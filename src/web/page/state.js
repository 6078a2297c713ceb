// What is known about the run, and what may be commanded.
import { $, el, say, show, tail } from "./dom.js";

// The one state that panels share; only what comes from the server and clicks change it.
export const run = {
    hello: null,         // what there is
    status: null,        // newest
    early: null,         // what is known before hello: state, end, message
    connected: false, everConnected: false,
    clockDigits: 3,      // decimals of times
    selected: { unit: -1, link: -1 },
};
export const now = () => performance.now();

// ---- what a state looks like and says --------------------------------------------------------------

export const SHAPES = {
    none: "M10 2.5a7.5 7.5 0 1 0 .01 0zM10 5a5 5 0 1 1 -.01 0z",
    starting: "M10 2.5a7.5 7.5 0 1 0 .01 0zM10 5a5 5 0 1 1 -.01 0z",
    waiting: "M10 2.5a7.5 7.5 0 1 0 .01 0zM10 5a5 5 0 1 1 -.01 0z",
    running: "M4 2l14 8l-14 8z",
    paused: "M4 3h4.5v14H4zM11.5 3H16v14h-4.5z",
    stopping: "M3.5 3.5h13v13h-13zM6 6v8h8V6z",
    ended: "M3.5 3.5h13v13h-13z",
    late: "M10 1.5l8.5 8.5l-8.5 8.5l-8.5-8.5z",
    failed: "M5 2.5l5 5l5-5L17.5 5l-5 5l5 5l-2.5 2.5l-5-5l-5 5L2.5 15l5-5l-5-5z",
};
export const ENDS = {
    "none": "The run has ended.", "stop time": "It reached its stop time.",
    "unit": "A unit ended the run.", "interrupted": "It was stopped.", "failed": "It failed.",
    "overrun": "It was late.",
    "guard": "The guard stopped it.",
};

// ---- what is possible ------------------------------------------------------------------------------

export const standing = () => run.status || run.early;
export const ended = () => standing() !== null && standing().state === "ended";
export const stopping = () => standing() !== null && (standing().state === "stopping" || ended());
const readOnly = () => (run.hello || run.early || {}).read_only === true;
function why() { // nothing can be commanded
    if (readOnly()) { return "read-only"; }
    if (stopping()) { return "the run has ended"; }
    if (!run.connected || !run.hello) { return "no connection"; }
    return "";
}
export const canCommand = () => why() === "";
// A desk that waits to be prepared, or has come to its end and can be prepared again.
export function canPrepare() {
    const s = standing(), m = run.status ? run.hello : run.early;
    return run.connected && s !== null && m !== null && m.desk === true && !readOnly() && (s.asks === true || s.state === "ended");
}
const gated = [];
export const onGate = (f) => gated.push(f);
export function gate() {
    const reason = why();
    for (const node of document.querySelectorAll(".cmd, .buttons button")) {
        const off = node.id === "start" && canPrepare() ? false : reason !== "" || node.dataset.off === "1";
        if (node.disabled !== off) { node.disabled = off; }
        if (node.plainTitle === undefined) { node.plainTitle = node.title; }
        const title = reason && off ? "Not possible: " + reason : node.plainTitle;
        if (node.title !== title) { node.title = title; }
    }
    for (const node of document.querySelectorAll(".why")) { say(node, reason); }
    show($("read-only"), readOnly());
    for (const f of gated) { f(); }
}
export function noEmergency() { // it is there before the run is ready, too
    return readOnly() ? "read-only" : stopping() ? "the run has ended" : !run.connected ? "no connection" : "";
}

// ---- names -----------------------------------------------------------------------------------------

// The name before the dot: of a unit if there is such a one.
export function ownerOf(s) {
    const unit = run.hello.units[s.owner];
    if (unit && s.name.startsWith(unit.name + ".")) { return unit.name; }
    const other = run.hello.units.find((u) => s.name.startsWith(u.name + "."));
    return other ? other.name : s.name.includes(".") ? s.name.slice(0, s.name.indexOf(".")) : "";
}
export const titleOf = (s) => s.name + (s.description ? ": " + s.description : "");
// The unit's name gives way first when there is little room.
export function nameOf(s) {
    const owner = ownerOf(s) ? ownerOf(s) + "." : "";
    return el("span", { class: "name", title: titleOf(s) },
        owner ? el("span", { class: "owner", text: owner }) : null, tail("own", s.name.slice(owner.length)));
}

export function unitName(u) {
    if (typeof u === "string") { return u; }
    return u !== null && u >= 0 && run.hello.units[u] ? run.hello.units[u].name : "";
}
export function decimals(step) {
    if (!(step > 0)) { return 3; }
    for (let d = 1; d < 9; d++) {
        const scaled = step * 10 ** d;
        if (scaled > 0.999 && Math.abs(scaled - Math.round(scaled)) < 1e-6) { return Math.max(d, 2); }
    }
    return Math.min(9, Math.max(2, Math.ceil(-Math.log10(step)) + 1));
}
