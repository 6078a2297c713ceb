// A description that is drawn: its text, its connections, what check says of it, and what was
// before. Every change is one of the text, by the editor of `cardan connect`, and counts only if
// check finds nothing new that is wrong with it.
#include "web/draw.h"

#include "cardan/master.h"
#include "cardan/results.h"
#include "shared/base_findings.h"
#include "shared/base_path.h"
#include "shared/base_values.h"
#include "shared/system_edit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNDOS = 200, UNDO_BYTES = 64 << 20, SHOWN_FINDINGS = 200 };

// A text and what it says.
typedef struct reading {
    crd_context* ctx; // its own: failures are noted, warnings kept
    crd_system* system;
    crdi_findings errors, warnings;
} reading;

struct crdi_draw {
    crd_context* ctx; // its own
    crd_arena arena;
    const char* path;
    crd_system_base* base;
    bool draft;      // the connections are proposals
    crd_text* texts; // those before, the present one, those that were undone
    int count, now;
    crd_text saved; // what the file held when it was last read or written; data NULL: it is new
    reading *first, *read; // of the text at the beginning, and of the present one; may be the same
    crd_context* quiet;
    crd_ports* ports;
    const crd_proposal* proposals;
    int proposal_count;
    int64_t version;
    crd_text hello, state;
};

static void keep_warning(void* user, crd_level level, const char* text)
{
    crdi_findings* f = &((reading*)user)->warnings;
    if (level > CRD_LOG_WARNING) { return; }
    if (level == CRD_LOG_ERROR) { f = &((reading*)user)->errors; }
    const char** grown =
        crdi_grow(f->arena.ctx, f->texts, &f->capacity, (size_t)f->count + 1, sizeof *grown);
    const char* copy = grown ? crdi_arena_text(&f->arena, text, strlen(text)) : NULL;
    if (grown) { f->texts = grown; }
    if (copy) { f->texts[f->count++] = copy; }
}

static void reading_destroy(crdi_draw* d, reading* r)
{
    if (!r) { return; }
    crd_system_destroy(r->system);
    crdi_findings_clear(&r->errors);
    crdi_findings_clear(&r->warnings);
    crd_context_destroy(r->ctx);
    crd_free(d->ctx, r);
}

// As `cardan check` does it. A failure: nothing can be drawn of this text.
static crd_status reading_make(crdi_draw* d, const crd_text* text, reading** out)
{
    crd_status st = CRD_OK;
    crd_master* m = NULL;
    reading* r = crdi_new(d->ctx, sizeof *r);
    if (!r) { return CRD_E_MEMORY; }
    crd_arena_init(&r->errors.arena, d->ctx);
    crd_arena_init(&r->warnings.arena, d->ctx);
    r->ctx = crdi_context_tap(d->ctx, keep_warning, r);
    CRD_TRY(r->ctx ? CRD_OK : CRD_E_MEMORY);
    crdi_findings_collect(r->ctx, &r->errors);
    CRD_TRY(crd_system_load_on(r->ctx, text->data, text->length, d->path, d->base, &r->system));
    if (r->system->results.path) {
        CRD_TRY(crdi_go_on(r->ctx, crd_recorder_check_path(r->ctx, r->system->results.path)));
    }
    CRD_TRY(crdi_go_on(r->ctx, crd_master_create(r->ctx, r->system, NULL, &m)));
    crd_master_destroy(m);
    *out = r;
    return CRD_OK;
fail:
    (void)crdi_fail(d->ctx, st, "%s", r->ctx ? crd_error_text(r->ctx) : "out of memory");
    reading_destroy(d, r);
    return st;
}

// It is that of the present text from now on.
static void show_reading(crdi_draw* d, reading* r)
{
    if (d->read != d->first) { reading_destroy(d, d->read); }
    d->read = r;
}

// ---- what the page is told ---------------------------------------------------------------------

// The sentence behind "path:12: ", and its line; 0: none.
static const char* sentence(const crdi_draw* d, const char* text, int* line)
{
    const size_t n = strlen(d->path);
    *line = 0;
    if (strncmp(text, d->path, n) != 0 || text[n] != ':') { return text; }
    char* end;
    const long at = strtol(text + n + 1, &end, 10);
    if (at <= 0 || at > 100000000 || strncmp(end, ": ", 2) != 0) { return text; }
    *line = (int)at;
    return end + 2;
}

