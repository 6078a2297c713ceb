// From what is known of a signal to the weights of an algorithm, and to the element that has them.
#include "analysis/analysis.h"

#include "shared/base.h"

#include <stdlib.h>
#include <string.h>

static const double pi = 3.14159265358979323846;
// Where the phase has to be right lies most of the power; hardly any lies where nothing may be
// amplified any more. No recording is so clean that a design may build on it.
static const double phase_part = 0.9, magnitude_part = 0.999, least_noise = 1e-4;

const char* crd_designer_name(crd_designer by)
{
    static const char* const names[CRD_DESIGNERS] = {"moment", "savitzky-golay", "wiener",
                                                     "optimal", "bounded"};
    return names[by];
}

crd_design_task crd_design_task_defaults(void)
{
    crd_design_task t = {.goal = crd_goal_defaults(), .degree = 2, .noise = NAN, .margin = 0.03};
    t.goal.m = 9;
    return t;
}

// ---- bands -------------------------------------------------------------------------------------

static int task_by_size(const void* a, const void* b)
{
    const double x = *(const double*)a, y = *(const double*)b;
    return x < y ? -1 : x > y;
}

// Density of what is there at all frequencies alike: the median of the upper fifth.
static crd_status noise_floor(crd_arena* arena, const crd_spectrum* s, double* out)
{
    const int from = s->bins * 4 / 5, n = s->bins - from;
    double* d = crdi_arena_new(arena, (size_t)n, sizeof *d);
    if (!d) { return CRD_E_MEMORY; }
    memcpy(d, s->density + from, (size_t)n * sizeof *d);
    qsort(d, (size_t)n, sizeof *d, task_by_size);
    *out = d[n / 2];
    return CRD_OK;
}

// Its spectrum would be that of rounding errors.
static bool is_constant(const crd_signal* s)
{
    int64_t n = 1;
    while (n < s->count && s->y[n] == s->y[0]) {
        n++;
    }
    return n == s->count;
}

// Each bin becomes a band with the power that rises above the floor.
static crd_status bands_of_spectrum(crd_arena* arena, const crd_spectrum* s, double floor,
                                    double dT, crd_design_task* task)
{
    task->bands = crdi_arena_new(arena, (size_t)s->bins, sizeof *task->bands);
    if (!task->bands) { return CRD_E_MEMORY; }
    const double width = s->omega[1];
    for (int i = 0; i < s->bins; i++) {
        const double power = (s->density[i] - floor) * width / s->variance;
        const double low = fmax(0, s->omega[i] - 0.5 * width) * dT;
        const double high = fmin(pi, (s->omega[i] + 0.5 * width) * dT);
        if (power > 1e-9 && low < high) {
            task->bands[task->band_count++] = (crd_band){low, high, power};
        }
    }
    return CRD_OK;
}

static crd_status find_in_signal(crd_context* ctx, crd_arena* arena, crd_design_task* task)
{
    const crd_signal* r = task->signal;
    crd_status st = CRD_OK;
    crd_spectrum s = {0};
    double most, all, floor = 0;
    if (is_constant(r)) {
        return crdi_fail(ctx, CRD_E_RANGE, "'%s' is constant: there is nothing to design for",
                         r->name);
    }
    CRD_TRY(crd_analysis_spectrum(ctx, r->y, r->count, r->step, 0, &s));
    CRD_TRY(crd_spectrum_bandwidth(ctx, &s, phase_part, &most));
    CRD_TRY(crd_spectrum_bandwidth(ctx, &s, magnitude_part, &all));
    CRD_TRY(noise_floor(arena, &s, &floor));
    const double nyquist = pi / r->step, width = s.omega[1];
    if (!(task->goal.phase.hi > 0)) {
        const double hi = fmin(fmax(most, 2 * width), 0.9 * nyquist);
        task->goal.phase = (crd_interval){hi / 100, hi};
    }
    if (!(task->goal.magnitude.hi > 0)) {
        const double hi = fmin(fmax(all, task->goal.phase.hi), 0.95 * nyquist);
        task->goal.magnitude = (crd_interval){task->goal.phase.lo, hi};
    }
    if (isnan(task->noise)) { task->noise = fmax(floor * nyquist / s.variance, least_noise); }
    CRD_TRY(bands_of_spectrum(arena, &s, floor, r->step, task));
fail:
    crd_spectrum_clear(ctx, &s);
    return st;
}

crd_status crd_design_find_bands(crd_context* ctx, crd_arena* arena, crd_design_task* task)
{
    if (task->signal) { return find_in_signal(ctx, arena, task); }
    crd_goal* g = &task->goal;
    if (!(g->magnitude.hi > 0)) { g->magnitude = g->phase; }
    if (isnan(task->noise)) { task->noise = least_noise; }
    task->bands = crdi_arena_new(arena, 2, sizeof *task->bands);
    if (!task->bands) { return CRD_E_MEMORY; }
    task->bands[task->band_count++] = (crd_band){0, g->phase.hi * g->dT, 1};
    if (g->magnitude.hi > g->phase.hi) { // oscillations that shall not be amplified
        task->bands[task->band_count++] =
            (crd_band){g->phase.hi * g->dT, g->magnitude.hi * g->dT, 0.03};
    }
    return CRD_OK;
}

// ---- weights -----------------------------------------------------------------------------------

static double mean_of(const crd_signal* s)
{
    double sum = 0;
    for (int64_t n = 0; n < s->count; n++) {
        sum += s->y[n];
    }
    return sum / (double)s->count;
}

