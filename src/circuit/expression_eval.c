// Values forwards, derivatives backwards: each costs one pass, however many things are used.
#include "circuit/operation.h"

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
    switch (op) {
    case OP_CONST:
    case OP_USE:
    case OP_TIME:
        return 0;
    case OP_CHOOSE:
    case OP_LIMIT:
        return 3;
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
    case OP_DIV:
    case OP_MOD:
    case OP_POW:
    case OP_PWR:
    case OP_LT:
    case OP_LE:
    case OP_GT:
    case OP_GE:
    case OP_EQ:
    case OP_NE:
    case OP_AND:
    case OP_OR:
    case OP_ATAN2:
    case OP_MIN:
    case OP_MAX:
        return 2;
    default:
        return 1;
    }
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

static double expression_eval_slope(const double* p, int k)
{
    return (p[2 * k + 3] - p[2 * k + 1]) / (p[2 * k + 2] - p[2 * k]);
}

static double expression_eval_look_up(const crdi_step* s, double x, const double* table, bool held)
{
    const double* p = table + s->b;
    const int n = s->c;
    if (n == 1) { return p[1]; }
    if (held && x <= p[0]) { return p[1]; }
    if (held && x >= p[2 * n - 2]) { return p[2 * n - 1]; }
    const int k = piece(p, n, x);
    return p[2 * k + 1] + expression_eval_slope(p, k) * (x - p[2 * k]);
}

static double look_up_slope(const crdi_step* s, double x, const double* table, bool held)
{
    const double* p = table + s->b;
    const int n = s->c;
    if (n == 1 || (held && (x < p[0] || x > p[2 * n - 2]))) { return 0; }
    return expression_eval_slope(p, piece(p, n, x));
}

static double sign(double x)
{
    return x > 0 ? 1 : x < 0 ? -1 : 0;
}

// NOLINTNEXTLINE(readability-function-size): two lines for each operator
double crdi_op_value(const crdi_step* s, double a, double b, double c, const double* table)
{
    switch ((crdi_op)s->op) {
    case OP_CONST:
        return s->k;
    case OP_USE:
    case OP_TIME:
        return 0; // the caller's
    case OP_NEG:
        return -a;
    case OP_NOT:
        return a == 0;
    case OP_ADD:
        return a + b;
    case OP_SUB:
        return a - b;
    case OP_MUL:
        return a * b;
    case OP_DIV:
        return a / b;
    case OP_MOD:
        return fmod(a, b);
    case OP_POW:
        return power(a, b);
    case OP_PWR:
        return sign(a) * pow(fabs(a), b);
    case OP_LT:
        return a < b;
    case OP_LE:
        return a <= b;
    case OP_GT:
        return a > b;
    case OP_GE:
        return a >= b;
    case OP_EQ:
        return a == b;
    case OP_NE:
        return a != b;
    case OP_AND:
        return a != 0 && b != 0;
    case OP_OR:
        return a != 0 || b != 0;
    case OP_CHOOSE:
        return a != 0 ? b : c;
    case OP_SIN:
        return sin(a);
    case OP_COS:
        return cos(a);
    case OP_TAN:
        return tan(a);
    case OP_ASIN:
        return asin(a);
    case OP_ACOS:
        return acos(a);
    case OP_ATAN:
        return atan(a);
    case OP_ATAN2:
        return atan2(a, b);
    case OP_SINH:
        return sinh(a);
    case OP_COSH:
        return cosh(a);
    case OP_TANH:
        return tanh(a);
    case OP_ASINH:
        return asinh(a);
    case OP_ACOSH:
        return acosh(a);
    case OP_ATANH:
        return atanh(a);
    case OP_EXP:
        return exp(a);
    case OP_LN:
        return log(a);
    case OP_LOG10:
        return log10(a);
    case OP_SQRT:
        return sqrt(a);
    case OP_ABS:
        return fabs(a);
    case OP_MIN:
        return a > b ? b : a;
    case OP_MAX:
        return a < b ? b : a;
    case OP_SGN:
        return sign(a);
    case OP_STEP:
        return a > 0 ? 1 : a < 0 ? 0 : 0.5;
    case OP_RAMP:
        return a < 0 ? 0 : a;
    case OP_FLOOR:
        return floor(a);
    case OP_CEIL:
        return ceil(a);
    case OP_INT:
        return trunc(a);
    case OP_LIMIT:
        return a < b ? b : a > c ? c : a;
    case OP_TABLE:
        return expression_eval_look_up(s, a, table, true);
    case OP_PWL:
        return expression_eval_look_up(s, a, table, false);
    }
    return (double)NAN;
}

