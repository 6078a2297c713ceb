// What the files of the module share.
#pragma once
#include "shared/study.h"

static inline uint64_t study_mix(uint64_t z) // splitmix64
{
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// In (0, 1).
static inline double study_unit(uint64_t bits)
{
    return ((double)(bits >> 12) + 0.5) * 0x1p-52;
}

// What is wrong with a distribution and what is cut off of it, or NULL.
const char* study_law_wrong(const crdi_study_factor* f, const double cut[2]);

// Where a pool of workers gets its runs and what becomes of their results: the study's own file, a
// chunk, the first of many ranks. `put` is also called with nothing, to say that work goes on.
typedef struct study_source {
    void* self;
    crd_status (*claim)(void* self, int most, crd_arena* arena, crdi_study_run** out, int* count);
    crd_status (*put)(void* self, const crdi_study_run* const* runs, int count);
    int64_t total, finished, failed; // runs when it begins
} study_source;
// Until there is nothing to claim. Of the job it reads workers, chunk, stop and progress.
crd_status study_pool(crd_context* ctx, const crdi_study_file* f, const crdi_study_job* job,
                      const study_source* from);

// What another machine has to know of a study beside its points.
typedef struct study_stamp {
    const char *identity, *path, *text, *describe; // identity: drawn when it was made
} study_stamp;
// It lives as long as the study.
crd_status study_get_stamp(crdi_study* s, study_stamp* out);
// Whether `now` is what crdi_study_worker_describe said `before`: CRD_E_DIFFERENT with what
// changed.
crd_status study_compare_describe(crd_context* ctx, crd_arena* arena, const char* name,
                                  const char* before, const char* now);
// Of these runs those that are open, or claimed by this owner, become this owner's and come first;
// `*count` of them. The others are finished, or somebody else's.
crd_status study_hold(crdi_study* s, crdi_study_run* runs, int* count);
// Of these runs those without a result come first; `*count` of them.
crd_status study_unfinished(crdi_study* s, crdi_study_run* runs, int* count);
