/// Digital twins: what no sensor measures, estimated from a linear network and few sensors, in real
/// time (Rodriguez 2021, ch. 4).
///
/// A twin is a netlist, sensors on it, and what is not known: states, values of parts, sources. The
/// network is reduced to its minimal variables z (capacitor voltages or temperatures, inductor
/// currents); a filter follows z and what is unknown. After crd_twin_create nothing allocates.
#pragma once
#include "cardan/circuit.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- reduction ---------------------------------------------------------------------------------

/// Where a value enters: parts that share one parameter (three equal copper layers), each with a
/// factor to the parameter's value.
typedef struct crd_twin_group {
    const char* name;
    const int32_t* parts;
    const double* factors; ///< value of part = factor * parameter; NULL: all 1
    int count;
} crd_twin_group;

/// z' = Fc z + G1 v + G2 v',  x = T z + B v + B2 v'   (4.11 .. 4.26)
/// z: capacitor voltages and inductor currents that are independent; v: the sources of the netlist
/// in their order (waveforms and inputs); x: node voltages 0 .. node_count - 1 (ground is 0), then
/// the currents of all parts (0 for K). G2 and B2 are 0 unless capacitors form loops with voltage
/// sources, or inductors cutsets with current sources. Row-major; the matrices belong to the
/// reduction and change with crd_reduction_set.
typedef struct crd_reduction crd_reduction; ///< opaque
typedef struct crd_reduced {
    int states, inputs, variables; ///< p, r, n as above
    const int32_t* state_part;     ///< (p) the capacitor or inductor that a state belongs to
    const int32_t* input_part;     ///< (r)
    const double *fc, *g1, *g2;    ///< (p x p), (p x r), (p x r)
    const double *t, *b, *b2;      ///< (n x p), (n x r), (n x r)
} crd_reduced;

/// CRD_E_UNSUPPORTED: a part that is not linear, by name and line. CRD_E_RANGE: what
/// crd_circuit_create would say. A resistor with a law has the value that crd_reduction_set gives
/// it, before that the value of its law where all it uses is `start` (temperature in K, or 0).
CRD_API crd_status crd_reduction_create(crd_context* ctx, const crd_netlist* n,
                                        crd_reduction** out);
CRD_API void crd_reduction_destroy(crd_reduction* r);
CRD_API const crd_reduced* crd_reduction_get(const crd_reduction* r);
CRD_API double crd_reduction_value(const crd_reduction* r, int32_t part);
/// New values of parts (R, C, L; others are refused), and the matrices anew. Does not allocate. On
/// failure (CRD_E_RANGE: not > 0; CRD_E_CONVERGENCE: singular) everything is as before.
CRD_API crd_status crd_reduction_set(crd_reduction* r, const int32_t* parts, const double* values,
                                     int count);
/// Derivatives with respect to the logarithm of a group's parameter, laid out as in crd_reduced.
/// The pointers are valid until the next call of a function of the reduction.
CRD_API crd_reduced crd_reduction_sensitivity(crd_reduction* r, const crd_twin_group* g);
/// Exact over a step h for inputs that are linear in between (4.27): z1 = F z0 + D0 v0 + D1 v1,
/// and with groups (may be 0) the derivatives of F, D0, D1 per group. `work` from _work_size.
CRD_API size_t crd_reduction_work_size(const crd_reduction* r, int groups);
CRD_API crd_status crd_reduction_discretise(crd_reduction* r, double h, const crd_twin_group* g,
                                            int groups, double* f, double* d0, double* d1,
                                            double* df, double* dd0, double* dd1, double* work);

// ---- description -------------------------------------------------------------------------------

typedef struct crd_twin_sensor {
    const char *name, *what, *unit; ///< what: v(7), v(7,8), i(r1), t(7), an output of the netlist
    double sd;                      ///< of its noise
} crd_twin_sensor;

typedef enum crd_source_model {
    CRD_SOURCE_CONSTANT,
    CRD_SOURCE_WALK,       ///< noise: variance per step
    CRD_SOURCE_INTEGRATED, ///< integrated random walk; noise: spectral density of the second
                           ///< derivative
    CRD_SOURCE_OSCILLATOR, ///< constant + oscillation of known frequency; noise on both
} crd_source_model;

typedef struct crd_twin_source { ///< an unknown source, or several that are equal up to a factor
    crd_twin_group group;
    crd_source_model model;
    double noise, frequency, start, sd; ///< frequency in Hz
} crd_twin_source;

typedef struct crd_twin_parameter { ///< R, C or L; followed as its logarithm
    crd_twin_group group;
    double start; ///< NaN: the netlist's
    double sd;    ///< of the logarithm; default 1
    double drift; ///< variance of the logarithm per step; 0: constant
} crd_twin_parameter;

