/// Frequency-domain analysis and optimal design of linear coupling algorithms (Baumann 2020, 2024).
///
/// A coupling algorithm (crd_linear, with its latency k and its reconstruction) has the transfer
/// function G_p(s) from the signal to what the receiver sees of it:
///     G_p = e^{-kz} (phi0(z) sum_i a_i e^{-iz} + phi1(z) sum_i A_i e^{-iz}),  z = s dT,
///     phi_p(z) = integral over [0, 1] of t^p e^{-zt} dt.
/// 1 would be the perfect coupling. Frequencies are in rad/s unless they are called x = omega dT.
///
/// Nothing here keeps state: a call uses the context for its working memory and its error sentence
/// and gives the memory back. Threads: one context per thread.
#pragma once
#include "cardan/base.h"
#include "cardan/coupling.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct crd_complex {
    double re, im;
} crd_complex;

/// Taps (1 to 1000), latency (0 to 10000) and weights are usable numbers. CRD_E_RANGE says which is
/// not.
CRD_API crd_status crd_analysis_check(crd_context* ctx, const crd_linear* e);
/// The above, and constants pass: |sum a - 1| and |sum A| are at most `tolerance`.
CRD_API crd_status crd_analysis_check_constants(crd_context* ctx, const crd_linear* e,
                                                double tolerance);

// ---- one element -------------------------------------------------------------------------------

/// G_p at z = s dT, for any complex z; the element must pass crd_analysis_check. `derivative` (may
/// be NULL) gets dG_p/dz.
CRD_API crd_complex crd_response_at(const crd_linear* e, crd_complex z, crd_complex* derivative);
/// G_p(j omega) at x = omega dT.
CRD_API crd_complex crd_response(const crd_linear* e, double x);

typedef struct crd_bode_point {
    double omega;
    crd_complex g;
    double gain;      ///< |g|
    double phase_deg; ///< continuous from 0 at omega = 0, not folded into +-180
} crd_bode_point;

/// Frequencies from lo to hi, both included, in equal steps (lo >= 0) or equal ratios (lo > 0).
CRD_API crd_status crd_frequency_grid(crd_context* ctx, double lo, double hi, int n, bool ratios,
                                      double* omega);
/// Bode data at `n` frequencies that rise strictly, none negative, none above 200 / dT.
CRD_API crd_status crd_analysis_bode(crd_context* ctx, const crd_linear* e, double dT,
                                     const double* omega, int n, crd_bode_point* out);

/// Up to where an element is as good as the direct connection, as parts of the Nyquist frequency
/// pi / dT; INFINITY if the limit is kept all the way.
typedef struct crd_limits {
    double magnitude;   ///< smallest omega with ||G| - 1| > tolerance
    double phase;       ///< smallest omega with |arg G| > tolerance
    int magnitude_side; ///< +1 leaves by amplifying, -1 by damping, 0 stays
    int phase_side;     ///< +1 leads, -1 lags, 0 stays
} crd_limits;

/// Usual tolerances: 0.03 and 3 degrees. CRD_E_RANGE: also if a constant misses a tolerance
/// already.
CRD_API crd_status crd_analysis_limits(crd_context* ctx, const crd_linear* e,
                                       double magnitude_tolerance, double phase_tolerance_deg,
                                       crd_limits* out);

typedef struct crd_peak {
    double gain, omega;
} crd_peak;

/// All local maxima of |G| inside (0, omega_max), by frequency. At most `capacity` are written,
/// `*count` says how many there are. Usual omega_max: 2 pi / dT; at most 200 / dT.
CRD_API crd_status crd_analysis_peaks(crd_context* ctx, const crd_linear* e, double dT,
                                      double omega_max, int capacity, crd_peak* out, int* count);

/// The linear pieces of a leaky-ReLU network: each of the up to 2^N patterns of which of its N
/// leaky ReLUs is
/// above zero belongs to one linear function (with a constant); patterns with the same one share a
/// piece, and those that no signal can have are left out.
typedef struct crd_pieces {
    int count;
    crd_linear* linear; ///< (count) a and b alone: networks hold between macro steps
    int* patterns;      ///< (count) how many of them it stands for
    int* of_pattern;    ///< (2^N) piece, -1: no signal has this pattern
} crd_pieces;

