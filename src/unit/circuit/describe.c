// A netlist as the description of a unit: parameters, inputs, outputs.
#include "shared/circuit_part.h"
#include "unit/circuit/circuit_unit.h"

#include <math.h>
#include <string.h>

static const char* number_text(crd_arena* a, double x)
{
    char text[40];
    const int length = crdi_format_double(text, x);
    return crdi_arena_text(a, text, (size_t)length);
}

// The netlist may be read anew: what is kept of it is copied.
static crd_status circuit_describe_add(crdi_circuit_unit* u, crd_variable* v, const char* name,
                                       const char* unit, crd_causality causality, double start)
{
    const bool output = causality == CRD_OUTPUT;
    const int32_t index = u->base.info.variable_count;
    bool fresh = false;
    *v = (crd_variable){
        .name = crdi_arena_text(&u->arena, name, strlen(name)),
        .description = "",
        .unit = crdi_arena_text(&u->arena, unit, strlen(unit)),
        .start = output ? NULL : number_text(&u->arena, start),
        .reference = (uint32_t)index,
        .size = 1,
        .unit_index = -1,
        .type_index = -1,
        .alias_of = -1,
        .type = CRD_FLOAT64,
        .causality = (uint8_t)causality,
        .variability = causality == CRD_PARAMETER ? CRD_FIXED : CRD_CONTINUOUS,
        .initial = output ? CRD_CALCULATED : CRD_EXACT,
        .nominal = 1,
        .min = -INFINITY,
        .max = INFINITY,
    };
    if (!v->name || !v->unit || (!output && !v->start)) { return CRD_E_MEMORY; }
    const crd_status st = crdi_map_add(&u->names, v->name, index, &fresh);
    if (st < 0) { return st; }
    if (!fresh) {
        return crdi_fail(u->base.ctx, CRD_E_RANGE,
                         "%s: '%s' is the name of two things among .param, .input and .output: a "
                         "unit needs different ones",
                         u->base.spec->path, crdi_clip(name).text);
    }
    u->base.info.variable_count++;
    return CRD_OK;
}

// Without given values the beginning is the operating point, which depends on all inputs.
static bool starts_at_rest(const crd_netlist* n)
{
    if (crdi_netlist_is_given(n)) { return false; }
    for (int32_t i = 1; n->node_ic && i < n->node_count; i++) {
        if (!isnan(n->node_ic[i])) { return false; }
    }
    return true;
}

static crd_status add_dependencies(crdi_circuit_unit* u, const bool* direct, crd_dependencies* d)
{
    const size_t rows = (size_t)u->outputs, columns = (size_t)u->inputs;
    int32_t* unknown = crdi_arena_new(&u->arena, rows, sizeof *unknown);
    int32_t* first = crdi_arena_new(&u->arena, rows + 1, sizeof *first);
    int32_t* known = crdi_arena_new(&u->arena, rows * columns, sizeof *known);
    bool* on_all = crdi_arena_new(&u->arena, rows, sizeof *on_all);
    if (!unknown || !first || !known || !on_all) { return CRD_E_MEMORY; }
    int32_t at = 0;
    for (int32_t r = 0; r < u->outputs; r++) {
        unknown[r] = u->parameters + u->inputs + r;
        for (int32_t k = 0; k < u->inputs; k++) {
            if (!direct || direct[(size_t)r * columns + (size_t)k]) {
                known[at++] = u->parameters + k;
            }
        }
        first[r + 1] = at;
    }
    *d = (crd_dependencies){
        .count = u->outputs, .unknown = unknown, .first = first, .known = known, .on_all = on_all};
    return CRD_OK;
}

static crd_status circuit_describe_dependencies(crdi_circuit_unit* u)
{
    crd_status st = CRD_OK;
    const size_t size = (size_t)u->outputs * (size_t)u->inputs;
    bool* direct = crdi_new_array(u->base.ctx, size + 1, sizeof *direct);
    if (!direct) { return CRD_E_MEMORY; }
    CRD_TRY(crdi_circuit_feedthrough(u->base.ctx, u->netlist, direct));
    CRD_TRY(add_dependencies(u, direct, &u->direct));
    u->base.info.outputs = &u->direct;
    if (starts_at_rest(u->netlist)) {
        CRD_TRY(add_dependencies(u, NULL, &u->initial));
        u->base.info.initial = &u->initial;
    }
fail:
    crd_free(u->base.ctx, direct);
    return st;
}

crd_status crdi_circuit_describe(crdi_circuit_unit* u)
{
    crd_status st = CRD_OK;
    const crd_netlist* n = u->netlist;
    const size_t count =
        (size_t)n->parameter_count + (size_t)n->input_count + (size_t)n->output_count;
    crd_variable* variables = crdi_arena_new(&u->arena, count, sizeof *variables);
    u->values = crdi_arena_new(&u->arena, (size_t)n->parameter_count, sizeof *u->values);
    u->loaded = crdi_arena_new(&u->arena, (size_t)n->parameter_count, sizeof *u->loaded);
    u->curves = crdi_arena_new(&u->arena, (size_t)n->input_count, sizeof *u->curves);
    if (!variables || !u->values || !u->loaded || !u->curves) { return CRD_E_MEMORY; }
    u->parameters = n->parameter_count;
    u->inputs = n->input_count;
    u->outputs = n->output_count;
    u->base.info.variables = variables;
    CRD_TRY(crdi_map_reserve(&u->names, count));
    crd_variable* v = variables;
    for (int i = 0; i < n->parameter_count; i++) {
        const crd_circuit_parameter* p = &n->parameters[i];
        CRD_TRY(circuit_describe_add(u, v++, p->written, "", CRD_PARAMETER, p->value));
        u->values[i] = u->loaded[i] = p->value;
    }
    for (int i = 0; i < n->input_count; i++) {
        const crd_circuit_input* in = &n->inputs[i];
        CRD_TRY(circuit_describe_add(u, v++, in->name, in->unit, CRD_INPUT, in->start));
    }
    for (int i = 0; i < n->output_count; i++) {
        CRD_TRY(
            circuit_describe_add(u, v++, n->outputs[i].name, n->outputs[i].unit, CRD_OUTPUT, 0));
    }
    CRD_TRY(circuit_describe_dependencies(u));
fail:
    return st;
}
