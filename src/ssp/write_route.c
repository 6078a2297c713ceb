// Connections between units of nested systems: through a connector of each system on the way.
#include "ssp/write.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const crd_transformation nothing = {.unit = "", .gain = 1, .convert_units = true};

// What is known of the unit that a value is in.
typedef struct measure {
    const char* name;
    bool known, relative;
    crd_dimension dimension;
} measure;

static measure measure_of(const crdi_pack_port* p)
{
    measure m = {
        .name = p->look.unit, .known = p->look.has_dimension, .relative = p->look.relative};
    m.dimension = p->look.dimension;
    if (!m.known && m.name[0]) { m.known = crd_dimension_parse(m.name, &m.dimension); }
    return m;
}

static measure measure_behind(const crd_transformation* t)
{
    measure m = {.name = t->unit ? t->unit : "", .known = t->dimension != NULL};
    if (t->dimension) { m.dimension = *t->dimension; }
    if (!m.known && m.name[0]) { m.known = crd_dimension_parse(m.name, &m.dimension); }
    return m;
}

// ---- more changes than connectors on the way ---------------------------------------------------

static const char* mapped(const crd_map_entry* map, int count, const char* text)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(map[i].from, text) == 0) { return map[i].to; }
    }
    return text;
}

// First `a`, then `b`: all values that one of them changes.
static crd_status join_maps(crdi_pack_writer* w, crd_transformation* a, const crd_map_entry* b,
                            int count)
{
    crd_map_entry* all =
        crdi_arena_new(&w->arena, (size_t)a->map_count + (size_t)count, sizeof *all);
    if (!all) { return CRD_E_MEMORY; }
    int n = 0;
    for (int i = 0; i < a->map_count; i++) {
        all[n++] = (crd_map_entry){a->map[i].from, mapped(b, count, a->map[i].to)};
    }
    for (int i = 0; i < count; i++) {
        if (mapped(a->map, a->map_count, b[i].from) == b[i].from) { all[n++] = b[i]; }
    }
    a->map = all;
    a->map_count = n;
    return CRD_OK;
}

static void convert_measure(crd_transformation* t, const measure* a, const measure* b,
                            bool relative)
{
    if (!a->known || !b->known || !crd_dimension_equal(&a->dimension, &b->dimension)) { return; }
    const double factor = a->dimension.factor / b->dimension.factor;
    const double shift =
        relative ? 0 : (a->dimension.offset - b->dimension.offset) / b->dimension.factor;
    t->gain *= factor;
    t->offset = factor * t->offset + shift;
}

static void scale_transformation(crd_transformation* t, double gain, double offset)
{
    t->gain *= gain;
    t->offset = gain * t->offset + offset;
}

// All changes in one: a gain and an offset that stand for the conversion of units too, or one map.
static crd_status compose(crdi_pack_writer* w, const crd_connection_spec* c, measure now,
                          measure last, crd_transformation* out)
{
    crd_status st = CRD_OK;
    *out = (crd_transformation){.unit = "", .gain = 1, .has_transformation = true};
    const bool relative = now.relative || last.relative; // on the whole way
    bool maps = c->map_count > 0; // then units do not count: what is mapped has none
    for (int i = 0; i < c->via_count; i++) {
        maps = maps || c->via[i].map_count > 0;
    }
    for (int i = 0; i < c->via_count; i++) {
        const crd_transformation* t = &c->via[i];
        const measure next = measure_behind(t);
        if (t->map_count > 0) {
            CRD_TRY(join_maps(w, out, t->map, t->map_count));
        } else {
            if (t->convert_units && !maps) { convert_measure(out, &now, &next, relative); }
            if (t->has_transformation) { scale_transformation(out, t->gain, t->offset); }
        }
        if (next.name[0]) { now = next; }
    }
    if (c->map_count > 0) {
        CRD_TRY(join_maps(w, out, c->map, c->map_count));
    } else {
        if (c->convert_units && !maps) { convert_measure(out, &now, &last, relative); }
        if (c->has_transformation) { scale_transformation(out, c->gain, c->offset); }
    }
    const bool linear = out->gain != 1 || out->offset != 0;
    if (maps && linear) {
        return crdi_fail(w->ctx, CRD_E_UNSUPPORTED,
                         "%s: the connection %s.%s -> %s.%s has a map and a gain, and no system "
                         "with a connector in between: SSP has one change per connection",
                         w->path, w->s->units[c->from_unit].name, c->from,
                         w->s->units[c->to_unit].name, c->to);
    }
    if (maps) { out->has_transformation = false; }
    out->convert_units = maps && c->convert_units;
fail:
    return st;
}