enum { CRD_PIECE_NEURONS_MAX = 12 };

/// `k` is the latency that the pieces get. All memory is the arena's. CRD_E_UNSUPPORTED: more than
/// CRD_PIECE_NEURONS_MAX leaky ReLUs.
CRD_API crd_status crd_network_pieces(crd_context* ctx, crd_arena* arena, const crd_network* n,
                                      int k, crd_pieces* out);
/// The pattern of a signal (newest sample first): bit j is set if leaky ReLU j, counted through all
/// layers, is not below zero.
CRD_API uint32_t crd_network_pattern(const crd_network* n, const double* y);

/// A coupling element for one latency as linear functions: one, or the pieces of its network.
typedef struct crd_linears {
    crd_context* ctx;
    crd_arena arena;
    crd_linear own; ///< memory of an element that is linear itself
    int count;
    const crd_linear* linear; ///< (count)
    const int* patterns;      ///< (count) patterns of activation, NULL: not a network
} crd_linears;

/// `step` NaN: the element's own. CRD_E_UNSUPPORTED: it adapts itself, or has too many pieces.
CRD_API crd_status crd_linears_make(const crd_element* e, double step, int k, crd_linears* out);
CRD_API void crd_linears_clear(crd_linears* l);

/// What there is to know of one linear function.
typedef struct crd_linear_report {
    const crd_linear* e;
    crd_limits limits; ///< magnitude 0: constants miss the tolerance already
    double dc;         ///< G(0) = sum a + sum A / 2
    double norm;       ///< Euclidean norm of a: amplification of white noise
    int patterns;      ///< of a piece; 0: not of a network
    crd_peak* peaks;   ///< (peak_count) below 2 pi / dT, by frequency
    int peak_count;
    int highest; ///< of the peaks, -1: there is none
} crd_linear_report;

typedef struct crd_element_report {
    crd_linears linears;
    double step;
    int k;
    crd_linear_report* pieces; ///< (linears.count)
    crd_limits worst;          ///< of all pieces
    int highest;               ///< piece with the highest peak
} crd_element_report;

/// Limits, peaks, gain of constants and of noise of an element at latency k; of a network those of
/// every piece. Give it back with crd_element_report_clear.
CRD_API crd_status crd_analysis_element(const crd_element* e, double step, int k,
                                        double magnitude_tolerance, double phase_tolerance_deg,
                                        crd_element_report* out);
CRD_API void crd_element_report_clear(crd_element_report* r);

// ---- design ------------------------------------------------------------------------------------

typedef struct crd_interval {
    double lo, hi; ///< rad/s
} crd_interval;

/// What a coupling process shall be good at. Start from crd_goal_defaults().
typedef struct crd_goal {
    double dT;              ///< macro step, s; no default
    int k, m;               ///< latency in macro steps, number of taps; no default
    crd_interval magnitude; ///< B_m where |G| shall be 1; no default
    crd_interval phase;     ///< B_p where arg G shall be 0; no default
    double omega_u;         ///< above it |G| <= (omega / omega_u)^v; 0: the upper end of `phase`
    double v;               ///< half of the loop's relative degree; default 1
    double alpha;           ///< weight of J_m, default 1
    double beta;            ///< weight of J_p in degrees, default 0.01
    double gamma;           ///< weight of J_r, default 1000
    double delta;           ///< weight of |a|^2, the power gain of white noise; default 0
} crd_goal;

CRD_API crd_goal crd_goal_defaults(void);

/// J = alpha J_m + beta J_p + gamma J_r + delta |a|^2:
///     J_m = mean over B_m of |1 - |G||,   J_p = mean over B_p of |arg G| in degrees,
///     J_r = int_0^{omega_l} max(|G| - 1, 0) d omega
///         + int_{omega_u}^{2 pi / dT} max(|G| - (omega / omega_u)^v, 0) d omega
/// with omega_l the lower end of B_p. The signed integrands that are printed in the papers would
/// reward lag and amplification.
typedef struct crd_quality {
    double J, J_m, J_p_deg;
    double J_r_low, J_r_high;     ///< rad/s
    double peak_gain, peak_omega; ///< the largest gain below 2 pi / dT
    double norm;                  ///< Euclidean norm of a: amplification of white noise
} crd_quality;

