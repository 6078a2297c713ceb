// Which variables of the units are served, under which names, and what they start with.
#include "serve/serve.h"
#include "shared/unit.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- types -------------------------------------------------------------------------------------

static const uint8_t dcp_types[CRD_TYPE_COUNT] = {
    [CRD_FLOAT64] = CRD_DCP_FLOAT64, [CRD_FLOAT32] = CRD_DCP_FLOAT32,
    [CRD_INT8] = CRD_DCP_INT8,       [CRD_UINT8] = CRD_DCP_UINT8,
    [CRD_INT16] = CRD_DCP_INT16,     [CRD_UINT16] = CRD_DCP_UINT16,
    [CRD_INT32] = CRD_DCP_INT32,     [CRD_UINT32] = CRD_DCP_UINT32,
    [CRD_INT64] = CRD_DCP_INT64,     [CRD_UINT64] = CRD_DCP_UINT64,
    [CRD_BOOLEAN] = CRD_DCP_UINT8,   [CRD_ENUMERATION] = CRD_DCP_INT64,
    [CRD_STRING] = CRD_DCP_STRING,   [CRD_BINARY] = CRD_DCP_BINARY,
};

// Enumerations have 32 bits in FMI 2.
static uint8_t outlet_type(const crd_unit* u, const crd_variable* v)
{
    if (v->type == CRD_ENUMERATION && strncmp(u->info.kind, "FMU 2", 5) == 0) {
        return CRD_DCP_INT32;
    }
    return dcp_types[v->type];
}

// Whether DCP can carry it, and a master has something from it.
static bool is_served(const crd_variable* v, bool connected)
{
    if (v->type == CRD_CLOCK || v->size == 0 || v->rank > 8) { return false; }
    switch (v->causality) {
    case CRD_INPUT:
        return !connected && v->alias_of < 0;
    case CRD_OUTPUT:
        return true;
    case CRD_PARAMETER:
        return v->alias_of < 0 && v->variability != CRD_CONSTANT;
    case CRD_STRUCTURAL_PARAMETER: {
        // DCP has none that are arrays, signed, or 0.
        uint64_t start = 0;
        return v->rank == 0 && v->start && crdi_parse_uint64(v->start, strlen(v->start), &start) &&
               start > 0 &&
               (v->type == CRD_UINT64 || v->type == CRD_UINT32 || v->type == CRD_UINT16 ||
                v->type == CRD_UINT8);
    }
    default:
        return false;
    }
}

// ---- the list ----------------------------------------------------------------------------------

typedef struct lister {
    crdi_serve* s;
    crd_map names;
    size_t capacity;
    bool* connected; // of the unit at hand
    size_t connected_capacity;
    int left_out; // clocks, and what has a name that is taken
} lister;

// The connector of an SSP that leads to this variable, alone and without a change; NULL.
static const char* connector_of(const crdi_serve* s, int unit, const crd_variable* v)
{
    for (const crd_port* p = s->sys->ports; p; p = p->next) {
        if (p->unit != unit || strcmp(p->variable, v->name) != 0) { continue; }
        bool plain = true;
        for (int i = 0; i < p->stage_count; i++) {
            const crd_transformation* t = &p->stages[i];
            const bool same = !t->unit || !t->unit[0] || strcmp(t->unit, v->unit) == 0;
            plain = plain && same && t->map_count == 0 && t->gain == 1 && t->offset == 0;
        }
        for (const crd_port* q = s->sys->ports; q && plain; q = q->next) {
            plain = q == p || strcmp(q->name, p->name) != 0;
        }
        if (plain) { return p->name; }
    }
    return NULL;
}

// "variable[2]" of a single FMU, the connector's name, else "unit.variable[2]".
static const char* name_outlet(crdi_serve* s, int unit, const crd_variable* v, int32_t element)
{
    const char* connector = v->causality == CRD_OUTPUT ? NULL : connector_of(s, unit, v);
    const bool alone = s->sys->single || connector;
    char index[16] = "";
    if (element >= 0) { snprintf(index, sizeof index, "[%d]", element + 1); }
    return crdi_arena_format(&s->arena, "%s%s%s%s", alone ? "" : s->sys->units[unit].name,
                             alone ? "" : ".", connector ? connector : v->name, index);
}

static crd_status add_outlet(lister* l, int unit, int32_t variable, int32_t element, int32_t head)
{
    crdi_serve* s = l->s;
    const crd_unit* u = s->stations[unit].unit;
    const crd_variable* v = &u->info.variables[variable];
    crdi_outlet* outlets =
        crdi_grow(s->ctx, s->outlets, &l->capacity, (size_t)s->outlet_count + 1, sizeof *outlets);
    if (!outlets) { return CRD_E_MEMORY; }
    s->outlets = outlets;
    const char* name = name_outlet(s, unit, v, element);
    const char* own = crdi_arena_text(&s->arena, v->name, strlen(v->name));
    bool fresh = false;
    if (!name || !own) { return CRD_E_MEMORY; }
    const crd_status st = crdi_map_add(&l->names, name, s->outlet_count, &fresh);
    if (st < 0) { return st; }
    if (!fresh) {
        l->left_out++;
        crdi_log(s->ctx, CRD_LOG_WARNING, "'%s' is not served: another variable has this name",
                 name);
        return CRD_OK;
    }
    outlets[s->outlet_count] = (crdi_outlet){
        .unit = unit,
        .variable = variable,
        .element = element,
        .name = name,
        .own_name = own,
        .causality = v->causality,
        .variability = v->variability,
        .type = outlet_type(u, v),
        .kind = crd_type_kind((crd_type)v->type),
        .size = element >= 0 ? 1 : v->size,
        .head = head >= 0 ? head : s->outlet_count,
        .used = true,
        .given = -1,
    };
    s->outlet_count++;
    return CRD_OK;
}

