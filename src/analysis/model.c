// A loop with its elements: variants for the pieces of networks, direct links closed, and the
// network of the exact map.
#include "analysis/analysis.h"

#include "shared/base.h"

#include <string.h>

enum { MOST_VARIANTS = 256 };

void crd_loop_model_init(crd_loop_model* m, crd_context* ctx, const char* name)
{
    *m = (crd_loop_model){.ctx = ctx, .name = name, .place = "", .variants = 1};
    crd_arena_init(&m->arena, ctx);
}

void crd_loop_model_clear(crd_loop_model* m)
{
    if (!m->ctx) { return; }
    for (int i = 0; i < m->element_count; i++) {
        crd_loop_element* x = &m->elements[i];
        crd_linears_clear(&x->linears);
        for (int k = 0; k < x->age_count; k++) {
            crd_linear_clear(m->ctx, &x->by_age[k]);
        }
    }
    crd_free(m->ctx, m->elements);
    crd_arena_clear(&m->arena);
    *m = (crd_loop_model){0};
}

// ---- elements ----------------------------------------------------------------------------------

static bool adapts(const crd_element* e)
{
    const crd_algorithm a = e->options.algorithm;
    return a == CRD_ALGORITHM_LEARNING || a == CRD_ALGORITHM_RLS || a == CRD_ALGORITHM_AUTO ||
           a == CRD_ALGORITHM_COMMANDS || a == CRD_ALGORITHM_SMITH;
}

// Weights for all ages that the element compensates, of one that adapts those of the hold.
static crd_status know_ages(crd_loop_model* m, const crd_element* e, double step, int k,
                            crd_loop_element* x)
{
    const crd_coupling_options* o = &e->options;
    x->adapts = adapts(e);
    x->gain_limit = o->gain_limit > 0 ? o->gain_limit : INFINITY;
    x->detects = o->detection != CRD_DETECT_NONE;
    x->believes = crd_element_latency(e, step) >= 0;
    x->variation = (crd_variation){.k_min = k, .k_max = k};
    if (o->algorithm == CRD_ALGORITHM_NETWORK) { return CRD_OK; }
    const int count = x->adapts ? 1 : (k > o->k_max ? k : o->k_max) + 1;
    x->by_age = crdi_arena_new(&m->arena, (size_t)count, sizeof *x->by_age);
    if (!x->by_age) { return CRD_E_MEMORY; }
    const crd_design hold = crd_design_defaults(CRD_METHOD_ZOH);
    for (; x->age_count < count; x->age_count++) {
        crd_linear* w = &x->by_age[x->age_count];
        const crd_status st = x->adapts ? crd_linear_make(m->ctx, &hold, 0, w)
                                        : crd_element_linear(e, step, x->age_count, w);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

static crd_status make_functions(crd_loop_model* m, const crd_element* e, double step, int k,
                                 crd_linears* out)
{
    if (!m->varied || !adapts(e)) { return crd_linears_make(e, step, k, out); }
    if (e->options.reconstruction == CRD_RECONSTRUCT_SMOOTH) {
        return crdi_fail(m->ctx, CRD_E_UNSUPPORTED,
                         "%s: reconstruct: smooth has no linear form here, expected own or hold",
                         e->label);
    }
    crd_element* hold = NULL;
    crd_status st = crd_element_of_name(m->ctx, "zoh", &hold);
    if (st >= 0) { st = crd_linears_make(hold, step, k, out); }
    crd_element_destroy(hold);
    return st;
}

crd_status crd_loop_model_add(crd_loop_model* m, const crd_element* e, double step, int k,
                              const crd_linear** out)
{
    crd_loop_element* elements = crdi_grow(m->ctx, m->elements, &m->element_capacity,
                                           (size_t)m->element_count + 1, sizeof *elements);
    if (!elements) { return CRD_E_MEMORY; }
    m->elements = elements;
    crd_loop_element* x = &elements[m->element_count];
    *x = (crd_loop_element){.label = crdi_arena_text(&m->arena, e->label, strlen(e->label)),
                            .current = crdi_arena_new(&m->arena, 1, sizeof *x->current)};
    if (!x->label || !x->current) { return CRD_E_MEMORY; }
    const crd_status st = make_functions(m, e, step, k, &x->linears);
    if (st < 0) { return st; }
    m->element_count++;
    if (m->varied) {
        const crd_status known = know_ages(m, e, step, k, x);
        if (known < 0) { return known; }
    }
    *x->current = x->linears.linear[0];
    *out = x->current;
    return CRD_OK;
}

// ---- what varies -------------------------------------------------------------------------------

crd_spread crd_spread_none(void)
{
    return (crd_spread){
        .k_min = -1, .k_max = -1, .jitter = NAN, .loss = NAN, .burst = -1, .at_once = 1};
}

static crd_status check_spread(crd_context* ctx, const crd_spread* s)
{
    if (s->k_min > s->k_max || s->k_max > CRD_LATENCY_MAX) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "latencies %d..%d: expected the smaller one first, at most %d steps",
                         s->k_min, s->k_max, CRD_LATENCY_MAX);
    }
    if (s->k_max >= 0 && s->jitter > 0) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "latencies %d..%d and a jitter of %g s: expected one of the two", s->k_min,
                         s->k_max, s->jitter);
    }
    if (!isnan(s->jitter) && !(s->jitter >= 0 && isfinite(s->jitter))) {
        return crdi_fail(ctx, CRD_E_RANGE, "a jitter of %g s: expected 0 or more", s->jitter);
    }
    if (!isnan(s->loss) && !(s->loss >= 0 && s->loss < 1)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "a loss of %g: expected 0 or more and below 1, as nothing would arrive",
                         s->loss);
    }
    if (s->burst > CRD_BURST_MAX) {
        return crdi_fail(ctx, CRD_E_RANGE, "%d losses in a row: expected at most %d", s->burst,
                         CRD_BURST_MAX);
    }
    return CRD_OK;
}

