#include "circuit/law.h"

#include "circuit/operation.h"

#include <math.h>
#include <string.h>

enum {
    NODES = 8,    // of a polynomial
    LEAST = 12,   // operations behind the neck that are worth a table
    PATIENCE = 16 // evaluations with the same inputs before a cell is made
};

typedef struct cell {
    uint64_t key; // leading bits of the numbers in it; 0: those next to 0, always exact
    bool exact;   // the polynomial will not do
    double middle, scale;
    double c[NODES]; // powers of (x - middle) * scale
} cell;

struct crdi_law {
    const crd_expression* e;
    int neck, inputs;
    int* input;      // (inputs) uses that are inputs
    double* held;    // (inputs) that the cells are made for
    double *v, *d;   // (steps) v begins with the constants
    double *lo, *hi; // (steps) intervals; lo NaN: anything
    bool affine;     // the neck is base + sum of weight * use
    double base;
    double* weight; // (uses)
    cell cell[2];   // of odd and even keys, so that two neighbours have room
};

// ---- the neck ----------------------------------------------------------------------------------

static bool is_unknown(const crd_expression* e, const crdi_step* s)
{
    return s->op == OP_USE && e->uses[s->a].kind != CRD_USE_INPUT;
}

// The first step through which all unknowns go, or -1. `last` is room: the last user of each step.
static int find_neck(const crd_expression* e, int* last)
{
    int after = -1, reach = 0;
    for (int i = 0; i < e->count; i++) {
        const crdi_step* s = &e->steps[i];
        const int operands[3] = {s->a, s->b, s->c};
        const int count = crdi_op_operands((crdi_op)s->op);
        bool depends = is_unknown(e, s);
        if (s->op == OP_TIME) { return -1; }
        if (depends) { after = i; }
        last[i] = -1; // nobody, and of no unknown
        for (int k = 0; k < count; k++) {
            depends = depends || last[operands[k]] >= 0;
        }
        if (depends) { last[i] = i; }
        for (int k = 0; k < count; k++) {
            if (last[operands[k]] >= 0) { last[operands[k]] = i; }
        }
    }
    for (int i = 0; i < e->count && after >= 0; i++) {
        if (i >= after && last[i] >= 0 && reach <= i) { return i; }
        reach = last[i] > reach ? last[i] : reach;
    }
    return -1;
}

static int count_work(const crd_expression* e, int from)
{
    int work = 0;
    for (int i = from; i < e->count; i++) {
        work += e->steps[i].op == OP_POW || e->steps[i].op >= OP_SIN ? 6 : 1;
    }
    return work;
}

// Sums, and products with constants: then one derivative is enough for ever.
static void find_weights(crdi_law* l)
{
    const crd_expression* e = l->e;
    const int constants = e->constants;
    for (int i = constants; i <= l->neck; i++) {
        const crdi_step* s = &e->steps[i];
        const bool a = s->op == OP_ADD || s->op == OP_SUB || s->op == OP_NEG || is_unknown(e, s) ||
                       (s->op == OP_MUL && (s->a < constants || s->b < constants)) ||
                       (s->op == OP_DIV && s->b < constants);
        if (!a) { return; }
    }
    crdi_expression_forward(e, 0, l->neck + 1, l->weight, 0, l->v); // where all uses are 0
    l->base = l->v[l->neck];
    crdi_expression_backward(e, l->neck, l->v, l->d, l->weight);
    l->affine = true;
}

static void law_forget(crdi_law* l)
{
    for (int i = 0; i < 2; i++) {
        l->cell[i] = (cell){.exact = true};
    }
}

