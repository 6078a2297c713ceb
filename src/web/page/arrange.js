// Where units and their links are drawn: layers, their order, heights. Knows no elements of the page.
export const FOOT = 10; // below the ports of a box
const BETWEEN = 26;     // boxes of a layer

// Breadth first from the units that nobody feeds: the place of each.
function discovery(next) {
    const n = next.length, entered = new Array(n).fill(0), seen = new Array(n).fill(false), queue = [];
    next.forEach((list) => list.forEach((b) => { entered[b]++; }));
    const meet_ = (a) => {
        if (!seen[a]) {
            seen[a] = true;
            queue.push(a);
        }
    };
    let done = 0;
    const follow = () => {
        for (; done < queue.length; done++) { next[queue[done]].forEach(meet_); }
    };
    entered.forEach((count_, a) => { if (count_ === 0) { meet_(a); } });
    follow();
    for (let a = 0; a < n; a++) {
        meet_(a);
        follow();
    }
    const place = new Array(n);
    queue.forEach((a, i) => { place[a] = i; });
    return place;
}

// Loops are cut at the links that go back in an order of the units. The rank of each unit is the
// longest path to it; the cost is that of the drawing: layers, and links that were turned round.
function layersFor(place, links) {
    const n = place.length, pairs = new Map(), rank = new Array(n).fill(0);
    let turned = 0;
    links.forEach((l, i) => {
        if (l.from_unit === l.to_unit) { return; }
        const back = place[l.to_unit] < place[l.from_unit];
        turned += back ? 1 : 0;
        const a = back ? l.to_unit : l.from_unit, b = back ? l.from_unit : l.to_unit, key = a + " " + b;
        if (!pairs.has(key)) { pairs.set(key, { a, b, links: [] }); }
        pairs.get(key).links.push({ i, back });
    });
    for (let round = 0, moved = true; moved && round <= n; round++) {
        moved = false;
        for (const p of pairs.values()) {
            if (rank[p.b] < rank[p.a] + 1) {
                rank[p.b] = rank[p.a] + 1;
                moved = true;
            }
        }
    }
    return { pairs, rank, cost: Math.max(0, ...rank) + turned / (1 + links.length) };
}
// The order of the file is the natural one; that of discovery, from the units that nobody feeds, may
// be shorter.
function bestLayers(units, links) {
    const next = units.map(() => []);
    for (const l of links) {
        if (l.from_unit !== l.to_unit && !next[l.from_unit].includes(l.to_unit)) { next[l.from_unit].push(l.to_unit); }
    }
    const asWritten = layersFor(units.map((u, i) => i), links), asFound = layersFor(discovery(next), links);
    const { pairs, rank } = asFound.cost < asWritten.cost ? asFound : asWritten;
    // A unit that feeds something stands beside it, not far left of it.
    for (let u = 0; u < units.length; u++) {
        let into = 0, least = Infinity;
        for (const p of pairs.values()) {
            if (p.b === u) { into++; }
            if (p.a === u) { least = Math.min(least, rank[p.b]); }
        }
        if (into === 0 && least < Infinity) { rank[u] = least - 1; }
    }
    return { pairs, rank };
}

