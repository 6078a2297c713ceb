// The master's inside. What a run is (units, links, schedule) is worked out by create and const
// afterwards; what changes is marked "run:".
#pragma once
#include "cardan/learn.h"
#include "cardan/master.h"
#include "cardan/results.h"
#include "shared/base.h"
#include "shared/master_guard.h"
#include "shared/pace.h"
#include "shared/unit.h"

#include <pthread.h>
#include <setjmp.h>

typedef struct crdi_pool crdi_pool;
typedef struct crdi_exchange_writer crdi_exchange_writer;

enum { CRDI_EARLY = 24 };  // warnings that are kept until there is a record
enum { CRDI_HEARD = 320 }; // bytes of a text for the record, which cuts it at a whole character

/// A real, continuous connection as a polynomial on the step (cardan/quality.h). Everything is in
/// the input's unit. Plain hold without step control or iteration does not need one: crdi_watch.
typedef struct crdi_flow {
    const crd_connection_spec* spec;
    const char *from_name, *to_name; // "second.v2", "first.v2"
    const char* label;               // "second.v2 -> first.v2"
    const double* from;              // in the source's outputs
    const double* rates[2];          // derivatives there, NULL: the source does not give them
    const double* middle;            // output at mid-step, NULL: nobody samples it
    double* to;                      // in the target's inputs
    double* slope[2];                // in the target's derivatives, NULL: it takes values only
    double gain, offset;
    int source, target; // members
    int32_t from_variable, from_element, to_variable, to_element;
    crd_prediction predict;
    bool textbook; // hold, linear or quadratic, at their word
    bool probed;   // a bond predicts it: probing.c
    crd_select_options select_options;
    double scale_given; // 0: the largest magnitude so far
    double tolerance;   // of an iteration, 0: run's times scale

    crd_history past;   // run: samples at communication points
    double time;        // run: of the newest of them
    int64_t stamp;      // run: its tick, -1: none
    int64_t events;     // run: of the source's unit, those that are known
    crd_sample end;     // run: at the end of the step under way, before it is accepted
    crd_poly u;         // run: what the input is told, s = 0 at `origin`
    double origin;      // run
    double begin;       // run: of the target's step
    double told;        // run: when the input is what it was told last
    bool known;         // run: the source was ahead, nothing was predicted
    bool guessed;       // its end is an unknown of the iteration
    crd_sample guess;   // run: that end
    double held;        // run: of a bond that probes, its prediction
    double correction;  // run: of a power bond, added to the value
    crd_select select;  // run: predict: auto
    crd_predictor used; // run: of the newest prediction
    int64_t uses[CRD_PREDICT_COUNT];
    double size;                       // run: largest magnitude so far
    double rms, output_rms, max;       // run: of the step under way; output NaN: not measured
    double bias;                       // run: mean of u - y over it
    crd_defect_sum connection, output; // run: of all steps
} crdi_flow;

/// A connection that holds, looked at in passing: y is taken as a line between two samples.
typedef struct crdi_watch {
    const double* from; // in the source's outputs
    const double* to;   // in the target's inputs: what was told
    double gain, offset;
    double last;          // run: sample before, in the input's unit
    double bias;          // run: mean of u - y over the last step
    double integral, max; // run: of the square of the defect; of its magnitude
    double size;          // run: largest magnitude
    double max_time;      // run
} crdi_watch;

/// A value of a coupling or of a power bond that can be recorded.
typedef struct crdi_coupled {
    const char* name; // "shaft.M.coupling.error"
    const void* from; // double or int64_t
    crd_type type;
    const char* unit;
    const char* description;
    const crd_label* labels; // (label_count)
    int label_count;
} crdi_coupled;

/// One component of a power bond: f and v of one direction.
typedef struct crdi_axis {
    const crd_connection_spec *action, *flow; // connections of f to v's unit, and of v to f's unit
    int action_element, flow_element;         // of their inputs
    const double *f, *v;                      // in the outputs of their units
    double gain, offset;                      // to SI, f as it arrives: gain * *f + offset
    double v_gain, v_offset;                  // to SI, v as its unit gives it
    double back_gain;                         // v as it arrives / v as its unit gives it
    double in_unit, back_in_unit;             // 1 in SI, in the unit of f's and of v's input
    crdi_flow* corrected;                     // gets the correction, NULL: none does
} crdi_axis;

