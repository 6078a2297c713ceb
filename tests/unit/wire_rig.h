// A unit on a wire with one input and two outputs that a test looks at.
#pragma once
#include "unit/unit.h"
#include "unit_test.h"

typedef struct wire_rig {
    crd_unit* unit;
    crd_binding *in, *out;
} wire_rig;

static inline void wire_rig_begin(wire_rig* r, const char* input, const char* const outputs[2],
                                  double step)
{
    crd_unit* u = r->unit;
    const crd_experiment e = {.start = 0};
    int32_t in = u->ops->find(u, input);
    int32_t out[] = {u->ops->find(u, outputs[0]), u->ops->find(u, outputs[1])};
    check(in >= 0 && out[0] >= 0 && out[1] >= 0);
    check_ok(crd_binding_create(u, &in, 1, &r->in));
    check_ok(crd_binding_create(u, out, 2, &r->out));
    u->step = step;
    check_ok(crd_unit_instantiate(u));
    check_ok(u->ops->enter_initialization(u, &e));
    check_ok(u->ops->exit_initialization(u));
}

static inline crd_status wire_rig_step(wire_rig* r, double t, double h, double input, double out[2])
{
    crd_values in = {.real = &input}, got = {.real = out};
    check_ok(r->unit->ops->set(r->unit, r->in, &in));
    const crd_status st = r->unit->ops->step(r->unit, t, h);
    if (st >= 0) { check_ok(r->unit->ops->get(r->unit, r->out, &got)); }
    return st;
}

static inline crd_link_stats wire_rig_stats(const wire_rig* r)
{
    crd_link_stats l;
    check(r->unit->ops->remote->link(r->unit, &l));
    return l;
}

static inline void wire_rig_end(wire_rig* r)
{
    crd_binding_destroy(r->in);
    crd_binding_destroy(r->out);
    crd_unit_destroy(r->unit);
}
