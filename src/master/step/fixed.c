// Steps of one length, on the grid of times.
#include "master/master.h"

#include <math.h>

void crdi_step_init(crd_master* m)
{
    m->clock.time = m->plan->times.start;
    m->tuning.threads = 1;
}

double crdi_time_of(const crd_master* m, int64_t n)
{
    return m->plan->controlled ? m->clock.time + (double)(n - m->clock.n) * m->clock.h
                               : crdi_grid_time(&m->plan->times, n);
}

static double fixed_ahead(const crd_master* m, int64_t ticks)
{
    return crdi_grid_time(&m->plan->times, m->clock.n + ticks) - m->clock.time;
}

static crd_status fixed_judge(crd_master* m, double eps, bool* again)
{
    *again = false;
    (void)m;
    (void)eps;
    return CRD_OK;
}

const crdi_step_rule crdi_step_fixed = {.judge = fixed_judge, .ahead = fixed_ahead};
