// Connections of the description become links, one per element, with every check that needs the
// units' descriptions: variables, causality, types, sizes, units of measure, one source per input.
#include "master/master.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char* const causalities[] = {
    [CRD_LOCAL] = "a local variable",
    [CRD_INPUT] = "an input",
    [CRD_OUTPUT] = "an output",
    [CRD_PARAMETER] = "a parameter",
    [CRD_CALCULATED_PARAMETER] = "a calculated parameter",
    [CRD_STRUCTURAL_PARAMETER] = "a structural parameter",
    [CRD_INDEPENDENT] = "the independent variable",
};

static const char* const types[] = {
    [CRD_FLOAT64] = "Float64", [CRD_FLOAT32] = "Float32", [CRD_INT8] = "Int8",
    [CRD_UINT8] = "UInt8",     [CRD_INT16] = "Int16",     [CRD_UINT16] = "UInt16",
    [CRD_INT32] = "Int32",     [CRD_UINT32] = "UInt32",   [CRD_INT64] = "Int64",
    [CRD_UINT64] = "UInt64",   [CRD_BOOLEAN] = "Boolean", [CRD_ENUMERATION] = "Enumeration",
    [CRD_STRING] = "String",   [CRD_BINARY] = "Binary",   [CRD_CLOCK] = "Clock",
};

// One end of a connection.
typedef struct {
    crd_unit* unit;
    const crd_variable* variable;
    int32_t index, element; // element -1: the whole variable
} end;

// "file:line: " for messages, "" if it came from nowhere.
static const char* where(crd_place p, char* buffer, size_t size)
{
    buffer[0] = 0;
    if (p.file && p.file[0]) {
        if (p.line > 0) {
            snprintf(buffer, size, "%s:%d: ", p.file, p.line);
        } else {
            snprintf(buffer, size, "%s: ", p.file);
        }
    }
    return buffer;
}

static crd_status resolve_end(crd_master* m, int unit, const char* text, crd_place place, end* out)
{
    char at[512];
    out->unit = m->members[unit].unit;
    crd_status st = crd_unit_resolve(out->unit, m->ctx, text, &out->index, &out->element);
    if (st < 0) {
        where(place, at, sizeof at);
        at[strlen(at) > 2 ? strlen(at) - 2 : 0] = 0; // crdi_fail_in puts its own colon
        return at[0] ? crdi_fail_in(m->ctx, st, "%s", at) : st;
    }
    out->variable = &out->unit->info.variables[out->index];
    if (out->variable->alias_of >= 0) { // read and set the variable that stands for it
        out->index = out->variable->alias_of;
    }
    return CRD_OK;
}

static crd_status check_causality(crd_master* m, const crd_connection_spec* c, const end* from,
                                  const end* to)
{
    char at[512];
    const int source = from->variable->causality, target = to->variable->causality;
    if (source == CRD_INPUT || source == CRD_INDEPENDENT) {
        return crdi_fail(
            m->ctx, CRD_E_RANGE, "%sconnection from %s.%s: it is %s, expected an output",
            where(c->place, at, sizeof at), from->unit->name, c->from, causalities[source]);
    }
    const bool tunable = target == CRD_PARAMETER && to->variable->variability == CRD_TUNABLE;
    if (target != CRD_INPUT && !tunable) {
        return crdi_fail(m->ctx, CRD_E_RANGE, "%sconnection to %s.%s: it is %s, expected an input",
                         where(c->place, at, sizeof at), to->unit->name, c->to,
                         causalities[target]);
    }
    return CRD_OK;
}

