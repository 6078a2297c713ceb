// cardan compare --richardson: how large the errors of runs are that differ in their step alone.
#include "cli/compare.h"

#include <math.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { RUNS = CRD_RICHARDSON_RUNS, MOST_JSON = 64 << 20 };

static const char* const state_names[] = {
    [CRD_RICHARDSON_GOOD] = "good",           [CRD_RICHARDSON_AGREE] = "agree",
    [CRD_RICHARDSON_IRREGULAR] = "irregular", [CRD_RICHARDSON_FEW] = "few rows",
    [CRD_RICHARDSON_MISSING] = "missing",
};

// ---- the steps that the runs had ---------------------------------------------------------------

typedef struct run_step {
    double step;   // s, NaN: the file does not say
    bool variable; // it was controlled
} run_step;

static void read_step(const char* data, size_t length, run_step* out)
{
    json_t* j = json_loadb(data, length, 0, NULL); // what others attached may be anything
    const json_t* run = json_object_get(j, "run");
    const json_t* step = json_object_get(run, "step");
    const json_t* control = json_object_get(run, "control");
    out->variable = json_is_object(control) || json_is_string(control);
    if (json_is_number(step) && json_number_value(step) > 0 && !out->variable) {
        out->step = json_number_value(step);
    }
    json_decref(j);
}

// What is attached to the recording. A CSV has no room for it, and a pipe is gone once it was read.
static crd_status find_step(crd_context* ctx, const char* path, run_step* out)
{
    *out = (run_step){.step = (double)NAN};
    struct stat info;
    const char* dot = strrchr(path, '.');
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) { return CRD_OK; }
    if (dot && strcasecmp(dot, ".csv") == 0) { return CRD_OK; }
    crd_recording* r = NULL;
    crd_status st = crd_recording_open(ctx, path, &r);
    if (st < 0) { return st; }
    const crd_recording_info* what = crd_recording_describe(r);
    for (int i = 0; i < what->attachment_count && st == CRD_OK; i++) {
        const crd_attachment_info* a = &what->attachments[i];
        if (strcmp(a->name, CRD_ATTACHMENT_RUN) != 0 || a->size > MOST_JSON) { continue; }
        char* data = NULL;
        size_t length = 0;
        st = crd_recording_attachment(r, i, &data, &length);
        if (st == CRD_OK) { read_step(data, length, out); }
        crd_free(ctx, data);
    }
    crd_recording_close(r);
    return st;
}

static bool same_ratio(double a, double b)
{
    return fabs(a - b) <= 1e-6 * b;
}

// Ratios from the option, else from what the files say, else left to the rows.
static crd_status choose_ratios(crdi_cli* cli, const crdi_compare* o, crd_table* const* tables,
                                int count, run_step* steps, double* ratios)
{
    for (int i = 0; i < count; i++) {
        const crd_status st = find_step(cli->ctx, tables[i]->path, &steps[i]);
        if (st < 0) { return st; }
        if (!steps[i].variable) { continue; }
        crdi_log(cli->ctx, CRD_LOG_WARNING,
                 "%s ran with a variable step: the estimate holds only if its steps shrank "
                 "everywhere as the ratio says",
                 tables[i]->path);
    }
    for (int i = 0; i + 1 < count; i++) {
        const double quotient = steps[i].step / steps[i + 1].step;
        const double said = same_ratio(quotient, round(quotient)) ? round(quotient) : quotient;
        const bool given = !isnan(o->ratio);
        ratios[i] = given ? o->ratio : said;
        if (!(said > 1)) { continue; } // unknown, or crd_richardson_create says what is wrong
        const double expected = given ? o->ratio : 2;
        if (same_ratio(said, expected)) { continue; }
        crdi_log(cli->ctx, CRD_LOG_WARNING,
                 "%s ran with the step %.10g s and %s with %.10g s, a ratio of %.10g and not of "
                 "%.10g; the estimate takes %.10g",
                 tables[i]->path, steps[i].step, tables[i + 1]->path, steps[i + 1].step, said,
                 expected, ratios[i]);
    }
    return CRD_OK;
}

// ---- the worst signal --------------------------------------------------------------------------

