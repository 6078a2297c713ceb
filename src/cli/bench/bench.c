// cardan bench em, ice, backtoback, traction, battery: emulated test benches as slaves on a
// network.
#include "cli/dcp/dcp_serve.h"
#include "cli/realtime.h"
#include "shared/base_interrupt.h"
#include "shared/dcp.h"
#include "shared/testbench_bench.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <time.h>

static const double TURN = 0.2; // s: a signal that comes just before waiting is seen after this
static const double PATIENCE = 3600; // s, of the stop at the end: hot machines cool down
static const double LEAVE = 1;       // s, for the master to deregister it
enum {
    TRACE_STEPS = 10,      // of its controller between two rows of the trace
    TRACE_REST_ROWS = 100, // behind its end: a bench that waits all night fills no disk
};

typedef struct bench_options {
    crdi_common common;
    const char *listen, *written, *trace;
    int seed;
    double speed_up, start_up, watchdog, heartbeat, soc;
    bool ideal, once, realtime, plain;
    crdi_list faults, key, pairs, misread;
    const char* calibration;
} bench_options;

// What it did, row by row: readable whenever the process ends.
typedef struct trace {
    FILE* f;
    crd_dcp_bench_phase phase; // of the last row
    int steps;                 // since then
    int rest;                  // rows since the bench came to rest
    bool failed;               // could not be written
} trace;

typedef struct session {
    crdi_cli* cli;
    crdi_result* out;
    const bench_options* o;
    crdi_testbench_kind kind;
    crd_dcp_net* net;
    crd_dcp_address address;
    crdi_testbench* bench;
    crdi_calibrations calibrations;
    trace trace;
    crd_pace_report system;
    crd_dcp_bench_phase phase; // that was told
    crd_dcp_state state;
    int64_t sessions;
} session;

// ---- the trace ---------------------------------------------------------------------------------

static crd_status open_trace(session* x)
{
    const char* path = x->o->trace;
    if (!path) { return CRD_OK; }
    x->trace.f = fopen(path, "we");
    if (!x->trace.f) {
        return crdi_fail(x->cli->ctx, CRD_E_IO, "--trace %s: %s", path, strerror(errno));
    }
    int count = 0;
    const crdi_testbench_signal* signals = crdi_testbench_signals(x->kind, &count);
    fprintf(x->trace.f, "time [s],phase,data_age [s]");
    for (int i = 0; i < count; i++) {
        fprintf(x->trace.f, ",%s [%s]", signals[i].name, signals[i].unit);
    }
    fprintf(x->trace.f, "\n");
    return CRD_OK;
}

static void write_row(session* x, double time, const crd_dcp_bench_state* s)
{
    FILE* f = x->trace.f;
    int count = 0;
    (void)crdi_testbench_signals(x->kind, &count);
    fprintf(f, "%.4f,%d,%.4g", time, (int)s->phase, s->time - s->valid);
    for (int i = 0; i < count; i++) {
        fprintf(f, ",%.7g", crdi_testbench_true(x->bench, i));
    }
    fprintf(f, "\n");
    if (fflush(f) != 0 && !x->trace.failed) {
        x->trace.failed = true; // a bench does not stop for that
        crdi_log(x->cli->ctx, CRD_LOG_WARNING, "--trace %s: %s", x->o->trace, strerror(errno));
    }
}

// A row each 10 ms and at each change of the phase, while it is not at rest.
static void trace_step(session* x, double time, const crd_dcp_bench_state* s)
{
    trace* t = &x->trace;
    const bool rest = s->phase == CRD_DCP_BENCH_IDLE || s->phase == CRD_DCP_BENCH_SAFE;
    const bool change = s->phase != t->phase;
    t->steps += t->steps < TRACE_STEPS;
    if (!change && (t->steps < TRACE_STEPS || t->rest > TRACE_REST_ROWS)) { return; }
    t->phase = s->phase;
    t->steps = 0;
    t->rest = rest ? t->rest + 1 : 0;
    write_row(x, time, s);
}

