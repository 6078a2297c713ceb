// One run after the other: the description is read anew for each, or has other settings only, as a
// system is const once it runs; changed by the values of the run, and run with FMUs that stay open.
#include "cardan/circuit.h"
#include "cardan/system.h"
#include "shared/archive.h"
#include "shared/master_crash.h"
#include "shared/master_process.h"
#include "shared/master_verdict.h"
#include "shared/unit.h"
#include "study/keep.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct crdi_study_worker {
    crd_context* ctx;
    const crdi_study_file* f;
    crd_unit_store* store;
    study_keep* keep;
    crd_text system; // of a YAML
    bool yaml, catches;
    crdi_process process; // with `catches`
    crd_system* same; // where runs differ in settings of units alone: without those of any; or NULL
    crd_unit_spec* units; // (unit_count) of it
    bool* in_change;      // (factors) it stands in `change`
    crd_text change;
};

// ---- values as they are written ----------------------------------------------------------------

static void put_value(crd_text* t, const crdi_study_factor* f, const crdi_study_value* v)
{
    if (!f->numeric) {
        crdi_text_add(t, "%s", v->text);
        return;
    }
    char number[32];
    crdi_format_double(number, v->x);
    crdi_text_add(t, "%s%s%s", number, *f->unit ? " " : "", f->unit);
}

// Plain where it is a number or a word of YAML, else in quotes.
static void put_scalar(crd_text* t, crd_context* ctx, const crdi_study_factor* f,
                       const crdi_study_value* v)
{
    crd_text raw;
    double x;
    const char* unit = "";
    crd_text_init(&raw, ctx);
    put_value(&raw, f, v);
    const char* text = raw.data ? raw.data : "";
    const bool plain = (crdi_study_number(text, &x, &unit) && !*unit) ||
                       strcmp(text, "true") == 0 || strcmp(text, "false") == 0 || text[0] == '{' ||
                       text[0] == '[';
    if (plain) {
        crdi_text_add(t, "%s", text);
    } else {
        crdi_text_json(t, text);
    }
    t->failed = t->failed || raw.failed;
    crd_text_clear(&raw);
}

static size_t name_length(const char* s)
{
    size_t n = 0;
    while (isalnum((unsigned char)s[n]) || s[n] == '_' ||
           (s[n] == '.' && isalnum((unsigned char)s[n + 1]))) {
        n++;
    }
    return n;
}

enum { IS_SEED = -2, IS_NOTHING = -1 };
static int factor_named(const crdi_study_file* f, const char* name, size_t length)
{
    for (int i = 0; i < f->factor_count; i++) {
        if (strlen(f->factors[i].name) == length && memcmp(f->factors[i].name, name, length) == 0) {
            return i;
        }
    }
    return length == 4 && memcmp(name, "seed", 4) == 0 ? IS_SEED : IS_NOTHING;
}

// `change` with values for its $names: a text that is nothing but a $name becomes the value itself.
static void put_change(crdi_study_worker* w, const crdi_study_run* r, crd_text* t)
{
    const char* p = w->f->change;
    while (*p) {
        const size_t plain = strcspn(p, "$");
        crdi_text_put(t, p, plain);
        p += plain;
        if (!*p) { break; }
        const size_t n = name_length(p + 1);
        const int i = n ? factor_named(w->f, p + 1, n) : IS_NOTHING;
        const bool whole = t->length && t->data[t->length - 1] == '"' && p[n + 1] == '"';
        if (i == IS_NOTHING) {
            crdi_text_put(t, p, n + 1);
        } else {
            if (whole) { t->length--; }
            if (i == IS_SEED) {
                crdi_text_add(t, "%llu", (unsigned long long)r->seed);
            } else if (whole) {
                put_scalar(t, w->ctx, &w->f->factors[i], &r->values[i]);
            } else {
                put_value(t, &w->f->factors[i], &r->values[i]);
            }
        }
        p += n + 1 + (i != IS_NOTHING && whole);
    }
    crdi_text_put(t, "", 1);
    if (!t->failed) { t->length--; }
}

