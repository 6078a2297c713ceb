// A ladder in lanes (chain_lanes.h). The formulas of the branches stand in chain_kernel.h; here are
// the same for node 0 and the tail, and the way in and out.
#include "circuit/chain.h"
#include "circuit/chain_lanes.h"
#include "shared/base.h"

#include <string.h>

enum { WIDEST = 12 }; // numbers of state per node: BDF3 with links

struct crdi_ladder {
    crd_arena arena; // of all but the lanes and x, which factoring makes anew
    crdi_lanes lanes;
    int method, width;            // width: numbers of state per node
    bool linked;                  // links have inductors
    crdi_lane_past past;          // of the last step
    double *s, *g, *alpha, *beta; // (n)
    double *gl, *bl;              // (n + 1) g and beta of the links, from the left of a node
    bool* branch;                 // (n)
    int32_t* driven;
    int32_t driven_count;
    crdi_lane_memory x; // of the nodes in blocks
    // node 0 and the tail, and link n
    double* end;       // (ends + 1) x WIDEST
    double* end_drive; // (ends x 2) current, potential; 2 potentials beyond links 0 and n
    int32_t ends;
    double** drive; // (driven_count) where the current is; the potential is `drive_stride` after it
    uint8_t* drive_stride;
};

static const double gamma_of[4] = {0, 1, 3.0 / 2, 11.0 / 6};
static const double weights[4][3] = {
    {0}, {1}, {2, -1.0 / 2}, {3, -3.0 / 2, 1.0 / 3}}; // of past values

static size_t end_numbers(const crdi_ladder* l)
{
    return (WIDEST + 2) * ((size_t)l->ends + 1);
}

static crd_status create_arrays(crdi_ladder* l, int32_t n, const int32_t* driven)
{
    crd_arena* a = &l->arena;
    if (crdi_lanes_init(&l->lanes, a->ctx, n) < 0) { return CRD_E_MEMORY; }
    l->ends = 1 + l->lanes.tail;
    const size_t count = (size_t)l->driven_count;
    l->s = crdi_arena_new(a, 6 * (size_t)n + 2, sizeof(double));
    l->branch = crdi_arena_new(a, (size_t)n, sizeof *l->branch);
    l->driven = crdi_arena_new(a, count, sizeof *l->driven);
    l->drive = crdi_arena_new(a, count, sizeof *l->drive);
    l->drive_stride = crdi_arena_new(a, count, sizeof *l->drive_stride);
    l->end = crdi_arena_new(a, end_numbers(l), sizeof(double));
    if (a->failed) { return CRD_E_MEMORY; }
    l->g = l->s + n;
    l->alpha = l->s + 2 * (size_t)n;
    l->beta = l->s + 3 * (size_t)n;
    l->gl = l->s + 4 * (size_t)n;
    l->bl = l->gl + n + 1;
    l->end_drive = l->end + WIDEST * ((size_t)l->ends + 1);
    if (count > 0) { memcpy(l->driven, driven, count * sizeof *driven); }
    return CRD_OK;
}

crd_status crdi_ladder_create(crd_context* ctx, int32_t n, const int32_t* driven,
                              int32_t driven_count, crdi_ladder** out)
{
    crdi_ladder* l = crdi_new(ctx, sizeof *l);
    if (!l) { return CRD_E_MEMORY; }
    crd_arena_init(&l->arena, ctx);
    l->lanes.ctx = ctx;
    l->driven_count = driven_count;
    if (create_arrays(l, n, driven) < 0) {
        crdi_ladder_destroy(l);
        return CRD_E_MEMORY;
    }
    *out = l;
    return CRD_OK;
}

void crdi_ladder_destroy(crdi_ladder* l)
{
    if (!l) { return; }
    crdi_lanes_clear(&l->lanes);
    crdi_lane_free(l->arena.ctx, &l->x);
    crd_arena_clear(&l->arena);
    crd_free(l->arena.ctx, l);
}

// ---- factors -----------------------------------------------------------------------------------