static crd_status check_types(crd_master* m, const crd_connection_spec* c, const end* from,
                              const end* to)
{
    char at[512];
    const int a = from->variable->type, b = to->variable->type;
    const bool bytes = crd_type_kind(a) == CRD_BYTES || crd_type_kind(b) == CRD_BYTES;
    if (a == CRD_CLOCK || b == CRD_CLOCK || (bytes && a != b)) {
        return crdi_fail(m->ctx, CRD_E_RANGE, "%s%s.%s is %s and cannot be connected to %s.%s, %s",
                         where(c->place, at, sizeof at), from->unit->name, c->from, types[a],
                         to->unit->name, c->to, types[b]);
    }
    if (bytes && c->has_transformation) {
        return crdi_fail(m->ctx, CRD_E_RANGE,
                         "%sgain and offset make no sense between %s variables",
                         where(c->place, at, sizeof at), types[a]);
    }
    const uint32_t na = from->element < 0 ? from->variable->size : 1;
    const uint32_t nb = to->element < 0 ? to->variable->size : 1;
    if (na != nb) {
        return crdi_fail(m->ctx, CRD_E_RANGE,
                         "%s%s.%s has %u elements and %s.%s has %u: connect single elements as "
                         "name[1]",
                         where(c->place, at, sizeof at), from->unit->name, c->from, na,
                         to->unit->name, c->to, nb);
    }
    return CRD_OK;
}

// value in the target's unit = factor * value + shift
static crd_status unit_conversion(crd_master* m, const crd_connection_spec* c, const end* from,
                                  const end* to, double* factor, double* shift)
{
    char at[512];
    crd_dimension a, b;
    *factor = 1;
    *shift = 0;
    if (!c->convert_units || crd_type_kind(from->variable->type) != CRD_REAL ||
        crd_type_kind(to->variable->type) != CRD_REAL ||
        !from->unit->ops->dimension(from->unit, from->index, &a) ||
        !to->unit->ops->dimension(to->unit, to->index, &b)) {
        return CRD_OK; // one of them says nothing: the numbers pass as they are
    }
    if (!crd_dimension_equal(&a, &b)) {
        return crdi_fail(m->ctx, CRD_E_RANGE,
                         "%s%s.%s is in '%s' and %s.%s in '%s': these cannot be converted; "
                         "'convert_units: false' passes the numbers as they are",
                         where(c->place, at, sizeof at), from->unit->name, c->from,
                         from->variable->unit, to->unit->name, c->to, to->variable->unit);
    }
    const bool relative = from->variable->relative_quantity || to->variable->relative_quantity;
    *factor = a.factor / b.factor;
    *shift = relative ? 0 : (a.offset - b.offset) / b.factor;
    if (*factor != 1 || *shift != 0) {
        crdi_log(m->ctx, CRD_LOG_INFO, "%s%s.%s [%s] -> %s.%s [%s]: converted with factor %g%s",
                 where(c->place, at, sizeof at), from->unit->name, c->from, from->variable->unit,
                 to->unit->name, c->to, to->variable->unit, *factor,
                 *shift != 0 ? " and offset" : "");
    }
    return CRD_OK;
}

static crd_status connect_one(crd_master* m, const crd_connection_spec* c)
{
    crd_status st = CRD_OK;
    end from = {0}, to = {0};
    double factor = 1, shift = 0;
    CRD_TRY(resolve_end(m, c->from_unit, c->from, c->place, &from));
    CRD_TRY(resolve_end(m, c->to_unit, c->to, c->place, &to));
    CRD_TRY(check_causality(m, c, &from, &to));
    CRD_TRY(check_types(m, c, &from, &to));
    CRD_TRY(unit_conversion(m, c, &from, &to, &factor, &shift));

    const int n = from.element < 0 ? (int)from.variable->size : 1;
    crdi_link* links =
        crdi_grow(m->ctx, m->links, &m->link_capacity, (size_t)(m->link_count + n), sizeof *links);
    if (!links) { return CRD_E_MEMORY; }
    m->links = links;
    const bool curve = crd_type_kind(from.variable->type) == CRD_REAL &&
                       crd_type_kind(to.variable->type) == CRD_REAL &&
                       from.variable->variability == CRD_CONTINUOUS &&
                       to.variable->variability == CRD_CONTINUOUS;
    for (int i = 0; i < n; i++) {
        links[m->link_count++] = (crdi_link){
            .from_member = c->from_unit,
            .to_member = c->to_unit,
            .from_variable = from.index,
            .to_variable = to.index,
            .from_element = from.element < 0 ? i : from.element,
            .to_element = to.element < 0 ? i : to.element,
            // gain * (factor * x + shift) + offset
            .gain = c->gain * factor,
            .offset = c->gain * shift + c->offset,
            .transform = c->has_transformation || factor != 1 || shift != 0,
            .order = curve ? (int)c->extrapolation : 0,
            .spec = c,
        };
    }
fail:
    return st;
}

