// Plain predictions outside of loops that have chosen the same for long. What their steps need
// until somebody looks at them again stands in rows of a few cache lines; the prediction is brought
// up to date when it is looked at, when the signal stands out, and when the master returns. Where
// somebody reads predictions in every step there are no rows.
#include "master/master.h"

#include <math.h>
#include <string.h>

crd_status crdi_steady_start(crd_master* m)
{
    crdi_connections* c = &m->connections;
    const crdi_plan* p = m->plan;
    const bool read = m->live || m->exchange || crdi_guard_is_limited(m) || p->paced ||
                      crdi_estimate_is_on(m) || m->energy.bond_count > 0;
    c->steady = NULL;
    if (!c->at_once || read || !c->prediction_count) { return CRD_OK; }
    c->steady = crdi_arena_new(&m->arena, (size_t)c->prediction_count, sizeof *c->steady);
    if (!c->steady) { return CRD_E_MEMORY; }
    for (int i = 0; i < c->prediction_count; i++) {
        const crdi_prediction* f = &c->predictions[i];
        const bool open = f->predict == CRD_PREDICTION_AUTO && !f->network && !f->of->corrected;
        c->steady[i].may = open && !crdi_defect_is_recorded(p, f->of);
    }
    return CRD_OK;
}

void crdi_steady_enter(crdi_steady* r, const crdi_prediction* f, int steps)
{
    const crd_sample* y = f->past.sample;
    *r = (crdi_steady){.from = f->from,
                       .to = f->to,
                       .gain = f->gain,
                       .offset = f->offset,
                       .event_count = f->event_count,
                       .events = f->events,
                       .y = {y[0].y[0], y[1].y[0], y[2].y[0], y[3].y[0]},
                       .weights = crdi_prediction_weights(f->used),
                       .usual = f->usual,
                       .low = f->low,
                       .high = f->high,
                       .rms_max = f->connection.rms_max,
                       .max = f->connection.max,
                       .max_time = f->connection.max_time,
                       .left = steps,
                       .may = true,
                       .holds = f->used == CRD_PREDICT_HOLD};
}

void crdi_steady_leave(crdi_steady* r, crdi_prediction* f, double t, int64_t n)
{
    const int64_t steps = r->steps;
    r->left = 0;
    if (!steps) { return; }
    for (int i = 0; i < CRD_HISTORY; i++) {
        f->past.sample[i].y[0] = r->y[i];
    }
    f->end.y[0] = r->y[0];
    f->connection.integral += r->integral;
    f->square += r->square;
    f->way += r->way;
    f->moved += r->moved;
    f->connection.time += t - f->time;
    f->connection.steps += steps;
    f->connection.rms_max = r->rms_max;
    f->connection.max = r->max;
    f->connection.max_time = r->max_time;
    f->uses[f->used] += steps;
    f->same += steps;
    f->low = r->low;
    f->high = r->high;
    f->size = fmax(f->size, fmax(-r->low, r->high));
    f->u.c[0] = *r->to;
    f->bias = crdi_plain_bias(f->u.c[0], r->y);
    f->rms = f->max = fabs(f->bias);
    if (r->holds) { crdi_plain_held(r->y, &f->rms, &f->max); }
    f->time = t;
    f->stamp = n;
}

// false: it has to be looked at.
static inline bool steady_step(crdi_steady* r, double t, double h)
{
    const double y[] = {r->gain * *r->from + r->offset, r->y[0], r->y[1], r->y[2]};
    const double change = y[0] - y[1], bias = crdi_plain_bias(*r->to, y);
    double rms = fabs(bias), max = rms;
    if (r->left < 2 || !(change * change <= r->usual) || *r->event_count != r->events) {
        return false;
    }
    if (r->holds) { crdi_plain_held(y, &rms, &max); }
    if (!(rms < INFINITY)) { return false; }
    r->integral += rms * rms * h;
    r->rms_max = rms > r->rms_max ? rms : r->rms_max;
    if (max > r->max) {
        r->max = max;
        r->max_time = t;
    }
    r->low = y[0] < r->low ? y[0] : r->low;
    r->high = y[0] > r->high ? y[0] : r->high;
    r->square += y[0] * y[0] * h;
    r->way += fabs(change);
    r->moved += change * change;
    memcpy(r->y, y, sizeof y);
    r->left--;
    r->steps++;
    return true;
}

int crdi_steady_pass(const crdi_connections* c, int i, double t, double h)
{
    for (; c->steady && i < c->prediction_count; i++) {
        crdi_steady* r = &c->steady[i];
        // Units are all over the memory, and nothing else of them is needed here.
        if (i + 8 < c->prediction_count) { __builtin_prefetch(r[8].event_count); }
        if (!r->left || !steady_step(r, t, h)) { break; }
    }
    return i;
}

void crdi_steady_leave_all(crd_master* m)
{
    crdi_connections* c = &m->connections;
    for (int i = 0; c->steady && i < c->prediction_count; i++) {
        crdi_steady* r = &c->steady[i];
        if (r->left) { crdi_steady_leave(r, &c->predictions[i], m->clock.time, m->clock.n); }
    }
}
