// Connections with maps: the stages that a value passes, each one a table of pairs or a gain and
// an offset. Texts become numbers here, once, so that a step only looks up.
//
// A map's texts mean values of what stands beside it: of the source in front of the first stage, of
// the target behind the last. In between, where connectors of nested systems have types of their
// own, a number is a number, a name is an item of the source or of the target if one of them has
// it, and else a word that the next map has to know.
#include "master/plan/plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// A stage as it was written; those that change nothing are left out.
typedef struct {
    const crd_map_entry* map;
    int map_count;
    double gain, offset;
} written;

typedef struct {
    crdi_plan* plan;
    const crdi_mapping_ends* ends;
    written* stages;
    int count;
    const char** words; // that are neither numbers nor items, by their code
    int word_count;
} maker;

bool crdi_mapping_needed(const crd_connection_spec* c)
{
    bool needed = c->map_count > 0;
    for (int i = 0; i < c->via_count; i++) {
        needed = needed || c->via[i].map_count > 0;
    }
    return needed;
}

static crd_status __attribute__((format(printf, 2, 3)))
refuse(const maker* k, const char* format, ...)
{
    char text[700];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const crdi_mapping_ends* e = k->ends;
    return crdi_fail(k->plan->ctx, CRD_E_RANGE, "%smap of %s.%s -> %s.%s: %s", e->at,
                     e->source->name, e->spec->from, e->target->name, e->spec->to, text);
}

static const crd_variable* map_source_of(const maker* k)
{
    return &k->ends->source->info.variables[k->ends->from];
}

// ---- texts -------------------------------------------------------------------------------------

static crd_status value_of_end(const maker* k, crd_unit* u, int32_t variable, const char* text,
                               crdi_scalar* out)
{
    *out = (crdi_scalar){.is_real =
                             crd_type_kind((crd_type)u->info.variables[variable].type) == CRD_REAL};
    const crd_status st = crdi_unit_parse_one(u, variable, text, &out->real, &out->integer);
    return st < 0 ? refuse(k, "%s", crd_error_text(u->ctx)) : CRD_OK;
}

static bool is_item(const crd_unit* u, int32_t variable, const char* text, int64_t* value)
{
    return u->info.variables[variable].type == CRD_ENUMERATION &&
           crdi_unit_item(u, variable, text, value);
}

static crdi_scalar whole(int64_t x)
{
    return (crdi_scalar){.integer = x};
}

// INT64_MIN and up: no item and no count has such a value.
static crdi_scalar value_between(maker* k, const char* text, bool* is_word)
{
    const crdi_mapping_ends* e = k->ends;
    int64_t x = 0;
    double real = 0;
    *is_word = false;
    if (crdi_parse_int64(text, strlen(text), &x)) { return whole(x); }
    if (crdi_parse_double(text, strlen(text), &real)) {
        return (crdi_scalar){.is_real = true, .real = real};
    }
    if (is_item(e->source, e->from, text, &x) || is_item(e->target, e->to, text, &x)) {
        return whole(x);
    }
    if (strcasecmp(text, "true") == 0 || strcasecmp(text, "false") == 0) {
        return whole(text[0] == 't' || text[0] == 'T');
    }
    int i = 0;
    while (i < k->word_count && strcmp(k->words[i], text) != 0) {
        i++;
    }
    if (i == k->word_count) { k->words[k->word_count++] = text; }
    *is_word = true;
    return whole(INT64_MIN + i);
}

static bool has_entry(const written* s, const char* text)
{
    for (int i = 0; i < s->map_count; i++) {
        if (strcmp(s->map[i].from, text) == 0) { return true; }
    }
    return false;
}

static crd_status read_from(maker* k, int stage, const char* text, int64_t* out)
{
    bool is_word = false;
    crdi_scalar x = {0};
    if (stage == 0) {
        const crd_status st = value_of_end(k, k->ends->source, k->ends->from, text, &x);
        *out = x.integer;
        return st;
    }
    x = value_between(k, text, &is_word);
    *out = x.is_real ? (int64_t)x.real : x.integer;
    if (x.is_real && !(fabs(x.real) < 9e15 && (double)*out == x.real)) {
        return refuse(k, "'%s', expected a whole number or a name", text);
    }
    return CRD_OK;
}

static crd_status read_to(maker* k, int stage, const char* text, crdi_scalar* out)
{
    if (stage + 1 == k->count) { return value_of_end(k, k->ends->target, k->ends->to, text, out); }
    bool is_word = false;
    *out = value_between(k, text, &is_word);
    if (is_word && !has_entry(&k->stages[stage + 1], text)) {
        return refuse(k, "'%s' is no number, and what comes next on the way does not know it",
                      text);
    }
    return CRD_OK;
}

// ---- stages ------------------------------------------------------------------------------------

static int by_from(const void* a, const void* b)
{
    const crdi_pair *x = a, *y = b;
    return x->from < y->from ? -1 : x->from > y->from;
}

