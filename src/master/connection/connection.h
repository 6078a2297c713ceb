// A connection: one element of an output on its way to one element of an input. What is done to the
// value depends on its kind, and a kind is four functions over rows of connections:
//
//   begin    what the inputs are over the step that begins: the one place where inputs are written
//   sample   the outputs at the end of the step, before it counts
//   judge    how wrong the inputs were: the defect
//   accept   the step counts
//
// Kinds: copy and scale hold the newest value, convert changes its type, predict is a polynomial
// over the step, coupled goes through an emulated network and a coupling element, paired belongs to
// a power bond with wave ports (paired.h).
#pragma once
#include "cardan/coupling.h"
#include "cardan/learn.h"
#include "cardan/master.h"
#include "cardan/quality.h"
#include "cardan/results.h"
#include "shared/base.h"
#include "shared/coupling.h"
#include "shared/quality_level.h"
#include "shared/unit.h"

typedef struct crdi_plan crdi_plan;

enum { CRDI_COUPLED_PAST = 64 }; // samples that a new coupling element begins with
enum { CRDI_TEXT = 320 }; // bytes of a text for the record, which cuts it at a whole character

/// In the order in which inputs are written.
typedef enum crdi_kind {
    CRDI_COPY,
    CRDI_SCALE, // gain * x + offset
    CRDI_PREDICT,
    CRDI_CONVERT, // another type, a map, an integer, a text
    CRDI_COUPLED,
    CRDI_PAIRED,
    CRDI_KINDS
} crdi_kind;

/// Connections of one kind that stand in a row.
typedef struct crdi_rows {
    int first, count;
} crdi_rows;

typedef struct crdi_connection_kind {
    crd_status (*begin)(crd_master* m, crdi_rows rows, double t); // NULL: copies need no call
    void (*sample)(crd_master* m);                      // NULL: nothing to do, as in the next two
    double (*judge)(crd_master* m, double t);           // the largest defect, of its scale
    void (*accept)(crd_master* m, int64_t n, double t); // tick n ends at t
} crdi_connection_kind;

/// Where a value comes from or goes to.
typedef struct crdi_end {
    int member;
    int32_t variable, element; // in the unit
    int position, slot;        // of the variable in the binding; element of the kind's vector
} crdi_end;

typedef struct crdi_prediction crdi_prediction;
typedef struct crdi_network crdi_network;
typedef struct crdi_observed crdi_observed;
typedef struct crdi_coupled crdi_coupled;

typedef struct crdi_connection {
    const crd_connection_spec* spec; // as asked for, but for what its source forbids
    int number;                      // of that in the system
    crdi_kind kind;
    crdi_end from, to;
    const char *from_name, *to_name; // "second.v2", "first.v2"; NULL: nobody needed them yet
    double gain, offset;
    bool transform;
    const struct crdi_mapping* mapping; // instead of gain and offset, NULL: none
    bool curve;                         // continuous real numbers at both ends
    bool real;                          // and without a coupling
    bool corrected;                     // by a power bond
    bool probed;                        // which says what it is, not only how it differs
    bool slope;                         // of a coupling: hand its slope to the unit
    int rate_order;                     // derivatives of the source that are worth something
    bool early;                         // by the schedule
    int phase;
    int couple;                       // index of its coupling, -1: none
    bool routed;                      // run: goes from unit to unit, the master cannot change it
    crdi_prediction* prediction;      // run: by its kind, NULL: none
    crdi_observed* observed;          // run: copy, scale or coupled, if defects are monitored
    crdi_coupled* coupled;            // run
    const struct crdi_paired* paired; // it is one of a pair, NULL: it is not
} crdi_connection;

