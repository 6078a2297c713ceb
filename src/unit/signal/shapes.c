#include "unit/signal/shapes.h"
#include "shared/base.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define TWO_PI 6.28318530717958647692

static const char* const names[CRD_SIGNAL_SHAPE_COUNT] = {
    [CRD_SIGNAL_CONSTANT] = "constant",   [CRD_SIGNAL_STEP] = "step",   [CRD_SIGNAL_RAMP] = "ramp",
    [CRD_SIGNAL_SINE] = "sine",           [CRD_SIGNAL_CHIRP] = "chirp", [CRD_SIGNAL_PRBS] = "prbs",
    [CRD_SIGNAL_MULTISINE] = "multisine", [CRD_SIGNAL_TABLE] = "table",
};

enum { MOST_LINES = 10000, PRBS_SHORTEST = 3, PRBS_LONGEST = 31 };

// ---- pseudo-random binary sequence -------------------------------------------------------------

// Primitive polynomials without their highest term x^n: bit i stands for x^i.
static const uint32_t polynomials[PRBS_LONGEST + 1] = {
    [3] = 1u | 1u << 2,
    [4] = 1u | 1u << 3,
    [5] = 1u | 1u << 3,
    [6] = 1u | 1u << 5,
    [7] = 1u | 1u << 6,
    [8] = 1u | 1u << 4 | 1u << 5 | 1u << 6,
    [9] = 1u | 1u << 5,
    [10] = 1u | 1u << 7,
    [11] = 1u | 1u << 9,
    [12] = 1u | 1u << 1 | 1u << 4 | 1u << 6,
    [13] = 1u | 1u << 1 | 1u << 3 | 1u << 4,
    [14] = 1u | 1u << 1 | 1u << 3 | 1u << 5,
    [15] = 1u | 1u << 14,
    [16] = 1u | 1u << 4 | 1u << 13 | 1u << 15,
    [17] = 1u | 1u << 14,
    [18] = 1u | 1u << 11,
    [19] = 1u | 1u << 1 | 1u << 2 | 1u << 6,
    [20] = 1u | 1u << 17,
    [21] = 1u | 1u << 19,
    [22] = 1u | 1u << 21,
    [23] = 1u | 1u << 18,
    [24] = 1u | 1u << 17 | 1u << 22 | 1u << 23,
    [25] = 1u | 1u << 22,
    [26] = 1u | 1u << 1 | 1u << 2 | 1u << 6,
    [27] = 1u | 1u << 1 | 1u << 2 | 1u << 5,
    [28] = 1u | 1u << 25,
    [29] = 1u | 1u << 27,
    [30] = 1u | 1u << 1 | 1u << 4 | 1u << 6,
    [31] = 1u | 1u << 28,
};

static uint32_t times_x(int n, uint32_t a)
{
    const uint32_t top = a >> (n - 1) & 1;
    return ((a << 1) & ((1u << n) - 1)) ^ (top ? polynomials[n] : 0);
}

static uint32_t product(int n, uint32_t a, uint32_t b)
{
    uint32_t sum = 0;
    for (; b; b >>= 1, a = times_x(n, a)) {
        if (b & 1) { sum ^= a; }
    }
    return sum;
}

uint32_t crdi_prbs_jump(int n, uint32_t state, uint64_t steps)
{
    steps %= (1u << n) - 1;
    for (uint32_t power = 2; steps; steps >>= 1, power = product(n, power, power)) {
        if (steps & 1) { state = product(n, state, power); }
    }
    return state;
}

static uint64_t prbs_bit(const crd_signal_spec* p, double tau, double slack)
{
    const double x = tau / p->duration, nearest = nearbyint(x);
    // A communication point that rounding put just before a bit's edge belongs to the bit.
    const bool near = fabs(x - nearest) <= fmax(1e-9, slack / p->duration);
    const double edge = near ? nearest : floor(x);
    return edge < 9e18 ? (uint64_t)edge : 0;
}

static uint32_t prbs_register(const crdi_shape* s, uint64_t bit)
{
    const crd_signal_spec* p = s->spec;
    if (bit == s->bit) { return s->reg; }
    if (bit == s->bit + 1) { return times_x(p->order, s->reg); }
    const uint32_t first = (uint32_t)(1 + p->seed % ((1u << p->order) - 1));
    return crdi_prbs_jump(p->order, first, bit);
}

