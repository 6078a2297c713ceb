// Start values: into a parameter set as far as it can hold them. What it cannot hold (arrays and
// their elements in SSP 1.0, words that only Cardan reads) goes into our annotation, as written.
#include "ssp/write.h"

#include <math.h>
#include <string.h>
#include <strings.h>

// ---- one value ---------------------------------------------------------------------------------

typedef struct number {
    double value;
    const char* unit; // behind the number, "" none
} number;

static bool parse_number(const char* text, number* out)
{
    const size_t digits = crdi_number_prefix(text);
    out->unit = "";
    if (digits && crdi_parse_double(text, digits, &out->value)) {
        out->unit = text + digits + strspn(text + digits, " \t");
        return true;
    }
    return crdi_parse_double(text, strlen(text), &out->value); // INF, NaN
}

static bool write_values_same_value(const char* a, const char* b)
{
    int64_t x = 0, y = 0;
    if (strcmp(a, b) == 0) { return true; }
    return crdi_parse_int64(a, strlen(a), &x) && crdi_parse_int64(b, strlen(b), &y) && x == y;
}

// The number from one unit into the variable's, if both are known and fit.
static bool convert_to_port(const crdi_pack_port* p, const crd_dimension* from, double* x)
{
    crd_dimension to;
    if (!p || !crdi_pack_dimension(p, &to) || !crd_dimension_equal(from, &to)) { return false; }
    const double shift = p->look.relative ? 0 : (from->offset - to.offset) / to.factor;
    *x = from->factor == to.factor ? *x + shift : *x * (from->factor / to.factor) + shift;
    return true;
}

// The unit of a number: the one behind it, else that of the parameter set.
static bool number_dimension(const number* n, const crd_transformation* via, crd_dimension* out)
{
    if (n->unit[0]) { return crd_dimension_parse(n->unit, out); }
    if (!via || !via->convert_units) { return false; }
    if (via->dimension) {
        *out = *via->dimension;
        return true;
    }
    return via->unit && via->unit[0] && crd_dimension_parse(via->unit, out);
}

// One word of a value through the change that a parameter mapping made of it.
static const char* change_word(crdi_pack_writer* w, const crdi_pack_port* p,
                               const crd_transformation* via, const char* word)
{
    number n;
    for (int i = 0; i < via->map_count; i++) {
        if (write_values_same_value(via->map[i].from, word)) { return via->map[i].to; }
    }
    if (via->map_count > 0 || !parse_number(word, &n) || !isfinite(n.value)) { return word; }
    crd_dimension from;
    if (number_dimension(&n, via, &from)) { (void)convert_to_port(p, &from, &n.value); }
    if (via->has_transformation) { n.value = via->gain * n.value + via->offset; }
    return crdi_pack_number_text(w, n.value);
}

// The setting's text with all changes done; NULL: no memory.
static const char* changed(crdi_pack_writer* w, const crdi_pack_port* p, const crd_setting* s)
{
    const crd_transformation* via = s->via;
    if (!via || strchr(s->text, '"')) { return s->text; }
    const bool list = p && p->look.rank > 0;
    if (!list) { return change_word(w, p, via, s->text); }
    const char* all = NULL;
    for (const char* at = s->text; *at;) {
        at += strspn(at, " \t\n");
        const size_t n = strcspn(at, " \t\n");
        if (n == 0) { break; }
        const char* word = crdi_arena_text(&w->arena, at, n);
        word = word ? change_word(w, p, via, word) : NULL;
        all = !word ? NULL : all ? crdi_arena_format(&w->arena, "%s %s", all, word) : word;
        if (!all) { return NULL; }
        at += n;
    }
    return all ? all : "";
}

// ---- what a parameter set can hold -------------------------------------------------------------

typedef struct value {
    const char* element; // Real, Integer ...
    const char* text;    // NULL: it cannot be held
    const char* unit;    // NULL: none
} value;

static bool is_hex(const char* text)
{
    return strlen(text) % 2 == 0 && strspn(text, "0123456789abcdefABCDEF") == strlen(text);
}