static crd_status close_trace(session* x)
{
    if (!x->trace.f) { return CRD_OK; }
    const bool bad = fclose(x->trace.f) != 0 || x->trace.failed;
    return bad ? crdi_fail(x->cli->ctx, CRD_E_IO, "--trace %s is not complete", x->o->trace)
               : CRD_OK;
}

// ---- what it says ------------------------------------------------------------------------------

static crd_status bench_say_ready(session* x)
{
    char text[32];
    crd_dcp_address_print(&x->address, text, sizeof text);
    crdi_put(x->out, TEXT("event", "listening"),
             TEXT("bench", crdi_testbench_kind_name((int)x->kind)), TEXT("address", text));
    crdi_say(x->out, "listening at %s\n", text);
    return crdi_result_print(x->out->root);
}

static bool before_stop(crd_dcp_bench_phase p)
{
    return p < CRD_DCP_BENCH_SPEED_DOWN || p == CRD_DCP_BENCH_ARMED;
}

static crd_status say_phase(session* x, const crd_dcp_bench_state* s)
{
    if (s->phase == x->phase) { return CRD_OK; }
    const char* phase = crd_dcp_bench_phase_name((int)s->phase);
    const bool stops = !before_stop(s->phase);
    const bool begins = stops && before_stop(x->phase); // from standstill: elsewhere
    x->phase = s->phase;
    const char* reason = stops ? crd_dcp_bench_reason_name((int)s->reason) : "";
    const char* why = stops ? crdi_testbench_why(x->bench) : "";
    crdi_put(x->out, TEXT("event", "phase"), TEXT("phase", phase), TEXT("reason", reason),
             TEXT("why", why));
    if (begins) {
        crdi_say(x->out, "phase %s, stopped by %s%s%s\n", phase, reason, *why ? ": " : "", why);
    } else {
        crdi_say(x->out, "phase %s\n", phase);
    }
    return crdi_result_print(x->out->root);
}

// The state of the slave, for programs that follow a session; people are told its phases.
static crd_status say_state(session* x)
{
    const crd_dcp_state state = crd_dcp_slave_state(crdi_testbench_slave(x->bench));
    if (state == x->state) { return CRD_OK; }
    x->sessions += state == CRD_DCP_ALIVE;
    x->state = state;
    crdi_put(x->out, TEXT("event", "state"), TEXT("state", crd_dcp_state_name((int)state)));
    return crdi_result_print(x->out->root);
}

// What is told of a step, behind it: no phase is too short to be seen.
static void bench_observe(void* user, double time)
{
    session* x = user;
    const crd_dcp_bench_state s = crd_dcp_bench_get_state(crdi_testbench_bench(x->bench));
    if (x->trace.f) { trace_step(x, time, &s); }
    (void)say_phase(x, &s); // where nobody listens any more the summary says so
}

// All PDUs that came are in one of requests, dropped, data_in, data_old, data_foreign,
// data_dropped.
static crd_status bench_say_summary(session* x)
{
    const crd_dcp_slave_counts c = crd_dcp_slave_get_counts(crdi_testbench_slave(x->bench));
    const crd_dcp_bench_state s = crd_dcp_bench_get_state(crdi_testbench_bench(x->bench));
    const crd_dcp_net_counts n = crd_dcp_net_get_counts(x->net);
    const int64_t lost = c.data_missed - c.data_reordered; // repeated very late it looks reordered
    crdi_put(x->out, TEXT("event", "ended"), INT("sessions", x->sessions), INT("steps", c.steps),
             INT("late_steps", c.late_steps), INT("received", n.received), INT("sent", n.sent),
             INT("requests", c.requests), INT("refused", c.nacks), INT("dropped", c.dropped),
             INT("foreign", c.foreign), INT("data_in", c.data_in), INT("data_out", c.data_out),
             INT("data_old", c.data_old), INT("data_duplicates", c.data_duplicates),
             INT("data_reordered", c.data_reordered), INT("data_dropped", c.data_dropped),
             INT("data_missed", c.data_missed), INT("data_foreign", c.data_foreign),
             INT("data_lost", lost > 0 ? lost : 0), INT("send_failed", c.send_failed + n.dropped),
             INT("unread", n.overrun), INT("clamps", s.clamps), INT("not_numbers", s.refused),
             TEXT("phase", crd_dcp_bench_phase_name((int)s.phase)),
             TEXT("reason", crd_dcp_bench_reason_name((int)s.reason)),
             TEXT("why", crdi_testbench_why(x->bench)));
    if (!x->o->common.quiet) {
        crdi_say(x->out,
                 "%" PRId64 " session%s, %" PRId64 " step%s, %" PRId64 " late; %" PRId64
                 " PDUs received, %" PRId64 " sent\n",
                 x->sessions, crdi_plural(x->sessions), c.steps, crdi_plural(c.steps), c.late_steps,
                 n.received, n.sent);
    }
    return crdi_result_print(x->out->root);
}

