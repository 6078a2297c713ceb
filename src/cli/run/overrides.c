// What a command line says of a system, for `cardan run` and for `cardan check` of it.
#include "cli/run/run.h"
#include "shared/base_findings.h"
#include "shared/system_words.h"

#include <math.h>
#include <string.h>
#include <strings.h>

const char* const crdi_schemes[] = {"jacobi", "gauss-seidel", NULL};
const char* const crdi_interfaces[] = {"co-simulation", "model-exchange", NULL};
const char* const crdi_on_fulls[] = {"stop", "thin", "drop", NULL};
const char* const crdi_mat_versions[] = {"5", "7.3", NULL};
const char* const crdi_paces[] = {"realtime", "free", "10x", NULL};

static void set_if_given(double value, double* target)
{
    if (!isnan(value)) { *target = value; }
}

// Where the results go: --output, else what the system says, else <stem>.csv in this folder.
static crd_status choose_output(crd_system* s, const char* subject, const crdi_overrides* o)
{
    crd_results_spec* r = &s->results;
    if (o->output && strcmp(o->output, "none") == 0) {
        r->path = NULL;
        return CRD_OK;
    }
    if (o->output && strcmp(o->output, "/dev/stdout") == 0) {
        r->path = o->output;
        return CRD_OK;
    }
    if (o->output) {
        r->path = crdi_arena_text(&s->arena, o->output, strlen(o->output));
    } else if (!r->path) {
        const char* stem = crdi_file_stem(&s->arena, subject);
        r->path = stem ? crdi_arena_format(&s->arena, "%s.csv", stem) : NULL;
    }
    if (!r->path) { return CRD_E_MEMORY; }
    crd_status st = crdi_refuse_overwriting(s->ctx, r->path, subject, "the results", "what is run");
    if (st == CRD_OK) {
        st = crdi_refuse_overwriting(s->ctx, r->path, o->input.path, "the results",
                                     "the input of the run");
    }
    for (int i = 0; st == CRD_OK && i < s->unit_count; i++) {
        st = crdi_refuse_overwriting(s->ctx, r->path, s->units[i].path, "the results",
                                     "the file of a unit");
    }
    return st;
}

// A file beside the results: what the option says ("none": none), else what the system says.
typedef struct side_file {
    const char *option, *ending;
    const char* what; // "the exchanged samples"
} side_file;

static crd_status choose_side_file(crd_system* s, const side_file* f, const char* file,
                                   const char** out)
{
    const char* results = s->results.path;
    if (file && strcmp(file, "none") == 0) {
        *out = NULL;
        return CRD_OK;
    }
    if (file) {
        const size_t length = strlen(file);
        if (length < 5 || strcasecmp(file + length - 4, f->ending) != 0) {
            return crdi_fail(s->ctx, CRD_E_RANGE,
                             "--%s %s, expected a file whose name ends in %s, or none", f->option,
                             file, f->ending);
        }
        *out = file; // arguments outlive the system
    }
    if (!*out) { return CRD_OK; }
    if (results && (strcmp(results, *out) == 0 || crdi_same_file(results, *out))) {
        return crdi_fail(s->ctx, CRD_E_RANGE,
                         "%s: the results and %s go to the same file; choose another one with "
                         "--output or --%s",
                         *out, f->what, f->option);
    }
    for (int i = 0; i < s->unit_count; i++) {
        if (!s->units[i].path || !crdi_same_file(s->units[i].path, *out)) { continue; }
        return crdi_fail(s->ctx, CRD_E_RANGE,
                         "%s: %s would overwrite the file of a unit; choose another file with --%s",
                         *out, f->what, f->option);
    }
    return CRD_OK;
}

// Where the exchanged samples and the states of the benches go.
static crd_status choose_side_files(crd_system* s, const crdi_overrides* o)
{
    static const side_file exchange = {"exchange", ".mf4", "the exchanged samples"};
    static const side_file session = {"session-record", ".csv", "the record of the session"};
    crd_status st = choose_side_file(s, &exchange, o->exchange, &s->results.exchange);
    if (st == CRD_OK) { st = choose_side_file(s, &session, o->session, &s->results.session); }
    if (st < 0 || !s->results.session) { return st; }
    for (int i = 0; i < s->unit_count; i++) {
        if (s->units[i].source == CRD_UNIT_DCP) { return CRD_OK; }
    }
    return crdi_fail(s->ctx, CRD_E_RANGE,
                     "%s is to be the record of a session, but the system has no test bench: "
                     "expected a unit with the key 'dcp'",
                     s->results.session);
}

static crd_status apply_pace(crd_system* s, const crdi_overrides* o)
{
    if (o->pace) {
        const crd_status st = crd_system_set_pace(s, o->pace, (crd_place){.file = "--pace"});
        if (st < 0) { return st; }
    }
    const bool overruns = o->max_overruns >= 0, lateness = !isnan(o->max_lateness);
    if ((overruns || lateness || o->overrun >= 0) && !(s->run.pace.factor > 0)) {
        return crdi_fail(s->ctx, CRD_E_RANGE,
                         "--%s is about runs on the clock, expected --pace too, such as --pace "
                         "realtime",
                         o->overrun >= 0 ? "overrun"
                         : overruns      ? "max-overruns"
                                         : "max-lateness");
    }
    if (o->overrun >= 0) { s->run.pace.overrun = (crd_overrun)o->overrun; }
    return CRD_OK;
}