static crd_status make_pairs(maker* k, int stage, crdi_stage* out)
{
    crd_status st = CRD_OK;
    const written* w = &k->stages[stage];
    crdi_pair* pairs = crdi_arena_new(k->plan->arena, (size_t)w->map_count, sizeof *pairs);
    if (!pairs) { return CRD_E_MEMORY; }
    for (int i = 0; i < w->map_count; i++) {
        pairs[i].text = w->map[i].from;
        CRD_TRY(read_from(k, stage, w->map[i].from, &pairs[i].from));
        CRD_TRY(read_to(k, stage, w->map[i].to, &pairs[i].to));
    }
    qsort(pairs, (size_t)w->map_count, sizeof *pairs, by_from);
    for (int i = 1; i < w->map_count; i++) {
        if (pairs[i - 1].from == pairs[i].from) {
            return refuse(k, "'%s' and '%s' are the same value, expected one entry for it",
                          pairs[i - 1].text, pairs[i].text);
        }
    }
    *out = (crdi_stage){.pairs = pairs, .count = w->map_count};
fail:
    return st;
}

static void note_stage(maker* k, const crd_map_entry* map, int map_count, bool transforms,
                       double gain, double offset)
{
    if (map_count > 0) {
        k->stages[k->count++] = (written){.map = map, .map_count = map_count};
    } else if (transforms) {
        k->stages[k->count++] = (written){.gain = gain, .offset = offset};
    }
}

enum { MOST_ENTRIES = 100000 };

static crd_status note_stages(maker* k)
{
    const crd_connection_spec* c = k->ends->spec;
    int64_t texts = 2 * (int64_t)c->map_count;
    for (int i = 0; i < c->via_count; i++) {
        texts += 2 * (int64_t)c->via[i].map_count;
    }
    if (texts > MOST_ENTRIES) {
        return refuse(k, "%lld entries, expected at most %d", (long long)texts / 2,
                      MOST_ENTRIES / 2);
    }
    k->stages = crdi_new_array(k->plan->ctx, (size_t)c->via_count + 1, sizeof *k->stages);
    k->words = crdi_new_array(k->plan->ctx, (size_t)texts, sizeof *k->words);
    if (!k->stages || !k->words) { return CRD_E_MEMORY; }
    for (int i = 0; i < c->via_count; i++) {
        const crd_transformation* t = &c->via[i];
        note_stage(k, t->map, t->map_count, t->has_transformation, t->gain, t->offset);
    }
    note_stage(k, c->map, c->map_count, c->has_transformation, c->gain, c->offset);
    return CRD_OK;
}

crd_status crdi_mapping_build(crdi_plan* plan, const crdi_mapping_ends* ends,
                              const crdi_mapping** out)
{
    crd_status st = CRD_OK;
    maker k = {.plan = plan, .ends = ends};
    if (crd_type_kind((crd_type)map_source_of(&k)->type) != CRD_INTEGER) {
        return refuse(&k,
                      "'%s' is a real number, a map takes a Boolean, an integer or an enumeration",
                      map_source_of(&k)->name);
    }
    crdi_mapping* mapping = crdi_arena_new(plan->arena, 1, sizeof *mapping);
    if (!mapping) { return CRD_E_MEMORY; }
    CRD_TRY(note_stages(&k));
    crdi_stage* stages = crdi_arena_new(plan->arena, (size_t)k.count, sizeof *stages);
    if (!stages) {
        st = CRD_E_MEMORY;
        goto fail;
    }
    for (int i = 0; i < k.count; i++) {
        if (k.stages[i].map) {
            CRD_TRY(make_pairs(&k, i, &stages[i]));
        } else {
            stages[i] = (crdi_stage){.gain = k.stages[i].gain, .offset = k.stages[i].offset};
        }
    }
    *mapping = (crdi_mapping){.stages = stages, .count = k.count};
    *out = mapping;
fail:
    crd_free(plan->ctx, k.stages);
    crd_free(plan->ctx, (void*)k.words);
    return st;
}

// ---- on the way --------------------------------------------------------------------------------

static const crdi_pair* map_look_up(const crdi_stage* s, const crdi_scalar* x)
{
    int64_t key = x->integer;
    if (x->is_real) {
        if (!(fabs(x->real) < 9e18) || x->real != nearbyint(x->real)) { return NULL; }
        key = (int64_t)x->real;
    }
    int low = 0, high = s->count;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (s->pairs[middle].from < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < s->count && s->pairs[low].from == key ? &s->pairs[low] : NULL;
}

bool crdi_mapping_apply(const crdi_mapping* c, bool is_unsigned, crdi_scalar* x, bool* fits)
{
    bool changed = false;
    *fits = false;
    for (int i = 0; i < c->count; i++) {
        const crdi_stage* s = &c->stages[i];
        if (s->pairs) {
            const crdi_pair* pair = map_look_up(s, x);
            *fits = pair != NULL;
            if (pair) { *x = pair->to; }
            changed = changed || pair;
        } else {
            const double before = x->is_real                ? x->real
                                  : is_unsigned && !changed ? (double)(uint64_t)x->integer
                                                            : (double)x->integer;
            *x = (crdi_scalar){.is_real = true, .real = s->gain * before + s->offset};
            *fits = false;
            changed = true;
        }
    }
    return changed;
}
