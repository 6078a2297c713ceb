// Bindings of all levels become settings of units.
//
// Which of several values for a variable counts: that of the highest level (the binding nearest to
// the outermost system); on one level, what arrives through connectors wins over what was named
// directly, as a connection wins over a start value, and the farther connector over the nearer; and
// the later one of what is left. Settings are sorted so that the last one counts.
#include "ssp/read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// One value on its way to a name, with what its mapping does to it.
typedef struct assignment {
    const crdi_ssp_value* value;
    crd_transformation mapping; // identity without one
    int depth;                  // of the element that has the binding
    bool hit;
} assignment;

static crd_status too_many(crdi_ssp_reader* r, const crdi_ssp_value* v)
{
    return crdi_fail(r->ctx, CRD_E_FORMAT, "%s:%d: more than %d parameter values in all",
                     v->place.file, v->place.line, CRDI_SSP_MAX_THINGS);
}

static crd_status parameters_add_entry(crdi_ssp_reader* r, int unit, int depth, int distance,
                                       int order, const crd_setting* setting)
{
    crdi_entry* grown =
        crdi_grow(r->ctx, r->entries, &r->entry_capacity, r->entry_count + 1, sizeof *grown);
    if (!grown) { return CRD_E_MEMORY; }
    r->entries = grown;
    r->entries[r->entry_count++] = (crdi_entry){unit, depth, distance, order, *setting};
    return CRD_OK;
}

static bool changes(const crd_transformation* t)
{
    return t->has_transformation || t->map_count || t->unit[0] || !t->convert_units;
}

// `t` with the unit of the text: how it becomes the variable's value.
static crd_status parameters_add_setting(crdi_ssp_reader* r, int unit, const char* variable,
                                         const crdi_ssp_value* v, crd_transformation t, int depth,
                                         int distance, int order)
{
    if (r->entry_count >= CRDI_SSP_MAX_THINGS) { return too_many(r, v); }
    t.unit = v->unit;
    t.dimension = v->dimension;
    crd_transformation* via = NULL;
    if (changes(&t)) {
        via = crdi_arena_new(&r->s->arena, 1, sizeof *via);
        if (!via) { return CRD_E_MEMORY; }
        *via = t;
    }
    const crd_setting setting = {.variable = crdi_ssp_keep(r, variable),
                                 .text = crdi_ssp_join(r, v),
                                 .place = v->place,
                                 .via = via,
                                 .optional = true};
    if (!setting.variable || !setting.text) { return CRD_E_MEMORY; }
    const crd_status st = crdi_ssp_spend(r, strlen(setting.text) + strlen(variable));
    if (st < 0) { return st; }
    return parameters_add_entry(r, unit, depth, distance, order, &setting);
}

// ---- names -------------------------------------------------------------------------------------

static crd_status give(crdi_ssp_reader* r, crdi_connector* c, assignment* a)
{
    if (++r->given_count > CRDI_SSP_MAX_THINGS) { return too_many(r, a->value); }
    crdi_given* g = crdi_arena_new(&r->arena, 1, sizeof *g);
    if (!g) { return CRD_E_MEMORY; }
    *g = (crdi_given){a->value, a->mapping, a->depth, r->given_count, false, NULL};
    if (c->last_given) {
        c->last_given->next = g;
    } else {
        c->given = g;
    }
    c->last_given = g;
    return CRD_OK;
}

// "B.C.k" in a system: its own connector of this name, and what it means in any element whose name
// it begins with. Several may fit, since names may have dots; then all get the value.
static crd_status assign(crdi_ssp_reader* r, crdi_ssp_element* e, const char* name, assignment* a)
{
    switch (e->kind) {
    case CRDI_ELEMENT_UNIT:
        a->hit = true;
        return parameters_add_setting(r, e->unit, name, a->value, a->mapping, a->depth, 0,
                                      ++r->given_count);
    case CRDI_ELEMENT_SYSTEM:
        break;
    default:
        return CRD_OK;
    }
    const int32_t i = crdi_map_find(&e->connector_map, name);
    crd_status st = CRD_OK;
    if (i >= 0) {
        a->hit = true;
        st = give(r, &e->connectors[i], a);
    }
    char first[CRDI_SSP_MAX_NAME + 1];
    for (const char* dot = strchr(name, '.'); dot && st >= 0; dot = strchr(dot + 1, '.')) {
        const size_t n = (size_t)(dot - name);
        if (n > CRDI_SSP_MAX_NAME || !dot[1]) { break; }
        memcpy(first, name, n);
        first[n] = 0;
        const int32_t k = crdi_map_find(&e->child_map, first);
        if (k >= 0) { st = assign(r, e->children[k], dot + 1, a); }
    }
    return st;
}

