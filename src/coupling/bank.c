// Many signals with one latency and one linear algorithm, as a structure of arrays: a row of the
// ring has a sample of every signal. Sums run over the taps in the order of the single element.
#include <math.h>
#include <string.h>

#include "coupling/timeline.h"
#include "shared/base.h"

enum { SIGNALS_MAX = 1 << 24, LANES = 8 }; // so many signals are summed side by side

struct crd_coupling_bank {
    crd_context* ctx;
    crd_coupling_options opt;
    crd_linear* table; // (k_max + 1)
    crdi_timeline time;
    crd_coupling_counts counts;
    bool sloped, moderate; // see crdi_table_...
    size_t n, width;       // signals, and numbers in a row: a multiple of LANES
    int capacity, head;    // rows; the row of age i is (head + i) % capacity
    int64_t count;
    double* y;       // (capacity x width)
    bool* real;      // (capacity x width) arrived, not filled
    double *p0, *p1; // (width) the curves in use, from time `from`; without slope p1 is 0
    bool started, stale;
    int k;
    double from;
};

static size_t bank_row_of(const crd_coupling_bank* b, int64_t age)
{
    return (size_t)((b->head + age) % b->capacity) * b->width;
}

static crd_status check_bank(crd_context* ctx, const crd_coupling_options* o, int signals)
{
    if (signals < 1 || signals > SIGNALS_MAX) {
        return crdi_fail(ctx, CRD_E_RANGE, "coupling: %d signals, expected 1 .. %d", signals,
                         SIGNALS_MAX);
    }
    const char* what = o->algorithm != CRD_ALGORITHM_LINEAR && o->algorithm != CRD_ALGORITHM_GIVEN
                           ? "an algorithm that is not linear"
                       : o->detection != CRD_DETECT_NONE ? "the detection of discontinuities"
                       : o->reconstruction == CRD_RECONSTRUCT_SMOOTH ? "smoothing"
                                                                     : NULL;
    return what ? crdi_fail(ctx, CRD_E_UNSUPPORTED,
                            "coupling: a bank has not %s, expected single elements for that", what)
                : CRD_OK;
}

crd_status crd_coupling_bank_create(crd_context* ctx, const crd_coupling_options* opt, int signals,
                                    crd_coupling_bank** out)
{
    crd_status st = crdi_options_check(ctx, opt);
    if (st == CRD_OK) { st = check_bank(ctx, opt, signals); }
    if (st < 0) { return st; }
    crd_coupling_bank* b = crdi_new(ctx, sizeof *b);
    if (!b) { return CRD_E_MEMORY; }
    b->ctx = ctx;
    b->opt = *opt;
    b->n = (size_t)signals;
    b->width = (b->n + LANES - 1) / LANES * LANES;
    CRD_TRY(crdi_table_make(ctx, opt, &b->table));
    if (crdi_table_has_constant(b->table, opt->k_max)) {
        CRD_TRY(crdi_fail(ctx, CRD_E_UNSUPPORTED,
                          "coupling: a bank has no constant b, expected single elements for that"));
    }
    b->capacity = crdi_table_taps(b->table, opt->k_max) + opt->late + CRD_DETECT_WINDOW;
    b->sloped = crdi_table_sloped(b->table, opt);
    b->moderate = crdi_table_moderate(b->table, opt->k_max);
    b->y = crdi_new_array(ctx, (size_t)b->capacity * b->width, sizeof *b->y);
    b->real = crdi_new_array(ctx, (size_t)b->capacity * b->width, sizeof *b->real);
    b->p0 = crdi_new_array(ctx, b->width, sizeof *b->p0);
    b->p1 = crdi_new_array(ctx, b->width, sizeof *b->p1);
    if (!b->y || !b->real || !b->p0 || !b->p1) {
        st = CRD_E_MEMORY;
        goto fail;
    }
    crdi_timeline_init(&b->time, opt->step, opt->start_time);
    for (size_t i = 0; i < (size_t)b->capacity * b->width; i++) {
        b->y[i] = opt->start_value;
    }
    b->stale = true;
    *out = b;
    return CRD_OK;
fail:
    crd_coupling_bank_destroy(b);
    return st;
}

