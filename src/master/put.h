// Members of JSON objects, appended to a text that grows.
#pragma once
#include "shared/base.h"

// "key": and what stands in front of it.
static inline void key(crd_text* t, const char* name)
{
    const char last = t->length ? t->data[t->length - 1] : '{';
    crdi_text_add(t, last == '{' || last == '[' ? "\"%s\": " : ", \"%s\": ", name);
}

static inline void text(crd_text* t, const char* name, const char* value)
{
    key(t, name);
    crdi_text_json(t, value);
}

// null: not known
static inline void text_or_null(crd_text* t, const char* name, const char* value)
{
    key(t, name);
    if (value && value[0]) {
        crdi_text_json(t, value);
    } else {
        crdi_text_add(t, "null");
    }
}

static inline void number(crd_text* t, const char* name, double x)
{
    key(t, name);
    crdi_text_json_number(t, x);
}

static inline void integer(crd_text* t, const char* name, int64_t x)
{
    key(t, name);
    crdi_text_add(t, "%lld", (long long)x);
}

static inline void boolean(crd_text* t, const char* name, bool x)
{
    key(t, name);
    crdi_text_add(t, "%s", x ? "true" : "false");
}
