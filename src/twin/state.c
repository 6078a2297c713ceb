// Save and restore: everything that steps change, as bytes.
#include "twin/twin.h"

#include <math.h>
#include <string.h>

typedef struct head {
    double t0, h;
    int64_t steps, still, silent, resets, frozen, begun;
} head;

typedef struct sensor_part {
    double variance, last, jitter, refused;
    int64_t repeats;
    crd_twin_sensor_state now;
} sensor_part;

// The arrays in their order; `to` NULL: only the size.
typedef struct array {
    double* at;
    size_t count;
} array;

enum { ARRAYS = 10 };

static void list(const crd_twin* w, array out[ARRAYS])
{
    const size_t n = (size_t)w->n;
    double *x, *covariance;
    size_t m;
    crdi_thesis_keep(w, &x, &m, &covariance);
    const array all[ARRAYS] = {{w->q, n},
                               {w->p_now.u, n * n},
                               {w->p_now.d, n},
                               {w->v0, (size_t)w->r},
                               {w->v1, (size_t)w->r},
                               {w->inputs, (size_t)w->net->input_count},
                               {w->theta0, (size_t)w->k},
                               {w->law_values, (size_t)w->law_count},
                               {x, m},
                               {covariance, m * m}};
    memcpy(out, all, sizeof all);
}

size_t crd_twin_state_size(const crd_twin* w)
{
    array all[ARRAYS];
    size_t size = sizeof(head);
    list(w, all);
    for (int i = 0; i < ARRAYS; i++) {
        size += all[i].count * sizeof(double);
    }
    return size +
           (size_t)w->spec.sensor_count * (sizeof(sensor_part) + (size_t)w->n * sizeof(double));
}

void crd_twin_save(const crd_twin* w, void* state)
{
    char* to = state;
    const head h = {.t0 = w->t0,
                    .h = w->h,
                    .steps = w->steps,
                    .still = w->still,
                    .silent = w->silent,
                    .resets = w->resets,
                    .frozen = w->frozen,
                    .begun = w->begun};
    memcpy(to, &h, sizeof h);
    to += sizeof h;
    array all[ARRAYS];
    list(w, all);
    for (int i = 0; i < ARRAYS; i++) {
        if (all[i].count) { memcpy(to, all[i].at, all[i].count * sizeof(double)); }
        to += all[i].count * sizeof(double);
    }
    for (int i = 0; i < w->spec.sensor_count; i++) {
        const crdi_sensor* s = &w->sensors[i];
        const sensor_part part = {s->variance, s->last, s->jitter, s->refused, s->repeats, s->now};
        memcpy(to, &part, sizeof part);
        memcpy(to + sizeof part, s->gain, (size_t)w->n * sizeof *s->gain);
        to += sizeof part + (size_t)w->n * sizeof *s->gain;
    }
}

// The matrices belong to theta0 and the laws' values, not to theta.
static void matrices(crd_twin* w)
{
    for (int g = 0; g < w->k; g++) {
        const crd_twin_group* group = &w->spec.parameters[g].group;
        for (int i = 0; i < group->count; i++) {
            const double value = exp(w->theta0[g]) * (group->factors ? group->factors[i] : 1);
            crd_reduction_set(w->reduction, &group->parts[i], &value, 1);
        }
    }
    if (w->law_count) {
        crd_reduction_set(w->reduction, w->law_parts, w->law_values, w->law_count);
    }
    crdi_twin_matrices(w);
}

void crd_twin_restore(crd_twin* w, const void* state)
{
    const char* from = state;
    head h;
    memcpy(&h, from, sizeof h);
    from += sizeof h;
    w->t0 = h.t0;
    const bool other = w->h != h.h;
    w->h = h.h;
    w->steps = h.steps;
    w->still = (int)h.still;
    w->silent = (int)h.silent;
    w->resets = (int)h.resets;
    w->frozen = h.frozen != 0;
    w->begun = h.begun != 0;
    array all[ARRAYS];
    list(w, all);
    for (int i = 0; i < ARRAYS; i++) {
        if (all[i].count) { memcpy(all[i].at, from, all[i].count * sizeof(double)); }
        from += all[i].count * sizeof(double);
    }
    for (int i = 0; i < w->spec.sensor_count; i++) {
        crdi_sensor* s = &w->sensors[i];
        sensor_part part;
        memcpy(&part, from, sizeof part);
        s->variance = part.variance;
        s->last = part.last;
        s->jitter = part.jitter;
        s->refused = part.refused;
        s->repeats = part.repeats;
        s->now = part.now;
        memcpy(s->gain, from + sizeof part, (size_t)w->n * sizeof *s->gain);
        from += sizeof part + (size_t)w->n * sizeof *s->gain;
    }
    if (w->thesis) {
        crdi_thesis_restored(w);
    } else if (!w->constant || other) {
        matrices(w);
    }
    if (other) { crdi_twin_remade(w); }
}
