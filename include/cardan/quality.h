/// Quality of a co-simulation: predict what flows over a connection, measure how wrong that was,
/// and make it small by step size, energy correction and iteration.
///
/// Pure numerics for a master: nothing here knows units, files or clocks. Descriptions (options)
/// are constant, what changes is in small plain structs that can be copied, so a step can be taken
/// back by keeping the old ones. Only crd_accel_create allocates. Wrong options come back with a
/// sentence from the *_check functions; step functions take them for right, and hand NaN through:
/// nothing here hides that a run broke.
///
/// Time on a step is local: s = 0 at its start T[k-1], s = H at its end T[k]. Formulas and letters
/// follow Glumac and Kovacic 2023 (defects, step control) and Rodriguez Frade 2021, chapter 5
/// (residual power, energy correction).
#pragma once
#include "cardan/base.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- polynomials -------------------------------------------------------------------------------

#define CRD_POLY_SIZE 6 ///< coefficients: degree 5 is the highest that is needed

/// p(s) = c[0] + c[1] s + ... + c[degree] s^degree; coefficients above are 0.
typedef struct crd_poly {
    int degree;
    double c[CRD_POLY_SIZE];
} crd_poly;

CRD_API double crd_poly_eval(const crd_poly* p, double s);
CRD_API double crd_poly_derivative(const crd_poly* p, int order, double s); ///< order >= 0
CRD_API double crd_poly_mean(const crd_poly* p, double from, double to);    ///< from < to
/// Mean of p^2 over [from, to], exact and never negative.
CRD_API double crd_poly_mean_square(const crd_poly* p, double from, double to);
/// Maximum of |p| over [from, to], found at the ends and where p' = 0.
CRD_API double crd_poly_max(const crd_poly* p, double from, double to);
CRD_API crd_poly crd_poly_minus(const crd_poly* a, const crd_poly* b);
/// The same curve with its origin moved: q(s) = p(s + by).
CRD_API crd_poly crd_poly_shift(const crd_poly* p, double by);
/// The polynomial of at most this degree (0, 1, 2) that is nearest to p over [0, h] in the mean
/// square. It has the same first moments, so that what a unit integrates is nearly unchanged.
CRD_API crd_poly crd_poly_nearest(const crd_poly* p, int degree, double h);

/// Legendre coefficient of p over [0, h]: of 1, 2x - 1, 6x^2 - 6x + 1, ... with x = s / h; k in
/// 0...3. What crd_poly_nearest leaves out begins with that of its degree + 1.
CRD_API double crd_poly_moment(const crd_poly* p, int k, double h);

// ---- samples of a signal -----------------------------------------------------------------------

/// What is known of a signal at a communication point.
typedef struct crd_sample {
    double y[3]; ///< value, first and second derivative by time; unknown ones are 0
    int order;   ///< how many derivatives are known: 0, 1 or 2
} crd_sample;

/// Taylor polynomial of at most this degree with s = 0 where the sample was taken (Glumac 2023
/// (14)).
CRD_API crd_poly crd_poly_taylor(const crd_sample* at, int degree);
/// The output over the finished step of length h: Taylor polynomial at its end (Glumac 2023 (12)),
/// written in s, so that it can be compared with what the input was.
CRD_API crd_poly crd_poly_output(const crd_sample* end, int degree, double h);
/// Two-point Hermite interpolation over [0, h] (h < 0 too): `n0` data (value and derivatives,
/// 0...3) of `at0`, `n1` of `at_h`, n0 + n1 >= 1; degree n0 + n1 - 1. (3, 3) is the quintic
/// reconstruction of a step from both its ends.
CRD_API crd_poly crd_poly_hermite(const crd_sample* at0, int n0, const crd_sample* at_h, int n1,
                                  double h);

/// An output with direct feedthrough, y = ... + D u, evaluated again with the input that came
/// since: y + D (u_fresh - u_used), value and derivatives. For units with a known gain D that
/// cannot be asked again.
CRD_API crd_sample crd_sample_refresh(const crd_sample* y, double gain, const crd_sample* u_used,
                                      const crd_sample* u_fresh);

#define CRD_HISTORY 4 ///< samples kept per signal