typedef enum crd_twin_filter {
    CRD_TWIN_AUTO,    ///< KALMAN without parameters, else REDUCED
    CRD_TWIN_KALMAN,  ///< states and sources; UD form, gain frozen once it stands still
    CRD_TWIN_REDUCED, ///< states, sources and log-parameters, extended; sequential scalar updates,
                      ///< UD
    CRD_TWIN_THESIS,  ///< z, z', parameters with perfect measurements, as published
} crd_twin_filter;

typedef struct crd_twin_spec {
    const crd_twin_sensor* sensors;
    const crd_twin_source* sources;
    const crd_twin_parameter* parameters;
    int sensor_count, source_count, parameter_count;
    crd_twin_filter filter;
    double step;        ///< s, between two measurements
    double state_noise; ///< variance per step; default 0
    double state_sd;    ///< of the start; default 1
    double thesis_q;    ///< THESIS: scale of Q (F.2)
    double gate; ///< probability beyond which a measurement is refused; default 0.9999, 1: never
    int frozen_after; ///< KALMAN: steps of a still gain until it is frozen; 0: never; default 200
} crd_twin_spec;

/// A description as JSON; crd_yaml_to_json (cardan/system.h) makes it from YAML, e.g.
///     circuit: inverter.cir                      # beside the description
///     values: { loss: 208 }                      # of .param, as in crd_netlist_options
///     step: 1 ms
///     sensors: { t7: { at: t(7), sd: 0.5, unit: K } }
///     parameters: { rdbc: { parts: [x1.dbc, x2.dbc, x3.dbc], start: 0.01168, sd: 1, drift: 0 } }
///     sources: { loss: { parts: [x*.qu, x*.ql], model: walk, noise: 1, start: 0, sd: 300 } }
///     states: { noise: 0, sd: 1 }
///     filter: auto                               # kalman, reduced, thesis
///     gate: 0.9999
/// Messages name file, line and key. `given`: the netlist, borrowed; NULL: the one that is named.
typedef struct crd_twin_description {
    crd_context* ctx;
    crd_arena arena;
    const char* name;           ///< NULL if it has none
    const char* circuit;        ///< path, NULL if none is named
    const char* const* defines; ///< `values`, as crd_netlist_options takes them
    int define_count;
    const crd_netlist* netlist;
    crd_netlist* own; ///< to be destroyed with it
    crd_twin_spec spec;
} crd_twin_description;
CRD_API crd_status crd_twin_parse(crd_context* ctx, const char* json, size_t length,
                                  const char* file, int first_line, const crd_netlist* given,
                                  crd_twin_description** out);
CRD_API void crd_twin_description_destroy(crd_twin_description* d);
/// As JSON, all values spelled out (without circuit and values).
CRD_API crd_status crd_twin_write(const crd_netlist* n, const crd_twin_spec* spec, crd_text* out);

// ---- the filter --------------------------------------------------------------------------------

typedef struct crd_twin crd_twin; ///< opaque
CRD_API crd_twin_spec crd_twin_defaults(void);
CRD_API crd_status crd_twin_create(crd_context* ctx, const crd_netlist* n,
                                   const crd_twin_spec* spec, crd_twin** out);
CRD_API void crd_twin_destroy(crd_twin* w);
/// The start: states from the netlist (crd_circuit_begin), covariances from the spec.
CRD_API crd_status crd_twin_begin(crd_twin* w, double t);
CRD_API void crd_twin_set_input(crd_twin* w, int input, double value); ///< .input of the netlist
/// One step on, then the measurements there (sensor_count; NaN: none). CRD_E_CONVERGENCE: the
/// filter diverged; says which quantity and when; the state stays as it was.
CRD_API crd_status crd_twin_step(crd_twin* w, const double* measurements);
/// To the time t, whatever its distance; sources are linear in between, noises per step count in
/// proportion. A distance that misses the step, or the last one, by 0.5 % of it at most is taken as
/// that, and what it missed belongs to the next. CRD_E_RANGE: t is not after crd_twin_time, or no
/// number. CRD_E_UNSUPPORTED: the published filter, which has one step.
CRD_API crd_status crd_twin_step_to(crd_twin* w, double t, const double* measurements);
CRD_API double crd_twin_time(const crd_twin* w);
CRD_API int crd_twin_states(const crd_twin* w); ///< of the network

