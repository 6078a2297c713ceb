// Documents become one tree: systems, components, signal dictionaries and their connectors.
//
// A component that is another .ssd or .ssp becomes a system here, as if it stood in this file.
#include "ssp/read.h"

#include <stdio.h>
#include <string.h>

// ---- connectors --------------------------------------------------------------------------------

static const char* const kind_names[CRDI_KIND_COUNT] = {
    [CRDI_KIND_INPUT] = "input",
    [CRDI_KIND_OUTPUT] = "output",
    [CRDI_KIND_PARAMETER] = "parameter",
    [CRDI_KIND_CALCULATED] = "calculatedParameter",
    [CRDI_KIND_STRUCTURAL] = "structuralParameter",
    [CRDI_KIND_CONSTANT] = "constant",
    [CRDI_KIND_LOCAL] = "local",
    [CRDI_KIND_INOUT] = "inout",
    [CRDI_KIND_UNSPECIFIED] = "unspecified",
};

static crdi_connector_kind kind_of(const char* text)
{
    int k = 0;
    while (k < CRDI_KIND_COUNT - 1 && strcmp(kind_names[k], text) != 0) {
        k++;
    }
    return (crdi_connector_kind)k;
}

// The unit of the type that stands in a Connector or a DictionaryEntry.
static crd_status read_type(crdi_ssp_reader* r, const crdi_ssp_units* units,
                            const crdi_xml_element* e, crdi_connector* c)
{
    c->unit = "";
    for (const crdi_xml_element* t = e->first; t; t = t->next) {
        if (strcmp(t->space, CRDI_SSC) == 0 && crdi_ssp_is_real(t->name)) {
            return crdi_ssp_find_unit(r, units, crdi_xml_get(t, "unit"), &c->unit, &c->dimension);
        }
    }
    return CRD_OK;
}

static crd_status count_connector(crdi_ssp_reader* r, const crdi_document* d,
                                  const crdi_xml_element* e)
{
    if (++r->connector_count <= CRDI_SSP_MAX_THINGS) { return CRD_OK; }
    return crdi_ssp_bad(r, CRD_E_FORMAT, d, e, "more than %d connectors in all",
                        CRDI_SSP_MAX_THINGS);
}

