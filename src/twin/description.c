// Twins out of descriptions.
#include "cardan/twin.h"
#include "shared/base.h"
#include "shared/base_path.h"

#include <fnmatch.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct reader {
    crd_context* ctx;
    crd_twin_description* d;
    const char* file;
    const char* inside; // "sensors.t7", for messages
} reader;

typedef enum value_range { ANY, NOT_NEGATIVE, POSITIVE, PROBABILITY } value_range;
static const char* const range_words[] = {"a number", ">= 0", "> 0", "between 0 and 1"};

static const char* const filters[] = {"auto", "kalman", "reduced", "thesis", NULL};
static const char* const models[] = {"constant", "walk", "integrated", "oscillator", NULL};

static crd_status twin_description_fail_at(const reader* r, const crdi_json* n, crd_status st,
                                           const char* format, ...) CRD_PRINTF(4, 5);

static crd_status twin_description_fail_at(const reader* r, const crdi_json* n, crd_status st,
                                           const char* format, ...)
{
    char text[500];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const bool named = r->inside && r->inside[0];
    const char* dot = named ? strrchr(r->inside, '.') : NULL;
    const bool own = dot && n->key && strcmp(dot + 1, crdi_clip(n->key).text) == 0; // says it
    const char* key = n->key && !own ? crdi_clip(n->key).text : "";
    return crdi_json_fail(r->ctx, r->file, n->line, st, "%s%s%s%s%s", named ? r->inside : "",
                          named && *key ? "." : "", key, *key || named ? ": " : "", text);
}

// ---- values ------------------------------------------------------------------------------------

// A number, or a text with a unit ("1 ms", "5 Hz")
static crd_status twin_description_number(const reader* r, const crdi_json* n, const char* unit,
                                          value_range range, double* out)
{
    double x = n->number;
    bool good = n->kind == CRDI_JSON_NUMBER;
    if (n->kind == CRDI_JSON_TEXT) {
        crd_dimension got, want;
        bool bare;
        good = crd_quantity_parse(n->text, &x, &got, &bare) &&
               (bare ||
                (unit && crd_dimension_parse(unit, &want) && crd_dimension_equal(&got, &want)));
    }
    good = good && isfinite(x);
    if (good && range == NOT_NEGATIVE) { good = x >= 0; }
    if (good && range == POSITIVE) { good = x > 0; }
    if (good && range == PROBABILITY) { good = x > 0 && x <= 1; }
    if (!good) {
        return twin_description_fail_at(r, n, CRD_E_RANGE, "\"%s\", expected %s%s%s",
                                        crdi_clip(n->text).text, range_words[range],
                                        unit ? " in " : "", unit ? unit : "");
    }
    *out = x;
    return CRD_OK;
}

static crd_status choice(const reader* r, const crdi_json* n, const char* const* words, int* out)
{
    char list[200] = "";
    for (int i = 0; words[i]; i++) {
        if (n->kind == CRDI_JSON_TEXT && strcmp(n->text, words[i]) == 0) {
            *out = i;
            return CRD_OK;
        }
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "", words[i]);
    }
    return twin_description_fail_at(r, n, CRD_E_RANGE, "\"%s\", expected one of %s",
                                    crdi_clip(n->text).text, list);
}

static crd_status text(const reader* r, const crdi_json* n, const char** out)
{
    if (n->kind != CRDI_JSON_TEXT && n->kind != CRDI_JSON_NUMBER) {
        return twin_description_fail_at(r, n, CRD_E_FORMAT, "expected a text");
    }
    *out = n->text;
    return CRD_OK;
}

static crd_status object(const reader* r, const crdi_json* n)
{
    return n->kind == CRDI_JSON_OBJECT
               ? CRD_OK
               : twin_description_fail_at(r, n, CRD_E_FORMAT, "expected an object { key: value }");
}

typedef struct near {
    const char* const* words;
    int at;
} near;

static const char* twin_description_next_word(void* user)
{
    near* n = user;
    return n->words[n->at] ? n->words[n->at++] : NULL;
}

