// The filter as published (Rodriguez 2021, 4.28 .. 4.41): the vector is [z, z', rho] with
// parameters and sources as they are, the model equation Gamma = 0 is a measurement without noise,
// and everything is evaluated anew in every step. Kept to reproduce and to compare with.
#include "twin/dense.h"
#include "twin/twin.h"

#include <math.h>
#include <string.h>

struct crdi_thesis {
    int n, p, k, s, y;         // of the vector; z, parameters, sources; measurements with Gamma
    double *x, *next;          // (n)
    double *cov, *work, *half; // (n x n)
    double *f, *g;             // (n x n) transition; (p x p) h phi_1
    double *h, *hp, *inn, *lu, *innovation; // (y x n), (y x n), (y), (y x y)
    int32_t* pivots;
    double *exponential, *series, *power; // (2p x 2p)
    double *dfc, *dg1;                    // per parameter
    int32_t* parts;                       // all parts of all parameters
    double* values;
    int part_count;
};

static void* many(crd_twin* w, size_t n, size_t size)
{
    return crdi_arena_new(&w->arena, n + 1, size);
}

static bool thesis_make_room(crd_twin* w, crdi_thesis* t)
{
    const size_t n = (size_t)t->n, p = (size_t)t->p, y = (size_t)t->y, d = sizeof(double);
    size_t parts = 0;
    for (int i = 0; i < t->k; i++) {
        parts += (size_t)w->spec.parameters[i].group.count;
    }
    return (t->x = many(w, n, d)) && (t->next = many(w, n, d)) && (t->cov = many(w, n * n, d)) &&
           (t->work = many(w, n * n, d)) && (t->half = many(w, n * n, d)) &&
           (t->f = many(w, n * n, d)) && (t->g = many(w, p * p, d)) && (t->h = many(w, y * n, d)) &&
           (t->hp = many(w, y * n, d)) && (t->inn = many(w, y, d)) && (t->lu = many(w, y * y, d)) &&
           (t->innovation = many(w, y * n, d)) && (t->pivots = many(w, y, sizeof(int32_t))) &&
           (t->exponential = many(w, 4 * p * p, d)) && (t->series = many(w, 4 * p * p, d)) &&
           (t->power = many(w, 4 * p * p, d)) && (t->dfc = many(w, (size_t)t->k * p * p, d)) &&
           (t->dg1 = many(w, (size_t)t->k * p * (size_t)w->r, d)) &&
           (t->parts = many(w, parts, sizeof(int32_t))) && (t->values = many(w, parts, d));
}

crd_status crdi_thesis_create(crd_twin* w)
{
    for (int i = 0; i < w->spec.source_count; i++) {
        if (w->sources[i].size != 1) {
            return crdi_fail(
                w->ctx, CRD_E_UNSUPPORTED,
                "twin: source %s: the published filter takes sources as constant or walk",
                crdi_clip(w->spec.sources[i].group.name).text);
        }
    }
    for (int i = 0; i < w->p * w->r; i++) {
        if (w->m->g2[i] != 0) {
            return crdi_fail(w->ctx, CRD_E_UNSUPPORTED,
                             "twin: the published filter takes no networks in which derivatives of "
                             "sources appear");
        }
    }
    crdi_thesis* t = many(w, 1, sizeof *t);
    if (!t) { return CRD_E_MEMORY; }
    *t = (crdi_thesis){.p = w->p, .k = w->k, .s = w->spec.source_count};
    t->n = 2 * t->p + t->k + t->s;
    t->y = w->spec.sensor_count + t->p;
    if (!thesis_make_room(w, t)) { return CRD_E_MEMORY; }
    for (int i = 0; i < t->k; i++) {
        const crd_twin_group* g = &w->spec.parameters[i].group;
        for (int j = 0; j < g->count; j++) {
            t->parts[t->part_count++] = g->parts[j];
        }
    }
    w->thesis = t;
    return CRD_OK;
}

void crdi_thesis_destroy(crd_twin* w)
{
    w->thesis = NULL; // all of it is the arena's
}

