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

const char* crdi_type_name(int type)
{
    return types[type];
}

const char* crdi_where(crd_place p, char* buffer, size_t size)
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
        crdi_where(place, at, sizeof at);
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
            crdi_where(c->place, at, sizeof at), from->unit->name, c->from, causalities[source]);
    }
    const bool tunable = target == CRD_PARAMETER && to->variable->variability == CRD_TUNABLE;
    if (target != CRD_INPUT && !tunable) {
        return crdi_fail(m->ctx, CRD_E_RANGE, "%sconnection to %s.%s: it is %s, expected an input",
                         crdi_where(c->place, at, sizeof at), to->unit->name, c->to,
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
                         crdi_where(c->place, at, sizeof at), from->unit->name, c->from, types[a],
                         to->unit->name, c->to, types[b]);
    }
    bool changes = c->has_transformation || c->map_count > 0;
    for (int i = 0; i < c->via_count; i++) {
        changes = changes || c->via[i].has_transformation || c->via[i].map_count > 0;
    }
    if (bytes && changes) {
        return crdi_fail(m->ctx, CRD_E_RANGE,
                         "%sgain and offset or a map make no sense between %s variables",
                         crdi_where(c->place, at, sizeof at), types[a]);
    }
    const uint32_t na = from->element < 0 ? from->variable->size : 1;
    const uint32_t nb = to->element < 0 ? to->variable->size : 1;
    if (na != nb) {
        return crdi_fail(m->ctx, CRD_E_RANGE,
                         "%s%s.%s has %u elements and %s.%s has %u: connect single elements as "
                         "name[1]",
                         crdi_where(c->place, at, sizeof at), from->unit->name, c->from, na,
                         to->unit->name, c->to, nb);
    }
    return CRD_OK;
}

// What is known of the unit that a value is in.
typedef struct {
    const char* name;
    bool known;
    crd_dimension dimension;
} measure;

static measure measure_of(const end* e)
{
    measure m = {.name = e->variable->unit};
    m.known = crdi_unit_dimension(e->unit, e->index, &m.dimension);
    return m;
}

static measure measure_behind(const crd_transformation* t)
{
    measure m = {.name = t->unit ? t->unit : "", .known = t->dimension != NULL};
    if (t->dimension) { m.dimension = *t->dimension; }
    if (!m.known && m.name[0]) { m.known = crd_dimension_parse(m.name, &m.dimension); }
    return m;
}

// A connection on its way to become links.
typedef struct {
    crd_master* m;
    const crd_connection_spec* spec;
    end from, to;
    double gain, offset; // of what has been done so far: gain * x + offset
    bool transform;
} route;

static crd_status fail_units(const route* r, const measure* a, const measure* b)
{
    char at[512];
    const crd_connection_spec* c = r->spec;
    crdi_where(c->place, at, sizeof at);
    if (c->via_count == 0) {
        return crdi_fail(r->m->ctx, CRD_E_RANGE,
                         "%s%s.%s is in '%s' and %s.%s in '%s': these cannot be converted; "
                         "'convert_units: false' passes the numbers as they are",
                         at, r->from.unit->name, c->from, a->name, r->to.unit->name, c->to,
                         b->name);
    }
    return crdi_fail(r->m->ctx, CRD_E_RANGE,
                     "%s%s.%s -> %s.%s: '%s' cannot be converted into '%s' on the way", at,
                     r->from.unit->name, c->from, r->to.unit->name, c->to, a->name, b->name);
}

