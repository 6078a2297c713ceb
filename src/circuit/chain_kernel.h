// The sweeps over one block (chain_lanes.h), for whatever instruction set the including file asks
// for. It defines KERNELS, the name of the table. No multiplication is fused with an addition, so
// that all sets give the same bits.
#include "circuit/chain_lanes.h"

// Vectors wider than the registers are handed to inline functions alone.
#pragma GCC diagnostic ignored "-Wpsabi"

typedef double v8 __attribute__((vector_size(64), may_alias));
typedef double v8_anywhere __attribute__((vector_size(64), may_alias, aligned(8)));
#define KERNEL static inline __attribute__((always_inline))

// Memory of row r when a row has `width` vectors, of which this is number `slot`
#define AT(x, r, width, slot) (*(v8*)((x) + ((size_t)(r) * (width) + (size_t)(slot)) * CRDI_LANES))

KERNEL v8 all(double x)
{
    return (v8){x, x, x, x, x, x, x, x};
}

// Number `slot` of the `width` that a row of factors has
KERNEL v8 factor(const double* x, int32_t r, int width, int slot, int mode)
{
    return mode == CRDI_LANES_EQUAL ? all(x[(size_t)r * (size_t)width + (size_t)slot])
                                    : AT((double*)x, r, width, slot);
}

// ---- a ladder: method 0 is TR, 1 .. 3 are BDF
// ---------------------------------------------------- TR. With alpha = h S, beta = 4 L / h, the
// state is q = vC + (alpha / 2) i and a = vL + (beta / 2) i:
//     v - E = (R + alpha / 2 + beta / 2) i + q - a,   q <- q + alpha i,   a <- beta i - a.
// BDF, gamma x1 - sum c_j x_j = h x1'. With alpha = h S / gamma, beta = L / h:
//     v - E = (R + alpha + gamma beta) i + vc - beta sum c_j i_j,  vc = sum (c_j / gamma) vC_j,
//     vC <- vc + alpha i.
// The current's place holds y between the two sweeps.

// Linked: those between neighbours have inductances too. The current i from a node to the next one,
//     v_left - v = i / g - u,   TR: u = a, a <- beta i - a;   BDF: u = beta sum c_j i_j,
// is g (v_left - v) + g u; the second term is known and leaves one node for the other.

KERNEL int width_of(int method, int linked)
{
    return method == 0 ? (linked ? 5 : 3) : (linked ? 3 : 2) * (method + 1);
}

// Place of the current among the vectors of a row: y until it is known
KERNEL int current_of(int method, const crdi_lane_past* past)
{
    return method == 0 ? 2 : 2 * past->fresh;
}

typedef struct past_sum {
    v8 h, vc;
} past_sum;

KERNEL past_sum past_of(const double* x, int32_t r, const crdi_lane_past* past, const v8* beta,
                        int method, int linked)
{
    const int width = width_of(method, linked);
    if (method == 0) {
        const v8 q = AT((double*)x, r, width, 0), a = AT((double*)x, r, width, 1);
        return (past_sum){.h = q - a, .vc = q};
    }
    v8 i = all(past->c[0]) * AT((double*)x, r, width, 2 * past->old[0]);
    v8 vc = all(past->cg[0]) * AT((double*)x, r, width, 2 * past->old[0] + 1);
    for (int k = 1; k < method; k++) {
        i += all(past->c[k]) * AT((double*)x, r, width, 2 * past->old[k]);
        vc += all(past->cg[k]) * AT((double*)x, r, width, 2 * past->old[k] + 1);
    }
    return (past_sum){.h = vc - *beta * i, .vc = vc};
}

KERNEL v8 branch_factor(const crdi_lane_block* b, int32_t r, int slot, int mode)
{
    return mode == CRDI_LANES_EQUAL ? all(b->gab[slot]) : AT((double*)b->gab, r, 3, slot);
}

KERNEL v8 link_factor(const crdi_lane_block* b, int32_t r, int slot, int mode)
{
    return mode == CRDI_LANES_EQUAL ? all(b->glb[slot]) : AT((double*)b->glb, r, 2, slot);
}

