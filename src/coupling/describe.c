// Elements out of descriptions: one row per key says what it is called, what it may be, where it
// goes and which algorithms it belongs to.
#include "coupling/describe.h"
#include "shared/base.h"
#include "shared/coupling.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { SIGNALS_MAX = 4096 };

const char* const crdi_words[] = {
    [CRDI_WORD_ZOH] = "zoh",
    [CRDI_WORD_FOH] = "foh",
    [CRDI_WORD_EROS] = "eros",
    [CRDI_WORD_ERROR_SPACE] = "error-space",
    [CRDI_WORD_MOMENT] = "moment",
    [CRDI_WORD_SAVITZKY_GOLAY] = "savitzky-golay",
    [CRDI_WORD_WIENER] = "wiener",
    [CRDI_WORD_LINEAR] = "linear",
    [CRDI_WORD_NETWORK] = "network",
    [CRDI_WORD_RIDGE] = "ridge",
    [CRDI_WORD_RLS] = "rls",
    [CRDI_WORD_AUTO] = "auto",
    NULL,
};
const char* const crdi_distances[] = {"end", "mean", NULL};
const char* const crdi_reconstructions[] = {"hold", "own", "smooth", NULL};
const char* const crdi_detections[] = {"none", "spectrum", "guarded", NULL};
const char* const crdi_reactions[] = {"none", "switch", "rebase", NULL};

// Behind the word of an algorithm: detection and reaction as published (Baumann 2024, sec. 2.5), or
// the guarded detection with re-basing.
static const char switched[] = "+switch", rebased[] = "+rebase";

typedef struct reader {
    crd_context* ctx;
    crd_arena* arena;
    const char* file;
    const char* inside; // "towards" for what stands in it, "" at the top
    crd_element* e;
    crdi_word word;
} reader;

// ---- the keys ----------------------------------------------------------------------------------

typedef enum key_type { INT, NUMBER, TIME, BOOL, CHOICE, OWN } key_type;
typedef enum key_range { ANY, NOT_NEGATIVE, POSITIVE, ABOVE_ONE } key_range;

typedef struct key {
    const char* name;
    unsigned words; // bit i: belongs to crdi_words[i]
    key_type type;
    size_t offset; // in crd_element
    int min, max;  // INT
    key_range range;
    const char* const* choices;
    crd_status (*read)(reader* r, const crdi_json* n); // OWN, NULL: read by those who need it
} key;

static crd_status read_version(reader* r, const crdi_json* n);
static crd_status read_name(reader* r, const crdi_json* n);
static crd_status read_bands(reader* r, const crdi_json* n);
static crd_status read_weights(reader* r, const crdi_json* n);
static crd_status read_network(reader* r, const crdi_json* n);
static crd_status read_towards(reader* r, const crdi_json* n);
static crd_status read_latency(reader* r, const crdi_json* n);
static crd_status read_signals(reader* r, const crdi_json* n);
static crd_status read_learn(reader* r, const crdi_json* n);

#define BIT(w) (1u << CRDI_WORD_##w)
#define ALL ((1u << CRDI_WORD_COUNT) - 1)
#define AT(field) offsetof(crd_element, options.field)

static const key keys[] = {
    {"element", ALL, OWN, .read = read_version},
    {"name", ALL, OWN, .read = read_name},
    {"step", ALL, TIME, offsetof(crd_element, step), .range = POSITIVE},
    {"algorithm", ALL, OWN, .read = NULL},
    {"taps", BIT(MOMENT) | BIT(SAVITZKY_GOLAY) | BIT(WIENER), INT, AT(design.taps), .min = 1,
     .max = CRD_TAPS_MAX},
    {"taps", BIT(RIDGE) | BIT(RLS), INT, AT(learning_taps), .min = 2, .max = 128},
    {"degree", BIT(MOMENT) | BIT(SAVITZKY_GOLAY), INT, AT(design.degree), .min = 0, .max = 4},
    {"curve", BIT(ERROR_SPACE), INT, AT(design.curve), .min = 1, .max = 3},
    {"errors", BIT(ERROR_SPACE), INT, AT(design.errors), .min = 1, .max = 32},
    {"order", BIT(ERROR_SPACE), INT, AT(design.order), .min = 0, .max = 3},
    {"distance", BIT(ERROR_SPACE), CHOICE, AT(design.distance), .choices = crdi_distances},
    {"bands", BIT(WIENER), OWN, .read = read_bands},
    {"noise", BIT(WIENER), NUMBER, AT(design.noise), .range = POSITIVE},
    {"any-gain", BIT(LINEAR) | BIT(NETWORK), BOOL, AT(any_gain), .range = ANY},
    {"weights", BIT(LINEAR), OWN, .read = read_weights},
    {"network", BIT(NETWORK), OWN, .read = read_network},
    {"start", BIT(NETWORK), OWN, .read = NULL},
    {"window", BIT(RIDGE) | BIT(RLS), NUMBER, AT(learning_window), .range = ABOVE_ONE},
    {"pull", BIT(RIDGE), NUMBER, AT(learning_ridge), .range = POSITIVE},
    {"towards", BIT(RIDGE), OWN, .read = read_towards},
    {"reconstruct", ALL, CHOICE, AT(reconstruction), .choices = crdi_reconstructions},
    {"detect", ALL, CHOICE, AT(detection), .choices = crdi_detections},
    {"threshold", ALL, NUMBER, AT(threshold), .range = NOT_NEGATIVE},
    {"resolution", ALL, NUMBER, AT(resolution), .range = NOT_NEGATIVE},
    {"react", ALL, CHOICE, AT(reaction), .choices = crdi_reactions},
    {"latency", ALL, OWN, .read = read_latency},
    {"latency-max", ALL, INT, AT(k_max), .min = 0, .max = CRD_LATENCY_MAX},
    {"late", ALL, INT, AT(late), .min = 0, .max = 4096},
    {"signals", ALL, OWN, .read = read_signals},
    {"learn", BIT(NETWORK), OWN, .read = read_learn},
};

enum { KEYS = sizeof keys / sizeof *keys };

// `coupling:` of a connection has these beside them.
static const char* const connection_keys[] = {"file", "channel", "shadow", "record", NULL};

