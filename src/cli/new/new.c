// cardan new: a first system description out of FMUs, recordings, netlists, slaves and packages.
#include "cli/new/new.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

typedef struct new_options {
    crdi_common common;
    const char* output;
    bool force, interactive, no_trial;
    crdi_watch_options page;
    double step, stop;
} new_options;

// Everything that lives as long as the command.
typedef struct making {
    crdi_cli* cli;
    const new_options* o;
    crd_arena arena;
    crdi_sources sources;
    crdi_proposed proposed;
    crd_system* system;
    crdi_draft draft;
    bool fixed; // a unit says how long steps are
} making;

static crd_status make_system(making* w, const char* path)
{
    crd_text t;
    crd_text_init(&t, w->cli->ctx);
    crdi_text_add(&t, "cardan: 1\n");
    crdi_draft_write_units(&w->sources, NULL, &t);
    crd_status st = t.failed ? CRD_E_MEMORY : CRD_OK;
    if (st >= 0) {
        st = crd_system_load_on(w->cli->ctx, t.data, t.length, path, crd_ssp_read, &w->system);
    }
    for (int i = 0; st >= 0 && i < w->system->unit_count; i++) {
        w->system->units[i].place = (crd_place){.file = ""}; // nobody has seen this text
    }
    crd_text_clear(&t);
    return st;
}

static crd_status nothing_left(making* w)
{
    const crdi_proposed* p = &w->proposed;
    for (int i = 0; p->ports && i < p->ports->unit_count; i++) {
        if (p->ports->opened[i]) { return CRD_OK; }
    }
    if (p->ports && p->ports->unit_count > 0) {
        return crdi_fail(w->cli->ctx, CRD_E_FORMAT, "%s", p->ports->failures[0]);
    }
    for (int i = 0; i < w->sources.count; i++) {
        const crdi_source* x = &w->sources.items[i];
        if (x->system) { return CRD_OK; }
        if (x->flow) { return CRD_OK; } // not yet looked at
    }
    const crdi_source* x = &w->sources.items[0];
    return crdi_fail(w->cli->ctx, CRD_E_FORMAT, "%s%s%s",
                     strstr(x->failure, x->path) ? "" : x->path,
                     strstr(x->failure, x->path) ? "" : ": ", x->failure);
}

static void warn_left_out(making* w)
{
    crd_context* ctx = w->cli->ctx;
    for (int i = 0; i < w->sources.count; i++) {
        const crdi_source* x = &w->sources.items[i];
        if (!x->failure) { continue; }
        crdi_log(ctx, CRD_LOG_WARNING, "not used: %s%s%s",
                 strstr(x->failure, x->path) ? "" : x->path,
                 strstr(x->failure, x->path) ? "" : ": ", x->failure);
    }
    for (int i = 0; i < w->proposed.ports->unit_count; i++) {
        if (!w->proposed.ports->failures[i]) { continue; }
        crdi_log(ctx, CRD_LOG_WARNING, "not used: %s", w->proposed.ports->failures[i]);
    }
}

// ---- times -------------------------------------------------------------------------------------

