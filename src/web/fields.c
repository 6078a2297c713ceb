#include "web/fields.h"

#include "shared/live.h"

#include <math.h>

static const char* type_name(crd_type type)
{
    switch (type) {
    case CRD_FLOAT64:
    case CRD_FLOAT32:
        return "real";
    case CRD_BOOLEAN:
        return "boolean";
    default:
        return "integer";
    }
}

static const char* fault_name(int fault)
{
    return fault == CRDI_FAULT_NONE ? "none" : crdi_fault_name((crdi_fault_kind)fault);
}

double crdi_web_field_number(const void* object, const crdi_web_field* row)
{
    const void* at = (const char*)object + row->offset;
    switch (row->kind) {
    case CRDI_WEB_NUMBER:
        return *(const double*)at;
    case CRDI_WEB_INT:
        return *(const int*)at;
    case CRDI_WEB_INT64:
        return (double)*(const int64_t*)at;
    case CRDI_WEB_SECONDS:
        return (double)*(const int64_t*)at / 1e9;
    case CRDI_WEB_TRUTH:
        return *(const bool*)at;
    case CRDI_WEB_FAULT:
        return *(const int*)at != CRDI_FAULT_NONE;
    default:
        return NAN;
    }
}

static void put_field(crdi_json_writer* w, const void* object, const crdi_web_field* row)
{
    const void* at = (const char*)object + row->offset;
    switch (row->kind) {
    case CRDI_WEB_NUMBER:
    case CRDI_WEB_SECONDS:
        crdi_json_put_number(w, row->name, crdi_web_field_number(object, row));
        break;
    case CRDI_WEB_INT:
        crdi_json_put_integer(w, row->name, *(const int*)at);
        break;
    case CRDI_WEB_INT64:
        crdi_json_put_integer(w, row->name, *(const int64_t*)at);
        break;
    case CRDI_WEB_TRUTH:
        crdi_json_put_bool(w, row->name, *(const bool*)at);
        break;
    case CRDI_WEB_TEXT:
        crdi_json_put_text(w, row->name, *(const char* const*)at);
        break;
    case CRDI_WEB_CHARS:
        crdi_json_put_text(w, row->name, at);
        break;
    case CRDI_WEB_TYPE:
        crdi_json_put_text(w, row->name, type_name(*(const crd_type*)at));
        break;
    case CRDI_WEB_FAULT:
        crdi_json_put_text(w, row->name, fault_name(*(const int*)at));
        break;
    }
}

void crdi_web_put_fields(crdi_json_writer* w, const void* object, const crdi_web_field* rows)
{
    for (; rows->name; rows++) {
        put_field(w, object, rows);
    }
}

void crdi_web_put_objects(crdi_json_writer* w, const char* key, const void* objects, size_t size,
                          int count, const crdi_web_field* rows)
{
    crdi_json_begin_list(w, key);
    for (int i = 0; i < count; i++) {
        crdi_json_begin_object(w, NULL);
        crdi_web_put_fields(w, (const char*)objects + (size_t)i * size, rows);
        crdi_json_end(w);
    }
    crdi_json_end(w);
}
