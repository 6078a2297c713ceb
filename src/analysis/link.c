// From a link, measured or given, and a recorded signal to the algorithms that could serve it.
#include "analysis/analysis.h"

#include "shared/base.h"

#include <stdlib.h>

enum { EMULATED = 10000 };

// ---- the link ----------------------------------------------------------------------------------

static double next_uniform(uint64_t* x)
{
    *x += 0x9e3779b97f4a7c15u; // splitmix64
    uint64_t z = *x;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

crd_status crd_link_emulate(crd_context* ctx, crd_arena* arena, double delay, double jitter,
                            double loss, crd_link* out)
{
    if (jitter > delay || loss >= 1) {
        return crdi_fail(
            ctx, CRD_E_RANGE,
            "a latency of %g s +- %g s with %g of the samples lost, expected less jitter "
            "than latency and a part < 1",
            delay, jitter, loss);
    }
    uint64_t seed = 1;
    double* delays = crdi_arena_new(arena, EMULATED, sizeof *delays);
    if (!delays) { return CRD_E_MEMORY; }
    for (int i = 0; i < EMULATED; i++) {
        const double here = delay + jitter * (2 * next_uniform(&seed) - 1);
        delays[i] = next_uniform(&seed) < loss ? NAN : here;
    }
    *out = (crd_link){.delays = delays, .count = EMULATED};
    return CRD_OK;
}

static int link_by_size(const void* a, const void* b)
{
    const double x = *(const double*)a, y = *(const double*)b;
    return x < y ? -1 : x > y;
}

static int link_steps_of(double delay, double step)
{
    return (int)ceil(delay / step - 1e-6);
}

crd_status crd_link_examine(crd_context* ctx, crd_link* l, double step)
{
    double* sorted = crdi_new_array(ctx, (size_t)l->count, sizeof *sorted);
    if (!sorted) { return CRD_E_MEMORY; }
    int64_t n = 0;
    l->mean = 0;
    for (int64_t i = 0; i < l->count; i++) {
        if (isnan(l->delays[i])) { continue; }
        sorted[n++] = l->delays[i];
        l->mean += l->delays[i];
    }
    if (n == 0) {
        crd_free(ctx, sorted);
        return crdi_fail(ctx, CRD_E_RANGE, "the link loses every packet");
    }
    qsort(sorted, (size_t)n, sizeof *sorted, link_by_size);
    const double median = sorted[n / 2];
    l->lost = l->count - n;
    l->mean /= (double)n;
    l->low = sorted[0];
    l->high = sorted[(int64_t)(0.999 * (double)(n - 1))];
    crd_free(ctx, sorted);
    const int lost = l->lost > 0 ? 2 : 0, most = CRD_LATENCY_MAX - CRD_LATENCY_SPARE - lost;
    if (!(l->high / step - 1e-6 <= most)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "a latency of %g s is more than %d macro steps of %g s: too much to be "
                         "compensated",
                         l->high, most, step);
    }
    l->k_low = link_steps_of(l->low, step);
    l->k_most = link_steps_of(median, step);
    l->k_high = link_steps_of(l->high, step) + lost;
    return CRD_OK;
}

// ---- candidates --------------------------------------------------------------------------------

static crd_link_candidate* add_candidate(crd_link_trial* t, const crd_link* l, double step,
                                         const char* name)
{
    crd_link_candidate* c = &t->candidates[t->count++];
    *c = (crd_link_candidate){.name = name, .options = crd_coupling_defaults()};
    c->options.step = step;
    c->options.k_max = l->k_high + CRD_LATENCY_SPARE;
    return c;
}

static void add_published(crd_link_trial* t, const crd_link* l, double step, const char* name,
                          crd_method method)
{
    crd_link_candidate* c = add_candidate(t, l, step, name);
    c->options.algorithm = CRD_ALGORITHM_LINEAR;
    c->options.design = crd_design_defaults(method);
    c->options.reaction = CRD_REACT_NONE;
}

