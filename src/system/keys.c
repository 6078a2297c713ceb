#include "system/keys.h"

#include "shared/base_findings.h"
#include "system/read.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// ---- messages ----------------------------------------------------------------------------------

crd_status crdi_read_fail(crdi_reader* r, crd_status st, int line, const char* format, ...)
{
    char text[700];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return crdi_fail(r->ctx, st, "%s%.*s%s%s", crdi_place_text((crd_place){r->file, line}).text,
                     (int)r->path_length, r->path, r->path_length ? ": " : "", text);
}

static size_t append_path(crdi_reader* r, const char* text)
{
    const size_t mark = r->path_length, n = strlen(text);
    if (mark + n < sizeof r->path) { // deeper parts of a hostile path are left out whole
        memcpy(r->path + mark, text, n);
        r->path_length += n;
    }
    return mark;
}

size_t crdi_path_enter(crdi_reader* r, const char* key)
{
    char text[80];
    snprintf(text, sizeof text, "%s%s", r->path_length ? "." : "", crdi_clip(key).text);
    return append_path(r, text);
}

size_t crdi_path_enter_item(crdi_reader* r, int index)
{
    char text[24];
    snprintf(text, sizeof text, "[%d]", index + 1);
    return append_path(r, text);
}

void crdi_path_leave(crdi_reader* r, size_t mark)
{
    r->path_length = mark;
}

crdi_hint crdi_hint_from(const char* word, const char* (*next)(void* user), void* user)
{
    crdi_hint h = {""};
    const char* near = crdi_nearest(word, next, user);
    if (near) { snprintf(h.text, sizeof h.text, ", did you mean '%s'?", crdi_clip(near).text); }
    return h;
}

// Names out of an array with a stride: keys of a table or choices.
typedef struct names {
    const char* base;
    size_t stride;
    int count, at;
} names;

static const char* keys_next_name(void* user)
{
    names* n = user;
    if (n->at == n->count) { return NULL; }
    const char* name;
    memcpy(&name, n->base + n->stride * (size_t)n->at++, sizeof name);
    return name;
}

static void keys_join(names n, char* out, size_t size)
{
    size_t at = 0;
    out[0] = 0;
    for (const char* name = keys_next_name(&n); name; name = keys_next_name(&n)) {
        const int k = snprintf(out + at, size - at, "%s%s", at ? ", " : "", name);
        if (k < 0 || (size_t)k >= size - at) { return; }
        at += (size_t)k;
    }
}

static names table_names(const crdi_table* t)
{
    return (names){(const char*)&t->keys->name, sizeof *t->keys, t->count, 0};
}

static names choice_names(const char* const* choices)
{
    int n = 0;
    while (choices[n]) {
        n++;
    }
    return (names){(const char*)choices, sizeof *choices, n, 0};
}

static const char* kind_name(const crdi_node* n)
{
    if (crdi_node_empty(n)) { return "nothing"; }
    return n->kind == CRDI_MAPPING ? "a mapping" : n->kind == CRDI_LIST ? "a list" : "a value";
}

crd_status crdi_expect_kind(crdi_reader* r, const crdi_node* n, crdi_node_kind kind,
                            const char* expected)
{
    if (n->kind == kind && !(kind == CRDI_SCALAR && crdi_node_empty(n))) { return CRD_OK; }
    if (n->kind == CRDI_SCALAR && !crdi_node_empty(n)) {
        return crdi_read_fail(r, CRD_E_FORMAT, n->line, "'%s', expected %s",
                              crdi_clip(n->text).text, expected);
    }
    return crdi_read_fail(r, CRD_E_FORMAT, n->line, "%s, expected %s", kind_name(n), expected);
}

// ---- numbers -----------------------------------------------------------------------------------

typedef struct quantity_kind {
    crd_dimension dim;
    const char* expected;
} quantity_kind;

static const quantity_kind number_kind = {{.factor = 1}, "a number"};
static const quantity_kind time_kind = {{.s = 1}, "a time such as 10 ms"};
static const quantity_kind frequency_kind = {{.s = -1}, "a frequency such as 50 Hz"};
static const quantity_kind angle_kind = {{.rad = 1}, "an angle such as 90 deg"};