// ---- the way -----------------------------------------------------------------------------------

typedef struct stop {
    int element;
    const char* connector;
    const char* indices; // NULL: the whole
} stop;

typedef struct way {
    const crd_connection_spec* c;
    int from, to, top;                                      // elements; the system that holds both
    int up[CRDI_PACK_DEPTH + 1], down[CRDI_PACK_DEPTH + 1]; // systems that are left and entered
    int up_count, down_count;
} way;

static void find_way(const crdi_pack_writer* w, way* r)
{
    const crdi_pack_element* e = w->elements;
    int a = e[r->from].parent, b = e[r->to].parent, n = 0;
    while (a != b) {
        if (e[a].depth >= e[b].depth) {
            r->up[r->up_count++] = a;
            a = e[a].parent;
        } else {
            r->down[n++] = b;
            b = e[b].parent;
        }
    }
    r->top = a;
    r->down_count = n;
    for (int i = 0; i < n / 2; i++) { // the outermost first
        const int swap = r->down[i];
        r->down[i] = r->down[n - 1 - i];
        r->down[n - 1 - i] = swap;
    }
}

// The connector of a system for a variable of a unit inside. A connector that leads the same value
// out already is used again: then *fresh is false.
static crd_status add_hop(crdi_pack_writer* w, int system, const crdi_pack_hop* wanted, bool* fresh,
                          const char** out)
{
    crdi_pack_element* e = &w->elements[system];
    const char* inside = w->parts[wanted->unit].name + (e->path[0] ? strlen(e->path) + 1 : 0);
    char* base = crdi_arena_format(&w->arena, "%s_%s", inside, wanted->variable);
    if (!base) { return CRD_E_MEMORY; }
    for (char* c = base; *c; c++) { // "drive.motor.tau" is to mean one thing
        if (*c == '.') { *c = '_'; }
    }
    for (int i = 1;; i++) {
        const char* name = i == 1 ? base : crdi_arena_format(&w->arena, "%s_%d", base, i);
        const char* key = name ? crdi_arena_format(&w->arena, "%d %s", system, name) : NULL;
        if (!key) { return CRD_E_MEMORY; }
        const int found = crdi_map_find(&w->hop_map, key);
        if (found >= 0) {
            const crdi_pack_hop* h = &w->hops[found];
            if (!h->plain || !wanted->plain || h->output != wanted->output ||
                h->unit != wanted->unit || strcmp(h->variable, wanted->variable) != 0) {
                continue;
            }
            *fresh = false;
            *out = name;
            return CRD_OK;
        }
        const crd_status st = crdi_map_add(&w->hop_map, key, w->hop_count, NULL);
        if (st < 0) { return st; }
        crdi_pack_hop* grown =
            crdi_grow(w->ctx, w->hops, &w->hop_capacity, (size_t)w->hop_count + 1, sizeof *grown);
        if (!grown) { return CRD_E_MEMORY; }
        w->hops = grown;
        crdi_pack_hop* h = &w->hops[w->hop_count];
        *h = *wanted;
        h->port.look.name = name;
        h->next = -1;
        if (e->last_hop >= 0) {
            w->hops[e->last_hop].next = w->hop_count;
        } else {
            e->first_hop = w->hop_count;
        }
        e->last_hop = w->hop_count++;
        *fresh = true;
        *out = name;
        return CRD_OK;
    }
}