typedef struct crd_estimate {
    double value, sd;
} crd_estimate;
typedef enum crd_twin_kind {
    CRD_TWIN_OUTPUT,
    CRD_TWIN_NODE,
    CRD_TWIN_SOURCE,
    CRD_TWIN_PARAMETER,
    CRD_TWIN_STATE,
} crd_twin_kind;
typedef struct crd_twin_quantity {
    crd_twin_kind kind;
    int index;
} crd_twin_quantity;
CRD_API crd_estimate crd_twin_now(const crd_twin* w, crd_twin_quantity q); ///< NaN: there is none
CRD_API crd_estimate crd_twin_output(const crd_twin* w, int output);       ///< .output
CRD_API crd_estimate crd_twin_node(const crd_twin* w, int32_t node);
CRD_API crd_estimate crd_twin_parameter_now(const crd_twin* w, int parameter); ///< sd of the value
CRD_API crd_estimate crd_twin_source_now(const crd_twin* w, int source);
CRD_API crd_estimate crd_twin_state(const crd_twin* w, int state);

typedef struct crd_twin_sensor_state {
    double innovation, sd;        ///< measured - predicted; expected sd of it
    int64_t used, missing, gated; ///< since begin
    bool stuck;                   ///< was noisy, and says the same value again and again; refused
    bool wild;                    ///< gated more often than its probability allows
} crd_twin_sensor_state;
CRD_API crd_twin_sensor_state crd_twin_sensor_now(const crd_twin* w, int sensor);
CRD_API size_t crd_twin_state_size(const crd_twin* w);
CRD_API void crd_twin_save(const crd_twin* w, void* state);
CRD_API void crd_twin_restore(crd_twin* w, const void* state);

// ---- tuning ------------------------------------------------------------------------------------

typedef struct crd_twin_data {
    double start;       ///< s, of the initial state
    bool start_unknown; ///< the netlist's state there is a guess that is as good as spec.state_sd:
                        ///< tuning finds it, too
    int64_t rows;
    const double* times;        ///< (rows) rising; NULL: row i is at start + (i + 1) spec.step
    const double* measurements; ///< (rows x sensors); NaN: missing
    const double* inputs;       ///< (rows x inputs of the netlist); NULL: their start values
    double from, to;            ///< s, window that counts; NaN: all
} crd_twin_data;
/// To row i, the rows before it having been followed: inputs, time, and measurements that count.
CRD_API crd_status crd_twin_follow(crd_twin* w, const crd_twin_data* data, int64_t row);

typedef enum crd_tune_how {
    CRD_TUNE_LIKELIHOOD, ///< batch maximum likelihood (Levenberg-Marquardt in logarithms)
    CRD_TUNE_PASSES, ///< the spec's filter over and over, each pass from the last one's estimate
} crd_tune_how;

typedef struct crd_tune_options {
    crd_tune_how how;
    int max_iterations; ///< default 100
    double tolerance;   ///< relative change that ends it; default 1e-10
    int points; ///< of a logarithmic grid per parameter that looks for a start; 0: none; default 7
    double decades; ///< its half width; default 3
    bool fit_noise; ///< sensor sds from the residuals
    bool fit_start; ///< initial states are unknown too
} crd_tune_options;

/// Unknowns in this order: parameters, sources (taken as constant), initial states if fitted.
typedef struct crd_tune_result {
    int unknowns;
    const char* const* names;
    double *value, *sd;
    double* covariance; ///< (unknowns^2) of the logarithms of parameters, of the others as they are
    double* sensor_sd;  ///< (sensors) as fitted or given
    double* residual_rms; ///< (sensors)
    int64_t measurements; ///< that count
    double squares;    ///< of the normalised residuals, sum; chi-square of measurements - unknowns
    double likelihood; ///< log
    double ljung_box;  ///< of the normalised residuals over 50 lags, per degree of freedom, worst
                       ///< sensor; NaN: too few to tell
    double flatness;   ///< of their averaged periodogram, worst sensor; NaN likewise
    double start_squares; ///< by how much the sum of squares would fall if the states at the start
                          ///< were found, too; chi-square of start_states if they are as the
                          ///< netlist says. NaN: they were found, or were not looked at
    int start_states;
    int iterations; ///< or passes
    bool converged;
} crd_tune_result;
CRD_API crd_tune_options crd_tune_defaults(void);
CRD_API crd_status crd_twin_tune(crd_context* ctx, const crd_netlist* n, const crd_twin_spec* spec,
                                 const crd_twin_data* data, const crd_tune_options* opt,
                                 crd_arena* arena, crd_tune_result* out);
/// The smallest noise (thesis_q of the published filter, else that of all sources by one factor,
/// without sources state_noise) whose innovations are white: Ljung-Box <= 1.3 per degree of freedom
/// and a periodogram as flat as that of white noise of this length (`*flatness` is relative to
/// it; >= 0.915). CRD_E_RANGE: too few rows to tell. `sources` (source_count, a copy of spec's) is
/// changed and spec points to it then. CRD_E_LIMIT: none is; spec has the best one: an error of the
/// model, not of the noise.
CRD_API crd_status crd_twin_whiten(crd_context* ctx, const crd_netlist* n, crd_twin_spec* spec,
                                   crd_twin_source* sources, const crd_twin_data* data,
                                   double* ljung_box, double* flatness);
