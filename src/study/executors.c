// Who makes the runs of a study. `local` is a pool over the study's own file.
#include "study/executors.h"

#include <string.h>
#include <time.h>

static crd_status claim(void* self, int most, crd_arena* arena, crdi_study_run** out, int* count)
{
    return crdi_study_claim(self, most, arena, out, count);
}

static crd_status put(void* self, const crdi_study_run* const* runs, int count)
{
    return crdi_study_put(self, runs, count);
}

static crd_status run_local(crd_context* ctx, const crdi_study_job* job)
{
    crdi_study_counts c;
    const crd_status st = crdi_study_count(job->study, &c);
    if (st < 0) { return st; }
    const int64_t finished = c.total - c.by_state[CRDI_RUN_OPEN] - c.by_state[CRDI_RUN_CLAIMED];
    const study_source store = {.self = job->study,
                                .claim = claim,
                                .put = put,
                                .total = c.total,
                                .finished = finished,
                                .failed = finished - c.by_state[CRDI_RUN_DONE]};
    return study_pool(ctx, crdi_study_get_file(job->study), job, &store);
}

const crdi_study_executor crdi_study_executors[] = {
    {.name = "local", .about = "worker processes on this machine", .run = run_local, .waits = true},
    {.name = "mpi",
     .about = "the ranks of mpirun",
     .run = study_run_mpi,
     .waits = true,
     .begin = study_begin_mpi,
     .end = study_end_mpi},
    {.name = "slurm", .about = "tasks of a job array", .run = study_run_slurm},
    {.name = "list", .about = "prints a command for each chunk", .run = study_run_list},
    {.name = NULL},
};

// Until no other command has runs. `*open`: some are open again, as theirs has ended.
static crd_status wait_for_others(const crdi_study_job* job, bool* open)
{
    crd_status st = CRD_OK;
    int64_t theirs = 0;
    crdi_study_counts c;
    for (;;) {
        CRD_TRY(crdi_study_count_others(job->study, &theirs));
        CRD_TRY(crdi_study_count(job->study, &c));
        *open = c.by_state[CRDI_RUN_OPEN] > 0;
        if (*open || theirs == 0 || (job->stop && *job->stop)) { break; }
        const int64_t finished = c.total - theirs;
        if (job->progress) {
            job->progress(job->user, finished, c.total, finished - c.by_state[CRDI_RUN_DONE], 0);
        }
        nanosleep(&(struct timespec){0, 200000000}, NULL);
    }
fail:
    return st;
}

crd_status crdi_study_run_all(crd_context* ctx, const crdi_study_executor* e,
                              const crdi_study_job* job)
{
    crd_status st = CRD_OK;
    for (bool open = true; open && st >= 0 && !(job->stop && *job->stop);) {
        st = e->run(ctx, job);
        open = false;
        if (st >= 0 && e->waits) { st = wait_for_others(job, &open); }
    }
    return st;
}

// ---- one run, tried ----------------------------------------------------------------------------

typedef struct trial {
    crdi_study_run* run;
    int kept_count, begun;
    bool again; // it ended by itself, and is made once more with everything open
} trial;

static crd_status claim_trial(void* self, int most, crd_arena* arena, crdi_study_run** out,
                              int* count)
{
    trial* t = self;
    (void)most;
    *count = t->begun == 0 || t->again;
    if (!*count) { return CRD_OK; }
    *out = crdi_arena_new(arena, 1, sizeof **out);
    double* kept = crdi_arena_new(arena, (size_t)t->kept_count, sizeof *kept);
    if (!*out || !kept) { return CRD_E_MEMORY; }
    **out = (crdi_study_run){
        .id = ++t->begun, .seed = t->run->seed, .values = t->run->values, .kept = kept};
    t->again = false;
    return CRD_OK;
}

static crd_status put_trial(void* self, const crdi_study_run* const* runs, int count)
{
    trial* t = self;
    for (int i = 0; i < count; i++) {
        double* kept = t->run->kept;
        memcpy(kept, runs[i]->kept, (size_t)t->kept_count * sizeof *kept);
        *t->run = *runs[i];
        t->run->kept = kept;
        t->again =
            t->begun == 1 && (t->run->state == CRDI_RUN_DONE || t->run->state == CRDI_RUN_LIMIT);
    }
    return CRD_OK;
}

static crd_status more_trials(void* user, bool* open)
{
    *open = ((const trial*)user)->again;
    return CRD_OK;
}

crd_status crdi_study_try_run(crd_context* ctx, const crdi_study_file* f, crdi_study_run* r)
{
    trial t = {.run = r, .kept_count = f->kept_count};
    const study_source from = {.self = &t, .claim = claim_trial, .put = put_trial, .total = 1};
    const crdi_study_job job = {.workers = 1, .more = more_trials, .more_user = &t};
    return study_pool(ctx, f, &job, &from);
}
