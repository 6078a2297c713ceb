/// A digital twin as constants of C for libcardan-core: its network with the start values, what is
/// measured and what is not known; and how many operations a step takes at most.
#pragma once
#include "cardan/twin.h"

typedef struct crdi_twin_emit_report {
    int64_t sums;      // additions, products and comparisons of a step at most
    int64_t divisions; // and roots
    int64_t again; // sums of a step in which values have moved and all matrices are made anew; 0:
                   // it never happens
    int size;      // of the filter: states, sources, values
} crdi_twin_emit_report;

/// `name`: a name of C, `origin`: for the comment at the top. What crd_twin_create and
/// crd_twin_begin say; CRD_E_UNSUPPORTED: the published filter.
crd_status crdi_twin_emit(crd_context* ctx, const crd_twin_description* d, const char* name,
                          const char* origin, crd_text* source, crd_text* header,
                          crdi_twin_emit_report* report);
