// A run on the clock: the cycle thread's way into real time, its deadlines, its account.
#pragma once
#include "master/plan/plan.h"
#include "shared/pace.h"

typedef struct crdi_pacing {
    crd_clock clock; // of the pacer and of pauses
    crdi_pacer pacer;
    bool adopted;                         // the grid is that of a unit in real time
    bool entered;                         // the cycle thread is in real time
    double lateness, busy;                // of the newest cycle, s; recorded
    int64_t overruns_seen, lateness_seen; // for crd_master_glance
    const crdi_offer* signals;
    int signal_count;
} crdi_pacing;

// cycle.c
crd_status crdi_pacing_plan(crdi_plan* plan, crdi_pacing* p); ///< before signals are selected
void crdi_pacing_start(crd_master* m);                        ///< at the end of the initialisation
/// What real time needs of the system, for this thread; once.
crd_status crdi_pacing_enter(crd_master* m);
/// Waits until the tick at hand is due; the first time this thread enters real time. A stop flag
/// that comes meanwhile ends the run.
crd_status crdi_pacing_begin(crd_master* m);
void crdi_pacing_note_busy(crd_master* m); ///< before the record of the tick
void crdi_pacing_end(crd_master* m);
/// ns, of the run's clock.
int64_t crdi_pacing_now(const crd_master* m);
void crdi_pacing_sleep(const crd_master* m, int64_t ns);
void crdi_pacing_pause(crd_master* m); ///< the run stands still, and goes on
void crdi_pacing_resume(crd_master* m);
double crdi_pacing_since_start(const crd_master* m); ///< s on the clock
const crd_pace_report* crdi_pacing_report(const crd_master* m);
/// What the system used for it so far; any thread, once a cycle is done.
void crdi_pacing_usage(const crd_master* m, crd_pace_report* report);
const crdi_offer* crdi_pacing_signals(const crd_master* m, int* count); ///< for the record
void crdi_pacing_leave(crd_master* m);
/// A cycle that was late, in words.
void crdi_pacing_word_overrun(const crd_overrun_info* o, const crdi_plan* plan, char* text,
                              size_t size);