void crd_coupling_bank_destroy(crd_coupling_bank* b)
{
    if (!b) { return; }
    crdi_table_free(b->ctx, b->table, b->opt.k_max);
    crd_free(b->ctx, b->y);
    crd_free(b->ctx, b->real);
    crd_free(b->ctx, b->p0);
    crd_free(b->ctx, b->p1);
    crd_free(b->ctx, b);
}

// ---- push --------------------------------------------------------------------------------------

// Every signal begins with its first value, or goes on with the last one if that is of no use.
static void bank_start(crd_coupling_bank* b, const double* values, double stamp, int64_t sequence)
{
    crdi_timeline_start(&b->time, stamp, sequence);
    const size_t newest = bank_row_of(b, 0);
    for (size_t s = 0; s < b->n; s++) {
        const bool usable = crdi_usable(values[s]);
        const double value = usable ? values[s] : b->y[newest + s];
        b->counts.not_finite += !usable;
        for (int age = 0; age < b->capacity; age++) {
            b->y[bank_row_of(b, age) + s] = value;
            b->real[bank_row_of(b, age) + s] = age == 0;
        }
    }
    b->started = b->stale = true;
    b->count = 1;
}

// Of bits, as unsigned numbers NaN and Inf are the largest.
static bool are_usable(const double* values, size_t n)
{
    const double largest = 1e250;
    const uint64_t magnitude = UINT64_MAX >> 1;
    uint64_t limit = 0, above[LANES] = {0}, any = 0;
    memcpy(&limit, &largest, sizeof limit);
    for (; n >= LANES; n -= LANES, values += LANES) {
        uint64_t bits[LANES];
        memcpy(bits, values, sizeof bits);
        for (int j = 0; j < LANES; j++) {
            above[j] |= limit - (bits[j] & magnitude); // has the highest bit if above
        }
    }
    for (int j = 0; j < LANES; j++) {
        any |= above[j];
    }
    bool usable = any <= magnitude;
    for (; n > 0; n--) {
        usable &= crdi_usable(values[n - 1]);
    }
    return usable;
}

// Samples that are of no use are held, those that are missing before it lie on a line.
static int64_t put_one_by_one(crd_coupling_bank* b, const double* values, size_t before,
                              int64_t steps)
{
    const size_t newest = bank_row_of(b, 0);
    int64_t held = 0;
    for (size_t s = 0; s < b->n; s++) {
        const bool usable = crdi_usable(values[s]);
        const double old = b->y[before + s], value = usable ? values[s] : old;
        const double slope = (value - old) / (double)steps;
        for (int64_t j = 1; j < steps; j++) {
            const size_t row = bank_row_of(b, steps - j);
            b->y[row + s] = old + slope * (double)j;
            b->real[row + s] = false;
        }
        b->y[newest + s] = value;
        b->real[newest + s] = usable;
        held += !usable;
    }
    return held;
}

static void push_new(crd_coupling_bank* b, const double* values, double stamp, int64_t steps)
{
    const size_t before = bank_row_of(b, 0);
    b->head = (int)((b->head + b->capacity - steps % b->capacity) % b->capacity);
    b->count += steps;
    if (steps == 1 && are_usable(values, b->n)) {
        memcpy(&b->y[bank_row_of(b, 0)], values, b->n * sizeof *values);
        memset(&b->real[bank_row_of(b, 0)], true, b->n * sizeof *b->real);
    } else {
        const int64_t held = put_one_by_one(b, values, before, steps);
        b->counts.not_finite += held;
        b->counts.filled += held + (steps - 1) * (int64_t)b->n;
    }
    b->counts.backwards += !crdi_timeline_advance(&b->time, stamp, steps);
    b->stale = true;
}

