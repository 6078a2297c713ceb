// Discontinuities in the newest sample of a signal.
#include "coupling/coupling.h"

#include <math.h>
#include <string.h>

enum {
    SPAN = CRD_DETECT_SPAN,
    MEDIAN = CRD_DETECT_MEDIAN,
    ORDERS = CRD_DETECT_ORDERS,
    NEARBY = (1 << (ORDERS + 1)) - 1, // bits of the samples that a difference spans
};

// N, the bins and cos(pi n / N) for n = 0 .. 2 N - 1.
bool crd_detector_set_spectrum(crd_detector* d, int window, double low, double high)
{
    const double pi = 3.14159265358979323846, close = 1e-9; // of shares such as 0.1
    if (window < 4 || window > SPAN || window % 2) { return false; }
    if (!(low >= 0 && low < high && high <= 1)) { return false; }
    const int low_bin = (int)floor(0.5 * low * window + close) + 1;
    const int high_bin = (int)floor(0.5 * high * window + close);
    if (low_bin > high_bin) { return false; }
    d->window = window;
    d->low_bin = low_bin;
    d->high_bin = high_bin;
    for (int n = 0; n < 2 * window; n++) { // as sines, so that the zeros are zeros
        d->cosine[n] = sin(pi * (0.5 - (double)n / window));
    }
    return true;
}

void crd_detector_init(crd_detector* d, crd_detection kind, double threshold, double resolution)
{
    *d = (crd_detector){.kind = kind,
                        .threshold = threshold > 0                 ? threshold
                                     : kind == CRD_DETECT_SPECTRUM ? 5
                                                                   : 8,
                        .resolution = resolution,
                        .gaps = UINT32_MAX,
                        .since_hit = 1 << 20};
    if (kind == CRD_DETECT_SPECTRUM) { crd_detector_set_spectrum(d, CRD_DETECT_WINDOW, 0, 1); }
}

static crd_real spectrum_of(const crd_detector* d, const crd_real* y)
{
    // Half-Hann window (eq. 40) over the segment, shifted so that its newest value is zero.
    const int N = d->window;
    crd_real s[SPAN + 1], window = 0;
    for (int n = 1; n <= N; n++) {
        const crd_real h = 0.5 * (1 - d->cosine[n]);
        s[n] = h * (y[N - n] - y[0]);
        window += h;
    }
    crd_real sum = 0;
    for (int q = d->low_bin; q <= d->high_bin; q++) {
        crd_real re = 0, im = 0;
        for (int n = 1; n <= N; n++) {
            const int angle = 2 * q * n % (2 * N);
            re += s[n] * d->cosine[angle];
            im += s[n] * d->cosine[(angle + N / 2) % (2 * N)];
        }
        sum += sqrt(re * re + im * im);
    }
    const crd_real A_w = N / window; // eq. 41
    return A_w * (2.0 / N) * sum;
}

double crd_spectrum_above(const crd_real y[CRD_DETECT_WINDOW])
{
    crd_detector d;
    crd_detector_init(&d, CRD_DETECT_SPECTRUM, 0, 0);
    return spectrum_of(&d, y);
}

static const crd_real* remember(crd_detector* d, crd_real sample, bool real)
{
    if (d->count == 0) {
        for (int i = 0; i < 2 * SPAN; i++) {
            d->last[i] = sample;
        }
    }
    d->at = (d->at > 0 ? d->at : SPAN) - 1;
    d->last[d->at] = d->last[d->at + SPAN] = sample;
    d->gaps = d->gaps << 1 | !real;
    d->count++;
    return &d->last[d->at];
}

void crdi_detector_correct(crd_detector* d, int age, crd_real change)
{
    d->last[(d->at + age) % SPAN] += change;
    d->last[(d->at + age) % SPAN + SPAN] += change;
}

// The slope before the jump is taken to go on after it.
static crd_real bend(const crd_real* y)
{
    return y[0] - 2 * y[1] + y[2];
}

