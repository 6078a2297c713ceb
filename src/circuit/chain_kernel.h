// The sweeps over one block (chain_lanes.h), for whatever instruction set the including file asks
// for. It defines KERNELS, the name of the table, and NATIVE, the doubles in a register: the eight
// lanes lie in GROUPS registers, and each is a variable of its own, because a compiler keeps
// vectors that are wider than a register in memory. No multiplication is fused with an addition, so
// that all sets give the same bits.
#include "circuit/chain_lanes.h"

#define GROUPS (CRDI_LANES / NATIVE)
typedef double vec __attribute__((vector_size(8 * NATIVE), may_alias));
typedef double vec_anywhere __attribute__((vector_size(8 * NATIVE), may_alias, aligned(8)));
#define KERNEL static inline __attribute__((always_inline))

// A statement for each group k, one behind the other: a loop over them would put them into memory.
#define GROUP(number, ...)                                                                         \
    {                                                                                              \
        enum { k = number };                                                                       \
        __VA_ARGS__;                                                                               \
    }
#if GROUPS == 1
#define EACH(...) GROUP(0, __VA_ARGS__)
#elif GROUPS == 2
#define EACH(...) GROUP(0, __VA_ARGS__) GROUP(1, __VA_ARGS__)
#else
#define EACH(...)                                                                                  \
    GROUP(0, __VA_ARGS__)                                                                          \
    GROUP(1, __VA_ARGS__)                                                                          \
    GROUP(2, __VA_ARGS__) GROUP(3, __VA_ARGS__)
#endif

// Group k of vector `slot` in row r, where a row has `width` vectors
#define AT(x, r, width, slot, k)                                                                   \
    (*(vec*)((x) + ((size_t)(r) * (size_t)(width) + (size_t)(slot)) * CRDI_LANES + (k)*NATIVE))

KERNEL vec all(double x)
{
    return x - (vec){0}; // which is x, also where it is -0
}

// Number `slot` of the `width` that a row of factors has
KERNEL vec factor(const double* x, int32_t r, int width, int slot, int k, int mode)
{
    return mode == CRDI_LANES_EQUAL ? all(x[(size_t)r * (size_t)width + (size_t)slot])
                                    : AT((double*)x, r, width, slot, k);
}

// ---- a ladder: method 0 is TR, 1 .. 3 are BDF --------------------------------------------------
// TR. With alpha = h S, beta = 4 L / h, the state is q = vC + (alpha / 2) i and a = vL + (beta / 2)
// i:
//     v - E = (R + alpha / 2 + beta / 2) i + q - a,   q <- q + alpha i,   a <- beta i - a.
// BDF, gamma x1 - sum c_j x_j = h x1'. With alpha = h S / gamma, beta = L / h:
//     v - E = (R + alpha + gamma beta) i + vc - beta sum c_j i_j,  vc = sum (c_j / gamma) vC_j,
//     vC <- vc + alpha i.
// The current's place holds y between the two sweeps.

// Linked: those between neighbours have inductances too. The current i from a node to the next one,
//     v_left - v = i / g - u,   TR: u = a, a <- beta i - a;   BDF: u = beta sum c_j i_j,
// is g (v_left - v) + g u; the second term is known and leaves one node for the other.

typedef struct sweep { // a copy in registers: stores could change the original
    crdi_lane_block b;
    crdi_lane_past past;
    double gab[3], glb[2]; // EQUAL: of all rows
} sweep;

KERNEL sweep start(const crdi_lane_block* b, const crdi_lane_past* past, int mode, int linked)
{
    sweep s = {.b = *b, .past = *past};
    for (int i = 0; i < 3 && mode == CRDI_LANES_EQUAL; i++) {
        s.gab[i] = b->gab[i];
    }
    for (int i = 0; i < 2 && mode == CRDI_LANES_EQUAL && linked; i++) {
        s.glb[i] = b->glb[i];
    }
    return s;
}

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
    vec h, vc;
} past_sum;

KERNEL past_sum past_of(const sweep* s, int32_t r, int k, vec beta, int method, int linked)
{
    const int width = width_of(method, linked);
    const crdi_lane_past* past = &s->past;
    double* x = s->b.x;
    if (method == 0) {
        const vec q = AT(x, r, width, 0, k), a = AT(x, r, width, 1, k);
        return (past_sum){.h = q - a, .vc = q};
    }
    vec i = all(past->c[0]) * AT(x, r, width, 2 * past->old[0], k);
    vec vc = all(past->cg[0]) * AT(x, r, width, 2 * past->old[0] + 1, k);
    for (int j = 1; j < method; j++) {
        i += all(past->c[j]) * AT(x, r, width, 2 * past->old[j], k);
        vc += all(past->cg[j]) * AT(x, r, width, 2 * past->old[j] + 1, k);
    }
    return (past_sum){.h = vc - beta * i, .vc = vc};
}

