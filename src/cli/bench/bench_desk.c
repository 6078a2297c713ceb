// cardan bench desk: one bench operated by hand from the live page, without a system.
//
// The desk is a system of two units that is made here: the bench, and a driver whose levers are the
// bench's inputs, within the limits of both sides. Everything else is what every run has: master,
// guard, envelope, deadman. A session begins when the page says so, and another one when it says so
// again behind the end of the first.
#include "cardan/unit.h"
#include "cli/dcp/dcp_serve.h"
#include "cli/run/run.h"
#include "shared/base_interrupt.h"
#include "shared/board.h"
#include "shared/dcp_bench.h"
#include "shared/live.h"
#include "shared/unit.h"
#include "shared/web.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double LONGEST = 24 * 3600; // s of a session

typedef struct desk_options {
    crdi_common common;
    const char *address, *plan, *initial, *output, *session, *key, *calibration;
    double silence, step;
    bool plain, force;
    crdi_watch_options live;
    crdi_guarding guarding;
} desk_options;

typedef struct desk {
    crdi_cli* cli;
    crdi_result* out;
    desk_options* o; // after the first session with the page's place
    const char* description;
    int sessions;
    char page[160], token[160]; // where the first session was served: "127.0.0.1:8421"
} desk;

// ---- the system --------------------------------------------------------------------------------

// What an input of the bench is as a lever. `b`: what is known about its limits; `initial`: media
// begin as they were conditioned.
static crd_lever_spec lever_of(const crd_variable* v, int32_t index, const crdi_board_state* b,
                               const crdi_dcp_limits* initial)
{
    const bool whole = crd_type_kind((crd_type)v->type) == CRD_INTEGER;
    crd_lever_spec l = {.name = v->name,
                        .unit = v->unit,
                        .min = v->min,
                        .max = v->max,
                        .rate = INFINITY,
                        .rest = v->start ? strtod(v->start, NULL) : 0,
                        .whole = whole,
                        .gamepad = "",
                        .place = {"", 0}};
    for (int i = 0; i < b->quantity_count; i++) {
        const crdi_board_quantity* q = &b->quantities[i];
        if (q->input != index) { continue; }
        l.min = fmax(l.min, q->input_min);
        l.max = fmin(l.max, q->input_max);
        if (!whole) { l.rate = q->input_rate; }
        const crdi_dcp_limit* medium = crdi_dcp_limits_find(initial, q->name);
        if (medium && strcmp(medium->unit, v->unit) == 0) { l.rest = medium->min; }
    }
    if (!isfinite(l.rest)) { l.rest = 0; }
    l.rest = fmin(fmax(l.rest, l.min), l.max);
    return l;
}

// Those of the extension are the master's own.
static bool is_lever(const crd_variable* v)
{
    return v->causality == CRD_INPUT && v->size == 1 && v->alias_of < 0 &&
           crd_type_kind((crd_type)v->type) != CRD_BYTES && v->type != CRD_CLOCK &&
           strncmp(v->name, "bench.", 6) != 0;
}

static crd_status add_driver(desk* d, crd_system* s, const crd_unit* bench)
{
    crd_status st = CRD_OK;
    crdi_board_state b;
    crdi_board_read(crdi_unit_board(bench), &b);
    crdi_dcp_limits initial = {0};
    double tolerance = 0;
    const char* text = d->o->initial ? d->o->initial : "";
    CRD_TRY(crdi_dcp_initial_parse(s->ctx, text, strlen(text), &initial, &tolerance));
    crd_unit_spec driver = crd_unit_spec_defaults();
    driver.name = "desk";
    driver.source = CRD_UNIT_DRIVER;
    driver.driver.silence = isnan(d->o->silence) ? 2 : d->o->silence;
    driver.driver.stop = true;
    crd_lever_spec* levers = crdi_arena_new(&s->arena, CRD_LEVERS_MAX, sizeof *levers);
    if (!levers) { return CRD_E_MEMORY; }
    for (int32_t i = 0; i < bench->info.variable_count; i++) {
        const crd_variable* v = &bench->info.variables[i];
        if (!is_lever(v)) { continue; }
        if (driver.driver.lever_count == CRD_LEVERS_MAX) {
            return crdi_fail(s->ctx, CRD_E_UNSUPPORTED, "%s has more than %d inputs",
                             d->description, CRD_LEVERS_MAX);
        }
        crd_lever_spec l = lever_of(v, i, &b, &initial);
        l.name = crdi_arena_text(&s->arena, v->name, strlen(v->name));
        l.unit = crdi_arena_text(&s->arena, v->unit, strlen(v->unit));
        if (!l.name || !l.unit) { return CRD_E_MEMORY; }
        levers[driver.driver.lever_count++] = l;
    }
    driver.driver.levers = levers;
    CRD_TRY(crd_system_add_unit(s, &driver, NULL));
    for (int i = 0; i < driver.driver.lever_count; i++) {
        crd_connection_spec c = crd_connection_spec_defaults();
        c.from_unit = 1;
        c.to_unit = 0;
        c.from = c.to = levers[i].name;
        c.predict = CRD_PREDICTION_HOLD;
        CRD_TRY(crd_system_add_connection(s, &c));
    }
fail:
    return st;
}

