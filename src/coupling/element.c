// The element: history -> latency -> discontinuity -> algorithm -> reconstruction.
#include <limits.h>
#include <math.h>
#include <string.h>

#include "coupling/algorithm.h"
#include "coupling/commands.h"
#include "coupling/history.h"
#include "coupling/networks.h"
#include "coupling/timeline.h"
#include "shared/base.h"
#include "shared/coupling.h"

enum { STALE = INT_MIN };

// A linear algorithm as the step reads it.
typedef struct weights {
    const crd_real *w, *end; // (m) a, or (m x 2) a and A
} weights;

// What of its options is needed after create.
typedef struct kept_options {
    double step, start_time, start_value, gain_limit, threshold, resolution, detect_low,
        detect_high;
    int k_max, detect_window;
    crd_reconstruction reconstruction;
    crd_detection detection;
    crd_reaction reaction;
    bool any_gain;
} kept_options;

struct crd_coupling {
    // What a sample that is in order touches stands together.
    bool brief;          // started, nothing to detect, nothing that learns: only the history
    bool sloped;         // the algorithm's own A is used and not zero
    bool planned;        // there is a curve
    int k;               // its latency, | STALE if the history has changed since
    double direct_until; // linear without b, stand-ins, smoothing: latency in steps, else -1
    weights* weights;    // (k_max + 1) by k, linear algorithms only
    // The curve: p0 + p1 (t - from)/dT, and as long as it is not zero, gap (1 - (t - gap_from)/dT)
    crd_real p0, p1, gap;
    double from, gap_from;
    crdi_timeline time;
    crdi_history history;

    bool started;
    int since_jump; // samples since the newest that was discontinuous
    bool jump;      // the newest is
    crd_active active;
    crd_context* ctx;
    kept_options opt;
    crd_linear *table, *zoh, *foh; // (k_max + 1) each, by k; the last two if they can stand in
    crd_real* pairs;               // of weights, if sloped
    const crdi_algorithm* algorithm;
    void* state;                // the algorithm's, NULL if it is linear
    crdi_networks* networks;    // the same if it is a network, else NULL
    crdi_commands* commands;    // NULL: there are none
    crd_real lowest, highest;   // network: of the samples so far
    crd_detector* detector;     // NULL: nothing to detect
    crd_coupling_counts counts; // but for the samples
    int64_t samples_beside;     // pushed: these and history.count
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
                                  .detect_window = CRD_DETECT_WINDOW,
                                  .detect_high = 1,
                                  .reaction = CRD_REACT_REBASE,
                                  .command_mixture = true};
}

void crdi_coupling_moving(const crd_coupling* c, crdi_note_moving* note, void* user)
{
    note(user, (const void*)&c->history.newest);
    if (c->commands) { crdi_commands_moving(c->commands, note, user); }
}

// ---- create ------------------------------------------------------------------------------------

static bool element_is_linear(const crd_coupling* c)
{
    return c->algorithm->weigh || c->algorithm->linear;
}

static crd_status make_algorithm(crd_coupling* c, const crd_coupling_options* opt)
{
    extern const crdi_algorithm crdi_algorithm_network;
    if (element_is_linear(c)) { return crdi_table_make(c->ctx, opt, &c->table); }
    c->state = crdi_new(c->ctx, c->algorithm->size);
    if (!c->state) { return CRD_E_MEMORY; }
    if (c->algorithm == &crdi_algorithm_network) { c->networks = c->state; }
    return c->algorithm->init(c->state, c->ctx, opt);
}

// What stands in after a jump.
static crd_status make_fallbacks(crd_coupling* c, const crd_coupling_options* opt)
{
    if (!c->detector || opt->reaction != CRD_REACT_SWITCH) { return CRD_OK; }
    crd_coupling_options o = *opt;
    o.algorithm = CRD_ALGORITHM_LINEAR;
    o.design = crd_design_defaults(CRD_METHOD_ZOH);
    const crd_status st = crdi_table_make(c->ctx, &o, &c->zoh);
    o.design = crd_design_defaults(CRD_METHOD_FOH);
    return st < 0 ? st : crdi_table_make(c->ctx, &o, &c->foh);
}