/// The last samples of a signal, newest first. All zero: empty.
typedef struct crd_history {
    int count;
    crd_sample sample[CRD_HISTORY];
    double h[CRD_HISTORY - 1]; ///< h[i] > 0 lies between sample[i + 1] and sample[i]
} crd_history;

/// A sample one step of length h after the newest one; h does not matter for the first.
CRD_API void crd_history_push(crd_history* y, double h, const crd_sample* s);
/// The newest sample is replaced: the output was evaluated again with fresh inputs.
CRD_API void crd_history_replace(crd_history* y, const crd_sample* s);
/// Forget all but the newest sample: there was an event, the past does not continue.
CRD_API void crd_history_cut(crd_history* y);
/// The newest sample with at least `order` derivatives: those that the unit does not give come from
/// divided differences over older values (unequal steps too), as many as there are.
CRD_API crd_sample crd_history_estimate(const crd_history* y, int order);
/// The step of length h from the newest sample to `end`, as well as it can be known: from both its
/// ends where there are derivatives, else through the values at its ends and up to two before.
CRD_API crd_poly crd_history_reconstruct(const crd_history* before, double h,
                                         const crd_sample* end);

/// What the two-point interpolation of that step misses in its middle, y - crd_poly_hermite, from
/// the sample before: between the ends it is that times (2s/h)^n0 (2(h-s)/h)^n1, with n0 and n1
/// data there. 0 without a sample before.
CRD_API double crd_history_missed(const crd_history* before, double h, const crd_sample* end);
/// The same step through the values at its ends, with the course between them from first
/// derivatives alone, those before it too: it does not matter if these are all off by the same,
/// because the unit saw another input at its ends. false: too few are known.
CRD_API bool crd_history_by_slopes(const crd_history* before, double h, const crd_sample* end,
                                   crd_poly* out);

// ---- predictors --------------------------------------------------------------------------------

typedef enum crd_predictor {
    CRD_PREDICT_HOLD,    ///< y_k
    CRD_PREDICT_TAYLOR1, ///< y_k, y'_k
    CRD_PREDICT_TAYLOR2, ///< y_k, y'_k, y''_k
    CRD_PREDICT_HERMITE, ///< degree 4 through y, y', y'' at T[k] and y, y' at T[k-1]
    CRD_PREDICT_AB2,     ///< a constant: the mean of the line through two values
    CRD_PREDICT_AB3,     ///< ... of the parabola through three
    CRD_PREDICT_AB4,     ///< ... of the cubic through four
    CRD_PREDICT_COUNT,
} crd_predictor;

CRD_API const char* crd_predictor_name(crd_predictor p); ///< "hold", "taylor1", ... "ab4"
CRD_API bool crd_predictor_find(const char* name, crd_predictor* out);
/// Order of the connection defect: it falls with H^k. Of ab2 ... ab4: of the step's mean.
CRD_API int crd_predictor_order(crd_predictor p);

/// The signal over the next step of length H, s = 0 at the newest sample. Derivatives that units do
/// not give are estimated (crd_history_estimate), except for hermite, which is unstable then. What
/// the history is too short for is done at the highest order that it allows: hermite becomes
/// taylor2, ab3 becomes ab2, everything becomes hold on the first sample. An empty history gives 0.
CRD_API crd_poly crd_predict(crd_predictor p, const crd_history* y, double H);
/// The constant for a unit that can only hold its input: the mean of the prediction over the step.
CRD_API double crd_predict_mean(crd_predictor p, const crd_history* y, double H);

/// The degree-4 predictor is stable only where the fastest angular frequency of the coupled system
/// stays below this over H (of 60 random oscillators none failed at 0.15, 11 did at 0.3).
#define CRD_HERMITE_BOUND 0.15
CRD_API bool crd_hermite_stable(double omega_max, double H);

// ---- retrospective selection: predict: auto ----------------------------------------------------