static crd_unit_spec bench_of(const desk* d)
{
    const desk_options* o = d->o;
    crd_unit_spec u = crd_unit_spec_defaults();
    u.name = "bench";
    u.source = CRD_UNIT_DCP;
    u.path = d->description;
    u.address = o->address;
    u.pinned = true;
    u.session.mode = CRD_DCP_MODE_SRT;
    u.session.patience = 3600; // conditioning takes what it takes; the operator sees it and stops
    u.session.key = o->key;
    u.session.plain = o->plain;
    u.session.force = o->force;
    u.bench.used = true;
    u.bench.limits = u.bench.plan = o->plan; // a desk allows what it asks for
    u.bench.initial = o->initial;
    u.place = (crd_place){d->description, 0};
    return u;
}

// "run.mf4", then "run-2.mf4": sessions do not overwrite each other.
static const char* numbered(crd_system* s, const char* path, int number)
{
    if (!path || number < 2) { return path; }
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    const size_t stem = dot && (!slash || dot > slash) ? (size_t)(dot - path) : strlen(path);
    return crdi_arena_format(&s->arena, "%.*s-%d%s", (int)stem, path, number, path + stem);
}

static crd_status make_system(desk* d, crd_system** out)
{
    crd_status st = CRD_OK;
    crd_system* s = NULL;
    crd_unit* bench = NULL;
    const crd_unit_spec spec = bench_of(d);
    CRD_TRY(crd_system_create(d->cli->ctx, &s));
    CRD_TRY(crd_unit_create(d->cli->ctx, &spec, &bench)); // nobody is contacted by this
    CRD_TRY(crd_system_add_unit(s, &spec, NULL));
    CRD_TRY(add_driver(d, s, bench));
    s->title = crdi_arena_format(&s->arena, "Desk: %s", d->description);
    s->run.start = 0;
    s->run.stop = LONGEST;
    s->run.step = isnan(d->o->step) ? 0.01 : d->o->step;
    s->results.path = numbered(s, d->o->output, d->sessions);
    s->results.session = numbered(s, d->o->session, d->sessions);
    CRD_TRY(crd_system_set_pace(s, "realtime", (crd_place){"", 0}));
    *out = s;
    s = NULL;
fail:
    crd_unit_destroy(bench);
    crd_system_destroy(s);
    return st;
}

// ---- a session ---------------------------------------------------------------------------------

static void tell_session(desk* d, crd_status st, const crd_master_report* r)
{
    const char* how = st < 0                          ? crd_error_text(d->cli->ctx)
                      : r->end == CRD_END_UNIT        ? "stopped, nobody had the desk"
                      : r->end == CRD_END_INTERRUPTED ? "stopped"
                                                      : "its longest time is over";
    crdi_put(d->out, TEXT("event", "session"), INT("session", d->sessions), BOOL("ok", st >= 0),
             REAL("time", r->time), TEXT("how", how));
    crdi_say(d->out, "session %d, %.1f s: %s\n", d->sessions, r->time, how);
    (void)crdi_result_print(d->out->root);
}

// The next session is served at the same address, so that the open page finds it.
static void keep_place(desk* d, const char* url)
{
    const char* wished = d->o->live.address ? d->o->live.address : "127.0.0.1";
    const char* bracket = *wished == '[' ? strchr(wished, ']') : NULL;
    const size_t host = bracket ? (size_t)(bracket - wished) + 1 : strcspn(wished, ":");
    const char* token = strstr(url, "/?token=");
    const char* port = token;
    while (port && port > url && port[-1] != ':') {
        port--;
    }
    if (!token || d->sessions > 1) { return; }
    snprintf(d->page, sizeof d->page, "%.*s:%.*s", (int)host, wished, (int)(token - port), port);
    snprintf(d->token, sizeof d->token, "%s", token + strlen("/?token="));
    d->o->live.address = d->page;
    d->o->live.token = d->token;
}

// `*again`: the page wishes another one.
static crd_status run_master(desk* d, crd_master* m, const volatile bool* stop, bool* again)
{
    crdi_watch watch;
    crd_status st = crdi_watch_start(d->cli, m, &d->o->live, &watch);
    if (st < 0) { return st; }
    *again = false;
    keep_place(d, crdi_web_url(watch.web));
    if (crdi_live_wait_for_page(watch.live, stop)) {
        st = crd_master_run(m);
        tell_session(d, st, crd_master_get_report(m));
        *again = crdi_live_wait_for_page(watch.live, stop);
    }
    crdi_watch_stop(&watch, *again ? 0 : 1);
    return st;
}

