// A signal of a recording on the grid of the macro steps.
#include "cardan/results.h"
#include "cli/cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Larger numbers are no measurement, and their squares could not be summed.
static const double largest = 1e150;
static const double most_samples = 1e8;

static const char* recorded_next_column(void* user)
{
    const crd_table_column** c = user;
    return (*c)->name ? ((*c)++)->name : NULL;
}

static crd_status unknown_signal(crd_context* ctx, const crd_table* t, const char* name)
{
    // The list of the table has no end mark of its own.
    crd_table_column* columns = crdi_new_array(ctx, (size_t)t->column_count + 1, sizeof *columns);
    if (!columns) { return CRD_E_MEMORY; }
    memcpy(columns, t->columns, (size_t)t->column_count * sizeof *columns);
    const crd_table_column* at = columns;
    const char* near = crdi_nearest(name, recorded_next_column, &at);
    const crd_status st =
        near
            ? crdi_fail(ctx, CRD_E_NOT_FOUND, "%s: no signal '%s', did you mean '%s'?", t->path,
                        name, near)
            : crdi_fail(ctx, CRD_E_NOT_FOUND,
                        "%s: no signal '%s'; 'cardan info' lists those that it has", t->path, name);
    crd_free(ctx, columns);
    return st;
}

static crd_status recorded_find_column(crd_context* ctx, const crd_table* t, const char* name,
                                       int* out)
{
    if (!name && t->column_count != 1) {
        return crdi_fail(ctx, CRD_E_RANGE, "%s has %d signals, expected --signal with one of them",
                         t->path, t->column_count);
    }
    *out = name ? crd_table_find(t, name) : 0;
    if (*out < 0) { return unknown_signal(ctx, t, name); }
    const crd_table_column* c = &t->columns[*out];
    if (c->texts) {
        return crdi_fail(ctx, CRD_E_RANGE, "%s: '%s' is text, expected a signal with numbers",
                         t->path, c->name);
    }
    if (c->rows < 2) {
        return crdi_fail(ctx, CRD_E_RANGE, "%s: '%s' has %lld row%s, expected at least 2", t->path,
                         c->name, (long long)c->rows, crdi_plural(c->rows));
    }
    return CRD_OK;
}

static int recorded_by_size(const void* a, const void* b)
{
    const double x = *(const double*)a, y = *(const double*)b;
    return x < y ? -1 : x > y;
}

// The usual distance of two rows, and whether all have it (gaps have more).
static crd_status find_raster(crd_context* ctx, const crd_table_column* c, double* raster,
                              bool* uniform)
{
    const int64_t n = c->rows - 1;
    double* d = crdi_new_array(ctx, (size_t)n, sizeof *d);
    if (!d) { return CRD_E_MEMORY; }
    for (int64_t i = 0; i < n; i++) {
        d[i] = c->time[i + 1] - c->time[i];
    }
    qsort(d, (size_t)n, sizeof *d, recorded_by_size);
    char text[32];
    snprintf(text, sizeof text, "%.9g", d[n / 2]); // times are rounded, their differences look odd
    (void)crdi_parse_double(text, strlen(text), raster);
    *uniform = *raster > 0;
    for (int64_t i = 0; i < n && *uniform; i++) {
        const double steps = d[i] / *raster;
        *uniform = steps < 1.5 ? fabs(steps - 1) < 0.01 : fabs(steps - nearbyint(steps)) < 0.05;
    }
    crd_free(ctx, d);
    return CRD_OK;
}

static bool is_usable(double x)
{
    return fabs(x) <= largest; // false for NaN
}

// The value at t by the line between its two rows; NaN in a gap. `*row` is the last at or before t.
static double recorded_value_at(const crd_table_column* c, double t, double longest, int64_t* row)
{
    while (*row + 1 < c->rows && c->time[*row + 1] <= t) {
        (*row)++;
    }
    const int64_t i = *row;
    const double t0 = c->time[i], y0 = c->values[i];
    if (t - t0 <= 1e-9 * longest || i + 1 == c->rows) { return is_usable(y0) ? y0 : NAN; }
    const double t1 = c->time[i + 1], y1 = c->values[i + 1];
    if (!is_usable(y0) || !is_usable(y1) || t1 - t0 > longest) { return NAN; }
    return y0 + (y1 - y0) * (t - t0) / (t1 - t0);
}

