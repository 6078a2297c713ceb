// What the own solver of a unit misses in a step (solving.h).
#include "master/verdict/solving.h"
#include "shared/unit.h"

#include <math.h>
#include <string.h>

// Of the numbers that x' is the sum of. Derivatives that an FMU makes of differences differ by
// more.
static const double same = 1e-8;
// What a solver misses is much less than what it does, and comes with every step: more than that,
// or so much more than ever before, is an event.
enum {
    BEGINNING = 20,
    SETTLED = 64,      // steps after which a unit that misses nothing is looked at ...
    NOW_AND_THEN = 32, // ... in two of so many
    MOST_STATES = 24,  // more would cost more than the start
};
static const double much = 0.5, sudden = 1000, rounding = 1e-9;

static bool is_scalar(const crd_unit* u, int32_t variable)
{
    return u->info.variables[variable].size == 1;
}

// States, derivatives and inputs as one binding. false: something of them is an array, or missing.
static crd_status bind_all(crd_arena* arena, const crd_unit_port* inputs, crdi_solving* s)
{
    const int32_t *states = NULL, *derivatives = NULL;
    const int n = s->linear->states, q = s->linear->inputs;
    if (crdi_unit_states(s->unit, arena, &states, &derivatives) != n || n == 0) { return CRD_OK; }
    int32_t* list = crdi_arena_new(arena, 2 * (size_t)n + (size_t)q, sizeof *list);
    if (!list) { return CRD_E_MEMORY; }
    bool scalar = true;
    for (int i = 0; i < 2 * n + q; i++) {
        list[i] = i < n ? states[i] : i < 2 * n ? derivatives[i - n] : inputs[i - 2 * n].variable;
        scalar = scalar && is_scalar(s->unit, list[i]);
    }
    if (!scalar) { return CRD_OK; }
    crd_status st = crd_binding_create(s->unit, list, 2 * n + q, &s->binding);
    if (st >= 0) { st = crdi_values_create(arena, s->binding, &s->values); }
    s->known = st >= 0 && s->binding->real_count == 2 * n + q;
    return st;
}

static crd_status discretise(crd_arena* arena, double h, crdi_solving* s)
{
    const int n = s->linear->states, q = s->linear->inputs, all = n + q;
    double* b = crdi_arena_new(arena, (size_t)n * (size_t)all, sizeof *b);
    crdi_macro* m = crdi_arena_new(arena, 1, sizeof *m);
    if (!b || !m) { return CRD_E_MEMORY; }
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < q; j++) {
            b[i * all + j] = s->linear->B[i * q + j];
        }
        b[i * all + q + i] = 1;
    }
    s->exact = (crdi_macro_unit){.states = n, .inputs = all, .A = s->linear->A, .B = b, .ticks = 1};
    *m = (crdi_macro){.tick = h, .unit_count = 1, .units = &s->exact};
    const crd_status st = crdi_macro_init(arena, m);
    if (st == CRD_E_RANGE) { s->known = false; }
    return st == CRD_E_RANGE ? CRD_OK : st;
}

crd_status crdi_solving_init(crd_arena* arena, crd_unit* u, const crd_unit_port* inputs,
                             const crd_linearised* l, double h, crdi_solving* s)
{
    crd_status st = CRD_OK;
    const size_t n = (size_t)l->states;
    *s = (crdi_solving){.unit = u, .linear = l};
    s->missed = crdi_arena_new(arena, n, sizeof *s->missed);
    s->x = crdi_arena_new(arena, n, sizeof *s->x);
    s->d = crdi_arena_new(arena, n, sizeof *s->d);
    s->widest = crdi_arena_new(arena, n, sizeof *s->widest);
    s->largest = crdi_arena_new(arena, n, sizeof *s->largest);
    if (!s->missed || !s->x || !s->d || !s->widest || !s->largest) { return CRD_E_MEMORY; }
    if (!l->exact || l->guessed || l->states > MOST_STATES) { return CRD_OK; }
    st = bind_all(arena, inputs, s);
    if (st >= 0 && s->known) { st = discretise(arena, h, s); }
    return st;
}