static crd_status unknown_key(const reader* r, const crdi_json* n, const char* const* words)
{
    near list = {words, 0};
    const char* meant = crdi_nearest(n->key, twin_description_next_word, &list);
    return twin_description_fail_at(r, n, CRD_E_FORMAT, "there is no such key%s%s%s",
                                    meant ? "; did you mean " : "", meant ? meant : "",
                                    meant ? "?" : "");
}

// ---- groups ------------------------------------------------------------------------------------

typedef struct names {
    const crd_netlist* n;
    int32_t at;
} names;

static const char* next_part(void* user)
{
    names* s = user;
    return s->at < s->n->part_count ? s->n->names + s->n->parts[s->at++].name : NULL;
}

static bool wild(const char* name)
{
    return strpbrk(name, "*?[") != NULL;
}

static void twin_description_lower(char* to, size_t size, const char* from)
{
    size_t i = 0;
    for (; from[i] && i + 1 < size; i++) {
        to[i] = (char)(from[i] >= 'A' && from[i] <= 'Z' ? from[i] + 32 : from[i]);
    }
    to[i] = 0;
}

// Parts that a name or pattern means, behind those that are there. Returns how many.
static int match(const crd_netlist* n, const char* name, int32_t* to)
{
    if (!wild(name)) {
        const int32_t part = crd_netlist_part(n, name);
        if (part >= 0 && to) { *to = part; }
        return part >= 0;
    }
    char pattern[200];
    int count = 0;
    twin_description_lower(pattern, sizeof pattern, name);
    for (int32_t i = 0; i < n->part_count; i++) {
        if (fnmatch(pattern, n->names + n->parts[i].name, 0) == 0) {
            if (to) { to[count] = i; }
            count++;
        }
    }
    return count;
}

static crd_status no_part(const reader* r, const crdi_json* n, const char* name)
{
    names all = {r->d->netlist, 0};
    const char* meant = wild(name) ? NULL : crdi_nearest(name, next_part, &all);
    return twin_description_fail_at(
        r, n, CRD_E_NOT_FOUND, "there is no part \"%s\" in the netlist%s%s%s", crdi_clip(name).text,
        meant ? "; did you mean " : "", meant ? meant : "", meant ? "?" : "");
}

static crd_status twin_description_group_of(const reader* r, const crdi_json* owner,
                                            const crdi_json* list, crd_twin_group* g)
{
    const crd_netlist* n = r->d->netlist;
    g->name = owner->key;
    const crdi_json single = {.kind = CRDI_JSON_TEXT, .text = owner->key, .line = owner->line};
    const bool many = list && list->kind == CRDI_JSON_LIST;
    const crdi_json* first = many ? list->first : list ? list : &single;
    int32_t* to = NULL;
    for (int pass = 0; pass < 2; pass++) {
        int count = 0;
        for (const crdi_json* i = first; i; i = many ? i->next : NULL) {
            if (i->kind != CRDI_JSON_TEXT && i->kind != CRDI_JSON_NUMBER) {
                return twin_description_fail_at(r, i, CRD_E_FORMAT,
                                                "parts: expected names of parts");
            }
            const int found = match(n, i->text, to ? to + count : NULL);
            if (!found) { return no_part(r, i, i->text); }
            count += found;
        }
        if (!pass) {
            to = crdi_arena_new(&r->d->arena, (size_t)count + 1, sizeof *to);
            if (!to) { return CRD_E_MEMORY; }
            g->parts = to;
            g->count = count;
        }
    }
    return CRD_OK;
}

static crd_status factors_of(const reader* r, const crdi_json* list, crd_twin_group* g)
{
    double* to = crdi_arena_new(&r->d->arena, (size_t)g->count + 1, sizeof *to);
    if (!to) { return CRD_E_MEMORY; }
    if (list->kind != CRDI_JSON_LIST || list->count != g->count) {
        return twin_description_fail_at(r, list, CRD_E_RANGE,
                                        "expected a list of %d numbers, one per part", g->count);
    }
    int at = 0;
    for (const crdi_json* i = list->first; i; i = i->next) {
        const crd_status st = twin_description_number(r, i, NULL, ANY, &to[at++]);
        if (st < 0) { return st; }
    }
    g->factors = to;
    return CRD_OK;
}

