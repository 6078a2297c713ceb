// Connections of all levels become connections of units.
//
// Every connector has at most one that drives it, whether it belongs to a component, to a system or
// to a signal dictionary. So the way of a signal is found by walking back from the input of a unit
// until the output of a unit is met; what lies between are the stages of the connection.
#include "shared/base_findings.h"
#include "ssp/read.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- ends of a connection ----------------------------------------------------------------------

typedef struct end {
    crdi_connector* connector;
    bool of_system; // the enclosing system's own connector
} end;

typedef struct child_list {
    const crdi_ssp_element* owner;
    int at;
} child_list;

static const char* next_child_name(void* user)
{
    child_list* l = user;
    return l->at < l->owner->child_count ? l->owner->children[l->at++]->name : NULL;
}

typedef struct connector_list {
    const crdi_ssp_element* owner;
    int at;
} connector_list;

static const char* next_connector_name(void* user)
{
    connector_list* l = user;
    return l->at < l->owner->connector_count ? l->owner->connectors[l->at++].name : NULL;
}

// "[2,3]" of "2 3"; elements count from 1.
static crd_status format_index(crdi_ssp_reader* r, const crdi_document* d,
                               const crdi_xml_element* e, const char* text, const char** out)
{
    crd_text t;
    crd_text_init(&t, r->ctx);
    for (const char* p = text; *(p += strspn(p, " \t\r\n+"));) {
        uint64_t i = 0;
        const size_t n = strcspn(p, " \t\r\n");
        if (!crdi_parse_uint64(p, n, &i) || i == 0) {
            crd_text_clear(&t);
            return crdi_ssp_bad(r, CRD_E_RANGE, d, e, "indices '%s', expected numbers from 1",
                                crdi_show(text).text);
        }
        crdi_text_add(&t, "%c%llu", t.length ? ',' : '[', (unsigned long long)i);
        p += n;
    }
    if (t.length) { crdi_text_put(&t, "]", 1); }
    *out = t.failed ? NULL : t.length ? crdi_arena_text(&r->arena, t.data, t.length) : "";
    crd_text_clear(&t);
    return *out ? CRD_OK : CRD_E_MEMORY;
}

// An element of an array connector is a connector of its own, driven or driving alone.
static crd_status part_of(crdi_ssp_reader* r, const crdi_document* d, const crdi_xml_element* e,
                          crdi_connector* whole, const char* index, crdi_connector** out)
{
    enum { MOST = 10000 };
    int count = 0;
    for (crdi_connector* p = whole->parts; p; p = p->next_part, count++) {
        if (strcmp(p->index, index) == 0) {
            *out = p;
            return CRD_OK;
        }
    }
    if (count == MOST) {
        return crdi_ssp_bad(r, CRD_E_FORMAT, d, e,
                            "more than %d elements of '%s' are connected one by one", MOST,
                            crdi_show(whole->name).text);
    }
    crdi_connector* p = crdi_arena_new(&r->arena, 1, sizeof *p);
    if (!p) { return CRD_E_MEMORY; }
    *p = *whole;
    p->name = crdi_arena_format(&r->arena, "%s%s", whole->name, index);
    p->index = index;
    p->whole = whole;
    p->from = p->parts = NULL;
    p->given = p->last_given = NULL;
    p->next_part = whole->parts;
    whole->parts = p;
    *out = p;
    return p->name ? CRD_OK : CRD_E_MEMORY;
}