// Of those whose error is known, the one with the largest relative error in the finest run.
static const crd_richardson_signal* find_worst(const crd_richardson* r)
{
    const int finest = r->run_count - 1;
    const crd_richardson_signal* worst = NULL;
    for (int i = 0; i < r->signal_count; i++) {
        const crd_richardson_signal* s = &r->signals[i];
        const double x = s->errors[finest].relative;
        if (!isnan(x) && (!worst || x > worst->errors[finest].relative)) { worst = s; }
    }
    return worst;
}

// An error that is not known is not below the limit; signals that a run lacks are not judged.
static crd_status check_limit(crdi_cli* cli, const crdi_compare* o, crd_table* const* tables,
                              const crd_richardson* r)
{
    if (isnan(o->max_error)) { return CRD_OK; }
    const int finest = r->run_count - 1;
    const crd_richardson_signal* worst = find_worst(r);
    if (worst && worst->errors[finest].relative > o->max_error) {
        return crdi_fail(cli->ctx, CRD_E_LIMIT,
                         "%s: the estimated error of %s is %.3g of its scale at %.10g s, expected "
                         "at most %g",
                         tables[finest]->path, worst->name, worst->errors[finest].relative,
                         worst->errors[finest].max_time, o->max_error);
    }
    for (int i = 0; i < r->signal_count; i++) {
        const crd_richardson_signal* s = &r->signals[i];
        if (s->state == CRD_RICHARDSON_MISSING || !isnan(s->order)) { continue; }
        return crdi_fail(cli->ctx, CRD_E_LIMIT,
                         "%s: the error of %s is unknown (%s), expected at most %g of its scale",
                         tables[finest]->path, s->name,
                         s->state == CRD_RICHARDSON_FEW ? "too few rows"
                                                        : "the runs do not converge with any order",
                         o->max_error);
    }
    return CRD_OK;
}

// ---- JSON --------------------------------------------------------------------------------------

static json_t* signal_to_json(const crd_richardson_signal* s, int run_count)
{
    json_t* j = json_object();
    json_object_set_new(j, "name", crdi_json_text(s->name));
    json_object_set_new(j, "state", json_string(state_names[s->state]));
    if (s->state == CRD_RICHARDSON_MISSING) { return j; }
    json_object_set_new(j, "rows", json_integer(s->rows));
    json_object_set_new(j, "skipped", json_integer(s->skipped));
    json_object_set_new(j, "order", crdi_json_number(s->order));
    json_object_set_new(j, "observed", crdi_json_number(s->observed));
    json_object_set_new(j, "scale", crdi_json_number(s->scale));
    json_t* differences = json_array();
    json_t* errors = json_array();
    for (int k = 0; k < run_count; k++) {
        const crd_richardson_error* x = &s->errors[k];
        json_t* e = json_object();
        json_object_set_new(e, "rms", crdi_json_number(x->rms));
        json_object_set_new(e, "max", crdi_json_number(x->max));
        json_object_set_new(e, "max_time", crdi_json_number(x->max_time));
        json_object_set_new(e, "relative", crdi_json_number(x->relative));
        json_array_append_new(errors, e);
        if (k + 1 < run_count) {
            json_array_append_new(differences, crdi_json_number(s->differences[k]));
        }
    }
    json_object_set_new(j, "differences", differences);
    json_object_set_new(j, "errors", errors);
    json_object_set_new(j, "end_time", crdi_json_number(s->end_time));
    json_object_set_new(j, "end", crdi_json_number(s->end));
    json_object_set_new(j, "extrapolated", crdi_json_number(s->extrapolated));
    return j;
}

static crd_status print_json(crdi_cli* cli, const crdi_compare* o, crd_table* const* tables,
                             const run_step* steps, const crd_richardson* r, bool kept)
{
    json_t* j = json_object();
    json_t* runs = json_array();
    json_t* ratios = json_array();
    for (int k = 0; k < r->run_count; k++) {
        json_t* run = json_object();
        json_object_set_new(run, "file", crdi_json_text(tables[k]->path));
        json_object_set_new(run, "step", crdi_json_number(steps[k].step));
        json_array_append_new(runs, run);
        if (k + 1 < r->run_count) { json_array_append_new(ratios, crdi_json_number(r->ratios[k])); }
    }
    json_object_set_new(j, "runs", runs);
    json_object_set_new(j, "ratios", ratios);
    json_object_set_new(j, "order", crdi_json_number(o->order));
    json_object_set_new(j, "start", crdi_json_number(r->start));
    json_object_set_new(j, "stop", crdi_json_number(r->stop));
    const crd_richardson_signal* worst = find_worst(r);
    json_object_set_new(j, "worst", worst ? crdi_json_text(worst->name) : json_null());
    json_object_set_new(j, "max_error", crdi_json_number(o->max_error));
    json_object_set_new(j, "kept", isnan(o->max_error) ? json_null() : json_boolean(kept));
    json_t* signals = json_array();
    for (int i = 0; i < r->signal_count; i++) {
        json_array_append_new(signals, signal_to_json(&r->signals[i], r->run_count));
    }
    json_object_set_new(j, "signals", signals);
    return crdi_json_print(cli, j);
}

