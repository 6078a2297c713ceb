// Numbers as texts.

export const MINUS = "\u2212", DASH = "\u2013", NARROW = "\u202f";

export const minus = (text) => text.replace(/-/g, MINUS);
export function figure(x, digits) {
    if (x === null || x === undefined || Number.isNaN(x)) { return "NaN"; }
    if (!Number.isFinite(x)) { return x > 0 ? "\u221e" : MINUS + "\u221e"; }
    const size = Math.abs(x);
    if (size === 0) { return "0"; }
    if (size >= 1e6 || size < 1e-3) {
        return minus(x.toExponential(digits - 2).replace("e+", "e"));
    }
    const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
    return minus(x.toFixed(Math.min(decimals, digits + 1)));
}
export const value = (x, type) => (type && type !== "real" && Number.isFinite(x) ? minus(String(x)) : figure(x, 5));
export function plain(x) { // as one would type it
    const size = Math.abs(x), text = String(Number(x.toPrecision(12)));
    return size >= 1e7 || (size > 0 && size < 1e-4) ? Number(text).toExponential().replace("e+", "e") : text;
}
export const exact = (x) => (x === null || x === undefined ? "" : minus(plain(x)));
export function duration(s, digits) {
    if (s === null || s === undefined || Number.isNaN(s)) { return DASH; }
    const size = Math.abs(s), d = digits || 3;
    if (size === 0) { return "0" + NARROW + "s"; }
    for (const [unit, name] of [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]]) {
        if (size >= 0.9995 * unit) { return minus(short(s / unit, d)) + NARROW + name; }
    }
    return minus(short(s / 1e-9, d)) + NARROW + "ns";
}
export function short(x, d) { // d figures, no exponent
    const whole = Math.floor(Math.log10(Math.abs(x))) + 1;
    return x.toFixed(Math.max(0, Math.min(d - whole, d)));
}
export function count(n) {
    return n === null || n === undefined ? DASH : String(n).replace(/\B(?=(\d{3})+$)/g, NARROW);
}
export const counted = (n, what) => count(n) + " " + what + (n === 1 ? "" : "s");
export function percent(x) {
    if (x === null || x === undefined || Number.isNaN(x)) { return DASH; }
    const p = 100 * Math.abs(x);
    if (p === 0) { return "0" + NARROW + "%"; }
    if (p < 0.001) { return "<" + NARROW + "0.001" + NARROW + "%"; }
    if (p >= 1000) { return ">" + NARROW + "1000" + NARROW + "%"; }
    return (p >= 100 ? p.toFixed(0) : p >= 9.95 ? p.toFixed(1) : p >= 0.095 ? p.toFixed(2) : p.toFixed(3)) + NARROW + "%";
}
export const withUnit = (text, unit) => (unit && unit !== "1" ? text + NARROW + unit : text);
