// What the viewer knows: files, signals by name, the window of time, cursors, panels.
import { store } from "./dom.js";
import { alike } from "./view_math.js";

export const viewer = {
    hello: null, source: null,
    files: [],        // {name, path, shown, events, ...}
    signals: [],      // {name, unit, type, description; of each file: of (signal, -1: none), units, labels, texts}
    byName: new Map(),
    reference: 0,     // file
    whole: [0, 1],
    from: 0, to: 1,
    cursors: [NaN, NaN],
    panels: [],
    active: null,     // panel that a double click adds to
    columns: 0,       // 0: by width
    events: true,
};

const changes = [];
export const onViewer = (f) => changes.push(f);
let frame = 0;
export function changed() { // once a frame
    if (!frame) { frame = requestAnimationFrame(() => { frame = 0; for (const f of changes) { f(); } }); }
}

const baseName = (path) => path.replace(/^.*\//, "");
// Signals of one name are laid over each other, unless their units of measure or kinds do not go together.
const goesWith = (s, unit, type, i) => s.of[i] < 0 && (s.type === "text") === (type === "text") && alike(viewer.hello.units, s.unit, unit);
export function takeHello(hello) {
    viewer.hello = hello;
    const names = hello.files.map((f) => baseName(f.path));
    viewer.files = hello.files.map((f, i) => Object.assign(f, {
        index: i, shown: true,
        name: names.filter((n) => n === names[i]).length > 1 ? f.path : names[i],
    }));
    viewer.byName.clear();
    hello.files.forEach((f, i) => f.signals.forEach(([name, unit, type, group, description, labels], k) => {
        const clashes = (n) => viewer.byName.has(n) && !goesWith(viewer.byName.get(n), unit, type, i);
        let known = clashes(name) && unit ? name + " [" + unit + "]" : name;
        for (let n = 2; clashes(known); n++) { known = name + " (" + n + ")"; }
        if (!viewer.byName.has(known)) {
            viewer.byName.set(known, { name: known, unit, type, description, of: hello.files.map(() => -1), units: hello.files.map(() => unit),
                labels: hello.files.map(() => new Map()), texts: hello.files.map(() => []), key: (known + " " + unit + " " + description).toLowerCase() });
        }
        const s = viewer.byName.get(known);
        s.of[i] = k;
        s.unit = s.unit || unit; // of the first file that says it
        s.units[i] = unit;
        s.labels[i] = new Map(labels || []);
    }));
    viewer.signals = Array.from(viewer.byName.values());
    let [a, b] = [hello.start, hello.stop];
    if (a === null || b === null) { [a, b] = [0, 1]; }
    if (!(a < b)) { [a, b] = [a - 0.5, b + 0.5]; }
    viewer.whole = [a, b];
    [viewer.from, viewer.to] = viewer.whole;
}

export const isState = (s) => s.type === "boolean" || s.type === "enumeration" || s.type === "text";
export const holdsValue = (s) => s.type !== "real";

// A window of time that stays near the data and is wider than numbers can tell apart.
export function clampWindow(from, to) {
    const [a, b] = viewer.whole, all = b - a, least = Math.max(1e-12 * Math.max(Math.abs(a), Math.abs(b)), all * 1e-9, 1e-12);
    let span = Math.min(Math.max(to - from, least), 1.2 * all), middle = (from + to) / 2;
    middle = Math.min(Math.max(middle, a), b);
    if (!Number.isFinite(span) || !Number.isFinite(middle)) { return [a, b]; }
    return [middle - span / 2, middle + span / 2];
}
export function setWindow(panel, from, to) {
    const [a, b] = clampWindow(from, to);
    if (panel && panel.own) { panel.own = [a, b]; } else { viewer.from = a; viewer.to = b; }
    changed();
}
export const windowOf = (panel) => (panel && panel.own ? panel.own : [viewer.from, viewer.to]);
export function showAll(panel) {
    const air = 0.01 * (viewer.whole[1] - viewer.whole[0]);
    setWindow(panel, viewer.whole[0] - air, viewer.whole[1] + air);
}

export const remembered = (key, otherwise) => store.get("localStorage", "cardan.view." + key) || otherwise;
export const remember = (key, value) => store.set("localStorage", "cardan.view." + key, value);