static const char* dimension_name(const crd_dimension* d)
{
    static const struct {
        crd_dimension dim;
        const char* name;
    } known[] = {
        {{.factor = 1}, "a plain ratio"},
        {{.s = 1}, "a time"},
        {{.s = -1}, "a frequency"},
        {{.m = 1}, "a length"},
        {{.m = 2}, "an area"},
        {{.m = 3}, "a volume"},
        {{.kg = 1}, "a mass"},
        {{.rad = 1}, "an angle"},
        {{.rad = 1, .s = -1}, "an angular velocity"},
        {{.m = 1, .s = -1}, "a velocity"},
        {{.m = 1, .s = -2}, "an acceleration"},
        {{.kg = 1, .m = 1, .s = -2}, "a force"},
        {{.kg = 1, .m = 2, .s = -2}, "a torque or an energy"},
        {{.kg = 1, .m = 2, .s = -3}, "a power"},
        {{.kg = 1, .m = -1, .s = -2}, "a pressure"},
        {{.K = 1}, "a temperature"},
        {{.A = 1}, "a current"},
        {{.kg = 1, .m = 2, .s = -3, .A = -1}, "a voltage"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (crd_dimension_equal(&known[i].dim, d)) { return known[i].name; }
    }
    return "something else";
}

// 0x1F; the other notations of YAML 1.1 (octal, base 60, underscores) mislead more than they help.
static bool parse_hex(const char* text, uint64_t* out)
{
    if (text[0] != '0' || (text[1] != 'x' && text[1] != 'X') || !text[2]) { return false; }
    const size_t digits = strspn(text + 2, "0123456789abcdefABCDEF");
    if (text[2 + digits] || digits > 16) { return false; }
    *out = strtoull(text + 2, NULL, 16);
    return true;
}

static bool parse_special(const char* text, double* out)
{
    const bool negative = text[0] == '-';
    if (text[0] == '-' || text[0] == '+') { text++; }
    if (strcasecmp(text, ".nan") == 0) {
        *out = NAN;
    } else if (strcasecmp(text, ".inf") == 0) {
        *out = negative ? -INFINITY : INFINITY;
    } else {
        return false;
    }
    return true;
}

static crd_status not_a_quantity(crdi_reader* r, const crdi_node* n, const char* expected)
{
    const size_t digits = crdi_number_prefix(n->text);
    const char* unit = n->text + digits + strspn(n->text + digits, " \t");
    if (digits && *unit) {
        return crdi_read_fail(r, CRD_E_FORMAT, n->line, "'%s': no unit '%s' is known, expected %s",
                              crdi_clip(n->text).text, crdi_clip(unit).text, expected);
    }
    return crdi_read_fail(r, CRD_E_FORMAT, n->line, "'%s' is not a number, expected %s",
                          crdi_clip(n->text).text, expected);
}

static crd_status keys_read_quantity(crdi_reader* r, const crdi_node* n, const quantity_kind* kind,
                                     crdi_range range, double* out)
{
    const crd_status st = crdi_expect_kind(r, n, CRDI_SCALAR, kind->expected);
    if (st < 0) { return st; }
    const crdi_quote value = crdi_clip(n->text);
    crd_dimension dim = {.factor = 1};
    bool bare = true;
    double x = 0;
    uint64_t hex = 0;
    if (parse_hex(n->text, &hex)) {
        x = (double)hex;
    } else if (!parse_special(n->text, &x) && !crd_quantity_parse(n->text, &x, &dim, &bare)) {
        return not_a_quantity(r, n, kind->expected);
    }
    if (bare && n->quoted) {
        return crdi_read_fail(r, CRD_E_FORMAT, n->line,
                              "'%s' is in quotes and so a text, expected %s without quotes",
                              value.text, kind->expected);
    }
    if (!bare && !crd_dimension_equal(&dim, &kind->dim)) {
        return crdi_read_fail(r, CRD_E_FORMAT, n->line, "'%s' is %s, expected %s", value.text,
                              dimension_name(&dim), kind->expected);
    }
    if (!isfinite(x)) {
        return crdi_read_fail(r, CRD_E_RANGE, n->line, "'%s' is not finite, expected %s",
                              value.text, kind->expected);
    }
    if ((range == CRDI_POSITIVE && !(x > 0)) || (range == CRDI_NOT_NEGATIVE && !(x >= 0))) {
        return crdi_read_fail(r, CRD_E_RANGE, n->line, "'%s' is %s, expected %s", value.text,
                              range == CRDI_POSITIVE ? "not greater than 0" : "less than 0",
                              kind->expected);
    }
    *out = x;
    return CRD_OK;
}

crd_status crdi_read_number(crdi_reader* r, const crdi_node* n, crdi_range range, double* out)
{
    return keys_read_quantity(r, n, &number_kind, range, out);
}

static crd_status read_numbers(crdi_reader* r, const crdi_node* n, const quantity_kind* kind,
                               crdi_numbers* out)
{
    const crd_status st = crdi_expect_kind(r, n, CRDI_LIST, "a list such as [0, 1, 2]");
    if (st < 0) { return st; }
    if (n->count == 0) {
        return crdi_read_fail(r, CRD_E_RANGE, n->line,
                              "an empty list, expected at least one number");
    }
    double* items = crdi_arena_new(r->arena, (size_t)n->count, sizeof *items);
    if (!items) { return CRD_E_MEMORY; }
    int i = 0;
    for (const crdi_node* item = n->first; item; item = item->next, i++) {
        const size_t mark = crdi_path_enter_item(r, i);
        const crd_status item_st = keys_read_quantity(r, item, kind, CRDI_ANY, &items[i]);
        if (item_st < 0) { return item_st; }
        crdi_path_leave(r, mark);
    }
    *out = (crdi_numbers){items, n->count};
    return CRD_OK;
}

static crd_status read_plain(crdi_reader* r, const crdi_node* n, const char* expected)
{
    const crd_status st = crdi_expect_kind(r, n, CRDI_SCALAR, expected);
    if (st < 0 || !n->quoted) { return st; }
    return crdi_read_fail(r, CRD_E_FORMAT, n->line,
                          "'%s' is in quotes and so a text, expected %s without quotes",
                          crdi_clip(n->text).text, expected);
}

crd_status crdi_read_int(crdi_reader* r, const crdi_node* n, int min, int max, int* out)
{
    char expected[80];
    if (max == INT_MAX) {
        snprintf(expected, sizeof expected, "a whole number of at least %d", min);
    } else {
        snprintf(expected, sizeof expected, "a whole number from %d to %d", min, max);
    }
    const crd_status st = read_plain(r, n, expected);
    if (st < 0) { return st; }
    int64_t x = 0;
    uint64_t hex = 0;
    const size_t plus = n->text[0] == '+';
    if (parse_hex(n->text, &hex)) {
        x = hex <= INT_MAX ? (int64_t)hex : INT64_MAX;
    } else if (!crdi_parse_int64(n->text + plus, strlen(n->text + plus), &x)) {
        return crdi_read_fail(r, CRD_E_FORMAT, n->line, "'%s', expected %s",
                              crdi_clip(n->text).text, expected);
    }
    if (x < min || x > max) {
        return crdi_read_fail(r, CRD_E_RANGE, n->line, "'%s' is out of range, expected %s",
                              crdi_clip(n->text).text, expected);
    }
    *out = (int)x;
    return CRD_OK;
}

static crd_status read_seed(crdi_reader* r, const crdi_node* n, uint64_t* out)
{
    const char* expected = "a whole number of at least 0";
    const crd_status st = read_plain(r, n, expected);
    if (st < 0) { return st; }
    if (!parse_hex(n->text, out) && !crdi_parse_uint64(n->text, strlen(n->text), out)) {
        return crdi_read_fail(r, CRD_E_FORMAT, n->line, "'%s', expected %s",
                              crdi_clip(n->text).text, expected);
    }
    return CRD_OK;
}

// ---- texts, choices, truth ---------------------------------------------------------------------

static crd_status read_bool(crdi_reader* r, const crdi_node* n, bool* out)
{
    static const char* const words[] = {"false", "true", "no", "yes", "off", "on"};
    const crd_status st = read_plain(r, n, "true or false");
    if (st < 0) { return st; }
    for (int i = 0; i < 6; i++) {
        if (strcasecmp(n->text, words[i]) == 0) {
            *out = i % 2 == 1;
            return CRD_OK;
        }
    }
    return crdi_read_fail(r, CRD_E_FORMAT, n->line, "'%s', expected true or false",
                          crdi_clip(n->text).text);
}

crd_status crdi_read_text(crdi_reader* r, const crdi_node* n, const char** out)
{
    const crd_status st = crdi_expect_kind(r, n, CRDI_SCALAR, "a text");
    if (st < 0) { return st; }
    if (n->text[0] == 0) {
        return crdi_read_fail(r, CRD_E_FORMAT, n->line,
                              "an empty text, expected one that says something");
    }
    *out = crdi_arena_text(r->arena, n->text, strlen(n->text));
    return *out ? CRD_OK : CRD_E_MEMORY;
}

static crd_status keys_read_texts(crdi_reader* r, const crdi_node* n, crdi_texts* out)
{
    const int count = n->kind == CRDI_LIST ? n->count : 1;
    const char** items = crdi_arena_new(r->arena, (size_t)count, sizeof *items);
    if (!items) { return CRD_E_MEMORY; }
    if (n->kind != CRDI_LIST) {
        const crd_status st = crdi_read_text(r, n, &items[0]);
        if (st < 0) { return st; }
    } else {
        int i = 0;
        for (const crdi_node* item = n->first; item; item = item->next, i++) {
            const size_t mark = crdi_path_enter_item(r, i);
            const crd_status st = crdi_read_text(r, item, &items[i]);
            if (st < 0) { return st; }
            crdi_path_leave(r, mark);
        }
    }
    *out = (crdi_texts){items, count};
    return CRD_OK;
}

// Units of one FMU often stand in a row: they share one text.
crd_status crdi_read_path(crdi_reader* r, const crdi_node* n, const char** out)
{
    if (n->kind == CRDI_SCALAR && r->path_read && strcmp(n->text, r->path_read) == 0) {
        *out = r->path_made;
        return CRD_OK;
    }
    const crd_status st = crdi_read_text(r, n, out);
    if (st < 0) { return st; }
    r->path_read = *out;
    if ((*out)[0] != '/' && r->folder_length > 0) {
        *out = crdi_arena_format(r->arena, "%.*s%s", (int)r->folder_length, r->file, *out);
    }
    r->path_made = *out;
    return *out ? CRD_OK : CRD_E_MEMORY;
}

static crd_status read_choice(crdi_reader* r, const crdi_node* n, const char* const* choices,
                              void* out)
{
    char all[200];
    char expected[220];
    names list = choice_names(choices);
    keys_join(list, all, sizeof all);
    snprintf(expected, sizeof expected, "one of %s", all);
    const crd_status st = crdi_expect_kind(r, n, CRDI_SCALAR, expected);
    if (st < 0) { return st; }
    for (int i = 0; choices[i]; i++) {
        if (strcmp(choices[i], n->text) == 0) {
            memcpy(out, &i, sizeof i); // all our enums are as wide as int
            return CRD_OK;
        }
    }
    const crdi_hint hint = crdi_hint_from(n->text, keys_next_name, &list);
    return crdi_read_fail(r, CRD_E_FORMAT, n->line, "'%s' is not known%s Expected %s",
                          crdi_clip(n->text).text, hint.text[0] ? hint.text : ".", expected);
}

// ---- mappings ----------------------------------------------------------------------------------

static crd_status keys_read_value(crdi_reader* r, const crdi_node* n, const crdi_key* k, void* out)
{
    switch (k->type) {
    case CRDI_KEY_TEXT:
        return crdi_read_text(r, n, out);
    case CRDI_KEY_TEXTS:
        return keys_read_texts(r, n, out);
    case CRDI_KEY_PATH:
        return crdi_read_path(r, n, out);
    case CRDI_KEY_BOOL:
        return read_bool(r, n, out);
    case CRDI_KEY_INT:
        return crdi_read_int(r, n, k->min, k->max, out);
    case CRDI_KEY_SEED:
        return read_seed(r, n, out);
    case CRDI_KEY_NUMBER:
        return keys_read_quantity(r, n, &number_kind, k->range, out);
    case CRDI_KEY_TIME:
        return keys_read_quantity(r, n, &time_kind, k->range, out);
    case CRDI_KEY_FREQUENCY:
        return keys_read_quantity(r, n, &frequency_kind, k->range, out);
    case CRDI_KEY_ANGLE:
        return keys_read_quantity(r, n, &angle_kind, k->range, out);
    case CRDI_KEY_NUMBERS:
        return read_numbers(r, n, &number_kind, out);
    case CRDI_KEY_TIMES:
        return read_numbers(r, n, &time_kind, out);
    case CRDI_KEY_CHOICE:
        return read_choice(r, n, k->choices, out);
    case CRDI_KEY_EITHER: {
        int second = *(bool*)out;
        const crd_status st = read_choice(r, n, k->choices, &second);
        *(bool*)out = second != 0;
        return st;
    }
    case CRDI_KEY_TABLE:
        return crdi_read_mapping(r, n, k->table, out, NULL);
    case CRDI_KEY_OWN:
        return k->read(r, n, out);
    case CRDI_KEY_NODE:
        memcpy(out, &n, sizeof n);
        break;
    }
    return CRD_OK;
}

// Where a key belongs that stands somewhere else.
crdi_hint crdi_key_home(const char* key)
{
    crdi_hint h = {""};
    if (strcmp(key, "channel") == 0) { // of a connection it is one level further in
        return (crdi_hint){", it belongs to coupling or bond"};
    }
    int count = 0, found = 0;
    const crdi_table* const* tables = crdi_system_tables(&count);
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < tables[i]->count; k++) {
            if (strcmp(tables[i]->keys[k].name, key) != 0 || ++found > 3) { continue; }
            const size_t n = strlen(h.text);
            snprintf(
                h.text + n, sizeof h.text - n, "%s%s", found == 1 ? ", it belongs to " : " or ",
                strcmp(tables[i]->name, "file") == 0 ? "the outermost level" : tables[i]->name);
        }
    }
    return h;
}

