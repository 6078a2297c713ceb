// Recordings for the viewer: what is told about them, answers, the layout beside the first file.
#include "shared/base_units.h"
#include "shared/base_values.h"
#include "shared/results.h"
#include "web/view_object.h"

#include <math.h>
#include <string.h>

// ---- units of measure --------------------------------------------------------------------------

// What engineers choose besides the table's own names.
static const char* const compounds[] = {
    "m/s",   "km/h",    "mph",       "m/s2", "rad/s",   "rpm",   "deg/s", "1/min", "rad/s2",
    "N.m",   "kN.m",    "N.m.s",     "N/m",  "N/mm",    "N.s/m", "kg/s",  "g/s",   "kg/h",
    "l/min", "l/h",     "m3/s",      "m3/h", "W/K",     "J/K",   "J/kg",  "kW.h",  "A.h",
    "kg/m3", "kg.m2",   "V/s",       "A/s",  "K/s",     "bar/s", "m2",    "mm2",   "m3",
    "1/s",   "N.m/rad", "N.m.s/rad", "W/m2", "W/(m.K)", "S/m",   "V/m"};

typedef struct unit_list {
    crdi_json_writer* w;
    crd_dimension own;
    double factors[64], offsets[64]; // of those that are listed
    int count;
} unit_list;

// value in SI = factor * value + offset; one of several names for the same is enough.
static void list_unit(unit_list* u, const char* name)
{
    crd_dimension d;
    if (u->count == 64 || !crd_dimension_parse(name, &d) || !crd_dimension_equal(&d, &u->own)) {
        return;
    }
    for (int i = 0; i < u->count; i++) {
        if (u->factors[i] == d.factor && u->offsets[i] == d.offset) { return; }
    }
    u->factors[u->count] = d.factor;
    u->offsets[u->count++] = d.offset;
    crdi_json_begin_list(u->w, NULL);
    crdi_json_put(u->w, TEXT(NULL, name), REAL(NULL, d.factor), REAL(NULL, d.offset));
    if (u->count == 1) {
        char dimension[48];
        snprintf(dimension, sizeof dimension, "%d %d %d %d %d %d %d %d", d.kg, d.m, d.s, d.A, d.K,
                 d.mol, d.cd, d.rad);
        crdi_json_put_text(u->w, NULL, dimension);
    }
    crdi_json_end(u->w);
}

// "rad/s": [["rad/s", 1, 0, DIMENSION], ["rpm", 0.10472, 0], ...], the unit itself first.
static void put_unit(crdi_json_writer* w, const char* unit)
{
    static const char* const prefixes[] = {"", "m", "k", "M", "\u00b5", "G", "n"};
    unit_list u = {.w = w};
    if (!crd_dimension_parse(unit, &u.own)) { return; }
    crdi_json_begin_list(w, unit);
    list_unit(&u, unit);
    for (size_t i = 0; i < sizeof compounds / sizeof *compounds; i++) {
        list_unit(&u, compounds[i]);
    }
    bool prefixed = false;
    for (int i = 0; crdi_unit_symbol(i, &prefixed); i++) {
        for (size_t k = 0; k < (prefixed ? sizeof prefixes / sizeof *prefixes : 1); k++) {
            char name[48];
            snprintf(name, sizeof name, "%s%s", prefixes[k], crdi_unit_symbol(i, &prefixed));
            list_unit(&u, name);
        }
    }
    crdi_json_end(w);
}

static crd_status put_units(crdi_view* v, crdi_json_writer* w)
{
    crd_map seen;
    crd_status st = CRD_OK;
    crdi_map_init(&seen, v->ctx);
    crdi_json_begin_object(w, "units");
    for (int f = 0; f < v->file_count; f++) {
        const crd_recording_info* info = crd_recording_describe(v->files[f]);
        for (int i = 0; i < info->signal_count; i++) {
            bool fresh = false;
            const char* unit = info->signals[i].unit;
            if (!unit[0]) { continue; }
            CRD_TRY(crdi_map_add(&seen, unit, 1, &fresh));
            if (fresh && seen.count <= 2000) { put_unit(w, unit); }
        }
    }
fail:
    crdi_json_end(w);
    crdi_map_clear(&seen);
    return st;
}

