// A recording of exchanged samples into memory.
#include "cardan/results.h"
#include "master/replay/replay.h"
#include "shared/master_replay.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct loader {
    crdi_exchange* x;
    crd_recording* recording;
    const crd_recording_info* info;
    crd_map groups; // name -> index
} loader;

static crd_status __attribute__((format(printf, 2, 3)))
refuse(const loader* l, const char* format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return crdi_fail(l->x->ctx, CRD_E_FORMAT, "%s: %s", l->x->path, text);
}

// ---- the description of the file ---------------------------------------------------------------

static const crdi_json* replay_load_member(const crdi_json* object, const char* key)
{
    for (const crdi_json* n = object->first; n; n = n->next) {
        if (n->key && strcmp(n->key, key) == 0) { return n; }
    }
    return NULL;
}

static double replay_load_number_of(const crdi_json* object, const char* key)
{
    const crdi_json* n = replay_load_member(object, key);
    return n && n->kind == CRDI_JSON_NUMBER ? n->number : (double)NAN;
}

static bool flag_of(const crdi_json* object, const char* key)
{
    const crdi_json* n = replay_load_member(object, key);
    return n && n->kind == CRDI_JSON_BOOL && n->truth;
}

static const char* replay_load_text_of(const crdi_json* object, const char* key)
{
    const crdi_json* n = replay_load_member(object, key);
    return n && n->kind == CRDI_JSON_TEXT ? n->text : "";
}

static crd_status replay_load_read_texts(loader* l, const crdi_json* root, const char* key,
                                         const char* const** out, int* count)
{
    const crdi_json* list = replay_load_member(root, key);
    if (!list || list->kind != CRDI_JSON_LIST) { return CRD_OK; }
    const char** texts = crdi_arena_new(&l->x->arena, (size_t)list->count, sizeof *texts);
    if (!texts) { return CRD_E_MEMORY; }
    for (const crdi_json* n = list->first; n; n = n->next) {
        if (n->kind == CRDI_JSON_TEXT) { texts[(*count)++] = n->text; }
    }
    *out = texts;
    return CRD_OK;
}

static crd_prediction read_prediction(const crdi_json* n)
{
    const char* name = replay_load_text_of(n, "predict");
    int p = CRD_PREDICTION_AUTO;
    while (p < CRD_PREDICTION_COUNT && strcmp(crd_prediction_name((crd_prediction)p), name) != 0) {
        p++;
    }
    return p < CRD_PREDICTION_COUNT ? (crd_prediction)p : CRD_PREDICTION_HOLD;
}

static void read_past(const crdi_json* link, crd_history* h)
{
    const crdi_json* list = replay_load_member(link, "past");
    for (const crdi_json* n = list ? list->first : NULL; n && h->count < CRD_HISTORY; n = n->next) {
        const double order = replay_load_number_of(n, "order"),
                     before = replay_load_number_of(n, "before");
        crd_sample* s = &h->sample[h->count];
        *s = (crd_sample){.y = {replay_load_number_of(n, "y"), replay_load_number_of(n, "rate"),
                                replay_load_number_of(n, "rate2")},
                          .order = order == 1 || order == 2 ? (int)order : 0};
        if (n->next && h->count < CRD_HISTORY - 1) { h->h[h->count] = before; }
        h->count++;
        if (n->next && !(before > 0)) { return; }
    }
}

static crd_status read_link(loader* l, const crdi_json* n, crdi_exchange_link* k)
{
    *k = (crdi_exchange_link){.from = replay_load_text_of(n, "from"),
                              .to = replay_load_text_of(n, "to"),
                              .unit = "",
                              .coupled = flag_of(n, "coupling"),
                              .curve = flag_of(n, "curve"),
                              .transform = flag_of(n, "transform"),
                              .mapped = flag_of(n, "mapped"),
                              .twice = flag_of(n, "twice"),
                              .gain = replay_load_number_of(n, "gain"),
                              .offset = replay_load_number_of(n, "offset"),
                              .predict = read_prediction(n),
                              .step = replay_load_number_of(n, "step")};
    read_past(n, &k->past);
    if (!k->from[0] || !k->to[0] || isnan(k->gain) || isnan(k->offset)) {
        return refuse(l, "%s: a connection without 'from', 'to', 'gain' or 'offset'",
                      CRD_ATTACHMENT_EXCHANGE);
    }
    return CRD_OK;
}

