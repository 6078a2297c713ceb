// The panel of parameters.
import { $, el, show } from "./dom.js";
import { exact, plain } from "./numbers.js";
import { send } from "./socket.js";
import { run } from "./state.js";

let settingRows = new Map();
export function buildSettings() {
    settingRows = new Map();
    const groups = [];
    run.hello.units.forEach((unit, u) => {
        const rows = run.hello.settings.filter((s) => s.owner === u).map((s) => settingRow(s, unit));
        if (rows.length) {
            groups.push(el("section", { "data-unit": u }, el("h3", { text: unit.name, title: unit.name }), ...rows));
        }
    });
    if (groups.length === 0) {
        const text = run.hello.read_only ? "This page may only watch; nothing can be set." : "Nothing can be set while the run goes.";
        $("settings").replaceChildren(el("p", { class: "empty", text }));
    } else {
        const hint = el("span", { class: "hint", text: "Enter applies, Escape restores." });
        $("settings").replaceChildren(el("p", { class: "note" }, el("span", { class: "why" }), hint), ...groups);
    }
}
function settingRow(s, unit) {
    const own = s.name.startsWith(unit.name + ".") ? s.name.slice(unit.name.length + 1) : s.name;
    const id = "set-" + settingRows.size;
    const error = el("p", { class: "error", id: id + "-error", role: "alert", hidden: true });
    const known = s.start !== null && s.start !== undefined;
    const start = !known ? "" : s.type === "boolean" ? String(Boolean(s.start)) : plain(s.start);
    const range = limits(s);
    const common = { class: "cmd", id, "aria-describedby": id + "-error" };
    const field = s.type === "boolean"
        ? el("select", common, ...["false", "true"].map((text) => el("option", { value: text, text })))
        : el("input", Object.assign({ type: "text", autocomplete: "off", spellcheck: "false" }, common));
    const row = el("div", { class: "setting", title: s.name + (s.description ? ": " + s.description : "") },
        el("label", { for: id }, el("span", { class: "name", text: own }),
            el("span", { class: "note", text: [range, s.input ? "input" : ""].filter(Boolean).join(" · ") })),
        field, el("span", { class: "unit", text: s.unit === "1" ? "" : s.unit }), error);
    const entry = { row, field, error, start, sure: start, current: start };
    field.value = start;
    if (s.type === "boolean" && start === "") { field.selectedIndex = -1; }
    const apply = () => {
        const text = field.value.trim();
        let what = text;
        if (s.type === "boolean") {
            what = text === "true";
        } else if (text !== "" && Number.isFinite(Number(text))) {
            what = Number(text);
        }
        send("set", { name: s.name, value: what }, (reply) => {
            show(error, !reply.ok);
            field.setAttribute("aria-invalid", reply.ok ? "false" : "true");
            if (reply.ok) {
                entry.current = text;
                row.classList.remove("dirty");
                row.classList.add("applied");
                setTimeout(() => row.classList.remove("applied"), 1600);
            } else {
                error.textContent = reply.error;
            }
        });
    };
    const restore = () => {
        field.value = entry.current;
        row.classList.remove("dirty");
        show(error, false);
        field.setAttribute("aria-invalid", "false");
    };
    field.addEventListener("input", () => row.classList.toggle("dirty", field.value.trim() !== entry.current));
    if (s.type === "boolean") {
        field.addEventListener("change", apply);
    } else {
        field.addEventListener("keydown", (e) => {
            if (e.key === "Enter") {
                apply();
            } else if (e.key === "Escape") {
                e.stopPropagation();
                if (field.value === entry.current && error.hidden) { field.blur(); } else { restore(); }
            }
        });
    }
    settingRows.set(s.name, entry);
    return row;
}
export function forgetSettings() { // the events that come again tell what was set
    for (const entry of settingRows.values()) {
        entry.current = entry.sure = entry.start;
        if (!entry.row.classList.contains("dirty")) { entry.field.value = entry.start; }
    }
}
// What was set, by whichever page, is in the record: "page 127.0.0.1: mass1.m = 0.1 kg".
export function learnSetting(e) {
    const set = e.kind === "mark" ? /^(?:page \S+: )?(.+?) = (\S+)/.exec(e.text) : null;
    const refused = e.kind === "error" ? /^(.+?): (refused by unit .*)$/.exec(e.text) : null;
    const entry = settingRows.get(set ? set[1] : refused ? refused[1] : "");
    if (!entry) { return; }
    if (refused) {
        entry.current = entry.sure;
        entry.error.textContent = refused[2];
    } else {
        entry.current = entry.sure = set[2];
    }
    show(entry.error, refused !== null);
    entry.field.setAttribute("aria-invalid", refused ? "true" : "false");
    if (!entry.row.classList.contains("dirty") && !refused) { entry.field.value = entry.current; }
}
function limits(s) {
    const low = exact(s.min), high = exact(s.max);
    if (low && high) { return low + " … " + high; }
    return low ? "≥ " + low : high ? "≤ " + high : "";
}
