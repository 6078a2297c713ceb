// Points in the unit cube, and what they are in the distributions of factors.
#include "study/study.h"

#include <math.h>

// Of the probability, between min and max: with less the points would be few doubles only.
static const double least_part = 1e-9;

// Normal quantile: Newton's method on erfc, from Hastings' approximation (1955, sheet 67).
double crdi_normal_quantile(double p)
{
    if (!(p > 0) || !(p < 1)) { return p == 0 ? -INFINITY : p == 1 ? INFINITY : NAN; }
    const double q = fmin(p, 1 - p), t = sqrt(-2 * log(q));
    double x = t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                       (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
    for (int i = 0; i < 4; i++) { // the tail beyond x is q
        const double tail = 0.5 * erfc(x * M_SQRT1_2);
        const double density = exp(-0.5 * x * x) * 0.3989422804014327;
        const double d = (tail - q) / density;
        x += d / (1 - 0.5 * d * x); // Halley
    }
    return p < 0.5 ? -x : x;
}

static double law_raw(const crdi_study_factor* f, double u)
{
    switch (f->law) {
    case CRDI_LAW_UNIFORM:
        return f->a + (f->b - f->a) * u;
    case CRDI_LAW_LOGUNIFORM:
        return f->a * pow(f->b / f->a, u);
    case CRDI_LAW_NORMAL:
        return f->a + f->b * crdi_normal_quantile(u);
    case CRDI_LAW_LOGNORMAL:
        return f->a * exp(f->b * crdi_normal_quantile(u));
    case CRDI_LAW_TRIANGULAR: {
        const double part = (f->b - f->a) / (f->c - f->a);
        return u < part ? f->a + sqrt(u * (f->c - f->a) * (f->b - f->a))
                        : f->c - sqrt((1 - u) * (f->c - f->a) * (f->c - f->b));
    }
    case CRDI_LAW_LIST:
        break;
    }
    return NAN;
}

// The probability below x, for what is cut off.
static double law_below(const crdi_study_factor* f, double x)
{
    if (x == -INFINITY) { return 0; }
    if (x == INFINITY) { return 1; }
    double low = 0, high = 1;
    for (int i = 0; i < 60; i++) { // monotonic
        const double middle = 0.5 * (low + high);
        (law_raw(f, middle) < x ? &low : &high)[0] = middle;
    }
    return 0.5 * (low + high);
}

void crdi_law_cut(const crdi_study_factor* f, double cut[2])
{
    cut[0] = law_below(f, f->low);
    cut[1] = law_below(f, f->high);
}

const char* study_law_wrong(const crdi_study_factor* f, const double cut[2])
{
    if (f->law == CRDI_LAW_LIST) { return NULL; }
    if (cut[1] - cut[0] < least_part || (f->whole && ceil(f->low) > floor(f->high))) {
        return "an empty range: min and max leave nothing of the distribution";
    }
    return isfinite(crdi_law_quantile(f, cut, 0x1p-53)) &&
                   isfinite(crdi_law_quantile(f, cut, 1 - 0x1p-53))
               ? NULL
               : "it has numbers that are too large for a computer";
}

double crdi_law_quantile(const crdi_study_factor* f, const double cut[2], double u)
{
    const double x = law_raw(f, cut[0] + (cut[1] - cut[0]) * u);
    return f->whole ? fmin(fmax(round(x), ceil(f->low)), floor(f->high))
                    : fmin(fmax(x, f->low), f->high);
}

// Sobol's sequence with the primitive polynomials and direction numbers of Joe and Kuo (2008): of
// degree s with the inner coefficients `a`, beginning with m.
static const struct {
    uint8_t s, a, m[7];
} directions[CRDI_SOBOL_MOST - 1] = {
    {1, 0, {1}},
    {2, 1, {1, 3}},
    {3, 1, {1, 3, 1}},
    {3, 2, {1, 1, 1}},
    {4, 1, {1, 1, 3, 3}},
    {4, 4, {1, 3, 5, 13}},
    {5, 2, {1, 1, 5, 5, 17}},
    {5, 4, {1, 1, 5, 5, 5}},
    {5, 7, {1, 1, 7, 11, 19}},
    {5, 11, {1, 1, 5, 1, 1}},
    {5, 13, {1, 1, 1, 3, 11}},
    {5, 14, {1, 3, 5, 5, 31}},
    {6, 1, {1, 3, 3, 9, 7, 49}},
    {6, 13, {1, 1, 1, 15, 21, 21}},
    {6, 16, {1, 3, 1, 13, 27, 49}},
    {6, 19, {1, 1, 1, 15, 7, 5}},
    {6, 22, {1, 3, 1, 15, 13, 25}},
    {6, 25, {1, 1, 5, 5, 19, 61}},
    {7, 1, {1, 3, 7, 11, 23, 15, 103}},
    {7, 4, {1, 3, 7, 13, 13, 15, 69}},
};

void crdi_sobol_directions(int dimension, uint32_t v[32])
{
    for (int i = 0; i < 32; i++) {
        const int s = dimension ? directions[dimension - 1].s : 32;
        if (i < s) {
            const uint32_t m = dimension ? directions[dimension - 1].m[i] : 1;
            v[i] = m << (31 - i);
            continue;
        }
        v[i] = v[i - s] ^ (v[i - s] >> s);
        for (int k = 1; k < s; k++) {
            if (directions[dimension - 1].a >> (s - 1 - k) & 1) { v[i] ^= v[i - k]; }
        }
    }
}

double crdi_sobol(const uint32_t v[32], uint32_t index, uint32_t shift)
{
    uint32_t x = shift;
    for (uint32_t gray = index ^ (index >> 1), bit = 0; gray; gray >>= 1, bit++) {
        if (gray & 1) { x ^= v[bit]; }
    }
    return ((double)x + 0.5) * 0x1p-32;
}