static void put_findings(const crdi_draw* d, crdi_json_writer* w)
{
    const reading* r = d->read;
    crdi_json_begin_list(w, "findings");
    for (int i = 0; i < r->errors.count + r->warnings.count && i < SHOWN_FINDINGS; i++) {
        const bool error = i < r->errors.count;
        int line;
        const char* text =
            sentence(d, error ? r->errors.texts[i] : r->warnings.texts[i - r->errors.count], &line);
        crdi_json_begin_list(w, NULL);
        crdi_json_put(w, TEXT(NULL, error ? "error" : "warning"), INT(NULL, line),
                      TEXT(NULL, text));
        crdi_json_end(w);
    }
    crdi_json_end(w);
    crdi_json_put(w, INT("errors", r->errors.count), INT("warnings", r->warnings.count));
}

static bool is_saved(const crdi_draw* d)
{
    const crd_text* t = &d->texts[d->now];
    return d->saved.data && d->saved.length == t->length &&
           memcmp(d->saved.data, t->data, t->length) == 0;
}

// [unit, output, unit, input, line]; line 0: of what stands below the description.
static void put_connections(const crdi_draw* d, crdi_json_writer* w)
{
    const crd_system* s = d->read->system;
    crdi_json_begin_list(w, "connections");
    for (int i = 0; i < s->connection_count; i++) {
        const crd_connection_spec* c = &s->connections[i];
        const bool own = c->place.file && strcmp(c->place.file, d->path) == 0;
        crdi_json_begin_list(w, NULL);
        crdi_json_put(w, INT(NULL, c->from_unit), TEXT(NULL, c->from), INT(NULL, c->to_unit),
                      TEXT(NULL, c->to), INT(NULL, own ? c->place.line : 0));
        crdi_json_end(w);
    }
    crdi_json_end(w);
}

static crd_status tell_state(crdi_draw* d)
{
    const crd_system* s = d->read->system;
    const size_t folder = crdi_folder_length(d->path);
    const char* results = s->results.path ? s->results.path : "";
    if (folder && strncmp(results, d->path, folder) == 0) { results += folder; }
    crdi_json_writer w;
    d->state.length = 0;
    d->state.failed = false;
    crdi_json_writer_init(&w, &d->state, CRDI_JSON_COMPACT);
    crdi_json_begin_object(&w, NULL);
    crdi_json_put_integer(&w, "version", d->version);
    put_connections(d, &w);
    put_findings(d, &w);
    crdi_json_put(&w, REAL("step", s->run.step), REAL("stop", s->run.stop),
                  TEXT("results", results), INT("undo", d->now), INT("redo", d->count - d->now - 1),
                  BOOL("saved", is_saved(d)));
    crdi_json_end(&w);
    return d->state.failed ? CRD_E_MEMORY : CRD_OK;
}

// [unit, name, is output, unit of measure, type, dimension, elements, has a start value]
static void put_port(crdi_json_writer* w, const crd_endpoint* p)
{
    static const char* const kinds[] = {
        [CRD_REAL] = "real", [CRD_INTEGER] = "integer", [CRD_BYTES] = "text"};
    const crd_kind kind = crd_type_kind(p->type);
    char exponents[64] = "";
    if (p->has_dimension) {
        const crd_dimension* x = &p->dimension;
        snprintf(exponents, sizeof exponents, "%d %d %d %d %d %d %d", x->kg, x->m, x->s, x->A, x->K,
                 x->mol, x->cd);
    }
    crdi_json_begin_list(w, NULL);
    crdi_json_put(w, INT(NULL, p->unit), TEXT(NULL, p->name),
                  BOOL(NULL, p->causality == CRD_OUTPUT), TEXT(NULL, p->measure),
                  TEXT(NULL, p->type == CRD_ENUMERATION ? "enumeration"
                             : p->type == CRD_BOOLEAN   ? "boolean"
                                                        : kinds[kind]),
                  TEXT(NULL, exponents), INT(NULL, p->size), BOOL(NULL, p->taken));
    crdi_json_end(w);
}