crd_status crdi_law_create(crd_arena* a, const crd_expression* e, crdi_law** out)
{
    *out = NULL;
    int* last = crdi_new_array(a->ctx, (size_t)e->count, sizeof *last);
    if (!last) { return CRD_E_MEMORY; }
    const int neck = find_neck(e, last);
    crd_free(a->ctx, last);
    if (neck < 0 || count_work(e, neck + 1) < LEAST) { return CRD_OK; }
    const size_t steps = (size_t)e->count, uses = (size_t)e->use_count;
    crdi_law* l = crdi_arena_new(a, 1, sizeof *l);
    if (!l) { return CRD_E_MEMORY; }
    *l = (crdi_law){.e = e, .neck = neck};
    l->input = crdi_arena_new(a, uses, sizeof *l->input);
    l->held = crdi_arena_new(a, uses, sizeof *l->held);
    l->v = crdi_arena_new(a, 4 * steps, sizeof *l->v);
    l->weight = crdi_arena_new(a, uses, sizeof *l->weight);
    if (a->failed) { return CRD_E_MEMORY; }
    l->d = l->v + steps;
    l->lo = l->d + steps;
    l->hi = l->lo + steps;
    for (int k = 0; k < e->use_count; k++) {
        if (e->uses[k].kind == CRD_USE_INPUT) { l->input[l->inputs++] = k; }
    }
    crdi_expression_forward(e, 0, e->constants, NULL, 0, l->v);
    find_weights(l);
    law_forget(l);
    *out = l;
    return CRD_OK;
}

size_t crdi_law_numbers(const crdi_law* l)
{
    return l ? 1 + (size_t)l->inputs : 0;
}

// ---- intervals ---------------------------------------------------------------------------------

typedef struct interval {
    double lo, hi; // lo NaN: anything
} interval;

static const interval anything = {(double)NAN, (double)NAN};

// Rounding is far less than this.
static interval widened(double a, double b)
{
    const double lo = fmin(a, b), hi = fmax(a, b), margin = 1e-12 * fmax(fabs(lo), fabs(hi));
    return isfinite(lo) && isfinite(hi) ? (interval){lo - margin, hi + margin} : anything;
}

static interval corners(double a, double b, double c, double d)
{
    return isfinite(a) && isfinite(b) && isfinite(c) && isfinite(d)
               ? widened(fmin(fmin(a, b), fmin(c, d)), fmax(fmax(a, b), fmax(c, d)))
               : anything;
}

static interval compared(bool yes, bool no)
{
    return yes ? (interval){1, 1} : no ? (interval){0, 0} : anything;
}

static interval power_of(interval a, interval b)
{
    const bool varies = a.lo < a.hi, exponent_varies = b.lo < b.hi;
    if (!(a.lo > 0) || (varies && exponent_varies)) { return anything; }
    return corners(pow(a.lo, b.lo), pow(a.hi, b.lo), pow(a.lo, b.hi), pow(a.hi, b.hi));
}

static interval image(const crdi_step* s, interval a, interval b, interval c, const double* table)
{
    const int count = crdi_op_operands((crdi_op)s->op);
    if (isnan(a.lo)) { return anything; }
    if (s->op == OP_CHOOSE) { return a.lo < a.hi ? anything : a.lo != 0 ? b : c; }
    if ((count > 1 && isnan(b.lo)) || (count > 2 && isnan(c.lo))) { return anything; }
    if (!(a.lo < a.hi) && (count < 2 || !(b.lo < b.hi)) && (count < 3 || !(c.lo < c.hi))) {
        const double y = crdi_op_value(s, a.lo, count > 1 ? b.lo : 0, count > 2 ? c.lo : 0, table);
        return isfinite(y) ? (interval){y, y} : anything;
    }
    switch ((crdi_op)s->op) {
    case OP_NEG:
        return (interval){-a.hi, -a.lo};
    case OP_ADD:
        return widened(a.lo + b.lo, a.hi + b.hi);
    case OP_SUB:
        return widened(a.lo - b.hi, a.hi - b.lo);
    case OP_MUL:
        return corners(a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi);
    case OP_DIV:
        if (b.lo <= 0 && b.hi >= 0) { return anything; }
        return corners(a.lo / b.lo, a.lo / b.hi, a.hi / b.lo, a.hi / b.hi);
    case OP_POW:
        return power_of(a, b);
    case OP_LT:
    case OP_LE:
        return compared(a.hi<b.lo, a.lo> b.hi);
    case OP_GT:
    case OP_GE:
        return compared(a.lo > b.hi, a.hi < b.lo);
    case OP_SQRT:
    case OP_LN:
    case OP_LOG10:
        if (!(a.lo > 0)) { return anything; }
        // fall through
    case OP_EXP:
    case OP_ATAN:
    case OP_TANH: {
        return widened(crdi_op_value(s, a.lo, 0, 0, table), crdi_op_value(s, a.hi, 0, 0, table));
    }
    case OP_SIN:
    case OP_COS:
        return (interval){-1, 1};
    default:
        return anything;
    }
}

