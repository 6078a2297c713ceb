// Defects of Glumac and Kovacic 2023: what the master can know of the error without a second run.
#include "cardan/quality.h"

#include <math.h>
#include <string.h>

static const char* const schemes[] = {"strict", "fresh", "program"};

const char* crd_defect_scheme_name(crd_defect_scheme v)
{
    return schemes[v];
}

bool crd_defect_scheme_find(const char* name, crd_defect_scheme* out)
{
    for (int i = 0; i < 3; i++) {
        if (strcmp(name, schemes[i]) == 0) {
            *out = (crd_defect_scheme)i;
            return true;
        }
    }
    return false;
}

bool crd_defect_scheme_refreshes(crd_defect_scheme v)
{
    return v != CRD_DEFECT_STRICT;
}

crd_sample crd_defect_scheme_initial(crd_defect_scheme v, const crd_sample* s)
{
    crd_sample first = *s;
    if (v == CRD_DEFECT_PROGRAM) { // known, but as zero: the first step is a hold at every order
        for (int i = 1; i <= first.order; i++) {
            first.y[i] = 0;
        }
    }
    return first;
}

double crd_defect_larger(double a, double b)
{
    return isnan(a) || a >= b ? a : b; // also b if it is NaN
}

double crd_defect_connection(const crd_poly* u, const crd_poly* y, double h, double* max)
{
    const crd_poly d = crd_poly_minus(u, y);
    if (max) { *max = crd_poly_max(&d, 0, h); }
    return sqrt(crd_poly_mean_square(&d, 0, h));
}

double crd_defect_mean(const crd_poly* u, const crd_poly* y, double h)
{
    const crd_poly d = crd_poly_minus(u, y);
    return fabs(crd_poly_mean(&d, 0, h));
}

double crd_defect_mid(int n0, int n1, double d)
{
    // Mean of x^(2a) (1-x)^(2b) over [0, 1] = (2a)! (2b)! / (2a+2b+1)!
    double mean = 1.0 / (2 * n1 + 1);
    for (int i = 1; i <= 2 * n0; i++) {
        mean *= (double)i / (2 * n1 + 1 + i);
    }
    return fabs(d) * ldexp(sqrt(mean), n0 + n1);
}

double crd_defect_mid_mean(int n0, int n1, double d)
{
    double mean = 1.0 / (n1 + 1); // of x^a (1-x)^b over [0, 1]
    for (int i = 1; i <= n0; i++) {
        mean *= (double)i / (n1 + 1 + i);
    }
    return d * ldexp(mean, n0 + n1);
}

double crd_defect_output(const crd_sample* end, int degree, double h, double middle)
{
    const crd_poly y = crd_poly_taylor(end, degree);
    return crd_defect_mid(0, y.degree + 1, middle - crd_poly_eval(&y, -0.5 * h));
}

crd_defect crd_defect_two_point(const crd_poly* u, const crd_sample* start, const crd_sample* end,
                                double h, double middle)
{
    const int n0 = start->order + 1, n1 = end->order + 1;
    const crd_poly y = crd_poly_hermite(start, n0, end, n1, h);
    crd_defect d = {0};
    d.connection = crd_defect_connection(u, &y, h, &d.max);
    d.output = crd_defect_mid(n0, n1, middle - crd_poly_eval(&y, 0.5 * h));
    return d;
}

void crd_defect_add(crd_defect_sum* sum, double t, double h, double rms, double max)
{
    sum->steps++;
    if (0 * rms + 0 * max + 0 * h != 0) { // one is not finite
        sum->broken++;
        return;
    }
    sum->integral += rms * rms * h;
    sum->time += h;
    if (rms > sum->rms_max) { sum->rms_max = rms; }
    if (max > sum->max) {
        sum->max = max;
        sum->max_time = t;
    }
}

double crd_defect_rms(const crd_defect_sum* sum)
{
    if (sum->broken > 0) { return NAN; }
    return sum->time > 0 ? sqrt(sum->integral / sum->time) : 0;
}