static crd_status unknown_key(crdi_reader* r, const crdi_node* n, const crdi_table* table)
{
    char all[400];
    names list = table_names(table);
    keys_join(list, all, sizeof all);
    const crdi_hint hint = crdi_hint_from(n->key, keys_next_name, &list);
    const crdi_hint home = crdi_key_home(n->key);
    return crdi_read_fail(r, CRD_E_FORMAT, n->line, "unknown key '%s'%s%s Allowed here: %s",
                          crdi_clip(n->key).text, home.text, hint.text[0] ? hint.text : ".", all);
}

static crd_status no_mapping(crdi_reader* r, const crdi_node* n, const crdi_table* table)
{
    char expected[500] = "a mapping with the keys ";
    const size_t start = strlen(expected);
    keys_join(table_names(table), expected + start, sizeof expected - start);
    return crdi_expect_kind(r, n, CRDI_MAPPING, expected);
}

crd_status crdi_read_mapping(crdi_reader* r, const crdi_node* n, const crdi_table* table,
                             void* object, uint64_t* given)
{
    if (n->kind != CRDI_MAPPING) { return no_mapping(r, n, table); }
    uint64_t seen = 0;
    crd_status failed = CRD_OK; // the last one that was noted: the rest of the keys is read
    for (const crdi_node* m = n->first; m; m = m->next) {
        int i = 0;
        while (i < table->count && strcmp(table->keys[i].name, m->key) != 0) {
            i++;
        }
        const size_t mark = r->path_length;
        crd_status st;
        if (i == table->count) {
            st = unknown_key(r, m, table);
        } else {
            const crdi_key* k = &table->keys[i];
            (void)crdi_path_enter(r, k->name);
            st = keys_read_value(r, m, k, (char*)object + k->offset);
            seen |= UINT64_C(1) << i;
        }
        if (st < 0) {
            failed = st;
            st = crdi_go_on(r->ctx, st);
            if (st < 0) { return st; }
        }
        crdi_path_leave(r, mark);
    }
    if (given) { *given = seen; }
    if (failed < 0) { return failed; } // what keys mean together is no question then
    for (int i = 0; i < table->count; i++) {
        if (table->keys[i].required && !(seen >> i & 1)) {
            return crdi_read_fail(r, CRD_E_FORMAT, n->line, "the key '%s' is missing",
                                  table->keys[i].name);
        }
    }
    return CRD_OK;
}
