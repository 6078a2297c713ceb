// Lanes: units that take their values, advance and give their values in one call for many.
#include "master/master.h"

// How many lanes of a phase, from each on, share their function.
static void count_rows(crd_master* m)
{
    for (int i = 0; i < m->plan->phase_count; i++) {
        const crdi_phase* p = &m->plan->phases[i];
        const int last = p->batch_first + p->batch_count - 1;
        for (int k = last; k >= p->batch_first; k--) {
            const bool same = k < last && m->lanes.advance[k] == m->lanes.advance[k + 1];
            m->lanes.rows[k] = same ? m->lanes.rows[k + 1] + 1 : 1;
        }
    }
}

// A member may take the short way if it has no derivatives to set or to give, and is shown nothing
// at the end of its step.
crd_status crdi_lanes_plan(crd_master* m)
{
    const size_t n = (size_t)m->plan->member_count;
    char* room = crdi_arena_new(&m->arena, n + 1, sizeof *m->lanes.lanes);
    m->lanes.room = room;
    m->lanes.advance = crdi_arena_new(&m->arena, n, sizeof *m->lanes.advance);
    m->lanes.rows = crdi_arena_new(&m->arena, n, sizeof *m->lanes.rows);
    if (!room || !m->lanes.advance || !m->lanes.rows) { return CRD_E_MEMORY; }
    enum { CACHE_LINE = 64 };
    m->lanes.lanes = (crd_lane*)(room + (CACHE_LINE - (uintptr_t)room % CACHE_LINE) % CACHE_LINE);
    for (int i = 0; i < m->plan->member_count; i++) {
        crdi_member* p = &m->plan->members[m->plan->batch[i]];
        const bool plain =
            !p->rates[0] && !p->shown && !p->middles && !m->plan->controlled && !m->plan->iterated;
        const bool brief = !p->slope_order && (!p->feeds_flow || plain) && !p->async && !p->ports;
        if (brief && CRDI_UNIT_HAS(p->unit, lane, join)) {
            m->lanes.advance[i] =
                p->unit->ops->lane->join(p->unit, m->plan->batch[i], p->in, &p->inputs, p->out,
                                         &p->outputs, &m->lanes.lanes[i]);
        }
    }
    count_rows(m);
    m->lanes.brief = !m->plan->times.multirate && !m->plan->iterated && !m->plan->has_remote;
    for (int i = 0; i < m->plan->phase_count; i++) {
        m->lanes.brief = m->lanes.brief && !m->plan->phases[i].async_count;
    }
    return CRD_OK;
}

void* crdi_lanes_room(const crd_master* m, size_t* size)
{
    *size = ((size_t)m->plan->member_count + 1) * sizeof *m->lanes.lanes;
    return m->lanes.room;
}
