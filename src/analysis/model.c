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
        crd_linears_clear(&m->elements[i].linears);
    }
    crd_free(m->ctx, m->elements);
    crd_arena_clear(&m->arena);
    *m = (crd_loop_model){0};
}

// ---- elements ----------------------------------------------------------------------------------

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
    const crd_status st = crd_linears_make(e, step, k, &x->linears);
    if (st < 0) { return st; }
    m->element_count++;
    *x->current = x->linears.linear[0];
    *out = x->current;
    return CRD_OK;
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