// A table of weights over the latencies of the link.
static crd_status add_design(crd_link_trial* t, const crd_link* l, const crd_design_task* task,
                             const char* name, crd_designer by, int only)
{
    crd_status st = CRD_OK;
    crd_link_candidate* c = add_candidate(t, l, task->goal.dT, name);
    if (only >= 0 && only != t->count - 1) { return CRD_OK; }
    const size_t most = (size_t)l->k_high - (size_t)l->k_low + 1;
    crd_linear* given = crdi_arena_new(&t->arena, most, sizeof *given);
    c->designs = crdi_arena_new(&t->arena, most, sizeof *c->designs);
    if (!given || !c->designs) { return CRD_E_MEMORY; }
    for (int k = l->k_low; k <= l->k_high && st >= 0; k++) {
        st = crd_design_make(t->ctx, task, by, k, &c->designs[c->design_count]);
        if (st >= 0) { given[c->design_count] = c->designs[c->design_count].linear; }
        c->design_count += st >= 0;
    }
    c->options.algorithm = CRD_ALGORITHM_GIVEN;
    c->options.reconstruction = CRD_RECONSTRUCT_HOLD;
    c->options.given = given;
    c->options.given_count = c->design_count;
    return st;
}

crd_status crd_link_design(crd_context* ctx, const crd_link* link, const crd_signal* s,
                           int64_t seen, int taps, int only, crd_link_trial* t)
{
    crd_status st = CRD_OK;
    crd_signal part = *s;
    crd_design_task task = crd_design_task_defaults();
    crd_link_trial_clear(t);
    t->ctx = ctx;
    crd_arena_init(&t->arena, ctx);
    part.count = seen;
    task.signal = &part;
    task.goal.dT = s->step;
    if (taps > 0) { task.goal.m = taps; }
    CRD_TRY(crd_design_find_bands(ctx, &t->arena, &task));
    add_published(t, link, s->step, "zoh", CRD_METHOD_ZOH);
    add_published(t, link, s->step, "foh", CRD_METHOD_FOH);
    add_published(t, link, s->step, "eros", CRD_METHOD_EROS);
    CRD_TRY(add_design(t, link, &task, "optimal", CRD_DESIGNER_OPTIMAL, only));
    CRD_TRY(add_design(t, link, &task, "bounded", CRD_DESIGNER_BOUNDED, only));
    CRD_TRY(add_design(t, link, &task, "wiener", CRD_DESIGNER_WIENER, only));
    if (taps <= 0) { task.goal.m = 25; }
    CRD_TRY(add_design(t, link, &task, "wiener, long", CRD_DESIGNER_WIENER, only));
    add_candidate(t, link, s->step, "ridge")->options.algorithm = CRD_ALGORITHM_LEARNING;
    add_candidate(t, link, s->step, "auto");
fail:
    return st;
}

crd_status crd_link_try(crd_link_trial* t, const crd_link* link, const crd_signal* s, int64_t first,
                        int i)
{
    crd_link_candidate* c = &t->candidates[i];
    crd_replay_options o = crd_replay_defaults();
    o.step = s->step;
    o.delays = link->delays;
    o.delay_count = link->count;
    o.first = first;
    const crd_element e = {.ctx = t->ctx,
                           .label = c->name,
                           .step = NAN,
                           .latency = NAN,
                           .latency_steps = -1,
                           .options = c->options};
    crd_replay r;
    const crd_status st = crd_coupling_replay(t->ctx, &e, &o, s->y, s->count, NULL, &r);
    if (st < 0) { return crdi_fail_in(t->ctx, st, "%s", c->name); }
    c->metrics = crd_score_metrics(&r.score);
    return CRD_OK;
}

// A designed one with its weights, the others by their names.
crd_status crd_link_describe(const crd_link_candidate* c, const char* name, double step,
                             crd_text* out)
{
    if (c->design_count > 0) {
        return crd_design_describe(name, step, c->designs, c->design_count, out);
    }
    crdi_element_begin(name, step, out);
    crdi_text_add(out, "\"%s\",\n  \"latency-max\": %d\n}\n", c->name, c->options.k_max);
    return out->failed ? CRD_E_MEMORY : CRD_OK;
}

void crd_link_trial_clear(crd_link_trial* t)
{
    if (!t->ctx) { return; }
    for (int i = 0; i < t->count; i++) {
        for (int j = 0; j < t->candidates[i].design_count; j++) {
            crd_linear_clear(t->ctx, &t->candidates[i].designs[j].linear);
        }
    }
    crd_arena_clear(&t->arena);
    *t = (crd_link_trial){0};
}
