// The error-space procedure for any family of curves f_p, Baumann 2024, sec. 2.2, by its four
// steps:
//   1. past errors e_i(p) = f_p(what was known then) - y_i of the newest steps i, at supporting
//      points p_j, exactly
//   2. what they will be at the end of this macro step, E(p_j) = sum_i w_i e_i(p_j), the polynomial
//      through (or, of more errors than its order needs, near) the past ones
//   3. the p of least |E|, with a line or a parabola between the supporting points. Of several
//   zeros
//      that one whose past errors are the smallest
//   4. yhat = f_p at the macro step; it is held until the next
// For curves that are linear in p this is error_space.c, which does not need the points.
#include "coupling/algorithm.h"

#include <math.h>
#include <string.h>

enum { ERRORS_MAX = 32, REACH = 3 }; // samples that a curve is made of

typedef struct error_curves {
    crd_family family;
    crd_fit fit;
    int errors, k_max, count;
    crd_real p[CRD_POINTS_MAX];
    crd_real* w; // ((k_max + 1) x errors) continuation of the errors
} error_curves;

// f_p, `tau` steps after y[0]. `size`: unit of p where it is a slope.
static crd_real curve_at(crd_family family, crd_real p, crd_real size, const crd_real* y, int tau)
{
    crd_real value = y[0], change = y[0] - y[1], before = y[1] - y[2];
    if (family == CRD_FAMILY_LINE) { return value + p * size * tau; }
    const crd_real turn = 2 * cos(p);
    for (int j = 0; j < tau; j++) {
        const crd_real next = family == CRD_FAMILY_DECAY ? p * change : turn * change - before;
        before = change;
        change = next;
        value += change;
    }
    return value;
}

static crd_real error_at(const error_curves* c, crd_real p, crd_real size, const crd_real* y, int k,
                         int i)
{
    return curve_at(c->family, p, size, y + i + k + 1, k + 1) - y[i];
}

// The largest change among the newest k + 3 samples; the slope that EROS finds is at most 2 k + 3
// times that.
static crd_real size_of(const crd_real* y, int k)
{
    crd_real most = 0;
    for (int i = 0; i < k + 2; i++) {
        most = fmax(most, fabs(y[i] - y[i + 1]));
    }
    return most * (2 * k + 3);
}

// Zero between points j and j + 1, whose errors differ in sign.
static crd_real zero_between(const error_curves* c, const crd_real* E, int j)
{
    const crd_real *p = c->p, p0 = p[j], p1 = p[j + 1];
    const crd_real slope = (E[j + 1] - E[j]) / (p1 - p0);
    const crd_real line = slope != 0 ? p0 - E[j] / slope : p0;
    if (c->fit == CRD_FIT_LINEAR || c->count < 3) { return line; }
    const int third = j + 2 < c->count ? j + 2 : j - 1;
    // Newton's form: E_j + slope (p - p0) + bend (p - p0)(p - p1)
    const crd_real bend = ((E[third] - E[j]) / (p[third] - p0) - slope) / (p[third] - p1);
    const crd_real half = 0.5 * (slope - bend * (p1 - p0)); // of the linear coefficient, from p0
    const crd_real root = half * half - bend * E[j];
    if (!(root >= 0)) { return line; }
    const crd_real q = -(half + copysign(sqrt(root), half));
    const crd_real zeros[2] = {q != 0 ? E[j] / q : 0, bend != 0 ? q / bend : INFINITY};
    for (int i = 0; i < 2; i++) {
        if (zeros[i] >= 0 && zeros[i] <= p1 - p0) { return p0 + zeros[i]; }
    }
    return line;
}

static crd_real choose(const error_curves* c, const crd_real* E, crd_real size, const crd_real* y,
                       int k)
{
    crd_real best = NAN, least = INFINITY;
    for (int j = 0; j + 1 < c->count; j++) {
        if (!((E[j] <= 0 && E[j + 1] >= 0) || (E[j] >= 0 && E[j + 1] <= 0))) { continue; }
        const crd_real p = zero_between(c, E, j);
        crd_real past = 0;
        for (int i = 0; i < c->errors; i++) {
            past += fabs(error_at(c, p, size, y, k, i));
        }
        if (past < least) {
            least = past;
            best = p;
        }
    }
    if (!isnan(best)) { return best; }
    for (int j = 0; j < c->count; j++) { // nowhere zero: the point where it is nearest to it
        if (fabs(E[j]) < least) {
            least = fabs(E[j]);
            best = c->p[j];
        }
    }
    return best;
}

static crd_real error_curves_predict(void* self, const crd_real* y, int k)
{
    const error_curves* c = self;
    const crd_real* w = c->w + (size_t)k * (size_t)c->errors;
    const crd_real size = c->family == CRD_FAMILY_LINE ? size_of(y, k) : 0;
    crd_real E[CRD_POINTS_MAX];
    for (int j = 0; j < c->count; j++) {
        E[j] = 0;
        for (int i = 0; i < c->errors; i++) {
            E[j] += w[i] * error_at(c, c->p[j], size, y, k, i);
        }
    }
    return curve_at(c->family, choose(c, E, size, y, k), size, y, k);
}

// ---- as an algorithm ---------------------------------------------------------------------------