crd_status crdi_exchange_head(crdi_exchange* x, const char* text, size_t length)
{
    crd_status st = CRD_OK;
    loader* l = &(loader){.x = x};
    crdi_json* root = NULL;
    CRD_TRY(crdi_json_parse_most(&x->arena, text, length, CRDI_JSON_RUN_BYTES,
                                 (crdi_json_source){.file = x->path, .first_line = 0}, &root));
    const crdi_json* list = replay_load_member(root, "connections");
    x->start = replay_load_number_of(root, "start");
    x->stop = replay_load_number_of(root, "stop");
    x->tick = replay_load_number_of(root, "tick");
    x->step = replay_load_number_of(root, "step");
    x->pace = replay_load_number_of(root, "pace");
    x->controlled = flag_of(root, "controlled");
    x->file = replay_load_text_of(root, "file");
    if (replay_load_number_of(root, "format") != 1) {
        return refuse(l, "%s: its format is not 1: it was written by a newer version",
                      CRD_ATTACHMENT_EXCHANGE);
    }
    if (isnan(x->start) || isnan(x->stop) || !(x->tick > 0) || !list ||
        list->kind != CRDI_JSON_LIST || list->count == 0) {
        return refuse(l, "%s: start, stop, tick or connections are missing",
                      CRD_ATTACHMENT_EXCHANGE);
    }
    CRD_TRY(replay_load_read_texts(l, root, "order", &x->order, &x->order_count));
    CRD_TRY(replay_load_read_texts(l, root, "texts", &x->texts, &x->text_count));
    x->links = crdi_arena_new(&x->arena, (size_t)list->count, sizeof *x->links);
    if (!x->links) { return CRD_E_MEMORY; }
    for (const crdi_json* n = list->first; n; n = n->next) {
        CRD_TRY(read_link(l, n, &x->links[x->link_count++]));
    }
fail:
    return st;
}

static int find_attachment(const crd_recording_info* info, const char* name)
{
    for (int i = 0; i < info->attachment_count; i++) {
        if (strcmp(info->attachments[i].name, name) == 0) { return i; }
    }
    return -1;
}

static bool is_yaml(const char* mime)
{
    return strcmp(mime, "application/yaml") == 0;
}

static crd_status read_attachments(loader* l)
{
    crd_status st = CRD_OK;
    char* head = NULL;
    size_t length = 0;
    crdi_exchange* x = l->x;
    const int own = find_attachment(l->info, CRD_ATTACHMENT_EXCHANGE);
    const int run = find_attachment(l->info, CRD_ATTACHMENT_RUN);
    if (own < 0) {
        return refuse(l,
                      "no recording of exchanged samples: it has no %s; 'cardan run SYSTEM "
                      "--exchange FILE.mf4' makes one",
                      CRD_ATTACHMENT_EXCHANGE);
    }
    CRD_TRY(crd_recording_attachment(l->recording, own, &head, &length));
    CRD_TRY(crdi_exchange_head(x, head, length));
    if (run >= 0) { CRD_TRY(crd_recording_attachment(l->recording, run, &x->run, &x->run_length)); }
    for (int i = 0; i < l->info->attachment_count && !x->description; i++) {
        if (is_yaml(l->info->attachments[i].mime)) {
            CRD_TRY(
                crd_recording_attachment(l->recording, i, &x->description, &x->description_length));
        }
    }
fail:
    crd_free(x->ctx, head);
    return st;
}