// ---- what there is -----------------------------------------------------------------------------

static const char* signal_type(const crd_signal_info* s)
{
    if (s->type == CRD_ENUMERATION || s->label_count > 0) { return "enumeration"; }
    if (s->type == CRD_BOOLEAN) { return "boolean"; }
    const crd_kind kind = crd_type_kind(s->type);
    return kind == CRD_REAL ? "real" : kind == CRD_BYTES ? "text" : "integer";
}

static void put_label(crdi_json_writer* w, int64_t value, const char* text)
{
    crdi_json_begin_list(w, NULL);
    crdi_json_put(w, INT(NULL, value), TEXT(NULL, text));
    crdi_json_end(w);
}

// [name, unit, type, group, description, [[value, text], ...]]; texts: those of a signal of texts
static void put_signal(crdi_json_writer* w, const crd_signal_info* s, const char* name,
                       const char* const* texts, int text_count)
{
    crdi_json_begin_list(w, NULL);
    crdi_json_put(w, TEXT(NULL, name), TEXT(NULL, s->unit), TEXT(NULL, signal_type(s)),
                  INT(NULL, s->group), TEXT(NULL, s->description));
    if (s->label_count || text_count) {
        crdi_json_begin_list(w, NULL);
        for (int i = 0; i < s->label_count; i++) {
            put_label(w, s->labels[i].value, s->labels[i].text);
        }
        for (int i = 0; i < text_count; i++) {
            put_label(w, i, texts[i]);
        }
        crdi_json_end(w);
    }
    crdi_json_end(w);
}

static void put_events(crdi_json_writer* w, const crd_recording_info* info)
{
    enum { MOST = 10000 };
    static const char* const kinds[CRD_EVENT_KIND_COUNT] = {"start",   "stop",  "warning",
                                                            "overrun", "error", "mark"};
    crdi_json_begin_list(w, "events");
    for (int i = 0; i < info->event_count && i < MOST; i++) {
        const crd_event_info* e = &info->events[i];
        crdi_json_begin_list(w, NULL);
        crdi_json_put(w, REAL(NULL, e->time), TEXT(NULL, kinds[e->kind]), TEXT(NULL, e->text));
        crdi_json_end(w);
    }
    crdi_json_end(w);
    crdi_json_put_integer(w, "events_left_out",
                          info->event_count > MOST ? info->event_count - MOST : 0);
}

static void put_file(crdi_view* v, crdi_json_writer* w, int f, const crdi_view_choice* only)
{
    const crd_recording_info* info = crd_recording_describe(v->files[f]);
    crdi_json_begin_object(w, NULL);
    crdi_json_put(w, TEXT("path", v->paths[f]), TEXT("format", info->format),
                  TEXT("program", info->program), BOOL("unfinished", info->unfinished));
    crdi_json_begin_list(w, "groups");
    for (int i = 0; i < info->group_count; i++) {
        crdi_json_begin_list(w, NULL);
        crdi_json_put(w, TEXT(NULL, info->groups[i].name), INT(NULL, info->groups[i].rows));
        crdi_json_end(w);
    }
    crdi_json_end(w);
    crdi_json_begin_list(w, "signals");
    if (!only) {
        for (int i = 0; i < info->signal_count; i++) {
            put_signal(w, &info->signals[i], v->names[f][i], NULL, 0);
        }
    }
    for (int i = 0; only && i < only->count; i++) {
        const crdi_track* t = &only->tracks[i];
        if (t->file != f) { continue; }
        const crd_signal_info* s = &info->signals[t->signal];
        int count = 0;
        const char* const* texts =
            s->type == CRD_STRING ? crdi_overview_texts(v->overview, t, &count) : NULL;
        put_signal(w, s, v->names[f][t->signal], texts, count);
    }
    crdi_json_end(w);
    put_events(w, info);
    crdi_json_end(w);
}