static crd_status sample(crd_context* ctx, const crd_table* t, int column,
                         const crdi_recorded_options* o, crdi_recorded* out)
{
    const crd_table_column* c = &t->columns[column];
    bool uniform = false;
    crd_status st = find_raster(ctx, c, &out->raster, &uniform);
    if (st < 0) { return st; }
    if (isnan(o->step) && !uniform) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "%s: the rows of '%s' are not equally far apart (%g s mostly), expected "
                         "--step with the macro step",
                         t->path, c->name, out->raster);
    }
    out->step = isnan(o->step) ? out->raster : o->step;
    const double first = c->time[0], last = c->time[c->rows - 1], half = 0.5 * out->raster;
    out->start = isnan(o->from) ? first : o->from;
    const double end = isnan(o->to) ? last : o->to;
    if (!(out->start >= first - half && end <= last + half && out->start < end)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "%s: from %g s to %g s, expected times within %g s to %g s", t->path,
                         out->start, end, first, last);
    }
    const double steps = (end - out->start) / out->step;
    if (!(steps < most_samples)) {
        return crdi_fail(ctx, CRD_E_RANGE, "%s: %g s in steps of %g s, expected at most %g of them",
                         t->path, end - out->start, out->step, most_samples);
    }
    out->count = (int64_t)(steps + 1e-6) + 1;
    out->y = crdi_new_array(ctx, (size_t)out->count, sizeof *out->y);
    if (!out->y) { return CRD_E_MEMORY; }
    const double longest = 1.5 * fmax(out->step, out->raster);
    out->gap_from = out->gap_to = NAN;
    int64_t row = 0;
    for (int64_t i = 0; i < out->count; i++) {
        const double at = out->start + (double)i * out->step;
        out->y[i] = recorded_value_at(c, at, longest, &row);
        if (isnan(out->y[i])) {
            if (out->missing++ == 0) { out->gap_from = at; }
            if (isnan(out->gap_to) || at - out->gap_to < 1.5 * out->step) { out->gap_to = at; }
        }
    }
    if (out->missing == out->count) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "%s: '%s' has no number from %g s to %g s (those beyond %g do not count)",
                         t->path, c->name, out->start, end, largest);
    }
    return CRD_OK;
}

crd_status crdi_recorded_load(crd_context* ctx, const char* path, const crdi_recorded_options* o,
                              crdi_recorded* out)
{
    *out = (crdi_recorded){.ctx = ctx};
    crd_table* t = NULL;
    int column = 0;
    crd_status st = CRD_OK;
    CRD_TRY(crd_table_read(ctx, path, &t));
    CRD_TRY(recorded_find_column(ctx, t, o->signal, &column));
    CRD_TRY(sample(ctx, t, column, o, out));
    out->name = crdi_strdup(ctx, t->columns[column].name);
    out->unit = out->name ? crdi_strdup(ctx, t->columns[column].unit) : NULL;
    if (!out->unit) { CRD_TRY(CRD_E_MEMORY); }
fail:
    crd_table_destroy(t);
    if (st < 0) { crdi_recorded_clear(out); }
    return st;
}

void crdi_recorded_clear(crdi_recorded* r)
{
    crd_free(r->ctx, r->y);
    crd_free(r->ctx, r->name);
    crd_free(r->ctx, r->unit);
    r->y = NULL, r->name = r->unit = NULL;
}

crd_status crdi_recorded_without_gaps(const crdi_recorded* r, const char* path)
{
    if (r->missing == 0) { return CRD_OK; }
    return crdi_fail(r->ctx, CRD_E_RANGE,
                     "%s: '%s' has a gap from %g s to %g s (%lld sample%s missing in all), "
                     "expected a stretch without one: choose it with --from and --to",
                     path, r->name, r->gap_from, r->gap_to, (long long)r->missing,
                     crdi_plural(r->missing));
}
