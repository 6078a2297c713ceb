// connections: an arrow or a mapping each; what a system below connects already gets the options.
#include "shared/base_findings.h"
#include "system/read.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct connection_draft {
    crd_connection_spec spec;
    const char *from, *to;
} connection_draft;

enum {
    C_FROM,
    C_TO,
    C_GAIN,
    C_OFFSET,
    C_MAP,
    C_PREDICT,
    C_SCALE,
    C_TOLERANCE,
    C_COUPLING,
    C_CONVERT_UNITS
};

static crd_status read_map(crdi_reader* r, const crdi_node* n, void* out);

static const crdi_key connection_keys[] = {
    [C_FROM] = {KEY("from", TEXT, connection_draft, from), .required = true},
    [C_TO] = {KEY("to", TEXT, connection_draft, to), .required = true},
    [C_GAIN] = {KEY("gain", NUMBER, connection_draft, spec.gain)},
    [C_OFFSET] = {KEY("offset", NUMBER, connection_draft, spec.offset)},
    [C_MAP] = {KEY("map", OWN, connection_draft, spec), .read = read_map},
    [C_PREDICT] = {KEY("predict", CHOICE, connection_draft, spec.predict),
                   .choices = crdi_predictions},
    [C_SCALE] = {KEY("scale", NUMBER, connection_draft, spec.scale), .range = CRDI_POSITIVE},
    [C_TOLERANCE] = {KEY("tolerance", NUMBER, connection_draft, spec.tolerance),
                     .range = CRDI_POSITIVE},
    [C_COUPLING] = {KEY("coupling", OWN, connection_draft, spec.coupling),
                    .read = crdi_read_coupling},
    [C_CONVERT_UNITS] = {KEY("convert_units", BOOL, connection_draft, spec.convert_units)},
};

const crdi_table crdi_connection_table = {"connection", connection_keys, COUNT(connection_keys)};

// "a.b -> c.d"
static crd_status read_arrow(crdi_reader* r, const crdi_node* n, connection_draft* d)
{
    const crd_status st = crd_system_arrow(r->arena, n->text, &d->from, &d->to);
    return st == CRD_E_FORMAT
               ? crdi_read_fail(r, st, n->line, "'%s', expected unit.output -> unit.input",
                                crdi_clip(n->text).text)
               : st;
}

static crd_status read_map(crdi_reader* r, const crdi_node* n, void* out)
{
    crd_status st = CRD_OK;
    crd_connection_spec* c = out;
    CRD_TRY(crdi_expect_kind(r, n, CRDI_MAPPING, "a mapping such as { off: 0, slow: 1 }"));
    if (n->count == 0) {
        return crdi_read_fail(r, CRD_E_FORMAT, n->line, "an empty mapping, expected values");
    }
    crd_map_entry* map = crdi_arena_new(r->arena, (size_t)n->count, sizeof *map);
    if (!map) { return CRD_E_MEMORY; }
    int i = 0;
    for (const crdi_node* m = n->first; m; m = m->next, i++) {
        if (m->key[0] == 0) {
            return crdi_read_fail(r, CRD_E_FORMAT, m->line,
                                  "an empty text, expected a value such as true, 3 or an item");
        }
        const size_t inner = crdi_path_enter(r, m->key);
        CRD_TRY(crdi_read_text(r, m, &map[i].to));
        map[i].from = crdi_arena_text(r->arena, m->key, strlen(m->key));
        if (!map[i].from) { return CRD_E_MEMORY; }
        crdi_path_leave(r, inner);
    }
    c->map = map;
    c->map_count = i;
fail:
    return st;
}

// The keys of one connection; `*given` as by crdi_read_mapping.
static crd_status read_connection_keys(crdi_reader* r, const crdi_node* n, connection_draft* d,
                                       uint64_t* given)
{
    crd_status st = CRD_OK;
    crd_connection_spec* c = &d->spec;
    if (n->kind == CRDI_SCALAR && !crdi_node_empty(n)) { return read_arrow(r, n, d); }
    CRD_TRY(crdi_read_mapping(r, n, &crdi_connection_table, d, given));
    c->has_transformation = (*given & (BIT(C_GAIN) | BIT(C_OFFSET))) != 0;
    for (int i = C_PREDICT; c->coupling && i <= C_TOLERANCE; i++) {
        if (*given & BIT(i)) {
            const char* key = connection_keys[i].name;
            return crdi_read_fail(r, CRD_E_FORMAT, crdi_line_of(n, key),
                                  "coupling and %s, expected one of them: the coupling element "
                                  "predicts by itself",
                                  key);
        }
    }
    if (c->map_count && c->has_transformation) {
        return crdi_read_fail(r, CRD_E_FORMAT, crdi_line_of(n, "map"),
                              "map and gain or offset, expected map alone");
    }
fail:
    return st;
}

// A connection of the system below gets the options that were given here; a map and gain and
// offset take each other's place.
static void amend_connection(crd_connection_spec* old, const crd_connection_spec* c, uint64_t given)
{
    if (given & (BIT(C_GAIN) | BIT(C_OFFSET) | BIT(C_MAP))) {
        if (given & BIT(C_MAP) || old->map_count) { old->gain = 1, old->offset = 0; }
        if (given & BIT(C_GAIN)) { old->gain = c->gain; }
        if (given & BIT(C_OFFSET)) { old->offset = c->offset; }
        old->has_transformation = c->has_transformation;
        old->map = c->map;
        old->map_count = c->map_count;
    }
    if (given & BIT(C_PREDICT)) { old->predict = c->predict; }
    if (given & BIT(C_SCALE)) { old->scale = c->scale; }
    if (given & BIT(C_TOLERANCE)) { old->tolerance = c->tolerance; }
    if (given & BIT(C_PREDICT)) { old->coupling = NULL; } // they take each other's place
    if (given & BIT(C_COUPLING)) {
        old->coupling = c->coupling;
        old->scale = old->tolerance = NAN;
    }
    if (given & BIT(C_CONVERT_UNITS)) { old->convert_units = c->convert_units; }
    old->place = c->place;
}

