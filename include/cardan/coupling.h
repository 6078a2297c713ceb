/// Coupling elements: make a signal that arrives late and rarely usable as if it came at once.
///
/// An element sits at a receiving input. It keeps the signal's history, knows its age, detects
/// discontinuities, estimates the value now and reconstructs the signal until the next exchange.
/// One struct, one `push`, one `eval`; no allocation after create, no lock, no failure, libc and
/// libm only, so that it goes into FMUs and onto bench controllers (Baumann 2020 and 2024).
///
/// Words: dT is the macro step, k the latency in macro steps, theta = (t - t_n) / dT in [0, 1)
/// where between two macro steps the value is asked for, y_{n-k} the newest sample that has
/// arrived.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cardan/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What elements compute with. float in a libcardan-core for controllers that was built with
/// CARDAN_CORE_SINGLE, which programs with it define, too; options and times are double always.
#ifdef CARDAN_CORE_SINGLE
typedef float crd_real;
#else
typedef double crd_real;
#endif

/// A linear coupling algorithm (Baumann 2024, eq. 6), with the constant of Baumann 2020, eq. 1:
///     yhat(t_n + theta dT) = b + sum_i a[i] y_{n-k-i} + theta sum_i A[i] y_{n-k-i}
/// Constants pass unchanged if sum a = 1, sum A = 0 and b = 0. With b = mean (1 - sum a) a signal
/// at rest at its mean does.
typedef struct crd_linear {
    int m;             ///< taps
    int k;             ///< latency in macro steps that it is made for
    const crd_real* a; ///< (m)
    const crd_real* A; ///< (m) reconstruction between macro steps, NULL: hold
    double b;          ///< the constant, usually 0
} crd_linear;

// ---- linear algorithms -------------------------------------------------------------------------

typedef enum crd_method {
    CRD_METHOD_ZOH,            ///< the newest sample
    CRD_METHOD_FOH,            ///< the line through the newest two
    CRD_METHOD_EROS,           ///< error-space extrapolation (Baumann 2024, eq. 19)
    CRD_METHOD_ERROR_SPACE,    ///< the procedure behind EROS with its variation points
    CRD_METHOD_MOMENT,         ///< least norm among those flat at low frequencies, for the hold
    CRD_METHOD_SAVITZKY_GOLAY, ///< least-squares polynomial, read at the macro step
    CRD_METHOD_WIENER,         ///< least mean square error over frequency bands
} crd_method;

/// What the error-space procedure measures of a past macro step. The errors are linear in the free
/// parameter of the curve, so absolute and squared distance choose the same curve.
typedef enum crd_distance {
    CRD_DISTANCE_END,  ///< the error at the end of the step (Baumann 2024)
    CRD_DISTANCE_MEAN, ///< the mean error over the step, the signal taken as a line
} crd_distance;

/// Sets of curves that the error-space procedure chooses from by supporting points; y_0, y_1, y_2
/// are the newest samples and tau whole macro steps ahead of y_0.
typedef enum crd_family {
    /// y_0 + p S tau with S = (2 k + 3) times the largest change among the newest k + 3 samples;
    /// -1 <= p <= 1 contains EROS
    CRD_FAMILY_LINE,
    /// Every change is p times the one before: from ZOH (p = 0) to FOH (p = 1). Exact for
    /// c + d p^n
    CRD_FAMILY_DECAY,
    /// Changes swing with p rad per step: d_{j+1} = 2 cos(p) d_j - d_{j-1}. FOH for p = 0 and a
    /// signal that goes straight; exact for c + d sin(p n + e)
    CRD_FAMILY_SWING,
} crd_family;

/// What goes through the errors at the supporting points.
typedef enum crd_fit {
    CRD_FIT_LINEAR,    ///< a line between two neighbours
    CRD_FIT_QUADRATIC, ///< a parabola through three of them
} crd_fit;

/// Frequencies in x = omega dT, 0 <= low < high <= pi, and the signal's power there.
typedef struct crd_band {
    double low, high, power;
} crd_band;

enum {
    CRD_BANDS_MAX = 8,
    CRD_TAPS_MAX = 256,
    CRD_LATENCY_MAX = 120,
    CRD_DESIGN_OWN = 4,
    CRD_POINTS_MAX = 64
};

