#include "coupling/coupling.h"

void crd_score_add(crd_score* s, double signal, double estimate)
{
    const double error = estimate - signal;
    s->count++;
    s->yy += signal * signal;
    s->ee += estimate * estimate;
    s->ye += signal * estimate;
    s->dd += error * error;
    s->worst = fmax(s->worst, fabs(error));
}

crd_metrics crd_score_metrics(const crd_score* s)
{
    const double pi = 3.14159265358979323846;
    crd_metrics m = {.M = NAN, .P = NAN, .C = NAN, .rms = 0, .worst = s->worst};
    if (s->count > 0) { m.rms = sqrt(s->dd / (double)s->count); }
    if (s->yy > 0 && s->ee > 0) {
        // The angle by its chord: near 1 a cosine is rounding alone where the errors are small
        // against the signal (a large constant and little else). Factors apart, against overflow.
        const double y = sqrt(s->yy), e = sqrt(s->ee);
        const double half = (s->dd - (y - e) * (y - e)) / y / (4 * e); // sine squared of its half
        m.M = sqrt(s->yy / s->ee) - 1;
        m.P = 2 * asin(sqrt(fmax(0, fmin(half, 1)))) / pi;
        m.C = hypot(m.M, m.P);
    }
    return m;
}
