// What signals and recordings have in common: no inputs, and the time as their only state.
#include "shared/base.h"
#include "unit/unit.h"

crd_status crdi_source_nothing(crd_unit* u)
{
    (void)u;
    return CRD_OK;
}

crd_status crdi_source_set(crd_unit* u, const crd_binding* b, const crd_values* v)
{
    (void)v;
    if (b->count == 0) { return CRD_OK; }
    return crdi_fail(u->ctx, CRD_E_UNSUPPORTED, "a %s has no inputs", u->info.kind);
}

crd_status crdi_source_save(crd_unit* u, void** state)
{
    if (!*state) { *state = crdi_new(u->ctx, sizeof(double)); }
    if (!*state) { return CRD_E_MEMORY; }
    *(double*)*state = ((const crdi_source*)u)->time;
    return CRD_OK;
}

void crdi_source_free_state(crd_unit* u, void** state)
{
    crd_free(u->ctx, *state);
    *state = NULL;
}

void crdi_source_abandon(crd_unit* u)
{
    (void)u;
}

bool crdi_source_dimension(const crd_unit* u, int32_t variable, crd_dimension* out)
{
    const char* name = u->info.variables[variable].unit;
    return name[0] && crd_dimension_parse(name, out);
}

bool crdi_source_item(const crd_unit* u, int32_t variable, const char* name, int64_t* value)
{
    (void)u, (void)variable, (void)name, (void)value;
    return false;
}

const char* crdi_source_last_call(const crd_unit* u)
{
    (void)u;
    return "";
}
