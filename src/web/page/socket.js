// The connection to the run: its token, commands and their replies. docs/how-to/live.md has the messages.
import { socketAddress } from "./ask.js";
import { tell } from "./dom.js";
import { ended, run } from "./state.js";

// How the connection is: tries since the last one, when the next is due, when something came last.
export const link = { attempt: 0, retryAt: 0, lastMessage: 0 };
let socket = null, nextId = 1;
const waiting = new Map(); // id -> done(reply)

let another = false; // the run has ended and this page has asked for the next one
export const expectAnother = (yes) => { another = yes; };

let handlers = {}; // opened, frame, message, changed
export function listen(to) { handlers = to; }

export function connect() {
    socket = new WebSocket(socketAddress(), "cardan.live.1");
    socket.binaryType = "arraybuffer";
    let opened = false;
    socket.onopen = () => {
        opened = true;
        another = false;
        run.connected = run.everConnected = true;
        link.attempt = 0;
        link.lastMessage = Date.now();
        handlers.opened();
        handlers.changed();
    };
    socket.onmessage = (message) => {
        link.lastMessage = Date.now();
        if (message.data instanceof ArrayBuffer) {
            handlers.frame(message.data);
        } else {
            take(JSON.parse(message.data));
        }
    };
    socket.onclose = (event) => {
        run.connected = false;
        for (const done of waiting.values()) { done({ ok: false, error: "The connection was lost." }); }
        waiting.clear();
        if (event.code === 1008 || event.code === 1007 || event.code === 1009) {
            tell("The server closed the connection: " + (event.reason || "code " + event.code));
        }
        if (ended() && !another) {
            if (!opened) { tell("Nobody answers at this address."); }
        } else {
            const wait = Math.min(8000, 500 * 2 ** link.attempt++) * (0.8 + 0.4 * Math.random());
            link.retryAt = Date.now() + wait;
            setTimeout(connect, wait);
        }
        handlers.changed();
    };
}

function take(m) {
    if (m.is === "reply") {
        const done = waiting.get(m.id);
        waiting.delete(m.id);
        if (done) { done(m); }
    } else if (handlers[m.is]) {
        handlers[m.is](m);
    }
}

export function send(what, members, done) {
    if (!run.connected) {
        done({ ok: false, error: "There is no connection." });
        return;
    }
    const id = nextId++;
    waiting.set(id, done);
    socket.send(JSON.stringify(Object.assign({ id, do: what }, members)));
}
export function command(what, members) {
    send(what, members || {}, (reply) => {
        if (!reply.ok) { tell(reply.error); }
    });
}