KERNEL vec branch_factor(const sweep* s, int32_t r, int slot, int k, int mode)
{
    return mode == CRDI_LANES_EQUAL ? all(s->gab[slot]) : AT((double*)s->b.gab, r, 3, slot, k);
}

KERNEL vec link_factor(const sweep* s, int32_t r, int slot, int k, int mode)
{
    return mode == CRDI_LANES_EQUAL ? all(s->glb[slot]) : AT((double*)s->b.glb, r, 2, slot, k);
}

// u of the link on the left of a row
KERNEL vec link_past(const sweep* s, int32_t r, int k, int method, int mode)
{
    const int width = width_of(method, 1), first = width_of(method, 0);
    const crdi_lane_past* past = &s->past;
    if (method == 0) { return AT(s->b.x, r, width, first, k); }
    vec i = all(past->c[0]) * AT(s->b.x, r, width, first + past->old[0], k);
    for (int j = 1; j < method; j++) {
        i += all(past->c[j]) * AT(s->b.x, r, width, first + past->old[j], k);
    }
    return link_factor(s, r, 1, k, mode) * i;
}

KERNEL vec link_load(const sweep* s, int32_t r, int k, int method, int mode)
{
    return link_factor(s, r, 0, k, mode) * link_past(s, r, k, method, mode);
}

KERNEL vec branch_load(const sweep* s, int32_t r, int k, int method, int mode, int linked)
{
    const vec beta = branch_factor(s, r, 2, k, mode);
    const past_sum p = past_of(s, r, k, beta, method, linked);
    const vec g = branch_factor(s, r, 0, k, mode);
    if (mode == CRDI_LANES_DRIVEN) {
        return g * (p.h + AT(s->b.drive, r, 2, 1, k)) + AT(s->b.drive, r, 2, 0, k);
    }
    return g * p.h;
}

// What the right-hand side of row r has; *link: what the link on its left brings, then that on its
// right (the last row's belongs to the next lane, which takes it away by its `left`).
KERNEL vec row_load(const sweep* s, int32_t r, int k, vec* link, const int last, const int method,
                    const int mode, const int linked)
{
    vec load = branch_load(s, r, k, method, mode, linked);
    if (linked) {
        load += *link;
        if (!last) {
            *link = link_load(s, r + 1, k, method, mode);
            load -= *link;
        }
    }
    return load;
}

typedef struct carry { // from row to row, of a group
    vec y, sum, link;
} carry;

KERNEL carry forward_begin(const sweep* s, int k, int method, int mode, int linked)
{
    const vec link = linked ? link_load(s, 0, k, method, mode) : all(0);
    return (carry){.y = all(0), .sum = all(0) - link, .link = link};
}

// y_r = b_r + l_r y_{r-1}; near: the sum of w_r b_r for the separator on the left
KERNEL void forward_row(const sweep* s, int32_t r, int k, carry* c, const int near, const int last,
                        const int method, const int mode, const int linked)
{
    const vec load = row_load(s, r, k, &c->link, last, method, mode, linked);
    if (near) { c->sum += factor(s->b.fw, r, 2, 1, k, mode) * load; }
    c->y = load + factor(s->b.lp, r, 2, 0, k, mode) * c->y;
}

// Right-hand sides of the separators. `left` is one place before `right`: seven are the same.
KERNEL void forward_end(const carry* c, double* left,
                        double* right){EACH(*(vec_anywhere*)(right + k * NATIVE) = c[k].y)
                                           EACH(*(vec_anywhere*)(left + k * NATIVE) += c[k].sum)}

KERNEL void ladder_forward(const crdi_lane_block* b, const crdi_lane_past* past, double* left,
                           double* right, const int method, const int mode, const int linked)
{
    const sweep s = start(b, past, mode, linked);
    const int width = width_of(method, linked), slot = current_of(method, past);
    carry c[GROUPS];
    int32_t r = 0;
    EACH(c[k] = forward_begin(&s, k, method, mode, linked))
    for (; r < s.b.reach; r++) {
        EACH(forward_row(&s, r, k, &c[k], 1, 0, method, mode, linked))
        EACH(AT(s.b.x, r, width, slot, k) = c[k].y)
    }
    for (; r < s.b.rows - 1; r++) {
        EACH(forward_row(&s, r, k, &c[k], 0, 0, method, mode, linked))
        EACH(AT(s.b.x, r, width, slot, k) = c[k].y)
    }
    EACH(forward_row(&s, r, k, &c[k], 0, 1, method, mode, linked))
    forward_end(c, left, right);
}

