/// A run that is watched and steered while it runs.
///
/// The cycle thread writes rows of values, snapshots of the state and events into lock-free places
/// that were made before the run; one other thread, the watcher (a page's server), reads them and
/// sends commands back, which take effect between two steps. Neither waits for the other: a watcher
/// that is slow loses rows, which are counted. Everything that takes memory (parsing an element,
/// making it) is done by the watcher's calls; the cycle thread only exchanges pointers.
/// Each change becomes an event of the record.
#pragma once
#include "cardan/master.h"
#include "shared/board.h"
#include "shared/pace.h"
#include "shared/unit_seat.h"

typedef struct crdi_live crdi_live; ///< opaque

typedef struct crdi_live_options {
    bool ask;                ///< nothing begins before CRDI_LIVE_PREPARE: crdi_live_wait_for_page
    const char* calibration; ///< file for CRDI_LIVE_CALIBRATE, borrowed; NULL: it is refused
    bool wait;               ///< the run stands still before its first step until CRDI_LIVE_START
    bool read_only;          ///< commands are refused, except none at all
    size_t ring_rows;        ///< 0: some 4 MiB
    /// Least time on the clock between two rows, s: runs that are faster than anybody can look at
    /// leave rows out (not counted as lost). Default 0.5 ms.
    double row_gap;
    double status_gap; ///< s on the clock between two snapshots; default 0.05
} crdi_live_options;

crdi_live_options crdi_live_defaults(void);
/// Between crd_master_create and crd_master_initialize; one for a master. Destroy it after
/// crd_master_finish and before crd_master_destroy, when no watcher uses it any more.
crd_status crdi_live_create(crd_context* ctx, crd_master* m, const crdi_live_options* opt,
                            crdi_live** out);
void crdi_live_destroy(crdi_live* l);

// ---- what there is; const from the end of crd_master_initialize on (crdi_live_is_ready), but
// title, file, results, read_only and desk from the creation on
// ------------------------------------------------

/// A number that is watched: all numeric signals that would be recorded, whether they are or not;
/// at most CRDI_LIVE_SIGNALS.
enum { CRDI_LIVE_SIGNALS = 2048 };
typedef struct crdi_live_signal {
    const char *name, *unit, *description;
    int owner; ///< unit of the system
    crd_type type;
} crdi_live_signal;

/// Something that can be set while the run goes: a tunable parameter, an input without connection.
typedef struct crdi_live_setting {
    const char *name, *unit, *description; ///< "mass1.m"
    int owner;
    crd_type type;
    double start;    ///< value at the start of the run, NaN: not known
    double min, max; ///< -INFINITY, INFINITY: none
    bool input;
} crdi_live_setting;

/// A connection, one element of it if it is an array.
typedef struct crdi_live_link {
    const char *from, *to, *unit; ///< "motor.torque", "shaft.M", unit at the input
    int from_unit, to_unit;
    int coupling;    ///< index among the couplings of the report, -1: none
    bool can_fault;  ///< real-valued
    int from_signal; ///< index of the output among the signals, -1: it is not watched
} crdi_live_link;

typedef struct crdi_live_unit {
    const char *name, *kind;
    bool remote, real;
    double step, budget; ///< s; budget NaN: none
} crdi_live_unit;

typedef struct crdi_live_bond {
    const char *name, *action, *flow;
} crdi_live_bond;

/// One end of a bond with a pair (docs/explanation/pairs.md).
typedef struct crdi_live_port {
    const char *pair, *output; ///< "shaft", "engine.w"
} crdi_live_port;

typedef struct crdi_live_info {
    const char *title, *file, *results; ///< "" none
    double start, stop, step;           ///< stop INFINITY: open end
    double factor;                      ///< 0: as fast as possible
    bool wait, read_only;
    bool calibrates; ///< CRDI_LIVE_CALIBRATE is possible
    bool desk;       ///< it waits to be prepared, and can be so again
    const crdi_live_unit* units;
    int unit_count;
    const crdi_live_signal* signals;
    int signal_count;
    int signals_left_out; ///< beyond CRDI_LIVE_SIGNALS
    const crdi_live_setting* settings;
    int setting_count;
    const crdi_live_link* links;
    int link_count;
    const crdi_live_bond* bonds;
    int bond_count;
    crdi_seat* const* seats; ///< of drivers
    int seat_count;
    const crdi_live_port* ports; ///< two for each pair: the owner of the flow comes first
    int port_count;
} crdi_live_info;

