// What both kinds of FMU units have: the FMU's description, its values' names and sizes, and the
// choice between the two.
#include <math.h>
#include <string.h>

#include "shared/fmi_build.h"
#include "unit/fmi/fmi_unit.h"
#include "unit/me/me_unit.h"

enum { MOST_ELEMENTS = 100000000 };

// ---- description -------------------------------------------------------------------------------

int32_t crdi_fmi_unit_find(const crd_unit* unit, const char* name)
{
    return crd_fmu_find(((const crdi_fmi_unit*)unit)->fmu, name);
}

static bool fmu_dimension(const crd_unit* unit, int32_t variable, crd_dimension* out)
{
    const crdi_fmi_unit* u = (const crdi_fmi_unit*)unit;
    const crd_variable* v = &unit->info.variables[variable];
    if (v->unit_index >= 0 && u->d->units[v->unit_index].has_base) {
        *out = u->d->units[v->unit_index].base;
    } else if (!v->unit[0] || !crd_dimension_parse(v->unit, out)) {
        return false;
    }
    if (v->relative_quantity) { out->offset = 0; }
    return true;
}

static const char* fmu_item_at(const crd_unit* unit, int32_t variable, int32_t k, int64_t* value)
{
    const crdi_fmi_unit* u = (const crdi_fmi_unit*)unit;
    const int32_t type = unit->info.variables[variable].type_index;
    if (type < 0 || k >= u->d->enumerations[type].item_count) { return NULL; }
    *value = u->d->enumerations[type].items[k].value;
    return u->d->enumerations[type].items[k].name;
}

const char* crdi_fmi_unit_last_call(const crd_unit* unit)
{
    const crdi_fmi_unit* u = (const crdi_fmi_unit*)unit;
    return u->fmi ? crd_fmi_last_call(u->fmi) : u->last_call;
}

// Length of a dimension with the structural parameters that are set.
static uint64_t axis_length(const crd_unit* unit, const crd_fmu_axis* axis)
{
    if (axis->variable < 0) { return axis->start; }
    const crdi_setting* s = crdi_unit_setting(unit, crdi_unit_canonical(unit, axis->variable));
    if (s) { return (uint64_t)s->values.integer[0]; }
    const char* start = unit->info.variables[axis->variable].start;
    uint64_t length = 0;
    return start && crdi_parse_uint64(start, strlen(start), &length) ? length : 0;
}

static uint32_t fmu_extent(const crd_unit* unit, int32_t variable, int axis)
{
    const crdi_fmi_unit* u = (const crdi_fmi_unit*)unit;
    const int32_t v = crdi_unit_canonical(unit, variable);
    const int32_t first = u->d->axis_first[v];
    return first < 0 ? 1 : (uint32_t)axis_length(unit, &u->d->axes[first + axis]);
}

const crd_unit_name_ops crdi_fmi_unit_names = {fmu_dimension, fmu_item_at, fmu_extent};

// Structural settings change the sizes of arrays: the unit gets variables of its own.
static crd_status fmu_resize(crd_unit* unit)
{
    crdi_fmi_unit* u = (crdi_fmi_unit*)unit;
    const size_t n = (size_t)unit->info.variable_count;
    crd_variable* own = crdi_new_array(unit->ctx, n, sizeof *own);
    if (!own) { return CRD_E_MEMORY; }
    memcpy(own, u->d->variables, n * sizeof *own);
    u->variables = own;
    unit->info.variables = own;
    for (size_t i = 0; i < n; i++) {
        crd_variable* v = &own[i];
        const int32_t first = u->d->axis_first[v->alias_of >= 0 ? v->alias_of : (int32_t)i];
        if (!v->rank || first < 0) { continue; }
        uint64_t size = 1;
        for (int axis = 0; axis < v->rank; axis++) {
            const uint64_t length = axis_length(unit, &u->d->axes[first + axis]);
            if (length > MOST_ELEMENTS || (size *= length) > MOST_ELEMENTS) {
                return crdi_fail(unit->ctx, CRD_E_RANGE,
                                 "array '%s' would have more than %d elements", v->name,
                                 MOST_ELEMENTS);
            }
        }
        v->size = (uint32_t)size;
    }
    return CRD_OK;
}

static const char* known(const char* text)
{
    return text[0] ? text : NULL;
}

