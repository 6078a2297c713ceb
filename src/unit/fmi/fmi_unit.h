// The inside of the FMU adapter: Co-Simulation, and what it shares with Model Exchange (unit/me).
#pragma once
#include <math.h>

#include "cardan/fmi.h"
#include "shared/base.h"
#include "unit/unit.h"

#define CRDI_COLD __attribute__((cold, noinline))

// Variables of a binding that follow each other and go through one FMI call.
typedef struct crdi_fmi_run {
    crd_type type;
    bool discrete;  // inputs that FMI 3 takes in event mode only
    bool negated;   // aliases of FMI 1 whose sign is the other one
    int32_t first;  // into refs
    int32_t count;  // references
    int32_t offset; // into the vector of the kind
    int32_t values; // elements
} crdi_fmi_run;

// Real inputs whose derivatives the unit takes; their place in the binding's real vector. FMI 1 and
// 2 Co-Simulation are told the derivatives, else the unit sets values along its own curves.
typedef struct crdi_fmi_curves {
    int32_t count;     // elements
    int32_t ref_count; // FMI 2: the same
    uint32_t* refs;    // (ref_count)
    int32_t* orders;   // FMI 2: (2 * count) count times 1, then count times 2
    int32_t* at;       // (count) into the real vector
    double* sign;      // (count) -1: a negated alias
    double* values;    // FMI 2: (2 * count) derivatives; own: (count) inputs at a time
    double* u[3];      // own: value and derivatives at the beginning of the step
    double* last;      // own: (count) inputs at the end of the step before
    int order;         // FMI 2: highest that was sent; own: 0 until derivatives follow a set
    int last_order;    // own: `order` of the step before
} crdi_fmi_curves;

// b->prepared
typedef struct crdi_fmi_prepared {
    bool plain_set, plain_get; // Float64 only, and nothing to remember
    uint32_t* refs;            // (count of the binding)
    size_t ref_count, value_count;

    crd_arena arena; // of all of it
    crdi_fmi_run* runs;
    int32_t run_count;
    const char** texts;       // (bytes_count)
    crd_fmi_binary* binaries; // (bytes_count)
    int32_t* orders;          // (ref_count) of output derivatives
    double* derivatives;      // (3 * ref_count): Model Exchange has outputs at three times in it
    int32_t* derivative_at;   // (derivative_count) into the real vector
    double* derivative_sign;  // -1: a negated alias
    uint32_t* derivative_refs;
    int32_t derivative_count;
    crdi_fmi_curves curves;
    bool has_discrete, only_inputs;
    crd_values flipped;             // negated aliases on their way in, NULL: there are none
    uint32_t sent;                  // epoch in which `last` was sent: then the FMU has it
    crd_values last;                // discrete inputs as they were sent
    struct crdi_fmi_prepared* next; // in the unit's list of those with curves
} crdi_fmi_prepared;

typedef struct crdi_fmi_unit {
    crd_unit base;
    // what a step touches
    crd_fmi* fmi;      // NULL until instantiated and after a crash
    double next_event; // as the FMU said
    double now;        // between steps: where the FMU is
    double step_begin; // where the derivatives of inputs stand
    crd_status intermediate_status;
    bool no_rollback;
    bool was_set;    // inputs, since initialization mode was entered
    bool event_mode; // in use: FMI 3 Co-Simulation, and Model Exchange
    bool exchange;   // Model Exchange
    bool own_curves; // the unit sets inputs along their curves: not Co-Simulation of FMI 1 and 2
    bool changed; // Model Exchange: an input has another value than at the end of the step before
    bool jumped;  // by more than `jump`
    bool retries; // FMI 2: its state is saved before each step, which may be tried again
    bool shares_fmu; // it belongs to a store
    double jump;     // of the size of the value

    crd_fmu* fmu;
    const crd_fmu_description* d;
    crd_variable* variables; // own copy with sizes of the settings, NULL: the FMU's
    uint32_t* intermediate;  // references of inputs that are set inside steps
    uint32_t intermediate_count;
    uint32_t reserve;          // elements that a call may have
    crdi_fmi_prepared* curved; // bindings with own curves
    /// In event mode, until nothing changes any more; then back to where steps are made.
    crd_status (*settle)(struct crdi_fmi_unit* u);
    uint32_t epoch;        // changes when the FMU forgets what was set
    uint32_t discards;     // so far
    uint64_t sent;         // how often discrete inputs were sent
    const char* last_call; // while there is no instance
    void* before;          // that state
    uint32_t* refs;        // for directional derivatives
    size_t ref_capacity;
} crdi_fmi_unit;