// What the SSP says, else what the units say, else a second in a thousand steps.
static void choose_times(making* w)
{
    crdi_draft* d = &w->draft;
    const crd_ports* ports = w->proposed.ports;
    double step = w->system->run.step, stop = w->system->run.stop;
    const bool has_step = !isnan(step), has_stop = !isnan(stop);
    d->step_why = has_step ? "as the SSP says" : "";
    for (int i = 0; i < ports->unit_count; i++) {
        const crd_unit* u = ports->opened[i];
        if (!u) { continue; }
        if (!has_stop && u->info.stop > 0 && isfinite(u->info.stop) && !(u->info.stop <= stop)) {
            stop = u->info.stop;
        }
        // .tran is about steps inside of a netlist
        const bool inner = w->system->units[i].source == CRD_UNIT_CIRCUIT && ports->unit_count > 1;
        if (inner) { continue; }
        const bool fixed = u->info.fixed_step > 0;
        const double own = fixed ? u->info.fixed_step : u->info.step;
        if (!(own > 0) || (w->fixed && !fixed) || (has_step && !fixed)) { continue; }
        if (isnan(step) || own < step || (fixed && !w->fixed)) {
            step = own;
            const char* why =
                crdi_arena_format(&w->arena, "step: %s of %s",
                                  fixed ? "the only one" : "the default", ports->units[i].name);
            d->step_why = why ? why : "";
        }
        w->fixed = w->fixed || fixed;
    }
    d->stop = !isnan(w->o->stop) ? w->o->stop : isnan(stop) ? 1 : stop;
    d->step = !isnan(w->o->step) ? w->o->step : isnan(step) ? d->stop / 1000 : step;
    if (!isnan(w->o->step)) { d->step_why = ""; }
}

static bool is_remote(const crd_system* s)
{
    for (int i = 0; i < s->unit_count; i++) {
        const crdi_unit_kind* k = crdi_unit_kind_of(s->units[i].source);
        if (k->is_remote || k->by_hand) { return true; }
    }
    return false;
}

// 5 ms, 2 ms, 1 ms, 500 us ...
static double next_shorter(double h)
{
    const double power = pow(10, floor(log10(h) + 1e-9)), first = h / power;
    return first > 5.0001   ? 5 * power
           : first > 2.0001 ? 2 * power
           : first > 1.0001 ? power
                            : power / 2;
}

// Shorter steps until the estimated error is small. What benches do is never tried out.
static crd_status try_steps(making* w)
{
    enum { TRIES = 6, STEPS = 1000 };
    const double enough = 0.01; // of the signals' scales
    crdi_draft* d = &w->draft;
    crd_status st = CRD_OK;
    crdi_trial t, best = {.step = d->step, .error = NAN};
    const double start = isnan(w->system->run.start) ? 0 : w->system->run.start;
    const double until = fmin(d->stop, start + STEPS * d->step);
    double h = d->step;
    for (int i = 0; i < TRIES; i++) {
        crd_text text;
        crd_text_init(&text, w->cli->ctx);
        crdi_draft_write(d, &text);
        st = text.failed ? CRD_E_MEMORY : CRD_OK;
        if (st >= 0) { crdi_trial_run(w->cli->ctx, &text, d->path, h, until, &t); }
        crd_text_clear(&text);
        if (st < 0) { return st; }
        const double error = isnan(t.error) ? t.defect : t.error;
        if (t.status < 0 && i > 0) { break; } // the one before is there
        if (t.status < 0) {
            const char* why = crdi_arena_format(&w->arena, "%s%strial run: %s", d->step_why,
                                                d->step_why[0] ? "; " : "", t.text);
            d->step_why = why ? why : "";
            crdi_log(w->cli->ctx, CRD_LOG_WARNING, "the trial run failed: %s", t.text);
            return CRD_OK;
        }
        if (isnan(best.error) || error < best.error) {
            best = t;
            best.error = error;
        }
        if (!(error > enough) || w->fixed || !isnan(w->o->step)) { break; }
        h = next_shorter(h);
    }
    const bool shorter = best.step < d->step * 0.999;
    d->step = best.step;
    char time[32];
    const char* found = isnan(best.error) ? "done"
                        : best.error < 1e-5
                            ? "errors of the coupling below 0.001 %"
                            : crdi_arena_format(&w->arena, "errors of the coupling about %.2g %%",
                                                100 * best.error);
    const char* why = crdi_arena_format(&w->arena, "%s%strial run of %s: %s",
                                        !shorter                     ? d->step_why
                                        : isnan(w->system->run.step) ? "shorter than the units say"
                                                                     : "shorter than the SSP says",
                                        shorter || d->step_why[0] ? "; " : "",
                                        crdi_format_seconds(time, best.time), found ? found : "");
    if (why) { d->step_why = why; }
    return CRD_OK;
}