/// What a bond probes, and what it finds out.
typedef struct crdi_probing {
    crd_probe probe;
    int member, other;                                      // with the feedthrough; its partner
    const crd_connection_spec* specs[CRD_PROBE_INPUTS + 1]; // inputs as in `probe`; the action
    int elements[CRD_PROBE_INPUTS + 1];                     // of their inputs
    crdi_flow *inputs[CRD_PROBE_INPUTS], *action;           // the same as flows
    double* f;             // the action, in the outputs of its unit
    int64_t events;        // run: of both units, those that are known
    double told, lead;     // run: what the action is held at; and beyond f, in its input's unit
    crd_probe_state state; // run
} crdi_probing;

/// A power bond in the run.
typedef struct crdi_power {
    const crd_bond_spec* spec; // of the first axis
    const char *name, *action_name, *flow_name;
    int action_member, flow_member; // that give f and v
    bool feeds;                     // one of the outputs has feedthrough from the other unit ...
    bool swapped;                   // ... and that is v
    bool corrects_flow; // v is corrected, on its way to the unit that gives f, and is the action
    crdi_axis* axes;
    crd_bond_axis* parts; // run: like axes
    int axis_count;
    crd_bond bond;
    crd_bond_state state;  // run
    crdi_probing* probing; // NULL: nothing is probed
    int64_t every;         // ticks between two balances
    double time;           // run: of the last one
    crdi_coupled* signals; // for the record
    int signal_count;
} crdi_power;

/// A coupling element at an input: the one in use, or a shadow that is only scored.
typedef struct crdi_tap {
    crd_element* description; // owns the label
    crd_coupling* element;
    crd_learn_client* learn; // NULL: it does not learn
    double latency;          // known, s; NaN: time stamps say it
    const char* label;
    double estimate, error; // run: of the newest evaluation; error NaN: the truth is not known
    double* made;           // run: (ring) estimate for macro step q at place q % ring
    int64_t* made_for;      // run: (ring) q, -1: none, or scored
    int64_t newest;         // run: macro step of the newest sample, -1
    crd_score score;        // run
} crdi_tap;

/// A sample on its way.
typedef struct crdi_flight {
    double arrival, stamp, value;
    int64_t sequence, order; // number of the sample; order of sending
} crdi_flight;

/// A connection with a coupling: source -> channel -> elements -> input. All of it on the cycle
/// thread.
typedef struct crdi_couple {
    const crd_connection_spec* spec;
    const char *from_name, *to_name;
    const double* from; // in the source's outputs
    double* to;         // in the target's inputs
    double* slope;      // in the target's derivatives, NULL: it takes values only
    double gain, offset;
    int source, target;              // members
    double interval;                 // s between two samples, the macro step of the elements
    int64_t every;                   // the same in ticks
    bool truth;                      // the source's output is the signal itself, undelayed
    bool dated;                      // the source says when its output was made
    const crd_channel_spec* channel; // NULL: none
    uint64_t seed;
    double burst_chance; // of a sample that is not in a burst to begin one
    crdi_tap* taps;      // the one in use, then the shadows
    int tap_count, ring;

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
    int64_t k, jump, active;       // run: of the newest evaluation
    int64_t k_sum, k_count, k_max; // run
    crdi_coupled* signals;         // for the record
    int signal_count;
    crd_tap_report* tap_reports;
    char hint[CRDI_HEARD];

    crdi_flight* past; // run: (past_room) newest arrivals, NULL: nobody watches
    int past_room, past_count, past_at;
    double drop, delay;                 // run: faults: part of the samples; s
    double delay_max;                   // s that there is room for
    int64_t drop_number;                // run: of the fault
    double fade, fade_begin, fade_span; // run: what is left of an element that was replaced; s
    bool exchanged;                     // run: the element was replaced ...
    double exchanged_at;                // run: ... when, s
    char label[96];                     // run: of the element in use, with that time
} crdi_couple;

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

/// A number of either kind on its way through a chain.
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
typedef struct crdi_chain {
    const crdi_stage* stages;
    int count;
} crdi_chain;

/// One element that changes its kind, or is not a real number.
typedef struct crdi_conversion {
    const void* from;
    void* to;
    uint8_t from_type, to_type; // crd_type
    double gain, offset;
    bool transform;
    const crdi_chain* chain; // NULL: gain and offset
} crdi_conversion;

/// All links of one kind of moment into one member, as ranges of the master's lists.
typedef struct crdi_feed {
    int member;
    int copy_first, copy_count;
    int scaled_first, scaled_count;
    int flow_first, flow_count;
    int conversion_first, conversion_count;
} crdi_feed;

/// One stretch of a tick: first values move, then the units that are due advance, all at once.
/// `early` feeds move when the target's step begins (Jacobi), `late` ones just before it is
/// computed (Gauss-Seidel); the two differ only for units with a longer step than the tick.
typedef struct crdi_phase {
    int early_first, early_count; // feeds
    int late_first, late_count;   // feeds
    crdi_feed early, late;        // all of them as one, for when every unit is due
    int batch_first, batch_count; // members, in m->batch
    int pinned_count;             // the first of them stay on the cycle thread
    int async_count;              // behind them: those with a budget, the shortest first
} crdi_phase;