/// Per degree of freedom over `lags`; of a sequence that has sd 1 if white.
CRD_API double crd_ljung_box(const double* x, int64_t count, int lags);
/// Geometric over arithmetic mean of the averaged periodogram (256-point Hann segments).
CRD_API double crd_flatness(const double* x, int64_t count);

// ---- consistency -------------------------------------------------------------------------------

/// Does the filter know how wrong it is? Its normalised innovations squared (NIS) nu' S^-1 nu, and
/// where the truth is known its normalised errors squared (NEES) e' P^-1 e, are chi-square
/// variables with as many degrees of freedom as nu and e have elements, if it does (Bar-Shalom, Li
/// and Kirubarajan 2001, 5.4).
///
/// Errors (truth - estimate) of some quantities, of parameters those of their logarithms, each less
/// what the ones before it say about it, and over its sd: z (count) has sd 1 and is independent,
/// and the sum of its squares is the NEES of all. NaN: a quantity that follows from those before,
/// or whose truth (or that of one before) is NaN. `work`: count (n + 2) + 2 n numbers, n =
/// crd_twin_size.
CRD_API int crd_twin_size(const crd_twin* w); ///< of the filter: states, sources, parameters
CRD_API void crd_twin_errors(const crd_twin* w, const crd_twin_quantity* q, const double* truth,
                             int count, double* z, double* work);

typedef enum crd_verdict {
    CRD_VERDICT_NONE, ///< nothing to judge by
    CRD_VERDICT_CONSISTENT,
    CRD_VERDICT_CONFIDENT, ///< too confident: errors are larger than it says
    CRD_VERDICT_CAUTIOUS,  ///< too cautious: errors are smaller than it says
} crd_verdict;
CRD_API const char* crd_verdict_text(crd_verdict v); ///< "too confident"
typedef struct crd_consistency {
    int64_t count;    ///< of rows
    double freedom;   ///< degrees of freedom of all of them
    double mean;      ///< per degree of freedom; 1 is right
    double low, high; ///< where it lies if the filter is right, with 99 % probability
    double inside;    ///< share of rows inside their own 95 % bounds
    double effective; ///< rows that are worth independent ones
    crd_verdict verdict;
} crd_consistency;
/// Of normalised innovations or errors: `width` numbers a row, rows `stride` numbers apart; NaN:
/// does not count. `correlated`: those of neighbouring rows are, as errors of estimates, and rows
/// are worth less; innovations of a filter that is right are not.
CRD_API crd_consistency crd_consistency_judge(const double* z, int width, int stride, int64_t rows,
                                              bool correlated);

// ---- observability -----------------------------------------------------------------------------

typedef struct crd_observability {
    int unknowns, rank; ///< parameters, sources, initial states (if asked)
    const char* const* names;
    double* sigma;             ///< descending: signal to noise per direction, prior of one e-fold
    double* directions;        ///< (unknowns x unknowns), row i belongs to sigma[i]
    double* posterior;         ///< (unknowns) sd over prior sd
    int structural, practical; ///< nulls: sigma < n eps sigma[0]; directions with sigma < 1
} crd_observability;
/// Over the experiment that `data` (inputs, rows, window; measurements not read) describes.
CRD_API crd_status crd_twin_observe(crd_context* ctx, const crd_netlist* n,
                                    const crd_twin_spec* spec, const crd_twin_data* data,
                                    bool states, crd_arena* arena, crd_observability* out);
/// What direction i of the unknowns means in words: "r1", "rdbc against rsp", "r1, r2 against q0".
CRD_API const char* crd_observability_name(const crd_observability* o, int i, crd_arena* arena);
/// CRD_E_RANGE that names what no measurement of this experiment can tell; CRD_OK.
CRD_API crd_status crd_twin_require_observable(crd_context* ctx, const crd_netlist* n,
                                               const crd_twin_spec* spec, const crd_twin_data* data,
                                               bool states);
typedef struct crd_placement {
    int32_t node;    ///< where a sensor would help
    double smallest; ///< sigma with it
    double log_det;
    int rank;
} crd_placement;
/// Greedy: up to `wanted` further sensors with `sd` at nodes (candidates NULL: all), best first.
CRD_API crd_status crd_twin_place(crd_context* ctx, const crd_netlist* n, const crd_twin_spec* spec,
                                  const crd_twin_data* data, double sd, const int32_t* candidates,
                                  int candidate_count, int wanted, crd_arena* arena,
                                  crd_placement* out, int* count);

#ifdef __cplusplus
}
#endif