// Over a gap it takes more for a jump, as what a smooth signal does there grows with the square of
// its length.
static crd_detected push_spectrum(crd_detector* d, crd_real sample, bool real)
{
    const crd_real before = d->spectrum;
    const crd_real* y = remember(d, sample, real);
    d->spectrum = spectrum_of(d, y);
    crd_real stretch = 1;
    for (uint32_t gaps = d->gaps & NEARBY; gaps; gaps &= gaps - 1) {
        stretch++;
    }
    const crd_real threshold = d->threshold * stretch * stretch;
    // both segments have to be of samples only: the first samples of a signal are no jump
    const bool jump = d->count > d->window && d->spectrum > threshold * before;
    return (crd_detected){.jump = jump, .rebase = jump, .height = jump ? bend(y) : 0};
}

// The median of an order's differences. On the way it finds a number that the median will stay
// above for some time.
CRDI_APART static crd_real median_of(crd_detector* d, int o)
{
    enum { HALF = MEDIAN / 2 + 1, LOW = MEDIAN * 3 / 10 };
    const int n = d->kept < MEDIAN ? (int)d->kept : MEDIAN;
    crd_real sorted[HALF]; // the smallest
    int filled = 0;
    for (int i = 0; i < n; i++) {
        const crd_real x = d->ring[o][i];
        if (filled == HALF && sorted[HALF - 1] <= x) { continue; }
        int j = filled < HALF ? filled++ : HALF - 1;
        for (; j > 0 && sorted[j - 1] > x; j--) {
            sorted[j] = sorted[j - 1];
        }
        sorted[j] = x;
    }
    if (n == MEDIAN) {
        d->low[o] = sorted[LOW];
        d->below[o] = LOW;
        while (d->below[o] > 0 && sorted[d->below[o] - 1] == sorted[LOW]) {
            d->below[o]--;
        }
    }
    return n > 0 ? 0.5 * (sorted[(n - 1) / 2] + sorted[n / 2]) : 0;
}

// Is any difference of the size of a jump? Mostly it can be told without the medians.
static inline bool is_large(crd_detector* d, const crd_real* size, crd_real threshold,
                            crd_real least)
{
    bool large = false;
    for (int o = 0; o < ORDERS; o++) {
        const crd_real low = d->low[o] > least ? d->low[o] : least;
        if (d->below[o] >= MEDIAN / 2 || size[o] > threshold * low) {
            large |= size[o] > threshold * fmax(median_of(d, o), least);
        }
    }
    return large;
}

static void detect_keep(crd_detector* d, const crd_real* size)
{
    const int place = (int)(d->kept % MEDIAN);
    for (int o = 0; o < ORDERS; o++) {
        const bool leaves = d->kept >= MEDIAN && d->ring[o][place] < d->low[o];
        d->below[o] += (size[o] < d->low[o]) - leaves;
        d->ring[o][place] = size[o];
    }
    d->kept++;
}

// How far a sample is from what polynomials through the newest that arrived expect.
typedef struct misses {
    crd_real difference[ORDERS]; // by order, of degree 0, 1, 2
    crd_real size[ORDERS];       // as if there had been no gap
    crd_real stretch[ORDERS];    // how much more a smooth signal does across the gaps
    int known;                   // samples there are for that
} misses;

static crd_real detect_polynomial(int n, const crd_real* x, const crd_real* y, crd_real at)
{
    crd_real sum = 0;
    for (int i = 0; i < n; i++) {
        crd_real weight = 1;
        for (int j = 0; j < n; j++) {
            if (j != i) { weight *= (at - x[j]) / (x[i] - x[j]); }
        }
        sum += weight * y[i];
    }
    return sum;
}