const char* crdi_element_key(int index)
{
    return index < KEYS ? keys[index].name : NULL;
}

static const key* find_key(crdi_word word, const char* name)
{
    for (int i = 0; i < KEYS; i++) {
        if ((keys[i].words >> word & 1) && strcmp(keys[i].name, name) == 0) { return &keys[i]; }
    }
    return NULL;
}

bool crdi_element_has_key(crdi_word word, const char* name)
{
    return find_key(word, name) != NULL;
}

// ---- messages ----------------------------------------------------------------------------------

static crd_status fail_at(reader* r, const crdi_json* n, crd_status st, const char* format, ...)
    CRD_PRINTF(4, 5);

// "file:line: towards.taps: sentence"
static crd_status fail_at(reader* r, const crdi_json* n, crd_status st, const char* format, ...)
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
static crd_status placed(reader* r, const crdi_json* n, crd_status st)
{
    if (st != CRD_E_RANGE) { return st; }
    char text[400];
    snprintf(text, sizeof text, "%s", crd_error_text(r->ctx));
    return crdi_json_fail(r->ctx, r->file, n->line, st, "%s", text);
}

// What stands there, as messages show it.
static crdi_quote shown(const crdi_json* n)
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

static crd_status expected(reader* r, const crdi_json* n, const char* what)
{
    return fail_at(r, n, CRD_E_FORMAT, "%s, expected %s", shown(n).text, what);
}

typedef struct name_list {
    const char* const* names;
} name_list;

static const char* next_name(void* user)
{
    name_list* l = user;
    return *l->names ? *l->names++ : NULL;
}

typedef struct hint {
    char text[100];
} hint;

static hint hint_for(const char* word, const char* (*next)(void*), void* user)
{
    hint h = {"."};
    const char* near = crdi_nearest(word, next, user);
    if (near) { snprintf(h.text, sizeof h.text, ", did you mean '%s'?", near); }
    return h;
}

static void join(const char* const* names, char* out, size_t size)
{
    size_t at = 0;
    for (out[0] = 0; *names; names++) {
        const int n = snprintf(out + at, size - at, "%s%s", at ? ", " : "", *names);
        if (n < 0 || (size_t)n >= size - at) { return; }
        at += (size_t)n;
    }
}

// ---- values ------------------------------------------------------------------------------------

static crd_status read_int(reader* r, const crdi_json* n, int min, int max, int* out)
{
    char what[80];
    snprintf(what, sizeof what, "a whole number from %d to %d", min, max);
    if (n->kind != CRDI_JSON_NUMBER || floor(n->number) != n->number) {
        return expected(r, n, what);
    }
    if (n->number < min || n->number > max) {
        return fail_at(r, n, CRD_E_RANGE, "%s is out of range, expected %s", shown(n).text, what);
    }
    *out = (int)n->number;
    return CRD_OK;
}

static crd_status check_range(reader* r, const crdi_json* n, key_range range, double x)
{
    static const char* const expectations[] = {[ANY] = "a finite number",
                                               [NOT_NEGATIVE] = "at least 0",
                                               [POSITIVE] = "more than 0",
                                               [ABOVE_ONE] = "more than 1 and less than 1e9"};
    const bool fine = isfinite(x) && (range != NOT_NEGATIVE || x >= 0) &&
                      (range != POSITIVE || x > 0) && (range != ABOVE_ONE || (x > 1 && x < 1e9));
    return fine ? CRD_OK
                : fail_at(r, n, CRD_E_RANGE, "%s is out of range, expected %s", shown(n).text,
                          expectations[range]);
}

static crd_status read_number(reader* r, const crdi_json* n, key_range range, double* out)
{
    if (n->kind != CRDI_JSON_NUMBER) { return expected(r, n, "a number"); }
    *out = n->number;
    return check_range(r, n, range, n->number);
}

// A number in SI units, or a text with one of the two units; `other` says which.
static crd_status read_quantity(reader* r, const crdi_json* n, const crd_dimension dims[2],
                                const char* what, int* which, double* out)
{
    *which = 0;
    if (n->kind == CRDI_JSON_NUMBER) {
        *out = n->number;
        return CRD_OK;
    }
    if (n->kind != CRDI_JSON_TEXT) { return expected(r, n, what); }
    crd_dimension dim;
    bool bare = true;
    double x = 0;
    if (!crd_quantity_parse(n->text, &x, &dim, &bare) || bare) { return expected(r, n, what); }
    *which = crd_dimension_equal(&dim, &dims[0]) ? 0 : crd_dimension_equal(&dim, &dims[1]) ? 1 : 2;
    if (*which == 2) { return expected(r, n, what); }
    if (!isfinite(x)) {
        return fail_at(r, n, CRD_E_RANGE, "%s is not finite, expected %s", shown(n).text, what);
    }
    *out = x;
    return CRD_OK;
}

static crd_status read_time(reader* r, const crdi_json* n, key_range range, double* out)
{
    static const crd_dimension second[2] = {{.s = 1}, {.s = 1}};
    int which = 0;
    const crd_status st =
        read_quantity(r, n, second, "a time such as \"10 ms\", or seconds", &which, out);
    return st < 0 ? st : check_range(r, n, range, *out);
}

// rad/s. The nodes of a list have no key: the caller words what is wrong with the number itself.
static crd_status read_frequency(reader* r, const crdi_json* n, double* out)
{
    static const crd_dimension dims[2] = {{.rad = 1, .s = -1}, {.s = -1}};
    int which = 0;
    const crd_status st = read_quantity(
        r, n, dims, "a frequency such as \"5 Hz\" or \"30 rad/s\", or rad/s", &which, out);
    if (st >= 0 && which == 1) { *out *= 2 * 3.14159265358979323846; }
    return st;
}

static crd_status read_choice(reader* r, const crdi_json* n, const char* const* choices, int* out)
{
    char all[200], what[220];
    join(choices, all, sizeof all);
    snprintf(what, sizeof what, "one of %s", all);
    if (n->kind != CRDI_JSON_TEXT) { return expected(r, n, what); }
    for (int i = 0; choices[i]; i++) {
        if (strcmp(choices[i], n->text) == 0) {
            *out = i;
            return CRD_OK;
        }
    }
    name_list list = {choices};
    return fail_at(r, n, CRD_E_FORMAT, "%s is not known%s Expected %s", shown(n).text,
                   hint_for(n->text, next_name, &list).text, what);
}

