// Pictures of a study: what `study plot` draws, and `study report` has in it.
#include "cli/study/pictures.h"
#include "shared/base_system.h"
#include "shared/results.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BINS_MOST = 60, CLASSES = 6, STEPS_MOST = 400 };

crd_status crdi_pictures_init(crdi_pictures* p, crdi_cli* cli, crdi_study* s, const char* where)
{
    crd_text all;
    *p = (crdi_pictures){.cli = cli, .f = crdi_study_get_file(s)};
    crd_arena_init(&p->arena, cli->ctx);
    crd_text_init(&all, cli->ctx);
    crdi_text_add(&all, "state IN (%d, %d)%s%s%s", CRDI_RUN_DONE, CRDI_RUN_LIMIT,
                  where ? " AND (" : "", where ? where : "", where ? ")" : "");
    crd_status st = all.failed ? CRD_E_MEMORY : crdi_study_select(s, all.data, NULL, 0, &p->rows);
    crd_text_clear(&all);
    if (st >= 0 && p->rows.count == 0) {
        st = crdi_fail(cli->ctx, CRD_E_RANGE, "%s: no run is done yet that could be drawn",
                       crdi_study_database(s));
    }
    p->panels = crdi_arena_new(&p->arena, CRDI_PICTURES, sizeof *p->panels);
    p->scales = crdi_arena_new(&p->arena, CRDI_PICTURES, sizeof *p->scales);
    return st < 0 ? st : crdi_arena_status(&p->arena);
}

void crdi_pictures_clear(crdi_pictures* p)
{
    crdi_study_rows_clear(&p->rows);
    if (p->arena.ctx) { crd_arena_clear(&p->arena); }
}

static crd_status column(crdi_pictures* p, const char* name, size_t length, int* out)
{
    for (int i = 0; i < p->rows.columns; i++) {
        const char* known = p->rows.names[i];
        if (strlen(known) != length || memcmp(known, name, length) != 0) { continue; }
        if (p->rows.texts[i]) {
            return crdi_fail(p->cli->ctx, CRD_E_UNSUPPORTED, "'%s' has words, not numbers", known);
        }
        *out = i;
        return CRD_OK;
    }
    return crdi_fail(p->cli->ctx, CRD_E_NOT_FOUND, "there is no column '%.*s' in the study",
                     (int)length, name);
}

// "X,Y" in `count` columns.
static crd_status columns_of(crdi_pictures* p, const char* text, int count, int* out)
{
    const char* at = text;
    for (int i = 0; i < count; i++) {
        const size_t n = strcspn(at, ",");
        const bool last = i == count - 1;
        if (!n || (at[n] == 0) != last) {
            return crdi_fail(p->cli->ctx, CRD_E_RANGE, "'%s', expected %d columns, as %s", text,
                             count,
                             count == 1   ? "peak"
                             : count == 2 ? "motor.k,peak"
                                          : "a.k,b.m,peak");
        }
        const crd_status st = column(p, at, n, &out[i]);
        if (st < 0) { return st; }
        at += n + (at[n] == ',');
    }
    return CRD_OK;
}

static const char* label(crdi_pictures* p, int i)
{
    const char* unit = i < p->f->factor_count ? p->f->factors[i].unit : "";
    return crdi_arena_format(&p->arena, *unit ? "%s / %s" : "%s", p->rows.names[i], unit);
}

static crd_status next(crdi_pictures* p, int series, crd_plot_panel** panel, crd_plot_scale** scale,
                       crd_plot_series** list)
{
    if (p->count == CRDI_PICTURES) {
        return crdi_fail(p->cli->ctx, CRD_E_RANGE, "more than %d pictures in one file",
                         CRDI_PICTURES);
    }
    *panel = &p->panels[p->count];
    *scale = &p->scales[p->count++];
    *list = crdi_arena_new(&p->arena, (size_t)series, sizeof **list);
    (*panel)->series = *list;
    (*panel)->title = "";
    (*scale)->own_x = true;
    return *list ? CRD_OK : CRD_E_MEMORY;
}

