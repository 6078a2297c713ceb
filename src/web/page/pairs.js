// Wave pairs below the connections: a row for each, the side that owns the flow first.
import { $, el, say, show, tail } from "./dom.js";
import { DASH, NARROW, count, figure } from "./numbers.js";
import { run } from "./state.js";

let rows = [];
export function buildPairs() {
    for (const body of $("pairs").querySelectorAll("tbody")) { body.remove(); }
    const ports = run.hello.ports;
    show($("pairs"), ports.length > 0);
    rows = [];
    for (let i = 0; i < ports.length; i += 2) {
        const [a, b] = [ports[i].output, ports[i + 1].output], title = ports[i].pair + ": " + a + " ⇄ " + b;
        const cells = ["tank", "dumped", "predicted"].map((label) => el("td", { class: "r", "data-label": label }));
        const name = el("div", { class: "row-name", title }, tail("", a), el("span", { class: "arrow", text: "⇄" }), tail("", b));
        rows.push({ cells, body: el("tbody", null, el("tr", null, el("td", { class: "first" }, name), ...cells)) });
    }
    $("pairs").append(...rows.map((r) => r.body));
}

export function refreshPairs() {
    rows.forEach((r, i) => {
        const [a, b] = run.status.ports.slice(2 * i, 2 * i + 2);
        const energies = (x, y) => figure(x, 3) + " / " + figure(y, 3) + NARROW + "J";
        say(r.cells[0], energies(a.tank, b.tank));
        say(r.cells[1], energies(a.dumped, b.dumped));
        const acted = [a.predicted, b.predicted].filter((n) => n !== null);
        say(r.cells[2], acted.length ? acted.map(count).join(" / ") : DASH);
    });
}