/// A connection as a polynomial on the step (cardan/quality.h). Everything is in the input's unit.
/// Plain hold without step control or iteration does not need one: crdi_observed.
/// What every step needs stands at the beginning.
struct crdi_prediction {
    const double* from; // in the source's outputs
    double* to;         // in the target's inputs
    double gain, offset;
    const int64_t* event_count; // of the source's unit
    int64_t events;             // run: those that are known
    crdi_network* network;      // a loop whose level counts, NULL: it chooses for itself
    double correction;          // run: of a power bond, added to the value
    crd_prediction predict;
    crd_predictor used; // run: of the newest prediction
    bool plain;         // values at equal steps to a unit that holds them, and nothing else
    bool textbook;      // hold, linear or quadratic, at their word
    bool probed;        // a bond predicts it: energy/probing.c
    bool means;         // the levels are means of values: no derivatives come, none are taken
    bool known;         // run: the source was ahead, nothing was predicted
    bool between;       // run: u goes from sample to sample, the end known or iterated
    bool guessed;       // its end is an unknown of the iteration
    bool disturbed;     // run: a jump or an event in the last step
    bool blind;         // run: a derivative was no number, and that was said
    crd_sample end;     // run: at the end of the step under way, before it is accepted
    crd_history past;   // run: samples at communication points
    crd_poly u;         // run: the input over the step, s = 0 at `origin`
    double time;        // run: of the newest sample
    double origin;      // run
    double begin;       // run: of the target's step
    double applied;     // run: when the input is what was written last
    int64_t stamp;      // run: tick of the newest sample, -1: none
    double size;        // run: largest magnitude so far
    double low, high;   // run: least and largest value
    double square;      // run: integral of the signal's square
    double way, moved;  // run: sums of its changes' magnitudes, and of their squares
    double rest;        // run: up to when it was 0
    double bias;        // run: mean of u - y over the step under way
    double rms, output_rms, max;     // run: of it; output NaN: not measured
    crd_defect_sum connection;       // run: of all steps
    int64_t uses[CRD_PREDICT_COUNT]; // run
    int64_t same, switches;          // run: steps in which it chose the same; its changes before
    double usual;                    // run: square of its change in a step, 16 times
    union {
        crd_select select;       // run: predict: auto
        crdi_level_signal watch; // run: the same in a network
    };
    int64_t jumps; // run: of a network

    const crdi_connection* of;
    const struct crdi_member *source, *target;
    const char* label;      // "second.v2 -> first.v2", where steps are controlled or iterated
    const double* rates[2]; // derivatives of the output, NULL: the source does not give them
    const double* middle;   // output at mid-step, NULL: nobody samples it
    double* slope[2];       // in the target's derivatives, NULL: it takes values only
    double horizon;         // s, that it is predicted for at least
    bool careful;           // a controlled step: fewer predictors to choose from
    double select_tol;      // what is good enough, of its scale; 0: the best is chosen
    double scale_given;     // 0: the largest magnitude so far
    double tolerance;       // of an iteration, 0: run's times scale
    crd_sample guess;       // run: the end, of an iteration
    double held;            // run: of a bond that probes, its prediction
    crd_history* before;    // run: `past` before the last step, where a shadow needs it
    double shape;           // run: of an iterated step, of u - y the Legendre coefficient above the
                            // degree that the unit takes
    crd_defect_sum* output; // run: of all steps, with `middle`
};

/// Connections with `predict: auto` in one loop: a strongly connected part of the graph. They are
/// predicted at one level. At level 0 they are held to the letter: outputs are not made fresh,
/// derivatives are not asked for, and known inputs are the newest values.
struct crdi_network {
    int* flows; // (flow_count) predictions
    int flow_count;
    struct crdi_shadow* shadow; // its units are known as linear ones, NULL: they are not
    int* links;                 // (flow_count) of the shadow's map, by flow
    crd_poly* delta;            // (links)
    double* scale;              // (links)
    crdi_level level;           // run
    int alarms;                 // run: how often the shadow was wrong
    int64_t same;               // run: steps without news; after many, only some are looked at
    bool looks;                 // run: this step is
    bool news;                  // run: this step is not, but a connection of it stands out
};