crd_status crdi_picture_scatter(crdi_pictures* p, const char* text)
{
    int c[2] = {0};
    crd_plot_panel* panel = NULL;
    crd_plot_scale* scale = NULL;
    crd_plot_series* s = NULL;
    crd_status st = CRD_OK;
    CRD_TRY(columns_of(p, text, 2, c));
    CRD_TRY(next(p, 1, &panel, &scale, &s));
    if (!s) { return CRD_E_MEMORY; }
    s[0] = (crd_plot_series){.label = p->rows.names[c[1]],
                             .x = p->rows.numbers[c[0]],
                             .y = p->rows.numbers[c[1]],
                             .count = p->rows.count,
                             .points = true};
    panel->series_count = 1;
    panel->y_label = label(p, c[1]);
    scale->x_label = label(p, c[0]);
fail:
    return st;
}

// The finite numbers of a column, sorted.
static double* sorted(crdi_pictures* p, int c, int64_t* count)
{
    double* x = crdi_arena_new(&p->arena, (size_t)p->rows.count, sizeof *x);
    *count = 0;
    for (int64_t i = 0; x && i < p->rows.count; i++) {
        if (isfinite(p->rows.numbers[c][i])) { x[(*count)++] = p->rows.numbers[c][i]; }
    }
    if (x) { qsort(x, (size_t)*count, sizeof *x, crdi_by_value); }
    return x;
}

// Bins as wide as Freedman and Diaconis (1981) say, 2 IQR / n^(1/3); an outline.
crd_status crdi_picture_histogram(crdi_pictures* p, const char* text)
{
    int c = 0;
    int64_t n = 0;
    crd_plot_panel* panel = NULL;
    crd_plot_scale* scale = NULL;
    crd_plot_series* s = NULL;
    crd_status st = CRD_OK;
    CRD_TRY(columns_of(p, text, 1, &c));
    const double* x = sorted(p, c, &n);
    if (!x) { CRD_TRY(CRD_E_MEMORY); }
    if (n == 0) { return crdi_fail(p->cli->ctx, CRD_E_RANGE, "'%s' has no number to draw", text); }
    const double low = x[0], high = x[n - 1], range = high - low;
    const double width = 2 * (x[3 * n / 4] - x[n / 4]) / cbrt((double)n);
    int bins = width > 0 && range / width < BINS_MOST ? (int)ceil(range / width) : BINS_MOST;
    if (bins < 1 || range == 0) { bins = 1; }
    const double part = range > 0 ? range / bins : fmax(fabs(low), 1) * 1e-3;
    double* u = crdi_arena_new(&p->arena, 2 * (size_t)bins + 2, sizeof *u);
    double* v = crdi_arena_new(&p->arena, 2 * (size_t)bins + 2, sizeof *v);
    CRD_TRY(next(p, 1, &panel, &scale, &s));
    if (!s) { return CRD_E_MEMORY; }
    if (!u || !v) { CRD_TRY(CRD_E_MEMORY); }
    int64_t at = 0;
    u[0] = low;
    for (int b = 0; b < bins; b++) {
        const int64_t first = at;
        while (at < n && (b == bins - 1 || x[at] < low + (b + 1) * part)) {
            at++;
        }
        u[2 * b + 1] = low + b * part;
        u[2 * b + 2] = low + (b + 1) * part;
        v[2 * b + 1] = v[2 * b + 2] = (double)(at - first);
    }
    u[2 * bins + 1] = low + bins * part;
    s[0] = (crd_plot_series){.label = p->rows.names[c], .x = u, .y = v, .count = 2 * bins + 2};
    panel->series_count = 1;
    panel->y_label = "runs";
    scale->x_label = label(p, c);
    scale->y_low = 0;
    scale->keep_shape = true;
    double most = 0;
    for (int i = 0; i < 2 * bins + 2; i++) {
        most = fmax(most, v[i]);
    }
    scale->y_high = most * 1.05;
fail:
    return st;
}

