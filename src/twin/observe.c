// What can be found with these sensors and this experiment (scaled sensitivities, never the
// Gramian).
#include "twin/factor.h"
#include "twin/respond.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct gather {
    const crdi_response* r;
    const crd_twin_spec* spec;
    crdi_qr qr;
    int64_t rows;
} gather;

// Relative to the prior: one e-fold of a parameter, the sd of a source or a state.
static double prior(const gather* g, int j)
{
    const crdi_response* r = g->r;
    if (j < r->k) { return g->spec->parameters[j].sd > 0 ? g->spec->parameters[j].sd : 1; }
    if (j < r->k + r->s) {
        const crd_twin_source* s = &g->spec->sources[j - r->k];
        return s->sd > 0 ? s->sd : fmax(fabs(s->start), 1);
    }
    return g->spec->state_sd > 0 ? g->spec->state_sd : 1;
}

static void add_sensitivities(void* user, int64_t row, const double* y, double* dy)
{
    gather* g = user;
    (void)row;
    (void)y;
    for (int i = 0; i < g->spec->sensor_count; i++) {
        double* line = dy + (ptrdiff_t)i * g->r->m;
        for (int j = 0; j < g->r->m; j++) {
            line[j] *= prior(g, j) / g->spec->sensors[i].sd;
        }
        crdi_qr_add(&g->qr, line, 0);
    }
    g->rows++;
}

crd_status crd_twin_observe(crd_context* ctx, const crd_netlist* n, const crd_twin_spec* spec,
                            const crd_twin_data* data, bool states, crd_arena* arena,
                            crd_observability* out)
{
    crdi_response r;
    crd_status st = crdi_response_create(ctx, n, spec, data, states, arena, &r);
    if (st < 0) { return st; }
    const size_t m = (size_t)r.m;
    gather g = {.r = &r, .spec = spec, .qr = {.m = r.m}};
    *out = (crd_observability){.unknowns = r.m, .names = r.names};
    g.qr.r = crdi_arena_new(arena, m * m + 1, sizeof(double));
    g.qr.b = crdi_arena_new(arena, m + 1, sizeof(double));
    out->sigma = crdi_arena_new(arena, m + 1, sizeof(double));
    out->directions = crdi_arena_new(arena, m * m + 1, sizeof(double));
    out->posterior = crdi_arena_new(arena, m + 1, sizeof(double));
    CRD_TRY(g.qr.r && g.qr.b && out->sigma && out->directions && out->posterior ? CRD_OK
                                                                                : CRD_E_MEMORY);
    CRD_TRY(crdi_respond(&r, true, add_sensitivities, &g));
    crdi_svd(r.m, g.qr.r, out->sigma, out->directions);
    // rounding of the sensitivities: some eps per step of the recursion, in quadrature over rows
    const double null = r.m * 16 * DBL_EPSILON * sqrt((double)g.rows + 1);
    for (int i = 0; i < r.m; i++) {
        const double s = out->sigma[i];
        out->structural += !(s > null * out->sigma[0]);
        out->practical += !(s >= 1);
        for (int j = 0; j < r.m; j++) {
            const double v = out->directions[(ptrdiff_t)i * r.m + j];
            out->posterior[j] += v * v / (1 + s * s);
        }
    }
    for (int j = 0; j < r.m; j++) {
        out->posterior[j] = sqrt(out->posterior[j]);
    }
    out->rank = r.m - out->structural;
    crdi_response_destroy(&r);
    return CRD_OK;
fail:
    crdi_response_destroy(&r);
    return st;
}

// ---- in words ----------------------------------------------------------------------------------

const char* crd_observability_name(const crd_observability* o, int i, crd_arena* arena)
{
    const double* v = o->directions + (ptrdiff_t)i * o->unknowns;
    double largest = 0;
    int top = 0;
    for (int j = 0; j < o->unknowns; j++) {
        if (fabs(v[j]) > largest) {
            largest = fabs(v[j]);
            top = j;
        }
    }
    const char* out = "";
    for (int side = 0; side < 2; side++) { // with the sign of the largest, then against it
        bool first = true;
        for (int j = 0; j < o->unknowns && out; j++) {
            const bool same = v[j] * v[top] > 0;
            if (fabs(v[j]) < 0.1 * largest || same == (side == 1)) { continue; }
            out = crdi_arena_format(arena, "%s%s%s", out,
                                    !first ? ", "
                                    : side ? " against "
                                           : "",
                                    o->names[j]);
            first = false;
        }
    }
    return out;
}