/// The objective of a given element; its k and m count, not those of `d`.
CRD_API crd_status crd_goal_quality(crd_context* ctx, const crd_goal* d, const crd_linear* e,
                                    crd_quality* out);

/// The minimiser of J with sum a = 1 and hold between the macro steps. J is not smooth and its
/// valley is flat: components of `a` (m) are good to some 1e-3, J to 1e-4 of itself. The
/// time grows with the square of m: 0.3 s for 9, 1.3 s for 25. CRD_E_UNSUPPORTED: m > 32.
CRD_API crd_status crd_goal_optimal(crd_context* ctx, const crd_goal* d, double* a);

/// With a bound that holds (to 1e-4 of itself): minimise mean over B_p of |G - 1|^2 + mu |a|^2 such
/// that sum a = 1, |G| <= 1 + margin on B_m and |G| <= max(1 + margin, (omega / omega_u)^v) above
/// it. `a` (m). Usual: margin 0.03, mu 1e-4.
CRD_API crd_status crd_goal_bounded(crd_context* ctx, const crd_goal* d, double margin, double mu,
                                    double* a);

// ---- loops -------------------------------------------------------------------------------------

/// (num[0] + num[1] s + ...) / (den[0] + den[1] s + ...)
typedef struct crd_transfer {
    int num_degree, den_degree;
    const double *num, *den; ///< rising powers of s; the last coefficient of den is not 0
} crd_transfer;

/// One output of a network's units that goes to one input, added to what others send there.
typedef struct crd_plant_link {
    int from, to;              ///< output, input, from 0
    double gain;               ///< sign included; 0 counts as 1
    const crd_linear* element; ///< NULL: connected directly
    double delay;              ///< s, on top of the element's latency
} crd_plant_link;

/// Units x' = A x + B u, y = C x + D u (all units in one, block by block; row-major) and the links
/// u = links(y). D may be NULL.
typedef struct crd_plant {
    int states, inputs, outputs;
    const double *A, *B, *C, *D;
    int link_count;
    const crd_plant_link* links;
} crd_plant;

/// Either one loop with negative feedback, L = transfers x elements x e^{-s delay}, or a network,
/// for which 1 + L stands for det(I - links units) (generalised Nyquist criterion).
typedef struct crd_loop {
    double dT; ///< macro step of the elements
    int transfer_count;
    const crd_transfer* transfers;
    int element_count;
    const crd_linear* const* elements;
    double delay;             ///< s, >= 0
    const crd_plant* network; ///< then the four above stay 0
} crd_loop;

/// L(s), for a network det(I - links units) - 1.
CRD_API crd_status crd_loop_response(crd_context* ctx, const crd_loop* loop, crd_complex s,
                                     crd_complex* out);

typedef struct crd_crossing {
    double omega;
    double margin; ///< of gain: a factor; of phase: degrees in (-180, 180]
} crd_crossing;

enum { CRD_CROSSINGS_MAX = 64 };

typedef struct crd_nyquist {
    int open_unstable;   ///< P, poles of the open loop with positive real part
    int open_axis;       ///< its poles on the imaginary axis; the curve passes them on the right
    int encirclements;   ///< N, clockwise around -1, both halves of the frequency axis
    int closed_unstable; ///< Z = N + P
    double min_distance; ///< of L to -1: min |1 + L|
    double min_omega;
    int points; ///< of the adaptive grid on omega >= 0
    /// L is the gain around one loop: not a network, or one whose loops all pass through one link.
    bool one_loop;
    /// One loop only, by frequency: where L crosses the negative real axis, and where |L| = 1.
    int gain_count, phase_count;
    crd_crossing gain[CRD_CROSSINGS_MAX], phase[CRD_CROSSINGS_MAX];
    /// Smallest delay that a stable closed loop does not survive, INFINITY if there is none; 0 if
    /// it is unstable already, NAN unless it is one loop.
    double delay_margin;
} crd_nyquist;