// Interpolate a signal's filled samples between two that arrived, ages `from` < `to`.
static void bank_fill(crd_coupling_bank* b, size_t s, int from, int to)
{
    const double newer = b->y[bank_row_of(b, from) + s], older = b->y[bank_row_of(b, to) + s];
    for (int i = from + 1; i < to; i++) {
        b->y[bank_row_of(b, i) + s] = newer + (older - newer) * (i - from) / (to - from);
    }
}

static bool replace(crd_coupling_bank* b, size_t s, int age, double value)
{
    const size_t place = bank_row_of(b, age) + s;
    if (b->real[place]) { return false; }
    b->real[place] = true;
    b->y[place] = value;
    int newer = age - 1, older = age + 1;
    while (newer > 0 && !b->real[bank_row_of(b, newer) + s]) {
        newer--;
    }
    if (newer >= 0) { bank_fill(b, s, newer, age); }
    while (older < b->capacity && !b->real[bank_row_of(b, older) + s]) {
        older++;
    }
    if (older < b->capacity) { bank_fill(b, s, age, older); }
    return true;
}

static void push_old(crd_coupling_bank* b, const double* values, int age)
{
    for (size_t s = 0; s < b->n; s++) {
        if (!crdi_usable(values[s])) {
            b->counts.not_finite++;
        } else if (replace(b, s, age, values[s])) {
            b->counts.late += age > 0;
            b->stale = true;
        } else {
            b->counts.duplicates++;
        }
    }
}

void crd_coupling_bank_push(crd_coupling_bank* b, const double* values, double stamp,
                            int64_t sequence)
{
    int64_t steps = 0;
    b->counts.samples++;
    if (!b->started) {
        bank_start(b, values, stamp, sequence);
        return;
    }
    switch (crdi_timeline_place(&b->time, stamp, sequence, b->count, b->capacity, &steps)) {
    case CRDI_PLACE_NEW:
        push_new(b, values, stamp, steps);
        break;
    case CRDI_PLACE_OLD:
        push_old(b, values, (int)steps);
        break;
    case CRDI_PLACE_TOO_LATE:
        b->counts.too_late++;
        for (size_t s = 0; s < b->n; s++) {
            b->counts.not_finite += !crdi_usable(values[s]);
        }
        break;
    case CRDI_PLACE_RESTART:
        b->counts.restarts++;
        bank_start(b, values, stamp, sequence);
        break;
    }
}

// ---- eval --------------------------------------------------------------------------------------

// The rows of the taps, newest first.
typedef struct taps {
    int m;
    const double* row[CRD_TAPS_MAX];
} taps;

// Sum of weight times sample over the taps from, from + by, ... < to, for the signals from `at`.
static inline void sum_taps(const taps* x, const double* weights, int from, int to, int by,
                            size_t at, double sums[LANES])
{
    double s[LANES] = {0};
    for (int i = from; i < to; i += by) {
        const double* row = x->row[i] + at;
        const double w = weights[i];
        for (int j = 0; j < LANES; j++) {
            s[j] += w * row[j];
        }
    }
    memcpy(sums, s, sizeof s);
}

// The order is that of crdi_dot.
static void sum_in_fours(const taps* x, const double* weights, size_t width, double* sums)
{
    const int m = x->m, head = crdi_dot_head(m);
    for (size_t at = 0; at < width; at += LANES) {
        double s[4][LANES];
        sum_taps(x, weights, 0, head, 1, at, &sums[at]);
        if (head == m) { continue; }
        for (int i = 0; i < 4; i++) {
            sum_taps(x, weights, head + i, m, 4, at, s[i]);
        }
        for (int j = 0; j < LANES; j++) {
            sums[at + (size_t)j] += (s[0][j] + s[1][j]) + (s[2][j] + s[3][j]);
        }
    }
}

