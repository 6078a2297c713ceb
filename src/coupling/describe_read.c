// Values of descriptions, and what is said of those that are wrong.
#include "coupling/algorithm.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

// ---- messages ----------------------------------------------------------------------------------

// "file:line: towards.taps: sentence"
crd_status crdi_element_fail(crdi_element_reader* r, const crdi_json* n, crd_status st,
                             const char* format, ...)
{
    char text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const char* dot = r->inside[0] && n->key ? "." : "";
    const crdi_quote name = crdi_clip(n->key ? n->key : "");
    return crdi_json_fail(r->ctx, r->file, n->line, st, "%s%s%s%s%s", r->inside, dot, name.text,
                          r->inside[0] || name.text[0] ? ": " : "", text);
}

// The sentence of another function, with the place in front.
crd_status crdi_element_placed(crdi_element_reader* r, const crdi_json* n, crd_status st)
{
    if (st != CRD_E_RANGE) { return st; }
    char text[400];
    snprintf(text, sizeof text, "%s", crd_error_text(r->ctx));
    return crdi_json_fail(r->ctx, r->file, n->line, st, "%s", text);
}

// What stands there, as messages show it.
crdi_quote crdi_element_shown(const crdi_json* n)
{
    crdi_quote q = {"nothing"};
    switch (n->kind) {
    case CRDI_JSON_TEXT:
        snprintf(q.text, sizeof q.text, "'%.63s'", crdi_clip(n->text).text);
        break;
    case CRDI_JSON_NUMBER:
        return crdi_clip(n->text);
    case CRDI_JSON_BOOL:
        snprintf(q.text, sizeof q.text, "%s", n->truth ? "true" : "false");
        break;
    case CRDI_JSON_LIST:
        strcpy(q.text, n->count ? "a list" : "an empty list");
        break;
    case CRDI_JSON_OBJECT:
        strcpy(q.text, "a mapping");
        break;
    case CRDI_JSON_NULL:
        break;
    }
    return q;
}

crd_status crdi_element_expected(crdi_element_reader* r, const crdi_json* n, const char* what)
{
    return crdi_element_fail(r, n, CRD_E_FORMAT, "%s, expected %s", crdi_element_shown(n).text,
                             what);
}

typedef struct name_list {
    const char* const* names;
} name_list;

static const char* describe_read_next_name(void* user)
{
    name_list* l = user;
    return *l->names ? *l->names++ : NULL;
}

crdi_element_suggestion crdi_element_hint(const char* word, const char* (*next)(void*), void* user)
{
    crdi_element_suggestion h = {"."};
    const char* near = crdi_nearest(word, next, user);
    if (near) { snprintf(h.text, sizeof h.text, ", did you mean '%s'?", near); }
    return h;
}

static void describe_read_join(const char* const* names, char* out, size_t size)
{
    size_t at = 0;
    for (out[0] = 0; *names; names++) {
        const int n = snprintf(out + at, size - at, "%s%s", at ? ", " : "", *names);
        if (n < 0 || (size_t)n >= size - at) { return; }
        at += (size_t)n;
    }
}

// ---- values ------------------------------------------------------------------------------------

crd_status crdi_element_read_int(crdi_element_reader* r, const crdi_json* n, int min, int max,
                                 int* out)
{
    char what[80];
    snprintf(what, sizeof what, "a whole number from %d to %d", min, max);
    if (n->kind != CRDI_JSON_NUMBER || floor(n->number) != n->number) {
        return crdi_element_expected(r, n, what);
    }
    if (n->number < min || n->number > max) {
        return crdi_element_fail(r, n, CRD_E_RANGE, "%s is out of range, expected %s",
                                 crdi_element_shown(n).text, what);
    }
    *out = (int)n->number;
    return CRD_OK;
}