crd_status crdi_view_describe(crdi_view* v, const crdi_view_choice* only, crd_text* out)
{
    crdi_json_writer w;
    crdi_json_writer_init(&w, out, CRDI_JSON_COMPACT);
    crdi_json_begin_object(&w, NULL);
    crdi_json_put(&w, TEXT("is", "hello"), TEXT("version", crd_version()));
    double first = 0, last = 0;
    const bool any = crdi_overview_span(v->overview, &first, &last);
    crdi_json_put(&w, REAL("start", any ? first : (double)NAN),
                  REAL("stop", any ? last : (double)NAN));
    crdi_json_begin_list(&w, "files");
    for (int f = 0; f < v->file_count; f++) {
        put_file(v, &w, f, only);
    }
    crdi_json_end(&w);
    crd_status st = put_units(v, &w);
    crdi_json_put_text(&w, "layout_file", v->layout_path);
    if (v->layout) {
        crdi_json_put_tree(&w, "layout", v->layout);
    } else {
        crdi_json_put_null(&w, "layout");
    }
    crdi_json_put_text(&w, "layout_error", v->layout_error);
    crdi_json_end(&w);
    return st < 0 ? st : out->failed ? CRD_E_MEMORY : CRD_OK;
}

// ---- answers -----------------------------------------------------------------------------------

static void put_words(crd_text* t, const void* words, size_t bytes)
{
    crdi_text_put(t, words, bytes); // little endian, as this machine (mdf_read_cursor.c)
}

// Answer in bytes, little endian:
//    0  u32  type: 2 look, 3 rows     8  u32  tracks
//    4  u32  id                      12  u32  0
// then each track:
//    0  f64  look: part that was seen, rows: samples that there are
//    8  u32  kind: 0 extremes, 1 samples, 2 a sentence     12  u32  count
//   16  f64  time (count), low (count), extremes: high (count); or the sentence, filled up to 8
static void put_strip(crd_text* t, const crdi_strip* s, double part)
{
    static const char zeros[8];
    const size_t length = s->error ? strlen(s->error) : 0;
    const uint32_t head[2] = {s->error     ? 2
                              : s->samples ? 1
                                           : 0,
                              s->error ? (uint32_t)length : (uint32_t)s->count};
    put_words(t, &part, sizeof part);
    put_words(t, head, sizeof head);
    if (s->error) {
        crdi_text_put(t, s->error, length);
        crdi_text_put(t, zeros, (8 - length % 8) % 8);
        return;
    }
    const size_t bytes = (size_t)s->count * sizeof(double);
    if (bytes == 0) { return; }
    put_words(t, s->time, bytes);
    put_words(t, s->low, bytes);
    if (!s->samples) { put_words(t, s->high, bytes); }
}

static void put_head(crd_text* t, uint32_t type, double id, int tracks)
{
    const uint32_t head[4] = {type, (uint32_t)id, (uint32_t)tracks, 0};
    put_words(t, head, sizeof head);
}

static crd_status answer_look(crdi_view* v, const crdi_view_request* q, crd_arena* a, crd_text* out)
{
    crdi_strip* strips = crdi_arena_new(a, (size_t)q->track_count + 1, sizeof *strips);
    if (!strips) { return CRD_E_MEMORY; }
    const crd_status st = crdi_overview_look(v->overview, q->tracks, q->track_count, q->from, q->to,
                                             q->pixels, a, strips);
    if (st < 0) { return st; }
    put_head(out, 2, q->id, q->track_count);
    for (int i = 0; i < q->track_count; i++) {
        put_strip(out, &strips[i], strips[i].part);
    }
    return CRD_OK;
}

static crd_status answer_rows(crdi_view* v, const crdi_view_request* q, crd_arena* a, crd_text* out)
{
    crdi_strip strip;
    int64_t all = 0;
    const crd_status st = crdi_overview_rows(v->overview, &q->tracks[0], q->from, q->to, q->most,
                                             q->thin, a, &strip, &all);
    if (st < 0) { return st; }
    put_head(out, 3, q->id, 1);
    put_strip(out, &strip, (double)all);
    return CRD_OK;
}