// A delay that is uniform in [delay - jitter, delay + jitter], at least 0, is used at the next
// macro step: k = ceil(delay / step), as a run does it.
static crd_status spread_delays(crd_loop_model* m, double jitter, double step, double delay,
                                crd_variation* v)
{
    const double low = (delay - jitter) / step, high = (delay + jitter) / step;
    v->k_min = low > 0 ? (int)ceil(low - 1e-6) : 0;
    if (!(high <= CRD_LATENCY_MAX)) {
        return crdi_fail(m->ctx, CRD_E_RANGE,
                         "a latency of %g s with a jitter of %g s is up to %g macro steps of %g s, "
                         "expected at most %d",
                         delay, jitter, high, step, CRD_LATENCY_MAX);
    }
    v->k_max = (int)ceil(high - 1e-6);
    const int n = v->k_max - v->k_min + 1;
    double* share = crdi_arena_new(&m->arena, (size_t)n, sizeof *share);
    if (!share) { return CRD_E_MEMORY; }
    double sum = 0;
    for (int i = 0; i < n; i++) {
        const double from = i == 0 ? low : v->k_min + i - 1, to = fmin(v->k_min + i, high);
        share[i] = fmax(to - from, 0) / (high - low);
        sum += share[i];
    }
    for (int i = 0; i < n; i++) { // but for rounding they are 1 together
        share[i] /= sum;
    }
    v->share = share;
    return CRD_OK;
}