/// How to make a linear algorithm for any k. Start from crd_design_defaults().
typedef struct crd_design {
    crd_method method;
    int taps;   ///< moment, Savitzky-Golay, Wiener: m; default 9
    int degree; ///< moment, Savitzky-Golay: exact up to this degree, 0 .. 4; default 2

    /// Error space: f_p(tau) = the polynomial of degree curve - 1 through the newest samples
    /// + p tau^curve, with tau = k + theta. 1 .. 3; default 1
    int curve;
    int errors; ///< number of past errors, order + 1 .. 32; default 2
    int order;  ///< degree of the polynomial that continues the errors, 0 .. 3; default 1
    crd_distance distance; ///< default CRD_DISTANCE_END
    /// CRD_ALGORITHM_ERROR_CURVES, which has `errors` and `order` as well: the curves, the
    /// supporting points p (ascending; count 0: evenly over the range of the family, 3, 9 or 33 of
    /// them; points[0] NaN: evenly, so many), and what goes through them
    crd_family family;
    int point_count;
    double points[CRD_POINTS_MAX];
    crd_fit fit;

    crd_band bands[CRD_BANDS_MAX]; ///< Wiener; default [0, 0.1] with 1, [0.3, 0.55] with 0.03
    int band_count;
    double noise; ///< Wiener: power of the noise over that of the signal, > 0; default 1e-4
    /// Of methods that have no fields above: what their row in coupling/algorithm.c says.
    double own[CRD_DESIGN_OWN];
} crd_design;

CRD_API crd_design crd_design_defaults(crd_method method);

/// The algorithm for latency k, 0 .. CRD_LATENCY_MAX. Its memory comes from `ctx`; give it back
/// with crd_linear_clear. CRD_E_RANGE: the design makes no sense, the text says why.
CRD_API crd_status crd_linear_make(crd_context* ctx, const crd_design* design, int k,
                                   crd_linear* out);
/// Weighted least squares with any number of bands, as a recorded spectrum has them:
///     minimise sum_b power_b mean_b |1 - e^{-jkx} sum a_i e^{-jix}|^2 + noise |a|^2, sum a = 1.
CRD_API crd_status crd_linear_wiener(crd_context* ctx, int k, int m, const crd_band* bands, int n,
                                     double noise, crd_linear* out);
/// The same without sum a = 1, for a signal that varies about `mean`: b = mean (1 - sum a). What
/// cannot be predicted shrinks towards the mean.
CRD_API crd_status crd_linear_affine(crd_context* ctx, int k, int m, const crd_band* bands, int n,
                                     double noise, double mean, crd_linear* out);
/// A copy of given weights. A may be NULL. Weights whose sums are not 1 and 0 (within 1e-6) or a
/// constant b would distort constants and are refused unless `any_gain`.
CRD_API crd_status crd_linear_copy(crd_context* ctx, const crd_linear* from, bool any_gain,
                                   crd_linear* out);
CRD_API void crd_linear_clear(crd_context* ctx, crd_linear* l); ///< of make and copy only
/// yhat from samples with the newest first, y[0] = y_{n-k}.
CRD_API double crd_linear_eval(const crd_linear* l, const crd_real* y, double theta);

// ---- detection of discontinuities --------------------------------------------------------------

typedef enum crd_detection {
    CRD_DETECT_NONE,
    CRD_DETECT_SPECTRUM, ///< half-Hann window, DFT of N (Baumann 2024, eq. 38 to 42)
    CRD_DETECT_GUARDED,  ///< differences against their running median: noise does not trigger it
} crd_detection;

enum {
    CRD_DETECT_WINDOW = 8, ///< N as published
    CRD_DETECT_SPAN = 16,  ///< samples that a detector remembers; the largest N
    CRD_DETECT_MEDIAN = 48,
    CRD_DETECT_ORDERS = 3,
};

