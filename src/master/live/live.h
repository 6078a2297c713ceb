// The inside of a run that is watched; for live*.c and their tests.
//
// Who writes what: the tables are made by prepare and const afterwards; the cycle thread writes
// rows, snapshots and what faults do; the watcher's thread prepares orders, and frees what comes
// back. Rings, one exchange of a number and slots with numbers of their own are all that is shared.
#pragma once
#include "master/master.h"
#include "shared/live.h"

#include <stdatomic.h>

enum {
    CRDI_LIVE_SETTINGS = 1024,
    CRDI_LIVE_ORDERS = 64,    // that wait
    CRDI_LIVE_EVENTS = 1024,  // that are kept, a power of two
    CRDI_LIVE_TEXT = 256,     // bytes of an event's text
    CRDI_LIVE_FLIGHTS = 4096, // samples that a delay can hold back, of one coupling
    CRDI_LIVE_SPEEDS = 16,
};

/// An event as words, so that a torn one can be told from a whole one without a lock.
typedef struct crdi_live_slot {
    _Atomic uint64_t turn; // 2 number: whole; 2 number - 1: being written; 0: never used
    _Atomic uint64_t words[2 + CRDI_LIVE_TEXT / 8]; // time, kind, text
} crdi_live_slot;

/// A watched value.
typedef struct crdi_live_source {
    const void* from; // double or int64_t
    bool real, is_unsigned;
} crdi_live_source;

/// What is set together: one variable of a unit.
typedef struct crdi_live_knob {
    int member;
    int32_t variable;
    crd_binding* binding;
    crd_values values; // run: as the unit has them, as far as it is known
    bool has_dimension;
    crd_dimension dimension;
    const crd_label* items; // of an enumeration
    int item_count;
} crdi_live_knob;

/// One element of it.
typedef struct crdi_live_place {
    int knob;
    int element;
    bool known;      // the watcher's: `now` is what it was set to
    double real;     // the watcher's
    int64_t integer; // the watcher's
} crdi_live_place;

/// What a link is made of.
typedef struct crdi_live_wire {
    const crdi_connection* link;
    crdi_coupled* couple; // NULL: none
    const void* to;
    crd_type type;
    const char* over; // "fault at shaft.M is over"
    char label[40];   // the watcher's: of the element, once its order is obeyed
} crdi_live_wire;

/// What happens to an input; one for each link.
typedef struct crdi_fault {
    crdi_fault_kind kind; // run: CRDI_FAULT_NONE: nothing
    crd_master* m;
    crdi_member* member;
    int slot; // in the real inputs
    int64_t number;
    double value;
    double end;                    // run: s; INFINITY: until it is cleared
    double applied;                // run: what the unit got last
    double clean, clean_slopes[2]; // run: while it takes its inputs
    struct crdi_fault* next;       // run: at the same member
} crdi_fault;

/// A command that was checked. Everything it needs is in it.
typedef struct crdi_live_order {
    crdi_live_action action;
    int64_t count;
    int setting, link; // link -1: all
    crdi_fault_kind fault;
    int64_t number;
    double value, duration;
    double real;
    int64_t integer;
    crd_coupling* element;
    crd_element* description;
    double latency;            // of the element, as in crdi_estimator
    char text[CRDI_LIVE_TEXT]; // the event, "": none
} crdi_live_order;

/// What the cycle thread has no use for any more.
typedef struct crdi_leftover {
    crd_coupling* element;
    crd_element* description;
    crd_learn_client* learn;
    int refused; // setting that the unit did not take, -1: none
} crdi_leftover;

/// An emergency and the end of the run: the one that comes first counts.
typedef enum crdi_alarm { CRDI_CALM, CRDI_ALARMED, CRDI_OVER } crdi_alarm;

typedef struct crdi_speed {
    double time;
    int64_t ns;
} crdi_speed;

struct crdi_live {
    crd_context* owner;
    crd_context* ctx; // the watcher's; the master's in the end, for the elements that it keeps
    crd_master* m;
    crdi_live_options opt;
    crd_arena arena;
    atomic_bool ready;