static crd_status ports_add_variable(lister* l, int unit, int32_t variable)
{
    const crd_unit* u = l->s->stations[unit].unit;
    const crd_variable* v = &u->info.variables[variable];
    const bool split = v->rank > 0 && crd_type_kind((crd_type)v->type) == CRD_BYTES;
    if (!split) { return add_outlet(l, unit, variable, -1, -1); }
    const int32_t head = l->s->outlet_count;
    for (uint32_t i = 0; i < v->size; i++) {
        const crd_status st = add_outlet(l, unit, variable, (int32_t)i, i ? head : -1);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

// The inputs of a unit that have a source in the system, all of an array if one element has.
static crd_status mark_connected(lister* l, int unit)
{
    crdi_serve* s = l->s;
    const size_t n = (size_t)s->stations[unit].unit->info.variable_count;
    if (n > l->connected_capacity) {
        bool* grown = crdi_grow(s->ctx, l->connected, &l->connected_capacity, n, sizeof *grown);
        if (!grown) { return CRD_E_MEMORY; }
        l->connected = grown;
    }
    memset(l->connected, 0, l->connected_capacity);
    for (int i = 0; s->master && i < crd_master_link_count(s->master); i++) {
        const crd_master_link k = crd_master_get_link(s->master, i);
        if (k.to_unit == unit) { l->connected[k.to_variable] = true; }
    }
    return CRD_OK;
}

static crd_status list_unit(lister* l, int unit)
{
    const crd_unit* u = l->s->stations[unit].unit;
    crd_status st = mark_connected(l, unit);
    for (int32_t i = 0; st == CRD_OK && i < u->info.variable_count; i++) {
        const crd_variable* v = &u->info.variables[i];
        if (v->type == CRD_CLOCK && v->causality != CRD_LOCAL) { l->left_out++; }
        if (is_served(v, l->connected[i])) { st = ports_add_variable(l, unit, i); }
    }
    return st;
}

// What the description of the system says about the variables of a unit: texts by variable.
static crd_status read_settings(crdi_serve* s, crdi_station* p)
{
    crd_unit* u = p->unit;
    crd_status st = CRD_OK;
    crd_text value, start;
    crd_text_init(&value, s->ctx);
    crd_text_init(&start, s->ctx);
    p->settings = crdi_arena_new(&s->arena, (size_t)u->info.variable_count, sizeof *p->settings);
    if (!p->settings) { CRD_TRY(CRD_E_MEMORY); }
    for (int32_t k = 0; k < crd_unit_setting_count(u); k++) {
        int32_t variable = 0;
        bool differs = false;
        value.length = start.length = 0;
        CRD_TRY(crd_unit_describe_setting(u, k, &variable, &differs, &value, &start));
        const char* text = crdi_arena_text(&s->arena, value.data, value.length);
        if (!text) { CRD_TRY(CRD_E_MEMORY); }
        p->settings[variable] = text;
    }
fail:
    crd_text_clear(&value);
    crd_text_clear(&start);
    return st;
}

// The FMU's own value references if they can serve, as DCP wants them: different, and small enough
// for all masters. Else they are counted.
static crd_status number_outlets(crdi_serve* s)
{
    crd_map seen;
    crdi_map_init(&seen, s->ctx);
    crd_status st = CRD_OK;
    bool own = s->one;
    for (int i = 0; i < s->outlet_count && own; i++) {
        const crdi_outlet* o = &s->outlets[i];
        const uint32_t vr = s->stations[0].unit->info.variables[o->variable].reference;
        const char* key = crdi_arena_format(&s->arena, "%u", vr);
        if (!key) { CRD_TRY(CRD_E_MEMORY); }
        bool fresh = false;
        CRD_TRY(crdi_map_add(&seen, key, 0, &fresh));
        own = fresh && vr <= INT32_MAX;
    }
    for (int i = 0; i < s->outlet_count; i++) {
        crdi_outlet* o = &s->outlets[i];
        o->vr = own ? s->stations[0].unit->info.variables[o->variable].reference : (uint64_t)i + 1;
    }
fail:
    crdi_map_clear(&seen);
    return st;
}

crd_status crdi_serve_list(crdi_serve* s)
{
    crd_status st = CRD_OK;
    lister l = {.s = s};
    crdi_map_init(&l.names, s->ctx);
    for (int i = 0; i < s->unit_count; i++) {
        CRD_TRY(read_settings(s, &s->stations[i]));
        CRD_TRY(list_unit(&l, i));
    }
    if (s->outlet_count == 0) {
        st = crdi_fail(s->ctx, CRD_E_UNSUPPORTED,
                       "there is nothing to serve: no input, output or parameter");
        goto fail;
    }
    CRD_TRY(number_outlets(s));
fail:
    crd_free(s->ctx, l.connected);
    crdi_map_clear(&l.names);
    return st;
}

// ---- start values ------------------------------------------------------------------------------

static void put_element(crd_text* t, const crd_variable* v, double real, int64_t integer)
{
    if (t->length) { crdi_text_put(t, " ", 1); }
    if (crd_type_kind((crd_type)v->type) == CRD_REAL) {
        crdi_text_json_number(t, real);
    } else if (v->type == CRD_BOOLEAN) {
        crdi_text_add(t, "%d", integer != 0);
    } else if (v->type == CRD_UINT64) {
        crdi_text_add(t, "%llu", (unsigned long long)integer);
    } else {
        crdi_text_add(t, "%lld", (long long)integer);
    }
}

// As many numbers as there are elements; the last one again where the list is over.
static crd_status put_elements(crdi_serve* s, crd_unit* u, const crdi_outlet* o, const char* list,
                               crd_text* t)
{
    const crd_variable* v = &u->info.variables[o->variable];
    const char* at = list ? list : "";
    double real = 0;
    int64_t integer = 0;
    for (uint32_t i = 0; i < o->size; i++) {
        at += strspn(at, " \t\r\n");
        const size_t n = strcspn(at, " \t\r\n");
        if (n > 0) {
            char* word = crdi_new(s->ctx, n + 1);
            if (!word) { return CRD_E_MEMORY; }
            memcpy(word, at, n);
            const crd_status st = crdi_unit_parse_one(u, o->variable, word, &real, &integer);
            crd_free(s->ctx, word);
            if (st == CRD_E_MEMORY) { return st; }
            if (st < 0 || !isfinite(real)) {
                crdi_log(s->ctx, CRD_LOG_WARNING,
                         "'%s' starts with '%.40s', which DCP cannot say: its description has 0",
                         o->name, at);
                real = 0;
                integer = 0;
            }
            at += n;
        }
        put_element(t, v, real, integer);
    }
    return CRD_OK;
}

// Element k of texts in a row. Start values end each with a zero; of settings strings stand in
// quotes, and blanks are between them.
static const char* text_element(const char* list, bool given, bool quoted, int32_t k,
                                size_t* length)
{
    const char* const between = quoted ? "\" \"" : " ";
    const char* at = list + (given && quoted && *list == '"');
    for (; k > 0; k--) {
        const char* next = given ? strstr(at, between) : at + strlen(at);
        if (!next) { break; }
        at = next + (given ? strlen(between) : 1);
    }
    const char* end = given ? strstr(at, between) : NULL;
    *length = end ? (size_t)(end - at) : strlen(at);
    if (!end && given && quoted && *length && at[*length - 1] == '"') { --*length; }
    return at;
}

// As it may stand in the document, and no longer than there is room.
static void put_start_text(crdi_serve* s, const crdi_outlet* o, const char* text, size_t length,
                           crd_text* t)
{
    const size_t digits = strspn(text, "0123456789abcdefABCDEF");
    const bool bytes = o->type == CRD_DCP_BINARY;
    bool good = bytes ? digits >= length && length % 2 == 0 : true;
    for (size_t i = 0, n = 1; i < length && good; i += n) {
        n = crdi_dcp_utf8(text + i);
        good = n > 0 && ((unsigned char)text[i] >= 0x20 || text[i] == '\t' || text[i] == '\n');
    }
    if (good && (bytes ? length / 2 : length) <= s->opt.max_text) {
        crdi_text_put(t, text, length);
        return;
    }
    crdi_text_put(t, "", 0);
    crdi_log(s->ctx, CRD_LOG_WARNING,
             "'%s' starts with a text that its description cannot have (%s): it has none there",
             o->name, good ? "longer than maxSize" : "not plain");
}

crd_status crdi_serve_start_text(crdi_serve* s, const crdi_outlet* o, crd_arena* a,
                                 const char** out)
{
    crd_status st = CRD_OK;
    crd_unit* u = s->stations[o->unit].unit;
    const crd_variable* v = &u->info.variables[o->variable];
    const char* given = s->stations[o->unit].settings[v->alias_of < 0 ? o->variable : v->alias_of];
    const char* source = given ? given : v->start;
    crd_text t;
    crd_text_init(&t, s->ctx);
    if (o->kind != CRD_BYTES) {
        CRD_TRY(put_elements(s, u, o, source, &t));
    } else if (source) {
        size_t length = strlen(source);
        const char* text = source;
        if (o->element >= 0) {
            text = text_element(source, given != NULL, v->type == CRD_STRING, o->element, &length);
        }
        put_start_text(s, o, text, length, &t);
    }
    *out = crdi_arena_text(a, t.data ? t.data : "", t.length);
    if (t.failed || !*out) { st = CRD_E_MEMORY; }
fail:
    crd_text_clear(&t);
    return st;
}
