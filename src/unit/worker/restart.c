// A unit whose worker has ended begins anew in another one (key `restart`), at the time and with
// the inputs that it has: from its state after the last step, if its FMU can write that down, else
// from its start values and settings. All of this is kept here, where the FMU cannot change it.
#include "unit/fmi/fmi_unit.h"
#include "unit/worker/worker.h"

#include <stdio.h>
#include <string.h>

// ---- the state ---------------------------------------------------------------------------------

static crd_status take_state(crdi_proxy* u, crdi_mail* m, void* into)
{
    (void)into;
    const uint64_t size = crdi_mail_get_u64(m);
    const void* bytes = crdi_mail_get(m, (size_t)size);
    if (!bytes) { return CRD_OK; } // said by who asked
    uint8_t* kept = crdi_grow(u->base.ctx, u->kept, &u->kept_capacity, (size_t)size + 1, 1);
    if (!kept) { return CRD_E_MEMORY; }
    u->kept = kept;
    memcpy(kept, bytes, (size_t)size);
    u->kept_size = (size_t)size;
    return CRD_OK;
}

static crd_status fetch_state(crdi_proxy* u)
{
    const crdi_proxy_call c = {.request = {.op = CRDI_OP_KEEP, .handle = -1}, .take = take_state};
    return crdi_proxy_do(u, &c);
}

crd_status crdi_proxy_keep(crdi_proxy* u, double t)
{
    if (u->base.spec->restart <= 0 || !crdi_fmi_unit_can_keep(u->inner)) { return CRD_OK; }
    const crd_status st = fetch_state(u);
    if (st >= 0) { u->kept_at = t; }
    return st;
}

crd_status crdi_proxy_write(crd_unit* unit, crd_text* out)
{
    crdi_proxy* u = (crdi_proxy*)unit;
    if (!crdi_fmi_unit_can_keep(u->inner)) { return CRD_E_UNSUPPORTED; }
    const double times[] = {u->kept_at, unit->next_event};
    const crd_status st = fetch_state(u);
    if (st < 0) { return st; }
    crdi_text_put(out, times, sizeof times);
    crdi_text_put(out, u->kept, u->kept_size);
    return CRD_OK;
}

static void fill_state(crdi_mail* m, const void* with)
{
    const crdi_proxy* u = with;
    crdi_mail_put_u64(m, u->kept_size);
    crdi_mail_put(m, u->kept, u->kept_size);
}

static crd_status send_state(crdi_proxy* u)
{
    const crdi_proxy_call c = {
        .request = {.op = CRDI_OP_RESUME, .handle = -1}, .fill = fill_state, .with = u};
    return crdi_proxy_do(u, &c);
}

crd_status crdi_proxy_read(crd_unit* unit, const void* bytes, size_t size)
{
    crdi_proxy* u = (crdi_proxy*)unit;
    double times[2];
    if (size < sizeof times) { return crdi_unit_fail_size(unit, size, sizeof times); }
    size -= sizeof times;
    uint8_t* kept = crdi_grow(unit->ctx, u->kept, &u->kept_capacity, size + 1, 1);
    if (!kept) { return CRD_E_MEMORY; }
    memcpy(times, bytes, sizeof times);
    memcpy(kept, (const char*)bytes + sizeof times, size);
    u->kept = kept;
    u->kept_size = size;
    u->kept_at = times[0];
    unit->next_event = times[1];
    u->epoch++;
    const crd_status st = send_state(u);
    if (unit->spec->restart <= 0) { u->kept_size = 0; } // as it is without a state in a file
    return st;
}

// ---- beginning anew ----------------------------------------------------------------------------

static void put_back(crdi_proxy* u, bool rates)
{
    for (crdi_proxy_binding* p = u->bindings; p; p = p->next) {
        if (!p->own || !p->inputs || p->binding->bytes_count) { continue; }
        memcpy(p->area.real, p->own, p->bytes);
        u->waiting += !p->waits;
        p->waits = true;
        p->order = rates ? p->own_order : 0;
    }
}

static crd_status begin_anew(crdi_proxy* u, double t)
{
    crd_unit* unit = &u->base;
    crd_experiment e = u->experiment;
    const crd_experiment first = e;
    crd_status st = CRD_OK;
    if (!u->kept_size) { e.start = t; }
    CRD_TRY(crd_unit_instantiate(unit));
    CRD_TRY(unit->ops->enter_initialization(unit, &e));
    u->experiment = first;
    put_back(u, false);
    const crdi_proxy_call exit = {.request = {.op = CRDI_OP_EXIT, .handle = -1}};
    CRD_TRY(crdi_proxy_do(u, &exit));
    u->steps = true;
    u->epoch++;
    if (u->kept_size) { CRD_TRY(send_state(u)); }
    put_back(u, true); // the step begins with them, too
fail:
    return st;
}

crd_status crdi_proxy_restart(crdi_proxy* u, double t, double h)
{
    crd_unit* unit = &u->base;
    crd_status st = CRD_OK;
    char why[sizeof u->worker->why], from[64] = "start values";
    memcpy(why, u->worker->why, sizeof why);
    u->restarts++;
    const int64_t events = unit->events;
    CRD_TRY(begin_anew(u, t));
    if (u->kept_size) { snprintf(from, sizeof from, "state at t = %.10g", u->kept_at); }
    snprintf(u->remark, sizeof u->remark, "restarted from its %s (%d of %d): it %s", from,
             u->restarts, unit->spec->restart, why);
    unit->remarks++;
    crdi_log(unit->ctx, CRD_LOG_WARNING, "unit '%s' at t = %.10g: %s", unit->name, t, unit->remark);
    unit->events = events + !u->kept_size; // its outputs jump
    st = unit->ops->step(unit, t, h);
fail:
    return st;
}