// ---- the model ---------------------------------------------------------------------------------

static double* rho(const crdi_thesis* t, int i)
{
    return t->x + 2 * t->p + i;
}

// T, B, Fc, G1 and their derivatives at rho
static crd_status thesis_evaluate(crd_twin* w)
{
    crdi_thesis* t = w->thesis;
    int at = 0;
    for (int i = 0; i < t->k; i++) {
        const crd_twin_group* g = &w->spec.parameters[i].group;
        for (int j = 0; j < g->count; j++) {
            t->values[at++] = *rho(t, i) * (g->factors ? g->factors[j] : 1);
        }
        if (!(*rho(t, i) > 0)) {
            return crdi_fail(w->ctx, CRD_E_CONVERGENCE,
                             "twin: the filter diverged at t = %g s: %s = %g, expected > 0",
                             crd_twin_time(w) + w->h, g->name, *rho(t, i));
        }
        w->theta0[i] = w->q[w->p + w->s + i] = log(*rho(t, i));
    }
    const crd_status st = crd_reduction_set(w->reduction, t->parts, t->values, t->part_count);
    const size_t nt = (size_t)w->m->variables * (size_t)w->p;
    const size_t nb = (size_t)w->m->variables * (size_t)w->r;
    const size_t pp = (size_t)t->p * (size_t)t->p, pr = (size_t)t->p * (size_t)w->r;
    for (int i = 0; i < t->k && st == CRD_OK; i++) {
        const crd_reduced d = crd_reduction_sensitivity(w->reduction, &w->spec.parameters[i].group);
        memcpy(w->dt + (size_t)i * nt, d.t, nt * sizeof(double));
        memcpy(w->db + (size_t)i * nb, d.b, nb * sizeof(double));
        memcpy(t->dfc + (size_t)i * pp, d.fc, pp * sizeof(double));
        memcpy(t->dg1 + (size_t)i * pr, d.g1, pr * sizeof(double));
    }
    return st;
}

static void share(crd_twin* w) // with what the estimates are computed from
{
    const crdi_thesis* t = w->thesis;
    memcpy(w->q, t->x, (size_t)t->p * sizeof(double));
    for (int i = 0; i < t->s; i++) {
        w->q[t->p + i] = *rho(t, t->k + i);
    }
    for (int i = 0; i < t->k; i++) {
        w->q[t->p + w->s + i] = log(*rho(t, i));
    }
}

// v with the unknown sources
static void inputs(const crd_twin* w, const double* known, double* v)
{
    const crdi_thesis* t = w->thesis;
    memcpy(v, known, (size_t)w->r * sizeof *v);
    for (int j = 0; j < w->r; j++) {
        for (int i = 0; i < t->s; i++) {
            v[j] += w->select[(ptrdiff_t)j * t->s + i] * *rho(t, t->k + i);
        }
    }
}

// Fc z + G1 v of one state, with any matrices of that shape
static double thesis_rate(const crd_twin* w, const double* fc, const double* g1, const double* v,
                          int i)
{
    double sum = 0;
    for (int j = 0; j < w->p; j++) {
        sum += fc[(ptrdiff_t)i * w->p + j] * w->thesis->x[j];
    }
    for (int j = 0; j < w->r; j++) {
        sum += g1[(ptrdiff_t)i * w->r + j] * v[j];
    }
    return sum;
}

crd_status crdi_thesis_begin(crd_twin* w)
{
    crdi_thesis* t = w->thesis;
    memcpy(t->x, w->q, (size_t)t->p * sizeof(double));
    memset(t->cov, 0, (size_t)t->n * (size_t)t->n * sizeof(double));
    for (int i = 0; i < 2 * t->p; i++) {
        t->cov[(ptrdiff_t)i * t->n + i] = w->spec.state_sd * w->spec.state_sd;
    }
    for (int i = 0; i < t->k + t->s; i++) {
        const double sd = i < t->k ? w->spec.parameters[i].sd : w->spec.sources[i - t->k].sd;
        const ptrdiff_t at = 2 * t->p + i;
        t->cov[at * t->n + at] = sd * sd;
        *rho(t, i) = i < t->k ? exp(w->q[w->p + w->s + i]) : w->spec.sources[i - t->k].start;
    }
    const crd_status st = thesis_evaluate(w);
    inputs(w, w->v1, w->vector);
    for (int i = 0; i < t->p; i++) {
        t->x[t->p + i] = thesis_rate(w, w->m->fc, w->m->g1, w->vector, i);
    }
    share(w);
    return st;
}

