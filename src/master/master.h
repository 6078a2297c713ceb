// The master's inside: a plan, which create makes and nobody changes afterwards, and a run made of
// parts. A part changes its own state; what others want of it are functions in its header.
#pragma once
#include "master/connection/connection.h"
#include "master/connection/paired.h"
#include "master/energy/energy.h"
#include "master/guard/guard.h"
#include "master/live/steering.h"
#include "master/models/models.h"
#include "master/pace/pacing.h"
#include "master/plan/plan.h"
#include "master/record/record.h"
#include "master/replay/exchange.h"
#include "master/step/step.h"
#include "master/verdict/verdict.h"
#include "shared/master_crash.h"

struct crd_master {
    crd_context* ctx;
    crd_context* log; // over ctx: lines pass the events; units' contexts come from it
    crd_arena arena;
    const crdi_plan* plan;

    crdi_life life;
    crdi_clockwork clock;
    volatile int running; // member whose code runs on this thread now, for the crash guard
    crdi_connections connections;
    crdi_lanes lanes;
    crdi_duties duties;
    crdi_control control;
    double* rollback;                 // (plan->output_count) outputs before the step
    struct crdi_iteration* iteration; // NULL: none
    struct crdi_solvers* solvers;     // they are looked at, NULL: not
    struct crdi_async* async;         // units with a budget, NULL: none
    struct crdi_sentinel* sentinel;   // watches the units, NULL: nobody does
    crdi_tuning tuning;
    crdi_energy energy;
    crdi_models models;
    crdi_guard guard;
    crdi_verdict verdict;
    crdi_recording record;
    crdi_events events;
    crdi_pacing pace;
    struct crdi_live* live;                // somebody watches, NULL: nobody
    struct crdi_exchange_writer* exchange; // samples are recorded, NULL: not
    struct crdi_handles* handles;          // handles.c, NULL: nobody asked for one
    struct crd_snapshot* snapshots;        // snapshot.c: the newest, and by way of it all
    struct crd_snapshot* start;            // the state after the initialisation, NULL: none
    bool cancelled;                        // atomic: crd_master_cancel
};

// handles.c
void crdi_handles_free(crd_master* m); ///< before the units
/// Of what crd_master_get gave: the run fails by a NaN, unless its unit may give one.
crd_status crdi_handles_check(crd_master* m, int index, const double* values);
// snapshot.c
crd_status crdi_snapshot_start(crd_master* m); ///< the state after the initialisation, if wanted
void crdi_snapshots_free(crd_master* m);       ///< before the units
// state.c
crd_status crdi_state_resume(crd_master* m, const char* path); ///< after crdi_snapshot_start