// ---- the command -------------------------------------------------------------------------------

static void put_result(making* w, crdi_result* out)
{
    static const char* const keys[] = {"doubtful", "likely", "sure"};
    const crdi_draft* d = &w->draft;
    int of[3] = {0}, open = 0, units = 0;
    for (int i = 0; i < d->count; i++) {
        const crdi_draft_line* l = &d->lines[i];
        of[l->sure] += l->from >= 0;
        open += l->from < 0;
    }
    for (int i = 0; i < w->proposed.ports->unit_count; i++) {
        units += w->proposed.ports->opened[i] != NULL;
    }
    crdi_put(out, TEXT("file", d->path), INT("units", units), INT(keys[2], of[2]),
             INT(keys[1], of[1]), INT(keys[0], of[0]), INT("free", open), REAL("step", d->step),
             REAL("stop", d->stop));
    crdi_say(out, "%s: %d unit%s, %d connection%s", d->path, units, crdi_plural(units),
             of[2] + of[1], crdi_plural(of[2] + of[1]));
    if (of[1]) { crdi_say(out, " (%d of them only likely)", of[1]); }
    const int below = w->system->connection_count;
    if (below) { crdi_say(out, " beside the %d of the SSP", below); }
    if (of[0]) { crdi_say(out, ", %d doubtful as comments", of[0]); }
    if (open) { crdi_say(out, ", %d input%s free", open, crdi_plural(open)); }
    crdi_say(out, "\ngo on with:\n  cardan check %s\n  cardan run %s\n", d->path, d->path);
}

static const char* command_line(making* w, const crdi_list* arguments)
{
    crd_text t;
    crd_text_init(&t, w->cli->ctx);
    crdi_text_add(&t, "cardan new");
    for (int i = 0; i < arguments->count && t.length < 300; i++) {
        crdi_text_add(&t, " %s", arguments->items[i]);
    }
    const char* line = t.failed ? NULL : crdi_arena_text(&w->arena, t.data, t.length);
    crd_text_clear(&t);
    return line ? line : "cardan new";
}

static crd_status write_file(making* w, crdi_result* out)
{
    crd_status st = CRD_OK;
    crd_text text;
    crd_text_init(&text, w->cli->ctx);
    crdi_draft_write(&w->draft, &text);
    CRD_TRY(text.failed ? CRD_E_MEMORY : CRD_OK);
    st = w->o->page.ui ? crdi_draw_serve(w->cli, &w->o->page, &text, w->draft.path, true, out)
                       : crdi_file_write(w->cli->ctx, w->draft.path, &text);
fail:
    crd_text_clear(&text);
    return st;
}

static crd_status run_making(making* w, const crdi_list* arguments, crdi_result* out)
{
    crd_status st = CRD_OK;
    crdi_draft* d = &w->draft;
    struct stat info;
    const bool there = stat(d->path, &info) == 0 && S_ISREG(info.st_mode);
    CRD_TRY(crdi_live_check(w->cli->ctx, &w->o->page));
    if (w->o->page.ui && strcmp(d->path, "-") == 0) {
        return crdi_fail(w->cli->ctx, CRD_E_RANGE,
                         "--ui saves to a file, expected --output with its name");
    }
    if (there && !w->o->force && !w->o->page.ui) {
        return crdi_fail(w->cli->ctx, CRD_E_RANGE,
                         "%s exists; --force overwrites it, --output chooses another name, and "
                         "'cardan connect' changes it",
                         d->path);
    }
    CRD_TRY(crdi_sources_collect(w->cli->ctx, arguments, d->path, &w->sources));
    CRD_TRY(nothing_left(w));
    CRD_TRY(make_system(w, d->path));
    CRD_TRY(crdi_propose(w->cli->ctx, w->system, &w->proposed));
    CRD_TRY(nothing_left(w));
    warn_left_out(w);
    d->sources = &w->sources;
    d->p = &w->proposed;
    d->system = w->system;
    d->command = command_line(w, arguments);
    CRD_TRY(crdi_draft_begin(d, &w->arena));
    if (w->o->interactive) { crdi_draft_ask(w->cli->ctx, d); }
    choose_times(w);
    if (!w->o->no_trial && !is_remote(w->system)) { CRD_TRY(try_steps(w)); }
    CRD_TRY(write_file(w, out));
    if (!w->o->page.ui) { put_result(w, out); }
fail:
    return st;
}