    crdi_live_info info;
    crdi_live_link* links;
    crdi_live_source* sources; // like info.signals
    crdi_live_knob* knobs;
    int knob_count;
    crdi_live_place* places; // like info.settings
    crdi_live_wire* wires;   // like info.links
    crdi_fault* faults;      // run: like info.links
    bool cannot_pause;       // a unit does not stand still: which
    const char* restless;

    crdi_ring* rows;
    atomic_llong lost;
    int64_t row_gap, status_gap; // ns
    int64_t row_count;           // run
    int64_t row_ns, row_cycle;   // run: of the newest row; cycle -1: none
    int64_t status_ns;           // run: of the newest snapshot
    int64_t cycle_ns;            // run: end of the last cycle, 0: the run stood still since
    crd_histogram busy;          // run: of cycles without a pace

    crdi_live_status shots[3];
    atomic_int middle; // number of the snapshot between the two sides, + 4: it is newer
    int back, front;   // the cycle thread's; the watcher's
    int64_t number;    // run: of the newest snapshot
    int64_t first_ns;  // run: of the first step, 0: it has not come
    int64_t stands_ns; // run: when it last came to stand; that time is none of its steps
    crdi_speed speeds[CRDI_LIVE_SPEEDS]; // run
    int64_t speed_count;                 // run

    _Atomic uint64_t event_count;
    crdi_live_slot* events;
    int64_t overruns_noted, overrun_cycle; // the watcher's: so far; cycle of the last one

    crdi_seat** seats;         // (info.seat_count)
    const crdi_board** boards; // (board_count)
    const char** board_units;  // (board_count)
    int board_count;

    crdi_live_state state;         // run
    atomic_int state_seen;         // the same for the watcher
    crdi_live_outcome outcomes[2]; // run: STOPPING and ENDED, each written before it is seen
    atomic_bool closed;            // no order will be applied any more
    atomic_int alarm;              // crdi_alarm
    atomic_int wishes;             // CRDI_LIVE_PREPARE so far: 1 to begin, 2 to begin again
    char alarmed_by[96];           // the watcher's, before `alarm` says so
    int64_t steps_left;            // run: until a pause, -1: any number
    int fault_count;               // run: in effect
    int disturbed;                 // run: of them, at inputs
    crdi_ring *orders, *leftovers;
    crdi_live_order* postponed; // run: of units that are late
    int postponed_count;        // run
    int64_t fault_number;       // the watcher's
};

// live_info.c
crd_status crdi_live_introduce(crdi_live* l); ///< before the initialisation
crd_status crdi_live_describe(crdi_live* l);
void crdi_live_free_knobs(crdi_live* l);
// live_status.c
crd_status crdi_live_make_snapshots(crdi_live* l);
void crdi_live_snapshot(crdi_live* l, int64_t now); ///< a snapshot
/// What the input is, or will be in the step that begins now; NaN: no number.
double crdi_live_value(const crdi_live_wire* w);
const char* crdi_live_reason(const crd_master* m); ///< why the run ended, ""
// live_events.c
/// Whole characters, room - 1 bytes at most; what is none, or controls something, is replaced. The
/// rest of `out` is zero.
void crdi_live_copy_text(char* out, size_t room, const char* text);
void crdi_live_put_event(crdi_live* l, crd_event_kind kind, double time, const char* text);
// live_order.c: the watcher's side of commands
void crdi_live_free_returned(crdi_live* l); ///< frees what came back
void crdi_live_discard(crdi_live* l);       ///< orders that nobody will obey
// live_obey.c: the cycle thread's side
/// `*any`: there were some. Fails if a unit crashed over one.
crd_status crdi_live_apply_commands(crdi_live* l, bool* any);
void crdi_live_refuse_rest(crdi_live* l); ///< orders that came too late become events
// live_fault.c
void crdi_fault_begin(crdi_live* l, const crdi_live_order* o, double t);
void crdi_fault_clear(crdi_live* l, int link);   ///< -1: all
void crdi_faults_expire(crdi_live* l, double t); ///< those whose time is over