static const char* write_values_truth(const char* text)
{
    if (strcasecmp(text, "true") == 0 || strcmp(text, "1") == 0) { return "true"; }
    if (strcasecmp(text, "false") == 0 || strcmp(text, "0") == 0) { return "false"; }
    return NULL;
}

// An item by its name or by its value.
static const char* item_name(const crd_ssp_connector* c, const char* text)
{
    int64_t x = 0;
    const bool by_value = crdi_parse_int64(text, strlen(text), &x);
    for (int i = 0; i < c->item_count; i++) {
        if (strcmp(c->items[i].name, text) == 0) { return text; }
    }
    for (int i = 0; by_value && i < c->item_count; i++) {
        if (c->items[i].value == x) { return c->items[i].name; }
    }
    return NULL;
}

static const char* whole_number_text(const crdi_pack_writer* w, crd_type type, const char* text)
{
    int64_t x = 0;
    uint64_t u = 0;
    const bool wide = w->opt.version == 2 && type != CRD_INT32;
    const size_t length = strlen(text);
    if (wide && type == CRD_UINT64 && crdi_parse_uint64(text, length, &u)) { return text; }
    if (!crdi_parse_int64(text, length, &x) || text[0] == '+') { return NULL; }
    return wide || (x >= INT32_MIN && x <= INT32_MAX) ? text : NULL;
}

// In the variable's unit where that is known: not every tool converts.
static crd_status real_value(crdi_pack_writer* w, crdi_pack_units* units, const crdi_pack_port* p,
                             const char* text, const crd_transformation* via, value* out)
{
    crd_status st = CRD_OK;
    number n;
    crd_dimension from;
    if (!parse_number(text, &n)) { return CRD_OK; }
    const bool known = number_dimension(&n, via, &from);
    if (n.unit[0] && !known) { return CRD_OK; } // a unit that nobody knows
    if (known && convert_to_port(p, &from, &n.value)) {
        CRD_TRY(crdi_pack_add_port_unit(w, units, p, &out->unit));
    } else if (known) {
        CRD_TRY(crdi_pack_add_unit(w, units, n.unit[0] ? n.unit : via->unit, &from, &out->unit));
    }
    // The spelling of XML Schema for what is not finite.
    out->text = isnan(n.value)   ? "NaN"
                : isinf(n.value) ? (n.value < 0 ? "-INF" : "INF")
                                 : crdi_pack_number_text(w, n.value);
    if (!out->text) { return CRD_E_MEMORY; }
fail:
    return st;
}

// Nothing is known of the variable: what the text looks like.
static crd_type write_values_guess(const char* text)
{
    number n;
    return strcasecmp(text, "true") == 0 || strcasecmp(text, "false") == 0 ? CRD_BOOLEAN
           : parse_number(text, &n)                                        ? CRD_FLOAT64
                                                                           : CRD_STRING;
}

static crd_status make_value(crdi_pack_writer* w, crdi_pack_units* units, const crdi_pack_port* p,
                             const char* text, const crd_transformation* via, value* out)
{
    const crd_type type = p && p->typed ? p->look.type : write_values_guess(text);
    *out = (value){.element = crdi_pack_type_name(w, type)};
    switch (type) {
    case CRD_FLOAT64:
    case CRD_FLOAT32:
        return real_value(w, units, p, text, via, out);
    case CRD_BOOLEAN:
        out->text = write_values_truth(text);
        return CRD_OK;
    case CRD_ENUMERATION:
        if (p->look.item_count > 0) {
            out->text = item_name(&p->look, text);
        } else {
            out->element = "Integer";
            out->text = whole_number_text(w, CRD_INT32, text);
        }
        return CRD_OK;
    case CRD_STRING:
        out->text = text;
        return CRD_OK;
    case CRD_BINARY:
        out->text = is_hex(text) ? text : NULL;
        return CRD_OK;
    case CRD_CLOCK:
    case CRD_TYPE_COUNT:
        return CRD_OK;
    default:
        out->text = whole_number_text(w, type, text);
        return CRD_OK;
    }
}

