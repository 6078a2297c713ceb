// Coupling elements as they are described: their linear functions, and what each of them does.
#include "analysis/analysis.h"

#include "shared/base.h"

enum { MOST_PEAKS = 4096 };
static const double pi = 3.14159265358979323846;

// ---- linear functions --------------------------------------------------------------------------

crd_status crd_linears_make(const crd_element* e, double step, int k, crd_linears* out)
{
    crd_status st = CRD_OK;
    crd_linears l = {.ctx = e->ctx};
    crd_arena_init(&l.arena, e->ctx);
    crd_linear* one = crdi_arena_new(&l.arena, 1, sizeof *one);
    if (!one) { CRD_TRY(CRD_E_MEMORY); }
    if (e->options.algorithm == CRD_ALGORITHM_NETWORK) {
        crd_pieces p;
        CRD_TRY(crd_network_pieces(e->ctx, &l.arena, e->options.network, k, &p));
        l.count = p.count;
        l.linear = p.linear;
        l.patterns = p.patterns;
    } else {
        CRD_TRY(crd_element_linear(e, step, k, &l.own));
        *one = l.own;
        l.linear = one;
        l.count = 1;
    }
    *out = l;
    return CRD_OK;
fail:
    crd_linears_clear(&l);
    // what comes from the element itself bears its name already
    const bool named = st == CRD_E_MEMORY || e->options.algorithm != CRD_ALGORITHM_NETWORK;
    return named ? st : crdi_fail_in(e->ctx, st, "%s", e->label);
}

void crd_linears_clear(crd_linears* l)
{
    if (!l->ctx) { return; }
    crd_linear_clear(l->ctx, &l->own);
    crd_arena_clear(&l->arena);
    *l = (crd_linears){0};
}

// ---- one function ------------------------------------------------------------------------------

// A constant that misses the tolerance makes it 0: no frequency keeps it. The phase is still told.
static crd_status find_limits(crd_context* ctx, double tolerance, double phase_deg,
                              crd_linear_report* r)
{
    const double off = fabs(r->dc - 1);
    if (!(r->dc > 0)) {
        r->limits = (crd_limits){0, 0, -1, -1};
        return CRD_OK;
    }
    if (off <= tolerance) {
        return crd_analysis_limits(ctx, r->e, tolerance, phase_deg, &r->limits);
    }
    const crd_status st = crd_analysis_limits(ctx, r->e, off + tolerance, phase_deg, &r->limits);
    r->limits.magnitude = 0;
    r->limits.magnitude_side = r->dc > 1 ? 1 : -1;
    return st;
}

static crd_status find_peaks(crd_context* ctx, crd_arena* arena, double step, crd_linear_report* r)
{
    crd_peak* found = crdi_new_array(ctx, MOST_PEAKS, sizeof *found);
    if (!found) { return CRD_E_MEMORY; }
    int count = 0;
    crd_status st = crd_analysis_peaks(ctx, r->e, step, 2 * pi / step, MOST_PEAKS, found, &count);
    if (count > MOST_PEAKS) { count = MOST_PEAKS; }
    r->peaks = crdi_arena_new(arena, (size_t)count, sizeof *r->peaks);
    if (st >= 0 && !r->peaks) { st = CRD_E_MEMORY; }
    r->highest = -1;
    for (int i = 0; i < count && st >= 0; i++) {
        r->peaks[i] = found[i];
        r->peak_count++;
        if (r->highest < 0 || found[i].gain > r->peaks[r->highest].gain) { r->highest = i; }
    }
    crd_free(ctx, found);
    return st;
}

// dc = G_p(0): phi0(0) = 1 weighs a, phi1(0) = 1/2 weighs A.
static void find_sums(crd_linear_report* r)
{
    for (int i = 0; i < r->e->m; i++) {
        r->dc += r->e->a[i] + (r->e->A ? 0.5 * r->e->A[i] : 0);
        r->norm = hypot(r->norm, r->e->a[i]);
    }
}

// ---- all of an element -------------------------------------------------------------------------

static double highest_gain(const crd_linear_report* r)
{
    return r->highest < 0 ? 0 : r->peaks[r->highest].gain;
}

static void take_worst(crd_element_report* r, int i)
{
    const crd_limits* l = &r->pieces[i].limits;
    if (i == 0) { r->worst = *l; }
    if (l->magnitude < r->worst.magnitude) {
        r->worst.magnitude = l->magnitude;
        r->worst.magnitude_side = l->magnitude_side;
    }
    if (l->phase < r->worst.phase) {
        r->worst.phase = l->phase;
        r->worst.phase_side = l->phase_side;
    }
    if (highest_gain(&r->pieces[i]) > highest_gain(&r->pieces[r->highest])) { r->highest = i; }
}

crd_status crd_analysis_element(const crd_element* e, double step, int k,
                                double magnitude_tolerance, double phase_tolerance_deg,
                                crd_element_report* out)
{
    crd_element_report r = {.step = isnan(step) ? e->step : step, .k = k};
    crd_status st = crd_linears_make(e, step, k, &r.linears);
    if (st < 0) { return st; }
    crd_arena* arena = &r.linears.arena;
    r.pieces = crdi_arena_new(arena, (size_t)r.linears.count, sizeof *r.pieces);
    if (!r.pieces) { CRD_TRY(CRD_E_MEMORY); }
    for (int i = 0; i < r.linears.count; i++) {
        crd_linear_report* p = &r.pieces[i];
        p->e = &r.linears.linear[i];
        p->patterns = r.linears.patterns ? r.linears.patterns[i] : 0;
        find_sums(p);
        st = find_limits(e->ctx, magnitude_tolerance, phase_tolerance_deg, p);
        if (st >= 0) { st = find_peaks(e->ctx, arena, r.step, p); }
        if (st < 0) { CRD_TRY(crdi_fail_in(e->ctx, st, "%s", e->label)); }
        take_worst(&r, i);
    }
    *out = r;
    return CRD_OK;
fail:
    crd_element_report_clear(&r);
    return st;
}

void crd_element_report_clear(crd_element_report* r)
{
    crd_linears_clear(&r->linears);
    *r = (crd_element_report){0};
}