// Links with inductors: i = g (v_left - v + u), g = 1 / (R + beta / 2), beta = 4 L / h with TR,
// g = 1 / (R + gamma beta), beta = L / h with BDF (chain_kernel.h); the others: g is their own.
static void link_companions(crdi_ladder* l, const crdi_ladder_parts* parts, double h)
{
    l->linked = false;
    for (int32_t k = 0; k <= l->lanes.n; k++) {
        const bool has = parts->link_l && parts->link_l[k] > 0;
        l->gl[k] = parts->link[k];
        l->bl[k] = 0;
        if (!has) { continue; }
        l->linked = true;
        l->bl[k] = parts->link_l[k] / h * (l->method == CRDI_LADDER_TR ? 4 : 1);
        l->gl[k] = 1 / (parts->link_r[k] +
                        l->bl[k] * (l->method == CRDI_LADDER_TR ? 0.5 : gamma_of[l->method]));
    }
}

// Companion values of the branches, v - E = i / g + history (chain_kernel.h):
//     TR:  alpha = h S,          beta = 4 L / h,   1 / g = R + alpha / 2 + beta / 2
//     BDF: alpha = h S / gamma,  beta = L / h,     1 / g = R + alpha + gamma beta
// s is what holds a node, in S: shunts, outer links and its branch. A node without one has a branch
// that carries nothing and stores its voltage: g = 1, never part of the matrix.
static crd_status companions(crdi_ladder* l, const crdi_ladder_parts* parts, double h)
{
    const int32_t n = l->lanes.n;
    const double gamma = gamma_of[l->method];
    for (int32_t k = 0; k < n; k++) {
        l->branch[k] = parts->branch[k];
        l->s[k] = parts->shunt[k] + (k == 0 ? l->gl[0] : 0) + (k + 1 == n ? l->gl[n] : 0);
        if (!parts->branch[k]) {
            l->g[k] = 1;
            l->alpha[k] = l->beta[k] = 0;
            continue;
        }
        double z = parts->r[k];
        if (l->method == CRDI_LADDER_TR) {
            l->alpha[k] = h * parts->s[k];
            l->beta[k] = 4 * parts->l[k] / h;
            z += (l->alpha[k] + l->beta[k]) / 2;
        } else {
            l->alpha[k] = h * parts->s[k] / gamma;
            l->beta[k] = parts->l[k] / h;
            z += l->alpha[k] + gamma * l->beta[k];
        }
        l->g[k] = 1 / z;
        if (!(z > 0) || !(l->g[k] > 0)) {
            return crdi_fail(l->arena.ctx, CRD_E_RANGE,
                             "ladder: the branch at node %d has R = %g, L = %g, 1/C = %g, expected "
                             "at least one above 0",
                             (int)k, parts->r[k], parts->l[k], parts->s[k]);
        }
        l->s[k] += l->g[k];
    }
    return CRD_OK;
}

// Number of node 0 (0) or of a node of the tail (1 ..) among the ends
static int32_t end_of(const crdi_ladder* l, int32_t kept)
{
    return kept == CRDI_KEPT_HEAD ? 0 : kept - (l->lanes.kept - l->lanes.tail) + 1;
}
static int32_t end_node(const crdi_ladder* l, int32_t end)
{
    return end == 0 ? 0 : l->lanes.n - l->lanes.tail + end - 1;
}
static int32_t end_kept(const crdi_ladder* l, int32_t end)
{
    return end == 0 ? CRDI_KEPT_HEAD : l->lanes.kept - l->lanes.tail + end - 1;
}

static void place_drives(crdi_ladder* l)
{
    for (int32_t k = 0; k < l->driven_count; k++) {
        const crdi_lane_place at = crdi_lanes_place(&l->lanes, l->driven[k]);
        if (at.kept >= 0) {
            l->drive[k] = l->end_drive + 2 * (size_t)end_of(l, at.kept);
            l->drive_stride[k] = 1;
        } else {
            l->drive[k] =
                l->lanes.block[at.block].drive + 2 * CRDI_LANES * (size_t)at.row + (size_t)at.lane;
            l->drive_stride[k] = CRDI_LANES;
        }
    }
}

