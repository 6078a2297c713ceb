// Training: descent, least squares, and which of the two is taken.
#include <math.h>
#include <string.h>

#include "learn/train.h"
#include "shared/base.h"
#include "shared/coupling.h"

enum { SAMPLES_MAX = 100000000 };

static crd_status check_training(crd_context* ctx, const crd_training* t)
{
    if (t->method != CRD_TRAIN_ADAM && t->method != CRD_TRAIN_RIDGE) {
        return crdi_fail(ctx, CRD_E_RANGE, "learn: method %d does not exist", (int)t->method);
    }
    const struct {
        const char* name;
        double value, low, high;
    } numbers[] = {{"k", t->k, 0, CRD_LATENCY_MAX},      {"epochs", t->epochs, 1, 1e6},
                   {"batch", t->batch, 0, 1e9},          {"stages", t->stages, 1, 100},
                   {"hold_out", t->hold_out, 0, 0.9},    {"ridge", t->ridge, 1e-12, 1e12},
                   {"protect", t->protect, 0, HUGE_VAL}, {"rate", t->rate, 1e-12, 1e3}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (!(numbers[i].value >= numbers[i].low && numbers[i].value <= numbers[i].high)) {
            return crdi_fail(ctx, CRD_E_RANGE, "learn: %s = %g, expected %g .. %g", numbers[i].name,
                             numbers[i].value, numbers[i].low, numbers[i].high);
        }
    }
    return CRD_OK;
}

static crd_status train_check_start(crd_context* ctx, const crd_network* n)
{
    char shape[80];
    if (!crdi_network_has_shape(n)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "learn: a network of %s, expected 1 .. %d inputs and layers of 1 .. %d",
                         crd_network_shape(n, shape, sizeof shape), CRD_TAPS_MAX,
                         CRD_NETWORK_NEURONS);
    }
    if (!(n->alpha > -1 && n->alpha <= 1)) {
        return crdi_fail(ctx, CRD_E_RANGE, "learn: alpha = %g, expected above -1 and up to 1",
                         n->alpha);
    }
    crdi_network_part parts[CRDI_NETWORK_PARTS];
    const int count = crdi_network_parts(n, parts);
    for (int p = 0; p < count; p++) {
        for (int i = 0; i < parts[p].count; i++) {
            if (isfinite(parts[p].w[i])) { continue; }
            return crdi_fail(ctx, CRD_E_RANGE,
                             "learn: %s[%d] of the network = %g, expected a finite number",
                             parts[p].name, i, parts[p].w[i]);
        }
    }
    return CRD_OK;
}

// A signal of another order of magnitude than 1 is brought there: Adam's epsilon is absolute. Not
// all the way from the ends of the range: biases, which are scaled along, have to survive it.
static int scale_of(double largest)
{
    enum { MOST = 512 };
    const int e = largest > 0 ? ilogb(largest) : 0;
    return e < -MOST ? MOST : e > MOST ? -MOST : e < -8 || e > 8 ? -e : 0;
}

static void scale_biases(crd_network* n, int e)
{
    crdi_network_part parts[CRDI_NETWORK_PARTS];
    const int count = crdi_network_parts(n, parts);
    for (int p = 1; p < count - 1; p += 2) { // every second part is a bias
        double* b = (double*)parts[p].w;     // of crdi_network_like
        for (int i = 0; i < parts[p].count; i++) {
            b[i] = ldexp(b[i], e);
        }
    }
    n->b3 = ldexp(n->b3, e);
}

static void scale_pairs(crdi_pairs* p, int e)
{
    const int64_t places = (p->trained_blocks + p->held_blocks) * CRDI_LANES;
    for (int64_t i = 0; i < places * p->m; i++) {
        p->x[i] = ldexp(p->x[i], e);
    }
    for (int64_t i = 0; i < places; i++) {
        p->y[i] = ldexp(p->y[i], e);
    }
    p->largest = ldexp(p->largest, e);
}

static double mean(double sum, int64_t count)
{
    return count > 0 ? sum / (double)count : 0;
}

// How well a network does.
typedef struct quality {
    double sums[CRDI_PAIR_KINDS]; // of squared errors
    double level;                 // largest error at constants of the signal's size, both signs
} quality;