// From one unit into the next. If one of them says nothing, the numbers pass as they are.
static crd_status convert_units(route* r, const measure* a, const measure* b)
{
    char at[512];
    const crd_variable *from = r->from.variable, *to = r->to.variable;
    if (crd_type_kind(from->type) != CRD_REAL || crd_type_kind(to->type) != CRD_REAL || !a->known ||
        !b->known) {
        return CRD_OK;
    }
    if (!crd_dimension_equal(&a->dimension, &b->dimension)) { return fail_units(r, a, b); }
    const bool relative = from->relative_quantity || to->relative_quantity;
    const double factor = a->dimension.factor / b->dimension.factor;
    const double shift =
        relative ? 0 : (a->dimension.offset - b->dimension.offset) / b->dimension.factor;
    if (factor == 1 && shift == 0) { return CRD_OK; }
    r->transform = true;
    r->gain *= factor;
    r->offset = factor * r->offset + shift;
    crdi_log(r->m->log, CRD_LOG_INFO, "%s%s.%s [%s] -> %s.%s [%s]: converted with factor %g%s",
             crdi_where(r->spec->place, at, sizeof at), r->from.unit->name, r->spec->from, a->name,
             r->to.unit->name, r->spec->to, b->name, factor, shift != 0 ? " and offset" : "");
    return CRD_OK;
}

static void scale(route* r, double gain, double offset)
{
    r->gain *= gain;
    r->offset = gain * r->offset + offset;
    r->transform = true;
}

// All stages in one gain and one offset.
static crd_status collapse(route* r)
{
    crd_status st = CRD_OK;
    const crd_connection_spec* c = r->spec;
    measure now = measure_of(&r->from);
    const measure last = measure_of(&r->to);
    for (int i = 0; i < c->via_count; i++) {
        const crd_transformation* t = &c->via[i];
        const measure next = measure_behind(t);
        if (t->convert_units) { CRD_TRY(convert_units(r, &now, &next)); }
        if (t->has_transformation) { scale(r, t->gain, t->offset); }
        if (next.name[0]) { now = next; } // one that says nothing keeps the unit
    }
    if (c->convert_units) { CRD_TRY(convert_units(r, &now, &last)); }
    if (c->has_transformation) { scale(r, c->gain, c->offset); }
fail:
    return st;
}

static crd_status make_route(route* r, const crdi_chain** chain)
{
    *chain = NULL;
    r->gain = 1;
    if (!crdi_chain_needed(r->spec)) { return collapse(r); }
    char at[512];
    crdi_where(r->spec->place, at, sizeof at);
    return crdi_chain_build(
        r->m, &(crdi_chain_ends){r->spec, r->from.unit, r->to.unit, r->from.index, r->to.index, at},
        chain);
}

static crd_status connect_one(crd_master* m, const crd_connection_spec* c)
{
    crd_status st = CRD_OK;
    route r = {.m = m, .spec = c};
    const crdi_chain* chain = NULL;
    CRD_TRY(resolve_end(m, c->from_unit, c->from, c->place, &r.from));
    CRD_TRY(resolve_end(m, c->to_unit, c->to, c->place, &r.to));
    CRD_TRY(check_causality(m, c, &r.from, &r.to));
    CRD_TRY(check_types(m, c, &r.from, &r.to));
    CRD_TRY(make_route(&r, &chain));

    const end from = r.from, to = r.to;
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
            .gain = r.gain,
            .offset = r.offset,
            .transform = r.transform,
            .chain = chain,
            .real = curve && !c->coupling,
            .slope = curve && c->coupling,
            .couple = c->coupling ? m->couple_count++ : -1, // in the order of writing
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
                crdi_where(b->spec->place, at, sizeof at), m->members[b->to_member].unit->name,
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
        // What a bench and its master tell each other is filled in by the unit itself.
        const bool own = unit->spec && unit->spec->source == CRD_UNIT_DCP;
        if (own && strncmp(x->name, "bench.", 6) == 0) { continue; }
        const bool stands_by = unit->spec && unit->spec->standby.model;
        if (stands_by && strcmp(x->name, "standby.use") == 0) { continue; } // for whoever wants to
        if (++count <= MOST_WARNINGS) {
            crdi_log(m->log, level, "%s.%s is not connected and keeps its start value %s",
                     unit->name, x->name, x->start && x->start[0] ? x->start : "(none given)");
        }
    }
    if (count > MOST_WARNINGS) {
        crdi_log(m->log, level, "%s: %d more inputs are not connected", unit->name,
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
        crd_free(m->ctx, used);
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