static const crdi_json* twin_description_member(const crdi_json* n, const char* key)
{
    for (const crdi_json* i = n->first; i; i = i->next) {
        if (strcmp(i->key, key) == 0) { return i; }
    }
    return NULL;
}

// ---- members -----------------------------------------------------------------------------------

static crd_status read_sensor(const reader* r, const crdi_json* n, crd_twin_sensor* s)
{
    static const char* const keys[] = {"at", "sd", "unit", NULL};
    *s = (crd_twin_sensor){.name = n->key, .sd = (double)NAN};
    crd_status st = object(r, n);
    for (const crdi_json* i = n->first; i && st >= 0; i = i->next) {
        if (strcmp(i->key, "at") == 0) {
            st = text(r, i, &s->what);
        } else if (strcmp(i->key, "sd") == 0) {
            st = twin_description_number(r, i, NULL, POSITIVE, &s->sd);
        } else if (strcmp(i->key, "unit") == 0) {
            st = text(r, i, &s->unit);
        } else {
            st = unknown_key(r, i, keys);
        }
    }
    if (st >= 0 && isnan(s->sd)) {
        st = twin_description_fail_at(r, n, CRD_E_RANGE, "sd is missing");
    }
    if (st >= 0 && !s->what) {
        // an output of that name, or a node
        const crd_netlist* net = r->d->netlist;
        for (int i = 0; i < net->output_count; i++) {
            if (strcmp(net->outputs[i].name, n->key) == 0) { s->what = n->key; }
        }
        if (!s->what) { s->what = crdi_arena_format(&r->d->arena, "v(%s)", n->key); }
        if (!s->what) { st = CRD_E_MEMORY; }
    }
    return st;
}

static crd_status read_parameter(const reader* r, const crdi_json* n, crd_twin_parameter* p)
{
    static const char* const keys[] = {"parts", "factors", "start", "sd", "drift", NULL};
    *p = (crd_twin_parameter){.start = (double)NAN, .sd = 1};
    crd_status st = object(r, n);
    if (st >= 0) {
        st = twin_description_group_of(r, n, twin_description_member(n, "parts"), &p->group);
    }
    for (const crdi_json* i = n->first; i && st >= 0; i = i->next) {
        if (strcmp(i->key, "parts") == 0) { continue; }
        if (strcmp(i->key, "factors") == 0) {
            st = factors_of(r, i, &p->group);
        } else if (strcmp(i->key, "start") == 0) {
            st = twin_description_number(r, i, NULL, POSITIVE, &p->start);
        } else if (strcmp(i->key, "sd") == 0) {
            st = twin_description_number(r, i, NULL, POSITIVE, &p->sd);
        } else if (strcmp(i->key, "drift") == 0) {
            st = twin_description_number(r, i, NULL, NOT_NEGATIVE, &p->drift);
        } else {
            st = unknown_key(r, i, keys);
        }
    }
    return st;
}

static crd_status read_source(const reader* r, const crdi_json* n, crd_twin_source* s)
{
    static const char* const keys[] = {"parts", "factors",   "model", "noise",
                                       "start", "frequency", "sd",    NULL};
    *s = (crd_twin_source){.sd = 1, .noise = (double)NAN};
    crd_status st = object(r, n);
    int model = CRD_SOURCE_WALK;
    if (st >= 0) {
        st = twin_description_group_of(r, n, twin_description_member(n, "parts"), &s->group);
    }
    for (const crdi_json* i = n->first; i && st >= 0; i = i->next) {
        if (strcmp(i->key, "parts") == 0) { continue; }
        if (strcmp(i->key, "factors") == 0) {
            st = factors_of(r, i, &s->group);
        } else if (strcmp(i->key, "model") == 0) {
            st = choice(r, i, models, &model);
        } else if (strcmp(i->key, "noise") == 0) {
            st = twin_description_number(r, i, NULL, NOT_NEGATIVE, &s->noise);
        } else if (strcmp(i->key, "frequency") == 0) {
            st = twin_description_number(r, i, "Hz", POSITIVE, &s->frequency);
        } else if (strcmp(i->key, "start") == 0) {
            st = twin_description_number(r, i, NULL, ANY, &s->start);
        } else if (strcmp(i->key, "sd") == 0) {
            st = twin_description_number(r, i, NULL, NOT_NEGATIVE, &s->sd);
        } else {
            st = unknown_key(r, i, keys);
        }
    }
    s->model = (crd_source_model)model;
    if (st >= 0 && isnan(s->noise)) {
        s->noise = 0;
        if (model == CRD_SOURCE_WALK || model == CRD_SOURCE_INTEGRATED) {
            st = twin_description_fail_at(
                r, n, CRD_E_RANGE, "noise is missing: how much the source may change per step");
        }
    }
    if (st >= 0 && model == CRD_SOURCE_OSCILLATOR && !(s->frequency > 0)) {
        st = twin_description_fail_at(r, n, CRD_E_RANGE, "frequency is missing");
    }
    return st;
}

