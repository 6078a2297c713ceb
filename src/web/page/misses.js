// How well each connection does, for all who show it.
import { run } from "./state.js";

// How far a connection misses: its defect over the run where that is monitored, else the error of
// its coupling, of late, against the largest value seen.
let misses = [];
export function forgetMisses() { misses = []; }
export const knownMisses = () => misses.length;
export const missOf = (i) => misses[i].relative;
export function learnMisses() {
    run.status.links.forEach((l, i) => {
        const m = misses[i] || (misses[i] = { most: 0, square: NaN, relative: null });
        if (l.value !== null) { m.most = Math.max(m.most, Math.abs(l.value)); }
        if (l.error !== null && l.error !== undefined) {
            m.square = Number.isNaN(m.square) ? l.error * l.error : m.square + 0.05 * (l.error * l.error - m.square);
        }
        m.relative = l.relative !== null && l.relative !== undefined ? Math.abs(l.relative)
            : m.most > 0 && !Number.isNaN(m.square) ? Math.sqrt(m.square) / m.most : null;
    });
}
export function quality(i) {
    const x = missOf(i), k = run.status.links[i].k;
    if (x !== null) { return x <= 0.01 ? "good" : x <= 0.1 ? "watch" : "bad"; }
    return !(k >= 0) ? "none" : k <= 10 ? "good" : k <= 30 ? "watch" : "bad";
}
export const faulty = (l) => Boolean(l.fault) && l.fault !== "none";