// ---- text --------------------------------------------------------------------------------------

// "-" if it is not known
static void add_number(crdi_grid* g, int digits, double x)
{
    if (isnan(x)) {
        crdi_grid_add(g, "%s", "-");
    } else {
        crdi_grid_add(g, "%.*g", digits, x);
    }
}

static void add_order(crdi_grid* g, const crd_richardson_signal* s, bool given, int run_count)
{
    if (s->state != CRD_RICHARDSON_GOOD || (run_count > 2 && given && isnan(s->observed))) {
        crdi_grid_add(g, "%s", "unknown");
    } else if (run_count > 2) {
        crdi_grid_add(g, "%.3f", s->observed);
    } else {
        crdi_grid_add(g, "%.4g", s->order);
    }
}

static void print_table(crdi_cli* cli, const crdi_compare* o, const crd_richardson* r)
{
    const int finest = r->run_count - 1;
    crdi_grid g;
    crdi_grid_init(&g, cli->ctx, 6 + 2 * r->run_count, ~1U);
    crdi_grid_add(&g, "%s", "signal");
    crdi_grid_add(&g, "%s", "order");
    for (int k = 0; k <= finest; k++) {
        crdi_grid_add(&g, "%c rms", 'A' + k);
        crdi_grid_add(&g, "%c largest", 'A' + k);
    }
    crdi_grid_add(&g, "%s", "at");
    crdi_grid_add(&g, "%s", "relative");
    crdi_grid_add(&g, "%c ends", 'A' + finest);
    crdi_grid_add(&g, "%s", "extrapolated");
    for (int i = 0; i < r->signal_count; i++) {
        const crd_richardson_signal* s = &r->signals[i];
        if (s->state == CRD_RICHARDSON_MISSING || s->state == CRD_RICHARDSON_FEW) { continue; }
        if (s->state == CRD_RICHARDSON_AGREE && !o->all) { continue; }
        crdi_grid_add(&g, "%s", s->name);
        add_order(&g, s, !isnan(o->order), r->run_count);
        for (int k = 0; k <= finest; k++) {
            add_number(&g, 4, s->errors[k].rms);
            add_number(&g, 4, s->errors[k].max);
        }
        add_number(&g, 10, s->errors[finest].max_time);
        add_number(&g, 3, s->errors[finest].relative);
        add_number(&g, 10, s->end);
        add_number(&g, 10, s->extrapolated);
    }
    const bool empty = g.count == (size_t)g.columns;
    if (!empty) { crdi_grid_print(&g, stdout, ""); }
    crdi_grid_clear(&g);
}

enum { SKIPPED = CRD_RICHARDSON_MISSING + 1 }; // good or agrees, but some rows have no numbers

static bool is_in(const crd_richardson_signal* s, int state)
{
    return state == SKIPPED ? s->skipped > 0 && s->state != CRD_RICHARDSON_FEW
                            : s->state == (crd_richardson_state)state;
}

// "reason: x, y and 3 more", nothing if no signal is in this state.
static void print_state(const crd_richardson* r, int state, const char* reason)
{
    enum { SHOWN = 8 };
    int count = 0;
    for (int i = 0; i < r->signal_count; i++) {
        if (!is_in(&r->signals[i], state)) { continue; }
        if (count < SHOWN) { printf("%s%s", count ? ", " : reason, r->signals[i].name); }
        count++;
    }
    if (count > SHOWN) { printf(" and %d more", count - SHOWN); }
    if (count) { printf("\n"); }
}