// An object of named things into an array of them
typedef crd_status (*read_one)(const reader* r, const crdi_json* n, void* to);

static crd_status twin_description_read_all(reader* r, const crdi_json* n, size_t size,
                                            read_one read, void** to, int* count)
{
    crd_status st = object(r, n);
    if (st < 0) { return st; }
    char* all = crdi_arena_new(&r->d->arena, (size_t)n->count + 1, size);
    if (!all) { return CRD_E_MEMORY; }
    *to = all;
    *count = 0;
    for (const crdi_json* i = n->first; i && st >= 0; i = i->next) {
        char inside[100];
        snprintf(inside, sizeof inside, "%s.%s", n->key, crdi_clip(i->key).text);
        r->inside = inside;
        crdi_json plain = *i;
        st = read(r, &plain, all + (size_t)*count * size);
        r->inside = NULL;
        (*count)++;
    }
    return st;
}

static crd_status one_sensor(const reader* r, const crdi_json* n, void* to)
{
    return read_sensor(r, n, to);
}

static crd_status one_parameter(const reader* r, const crdi_json* n, void* to)
{
    return read_parameter(r, n, to);
}

static crd_status one_source(const reader* r, const crdi_json* n, void* to)
{
    return read_source(r, n, to);
}

static crd_status read_states(reader* r, const crdi_json* n)
{
    static const char* const keys[] = {"noise", "sd", NULL};
    crd_status st = object(r, n);
    r->inside = "states";
    for (const crdi_json* i = n->first; i && st >= 0; i = i->next) {
        if (strcmp(i->key, "noise") == 0) {
            st = twin_description_number(r, i, NULL, NOT_NEGATIVE, &r->d->spec.state_noise);
        } else if (strcmp(i->key, "sd") == 0) {
            st = twin_description_number(r, i, NULL, NOT_NEGATIVE, &r->d->spec.state_sd);
        } else {
            st = unknown_key(r, i, keys);
        }
    }
    r->inside = NULL;
    return st;
}

// ---- the netlist -------------------------------------------------------------------------------

static crd_status twin_description_load(reader* r, const crdi_json* top)
{
    crd_status st = CRD_OK;
    crd_twin_description* d = r->d;
    const crdi_json *named = twin_description_member(top, "circuit"),
                    *values = twin_description_member(top, "values");
    if (named) {
        st = text(r, named, &d->circuit);
        if (st < 0) { return st; }
        if (r->file && d->circuit[0] != '/') {
            d->circuit = crdi_arena_format(&d->arena, "%.*s%s", (int)crdi_folder_length(r->file),
                                           r->file, d->circuit);
            if (!d->circuit) { return CRD_E_MEMORY; }
        }
    }
    if (d->netlist) { return CRD_OK; }
    if (!named) {
        return crdi_json_fail(r->ctx, r->file, top->line, CRD_E_FORMAT,
                              "circuit is missing: the netlist that the twin follows");
    }
    crd_netlist_options opt = {0};
    if (values) {
        st = object(r, values);
        if (st < 0) { return st; }
        const char** defines =
            crdi_arena_new(&d->arena, (size_t)values->count + 1, sizeof *defines);
        if (!defines) { return CRD_E_MEMORY; }
        for (const crdi_json* i = values->first; i; i = i->next) {
            double x;
            r->inside = "values";
            st = twin_description_number(r, i, NULL, ANY, &x);
            r->inside = NULL;
            if (st < 0) { return st; }
            defines[opt.define_count] = crdi_arena_format(&d->arena, "%s=%.17g", i->key, x);
            if (!defines[opt.define_count++]) { return CRD_E_MEMORY; }
        }
        opt.defines = d->defines = defines;
        d->define_count = opt.define_count;
    }
    st = crd_netlist_load(r->ctx, d->circuit, &opt, &d->own);
    d->netlist = d->own;
    if (st == CRD_E_NOT_FOUND) {
        char why[300];
        snprintf(why, sizeof why, "%s", crd_error_text(r->ctx));
        return twin_description_fail_at(r, named, st, "%s", why);
    }
    return st;
}

