// Light and dark, and the colours of plots, which a canvas cannot take from the style sheet.
import { $, press, store } from "./dom.js";

const root = document.documentElement;
const CARD_COLOURS = 8;

export const colours = { series: [] };
function readColours() {
    const css = getComputedStyle(root);
    const get = (name) => css.getPropertyValue("--" + name).trim();
    colours.series = [];
    for (let i = 0; i < CARD_COLOURS; i++) { colours.series.push(get("s" + i)); }
    for (const name of ["muted", "grid", "edge", "text", "panel", "accent", "watch", "bad", "fault", "line"]) { colours[name] = get(name); }
}
export const chartLook = () => ({ text: colours.text, muted: colours.muted, grid: colours.grid, panel: colours.panel, accent: colours.accent,
    font: "12px system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif" });
const restyled = [];
export const onTheme = (f) => restyled.push(f); // colours are others now
const darkSystem = window.matchMedia("(prefers-color-scheme: dark)");
function theme(name) {
    root.setAttribute("data-theme", name);
    $("theme").textContent = name === "dark" ? "Light" : "Dark";
    readColours();
    for (const f of restyled) { f(); }
}
const wantedTheme = () => store.get("localStorage", "cardan.theme") || (darkSystem.matches ? "dark" : "light");

export function beginTheme() {
    theme(wantedTheme());
    darkSystem.addEventListener("change", () => theme(wantedTheme()));
    press("theme", () => {
        const name = root.getAttribute("data-theme") === "dark" ? "light" : "dark";
        store.set("localStorage", "cardan.theme", name);
        theme(name);
    });
}