// The branches of a row, at these voltages
KERNEL void branch_move(const sweep* s, int32_t r, int k, vec v, const int method, const int mode,
                        const int linked)
{
    const int width = width_of(method, linked), fresh = 2 * s->past.fresh;
    const vec g = branch_factor(s, r, 0, k, mode), alpha = branch_factor(s, r, 1, k, mode),
              beta = branch_factor(s, r, 2, k, mode);
    const past_sum p = past_of(s, r, k, beta, method, linked);
    vec h = p.h;
    if (mode == CRDI_LANES_DRIVEN) { h += AT(s->b.drive, r, 2, 1, k); }
    const vec i = g * (v - h);
    if (method == 0) {
        AT(s->b.x, r, width, 0, k) = p.vc + alpha * i;
        AT(s->b.x, r, width, 1, k) = beta * i - AT(s->b.x, r, width, 1, k);
        AT(s->b.x, r, width, 2, k) = i;
    } else {
        AT(s->b.x, r, width, fresh, k) = i;
        AT(s->b.x, r, width, fresh + 1, k) = p.vc + alpha * i;
    }
}

// The links on the left of a row, at these voltages across them
KERNEL void link_move(const sweep* s, int32_t r, int k, vec across, const int method,
                      const int mode)
{
    const int width = width_of(method, 1), first = width_of(method, 0);
    const vec u = link_past(s, r, k, method, mode);
    const vec i = link_factor(s, r, 0, k, mode) * (across + u);
    if (method == 0) {
        AT(s->b.x, r, width, first, k) = link_factor(s, r, 1, k, mode) * i - u;
        AT(s->b.x, r, width, first + 1, k) = i;
    } else {
        AT(s->b.x, r, width, first + s->past.fresh, k) = i;
    }
}

// v_r = y_r / p_r + l_{r+1} v_{r+1}; near: + (f_r / p_r) v_left
KERNEL void backward_row(const sweep* s, int32_t r, int k, vec at_left, vec* v, const int near,
                         const int method, const int mode, const int linked)
{
    const int width = width_of(method, linked), slot = current_of(method, &s->past);
    const vec before = *v;
    vec sum = factor(s->b.lp, r, 2, 1, k, mode) * AT(s->b.x, r, width, slot, k);
    if (near) { sum += factor(s->b.fw, r, 2, 0, k, mode) * at_left; }
    *v = sum + factor(s->b.lp, r + 1, 2, 0, k, mode) * before;
    branch_move(s, r, k, *v, method, mode, linked);
    if (linked) { link_move(s, r + 1, k, *v - before, method, mode); }
}

KERNEL void ladder_backward(const crdi_lane_block* b, const crdi_lane_past* past,
                            const double* left, const double* right, const int method,
                            const int mode, const int linked)
{
    const sweep s = start(b, past, mode, linked);
    vec at_left[GROUPS], v[GROUPS];
    int32_t r = s.b.rows - 1;
    EACH(at_left[k] = *(const vec_anywhere*)(left + k * NATIVE))
    EACH(v[k] = *(const vec_anywhere*)(right + k * NATIVE))
    EACH(branch_move(&s, r, k, v[k], method, mode, linked))
    for (r--; r >= s.b.reach; r--) {
        EACH(backward_row(&s, r, k, at_left[k], &v[k], 0, method, mode, linked))
    }
    for (; r >= 0; r--) {
        EACH(backward_row(&s, r, k, at_left[k], &v[k], 1, method, mode, linked))
    }
    if (linked) { EACH(link_move(&s, 0, k, at_left[k] - v[k], method, mode)) }
}