crd_status crd_twin_require_observable(crd_context* ctx, const crd_netlist* n,
                                       const crd_twin_spec* spec, const crd_twin_data* data,
                                       bool states)
{
    crd_arena arena;
    crd_observability o;
    crd_arena_init(&arena, ctx);
    crd_status st = crd_twin_observe(ctx, n, spec, data, states, &arena, &o);
    if (st == CRD_OK && o.structural) {
        const char* all = "";
        for (int i = o.rank; i < o.unknowns && all; i++) {
            const char* one = crd_observability_name(&o, i, &arena);
            all =
                one ? crdi_arena_format(&arena, "%s%s%s", all, i > o.rank ? "; " : "", one) : NULL;
        }
        st = crdi_fail(ctx, CRD_E_RANGE,
                       "twin: with these sensors and this experiment %d of %d unknowns cannot be "
                       "told: %s",
                       o.structural, o.unknowns, all ? crdi_clip(all).text : "");
    }
    crd_arena_clear(&arena);
    return st;
}

// ---- where to put sensors ----------------------------------------------------------------------

typedef struct place {
    crd_context* ctx;
    const crd_netlist* n;
    const crd_twin_data* data;
    crd_twin_spec spec;
    crd_twin_sensor* sensors; // given, chosen, and the one that is tried
    char (*what)[80];
    crd_arena* arena;
} place;

static crd_status try_node(place* p, int32_t node, double sd, crd_placement* out)
{
    const int at = p->spec.sensor_count++;
    snprintf(p->what[at], sizeof *p->what, "v(%s)", p->n->nodes[node]);
    p->sensors[at] = (crd_twin_sensor){.name = p->n->nodes[node], .what = p->what[at], .sd = sd};
    crd_observability o;
    crd_arena mine;
    crd_arena_init(&mine, p->ctx);
    const crd_status st = crd_twin_observe(p->ctx, p->n, &p->spec, p->data, false, &mine, &o);
    p->spec.sensor_count--;
    if (st == CRD_OK) {
        *out = (crd_placement){
            .node = node, .rank = o.rank, .smallest = o.unknowns ? o.sigma[o.unknowns - 1] : 0};
        for (int i = 0; i < o.unknowns; i++) {
            out->log_det += log1p(o.sigma[i] * o.sigma[i]);
        }
    }
    crd_arena_clear(&mine);
    return st;
}

// Rank first, then the information as a whole.
static bool better(const crd_placement* a, const crd_placement* b)
{
    return a->rank != b->rank ? a->rank > b->rank : a->log_det > b->log_det;
}

static bool measured(const place* p, int32_t node)
{
    for (int i = 0; i < p->spec.sensor_count; i++) {
        char at[80];
        snprintf(at, sizeof at, "v(%s)", p->n->nodes[node]);
        if (strcmp(at, p->sensors[i].what) == 0) { return true; }
        at[0] = 't';
        if (strcmp(at, p->sensors[i].what) == 0) { return true; }
    }
    return false;
}

crd_status crd_twin_place(crd_context* ctx, const crd_netlist* n, const crd_twin_spec* spec,
                          const crd_twin_data* data, double sd, const int32_t* candidates,
                          int candidate_count, int wanted, crd_arena* arena, crd_placement* out,
                          int* count)
{
    place p = {.ctx = ctx, .n = n, .data = data, .spec = *spec, .arena = arena};
    const size_t most = (size_t)spec->sensor_count + (size_t)wanted + 1;
    *count = 0;
    if (!(sd > 0)) {
        return crdi_fail(ctx, CRD_E_RANGE, "twin: sd = %g of a new sensor, expected > 0", sd);
    }
    p.sensors = crdi_arena_new(arena, most, sizeof *p.sensors);
    p.what = crdi_arena_new(arena, most, sizeof *p.what);
    if (!p.sensors || !p.what) { return CRD_E_MEMORY; }
    memcpy(p.sensors, spec->sensors, (size_t)spec->sensor_count * sizeof *p.sensors);
    p.spec.sensors = p.sensors;
    const int all = candidates ? candidate_count : n->node_count - 1;
    for (int round = 0; round < wanted; round++) {
        crd_placement best = {.node = -1, .rank = -1};
        for (int i = 0; i < all; i++) {
            const int32_t node = candidates ? candidates[i] : i + 1;
            crd_placement now = {0};
            if (node <= 0 || node >= n->node_count || measured(&p, node)) { continue; }
            const crd_status st = try_node(&p, node, sd, &now);
            if (st < 0) { return st; }
            if (better(&now, &best)) { best = now; }
        }
        if (best.node < 0) { break; }
        const int at = p.spec.sensor_count++;
        snprintf(p.what[at], sizeof *p.what, "v(%s)", n->nodes[best.node]);
        p.sensors[at] =
            (crd_twin_sensor){.name = n->nodes[best.node], .what = p.what[at], .sd = sd};
        out[(*count)++] = best;
    }
    return CRD_OK;
}