static crd_status read_text(reader* r, const crdi_json* n, const char* what, const char** out)
{
    if (n->kind != CRDI_JSON_TEXT || !n->text[0]) { return expected(r, n, what); }
    *out = n->text; // lives in the arena already
    return CRD_OK;
}

static crd_status read_key(reader* r, const crdi_json* n, const key* k)
{
    void* out = (char*)r->e + k->offset;
    switch (k->type) {
    case INT:
        return read_int(r, n, k->min, k->max, out);
    case NUMBER:
        return read_number(r, n, k->range, out);
    case TIME:
        return read_time(r, n, k->range, out);
    case CHOICE:
        return read_choice(r, n, k->choices, out); // our enums are as wide as int
    case BOOL:
        if (n->kind != CRDI_JSON_BOOL) { return expected(r, n, "true or false"); }
        memcpy(out, &n->truth, sizeof n->truth);
        return CRD_OK;
    case OWN:
        break;
    }
    return k->read ? k->read(r, n) : CRD_OK;
}

// ---- keys with a reader of their own -----------------------------------------------------------

static crd_status read_version(reader* r, const crdi_json* n)
{
    if (n->kind == CRDI_JSON_NUMBER && n->number == 1) { return CRD_OK; }
    return fail_at(r, n, CRD_E_UNSUPPORTED, "version %s, expected 1", shown(n).text);
}

// Names become signals of recordings and stand in tables on terminals.
static bool is_name(const crdi_json* n)
{
    bool fine = n->kind == CRDI_JSON_TEXT && n->text[0];
    for (const char* p = n->text; *p; p++) {
        fine = fine && (unsigned char)*p >= 0x20 && *p != 0x7f;
    }
    return fine;
}

static crd_status read_name(reader* r, const crdi_json* n)
{
    return is_name(n) ? read_text(r, n, "a name", &r->e->name)
                      : expected(r, n, "a name without control characters");
}

static const crdi_json* member(const crdi_json* object, const char* name)
{
    for (const crdi_json* n = object->first; n; n = n->next) {
        if (strcmp(n->key, name) == 0) { return n; }
    }
    return NULL;
}

// An object with no other keys than these.
static crd_status check_members(reader* r, const crdi_json* n, const char* what,
                                const char* const* names)
{
    if (n->kind != CRDI_JSON_OBJECT) { return expected(r, n, what); }
    for (const crdi_json* m = n->first; m; m = m->next) {
        int i = 0;
        while (names[i] && strcmp(names[i], m->key) != 0) {
            i++;
        }
        if (names[i]) { continue; }
        char all[100];
        name_list list = {names};
        join(names, all, sizeof all);
        return fail_at(r, m, CRD_E_FORMAT, "unknown key%s Allowed here: %s",
                       hint_for(m->key, next_name, &list).text, all);
    }
    return CRD_OK;
}

// A list of finite numbers, `at_least` .. `at_most` of them.
static crd_status read_numbers(reader* r, const crdi_json* n, int at_least, int at_most,
                               double* out)
{
    if (n->kind != CRDI_JSON_LIST) { return expected(r, n, "a list of numbers"); }
    if (n->count < at_least || n->count > at_most) {
        char count[60];
        snprintf(count, sizeof count, at_least == at_most ? "%d" : "%d .. %d", at_least, at_most);
        return fail_at(r, n, CRD_E_RANGE, "%d numbers, expected %s", n->count, count);
    }
    int i = 0;
    for (const crdi_json* m = n->first; m; m = m->next, i++) {
        if (m->kind != CRDI_JSON_NUMBER) {
            return crdi_json_fail(r->ctx, r->file, m->line, CRD_E_FORMAT,
                                  "%s[%d]: %s, expected a number", n->key ? n->key : "row", i + 1,
                                  shown(m).text);
        }
        out[i] = m->number;
    }
    return CRD_OK;
}

static crd_status read_band(reader* r, int index, const crdi_json* n, crd_band* out)
{
    const char* what = "[low, high, power] such as [0, 10, 1] or [\"5 Hz\", \"9 Hz\", 0.03]";
    if (n->kind != CRDI_JSON_LIST || n->count != 3) {
        return crdi_json_fail(
            r->ctx, r->file, n->line, CRD_E_FORMAT, "bands: band %d is %s, expected %s", index + 1,
            n->kind == CRDI_JSON_LIST ? "a list of another length" : shown(n).text, what);
    }
    crd_status st = CRD_OK;
    CRD_TRY(read_frequency(r, n->first, &out->low));
    CRD_TRY(read_frequency(r, n->first->next, &out->high));
    CRD_TRY(read_number(r, n->last, ANY, &out->power));
    if (!(out->low >= 0 && out->low < out->high && isfinite(out->high))) {
        return crdi_json_fail(r->ctx, r->file, n->line, CRD_E_RANGE,
                              "bands: band %d = [%g, %g] rad/s, expected 0 <= low < high",
                              index + 1, out->low, out->high);
    }
    if (!(out->power > 0)) {
        return crdi_json_fail(r->ctx, r->file, n->line, CRD_E_RANGE,
                              "bands: the power of band %d = %g, expected more than 0", index + 1,
                              out->power);
    }
    if (index > 0 && out->low < out[-1].high) {
        return crdi_json_fail(
            r->ctx, r->file, n->line, CRD_E_RANGE,
            "bands: band %d begins at %g rad/s, below %g where band %d ends, expected "
            "ascending bands that do not overlap",
            index + 1, out->low, out[-1].high, index);
    }
fail:
    return st;
}

static crd_status read_bands(reader* r, const crdi_json* n)
{
    crd_design* d = &r->e->options.design;
    if (n->kind != CRDI_JSON_LIST || n->count == 0) {
        return expected(r, n, "a list such as [[0, 10, 1], [30, 55, 0.03]]");
    }
    if (n->count > CRD_BANDS_MAX) {
        return fail_at(r, n, CRD_E_RANGE, "%d bands, expected at most %d", n->count, CRD_BANDS_MAX);
    }
    memset(d->bands, 0, sizeof d->bands);
    int i = 0;
    for (const crdi_json* m = n->first; m; m = m->next, i++) {
        const crd_status st = read_band(r, i, m, &d->bands[i]);
        if (st < 0) { return st; }
    }
    d->band_count = i;
    r->e->bands_given = true;
    return CRD_OK;
}

