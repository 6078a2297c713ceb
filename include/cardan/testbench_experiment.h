/// The experiment of Baumann et al. (2024), section 3, on models: a hybrid car accelerates for 12 s
/// and shifts once, its engine stands on a test bed, and the torque of the engine's shaft comes
/// over a link with latency. Each configuration of the coupling is a run of the closed loop.
///
/// The two units are pt_testbed and pt_accelerate (crd_powertrain_model); a configuration is the
/// coupling element of one connection, exactly as examples/experiment has it. Equal options give
/// equal bits. One thread.
#pragma once
#include "cardan/base.h"
#include "cardan/coupling.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Start from crd_bench_experiment_defaults().
typedef struct crd_bench_experiment_options {
    uint64_t seed;  ///< of noise, driver and link, below 1e9; default 1
    double latency; ///< s of the link, > 0; default 57.5 ms
    double jitter;  ///< s; each sample takes latency - jitter .. latency + jitter; default 0.5 ms
    double step;    ///< macro step, s, 1 ms to 50 ms, 12 s a multiple of it; default 10 ms
    const char* folder; ///< gets a recording ID.mf4 of each run; it exists. NULL: none
    /// Called before each run. May be NULL.
    void (*progress)(void* user, int done, int of, const char* name);
    void* progress_user;
} crd_bench_experiment_options;

/// In the order of the tables.
typedef enum crd_bench_case {
    CRD_BENCH_IDEAL, ///< no link, macro step 1 ms
    CRD_BENCH_ZOH,
    CRD_BENCH_FOH,
    CRD_BENCH_EROS,
    CRD_BENCH_FOH_SWITCH,
    CRD_BENCH_EROS_SWITCH,
    CRD_BENCH_OPTIMAL,       ///< least J: phase on 0.1 .. 10 rad/s, magnitude on 0.1 .. 55, m = 9
    CRD_BENCH_TRAINED,       ///< network that began as the optimal one: two times 100 epochs of
                             ///< Adam on the samples of a previous run
    CRD_BENCH_LEAST_SQUARES, ///< the same network and the same samples, ridge regression
    CRD_BENCH_AUTO,          ///< Cardan's mixture, which knows nothing beforehand
    CRD_BENCH_CASES,
} crd_bench_case;

/// What was published (tables 2 and 3). NaN: nothing was.
typedef struct crd_bench_published {
    double C, M, P;      ///< times 100
    double peak, energy; ///< s and % against ZOH
} crd_bench_published;

typedef struct crd_bench_run {
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
    crd_bench_published published;
    /// Series at macro time points (count).
    const double *sent, *received; ///< torque, N.m: at the test bed, at the car
    const double* shaft_speed;     ///< of the car, rad/s
    const double *speed, *target;  ///< m/s: of the car, and wanted
} crd_bench_run;

/// A goal of the experiment and whether it was reached.
typedef struct crd_bench_goal {
    const char* what;    ///< "optimal: C against ZOH, %"
    double ours, wanted; ///< ours <= wanted is good
    bool met;
} crd_bench_goal;

typedef struct crd_bench_experiment {
    crd_context* ctx;
    crdi_arena arena; ///< all of it
    crd_bench_experiment_options options;
    int k; ///< latency in macro steps
    int64_t count;
    const double* time; ///< (count) s
    crd_bench_run runs[CRD_BENCH_CASES];
    double optimal[9];   ///< weights of the optimal algorithm
    double filter_delay; ///< s of the test bed's low-pass, second order after Bessel
    const crd_bench_goal* goals;
    int goal_count;
    const char* const* remarks; ///< where an order differs from the paper's, and why
    int remark_count;
    size_t remark_capacity;
} crd_bench_experiment;

CRD_API crd_bench_experiment_options crd_bench_experiment_defaults(void);
/// `opt` may be NULL. CRD_E_RANGE: an option makes no sense. CRD_E_IO: the folder cannot be
/// written.
CRD_API crd_status crd_bench_experiment_run(crd_context* ctx,
                                            const crd_bench_experiment_options* opt,
                                            crd_bench_experiment** out);
CRD_API void crd_bench_experiment_destroy(crd_bench_experiment* e);

#ifdef __cplusplus
}
#endif
