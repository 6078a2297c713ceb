/// The master: runs a system of units.
///
/// crd_master_create opens all units, resolves and checks every connection and plans the schedule;
/// nothing of a unit runs yet (`cardan check` stops here). crd_master_run does the rest: initialise
/// with algebraic loops solved, step to the end, terminate. Or by hand: initialize, advance,
/// advance, finish. Equal input gives equal bits, whatever the number of threads. Rows come every
/// `results.interval`. In a file that has rasters (MF4), the signals of a unit whose step is longer
/// than that have a raster of their own, at the unit's communication points.
///
/// A connection with a coupling gives what is known when the target's step begins, whatever the
/// scheme: samples taken at the end of a tick, when all outputs belong to the same time, sent
/// through the emulated channel and continued by the element. Until the first one arrives the input
/// keeps what the initialisation has found.
#pragma once
#include "cardan/base.h"
#include "cardan/coupling.h"
#include "cardan/pair.h"
#include "cardan/system.h"
#include "cardan/unit.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- clocks ------------------------------------------------------------------------------------

typedef struct crd_clock {
    int64_t (*now)(void* user); ///< ns, monotonic
    /// Returns at `ns` or later; a signal handler may make it return earlier.
    void (*sleep_until)(void* user, int64_t ns);
    /// ns since 1970; an administrator may set it. NULL: nobody asks whether it was set.
    int64_t (*wall)(void* user);
    void* user;
} crd_clock;

CRD_API crd_clock crd_clock_system(void); ///< CLOCK_MONOTONIC, CLOCK_REALTIME

// ---- histograms --------------------------------------------------------------------------------

/// Durations in ns with a resolution of 1/16 of themselves, up to 2^40 ns (18 minutes; longer ones
/// count there). Plain data: copy it, add it up.
enum { CRD_HISTOGRAM_SUB = 16, CRD_HISTOGRAM_BUCKETS = 592 };
typedef struct crd_histogram {
    int64_t count, min, max; ///< min, max exact; 0 while count is 0
    int64_t sum;             ///< stays at INT64_MAX if it gets there
    int64_t buckets[CRD_HISTOGRAM_BUCKETS];
} crd_histogram;

CRD_API void crd_histogram_add(crd_histogram* h, int64_t ns); ///< negative: 0
CRD_API void crd_histogram_merge(crd_histogram* h, const crd_histogram* other);
/// Smallest duration, up to the resolution, that a part q (0 .. 1) of all does not exceed: the
/// longest of its bucket, not above max; q = 0 is min, 1 is max. 0 if empty.
CRD_API int64_t crd_histogram_quantile(const crd_histogram* h, double q);
CRD_API int crd_histogram_bucket(int64_t ns); ///< that counts it
/// Its least duration; of BUCKETS: the end of the last.
CRD_API int64_t crd_histogram_edge(int bucket);

// ---- the account of a paced run ----------------------------------------------------------------

/// A cycle whose work was not done when the next one was due (plus `slack`): crdi_pacer_done.
typedef struct crd_overrun_info {
    int64_t cycle;
    double time;     ///< simulated, s, of its beginning
    int64_t late_ns; ///< how long after the next deadline its work was done
    int64_t busy_ns; ///< time of its work
    int unit;        ///< that took longest in it, -1: not known
    int behind;      ///< overruns in a row before it that were not caught up with
} crd_overrun_info;

enum { CRD_PACE_KEPT = 128, CRD_PACE_NOTES = 8, CRD_PACE_NOTE_BYTES = 240 };

