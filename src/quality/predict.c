// Signals as polynomials on the step to come.
#include "quality/poly.h"
#include "shared/quality_level.h"

#include <math.h>

#include <string.h>

static const char* const names[CRD_PREDICT_COUNT] = {
    [CRD_PREDICT_HOLD] = "hold",       [CRD_PREDICT_TAYLOR1] = "taylor1",
    [CRD_PREDICT_TAYLOR2] = "taylor2", [CRD_PREDICT_HERMITE] = "hermite",
    [CRD_PREDICT_AB2] = "ab2",         [CRD_PREDICT_AB3] = "ab3",
    [CRD_PREDICT_AB4] = "ab4",
};

const char* crd_predictor_name(crd_predictor p)
{
    return names[p];
}

bool crd_predictor_find(const char* name, crd_predictor* out)
{
    for (int i = 0; i < CRD_PREDICT_COUNT; i++) {
        if (strcmp(name, names[i]) == 0) {
            *out = (crd_predictor)i;
            return true;
        }
    }
    return false;
}

int crd_predictor_order(crd_predictor p)
{
    static const int order[CRD_PREDICT_COUNT] = {1, 2, 3, 5, 2, 3, 4};
    return order[p];
}

crd_sample crd_sample_refresh(const crd_sample* y, double gain, const crd_sample* u_used,
                              const crd_sample* u_fresh)
{
    crd_sample r = *y;
    for (int i = 0; i <= r.order; i++) {
        r.y[i] += gain * (u_fresh->y[i] - u_used->y[i]);
    }
    return r;
}

void crd_history_push(crd_history* y, double h, const crd_sample* s)
{
    for (int i = CRD_HISTORY - 1; i > 0; i--) {
        y->sample[i] = y->sample[i - 1];
    }
    for (int i = CRD_HISTORY - 2; i > 0; i--) {
        y->h[i] = y->h[i - 1];
    }
    y->sample[0] = *s;
    y->h[0] = h;
    if (y->count < CRD_HISTORY) { y->count++; }
}

void crd_history_replace(crd_history* y, const crd_sample* s)
{
    y->sample[0] = *s;
    if (y->count == 0) { y->count = 1; }
}

void crd_history_cut(crd_history* y)
{
    if (y->count > 1) { y->count = 1; }
}

// Whether the newest n samples stand h apart. On the grid of a run they do but for rounding.
static bool is_even(const crd_history* y, int n, double h)
{
    bool even = true;
    for (int i = 0; i + 1 < n; i++) {
        even = even && fabs(y->h[i] - h) <= 1e-10 * h;
    }
    return even;
}

// Through the values d, c, b, a at h, 0, -h, -2h: the usual case, without divided differences.
static crd_poly through_even(double d, double c, double b, double a, double h)
{
    const double r = 1 / h;
    return (crd_poly){.degree = 3,
                      .c = {c, (a - 6 * b + 3 * c + 2 * d) * (1.0 / 6) * r,
                            (b - 2 * c + d) * 0.5 * r * r,
                            (d - a + 3 * (b - c)) * (1.0 / 6) * r * r * r}};
}

// Through the newest `n` values, s = 0 at the newest.
static crd_poly through_values(const crd_history* y, int n)
{
    crdi_node nodes[CRD_HISTORY];
    double s = 0;
    for (int i = 0; i < n; i++) {
        nodes[i] = (crdi_node){s, y->sample[i].y, 1};
        if (i + 1 < n) { s -= y->h[i]; }
    }
    return crdi_poly_through(n, nodes);
}

crd_sample crd_history_estimate(const crd_history* y, int order)
{
    crd_sample r = y->sample[0];
    order = order < 2 ? order : 2;
    if (y->count == 0 || r.order >= order) { return r; }
    // Differences of the highest derivative that the unit gives, over the samples that have it.
    const int m = r.order;
    int n = 1;
    while (n <= order - m && n < y->count && y->sample[n].order >= m) {
        n++;
    }
    if (n == 1) { return r; }
    const double d1 = (y->sample[0].y[m] - y->sample[1].y[m]) / y->h[0];
    r.y[m + 1] = d1;
    r.order = m + 1;
    if (n > 2) { // m = 0: the parabola through three values
        const double d2 = (y->sample[1].y[m] - y->sample[2].y[m]) / y->h[1];
        const double curve = (d1 - d2) / (y->h[0] + y->h[1]);
        r.y[m + 1] = d1 + curve * y->h[0];
        r.y[m + 2] = 2 * curve;
        r.order = m + 2;
    }
    return r;
}