static crd_status add_link(crdi_pack_writer* w, int system, const stop* a, const stop* b,
                           const crd_transformation* change)
{
    crdi_pack_link* grown =
        crdi_grow(w->ctx, w->links, &w->link_capacity, (size_t)w->link_count + 1, sizeof *grown);
    if (!grown) { return CRD_E_MEMORY; }
    w->links = grown;
    crdi_pack_element* e = &w->elements[system];
    w->links[w->link_count] = (crdi_pack_link){
        .start_element = a->element == system ? NULL : w->elements[a->element].name,
        .start = a->connector,
        .start_indices = a->indices,
        .end_element = b->element == system ? NULL : w->elements[b->element].name,
        .end = b->connector,
        .end_indices = b->indices,
        .change = *change,
        .next = -1};
    if (e->last_link >= 0) {
        w->links[e->last_link].next = w->link_count;
    } else {
        e->first_link = w->link_count;
    }
    e->last_link = w->link_count++;
    return CRD_OK;
}

// The look of a connector behind a change: its unit, and its type unless a map may have changed it.
static void look_behind(const crd_transformation* t, crdi_pack_port* p)
{
    if (t->map_count > 0) { p->typed = false; }
    if (t == &nothing) { return; }
    const measure m = measure_behind(t);
    if (!m.name[0]) { return; }
    p->look.unit = m.name;
    p->look.has_dimension = m.known;
    p->look.dimension = m.dimension;
}

// "x[2,3]" becomes the connector x with the indices "2 3" where SSP has a word for that.
static crd_status name_stop(crdi_pack_writer* w, const crdi_pack_port* p, stop* out)
{
    out->connector = p->look.name;
    if (!p->element || w->opt.version == 1) { return CRD_OK; }
    const char* bracket = strrchr(p->look.name, '[');
    char* indices = crdi_arena_text(&w->arena, bracket + 1, strcspn(bracket + 1, "]"));
    out->connector = crdi_arena_text(&w->arena, p->look.name, (size_t)(bracket - p->look.name));
    if (!indices || !out->connector) { return CRD_E_MEMORY; }
    for (char* c = indices; *c; c++) {
        if (*c == ',') { *c = ' '; }
    }
    out->indices = indices;
    return CRD_OK;
}

// One connector of a system after the other, each change of the connection on one piece of the way
// and the last one on the last piece. Between two changes nothing happens.
static crd_status route_through_systems(crdi_pack_writer* w, const way* r, crdi_pack_port look,
                                        stop end, const crd_transformation* last, int via_count)
{
    crd_status st = CRD_OK;
    const crd_connection_spec* c = r->c;
    stop at = {.element = r->from};
    CRD_TRY(name_stop(w, &look, &at));
    look.element = false; // a value of its own from here on
    int via = 0;
    const int hops = r->up_count + r->down_count;
    for (int i = 0; i < hops; i++) {
        const bool output = i < r->up_count;
        const int system = output ? r->up[i] : r->down[i - r->up_count];
        const crd_transformation* t = via < via_count ? &c->via[via++] : &nothing;
        look_behind(t, &look);
        crdi_pack_hop wanted = {.port = look,
                                .unit = output ? c->from_unit : c->to_unit,
                                .variable = output ? c->from : c->to,
                                .output = output,
                                .plain = output && via_count == 0};
        stop to = {.element = system};
        bool fresh = false;
        CRD_TRY(add_hop(w, system, &wanted, &fresh, &to.connector));
        // Inside the system that is left, inside the one that holds both, inside the one entered.
        const int inside = output ? system : i == r->up_count ? r->top : at.element;
        if (fresh) { CRD_TRY(add_link(w, inside, &at, &to, t)); }
        at = to;
    }
    CRD_TRY(add_link(w, r->down_count > 0 ? at.element : r->top, &at, &end, last));
fail:
    return st;
}

