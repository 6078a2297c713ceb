// Linearised units (models.h).
#include "master/master.h"

#include <string.h>

static bool models_is_port(const crd_master* m, int member, int32_t variable)
{
    const crd_variable* v = &m->plan->members[member].unit->info.variables[variable];
    return v->type == CRD_FLOAT64 && v->variability == CRD_CONTINUOUS;
}

static int find_slot(const int* slots, int count, int slot)
{
    int i = 0;
    while (i < count && slots[i] != slot) {
        i++;
    }
    return i < count ? i : -1;
}

int crdi_models_input(const crdi_model* p, int slot)
{
    return find_slot(p->in_slot, p->in_count, slot);
}

int crdi_models_output(const crdi_model* p, int slot)
{
    return find_slot(p->out_slot, p->out_count, slot);
}

// Connections are sorted by target: inputs stand in their order. Outputs as connections use them.
static crd_status find_ports(crd_master* m, int member, crdi_model* p)
{
    const crdi_plan* plan = m->plan;
    const int *in = plan->into_first + member, *out = plan->out_of_first + member;
    const size_t ins = (size_t)(in[1] - in[0]), outs = (size_t)(out[1] - out[0]);
    p->in = crdi_arena_new(&m->arena, ins, sizeof *p->in);
    p->out = crdi_arena_new(&m->arena, outs, sizeof *p->out);
    p->in_slot = crdi_arena_new(&m->arena, ins, sizeof *p->in_slot);
    p->out_slot = crdi_arena_new(&m->arena, outs, sizeof *p->out_slot);
    if (!p->in || !p->out || !p->in_slot || !p->out_slot) { return CRD_E_MEMORY; }
    for (int i = in[0]; i < in[1]; i++) {
        const crdi_connection* k = &plan->connections[plan->into[i]];
        if (!k->curve || k->mapping) { continue; }
        p->in_slot[p->in_count] = k->to.slot;
        p->in[p->in_count++] = (crd_unit_port){k->to.variable, k->to.element};
    }
    for (int i = out[0]; i < out[1]; i++) {
        const crdi_connection* k = &plan->connections[plan->out_of[i]];
        if (!models_is_port(m, member, k->from.variable) ||
            find_slot(p->out_slot, p->out_count, k->from.slot) >= 0) {
            continue;
        }
        p->out_slot[p->out_count] = k->from.slot;
        p->out[p->out_count++] = (crd_unit_port){k->from.variable, k->from.element};
    }
    return CRD_OK;
}

static crd_status ask_unit(crd_master* m, int member, const crdi_model* p, crd_linearised* out)
{
    m->running = member;
    const crd_status st = crd_unit_linearise(m->plan->members[member].unit, p->in, p->in_count,
                                             p->out, p->out_count, out);
    m->running = -1;
    return st;
}

static crd_status ask_first(crd_master* m, int member, crdi_model* p)
{
    const crd_unit* u = m->plan->members[member].unit;
    crd_status st = find_ports(m, member, p);
    if (st < 0) { return st; }
    p->asked = true;
    st = ask_unit(m, member, p, &p->linear);
    if (st == CRD_E_MEMORY) { return crdi_fail(m->ctx, st, "out of memory"); }
    p->status = st;
    if (st == CRD_OK && !p->linear.guessed) { return CRD_OK; }
    p->why = st == CRD_OK              ? "does not tell its states"
             : st == CRD_E_UNSUPPORTED ? "gives no derivatives"
                                       : crdi_arena_format(&m->arena, "could not be linearised, %s",
                                                           crd_error_text(u->ctx));
    if (st == CRD_OK) { crd_linearised_clear(&p->linear); }
    p->status = st < 0 ? st : CRD_E_UNSUPPORTED;
    return p->why ? CRD_OK : CRD_E_MEMORY;
}

crd_status crdi_models_get(crd_master* m, int member, const crdi_model** out)
{
    if (!m->models.of) {
        m->models.of =
            crdi_arena_new(&m->arena, (size_t)m->plan->member_count, sizeof *m->models.of);
        if (!m->models.of) { return CRD_E_MEMORY; }
    }
    crdi_model* p = &m->models.of[member];
    *out = p;
    return p->asked ? CRD_OK : ask_first(m, member, p);
}

static void take_numbers(double* to, const double* from, size_t count)
{
    if (count > 0) { memcpy(to, from, count * sizeof *to); }
}

bool crdi_models_ask_again(crd_master* m, int member)
{
    crdi_model* p = &m->models.of[member];
    crd_linearised l = {0};
    if (p->status < 0 || m->plan->members[member].async || ask_unit(m, member, p, &l) < 0) {
        return false;
    }
    const bool same = l.states == p->linear.states;
    if (same) { // where they stand: maps look at them
        const size_t n = (size_t)l.states, q = (size_t)l.inputs, r = (size_t)l.outputs;
        take_numbers(p->linear.A, l.A, n * n);
        take_numbers(p->linear.B, l.B, n * q);
        take_numbers(p->linear.C, l.C, r * n);
        take_numbers(p->linear.D, l.D, r * q);
    }
    crd_linearised_clear(&l);
    return same;
}

void crdi_models_free(crd_master* m)
{
    for (int i = 0; m->models.of && i < m->plan->member_count; i++) {
        if (m->models.of[i].asked && m->models.of[i].status >= 0) {
            crd_linearised_clear(&m->models.of[i].linear);
        }
        m->models.of[i] = (crdi_model){0};
    }
}

const crd_linearised* crdi_models_known(const crd_master* m, int member)
{
    const crdi_model* p = m->models.of ? &m->models.of[member] : NULL;
    return p && p->asked && p->status >= 0 ? &p->linear : NULL;
}