/// Start from crd_select_defaults().
typedef struct crd_select_options {
    unsigned candidates; ///< bits 1u << crd_predictor, hold is always one; default up to hermite
    bool hold_only;      ///< the unit takes constants: candidates are compared by their means
    double forget;       ///< of the running squared errors, per step, in [0, 1); default 0.8
    double gain;         ///< hysteresis: to be chosen, an error has to be below gain times that of
                         ///< the present choice; default 0.45
    double jump;         ///< this many times the running change, explained by no candidate, is a
                         ///< discontinuity; default 8
    int settle;          ///< steps on hold after one; default 2
    double omega_h;      ///< hermite only below this omega H; default CRD_HERMITE_BOUND
    double smooth;       ///< forgetting of signed errors, per step, in [0, 1): noise cancels in
                         ///< their mean, the delay of hold does not. Where noise makes hold look
                         ///< best, this mean decides between it and the order above. Default 0:
                         ///< it does not; ignored where tol > 0
    double tol; ///< of a controlled step, as RMS error: hermite is then chosen where it allows the
                ///< longer step, not just the smaller error. Default 0: the step is fixed
} crd_select_options;

/// All zero at the start: hold, nothing known.
typedef struct crd_select {
    crd_predictor now;                 ///< to be used for the next step
    double score[CRD_PREDICT_COUNT];   ///< running mean squared error of each candidate
    double drift[2], slow[2];          ///< of hold and of the order above: running mean of the
                                       ///< signed error, and that of its square
    double weight;                     ///< of the running means: 0 at first, then towards 1
    double change;                     ///< running mean squared change over a step
    double slope_square, curve_square; ///< integrals of y'^2 and y''^2, of late
    int settle;                        ///< steps on hold that are left
    int wait, patience;                ///< steps that are left without the third order and above,
                                       ///< and how many there were last time
    int64_t steps, jumps, switches;    ///< counted
} crd_select;

CRD_API crd_select_options crd_select_defaults(void);
/// CRD_E_RANGE with the option that makes no sense.
CRD_API crd_status crd_select_check(crd_context* ctx, const crd_select_options* opt);
/// Before the first step: what to begin with, the Taylor polynomial of the derivatives that the
/// unit gives (as far as it is a candidate), else hold.
CRD_API void crd_select_start(const crd_select_options* opt, crd_select* s,
                              const crd_sample* first);
/// After a step: what would each candidate have predicted for it, and which shall be next?
/// `before` is the history as the step began, `end` the sample at its end, h its length. Costs no
/// step of any unit. true: there was a discontinuity; the caller pushes `end` and then cuts the
/// history (crd_history_cut).
CRD_API bool crd_select_step(const crd_select_options* opt, crd_select* s,
                             const crd_history* before, double h, const crd_sample* end);
/// An event is known to have happened: hold, and start the scores anew.
CRD_API void crd_select_event(const crd_select_options* opt, crd_select* s);
/// Angular frequency of the signal, sqrt(mean y''^2 / mean y'^2) over the recent past; 0 unknown.
CRD_API double crd_select_omega(const crd_select* s);
/// The longest step that the present choice is good for: omega_h / omega with hermite, else
/// INFINITY. A master that controls its step stays below it.
CRD_API double crd_select_ceiling(const crd_select_options* opt, const crd_select* s);
/// The choice for a next step of length H: `now`, or taylor2 where hermite would not be stable.
CRD_API crd_predictor crd_select_choice(const crd_select_options* opt, const crd_select* s,
                                        double H);

// ---- defects -----------------------------------------------------------------------------------

/// Three readings of Glumac 2023.
typedef enum crd_defect_scheme {
    CRD_DEFECT_STRICT,  ///< (15) to the letter, exact derivatives at the start; proves the orders
    CRD_DEFECT_FRESH,   ///< outputs with feedthrough are evaluated again with fresh inputs
    CRD_DEFECT_PROGRAM, ///< the published program: fresh, and all derivatives at the start are 0
} crd_defect_scheme;

CRD_API const char* crd_defect_scheme_name(crd_defect_scheme v); ///< "strict", "fresh", "program"
CRD_API bool crd_defect_scheme_find(const char* name, crd_defect_scheme* out);
CRD_API bool crd_defect_scheme_refreshes(
    crd_defect_scheme v); ///< feedthrough outputs, before they are handed on
/// The first sample of an output as the scheme sees it.
CRD_API crd_sample crd_defect_scheme_initial(crd_defect_scheme v, const crd_sample* s);

