// Errors that a loop would have at each level: shared/quality_shadow.h.
#include "shared/quality_shadow.h"

#include <math.h>
#include <string.h>

static const double KEEP = 0.98, UPWARDS = 0.25; // of mean squares, per step; half the error
// One after the other, errors of hold cancel in part, and a change of level leaves what did.
static const double SEQUENTIAL = 0.16;
static const double DAMPING = 0.8; // part of hold's that a level has to have
enum { YOUNG = 50 };               // steps after a reset until errors tell something
static const double FASTEST = 0.5; // |lambda| H up to which the first order begins

static const double* copied(crd_arena* arena, const double* x, int rows, int columns)
{
    const size_t n = (size_t)rows * (size_t)columns;
    double* to = crdi_arena_new(arena, n, sizeof *to);
    if (to && n) { memcpy(to, x, n * sizeof *to); }
    return to;
}

static crd_status copy_macro(crd_arena* arena, const crdi_macro* of, crdi_macro* to)
{
    *to = (crdi_macro){.tick = of->tick,
                       .unit_count = of->unit_count,
                       .link_count = of->link_count,
                       .order = of->order,
                       .refresh_count = of->refresh_count};
    to->units = crdi_arena_new(arena, (size_t)of->unit_count, sizeof *to->units);
    to->links = crdi_arena_new(arena, (size_t)of->link_count, sizeof *to->links);
    if (!to->units || !to->links) { return CRD_E_MEMORY; }
    memcpy(to->links, of->links, (size_t)of->link_count * sizeof *to->links);
    for (int i = 0; i < of->unit_count; i++) {
        crdi_macro_unit* u = &to->units[i];
        *u = of->units[i];
        u->A = copied(arena, u->A, u->states, u->states);
        u->B = copied(arena, u->B, u->states, u->inputs);
        u->C = copied(arena, u->C, u->outputs, u->states);
        u->D = copied(arena, u->D, u->outputs, u->inputs);
        if (!u->A || !u->B || !u->C || !u->D) { return CRD_E_MEMORY; }
    }
    return crdi_macro_init(arena, to);
}

// A level is allowed if its map falls nearly as fast as that of hold, or as the exact system.
static crd_status find_allowed(crdi_shadow* s)
{
    double rho[CRDI_LEVELS], growth = 0, fastest = 0;
    crd_status st = crdi_macro_exact(&s->macro, &growth, &fastest);
    for (int l = 0; l < CRDI_LEVELS && st >= 0; l++) {
        crdi_macro_set_level(&s->macro, l);
        st = crdi_macro_ln_rho(&s->macro, &rho[l]);
    }
    if (st < 0) { return st; }
    const double limit = fmax(rho[0], growth * s->macro.tick);
    for (int l = 0; l < CRDI_LEVELS; l++) {
        s->allowed[l] = l == 0 || rho[l] <= (limit < 0 ? DAMPING * limit : limit + 1e-6);
    }
    s->first = s->allowed[1] && fastest * s->macro.tick <= FASTEST;
    return CRD_OK;
}

crd_status crdi_shadow_init(crd_arena* arena, const crdi_macro* of, crdi_shadow* s)
{
    crd_status st = CRD_OK;
    *s = (crdi_shadow){0};
    CRD_TRY(copy_macro(arena, of, &s->macro));
    CRD_TRY(find_allowed(s));
    for (int l = 0; l < CRDI_LEVELS; l++) {
        CRD_TRY(crdi_macro_state_init(arena, &s->macro, &s->error[l]));
    }
fail:
    return st;
}

void crdi_shadow_step(crdi_shadow* s, int level, const crd_poly* delta, const double* scale)
{
    crdi_macro_state* e = &s->error[level];
    double sum = 0;
    crdi_macro_set_level(&s->macro, level);
    crdi_macro_step(&s->macro, e, delta);
    for (int i = 0; i < s->macro.link_count; i++) {
        const double y = scale[i] * e->flows[i].end.y[0];
        sum += y * y;
    }
    s->young -= level == 0 && s->young > 0;
    sum *= (1 - KEEP) / s->macro.link_count;
    s->J[level] = KEEP * s->J[level] + sum;
    if (!(s->J[level] < 1e300)) { s->allowed[level] = level == 0; } // it broke
}

int crdi_shadow_choose(const crdi_shadow* s, int now, bool rough)
{
    if (s->young > 0) { return s->allowed[now] ? now : 0; }
    int best = s->allowed[now] ? now : 0;
    const double present = s->J[best];
    for (int l = 0; l < CRDI_LEVELS; l++) {
        const double least = l < now ? 1 : UPWARDS;
        if (l != now && s->allowed[l] && s->J[l] < least * present && s->J[l] < s->J[best]) {
            best = l;
        }
    }
    const double enough = s->macro.phases > 1 ? SEQUENTIAL : rough ? UPWARDS : 1;
    return s->J[best] <= enough * s->J[0] ? best : 0;
}

void crdi_shadow_reset(crdi_shadow* s)
{
    for (int l = 0; l < CRDI_LEVELS; l++) {
        crdi_macro_state* e = &s->error[l];
        memset(e->x, 0, (size_t)s->macro.states * sizeof *e->x);
        for (int i = 0; i < s->macro.link_count; i++) {
            e->flows[i] = (crdi_macro_flow){.taps = e->flows[i].taps};
        }
        s->J[l] = 0;
    }
    s->steps = 0;
    s->young = YOUNG;
}
