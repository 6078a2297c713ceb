// A learned cycle as a file: JSON, docs/how-to/cycles.md says what is in it. Readers take it for
// hostile.
#include "shared/base_values.h"
#include "shared/learn_cycle.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char format[] = "cardan learned cycle";
enum { MOST_SAMPLES = 10000000, MOST_LINES = 100000 };

// ---- write -------------------------------------------------------------------------------------

static void put_series(crdi_json_writer* w, const char* key, const double* x, int count)
{
    char number[32];
    crdi_json_begin_list(w, key);
    for (int i = 0; i < count; i++) {
        snprintf(number, sizeof number, "%.7g", x[i]);
        crdi_json_put_raw(w, NULL, isfinite(x[i]) ? number : "null");
    }
    crdi_json_end(w);
}

static void put_signal(crdi_json_writer* w, const crdi_repeat_signal* s, int count)
{
    crdi_json_begin_object(w, NULL);
    crdi_json_put(w, TEXT("from", s->from), TEXT("to", s->to), TEXT("unit", s->unit),
                  REAL("scale", s->scale), REAL("min", s->min), REAL("max", s->max),
                  REAL("latency", s->latency), REAL("steady", s->steady));
    put_series(w, "correction", s->correction, count);
    put_series(w, "sent", s->sent, count);
    crdi_json_end(w);
}

static void put_figure(crdi_json_writer* w, const crdi_repeat_figure* f)
{
    crdi_json_begin_object(w, NULL);
    crdi_json_put(w, TEXT("what", f->what), REAL("error", f->error), REAL("gain", f->gain),
                  BOOL("kept", f->kept), INT("limited", f->limited));
    crdi_json_end(w);
}

void crdi_repeat_write(const crdi_repeat* c, crd_text* out)
{
    crdi_json_writer w;
    crdi_json_writer_init(&w, out, CRDI_JSON_ROWS);
    crdi_json_begin_object(&w, NULL);
    crdi_json_put(&w, TEXT("format", format), INT("version", CRDI_REPEAT_VERSION),
                  REAL("start", c->start), REAL("step", c->step), INT("count", c->count),
                  REAL("first_error", c->first), REAL("error", c->best));
    crdi_json_put_texts(&w, "cycle", c->cycle, c->cycle_lines);
    crdi_json_put_texts(&w, "link", c->link, c->link_lines);
    crdi_json_begin_list(&w, "signals");
    for (int i = 0; i < c->signal_count; i++) {
        put_signal(&w, &c->signals[i], c->count);
    }
    crdi_json_end(&w);
    crdi_json_begin_list(&w, "driven");
    for (int i = 0; i < c->driven_count; i++) {
        crdi_json_begin_object(&w, NULL);
        crdi_json_put(&w, TEXT("name", c->driven[i].name), REAL("scale", c->driven[i].scale));
        put_series(&w, "samples", c->driven[i].samples, c->count);
        crdi_json_end(&w);
    }
    crdi_json_end(&w);
    crdi_json_begin_list(&w, "runs");
    for (int i = 0; i < c->figure_count; i++) {
        put_figure(&w, &c->figures[i]);
    }
    crdi_json_end(&w);
    crdi_json_end(&w);
    crdi_text_put(out, "\n", 1);
}

// ---- read --------------------------------------------------------------------------------------

typedef struct reader {
    crd_context* ctx;
    const char* file;
    crdi_repeat* c;
} reader;

static crd_status wrong(const reader* r, const crdi_json* at, const char* what)
{
    return crdi_json_fail(r->ctx, r->file, at ? at->line : 0, CRD_E_FORMAT, "%s", what);
}