/// All of a detector; no memory elsewhere.
typedef struct crd_detector {
    crd_detection kind;
    crd_real threshold;  ///< xi of eq. 42, or multiples of the median
    crd_real resolution; ///< smallest step that the signal can make (LSB), 0 if unknown
    /// Newest first from last[at], each sample twice; guarded: shifted by the jumps.
    crd_real last[2 * CRD_DETECT_SPAN];
    int at;
    uint32_t gaps;                        ///< bit i: the sample of age i has not arrived
    int uncertain;                        ///< samples since the last one that had no gap near it
    int64_t count, kept;                  ///< samples seen; differences that entered the median
    int window;                           ///< N of eq. 39
    int low_bin, high_bin;                ///< that D sums over
    crd_real cosine[2 * CRD_DETECT_SPAN]; ///< cos(pi n / N)
    crd_real spectrum;                    ///< D of the newest segment
    crd_real scale;                       ///< largest |sample| seen
    crd_real ring[CRD_DETECT_ORDERS][CRD_DETECT_MEDIAN]; ///< |differences| by age
    crd_real
        low[CRD_DETECT_ORDERS];   ///< not above the median as long as less than half are below it
    int below[CRD_DETECT_ORDERS]; ///< so many
    int since_hit, skip;
    crd_real hit; ///< size of the last jump
} crd_detector;

/// What a sample turned out to be.
typedef struct crd_detected {
    bool jump;       ///< the signal is discontinuous here
    bool rebase;     ///< `height` is the shift of its level
    int age;         ///< of the sample that the jump is at: 0, unless a gap has hidden it so far
    crd_real height; ///< of the jump beyond what its slope explains
} crd_detected;

/// threshold 0: 5 for the spectrum, 8 for the guarded one.
CRD_API void crd_detector_init(crd_detector* d, crd_detection kind, double threshold,
                               double resolution);
/// CRD_DETECT_SPECTRUM, before the first sample: N = `window` samples, even, 4 .. CRD_DETECT_SPAN
/// (default 8), and the bins q = 1 .. N/2 whose share of the Nyquist frequency lies in
/// low < 2q/N <= high (default 0 and 1, all of them; "above 25 %" is 0.25 and 1).
/// false, and nothing done: another window, or no bin lies there.
CRD_API bool crd_detector_set_spectrum(crd_detector* d, int window, double low, double high);
CRD_API crd_detected crd_detector_push(crd_detector* d, double sample); ///< finite samples only
/// D = A_w (2/8) sum_{q=1..4} |rDFT_q| of 8 samples, newest first: the detector's defaults.
CRD_API double crd_spectrum_above(const crd_real y[CRD_DETECT_WINDOW]);

// ---- the element -------------------------------------------------------------------------------

typedef enum crd_algorithm {
    CRD_ALGORITHM_LINEAR,  ///< made by the design for each k
    CRD_ALGORITHM_GIVEN,   ///< weights of the caller
    CRD_ALGORITHM_NETWORK, ///< feedforward network of the caller
    /// Least squares with forgetting over the signal's own past, pulled towards the design.
    CRD_ALGORITHM_LEARNING,
    /// Recursive least squares over the newest samples themselves, one filter per latency in use.
    CRD_ALGORITHM_RLS,
    /// A mixture of ZOH, two Wiener filters and two learning predictors, by their latest errors; as
    /// much of ZOH in it as makes the combined error (see crd_metrics) smallest.
    /// With commands (see crd_coupling_command) beside them what a learned model of the answer to
    /// the commands says, as far as it has proved better.
    CRD_ALGORITHM_AUTO,
    CRD_ALGORITHM_COMMANDS, ///< the same, by a name that says that there are commands
    /// The Smith predictor (Rautenberg 2023, 3.4): y_late + model(now) - model(late), where the one
    /// command is the output of a model of the partner.
    CRD_ALGORITHM_SMITH,
    /// The error-space procedure with supporting points (Baumann 2024, sec. 2.2): for families of
    /// curves whose errors are not linear in their parameter.
    CRD_ALGORITHM_ERROR_CURVES,
} crd_algorithm;

typedef enum crd_reconstruction {
    CRD_RECONSTRUCT_HOLD,   ///< constant between macro steps
    CRD_RECONSTRUCT_OWN,    ///< the algorithm's A; what is not linear holds
    CRD_RECONSTRUCT_SMOOTH, ///< continuous: each jump is spread over one macro step
} crd_reconstruction;

