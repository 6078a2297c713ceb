// A system as a package: SystemStructure.ssd, FMUs and recordings under resources/, start values in
// an SSV, and our annotation for the rest.
//
// A unit "drive.motor" becomes the component "motor" of the system "drive" again, and connections
// pass the borders of systems through connectors that are made for them ("motor_tau"). Where that
// cannot be (a unit "drive" beside it, empty parts of the name, more than 32 levels), the unit
// stays at the root and the dots of its name become "_", with a number if need be.
#include "ssp/write.h"
#include "shared/base_names.h"
#include "shared/base_path.h"
#include "shared/system.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

const char* crdi_pack_number_text(crdi_pack_writer* w, double x)
{
    crd_text t;
    crd_text_init(&t, w->ctx);
    crdi_text_json_number(&t, x);
    const char* copy = t.failed ? NULL : crdi_arena_text(&w->arena, t.data, t.length);
    crd_text_clear(&t);
    return copy;
}

// ---- units and enumerations --------------------------------------------------------------------

bool crdi_pack_dimension(const crdi_pack_port* p, crd_dimension* out)
{
    *out = p->look.dimension;
    const bool known =
        p->look.has_dimension || (p->look.unit[0] && crd_dimension_parse(p->look.unit, out));
    if (known && p->look.relative) { out->offset = 0; }
    return known;
}

static bool same_dimension(const crd_dimension* a, const crd_dimension* b)
{
    return crd_dimension_equal(a, b) && a->factor == b->factor && a->offset == b->offset;
}

crd_status crdi_pack_add_unit(crdi_pack_writer* w, crdi_pack_units* units, const char* name,
                              const crd_dimension* dimension, const char** out)
{
    crd_dimension parsed;
    *out = NULL;
    if (!name || !name[0]) { return CRD_OK; }
    if (!dimension) {
        if (!crd_dimension_parse(name, &parsed)) { return CRD_OK; }
        dimension = &parsed;
    }
    for (int i = 1;; i++) { // FMUs may mean different things by one name
        const char* own = i == 1 ? crdi_arena_text(&w->arena, name, strlen(name))
                                 : crdi_arena_format(&w->arena, "%s_%d", name, i);
        if (!own) { return CRD_E_MEMORY; }
        const int found = crdi_map_find(&units->map, own);
        if (found >= 0 && !same_dimension(&units->items[found].dimension, dimension)) { continue; }
        *out = own;
        if (found >= 0) { return CRD_OK; }
        crdi_pack_unit* grown = crdi_grow(w->ctx, units->items, &units->capacity,
                                          (size_t)units->count + 1, sizeof *grown);
        if (!grown) { return CRD_E_MEMORY; }
        units->items = grown;
        units->items[units->count] = (crdi_pack_unit){own, *dimension};
        return crdi_map_add(&units->map, own, units->count++, NULL);
    }
}

crd_status crdi_pack_add_port_unit(crdi_pack_writer* w, crdi_pack_units* units,
                                   const crdi_pack_port* p, const char** out)
{
    crd_dimension d, whole;
    const char* name = p->look.unit;
    const bool known = crdi_pack_dimension(p, &d);
    if (known && p->look.relative) { // degC of a difference is not degC of a temperature
        whole = p->look.dimension;
        const bool zero_point =
            (p->look.has_dimension || crd_dimension_parse(name, &whole)) && whole.offset != 0;
        if (zero_point) { name = crdi_arena_format(&w->arena, "%s_relative", name); }
        if (!name) { return CRD_E_MEMORY; }
    }
    return crdi_pack_add_unit(w, units, name, known ? &d : NULL, out);
}

void crdi_pack_put_units(crdi_xml_writer* x, const char* element, const crdi_pack_units* units)
{
    if (units->count == 0) { return; }
    crdi_xml_begin(x, element);
    for (int i = 0; i < units->count; i++) {
        crd_dimension d = units->items[i].dimension;
        crdi_xml_begin(x, "ssc:Unit");
        crdi_xml_inline(x);
        crdi_xml_put(x, "name", units->items[i].name);
        crdi_xml_begin(x, "ssc:BaseUnit");
        for (int k = 0; k < CRDI_BASE_UNITS; k++) {
            const int exponent = *crdi_exponent(&d, k);
            if (exponent) { crdi_xml_put_int(x, crdi_base_units[k], exponent); }
        }
        if (d.factor != 1) { crdi_xml_put_real(x, "factor", d.factor); }
        if (d.offset != 0) { crdi_xml_put_real(x, "offset", d.offset); }
        crdi_xml_end(x);
        crdi_xml_end(x);
    }
    crdi_xml_end(x);
}

