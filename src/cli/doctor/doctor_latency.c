// From two histograms to a step: what the measurements say, and how far they can be believed.
#include "cli/doctor/doctor.h"

#include <math.h>
#include <string.h>

static const crdi_quantile ladder[] = {
    {0.9999, "p99.99"}, {0.999, "p99.9"}, {0.99, "p99"}, {0.5, "p50"}};
static const int64_t needs[] = {10000, 1000, 100, 2};
enum { RUNGS = sizeof ladder / sizeof *ladder };

crdi_quantile crdi_supported_quantile(int64_t samples)
{
    for (int i = 0; i < RUNGS; i++) {
        if (samples >= needs[i]) { return ladder[i]; }
    }
    return (crdi_quantile){0, ""};
}

double crdi_wished_step(const crdi_wish* w)
{
    return !isnan(w->step) ? w->step : w->profile == CRDI_DESK ? 0.01 : 0.001;
}

// Up, to two digits: a promise is not rounded down.
static double round_up(double x)
{
    if (!(x > 0)) { return x; }
    const double unit = pow(10, floor(log10(x)) - 1);
    return ceil(x / unit * (1 - 1e-12)) * unit;
}

static crdi_quantile doctor_latency_lower(crdi_quantile a, crdi_quantile b)
{
    return a.q <= b.q ? a : b;
}

static bool has(const crdi_latency* l)
{
    return l->h.count > 0;
}

// The quantile that both measurements can tell, and not above `most`.
static crdi_quantile common(const crdi_latency* wakeup, const crdi_latency* trip, double most)
{
    crdi_quantile q = crdi_supported_quantile(wakeup->h.count);
    if (has(trip)) { q = doctor_latency_lower(q, crdi_supported_quantile(trip->h.count)); }
    for (int i = 0; i < RUNGS && q.q > most; i++) {
        if (ladder[i].q <= most) { q = ladder[i]; }
    }
    return q;
}

// Three digits: the histogram has no more.
static const char* short_time(char out[32], int64_t ns)
{
    double unit = 1;
    while ((double)ns / unit >= 1000) {
        unit *= 10;
    }
    return crdi_format_seconds(out, 1e-9 * unit * round((double)ns / unit));
}

crdi_supported crdi_judge_latency(const crdi_latency* wakeup, const crdi_latency* trip,
                                  bool hypervisor)
{
    crdi_supported s = {.quantile = common(wakeup, trip, 1), .step = NAN};
    char a[32], b[32], c[32];
    if (!*s.quantile.name) {
        snprintf(s.sentence, sizeof s.sentence, "not measured");
        return s;
    }
    s.wakeup = crd_histogram_quantile(&wakeup->h, s.quantile.q);
    s.round_trip = has(trip) ? crd_histogram_quantile(&trip->h, s.quantile.q) : 0;
    s.step = round_up(2e-9 * (double)(s.wakeup + s.round_trip));
    int n =
        snprintf(s.sentence, sizeof s.sentence,
                 "supports steps down to %s at %s (wake-up %s%s%s, half of the step left for "
                 "work)",
                 crdi_format_seconds(a, s.step), s.quantile.name, short_time(b, s.wakeup),
                 has(trip) ? " + round trip " : "", has(trip) ? short_time(c, s.round_trip) : "");
    const bool few = s.quantile.q < ladder[0].q;
    if (few || hypervisor) {
        snprintf(s.sentence + n, sizeof s.sentence - (size_t)n, "; %s%s%s",
                 few ? "too few samples for p99.99" : "", few && hypervisor ? ", and " : "",
                 hypervisor ? "tails under a hypervisor change from run to run" : "");
    }
    return s;
}

// ---- against the wish --------------------------------------------------------------------------

// What decides: the tail that a profile cares for.
static double deciding_quantile(crdi_profile p)
{
    static const double q[CRDI_PROFILES] = {0.99, 0.999, 0.9999};
    return q[p];
}