crd_status crdi_ladder_factor(crdi_ladder* l, const crdi_ladder_parts* parts,
                              crdi_ladder_method method, double step)
{
    crd_status st = CRD_OK;
    crdi_lanes* p = &l->lanes;
    l->method = (int)method;
    link_companions(l, parts, step);
    const int width =
        method == CRDI_LADDER_TR ? 3 + 2 * l->linked : (2 + l->linked) * ((int)method + 1);
    if (width != l->width) {
        CRD_TRY(crdi_lane_new(l->arena.ctx, CRDI_LANES * (size_t)p->rows * (size_t)width, &l->x));
        l->width = width;
    }
    CRD_TRY(companions(l, parts, step));
    const crdi_lane_matrix m = {.s = l->s,
                                .c = l->gl + 1,
                                .g = l->g,
                                .alpha = l->alpha,
                                .beta = l->beta,
                                .link_beta = l->linked ? l->bl : NULL,
                                .driven = l->driven,
                                .driven_count = l->driven_count};
    int32_t bad = -1;
    st = crdi_lanes_factor(p, &m, &bad);
    if (st == CRD_E_RANGE) {
        return crdi_fail(l->arena.ctx, st, "ladder: nothing holds node %d", (int)bad);
    }
    if (st < 0) { goto fail; }
    for (int32_t k = 0; k < p->blocks; k++) {
        p->block[k].x = l->x.data + CRDI_LANES * (size_t)p->block[k].first * (size_t)width;
    }
    place_drives(l);
    l->past = (crdi_lane_past){.fresh = 0, .old = {1, 2, 3}};
    for (int k = 0; k < l->method; k++) {
        l->past.c[k] = weights[l->method][k];
        l->past.cg[k] = weights[l->method][k] / gamma_of[l->method];
    }
    return CRD_OK;
fail:
    l->width = l->x.raw ? l->width : 0;
    return st;
}

int crdi_ladder_levels(const crdi_ladder* l)
{
    return l->method == CRDI_LADDER_TR ? 1 : l->method;
}

// ---- steps -------------------------------------------------------------------------------------

void crdi_ladder_drive(crdi_ladder* l, int32_t which, double current, double potential)
{
    l->drive[which][0] = current;
    l->drive[which][l->drive_stride[which]] = l->branch[l->driven[which]] ? potential : 0;
}

void crdi_ladder_outer(crdi_ladder* l, double left, double right)
{
    l->end_drive[2 * l->ends] = left;
    l->end_drive[2 * l->ends + 1] = right;
}

static double* end_at(const crdi_ladder* l, int32_t end)
{
    return l->end + WIDEST * (size_t)end;
}

// v - E = i / g + h at the end of the step that `past` describes; *vc: of the capacitor, without i
static double past_of(const crdi_ladder* l, const double* x, size_t stride, int32_t node,
                      double* vc)
{
    if (l->method == CRDI_LADDER_TR) {
        *vc = x[0];
        return x[0] - x[stride];
    }
    double i = 0;
    *vc = 0;
    for (int k = 0; k < l->method; k++) {
        const double* level = x + 2 * (size_t)l->past.old[k] * stride;
        i += l->past.c[k] * level[0];
        *vc += l->past.cg[k] * level[stride];
    }
    return *vc - l->beta[node] * i;
}

// Where the state of a link begins: a and i, or its currents level by level
static size_t link_first(const crdi_ladder* l)
{
    return l->method == CRDI_LADDER_TR ? 3 : 2 * ((size_t)l->method + 1);
}
static size_t link_current(const crdi_ladder* l) // of the newest current
{
    return link_first(l) + (l->method == CRDI_LADDER_TR ? 1 : (size_t)l->past.fresh);
}

// Across the link is i / g - u; x: state of the node on its right
static double link_past(const crdi_ladder* l, const double* x, size_t stride, int32_t link)
{
    x += link_first(l) * stride;
    if (l->method == CRDI_LADDER_TR) { return x[0]; }
    double i = 0;
    for (int k = 0; k < l->method; k++) {
        i += l->past.c[k] * x[(size_t)l->past.old[k] * stride];
    }
    return l->bl[link] * i;
}