/// A unit in the run.
typedef struct crdi_member {
    crd_unit* unit;
    crd_binding *in, *out, *extra; // connected inputs, connected outputs, others that are recorded
    crd_values inputs, outputs, extras;
    double* slopes[2]; // derivatives of the real inputs, NULL if none is used
    int slope_order;
    double* rates[2]; // run: derivatives of the real outputs, NULL: not needed or not given
    double* middles;  // run: real outputs at mid-step, NULL: not needed
    int* flows;       // into it: (flow_count), indices
    int flow_count;
    int* fed; // flows out of it: (fed_count), indices
    int fed_count;
    bool through;   // some output follows such an input without delay
    bool shown;     // its outputs are those of the predicted inputs themselves
    int parts;      // run: steps of the unit in one step of the run
    void* state;    // run: saved at the beginning of the step, NULL: never
    int64_t events; // run: those of the unit that are known
    int64_t ticks;  // length of its step in ticks
    double step;    // s
    bool pinned;
    int raster; // of its signals

    bool feeds_flow;   // its outputs need a stamp
    int64_t stamp;     // run: tick that its outputs belong to, if feeds_flow
    crd_status status; // run: of its last step, looked at after the batch
    int crash_signal;  // run: 0 unless status is CRD_E_CRASH
    int64_t measured;
    int64_t ns_set, ns_step, ns_get, ns_worst; // run: of the measured steps
    int64_t ns_last;                           // run: of the newest of them, all three together
    int64_t waited;                            // run: of unit->waited, what is accounted for
    bool async;                                // steps on a thread of its own (budget): async.c
    int64_t jumps;                             // run: of such a unit, its events and gaps
    bool wants_stop;                           // run: of such a unit
    bool left;                 // run: its thread did not come back: not to be touched
    struct crdi_fault* faults; // run: at its inputs, NULL: none; live_fault.c
    bool alive;                // run: instantiated, terminate is due
    bool crashed;              // run: not to be called any more
    int64_t remarks;           // run: of the unit, those that are events
} crdi_member;

/// One element of one connection after resolving, before it is put into a list.
typedef struct crdi_link {
    int from_member, to_member;
    int from_variable, to_variable; // indices in the unit
    int from_element, to_element;
    int from_position, to_position; // of the variables in the bindings
    int from_slot, to_slot;         // element of the kind's vector in the binding
    double gain, offset;
    bool transform;
    const crdi_chain* chain; // instead of gain and offset, NULL: none
    bool real;               // continuous real numbers at both ends, without a coupling
    bool corrected;          // by a power bond
    bool probed;             // which says what it is, not only how it differs
    bool slope;              // of a coupling: hand its slope to the unit
    bool routed;             // goes from unit to unit, the master sees it and cannot change it
    int rate_order;          // derivatives of the source that are worth something
    bool early;              // by the schedule
    int phase;
    int couple; // index of its coupling, -1: none
    const crd_connection_spec* spec;
} crdi_link;

/// One value that can be recorded.
typedef struct crdi_signal {
    const char* name;
    int member;
    int32_t variable, element;
    const crdi_coupled* coupled; // instead of a variable, NULL: none
} crdi_signal;

/// Signals that are recorded at the same times.
typedef struct crdi_raster {
    const char* name; // "10 ms"
    int64_t ticks;    // between two rows
    bool at_end;      // a row at the end of the run, too, wherever it lies
    int probe_first, probe_count;
    int member_first, member_count; // that have something to read, in m->readers
    int64_t read;                   // run: tick at which they were read last, -1
} crdi_raster;

/// One recorded value: where it stands and which word of the row it becomes.
typedef struct crdi_probe {
    const void* from; // double, int64_t or crd_bytes
    int signal;
    int word;
    crd_kind kind;
    bool watched; // an output that only the record sees: NaN ends the run here, too
} crdi_probe;

struct crd_master {
    crd_context* ctx;
    const crd_system* sys;
    crd_master_options opt;
    crd_arena arena;