// A number of an object that has to be there, in [least, most].
static crd_status need_number(const reader* r, const crdi_json* o, const char* key, double least,
                              double most, double* out)
{
    const crdi_json* x = crdi_json_member(o, key);
    if (!x || x->kind != CRDI_JSON_NUMBER || !(x->number >= least && x->number <= most)) {
        return crdi_json_fail(r->ctx, r->file, x ? x->line : o->line, CRD_E_FORMAT,
                              "%s = %s, expected a number from %g to %g", key,
                              !x                            ? "nothing"
                              : x->kind == CRDI_JSON_NUMBER ? crdi_clip(x->text).text
                                                            : "no number",
                              least, most);
    }
    *out = x->number;
    return CRD_OK;
}

static crd_status need_text(const reader* r, const crdi_json* o, const char* key, const char** out)
{
    const crdi_json* x = crdi_json_member(o, key);
    if (!x || x->kind != CRDI_JSON_TEXT) {
        return crdi_json_fail(r->ctx, r->file, o->line, CRD_E_FORMAT, "%s: expected a text", key);
    }
    *out = x->text; // lives in the arena
    return CRD_OK;
}

// As many numbers as the cycle has samples; null only with `gaps`.
static crd_status need_series(const reader* r, const crdi_json* o, const char* key, bool gaps,
                              double** out)
{
    const crdi_json* list = crdi_json_get_list(o, key);
    if (!list || list->count != r->c->count) {
        return crdi_json_fail(r->ctx, r->file, list ? list->line : o->line, CRD_E_FORMAT,
                              "%s has %d values, expected %d, one for each sample", key,
                              list ? list->count : 0, r->c->count);
    }
    double* x = crdi_arena_new(&r->c->arena, (size_t)r->c->count, sizeof *x);
    if (!x) { return CRD_E_MEMORY; }
    int i = 0;
    for (const crdi_json* v = list->first; v; v = v->next, i++) {
        if (v->kind == CRDI_JSON_NULL && gaps) {
            x[i] = NAN;
        } else if (v->kind == CRDI_JSON_NUMBER && fabs(v->number) <= 1e250) {
            x[i] = v->number;
        } else {
            return crdi_json_fail(r->ctx, r->file, v->line, CRD_E_FORMAT,
                                  "%s: value %d is not a number that can be used", key, i + 1);
        }
    }
    *out = x;
    return CRD_OK;
}

static crd_status need_lines(const reader* r, const crdi_json* o, const char* key,
                             const char* const** out, int* count)
{
    const crdi_json* list = crdi_json_get_list(o, key);
    if (!list || list->count > MOST_LINES) {
        return crdi_json_fail(r->ctx, r->file, o->line, CRD_E_FORMAT,
                              "%s: expected a list of texts", key);
    }
    const char** lines = crdi_arena_new(&r->c->arena, (size_t)list->count, sizeof *lines);
    if (!lines) { return CRD_E_MEMORY; }
    *count = 0;
    for (const crdi_json* v = list->first; v; v = v->next) {
        if (v->kind != CRDI_JSON_TEXT) { return wrong(r, v, "expected a text"); }
        lines[(*count)++] = v->text;
    }
    *out = lines;
    return CRD_OK;
}

static crd_status read_signal(const reader* r, const crdi_json* o, crdi_repeat_signal* s)
{
    crd_status st = CRD_OK;
    CRD_TRY(need_text(r, o, "from", &s->from));
    CRD_TRY(need_text(r, o, "to", &s->to));
    CRD_TRY(need_text(r, o, "unit", &s->unit));
    CRD_TRY(need_number(r, o, "scale", 1e-250, 1e250, &s->scale));
    CRD_TRY(need_number(r, o, "min", -1e250, 1e250, &s->min));
    CRD_TRY(need_number(r, o, "max", s->min, 1e250, &s->max));
    CRD_TRY(need_number(r, o, "latency", 0, 1e6, &s->latency));
    if (crdi_json_member(o, "steady")) { // not in the first files
        CRD_TRY(need_number(r, o, "steady", 0, CRDI_REPEAT_AGES, &s->steady));
    }
    CRD_TRY(need_series(r, o, "correction", false, &s->correction));
    CRD_TRY(need_series(r, o, "sent", true, &s->sent));
fail:
    return st;
}

