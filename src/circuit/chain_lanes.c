// How a chain is cut into lanes, and its factors. The sweeps are in chain_kernel.h.
#include "circuit/chain_lanes.h"

#include "circuit/chain.h"
#include "shared/base.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define SHORTEST 18    // nodes: below, all are kept, which is the plain elimination of Thomas
#define BLOCK 512      // rows of a block, if separators are apart then
#define BLOCK_FAR 2048 // otherwise
#define NOTHING 1e-19  // of what stands beside it: below rounding, however often

crd_status crdi_lane_new(crd_context* ctx, size_t doubles, crdi_lane_memory* out)
{
    crdi_lane_free(ctx, out);
    out->raw = crdi_new_array(ctx, doubles + 8, sizeof(double));
    if (!out->raw) { return CRD_E_MEMORY; }
    out->data = (double*)(((uintptr_t)out->raw + 63) & ~(uintptr_t)63);
    return CRD_OK;
}

void crdi_lane_free(crd_context* ctx, crdi_lane_memory* m)
{
    crd_free(ctx, m->raw);
    *m = (crdi_lane_memory){0};
}

int crdi_chain_best(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") ? 2 : __builtin_cpu_supports("avx2") ? 1 : 0;
#else
    return 0;
#endif
}

const char* crdi_chain_set_name(int set)
{
    return set == 2 ? "AVX-512" : set == 1 ? "AVX2" : "two lanes";
}

const crdi_lane_kernels* crdi_lane_choose(int wanted)
{
    const int best = crdi_chain_best(), set = wanted < 0 || wanted > best ? best : wanted;
#if defined(__x86_64__)
    if (set > 0) { return set == 1 ? &crdi_lane_kernels_avx2 : &crdi_lane_kernels_avx512; }
#endif
    (void)set;
    return &crdi_lane_kernels_base;
}