// ---- bringing it up ----------------------------------------------------------------------------

static crd_status read_options(session* x, crdi_testbench_options* out)
{
    const bench_options* o = x->o;
    crd_context* ctx = x->cli->ctx;
    *out = crdi_testbench_defaults(x->kind);
    if (o->seed >= 0) { out->seed = (uint64_t)o->seed; }
    if (!isnan(o->speed_up)) { out->speed_up = o->speed_up; }
    if (!isnan(o->start_up)) { out->start_up = o->start_up; }
    if (!isnan(o->watchdog)) { out->watchdog = o->watchdog; }
    if (!isnan(o->heartbeat)) { out->heartbeat = o->heartbeat; }
    if (!isnan(o->soc)) {
        if (x->kind != CRDI_TESTBENCH_BATTERY) {
            return crdi_fail(ctx, CRD_E_RANGE,
                             "--soc %g: the bench has no battery; expected it "
                             "with cardan bench battery",
                             o->soc);
        }
        out->soc = o->soc;
    }
    out->ideal = o->ideal;
    out->pairs = o->pairs.items;
    out->pair_count = o->pairs.count;
    out->life = (uint32_t)time(NULL);
    out->address = x->address;
    if (o->faults.count > CRDI_TESTBENCH_FAULTS_MAX) {
        return crdi_fail(ctx, CRD_E_RANGE, "%d times --fault, expected %d at most", o->faults.count,
                         CRDI_TESTBENCH_FAULTS_MAX);
    }
    for (int i = 0; i < o->faults.count; i++) {
        const crd_status st =
            crdi_testbench_fault_parse(ctx, x->kind, o->faults.items[i], &out->faults[i]);
        if (st < 0) { return st; }
    }
    out->fault_count = o->faults.count;
    if (o->misread.count > CRDI_TESTBENCH_FAULTS_MAX) {
        return crdi_fail(ctx, CRD_E_RANGE, "%d times --misread, expected %d at most",
                         o->misread.count, CRDI_TESTBENCH_FAULTS_MAX);
    }
    for (int i = 0; i < o->misread.count; i++) {
        const crd_status st =
            crdi_testbench_misread_parse(ctx, x->kind, o->misread.items[i], &out->misread[i]);
        if (st < 0) { return crdi_fail_in(ctx, st, "--misread"); }
    }
    out->misread_count = o->misread.count;
    out->calibrations = &x->calibrations;
    return o->calibration ? crdi_calibrations_load(ctx, o->calibration, &x->calibrations) : CRD_OK;
}

static crd_status open_bench(session* x)
{
    crd_status st = CRD_OK;
    crd_context* ctx = x->cli->ctx;
    crdi_testbench_options opt;
    const char* listen = x->o->listen ? x->o->listen : "udp://127.0.0.1:8080";
    CRD_TRY(crd_dcp_address_parse(ctx, listen, &x->address));
    CRD_TRY(read_options(x, &opt)); // before anything is opened
    CRD_TRY(crdi_dcp_check_plain(ctx, &x->address, x->o->key.count > 0, x->o->plain,
                                 CRDI_KEY_OR_PLAIN));
    CRD_TRY(crd_dcp_net_create(ctx, &x->net));
    if (x->o->key.count > 0) {
        CRD_TRY(crdi_dcp_net_secure_files(ctx, x->o->key.items, x->o->key.count, CRD_DCP_BENCH_ROLE,
                                          NULL, &x->net));
    }
    CRD_TRY(crd_dcp_net_listen(x->net, &x->address));
    opt.address = x->address; // with its port
    CRD_TRY(crdi_testbench_create(ctx, &opt, &x->bench));
    if (x->o->written) {
        CRD_TRY(crdi_write_description(ctx, crdi_testbench_description(x->bench), x->o->written));
    }
    CRD_TRY(open_trace(x));
    const crd_dcp_link link = crd_dcp_net_link(x->net);
    CRD_TRY(crdi_testbench_start(x->bench, &link, NULL));
    crdi_testbench_observe(x->bench, bench_observe, x);
    if (x->o->realtime) { CRD_TRY(crdi_realtime_serve(x->cli, &x->system)); }
fail:
    return st;
}