// ---- the system of one run ---------------------------------------------------------------------

// "run.control.tolerance" becomes {"run":{"control":{"tolerance":VALUE}}}.
static crd_status set_key(crdi_study_worker* w, crd_system* s, const crdi_study_factor* f,
                          const crdi_study_value* v)
{
    crd_text t;
    int depth = 0;
    crd_text_init(&t, w->ctx);
    for (const char* p = f->name; *p; depth++) {
        const size_t n = strcspn(p, ".");
        crdi_text_add(&t, "{\"%.*s\": ", (int)n, p);
        p += n + (p[n] == '.');
    }
    put_scalar(&t, w->ctx, f, v);
    for (int i = 0; i < depth; i++) {
        crdi_text_add(&t, "}");
    }
    const crd_status st =
        t.failed ? CRD_E_MEMORY : crd_system_amend(s, t.data, t.length, w->f->file, f->line);
    crd_text_clear(&t);
    return st;
}

static crd_status set_variable(crdi_study_worker* w, crd_system* s, const crdi_study_factor* f,
                               const crdi_study_value* v)
{
    const crd_place place = {w->f->file, f->line};
    int unit = 0;
    const char* variable = f->name;
    crd_text t;
    crd_text_init(&t, w->ctx);
    put_value(&t, f, v);
    crd_status st = t.failed ? CRD_E_MEMORY : CRD_OK;
    if (st >= 0 && !s->single) { st = crd_system_split(s, f->name, place, &unit, &variable); }
    if (st >= 0) { st = crd_system_set(s, unit, variable, t.data, place); }
    crd_text_clear(&t);
    return st;
}

// In front of what somebody else has said.
static crd_status say_where(crdi_study_worker* w, crd_status st, int line, const char* format,
                            const char* name)
{
    char said[600], where[200];
    snprintf(said, sizeof said, "%s", crd_error_text(w->ctx));
    snprintf(where, sizeof where, format, name);
    return crdi_fail(w->ctx, st, "%s:%d: %s: %s", w->f->file, line, where, said);
}

// A number in the unit of the study as one in the unit of the variable.
static crd_status convert(crdi_study_worker* w, const crdi_study_factor* f, const char* unit,
                          double* x)
{
    crd_dimension from, to;
    if (!*f->unit || strcmp(f->unit, unit) == 0) { return CRD_OK; }
    if (!*unit || !crd_dimension_parse(unit, &to) || !crd_dimension_parse(f->unit, &from) ||
        !crd_dimension_equal(&from, &to)) {
        return crdi_fail(w->ctx, CRD_E_RANGE, "%s:%d: vary.%s: in %s, and the variable is in %s",
                         w->f->file, f->line, f->name, f->unit, *unit ? unit : "no unit");
    }
    *x = (from.factor * *x + from.offset - to.offset) / to.factor;
    return CRD_OK;
}

// What varies behind a state: inputs and tunable parameters, set before the next step.
static crd_status set_behind(crdi_study_worker* w, crd_master* m, const crdi_study_run* r)
{
    crd_status st = CRD_OK;
    for (int i = 0; i < w->f->factor_count; i++) {
        const crdi_study_factor* f = &w->f->factors[i];
        int handle = 0;
        double x = r->values[i].x;
        if (strncmp(f->name, "run.", 4) == 0) { continue; }
        st = crd_master_find(m, f->name, &handle);
        if (st >= 0) {
            const crd_handle_info* info = crd_master_handle(m, handle);
            CRD_TRY(convert(w, f, info->text, &x));
            st = info->count == 1 ? crd_master_set(m, handle, &x)
                                  : crdi_fail(w->ctx, CRD_E_UNSUPPORTED, "it is an array");
        }
        if (st < 0) {
            return say_where(w, st, f->line,
                             "vary.%s: behind a state inputs and tunable parameters "
                             "can vary",
                             f->name);
        }
    }
fail:
    return st;
}

static crd_master_options master_options(const crdi_study_worker* w)
{
    crd_master_options o = crd_master_defaults();
    o.no_statistics = true;
    o.guard_crashes = true; // a state of `cardan run` fits to none but the same
    o.store = w->store;
    o.resume = w->f->state;
    return o;
}

