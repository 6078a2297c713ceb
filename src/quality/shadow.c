// Errors that a loop would have at each level: shared/quality_shadow.h.
#include "shared/quality_shadow.h"

#include <math.h>
#include <string.h>

static const double KEEP = 0.98, UPWARDS = 0.25; // of mean squares, per step; half the error
static const double DAMPING = 0.8;               // part of hold's that a level has to have
static const double CLEARLY = 0.5;               // nearer to the exact system than hold
enum {
    YOUNG = 50,    // steps after the start, or a reset, until errors tell something
    AHEAD = 64,    // that a change is judged by
    HESITATES = 8, // until one that was no good is tried again
};
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
    double rho[CRDI_LEVELS], drift[CRDI_LEVELS], growth = 0, fastest = 0;
    crd_status st = crdi_macro_exact(&s->macro, &growth, &fastest);
    for (int l = 0; l < CRDI_LEVELS && st >= 0; l++) {
        crdi_macro_set_level(&s->macro, l);
        st = crdi_macro_ln_rho(&s->macro, &rho[l]);
        if (st >= 0) { st = crdi_macro_deviation(&s->macro, &drift[l]); }
    }
    if (st < 0) { return st; }
    const double limit = fmax(rho[0], growth * s->macro.tick);
    for (int l = 0; l < CRDI_LEVELS; l++) {
        s->allowed[l] = l == 0 || (drift[l] < CLEARLY * drift[0] &&
                                   rho[l] <= (limit < 0 ? DAMPING * limit : limit + 1e-6));
        s->decay[l] = fmin(0, fmax(limit, rho[l]));
    }
    s->first = 0;
    for (int l = 1; l < CRDI_LEVELS && fastest * s->macro.tick <= FASTEST; l++) {
        if (s->allowed[l] && drift[l] < CLEARLY * drift[s->first]) { s->first = l; }
    }
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
    CRD_TRY(crdi_macro_state_init(arena, &s->macro, &s->real));
    s->young = YOUNG;
fail:
    return st;
}

static double mean_square(const crdi_shadow* s, const crdi_macro_state* e, const double* scale)
{
    double sum = 0;
    for (int i = 0; i < s->macro.link_count; i++) {
        const double y = scale[i] * e->flows[i].end.y[0];
        sum += y * y;
    }
    return sum / s->macro.link_count;
}

void crdi_shadow_step(crdi_shadow* s, int level, bool used, const crd_poly* delta,
                      const double* scale)
{
    crdi_macro_set_level(&s->macro, level);
    crdi_macro_step(&s->macro, &s->error[level], delta);
    if (used) { crdi_macro_step(&s->macro, &s->real, delta); }
    s->young -= level == 0 && s->young > 0;
    s->J[level] = KEEP * s->J[level] + (1 - KEEP) * mean_square(s, &s->error[level], scale);
    if (!(s->J[level] < 1e300)) { s->allowed[level] = level == 0; } // it broke
}

// Mean square of what stays in the loop if it goes on at this level, beside the errors that it
// would have had at that level from the start: real - error moves freely, as both are driven by the
// same. Against what falls as slowly as the loop does, so that it counts while signals decay, too.
static double left_behind(crdi_shadow* s, int level, const double* scale)
{
    crdi_macro_state* e = &s->macro.own;
    double sum = 0;
    crdi_macro_set_level(&s->macro, level);
    for (int i = 0; i < s->macro.numbers; i++) {
        e->x[i] = s->real.x[i] - s->error[level].x[i];
    }
    for (int i = 0; i < s->macro.link_count; i++) {
        e->flows[i].past = s->real.flows[i].past;
        for (int j = 0; j < CRD_HISTORY; j++) {
            for (int d = 0; d < 3; d++) {
                e->flows[i].past.sample[j].y[d] -= s->error[level].flows[i].past.sample[j].y[d];
            }
        }
    }
    for (int k = 1; k <= AHEAD; k++) {
        crdi_macro_step(&s->macro, e, NULL);
        sum += exp(-2 * s->decay[level] * k) * mean_square(s, e, scale);
    }
    return sum / AHEAD;
}

int crdi_shadow_choose(crdi_shadow* s, int now, bool rough, const double* scale)
{
    if (!s->allowed[now]) { return 0; }
    if (s->young > 0) { return now; }
    int best = now;
    for (int l = 0; l < CRDI_LEVELS; l++) {
        const double least = l < now ? 1 : UPWARDS;
        if (l != now && s->allowed[l] && s->J[l] < least * s->J[now] && s->J[l] < s->J[best]) {
            best = l;
        }
    }
    const double enough = rough ? UPWARDS : 1;
    if (s->J[best] > enough * s->J[0]) { best = 0; }
    if (best == now) { return now; }
    const double stays = s->J[now] + left_behind(s, now, scale);
    const double moves = s->J[best] + left_behind(s, best, scale);
    if (moves < (best > now ? UPWARDS : 1) * stays) { return best; }
    s->young = HESITATES;
    return now;
}

bool crdi_shadow_sure(const crdi_shadow* s, int now)
{
    return now == 0 || s->J[now] <= UPWARDS * s->J[0];
}

void crdi_shadow_reset(crdi_shadow* s)
{
    for (int l = 0; l <= CRDI_LEVELS; l++) {
        crdi_macro_state* e = l < CRDI_LEVELS ? &s->error[l] : &s->real;
        memset(e->x, 0, (size_t)s->macro.numbers * sizeof *e->x);
        for (int i = 0; i < s->macro.link_count; i++) {
            e->flows[i] = (crdi_macro_flow){.taps = e->flows[i].taps};
        }
    }
    memset(s->J, 0, sizeof s->J);
    s->steps = 0;
    s->young = YOUNG;
}