static crd_status run_session(desk* d, bool* again)
{
    crd_status st = CRD_OK;
    crd_system* s = NULL;
    crd_master* m = NULL;
    crdi_ward* ward = NULL;
    crd_master_options opt = crd_master_defaults();
    opt.stop = crdi_interrupt_catch(&(crdi_interrupt_options){.restart = true});
    opt.guard_crashes = true;
    *again = false;
    CRD_TRY(make_system(d, &s));
    CRD_TRY(crd_master_create(d->cli->ctx, s, &opt, &m));
    crdi_guarding guarding = d->o->guarding;
    CRD_TRY(crdi_guarding_start(d->cli, m, s, &guarding, &ward));
    st = run_master(d, m, opt.stop, again);
fail:
    if (ward) { crdi_ward_let_go(ward); }
    crd_master_destroy(m);
    crdi_ward_destroy(ward);
    crd_system_destroy(s);
    return st;
}

static crd_status run_desk(crdi_cli* cli, const void* options, const crdi_list* arguments,
                           crdi_result* out)
{
    desk_options o = *(const desk_options*)options;
    desk d = {.cli = cli, .out = out, .o = &o, .description = arguments->items[0]};
    crd_status st = CRD_OK;
    crdi_json_lines(out, true);
    o.live.ui = o.live.wait = o.live.ask = true;
    o.live.calibration = o.calibration;
    CRD_TRY(crdi_live_check(cli->ctx, &o.live));
    if (!isnan(o.silence) && o.silence > 10) {
        return crdi_fail(cli->ctx, CRD_E_RANGE,
                         "--silence %g s, expected 10 s at most: so long nobody operates",
                         o.silence);
    }
    for (bool again = true; again;) {
        d.sessions++;
        st = run_session(&d, &again);
    }
fail:
    return st;
}

static const crdi_option rows[] = {
    OPT_TEXT(desk_options, address, "address", "ADDRESS",
             "of the bench: udp://HOST:PORT or tcp://HOST:PORT; what its description says unless "
             "given"),
    OPT_TEXT(desk_options, plan, "case", "LIMITS",
             "what will be asked for, which bench and desk agree on: 'speed 0..2000 1/min; torque "
             "-60..60 N.m'; the bench's own limits unless given"),
    OPT_TEXT(desk_options, initial, "initial", "TEMPERATURES",
             "that media have at the start: 'oil 80 degC'"),
    OPT_TIME(desk_options, silence, "silence", CRDI_POSITIVE,
             "without a sign of the page that has the desk for this time the bench is stopped in "
             "its order; 2 s unless given, 10 s at most"),
    OPT_TIME(desk_options, step, "step", CRDI_POSITIVE,
             "between two set values; 10 ms unless given"),
    OPT_FILE(desk_options, output, "output", "csv|mf4|mat",
             "record each session; the second one goes to FILE-2", .short_name = 'o'),
    OPT_FILE(desk_options, session, "session-record", "csv",
             "who was in which state, for 'cardan bench session'"),
    OPT_FILE(desk_options, calibration, "calibration", "json",
             "where calibrations of sensors are stored, for the bench's own --calibration or the "
             "calibration: of its file"),
    OPT_FILE(desk_options, key, "key", "key", "encrypt and authenticate with this key"),
    OPT_FLAG(desk_options, plain, "plain", CRDI_PLAIN_HELP),
    OPT_FLAG(desk_options, force, "force", "take the bench over although it is in a run"),
    CRDI_PAGE_OPTIONS(desk_options, live),
    CRDI_GUARD_OPTIONS(desk_options, guarding),
    CRDI_JSON_OPTION("a line of JSON for each session"),
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_bench_desk = {
    .name = "bench desk",
    .arguments = "DESCRIPTION",
    .summary = "operate one test bench by hand from a page",
    .description =
        "Serves a page from which one bench is prepared, started, operated with set values and "
        "ramps, and stopped, without a system: any DCP slave with the bench extension, by its "
        "description (.dcpx). Nothing moves before Prepare is pressed there, and no set value "
        "before Start. Set values keep to the limits that were agreed; who closes the page, or is "
        "cut off, stops the bench in its order. After a stop or a fault the page can prepare it "
        "again. Ctrl-C stops the bench and ends the command.",
    .examples = {{"cardan bench desk em.dcpx --case 'speed 0..2000 1/min; torque -60..60 N.m'",
                  "the address of the page is printed on standard error"},
                 {"cardan bench desk em.dcpx -o try.mf4 --session-record try.csv",
                  "with records of what was done"}},
    OPTIONS(rows, desk_options),
    .min_arguments = 1,
    .max_arguments = 1,
    .extensions = "dcpx|dcp",
    .run = run_desk,
};