// Units in layers, with bends where a link passes a layer; then sweeps by barycentres.
export function arrange(units, links, look) {
    const { pairs, rank } = bestLayers(units, links);
    const linked = new Set();
    for (const p of pairs.values()) { linked.add(p.a).add(p.b); }
    links.forEach((l) => { if (l.from_unit === l.to_unit) { linked.add(l.from_unit); } });
    const layers = [];
    const nodes = [];
    const node = (r, unit) => {
        const made = { unit, rank: r, left: [], right: [], x: 0, y: 0, w: 0, h: 0, order: 0 };
        (layers[r] = layers[r] || []).push(made);
        nodes.push(made);
        return made;
    };
    const of = units.map((u, i) => (linked.has(i) ? node(rank[i], i) : null));
    const strands = []; // pieces between neighbouring layers
    for (const p of pairs.values()) {
        let from = of[p.a];
        const route = [from];
        for (let r = rank[p.a] + 1; r < rank[p.b]; r++) {
            const bend = node(r, -1);
            bend.h = look.pitch * p.links.length;
            route.push(bend);
            from = bend;
        }
        route.push(of[p.b]);
        for (let k = 0; k + 1 < route.length; k++) {
            route[k].right.push(route[k + 1]);
            route[k + 1].left.push(route[k]);
        }
        strands.push({ pair: p, route });
    }
    order(layers);
    return { layers, nodes, of, strands, alone: units.map((u, i) => i).filter((i) => !linked.has(i)) };
}
function order(layers) {
    const number = () => layers.forEach((layer) => layer.forEach((v, i) => { v.order = i; }));
    const mean = (list) => list.reduce((sum, v) => sum + v.order, 0) / list.length;
    const crossings = () => {
        let sum = 0;
        for (let r = 0; r + 1 < layers.length; r++) {
            const lines = [];
            layers[r].forEach((v) => v.right.forEach((w) => lines.push([v.order, w.order])));
            if (lines.length > 400) { continue; }
            for (let i = 0; i < lines.length; i++) {
                for (let j = 0; j < i; j++) {
                    if ((lines[i][0] - lines[j][0]) * (lines[i][1] - lines[j][1]) < 0) { sum++; }
                }
            }
        }
        return sum;
    };
    number();
    let best = crossings(), kept = layers.map((l) => l.slice());
    for (let sweep = 0; sweep < 12; sweep++) {
        const down = sweep % 2 === 0;
        const list = down ? layers : layers.slice().reverse();
        for (const layer of list) {
            const side = down ? "left" : "right";
            const wish = new Map(layer.map((v) => [v, v[side].length ? mean(v[side]) : v.order]));
            layer.sort((a, b) => wish.get(a) - wish.get(b) || a.order - b.order);
            layer.forEach((v, i) => { v.order = i; });
        }
        const now = crossings();
        if (now < best) {
            best = now;
            kept = layers.map((l) => l.slice());
        }
    }
    kept.forEach((layer, r) => { layers[r] = layer; });
    number();
}


// Vertical places: towards the neighbours' ports, without overlap.
function putLayers(plan, ports, ends, look) {
    for (const layer of plan.layers) {
        let y = 8;
        for (const v of layer) {
            v.y = y;
            y += v.h + BETWEEN;
        }
    }
    const rows = () => {
        for (const v of plan.nodes) {
            if (v.unit < 0) { continue; }
            for (const side of ["left", "right"]) {
                const list = ports[v.unit][side];
                list.sort((a, b) => (a.toward.y + a.toward.h / 2) - (b.toward.y + b.toward.h / 2) || a.link - b.link);
                list.forEach((q, i) => { q.y = look.head + (i + 0.5) * look.pitch; });
            }
        }
    };
    // Where the line of a port is at its other end, or at its first bend.
    const farEnd = (q) => {
        const e = ends[q.link], other = e.a === q ? e.b : e.a;
        return q.toward.unit >= 0 ? q.toward.y + other.y : q.toward.y + q.toward.h * (e.at + 0.5) / e.of;
    };
    const middle = (v) => (v.unit >= 0 ? v.y + look.head + (v.h - look.head - FOOT) / 2 : v.y + v.h / 2);
    rows();
    for (let sweep = 0; sweep < 14; sweep++) {
        const forth = sweep % 2 === 0;
        for (const layer of forth ? plan.layers : plan.layers.slice().reverse()) {
            settle(layer, layer.map((v) => {
                if (v.unit >= 0) {
                    const p = ports[v.unit], near = forth ? p.left : p.right;
                    const use = near.length && sweep < 12 ? near : p.left.concat(p.right);
                    return use.length ? use.reduce((sum, q) => sum + farEnd(q) - q.y, 0) / use.length : v.y;
                }
                const use = v.left.concat(v.right);
                return use.reduce((sum, w) => sum + middle(w), 0) / use.length - v.h / 2;
            }));
        }
        rows();
    }
    const top = Math.min(...plan.nodes.map((v) => v.y), Infinity);
    for (const v of plan.nodes) { v.y += 8 - top; }
    rows();
}
// Nearest places to the wishes in the given order: blocks that touch move together.
function settle(layer, wish) {
    const blocks = [];
    layer.forEach((v, i) => {
        let block = { items: [v], sum: wish[i], size: v.h + BETWEEN, y: wish[i] };
        while (blocks.length && blocks[blocks.length - 1].y + blocks[blocks.length - 1].size > block.y) {
            const before = blocks.pop();
            block = {
                items: before.items.concat(block.items),
                sum: before.sum + block.sum - block.items.length * before.size,
                size: before.size + block.size, y: 0,
            };
            block.y = block.sum / block.items.length;
        }
        blocks.push(block);
    });
    for (const b of blocks) {
        let y = b.y;
        for (const v of b.items) {
            v.y = y;
            y += v.h + BETWEEN;
        }
    }
}

