// What random_linear.c draws and solves, and random_run.c runs.
#pragma once
#include "random_linear.h"

enum {
    FORCE = 3,                                        // elements of w
    LOCAL = RANDOM_STATES + FORCE + 3 * RANDOM_PORTS, // a unit with its input
    WHOLE = RANDOM_UNITS * (RANDOM_STATES + FORCE),   // the coupled system
    ROWS = 3 * RANDOM_PORTS + 2 * RANDOM_STATES,      // of a model's table, at most
};

typedef struct random_exact_step {
    double h;                       // 0: not made yet
    double P[RANDOM_STATES][LOCAL]; // x(t + h) from x, w, u, u', u''
} random_exact_step;

typedef struct random_unit {
    const random_linear* system;
    char name[2];
    int number, nx, nu, ny;
    double A[RANDOM_STATES][RANDOM_STATES], B[RANDOM_STATES][RANDOM_PORTS];
    double C[RANDOM_PORTS][RANDOM_STATES], D[RANDOM_PORTS][RANDOM_PORTS];
    double E[RANDOM_STATES][FORCE];
    double omega, x0[RANDOM_STATES], w0[FORCE];
    bool jumps;
    double jump_x[RANDOM_STATES], jump_w; // added to x and to the constant
    double rough[RANDOM_PORTS][3];        // standard deviation of the noise of y, y', y''
    int ticks;
    int from_unit[RANDOM_PORTS], from_port[RANDOM_PORTS]; // of each input
    random_exact_step steps[2];
    crd_model model;
    crd_model_variable rows[ROWS];
    char names[ROWS][16], depends[ROWS][64];
} random_unit;

struct random_linear {
    uint64_t seed;
    random_traits traits;
    random_unit units[RANDOM_UNITS];
    double H, fastest, rate; // rate: largest real part
    double jump_time;
    int outputs;
    double* exact; // ((steps + 1) x outputs)
    double rms[RANDOM_OUTPUTS];
    char names[RANDOM_OUTPUTS][24];
};

// random_linear.c: numbers
uint64_t random_mix(uint64_t z);
double random_normal(uint64_t* state);
/// exp(A) of an n x n matrix, row by row.
void random_exponential(int n, double* A);
bool random_unit_is_direct(const random_unit* p); ///< D is not zero