// Samples that the algorithm looks at.
static int element_reach(const crd_coupling* c)
{
    return c->state ? c->algorithm->reach(c->state) : crdi_table_taps(c->table, c->opt.k_max);
}

static crd_status make_weights(crd_coupling* c, const crd_coupling_options* o)
{
    const bool direct = element_is_linear(c) && o->reconstruction != CRD_RECONSTRUCT_SMOOTH &&
                        (o->reaction != CRD_REACT_SWITCH || o->detection == CRD_DETECT_NONE) &&
                        crdi_table_moderate(c->table, o->k_max) &&
                        !crdi_table_has_constant(c->table, o->k_max);
    c->direct_until = direct ? o->k_max + 1 - CRDI_GRID_TOLERANCE : -1;
    if (!element_is_linear(c)) { return CRD_OK; }
    const size_t ks = (size_t)o->k_max + 1, stride = 2 * (size_t)element_reach(c);
    c->sloped = crdi_table_sloped(c->table, o);
    c->weights = crdi_new_array(c->ctx, ks, sizeof *c->weights);
    if (c->sloped) { c->pairs = crdi_new_array(c->ctx, ks * stride, sizeof *c->pairs); }
    if (!c->weights || (c->sloped && !c->pairs)) { return CRD_E_MEMORY; }
    for (size_t k = 0; k < ks; k++) {
        const crd_linear* l = &c->table[k];
        const crd_real* w = c->sloped ? &c->pairs[k * stride] : l->a;
        c->weights[k] = (weights){.w = w, .end = w + (c->sloped ? 2 : 1) * l->m};
        for (int i = 0; i < l->m && c->sloped; i++) {
            c->pairs[k * stride + 2 * (size_t)i] = l->a[i];
            c->pairs[k * stride + 2 * (size_t)i + 1] = l->A[i];
        }
    }
    return CRD_OK;
}

crd_status crd_coupling_create(crd_context* ctx, const crd_coupling_options* opt,
                               crd_coupling** out)
{
    crd_status st = crdi_options_check(ctx, opt);
    if (st < 0) { return st; }
    crd_coupling* c = crdi_new(ctx, sizeof *c);
    if (!c) { return CRD_E_MEMORY; }
    c->ctx = ctx;
    c->opt = (kept_options){.step = opt->step,
                            .start_time = opt->start_time,
                            .start_value = opt->start_value,
                            .gain_limit = opt->gain_limit,
                            .threshold = opt->threshold,
                            .resolution = opt->resolution,
                            .detect_low = opt->detect_low,
                            .detect_high = opt->detect_high,
                            .k_max = opt->k_max,
                            .detect_window = opt->detect_window,
                            .reconstruction = opt->reconstruction,
                            .detection = opt->detection,
                            .reaction = opt->reaction,
                            .any_gain = opt->any_gain};
    c->algorithm = crdi_algorithm_of(opt);
    if (!c->algorithm) { CRD_TRY(crd_linear_make(ctx, &opt->design, 0, NULL)); } // which says why
    if (c->algorithm->alone) { c->algorithm = c->algorithm->alone; }
    if (opt->detection != CRD_DETECT_NONE) {
        c->detector = crdi_new(ctx, sizeof *c->detector);
        if (!c->detector) { CRD_TRY(CRD_E_MEMORY); }
    }
    CRD_TRY(make_algorithm(c, opt));
    if (opt->commands > 0) { CRD_TRY(crdi_commands_create(ctx, opt, &c->commands)); }
    CRD_TRY(make_fallbacks(c, opt));
    CRD_TRY(crdi_history_init(&c->history, ctx, element_reach(c) + opt->late + CRD_DETECT_WINDOW));
    CRD_TRY(make_weights(c, opt));
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
    crd_free(c->ctx, c->weights);
    crd_free(c->ctx, c->pairs);
    crdi_table_free(c->ctx, c->zoh, c->opt.k_max);
    crdi_table_free(c->ctx, c->foh, c->opt.k_max);
    if (c->state) { c->algorithm->clear(c->state, c->ctx); }
    crd_free(c->ctx, c->state);
    crd_free(c->ctx, c->detector);
    crdi_commands_destroy(c->commands);
    crdi_history_clear(&c->history, c->ctx);
    crd_free(c->ctx, c);
}