static void forward(void* self, int32_t block)
{
    const crdi_ladder* l = self;
    const crdi_lane_block* b = &l->lanes.block[block];
    double* right = crdi_lanes_right(&l->lanes, block);
    l->lanes.kernels->forward[l->method][l->linked][b->mode](b, &l->past, right - 1, right);
    if (l->linked && block + 1 == l->lanes.blocks) { // what the tail takes from the last one
        right[CRDI_LANES - 1] -=
            l->gl[end_node(l, 1)] * link_past(l, end_at(l, 1), 1, end_node(l, 1));
    }
}

static void backward(void* self, int32_t block)
{
    const crdi_ladder* l = self;
    const crdi_lane_block* b = &l->lanes.block[block];
    const double* right = crdi_lanes_right(&l->lanes, block);
    l->lanes.kernels->backward[l->method][l->linked][b->mode](b, &l->past, right - 1, right);
}

// Number of the link on the left of an end; that of `ends` is n
static int32_t end_link(const crdi_ladder* l, int32_t end)
{
    return end == l->ends ? l->lanes.n : end_node(l, end);
}

// Right-hand sides of node 0 and the tail, A: g (h + E) of their branch and what drives them; of
// links with inductors the known current g u enters the node on the right and leaves the left one.
static void load_ends(crdi_ladder* l)
{
    for (int32_t k = 0; k < l->ends; k++) {
        const int32_t node = end_node(l, k);
        double vc = 0;
        const double h = past_of(l, end_at(l, k), 1, node, &vc);
        l->lanes.b[end_kept(l, k)] =
            l->g[node] * (h + l->end_drive[2 * k + 1]) + l->end_drive[2 * k];
    }
    for (int32_t k = 0; k <= l->ends && l->linked; k++) {
        const int32_t link = end_link(l, k);
        const double known = l->gl[link] * link_past(l, end_at(l, k), 1, link);
        if (k < l->ends) { l->lanes.b[end_kept(l, k)] += known; }
        // that between the blocks and the tail is taken from a separator, when it is there
        if (k > 0 && !(k == 1 && l->lanes.blocks > 0)) { l->lanes.b[end_kept(l, k - 1)] -= known; }
    }
}

// i = g (v_left - v + u), and with TR a <- beta i - a
static void move_links(crdi_ladder* l)
{
    const double *v = l->lanes.b, *outer = l->end_drive + 2 * (size_t)l->ends;
    for (int32_t k = 0; k <= l->ends; k++) {
        const int32_t link = end_link(l, k);
        const double left = k == 0         ? outer[0]
                            : k == l->ends ? v[end_kept(l, k - 1)]
                                           : v[end_kept(l, k) - 1];
        const double across = left - (k == l->ends ? outer[1] : v[end_kept(l, k)]);
        double* x = end_at(l, k);
        const double u = link_past(l, x, 1, link), i = l->gl[link] * (across + u);
        if (l->method == CRDI_LADDER_TR) { x[link_first(l)] = l->bl[link] * i - u; }
        x[link_current(l)] = i;
    }
}

// i = g (v - E - h); with TR q <- q + alpha i, a <- beta i - a; with BDF vC = vc + alpha i
static void move_ends(crdi_ladder* l)
{
    for (int32_t k = 0; k < l->ends; k++) {
        const int32_t node = end_node(l, k);
        double* x = end_at(l, k);
        double vc = 0;
        const double h = past_of(l, x, 1, node, &vc) + l->end_drive[2 * k + 1];
        const double i = l->g[node] * (l->lanes.b[end_kept(l, k)] - h);
        if (l->method == CRDI_LADDER_TR) {
            x[0] = vc + l->alpha[node] * i;
            x[1] = l->beta[node] * i - x[1];
            x[2] = i;
        } else {
            x[2 * l->past.fresh] = i;
            x[2 * l->past.fresh + 1] = vc + l->alpha[node] * i;
        }
    }
    if (l->linked) { move_links(l); }
}

void crdi_ladder_step(crdi_ladder* l)
{
    if (l->method != CRDI_LADDER_TR) { // the oldest level makes room
        crdi_lane_past* p = &l->past;
        const int fresh = p->old[l->method - 1];
        for (int k = l->method - 1; k > 0; k--) {
            p->old[k] = p->old[k - 1];
        }
        p->old[0] = p->fresh;
        p->fresh = fresh;
    }
    load_ends(l);
    crdi_lanes_solve(&l->lanes, forward, backward, l);
    move_ends(l);
}

