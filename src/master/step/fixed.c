// Steps of one length, on the grid of times.
#include "master/master.h"

#include <math.h>

void crdi_step_init(crd_master* m)
{
    m->clock.time = m->plan->times.start;
    m->tuning.threads = 1;
}

// From the count: a sum would drift. The last tick may be shorter.
static inline double grid_time(const crdi_times* t, int64_t n)
{
    return n >= t->tick_count ? t->stop : t->start + (double)n * t->tick;
}

double crdi_time_of(const crd_master* m, int64_t n)
{
    return m->plan->controlled ? m->clock.time + (double)(n - m->clock.n) * m->clock.h
                               : grid_time(&m->plan->times, n);
}

static double fixed_begin(crd_master* m)
{
    const crdi_times* t = &m->plan->times;
    return m->clock.n + 1 == t->tick_count ? t->last_tick : t->tick;
}

static double fixed_end(const crd_master* m)
{
    return grid_time(&m->plan->times, m->clock.n + 1);
}

static double fixed_ahead(const crd_master* m, int64_t ticks)
{
    return grid_time(&m->plan->times, m->clock.n + ticks) - m->clock.time;
}

static crd_status fixed_judge(crd_master* m, double eps, bool* again)
{
    *again = false;
    (void)m;
    (void)eps;
    return CRD_OK;
}

const crdi_step_rule crdi_step_fixed = {
    .begin = fixed_begin, .judge = fixed_judge, .end = fixed_end, .ahead = fixed_ahead};
