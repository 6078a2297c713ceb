// From what is known of a signal to weights.
#include "cli/analyze.h"
#include "cli/design.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char* const crdi_designer_names[] = {"moment",  "savitzky-golay", "wiener",
                                           "optimal", "bounded",        NULL};
static const double pi = 3.14159265358979323846;
// Where the phase has to be right lies most of the power; hardly any lies where nothing may be
// amplified any more. No recording is so clean that a design may build on it.
static const double phase_part = 0.9, magnitude_part = 0.999, least_noise = 1e-4;

// ---- words -------------------------------------------------------------------------------------

static crd_status bad_latency(crd_context* ctx, const char* text)
{
    return crdi_fail(
        ctx, CRD_E_RANGE,
        "--latency: '%s', expected macro steps (6), several of them (0,1,3 or 4..9, up "
        "to %d), or a time (60 ms)",
        text, CRD_LATENCY_MAX);
}

static bool one_latency(const char* text, size_t length, int64_t* out)
{
    return crdi_parse_int64(text, length, out) && *out >= 0 && *out <= CRD_LATENCY_MAX;
}

crd_status crdi_parse_latencies(crd_context* ctx, const char* text, double step,
                                int out[CRDI_LATENCIES_MAX], int* count)
{
    const char* dots = strstr(text, "..");
    int64_t first, last;
    *count = 0;
    if (dots) {
        if (!one_latency(text, (size_t)(dots - text), &first) ||
            !one_latency(dots + 2, strlen(dots + 2), &last) || first > last) {
            return bad_latency(ctx, text);
        }
        for (int64_t k = first; k <= last; k++) {
            out[(*count)++] = (int)k;
        }
        return CRD_OK;
    }
    double seconds;
    crd_dimension dim, time;
    bool bare;
    if (crd_quantity_parse(text, &seconds, &dim, &bare) && !bare) {
        const double steps = seconds / step;
        (void)crd_dimension_parse("s", &time);
        if (!crd_dimension_equal(&dim, &time) ||
            !(steps >= -1e-6 && steps <= CRD_LATENCY_MAX + 1e-6)) {
            return bad_latency(ctx, text);
        }
        // A sample that was sent on the raster is used on it: 57.5 ms of 10 ms each are six steps.
        out[(*count)++] = (int)ceil(fmax(steps, 0) - 1e-6);
        return CRD_OK;
    }
    for (const char* at = text;; at += strcspn(at, ",") + 1) {
        const size_t length = strcspn(at, ",");
        if (!one_latency(at, length, &last) || *count == CRDI_LATENCIES_MAX ||
            (*count > 0 && last <= out[*count - 1])) {
            return bad_latency(ctx, text);
        }
        out[(*count)++] = (int)last;
        if (!at[length]) { return CRD_OK; }
    }
}

static bool frequency(const char* text, size_t length, const char* unit, double* out)
{
    double factor = 1;
    if (unit[0]) {
        if (strcmp(unit, "Hz") == 0) {
            factor = 2 * pi;
        } else if (strcmp(unit, "kHz") == 0) {
            factor = 2000 * pi;
        } else if (strcmp(unit, "rad/s") != 0) {
            return false;
        }
    }
    if (!crdi_parse_double(text, length, out)) { return false; }
    *out *= factor;
    return isfinite(*out);
}

crd_status crdi_parse_interval(crd_context* ctx, const char* option, const char* text,
                               crd_interval* out)
{
    const char* dots = strstr(text, "..");
    const char* second = dots ? dots + 2 : text;
    const size_t number = crdi_number_prefix(second);
    const char* unit = second + number;
    unit += strspn(unit, " ");
    bool good = frequency(second, number, unit, &out->hi);
    out->lo = out->hi / 100;
    if (good && dots) { good = frequency(text, (size_t)(dots - text), unit, &out->lo); }
    if (good && out->lo >= 0 && out->lo < out->hi) { return CRD_OK; }
    return crdi_fail(ctx, CRD_E_RANGE,
                     "%s: '%s', expected two frequencies such as 0.1..10 rad/s or 0.02..2 Hz, the "
                     "lower one first",
                     option, text);
}

// ---- the spectrum of a recording ---------------------------------------------------------------

static int by_size(const void* a, const void* b)
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
    qsort(d, (size_t)n, sizeof *d, by_size);
    *out = d[n / 2];
    return CRD_OK;
}

// Its spectrum would be that of rounding errors.
static bool is_constant(const crdi_recorded* r)
{
    int64_t n = 1;
    while (n < r->count && r->y[n] == r->y[0]) {
        n++;
    }
    return n == r->count;
}

