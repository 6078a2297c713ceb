// Which rows of the runs belong together is worked out once for each combination of rasters; then
// every signal is two passes: sizes of the differences, from which the order comes, and errors.
#include "results/compare.h"
#include "shared/base.h"
#include "shared/base_system.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = CRD_RICHARDSON_RUNS, FEWEST_ROWS = 3 };
static const double lowest_order = 0.1, highest_order = 8;

typedef struct estimation {
    crd_richardson view; // first, so that the caller's pointer is ours
    crd_context* ctx;
    crd_arena arena;
    const crd_table* const* runs; // during create
    const crd_richardson_options* opt;
    const double* times[RUNS]; // of the rasters that were met last
    int64_t (*rows)[RUNS];     // (row_count) rows of these that have one time
    size_t capacity;
    int64_t row_count;
    int64_t most_rows; // so far
    double* distances; // scratch of `distance`
    size_t distance_capacity;
    crd_richardson_signal* signals;
} estimation;

crd_richardson_options crd_richardson_defaults(void)
{
    return (crd_richardson_options){
        .order = (double)NAN, .ratios = {(double)NAN, (double)NAN}, .relative = 1e-12};
}

// ---- order -------------------------------------------------------------------------------------

// (r1^p - 1) / (1 - r2^-p), which grows with p
static double growth(double p, double r1, double r2)
{
    return expm1(p * log(r1)) / -expm1(-p * log(r2));
}

