// What the run learns about itself: how long the units take, and whether threads pay.
#include "master/master.h"

#include <math.h>

enum { FIRST_TICKS = 16, TRIAL_TICKS = 32, FORK_JOIN_NS = 3000 };

// The first ticks find cold caches: they are not typical of a long run.
static void forget_first_ticks(crd_master* m)
{
    for (int i = 0; i < m->member_count; i++) {
        crdi_member* p = &m->members[i];
        p->measured = p->ns_set = p->ns_step = p->ns_get = 0;
    }
}

// After the first ticks the cost of the units is known: measure so seldom that the clock costs a
// thousandth (more for units faster than the clock), and try threads if they may pay.
static void learn(crd_master* m)
{
    double sum = 0, most = 0;
    for (int i = 0; i < m->member_count; i++) {
        const crdi_member* p = &m->members[i];
        if (!p->measured || p->async) { continue; }
        const double ns = (double)(p->ns_set + p->ns_step + p->ns_get) / (double)p->measured;
        sum += ns;
        most = fmax(most, ns);
    }
    const double mean = fmax(sum / m->member_count, 1);
    const double readings = 4 * (double)m->ns_clock; // of one measured step
    m->measure_every = m->longest_ticks * (int64_t)fmin(fmax(1000 * readings / mean, 1), 1000);
    if (m->tick_count > 20 * m->tune_at) { forget_first_ticks(m); }
    if (m->pool && m->sys->run.threads == 0) {
        const double parallel =
            fmax(sum / m->threads_possible, most) + FORK_JOIN_NS * m->phase_count;
        m->trial = parallel < 0.8 * sum ? 1 : 0;
        m->trial_begin = crdi_now_ns();
    }
}

// The same number of ticks without and with threads decides.
static void try_threads(crd_master* m)
{
    const int64_t now = crdi_now_ns(), spent = now - m->trial_begin;
    m->trial_begin = now;
    if (m->trial++ == 1) {
        m->trial_serial = spent;
        m->threads = m->threads_possible;
    } else {
        m->threads = spent < m->trial_serial ? m->threads_possible : 1;
        m->trial = 0;
    }
}

void crdi_master_tune(crd_master* m)
{
    if (m->n == 0) {
        m->measure = !m->opt.no_statistics;
        m->tune_at = m->longest_ticks > FIRST_TICKS ? m->longest_ticks : FIRST_TICKS;
        return;
    }
    if (m->measure_every == 0) {
        learn(m);
        m->measure = false;
    } else if (m->trial) {
        try_threads(m);
    }
    if (m->trial) {
        m->measure = false;
        m->tune_at = m->n + TRIAL_TICKS;
        return;
    }
    if (m->paced) { // who was slow has to be known whenever it matters
        m->measure = true;
        m->tune_at = INT64_MAX;
        return;
    }
    // Now and then as many ticks in a row as the longest step has, so that every unit is met.
    m->measure = !m->measure && !m->opt.no_statistics;
    m->tune_at = m->n + (m->measure ? m->longest_ticks : m->measure_every);
}