static crd_status assign_name(crdi_ssp_reader* r, crdi_ssp_element* e, const char* name,
                              assignment* a)
{
    if (a->value->count == 0) { // an array without elements
        crdi_log(r->ctx, CRD_LOG_INFO, "%s:%d: parameter '%s' has no value and is left out",
                 a->value->place.file, a->value->place.line, crdi_show(name).text);
        return CRD_OK;
    }
    const crd_status st = assign(r, e, name, a);
    if (st >= 0 && !a->hit) {
        crdi_log(r->ctx, CRD_LOG_INFO, "%s:%d: parameter '%s' fits nothing and is left out",
                 a->value->place.file, a->value->place.line, crdi_show(name).text);
    }
    return st;
}

// ---- bindings ----------------------------------------------------------------------------------

// A file in the archive of a component.
static crd_status open_inside(crdi_ssp_reader* r, const crdi_ssp_element* owner,
                              const crdi_xml_element* e, const char* source,
                              const char* shown_folder, crdi_ssp_root kind,
                              crdi_document** document, const crdi_xml_element** out)
{
    const char* shown = crdi_arena_format(&r->arena, "%s%s", shown_folder, source);
    if (!shown) { return CRD_E_MEMORY; }
    crd_status st = crdi_ssp_open_inside(r, owner->path, source, shown, kind, document);
    if (st == CRD_E_NOT_FOUND) {
        st = crdi_fail_in(r->ctx, st, "%s:%d", owner->document->shown, e->line);
    }
    if (st >= 0) { *out = (*document)->xml->root; }
    return st;
}

// The root of the set or mapping that `e` names or holds. NULL in `*out`: nothing to read.
static crd_status open_part(crdi_ssp_reader* r, const crdi_ssp_element* owner, crdi_document* d,
                            const crdi_xml_element* e, const crdi_xml_element* content,
                            crdi_ssp_root kind, const char* what, crdi_document** document,
                            const crdi_xml_element** out)
{
    static const char* const names[] = {"", "ParameterSet", "ParameterMapping"};
    static const char* const spaces[] = {"", CRDI_SSV, CRDI_SSM};
    static const char* const types[] = {"", CRDI_TYPE_SSV, CRDI_TYPE_SSM};
    const char *source = crdi_xml_get(e, "source"), *type = crdi_xml_get(e, "type");
    const char* base = crdi_xml_get(e, "sourceBase");
    *out = NULL;
    *document = d;
    if (type && type[0] && strcmp(type, types[kind]) != 0) {
        return crdi_ssp_bad(r, CRD_E_UNSUPPORTED, d, e, "%s of type '%s', expected %s", what,
                            crdi_show(type).text, types[kind]);
    }
    if (!source || !source[0]) {
        *out = content ? crdi_xml_child(content, spaces[kind], names[kind]) : NULL;
        if (*out) { return CRD_OK; }
        return crdi_ssp_bad(r, CRD_E_FORMAT, d, e, "%s has neither a source nor a %s inside", what,
                            names[kind]);
    }
    if (r->no_files) { return CRD_OK; }
    crdi_ssp_uri uri;
    crd_status st = crdi_ssp_spend(r, 4096); // it is looked for among many
    if (st < 0) { return st; }
    crdi_document inner = *d; // what the source is relative to
    if (base && strcmp(base, "component") == 0 && owner->path[0]) {
        if (owner->kind == CRDI_ELEMENT_UNIT) {
            const char* own = crdi_xml_get(owner->xml, "source");
            inner.folder = crdi_arena_format(&r->arena, "%s/", owner->path);
            inner.shown_folder = crdi_arena_format(&r->arena, "%s%s/", d->shown_folder, own);
            if (!inner.folder || !inner.shown_folder) { return CRD_E_MEMORY; }
            if (!crdi_ssp_is_folder(owner->path)) {
                return open_inside(r, owner, e, source, inner.shown_folder, kind, document, out);
            }
        } else {
            inner = *owner->document;
            inner.shown = d->shown;
        }
    }
    st = crdi_ssp_resolve(r, &inner, e, source, &uri);
    if (st >= 0) { st = crdi_ssp_need(r, d, e, what, &uri); }
    if (st >= 0) { st = crdi_ssp_open(r, uri.path, uri.shown, inner.root, kind, document); }
    if (st >= 0) { *out = (*document)->xml->root; }
    return st;
}