static crd_status apply_variables(crd_system* s, const crdi_list* patterns)
{
    if (!patterns->count) { return CRD_OK; }
    const char** copy = crdi_arena_new(&s->arena, (size_t)patterns->count, sizeof *copy);
    if (!copy) { return CRD_E_MEMORY; }
    for (int i = 0; i < patterns->count; i++) {
        copy[i] = patterns->items[i]; // arguments outlive the system
    }
    s->results.patterns = copy;
    s->results.pattern_count = patterns->count;
    return CRD_OK;
}

// A limit needs what it is a limit of.
static crd_status apply_limits(crd_system* s, const crdi_overrides* o)
{
    const bool defect = !isnan(o->max_defect), energy = !isnan(o->max_energy),
               error = !isnan(o->max_error);
    if (o->no_quality && (defect || energy || error || o->guard)) {
        return crdi_fail(s->ctx, CRD_E_RANGE, "--%s needs what --no-quality switches off",
                         defect   ? "max-defect"
                         : energy ? "max-energy"
                         : error  ? "max-error"
                                  : "guard");
    }
    if (o->guard) {
        const crd_status st = crd_system_set_guard(s, o->guard, (crd_place){.file = "--guard"});
        if (st < 0) { return st; }
    }
    if (s->run.guard.action == CRD_GUARD_NONE && (defect || energy || error)) {
        return crdi_fail(s->ctx, CRD_E_RANGE, "--%s needs the guard, which is off",
                         defect   ? "max-defect"
                         : energy ? "max-energy"
                                  : "max-error");
    }
    set_if_given(o->max_defect, &s->run.guard.max_defect);
    set_if_given(o->max_energy, &s->run.guard.max_energy);
    set_if_given(o->max_error, &s->run.guard.max_error);
    if (energy && s->bond_count == 0) {
        return crdi_fail(s->ctx, CRD_E_RANGE,
                         "--max-energy: the system has no power bond whose energy is known, "
                         "expected 'bonds: [[unit.force, unit.velocity]]' in its description");
    }
    if (o->no_quality) {
        s->run.monitor = 0;
        s->run.guard.action = CRD_GUARD_NONE;
    }
    if (defect || error) { s->run.monitor |= CRD_MONITOR_DEFECT; }
    if (energy) { s->run.monitor |= CRD_MONITOR_ENERGY; }
    return CRD_OK;
}

crd_status crdi_apply_overrides(crd_system* s, const char* subject, const crdi_overrides* o)
{
    crd_status st = CRD_OK;
    set_if_given(o->start_time, &s->run.start);
    set_if_given(o->stop_time, &s->run.stop);
    set_if_given(o->step, &s->run.step);
    set_if_given(o->tolerance, &s->run.tolerance);
    set_if_given(o->interval, &s->results.interval);
    if (o->threads >= 0) { s->run.threads = o->threads; }
    if (o->unit_row) { s->results.unit_row = true; }
    if (o->on_full) { s->results.on_full = o->on_full; }
    if (o->mat_version >= 0) { s->results.mat_version = o->mat_version == 0 ? 5 : 73; }
    for (int i = 0; i < s->unit_count; i++) {
        crd_unit_spec* u = &s->units[i];
        if (u->source != CRD_UNIT_FMU) { continue; }
        if (o->allow_nan) { u->allow_nan = true; }
        if (o->interface >= 0) { u->interface = (crd_interface)(o->interface + 1); }
        if (o->solver >= 0) { u->solver.method = (crd_solver)o->solver; }
    }
    if (o->predict >= 0) {
        s->run.predict = (crd_prediction)o->predict;
        for (int i = 0; i < s->connection_count; i++) {
            s->connections[i].predict = s->run.predict;
        }
    }
    if (!isnan(o->control)) {
        s->run.control.on = true;
        s->run.control.tolerance = o->control;
        s->run.control.place = (crd_place){.file = "--control"};
    }
    if (o->iterate) {
        s->run.iterate.on = true;
        s->run.iterate.place = (crd_place){.file = "--iterate"};
    }
    CRD_TRY(crdi_go_on(s->ctx, apply_pace(s, o)));
    CRD_TRY(crdi_go_on(s->ctx, apply_limits(s, o)));
    CRD_TRY(crdi_go_on(s->ctx, crdi_check_times(s)));
    if (o->scheme) {
        CRD_TRY(crdi_go_on(s->ctx,
                           crd_system_set_scheme(s, o->scheme, (crd_place){.file = "--scheme"})));
    }
    for (int i = 0; i < o->parameters.count; i++) {
        CRD_TRY(crdi_go_on(s->ctx, crdi_apply_parameters(s, o->parameters.items[i])));
    }
    for (int i = 0; i < o->set.count; i++) {
        CRD_TRY(crdi_go_on(s->ctx, crdi_apply_set(s, o->set.items[i])));
    }
    CRD_TRY(crdi_go_on(s->ctx, apply_variables(s, &o->variables)));
    CRD_TRY(crdi_go_on(s->ctx, choose_output(s, subject, o)));
    if (crdi_findings_status(s->ctx) >= 0) { // it wants units that can be read
        CRD_TRY(crdi_go_on(s->ctx, crdi_connect_input(s, &o->input)));
    }
    CRD_TRY(crdi_go_on(s->ctx, choose_side_files(s, o)));
fail:
    return st;
}