void crdi_fmi_unit_describe(crdi_fmi_unit* u, const char* kind)
{
    const crd_fmu_description* d = u->d;
    u->base.info = (crd_unit_info){
        .variables = d->variables,
        .variable_count = d->variable_count,
        .outputs = &d->outputs,
        .initial = &d->initial_unknowns,
        .start = d->has_start ? d->start : NAN,
        .stop = d->has_stop ? d->stop : NAN,
        .step = d->has_step ? d->step : NAN,
        .tolerance = d->has_tolerance ? d->tolerance : NAN,
        .kind = kind,
        .model = known(d->model_name),
        .model_version = known(d->model_version),
        .tool = known(d->generation_tool),
        .date = known(d->generation_date),
    };
}

// ---- calls -------------------------------------------------------------------------------------

crd_status crdi_fmi_unit_terminate(crd_unit* unit)
{
    crdi_fmi_unit* u = (crdi_fmi_unit*)unit;
    if (!u->fmi) { return CRD_OK; }
    const crd_fmi_state s = crd_fmi_get_state(u->fmi);
    const bool running = s == CRD_FMI_STEP || s == CRD_FMI_EVENT || s == CRD_FMI_CONTINUOUS ||
                         s == CRD_FMI_STEP_FAILED;
    return running ? crd_fmi_terminate(u->fmi) : CRD_OK;
}

void crdi_fmi_unit_abandon(crd_unit* unit)
{
    crdi_fmi_unit* u = (crdi_fmi_unit*)unit;
    if (!u->fmi) { return; }
    u->last_call = crd_fmi_last_call(u->fmi);
    crd_fmi_abandon(u->fmi);
    u->fmi = NULL;
}

crd_status crdi_fmi_unit_directional(crd_unit* unit, const int32_t* unknowns, int nu,
                                     const int32_t* knowns, int nk, const double* seed,
                                     double* result)
{
    crdi_fmi_unit* u = (crdi_fmi_unit*)unit;
    uint32_t* refs =
        crdi_grow(unit->ctx, u->refs, &u->ref_capacity, (size_t)nu + (size_t)nk, sizeof *refs);
    if (!refs) { return CRD_E_MEMORY; }
    u->refs = refs;
    for (int i = 0; i < nu; i++) {
        refs[i] = crdi_fmi_unit_reference(unit, unknowns[i]);
    }
    for (int k = 0; k < nk; k++) {
        refs[nu + k] = crdi_fmi_unit_reference(unit, knowns[k]);
    }
    return crd_fmi_directional_derivative(u->fmi, refs, (size_t)nu, refs + nu, (size_t)nk, seed,
                                          result);
}

// ---- life --------------------------------------------------------------------------------------

void crdi_fmi_unit_init(crdi_fmi_unit* u, crd_context* ctx, const crd_unit_spec* spec, crd_fmu* fmu,
                        bool shares_fmu)
{
    u->base = (crd_unit){.ctx = ctx, .name = spec->name, .spec = spec};
    u->fmu = fmu;
    u->d = crd_fmu_describe(fmu);
    u->shares_fmu = shares_fmu;
    u->next_event = INFINITY;
    u->last_call = "";
}

void crdi_fmi_unit_clear(crdi_fmi_unit* u)
{
    crd_context* ctx = u->base.ctx;
    crd_fmi_destroy(u->fmi);
    if (!u->shares_fmu) { crd_fmu_close(u->fmu); }
    crd_free(ctx, u->variables);
    crd_free(ctx, u->refs);
}

static crd_status fmu_create(crd_context* ctx, crd_unit_store* store, const crd_unit_spec* spec,
                             crd_place* place, crd_unit** out)
{
    (void)place;
    crd_fmu* fmu = NULL;
    const bool shares = store != NULL;
    crd_status st = shares ? crdi_unit_store_fmu(store, ctx, spec->path, &fmu)
                           : crd_fmu_open(ctx, spec->path, NULL, &fmu);
    if (st < 0) { return st; }
    const crd_fmu_description* d = crd_fmu_describe(fmu);
    const bool exchange =
        spec->interface == CRD_INTERFACE_MODEL_EXCHANGE ||
        (spec->interface == CRD_INTERFACE_AUTO && !d->has_cosimulation && d->has_model_exchange);
    st = crdi_fmu_provide(fmu, exchange, ctx);
    if (st < 0) {
        if (!shares) { crd_fmu_close(fmu); }
        return st;
    }
    return exchange ? crdi_me_unit_create(ctx, spec, fmu, shares, out)
                    : crdi_fmi_unit_create(ctx, spec, fmu, shares, out);
}

const crdi_adapter crdi_adapter_fmi = {.create = fmu_create, .resize = fmu_resize};