// ---- serving -----------------------------------------------------------------------------------

static crd_status turn(session* x, double most)
{
    enum { PACKETS_AT_ONCE = 64 };
    crd_dcp_slave* slave = crdi_testbench_slave(x->bench);
    crd_status st = CRD_OK;
    crd_dcp_packet p;
    int n = 0;
    for (; n < PACKETS_AT_ONCE && crd_dcp_net_receive(x->net, &p); n++) {
        const double now = crd_dcp_net_now(x->net);
        crd_dcp_slave_receive(slave, &p.from, &p.at, p.bytes, p.length, fmin(p.time, now));
        CRD_TRY(say_state(x));
    }
    crd_dcp_slave_advance(slave, crd_dcp_net_now(x->net));
    CRD_TRY(say_state(x));
    const crd_dcp_bench_state s = crd_dcp_bench_get_state(crdi_testbench_bench(x->bench));
    CRD_TRY(say_phase(x, &s));
    const double next = crd_dcp_slave_next(slave) - crd_dcp_net_now(x->net);
    if (n < PACKETS_AT_ONCE && next > 0) { crd_dcp_net_wait(x->net, fmin(next, most)); }
fail:
    return st;
}

// The bench comes to rest in its order before the process ends; a second signal ends it at once.
static crd_status take_leave(session* x)
{
    crd_status st = CRD_OK;
    crd_dcp_slave* slave = crdi_testbench_slave(x->bench);
    const int before = crdi_interrupt_count();
    crd_dcp_bench_stop(crdi_testbench_bench(x->bench), crd_dcp_net_now(x->net));
    double until = crd_dcp_net_now(x->net) + PATIENCE;
    while (crd_dcp_net_now(x->net) < until && crdi_interrupt_count() <= before) {
        CRD_TRY(turn(x, 0.01));
        const crd_dcp_state state = crd_dcp_slave_state(slave);
        if (x->phase == CRD_DCP_BENCH_IDLE || x->phase == CRD_DCP_BENCH_SAFE) {
            if (state == CRD_DCP_ALIVE) { break; }
            until = fmin(until, crd_dcp_net_now(x->net) + LEAVE);
        }
        if (x->phase > CRD_DCP_BENCH_IDLE && before_stop(x->phase)) { break; }
    }
fail:
    return st;
}

static crd_status run_bench(crdi_cli* cli, const bench_options* o, crdi_testbench_kind kind,
                            crdi_result* out)
{
    session x = {.cli = cli, .out = out, .o = o, .kind = kind};
    crd_status st = CRD_OK;
    crdi_json_lines(out, true);
    CRD_TRY(crdi_check_description(cli->ctx, "--write-description", o->written));
    (void)crdi_interrupt_catch(
        &(crdi_interrupt_options){.only_count = true}); // waiting is interrupted
    CRD_TRY(open_bench(&x));
    CRD_TRY(bench_say_ready(&x));
    while (!crdi_interrupted() && !(o->once && x.sessions > 0)) {
        CRD_TRY(turn(&x, TURN));
    }
    CRD_TRY(take_leave(&x));
    CRD_TRY(bench_say_summary(&x));
fail:
    if (o->realtime) { crdi_realtime_leave(&x.system); }
    crdi_testbench_destroy(x.bench);
    crd_dcp_net_destroy(x.net);
    const crd_status closed = close_trace(&x);
    return st < 0 ? st : closed;
}

// ---- the commands ------------------------------------------------------------------------------

