// From a series to pairs of inputs and target.
#include <math.h>
#include <string.h>

#include "learn/train.h"
#include "shared/base.h"

// Jumps before or at a sample, and samples that cannot be used: cumulative counts, so that any
// stretch is judged by two of them.
typedef struct marks {
    int32_t *jumps, *gaps; // (n + 1) among the samples before
} marks;

static crd_status make_marks(crd_context* ctx, const double* y, int64_t n, marks* out)
{
    const size_t count = (size_t)n + 1;
    out->jumps = crdi_new_array(ctx, count, sizeof *out->jumps);
    out->gaps = crdi_new_array(ctx, count, sizeof *out->gaps);
    if (!out->jumps || !out->gaps) { return CRD_E_MEMORY; }
    crd_detector d;
    crd_detector_init(&d, CRD_DETECT_GUARDED, 0, 0);
    for (int64_t i = 0; i < n; i++) {
        const bool usable = fabs(y[i]) <= 1e250; // false for NaN
        bool jump = false;
        if (usable) {
            jump = crd_detector_push(&d, y[i]).jump;
        } else {
            crd_detector_init(&d, CRD_DETECT_GUARDED, 0, 0); // differences do not reach over gaps
        }
        out->jumps[i + 1] = out->jumps[i] + jump;
        out->gaps[i + 1] = out->gaps[i] + !usable;
    }
    return CRD_OK;
}

// What becomes of target s; -1: left out.
static int pair_kind(const crd_training* t, int m, const marks* g, int64_t s, int64_t held_from)
{
    const int64_t newest = s - t->k, oldest = newest - (m - 1);
    if (g->gaps[newest + 1] > g->gaps[oldest] || g->gaps[s + 1] > g->gaps[s]) { return -1; }
    const bool unforeseen = g->jumps[s + 1] > g->jumps[newest + 1];
    const bool between = g->jumps[newest + 1] > g->jumps[oldest + 1];
    if (unforeseen) { return t->drop_after_jump ? -1 : CRDI_PAIR_JUMP; }
    if (between) { return CRDI_PAIR_JUMP; }
    return s >= held_from ? CRDI_PAIR_HELD : CRDI_PAIR_SMOOTH;
}

static void put_pair(crdi_pairs* p, int64_t place, const double* newest, double target, int kind)
{
    const int64_t block = place / CRDI_LANES, lane = place % CRDI_LANES;
    double* x = &p->x[block * p->m * CRDI_LANES + lane];
    for (int i = 0; i < p->m; i++) {
        x[i * CRDI_LANES] = newest[-i];
    }
    p->y[place] = target;
    p->on[place] = 1;
    p->kind[place] = (unsigned char)kind;
    p->of_kind[kind]++;
}

static crd_status allocate_pairs(crd_context* ctx, crdi_pairs* p)
{
    p->trained_blocks = (p->trained + CRDI_LANES - 1) / CRDI_LANES;
    p->held_blocks = (p->held + CRDI_LANES - 1) / CRDI_LANES;
    const size_t places = (size_t)(p->trained_blocks + p->held_blocks) * CRDI_LANES;
    p->x = crdi_new_array(ctx, places * (size_t)p->m, sizeof *p->x);
    p->y = crdi_new_array(ctx, places, sizeof *p->y);
    p->on = crdi_new_array(ctx, places, sizeof *p->on);
    p->kind = crdi_new_array(ctx, places, sizeof *p->kind);
    return p->x && p->y && p->on && p->kind ? CRD_OK : CRD_E_MEMORY;
}

crd_status crdi_pairs_make(crd_context* ctx, const crd_training* t, int m, const double* y,
                           int64_t n, crdi_pairs* out)
{
    crd_status st = CRD_OK;
    crdi_pairs p = {.m = m};
    marks g = {0};
    const int64_t first = t->k + m - 1;
    CRD_TRY(make_marks(ctx, y, n, &g));
    const int64_t held_from = n - (int64_t)floor(t->hold_out * (double)(n - first));
    for (int64_t s = first; s < n; s++) {
        const int kind = pair_kind(t, m, &g, s, held_from);
        p.dropped += kind < 0;
        p.held += kind == CRDI_PAIR_HELD;
        p.trained += kind == CRDI_PAIR_SMOOTH || kind == CRDI_PAIR_JUMP;
    }
    CRD_TRY(allocate_pairs(ctx, &p));
    int64_t trained = 0, held = p.trained_blocks * CRDI_LANES;
    for (int64_t s = first; s < n; s++) {
        const int kind = pair_kind(t, m, &g, s, held_from);
        if (kind < 0) { continue; }
        put_pair(&p, kind == CRDI_PAIR_HELD ? held++ : trained++, &y[s - t->k], y[s], kind);
        p.largest = fmax(p.largest, fmax(fabs(y[s]), fabs(y[s - t->k])));
    }
    *out = p;
    p = (crdi_pairs){0};
fail:
    crd_free(ctx, g.jumps);
    crd_free(ctx, g.gaps);
    crdi_pairs_clear(ctx, &p);
    return st;
}

void crdi_pairs_clear(crd_context* ctx, crdi_pairs* p)
{
    crd_free(ctx, p->x);
    crd_free(ctx, p->y);
    crd_free(ctx, p->on);
    crd_free(ctx, p->kind);
    *p = (crdi_pairs){0};
}

void crdi_pairs_measure(const crdi_pairs* p, const crd_network* n, double sums[CRDI_PAIR_KINDS])
{
    const int64_t places = (p->trained_blocks + p->held_blocks) * CRDI_LANES;
    double y[CRD_TAPS_MAX];
    memset(sums, 0, CRDI_PAIR_KINDS * sizeof *sums);
    for (int64_t s = 0; s < places; s++) {
        if (p->on[s] == 0) { continue; }
        const double* x = &p->x[s / CRDI_LANES * p->m * CRDI_LANES + s % CRDI_LANES];
        for (int i = 0; i < p->m; i++) {
            y[i] = x[i * CRDI_LANES];
        }
        const double e = crd_network_eval(n, y) - p->y[s];
        sums[p->kind[s]] += e * e;
    }
}