static crd_status read_signals(const reader* r, const crdi_json* root)
{
    crd_status st = CRD_OK;
    crdi_repeat* c = r->c;
    const crdi_json* list = crdi_json_get_list(root, "signals");
    const crdi_json* driven = crdi_json_get_list(root, "driven");
    if (!list || list->count < 1 || list->count > CRDI_REPEAT_SIGNALS) {
        return wrong(r, list ? list : root, "signals: expected a list of 1 to 16 signals");
    }
    if (!driven || driven->count > MOST_LINES) { return wrong(r, root, "driven: expected a list"); }
    c->signals = crdi_arena_new(&c->arena, (size_t)list->count, sizeof *c->signals);
    c->driven = crdi_arena_new(&c->arena, (size_t)driven->count, sizeof *c->driven);
    if (!c->signals || !c->driven) { return CRD_E_MEMORY; }
    for (const crdi_json* o = list->first; o; o = o->next) {
        CRD_TRY(read_signal(r, o, &c->signals[c->signal_count++]));
    }
    for (const crdi_json* o = driven->first; o; o = o->next) {
        crdi_repeat_series* s = &c->driven[c->driven_count++];
        CRD_TRY(need_text(r, o, "name", &s->name));
        CRD_TRY(need_number(r, o, "scale", 1e-250, 1e250, &s->scale));
        CRD_TRY(need_series(r, o, "samples", true, &s->samples));
    }
fail:
    return st;
}

crd_status crdi_repeat_parse(crd_context* ctx, const char* text, size_t length, const char* file,
                             crdi_repeat* out)
{
    crd_status st = CRD_OK;
    crdi_json* root = NULL;
    double count = 0, version = 0;
    *out = (crdi_repeat){0};
    crd_arena_init(&out->arena, ctx);
    const reader r = {ctx, file, out};
    CRD_TRY(crdi_json_parse_most(&out->arena, text, length, CRDI_JSON_RUN_BYTES,
                                 (crdi_json_source){file, 1}, &root));
    if (strcmp(crdi_json_get_text(root, "format"), format) != 0) {
        return wrong(&r, root,
                     "no learned cycle, expected a file that 'cardan coupling learn cycle' wrote");
    }
    CRD_TRY(need_number(&r, root, "version", 0, 1e6, &version));
    if (version != CRDI_REPEAT_VERSION) {
        return crdi_json_fail(ctx, file, root->line, CRD_E_FORMAT,
                              "version = %g, expected %d: learn the cycle again", version,
                              CRDI_REPEAT_VERSION);
    }
    CRD_TRY(need_number(&r, root, "start", -1e12, 1e12, &out->start));
    CRD_TRY(need_number(&r, root, "step", 1e-12, 1e6, &out->step));
    CRD_TRY(need_number(&r, root, "count", 2, MOST_SAMPLES, &count));
    CRD_TRY(need_number(&r, root, "first_error", 0, 1e250, &out->first));
    CRD_TRY(need_number(&r, root, "error", 0, 1e250, &out->best));
    out->count = (int)count;
    CRD_TRY(need_lines(&r, root, "cycle", &out->cycle, &out->cycle_lines));
    CRD_TRY(need_lines(&r, root, "link", &out->link, &out->link_lines));
    CRD_TRY(read_signals(&r, root));
fail:
    return st;
}

void crdi_repeat_difference(const char* const* was, int was_count, const char* const* is,
                            int is_count, char* out, size_t room)
{
    int i = 0;
    out[0] = 0;
    while (i < was_count && i < is_count && strcmp(was[i], is[i]) == 0) {
        i++;
    }
    if (i == was_count && i == is_count) { return; }
    snprintf(out, room, "it is '%.200s', when it was learned it was '%.200s'",
             i < is_count ? is[i] : "nothing", i < was_count ? was[i] : "nothing");
}
