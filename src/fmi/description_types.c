#include <math.h>
#include <string.h>

#include "fmi/description_parser.h"
#include "shared/base_names.h"

// ---- units -------------------------------------------------------------------------------------

static int32_t unit_index(crdi_parser* p, const char* name)
{
    const int32_t known = crdi_map_find(&p->unit_names, name);
    if (known >= 0) { return known; }
    crd_fmu_unit* grown =
        crdi_grow(p->ctx, p->units, &p->unit_capacity, p->unit_count + 1, sizeof *grown);
    if (!grown) { return -1; }
    p->units = grown;
    crd_fmu_unit* u = &p->units[p->unit_count];
    *u = (crd_fmu_unit){.name = crdi_arena_text(p->arena, name, strlen(name)),
                        .base = {.factor = 1}};
    if (!u->name || crdi_map_add(&p->unit_names, u->name, (int32_t)p->unit_count, NULL) < 0) {
        return -1;
    }
    return (int32_t)p->unit_count++;
}

crd_status crdi_start_unit(crdi_parser* p, const char** attributes)
{
    const char* name = crdi_find(attributes, "name");
    if (!name) { return crdi_bad(p, CRD_E_FORMAT, "<Unit> lacks its attribute 'name'"); }
    p->unit = unit_index(p, name);
    return p->unit < 0 ? crdi_no_memory(p) : CRD_OK;
}

crd_status crdi_base_unit(crdi_parser* p, const char** attributes)
{
    crd_fmu_unit* u = &p->units[p->unit];
    crd_dimension base = {.factor = 1};
    for (int i = 0; i < CRDI_BASE_UNITS; i++) {
        const char* text = crdi_find(attributes, crdi_base_units[i]);
        if (!text) { continue; }
        size_t n = 0;
        int64_t value = 0;
        const char* s = crdi_trim(text, &n);
        if (!crdi_parse_int64(s, n, &value) || value < -100 || value > 100) {
            return crdi_bad(p, CRD_E_FORMAT,
                            "unit '%s': %s = '%s', expected a whole exponent from -100 to 100",
                            crdi_show(u->name).text, crdi_base_units[i], crdi_show(text).text);
        }
        *crdi_exponent(&base, i) = (int8_t)value;
    }
    crd_status st =
        crdi_get_double(p, u->name, "factor", crdi_find(attributes, "factor"), &base.factor);
    if (st == CRD_OK) {
        st = crdi_get_double(p, u->name, "offset", crdi_find(attributes, "offset"), &base.offset);
    }
    if (st < 0) { return st; }
    if (!isfinite(base.factor) || base.factor == 0 || !isfinite(base.offset)) {
        return crdi_bad(p, CRD_E_FORMAT,
                        "unit '%s': factor = %g, offset = %g, expected finite numbers and a factor "
                        "that is not 0",
                        crdi_show(u->name).text, base.factor, base.offset);
    }
    u->base = base;
    u->has_base = true;
    return CRD_OK;
}

// ---- types -------------------------------------------------------------------------------------

int crdi_fmi2_type(const char* element, const char* suffix)
{
    static const struct {
        const char* element;
        crd_type type;
    } names[] = {{"Real", CRD_FLOAT64},
                 {"Integer", CRD_INT32},
                 {"Boolean", CRD_BOOLEAN},
                 {"String", CRD_STRING},
                 {"Enumeration", CRD_ENUMERATION}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const size_t n = strlen(names[i].element);
        if (strncmp(element, names[i].element, n) == 0 && strcmp(element + n, suffix) == 0) {
            return (int)names[i].type;
        }
    }
    return -1;
}

int crdi_fmi3_type(const char* element, const char* suffix)
{
    for (int t = 0; t < CRD_TYPE_COUNT; t++) {
        const size_t n = strlen(crdi_type_names[t]);
        if (strncmp(element, crdi_type_names[t], n) == 0 && strcmp(element + n, suffix) == 0) {
            return t;
        }
    }
    return -1;
}

// min and max of the integer types may not fit a double exactly; as limits that is near enough.
static crd_status get_limit(crdi_parser* p, const char* owner, crd_type type, const char* attribute,
                            const char* text, double* out)
{
    if (!text || crd_type_kind(type) == CRD_REAL) {
        return crdi_get_double(p, owner, attribute, text, out);
    }
    size_t n = 0;
    int64_t whole = 0;
    uint64_t natural = 0;
    const char* s = crdi_trim(text, &n);
    if (crdi_parse_int64(s, n, &whole)) {
        *out = (double)whole;
    } else if (crdi_parse_uint64(s, n, &natural)) {
        *out = (double)natural;
    } else {
        return crdi_bad(p, CRD_E_FORMAT, "%s: %s = '%s', expected a whole number",
                        crdi_show(owner).text, attribute, crdi_show(text).text);
    }
    return CRD_OK;
}