// Texts of inputs -> index of the connection that drives them.
typedef struct driven {
    crd_map inputs;
    bool* amended; // by this text (base_connections)
} driven;

static crd_status second_driver(crdi_reader* r, const crdi_node* n, const crd_system* s,
                                const char* to, const crd_connection_spec* first)
{
    char where[320];
    if (strcmp(first->place.file, r->file) == 0 && first->place.line > 0) {
        snprintf(where, sizeof where, " in line %d", first->place.line);
    } else if (first->place.file[0]) {
        const crdi_where place = crdi_place_text(first->place);
        snprintf(where, sizeof where, " in %.*s", (int)strlen(place.text) - 2, place.text);
    } else {
        where[0] = 0;
    }
    return crdi_read_fail(r, CRD_E_RANGE, n->line,
                          "'%s' gets its value from %s.%s%s already, expected one source for an "
                          "input",
                          crdi_clip(to).text, crdi_clip(s->units[first->from_unit].name).text,
                          crdi_clip(first->from).text, where);
}

static crd_status read_connection(crdi_reader* r, const crdi_node* n, crd_system* s, driven* map)
{
    crd_status st = CRD_OK;
    connection_draft d = {.spec = crd_connection_spec_defaults()};
    crd_connection_spec* c = &d.spec;
    c->predict = s->run.predict;
    c->place = (crd_place){r->file, n->line};
    uint64_t given = 0;
    const crd_status keys = read_connection_keys(r, n, &d, &given);
    if (keys < 0 && (!d.from || !d.to)) { return keys; }
    CRD_TRY(crdi_go_on(r->ctx, keys));
    if (keys < 0) { // noted: its ends and its element are looked at, not what follows from keys
        const crd_connection_spec said = *c;
        *c = crd_connection_spec_defaults();
        c->place = said.place;
        c->coupling = said.coupling;
        c->convert_units = false;
    }
    const crd_status from = crd_system_split(s, d.from, c->place, &c->from_unit, &c->from);
    CRD_TRY(crdi_go_on(r->ctx, from));
    CRD_TRY(crd_system_split(s, d.to, c->place, &c->to_unit, &c->to));
    if (from < 0) { return from; }
    bool fresh = false;
    CRD_TRY(crdi_map_add(&map->inputs, d.to, s->connection_count, &fresh));
    if (fresh) {
        s->connections[s->connection_count++] = *c; // room for all was made before
        return CRD_OK;
    }
    const int index = crdi_map_find(&map->inputs, d.to);
    crd_connection_spec* first = &s->connections[index];
    const bool below = index < r->base_connections && !map->amended[index];
    if (!below || first->from_unit != c->from_unit || strcmp(first->from, c->from) != 0) {
        return second_driver(r, n, s, d.to, first);
    }
    for (int i = C_SCALE; i <= C_TOLERANCE; i++) {
        if (given & BIT(i) && !(given & BIT(C_PREDICT)) && first->coupling) {
            const char* key = connection_keys[i].name;
            return crdi_read_fail(r, CRD_E_FORMAT, crdi_line_of(n, key),
                                  "%s: the connection has a coupling, expected predict beside it, "
                                  "which takes its place",
                                  key);
        }
    }
    map->amended[index] = true;
    amend_connection(first, c, given);
fail:
    return st;
}

// What the system below connects.
static crd_status start_driven(crdi_reader* r, const crd_system* s, driven* map, int more)
{
    const int before = r->base_connections;
    crd_status st = crdi_map_reserve(&map->inputs, (size_t)before + (size_t)more);
    map->amended = crdi_arena_new(r->scratch, (size_t)before, sizeof *map->amended);
    if (!map->amended) { return CRD_E_MEMORY; }
    for (int i = 0; i < before && st >= 0; i++) {
        const crd_connection_spec* c = &s->connections[i];
        const char* text = crdi_arena_format(r->scratch, "%s.%s", s->units[c->to_unit].name, c->to);
        st = text ? crdi_map_add(&map->inputs, text, i, NULL) : CRD_E_MEMORY;
    }
    return st;
}

crd_status crdi_read_connections(crdi_reader* r, const crdi_node* n, crd_system* s)
{
    crd_status st = CRD_OK;
    driven map = {0};
    crdi_map_init(&map.inputs, r->ctx);
    const size_t mark = crdi_path_enter(r, "connections");
    if (crdi_node_empty(n)) { // all that there are stand behind a #
        crdi_path_leave(r, mark);
        goto fail;
    }
    CRD_TRY(crdi_expect_kind(r, n, CRDI_LIST,
                             "a list such as [a.y -> b.u] or of mappings with from and to"));
    CRD_TRY(start_driven(r, s, &map, n->count));
    crd_connection_spec* grown =
        crdi_grow(s->ctx, s->connections, &s->connection_capacity,
                  (size_t)s->connection_count + (size_t)n->count, sizeof *grown);
    if (!grown) { CRD_TRY(CRD_E_MEMORY); }
    s->connections = grown;
    int i = 0;
    for (const crdi_node* m = n->first; m; m = m->next) {
        const size_t inner = crdi_path_enter_item(r, i++);
        CRD_TRY(crdi_go_on(r->ctx, read_connection(r, m, s, &map)));
        crdi_path_leave(r, inner);
    }
    crdi_path_leave(r, mark);
fail:
    crdi_map_clear(&map.inputs);
    return st;
}
