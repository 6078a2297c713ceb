// The values of the variables of a description.
#include "shared/dcp.h"

#include <math.h>

static uint64_t times(uint64_t a, uint64_t b) // no more than UINT32_MAX
{
    return a == 0 || b == 0 ? 0 : a > UINT32_MAX / b ? UINT32_MAX : a * b;
}

uint64_t crdi_dcp_elements(const crd_dcp_description* d, const crdi_dcp_value* values, int variable,
                           int changed, uint64_t to)
{
    const crd_dcp_variable* v = &d->variables[variable];
    uint64_t n = 1;
    for (int i = 0; i < v->rank; i++) {
        const int link = values[variable].linked[i];
        n = times(n, link < 0          ? v->dimensions[i]
                     : link == changed ? to
                                       : (uint64_t)*values[link].slot.integer);
    }
    return n;
}

// As many elements as the structural parameters may ask for.
static uint32_t find_capacity(const crd_dcp_description* d, const crdi_dcp_value* values,
                              int variable, const crdi_dcp_room* room)
{
    const crd_dcp_variable* v = &d->variables[variable];
    const uint64_t now = crdi_dcp_elements(d, values, variable, -1, 0);
    uint64_t most = room->elements ? 1 : now;
    for (int i = 0; i < v->rank && room->elements; i++) {
        const int link = values[variable].linked[i];
        const double max = link < 0 ? NAN : d->variables[link].max;
        most = times(most, link < 0                       ? v->dimensions[i]
                           : max >= 1 && max < UINT32_MAX ? (uint64_t)max
                                                          : room->elements);
    }
    if (most < now) { most = now; }
    return (uint32_t)(most < room->most ? most : room->most);
}

static void measure_value(const crd_dcp_description* d, crdi_dcp_value* values, int variable,
                          const crdi_dcp_room* room)
{
    const crd_dcp_variable* v = &d->variables[variable];
    crdi_dcp_value* value = &values[variable];
    if (crdi_dcp_is_bytes(v->type)) {
        const uint32_t wanted = v->max_size == UINT32_MAX ? room->text : v->max_size;
        value->capacity = wanted < room->most_text ? wanted : room->most_text;
        value->slot.max_size = value->capacity;
        value->slot.count = 1;
    } else {
        value->capacity = find_capacity(d, values, variable, room);
        value->slot.count = (uint32_t)crdi_dcp_elements(d, values, variable, -1, 0);
    }
}

void crdi_dcp_value_restart(const crd_dcp_description* d, crdi_dcp_value* values, int variable)
{
    crdi_dcp_read_start(d->variables[variable].start, &values[variable].slot,
                        values[variable].capacity);
}

// Both kinds of number take 8 bytes.
static crd_status place_values(crd_arena* arena, const crd_dcp_description* d,
                               crdi_dcp_value* values, uint8_t causality, const crdi_dcp_room* room)
{
    size_t numbers = 0, bytes = 0;
    for (int i = 0; i < d->variable_count; i++) {
        if (d->variables[i].causality != causality) { continue; }
        measure_value(d, values, i, room);
        *(crdi_dcp_is_bytes(values[i].slot.type) ? &bytes : &numbers) += values[i].capacity;
    }
    int64_t* number = crdi_arena_new(arena, numbers, sizeof *number);
    uint8_t* byte = crdi_arena_new(arena, bytes, 1);
    if (!number || !byte) { return CRD_E_MEMORY; }
    for (int i = 0; i < d->variable_count; i++) {
        crdi_dcp_value* value = &values[i];
        if (d->variables[i].causality != causality) { continue; }
        if (crdi_dcp_is_bytes(value->slot.type)) {
            value->slot.bytes = byte;
            byte += value->capacity;
        } else {
            value->slot.real = crdi_dcp_is_real(value->slot.type) ? (void*)number : NULL;
            value->slot.integer = crdi_dcp_is_real(value->slot.type) ? NULL : number;
            number += value->capacity;
        }
        crdi_dcp_value_restart(d, values, i);
    }
    return CRD_OK;
}

// Structural parameters first: the sizes of the others hang on them.
crd_status crdi_dcp_values_create(crd_arena* arena, const crd_dcp_description* d,
                                  const crdi_dcp_room* room, const uint64_t* structural,
                                  crdi_dcp_value** out)
{
    static const uint8_t order[] = {CRD_STRUCTURAL_PARAMETER, CRD_PARAMETER, CRD_INPUT, CRD_OUTPUT};
    crdi_dcp_value* values = crdi_arena_new(arena, (size_t)d->variable_count, sizeof *values);
    if (!values) { return CRD_E_MEMORY; }
    for (int i = 0; i < d->variable_count; i++) {
        const crd_dcp_variable* v = &d->variables[i];
        values[i].slot.type = v->type;
        if (crdi_dcp_is_bytes(v->type)) { values[i].slot.byte_count = &values[i].byte_count; }
        for (int k = 0; k < 8; k++) {
            const bool linked = k < v->rank && v->is_linked[k];
            const int link = linked ? crd_dcp_find_vr(d, v->linked[k]) : -1;
            const bool sizes =
                link >= 0 && d->variables[link].causality == CRD_STRUCTURAL_PARAMETER;
            values[i].linked[k] = sizes && v->causality != CRD_STRUCTURAL_PARAMETER ? link : -1;
        }
    }
    for (size_t i = 0; i < sizeof order; i++) {
        const crd_status st = place_values(arena, d, values, order[i], room);
        if (st < 0) { return st; }
        for (int k = 0; i == 0 && structural && k < d->variable_count; k++) {
            if (values[k].slot.integer) { *values[k].slot.integer = (int64_t)structural[k]; }
        }
    }
    *out = values;
    return CRD_OK;
}