/// Connection defect (17), u - y over the step: its RMS on the step, in closed form. `max` (may be
/// NULL) gets its largest magnitude.
CRD_API double crd_defect_connection(const crd_poly* u, const crd_poly* y, double h, double* max);
/// For a unit that holds its input the mean is what counts: |mean of u - y| over the step.
CRD_API double crd_defect_mean(const crd_poly* u, const crd_poly* y, double h);
/// RMS over the step of an interpolation error that is d at mid-step and has the nodes of `n0` data
/// at its start and `n1` at its end: d (2s/H)^n0 (2(H-s)/H)^n1. With n0 = 0, n1 = n + 1 this is the
/// estimate (32) of Glumac 2023, |d| 2^(n+1) / sqrt(2n+3). n0, n1 in 0...3.
CRD_API double crd_defect_mid(int n0, int n1, double d);
/// The mean of the same over the step, with its sign.
CRD_API double crd_defect_mid_mean(int n0, int n1, double d);
/// Output defect of a Taylor polynomial of degree n (Glumac 2023 (30), (32)): `middle` is the
/// output sampled at mid-step.
CRD_API double crd_defect_output(const crd_sample* end, int degree, double h, double middle);

/// Both defects against the reconstruction from both ends of the step (quintic where two
/// derivatives are known): of order 6, where the one-sided polynomial (12) has order 3.
typedef struct crd_defect {
    double connection, output; ///< RMS over the step; output is NaN without mid-point sample
    double max;                ///< of the connection defect
} crd_defect;
CRD_API crd_defect crd_defect_two_point(const crd_poly* u, const crd_sample* start,
                                        const crd_sample* end, double h, double middle);

/// The larger, or NaN if one of them is: for (38), where fmax would hide a broken signal.
CRD_API double crd_defect_larger(double a, double b);

/// Over a run: RMS = sqrt(1/T sum of the integrals of delta^2), not (51), (52) as printed. All zero
/// at the start.
typedef struct crd_defect_sum {
    double integral, time; ///< of the square; of the steps in it
    double max, max_time;  ///< largest magnitude, and at the end of which step
    double rms_max;        ///< largest RMS of a step
    int64_t steps, broken; ///< counted; broken: not finite, left out of all others
} crd_defect_sum;

/// A step that ended at t, with the RMS and the largest magnitude on it.
CRD_API void crd_defect_add(crd_defect_sum* sum, double t, double h, double rms, double max);
CRD_API double crd_defect_rms(const crd_defect_sum* sum); ///< NaN once a step was broken

// ---- step control ------------------------------------------------------------------------------

typedef enum crd_step_method {
    CRD_STEP_PI,    ///< Glumac 2023 (39)
    CRD_STEP_H211B, ///< digital filter of Soederlind 2003, b = 4, with smooth limiter
} crd_step_method;

/// Start from crd_step_defaults().
typedef struct crd_step_options {
    crd_step_method method; ///< default CRD_STEP_H211B
    double tol;             ///< of the controlled defect (38), > 0; no default
    double h1;              ///< first step, > 0; 0: the caller finds it (crd_step_first)
    double kp, ki;          ///< PI; default 0.13 and 1/15, (50)
    double theta_max;       ///< PI: largest growth of a step; default 2
    double safety;          ///< H211b aims at safety times tol; default 0.9
    double floor, ceiling;  ///< of the step, 0 < floor <= ceiling; default 1e-12 and INFINITY
} crd_step_options;

typedef struct crd_step {
    double h;                               ///< the step to be executed
    double I;                               ///< PI: integrator, ln of a step
    double h_last;                          ///< H211b: the step before, 0: none
    double c_last;                          ///< H211b: safety tol / eps of the step before
    int64_t at_floor, at_ceiling, rejected; ///< counted
} crd_step;

CRD_API crd_step_options crd_step_defaults(void);
CRD_API crd_status crd_step_check(crd_context* ctx, const crd_step_options* opt);
CRD_API void crd_step_init(const crd_step_options* opt, double h1, crd_step* s);
/// The step of length s->h is done with the controlled defect eps; eps falls with h^order
/// (crd_predictor_order; PI does not need it). Returns the length of the next one, which is then
/// s->h. An eps that is not finite gives NaN and leaves s as it is.
CRD_API double crd_step_next(const crd_step_options* opt, crd_step* s, double eps, int order);
/// As crd_step_next, where the executed step was of another length (cut at an event or at the end).
CRD_API double crd_step_next_after(const crd_step_options* opt, crd_step* s, double h_done,
                                   double eps, int order);