static crd_status run_new(crdi_cli* cli, const void* options, const crdi_list* arguments,
                          crdi_result* out)
{
    making w = {.cli = cli, .o = options};
    crd_arena_init(&w.arena, cli->ctx);
    w.sources.arena = &w.arena;
    w.draft.path = w.o->output ? w.o->output : "system.yaml";
    const crd_status st = run_making(&w, arguments, out);
    crdi_proposed_clear(&w.proposed);
    crd_system_destroy(w.system);
    crd_free(cli->ctx, w.sources.items);
    crd_arena_clear(&w.arena);
    return st;
}

static const crdi_option rows[] = {
    OPT_FILE(new_options, output, "output", "yaml|yml",
             "the description to write; system.yaml unless given", .short_name = 'o'),
    OPT_FLAG(new_options, force, "force", "overwrite a description that is there"),
    OPT_FLAG(new_options, interactive, "interactive",
             "ask about each connection that is not sure: yes, no, or another output",
             .short_name = 'i'),
    OPT_FLAG(new_options, page.ui, "ui",
             "open a page on which connections are drawn, and which saves the description: its "
             "address is printed on standard error"),
    CRDI_PAGE_OPTIONS(new_options, page),
    OPT_TIME(new_options, step, "step", CRDI_POSITIVE,
             "macro step; what the units and a trial run say unless given"),
    OPT_TIME(new_options, stop, "stop-time", CRDI_POSITIVE,
             "where the run ends; what the units say unless given, else 1 s"),
    OPT_FLAG(new_options, no_trial, "no-trial", "do not run the new system for a moment"),
    CRDI_ISOLATE_OPTION,
    CRDI_UNPACKED_OPTION,
    CRDI_JSON_OPTION("print what was written as JSON on standard output"),
    CRDI_QUIET_OPTION,
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_new = {
    .name = "new",
    .arguments = "FMU|RECORDING|NETLIST|ADDRESS|FOLDER|SSP...",
    .summary = "write a first system description from models and recordings",
    .description =
        "Makes units of FMUs, netlists (.cir ...), recordings (CSV, MF4, MAT), DCP slaves (an "
        "address such as udp://127.0.0.1:8080 with the .dcpx beside it) and all of these in a "
        "folder, or goes on from an SSP, and proposes connections: by names (tau and torque mean "
        "the same if they are in N.m, engine_torque belongs to the unit engine), units of measure, "
        "types. What is likely says so in a comment, what is doubtful is a comment itself. Times "
        "come from the units; a short trial run in a process of its own (not with test benches) "
        "shortens the step until the estimated error of the coupling is below 1 %. Files that "
        "cannot be used are named in the description and in a warning.",
    .examples = {{"cardan new motor.fmu car.fmu", "two FMUs become system.yaml"},
                 {"cardan new models/ drive.csv -o drive.yaml", "a folder, driven by a recording"},
                 {"cardan new motor.fmu car.fmu --interactive", "with questions"},
                 {"cardan new models/ --ui", "connections drawn in a browser"},
                 {"cardan new udp://127.0.0.1:8080 bench.dcpx car.fmu", "a car on a bench"}},
    OPTIONS(rows, new_options),
    .min_arguments = 1,
    .max_arguments = -1,
    .extensions = "fmu|csv|mf4|mat|cir|ssp|dcpx",
    .run = run_new,
};
