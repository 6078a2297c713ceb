// The executors beside `local`: each is a study_source for pools elsewhere.
#pragma once
#include "study/study.h"

crd_status study_begin_mpi(crd_context* ctx, bool* ours);
crd_status study_run_mpi(crd_context* ctx, const crdi_study_job* job);
void study_end_mpi(void);
crd_status study_run_slurm(crd_context* ctx, const crdi_study_job* job);
crd_status study_run_list(crd_context* ctx, const crdi_study_job* job);
