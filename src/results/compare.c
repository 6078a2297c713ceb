// Which rows of B belong to a row of A is worked out once for each pair of rasters; then every
// signal is one pass.
#include "results/compare.h"
#include "shared/base.h"
#include "shared/base_units.h"

#include <math.h>
#include <string.h>

typedef struct match {
    int64_t row; // of B
    double part; // towards the next row of B, 0: the row itself
} match;

typedef struct comparison {
    crd_comparison view; // first, so that the caller's pointer is ours
    crd_context* ctx;
    crd_arena arena;
    const crd_table *a, *b; // during crd_compare
    const crd_compare_options* opt;
    match* matches; // (last - first), of the pair of rasters that was met last
    size_t capacity;
    const double *time_a, *time_b; // which these are
    int64_t first, last;
    int overlaps; // signals so far whose times meet
    crd_difference* signals;
} comparison;

crd_compare_options crd_compare_defaults(void)
{
    return (crd_compare_options){.relative = 1e-9, .absolute = 1e-12};
}

bool crdi_signal_wanted(const char* const* patterns, int count, const char* name)
{
    for (int i = 0; i < count; i++) {
        if (crdi_glob(patterns[i], name)) { return true; }
    }
    return count == 0;
}

bool crdi_pattern_fits(const char* pattern, const crd_table* t)
{
    for (int i = 0; i < t->column_count; i++) {
        if (crdi_glob(pattern, t->columns[i].name)) { return true; }
    }
    return false;
}

static crd_status check_compare_options(const comparison* c)
{
    const crd_compare_options* opt = c->opt;
    if (!(opt->relative >= 0) || !(opt->absolute >= 0)) {
        return crdi_fail(c->ctx, CRD_E_RANGE,
                         "compare: tolerances %g (relative) and %g (absolute), expected >= 0",
                         opt->relative, opt->absolute);
    }
    for (int i = 0; i < opt->pattern_count; i++) {
        if (!crdi_pattern_fits(opt->patterns[i], c->a) &&
            !crdi_pattern_fits(opt->patterns[i], c->b)) {
            return crdi_fail(c->ctx, CRD_E_NOT_FOUND, "compare: no signal of %s or %s matches '%s'",
                             c->a->path, c->b->path, opt->patterns[i]);
        }
    }
    return CRD_OK;
}

// Times of a column, or of a table's first raster.
typedef struct raster {
    const double* time;
    int64_t rows;
} raster;

// The times that both cover; first == last if there are none.
static void find_overlap(comparison* c, raster a, raster b)
{
    c->first = c->last = 0;
    if (a.rows == 0 || b.rows == 0) { return; }
    const double a_stop = a.time[a.rows - 1], b_stop = b.time[b.rows - 1];
    const double start = a.time[0] > b.time[0] ? a.time[0] : b.time[0];
    const double stop = a_stop < b_stop ? a_stop : b_stop;
    while (c->first < a.rows && a.time[c->first] < start) {
        c->first++;
    }
    c->last = c->first;
    while (c->last < a.rows && a.time[c->last] <= stop) {
        c->last++;
    }
    if (c->first == c->last) { return; }
    c->view.start = c->overlaps == 0 || start < c->view.start ? start : c->view.start;
    c->view.stop = c->overlaps == 0 || stop > c->view.stop ? stop : c->view.stop;
    c->overlaps++;
}

static crd_status nothing_meets(const comparison* c)
{
    const crd_table *a = c->a, *b = c->b;
    if (a->rows == 0 || b->rows == 0) {
        return crdi_fail(c->ctx, CRD_E_RANGE, "compare: %s has no rows",
                         a->rows == 0 ? a->path : b->path);
    }
    return crdi_fail(c->ctx, CRD_E_RANGE,
                     "compare: %s covers %g to %g s, %s covers %g to %g s: no time of the first "
                     "lies in the second",
                     a->path, a->time[0], a->time[a->rows - 1], b->path, b->time[0],
                     b->time[b->rows - 1]);
}

static crd_status match_rows(comparison* c, raster a, raster b)
{
    if (c->time_a && c->time_a == a.time && c->time_b == b.time) { return CRD_OK; }
    find_overlap(c, a, b);
    const double *ta = a.time, *tb = b.time;
    match* grown = crdi_grow(c->ctx, c->matches, &c->capacity, (size_t)(c->last - c->first),
                             sizeof *c->matches);
    if (!grown) { return CRD_E_MEMORY; }
    c->matches = grown;
    int64_t low = 0, high = 0; // rows of B at this time: low .. high - 1
    int64_t nth = 0;           // of the rows of A at this time
    for (int64_t i = c->first; i < c->last; i++) {
        nth = i > c->first && ta[i] == ta[i - 1] ? nth + 1 : 0;
        while (low < b.rows && tb[low] < ta[i]) {
            low++;
        }
        high = high < low ? low : high;
        while (high < b.rows && tb[high] <= ta[i]) {
            high++;
        }
        match* m = &c->matches[i - c->first];
        if (low == high) {
            *m = (match){low - 1, (ta[i] - tb[low - 1]) / (tb[low] - tb[low - 1])};
        } else if (i + 1 == a.rows || ta[i + 1] != ta[i] || low + nth >= high) {
            *m = (match){high - 1, 0};
        } else {
            *m = (match){low + nth, 0};
        }
    }
    c->time_a = a.time;
    c->time_b = b.time;
    return CRD_OK;
}

