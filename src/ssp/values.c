// Units, transformations, parameter sets: what they say as numbers and texts.
#include "shared/base_names.h"
#include "ssp/read.h"

#include <math.h>
#include <string.h>

const char* crdi_ssp_keep(crdi_ssp_reader* r, const char* text)
{
    return text[0] ? crdi_arena_text(&r->s->arena, text, strlen(text)) : "";
}

// The schema check has been here: the numbers are ones, apart from white space around them.
static double number_attribute(const crdi_xml_element* e, const char* name, double otherwise)
{
    const char* text = crdi_xml_get(e, name);
    if (!text) { return otherwise; }
    text += strspn(text, " \t\r\n+");
    double x = otherwise;
    (void)crdi_parse_double(text, strcspn(text, " \t\r\n"), &x);
    return x;
}

static bool ssp_values_truth(const char* text)
{
    if (!text) { return false; }
    text += strspn(text, " \t\r\n");
    return *text == '1' || *text == 't';
}

// ---- units -------------------------------------------------------------------------------------

static crd_dimension read_dimension(const crdi_xml_element* base)
{
    crd_dimension d = {.factor = number_attribute(base, "factor", 1),
                       .offset = number_attribute(base, "offset", 0)};
    for (int i = 0; i < CRDI_BASE_UNITS; i++) {
        *crdi_exponent(&d, i) = (int8_t)number_attribute(base, crdi_base_units[i], 0);
    }
    return d;
}