static bool same_items(const crdi_pack_enumeration* e, const crd_ssp_connector* c)
{
    if (e->count != c->item_count) { return false; }
    for (int i = 0; i < e->count; i++) {
        if (e->items[i].value != c->items[i].value ||
            strcmp(e->items[i].name, c->items[i].name) != 0) {
            return false;
        }
    }
    return true;
}

// Gives the connector's enumeration the name under which it stands in the file.
static crd_status add_enumeration(crdi_pack_writer* w, crd_ssp_connector* c)
{
    const char* name = c->enumeration[0] ? c->enumeration : c->name;
    for (int i = 1;; i++) {
        const char* own = i == 1 ? name : crdi_arena_format(&w->arena, "%s_%d", name, i);
        if (!own) { return CRD_E_MEMORY; }
        const int found = crdi_map_find(&w->enumeration_map, own);
        if (found >= 0 && !same_items(&w->enumerations[found], c)) { continue; }
        c->enumeration = own;
        if (found >= 0) { return CRD_OK; }
        crdi_pack_enumeration* grown = crdi_grow(w->ctx, w->enumerations, &w->enumeration_capacity,
                                                 (size_t)w->enumeration_count + 1, sizeof *grown);
        if (!grown) { return CRD_E_MEMORY; }
        w->enumerations = grown;
        w->enumerations[w->enumeration_count] =
            (crdi_pack_enumeration){own, c->items, c->item_count};
        return crdi_map_add(&w->enumeration_map, own, w->enumeration_count++, NULL);
    }
}

static void put_enumerations(const crdi_pack_writer* w, crdi_xml_writer* x)
{
    if (w->enumeration_count == 0) { return; }
    crdi_xml_begin(x, "ssd:Enumerations");
    for (int i = 0; i < w->enumeration_count; i++) {
        const crdi_pack_enumeration* e = &w->enumerations[i];
        crdi_xml_begin(x, "ssc:Enumeration");
        crdi_xml_put(x, "name", e->name);
        for (int k = 0; k < e->count; k++) {
            crdi_xml_begin(x, "ssc:Item");
            crdi_xml_put(x, "name", e->items[k].name);
            crdi_xml_put_int(x, "value", e->items[k].value);
            crdi_xml_end(x);
        }
        crdi_xml_end(x);
    }
    crdi_xml_end(x);
}

// ---- connectors --------------------------------------------------------------------------------

static bool ssp_write_copy_text(crdi_pack_writer* w, const char** text)
{
    *text = *text && **text ? crdi_arena_text(&w->arena, *text, strlen(*text)) : "";
    return *text != NULL;
}

// The source's array lives until its next call.
static bool copy_connector(crdi_pack_writer* w, crd_ssp_connector* c)
{
    crd_ssp_item* items = crdi_arena_new(&w->arena, (size_t)c->item_count, sizeof *items);
    uint64_t* sizes = crdi_arena_new(&w->arena, (size_t)c->rank, sizeof *sizes);
    if (!items || !sizes || !ssp_write_copy_text(w, &c->name) ||
        !ssp_write_copy_text(w, &c->unit) || !ssp_write_copy_text(w, &c->enumeration)) {
        return false;
    }
    for (int i = 0; i < c->item_count; i++) {
        items[i] = c->items[i];
        // SSP 1.0 has 32 bits for the value of an item
        if (items[i].value < INT32_MIN || items[i].value > INT32_MAX) { c->item_count = 0; }
        if (!ssp_write_copy_text(w, &items[i].name)) { return false; }
    }
    if (c->rank) { memcpy(sizes, c->sizes, (size_t)c->rank * sizeof *sizes); }
    c->items = items;
    c->sizes = sizes;
    return true;
}

