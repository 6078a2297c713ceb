// Which stretch of time the plots show.
import { $, show } from "./dom.js";

export const view = {
    length: 10,      // s; 0: all that is kept
    held: false,
    zoom: null,      // [from, to]
    from: 0, to: 10, // shown
    changed: true,
    hover: null,     // {card, x}: what is under the pointer
};
export const LENGTHS = [5, 10, 30, 60, 0];

export function zoomTo(from, to) {
    if (to > from) {
        view.zoom = [from, to];
        refreshView();
    }
}
export function unzoom() {
    view.zoom = null;
    view.held = false;
    refreshView();
}
export function hold(on) {
    view.held = on;
    refreshView();
}
export function refreshView() {
    $("hold").setAttribute("aria-pressed", view.held ? "true" : "false");
    show($("unzoom"), view.zoom !== null);
    for (const button of $("windows").children) {
        const on = Number(button.dataset.length) === view.length;
        button.setAttribute("aria-checked", on ? "true" : "false");
        button.tabIndex = on ? 0 : -1;
    }
    view.changed = true;
}
