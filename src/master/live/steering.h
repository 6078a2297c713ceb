// Somebody watches and steers the run.
#pragma once
#include "master/plan/plan.h"
#include "shared/live.h"

// live.c
crd_status crdi_live_prepare(crd_master* m); ///< at the end of the initialisation
/// Commands, before a tick; stays as long as the run is paused. May end the run.
crd_status crdi_live_steer(crd_master* m);
void crdi_live_publish(crd_master* m); ///< rows and snapshots, after a tick
/// An emergency makes a failure of everything but a crash.
crd_status crdi_live_alarm(crd_master* m, crd_status st);
/// The run is over and its units are still to come to rest: commands are refused from here on.
/// Fails if an emergency came at the last moment.
crd_status crdi_live_close(crd_master* m);
void crdi_live_end(crd_master* m); ///< all is over: the last snapshot
// events.c
void crdi_live_note_event(crd_master* m, crd_event_kind kind, double time,
                          const char* text); ///< any thread
// faults.c
bool crdi_live_disturbs(const crd_master* m); ///< some input has a fault
/// Faults at the inputs of a member, before the unit takes them; and as they were.
void crdi_faults_apply(const crdi_member* p);
void crdi_faults_undo(const crdi_member* p);
/// What the unit got at this input of its in place of the value there; NAN: that value.
double crdi_fault_input(const crdi_member* p, const double* input);
/// In [0, 1): for a purpose of a fault, by its number.
double crdi_fault_chance(int64_t fault, int64_t at);
