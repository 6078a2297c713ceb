#include "shared/base.h"
#include "shared/base_c.h"

#include <math.h>
#include <string.h>

const char* crdi_c_number(char out[CRDI_C_NUMBER], double x)
{
    if (isnan(x)) { return "NAN"; }
    if (isinf(x)) { return x > 0 ? "INFINITY" : "-INFINITY"; }
    const int n = crdi_format_double(out, x);
    if (!strpbrk(out, ".e")) { memcpy(out + n, ".0", 3); }
    return out;
}

void crdi_c_string(crd_text* out, const char* text)
{
    crdi_text_put(out, "\"", 1);
    for (const unsigned char* p = (const unsigned char*)text; *p; p++) {
        if (*p == '"' || *p == '\\' || *p < 0x20 || *p >= 0x7f || *p == '?') { // no trigraphs
            crdi_text_add(out, "\\%03o", *p);
        } else {
            crdi_text_put(out, (const char*)p, 1);
        }
    }
    crdi_text_put(out, "\"", 1);
}

void crdi_c_number_field(crd_text* out, const char* field, double x)
{
    char digits[CRDI_C_NUMBER];
    crdi_text_add(out, ".%s = %s, ", field, crdi_c_number(digits, x));
}

void crdi_c_string_field(crd_text* out, const char* field, const char* text)
{
    if (!text) { return; }
    crdi_text_add(out, ".%s = ", field);
    crdi_c_string(out, text);
    crdi_text_add(out, ", ");
}

static char in_name(char c)
{
    const bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return fits ? c : '_';
}

static bool same_name(const char* a, const char* b)
{
    for (; *a && *b && in_name(*a) == in_name(*b); a++, b++) {}
    return !*a && !*b;
}

void crdi_c_indices(crd_text* out, const char* prefix, const char* kind,
                    const char* (*name)(const void* user, int i), const void* user, int count)
{
    for (int i = 0; i < count; i++) {
        bool again = false;
        for (int k = 0; k < i && !again; k++) {
            again = same_name(name(user, k), name(user, i));
        }
        crdi_text_add(out, "    %s_%s_", prefix, kind);
        for (const char* p = name(user, i); *p; p++) {
            crdi_text_put(out, (const char[]){in_name(*p)}, 1);
        }
        if (again) { crdi_text_add(out, "_%d", i); }
        crdi_text_add(out, " = %d,\n", i);
    }
}