// For each track and time: [t, value, t, value], the samples on both sides.
static crd_status answer_at(crdi_view* v, const crdi_view_request* q, crdi_json_writer* w)
{
    crdi_json_begin_list(w, "values");
    for (int i = 0; i < q->track_count; i++) {
        crdi_json_begin_list(w, NULL);
        for (int k = 0; k < q->time_count; k++) {
            double t[2], x[2];
            const crd_status st = crdi_overview_at(v->overview, &q->tracks[i], q->times[k], t, x);
            if (st < 0) { return st; }
            crdi_json_begin_list(w, NULL);
            for (int n = 0; n < 2; n++) {
                crdi_json_put(w, REAL(NULL, t[n]), REAL(NULL, x[n]));
            }
            crdi_json_end(w);
        }
        crdi_json_end(w);
    }
    crdi_json_end(w);
    return CRD_OK;
}

static void answer_texts(crdi_view* v, const crdi_view_request* q, crdi_json_writer* w)
{
    int count = 0;
    const char* const* texts = crdi_overview_texts(v->overview, &q->tracks[0], &count);
    crdi_json_put_texts(w, "texts", texts, count);
}

static crd_status save_layout(crdi_view* v, const crdi_view_request* q)
{
    crd_text t;
    crd_text_init(&t, v->ctx);
    crdi_json_writer w;
    crdi_json_writer_init(&w, &t, CRDI_JSON_ROWS);
    crdi_json_put_tree(&w, NULL, q->layout);
    crdi_text_put(&t, "\n", 1);
    const crd_status st = crdi_file_write(v->ctx, v->layout_path, &t);
    crd_text_clear(&t);
    return st;
}

void crdi_view_refuse(crd_text* out, bool has_id, double id, const char* why)
{
    crdi_json_writer w;
    crdi_json_writer_init(&w, out, CRDI_JSON_COMPACT);
    crdi_json_begin_object(&w, NULL);
    crdi_json_put_text(&w, "is", "reply");
    if (has_id) {
        crdi_json_put_number(&w, "id", id);
    } else {
        crdi_json_put_null(&w, "id");
    }
    if (why) { crdi_json_put_text(&w, "error", why); }
    crdi_json_end(&w);
}

void crdi_view_answer(crdi_view* v, const crdi_view_request* q, crd_arena* arena, crd_text* out,
                      bool* binary)
{
    const size_t begin = out->length;
    crd_status st = CRD_OK;
    *binary = q->verb == CRDI_VIEW_LOOK || q->verb == CRDI_VIEW_SAMPLES;
    if (q->verb == CRDI_VIEW_LOOK) { st = answer_look(v, q, arena, out); }
    if (q->verb == CRDI_VIEW_SAMPLES) { st = answer_rows(v, q, arena, out); }
    if (q->verb == CRDI_VIEW_SAVE) { st = save_layout(v, q); }
    if (q->verb == CRDI_VIEW_AT || q->verb == CRDI_VIEW_TEXTS) {
        crdi_json_writer w;
        crdi_json_writer_init(&w, out, CRDI_JSON_COMPACT);
        crdi_json_begin_object(&w, NULL);
        crdi_json_put(&w, TEXT("is", "reply"), REAL("id", q->id));
        if (q->verb == CRDI_VIEW_AT) { st = answer_at(v, q, &w); }
        if (q->verb == CRDI_VIEW_TEXTS) { answer_texts(v, q, &w); }
        crdi_json_end(&w);
    }
    if (st == CRD_OK && q->verb != CRDI_VIEW_SAVE) { return; }
    out->length = begin;
    *binary = false;
    crdi_view_refuse(out, q->has_id, q->id, st < 0 ? crd_error_text(v->ctx) : NULL);
}

// ---- life --------------------------------------------------------------------------------------

