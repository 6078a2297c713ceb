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
        const double cosine = s->ye / (sqrt(s->yy) * sqrt(s->ee)); // their product could overflow
        m.M = sqrt(s->yy / s->ee) - 1;
        m.P = acos(fmax(-1, fmin(cosine, 1))) / pi;
        m.C = hypot(m.M, m.P);
    }
    return m;
}
