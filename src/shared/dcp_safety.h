/// The safety core of a bench: who may move the machine, within which envelope, for how long
/// without a sign of life, and how it comes to rest.
///
/// Pure functions over plain structs; time is handed in and never read; nothing allocates, nothing
/// can fail. Everything that acts on a machine goes through it: emulated benches, crd_dcp_bench,
/// units served as benches; the master's side keeps to the same envelope.
/// docs/explanation/safety.md has its table of phases and events, and the test `dcp_safety`
/// compares the two.
#pragma once
#include "cardan/dcp.h"

enum { CRDI_SAFETY_PHASES = CRD_DCP_BENCH_ARMED + 1 };

typedef enum crdi_safety_event {
    CRDI_SAFETY_PREPARE,   ///< STC_prepare, the limits of both sides agree
    CRDI_SAFETY_READY,     ///< every item of the checklist is met
    CRDI_SAFETY_CONFIGURE, ///< STC_configure
    CRDI_SAFETY_WARM,      ///< media have their temperatures
    CRDI_SAFETY_START,     ///< STC_run
    CRDI_SAFETY_EARLY,     ///< data before RUNNING
    CRDI_SAFETY_FOREIGN,   ///< data of somebody else, or with a value that is no number
    CRDI_SAFETY_DATA,      ///< valid data of the registered master in RUNNING
    CRDI_SAFETY_STOP,      ///< STC_stop, or somebody at the bench
    CRDI_SAFETY_FAULT,     ///< trip, error memory, item lost, sequence gap, anything of the slave
    CRDI_SAFETY_SILENCE,   ///< the deadman's time is over
    CRDI_SAFETY_SLOW,      ///< the speed is safe
    CRDI_SAFETY_LOW,       ///< the voltage is down, nothing is to be cooled
    CRDI_SAFETY_HOT,       ///< the voltage is down, something is to be cooled
    CRDI_SAFETY_COOL,      ///< all media are cool enough
    CRDI_SAFETY_STILL,     ///< standstill, no voltage, neither set nor measured
    CRDI_SAFETY_LATE,      ///< a stage of the stop has taken longer than it may
    CRDI_SAFETY_RESET,     ///< STC_reset, or a registration
    CRDI_SAFETY_EVENTS
} crdi_safety_event;

const char* crdi_safety_event_name(int event); ///< "prepare"; NULL: unknown

/// Who decides what the machine does in a phase.
typedef enum crdi_safety_mover {
    CRDI_SAFETY_NOBODY,    ///< nothing is driven
    CRDI_SAFETY_CONDITION, ///< the bench, to condition its media
    CRDI_SAFETY_MASTER,    ///< the set values of the master
    CRDI_SAFETY_ORDER,     ///< the order of the stop: torque, speed, voltage
} crdi_safety_mover;

/// Whose silence ends a phase.
typedef enum crdi_safety_deadman {
    CRDI_SAFETY_NO_DEADMAN, ///< nothing can move
    CRDI_SAFETY_HEART,      ///< requests of the master (INF_state)
    CRDI_SAFETY_FIRST,      ///< the same, and the first data, which are due from the start on
    CRDI_SAFETY_NEXT,       ///< data
    CRDI_SAFETY_STAGE,      ///< nobody's: the time of the stage itself
} crdi_safety_deadman;

/// What an event does in a phase.
typedef struct crdi_safety_step {
    crd_dcp_bench_phase next; ///< the same one: nothing happens
    bool cut;                 ///< the drive is cut
} crdi_safety_step;

crdi_safety_step crdi_safety_step_of(crd_dcp_bench_phase phase, crdi_safety_event event);
crdi_safety_mover crdi_safety_mover_of(crd_dcp_bench_phase phase);
crdi_safety_deadman crdi_safety_deadman_of(crd_dcp_bench_phase phase);

// ---- phases and deadman ------------------------------------------------------------------------

/// All in s; INFINITY: none, which the caller says loudly.
typedef struct crdi_safety_times {
    double heart;    ///< without a request, from remote control on until the run
    double watchdog; ///< without valid data, from STC_run (or the start that it names) on
    double speed, voltage, cool, stand; ///< stages of the stop
} crdi_safety_times;

typedef struct crdi_safety {
    crdi_safety_times times;
    crd_dcp_bench_phase phase;
    double since;    ///< of the phase
    double received; ///< the last request
    double due;      ///< data are, from the last STC_run or the start that it named on
    double valid;    ///< the last valid data, -INFINITY
    bool cut;        ///< a stage was late: the drive is off
    int64_t foreign, early;
} crdi_safety;

void crdi_safety_init(crdi_safety* s, const crdi_safety_times* times);
/// True: the phase is another one now, or the drive is to be cut.
bool crdi_safety_happens(crdi_safety* s, crdi_safety_event event, double now);
/// STC_run that names the start of the grid of steps; at once: `start` = `now`.
void crdi_safety_start(crdi_safety* s, double now, double start);
/// Valid data in RUNNING that came at `now`.
void crdi_safety_data(crdi_safety* s, double now);
/// When the deadman acts unless something is received before; INFINITY: nothing has to be.
double crdi_safety_deadline(const crdi_safety* s);
/// When the present stage of a stop is late; INFINITY: there is none.
double crdi_safety_stage_end(const crdi_safety* s);
bool crdi_safety_stopping(const crdi_safety* s); ///< from the first stage on until it is safe

// ---- envelope ----------------------------------------------------------------------------------

typedef struct crdi_safety_range {
    double min, max, rate; ///< in the quantity's unit, unit/s; infinite: none
} crdi_safety_range;

/// Of one quantity. Invariant: the agreed range lies within the own one.
typedef struct crdi_safety_axis {
    crdi_safety_range own;    ///< the bench's: never left by what it drives
    crdi_safety_range agreed; ///< with the test case and the other side: of the master's values
} crdi_safety_axis;

crdi_safety_range crdi_safety_unbounded(void);
/// The agreed range is the own one again.
void crdi_safety_axis_open(crdi_safety_axis* a);
/// Narrows what is agreed. False: nothing is left of it, and it stays as it was.
bool crdi_safety_narrow(crdi_safety_axis* a, const crdi_safety_range* by);
/// A range of another quantity, `factor` of whose units are one of this; the rate is free.
crdi_safety_range crdi_safety_scaled(const crdi_safety_range* of, double factor);
/// What becomes of a set value of the master.
double crdi_safety_keep(const crdi_safety_axis* a, double x);
/// What becomes of a value of the bench itself (conditioning, stop): on the way from and to 0 it
/// may be below what the test case keeps to, never outside of the bench's own range.
double crdi_safety_keep_own(const crdi_safety_axis* a, double x);
/// From `from` towards `to` as far as the rate allows in `seconds`.
double crdi_safety_move(double from, double to, double rate, double seconds, bool* slow);

/// Set values that were not taken as they came: one kind of one quantity.
typedef struct crdi_safety_clamps {
    int64_t count;       ///< how often it began
    int64_t values;      ///< how many
    double since;        ///< when the present one began, NAN: the value is taken as it comes
    double wanted, used; ///< of the first
    double last_wanted;  ///< of the newest
} crdi_safety_clamps;

/// True: it begins with this value, which is what is to be told.
bool crdi_safety_note(crdi_safety_clamps* c, double wanted, double used, double now);