// The newest samples that arrived, from the age `first` on: their ages at a sample that comes
// `steps` after it.
static int known_before(const crd_detector* d, int first, int64_t steps, crd_real* age, crd_real* y)
{
    int n = 0;
    for (int i = first; n < ORDERS && i < SPAN && i - first + steps <= SPAN; i++) {
        if (d->gaps >> i & 1) { continue; }
        age[n] = (crd_real)(i - first + steps);
        y[n++] = d->last[d->at + i];
    }
    return n;
}

// Without gaps, the samples before it newest first.
static void differences_of(crd_real sample, const crd_real* y, crd_real* difference)
{
    difference[0] = sample - y[0];
    difference[1] = sample - 2 * y[0] + y[1];
    difference[2] = sample - 3 * y[0] + 3 * y[1] - y[2];
}

// The remainder of a polynomial through samples of ages a_1 .. a_o is the derivative of order o
// times a_1 ... a_o / o!, so a smooth signal misses in proportion to that.
static misses detect_measure(const crd_detector* d, crd_real sample, int first, int64_t steps)
{
    misses m = {0};
    crd_real age[ORDERS], y[ORDERS], stretch = 1;
    m.known = known_before(d, first, steps, age, y);
    const bool in_a_row = m.known == ORDERS && age[ORDERS - 1] == ORDERS;
    if (in_a_row) { differences_of(sample, y, m.difference); }
    for (int o = 0; o < m.known; o++) {
        stretch *= age[o] / (o + 1);
        if (!in_a_row) { m.difference[o] = sample - detect_polynomial(o + 1, age, y, 0); }
        m.size[o] = fabs(m.difference[o]) / stretch;
        m.stretch[o] = stretch;
    }
    return m;
}

// The order with the smallest median, and the one that expects the least across the gaps.
typedef struct orders {
    int best, nearest; // -1: there is none
    crd_real median, expected;
} orders;

static orders compare_orders(crd_detector* d, const misses* m)
{
    orders r = {.best = -1, .nearest = -1};
    for (int o = 0; o < m->known; o++) {
        const crd_real median = median_of(d, o);
        if (o == 0 || median < r.median) {
            r.median = median;
            r.best = o;
        }
        if (o == 0 || median * m->stretch[o] < r.expected) {
            r.expected = median * m->stretch[o];
            r.nearest = o;
        }
    }
    return r;
}

static crd_real least_of(const crd_detector* d)
{
    const crd_real rounding = CRDI_OF(1e-9, 1e-6) * d->scale;
    return rounding > d->resolution ? rounding : d->resolution;
}

// Of a jump, or of what is missed: the difference to the sample before, but for what slope and
// curvature explain. They explain no more than slopes of the usual size do, or the polynomial
// through an outlier would be believed.
static crd_real height_of(crd_detector* d, const misses* m, int order)
{
    if (m->stretch[order] == 1) { return m->difference[order]; } // samples in a row
    const crd_real most = d->threshold * m->stretch[0] * median_of(d, 0);
    return m->difference[0] + crdi_clamp(m->difference[order] - m->difference[0], -most, most);
}

// Differences of a smooth signal fall with their order until noise takes over; the order with the
// smallest median sees a jump best. A jump is a difference far above its usual size.
CRDI_SELDOM static crd_detected judge(crd_detector* d, const misses* m)
{
    const crd_real least = least_of(d);
    if (d->kept < MEDIAN / 4 || !is_large(d, m->size, d->threshold, least)) {
        return (crd_detected){0};
    }
    const orders o = compare_orders(d, m);
    const bool again = d->since_hit <= 4;
    const crd_real height = height_of(d, m, o.nearest);
    if (!(m->size[o.best] > d->threshold * fmax(o.median, least)) ||
        !(m->size[o.nearest] > d->threshold * fmax(o.expected / m->stretch[o.nearest], least)) ||
        (again && !(fabs(height) > 0.25 * fabs(d->hit)))) {
        return (crd_detected){0};
    }
    // The end of a spike takes back what its beginning has lifted.
    const bool back = again && fabs(height + d->hit) < 0.5 * fabs(d->hit);
    return (crd_detected){.jump = true, .rebase = !again || back, .height = height};
}