typedef struct crd_pace_report {
    bool on;
    double factor;          ///< simulated seconds per second
    double period;          ///< s on the clock between two cycles, 0: they vary
    int64_t cycles;         ///< begun and done
    crd_histogram lateness; ///< ns from its deadline to the beginning of a cycle; every one begun
    crd_histogram busy;     ///< ns of work of a cycle; every one done
    int64_t overruns;
    /// The first CRD_PACE_KEPT / 2 overruns and behind them, once there are more, the latest ones
    /// of the rest by late_ns; by cycle.
    crd_overrun_info kept[CRD_PACE_KEPT];
    int kept_count;
    crd_overrun_info worst; ///< largest late_ns; valid if overruns > 0
    int64_t burst;          ///< longest row of overruns
    double burst_time;      ///< simulated, s, of its first cycle
    int64_t skipped;        ///< grid points that nothing began at (CRD_OVERRUN_SKIP)
    int64_t moved_ns;       ///< what stretching and skipping moved the grid by
    int64_t paused_ns;      ///< what pauses moved it by
    int64_t drift_ns;       ///< newest deadline - (origin + moved + paused + (t - start)/factor): 0
    int64_t minor_faults, major_faults; ///< of the cycle thread in the loop
    int64_t voluntary, involuntary;     ///< its context switches
    /// How often the wall clock was set by 1 ms or more, or the machine slept, as seen when there
    /// was time to look.
    int64_t clock_steps;
    int64_t clock_step_ns;            ///< sum
    bool fifo, locked, pinned, awake; ///< got: SCHED_FIFO, locked memory, a CPU, shallow C-states
    int priority, cpu;                ///< of it; -1: none
    /// What was wished and not allowed, each with the line that would allow it.
    char notes[CRD_PACE_NOTES][CRD_PACE_NOTE_BYTES];
    int note_count;
} crd_pace_report;

// ---- the master --------------------------------------------------------------------------------

typedef struct crd_master crd_master; ///< opaque

typedef enum crd_end {
    CRD_END_NONE, ///< still running
    CRD_END_STOP_TIME,
    CRD_END_UNIT,        ///< a unit wished it
    CRD_END_INTERRUPTED, ///< the stop flag
    CRD_END_FAILED,
    CRD_END_OVERRUN, ///< a cycle was late, and the pace says to stop then
    CRD_END_GUARD,   ///< the guard: a loop diverges by its coupling, or a limit is not kept
} crd_end;

/// A sample as it once arrived at an input.
typedef struct crd_script_sample {
    double arrival, stamp; ///< s of simulated time: when it came, when it was taken
    double value;          ///< in the input's unit
    int64_t sequence;
} crd_script_sample;

/// What a connection with a coupling does instead of sending its samples through a channel: each
/// sample arrives when the script says so, by its number, as often as the script has it; one that
/// the script does not have is lost. A connection without one takes `past` only.
typedef struct crd_script {
    const char* to; ///< the input, "shaft.M", element of a whole array "shaft.M[2]"
    const crd_script_sample* samples; ///< in the order of arrival
    int64_t count;
    bool values;             ///< the values come from the script, too: the source is not asked
    double start;            ///< with `values`: what the input is told until a sample arrives
    const crd_history* past; ///< what its prediction begins with; NULL: what the units say
    /// Of an input of a unit that is played: what was sent to it and what it acted on in the step
    /// that ends at each time. Elements that know commands take them from here; NULL: as they are.
    const double *times, *sent, *acted;
    int64_t time_count;
} crd_script;

/// What is known at the end of a process whose memory may be damaged.
typedef struct crd_last_words {
    const char* sentence; ///< "unit 'motor' at t = 0.5: crashed in fmi2DoStep (Aborted)"
    const char* unit;     ///< whose fault it is, "": not known
    double time;          ///< simulated, s
    const char* results;  ///< the file of the record, which is complete up to here; "": none
    int64_t rows;         ///< in it
} crd_last_words;

