// What is wrong with a document, of slaves or of CAN: findings, by the rules that they break.
#include "dcp/description/dcpx.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void crdi_dcp_findings_init(crdi_dcp_findings* f, crd_context* ctx, crd_arena* arena,
                            const crdi_dcp_rules* rules)
{
    *f = (crdi_dcp_findings){.ctx = ctx, .arena = arena, .rules = rules};
}

void crdi_dcp_findings_clear(crdi_dcp_findings* f)
{
    if (f->ctx) { crd_free(f->ctx, f->items); }
    f->items = NULL;
    f->count = f->capacity = 0;
}

static void append_finding(crdi_dcp_findings* f, const crdi_dcp_rule* rule, int line,
                           const char* text)
{
    crd_dcp_finding* grown = crdi_grow(f->ctx, f->items, &f->capacity, f->count + 1, sizeof *grown);
    const char* kept = crdi_arena_text(f->arena, text, strlen(text));
    if (grown) { f->items = grown; }
    if (!grown || !kept) {
        f->failed = true;
        return;
    }
    f->items[f->count++] = (crd_dcp_finding){rule->severity, rule->code, line, kept};
}

static int rule_of(const crdi_dcp_findings* f, const char* code)
{
    int i = 0;
    while (i < f->rules->count - 1 && strcmp(f->rules->of[i].code, code) != 0) {
        i++;
    }
    return i;
}

bool crdi_dcp_wanted(const crdi_dcp_findings* f, const char* code)
{
    return f->found[rule_of(f, code)] < f->rules->same;
}

void crdi_dcp_found(crdi_dcp_findings* f, const char* code, int line, const char* format, ...)
{
    const int i = rule_of(f, code);
    if (f->rules->of[i].severity == CRD_DCP_FAULT) { f->faults++; }
    if (f->found[i]++ >= f->rules->same || f->count >= f->rules->most || f->failed) { return; }
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    append_finding(f, &f->rules->of[i], line, text);
}

static int by_line(const void* a, const void* b)
{
    const crd_dcp_finding *x = a, *y = b;
    if (x->line != y->line) { return x->line < y->line ? -1 : 1; }
    const int order = strcmp(x->code, y->code);
    return order ? order : strcmp(x->text, y->text);
}

crd_status crdi_dcp_findings_finish(crdi_dcp_findings* f, const crd_dcp_finding** out, int* count)
{
    if (f->count) { qsort(f->items, f->count, sizeof *f->items, by_line); }
    for (int i = 0; i < f->rules->count; i++) {
        if (f->found[i] > f->rules->same) {
            char text[64];
            snprintf(text, sizeof text, "and %u more of this kind", f->found[i] - f->rules->same);
            append_finding(f, &f->rules->of[i], 0, text);
        }
    }
    crd_dcp_finding* kept = crdi_arena_new(f->arena, f->count, sizeof *kept);
    if (f->failed || !kept) { return CRD_E_MEMORY; }
    if (f->count) { memcpy(kept, f->items, f->count * sizeof *kept); }
    if (out) { *out = kept; }
    if (count) { *count = (int)f->count; }
    return CRD_OK;
}

const crd_dcp_finding* crdi_dcp_first_fault(const crd_dcp_finding* findings, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (findings[i].severity == CRD_DCP_FAULT) { return &findings[i]; }
    }
    return NULL;
}
