// Is a loop stable, and by how much: Nyquist's criterion, poles with G_p, and the exact map.
#include "analysis/analysis.h"

#include "shared/base.h"

#include <stdlib.h>

enum { MOST_POLES = 1000 };

// ---- margins -----------------------------------------------------------------------------------

const crd_crossing* crd_nyquist_phase_margin(const crd_nyquist* n)
{
    const crd_crossing* best = NULL;
    for (int i = 0; i < n->phase_count; i++) {
        const crd_crossing* c = &n->phase[i];
        if (!best || fabs(c->margin) < fabs(best->margin)) { best = c; }
    }
    return best;
}

const crd_crossing* crd_nyquist_gain_margin(const crd_nyquist* n)
{
    const crd_crossing* best = NULL;
    for (int i = 0; i < n->gain_count; i++) {
        const crd_crossing* c = &n->gain[i];
        if (!best || fabs(log(c->margin)) < fabs(log(best->margin))) { best = c; }
    }
    return best;
}

// A failure that the analysis may go on without
static bool may_go_on(crd_status st)
{
    return st == CRD_E_UNSUPPORTED || st == CRD_E_CONVERGENCE || st == CRD_E_RANGE;
}

static bool has_map(const crd_loop_model* m)
{
    return !m->no_map && m->sampled.link_count;
}

// `*stable` becomes false if a mode of the exact map grows; a loop that has none is left as it is.
static crd_status stability_check_modes(const crd_loop_model* m, crd_sampling sampling,
                                        bool* stable)
{
    crd_monodromy map = {0};
    crd_complex slowest = {-1, 0};
    if (!has_map(m)) { return CRD_OK; }
    crd_status st = crd_plant_monodromy(m->ctx, &m->sampled, m->loop.dT, sampling, &map);
    if (st >= 0 && map.size > 0) {
        st = crd_monodromy_modes(m->ctx, &map, m->loop.dT, 1, &slowest);
    }
    if (st >= 0 && !(slowest.re < 0)) { *stable = false; }
    crd_monodromy_clear(m->ctx, &map);
    return may_go_on(st) ? CRD_OK : st;
}

crd_status crd_analysis_margins(const crd_loop_model* m, crd_margins* out)
{
    crd_status st = CRD_OK;
    crd_nyquist n;
    CRD_TRY(crd_loop_nyquist(m->ctx, &m->loop, &n));
    const crd_crossing* phase = crd_nyquist_phase_margin(&n);
    crd_margins found = {.known = true,
                         .stable = n.closed_unstable == 0,
                         .phase = phase ? phase->margin : (double)NAN,
                         .delay = n.delay_margin,
                         .nearest = n.min_distance};
    CRD_TRY(stability_check_modes(m, CRD_SAMPLE_AFTER, &found.stable));
    CRD_TRY(stability_check_modes(m, CRD_SAMPLE_BEFORE, &found.stable));
    if (!found.stable) { found.delay = 0; }
    *out = found;
fail:
    return st;
}

// ---- one variant -------------------------------------------------------------------------------

static int by_real_part(const void* a, const void* b)
{
    const crd_complex *x = a, *y = b;
    if (x->re != y->re) { return x->re > y->re ? -1 : 1; }
    return x->im > y->im ? -1 : x->im < y->im;
}

static void sort_modes(crd_modes* s, int count)
{
    qsort(s->at, (size_t)count, sizeof *s->at, by_real_part);
    s->known = true;
    for (int i = 0; i < count; i++) {
        if (s->at[i].im >= 0) { s->at[s->count++] = s->at[i]; }
    }
}

static crd_status store_reason(crd_loop_model* m, crd_status st, const char** out)
{
    if (!may_go_on(st)) { return st; }
    *out = crdi_arena_format(&m->arena, "%s", crd_error_text(m->ctx));
    return *out ? CRD_OK : CRD_E_MEMORY;
}

