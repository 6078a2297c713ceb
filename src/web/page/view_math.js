// Numbers of the viewer: spectra, histograms, values between samples, units of measure.
import { firstAtOrBehind } from "./chart.js";

// In place, n a power of two: X[k] = sum x[i] exp(-2 pi j i k / n).
export function fourier(re, im) {
    const n = re.length;
    for (let i = 1, j = 0; i < n; i++) {
        let bit = n >> 1;
        for (; j & bit; bit >>= 1) { j ^= bit; }
        j ^= bit;
        if (i < j) { [re[i], re[j]] = [re[j], re[i]]; [im[i], im[j]] = [im[j], im[i]]; }
    }
    for (let size = 2; size <= n; size *= 2) {
        const half = size / 2;
        for (let k = 0; k < half; k++) {
            const c = Math.cos(-2 * Math.PI * k / size), s = Math.sin(-2 * Math.PI * k / size);
            for (let i = k; i < n; i += size) {
                const j = i + half, r = re[j] * c - im[j] * s, m = re[j] * s + im[j] * c;
                re[j] = re[i] - r;
                im[j] = im[i] - m;
                re[i] += r;
                im[i] += m;
            }
        }
    }
}

// Amplitudes over frequency of samples: mean removed, Hann's window, A[k] = 2 |X[k]| / sum w, so that a sine of
// amplitude 1 is a peak of 1. Samples at uneven times are put on a grid of their mean distance.
export function spectrum(t, v) {
    const x = [], y = [];
    for (let i = 0; i < t.length; i++) { if (Number.isFinite(v[i]) && (x.length === 0 || t[i] > x[x.length - 1])) { x.push(t[i]); y.push(v[i]); } }
    if (x.length < 8) { return null; }
    const n = x.length, step = (x[n - 1] - x[0]) / (n - 1);
    let size = 8;
    while (size < n) { size *= 2; }
    const re = new Float64Array(size), im = new Float64Array(size);
    let sum = 0, mean = 0;
    for (let i = 0, k = 0; i < n; i++) {
        const at = x[0] + i * step;
        while (k + 2 < n && x[k + 1] <= at) { k++; }
        re[i] = y[k] + (y[k + 1] - y[k]) * (at - x[k]) / (x[k + 1] - x[k]);
        mean += re[i] / n;
    }
    for (let i = 0; i < n; i++) {
        const w = 0.5 - 0.5 * Math.cos(2 * Math.PI * i / (n - 1));
        re[i] = (re[i] - mean) * w;
        sum += w;
    }
    fourier(re, im);
    const f = new Float64Array(size / 2), a = new Float64Array(size / 2);
    for (let k = 0; k < size / 2; k++) {
        f[k] = k / (size * step);
        a[k] = 2 * Math.hypot(re[k], im[k]) / sum;
    }
    return { f, a };
}

// Shares of samples in equal bins: edges (bins + 1), parts (bins).
export function histogram(lists, bins) {
    let low = Infinity, high = -Infinity;
    for (const v of lists) { for (const x of v) { if (x < low) { low = x; } if (x > high) { high = x; } } }
    if (!(low <= high)) { return null; }
    if (low === high) { low -= 0.5; high += 0.5; }
    const edges = new Float64Array(bins + 1).map((x, i) => low + (high - low) * i / bins);
    const parts = lists.map((v) => {
        const p = new Float64Array(bins);
        let n = 0;
        for (const x of v) { if (Number.isFinite(x)) { p[Math.min(bins - 1, Math.floor((x - low) / (high - low) * bins))]++; n++; } }
        return n ? p.map((k) => k / n) : p;
    });
    return { edges, parts };
}

// At a time between samples [t0, v0, t1, v1]; NaN outside of them.
export function between(sides, time, holds) {
    const [t0, v0, t1, v1] = sides;
    if (t0 === null || v0 === null) { return NaN; }
    if (time === t0 || holds) { return v0; }
    if (t1 === null || v1 === null) { return time > t0 ? NaN : v0; }
    return v0 + (v1 - v0) * (time - t0) / (t1 - t0);
}
// Values of samples at other times.
export function resample(s, times) {
    return Float64Array.from(times, (t) => {
        const k = firstAtOrBehind(s.t, s.n, t);
        if (k < s.n && s.t[k] === t) { return s.low[k]; }
        return k === 0 || k >= s.n ? NaN : s.low[k - 1] + (s.low[k] - s.low[k - 1]) * (t - s.t[k - 1]) / (s.t[k] - s.t[k - 1]);
    });
}

// From one unit of measure into another, x -> k x + d; differences have no offset.
// units: {name: [[name, factor, offset, dimension], [another name of the dimension, factor, offset], ...]}
const dimension = (units, name) => (units[name] ? units[name][0][3] : null);
// Values in one can be drawn over values in the other: a unit that is not said is any.
export const alike = (units, a, b) => !a || !b || a === b || (dimension(units, a) !== null && dimension(units, a) === dimension(units, b));
export function conversion(units, from, to, difference) {
    const list = units[from];
    if (!list || !to || to === from) { return { k: 1, d: 0 }; }
    const a = list[0], b = list.find((u) => u[0] === to) || (alike(units, from, to) ? units[to][0] : null);
    if (!b) { return { k: 1, d: 0 }; }
    return { k: a[1] / b[1], d: difference ? 0 : (a[2] - b[2]) / b[1] };
}
export function convert(strip, c) {
    if (c.k === 1 && c.d === 0) { return strip; }
    const low = strip.low.map((x) => c.k * x + c.d), high = strip.high === strip.low ? low : strip.high.map((x) => c.k * x + c.d);
    return Object.assign({}, strip, c.k < 0 ? { low: high, high: low } : { low, high });
}