typedef struct crd_master_options {
    /// Looked at after the initialisation and after every step; true ends the run cleanly. Set it
    /// from a signal handler or another thread. NULL: crd_master_cancel does it.
    const volatile bool* stop;
    /// Called about ten times a second from the cycle thread between two steps. May be NULL.
    void (*progress)(void* user, double time, double start, double stop);
    void* progress_user;
    /// Turn SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGPIPE, SIGXCPU, SIGXFSZ
    /// and exit() inside a unit, on a thread of the master, into CRD_E_CRASH. The unit is not
    /// called again. Whatever it held stays held and what it damaged stays damaged: if it crashed
    /// inside malloc, the next call of malloc may wait for ever. A process that wants to live on
    /// should isolate the unit; one that may end should say so with last_words.
    bool guard_crashes;
    /// With guard_crashes: the process is to end when a unit crashes, here or on a thread of its
    /// own, calls exit() or pthread_exit(), or does not come back within 3 s when `stop` is set (30
    /// s from the loading or unloading of its library, in any case). The record is finished without
    /// a call of malloc; then this function is called, on a thread of the master, and must do
    /// without malloc and without locks; then the process ends by _exit with the exit code of
    /// CRD_E_CRASH. Also puts back what units change in the process, with a warning: signal mask
    /// and handlers, working directory, file mode mask, locale, standard output and error. One
    /// master per process may ask for it. NULL: no process is ended.
    void (*last_words)(void* user, const crd_last_words* words);
    void* last_words_user;
    bool no_statistics; ///< do not measure times per unit
    /// What advice aims at: defects relative to their scales, energy relative to what passes a
    /// bond.
    double defect_goal, energy_goal; ///< 0: a thousandth, a hundredth
    /// There is no stop time: the run goes on for as long as it is advanced, and units are not told
    /// one. Whoever asks for it decides when it ends (a DCP slave).
    bool open_end;
    /// The clock of a paced run; NULL: the system's.
    const struct crd_clock* clock;
    /// Of connections whose samples go their ways once more (shared/master_replay.h); borrowed.
    const crd_script* scripts;
    int script_count;
    /// Rows are kept in memory (crd_master_table), with or without a file.
    bool columns;
    /// States will be saved and restored: units are told that they may be set back, and the state
    /// after the initialisation is kept for crd_master_reset. An FMU may be slower for it.
    bool snapshots;
    /// Of crd_master_initialize: goes on from this file (crd_master_save_file), in place of the
    /// state that it has found. Rows begin behind it. Implies `snapshots`. NULL: from the start.
    const char* resume;
    /// Of crd_master_run: the state at `save_at` (the end of the first step there; NaN or 0: when
    /// the run has come to its end) goes to this file. Implies `snapshots`. NULL: none.
    const char* save_file;
    double save_at; ///< s
    /// FMUs are opened in it, and stay open for the next run that is created with it; borrowed,
    /// outlives the master. One run at a time. NULL: they are the run's own.
    crd_unit_store* store;
    /// A run of a cycle that is being learned (shared/learn_cycle.h); borrowed. NULL: none
    struct crdi_repeat_pass* pass;
} crd_master_options;

typedef struct crd_unit_report {
    const char* name;
    const char* kind;
    int64_t steps;
    double step_size;
    double time_step, time_get, time_set; ///< s, estimated from the measured steps
    double worst_step;                    ///< s, of the measured steps
    int64_t measured;                     ///< how many steps were measured
    double budget;                        ///< s, NaN: none
    int64_t late;                         ///< cycles that went on without it
    int worker; ///< number of the process that its code runs in, 0: that of the master
    const struct crd_link_stats* link;       ///< NULL: it is not reached over a network
    const struct crd_standby_stats* standby; ///< NULL: it has no stand-in
} crd_unit_report;

/// One algebraic loop of the initialisation.
typedef struct crd_loop_report {
    const char* text; ///< "a.u, a.y, b.u, b.y"
    int size;         ///< number of real unknowns
    int iterations;
    double residual; ///< relative, at the end
    bool newton;     ///< false: fixed point
    bool converged;
} crd_loop_report;

/// How well an element did: each sample that arrived against the estimate that had been made for
/// its time. Nothing is scored where samples come without latency.
typedef struct crd_tap_report {
    const char* label;
    crd_metrics metrics; ///< NaN where nothing was scored
    int64_t scored;      ///< samples
    crd_coupling_counts counts;
    bool learns;                    ///< has a client of the learning server
    int64_t networks;               ///< that came from the server and could be used
    int64_t connects;               ///< connections to the server, 0: it was never reached
    crd_coupling_commands commands; ///< what it made of the commands, the first of the coupling's
} crd_tap_report;