static void lift(crd_detector* d, int newer, crd_real height)
{
    for (int age = newer + 1; age < SPAN; age++) {
        crdi_detector_correct(d, age, height);
    }
}

CRDI_SELDOM static crd_detected take_jump(crd_detector* d, crd_detected found)
{
    const bool back = found.rebase && d->since_hit <= 4;
    if (!found.rebase) { d->skip = 3; }
    d->since_hit = back ? 1 << 20 : found.age;
    d->hit = found.height;
    if (found.rebase) { lift(d, found.age, found.height); }
    return found;
}

// A jump behind a gap may be too small for what is known there, and show with the sample after it,
// upside down. Then all is smooth again if it is taken out where it was.
static crd_detected judge_near_gap(crd_detector* d, crd_real sample, int first, int64_t steps)
{
    const misses m = detect_measure(d, sample, first, steps);
    crd_detected found = judge(d, &m);
    found.age = first - 1;
    int i = first; // the sample before it
    while (i < SPAN && d->gaps >> i & 1) {
        i++;
    }
    if (!found.rebase || i >= SPAN) { return found; }
    const misses before = detect_measure(d, d->last[d->at + i], i + 1, 1);
    if (before.known == 0 || before.stretch[0] == 1) { return found; }
    const crd_real height = height_of(d, &before, compare_orders(d, &before).nearest);
    crd_detector other = *d;
    lift(&other, i, height);
    const misses after = detect_measure(&other, sample, first, steps);
    const crd_real left = after.difference[compare_orders(d, &after).nearest];
    if (fabs(left) < 0.5 * fabs(found.height) && !judge(&other, &after).jump) {
        found.height = height;
        found.age = i;
    }
    return found;
}

static void go_on(crd_detector* d, crd_real sample)
{
    d->scale = fabs(sample) > d->scale ? fabs(sample) : d->scale;
    d->since_hit = d->since_hit < (1 << 20) ? d->since_hit + 1 : d->since_hit;
}

// Only what lies between samples in a row tells how the signal is; if there have been none for
// long, the other differences have to do.
CRDI_SELDOM static crd_detected push_behind_gap(crd_detector* d, crd_real sample)
{
    const misses m = detect_measure(d, sample, 0, 1);
    go_on(d, sample);
    crd_detected found = d->skip > 0 ? (crd_detected){0} : judge_near_gap(d, sample, 0, 1);
    found.age++;
    remember(d, sample, true);
    d->skip -= d->skip > 0;
    d->uncertain += d->uncertain <= MEDIAN / 2;
    if (d->uncertain > MEDIAN / 2 && m.known == ORDERS) { detect_keep(d, m.size); }
    return found.jump ? take_jump(d, found) : found;
}

// The median keeps the outliers, too: without them a signal that became rougher would be a jump for
// ever.
static crd_detected push_guarded(crd_detector* d, crd_real sample, bool real)
{
    crd_detected found = {0};
    if (!real) {
        remember(d, sample, false);
        return found;
    }
    if (d->gaps & NEARBY >> 1) { return push_behind_gap(d, sample); }
    const crd_real* y = remember(d, sample, true);
    crd_real difference[ORDERS];
    differences_of(sample, y + 1, difference);
    const crd_real size[ORDERS] = {fabs(difference[0]), fabs(difference[1]), fabs(difference[2])};
    go_on(d, sample);
    if (d->skip > 0) {
        d->skip--;
    } else if (d->kept >= MEDIAN / 4 && is_large(d, size, d->threshold, least_of(d))) {
        const misses m = detect_measure(d, sample, 1, 1);
        found = judge(d, &m);
    }
    d->uncertain = 0;
    detect_keep(d, size);
    return found.jump ? take_jump(d, found) : found;
}

