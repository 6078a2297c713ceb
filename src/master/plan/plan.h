// What a run is: its units, connections, grid of times and phases. Made by create, const
// afterwards. What changes stands elsewhere: a member and a connection know where.
#pragma once
#include "cardan/master.h"
#include "master/connection/connection.h"
#include "shared/system.h"

/// What changes about a unit in the run. Each group has one writer.
typedef struct crdi_member_state {
    // the step
    int64_t stamp;     // tick that its outputs belong to, if predictions need it
    int64_t events;    // those of the unit that are known
    crd_status status; // of its last step, looked at after the batch
    int crash_signal;  // 0 unless status is CRD_E_CRASH
    void* state;       // saved at the beginning of the step, NULL: never
    bool alive;        // instantiated, terminate is due
    bool crashed;      // not to be called any more
    bool gave_none;    // an output that is no number or infinite, which was said
    bool wants_stop;   // of its own thread, where it has one
    bool left;         // its thread did not come back: not to be touched
    int parts;         // steps of the unit in one step of the run
    // the account: of the measured steps
    int64_t measured;
    int64_t ns_set, ns_step, ns_get, ns_worst;
    int64_t ns_last; // of the newest of them, all three together
    int64_t waited;  // of unit->waited, what is accounted for
    // others
    int64_t jumps;             // of its own thread: events and gaps
    struct crdi_fault* faults; // at its inputs, NULL: none; live/faults.c
    int64_t remarks;           // of the unit, those that are events
} crdi_member_state;

/// A unit in the run, and where its values stand.
typedef struct crdi_member {
    crd_unit* unit;
    crd_binding *in, *out; // connected inputs, connected outputs
    crd_values inputs, outputs;
    double* slopes[2]; // derivatives of the real inputs, NULL if none is used
    double* rates[2];  // derivatives of the real outputs, NULL: not needed or not given
    double* middles;   // real outputs at mid-step, NULL: not needed
    int* flows;        // predictions into it: (flow_count), indices
    int* fed;          // predictions out of it: (fed_count), indices
    int flow_count, fed_count;
    int slope_order;                // of `slopes` that are set
    int phase;                      // in which it advances
    struct crdi_paired_side* ports; // of pairs, NULL: none
    const crdi_network* network;    // a loop that it is part of and that has a level, NULL: none
    bool shows_rates;               // somebody outside of it needs derivatives of its outputs
    bool predicted, predicts;       // some input, some output is predicted, not by a textbook
    bool through;                   // some output follows such an input without delay
    bool shown;                     // its outputs are those of the predicted inputs themselves
    bool feeds_flow;                // its outputs need a stamp
    bool pinned;                    // stays on the cycle thread
    bool async;                     // steps on a thread of its own (budget): step/async.c
    int64_t ticks;                  // length of its step in ticks
    double step;                    // s
    crdi_member_state* run;
} crdi_member;

/// All connections of one moment into one member, as rows of the lists of their kinds.
typedef struct crdi_feed {
    int member;
    crdi_rows rows[CRDI_KINDS];
} crdi_feed;

/// One stretch of a tick: first values move, then the units that are due advance, all at once.
/// `early` feeds move when the target's step begins (Jacobi), `late` ones just before it is
/// computed (Gauss-Seidel); the two differ only for units with a longer step than the tick.
typedef struct crdi_phase {
    int early_first, early_count; // feeds
    int late_first, late_count;   // feeds
    crdi_feed early, late;        // all of them as one, for when every unit is due
    int batch_first, batch_count; // members, in plan->batch
    int pinned_count;             // the first of them stay on the cycle thread
    int async_count;              // behind them: those with a budget, the shortest first
} crdi_phase;

/// The grid of times. A run whose step is controlled has none: one tick is one step, however long.
typedef struct crdi_times {
    double start, stop, tolerance; // tolerance NaN: the units' own
    double tick, last_tick;        // s; the last one may be shorter
    int64_t tick_count;
    int64_t row_every;     // ticks between rows
    int64_t longest_ticks; // of a member's step
    bool multirate;        // some member's step is longer than a tick
} crdi_times;

typedef struct crdi_plan {
    crd_context* ctx;
    crd_context* log; // over ctx: lines pass the events
    crd_arena* arena;
    crd_context* held; // over the arena: what is made in it is copied with the state of a run
    const crd_system* sys;
    crd_master_options opt;
    crd_unit_store* store;

    crdi_member* members;
    int member_count;
    const char** unit_names; // (member_count)
    double* outputs;         // real outputs of all members in a row
    size_t output_count;
    bool has_remote;  // some unit computes elsewhere
    bool has_remarks; // some unit may have something to say for the record
    int* refreshed;   // members whose outputs are evaluated again, in order
    int refresh_count;

    crdi_connection* connections;
    int connection_count, coupled_count;
    size_t connection_capacity;
    crdi_end* read; // outputs that are looked at here though nobody is connected to them
    int read_count;
    // connections into member i: into[into_first[i]] ... into[into_first[i + 1] - 1]; likewise out
    int *into, *into_first, *out_of, *out_of_first;

    crdi_times times;
    const struct crdi_step_rule* rule;     // how long steps are
    bool controlled, iterated, rolls_back; // what a step does
    bool estimated; // defects are monitored, and what they do to the outputs is worked out
    bool samples_middle;
    bool halves; // units go back in some steps, to see what their solvers miss
    bool paced;  // the run keeps the clock

    crdi_feed* feeds;
    crdi_phase* phases;
    int phase_count;
    int* batch; // members, by phase
} crdi_plan;