// u of the link on the left of a row
KERNEL v8 link_past(const crdi_lane_block* b, const crdi_lane_past* past, int32_t r, int method,
                    int mode)
{
    const int width = width_of(method, 1), first = width_of(method, 0);
    if (method == 0) { return AT(b->x, r, width, first); }
    v8 i = all(past->c[0]) * AT(b->x, r, width, first + past->old[0]);
    for (int k = 1; k < method; k++) {
        i += all(past->c[k]) * AT(b->x, r, width, first + past->old[k]);
    }
    return link_factor(b, r, 1, mode) * i;
}

KERNEL v8 link_load(const crdi_lane_block* b, const crdi_lane_past* past, int32_t r, int method,
                    int mode)
{
    return link_factor(b, r, 0, mode) * link_past(b, past, r, method, mode);
}

KERNEL v8 branch_load(const crdi_lane_block* b, const crdi_lane_past* past, int32_t r, int method,
                      int mode, int linked)
{
    const v8 beta = branch_factor(b, r, 2, mode);
    const past_sum s = past_of(b->x, r, past, &beta, method, linked);
    const v8 g = branch_factor(b, r, 0, mode);
    if (mode == CRDI_LANES_DRIVEN) {
        return g * (s.h + AT(b->drive, r, 2, 1)) + AT(b->drive, r, 2, 0);
    }
    return g * s.h;
}

// What the right-hand side of row r has; *link: what the link on its left brings, then that on its
// right (the last row's belongs to the next lane, which takes it away by its `left`).
KERNEL v8 row_load(const crdi_lane_block* b, const crdi_lane_past* past, int32_t r, v8* link,
                   const int last, const int method, const int mode, const int linked)
{
    v8 load = branch_load(b, past, r, method, mode, linked);
    if (linked) {
        load += *link;
        if (!last) {
            *link = link_load(b, past, r + 1, method, mode);
            load -= *link;
        }
    }
    return load;
}

KERNEL void ladder_forward(const crdi_lane_block* b, const crdi_lane_past* past, double* left,
                           double* right, const int method, const int mode, const int linked)
{
    const int width = width_of(method, linked), slot = current_of(method, past);
    v8 y = all(0), sum = all(0), link = all(0);
    if (linked) {
        link = link_load(b, past, 0, method, mode);
        sum -= link;
    }
    int32_t r = 0;
    for (; r < b->reach; r++) {
        const v8 load = row_load(b, past, r, &link, 0, method, mode, linked);
        sum += factor(b->fw, r, 2, 1, mode) * load;
        y = load + factor(b->lp, r, 2, 0, mode) * y;
        AT(b->x, r, width, slot) = y;
    }
    for (; r < b->rows - 1; r++) {
        const v8 load = row_load(b, past, r, &link, 0, method, mode, linked);
        y = load + factor(b->lp, r, 2, 0, mode) * y;
        AT(b->x, r, width, slot) = y;
    }
    const v8 load = row_load(b, past, r, &link, 1, method, mode, linked);
    *(v8_anywhere*)right = load + factor(b->lp, r, 2, 0, mode) * y;
    *(v8_anywhere*)left += sum; // seven of them are the same places
}

// The branches of a row, at these voltages
KERNEL void branch_move(const crdi_lane_block* b, const crdi_lane_past* past, int32_t r,
                        const v8* v, const int method, const int mode, const int linked)
{
    const int width = width_of(method, linked);
    const v8 g = branch_factor(b, r, 0, mode), alpha = branch_factor(b, r, 1, mode),
             beta = branch_factor(b, r, 2, mode);
    const past_sum s = past_of(b->x, r, past, &beta, method, linked);
    v8 h = s.h;
    if (mode == CRDI_LANES_DRIVEN) { h += AT(b->drive, r, 2, 1); }
    const v8 i = g * (*v - h);
    if (method == 0) {
        AT(b->x, r, width, 0) = s.vc + alpha * i;
        AT(b->x, r, width, 1) = beta * i - AT(b->x, r, width, 1);
        AT(b->x, r, width, 2) = i;
    } else {
        AT(b->x, r, width, 2 * past->fresh) = i;
        AT(b->x, r, width, 2 * past->fresh + 1) = s.vc + alpha * i;
    }
}

// The links on the left of a row, at these voltages across them
KERNEL void link_move(const crdi_lane_block* b, const crdi_lane_past* past, int32_t r,
                      const v8* across, const int method, const int mode)
{
    const int width = width_of(method, 1), first = width_of(method, 0);
    const v8 u = link_past(b, past, r, method, mode);
    const v8 i = link_factor(b, r, 0, mode) * (*across + u);
    if (method == 0) {
        AT(b->x, r, width, first) = link_factor(b, r, 1, mode) * i - u;
        AT(b->x, r, width, first + 1) = i;
    } else {
        AT(b->x, r, width, first + past->fresh) = i;
    }
}

