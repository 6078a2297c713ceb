// The list of signals that can be plotted.
import { $, el, press, say, show, tail } from "./dom.js";
import { count } from "./numbers.js";
import { WATCH_LIMIT, chosenSignals, onChosen, toggle } from "./plots.js";
import { ownerOf, run, titleOf } from "./state.js";

let pickRows = [];
export function buildPicker() {
    const groups = new Map();
    run.hello.units.forEach((u, i) => groups.set(u.name, { unit: i, rows: [] }));
    pickRows = run.hello.signals.map((s) => {
        const owner = ownerOf(s), box = el("input", { type: "checkbox", onchange: () => toggle(s, box.checked) });
        const row = el("label", { title: titleOf(s) }, box,
            tail("", owner ? s.name.slice(owner.length + 1) : s.name),
            el("span", { class: "unit", text: s.unit === "1" ? "" : s.unit }));
        if (!groups.has(owner)) { groups.set(owner, { unit: -2, rows: [] }); }
        groups.get(owner).rows.push(row);
        return { s, row, box, text: (s.name + " " + s.unit + " " + s.description).toLowerCase() };
    });
    $("signals").replaceChildren(...Array.from(groups).filter(([, g]) => g.rows.length).map(([name, g]) =>
        el("fieldset", { "data-unit": g.unit }, el("legend", { text: name, title: name }), ...g.rows)));
    const out = run.hello.signals_left_out;
    say($("signals-note"), out > 0 ? count(out) + " more signals are not listed; they are too many." : "");
    filterSignals();
    refreshPicker();
}
function filterSignals() {
    const words = $("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const p of pickRows) { show(p.row, words.every((w) => p.text.includes(w))); }
    for (const group of $("signals").children) {
        show(group, Array.from(group.querySelectorAll("label")).some((r) => !r.hidden));
    }
}
function refreshPicker() {
    const on = chosenSignals();
    for (const p of pickRows) {
        p.box.checked = on.has(p.s);
        p.box.disabled = !p.box.checked && on.size >= WATCH_LIMIT;
    }
    say($("pick-count"), run.hello ? on.size + " of " + run.hello.signals.length : "");
    $("pick").title = on.size >= WATCH_LIMIT ? "A page watches at most " + WATCH_LIMIT + " signals" : "";
}
export function openPicker(open) {
    $("picker").hidden = !open;
    $("pick").setAttribute("aria-expanded", open ? "true" : "false");
}

export function beginPicker() {
    onChosen(refreshPicker);
    press("pick", () => openPicker($("picker").hidden));
    $("filter").addEventListener("input", filterSignals);
}