/// One connection with a coupling, or one element of it if it is an array.
typedef struct crd_coupling_report {
    const char *from, *to;  ///< "engine.torque", "shaft.M"
    double step;            ///< macro step of the element, s
    int64_t sent;           ///< samples taken
    int64_t lost, repeated; ///< by the emulated channel
    double k_mean;          ///< latency in macro steps over all evaluations, NaN: no sample arrived
    int k_max;
    const crd_tap_report* taps; ///< the element in use, then the shadows
    int tap_count;
    const char* hint;            ///< a sentence if a shadow was better by more than 10 %, else ""
    const char* const* commands; ///< names (command_count)
    int command_count;
    bool commands_found; ///< nobody has named them
    double ahead;        ///< s that estimates are of a later time at the source: the way there
    double scale;        ///< largest magnitude of the signal; 0: it is not known, nor what follows
    double relative;     ///< RMS over the run of what the unit was told less the signal / scale
    double signal_rms;   ///< of the signal over the run; 0: as `scale`
    double error_rms;    ///< estimated error of the source's output (linearised); NaN: not known
} crd_coupling_report;

/// One real connection (one element of it if it is an array) and how far its input missed its
/// output: what `cardan run` says about the quality of a run. Numbers in the input's unit.
typedef struct crd_flow_report {
    const char *from, *to;       ///< "second.v2", "first.v2"
    const char* unit;            ///< of the input, "": none
    crd_prediction predict;      ///< as asked for
    const char* used;            ///< predictor of most steps: "hermite"
    double share;                ///< of the steps with it, 0 .. 1
    int order;                   ///< the defect falls with H to this power
    bool hold_only;              ///< the unit took constants
    double step;                 ///< mean length of a step, s
    double scale;                ///< what is small against this is small
    double signal_rms;           ///< of the output over the run
    double rms, max;             ///< connection defect over the run; NaN: it broke
    double max_time;             ///< at the end of which step
    double output_rms;           ///< output defect from mid-step samples; NaN: not measured
    double relative;             ///< the larger RMS of the two / scale
    double error_rms, error_max; ///< estimated error of the output (linearised); NaN: not known
    double error_bound;          ///< what its RMS cannot exceed, of linear units; NaN: not known
    double solver_rms;           ///< what two half steps of the source change in it; NaN: not known
    int64_t jumps, switches;     ///< discontinuities; changes of the predictor
} crd_flow_report;

typedef struct crd_bond_report {
    const char* name;
    const char *action, *flow; ///< "first.f", "second.v2"
    crd_correction correct;
    double mu;
    double energy;      ///< that the exchange created without the corrections, J
    double residual;    ///< sum of the residual power times H
    double work;        ///< that corrections put in, as they acted, J
    double transferred; ///< sum of |f v| H
    double relative;    ///< (energy + work) / transferred: the balance of what acted at both ends
    double power_min, power_max; ///< residual power, W
} crd_bond_report;

/// One end of a power bond with a pair (docs/explanation/pairs.md).
typedef struct crd_pair_side_report {
    const char *unit, *own; ///< "engine", "w"
    double inner;           ///< inner step, s
    int64_t sent, lost;     ///< packets, by the emulated channel
    int64_t predicted;      ///< macro steps in which the commands on top acted
    crd_pair_state state;
} crd_pair_side_report;

typedef struct crd_pair_report {
    const char* name;
    crd_pair_side_report sides[2]; ///< by crd_pair_side
} crd_pair_report;

/// The variable step.
typedef struct crd_control_report {
    bool on;
    double tolerance;
    double first, shortest, longest, mean; ///< s
    double worst;                          ///< largest controlled defect / tolerance
    const char* worst_flow;                ///< connection that had it: "a.y -> b.u"
    int64_t beyond;           ///< steps that count though their defect is beyond the tolerance, or
                              ///< beyond `reject`
    const char* forward_only; ///< why steps are not taken back, "": they are
    int64_t rejected, at_floor, at_ceiling, events;
} crd_control_report;