typedef enum crd_reaction {
    CRD_REACT_NONE,   ///< count only
    CRD_REACT_SWITCH, ///< ZOH, then FOH, until the jump has left the taps (Baumann 2024, sec. 2.5)
    CRD_REACT_REBASE, ///< lift what was before the jump to the new level: slope and memory stay
} crd_reaction;

enum { CRD_NETWORK_LAYERS = 4, CRD_NETWORK_NEURONS = 64 }; ///< hidden layers, neurons of one

/// A feedforward network over the newest m samples: n1 linear neurons, n2 leaky ReLUs, if there are
/// `more` layers those of leaky ReLUs, 1 linear. n1 = 0: there is no linear layer, W2 is (n2 x m).
typedef struct crd_network {
    int m, n1, n2;
    double alpha;       ///< slope of the leaky ReLU for x < 0, in (-1, 1]
    const crd_real* W1; ///< (n1 x m) by rows
    const crd_real* b1; ///< (n1)
    const crd_real* W2; ///< (n2 x n1) by rows
    const crd_real* b2; ///< (n2)
    const crd_real* W3; ///< (n2, or as many as the last of `more` has) of the output
    crd_real b3;
    int more;                  ///< 0 .. CRD_NETWORK_LAYERS - 2
    int n_more[2];             ///< leaky ReLUs of each
    const crd_real* W_more[2]; ///< (n_more[h] x neurons of the layer before) by rows
    const crd_real* b_more[2]; ///< (n_more[h])
} crd_network;

enum { CRD_NETWORK_N1 = 4, CRD_NETWORK_N2 = 2 }; ///< as in Baumann 2020
enum { CRD_NETWORK_ROOM = 2048 }; ///< weights that may take over in any element with a network

/// A network of m-4-2-1 that is equal to the linear algorithm's a, the start of training. Its
/// memory comes from `ctx`; the same weights give the same network.
CRD_API crd_status crd_network_morph(crd_context* ctx, const crd_linear* l, double alpha,
                                     crd_network* out);
/// The same with 1 .. CRD_NETWORK_LAYERS hidden layers of so many neurons: one is of leaky ReLUs,
/// of several the first is linear. Leaky ReLUs come in pairs: an even number of them.
CRD_API crd_status crd_network_morph_to(crd_context* ctx, const crd_linear* l, double alpha,
                                        const int* neurons, int layers, crd_network* out);
/// "9-4-2-1", inputs and neurons of all layers; into `out` (of `size` bytes), which is returned.
CRD_API const char* crd_network_shape(const crd_network* n, char* out, size_t size);
CRD_API void crd_network_clear(crd_context* ctx, crd_network* n);         ///< of morph only
CRD_API double crd_network_eval(const crd_network* n, const crd_real* y); ///< newest sample first

enum {
    CRD_COMMANDS_MAX = 8,
    CRD_COMMAND_WEIGHTS_MAX = 112, ///< crd_command_weights_count(CRD_COMMANDS_MAX)
    CRD_COMMAND_BASIS = 2,         ///< version of the features that the weights are for
};

/// What was learned of the answer to commands: the answer is sum_j w_j psi_j, and psi_j are the
/// commands, filtered, and filtered products of them (src/coupling/commands.c). The latency is not
/// in it: weights learned at one serve at any other.
typedef struct crd_command_weights {
    int basis;         ///< CRD_COMMAND_BASIS
    double step;       ///< macro step that they belong to, s
    int commands;      ///< 1 .. CRD_COMMANDS_MAX
    int count;         ///< crd_command_weights_count(commands)
    const crd_real* w; ///< (count)
    /// Range of the signal that they were learned from: predictions stay near what was seen, and
    /// that has been. low >= high: not known.
    double low, high;
} crd_command_weights;

CRD_API int crd_command_weights_count(int commands); ///< 8, 18, 27, 40, ... for 1, 2, 3, 4, ...

typedef struct crd_coupling crd_coupling; ///< opaque