// Whether a run has a length is known with its units only, who says its end is known here.
static crd_status create_run(crdi_study_worker* w, const crd_system* s, crd_master** out)
{
    const crdi_study_file* f = w->f;
    const crd_master_options o = master_options(w);
    const crd_status st = crd_master_create(w->ctx, s, &o, out);
    if (st >= 0 || strncmp(crd_error_text(w->ctx), "stop time", 9) != 0) { return st; }
    for (int i = 0; i < f->factor_count; i++) {
        const crdi_study_factor* v = &f->factors[i];
        if (strcmp(v->name, "run.stop") == 0) {
            return say_where(w, st, v->line, "vary.%s", v->name);
        }
    }
    return f->change ? say_where(w, st, f->change_line, "with change%s", "")
                     : crdi_fail_in(w->ctx, st, "%s", f->system);
}

// To where the run begins: at its start, or at a state with what varies behind it.
static crd_status begin_run(crdi_study_worker* w, crd_master* m, const crdi_study_run* r)
{
    crd_status st = crd_master_initialize(m);
    if (!w->f->state) { return st; }
    if (st < 0 && strstr(crd_error_text(w->ctx), "fit")) {
        return crdi_fail(w->ctx, st,
                         "%s:%d: state: %s is no state of this system as studies run it: 'cardan "
                         "run SYSTEM %s-o none --save-state %s --at TIME' makes one",
                         w->f->file, w->f->state_line, w->f->state,
                         w->f->isolate ? "" : "--isolate none ", w->f->state);
    }
    if (st < 0) { return say_where(w, st, w->f->state_line, "state%s", ""); }
    if (crd_master_ended(m) != CRD_END_NONE) {
        return crdi_fail(w->ctx, CRD_E_RANGE,
                         "%s:%d: state: %s stands at t = %.10g s, where the run is over already; "
                         "change: { run: { stop: ... } } says how far it goes",
                         w->f->file, w->f->state_line, w->f->state, crd_master_time(m));
    }
    return set_behind(w, m, r);
}

static crd_status load(crdi_study_worker* w, crd_system** out)
{
    const char* path = w->f->system;
    if (w->yaml) {
        return crd_system_load_on(w->ctx, w->system.data, w->system.length, path, crd_ssp_read,
                                  out);
    }
    if (crdi_ends_with(path, ".ssp") || crdi_ends_with(path, ".ssd")) {
        return crd_ssp_load(w->ctx, path, NULL, out);
    }
    if (crdi_ends_with(path, ".fmu")) { return crd_system_of_fmu(w->ctx, path, out); }
    return crd_system_of_circuit(w->ctx, path, out);
}

// What is of this run into its system.
static crd_status change_system(crdi_study_worker* w, const crdi_study_run* r, crd_system* s)
{
    crd_status st = CRD_OK;
    const crdi_study_file* f = w->f;
    if (f->change) {
        w->change.length = 0;
        put_change(w, r, &w->change);
        if (w->change.failed) { CRD_TRY(CRD_E_MEMORY); }
        CRD_TRY(crd_system_amend(s, w->change.data, w->change.length, f->file, f->change_line));
    }
    for (int i = 0; i < f->factor_count; i++) {
        if (w->in_change[i]) { continue; }
        const bool key = strncmp(f->factors[i].name, "run.", 4) == 0;
        if (f->state && !key) { continue; } // set_behind
        CRD_TRY((key ? set_key : set_variable)(w, s, &f->factors[i], &r->values[i]));
    }
    if (s->run.pace.factor > 0) {
        return crdi_fail(
            w->ctx, CRD_E_RANGE,
            "%s: run.pace: a study runs as fast as it can; change: { run: { pace: free } "
            "} lets it",
            f->system);
    }
    s->results = (crd_results_spec){0};
    s->run.threads = 1;                                     // runs go side by side, not units
    if (!f->isolate) { s->run.isolate = CRD_ISOLATE_NONE; } // the worker is a process already
fail:
    return st;
}

