/// Values with their keys, written next to each other: members of an object that a writer of JSON
/// or the result of a command takes in one call. Not for users.
///
///     crdi_json_put(w, TEXT("name", u->name), INT("steps", u->steps), REAL("time", u->time));
#pragma once
#include "shared/base.h"

typedef enum crdi_value_kind {
    CRDI_VALUE_END, // of a list of values
    CRDI_VALUE_NULL,
    CRDI_VALUE_BOOL,
    CRDI_VALUE_INT,
    CRDI_VALUE_REAL, // null in JSON unless finite; NaN is "-" in a table
    CRDI_VALUE_TEXT, // NULL: null in a result, "" for a writer
    // of results alone
    CRDI_VALUE_OBJECT,
    CRDI_VALUE_ARRAY,
    CRDI_VALUE_SAID, // text only: as it stands
    CRDI_VALUE_VIEW, // text only: a table of an array
} crdi_value_kind;

typedef struct crdi_value {
    crdi_value_kind kind;
    bool only_text; // JSON does not have it
    bool only_json; // a row that tables do not have
    const char* key;
    const char* shown; // what a table has instead of it, NULL: its column says
    union {
        bool truth;
        int64_t integer;
        double real;
        const char* text;
    };
    struct crdi_value* next;
} crdi_value;

#define BOOL(name, x) ((crdi_value){.kind = CRDI_VALUE_BOOL, .key = (name), .truth = (x)})
#define INT(name, x) ((crdi_value){.kind = CRDI_VALUE_INT, .key = (name), .integer = (int64_t)(x)})
#define REAL(name, x) ((crdi_value){.kind = CRDI_VALUE_REAL, .key = (name), .real = (x)})
#define TEXT(name, x) ((crdi_value){.kind = CRDI_VALUE_TEXT, .key = (name), .text = (x)})
#define NONE(name) ((crdi_value){.kind = CRDI_VALUE_NULL, .key = (name)})
// The text, null where it is empty or NULL.
#define TEXT_IF(name, x) crdi_value_text_if((name), (x))

static inline crdi_value crdi_value_text_if(const char* name, const char* text)
{
    return text && *text ? TEXT(name, text) : NONE(name);
}

#define crdi_json_put(w, ...) crdi_json_put_values(w, (const crdi_value[]){__VA_ARGS__, {0}})
void crdi_json_put_values(crdi_json_writer* w, const crdi_value* values); // up to CRDI_VALUE_END
void crdi_json_put_texts(crdi_json_writer* w, const char* key, const char* const* items, int count);
// False and null where there is none; else what is put next is in it.
bool crdi_json_begin_object_if(crdi_json_writer* w, const char* key, bool there);