/// Start from crd_coupling_defaults() and change what you need.
typedef struct crd_coupling_options {
    double step;        ///< macro step dT in s, > 0; no default
    double start_time;  ///< of the sample with sequence 0, for samples without time stamp
    double start_value; ///< until the first sample is there
    int k_max;          ///< largest latency that is compensated; default 16
    int late;           ///< samples older than the taps that may still be put right; default 16
    crd_algorithm algorithm; ///< default CRD_ALGORITHM_AUTO
    crd_design design;       ///< default EROS
    const crd_linear* given; ///< copied; given[j].k ascending: the nearest not above k is used
    int given_count;
    bool any_gain;              ///< accept given weights that distort constants
    const crd_network* network; ///< copied
    int learning_taps;          ///< 2 .. 128; default 25
    double learning_window;     ///< samples after which 63 % are forgotten, > 1; default 300
    double learning_ridge;      ///< pull towards the design (RLS: ZOH), > 0; default 0.01
    /// Algorithms that adapt: an estimate leaves the newest sample by at most so many times the
    /// largest change from sample to sample that it looks at. 0, the default: no limit. Below the
    /// bound that cardan coupling analyze finds, a loop holds whatever is learned.
    double gain_limit;
    crd_reconstruction reconstruction; ///< default CRD_RECONSTRUCT_OWN
    crd_detection detection;           ///< default CRD_DETECT_GUARDED
    crd_reaction reaction;             ///< default CRD_REACT_REBASE
    double threshold;                  ///< of the detection, 0: its default
    double resolution;                 ///< LSB of the signal, 0 if unknown
    int detect_window;                 ///< of crd_detector_set_spectrum; default 8
    double detect_low, detect_high;    ///< ...; default 0 and 1
    /// Auto and commands: values per crd_coupling_command, 0 .. CRD_COMMANDS_MAX; default 0: the
    /// signal alone. Smith: 1.
    int commands;
    /// Commands: the part of their prediction is what has proved better than the signal's own
    /// (default). false: they alone, for loops in which the signal's own prediction is the hazard.
    bool command_mixture;
    /// Auto and commands: shorter filters and windows for controllers, an eighth of the memory and
    /// of the work of a step, for larger errors (docs/how-to/controllers.md). Default false.
    bool compact;
    const crd_command_weights* command_weights; ///< to begin with, copied; default NULL: nothing
} crd_coupling_options;

/// What happened so far; all of it harmless, none of it silent.
typedef struct crd_coupling_counts {
    int64_t samples;    ///< pushed
    int64_t filled;     ///< places in the history that were interpolated or held
    int64_t late;       ///< samples that came after a newer one and were put in their place
    int64_t too_late;   ///< ... that the history no longer had room for
    int64_t duplicates; ///< samples that were there already
    int64_t not_finite; ///< NaN, Inf or above 1e250: the sample before was held
    int64_t backwards;  ///< time stamps that contradict the order of the sequence numbers
    int64_t rewound;    ///< evaluations for a time before the newest sample
    int64_t beyond;     ///< predictions with a latency above k_max
    int64_t overflows;  ///< predictions beyond 1e300: the newest sample was used
    int64_t limited;    ///< predictions that gain_limit has cut
    int64_t jumps;      ///< discontinuities
    int64_t restarts;   ///< the partner began anew, or was away longer than the history
    int64_t swaps;      ///< networks that were taken over while running
    int64_t rollbacks;  ///< ... and given up again because they were worse
} crd_coupling_counts;

/// What made the newest prediction.
typedef enum crd_active {
    CRD_ACTIVE_ALGORITHM, ///< the element's own algorithm
    CRD_ACTIVE_ZOH,       ///< stand-ins after a discontinuity
    CRD_ACTIVE_FOH,
} crd_active;

/// How the newest evaluation was made.
typedef struct crd_coupling_state {
    int k;     ///< latency in macro steps
    bool jump; ///< the newest sample is discontinuous
    crd_active active;
    double newest; ///< newest sample
    double stamp;  ///< its time
    int64_t sequence;
} crd_coupling_state;

CRD_API crd_coupling_options crd_coupling_defaults(void);

/// `*out` is written on CRD_OK only and then belongs to the caller. Nothing in `opt` is kept.
CRD_API crd_status crd_coupling_create(crd_context* ctx, const crd_coupling_options* opt,
                                       crd_coupling** out);
CRD_API void crd_coupling_destroy(crd_coupling* c);