static void describe_latency(const crdi_latency* l, char* out, size_t size)
{
    char text[32];
    size_t used = 0;
    for (int i = RUNGS - 1; i >= 0 && used < size; i--) {
        if (l->h.count < needs[i]) { break; }
        const int64_t ns = crd_histogram_quantile(&l->h, ladder[i].q);
        used += (size_t)snprintf(out + used, size - used, "%s %s, ", ladder[i].name,
                                 short_time(text, ns));
    }
    if (used < size) {
        snprintf(out + used, size - used, "max %s of %lld", short_time(text, l->h.max),
                 (long long)l->h.count);
    }
}

static void judge_one(const crdi_wish* w, const crdi_latency* l, const char* id, const char* missed,
                      crdi_diagnoses* r)
{
    char text[160], more[64] = "";
    if (!has(l)) {
        crdi_diagnose(r, id, "", CRDI_OPEN, "%s", *l->problem ? l->problem : "not measured");
        return;
    }
    describe_latency(l, text, sizeof text);
    const int n = snprintf(more, sizeof more, "%s", l->rights.fifo ? "" : ", without SCHED_FIFO");
    if (l->missed) {
        snprintf(more + n, sizeof more - (size_t)n, "; %s: %lld", missed, (long long)l->missed);
    }
    const double step = crdi_wished_step(w);
    crdi_quantile q = crdi_supported_quantile(l->h.count);
    if (q.q > deciding_quantile(w->profile)) { q.q = deciding_quantile(w->profile); }
    const bool late = 1e-9 * (double)crd_histogram_quantile(&l->h, q.q) > step / 2;
    const bool peak = 1e-9 * (double)l->h.max > step || l->missed;
    crdi_diagnosis* x = crdi_diagnose(r, id, "",
                                      late                              ? CRDI_BAD
                                      : peak && w->profile != CRDI_DESK ? CRDI_POOR
                                                                        : CRDI_GOOD,
                                      "%s%s", text, more);
    crdi_diagnosis_fix(x, "put right what stands above with fail and warn, then measure again");
}

static void judge_step(const crdi_facts* f, const crdi_wish* w, const crdi_latency* wakeup,
                       const crdi_latency* trip, crdi_diagnoses* r)
{
    const crdi_supported s = crdi_judge_latency(wakeup, trip, f->hypervisor == 1);
    const double step = crdi_wished_step(w);
    char subject[32];
    crdi_format_seconds(subject, step);
    if (isnan(s.step)) {
        crdi_diagnose(r, "step", subject, CRDI_OPEN, "%s", s.sentence);
        return;
    }
    const double q = common(wakeup, trip, deciding_quantile(w->profile)).q;
    int64_t ns = crd_histogram_quantile(&wakeup->h, q);
    if (has(trip)) { ns += crd_histogram_quantile(&trip->h, q); }
    const bool kept = round_up(2e-9 * (double)ns) <= step * (1 + 1e-9);
    // Hardware at stake: the worst that was seen counts.
    const bool hard = w->profile == CRDI_HARD;
    const bool peak = hard && 1e-9 * (double)(wakeup->h.max + trip->h.max) > step;
    const bool few = q < deciding_quantile(w->profile);
    crdi_diagnosis* x = crdi_diagnose(r, "step", subject,
                                      !kept || peak ? CRDI_BAD
                                      : few         ? CRDI_POOR
                                                    : CRDI_GOOD,
                                      "%s", s.sentence);
    if (!kept) {
        char a[32];
        crdi_diagnosis_fix(x, "a step of %s or more, or what stands above with fail and warn",
                           crdi_format_seconds(a, s.step));
    } else if (peak) {
        crdi_diagnosis_fix(x,
                           "the worst that was seen is longer than the step: put right what stands "
                           "above");
    } else {
        crdi_diagnosis_fix(x,
                           "measure longer, under the load of a real run: cardan doctor --duration "
                           "60s");
    }
}

void crdi_judge_measured(const crdi_facts* f, const crdi_wish* w, const crdi_latency* wakeup,
                         const crdi_latency* trip, crdi_diagnoses* r)
{
    judge_one(w, wakeup, "wake-up", "grid points slept over", r);
    judge_one(w, trip, "round-trip", "answers that did not come", r);
    judge_step(f, w, wakeup, trip, r);
}
