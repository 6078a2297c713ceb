// A system of FMUs for cardan coupling analyze: run to where its units are linearised.
#include "cli/analyze/signals.h"

#include "cardan/master.h"
#include "cardan/system.h"
#include "shared/base_interrupt.h"

#include <math.h>

// Initialised, or after a run to `at`
static crd_status run_to(crd_context* ctx, crd_system* s, double at, crd_master** out)
{
    crd_status st = CRD_OK;
    crd_master_options options = crd_master_defaults();
    // Units shall terminate and leave no files behind when somebody loses patience.
    options.stop = crdi_interrupt_catch(&(crdi_interrupt_options){.restart = true});
    options.guard_crashes = true;
    options.last_words = crdi_last_words;
    s->results.path = s->results.session = NULL;
    if (!isnan(at)) { s->run.stop = at; }
    CRD_TRY(crd_master_create(ctx, s, &options, out));
    CRD_TRY(crd_master_initialize(*out));
    const double start = crd_master_time(*out);
    if (at < start) {
        CRD_TRY(crdi_fail(ctx, CRD_E_RANGE, "--at: %g s is before the start of the run at %g s", at,
                          start));
    }
    while (crd_master_ended(*out) == CRD_END_NONE && crd_master_time(*out) < at) {
        CRD_TRY(crd_master_advance(*out, 1000));
    }
    if (crd_master_ended(*out) == CRD_END_INTERRUPTED) {
        CRD_TRY(crdi_fail(ctx, CRD_E_UNIT, "interrupted at t = %g s", crd_master_time(*out)));
    }
fail:
    return st;
}

crd_status crdi_loop_of_system(crd_context* ctx, const char* path, const crd_loop_options* o,
                               double at, crd_loop_model* out)
{
    crd_status st = CRD_OK;
    crd_system* system = NULL;
    crd_master* master = NULL;
    crd_loop_model_init(out, ctx, path);
    CRD_TRY(crdi_load_system(ctx, path, &system));
    CRD_TRY(crd_master_prefer_exchange(ctx, system));
    CRD_TRY(run_to(ctx, system, at, &master));
    CRD_TRY(crd_master_linearise(master, system, o, out));
fail:
    if (master) {
        const crd_status finished = crd_master_finish(master);
        if (st == CRD_OK) { st = finished; }
    }
    crd_master_destroy(master);
    crd_system_destroy(system);
    crdi_interrupt_restore();
    if (st < 0) { crd_loop_model_clear(out); }
    return st;
}
