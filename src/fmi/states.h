// The one table of call orders: which FMI function may be called in which state, and where a call
// leads. Pure functions; what a transition does is in calls.c.
#pragma once
#include "fmi/functions.h"

// What decides the call order of an instance.
typedef struct crdi_fmi_kind {
    crd_fmi_version version;
    bool exchange;   // Model Exchange, else Co-Simulation
    bool event_mode; // FMI 3 Co-Simulation made with event mode
} crdi_fmi_kind;

bool crdi_fmi_allowed(crdi_fmi_kind kind, int function, crd_fmi_state state);
// All functions allowed in a state, as a set.
void crdi_fmi_allowed_set(crdi_fmi_kind kind, crd_fmi_state state, uint64_t set[CRDI_FMI_WORDS]);
// The state after a call that was allowed. A restored state is not told by its call: SetFMUstate
// keeps `state` here.
crd_fmi_state crdi_fmi_next(crdi_fmi_kind kind, crd_fmi_state state, int function,
                            crdi_fmi_status status);
const char* crdi_fmi_state_name(crd_fmi_state state); // "step mode"