#define CRD_RESIDUALS 12
typedef struct crd_iteration_report {
    bool on;
    int64_t steps, sweeps;           ///< steps that were iterated, sweeps of all of them
    int most;                        ///< sweeps of one step
    int64_t failed;                  ///< steps that did not converge
    double failed_time;              ///< end of the first of them, NaN
    double residuals[CRD_RESIDUALS]; ///< of that one, sweep by sweep, in tolerances
    int residual_count;
    const char* failed_flow;    ///< connection with the largest residual: "a.y -> b.u"
    const char* explicit_units; ///< units that were stepped once: "a, b"; "": none
} crd_iteration_report;

/// What the guard has to say, the worst of it (docs/explanation/quality.md).
typedef enum crd_guard_state {
    CRD_GUARD_OFF,       ///< nothing was watched
    CRD_GUARD_CALM,      ///< no loop grows by its coupling, as far as it is known
    CRD_GUARD_FLAGGED,   ///< a map says that one will; it was not seen yet
    CRD_GUARD_UNDECIDED, ///< one grew; whether by its coupling or by itself is not known
    CRD_GUARD_WARNED,    ///< one grows as couplings do; its units cannot be linearised
    CRD_GUARD_DIVERGED,  ///< one diverges by its coupling
    CRD_GUARD_LIMIT,     ///< a limit of the run is not kept
} crd_guard_state;
CRD_API const char* crd_guard_state_name(crd_guard_state s); ///< "off", "calm", ... "limit"

typedef struct crd_guard_report {
    crd_guard_state state;
    bool asked;        ///< the description says something about it
    bool stopped;      ///< the run, by it
    bool exploded;     ///< UNDECIDED, and a loop that swings has become a thousand times as large
    double time;       ///< s, when it was seen; NaN: nothing was
    double growth;     ///< per step, of the loop by its coupling; NaN: not known
    const char* text;  ///< what and why, "": nothing to say
    const char* help;  ///< what would help or tell, ""
    const char* note;  ///< what is not known about which loop and what is watched instead, ""
    int loops, mapped; ///< loops of units; those with a map
} crd_guard_report;

/// What the coupling has made of the results, as far as it is known: DOUBTFUL from 5 % of a
/// signal's RMS on (estimates are good to a factor of two), SPOILT from 50 % on.
typedef enum crd_trust { CRD_TRUST_GOOD, CRD_TRUST_DOUBTFUL, CRD_TRUST_SPOILT } crd_trust;
CRD_API const char* crd_trust_name(crd_trust t); ///< "good", "doubtful", "spoilt"

typedef struct crd_master_report {
    crd_end end;
    const char* end_unit;           ///< CRD_END_UNIT, CRD_END_FAILED: which, "" otherwise
    double start, stop, step, time; ///< `time` is where it got to
    int64_t steps;                  ///< ticks of the grid done
    int threads;
    double wall_time;           ///< s in steps
    double initialization_time; ///< s
    const crd_unit_report* units;
    int unit_count;
    const char*
        isolation; ///< which units ran in which worker processes, and their sandbox; "" none
    const crd_loop_report* loops;
    int loop_count;
    const crd_coupling_report* couplings;
    int coupling_count;
    const crd_flow_report* flows; ///< by relative defect, largest first
    int flow_count;               ///< 0: not monitored
    const crd_bond_report* bonds; ///< by relative energy, largest first
    int bond_count;
    const crd_pair_report* pairs;
    int pair_count;
    crd_control_report control;
    crd_iteration_report iteration;
    crd_guard_report guard;
    double worst_defect; ///< largest `relative` of flows and couplings; NaN: one broke, or none
    double worst_error;  ///< largest error_rms / scale of both; NaN: none is known
    double worst_part; ///< largest error_rms / signal_rms (or a scale that is given) of both; where
                       ///< errors are not known what defects have added up to at worst
    const char* worst_part_of; ///< whose, "": none is known
    crd_trust trust;
    double worst_energy;       ///< largest |relative| of the bonds; NaN: none
    const char* error_note;    ///< why errors are not estimated, "" if they are
    const char* const* advice; ///< sentences: what dominates and what would help
    int advice_count;
    const struct crd_pace_report* pace; ///< never NULL; ->on tells
    int64_t rows;                       ///< recorded
    const char* results;                ///< path or ""
    int64_t rows_lost, rows_thinned;    ///< that the disk had no room for; left out before that
    const char* record_note;            ///< what a full or slow disk did to the record, or ""
    const char* exchange;               ///< path or "": every exchanged sample
    int64_t exchanged;                  ///< so many
} crd_master_report;

