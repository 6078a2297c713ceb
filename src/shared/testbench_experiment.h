/// The experiment of Baumann et al. (2024), section 3, on models: a hybrid car accelerates for 12 s
/// and shifts once, its engine stands on a test bed, and the torque of the engine's shaft comes
/// over a link with latency. Each configuration of the coupling is a run of the closed loop.
///
/// The two units are pt_testbed and pt_accelerate (crdi_powertrain_model); a configuration is the
/// coupling element of one connection, exactly as examples/experiment has it. Equal options give
/// equal bits. One thread.
#pragma once
#include "cardan/coupling.h"
#include "shared/base.h"

typedef enum crdi_bench_plant_kind {
    CRDI_BENCH_EDGES,  ///< the models as they are: a shift with edges, as the paper's figures have
                       ///< it
    CRDI_BENCH_SMOOTH, ///< a shift of 600 ms behind a lag of the ignition, an oscillating driveline
} crdi_bench_plant_kind;

/// Start from crdi_bench_experiment_defaults().
typedef struct crdi_bench_experiment_options {
    uint64_t seed;  ///< of noise, driver and link, below 1e9; default 1
    double latency; ///< s of the link, > 0; default 57.5 ms
    double jitter;  ///< s; each sample takes latency - jitter .. latency + jitter; default 0.5 ms
    double step;    ///< macro step, s, 1 ms to 50 ms, 12 s a multiple of it; default 10 ms
    crdi_bench_plant_kind plant; ///< default CRDI_BENCH_EDGES
    const char* folder;          ///< gets a recording ID.mf4 of each run; it exists. NULL: none
} crdi_bench_experiment_options;

/// In the order of the tables.
typedef enum crdi_bench_case {
    CRDI_BENCH_IDEAL, ///< no link, macro step 1 ms
    CRDI_BENCH_ZOH,
    CRDI_BENCH_FOH,
    CRDI_BENCH_EROS,
    CRDI_BENCH_FOH_SWITCH, ///< detection with bins 1 to 4 of eq. 42
    CRDI_BENCH_EROS_SWITCH,
    CRDI_BENCH_FOH_ABOVE, ///< bins 2 to 4, "above 25 %", the other way to read it
    CRDI_BENCH_EROS_ABOVE,
    CRDI_BENCH_OPTIMAL,       ///< least J: phase on 0.1 .. 10 rad/s, magnitude on 0.1 .. 55, m = 9
    CRDI_BENCH_TRAINED,       ///< network that began as the optimal one: two times 100 epochs of
                              ///< Adam on the samples of a previous run
    CRDI_BENCH_LEAST_SQUARES, ///< the same network and the same samples, ridge regression
    CRDI_BENCH_AUTO,          ///< Cardan's mixture, which knows nothing beforehand
    CRDI_BENCH_COMMANDS,      ///< the same with what it has learned of the car's set values in a
                              ///< previous run
    CRDI_BENCH_CASES,
} crdi_bench_case;

/// What was published (tables 2 and 3). NaN: nothing was.
typedef struct crdi_bench_published {
    double C, M, P;      ///< times 100
    double peak, energy; ///< s and % against ZOH
} crdi_bench_published;

typedef struct crdi_bench_run {
    const char* id;      ///< "eros-switch", name of its files
    const char* name;    ///< "EROS with switching"
    const char* element; ///< of the coupling, JSON; NULL: the ideal coupling
    crd_metrics metrics; ///< torque as it leaves the test bed against torque at the car's input
    double change;       ///< of C against ZOH, part of it
    double peak;         ///< s: largest torque at the car's input before the shift
    double energy;       ///< J that came to the car from the engine's shaft
    double given;        ///< J that the engine gave on the test bed
    double distance;     ///< m
    int64_t jumps;       ///< discontinuities that were detected
    double k_mean;       ///< latency in macro steps as the element saw it; NaN: ideal
    int k_max;
    crdi_bench_published published;
    /// Series at macro time points (count).
    const double *sent, *received; ///< torque, N.m: at the test bed, at the car
    const double* shaft_speed;     ///< of the car, rad/s
    const double *speed, *target;  ///< m/s: of the car, and wanted
} crdi_bench_run;

/// A goal of the experiment and whether it was reached.
typedef struct crdi_bench_goal {
    const char* what;    ///< "optimal: C against ZOH, %"
    double ours, wanted; ///< ours <= wanted is good
    bool met;
} crdi_bench_goal;

typedef struct crdi_bench_experiment {
    crd_context* ctx;
    crd_arena arena; ///< all of it
    crdi_bench_experiment_options options;
    int k; ///< latency in macro steps
    int64_t count;
    const double* time; ///< (count) s
    crdi_bench_run runs[CRDI_BENCH_CASES];
    double optimal[9];   ///< weights of the optimal algorithm
    double filter_delay; ///< s of the test bed's low-pass, second order after Bessel
    double noise;        ///< N.m of its measurement, at 1 kHz
    const crdi_bench_goal* goals;
    int goal_count;
    const char* const* remarks; ///< where an order differs from the paper's, and why
    int remark_count;
    size_t remark_capacity;
} crdi_bench_experiment;

crdi_bench_experiment_options crdi_bench_experiment_defaults(void);
/// `opt` may be NULL. CRD_E_RANGE: an option makes no sense. CRD_E_IO: the folder cannot be
/// written.
crd_status crdi_bench_experiment_run(crd_context* ctx, const crdi_bench_experiment_options* opt,
                                     crdi_bench_experiment** out);
void crdi_bench_experiment_destroy(crdi_bench_experiment* e);