KERNEL void row_move(const crdi_lane_block* b, const crdi_lane_past* past, int32_t r, const v8* v,
                     const v8* right, const int method, const int mode, const int linked)
{
    branch_move(b, past, r, v, method, mode, linked);
    if (linked) {
        const v8 across = *v - *right;
        link_move(b, past, r + 1, &across, method, mode);
    }
}

KERNEL void ladder_backward(const crdi_lane_block* b, const crdi_lane_past* past,
                            const double* left, const double* right, const int method,
                            const int mode, const int linked)
{
    const int width = width_of(method, linked), slot = current_of(method, past);
    const v8 at_left = *(const v8_anywhere*)left;
    v8 v = *(const v8_anywhere*)right;
    int32_t r = b->rows - 1;
    branch_move(b, past, r, &v, method, mode, linked);
    for (r--; r >= b->reach; r--) {
        const v8 before = v;
        v = factor(b->lp, r, 2, 1, mode) * AT(b->x, r, width, slot) +
            factor(b->lp, r + 1, 2, 0, mode) * v;
        row_move(b, past, r, &v, &before, method, mode, linked);
    }
    for (; r >= 0; r--) {
        const v8 before = v;
        v = factor(b->lp, r, 2, 1, mode) * AT(b->x, r, width, slot) +
            factor(b->fw, r, 2, 0, mode) * at_left + factor(b->lp, r + 1, 2, 0, mode) * v;
        row_move(b, past, r, &v, &before, method, mode, linked);
    }
    if (linked) {
        const v8 across = at_left - v;
        link_move(b, past, 0, &across, method, mode);
    }
}

#define LADDER(method, mode, linked)                                                               \
    static void forward_##method##_##mode##_##linked(                                              \
        const crdi_lane_block* b, const crdi_lane_past* past, double* left, double* right)         \
    {                                                                                              \
        const crdi_lane_block block = *b; /* in registers: stores could change *b */               \
        const crdi_lane_past levels = *past;                                                       \
        ladder_forward(&block, &levels, left, right, method, mode, linked);                        \
    }                                                                                              \
    static void backward_##method##_##mode##_##linked(const crdi_lane_block* b,                    \
                                                      const crdi_lane_past* past,                  \
                                                      const double* left, const double* right)     \
    {                                                                                              \
        const crdi_lane_block block = *b;                                                          \
        const crdi_lane_past levels = *past;                                                       \
        ladder_backward(&block, &levels, left, right, method, mode, linked);                       \
    }
#define LADDERS(method)                                                                            \
    LADDER(method, 0, 0)                                                                           \
    LADDER(method, 1, 0)                                                                           \
    LADDER(method, 2, 0)                                                                           \
    LADDER(method, 0, 1)                                                                           \
    LADDER(method, 1, 1)                                                                           \
    LADDER(method, 2, 1)
LADDERS(0)
LADDERS(1)
LADDERS(2)
LADDERS(3)

// ---- a matrix: one vector per row, b becomes y becomes v ----------------------------------------

KERNEL void matrix_forward(const crdi_lane_block* b, double* left, double* right, const int mode)
{
    v8 y = all(0), sum = all(0);
    for (int32_t r = 0; r < b->reach; r++) {
        const v8 load = AT(b->x, r, 1, 0);
        sum += factor(b->fw, r, 2, 1, mode) * load;
        y = load + factor(b->lp, r, 2, 0, mode) * y;
        AT(b->x, r, 1, 0) = y;
    }
    for (int32_t r = b->reach; r < b->rows; r++) {
        y = AT(b->x, r, 1, 0) + factor(b->lp, r, 2, 0, mode) * y;
        AT(b->x, r, 1, 0) = y;
    }
    *(v8_anywhere*)right = y;
    *(v8_anywhere*)left += sum; // seven of them are the same places
}