CRD_API crd_master_options crd_master_defaults(void);
/// `sys` is borrowed and must not change any more. `opt` may be NULL.
CRD_API crd_status crd_master_create(crd_context* ctx, const crd_system* sys,
                                     const crd_master_options* opt, crd_master** out);
CRD_API void crd_master_destroy(crd_master* m);

/// Stages of the initialisation, for values that come from outside.
typedef enum crd_stage {
    CRD_STAGE_NONE,
    CRD_STAGE_INSTANTIATED, ///< all units; parameters may be set
    CRD_STAGE_INITIALIZING, ///< all are in their initialisation mode; inputs may be set
    CRD_STAGE_CONSISTENT,   ///< loops are solved; may be asked for again after inputs were set
} crd_stage;
/// A part of crd_master_initialize, which does what is left. In between, and between steps, inputs
/// that have no connection may be set by the unit's own functions (crd_master_get_unit).
CRD_API crd_status crd_master_reach(crd_master* m, crd_stage stage);
/// Instantiate, initialise, solve the loops, open the result file, record the first row.
CRD_API crd_status crd_master_initialize(crd_master* m);
/// The main loop over at most so many ticks of the grid. CRD_OK also when the run has come to its
/// end: see crd_master_ended.
CRD_API crd_status crd_master_advance(crd_master* m, int64_t ticks);
/// Terminate all units and close the result file; also after a failure. Safe to call twice.
CRD_API crd_status crd_master_finish(crd_master* m);
/// All of it. After a failure the result file holds everything up to it.
CRD_API crd_status crd_master_run(crd_master* m);

CRD_API double crd_master_time(const crd_master* m);
/// How a run on the clock does: overruns so far, and the latest beginning of a cycle, s. Any
/// thread, for a progress line; false: it is not on the clock.
CRD_API bool crd_master_glance(const crd_master* m, int64_t* overruns, double* lateness);
CRD_API crd_end crd_master_ended(const crd_master* m);
CRD_API const crd_master_report* crd_master_get_report(crd_master* m);

/// What runs, as the JSON document CRD_ATTACHMENT_RUN of docs/reference/formats.md: files with
/// their SHA-256, settings that differ from start values, connections, rasters. Any time after
/// create; reads the files. Appended to `out`.
CRD_API crd_status crd_master_describe_run(crd_master* m, crd_text* out);
/// How it went (so far), as CRD_ATTACHMENT_VERDICT.
CRD_API crd_status crd_master_describe_verdict(crd_master* m, crd_text* out);

/// What a coupling of the report has learned of its commands, the element in use or else a shadow,
/// as the JSON of an element with their names and weights; `weights` of others takes it. Appended
/// to `out`. CRD_E_STATE: it knows no commands, or has not learned enough of them.
CRD_API crd_status crd_master_describe_weights(const crd_master* m, int coupling, crd_text* out);

/// Columns that would be recorded, for listings. Valid until destroy.
CRD_API int crd_master_signal_count(const crd_master* m);
CRD_API const char* crd_master_signal_name(const crd_master* m, int i);
/// The current value of a variable by name ("unit.variable", or its own name for a single FMU).
/// CRD_E_STATE before initialize and after a crash of the unit.
CRD_API crd_status crd_master_value(crd_master* m, const char* name, double* out);

