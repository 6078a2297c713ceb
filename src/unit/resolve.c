// Names of variables to variables, and what depends on what.
#include "shared/base.h"
#include "unit/unit.h"

#include <string.h>

typedef struct names {
    const crd_unit_info* info;
    int32_t next;
} names;

static const char* resolve_next_name(void* user)
{
    names* n = user;
    return n->next < n->info->variable_count ? n->info->variables[n->next++].name : NULL;
}

static crd_status unknown(const crd_unit* u, crd_context* ctx, const char* name)
{
    const char* near = crdi_nearest(name, resolve_next_name, &(names){.info = &u->info});
    if (near) {
        return crdi_fail(ctx, CRD_E_NOT_FOUND, "'%s' has no variable '%s', did you mean '%s'?",
                         u->name, name, near);
    }
    return crdi_fail(ctx, CRD_E_NOT_FOUND, "'%s' has no variable '%s' (it has %d variables)",
                     u->name, name, (int)u->info.variable_count);
}

// "2,3]" to a row-major position, counted from 0.
static crd_status read_index(const crd_unit* u, crd_context* ctx, const char* text,
                             int32_t variable, const char* p, int32_t* element)
{
    const crd_variable* v = &u->info.variables[variable];
    uint64_t at = 0;
    int axis = 0;
    for (;; axis++) {
        const size_t length = strcspn(p, ",]");
        size_t from = 0, to = length;
        while (from < to && p[from] == ' ') {
            from++;
        }
        while (from < to && p[to - 1] == ' ') {
            to--;
        }
        uint64_t index = 0;
        if (!p[length] || !crdi_parse_uint64(p + from, to - from, &index)) {
            return crdi_fail(ctx, CRD_E_RANGE,
                             "'%s.%s' is not an element, expected numbers as in %s[1]", u->name,
                             text, v->name);
        }
        const uint32_t extent = axis < v->rank ? crdi_unit_extent(u, variable, axis) : 0;
        if (axis < v->rank && (index < 1 || index > extent)) {
            return crdi_fail(ctx, CRD_E_RANGE, "'%s.%s': index %llu, expected 1 to %u", u->name,
                             text, (unsigned long long)index, extent);
        }
        at = at * extent + index - 1;
        p += length + 1;
        if (p[-1] == ']') { break; }
    }
    if (axis + 1 != v->rank) {
        return crdi_fail(ctx, CRD_E_RANGE, "'%s.%s' has %d indices, '%s' has %d dimensions",
                         u->name, text, axis + 1, v->name, (int)v->rank);
    }
    if (at > INT32_MAX) {
        return crdi_fail(ctx, CRD_E_RANGE, "'%s.%s': the array is too large", u->name, text);
    }
    *element = (int32_t)at;
    return CRD_OK;
}

crd_status crd_unit_resolve(const crd_unit* u, crd_context* ctx, const char* text,
                            int32_t* variable, int32_t* element)
{
    *element = -1;
    *variable = u->ops->find(u, text); // names may contain brackets themselves
    if (*variable >= 0) { return CRD_OK; }
    const char* bracket = strrchr(text, '[');
    const size_t length = strlen(text);
    if (!bracket || bracket == text || text[length - 1] != ']') { return unknown(u, ctx, text); }
    char* name = crdi_strdup(ctx, text);
    if (!name) { return CRD_E_MEMORY; }
    name[bracket - text] = 0;
    *variable = u->ops->find(u, name);
    const crd_status st = *variable < 0 ? unknown(u, ctx, name)
                                        : read_index(u, ctx, text, *variable, bracket + 1, element);
    crd_free(ctx, name);
    return st;
}

// ---- dependencies ------------------------------------------------------------------------------

static int32_t resolve_row_of(const crd_unit* u, const crd_dependencies* d, const int32_t* rows,
                              int32_t variable)
{
    const int32_t canonical = crdi_unit_canonical(u, variable);
    if (!d) { return -1; }
    if (rows) { return rows[variable] >= 0 ? rows[variable] : rows[canonical]; }
    for (int32_t r = 0; r < d->count; r++) {
        if (d->unknown[r] == variable || crdi_unit_canonical(u, d->unknown[r]) == canonical) {
            return r;
        }
    }
    return -1;
}

static bool row_has(const crd_unit* u, const crd_dependencies* d, int32_t row, int32_t input)
{
    if (d->on_all[row]) { return true; }
    const int32_t canonical = crdi_unit_canonical(u, input);
    for (int32_t k = d->first[row]; k < d->first[row + 1]; k++) {
        if (crdi_unit_canonical(u, d->known[k]) == canonical) { return true; }
    }
    return false;
}

bool crd_unit_depends(const crd_unit* u, int32_t variable, int32_t input, bool initial)
{
    if (u->info.flags & CRD_UNIT_IS_SOURCE) { return false; }
    if (crdi_unit_canonical(u, variable) == crdi_unit_canonical(u, input)) { return true; }
    const crd_variable* v = &u->info.variables[variable];
    const int c = v->causality;
    if (c == CRD_INPUT || c == CRD_PARAMETER || c == CRD_STRUCTURAL_PARAMETER ||
        c == CRD_INDEPENDENT || v->variability == CRD_CONSTANT) {
        return false;
    }
    if (initial && u->info.initial) {
        const int32_t row =
            resolve_row_of(u, u->info.initial, u->core ? u->core->initial_rows : NULL, variable);
        if (row >= 0) { return row_has(u, u->info.initial, row, input); }
        if (v->initial == CRD_EXACT) { return false; } // its start value says it all
    }
    const int32_t row =
        resolve_row_of(u, u->info.outputs, u->core ? u->core->output_rows : NULL, variable);
    return row < 0 ? true : row_has(u, u->info.outputs, row, input); // unsaid: on everything
}