// ---- in and out --------------------------------------------------------------------------------

typedef struct where { // state and potential of a node
    double* x;
    size_t stride;
    const double* potential; // NULL: 0
} where;

static where chain_ladder_find(const crdi_ladder* l, int32_t node)
{
    const crdi_lane_place at = crdi_lanes_place(&l->lanes, node);
    if (at.kept >= 0) {
        const size_t end = (size_t)end_of(l, at.kept);
        return (where){end_at(l, (int32_t)end), 1, &l->end_drive[2 * end + 1]};
    }
    const crdi_lane_block* b = &l->lanes.block[at.block];
    const size_t row = (size_t)at.row, lane = (size_t)at.lane;
    return (where){b->x + CRDI_LANES * row * (size_t)l->width + lane, CRDI_LANES,
                   b->drive ? b->drive + CRDI_LANES * (2 * row + 1) + lane : NULL};
}

static where chain_ladder_find_link(const crdi_ladder* l, int32_t link)
{
    return link < l->lanes.n ? chain_ladder_find(l, link) : (where){end_at(l, l->ends), 1, NULL};
}

static void load_links(crdi_ladder* l, const double* v, const double* const* link)
{
    const int32_t n = l->lanes.n;
    const double* outer = l->end_drive + 2 * (size_t)l->ends;
    for (int32_t k = 0; k <= n; k++) {
        const where at = chain_ladder_find_link(l, k);
        double* x = at.x + link_first(l) * at.stride;
        if (l->method != CRDI_LADDER_TR) {
            for (int j = 0; j < l->method; j++) {
                x[(size_t)j * at.stride] = link[j][k];
            }
            continue;
        }
        const double across = (k > 0 ? v[k - 1] : outer[0]) - (k < n ? v[k] : outer[1]);
        const double half = l->bl[k] / 2, i = link[0][k];
        x[0] = half > 0 ? half * i + (across - (1 / l->gl[k] - half) * i) : 0;
        x[at.stride] = i;
    }
}

void crdi_ladder_load(crdi_ladder* l, const double* const* i, const double* const* vc,
                      const double* v, const double* const* link)
{
    const int levels = crdi_ladder_levels(l);
    l->past.fresh = 0;
    for (int k = 0; k < 3; k++) {
        l->past.old[k] = k + 1;
    }
    for (int32_t node = 0; node < l->lanes.n; node++) {
        const where at = chain_ladder_find(l, node);
        const bool branch = l->branch[node];
        if (l->method == CRDI_LADDER_TR) {
            const double half = l->beta[node] / 2, now = branch ? i[0][node] : v[node];
            const double r = 1 / l->g[node] - (l->alpha[node] + l->beta[node]) / 2;
            const double e = at.potential ? *at.potential : 0;
            at.x[0] = branch ? vc[0][node] + l->alpha[node] / 2 * now : 0;
            at.x[at.stride] = half > 0 ? half * now + (v[node] - e - vc[0][node] - r * now) : 0;
            at.x[2 * at.stride] = now;
            continue;
        }
        for (int k = 0; k < levels; k++) {
            at.x[(size_t)(2 * k) * at.stride] = branch ? i[k][node] : 0;
            at.x[(size_t)(2 * k + 1) * at.stride] = branch ? vc[k][node] : 0;
        }
    }
    if (l->linked) { load_links(l, v, link); }
}

double crdi_ladder_voltage(const crdi_ladder* l, int32_t node)
{
    const where at = chain_ladder_find(l, node);
    const double e = at.potential ? *at.potential : 0, z = 1 / l->g[node];
    if (l->method == CRDI_LADDER_TR) {
        const double i = at.x[2 * at.stride];
        return (z - (l->alpha[node] + l->beta[node])) * i + (at.x[0] + at.x[at.stride]) + e;
    }
    double vc = 0;
    const double h = past_of(l, at.x, at.stride, node, &vc);
    return z * at.x[2 * (size_t)l->past.fresh * at.stride] + h + e;
}