// ---- predict -----------------------------------------------------------------------------------

// exp([0 I; 0 Fc] h) by scaling and squaring: upper right h phi_1, lower right phi_0
static void transition(crd_twin* w)
{
    crdi_thesis* t = w->thesis;
    const int p = t->p, m = 2 * p, n = t->n;
    const size_t all = (size_t)m * (size_t)m;
    double size = 1;
    for (int i = 0; i < p; i++) {
        double sum = 0;
        for (int j = 0; j < p; j++) {
            sum += fabs(w->m->fc[(ptrdiff_t)i * p + j]);
        }
        size = fmax(size, sum);
    }
    int s = 0;
    for (size *= w->spec.step; size > 0.5; size /= 2) {
        s++;
    }
    const double h = ldexp(w->spec.step, -s);
    double *a = t->series, *sum = t->exponential, *next = t->power;
    memset(a, 0, all * sizeof *a);
    memset(sum, 0, all * sizeof *sum);
    for (int i = 0; i < m; i++) {
        sum[(ptrdiff_t)i * m + i] = 1;
        for (int j = 0; j < p && i >= p; j++) {
            a[(ptrdiff_t)i * m + p + j] = h * w->m->fc[(ptrdiff_t)(i - p) * p + j];
        }
        if (i < p) { a[(ptrdiff_t)i * m + p + i] = h; }
    }
    for (int term = 12; term >= 1; term--) {
        crdi_dense_multiply(m, m, m, 1.0 / term, a, sum, false, next);
        memcpy(sum, next, all * sizeof *sum);
        for (int i = 0; i < m; i++) {
            sum[(ptrdiff_t)i * m + i] += 1;
        }
    }
    for (; s > 0; s--) {
        crdi_dense_multiply(m, m, m, 1, sum, sum, false, next);
        memcpy(sum, next, all * sizeof *sum);
    }
    memset(t->f, 0, (size_t)n * (size_t)n * sizeof(double));
    for (int i = 0; i < n; i++) {
        t->f[(ptrdiff_t)i * n + i] = 1;
        if (i < m) {
            memcpy(t->f + (ptrdiff_t)i * n, sum + (ptrdiff_t)i * m, (size_t)m * sizeof *sum);
        }
    }
}

static void thesis_predict(crd_twin* w)
{
    crdi_thesis* t = w->thesis;
    const int n = t->n, p = t->p;
    const double h = w->spec.step, q = w->spec.thesis_q;
    crdi_dense_multiply(n, n, 1, 1, t->f, t->x, false, t->next);
    for (int i = 0; i < p; i++) { // G of (4.38): z'' = ... + G1 v', held over the step
        double rise = 0;
        for (int j = 0; j < w->r; j++) {
            rise += w->m->g1[(ptrdiff_t)i * w->r + j] * (w->v1[j] - w->v0[j]);
        }
        t->next[p + i] += rise;
        t->next[i] += rise * h / 2;
    }
    memcpy(t->x, t->next, (size_t)n * sizeof(double));
    crdi_dense_multiply(n, n, n, 1, t->f, t->cov, false, t->half);
    for (int i = 0; i < n; i++) { // half F^T
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int l = 0; l < n; l++) {
                sum += t->half[(ptrdiff_t)i * n + l] * t->f[(ptrdiff_t)j * n + l];
            }
            t->cov[(ptrdiff_t)i * n + j] = sum;
        }
    }
    for (int i = 0; i < p; i++) { // (F.2)
        t->cov[(ptrdiff_t)i * n + i] += q * h * h * h / 3;
        t->cov[(ptrdiff_t)i * n + p + i] += q * h * h / 2;
        t->cov[(ptrdiff_t)(p + i) * n + i] += q * h * h / 2;
        t->cov[(ptrdiff_t)(p + i) * n + p + i] += q * h;
    }
    for (int i = 0; i < t->k + t->s; i++) {
        const ptrdiff_t at = 2 * p + i;
        t->cov[at * n + at] +=
            i < t->k ? w->spec.parameters[i].drift : w->spec.sources[i - t->k].noise;
    }
}