static void element_forget(crd_coupling* c)
{
    if (c->state) { c->algorithm->forget(c->state); }
}

static void init_detector(crd_coupling* c)
{
    const kept_options* o = &c->opt;
    if (!c->detector) { return; }
    crd_detector_init(c->detector, o->detection, o->threshold, o->resolution);
    if (o->detection == CRD_DETECT_SPECTRUM) {
        crd_detector_set_spectrum(c->detector, o->detect_window, o->detect_low, o->detect_high);
    }
}

static void element_begin(crd_coupling* c)
{
    c->started = c->brief = c->planned = c->jump = false;
    c->k |= STALE;
    c->active = CRD_ACTIVE_ALGORITHM;
    c->since_jump = CRDI_NEVER;
    c->p0 = c->p1 = c->gap = 0;
    element_forget(c);
    init_detector(c);
}

void crd_coupling_reset(crd_coupling* c)
{
    element_begin(c);
    crdi_timeline_init(&c->time, c->opt.step, c->opt.start_time);
    c->counts = (crd_coupling_counts){0};
    c->k = STALE;
    if (c->networks) { crdi_networks_reset(c->networks); }
    if (c->commands) { crdi_commands_reset(c->commands, c->opt.step); }
    c->lowest = INFINITY;
    c->highest = -INFINITY;
    crdi_history_start(&c->history, c->opt.start_value);
    c->samples_beside = -c->history.count;
}

// ---- push --------------------------------------------------------------------------------------

static void widen(crd_coupling* c, crd_real value)
{
    c->lowest = value < c->lowest ? value : c->lowest;
    c->highest = value > c->highest ? value : c->highest;
}

static void element_start(crd_coupling* c, crd_real value, double stamp, int64_t sequence)
{
    element_begin(c);
    c->started = true;
    c->brief = element_is_linear(c) && c->opt.detection == CRD_DETECT_NONE;
    widen(c, value);
    crdi_timeline_start(&c->time, stamp, sequence);
    crdi_history_start(&c->history, value);
    if (c->detector) { crd_detector_push(c->detector, value); }
    if (c->commands) { crdi_commands_start(c->commands, value, c->time.stamp); }
}

// Returns what a re-based jump has added to all older samples.
static crd_real detect(crd_coupling* c, crd_real value, bool real)
{
    const crd_detected found = crdi_detector_push(c->detector, value, real);
    c->counts.jumps += found.jump;
    c->since_jump = found.jump                   ? found.age
                    : c->since_jump < CRDI_NEVER ? c->since_jump + 1
                                                 : CRDI_NEVER;
    c->jump = found.jump && found.age == 0;
    const crd_real lift = found.rebase && c->opt.reaction == CRD_REACT_REBASE ? found.height : 0;
    if (lift != 0) { crdi_history_lift(&c->history, found.age, lift); }
    return lift;
}

static void compare_networks(crd_coupling* c, crd_real lift)
{
    if (c->jump && lift == 0) { crdi_networks_forget(c->networks); } // nobody could tell
    const bool real[2] = {crdi_history_is_real(&c->history, 0),
                          crdi_history_is_real(&c->history, 1)};
    c->counts.rollbacks += crdi_networks_score(c->networks, crdi_history_newest(&c->history), real,
                                               c->history.count, lift);
}

static void element_append(crd_coupling* c, crd_real value, bool real)
{
    crdi_history_append(&c->history, value, real);
    c->counts.filled += !real;
    const crd_real lift = c->opt.detection == CRD_DETECT_NONE ? 0 : detect(c, value, real);
    if (c->networks) {
        widen(c, value);
        if (c->networks->trial > 0) { compare_networks(c, lift); }
    } else if (c->state) {
        c->algorithm->push(c->state, crdi_history_newest(&c->history), lift);
    }
}

