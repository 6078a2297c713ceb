// Does the filter know how wrong it is? (Bar-Shalom, Li and Kirubarajan 2001, 5.4)
#include "shared/num.h"
#include "twin/twin.h"

#include <math.h>

// A mean is judged where it lies with this probability if the filter is right, but never called
// wrong within MARGIN of 1: 5 % of a variance are 2.5 % of a band.
#define PROBABILITY 0.99
#define MARGIN 0.05
#define INSIDE 0.95
// Directions whose variance is below this part of a quantity's follow from those before it.
#define DEPENDENT 1e-9

int crd_twin_size(const crd_twin* w)
{
    return w->n;
}

// cov(a, b) = (var(a + b) - var(a - b)) / 4; every filter can tell variances
static double covariance(const crd_twin* w, const double* a, const double* b, double* sum)
{
    double* difference = sum + w->n;
    for (int i = 0; i < w->n; i++) {
        sum[i] = a[i] + b[i];
        difference[i] = a[i] - b[i];
    }
    return (crdi_twin_variance(w, sum) - crdi_twin_variance(w, difference)) / 4;
}

// e' P^-1 e = |z|^2 with L z = e, P = L L'. L is not made: the rows h of the quantities are made
// independent one after the other, h_i <- h_i - sum_j cov(h_i, h_j) / var(h_j) h_j, and e_i
// likewise.
void crd_twin_errors(const crd_twin* w, const crd_twin_quantity* q, const double* truth, int count,
                     double* z, double* work)
{
    const int n = w->n;
    double *rows = work, *error = work + (ptrdiff_t)count * n, *variance = error + count;
    double* room = variance + count;
    for (int i = 0; i < count; i++) {
        double* h = rows + (ptrdiff_t)i * n;
        const double value = crdi_twin_quantity(w, q[i], h);
        const bool logarithm = q[i].kind == CRD_TWIN_PARAMETER;
        error[i] = (logarithm ? log(truth[i]) : truth[i]) - value;
        const double alone = crdi_twin_variance(w, h);
        for (int j = 0; j < i; j++) {
            const double* before = rows + (ptrdiff_t)j * n;
            if (!(variance[j] > 0)) { continue; }
            const double part = covariance(w, h, before, room) / variance[j];
            error[i] -= part * error[j];
            for (int k = 0; k < n; k++) {
                h[k] -= part * before[k];
            }
        }
        const double left = crdi_twin_variance(w, h);
        variance[i] = left > DEPENDENT * alone ? left : 0;
        z[i] = variance[i] > 0 ? error[i] / sqrt(variance[i]) : (double)NAN;
    }
}

const char* crd_verdict_text(crd_verdict v)
{
    static const char* const words[] = {"nothing to judge by", "consistent", "too confident",
                                        "too cautious"};
    return words[v];
}

// How many independent rows tell as much. Squares of normal variables whose correlation over l rows
// is r(l) are correlated by r(l)^2, so rows / (1 + 2 sum r(l)^2). Errors have the mean 0, which is
// not taken from them: one that stays the same is worth one row. Lags 1, 2, 4, ..., in between
// r^2 is linear, up to the first that is not to be told from 0.
static double effective_rows(const double* z, int width, int stride, int64_t rows, int64_t counted)
{
    double before = 1, sum = 0;
    for (int64_t lag = 1, last = 0; lag < rows; last = lag, lag *= 2) {
        double product = 0, squares = 0;
        for (int64_t i = lag; i < rows; i++) {
            for (int k = 0; k < width; k++) {
                const double a = z[i * stride + k], b = z[(i - lag) * stride + k];
                if (isnan(a) || isnan(b)) { continue; }
                product += a * b;
                squares += 0.5 * (a * a + b * b);
            }
        }
        const double r = squares > 0 ? product / squares : 0;
        if (r < 2 / sqrt((double)counted)) { break; }
        sum += 0.5 * (before + r * r) * (double)(lag - last);
        before = r * r;
    }
    return fmax(1, (double)counted / (1 + 2 * sum));
}

crd_consistency crd_consistency_judge(const double* z, int width, int stride, int64_t rows,
                                      bool correlated)
{
    crd_consistency c = {0};
    double sum = 0, low = 0, high = 0;
    int64_t inside = 0;
    for (int64_t i = 0, bounds = 0; i < rows; i++) {
        int freedom = 0;
        double square = 0;
        for (int k = 0; k < width; k++) {
            const double x = z[i * stride + k];
            if (isnan(x)) { continue; }
            square += x * x;
            freedom++;
        }
        if (!freedom) { continue; }
        if (freedom != bounds) {
            bounds = freedom;
            low = crdi_num_chi2_quantile((1 - INSIDE) / 2, (double)bounds);
            high = crdi_num_chi2_quantile((1 + INSIDE) / 2, (double)bounds);
        }
        inside += square >= low && square <= high;
        sum += square;
        c.freedom += freedom;
        c.count++;
    }
    c.mean = c.low = c.high = c.inside = (double)NAN;
    if (!c.count) { return c; }
    c.mean = sum / c.freedom;
    c.inside = (double)inside / (double)c.count;
    c.effective = correlated ? effective_rows(z, width, stride, rows, c.count) : (double)c.count;
    const double worth = c.freedom * c.effective / (double)c.count;
    // errors that are small by chance look less correlated than they are: fewer rows below
    const double below = correlated ? worth / 4 : worth;
    c.low = fmin(1 - MARGIN, crdi_num_chi2_quantile((1 - PROBABILITY) / 2, below) / below);
    c.high = fmax(1 + MARGIN, crdi_num_chi2_quantile((1 + PROBABILITY) / 2, worth) / worth);
    c.verdict = c.mean > c.high  ? CRD_VERDICT_CONFIDENT
                : c.mean < c.low ? CRD_VERDICT_CAUTIOUS
                                 : CRD_VERDICT_CONSISTENT;
    return c;
}
