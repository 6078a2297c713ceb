// A symmetric tridiagonal matrix in lanes (chain_lanes.h), with right-hand sides in natural order.
#include "circuit/chain.h"
#include "shared/base.h"

#include "circuit/chain_lanes.h"

// The neighbours of an unknown, -1: none
static bool add_neighbour(int32_t* two, int32_t other)
{
    for (int k = 0; k < 2; k++) {
        if (two[k] == other) { return true; }
        if (two[k] < 0) {
            two[k] = other;
            return true;
        }
    }
    return false;
}

// Along the paths from their ends; what is not met lies on rings.
static int32_t chain_walk(int32_t n, int32_t* near, int32_t* order)
{
    int32_t count = 0;
    for (int32_t end = 0; end < n; end++) {
        if (near[2 * end] == -2 || near[2 * end + 1] >= 0) { continue; }
        int32_t before = -1, at = end;
        while (at >= 0) {
            const int32_t a = near[2 * at], b = near[2 * at + 1];
            order[count++] = at;
            near[2 * at] = -2; // was here
            const int32_t next = a == before ? b : a;
            before = at;
            at = next;
        }
    }
    return count;
}

crd_status crdi_chain_order(crd_context* ctx, int32_t n, size_t count, const int32_t* rows,
                            const int32_t* columns, int32_t* order, bool* is)
{
    *is = false;
    int32_t* near = crdi_new_array(ctx, 2 * (size_t)n, sizeof *near);
    if (!near) { return CRD_E_MEMORY; }
    for (size_t k = 0; k < 2 * (size_t)n; k++) {
        near[k] = -1;
    }
    bool narrow = true;
    for (size_t k = 0; k < count && narrow; k++) {
        narrow = rows[k] == columns[k] || add_neighbour(near + 2 * rows[k], columns[k]);
    }
    *is = narrow && chain_walk(n, near, order) == n;
    crd_free(ctx, near);
    return CRD_OK;
}

struct crdi_chain {
    crd_context* ctx;
    crdi_lanes lanes;
    crdi_lane_memory x;
    double *s, *c; // (n)
    double* b;     // of the caller, while it is solved
};

crd_status crdi_chain_create(crd_context* ctx, int32_t n, crdi_chain** out)
{
    crd_status st = CRD_OK;
    crdi_chain* c = crdi_new(ctx, sizeof *c);
    if (!c) { return CRD_E_MEMORY; }
    c->ctx = ctx;
    c->lanes.ctx = ctx;
    CRD_TRY(crdi_lanes_init(&c->lanes, ctx, n));
    // twice the larger one of two blocks may be one row more than all rows
    CRD_TRY(crdi_lane_new(ctx, CRDI_LANES * ((size_t)c->lanes.rows + 1), &c->x));
    c->s = crdi_new_array(ctx, 2 * (size_t)n, sizeof(double));
    if (!c->s) {
        st = CRD_E_MEMORY;
        goto fail;
    }
    c->c = c->s + n;
    *out = c;
    return CRD_OK;
fail:
    crdi_chain_destroy(c);
    return st;
}

void crdi_chain_destroy(crdi_chain* c)
{
    if (!c) { return; }
    crdi_lanes_clear(&c->lanes);
    crdi_lane_free(c->ctx, &c->x);
    crd_free(c->ctx, c->s);
    crd_free(c->ctx, c);
}

crd_status crdi_chain_factor(crdi_chain* c, const double* d, const double* e)
{
    crdi_lanes* p = &c->lanes;
    const int32_t n = p->n;
    for (int32_t k = 0; k < n; k++) {
        const long double left = k > 0 ? e[k - 1] : 0, right = k + 1 < n ? e[k] : 0;
        c->s[k] = (double)(d[k] + left + right); // without losing the little that is left
        c->c[k] = (double)-right;
    }
    const crdi_lane_matrix m = {.s = c->s, .c = c->c, .least = 1e-14};
    int32_t bad = -1;
    const crd_status st = crdi_lanes_factor(p, &m, &bad);
    if (st == CRD_E_RANGE) {
        return crdi_fail(c->ctx, st, "chain: the pivot of row %d (diagonal %g) is not positive",
                         (int)bad, d[bad]);
    }
    if (st < 0) { return st; }
    // Two blocks are at work at a time if that is enough.
    size_t largest = 0;
    for (int32_t k = 0; k < p->blocks; k++) {
        if ((size_t)p->block[k].rows > largest) { largest = (size_t)p->block[k].rows; }
    }
    for (int32_t k = 0; k < p->blocks; k++) {
        const size_t row = p->apart ? (size_t)(k & 1) * largest : (size_t)p->block[k].first;
        p->block[k].x = c->x.data + CRDI_LANES * row;
    }
    return CRD_OK;
}

static void forward(void* self, int32_t block)
{
    crdi_chain* c = self;
    const crdi_lanes* p = &c->lanes;
    const crdi_lane_block* b = &p->block[block];
    double* right = crdi_lanes_right(p, block);
    p->kernels->pack(c->b + crdi_lanes_node(p, b, 0, 0), b->rows, b->x);
    p->kernels->chain_forward[b->mode](b, NULL, right - 1, right);
}

static void backward(void* self, int32_t block)
{
    crdi_chain* c = self;
    const crdi_lanes* p = &c->lanes;
    const crdi_lane_block* b = &p->block[block];
    const double* right = crdi_lanes_right(p, block);
    p->kernels->chain_backward[b->mode](b, NULL, right - 1, right);
    p->kernels->unpack(b->x, b->rows, c->b + crdi_lanes_node(p, b, 0, 0));
}

void crdi_chain_solve(crdi_chain* c, double* b)
{
    crdi_lanes* p = &c->lanes;
    double* tail = p->b + p->kept - p->tail;
    const double* from = b + p->n - p->tail;
    p->b[CRDI_KEPT_HEAD] = b[0];
    for (int32_t k = 0; k < p->tail; k++) {
        tail[k] = from[k];
    }
    c->b = b;
    crdi_lanes_solve(p, forward, backward, c);
    b[0] = p->b[CRDI_KEPT_HEAD];
    for (int32_t k = 0; k < p->tail; k++) {
        b[p->n - p->tail + k] = tail[k];
    }
}

void crdi_chain_use(crdi_chain* c, int set)
{
    c->lanes.kernels = crdi_lane_choose(set);
}
