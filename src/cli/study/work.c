// cardan study work, cardan study merge: a part of a study elsewhere, and what came of it.
#include "cli/study/study_cli.h"
#include "shared/base_interrupt.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

typedef struct work_options {
    crdi_common common;
    int workers;
} work_options;

static crd_status run_work(crdi_cli* cli, const void* options, const crdi_list* arguments,
                           crdi_result* out)
{
    const work_options* o = options;
    int64_t made = 0, of = 0;
    char a[32], b[32];
    signal(SIGXFSZ, SIG_IGN); // a file that grows too large is then an error of write
    const volatile bool* stop = crdi_interrupt_catch(&(crdi_interrupt_options){.restart = false});
    const crdi_study_job job = {.workers = o->workers < 0 ? 1 : o->workers, .stop = stop};
    crd_status st = crdi_study_work(cli->ctx, arguments->items[0], &job, &made, &of);
    if (st >= 0 && *stop) {
        st = crdi_fail(cli->ctx, CRD_E_STATE, "interrupted; the same command goes on");
    }
    crdi_interrupt_restore();
    if (!o->common.quiet) {
        crdi_fact(crdi_aside(out), "runs", "%s of %s made here", crdi_study_thousands(a, made),
                  crdi_study_thousands(b, of));
    }
    return st;
}

static const crdi_option work_rows[] = {
    OPT_COUNT(work_options, workers, "workers", "N|auto", "worker processes; one unless given"),
    OPT_FLAG(crdi_common, quiet, "quiet", "no summary", .short_name = 'q'),
    CRDI_COMMON_OPTIONS,
};

static const work_options work_defaults = {.common = CRDI_COMMON_DEFAULTS, .workers = -1};

const crdi_command crdi_command_study_work = {
    .name = "study work",
    .arguments = "CHUNK",
    .summary = "make the runs of one chunk, wherever it was taken",
    .description =
        "Makes the runs of a chunk that --executor list or slurm wrote, with results in a file "
        "beside it. It needs nothing but the chunk and the system's own files, at the place where "
        "they were; what is not what the study began with is refused. Killed it goes on with the "
        "same command. '-' takes the chunk from standard input and writes the results to standard "
        "output.",
    .examples = {{"cardan study work damper.study.chunks/7.chunk", "one of many"}},
    OPTIONS(work_rows, work_options),
    .defaults = &work_defaults,
    .min_arguments = 1,
    .max_arguments = 1,
    .extensions = "chunk",
    .run = run_work,
};

typedef struct merge_options {
    crdi_common common;
    const char* database;
} merge_options;

static crd_status run_merge(crdi_cli* cli, const void* options, const crdi_list* arguments,
                            crdi_result* out)
{
    const merge_options* o = options;
    crd_status st = CRD_OK;
    crdi_study* s = NULL;
    crdi_study_counts before, c;
    char a[32], b[32];
    CRD_TRY(crdi_study_load(cli, arguments->items[0], o->database, &s));
    CRD_TRY(crdi_study_count(s, &before));
    CRD_TRY(crdi_study_collect(cli->ctx, s));
    CRD_TRY(crdi_study_count(s, &c));
    const int64_t open = c.by_state[CRDI_RUN_OPEN] + c.by_state[CRDI_RUN_CLAIMED];
    const int64_t was = before.by_state[CRDI_RUN_OPEN] + before.by_state[CRDI_RUN_CLAIMED];
    crdi_put(out, TEXT("study", crdi_study_database(s)), INT("runs", c.total),
             INT("merged", was - open), INT("open", open));
    crdi_fact(out, "study", "%s", crdi_study_database(s));
    crdi_fact(out, "merged", "%s runs", crdi_study_thousands(a, was - open));
    crdi_fact(out, "open", "%s of %s", crdi_study_thousands(a, open),
              crdi_study_thousands(b, c.total));
fail:
    crdi_study_close(s);
    return st;
}

static const crdi_option merge_rows[] = {
    CRDI_DATABASE_OPTION(merge_options),
    CRDI_JSON_OPTION("print the counts as JSON on standard output"),
    CRDI_COMMON_OPTIONS,
};

static const merge_options merge_defaults = {.common = CRDI_COMMON_DEFAULTS};

const crdi_command crdi_command_study_merge = {
    .name = "study merge",
    .arguments = "STUDY",
    .summary = "take the results of chunks into the study",
    .description =
        "Takes what 'cardan study work' has made of the chunks of a study into it, as often as one "
        "likes, also while they are at work. Chunks that are finished are removed.",
    .examples = {{"cardan study merge damper.yaml", "results so far"}},
    OPTIONS(merge_rows, merge_options),
    .defaults = &merge_defaults,
    .min_arguments = 1,
    .max_arguments = 1,
    .extensions = "yaml|yml|study",
    .run = run_merge,
};