crd_poly crd_history_reconstruct(const crd_history* before, double h, const crd_sample* end)
{
    const crd_sample* start = &before->sample[0];
    if (start->order > 0 || end->order > 0) {
        return crd_poly_hermite(start, start->order + 1, end, end->order + 1, h);
    }
    if (before->count >= 3 && is_even(before, 3, h)) {
        return through_even(end->y[0], start->y[0], before->sample[1].y[0], before->sample[2].y[0],
                            h);
    }
    crdi_node nodes[4] = {{0, start->y, 1}, {h, end->y, 1}};
    int n = 2;
    double s = 0;
    for (int i = 1; i < before->count && n < 4; i++) {
        s -= before->h[i - 1];
        nodes[n++] = (crdi_node){s, before->sample[i].y, 1};
    }
    return crdi_poly_through(n, nodes);
}

double crd_history_missed(const crd_history* before, double h, const crd_sample* end)
{
    if (before->count < 2) { return 0; }
    const crd_sample* start = &before->sample[0];
    const int n0 = start->order + 1, n1 = end->order + 1;
    const crd_poly p = crd_poly_hermite(start, n0, end, n1, h);
    // y = p + K s^n0 (s - h)^n1, which the sample before has to satisfy, at s = -b
    const double b = before->h[0], off = before->sample[1].y[0] - crd_poly_eval(&p, -b);
    return off * pow(0.5 * h / -b, n0) * pow(0.5 * h / (b + h), n1);
}

bool crd_history_by_slopes(const crd_history* before, double h, const crd_sample* end,
                           crd_poly* out)
{
    crdi_node nodes[CRD_HISTORY + 1] = {{h, end->y + 1, 1}};
    int n = 1;
    double s = 0;
    for (int i = 0; i < before->count && before->sample[i].order > 0; i++) {
        nodes[n++] = (crdi_node){s, before->sample[i].y + 1, 1};
        s -= i + 1 < before->count ? before->h[i] : 0;
    }
    if (end->order == 0 || n < 3) { return false; }
    const crd_poly slope = crdi_poly_through(n, nodes);
    const double y0 = before->sample[0].y[0];
    const double off = (end->y[0] - y0) / h - crd_poly_mean(&slope, 0, h);
    *out = (crd_poly){.degree = slope.degree + 1, .c = {y0, slope.c[0] + off}};
    for (int i = 1; i <= slope.degree; i++) {
        out->c[i + 1] = slope.c[i] / (i + 1);
    }
    return true;
}

const double crdi_even_means[CRD_HISTORY][CRD_HISTORY] = {
    {1},
    {3 / 2.0, -1 / 2.0},
    {23 / 12.0, -16 / 12.0, 5 / 12.0},
    {55 / 24.0, -59 / 24.0, 37 / 24.0, -9 / 24.0}};

// Adams-Bashforth for a hold: the mean over the step of the polynomial through the last values.
static crd_poly mean_of_values(const crd_history* y, int n, double H)
{
    n = n < y->count ? n : y->count;
    if (is_even(y, n, H)) {
        double mean = 0;
        for (int i = 0; i < n; i++) {
            mean += crdi_even_means[n - 1][i] * y->sample[i].y[0];
        }
        return (crd_poly){.c = {mean}};
    }
    const crd_poly p = through_values(y, n);
    return (crd_poly){.c = {crd_poly_mean(&p, 0, H)}};
}

crd_poly crd_predict(crd_predictor p, const crd_history* y, double H)
{
    if (y->count == 0) { return (crd_poly){0}; }
    const crd_sample* s = y->sample;
    switch (p) {
    case CRD_PREDICT_AB2:
        return mean_of_values(y, 2, H);
    case CRD_PREDICT_AB3:
        return mean_of_values(y, 3, H);
    case CRD_PREDICT_AB4:
        return mean_of_values(y, 4, H);
    case CRD_PREDICT_HERMITE:
        if (y->count > 1 && s[0].order >= 2 && s[1].order >= 1) {
            return crd_poly_hermite(&s[0], 3, &s[1], 2, -y->h[0]);
        }
        break;
    default:
        break;
    }
    const int degree = p == CRD_PREDICT_HOLD ? 0 : p == CRD_PREDICT_TAYLOR1 ? 1 : 2;
    const crd_sample e = crd_history_estimate(y, degree);
    return crd_poly_taylor(&e, degree);
}

double crd_predict_mean(crd_predictor p, const crd_history* y, double H)
{
    const crd_poly u = crd_predict(p, y, H);
    return crd_poly_mean(&u, 0, H);
}

bool crd_hermite_stable(double omega_max, double H)
{
    return omega_max * H <= CRD_HERMITE_BOUND;
}