/// The step is taken back: a shorter one to try instead (between a tenth and 0.9 of it). Also for
/// an eps that is not finite.
CRD_API double crd_step_reject(const crd_step_options* opt, crd_step* s, double eps, int order);
/// After an event: the filter forgets the past, the step becomes h1.
CRD_API void crd_step_event(const crd_step_options* opt, double h1, crd_step* s);
/// A first step when only the tolerance is known: a tenth of where the first predicted defect of
/// any of the n signals would reach tol with a predictor of this order (crd_predictor_order),
/// derivatives beyond the known ones being continued by their ratio; at most a thousandth of
/// `span`, within floor and ceiling.
CRD_API double crd_step_first(const crd_step_options* opt, int n, const crd_sample* y, int order,
                              double span);

// ---- energy ------------------------------------------------------------------------------------

typedef enum crd_correction {
    CRD_CORRECT_NONE,    ///< watch only
    CRD_CORRECT_POWER,   ///< Rodriguez 2021 (5.48), made causal, with the robust limiter
    CRD_CORRECT_LEAD,    ///< B = 2 mu df: its secular part, no division
    CRD_CORRECT_GATED,   ///< B = 2 mu g df: the lead as far as df is predictable
    CRD_CORRECT_PROBE,   ///< crd_probe: B is the caller's, who also sets the inputs
    CRD_CORRECT_BALANCE, ///< B = 2 mu df - damper v: the lead, and what closes the balance
} crd_correction;

/// "none", "power", "lead", "gated", "probe", "balance"
CRD_API const char* crd_correction_name(crd_correction c);
CRD_API bool crd_correction_find(const char* name, crd_correction* out);

/// Power bond: an action f (force, torque, voltage) from the unit with feedthrough to the other,
/// and that unit's flow v back, signed so that f v is the power into the unit that f acts on. Start
/// from crd_bond_defaults().
typedef struct crd_bond {
    crd_correction correction; ///< default CRD_CORRECT_NONE
    double mu;                 ///< part of the residual energy that is real; default 0.5
    double ki;                 ///< of what earlier corrections missed; default 0
    double limiter;            ///< eps = limiter * largest |v| so far, 0.02...0.05; default 0.02
    double forget;             ///< of the gate, 0.9...0.98; default 0.95
    bool moves;                ///< CRD_CORRECT_BALANCE: the integral of f counts; default false
} crd_bond;

/// All zero before crd_bond_start.
typedef struct crd_bond_state {
    double f, v;       ///< at the last communication point; f without correction
    double v_max;      ///< largest |v| at the ends of steps
    double power;      ///< residual power dP of the last step, > 0: energy was injected
    double energy;     ///< residual energy (5.40): sum of dP H
    double error;      ///< dE*, sum of mu dP H: energy that the coupling put in, estimated
    double step_error; ///< dE* of the last step (5.44)
    double missed;     ///< E of (5.47): what corrections have not removed
    double B;          ///< correction that acts now, to be added to f
    double work;       ///< sum of B v H: what corrections put in
    double power_max, power_min;
    double df, gate_xy, gate_xx; ///< last change of f; sums of the gate
    double scale;                ///< sum of |f v| H: energy that went over the bond
    double balance;              ///< set by the caller before each step: J created so far
    double closed;               ///< that of the step before
    double damper;               ///< CRD_CORRECT_BALANCE: B has -damper v in it
    double loss;                 ///< running mean of the power that would be created without it
    double ahead;                ///< s, the same if `moves`: B has ahead df/dt in it
    double vv, aa, ff, gg, gv;   ///< running means of |v|^2, |v'|^2, |f|^2, |f'|^2, f' v
    double period;               ///< s, of the motion that these say; 0: not known
    double time;                 ///< s in steps
    int64_t steps;
} crd_bond_state;

CRD_API crd_bond crd_bond_defaults(void);
CRD_API crd_status crd_bond_check(crd_context* ctx, const crd_bond* bond);