crd_status crdi_element_read_range(crdi_element_reader* r, const crdi_json* n,
                                   crdi_element_range range, double x)
{
    static const char* const expectations[] = {[CRDI_ANY] = "a finite number",
                                               [CRDI_NOT_NEGATIVE] = "at least 0",
                                               [CRDI_POSITIVE] = "more than 0",
                                               [CRDI_ABOVE_ONE] = "more than 1 and less than 1e9"};
    const bool fine = isfinite(x) && (range != CRDI_NOT_NEGATIVE || x >= 0) &&
                      (range != CRDI_POSITIVE || x > 0) &&
                      (range != CRDI_ABOVE_ONE || (x > 1 && x < 1e9));
    return fine ? CRD_OK
                : crdi_element_fail(r, n, CRD_E_RANGE, "%s is out of range, expected %s",
                                    crdi_element_shown(n).text, expectations[range]);
}

crd_status crdi_element_read_number(crdi_element_reader* r, const crdi_json* n,
                                    crdi_element_range range, double* out)
{
    if (n->kind != CRDI_JSON_NUMBER) { return crdi_element_expected(r, n, "a number"); }
    *out = n->number;
    return crdi_element_read_range(r, n, range, n->number);
}

// A number in SI units, or a text with one of the two units; `other` says which.
static crd_status describe_read_quantity(crdi_element_reader* r, const crdi_json* n,
                                         const crd_dimension dims[2], const char* what, int* which,
                                         double* out)
{
    *which = 0;
    if (n->kind == CRDI_JSON_NUMBER) {
        *out = n->number;
        return CRD_OK;
    }
    if (n->kind != CRDI_JSON_TEXT) { return crdi_element_expected(r, n, what); }
    crd_dimension dim;
    bool bare = true;
    double x = 0;
    if (!crd_quantity_parse(n->text, &x, &dim, &bare) || bare) {
        return crdi_element_expected(r, n, what);
    }
    *which = crd_dimension_equal(&dim, &dims[0]) ? 0 : crd_dimension_equal(&dim, &dims[1]) ? 1 : 2;
    if (*which == 2) { return crdi_element_expected(r, n, what); }
    if (!isfinite(x)) {
        return crdi_element_fail(r, n, CRD_E_RANGE, "%s is not finite, expected %s",
                                 crdi_element_shown(n).text, what);
    }
    *out = x;
    return CRD_OK;
}

crd_status crdi_element_read_time(crdi_element_reader* r, const crdi_json* n, const char* what,
                                  crdi_element_range range, double* out)
{
    static const crd_dimension second[2] = {{.s = 1}, {.s = 1}};
    int which = 0;
    const crd_status st = describe_read_quantity(r, n, second, what, &which, out);
    return st < 0 ? st : crdi_element_read_range(r, n, range, *out);
}

// rad/s. The nodes of a list have no key: the caller words what is wrong with the number itself.
crd_status crdi_element_read_frequency(crdi_element_reader* r, const crdi_json* n, double* out)
{
    static const crd_dimension dims[2] = {{.rad = 1, .s = -1}, {.s = -1}};
    int which = 0;
    const crd_status st = describe_read_quantity(
        r, n, dims, "a frequency such as \"5 Hz\" or \"30 rad/s\", or rad/s", &which, out);
    if (st >= 0 && which == 1) { *out *= 2 * 3.14159265358979323846; }
    return st;
}

crd_status crdi_element_read_choice(crdi_element_reader* r, const crdi_json* n,
                                    const char* const* choices, int* out)
{
    char all[200], what[220];
    describe_read_join(choices, all, sizeof all);
    snprintf(what, sizeof what, "one of %s", all);
    if (n->kind != CRDI_JSON_TEXT) { return crdi_element_expected(r, n, what); }
    for (int i = 0; choices[i]; i++) {
        if (strcmp(choices[i], n->text) == 0) {
            *out = i;
            return CRD_OK;
        }
    }
    name_list list = {choices};
    return crdi_element_fail(r, n, CRD_E_FORMAT, "%s is not known%s Expected %s",
                             crdi_element_shown(n).text,
                             crdi_element_hint(n->text, describe_read_next_name, &list).text, what);
}