static crd_status tell_hello(crdi_draw* d)
{
    crdi_json_writer w;
    const crd_ports* p = d->ports;
    crdi_json_writer_init(&w, &d->hello, CRDI_JSON_COMPACT);
    crdi_json_begin_object(&w, NULL);
    crdi_json_put(&w, TEXT("is", "hello"), TEXT("version", crd_version()), TEXT("path", d->path),
                  TEXT("title", d->read->system->title), BOOL("draft", d->draft));
    crdi_json_begin_list(&w, "units"); // [name, kind, why it could not be opened]
    for (int i = 0; i < p->unit_count; i++) {
        crdi_json_begin_list(&w, NULL);
        crdi_json_put(&w, TEXT(NULL, p->units[i].name),
                      TEXT(NULL, p->opened[i] ? p->opened[i]->info.kind : ""),
                      TEXT(NULL, p->failures[i]));
        crdi_json_end(&w);
    }
    crdi_json_end(&w);
    crdi_json_begin_list(&w, "ports");
    for (int i = 0; i < p->port_count; i++) {
        put_port(&w, &p->ports[i]);
    }
    crdi_json_end(&w);
    crdi_json_begin_list(&w, "proposals"); // [port, port, how sure, why]
    for (int i = 0; i < d->proposal_count; i++) {
        const crd_proposal* x = &d->proposals[i];
        crdi_json_begin_list(&w, NULL);
        crdi_json_put(&w, INT(NULL, x->from), INT(NULL, x->to),
                      TEXT(NULL, crd_sureness_name(x->sure)), TEXT(NULL, x->why));
        crdi_json_end(&w);
    }
    crdi_json_end(&w);
    crdi_json_end(&w);
    return d->hello.failed ? CRD_E_MEMORY : CRD_OK;
}

// ---- changes -----------------------------------------------------------------------------------

static bool is_among(const crdi_draw* d, const crdi_findings* f, const char* text)
{
    int line;
    for (int i = 0; i < f->count; i++) {
        if (strcmp(sentence(d, f->texts[i], &line), text) == 0) { return true; }
    }
    return false;
}

// CRD_E_RANGE with what is wrong now and was not before.
static crd_status nothing_new_is_wrong(crdi_draw* d, const reading* r)
{
    int line;
    for (int i = 0; i < r->errors.count; i++) {
        const char* text = sentence(d, r->errors.texts[i], &line);
        if (!is_among(d, &d->read->errors, text)) {
            return crdi_fail(d->ctx, CRD_E_RANGE, "%s", text);
        }
    }
    return CRD_OK;
}

static void forget(crdi_draw* d, int from, int to)
{
    for (int i = from; i < to; i++) {
        crd_text_clear(&d->texts[i]);
    }
    memmove(d->texts + from, d->texts + to, (size_t)(d->count - to) * sizeof *d->texts);
    d->count -= to - from;
}

// The oldest go when there are too many.
static void forget_oldest(crdi_draw* d)
{
    size_t bytes = 0;
    int keep = 0;
    while (keep < d->now && keep < UNDOS && bytes < UNDO_BYTES) {
        bytes += d->texts[d->now - 1 - keep++].length;
    }
    const int gone = d->now - keep;
    forget(d, 0, gone);
    d->now -= gone;
}

// `next` belongs to the drawing if this succeeds.
static crd_status take_text(crdi_draw* d, crd_text* next)
{
    reading* r = NULL;
    crd_status st = reading_make(d, next, &r);
    if (st >= 0) { st = nothing_new_is_wrong(d, r); }
    if (st < 0) {
        reading_destroy(d, r);
        return st;
    }
    show_reading(d, r);
    forget(d, d->now + 1, d->count);
    d->texts[d->count++] = *next; // there is room for UNDOS + 2
    d->now++;
    forget_oldest(d);
    d->version++;
    return tell_state(d);
}