/// Walk L(j omega) from 0 to where it stays small, in steps that follow its poles and its distance
/// to -1. CRD_E_UNSUPPORTED: L does not fade (nothing rolls off). CRD_E_CONVERGENCE: the curve goes
/// through -1, the closed loop is on the verge of instability.
CRD_API crd_status crd_loop_nyquist(crd_context* ctx, const crd_loop* loop, crd_nyquist* out);

typedef struct crd_loop_point {
    double omega;
    crd_complex L;
} crd_loop_point;

/// The same with the curve: out->points of them, for crd_free(ctx, *points). On the way around a
/// pole on the imaginary axis they are not quite at j omega.
CRD_API crd_status crd_loop_curve(crd_context* ctx, const crd_loop* loop, crd_nyquist* out,
                                  crd_loop_point** points);

/// Poles of the closed loop with G_p: Newton's method from the poles that it has with all elements
/// and delays taken as 1, moved over in small steps. Poles beyond the Nyquist frequency of the
/// macro step, |s| dT > pi, are left out: G_p says nothing about them. At most `capacity` are
/// written;
/// `*count` says how many there are. CRD_E_CONVERGENCE: one was lost on the way.
CRD_API crd_status crd_loop_poles(crd_context* ctx, const crd_loop* loop, int capacity,
                                  crd_complex* out, int* count);

/// The same network with its direct links (no element, no delay) closed: what is left are the
/// states, the other links, and the inputs and outputs that they use. All memory is the arena's;
/// elements stay borrowed. CRD_E_RANGE: the direct links form an algebraic loop without solution.
CRD_API crd_status crd_plant_reduce(crd_context* ctx, crd_arena* arena, const crd_plant* from,
                                    crd_plant* out);

/// When an output that depends directly on inputs is sampled at a macro step
typedef enum crd_sampling {
    CRD_SAMPLE_AFTER,  ///< the inputs' update at that step
    CRD_SAMPLE_BEFORE, ///< it
} crd_sampling;

/// The exact map over one macro step of a network whose links all have elements:
///     z = (x, y_{n-1}, y_{n-2}, ..., y_{n-depth}),  z_{n+1} = M z_n.
typedef struct crd_monodromy {
    int size, depth;
    double* matrix; ///< (size x size), from the context
} crd_monodromy;

CRD_API crd_status crd_plant_monodromy(crd_context* ctx, const crd_plant* network, double dT,
                                       crd_sampling sampling, crd_monodromy* out);
CRD_API void crd_monodromy_clear(crd_context* ctx, crd_monodromy* m);
/// The `count` slowest modes, log(eigenvalue) / dT, by falling real part; `count` <= size.
CRD_API crd_status crd_monodromy_modes(crd_context* ctx, const crd_monodromy* m, double dT,
                                       int count, crd_complex* out);

/// All units in one: block i of the network is `blocks[i]` (its links do not count). Memory is the
/// arena's.
CRD_API crd_status crd_plant_stack(crd_arena* arena, const crd_plant* blocks, int count,
                                   crd_plant* out);

// ---- loops with their elements -----------------------------------------------------------------

/// What a description says of samples that do not all take the same time, or are lost.
typedef struct crd_spread {
    int k_min, k_max; ///< a sample takes so many macro steps, all equally often; -1: not said
    double jitter;    ///< s: it takes the latency +- this, all equally often; NaN: not said
    double loss;      ///< part of the samples that never arrive, below 1; NaN: not said
    int burst;        ///< most samples that are lost in a row; -1: not said
    int at_once;      ///< samples that one loss takes with it, as a channel's `burst`; 1
} crd_spread;

/// The same of one link, in macro steps.
typedef struct crd_variation {
    int k_min, k_max;    ///< a sample that is not lost arrives after k_min .. k_max steps
    const double* share; ///< (k_max - k_min + 1) how often each of them; NULL: equally
    double loss;         ///< part of the samples that never arrive
    int burst;           ///< most samples that are lost in a row, for the worst case
    bool burst_assumed;  ///< nobody has said so: CRD_BURST_ASSUMED, or at_once if that is more
    int at_once;         ///< samples that one loss takes with it; more than 1 is not random enough
} crd_variation;

