// Connections of the description, one per element, with every check that needs the
// units' descriptions: variables, causality, types, sizes, units of measure, one source per input.
#include "master/plan/plan.h"
#include "shared/base_findings.h"
#include "shared/base_names.h"

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

// One end of a connection.
typedef struct {
    crd_unit* unit;
    const crd_variable* variable;
    int32_t index, element; // element -1: the whole variable
} end;

static crd_status resolve_end(crdi_plan* plan, int unit, const char* text, crd_place place,
                              end* out)
{
    out->unit = plan->members[unit].unit;
    crd_status st = crd_unit_resolve(out->unit, plan->ctx, text, &out->index, &out->element);
    if (st < 0) { return crdi_fail_at(plan->ctx, st, place); }
    out->variable = &out->unit->info.variables[out->index];
    if (out->variable->alias_of >= 0) { // read and set the variable that stands for it
        out->index = out->variable->alias_of;
    }
    return CRD_OK;
}

// A unit that could not be read was told of: nothing is known of its variables.
static crd_status find_end(crdi_plan* plan, int unit, const char* text, crd_place place, end* out)
{
    return plan->members[unit].unit ? resolve_end(plan, unit, text, place, out) : CRD_OK;
}

static crd_status check_causality(crdi_plan* plan, const crd_connection_spec* c, const end* from,
                                  const end* to)
{
    char at[512];
    const int source = from->variable->causality, target = to->variable->causality;
    if (source == CRD_INPUT || source == CRD_INDEPENDENT) {
        return crdi_fail(
            plan->ctx, CRD_E_RANGE, "%sconnection from %s.%s: it is %s, expected an output",
            crdi_where(c->place, at, sizeof at), from->unit->name, c->from, causalities[source]);
    }
    const bool tunable = target == CRD_PARAMETER && to->variable->variability == CRD_TUNABLE;
    if (target != CRD_INPUT && !tunable) {
        return crdi_fail(
            plan->ctx, CRD_E_RANGE, "%sconnection to %s.%s: it is %s, expected an input",
            crdi_where(c->place, at, sizeof at), to->unit->name, c->to, causalities[target]);
    }
    return CRD_OK;
}

static crd_status check_types(crdi_plan* plan, const crd_connection_spec* c, const end* from,
                              const end* to)
{
    char at[512];
    const int a = from->variable->type, b = to->variable->type;
    const bool bytes = crd_type_kind(a) == CRD_BYTES || crd_type_kind(b) == CRD_BYTES;
    if (a == CRD_CLOCK || b == CRD_CLOCK || (bytes && a != b)) {
        return crdi_fail(plan->ctx, CRD_E_RANGE,
                         "%s%s.%s is %s and cannot be connected to %s.%s, %s",
                         crdi_where(c->place, at, sizeof at), from->unit->name, c->from,
                         crdi_type_names[a], to->unit->name, c->to, crdi_type_names[b]);
    }
    bool changes = c->has_transformation || c->map_count > 0;
    for (int i = 0; i < c->via_count; i++) {
        changes = changes || c->via[i].has_transformation || c->via[i].map_count > 0;
    }
    if (bytes && changes) {
        return crdi_fail(plan->ctx, CRD_E_RANGE,
                         "%sgain and offset or a map make no sense between %s variables",
                         crdi_where(c->place, at, sizeof at), crdi_type_names[a]);
    }
    const uint32_t na = from->element < 0 ? from->variable->size : 1;
    const uint32_t nb = to->element < 0 ? to->variable->size : 1;
    if (na != nb) {
        return crdi_fail(plan->ctx, CRD_E_RANGE,
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
    crdi_plan* plan;
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
        return crdi_fail(r->plan->ctx, CRD_E_RANGE,
                         "%s%s.%s is in '%s' and %s.%s in '%s': these cannot be converted; "
                         "'convert_units: false' passes the numbers as they are",
                         at, r->from.unit->name, c->from, a->name, r->to.unit->name, c->to,
                         b->name);
    }
    return crdi_fail(r->plan->ctx, CRD_E_RANGE,
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
    crdi_log(r->plan->log, CRD_LOG_INFO, "%s%s.%s [%s] -> %s.%s [%s]: converted with factor %g%s",
             crdi_where(r->spec->place, at, sizeof at), r->from.unit->name, r->spec->from, a->name,
             r->to.unit->name, r->spec->to, b->name, factor, shift != 0 ? " and offset" : "");
    return CRD_OK;
}

static void connect_scale(route* r, double gain, double offset)
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
        if (t->has_transformation) { connect_scale(r, t->gain, t->offset); }
        if (next.name[0]) { now = next; } // one that says nothing keeps the unit
    }
    if (c->convert_units) { CRD_TRY(convert_units(r, &now, &last)); }
    if (c->has_transformation) { connect_scale(r, c->gain, c->offset); }
fail:
    return st;
}