crd_status crdi_quantity(crdi_parser* p, const char* owner, crd_type type, const crdi_attributes* a,
                         crdi_declared_type* out)
{
    crd_status st = CRD_OK;
    const char* unit = a->value[CRDI_AT_UNIT];
    const bool number = crd_type_kind(type) == CRD_REAL ||
                        (type >= CRD_INT8 && type <= CRD_UINT64) || type == CRD_ENUMERATION;
    if (!number) { return CRD_OK; }
    if (unit && *unit) {
        out->unit = unit_index(p, unit);
        if (out->unit < 0) { return crdi_no_memory(p); }
    }
    CRD_TRY(get_limit(p, owner, type, "min", a->value[CRDI_AT_MIN], &out->min));
    CRD_TRY(get_limit(p, owner, type, "max", a->value[CRDI_AT_MAX], &out->max));
    if (crd_type_kind(type) != CRD_REAL) { return CRD_OK; }
    CRD_TRY(
        crdi_get_bool(p, owner, "relativeQuantity", a->value[CRDI_AT_RELATIVE], &out->relative));
    CRD_TRY(crdi_get_double(p, owner, "nominal", a->value[CRDI_AT_NOMINAL], &out->nominal));
fail:
    return st;
}

crd_status crdi_start_type(crdi_parser* p, const char** attributes)
{
    const char* name = crdi_find(attributes, "name");
    if (!name) { return crdi_bad(p, CRD_E_FORMAT, "a type definition lacks its attribute 'name'"); }
    crdi_declared_type* grown =
        crdi_grow(p->ctx, p->types, &p->type_capacity, p->type_count + 1, sizeof *grown);
    if (!grown) { return crdi_no_memory(p); }
    p->types = grown;
    crdi_declared_type* t = &p->types[p->type_count];
    *t = (crdi_declared_type){.name = crdi_arena_text(p->arena, name, strlen(name)),
                              .unit = -1,
                              .enumeration = -1,
                              .type = CRD_TYPE_COUNT,
                              .nominal = 1,
                              .min = -INFINITY,
                              .max = INFINITY};
    bool fresh = false;
    if (!t->name || crdi_map_add(&p->type_names, t->name, (int32_t)p->type_count, &fresh) < 0) {
        return crdi_no_memory(p);
    }
    if (!fresh) {
        return crdi_bad(p, CRD_E_FORMAT, "type '%s' is defined twice", crdi_show(name).text);
    }
    p->type_count++;
    return CRD_OK;
}

crd_status crdi_type_content(crdi_parser* p, crd_type type, const char** attributes)
{
    crdi_declared_type* t = &p->types[p->type_count - 1];
    crdi_attributes a;
    crdi_collect(attributes, &a);
    t->type = (uint8_t)type;
    if (type == CRD_ENUMERATION) {
        crdi_enumeration_row* grown = crdi_grow(p->ctx, p->enumerations, &p->enumeration_capacity,
                                                p->enumeration_count + 1, sizeof *grown);
        if (!grown) { return crdi_no_memory(p); }
        p->enumerations = grown;
        p->enumerations[p->enumeration_count] =
            (crdi_enumeration_row){.name = t->name, .first = (int32_t)p->item_count};
        t->enumeration = (int32_t)p->enumeration_count++;
    }
    return crdi_quantity(p, t->name, type, &a, t);
}

crd_status crdi_type_item(crdi_parser* p, const char** attributes)
{
    const crdi_declared_type* t = &p->types[p->type_count - 1];
    if (t->type != CRD_ENUMERATION) { return CRD_OK; }
    const char *name = crdi_find(attributes, "name"), *text = crdi_find(attributes, "value");
    const bool counted = p->d->version == CRD_FMI_1; // its items are 1, 2, ...
    if (!name || (!text && !counted)) {
        return crdi_bad(p, CRD_E_FORMAT, "type '%s': <Item> lacks its attribute '%s'",
                        crdi_show(t->name).text, name ? "value" : "name");
    }
    size_t n = 0;
    int64_t value = p->enumerations[t->enumeration].count + 1;
    const char* s = counted ? "" : crdi_trim(text, &n);
    if (!counted && !crdi_parse_int64(s, n, &value)) {
        return crdi_bad(p, CRD_E_FORMAT,
                        "type '%s': item '%s' has value = '%s', expected a whole number",
                        crdi_show(t->name).text, crdi_show(name).text, crdi_show(text).text);
    }
    crd_fmu_item* grown =
        crdi_grow(p->ctx, p->items, &p->item_capacity, p->item_count + 1, sizeof *grown);
    if (!grown) { return crdi_no_memory(p); }
    p->items = grown;
    p->items[p->item_count] = (crd_fmu_item){
        .name = crdi_keep(p, name),
        .description = crdi_keep(p, crdi_find(attributes, "description")),
        .value = value,
    };
    if (!p->items[p->item_count].name || !p->items[p->item_count].description) {
        return crdi_no_memory(p);
    }
    p->item_count++;
    p->enumerations[t->enumeration].count++;
    return CRD_OK;
}
