/// A run that is watched and steered while it runs.
///
/// The cycle thread writes rows of values, snapshots of the state and events into lock-free places
/// that were made before the run; one other thread, the watcher (a page's server), reads them and
/// sends commands back, which take effect between two steps. Neither waits for the other: a watcher
/// that is slow loses rows, which are counted. Everything that takes memory (parsing an element,
/// making it) is done by the watcher's calls; the cycle thread only exchanges pointers.
/// Each change becomes an event of the record.
#pragma once
#include "cardan/board.h"
#include "cardan/master.h"
#include "cardan/pace.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct crd_live crd_live; ///< opaque

typedef struct crd_live_options {
    bool wait;        ///< the run stands still before its first step until CRD_LIVE_START
    bool read_only;   ///< commands are refused, except none at all
    size_t ring_rows; ///< 0: some 4 MiB
    /// Least time on the clock between two rows, s: runs that are faster than anybody can look at
    /// leave rows out (not counted as lost). Default 0.5 ms.
    double row_gap;
    double status_gap; ///< s on the clock between two snapshots; default 0.05
} crd_live_options;

CRD_API crd_live_options crd_live_defaults(void);
/// Between crd_master_create and crd_master_initialize; one for a master. Destroy it after
/// crd_master_finish and before crd_master_destroy, when no watcher uses it any more.
CRD_API crd_status crd_live_create(crd_context* ctx, crd_master* m, const crd_live_options* opt,
                                   crd_live** out);
CRD_API void crd_live_destroy(crd_live* l);

// ---- what there is; const from the end of crd_master_initialize on (crd_live_is_ready), but
// title, file, results and read_only from the creation on
// ------------------------------------------------

/// A number that is watched: all numeric signals that would be recorded, whether they are or not;
/// at most CRD_LIVE_SIGNALS.
enum { CRD_LIVE_SIGNALS = 2048 };
typedef struct crd_live_signal {
    const char *name, *unit, *description;
    int owner; ///< unit of the system
    crd_type type;
} crd_live_signal;

/// Something that can be set while the run goes: a tunable parameter, an input without connection.
typedef struct crd_live_setting {
    const char *name, *unit, *description; ///< "mass1.m"
    int owner;
    crd_type type;
    double start;    ///< value at the start of the run, NaN: not known
    double min, max; ///< -INFINITY, INFINITY: none
    bool input;
} crd_live_setting;

/// A connection, one element of it if it is an array.
typedef struct crd_live_link {
    const char *from, *to, *unit; ///< "motor.torque", "shaft.M", unit at the input
    int from_unit, to_unit;
    int coupling;    ///< index among the couplings of the report, -1: none
    bool can_fault;  ///< real-valued
    int from_signal; ///< index of the output among the signals, -1: it is not watched
} crd_live_link;

typedef struct crd_live_unit {
    const char *name, *kind;
    bool remote, real;
    double step, budget; ///< s; budget NaN: none
} crd_live_unit;

typedef struct crd_live_bond {
    const char *name, *action, *flow;
} crd_live_bond;

typedef struct crd_live_info {
    const char *title, *file, *results; ///< "" none
    double start, stop, step;           ///< stop INFINITY: open end
    double factor;                      ///< 0: as fast as possible
    bool wait, read_only;
    const crd_live_unit* units;
    int unit_count;
    const crd_live_signal* signals;
    int signal_count;
    int signals_left_out; ///< beyond CRD_LIVE_SIGNALS
    const crd_live_setting* settings;
    int setting_count;
    const crd_live_link* links;
    int link_count;
    const crd_live_bond* bonds;
    int bond_count;
} crd_live_info;

CRD_API bool crd_live_is_ready(const crd_live* l); ///< any thread
CRD_API const crd_live_info* crd_live_get_info(const crd_live* l);

// ---- test benches: there from the creation on, also while units are initialised and come to rest
// --

/// Units with a board (cardan/board.h).
CRD_API int crd_live_board_count(const crd_live* l);
CRD_API const char* crd_live_board_unit(const crd_live* l, int board); ///< name of its unit
CRD_API void crd_live_read_board(const crd_live* l, int board, crd_board_state* out);

// ---- the watcher's side: one thread -------------------------------------------------------------

typedef struct crd_live_row {
    double time; ///< simulated, s
    int64_t cycle;
    double values[]; ///< (signal_count)
} crd_live_row;

CRD_API const crd_live_row* crd_live_read(crd_live* l); ///< oldest row, NULL: none
CRD_API void crd_live_release(crd_live* l);             ///< gives it back
CRD_API int64_t crd_live_lost(const crd_live* l);       ///< rows that found no room

typedef enum crd_live_state {
    CRD_LIVE_STARTING, ///< initialising
    CRD_LIVE_WAITING,  ///< for CRD_LIVE_START
    CRD_LIVE_RUNNING,
    CRD_LIVE_PAUSED,
    CRD_LIVE_STOPPING, ///< the run is over, units come to rest: benches ramp down
    CRD_LIVE_ENDED,
} crd_live_state;