crd_status crd_loop_model_vary(crd_loop_model* m, const crd_spread* own, const crd_spread* instead,
                               double step, double delay)
{
    crd_status st = CRD_OK;
    crd_spread s = *own;
    crd_variation* v = &m->elements[m->element_count - 1].variation;
    if (instead && instead->k_max >= 0) {
        s.k_min = instead->k_min;
        s.k_max = instead->k_max;
        s.jitter = NAN;
    }
    if (instead && !isnan(instead->jitter)) {
        s.jitter = instead->jitter;
        if (instead->k_max < 0) { s.k_min = s.k_max = -1; }
    }
    if (instead && !isnan(instead->loss)) {
        s.loss = instead->loss;
        s.at_once = instead->at_once;
    }
    if (instead && instead->burst >= 0) { s.burst = instead->burst; }
    CRD_TRY(check_spread(m->ctx, &s));
    if (s.k_max >= 0) {
        v->k_min = s.k_min;
        v->k_max = s.k_max;
    } else if (s.jitter > 0) {
        CRD_TRY(spread_delays(m, s.jitter, step, delay, v));
    }
    v->loss = isnan(s.loss) ? 0 : s.loss;
    v->burst_assumed = v->loss > 0 && s.burst < 0;
    v->at_once = v->loss > 0 ? s.at_once : 1;
    const int assumed = v->at_once < CRD_BURST_ASSUMED ? CRD_BURST_ASSUMED
                        : v->at_once > CRD_BURST_MAX   ? CRD_BURST_MAX
                                                       : v->at_once;
    v->burst = v->burst_assumed ? assumed : v->loss > 0 ? s.burst : 0;
fail:
    return st;
}

void crd_loop_model_choose(crd_loop_model* m, int variant)
{
    for (int i = 0; i < m->element_count; i++) {
        crd_loop_element* x = &m->elements[i];
        *x->current = x->linears.linear[variant % x->linears.count];
        variant /= x->linears.count;
    }
}

static crd_status count_variants(crd_loop_model* m)
{
    m->variants = 1;
    for (int i = 0; i < m->element_count; i++) {
        m->variants *= m->elements[i].linears.count;
        if (m->variants > MOST_VARIANTS) {
            return crdi_fail(m->ctx, CRD_E_UNSUPPORTED,
                             "the networks of the loop have more than %d combinations of linear "
                             "pieces",
                             MOST_VARIANTS);
        }
    }
    return CRD_OK;
}

// ---- networks ----------------------------------------------------------------------------------

static void put_block(double* to, const double* from, int row, int rows, int column, int columns,
                      int width)
{
    for (int i = 0; from && i < rows; i++) {
        for (int k = 0; k < columns; k++) {
            to[(row + i) * width + column + k] = from[i * columns + k];
        }
    }
}

crd_status crd_plant_stack(crd_arena* arena, const crd_plant* blocks, int count, crd_plant* out)
{
    crd_plant p = {0};
    for (int i = 0; i < count; i++) {
        p.states += blocks[i].states;
        p.inputs += blocks[i].inputs;
        p.outputs += blocks[i].outputs;
    }
    const size_t n = (size_t)p.states, in = (size_t)p.inputs, o = (size_t)p.outputs;
    double* A = crdi_arena_new(arena, n * n, sizeof *A);
    double* B = crdi_arena_new(arena, n * in, sizeof *B);
    double* C = crdi_arena_new(arena, o * n, sizeof *C);
    double* D = crdi_arena_new(arena, o * in, sizeof *D);
    if (!A || !B || !C || !D) { return CRD_E_MEMORY; }
    for (int i = 0, x = 0, u = 0, y = 0; i < count; i++) {
        const crd_plant* b = &blocks[i];
        put_block(A, b->A, x, b->states, x, b->states, p.states);
        put_block(B, b->B, x, b->states, u, b->inputs, p.inputs);
        put_block(C, b->C, y, b->outputs, x, b->states, p.states);
        put_block(D, b->D, y, b->outputs, u, b->inputs, p.inputs);
        x += b->states;
        u += b->inputs;
        y += b->outputs;
    }
    p.A = A;
    p.B = B;
    p.C = C;
    p.D = D;
    *out = p;
    return CRD_OK;
}

