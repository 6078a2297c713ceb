// What a slave description says, in the words of units.
#include "unit/dcp/dcp_unit.h"

#include <math.h>
#include <string.h>

static int32_t unit_index(const crd_dcp_description* d, const char* name)
{
    for (int i = 0; *name && i < d->unit_count; i++) {
        if (strcmp(d->units[i].name, name) == 0) { return i; }
    }
    return -1;
}

static crd_variable dcp_describe_variable_of(const crd_dcp_description* d, int i)
{
    const crd_dcp_variable* v = &d->variables[i];
    const bool given = v->causality != CRD_OUTPUT;
    return (crd_variable){
        .name = v->name,
        .description = v->description,
        .unit = v->unit,
        .start = v->start,
        .reference = (uint32_t)i,
        .size = 1,
        .unit_index = unit_index(d, v->unit),
        .type_index = -1,
        .alias_of = -1,
        .line = (uint32_t)v->line,
        .type = (uint8_t)crdi_dcp_type(v->type),
        .causality = v->causality,
        .variability = v->variability,
        .initial = given ? CRD_EXACT : CRD_CALCULATED,
        .rank = (uint8_t)v->rank,
        .nominal = isnan(v->nominal) ? 1 : v->nominal,
        .min = isnan(v->min) ? -INFINITY : v->min,
        .max = isnan(v->max) ? INFINITY : v->max,
    };
}

bool crdi_dcp_unit_dimension(const crd_unit* unit, int32_t variable, crd_dimension* out)
{
    const crdi_dcp_unit* u = (const crdi_dcp_unit*)unit;
    const crd_variable* v = &unit->info.variables[variable];
    const crd_dcp_unit* q = v->unit_index < 0 ? NULL : &u->d->units[v->unit_index];
    if (!q || !q->has_base) { return v->unit[0] && crd_dimension_parse(v->unit, out); }
    const int8_t* e = q->exponents;
    *out = (crd_dimension){e[0], e[1], e[2], e[3], e[4], e[5], e[6], e[7], q->factor, q->offset};
    return true;
}

// The value of a structural parameter: what the settings say, else its start value.
static uint64_t structural_value(const crdi_dcp_unit* u, uint64_t vr)
{
    const int i = crd_dcp_find_vr(u->d, vr);
    const crdi_setting* s = i < 0 ? NULL : crdi_unit_setting(&u->base, i);
    if (s) { return (uint64_t)s->values.integer[0]; }
    uint64_t n = 1;
    const char* start = i < 0 ? NULL : u->d->variables[i].start;
    if (start) { (void)crdi_parse_uint64(start, strlen(start), &n); }
    return n;
}