static crd_status run_em(crdi_cli* cli, const void* options, const crdi_list* arguments,
                         crdi_result* out)
{
    (void)arguments;
    return run_bench(cli, options, CRDI_TESTBENCH_EM, out);
}

static crd_status run_ice(crdi_cli* cli, const void* options, const crdi_list* arguments,
                          crdi_result* out)
{
    (void)arguments;
    return run_bench(cli, options, CRDI_TESTBENCH_ICE, out);
}

static crd_status run_back_to_back(crdi_cli* cli, const void* options, const crdi_list* arguments,
                                   crdi_result* out)
{
    (void)arguments;
    return run_bench(cli, options, CRDI_TESTBENCH_BACK_TO_BACK, out);
}

static crd_status run_traction(crdi_cli* cli, const void* options, const crdi_list* arguments,
                               crdi_result* out)
{
    (void)arguments;
    return run_bench(cli, options, CRDI_TESTBENCH_TRACTION, out);
}

static crd_status run_battery(crdi_cli* cli, const void* options, const crdi_list* arguments,
                              crdi_result* out)
{
    (void)arguments;
    return run_bench(cli, options, CRDI_TESTBENCH_BATTERY, out);
}

static const crdi_option rows[] = {
    OPT_TEXT(bench_options, listen, "listen", "ADDRESS",
             "where masters reach it; port 0 chooses one; udp://127.0.0.1:8080 unless given"),
    OPT_FILE(bench_options, written, "write-description", "dcpx|dcp",
             "write the slave description, with address, limits and signals, for the master"),
    OPT_LIST(bench_options, pairs, "pair", "INPUT:OUTPUT",
             "a wave port at this input, such as speed_ref:torque, for a bond with 'pair: wave' "
             "(docs/explanation/pairs.md); it acts in front of the limits"),
    OPT_INT(bench_options, seed, "seed", "NUMBER",
            "of the noise of measured values; 1 unless given"),
    OPT_FLAG(bench_options, ideal, "ideal",
             "measured values are the true ones: no noise, no lag, no dead time"),
    OPT_LIST(bench_options, faults, "fault", "KIND@TIME",
             "what breaks after this time in the run: overtemperature, sensor-loss:OUTPUT, "
             "stuck-torque, coolant-loss, speed-runaway or emergency-stop, as in "
             "overtemperature@30s; once, and mended when the bench has been at rest for a second"),
    OPT_FILE(bench_options, calibration, "calibration", "json",
             "gain and offset of its sensors, as the desk has stored them (cardan bench desk)"),
    OPT_LIST(bench_options, misread, "misread", "OUTPUT=GAIN+OFFSET",
             "a sensor that reads wrong, to try a calibration: torque=1.02+0.5"),
    OPT_NUMBER(bench_options, speed_up, "speed-up", "FACTOR", CRDI_POSITIVE,
               "temperatures change faster while media are conditioned or cool down, 1 to 1000"),
    OPT_NUMBER(bench_options, soc, "soc", "CHARGE", CRDI_NOT_NEGATIVE,
               "of the battery bench: its charge at the start, 0 to 1; 0.5 unless given"),
    OPT_TIME(bench_options, start_up, "start-up", CRDI_NOT_NEGATIVE,
             "its supply is on after this time; a master waits in PREPARING until then"),
    OPT_TIME(bench_options, watchdog, "watchdog", CRDI_NOT_NEGATIVE,
             "without data from the master for this time it stops by itself, from STC_run on; "
             "500 ms unless given, 0: never"),
    OPT_TIME(bench_options, heartbeat, "heartbeat", CRDI_NOT_NEGATIVE,
             "without a sign of the master (INF_state) for this time it stops by itself outside "
             "of runs, where it may be turning to condition its media; 3 s unless given, 0: never"),
    OPT_LIST(bench_options, key, "key", "FILE",
             "encrypt and authenticate with this key (cardan key pair), one for each partner"),
    OPT_FLAG(bench_options, plain, "plain", CRDI_PLAIN_HELP),
    OPT_FILE(bench_options, trace, "trace", "csv",
             "what really happens as CSV: phase, age of the last valid data, set values and true "
             "values, a row each 10 ms and at each change of the phase; whole whenever the "
             "process ends"),
    CRDI_REALTIME_OPTION(bench_options, realtime),
    OPT_FLAG(bench_options, once, "once", "end after the first session"),
    CRDI_JSON_OPTION("a line of JSON when it listens, for each phase and state, and when it ends"),
    CRDI_COMMON_OPTIONS,
};

