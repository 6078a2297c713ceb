// Every exchanged sample into a file of its own, and connections that play such a file.
#pragma once
#include "master/plan/plan.h"

// exchange.c
crd_status crdi_exchange_open(crd_master* m); ///< at the end of the initialisation
/// Samples of connections without a coupling, and what couplings made of theirs, after a tick.
void crdi_exchange_record(crd_master* m);
/// A sample that reaches the element of a coupling.
void crdi_exchange_arrived(const crd_master* m, const crdi_coupled* c, const crdi_flight* f);
void crdi_exchange_event(crd_master* m, crd_event_kind kind, double time, const char* text);
int64_t crdi_exchange_count(const crd_master* m); ///< samples so far
crd_status crdi_exchange_close(crd_master* m);
void crdi_exchange_free(crd_master* m);
// script.c: connections that do what they did in a recorded run
const crd_script* crdi_script_find(const crdi_plan* plan, const char* to); ///< NULL: none
void crdi_script_start(crd_master* m); ///< once the predictions have their first samples