static crd_status route_one(crdi_pack_writer* w, const crd_connection_spec* c)
{
    crd_status st = CRD_OK;
    const crdi_pack_port* from = crdi_pack_port_of(w, c->from_unit, c->from, true);
    if (!from) { return CRD_E_MEMORY; }
    const crdi_pack_port look = *from; // the next call may move it
    const crdi_pack_port* to = crdi_pack_port_of(w, c->to_unit, c->to, false);
    if (!to) { return CRD_E_MEMORY; }
    way r = {.c = c, .from = w->parts[c->from_unit].element, .to = w->parts[c->to_unit].element};
    find_way(w, &r);
    stop end = {.element = r.to};
    CRD_TRY(name_stop(w, to, &end));
    crd_transformation last = {.unit = "",
                               .gain = c->gain,
                               .offset = c->offset,
                               .has_transformation = c->has_transformation,
                               .convert_units = c->convert_units,
                               .map = c->map,
                               .map_count = c->map_count};
    int via_count = c->via_count;
    if (via_count > r.up_count + r.down_count) {
        CRD_TRY(compose(w, c, measure_of(&look), measure_of(to), &last));
        via_count = 0;
    }
    CRD_TRY(route_through_systems(w, &r, look, end, &last, via_count));
fail:
    return st;
}

crd_status crdi_pack_route(crdi_pack_writer* w)
{
    for (int i = 0; i < w->s->connection_count; i++) {
        const crd_status st = route_one(w, &w->s->connections[i]);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

// ---- XML ---------------------------------------------------------------------------------------

static bool is_truth(const char* text)
{
    return strcmp(text, "true") == 0 || strcmp(text, "false") == 0;
}

static bool is_whole(const char* text)
{
    int64_t x = 0; // SSP 1.0 has 32 bits
    return crdi_parse_int64(text, strlen(text), &x) && x >= INT32_MIN && x <= INT32_MAX;
}

static const char* map_element(const crd_transformation* t)
{
    bool truth = true, whole = true;
    for (int i = 0; i < t->map_count; i++) {
        truth = truth && is_truth(t->map[i].from) && is_truth(t->map[i].to);
        whole = whole && is_whole(t->map[i].from) && is_whole(t->map[i].to);
    }
    return truth   ? "BooleanMappingTransformation"
           : whole ? "IntegerMappingTransformation"
                   : "EnumerationMappingTransformation";
}

void crdi_pack_put_link(crdi_xml_writer* x, const crdi_pack_link* l)
{
    const crd_transformation* change = &l->change;
    crdi_xml_begin(x, "ssd:Connection");
    if (l->start_element) { crdi_xml_put(x, "startElement", l->start_element); }
    crdi_xml_put(x, "startConnector", l->start);
    if (l->start_indices) { crdi_xml_put(x, "startIndices", l->start_indices); }
    if (l->end_element) { crdi_xml_put(x, "endElement", l->end_element); }
    crdi_xml_put(x, "endConnector", l->end);
    if (l->end_indices) { crdi_xml_put(x, "endIndices", l->end_indices); }
    if (!change->convert_units) { crdi_xml_put_bool(x, "suppressUnitConversion", true); }
    if (change->map_count > 0) {
        crdi_xml_begin_in(x, "ssc:", map_element(change));
        for (int i = 0; i < change->map_count; i++) {
            crdi_xml_begin(x, "ssc:MapEntry");
            crdi_xml_put(x, "source", change->map[i].from);
            crdi_xml_put(x, "target", change->map[i].to);
            crdi_xml_end(x);
        }
        crdi_xml_end(x);
    } else if (change->has_transformation) {
        crdi_xml_begin(x, "ssc:LinearTransformation");
        crdi_xml_put_real(x, "factor", change->gain);
        crdi_xml_put_real(x, "offset", change->offset);
        crdi_xml_end(x);
    }
    crdi_xml_end(x);
}
