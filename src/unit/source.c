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

int32_t crdi_source_find(const crd_unit* u, const char* name)
{
    for (int32_t i = 0; i < u->info.variable_count; i++) {
        if (strcmp(u->info.variables[i].name, name) == 0) { return i; }
    }
    return -1;
}

crd_status crdi_source_save(crd_unit* u, void** state)
{
    if (!*state) { *state = crdi_new(u->ctx, sizeof(double)); }
    if (!*state) { return CRD_E_MEMORY; }
    *(double*)*state = ((const crdi_source*)u)->time;
    return CRD_OK;
}

crd_status crdi_source_write(crd_unit* u, crd_text* out)
{
    crdi_text_put(out, &((crdi_source*)u)->time, sizeof(double));
    return CRD_OK;
}

crd_status crdi_source_read(crd_unit* u, const void* bytes, size_t size)
{
    double t = 0;
    if (size != sizeof t) { return crdi_unit_fail_size(u, size, sizeof t); }
    memcpy(&t, bytes, sizeof t);
    return u->ops->state->restore(u, &t);
}

void crdi_source_free_state(crd_unit* u, void** state)
{
    crd_free(u->ctx, *state);
    *state = NULL;
}