static quality measure_network(const crdi_pairs* p, const crd_network* n)
{
    quality q = {0};
    double y[CRD_TAPS_MAX];
    crdi_pairs_measure(p, n, q.sums);
    for (int sign = -1; sign <= 1; sign += 2) {
        for (int i = 0; i < n->m; i++) {
            y[i] = sign * p->largest;
        }
        q.level = fmax(q.level, fabs(crd_network_eval(n, y) - y[0]));
    }
    return q;
}

// The smooth part may lose so much and no more, on what was trained on and on what was not; nor may
// levels that the signal has not had yet. Descent does to these what it likes.
static bool is_kept(const crd_training* t, const crdi_pairs* p, const quality* q,
                    const quality* before)
{
    static const int kinds[] = {CRDI_PAIR_SMOOTH, CRDI_PAIR_HELD};
    for (int i = 0; i < 2; i++) {
        const double limit = t->protect * t->protect * before->sums[kinds[i]];
        if (!(q->sums[kinds[i]] <= limit * (1 + 1e-9))) { return false; }
    }
    return q->level <= fmax(t->protect * before->level, 1e-4 * p->largest);
}

// Error at jumps, and on what was held out if there is anything.
static double score(const crdi_pairs* p, const quality* q)
{
    return q->sums[CRDI_PAIR_JUMP] + q->sums[p->held > 0 ? CRDI_PAIR_HELD : CRDI_PAIR_SMOOTH];
}

// Both of the same shape, `to` of crdi_network_like.
static void copy_numbers(const crd_network* from, crd_network* to)
{
    memcpy((double*)to->W1, from->W1, (size_t)crdi_network_size(to) * sizeof(double));
    to->b3 = from->b3;
}

// Replace the best network by another one if that is better and keeps the smooth part.
static bool take_better(const crd_training* t, const crdi_pairs* p, const quality* before,
                        const crd_network* other, crd_network* best, quality* best_quality)
{
    const quality q = measure_network(p, other);
    if (!is_kept(t, p, &q, before) || !(score(p, &q) < score(p, best_quality))) { return false; }
    copy_numbers(other, best);
    *best_quality = q;
    return true;
}

static crd_status train_ridge(crd_context* ctx, const crd_training* t, const crdi_pairs* p,
                              crd_network* n)
{
    double to[CRD_TAPS_MAX], a[CRD_TAPS_MAX];
    crdi_mean_map(p, n, to);
    const crd_status st = crdi_ridge(ctx, p, to, t->ridge, false, a);
    return st < 0 ? st : crdi_network_write_linear(ctx, n, a);
}

// What competes with descent.
typedef enum rival { LEAST_SQUARES, BOUNDED, BOUNDED_IN_PART, RIVALS } rival;

static crd_status make_rival(crd_context* ctx, const crd_training* t, const crdi_pairs* p,
                             rival which, crd_network* n, bool* done)
{
    if (which != LEAST_SQUARES) {
        return crdi_train_bounded(ctx, t, p, which == BOUNDED_IN_PART, n, done);
    }
    const crd_status st = train_ridge(ctx, t, p, n);
    *done = st >= 0;
    return st == CRD_E_UNSUPPORTED ? CRD_OK : st; // a single leaky ReLU cannot be linear
}

// The best of the start `n`, of descent from there, and of its rivals.
static crd_status train_protected(crd_context* ctx, const crd_training* t, const crdi_pairs* p,
                                  const quality* before, crd_network* n, double* loss,
                                  crd_training_report* r)
{
    crd_status st = CRD_OK;
    crd_network start = {0}, other = {0};
    quality best = *before;
    CRD_TRY(crdi_network_like(ctx, n, &start));
    CRD_TRY(crdi_network_like(ctx, n, &other));
    CRD_TRY(crdi_adam(ctx, t, p, &other, loss, &r->epochs));
    (void)take_better(t, p, before, &other, n, &best);
    for (int which = 0; which < RIVALS; which++) {
        bool done = false;
        copy_numbers(&start, &other);
        CRD_TRY(make_rival(ctx, t, p, (rival)which, &other, &done));
        if (done && take_better(t, p, before, &other, n, &best)) {
            r->guarded = which != LEAST_SQUARES;
        }
    }
fail:
    crd_network_clear(ctx, &start);
    crd_network_clear(ctx, &other);
    return st;
}

