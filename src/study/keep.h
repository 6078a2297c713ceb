// What is kept of a run: read once, then seen step by step.
#pragma once
#include "cardan/master.h"
#include "study/study.h"

typedef struct study_keep study_keep; // opaque
crd_status study_keep_create(crd_context* ctx, const crdi_study_file* f, study_keep** out);
void study_keep_destroy(study_keep* k);
// Whether anything has to be looked at after every step.
bool study_keep_watches(const study_keep* k);
// Whether all its signals and inputs exist, of a master that was created.
crd_status study_keep_check(study_keep* k, crd_master* m);
// For a run that is initialised: looks its signals up and takes their first values.
crd_status study_keep_begin(study_keep* k, crd_master* m);
crd_status study_keep_step(study_keep* k, crd_master* m);
// After finish: everything into r->kept; says in r->state what of it is no number or no limit kept.
void study_keep_end(study_keep* k, crd_master* m, crdi_study_run* r);