// Whether what comes after the neck is smooth while the neck is between lo and hi; l->v has the
// values of the steps before it.
static bool is_smooth(crdi_law* l, double lo, double hi)
{
    const crd_expression* e = l->e;
    const int last = e->count - 1;
    for (int i = 0; i <= last; i++) {
        const crdi_step* s = &e->steps[i];
        interval y = {l->v[i], l->v[i]};
        if (i == l->neck) {
            y = (interval){lo, hi};
        } else if (i > l->neck && s->op != OP_USE && s->op != OP_CONST) {
            const int n = crdi_op_operands((crdi_op)s->op);
            const int b = n > 1 ? s->b : 0, c = n > 2 ? s->c : 0;
            y = image(s, (interval){l->lo[s->a], l->hi[s->a]}, (interval){l->lo[b], l->hi[b]},
                      (interval){l->lo[c], l->hi[c]}, e->table);
        }
        l->lo[i] = y.lo;
        l->hi[i] = y.hi;
    }
    return isfinite(l->lo[last]);
}

// ---- cells -------------------------------------------------------------------------------------

static double behind(crdi_law* l, const double* x, double neck)
{
    l->v[l->neck] = neck;
    crdi_expression_forward(l->e, l->neck + 1, l->e->count, x, 0, l->v);
    return l->v[l->e->count - 1];
}

static inline double law_polynomial(const double* c, double z)
{
    const double z2 = z * z, z4 = z2 * z2;
    return (c[0] + c[1] * z + (c[2] + c[3] * z) * z2) +
           z4 * (c[4] + c[5] * z + (c[6] + c[7] * z) * z2);
}

static double law_slope(const double* c, double z)
{
    const double z2 = z * z, z4 = z2 * z2;
    return (c[1] + 2 * c[2] * z + (3 * c[3] + 4 * c[4] * z) * z2) +
           z4 * (5 * c[5] + 6 * c[6] * z + 7 * c[7] * z2);
}

// Coefficients of Chebyshev polynomials become those of powers.
static void to_powers(const double* a, double* c)
{
    double before[NODES] = {1}, now[NODES] = {0, 1};
    memset(c, 0, NODES * sizeof *c);
    c[0] = a[0];
    for (int k = 1; k < NODES; k++) {
        double next[NODES];
        for (int i = 0; i < NODES; i++) {
            c[i] += a[k] * now[i];
            next[i] = (i > 0 ? 2 * now[i - 1] : 0) - before[i];
        }
        memcpy(before, now, sizeof now);
        memcpy(now, next, sizeof next);
    }
}