// Only mapped names apply, each with its transformation; one parameter may have several targets.
static crd_status apply_mapping(crdi_ssp_reader* r, crdi_ssp_element* self,
                                const crdi_ssp_value* values, int count, const crdi_document* d,
                                const crdi_xml_element* mapping)
{
    crd_status st = CRD_OK;
    crd_map names;
    crdi_map_init(&names, r->ctx);
    for (int i = count - 1; i >= 0; i--) { // the last one counts if there are two
        CRD_TRY(crdi_map_add(&names, values[i].name, i, NULL));
    }
    for (const crdi_xml_element* m = crdi_xml_child(mapping, CRDI_SSM, "MappingEntry"); m;
         m = crdi_xml_same(m)) {
        const char* source = crdi_xml_get(m, "source");
        const int32_t i = crdi_map_find(&names, source);
        if (i < 0) {
            crdi_log(r->ctx, CRD_LOG_INFO, "%s:%d: there is no parameter '%s' that could be mapped",
                     d->shown, m->line, crdi_show(source).text);
            continue;
        }
        assignment a = {.value = &values[i], .depth = self->depth};
        CRD_TRY(crdi_ssp_transformation(r, m, &a.mapping));
        CRD_TRY(assign_name(r, self, crdi_xml_get(m, "target"), &a));
    }
fail:
    crdi_map_clear(&names);
    return st;
}

crd_status crdi_ssp_assign(crdi_ssp_reader* r, crdi_ssp_element* self, const crdi_ssp_value* values,
                           int count, const crdi_document* d, const crdi_xml_element* mapping)
{
    if (mapping) { return apply_mapping(r, self, values, count, d, mapping); }
    crd_status st = CRD_OK;
    for (int i = 0; i < count && st >= 0; i++) {
        assignment a = {.value = &values[i],
                        .mapping = {.unit = "", .gain = 1, .convert_units = true},
                        .depth = self->depth};
        st = assign_name(r, self, values[i].name, &a);
    }
    return st;
}

static crd_status read_binding(crdi_ssp_reader* r, crdi_ssp_element* self, crdi_document* d,
                               const crdi_xml_element* e)
{
    const char* prefix = crdi_xml_get(e, "prefix");
    const crdi_xml_element* content = crdi_xml_child(e, CRDI_SSD, "ParameterValues");
    const crdi_xml_element* map = crdi_xml_child(e, CRDI_SSD, "ParameterMapping");
    crdi_document *set_document = NULL, *map_document = NULL;
    const crdi_xml_element *set = NULL, *mapping = NULL;
    crdi_ssp_value* values = NULL;
    int count = 0;
    if (prefix && strlen(prefix) > CRDI_SSP_MAX_NAME) {
        return crdi_ssp_bad(r, CRD_E_FORMAT, d, e, "the prefix is longer than %d bytes",
                            CRDI_SSP_MAX_NAME);
    }
    crd_status st = crdi_ssp_spend(r, 64);
    if (st < 0) { return st; }
    st = open_part(r, self, d, e, content, CRDI_ROOT_SSV, "parameter binding", &set_document, &set);
    if (st >= 0 && map) {
        st = open_part(r, self, d, map, map, CRDI_ROOT_SSM, "parameter mapping", &map_document,
                       &mapping);
    }
    if (st >= 0 && set) {
        st = crdi_ssp_read_set(r, set_document, set, prefix ? prefix : "", &values, &count);
    }
    if (st < 0 || (map && !mapping)) { return st; }
    return crdi_ssp_assign(r, self, values, count, map_document, mapping);
}

