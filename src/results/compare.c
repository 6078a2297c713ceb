// Which rows of B belong to a row of A is worked out once; then every signal is one pass.
#include "cardan/results.h"

#include <math.h>
#include <string.h>

typedef struct match {
    int64_t row; // of B
    double part; // towards the next row of B, 0: the row itself
} match;

typedef struct comparison {
    crd_comparison view; // first, so that the caller's pointer is ours
    crd_context* ctx;
    crdi_arena arena;
    const crd_table *a, *b; // during crd_compare
    const crd_compare_options* opt;
    match* matches; // (last - first)
    int64_t first, last;
    crd_difference* signals;
} comparison;

crd_compare_options crd_compare_defaults(void)
{
    return (crd_compare_options){.relative = 1e-9, .absolute = 1e-12};
}

static bool wanted(const crd_compare_options* opt, const char* name)
{
    for (int i = 0; i < opt->pattern_count; i++) {
        if (crdi_glob(opt->patterns[i], name)) { return true; }
    }
    return opt->pattern_count == 0;
}

static bool matches_any(const char* pattern, const crd_table* t)
{
    for (int i = 0; i < t->column_count; i++) {
        if (crdi_glob(pattern, t->columns[i].name)) { return true; }
    }
    return false;
}

static crd_status check_options(const comparison* c)
{
    const crd_compare_options* opt = c->opt;
    if (!(opt->relative >= 0) || !(opt->absolute >= 0)) {
        return crdi_fail(c->ctx, CRD_E_RANGE,
                         "compare: tolerances %g (relative) and %g (absolute), expected >= 0",
                         opt->relative, opt->absolute);
    }
    for (int i = 0; i < opt->pattern_count; i++) {
        if (!matches_any(opt->patterns[i], c->a) && !matches_any(opt->patterns[i], c->b)) {
            return crdi_fail(c->ctx, CRD_E_NOT_FOUND, "compare: no signal of %s or %s matches '%s'",
                             c->a->path, c->b->path, opt->patterns[i]);
        }
    }
    return CRD_OK;
}

// The times that both cover
static crd_status find_overlap(comparison* c)
{
    const crd_table *a = c->a, *b = c->b;
    if (a->rows == 0 && b->rows == 0) { return CRD_OK; }
    if (a->rows == 0 || b->rows == 0) {
        return crdi_fail(c->ctx, CRD_E_RANGE, "compare: %s has no rows",
                         a->rows == 0 ? a->path : b->path);
    }
    const double a_stop = a->time[a->rows - 1], b_stop = b->time[b->rows - 1];
    c->view.start = a->time[0] > b->time[0] ? a->time[0] : b->time[0];
    c->view.stop = a_stop < b_stop ? a_stop : b_stop;
    while (c->first < a->rows && a->time[c->first] < c->view.start) {
        c->first++;
    }
    c->last = c->first;
    while (c->last < a->rows && a->time[c->last] <= c->view.stop) {
        c->last++;
    }
    if (c->first == c->last) {
        return crdi_fail(
            c->ctx, CRD_E_RANGE,
            "compare: %s covers %g to %g s, %s covers %g to %g s: no time of the first "
            "lies in the second",
            a->path, a->time[0], a_stop, b->path, b->time[0], b_stop);
    }
    return CRD_OK;
}

static crd_status match_rows(comparison* c)
{
    const double *ta = c->a->time, *tb = c->b->time;
    c->matches = crdi_new_array(c->ctx, (size_t)(c->last - c->first), sizeof *c->matches);
    if (!c->matches) { return CRD_E_MEMORY; }
    int64_t low = 0, high = 0; // rows of B at this time: low .. high - 1
    int64_t nth = 0;           // of the rows of A at this time
    for (int64_t i = c->first; i < c->last; i++) {
        nth = i > c->first && ta[i] == ta[i - 1] ? nth + 1 : 0;
        while (low < c->b->rows && tb[low] < ta[i]) {
            low++;
        }
        high = high < low ? low : high;
        while (high < c->b->rows && tb[high] <= ta[i]) {
            high++;
        }
        match* m = &c->matches[i - c->first];
        if (low == high) {
            *m = (match){low - 1, (ta[i] - tb[low - 1]) / (tb[low] - tb[low - 1])};
        } else if (i + 1 == c->a->rows || ta[i + 1] != ta[i] || low + nth >= high) {
            *m = (match){high - 1, 0};
        } else {
            *m = (match){low + nth, 0};
        }
    }
    return CRD_OK;
}

static double size_of(const double* v, int64_t rows)
{
    double low = (double)INFINITY, high = -(double)INFINITY;
    for (int64_t i = 0; i < rows; i++) {
        if (!isfinite(v[i])) { continue; }
        low = fmin(low, v[i]);
        high = fmax(high, v[i]);
    }
    if (low > high) { return 0; }
    const double range = high - low;
    return range > 0 ? fmin(range, 1.7976931348623157e308) : fabs(high);
}

static double value_of(const double* v, match m)
{
    if (m.part == 0 || v[m.row] == v[m.row + 1]) { return v[m.row]; }
    return v[m.row] + m.part * (v[m.row + 1] - v[m.row]);
}

