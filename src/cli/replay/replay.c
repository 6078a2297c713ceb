// cardan replay: what was exchanged in a run goes its way once more, with one side played from the
// recording, or with all units running again and the recorded delays.
#include "cli/replay/replay.h"
#include "cardan/coupling.h"
#include "cardan/system.h"
#include "shared/archive.h"
#include "shared/base_interrupt.h"

#include <math.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

typedef struct replay_options {
    crdi_common common;
    crdi_list play, algorithm;
    const char *pace, *output, *exchange;
    double step;
    bool both;
} replay_options;

typedef struct command {
    crdi_replay replay;
    const replay_options* options;
    const char* scratch; // folder, NULL: none yet
} command;

// ---- the system --------------------------------------------------------------------------------

static crd_status set_recorded(crd_system* s, const crdi_json* unit, const char* path)
{
    const int index = crd_system_find(s, crdi_json_get_text(unit, "name"));
    const crdi_json* list = crdi_json_get_list(unit, "parameters");
    for (const crdi_json* n = crdi_json_first(list); n && index >= 0; n = n->next) {
        const char *name = crdi_json_get_text(n, "name"), *value = crdi_json_get_text(n, "value");
        const crdi_json* given = crdi_json_member(n, "value");
        if (!*name || !given || given->kind != CRDI_JSON_TEXT) { continue; }
        const char* kept = crdi_arena_text(&s->arena, name, strlen(name));
        const char* text = crdi_arena_text(&s->arena, value, strlen(value));
        if (!kept || !text) { return CRD_E_MEMORY; }
        const crd_status st = crd_system_set(s, index, kept, text, (crd_place){path, 0});
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

static void predict_as_recorded(crd_system* s, const crdi_json* n, int index)
{
    const char* name = crdi_json_get_text(n, "predict");
    for (int p = 0; p < CRD_PREDICTION_COUNT; p++) {
        if (strcmp(crd_prediction_name((crd_prediction)p), name) == 0) {
            s->connections[index].predict = (crd_prediction)p;
        }
    }
}

// What the command line had added to the description: settings, scheme, predictions, step.
static crd_status apply_recorded(crd_system* s, const crdi_exchange* x)
{
    crd_status st = CRD_OK;
    crdi_json* root = NULL;
    s->run.step = x->step;
    if (!x->run) { return CRD_OK; }
    const char* path = crdi_arena_text(&s->arena, x->path, strlen(x->path));
    if (!path) { return CRD_E_MEMORY; }
    CRD_TRY(crdi_json_parse_most(&s->arena, x->run, x->run_length, CRDI_JSON_RUN_BYTES,
                                 (crdi_json_source){.file = path, .first_line = 0}, &root));
    const crdi_json* units = crdi_json_get_list(root, "units");
    for (const crdi_json* n = crdi_json_first(units); n; n = n->next) {
        CRD_TRY(set_recorded(s, n, path));
    }
    const crdi_json* connections = crdi_json_get_list(root, "connections");
    int i = 0;
    for (const crdi_json* n = crdi_json_first(connections);
         n && connections->count == s->connection_count; n = n->next) {
        predict_as_recorded(s, n, i++);
    }
    const crdi_json* run = crdi_json_get_object(root, "run");
    const crdi_json* iterate = crdi_json_get_object(run, "iterate");
    const double tolerance = crdi_json_get_number(iterate, "tolerance");
    s->run.iterate.on = iterate != NULL;
    if (!isnan(tolerance)) { s->run.iterate.tolerance = tolerance; }
    const char* scheme = crdi_json_get_text(run, "scheme");
    if (strcmp(scheme, "jacobi") == 0 || strcmp(scheme, "gauss-seidel") == 0) {
        CRD_TRY(crd_system_set_scheme(s, scheme, (crd_place){path, 0}));
    }
fail:
    return st;
}

static crd_status load_system(command* c, crd_system** out)
{
    crd_context* ctx = c->replay.cli->ctx;
    const crdi_exchange* x = c->replay.recorded;
    if (*c->replay.system) { return crdi_load_system(ctx, c->replay.system, out); }
    if (!*x->file) {
        return crdi_fail(ctx, CRD_E_NOT_FOUND,
                         "%s does not say where the description of its system was; give it as "
                         "second argument",
                         x->path);
    }
    crd_status st = x->description ? crd_system_load_on(ctx, x->description, x->description_length,
                                                        x->file, crd_ssp_read, out)
                                   : crdi_load_system(ctx, x->file, out);
    if (st == CRD_OK) {
        crdi_apply_isolation(*out);
        st = apply_recorded(*out, x);
    }
    return st < 0 ? crdi_fail_in(ctx, st, "%s, the system that it was recorded from", x->path)
                  : CRD_OK;
}

// ---- other algorithms --------------------------------------------------------------------------

// A latency that is known stays so.
static crd_status inherit_latency(crd_context* ctx, const crd_coupling_spec* old, crd_element* e)
{
    crd_element* before = NULL;
    if (!isnan(e->latency) || e->latency_steps >= 0) { return CRD_OK; }
    const crd_status st =
        crd_element_parse(ctx, old->element, strlen(old->element),
                          old->place.file ? old->place.file : "", old->place.line, &before);
    if (st < 0) { return st; }
    e->latency = before->latency;
    e->latency_steps = before->latency_steps;
    crd_element_destroy(before);
    return CRD_OK;
}

static crd_status change_algorithm(crd_system* s, int connection, const char* text)
{
    crd_status st = CRD_OK;
    crd_element* e = NULL;
    crd_text json;
    crd_connection_spec* c = &s->connections[connection];
    crd_text_init(&json, s->ctx);
    crd_coupling_spec* copy = crdi_arena_new(&s->arena, 1, sizeof *copy);
    CRD_TRY(copy ? CRD_OK : CRD_E_MEMORY);
    CRD_TRY(crdi_load_element(s->ctx, text, &e));
    CRD_TRY(inherit_latency(s->ctx, c->coupling, e));
    CRD_TRY(crd_element_write(e, &json));
    *copy = *c->coupling;
    copy->place = (crd_place){.file = "--algorithm"};
    copy->element = crdi_arena_text(&s->arena, json.data, json.length);
    CRD_TRY(copy->element ? CRD_OK : CRD_E_MEMORY);
    c->coupling = copy;
fail:
    crd_text_clear(&json);
    crd_element_destroy(e);
    return st;
}

// Which connection "unit.variable" of --algorithm leads to.
static crd_status find_input(crd_system* s, const char* option, size_t length, int* out)
{
    char name[512];
    int unit = 0;
    const char* variable = NULL;
    snprintf(name, sizeof name, "%.*s", (int)length, option);
    const crd_status st =
        crd_system_split(s, name, (crd_place){.file = "--algorithm"}, &unit, &variable);
    if (st < 0) { return st; }
    for (int i = 0; i < s->connection_count; i++) {
        const crd_connection_spec* c = &s->connections[i];
        if (c->to_unit != unit || strcmp(c->to, variable) != 0) { continue; }
        *out = i;
        if (c->coupling) { return CRD_OK; }
        return crdi_fail(s->ctx, CRD_E_RANGE,
                         "--algorithm %s: the connection to %s has no coupling in %s, so no "
                         "algorithm is at work there",
                         option, name, s->file);
    }
    return crdi_fail(s->ctx, CRD_E_NOT_FOUND, "--algorithm %s: there is no connection to %s",
                     option, name);
}

static crd_status apply_algorithms(crd_system* s, const crdi_list* list)
{
    for (int pass = 0; pass < 2; pass++) { // those for one input win
        for (int i = 0; i < list->count; i++) {
            const char *text = list->items[i], *equals = strchr(text, '=');
            const bool one = equals && text[strspn(text, " ")] != '{';
            if (one != (pass == 1)) { continue; }
            int found = 0, connection = 0;
            crd_status st =
                one ? find_input(s, text, (size_t)(equals - text), &connection) : CRD_OK;
            if (st == CRD_OK && one) { st = change_algorithm(s, connection, equals + 1); }
            for (int k = 0; st == CRD_OK && !one && k < s->connection_count; k++) {
                if (!s->connections[k].coupling) { continue; }
                found++;
                st = change_algorithm(s, k, text);
            }
            if (st < 0) { return st; }
            if (!one && !found) {
                return crdi_fail(s->ctx, CRD_E_RANGE,
                                 "--algorithm %s: no connection of %s has a coupling", text,
                                 s->file);
            }
        }
    }
    return CRD_OK;
}

// ---- one replay --------------------------------------------------------------------------------

typedef struct names {
    const crd_system* s;
    int i;
} names;

static const char* next_unit(void* user)
{
    names* n = user;
    return n->i < n->s->unit_count ? n->s->units[n->i++].name : NULL;
}

static crd_status find_played(crd_system* s, const crdi_list* list, bool* played)
{
    for (int i = 0; i < list->count; i++) {
        const int unit = crd_system_find(s, list->items[i]);
        if (unit < 0) {
            const char* near = crdi_nearest(list->items[i], next_unit, &(names){.s = s});
            return crdi_fail(s->ctx, CRD_E_NOT_FOUND, "--play %s: %s has no such unit%s%s%s",
                             list->items[i], s->file, near ? ", did you mean " : "",
                             near ? near : "", near ? "?" : "");
        }
        played[unit] = true;
    }
    return CRD_OK;
}

// "run.mf4" -> "run-closed.mf4": the second of two.
static const char* second_name(crd_arena* a, const char* path)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    const size_t stem = dot && (!slash || dot > slash) ? (size_t)(dot - path) : strlen(path);
    return crdi_arena_format(a, "%.*s-closed%s", (int)stem, path, path + stem);
}

static crd_status choose_file(command* c, crd_system* s, const char* wanted, const char** out)
{
    *out = NULL;
    if (!wanted || strcmp(wanted, "none") == 0) { return CRD_OK; }
    const bool second = c->replay.result_count == 1;
    *out = second ? second_name(&c->replay.arena, wanted)
                  : crdi_arena_text(&c->replay.arena, wanted, strlen(wanted));
    if (!*out) { return CRD_E_MEMORY; }
    if (!crdi_same_file(*out, c->replay.recorded->path)) { return CRD_OK; }
    return crdi_fail(s->ctx, CRD_E_RANGE, "%s: the replay would overwrite its recording", *out);
}

static crd_status choose_files(command* c, crd_system* s)
{
    crd_status st = CRD_OK;
    s->results.session = NULL; // benches are played here
    CRD_TRY(choose_file(c, s, c->options->output, &s->results.path));
    CRD_TRY(choose_file(c, s, c->options->exchange, &s->results.exchange));
    if (s->results.exchange && s->results.path &&
        strcmp(s->results.exchange, s->results.path) == 0) {
        return crdi_fail(s->ctx, CRD_E_RANGE,
                         "%s: --output and --exchange are the same file, expected two",
                         s->results.path);
    }
    if (s->results.exchange) { return CRD_OK; }
    if (!c->scratch) { CRD_TRY(crdi_scratch_make(&c->replay.arena, s->ctx, NULL, &c->scratch)); }
    s->results.exchange =
        crdi_arena_format(&c->replay.arena, "%s/replay%d.mf4", c->scratch, c->replay.result_count);
    return s->results.exchange ? CRD_OK : CRD_E_MEMORY;
fail:
    return st;
}

static crd_status copy_report(command* c, crd_master* m, crdi_replay_result* x)
{
    crd_arena* a = &c->replay.arena;
    const crd_master_report* r = crd_master_get_report(m);
    int count = 0;
    for (int i = 0; i < r->coupling_count; i++) {
        count += r->couplings[i].tap_count;
    }
    x->time = r->time;
    x->wall_time = r->wall_time;
    x->results = r->results[0] ? crdi_arena_text(a, r->results, strlen(r->results)) : "";
    x->taps = crdi_arena_new(a, (size_t)count, sizeof *x->taps);
    if (!x->taps || !x->results) { return CRD_E_MEMORY; }
    for (int i = 0; i < r->coupling_count; i++) {
        const crd_coupling_report* k = &r->couplings[i];
        for (int t = 0; t < k->tap_count; t++) {
            const crd_tap_report* p = &k->taps[t];
            crdi_replay_tap tap = {.from = crdi_arena_text(a, k->from, strlen(k->from)),
                                   .to = crdi_arena_text(a, k->to, strlen(k->to)),
                                   .label = crdi_arena_text(a, p->label, strlen(p->label)),
                                   .in_use = t == 0,
                                   .C = p->metrics.C,
                                   .rms = p->metrics.rms,
                                   .worst = p->metrics.worst,
                                   .scored = p->scored,
                                   .sent = k->sent,
                                   .lost = k->lost,
                                   .repeated = k->repeated};
            if (!tap.from || !tap.to || !tap.label) { return CRD_E_MEMORY; }
            x->taps[x->tap_count++] = tap;
        }
    }
    return CRD_OK;
}

static crd_status run_system(command* c, const crd_system* s, const crdi_replay_plan* plan,
                             crdi_replay_result* x)
{
    crdi_cli* cli = c->replay.cli;
    crd_master_options opt = crd_master_defaults();
    opt.stop = crdi_interrupt_catch(&(crdi_interrupt_options){.restart = true});
    opt.guard_crashes = true;
    opt.last_words = crdi_last_words;
    opt.last_words_user = cli;
    opt.scripts = plan->scripts;
    opt.script_count = plan->script_count;
    crd_master* m = NULL;
    crd_status st = crd_master_create(cli->ctx, s, &opt, &m);
    if (st < 0) { return st; }
    const crd_master_report* r = crd_master_get_report(m);
    const double tick = c->replay.recorded->tick;
    if (fabs(r->step - tick) > 1e-9 * tick) {
        st = crdi_fail(cli->ctx, CRD_E_RANGE,
                       "%s was recorded on a grid of %g s, but %s runs on one of %g s",
                       c->replay.recorded->path, tick, s->file, r->step);
        goto fail;
    }
    st = crd_master_run(m);
    r = crd_master_get_report(m);
    if (st == CRD_OK && r->end == CRD_END_GUARD) { // a part of a run is not compared as the whole
        st = crdi_fail(cli->ctx, CRD_E_LIMIT, "the replay was stopped: %s", r->guard.text);
    }
    if (st == CRD_OK && crdi_interrupted()) {
        st = crdi_fail(cli->ctx, CRD_E_STATE, "interrupted at t = %.10g s", crd_master_time(m));
    }
    if (st == CRD_OK) { st = copy_report(c, m, x); }
fail:
    crd_master_destroy(m);
    return st;
}

// Which inputs count: those of units that are played, in a closed loop all. `s` still has all
// units.
static crd_status choose_inputs(command* c, const crd_system* s, const bool* played,
                                crdi_replay_result* x)
{
    crd_arena* a = &c->replay.arena;
    const crdi_exchange* rec = c->replay.recorded;
    const size_t n = (size_t)rec->link_count;
    x->deviations = crdi_arena_new(a, n, sizeof *x->deviations);
    x->asked = crdi_arena_new(a, n, sizeof *x->asked);
    x->unit_of = crdi_arena_new(a, n, sizeof *x->unit_of);
    if (!x->deviations || !x->asked || !x->unit_of) { return CRD_E_MEMORY; }
    for (size_t i = 0; i < n; i++) {
        int unit = 0;
        const char* variable = NULL;
        x->unit_of[i] = "";
        if (crd_system_split(s, rec->links[i].to, (crd_place){.file = ""}, &unit, &variable) < 0) {
            continue;
        }
        const char* name = s->units[unit].name;
        x->asked[i] = !x->open || played[unit];
        x->unit_of[i] = crdi_arena_text(a, name, strlen(name));
        if (!x->unit_of[i]) { return CRD_E_MEMORY; }
    }
    return CRD_OK;
}

static crd_status compare_exchanges(command* c, const char* exchange, crdi_replay_result* x)
{
    crdi_exchange* again = NULL;
    const crd_status st = crdi_exchange_load(c->replay.cli->ctx, exchange, &again);
    if (st < 0) { return st; }
    crdi_replay_compare(c->replay.recorded, again, x->deviations);
    crdi_exchange_destroy(again);
    return crdi_replay_judge(&c->replay, x);
}

static crd_status copy_notes(crd_arena* a, const crdi_replay_plan* plan, crdi_replay_result* x)
{
    const char** notes = crdi_arena_new(a, (size_t)plan->note_count, sizeof *notes);
    if (!notes) { return CRD_E_MEMORY; }
    for (int i = 0; i < plan->note_count; i++) {
        notes[i] = crdi_arena_text(a, plan->notes[i], strlen(plan->notes[i]));
        if (!notes[i]) { return CRD_E_MEMORY; }
    }
    x->notes = notes;
    x->note_count = plan->note_count;
    return CRD_OK;
}

static crd_status replay_once(command* c, bool open)
{
    crd_status st = CRD_OK;
    const replay_options* o = c->options;
    crd_system* s = NULL;
    crdi_replay_plan plan = {0};
    crdi_replay_result* x = &c->replay.results[c->replay.result_count];
    *x = (crdi_replay_result){.open = open, .exchange = ""};
    CRD_TRY(load_system(c, &s));
    if (!isnan(o->step)) { s->run.step = o->step; }
    // What has diverged once does so again: to the end, as it was.
    if (s->run.guard.action != CRD_GUARD_NONE) { s->run.guard.action = CRD_GUARD_WARN; }
    CRD_TRY(apply_algorithms(s, &o->algorithm));
    CRD_TRY(crd_system_set_pace(s, o->pace ? o->pace : "free", (crd_place){.file = "--pace"}));
    CRD_TRY(choose_files(c, s));
    bool* played = crdi_arena_new(&s->arena, (size_t)s->unit_count, sizeof *played);
    CRD_TRY(played ? CRD_OK : CRD_E_MEMORY);
    if (open) { CRD_TRY(find_played(s, &o->play, played)); }
    CRD_TRY(choose_inputs(c, s, played, x));
    CRD_TRY(crdi_replay_prepare(s, c->replay.recorded, open ? played : NULL, &plan));
    CRD_TRY(copy_notes(&c->replay.arena, &plan, x));
    CRD_TRY(run_system(c, s, &plan, x));
    if (o->exchange && strcmp(o->exchange, "none") != 0) { x->exchange = s->results.exchange; }
    CRD_TRY(compare_exchanges(c, s->results.exchange, x));
    c->replay.result_count++;
fail:
    crd_system_destroy(s);
    return st;
}

// ---- the command -------------------------------------------------------------------------------

static crd_status run_replay(crdi_cli* cli, const void* options, const crdi_list* arguments,
                             crdi_result* out)
{
    crd_status st = CRD_OK;
    const replay_options* o = options;
    command c = {.replay = {.cli = cli,
                            .system = arguments->count > 1 ? arguments->items[1] : "",
                            .played = &o->play},
                 .options = o};
    crd_arena_init(&c.replay.arena, cli->ctx);
    if (o->both && !o->play.count) {
        CRD_TRY(crdi_fail(cli->ctx, CRD_E_RANGE,
                          "--both compares with an open loop, expected --play UNIT too"));
    }
    signal(SIGXFSZ, SIG_IGN); // a file that grows too large is then an error of write
    CRD_TRY(crdi_exchange_load(cli->ctx, arguments->items[0], &c.replay.recorded));
    if (o->play.count) { CRD_TRY(replay_once(&c, true)); }
    if (!o->play.count || o->both) { CRD_TRY(replay_once(&c, false)); }
    crdi_replay_put(&c.replay, out);
fail:
    if (c.scratch) { (void)crdi_scratch_remove(c.scratch); }
    crdi_exchange_destroy(c.replay.recorded);
    crd_arena_clear(&c.replay.arena);
    return st;
}

static const char* const paces[] = {"realtime", "10x", "free", NULL};

static const crdi_option rows[] = {
    OPT_LIST(replay_options, play, "play", "UNIT",
             "this unit is not run: what it sent is played to the others, sample by sample"),
    OPT_LIST(
        replay_options, algorithm, "algorithm", "NAME|INPUT=NAME",
        "another coupling algorithm, for all couplings or for the one at INPUT (unit.variable): "
        "a name such as eros, a file, or inline YAML in braces"),
    OPT_FLAG(replay_options, both, "both",
             "with --play: also in a closed loop, and the coupling errors side by side"),
    OPT_TEXT(replay_options, pace, "pace", "PACE",
             "realtime, a factor such as 10x, or free: as fast as possible; free unless given",
             .choices = paces),
    OPT_TIME(replay_options, step, "step", CRDI_POSITIVE,
             "macro step, where SYSTEM says another one than the recorded run had"),
    OPT_FILE(replay_options, output, "output", "csv|mf4|mat",
             "result file with the signals of the replay; none unless given. With --both that of "
             "the closed loop has -closed in its name",
             .short_name = 'o'),
    OPT_FILE(replay_options, exchange, "exchange", "mf4", "keep what the replay itself exchanged"),
    CRDI_UNPACKED_OPTION,
    CRDI_ISOLATE_OPTION,
    CRDI_JSON_OPTION("print the report as JSON on standard output"),
    CRDI_QUIET_OPTION,
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_replay = {
    .name = "replay",
    .arguments = "EXCHANGE.mf4 [SYSTEM]",
    .summary = "run once more against what was exchanged in a recorded run",
    .description =
        "Takes a recording that 'cardan run --exchange' made and lets the samples go their way "
        "once more, with the recorded latency, jitter, loss and order. With --play some units (the "
        "real bench, one side) are not run but played from the recording: an open loop, as they do "
        "not answer to what they get. Without it all units run again, which have to be virtual, "
        "and "
        "each sample takes as long as it took: a closed loop. Either way another coupling "
        "algorithm "
        "can be tried.\n"
        "The report says how good each algorithm was and how far the replay is from the recorded "
        "run: what a played unit would have got tells whether the open loop means anything for "
        "the closed one. SYSTEM may be left out when the recording has it and its files are where "
        "they were; then it runs with the settings of the recorded run.",
    .examples = {{"cardan replay run.exchange.mf4", "the same run again: it should be equal"},
                 {"cardan replay bench.exchange.mf4 bench.yaml --play motor --algorithm eros",
                  "what another algorithm would have done with the samples of a bench"},
                 {"cardan replay run.exchange.mf4 --play engine --algorithm shaft.M=foh --both",
                  "open and closed loop side by side"},
                 {"cardan replay bench.exchange.mf4 --play motor --pace realtime -o again.mf4",
                  "in real time, and record it"}},
    OPTIONS(rows, replay_options),
    .min_arguments = 1,
    .max_arguments = 2,
    .extensions = "mf4|yaml|yml|ssp|ssd",
    .run = run_replay,
};