bool crdi_live_is_ready(const crdi_live* l); ///< any thread
const crdi_live_info* crdi_live_get_info(const crdi_live* l);

// ---- test benches: there from the creation on, also while units are initialised and come to rest
// --

/// With `ask`: waits for CRDI_LIVE_PREPARE before the initialisation, where an emergency stop is
/// enough (the run then fails by it), or after the end for the wish to begin again. false: `*stop`
/// came. The thread of the run.
bool crdi_live_wait_for_page(crdi_live* l, const volatile bool* stop);

/// Units with a board (shared/board.h).
int crdi_live_board_count(const crdi_live* l);
const char* crdi_live_board_unit(const crdi_live* l, int board); ///< name of its unit
void crdi_live_read_board(const crdi_live* l, int board, crdi_board_state* out);

// ---- the watcher's side: one thread -------------------------------------------------------------

typedef struct crdi_live_row {
    double time; ///< simulated, s
    int64_t cycle;
    double values[]; ///< (signal_count)
} crdi_live_row;

const crdi_live_row* crdi_live_read(crdi_live* l); ///< oldest row, NULL: none
void crdi_live_release(crdi_live* l);              ///< gives it back
int64_t crdi_live_lost(const crdi_live* l);        ///< rows that found no room

typedef enum crdi_live_state {
    CRDI_LIVE_STARTING, ///< initialising
    CRDI_LIVE_WAITING,  ///< for CRDI_LIVE_START
    CRDI_LIVE_RUNNING,
    CRDI_LIVE_PAUSED,
    CRDI_LIVE_STOPPING, ///< the run is over, units come to rest: benches ramp down
    CRDI_LIVE_ENDED,
} crdi_live_state;

/// How the run stands, also one that failed before it was ready.
typedef struct crdi_live_outcome {
    crdi_live_state state;
    crd_end end;       ///< from CRDI_LIVE_STOPPING on
    char message[512]; ///< why it ended, ""
    bool asks;         ///< nothing has begun, and nothing does before CRDI_LIVE_PREPARE
} crdi_live_outcome;
void crdi_live_get_outcome(const crdi_live* l, crdi_live_outcome* out); ///< any thread

typedef struct crdi_live_unit_state {
    int64_t steps;
    int64_t ns_last, ns_worst; ///< of a step
    int64_t late;              ///< cycles that went on without it (budget)
    bool is_late, failed;
    bool has_link;
    crd_link_stats link;
} crdi_live_unit_state;

/// NaN where a link has no such thing.
typedef struct crdi_live_link_state {
    double value;    ///< at the input
    double defect;   ///< of the last step, in the input's unit
    double scale;    ///< that it is small against
    double relative; ///< RMS over the run / scale
    double age;      ///< s, of the sample in use
    int k;           ///< latency in macro steps, -1: no coupling
    double error;    ///< of the coupling's estimate where the truth is known
    int64_t sent, lost, late, duplicates, jumps; ///< of a coupling
    int active;                                  ///< crd_active
    char algorithm[32]; ///< of a coupling: its label; else the predictor in use; ""
    int fault;          ///< crdi_fault_kind in effect, 0: none
    double fault_left;  ///< s until it ends, NaN: until it is cleared
} crdi_live_link_state;

typedef struct crdi_live_bond_state {
    double power, residual; ///< W, of the last step
    double energy, work;    ///< J so far
    double relative;
} crdi_live_bond_state;

/// At the end of the last macro step.
typedef struct crdi_live_port_state {
    double tank, dumped; ///< J: stored; thrown away so far
    double predicted;    ///< macro steps in which the commands on top acted; NaN: it has none
} crdi_live_port_state;

typedef struct crdi_live_status {
    int64_t number; ///< of the snapshot
    crdi_live_state state;
    crd_end end; ///< from CRDI_LIVE_STOPPING on
    double time, h;
    int64_t cycles;
    int64_t elapsed_ns; ///< on the clock since the first step
    double speed;       ///< simulated / elapsed over the last snapshots
    int64_t rows, warnings;
    char message[512];           ///< why it ended, ""
    char guard[512];             ///< what the guard says about a loop, ""
    crd_pace_report pace;        ///< .on false: not paced; busy is counted all the same
    crdi_live_unit_state* units; ///< (unit_count)
    crdi_live_link_state* links; ///< (link_count)
    crdi_live_bond_state* bonds; ///< (bond_count)
    crdi_live_port_state* ports; ///< (port_count)
} crdi_live_status;

