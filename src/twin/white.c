// Is a sequence white? The statistics, and the smallest noise that makes innovations so.
#include "cardan/twin.h"
#include "twin/twin.h"

#include <math.h>
#include <string.h>

enum { SEGMENT = 256, LAGS = 50 };

double crd_ljung_box(const double* x, int64_t count, int lags)
{
    double mean = 0, power = 0, sum = 0;
    if (count <= lags + 1) { return (double)NAN; }
    for (int64_t i = 0; i < count; i++) {
        mean += x[i] / (double)count;
    }
    for (int64_t i = 0; i < count; i++) {
        power += (x[i] - mean) * (x[i] - mean);
    }
    if (!(power > 0)) { return (double)NAN; }
    for (int lag = 1; lag <= lags; lag++) {
        double r = 0;
        for (int64_t i = lag; i < count; i++) {
            r += (x[i] - mean) * (x[i - lag] - mean);
        }
        r /= power;
        sum += r * r / (double)(count - lag);
    }
    return (double)count * ((double)count + 2) * sum / lags;
}

// In place, radix 2
static void transform(double* re, double* im)
{
    for (int i = 1, j = 0; i < SEGMENT; i++) {
        int bit = SEGMENT >> 1;
        for (; j & bit; bit >>= 1) {
            j ^= bit;
        }
        j ^= bit;
        if (i < j) {
            const double a = re[i], b = im[i];
            re[i] = re[j];
            im[i] = im[j];
            re[j] = a;
            im[j] = b;
        }
    }
    for (int size = 2; size <= SEGMENT; size *= 2) {
        const double turn = -6.283185307179586 / size;
        for (int at = 0; at < SEGMENT; at += size) {
            for (int k = 0; k < size / 2; k++) {
                const double c = cos(turn * k), s = sin(turn * k);
                const int a = at + k, b = a + size / 2;
                const double x = re[b] * c - im[b] * s, y = re[b] * s + im[b] * c;
                re[b] = re[a] - x;
                im[b] = im[a] - y;
                re[a] += x;
                im[a] += y;
            }
        }
    }
}

double crd_flatness(const double* x, int64_t count)
{
    double power[SEGMENT / 2] = {0}, mean = 0, logs = 0, sum = 0;
    if (count < SEGMENT) { return (double)NAN; }
    for (int64_t i = 0; i < count; i++) {
        mean += x[i] / (double)count;
    }
    for (int64_t at = 0; at + SEGMENT <= count; at += SEGMENT / 2) {
        double re[SEGMENT], im[SEGMENT] = {0};
        for (int i = 0; i < SEGMENT; i++) {
            const double window = 0.5 - 0.5 * cos(6.283185307179586 * i / SEGMENT);
            re[i] = (x[at + i] - mean) * window;
        }
        transform(re, im);
        for (int i = 1; i < SEGMENT / 2; i++) {
            power[i] += re[i] * re[i] + im[i] * im[i];
        }
    }
    for (int i = 1; i < SEGMENT / 2; i++) {
        logs += log(power[i]);
        sum += power[i];
    }
    const int bins = SEGMENT / 2 - 1;
    return sum > 0 ? exp(logs / bins) / (sum / bins) : (double)NAN;
}

// What the flatness of white noise is expected to be: the logarithm of a mean of K periodograms is
// psi(K) - ln K below that of its expectation; neighbouring Hann segments are correlated by 1/6.
static double white_flatness(int64_t count)
{
    const int64_t segments = (count - SEGMENT) / (SEGMENT / 2) + 1;
    const double n = (double)segments, k = n / (1 + 2.0 / 36 * (n - 1) / n);
    return exp(-1 / (2 * k) - 1 / (12 * k * k));
}

// ---- the smallest noise ------------------------------------------------------------------------

typedef struct trial {
    crd_context* ctx;
    const crd_netlist* n;
    const crd_twin_data* data;
    double* innovations;    // (sensors x rows), those that count
    int64_t *counts, *seen; // (sensors) how many; measurements up to the row before
} trial;

