// Where the numbers of the viewer come from: a server, or the page itself if it was exported.
// docs/how-to/view.md has the messages.
import { Asker } from "./ask.js";
import { $ } from "./dom.js";
import { conversion, convert } from "./view_math.js";

const EMPTY = new Float64Array(0);
// {part, samples, n, t, low, high, error} of each track; bytes as view.c has them.
function readStrips(buffer) {
    const head = new DataView(buffer), count = head.getUint32(8, true), strips = [];
    let at = 16;
    for (let i = 0; i < count; i++) {
        const part = head.getFloat64(at, true), kind = head.getUint32(at + 8, true), n = head.getUint32(at + 12, true);
        at += 16;
        if (kind === 2) {
            const error = new TextDecoder().decode(new Uint8Array(buffer, at, n));
            strips.push({ part: 1, samples: true, n: 0, t: EMPTY, low: EMPTY, high: EMPTY, error });
            at += Math.ceil(n / 8) * 8;
            continue;
        }
        const take = () => { const list = new Float64Array(buffer, at, n); at += 8 * n; return list; };
        const t = take(), low = take(), high = kind === 0 ? take() : low;
        strips.push({ part, samples: kind === 1, n, t, low, high, error: null });
    }
    return strips;
}

// ---- a server --------------------------------------------------------------------------------------

class ServerSource extends Asker {
    constructor(changed) {
        super("cardan.view.1", changed, (buffer) => [new DataView(buffer).getUint32(4, true), readStrips(buffer)]);
    }
    look(tracks, from, to, pixels) { return this.ask("look", { tracks, from, to, pixels }); }
    async rows(track, from, to, most, thin) {
        const [strip] = await this.ask("rows", { tracks: [track], from, to, most, thin });
        return Object.assign(strip, { all: strip.part });
    }
    async at(tracks, times) { return (await this.ask("at", { tracks, times })).values; }
    async texts(track) { return (await this.ask("texts", { tracks: [track] })).texts; }
    save(layout) { return this.ask("save", { layout }); }
}

// ---- an exported page ------------------------------------------------------------------------------

class InsideSource {
    constructor(changed) {
        this.live = false;
        const bytes = Uint8Array.from(atob($("cardan-data").textContent.trim()), (c) => c.charCodeAt(0));
        this.strips = readStrips(bytes.buffer);
        const hello = JSON.parse($("cardan-hello").textContent);
        this.hello = hello;
        this.first = [];
        let n = 0;
        for (const f of hello.files) { this.first.push(n); n += f.signals.length; }
        setTimeout(() => changed("hello", hello));
    }
    strip(track) {
        const s = this.strips[this.first[track[0]] + track[1]];
        if (track.length < 4 || s.error) { return s; }
        const unit = (f, i) => this.hello.files[f].signals[i][1];
        const b = convert(this.strips[this.first[track[2]] + track[3]], conversion(this.hello.units, unit(track[2], track[3]), unit(track[0], track[1])));
        const low = new Float64Array(s.n), high = new Float64Array(s.n);
        for (let i = 0, k = 0; i < s.n; i++) { // as good as what the page has: the extremes of pixels
            while (k + 1 < b.n && b.t[k + 1] <= s.t[i]) { k++; }
            const inside = b.n > 0 && s.t[i] >= b.t[0] && s.t[i] <= b.t[b.n - 1];
            const next = b.samples && k + 1 < b.n && b.t[k + 1] > b.t[k] ? (s.t[i] - b.t[k]) / (b.t[k + 1] - b.t[k]) : 0;
            const between = (v) => v[k] + (next ? next * (v[k + 1] - v[k]) : 0);
            low[i] = inside ? s.low[i] - between(b.high) : NaN;
            high[i] = inside ? s.high[i] - between(b.low) : NaN;
        }
        return { part: 1, samples: s.samples && b.samples, n: s.n, t: s.t, low, high, error: null };
    }
    look(tracks) { return Promise.resolve(tracks.map((t) => this.strip(t))); }
    rows(track, from, to) {
        const s = this.strip(track), t = [], low = [];
        for (let i = 0; i < s.n; i++) { if (s.t[i] >= from && s.t[i] <= to) { t.push(s.t[i]); low.push((s.low[i] + s.high[i]) / 2); } }
        const v = Float64Array.from(low);
        return Promise.resolve({ part: 1, samples: true, n: t.length, t: Float64Array.from(t), low: v, high: v, error: null, all: t.length,
            thinned: !s.samples });
    }
    at(tracks, times) {
        return Promise.resolve(tracks.map((track) => times.map((time) => {
            const s = this.strip(track);
            let i = -1;
            while (i + 1 < s.n && s.t[i + 1] <= time) { i++; }
            const pick = (k) => (k >= 0 && k < s.n ? [s.t[k], s.low[k]] : [null, null]);
            return [...pick(i), ...pick(i + 1)];
        })));
    }
    texts() { return Promise.resolve([]); } // they are labels there
    save() { return Promise.reject(new Error("This page is a copy: layouts are saved by cardan view.")); }
}

export const openSource = (changed) => ($("cardan-data") ? new InsideSource(changed) : new ServerSource(changed));