// A swap disturbs: for a per cent of the error, or for what is rounding, it is not worth while.
static bool is_worth_it(const crdi_pairs* p, double before, double after)
{
    const double rounding = 1e-13 * p->largest;
    return after < 0.98 * before && before > rounding * rounding * (double)(p->trained + p->held);
}

static crd_status train(crd_context* ctx, const crd_training* t, const crdi_pairs* p,
                        crd_network* n, double* loss, crd_training_report* r)
{
    const quality before = measure_network(p, n);
    crd_status st = CRD_OK;
    for (int i = 0; loss && i < t->epochs; i++) {
        loss[i] = NAN;
    }
    if (t->method == CRD_TRAIN_RIDGE) {
        CRD_TRY(train_ridge(ctx, t, p, n));
    } else if (t->protect > 0) {
        CRD_TRY(train_protected(ctx, t, p, &before, n, loss, r));
    } else {
        CRD_TRY(crdi_adam(ctx, t, p, n, loss, &r->epochs));
    }
    const quality after = measure_network(p, n);
    const double *b = before.sums, *a = after.sums;
    r->better = is_worth_it(p, score(p, &before), score(p, &after));
    r->pairs = p->trained;
    r->dropped = p->dropped;
    r->jumps = p->of_kind[CRDI_PAIR_JUMP];
    r->loss_before = mean(b[CRDI_PAIR_SMOOTH] + b[CRDI_PAIR_JUMP], p->trained);
    r->loss_after = mean(a[CRDI_PAIR_SMOOTH] + a[CRDI_PAIR_JUMP], p->trained);
    r->held_before = p->held > 0 ? mean(b[CRDI_PAIR_HELD], p->held) : r->loss_before;
    r->held_after = p->held > 0 ? mean(a[CRDI_PAIR_HELD], p->held) : r->loss_after;
    const int64_t smooth = p->of_kind[CRDI_PAIR_SMOOTH] + p->held;
    r->smooth_before = mean(b[CRDI_PAIR_SMOOTH] + b[CRDI_PAIR_HELD], smooth);
    r->smooth_after = mean(a[CRDI_PAIR_SMOOTH] + a[CRDI_PAIR_HELD], smooth);
fail:
    return st;
}

static void scale_report(crd_training_report* r, double* loss, int e)
{
    double* const numbers[] = {&r->loss_before, &r->loss_after,    &r->held_before,
                               &r->held_after,  &r->smooth_before, &r->smooth_after};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        *numbers[i] = ldexp(*numbers[i], e);
    }
    for (int i = 0; loss && i < r->epochs; i++) {
        loss[i] = ldexp(loss[i], e);
    }
}

crd_status crd_learn_train(crd_context* ctx, const crd_training* t, const double* y, int64_t n,
                           const crd_network* start, crd_network* out, crd_training_report* report,
                           double* loss)
{
    crd_status st = CRD_OK;
    crdi_pairs p = {0};
    crd_network network = {0};
    crd_training_report r = {0};
    CRD_TRY(check_training(ctx, t));
    CRD_TRY(train_check_start(ctx, start));
    const int64_t least = (int64_t)t->k + 2 * start->m;
    if (n < least || n > SAMPLES_MAX) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "learn: %lld samples, expected at least %lld for %d taps and k = %d, at "
                         "most %d",
                         (long long)n, (long long)least, start->m, t->k, SAMPLES_MAX);
    }
    CRD_TRY(crdi_pairs_make(ctx, t, start->m, y, n, &p));
    if (p.trained < start->m) {
        st = crdi_fail(ctx, CRD_E_RANGE,
                       "learn: %lld of %lld samples can be trained on, expected at least %d; the "
                       "others lie at gaps, after jumps or are held out",
                       (long long)p.trained, (long long)n, start->m);
        goto fail;
    }
    CRD_TRY(crdi_network_like(ctx, start, &network));
    const int e = scale_of(p.largest);
    scale_pairs(&p, e);
    scale_biases(&network, e);
    CRD_TRY(train(ctx, t, &p, &network, loss, &r));
    scale_biases(&network, -e);
    scale_report(&r, loss, -2 * e);
    if (report) { *report = r; }
    *out = network;
    network = (crd_network){0};
fail:
    crd_network_clear(ctx, &network);
    crdi_pairs_clear(ctx, &p);
    return st;
}
