// The element: history -> latency -> discontinuity -> algorithm -> reconstruction.
#include <math.h>
#include <string.h>

#include "coupling/adaptive.h"
#include "coupling/timeline.h"

enum {
    REFRESH = 10, // samples between two solutions of what learns
    NEARBY = 4,   // samples that a difference of the detector spans
};

struct crd_coupling {
    crd_context* ctx;
    crd_coupling_options opt;      // pointers in it are not followed after create
    crd_linear *table, *zoh, *foh; // (k_max + 1) each, by k
    crd_network network;
    crdi_learner learner;
    crdi_mixture mixture;
    crdi_timeline time;
    crdi_history history;
    crd_detector detector;
    crd_coupling_counts counts;

    bool started;
    int since_jump; // samples since the newest that was discontinuous
    bool jump;      // the newest is

    // The curve in use: p0 + p1 (t - from)/dT + gap (1 - (t - gap_from)/dT), the last part while >
    // 0.
    bool planned, stale; // there is a curve; the history has changed since
    int k;
    crd_active active;
    double from, p0, p1, gap, gap_from;
};

crd_coupling_options crd_coupling_defaults(void)
{
    return (crd_coupling_options){.k_max = 16,
                                  .late = 16,
                                  .algorithm = CRD_ALGORITHM_AUTO,
                                  .design = crd_design_defaults(CRD_METHOD_EROS),
                                  .learning_taps = 25,
                                  .learning_window = 300,
                                  .learning_ridge = 0.01,
                                  .reconstruction = CRD_RECONSTRUCT_OWN,
                                  .detection = CRD_DETECT_GUARDED,
                                  .reaction = CRD_REACT_REBASE};
}

// ---- create ------------------------------------------------------------------------------------

static crd_status make_tables(crd_coupling* c)
{
    crd_status st = CRD_OK;
    crd_coupling_options o = c->opt;
    if (o.algorithm == CRD_ALGORITHM_NETWORK) {
        CRD_TRY(crdi_network_copy(c->ctx, o.network, &c->network));
    } else if (o.algorithm == CRD_ALGORITHM_AUTO) {
        CRD_TRY(crdi_mixture_init(&c->mixture, c->ctx, o.k_max));
    } else {
        CRD_TRY(crdi_table_make(c->ctx, &o, &c->table));
    }
    if (o.algorithm == CRD_ALGORITHM_LEARNING) {
        CRD_TRY(crdi_learner_init(&c->learner, c->ctx, o.learning_taps, o.k_max, o.learning_window,
                                  o.learning_ridge, c->table));
    }
    o.algorithm = CRD_ALGORITHM_LINEAR;
    o.design = crd_design_defaults(CRD_METHOD_ZOH);
    CRD_TRY(crdi_table_make(c->ctx, &o, &c->zoh));
    o.design = crd_design_defaults(CRD_METHOD_FOH);
    CRD_TRY(crdi_table_make(c->ctx, &o, &c->foh));
fail:
    return st;
}

// Samples that the algorithm looks at.
static int reach(const crd_coupling* c)
{
    switch (c->opt.algorithm) {
    case CRD_ALGORITHM_NETWORK:
        return c->network.m;
    case CRD_ALGORITHM_LEARNING:
        return crdi_learner_reach(&c->learner);
    case CRD_ALGORITHM_AUTO:
        return crdi_mixture_reach(&c->mixture);
    default:
        return crdi_table_taps(c->table, c->opt.k_max);
    }
}

crd_status crd_coupling_create(crd_context* ctx, const crd_coupling_options* opt,
                               crd_coupling** out)
{
    crd_status st = crdi_options_check(ctx, opt);
    if (st < 0) { return st; }
    crd_coupling* c = crdi_new(ctx, sizeof *c);
    if (!c) { return CRD_E_MEMORY; }
    c->ctx = ctx;
    c->opt = *opt;
    CRD_TRY(make_tables(c));
    CRD_TRY(crdi_history_init(&c->history, ctx, reach(c) + opt->late + CRD_DETECT_WINDOW));
    crd_coupling_reset(c);
    *out = c;
    return CRD_OK;
fail:
    crd_coupling_destroy(c);
    return st;
}

void crd_coupling_destroy(crd_coupling* c)
{
    if (!c) { return; }
    crdi_table_free(c->ctx, c->table, c->opt.k_max);
    crdi_table_free(c->ctx, c->zoh, c->opt.k_max);
    crdi_table_free(c->ctx, c->foh, c->opt.k_max);
    crd_network_clear(c->ctx, &c->network);
    crdi_learner_clear(&c->learner, c->ctx);
    crdi_mixture_clear(&c->mixture, c->ctx);
    crdi_history_clear(&c->history, c->ctx);
    crdi_free(c->ctx, c);
}

static void forget(crd_coupling* c)
{
    if (c->opt.algorithm == CRD_ALGORITHM_LEARNING) { crdi_learner_reset(&c->learner); }
    if (c->opt.algorithm == CRD_ALGORITHM_AUTO) { crdi_mixture_reset(&c->mixture); }
}

