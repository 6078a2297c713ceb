// What the commands of studies share.
#pragma once
#include "cli/cli.h"
#include "cli/run/run.h"
#include "shared/study.h"

#define CRDI_DATABASE_OPTION(object)                                                               \
    OPT_FILE(object, database, "database", "study",                                                \
             "the file of the study, where it is not beside its description with the ending "      \
             ".study")

// "damper.yaml" or "damper.study": both names. `*yaml` NULL: the study itself was named.
crd_status crdi_study_paths(crdi_cli* cli, const char* argument, const char* database,
                            crd_arena* arena, const char** yaml, const char** study);
// The study of an argument. CRD_E_NOT_FOUND with the command that makes it.
crd_status crdi_study_load(crdi_cli* cli, const char* argument, const char* database,
                           crdi_study** out);
// "1 h 12 min", "35 s".
const char* crdi_study_duration(char out[32], double seconds);
// "1,234,567"
const char* crdi_study_thousands(char out[32], int64_t n);
// What runs, with the first point of its design; the time of one run in `seconds` if not NULL.
typedef struct crdi_study_plan {
    int64_t points, runs; // before and after conditions; runs -1: too many to look at each
    double seconds;       // of the run that was tried; NaN: none
    int64_t bytes;        // of the file, about
    crdi_study_run run;   // that was tried
} crdi_study_plan;
crd_status crdi_study_try(crdi_cli* cli, const crdi_study_file* f, crd_arena* arena, bool run,
                          crdi_study_plan* plan, crd_text* describe);
// The statistics of what is kept, and sensitivities of designs that are made for them.
crd_status crdi_study_put_answers(crdi_cli* cli, crdi_study* s, const char* where,
                                  crdi_result* out);
// The page with the scatter plots of a study that is being made.
typedef struct crdi_study_watch crdi_study_watch; // opaque
crd_status crdi_study_watch_start(crdi_cli* cli, const crdi_watch_options* o, crdi_study* s,
                                  crdi_study_watch** out);
// What the line says, and a new picture now and then, if somebody looks.
void crdi_study_watch_show(crdi_study_watch* w, const char* line);
// With the last picture; a page that looks gets it.
void crdi_study_watch_stop(crdi_study_watch* w, const char* line);

// What a search has come to: the best run, and what each combination of the lists came to.
crd_status crdi_study_put_optimum(crdi_cli* cli, crdi_study* s, const crdi_optimum* best,
                                  crdi_result* out);