#define COMMON .arguments = "", OPTIONS(rows, bench_options)
#define BEHAVES                                                                                    \
    "It offers itself as a DCP slave (HRT, SRT and NRT, 1 or 10 ms; in HRT a late step is a "      \
    "fault) "                                                                                      \
    "with the bench extension: limits, checklist, conditioning, watchdog, and a stop in the "      \
    "order torque, speed, voltage. Its own "                                                       \
    "controller runs at 10 kHz; measured values have noise, low-pass, dead time and "              \
    "quantisation. It says every phase; SIGINT and SIGTERM stop it in order, a second one at "     \
    "once."

const crdi_command crdi_command_bench_em = {
    .name = "bench em",
    .summary = "emulate the test bench of an electric machine",
    .description =
        "The bench of Rautenberg 2023: battery simulator, load machine in speed control, a machine "
        "of 85 kW with derating, oil conditioning with the times of its table 3, all signals of "
        "its tables 5 and 6. " BEHAVES,
    .examples = {{"cardan bench em --write-description em.dcpx", "at udp://127.0.0.1:8080"},
                 {"cardan bench em --speed-up 60 --fault overtemperature@30s",
                  "conditioning in seconds, and a machine that gets hot"}},
    .run = run_em,
    COMMON,
};

const crdi_command crdi_command_bench_ice = {
    .name = "bench ice",
    .summary = "emulate the test bench of an engine",
    .description =
        "The bench of Rautenberg 2023: an engine of 3 l, 400 N m and 225 kW, driven by speed and "
        "pedal (half of it, as there), throttle and torque dynamics, coolant and oil "
        "conditioning. " BEHAVES,
    .examples = {{"cardan bench ice --listen udp://127.0.0.1:9082 --write-description ice.dcpx",
                  "at another port, for the bench of a hybrid car"}},
    .run = run_ice,
    COMMON,
};

const crdi_command crdi_command_bench_back_to_back = {
    .name = "bench backtoback",
    .summary = "emulate the test bench of two small motors",
    .description =
        "The bench of Rodriguez 2021, chapter 6: two motors of 180 W on one shaft and one DC link, "
        "one under test, one as its load, with the parameters of its table 6.1. " BEHAVES,
    .examples = {{"cardan bench backtoback --seed 7 --fault sensor-loss:speed@2s",
                  "a sensor that fails"}},
    .run = run_back_to_back,
    COMMON,
};

const crdi_command crdi_command_bench_traction = {
    .name = "bench traction",
    .summary = "emulate the test bench of two traction motors",
    .description =
        "The large bench of Rodriguez 2021, chapter 6: two motors of 200 kW, 400 N m and 18,000 "
        "1/min on one shaft and one DC link of 270 to 400 V, which a converter of 54 kW feeds and "
        "a braking resistor of 3 kW relieves; torque sensor, wattmeter, and cooling by a "
        "temperature controller, a tank of 2000 l and an outdoor cooler. " BEHAVES,
    .examples = {{"cardan bench traction --speed-up 60 --write-description traction.dcpx",
                  "warm in seconds"}},
    .run = run_traction,
    COMMON,
};

const crdi_command crdi_command_bench_battery = {
    .name = "bench battery",
    .summary = "emulate the test bench of a traction battery",
    .description =
        "The third bench of Rautenberg 2023: a battery simulator that closes the DC link of the "
        "machine's bench. It takes the current of the link and gives its voltage; contactors with "
        "pre-charge, charge, temperature, and a battery management whose limits of the current "
        "move with both. In a stop contactors open at zero current. " BEHAVES,
    .examples = {{"cardan bench battery --soc 0.2 --write-description battery.dcpx",
                  "a battery that is nearly empty"}},
    .run = run_battery,
    COMMON,
};