// All elements of an array: SSP 2.0 has lists of numbers and truth values.
static crd_status list_value(crdi_pack_writer* w, crdi_pack_units* units, const crdi_pack_port* p,
                             const char* text, value* out)
{
    uint64_t left = 1;
    for (int i = 0; i < p->look.rank; i++) {
        left = p->look.sizes[i] <= 1 << 20 ? left * p->look.sizes[i] : 0;
        if (left > 1 << 20) { left = 0; }
    }
    crd_text all;
    crd_text_init(&all, w->ctx);
    crd_status st = CRD_OK;
    bool fits = w->opt.version == 2 && left > 0 && p->look.type <= CRD_BOOLEAN;
    for (const char* at = text + strspn(text, " \t\n"); fits && *at && left > 0; left--) {
        const size_t n = strcspn(at, " \t\n");
        const char* word = crdi_arena_text(&w->arena, at, n);
        value v = {0};
        CRD_TRY(word ? make_value(w, units, p, word, NULL, &v) : CRD_E_MEMORY);
        fits = v.text && !v.unit;
        if (fits) { crdi_text_add(&all, "%s%s", all.length ? " " : "", v.text); }
        out->element = v.element;
        at += n + strspn(at + n, " \t\n");
        if (*at && left == 1) { fits = false; } // more than there is room for
    }
    if (fits && left == 0) {
        out->text = all.failed ? NULL : crdi_arena_text(&w->arena, all.data, all.length);
        st = out->text ? CRD_OK : CRD_E_MEMORY;
    }
fail:
    crd_text_clear(&all);
    return st;
}

// ---- all of them -------------------------------------------------------------------------------

static void write_values_put_value(crdi_pack_writer* w, const crdi_pack_part* p,
                                   const crdi_pack_port* port, const char* variable, const value* v)
{
    crdi_xml_writer* x = &w->values_xml;
    const char* name = crdi_arena_format(&w->arena, "%s.%s", p->name, variable);
    crdi_xml_begin(x, "ssv:Parameter");
    crdi_xml_inline(x);
    crdi_xml_put(x, "name", name);
    crdi_xml_begin_in(x, "ssv:", v->element);
    crdi_xml_put(x, "value", v->text);
    if (v->unit) { crdi_xml_put(x, "unit", v->unit); }
    crdi_xml_end(x);
    if (port) { crdi_pack_put_sizes(x, &port->look); }
    crdi_xml_end(x);
    if (!name) { x->out->failed = true; }
    w->values++;
}

// "x" of "x[2]" unless the unit has a variable of this very name; NULL: it is no element.
static const char* array_of(crdi_pack_writer* w, crdi_pack_part* p, const char* variable,
                            bool* fine)
{
    const size_t length = strlen(variable);
    const char* bracket = strrchr(variable, '[');
    *fine = true;
    if (length < 4 || variable[length - 1] != ']' || !bracket || bracket == variable) {
        return NULL;
    }
    const crdi_pack_port* own = crdi_pack_find_port(p, variable);
    if (own && own->typed && !own->element) { return NULL; }
    const char* base = crdi_arena_text(&w->arena, variable, (size_t)(bracket - variable));
    *fine = base != NULL;
    return base;
}

typedef struct plan {
    crd_map last;   // variable -> the setting that counts
    crd_map pieces; // arrays of which single elements are set
} plan;

static crd_status write_values_make_plan(crdi_pack_writer* w, const crd_unit_spec* u,
                                         crdi_pack_part* p, plan* out)
{
    crd_status st = CRD_OK;
    for (int i = u->parameter_count; i-- > 0;) { // from the end: the last one is added
        const char* variable = u->parameters[i].variable;
        bool fine = true;
        CRD_TRY(crdi_map_add(&out->last, variable, i, NULL));
        const char* array = array_of(w, p, variable, &fine);
        if (!fine) { return CRD_E_MEMORY; }
        if (array) { CRD_TRY(crdi_map_add(&out->pieces, array, i, NULL)); }
    }
fail:
    return st;
}

