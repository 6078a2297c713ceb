// Recorded signals: where their power lies, and which macro step an element needs for them.
#include "analysis/analysis.h"

#include "shared/base.h"

static const double pi = 3.14159265358979323846;

crd_status crd_analysis_signal(crd_context* ctx, const crd_signal* s, int length, double part,
                               crd_signal_report* out)
{
    crd_status st = CRD_OK;
    *out = (crd_signal_report){0};
    for (int64_t i = 0; i < s->count; i++) {
        out->mean += s->y[i] / (double)s->count;
    }
    CRD_TRY(crd_analysis_spectrum(ctx, s->y, s->count, s->step, length, &out->spectrum));
    CRD_TRY(crd_spectrum_bandwidth(ctx, &out->spectrum, part, &out->bandwidth));
    CRD_TRY(crd_spectrum_bandwidth(ctx, &out->spectrum, 0.5, &out->half));
fail:
    return st;
}

// How far an element for latency k is as good as a direct connection, as x = omega dT <= pi
static crd_status find_reach(const crd_element* e, double step, int k, double magnitude,
                             double phase_deg, double* x)
{
    crd_linears l = {0};
    crd_limits limits;
    crd_status st = crd_linears_make(e, step, k, &l);
    *x = pi;
    for (int i = 0; st >= 0 && i < l.count; i++) {
        st = crd_analysis_limits(e->ctx, &l.linear[i], magnitude, phase_deg, &limits);
        if (st >= 0) { *x = fmin(*x, pi * fmin(limits.magnitude, limits.phase)); }
    }
    crd_linears_clear(&l);
    return st;
}

crd_status crd_analysis_step_need(const crd_element* e, double bandwidth, double step, int k,
                                  double latency, double magnitude_tolerance,
                                  double phase_tolerance_deg, crd_step_need* out)
{
    double x = 0;
    if (isnan(latency)) {
        const crd_status st = find_reach(e, step, k, magnitude_tolerance, phase_tolerance_deg, &x);
        *out = (crd_step_need){.k = k, .step = x / bandwidth, .keeps = NAN};
        return st;
    }
    // A latency in s is k macro steps for steps from latency / k on and below latency / (k - 1).
    // The first k for which some of them are short enough has the longest one.
    *out = (crd_step_need){.step = NAN};
    for (k = 1; k <= CRD_LATENCY_MAX; k++) {
        const double shortest = latency / k;
        const crd_status st =
            find_reach(e, shortest, k, magnitude_tolerance, phase_tolerance_deg, &x);
        if (st < 0) { return st; }
        const double omega = x / shortest;
        if (omega > out->keeps) {
            out->keeps = omega;
            out->k = k;
        }
        if (omega >= bandwidth) {
            out->step = x / bandwidth;
            if (k > 1) { out->step = fmin(out->step, latency / (k - 1)); }
            out->k = k;
            return CRD_OK;
        }
    }
    return CRD_OK;
}