static crd_status change(crdi_draw* d, const crdi_draw_request* q)
{
    const crd_text* t = &d->texts[d->now];
    crd_text next;
    crd_text_init(&next, d->ctx);
    crd_status st =
        q->verb == CRDI_DRAW_CONNECT
            ? crd_system_text_connect(d->ctx, t->data, t->length, d->path, q->from, q->to, &next)
        : q->verb == CRDI_DRAW_DISCONNECT
            ? crd_system_text_disconnect(d->ctx, t->data, t->length, d->path, q->from, q->to, &next)
            : crdi_system_text_set(d->ctx, t->data, t->length, d->path, q->key, q->value, &next);
    if (st >= 0) { st = take_text(d, &next); }
    if (st < 0) { crd_text_clear(&next); }
    return st;
}

// Texts that were there were right.
static crd_status go_to(crdi_draw* d, int place)
{
    if (place < 0 || place >= d->count) {
        return crdi_fail(d->ctx, CRD_E_RANGE, "there is nothing to %s",
                         place < 0 ? "undo" : "do again");
    }
    reading* r = NULL;
    const crd_status st = reading_make(d, &d->texts[place], &r);
    if (st < 0) { return st; }
    show_reading(d, r);
    d->now = place;
    d->version++;
    return tell_state(d);
}

// Whether somebody else's file stands there: `*taken`.
static crd_status look_at_file(crdi_draw* d, bool* taken)
{
    static const crdi_file_need need = {.what = "a description", .most = 256 << 20};
    crd_text there;
    crd_text_init(&there, d->ctx);
    crd_status st = crdi_file_read(d->ctx, d->path, &need, &there);
    *taken =
        st != CRD_E_NOT_FOUND && (st < 0 || !d->saved.data || there.length != d->saved.length ||
                                  memcmp(there.data, d->saved.data, there.length) != 0);
    crd_text_clear(&there);
    return st == CRD_E_MEMORY ? st : CRD_OK;
}

static crd_status save(crdi_draw* d, bool overwrite, bool* exists)
{
    const crd_text* t = &d->texts[d->now];
    crd_status st = CRD_OK;
    *exists = false;
    if (!overwrite) { CRD_TRY(look_at_file(d, exists)); }
    if (*exists) { return CRD_OK; }
    CRD_TRY(crdi_file_write(d->ctx, d->path, t));
    d->saved.length = 0;
    d->saved.failed = false;
    crdi_text_put(&d->saved, t->data, t->length);
    CRD_TRY(d->saved.failed ? CRD_E_MEMORY : tell_state(d));
fail:
    return st;
}

// ---- answers -----------------------------------------------------------------------------------

void crdi_draw_answer(crdi_draw* d, const crdi_draw_request* q, crd_text* out)
{
    static const char stale[] = "the description was changed elsewhere meanwhile; what is shown "
                                "now is the newest";
    const bool any = q->verb == CRDI_DRAW_STATE || q->verb == CRDI_DRAW_TEXT;
    bool exists = false;
    crd_status st = CRD_OK;
    if (!any && (int64_t)q->version != d->version) {
        st = crdi_fail(d->ctx, CRD_E_RANGE, "%s", stale);
    } else if (q->verb == CRDI_DRAW_UNDO || q->verb == CRDI_DRAW_REDO) {
        st = go_to(d, d->now + (q->verb == CRDI_DRAW_UNDO ? -1 : 1));
    } else if (q->verb == CRDI_DRAW_SAVE) {
        st = save(d, q->overwrite, &exists);
    } else if (!any) {
        st = change(d, q);
    }
    crdi_text_add(out, "{\"is\":\"reply\",\"id\":%.0f", q->id);
    if (st < 0) {
        crdi_text_add(out, ",\"error\":");
        crdi_text_json(out, crd_error_text(d->ctx));
    }
    if (exists) { crdi_text_add(out, ",\"exists\":true"); }
    if (q->verb == CRDI_DRAW_TEXT) {
        crdi_text_add(out, ",\"text\":");
        crdi_text_json(out, d->texts[d->now].data);
    }
    crdi_text_add(out, ",\"state\":%s}", d->state.data);
}

const crd_text* crdi_draw_hello(const crdi_draw* d)
{
    return &d->hello;
}

// ---- life --------------------------------------------------------------------------------------