    crd_unit_store* store;
    crdi_member* members;
    int member_count;
    crdi_link* links;
    int link_count;
    size_t link_capacity;
    crdi_copy* copies;
    crdi_scaled* scaled;
    crdi_flow* flows;
    int flow_count;
    crdi_watch* watches;
    const crdi_link** watched; // like watches
    int watch_count;
    crdi_power* powers;
    int power_count;
    bool controlled, iterated, rolls_back; // what the run does
    bool samples_middle;
    struct crdi_iteration* iteration; // iterate.c, NULL: none
    struct crdi_estimate* estimate;   // estimate.c, NULL: none
    crdi_conversion* conversions;
    crdi_couple* couples;
    int couple_count;
    crdi_feed* feeds;
    crdi_phase* phases;
    int phase_count;
    int* batch;
    crd_lane* lanes;       // like batch; what a step needs, close together
    crd_advance** advance; // like batch, NULL: the long way
    int* lane_rows;        // like batch: how many lanes from here have the same function
    bool multirate;
    bool has_remote; // some unit computes elsewhere: ops->begin
    double* outputs; // real outputs of all members in a row
    size_t output_count;

    crdi_signal* signals;
    int signal_count;
    crdi_raster* rasters; // one at least, without signals if there are none
    int raster_count;
    crdi_probe* probes; // by raster
    int* readers;       // members with extras, by raster
    crd_recorder* recorder;

    double start, stop, tolerance; // tolerance NaN: the units' own
    double tick, last_tick;        // s; the last one may be shorter
    int64_t tick_count;
    int64_t row_every; // ticks between rows

    int64_t n;                     // run: ticks done; foreign threads read it
    double time;                   // run: of a controlled run; foreign threads read it
    double h;                      // run: length of the tick under way
    crd_step_options step_options; // of a controlled run
    crd_step step;                 // run
    double quantum;                // s; controlled steps are multiples of it, 0: any
    double* kept;                  // (output_count) run: outputs before the step
    crd_control_report control;    // run
    double worst;                  // run: defect of the step under way
    bool jumped;                   // run: a signal or recording had an event in the last step
    int* refreshed;                // members whose outputs are evaluated again, in order
    int refresh_count;
    double next_row;                     // run: of a controlled run
    crd_end end;                         // run
    int end_member;                      // run: -1
    bool wish;                           // run: some unit wants the end; atomic
    bool initialized, started, finished; // run; started: the first step may come
    int halted;                          // run: members that were told to come to rest
    crd_stage stage;                     // run
    bool asked;                          // run: crd_master_initialize was called
    int64_t longest_ticks;               // of a member's step
    int64_t tune_at;                     // run: tick at which crdi_master_tune looks again
    int64_t measure_every;               // run: ticks between two measurements, 0: not known yet
    bool measure;                        // run: in this tick
    int64_t ns_clock;                  // what reading the clock costs; each measured time has it in
    int threads;                       // run: in use
    int threads_possible;              // with the pool
    int trial;                         // run: 1 without threads, 2 with them, 0 decided
    int64_t trial_begin, trial_serial; // run: ns
    crdi_pool* pool;
    bool paced;                            // the run keeps the clock
    bool adopted;                          // run: the grid is that of a unit in real time
    bool entered;                          // run: the cycle thread is in real time
    crdi_pacer pacer;                      // run
    crd_clock clock;                       // of the pacer and of pauses
    struct crdi_live* live;                // live.c: somebody watches, NULL: nobody
    crd_context* live_ctx;                 // of elements that came while running
    int disturbed;                         // run: faults at inputs
    bool stopped_by_page;                  // run: a command ended it
    bool emergency;                        // run: the watcher wants everything to stop now; atomic
    struct crdi_async* async;              // async.c: units with a budget, NULL: none
    struct crdi_exchange_writer* exchange; // exchange.c: samples are recorded, NULL: not
    struct crdi_session_record* session;   // session.c: states of benches are recorded, NULL: not
    double lateness, busy;                 // run: of the newest cycle, s; recorded
    int64_t overruns_seen, lateness_seen;  // run: for crd_master_glance
    const char** unit_names;               // (member_count)
    const crdi_coupled* pace_signals;
    int pace_signal_count;
    int64_t ns_wall, ns_initialization;
    volatile int running; // run: member whose code runs on this thread now, for the crash guard

    crd_loop_report* loops;
    int loop_count;
    crd_unit_report* unit_reports;
    crd_link_stats* link_stats;
    crd_standby_stats* standby_stats;
    crd_coupling_report* coupling_reports;
    crd_flow_report* flow_reports;
    crd_bond_report* bond_reports;
    struct crdi_judge* judge; // judge.c
    crd_master_report report;

