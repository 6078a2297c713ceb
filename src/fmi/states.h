// The one table of call orders: which FMI function may be called in which state, and where a call
// leads. Pure functions; what a transition does is in calls.c.
#pragma once
#include "fmi/functions.h"

bool crdi_fmi_allowed(crd_fmi_version version, int function, crd_fmi_state state);
// All functions allowed in a state, as a set.
void crdi_fmi_allowed_set(crd_fmi_version version, crd_fmi_state state,
                          uint64_t set[CRDI_FMI_WORDS]);
// The state after a call that was allowed. `event_mode`: FMI 3 instance made with event mode.
// A restored state is not told by its call: SetFMUstate keeps `state` here.
crd_fmi_state crdi_fmi_next(crd_fmi_version version, bool event_mode, crd_fmi_state state,
                            int function, crdi_fmi_status status);
const char* crdi_fmi_state_name(crd_fmi_state state); // "step mode"