/// How the run stands, also one that failed before it was ready.
typedef struct crd_live_outcome {
    crd_live_state state;
    crd_end end;       ///< from CRD_LIVE_STOPPING on
    char message[512]; ///< why it ended, ""
} crd_live_outcome;
CRD_API void crd_live_get_outcome(const crd_live* l, crd_live_outcome* out); ///< any thread

typedef struct crd_live_unit_state {
    int64_t steps;
    int64_t ns_last, ns_worst; ///< of a step
    int64_t late;              ///< cycles that went on without it (budget)
    bool is_late, failed;
    bool has_link;
    crd_link_stats link;
} crd_live_unit_state;

/// NaN where a link has no such thing.
typedef struct crd_live_link_state {
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
    int fault;          ///< crd_fault_kind in effect, 0: none
    double fault_left;  ///< s until it ends, NaN: until it is cleared
} crd_live_link_state;

typedef struct crd_live_bond_state {
    double power, residual; ///< W, of the last step
    double energy, work;    ///< J so far
    double relative;
} crd_live_bond_state;

typedef struct crd_live_status {
    int64_t number; ///< of the snapshot
    crd_live_state state;
    crd_end end; ///< from CRD_LIVE_STOPPING on
    double time, h;
    int64_t cycles;
    int64_t elapsed_ns; ///< on the clock since the first step
    double speed;       ///< simulated / elapsed over the last snapshots
    int64_t rows, warnings;
    char message[512];          ///< why it ended, ""
    crd_pace_report pace;       ///< .on false: not paced; busy is counted all the same
    crd_live_unit_state* units; ///< (unit_count)
    crd_live_link_state* links; ///< (link_count)
    crd_live_bond_state* bonds; ///< (bond_count)
} crd_live_status;

/// The newest snapshot, the same again if there is no newer one (compare `number`); NULL before the
/// first. Valid until the next call.
CRD_API const crd_live_status* crd_live_get_status(crd_live* l);

typedef struct crd_live_event {
    int64_t number; ///< from 1
    double time;
    int kind; ///< crd_event_kind
    char text[256];
} crd_live_event;
/// The event behind number `after`, false: there is none yet. Old ones are forgotten (some 1000).
CRD_API bool crd_live_get_event(crd_live* l, int64_t after, crd_live_event* out);

// ---- steering: the watcher's thread -------------------------------------------------------------

typedef enum crd_live_action {
    CRD_LIVE_START, ///< also: go on after a pause
    CRD_LIVE_PAUSE, ///< between two steps; refused if a real unit takes part, which does not stand
                    ///< still
    CRD_LIVE_STEP,  ///< `count` steps, then pause
    CRD_LIVE_STOP,
    CRD_LIVE_SET,    ///< `name` = `text`
    CRD_LIVE_COUPLE, ///< the connection to input `name` gets the element `text`: a name ("eros") or
                     ///< JSON
    CRD_LIVE_FAULT,  ///< at input `name`
    CRD_LIVE_CLEAR,  ///< end the fault at input `name`; "" all
    CRD_LIVE_MARK,   ///< note `text` in the record
    /// Everything stops: whoever waits gives up, the run ends as failed, all benches go to their
    /// safe state. At any time, also while benches are conditioned.
    CRD_LIVE_EMERGENCY,
} crd_live_action;

/// What happens to the value of an input, from now on for `duration`.
typedef enum crd_fault_kind {
    CRD_FAULT_NONE,
    CRD_FAULT_HOLD,   ///< stuck at what it is
    CRD_FAULT_VALUE,  ///< stuck at `value`
    CRD_FAULT_OFFSET, ///< + `value`
    CRD_FAULT_GAIN,   ///< * `value`
    CRD_FAULT_NOISE,  ///< + normal noise of standard deviation `value`
    CRD_FAULT_DROP,   ///< a part `value` (0 .. 1) of the samples of its coupling is lost
    CRD_FAULT_DELAY,  ///< the samples of its coupling come `value` s later
    CRD_FAULT_KINDS,
} crd_fault_kind;
CRD_API const char* crd_fault_name(crd_fault_kind kind); ///< "hold", ... "" beyond

typedef struct crd_live_command {
    crd_live_action action;
    int64_t count;
    const char *name, *text;
    crd_fault_kind fault;
    double value, duration; ///< duration s of simulated time; NaN: until it is cleared
    const char* who;        ///< for the record: "page 127.0.0.1"; NULL: nobody is named
} crd_live_command;

/// Checks the command and hands it over; nothing of it is kept. CRD_OK: it takes effect before the
/// next step, at once if the run stands still; it may still fail in the unit, which becomes an
/// event. CRD_E_NOT_FOUND, CRD_E_RANGE, CRD_E_UNSUPPORTED, CRD_E_STATE (ended, read-only, too many
/// waiting) with a sentence in the live's context `crd_live_error`.
CRD_API crd_status crd_live_send(crd_live* l, const crd_live_command* c);
CRD_API const char* crd_live_error(const crd_live* l);

#ifdef __cplusplus
}
#endif