static void begin(crd_coupling* c)
{
    c->started = c->planned = c->jump = false;
    c->active = CRD_ACTIVE_ALGORITHM;
    c->since_jump = CRDI_NEVER;
    c->gap = 0;
    forget(c);
    crd_detector_init(&c->detector, c->opt.detection, c->opt.threshold, c->opt.resolution);
}

void crd_coupling_reset(crd_coupling* c)
{
    begin(c);
    crdi_timeline_init(&c->time, c->opt.step, c->opt.start_time);
    c->counts = (crd_coupling_counts){0};
    c->k = 0;
    crdi_history_start(&c->history, c->opt.start_value);
}

// ---- push --------------------------------------------------------------------------------------

static void start(crd_coupling* c, double value, double stamp, int64_t sequence)
{
    begin(c);
    c->started = true;
    crdi_timeline_start(&c->time, stamp, sequence);
    crdi_history_start(&c->history, value);
    crd_detector_push(&c->detector, value);
}

static void append(crd_coupling* c, double value, bool real)
{
    crdi_history_append(&c->history, value, real);
    const int filled = crdi_history_filled(&c->history, NEARBY);
    const crd_detected found = crdi_detector_push(&c->detector, value, filled);
    c->counts.filled += !real;
    c->counts.jumps += found.jump;
    c->since_jump = found.jump ? 0 : c->since_jump < CRDI_NEVER ? c->since_jump + 1 : CRDI_NEVER;
    c->jump = found.jump;
    const double lift = found.rebase && c->opt.reaction == CRD_REACT_REBASE ? found.height : 0;
    if (lift != 0) { crdi_history_lift(&c->history, lift); }
    const double* y = crdi_history_newest(&c->history);
    if (c->opt.algorithm == CRD_ALGORITHM_LEARNING) { crdi_learner_push(&c->learner, y); }
    if (c->opt.algorithm == CRD_ALGORITHM_AUTO) { crdi_mixture_push(&c->mixture, y, lift); }
}

// Is the line across the gap what the signal could have done?
static bool gap_is_smooth(const crd_coupling* c, double slope, int64_t steps)
{
    crd_detector d = c->detector;
    const double before = *crdi_history_newest(&c->history);
    bool jump = false;
    for (int64_t j = 1; j <= steps; j++) {
        const int filled = (int)(j < NEARBY ? j : NEARBY) - (j == steps);
        jump |= crdi_detector_push(&d, before + slope * (double)j, filled).jump;
    }
    return !jump;
}

// Samples are missing before this one. They lie on a line to it; if there was a jump among them,
// the slope before the gap goes on, so that the jump is where the sample is.
static void fill_gap(crd_coupling* c, double value, int64_t steps)
{
    const double* y = crdi_history_newest(&c->history);
    const double before = y[0], trend = (y[0] - y[2]) / 2;
    double slope = (value - before) / (double)steps;
    if (c->opt.detection != CRD_DETECT_NONE && !gap_is_smooth(c, slope, steps)) { slope = trend; }
    for (int64_t j = 1; j < steps; j++) {
        append(c, before + slope * (double)j, false);
    }
}

static void push_new(crd_coupling* c, double value, double stamp, int64_t steps, bool real)
{
    if (steps > 1) { fill_gap(c, value, steps); }
    append(c, value, real);
    c->counts.backwards += !crdi_timeline_advance(&c->time, stamp, steps);
    c->stale = true;
}

static void push_old(crd_coupling* c, double value, int age)
{
    double before[CRD_DETECT_WINDOW];
    const double* y = crdi_history_newest(&c->history);
    memcpy(before, y, sizeof before);
    if (crdi_history_replace(&c->history, age, value)) {
        for (int i = 0; i < CRD_DETECT_WINDOW; i++) { // the detector learns of it, too
            c->detector.last[i] += y[i] - before[i];
        }
        c->counts.late += age > 0;
        c->stale = true;
    } else {
        c->counts.duplicates++;
    }
}

void crd_coupling_push(crd_coupling* c, double value, double stamp, int64_t sequence)
{
    const bool usable = crdi_usable(value);
    c->counts.samples++;
    c->counts.not_finite += !usable;
    if (!c->started) {
        if (usable) { start(c, value, stamp, sequence); }
        return;
    }
    const double held = usable ? value : *crdi_history_newest(&c->history);
    int64_t steps = 0;
    switch (crdi_timeline_place(&c->time, stamp, sequence, c->history.count, c->history.capacity,
                                &steps)) {
    case CRDI_PLACE_NEW:
        push_new(c, held, stamp, steps, usable);
        break;
    case CRDI_PLACE_OLD:
        if (usable) { push_old(c, value, (int)steps); }
        break;
    case CRDI_PLACE_TOO_LATE:
        c->counts.too_late++;
        break;
    case CRDI_PLACE_RESTART:
        c->counts.restarts++;
        start(c, held, stamp, sequence);
        break;
    }
}

