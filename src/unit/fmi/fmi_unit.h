// The inside of the FMU adapter.
#pragma once
#include "cardan/fmi.h"
#include "unit/unit.h"

#define CRDI_COLD __attribute__((cold, noinline))

// Variables of a binding that follow each other and go through one FMI call.
typedef struct crdi_fmi_run {
    crd_type type;
    bool discrete;  // inputs that FMI 3 takes in event mode only
    int32_t first;  // into refs
    int32_t count;  // references
    int32_t offset; // into the vector of the kind
    int32_t values; // elements
} crdi_fmi_run;

// Real inputs whose derivatives the FMU takes; their place in the binding's real vector.
typedef struct crdi_fmi_curves {
    int32_t count;     // elements
    int32_t ref_count; // FMI 2: the same
    uint32_t* refs;    // FMI 2: CRD_MODEL_MAX_ORDER times, one set per order
    int32_t* orders;   // FMI 2, like refs
    int32_t* at;       // (count) into the real vector
    double* values;    // FMI 2: (2 * count) derivatives; FMI 3: (count) inputs at a time
    double* u[3];      // FMI 3: value and derivatives at the beginning of the step
    int order;         // FMI 2: highest that was sent; FMI 3: 0 until derivatives follow a set
} crdi_fmi_curves;

// b->prepared
typedef struct crdi_fmi_prepared {
    bool plain_set, plain_get; // Float64 only, and nothing to remember
    uint32_t* refs;            // (count of the binding)
    size_t ref_count, value_count;

    crdi_arena arena; // of all of it
    crdi_fmi_run* runs;
    int32_t run_count;
    const char** texts;       // (bytes_count)
    crd_fmi_binary* binaries; // (bytes_count)
    int32_t* orders;          // (ref_count) of output derivatives
    double* derivatives;      // (ref_count)
    int32_t* derivative_at;   // (derivative_count) into the real vector
    uint32_t* derivative_refs;
    int32_t derivative_count;
    crdi_fmi_curves curves;
    bool has_discrete;
    uint32_t sent;                  // epoch in which `last` was sent: then the FMU has it
    crd_values last;                // discrete inputs as they were sent
    struct crdi_fmi_prepared* next; // in the unit's list of those with curves
} crdi_fmi_prepared;

typedef struct crdi_fmi_unit {
    crd_unit base;
    // what a step touches
    crd_fmi* fmi; // NULL until instantiated and after a crash
    double next_event;
    double step_begin; // where the derivatives of inputs stand
    crd_status intermediate_status;
    bool no_rollback;
    bool event_mode; // FMI 3, in use

    crd_fmu* fmu;
    bool shares_fmu; // it belongs to a store
    const crd_fmu_description* d;
    crd_variable* variables; // own copy with sizes of the settings, NULL: the FMU's
    uint32_t* intermediate;  // references of inputs that are set inside steps
    size_t intermediate_count;
    crdi_fmi_prepared* curved; // bindings with curves, FMI 3
    uint32_t epoch;            // changes when the FMU forgets what was set
    const char* last_call;     // while there is no instance
    size_t reserve;            // elements that a call may have
    uint32_t* refs;            // for directional derivatives
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
// Sets all curves to their values at time t.
crd_status crdi_fmi_unit_move_inputs(crdi_fmi_unit* u, double t);
// fmi_unit.c: in event mode, until nothing changes any more; then step mode
crd_status crdi_fmi_unit_settle(crdi_fmi_unit* u);

static inline uint32_t crdi_fmi_unit_reference(const crd_unit* u, int32_t variable)
{
    return u->info.variables[crdi_unit_canonical(u, variable)].reference;
}
