// Connections that hold the newest value over the step: as it is, or as gain * x + offset. The
// fast lanes of the master. Where defects are monitored they are looked at in passing.
#include "master/master.h"

#include <math.h>

static crd_status scale_begin(crd_master* m, crdi_rows rows, double t)
{
    (void)t;
    const crdi_scaled* scaled = m->connections.scaled + rows.first;
    for (int i = 0; i < rows.count; i++) {
        *scaled[i].to = scaled[i].gain * *scaled[i].from + scaled[i].offset;
    }
    return CRD_OK;
}

// The mean square of a line from a to b is (a^2 + a b + b^2) / 3.
void crdi_observe_line(crdi_observed* w, double t, double h, double a, double b)
{
    const double y = w->gain * *w->from + w->offset;
    w->integral += h * (a * a + a * b + b * b) * (1.0 / 3);
    w->bias = 0.5 * (a + b);
    const double larger = fmax(fabs(a), fabs(b));
    if (larger > w->max) {
        w->max = larger;
        w->max_time = t;
    }
    w->size = fmax(w->size, fabs(y));
    w->low = fmin(w->low, y);
    w->high = fmax(w->high, y);
    w->square += h * y * y;
    w->way += fabs(y - w->last);
    w->moved += (y - w->last) * (y - w->last);
    w->last = y;
}

// u is what the input was over the last piece, y a line between its samples.
void crdi_observe(crdi_observed* w, double t, double h)
{
    const double y = w->gain * *w->from + w->offset;
    w->rise = w->slope ? h * *w->slope : 0;
    crdi_observe_line(w, t, h, *w->to - w->last, *w->to + w->rise - y);
}

static void observe_all(crd_master* m, int64_t n, double t)
{
    const crdi_plan* plan = m->plan;
    for (int i = 0; i < m->connections.observed_count; i++) {
        crdi_observed* w = &m->connections.observed[i];
        if (!plan->times.multirate) {
            crdi_observe(w, t, m->clock.h);
            continue;
        }
        const int64_t every = plan->members[w->of->from.member].ticks;
        if (n % every == 0) { crdi_observe(w, t, (double)every * plan->times.tick); }
    }
}

void crdi_observed_begin(crdi_observed* w)
{
    w->last = w->low = w->high = w->gain * *w->from + w->offset;
    w->size = fabs(w->last);
}

void crdi_observed_start(crd_master* m)
{
    for (int i = 0; i < m->connections.observed_count; i++) {
        crdi_observed_begin(&m->connections.observed[i]);
    }
}

double crdi_observed_scale(const crdi_observed* w)
{
    const double given = w->of->spec->scale;
    return given > 0 ? given : w->frozen > 0 ? w->frozen : w->size > 0 ? w->size : 1;
}

const crdi_connection_kind crdi_kind_copy = {.accept = observe_all};
const crdi_connection_kind crdi_kind_scale = {.begin = scale_begin}; // observed with the copies