static crd_status make_system(crdi_study_worker* w, const crdi_study_run* r, crd_system** out)
{
    crd_system* s = NULL;
    crd_status st = load(w, &s);
    if (st >= 0) { st = change_system(w, r, s); }
    if (st < 0) {
        crd_system_destroy(s);
        return st;
    }
    *out = s;
    return CRD_OK;
}

static void forget_same(crdi_study_worker* w)
{
    crd_system_destroy(w->same);
    crd_free(w->ctx, w->units);
    w->same = NULL;
    w->units = NULL;
}

// The same one with other settings where they alone differ, as reading takes longer than many
// steps. Anew now and then: settings stay in its memory.
static crd_status take_system(crdi_study_worker* w, const crdi_study_run* r, crd_system** out)
{
    enum { SETTINGS_BYTES = 1 << 20 };
    crd_status st = CRD_OK;
    bool settings = !w->f->change;
    for (int i = 0; i < w->f->factor_count; i++) {
        settings = settings && strncmp(w->f->factors[i].name, "run.", 4) != 0;
    }
    if (!settings) { return make_system(w, r, out); }
    if (w->same && w->same->arena.used > SETTINGS_BYTES) { forget_same(w); }
    const bool fresh = !w->same;
    if (fresh) { CRD_TRY(load(w, &w->same)); }
    crd_system* s = w->same;
    const size_t n = (size_t)s->unit_count;
    if (fresh) { w->units = crdi_new_array(w->ctx, n, sizeof *w->units); }
    if (!w->units) { CRD_TRY(CRD_E_MEMORY); }
    memcpy(fresh ? w->units : s->units, fresh ? s->units : w->units, n * sizeof *s->units);
    CRD_TRY(change_system(w, r, s));
    *out = s;
    return CRD_OK;
fail:
    forget_same(w);
    return st;
}

static void leave_system(crdi_study_worker* w, crd_system* s)
{
    if (s != w->same) { crd_system_destroy(s); }
}

// ---- life --------------------------------------------------------------------------------------

static crd_status find_changes(crdi_study_worker* w)
{
    const crdi_study_file* f = w->f;
    w->in_change = crdi_new_array(w->ctx, (size_t)f->factor_count, sizeof *w->in_change);
    if (!w->in_change) { return CRD_E_MEMORY; }
    for (const char* p = f->change ? strchr(f->change, '$') : NULL; p; p = strchr(p + 1, '$')) {
        const size_t n = name_length(p + 1);
        const int i = n ? factor_named(f, p + 1, n) : IS_NOTHING;
        if (n && i == IS_NOTHING) {
            return crdi_fail(w->ctx, CRD_E_NOT_FOUND,
                             "%s:%d: change: $%.*s is no factor of vary, nor $seed", f->file,
                             f->change_line, (int)n, p + 1);
        }
        if (i >= 0) { w->in_change[i] = true; }
    }
    for (int i = 0; f->state && i < f->factor_count; i++) {
        const crdi_study_factor* v = &f->factors[i];
        const bool key = strncmp(v->name, "run.", 4) == 0 && strcmp(v->name, "run.stop") != 0;
        if (!w->in_change[i] && !key && (v->numeric || !strcmp(v->name, "run.stop"))) { continue; }
        return crdi_fail(w->ctx, CRD_E_RANGE,
                         "%s:%d: vary.%s: %s of the run up to the state %s, and cannot vary behind "
                         "it; inputs, tunable parameters and run.stop can",
                         f->file, v->line, v->name,
                         w->in_change[i] ? "it stands in change, which is part"
                         : key           ? "it is part"
                                         : "it has words, and is part",
                         f->state);
    }
    for (int i = 0; i < f->factor_count; i++) {
        if (!w->in_change[i] && !strchr(f->factors[i].name, '.') &&
            !crdi_ends_with(f->system, ".fmu") && !crdi_ends_with(f->system, ".cir")) {
            return crdi_fail(w->ctx, CRD_E_NOT_FOUND,
                             "%s:%d: vary: nothing is called '%s': expected a variable such as "
                             "motor.k, a key such as run.step, or $%s somewhere in change",
                             f->file, f->factors[i].line, f->factors[i].name, f->factors[i].name);
        }
    }
    return CRD_OK;
}