static crd_status read_one_weights(reader* r, const crdi_json* n, bool needs_k, crd_linear* out)
{
    static const char* const names[] = {"k", "a", "A", NULL};
    crd_status st = CRD_OK;
    CRD_TRY(check_members(r, n, "a mapping such as {k: 6, a: [7, -6]}", names));
    const crdi_json *k = member(n, "k"), *a = member(n, "a"), *A = member(n, "A");
    if (!a || (needs_k && !k)) {
        return fail_at(r, n, CRD_E_FORMAT, "the key '%s' is missing in the weights", a ? "k" : "a");
    }
    if (k) { CRD_TRY(read_int(r, k, 0, CRD_LATENCY_MAX, &out->k)); }
    const int m = a->kind == CRDI_JSON_LIST && a->count > 0 ? a->count : 1;
    double* w = crdi_arena_new(r->arena, 2 * (size_t)m, sizeof *w);
    if (!w) { return CRD_E_MEMORY; }
    CRD_TRY(read_numbers(r, a, 1, CRD_TAPS_MAX, w));
    if (A) { CRD_TRY(read_numbers(r, A, m, m, w + m)); }
    out->m = m;
    out->a = w;
    out->A = A ? w + m : NULL;
    crd_linear copy;
    st = crd_linear_copy(r->ctx, out, r->e->options.any_gain, &copy);
    if (st >= 0) { crd_linear_clear(r->ctx, &copy); }
    return placed(r, a, st);
fail:
    return st;
}

static crd_status read_weights(reader* r, const crdi_json* n)
{
    const bool list = n->kind == CRDI_JSON_LIST;
    if (list && (n->count == 0 || n->count > CRD_LATENCY_MAX + 1)) {
        return fail_at(r, n, CRD_E_RANGE, "%d sets of weights, expected 1 .. %d", n->count,
                       CRD_LATENCY_MAX + 1);
    }
    const int count = list ? n->count : 1;
    crd_linear* given = crdi_arena_new(r->arena, (size_t)count, sizeof *given);
    if (!given) { return CRD_E_MEMORY; }
    const crdi_json* m = list ? n->first : n;
    for (int i = 0; i < count; i++, m = m->next) {
        const crd_status st = read_one_weights(r, m, count > 1, &given[i]);
        if (st < 0) { return st; }
        if (i > 0 && given[i].k <= given[i - 1].k) {
            return crdi_json_fail(r->ctx, r->file, m->line, CRD_E_RANGE,
                                  "weights: k = %d after %d, expected ascending k", given[i].k,
                                  given[i - 1].k);
        }
    }
    r->e->options.given = given;
    r->e->options.given_count = count;
    return CRD_OK;
}

