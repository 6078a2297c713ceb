// The description that is drawn: units, their ports, connections, what is proposed. The server has the truth.

export const model = {
    hello: null, source: null, state: null,
    units: [],        // {name, kind, failure, left: [inputs], right: [outputs], open, x, y, w, h}
    byName: new Map(), // unit index + " " + variable -> port
    wires: [],        // {from, to, line, sure, why}: what is connected
    looks: [],        // {from, to, sure, why}: what could be
};

export function takeModel(hello) {
    model.hello = hello;
    model.units = hello.units.map(([name, kind, failure], index) => ({ index, name, kind, failure, left: [], right: [], open: true, x: 0, y: 0, w: 0, h: 0 }));
    model.byName.clear();
    const ports = hello.ports.map((p) => addPort(...p));
    model.proposed = new Map(); // input -> {from, sure, why}
    for (const [from, to, sure, why] of hello.proposals) { model.proposed.set(ports[to], { from: ports[from], to: ports[to], sure, why }); }
    for (const u of model.units) { u.open = hello.ports.length <= 300; }
}
function addPort(unit, name, out, measure, type, dimension, size, given) {
    const u = model.units[unit], p = { unit: u, name, out, measure: measure === "1" ? "" : measure, type, dimension, size, given, wires: [], box: null,
        key: (u.name + "." + name + " " + measure).toLowerCase(), full: u.name + "." + name };
    (out ? u.right : u.left).push(p);
    model.byName.set(unit + " " + name, p);
    return p;
}
// Elements of arrays and what else has no entry of its own get one when something is connected to it.
const portOf = (unit, name, out) => model.byName.get(unit + " " + name) || addPort(unit, name, out, "", "real", "", 1, false);

export function takeState(state) {
    model.state = state;
    for (const p of model.byName.values()) { p.wires = []; }
    model.wires = state.connections.map(([a, from, b, to, line]) => {
        const wire = { from: portOf(a, from, true), to: portOf(b, to, false), line, sure: "", why: "" };
        const proposal = model.proposed.get(wire.to);
        if (proposal && proposal.from === wire.from) { Object.assign(wire, { sure: model.hello.draft ? proposal.sure : "", why: proposal.why }); }
        wire.from.wires.push(wire);
        wire.to.wires.push(wire);
        return wire;
    });
    model.looks = Array.from(model.proposed.values()).filter((x) => x.to.wires.length === 0 && !x.to.given);
}

// Whether it is worth trying; what really fits the server says.
export function mayFit(a, b) {
    if (a.out === b.out) { return false; }
    const to = a.out ? b : a;
    if (to.wires.length || to.given || a.size !== b.size) { return false; }
    if ((a.type === "text") !== (b.type === "text")) { return false; }
    return !a.dimension || !b.dimension || a.dimension === b.dimension;
}
export const freeInputs = () => model.units.flatMap((u) => u.left.filter((p) => p.wires.length === 0 && !p.given && !model.proposed.has(p)));
