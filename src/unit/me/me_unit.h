// The inside of a unit that integrates an FMU for Model Exchange.
//
//   me_unit.c   life, the step from event to event, saved states
//   model.c     the FMU as a right-hand side and as event indicators
//   jacobian.c  structure and values of the Jacobian
//   cvode.c     steps by CVODE: BDF and Adams
//   bridge.c    one step between two jumps of held inputs
//   fixed.c     steps of fixed length: Euler and Runge-Kutta
#pragma once
#include "unit/fmi/fmi_unit.h"

enum { CRDI_ME_TEXT = 256 };

// Where the Jacobian of the right-hand side can have entries, column by column, and which columns
// share no row and so are worked out together (Curtis, Powell, Reid 1974).
typedef struct crdi_me_pattern {
    bool known;     // else every entry, and each column for itself
    int32_t* first; // (n + 1)
    int32_t* rows;  // ascending in each column, with the diagonal
    int32_t group_count;
    int32_t* group_first; // (group_count + 1)
    int32_t* columns;     // (n)
} crdi_me_pattern;

typedef struct crdi_me_cvode crdi_me_cvode;

typedef struct crdi_me_unit {
    crdi_fmi_unit base;
    int32_t nx, nz; // states and indicators
    int32_t n;      // states of the solver: at least 1, it cannot do without
    double t;       // where the FMU stands between steps
    double* x;      // (n)
    double* nominal;
    double* z;           // (nz) as read last
    signed char* domain; // (nz) 1: z > 0, -1: z <= 0, since the last event; behind it (nz) before
    double band;         // how far an indicator must go beyond zero to be an event

    crd_solver method;
    double relative, absolute;
    double stop;       // of the run, or infinity
    double h;          // of the communication step
    bool new_nominals; // in the last event
    bool restart;      // the solver begins anew at t and x
    bool forget;       // and without what it remembers of matrices
    crd_status failed; // of a call inside the solver
    bool discarded;    // the FMU could not compute a point
    int32_t bad;       // state whose derivative was not finite, -1: none

    // events of the step that is made
    int32_t events, crowd;
    double last_event;

    crdi_me_pattern pattern;
    crdi_me_cvode* cvode; // NULL for fixed steps
    // bridges
    bool bridge;       // inputs changed at the beginning of this step
    double* stages;    // (8 n)
    int skip, skipped; // jumps without a bridge: still, and last time
    // fixed steps
    double begin;               // of the communication step
    int32_t grid, grid_at;      // inner steps in it, and which one is made
    double *k[4], *from, *work; // (n)

    crd_arena memory;     // of the instance
    uint32_t* state_refs; // (rows) for directional derivatives, NULL: not possible
    uint32_t* derivative_refs;
    double* seed;
    double* slope;           // (3 n) for derivatives of outputs, and to compare across events
    char text[CRDI_ME_TEXT]; // what the solver said last
} crdi_me_unit;

// The FMU becomes the unit's, or is closed, unless it belongs to a store.
crd_status crdi_me_unit_create(crd_context* ctx, const crd_unit_spec* spec, crd_fmu* fmu,
                               bool shares_fmu, crd_unit** out);

// ---- model.c -----------------------------------------------------------------------------------

// What a point of the model came to, as solvers count it.
typedef enum crdi_me_point {
    CRDI_ME_DONE = 0,
    CRDI_ME_RETRY = 1,   // not here; a shorter step may find another way
    CRDI_ME_FAILED = -1, // the FMU failed, u->failed
} crdi_me_point;

// Sets time, inputs and states.
crdi_me_point crdi_me_place(crdi_me_unit* u, double t, const double* x);
// The same with inputs of another time.
crdi_me_point crdi_me_place_inputs(crdi_me_unit* u, double t, double inputs, const double* x);
crdi_me_point crdi_me_derivatives(crdi_me_unit* u, double t, const double* x, double* dx);
// Into u->z.
crdi_me_point crdi_me_indicators(crdi_me_unit* u, double t, const double* x);
// An indicator as a solver sees it: zero where it leaves its domain by the band.
static inline double crdi_me_beyond(const crdi_me_unit* u, int32_t k)
{
    return u->z[k] + u->domain[k] * u->band;
}
// Has an indicator (of u->z) left its domain?
bool crdi_me_left_domain(const crdi_me_unit* u);
// The name of a state, with the element of an array.
const char* crdi_me_state_name(const crdi_me_unit* u, int32_t state, char* buffer, size_t size);
// Words for why the model could not be computed, and its status.
crd_status crdi_me_fail_point(crdi_me_unit* u, double t, const char* help);

// ---- jacobian.c --------------------------------------------------------------------------------

crd_status crdi_me_find_pattern(crdi_me_unit* u);
bool crdi_me_is_sparse(const crdi_me_unit* u);

// ---- solvers -----------------------------------------------------------------------------------

crd_status crdi_me_cvode_create(crdi_me_unit* u);
void crdi_me_cvode_destroy(crdi_me_cvode* c);
// One inner step from u->t towards `target`, which is further; u->t and u->x become its end.
// `*event`: an indicator left its domain there.
crd_status crdi_me_cvode_advance(crdi_me_unit* u, double target, bool* event);
crd_status crdi_me_bridge_create(crdi_me_unit* u);
// One step from u->t to `target`, unless it would be too coarse: then not `*done`, and the solver's
// turn. After it the solver still has to begin anew.
crd_status crdi_me_bridge(crdi_me_unit* u, double target, bool* done);
crd_status crdi_me_fixed_create(crdi_me_unit* u);
crd_status crdi_me_fixed_advance(crdi_me_unit* u, double target, bool* event);