/// A sample has arrived. `stamp` is the time at which it was taken, NaN: the grid from start_time.
/// `sequence` counts the partner's macro steps, < 0: from the time stamp; both missing: the next.
/// Gaps are interpolated until the missing sample arrives after all.
CRD_API void crd_coupling_push(crd_coupling* c, double value, double stamp, int64_t sequence);
/// The signal at time t. The latency is what the newest time stamp says: k = floor((t - stamp)/dT).
CRD_API double crd_coupling_eval(crd_coupling* c, double t);
/// Derivative at t of the curve that the last evaluation used, per s; 0 where it holds.
CRD_API double crd_coupling_slope(const crd_coupling* c, double t);
/// A new macro step; the history is resampled. false, and nothing done, unless finite and > 0. What
/// was learned of commands belonged to the old one and is forgotten.
CRD_API bool crd_coupling_set_step(crd_coupling* c, double step);

/// The values u (options.commands) act at the partner from time `acts_at` on, until those of a
/// later time do; `acts_at` is on the clock of the samples' stamps. A command may be told before it
/// acts (as soon as it is sent), late, or again for the same time with what the partner has made of
/// it (clamped, refused). One that is told after the samples that it had an effect on was of no use
/// for learning from them.
///
/// The signal at the partner now: acts_at = time sent + way there, samples stamped when taken.
/// Over the whole round trip, which takes the dead time out of a loop: acts_at = time sent, samples
/// stamped with the time at which the command was sent that they answer to.
/// Values that are not finite or above 1e60: the last good one of that command acts on.
CRD_API void crd_coupling_command(crd_coupling* c, const double* u, double acts_at);

/// What an element makes of its commands, for reports.
typedef struct crd_coupling_commands {
    int count;       ///< 0: it has none
    double share;    ///< of the commands in the newest prediction, 0 .. 1; the rest is the signal's
    int64_t updates; ///< samples that it has learned from
    int64_t given;   ///< commands
    int64_t not_finite, too_late; ///< values; commands for times that were over, or too far ahead
    int64_t alarms;               ///< what was learned had become wrong, and was mostly forgotten
    /// Part of the (squared) changes of the signal over its latency that this command accounts for,
    /// 0 .. 1. Commands that move together share by chance what they account for together.
    double part[CRD_COMMANDS_MAX];
    int64_t changes[CRD_COMMANDS_MAX]; ///< 0: constant so far; of a few nothing can be learned
    int copy_of[CRD_COMMANDS_MAX];     ///< an earlier command that it moves in step with, -1: none
} crd_coupling_commands;

CRD_API crd_coupling_commands crd_coupling_get_commands(const crd_coupling* c);
/// The weights as they are now; w is valid until the next push. false: there are none.
CRD_API bool crd_coupling_get_weights(const crd_coupling* c, crd_command_weights* out);
/// As after create.
CRD_API void crd_coupling_reset(crd_coupling* c);
/// CRD_ALGORITHM_NETWORK: another network takes over at the next prediction, without a bump. Its
/// shape may be another one with no more inputs than that of create, and no more weights than that
/// or CRD_NETWORK_ROOM. No bump: the difference of the two fades over one macro step. For `trial`
/// samples the old one is evaluated beside it; if it was better in the mean square, it comes back
/// (counts.rollbacks). A swap during a trial ends it: the next one has to beat the better of the
/// two so far; reset goes back to the network of create. No allocation; `n` is copied. false, and
/// nothing done: another algorithm, no room for it, a number that is not finite, constants within
/// the range of the signal so far (-1 .. 1 before its first sample) that would be distorted by more
/// than 1 % of its size (unless any_gain).
CRD_API bool crd_coupling_swap(crd_coupling* c, const crd_network* n, int trial);
/// The network in use, NULL if the algorithm is another one. Valid until the next push or swap.
CRD_API const crd_network* crd_coupling_get_network(const crd_coupling* c);
CRD_API crd_coupling_counts crd_coupling_get_counts(const crd_coupling* c);
CRD_API crd_coupling_state crd_coupling_get_state(const crd_coupling* c);

// ---- the description ---------------------------------------------------------------------------