// ---- values between steps ----------------------------------------------------------------------
//
// A name is looked up once; its handle, a small number, then sets and gets without a search and
// without memory. All of it on the thread that advances the run, between two calls.

typedef struct crd_handle_info {
    int unit;                  ///< of the system
    int32_t variable, element; ///< element from 0; -1: all of the variable
    int count;                 ///< numbers: 1, or the size of an array
    crd_type type;             ///< integers and Booleans pass as doubles
    crd_causality causality;
    crd_variability variability;
    const char* text; ///< its physical unit, ""
    /// Where the newest value stands between steps if it is a real output that somebody is
    /// connected to: faster than crd_master_get, valid from the initialisation to destroy. NULL:
    /// ask.
    const double* at;
} crd_handle_info;

/// "unit.variable", "unit.array" or "unit.array[2]"; of a single FMU its own names. Any time after
/// create. The same name has the same handle. CRD_E_NOT_FOUND with the nearest name;
/// CRD_E_UNSUPPORTED: a text.
CRD_API crd_status crd_master_find(crd_master* m, const char* name, int* handle);
CRD_API const crd_handle_info* crd_master_handle(const crd_master* m, int handle); ///< NULL: none
/// `count` numbers. CRD_E_STATE before the units are there, after a crash and after finish.
CRD_API crd_status crd_master_get(crd_master* m, int handle, double* values);
/// Of an input that nobody is connected to, which holds it until it is set again, and of a tunable
/// parameter; of a fixed one between CRD_STAGE_INSTANTIATED and _INITIALIZING. Takes effect in the
/// next step; outputs that follow at once do so then. CRD_E_STATE: it is connected, or fixed;
/// CRD_E_RANGE: no number, not whole, or outside of the variable's limits; CRD_E_UNSUPPORTED: an
/// output.
CRD_API crd_status crd_master_set(crd_master* m, int handle, const double* values);

/// Any thread: the run ends after the step under way, as `stop` of the options does, which counts
/// instead where it is given. A restored state goes on.
CRD_API void crd_master_cancel(crd_master* m);

/// Many runs of one system at once, for learners: handles are the same in all of them, as the same
/// names were looked up in the same order.
typedef struct crd_batch {
    crd_master* const* runs;
    int count;
    const int* set; ///< handles that are set before the steps
    int set_count;
    const int* get; ///< handles that are read behind them
    int get_count;
    int64_t ticks;        ///< macro steps of each run; 0: nothing is set, values are read only
    const bool* skip;     ///< (count) runs that are left alone; NULL: none
    const double* values; ///< a row for each run, arrays element by element
    double* out;          ///< likewise; a run fails that gives NaN and may not
    int32_t* ends;        ///< (count) crd_end, or the status of a run that failed
} crd_batch;
/// One after the other, on the thread that calls. Returns how many failed, each with its sentence
/// in its own context; the others went on.
CRD_API int crd_master_advance_batch(const crd_batch* b);

// ---- the record in memory ----------------------------------------------------------------------

/// The rows so far, of what the system's results would have, whole numbers as doubles, texts
/// without values. NULL without `columns`. Borrowed: pointers are valid until the run is advanced,
/// restored or destroyed, and after finish until destroy.
struct crd_table;
CRD_API const struct crd_table* crd_master_table(crd_master* m);

// ---- going back --------------------------------------------------------------------------------
//
// The state of a run is that of its units, connections, elements, channels with their random
// numbers, bonds, pairs, predictors, estimates and the guard. What goes on from a restored state
// is, to the last bit, what went on from it when it was saved; statistics of the machine (times of
// units) are not. Rows in memory that came after the state are dropped. Rows that another branch
// has written over since are gone for the states that knew them: then the table has a gap in time.
//
// A unit as Model Exchange begins with a new solver where its state is saved, so that a run which
// is saved on its way differs within tolerances from one that is not.