#define LADDER(method, mode, linked)                                                               \
    static void forward_##method##_##mode##_##linked(                                              \
        const crdi_lane_block* b, const crdi_lane_past* past, double* left, double* right)         \
    {                                                                                              \
        ladder_forward(b, past, left, right, method, mode, linked);                                \
    }                                                                                              \
    static void backward_##method##_##mode##_##linked(const crdi_lane_block* b,                    \
                                                      const crdi_lane_past* past,                  \
                                                      const double* left, const double* right)     \
    {                                                                                              \
        ladder_backward(b, past, left, right, method, mode, linked);                               \
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
    const crdi_lane_block s = *b;
    carry c[GROUPS];
    int32_t r = 0;
    EACH(c[k] = (carry){.y = all(0), .sum = all(0)})
    for (; r < s.reach; r++) {
        EACH(const vec load = AT(s.x, r, 1, 0, k);
             c[k].sum += factor(s.fw, r, 2, 1, k, mode) * load;
             c[k].y = load + factor(s.lp, r, 2, 0, k, mode) * c[k].y)
        EACH(AT(s.x, r, 1, 0, k) = c[k].y)
    }
    for (; r < s.rows; r++) {
        EACH(c[k].y = AT(s.x, r, 1, 0, k) + factor(s.lp, r, 2, 0, k, mode) * c[k].y)
        EACH(AT(s.x, r, 1, 0, k) = c[k].y)
    }
    forward_end(c, left, right);
}

KERNEL void matrix_backward(const crdi_lane_block* b, const double* left, const double* right,
                            const int mode)
{
    const crdi_lane_block s = *b;
    vec at_left[GROUPS], v[GROUPS];
    int32_t r = s.rows - 1;
    EACH(at_left[k] = *(const vec_anywhere*)(left + k * NATIVE))
    EACH(v[k] = *(const vec_anywhere*)(right + k * NATIVE))
    EACH(AT(s.x, r, 1, 0, k) = v[k])
    for (r--; r >= s.reach; r--) {
        EACH(v[k] = factor(s.lp, r, 2, 1, k, mode) * AT(s.x, r, 1, 0, k) +
                    factor(s.lp, r + 1, 2, 0, k, mode) * v[k])
        EACH(AT(s.x, r, 1, 0, k) = v[k])
    }
    for (; r >= 0; r--) {
        EACH(v[k] = factor(s.lp, r, 2, 1, k, mode) * AT(s.x, r, 1, 0, k) +
                    factor(s.fw, r, 2, 0, k, mode) * at_left[k] +
                    factor(s.lp, r + 1, 2, 0, k, mode) * v[k])
        EACH(AT(s.x, r, 1, 0, k) = v[k])
    }
}

#define MATRIX(mode)                                                                               \
    static void matrix_forward_##mode(const crdi_lane_block* b, const crdi_lane_past* past,        \
                                      double* left, double* right)                                 \
    {                                                                                              \
        (void)past;                                                                                \
        matrix_forward(b, left, right, mode);                                                      \
    }                                                                                              \
    static void matrix_backward_##mode(const crdi_lane_block* b, const crdi_lane_past* past,       \
                                       const double* left, const double* right)                    \
    {                                                                                              \
        (void)past;                                                                                \
        matrix_backward(b, left, right, mode);                                                     \
    }
MATRIX(0)
MATRIX(1)

// ---- order -------------------------------------------------------------------------------------

// Eight stretches of `rows` numbers become rows of eight, or the other way round: two by two, which
// is faster than tiles of whole registers with every set (a thousand rows: 0.9 against 1.9 us).
typedef double pair __attribute__((vector_size(16), may_alias, aligned(8)));
KERNEL void reorder(const double* from, int32_t rows, double* to, const int back)
{
    const size_t n = (size_t)rows;
    size_t r = 0;
    for (; r + 2 <= n; r += 2) {
        for (size_t lane = 0; lane < CRDI_LANES; lane += 2) {
            const size_t row = r * CRDI_LANES + lane, stretch = lane * n + r;
            const size_t source = back ? row : stretch, target = back ? stretch : row;
            const pair a = *(const pair*)(from + source);
            const pair b = *(const pair*)(from + source + (back ? CRDI_LANES : n));
            *(pair*)(to + target) = __builtin_shufflevector(a, b, 0, 2);
            *(pair*)(to + target + (back ? n : CRDI_LANES)) = __builtin_shufflevector(a, b, 1, 3);
        }
    }
    for (size_t lane = 0; r < n && lane < CRDI_LANES; lane++) { // the last one
        const size_t row = r * CRDI_LANES + lane, stretch = lane * n + r;
        to[back ? stretch : row] = from[back ? row : stretch];
    }
}

static void pack(const double* from, int32_t rows, double* to)
{
    reorder(from, rows, to, 0);
}

static void unpack(const double* from, int32_t rows, double* to)
{
    reorder(from, rows, to, 1);
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