uint32_t crdi_dcp_unit_extent(const crd_unit* unit, int32_t variable, int axis)
{
    const crdi_dcp_unit* u = (const crdi_dcp_unit*)unit;
    const crd_dcp_variable* v = &u->d->variables[variable];
    const uint64_t n =
        v->is_linked[axis] ? structural_value(u, v->linked[axis]) : v->dimensions[axis];
    return n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

enum { MOST_ELEMENTS = 1 << 24 }; // of one variable

static crd_status dcp_describe_size_of(crdi_dcp_unit* u, int32_t i, uint32_t* out)
{
    uint64_t n = 1;
    for (int axis = 0; axis < u->d->variables[i].rank; axis++) {
        n *= crdi_dcp_unit_extent(&u->base, i, axis);
        if (n > MOST_ELEMENTS) {
            return crdi_fail(u->base.ctx, CRD_E_RANGE,
                             "variable '%s' would have more than %d elements",
                             u->d->variables[i].name, MOST_ELEMENTS);
        }
    }
    *out = (uint32_t)n;
    return CRD_OK;
}

// ---- values ------------------------------------------------------------------------------------

// Texts and binaries have room for the longest value, so that none is made in a step.
static crd_status dcp_describe_make_values(crdi_dcp_unit* u)
{
    static const crdi_dcp_room room = {
        .text = 1024, .most = MOST_ELEMENTS, .most_text = UINT32_MAX};
    crd_arena_clear(&u->memory);
    crd_arena_init(&u->memory, u->base.ctx);
    uint64_t* sizes = crdi_arena_new(&u->memory, (size_t)u->d->variable_count, sizeof *sizes);
    if (!sizes) { return CRD_E_MEMORY; }
    for (int i = 0; i < u->d->variable_count; i++) {
        if (u->d->variables[i].causality == CRD_STRUCTURAL_PARAMETER) {
            sizes[i] = structural_value(u, u->d->variables[i].vr);
        }
    }
    return crdi_dcp_values_create(&u->memory, u->d, &room, sizes, &u->values);
}

crd_status crdi_dcp_unit_resize(crd_unit* unit)
{
    crd_status st = CRD_OK;
    crdi_dcp_unit* u = (crdi_dcp_unit*)unit;
    for (int32_t i = 0; i < unit->info.variable_count; i++) {
        CRD_TRY(dcp_describe_size_of(u, i, &u->variables[i].size));
    }
    CRD_TRY(dcp_describe_make_values(u));
fail:
    return st;
}

// ---- dependencies ------------------------------------------------------------------------------

static int count_initial(const crd_dcp_description* d)
{
    int n = 0;
    for (int i = 0; i < d->variable_count; i++) {
        n += d->variables[i].initial_dependency_count;
    }
    return n;
}

// During the initialisation outputs follow inputs as the description says. Afterwards they change
// with steps only: nothing acts without delay.
static crd_status dcp_describe_dependencies(crdi_dcp_unit* u)
{
    const crd_dcp_description* d = u->d;
    const size_t n = (size_t)d->variable_count;
    crd_dependencies* both = crdi_arena_new(&u->arena, 2, sizeof *both);
    int32_t* unknown = crdi_arena_new(&u->arena, n + 1, sizeof *unknown);
    int32_t* first = crdi_arena_new(&u->arena, n + 2, sizeof *first);
    int32_t* none = crdi_arena_new(&u->arena, n + 2, sizeof *none);
    int32_t* known = crdi_arena_new(&u->arena, (size_t)count_initial(d) + 1, sizeof *known);
    bool* on_all = crdi_arena_new(&u->arena, n + 1, sizeof *on_all);
    bool* on_none = crdi_arena_new(&u->arena, n + 1, sizeof *on_none);
    if (!both || !unknown || !first || !none || !known || !on_all || !on_none) {
        return CRD_E_MEMORY;
    }
    int32_t rows = 0, used = 0;
    for (int i = 0; i < d->variable_count; i++) {
        const crd_dcp_variable* v = &d->variables[i];
        if (v->causality != CRD_OUTPUT) { continue; }
        unknown[rows] = i;
        on_all[rows] = !v->has_initial_dependencies;
        for (int k = 0; k < v->initial_dependency_count; k++) {
            const int input = crd_dcp_find_vr(d, v->initial_dependencies[k].vr);
            if (input >= 0) { known[used++] = input; }
        }
        first[++rows] = used;
    }
    both[0] = (crd_dependencies){rows, unknown, none, known, on_none};
    both[1] = (crd_dependencies){rows, unknown, first, known, on_all};
    u->base.info.outputs = &both[0];
    u->base.info.initial = &both[1];
    return CRD_OK;
}

crd_status crdi_dcp_unit_describe(crdi_dcp_unit* u)
{
    crd_status st = CRD_OK;
    const crd_dcp_description* d = u->d;
    const size_t n = (size_t)d->variable_count;
    u->variables = crdi_arena_new(&u->arena, n + 1, sizeof *u->variables);
    u->fed = crdi_arena_new(&u->arena, n + 1, sizeof *u->fed);
    u->routed = crdi_arena_new(&u->arena, n + 1, sizeof *u->routed);
    u->inputs = crdi_arena_new(&u->arena, n + 1, sizeof *u->inputs);
    u->outputs = crdi_arena_new(&u->arena, n + 1, sizeof *u->outputs);
    if (!u->variables || !u->fed || !u->routed || !u->inputs || !u->outputs) {
        return CRD_E_MEMORY;
    }
    for (int32_t i = 0; i < d->variable_count; i++) {
        u->variables[i] = dcp_describe_variable_of(d, i);
        CRD_TRY(crdi_map_add(&u->names, d->variables[i].name, i, NULL));
    }
    u->base.info.variables = u->variables;
    u->base.info.variable_count = d->variable_count;
    u->base.info.model = d->name;
    u->base.info.model_version = d->version[0] ? d->version : NULL;
    u->base.info.tool = d->tool[0] ? d->tool : NULL;
    u->base.info.date = d->date[0] ? d->date : NULL;
    CRD_TRY(dcp_describe_dependencies(u));
    CRD_TRY(crdi_dcp_unit_resize(&u->base));
fail:
    return st;
}