// Worst of all sensors
static crd_status white_judge(trial* t, const crd_twin_spec* spec, double* ljung_box,
                              double* flatness)
{
    crd_twin* w = NULL;
    crd_status st = crd_twin_create(t->ctx, t->n, spec, &w);
    const int sensors = spec->sensor_count;
    memset(t->counts, 0, 2 * (size_t)sensors * sizeof *t->counts);
    if (st == CRD_OK) { st = crd_twin_begin(w, t->data->start); }
    for (int64_t row = 0; row < t->data->rows && st == CRD_OK; row++) {
        st = crd_twin_follow(w, t->data, row);
        const double now = crdi_twin_row_time(w, t->data, row);
        if (now < t->data->from || now > t->data->to) { continue; }
        for (int i = 0; i < sensors; i++) {
            const crd_twin_sensor_state s = crd_twin_sensor_now(w, i);
            const bool measured = s.used + s.gated > t->seen[i] && s.sd > 0;
            t->seen[i] = s.used + s.gated;
            if (!measured) { continue; }
            t->innovations[i * t->data->rows + t->counts[i]++] = s.innovation / s.sd;
        }
    }
    *ljung_box = 0;
    *flatness = 1;
    for (int i = 0; i < sensors && st == CRD_OK; i++) {
        const double* x = t->innovations + i * t->data->rows;
        const int64_t count = t->counts[i];
        *ljung_box = fmax(*ljung_box, crd_ljung_box(x, count, LAGS));
        // of what white noise of that length has; too few to tell: 1
        *flatness = fmin(*flatness, crd_flatness(x, count) / white_flatness(count));
    }
    crd_twin_destroy(w);
    return st;
}

static void set_noise(crd_twin_spec* spec, crd_twin_source* sources, const crd_twin_spec* given,
                      double factor)
{
    if (spec->filter == CRD_TWIN_THESIS) {
        spec->thesis_q = factor;
    } else if (given->source_count) {
        for (int i = 0; i < given->source_count; i++) {
            const double base = given->sources[i].noise > 0 ? given->sources[i].noise : 1;
            sources[i].noise = base * factor;
        }
    } else {
        spec->state_noise = factor;
    }
}

// From little noise to much, in thirds of a decade around the scale of what is measured.
crd_status crd_twin_whiten(crd_context* ctx, const crd_netlist* n, crd_twin_spec* spec,
                           crd_twin_source* sources, const crd_twin_data* data, double* ljung_box,
                           double* flatness)
{
    const crd_twin_spec given = *spec;
    crd_twin_spec now = given, best = given;
    if (data->rows <= LAGS + 1) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "twin: %lld rows do not tell which noise is right, expected more than %d",
                         (long long)data->rows, LAGS + 1);
    }
    trial t = {.ctx = ctx, .n = n, .data = data};
    t.innovations =
        crdi_new_array(ctx, (size_t)(spec->sensor_count * data->rows) + 1, sizeof(double));
    t.counts = crdi_new_array(ctx, 2 * (size_t)spec->sensor_count + 1, sizeof *t.counts);
    t.seen = t.counts + spec->sensor_count;
    if (!t.innovations || !t.counts) {
        crd_free(ctx, t.innovations);
        crd_free(ctx, t.counts);
        return CRD_E_MEMORY;
    }
    const bool states = given.filter != CRD_TWIN_THESIS && given.source_count == 0;
    const double first = states ? -8 : given.filter == CRD_TWIN_THESIS ? -2 : -6;
    double lowest = (double)INFINITY, chosen = 0;
    bool white = false;
    crd_status st = CRD_OK;
    now.sources = sources;
    for (int third = 0; third <= 36 && !white; third++) {
        const double factor = pow(10, first + third / 3.0);
        double lb, flat;
        set_noise(&now, sources, &given, factor);
        const crd_status tried = white_judge(&t, &now, &lb, &flat);
        if (tried == CRD_E_MEMORY) { st = tried; }
        if (tried < 0) { continue; } // diverged: too little noise
        white = lb <= 1.3 && flat >= 0.915;
        if (white || lb < lowest) {
            lowest = lb;
            chosen = factor;
            best = now;
            *ljung_box = lb;
            *flatness = flat;
        }
    }
    crd_free(ctx, t.innovations);
    crd_free(ctx, t.counts);
    if (st < 0) { return st; }
    if (!isfinite(lowest)) {
        return crdi_fail(ctx, CRD_E_CONVERGENCE,
                         "twin: the filter diverges for every noise that was tried");
    }
    set_noise(&best, sources, &given, chosen);
    *spec = best;
    return white ? CRD_OK : CRD_E_LIMIT;
}