/// A plain prediction that is not looked at for some steps (steady.c).
typedef struct crdi_steady {
    const double* from;
    double* to;
    double gain, offset;
    const int64_t* event_count;
    int64_t events;
    double y[CRD_HISTORY]; // newest first
    const double* weights; // of them, in the next input
    double usual;          // square of a change that is no news
    int left;              // steps until it is looked at, and one; 0: it is, the rest means nothing
    int steps;             // that the prediction does not know of
    bool holds;            // the newest value, no mean
    bool may;              // be such a row at all
    double low, high, square, way, moved, integral, rms_max, max, max_time;
} crdi_steady;

/// The defect of a connection that holds: y is taken as a line between two samples.
struct crdi_observed {
    crdi_connection* of;
    const double* from;  // in the source's outputs
    const double* to;    // in the target's inputs: what was written
    const double* slope; // likewise of its derivatives, NULL: it is held
    double gain, offset;
    double last;          // run: sample before, in the input's unit
    double rise;          // run: of the input over the last step
    double bias;          // run: mean of u - y over the last step
    double integral, max; // run: of the square of the defect; of its magnitude
    double size, square;  // run: largest magnitude; integral of the signal's square
    double low, high;     // run: least and largest value
    double way, moved;    // run: sums of its changes' magnitudes, and of their squares
    double frozen;        // run: what it was before it exploded, 0: it did not
    double max_time;      // run
};

/// A value of a connection, of a power bond or of the clock that can be recorded.
typedef struct crdi_offer {
    const char* name; // "shaft.M.coupling.error"
    const void* from; // double or int64_t
    crd_type type;
    const char* unit;
    const char* description;
    const crd_label* labels; // (label_count)
    int label_count;
} crdi_offer;

/// A coupling element at an input: the one in use, or a shadow that is only scored.
typedef struct crdi_estimator {
    crd_element* description; // owns the label
    crd_coupling* element;
    crd_learn_client* learn; // NULL: it does not learn
    double latency;          // known, s; NaN: time stamps say it
    int commands;            // so many of the coupling's it is told, the first
    const char* label;
    double estimate, error; // run: of the newest evaluation; error NaN: the truth is not known
    double* made;           // run: (ring) estimate for macro step q at place q % ring
    int64_t* made_for;      // run: (ring) q, -1: none, or scored
    int64_t newest;         // run: macro step of the newest sample, -1
    crd_score score;        // run
} crdi_estimator;

/// A sample on its way.
typedef struct crdi_flight {
    double arrival, stamp, value;
    int64_t sequence, order; // number of the sample; order of sending
} crdi_flight;

/// A set value that is sent to the source's unit, or what a model of it says (setpoints.c).
typedef struct crdi_setpoint {
    const char* name; // "bench.pedal"
    crdi_end at;      // input of the source's unit, output of the model
    bool model;       //
    bool after;       // it is known once it has acted
    int couple;       // coupling of the connection that leads there, -1: none
    int lag;          // macro steps of the element from now on, until it acts; negative: ago
    const crdi_coupled* link; // the same coupling
    const crd_unit* unit;
    const void* acts; // the value at the end
    crd_kind kind;
    const crd_script* script; // the unit is played: what was sent and what acted; NULL: it runs
    int64_t at_time;          // run: in the script
} crdi_setpoint;

typedef struct crdi_setpoints {
    crdi_setpoint* list;
    const char** names; // (count)
    int count, room;
    int ahead;      // macro steps that the elements' time is ahead of the source's: the way there
    int step;       // macro steps that a step of the source takes
    int early;      // macro steps by which some act earlier, in the elements' time, than known
    bool before;    // some are known before they act: what acted may be another thing
    bool after;     // some are known afterwards only
    bool found;     // nobody has named them
    int64_t number; // run: of macro steps
    double* taken;  // run: (room + 1) x count by macro step
    double* now;    // run: (count)
    double* acted;  // run: (ring) x count by sample
} crdi_setpoints;

