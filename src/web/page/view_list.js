// The list of signals: any number of them, of which those in sight are in the page.
import { $, el, say, tail } from "./dom.js";
import { count, counted } from "./numbers.js";
import { onViewer, viewer } from "./view_state.js";

const ROW = 30; // px, as in view.css
let found = [], chosenRow = 0, addSignal = () => {};
const scroller = () => $("signal-list");

function filterList() {
    const words = $("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    found = words.length ? viewer.signals.filter((s) => words.every((w) => s.key.includes(w))) : viewer.signals;
    chosenRow = Math.min(chosenRow, Math.max(0, found.length - 1));
    say($("signal-count"), found.length === viewer.signals.length ? counted(found.length, "signal") : count(found.length) + " of " + count(viewer.signals.length));
    drawList();
}
function drawList() {
    const box = scroller(), first = Math.max(0, Math.floor(box.scrollTop / ROW) - 4), last = Math.min(found.length, first + Math.ceil(box.clientHeight / ROW) + 8);
    const used = new Set(viewer.panels.flatMap((p) => p.entries.map((e) => e.signal))), rows = [];
    for (let i = first; i < last; i++) { rows.push(listRow(found[i], i, used.has(found[i]))); }
    $("signal-rows").style.height = found.length * ROW + "px";
    $("signal-rows").replaceChildren(...rows);
    box.setAttribute("aria-activedescendant", found.length ? "signal-" + chosenRow : "");
    $("no-signals").hidden = found.length > 0;
}
function listRow(s, i, used) {
    const files = viewer.files.length > 1 ? viewer.files.map((f) => el("i", { class: "has", "data-in": s.of[f.index] >= 0 ? "yes" : "no" })) : [];
    const row = el("div", { id: "signal-" + i, class: "signal" + (used ? " used" : ""), role: "option", draggable: "true",
        "aria-selected": i === chosenRow ? "true" : "false", "aria-setsize": found.length, "aria-posinset": i + 1, title: s.name + (s.description ? "\n" + s.description : "") },
    tail("name", s.name), el("span", { class: "unit", text: s.unit === "1" ? "" : s.unit }), ...files,
    el("span", { class: "add", "aria-hidden": "true", title: "Add (Enter)", text: "+", onclick: (e) => { e.stopPropagation(); addSignal(s, e.shiftKey); } }));
    row.style.top = i * ROW + "px";
    row.addEventListener("click", () => { chosenRow = i; drawList(); });
    row.addEventListener("dblclick", (e) => addSignal(s, e.shiftKey));
    row.addEventListener("dragstart", (e) => {
        e.dataTransfer.setData("text/x-cardan", JSON.stringify([s.name]));
        e.dataTransfer.effectAllowed = "copy";
        document.body.classList.add("dragging");
    });
    row.addEventListener("dragend", () => document.body.classList.remove("dragging"));
    return row;
}
function listKey(e) {
    const page = Math.max(1, Math.floor(scroller().clientHeight / ROW) - 1);
    const way = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[e.key];
    if (way !== undefined && found.length && !(e.target === $("filter") && (e.key === "Home" || e.key === "End"))) {
        e.preventDefault();
        chosenRow = Math.max(0, Math.min(found.length - 1, chosenRow + way));
        const box = scroller(), top = chosenRow * ROW;
        if (top < box.scrollTop) { box.scrollTop = top; }
        if (top + ROW > box.scrollTop + box.clientHeight) { box.scrollTop = top + ROW - box.clientHeight; }
        drawList();
    } else if (e.key === "Enter" && found[chosenRow]) {
        e.preventDefault();
        addSignal(found[chosenRow], e.shiftKey);
    }
}

export function beginList(add) {
    addSignal = add;
    $("filter").addEventListener("input", () => { scroller().scrollTop = 0; chosenRow = 0; filterList(); });
    $("filter").addEventListener("keydown", listKey);
    scroller().addEventListener("keydown", listKey);
    scroller().addEventListener("scroll", drawList);
    new ResizeObserver(drawList).observe(scroller());
    let seen = 0;
    onViewer(() => { // other signals are in panels
        const now = viewer.panels.reduce((n, p) => n * 31 + p.entries.length, viewer.panels.length);
        if (now !== seen) { seen = now; drawList(); }
    });
}
export const refreshList = filterList;