// ---- correct -----------------------------------------------------------------------------------

// Sensors: C (T z + B v)
static void sensor_row(crd_twin* w, int i, double measured)
{
    crdi_thesis* t = w->thesis;
    crdi_sensor* s = &w->sensors[i];
    double *row = t->h + (ptrdiff_t)i * t->n, *h = w->slope;
    crdi_twin_row_slope(w, &s->row, h);
    memcpy(row, h, (size_t)t->p * sizeof *row);
    for (int j = 0; j < t->k; j++) {
        row[2 * t->p + j] = h[t->p + w->s + j] / *rho(t, j); // by the value, not its logarithm
    }
    for (int j = 0; j < t->s; j++) {
        row[2 * t->p + t->k + j] = h[t->p + j];
    }
    t->inn[i] = measured - crdi_twin_row_value(w, &s->row);
}

// Gamma_i = c (Fc z + G1 v - z')_i, c the capacity of the state
static void model_row(crd_twin* w, int i, const double* v)
{
    crdi_thesis* t = w->thesis;
    const int32_t part = w->m->state_part[i];
    const double c = crd_reduction_value(w->reduction, part);
    double* row = t->h + (ptrdiff_t)(w->spec.sensor_count + i) * t->n;
    const double now = thesis_rate(w, w->m->fc, w->m->g1, v, i) - t->x[t->p + i];
    for (int j = 0; j < t->p; j++) {
        row[j] = c * w->m->fc[(ptrdiff_t)i * t->p + j];
    }
    row[t->p + i] = -c;
    for (int j = 0; j < t->k; j++) {
        const crd_twin_group* g = &w->spec.parameters[j].group;
        const double* fc = t->dfc + (ptrdiff_t)j * t->p * t->p;
        double slope = c * thesis_rate(w, fc, t->dg1 + (ptrdiff_t)j * t->p * w->r, v, i);
        for (int a = 0; a < g->count; a++) {
            if (g->parts[a] == part) { slope += c * now; }
        }
        row[2 * t->p + j] = slope / *rho(t, j);
    }
    for (int j = 0; j < t->s; j++) {
        double sum = 0;
        for (int l = 0; l < w->r; l++) {
            sum += w->m->g1[(ptrdiff_t)i * w->r + l] * w->select[(ptrdiff_t)l * t->s + j];
        }
        row[2 * t->p + t->k + j] = c * sum;
    }
    t->inn[w->spec.sensor_count + i] = -c * now;
}

