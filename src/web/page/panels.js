// Panels as a whole, and the keys of the page.
import { anyBench, pressEmergency } from "./benches.js";
import { $, press } from "./dom.js";
import { pressStart, pressStep, pressStop } from "./header.js";
import { openPicker } from "./picker.js";
import { redrawPace } from "./realtime.js";
import { select } from "./selection.js";
import { run } from "./state.js";
import { hold, view } from "./view.js";

const panels = ["topology", "plots", "connections", "realtime", "parameters", "events", "benches"];
function enlarge(id) {
    for (const p of panels) {
        const big = p === id && !$(p).classList.contains("big");
        $(p).classList.toggle("big", big);
        const button = $(p).querySelector(".grow");
        button.setAttribute("aria-pressed", big ? "true" : "false");
    }
    document.body.classList.toggle("enlarged", panels.some((p) => $(p).classList.contains("big")));
    view.changed = true;
    redrawPace();
}
function goTo(i) {
    const panel = $(panels[i]);
    if (document.body.classList.contains("enlarged")) {
        enlarge(panels[i]);
    } else if (document.activeElement === panel || panel.contains(document.activeElement)) {
        enlarge(panels[i]);
    }
    panel.focus({ preventScroll: true });
    panel.scrollIntoView({ block: "nearest" });
}
const typing = (node) => node instanceof HTMLElement &&
    (node.isContentEditable || /^(TEXTAREA|SELECT)$/.test(node.tagName) || (node.tagName === "INPUT" && node.type !== "checkbox"));

function openKeys() { // nothing may lie over the emergency stop
    if (anyBench()) { $("keys").show(); } else { $("keys").showModal(); }
}

export function beginPanels() {
    press("help", openKeys);
    $("keys-close").addEventListener("click", () => $("keys").close());
    for (const id of panels) {
        $(id).querySelector(".grow").addEventListener("click", () => enlarge(id));
    }
    document.addEventListener("keydown", (e) => { // wherever one is, and first of all
        if (e.ctrlKey && e.shiftKey && !e.altKey && e.code === "KeyX" && anyBench()) {
            e.preventDefault();
            e.stopPropagation();
            if (!e.repeat) { pressEmergency(); }
        } else if (e.key === "Escape" && $("keys").open) {
            e.stopPropagation();
            $("keys").close();
        }
    }, true);
    document.addEventListener("keydown", (e) => {
        if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented || $("keys").open) { return; }
        if (e.key === "Escape") {
            if (typing(e.target)) {
                e.target.blur();
            } else if (!$("picker").hidden && $("picker").contains(e.target)) {
                openPicker(false);
            } else if (document.body.classList.contains("enlarged")) {
                enlarge("");
            } else if (run.selected.unit >= 0 || run.selected.link >= 0) {
                select({ unit: -1, link: -1 });
            }
            return;
        }
        if (typing(e.target) || e.repeat) { return; }
        const onControl = e.target instanceof Element && e.target.closest("button, input, summary, [role=button]");
        if (e.key === " ") {
            if (onControl) { return; } // that one is meant
            pressStart();
        } else if (e.key === ".") {
            pressStep();
        } else if (e.key === "s" || e.key === "S") {
            pressStop();
        } else if (e.key >= "1" && e.key <= "6") {
            goTo(Number(e.key) - 1);
        } else if ((e.key === "b" || e.key === "B") && anyBench()) {
            goTo(panels.indexOf("benches"));
        } else if ((e.key === "d" || e.key === "D") && !$("desk").hidden) {
            $("desk").focus({ preventScroll: true });
            $("desk").scrollIntoView({ block: "nearest" });
        } else if (e.key === "/") {
            openPicker(true);
            $("filter").focus();
            $("filter").select();
        } else if (e.key === "h" || e.key === "H") {
            hold(!view.held);
        } else if (e.key === "?") {
            openKeys();
        } else {
            return;
        }
        e.preventDefault();
    });
}