static crdi_pack_port* add_port(crdi_pack_writer* w, crdi_pack_part* p, const crdi_pack_port* port)
{
    crdi_pack_port* grown =
        crdi_grow(w->ctx, p->ports, &p->port_capacity, (size_t)p->port_count + 1, sizeof *grown);
    if (!grown) { return NULL; }
    p->ports = grown;
    p->ports[p->port_count] = *port;
    if (crdi_map_add(&p->port_map, port->look.name, p->port_count, NULL) < 0) { return NULL; }
    return &p->ports[p->port_count++];
}

crdi_pack_port* crdi_pack_find_port(crdi_pack_part* p, const char* variable)
{
    const int found = crdi_map_find(&p->port_map, variable);
    return found < 0 ? NULL : &p->ports[found];
}

crdi_pack_port* crdi_pack_port_of(crdi_pack_writer* w, int unit, const char* variable, bool output)
{
    crdi_pack_part* p = &w->parts[unit];
    crdi_pack_port* port = crdi_pack_find_port(p, variable);
    if (!port) {
        // An element of an array: the same type, in SSP 1.0 under a name of its own.
        const char* bracket = strrchr(variable, '[');
        const char* array =
            bracket ? crdi_arena_text(&w->arena, variable, (size_t)(bracket - variable)) : "";
        if (!array) { return NULL; }
        crdi_pack_port* whole = crdi_pack_find_port(p, array);
        crdi_pack_port fresh = {.look = {.unit = "", .enumeration = ""}};
        if (whole) {
            fresh = *whole;
            whole->used = true;
        }
        fresh.look.rank = 0;
        fresh.element = whole != NULL;
        fresh.look.name = variable;
        port = add_port(w, p, &fresh);
        if (!port) { return NULL; }
    }
    port->used = true;
    if (port->look.causality == CRD_LOCAL || port->look.causality == CRD_INDEPENDENT) {
        port->look.causality = output ? CRD_OUTPUT : CRD_INPUT;
    }
    return port;
}

static crd_status read_connectors(crdi_pack_writer* w, int unit)
{
    crd_status st = CRD_OK;
    const crd_ssp_connector* list = NULL;
    int count = 0;
    crdi_pack_part* p = &w->parts[unit];
    if (w->src && w->src->connectors) {
        CRD_TRY(w->src->connectors(w->src->user, unit, &list, &count));
    }
    CRD_TRY(crdi_map_reserve(&p->port_map, (size_t)count));
    for (int i = 0; i < count; i++) {
        crdi_pack_port port = {.look = list[i], .typed = true};
        if (!copy_connector(w, &port.look)) { return CRD_E_MEMORY; }
        if (crdi_pack_find_port(p, port.look.name)) { continue; } // an alias that is listed twice
        if (!add_port(w, p, &port)) { return CRD_E_MEMORY; }
    }
fail:
    return st;
}

// What XML needs to know of a connector is in the tables of units and enumerations.
static bool is_written(const crdi_pack_writer* w, const crdi_pack_port* p)
{
    const crd_causality c = p->look.causality;
    if (c == CRD_LOCAL || c == CRD_INDEPENDENT) { return false; } // they only gave their types
    if (p->element && w->opt.version == 2) { return false; }      // connections have indices
    return p->used || !w->opt.only_used;
}

static crd_status register_port(crdi_pack_writer* w, crdi_pack_port* p)
{
    crd_status st = CRD_OK;
    const char* name = NULL;
    crd_ssp_connector* c = &p->look;
    if (p->typed && crd_type_kind(c->type) == CRD_REAL) {
        CRD_TRY(crdi_pack_add_port_unit(w, &w->units, p, &name));
    }
    c->unit = name ? name : "";
    if (p->typed && c->type == CRD_ENUMERATION && c->item_count > 0) {
        CRD_TRY(add_enumeration(w, c));
    }
fail:
    return st;
}

