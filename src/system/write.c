// YAML as people write it, by the tables that read it.
#include "system/read.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

// ---- scalars and mappings ----------------------------------------------------------------------

// Whether YAML takes it for a text as it stands. What looks like a number may stay one: texts of
// start values are the same with and without quotes.
static bool system_write_is_plain(const char* text)
{
    static const char* const words[] = {"null", "true", "false", "yes", "no", "on", "off"};
    if (!isalnum((unsigned char)text[0]) && text[0] != '_' &&
        !(text[0] == '-' && isdigit((unsigned char)text[1]))) {
        return false;
    }
    for (const char* c = text; *c; c++) {
        if (!isalnum((unsigned char)*c) && !strchr("_.-+", *c)) { return false; }
    }
    for (int i = 0; i < COUNT(words); i++) {
        if (strcasecmp(text, words[i]) == 0) { return false; }
    }
    return true;
}

void crdi_yaml_text(crd_text* t, const char* text)
{
    if (system_write_is_plain(text)) {
        crdi_text_put(t, text, strlen(text));
    } else {
        crdi_text_json(t, text); // a double-quoted scalar of YAML
    }
}

// Blanks at the ends and arrows inside would not come back.
static bool system_write_is_end(const char* text)
{
    const size_t n = strlen(text);
    return n > 0 && !strstr(text, "->") && !isspace((unsigned char)text[0]) &&
           !isspace((unsigned char)text[n - 1]);
}

void crdi_yaml_connection(crd_text* t, const char* from, const char* to)
{
    static const char special[] = ":#,[]{}\"'&*!|>%@`\\\n\r\t";
    if (!system_write_is_end(from) || !system_write_is_end(to)) {
        crdi_flow f = {.t = t};
        crdi_flow_text(&f, "from", from);
        crdi_flow_text(&f, "to", to);
        crdi_flow_end(&f);
    } else if (strpbrk(from, special) || strpbrk(to, special) ||
               !(isalnum((unsigned char)from[0]) || from[0] == '_')) {
        crd_text arrow;
        crd_text_init(&arrow, t->ctx);
        crdi_text_add(&arrow, "%s -> %s", from, to);
        if (!arrow.failed) { crdi_text_json(t, arrow.data); }
        t->failed = t->failed || arrow.failed;
        crd_text_clear(&arrow);
    } else {
        crdi_text_add(t, "%s -> %s", from, to);
    }
}

void crdi_flow_key(crdi_flow* f, const char* key)
{
    crdi_text_add(f->t, "%s", f->count++ ? ", " : "{ ");
    crdi_yaml_text(f->t, key);
    crdi_text_add(f->t, ": ");
}

void crdi_flow_text(crdi_flow* f, const char* key, const char* text)
{
    crdi_flow_key(f, key);
    crdi_yaml_text(f->t, text);
}

void crdi_flow_number(crdi_flow* f, const char* key, double x)
{
    crdi_flow_key(f, key);
    crdi_text_json_number(f->t, x);
}

void crdi_flow_integer(crdi_flow* f, const char* key, int64_t x)
{
    crdi_flow_key(f, key);
    crdi_text_add(f->t, "%lld", (long long)x);
}

void crdi_flow_bool(crdi_flow* f, const char* key, bool truth)
{
    crdi_flow_key(f, key);
    crdi_text_add(f->t, "%s", truth ? "true" : "false");
}

void crdi_flow_end(crdi_flow* f)
{
    crdi_text_add(f->t, "%s", f->count ? " }" : "{}");
}

// ---- tables ------------------------------------------------------------------------------------

static void put_if_other(crdi_flow* f, const crdi_key* k, const char* text, const char* otherwise)
{
    if (text && strcmp(text, otherwise) != 0) { crdi_flow_text(f, k->name, text); }
}

void crdi_flow_table(crdi_flow* f, const crdi_table* table, const void* object,
                     const void* defaults)
{
    for (int i = 0; i < table->count; i++) {
        const crdi_key* k = &table->keys[i];
        const void *at = (const char*)object + k->offset, *was = (const char*)defaults + k->offset;
        switch (k->type == CRDI_KEY_OWN ? k->stored : k->type) {
        case CRDI_KEY_TEXT:
            put_if_other(f, k, *(const char* const*)at, *(const char* const*)was);
            break;
        case CRDI_KEY_BOOL: {
            const bool x = *(const bool*)at;
            if (x != *(const bool*)was) { crdi_flow_bool(f, k->name, x); }
            break;
        }
        case CRDI_KEY_EITHER:
            put_if_other(f, k, k->choices[*(const bool*)at], k->choices[*(const bool*)was]);
            break;
        case CRDI_KEY_CHOICE:
            put_if_other(f, k, k->choices[*(const int*)at], k->choices[*(const int*)was]);
            break;
        case CRDI_KEY_INT: {
            const int x = *(const int*)at;
            if (x != *(const int*)was) { crdi_flow_integer(f, k->name, x); }
            break;
        }
        case CRDI_KEY_SEED: {
            const uint64_t x = *(const uint64_t*)at;
            if (x == *(const uint64_t*)was) { break; }
            crdi_flow_key(f, k->name);
            crdi_text_add(f->t, "%llu", (unsigned long long)x);
            break;
        }
        case CRDI_KEY_NUMBER:
        case CRDI_KEY_TIME:
        case CRDI_KEY_FREQUENCY:
        case CRDI_KEY_ANGLE: {
            const double x = *(const double*)at;
            if (!isnan(x) && x != *(const double*)was) { crdi_flow_number(f, k->name, x); }
            break;
        }
        default: // what hangs below it is somebody else's
            break;
        }
    }
}