static int by_target(const void* a, const void* b)
{
    const crdi_link *x = a, *y = b;
    if (x->to_member != y->to_member) { return x->to_member < y->to_member ? -1 : 1; }
    if (x->to_variable != y->to_variable) { return x->to_variable < y->to_variable ? -1 : 1; }
    if (x->to_element != y->to_element) { return x->to_element < y->to_element ? -1 : 1; }
    return x->spec < y->spec ? -1 : x->spec > y->spec;
}

// The links are sorted by target.
static crd_status check_one_source(crd_master* m)
{
    for (int i = 1; i < m->link_count; i++) {
        const crdi_link *a = &m->links[i - 1], *b = &m->links[i];
        if (a->to_member == b->to_member && a->to_variable == b->to_variable &&
            a->to_element == b->to_element) {
            char at[512];
            return crdi_fail(
                m->ctx, CRD_E_RANGE,
                "%s%s.%s has two sources, %s.%s (line %d) and %s.%s: an input takes one",
                where(b->spec->place, at, sizeof at), m->members[b->to_member].unit->name,
                b->spec->to, m->members[a->from_member].unit->name, a->spec->from,
                a->spec->place.line, m->members[b->from_member].unit->name, b->spec->from);
        }
    }
    return CRD_OK;
}

enum { MOST_WARNINGS = 3 }; // of a unit; then one line says how many more there are

// Inputs of a unit that neither a link nor a setting gives a value.
static void warn_about(crd_master* m, const crd_unit* unit, const bool* used)
{
    const crd_level level = m->sys->single ? CRD_LOG_INFO : CRD_LOG_WARNING;
    int count = 0;
    for (int v = 0; v < unit->info.variable_count; v++) {
        const crd_variable* x = &unit->info.variables[v];
        if (x->causality != CRD_INPUT || x->alias_of >= 0 || used[v] || x->type == CRD_CLOCK) {
            continue;
        }
        if (++count <= MOST_WARNINGS) {
            crdi_log(m->ctx, level, "%s.%s is not connected and keeps its start value %s",
                     unit->name, x->name, x->start && x->start[0] ? x->start : "(none given)");
        }
    }
    if (count > MOST_WARNINGS) {
        crdi_log(m->ctx, level, "%s: %d more inputs are not connected", unit->name,
                 count - MOST_WARNINGS);
    }
}

// An input without a source keeps its start value: legal, and worth a word in a system of many.
static crd_status warn_unconnected(crd_master* m)
{
    int link = 0;
    for (int u = 0; u < m->member_count; u++) {
        const crd_unit* unit = m->members[u].unit;
        bool* used = crdi_new_array(m->ctx, (size_t)unit->info.variable_count, sizeof *used);
        if (!used) { return CRD_E_MEMORY; }
        for (; link < m->link_count && m->links[link].to_member == u; link++) {
            used[m->links[link].to_variable] = true;
        }
        for (int i = 0; i < unit->spec->parameter_count; i++) {
            const int32_t v = unit->ops->find(unit, unit->spec->parameters[i].variable);
            if (v < 0) { continue; }
            const int32_t real = unit->info.variables[v].alias_of;
            used[real >= 0 ? real : v] = true;
        }
        warn_about(m, unit, used);
        crdi_free(m->ctx, used);
    }
    return CRD_OK;
}

crd_status crdi_master_connect(crd_master* m)
{
    crd_status st = CRD_OK;
    for (int i = 0; i < m->sys->connection_count; i++) {
        CRD_TRY(connect_one(m, &m->sys->connections[i]));
    }
    if (m->link_count) { qsort(m->links, (size_t)m->link_count, sizeof *m->links, by_target); }
    CRD_TRY(check_one_source(m));
    CRD_TRY(warn_unconnected(m));
fail:
    return st;
}