static crd_status find_end(crdi_ssp_reader* r, crdi_ssp_element* self, const crdi_xml_element* e,
                           bool start, end* out)
{
    const crdi_document* d = self->document;
    const char* element = crdi_xml_get(e, start ? "startElement" : "endElement");
    const char* name = crdi_xml_get(e, start ? "startConnector" : "endConnector");
    const char* indices = crdi_xml_get(e, start ? "startIndices" : "endIndices");
    crdi_ssp_element* owner = self;
    out->of_system = !element || !element[0];
    if (!out->of_system) {
        const int32_t i = crdi_map_find(&self->child_map, element);
        if (i < 0) {
            const char* near = crdi_nearest(element, next_child_name, &(child_list){self, 0});
            return crdi_ssp_bad(r, CRD_E_RANGE, d, e,
                                "there is no component or system '%s' here%s%s%s",
                                crdi_show(element).text, near ? ", did you mean '" : "",
                                near ? crdi_show(near).text : "", near ? "'?" : "");
        }
        owner = self->children[i];
    }
    const int32_t k = crdi_map_find(&owner->connector_map, name);
    if (k < 0) {
        const char* near = crdi_nearest(name, next_connector_name, &(connector_list){owner, 0});
        return crdi_ssp_bad(r, CRD_E_RANGE, d, e, "%s '%s' has no connector '%s'%s%s%s",
                            out->of_system ? "the system" : "component",
                            crdi_show(owner->name).text, crdi_show(name).text,
                            near ? ", did you mean '" : "", near ? crdi_show(near).text : "",
                            near ? "'?" : "");
    }
    out->connector = &owner->connectors[k];
    if (!indices) { return CRD_OK; }
    const char* index = "";
    const crd_status st = format_index(r, d, e, indices, &index);
    if (st < 0 || !index[0]) { return st; }
    return part_of(r, d, e, out->connector, index, &out->connector);
}

// ---- directions --------------------------------------------------------------------------------

typedef enum role { GIVES, TAKES, EITHER } role;

static const char* const kind_texts[CRDI_KIND_COUNT] = {"an input",
                                                        "an output",
                                                        "a parameter",
                                                        "a calculated parameter",
                                                        "a structural parameter",
                                                        "a constant",
                                                        "a local variable",
                                                        "an inout",
                                                        "unspecified"};

// Seen from inside, an input of the system gives what an input of a component takes.
static role role_of(const end* e)
{
    switch (e->connector->kind) {
    case CRDI_KIND_INPUT:
    case CRDI_KIND_PARAMETER:
    case CRDI_KIND_STRUCTURAL:
        return e->of_system ? GIVES : TAKES;
    case CRDI_KIND_OUTPUT:
    case CRDI_KIND_CALCULATED:
    case CRDI_KIND_CONSTANT:
    case CRDI_KIND_LOCAL:
        return e->of_system ? TAKES : GIVES;
    default:
        return EITHER;
    }
}

// How late a value is settled. A connection may not lead from late to early: this is the table
// "Allowed Connections" of the standard, row by row.
static int lateness(crdi_connector_kind k)
{
    switch (k) {
    case CRDI_KIND_CONSTANT:
        return 0;
    case CRDI_KIND_STRUCTURAL:
        return 1;
    case CRDI_KIND_PARAMETER:
    case CRDI_KIND_CALCULATED:
        return 2;
    default:
        return 3;
    }
}

static crd_status refuse_connection(crdi_ssp_reader* r, const crdi_document* d,
                                    const crdi_xml_element* e, const end* a, const end* b,
                                    const char* why)
{
    return crdi_ssp_bad(r, CRD_E_RANGE, d, e, "'%s' is %s%s and '%s' is %s%s: %s",
                        crdi_show(a->connector->name).text, kind_texts[a->connector->kind],
                        a->of_system ? " of the system" : "", crdi_show(b->connector->name).text,
                        kind_texts[b->connector->kind], b->of_system ? " of the system" : "", why);
}

// The connector itself, or the entry of the dictionary for which it stands.
static crdi_connector* node_of(const end* e)
{
    return e->connector->entry ? e->connector->entry : e->connector;
}

