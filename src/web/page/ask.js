// Questions to the server and their answers, one socket. The token is that of the address.
import { store } from "./dom.js";

export const token = (function () {
    const query = new URLSearchParams(location.search), given = query.get("token");
    if (given === null) { return store.get("sessionStorage", "cardan.token") || ""; }
    store.set("sessionStorage", "cardan.token", given);
    query.delete("token");
    const rest = query.toString();
    history.replaceState(null, "", location.pathname + (rest ? "?" + rest : "") + location.hash);
    return given;
})();
export const socketAddress = () => (location.protocol === "https:" ? "wss://" : "ws://") + location.host + "/ws?token=" + encodeURIComponent(token);

export class Asker {
    constructor(protocol, changed, bytes) { // changed(what, text): "hello", "lost"; bytes(buffer): [id, answer]
        this.changed = changed;
        this.waiting = new Map();
        this.next = 1;
        this.live = true;
        this.socket = new WebSocket(socketAddress(), protocol);
        this.socket.binaryType = "arraybuffer";
        this.socket.onmessage = (message) => {
            if (message.data instanceof ArrayBuffer) { this.answer(...bytes(message.data)); return; }
            const m = JSON.parse(message.data);
            if (m.is === "hello") { this.changed("hello", m); } else { this.answer(m.id, m); }
        };
        this.socket.onclose = () => {
            for (const w of this.waiting.values()) { w.fail(new Error("The connection was lost.")); }
            this.waiting.clear();
            this.changed("lost");
        };
    }
    answer(id, m) {
        const w = this.waiting.get(id);
        this.waiting.delete(id);
        if (w && m.error) { w.fail(Object.assign(new Error(m.error), { reply: m })); } else if (w) { w.done(m); }
    }
    ask(what, members) {
        return new Promise((done, fail) => {
            if (this.socket.readyState !== WebSocket.OPEN) { fail(new Error("There is no connection.")); return; }
            const id = this.next++;
            this.waiting.set(id, { done, fail });
            this.socket.send(JSON.stringify(Object.assign({ id, do: what }, members)));
        });
    }
}