// ---- rows --------------------------------------------------------------------------------------

enum { COLUMNS = 7 };

typedef struct rows {
    const char* names[COLUMNS]; // of signals; NULL: none
    bool needed[COLUMNS];
    double** columns[COLUMNS];
    double** time;
    int64_t* count;
} rows;

static crd_status take_block(crdi_exchange* x, const rows* r, const int* place, const crd_block* b,
                             size_t capacity[COLUMNS + 1])
{
    for (int i = 0; i <= COLUMNS; i++) {
        double** column = i < COLUMNS ? r->columns[i] : r->time;
        if (i < COLUMNS && place[i] < 0) { continue; }
        double* grown =
            crdi_grow(x->ctx, *column, &capacity[i], (size_t)(*r->count + b->rows), sizeof *grown);
        if (!grown) { return CRD_E_MEMORY; }
        *column = grown;
        const double* from = i < COLUMNS ? b->values[place[i]] : b->time;
        memcpy(grown + *r->count, from, (size_t)b->rows * sizeof *grown);
    }
    *r->count += b->rows;
    return CRD_OK;
}

static crd_status replay_load_read_rows(loader* l, const char* name, const rows* r,
                                        crd_signal_info* value)
{
    crd_status st = CRD_OK;
    crd_cursor* cursor = NULL;
    size_t capacity[COLUMNS + 1] = {0};
    int signals[COLUMNS], place[COLUMNS], count = 0;
    const int group = crdi_map_find(&l->groups, name);
    if (group < 0) { return refuse(l, "there are no rows of '%s'", name); }
    const crd_group_info* g = &l->info->groups[group];
    for (int i = 0; i < COLUMNS; i++) {
        place[i] = -1;
        for (int k = 0; r->names[i] && k < g->signal_count && place[i] < 0; k++) {
            const crd_signal_info* s = &l->info->signals[g->first_signal + k];
            if (strcmp(s->name, r->names[i]) != 0 || crd_type_kind(s->type) == CRD_BYTES) {
                continue;
            }
            if (i == 0) { *value = *s; }
            place[i] = count;
            signals[count++] = g->first_signal + k;
        }
        if (r->needed[i] && place[i] < 0) {
            return refuse(l, "'%s' has no channel '%s'", name, r->names[i]);
        }
    }
    CRD_TRY(crd_cursor_open(l->recording, group, signals, count, &cursor));
    for (crd_block b = {.rows = 1}; b.rows > 0;) {
        CRD_TRY(crd_cursor_next(cursor, &b));
        if (b.rows > 0) { CRD_TRY(take_block(l->x, r, place, &b, capacity)); }
    }
fail:
    crd_cursor_close(cursor);
    return st;
}

static crd_status read_samples(loader* l, crdi_exchange_link* k)
{
    crd_signal_info value = {.unit = ""};
    crd_status st = CRD_OK;
    crd_arena* arena = &l->x->arena;
    const char* name = crdi_arena_format(arena, "%s -> %s", k->from, k->to);
    const char* input_name = crdi_arena_format(arena, "%s -> %s: input", k->from, k->to);
    if (!name || !input_name) { return CRD_E_MEMORY; }
    const rows samples = {
        .names = {"value", "stamp", "sequence", "rate", "rate2", "event", "acted"},
        .needed = {true, true, true},
        .columns = {&k->value, &k->stamp, &k->sequence, &k->rates[0], &k->rates[1], &k->events,
                    &k->acted},
        .time = &k->arrival,
        .count = &k->count};
    CRD_TRY(replay_load_read_rows(l, name, &samples, &value));
    k->type = value.type;
    if (k->type == CRD_CLOCK) { return refuse(l, "'%s': clocks are no values", name); }
    k->unit = crdi_arena_text(arena, value.unit, strlen(value.unit));
    if (!k->unit) { return CRD_E_MEMORY; }
    if (k->coupled) {
        const rows input = {.names = {"input", "sent", "acted"},
                            .needed = {true},
                            .columns = {&k->input, &k->sent, &k->acted},
                            .time = &k->input_time,
                            .count = &k->input_count};
        CRD_TRY(replay_load_read_rows(l, input_name, &input, &value));
    }
fail:
    return st;
}