static crd_status read_connectors(crdi_ssp_reader* r, crdi_ssp_element* self,
                                  const crdi_xml_element* owner)
{
    const crdi_xml_element* list = crdi_xml_child(owner, CRDI_SSD, "Connectors");
    const crdi_xml_element* first = list ? crdi_xml_child(list, CRDI_SSD, "Connector") : NULL;
    int count = 0;
    for (const crdi_xml_element* e = first; e; e = crdi_xml_same(e)) {
        const crd_status st = count_connector(r, self->document, e);
        if (st < 0) { return st; }
        count++;
    }
    self->connectors = crdi_arena_new(&r->arena, (size_t)count, sizeof *self->connectors);
    if (!self->connectors) { return CRD_E_MEMORY; }
    for (const crdi_xml_element* e = first; e; e = crdi_xml_same(e)) {
        crdi_connector* c = &self->connectors[self->connector_count];
        c->name = crdi_xml_get(e, "name");
        c->kind = kind_of(crdi_xml_get(e, "kind"));
        c->owner = self;
        c->line = e->line;
        c->index = "";
        crd_status st = read_type(r, self->document->units, e, c);
        if (st >= 0) {
            st = crdi_map_add(&self->connector_map, c->name, self->connector_count++, NULL);
        }
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

// The connectors that a Component repeats of the file that it names: they have to be there.
static crd_status check_outer_connectors(crdi_ssp_reader* r, const crdi_ssp_element* self)
{
    const crdi_xml_element* list = crdi_xml_child(self->outer, CRDI_SSD, "Connectors");
    const crdi_xml_element* e = list ? crdi_xml_child(list, CRDI_SSD, "Connector") : NULL;
    for (; e; e = crdi_xml_same(e)) {
        const char* name = crdi_xml_get(e, "name");
        const int32_t i = crdi_map_find(&self->connector_map, name);
        if (i < 0) {
            return crdi_ssp_bad(r, CRD_E_RANGE, self->outer_document, e,
                                "component '%s' has a connector '%s', which the system in %s lacks",
                                crdi_show(self->name).text, crdi_show(name).text,
                                self->document->shown);
        }
        crdi_connector* c = &self->connectors[i];
        if (!c->unit[0]) {
            const crd_status st = read_type(r, self->outer_document->units, e, c);
            if (st < 0) { return st; }
        }
    }
    return CRD_OK;
}

enum { MAX_DICTIONARIES = 1000 };

// ---- signal dictionaries -----------------------------------------------------------------------

static crd_status read_entries(crdi_ssp_reader* r, const crdi_document* d,
                               const crdi_xml_element* root, crdi_dictionary* out)
{
    const crdi_ssp_units* units = d->units;
    crd_status st = CRD_OK;
    if (root != d->xml->root) { st = crdi_ssp_read_units(r, root, &units); }
    const crdi_xml_element* first = crdi_xml_child(root, CRDI_SSB, "DictionaryEntry");
    int count = 0;
    for (const crdi_xml_element* e = first; e && st >= 0; e = crdi_xml_same(e)) {
        st = count_connector(r, d, e);
        count++;
    }
    if (st < 0) { return st; }
    out->entries = crdi_arena_new(&r->arena, (size_t)count, sizeof *out->entries);
    if (!out->entries) { return CRD_E_MEMORY; }
    for (const crdi_xml_element* e = first; e; e = crdi_xml_same(e)) {
        crdi_connector* c = &out->entries[out->entry_count];
        *c = (crdi_connector){.name = crdi_xml_get(e, "name"),
                              .kind = CRDI_KIND_INOUT,
                              .line = e->line,
                              .unit = "",
                              .index = ""};
        st = read_type(r, units, e, c);
        if (st >= 0) { st = crdi_map_add(&out->map, c->name, out->entry_count++, NULL); }
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

static crd_status read_dictionary(crdi_ssp_reader* r, crdi_ssp_element* self,
                                  const crdi_xml_element* e)
{
    crdi_document* d = self->document;
    const char *type = crdi_xml_get(e, "type"), *source = crdi_xml_get(e, "source");
    crdi_dictionary* out = crdi_arena_new(&r->arena, 1, sizeof *out);
    if (!out) { return CRD_E_MEMORY; }
    if (++r->dictionary_count > MAX_DICTIONARIES) {
        return crdi_ssp_bad(r, CRD_E_FORMAT, d, e, "more than %d signal dictionaries",
                            MAX_DICTIONARIES);
    }
    out->name = crdi_xml_get(e, "name");
    crdi_map_init(&out->map, r->ctx);
    out->next = self->dictionaries;
    self->dictionaries = out;
    out->next_of_all = r->dictionaries;
    r->dictionaries = out;
    if (type && strcmp(type, CRDI_TYPE_SSB) != 0) {
        return crdi_ssp_bad(r, CRD_E_UNSUPPORTED, d, e,
                            "signal dictionary '%s' of type '%s', expected " CRDI_TYPE_SSB,
                            crdi_show(out->name).text, crdi_show(type).text);
    }
    const crdi_xml_element* inline_root = crdi_xml_child(e, CRDI_SSB, "SignalDictionary");
    if (!source) {
        if (!inline_root) {
            return crdi_ssp_bad(r, CRD_E_FORMAT, d, e,
                                "signal dictionary '%s' has neither a source nor a content",
                                crdi_show(out->name).text);
        }
        return read_entries(r, d, inline_root, out);
    }
    if (r->no_files) { return CRD_OK; }
    crdi_ssp_uri uri;
    crdi_document* file = NULL;
    crd_status st = crdi_ssp_resolve(r, d, e, source, &uri);
    if (st >= 0) { st = crdi_ssp_need(r, d, e, "signal dictionary", &uri); }
    if (st >= 0) { st = crdi_ssp_open(r, uri.path, uri.shown, d->root, CRDI_ROOT_SSB, &file); }
    return st < 0 ? st : read_entries(r, file, file->xml->root, out);
}

static crd_status read_dictionaries(crdi_ssp_reader* r, crdi_ssp_element* self)
{
    const crdi_xml_element* list = crdi_xml_child(self->xml, CRDI_SSD, "SignalDictionaries");
    const crdi_xml_element* e = list ? crdi_xml_child(list, CRDI_SSD, "SignalDictionary") : NULL;
    for (; e; e = crdi_xml_same(e)) {
        const crd_status st = read_dictionary(r, self, e);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

// The name is looked up in the system around it, then in the one around that, and so on.
static const crdi_dictionary* find_dictionary(const crdi_ssp_element* self, const char* name)
{
    for (const crdi_ssp_element* s = self->parent; s; s = s->parent) {
        for (const crdi_dictionary* d = s->dictionaries; d; d = d->next) {
            if (strcmp(d->name, name) == 0) { return d; }
        }
    }
    return NULL;
}

static crd_status read_reference(crdi_ssp_reader* r, crdi_ssp_element* self)
{
    self->kind = CRDI_ELEMENT_DICTIONARY;
    crd_status st = read_connectors(r, self, self->xml);
    if (st < 0) { return st; }
    const char* name = crdi_xml_get(self->xml, "dictionary");
    const crdi_dictionary* d = find_dictionary(self, name);
    if (!d) {
        return crdi_ssp_bad(r, CRD_E_RANGE, self->document, self->xml,
                            "there is no signal dictionary '%s' in this system or around it",
                            crdi_show(name).text);
    }
    for (int i = 0; i < self->connector_count; i++) {
        crdi_connector* c = &self->connectors[i];
        const int32_t k = crdi_map_find(&d->map, c->name);
        if (k < 0 && !r->no_files) {
            return crdi_fail(
                r->ctx, CRD_E_RANGE, "%s:%d: the signal dictionary '%s' has no entry '%s'",
                self->document->shown, c->line, crdi_show(name).text, crdi_show(c->name).text);
        }
        c->entry = k < 0 ? NULL : &d->entries[k];
        if (c->entry && !c->entry->unit[0]) {
            c->entry->unit = c->unit;
            c->entry->dimension = c->dimension;
        }
    }
    return CRD_OK;
}

// ---- elements ----------------------------------------------------------------------------------

static crd_status build_system(crdi_ssp_reader* r, crdi_ssp_element* self);

static crd_status tree_add_element(crdi_ssp_reader* r, crdi_ssp_element* parent, crdi_document* d,
                                   const crdi_xml_element* e, crdi_ssp_element** out)
{
    if (++r->element_count > CRDI_SSP_MAX_THINGS / 8) {
        return crdi_ssp_bad(r, CRD_E_FORMAT, d, e, "more than %d components and systems in all",
                            CRDI_SSP_MAX_THINGS / 8);
    }
    crdi_ssp_element* self = crdi_arena_new(&r->arena, 1, sizeof *self);
    if (!self) { return CRD_E_MEMORY; }
    self->name = crdi_xml_get(e, "name");
    if (strlen(self->name) + (parent ? strlen(parent->full) : 0) > CRDI_SSP_MAX_NAME) {
        return crdi_ssp_bad(r, CRD_E_FORMAT, d, e,
                            "the name '%s' with those around it is longer than %d bytes",
                            crdi_show(self->name).text, CRDI_SSP_MAX_NAME);
    }
    self->parent = parent;
    self->document = d;
    self->xml = e;
    self->depth = parent ? parent->depth + 1 : 0;
    self->unit = -1;
    self->path = self->shown = "";
    self->full = !parent           ? ""
                 : parent->full[0] ? crdi_arena_format(&r->arena, "%s.%s", parent->full, self->name)
                                   : self->name;
    if (!self->full) { return CRD_E_MEMORY; }
    crdi_map_init(&self->connector_map, r->ctx);
    crdi_map_init(&self->child_map, r->ctx);
    if (r->last_element) {
        r->last_element->next_of_all = self;
    } else {
        r->elements = self;
    }
    r->last_element = self;
    *out = self;
    return CRD_OK;
}

// A path of files that comes back to itself never ends. The innermost system is `xml` of `d`.
static crd_status check_nesting(crdi_ssp_reader* r, const crdi_ssp_element* self,
                                const crdi_document* d, const crdi_xml_element* xml)
{
    bool cyclic = false;
    for (const crdi_ssp_element* s = self->parent; s && !cyclic; s = s->parent) {
        cyclic = s->document == d && s->xml == xml;
    }
    if (!cyclic && self->depth < CRDI_SSP_MAX_DEPTH) { return CRD_OK; }
    // The files from here outwards, as far as they fit.
    char within[600] = "";
    size_t used = 0;
    const crdi_document* last = NULL;
    for (const crdi_ssp_element* s = self; s && used + 100 < sizeof within; s = s->parent) {
        if (s->document == last) { continue; }
        last = s->document;
        used += (size_t)snprintf(within + used, sizeof within - used, " in %s",
                                 crdi_show(last->shown).text);
    }
    if (cyclic) {
        return crdi_ssp_bad(r, CRD_E_FORMAT, self->document, self->xml,
                            "component '%s' contains itself: %s%s", crdi_show(self->name).text,
                            crdi_show(d->shown).text, within);
    }
    return crdi_ssp_bad(r, CRD_E_FORMAT, self->document, self->xml,
                        "systems are nested deeper than %d:%s", CRDI_SSP_MAX_DEPTH, within);
}

static const crdi_xml_element* next_in_tree(const crdi_xml_element* e)
{
    if (e->first) { return e->first; }
    while (e && !e->next) {
        e = e->parent;
    }
    return e ? e->next : NULL;
}

static crd_status read_ids(crdi_ssp_reader* r, crdi_document* d)
{
    size_t count = 0;
    for (const crdi_xml_element* e = d->xml->root; e; e = next_in_tree(e)) {
        count += crdi_xml_is(e, CRDI_SSD, "System");
    }
    d->systems = crdi_arena_new(&r->arena, count, sizeof *d->systems);
    if (!d->systems) { return CRD_E_MEMORY; }
    int32_t n = 0;
    for (const crdi_xml_element* e = d->xml->root; e; e = next_in_tree(e)) {
        const char* id = crdi_xml_is(e, CRDI_SSD, "System") ? crdi_xml_get(e, "id") : NULL;
        if (!id) { continue; }
        d->systems[n] = e;
        const crd_status st = crdi_map_add(&d->ids, id, n++, NULL);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

// The component becomes the system that `xml` of `d` describes.
static crd_status nest(crdi_ssp_reader* r, crdi_ssp_element* self, crdi_document* d,
                       const crdi_xml_element* xml)
{
    crd_status st = check_nesting(r, self, d, xml);
    if (st < 0) { return st; }
    self->outer = self->xml;
    self->outer_document = self->document;
    self->document = d;
    self->xml = xml;
    st = build_system(r, self);
    return st < 0 ? st : check_outer_connectors(r, self);
}

// A System of this file, to be there once more.
static crd_status nest_same(crdi_ssp_reader* r, crdi_ssp_element* self, const char* id)
{
    crdi_document* d = self->document;
    const crd_status st = d->systems ? CRD_OK : read_ids(r, d);
    if (st < 0) { return st; }
    const int32_t i = crdi_map_find(&d->ids, id);
    if (i < 0) {
        return crdi_ssp_bad(r, CRD_E_RANGE, d, self->xml,
                            "component '%s': there is no System with the id '%s' in this file",
                            crdi_show(self->name).text, crdi_show(id).text);
    }
    return nest(r, self, d, d->systems[i]);
}

static crd_status nest_file(crdi_ssp_reader* r, crdi_ssp_element* self, const char* source,
                            bool package)
{
    crdi_document* d = self->document;
    const crdi_xml_element* e = self->xml;
    crdi_ssp_uri uri;
    crd_status st = crdi_ssp_resolve(r, d, e, source, &uri);
    if (st < 0) { return st; }
    if (!uri.path[0]) { return nest_same(r, self, uri.fragment); }
    if (r->no_files) {
        return crdi_ssp_bad(r, CRD_E_UNSUPPORTED, d, e, "a file from memory names '%s'",
                            crdi_show(source).text);
    }
    char what[120];
    snprintf(what, sizeof what, "component '%s'", crdi_show(self->name).text);
    crdi_ssp_place place = {.path = uri.path, .shown = uri.shown, .root = d->root};
    st = crdi_ssp_need(r, d, e, what, &uri);
    if (st >= 0 && package) {
        const char* variant = uri.fragment[0] ? uri.fragment : NULL;
        st = crdi_ssp_locate(r, uri.path, uri.shown, variant, &place);
    }
    crdi_document* inner = NULL;
    if (st >= 0) {
        st = crdi_ssp_open(r, place.path, place.shown, place.root, CRDI_ROOT_SSD, &inner);
    }
    if (st < 0) { return st; }
    self->path = place.path;
    return nest(r, self, inner, crdi_xml_child(inner->xml->root, CRDI_SSD, "System"));
}

static crd_status read_implementation(crdi_ssp_reader* r, crdi_ssp_element* self)
{
    const char* text = crdi_xml_get(self->xml, "implementation");
    self->interface = CRD_INTERFACE_AUTO;
    if (!text || strcmp(text, "any") == 0) { return CRD_OK; }
    if (strcmp(text, "CoSimulation") == 0) {
        self->interface = CRD_INTERFACE_COSIMULATION;
    } else if (strcmp(text, "ModelExchange") == 0) {
        self->interface = CRD_INTERFACE_MODEL_EXCHANGE;
    } else {
        return crdi_ssp_bad(r, CRD_E_UNSUPPORTED, self->document, self->xml,
                            "component '%s': %s is not supported, expected CoSimulation or "
                            "ModelExchange",
                            crdi_show(self->name).text, text);
    }
    return CRD_OK;
}

static crd_status tree_read_unit(crdi_ssp_reader* r, crdi_ssp_element* self, const char* source)
{
    char what[120];
    snprintf(what, sizeof what, "component '%s'", crdi_show(self->name).text);
    self->kind = CRDI_ELEMENT_UNIT;
    crd_status st = read_implementation(r, self);
    crdi_ssp_uri uri = {0};
    if (st >= 0) { st = crdi_ssp_resolve(r, self->document, self->xml, source, &uri); }
    if (st >= 0) { st = crdi_ssp_need(r, self->document, self->xml, what, &uri); }
    if (st < 0) { return st; }
    self->path = uri.path;
    self->shown = uri.shown;
    return read_connectors(r, self, self->xml);
}

static crd_status read_component(crdi_ssp_reader* r, crdi_ssp_element* self)
{
    const char *type = crdi_xml_get(self->xml, "type"), *source = crdi_xml_get(self->xml, "source");
    if (!type && source) { // some tools leave the type out
        type = crdi_ends_with(source, ".ssp")   ? CRDI_TYPE_SSP
               : crdi_ends_with(source, ".ssd") ? CRDI_TYPE_SSD
                                                : NULL;
    }
    if (!type) { type = CRDI_TYPE_FMU; }
    if (strcmp(type, CRDI_TYPE_SIGNAL) == 0 || strcmp(type, CRDI_TYPE_REPLAY) == 0) {
        self->kind = CRDI_ELEMENT_LATER;
        return read_connectors(r, self, self->xml);
    }
    if (!source) {
        crdi_log(r->ctx, CRD_LOG_WARNING,
                 "%s:%d: component '%s' has no source: it is left out, with its connections",
                 self->document->shown, self->xml->line, crdi_show(self->name).text);
        self->kind = CRDI_ELEMENT_EMPTY;
        return read_connectors(r, self, self->xml);
    }
    if (strcmp(type, CRDI_TYPE_FMU) == 0) {
        self->source = CRD_UNIT_FMU;
        return tree_read_unit(r, self, source);
    }
    if (strcmp(type, CRDI_TYPE_TABLE) == 0) {
        self->source = CRD_UNIT_REPLAY;
        return tree_read_unit(r, self, source);
    }
    if (strcmp(type, CRDI_TYPE_SSD) == 0) { return nest_file(r, self, source, false); }
    if (strcmp(type, CRDI_TYPE_SSP) == 0) { return nest_file(r, self, source, true); }
    return crdi_ssp_bad(r, CRD_E_UNSUPPORTED, self->document, self->xml,
                        "component '%s' of type '%s', expected " CRDI_TYPE_FMU ", " CRDI_TYPE_SSD
                        " or " CRDI_TYPE_SSP,
                        crdi_show(self->name).text, crdi_show(type).text);
}

static crd_status build_child(crdi_ssp_reader* r, crdi_ssp_element* self, const crdi_xml_element* e)
{
    crdi_ssp_element* child = NULL;
    crd_status st = tree_add_element(r, self, self->document, e, &child);
    if (st < 0) { return st; }
    self->children[self->child_count] = child;
    st = crdi_map_add(&self->child_map, child->name, self->child_count++, NULL);
    if (st < 0) { return st; }
    if (strcmp(e->name, "Component") == 0) { return read_component(r, child); }
    if (strcmp(e->name, "SignalDictionaryReference") == 0) { return read_reference(r, child); }
    st = check_nesting(r, child, self->document, e);
    return st < 0 ? st : build_system(r, child);
}

// Depth: bounded by check_nesting.
static crd_status build_system(crdi_ssp_reader* r, crdi_ssp_element* self)
{
    self->kind = CRDI_ELEMENT_SYSTEM;
    crd_status st = read_connectors(r, self, self->xml);
    if (st >= 0) { st = read_dictionaries(r, self); }
    const crdi_xml_element* list = crdi_xml_child(self->xml, CRDI_SSD, "Elements");
    if (st < 0 || !list) { return st; }
    size_t count = 0;
    for (const crdi_xml_element* e = list->first; e; e = e->next) {
        count++;
    }
    self->children = crdi_arena_new(&r->arena, count, sizeof(crdi_ssp_element*));
    if (!self->children) { return CRD_E_MEMORY; }
    for (const crdi_xml_element* e = list->first; e && st >= 0; e = e->next) {
        if (strcmp(e->space, CRDI_SSD) == 0) { st = build_child(r, self, e); }
    }
    return st;
}

crd_status crdi_ssp_build(crdi_ssp_reader* r, crdi_document* d)
{
    const crdi_xml_element* e = crdi_xml_child(d->xml->root, CRDI_SSD, "System");
    const crd_status st = tree_add_element(r, NULL, d, e, &r->root);
    return st < 0 ? st : build_system(r, r->root);
}

void crdi_ssp_clear_tree(crdi_ssp_reader* r)
{
    for (crdi_ssp_element* e = r->elements; e; e = e->next_of_all) {
        crdi_map_clear(&e->connector_map);
        crdi_map_clear(&e->child_map);
    }
    for (crdi_dictionary* d = r->dictionaries; d; d = d->next_of_all) {
        crdi_map_clear(&d->map);
    }
}