// For every input, whether it is connected or not: how sure a line is remains to be seen.
static crd_status propose(crdi_draw* d)
{
    crd_status st = CRD_OK;
    const crd_system* s = d->read->system;
    crd_ports* p = d->ports;
    crd_map inputs;
    crdi_map_init(&inputs, d->ctx);
    for (int i = 0; i < p->port_count; i++) {
        if (p->ports[i].causality != CRD_INPUT) { continue; }
        const char* key = crdi_arena_format(&d->arena, "%d %s", p->ports[i].unit, p->ports[i].name);
        CRD_TRY(key ? crdi_map_add(&inputs, key, i, NULL) : CRD_E_MEMORY);
    }
    for (int i = 0; i < s->connection_count; i++) {
        const crd_connection_spec* c = &s->connections[i];
        const char* key = crdi_arena_format(&d->arena, "%d %s", c->to_unit, c->to);
        const int port = key ? crdi_map_find(&inputs, key) : -1;
        if (port >= 0) { p->ports[port].taken = false; }
    }
    CRD_TRY(crd_propose(&p->arena, p->units, p->unit_count, p->ports, p->port_count, &d->proposals,
                        &d->proposal_count));
fail:
    crdi_map_clear(&inputs);
    return st;
}

crd_status crdi_draw_create(crd_context* ctx, const crdi_draw_options* o, crdi_draw** out)
{
    crd_status st = CRD_OK;
    crd_context* own = crdi_context_child(ctx);
    crdi_draw* d = own ? crdi_new(own, sizeof *d) : NULL;
    if (!d) {
        crd_context_destroy(own);
        return crdi_fail(ctx, CRD_E_MEMORY, "drawing: out of memory");
    }
    d->ctx = own;
    d->draft = o->draft;
    d->base = o->base;
    crd_arena_init(&d->arena, own);
    crd_text_init(&d->saved, own);
    crd_text_init(&d->hello, own);
    crd_text_init(&d->state, own);
    d->path = crdi_arena_text(&d->arena, o->path, strlen(o->path));
    d->texts = crdi_arena_new(&d->arena, UNDOS + 2, sizeof *d->texts);
    CRD_TRY(crdi_arena_status(&d->arena));
    crd_text_init(&d->texts[0], own);
    crdi_text_put(&d->texts[0], o->text->data, o->text->length);
    d->count = 1;
    if (!o->draft) { crdi_text_put(&d->saved, o->text->data, o->text->length); }
    CRD_TRY(d->texts[0].failed || d->saved.failed ? CRD_E_MEMORY : CRD_OK);
    CRD_TRY(reading_make(d, &d->texts[0], &d->first));
    d->read = d->first;
    crd_context_options quiet = crd_context_defaults();
    quiet.level = CRD_LOG_ERROR; // what units warn of is among the findings
    d->quiet = crd_context_create(&quiet);
    CRD_TRY(d->quiet ? CRD_OK : CRD_E_MEMORY);
    st = crd_ports_create(d->quiet, d->read->system, &d->ports);
    if (st >= 0) { st = propose(d); }
    if (st < 0) {
        st = crdi_fail(own, st, "%s", crd_error_text(d->quiet));
        goto fail;
    }
    CRD_TRY(tell_hello(d));
    CRD_TRY(tell_state(d));
    *out = d;
    return CRD_OK;
fail:
    crdi_fail(ctx, st, "%s", crd_error_text(own));
    crdi_draw_destroy(d);
    return st;
}

bool crdi_draw_saved(const crdi_draw* d)
{
    return is_saved(d);
}

void crdi_draw_destroy(crdi_draw* d)
{
    if (!d) { return; }
    crd_ports_destroy(d->ports);
    crd_context_destroy(d->quiet);
    show_reading(d, NULL);
    reading_destroy(d, d->first);
    for (int i = 0; i < d->count; i++) {
        crd_text_clear(&d->texts[i]);
    }
    crd_text_clear(&d->saved);
    crd_text_clear(&d->hello);
    crd_text_clear(&d->state);
    crd_arena_clear(&d->arena);
    crd_context* ctx = d->ctx;
    crd_free(ctx, d);
    crd_context_destroy(ctx);
}