static crd_status keep_rest(crdi_pack_writer* w, crdi_pack_part* p, const crd_setting* s,
                            const char* text)
{
    crd_setting* copy = crdi_arena_new(&w->arena, 1, sizeof *copy);
    if (!copy) { return CRD_E_MEMORY; }
    *copy = *s;
    copy->text = text;
    copy->via = NULL;
    p->rest[p->rest_count++] = copy;
    return CRD_OK;
}

static crd_status one_setting(crdi_pack_writer* w, crdi_pack_units* units, crdi_pack_part* p,
                              const plan* plans, const crd_setting* s)
{
    crd_status st = CRD_OK;
    crdi_pack_port* port = crdi_pack_find_port(p, s->variable);
    bool fine = true;
    const char* array = array_of(w, p, s->variable, &fine);
    if (!fine) { return CRD_E_MEMORY; }
    // Whole arrays and their elements stay in their order, so they stay together.
    const bool pieces = array || crdi_map_find(&plans->pieces, s->variable) >= 0;
    const bool list = port && port->look.rank > 0;
    if (port) { port->used = true; }
    const bool unit_alone = s->via && !s->via->has_transformation && s->via->map_count == 0;
    const char* text = unit_alone && !pieces && !list ? s->text : changed(w, port, s);
    if (!text) { return CRD_E_MEMORY; }
    value v = {0};
    if (!pieces && list) {
        CRD_TRY(list_value(w, units, port, text, &v));
    } else if (!pieces) {
        CRD_TRY(make_value(w, units, port, text, unit_alone ? s->via : NULL, &v));
    }
    if (v.text && v.element) {
        write_values_put_value(w, p, port, s->variable, &v);
        return CRD_OK;
    }
    CRD_TRY(keep_rest(w, p, s, changed(w, port, s)));
fail:
    return st;
}

static crd_status values_of(crdi_pack_writer* w, crdi_pack_units* units, int unit)
{
    crd_status st = CRD_OK;
    const crd_unit_spec* u = &w->s->units[unit];
    crdi_pack_part* p = &w->parts[unit];
    plan plans;
    crdi_map_init(&plans.last, w->ctx);
    crdi_map_init(&plans.pieces, w->ctx);
    p->rest = crdi_arena_new(&w->arena, (size_t)u->parameter_count, sizeof *p->rest);
    CRD_TRY(p->rest ? CRD_OK : CRD_E_MEMORY);
    CRD_TRY(write_values_make_plan(w, u, p, &plans));
    for (int i = 0; i < u->parameter_count; i++) {
        const crd_setting* s = &u->parameters[i];
        if (crdi_map_find(&plans.last, s->variable) != i) { continue; } // a later one wins
        CRD_TRY(one_setting(w, units, p, &plans, s));
    }
fail:
    crdi_map_clear(&plans.last);
    crdi_map_clear(&plans.pieces);
    return st;
}

crd_status crdi_pack_values(crdi_pack_writer* w)
{
    crd_status st = CRD_OK;
    crdi_xml_writer* x = &w->values_xml;
    crdi_pack_units units = {0};
    crdi_map_init(&units.map, w->ctx);
    crdi_pack_begin(w, x, &w->ssv, "ssv:ParameterSet", "ssv", "SystemStructureParameterValues");
    crdi_text_add(x->out, " generationTool=\"Cardan %s\"", crd_version());
    crdi_xml_begin(x, "ssv:Parameters");
    for (int i = 0; i < w->s->unit_count; i++) {
        CRD_TRY(values_of(w, &units, i));
    }
    crdi_xml_end(x);
    crdi_pack_put_units(x, "ssv:Units", &units);
    crdi_xml_end(x);
    w->bad = x->bad;
fail:
    crdi_map_clear(&units.map);
    crd_free(w->ctx, units.items);
    return st;
}
