// Members of structs as numbers and as members of JSON objects: a row for each, instead of a line
// of code wherever it is shown.
#pragma once
#include "shared/base.h"

#include <stddef.h>

typedef enum crdi_web_kind {
    CRDI_WEB_NUMBER,  // double
    CRDI_WEB_INT,     // int
    CRDI_WEB_INT64,   // int64_t
    CRDI_WEB_SECONDS, // int64_t in ns
    CRDI_WEB_TRUTH,   // bool
    CRDI_WEB_TEXT,    // const char*
    CRDI_WEB_CHARS,   // char[]
    CRDI_WEB_TYPE,    // crd_type
    CRDI_WEB_FAULT,   // int, a crdi_fault_kind
} crdi_web_kind;

typedef struct crdi_web_field {
    const char* name;
    crdi_web_kind kind;
    size_t offset;
} crdi_web_field;

// clang-format off
// The C type says which kind it is; _AS where it does not, or where it has another name.
#define CRDI_WEB_FIELD(type, member) {#member, CRDI_WEB_KIND_OF(((type*)0)->member), offsetof(type, member)}
#define CRDI_WEB_FIELD_AS(type, member, as, kind) {as, kind, offsetof(type, member)}
#define CRDI_WEB_KIND_OF(value) _Generic((value), double: CRDI_WEB_NUMBER, int: CRDI_WEB_INT, \
    int64_t: CRDI_WEB_INT64, bool: CRDI_WEB_TRUTH, const char*: CRDI_WEB_TEXT, char*: CRDI_WEB_CHARS)
// clang-format on

// Rows end with one that has no name.
void crdi_web_put_fields(crdi_json_writer* w, const void* object, const crdi_web_field* rows);
// A list of objects, `size` bytes each.
void crdi_web_put_objects(crdi_json_writer* w, const char* key, const void* objects, size_t size,
                          int count, const crdi_web_field* rows);
double crdi_web_field_number(const void* object, const crdi_web_field* row);