const char* crdi_pack_type_name(const crdi_pack_writer* w, crd_type type)
{
    static const char* const one[CRD_TYPE_COUNT] = {
        "Real",    "Real",    "Integer", "Integer",     "Integer", "Integer", "Integer", "Integer",
        "Integer", "Integer", "Boolean", "Enumeration", "String",  "Binary",  NULL};
    // Real and Integer are other words for Float64 and Int32, and understood by more tools.
    const bool old = w->opt.version == 1 || type == CRD_FLOAT64 || type == CRD_INT32;
    return old ? one[type] : crdi_type_names[type];
}

void crdi_pack_put_sizes(crdi_xml_writer* x, const crd_ssp_connector* c)
{
    for (int i = 0; i < c->rank; i++) {
        crdi_xml_begin(x, "ssc:Dimension");
        crdi_xml_put_whole(x, "size", c->sizes[i]);
        crdi_xml_end(x);
    }
}

static void put_connector(const crdi_pack_writer* w, crdi_xml_writer* x, const crdi_pack_port* p)
{
    const crd_ssp_connector* c = &p->look;
    const char* kind = crdi_causality_names[c->causality];
    if (w->opt.version == 1 && c->causality == CRD_STRUCTURAL_PARAMETER) { kind = "parameter"; }
    crdi_xml_begin(x, "ssd:Connector");
    crdi_xml_inline(x);
    crdi_xml_put(x, "name", c->name);
    crdi_xml_put(x, "kind", kind);
    const bool items = c->type == CRD_ENUMERATION && c->item_count > 0;
    const char* type = !p->typed                              ? NULL
                       : c->type == CRD_ENUMERATION && !items ? "Integer"
                                                              : crdi_pack_type_name(w, c->type);
    if (type) {
        crdi_xml_begin_in(x, "ssc:", type);
        if (items) { crdi_xml_put(x, "name", c->enumeration); }
        if (crd_type_kind(c->type) == CRD_REAL) { crdi_xml_put_if(x, "unit", c->unit); }
        crdi_xml_end(x);
    }
    if (w->opt.version == 2) { crdi_pack_put_sizes(x, c); }
    crdi_xml_end(x);
}

// ---- elements ----------------------------------------------------------------------------------

static crd_status ssp_write_add_element(crdi_pack_writer* w, const char* path, const char* name,
                                        int parent, int unit, int* out)
{
    crdi_pack_element* grown = crdi_grow(w->ctx, w->elements, &w->element_capacity,
                                         (size_t)w->element_count + 1, sizeof *grown);
    if (!grown) { return CRD_E_MEMORY; }
    w->elements = grown;
    const int index = w->element_count++;
    w->elements[index] =
        (crdi_pack_element){.name = name,
                            .path = path,
                            .parent = parent,
                            .depth = parent < 0 ? 0 : w->elements[parent].depth + 1,
                            .unit = unit,
                            .first = -1,
                            .last = -1,
                            .next = -1,
                            .first_hop = -1,
                            .last_hop = -1,
                            .first_link = -1,
                            .last_link = -1};
    *out = index;
    if (parent >= 0) {
        crdi_pack_element* p = &w->elements[parent];
        if (p->last >= 0) {
            w->elements[p->last].next = index;
        } else {
            p->first = index;
        }
        p->last = index;
    }
    return crdi_map_add(&w->element_map, path, index, NULL);
}

// Whether the dots of the name can be systems again.
static crd_status can_nest(crdi_pack_writer* w, const char* name, bool* out)
{
    int depth = 0;
    *out = name[0] != '.' && name[strlen(name) - 1] != '.' && !strstr(name, "..");
    for (const char* dot = strchr(name, '.'); dot && *out; dot = strchr(dot + 1, '.')) {
        const char* outer = crdi_arena_text(&w->arena, name, (size_t)(dot - name));
        if (!outer) { return CRD_E_MEMORY; }
        *out = ++depth <= CRDI_PACK_DEPTH && crd_system_find(w->s, outer) < 0;
    }
    return CRD_OK;
}