static crd_status drive_input(crdi_ssp_reader* r, const crdi_document* d, const crdi_xml_element* e,
                              const end* from, const end* to)
{
    crdi_connector* target = node_of(to);
    if (lateness(from->connector->kind) > lateness(to->connector->kind) &&
        from->connector->kind != CRDI_KIND_UNSPECIFIED) {
        return refuse_connection(r, d, e, from, to, "that comes too late for the second");
    }
    if (target->from) {
        return crdi_ssp_bad(r, CRD_E_RANGE, d, e, "'%s' gets a second source, the first in %s:%d",
                            crdi_show(target->name).text, target->by_document->shown,
                            target->by->line);
    }
    target->from = node_of(from);
    target->by = e;
    target->by_document = d;
    crdi_connector** grown =
        crdi_grow(r->ctx, r->driven, &r->driven_capacity, r->driven_count + 1, sizeof *grown);
    if (!grown) { return CRD_E_MEMORY; }
    r->driven = grown;
    r->driven[r->driven_count++] = target;
    if (r->driven_count > CRDI_SSP_MAX_THINGS) {
        return crdi_ssp_bad(r, CRD_E_FORMAT, d, e, "more than %d connections in all",
                            CRDI_SSP_MAX_THINGS);
    }
    return CRD_OK;
}

static crd_status read_connection(crdi_ssp_reader* r, crdi_ssp_element* self,
                                  const crdi_xml_element* e)
{
    const crdi_document* d = self->document;
    end a, b;
    crd_status st = find_end(r, self, e, true, &a);
    if (st >= 0) { st = find_end(r, self, e, false, &b); }
    if (st < 0) { return st; }
    const role x = role_of(&a), y = role_of(&b);
    if (x == y) {
        return refuse_connection(r, d, e, &a, &b,
                                 x == GIVES   ? "two sources, expected one that takes the value"
                                 : x == TAKES ? "no source, expected one that gives the value"
                                              : "nothing says which one gives the value");
    }
    const bool forward = x == GIVES || y == TAKES;
    return drive_input(r, d, e, forward ? &a : &b, forward ? &b : &a);
}

crd_status crdi_ssp_connect(crdi_ssp_reader* r)
{
    for (crdi_ssp_element* s = r->elements; s; s = s->next_of_all) {
        if (s->kind != CRDI_ELEMENT_SYSTEM) { continue; }
        const crdi_xml_element* list = crdi_xml_child(s->xml, CRDI_SSD, "Connections");
        const crdi_xml_element* e = list ? crdi_xml_child(list, CRDI_SSD, "Connection") : NULL;
        for (; e; e = crdi_xml_same(e)) {
            const crd_status st = crdi_go_on(r->ctx, read_connection(r, s, e));
            if (st < 0) { return st; }
        }
    }
    return CRD_OK;
}

// ---- from unit to unit -------------------------------------------------------------------------

crdi_connector* crdi_ssp_driver(const crdi_connector* c, const crdi_xml_element** by,
                                const crdi_document** document)
{
    const crdi_connector* at = !c->from && c->whole ? c->whole : c;
    *by = at->by;
    *document = at->by_document;
    return at->from;
}

enum { MAX_WAY = 2 * CRDI_SSP_MAX_DEPTH + 64 };

// The way of a signal from its source: edge[i] leads into node[i + 1].
typedef struct way {
    crdi_connector* node[MAX_WAY + 1];
    const crdi_xml_element* edge[MAX_WAY];
    int count;         // edges
    const char* index; // of the source, when an element is picked on the way
} way;

static bool is_unit(const crdi_connector* c)
{
    return c->owner &&
           (c->owner->kind == CRDI_ELEMENT_UNIT || c->owner->kind == CRDI_ELEMENT_LATER);
}