/// An element as a small description that all tools share: JSON as it stands here, YAML by way of
/// crd_yaml_to_json (cardan/system.h). docs/explanation/coupling.md lists the keys.
///
///     { "element": 1, "name": "torque", "step": "10 ms", "algorithm": "wiener", "taps": 25,
///       "bands": [["0 rad/s", "10 rad/s", 1], [30, 55, 0.03]], "noise": 1e-4,
///       "reconstruct": "hold", "detect": "guarded", "react": "rebase", "latency": "measured" }
typedef struct crd_element {
    crd_context* ctx;
    crd_arena arena;   ///< all that is below
    const char* name;  ///< "" if it has none
    const char* label; ///< for tables: the name, else what the algorithm is called
    double step;       ///< macro step, s; NaN: the surroundings say it
    double latency;    ///< known latency in s; NaN: not given in s
    int latency_steps; ///< known latency in macro steps; -1: not given. Neither: measured
    /// Pointers lead into the arena. `step` is 0 and design.bands are in rad/s if `bands_given`
    /// until crd_element_options.
    crd_coupling_options options;
    bool bands_given;
    int signal_count;                ///< 1 unless `signals` says more
    const char* const* signal_names; ///< (signal_count), NULL if only their number was given
    const char* learn_server;        ///< "unix:PATH" or "tcp:ADDRESS:PORT", "" none
    /// (options.commands) names, NULL: none, or only their number was given
    const char* const* command_names;
    bool no_commands; ///< auto: the signal alone, also where commands could be found
    int command_line; ///< where they stand, 0: nowhere
} crd_element;

/// One JSON object. `file` and `first_line` (from 1) are for messages: "file:line: ...". Unknown
/// keys are errors with a suggestion. CRD_E_FORMAT, CRD_E_RANGE, CRD_E_MEMORY.
CRD_API crd_status crd_element_parse(crd_context* ctx, const char* json, size_t length,
                                     const char* file, int first_line, crd_element** out);
/// An element of one word: "eros", "auto"; with "+switch" behind it detection and reaction are as
/// published (Baumann 2024, sec. 2.5), with "+rebase" the guarded detection lifts the history.
/// CRD_E_NOT_FOUND with the nearest word.
CRD_API crd_status crd_element_of_name(crd_context* ctx, const char* algorithm, crd_element** out);
CRD_API void crd_element_destroy(crd_element* e);
/// Options for crd_coupling_create with macro step `step` (> 0; the element's own if it has one and
/// step is NaN). What it points at belongs to the element.
CRD_API crd_status crd_element_options(const crd_element* e, double step,
                                       crd_coupling_options* out);
/// As JSON with the same keys, numbers to the last bit; parse gives the same element again.
CRD_API crd_status crd_element_write(const crd_element* e, crd_text* out);
/// Names of the algorithms that need nothing but their name, NULL-terminated, in the recommended
/// order of tables (`linear` and `network` need weights and are not among them).
CRD_API const char* const* crd_element_algorithms(void);
/// The linear algorithm for latency k at macro step `step` (NaN: its own), for analysis; give it
/// back with crd_linear_clear. CRD_E_UNSUPPORTED: what it does is not one linear function.
CRD_API crd_status crd_element_linear(const crd_element* e, double step, int k, crd_linear* out);

/// Its known latency in macro steps of `step` s, rounded up; -1: it has none.
CRD_API int crd_element_latency(const crd_element* e, double step);

// ---- how good was it ---------------------------------------------------------------------------

/// Sums for the comparison of an estimate with what the signal turned out to be.
typedef struct crd_score {
    int64_t count;
    double yy, ee, ye; ///< sums of squares of signal and estimate, and of their products
    double dd;         ///< sum of squared errors
    double worst;      ///< largest |error|
} crd_score;

/// Sprague and Geers' comparison as Baumann 2024 (eq. 45) prints it: M = sqrt(yy / ee) - 1,
/// P = acos(ye / sqrt(yy ee)) / pi, C = sqrt(M^2 + P^2).
typedef struct crd_metrics {
    double M, P, C; ///< NaN if signal or estimate are zero throughout
    double rms, worst;
} crd_metrics;

CRD_API void crd_score_add(crd_score* s, double signal, double estimate); ///< finite numbers
CRD_API crd_metrics crd_score_metrics(const crd_score* s);

