#include "shared/num.h"

#include <math.h>

// P(a, x) = gamma(a, x) / Gamma(a): its series below a + 1, Lentz's continued fraction of 1 - P
// above (Abramowitz and Stegun 6.5.29, 6.5.31).
static double regularised_gamma(double a, double x)
{
    const double front = exp(a * log(x) - x - lgamma(a));
    if (x < a + 1) {
        double term = 1 / a, sum = term;
        for (int i = 1; i < 100000 && term > 1e-16 * sum; i++) {
            term *= x / (a + i);
            sum += term;
        }
        return front * sum;
    }
    double b = x + 1 - a, c = 1e300, d = 1 / b, f = d;
    for (int i = 1; i < 100000; i++) {
        const double n = -i * (i - a);
        b += 2;
        d = 1 / (n * d + b);
        c = b + n / c;
        f *= c * d;
        if (fabs(c * d - 1) < 1e-16) { break; }
    }
    return 1 - front * f;
}

double crdi_num_chi2(double x, double freedom)
{
    return x > 0 ? regularised_gamma(freedom / 2, x / 2) : 0;
}

double crdi_num_chi2_quantile(double probability, double freedom)
{
    // 12 sd beside the mean lies every probability that is asked for
    double low = 0, high = freedom + 12 * sqrt(2 * freedom) + 200;
    for (int i = 0; i < 200 && high - low > 1e-13 * high; i++) {
        const double middle = 0.5 * (low + high);
        *(crdi_num_chi2(middle, freedom) < probability ? &low : &high) = middle;
    }
    return 0.5 * (low + high);
}