double crdi_ladder_current(const crdi_ladder* l, int32_t node)
{
    if (!l->branch[node]) { return 0; }
    const where at = chain_ladder_find(l, node);
    return at.x[(l->method == CRDI_LADDER_TR ? 2 : 2 * (size_t)l->past.fresh) * at.stride];
}

double crdi_ladder_capacitor(const crdi_ladder* l, int32_t node)
{
    const where at = chain_ladder_find(l, node);
    if (l->method == CRDI_LADDER_TR) { return at.x[0] - l->alpha[node] / 2 * at.x[2 * at.stride]; }
    return at.x[(2 * (size_t)l->past.fresh + 1) * at.stride];
}

double crdi_ladder_link(const crdi_ladder* l, int32_t link)
{
    const where at = chain_ladder_find_link(l, link);
    return at.x[link_current(l) * at.stride];
}

void crdi_ladder_store(const crdi_ladder* l, double* const* i, double* const* vc, double* v,
                       double* const* link)
{
    for (int32_t k = 0; k <= l->lanes.n && l->linked; k++) {
        const where at = chain_ladder_find_link(l, k);
        link[0][k] = crdi_ladder_link(l, k);
        for (int j = 1; j < crdi_ladder_levels(l); j++) {
            link[j][k] = at.x[(link_first(l) + (size_t)l->past.old[j - 1]) * at.stride];
        }
    }
    for (int32_t node = 0; node < l->lanes.n; node++) {
        v[node] = crdi_ladder_voltage(l, node);
        i[0][node] = crdi_ladder_current(l, node);
        vc[0][node] = crdi_ladder_capacitor(l, node);
        const where at = chain_ladder_find(l, node);
        for (int k = 1; k < crdi_ladder_levels(l); k++) {
            const double* level = at.x + 2 * (size_t)l->past.old[k - 1] * at.stride;
            i[k][node] = l->branch[node] ? level[0] : 0;
            vc[k][node] = level[at.stride];
        }
    }
}

// ---- save and restore --------------------------------------------------------------------------

// Bytes of it are levels, the nodes in blocks, the ends with what drives them, what drives the
// others.

static size_t lane_numbers(const crdi_ladder* l)
{
    return CRDI_LANES * (size_t)l->lanes.rows * (size_t)l->width;
}

size_t crdi_ladder_state_size(const crdi_ladder* l)
{
    return (4 + lane_numbers(l) + end_numbers(l) + 2 * (size_t)l->driven_count) * sizeof(double);
}

void crdi_ladder_save(const crdi_ladder* l, void* state)
{
    const double levels[4] = {l->past.fresh, l->past.old[0], l->past.old[1], l->past.old[2]};
    const size_t lanes = lane_numbers(l), ends = end_numbers(l);
    double* to = state;
    memcpy(to, levels, sizeof levels);
    to += 4;
    if (lanes > 0) { memcpy(to, l->x.data, lanes * sizeof *to); }
    memcpy(to + lanes, l->end, ends * sizeof *to);
    to += lanes + ends;
    for (int32_t k = 0; k < l->driven_count; k++) {
        *to++ = l->drive[k][0];
        *to++ = l->drive[k][l->drive_stride[k]];
    }
}

void crdi_ladder_restore(crdi_ladder* l, const void* state)
{
    const size_t lanes = lane_numbers(l), ends = end_numbers(l);
    const double* from = state;
    l->past.fresh = (int)from[0];
    for (int k = 0; k < 3; k++) {
        l->past.old[k] = (int)from[k + 1];
    }
    from += 4;
    if (lanes > 0) { memcpy(l->x.data, from, lanes * sizeof *from); }
    memcpy(l->end, from + lanes, ends * sizeof *from);
    from += lanes + ends;
    for (int32_t k = 0; k < l->driven_count; k++) {
        l->drive[k][0] = *from++;
        l->drive[k][l->drive_stride[k]] = *from++;
    }
}

void crdi_ladder_use(crdi_ladder* l, int set)
{
    l->lanes.kernels = crdi_lane_choose(set);
}
