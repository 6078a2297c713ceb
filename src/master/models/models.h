// Units near the run, as linear ones: each is asked once, however many want to know.
//   x' = A x + B u, y = C x + D u
// of its connected continuous inputs and outputs. Nothing is asked before somebody wants to know.
#pragma once
#include "cardan/unit.h"
#include "master/plan/plan.h"

/// A unit as it was when it was asked last. Inputs and outputs stand in the order of connections.
typedef struct crdi_model {
    crd_unit_port *in, *out;
    int in_count, out_count;
    int *in_slot, *out_slot; // elements of the member's real values
    bool asked;
    crd_status status;     // of the newest asking; CRD_E_UNSUPPORTED: it cannot tell
    crd_linearised linear; // valid if status is CRD_OK
    const char* why;       // it cannot tell: "gives no derivatives", NULL
} crdi_model;

typedef struct crdi_models {
    crdi_model* of; // (members), NULL: nobody wants to know
} crdi_models;

/// The unit at the start or when it was asked last. CRD_E_MEMORY; other failures are in its status.
crd_status crdi_models_get(crd_master* m, int member, const crdi_model** out);
/// Asks again, between steps; one that cannot say now, or has another number of states, keeps what
/// it had. Takes memory. false: nothing new.
bool crdi_models_ask_again(crd_master* m, int member);
/// Place of a slot among the model's inputs or outputs, -1: it is none of them.
int crdi_models_input(const crdi_model* p, int slot);
int crdi_models_output(const crdi_model* p, int slot);
const crd_linearised* crdi_models_known(const crd_master* m, int member); ///< NULL: not known
void crdi_models_free(crd_master* m);                                     ///< before the units go