static double prbs(crdi_shape* s, double tau, double slack)
{
    const uint64_t bit = prbs_bit(s->spec, tau, slack);
    s->reg = prbs_register(s, bit);
    s->bit = bit;
    return s->reg & 1 ? 1 : -1;
}

// Behind tau, when the next bit that is another one begins. A run has at most `order` bits.
static double prbs_next(const crdi_shape* s, double tau, double slack)
{
    const crd_signal_spec* p = s->spec;
    uint64_t bit = prbs_bit(p, tau, slack);
    uint32_t reg = prbs_register(s, bit);
    const uint32_t now = reg & 1;
    do {
        reg = times_x(p->order, reg);
        bit++;
    } while ((reg & 1) == now);
    return (double)bit * p->duration;
}

// ---- sums of sines -----------------------------------------------------------------------------

// splitmix64 (Steele 2014)
static uint64_t next_random(uint64_t* state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void choose_phases(const crd_signal_spec* p, double* phases)
{
    uint64_t state = p->seed;
    for (int k = 0; k < p->order; k++) {
        // Line k + 1 of N, Schroeder (1970): -pi k (k + 1) / N; reduced before it loses digits.
        const int64_t turns = ((int64_t)k * (k + 1)) % (2 * (int64_t)p->order);
        phases[k] = p->seed == 0 ? -0.5 * TWO_PI * (double)turns / p->order
                                 : TWO_PI * (double)(next_random(&state) >> 11) * 0x1p-53;
    }
}

// Derivative of cos(w t + phase): each one is a quarter turn ahead and w times as large.
static double multisine(const crdi_shape* s, double tau, int order)
{
    const crd_signal_spec* p = s->spec;
    double sum = 0;
    for (int k = 0; k < p->order; k++) {
        const double f = (k + 1) * p->frequency2 / p->order, w = TWO_PI * f;
        const double turns = f * tau;
        const double angle = TWO_PI * (turns - floor(turns)) + s->phases[k];
        sum += order == 0 ? cos(angle) : order == 1 ? -w * sin(angle) : -w * w * cos(angle);
    }
    return sum / sqrt(p->order);
}

static double sine(const crd_signal_spec* p, double tau, int order)
{
    const double w = TWO_PI * p->frequency, turns = p->frequency * tau;
    const double angle = TWO_PI * (turns - floor(turns)) + p->phase;
    return order == 0 ? sin(angle) : order == 1 ? w * cos(angle) : -w * w * sin(angle);
}

// sin(2 pi g), g = f1 tau + (f2 - f1) tau^2 / (2 T); beyond T it goes on with f2.
static double chirp(const crd_signal_spec* p, double tau, double slack, int order)
{
    const double T = p->duration, rate = (p->frequency2 - p->frequency) / T;
    const bool sweeping = tau < T - slack;
    const double in = sweeping ? tau : T;
    const double g = in * (p->frequency + 0.5 * rate * in) + p->frequency2 * (tau - in);
    const double angle = TWO_PI * (g - floor(g));
    const double w = TWO_PI * (p->frequency + rate * in), dw = sweeping ? TWO_PI * rate : 0;
    return order == 0   ? sin(angle)
           : order == 1 ? w * cos(angle)
                        : dw * cos(angle) - w * w * sin(angle);
}

// ---- the others --------------------------------------------------------------------------------

// The last row at or before `late`, -1: none.
static int table_row(const crdi_shape* s, double late)
{
    const crd_signal_spec* p = s->spec;
    int low = s->row >= 0 && p->times[s->row] <= late ? s->row : -1, high = p->table_count;
    if (low >= 0 && (low + 1 == high || p->times[low + 1] > late)) { high = low + 1; }
    while (high - low > 1) { // low is at or before, high is behind
        const int middle = low + (high - low) / 2;
        *(p->times[middle] <= late ? &low : &high) = middle;
    }
    return low;
}

// Slope of a linear table from one row to the next, 0 outside. Infinite where it jumps.
static double table_slope(const crd_signal_spec* p, int row)
{
    if (row < 0 || row + 1 >= p->table_count) { return 0; }
    const double dy = p->values[row + 1] - p->values[row];
    return dy == 0 ? 0 : dy / (p->times[row + 1] - p->times[row]);
}

// Does value or slope change at this row? Of rows at the same time one may say it for all.
static bool table_breaks(const crd_signal_spec* p, int row, bool kinks)
{
    if (p->interpolation == CRD_INTERPOLATE_HOLD) {
        return row > 0 && p->values[row] != p->values[row - 1];
    }
    const double before = table_slope(p, row - 1), after = table_slope(p, row);
    if (isinf(before) || isinf(after)) { return true; }
    return kinks && fabs(after - before) > 1e-9 * (fabs(after) + fabs(before));
}

static double table_next(crdi_shape* s, double late, bool kinks)
{
    const crd_signal_spec* p = s->spec;
    const int row = table_row(s, late);
    if (row < s->ahead[kinks].from || row >= s->ahead[kinks].to) {
        int to = row + 1;
        while (to < p->table_count && !table_breaks(p, to, kinks)) {
            to++;
        }
        s->ahead[kinks].from = row;
        s->ahead[kinks].to = to;
    }
    return s->ahead[kinks].to < p->table_count ? p->times[s->ahead[kinks].to] : INFINITY;
}

static double table(crdi_shape* s, double tau, double slack, int order)
{
    const crd_signal_spec* p = s->spec;
    const int low = table_row(s, tau + slack);
    s->row = low;
    const bool inside = low >= 0 && low + 1 < p->table_count;
    const bool linear = inside && p->interpolation == CRD_INTERPOLATE_LINEAR;
    if (order > 1 || (order == 1 && !linear)) { return 0; }
    if (!linear) { return p->values[low < 0 ? 0 : low]; }
    const double dt = p->times[low + 1] - p->times[low], dy = p->values[low + 1] - p->values[low];
    if (order == 1) { return dy / dt; }
    return p->values[low] + dy * ((tau - p->times[low]) / dt);
}

static double ramp(const crd_signal_spec* p, double tau, double slack, int order)
{
    const bool rising = tau < p->duration - slack;
    if (order == 0) { return rising ? tau / p->duration : 1; }
    return order == 1 && rising ? 1 / p->duration : 0;
}

// Times come as sums: what rounding put just before the start, or before an end or a row, is there.
static double slack_at(const crd_signal_spec* p, double t)
{
    return 8 * DBL_EPSILON * fmax(fabs(t), fabs(p->start));
}

double crdi_shape_eval(crdi_shape* s, double t, int order)
{
    const crd_signal_spec* p = s->spec;
    const double slack = slack_at(p, t);
    double tau = t - p->start, y = 0;
    if (fabs(tau) <= slack) { tau = 0; }
    const bool begun = tau >= 0;
    switch (p->shape) {
    case CRD_SIGNAL_CONSTANT:
        y = order == 0;
        break;
    case CRD_SIGNAL_STEP:
        y = order == 0 && begun;
        break;
    case CRD_SIGNAL_RAMP:
        y = begun ? ramp(p, tau, slack, order) : 0;
        break;
    case CRD_SIGNAL_SINE:
        y = begun ? sine(p, tau, order) : 0;
        break;
    case CRD_SIGNAL_CHIRP:
        y = begun ? chirp(p, tau, slack, order) : 0;
        break;
    case CRD_SIGNAL_PRBS:
        y = begun && order == 0 ? prbs(s, tau, slack) : 0;
        break;
    case CRD_SIGNAL_MULTISINE:
        y = begun ? multisine(s, tau, order) : 0;
        break;
    case CRD_SIGNAL_TABLE:
        y = table(s, tau, slack, order);
        break;
    case CRD_SIGNAL_SHAPE_COUNT:
        break;
    }
    return (order == 0 ? p->offset : 0) + p->amplitude * y;
}

double crdi_shape_next(crdi_shape* s, double t, bool kinks)
{
    const crd_signal_spec* p = s->spec;
    const double slack = slack_at(p, t);
    const double tau = fabs(t - p->start) <= slack ? 0 : t - p->start;
    double next = INFINITY; // behind the start
    if (p->amplitude == 0 || p->shape == CRD_SIGNAL_CONSTANT) { return INFINITY; }
    if (p->shape == CRD_SIGNAL_TABLE) {
        next = table_next(s, tau + slack, kinks);
    } else if (tau < 0) {
        return p->start;
    } else if (p->shape == CRD_SIGNAL_PRBS) {
        next = prbs_next(s, tau, slack);
    } else if (p->shape == CRD_SIGNAL_RAMP || p->shape == CRD_SIGNAL_CHIRP) {
        next = tau < p->duration - slack ? p->duration : INFINITY;
    }
    next += p->start;
    return next > t ? next : INFINITY; // a time so late that it has no room for the rest
}

// ---- checks ------------------------------------------------------------------------------------

static crd_status check_table(crd_context* ctx, const crd_signal_spec* p)
{
    if (p->table_count < 1) {
        return crdi_fail(ctx, CRD_E_RANGE, "signal '%s': the table is empty", p->name);
    }
    for (int i = 0; i < p->table_count; i++) {
        if (!isfinite(p->times[i]) || !isfinite(p->values[i])) {
            return crdi_fail(ctx, CRD_E_RANGE,
                             "signal '%s': row %d of the table is %g, %g, expected finite numbers",
                             p->name, i + 1, p->times[i], p->values[i]);
        }
        if (i > 0 && p->times[i] < p->times[i - 1]) {
            return crdi_fail(ctx, CRD_E_RANGE,
                             "signal '%s': time %g in row %d of the table comes after %g, expected "
                             "ascending times",
                             p->name, p->times[i], i + 1, p->times[i - 1]);
        }
    }
    return CRD_OK;
}

static crd_status shapes_check_numbers(crd_context* ctx, const crd_signal_spec* p)
{
    const struct {
        const char* name;
        double value;
        bool positive;
    } numbers[] = {
        {"offset", p->offset, false},
        {"amplitude", p->amplitude, false},
        {"start", p->start, false},
        {"phase", p->phase, false},
        {"duration", p->duration,
         p->shape == CRD_SIGNAL_RAMP || p->shape == CRD_SIGNAL_CHIRP ||
             p->shape == CRD_SIGNAL_PRBS},
        {"frequency", p->frequency, p->shape == CRD_SIGNAL_SINE},
        {"frequency2", p->frequency2, p->shape == CRD_SIGNAL_MULTISINE},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const double x = numbers[i].value;
        if (!isfinite(x) || (numbers[i].positive && !(x > 0))) {
            return crdi_fail(ctx, CRD_E_RANGE, "signal '%s', a %s: %s = %g, expected %s", p->name,
                             names[p->shape], numbers[i].name, x,
                             numbers[i].positive ? "> 0" : "a finite number");
        }
    }
    const bool chirp_ok = p->frequency >= 0 && p->frequency2 >= 0;
    if (p->shape == CRD_SIGNAL_CHIRP && !chirp_ok) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "signal '%s', a chirp from %g to %g Hz, expected frequencies >= 0",
                         p->name, p->frequency, p->frequency2);
    }
    const bool is_prbs = p->shape == CRD_SIGNAL_PRBS;
    const int low = is_prbs ? PRBS_SHORTEST : 1, high = is_prbs ? PRBS_LONGEST : MOST_LINES;
    if ((is_prbs || p->shape == CRD_SIGNAL_MULTISINE) && (p->order < low || p->order > high)) {
        return crdi_fail(ctx, CRD_E_RANGE, "signal '%s', a %s: order = %d, expected %d to %d",
                         p->name, names[p->shape], p->order, low, high);
    }
    return p->shape == CRD_SIGNAL_TABLE ? check_table(ctx, p) : CRD_OK;
}

crd_status crdi_shape_init(crd_context* ctx, const crd_signal_spec* spec, crdi_shape* out)
{
    *out = (crdi_shape){.spec = spec, .row = -1, .bit = UINT64_MAX - 1};
    out->ahead[0].to = out->ahead[1].to = -1; // nothing is known
    const crd_status st = shapes_check_numbers(ctx, spec);
    if (st < 0) { return st; }
    if (spec->shape == CRD_SIGNAL_MULTISINE) {
        out->phases = crdi_new_array(ctx, (size_t)spec->order, sizeof *out->phases);
        if (!out->phases) { return CRD_E_MEMORY; }
        choose_phases(spec, out->phases);
    }
    return CRD_OK;
}

void crdi_shape_clear(crd_context* ctx, crdi_shape* s)
{
    crd_free(ctx, s->phases);
    s->phases = NULL;
}