// Each bin becomes a band with the power that rises above the floor.
static crd_status take_bands(crd_arena* arena, const crd_spectrum* s, double floor, double dT,
                             crdi_design_task* task)
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

crd_status crdi_design_from_recording(crd_arena* arena, crdi_design_task* task)
{
    const crdi_recorded* r = task->recorded;
    crd_status st = CRD_OK;
    crd_spectrum s = {0};
    double most, all;
    if (is_constant(r)) {
        return crdi_fail(r->ctx, CRD_E_RANGE, "'%s' is constant: there is nothing to design for",
                         r->name);
    }
    CRD_TRY(crd_analysis_spectrum(r->ctx, r->y, r->count, r->step, 0, &s));
    CRD_TRY(crd_spectrum_bandwidth(r->ctx, &s, phase_part, &most));
    CRD_TRY(crd_spectrum_bandwidth(r->ctx, &s, magnitude_part, &all));
    double floor = 0;
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
    CRD_TRY(take_bands(arena, &s, floor, r->step, task));
fail:
    crd_spectrum_clear(r->ctx, &s);
    return st;
}

// ---- weights -----------------------------------------------------------------------------------

static crd_status take_weights(crd_context* ctx, int k, int m, const double* a, crd_linear* out)
{
    return crd_linear_copy(ctx, &(crd_linear){m, k, a, NULL}, false, out);
}

static crd_status make_weights(crd_context* ctx, const crdi_design_task* t, crdi_designer by, int k,
                               crd_linear* out)
{
    crd_goal goal = t->goal;
    goal.k = k;
    crd_design d = crd_design_defaults(by == CRDI_DESIGN_MOMENT ? CRD_METHOD_MOMENT
                                                                : CRD_METHOD_SAVITZKY_GOLAY);
    double a[CRD_TAPS_MAX];
    crd_status st = CRD_OK;
    switch (by) {
    case CRDI_DESIGN_WIENER:
        return crd_linear_wiener(ctx, k, goal.m, t->bands, t->band_count, t->noise, out);
    case CRDI_DESIGN_OPTIMAL:
        CRD_TRY(crd_goal_optimal(ctx, &goal, a));
        return take_weights(ctx, k, goal.m, a, out);
    case CRDI_DESIGN_BOUNDED:
        CRD_TRY(crd_goal_bounded(ctx, &goal, t->margin, t->noise, a));
        return take_weights(ctx, k, goal.m, a, out);
    default:
        d.taps = goal.m;
        d.degree = t->degree;
        return crd_linear_make(ctx, &d, k, out);
    }
fail:
    return st;
}

// The weights on the recorded signal, which had always been as it is at the beginning.
static double estimate(const crdi_recorded* r, const crd_linear* l, int64_t n)
{
    double sum = 0;
    for (int i = 0; i < l->m; i++) {
        const int64_t at = n - l->k - i;
        sum += l->a[i] * r->y[at > 0 ? at : 0];
    }
    return sum;
}

static void try_on_recording(const crdi_recorded* r, const crd_linear* l, crd_metrics* out,
                             double* zoh)
{
    crd_score score = {0}, hold = {0};
    for (int64_t n = 0; n < r->count; n++) {
        crd_score_add(&score, r->y[n], estimate(r, l, n));
        crd_score_add(&hold, r->y[n], r->y[n > l->k ? n - l->k : 0]);
    }
    *out = crd_score_metrics(&score);
    *zoh = crd_score_metrics(&hold).C;
}

crd_status crdi_design_make(crd_context* ctx, const crdi_design_task* t, crdi_designer by, int k,
                            crdi_designed* out)
{
    crd_goal goal = t->goal;
    goal.k = k;
    *out = (crdi_designed){.by = by, .metrics = {NAN, NAN, NAN, NAN, NAN}, .zoh = NAN};
    crd_status st = make_weights(ctx, t, by, k, &out->linear);
    if (st >= 0) {
        st = crd_goal_quality(ctx, &goal, &out->linear, &out->quality);
        if (st < 0) { crd_linear_clear(ctx, &out->linear); }
    }
    if (st < 0) { return crdi_fail_in(ctx, st, "%s, k = %d", crdi_designer_names[by], k); }
    if (t->recorded) { try_on_recording(t->recorded, &out->linear, &out->metrics, &out->zoh); }
    return CRD_OK;
}

// ---- margins -----------------------------------------------------------------------------------