// units.c
crd_status crdi_plan_units(crdi_plan* plan, bool* wish); ///< opens them
/// What a unit says against a binding, if it was the unit and not the master; hands `st` back.
crd_status crdi_member_refused(crd_context* ctx, const crdi_member* p, crd_status st);
/// The sentence of `held`, if it was that which failed; hands `st` back.
crd_status crdi_held_failed(const crdi_plan* plan, crd_status st);
// names.c
/// "file:line: " for messages, "" if it came from nowhere.
const char* crdi_where(crd_place p, char* buffer, size_t size);
/// The place in front of the sentence that is there already; hands `st` back.
crd_status crdi_fail_at(crd_context* ctx, crd_status st, crd_place p);
/// "Float64"
const crd_variable* crdi_variable_at(const crdi_plan* plan, const crdi_end* e);
/// The variable that is really read: aliases share their value.
int32_t crdi_variable_read(const crd_unit* u, int32_t variable);
/// In a single FMU with --input, the recording that feeds it is not a result.
bool crdi_member_is_hidden(const crdi_plan* plan, int member);
/// Names of the values of an enumeration, in `room`; NULL: it is none, or out of memory (*count <
/// 0).
const crd_label* crdi_variable_labels(crd_arena* room, const crd_unit* u, int32_t variable,
                                      int* count);
/// "10 ms", with so many digits.
typedef struct crdi_duration {
    char text[40];
} crdi_duration;
crdi_duration crdi_duration_text(double s, int digits);
/// "unit.variable", and [3] for the third element of an array.
const char* crdi_end_name(const crdi_plan* plan, crd_arena* arena, const crdi_end* e);
/// The same for the record: in a single FMU, names go without the unit.
const char* crdi_end_short_name(const crdi_plan* plan, crd_arena* arena, const crdi_end* e);
/// As the connection is written; an element of a whole array has its number behind the name.
const char* crdi_end_written_name(const crdi_plan* plan, crd_arena* arena, const crdi_end* e,
                                  const char* written);
// connect.c: connections of the description, with all checks
crd_status crdi_plan_connect(crdi_plan* plan);
// times.c: the grid of times
crd_status crdi_plan_times(crdi_plan* plan);
/// The largest tick that a and b are both multiples of, 0 if there is none worth the name.
double crdi_common_tick(double a, double b);
// phases.c: what happens when; connections get their order
crd_status crdi_plan_phases(crdi_plan* plan);
// bind.c: bindings, room for values, slots of the connections
crd_status crdi_plan_bind(crdi_plan* plan);
/// Once units are initialised: some take derivatives of their inputs up to a lower order than they
/// said. What they get then, and what derivatives of their outputs are worth.
crd_status crdi_plan_lower_orders(crdi_plan* plan, bool* lowered);
// feeds.c: connections by kind, phase and target
void crdi_plan_kinds(crdi_plan* plan);
crd_status crdi_plan_feeds(crdi_plan* plan, crdi_connections* connections);
// graph.c: strongly connected components, Tarjan. Edges of node i are
// edge[first[i]] ... edge[first[i+1]-1]. component[i] numbers them in reverse topological order:
// an edge never goes to a higher number. Returns the number of components, or -1 out of memory.
int crdi_components(crd_context* ctx, int n, const int* first, const int* edge, int* component);
/// Finds the connections of a member, once they have their order.
crd_status crdi_plan_index(crdi_plan* plan);
/// Strongly connected components of the members, along the connections that are chosen.
typedef bool crdi_chooser(const crdi_plan* plan, const crdi_connection* k, const void* with);
int crdi_plan_components(const crdi_plan* plan, crdi_chooser* chooses, const void* with,
                         int* component);

/// Where an element of a binding's values stands.
static inline void* crdi_slot(const crd_values* v, crd_kind kind, int slot)
{
    return kind == CRD_REAL      ? (void*)&v->real[slot]
           : kind == CRD_INTEGER ? (void*)&v->integer[slot]
                                 : (void*)&v->bytes[slot];
}

/// What tells that outputs may have jumped.
static inline int64_t crdi_member_events(const crdi_member* p)
{
    return p->async ? p->run->jumps : p->unit->events;
}

/// A test bench, or what stands for one.
static inline bool crdi_member_is_hardware(const crdi_member* p)
{
    return crdi_unit_kind_of(p->unit->spec->source)->is_remote || p->unit->spec->standby.model;
}

static inline bool crdi_plan_has_hardware(const crdi_plan* plan)
{
    for (int i = 0; i < plan->member_count; i++) {
        if (crdi_member_is_hardware(&plan->members[i])) { return true; }
    }
    return false;
}

static inline bool crdi_member_saves(const crdi_member* p)
{
    return p->unit->info.flags & CRD_UNIT_CAN_SAVE;
}