crd_status crdi_study_worker_create(crd_context* ctx, const crdi_study_file* f,
                                    crdi_study_worker** out)
{
    static const char* const others[] = {".ssp", ".ssd", ".fmu", ".cir", ".sp", ".net"};
    crd_status st = CRD_OK;
    crdi_study_worker* w = crdi_new(ctx, sizeof *w);
    if (!w) { return CRD_E_MEMORY; }
    *w = (crdi_study_worker){.ctx = ctx, .f = f, .yaml = true};
    crd_text_init(&w->system, ctx);
    crd_text_init(&w->change, ctx);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        w->yaml = w->yaml && !crdi_ends_with(f->system, others[i]);
    }
    if (w->yaml) {
        const crdi_file_need need = {
            .what = "a system description", .most = 256u << 20, .text = true};
        CRD_TRY(crdi_file_read(ctx, f->system, &need, &w->system));
    }
    CRD_TRY(find_changes(w));
    CRD_TRY(study_keep_create(ctx, f, &w->keep));
    CRD_TRY(crd_unit_store_create(ctx, &w->store));
    crdi_crash_install(); // once for all runs
    crdi_process_save(&w->process);
    w->catches = true;
    *out = w;
    return CRD_OK;
fail:
    crdi_study_worker_destroy(w);
    return st;
}

void crdi_study_worker_destroy(crdi_study_worker* w)
{
    if (!w) { return; }
    if (w->catches) {
        crdi_process_clear(&w->process);
        crdi_crash_remove();
    }
    forget_same(w);
    study_keep_destroy(w->keep);
    crd_unit_store_destroy(w->store);
    crd_text_clear(&w->system);
    crd_text_clear(&w->change);
    crd_free(w->ctx, w->in_change);
    crd_free(w->ctx, w);
}

// ---- a run -------------------------------------------------------------------------------------

static crd_status steps(crdi_study_worker* w, crd_master* m)
{
    crd_status st = CRD_OK;
    const bool watches = study_keep_watches(w->keep);
    while (st >= 0 && crd_master_ended(m) == CRD_END_NONE) {
        st = crd_master_advance(m, watches ? 1 : 1 << 20);
        if (st >= 0 && watches) { st = study_keep_step(w->keep, m); }
    }
    return st >= 0 && !watches ? study_keep_step(w->keep, m) : st;
}

static void end_of(crdi_study_worker* w, crd_master* m, crd_status st, crdi_study_run* r,
                   bool* tainted)
{
    const crd_end end = m ? crd_master_ended(m) : CRD_END_FAILED;
    if (st >= 0 && end == CRD_END_GUARD) {
        r->state = CRDI_RUN_DIVERGED;
        snprintf(r->reason, sizeof r->reason, "%s", crdi_master_get_numbers(m)->guard.text);
    } else if (st < 0) {
        r->state = st == CRD_E_CRASH ? CRDI_RUN_CRASHED : CRDI_RUN_FAILED;
        *tainted = *tainted || st == CRD_E_CRASH;
        snprintf(r->reason, sizeof r->reason, "%s", crd_error_text(w->ctx));
        // What is no number any more has diverged, whoever says it.
        static const char* const words[] = {" is nan", " is -nan", " not a number", " not finite",
                                            " diverge"};
        for (size_t i = 0; st != CRD_E_CRASH && i < sizeof words / sizeof *words; i++) {
            if (strstr(r->reason, words[i])) { r->state = CRDI_RUN_DIVERGED; }
        }
    }
}

// What `cardan run` would not let pass.
static void look_at_verdict(crdi_study_worker* w, crd_master* m, crdi_study_run* r)
{
    const crd_master_report* report = crdi_master_get_numbers(m);
    if (r->state != CRDI_RUN_DONE || crdi_check_guard(w->ctx, m) >= 0) { return; }
    r->state = report->guard.exploded ? CRDI_RUN_DIVERGED : CRDI_RUN_LIMIT;
    snprintf(r->reason, sizeof r->reason, "%s", crd_error_text(w->ctx));
}