// (rows x columns) by rows; columns 0: as the first row has.
static crd_status read_rows(reader* r, const crdi_json* n, int* rows, int* columns, double** out)
{
    const char* what = "a list of rows such as [[1, 0], [0, 1]]";
    if (n->kind != CRDI_JSON_LIST || n->count == 0 || n->first->kind != CRDI_JSON_LIST ||
        n->first->count == 0) {
        return expected(r, n, what);
    }
    *rows = n->count;
    if (*columns == 0) { *columns = n->first->count; }
    for (const crdi_json* m = n->first; m; m = m->next) { // no room for what is not there
        if (m->kind == CRDI_JSON_LIST && m->count != *columns) {
            return crdi_json_fail(r->ctx, r->file, m->line, CRD_E_RANGE,
                                  "%s: a row of %d numbers, expected %d", n->key, m->count,
                                  *columns);
        }
        if (m->kind != CRDI_JSON_LIST) { return expected(r, n, what); }
    }
    double* w = crdi_arena_new(r->arena, (size_t)*rows * (size_t)*columns, sizeof *w);
    if (!w) { return CRD_E_MEMORY; }
    *out = w;
    for (const crdi_json* m = n->first; m; m = m->next, w += *columns) {
        const crd_status st = read_numbers(r, m, *columns, *columns, w);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

// A vector that may be missing: zeros then.
static crd_status read_bias(reader* r, const crdi_json* n, int count, const double** out)
{
    double* w = crdi_arena_new(r->arena, (size_t)count, sizeof *w);
    if (!w) { return CRD_E_MEMORY; }
    *out = w;
    return n ? read_numbers(r, n, count, count, w) : CRD_OK;
}

static crd_status check_network(reader* r, const crdi_json* n, const crd_network* net)
{
    crd_network copy;
    const crd_status st = crdi_network_copy(r->ctx, net, &copy);
    if (st >= 0) { crd_network_clear(r->ctx, &copy); }
    return placed(r, n, st);
}

static crd_status read_network(reader* r, const crdi_json* n)
{
    static const char* const names[] = {"alpha", "W1", "b1", "W2", "b2", "W3", "b3", NULL};
    crd_status st = CRD_OK;
    CRD_TRY(
        check_members(r, n, "a mapping with W1, W2, W3 and, if they are not 0, b1, b2, b3", names));
    const crdi_json *W1 = member(n, "W1"), *W2 = member(n, "W2"), *W3 = member(n, "W3");
    const crdi_json *alpha = member(n, "alpha"), *b3 = member(n, "b3");
    if (!W1 || !W2 || !W3) {
        return fail_at(r, n, CRD_E_FORMAT, "the key '%s' is missing in the network",
                       !W1   ? "W1"
                       : !W2 ? "W2"
                             : "W3");
    }
    crd_network* net = crdi_arena_new(r->arena, 1, sizeof *net);
    if (!net) { return CRD_E_MEMORY; }
    double *w1 = NULL, *w2 = NULL;
    int n1 = 0;
    CRD_TRY(read_rows(r, W1, &net->n1, &net->m, &w1));
    n1 = net->n1;
    CRD_TRY(read_rows(r, W2, &net->n2, &n1, &w2));
    net->W1 = w1;
    net->W2 = w2;
    CRD_TRY(read_bias(r, W3, net->n2, &net->W3));
    CRD_TRY(read_bias(r, member(n, "b1"), net->n1, &net->b1));
    CRD_TRY(read_bias(r, member(n, "b2"), net->n2, &net->b2));
    net->alpha = 0.01;
    if (alpha) { CRD_TRY(read_number(r, alpha, ANY, &net->alpha)); }
    if (b3) { CRD_TRY(read_number(r, b3, ANY, &net->b3)); }
    CRD_TRY(check_network(r, n, net));
    r->e->options.network = net;
fail:
    return st;
}

static crd_status read_latency(reader* r, const crdi_json* n)
{
    const char* what = "measured, a number of steps such as 6, or a time such as \"60 ms\"";
    crd_element* e = r->e;
    if (n->kind == CRDI_JSON_TEXT && strcmp(n->text, "measured") == 0) { return CRD_OK; }
    if (n->kind == CRDI_JSON_TEXT) {
        static const crd_dimension second[2] = {{.s = 1}, {.s = 1}};
        int which = 0;
        const crd_status st = read_quantity(r, n, second, what, &which, &e->latency);
        return st < 0 ? st : check_range(r, n, NOT_NEGATIVE, e->latency);
    }
    if (n->kind != CRDI_JSON_NUMBER || floor(n->number) != n->number) {
        return expected(r, n, what);
    }
    return read_int(r, n, 0, CRD_LATENCY_MAX, &e->latency_steps);
}

static crd_status read_signals(reader* r, const crdi_json* n)
{
    crd_element* e = r->e;
    if (n->kind == CRDI_JSON_NUMBER) { return read_int(r, n, 1, SIGNALS_MAX, &e->signal_count); }
    if (n->kind != CRDI_JSON_LIST || n->count == 0) {
        return expected(r, n, "a number of signals, or a list of their names");
    }
    if (n->count > SIGNALS_MAX) {
        return fail_at(r, n, CRD_E_RANGE, "%d signals, expected at most %d", n->count, SIGNALS_MAX);
    }
    const char** names = crdi_arena_new(r->arena, (size_t)n->count, sizeof *names);
    if (!names) { return CRD_E_MEMORY; }
    crd_status st = CRD_OK;
    crd_map map;
    crdi_map_init(&map, r->ctx);
    int i = 0;
    for (const crdi_json* m = n->first; m; m = m->next, i++) {
        bool fresh = false;
        if (!is_name(m)) {
            CRD_TRY(crdi_json_fail(r->ctx, r->file, m->line, CRD_E_FORMAT,
                                   "signals[%d]: %s, expected a name without control characters",
                                   i + 1, shown(m).text));
        }
        CRD_TRY(crdi_map_add(&map, m->text, 0, &fresh));
        if (!fresh) {
            CRD_TRY(crdi_json_fail(r->ctx, r->file, m->line, CRD_E_RANGE,
                                   "signals: %s is there twice, expected names that differ",
                                   shown(m).text));
        }
        names[i] = m->text;
    }
    e->signal_names = names;
    e->signal_count = n->count;
fail:
    crdi_map_clear(&map);
    return st;
}

static crd_status read_learn(reader* r, const crdi_json* n)
{
    const char* what = "the address of a server, unix:PATH or tcp:ADDRESS:PORT";
    const char* text = NULL;
    const crd_status st = read_text(r, n, what, &text);
    if (st < 0) { return st; }
    bool fine = strncmp(text, "unix:", 5) == 0 && text[5];
    if (strncmp(text, "tcp:", 4) == 0) {
        const char* colon = strrchr(text + 4, ':');
        int64_t port = 0;
        fine = colon && colon > text + 4 && crdi_parse_int64(colon + 1, strlen(colon + 1), &port) &&
               port > 0 && port < 65536;
    }
    if (!fine) { return expected(r, n, what); }
    r->e->learn_server = text;
    return CRD_OK;
}

// ---- the whole ---------------------------------------------------------------------------------

static crd_element blank_element(crd_context* ctx)
{
    return (crd_element){.ctx = ctx,
                         .name = "",
                         .label = "",
                         .step = NAN,
                         .latency = NAN,
                         .latency_steps = -1,
                         .options = crd_coupling_defaults(),
                         .signal_count = 1,
                         .learn_server = ""};
}

static void choose(crd_coupling_options* o, crdi_word word)
{
    switch (word) {
    case CRDI_WORD_LINEAR:
        o->algorithm = CRD_ALGORITHM_GIVEN;
        break;
    case CRDI_WORD_NETWORK:
        o->algorithm = CRD_ALGORITHM_NETWORK;
        break;
    case CRDI_WORD_RIDGE:
        o->algorithm = CRD_ALGORITHM_LEARNING;
        break;
    case CRDI_WORD_RLS:
        o->algorithm = CRD_ALGORITHM_RLS;
        break;
    case CRDI_WORD_AUTO:
        o->algorithm = CRD_ALGORITHM_AUTO;
        break;
    default:
        o->algorithm = CRD_ALGORITHM_LINEAR;
        o->design = crd_design_defaults((crd_method)word); // in the same order
    }
}
_Static_assert((int)CRDI_WORD_WIENER == (int)CRD_METHOD_WIENER, "words in the order of methods");

crdi_word crdi_word_of(const crd_coupling_options* o)
{
    switch (o->algorithm) {
    case CRD_ALGORITHM_LINEAR:
        return (crdi_word)o->design.method;
    case CRD_ALGORITHM_GIVEN:
        return CRDI_WORD_LINEAR;
    case CRD_ALGORITHM_NETWORK:
        return CRDI_WORD_NETWORK;
    case CRD_ALGORITHM_LEARNING:
        return CRDI_WORD_RIDGE;
    case CRD_ALGORITHM_RLS:
        return CRDI_WORD_RLS;
    case CRD_ALGORITHM_AUTO:
        break;
    }
    return CRDI_WORD_AUTO;
}

static bool ends_with(const char* text, const char* tail)
{
    const size_t n = strlen(text), k = strlen(tail);
    return n > k && strcmp(text + n - k, tail) == 0;
}

static crd_status read_algorithm(reader* r, const crdi_json* n)
{
    r->word = CRDI_WORD_AUTO;
    if (!n) { return CRD_OK; }
    crdi_json word = *n;
    crd_coupling_options* o = &r->e->options;
    const bool is_switched = ends_with(n->text, switched);
    if (is_switched || ends_with(n->text, rebased)) {
        const size_t tail = is_switched ? sizeof switched - 1 : sizeof rebased - 1;
        word.text = crdi_arena_text(r->arena, n->text, strlen(n->text) - tail);
        if (!word.text) { return CRD_E_MEMORY; }
        o->detection = is_switched ? CRD_DETECT_SPECTRUM : CRD_DETECT_GUARDED;
        o->reaction = is_switched ? CRD_REACT_SWITCH : CRD_REACT_REBASE;
    }
    int chosen = 0;
    const crd_status st = read_choice(r, &word, crdi_words, &chosen);
    if (st < 0) { return st; }
    r->word = (crdi_word)chosen;
    choose(o, r->word);
    // What does not learn is the method as published unless something else is asked for.
    if (word.text == n->text && r->word < CRDI_WORD_RIDGE) { o->reaction = CRD_REACT_NONE; }
    return CRD_OK;
}

typedef struct key_list {
    unsigned words;
    int at;
} key_list;

static const char* next_key(void* user)
{
    key_list* l = user;
    while (l->at < KEYS && !(keys[l->at].words & l->words)) {
        l->at++;
    }
    if (l->at >= KEYS) { return connection_keys[l->at++ - KEYS]; }
    return keys[l->at++].name;
}

// No row of the table for this word.
static crd_status refuse_key(reader* r, const crdi_json* n)
{
    for (int i = 0; connection_keys[i]; i++) {
        if (strcmp(connection_keys[i], n->key) == 0) {
            return fail_at(r, n, CRD_E_FORMAT,
                           "this belongs to 'coupling' of a connection, not to an element");
        }
    }
    for (int i = 0; i < KEYS; i++) {
        if (strcmp(keys[i].name, n->key) != 0) { continue; }
        char list[200] = "";
        size_t at = 0;
        for (int j = 0; j < KEYS; j++) {
            if ((keys[j].words >> r->word & 1) && keys[j].words != ALL) {
                at += (size_t)snprintf(list + at, sizeof list - at, "%s%s",
                                       at ? ", " : " Its own keys are ", keys[j].name);
            }
        }
        return fail_at(r, n, CRD_E_FORMAT, "the algorithm %s has no use for this key.%s",
                       crdi_words[r->word], list);
    }
    key_list near = {ALL, 0};
    return fail_at(r, n, CRD_E_FORMAT, "unknown key%s", hint_for(n->key, next_key, &near).text);
}

static crd_status check_element(reader* r, const crdi_json* n)
{
    const crd_design* d = &r->e->options.design;
    if (r->word == CRDI_WORD_LINEAR && !r->e->options.given) {
        return fail_at(r, n, CRD_E_FORMAT, "the algorithm linear needs the key 'weights'");
    }
    if (r->word == CRDI_WORD_ERROR_SPACE && d->errors < d->order + 1) {
        return fail_at(r, n, CRD_E_RANGE,
                       "errors = %d for order = %d, expected more errors than the order", d->errors,
                       d->order);
    }
    if ((r->word == CRDI_WORD_MOMENT || r->word == CRDI_WORD_SAVITZKY_GOLAY) &&
        d->taps < d->degree + 1) {
        return fail_at(r, n, CRD_E_RANGE,
                       "taps = %d for degree = %d, expected more taps than the degree", d->taps,
                       d->degree);
    }
    return CRD_OK;
}

// All keys but those that need the others.
static crd_status read_object(reader* r, const crdi_json* n)
{
    crd_status st = CRD_OK;
    if (n->kind != CRDI_JSON_OBJECT) {
        return expected(r, n, "a mapping such as {algorithm: eros}");
    }
    CRD_TRY(read_algorithm(r, member(n, "algorithm")));
    for (const crdi_json* m = n->first; m; m = m->next) {
        if (!find_key(r->word, m->key)) { return refuse_key(r, m); }
    }
    for (int i = 0; i < KEYS; i++) { // in the order of the table: any-gain before weights
        const crdi_json* m = keys[i].words >> r->word & 1 ? member(n, keys[i].name) : NULL;
        if (m) { CRD_TRY(read_key(r, m, &keys[i])); }
    }
    CRD_TRY(check_element(r, n));
fail:
    return st;
}

// A linear algorithm inside of another element: a word, or a mapping with its own keys.
static crd_status read_nested(reader* r, const crdi_json* n, crd_element* out)
{
    *out = blank_element(r->ctx);
    reader inner = *r;
    inner.e = out;
    inner.inside = n->key;
    crd_status st = CRD_OK;
    if (n->kind == CRDI_JSON_TEXT) {
        crdi_json word = *n;
        word.key = NULL; // `inside` says it
        CRD_TRY(read_algorithm(&inner, &word));
        CRD_TRY(check_element(&inner, &word));
    } else {
        crdi_json object = *n;
        object.key = NULL;
        for (const crdi_json* m = n->first; n->kind == CRDI_JSON_OBJECT && m; m = m->next) {
            const key* k = find_key(CRDI_WORD_ZOH, m->key);
            if (k && strcmp(k->name, "algorithm") != 0) {
                return fail_at(&inner, m, CRD_E_FORMAT,
                               "this belongs to the element itself, expected keys of a linear "
                               "algorithm here");
            }
        }
        CRD_TRY(read_object(&inner, &object));
    }
    if (inner.word > CRDI_WORD_LINEAR) {
        return fail_at(r, n, CRD_E_FORMAT,
                       "the algorithm %s is not linear, expected one of zoh, foh, eros, "
                       "error-space, moment, savitzky-golay, wiener",
                       crdi_words[inner.word]);
    }
fail:
    return st;
}

static crd_status read_towards(reader* r, const crdi_json* n)
{
    crd_element towards;
    const crd_status st = read_nested(r, n, &towards);
    if (st < 0) { return st; }
    if (towards.options.algorithm != CRD_ALGORITHM_LINEAR) {
        return fail_at(r, n, CRD_E_FORMAT,
                       "given weights do not serve every latency, expected a linear algorithm by "
                       "its name");
    }
    r->e->options.design = towards.options.design;
    r->e->bands_given = towards.bands_given;
    return CRD_OK;
}

// Known latency in macro steps, -1.
static int known_steps(const crd_element* e)
{
    if (e->latency_steps >= 0) { return e->latency_steps; }
    const double steps = ceil(e->latency / e->step - 1e-9);
    return steps >= 0 && steps <= CRD_LATENCY_MAX ? (int)steps : -1;
}

// The network that is the linear algorithm `start` for the known latency.
static crd_status make_network(reader* r, const crdi_json* n)
{
    crd_status st = CRD_OK;
    crd_element* e = r->e;
    crd_element start;
    crd_linear l = {0};
    crd_network net = {0};
    CRD_TRY(read_nested(r, n, &start));
    const int k = known_steps(e);
    if (k < 0) {
        return fail_at(r, n, CRD_E_FORMAT,
                       "a network is made for one latency, expected the key 'latency' in steps "
                       "too%s",
                       isnan(e->latency) ? "" : ", or 'step' beside it");
    }
    if (start.bands_given && isnan(e->step)) {
        return fail_at(r, n, CRD_E_FORMAT, "bands in rad/s need the key 'step' of the element");
    }
    CRD_TRY(placed(r, n, crd_element_linear(&start, e->step, k, &l)));
    CRD_TRY(placed(r, n, crd_network_morph(r->ctx, &l, 0.01, &net)));
    const size_t m = (size_t)net.m, n1 = (size_t)net.n1, n2 = (size_t)net.n2;
    const size_t count = n1 * m + n1 + n2 * n1 + n2 + n2;
    double* w = crdi_arena_new(r->arena, count, sizeof *w);
    crd_network* kept = w ? crdi_arena_new(r->arena, 1, sizeof *kept) : NULL;
    CRD_TRY(kept ? CRD_OK : CRD_E_MEMORY);
    memcpy(w, net.W1, count * sizeof *w); // one block
    *kept = net;
    kept->W1 = w;
    kept->b1 = kept->W1 + n1 * m;
    kept->W2 = kept->b1 + n1;
    kept->b2 = kept->W2 + n2 * n1;
    kept->W3 = kept->b2 + n2;
    e->options.network = kept;
fail:
    crd_linear_clear(r->ctx, &l);
    crd_network_clear(r->ctx, &net);
    return st;
}

static crd_status finish_network(reader* r, const crdi_json* n)
{
    const crdi_json *start = member(n, "start"), *network = member(n, "network");
    if (!start && !network) {
        return fail_at(r, n, CRD_E_FORMAT,
                       "the algorithm network needs the key 'network' with its weights, or 'start' "
                       "with a linear algorithm that it begins as");
    }
    if (start && network) {
        return fail_at(r, start, CRD_E_FORMAT, "'start' and 'network', expected one of them");
    }
    return start ? make_network(r, start) : CRD_OK;
}

// k_max reaches up to the latency that was given.
static crd_status finish_latency(reader* r, const crdi_json* n)
{
    crd_element* e = r->e;
    const int k = known_steps(e);
    if (k <= e->options.k_max) { return CRD_OK; }
    const crdi_json* most = member(n, "latency-max");
    if (most) {
        return fail_at(r, most, CRD_E_RANGE, "%d is less than the latency of %d steps",
                       e->options.k_max, k);
    }
    e->options.k_max = k;
    return CRD_OK;
}

// What create would say, said here with the line.
static crd_status try_design(reader* r, const crdi_json* n)
{
    crd_element* e = r->e;
    const bool design = r->word < CRDI_WORD_LINEAR || r->word == CRDI_WORD_RIDGE;
    if (!design || (e->bands_given && isnan(e->step))) { return CRD_OK; }
    crd_design d;
    crd_linear l = {0};
    const crdi_json* at = member(n, "bands");
    crd_status st = crdi_element_design(e, e->step, &d);
    if (st >= 0) { st = crd_linear_make(r->ctx, &d, e->options.k_max, &l); }
    crd_linear_clear(r->ctx, &l);
    return placed(r, at ? at : n, st);
}

static crd_status name_it(reader* r)
{
    crd_element* e = r->e;
    const crd_coupling_options *o = &e->options, standard = crd_coupling_defaults();
    if (e->name[0]) {
        e->label = e->name;
        return CRD_OK;
    }
    const char* word = crdi_words[r->word];
    const bool rebases = o->reaction == CRD_REACT_REBASE && r->word < CRDI_WORD_RIDGE;
    const char* tail = o->reaction == CRD_REACT_SWITCH ? switched : rebases ? rebased : "";
    const int taps = r->word == CRDI_WORD_RIDGE || r->word == CRDI_WORD_RLS
                         ? (o->learning_taps != standard.learning_taps ? o->learning_taps : 0)
                     : crdi_element_has_key(r->word, "taps") && o->design.taps != 9 ? o->design.taps
                                                                                    : 0;
    e->label = taps ? crdi_arena_format(r->arena, "%s %d%s", word, taps, tail)
                    : crdi_arena_format(r->arena, "%s%s", word, tail);
    return e->label ? CRD_OK : CRD_E_MEMORY;
}

static crd_element* new_element(crd_context* ctx)
{
    crd_element* e = crdi_new(ctx, sizeof *e);
    if (!e) { return NULL; }
    *e = blank_element(ctx);
    crd_arena_init(&e->arena, ctx);
    return e;
}

static crd_status read_element(crd_element* e, const crdi_json* root, const char* file)
{
    crd_status st = CRD_OK;
    reader r = {e->ctx, &e->arena, file ? file : "", "", e, CRDI_WORD_AUTO};
    CRD_TRY(read_object(&r, root));
    CRD_TRY(finish_latency(&r, root));
    if (r.word == CRDI_WORD_NETWORK) { CRD_TRY(finish_network(&r, root)); }
    CRD_TRY(try_design(&r, root));
    CRD_TRY(name_it(&r));
fail:
    return st;
}

crd_status crd_element_parse(crd_context* ctx, const char* json, size_t length, const char* file,
                             int first_line, crd_element** out)
{
    crd_status st = CRD_OK;
    crdi_json* root = NULL;
    crd_element* e = new_element(ctx);
    if (!e) { return CRD_E_MEMORY; }
    const crdi_json_source source = {file ? file : "", first_line};
    CRD_TRY(crdi_json_parse(&e->arena, json, length, source, &root));
    CRD_TRY(read_element(e, root, file));
    *out = e;
    return CRD_OK;
fail:
    crd_element_destroy(e);
    return st;
}

crd_status crdi_element_read(crd_context* ctx, const crdi_json* root, const char* file,
                             crd_element** out)
{
    crd_element* e = new_element(ctx);
    if (!e) { return CRD_E_MEMORY; }
    const crd_status st = read_element(e, root, file);
    if (st < 0) {
        crd_element_destroy(e);
        return st;
    }
    *out = e;
    return CRD_OK;
}

crd_status crd_element_of_name(crd_context* ctx, const char* algorithm, crd_element** out)
{
    crd_text json;
    crd_text_init(&json, ctx);
    crdi_text_add(&json, "{\"algorithm\": ");
    crdi_text_json(&json, algorithm);
    crdi_text_add(&json, "}");
    crd_status st =
        json.failed ? CRD_E_MEMORY : crd_element_parse(ctx, json.data, json.length, "", 0, out);
    crd_text_clear(&json);
    if (st == CRD_E_FORMAT) { st = CRD_E_NOT_FOUND; }
    return st;
}

void crd_element_destroy(crd_element* e)
{
    if (!e) { return; }
    crd_arena_clear(&e->arena);
    crd_free(e->ctx, e);
}

const char* const* crd_element_algorithms(void)
{
    static const char* const alone[] = {
        "zoh",    "foh",   "eros", "error-space", "moment", "savitzky-golay",
        "wiener", "ridge", "rls",  "auto",        NULL};
    return alone;
}

// ---- use ---------------------------------------------------------------------------------------

int crd_element_latency(const crd_element* e, double step)
{
    return e->latency_steps >= 0 ? e->latency_steps
           : isnan(e->latency)   ? -1
                                 : (int)ceil(e->latency / step - 1e-9);
}

static crd_status own_step(const crd_element* e, double step, double* out)
{
    *out = isnan(step) ? e->step : step;
    if (*out > 0 && isfinite(*out) && isfinite(1 / *out)) { return CRD_OK; }
    return isnan(*out)
               ? crdi_fail(e->ctx, CRD_E_RANGE,
                           "%s: nothing says the macro step, expected the key 'step'", e->label)
               : crdi_fail(e->ctx, CRD_E_RANGE, "%s: step = %g, expected > 0", e->label, *out);
}

crd_status crdi_element_design(const crd_element* e, double step, crd_design* out)
{
    *out = e->options.design;
    for (int i = 0; e->bands_given && i < out->band_count; i++) {
        crd_band* b = &out->bands[i];
        if (!(b->high * step <= 3.1415926535897936)) {
            return crdi_fail(
                e->ctx, CRD_E_RANGE,
                "%s%sbands: band %d reaches up to %g rad/s, expected at most pi / step "
                "= %g rad/s, as the step is %g s",
                e->label, e->label[0] ? ": " : "", i + 1, b->high, 3.14159265358979323846 / step,
                step);
        }
        b->low *= step;
        b->high *= step;
    }
    return CRD_OK;
}

crd_status crd_element_options(const crd_element* e, double step, crd_coupling_options* out)
{
    crd_status st = CRD_OK;
    crd_coupling_options o = e->options;
    CRD_TRY(own_step(e, step, &o.step));
    CRD_TRY(crdi_element_design(e, o.step, &o.design));
    const double k = ceil(e->latency / o.step - 1e-9); // NaN: not given
    if (k > CRD_LATENCY_MAX) {
        return crdi_fail(e->ctx, CRD_E_RANGE,
                         "%s: a latency of %g s is %g macro steps of %g s, expected at most %d",
                         e->label, e->latency, k, o.step, CRD_LATENCY_MAX);
    }
    if (k > o.k_max) { o.k_max = (int)k; }
    *out = o;
fail:
    return st;
}

static const crd_linear* given_for(const crd_coupling_options* o, int k)
{
    const crd_linear* best = &o->given[0];
    for (int i = 1; i < o->given_count && o->given[i].k <= k; i++) {
        best = &o->given[i];
    }
    return best;
}

crd_status crd_element_linear(const crd_element* e, double step, int k, crd_linear* out)
{
    crd_status st = CRD_OK;
    crd_linear l = {0};
    const crd_coupling_options* o = &e->options;
    if (o->algorithm != CRD_ALGORITHM_LINEAR && o->algorithm != CRD_ALGORITHM_GIVEN) {
        return crdi_fail(
            e->ctx, CRD_E_UNSUPPORTED,
            "%s: the algorithm %s is not one linear function, expected zoh, foh, eros, "
            "error-space, moment, savitzky-golay, wiener or linear",
            e->label, crdi_words[crdi_word_of(o)]);
    }
    if (o->reconstruction == CRD_RECONSTRUCT_SMOOTH) {
        return crdi_fail(e->ctx, CRD_E_UNSUPPORTED,
                         "%s: reconstruct: smooth has no linear form here, expected own or hold",
                         e->label);
    }
    if (o->algorithm == CRD_ALGORITHM_GIVEN) {
        if (k < 0 || k > CRD_LATENCY_MAX) {
            return crdi_fail(e->ctx, CRD_E_RANGE, "%s: k = %d, expected 0 .. %d", e->label, k,
                             CRD_LATENCY_MAX);
        }
        CRD_TRY(crd_linear_copy(e->ctx, given_for(o, k), o->any_gain, &l));
        l.k = k;
    } else {
        crd_design d = o->design;
        if (e->bands_given) {
            double own = 0;
            CRD_TRY(own_step(e, step, &own));
            CRD_TRY(crdi_element_design(e, own, &d));
        }
        CRD_TRY(crd_linear_make(e->ctx, &d, k, &l));
    }
    if (o->reconstruction == CRD_RECONSTRUCT_HOLD) { l.A = NULL; } // in the block of a
    *out = l;
fail:
    return st;
}
