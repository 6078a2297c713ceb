// Settings as texts again, for reports: what was set, and what the description says instead.
#include "shared/base.h"
#include "unit/unit.h"

#include <math.h>
#include <string.h>

int32_t crd_unit_setting_count(const crd_unit* u)
{
    return u->core ? u->core->setting_count : 0;
}

static const char* item_name(const crd_unit* u, int32_t variable, int64_t value)
{
    int64_t x = 0;
    const char* name = NULL;
    for (int32_t k = 0; (name = crdi_unit_item_at(u, variable, k, &x)); k++) {
        if (x == value) { return name; }
    }
    return NULL;
}

static void put_real(crd_text* t, double x)
{
    if (isfinite(x)) {
        crdi_text_json_number(t, x); // the shortest that reads back
    } else {
        crdi_text_add(t, "%s", isnan(x) ? "NaN" : x > 0 ? "INF" : "-INF");
    }
}

static void put_integer(crd_text* t, const crd_unit* u, int32_t variable, int64_t x)
{
    const int type = u->info.variables[variable].type;
    const char* name = type == CRD_ENUMERATION ? item_name(u, variable, x) : NULL;
    if (name) {
        crdi_text_add(t, "%s", name);
    } else if (type == CRD_BOOLEAN) {
        crdi_text_add(t, "%s", x ? "true" : "false");
    } else if (type == CRD_UINT64) {
        crdi_text_add(t, "%llu", (unsigned long long)x);
    } else {
        crdi_text_add(t, "%lld", (long long)x);
    }
}

static void setting_put_bytes(crd_text* t, const crd_variable* v, const crd_bytes* b)
{
    const char* quote = v->type == CRD_STRING && v->rank > 0 ? "\"" : "";
    crdi_text_add(t, "%s", quote);
    if (v->type == CRD_STRING) {
        crdi_text_put(t, b->data, b->length);
    } else {
        for (size_t i = 0; i < b->length; i++) {
            crdi_text_add(t, "%02x", b->data[i]);
        }
    }
    crdi_text_add(t, "%s", quote);
}

static void put_values(crd_text* t, const crd_unit* u, int32_t variable, const crd_values* values,
                       uint32_t count)
{
    const crd_variable* v = &u->info.variables[variable];
    crdi_text_put(t, "", 0); // so that there is data even of nothing
    for (uint32_t i = 0; i < count; i++) {
        if (i) { crdi_text_put(t, " ", 1); }
        switch (crd_type_kind((crd_type)v->type)) {
        case CRD_REAL:
            put_real(t, values->real[i]);
            break;
        case CRD_INTEGER:
            put_integer(t, u, variable, values->integer[i]);
            break;
        case CRD_BYTES:
            setting_put_bytes(t, v, &values->bytes[i]);
            break;
        }
    }
}

static bool equal(crd_kind kind, const crd_values* a, const crd_values* b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const bool same =
            kind == CRD_REAL ? a->real[i] == b->real[i]
            : kind == CRD_INTEGER
                ? a->integer[i] == b->integer[i]
                : a->bytes[i].length == b->bytes[i].length &&
                      (!a->bytes[i].length ||
                       memcmp(a->bytes[i].data, b->bytes[i].data, a->bytes[i].length) == 0);
        if (!same) { return false; }
    }
    return true;
}

// Texts of an array follow each other, each with its final zero.
crd_status crdi_unit_parse_start(crd_unit* u, int32_t variable, crd_values* values, uint32_t count)
{
    const crd_variable* v = &u->info.variables[variable];
    if (crd_type_kind((crd_type)v->type) != CRD_BYTES || v->rank == 0) {
        return crdi_unit_parse(u, variable, v->start, 0, count, values);
    }
    const char* text = v->start;
    for (uint32_t i = 0; i < count; i++) {
        const crd_status st = v->type == CRD_STRING
                                  ? crd_bytes_set(u->ctx, &values->bytes[i], text, strlen(text))
                                  : crdi_unit_parse(u, variable, text, i, 1, values);
        if (st < 0) { return st; }
        text += strlen(text) + 1;
    }
    return CRD_OK;
}

crd_status crd_unit_describe_setting(crd_unit* u, int32_t k, int32_t* variable, bool* differs,
                                     crd_text* value, crd_text* start)
{
    const crdi_setting* s = &u->core->settings[k];
    const crd_variable* v = &u->info.variables[s->variable];
    crd_status st = CRD_OK;
    crd_values given = {0};
    *variable = s->variable;
    *differs = true;
    put_values(value, u, s->variable, &s->values, s->count);
    if (v->start) {
        CRD_TRY(crdi_unit_values_init(u->ctx, &given, crd_type_kind((crd_type)v->type), s->count));
        st = crdi_unit_parse_start(u, s->variable, &given, s->count);
        if (st == CRD_OK) {
            *differs = !equal(crd_type_kind((crd_type)v->type), &s->values, &given, s->count);
            put_values(start, u, s->variable, &given, s->count);
        } else if (st != CRD_E_MEMORY) { // as it stands there
            crdi_text_add(start, "%s", v->start);
            st = CRD_OK;
        }
    }
fail:
    crdi_unit_values_clear(u->ctx, &given, s->count);
    if (st == CRD_OK && (value->failed || start->failed)) { st = CRD_E_MEMORY; }
    return st;
}