static int32_t smaller(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

crd_status crdi_lanes_init(crdi_lanes* p, crd_context* ctx, int32_t n)
{
    *p = (crdi_lanes){.ctx = ctx, .n = n, .kernels = crdi_lane_choose(-1)};
    p->rows = n < SHORTEST ? 0 : (n - 2) / CRDI_LANES;
    p->tail = n - 1 - p->rows * CRDI_LANES;
    const int32_t most = p->rows / BLOCK + 1;
    p->longest = smaller(p->rows, 2 * BLOCK_FAR);
    const size_t kept = CRDI_KEPT_HEAD + 1 + CRDI_LANES * (size_t)most + (size_t)p->tail;
    p->block = crdi_new_array(ctx, (size_t)most, sizeof *p->block);
    p->room = crdi_new_array(ctx, 4 * (size_t)p->longest, sizeof(double));
    if (!p->block || !p->room || crdi_lane_new(ctx, 5 * (kept + CRDI_LANES), &p->kept_memory) < 0) {
        crdi_lanes_clear(p);
        return CRD_E_MEMORY;
    }
    const size_t each = (kept + CRDI_LANES) & ~(size_t)(CRDI_LANES - 1);
    p->b = p->kept_memory.data;
    p->pl = p->b + each;
    p->pp = p->b + 2 * each;
    p->excess = p->b + 3 * each;
    p->link = p->b + 4 * each;
    return CRD_OK;
}

void crdi_lanes_clear(crdi_lanes* p)
{
    crdi_lane_free(p->ctx, &p->kept_memory);
    crdi_lane_free(p->ctx, &p->lp);
    crdi_lane_free(p->ctx, &p->fw);
    crdi_lane_free(p->ctx, &p->gab);
    crdi_lane_free(p->ctx, &p->glb);
    crdi_lane_free(p->ctx, &p->drive);
    crd_free(p->ctx, p->block);
    crd_free(p->ctx, p->room);
    p->block = NULL;
    p->room = NULL;
}

int32_t crdi_lanes_node(const crdi_lanes* p, const crdi_lane_block* b, int32_t row, int32_t lane)
{
    (void)p;
    return 1 + CRDI_LANES * b->first + lane * b->rows + row;
}

crdi_lane_place crdi_lanes_place(const crdi_lanes* p, int32_t node)
{
    crdi_lane_place at = {.kept = -1};
    const int32_t row = (node - 1) / CRDI_LANES; // among all
    if (node == 0) {
        at.kept = CRDI_KEPT_HEAD;
    } else if (row >= p->rows) {
        at.kept = CRDI_KEPT_HEAD + node - CRDI_LANES * (p->rows - p->blocks);
    } else {
        at.block = (int32_t)((int64_t)row * p->blocks / p->rows);
        while (p->block[at.block].first > row) {
            at.block--;
        }
        while (at.block + 1 < p->blocks && p->block[at.block + 1].first <= row) {
            at.block++;
        }
        const crdi_lane_block* b = &p->block[at.block];
        const int32_t inside = node - 1 - CRDI_LANES * b->first;
        at.lane = inside / b->rows;
        at.row = inside % b->rows;
    }
    return at;
}

// ---- cutting -----------------------------------------------------------------------------------

static void cut(crdi_lanes* p, int32_t block_rows)
{
    const int32_t blocks = p->rows == 0 ? 0 : (p->rows + block_rows - 1) / block_rows;
    int32_t first = 0;
    for (int32_t k = 0; k < blocks; k++) { // as equal as can be
        const int32_t end = (int32_t)((int64_t)p->rows * (k + 1) / blocks);
        p->block[k] = (crdi_lane_block){.first = first, .rows = end - first};
        first = end;
    }
    p->blocks = blocks;
    p->kept = CRDI_KEPT_HEAD + 1 + CRDI_LANES * blocks + p->tail;
}

static bool same_node(const crdi_lane_matrix* m, int32_t a, int32_t b)
{
    return m->c[a - 1] == m->c[b - 1] && m->s[a] == m->s[b] &&
           (!m->g ||
            (m->g[a] == m->g[b] && m->alpha[a] == m->alpha[b] && m->beta[a] == m->beta[b])) &&
           (!m->link_beta || m->link_beta[a] == m->link_beta[b]);
}

// All nodes of a block have the same branch, and the same link on the left
static bool equal(const crdi_lane_matrix* m, int32_t from, int32_t to)
{
    for (int32_t k = from + 1; k < to; k++) {
        if (!same_node(m, k, from)) { return false; }
    }
    return true;
}

static void sort_blocks(crdi_lanes* p, const crdi_lane_matrix* m)
{
    int32_t next = 0;
    for (int32_t k = 0; k < p->blocks; k++) {
        crdi_lane_block* b = &p->block[k];
        const int32_t from = crdi_lanes_node(p, b, 0, 0), to = from + CRDI_LANES * b->rows;
        while (next < m->driven_count && m->driven[next] < from) {
            next++;
        }
        if (next < m->driven_count && m->driven[next] < to) {
            b->mode = CRDI_LANES_DRIVEN;
        } else {
            b->mode = equal(m, from, to) ? CRDI_LANES_EQUAL : CRDI_LANES_OWN;
        }
    }
}

// The block before that has the same factors, or NULL
static const crdi_lane_block* twin(const crdi_lanes* p, const crdi_lane_matrix* m, int32_t block)
{
    const crdi_lane_block* b = &p->block[block];
    const int32_t node = crdi_lanes_node(p, b, 0, 0);
    for (int32_t k = block - 1; k >= 0 && k >= block - 2; k--) { // lengths differ by one at most
        const crdi_lane_block* other = &p->block[k];
        const int32_t like = crdi_lanes_node(p, other, 0, 0);
        if (b->mode == CRDI_LANES_EQUAL && other->mode == CRDI_LANES_EQUAL &&
            b->rows == other->rows && same_node(m, node, like)) {
            return other;
        }
    }
    return NULL;
}

// Memory for the factors: own rows have eight numbers each, equal ones one.
static crd_status chain_lanes_make_room(crdi_lanes* p, const crdi_lane_matrix* m)
{
    size_t numbers = 0, branches = 0, links = 0, driven = 0;
    for (int32_t k = 0; k < p->blocks; k++) {
        const crdi_lane_block* b = &p->block[k];
        const size_t rows = (size_t)b->rows;
        if (b->mode == CRDI_LANES_EQUAL) {
            if (!twin(p, m, k)) {
                numbers += (2 * rows + CRDI_LANES) & ~(size_t)(CRDI_LANES - 1);
                branches += CRDI_LANES;
                links += CRDI_LANES;
            }
        } else {
            numbers += 2 * rows * CRDI_LANES;
            branches += 3 * rows * CRDI_LANES;
            links += 2 * rows * CRDI_LANES;
            driven += b->mode == CRDI_LANES_DRIVEN ? 2 * rows * CRDI_LANES : 0;
        }
    }
    crd_status st = CRD_OK;
    CRD_TRY(crdi_lane_new(p->ctx, numbers, &p->lp));
    CRD_TRY(crdi_lane_new(p->ctx, numbers, &p->fw));
    if (m->g) { CRD_TRY(crdi_lane_new(p->ctx, branches, &p->gab)); }
    if (m->link_beta) { CRD_TRY(crdi_lane_new(p->ctx, links, &p->glb)); }
    if (m->g) { CRD_TRY(crdi_lane_new(p->ctx, driven, &p->drive)); }
fail:
    return st;
}

static void give_room(crdi_lanes* p, const crdi_lane_matrix* m)
{
    double *lp = p->lp.data, *fw = p->fw.data, *gab = p->gab.data, *glb = p->glb.data;
    double* drive = p->drive.data;
    for (int32_t k = 0; k < p->blocks; k++) {
        crdi_lane_block* b = &p->block[k];
        const size_t rows = (size_t)b->rows;
        const crdi_lane_block* like = twin(p, m, k);
        const bool shared = b->mode == CRDI_LANES_EQUAL;
        b->lp = like ? like->lp : lp;
        b->fw = like ? like->fw : fw;
        b->gab = like ? like->gab : gab;
        b->glb = !m->link_beta ? NULL : like ? like->glb : glb;
        b->drive = b->mode == CRDI_LANES_DRIVEN ? drive : NULL;
        if (like) { continue; }
        const size_t numbers =
            shared ? (2 * rows + CRDI_LANES) & ~(size_t)(CRDI_LANES - 1) : 2 * rows * CRDI_LANES;
        lp += numbers;
        fw += numbers;
        if (m->g) { gab += shared ? CRDI_LANES : 3 * rows * CRDI_LANES; }
        if (m->link_beta) { glb += shared ? CRDI_LANES : 2 * rows * CRDI_LANES; }
        if (b->drive) { drive += 2 * rows * CRDI_LANES; }
    }
}

// ---- factors -----------------------------------------------------------------------------------

static bool enough(const crdi_lane_matrix* m, double pivot, double diagonal)
{
    return pivot > 0 && pivot > m->least * diagonal && pivot <= DBL_MAX;
}

// One lane into room: l, 1/p, f/p, w; the chain of kept nodes gets what the lane leaves of itself.
// -1, or the node without a positive pivot.
static int32_t factor_lane(crdi_lanes* p, const crdi_lane_matrix* m, int32_t node, int32_t rows,
                           int32_t left, int32_t* reach)
{
    double *l = p->room, *pp = l + p->longest, *f = l + 2 * p->longest, *w = l + 3 * p->longest;
    const double *s = m->s + node, *c = m->c + node; // c[-1] is the link to the left
    double x = s[0], far = c[-1];
    l[0] = 0;
    for (int32_t r = 0; r + 1 < rows; r++) {
        const double pivot = x + far + c[r];
        if (!enough(m, pivot, s[r] + c[r - 1] + c[r])) { return node + r; }
        pp[r] = 1 / pivot;
        f[r] = far / pivot;
        l[r + 1] = c[r] / pivot;
        x = s[r + 1] + l[r + 1] * x;
        far *= l[r + 1];
    }
    pp[rows - 1] = 0;         // the separator's is among the kept
    p->excess[left + 1] += x; // with its own s
    p->link[left] = far;
    w[rows - 1] = 0;
    double sum = 0;
    *reach = 0;
    for (int32_t r = rows - 2; r >= 0; r--) {
        w[r] = f[r] + l[r + 1] * w[r + 1];
        sum += w[r] * s[r];
        if (*reach == 0 &&
            !(fabs(f[r]) <= NOTHING && fabs(w[r]) <= NOTHING * fabs(c[-1] * pp[r]))) {
            *reach = r + 1;
        }
    }
    p->excess[left] += sum;
    return -1;
}

static void put_lane(const crdi_lanes* p, crdi_lane_block* b, int32_t lane,
                     const crdi_lane_matrix* m)
{
    const double *l = p->room, *pp = l + p->longest, *f = l + 2 * p->longest,
                 *w = l + 3 * p->longest;
    const size_t each = b->mode == CRDI_LANES_EQUAL ? 1 : CRDI_LANES;
    const size_t offset = (size_t)lane;
    double *lp = (double*)b->lp + offset, *fw = (double*)b->fw + offset;
    for (size_t r = 0; r < (size_t)b->rows; r++) {
        lp[2 * r * each] = l[r];
        lp[(2 * r + 1) * each] = pp[r];
        fw[2 * r * each] = f[r];
        fw[(2 * r + 1) * each] = w[r];
    }
    if (!m->g) { return; }
    const size_t node = (size_t)crdi_lanes_node(p, b, 0, lane);
    double *gab = (double*)b->gab + offset, *glb = m->link_beta ? (double*)b->glb + offset : NULL;
    for (size_t r = 0; r < (each == 1 ? 1 : (size_t)b->rows); r++) {
        gab[3 * r * each] = m->g[node + r];
        gab[(3 * r + 1) * each] = m->alpha[node + r];
        gab[(3 * r + 2) * each] = m->beta[node + r];
        if (!glb) { continue; }
        glb[2 * r * each] = m->c[node + r - 1];
        glb[(2 * r + 1) * each] = m->link_beta[node + r];
    }
}

static int32_t factor_block(crdi_lanes* p, const crdi_lane_matrix* m, int32_t block)
{
    crdi_lane_block* b = &p->block[block];
    const crdi_lane_block* like = twin(p, m, block);
    b->reach = 0;
    for (int32_t lane = 0; lane < CRDI_LANES; lane++) {
        const int32_t left = CRDI_KEPT_HEAD + CRDI_LANES * block + lane;
        int32_t reach = 0;
        const int32_t node = crdi_lanes_node(p, b, 0, lane);
        const int32_t bad = factor_lane(p, m, node, b->rows, left, &reach);
        if (bad >= 0) { return bad; }
        if (reach > b->reach) { b->reach = reach; }
        if (b->mode != CRDI_LANES_EQUAL || (lane == 0 && !like)) { put_lane(p, b, lane, m); }
    }
    return -1;
}

static int32_t kept_node(const crdi_lanes* p, int32_t place)
{
    const int32_t k = place - CRDI_KEPT_HEAD, separators = CRDI_LANES * p->blocks;
    if (k <= 0) { return 0; }
    if (k > separators) { return k - separators + CRDI_LANES * p->rows; }
    const crdi_lane_block* b = &p->block[(k - 1) / CRDI_LANES];
    return crdi_lanes_node(p, b, b->rows - 1, (k - 1) % CRDI_LANES);
}

// The chain of the kept nodes; what they have of themselves is there already for the separators.
static int32_t factor_kept(crdi_lanes* p, const crdi_lane_matrix* m)
{
    const int32_t head = CRDI_KEPT_HEAD, last = head + CRDI_LANES * p->blocks; // separator, or head
    p->excess[head] += m->s[0];
    for (int32_t k = last + 1; k < p->kept; k++) {
        p->excess[k] = m->s[kept_node(p, k)];
    }
    for (int32_t k = last; k + 1 < p->kept; k++) {
        p->link[k] = m->c[kept_node(p, k)];
    }
    p->link[p->kept - 1] = 0;
    p->apart = true;
    for (int32_t k = head; k < last; k++) {
        const double least = fmin(fabs(p->excess[k]), fabs(p->excess[k + 1]));
        p->apart = p->apart && fabs(p->link[k]) <= NOTHING * least;
    }
    double x = p->excess[head];
    p->pl[head] = 0;
    for (int32_t k = head; k < p->kept; k++) {
        const double pivot = x + p->link[k];
        const int32_t node = kept_node(p, k);
        const double left = node > 0 ? m->c[node - 1] : 0, right = node + 1 < p->n ? m->c[node] : 0;
        if (!enough(m, pivot, m->s[node] + left + right)) { return node; }
        p->pp[k] = 1 / pivot;
        p->pl[k + 1] = p->link[k] / pivot;
        if (k + 1 < p->kept) { x = p->excess[k + 1] + p->pl[k + 1] * x; }
    }
    return -1;
}

crd_status crdi_lanes_factor(crdi_lanes* p, const crdi_lane_matrix* m, int32_t* bad)
{
    *bad = -1;
    for (int attempt = 0; attempt < 2; attempt++) {
        cut(p, attempt == 0 ? BLOCK : BLOCK_FAR);
        sort_blocks(p, m);
        if (chain_lanes_make_room(p, m) < 0) { return CRD_E_MEMORY; }
        give_room(p, m);
        memset(p->excess, 0, (size_t)p->kept * sizeof *p->excess);
        for (int32_t k = 0; k < p->blocks && *bad < 0; k++) {
            *bad = factor_block(p, m, k);
        }
        if (*bad < 0) { *bad = factor_kept(p, m); }
        if (*bad >= 0) { return CRD_E_RANGE; }
        if (p->apart || p->blocks < 2) { break; }
    }
    return CRD_OK;
}

// The chain of the kept nodes from this place on: b becomes v.
static void solve_kept(crdi_lanes* p, int32_t from)
{
    double* b = p->b;
    for (int32_t k = from + 1; k < p->kept; k++) {
        b[k] += p->pl[k] * b[k - 1];
    }
    double v = 0;
    for (int32_t k = p->kept - 1; k >= from; k--) {
        v = p->pp[k] * b[k] + p->pl[k + 1] * v;
        b[k] = v;
    }
}

void crdi_lanes_solve(crdi_lanes* p, void (*forward)(void* self, int32_t block),
                      void (*backward)(void* self, int32_t block), void* self)
{
    if (!p->apart || p->blocks < 2) {
        for (int32_t k = 0; k < p->blocks; k++) {
            forward(self, k);
        }
        solve_kept(p, CRDI_KEPT_HEAD);
        for (int32_t k = 0; k < p->blocks; k++) {
            backward(self, k);
        }
        return;
    }
    forward(self, 0);
    p->b[CRDI_KEPT_HEAD] *= p->pp[CRDI_KEPT_HEAD];
    for (int32_t k = 0; k < p->blocks; k++) {
        const int32_t first = CRDI_KEPT_HEAD + 1 + CRDI_LANES * k;
        if (k + 1 < p->blocks) {
            forward(self, k + 1);
            for (int32_t j = first; j < first + CRDI_LANES; j++) {
                p->b[j] *= p->pp[j];
            }
        } else {
            solve_kept(p, first);
        }
        backward(self, k);
    }
}