static crd_status error_curves_check(crd_context* ctx, const crd_coupling_options* o)
{
    const crd_design* d = &o->design;
    crd_status st = CRD_OK;
    CRD_TRY(crdi_coupling_check_int(ctx, "family", (int)d->family, 0, CRD_FAMILY_SWING));
    CRD_TRY(crdi_coupling_check_int(ctx, "fit", (int)d->fit, 0, CRD_FIT_QUADRATIC));
    CRD_TRY(crdi_coupling_check_int(ctx, "order", d->order, 0, 3));
    CRD_TRY(crdi_coupling_check_int(ctx, "errors", d->errors, d->order + 1, ERRORS_MAX));
    if (d->point_count != 0) {
        CRD_TRY(
            crdi_coupling_check_int(ctx, "number of points", d->point_count, 2, CRD_POINTS_MAX));
    }
    for (int j = 0; j < d->point_count && !isnan(d->points[0]); j++) {
        const crd_real p = d->points[j];
        if (!isfinite(p) || fabs(p) > 1e3 || (j > 0 && !(p > d->points[j - 1]))) {
            return crdi_fail(ctx, CRD_E_RANGE,
                             "coupling: point %d = %g, expected ascending numbers from -1000 to "
                             "1000",
                             j + 1, p);
        }
    }
fail:
    return st;
}

static crd_status error_curves_init(void* self, crd_context* ctx, const crd_coupling_options* o)
{
    static const struct {
        crd_real low, high;
        int count;
    } ranges[] = {[CRD_FAMILY_LINE] = {-1, 1, 3},
                  [CRD_FAMILY_DECAY] = {0, 1, 9},
                  [CRD_FAMILY_SWING] = {0, 1, 33}}; // rad per step
    static const double moments[5] = {1, 0, 0, 0, 0};
    error_curves* c = self;
    const crd_design* d = &o->design;
    const bool given = d->point_count > 0 && !isnan(d->points[0]);
    *c = (error_curves){.family = d->family, .fit = d->fit, .errors = d->errors, .k_max = o->k_max};
    c->count = d->point_count > 0 ? d->point_count : ranges[d->family].count;
    const crd_real low = ranges[d->family].low, high = ranges[d->family].high;
    for (int j = 0; j < c->count; j++) {
        c->p[j] = given ? d->points[j] : low + (high - low) * j / (c->count - 1);
    }
    c->w = crdi_new_array(ctx, ((size_t)o->k_max + 1) * (size_t)c->errors, sizeof *c->w);
    if (!c->w) { return CRD_E_MEMORY; }
    for (int k = 0; k <= o->k_max; k++) {
        double w[ERRORS_MAX];
        crdi_least_norm(c->errors, k + 1, d->order, moments, w);
        for (int i = 0; i < c->errors; i++) {
            c->w[k * c->errors + i] = (crd_real)w[i];
        }
    }
    return CRD_OK;
}

static void error_curves_clear(void* self, crd_context* ctx)
{
    crd_free(ctx, ((error_curves*)self)->w);
}

static void error_curves_forget(void* self)
{
    (void)self; // it has no memory of its own
}

static void error_curves_push(void* self, const crd_real* y, crd_real lift)
{
    (void)self, (void)y, (void)lift;
}

static int error_curves_reach(const void* self)
{
    const error_curves* c = self;
    return c->errors + c->k_max + REACH;
}

#ifndef CRDI_SMALL
// ---- in descriptions ---------------------------------------------------------------------------

// Their number, or all of them.
static crd_status read_points(crdi_element_reader* r, const crdi_json* n)
{
    crd_design* d = &r->e->options.design;
    if (n->kind == CRDI_JSON_NUMBER) {
        d->points[0] = NAN;
        return crdi_element_read_int(r, n, 2, CRD_POINTS_MAX, &d->point_count);
    }
    const crd_status st = crdi_element_read_numbers(r, n, 2, CRD_POINTS_MAX, d->points);
    if (st < 0) { return st; }
    d->point_count = n->count;
    return crdi_element_placed(r, n, error_curves_check(r->ctx, &r->e->options));
}

static void write_points(crdi_element_writer* w, const crd_element* e)
{
    const crd_design* d = &e->options.design;
    if (d->point_count == 0) { return; }
    if (isnan(d->points[0])) {
        crdi_element_put_int(w, "points", d->point_count);
    } else {
        crdi_element_put_list(w, "points", d->points, d->point_count);
    }
}

static const char* const families[] = {"line", "decay", "swing", NULL};
static const char* const fits[] = {"linear", "quadratic", NULL};

static const crdi_element_option keys[] = {
    {"family", CRDI_ELEMENT_CHOICE, CRDI_ELEMENT_FIELD(design.family), .choices = families},
    {"errors", CRDI_ELEMENT_INT, CRDI_ELEMENT_FIELD(design.errors), .min = 1, .max = ERRORS_MAX},
    {"order", CRDI_ELEMENT_INT, CRDI_ELEMENT_FIELD(design.order), .min = 0, .max = 3},
    {"fit", CRDI_ELEMENT_CHOICE, CRDI_ELEMENT_FIELD(design.fit), .choices = fits},
    {"points", .read = read_points, .write = write_points}, // behind those it is checked with
    {0},
};
#endif

const crdi_algorithm crdi_algorithm_error_curves = {
    .name = "error-curves",
    CRDI_DESCRIBED(.keys = keys, .check_keys = crdi_element_check_errors),
    .needs_keys = true, // else it is EROS, held
    .check_options = error_curves_check,
    .size = sizeof(error_curves),
    .init = error_curves_init,
    .clear = error_curves_clear,
    .forget = error_curves_forget,
    .push = error_curves_push,
    .predict = error_curves_predict,
    .reach = error_curves_reach,
    .memory = error_curves_reach};