// What units have left in the process is not for the next run, which is as in one of its own: what
// they may change of it, and the random numbers of the C library.
static void begin_afresh(crdi_study_worker* w)
{
    char text[256];
    (void)crdi_process_restore(&w->process, text);
    srandom(1);
    (void)seed48((unsigned short[3]){0});
}

static crd_status run_recorded(crdi_study_worker* w, crdi_study_run* r, bool* tainted,
                               const crd_results_spec* record)
{
    crd_status st = CRD_OK;
    crd_system* s = NULL;
    crd_master* m = NULL;
    const int64_t begin = crdi_now_ns();
    begin_afresh(w);
    r->state = CRDI_RUN_DONE;
    r->reason[0] = 0;
    for (int i = 0; i < w->f->kept_count; i++) {
        r->kept[i] = NAN;
    }
    CRD_TRY(take_system(w, r, &s));
    if (record) { s->results = *record; }
    CRD_TRY(create_run(w, s, &m));
    CRD_TRY(begin_run(w, m, r));
    CRD_TRY(study_keep_begin(w->keep, m));
    CRD_TRY(steps(w, m));
    CRD_TRY(crd_master_finish(m));
fail:
    end_of(w, m, st, r, tainted);
    if (m && st >= 0) {
        study_keep_end(w->keep, m, r);
        look_at_verdict(w, m, r);
    }
    if (!*tainted) { // what has crashed is not touched again
        crd_master_destroy(m);
        leave_system(w, s);
        *tainted = crdi_unit_store_lingers(w->store);
    }
    r->seconds = (double)(crdi_now_ns() - begin) * 1e-9;
    return st;
}

void crdi_study_worker_run(crdi_study_worker* w, crdi_study_run* r, bool* tainted)
{
    (void)run_recorded(w, r, tainted, NULL);
}

crd_status crdi_study_worker_record(crdi_study_worker* w, crdi_study_run* r, const char* path,
                                    const char* const* patterns, int count)
{
    bool tainted = false;
    const crd_results_spec record = {.path = path, .patterns = patterns, .pattern_count = count};
    return run_recorded(w, r, &tainted, &record);
}

// ---- what takes part ---------------------------------------------------------------------------

static void add_name(crd_text* names, const char* path)
{
    if (path && *path) { crdi_text_put(names, path, strlen(path) + 1); }
}

// Of netlists and twins also what they read themselves.
static void add_unit_files(crd_context* ctx, const crd_unit_spec* u, crd_text* names)
{
    crd_netlist* netlist = NULL;
    crd_twin_description* twin = NULL;
    const crd_netlist_options options = {0};
    if (!crdi_unit_kind_of(u->source)->is_file) { return; }
    add_name(names, u->path);
    crdi_file_note_reads(ctx, names);
    if (u->source == CRD_UNIT_CIRCUIT && crd_netlist_load(ctx, u->path, &options, &netlist) >= 0) {
        crd_netlist_destroy(netlist);
    }
    if (u->source == CRD_UNIT_TWIN && crdi_twin_read(ctx, u->path, &twin) >= 0) {
        crd_twin_description_destroy(twin);
    }
    crdi_file_note_reads(ctx, NULL);
}

// Files of the system that a run has, where one can be made of it.
static void add_files(crdi_study_worker* w, crd_context* quiet, const crdi_study_run* r,
                      crd_text* names)
{
    crd_system* s = NULL;
    crdi_file_note_reads(w->ctx, names);
    const crd_status st = make_system(w, r, &s);
    crdi_file_note_reads(w->ctx, NULL);
    if (st < 0 || !s) { return; }
    add_name(names, s->base);
    add_name(names, s->run.learned);
    for (int i = 0; i < s->unit_count; i++) {
        add_unit_files(quiet, &s->units[i], names);
        if (s->units[i].standby.model) { add_unit_files(quiet, s->units[i].standby.model, names); }
    }
    crd_system_destroy(s);
}

