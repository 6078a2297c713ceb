// The benchmark circuits of Rodriguez (2021), section 3.4: netlists, references that know nothing
// of the simulator, the error of (3.31), and what a run costs.
#pragma once
#include "cardan/circuit.h"
#include "shared/base.h"

typedef enum crdi_problem {
    CRDI_RLC,
    CRDI_SCALABLE,
    CRDI_RECTIFIER,
    CRDI_MOTOR, ///< temperatures above those of the environment, 300 K
    CRDI_PROBLEMS
} crdi_problem;

/// A circuit and the two variables of it that are monitored (3.4.5): a voltage or temperature, and
/// a current or heat flow.
typedef struct crdi_bench {
    crd_context* ctx;
    crdi_problem problem;
    int loops, watched; ///< of the scalable circuit: how many, which one is monitored; else 0
    const crd_netlist* n;
    crd_netlist* parsed; ///< n, or NULL
    crd_netlist made;    ///< n, if it was not parsed
    crd_arena arena;     ///< of what was made
    crd_waveform wave;
    int32_t node, minus, part; ///< v(node) - v(minus), i(part)
    int32_t yoke;              ///< node of the motor, else -1
    double until;              ///< s (Table 3.4)
    int samples;               ///< equally spaced, without t = 0
} crdi_bench;

/// `loops` and `watched` (1 .. loops) count for the scalable circuit alone. Whatever is returned,
/// crdi_bench_clear may follow.
crd_status crdi_bench_init(crdi_bench* b, crd_context* ctx, crdi_problem problem, int loops,
                           int watched);
void crdi_bench_clear(crdi_bench* b);

/// Exact values at t = until (i + 1) / samples.
typedef struct crdi_samples {
    int count;
    double *y, *z; ///< the monitored voltage and current
    double* x;     ///< of the motor: the yoke, T9; else NULL
} crdi_samples;

/// RLC and scalable circuit: matrix exponential with the source as an oscillator. Rectifier: one
/// differential equation, Radau IIA of order 5 on a mesh that is fine where diodes change. Motor:
/// nine of them, Runge-Kutta of order 4.
crd_status crdi_bench_reference(const crdi_bench* b, crd_arena* arena, crdi_samples* out);

/// The same samples of a run with these options; `out` has room for them.
crd_status crdi_bench_solve(const crdi_bench* b, const crd_circuit_options* opt, crdi_samples* out);
/// Root mean squares (3.31) of the errors of both variables.
void crdi_samples_errors(const crdi_samples* a, const crdi_samples* exact, double error[2]);
crd_status crdi_samples_init(const crdi_bench* b, crd_arena* arena, crdi_samples* out);

/// CPU time, s, of the simulation until `b->until`: the best of some blocks of steps, scaled.
/// Numbers below the normal ones count as 0 meanwhile, as a real-time system has it. `seconds` is
/// how long it may measure, about; 0: as short as possible.
crd_status crdi_bench_cost(const crdi_bench* b, const crd_circuit_options* opt, double seconds,
                           double* out);