static crd_status make_route(route* r, const crdi_mapping** mapping)
{
    *mapping = NULL;
    r->gain = 1;
    if (!crdi_mapping_needed(r->spec)) { return collapse(r); }
    char at[512];
    crdi_where(r->spec->place, at, sizeof at);
    return crdi_mapping_build(
        r->plan,
        &(crdi_mapping_ends){r->spec, r->from.unit, r->to.unit, r->from.index, r->to.index, at},
        mapping);
}

static crd_status connect_one(crdi_plan* plan, const crd_connection_spec* c)
{
    crd_status st = CRD_OK;
    const crdi_mapping* mapping = NULL;
    const int number = (int)(c - plan->sys->connections);
    if (plan->sys->units[c->from_unit].allow_nan && c->predict != CRD_PREDICTION_HOLD) {
        crd_connection_spec* held = crdi_arena_new(plan->arena, 1, sizeof *held);
        if (!held) { return CRD_E_MEMORY; }
        *held = *c;
        held->predict = CRD_PREDICTION_HOLD; // else a NaN would last for the steps of a prediction
        c = held;
    }
    route r = {.plan = plan, .spec = c};
    const crd_status from_found = find_end(plan, c->from_unit, c->from, c->place, &r.from);
    CRD_TRY(crdi_go_on(plan->ctx, from_found));
    CRD_TRY(find_end(plan, c->to_unit, c->to, c->place, &r.to));
    if (from_found < 0) { return from_found; }
    if (!r.from.unit || !r.to.unit) { return CRD_OK; } // one could not be read
    CRD_TRY(check_causality(plan, c, &r.from, &r.to));
    CRD_TRY(check_types(plan, c, &r.from, &r.to));
    CRD_TRY(make_route(&r, &mapping));

    const end from = r.from, to = r.to;
    const int n = from.element < 0 ? (int)from.variable->size : 1;
    crdi_connection* list = crdi_grow(plan->ctx, plan->connections, &plan->connection_capacity,
                                      (size_t)plan->connection_count + (size_t)n, sizeof *list);
    if (!list) { return CRD_E_MEMORY; }
    plan->connections = list;
    const bool curve = crd_type_kind(from.variable->type) == CRD_REAL &&
                       crd_type_kind(to.variable->type) == CRD_REAL &&
                       from.variable->variability == CRD_CONTINUOUS &&
                       to.variable->variability == CRD_CONTINUOUS;
    for (int i = 0; i < n; i++) {
        list[plan->connection_count++] = (crdi_connection){
            .from.member = c->from_unit,
            .to.member = c->to_unit,
            .from.variable = from.index,
            .to.variable = to.index,
            .from.element = from.element < 0 ? i : from.element,
            .to.element = to.element < 0 ? i : to.element,
            .gain = r.gain,
            .offset = r.offset,
            .transform = r.transform,
            .mapping = mapping,
            .curve = curve,
            .real = curve && !c->coupling,
            .slope = curve && c->coupling,
            .couple = c->coupling ? plan->coupled_count++ : -1, // in the order of writing
            .spec = c,
            .number = number,
        };
    }
fail:
    return st;
}

static int by_target(const void* a, const void* b)
{
    const crdi_connection *x = a, *y = b;
    if (x->to.member != y->to.member) { return x->to.member < y->to.member ? -1 : 1; }
    if (x->to.variable != y->to.variable) { return x->to.variable < y->to.variable ? -1 : 1; }
    if (x->to.element != y->to.element) { return x->to.element < y->to.element ? -1 : 1; }
    return x->number < y->number ? -1 : x->number > y->number;
}

// The links are sorted by target.
static crd_status check_one_source(crdi_plan* plan)
{
    for (int i = 1; i < plan->connection_count; i++) {
        const crdi_connection *a = &plan->connections[i - 1], *b = &plan->connections[i];
        if (a->to.member == b->to.member && a->to.variable == b->to.variable &&
            a->to.element == b->to.element) {
            char at[512];
            return crdi_fail(
                plan->ctx, CRD_E_RANGE,
                "%s%s.%s has two sources, %s.%s (line %d) and %s.%s: an input takes one",
                crdi_where(b->spec->place, at, sizeof at), plan->members[b->to.member].unit->name,
                b->spec->to, plan->members[a->from.member].unit->name, a->spec->from,
                a->spec->place.line, plan->members[b->from.member].unit->name, b->spec->from);
        }
    }
    return CRD_OK;
}

enum { MOST_WARNINGS = 3 }; // of a unit; then one line says how many more there are

