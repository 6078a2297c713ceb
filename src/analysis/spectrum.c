// The spectrum of a recording, its bandwidth, and the macro step that it needs.
#include "analysis/analysis.h"
#include "shared/base.h"

#include "shared/num.h"

static crd_status check_samples(crd_context* ctx, const double* y, int64_t n, double dt,
                                int* length)
{
    if (!(dt > 0 && isfinite(dt))) {
        return crdi_fail(ctx, CRD_E_RANGE, "the samples are %g s apart, expected > 0", dt);
    }
    if (*length == 0) {
        *length = 8;
        while (*length < 4096 && *length * 2 <= n / 4) {
            *length *= 2;
        }
    }
    if (*length < 8 || *length > 1 << 24 || (*length & (*length - 1)) != 0) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "a segment has %d samples, expected a power of two, 8 to 16777216",
                         *length);
    }
    if (n < *length) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "the recording has %lld samples, expected at least one segment of %d",
                         (long long)n, *length);
    }
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(y[i])) {
            return crdi_fail(ctx, CRD_E_RANGE,
                             "sample %lld at %g s is %g, expected a number: fill the gap first",
                             (long long)i + 1, (double)i * dt, y[i]);
        }
    }
    return CRD_OK;
}

// Adds |rDFT|^2 of one windowed segment; x is workspace (2 length).
static void add_segment(const double* y, int length, double* x, double* power)
{
    double mean = 0;
    for (int i = 0; i < length; i++) {
        mean += y[i] / length;
    }
    for (int i = 0; i < length; i++) {
        x[2 * i] = (y[i] - mean) * 0.5 * (1 - cos(2 * M_PI * i / length));
        x[2 * i + 1] = 0;
    }
    crdi_num_fft(length, x);
    for (int q = 0; q <= length / 2; q++) {
        power[q] += x[2 * q] * x[2 * q] + x[2 * q + 1] * x[2 * q + 1];
    }
}

crd_status crd_analysis_spectrum(crd_context* ctx, const double* y, int64_t n, double dt,
                                 int length, crd_spectrum* out)
{
    const crd_status st = check_samples(ctx, y, n, dt, &length);
    if (st < 0) { return st; }
    crd_spectrum s = {.bins = length / 2 + 1};
    s.omega = crdi_new_array(ctx, (size_t)s.bins, sizeof *s.omega);
    s.density = crdi_new_array(ctx, (size_t)s.bins, sizeof *s.density);
    double* x = crdi_new_array(ctx, 2 * (size_t)length, sizeof *x);
    if (!s.omega || !s.density || !x) {
        crd_free(ctx, x);
        crd_spectrum_clear(ctx, &s);
        return CRD_E_MEMORY;
    }
    for (int64_t at = 0; at + length <= n; at += length / 2) {
        add_segment(y + at, length, x, s.density);
        s.segments++;
    }
    crd_free(ctx, x);
    // The squares of the Hann window sum to 3/8 of the length. One bin is 2 pi / (length dt) wide;
    // negative frequencies are folded onto all bins but the first and the last.
    const double width = 2 * M_PI / (length * dt);
    const double scale = 1 / (0.375 * length * length * width * s.segments);
    for (int q = 0; q < s.bins; q++) {
        s.omega[q] = q * width;
        s.density[q] *= q == 0 || q == s.bins - 1 ? scale : 2 * scale;
        s.variance += s.density[q] * width;
    }
    *out = s;
    return CRD_OK;
}

void crd_spectrum_clear(crd_context* ctx, crd_spectrum* s)
{
    crd_free(ctx, s->omega);
    crd_free(ctx, s->density);
    *s = (crd_spectrum){0};
}

crd_status crd_spectrum_bandwidth(crd_context* ctx, const crd_spectrum* s, double part,
                                  double* omega)
{
    if (!(part > 0 && part < 1)) {
        return crdi_fail(ctx, CRD_E_RANGE, "the part of the power is %g, expected between 0 and 1",
                         part);
    }
    if (!(s->variance > 0)) {
        return crdi_fail(ctx, CRD_E_RANGE, "the recording is constant: it has no bandwidth");
    }
    // Each bin's power is spread evenly from half a bin below to half a bin above.
    const double width = s->omega[1], wanted = part * s->variance;
    double sum = 0;
    for (int q = 0; q < s->bins; q++) {
        const double power = s->density[q] * width;
        if (sum + power >= wanted) {
            *omega = fmax(s->omega[q] + ((wanted - sum) / power - 0.5) * width, 0);
            return CRD_OK;
        }
        sum += power;
    }
    *omega = s->omega[s->bins - 1]; // rounding
    return CRD_OK;
}

crd_status crd_analysis_macro_step(crd_context* ctx, const crd_linear* e, double omega,
                                   double magnitude_tolerance, double phase_tolerance_deg,
                                   double* dT)
{
    if (!(omega > 0 && isfinite(omega))) {
        return crdi_fail(ctx, CRD_E_RANGE, "the bandwidth is %g rad/s, expected > 0", omega);
    }
    crd_limits l;
    const crd_status st = crd_analysis_limits(ctx, e, magnitude_tolerance, phase_tolerance_deg, &l);
    if (st >= 0) { *dT = M_PI * fmin(fmin(l.magnitude, l.phase), 1) / omega; }
    return st;
}
