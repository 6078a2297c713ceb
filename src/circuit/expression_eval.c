// Values forwards, derivatives backwards: each costs one pass, however many things are used.
#include "circuit/operation.h"
#include "shared/circuit_part.h"

#include <math.h>
#include <string.h>

int crd_expression_uses(const crd_expression* e, const crd_use** uses)
{
    *uses = e->uses;
    return e->use_count;
}

crd_use* crdi_expression_use_list(crd_expression* e, int* count)
{
    *count = e->use_count;
    return e->uses;
}

int crdi_op_operands(crdi_op op)
{
#define OPERANDS(name, operands, value, da, db, dc) operands,
    static const uint8_t count[] = {CRDI_OPERATORS(OPERANDS)};
#undef OPERANDS
    return count[op];
}

static double power(double x, double y)
{
    if (y == 2) { return x * x; }
    if (y == 1.5) { return fabs(x) * sqrt(fabs(x)); }
    if (y == 0.5) { return sqrt(fabs(x)); }
    return pow(y == nearbyint(y) ? x : fabs(x), y);
}

// The piece of the table that x lies in: points k and k + 1.
static int piece(const double* p, int count, double x)
{
    int low = 0, high = count - 1;
    while (high - low > 1) {
        const int k = low + (high - low) / 2;
        if (p[2 * k] > x) {
            high = k;
        } else {
            low = k;
        }
    }
    return low;
}

static double piece_slope(const double* p, int k)
{
    return (p[2 * k + 3] - p[2 * k + 1]) / (p[2 * k + 2] - p[2 * k]);
}

static double look_up(const crdi_step* s, double x, const double* table, bool held)
{
    const double* p = table + s->b;
    const int n = s->c;
    if (n == 1) { return p[1]; }
    if (held && x <= p[0]) { return p[1]; }
    if (held && x >= p[2 * n - 2]) { return p[2 * n - 1]; }
    const int k = piece(p, n, x);
    return p[2 * k + 1] + piece_slope(p, k) * (x - p[2 * k]);
}

static double look_up_slope(const crdi_step* s, double x, const double* table, bool held)
{
    const double* p = table + s->b;
    const int n = s->c;
    if (n == 1 || (held && (x < p[0] || x > p[2 * n - 2]))) { return 0; }
    return piece_slope(p, piece(p, n, x));
}

static double sign(double x)
{
    return x > 0 ? 1 : x < 0 ? -1 : 0;
}

static double power_slope(double a, double b) // by a: of |a|^b, unless b is an integer
{
    if (b == 0) { return 0; }
    return b == nearbyint(b) ? b * pow(a, b - 1) : b * pow(fabs(a), b - 1) * sign(a);
}

static double pwr_slope(double a, double b) // by a: of sgn(a) |a|^b
{
    return b == 0 ? 0 : b * pow(fabs(a), b - 1);
}

static double exponent_slope(double a, double y) // by b, of both
{
    return a == 0 ? 0 : y * log(fabs(a));
}

int crdi_step_points(const crdi_step* s)
{
    return s->op == OP_TABLE || s->op == OP_PWL ? s->b + 2 * s->c : 0;
}

double crdi_op_value(const crdi_step* s, double a, double b, double c, const double* table)
{
#define VALUE(name, operands, value, da, db, dc)                                                   \
    case OP_##name:                                                                                \
        return value;
    switch ((crdi_op)s->op) {
        CRDI_OPERATORS(VALUE)
    }
#undef VALUE
    return (double)NAN;
}

// Adds the derivatives of step s to those of its operands; g is that of its value y.
static void spread(const crdi_step* s, const double* v, double y, double g, const double* table,
                   double* d)
{
    const int n = crdi_op_operands((crdi_op)s->op);
    const double a = v[s->a], b = n > 1 ? v[s->b] : 0, c = n > 2 ? v[s->c] : 0;
    double by_a = 0, by_b = 0, by_c = 0;
#define PARTIALS(name, operands, value, da, db, dc)                                                \
    case OP_##name:                                                                                \
        by_a = da, by_b = db, by_c = dc;                                                           \
        break;
    switch ((crdi_op)s->op) {
        CRDI_OPERATORS(PARTIALS)
    }
#undef PARTIALS
    // A factor of exactly 0 stays 0, even times infinity: x^0 at 0, a constant exponent.
    if (by_a != 0) { d[s->a] += g * by_a; }
    if (by_b != 0) { d[s->b] += g * by_b; }
    if (by_c != 0) { d[s->c] += g * by_c; }
}

void crdi_expression_forward(const crd_expression* e, int from, int to, const double* x, double t,
                             double* v)
{
    for (int i = from; i < to; i++) {
        const crdi_step* s = &e->steps[i];
        switch ((crdi_op)s->op) { // what is frequent is here
        case OP_CONST:
            v[i] = s->k;
            break;
        case OP_USE:
            v[i] = x[s->a];
            break;
        case OP_TIME:
            v[i] = t;
            break;
        case OP_ADD:
            v[i] = v[s->a] + v[s->b];
            break;
        case OP_SUB:
            v[i] = v[s->a] - v[s->b];
            break;
        case OP_MUL:
            v[i] = v[s->a] * v[s->b];
            break;
        case OP_DIV:
            v[i] = v[s->a] / v[s->b];
            break;
        case OP_POW:
            v[i] = power(v[s->a], v[s->b]);
            break;
        default: {
            const int n = crdi_op_operands((crdi_op)s->op);
            v[i] = crdi_op_value(s, v[s->a], n > 1 ? v[s->b] : 0, n > 2 ? v[s->c] : 0, e->table);
            break;
        }
        }
    }
}

void crdi_expression_backward(const crd_expression* e, int last, const double* v, double* d,
                              double* gradient)
{
    memset(gradient, 0, (size_t)e->use_count * sizeof *gradient);
    memset(d, 0, (size_t)(last + 1) * sizeof *d);
    d[last] = 1;
    for (int i = last; i >= e->constants; i--) {
        const crdi_step* s = &e->steps[i];
        // What the result does not depend on here may be infinite: the other branch of ?:
        if (d[i] == 0) { continue; }
        if (s->op == OP_USE) {
            gradient[s->a] += d[i];
        } else if (s->op != OP_CONST && s->op != OP_TIME) {
            spread(s, v, v[i], d[i], e->table, d);
        }
    }
}

static inline double expression_eval_run(const crd_expression* e, const double* x, double t,
                                         double* gradient, double* v, double* d)
{
    crdi_expression_forward(e, 0, e->count, x, t, v);
    if (gradient) { crdi_expression_backward(e, e->count - 1, v, d, gradient); }
    return v[e->count - 1];
}

// Kept apart so that small expressions do not touch the large stack frame.
static __attribute__((noinline)) double run_large(const crd_expression* e, const double* x,
                                                  double t, double* gradient)
{
    double v[CRDI_OPERATIONS_MOST], d[CRDI_OPERATIONS_MOST];
    return expression_eval_run(e, x, t, gradient, v, d);
}

double crd_expression_eval(const crd_expression* e, const double* x, double t, double* gradient)
{
    double v[64], d[64];
    if (e->count > 64) { return run_large(e, x, t, gradient); }
    return expression_eval_run(e, x, t, gradient, v, d);
}
