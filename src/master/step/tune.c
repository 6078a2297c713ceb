// What the run learns about itself: how long the units take, and whether threads pay.
#include "master/master.h"

#include <math.h>
#include <unistd.h>

enum { FIRST_TICKS = 16, TRIAL_TICKS = 32, FORK_JOIN_NS = 3000, WAY_NS = 1000 };

// The first ticks find cold caches: they are not typical of a long run.
static void forget_first_ticks(crd_master* m)
{
    for (int i = 0; i < m->plan->member_count; i++) {
        crdi_member* p = &m->plan->members[i];
        p->run->measured = p->run->ns_set = p->run->ns_step = p->run->ns_get = 0;
    }
}

// After the first ticks the cost of the units is known: measure so seldom that the clock costs a
// thousandth (more for units faster than the clock), and try threads if they may pay.
static void tune_learn(crd_master* m)
{
    double sum = 0, most = 0;
    for (int i = 0; i < m->plan->member_count; i++) {
        const crdi_member* p = &m->plan->members[i];
        if (!p->run->measured || p->async) { continue; }
        const double ns =
            (double)(p->run->ns_set + p->run->ns_step + p->run->ns_get) / (double)p->run->measured;
        sum += ns;
        most = fmax(most, ns);
    }
    const double mean = fmax(sum / m->plan->member_count, 1);
    // Of one measured step. Units elsewhere go in rows unless they are measured: one more way
    // there.
    const double readings = 4 * (double)m->tuning.ns_clock + (m->plan->has_remote ? WAY_NS : 0);
    m->tuning.measure_every =
        m->plan->times.longest_ticks * (int64_t)fmin(fmax(1000 * readings / mean, 1), 1000);
    if (m->plan->times.tick_count > 20 * m->tuning.at) { forget_first_ticks(m); }
    if (m->tuning.pool && m->plan->sys->run.threads == 0) {
        const double parallel =
            fmax(sum / m->tuning.threads_possible, most) + FORK_JOIN_NS * m->plan->phase_count;
        m->tuning.trial = parallel < 0.8 * sum ? 1 : 0;
        m->tuning.trial_begin = crdi_now_ns();
    }
}

// The same number of ticks without and with threads decides.
static void try_threads(crd_master* m)
{
    const int64_t now = crdi_now_ns(), spent = now - m->tuning.trial_begin;
    m->tuning.trial_begin = now;
    if (m->tuning.trial++ == 1) {
        m->tuning.trial_serial = spent;
        m->tuning.threads = m->tuning.threads_possible;
    } else {
        m->tuning.threads = spent < m->tuning.trial_serial ? m->tuning.threads_possible : 1;
        m->tuning.trial = 0;
    }
}

static void tune_next(crd_master* m)
{
    if (m->clock.n == 0) {
        m->tuning.measure = !m->plan->opt.no_statistics;
        m->tuning.at =
            m->plan->times.longest_ticks > FIRST_TICKS ? m->plan->times.longest_ticks : FIRST_TICKS;
        return;
    }
    if (m->tuning.measure_every == 0) {
        tune_learn(m);
        m->tuning.measure = false;
    } else if (m->tuning.trial) {
        try_threads(m);
    }
    if (m->tuning.trial) {
        m->tuning.measure = false;
        m->tuning.at = m->clock.n + TRIAL_TICKS;
        return;
    }
    if (m->plan->paced) { // who was slow has to be known whenever it matters
        m->tuning.measure = true;
        m->tuning.at = INT64_MAX;
        return;
    }
    // Now and then as many ticks in a row as the longest step has, so that every unit is met.
    m->tuning.measure = !m->tuning.measure && !m->plan->opt.no_statistics;
    m->tuning.at =
        m->clock.n + (m->tuning.measure ? m->plan->times.longest_ticks : m->tuning.measure_every);
}

void crdi_tuning_look(crd_master* m)
{
    tune_next(m);
    m->tuning.brief = m->lanes.brief && m->tuning.threads <= 1 && !m->tuning.measure && !m->live;
}

crd_status crdi_tuning_start(crd_master* m)
{
    int wanted = m->plan->sys->run.threads;
    int widest = 0;
    for (int i = 0; i < m->plan->phase_count; i++) {
        const int n = m->plan->phases[i].batch_count - m->plan->phases[i].pinned_count;
        widest = n > widest ? n : widest;
    }
    if (wanted == 0) { wanted = (int)sysconf(_SC_NPROCESSORS_ONLN); }
    if (wanted > widest) { wanted = widest; }
    if (wanted < 2 || (m->plan->sys->run.threads == 0 && m->plan->opt.no_statistics)) {
        return CRD_OK;
    }
    const crd_status st = crdi_pool_create(m, wanted - 1, &m->tuning.pool);
    if (st < 0) { return st; }
    m->tuning.threads_possible = 1 + crdi_pool_workers(m->tuning.pool); // fewer are no failure
    m->tuning.threads =
        m->plan->sys->run.threads == 0 ? 1 : m->tuning.threads_possible; // measured first, see tune
    return CRD_OK;
}

void crdi_tuning_set_priority(crd_master* m, int priority)
{
    if (m->tuning.pool) { crdi_pool_set_priority(m->tuning.pool, priority); }
}

// The least time between two readings of the clock.
static int64_t clock_cost(void)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < 32; i++) {
        const int64_t a = crdi_now_ns(), b = crdi_now_ns();
        least = b - a < least ? b - a : least;
    }
    return least;
}

void crdi_tuning_measure_clock(crd_master* m)
{
    m->tuning.ns_clock = clock_cost();
}

int64_t crdi_tuning_clock_cost(const crd_master* m)
{
    return m->tuning.ns_clock;
}

int crdi_tuning_threads(const crd_master* m)
{
    return m->tuning.threads;
}

void crdi_tuning_free(crd_master* m)
{
    crdi_pool_destroy(m->tuning.pool);
}

int crdi_tuning_running(const crd_master* m)
{
    return m->tuning.pool ? crdi_pool_running(m->tuning.pool) : -1;
}

// The run goes on elsewhere: what is measured next is looked for from there.
void crdi_tuning_restart(crd_master* m)
{
    if (m->tuning.at > m->clock.n) { m->tuning.at = m->clock.n; }
}