// The exact map over a macro step sees what G_p does not: what swings near the Nyquist frequency.
// `*stable` becomes false if one of its modes grows; a loop that has no such map is left as it is.
static crd_status check_modes(crd_context* ctx, const crdi_loop_case* c, crd_sampling sampling,
                              bool* stable)
{
    crd_monodromy map = {0};
    crd_complex slowest = {-1, 0};
    if (c->no_map || !c->sampled.link_count) { return CRD_OK; }
    crd_status st = crd_plant_monodromy(ctx, &c->sampled, c->loop.dT, sampling, &map);
    if (st >= 0 && map.size > 0) { st = crd_monodromy_modes(ctx, &map, c->loop.dT, 1, &slowest); }
    if (st >= 0 && !(slowest.re < 0)) { *stable = false; }
    crd_monodromy_clear(ctx, &map);
    const bool no_map = st == CRD_E_UNSUPPORTED || st == CRD_E_CONVERGENCE || st == CRD_E_RANGE;
    return no_map ? CRD_OK : st;
}

crd_status crdi_design_margins(crd_context* ctx, const char* path, const char* element, int k,
                               crdi_margins* out)
{
    char latency[16];
    crdi_loop_case c;
    const crdi_analyze_options o = {
        .latency = latency, .step = NAN, .at = NAN, .elements = {.items = &element, .count = 1}};
    snprintf(latency, sizeof latency, "%d", k);
    crd_status st = crdi_loop_read(ctx, path, &o, &c);
    if (st < 0) { return st; }
    crd_nyquist n;
    st = crd_loop_nyquist(ctx, &c.loop, &n);
    if (st >= 0) {
        *out = (crdi_margins){.known = true,
                              .stable = n.closed_unstable == 0,
                              .phase = NAN,
                              .delay = n.delay_margin,
                              .nearest = n.min_distance};
        for (int i = 0; i < n.phase_count; i++) {
            if (!(fabs(out->phase) <= fabs(n.phase[i].margin))) { out->phase = n.phase[i].margin; }
        }
        st = check_modes(ctx, &c, CRD_SAMPLE_AFTER, &out->stable);
    }
    if (st >= 0) {
        st = check_modes(ctx, &c, CRD_SAMPLE_BEFORE, &out->stable);
        if (!out->stable) { out->delay = 0; }
    }
    crdi_loop_clear(&c);
    return st < 0 ? crdi_fail_in(ctx, st, "%s", path) : st;
}

json_t* crdi_margins_json(const crdi_margins* m)
{
    if (!m->known) { return json_null(); }
    return json_pack("{s:b, s:o, s:o, s:o}", "stable", m->stable, "phase_deg",
                     crdi_json_number(m->phase), "delay", crdi_json_number(m->delay), "nearest",
                     crdi_json_number(m->nearest));
}

// ---- files -------------------------------------------------------------------------------------

// Beyond the largest latency of the table its weights go on to be used.
static int latency_max(const crdi_designed* designs, int count)
{
    const int standard = crd_coupling_defaults().k_max;
    const int needed = count > 0 ? designs[count - 1].linear.k + CRDI_LATENCY_SPARE : 0;
    return needed < standard ? standard : needed < CRD_LATENCY_MAX ? needed : CRD_LATENCY_MAX;
}

crd_status crdi_design_describe(const char* name, double step, const crdi_designed* designs,
                                int count, crd_text* out)
{
    crdi_text_add(out, "{\n  \"element\": 1,\n  \"name\": ");
    crdi_text_json(out, name);
    crdi_text_add(out, ",\n  \"step\": ");
    crdi_text_json_number(out, step);
    crdi_text_add(out, ",\n  \"algorithm\": \"linear\",\n  \"weights\": [");
    for (int i = 0; i < count; i++) {
        crdi_text_add(out, "%s\n    {\"k\": %d, \"a\": [", i ? "," : "", designs[i].linear.k);
        for (int j = 0; j < designs[i].linear.m; j++) {
            crdi_text_add(out, "%s", j ? ", " : "");
            crdi_text_json_number(out, designs[i].linear.a[j]);
        }
        crdi_text_add(out, "]}");
    }
    crdi_text_add(out, "\n  ],\n  \"reconstruct\": \"hold\",\n  \"react\": \"rebase\",\n");
    crdi_text_add(out, "  \"latency-max\": %d\n}\n", latency_max(designs, count));
    return out->failed ? CRD_E_MEMORY : CRD_OK;
}

crd_status crdi_check_output(crd_context* ctx, const char* output, const char* recording)
{
    return crdi_same_file(output, recording)
               ? crdi_fail(ctx, CRD_E_RANGE,
                           "%s: this would overwrite the recording, expected another file", output)
               : CRD_OK;
}