enum { CRD_BURST_ASSUMED = 3, CRD_BURST_MAX = 100 };

/// An element in a loop. One with several pieces gives the loop variants.
typedef struct crd_loop_element {
    const char* label;
    crd_linears linears;
    crd_linear* current; ///< what the loop uses, changed by crd_loop_model_choose
    // of a model that is `varied`:
    crd_variation variation;
    int age_count;      ///< 0: they are not known (networks)
    crd_linear* by_age; ///< (age_count) weights if the newest sample is so many steps old
    bool adapts;        ///< to the signal: a hold stands for it
    double gain_limit;  ///< of an element that adapts; INFINITY: none
    bool detects;       ///< it looks for discontinuities
    bool believes;      ///< it has a latency of its own and does not measure it
} crd_loop_element;

/// A loop that was read, or linearised, with what it needs for its analysis. It points into itself:
/// do not copy it.
typedef struct crd_loop_model {
    crd_context* ctx;
    crd_arena arena;
    const char* name;   ///< file
    const char* place;  ///< "" or where units were linearised: "at t = 0"
    crd_loop loop;      ///< its network has the direct links closed
    crd_plant whole;    ///< the network as it was given; no links: transfer functions
    crd_plant reduced;  ///< with direct links closed
    crd_plant sampled;  ///< for the map over one macro step; no links: there is none
    const char* no_map; ///< why not
    crd_loop_element* elements;
    int element_count;
    size_t element_capacity;
    int direct;   ///< links without element
    int variants; ///< combinations of pieces
    bool varied;  ///< for crd_analysis_varied: elements may adapt, and are known for all ages
    bool exact;   ///< units are known to rounding: not linearised by differences
} crd_loop_model;

CRD_API void crd_loop_model_init(crd_loop_model* m, crd_context* ctx, const char* name);
CRD_API void crd_loop_model_clear(crd_loop_model* m);
/// An element for links or `loop.elements` to point at.
CRD_API crd_status crd_loop_model_add(crd_loop_model* m, const crd_element* e, double step, int k,
                                      const crd_linear** out);
/// What the element that was added last may meet: `own` is what its link says, `instead` (may be
/// NULL) goes before it, `delay` s is the latency that a jitter is around. CRD_E_RANGE: the text
/// says which of them makes no sense.
CRD_API crd_status crd_loop_model_vary(crd_loop_model* m, const crd_spread* own,
                                       const crd_spread* instead, double step, double delay);
/// Once dT and `whole` or `loop.transfers` are there: closes direct links, counts variants, and
/// makes the network of the exact map, transfer function i feeding element i, which feeds i + 1.
CRD_API crd_status crd_loop_model_finish(crd_loop_model* m);
CRD_API void crd_loop_model_choose(crd_loop_model* m, int variant);

/// An element that a description names: a word, a file.
typedef crd_status crd_element_loader(void* user, const char* text, crd_element** out);

/// What takes the place of what a description says. Start from crd_loop_defaults().
typedef struct crd_loop_options {
    double step;                ///< macro step; NaN: its own
    const crd_element* element; ///< instead of each element; NULL: its own
    int latency_steps;          ///< of all elements; -1: their own
    double latency;             ///< the same in s; NaN
    crd_element_loader* load;   ///< of elements; NULL: only words
    void* load_user;
    bool varied;       ///< the model is to be `varied`
    crd_spread spread; ///< of all elements; what is not said: their own
} crd_loop_options;

CRD_API crd_spread crd_spread_none(void); ///< nothing is said

CRD_API crd_loop_options crd_loop_defaults(void);
/// Macro steps after which a sample is used that is `latency` s old: rounded up to the raster; -1:
/// negative, or more than CRD_LATENCY_MAX.
CRD_API int crd_latency_steps(double latency, double step);
/// The latency that `o` asks for at macro step `step`, else `own`.
CRD_API crd_status crd_loop_latency(crd_context* ctx, const crd_loop_options* o, double step,
                                    int own, int* out);
/// A loop file (docs/explanation/analysis.md) as one JSON object; YAML by way of crd_yaml_to_json.
/// `out` is cleared by the caller, after a success only.
CRD_API crd_status crd_loop_parse(crd_context* ctx, const char* json, size_t length,
                                  const char* file, const crd_loop_options* o, crd_loop_model* out);