void crdi_solving_clear(crdi_solving* s)
{
    crd_binding_destroy(s->binding);
    s->binding = NULL;
}

// x' - A x - B u, and whether it is what it was.
static bool is_constant(crdi_solving* s, const double* x, const double* rate, const double* u)
{
    const crd_linearised* l = s->linear;
    bool same_as_before = true;
    for (int i = 0; i < l->states; i++) {
        double d = rate[i], size = fabs(rate[i]);
        for (int j = 0; j < l->states; j++) {
            d -= l->A[i * l->states + j] * x[j];
            size += fabs(l->A[i * l->states + j] * x[j]);
        }
        for (int j = 0; j < l->inputs; j++) {
            d -= l->B[i * l->inputs + j] * u[j];
            size += fabs(l->B[i * l->inputs + j] * u[j]);
        }
        if (!s->begun) { s->d[i] = fabs(d) <= same * size ? 0 : d; }
        same_as_before = same_as_before && fabs(d - s->d[i]) <= same * size;
    }
    return same_as_before;
}

static void compare(crdi_solving* s, const double* x, const double* given)
{
    const crdi_macro_unit* e = &s->exact;
    const int n = e->states, q = s->linear->inputs, all = e->inputs;
    for (int i = 0; i < n; i++) {
        double at = x[i];
        for (int j = 0; j < n; j++) {
            at -= e->phi[i * n + j] * s->x[j] + e->gamma[i * all + q + j] * s->d[j];
        }
        for (int k = 0; k < 3; k++) {
            for (int j = 0; j < q; j++) {
                at -= e->gamma[(k * n + i) * all + j] * given[3 * j + k];
            }
        }
        s->missed[i] = at;
    }
}

double crdi_solving_input(const crdi_solving* s, int input)
{
    return s->values.real[2 * s->linear->states + input];
}

// A beginning is needed for what is usual: a mass at rest moves by h^2 in its first step.
static bool is_event(crdi_solving* s, const double* x)
{
    double part = 0;
    for (int i = 0; i < s->linear->states; i++) {
        s->widest[i] = fmax(s->widest[i], fabs(x[i] - s->x[i]));
        s->largest[i] = fmax(s->largest[i], fabs(s->missed[i]));
        const double of = s->count < BEGINNING ? s->largest[i] : fabs(s->missed[i]);
        if (s->widest[i] > 0) { part = fmax(part, of / s->widest[i]); }
        if (s->count >= BEGINNING && s->largest[i] > much * s->widest[i]) { return true; }
    }
    const bool jumped = s->count >= BEGINNING && part > sudden * fmax(s->most, rounding);
    s->most = s->count < BEGINNING ? part : fmax(s->most, part);
    s->count++;
    return jumped || s->unit->events != s->events;
}

bool crdi_solving_rests(const crdi_solving* s)
{
    return s->rest > 1; // two steps in a row tell what the second has missed
}

void crdi_solving_step(crdi_solving* s, const double* given)
{
    const int n = s->linear->states;
    const double* x = s->values.real;
    memset(s->missed, 0, (size_t)n * sizeof *s->missed);
    const bool settled = s->count >= SETTLED && s->most <= rounding;
    s->rest = settled ? (s->rest + 1) % NOW_AND_THEN : 0;
    if (crdi_solving_rests(s)) {
        s->fresh = false;
        return;
    }
    s->known = s->unit->ops->get(s->unit, s->binding, &s->values) == CRD_OK &&
               is_constant(s, x, x + n, x + 2 * n);
    if (s->known && s->fresh && given) {
        compare(s, x, given);
        s->known = !is_event(s, x);
    }
    if (!s->known) { memset(s->missed, 0, (size_t)n * sizeof *s->missed); }
    memcpy(s->x, x, (size_t)n * sizeof *x);
    s->events = s->unit->events;
    s->begun = s->fresh = true;
}