crd_detected crdi_detector_push(crd_detector* d, crd_real sample, bool real)
{
    switch (d->kind) {
    case CRD_DETECT_SPECTRUM:
        return push_spectrum(d, sample, real);
    case CRD_DETECT_GUARDED:
        return push_guarded(d, sample, real);
    case CRD_DETECT_NONE:
        break;
    }
    return (crd_detected){0};
}

crd_detected crd_detector_push(crd_detector* d, double sample)
{
    return crdi_detector_push(d, sample, true);
}

// Before all of its neighbours have arrived, a jump may look like the gap that it is in.
static crd_detected review(crd_detector* d, int age)
{
    crd_detected found = {0};
    if (d->kind != CRD_DETECT_GUARDED || d->skip > 0 || d->since_hit <= 4) { return found; }
    for (int i = age, known = 0; i >= 0 && known <= ORDERS && !found.jump; i--) {
        if (d->gaps >> i & 1) { continue; }
        found = judge_near_gap(d, d->last[d->at + i], i + 1, 1);
        known++;
    }
    return found;
}

static void keep_completed(crd_detector* d, int age)
{
    for (int newest = age > ORDERS ? age - ORDERS : 0; newest <= age; newest++) {
        if (newest + ORDERS >= SPAN || d->gaps >> newest & NEARBY) { continue; }
        const misses m = detect_measure(d, d->last[d->at + newest], newest + 1, 1);
        detect_keep(d, m.size);
    }
}

crd_detected crdi_detector_arrive(crd_detector* d, int age, crd_real change)
{
    if (age >= SPAN || !(d->gaps >> age & 1)) { return (crd_detected){0}; }
    d->gaps &= ~(UINT32_C(1) << age);
    // It was after the last jump already, and has been lifted like what was before.
    const bool after = d->since_hit <= 4 && fabs(change - d->hit) < 0.5 * fabs(d->hit);
    if (after) { crdi_detector_correct(d, age, -d->hit); }
    const crd_detected found = review(d, age);
    keep_completed(d, age);
    return found.jump ? take_jump(d, found) : found;
}

// ---- gaps --------------------------------------------------------------------------------------

crdi_bridge crdi_detector_bridge(const crd_detector* d, crd_real before, crd_real sample,
                                 int64_t steps)
{
    crdi_bridge b = {0};
    crd_detector then = *d;
    go_on(&then, sample);
    const crd_detected found =
        d->skip > 0 ? (crd_detected){0} : judge_near_gap(&then, sample, 0, steps);
    const bool here = found.jump && found.age < 0;
    if (found.rebase && !here) { lift(&then, found.age, found.height); }
    const misses m = detect_measure(&then, sample, 0, steps);
    b.n = compare_orders(&then, &m).nearest + 1;
    known_before(&then, 0, steps, b.age, b.y);
    if (b.n == 0) { // too few, too long ago: a line
        b.age[b.n] = (crd_real)steps;
        b.y[b.n++] = before;
    }
    b.first = b.y[0];
    b.slope = here ? 0 : (sample - b.y[0]) / b.age[0];
    b.steps = b.age[0];
    b.most = d->threshold * median_of(&then, here ? 0 : 1);
    b.ends = here;
    if (!here) {
        b.age[b.n] = 0;
        b.y[b.n++] = sample;
    }
    return b;
}

crd_real crdi_bridge_at(const crdi_bridge* b, crd_real age)
{
    // A line leaves a curve by half its second derivative times the distances from both ends, a
    // constant by the slope times that from its one: polynomials through an outlier leave them by
    // far more.
    const crd_real past = b->steps - age;
    const crd_real most = b->most * past * (b->ends ? 1 : 0.5 * age);
    const crd_real plain = b->first + b->slope * past;
    return plain + crdi_clamp(detect_polynomial(b->n, b->age, b->y, age) - plain, -most, most);
}