/// Source -> channel -> elements -> input. All of it on the cycle thread.
struct crdi_coupled {
    const crdi_connection* of;
    const struct crdi_member *source, *target;
    const double* from; // in the source's outputs
    double* to;         // in the target's inputs
    double* slope;      // in the target's derivatives, NULL: it takes values only
    double gain, offset;
    double interval;                 // s between two samples, the macro step of the elements
    int64_t every;                   // the same in ticks
    bool truth;                      // the source's output is the signal itself, undelayed
    bool dated;                      // the source says when its output was made
    const crd_channel_spec* channel; // NULL: none
    uint64_t seed;
    double burst_chance;        // of a sample that is not in a burst to begin one
    crdi_estimator* estimators; // the one in use, then the shadows
    int estimator_count, ring;
    crdi_setpoints* setpoints; // commands, NULL: none

    crdi_flight* flights; // run: a heap, the next to arrive on top
    int flight_count, flight_capacity;
    const crd_script* script; // instead of the channel, NULL: none
    const uint8_t* copies;    // of the script: how often a sample arrives, by its number
    int64_t copy_count;
    int64_t script_next; // run
    double* sent_values; // run: (ring) newest samples at place sequence % ring, for the script
    int64_t sent, lost, repeated;  // run
    int64_t newest;                // run: number of the newest sample of a source that dates
    int burst_left;                // run: samples that will still be lost
    double start_value;            // run: until the first sample is there
    bool arrived;                  // run
    double rate;                   // run: slope of the newest estimate
    int64_t k, jump, active;       // run: of the newest evaluation
    int64_t k_sum, k_count, k_max; // run
    crdi_offer* signals;           // for the record
    int signal_count;
    crd_tap_report* tap_reports;
    char hint[CRDI_TEXT];

    crdi_flight* past; // run: (past_room) newest arrivals, NULL: nobody watches
    int past_room, past_count, past_at;
    double drop, delay;  // run: faults: part of the samples; s
    double delay_max;    // s that there is room for
    int64_t drop_number; // run: of the fault
    double correction;   // run: of a power bond, added to the estimate
    double steady;       // s, age at which samples are used, if they are there; 0: when they come
    crdi_flight last;    // run: the newest that was used
    struct crdi_learned* learned;       // NULL: nothing was learned about it and nobody learns
    double lead;                        // run: what was learned, added as well
    double fade, fade_begin, fade_span; // run: what is left of an element that was replaced; s
    bool swapped;                       // run: the element was replaced ...
    double swapped_at;                  // run: ... when, s
    char label[96];                     // run: of the element in use, with that time
    crdi_observed seen;                 // run: what of->observed points to
};

/// One element that passes as it is, or as gain * x + offset.
typedef struct crdi_copy {
    const double* from;
    double* to;
} crdi_copy;

typedef struct crdi_scaled {
    const double* from;
    double* to;
    double gain, offset;
} crdi_scaled;

/// A number of either kind on its way through a map.
typedef struct crdi_scalar {
    bool is_real;
    int64_t integer;
    double real;
} crdi_scalar;

typedef struct crdi_pair {
    int64_t from;
    crdi_scalar to;
    const char* text; // of `from`, for messages
} crdi_pair;

/// One change of a value: by a table, or gain * x + offset.
typedef struct crdi_stage {
    const crdi_pair* pairs; // by `from`, ascending; NULL: gain and offset
    int count;
    double gain, offset;
} crdi_stage;

/// What a connection with maps does to a value, stage by stage.
typedef struct crdi_mapping {
    const crdi_stage* stages;
    int count;
} crdi_mapping;

/// One element that changes its kind, or is not a real number.
typedef struct crdi_conversion {
    const void* from;
    void* to;
    uint8_t from_type, to_type; // crd_type
    double gain, offset;
    bool transform;
    const struct crdi_mapping* mapping; // NULL: gain and offset
} crdi_conversion;