static crd_status place_flat(crdi_pack_writer* w, int unit, crdi_pack_part* p)
{
    char* base = crdi_arena_text(&w->arena, w->s->units[unit].name, strlen(w->s->units[unit].name));
    if (!base) { return CRD_E_MEMORY; }
    for (char* c = base; *c; c++) {
        if (*c == '.') { *c = '_'; }
    }
    const char* name = base;
    for (int i = 2; crd_system_find(w->s, name) >= 0 || crdi_map_find(&w->element_map, name) >= 0;
         i++) {
        name = crdi_arena_format(&w->arena, "%s_%d", base, i);
        if (!name) { return CRD_E_MEMORY; }
    }
    p->name = name;
    return ssp_write_add_element(w, name, name, 0, unit, &p->element);
}

static crd_status place_unit(crdi_pack_writer* w, int unit)
{
    crd_status st = CRD_OK;
    crdi_pack_part* p = &w->parts[unit];
    const char* name = w->s->units[unit].name;
    bool nests = false;
    CRD_TRY(can_nest(w, name, &nests));
    if (!nests) { return place_flat(w, unit, p); }
    int parent = 0;
    const char* begin = name;
    for (const char* dot = strchr(name, '.'); dot; dot = strchr(begin, '.')) {
        const char* path = crdi_arena_text(&w->arena, name, (size_t)(dot - name));
        if (!path) { return CRD_E_MEMORY; }
        int system = crdi_map_find(&w->element_map, path);
        if (system < 0) {
            CRD_TRY(ssp_write_add_element(w, path, path + (begin - name), parent, -1, &system));
        }
        parent = system;
        begin = dot + 1;
    }
    p->name = name;
    CRD_TRY(ssp_write_add_element(w, name, begin, parent, unit, &p->element));
fail:
    return st;
}

// The element that a note belongs to. The root takes those of systems that are not written again.
static int owner_of(const crdi_pack_writer* w, const crd_note* n)
{
    for (int i = 1; i < w->element_count; i++) {
        const crdi_pack_element* e = &w->elements[i];
        if (n->unit >= 0 ? e->unit == n->unit
                         : e->unit < 0 && n->system && strcmp(e->path, n->system) == 0) {
            return i;
        }
    }
    return 0;
}

static void put_notes(const crdi_pack_writer* w, crdi_xml_writer* x, int element)
{
    bool any = false;
    for (int i = 0; i < w->s->note_count; i++) {
        const crd_note* n = &w->s->notes[i];
        if (owner_of(w, n) != element) { continue; }
        if (!any && element > 0) { crdi_xml_begin(x, "ssd:Annotations"); }
        any = true;
        crdi_xml_line(x, n->xml);
    }
    if (any && element > 0) { crdi_xml_end(x); }
}

static void put_component(const crdi_pack_writer* w, crdi_xml_writer* x, const crdi_pack_element* e)
{
    static const char* const interfaces[] = {NULL, "CoSimulation", "ModelExchange"};
    const crd_unit_spec* u = &w->s->units[e->unit];
    const crdi_pack_part* p = &w->parts[e->unit];
    crdi_xml_begin(x, "ssd:Component");
    crdi_xml_put(x, "name", e->name);
    crdi_xml_put(x, "type",
                 u->source == CRD_UNIT_FMU      ? "application/x-fmu-sharedlibrary"
                 : u->source == CRD_UNIT_REPLAY ? CRD_SSP_REPLAY
                                                : CRD_SSP_SIGNAL);
    // 1.0 insists on a source also where there is no file
    if (p->source[0] || w->opt.version == 1) { crdi_xml_put(x, "source", p->source); }
    if (u->source == CRD_UNIT_FMU) {
        crdi_xml_put_if(x, "implementation", interfaces[u->interface]);
    }
    bool any = false;
    for (int i = 0; i < p->port_count; i++) {
        if (!is_written(w, &p->ports[i])) { continue; }
        if (!any) { crdi_xml_begin(x, "ssd:Connectors"); }
        any = true;
        put_connector(w, x, &p->ports[i]);
    }
    if (any) { crdi_xml_end(x); }
    put_notes(w, x, (int)(e - w->elements));
    crdi_xml_end(x);
}

static void put_hops(const crdi_pack_writer* w, crdi_xml_writer* x, const crdi_pack_element* e)
{
    crdi_xml_begin(x, "ssd:Connectors");
    for (int i = e->first_hop; i >= 0; i = w->hops[i].next) {
        crdi_pack_port port = w->hops[i].port;
        port.look.causality = w->hops[i].output ? CRD_OUTPUT : CRD_INPUT;
        put_connector(w, x, &port);
    }
    crdi_xml_end(x);
}