// The derivative of functions of one argument; y is the value.
static double derivative(const crdi_step* s, double a, double y, const double* table)
{
    switch ((crdi_op)s->op) {
    case OP_NEG:
        return -1;
    case OP_SIN:
        return cos(a);
    case OP_COS:
        return -sin(a);
    case OP_TAN:
        return 1 + y * y;
    case OP_ASIN:
        return 1 / sqrt(1 - a * a);
    case OP_ACOS:
        return -1 / sqrt(1 - a * a);
    case OP_ATAN:
        return 1 / (1 + a * a);
    case OP_SINH:
        return cosh(a);
    case OP_COSH:
        return sinh(a);
    case OP_TANH:
        return 1 - y * y;
    case OP_ASINH:
        return 1 / sqrt(a * a + 1);
    case OP_ACOSH:
        return 1 / sqrt(a * a - 1);
    case OP_ATANH:
        return 1 / (1 - a * a);
    case OP_EXP:
        return y;
    case OP_LN:
        return 1 / a;
    case OP_LOG10:
        return 0.43429448190325182765 / a;
    case OP_SQRT:
        return 0.5 / y;
    case OP_ABS:
        return sign(a);
    case OP_RAMP:
        return a > 0;
    case OP_TABLE:
        return look_up_slope(s, a, table, true);
    case OP_PWL:
        return look_up_slope(s, a, table, false);
    default:
        return 0; // steps and comparisons
    }
}

// d(|x|^y)/dx with the sign that belongs to it, and d/dy.
static void power_partials(const crdi_step* s, double a, double b, double y, double* da, double* db)
{
    const bool whole = s->op == OP_POW && b == nearbyint(b);
    if (b == 0) {
        *da = 0;
    } else if (whole) {
        *da = b * pow(a, b - 1);
    } else {
        *da = b * pow(fabs(a), b - 1);
        if (s->op == OP_POW) { *da *= sign(a); }
    }
    *db = a == 0 ? 0 : y * log(fabs(a));
}

// Adds the derivatives of step s to those of its operands; g is that of its value y.
static void spread(const crdi_step* s, const double* v, double y, double g, const double* table,
                   double* d)
{
    const double a = v[s->a], b = s->op == OP_TABLE || s->op == OP_PWL ? 0 : v[s->b];
    double da = 0, db = 0;
    switch ((crdi_op)s->op) {
    case OP_ADD:
        da = db = 1;
        break;
    case OP_SUB:
        da = 1, db = -1;
        break;
    case OP_MUL:
        da = b, db = a;
        break;
    case OP_DIV:
        da = 1 / b, db = -y / b;
        break;
    case OP_MOD:
        da = 1, db = -trunc(a / b);
        break;
    case OP_POW:
    case OP_PWR:
        power_partials(s, a, b, y, &da, &db);
        break;
    case OP_ATAN2:
        da = b / (a * a + b * b), db = -a / (a * a + b * b);
        break;
    case OP_MIN:
        *(a > b ? &db : &da) = 1;
        break;
    case OP_MAX:
        *(a < b ? &db : &da) = 1;
        break;
    case OP_CHOOSE:
        d[a != 0 ? s->b : s->c] += g;
        return;
    case OP_LIMIT:
        d[a < b ? s->b : a > v[s->c] ? s->c : s->a] += g;
        return;
    default:
        d[s->a] += g * derivative(s, a, y, table);
        return;
    }
    // A factor of exactly 0 stays 0, even times infinity: x^0 at 0, a constant exponent.
    if (da != 0) { d[s->a] += g * da; }
    if (db != 0) { d[s->b] += g * db; }
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