// As published there is no curve but the line: is it what the signal could have done?
static bool line_is_smooth(const crd_coupling* c, crd_real slope, int64_t steps)
{
    crd_detector d = *c->detector;
    const crd_real before = *crdi_history_newest(&c->history);
    bool jump = false;
    for (int64_t j = 1; j <= steps; j++) {
        jump |= crdi_detector_push(&d, before + slope * (crd_real)j, j == steps).jump;
    }
    return !jump;
}

// Samples are missing before this one. They lie on a line to it or, if the detector knows how
// smooth the signal is, on a curve. If there was a jump among them, what was before the gap goes on
// as it did, so that the jump is where the sample is.
static void fill_gap(crd_coupling* c, crd_real value, int64_t steps)
{
    const crd_real* y = crdi_history_newest(&c->history);
    if (c->opt.detection == CRD_DETECT_GUARDED) {
        const crdi_bridge b = crdi_detector_bridge(c->detector, y[0], value, steps);
        for (int64_t j = 1; j < steps; j++) {
            element_append(c, crdi_bridge_at(&b, (crd_real)(steps - j)), false);
        }
        return;
    }
    const crd_real before = y[0], trend = (y[0] - y[2]) / 2;
    crd_real slope = (value - before) / (crd_real)steps;
    if (c->opt.detection != CRD_DETECT_NONE && !line_is_smooth(c, slope, steps)) { slope = trend; }
    for (int64_t j = 1; j < steps; j++) {
        element_append(c, before + slope * (crd_real)j, false);
    }
}

static void push_new(crd_coupling* c, crd_real value, double stamp, int64_t steps, bool real)
{
    if (steps > 1) { fill_gap(c, value, steps); }
    element_append(c, value, real);
    c->counts.backwards += !crdi_timeline_advance(&c->time, stamp, steps);
    if (c->commands) { crdi_commands_push(c->commands, value, c->time.stamp, steps, real); }
    c->k |= STALE;
}

// The detector learns of a late sample, too.
static void detect_late(crd_coupling* c, int age, const crd_real* before, int count)
{
    const crd_real* y = crdi_history_newest(&c->history);
    for (int i = 0; i < count; i++) {
        crdi_detector_correct(c->detector, i, y[i] - before[i]);
    }
    if (age >= count) { return; }
    const crd_real change = c->opt.reaction == CRD_REACT_REBASE ? 0 : y[age] - before[age];
    const crd_detected found = crdi_detector_arrive(c->detector, age, change);
    if (!found.jump) { return; }
    c->counts.jumps++;
    if (found.age <= c->since_jump) {
        c->since_jump = found.age;
        c->jump = found.age == 0;
    }
    if (c->opt.reaction == CRD_REACT_REBASE) {
        crdi_history_lift(&c->history, found.age, found.height);
    }
}

static void push_old(crd_coupling* c, crd_real value, int age)
{
    crd_real before[CRD_DETECT_SPAN];
    const ptrdiff_t room = c->history.capacity;
    const int count = room < CRD_DETECT_SPAN ? (int)room : CRD_DETECT_SPAN;
    memcpy(before, crdi_history_newest(&c->history), (size_t)count * sizeof *before);
    if (crdi_history_replace(&c->history, age, value)) {
        if (c->opt.detection != CRD_DETECT_NONE) { detect_late(c, age, before, count); }
        if (c->commands) { crdi_commands_push_late(c->commands, value, age); }
        c->counts.late += age > 0;
        c->k |= STALE;
    } else {
        c->counts.duplicates++;
    }
}

static void push_any(crd_coupling* c, double value, double stamp, int64_t sequence)
{
    const bool usable = crdi_usable(value);
    c->counts.not_finite += !usable;
    if (!c->started) {
        if (usable) { element_start(c, value, stamp, sequence); }
        return;
    }
    const crd_real held = usable ? value : *crdi_history_newest(&c->history);
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
        element_start(c, held, stamp, sequence);
        break;
    }
}