/// Poles or modes by falling real part; of a pair the one above the real axis.
typedef struct crd_modes {
    bool known;
    int count;
    crd_complex* at;
} crd_modes;

typedef struct crd_stability {
    bool stable; ///< by all of the below that is known
    bool nyquist_known;
    const char* no_nyquist; ///< why not
    crd_nyquist nyquist;
    crd_loop_point* points; ///< (nyquist.points), for crd_free
    crd_modes poles;        ///< of the closed loop with G_p
    crd_modes after;        ///< of the exact map, outputs sampled after the inputs' update
    crd_modes before;       ///< ... before it
    const char* no_poles;   ///< why they are not known
    int variant;            ///< the worst one, which this is the report of
    int unstable_variants;
} crd_stability;

/// Nyquist's criterion, poles and modes of the worst variant, which `m` has chosen then. What one
/// of the three cannot do is told in a sentence; CRD_E_UNSUPPORTED: none of them can. Texts and
/// arrays are the model's.
CRD_API crd_status crd_analysis_loop(crd_loop_model* m, crd_stability* out);

/// The phase margin nearest to 0, the gain margin nearest to 1; NULL: there is none.
CRD_API const crd_crossing* crd_nyquist_phase_margin(const crd_nyquist* n);
CRD_API const crd_crossing* crd_nyquist_gain_margin(const crd_nyquist* n);

/// What a loop makes of its elements, in short.
typedef struct crd_margins {
    bool known, stable;
    double phase;   ///< degrees, the one nearest to 0; NaN: none
    double delay;   ///< s that the stable loop still survives; NaN: a network of several links
    double nearest; ///< min |1 + L|
} crd_margins;

/// Of the variant that is chosen. The exact map, where there is one, has a say in what is stable:
/// it sees what swings near the Nyquist frequency.
CRD_API crd_status crd_analysis_margins(const crd_loop_model* m, crd_margins* out);

// ---- loops whose links vary
// ----------------------------------------------------------------------

typedef enum crd_sure {
    CRD_SURE_STABLE,
    CRD_SURE_UNSTABLE,
    CRD_SURE_OPEN, ///< neither could be shown
} crd_sure;

/// What holds of a loop when samples take k_min .. k_max steps each, overtake one another and are
/// lost. Elements work as in a run: the newest sample counts, late ones are put in their place,
/// empty places are on a line between their neighbours. Outputs are sampled before the inputs'
/// update. Elements that adapt are taken as holds, but for `allowed`.
typedef struct crd_varied_report {
    const char* reason; ///< why nothing can be said; NULL: all below is there
    int link_count;
    const crd_variation** links; ///< (link_count) of the sampled network

    crd_sure worst;      ///< over all sequences with at most `burst` losses in a row
    double low, high;    ///< growth per step of the worst sequence lies between them
    const char* by;      ///< what showed that it is stable: "norm", "small gain"; else ""
    double gain;         ///< around the loop, of what sequences may change; < 1: small gain; NaN
    const char* stopped; ///< why no more effort was made; NULL: it was not needed
    int period;          ///< of the sequence that grows by `low` per step, 0: none was found
    int* ages;           ///< (period x link_count) age of the newest sample
    uint64_t* arrivals;  ///< (period x link_count) bit j: a sample of age j arrives

    crd_sure mean_square;  ///< when samples are lost and late independently of each other
    double moment;         ///< factor of second moments per step; NaN: see no_moment
    double moment_error;   ///< residual of the moments that belong to it
    const char* no_moment; ///< why not; NULL
    bool shared;           ///< said of links that share their packets: apart they are too many
    double drawn;          ///< ln of the growth per step with links apart, an estimate by drawing
                           ///< 40,000 steps; NaN: not needed, or too large
    double drawn_error;    ///< its standard error
    double loss_limit;     ///< loss of all that lose at which it is not stable any more, NaN
    double loss_tried;     ///< up to where this was looked for; NaN: it was not

    int adapting;   ///< elements that adapt
    double allowed; ///< of their estimates: distance to the newest sample, in multiples of the
                    ///< largest change from sample to sample, with which the loop holds in the
                    ///< worst case; < 0: none could be shown
} crd_varied_report;