/// Effective self delay of the coupling path (s), from what the master knows: step of the unit with
/// feedthrough, step of the one without, order 0 (hold) or higher (extrapolated) of the inputs.
CRD_API double crd_bond_delay(double h_df, double h_ndf, int order);
/// mu = delay / (2 H) with H = max(h_df, h_ndf): (5.42), (5.43). Without feedthrough anywhere mu is
/// 0.
CRD_API double crd_bond_mu(double h_df, double h_ndf, int order);
/// dP^(k+1) = f^k v^(k+1) - f^(k+1) v^k: (5.37) with its sign put right.
CRD_API double crd_bond_residual(double f0, double v0, double f1, double v1);

CRD_API void crd_bond_start(crd_bond_state* s, double f, double v);
/// After a macro step of length h with the new f (without correction) and v: keeps the books and
/// returns the correction B to be added to f over the next step, of length h_next. Single-rate and
/// multi-rate alike: h is the manager's step, mu tells the difference.
CRD_API double crd_bond_step(const crd_bond* bond, crd_bond_state* s, double h, double h_next,
                             double f, double v);
/// Predictability of f: least-squares slope of df_k on df_(k-1), in [-1, 1]; 0 when not known.
CRD_API double crd_bond_gate(const crd_bond_state* s);

/// The part of B that is a lead, in changes of f over a step of the same length: 2 mu; times the
/// gate; 0 for CRD_CORRECT_POWER.
CRD_API double crd_bond_lead(const crd_bond* bond, const crd_bond_state* s, double h);

/// One component of a bond that has several: forces and velocities of a point in space. Powers add
/// up, the correction (5.48) points along v and is limited by its length, the gate is one for all.
/// f, v, df and B of the state are those of the first component.
typedef struct crd_bond_axis {
    double f, v;               ///< set by the caller before start and before each step
    double f_last, v_last, df; ///< of the last communication point
    double B;                  ///< correction that acts now, to be added to f
} crd_bond_axis;

/// As crd_bond_start and crd_bond_step for n >= 1 components; n = 1 is the same to the bit.
CRD_API void crd_bond_start_axes(crd_bond_state* s, int n, crd_bond_axis* axes);
CRD_API void crd_bond_step_axes(const crd_bond* bond, crd_bond_state* s, double h, double h_next,
                                int n, crd_bond_axis* axes);

// ---- feedthrough found by probing --------------------------------------------------------------

// Units that can only hold their inputs, that cannot be asked again, and of which no gain is known:
// what an output f answers at once to an input is found by moving that input a little. Over a step
// an input is held at the mean of its prediction plus a probe of alternating sign, which the unit
// hardly feels (its mean is 0) while f answers to it with the gain D. Then f + D (y - u used) is f
// as if evaluated again, and can be extrapolated.
//
// Single rate, one probed bond per unit, and nothing late: f has to be of the end of the step over
// which u was held. An f that comes a step later gives a gain of the wrong sign.

#define CRD_PROBE_INPUTS 2

/// One action f and the motion of the port it acts on. Start from crd_probe_defaults().
typedef struct crd_probe {
    int inputs;                  ///< 1 or 2; default 1
    bool flow[CRD_PROBE_INPUTS]; ///< a velocity (current ...), which the unit integrates, so that f
                                 ///< answers to it later too; else a displacement. With two inputs
                                 ///< one is a flow. Default false, true
    double amplitude;   ///< of the probe, in changes of the input over a step, in (0, 0.5]; default
                        ///< 0.5: the input is its value at the start or at the end of the step
    double forget;      ///< of the gains, per step, in [0.9, 1]; default 0.997
    double gate_forget; ///< of the predictability of f, in (0, 1]; default 0.98
} crd_probe;

#define CRD_PROBE_WINDOW 5 ///< steps that a difference of fourth order needs
#define CRD_PROBE_GAINS 3  ///< of a displacement, of a flow, and of that flow one step before