/// The newest snapshot, the same again if there is no newer one (compare `number`); NULL before the
/// first. Valid until the next call.
const crdi_live_status* crdi_live_get_status(crdi_live* l);

typedef struct crdi_live_event {
    int64_t number; ///< from 1
    double time;
    int kind; ///< crd_event_kind
    char text[256];
} crdi_live_event;
/// The event behind number `after`, false: there is none yet. Old ones are forgotten (some 1000).
bool crdi_live_get_event(crdi_live* l, int64_t after, crdi_live_event* out);

// ---- steering: the watcher's thread -------------------------------------------------------------

typedef enum crdi_live_action {
    CRDI_LIVE_START, ///< also: go on after a pause
    CRDI_LIVE_PAUSE, ///< between two steps; refused if a real unit takes part, which does not stand
                     ///< still
    CRDI_LIVE_STEP,  ///< `count` steps, then pause
    CRDI_LIVE_STOP,
    CRDI_LIVE_SET,    ///< `name` = `text`
    CRDI_LIVE_COUPLE, ///< the connection to input `name` gets the element `text`: a name ("eros")
                      ///< or JSON
    CRDI_LIVE_FAULT,  ///< at input `name`
    CRDI_LIVE_CLEAR,  ///< end the fault at input `name`; "" all
    CRDI_LIVE_MARK,   ///< note `text` in the record
    /// Everything stops: whoever waits gives up, the run ends as failed, all benches go to their
    /// safe state. At any time, also while benches are conditioned.
    CRDI_LIVE_EMERGENCY,
    CRDI_LIVE_TAKE,    ///< the seat of unit `name` is this page's, from when no other has it
    CRDI_LIVE_RELEASE, ///< nobody's
    CRDI_LIVE_DRIVE,   ///< sign of life at the seat of unit `name`, with `values` or without
    CRDI_LIVE_GO,      ///< lever `name` ("desk.speed_ref") to `value` (NaN: it stays) at `rate`
    /// What waits to be prepared begins (`ask` of the options); after its end: it is wanted again.
    CRDI_LIVE_PREPARE,
    /// Output `name` of a bench: `values` are reference and measured value of two points, `text`
    /// is who did it; into the file of the options.
    CRDI_LIVE_CALIBRATE,
} crdi_live_action;

/// What happens to the value of an input, from now on for `duration`.
typedef enum crdi_fault_kind {
    CRDI_FAULT_NONE,
    CRDI_FAULT_HOLD,   ///< stuck at what it is
    CRDI_FAULT_VALUE,  ///< stuck at `value`
    CRDI_FAULT_OFFSET, ///< + `value`
    CRDI_FAULT_GAIN,   ///< * `value`
    CRDI_FAULT_NOISE,  ///< + normal noise of standard deviation `value`
    CRDI_FAULT_DROP,   ///< a part `value` (0 .. 1) of the samples of its coupling is lost
    CRDI_FAULT_DELAY,  ///< the samples of its coupling come `value` s later
    CRDI_FAULT_KINDS,
} crdi_fault_kind;
const char* crdi_fault_name(crdi_fault_kind kind); ///< "hold", ... "" beyond

typedef struct crdi_live_command {
    crdi_live_action action;
    int64_t count;
    const char *name, *text;
    crdi_fault_kind fault;
    double value, duration; ///< duration s of simulated time; NaN: until it is cleared
    const double* values;   ///< CRDI_LIVE_DRIVE: of all levers
    int value_count;        ///< 0: none
    double rate;            ///< CRDI_LIVE_GO, 1/s; NaN: the fastest
    int64_t page;           ///< whose command it is, > 0
    const char* who;        ///< for the record: "page 127.0.0.1"; NULL: nobody is named
} crdi_live_command;

/// Checks the command and hands it over; nothing of it is kept. CRD_OK: it takes effect before the
/// next step, at once if the run stands still; it may still fail in the unit, which becomes an
/// event. CRD_E_NOT_FOUND, CRD_E_RANGE, CRD_E_UNSUPPORTED, CRD_E_STATE (ended, read-only, too many
/// waiting) with a sentence in the live's context `crdi_live_error`.
crd_status crdi_live_send(crdi_live* l, const crdi_live_command* c);
/// A page is closed: seats that it has are free for others.
void crdi_live_leave(crdi_live* l, int64_t page);
const char* crdi_live_error(const crdi_live* l);
