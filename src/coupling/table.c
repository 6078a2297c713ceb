// Weights for each latency, from the options of an element.
#include "coupling/algorithm.h"
#include "coupling/commands.h"
#include "shared/base.h"

#include <math.h>

enum { LATE_MAX = 4096 };

crd_status crdi_coupling_check_number(crd_context* ctx, const char* name, double x, bool ok,
                                      const char* expected)
{
    return ok ? CRD_OK
              : crdi_fail(ctx, CRD_E_RANGE, "coupling: %s = %g, expected %s", name, x, expected);
}

crd_status crdi_detection_check(crd_context* ctx, int window, double low, double high)
{
    crd_detector d;
    if (window < 4 || window > CRD_DETECT_SPAN || window % 2) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "coupling: detect_window = %d, expected an even number from 4 to %d",
                         window, CRD_DETECT_SPAN);
    }
    if (crd_detector_set_spectrum(&d, window, low, high)) { return CRD_OK; }
    return crdi_fail(ctx, CRD_E_RANGE,
                     "coupling: detect-band [%g, %g] has no bin in it, expected "
                     "0 <= low < high <= 1 with a multiple of %g above low and not above high",
                     low, high, 2.0 / window);
}

crd_status crdi_options_check(crd_context* ctx, const crd_coupling_options* o)
{
    crd_status st = CRD_OK;
    CRD_TRY(crdi_coupling_check_number(ctx, "step", o->step, o->step > 0 && isfinite(1 / o->step),
                                       "> 0"));
    CRD_TRY(crdi_coupling_check_number(ctx, "start_time", o->start_time, isfinite(o->start_time),
                                       "a time"));
    CRD_TRY(crdi_coupling_check_number(ctx, "start_value", o->start_value, isfinite(o->start_value),
                                       "a finite number"));
    CRD_TRY(crdi_coupling_check_number(ctx, "k_max", o->k_max,
                                       o->k_max >= 0 && o->k_max <= CRD_LATENCY_MAX, "0 .. 120"));
    CRD_TRY(crdi_coupling_check_number(ctx, "late", o->late, o->late >= 0 && o->late <= LATE_MAX,
                                       "0 .. 4096"));
    CRD_TRY(crdi_coupling_check_number(ctx, "threshold", o->threshold,
                                       o->threshold >= 0 && isfinite(o->threshold), ">= 0"));
    CRD_TRY(crdi_coupling_check_number(ctx, "resolution", o->resolution,
                                       o->resolution >= 0 && isfinite(o->resolution), ">= 0"));
    CRD_TRY(crdi_coupling_check_number(ctx, "gain_limit", o->gain_limit,
                                       o->gain_limit >= 0 && isfinite(o->gain_limit),
                                       "0 (none) or more"));
    CRD_TRY(crdi_coupling_check_number(ctx, "algorithm", o->algorithm,
                                       (int)o->algorithm >= 0 &&
                                           (int)o->algorithm <= crdi_algorithm_last(),
                                       "one of crd_algorithm"));
    CRD_TRY(crdi_coupling_check_number(ctx, "reconstruction", o->reconstruction,
                                       o->reconstruction <= CRD_RECONSTRUCT_SMOOTH,
                                       "one of crd_reconstruction"));
    CRD_TRY(crdi_coupling_check_number(ctx, "detection", o->detection,
                                       o->detection <= CRD_DETECT_GUARDED, "one of crd_detection"));
    CRD_TRY(crdi_detection_check(ctx, o->detect_window, o->detect_low, o->detect_high));
    CRD_TRY(crdi_coupling_check_number(ctx, "reaction", o->reaction,
                                       o->reaction <= CRD_REACT_REBASE, "one of crd_reaction"));
    CRD_TRY(crdi_commands_check(ctx, o));
    const crdi_algorithm* row = crdi_algorithm_of(o);
    if (row && row->check_options) { CRD_TRY(row->check_options(ctx, o)); }
fail:
    return st;
}

crd_status crdi_coupling_check_learning(crd_context* ctx, const crd_coupling_options* o)
{
    crd_status st = CRD_OK;
    CRD_TRY(crdi_coupling_check_number(ctx, "learning_taps", o->learning_taps,
                                       o->learning_taps >= 2 && o->learning_taps <= 128,
                                       "2 .. 128"));
    CRD_TRY(crdi_coupling_check_number(ctx, "learning_window", o->learning_window,
                                       o->learning_window > 1 && o->learning_window < 1e9, "> 1"));
    CRD_TRY(crdi_coupling_check_number(ctx, "learning_ridge", o->learning_ridge,
                                       o->learning_ridge > 0 && isfinite(o->learning_ridge),
                                       "> 0"));
fail:
    return st;
}

crd_status crdi_table_make(crd_context* ctx, const crd_coupling_options* o, crd_linear** out)
{
    crd_status st = CRD_OK;
    const crdi_algorithm* row = crdi_algorithm_of(o);
    crd_linear* table = crdi_new_array(ctx, (size_t)o->k_max + 1, sizeof *table);
    if (!table) { return CRD_E_MEMORY; }
    for (int k = 0; k <= o->k_max; k++) {
        CRD_TRY(row && row->linear ? row->linear(ctx, o, k, &table[k])
                                   : crd_linear_make(ctx, &o->design, k, &table[k]));
    }
    *out = table;
    return CRD_OK;
fail:
    crdi_table_free(ctx, table, o->k_max);
    return st;
}

void crdi_table_free(crd_context* ctx, crd_linear* table, int k_max)
{
    for (int k = 0; table && k <= k_max; k++) {
        crd_linear_clear(ctx, &table[k]);
    }
    crd_free(ctx, table);
}

int crdi_table_taps(const crd_linear* table, int k_max)
{
    int m = 0;
    for (int k = 0; table && k <= k_max; k++) {
        if (table[k].m > m) { m = table[k].m; }
    }
    return m;
}

bool crdi_table_sloped(const crd_linear* table, const crd_coupling_options* o)
{
    for (int k = 0; k <= o->k_max && o->reconstruction != CRD_RECONSTRUCT_HOLD; k++) {
        for (int i = 0; i < table[k].m; i++) {
            if (table[k].A[i] != 0) { return true; }
        }
    }
    return false;
}

bool crdi_table_has_constant(const crd_linear* table, int k_max)
{
    for (int k = 0; k <= k_max; k++) {
        if (table[k].b != 0) { return true; }
    }
    return false;
}

bool crdi_table_moderate(const crd_linear* table, int k_max)
{
    crd_real largest = 0;
    for (int k = 0; k <= k_max; k++) {
        crd_real sum = 0;
        for (int i = 0; i < table[k].m; i++) {
            sum += fabs(table[k].a[i]) + fabs(table[k].A[i]);
        }
        largest = fmax(largest, sum);
    }
    return largest < CRDI_OF(1e40, 1e5); // samples are usable, re-based ones a few powers above
}
