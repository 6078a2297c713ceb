// The head of the page: what runs, its clock, its state, gauges, the buttons of the run, the banner.
import { token } from "./ask.js";
import { anyBench } from "./benches.js";
import { takeAll } from "./desk.js";
import { $, mark, say, show } from "./dom.js";
import { DASH, NARROW, count, duration, exact, minus } from "./numbers.js";
import { ring } from "./samples.js";
import { command, expectAnother, link } from "./socket.js";
import { ENDS, SHAPES, canPrepare, ended, gate, now, run, standing, stopping } from "./state.js";

export function showName(m) {
    say($("title"), m.title || m.file || "Cardan");
    say($("file"), m.title && m.file ? m.file : "");
    $("title").title = $("title").textContent;
    $("file").title = m.file || "";
    say($("about"), "Cardan " + m.version);
}

export function refreshConnection() {
    document.body.dataset.connected = run.connected ? "yes" : "no";
    $("connection").dataset.is = run.connected ? "on" : ended() ? "over" : "off";
    let word = run.connected ? "connected" : ended() ? "closed" : "no connection";
    if (!run.connected && !ended() && link.retryAt > Date.now()) {
        word = "again in " + Math.ceil((link.retryAt - Date.now()) / 1000) + NARROW + "s";
    }
    say($("connection-word"), word);
    refreshState();
    gate();
}

export function refreshClock() {
    if (!run.hello) { return; }
    let t = run.status ? run.status.time : null;
    if (ring.rows > 0 && (t === null || (ring.newest() > t && !ended()))) { t = ring.newest(); }
    const text = t === null ? DASH : minus(t.toFixed(run.clockDigits));
    say($("clock"), text);
    mark($("clock"), "data-long", text.length > 11 ? "yes" : null);
    say($("clock-of"), run.hello.stop === null ? "s" : "s of " + exact(run.hello.stop));
    const part = run.hello.stop === null || t === null ? 0 : (t - run.hello.start) / (run.hello.stop - run.hello.start);
    $("progress").style.transform = "scaleX(" + Math.max(0, Math.min(1, part || 0)).toFixed(4) + ")";
}

export function refreshState() {
    let state = standing() ? standing().state : run.hello ? "starting" : "none";
    if (state === "ended" && standing().end === "failed") { state = "failed"; }
    if (!run.connected && !ended()) { state = "none"; }
    const words = { none: run.everConnected ? "no connection" : "connecting", failed: "failed" };
    mark(document.body, "data-state", state);
    mark($("state-shape"), "d", SHAPES[state] || SHAPES.none);
    say($("state-word"), words[state] || state);
    say($("start").firstChild, canPrepare() ? (ended() ? "Acknowledge" : "Prepare")
        : state === "running" ? ((run.hello || {}).desk ? "Started" : "Pause") : state === "paused" ? "Continue" : "Start");
    const desk = run.hello !== null && run.hello.desk === true; // a bench does not stand still
    $("start").dataset.off = desk && state === "running" ? "1" : "";
    show($("step"), !desk);
    const title = run.hello ? (words[state] || state) + " · " + (run.hello.title || run.hello.file || "Cardan") : "Cardan";
    if (document.title !== title) { document.title = title; }
    banner();
}

function banner() {
    let kind = "", word = "", text = "", again = false;
    if (stopping() && (ended() || anyBench())) {
        const s = standing(), results = (run.hello || run.early).results;
        kind = s.end === "failed" || s.end === "guard" ? "bad" : "done";
        word = ENDS[s.end] || ENDS.none;
        text = s.message || "";
        const where = !ended() ? "The benches come to rest." : !run.status ? ""
            : results ? "Results are in " + results + "." : "No results were asked for.";
        const acknowledge = canPrepare() ? " Acknowledge it to prepare the bench again." : "";
        text = (text ? text.replace(/([^.!?])$/, "$1.") + " " + where : where) + acknowledge;
        again = ended() && !run.connected;
    } else if (!run.connected && link.attempt > 0) {
        kind = "lost";
        word = run.everConnected ? "The connection was lost." : "There is no connection.";
        text = run.everConnected
            ? "The page tries again by itself; what it shows is from " + new Date(link.lastMessage).toLocaleTimeString() + "."
            : "Is the run still going, and is this the address with the token that it printed?";
    } else if (canPrepare()) {
        kind = "wait";
        word = "Nothing has begun.";
        text = "Prepare brings the bench to remote control and conditions its media: it may turn for that. Set values come after Start.";
    } else if (run.status && run.status.state === "waiting" && run.hello.desk) {
        kind = "wait";
        word = "The bench is ready.";
        text = run.hello.read_only ? "This page is read-only." : "Start takes the desk and begins with all set values at rest.";
    } else if (run.status && run.status.state === "waiting") {
        kind = "wait";
        word = "The run waits before its first step.";
        text = run.hello.read_only ? "Somebody has to start it; this page is read-only." : "Press Start or the space bar.";
    } else if (run.status && run.status.guard) {
        kind = "wait";
        word = "The guard:";
        text = run.status.guard + ".";
    }
    show($("banner"), kind !== "");
    mark($("banner"), "data-kind", kind);
    say($("banner-word"), word);
    say($("banner-text"), text);
    show($("banner-do"), again);
    if (ended() && run.connected && (run.hello || run.early).results) { offerView(); } else { show($("banner-view"), false); }
}

// A run that goes on serving has its results to look at soon after its end.
let offered = 0;
async function offerView() {
    if (!offerView.next) { offerView.next = now() + 3000; } // one that does not go on serving is gone by then
    if (offered > 20 || !$("banner-view").hidden || now() < offerView.next) { return; }
    offerView.next = now() + 1000;
    offered++;
    try {
        const reply = await fetch("/view.json", { headers: { Authorization: "Bearer " + token } });
        show($("banner-view"), reply.ok && (await reply.json()).ready === true);
    } catch (e) { /* it has gone */ }
}
offerView.next = 0;

export function refreshGauges(s) {
    say($("speed"), s.speed === null || s.speed === undefined ? DASH : speed(s.speed));
    const pace = s.pace || {};
    say($("overruns"), pace.on ? count(pace.overruns) : DASH);
    mark($("overruns-gauge"), "data-bad", pace.on && pace.overruns > 0 ? "yes" : null);
    say($("late99"), pace.on ? duration(pace.lateness.p99) : DASH);
}
function speed(x) {
    return (x >= 100 ? count(Math.round(x)) : x >= 9.95 ? x.toFixed(1) : x.toFixed(2)) + NARROW + "×";
}

let stopUntil = 0, stopTimer = 0;
export function pressStop() {
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
export function pressStart() {
    if ($("start").disabled) { return; }
    if (canPrepare()) {
        expectAnother(ended());
        command("prepare");
    } else if (run.status && run.status.state === "waiting") {
        takeAll(() => command("start"));
    } else { command(run.status && run.status.state === "running" ? "pause" : "start"); }
}
export function pressStep() {
    if (!$("step").disabled) { command("step", { count: 1 }); }
}
