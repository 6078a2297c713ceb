// Members of JSON objects, appended to a text that grows.
#pragma once
#include "cardan/base.h"

// "key": and what stands in front of it.
static inline void key(crdi_text* t, const char* name)
{
    const char last = t->length ? t->data[t->length - 1] : '{';
    crdi_text_add(t, last == '{' || last == '[' ? "\"%s\": " : ", \"%s\": ", name);
}

static inline void text(crdi_text* t, const char* name, const char* value)
{
    key(t, name);
    crdi_text_json(t, value);
}

// null: not known
static inline void text_or_null(crdi_text* t, const char* name, const char* value)
{
    key(t, name);
    if (value && value[0]) {
        crdi_text_json(t, value);
    } else {
        crdi_text_add(t, "null");
    }
}

static inline void number(crdi_text* t, const char* name, double x)
{
    key(t, name);
    crdi_text_json_number(t, x);
}

static inline void integer(crdi_text* t, const char* name, int64_t x)
{
    key(t, name);
    crdi_text_add(t, "%lld", (long long)x);
}

static inline void boolean(crdi_text* t, const char* name, bool x)
{
    key(t, name);
    crdi_text_add(t, "%s", x ? "true" : "false");
}