// prepare.c
crd_status crdi_fmi_unit_prepare(crd_unit* unit, crd_binding* b);
void crdi_fmi_unit_unprepare(crd_unit* unit, crd_binding* b);
// transfer.c
crd_status crdi_fmi_unit_set(crd_unit* unit, const crd_binding* b, const crd_values* v);
crd_status crdi_fmi_unit_get(crd_unit* unit, const crd_binding* b, crd_values* v);
crd_status crdi_fmi_unit_set_derivatives(crd_unit* unit, const crd_binding* b,
                                         const double* const* d, int order);
crd_status crdi_fmi_unit_get_derivatives(crd_unit* unit, const crd_binding* b, int order,
                                         double* d);
// Model Exchange: remembers the inputs at the end of a step; at the beginning of the next, or when
// the binding goes, sees whether they are others. Not when they are set, as that may be several
// times between two steps.
void crdi_fmi_unit_keep_inputs(crdi_fmi_unit* u);
void crdi_fmi_unit_compare_inputs(crdi_fmi_unit* u, const crdi_fmi_prepared* p);
// Sets all curves to their values at time t.
crd_status crdi_fmi_unit_move_inputs(crdi_fmi_unit* u, double t);
// fmi_unit.c: in event mode, until nothing changes any more; then step mode
crd_status crdi_fmi_unit_settle(crdi_fmi_unit* u);
// The FMU becomes the unit's, or is closed, unless it belongs to a store.
crd_status crdi_fmi_unit_create(crd_context* ctx, const crd_unit_spec* spec, crd_fmu* fmu,
                                bool shares_fmu, crd_unit** out);

// The state of a unit of Co-Simulation as bytes that outlive its process: `*state` NULL or as of
// the call before, freed as states are; `*size` of the bytes, CRD_E_RANGE: more than there is room.
bool crdi_fmi_unit_can_keep(const crd_unit* unit);
crd_status crdi_fmi_unit_keep(crd_unit* unit, void** state, uint8_t* bytes, size_t room,
                              size_t* size);
crd_status crdi_fmi_unit_resume(crd_unit* unit, const uint8_t* bytes, size_t size);

// orders.c: out of initialization mode, and finds out which derivatives of inputs the FMU takes
crd_status crdi_fmi_unit_exit_asking(crdi_fmi_unit* u);

// common.c
void crdi_fmi_unit_init(crdi_fmi_unit* u, crd_context* ctx, const crd_unit_spec* spec, crd_fmu* fmu,
                        bool shares_fmu);
void crdi_fmi_unit_clear(crdi_fmi_unit* u); // all but `u` itself
// Fills in what does not depend on the interface.
void crdi_fmi_unit_describe(crdi_fmi_unit* u, const char* kind);
crd_status crdi_fmi_unit_terminate(crd_unit* unit);
void crdi_fmi_unit_abandon(crd_unit* unit);
crd_status crdi_fmi_unit_directional(crd_unit* unit, const int32_t* unknowns, int nu,
                                     const int32_t* knowns, int nk, const double* seed,
                                     double* result);
int32_t crdi_fmi_unit_find(const crd_unit* unit, const char* name);
extern const crd_unit_name_ops crdi_fmi_unit_names;
const char* crdi_fmi_unit_last_call(const crd_unit* unit);

// What both kinds have in common of the table of functions.
#define CRDI_FMI_UNIT_OPS                                                                          \
    .set = crdi_fmi_unit_set, .get = crdi_fmi_unit_get, .terminate = crdi_fmi_unit_terminate,      \
    .find = crdi_fmi_unit_find, .names = &crdi_fmi_unit_names, .abandon = crdi_fmi_unit_abandon,   \
    .last_call = crdi_fmi_unit_last_call

// The FMU's next event is what it said, if that is still to come.
static inline void crdi_fmi_unit_tell_event(crdi_fmi_unit* u)
{
    u->base.next_event = u->next_event > u->now ? u->next_event : INFINITY;
}

static inline uint32_t crdi_fmi_unit_reference(const crd_unit* u, int32_t variable)
{
    return u->info.variables[crdi_unit_canonical(u, variable)].reference;
}
