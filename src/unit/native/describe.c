// A model's table as the description of a unit.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "unit/native/native.h"

// Start values as a description writes them: elements separated by blanks.
static const char* start_text(crd_arena* a, const crd_model_variable* row)
{
    if (crd_type_kind(row->type) == CRD_BYTES) {
        const char* one = row->start_text ? row->start_text : "";
        const size_t length = strlen(one) + 1;
        char* all = row->size ? crdi_arena_new(a, row->size, length) : NULL;
        for (size_t k = 0; all && k < row->size; k++) { // the same for all elements
            memcpy(all + k * length, one, length);
        }
        return row->size ? all : one;
    }
    const size_t n = row->size ? row->size : 1;
    char* text = crdi_arena_new(a, n, 26);
    size_t used = 0;
    for (size_t k = 0; text && k < n; k++) {
        const double x = row->starts ? row->starts[k] : row->start;
        if (k) { text[used++] = ' '; }
        if (row->type == CRD_BOOLEAN) {
            text[used++] = x != 0 ? '1' : '0';
            text[used] = 0;
        } else {
            used += (size_t)crdi_format_double(text + used, x);
        }
    }
    return text;
}

static crd_status describe_row(crdi_native* u, int i, crd_variable* v)
{
    const crd_model_variable* row = &u->model->variables[i];
    const bool given = row->causality == CRD_PARAMETER || row->causality == CRD_INPUT || row->exact;
    const bool limited = row->min != 0 || row->max != 0;
    *v = (crd_variable){
        .name = row->name,
        .description = row->description ? row->description : "",
        .unit = row->unit ? row->unit : "",
        .reference = (uint32_t)i,
        .size = row->size ? (uint32_t)row->size : 1,
        .unit_index = -1,
        .type_index = -1,
        .alias_of = -1,
        .type = (uint8_t)row->type,
        .causality = (uint8_t)row->causality,
        .variability = (uint8_t)row->variability,
        .initial = given ? CRD_EXACT : CRD_CALCULATED,
        .rank = row->size ? 1 : 0,
        .nominal = row->nominal > 0 ? row->nominal : 1,
        .min = limited ? row->min : -INFINITY,
        .max = limited ? row->max : INFINITY,
    };
    if (given) {
        v->start = start_text(&u->arena, row);
        if (!v->start) { return CRD_E_MEMORY; }
    }
    bool fresh = true;
    const crd_status st = crdi_map_add(&u->names, row->name, i, &fresh);
    if (st == CRD_OK && !fresh) {
        return crdi_fail(u->base.ctx, CRD_E_RANGE, "model %s has two variables '%s'",
                         u->model->name, row->name);
    }
    return st;
}

// Names separated by blanks to indices. Returns how many, -1 after a message; `known` may be NULL.
static int native_describe_read_names(crdi_native* u, const crd_model_variable* row, int32_t* known)
{
    int n = 0;
    for (const char* p = row->depends; *p;) {
        char name[256];
        p += strspn(p, " ");
        const size_t length = strcspn(p, " ");
        if (!length) { break; }
        snprintf(name, sizeof name, "%.*s", (int)length, p);
        const int32_t i = crdi_map_find(&u->names, name);
        if (i < 0) {
            crdi_fail(u->base.ctx, CRD_E_RANGE, "model %s: '%s' depends on '%s', which is unknown",
                      u->model->name, row->name, name);
            return -1;
        }
        if (known) { known[n] = i; }
        n++;
        p += length;
    }
    return n;
}

static crd_status native_describe_dependencies(crdi_native* u)
{
    const crd_model* m = u->model;
    int32_t rows = 0, total = 0;
    for (int i = 0; i < m->variable_count; i++) {
        const crd_model_variable* row = &m->variables[i];
        if (row->causality != CRD_OUTPUT) { continue; }
        const int n = row->depends ? native_describe_read_names(u, row, NULL) : 0;
        if (n < 0) { return CRD_E_RANGE; }
        rows++;
        total += n;
    }
    int32_t* unknown = crdi_arena_new(&u->arena, (size_t)rows, sizeof *unknown);
    int32_t* first = crdi_arena_new(&u->arena, (size_t)rows + 1, sizeof *first);
    int32_t* known = crdi_arena_new(&u->arena, (size_t)total, sizeof *known);
    bool* on_all = crdi_arena_new(&u->arena, (size_t)rows, sizeof *on_all);
    if (!unknown || !first || !known || !on_all) { return CRD_E_MEMORY; }
    int32_t r = 0;
    for (int i = 0; i < m->variable_count; i++) {
        const crd_model_variable* row = &m->variables[i];
        if (row->causality != CRD_OUTPUT) { continue; }
        unknown[r] = i;
        on_all[r] = !row->depends;
        first[r + 1] =
            first[r] + (row->depends ? native_describe_read_names(u, row, known + first[r]) : 0);
        r++;
    }
    u->outputs = (crd_dependencies){
        .count = rows, .unknown = unknown, .first = first, .known = known, .on_all = on_all};
    u->base.info.outputs = &u->outputs;
    return CRD_OK;
}

crd_status crdi_native_describe(crdi_native* u)
{
    crd_status st = CRD_OK;
    const int n = u->model->variable_count;
    crd_variable* variables = crdi_arena_new(&u->arena, (size_t)n, sizeof *variables);
    if (!variables) { return CRD_E_MEMORY; }
    CRD_TRY(crdi_map_reserve(&u->names, (size_t)n));
    for (int i = 0; i < n; i++) {
        CRD_TRY(describe_row(u, i, &variables[i]));
    }
    u->base.info.variables = variables;
    u->base.info.variable_count = n;
    CRD_TRY(native_describe_dependencies(u));
fail:
    return st;
}
