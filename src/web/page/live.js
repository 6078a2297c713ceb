// The live page: shows a run that Cardan serves and steers it. Here is what happens when something
// comes from the server; the panels are in modules of their own. docs/how-to/live.md has the messages.
import { beginBenches, learnUse, meetBenches, rearmEmergency, refreshEstimates, takeBenches } from "./benches.js";
import { beginConnections, buildLinks, refreshLinks } from "./connections.js";
import { beatAll, beginDesk, buildDesk, forgetSeats, refreshDesk } from "./desk.js";
import { press } from "./dom.js";
import { beginEvents, forgetEvents, takeEvent } from "./events.js";
import { pressStart, pressStep, pressStop, refreshClock, refreshConnection, refreshGauges, refreshState, showName } from "./header.js";
import { forgetMisses, learnMisses } from "./misses.js";
import { buildPairs, refreshPairs } from "./pairs.js";
import { beginPanels } from "./panels.js";
import { beginPicker, buildPicker } from "./picker.js";
import { beginPlots, frames, plots, restoreCards, watch } from "./plots.js";
import { refreshPace } from "./realtime.js";
import { SIZE, ring, takeFrame } from "./samples.js";
import { buildSettings, forgetSettings, learnSetting } from "./settings.js";
import { connect, listen } from "./socket.js";
import { decimals, ended, gate, run } from "./state.js";
import { beginTheme } from "./theme.js";
import { beginTopology, buildTopology, refreshTopology } from "./topology.js";
import { view } from "./view.js";

// ---- what comes ------------------------------------------------------------------------------------

// Everything that depends on what there is. After a reconnection it is mostly the same again:
// plots and selection stay.
function meet(m) {
    const same = run.hello !== null && JSON.stringify(run.hello) === JSON.stringify(m);
    run.hello = m;
    run.status = run.early = null;
    if (!same) {
        run.selected = { unit: -1, link: -1 };
        forgetMisses();
        showName(m);
        run.clockDigits = decimals(m.step);
        buildTopology();
        buildLinks();
        buildPairs();
        buildSettings();
        buildPicker();
        ring.forget();
        restoreCards();
        meetBenches();
    } else {
        ring.gap();
        forgetSettings();
    }
    buildDesk();
    watch();
    refreshConnection();
}

function takeStatus(s) {
    if (run.status && s.time < run.status.time - 1e-12) { ring.forget(); } // another run
    run.status = s;
    refreshState();
    refreshClock();
    refreshGauges(s);
    learnMisses();
    refreshTopology();
    refreshLinks();
    refreshPairs();
    refreshPace();
    refreshEstimates();
    refreshDesk();
    beatAll(); // a timer alone is slowed down in some windows
    gate();
}

listen({
    opened: () => {
        forgetEvents(); // they come again
        forgetSeats();
        rearmEmergency();
    },
    changed: refreshConnection,
    frame: takeFrame,
    hello: meet,
    status: takeStatus,
    event: (e) => {
        if (takeEvent(e)) {
            learnSetting(e);
            learnUse(e);
        }
    },
    benches: (m) => { if (takeBenches(m.benches) && run.hello) { watch(); } },
    wait: (m) => {
        run.status = null;
        if (m.asks) { run.hello = null; } // another session
        run.early = m;
        showName(m);
        refreshConnection();
    },
});

// ---- begin -----------------------------------------------------------------------------------------

beginTheme();
press("start", pressStart);
press("step", pressStep);
press("stop", pressStop);
press("banner-do", () => {
    if (!run.connected) { connect(); }
});
beginBenches();
beginDesk();
beginTopology();
beginPlots();
beginPicker();
beginConnections();
beginEvents();
beginPanels();
setInterval(() => { if (!run.connected && !ended()) { refreshConnection(); } }, 500);
connect();

// For tests and the curious: what the plots hold and how long pictures take (ms).
window.cardanLive = {
    plots: () => plots().map((c) => ({
        signals: c.signals.map((s) => s.name), points: Math.max(0, ...c.lines.map((l) => l.data.n)), from: view.from, to: view.to,
        newest: Math.max(...c.lines.map((l) => (l.data.n ? l.data.t[l.data.n - 1] : NaN))),
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