static crd_status read_bindings(crdi_ssp_reader* r, crdi_ssp_element* self, crdi_document* d,
                                const crdi_xml_element* owner)
{
    const crdi_xml_element* list = crdi_xml_child(owner, CRDI_SSD, "ParameterBindings");
    const crdi_xml_element* e = list ? crdi_xml_child(list, CRDI_SSD, "ParameterBinding") : NULL;
    for (; e; e = crdi_xml_same(e)) {
        const crd_status st = read_binding(r, self, d, e);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

// ---- through connectors ------------------------------------------------------------------------

crd_status crdi_ssp_pass_down(crdi_ssp_reader* r, const crd_port* port, crdi_given* given)
{
    const int last = port->stage_count - 1;
    for (crdi_given* g = given; g; g = g->next) {
        crdi_ssp_value v = *g->value;
        crd_transformation t = g->mapping;
        t.unit = port->stages[0].unit;
        t.dimension = port->stages[0].dimension;
        g->used = true;
        crd_status st = crdi_ssp_convert(r, &v, &t);
        for (int i = 1; i < last && st >= 0; i++) {
            st = crdi_ssp_convert(r, &v, &port->stages[i]);
        }
        // The last one: into the unit that the SSD gives the input, if it does, else into the
        // FMU's.
        t = port->stages[last];
        if (st >= 0 && t.unit[0]) {
            st = crdi_ssp_convert(r, &v, &t);
            t = (crd_transformation){.unit = "", .gain = 1, .convert_units = true};
            v.unit = "";
            v.dimension = NULL;
        }
        if (st >= 0) {
            st = parameters_add_setting(r, port->unit, port->variable, &v, t, g->depth, last,
                                        g->order);
        }
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

// Values may come for it later, see crd_ssp_apply.
static crd_status keep_port(crdi_ssp_reader* r, const crd_port* port)
{
    crd_system* s = r->s;
    const size_t n = (size_t)port->stage_count;
    const crd_status st = crdi_ssp_spend(r, sizeof *port + n * sizeof *port->stages);
    if (st < 0) { return st; }
    crd_port* kept = crdi_arena_new(&s->arena, 1, sizeof *kept);
    crd_transformation* stages = crdi_arena_new(&s->arena, n, sizeof *stages);
    if (!kept || !stages) { return CRD_E_MEMORY; }
    memcpy(stages, port->stages, n * sizeof *stages);
    *kept = *port;
    kept->stages = stages;
    kept->name = crdi_ssp_keep(r, port->name);
    kept->variable = crdi_ssp_keep(r, port->variable);
    kept->next = s->ports;
    s->ports = kept;
    return kept->name && kept->variable ? CRD_OK : CRD_E_MEMORY;
}

// From the input of a unit back through the connectors of the systems around it.
static crd_status pass_all_down(crdi_ssp_reader* r, const crdi_connector* to)
{
    enum { MOST = 2 * CRDI_SSP_MAX_DEPTH + 64 };
    crd_transformation all[MOST + 1];
    const crdi_xml_element* by = NULL;
    const crdi_document* d = NULL;
    const crdi_connector* c = to;
    for (int hops = 1; hops <= MOST; hops++) {
        const crdi_connector* from = crdi_ssp_driver(c, &by, &d);
        if (!from || (from->owner && from->owner->kind != CRDI_ELEMENT_SYSTEM)) { break; }
        crd_transformation* stages = &all[MOST - hops]; // filled from behind
        crd_status st = crdi_ssp_transformation(r, by, &stages[1]);
        stages[1].unit = c->unit;
        stages[1].dimension = c->dimension;
        stages[0] = (crd_transformation){
            .unit = from->unit, .dimension = from->dimension, .gain = 1, .convert_units = true};
        const crd_port port = {from->name, to->owner->unit, to->name, stages, hops + 1, NULL};
        if (st >= 0) { st = crdi_ssp_pass_down(r, &port, from->given); }
        if (st >= 0 && from->owner == r->root) { st = keep_port(r, &port); }
        if (st < 0) { return st; }
        c = from;
    }
    return CRD_OK;
}

static void note_unused(crdi_ssp_reader* r)
{
    for (const crdi_ssp_element* e = r->elements; e; e = e->next_of_all) {
        for (int i = 0; i < e->connector_count; i++) {
            for (const crdi_given* g = e->connectors[i].given; g; g = g->next) {
                if (g->used) { continue; }
                crdi_log(r->ctx, CRD_LOG_INFO,
                         "%s:%d: parameter '%s' reaches no component and is left out",
                         g->value->place.file, g->value->place.line,
                         crdi_show(g->value->name).text);
            }
        }
    }
}

static int by_precedence(const void* a, const void* b)
{
    const crdi_entry *x = a, *y = b;
    if (x->unit != y->unit) { return x->unit < y->unit ? -1 : 1; }
    if (x->depth != y->depth) { return x->depth > y->depth ? -1 : 1; }
    if (x->distance != y->distance) { return x->distance < y->distance ? -1 : 1; }
    return x->order < y->order ? -1 : x->order > y->order;
}

void crdi_ssp_sort_entries(crdi_ssp_reader* r)
{
    note_unused(r);
    if (r->entry_count) { qsort(r->entries, r->entry_count, sizeof *r->entries, by_precedence); }
}

crd_status crdi_ssp_bind(crdi_ssp_reader* r)
{
    for (crdi_ssp_element* e = r->elements; e; e = e->next_of_all) {
        crd_status st = read_bindings(r, e, e->document, e->xml);
        // Those of a component that is a file of its own come behind those in the file.
        if (st >= 0 && e->outer) { st = read_bindings(r, e, e->outer_document, e->outer); }
        if (st < 0) { return st; }
    }
    for (size_t i = 0; i < r->driven_count; i++) {
        const crdi_connector* to = r->driven[i];
        if (!to->owner || to->owner->kind != CRDI_ELEMENT_UNIT) { continue; }
        const crd_status st = pass_all_down(r, to);
        if (st < 0) { return st; }
    }
    crdi_ssp_sort_entries(r);
    return CRD_OK;
}