static crd_status find_nyquist(crd_loop_model* m, crd_stability* r)
{
    const crd_status st = crd_loop_curve(m->ctx, &m->loop, &r->nyquist, &r->points);
    r->nyquist_known = st >= 0;
    return st < 0 ? store_reason(m, st, &r->no_nyquist) : CRD_OK;
}

static crd_status find_poles(crd_loop_model* m, crd_stability* r)
{
    r->poles.at = crdi_arena_new(&m->arena, MOST_POLES, sizeof *r->poles.at);
    if (!r->poles.at) { return CRD_E_MEMORY; }
    int count = 0;
    const crd_status st = crd_loop_poles(m->ctx, &m->loop, MOST_POLES, r->poles.at, &count);
    if (st < 0) { return store_reason(m, st, &r->no_poles); }
    sort_modes(&r->poles, count < MOST_POLES ? count : MOST_POLES);
    return CRD_OK;
}

static crd_status find_modes(crd_loop_model* m, crd_sampling sampling, crd_modes* s)
{
    crd_monodromy map = {0};
    if (!has_map(m)) { return CRD_OK; }
    crd_status st = crd_plant_monodromy(m->ctx, &m->sampled, m->loop.dT, sampling, &map);
    if (st >= 0) {
        s->at = crdi_arena_new(&m->arena, (size_t)map.size, sizeof *s->at);
        st = s->at ? crd_monodromy_modes(m->ctx, &map, m->loop.dT, map.size, s->at) : CRD_E_MEMORY;
    }
    if (st >= 0) { sort_modes(s, map.size); }
    crd_monodromy_clear(m->ctx, &map);
    return st < 0 ? store_reason(m, st, &m->no_map) : CRD_OK;
}

static bool decays(const crd_modes* s)
{
    return !s->known || s->count == 0 || s->at[0].re < 0;
}

static crd_status examine_variant(crd_loop_model* m, crd_stability* r)
{
    crd_status st = CRD_OK;
    CRD_TRY(find_nyquist(m, r));
    CRD_TRY(find_poles(m, r));
    CRD_TRY(find_modes(m, CRD_SAMPLE_AFTER, &r->after));
    CRD_TRY(find_modes(m, CRD_SAMPLE_BEFORE, &r->before));
    if (!r->nyquist_known && !r->poles.known && !r->after.known) {
        return crdi_fail(m->ctx, CRD_E_UNSUPPORTED, "%s: %s", m->name, r->no_nyquist);
    }
    r->stable = (!r->nyquist_known || r->nyquist.closed_unstable == 0) && decays(&r->poles) &&
                decays(&r->after) && decays(&r->before);
fail:
    return st;
}

// ---- all of them -------------------------------------------------------------------------------

static bool is_worse(const crd_stability* a, const crd_stability* b)
{
    if (a->stable != b->stable) { return !a->stable; }
    if (a->nyquist_known && b->nyquist_known) {
        return a->nyquist.closed_unstable != b->nyquist.closed_unstable
                   ? a->nyquist.closed_unstable > b->nyquist.closed_unstable
                   : a->nyquist.min_distance < b->nyquist.min_distance;
    }
    return a->poles.known && b->poles.known && a->poles.count && b->poles.count &&
           a->poles.at[0].re > b->poles.at[0].re;
}

crd_status crd_analysis_loop(crd_loop_model* m, crd_stability* out)
{
    crd_stability worst = {0};
    int unstable = 0;
    for (int i = 0; i < m->variants; i++) {
        crd_stability r = {.variant = i};
        crd_loop_model_choose(m, i);
        const crd_status st = examine_variant(m, &r);
        unstable += !r.stable;
        const bool taken = st >= 0 && (i == 0 || is_worse(&r, &worst));
        crd_free(m->ctx, taken || st < 0 ? worst.points : r.points);
        if (taken) { worst = r; }
        if (st < 0) {
            crd_free(m->ctx, r.points);
            return st;
        }
    }
    worst.unstable_variants = unstable;
    crd_loop_model_choose(m, worst.variant);
    *out = worst;
    return CRD_OK;
}
