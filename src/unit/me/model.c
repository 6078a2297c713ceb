// The FMU as x' = f(t, x, u(t)) and z = g(t, x, u(t)).
#include <math.h>
#include <stdio.h>

#include "unit/me/me_unit.h"

static crdi_me_point me_model_judge(crdi_me_unit* u, crd_status st, bool discarded)
{
    if (__builtin_expect(st < 0, 0)) {
        u->failed = st;
        return CRDI_ME_FAILED;
    }
    if (__builtin_expect(discarded, 0)) {
        u->discarded = true;
        return CRDI_ME_RETRY;
    }
    return CRDI_ME_DONE;
}

crdi_me_point crdi_me_place(crdi_me_unit* u, double t, const double* x)
{
    return crdi_me_place_inputs(u, t, t, x);
}

crdi_me_point crdi_me_place_inputs(crdi_me_unit* u, double t, double inputs, const double* x)
{
    bool discarded = false;
    crd_status st = crd_fmi_set_time(u->base.fmi, t);
    if (st == CRD_OK && u->base.curved) { st = crdi_fmi_unit_move_inputs(&u->base, inputs); }
    if (st == CRD_OK && u->nx) {
        st = crd_fmi_set_states(u->base.fmi, x, (size_t)u->nx, &discarded);
    }
    return me_model_judge(u, st, discarded);
}

crdi_me_point crdi_me_derivatives(crdi_me_unit* u, double t, const double* x, double* dx)
{
    const crdi_me_point at = crdi_me_place(u, t, x);
    if (at != CRDI_ME_DONE) { return at; }
    if (!u->nx) {
        dx[0] = 0;
        return CRDI_ME_DONE;
    }
    bool discarded = false;
    const crd_status st = crd_fmi_get_derivatives(u->base.fmi, dx, (size_t)u->nx, &discarded);
    if (st < 0 || discarded) { return me_model_judge(u, st, discarded); }
    for (int32_t k = 0; k < u->nx; k++) {
        if (__builtin_expect(!isfinite(dx[k]), 0)) {
            u->bad = k;
            return CRDI_ME_RETRY;
        }
    }
    return CRDI_ME_DONE;
}

crdi_me_point crdi_me_indicators(crdi_me_unit* u, double t, const double* x)
{
    const crdi_me_point at = crdi_me_place(u, t, x);
    if (at != CRDI_ME_DONE || !u->nz) { return at; }
    bool discarded = false;
    const crd_status st = crd_fmi_get_indicators(u->base.fmi, u->z, (size_t)u->nz, &discarded);
    return me_model_judge(u, st, discarded);
}

bool crdi_me_left_domain(const crdi_me_unit* u)
{
    for (int32_t k = 0; k < u->nz; k++) {
        if (crdi_me_beyond(u, k) * u->domain[k] < 0) { return true; }
    }
    return false;
}

const char* crdi_me_state_name(const crdi_me_unit* u, int32_t state, char* buffer, size_t size)
{
    const crd_fmu_model_exchange* x = &u->base.d->exchange;
    const crd_variable* variables = u->base.base.info.variables;
    int64_t left = state;
    for (int32_t r = 0; r < x->derivatives.count; r++) {
        const crd_variable* d = &variables[x->derivatives.unknown[r]];
        if (left >= d->size) {
            left -= d->size;
            continue;
        }
        const char* name = x->states[r] < 0 ? d->name : variables[x->states[r]].name;
        if (d->rank) {
            snprintf(buffer, size, "%.100s[%lld]", name, (long long)left + 1);
        } else {
            snprintf(buffer, size, "%.120s", name);
        }
        return buffer;
    }
    snprintf(buffer, size, "%d", (int)state + 1);
    return buffer;
}

crd_status crdi_me_fail_point(crdi_me_unit* u, double t, const char* help)
{
    crd_context* ctx = u->base.base.ctx;
    char name[160];
    if (u->failed < 0) { return crdi_fail_in(ctx, u->failed, "at t = %.9g", t); }
    if (u->bad >= 0) {
        return crdi_fail(ctx, CRD_E_UNIT,
                         "at t = %.9g the derivative of the state '%s' (%g) is not finite; %s", t,
                         crdi_me_state_name(u, u->bad, name, sizeof name), u->x[u->bad], help);
    }
    return crdi_fail(ctx, CRD_E_UNIT, "at t = %.9g the FMU cannot be computed (Discard); %s", t,
                     help);
}
