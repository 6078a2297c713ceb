// A unit with a budget, its thread, and what goes to and fro between it and the cycle thread.
#pragma once
#include "master/master.h"

#include <semaphore.h>
#include <stdatomic.h>

typedef enum crdi_job_kind {
    CRDI_JOB_STEP, // one step or several, then the outputs
    CRDI_JOB_ASK,  // the outputs again, with other inputs
} crdi_job_kind;

typedef struct crdi_job {
    crdi_job_kind kind;
    int64_t from, to, steps; // ticks; how many steps that is
    bool extras, measure;
} crdi_job;

typedef struct crdi_runner {
    crd_master* m;
    int member;
    int64_t budget; // ns
    pthread_t thread;
    bool has_thread;
    sem_t go, done;
    atomic_bool quit, back; // back: the job is done, what it wrote can be seen
    atomic_llong since;     // ns: when the step under way began, 0: none is
    atomic_bool warned;     // of a step that lasts

    // of the cycle thread
    bool handed;   // it has a job
    bool awaited;  // and got it in this tick
    bool late;     // the last time it was due its outputs were held
    int64_t begin; // ns: of the phase in which it got it
    int64_t at;    // tick that the unit has come to
    int64_t late_count;
    int64_t steps; // that it made, longer ones count once
    int64_t gaps;  // times that holding began or ended
    crd_link_stats known;
    bool no_link;

    // the cycle thread's, and between `go` and `back` the unit's thread's
    crdi_job job;
    crd_values inputs, shown, outputs, extras;
    const crd_binding* extra; // what only the record reads, NULL: nothing
    double *slopes[2], *shown_slopes[2], *rates[2];
    crd_status status;
    int crash_signal;
    int64_t ns_set, ns_step, ns_get, ns_worst;
    volatile int running; // for the crash guard
} crdi_runner;

struct crdi_async {
    crdi_runner* runners; // (count)
    int count;
    crdi_runner** of; // per member, NULL: it has none
    pthread_t watcher;
    bool watched;
    sem_t quit;
    bool left; // some thread did not come back
    struct crdi_async* next;
};

/// ns that the end of a run waits for steps under way, and again after telling them to give up.
extern int64_t crdi_async_patience, crdi_async_grace;
/// Says once of each unit that a step of it lasts long. The watcher calls it now and then.
void crdi_async_look(crd_master* m, int64_t now);