// ---- places ----------------------------------------------------------------------------------------

// Where links leave and enter the boxes: ports of each unit, both ends of each link.
function connectPorts(units, links, strands) {
    const ports = units.map(() => ({ left: [], right: [] }));
    const ends = links.map(() => ({}));
    const name = (text, unit) => (text.startsWith(unit.name + ".") ? text.slice(unit.name.length + 1) : text);
    for (const { pair, route } of strands) {
        for (const { i, back } of pair.links) {
            const l = links[i];
            const a = { link: i, text: name(back ? l.to : l.from, units[pair.a]), toward: route[1], into: back };
            const b = { link: i, text: name(back ? l.from : l.to, units[pair.b]), toward: route[route.length - 2], into: !back };
            ports[pair.a].right.push(a);
            ports[pair.b].left.push(b);
            ends[i] = { a, b, back, route, at: pair.links.findIndex((x) => x.i === i), of: pair.links.length };
        }
    }
    return { ports, ends };
}
function boxSize(u, p, selves, look, widthOf) {
    const rows = Math.max(p.left.length, p.right.length);
    const widest = (list) => Math.max(0, ...list.map((q) => widthOf.small(q.text)));
    const inner = look.ports ? widest(p.left) + widest(p.right) : 0;
    const second = widthOf.small(u.remote ? "SENDING_D" : u.kind) + (look.ports ? 74 : 34);
    const w = Math.min(look.most, Math.max(look.least, widthOf.name(u.name) + 44, second, inner + 44));
    return { w, h: look.head + rows * look.pitch + selves * 18 + (rows ? FOOT : 0) };
}
// Returns the width of all. Numbers of both directions stand side by side, where there is room.
function putColumns(plan, look) {
    const both = plan.strands.some(({ pair, route }) => route.length === 2 && pair.links.some((q) => q.back) && pair.links.some((q) => !q.back));
    const gap = both && look.ports ? Math.max(look.gap, 192) : look.gap;
    let x = 8;
    for (const layer of plan.layers) {
        const w = Math.max(0, ...layer.map((v) => v.w));
        for (const v of layer) { v.x = x + (w - v.w) / 2; }
        x += w + gap;
    }
    return plan.layers.length ? x - gap + 8 : 8;
}
// Units without links, in rows below `plan`, which grows by them.
function putAlone(alone, boxes, plan) {
    const w = Math.max(...alone.map((i) => boxes[i].w)), h = Math.max(...alone.map((i) => boxes[i].h));
    const some = Math.round(Math.max((plan.width - 8) / (w + 24), Math.sqrt(alone.length * 1.2)));
    const columns = Math.max(1, Math.min(alone.length, some));
    const top = plan.height > 0 ? plan.height + 36 : 8;
    alone.forEach((u, k) => {
        plan.at[u] = { unit: u, x: 8 + (k % columns) * (w + 24), y: top + Math.floor(k / columns) * (h + 24), w, h };
    });
    plan.width = Math.max(plan.width, 8 + columns * (w + 24) - 16);
    plan.height = top + Math.ceil(alone.length / columns) * (h + 24) - 24;
}

// The whole plan. `look` has the sizes of things, widthOf.name and widthOf.small measure texts.
export function placeUnits(units, links, look, widthOf) {
    const parts = arrange(units, links, look);
    const { ports, ends } = connectPorts(units, links, parts.strands);
    const selves = units.map(() => []);
    links.forEach((l, i) => { if (l.from_unit === l.to_unit) { selves[l.from_unit].push(i); } });
    const boxes = units.map((u, i) => boxSize(u, ports[i], selves[i].length, look, widthOf));
    for (const v of parts.nodes) {
        if (v.unit >= 0) { Object.assign(v, boxes[v.unit]); }
    }
    const plan = { at: parts.of.slice(), ports, ends, selves, width: putColumns(parts, look), height: 0 };
    putLayers(parts, ports, ends, look);
    for (const v of parts.nodes) { plan.height = Math.max(plan.height, v.y + v.h); }
    if (parts.alone.length) { putAlone(parts.alone, boxes, plan); }
    plan.height += 8;
    return plan;
}