    crd_context* log;    // over ctx: lines pass crdi_master_hear; units' contexts come from it
    pthread_mutex_t ear; // of the next four
    bool hears;          // run: warnings become events of the record
    bool deaf;           // run: atomic: only a thread that did not come back may still log
    char early[CRDI_EARLY][CRDI_HEARD]; // warnings before there was a record
    int early_count;
    int64_t warnings;        // run
    char message[1024];      // run: why it failed, ""
    int64_t wall_start;      // run: ns since 1970, 0: not initialised yet
    crd_text verdict;        // room for crd_master_describe_verdict after a crash
    crd_context* record_ctx; // the recorder's
    char* spare;             // memory for after a crash
    size_t spare_size, spare_used;
    bool heap_lost; // run: take it from there
    crd_map hashes; // path -> hash_texts
    const char** hash_texts;
    size_t hash_capacity;
};

// connect.c: connections of the description to links, with all checks
crd_status crdi_master_connect(crd_master* m);
/// "file:line: " for messages, "" if it came from nowhere.
const char* crdi_where(crd_place p, char* buffer, size_t size);
/// "Float64"
const char* crdi_type_name(int type);
// couple_plan.c: connections with a coupling
crd_status crdi_master_plan_couples(crd_master* m); // once the grid is there
void crdi_master_free_couples(crd_master* m);
/// What is known of a link once the values have their places.
void crdi_couple_bind(crd_master* m, const crdi_link* k, const double* from, double* to,
                      double* slope);
// couple.c
/// Samples, arrivals and estimates for the time m->n, before its row is recorded.
void crdi_master_couple(crd_master* m);
void crdi_master_report_couples(crd_master* m);
/// Says what was not as it should be, once, at the end.
void crdi_master_warn_couples(crd_master* m);
// chain.c: connections with maps
typedef struct crdi_chain_ends {
    const crd_connection_spec* spec;
    crd_unit *source, *target;
    int32_t from, to; // variables
    const char* at;   // "file:line: "
} crdi_chain_ends;
bool crdi_chain_needed(const crd_connection_spec* c);
crd_status crdi_chain_build(crd_master* m, const crdi_chain_ends* ends, const crdi_chain** out);
/// The value behind the last stage. false: no stage changed it. `fits`: it came from the last
/// stage's table and so is one that the target has.
bool crdi_chain_pass(const crdi_chain* c, bool is_unsigned, crdi_scalar* x, bool* fits);
// bind.c: bindings, room for values, slots of the links
crd_status crdi_master_bind(crd_master* m);
/// Room for the values of a binding, from the arena.
crd_status crdi_values_create(crd_master* m, const crd_binding* b, crd_values* out);
void crdi_values_clear(crd_context* ctx, const crd_binding* b, crd_values* v);
/// What a unit says against a binding, if it was the unit and not the master; hands `st` back.
crd_status crdi_member_refused(crd_master* m, const crdi_member* p, crd_status st);
// schedule.c: links to phases and lists; the grid of times
crd_status crdi_master_plan_grid(crd_master* m);
/// The largest tick that a and b are both multiples of, 0 if there is none worth the name.
double crdi_common_tick(double a, double b);
crd_status crdi_master_plan_phases(crd_master* m);
crd_status crdi_master_plan_lists(crd_master* m);
crd_status crdi_master_plan_lanes(crd_master* m); // once the units are initialised
// record.c
crd_status crdi_master_select_signals(crd_master* m);
crd_status crdi_master_open_results(crd_master* m);
/// The description as it was read, as an attachment without name if it is no text. `bytes` belongs
/// to the caller.
crd_status crdi_master_read_description(crd_master* m, crd_attachment* out, char** bytes);
/// Rows of all rasters that are due at m->n.
crd_status crdi_master_record(crd_master* m);
/// Values that only the record reads, whether or not a row is due.
void crdi_master_read_extras(crd_master* m);
/// Says how the run ended, attaches the verdict and closes the file.
crd_status crdi_master_close_results(crd_master* m);
void crdi_master_end_text(const crd_master* m, char text[CRDI_HEARD]); ///< "stop time"
// events.c: what happens besides the values
crd_log_sink crdi_master_hear;                     ///< of m->log; any thread
double crdi_master_time_seen(const crd_master* m); ///< simulated time, asked by any thread
void crdi_master_event(crd_master* m, crd_event_kind kind, const char* text);
/// What units have to say for the record, after a tick.
void crdi_master_heed(crd_master* m);
void crdi_master_start_hearing(crd_master* m); ///< the record is there
void crdi_master_stop_hearing(crd_master* m);
/// Keeps the sentence of the run's failure and notes it; hands `st` back.
crd_status crdi_master_note_failure(crd_master* m, crd_status st);
// describe.c
/// Room for the verdict, so that writing it takes no memory.
crd_status crdi_master_reserve_verdict(crd_master* m);
// spare.c
crd_status crdi_master_open_spare(crd_master* m);
void crdi_master_close_spare(crd_master* m);
// hash.c
/// SHA-256 of a file as 64 hexadecimal digits, "" if it is no regular file that can be read. The
/// text is the master's and worked out once.
crd_status crdi_master_hash(crd_master* m, const char* path, const char** out);
// loops.c: values consistent at the start
crd_status crdi_master_solve_start(crd_master* m);
crd_status crdi_master_seed_flows(crd_master* m); // before the first step
// flow.c: connections as polynomials
bool crdi_link_flows(const crd_master* m, const crdi_link* k); ///< it becomes a flow
int crdi_link_order(const crd_master* m, const crdi_link* k);  ///< derivatives it has use for
bool crdi_flow_predicts(const crdi_flow* f);                   ///< not hold, linear or quadratic
/// Into or out of a unit with feedthrough that is not refreshed: `auto` becomes careful.
void crdi_flow_is_stale(const crd_master* m, crdi_flow* f);
crd_status crdi_flow_bind(crd_master* m, const crdi_link* k, const double* from, double* to,
                          crdi_flow* f);