typedef struct crd_snapshot crd_snapshot; ///< opaque; belongs to the master and goes with it

/// Whether this run can be saved. CRD_E_UNSUPPORTED says which unit prevents it, and why.
CRD_API crd_status crd_master_can_save(crd_master* m);
/// Between steps; also at the end, before finish. `*state` NULL: a new one, else used again,
/// without asking for memory. CRD_E_STATE before initialize, after finish and after a failure.
CRD_API crd_status crd_master_save(crd_master* m, crd_snapshot** state);
/// As often as one likes, from whichever state of this run. It goes on even if it had ended.
CRD_API crd_status crd_master_restore(crd_master* m, const crd_snapshot* state);
/// To the state after the initialisation. Inputs and parameters that were set since are as they
/// were then.
CRD_API crd_status crd_master_reset(crd_master* m);
/// The same as a file, for `resume` of the options in any process of this user: of the same system
/// (another stop time is fine), with the same version of the library and the same `snapshots`.
/// Between steps; a result file may be open. Every unit must be able to write its state down: FMUs
/// that can be serialised, circuits, twins, signals, recordings, models whose state is bytes
/// without addresses (behind `kept`). CRD_E_UNSUPPORTED says which cannot. Files are sealed with a
/// key of the user, ~/.config/cardan/state.key or $CARDAN_STATE_KEY. CRD_E_IO.
CRD_API crd_status crd_master_save_file(crd_master* m, const char* path);
CRD_API double crd_snapshot_time(const crd_snapshot* s);
CRD_API size_t crd_snapshot_size(const crd_snapshot* s); ///< bytes, without those of FMUs
CRD_API void crd_snapshot_destroy(crd_snapshot* s);      ///< before its master, or with it

/// One element of one connection as it was resolved, for analysis.
typedef struct crd_master_link {
    int from_unit, to_unit;                                       ///< of the system
    int32_t from_variable, from_element, to_variable, to_element; ///< elements from 0
    double gain; ///< conversion of units included; NaN: it is not a factor but a map
    const crd_connection_spec* spec;
    const crd_element* element; ///< of its coupling, NULL: none
    double step;                ///< s between two samples of the source
} crd_master_link;

CRD_API int crd_master_link_count(const crd_master* m);
CRD_API crd_master_link crd_master_get_link(const crd_master* m, int link);
/// A unit of the system. Touch it between steps only, and leave it as it was.
CRD_API crd_unit* crd_master_get_unit(crd_master* m, int unit);

struct crd_loop_model;
struct crd_loop_options;
/// Before crd_master_create: FMUs whose interface nobody has chosen take Model Exchange where they
/// have it, which can be linearised exactly; the others stay as they are.
CRD_API crd_status crd_master_prefer_exchange(crd_context* ctx, crd_system* s);
/// The system where the run stands, initialised or later, as a linear network for
/// cardan/analysis.h: its units linearised, its continuous connections as links with the elements
/// of their couplings. `s` is the master's, `out` is initialised and is cleared by the caller in
/// any case. CRD_E_UNSUPPORTED says which unit or connection has no linear form.
CRD_API crd_status crd_master_linearise(crd_master* m, const crd_system* s,
                                        const struct crd_loop_options* o,
                                        struct crd_loop_model* out);

/// A test bench in the record of a session.
typedef struct crd_session_bench {
    const char* unit;
    const struct crdi_board* board; ///< shared/board.h; NULL: it was never made
} crd_session_bench;

/// The record of a session: a CSV file with the states of the master and of the benches with their
/// numbers of Rautenberg 2023, Table 7, one row for each change, values held;
/// docs/reference/formats.md. `note` stands in its last row. Complete or not at all.
/// crd_master_finish writes the one that the system wants (results.session), however the run ended.
/// CRD_E_IO, CRD_E_MEMORY.
CRD_API crd_status crd_session_write(crd_context* ctx, const char* path,
                                     const crd_session_bench* benches, int count, const char* note);

#ifdef __cplusplus
}
#endif