// Mean so far with its interval, over the number of runs.
crd_status crdi_picture_convergence(crdi_pictures* p, const char* text)
{
    int c = 0;
    crd_plot_panel* panel = NULL;
    crd_plot_scale* scale = NULL;
    crd_plot_series* s = NULL;
    crd_status st = CRD_OK;
    double* at[4];
    CRD_TRY(columns_of(p, text, 1, &c));
    CRD_TRY(next(p, 3, &panel, &scale, &s));
    if (!s) { return CRD_E_MEMORY; }
    for (int i = 0; i < 4; i++) {
        at[i] = crdi_arena_new(&p->arena, STEPS_MOST + 2, sizeof *at[i]);
        if (!at[i]) { CRD_TRY(CRD_E_MEMORY); }
    }
    const double* y = p->rows.numbers[c];
    double mean = 0, square = 0;
    int64_t n = 0, points = 0, shown = 0;
    const int64_t every = p->rows.count / STEPS_MOST + 1;
    for (int64_t i = 0; i < p->rows.count; i++) {
        if (!isfinite(y[i])) { continue; }
        n++;
        const double d = y[i] - mean;
        mean += d / (double)n;
        square += d * (y[i] - mean);
        if (n < 3 || (n - shown < every && i + 1 < p->rows.count)) { continue; }
        shown = n;
        const double half = crdi_student_quantile(0.975, (double)(n - 1)) *
                            sqrt(square / (double)(n - 1) / (double)n);
        at[0][points] = (double)n;
        at[1][points] = mean;
        at[2][points] = mean - half;
        at[3][points++] = mean + half;
    }
    static const char* const labels[] = {"mean", "95 %: from", "to"};
    for (int i = 0; i < 3; i++) {
        s[i] = (crd_plot_series){
            .label = labels[i], .x = at[0], .y = at[i + 1], .count = points, .dashed = i > 0};
    }
    panel->series_count = 3;
    panel->y_label = label(p, c);
    scale->x_label = "runs";
fail:
    return st;
}

// How far a column moves when a factor goes from its lowest to its highest fifth: means of both,
// the widest above.
typedef struct swing {
    const char* name;
    double low, high, size;
} swing;

static int by_size(const void* a, const void* b)
{
    const double x = ((const swing*)a)->size, y = ((const swing*)b)->size;
    return x < y ? -1 : x > y;
}

crd_status crdi_picture_tornado(crdi_pictures* p, const char* text)
{
    int c = 0, n = 0;
    crd_plot_panel* panel = NULL;
    crd_plot_scale* scale = NULL;
    crd_plot_series* s = NULL;
    crd_status st = CRD_OK;
    const int factors = p->f->factor_count;
    swing* list = crdi_arena_new(&p->arena, (size_t)factors, sizeof *list);
    const char** names = crdi_arena_new(&p->arena, (size_t)factors, sizeof *names);
    double* ends = crdi_arena_new(&p->arena, 4 * (size_t)factors, sizeof *ends);
    if (!list || !names || !ends) { return CRD_E_MEMORY; }
    CRD_TRY(columns_of(p, text, 1, &c));
    for (int i = 0; i < factors; i++) {
        int64_t count = 0, low = 0, high = 0;
        if (p->rows.texts[i]) { continue; }
        const double* x = sorted(p, i, &count);
        if (!x) { CRD_TRY(CRD_E_MEMORY); }
        if (count < 2 || x[0] == x[count - 1]) { continue; }
        const double below = x[count / 5], above = x[count - 1 - count / 5];
        swing* w = &list[n];
        *w = (swing){.name = p->rows.names[i]};
        for (int64_t k = 0; k < p->rows.count; k++) {
            const double u = p->rows.numbers[i][k], y = p->rows.numbers[c][k];
            if (!isfinite(y)) { continue; }
            if (u <= below) {
                w->low += y;
                low++;
            }
            if (u >= above) {
                w->high += y;
                high++;
            }
        }
        if (!low || !high) { continue; }
        w->low /= (double)low;
        w->high /= (double)high;
        w->size = fabs(w->high - w->low);
        n++;
    }
    if (n == 0) {
        return crdi_fail(p->cli->ctx, CRD_E_RANGE, "no factor of the study has two numbers");
    }
    qsort(list, (size_t)n, sizeof *list, by_size);
    CRD_TRY(next(p, n, &panel, &scale, &s));
    if (!s) { return CRD_E_MEMORY; }
    for (int i = 0; i < n; i++) {
        double* e = ends + 4 * (size_t)i;
        e[0] = list[i].low;
        e[1] = list[i].high;
        e[2] = e[3] = i;
        names[i] = list[i].name;
        s[i] = (crd_plot_series){.label = list[i].name, .x = e, .y = e + 2, .count = 2};
    }
    panel->series_count = n;
    scale->x_label = label(p, c);
    scale->y_names = names;
    scale->y_name_count = n;
    scale->y_low = -0.5;
    scale->y_high = n - 0.5;
    scale->keep_shape = true;
fail:
    return st;
}