/// `m` is varied. Arrays and texts are the model's. It makes some seconds of effort at most, and
/// says where it stopped.
CRD_API crd_status crd_analysis_varied(crd_loop_model* m, crd_varied_report* out);

// ---- recordings --------------------------------------------------------------------------------

/// One-sided power density of a recording by Welch's method: segments of `length` samples (a power
/// of two, at least 8), half overlapping, each without its mean and under a Hann window.
typedef struct crd_spectrum {
    int bins;        ///< length / 2 + 1
    double* omega;   ///< (bins) rad/s
    double* density; ///< (bins) power per rad/s; its integral is the variance
    int segments;    ///< that were averaged
    double variance; ///< integral of the density
} crd_spectrum;

/// `n` samples, `dt` s apart. length 0: the power of two next below n / 4, at most 4096. Slow
/// trends that one segment cannot tell from its mean are not in it. CRD_E_RANGE: too few samples,
/// or one is not a number (a gap): the text says which.
CRD_API crd_status crd_analysis_spectrum(crd_context* ctx, const double* y, int64_t n, double dt,
                                         int length, crd_spectrum* out);
CRD_API void crd_spectrum_clear(crd_context* ctx, crd_spectrum* s);

/// The frequency below which `part` (0.99, say) of the power lies.
/// CRD_E_RANGE: `part` is not between 0 and 1, or the recording is constant.
CRD_API crd_status crd_spectrum_bandwidth(crd_context* ctx, const crd_spectrum* s, double part,
                                          double* omega);

/// The largest macro step for which an element keeps its tolerances (see crd_analysis_limits) up to
/// `omega`. The latency is k steps of that length.
CRD_API crd_status crd_analysis_macro_step(crd_context* ctx, const crd_linear* e, double omega,
                                           double magnitude_tolerance, double phase_tolerance_deg,
                                           double* dT);

/// A signal on the grid of the macro steps, without gaps. Borrowed.
typedef struct crd_signal {
    const char* name; ///< for messages
    const double* y;
    int64_t count;
    double step; ///< s
} crd_signal;

typedef struct crd_signal_report {
    double mean;
    double bandwidth; ///< rad/s, `part` of the power lies below
    double half;      ///< half of it
    crd_spectrum spectrum;
} crd_signal_report;

/// `length` as in crd_analysis_spectrum. Give the spectrum back with crd_spectrum_clear, also after
/// a failure.
CRD_API crd_status crd_analysis_signal(crd_context* ctx, const crd_signal* s, int length,
                                       double part, crd_signal_report* out);

/// The macro step that an element needs for a signal.
typedef struct crd_step_need {
    int k;        ///< latency in macro steps
    double step;  ///< largest macro step, s; NaN: none is short enough
    double keeps; ///< rad/s up to which it is good at best; NaN unless the latency is in s
} crd_step_need;

/// For frequencies up to `bandwidth`. A latency of k macro steps, whatever their length, if
/// `latency` is NaN; `step` is then what bands of the element are taken at. Else a latency in s,
/// whatever k it makes.
CRD_API crd_status crd_analysis_step_need(const crd_element* e, double bandwidth, double step,
                                          int k, double latency, double magnitude_tolerance,
                                          double phase_tolerance_deg, crd_step_need* out);

// ---- from a signal to an element ---------------------------------------------------------------

typedef enum crd_designer {
    CRD_DESIGNER_MOMENT,
    CRD_DESIGNER_SAVITZKY_GOLAY,
    CRD_DESIGNER_WIENER,
    CRD_DESIGNER_OPTIMAL,
    CRD_DESIGNER_BOUNDED,
    CRD_DESIGNERS,
} crd_designer;
CRD_API const char* crd_designer_name(crd_designer by); ///< "savitzky-golay"