/// What connections are in the run, by kind. `rows` of a feed are places in these lists.
typedef struct crdi_connections {
    crdi_copy* copies;
    crdi_scaled* scaled;
    crdi_prediction* predictions;
    int prediction_count;
    bool at_once;        // all are plain, and nothing of them is looked at before a step counts
    crdi_steady* steady; // (prediction_count), NULL: somebody looks at all of them
    crdi_network* networks;
    int network_count;
    crdi_conversion* conversions;
    crdi_coupled** couplings; // in the order of the feeds
    crdi_coupled* coupled;    // in the order of writing
    int coupled_count;
    struct crdi_paired* pairs;
    int pair_count;
    crdi_observed* observed;
    int observed_count;
    crdi_kind used[CRDI_KINDS]; // (used_count) kinds that there are, in the order of begin
    int used_count;
    bool accepts;                   // some of them look at the end of a step
    const crdi_prediction* worst;   // run: with the largest defect of the step under way
    bool has_sources;               // units whose events are jumps of a signal
    bool jumped;                    // run: a signal or recording had an event in the last step
    crd_context* swap_ctx;          // of elements that came while running
    crd_coupling_report* reports;   // (coupled_count)
    struct crdi_learning* learning; // of cycles, NULL: none
} crdi_connections;

extern const crdi_connection_kind crdi_kind_copy, crdi_kind_scale, crdi_kind_predict,
    crdi_kind_convert, crdi_kind_coupled, crdi_kind_paired;

// connection.c: all kinds
/// Some connection is of this kind.
void crdi_connections_use(crdi_connections* c, crdi_kind kind);
struct crdi_feed;
/// Values move into the inputs of a feed, whose step begins at t.
crd_status crdi_connections_begin(crd_master* m, const struct crdi_feed* f, double t);
void crdi_connections_sample(crd_master* m);
/// Defects of the step that ends at t; the largest of them, against the signals' scales unless the
/// control is absolute.
double crdi_connections_judge(crd_master* m, double t);
/// Tick n, which ends at t, counts.
void crdi_connections_accept(crd_master* m, int64_t n, double t);
void crdi_connections_start(crd_master* m); ///< before the first step
/// An explosion must not be its own scale: from now on it is this one, unless one was given.
void crdi_connections_freeze_scale(crd_master* m, const crdi_connection* k, double scale);
void crdi_connections_free(crd_master* m);
/// Where addresses stand that change in a run.
void crdi_connections_moving(crd_master* m, crdi_note_moving* note, void* user);
/// Elements that come while the run goes live in this context, which is freed with them.
void crdi_connections_own(crd_master* m, crd_context* ctx);
/// What a power bond adds to the value that is told, in the input's unit.
double crdi_connection_correction(const crdi_connection* k);
double* crdi_connection_corrects(crdi_connection* k); ///< the same, to be set; NULL: it has none
/// Where the value stands in the source's outputs, and in the target's inputs.
const void* crdi_connection_from(const crdi_plan* plan, const crdi_connection* k);
void* crdi_connection_to(const crdi_plan* plan, const crdi_connection* k);

// map.c: connections with maps
typedef struct crdi_mapping_ends {
    const crd_connection_spec* spec;
    crd_unit *source, *target;
    int32_t from, to; // variables
    const char* at;   // "file:line: "
} crdi_mapping_ends;
bool crdi_mapping_needed(const crd_connection_spec* c);
crd_status crdi_mapping_build(crdi_plan* plan, const crdi_mapping_ends* ends,
                              const crdi_mapping** out);