static double compare_size_of(const double* v, int64_t rows)
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

// Of a file, in the unit of A.
typedef struct scale {
    double factor, offset;
} scale;

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
    if (a->values[i] == b->values[j]) { return true; } // a number against a text that may be one
    // A column of empty texts looks like one of numbers that are not there.
    const char* text = a->texts ? a->texts[i] : b->texts[j];
    return !text[0] && isnan(a->values[i]) && isnan(b->values[j]);
}

// A constant that a file keeps apart, by its first and last time (Modelica results), against a
// signal with more rows: there the times of B count, or what happens between would not be seen.
static bool is_apart(const comparison* c, const crd_table_column* a, const crd_table_column* b)
{
    return a->rows == 2 && b->rows > 2 && a->time != c->a->time && !a->texts && !b->texts &&
           a->values[0] == a->values[1];
}

static crd_status compare_signal(comparison* c, int in_a, int in_b, crd_difference* d)
{
    const crd_table_column *a = &c->a->columns[in_a], *b = &c->b->columns[in_b];
    const bool text = a->texts || b->texts, swap = is_apart(c, a, b);
    const crd_table_column *x = swap ? b : a, *y = swap ? a : b; // y at the times of x
    scale of_b = {1, 0};
    const bool meet = text || strcmp(a->unit, b->unit) == 0 ||
                      crdi_unit_convert(b->unit, a->unit, &of_b.factor, &of_b.offset);
    const scale sx = swap ? of_b : (scale){1, 0}, sy = swap ? (scale){1, 0} : of_b;
    const crd_status st = match_rows(c, (raster){x->time, x->rows}, (raster){y->time, y->rows});
    if (st < 0) { return st; }
    d->tolerance = c->opt->absolute + c->opt->relative * compare_size_of(a->values, a->rows);
    // No time in common, or metres and newtons
    if (!meet || (c->first == c->last && (a->rows || b->rows))) {
        d->differs = true;
        d->max_error = d->rms_error = (double)INFINITY;
        return CRD_OK;
    }
    double sum = 0;
    int64_t count = 0;
    for (int64_t i = c->first; i < c->last; i++) {
        const match m = c->matches[i - c->first];
        const double vx = sx.factor * x->values[i] + sx.offset;
        const double vy =
            sy.factor * (text ? y->values[m.row] : value_of(y->values, m)) + sy.offset;
        const double error = !text                       ? error_of(vx, vy)
                             : same_text(x, y, i, m.row) ? 0
                                                         : (double)INFINITY;
        if (isfinite(error)) {
            sum += error * error;
            count++;
        }
        if (error > d->tolerance && !d->differs) {
            d->differs = true;
            d->first_time = x->time[i];
        }
        if (error > d->max_error || i == c->first) {
            d->max_error = error;
            d->max_error_time = x->time[i];
            d->value_a = swap ? vy : vx;
            d->value_b = swap ? vx : vy;
        }
    }
    d->rms_error = count ? sqrt(sum / (double)count) : 0;
    return CRD_OK;
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
        const crd_status st = compare_signal(c, i, j, d);
        if (st < 0) { return st; }
        c->view.different_count += d->differs;
    }
    return CRD_OK;
}

int crdi_signal_partner(const crd_table* t, int i, const crd_table* other)
{
    const char* name = t->columns[i].name;
    int k = crd_table_find(t, name), j = crd_table_find(other, name);
    while (k < i && j >= 0) {
        do {
            k++;
        } while (k < i && strcmp(t->columns[k].name, name) != 0);
        do {
            j = j + 1 < other->column_count ? j + 1 : -1;
        } while (j >= 0 && strcmp(other->columns[j].name, name) != 0);
    }
    return j;
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
            const int j = crdi_signal_partner(t, i, other);
            if (!crdi_signal_wanted(c->opt->patterns, c->opt->pattern_count, name) ||
                (side && j >= 0)) {
                continue;
            }
            crd_difference* d = &c->signals[c->view.signal_count++];
            *d = (crd_difference){.first_time = (double)NAN, .max_error_time = (double)NAN};
            d->name = crdi_arena_text(&c->arena, name, strlen(name));
            if (!d->name) { return CRD_E_MEMORY; }
            if (j >= 0) {
                const crd_status st = compare_signal(c, i, j, d);
                if (st < 0) { return st; }
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
    crd_arena_init(&c->arena, ctx);
    CRD_TRY(check_compare_options(c));
    CRD_TRY(c->opt->pair_count ? compare_pairs(c) : compare_all(c));
    if (c->overlaps == 0) { // no signal that both have, or none at a time that both have
        find_overlap(c, (raster){a->time, a->rows}, (raster){b->time, b->rows});
        if (c->overlaps == 0 && (a->rows || b->rows)) {
            st = nothing_meets(c);
            goto fail;
        }
    }
    crd_free(ctx, c->matches);
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
    crd_free(c->ctx, c->matches);
    crd_arena_clear(&c->arena);
    crd_free(c->ctx, c);
}