enum { WORDS_MOST = 1000 };
// Those of the first point, and of every word that a factor may have instead.
static crd_status add_all_files(crdi_study_worker* w, const crdi_study_run* first, crd_text* names)
{
    const crdi_study_file* f = w->f;
    crd_context* quiet = crd_context_create(NULL);
    crdi_study_value* values = crdi_new_array(w->ctx, (size_t)f->factor_count, sizeof *values);
    if (!quiet || !values) {
        crd_context_destroy(quiet);
        crd_free(w->ctx, values);
        return CRD_E_MEMORY;
    }
    crdi_study_run r = *first;
    int left = WORDS_MOST;
    add_files(w, quiet, first, names);
    r.values = values;
    for (int i = 0; i < f->factor_count; i++) {
        const crdi_study_factor* v = &f->factors[i];
        for (int k = 0; v->law == CRDI_LAW_LIST && !v->numeric && k < v->count && left; k++) {
            for (int j = 0; j < f->factor_count; j++) {
                values[j] = first->values[j];
            }
            values[i] = (crdi_study_value){.x = NAN, .text = v->texts[k]};
            add_files(w, quiet, &r, names);
            left--;
        }
    }
    crd_free(w->ctx, values);
    crd_context_destroy(quiet);
    return names->failed ? CRD_E_MEMORY : CRD_OK;
}

// Two members more: what the runs go on from, and which files they read.
static crd_status describe_files(crdi_study_worker* w, const crdi_study_run* r, crd_text* out)
{
    char hash[65];
    crd_text names;
    crd_map known;
    crdi_json_writer writer;
    crd_status st = CRD_OK;
    bool fresh = false;
    crd_text_init(&names, w->ctx);
    crdi_map_init(&known, w->ctx);
    if (w->f->state && !crdi_file_hash(w->f->state, hash)) {
        st = crdi_fail(w->ctx, CRD_E_IO, "%s:%d: state: %s cannot be read", w->f->file,
                       w->f->state_line, w->f->state);
        goto fail;
    }
    while (out->length && out->data[out->length - 1] != '}') {
        out->length--;
    }
    out->length -= out->length > 0;
    if (w->f->state) { crdi_text_add(out, ", \"state\": \"%s\"", hash); }
    crdi_text_add(out, ", \"files\": ");
    CRD_TRY(add_all_files(w, r, &names));
    crdi_json_writer_init(&writer, out, CRDI_JSON_ROWS);
    crdi_json_begin_list(&writer, NULL);
    for (const char* p = names.data; p && p < names.data + names.length; p += strlen(p) + 1) {
        const char* slash = strrchr(p, '/');
        CRD_TRY(crdi_map_add(&known, p, 0, &fresh));
        if (!fresh || strcmp(p, w->f->system) == 0 || !crdi_file_hash(p, hash)) { continue; }
        crdi_json_begin_object(&writer, NULL);
        crdi_json_put_text(&writer, "name", slash ? slash + 1 : p);
        crdi_json_put_text(&writer, "sha256", hash);
        crdi_json_end(&writer);
    }
    crdi_json_end(&writer);
    crdi_text_add(out, "}\n");
    st = out->failed ? CRD_E_MEMORY : CRD_OK;
fail:
    crdi_map_clear(&known);
    crd_text_clear(&names);
    return st;
}

crd_status crdi_study_worker_describe(crdi_study_worker* w, crdi_study_run* r, crd_text* out)
{
    crd_status st = CRD_OK;
    crd_system* s = NULL;
    crd_master* m = NULL;
    CRD_TRY(make_system(w, r, &s));
    CRD_TRY(create_run(w, s, &m));
    CRD_TRY(study_keep_check(w->keep, m));
    if (w->f->state) { CRD_TRY(begin_run(w, m, r)); }
    CRD_TRY(crd_master_describe_run(m, out));
    CRD_TRY(describe_files(w, r, out));
fail:
    crd_master_destroy(m);
    crd_system_destroy(s);
    return st;
}
