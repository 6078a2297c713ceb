// The unit or the connection that was clicked, in all panels.
import { run } from "./state.js";

const selected = [];
export const onSelect = (f) => selected.push(f);

export function select(what) {
    run.selected = what;
    for (const f of selected) { f(); }
    for (const group of document.querySelectorAll("#settings section, #signals fieldset")) {
        const on = Number(group.dataset.unit) === what.unit;
        group.classList.toggle("chosen", on);
        if (on) { bring(group); }
    }
}
export function bring(node) { // into its own box, without moving the page
    const box = node.closest(".scroll, #signals");
    if (!box || box.scrollHeight <= box.clientHeight) { return; }
    const a = node.getBoundingClientRect(), b = box.getBoundingClientRect();
    const head = box.querySelector("thead"), covered = head ? head.offsetHeight : 0;
    if (a.top < b.top + covered || a.bottom > b.bottom) { box.scrollTop += a.top - b.top - covered; }
}