double crd_richardson_order(double coarse, double fine, double r1, double r2)
{
    const double quotient = coarse / fine;
    if (!(r1 > 1) || !(r2 > 1) || !isfinite(quotient)) { return (double)NAN; }
    double low = lowest_order, high = highest_order;
    // Rounding must not push an order that is just at a bound over it.
    const double slack = 1e-9;
    if (!(quotient >= growth(low, r1, r2) * (1 - slack)) ||
        !(quotient <= growth(high, r1, r2) * (1 + slack))) {
        return (double)NAN;
    }
    for (int i = 0; i < 60; i++) {
        const double middle = 0.5 * (low + high);
        if (growth(middle, r1, r2) < quotient) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return 0.5 * (low + high);
}

// ---- rows that belong together -----------------------------------------------------------------

// The median distance of rows that are not at one time, NaN if there are none.
static crd_status median_step(estimation* e, const double* time, int64_t rows, double* out)
{
    double* d =
        crdi_grow(e->ctx, e->distances, &e->distance_capacity, (size_t)rows, sizeof *e->distances);
    if (!d) { return CRD_E_MEMORY; }
    e->distances = d;
    size_t n = 0;
    for (int64_t i = 1; i < rows; i++) {
        const double step = time[i] - time[i - 1];
        if (step > 0 && isfinite(step)) { d[n++] = step; }
    }
    qsort(d, n, sizeof *d, crdi_by_value);
    *out = n ? d[n / 2] : (double)NAN;
    return CRD_OK;
}

static int64_t group_end(const crd_table_column* c, int64_t first, double until)
{
    int64_t i = first;
    while (i < c->rows && c->time[i] <= until) {
        i++;
    }
    return i;
}

// The rows at the time of row i of the first run, up to row `last` of it.
static void match_time(estimation* e, const crd_table_column* const* c, int64_t i, int64_t last,
                       double slack, int64_t next[RUNS])
{
    const int runs = e->view.run_count;
    const double t = c[0]->time[i];
    int64_t size[RUNS] = {last - i};
    bool alike = true;
    next[0] = i;
    for (int k = 1; k < runs; k++) {
        while (next[k] < c[k]->rows && c[k]->time[next[k]] < t - slack) {
            next[k]++;
        }
        size[k] = group_end(c[k], next[k], t + slack) - next[k];
        if (size[k] == 0) { return; }
        alike = alike && size[k] == size[0];
    }
    for (int64_t j = alike ? 0 : size[0] - 1; j < size[0]; j++) {
        int64_t* row = e->rows[e->row_count++];
        for (int k = 0; k < runs; k++) {
            row[k] = next[k] + (alike ? j : size[k] - 1);
        }
    }
}

static crd_status match_rows(estimation* e, const crd_table_column* const* c)
{
    const int runs = e->view.run_count;
    bool known = true;
    for (int k = 0; k < runs; k++) {
        known = known && e->times[k] && e->times[k] == c[k]->time;
    }
    if (known) { return CRD_OK; }
    double shortest = (double)INFINITY;
    for (int k = 0; k < runs; k++) {
        double step;
        const crd_status st = median_step(e, c[k]->time, c[k]->rows, &step);
        if (st < 0) { return st; }
        shortest = fmin(shortest, step);
    }
    int64_t(*grown)[RUNS] =
        crdi_grow(e->ctx, e->rows, &e->capacity, (size_t)c[0]->rows, sizeof *e->rows);
    if (!grown) { return CRD_E_MEMORY; }
    e->rows = grown;
    e->row_count = 0;
    int64_t next[RUNS] = {0};
    for (int64_t i = 0, last; i < c[0]->rows; i = last) {
        const double t = c[0]->time[i];
        last = group_end(c[0], i + 1, t);
        // Times that were summed up step by step are off by more than their last digit.
        const double slack =
            fmax(isfinite(shortest) ? 1e-6 * shortest : 0, 4 * DBL_EPSILON * fabs(t));
        match_time(e, c, i, last, slack, next);
    }
    for (int k = 0; k < runs; k++) {
        e->times[k] = c[k]->time;
    }
    if (e->row_count > e->most_rows) { e->most_rows = e->row_count; }
    return CRD_OK;
}

// ---- one signal --------------------------------------------------------------------------------

static bool finite_row(const estimation* e, const crd_table_column* const* c, const int64_t* row)
{
    for (int k = 0; k < e->view.run_count; k++) {
        if (!isfinite(c[k]->values[row[k]])) { return false; }
    }
    return true;
}

// Rows, scale and the sizes of differences.
static void measure_differences(const estimation* e, const crd_table_column* const* c,
                                crd_richardson_signal* s)
{
    const int last = e->view.run_count - 1;
    double sum[2] = {0, 0};
    for (int64_t i = 0; i < e->row_count; i++) {
        const int64_t* row = e->rows[i];
        if (!finite_row(e, c, row)) {
            s->skipped++;
            continue;
        }
        s->rows++;
        s->scale = fmax(s->scale, fabs(c[last]->values[row[last]]));
        for (int k = 0; k < last; k++) {
            const double d = c[k]->values[row[k]] - c[k + 1]->values[row[k + 1]];
            sum[k] += d * d;
        }
    }
    for (int k = 0; k < last; k++) {
        s->differences[k] = s->rows ? sqrt(sum[k] / (double)s->rows) : (double)NAN;
    }
}

static void judge_order(const estimation* e, crd_richardson_signal* s)
{
    const crd_richardson_options* opt = e->opt;
    const int last = e->view.run_count - 1;
    const bool given = !isnan(opt->order);
    const double* r = e->view.ratios;
    if (s->rows < FEWEST_ROWS) {
        s->state = CRD_RICHARDSON_FEW;
        return;
    }
    s->order = given ? opt->order : 1;
    if (s->differences[last - 1] <= opt->absolute + opt->relative * s->scale) {
        s->state = CRD_RICHARDSON_AGREE;
        return;
    }
    s->state = CRD_RICHARDSON_GOOD;
    if (last < 2) { return; }
    s->observed = crd_richardson_order(s->differences[0], s->differences[1], r[0], r[1]);
    if (isnan(s->observed)) { s->state = CRD_RICHARDSON_IRREGULAR; }
    if (!given) { s->order = s->observed; }
}

// The finest run's error from the last difference, the others' by adding the differences to it.
static void estimate_errors(const estimation* e, const crd_table_column* const* c,
                            crd_richardson_signal* s)
{
    const int last = e->view.run_count - 1;
    const double part = 1 / expm1(s->order * log(e->view.ratios[last - 1]));
    double sum[RUNS] = {0};
    for (int k = 0; k <= last; k++) {
        s->errors[k] = (crd_richardson_error){.max = -1};
    }
    for (int64_t i = 0; i < e->row_count; i++) {
        const int64_t* row = e->rows[i];
        if (!finite_row(e, c, row)) { continue; }
        const double end = c[last]->values[row[last]];
        double error = 0;
        for (int k = last; k >= 0; k--) {
            const int from = k == last ? last - 1 : k;
            const double d = c[from]->values[row[from]] - c[from + 1]->values[row[from + 1]];
            error = k == last ? part * d : error + d;
            sum[k] += error * error;
            if (k == last) { s->extrapolated = end - error; }
            if (fabs(error) > s->errors[k].max) {
                s->errors[k].max = fabs(error);
                s->errors[k].max_time = c[0]->time[row[0]];
            }
        }
        s->end_time = c[0]->time[row[0]];
        s->end = end;
    }
    for (int k = 0; k <= last; k++) {
        crd_richardson_error* x = &s->errors[k];
        x->rms = sqrt(sum[k] / (double)s->rows);
        x->relative = x->max > 0 ? x->max / s->scale : 0;
    }
}

static crd_status estimate_signal(estimation* e, const crd_table_column* const* c,
                                  crd_richardson_signal* s)
{
    const crd_status st = match_rows(e, c);
    if (st < 0) { return st; }
    s->of_rows = c[0]->rows;
    measure_differences(e, c, s);
    judge_order(e, s);
    if (!isnan(s->order)) { estimate_errors(e, c, s); }
    if (e->row_count) {
        crd_richardson* v = &e->view;
        v->start = fmin(v->start, c[0]->time[e->rows[0][0]]);
        v->stop = fmax(v->stop, c[0]->time[e->rows[e->row_count - 1][0]]);
    }
    return CRD_OK;
}

// ---- all signals -------------------------------------------------------------------------------

// `name` belongs to the arena, NULL: there was no memory for it.
static crd_richardson_signal* richardson_add_signal(estimation* e, const char* name)
{
    const double nan = (double)NAN;
    const crd_richardson_error unknown = {nan, nan, nan, nan};
    if (!name) { return NULL; }
    crd_richardson_signal* s = &e->signals[e->view.signal_count++];
    *s = (crd_richardson_signal){.name = name,
                                 .state = CRD_RICHARDSON_MISSING,
                                 .order = nan,
                                 .observed = nan,
                                 .differences = {nan, nan},
                                 .errors = {unknown, unknown, unknown},
                                 .end_time = nan,
                                 .end = nan,
                                 .extrapolated = nan};
    return s;
}

static bool is_real(const crd_table_column* c)
{
    return !c->texts && (c->type == CRD_FLOAT32 || c->type == CRD_FLOAT64);
}

// The signal of the first run in which it is column i, found in the others as well.
static crd_status richardson_add_column(estimation* e, int run, int i)
{
    const crd_table* t = e->runs[run];
    const crd_table_column* c[RUNS] = {NULL};
    const char* name = t->columns[i].name;
    bool everywhere = true;
    for (int k = 0; k < e->view.run_count; k++) {
        const int j = k == run ? i : crdi_signal_partner(t, i, e->runs[k]);
        if (j >= 0 && k < run) { return CRD_OK; } // it was there already
        if (j >= 0 && !is_real(&e->runs[k]->columns[j])) { return CRD_OK; }
        everywhere = everywhere && j >= 0;
        c[k] = j >= 0 ? &e->runs[k]->columns[j] : NULL;
    }
    crd_richardson_signal* s =
        richardson_add_signal(e, crdi_arena_text(&e->arena, name, strlen(name)));
    if (!s) { return CRD_E_MEMORY; }
    return everywhere ? estimate_signal(e, c, s) : CRD_OK;
}

static crd_status estimate_all(estimation* e)
{
    const crd_richardson_options* opt = e->opt;
    for (int run = 0; run < e->view.run_count; run++) {
        const crd_table* t = e->runs[run];
        for (int i = 0; i < t->column_count; i++) {
            if (!crdi_signal_wanted(opt->patterns, opt->pattern_count, t->columns[i].name)) {
                continue;
            }
            const crd_status st = richardson_add_column(e, run, i);
            if (st < 0) { return st; }
        }
    }
    return CRD_OK;
}

// Signals that have two names.
static crd_status estimate_pairs(estimation* e)
{
    for (int i = 0; i < e->opt->pair_count; i++) {
        const crd_pair* p = &e->opt->pairs[i];
        const crd_table_column* c[RUNS] = {NULL};
        for (int k = 0; k < e->view.run_count; k++) {
            const char* name = k == 0 ? p->a : p->b;
            const int j = crd_table_find(e->runs[k], name);
            if (j < 0) {
                return crdi_fail(e->ctx, CRD_E_NOT_FOUND, "%s has no signal '%s'", e->runs[k]->path,
                                 name);
            }
            c[k] = &e->runs[k]->columns[j];
            if (!is_real(c[k])) {
                return crdi_fail(e->ctx, CRD_E_RANGE,
                                 "%s: '%s' is not a real signal: its error has no order",
                                 e->runs[k]->path, name);
            }
        }
        crd_richardson_signal* s =
            richardson_add_signal(e, crdi_arena_format(&e->arena, "%s=%s", p->a, p->b));
        if (!s) { return CRD_E_MEMORY; }
        const crd_status st = estimate_signal(e, c, s);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

// ---- options, create ---------------------------------------------------------------------------

static crd_status check_richardson_options(const estimation* e)
{
    const crd_richardson_options* opt = e->opt;
    if (!isnan(opt->order) && !(opt->order > 0 && isfinite(opt->order))) {
        return crdi_fail(e->ctx, CRD_E_RANGE, "compare: order %g, expected > 0", opt->order);
    }
    if (!(opt->relative >= 0) || !(opt->absolute >= 0)) {
        return crdi_fail(e->ctx, CRD_E_RANGE,
                         "compare: tolerances %g (relative) and %g (absolute), expected >= 0",
                         opt->relative, opt->absolute);
    }
    for (int i = 0; i < opt->pattern_count; i++) {
        bool fits = false;
        for (int k = 0; k < e->view.run_count; k++) {
            fits = fits || crdi_pattern_fits(opt->patterns[i], e->runs[k]);
        }
        if (!fits) {
            return crdi_fail(e->ctx, CRD_E_NOT_FOUND, "compare: no signal matches '%s'",
                             opt->patterns[i]);
        }
    }
    return CRD_OK;
}

static crd_status ratio_of_rows(estimation* e, int i, double* out)
{
    const crd_table *a = e->runs[i], *b = e->runs[i + 1];
    double h[2];
    for (int k = 0; k < 2; k++) {
        const crd_table* t = e->runs[i + k];
        const crd_status st = median_step(e, t->time, t->rows, &h[k]);
        if (st < 0) { return st; }
        if (isnan(h[k])) {
            return crdi_fail(e->ctx, CRD_E_RANGE, "compare: %s has %lld row%s, expected at least 3",
                             t->path, (long long)t->rows, t->rows == 1 ? "" : "s");
        }
    }
    const double ratio = h[0] / h[1], whole = round(ratio);
    *out = fabs(ratio - whole) <= 1e-6 * whole ? whole : ratio;
    if (*out == 1) {
        return crdi_fail(
            e->ctx, CRD_E_RANGE,
            "compare: the rows of %s and %s are %g s apart, so the ratio of their steps "
            "has to be given: 2 if the second ran with half the step",
            a->path, b->path, h[0]);
    }
    return CRD_OK;
}

static crd_status find_ratios(estimation* e)
{
    for (int i = 0; i + 1 < e->view.run_count; i++) {
        double r = e->opt->ratios[i];
        if (isnan(r)) {
            const crd_status st = ratio_of_rows(e, i, &r);
            if (st < 0) { return st; }
        }
        if (!(r > 1 && isfinite(r))) {
            return crdi_fail(e->ctx, CRD_E_RANGE,
                             "compare: the step of %s is %g times that of %s, expected > 1: the "
                             "coarser run comes first",
                             e->runs[i]->path, r, e->runs[i + 1]->path);
        }
        e->view.ratios[i] = r;
    }
    return CRD_OK;
}

static crd_status check_result(const estimation* e)
{
    const crd_richardson* v = &e->view;
    bool met = false;
    for (int i = 0; i < v->signal_count; i++) {
        met = met || v->signals[i].state != CRD_RICHARDSON_MISSING;
    }
    const char *first = e->runs[0]->path, *finest = e->runs[v->run_count - 1]->path;
    if (!met) {
        return crdi_fail(e->ctx, CRD_E_NOT_FOUND, "compare: no real signal of %s is in %s as well",
                         first, v->run_count > 2 ? "the others" : finest);
    }
    if (e->most_rows < FEWEST_ROWS) {
        return crdi_fail(e->ctx, CRD_E_RANGE,
                         "compare: %lld of the %lld times of %s %s in %s as well, expected at "
                         "least %d: the runs have to be recorded at the same times",
                         (long long)e->most_rows, (long long)e->runs[0]->rows, first,
                         e->most_rows == 1 ? "is" : "are", v->run_count > 2 ? "the others" : finest,
                         FEWEST_ROWS);
    }
    return CRD_OK;
}

static crd_status allocate_signals(estimation* e)
{
    size_t most = (size_t)e->opt->pair_count;
    for (int k = 0; k < e->view.run_count && e->opt->pair_count == 0; k++) {
        most += (size_t)e->runs[k]->column_count;
    }
    e->signals = crdi_arena_new(&e->arena, most, sizeof *e->signals);
    e->view.signals = e->signals;
    return e->signals ? CRD_OK : CRD_E_MEMORY;
}

crd_status crd_richardson_create(crd_context* ctx, const crd_table* const* runs, int run_count,
                                 const crd_richardson_options* opt, crd_richardson** out)
{
    crd_status st = CRD_OK;
    const crd_richardson_options defaults = crd_richardson_defaults();
    if (run_count < 2 || run_count > RUNS) {
        return crdi_fail(ctx, CRD_E_RANGE, "compare: %d runs, expected 2 or 3", run_count);
    }
    estimation* e = crdi_new(ctx, sizeof *e);
    if (!e) { return CRD_E_MEMORY; }
    e->ctx = ctx;
    e->runs = runs;
    e->opt = opt ? opt : &defaults;
    e->view = (crd_richardson){.run_count = run_count,
                               .ratios = {(double)NAN, (double)NAN},
                               .start = (double)INFINITY,
                               .stop = -(double)INFINITY};
    crd_arena_init(&e->arena, ctx);
    CRD_TRY(check_richardson_options(e));
    CRD_TRY(find_ratios(e));
    CRD_TRY(allocate_signals(e));
    CRD_TRY(e->opt->pair_count ? estimate_pairs(e) : estimate_all(e));
    CRD_TRY(check_result(e));
    *out = &e->view;
fail:
    crd_free(ctx, e->rows);
    crd_free(ctx, e->distances);
    e->rows = NULL;
    e->distances = NULL;
    if (st < 0) { crd_richardson_destroy(&e->view); }
    return st;
}

void crd_richardson_destroy(crd_richardson* view)
{
    estimation* e = (estimation*)view;
    if (!e) { return; }
    crd_free(e->ctx, e->rows);
    crd_free(e->ctx, e->distances);
    crd_arena_clear(&e->arena);
    crd_free(e->ctx, e);
}