/// The value behind the last stage. false: no stage changed it. `fits`: it came from the last
/// stage's table and so is one that the target has.
bool crdi_mapping_apply(const crdi_mapping* c, bool is_unsigned, crdi_scalar* x, bool* fits);
// convert.c
/// A conversion along a connection, from the source's outputs to `to`.
crdi_conversion crdi_conversion_of(const crdi_plan* plan, const crdi_connection* k, void* to);
void crdi_convert(const crdi_conversion* c);
crd_status crdi_convert_bytes(crd_context* ctx, const crdi_conversion* c);
// copy.c
void crdi_observed_start(crd_master* m);
void crdi_observed_begin(crdi_observed* w);
/// A step of the source of length h has ended at t.
void crdi_observe(crdi_observed* w, double t, double h);
/// The same, if the defect was a line from a to b.
void crdi_observe_line(crdi_observed* w, double t, double h, double a, double b);
double crdi_observed_scale(const crdi_observed* w);
// predict.c
void crdi_connections_mark_predicted(crdi_plan* plan); ///< their members, too
bool crdi_connection_predicts(const crdi_plan* plan, const crdi_connection* k); ///< its kind
int crdi_prediction_order(const crdi_plan* plan, const crdi_connection* k); ///< derivatives it uses
/// Into or out of a unit with feedthrough that is not refreshed: `auto` becomes careful.
/// Derivatives that its target takes and its source gives, and what `auto` chooses from then.
void crdi_prediction_use_orders(const crdi_plan* plan, crdi_prediction* f);
void crdi_prediction_be_careful(const crdi_plan* plan, crdi_prediction* f);
/// What `auto` chooses from.
crd_select_options crdi_prediction_select_options(const crdi_prediction* f);
crd_status crdi_prediction_bind(crdi_plan* plan, crdi_connection* k, crdi_prediction* f);
void crdi_prediction_start(const crd_master* m, crdi_prediction* f, const crd_sample* first);
/// What the source gives now, in the input's unit.
crd_sample crdi_prediction_sample(crdi_prediction* f);
/// The end of the step under way as it is now; and as the newest sample that counts.
void crdi_prediction_resample(crdi_prediction* f);
void crdi_prediction_resume(crdi_prediction* f);
/// The input at s behind f->origin, for a part of a step of length h.
void crdi_prediction_apply(crdi_prediction* f, double s, double h);
/// What the target was told over its step of length h, s = 0 at its beginning.
crd_poly crdi_prediction_given(const crdi_prediction* f, double h);
double crdi_prediction_scale(const crdi_prediction* f);
/// Which predictions lead into a member and out of it, for steps in parts and fresh inputs.
void crdi_predictions_start(crd_master* m); ///< before the first step
crd_status crdi_predictions_index(crdi_plan* plan, const crdi_connections* connections);
/// Weights of the last CRD_HISTORY values in the mean that a plain prediction tells.
const double* crdi_prediction_weights(crd_predictor p);
/// Mean of what a plain prediction u missed over the step that ended in y[0], whose last values are
/// y: that of the cubic through four at equal steps is (9, 19, -5, 1) / 24 of them.
static inline double crdi_plain_bias(double u, const double* y)
{
    return u - (9 * y[0] + 19 * y[1] - 5 * y[2] + y[3]) * (1.0 / 24);
}
/// The RMS and the largest magnitude of it, if the newest value was held.
void crdi_plain_held(const double* y, double* rms, double* max);
// steady.c: predictions that nobody looks at for a while
crd_status crdi_steady_start(crd_master* m);
void crdi_steady_enter(crdi_steady* r, const crdi_prediction* f, int steps); ///< so many at most
/// The prediction knows of all steps, up to tick n at t.
void crdi_steady_leave(crdi_steady* r, crdi_prediction* f, double t, int64_t n);
/// A step that ended at t and took h, from row i on up to the first that has to be looked at: to
/// that nothing was done. The number of predictions: there is none.
int crdi_steady_pass(const crdi_connections* c, int i, double t, double h);
void crdi_steady_leave_all(crd_master* m); ///< for who reads predictions
// network.c: one level for all predictions of a loop
void crdi_network_use_orders(crdi_prediction* f); ///< of a network: does it go by means?
crd_status crdi_networks_plan(crdi_plan* plan, crdi_connections* c);
/// The step counts: samples of a connection of a network. true: the past does not continue.
bool crdi_network_sample(crdi_prediction* f, double h, bool event);
void crdi_networks_accept(crd_master* m);
crd_status crdi_networks_start(crd_master* m); ///< units are linearised, if they can be
crd_predictor crdi_network_predictor(const crdi_prediction* f, int level);
static inline bool crdi_network_holds(const crdi_network* n)
{
    return n && n->level.now == 0;
}
// defects.c: defects as signals of the record
/// Somebody asks for the defect of this input.
bool crdi_defect_is_recorded(const crdi_plan* plan, const crdi_connection* k);
/// As a signal, NULL if nobody asks for it.
crd_status crdi_defect_offer(const crdi_plan* plan, const crdi_prediction* f,
                             const crdi_offer** out);