crd_status crdi_element_read_text(crdi_element_reader* r, const crdi_json* n, const char* what,
                                  const char** out)
{
    if (n->kind != CRDI_JSON_TEXT || !n->text[0]) { return crdi_element_expected(r, n, what); }
    *out = n->text; // lives in the arena already
    return CRD_OK;
}

crd_status crdi_element_read_key(crdi_element_reader* r, const crdi_json* n,
                                 const crdi_element_option* k)
{
    void* out = (char*)r->e + k->offset;
    switch (k->type) {
    case CRDI_ELEMENT_INT:
        return crdi_element_read_int(r, n, k->min, k->max, out);
    case CRDI_ELEMENT_NUMBER:
        return crdi_element_read_number(r, n, k->range, out);
    case CRDI_ELEMENT_TIME:
        return crdi_element_read_time(r, n, "a time such as \"10 ms\", or seconds", k->range, out);
    case CRDI_ELEMENT_CHOICE:
        return crdi_element_read_choice(r, n, k->choices, out); // our enums are as wide as int
    case CRDI_ELEMENT_BOOL:
        if (n->kind != CRDI_JSON_BOOL) { return crdi_element_expected(r, n, "true or false"); }
        memcpy(out, &n->truth, sizeof n->truth);
        return CRD_OK;
    case CRDI_ELEMENT_OWN:
        break;
    }
    return k->read ? k->read(r, n) : CRD_OK;
}

const crdi_json* crdi_element_member(const crdi_json* object, const char* name)
{
    for (const crdi_json* n = object->first; n; n = n->next) {
        if (strcmp(n->key, name) == 0) { return n; }
    }
    return NULL;
}

// An object with no other keys than these.
crd_status crdi_element_check_members(crdi_element_reader* r, const crdi_json* n, const char* what,
                                      const char* const* names)
{
    if (n->kind != CRDI_JSON_OBJECT) { return crdi_element_expected(r, n, what); }
    for (const crdi_json* m = n->first; m; m = m->next) {
        int i = 0;
        while (names[i] && strcmp(names[i], m->key) != 0) {
            i++;
        }
        if (names[i]) { continue; }
        char all[100];
        name_list list = {names};
        describe_read_join(names, all, sizeof all);
        return crdi_element_fail(r, m, CRD_E_FORMAT, "unknown key%s Allowed here: %s",
                                 crdi_element_hint(m->key, describe_read_next_name, &list).text,
                                 all);
    }
    return CRD_OK;
}

// A list of finite numbers, `at_least` .. `at_most` of them.
crd_status crdi_element_read_numbers(crdi_element_reader* r, const crdi_json* n, int at_least,
                                     int at_most, double* out)
{
    if (n->kind != CRDI_JSON_LIST) { return crdi_element_expected(r, n, "a list of numbers"); }
    if (n->count < at_least || n->count > at_most) {
        char count[60];
        snprintf(count, sizeof count, at_least == at_most ? "%d" : "%d .. %d", at_least, at_most);
        return crdi_element_fail(r, n, CRD_E_RANGE, "%d numbers, expected %s", n->count, count);
    }
    int i = 0;
    for (const crdi_json* m = n->first; m; m = m->next, i++) {
        if (m->kind != CRDI_JSON_NUMBER) {
            return crdi_json_fail(r->ctx, r->file, m->line, CRD_E_FORMAT,
                                  "%s[%d]: %s, expected a number", n->key ? n->key : "row", i + 1,
                                  crdi_element_shown(m).text);
        }
        out[i] = m->number;
    }
    return CRD_OK;
}

crd_status crdi_element_read_gain_limit(crdi_element_reader* r, const crdi_json* n)
{
    return crdi_element_read_number(r, n, CRDI_POSITIVE, &r->e->options.gain_limit);
}