// Points of the plane of two factors in classes of the third column, by its quantiles.
crd_status crdi_picture_heat(crdi_pictures* p, const char* text)
{
    int c[3] = {0};
    int64_t n = 0;
    crd_plot_panel* panel = NULL;
    crd_plot_scale* scale = NULL;
    crd_plot_series* s = NULL;
    crd_status st = CRD_OK;
    CRD_TRY(columns_of(p, text, 3, c));
    const double* z = sorted(p, c[2], &n);
    if (!z) { CRD_TRY(CRD_E_MEMORY); }
    if (n == 0) {
        return crdi_fail(p->cli->ctx, CRD_E_RANGE, "'%s' has no number to draw",
                         p->rows.names[c[2]]);
    }
    CRD_TRY(next(p, CLASSES, &panel, &scale, &s));
    if (!s) { return CRD_E_MEMORY; }
    for (int k = 0; k < CLASSES; k++) {
        const double from = z[k * n / CLASSES], to = z[(k + 1) * n / CLASSES - (k == CLASSES - 1)];
        double* x = crdi_arena_new(&p->arena, (size_t)p->rows.count, sizeof *x);
        double* y = crdi_arena_new(&p->arena, (size_t)p->rows.count, sizeof *y);
        int64_t count = 0;
        if (!x || !y) { CRD_TRY(CRD_E_MEMORY); }
        for (int64_t i = 0; i < p->rows.count; i++) {
            const double v = p->rows.numbers[c[2]][i];
            if (!(v >= from) || (k < CLASSES - 1 && !(v < to))) { continue; }
            x[count] = p->rows.numbers[c[0]][i];
            y[count++] = p->rows.numbers[c[1]][i];
        }
        if (count == 0) { continue; }
        s[panel->series_count++] =
            (crd_plot_series){.label = crdi_arena_format(&p->arena, "%.3g .. %.3g", from, to),
                              .x = x,
                              .y = y,
                              .count = count,
                              .points = true};
    }
    panel->title = p->rows.names[c[2]];
    panel->y_label = label(p, c[1]);
    scale->x_label = label(p, c[0]);
fail:
    return st;
}

crd_status crdi_pictures_usual(crdi_pictures* p)
{
    crd_status st = CRD_OK;
    for (int i = 0; i < p->f->kept_count && p->count < CRDI_PICTURES && st >= 0; i++) {
        st = crdi_picture_histogram(p, p->f->kept[i].name);
    }
    return st;
}

crd_status crdi_pictures_scatters(crdi_pictures* p)
{
    enum { KEPT = 4, FACTORS = 3 };
    crd_status st = CRD_OK;
    for (int i = 0; i < p->f->kept_count && i < KEPT && st >= 0; i++) {
        for (int k = 0; k < p->f->factor_count && k < FACTORS && st >= 0; k++) {
            char text[600];
            if (p->rows.texts[k] || p->count == CRDI_PICTURES) { continue; }
            snprintf(text, sizeof text, "%s,%s", p->f->factors[k].name, p->f->kept[i].name);
            st = crdi_picture_scatter(p, text);
        }
    }
    return st;
}

crd_status crdi_pictures_svg(crdi_pictures* p, crd_text* out)
{
    const crd_plot_options picture = {.scales = p->scales};
    return crdi_plot_put(p->cli->ctx, out, &picture, p->panels, p->count);
}