/// What is known of the signal and wanted of the algorithm. Start from crd_design_task_defaults().
typedef struct crd_design_task {
    crd_goal goal;   ///< k is set per design; m = 9
    int degree;      ///< moment, Savitzky-Golay; default 2
    double noise;    ///< Wiener: over the power of the signal; NaN, the default: as the signal says
    double margin;   ///< bounded: |G| <= 1 + margin; default 0.03
    bool constant;   ///< Wiener: about the mean of the signal, with b (crd_linear_affine)
    crd_band* bands; ///< Wiener, in x = omega dT
    int band_count;
    const crd_signal* signal; ///< NULL: none
} crd_design_task;

CRD_API crd_design_task crd_design_task_defaults(void);
/// Bands, noise and the two intervals of the goal, from the spectrum of the signal if there is one,
/// else from the goal's `phase`. What is set already (hi > 0, noise not NaN) stays. Bands are the
/// arena's. CRD_E_RANGE: the signal is constant.
CRD_API crd_status crd_design_find_bands(crd_context* ctx, crd_arena* arena, crd_design_task* task);

/// One designed algorithm and what it is worth.
typedef struct crd_designed {
    crd_designer by;
    crd_linear linear; ///< crd_linear_clear
    crd_quality quality;
    crd_metrics metrics; ///< on the signal, NaN without
    double zoh;          ///< C of ZOH on it
    crd_margins margins; ///< in a loop, by whoever has one
} crd_designed;

CRD_API crd_status crd_design_make(crd_context* ctx, const crd_design_task* task, crd_designer by,
                                   int k, crd_designed* out);
/// An element with a table of weights over k (ascending), as its JSON description.
CRD_API crd_status crd_design_describe(const char* name, double step, const crd_designed* designs,
                                       int count, crd_text* out);

// ---- from a link and a signal to an element ----------------------------------------------------

enum {
    CRD_LATENCY_SPARE = 3, ///< late samples now and then: so many steps more than it is made for
    CRD_LINK_CANDIDATES = 9,
};

/// What a link does to samples: a delay each, NaN for those that it loses.
typedef struct crd_link {
    const double* delays; ///< (count) s
    int64_t count;
    int64_t lost;
    double mean, low, high; ///< s; 0.1 % are beyond `high`
    int k_low, k_most;      ///< macro steps: of the shortest delay, of the median
    int k_high;             ///< of `high`, and two more if some are lost
} crd_link;

/// 10000 delays within delay +- jitter, of which the part `loss` is lost.
CRD_API crd_status crd_link_emulate(crd_context* ctx, crd_arena* arena, double delay, double jitter,
                                    double loss, crd_link* out);
/// Fills in what follows from `delays` at macro step `step`. CRD_E_RANGE: too long to be
/// compensated, or everything is lost.
CRD_API crd_status crd_link_examine(crd_context* ctx, crd_link* link, double step);

typedef struct crd_link_candidate {
    const char* name;
    crd_coupling_options options;
    crd_designed* designs; ///< (design_count) over the latencies of the link; of a designed one
    int design_count;
    crd_metrics metrics; ///< of the trial
    crd_margins margins; ///< of a linear one, by whoever has a loop
} crd_link_candidate;

/// Algorithms for a link, designed and tried. Zero it before the first use.
typedef struct crd_link_trial {
    crd_context* ctx;
    crd_arena arena;
    crd_link_candidate candidates[CRD_LINK_CANDIDATES];
    int count;
} crd_link_trial;

/// The candidates: ZOH, FOH, EROS, designs for the first `seen` samples of the signal, and two that
/// learn. `taps` of designs, <= 0: 9, and 25 for the long one. `only`: the only one whose weights
/// are wanted, -1: all.
CRD_API crd_status crd_link_design(crd_context* ctx, const crd_link* link, const crd_signal* s,
                                   int64_t seen, int taps, int only, crd_link_trial* t);
/// The signal through the link into candidate `i`; its metrics count from sample `first` on.
CRD_API crd_status crd_link_try(crd_link_trial* t, const crd_link* link, const crd_signal* s,
                                int64_t first, int i);
/// A candidate as the JSON description of an element.
CRD_API crd_status crd_link_describe(const crd_link_candidate* c, const char* name, double step,
                                     crd_text* out);
CRD_API void crd_link_trial_clear(crd_link_trial* t);

#ifdef __cplusplus
}
#endif