// ---- the whole ---------------------------------------------------------------------------------

static crd_status read_key(reader* r, const crdi_json* n)
{
    static const char* const keys[] = {"twin",    "name",       "circuit",  "values", "step",
                                       "sensors", "parameters", "sources",  "states", "filter",
                                       "gate",    "freeze",     "thesis-q", NULL};
    crd_twin_spec* s = &r->d->spec;
    void* all = NULL;
    int word = 0;
    crd_status st = CRD_OK;
    double x = 0;
    if (strcmp(n->key, "twin") == 0) {
        st = twin_description_number(r, n, NULL, POSITIVE, &x);
        if (st >= 0 && x != 1) {
            st = twin_description_fail_at(r, n, CRD_E_UNSUPPORTED, "version %g, expected 1", x);
        }
    } else if (strcmp(n->key, "circuit") == 0 || strcmp(n->key, "values") == 0) {
        return CRD_OK; // by load
    } else if (strcmp(n->key, "name") == 0) {
        st = text(r, n, &r->d->name);
    } else if (strcmp(n->key, "step") == 0) {
        st = twin_description_number(r, n, "s", POSITIVE, &s->step);
    } else if (strcmp(n->key, "sensors") == 0) {
        st =
            twin_description_read_all(r, n, sizeof *s->sensors, one_sensor, &all, &s->sensor_count);
        s->sensors = all;
    } else if (strcmp(n->key, "parameters") == 0) {
        st = twin_description_read_all(r, n, sizeof *s->parameters, one_parameter, &all,
                                       &s->parameter_count);
        s->parameters = all;
    } else if (strcmp(n->key, "sources") == 0) {
        st =
            twin_description_read_all(r, n, sizeof *s->sources, one_source, &all, &s->source_count);
        s->sources = all;
    } else if (strcmp(n->key, "states") == 0) {
        st = read_states(r, n);
    } else if (strcmp(n->key, "filter") == 0) {
        st = choice(r, n, filters, &word);
        s->filter = (crd_twin_filter)word;
    } else if (strcmp(n->key, "gate") == 0) {
        st = twin_description_number(r, n, NULL, PROBABILITY, &s->gate);
    } else if (strcmp(n->key, "thesis-q") == 0) {
        st = twin_description_number(r, n, NULL, NOT_NEGATIVE, &s->thesis_q);
    } else if (strcmp(n->key, "freeze") == 0) {
        st = twin_description_number(r, n, NULL, NOT_NEGATIVE, &x);
        s->frozen_after = x < 1e6 ? (int)x : 1000000;
    } else {
        st = unknown_key(r, n, keys);
    }
    return st;
}

crd_status crd_twin_parse(crd_context* ctx, const char* json, size_t length, const char* file,
                          int first_line, const crd_netlist* given, crd_twin_description** out)
{
    crd_status st;
    crd_twin_description* d = crdi_new(ctx, sizeof *d);
    if (!d) { return CRD_E_MEMORY; }
    *d = (crd_twin_description){.ctx = ctx, .netlist = given, .spec = crd_twin_defaults()};
    crd_arena_init(&d->arena, ctx);
    reader r = {.ctx = ctx, .d = d, .file = file};
    crdi_json* top = NULL;
    CRD_TRY(crdi_json_parse(&d->arena, json, length,
                            (crdi_json_source){.file = file, .first_line = first_line}, &top));
    CRD_TRY(object(&r, top));
    CRD_TRY(twin_description_load(&r, top));
    for (const crdi_json* i = top->first; i; i = i->next) {
        CRD_TRY(read_key(&r, i));
    }
    *out = d;
    return CRD_OK;
fail:
    crd_twin_description_destroy(d);
    return st;
}

