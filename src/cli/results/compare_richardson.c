// cardan compare --richardson: how large the errors of runs are that differ in their step alone.
#include "cli/results/compare.h"

#include <math.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { RUNS = CRD_RICHARDSON_RUNS };

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

static void read_step(crd_context* ctx, const char* data, size_t length, run_step* out)
{
    crd_arena arena;
    crdi_json* j = NULL; // what others attached may be anything
    crd_arena_init(&arena, ctx);
    if (crdi_json_parse_most(&arena, data, length, CRDI_JSON_RUN_BYTES, (crdi_json_source){"", 0},
                             &j) == CRD_OK) {
        const crdi_json* run = crdi_json_member(j, "run");
        const crdi_json* step = crdi_json_member(run, "step");
        const crdi_json* control = crdi_json_member(run, "control");
        out->variable =
            control && (control->kind == CRDI_JSON_OBJECT || control->kind == CRDI_JSON_TEXT);
        if (step && step->kind == CRDI_JSON_NUMBER && step->number > 0 && !out->variable) {
            out->step = step->number;
        }
    }
    crd_arena_clear(&arena);
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
        if (strcmp(a->name, CRD_ATTACHMENT_RUN) != 0 || a->size > CRDI_JSON_RUN_BYTES) { continue; }
        char* data = NULL;
        size_t length = 0;
        st = crd_recording_attachment(r, i, &data, &length);
        if (st == CRD_OK) { read_step(ctx, data, length, out); }
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

static void compare_richardson_put_signal(crdi_result* j, const crd_richardson_signal* s,
                                          int run_count)
{
    crdi_put(j, TEXT("name", s->name), TEXT("state", state_names[s->state]));
    if (s->state == CRD_RICHARDSON_MISSING) { return; }
    crdi_put(j, INT("rows", s->rows), INT("skipped", s->skipped), REAL("order", s->order),
             REAL("observed", s->observed), REAL("scale", s->scale));
    crdi_result* differences = crdi_array(j, "differences");
    crdi_result* errors = crdi_array(j, "errors");
    for (int k = 0; k < run_count; k++) {
        const crd_richardson_error* x = &s->errors[k];
        crdi_result* e = crdi_row(errors);
        crdi_put(e, REAL("rms", x->rms), REAL("max", x->max), REAL("max_time", x->max_time),
                 REAL("relative", x->relative));
        if (k + 1 < run_count) { crdi_add(differences, REAL(NULL, s->differences[k])); }
    }
    crdi_put(j, REAL("end_time", s->end_time), REAL("end", s->end),
             REAL("extrapolated", s->extrapolated));
}

// "-" if it is not known
static const char* compare_richardson_number(crdi_result* row, int digits, double x)
{
    return isnan(x) ? "-" : crdi_worded(row, "%.*g", digits, x);
}

static const char* order_shown(crdi_result* row, const crd_richardson_signal* s, bool given,
                               int run_count)
{
    if (s->state != CRD_RICHARDSON_GOOD || (run_count > 2 && given && isnan(s->observed))) {
        return "unknown";
    }
    return run_count > 2 ? crdi_worded(row, "%.3f", s->observed)
                         : crdi_worded(row, "%.4g", s->order);
}

// "A rms", "A largest", ...: keys of cells that are their titles.
static const char* const run_titles[RUNS][3] = {
    {">A rms", ">A largest", ">A ends"},
    {">B rms", ">B largest", ">B ends"},
    {">C rms", ">C largest", ">C ends"},
};

static void compare_richardson_put_table(crdi_result* out, const crdi_compare* o,
                                         const crd_richardson* r, crdi_result* signals)
{
    static crdi_column columns[6 + 2 * RUNS + 1];
    const int finest = r->run_count - 1;
    int n = 0;
    columns[n++] = (crdi_column){"signal", "name", "%s"};
    columns[n++] = (crdi_column){">order", "shown order", "%s"};
    for (int k = 0; k <= finest; k++) {
        columns[n++] = (crdi_column){run_titles[k][0], run_titles[k][0], "%s"};
        columns[n++] = (crdi_column){run_titles[k][1], run_titles[k][1], "%s"};
    }
    columns[n++] = (crdi_column){">at", "at", "%s"};
    columns[n++] = (crdi_column){">relative", "relative", "%s"};
    columns[n++] = (crdi_column){run_titles[finest][2], "end", "%.10g"};
    columns[n++] = (crdi_column){">extrapolated", "extrapolated", "%.10g"};
    columns[n] = (crdi_column){0};
    for (int i = 0; i < r->signal_count; i++) {
        const crd_richardson_signal* s = &r->signals[i];
        crdi_result* row = crdi_row(signals);
        compare_richardson_put_signal(row, s, r->run_count);
        if (s->state == CRD_RICHARDSON_MISSING || s->state == CRD_RICHARDSON_FEW ||
            (s->state == CRD_RICHARDSON_AGREE && !o->all)) {
            crdi_only_json(row);
            continue;
        }
        crdi_put(row, CELL("shown order", order_shown(row, s, !isnan(o->order), r->run_count)));
        for (int k = 0; k <= finest; k++) {
            crdi_put(row,
                     CELL(run_titles[k][0], compare_richardson_number(row, 4, s->errors[k].rms)),
                     CELL(run_titles[k][1], compare_richardson_number(row, 4, s->errors[k].max)));
        }
        crdi_put(row, CELL("at", compare_richardson_number(row, 10, s->errors[finest].max_time)),
                 CELL("relative", compare_richardson_number(row, 3, s->errors[finest].relative)));
    }
    crdi_show_table(out, signals, columns, "");
}

enum { SKIPPED = CRD_RICHARDSON_MISSING + 1 }; // good or agrees, but some rows have no numbers

static bool is_in(const crd_richardson_signal* s, int state)
{
    return state == SKIPPED ? s->skipped > 0 && s->state != CRD_RICHARDSON_FEW
                            : s->state == (crd_richardson_state)state;
}

// "reason: x, y and 3 more", nothing if no signal is in this state.
static void say_state(crdi_result* out, const crd_richardson* r, int state, const char* reason)
{
    enum { SHOWN = 8 };
    int count = 0;
    for (int i = 0; i < r->signal_count; i++) {
        if (!is_in(&r->signals[i], state)) { continue; }
        if (count < SHOWN) { crdi_say(out, "%s%s", count ? ", " : reason, r->signals[i].name); }
        count++;
    }
    if (count > SHOWN) { crdi_say(out, " and %d more", count - SHOWN); }
    if (count) { crdi_say(out, "\n"); }
}

static void put_runs(crdi_result* out, const crdi_compare* o, crd_table* const* tables,
                     const run_step* steps, const crd_richardson* r)
{
    crdi_result* runs = crdi_array(out, "runs");
    for (int k = 0; k < r->run_count; k++) {
        crdi_put(crdi_row(runs), TEXT("file", tables[k]->path), REAL("step", steps[k].step));
    }
    crdi_put_numbers(out, "ratios", r->ratios, r->run_count - 1);
    crdi_put(out, REAL("order", o->order), REAL("start", r->start), REAL("stop", r->stop));
}

static void say_runs(crdi_result* out, const crdi_compare* o, crd_table* const* tables,
                     const run_step* steps, const crd_richardson* r)
{
    for (int k = 0; k < r->run_count; k++) {
        crdi_say(out, "%s%c = %s", k ? ", " : "", 'A' + k, tables[k]->path);
        if (!isnan(steps[k].step)) { crdi_say(out, " (step %.10g s)", steps[k].step); }
    }
    crdi_say(out, "; ratio of steps %.6g", r->ratios[0]);
    if (r->run_count > 2 && !same_ratio(r->ratios[0], r->ratios[1])) {
        crdi_say(out, " and %.6g", r->ratios[1]);
    }
    if (!isnan(o->order)) {
        crdi_say(out, ", errors for order %.6g", o->order);
    } else if (r->run_count == 2) {
        crdi_say(out, ", order 1 assumed");
    }
    crdi_say(out, "\n");
}

static void put_estimate(crdi_result* out, const crdi_compare* o, crd_table* const* tables,
                         const run_step* steps, const crd_richardson* r, bool kept)
{
    const int finest = r->run_count - 1;
    const crd_richardson_signal* worst = find_worst(r);
    put_runs(out, o, tables, steps, r);
    crdi_put(out, TEXT("worst", worst ? worst->name : NULL), REAL("max_error", o->max_error),
             ONLY_IF(!isnan(o->max_error), BOOL("kept", kept)));
    compare_richardson_put_table(out, o, r, crdi_array(out, "signals"));
    say_state(out, r, CRD_RICHARDSON_AGREE, "runs agree to rounding: ");
    say_state(out, r, CRD_RICHARDSON_IRREGULAR,
              isnan(o->order) ? "no order explains the differences, errors are unknown: "
                              : "no order explains the differences: ");
    say_state(out, r, SKIPPED, "without the rows where a run has no finite number: ");
    say_state(out, r, CRD_RICHARDSON_FEW, "fewer than 3 rows with numbers: ");
    say_state(out, r, CRD_RICHARDSON_MISSING, "not in all files: ");
    say_runs(out, o, tables, steps, r);
    if (worst && worst->errors[finest].max > 0) {
        crdi_say(out,
                 "largest error of %s: %.3g of its scale, %s at %.10g s (%lld of %lld rows over "
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
                                   int count, const crd_pair* pairs, crdi_result* out)
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
    CRD_TRY(crdi_compare_units(cli, tables, count, o, pairs));
    CRD_TRY(choose_ratios(cli, o, tables, count, steps, opt.ratios));
    CRD_TRY(crd_richardson_create(cli->ctx, (const crd_table* const*)tables, count, &opt, &r));
    warn_rows(cli, tables, r);
    st = check_limit(cli, o, tables, r);
    put_estimate(out, o, tables, steps, r, st == CRD_OK);
fail:
    crd_richardson_destroy(r);
    return st;
}
