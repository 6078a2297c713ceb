// YAML as JSON: each token in the line in which it stood.
#include "system/read.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct writer {
    crd_text* out;
    int line; // in which the text ends
} writer;

static bool is_one_of(const char* text, const char* const* words)
{
    for (; *words; words++) {
        if (strcmp(text, *words) == 0) { return true; }
    }
    return false;
}

static size_t digits(const char* s)
{
    return strspn(s, "0123456789");
}

// -?(0|[1-9][0-9]*)(.[0-9]+)?([eE][+-]?[0-9]+)?
static bool is_json_number(const char* s)
{
    s += *s == '-';
    size_t n = digits(s);
    if (n == 0 || (n > 1 && *s == '0')) { return false; }
    s += n;
    if (*s == '.') {
        n = digits(++s);
        if (n == 0) { return false; }
        s += n;
    }
    if (*s == 'e' || *s == 'E') {
        s++;
        s += *s == '+' || *s == '-';
        n = digits(s);
        if (n == 0) { return false; }
        s += n;
    }
    return *s == 0;
}

static bool is_hex(const char* s)
{
    if (s[0] != '0' || s[1] != 'x') { return false; }
    const size_t n = strspn(s + 2, "0123456789abcdefABCDEF");
    return n > 0 && n <= 13 && s[2 + n] == 0; // up to 2^52 exact
}

static void put_scalar(crd_text* out, const crdi_node* n)
{
    static const char* const yes[] = {"true", "True", "TRUE", NULL};
    static const char* const no[] = {"false", "False", "FALSE", NULL};
    double x = 0;
    if (n->quoted) {
        crdi_text_json(out, n->text);
    } else if (crdi_node_empty(n)) {
        crdi_text_put(out, "null", 4);
    } else if (is_one_of(n->text, yes)) {
        crdi_text_put(out, "true", 4);
    } else if (is_one_of(n->text, no)) {
        crdi_text_put(out, "false", 5);
    } else if (is_json_number(n->text)) {
        crdi_text_put(out, n->text, strlen(n->text));
    } else if (is_hex(n->text)) {
        crdi_text_json_number(out, (double)strtoull(n->text, NULL, 16));
    } else if (crdi_parse_double(n->text, strlen(n->text), &x) && isfinite(x)) {
        crdi_text_json_number(out, x); // +5, .5, 010
    } else {
        crdi_text_json(out, n->text);
    }
}

static void go_to(writer* w, int line)
{
    for (; w->line < line; w->line++) {
        crdi_text_put(w->out, "\n", 1);
    }
}

static void put_node(writer* w, const crdi_node* n, const char* const* except)
{
    if (n->kind == CRDI_SCALAR) {
        put_scalar(w->out, n);
        return;
    }
    const bool list = n->kind == CRDI_LIST;
    bool first = true;
    crdi_text_put(w->out, list ? "[" : "{", 1);
    for (const crdi_node* m = n->first; m; m = m->next) {
        if (!list && is_one_of(m->key, except)) { continue; }
        if (!first) { crdi_text_put(w->out, ",", 1); }
        go_to(w, m->line);
        if (!first) { crdi_text_put(w->out, " ", 1); }
        first = false;
        if (!list) {
            crdi_text_json(w->out, m->key);
            crdi_text_put(w->out, ": ", 2);
        }
        static const char* const none[] = {NULL};
        put_node(w, m, none);
    }
    crdi_text_put(w->out, list ? "]" : "}", 1);
}

void crdi_node_json(const crdi_node* n, int first_line, const char* const* except, crd_text* out)
{
    writer w = {out, first_line};
    go_to(&w, n->line);
    put_node(&w, n, except);
}

crd_status crd_yaml_to_json(crd_context* ctx, const char* text, size_t length, crd_place place,
                            crd_text* out)
{
    static const char* const none[] = {NULL};
    crd_status st = CRD_OK;
    crd_arena scratch;
    crd_arena_init(&scratch, ctx);
    crdi_node* root = NULL;
    const int line = place.line > 0 ? place.line : 1;
    // without a line of its own the text is part of something else
    const crd_place from = {place.file, place.line > 0 ? -line : 0};
    CRD_TRY(crdi_yaml_parse(&scratch, text, length, from, &root));
    crdi_node_json(root, line, none, out);
    CRD_TRY(out->failed ? CRD_E_MEMORY : CRD_OK);
fail:
    crd_arena_clear(&scratch);
    return st;
}