static void put_binding(const crdi_pack_writer* w, crdi_xml_writer* x)
{
    crdi_xml_begin(x, "ssd:ParameterBindings");
    crdi_xml_begin(x, "ssd:ParameterBinding");
    crdi_xml_put(x, "type", "application/x-ssp-parameter-set");
    crdi_text_add(x->out, " source=\"resources/%s.ssv\"", w->stem);
    crdi_xml_end(x);
    crdi_xml_end(x);
}

static void ssp_write_put_system(const crdi_pack_writer* w, crdi_xml_writer* x, int index)
{
    const crdi_pack_element* e = &w->elements[index];
    crdi_xml_begin(x, "ssd:System");
    crdi_xml_put(x, "name", e->name);
    if (e->first_hop >= 0) { put_hops(w, x, e); }
    if (index == 0 && w->values > 0) { put_binding(w, x); }
    if (e->first >= 0) {
        crdi_xml_begin(x, "ssd:Elements");
        for (int i = e->first; i >= 0; i = w->elements[i].next) {
            if (w->elements[i].unit >= 0) {
                put_component(w, x, &w->elements[i]);
            } else {
                ssp_write_put_system(w, x, i);
            }
        }
        crdi_xml_end(x);
    }
    if (e->first_link >= 0) {
        crdi_xml_begin(x, "ssd:Connections");
        for (int i = e->first_link; i >= 0; i = w->links[i].next) {
            crdi_pack_put_link(x, &w->links[i]);
        }
        crdi_xml_end(x);
    }
    if (index > 0) { put_notes(w, x, index); }
    crdi_xml_end(x);
}

static void put_annotations(const crdi_pack_writer* w, crdi_xml_writer* x)
{
    bool any = w->yaml.length > 0;
    for (int i = 0; i < w->s->note_count; i++) {
        any = any || owner_of(w, &w->s->notes[i]) == 0;
    }
    if (!any) { return; }
    crdi_xml_begin(x, "ssd:Annotations");
    if (w->yaml.length > 0) {
        crdi_xml_begin(x, "ssc:Annotation");
        crdi_xml_inline(x);
        crdi_xml_put(x, "type", CRD_SSP_ANNOTATION);
        crdi_xml_begin(x, "yaml");
        crdi_xml_put(x, "xmlns", CRD_SSP_SPACE);
        crdi_xml_content(x, "\n");
        crdi_xml_content(x, w->yaml.data);
        crdi_xml_end(x);
        crdi_xml_end(x);
    }
    put_notes(w, x, 0);
    crdi_xml_end(x);
}

void crdi_pack_begin(crdi_pack_writer* w, crdi_xml_writer* x, crd_text* out, const char* element,
                     const char* prefix, const char* space)
{
    crdi_xml_writer_init(x, out);
    crdi_xml_begin(x, element);
    crdi_text_add(out,
                  " xmlns:%s=\"http://ssp-standard.org/SSP1/%s\"\n"
                  "    xmlns:ssc=\"http://ssp-standard.org/SSP1/SystemStructureCommon\"\n"
                  "    version=\"%d.0\"",
                  prefix, space, w->opt.version);
    crdi_xml_put(x, "name", w->title);
}

static void put_description(crdi_pack_writer* w)
{
    crdi_xml_writer x;
    const crd_run_spec* r = &w->s->run;
    crdi_pack_begin(w, &x, &w->ssd, "ssd:SystemStructureDescription", "ssd",
                    "SystemStructureDescription");
    if (w->opt.author) { crdi_xml_put(&x, "author", w->opt.author); }
    crdi_text_add(x.out, " generationTool=\"Cardan %s\"", crd_version());
    ssp_write_put_system(w, &x, 0);
    put_enumerations(w, &x);
    crdi_pack_put_units(&x, "ssd:Units", &w->units);
    if (!isnan(r->start) || !isnan(r->stop)) {
        crdi_xml_begin(&x, "ssd:DefaultExperiment");
        // OMSimulator wants a start time beside a stop time.
        crdi_xml_put_real(&x, "startTime", isnan(r->start) ? 0 : r->start);
        if (!isnan(r->stop)) { crdi_xml_put_real(&x, "stopTime", r->stop); }
        crdi_xml_end(&x);
    }
    put_annotations(w, &x);
    crdi_xml_end(&x);
    if (!w->bad) { w->bad = x.bad; }
}