crd_status crdi_master_index_flows(crd_master* m);
void crdi_flow_start(const crd_master* m, crdi_flow* f, const crd_sample* first);
void crdi_master_start_watches(crd_master* m);
/// What the source gives now, in the input's unit.
crd_sample crdi_flow_sample(const crdi_flow* f);
/// The input over the target's step from t to t + h: prediction, value and derivatives.
void crdi_flow_begin(crd_master* m, crdi_flow* f, double t, double h);
/// The input at s behind f->origin, for a part of a step of length h.
void crdi_flow_at(crdi_flow* f, double s, double h);
/// What the sources give at the end of the step under way.
void crdi_master_sample(crd_master* m);
/// Defects of that step, which ends at t; the largest of them, against the signals' scales unless
/// the control is absolute.
double crdi_master_judge(crd_master* m, double t);
/// The step counts: samples, sums, selection. Watches, too.
void crdi_master_accept(crd_master* m, double t);
double crdi_flow_scale(const crdi_flow* f);
// refresh.c: outputs with feedthrough, evaluated again with fresh inputs
crd_status crdi_master_plan_refresh(crd_master* m);
crd_status crdi_master_refresh_start(crd_master* m);
crd_status crdi_master_refresh(crd_master* m, double t); ///< at the end of a step
// control.c: the variable step
crd_status crdi_master_plan_control(crd_master* m); // before the units' values have their places
crd_status crdi_master_start_control(crd_master* m);
/// Where the step under way ends: the stop time, a row's, an event's to the last bit.
double crdi_control_end(const crd_master* m);
double crdi_control_step(crd_master* m); ///< the length of the step that begins
/// Whether the step under way, with this defect, has to be taken back; m->h is then shorter.
bool crdi_control_rejects(crd_master* m, double eps);
crd_status crdi_control_next(crd_master* m); ///< after an accepted step
// keep.c: steps that are taken back
crd_status crdi_master_plan_keep(crd_master* m);
/// States and outputs of all members that can, kept and brought back.
crd_status crdi_master_keep(crd_master* m);
crd_status crdi_master_bring_back(crd_master* m);
void crdi_master_free_kept(crd_master* m);
// iterate.c: steps that are repeated until they fit
crd_status crdi_master_plan_iteration(crd_master* m);
crd_status crdi_master_iterate(crd_master* m); ///< one step, sweep after sweep
/// A unit that has made its step, in a later sweep; and whether this is one.
bool crdi_iteration_skips(const crd_master* m, const crdi_member* p);
bool crdi_iteration_guesses(const crd_master* m);
const crd_iteration_report* crdi_iteration_get_report(const crd_master* m);
void crdi_master_free_iteration(crd_master* m);
// bonds.c: power bonds
crd_status crdi_master_resolve_bonds(crd_master* m);    // marks links; once the grid is there
crd_status crdi_master_bind_bonds(crd_master* m);       // once it is known what is refreshed
void crdi_master_start_bonds(crd_master* m);            // at the start of the run
void crdi_master_balance(crd_master* m, double h_next); // at each communication point
/// This bond corrects the link, if that can be done.
crd_status crdi_power_mark(crd_master* m, const crdi_power* p, crdi_link* k);
// probing.c: power bonds whose feedthrough is found by probing
crd_status crdi_probing_plan(crd_master* m, crdi_power* p, crdi_link* action, crdi_link* flow);
crd_status crdi_probing_bind(crd_master* m, crdi_power* p); // once it is known what is refreshed
void crdi_probing_start(crd_master* m, crdi_power* p);
void crdi_master_probe(crd_master* m, double t); ///< at the end of a step: gains, fresh outputs
void crdi_probing_tell(crdi_probing* q);         ///< what is held over the next one
// estimate.c: what defects do to the outputs, linearised
crd_status crdi_master_start_estimate(crd_master* m);
void crdi_master_estimate(crd_master* m, double h); // after each accepted step
void crdi_master_free_estimate(crd_master* m);
/// RMS and maximum of the estimated error of an output so far, NaN: not known.
void crdi_master_estimated(const crd_master* m, int member, int slot, double* rms, double* max);
/// Why there are no estimates, a sentence; "" if there are.
const char* crdi_master_estimate_note(const crd_master* m);
// judge.c: the verdict
void crdi_master_report_quality(crd_master* m);
// defects.c: defects as signals of the record
/// Somebody asks for the defect of this input.
bool crdi_link_records_defect(const crd_master* m, const crdi_link* k);
/// As a signal, NULL if nobody asks for it.
crd_status crdi_flow_offer(crd_master* m, const crdi_flow* f, const crdi_coupled** out);
// transfer.c
crd_status crdi_master_transfer(crd_master* m, const crdi_feed* f, double t);
void crdi_convert(const crdi_conversion* c);
crd_status crdi_convert_bytes(crd_context* ctx, const crdi_conversion* c);
// tune.c: decides what is measured and how many threads run; says in tune_at when to ask again
void crdi_master_tune(crd_master* m);
// step.c
/// The stop flag is set, or an emergency came: whoever waits gives up.
static inline bool crdi_master_stops(const crd_master* m)
{
    return (m->opt.stop && *m->opt.stop) || __atomic_load_n(&m->emergency, __ATOMIC_ACQUIRE);
}
/// Stop time, the stop flag, or a unit's wish.
void crdi_master_look_for_end(crd_master* m);
/// All phases once.
crd_status crdi_master_sweep(crd_master* m);
/// Inputs with their derivatives into the unit; derivatives of the outputs out of it.
crd_status crdi_member_set(crdi_member* p);
crd_status crdi_member_get_rates(crdi_member* p);
/// Inputs as they were predicted for time t, into the member's own.
void crdi_member_show(crd_master* m, crdi_member* p, double t);
/// One member over its step that ends with the tick under way; its status says how it went.
void crdi_member_run(crd_master* m, crdi_member* p);
bool crdi_member_is_due(const crd_master* m, int member); ///< its step ends with this tick
/// Words the failure of a member, marks the end of the run, hands `st` back.
crd_status crdi_member_failed(crd_master* m, int member, crd_status st);
crd_status crdi_member_crashed(crd_master* m, int member, int signal_number);

