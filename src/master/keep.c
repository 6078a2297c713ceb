// Steps that are taken back: what the units were and gave at the beginning of the step.
#include "master/master.h"

#include <string.h>

static bool can_save(const crdi_member* p)
{
    return p->unit->info.flags & CRD_UNIT_CAN_SAVE;
}

crd_status crdi_master_plan_keep(crd_master* m)
{
    if (!m->rolls_back) { return CRD_OK; }
    m->kept = crdi_arena_new(&m->arena, m->output_count, sizeof *m->kept);
    return m->kept ? CRD_OK : CRD_E_MEMORY;
}

// A failure of a unit is its own; what it says is worded by the caller's caller.
static crd_status call(crd_master* m, int member, crd_status (*function)(crdi_member* p))
{
    m->running = member;
    const crd_status st = function(&m->members[member]);
    m->running = -1;
    return st < 0 ? crdi_member_failed(m, member, st) : CRD_OK;
}

static crd_status save(crdi_member* p)
{
    return p->unit->ops->state->save(p->unit, &p->state);
}

static crd_status restore(crdi_member* p)
{
    crd_status st = p->unit->ops->state->restore(p->unit, p->state);
    if (st >= 0 && p->out && (p->out->integer_count || p->out->bytes_count)) {
        st = p->unit->ops->get(p->unit, p->out, &p->outputs);
    }
    return st;
}

crd_status crdi_master_keep(crd_master* m)
{
    crd_status st = CRD_OK;
    for (int i = 0; i < m->member_count; i++) {
        if (can_save(&m->members[i])) { CRD_TRY(call(m, i, save)); }
    }
    memcpy(m->kept, m->outputs, m->output_count * sizeof *m->kept);
fail:
    return st;
}

crd_status crdi_master_bring_back(crd_master* m)
{
    crd_status st = CRD_OK;
    for (int i = 0; i < m->member_count; i++) {
        crdi_member* p = &m->members[i];
        if (!can_save(p)) { continue; }
        CRD_TRY(call(m, i, restore));
        p->stamp = m->n;
        p->unit->events = p->events;
        if (!p->out) { continue; }
        memcpy(p->outputs.real, m->kept + (p->outputs.real - m->outputs),
               (size_t)p->out->real_count * sizeof *m->kept);
    }
fail:
    return st;
}

void crdi_master_free_kept(crd_master* m)
{
    for (int i = 0; i < m->member_count; i++) {
        crdi_member* p = &m->members[i];
        if (p->state && !p->crashed) { p->unit->ops->state->free(p->unit, &p->state); }
    }
}
