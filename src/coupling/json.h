// JSON as a tree that knows its lines, for descriptions of elements. Bounded: depth and size; keys
// that are given twice, zero bytes and bytes that are not UTF-8 are refused.
#pragma once
#include "cardan/base.h"

typedef enum crdi_json_kind {
    CRDI_JSON_NULL,
    CRDI_JSON_BOOL,
    CRDI_JSON_NUMBER,
    CRDI_JSON_TEXT,
    CRDI_JSON_LIST,
    CRDI_JSON_OBJECT,
} crdi_json_kind;

typedef struct crdi_json {
    crdi_json_kind kind;
    int line;         // of the value, 0: unknown
    bool truth;       // CRDI_JSON_BOOL
    double number;    // CRDI_JSON_NUMBER, finite
    const char* key;  // of an object's member, else NULL
    const char* text; // CRDI_JSON_TEXT; of a number as it was written; "" otherwise
    struct crdi_json *first, *last, *next;
    int count; // members
} crdi_json;

enum { CRDI_JSON_DEPTH = 32, CRDI_JSON_BYTES = 4 << 20 };

/// Where messages say that something stands; first_line 0: lines are not told.
typedef struct crdi_json_source {
    const char* file;
    int first_line;
} crdi_json_source;

/// One value and nothing behind it. All nodes and texts live in `arena`.
crd_status crdi_json_parse(crdi_arena* arena, const char* text, size_t length,
                           crdi_json_source source, crdi_json** out);
/// "file:line: ", "file: ", "line 3: " or "" and the sentence.
crd_status crdi_json_fail(crd_context* ctx, const char* file, int line, crd_status st,
                          const char* format, ...) CRD_PRINTF(5, 6);
