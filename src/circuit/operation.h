// What compiled expressions consist of.
#pragma once
#include "circuit/expression.h"

typedef enum crdi_op {
    OP_CONST,
    OP_USE, // a: index
    OP_TIME,
    OP_NEG,
    OP_NOT,
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_MOD,
    OP_POW, // ^ and pow(): |x|^y unless y is an integer
    OP_PWR, // sgn(x) |x|^y
    OP_LT,
    OP_LE,
    OP_GT,
    OP_GE,
    OP_EQ,
    OP_NE,
    OP_AND,
    OP_OR,
    OP_CHOOSE, // a ? b : c
    OP_SIN,
    OP_COS,
    OP_TAN,
    OP_ASIN,
    OP_ACOS,
    OP_ATAN,
    OP_ATAN2,
    OP_SINH,
    OP_COSH,
    OP_TANH,
    OP_ASINH,
    OP_ACOSH,
    OP_ATANH,
    OP_EXP,
    OP_LN,
    OP_LOG10,
    OP_SQRT,
    OP_ABS,
    OP_MIN,
    OP_MAX,
    OP_SGN,
    OP_STEP, // u
    OP_RAMP, // uramp
    OP_FLOOR,
    OP_CEIL,
    OP_INT,
    OP_LIMIT, // a between b and c
    OP_TABLE, // of a; b: first point, c: points; held at the ends
    OP_PWL,   // the same; the first and last pieces go on
} crdi_op;

struct crdi_operation {
    uint8_t op;
    bool bad;        // of constants, and without a finite value
    int32_t a, b, c; // operands, always before their user
    int32_t line;    // while it is read
    crd_use use;
    double k;
};

typedef struct crdi_step { // of the finished list
    uint8_t op;
    int32_t a, b, c;
    double k;
} crdi_step;

struct crd_expression {
    int count, use_count;
    int constants; // the first steps are these
    crd_use* uses;
    crdi_step* steps; // the last one is the result
    double* table;    // x, y, x, y ...
};

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