static inline double crdi_master_time_of(const crd_master* m, int64_t n)
{
    if (m->controlled) { return m->time + (double)(n - m->n) * m->h; } // n: now, or the next
    // From the count: a sum would drift. The last tick may be shorter.
    return n >= m->tick_count ? m->stop : m->start + (double)n * m->tick;
}

/// Where an element of a binding's values stands.
static inline void* crdi_slot(const crd_values* v, crd_kind kind, int slot)
{
    return kind == CRD_REAL      ? (void*)&v->real[slot]
           : kind == CRD_INTEGER ? (void*)&v->integer[slot]
                                 : (void*)&v->bytes[slot];
}

// graph.c: strongly connected components, Tarjan. Edges of node i are
// edge[first[i]] ... edge[first[i+1]-1]. component[i] numbers them in reverse topological order:
// an edge never goes to a higher number. Returns the number of components, or -1 out of memory.
int crdi_components(crd_context* ctx, int n, const int* first, const int* edge, int* component);

// cycle.c: a run on the clock
crd_status crdi_cycle_plan(crd_master* m); ///< before signals are selected
void crdi_cycle_start(crd_master* m);      ///< at the end of the initialisation
/// What real time needs of the system, for this thread; once.
crd_status crdi_cycle_enter(crd_master* m);
/// Waits until the tick at hand is due; the first time this thread enters real time.
crd_status crdi_cycle_begin(crd_master* m);
void crdi_cycle_end(crd_master* m);
void crdi_cycle_leave(crd_master* m);
// async.c: units with a budget, which step on threads of their own
crd_status crdi_async_check(crd_master* m); ///< finds them, before anything is planned
crd_status crdi_async_plan(crd_master* m);  ///< once the units are initialised
void crdi_async_set_priority(crd_master* m, int priority); ///< of the cycle thread: theirs is lower
/// Those of the phase that are due begin their step, unless they are behind; and what has become of
/// it at the latest when the budget of the last one is over.
void crdi_async_begin(crd_master* m, const crdi_phase* phase);
crd_status crdi_async_end(crd_master* m, const crdi_phase* phase);
/// Outputs again, with the member's inputs as they are; not while it is busy.
crd_status crdi_async_ask(crd_master* m, int member);
/// The unit is in a step, or may be: nobody else calls it. The cycle thread asks. False for others.
bool crdi_async_busy(crd_master* m, int member);
void crdi_async_free(crd_master* m); ///< waits for steps under way; may be called again
/// Before the units are destroyed. false: a thread is still in its unit, and all that it may touch,
/// the master among it, has to stay.
bool crdi_async_clear(crd_master* m);
bool crdi_async_left(const crd_master* m); ///< some thread did not come back
/// Cycles that went on without the member, and whether it is late now.
int64_t crdi_async_late(const crd_master* m, int member, bool* now);
/// Steps that the member made, with or without a thread of its own. `*lasts_ns`: how long the one
/// lasts that the run did not wait for, 0: there is none.
int64_t crdi_async_steps(const crd_master* m, int member, int64_t* lasts_ns);
/// How the link to the unit does, of a unit that is busy how it did when it was asked last. false:
/// it has none. The cycle thread.
bool crdi_member_link(crd_master* m, int member, crd_link_stats* out);
/// What tells that outputs may have jumped.
static inline int64_t crdi_member_events(const crdi_member* p)
{
    return p->async ? p->jumps : p->unit->events;
}

