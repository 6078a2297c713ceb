// Members of JSON objects, appended to a text that grows; without blanks, as they travel.
#pragma once
#include "shared/base.h"

// A member goes behind a comma unless something was opened right before.
static inline void key(crd_text* t, const char* name)
{
    const char last = t->length ? t->data[t->length - 1] : '{';
    crdi_text_add(t, last == '{' || last == '[' ? "\"%s\":" : ",\"%s\":", name);
}

static inline void text(crd_text* t, const char* name, const char* value)
{
    key(t, name);
    crdi_text_json(t, value ? value : "");
}

static inline void number(crd_text* t, const char* name, double value)
{
    key(t, name);
    crdi_text_json_number(t, value);
}

static inline void integer(crd_text* t, const char* name, int64_t value)
{
    key(t, name);
    crdi_text_add(t, "%lld", (long long)value);
}

static inline void truth(crd_text* t, const char* name, bool value)
{
    key(t, name);
    crdi_text_add(t, "%s", value ? "true" : "false");
}

static inline void seconds(crd_text* t, const char* name, int64_t ns)
{
    number(t, name, (double)ns / 1e9);
}

static inline void begin(crd_text* t, const char* name, const char* bracket)
{
    key(t, name);
    crdi_text_add(t, "%s", bracket);
}

static inline void item(crd_text* t, int i)
{
    crdi_text_add(t, i ? ",{" : "{");
}

static inline void finish(crd_text* t, const char* bracket)
{
    crdi_text_add(t, "%s", bracket);
}
