// cardan compare: its options, and what --richardson does with them.
#pragma once
#include "cardan/results.h"
#include "cli/cli.h"

typedef struct crdi_compare {
    crdi_common common;
    double relative, absolute; // NaN: not given
    crdi_list variables, pairs;
    bool all;
    bool richardson;
    double order, ratio, max_error; // NaN: not given
} crdi_compare;

// Warns where two of them have other units of measure; of --richardson that is CRD_E_RANGE.
crd_status crdi_compare_units(crdi_cli* cli, crd_table* const* tables, int count,
                              const crdi_compare* o, const crd_pair* pairs);

// ---- compare_richardson.c
// Errors of two or three runs, coarsest first. CRD_E_LIMIT if that of the finest is above
// max_error.
crd_status crdi_compare_richardson(crdi_cli* cli, const crdi_compare* o, crd_table* const* tables,
                                   int count, const crd_pair* pairs, crdi_result* out);