static void sum_in_order(const taps* x, const double* weights, size_t width, double* sums)
{
    for (size_t at = 0; at < width; at += LANES) {
        sum_taps(x, weights, 0, x->m, 1, at, &sums[at]);
    }
}

static void check_predictions(crd_coupling_bank* b)
{
    const double* newest = &b->y[bank_row_of(b, 0)];
    for (size_t s = 0; s < b->n; s++) {
        if (!crdi_is_prediction(b->p0[s], b->p1[s])) {
            b->counts.overflows++;
            b->p0[s] = newest[s];
            b->p1[s] = 0;
        }
    }
}

static void bank_plan(crd_coupling_bank* b, int k)
{
    const int in_table = k <= b->opt.k_max ? k : b->opt.k_max;
    const crd_linear* l = &b->table[in_table];
    taps x = {.m = l->m};
    for (int i = 0; i < l->m; i++) {
        x.row[i] = &b->y[bank_row_of(b, i)];
    }
    if (b->sloped) {
        sum_in_order(&x, l->a, b->width, b->p0);
        sum_in_order(&x, l->A, b->width, b->p1);
    } else {
        sum_in_fours(&x, l->a, b->width, b->p0);
        memset(b->p1, 0, b->width * sizeof *b->p1);
    }
    if (k > in_table) {
        b->counts.beyond += (int64_t)b->n;
        for (size_t s = 0; s < b->n; s++) {
            b->p0[s] += b->p1[s];
            b->p1[s] = 0;
        }
    }
    if (!b->moderate) { check_predictions(b); }
    b->k = k;
    b->from = b->time.stamp + k * b->time.step;
    b->stale = false;
}

static void look_back(crd_coupling_bank* b, double age, double* out)
{
    const bool oldest = !(age < b->capacity - 1);
    const int i = oldest ? b->capacity - 1 : (int)age;
    const double *y = &b->y[bank_row_of(b, i)], *older = oldest ? y : &b->y[bank_row_of(b, i + 1)];
    for (size_t s = 0; s < b->n; s++) {
        out[s] = oldest ? y[s] : y[s] + (age - i) * (older[s] - y[s]);
    }
}

void crd_coupling_bank_eval(crd_coupling_bank* b, double t, double* out)
{
    const double age = crdi_timeline_age(&b->time, t);
    if (!(age > -CRDI_GRID_TOLERANCE)) {
        b->counts.rewound += b->started && !isnan(age) ? (int64_t)b->n : 0;
        look_back(b, b->started && !isnan(age) ? -age : 0, out);
        return;
    }
    const int k = crdi_timeline_k(age);
    if (b->stale || k != b->k) { bank_plan(b, k); }
    if (!b->sloped) {
        memcpy(out, b->p0, b->n * sizeof *out);
        return;
    }
    const double theta = b->moderate && k <= b->opt.k_max
                             ? age - k
                             : crdi_clamp((t - b->from) * b->time.per_step, -1, 2);
    for (size_t s = 0; s < b->n; s++) {
        out[s] = b->p0[s] + b->p1[s] * theta;
    }
}

bool crd_coupling_bank_set_step(crd_coupling_bank* b, double step)
{
    const double ratio = step * b->time.per_step;
    if (!crdi_timeline_set_step(&b->time, step)) { return false; }
    // In place: a row is made of rows that come later in this order, or of itself.
    for (int i = 1; i < b->capacity; i++) {
        const int age = ratio < 1 ? b->capacity - i : i;
        look_back(b, age * ratio, &b->y[bank_row_of(b, age)]);
    }
    // None of the new places may be claimed by a sample of the old grid.
    memset(b->real, true, (size_t)b->capacity * b->width * sizeof *b->real);
    b->stale = true;
    return true;
}

crd_coupling_counts crd_coupling_bank_get_counts(const crd_coupling_bank* b)
{
    return b->counts;
}