// ---- the whole ---------------------------------------------------------------------------------

// What stands for units that cannot be packed themselves.
static crd_status check_source(crdi_pack_writer* w, const crd_unit_spec* u)
{
    const crdi_unit_kind* kind = crdi_unit_kind_of(u->source);
    if (kind->exported) {
        return crdi_fail(w->ctx, CRD_E_UNSUPPORTED,
                         "unit '%s' is %s: it cannot be packed; 'cardan export %s %s' %s", u->name,
                         kind->what, kind->key, u->path, kind->exported);
    }
    return u->source != CRD_UNIT_NATIVE
               ? CRD_OK
               : crdi_fail(w->ctx, CRD_E_UNSUPPORTED,
                           "unit '%s' is a model inside a program: it cannot be packed, expected "
                           "FMUs, signals and recordings",
                           u->name);
}

static crd_status ssp_write_check_units(crdi_pack_writer* w)
{
    crd_status st = CRD_OK;
    int own = 0;
    const char* first = "";
    struct stat target, file;
    const bool exists = stat(w->path, &target) == 0;
    for (int i = -2; i < w->s->unit_count; i++) {
        const crd_unit_spec* u = i < 0 ? NULL : &w->s->units[i];
        const char* input = u ? u->path : i == -1 ? w->s->file : w->s->base;
        if (exists && stat(input, &file) == 0 && file.st_dev == target.st_dev &&
            file.st_ino == target.st_ino) {
            return crdi_fail(w->ctx, CRD_E_RANGE,
                             "%s: the package would overwrite %s, expected another file", w->path,
                             u ? "the file of a unit" : "what it is made of");
        }
        if (!u) { continue; }
        CRD_TRY(check_source(w, u));
        if (u->source != CRD_UNIT_FMU && own++ == 0) { first = u->name; }
    }
    if (own > 0) {
        crdi_log(w->ctx, CRD_LOG_WARNING,
                 "%s: %d unit%s no FMU%s (%s%s): only Cardan runs that part of the package",
                 w->path, own, own == 1 ? " is" : "s are", own == 1 ? "" : "s", first,
                 own == 1 ? "" : ", ...");
    }
fail:
    return st;
}

static crd_status make_title(crdi_pack_writer* w)
{
    const crd_system* s = w->s;
    const char* title = s->title && s->title[0] ? s->title : s->file;
    if (title == s->file) { // its name without folder and ending
        size_t length;
        title = crdi_path_stem(title, &length);
        title = crdi_arena_text(&w->arena, title, length);
        if (!title) { return CRD_E_MEMORY; }
    }
    if (!title[0]) { title = s->unit_count == 1 ? s->units[0].name : "system"; }
    w->title = title;
    w->stem = crdi_pack_plain_name(w, title, strlen(title));
    return w->stem ? CRD_OK : CRD_E_MEMORY;
}

static crd_status make_parts(crdi_pack_writer* w)
{
    crd_status st = CRD_OK;
    const int count = w->s->unit_count;
    w->parts = crdi_arena_new(&w->arena, (size_t)count, sizeof *w->parts);
    if (!w->parts) { return CRD_E_MEMORY; }
    for (int i = 0; i < count; i++) {
        crdi_map_init(&w->parts[i].port_map, w->ctx);
    }
    int root = 0;
    CRD_TRY(ssp_write_add_element(w, "", w->title, -1, -1, &root));
    for (int i = 0; i < count; i++) {
        CRD_TRY(place_unit(w, i));
        CRD_TRY(read_connectors(w, i));
    }
fail:
    return st;
}