CRDI_APART static void push_in_order(crd_coupling* c, crd_real value, double stamp)
{
    element_append(c, value, true);
    crdi_timeline_next(&c->time, stamp);
    if (c->commands) { crdi_commands_push(c->commands, value, stamp, 1, true); }
    c->k |= STALE;
}

CRDI_SELDOM static void push_odd(crd_coupling* c, double value, double stamp, int64_t sequence)
{
    const int64_t samples = c->history.count + c->samples_beside;
    crdi_history_mark(&c->history);
    push_any(c, value, stamp, sequence);
    c->samples_beside = samples + 1 - c->history.count;
}

void crd_coupling_push(crd_coupling* c, double value, double stamp, int64_t sequence)
{
    if (!crdi_usable(value) || !crdi_timeline_is_next(&c->time, stamp, sequence)) {
        push_odd(c, value, stamp, sequence);
    } else if (CRDI_USUALLY(c->brief)) {
        crdi_history_append_unmarked(&c->history, value);
        crdi_timeline_next(&c->time, stamp);
        c->k |= STALE;
    } else if (c->started) {
        push_in_order(c, value, stamp);
    } else {
        push_odd(c, value, stamp, sequence);
    }
}

// ---- eval --------------------------------------------------------------------------------------

// As published, samples from before and after a jump never meet in one prediction. NULL: the
// algorithm itself is to be used.
static const crd_linear* fallback_for(const crd_coupling* c, int k)
{
    const int m = c->state ? c->algorithm->memory(c->state) : c->table[k].m;
    if (c->opt.reaction != CRD_REACT_SWITCH || c->since_jump >= m - 1) { return NULL; }
    return c->since_jump == 0 ? &c->zoh[k] : &c->foh[k];
}

// |estimate - y_0| <= gain_limit max |y_i - y_{i+1}|: what a sum of weights on changes can reach
// whose absolute values are gain_limit together (analysis/small_gain.c needs no more of it).
static crd_real limit_gain(crd_coupling* c, const crd_real* y, crd_real estimate)
{
    const int reach = element_reach(c);
    crd_real most = 0;
    for (int i = 0; i + 1 < reach; i++) {
        most = fmax(most, fabs(y[i] - y[i + 1]));
    }
    most *= c->opt.gain_limit;
    const crd_real kept = crdi_clamp(estimate, y[0] - most, y[0] + most);
    c->counts.limited += kept != estimate;
    return kept;
}

static void element_predict(crd_coupling* c, const crd_real* y, int k)
{
    const crd_linear* l = fallback_for(c, k);
    c->active = !l ? CRD_ACTIVE_ALGORITHM : c->since_jump == 0 ? CRD_ACTIVE_ZOH : CRD_ACTIVE_FOH;
    c->p1 = 0;
    if (!l && c->state) {
        c->p0 = c->algorithm->predict(c->state, y, k);
        if (c->opt.gain_limit > 0 && !c->commands) { c->p0 = limit_gain(c, y, c->p0); }
        return;
    }
    if (!l) { l = &c->table[k]; }
    if (c->sloped || c->active != CRD_ACTIVE_ALGORITHM) {
        c->p0 = crdi_dot_in_order(l->m, l->a, y);
        c->p1 = crdi_dot_in_order(l->m, l->A, y);
    } else {
        c->p0 = crdi_dot(l->m, l->a, y);
    }
    if (l->b != 0) { c->p0 += l->b; }
    if (c->opt.reconstruction == CRD_RECONSTRUCT_HOLD) { c->p1 = 0; }
}

static crd_real curve_at(const crd_coupling* c, double t)
{
    crd_real value = c->p0;
    if (c->p1 != 0) { // a curve is not continued for more than a step beyond its own
        value += c->p1 * crdi_clamp((crd_real)((t - c->from) * c->time.per_step), -1, 2);
    }
    if (c->gap != 0) {
        value += c->gap * crdi_clamp((crd_real)(1 - (t - c->gap_from) * c->time.per_step), 0, 1);
    }
    return value;
}