static void print_runs(const crdi_compare* o, crd_table* const* tables, const run_step* steps,
                       const crd_richardson* r)
{
    for (int k = 0; k < r->run_count; k++) {
        printf("%s%c = %s", k ? ", " : "", 'A' + k, tables[k]->path);
        if (!isnan(steps[k].step)) { printf(" (step %.10g s)", steps[k].step); }
    }
    printf("; ratio of steps %.6g", r->ratios[0]);
    if (r->run_count > 2 && !same_ratio(r->ratios[0], r->ratios[1])) {
        printf(" and %.6g", r->ratios[1]);
    }
    if (!isnan(o->order)) {
        printf(", errors for order %.6g", o->order);
    } else if (r->run_count == 2) {
        printf(", order 1 assumed");
    }
    printf("\n");
}

static void print_text(crdi_cli* cli, const crdi_compare* o, crd_table* const* tables,
                       const run_step* steps, const crd_richardson* r)
{
    const int finest = r->run_count - 1;
    print_table(cli, o, r);
    print_state(r, CRD_RICHARDSON_AGREE, "runs agree to rounding: ");
    print_state(r, CRD_RICHARDSON_IRREGULAR,
                isnan(o->order) ? "no order explains the differences, errors are unknown: "
                                : "no order explains the differences: ");
    print_state(r, SKIPPED, "without the rows where a run has no finite number: ");
    print_state(r, CRD_RICHARDSON_FEW, "fewer than 3 rows with numbers: ");
    print_state(r, CRD_RICHARDSON_MISSING, "not in all files: ");
    print_runs(o, tables, steps, r);
    const crd_richardson_signal* worst = find_worst(r);
    if (worst && worst->errors[finest].max > 0) {
        printf("largest error of %s: %.3g of its scale, %s at %.10g s (%lld of %lld rows over "
               "%.10g s to %.10g s)\n",
               tables[finest]->path, worst->errors[finest].relative, worst->name,
               worst->errors[finest].max_time, (long long)worst->rows, (long long)worst->of_rows,
               r->start, r->stop);
    }
}

// ---- all of it ---------------------------------------------------------------------------------

// Few times of the coarse run in the others: their steps vary, or their grids do not fit.
static void warn_rows(crdi_cli* cli, crd_table* const* tables, const crd_richardson* r)
{
    for (int i = 0; i < r->signal_count; i++) {
        const crd_richardson_signal* s = &r->signals[i];
        const int64_t met = s->rows + s->skipped;
        if (s->state == CRD_RICHARDSON_MISSING || 2 * met >= s->of_rows) { continue; }
        crdi_log(cli->ctx, CRD_LOG_WARNING,
                 "%s: only %lld of %lld times of %s are in the other file%s as well; what happens "
                 "between them is not seen",
                 s->name, (long long)met, (long long)s->of_rows, tables[0]->path,
                 r->run_count > 2 ? "s" : "");
        return; // one tells it
    }
}

crd_status crdi_compare_richardson(crdi_cli* cli, const crdi_compare* o, crd_table* const* tables,
                                   int count, const crd_pair* pairs)
{
    crd_status st = CRD_OK;
    crd_richardson* r = NULL;
    run_step steps[RUNS];
    crd_richardson_options opt = crd_richardson_defaults();
    if (!isnan(o->relative)) { opt.relative = o->relative; }
    if (!isnan(o->absolute)) { opt.absolute = o->absolute; }
    opt.order = o->order;
    opt.patterns = o->variables.items;
    opt.pattern_count = o->variables.count;
    opt.pairs = pairs;
    opt.pair_count = o->pairs.count;
    CRD_TRY(choose_ratios(cli, o, tables, count, steps, opt.ratios));
    CRD_TRY(crd_richardson_create(cli->ctx, (const crd_table* const*)tables, count, &opt, &r));
    crdi_compare_units(cli, tables, count, o, pairs);
    warn_rows(cli, tables, r);
    const crd_status kept = check_limit(cli, o, tables, r);
    if (o->common.json) {
        CRD_TRY(print_json(cli, o, tables, steps, r, kept == CRD_OK));
    } else {
        print_text(cli, o, tables, steps, r);
        CRD_TRY(crdi_stdout_done(cli->ctx));
    }
    st = kept;
fail:
    crd_richardson_destroy(r);
    return st;
}
