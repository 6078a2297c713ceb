// The reference form as a form.
#include "circuit/dae.h"
#include "shared/base.h"

#include <string.h>

static crd_status make_newton(crdi_dae* d)
{
    const size_t s = (size_t)d->stages, count = s * d->j.count + s * s * d->a.count;
    int32_t* place = crdi_new_array(d->c->ctx, 2 * count, sizeof *place);
    d->newton_values = crdi_arena_new(&d->arena, count, sizeof *d->newton_values);
    if (!place) { return CRD_E_MEMORY; }
    int32_t *row = place, *column = place + count;
    for (int32_t i = 0; i < d->stages; i++) { // the order of assemble() in dae_step.c
        for (size_t k = 0; k < d->j.count; k++) {
            *row++ = i * d->n + d->j.row[k];
            *column++ = i * d->n + d->j.column[k];
        }
    }
    for (int32_t i = 0; i < d->stages; i++) {
        for (int32_t j = 0; j < d->stages; j++) {
            for (size_t k = 0; k < d->a.count; k++) {
                *row++ = i * d->n + d->m + d->a.row[k];
                *column++ = j * d->n + d->a.column[k];
            }
        }
    }
    const crd_status st =
        crdi_sparse_init(&d->newton, &d->arena, d->stages * d->n, count, place, place + count);
    crd_free(d->c->ctx, place);
    return st;
}

static void dae_destroy(crd_circuit* c, void* self)
{
    crdi_dae* d = self;
    if (!d) { return; }
    crdi_dae_stacks_clear(d);
    crdi_sparse_clear(&d->newton);
    crd_arena_clear(&d->arena);
    crd_free(c->ctx, d);
}

static crd_status dae_create(crd_circuit* c, void** self)
{
    crdi_dae* d = crdi_new(c->ctx, sizeof *d);
    crd_status st = CRD_OK;
    if (!d) { return CRD_E_MEMORY; }
    d->c = c;
    crd_arena_init(&d->arena, c->ctx);
    if (c->opt.method >= CRD_METHOD_GAUSS2) { CRD_TRY(crdi_circuit_smooth(c->ctx, c->n)); }
    CRD_TRY(crdi_dae_methods(d));
    CRD_TRY(crdi_dae_layout(d));
    CRD_TRY(make_newton(d));
    if (!d->linear) { d->newton.growth = 1e-10; } // what a solution lacks the next iteration mends
    CRD_TRY(crdi_dae_solvable(d));
    CRD_TRY(crdi_dae_stacks(d));
    *self = d;
    return CRD_OK;
fail:
    dae_destroy(c, d);
    return st;
}

static void structure(const crd_circuit* c, crd_circuit_structure* out)
{
    const crdi_dae* d = c->self;
    out->variables = d->n;
    out->constraints = d->m;
    out->differential = d->p;
    const klu_numeric* k = d->newton.numeric;
    out->nonzeros = k ? (int64_t)k->lnz + k->unz : 0;
    out->ports = d->diodes;
}

static double voltage(const crd_circuit* c, int32_t node)
{
    return ((const crdi_dae*)c->self)->x[0][node];
}

static double current(const crd_circuit* c, int32_t part)
{
    const crdi_dae* d = c->self;
    return d->x[0][d->part[part].current];
}

static void states(const crd_circuit* c, double* out)
{
    const crdi_dae* d = c->self;
    for (int32_t i = 0; i < c->n->part_count; i++) {
        const crd_part* p = &c->n->parts[i];
        const crdi_part_store stores = crdi_part_kind_of(p)->stores;
        if (stores == CRDI_STORES_VOLTAGE) {
            *out++ = d->x[0][p->nodes[0]] - d->x[0][p->nodes[1]];
        } else if (stores == CRDI_STORES_CURRENT) {
            *out++ = d->x[0][d->part[i].current];
        }
    }
}

// Factors are made when the next step finds that it needs others.
static crd_status restep(crd_circuit* c, double step)
{
    crdi_dae* d = c->self;
    if (c->since == 0) { // what never was a history has no times
        d->age[0] = step;
        d->age[1] = 2 * step;
    }
    return CRD_OK;
}

static void restart(crd_circuit* c)
{
    crdi_dae* d = c->self;
    crdi_dae_flatten(d);
    if (crdi_dae_switch(d, d->x[0])) { d->factored = d->projected = false; }
}

static size_t dae_state_size(const crd_circuit* c)
{
    return ((const crdi_dae*)c->self)->state_count * sizeof(double);
}

static void save(const crd_circuit* c, void* state)
{
    memcpy(state, ((const crdi_dae*)c->self)->state, dae_state_size(c));
}

static void restore(crd_circuit* c, const void* state)
{
    crdi_dae* d = c->self;
    const size_t before = (size_t)(d->closed - d->state) * sizeof(double);
    if (memcmp(d->closed, (const char*)state + before, dae_state_size(c) - before) != 0) {
        d->factored = d->projected = false; // switches stood elsewhere
    }
    memcpy(d->state, state, dae_state_size(c));
}

const crdi_form crdi_form_dae = {
    .name = "dae",
    .create = dae_create,
    .destroy = dae_destroy,
    .structure = structure,
    .begin = crdi_dae_begin,
    .step = crdi_dae_step,
    .voltage = voltage,
    .current = current,
    .states = states,
    .restep = restep,
    .restart = restart,
    .state_size = dae_state_size,
    .save = save,
    .restore = restore,
};
