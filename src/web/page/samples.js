// Samples of the watched signals, as frames bring them.
//
// One ring of rows for all watched signals; a row's number never changes. Beside the rows each
// signal keeps, for every 16 of them, the smallest and the largest in the order in which they
// came: a minute at 2 kHz is drawn from that without looking at every row.
import { view } from "./view.js";

export const SIZE = 1 << 17, PACK = 16, PACKED = SIZE / PACK * 2;
export const ring = {
    rows: 0, // ever
    time: new Float64Array(SIZE),
    packedTime: new Float64Array(PACKED),
    signals: new Map(), // name -> {v, m, last}
    order: [],          // names in a frame
    lost: 0,

    newest() { return this.time[(this.rows - 1) & (SIZE - 1)]; },
    oldestRow() { return this.rows <= SIZE ? 0 : Math.ceil((this.rows - SIZE + 1) / PACK) * PACK; },
    forget() {
        this.rows = 0;
        for (const s of this.signals.values()) { s.v.fill(NaN); s.m.fill(NaN); s.last = NaN; }
        view.changed = true;
    },
    watch(names) {
        for (const name of this.signals.keys()) {
            if (!names.includes(name)) { this.signals.delete(name); }
        }
        for (const name of names) {
            if (!this.signals.has(name)) {
                this.signals.set(name, { v: new Float64Array(SIZE).fill(NaN), m: new Float64Array(PACKED).fill(NaN), last: NaN });
            }
        }
        this.order = names;
    },
    gap() { // a row without values: lines break here
        if (this.rows > 0) { this.add(Float64Array.of(this.newest()), () => Float64Array.of(NaN)); }
    },
    add(times, valuesOf) {
        const n = times.length, first = this.rows;
        put(this.time, first, times);
        this.rows += n;
        for (let k = 0; k < this.order.length; k++) {
            const s = this.signals.get(this.order[k]), values = valuesOf(k);
            put(s.v, first, values);
            s.last = values[n - 1];
            this.pack(s, first);
        }
        const last = this.rows - 1;
        for (let p = Math.floor(first / PACK); p <= Math.floor(last / PACK); p++) {
            const at = (2 * p) & (PACKED - 1);
            this.packedTime[at] = this.time[(p * PACK) & (SIZE - 1)];
            this.packedTime[at + 1] = this.time[Math.min(p * PACK + PACK - 1, last) & (SIZE - 1)];
        }
        view.changed = true;
    },
    pack(s, first) {
        const last = this.rows - 1;
        for (let p = Math.floor(first / PACK); p <= Math.floor(last / PACK); p++) {
            extremes(s.v, SIZE - 1, p * PACK, Math.min(p * PACK + PACK - 1, last));
            const at = (2 * p) & (PACKED - 1);
            s.m[at] = pair[0];
            s.m[at + 1] = pair[1];
        }
    },
    rowAt(t) { // first row at or behind t
        let low = this.oldestRow(), high = this.rows;
        while (low < high) {
            const middle = (low + high) >> 1;
            if (this.time[middle & (SIZE - 1)] < t) { low = middle + 1; } else { high = middle; }
        }
        return low;
    },
};
// The newest value of a signal; NaN: it is not watched.
export const lastOf = (name) => (ring.signals.has(name) ? ring.signals.get(name).last : NaN);

function put(to, row, from) {
    const at = row & (SIZE - 1), room = SIZE - at;
    if (from.length <= room) {
        to.set(from, at);
    } else {
        to.set(from.subarray(0, room), at);
        to.set(from.subarray(room), 0);
    }
}
export const pair = [0, 0];
export function extremes(v, mask, first, last) { // into pair, in the order in which they came
    let low = Infinity, high = -Infinity, lowAt = -1, highAt = -1;
    for (let i = first; i <= last; i++) {
        const x = v[i & mask];
        if (x < low) { low = x; lowAt = i; }
        if (x > high) { high = x; highAt = i; }
    }
    if (lowAt < 0) {
        pair[0] = pair[1] = NaN;
    } else if (lowAt <= highAt) {
        pair[0] = low; pair[1] = high;
    } else {
        pair[0] = high; pair[1] = low;
    }
}

export function takeFrame(buffer) {
    const head = new DataView(buffer);
    if (head.getUint32(0, true) !== 1) { return; }
    let n = head.getUint32(4, true);
    const s = head.getUint32(8, true);
    ring.lost = head.getUint32(12, true);
    if (n === 0 || s !== ring.order.length || buffer.byteLength < 16 + 8 * n * (s + 1)) { return; }
    if (n > SIZE) { n = SIZE; }
    const all = head.getUint32(4, true);
    const times = new Float64Array(buffer, 16, n);
    if (ring.rows > 0 && times[0] < ring.newest() - 1e-9) { ring.forget(); }
    ring.add(times, (k) => new Float64Array(buffer, 16 + 8 * all * (k + 1), n));
}