KERNEL void matrix_backward(const crdi_lane_block* b, const double* left, const double* right,
                            const int mode)
{
    const v8 at_left = *(const v8_anywhere*)left;
    v8 v = *(const v8_anywhere*)right;
    int32_t r = b->rows - 1;
    AT(b->x, r, 1, 0) = v;
    for (r--; r >= b->reach; r--) {
        v = factor(b->lp, r, 2, 1, mode) * AT(b->x, r, 1, 0) + factor(b->lp, r + 1, 2, 0, mode) * v;
        AT(b->x, r, 1, 0) = v;
    }
    for (; r >= 0; r--) {
        v = factor(b->lp, r, 2, 1, mode) * AT(b->x, r, 1, 0) +
            factor(b->fw, r, 2, 0, mode) * at_left + factor(b->lp, r + 1, 2, 0, mode) * v;
        AT(b->x, r, 1, 0) = v;
    }
}

#define MATRIX(mode)                                                                               \
    static void matrix_forward_##mode(const crdi_lane_block* b, const crdi_lane_past* past,        \
                                      double* left, double* right)                                 \
    {                                                                                              \
        (void)past;                                                                                \
        const crdi_lane_block block = *b;                                                          \
        matrix_forward(&block, left, right, mode);                                                 \
    }                                                                                              \
    static void matrix_backward_##mode(const crdi_lane_block* b, const crdi_lane_past* past,       \
                                       const double* left, const double* right)                    \
    {                                                                                              \
        (void)past;                                                                                \
        const crdi_lane_block block = *b;                                                          \
        matrix_backward(&block, left, right, mode);                                                \
    }
MATRIX(0)
MATRIX(1)

// ---- order
// ---------------------------------------------------------------------------------------

// Eight vectors that are rows become columns.
KERNEL void transpose(v8* x)
{
    for (int step = 0; step < 3; step++) {
        v8 y[8];
        for (int k = 0; k < 4; k++) { // interleave the halves: three times is the transpose
            y[2 * k] = __builtin_shufflevector(x[k], x[k + 4], 0, 8, 1, 9, 2, 10, 3, 11);
            y[2 * k + 1] = __builtin_shufflevector(x[k], x[k + 4], 4, 12, 5, 13, 6, 14, 7, 15);
        }
        for (int k = 0; k < 8; k++) {
            x[k] = y[k];
        }
    }
}

static void pack(const double* from, int32_t rows, double* to)
{
    int32_t r = 0;
    for (; r + 8 <= rows; r += 8) {
        v8 x[8];
        for (int k = 0; k < 8; k++) {
            x[k] = *(const v8_anywhere*)(from + (size_t)k * (size_t)rows + r);
        }
        transpose(x);
        for (int k = 0; k < 8; k++) {
            AT(to, r + k, 1, 0) = x[k];
        }
    }
    for (; r < rows; r++) {
        for (int k = 0; k < 8; k++) {
            to[(size_t)r * 8 + (size_t)k] = from[(size_t)k * (size_t)rows + (size_t)r];
        }
    }
}

static void unpack(const double* from, int32_t rows, double* to)
{
    int32_t r = 0;
    for (; r + 8 <= rows; r += 8) {
        v8 x[8];
        for (int k = 0; k < 8; k++) {
            x[k] = AT((double*)from, r + k, 1, 0);
        }
        transpose(x);
        for (int k = 0; k < 8; k++) {
            *(v8_anywhere*)(to + (size_t)k * (size_t)rows + r) = x[k];
        }
    }
    for (; r < rows; r++) {
        for (int k = 0; k < 8; k++) {
            to[(size_t)k * (size_t)rows + (size_t)r] = from[(size_t)r * 8 + (size_t)k];
        }
    }
}

#define OF_METHOD(d, m)                                                                            \
    {                                                                                              \
        {d##_##m##_0_0, d##_##m##_1_0, d##_##m##_2_0},                                             \
        {                                                                                          \
            d##_##m##_0_1, d##_##m##_1_1, d##_##m##_2_1                                            \
        }                                                                                          \
    }
const crdi_lane_kernels KERNELS = {
    .forward = {OF_METHOD(forward, 0), OF_METHOD(forward, 1), OF_METHOD(forward, 2),
                OF_METHOD(forward, 3)},
    .backward = {OF_METHOD(backward, 0), OF_METHOD(backward, 1), OF_METHOD(backward, 2),
                 OF_METHOD(backward, 3)},
    .chain_forward = {matrix_forward_0, matrix_forward_1},
    .chain_backward = {matrix_backward_0, matrix_backward_1},
    .pack = pack,
    .unpack = unpack,
};