// The networks change: what the one before would have said now is left gradually.
static void fade(crd_coupling* c, const crd_real* y, double t)
{
    const crd_real before = crd_network_eval(&c->networks->slot[c->networks->leaving], y);
    const crd_real rest = curve_at(c, t) - c->p0; // of a change that has not faded yet
    c->networks->arriving = false;
    c->gap = crdi_is_prediction(before, 0) && c->planned ? before - c->p0 + rest : 0;
    c->gap_from = t;
}

// A new curve from the newest samples for latency k.
CRDI_APART static void plan(crd_coupling* c, int k, double t)
{
    const crd_real* y = crdi_history_newest(&c->history);
    const bool smooth = c->opt.reconstruction == CRD_RECONSTRUCT_SMOOTH && c->planned;
    const crd_real before = smooth ? curve_at(c, t) : 0;
    const int in_table = k <= c->opt.k_max ? k : c->opt.k_max;
    element_predict(c, y, in_table);
    if (c->commands) {
        c->p0 = crdi_commands_predict(c->commands, c->p0, in_table);
        if (c->opt.gain_limit > 0) { c->p0 = limit_gain(c, y, c->p0); }
    }
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
    c->from = c->time.stamp + k * c->time.step;
    if (!((t - c->gap_from) * c->time.per_step < 1)) { c->gap = 0; }
    const bool network = c->networks && c->active == CRD_ACTIVE_ALGORITHM;
    if (network && c->networks->arriving) { fade(c, y, t); }
    if (network && c->networks->trial > 0 && k == in_table) {
        crdi_networks_predict(c->networks, y, c->history.count + k);
    }
    if (smooth) {
        c->gap = 0;
        c->gap = before - curve_at(c, t);
        c->gap_from = t;
    }
    c->k = k;
    c->planned = true;
}

CRDI_SELDOM static crd_real look_back(crd_coupling* c, double age)
{
    if (!c->started || isnan(age)) { return *crdi_history_newest(&c->history); }
    c->counts.rewound++;
    return crdi_history_at(&c->history, -age);
}

CRDI_APART static crd_real eval_any(crd_coupling* c, double t, double age)
{
    if (!(age > -CRDI_GRID_TOLERANCE)) { return look_back(c, age); } // also t = NaN
    const int k = crdi_timeline_k(age);
    if (k != c->k) { plan(c, k, t); }
    return curve_at(c, t);
}

// Ways for linear algorithms that are shorter, where nothing odd can happen.

CRDI_APART static crd_real eval_sloped(crd_coupling* c, double age, int k)
{
    const crd_real *y = crdi_history_newest(&c->history), *w = c->weights[k].w,
                   *end = c->weights[k].end;
    crd_real p0 = 0, p1 = 0;
    do { // there is one tap at least
        p0 += w[0] * *y;
        p1 += w[1] * *y;
        w += 2;
        y++;
    } while (w != end);
    c->p0 = p0;
    c->p1 = p1;
    c->k = k;
    return p0 + p1 * (crd_real)(age - k);
}

CRDI_APART static crd_real eval_short(crd_coupling* c, int k)
{
    const crd_real *y = crdi_history_newest(&c->history), *w = c->weights[k].w,
                   *end = c->weights[k].end;
    crd_real p0 = 0;
    do {
        p0 += *w++ * *y++;
    } while (w != end);
    c->k = k;
    return c->p0 = p0;
}

CRDI_APART static crd_real eval_long(crd_coupling* c, int k)
{
    const weights w = c->weights[k];
    c->k = k;
    return c->p0 = crdi_dot((int)(w.end - w.w), w.w, crdi_history_newest(&c->history));
}