// K = P H^T (H P H^T + R)^-1, all measurements at once, P - K H P as it stands
static crd_status correct(crd_twin* w)
{
    crdi_thesis* t = w->thesis;
    const int n = t->n, y = t->y;
    int at;
    crdi_dense_multiply(y, n, n, 1, t->h, t->cov, false, t->hp);
    for (int i = 0; i < y; i++) {
        for (int j = 0; j < y; j++) {
            double sum = 0;
            for (int l = 0; l < n; l++) {
                sum += t->hp[(ptrdiff_t)i * n + l] * t->h[(ptrdiff_t)j * n + l];
            }
            t->lu[(ptrdiff_t)i * y + j] = sum;
        }
        if (i >= w->spec.sensor_count) { continue; }
        const double sd = w->spec.sensors[i].sd;
        t->lu[(ptrdiff_t)i * y + i] += sd * sd;
        w->sensors[i].now.innovation = t->inn[i];
        w->sensors[i].now.sd = sqrt(t->lu[(ptrdiff_t)i * y + i]);
    }
    if (!crdi_dense_factor(y, t->lu, t->pivots, &at)) {
        return crdi_fail(
            w->ctx, CRD_E_CONVERGENCE,
            "twin: the covariance of the perfect measurements is singular at t = %g s: "
            "q is too small for the published filter",
            crd_twin_time(w) + w->h);
    }
    memcpy(t->innovation, t->hp, (size_t)y * (size_t)n * sizeof(double));
    crdi_dense_solve(y, t->lu, t->pivots, n, t->innovation); // K^T, P being symmetric
    for (int i = 0; i < y; i++) {
        for (int j = 0; j < n; j++) {
            t->x[j] += t->innovation[(ptrdiff_t)i * n + j] * t->inn[i];
        }
    }
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int l = 0; l < y; l++) {
                sum += t->innovation[(ptrdiff_t)l * n + i] * t->hp[(ptrdiff_t)l * n + j];
            }
            t->cov[(ptrdiff_t)i * n + j] -= sum;
        }
    }
    return CRD_OK;
}

crd_status crdi_thesis_step(crd_twin* w, const double* measurements)
{
    crdi_thesis* t = w->thesis;
    bool any = false;
    transition(w);
    thesis_predict(w);
    share(w);
    inputs(w, w->v1, w->vector);
    memset(t->h, 0, (size_t)t->y * (size_t)t->n * sizeof(double));
    for (int i = 0; i < w->spec.sensor_count; i++) {
        crd_twin_sensor_state* now = &w->sensors[i].now;
        any = any || !isnan(measurements[i]);
        ++*(isnan(measurements[i]) ? &now->missing : &now->used);
    }
    if (!any) { // a row outside the window: the model alone, no correction at all
        for (int i = 0; i < t->p; i++) {
            t->x[t->p + i] = thesis_rate(w, w->m->fc, w->m->g1, w->vector, i);
        }
        share(w);
        return CRD_OK;
    }
    for (int i = 0; i < w->spec.sensor_count; i++) {
        if (isnan(measurements[i])) { // its row stays 0: nothing is learnt from it
            t->inn[i] = 0;
            continue;
        }
        sensor_row(w, i, measurements[i]);
    }
    for (int i = 0; i < t->p; i++) {
        model_row(w, i, w->vector);
    }
    crd_status st = correct(w);
    if (st == CRD_OK) { st = thesis_evaluate(w); }
    if (st < 0) { return st; }
    share(w);
    for (int i = 0; i < t->n; i++) {
        if (!isfinite(t->x[i])) {
            return crdi_fail(w->ctx, CRD_E_CONVERGENCE,
                             "twin: the filter diverged at t = %g s: an estimate is not finite",
                             crd_twin_time(w) + w->h);
        }
    }
    return CRD_OK;
}

double crdi_thesis_variance(const crd_twin* w, const double* h)
{
    const crdi_thesis* t = w->thesis;
    const int n = t->n;
    double sum = 0;
    memset(t->next, 0, (size_t)n * sizeof(double));
    memcpy(t->next, h, (size_t)t->p * sizeof(double));
    for (int j = 0; j < t->k; j++) {
        t->next[2 * t->p + j] = h[t->p + w->s + j] / *rho(t, j);
    }
    for (int j = 0; j < t->s; j++) {
        t->next[2 * t->p + t->k + j] = h[t->p + j];
    }
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            sum += t->next[i] * t->cov[(ptrdiff_t)i * n + j] * t->next[j];
        }
    }
    return sum;
}

void crdi_thesis_keep(const crd_twin* w, double** x, size_t* n, double** covariance)
{
    const crdi_thesis* t = w->thesis;
    *x = t ? t->x : NULL;
    *covariance = t ? t->cov : NULL;
    *n = t ? (size_t)t->n : 0;
}

void crdi_thesis_restored(crd_twin* w)
{
    thesis_evaluate(w);
    share(w);
}
