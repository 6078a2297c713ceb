// The live page: shows a run that Cardan serves and steers it. docs/live.md has the messages.
// Text from the server is data: it enters the page through textContent only.
"use strict";
(function () {
    const root = document.documentElement;
    const $ = (id) => document.getElementById(id);
    const MINUS = "\u2212", DASH = "\u2013", NARROW = "\u202f";
    const WATCH_LIMIT = 64, CARD_LIMIT = 8, CARD_COLOURS = 8;

    // ---- small things --------------------------------------------------------------------------

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
    const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
    const svg = (tag, attributes, ...children) =>
        fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

    // Writing what is there already costs a layout; most of what a status brings is there already.
    function say(node, text) {
        if (node.said !== text) {
            node.said = text;
            node.textContent = text;
        }
    }
    function mark(node, name, value) {
        const key = "was_" + name;
        if (node[key] !== value) {
            node[key] = value;
            if (value === null) { node.removeAttribute(name); } else { node.setAttribute(name, value); }
        }
    }
    function show(node, visible) {
        if (node.hidden === visible) { node.hidden = !visible; }
    }

    const store = {
        get(where, key) {
            try { return window[where].getItem(key); } catch (e) { return null; }
        },
        set(where, key, value) {
            try { window[where].setItem(key, value); } catch (e) { /* private mode: not remembered */ }
        },
    };

    // ---- numbers -------------------------------------------------------------------------------

    const minus = (text) => text.replace(/-/g, MINUS);
    function figure(x, digits) {
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
    const value = (x, type) => (type && type !== "real" && Number.isFinite(x) ? minus(String(x)) : figure(x, 5));
    function plain(x) { // as one would type it
        const size = Math.abs(x), text = String(Number(x.toPrecision(12)));
        return size >= 1e7 || (size > 0 && size < 1e-4) ? Number(text).toExponential().replace("e+", "e") : text;
    }
    const exact = (x) => (x === null || x === undefined ? "" : minus(plain(x)));
    function duration(s, digits) {
        if (s === null || s === undefined || Number.isNaN(s)) { return DASH; }
        const size = Math.abs(s), d = digits || 3;
        if (size === 0) { return "0" + NARROW + "s"; }
        for (const [unit, name] of [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]]) {
            if (size >= 0.9995 * unit) { return minus(short(s / unit, d)) + NARROW + name; }
        }
        return minus(short(s / 1e-9, d)) + NARROW + "ns";
    }
    function short(x, d) { // d figures, no exponent
        const whole = Math.floor(Math.log10(Math.abs(x))) + 1;
        return x.toFixed(Math.max(0, Math.min(d - whole, d)));
    }
    function count(n) {
        return n === null || n === undefined ? DASH : String(n).replace(/\B(?=(\d{3})+$)/g, NARROW);
    }
    function percent(x) {
        if (x === null || x === undefined || Number.isNaN(x)) { return DASH; }
        const p = 100 * Math.abs(x);
        if (p === 0) { return "0" + NARROW + "%"; }
        if (p < 0.001) { return "<" + NARROW + "0.001" + NARROW + "%"; }
        if (p >= 1000) { return ">" + NARROW + "1000" + NARROW + "%"; }
        return (p >= 100 ? p.toFixed(0) : p >= 9.95 ? p.toFixed(1) : p >= 0.095 ? p.toFixed(2) : p.toFixed(3)) + NARROW + "%";
    }
    function tick(x) {
        const size = Math.abs(x);
        if (size < 1e5 && (size >= 1e-3 || size === 0)) { return exact(x); }
        return minus(x.toExponential(1).replace("e+", "e").replace(".0e", "e"));
    }
    const timeTick = (t, i, all) => (i === all.length - 1 ? exact(t) + NARROW + "s" : exact(t));
    const withUnit = (text, unit) => (unit && unit !== "1" ? text + NARROW + unit : text);

    // ---- themes --------------------------------------------------------------------------------

    let colours = {};
    function readColours() {
        const css = getComputedStyle(root);
        const get = (name) => css.getPropertyValue("--" + name).trim();
        colours = { series: [] };
        for (let i = 0; i < CARD_COLOURS; i++) { colours.series.push(get("s" + i)); }
        for (const name of ["muted", "grid", "edge", "text"]) { colours[name] = get(name); }
    }
    const darkSystem = window.matchMedia("(prefers-color-scheme: dark)");
    function theme(name) {
        root.setAttribute("data-theme", name);
        $("theme").textContent = name === "dark" ? "Light" : "Dark";
        readColours();
        for (const card of cards) { card.restyle(); }
    }
    const wantedTheme = () => store.get("localStorage", "cardan.theme") || (darkSystem.matches ? "dark" : "light");

    // ---- the run -------------------------------------------------------------------------------

    let hello = null;    // what there is
    let status = null;   // newest
    let early = null;    // what is known before hello: state, end, message
    let connected = false, everConnected = false;
    let cards = [];
    let selected = { unit: -1, link: -1 };
    const now = () => performance.now();

    const SHAPES = {
        none: "M10 2.5a7.5 7.5 0 1 0 .01 0zM10 5a5 5 0 1 1 -.01 0z",
        starting: "M10 2.5a7.5 7.5 0 1 0 .01 0zM10 5a5 5 0 1 1 -.01 0z",
        waiting: "M10 2.5a7.5 7.5 0 1 0 .01 0zM10 5a5 5 0 1 1 -.01 0z",
        running: "M4 2l14 8l-14 8z",
        paused: "M4 3h4.5v14H4zM11.5 3H16v14h-4.5z",
        stopping: "M3.5 3.5h13v13h-13zM6 6v8h8V6z",
        ended: "M3.5 3.5h13v13h-13z",
        late: "M10 1.5l8.5 8.5l-8.5 8.5l-8.5-8.5z",
        failed: "M5 2.5l5 5l5-5L17.5 5l-5 5l5 5l-2.5 2.5l-5-5l-5 5L2.5 15l5-5l-5-5z",
    };
    const ENDS = {
        "none": "The run has ended.", "stop time": "It reached its stop time.",
        "unit": "A unit ended the run.", "interrupted": "It was stopped.", "failed": "It failed.",
        "overrun": "It was late.",
    };

    const standing = () => status || early;
    const ended = () => standing() !== null && standing().state === "ended";
    const stopping = () => standing() !== null && (standing().state === "stopping" || ended());
    const readOnly = () => (hello || early || {}).read_only === true;
    function why() { // nothing can be commanded
        if (readOnly()) { return "read-only"; }
        if (stopping()) { return "the run has ended"; }
        if (!connected || !hello) { return "no connection"; }
        return "";
    }
    function gate() {
        const reason = why();
        for (const node of document.querySelectorAll(".cmd, .buttons button")) {
            const off = reason !== "" || node.dataset.off === "1";
            if (node.disabled !== off) { node.disabled = off; }
            if (node.plainTitle === undefined) { node.plainTitle = node.title; }
            const title = reason ? "Not possible: " + reason : node.plainTitle;
            if (node.title !== title) { node.title = title; }
        }
        for (const node of document.querySelectorAll(".why")) { say(node, reason); }
        show($("read-only"), readOnly());
        benches.gate();
    }
    function noEmergency() { // it is there before the run is ready, too
        return readOnly() ? "read-only" : stopping() ? "the run has ended" : !connected ? "no connection" : "";
    }

    // ---- the connection ------------------------------------------------------------------------

    const token = (function () {
        const query = new URLSearchParams(location.search);
        const given = query.get("token");
        if (given !== null) {
            store.set("sessionStorage", "cardan.token", given);
            query.delete("token");
            const rest = query.toString();
            history.replaceState(null, "", location.pathname + (rest ? "?" + rest : "") + location.hash);
            return given;
        }
        return store.get("sessionStorage", "cardan.token") || "";
    })();

    let socket = null, nextId = 1, attempt = 0, retryAt = 0, lastHeard = 0;
    const waiting = new Map(); // id -> done(reply)

    function connect() {
        const scheme = location.protocol === "https:" ? "wss://" : "ws://";
        socket = new WebSocket(scheme + location.host + "/ws?token=" + encodeURIComponent(token), "cardan.live.1");
        socket.binaryType = "arraybuffer";
        let opened = false;
        socket.onopen = () => {
            opened = true;
            connected = everConnected = true;
            attempt = 0;
            lastHeard = Date.now();
            forgetEvents(); // they come again
            benches.again();
            refreshConnection();
        };
        socket.onmessage = (message) => {
            lastHeard = Date.now();
            if (message.data instanceof ArrayBuffer) {
                takeFrame(message.data);
            } else {
                take(JSON.parse(message.data));
            }
        };
        socket.onclose = (event) => {
            connected = false;
            for (const done of waiting.values()) { done({ ok: false, error: "The connection was lost." }); }
            waiting.clear();
            if (event.code === 1008 || event.code === 1007 || event.code === 1009) {
                tell("The server closed the connection: " + (event.reason || "code " + event.code));
            }
            if (ended()) {
                if (!opened) { tell("Nobody answers at this address."); }
            } else {
                const wait = Math.min(8000, 500 * 2 ** attempt++) * (0.8 + 0.4 * Math.random());
                retryAt = Date.now() + wait;
                setTimeout(connect, wait);
            }
            refreshConnection();
        };
    }

    function refreshConnection() {
        document.body.dataset.connected = connected ? "yes" : "no";
        $("connection").dataset.is = connected ? "on" : ended() ? "over" : "off";
        let word = connected ? "connected" : ended() ? "closed" : "no connection";
        if (!connected && !ended() && retryAt > Date.now()) {
            word = "again in " + Math.ceil((retryAt - Date.now()) / 1000) + NARROW + "s";
        }
        say($("connection-word"), word);
        refreshState();
        gate();
    }

    function send(what, members, done) {
        if (!connected) {
            done({ ok: false, error: "There is no connection." });
            return;
        }
        const id = nextId++;
        waiting.set(id, done);
        socket.send(JSON.stringify(Object.assign({ id, do: what }, members)));
    }
    function command(what, members) {
        send(what, members || {}, (reply) => {
            if (!reply.ok) { tell(reply.error); }
        });
    }

    let sayTimer = 0;
    function tell(text) {
        const box = $("say");
        box.textContent = text;
        box.hidden = false;
        clearTimeout(sayTimer);
        sayTimer = setTimeout(() => { box.hidden = true; }, 6000);
    }

    function take(m) {
        if (m.is === "hello") {
            meet(m);
        } else if (m.is === "status") {
            takeStatus(m);
        } else if (m.is === "event") {
            takeEvent(m);
        } else if (m.is === "reply") {
            const done = waiting.get(m.id);
            waiting.delete(m.id);
            if (done) { done(m); }
        } else if (m.is === "benches") {
            benches.take(m.benches);
        } else if (m.is === "wait") {
            status = null;
            early = m;
            name(m);
            refreshConnection();
        }
    }
    function name(m) {
        say($("title"), m.title || m.file || "Cardan");
        say($("file"), m.title && m.file ? m.file : "");
        $("title").title = $("title").textContent;
        $("file").title = m.file || "";
        say($("about"), "Cardan " + m.version);
    }

    // Everything that depends on what there is. After a reconnection it is mostly the same again:
    // plots and selection stay.
    function meet(m) {
        const same = hello !== null && JSON.stringify(hello) === JSON.stringify(m);
        hello = m;
        status = early = null;
        if (!same) {
            selected = { unit: -1, link: -1 };
            misses = [];
            name(m);
            clockDigits = decimals(m.step);
            buildTopology();
            buildLinks();
            buildSettings();
            buildPicker();
            ring.forget();
            restoreCards();
            benches.meet(m);
        } else {
            ring.gap();
            forgetSettings();
        }
        watch();
        refreshConnection();
    }

    // ---- header --------------------------------------------------------------------------------

    let clockDigits = 3;
    function decimals(step) {
        if (!(step > 0)) { return 3; }
        for (let d = 1; d < 9; d++) {
            const scaled = step * 10 ** d;
            if (scaled > 0.999 && Math.abs(scaled - Math.round(scaled)) < 1e-6) { return Math.max(d, 2); }
        }
        return Math.min(9, Math.max(2, Math.ceil(-Math.log10(step)) + 1));
    }
    function refreshClock() {
        if (!hello) { return; }
        let t = status ? status.time : null;
        if (ring.rows > 0 && (t === null || (ring.newest() > t && !ended()))) { t = ring.newest(); }
        const text = t === null ? DASH : minus(t.toFixed(clockDigits));
        say($("clock"), text);
        mark($("clock"), "data-long", text.length > 11 ? "yes" : null);
        say($("clock-of"), hello.stop === null ? "s" : "s of " + exact(hello.stop));
        const part = hello.stop === null || t === null ? 0 : (t - hello.start) / (hello.stop - hello.start);
        $("progress").style.transform = "scaleX(" + Math.max(0, Math.min(1, part || 0)).toFixed(4) + ")";
    }

    function refreshState() {
        let state = standing() ? standing().state : hello ? "starting" : "none";
        if (state === "ended" && standing().end === "failed") { state = "failed"; }
        if (!connected && !ended()) { state = "none"; }
        const words = { none: everConnected ? "no connection" : "connecting", failed: "failed" };
        mark(document.body, "data-state", state);
        mark($("state-shape"), "d", SHAPES[state] || SHAPES.none);
        say($("state-word"), words[state] || state);
        say($("start").firstChild, state === "running" ? "Pause" : state === "paused" ? "Continue" : "Start");
        const title = hello ? (words[state] || state) + " · " + (hello.title || hello.file || "Cardan") : "Cardan";
        if (document.title !== title) { document.title = title; }
        banner();
    }

    function banner() {
        let kind = "", word = "", text = "", again = false;
        if (stopping() && (ended() || benches.any())) {
            const s = standing(), results = (hello || early).results;
            kind = s.end === "failed" ? "bad" : "done";
            word = ENDS[s.end] || ENDS.none;
            text = s.message || "";
            const where = !ended() ? "The benches come to rest." : !status ? ""
                : results ? "Results are in " + results + "." : "No results were asked for.";
            text = text ? text.replace(/([^.!?])$/, "$1.") + " " + where : where;
            again = ended() && !connected;
        } else if (!connected && attempt > 0) {
            kind = "lost";
            word = everConnected ? "The connection was lost." : "There is no connection.";
            text = everConnected
                ? "The page tries again by itself; what it shows is from " + new Date(lastHeard).toLocaleTimeString() + "."
                : "Is the run still going, and is this the address with the token that it printed?";
        } else if (status && status.state === "waiting") {
            kind = "wait";
            word = "The run waits before its first step.";
            text = hello.read_only ? "Somebody has to start it; this page is read-only." : "Press Start or the space bar.";
        }
        show($("banner"), kind !== "");
        mark($("banner"), "data-kind", kind);
        say($("banner-word"), word);
        say($("banner-text"), text);
        show($("banner-do"), again);
    }

    function takeStatus(s) {
        if (status && s.time < status.time - 1e-12) { ring.forget(); } // another run
        status = s;
        refreshState();
        refreshClock();
        say($("speed"), s.speed === null || s.speed === undefined ? DASH : speed(s.speed));
        const pace = s.pace || {};
        say($("overruns"), pace.on ? count(pace.overruns) : DASH);
        mark($("overruns-gauge"), "data-bad", pace.on && pace.overruns > 0 ? "yes" : null);
        say($("late99"), pace.on ? duration(pace.lateness.p99) : DASH);
        learnMisses();
        refreshTopology();
        refreshLinks();
        refreshPace();
        benches.refresh();
        gate();
    }
    function speed(x) {
        return (x >= 100 ? count(Math.round(x)) : x >= 9.95 ? x.toFixed(1) : x.toFixed(2)) + NARROW + "×";
    }

    let stopUntil = 0, stopTimer = 0;
    function pressStop() {
        const button = $("stop");
        if (button.disabled) { return; }
        clearTimeout(stopTimer);
        if (now() < stopUntil) {
            stopUntil = 0;
            button.classList.remove("armed");
            say(button.firstChild, "Stop");
            command("stop");
            return;
        }
        stopUntil = now() + 3000;
        button.classList.add("armed");
        say(button.firstChild, "Press again");
        stopTimer = setTimeout(() => {
            stopUntil = 0;
            button.classList.remove("armed");
            say(button.firstChild, "Stop");
        }, 3000);
    }
    function pressStart() {
        if (!$("start").disabled) { command(status && status.state === "running" ? "pause" : "start"); }
    }
    function pressStep() {
        if (!$("step").disabled) { command("step", { count: 1 }); }
    }

    // ---- samples -------------------------------------------------------------------------------
    // One ring of rows for all watched signals; a row's number never changes. Beside the rows each
    // signal keeps, for every 16 of them, the smallest and the largest in the order in which they
    // came: a minute at 2 kHz is drawn from that without looking at every row.

    const SIZE = 1 << 17, PACK = 16, PACKED = SIZE / PACK * 2;
    const ring = {
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
    function put(to, row, from) {
        const at = row & (SIZE - 1), room = SIZE - at;
        if (from.length <= room) {
            to.set(from, at);
        } else {
            to.set(from.subarray(0, room), at);
            to.set(from.subarray(room), 0);
        }
    }
    const pair = [0, 0];
    function extremes(v, mask, first, last) { // into pair, in the order in which they came
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

    function takeFrame(buffer) {
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

    function watch() {
        const names = [];
        for (const card of cards) {
            for (const s of card.signals) {
                if (!names.includes(s.name)) { names.push(s.name); }
            }
        }
        for (const name of benches.watched()) {
            if (!names.includes(name) && names.length < WATCH_LIMIT) { names.push(name); }
        }
        send("watch", { signals: names }, (reply) => {
            if (reply.ok) { ring.watch(names); } else { tell(reply.error); }
            view.changed = true;
        });
        refreshPicker();
    }

    // ---- plots ---------------------------------------------------------------------------------

    const view = {
        length: 10,      // s; 0: all that is kept
        held: false,
        zoom: null,      // [from, to]
        from: 0, to: 10, // shown
        changed: true,
        hover: null,     // card under the pointer
    };
    const LENGTHS = [5, 10, 30, 60, 0];
    const SYNC = "cardan";

    // What was picked and where, for this file.
    const layoutKey = () => "cardan.layout." + (hello.file || hello.title || "");
    function keepCards() {
        store.set("localStorage", layoutKey(), JSON.stringify({
            cards: cards.map((c) => c.signals.map((s) => s.name)), length: view.length,
        }));
    }
    function restoreCards() {
        for (const card of cards) { card.remove(); }
        cards = [];
        const known = new Map(hello.signals.map((s) => [s.name, s]));
        let kept = null;
        try { kept = JSON.parse(store.get("localStorage", layoutKey())); } catch (e) { kept = null; }
        const span = hello.stop === null ? Infinity : hello.stop - hello.start;
        view.length = kept && LENGTHS.includes(kept.length) ? kept.length : span <= 10 ? 0 : 10;
        let left = WATCH_LIMIT;
        if (kept && Array.isArray(kept.cards)) {
            for (const names of kept.cards.filter(Array.isArray)) {
                const signals = names.filter((n) => known.has(n)).slice(0, Math.min(CARD_LIMIT, left)).map((n) => known.get(n));
                left -= signals.length;
                if (signals.length) { cards.push(new Card(signals)); }
            }
        }
        if (cards.length === 0) {
            for (const s of defaults()) { place(s); }
        }
        view.held = false;
        view.zoom = null;
        refreshView();
        layCards();
    }
    function defaults() { // outputs that somebody uses, then the others
        const used = new Set(hello.links.map((l) => l.from_signal).filter((i) => i >= 0));
        const plainOnes = (s) => !/\.(coupling|bond)\./.test(s.name) && hello.units.some((u) => u.name === ownerOf(s));
        const list = hello.signals.map((s, i) => [used.has(i) ? 0 : plainOnes(s) ? 1 : 2, i, s]);
        list.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
        return list.slice(0, 6).map((x) => x[2]);
    }
    function place(signal) { // beside others of its unit of measure
        let card = cards.find((c) => c.signals.length < CARD_LIMIT && c.signals[0] && c.signals[0].unit === signal.unit);
        if (!card) {
            card = new Card([]);
            cards.push(card);
        }
        card.add(signal);
    }
    function layCards() {
        show($("no-cards"), cards.length === 0);
        say($("no-cards"), hello.signals.length ? "No signal is chosen. Press / and pick some." : "There is nothing to plot.");
        cards.forEach((card, i) => {
            $("cards").append(card.box);
            card.number = i + 1;
        });
        for (const card of cards) { card.legend(); }
        view.changed = true;
    }
    function toggle(signal, on) {
        if (on && cards.reduce((n, c) => n + c.signals.length, 0) >= WATCH_LIMIT) {
            tell("A page watches at most " + WATCH_LIMIT + " signals.");
            return;
        }
        const at = cards.find((c) => c.signals.includes(signal));
        if (on && !at) {
            place(signal);
        } else if (!on && at) {
            drop(at, signal);
        }
        layCards();
        keepCards();
        watch();
    }
    function drop(card, signal) {
        card.take(signal);
        if (card.signals.length === 0) {
            card.remove();
            cards.splice(cards.indexOf(card), 1);
        }
    }
    function moveTo(card, signal, where) {
        if (where === "remove") {
            toggle(signal, false);
            return;
        }
        let to = where === "new" ? null : cards[Number(where)];
        if (to === card) { return; }
        if (!to) {
            to = new Card([]);
            cards.push(to);
        }
        if (to.signals.length >= CARD_LIMIT) {
            tell("Plot " + to.number + " has " + CARD_LIMIT + " signals already.");
        } else {
            drop(card, signal);
            to.add(signal);
        }
        layCards();
        keepCards();
        watch();
    }

    // The name before the dot: of a unit if there is such a one.
    function ownerOf(s) {
        const unit = hello.units[s.owner];
        if (unit && s.name.startsWith(unit.name + ".")) { return unit.name; }
        const other = hello.units.find((u) => s.name.startsWith(u.name + "."));
        return other ? other.name : s.name.includes(".") ? s.name.slice(0, s.name.indexOf(".")) : "";
    }
    const titleOf = (s) => s.name + (s.description ? ": " + s.description : "");
    // Where a name is too long its end is what tells it from the others.
    const tail = (cls, text) => el("span", { class: cls + " tail" }, el("bdi", { text }));
    // The unit's name gives way first when there is little room.
    function nameOf(s) {
        const owner = ownerOf(s) ? ownerOf(s) + "." : "";
        return el("span", { class: "name", title: titleOf(s) },
            owner ? el("span", { class: "owner", text: owner }) : null, tail("own", s.name.slice(owner.length)));
    }

    // What is scrolled away or covered is not drawn.
    const sight = new IntersectionObserver((list) => {
        for (const e of list) { e.target.card.seen = e.isIntersecting; }
        view.changed = true;
    });

    class Card {
        constructor(signals) {
            this.signals = signals;
            this.slots = signals.map((s, i) => i); // colour of each
            this.data = [[]];
            this.low = 0;
            this.high = 1;
            this.number = 0;
            this.plot = null;
            this.chart = el("div", { class: "chart" });
            this.unit = el("span", { class: "unit" });
            this.time = el("span", { class: "at" });
            this.list = el("ul", { class: "legend" });
            this.box = el("figure", { class: "card" },
                this.chart, el("figcaption", null, el("p", null, this.unit, this.time), this.list));
            this.observer = new ResizeObserver(() => this.resize());
            this.observer.observe(this.chart);
            this.seen = true;
            this.box.card = this;
            sight.observe(this.box);
            $("cards").append(this.box);
        }
        add(signal) {
            let slot = 0;
            while (this.slots.includes(slot)) { slot++; }
            this.signals.push(signal);
            this.slots.push(slot);
            this.restyle();
        }
        take(signal) {
            const i = this.signals.indexOf(signal);
            this.signals.splice(i, 1);
            this.slots.splice(i, 1);
            this.restyle();
        }
        remove() {
            this.observer.disconnect();
            sight.unobserve(this.box);
            if (this.plot) { this.plot.destroy(); }
            this.plot = null;
            this.box.remove();
            if (view.hover === this) { view.hover = null; }
        }
        resize() {
            const w = this.chart.clientWidth, h = this.chart.clientHeight;
            if (w < 40 || h < 40) { return; }
            if (!this.plot) {
                this.build(w, h);
            } else if (this.plot.width !== w || this.plot.height !== h) {
                this.plot.setSize({ width: w, height: h });
            }
            view.changed = true;
        }
        restyle() { // other lines or other colours: a new plot, the data are ours
            if (this.plot) {
                this.plot.destroy();
                this.plot = null;
            }
            this.resize();
            for (const row of this.list.children) {
                if (row.swatch) { row.swatch.style.background = colours.series[row.slot]; }
            }
            view.changed = true;
        }
        build(width, height) {
            const font = "12px " + getComputedStyle(document.body).fontFamily;
            const axis = {
                stroke: colours.muted, font, grid: { stroke: colours.grid, width: 1 },
                ticks: { show: false }, gap: 6,
            };
            const card = this;
            this.data = [[], ...this.signals.map(() => [])];
            this.plot = new uPlot({
                width, height, pxAlign: 1, legend: { show: false }, padding: [10, 18, 0, 0],
                cursor: {
                    y: false, sync: { key: SYNC, scales: ["x", null], setSeries: false },
                    drag: { x: true, y: false, setScale: false },
                    points: { size: 7 },
                    bind: { dblclick: () => () => { unzoom(); return null; } },
                },
                select: { show: true },
                scales: {
                    x: { time: false, auto: false, range: () => [view.from, view.to] },
                    y: { range: () => [card.low, card.high] },
                },
                axes: [
                    Object.assign({ size: 24, space: 60, values: (u, ticks) => ticks.map(timeTick) }, axis),
                    Object.assign({ size: 62, space: 28, values: (u, ticks) => ticks.map(tick) }, axis),
                ],
                series: [{}, ...this.signals.map((s, i) => ({
                    label: s.name, stroke: colours.series[this.slots[i]], width: 1.75, spanGaps: false, pxAlign: 0,
                    points: { show: false },
                    paths: s.type === "real" ? undefined : uPlot.paths.stepped({ align: 1 }),
                }))],
                hooks: {
                    drawAxes: [(u) => { u.ctx.lineJoin = "bevel"; }], // round ones cost five times as much
                    setSelect: [(u) => {
                        const { left, width: w } = u.select;
                        if (w > 4) {
                            zoomTo(u.posToVal(left, "x"), u.posToVal(left + w, "x"));
                            u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
                        }
                    }],
                },
            }, this.data, this.chart);
            this.plot.over.addEventListener("pointerenter", () => { view.hover = card; view.changed = true; });
            this.plot.over.addEventListener("pointerleave", () => {
                if (view.hover === card) { view.hover = null; }
                view.changed = true;
            });
        }
        legend() {
            const units = [...new Set(this.signals.map((s) => s.unit || "1"))];
            say(this.unit, units.length === 1 && units[0] !== "1" ? units[0] : "");
            this.box.style.setProperty("--rows", this.signals.length);
            this.box.classList.toggle("crowded", this.signals.length > 5);
            this.box.setAttribute("aria-label", "Plot " + this.number);
            const rows = this.signals.map((s, i) => {
                const swatch = el("i", { class: "swatch", "aria-hidden": "true" });
                swatch.style.background = colours.series[this.slots[i]];
                const number = el("output", { class: "number" });
                const menu = el("select", {
                    class: "more", "aria-label": "Move " + s.name, title: "Move or remove",
                    onchange: () => {
                        const where = menu.value;
                        menu.value = "";
                        moveTo(this, s, where);
                    },
                }, el("option", { value: "", text: "⋯" }), ...cards.map((c, k) =>
                    el("option", { value: k, text: "to plot " + (k + 1), disabled: c === this })),
                el("option", { value: "new", text: "to a new plot" }), el("option", { value: "remove", text: "remove" }));
                const row = el("li", null, swatch,
                    nameOf(s), number,
                    units.length > 1 ? el("span", { class: "unit", text: s.unit }) : null, menu);
                row.number = number;
                row.swatch = swatch;
                row.slot = this.slots[i];
                return row;
            });
            this.list.replaceChildren(...rows);
        }
        // Numbers beside the names: at the cursor if there is one, else the newest.
        values(row) {
            this.signals.forEach((s, i) => {
                const line = this.list.children[i], samples = ring.signals.get(s.name);
                if (!line || !line.number) { return; }
                if (!samples || ring.rows === 0) {
                    say(line.number, DASH);
                } else {
                    say(line.number, value(row < 0 ? samples.last : samples.v[row & (SIZE - 1)], s.type));
                }
            });
            say(this.time, row < 0 ? "" : "at " + ring.time[row & (SIZE - 1)].toFixed(clockDigits) + NARROW + "s");
        }
        draw() {
            if (!this.plot || !this.seen) { return; }
            const u = this.plot, width = Math.max(50, u.bbox.width / devicePixelRatio);
            const oldest = ring.oldestRow();
            let first = Math.max(oldest, ring.rowAt(view.from) - 1), last = Math.min(ring.rows - 1, ring.rowAt(view.to));
            const x = this.data[0];
            const n = last - first + 1;
            if (n <= 0) {
                for (const column of this.data) { column.length = 0; }
            } else {
                let stride = 1;
                while (n / stride > (many() ? width / 2 : width)) { stride *= 2; }
                const packed = stride >= PACK, per = packed ? PACK / 2 : 1;
                const times = packed ? ring.packedTime : ring.time, mask = (packed ? PACKED : SIZE) - 1;
                if (packed) {
                    first = Math.floor(first / PACK) * 2;
                    last = Math.floor(last / PACK) * 2 + 1;
                    stride /= per;
                }
                grid(times, mask, first, last, stride, x);
                this.signals.forEach((s, i) => {
                    const samples = ring.signals.get(s.name);
                    lines(samples ? (packed ? samples.m : samples.v) : null, mask, first, last, stride, this.data[i + 1], x.length);
                });
            }
            this.range();
            for (let k = 1; k < u.series.length; k++) { u.series[k].width = many() ? 1 : 1.75; }
            u.batch(() => {
                u.setData(this.data, false);
                u.setScale("x", { min: view.from, max: view.to });
            });
        }
        // The range follows at once when a line leaves it and comes back only when much is unused.
        range() {
            let low = Infinity, high = -Infinity;
            for (let k = 1; k < this.data.length; k++) {
                for (const y of this.data[k]) {
                    if (y !== null) {
                        if (y < low) { low = y; }
                        if (y > high) { high = y; }
                    }
                }
            }
            if (!(low <= high)) { low = this.low; high = this.high; if (!(low < high)) { low = 0; high = 1; } }
            const size = Math.max(Math.abs(low), Math.abs(high));
            if (high - low < 1e-9 * size || high === low) {
                const half = size > 0 ? 0.05 * size : 0.5;
                low -= half;
                high += half;
            }
            const span = high - low;
            if (low < this.low || high > this.high || span < 0.6 * (this.high - this.low)) {
                this.low = low - 0.08 * span;
                this.high = high + 0.08 * span;
            }
        }
    }

    // Many lines are drawn thin and with fewer points, for machines without a graphics card.
    const many = () => ring.order.length > 12;

    // Points of a line: each row if there is room, else the extremes of `stride` rows; strides begin
    // at multiples of themselves, so that what is drawn does not flicker while it moves.
    function grid(times, mask, first, last, stride, out) {
        out.length = 0;
        if (stride === 1) {
            for (let i = first; i <= last; i++) { out.push(times[i & mask]); }
            return;
        }
        for (let b = first; b <= last; b = b - b % stride + stride) {
            const end = Math.min(b - b % stride + stride - 1, last);
            out.push(times[b & mask], times[end & mask]);
        }
    }
    function lines(v, mask, first, last, stride, out, length) {
        out.length = length;
        if (!v) {
            out.fill(null);
            return;
        }
        let k = 0;
        if (stride === 1) {
            for (let i = first; i <= last; i++) {
                const y = v[i & mask];
                out[k++] = Number.isFinite(y) ? y : null;
            }
            return;
        }
        for (let b = first; b <= last; b = b - b % stride + stride) {
            extremes(v, mask, b, Math.min(b - b % stride + stride - 1, last));
            out[k++] = Number.isFinite(pair[0]) ? pair[0] : null;
            out[k++] = Number.isFinite(pair[1]) ? pair[1] : null;
        }
    }

    function zoomTo(from, to) {
        if (to > from) {
            view.zoom = [from, to];
            refreshView();
        }
    }
    function unzoom() {
        view.zoom = null;
        view.held = false;
        refreshView();
    }
    function hold(on) {
        view.held = on;
        refreshView();
    }
    function refreshView() {
        $("hold").setAttribute("aria-pressed", view.held ? "true" : "false");
        show($("unzoom"), view.zoom !== null);
        for (const button of $("windows").children) {
            const on = Number(button.dataset.length) === view.length;
            button.setAttribute("aria-checked", on ? "true" : "false");
            button.tabIndex = on ? 0 : -1;
        }
        view.changed = true;
    }

    // At most 25 pictures a second, none when nothing is new or nobody looks.
    const frames = { times: new Float32Array(512), count: 0, gaps: new Float32Array(512), last: 0 };
    function loop(stamp) {
        requestAnimationFrame(loop);
        if (!view.changed || stamp - frames.last < 38 || !hello) { return; }
        const begin = now();
        view.changed = false;
        if (view.zoom) {
            [view.from, view.to] = view.zoom;
        } else if (!view.held && ring.rows > 0) {
            const newest = ring.newest(), oldest = ring.time[ring.oldestRow() & (SIZE - 1)];
            if (view.length === 0) {
                const stop = hello.stop !== null && hello.stop - hello.start <= 10 ? hello.stop : newest;
                view.from = oldest;
                view.to = Math.max(newest, stop, oldest + 1e-9);
            } else {
                view.from = Math.max(newest - view.length, Math.min(oldest, newest));
                view.to = view.from + view.length;
            }
        } else if (ring.rows === 0) {
            view.from = hello.start;
            view.to = hello.start + (view.length || (hello.stop > hello.start ? hello.stop - hello.start : 10));
        }
        let row = -1;
        const over = view.hover && view.hover.plot;
        if (over && over.cursor.left >= 0 && ring.rows > 0) {
            const t = over.posToVal(over.cursor.left, "x");
            row = Math.min(ring.rowAt(t), ring.rows - 1);
            if (row > ring.oldestRow() && t - ring.time[(row - 1) & (SIZE - 1)] < ring.time[row & (SIZE - 1)] - t) { row--; }
        }
        for (const card of cards) {
            card.draw();
            card.values(row);
        }
        refreshClock();
        frames.times[frames.count % 512] = now() - begin;
        frames.gaps[frames.count % 512] = stamp - frames.last;
        frames.last = stamp;
        frames.count++;
    }

    // ---- list of signals -----------------------------------------------------------------------

    let pickRows = [];
    function buildPicker() {
        const groups = new Map();
        hello.units.forEach((u, i) => groups.set(u.name, { unit: i, rows: [] }));
        pickRows = hello.signals.map((s) => {
            const owner = ownerOf(s), box = el("input", { type: "checkbox", onchange: () => toggle(s, box.checked) });
            const row = el("label", { title: titleOf(s) }, box,
                tail("", owner ? s.name.slice(owner.length + 1) : s.name),
                el("span", { class: "unit", text: s.unit === "1" ? "" : s.unit }));
            if (!groups.has(owner)) { groups.set(owner, { unit: -2, rows: [] }); }
            groups.get(owner).rows.push(row);
            return { s, row, box, text: (s.name + " " + s.unit + " " + s.description).toLowerCase() };
        });
        $("signals").replaceChildren(...Array.from(groups).filter(([, g]) => g.rows.length).map(([name, g]) =>
            el("fieldset", { "data-unit": g.unit }, el("legend", { text: name, title: name }), ...g.rows)));
        const out = hello.signals_left_out;
        say($("signals-note"), out > 0 ? count(out) + " more signals are not listed; they are too many." : "");
        filterSignals();
        refreshPicker();
    }
    function filterSignals() {
        const words = $("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
        for (const p of pickRows) { show(p.row, words.every((w) => p.text.includes(w))); }
        for (const group of $("signals").children) {
            show(group, Array.from(group.querySelectorAll("label")).some((r) => !r.hidden));
        }
    }
    function refreshPicker() {
        const on = new Set();
        for (const card of cards) { card.signals.forEach((s) => on.add(s)); }
        for (const p of pickRows) {
            p.box.checked = on.has(p.s);
            p.box.disabled = !p.box.checked && on.size >= WATCH_LIMIT;
        }
        say($("pick-count"), hello ? on.size + " of " + hello.signals.length : "");
        $("pick").title = on.size >= WATCH_LIMIT ? "A page watches at most " + WATCH_LIMIT + " signals" : "";
    }
    function openPicker(open) {
        $("picker").hidden = !open;
        $("pick").setAttribute("aria-expanded", open ? "true" : "false");
    }

    // ---- topology ------------------------------------------------------------------------------

    const ruler = document.createElement("canvas").getContext("2d");
    function textWidth(text, font) {
        ruler.font = font;
        return ruler.measureText(text).width;
    }
    function clip(text, font, room) {
        if (textWidth(text, font) <= room) { return text; }
        let low = 1, high = text.length;
        while (low < high) {
            const middle = (low + high + 1) >> 1;
            if (textWidth(text.slice(0, middle) + "…", font) <= room) { low = middle; } else { high = middle - 1; }
        }
        return text.slice(0, low) + "…";
    }

    // With names at the ports where there is room, else without and with larger type.
    const ROOMY = { ports: true, pitch: 24, head: 62, gap: 128, name: 15, small: 12, most: 250, least: 128 };
    const DENSE = { ports: false, pitch: 25, head: 58, gap: 110, name: 17, small: 13.5, most: 180, least: 100 };
    const AIRY = Object.assign({}, DENSE, { pitch: 36 }); // where height is left
    const FOOT = 10, BETWEEN = 26, LEAST = 0.6;

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

    // Layers by the longest path, links against it turned round; then sweeps by barycentres.
    function arrange(units, links, look) {
        const n = units.length;
        const next = units.map(() => []);
        for (const l of links) {
            if (l.from_unit !== l.to_unit && !next[l.from_unit].includes(l.to_unit)) { next[l.from_unit].push(l.to_unit); }
        }
        // Loops are cut at the links that go back in an order of the units. That of the file is the
        // natural one; that of discovery, from the units that nobody feeds, may be shorter.
        const lay = (place) => {
            const found = new Map(), rank = new Array(n).fill(0);
            let turned = 0;
            links.forEach((l, i) => {
                if (l.from_unit === l.to_unit) { return; }
                const back = place[l.to_unit] < place[l.from_unit];
                turned += back ? 1 : 0;
                const a = back ? l.to_unit : l.from_unit, b = back ? l.from_unit : l.to_unit, key = a + " " + b;
                if (!found.has(key)) { found.set(key, { a, b, links: [] }); }
                found.get(key).links.push({ i, back });
            });
            for (let round = 0, moved = true; moved && round <= n; round++) {
                moved = false;
                for (const p of found.values()) {
                    if (rank[p.b] < rank[p.a] + 1) {
                        rank[p.b] = rank[p.a] + 1;
                        moved = true;
                    }
                }
            }
            return { pairs: found, rank, cost: Math.max(0, ...rank) + turned / (1 + links.length) };
        };
        const asWritten = lay(units.map((u, i) => i)), asFound = lay(discovery(next));
        const { pairs, rank } = asFound.cost < asWritten.cost ? asFound : asWritten;
        // A unit that feeds something stands beside it, not far left of it.
        for (let u = 0; u < n; u++) {
            let into = 0, least = Infinity;
            for (const p of pairs.values()) {
                if (p.b === u) { into++; }
                if (p.a === u) { least = Math.min(least, rank[p.b]); }
            }
            if (into === 0 && least < Infinity) { rank[u] = least - 1; }
        }
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

    let drawing = null; // {units: [...], links: [...], svg, width, height}
    function buildTopology() {
        drawing = null;
        if (hello.units.length === 0) {
            $("drawing").replaceChildren(el("p", { class: "empty", text: "The system has no units." }));
            return;
        }
        drawTopology(ROOMY);
        if (fitTopology() < 0.85) {
            drawTopology(DENSE);
            if (fitTopology() * drawing.height < 0.65 * $("drawing").clientHeight) { drawTopology(AIRY); }
        }
        fitTopology();
        select(selected);
        refreshTopology();
    }
    function drawTopology(look) {
        const units = hello.units, links = hello.links;
        const family = getComputedStyle(document.body).fontFamily;
        const bold = "600 " + look.name + "px " + family, small = look.small + "px " + family;
        const plan = arrange(units, links, look);
        const ports = units.map(() => ({ left: [], right: [] }));
        const ends = links.map(() => ({})); // of each link: from, to: port
        const name = (text, unit) => (text.startsWith(unit.name + ".") ? text.slice(unit.name.length + 1) : text);
        for (const { pair, route } of plan.strands) {
            for (const { i, back } of pair.links) {
                const l = links[i];
                const a = { link: i, text: name(back ? l.to : l.from, units[pair.a]), toward: route[1], into: back };
                const b = { link: i, text: name(back ? l.from : l.to, units[pair.b]), toward: route[route.length - 2], into: !back };
                ports[pair.a].right.push(a);
                ports[pair.b].left.push(b);
                ends[i] = { a, b, back, route, at: pair.links.findIndex((x) => x.i === i), of: pair.links.length };
            }
        }
        const selves = units.map(() => []);
        links.forEach((l, i) => { if (l.from_unit === l.to_unit) { selves[l.from_unit].push(i); } });
        const boxes = units.map((u, i) => {
            const p = ports[i];
            const rows = Math.max(p.left.length, p.right.length);
            const widest = (list) => Math.max(0, ...list.map((q) => textWidth(q.text, small)));
            const inner = look.ports ? widest(p.left) + widest(p.right) : 0;
            const second = textWidth(u.remote ? "SENDING_D" : u.kind, small) + (look.ports ? 74 : 34);
            const w = Math.min(look.most, Math.max(look.least, textWidth(u.name, bold) + 44, second, inner + 44));
            return { w, h: look.head + rows * look.pitch + selves[i].length * 18 + (rows ? FOOT : 0) };
        });
        for (const v of plan.nodes) {
            if (v.unit >= 0) {
                v.w = boxes[v.unit].w;
                v.h = boxes[v.unit].h;
            }
        }
        // Columns.
        // Numbers of both directions side by side, where there is room.
        const both = plan.strands.some(({ pair, route }) => route.length === 2 && pair.links.some((q) => q.back) && pair.links.some((q) => !q.back));
        const gap = both && look.ports ? Math.max(look.gap, 192) : look.gap;
        let x = 8;
        for (const layer of plan.layers) {
            const w = Math.max(0, ...layer.map((v) => v.w));
            for (const v of layer) { v.x = x + (w - v.w) / 2; }
            x += w + gap;
        }
        let width = plan.layers.length ? x - gap + 8 : 8;
        putLayers(plan, ports, ends, look);
        let height = 0;
        for (const v of plan.nodes) { height = Math.max(height, v.y + v.h); }
        // Units without links, in rows below.
        const at = units.map((u, i) => plan.of[i]);
        if (plan.alone.length) {
            const w = Math.max(...plan.alone.map((i) => boxes[i].w)), h = Math.max(...plan.alone.map((i) => boxes[i].h));
            const some = Math.round(Math.max((width - 8) / (w + 24), Math.sqrt(plan.alone.length * 1.2)));
            const columns = Math.max(1, Math.min(plan.alone.length, some));
            const top = height > 0 ? height + 36 : 8;
            plan.alone.forEach((u, k) => {
                at[u] = { unit: u, x: 8 + (k % columns) * (w + 24), y: top + Math.floor(k / columns) * (h + 24), w, h };
            });
            width = Math.max(width, 8 + columns * (w + 24) - 16);
            height = top + Math.ceil(plan.alone.length / columns) * (h + 24) - 24;
        }
        height += 8;
        drawing = { units: [], links: [], width, height, look };
        const labels = [], lineLayer = svg("g"), boxLayer = svg("g"), textLayer = svg("g");
        // Lines that climb come last: their numbers have room on both sides.
        const climbs = links.map((l, i) => {
            const { a, b, back } = ends[i];
            return a ? (back ? 1 : -1) * (at[back ? l.from_unit : l.to_unit].y + b.y - at[back ? l.to_unit : l.from_unit].y - a.y) > 0 : false;
        });
        const sequence = links.map((l, i) => i).sort((i, k) => climbs[i] - climbs[k] || i - k);
        for (const i of sequence) {
            const l = links[i];
            drawing.links[i] = l.from_unit === l.to_unit
                ? drawSelf(l, i, at[l.from_unit], boxes[l.from_unit], selves[l.from_unit].indexOf(i), lineLayer, textLayer)
                : drawLink(l, i, ends[i], at, climbs[i], labels, lineLayer, textLayer);
        }
        units.forEach((u, i) => {
            const v = at[i];
            const g = svg("g", {
                class: "unit-box", tabindex: "0", role: "button", "aria-label": "Unit " + u.name,
                transform: "translate(" + v.x + " " + v.y + ")",
            });
            const bar = svg("rect", { class: "bar", x: 12, y: 46, width: 0, height: 4, rx: 2 });
            const state = svg("path", {
                class: "mark", transform: "translate(" + (v.w - 28) + " 11) scale(0.8)", d: SHAPES.running,
            });
            const word = svg("text", { class: "small", x: 12, y: 39 });
            const spent = svg("text", { class: "small end", x: v.w - 12, y: 39 });
            g.append(svg("title", { text: u.name + " (" + u.kind + ")" }),
                svg("rect", { class: "frame", width: v.w, height: v.h, rx: 8 }),
                svg("text", { class: "name", x: 12, y: 22, text: clip(u.name, bold, v.w - 44) }), state, word, spent,
                svg("rect", { class: "track", x: 12, y: 46, width: v.w - 24, height: 4, rx: 2 }), bar);
            const p = ports[i], half = Math.max(40, (v.w - 30) / (p.left.length && p.right.length ? 2 : 1));
            if (look.ports) {
                const port = (cls, x) => (q) => svg("text", { class: cls, x, y: q.y + 4, text: clip(q.text, small, half) });
                g.append(...p.left.map(port("port", 12)), ...p.right.map(port("port end", v.w - 12)));
            }
            g.addEventListener("click", () => select({ unit: selected.unit === i ? -1 : i, link: -1 }));
            g.addEventListener("keydown", (e) => {
                if (e.key === "Enter" || e.key === " ") {
                    e.preventDefault();
                    e.stopPropagation();
                    select({ unit: selected.unit === i ? -1 : i, link: -1 });
                }
            });
            boxLayer.append(g);
            drawing.units[i] = { g, bar, state, word, spent, w: v.w, kindRoom: v.w - 24, small };
        });
        drawing.svg = svg("svg", {
            class: look.ports ? "roomy" : "dense", viewBox: "0 0 " + width + " " + height,
            role: "group", "aria-label": "Units and connections",
        }, lineLayer, boxLayer, textLayer);
        $("drawing").replaceChildren(drawing.svg);
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

    function drawLink(l, i, end, at, climbs, labels, lineLayer, textLayer) {
        const { a, b, back, route } = end;
        const first = at[back ? l.to_unit : l.from_unit], last = at[back ? l.from_unit : l.to_unit];
        const points = [[first.x + first.w, first.y + a.y]];
        for (const bend of route.slice(1, -1)) {
            const y = bend.y + bend.h * (end.at + 0.5) / end.of;
            points.push([bend.x, y], [bend.x + bend.w, y]);
        }
        points.push([last.x, last.y + b.y]);
        let d = "M" + points[0].join(" ");
        for (let k = 1; k < points.length; k++) {
            const [x0, y0] = points[k - 1], [x1, y1] = points[k];
            if (Math.abs(y1 - y0) < 0.5) {
                d += "L" + x1 + " " + y1;
            } else {
                // Flat where the number stands, at the source.
                const m = x0 + (x1 - x0) * (points.length > 2 ? 0.5 : back ? 0.35 : 0.65);
                d += "C" + m + " " + y0 + " " + m + " " + y1 + " " + x1 + " " + y1;
            }
        }
        const tip = back ? points[0] : points[points.length - 1], way = back ? -1 : 1;
        const arrow = "M" + tip[0] + " " + tip[1] + "l" + -way * 9 + " -4.5v9z";
        // Beside the source, above the line: ports are far enough apart for that.
        const source = back ? points[points.length - 1] : points[0];
        const straight = points.length === 2 && Math.abs(points[1][1] - points[0][1]) < 0.5;
        const x = straight ? (points[0][0] + points[1][0]) / 2 : source[0] + way * 12;
        const anchor = straight ? "middle" : back ? "end" : "start";
        const wide = 36 + 9 * Math.min(9, 1 + l.unit.length);
        const x0 = x - wide * { start: 0, middle: 0.5, end: 1 }[anchor];
        const meets = (place) => labels.find((o) => x0 < o.x1 && o.x0 < x0 + wide && Math.abs(place - o.y) < 17);
        let y = source[1] - 6;
        if (climbs && meets(y) && !meets(y + 21)) { y += 21; } // below the line, which goes up
        for (let more = meets(y), tries = 0; more && tries < 8; more = meets(y), tries++) { // never upon each other
            y = more.y + (y < more.y ? -17 : 17);
        }
        labels.push({ x0, x1: x0 + wide, y });
        return drawEdge(l, i, d, arrow, [x, y], anchor, lineLayer, textLayer);
    }
    function drawSelf(l, i, v, box, k, lineLayer, textLayer) {
        const y = v.y + v.h - FOOT - 6 - 18 * k;
        const d = "M" + (v.x + v.w) + " " + y + "h26v16h-26";
        const arrow = "M" + (v.x + v.w) + " " + (y + 16) + "l9 -4.5v9z";
        return drawEdge(l, i, d, arrow, [v.x + v.w + 30, y + 12], "start", lineLayer, textLayer);
    }
    function drawEdge(l, i, d, arrow, label, anchor, lineLayer, textLayer) {
        const line = svg("path", { class: "line none", d });
        const head = svg("path", { class: "arrow", d: arrow });
        const hit = svg("path", { class: "hit", d });
        const g = svg("g", { class: "edge" }, svg("title", { text: l.from + " → " + l.to }), hit, line, head);
        g.addEventListener("click", () => select({ unit: -1, link: selected.link === i ? -1 : i }));
        lineLayer.append(g);
        const number = svg("tspan", { class: "number" }), unit = svg("tspan", { class: "measure" });
        const fault = svg("tspan", { class: "fault" });
        const text = svg("text", { class: "edge-text", x: label[0], y: label[1], "text-anchor": anchor },
            fault, number, unit);
        text.addEventListener("click", () => select({ unit: -1, link: selected.link === i ? -1 : i }));
        textLayer.append(text);
        const measure = l.unit && l.unit !== "1" ? NARROW + l.unit : "";
        say(unit, measure.length > 9 ? measure.slice(0, 8) + "…" : measure);
        return { g, line, text, number, fault };
    }
    function fitTopology() {
        if (!drawing || !drawing.svg) { return 1; }
        const box = $("drawing"), w = box.clientWidth - 16, h = box.clientHeight - 12;
        if (w < 50) { return 1; }
        const wide = w / drawing.width, high = h > 60 ? h / drawing.height : wide;
        const fit = Math.min(1.5, wide, high), scale = Math.max(LEAST, fit);
        drawing.svg.style.width = drawing.width * scale + "px";
        drawing.svg.style.height = drawing.height * scale + "px";
        return fit;
    }

    // How far a connection misses: its defect over the run where that is monitored, else the error of
    // its coupling, of late, against the largest value seen.
    let misses = [];
    function learnMisses() {
        status.links.forEach((l, i) => {
            const m = misses[i] || (misses[i] = { most: 0, square: NaN, relative: null });
            if (l.value !== null) { m.most = Math.max(m.most, Math.abs(l.value)); }
            if (l.error !== null && l.error !== undefined) {
                m.square = Number.isNaN(m.square) ? l.error * l.error : m.square + 0.05 * (l.error * l.error - m.square);
            }
            m.relative = l.relative !== null && l.relative !== undefined ? Math.abs(l.relative)
                : m.most > 0 && !Number.isNaN(m.square) ? Math.sqrt(m.square) / m.most : null;
        });
    }
    function quality(i) {
        const x = misses[i].relative, k = status.links[i].k;
        if (x !== null) { return x <= 0.01 ? "good" : x <= 0.1 ? "watch" : "bad"; }
        return !(k >= 0) ? "none" : k <= 10 ? "good" : k <= 30 ? "watch" : "bad";
    }
    const faulty = (l) => Boolean(l.fault) && l.fault !== "none";

    function refreshTopology() {
        if (!drawing || !status || misses.length < hello.links.length) { return; }
        status.units.forEach((s, i) => {
            const d = drawing.units[i], u = hello.units[i];
            if (!d || !u) { return; }
            const over = stopping();
            let state = "idle", word = "";
            if (s.failed) {
                state = "failed"; word = "failed";
            } else if (s.is_late) {
                state = "late"; word = "late";
            } else if (over) {
                state = "ended"; word = "ended";
            } else if (status.state === "running") {
                state = "running"; word = "running";
            } else {
                state = status.state === "paused" ? "paused" : "waiting"; word = status.state;
            }
            if (s.link && s.link.state && !s.failed && !over) { word = s.link.state; }
            mark(d.g, "data-state", state);
            mark(d.state, "d", SHAPES[state]);
            const kind = (u.real ? "real · " : u.remote ? "remote · " : "") + u.kind;
            const extra = s.late > 0 ? " · " + count(s.late) + NARROW + "× late" : "";
            const right = !drawing.look.ports || s.last === null || !s.steps ? "" : duration(s.last, 2);
            const linked = s.link && s.link.state && !over;
            const left = (linked ? word : state === "running" || state === "ended" ? kind : word + " · " + kind) + extra;
            if (d.left !== left || d.right !== right) {
                d.left = left;
                d.right = right;
                say(d.spent, right);
                say(d.word, clip(left, d.small, d.w - 32 - (right ? textWidth(right, d.small) : 0)));
            }
            const room = u.budget || u.step / (hello.factor || 1);
            const part = room > 0 && s.last !== null ? Math.min(1, s.last / room) : 0;
            mark(d.bar, "width", (part * (d.w - 24)).toFixed(1));
            mark(d.bar, "data-part", part >= 1 ? "over" : part > 0.8 ? "much" : null);
            const title = [u.name + " (" + kind + "), " + word,
                "last step " + duration(s.last) + ", longest " + duration(s.worst) + " of " + duration(room) + (u.budget ? " (budget)" : ""),
                s.late ? "late " + s.late + " times" : "",
                s.link ? "in " + s.link.in + ", out " + s.link.out + ", lost " + s.link.lost + ", age " + duration(s.link.age) : "",
            ].filter(Boolean).join("\n");
            say(d.g.firstChild, title);
        });
        status.links.forEach((s, i) => {
            const d = drawing.links[i], l = hello.links[i];
            if (!d || !l) { return; }
            mark(d.line, "class", "line " + quality(i));
            mark(d.g, "data-fault", faulty(s) ? "yes" : null);
            say(d.fault, !faulty(s) ? "" : drawing.look.ports ? "▲ " + s.fault + " " : "▲ ");
            say(d.number, figure(s.value, 4));
        });
    }

    // ---- selection -----------------------------------------------------------------------------

    function select(what) {
        selected = what;
        if (drawing) {
            drawing.units.forEach((d, i) => {
                const l = hello.links[what.link], near = what.link >= 0 && (l.from_unit === i || l.to_unit === i);
                d.g.classList.toggle("chosen", i === what.unit);
                d.g.classList.toggle("near", near);
            });
            drawing.links.forEach((d, i) => {
                const l = hello.links[i];
                const near = what.unit >= 0 && (l.from_unit === what.unit || l.to_unit === what.unit);
                d.g.classList.toggle("chosen", i === what.link || near);
                d.text.classList.toggle("chosen", i === what.link || near);
            });
            drawing.svg.classList.toggle("focused", what.unit >= 0 || what.link >= 0);
        }
        linkRows.forEach((r, i) => {
            const l = hello.links[i];
            const near = what.unit >= 0 && (l.from_unit === what.unit || l.to_unit === what.unit);
            r.body.classList.toggle("chosen", i === what.link);
            r.body.classList.toggle("near", near);
            r.name.setAttribute("aria-expanded", i === what.link ? "true" : "false");
            if (i === what.link) {
                openDetail(i);
            } else if (r.detail) {
                r.detail.row.remove();
                r.detail = null;
            }
        });
        const shown = what.link >= 0 ? linkRows[what.link] : linkRows.find((r) => r.body.classList.contains("near"));
        if (shown) { bring(shown.body); }
        for (const group of document.querySelectorAll("#settings section, #signals fieldset")) {
            const on = Number(group.dataset.unit) === what.unit;
            group.classList.toggle("chosen", on);
            if (on) { bring(group); }
        }
    }
    function bring(node) { // into its own box, without moving the page
        const box = node.closest(".scroll, #signals");
        if (!box || box.scrollHeight <= box.clientHeight) { return; }
        const a = node.getBoundingClientRect(), b = box.getBoundingClientRect();
        const head = box.querySelector("thead"), covered = head ? head.offsetHeight : 0;
        if (a.top < b.top + covered || a.bottom > b.bottom) { box.scrollTop += a.top - b.top - covered; }
    }

    // ---- connections ---------------------------------------------------------------------------

    let linkRows = [];
    const STAND_INS = ["", ", now zoh", ", now foh"]; // after a discontinuity
    function buildLinks() {
        for (const body of $("links").querySelectorAll("tbody")) { body.remove(); }
        show($("no-links"), hello.links.length === 0);
        show($("links"), hello.links.length > 0);
        const bondOf = new Map();
        hello.bonds.forEach((b, i) => { bondOf.set(b.action, i); bondOf.set(b.flow, i); });
        linkRows = hello.links.map((l, i) => {
            const name = el("button", {
                type: "button", class: "row-name", "aria-expanded": "false", title: l.from + " → " + l.to,
            },
                tail("", l.from), el("span", { class: "arrow", text: "→" }), tail("", l.to));
            const fault = el("span", { class: "fault", hidden: true });
            const cells = {};
            const cell = (key, cls, label) => (cells[key] = el("td", { class: cls, "data-label": label }));
            cells.value = el("span");
            const value_ = el("td", { class: "r strong" }, cells.value,
                el("span", { class: "unit", text: l.unit && l.unit !== "1" ? NARROW + l.unit : "", title: l.unit }));
            const row = el("tr", null, el("td", { class: "first" }, name, fault), value_, cell("age", "r", "age"),
                cell("k", "r", "k"), cell("defect", "r q", "defect"), cell("residual", "r wide"),
                cell("algorithm", "word"), cell("counts", "r wide"));
            row.addEventListener("click", (e) => {
                if (e.target.closest("input, select")) { return; }
                select({ unit: -1, link: selected.link === i ? -1 : i });
            });
            const body = el("tbody", null, row);
            return { body, name, fault, cells, detail: null, bond: bondOf.has(l.from) ? bondOf.get(l.from) : -1 };
        });
        $("links").append(...linkRows.map((r) => r.body));
    }

    function refreshLinks() {
        if (!status) { return; }
        let faults = 0;
        status.links.forEach((s, i) => {
            const r = linkRows[i], l = hello.links[i];
            if (!r) { return; }
            const c = r.cells;
            say(c.value, figure(s.value, 4));
            say(c.age, duration(s.age));
            say(c.k, s.k === null || s.k === undefined || s.k < 0 ? DASH : String(s.k));
            say(c.defect, percent(misses[i].relative));
            mark(c.defect, "data-q", quality(i));
            const bond = r.bond >= 0 ? status.bonds[r.bond] : null;
            say(c.residual, bond && bond.residual !== null ? figure(bond.residual, 3) + NARROW + "W" : DASH);
            say(c.algorithm, s.algorithm ? s.algorithm + (STAND_INS[s.active] || "") : DASH);
            say(c.counts, l.coupling < 0 ? DASH : [s.lost, s.late, s.duplicates, s.jumps].join(" / "));
            const bad = faulty(s);
            faults += bad ? 1 : 0;
            show(r.fault, bad);
            if (bad) {
                const left = s.fault_left === null ? "until cleared" : short(Math.max(1e-4, s.fault_left), 2) + NARROW + "s left";
                say(r.fault, "▲ " + s.fault + ", " + left);
            }
            if (r.detail) { refreshDetail(i); }
        });
        show($("clear-all"), faults > 1);
    }

    const FAULT_HINTS = {
        hold: "", value: "value", offset: "added", gain: "factor", noise: "deviation", drop: "part 0 … 1", delay: "s",
    };
    function openDetail(i) {
        const r = linkRows[i], l = hello.links[i];
        if (r.detail) { return; }
        const d = { facts: {} };
        const facts = el("dl", { class: "facts" });
        const fact = (key, label) => {
            d.facts[key] = el("dd");
            facts.append(el("div", null, el("dt", { text: label }), d.facts[key]));
        };
        fact("defect", "Defect of the last step");
        fact("scale", "Scale");
        fact("error", "Error of the estimate");
        if (l.coupling >= 0) {
            fact("sent", "Samples sent");
            fact("lost", "Lost / late / duplicates / jumps");
        }
        if (r.bond >= 0) {
            fact("residual", "Residual power of " + hello.bonds[r.bond].name);
            fact("energy", "Energy / work of corrections");
        }
        const error = el("p", { class: "error", role: "alert", hidden: true });
        const reply = (answer) => {
            show(error, !answer.ok);
            if (!answer.ok) { say(error, answer.error); }
        };
        // The algorithm: one of the list, or an element as JSON.
        const select_ = el("select", { class: "cmd", "aria-label": "Algorithm of " + l.to },
            el("option", { value: "", text: "change to …" }), ...hello.algorithms.map((a) => el("option", { value: a, text: a })));
        const json = el("input", {
            type: "text", class: "cmd json", placeholder: 'or an element: {"algorithm": "foh"}',
            "aria-label": "Element as JSON for " + l.to, autocomplete: "off", spellcheck: "false",
        });
        const couple = () => {
            const text = json.value.trim();
            if (!text) {
                json.focus();
                return;
            }
            let element = text;
            if (text.startsWith("{")) {
                try { element = JSON.parse(text); } catch (e) {
                    reply({ ok: false, error: "This is no JSON: " + e.message });
                    return;
                }
            }
            send("couple", { to: l.to, element }, (answer) => {
                reply(answer);
                if (answer.ok) { json.value = ""; }
            });
        };
        select_.addEventListener("change", () => {
            const name = select_.value;
            select_.value = "";
            if (name) { send("couple", { to: l.to, element: name }, reply); }
        });
        json.addEventListener("keydown", (e) => {
            if (e.key === "Enter") { couple(); }
            if (e.key === "Escape" && json.value) {
                json.value = "";
                e.stopPropagation();
            }
        });
        const form = (label, ...fields) => el("div", { class: "form" }, el("span", { class: "label", text: label }), ...fields);
        const remark = (text) => el("span", { class: "note", text });
        const coupling = l.coupling < 0 ? form("Algorithm", remark("no coupling element at this input"))
            : form("Algorithm", select_, json, el("button", { type: "button", class: "cmd", text: "Apply", onclick: couple }));
        // A fault.
        const kind = el("select", { class: "cmd", "aria-label": "Fault at " + l.to }, ...hello.faults.map((f) =>
            el("option", { value: f, text: f, disabled: l.coupling < 0 && (f === "drop" || f === "delay") })));
        const quantity = (label) => el("input", {
            type: "text", inputmode: "decimal", class: "cmd amount", "aria-label": label, autocomplete: "off",
        });
        const amount = quantity("Value of the fault"), lasts = quantity("Duration of the fault in seconds");
        lasts.placeholder = "s, or no end";
        const hint = () => {
            const f = kind.value, measured = ["value", "offset", "noise"].includes(f);
            const unit = measured && l.unit && l.unit !== "1" ? " " + l.unit : "";
            amount.placeholder = (FAULT_HINTS[f] === undefined ? "value" : FAULT_HINTS[f]) + unit;
            amount.dataset.off = f === "hold" ? "1" : "0";
            gate();
        };
        kind.addEventListener("change", hint);
        const inject = () => {
            const number = (field, what) => {
                const x = Number(field.value.trim().replace(",", ".").replace(MINUS, "-"));
                if (!Number.isFinite(x)) { throw new Error(what + ": " + field.value + " is no number."); }
                return x;
            };
            try {
                const hold_ = kind.value === "hold";
                if (!hold_ && !amount.value.trim()) { throw new Error("The fault needs a value."); }
                send("fault", {
                    to: l.to, kind: kind.value, value: hold_ ? 0 : number(amount, "Value"),
                    duration: lasts.value.trim() ? number(lasts, "Duration") : null,
                }, reply);
            } catch (e) {
                reply({ ok: false, error: e.message });
            }
        };
        for (const field of [amount, lasts]) {
            field.addEventListener("keydown", (e) => { if (e.key === "Enter") { inject(); } });
        }
        const clear = () => send("clear", { to: l.to }, reply);
        const fault = !l.can_fault ? form("Fault", remark("only where numbers are real"))
            : form("Fault", kind, amount, lasts,
                el("button", { type: "button", class: "cmd", text: "Inject", onclick: inject }),
                el("button", { type: "button", class: "cmd clear", text: "Clear", onclick: clear }));
        const source = l.from_signal >= 0 ? hello.signals[l.from_signal] : null;
        const plot = !source ? null
            : el("button", { type: "button", class: "quiet", text: "Plot " + l.from, onclick: () => toggle(source, true) });
        d.row = el("tr", { class: "detail" },
            el("td", { colspan: "8" }, facts, coupling, fault, error, plot, " ", el("span", { class: "why" })));
        r.body.append(d.row);
        r.detail = d;
        if (hello.faults.includes("offset")) { kind.value = "offset"; }
        hint();
        refreshDetail(i);
    }
    function refreshDetail(i) {
        const r = linkRows[i], l = hello.links[i], s = status && status.links[i];
        if (!r.detail || !s) { return; }
        const f = r.detail.facts, orDash = (x) => (x === null || x === undefined ? DASH : withUnit(figure(x, 3), l.unit));
        say(f.defect, orDash(s.defect));
        say(f.scale, orDash(s.scale));
        say(f.error, orDash(s.error));
        if (f.sent) {
            say(f.sent, count(s.sent));
            say(f.lost, [s.lost, s.late, s.duplicates, s.jumps].map(count).join(" / "));
        }
        const bond = r.bond >= 0 ? status.bonds[r.bond] : null;
        if (bond && f.residual) {
            const of = (x, unit) => (x === null ? DASH : figure(x, 3) + NARROW + unit);
            say(f.residual, of(bond.residual, "W") + " of " + of(bond.power, "W"));
            say(f.energy, of(bond.energy, "J") + " / " + of(bond.work, "J"));
        }
        const clear = r.detail.row.querySelector(".clear");
        if (clear) { clear.dataset.off = faulty(s) ? "0" : "1"; }
    }

    // ---- real time -----------------------------------------------------------------------------

    let paceDrawn = 0, overrunsShown = "", notesShown = "";
    function refreshPace() {
        const p = status.pace;
        if (!p) { return; }
        const rate = p.factor === 1 ? "at real time" : "at " + exact(p.factor) + NARROW + "× real time";
        const every = p.period > 0 ? ", every " + duration(p.period) : "";
        say($("pace-word"), p.on ? rate + every : "not paced: as fast as possible");
        const quantiles = (row, q, on) => ["p50", "p99", "p9999", "max"].forEach((key, i) => {
            say(row.cells[i + 1], on && q && p.cycles > 0 ? duration(q[key]) : DASH);
        });
        quantiles($("q-late"), p.lateness, p.on);
        quantiles($("q-busy"), p.busy, true);
        if (now() - paceDrawn > 480 || ended()) {
            paceDrawn = now();
            drawHistograms(p);
            drawCounts(p);
        }
        const notes = JSON.stringify(p.notes || []);
        if (notes !== notesShown) {
            notesShown = notes;
            $("notes").replaceChildren(...(p.notes || []).map((n) => el("li", { text: n })));
        }
        const kept = JSON.stringify(p.kept || []);
        if (kept !== overrunsShown) {
            overrunsShown = kept;
            show($("overruns-title"), (p.kept || []).length > 0);
            $("overrun-list").tBodies[0].replaceChildren(...(p.kept || []).slice().reverse().map((o) => el("tr", null,
                el("td", { class: "r", text: exact(Number(o.time.toFixed(clockDigits))) + NARROW + "s" }),
                el("td", { class: "r", text: duration(o.late) + " late", title: "Cycle " + o.cycle }),
                el("td", { class: "r", text: duration(o.busy) + " busy" }),
                el("td", { text: unitName(o.unit) }))));
        }
    }
    function unitName(u) {
        if (typeof u === "string") { return u; }
        return u !== null && u >= 0 && hello.units[u] ? hello.units[u].name : "";
    }
    function drawCounts(p) {
        const list = [
            ["Cycles", count(p.cycles)], ["Longest burst", p.on ? count(p.burst) : DASH], ["Skipped", p.on ? count(p.skipped) : DASH],
            ["Grid moved by", p.on ? duration(p.moved) : DASH],
            ["Page faults", count(p.minor_faults) + " minor, " + count(p.major_faults) + " major"],
            ["Context switches", count(p.voluntary) + " own, " + count(p.involuntary) + " forced"],
            ["Scheduling", [p.fifo ? "FIFO " + p.priority : "ordinary", p.pinned ? "CPU " + p.cpu : "",
                p.locked ? "memory locked" : ""].filter(Boolean).join(", ")],
            ["Clock set", count(p.clock_steps) + NARROW + "×"],
            ["Rows not shown", count(status.lost_rows)],
        ];
        const box = $("counts");
        if (box.children.length !== list.length) {
            box.replaceChildren(...list.map(() => el("div", null, el("dt"), el("dd"))));
        }
        list.forEach(([name, text], i) => {
            say(box.children[i].firstChild, name);
            say(box.children[i].lastChild, text);
        });
    }
    const next_ = (edge) => edge + 0.25e-9 * 2 ** Math.floor(Math.log2(edge * 1e9) + 1e-9); // end of a bucket
    // Bars over the logarithm of the duration; heights are logarithms too, else the tail, which
    // matters, could not be seen.
    function drawHistograms(p) {
        const box = $("histograms"), width = box.clientWidth;
        if (width < 80) { return; }
        const sets = [["Lateness", p.on ? p.histogram.lateness || [] : [], "late"], ["Cycle time", p.histogram.busy || [], "busy"]];
        const filled = sets.filter((s) => s[1].length > 0);
        if (filled.length === 0) {
            box.replaceChildren();
            return;
        }
        let low = Infinity, high = 0;
        for (const [, list] of filled) {
            for (const [edge] of list) {
                if (edge > 0) { low = Math.min(low, edge); }
                high = Math.max(high, edge);
            }
        }
        if (p.period > 0) { high = Math.max(high, p.period * 1.1); }
        if (!(low < Infinity)) { low = 1e-7; }
        const a = Math.floor(Math.log10(low) + 1e-9), b = Math.max(a + 1, Math.ceil(Math.log10(Math.max(high, low) * 1.2)));
        const left = 2, right = width - 2, x = (s) => left + (right - left) * (Math.log10(Math.max(s, 10 ** a)) - a) / (b - a);
        const each = box.closest(".big") ? 150 : 62, top = 14, height = filled.length * (each + top) + 18;
        const what = filled.map((f) => f[0].toLowerCase()).join(" and ");
        const s = svg("svg", { width, height, role: "img", "aria-label": "Histograms of " + what });
        filled.forEach(([name, list, cls], k) => {
            const base = (k + 1) * (each + top);
            const most = Math.log10(1 + Math.max(...list.map((e) => e[1])));
            for (let d = a; d <= b; d++) {
                s.append(svg("path", { class: "tick", d: "M" + Math.round(x(10 ** d)) + ".5 " + (base - each) + "V" + base }));
            }
            let bars = "";
            for (const [edge, n] of list) {
                const x0 = x(edge), x1 = Math.max(x0 + 1, x(next_(Math.max(edge, 10 ** a))) - 0.5);
                const h = Math.max(1.5, (each - 4) * Math.log10(1 + n) / most);
                bars += "M" + x0.toFixed(1) + " " + base + "V" + (base - h).toFixed(1) + "H" + x1.toFixed(1) + "V" + base + "z";
            }
            s.append(svg("path", { class: "bars " + cls, d: bars }), svg("path", { class: "axis", d: "M0 " + (base + 0.5) + "H" + width }),
                svg("text", { class: "label", x: 2, y: base - each - 3, text: name }));
            if (k === 0) { s.append(svg("text", { class: "label end", x: width - 2, y: base - each - 3, text: "log of counts" })); }
            if (p.on && p.period > 0) {
                s.append(svg("path", { class: "period", d: "M" + x(p.period).toFixed(1) + " " + (base - each) + "V" + base }));
            }
        });
        for (let d = a; d <= b; d++) {
            const anchor = d === a ? "start" : d === b ? "end" : "middle";
            const crowded = (right - left) / (b - a) < 60; // those at the ends reach into their neighbours' room
            if (crowded && (d === a + 1 || d === b - 1)) { continue; }
            s.append(svg("text", { class: "label", x: x(10 ** d), y: height - 4, "text-anchor": anchor, text: duration(10 ** d, 1) }));
        }
        if (p.on && p.period > 0) {
            const at = x(p.period);
            s.append(svg("text", { class: "label period-word", x: at - 4, y: top + 10, "text-anchor": "end", text: "period" }));
        }
        box.replaceChildren(s);
    }

    // ---- parameters ----------------------------------------------------------------------------

    let settingRows = new Map();
    function buildSettings() {
        settingRows = new Map();
        const groups = [];
        hello.units.forEach((unit, u) => {
            const rows = hello.settings.filter((s) => s.owner === u).map((s) => settingRow(s, unit));
            if (rows.length) {
                groups.push(el("section", { "data-unit": u }, el("h3", { text: unit.name, title: unit.name }), ...rows));
            }
        });
        if (groups.length === 0) {
            const text = hello.read_only ? "This page may only watch; nothing can be set." : "Nothing can be set while the run goes.";
            $("settings").replaceChildren(el("p", { class: "empty", text }));
        } else {
            const hint = el("span", { class: "hint", text: "Enter applies, Escape restores." });
            $("settings").replaceChildren(el("p", { class: "note" }, el("span", { class: "why" }), hint), ...groups);
        }
    }
    function settingRow(s, unit) {
        const own = s.name.startsWith(unit.name + ".") ? s.name.slice(unit.name.length + 1) : s.name;
        const id = "set-" + settingRows.size;
        const error = el("p", { class: "error", id: id + "-error", role: "alert", hidden: true });
        const known = s.start !== null && s.start !== undefined;
        const start = !known ? "" : s.type === "boolean" ? String(Boolean(s.start)) : plain(s.start);
        const range = limits(s);
        const common = { class: "cmd", id, "aria-describedby": id + "-error" };
        const field = s.type === "boolean"
            ? el("select", common, ...["false", "true"].map((text) => el("option", { value: text, text })))
            : el("input", Object.assign({ type: "text", autocomplete: "off", spellcheck: "false" }, common));
        const row = el("div", { class: "setting", title: s.name + (s.description ? ": " + s.description : "") },
            el("label", { for: id }, el("span", { class: "name", text: own }),
                el("span", { class: "note", text: [range, s.input ? "input" : ""].filter(Boolean).join(" · ") })),
            field, el("span", { class: "unit", text: s.unit === "1" ? "" : s.unit }), error);
        const entry = { row, field, error, start, sure: start, current: start };
        field.value = start;
        if (s.type === "boolean" && start === "") { field.selectedIndex = -1; }
        const apply = () => {
            const text = field.value.trim();
            let what = text;
            if (s.type === "boolean") {
                what = text === "true";
            } else if (text !== "" && Number.isFinite(Number(text))) {
                what = Number(text);
            }
            send("set", { name: s.name, value: what }, (reply) => {
                show(error, !reply.ok);
                field.setAttribute("aria-invalid", reply.ok ? "false" : "true");
                if (reply.ok) {
                    entry.current = text;
                    row.classList.remove("dirty");
                    row.classList.add("applied");
                    setTimeout(() => row.classList.remove("applied"), 1600);
                } else {
                    error.textContent = reply.error;
                }
            });
        };
        const restore = () => {
            field.value = entry.current;
            row.classList.remove("dirty");
            show(error, false);
            field.setAttribute("aria-invalid", "false");
        };
        field.addEventListener("input", () => row.classList.toggle("dirty", field.value.trim() !== entry.current));
        if (s.type === "boolean") {
            field.addEventListener("change", apply);
        } else {
            field.addEventListener("keydown", (e) => {
                if (e.key === "Enter") {
                    apply();
                } else if (e.key === "Escape") {
                    e.stopPropagation();
                    if (field.value === entry.current && error.hidden) { field.blur(); } else { restore(); }
                }
            });
        }
        settingRows.set(s.name, entry);
        return row;
    }
    function forgetSettings() { // the events that come again tell what was set
        for (const entry of settingRows.values()) {
            entry.current = entry.sure = entry.start;
            if (!entry.row.classList.contains("dirty")) { entry.field.value = entry.start; }
        }
    }
    // What was set, by whichever page, is in the record: "page 127.0.0.1: mass1.m = 0.1 kg".
    function learnSetting(e) {
        const set = e.kind === "mark" ? /^(?:page \S+: )?(.+?) = (\S+)/.exec(e.text) : null;
        const refused = e.kind === "error" ? /^(.+?): (refused by unit .*)$/.exec(e.text) : null;
        const entry = settingRows.get(set ? set[1] : refused ? refused[1] : "");
        if (!entry) { return; }
        if (refused) {
            entry.current = entry.sure;
            entry.error.textContent = refused[2];
        } else {
            entry.current = entry.sure = set[2];
        }
        show(entry.error, refused !== null);
        entry.field.setAttribute("aria-invalid", refused ? "true" : "false");
        if (!entry.row.classList.contains("dirty") && !refused) { entry.field.value = entry.current; }
    }
    function limits(s) {
        const low = exact(s.min), high = exact(s.max);
        if (low && high) { return low + " … " + high; }
        return low ? "≥ " + low : high ? "≤ " + high : "";
    }

    // ---- events --------------------------------------------------------------------------------

    const KINDS = ["error", "overrun", "warning", "mark", "start", "stop"];
    const EVENTS_SHOWN = 400;
    let events = [], freshEvents = [], lastEvent = 0, counts = {}, hiddenKinds = new Set(), eventTimer = 0;
    function forgetEvents() {
        events = [];
        freshEvents = [];
        lastEvent = 0;
        counts = {};
        $("event-list").replaceChildren();
        show($("no-events"), true);
        refreshKinds();
    }
    function takeEvent(e) {
        if (e.number <= lastEvent) { return; }
        lastEvent = e.number;
        counts[e.kind] = (counts[e.kind] || 0) + 1;
        learnSetting(e);
        benches.hear(e);
        events.push(e);
        if (events.length > 2000) { events.splice(0, 500); }
        freshEvents.push(e);
        if (!eventTimer) { eventTimer = setTimeout(showEvents, 60); }
    }
    function eventRow(e) {
        return el("li", { "data-kind": e.kind },
            el("span", { class: "when", text: e.time === null ? DASH : minus(e.time.toFixed(clockDigits)) + NARROW + "s" }),
            el("span", { class: "kind", text: e.kind }), el("p", { text: e.text }));
    }
    function showEvents() {
        eventTimer = 0;
        const list = $("event-list");
        const rows = freshEvents.filter((e) => !hiddenKinds.has(e.kind)).slice(-EVENTS_SHOWN).reverse().map(eventRow);
        freshEvents = [];
        list.prepend(...rows);
        while (list.children.length > EVENTS_SHOWN) { list.lastChild.remove(); }
        show($("no-events"), list.children.length === 0);
        refreshKinds();
    }
    function refilter() {
        $("event-list").replaceChildren();
        freshEvents = events.slice();
        showEvents();
        say($("no-events"), events.length ? "None of these kinds." : "No events yet.");
    }
    function buildKinds() {
        $("kinds").replaceChildren(...KINDS.map((kind) => {
            const button = el("button", {
                type: "button", "data-kind": kind, "aria-pressed": "true", onclick: () => {
                    if (hiddenKinds.has(kind)) { hiddenKinds.delete(kind); } else { hiddenKinds.add(kind); }
                    button.setAttribute("aria-pressed", hiddenKinds.has(kind) ? "false" : "true");
                    refilter();
                },
            }, el("span", { text: kind }), el("b"));
            return button;
        }));
    }
    function refreshKinds() {
        for (const button of $("kinds").children) {
            const n = counts[button.dataset.kind] || 0;
            say(button.lastChild, n ? count(n) : "");
            show(button, n > 0);
        }
    }

    // ---- panels and keys -----------------------------------------------------------------------

    const panels = ["topology", "plots", "connections", "realtime", "parameters", "events", "benches"];
    function enlarge(id) {
        for (const p of panels) {
            const big = p === id && !$(p).classList.contains("big");
            $(p).classList.toggle("big", big);
            const button = $(p).querySelector(".grow");
            button.setAttribute("aria-pressed", big ? "true" : "false");
        }
        document.body.classList.toggle("enlarged", panels.some((p) => $(p).classList.contains("big")));
        view.changed = true;
        paceDrawn = 0;
        if (status) { refreshPace(); }
    }
    function goTo(i) {
        const panel = $(panels[i]);
        if (document.body.classList.contains("enlarged")) {
            enlarge(panels[i]);
        } else if (document.activeElement === panel || panel.contains(document.activeElement)) {
            enlarge(panels[i]);
        }
        panel.focus({ preventScroll: true });
        panel.scrollIntoView({ block: "nearest" });
    }
    const typing = (node) => node instanceof HTMLElement &&
        (node.isContentEditable || /^(TEXTAREA|SELECT)$/.test(node.tagName) || (node.tagName === "INPUT" && node.type !== "checkbox"));

    document.addEventListener("keydown", (e) => { // wherever one is, and first of all
        if (e.ctrlKey && e.shiftKey && !e.altKey && e.code === "KeyX" && benches.any()) {
            e.preventDefault();
            e.stopPropagation();
            if (!e.repeat) { benches.press(); }
        } else if (e.key === "Escape" && $("keys").open) {
            e.stopPropagation();
            $("keys").close();
        }
    }, true);
    document.addEventListener("keydown", (e) => {
        if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented || $("keys").open) { return; }
        if (e.key === "Escape") {
            if (typing(e.target)) {
                e.target.blur();
            } else if (!$("picker").hidden && $("picker").contains(e.target)) {
                openPicker(false);
            } else if (document.body.classList.contains("enlarged")) {
                enlarge("");
            } else if (selected.unit >= 0 || selected.link >= 0) {
                select({ unit: -1, link: -1 });
            }
            return;
        }
        if (typing(e.target) || e.repeat) { return; }
        const onControl = e.target instanceof Element && e.target.closest("button, input, summary, [role=button]");
        if (e.key === " ") {
            if (onControl) { return; } // that one is meant
            pressStart();
        } else if (e.key === ".") {
            pressStep();
        } else if (e.key === "s" || e.key === "S") {
            pressStop();
        } else if (e.key >= "1" && e.key <= "6") {
            goTo(Number(e.key) - 1);
        } else if ((e.key === "b" || e.key === "B") && benches.any()) {
            goTo(panels.indexOf("benches"));
        } else if (e.key === "/") {
            openPicker(true);
            $("filter").focus();
            $("filter").select();
        } else if (e.key === "h" || e.key === "H") {
            hold(!view.held);
        } else if (e.key === "?") {
            openKeys();
        } else {
            return;
        }
        e.preventDefault();
    });

    function openKeys() { // nothing may lie over the emergency stop
        if (benches.any()) { $("keys").show(); } else { $("keys").showModal(); }
    }

    // A press with the mouse leaves the space bar to the run.
    function press(id, action) {
        $(id).addEventListener("click", (e) => {
            action();
            if (e.detail > 0) { $(id).blur(); }
        });
    }

    // ---- begin ---------------------------------------------------------------------------------

    const benches = window.cardanBenches({
        el, say, mark, show, figure, duration, count, send, tell, noEmergency, stopping,
        last: (name) => (ring.signals.has(name) ? ring.signals.get(name).last : NaN),
    });
    theme(wantedTheme());
    darkSystem.addEventListener("change", () => theme(wantedTheme()));
    press("theme", () => {
        const name = root.getAttribute("data-theme") === "dark" ? "light" : "dark";
        store.set("localStorage", "cardan.theme", name);
        theme(name);
    });
    press("start", pressStart);
    press("step", pressStep);
    press("stop", pressStop);
    press("help", () => openKeys());
    press("pick", () => openPicker($("picker").hidden));
    press("hold", () => hold(!view.held));
    press("unzoom", unzoom);
    press("clear-all", () => command("clear", { to: "" }));
    press("banner-do", () => {
        if (!connected) { connect(); }
    });
    $("keys-close").addEventListener("click", () => $("keys").close());
    $("filter").addEventListener("input", filterSignals);
    for (const id of panels) {
        $(id).querySelector(".grow").addEventListener("click", () => enlarge(id));
    }
    $("windows").append(...LENGTHS.map((length) => el("button", {
        type: "button", role: "radio", "data-length": length, text: length ? length + NARROW + "s" : "all",
        title: length ? "The last " + length + " s of simulated time" : "All that the page has kept",
        onclick: () => {
            view.length = length;
            view.zoom = null;
            refreshView();
            if (hello) { keepCards(); }
        },
    })));
    $("windows").addEventListener("keydown", (e) => {
        const way = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[e.key];
        if (way) {
            e.preventDefault();
            const list = Array.from($("windows").children);
            const to = list[(list.indexOf(e.target) + way + list.length) % list.length];
            to.click();
            to.focus();
        }
    });
    $("mark").addEventListener("submit", (e) => {
        e.preventDefault();
        const text = $("mark-text").value.trim();
        if (!text) { return; }
        send("mark", { text }, (reply) => {
            show($("mark-error"), !reply.ok);
            if (reply.ok) { $("mark-text").value = ""; } else { say($("mark-error"), reply.error); }
        });
    });
    buildKinds();
    refreshView();
    let drawnFor = 0;
    new ResizeObserver(() => {
        const size = $("drawing").clientWidth;
        if (hello && size > 50 && Math.abs(size - drawnFor) > 60) { // another size: perhaps another look
            drawnFor = size;
            buildTopology();
        } else {
            fitTopology();
        }
    }).observe($("drawing"));
    setInterval(() => { if (!connected && !ended()) { refreshConnection(); } }, 500);
    requestAnimationFrame(loop);
    connect();

    // For tests and the curious: what the plots hold and how long pictures take (ms).
    window.cardanLive = {
        plots: () => cards.map((c) => ({
            signals: c.signals.map((s) => s.name), points: c.data[0].length,
            from: view.from, to: view.to, last: c.data.map((d) => d[d.length - 1]),
        })),
        rows: () => ring.rows,
        samples: (name) => {
            const s = ring.signals.get(name);
            return s ? Array.from({ length: Math.min(ring.rows, 2000) }, (x, i) => {
                const row = ring.rows - Math.min(ring.rows, 2000) + i;
                return [ring.time[row & (SIZE - 1)], s.v[row & (SIZE - 1)]];
            }) : [];
        },
        frames: () => {
            const n = Math.min(frames.count, 512);
            const list = (from) => Array.from(from.subarray(0, n));
            return { count: frames.count, times: list(frames.times), gaps: list(frames.gaps) };
        },
    };
})();