// The coefficients have to fall so fast that those left out are rounding; and at places between the
// nodes the polynomial is compared with the expression.
static bool law_fits(crdi_law* l, const double* x, cell* c, double half)
{
    static const double check[] = {-1, -0.4, 0, 0.7, 1};
    const double pi = 3.14159265358979323846;
    double y[NODES], a[NODES], most = 0, least = (double)INFINITY;
    for (int j = 0; j < NODES; j++) {
        y[j] = behind(l, x, c->middle + half * cos(pi * (j + 0.5) / NODES));
        most = fmax(most, fabs(y[j]));
        least = fmin(least, fabs(y[j]));
    }
    for (int k = 0; k < NODES; k++) {
        double sum = 0;
        for (int j = 0; j < NODES; j++) {
            sum += y[j] * cos(pi * k * (j + 0.5) / NODES);
        }
        a[k] = (k ? 2. : 1.) / NODES * sum;
    }
    if (!isfinite(most) || !(least > 0.1 * most)) { return false; } // a zero has no relative error
    if (!(fabs(a[7]) <= 1e-13 * most) || !(fabs(a[6]) <= 1e-11 * most)) { return false; }
    to_powers(a, c->c);
    for (size_t k = 0; k < sizeof check / sizeof *check; k++) {
        const double want = behind(l, x, c->middle + half * check[k]);
        if (!(fabs(law_polynomial(c->c, check[k]) - want) <= 1e-13 * most)) { return false; }
    }
    return true;
}

static double of_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// 5 bits behind the point
static uint64_t key_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits >> 47;
}

static void make_cell(crdi_law* l, const double* x, cell* c, uint64_t key)
{
    const double from = of_bits(key << 47), to = of_bits((key + 1) << 47);
    *c = (cell){.key = key, .exact = true, .middle = 0.5 * (from + to)};
    const double half = 0.5 * fabs(to - from);
    c->scale = 1 / half;
    crdi_expression_forward(l->e, l->e->constants, l->e->count, x, 0, l->v);
    if (fabs(from) >= 1e-100 && fabs(to) <= 1e100 && is_smooth(l, fmin(from, to), fmax(from, to))) {
        c->exact = !law_fits(l, x, c, half);
    }
}

static double neck_of(crdi_law* l, const double* x)
{
    if (l->affine) {
        double sum = l->base;
        for (int k = 0; k < l->e->use_count; k++) {
            sum += l->weight[k] * x[k];
        }
        return sum;
    }
    crdi_expression_forward(l->e, l->e->constants, l->neck + 1, x, 0, l->v);
    return l->v[l->neck];
}

// Whether the inputs have stayed for long enough. Cells for other inputs are forgotten.
static bool is_patient(crdi_law* l, const double* x, double* memory)
{
    bool same = true, held = true;
    for (int k = 0; k < l->inputs; k++) {
        const double now = x[l->input[k]];
        same = same && memory[1 + k] == now;
        held = held && l->held[k] == now;
        memory[1 + k] = now;
    }
    if (!same) { memory[0] = 0; }
    if (memory[0] < PATIENCE) {
        memory[0]++;
        return false;
    }
    if (!held) {
        law_forget(l);
        for (int k = 0; k < l->inputs; k++) {
            l->held[k] = x[l->input[k]];
        }
    }
    return true;
}

double crdi_law_eval(crdi_law* l, const double* x, double* gradient, double* memory)
{
    const crd_expression* e = l->e;
    if (!is_patient(l, x, memory)) { return crd_expression_eval(e, x, 0, gradient); }
    const double neck = neck_of(l, x);
    const uint64_t key = key_of(neck);
    cell* c = &l->cell[key & 1];
    if (c->key != key) { make_cell(l, x, c, key); }
    if (c->exact) { return crd_expression_eval(e, x, 0, gradient); }
    const double z = (neck - c->middle) * c->scale;
    if (gradient) {
        const double factor = law_slope(c->c, z) * c->scale;
        if (l->affine) {
            memcpy(gradient, l->weight, (size_t)e->use_count * sizeof *gradient);
        } else {
            neck_of(l, x); // the cell may have used its room
            crdi_expression_backward(e, l->neck, l->v, l->d, gradient);
        }
        for (int k = 0; k < e->use_count; k++) {
            gradient[k] *= factor;
        }
    }
    return law_polynomial(c->c, z);
}
