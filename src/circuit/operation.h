// What compiled expressions consist of.
#pragma once
#include "circuit/expression.h"

// A row for each operator: how many of a, b, c are operands, its value, and the partial derivatives
// of the value, y, by a, b and c. s is the step itself: what else belongs to it.
//     POW: ^ and pow(), |a|^b unless b is an integer. PWR: sgn(a) |a|^b. CHOOSE: a ? b : c.
//     TABLE: of a; s->b is the first point, s->c how many; held at the ends. PWL: the first and
//     last pieces go on.
#define CRDI_OPERATORS(X)                                                                          \
    X(CONST, 0, s->k, 0, 0, 0)                                                                     \
    X(USE, 0, 0, 0, 0, 0) /* s->a: index; its value is the caller's */                             \
    X(TIME, 0, 0, 0, 0, 0)                                                                         \
    X(NEG, 1, -a, -1, 0, 0)                                                                        \
    X(NOT, 1, a == 0, 0, 0, 0)                                                                     \
    X(ADD, 2, a + b, 1, 1, 0)                                                                      \
    X(SUB, 2, a - b, 1, -1, 0)                                                                     \
    X(MUL, 2, a* b, b, a, 0)                                                                       \
    X(DIV, 2, a / b, 1 / b, -y / b, 0)                                                             \
    X(MOD, 2, fmod(a, b), 1, -trunc(a / b), 0)                                                     \
    X(POW, 2, power(a, b), power_slope(a, b), exponent_slope(a, y), 0)                             \
    X(PWR, 2, sign(a) * pow(fabs(a), b), pwr_slope(a, b), exponent_slope(a, y), 0)                 \
    X(LT, 2, a < b, 0, 0, 0)                                                                       \
    X(LE, 2, a <= b, 0, 0, 0)                                                                      \
    X(GT, 2, a > b, 0, 0, 0)                                                                       \
    X(GE, 2, a >= b, 0, 0, 0)                                                                      \
    X(EQ, 2, a == b, 0, 0, 0)                                                                      \
    X(NE, 2, a != b, 0, 0, 0)                                                                      \
    X(AND, 2, a != 0 && b != 0, 0, 0, 0)                                                           \
    X(OR, 2, a != 0 || b != 0, 0, 0, 0)                                                            \
    X(CHOOSE, 3, a != 0 ? b : c, 0, a != 0, !(a != 0))                                             \
    X(SIN, 1, sin(a), cos(a), 0, 0)                                                                \
    X(COS, 1, cos(a), -sin(a), 0, 0)                                                               \
    X(TAN, 1, tan(a), 1 + y * y, 0, 0)                                                             \
    X(ASIN, 1, asin(a), 1 / sqrt(1 - a * a), 0, 0)                                                 \
    X(ACOS, 1, acos(a), -1 / sqrt(1 - a * a), 0, 0)                                                \
    X(ATAN, 1, atan(a), 1 / (1 + a * a), 0, 0)                                                     \
    X(ATAN2, 2, atan2(a, b), b / (a * a + b * b), -a / (a * a + b * b), 0)                         \
    X(SINH, 1, sinh(a), cosh(a), 0, 0)                                                             \
    X(COSH, 1, cosh(a), sinh(a), 0, 0)                                                             \
    X(TANH, 1, tanh(a), 1 - y * y, 0, 0)                                                           \
    X(ASINH, 1, asinh(a), 1 / sqrt(a * a + 1), 0, 0)                                               \
    X(ACOSH, 1, acosh(a), 1 / sqrt(a * a - 1), 0, 0)                                               \
    X(ATANH, 1, atanh(a), 1 / (1 - a * a), 0, 0)                                                   \
    X(EXP, 1, exp(a), y, 0, 0)                                                                     \
    X(LN, 1, log(a), 1 / a, 0, 0)                                                                  \
    X(LOG10, 1, log10(a), 0.43429448190325182765 / a, 0, 0)                                        \
    X(SQRT, 1, sqrt(a), 0.5 / y, 0, 0)                                                             \
    X(ABS, 1, fabs(a), sign(a), 0, 0)                                                              \
    X(MIN, 2, a > b ? b : a, !(a > b), a > b, 0)                                                   \
    X(MAX, 2, a < b ? b : a, !(a < b), a < b, 0)                                                   \
    X(SGN, 1, sign(a), 0, 0, 0)                                                                    \
    X(STEP, 1, a > 0 ? 1 : a < 0 ? 0 : 0.5, 0, 0, 0)                                               \
    X(RAMP, 1, a<0 ? 0 : a, a> 0, 0, 0)                                                            \
    X(FLOOR, 1, floor(a), 0, 0, 0)                                                                 \
    X(CEIL, 1, ceil(a), 0, 0, 0)                                                                   \
    X(INT, 1, trunc(a), 0, 0, 0)                                                                   \
    X(LIMIT, 3, a<b ? b : a> c ? c : a, !(a < b || a > c), a < b, !(a < b) && a > c)               \
    X(TABLE, 1, look_up(s, a, table, true), look_up_slope(s, a, table, true), 0, 0)                \
    X(PWL, 1, look_up(s, a, table, false), look_up_slope(s, a, table, false), 0, 0)

#define CRDI_OPERATOR(name, operands, value, da, db, dc) OP_##name,
typedef enum crdi_op { CRDI_OPERATORS(CRDI_OPERATOR) } crdi_op;
#undef CRDI_OPERATOR

struct crdi_operation {
    uint8_t op;
    bool bad;        // of constants, and without a finite value
    int32_t a, b, c; // operands, always before their user
    int32_t line;    // while it is read
    crd_use use;
    double k;
};

typedef crd_expression_step crdi_step; // of the finished list

// How many of a, b, c are operands.
int crdi_op_operands(crdi_op op);
// One operation from the values of its operands.
double crdi_op_value(const crdi_step* s, double a, double b, double c, const double* table);
// Values of the steps from .. to-1, into v; x is what the uses are.
void crdi_expression_forward(const crd_expression* e, int from, int to, const double* x, double t,
                             double* v);
// Derivatives of step `last` by the uses; d: room for last + 1.
void crdi_expression_backward(const crd_expression* e, int last, const double* v, double* d,
                              double* gradient);
