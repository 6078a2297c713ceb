// Rows of models that are made from a netlist.
#include "shared/circuit_table.h"

#include <string.h>

size_t crdi_model_take(crdi_model_table* t, size_t doubles)
{
    const size_t at = t->used;
    t->used += doubles * sizeof(double);
    return at;
}

void crdi_model_add(crdi_model_table* t, crd_model_variable row)
{
    if (row.unit && !*row.unit) { row.unit = NULL; }
    t->rows[t->count++] = row;
}

crd_model_variable crdi_model_input(const char* name, const char* unit, double start, size_t at,
                                    const char* description)
{
    return (crd_model_variable){.name = name,
                                .causality = CRD_INPUT,
                                .offset = at,
                                .derivatives = at + sizeof(double),
                                .unit = unit,
                                .start = start,
                                .description = description};
}

crd_status crdi_model_check_names(const crdi_model_table* t, const char* time, const char* twice)
{
    crd_status st = CRD_OK;
    crd_map names;
    crdi_map_init(&names, t->ctx);
    for (int i = 0; i < t->count && st >= 0; i++) {
        bool fresh = true;
        const char* name = t->rows[i].name;
        st = crdi_map_add(&names, name, i, &fresh);
        if (st < 0) { break; }
        if (strcmp(name, "time") == 0) {
            st = crdi_fail(t->ctx, CRD_E_RANGE, "%s: a variable is called '%s', %s", t->file,
                           crdi_clip(name).text, time);
        } else if (!fresh) {
            st = crdi_fail(t->ctx, CRD_E_RANGE, "%s: two variables are called '%s'%s", t->file,
                           crdi_clip(name).text, twice);
        }
    }
    crdi_map_clear(&names);
    return st;
}

crd_status crdi_model_units(const crdi_model_table* t, bool unknown, crd_model* m)
{
    crd_model_unit* units = crdi_arena_new(t->arena, (size_t)t->count, sizeof *units);
    if (!units) { return CRD_E_MEMORY; }
    int count = 0;
    for (int i = 0; i < t->count; i++) {
        const char* name = t->rows[i].unit;
        crd_dimension d = {0};
        bool known = false;
        for (int k = 0; name && k < count; k++) {
            known = known || strcmp(units[k].name, name) == 0;
        }
        if (!name || known) { continue; }
        const bool parsed = crd_dimension_parse(name, &d);
        if (!parsed && !unknown) { continue; }
        units[count++] =
            (crd_model_unit){.name = name,
                             .has_base = parsed,
                             .exponents = {d.kg, d.m, d.s, d.A, d.K, d.mol, d.cd, d.rad},
                             .factor = d.factor,
                             .offset = d.offset};
    }
    m->units = units;
    m->unit_count = count;
    return CRD_OK;
}

crd_model_status crdi_model_refuse(const crd_model_host* host, crd_model_status status,
                                   const char* text)
{
    host->log(host->user, status, text);
    return status;
}

uint64_t crdi_model_sum(uint64_t sum, const char* bytes, size_t size)
{
    uint64_t word;
    for (size_t i = 0; i + sizeof word <= size; i += sizeof word) {
        memcpy(&word, bytes + i, sizeof word);
        sum = (sum ^ word) * 0x100000001b3u;
        sum ^= sum >> 29;
    }
    return sum;
}