// setpoints.c: commands that elements are told
crd_status crdi_setpoints_plan(crdi_plan* plan, const crdi_connections* all, crdi_coupled* c);
crd_status crdi_setpoints_make_room(crdi_plan* plan, crdi_coupled* c);
void crdi_setpoints_bind(const crdi_plan* plan, crdi_connections* all);
/// The connection leads to a unit whose output comes late: it may be a command of that coupling.
bool crdi_setpoint_is_one(const crdi_connections* all, const crdi_connection* k);
void crdi_setpoint_bind(const crdi_plan* plan, crdi_setpoint* p);
double crdi_setpoint_acting(const crdi_setpoint* p); ///< in the unit, in the step that has ended
void crdi_setpoints_take(crdi_coupled* c, double t); ///< once in a macro step, before its sample
/// What was acting when this sample was taken.
void crdi_setpoints_echo(const crdi_coupled* c, int64_t sequence, double stamp);
static inline double crdi_setpoints_ahead(const crdi_coupled* c) // s
{
    return c->setpoints ? c->setpoints->ahead * c->interval : 0;
}
// learned.c: corrections that were learned for this cycle, or are being learned
crd_status crdi_learning_plan(crd_master* m); ///< behind the bonds
void crdi_learning_free(crd_master* m);
void crdi_learning_watch(crd_master* m, int64_t n); ///< is this the cycle that was learned?
/// A sample has arrived; tick n ends at t, and the estimate for what begins there is made.
void crdi_learned_arrive(const crd_master* m, crdi_coupled* c, const crdi_flight* f);
void crdi_learned_step(crd_master* m, crdi_coupled* c, int64_t n, double t);
void crdi_learning_warn(crd_master* m); ///< at the end: what was not used, and why
// coupled_plan.c, coupled.c
crd_status crdi_coupled_plan(crdi_plan* plan, crdi_connections* connections);
/// Of a coupling: 0 the element, others its shadows. The caller destroys it.
crd_status crdi_element_of(const crdi_plan* plan, const crd_coupling_spec* s, int index,
                           crd_element** out);
void crdi_coupled_bind(const crdi_plan* plan, crdi_connection* k, crdi_coupled* c);
/// The seed of c->channel, on the way of c->of.
crd_status crdi_channel_plan(crdi_plan* plan, crdi_coupled* c);
/// Takes off, unless it is lost; without a channel it arrives at once.
void crdi_channel_send(crdi_coupled* c, crdi_flight f);
/// The next one that has arrived by then. false: none.
bool crdi_channel_next(crdi_coupled* c, double due, crdi_flight* out);
/// SplitMix64: the bits of a number well mixed.
uint64_t crdi_scramble(uint64_t x);
void crdi_coupled_clear(crdi_coupled* c);
/// Another element (its description, and its latency) takes the place of the one in use, whose
/// parts are handed back. It begins with the newest samples, and what it says differently fades, so
/// that the input has no step.
crdi_estimator crdi_coupled_swap(crd_master* m, crdi_coupled* c, const crdi_estimator* by);
/// Newest samples are kept from now on, for an element that may come.
crd_status crdi_coupled_remember(crd_master* m, crdi_coupled* c);
void crdi_coupled_start(crd_master* m); ///< the samples of the start
void crdi_coupled_report(crd_master* m);
/// Says what was not as it should be, once, at the end.
void crdi_coupled_warn(crd_master* m);
