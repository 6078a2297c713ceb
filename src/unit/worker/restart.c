// A unit whose worker has ended begins anew in another one (key `restart`): from its start values
// and settings, at the time and with the inputs that it has. The state that it had is lost with its
// process.
#include "unit/worker/worker.h"

#include <stdio.h>
#include <string.h>

// The values of all bindings as they stand in the memory of the worker that is gone.
static crd_status copy_values(crdi_proxy* u, char** copies, size_t count)
{
    size_t i = 0;
    for (const crdi_proxy_binding* p = u->bindings; p && i < count; p = p->next, i++) {
        if (p->handle < 0 || !p->inputs) { continue; }
        copies[i] = crdi_new(u->base.ctx, p->bytes);
        if (!copies[i]) { return CRD_E_MEMORY; }
        memcpy(copies[i], u->worker->memory + p->at, p->bytes);
    }
    return CRD_OK;
}

static void put_back(crdi_proxy* u, char* const* copies)
{
    size_t i = 0;
    for (crdi_proxy_binding* p = u->bindings; p; p = p->next, i++) {
        if (!copies[i]) { continue; }
        memcpy(p->area.real, copies[i], p->bytes);
        p->inputs = p->waits = true;
        p->order = 0;
        u->waiting++;
    }
}

static crd_status begin_anew(crdi_proxy* u, char* const* copies, double t)
{
    crd_unit* unit = &u->base;
    crd_experiment e = u->experiment;
    crd_status st = CRD_OK;
    e.start = t;
    CRD_TRY(crd_unit_instantiate(unit));
    CRD_TRY(unit->ops->enter_initialization(unit, &e));
    put_back(u, copies);
    CRD_TRY(unit->ops->exit_initialization(unit));
    put_back(u, copies); // the step begins with them, too
fail:
    return st;
}

crd_status crdi_proxy_restart(crdi_proxy* u, double t, double h)
{
    crd_unit* unit = &u->base;
    crd_status st = CRD_OK;
    size_t count = 0;
    for (const crdi_proxy_binding* p = u->bindings; p; p = p->next) {
        count++;
    }
    char** copies = crdi_new_array(unit->ctx, count, sizeof *copies);
    if (!copies) { return CRD_E_MEMORY; }
    char why[sizeof u->worker->why];
    memcpy(why, u->worker->why, sizeof why);
    u->restarts++;
    CRD_TRY(copy_values(u, copies, count));
    CRD_TRY(begin_anew(u, copies, t));
    snprintf(u->remark, sizeof u->remark, "restarted from its start values (%d of %d): it %s",
             u->restarts, unit->spec->restart, why);
    unit->remarks++;
    crdi_log(unit->ctx, CRD_LOG_WARNING, "unit '%s' at t = %.10g: %s", unit->name, t, unit->remark);
    unit->events++; // its outputs jump
    st = unit->ops->step(unit, t, h);
fail:
    for (size_t i = 0; i < count; i++) {
        crd_free(unit->ctx, copies[i]);
    }
    crd_free(unit->ctx, copies);
    return st;
}