// ---- what would it have done -------------------------------------------------------------------

/// How the samples of a recorded signal reach an element. Start from crd_replay_defaults().
typedef struct crd_replay_options {
    double step;      ///< macro step dT, s; no default
    double delay;     ///< s from taking a sample to its arrival (k steps: k dT); default 0
    double jitter;    ///< s; each delay is uniform in [delay - jitter, delay + jitter]
    double loss;      ///< part of the samples that never arrive, 0 .. 1
    int burst;        ///< samples that are lost in a row, default 1
    double duplicate; ///< part of the samples that arrive twice
    uint64_t seed;    ///< default 1
    /// Instead of delay, jitter and loss: s of each sample of a measured link (delay_count), over
    /// and over again; NaN: lost. Default NULL
    const double* delays;
    int64_t delay_count;
    int64_t first; ///< samples before it do not count for score, range and overshoot; default 0
    /// (command_count x count) for elements that take commands, the first options.commands of them:
    /// commands[a][n] is sent at macro step n and acts `command_delay` s later. Default NULL
    const double* const* commands;
    int command_count;
    double command_delay;
} crd_replay_options;

typedef struct crd_replay {
    crd_score score;  ///< over all samples that are there, from `first` on
    int64_t worst_at; ///< index of the largest error, -1: there is none
    /// How far the estimate leaves what the signal itself does nearby: the largest distance of an
    /// estimate for sample n from the range of the signal over n - K - 8 .. n + 3, K being the
    /// longest delay in steps. Lag alone is no overshoot: a hold has 0.
    double overshoot;
    int64_t overshoot_at;   ///< index of the sample, -1: nowhere
    double low, high;       ///< range of the signal
    double k_mean;          ///< latency in steps that the element has seen
    int k_max;              ///< largest of it
    int64_t lost, repeated; ///< samples, by the channel
    crd_coupling_counts counts;
    crd_coupling_commands commands;          ///< what it has made of them
    double weights[CRD_COMMAND_WEIGHTS_MAX]; ///< what it has learned of them ...
    int weight_count;                        ///< ... 0: nothing
} crd_replay;

CRD_API crd_replay_options crd_replay_defaults(void);
/// Hands y[0] .. y[count - 1], one per macro step, to a new element as if they came over the
/// channel, and asks it at each macro step for the value then. NaN is a sample that does not exist:
/// it is neither sent nor scored; one at least has to be there, and none beyond 1e250
/// (CRD_E_RANGE). Until the first sample arrives, the estimate is the first sample. `estimate`
/// (count) may be NULL. An element with a latency of its own believes in that.
CRD_API crd_status crd_coupling_replay(crd_context* ctx, const crd_element* e,
                                       const crd_replay_options* o, const double* y, int64_t count,
                                       double* estimate, crd_replay* out);

// ---- many signals ------------------------------------------------------------------------------

/// Signals that are sampled and sent together, with the same linear algorithm: one latency for all,
/// no constant b, no detection, no smoothing. The results are those of as many elements, bit for
/// bit.
typedef struct crd_coupling_bank crd_coupling_bank; ///< opaque

/// CRD_E_UNSUPPORTED: the options ask for what a bank has not.
CRD_API crd_status crd_coupling_bank_create(crd_context* ctx, const crd_coupling_options* opt,
                                            int signals, crd_coupling_bank** out);
CRD_API void crd_coupling_bank_destroy(crd_coupling_bank* b);
CRD_API void crd_coupling_bank_push(crd_coupling_bank* b, const double* values, double stamp,
                                    int64_t sequence);
CRD_API void crd_coupling_bank_eval(crd_coupling_bank* b, double t, double* out); ///< (signals)
/// A new macro step; the histories are resampled. false, and nothing done, unless finite and > 0.
CRD_API bool crd_coupling_bank_set_step(crd_coupling_bank* b, double step);
/// Samples, predictions and evaluations are counted once for all signals; `filled`, `late`,
/// `duplicates`, `not_finite`, `rewound`, `beyond` and `overflows` are sums over the signals.
CRD_API crd_coupling_counts crd_coupling_bank_get_counts(const crd_coupling_bank* b);

#ifdef __cplusplus
}
#endif