// Back from `to` to a unit. `w->count` = 0: it comes from nowhere, as an open input does.
static crd_status trace(crdi_ssp_reader* r, crdi_connector* to, way* w)
{
    crdi_connector* back[MAX_WAY + 1] = {to};
    const crdi_xml_element* edges[MAX_WAY];
    const crdi_document* d = to->by_document;
    int n = 0;
    w->count = 0;
    w->index = "";
    for (crdi_connector* c = to; n == 0 || !is_unit(c); c = back[n]) {
        if (n == MAX_WAY) {
            return crdi_ssp_bad(r, CRD_E_RANGE, to->by_document, to->by,
                                "'%s' is connected in a ring of connectors without a component",
                                crdi_show(to->name).text);
        }
        crdi_connector* next = crdi_ssp_driver(c, &edges[n], &d);
        if (!next && c->parts && !is_unit(c)) {
            for (const crdi_connector* p = c->parts; p; p = p->next_part) {
                if (!p->from) { continue; }
                return crdi_ssp_bad(r, CRD_E_UNSUPPORTED, p->by_document, p->by,
                                    "'%s' is connected element by element on one side and as a "
                                    "whole on the other, expected the same on both",
                                    crdi_show(c->name).text);
            }
        }
        if (!next) { return CRD_OK; }
        if (c->whole && !c->from && !next->index[0]) { w->index = c->index; }
        back[++n] = next;
    }
    for (int i = 0; i <= n; i++) {
        w->node[i] = back[n - i];
        if (i < n) { w->edge[i] = edges[n - 1 - i]; }
    }
    w->count = n;
    return CRD_OK;
}

static crd_status stage_of(crdi_ssp_reader* r, const way* w, int i, crd_transformation* out)
{
    const crd_status st = crdi_ssp_transformation(r, w->edge[i], out);
    out->unit = w->node[i + 1]->unit;
    out->dimension = w->node[i + 1]->dimension;
    return st;
}

// All units on the way are known and nothing is mapped: one line from end to end. false in `*done`
// if that is not so.
static crd_status fold_transformations(crdi_ssp_reader* r, const way* w,
                                       const crd_transformation* stages, crd_connection_spec* out,
                                       bool* done)
{
    double gain = 1, offset = 0;
    crd_dimension from, to;
    const char* name = w->node[0]->unit;
    bool transformed = false, suppressed = false;
    *done = false;
    if (!crdi_ssp_dimension(name, w->node[0]->dimension, &from) || !w->node[w->count]->unit[0]) {
        return CRD_OK;
    }
    for (int i = 0; i < w->count; i++) {
        const crd_transformation* t = &stages[i];
        if (t->map_count) { return CRD_OK; }
        suppressed = suppressed || !t->convert_units;
        if (crdi_ssp_dimension(t->unit, t->dimension, &to)) {
            if (!suppressed) {
                if (!crd_dimension_equal(&from, &to)) {
                    return crdi_ssp_bad(
                        r, CRD_E_RANGE, w->node[w->count]->by_document, w->edge[w->count - 1],
                        "'%s' in '%s' cannot be converted into '%s' of '%s'",
                        crdi_show(w->node[0]->name).text, crdi_show(name).text,
                        crdi_show(t->unit).text, crdi_show(w->node[w->count]->name).text);
                }
                // Whether zero points count is for the FMUs to say: differences have none.
                if (from.offset != to.offset) { return CRD_OK; }
                const double factor = from.factor / to.factor;
                transformed = transformed || factor != 1;
                gain *= factor;
                offset *= factor;
            }
            from = to;
            name = t->unit;
            suppressed = false;
        }
        if (t->has_transformation) {
            gain *= t->gain;
            offset = offset * t->gain + t->offset;
            transformed = true;
        }
    }
    out->gain = gain;
    out->offset = offset;
    out->has_transformation = transformed;
    out->convert_units = false;
    *done = true;
    return CRD_OK;
}