crd_status crdi_ssp_read_units(crdi_ssp_reader* r, const crdi_xml_element* root,
                               const crdi_ssp_units** out)
{
    const crdi_xml_element* list = crdi_xml_child(root, root->space, "Units");
    size_t count = 0;
    for (const crdi_xml_element* u = list ? list->first : NULL; u; u = u->next) {
        count++;
    }
    crdi_ssp_units* units = crdi_arena_new(&r->arena, 1, sizeof *units);
    if (!units) { return CRD_E_MEMORY; }
    crdi_map_init(&units->names, r->ctx);
    units->next = r->units;
    r->units = units;
    *out = units;
    if (!count) { return CRD_OK; }
    const crd_status spent = crdi_ssp_spend(r, count * sizeof *units->dimensions);
    if (spent < 0) { return spent; }
    units->dimensions = crdi_arena_new(&r->s->arena, count, sizeof *units->dimensions);
    if (!units->dimensions) { return CRD_E_MEMORY; }
    int32_t n = 0;
    for (const crdi_xml_element* u = crdi_xml_child(list, CRDI_SSC, "Unit"); u;
         u = crdi_xml_same(u)) {
        const crdi_xml_element* base = crdi_xml_child(u, CRDI_SSC, "BaseUnit");
        units->dimensions[n] = read_dimension(base);
        // A factor of zero or an infinite one is no unit that anything could be converted into.
        const crd_dimension* d = &units->dimensions[n];
        if (!isfinite(d->factor) || d->factor == 0 || !isfinite(d->offset)) { continue; }
        const crd_status st = crdi_map_add(&units->names, crdi_xml_get(u, "name"), n++, NULL);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

crd_status crdi_ssp_find_unit(crdi_ssp_reader* r, const crdi_ssp_units* units, const char* name,
                              const char** unit, const crd_dimension** dimension)
{
    *unit = "";
    *dimension = NULL;
    if (!name || !name[0]) { return CRD_OK; }
    const int32_t i = crdi_map_find(&units->names, name);
    crd_dimension known;
    if (i >= 0) {
        *dimension = &units->dimensions[i];
    } else if (!crd_dimension_parse(name, &known)) {
        return CRD_OK;
    }
    *unit = crdi_ssp_keep(r, name);
    return *unit ? CRD_OK : CRD_E_MEMORY;
}

bool crdi_ssp_dimension(const char* unit, const crd_dimension* given, crd_dimension* out)
{
    if (!unit[0]) { return false; }
    if (given) {
        *out = *given;
        return true;
    }
    return crd_dimension_parse(unit, out);
}

// ---- transformations ---------------------------------------------------------------------------

static crd_status read_map(crdi_ssp_reader* r, const crdi_xml_element* e, bool booleans,
                           crd_transformation* out)
{
    int count = 0;
    for (const crdi_xml_element* m = crdi_xml_child(e, CRDI_SSC, "MapEntry"); m;
         m = crdi_xml_same(m)) {
        count++;
    }
    const crd_status st = crdi_ssp_spend(r, (size_t)count * sizeof(crd_map_entry));
    if (st < 0) { return st; }
    crd_map_entry* map = crdi_arena_new(&r->s->arena, (size_t)count, sizeof *map);
    if (!map) { return CRD_E_MEMORY; }
    int n = 0;
    for (const crdi_xml_element* m = crdi_xml_child(e, CRDI_SSC, "MapEntry"); m;
         m = crdi_xml_same(m), n++) {
        const char *from = crdi_xml_get(m, "source"), *to = crdi_xml_get(m, "target");
        map[n].from =
            booleans ? (ssp_values_truth(from) ? "true" : "false") : crdi_ssp_keep(r, from);
        map[n].to = booleans ? (ssp_values_truth(to) ? "true" : "false") : crdi_ssp_keep(r, to);
        if (!map[n].from || !map[n].to) { return CRD_E_MEMORY; }
    }
    out->map = map;
    out->map_count = count;
    return CRD_OK;
}

crd_status crdi_ssp_transformation(crdi_ssp_reader* r, const crdi_xml_element* e,
                                   crd_transformation* out)
{
    *out = (crd_transformation){.unit = "", .gain = 1, .convert_units = true};
    out->convert_units = !ssp_values_truth(crdi_xml_get(e, "suppressUnitConversion"));
    const crdi_xml_element* t = crdi_xml_child(e, CRDI_SSC, "LinearTransformation");
    if (t) {
        out->gain = number_attribute(t, "factor", 1);
        out->offset = number_attribute(t, "offset", 0);
        out->has_transformation = out->gain != 1 || out->offset != 0;
        return CRD_OK;
    }
    t = crdi_xml_child(e, CRDI_SSC, "BooleanMappingTransformation");
    if (t) { return read_map(r, t, true, out); }
    t = crdi_xml_child(e, CRDI_SSC, "IntegerMappingTransformation");
    if (!t) { t = crdi_xml_child(e, CRDI_SSC, "EnumerationMappingTransformation"); }
    return t ? read_map(r, t, false, out) : CRD_OK;
}

// ---- parameter sets ----------------------------------------------------------------------------

bool crdi_ssp_is_real(const char* type)
{
    return strcmp(type, "Real") == 0 || strncmp(type, "Float", 5) == 0;
}

static bool ssp_values_is_text(const char* type)
{
    return strcmp(type, "String") == 0 || strcmp(type, "Enumeration") == 0 ||
           strcmp(type, "Binary") == 0;
}

// The words of a list, or the Value elements, or the one text.
static crd_status read_items(crdi_ssp_reader* r, const crdi_xml_element* e, crdi_ssp_value* v)
{
    const char* text = crdi_xml_get(e, "value");
    const bool words = !ssp_values_is_text(v->type);
    size_t room = text && !words ? 1 : 0;
    for (const crdi_xml_element* x = e->first; x && !text; x = x->next) {
        room++;
    }
    for (const char* p = text; words && p && *(p += strspn(p, " \t\r\n"));) {
        p += strcspn(p, " \t\r\n");
        room++;
    }
    const crd_status st = crdi_ssp_spend(r, 64 + room * sizeof *v->items);
    if (st < 0) { return st; }
    v->items = crdi_arena_new(&r->arena, room, sizeof *v->items);
    if (!v->items) { return CRD_E_MEMORY; }
    if (text && !words) {
        v->items[v->count++] = text;
        return CRD_OK;
    }
    for (const crdi_xml_element* x = crdi_xml_child(e, CRDI_SSV, "Value"); x && !text;
         x = crdi_xml_same(x)) {
        v->items[v->count++] = crdi_xml_get(x, "value");
    }
    for (const char* p = text; p && *(p += strspn(p, " \t\r\n"));) {
        const size_t n = strcspn(p, " \t\r\n");
        const bool plus = *p == '+' && n > 1;
        const char* word = strcmp(v->type, "Boolean") == 0
                               ? (ssp_values_truth(p) ? "true" : "false")
                               : crdi_arena_text(&r->arena, p + plus, n - plus);
        if (!word) { return CRD_E_MEMORY; }
        v->items[v->count++] = word;
        p += n;
    }
    return CRD_OK;
}

static const crdi_xml_element* ssp_values_type_of(const crdi_xml_element* parameter)
{
    const crdi_xml_element* e = parameter->first;
    while (strcmp(e->space, CRDI_SSV) != 0 || strcmp(e->name, "Annotations") == 0) {
        e = e->next; // the schema check has seen that there is one
    }
    return e;
}

crd_status crdi_ssp_read_set(crdi_ssp_reader* r, const crdi_document* d,
                             const crdi_xml_element* set, const char* prefix, crdi_ssp_value** out,
                             int* count)
{
    const crdi_ssp_units* units = d->units;
    if (set != d->xml->root) { // inline: with units of its own
        const crd_status st = crdi_ssp_read_units(r, set, &units);
        if (st < 0) { return st; }
    }
    const crdi_xml_element* list = crdi_xml_child(set, CRDI_SSV, "Parameters");
    const crdi_xml_element* first = crdi_xml_child(list, CRDI_SSV, "Parameter");
    *count = 0;
    for (const crdi_xml_element* p = first; p; p = crdi_xml_same(p)) {
        ++*count;
    }
    crdi_ssp_value* v = *out = crdi_arena_new(&r->arena, (size_t)*count, sizeof *v);
    if (!v) { return CRD_E_MEMORY; }
    for (const crdi_xml_element* p = first; p; p = crdi_xml_same(p), v++) {
        const crdi_xml_element* e = ssp_values_type_of(p);
        const char* unit = crdi_xml_get(e, "unit");
        v->type = e->name;
        v->place = (crd_place){d->shown, e->line};
        v->name = crdi_arena_format(&r->arena, "%s%s", prefix, crdi_xml_get(p, "name"));
        if (!v->name) { return CRD_E_MEMORY; }
        crd_status st = read_items(r, e, v);
        if (st >= 0) { st = crdi_ssp_find_unit(r, units, unit, &v->unit, &v->dimension); }
        if (st >= 0 && set != d->xml->root && !v->dimension) { // those of the file around it
            st = crdi_ssp_find_unit(r, d->units, unit, &v->unit, &v->dimension);
        }
        if (st >= 0 && unit && !v->unit[0]) { // the FMU may know it
            v->unit = crdi_ssp_keep(r, unit);
            st = v->unit ? CRD_OK : CRD_E_MEMORY;
        }
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

const char* crdi_ssp_join(crdi_ssp_reader* r, const crdi_ssp_value* v)
{
    if (v->count == 1) { return crdi_ssp_keep(r, v->items[0]); }
    crd_text t;
    crd_text_init(&t, r->ctx);
    for (int i = 0; i < v->count; i++) {
        const char* item = v->items[i];
        if (i) { crdi_text_put(&t, " ", 1); }
        if (item[0] && !strpbrk(item, " \t\r\n\"\\")) {
            crdi_text_put(&t, item, strlen(item));
            continue;
        }
        crdi_text_put(&t, "\"", 1);
        for (; *item; item++) {
            if (*item == '"' || *item == '\\') { crdi_text_put(&t, "\\", 1); }
            crdi_text_put(&t, item, 1);
        }
        crdi_text_put(&t, "\"", 1);
    }
    const char* text = t.failed ? NULL : crdi_ssp_keep(r, t.data ? t.data : "");
    crd_text_clear(&t);
    return text;
}

// ---- values on their way -----------------------------------------------------------------------

static bool ssp_values_same_value(const char* a, const char* b)
{
    int64_t x = 0, y = 0;
    return strcmp(a, b) == 0 ||
           (crdi_parse_int64(a, strlen(a), &x) && crdi_parse_int64(b, strlen(b), &y) && x == y);
}

static const char* mapped(const crd_transformation* t, const char* item)
{
    for (int k = 0; k < t->map_count; k++) {
        if (ssp_values_same_value(t->map[k].from, item)) { return t->map[k].to; }
    }
    return item;
}

crd_status crdi_ssp_convert(crdi_ssp_reader* r, crdi_ssp_value* v, const crd_transformation* t)
{
    double gain = 1, offset = 0;
    crd_dimension from, to;
    const bool real = crdi_ssp_is_real(v->type);
    if (t->convert_units && crdi_ssp_dimension(v->unit, v->dimension, &from) &&
        crdi_ssp_dimension(t->unit, t->dimension, &to)) {
        if (!crd_dimension_equal(&from, &to)) {
            return crdi_fail(r->ctx, CRD_E_RANGE,
                             "%s:%d: parameter '%s' in '%s' cannot be converted into '%s'",
                             v->place.file, v->place.line, crdi_show(v->name).text,
                             crdi_show(v->unit).text, crdi_show(t->unit).text);
        }
        gain = from.factor / to.factor;
        offset = (from.offset - to.offset) / to.factor;
    }
    if (t->unit[0] || !t->convert_units) { // not converted into nothing known: its unit is lost
        v->unit = t->unit;
        v->dimension = t->dimension;
    }
    if (t->has_transformation) {
        gain *= t->gain;
        offset = offset * t->gain + t->offset;
    }
    const bool linear = gain != 1 || offset != 0;
    if (!t->map_count && !linear) { return CRD_OK; }
    const crd_status st = crdi_ssp_spend(r, (size_t)v->count * 32);
    if (st < 0) { return st; }
    const char** items = crdi_arena_new(&r->arena, (size_t)v->count, sizeof *items);
    if (!items) { return CRD_E_MEMORY; }
    for (int i = 0; i < v->count; i++) {
        double x = 0;
        items[i] = mapped(t, v->items[i]);
        if (t->map_count || !crdi_parse_double(items[i], strlen(items[i]), &x)) { continue; }
        char text[32];
        const double y = gain * x + offset;
        if (!real && y != floor(y)) {
            return crdi_fail(r->ctx, CRD_E_RANGE,
                             "%s:%d: parameter '%s' is %s, a linear transformation makes %g of it",
                             v->place.file, v->place.line, crdi_show(v->name).text, v->type, y);
        }
        const int n = crdi_format_double(text, y);
        items[i] = crdi_arena_text(&r->arena, text, (size_t)n);
        if (!items[i]) { return CRD_E_MEMORY; }
    }
    v->items = items;
    return CRD_OK;
}