// Infinite where a difference has no size
static double error_of(double a, double b)
{
    if (a == b || (isnan(a) && isnan(b))) { return 0; }
    const double error = fabs(a - b);
    return isnan(error) ? (double)INFINITY : error;
}

static bool same_text(const crd_table_column* a, const crd_table_column* b, int64_t i, int64_t j)
{
    if (a->texts && b->texts) { return strcmp(a->texts[i], b->texts[j]) == 0; }
    return a->values[i] == b->values[j]; // a number against a text that may be one
}

static void compare_signal(const comparison* c, int in_a, int in_b, crd_difference* d)
{
    const crd_table_column *a = &c->a->columns[in_a], *b = &c->b->columns[in_b];
    const bool text = a->texts || b->texts;
    d->tolerance = c->opt->absolute + c->opt->relative * size_of(a->values, c->a->rows);
    double sum = 0;
    int64_t count = 0;
    for (int64_t i = c->first; i < c->last; i++) {
        const match m = c->matches[i - c->first];
        const double va = a->values[i], vb = text ? b->values[m.row] : value_of(b->values, m);
        const double error = !text                       ? error_of(va, vb)
                             : same_text(a, b, i, m.row) ? 0
                                                         : (double)INFINITY;
        if (isfinite(error)) {
            sum += error * error;
            count++;
        }
        if (error > d->tolerance && !d->differs) {
            d->differs = true;
            d->first_time = c->a->time[i];
        }
        if (error > d->max_error || i == c->first) {
            d->max_error = error;
            d->max_error_time = c->a->time[i];
            d->value_a = va;
            d->value_b = vb;
        }
    }
    d->rms_error = count ? sqrt(sum / (double)count) : 0;
}

// Signals that have two names.
static crd_status compare_pairs(comparison* c)
{
    c->signals = crdi_arena_new(&c->arena, (size_t)c->opt->pair_count, sizeof *c->signals);
    if (!c->signals) { return CRD_E_MEMORY; }
    c->view.signals = c->signals;
    for (int k = 0; k < c->opt->pair_count; k++) {
        const crd_pair* p = &c->opt->pairs[k];
        const int i = crd_table_find(c->a, p->a), j = crd_table_find(c->b, p->b);
        if (i < 0 || j < 0) {
            return crdi_fail(c->ctx, CRD_E_NOT_FOUND, "%s has no signal '%s'",
                             i < 0 ? c->a->path : c->b->path, i < 0 ? p->a : p->b);
        }
        crd_difference* d = &c->signals[c->view.signal_count++];
        *d = (crd_difference){.first_time = (double)NAN, .max_error_time = (double)NAN};
        d->name = crdi_arena_format(&c->arena, "%s=%s", p->a, p->b);
        if (!d->name) { return CRD_E_MEMORY; }
        compare_signal(c, i, j, d);
        c->view.different_count += d->differs;
    }
    return CRD_OK;
}

static crd_status compare_all(comparison* c)
{
    const size_t most = (size_t)c->a->column_count + (size_t)c->b->column_count;
    c->signals = crdi_arena_new(&c->arena, most, sizeof *c->signals);
    if (!c->signals) { return CRD_E_MEMORY; }
    c->view.signals = c->signals;
    for (int side = 0; side < 2; side++) {
        const crd_table *t = side ? c->b : c->a, *other = side ? c->a : c->b;
        for (int i = 0; i < t->column_count; i++) {
            const char* name = t->columns[i].name;
            const int j = crd_table_find(other, name);
            if (!wanted(c->opt, name) || (side && j >= 0)) { continue; }
            crd_difference* d = &c->signals[c->view.signal_count++];
            *d = (crd_difference){.first_time = (double)NAN, .max_error_time = (double)NAN};
            d->name = crdi_arena_text(&c->arena, name, strlen(name));
            if (!d->name) { return CRD_E_MEMORY; }
            if (j >= 0) {
                compare_signal(c, i, j, d);
            } else {
                d->only_in_a = !side;
                d->only_in_b = side;
                d->differs = true;
            }
            c->view.different_count += d->differs;
        }
    }
    return CRD_OK;
}

crd_status crd_compare(crd_context* ctx, const crd_table* a, const crd_table* b,
                       const crd_compare_options* opt, crd_comparison** out)
{
    crd_status st = CRD_OK;
    const crd_compare_options defaults = crd_compare_defaults();
    comparison* c = crdi_new(ctx, sizeof *c);
    if (!c) { return CRD_E_MEMORY; }
    c->ctx = ctx;
    c->a = a;
    c->b = b;
    c->opt = opt ? opt : &defaults;
    crdi_arena_init(&c->arena, ctx);
    CRD_TRY(check_options(c));
    CRD_TRY(find_overlap(c));
    CRD_TRY(match_rows(c));
    CRD_TRY(c->opt->pair_count ? compare_pairs(c) : compare_all(c));
    crdi_free(ctx, c->matches);
    c->matches = NULL;
    *out = &c->view;
    return CRD_OK;
fail:
    crd_comparison_destroy(&c->view);
    return st;
}

void crd_comparison_destroy(crd_comparison* view)
{
    comparison* c = (comparison*)view;
    if (!c) { return; }
    crdi_free(c->ctx, c->matches);
    crdi_arena_clear(&c->arena);
    crdi_free(c->ctx, c);
}
