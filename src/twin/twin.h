// What the files of a twin share.
//
// The filter's vector is q = [z, sources, theta]: minimal variables, the states of the source
// models, logarithms of parameters. Values of the network's variables are
//     x = T z + B v + B2 v',   v = known + S (values of unknown sources)
// linearised at theta0: T ~ T0 + sum dT_j (theta_j - theta0_j), and so on.
#pragma once
#include "cardan/twin.h"
#include "shared/base.h"
#include "twin/ud.h"

typedef struct crdi_row { // a linear combination of the network's variables
    int count;
    int32_t* at; // index of x
    double* factor;
    double offset;
} crdi_row;

typedef struct crdi_sensor {
    crdi_row row;
    double* h;     // (n) derivative with respect to q
    double* known; // (r) derivative with respect to v; KALMAN
    double steady; // offset, and what sources that stand still add; KALMAN
    double* gain;  // (n) of the last update; the frozen one
    // What save and restore keep:
    double variance;     // of the last innovation; the frozen one
    double last, jitter; // last measurement; mean square of its changes, forgetting
    double refused;      // share of refused measurements, forgetting
    int64_t repeats;
    crd_twin_sensor_state now;
} crdi_sensor;

typedef struct crdi_source {
    int at, size; // in q: value first
} crdi_source;

typedef struct crdi_thesis crdi_thesis; // thesis.c: the published filter

struct crd_twin {
    crd_context* ctx;
    crd_arena arena;
    const crd_netlist* net;
    crd_twin_spec spec;
    crd_reduction* reduction;
    const crd_reduced* m;
    crd_circuit* start; // for the start values
    int n, p, r, s, k;  // of q; of z, v, source states, parameters
    crdi_source* sources;
    crdi_sensor* sensors;
    double* inputs;  // (.input) as set
    double *v0, *v1; // (r) known part of the sources, before and after the step
    double* select;  // (r x source_count) S
    double *q, *q_before, *theta0;
    crdi_ud p_now, p_before;
    double *f, *d0, *d1, *df, *dd0, *dd1, *work; // discretisation, at theta0
    double *dt, *db;                             // (k x variables x p), (k x variables x r)
    double* phi;                                 // (n x n) transition of q
    double* steady;                              // (p) KALMAN: what sources that stand still add
    double *noise_g, *noise_q, *noise_columns;   // (n x w), (w), scratch
    int noises;
    double *room, *vector, *slope, *values; // scratch
    double* nothing;                        // (sensors) NaN
    crdi_row scratch;                       // for outputs
    bool linearised, constant;              // constant: no parameters, no laws: KALMAN
    int32_t* law_parts;                     // resistors with a law
    double* law_values;
    int law_count;
    int32_t* moving; // inputs whose known part changes
    int moving_count;
    double gate; // in standard deviations
    double h;  // the step that matrices and noise are made for; spec.step unless rows lie elsewhere
    double t0; // the time is t0 + steps spec.step; other steps move t0
    int64_t steps;
    int still, silent, resets; // steps of an unchanged gain; in which every sensor was refused
    bool frozen, begun;
    crdi_thesis* thesis;
};

// rows.c: sensors and outputs as rows over the variables of the network
crd_status crdi_twin_sensor_row(crd_twin* w, int sensor);
double crdi_twin_row_value(const crd_twin* w, const crdi_row* row);
void crdi_twin_row_slope(const crd_twin* w, const crdi_row* row, double* h); // by q
// An expression at the present estimate, and its tangent as a row (its offset is not set).
double crdi_twin_expression(const crd_twin* w, const crd_expression* e, crdi_row* row);
double crdi_twin_variable(const crd_twin* w, int32_t x);

// twin.c: a quantity at the present estimate (a parameter: its logarithm) and its derivative by q;
// NaN: there is none. The variance of h^T q.
double crdi_twin_quantity(const crd_twin* w, crd_twin_quantity q, double* h);
double crdi_twin_variance(const crd_twin* w, const double* h);

// model.c: the network and the source models at the present parameters
void crdi_twin_known(const crd_twin* w, double t, double* v); // waveforms and inputs
int crdi_twin_source_size(crd_source_model model);
crd_status crdi_twin_linearise(crd_twin* w); // at theta, if it moved or laws did
crd_status crdi_twin_matrices(crd_twin* w);  // at what the reduction has
void crdi_twin_transition(crd_twin* w);      // phi at the present q
void crdi_twin_predict_mean(crd_twin* w);    // q one step on
crd_status crdi_twin_noise_room(crd_twin* w);
void crdi_twin_noise(crd_twin* w); // over h

// twin.c: time
double crdi_twin_row_time(const crd_twin* w, const crd_twin_data* d, int64_t row);
crd_status crdi_twin_aim(crd_twin* w, double t); // h and its matrices, so that a step ends at t
void crdi_twin_count_step(crd_twin* w);          // the time, one step on
void crdi_twin_remade(crd_twin* w);              // what follows from new matrices

// start.c: the network at the start, by a simulation of it; on_board.c for controllers, where the
// netlist says it (cardan export c)
crd_status crdi_twin_start_create(crd_twin* w);
void crdi_twin_start_destroy(crd_twin* w);
crd_status crdi_twin_start_begin(crd_twin* w, double t); // at w->inputs
double crdi_twin_start_value(const crd_twin* w, int state);
crd_status crdi_twin_start_check(crd_context* ctx, const crd_netlist* n);

// passes.c
crd_status crdi_twin_passes(crd_context* ctx, const crd_netlist* n, const crd_twin_spec* spec,
                            const crd_twin_data* data, const crd_tune_options* opt,
                            crd_arena* arena, crd_tune_result* out);

// thesis.c
crd_status crdi_thesis_create(crd_twin* w);
void crdi_thesis_destroy(crd_twin* w);
crd_status crdi_thesis_begin(crd_twin* w);
// From w->q with the measurements to w->q; its covariances are asked for by crdi_thesis_variance.
crd_status crdi_thesis_step(crd_twin* w, const double* measurements);
double crdi_thesis_variance(const crd_twin* w, const double* h); // h over [z, sources, theta]
void crdi_thesis_keep(const crd_twin* w, double** x, size_t* n, double** covariance);
void crdi_thesis_restored(crd_twin* w);