static crd_status make_weights(crd_context* ctx, const crd_design_task* t, crd_designer by, int k,
                               crd_linear* out)
{
    crd_goal goal = t->goal;
    goal.k = k;
    crd_design d = crd_design_defaults(by == CRD_DESIGNER_MOMENT ? CRD_METHOD_MOMENT
                                                                 : CRD_METHOD_SAVITZKY_GOLAY);
    double a[CRD_TAPS_MAX];
    crd_status st = CRD_OK;
    switch (by) {
    case CRD_DESIGNER_WIENER:
        return t->constant && t->signal
                   ? crd_linear_affine(ctx, k, goal.m, t->bands, t->band_count, t->noise,
                                       mean_of(t->signal), out)
                   : crd_linear_wiener(ctx, k, goal.m, t->bands, t->band_count, t->noise, out);
    case CRD_DESIGNER_OPTIMAL:
        st = crd_goal_optimal(ctx, &goal, a);
        break;
    case CRD_DESIGNER_BOUNDED:
        st = crd_goal_bounded(ctx, &goal, t->margin, t->noise, a);
        break;
    default:
        d.taps = goal.m;
        d.degree = t->degree;
        return crd_linear_make(ctx, &d, k, out);
    }
    return st < 0 ? st : crd_linear_copy(ctx, &(crd_linear){goal.m, k, a, NULL, 0}, false, out);
}

// The weights on the recorded signal, which had always been as it is at the beginning.
static double estimate_sample(const crd_signal* s, const crd_linear* l, int64_t n)
{
    double sum = l->b;
    for (int i = 0; i < l->m; i++) {
        const int64_t at = n - l->k - i;
        sum += l->a[i] * s->y[at > 0 ? at : 0];
    }
    return sum;
}

static void try_on_signal(const crd_signal* s, crd_designed* d)
{
    crd_score score = {0}, hold = {0};
    for (int64_t n = 0; n < s->count; n++) {
        crd_score_add(&score, s->y[n], estimate_sample(s, &d->linear, n));
        crd_score_add(&hold, s->y[n], s->y[n > d->linear.k ? n - d->linear.k : 0]);
    }
    d->metrics = crd_score_metrics(&score);
    d->zoh = crd_score_metrics(&hold).C;
}

crd_status crd_design_make(crd_context* ctx, const crd_design_task* t, crd_designer by, int k,
                           crd_designed* out)
{
    crd_goal goal = t->goal;
    goal.k = k;
    *out = (crd_designed){.by = by, .metrics = {NAN, NAN, NAN, NAN, NAN}, .zoh = NAN};
    crd_status st = make_weights(ctx, t, by, k, &out->linear);
    if (st >= 0) {
        st = crd_goal_quality(ctx, &goal, &out->linear, &out->quality);
        if (st < 0) { crd_linear_clear(ctx, &out->linear); }
    }
    if (st < 0) { return crdi_fail_in(ctx, st, "%s, k = %d", crd_designer_name(by), k); }
    if (t->signal) { try_on_signal(t->signal, out); }
    return CRD_OK;
}

// ---- the element -------------------------------------------------------------------------------

// Beyond the largest latency of the table its weights go on to be used.
static int latency_max(const crd_designed* designs, int count)
{
    const int standard = crd_coupling_defaults().k_max;
    const int needed = count > 0 ? designs[count - 1].linear.k + CRD_LATENCY_SPARE : 0;
    return needed < standard ? standard : needed < CRD_LATENCY_MAX ? needed : CRD_LATENCY_MAX;
}

crd_status crd_design_describe(const char* name, double step, const crd_designed* designs,
                               int count, crd_text* out)
{
    bool exact = true; // constants pass
    for (int i = 0; i < count; i++) {
        double sum = designs[i].linear.b - 1;
        for (int j = 0; j < designs[i].linear.m; j++) {
            sum += designs[i].linear.a[j];
        }
        exact = exact && designs[i].linear.b == 0 && fabs(sum) <= 1e-6;
    }
    crdi_element_begin(name, step, out);
    crdi_text_add(out, "\"linear\",%s\n  \"weights\": [", exact ? "" : "\n  \"any-gain\": true,");
    for (int i = 0; i < count; i++) {
        crdi_text_add(out, "%s\n    {\"k\": %d, \"a\": [", i ? "," : "", designs[i].linear.k);
        for (int j = 0; j < designs[i].linear.m; j++) {
            crdi_text_add(out, "%s", j ? ", " : "");
            crdi_text_json_number(out, designs[i].linear.a[j]);
        }
        crdi_text_add(out, "]");
        if (designs[i].linear.b != 0) {
            crdi_text_add(out, ", \"b\": ");
            crdi_text_json_number(out, designs[i].linear.b);
        }
        crdi_text_add(out, "}");
    }
    crdi_text_add(out, "\n  ],\n  \"reconstruct\": \"hold\",\n  \"react\": \"rebase\",\n");
    crdi_text_add(out, "  \"latency-max\": %d\n}\n", latency_max(designs, count));
    return out->failed ? CRD_E_MEMORY : CRD_OK;
}

void crdi_element_begin(const char* name, double step, crd_text* out)
{
    crdi_text_add(out, "{\n  \"element\": 1,\n  \"name\": ");
    crdi_text_json(out, name);
    crdi_text_add(out, ",\n  \"step\": ");
    crdi_text_json_number(out, step);
    crdi_text_add(out, ",\n  \"algorithm\": ");
}