// live.c: somebody watches and steers
crd_status crdi_live_prepare(crd_master* m); ///< at the end of the initialisation
/// Commands, before a tick; stays as long as the run is paused. Sets m->end for the end.
crd_status crdi_live_obey(crd_master* m);
void crdi_live_show(crd_master* m); ///< rows and snapshots, after a tick
/// Faults at the inputs of a member, before the unit takes them; and as they were.
void crdi_live_disturb(const crdi_member* p);
void crdi_live_calm(const crdi_member* p);
/// In [0, 1): for a purpose of a fault, by its number.
double crdi_fault_chance(int64_t fault, int64_t at);
void crdi_live_note_event(crd_master* m, crd_event_kind kind, double time,
                          const char* text); ///< any thread
/// An emergency makes a failure of everything but a crash.
crd_status crdi_live_alarm(crd_master* m, crd_status st);
/// The run is over and its units are still to come to rest: commands are refused from here on.
/// Fails if an emergency came at the last moment.
crd_status crdi_live_close(crd_master* m);
void crdi_live_end(crd_master* m); ///< all is over: the last snapshot

// session.c: the states of the benches, when all is over
crd_status crdi_master_plan_session(crd_master* m);
crd_status crdi_master_write_session(crd_master* m); ///< does not allocate
void crdi_master_free_session(crd_master* m);

// script.c: connections that do what they did in a recorded run
const crd_script* crdi_script_find(const crd_master* m, const char* to); ///< NULL: none
void crdi_script_seed(crd_master* m); ///< once the flows have their first samples

// exchange.c: every exchanged sample into a file of its own
crd_status crdi_exchange_open(crd_master* m); ///< at the end of the initialisation
/// Samples of connections without a coupling, after a tick. Those with one are noted by couple.c.
void crdi_exchange_note(crd_master* m);
crd_status crdi_exchange_close(crd_master* m);
void crdi_exchange_free(crd_master* m);
/// A sample that reaches the element of a coupling.
void crdi_exchange_arrived(const crd_master* m, const crdi_couple* c, const crdi_flight* f);
void crdi_exchange_event(crd_master* m, crd_event_kind kind, double time, const char* text);
int64_t crdi_exchange_count(const crd_master* m); ///< samples so far

// pool.c: workers that take members of a batch
crd_status crdi_pool_create(crd_master* m, int workers, crdi_pool** out);
void crdi_pool_destroy(crdi_pool* p);
void crdi_pool_set_priority(crdi_pool* p, int priority); ///< SCHED_FIFO, as far as it is allowed
int crdi_pool_workers(const crdi_pool* p);               ///< those that could be started
/// Runs the members of m->batch[first] ... [first + count - 1] on the workers and on this thread;
/// returns when all are done. Each one's outcome is in its `status`.
void crdi_pool_run(crdi_pool* p, int first, int count);

// guard.c: crashes of units; more in shared/master_guard.h
typedef struct crdi_guard {
    sigjmp_buf env;
    volatile int* running; // member whose code runs, -1: our own, which is not guarded
    struct crdi_guard* outer;
} crdi_guard;
/// A signal in a unit's code between enter and leave jumps to env with its number, exit() with
/// CRDI_GUARD_EXIT.
void crdi_guard_enter(crdi_guard* g, volatile int* running);
void crdi_guard_leave(crdi_guard* g);