// ---- how far it goes ---------------------------------------------------------------------------

// Of a run that was killed the rasters end at different times: all of them are there up to the
// first of these.
static crd_status find_end(loader* l)
{
    crdi_exchange* x = l->x;
    double least = INFINITY, most = x->start;
    for (int i = 0; i < x->link_count; i++) {
        const crdi_exchange_link* k = &x->links[i];
        const int64_t n = k->coupled ? k->input_count : k->count;
        const double last = n == 0 ? x->start : (k->coupled ? k->input_time : k->arrival)[n - 1];
        least = fmin(least, last);
        most = fmax(most, last);
    }
    x->unfinished = l->info->unfinished;
    x->end = x->unfinished ? least : most;
    if (!(x->end > x->start + 0.5 * x->tick) || !isfinite(x->end)) {
        return refuse(l, "the recording ends at %.10g s, before the first step was done", x->end);
    }
    return CRD_OK;
}

static void count_changes(loader* l)
{
    for (int i = 0; i < l->info->event_count; i++) {
        const crd_event_info* e = &l->info->events[i];
        l->x->changes += e->kind == CRD_EVENT_MARK;
        l->x->gaps = l->x->gaps || (e->kind == CRD_EVENT_WARNING && strstr(e->text, CRDI_GAPS));
    }
}

static crd_status replay_load(loader* l)
{
    crd_status st = CRD_OK;
    crdi_exchange* x = l->x;
    CRD_TRY(crd_recording_open(x->ctx, x->path, &l->recording));
    l->info = crd_recording_describe(l->recording);
    CRD_TRY(read_attachments(l));
    CRD_TRY(crdi_map_reserve(&l->groups, (size_t)l->info->group_count));
    for (int i = 0; i < l->info->group_count; i++) {
        CRD_TRY(crdi_map_add(&l->groups, l->info->groups[i].name, i, NULL));
    }
    for (int i = 0; i < x->link_count; i++) {
        CRD_TRY(read_samples(l, &x->links[i]));
    }
    CRD_TRY(find_end(l));
    count_changes(l);
fail:
    return st;
}

crd_status crdi_exchange_load(crd_context* ctx, const char* path, crdi_exchange** out)
{
    loader l = {.x = crdi_new(ctx, sizeof *l.x)};
    if (!l.x) { return CRD_E_MEMORY; }
    l.x->ctx = ctx;
    l.x->file = "";
    crd_arena_init(&l.x->arena, ctx);
    crdi_map_init(&l.groups, ctx);
    l.x->path = crdi_arena_text(&l.x->arena, path, strlen(path));
    const crd_status st = l.x->path ? replay_load(&l) : CRD_E_MEMORY;
    crdi_map_clear(&l.groups);
    crd_recording_close(l.recording);
    if (st < 0) {
        crdi_exchange_destroy(l.x);
    } else {
        *out = l.x;
    }
    return st;
}

void crdi_exchange_destroy(crdi_exchange* x)
{
    if (!x) { return; }
    crd_context* ctx = x->ctx;
    for (int i = 0; i < x->link_count; i++) {
        const crdi_exchange_link* k = &x->links[i];
        double* const columns[] = {k->arrival,  k->stamp,    k->value,  k->sequence,
                                   k->rates[0], k->rates[1], k->events, k->input_time,
                                   k->input,    k->sent,     k->acted};
        for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
            crd_free(ctx, columns[c]);
        }
    }
    crd_free(ctx, x->description);
    crd_free(ctx, x->run);
    crd_arena_clear(&x->arena);
    crd_free(ctx, x);
}