// A layout that is not readable is no reason not to look at the results.
static crd_status load_layout(crdi_view* v)
{
    crd_text t;
    crd_text_init(&t, v->ctx);
    crdi_json* tree = NULL;
    v->layout_error = "";
    crd_status st = crdi_file_read(
        v->ctx, v->layout_path,
        &(crdi_file_need){.what = "a layout of the viewer", .most = CRDI_VIEW_MESSAGE_BYTES}, &t);
    if (st == CRD_OK) {
        st = crdi_json_parse(&v->arena, t.data, t.length,
                             (crdi_json_source){.file = v->layout_path, .first_line = 1}, &tree);
        if (st == CRD_OK && tree->kind != CRDI_JSON_OBJECT) {
            st = crdi_fail(v->ctx, CRD_E_FORMAT, "%s: expected an object", v->layout_path);
        }
    }
    crd_text_clear(&t);
    if (st == CRD_OK) { v->layout = tree; }
    if (st == CRD_E_MEMORY) { return st; }
    if (st < 0 && st != CRD_E_NOT_FOUND) {
        const char* why = crd_error_text(v->ctx);
        v->layout_error = crdi_arena_text(&v->arena, why, strlen(why));
        crdi_log(v->ctx, CRD_LOG_WARNING, "%s; the layout is not used", why);
    }
    return crdi_arena_status(&v->arena);
}

crd_status crdi_view_create(crd_context* ctx, const char* const* paths, int count, crdi_view** out)
{
    crd_status st = CRD_OK;
    crd_context* own = crdi_context_child(ctx);
    crdi_view* v = own ? crdi_new(own, sizeof *v) : NULL;
    if (!v) {
        crd_context_destroy(own);
        return crdi_fail(ctx, CRD_E_MEMORY, "view: out of memory");
    }
    v->ctx = own;
    crd_arena_init(&v->arena, own);
    crd_text_init(&v->hello, own);
    v->files = crdi_arena_new(&v->arena, (size_t)count + 1, sizeof *v->files);
    v->paths = crdi_arena_new(&v->arena, (size_t)count + 1, sizeof *v->paths);
    v->names = crdi_arena_new(&v->arena, (size_t)count + 1, sizeof *v->names);
    CRD_TRY(crdi_arena_status(&v->arena));
    for (int i = 0; i < count; i++) {
        v->paths[i] = crdi_arena_text(&v->arena, paths[i], strlen(paths[i]));
        CRD_TRY(crd_recording_open(own, paths[i], &v->files[i]));
        v->file_count++;
        const crd_recording_info* info = crd_recording_describe(v->files[i]);
        if (info->signal_count == 0) {
            CRD_TRY(crdi_fail(own, CRD_E_FORMAT, "%s: there is no signal in it, only %s", paths[i],
                              "its times"));
        }
        v->names[i] = crdi_arena_new(&v->arena, (size_t)info->signal_count, sizeof *v->names[i]);
        CRD_TRY(v->names[i] ? crdi_signal_names(&v->arena, info, v->names[i]) : CRD_E_MEMORY);
    }
    v->layout_path = crdi_arena_format(&v->arena, "%s.view.json", paths[0]);
    CRD_TRY(crdi_arena_status(&v->arena));
    CRD_TRY(load_layout(v));
    CRD_TRY(crdi_overview_create(own, v->files, v->file_count, &v->overview));
    CRD_TRY(crdi_view_describe(v, NULL, &v->hello));
    *out = v;
    return CRD_OK;
fail:
    crdi_fail(ctx, st, "%s", crd_error_text(own));
    crdi_view_destroy(v);
    return st;
}

void crdi_view_destroy(crdi_view* v)
{
    if (!v) { return; }
    crdi_overview_destroy(v->overview);
    for (int i = 0; i < v->file_count; i++) {
        crd_recording_close(v->files[i]);
    }
    crd_text_clear(&v->hello);
    crd_arena_clear(&v->arena);
    crd_context* ctx = v->ctx;
    crd_free(ctx, v);
    crd_context_destroy(ctx);
}

const char* crdi_view_error(const crdi_view* v)
{
    return crd_error_text(v->ctx);
}

const crd_text* crdi_view_hello(const crdi_view* v)
{
    return &v->hello;
}

bool crdi_view_work(crdi_view* v, int64_t budget)
{
    return crdi_overview_work(v->overview, budget);
}