// Inputs of a unit that neither a link nor a setting gives a value.
static void warn_about(crdi_plan* plan, const crd_unit* unit, const bool* used)
{
    const crd_level level = plan->sys->single ? CRD_LOG_INFO : CRD_LOG_WARNING;
    int count = 0;
    for (int v = 0; v < unit->info.variable_count; v++) {
        const crd_variable* x = &unit->info.variables[v];
        if (x->causality != CRD_INPUT || x->alias_of >= 0 || used[v] || x->type == CRD_CLOCK) {
            continue;
        }
        // What a bench and its master, or two ports, tell each other is filled in without them.
        const bool own = unit->spec && unit->spec->source == CRD_UNIT_DCP;
        if (own && (strncmp(x->name, "bench.", 6) == 0 || strstr(x->name, ".pair.far."))) {
            continue;
        }
        const bool stands_by = unit->spec && unit->spec->standby.model;
        if (stands_by && strcmp(x->name, "standby.use") == 0) { continue; } // for whoever wants to
        if (++count <= MOST_WARNINGS) {
            crdi_log(plan->log, level, "%s.%s is not connected and keeps its start value %s",
                     unit->name, x->name, x->start && x->start[0] ? x->start : "(none given)");
        }
    }
    if (count > MOST_WARNINGS) {
        crdi_log(plan->log, level, "%s: %d more inputs are not connected", unit->name,
                 count - MOST_WARNINGS);
    }
}

// An input of FMI 1 and its negated alias are one: with one of them both have a value, and both
// cannot be driven.
static crd_status join_negated(crdi_plan* plan, const crd_unit* unit, bool* used)
{
    const crd_variable* all = unit->info.variables;
    for (int v = 0; v < unit->info.variable_count; v++) {
        if (!all[v].negated || all[v].causality != CRD_INPUT) { continue; }
        for (int w = 0; w < unit->info.variable_count; w++) {
            if (all[w].negated || all[w].causality != CRD_INPUT || all[w].type != all[v].type ||
                all[w].reference != all[v].reference) {
                continue;
            }
            if (used[v] && used[w]) {
                return crdi_fail(plan->ctx, CRD_E_RANGE,
                                 "connections to %s.%s and to %s.%s: they are one input with "
                                 "opposite signs, connect one of them",
                                 unit->name, all[w].name, unit->name, all[v].name);
            }
            used[w] = used[w] || used[v];
            used[v] = true; // a word about the other one is enough
        }
    }
    return CRD_OK;
}

// An input without a source keeps its start value: legal, and worth a word in a system of many.
static crd_status warn_unconnected(crdi_plan* plan)
{
    int link = 0;
    for (int u = 0; u < plan->member_count; u++) {
        const crd_unit* unit = plan->members[u].unit;
        bool* used = crdi_new_array(plan->ctx, (size_t)unit->info.variable_count, sizeof *used);
        if (!used) { return CRD_E_MEMORY; }
        for (; link < plan->connection_count && plan->connections[link].to.member == u; link++) {
            used[plan->connections[link].to.variable] = true;
        }
        const crd_status st = join_negated(plan, unit, used);
        if (st < 0) {
            crd_free(plan->ctx, used);
            return st;
        }
        for (int i = 0; i < unit->spec->parameter_count; i++) {
            const int32_t v = unit->ops->find(unit, unit->spec->parameters[i].variable);
            if (v < 0) { continue; }
            const int32_t real = unit->info.variables[v].alias_of;
            used[real >= 0 ? real : v] = true;
        }
        warn_about(plan, unit, used);
        crd_free(plan->ctx, used);
    }
    return CRD_OK;
}

// What bonds do with their variables comes later, and not at all where something else is wrong.
static crd_status find_ends_of_bond(crdi_plan* plan, const crd_bond_spec* b)
{
    end found = {0};
    crd_status st = CRD_OK;
    if (!crdi_findings_wanted(plan->ctx)) { return CRD_OK; }
    CRD_TRY(crdi_go_on(plan->ctx, find_end(plan, b->action_unit, b->action, b->place, &found)));
    CRD_TRY(crdi_go_on(plan->ctx, find_end(plan, b->flow_unit, b->flow, b->place, &found)));
fail:
    return st;
}

// Elements are read with the couplings, later; what is wrong with them is told with the rest.
static crd_status check_elements(crdi_plan* plan, const crd_coupling_spec* s)
{
    crd_status st = CRD_OK;
    if (!s || !crdi_findings_wanted(plan->ctx)) { return CRD_OK; }
    for (int i = 0; i <= s->shadow_count; i++) {
        crd_element* e = NULL;
        CRD_TRY(crdi_go_on(plan->ctx, crdi_element_of(plan, s, i, &e)));
        crd_element_destroy(e);
    }
fail:
    return st;
}

crd_status crdi_plan_connect(crdi_plan* plan)
{
    crd_status st = CRD_OK;
    for (int i = 0; i < plan->sys->connection_count; i++) {
        const crd_connection_spec* c = &plan->sys->connections[i];
        CRD_TRY(crdi_go_on(plan->ctx, connect_one(plan, c)));
        CRD_TRY(check_elements(plan, c->coupling));
    }
    if (plan->connection_count) {
        qsort(plan->connections, (size_t)plan->connection_count, sizeof *plan->connections,
              by_target);
    }
    CRD_TRY(check_one_source(plan));
    for (int i = 0; i < plan->sys->bond_count; i++) {
        CRD_TRY(find_ends_of_bond(plan, &plan->sys->bonds[i]));
    }
    CRD_TRY(crdi_findings_status(plan->ctx)); // what else would be said follows from these
    CRD_TRY(warn_unconnected(plan));
fail:
    return st;
}