// Names of units and enumerations, in the order of the file.
static crd_status register_ports(crdi_pack_writer* w)
{
    crd_status st = CRD_OK;
    for (int i = 0; i < w->s->unit_count; i++) {
        crdi_pack_part* p = &w->parts[i];
        for (int k = 0; k < p->port_count; k++) {
            if (is_written(w, &p->ports[k])) { CRD_TRY(register_port(w, &p->ports[k])); }
        }
    }
    for (int i = 0; i < w->hop_count; i++) {
        CRD_TRY(register_port(w, &w->hops[i].port));
    }
fail:
    return st;
}

static crd_status write_package(crdi_pack_writer* w)
{
    crd_status st = CRD_OK;
    const char* ssv = NULL;
    CRD_TRY(ssp_write_check_units(w));
    CRD_TRY(make_title(w));
    CRD_TRY(
        crdi_pack_resource_name(w, w->stem, ".ssv", &ssv)); // first, so that the name is its own
    CRD_TRY(make_parts(w));
    CRD_TRY(crdi_pack_route(w));
    CRD_TRY(crdi_archive_create(w->ctx, w->path, &w->zip));
    CRD_TRY(crdi_pack_files(w));
    CRD_TRY(crdi_pack_values(w));
    CRD_TRY(crdi_pack_yaml(w));
    CRD_TRY(register_ports(w));
    put_description(w);
    if (w->ssd.failed || w->ssv.failed || w->yaml.failed) { CRD_TRY(CRD_E_MEMORY); }
    if (w->bad) {
        CRD_TRY(crdi_fail(w->ctx, CRD_E_RANGE,
                          "%s: '%s' cannot stand in XML, expected UTF-8 without control characters",
                          w->path, crdi_show(w->bad).text));
    }
    CRD_TRY(crdi_archive_add(w->zip, "SystemStructure.ssd", w->ssd.data, w->ssd.length));
    if (w->values > 0) { CRD_TRY(crdi_archive_add(w->zip, ssv, w->ssv.data, w->ssv.length)); }
    CRD_TRY(crdi_archive_finish(w->zip));
fail:
    return st;
}

static void clear_writer(crdi_pack_writer* w)
{
    crdi_archive_discard(w->zip);
    if (w->scratch && !crdi_scratch_remove(w->scratch)) {
        crdi_log(w->ctx, CRD_LOG_WARNING, "the folder %s could not be removed", w->scratch);
    }
    for (int i = 0; w->parts && i < w->s->unit_count; i++) {
        crdi_map_clear(&w->parts[i].port_map);
        crd_free(w->ctx, w->parts[i].ports);
    }
    crd_map* maps[] = {&w->element_map, &w->hop_map, &w->units.map, &w->enumeration_map, &w->files};
    void* arrays[] = {w->elements, w->hops, w->links, w->units.items, w->enumerations};
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        crdi_map_clear(maps[i]);
        crd_free(w->ctx, arrays[i]);
    }
    crd_text_clear(&w->ssd);
    crd_text_clear(&w->ssv);
    crd_text_clear(&w->yaml);
    crd_arena_clear(&w->arena);
}

crd_status crd_ssp_write(const crd_system* s, const char* path, const crd_ssp_source* src,
                         const crd_ssp_options* opt)
{
    crdi_pack_writer w = {.s = s, .ctx = s->ctx, .src = src, .path = path};
    if (opt) { w.opt = *opt; }
    if (w.opt.version == 0) { w.opt.version = 1; }
    if (w.opt.version != 1 && w.opt.version != 2) {
        return crdi_fail(s->ctx, CRD_E_RANGE, "%s: SSP version %d, expected 1 or 2", path,
                         w.opt.version);
    }
    crd_arena_init(&w.arena, s->ctx);
    crdi_map_init(&w.element_map, s->ctx);
    crdi_map_init(&w.hop_map, s->ctx);
    crdi_map_init(&w.units.map, s->ctx);
    crdi_map_init(&w.enumeration_map, s->ctx);
    crdi_map_init(&w.files, s->ctx);
    crd_text_init(&w.ssd, s->ctx);
    crd_text_init(&w.ssv, s->ctx);
    crd_text_init(&w.yaml, s->ctx);
    const crd_status st = write_package(&w);
    clear_writer(&w);
    return st;
}