// ---- eval --------------------------------------------------------------------------------------

// As published, samples from before and after a jump never meet in one prediction. NULL: the
// algorithm itself is to be used.
static const crd_linear* fallback_for(const crd_coupling* c, int k)
{
    const int m = c->opt.algorithm == CRD_ALGORITHM_NETWORK    ? c->network.m
                  : c->opt.algorithm == CRD_ALGORITHM_LEARNING ? c->learner.m
                  : c->opt.algorithm == CRD_ALGORITHM_AUTO     ? c->mixture.slow.m
                                                               : c->table[k].m;
    if (c->opt.reaction != CRD_REACT_SWITCH || c->since_jump >= m - 1) { return NULL; }
    return c->since_jump == 0 ? &c->zoh[k] : &c->foh[k];
}

static void predict(crd_coupling* c, const double* y, int k)
{
    const crd_linear* l = fallback_for(c, k);
    c->active = !l ? CRD_ACTIVE_ALGORITHM : c->since_jump == 0 ? CRD_ACTIVE_ZOH : CRD_ACTIVE_FOH;
    c->p1 = 0;
    if (!l) {
        switch (c->opt.algorithm) {
        case CRD_ALGORITHM_NETWORK:
            c->p0 = crd_network_eval(&c->network, y);
            return;
        case CRD_ALGORITHM_LEARNING:
            c->p0 = crdi_dot(c->learner.m, crdi_learner_weights(&c->learner, k, REFRESH), y);
            return;
        case CRD_ALGORITHM_AUTO:
            c->p0 = crdi_mixture_predict(&c->mixture, y, k);
            return;
        default:
            l = &c->table[k];
        }
    }
    c->p0 = crdi_dot(l->m, l->a, y);
    if (c->opt.reconstruction != CRD_RECONSTRUCT_HOLD) { c->p1 = crdi_dot(l->m, l->A, y); }
}

static double curve_at(const crd_coupling* c, double t)
{
    double value = c->p0;
    if (c->p1 != 0) { // a curve is not continued for more than a step beyond its own
        value += c->p1 * fmax(-1, fmin((t - c->from) * c->time.per_step, 2));
    }
    if (c->gap != 0) {
        value += c->gap * fmax(0, fmin(1 - (t - c->gap_from) * c->time.per_step, 1));
    }
    return value;
}

// A new curve from the newest samples for latency k.
static void plan(crd_coupling* c, int k, double t)
{
    const double* y = crdi_history_newest(&c->history);
    const bool smooth = c->opt.reconstruction == CRD_RECONSTRUCT_SMOOTH && c->planned;
    const double before = smooth ? curve_at(c, t) : 0;
    const int in_table = k <= c->opt.k_max ? k : c->opt.k_max;
    predict(c, y, in_table);
    if (k > in_table) { // no further than to the end of the last step that is compensated
        c->counts.beyond++;
        c->p0 += c->p1;
        c->p1 = 0;
    }
    if (!crdi_is_prediction(c->p0, c->p1)) {
        c->counts.overflows++;
        c->p0 = y[0];
        c->p1 = 0;
    }
    c->k = k;
    c->from = c->time.stamp + k * c->time.step;
    c->gap = 0;
    if (smooth) {
        c->gap = before - curve_at(c, t);
        c->gap_from = t;
    }
    c->planned = true;
    c->stale = false;
}

double crd_coupling_eval(crd_coupling* c, double t)
{
    const double age = crdi_timeline_age(&c->time, t);
    if (!(age > -CRDI_GRID_TOLERANCE)) { // also t = NaN
        if (!c->started || isnan(age)) { return *crdi_history_newest(&c->history); }
        c->counts.rewound++;
        return crdi_history_at(&c->history, -age);
    }
    const int k = crdi_timeline_k(age);
    if (!c->planned || c->stale || k != c->k) { plan(c, k, t); }
    return curve_at(c, t);
}

bool crd_coupling_set_step(crd_coupling* c, double step)
{
    const double ratio = step * c->time.per_step;
    if (!crdi_timeline_set_step(&c->time, step)) { return false; }
    crdi_history_resample(&c->history, ratio);
    forget(c);
    crd_detector_init(&c->detector, c->opt.detection, c->opt.threshold, c->opt.resolution);
    c->since_jump = CRDI_NEVER;
    c->stale = true;
    return true;
}

crd_coupling_counts crd_coupling_get_counts(const crd_coupling* c)
{
    return c->counts;
}

crd_coupling_state crd_coupling_get_state(const crd_coupling* c)
{
    return (crd_coupling_state){.k = c->k,
                                .jump = c->jump,
                                .active = c->active,
                                .newest = *crdi_history_newest(&c->history),
                                .stamp = c->time.stamp,
                                .sequence = c->time.sequence};
}