void crd_twin_description_destroy(crd_twin_description* d)
{
    if (!d) { return; }
    crd_netlist_destroy(d->own);
    crd_arena_clear(&d->arena);
    crd_free(d->ctx, d);
}

// ---- writing -----------------------------------------------------------------------------------

static void put_member(crd_text* out, const char* key, double x)
{
    crdi_text_add(out, ", \"%s\": ", key);
    crdi_text_json_number(out, x);
}

static void put_group(const crd_netlist* n, const crd_twin_group* g, crd_text* out)
{
    crdi_text_json(out, g->name);
    crdi_text_add(out, ": { \"parts\": [");
    for (int i = 0; i < g->count; i++) {
        crdi_text_add(out, i ? ", " : "");
        crdi_text_json(out, n->names + n->parts[g->parts[i]].name);
    }
    crdi_text_add(out, "]");
    for (int i = 0; i < g->count && g->factors; i++) {
        crdi_text_add(out, i ? ", " : ", \"factors\": [");
        crdi_text_json_number(out, g->factors[i]);
        if (i == g->count - 1) { crdi_text_add(out, "]"); }
    }
}

crd_status crd_twin_write(const crd_netlist* n, const crd_twin_spec* s, crd_text* out)
{
    crdi_text_add(out, "{ \"twin\": 1");
    if (s->step > 0) { put_member(out, "step", s->step); }
    crdi_text_add(out, ", \"filter\": \"%s\"", filters[s->filter]);
    put_member(out, "gate", s->gate);
    put_member(out, "freeze", s->frozen_after);
    put_member(out, "thesis-q", s->thesis_q);
    crdi_text_add(out, ",\n  \"states\": { \"noise\": ");
    crdi_text_json_number(out, s->state_noise);
    put_member(out, "sd", s->state_sd);
    crdi_text_add(out, " },\n  \"sensors\": {");
    for (int i = 0; i < s->sensor_count; i++) {
        crdi_text_add(out, i ? ",\n    " : "\n    ");
        crdi_text_json(out, s->sensors[i].name);
        crdi_text_add(out, ": { \"at\": ");
        crdi_text_json(out, s->sensors[i].what);
        if (s->sensors[i].unit) {
            crdi_text_add(out, ", \"unit\": ");
            crdi_text_json(out, s->sensors[i].unit);
        }
        put_member(out, "sd", s->sensors[i].sd);
        crdi_text_add(out, " }");
    }
    crdi_text_add(out, " },\n  \"parameters\": {");
    for (int i = 0; i < s->parameter_count; i++) {
        const crd_twin_parameter* p = &s->parameters[i];
        crdi_text_add(out, i ? ",\n    " : "\n    ");
        put_group(n, &p->group, out);
        if (!isnan(p->start)) { put_member(out, "start", p->start); }
        put_member(out, "sd", p->sd);
        put_member(out, "drift", p->drift);
        crdi_text_add(out, " }");
    }
    crdi_text_add(out, " },\n  \"sources\": {");
    for (int i = 0; i < s->source_count; i++) {
        const crd_twin_source* u = &s->sources[i];
        crdi_text_add(out, i ? ",\n    " : "\n    ");
        put_group(n, &u->group, out);
        crdi_text_add(out, ", \"model\": \"%s\"", models[u->model]);
        put_member(out, "noise", u->noise);
        if (u->frequency > 0) { put_member(out, "frequency", u->frequency); }
        put_member(out, "start", u->start);
        put_member(out, "sd", u->sd);
        crdi_text_add(out, " }");
    }
    crdi_text_add(out, " } }\n");
    return out->failed ? CRD_E_MEMORY : CRD_OK;
}
