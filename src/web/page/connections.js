// The panel of connections: a row for each, and its detail when it is selected.
import { openDetail, refreshDetail } from "./connection_detail.js";
import { $, el, mark, press, say, show, tail } from "./dom.js";
import { faulty, missOf, quality } from "./misses.js";
import { DASH, NARROW, duration, figure, percent, short } from "./numbers.js";
import { bring, onSelect, select } from "./selection.js";
import { command } from "./socket.js";
import { run } from "./state.js";

let linkRows = [];
const STAND_INS = ["", ", now zoh", ", now foh"]; // after a discontinuity
export function buildLinks() {
    for (const body of $("links").querySelectorAll("tbody")) { body.remove(); }
    show($("no-links"), run.hello.links.length === 0);
    show($("links"), run.hello.links.length > 0);
    const bondOf = new Map();
    run.hello.bonds.forEach((b, i) => { bondOf.set(b.action, i); bondOf.set(b.flow, i); });
    linkRows = run.hello.links.map((l, i) => {
        const name = el("button", {
            type: "button", class: "row-name", "aria-expanded": "false", title: l.from + " → " + l.to,
        },
            tail("", l.from), el("span", { class: "arrow", text: "→" }), tail("", l.to));
        const fault = el("span", { class: "fault", hidden: true });
        const cells = {};
        const cell = (key, cls, label) => (cells[key] = el("td", { class: cls, "data-label": label }));
        cells.value = el("span");
        const value_ = el("td", { class: "r strong" }, cells.value,
            el("span", { class: "unit", text: l.unit && l.unit !== "1" ? NARROW + l.unit : "", title: l.unit }));
        const row = el("tr", null, el("td", { class: "first" }, name, fault), value_, cell("age", "r", "age"),
            cell("k", "r", "k"), cell("defect", "r q", "defect"), cell("residual", "r wide"),
            cell("algorithm", "word"), cell("counts", "r wide"));
        row.addEventListener("click", (e) => {
            if (e.target.closest("input, select")) { return; }
            select({ unit: -1, link: run.selected.link === i ? -1 : i });
        });
        const body = el("tbody", null, row);
        return { body, name, fault, cells, detail: null, bond: bondOf.has(l.from) ? bondOf.get(l.from) : -1 };
    });
    $("links").append(...linkRows.map((r) => r.body));
}

export function refreshLinks() {
    if (!run.status) { return; }
    let faults = 0;
    run.status.links.forEach((s, i) => {
        const r = linkRows[i], l = run.hello.links[i];
        if (!r) { return; }
        const c = r.cells;
        say(c.value, figure(s.value, 4));
        say(c.age, duration(s.age));
        say(c.k, s.k === null || s.k === undefined || s.k < 0 ? DASH : String(s.k));
        say(c.defect, percent(missOf(i)));
        mark(c.defect, "data-q", quality(i));
        const bond = r.bond >= 0 ? run.status.bonds[r.bond] : null;
        say(c.residual, bond && bond.residual !== null ? figure(bond.residual, 3) + NARROW + "W" : DASH);
        say(c.algorithm, s.algorithm ? s.algorithm + (STAND_INS[s.active] || "") : DASH);
        say(c.counts, l.coupling < 0 ? DASH : [s.lost, s.late, s.duplicates, s.jumps].join(" / "));
        const bad = faulty(s);
        faults += bad ? 1 : 0;
        show(r.fault, bad);
        if (bad) {
            const left = s.fault_left === null ? "until cleared" : short(Math.max(1e-4, s.fault_left), 2) + NARROW + "s left";
            say(r.fault, "▲ " + s.fault + ", " + left);
        }
        if (r.detail) { refreshDetail(i, r.detail); }
    });
    show($("clear-all"), faults > 1);
}

function showSelectedLinks() {
    const what = run.selected;
    linkRows.forEach((r, i) => {
        const l = run.hello.links[i];
        const near = what.unit >= 0 && (l.from_unit === what.unit || l.to_unit === what.unit);
        r.body.classList.toggle("chosen", i === what.link);
        r.body.classList.toggle("near", near);
        r.name.setAttribute("aria-expanded", i === what.link ? "true" : "false");
        if (i === what.link) {
            if (!r.detail) { r.detail = openDetail(i, r.body, r.bond); }
        } else if (r.detail) {
            r.detail.row.remove();
            r.detail = null;
        }
    });
    const shown = what.link >= 0 ? linkRows[what.link] : linkRows.find((r) => r.body.classList.contains("near"));
    if (shown) { bring(shown.body); }
}

export function beginConnections() {
    onSelect(showSelectedLinks);
    press("clear-all", () => command("clear", { to: "" }));
}