/// All zero before crd_probe_start.
typedef struct crd_probe_state {
    double gain[CRD_PROBE_INPUTS];      ///< D, 0 as far as it is not certain
    double deviation[CRD_PROBE_INPUTS]; ///< standard deviation of D before that
    double fresh;                       ///< f as if evaluated with the inputs that just came
    double gate;                        ///< 1: f is extrapolated, 0: fresh is held
    crd_predictor used;                 ///< for f: ab2 or ab3
    // windows, newest first: f, inputs that were set, probes in them
    double f[CRD_PROBE_WINDOW], u[CRD_PROBE_INPUTS][CRD_PROBE_WINDOW];
    double probe[CRD_PROBE_INPUTS][CRD_PROBE_WINDOW];
    crd_history y[CRD_PROBE_INPUTS], refreshed;
    // sums of least squares with the probes as instruments z, regressors x and answer a
    double zx[CRD_PROBE_GAINS][CRD_PROBE_GAINS], zz[CRD_PROBE_GAINS][CRD_PROBE_GAINS];
    double xx[CRD_PROBE_GAINS][CRD_PROBE_GAINS], za[CRD_PROBE_GAINS], xa[CRD_PROBE_GAINS];
    double aa, weight;
    double ab[2], score[2];        // last predictions by ab2 and ab3, their squared errors
    double rate, gate_xy, gate_xx; // last slope of fresh; sums of the gate
    double h;                      // last step
    int equal;                     // steps of that length in a row, as far as it matters
    int64_t steps, learned;        ///< counted; learned: in how many the gains were looked at
} crd_probe_state;

CRD_API crd_probe crd_probe_defaults(void);
CRD_API crd_status crd_probe_check(crd_context* ctx, const crd_probe* p);
/// Before the first step, over which inputs and f are held as they are. y: the inputs (p->inputs).
CRD_API void crd_probe_start(const crd_probe* p, crd_probe_state* s, double f, const double* y);
/// After a step of length h with the new f and the new signals y: u gets what the unit with
/// feedthrough is to hold over the next step, of length h_next; returns the f that the other unit
/// is to hold. Gains are learned from steps of equal length only, but used in all.
CRD_API double crd_probe_step(const crd_probe* p, crd_probe_state* s, double h, double h_next,
                              double f, const double* y, double* u);
/// What the mean of input i is predicted with.
CRD_API crd_predictor crd_probe_predictor(const crd_probe* p, int i);
/// There was an event in the step that just ended, to be told before crd_probe_step: the past does
/// not continue, so what follows it is held; gains stay.
CRD_API void crd_probe_event(const crd_probe* p, crd_probe_state* s);

// ---- acceleration of fixed-point iterations ----------------------------------------------------

typedef enum crd_accel_method {
    CRD_ACCEL_FIXED,   ///< x = x + omega (g(x) - x)
    CRD_ACCEL_AITKEN,  ///< omega from the last two residuals
    CRD_ACCEL_IQN_ILS, ///< quasi-Newton with the inverse Jacobian from least squares
} crd_accel_method;

CRD_API const char* crd_accel_name(crd_accel_method m); ///< "fixed", "aitken", "iqn-ils"
CRD_API bool crd_accel_find(const char* name, crd_accel_method* out);

/// Start from crd_accel_defaults().
typedef struct crd_accel_options {
    crd_accel_method method; ///< default CRD_ACCEL_IQN_ILS
    int n;                   ///< length of x, >= 1; no default
    int columns;             ///< IQN-ILS: differences kept, >= 1; default 8, never more than n
    bool reuse;              ///< IQN-ILS: differences of earlier steps stay; default false
    double omega;            ///< relaxation, of the first sweep, in (0, 2); default 1
    double omega_max;        ///< Aitken: largest |omega|; default 10
    double drop;             ///< IQN-ILS: a column whose part orthogonal to newer ones is smaller
                             ///< than this, relatively, is left out; default 1e-8
    const double* tolerance; ///< (n, copied) > 0 each; NULL: 1. Residuals are measured in it
} crd_accel_options;

typedef struct crd_accel crd_accel; ///< opaque

CRD_API crd_accel_options crd_accel_defaults(void);
/// CRD_E_RANGE: an option makes no sense.
CRD_API crd_status crd_accel_create(crd_context* ctx, const crd_accel_options* opt,
                                    crd_accel** out);
CRD_API void crd_accel_destroy(crd_accel* a);
/// A new macro step begins.
CRD_API void crd_accel_start(crd_accel* a);
/// One sweep turned x (n) into gx (n); x becomes what to try next. Does not allocate. Returns the
/// residual max |gx_i - x_i| / tolerance_i of this sweep: converged at <= 1, and then x is gx.
CRD_API double crd_accel_step(crd_accel* a, double* x, const double* gx);
CRD_API int crd_accel_sweeps(const crd_accel* a); ///< since start

#ifdef __cplusplus
}
#endif
