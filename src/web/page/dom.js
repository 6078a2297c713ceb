// Elements of the page: making them, finding them, writing only what has changed.
// Text from the server is data: it enters the page through textContent only.

export const $ = (id) => document.getElementById(id);

function fill(node, attributes, children) {
    for (const [key, value] of Object.entries(attributes || {})) {
        if (key === "text") {
            node.textContent = value;
        } else if (key.startsWith("on")) {
            node.addEventListener(key.slice(2), value);
        } else if (value === true) {
            node.setAttribute(key, "");
        } else if (value !== false && value !== null && value !== undefined) {
            node.setAttribute(key, value);
        }
    }
    for (const child of children) {
        if (child) { node.append(child); }
    }
    return node;
}
export const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) =>
    fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

// Writing what is there already costs a layout; most of what a status brings is there already.
export function say(node, text) {
    if (node.said !== text) {
        node.said = text;
        node.textContent = text;
    }
}
export function mark(node, name, value) {
    const key = "was_" + name;
    if (node[key] !== value) {
        node[key] = value;
        if (value === null) { node.removeAttribute(name); } else { node.setAttribute(name, value); }
    }
}
export function show(node, visible) {
    if (node.hidden === visible) { node.hidden = !visible; }
}

export const store = {
    get(where, key) {
        try { return window[where].getItem(key); } catch (e) { return null; }
    },
    set(where, key, value) {
        try { window[where].setItem(key, value); } catch (e) { /* private mode: not remembered */ }
    },
};

// Where a name is too long its end is what tells it from the others, but not if that is the group: value (motor.torque -> shaft.tau).
export const tail = (cls, text) => el("span", { class: cls + (/ \([^()]{4,}\)$/.test(text) ? " tail group" : " tail") }, el("bdi", { text }));

// A press with the mouse leaves the space bar to the run.
export function press(id, action) {
    $(id).addEventListener("click", (e) => {
        action();
        if (e.detail > 0) { $(id).blur(); }
    });
}

// A sentence at the foot of the page, for some seconds; `good`: something was done, nothing is wrong.
let sayTimer = 0;
export function tell(text, good) {
    const box = $("say");
    box.textContent = text;
    box.classList.toggle("good", Boolean(good));
    box.hidden = false;
    clearTimeout(sayTimer);
    sayTimer = setTimeout(() => { box.hidden = true; }, 6000);
}
