// What a selected connection shows and takes: facts, another algorithm, faults.
import { el, say, show } from "./dom.js";
import { faulty } from "./misses.js";
import { DASH, MINUS, NARROW, count, figure, withUnit } from "./numbers.js";
import { toggle } from "./plots.js";
import { send } from "./socket.js";
import { gate, run } from "./state.js";

const form = (label, ...fields) => el("div", { class: "form" }, el("span", { class: "label", text: label }), ...fields);
const remark = (text) => el("span", { class: "note", text });

function factList(l, bond, cells) {
    const facts = el("dl", { class: "facts" });
    const fact = (key, label) => {
        cells[key] = el("dd");
        facts.append(el("div", null, el("dt", { text: label }), cells[key]));
    };
    fact("defect", "Defect of the last step");
    fact("scale", "Scale");
    fact("error", "Error of the estimate");
    if (l.coupling >= 0) {
        fact("sent", "Samples sent");
        fact("lost", "Lost / late / duplicates / jumps");
    }
    if (bond >= 0) {
        fact("residual", "Residual power of " + run.hello.bonds[bond].name);
        fact("energy", "Energy / work of corrections");
    }
    return facts;
}

// The algorithm: one of the list, or an element as JSON.
function algorithmForm(l, reply) {
    if (l.coupling < 0) { return form("Algorithm", remark("no coupling element at this input")); }
    const list = el("select", { class: "cmd", "aria-label": "Algorithm of " + l.to },
        el("option", { value: "", text: "change to …" }), ...run.hello.algorithms.map((a) => el("option", { value: a, text: a })));
    const json = el("input", {
        type: "text", class: "cmd json", placeholder: 'or an element: {"algorithm": "foh"}',
        "aria-label": "Element as JSON for " + l.to, autocomplete: "off", spellcheck: "false",
    });
    const couple = () => {
        const text = json.value.trim();
        if (!text) {
            json.focus();
            return;
        }
        let element = text;
        if (text.startsWith("{")) {
            try { element = JSON.parse(text); } catch (e) {
                reply({ ok: false, error: "This is no JSON: " + e.message });
                return;
            }
        }
        send("couple", { to: l.to, element }, (answer) => {
            reply(answer);
            if (answer.ok) { json.value = ""; }
        });
    };
    list.addEventListener("change", () => {
        const name = list.value;
        list.value = "";
        if (name) { send("couple", { to: l.to, element: name }, reply); }
    });
    json.addEventListener("keydown", (e) => {
        if (e.key === "Enter") { couple(); }
        if (e.key === "Escape" && json.value) {
            json.value = "";
            e.stopPropagation();
        }
    });
    return form("Algorithm", list, json, el("button", { type: "button", class: "cmd", text: "Apply", onclick: couple }));
}

const FAULT_HINTS = {
    hold: "", value: "value", offset: "added", gain: "factor", noise: "deviation", drop: "part 0 … 1", delay: "s",
};
function faultForm(l, reply) {
    if (!l.can_fault) { return form("Fault", remark("only where numbers are real")); }
    const kind = el("select", { class: "cmd", "aria-label": "Fault at " + l.to }, ...run.hello.faults.map((f) =>
        el("option", { value: f, text: f, disabled: l.coupling < 0 && (f === "drop" || f === "delay") })));
    const quantity = (label) => el("input", {
        type: "text", inputmode: "decimal", class: "cmd amount", "aria-label": label, autocomplete: "off",
    });
    const amount = quantity("Value of the fault"), lasts = quantity("Duration of the fault in seconds");
    lasts.placeholder = "s, or no end";
    const hint = () => {
        const f = kind.value, measured = ["value", "offset", "noise"].includes(f);
        const unit = measured && l.unit && l.unit !== "1" ? " " + l.unit : "";
        amount.placeholder = (FAULT_HINTS[f] === undefined ? "value" : FAULT_HINTS[f]) + unit;
        amount.dataset.off = f === "hold" ? "1" : "0";
        gate();
    };
    const number = (field, what) => {
        const x = Number(field.value.trim().replace(",", ".").replace(MINUS, "-"));
        if (!Number.isFinite(x)) { throw new Error(what + ": " + field.value + " is no number."); }
        return x;
    };
    const inject = () => {
        try {
            const held = kind.value === "hold";
            if (!held && !amount.value.trim()) { throw new Error("The fault needs a value."); }
            send("fault", {
                to: l.to, kind: kind.value, value: held ? 0 : number(amount, "Value"),
                duration: lasts.value.trim() ? number(lasts, "Duration") : null,
            }, reply);
        } catch (e) {
            reply({ ok: false, error: e.message });
        }
    };
    kind.addEventListener("change", hint);
    for (const field of [amount, lasts]) {
        field.addEventListener("keydown", (e) => { if (e.key === "Enter") { inject(); } });
    }
    if (run.hello.faults.includes("offset")) { kind.value = "offset"; }
    hint();
    return form("Fault", kind, amount, lasts,
        el("button", { type: "button", class: "cmd", text: "Inject", onclick: inject }),
        el("button", { type: "button", class: "cmd clear", text: "Clear", onclick: () => send("clear", { to: l.to }, reply) }));
}

// The detail of connection i, below its row: {row, facts}.
export function openDetail(i, body, bond) {
    const l = run.hello.links[i], d = { facts: {}, bond };
    const error = el("p", { class: "error", role: "alert", hidden: true });
    const reply = (answer) => {
        show(error, !answer.ok);
        if (!answer.ok) { say(error, answer.error); }
    };
    const source = l.from_signal >= 0 ? run.hello.signals[l.from_signal] : null;
    const plot = !source ? null
        : el("button", { type: "button", class: "quiet", text: "Plot " + l.from, onclick: () => toggle(source, true) });
    d.row = el("tr", { class: "detail" }, el("td", { colspan: "8" }, factList(l, bond, d.facts), algorithmForm(l, reply),
        faultForm(l, reply), error, plot, " ", el("span", { class: "why" })));
    body.append(d.row);
    gate();
    refreshDetail(i, d);
    return d;
}
export function refreshDetail(i, d) {
    const l = run.hello.links[i], s = run.status && run.status.links[i];
    if (!s) { return; }
    const f = d.facts, orDash = (x) => (x === null || x === undefined ? DASH : withUnit(figure(x, 3), l.unit));
    say(f.defect, orDash(s.defect));
    say(f.scale, orDash(s.scale));
    say(f.error, orDash(s.error));
    if (f.sent) {
        say(f.sent, count(s.sent));
        say(f.lost, [s.lost, s.late, s.duplicates, s.jumps].map(count).join(" / "));
    }
    const bond = d.bond >= 0 ? run.status.bonds[d.bond] : null;
    if (bond && f.residual) {
        const of = (x, unit) => (x === null ? DASH : figure(x, 3) + NARROW + unit);
        say(f.residual, of(bond.residual, "W") + " of " + of(bond.power, "W"));
        say(f.energy, of(bond.energy, "J") + " / " + of(bond.work, "J"));
    }
    const clear = d.row.querySelector(".clear");
    if (clear) { clear.dataset.off = faulty(s) ? "0" : "1"; }
}