// Controllable canonical form of y = num / den u with one input and one output: x' = A x + e_n u,
// A with ones above its diagonal and -den / den_n in its last row, y = C x + d u with
// d = num_n / den_n and C_i = (num_i - d den_i) / den_n.
static crd_status realise(crd_arena* arena, const crd_transfer* t, crd_plant* out)
{
    const int n = t->den_degree;
    const double lead = t->den[n];
    double* A = crdi_arena_new(arena, (size_t)n * (size_t)n, sizeof *A);
    double* B = crdi_arena_new(arena, (size_t)n, sizeof *B);
    double* C = crdi_arena_new(arena, (size_t)n, sizeof *C);
    double* D = crdi_arena_new(arena, 1, sizeof *D);
    if (!A || !B || !C || !D) { return CRD_E_MEMORY; }
    D[0] = t->num_degree == n ? t->num[n] / lead : 0;
    for (int i = 0; i < n; i++) {
        if (i + 1 < n) { A[i * n + i + 1] = 1; }
        A[(n - 1) * n + i] = -t->den[i] / lead;
        C[i] = ((i <= t->num_degree ? t->num[i] : 0) - D[0] * t->den[i]) / lead;
        if (i == n - 1) { B[i] = 1; }
    }
    *out = (crd_plant){.states = n, .inputs = 1, .outputs = 1, .A = A, .B = B, .C = C, .D = D};
    return CRD_OK;
}

// The map over one macro step: transfer i feeds element i, which feeds transfer i + 1.
static crd_status sample_transfers(crd_loop_model* m)
{
    crd_status st = CRD_OK;
    const crd_loop* l = &m->loop;
    const int units = l->transfer_count;
    for (int i = 0; i < units; i++) {
        if (l->transfers[i].num_degree > l->transfers[i].den_degree) {
            m->no_map = "a transfer function alone is not proper; give units and links instead";
        }
    }
    if (l->element_count != units) {
        m->no_map = "it needs one element behind each transfer function";
    } else if (l->delay > 0) {
        m->no_map = "the loop has a delay in s";
    }
    if (m->no_map) { return CRD_OK; }
    crd_plant* blocks = crdi_arena_new(&m->arena, (size_t)units, sizeof *blocks);
    crd_plant_link* links = crdi_arena_new(&m->arena, (size_t)units, sizeof *links);
    if (!blocks || !links) { return CRD_E_MEMORY; }
    for (int i = 0; i < units; i++) {
        CRD_TRY(realise(&m->arena, &l->transfers[i], &blocks[i]));
        links[i] = (crd_plant_link){.from = i,
                                    .to = (i + 1) % units,
                                    .gain = i + 1 == units ? -1 : 1, // negative feedback
                                    .element = l->elements[i]};
    }
    CRD_TRY(crd_plant_stack(&m->arena, blocks, units, &m->sampled));
    m->sampled.links = links;
    m->sampled.link_count = units;
fail:
    return st;
}

crd_status crd_loop_model_finish(crd_loop_model* m)
{
    crd_status st = count_variants(m);
    if (st < 0) { return st; }
    if (!m->whole.link_count) { return sample_transfers(m); }
    for (int i = 0; i < m->whole.link_count; i++) {
        m->direct += !m->whole.links[i].element && m->whole.links[i].delay == 0;
    }
    m->reduced = m->whole;
    if (m->direct && m->direct < m->whole.link_count) {
        st = crd_plant_reduce(m->ctx, &m->arena, &m->whole, &m->reduced);
        if (st < 0) { return st; }
    }
    m->loop.network = &m->reduced;
    m->sampled = m->reduced;
    m->no_map = NULL;
    for (int i = 0; i < m->reduced.link_count; i++) {
        if (!m->reduced.links[i].element || m->reduced.links[i].delay > 0) {
            m->no_map = "a link has a delay in s, or no element";
        }
    }
    return CRD_OK;
}