double crd_coupling_eval(crd_coupling* c, double t)
{
    const double age = crdi_timeline_age(&c->time, t);
    if (!(age > -CRDI_GRID_TOLERANCE && age < c->direct_until)) { return eval_any(c, t, age); }
    const int k = (int)(age + CRDI_GRID_TOLERANCE);
    if (k == c->k) { return c->p0 + c->p1 * (crd_real)(age - k); }
    if (c->sloped) { return eval_sloped(c, age, k); }
    const ptrdiff_t m = c->weights[k].end - c->weights[k].w;
    if (m > 1) { return m < CRDI_DOT_SHORT ? eval_short(c, k) : eval_long(c, k); }
    c->k = k;
    return c->p0 = 0 + c->weights[k].w[0] * *crdi_history_newest(&c->history);
}

double crd_coupling_slope(const crd_coupling* c, double t)
{
    const double theta = c->direct_until > 0 ? crdi_timeline_age(&c->time, t) - (c->k & ~STALE)
                                             : (t - c->from) * c->time.per_step;
    const double faded = (t - c->gap_from) * c->time.per_step;
    crd_real slope = theta >= -1 && theta < 2 ? c->p1 : 0; // as in curve_at
    if (c->gap != 0 && faded >= 0 && faded < 1) { slope -= c->gap; }
    return slope * c->time.per_step;
}

bool crd_coupling_set_step(crd_coupling* c, double step)
{
    const double ratio = step * c->time.per_step;
    if (!crdi_timeline_set_step(&c->time, step)) { return false; }
    crdi_history_resample(&c->history, ratio);
    element_forget(c);
    if (c->commands) { crdi_commands_set_step(c->commands, step); }
    init_detector(c);
    c->since_jump = CRDI_NEVER;
    c->k |= STALE;
    return true;
}

void crd_coupling_command(crd_coupling* c, const double* u, double acts_at)
{
    if (!c->commands) { return; }
    crdi_commands_tell(c->commands, u, acts_at);
    c->k |= STALE;
}

crd_coupling_commands crd_coupling_get_commands(const crd_coupling* c)
{
    return c->commands ? crdi_commands_get(c->commands) : (crd_coupling_commands){0};
}

bool crd_coupling_get_weights(const crd_coupling* c, crd_command_weights* out)
{
    return c->commands && crdi_commands_weights(c->commands, out);
}

// Constants at both ends of the signal's range and between them, against its size.
static bool passes_constants(const crd_coupling* c, const crd_network* n)
{
    const bool known = c->lowest < c->highest || (c->lowest == c->highest && c->lowest != 0);
    const crd_real low = known ? c->lowest : -1, high = known ? c->highest : 1;
    const crd_real size = fmax(fabs(low), fabs(high));
    const crd_real level[3] = {low, high, 0.5 * low + 0.5 * high};
    for (int i = 0; i < 3; i++) {
        crd_real y[CRD_TAPS_MAX];
        for (int j = 0; j < n->m; j++) {
            y[j] = level[i];
        }
        if (!(fabs(crd_network_eval(n, y) - level[i]) <= 0.01 * size)) { return false; }
    }
    return true;
}

bool crd_coupling_swap(crd_coupling* c, const crd_network* n, int trial)
{
    if (!c->networks || !crdi_networks_fits(c->networks, n) ||
        (!c->opt.any_gain && !passes_constants(c, n))) {
        return false;
    }
    bool rolled_back = false;
    crdi_networks_take(c->networks, n, trial, &rolled_back);
    c->counts.swaps++;
    c->counts.rollbacks += rolled_back;
    c->k |= STALE;
    return true;
}

const crd_network* crd_coupling_get_network(const crd_coupling* c)
{
    return c->networks ? &c->networks->slot[c->networks->in_use] : NULL;
}

crd_coupling_counts crd_coupling_get_counts(const crd_coupling* c)
{
    crd_coupling_counts counts = c->counts;
    counts.samples = c->history.count + c->samples_beside;
    return counts;
}

crd_coupling_state crd_coupling_get_state(const crd_coupling* c)
{
    return (crd_coupling_state){.k = c->k & ~STALE,
                                .jump = c->jump,
                                .active = c->active,
                                .newest = *crdi_history_newest(&c->history),
                                .stamp = c->time.stamp,
                                .sequence = c->time.sequence};
}
