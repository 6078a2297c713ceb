// Steps that are taken back: what the units were and gave at the beginning of the step.
#include "master/master.h"

#include <string.h>

crd_status crdi_rollback_plan(crd_master* m)
{
    if (!m->plan->rolls_back) { return CRD_OK; }
    m->rollback = crdi_arena_new(&m->arena, m->plan->output_count, sizeof *m->rollback);
    return m->rollback ? CRD_OK : CRD_E_MEMORY;
}

// A failure of a unit is its own; what it says is worded by the caller's caller.
static crd_status rollback_call(crd_master* m, int member, crd_status (*function)(crdi_member* p))
{
    m->running = member;
    return crdi_member_left(m, member, function(&m->plan->members[member]));
}

static crd_status save_state(crdi_member* p)
{
    return p->unit->ops->state->save(p->unit, &p->run->state);
}

static crd_status restore_state(crdi_member* p)
{
    crd_status st = p->unit->ops->state->restore(p->unit, p->run->state);
    if (st >= 0 && p->out && (p->out->integer_count || p->out->bytes_count)) {
        st = p->unit->ops->get(p->unit, p->out, &p->outputs);
    }
    return st;
}

crd_status crdi_rollback_save(crd_master* m)
{
    crd_status st = CRD_OK;
    for (int i = 0; i < m->plan->member_count; i++) {
        if (crdi_member_saves(&m->plan->members[i])) { CRD_TRY(rollback_call(m, i, save_state)); }
    }
    memcpy(m->rollback, m->plan->outputs, m->plan->output_count * sizeof *m->rollback);
fail:
    return st;
}

crd_status crdi_rollback_restore(crd_master* m)
{
    crd_status st = CRD_OK;
    for (int i = 0; i < m->plan->member_count; i++) {
        crdi_member* p = &m->plan->members[i];
        if (!crdi_member_saves(p)) { continue; }
        CRD_TRY(rollback_call(m, i, restore_state));
        p->run->stamp = m->clock.n;
        p->unit->events = p->run->events;
        if (!p->out) { continue; }
        memcpy(p->outputs.real, m->rollback + (p->outputs.real - m->plan->outputs),
               (size_t)p->out->real_count * sizeof *m->rollback);
    }
fail:
    return st;
}

void crdi_rollback_free(const crdi_member* p)
{
    if (p->run->state && !p->run->crashed) { p->unit->ops->state->free(p->unit, &p->run->state); }
}