// The unit that the SSD gives an output counts even if the FMU says otherwise: a first stage that
// names it without converting. Likewise for the input: the last stage leads into that unit, and
// what follows is not converted again.
static crd_status list_stages(crdi_ssp_reader* r, const way* w, crd_transformation* stages,
                              crd_connection_spec* out)
{
    crd_transformation* via = crdi_arena_new(&r->s->arena, (size_t)w->count + 1, sizeof *via);
    if (!via) { return CRD_E_MEMORY; }
    int n = 0;
    if (w->node[0]->unit[0]) {
        via[n++] = (crd_transformation){
            .unit = w->node[0]->unit, .dimension = w->node[0]->dimension, .gain = 1};
    }
    bool suppressed = false;
    for (int i = 0; i + 1 < w->count; i++) {
        crd_transformation* t = &stages[i];
        suppressed = suppressed || !t->convert_units;
        if (!t->unit[0] && !t->has_transformation && !t->map_count) { continue; }
        t->convert_units = !suppressed;
        suppressed = suppressed && !t->unit[0];
        via[n++] = *t;
    }
    crd_transformation* last = &stages[w->count - 1];
    last->convert_units = last->convert_units && !suppressed;
    if (last->unit[0]) {
        via[n++] = *last;
        out->convert_units = false;
    } else {
        out->gain = last->gain;
        out->offset = last->offset;
        out->has_transformation = last->has_transformation;
        out->convert_units = last->convert_units;
        out->map = last->map;
        out->map_count = last->map_count;
    }
    out->via = n ? via : NULL;
    out->via_count = n;
    return CRD_OK;
}

static crd_status unit_index(crdi_ssp_reader* r, const crdi_ssp_element* e, int* out)
{
    *out = e->kind == CRDI_ELEMENT_UNIT ? e->unit : crd_system_find(r->s, e->full);
    if (*out >= 0) { return CRD_OK; }
    return crdi_ssp_bad(r, CRD_E_RANGE, e->document, e->xml,
                        "component '%s' is one of ours, but the annotation '%s' has no such unit",
                        crdi_show(e->full).text, CRD_SSP_ANNOTATION);
}

// Our annotation may have said more about it.
static bool is_there(const crdi_ssp_reader* r, const crd_connection_spec* c)
{
    const crd_system* s = r->s;
    for (int i = r->own_connections; i < s->connection_count; i++) {
        const crd_connection_spec* k = &s->connections[i];
        if (k->to_unit == c->to_unit && k->from_unit == c->from_unit && strcmp(k->to, c->to) == 0 &&
            strcmp(k->from, c->from) == 0) {
            return true;
        }
    }
    return false;
}

static crd_status add_way(crdi_ssp_reader* r, const way* w, bool later)
{
    const crdi_connector *from = w->node[0], *to = w->node[w->count];
    crd_connection_spec c = crd_connection_spec_defaults();
    c.predict = r->s->run.predict;
    c.place = (crd_place){to->by_document->shown, w->edge[w->count - 1]->line};
    c.from = w->index[0] ? crdi_arena_format(&r->arena, "%s%s", from->name, w->index) : from->name;
    c.to = to->name;
    crd_transformation* stages = crdi_arena_new(&r->arena, (size_t)w->count, sizeof *stages);
    if (!c.from || !stages) { return CRD_E_MEMORY; }
    crd_status st = unit_index(r, from->owner, &c.from_unit);
    if (st >= 0) { st = unit_index(r, to->owner, &c.to_unit); }
    for (int i = 0; i < w->count && st >= 0; i++) {
        st = stage_of(r, w, i, &stages[i]);
    }
    bool done = false;
    if (st >= 0) { st = fold_transformations(r, w, stages, &c, &done); }
    if (st >= 0 && !done) { st = list_stages(r, w, stages, &c); }
    if (st < 0 || (later && is_there(r, &c))) { return st; }
    return crd_system_add_connection(r->s, &c);
}

crd_status crdi_ssp_add_connections(crdi_ssp_reader* r, bool later)
{
    for (size_t i = 0; i < r->driven_count; i++) {
        crdi_connector* to = r->driven[i];
        way w;
        if (!is_unit(to)) { continue; }
        crd_status st = trace(r, to, &w);
        if (crdi_go_on(r->ctx, st) < 0) { return st; }
        if (st < 0 || w.count == 0) { continue; }
        const bool waits =
            to->owner->kind == CRDI_ELEMENT_LATER || w.node[0]->owner->kind == CRDI_ELEMENT_LATER;
        if (waits != later) { continue; }
        st = crdi_go_on(r->ctx, add_way(r, &w, later));
        if (st < 0) { return st; }
    }
    return CRD_OK;
}
