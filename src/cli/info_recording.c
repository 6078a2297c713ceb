// cardan info on a recording: CSV, MF4, MAT. The data are walked through once, however long.
#include "cardan/results.h"
#include "cli/info.h"

#include <inttypes.h>
#include <math.h>
#include <time.h>

typedef struct extent {
    double min, max;
    int64_t not_finite;
} extent;

// What walking through the groups found.
typedef struct survey {
    const crd_recording_info* info;
    extent* signals;        // (signal_count)
    double *starts, *stops; // (group_count), NaN: no rows
    int64_t* rows;          // (group_count)
} survey;

static void extend(extent* e, const double* values, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++) {
        const double x = values[i];
        if (!isfinite(x)) {
            e->not_finite++;
            continue;
        }
        e->min = fmin(e->min, x); // of NaN and a number it is the number
        e->max = fmax(e->max, x);
    }
}

static crd_status walk_group(crd_context* ctx, crd_recording* r, survey* s, int group)
{
    const crd_group_info* g = &s->info->groups[group];
    int* signals = crdi_new_array(ctx, (size_t)g->signal_count, sizeof *signals);
    if (!signals) { return CRD_E_MEMORY; }
    for (int i = 0; i < g->signal_count; i++) {
        signals[i] = g->first_signal + i;
    }
    crd_cursor* c = NULL;
    crd_block b = {0};
    crd_status st = CRD_OK;
    CRD_TRY(crd_cursor_open(r, group, signals, g->signal_count, &c));
    for (;;) {
        CRD_TRY(crd_cursor_next(c, &b));
        if (b.rows == 0) { break; }
        if (s->rows[group] == 0) { s->starts[group] = b.time[0]; }
        s->stops[group] = b.time[b.rows - 1];
        s->rows[group] += b.rows;
        for (int i = 0; i < g->signal_count; i++) {
            if (!b.texts[i]) { extend(&s->signals[signals[i]], b.values[i], b.rows); }
        }
    }
fail:
    crd_cursor_close(c);
    crd_free(ctx, signals);
    return st;
}

static crd_status walk(crd_context* ctx, crd_arena* arena, crd_recording* r, survey* s)
{
    const crd_recording_info* info = s->info = crd_recording_describe(r);
    const size_t groups = (size_t)info->group_count;
    s->signals = crdi_arena_new(arena, (size_t)info->signal_count, sizeof *s->signals);
    s->starts = crdi_arena_new(arena, groups, sizeof *s->starts);
    s->stops = crdi_arena_new(arena, groups, sizeof *s->stops);
    s->rows = crdi_arena_new(arena, groups, sizeof *s->rows);
    if (!s->signals || !s->starts || !s->stops || !s->rows) { return CRD_E_MEMORY; }
    for (int i = 0; i < info->signal_count; i++) {
        s->signals[i] = (extent){NAN, NAN, 0};
    }
    for (int g = 0; g < info->group_count; g++) {
        s->starts[g] = s->stops[g] = NAN;
        const crd_status st = walk_group(ctx, r, s, g);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

static const char* const event_names[CRD_EVENT_KIND_COUNT] = {"start",   "stop",  "warning",
                                                              "overrun", "error", "mark"};

static const char* format_date(char out[40], int64_t ns)
{
    const time_t seconds = (time_t)(ns / 1000000000);
    struct tm date;
    if (!ns || !gmtime_r(&seconds, &date)) { return NULL; }
    strftime(out, 40, "%Y-%m-%dT%H:%M:%SZ", &date);
    return out;
}

// ---- for people --------------------------------------------------------------------------------

static void print_head(const survey* s)
{
    const crd_recording_info* i = s->info;
    char date[40];
    printf("%s: recording of %d signal%s", i->path, i->signal_count, crdi_plural(i->signal_count));
    if (i->group_count == 1) {
        printf(", %" PRId64 " row%s", s->rows[0], crdi_plural(s->rows[0]));
        if (s->rows[0]) { printf(" from %.10g s to %.10g s", s->starts[0], s->stops[0]); }
    } else {
        printf(" in %d groups", i->group_count);
    }
    printf("\n%-14s%s%s\n", "format", i->format,
           i->unfinished ? ", not closed by its writer: what is there was read" : "");
    if (*i->program) { printf("%-14s%s\n", "program", i->program); }
    if (format_date(date, i->started)) { printf("%-14s%s\n", "started", date); }
    if (*i->comment) { printf("%-14s%s\n", "comment", i->comment); }
    for (int a = 0; a < i->attachment_count; a++) {
        printf("%-14s%s, %s, %" PRIu64 " bytes\n", a ? "" : "attached", i->attachments[a].name,
               i->attachments[a].mime, i->attachments[a].size);
    }
    printf("\n");
}

static void print_groups(crdi_cli* cli, const survey* s)
{
    if (s->info->group_count < 2) { return; }
    crdi_grid g;
    crdi_grid_init(&g, cli->ctx, 5, 0x1E);
    static const char* const titles[] = {"group", "signals", "rows", "from", "to"};
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) {
        crdi_grid_add(&g, "%s", titles[i]);
    }
    for (int i = 0; i < s->info->group_count; i++) {
        crdi_grid_add(&g, "%s", s->info->groups[i].name);
        crdi_grid_add(&g, "%d", s->info->groups[i].signal_count);
        crdi_grid_add(&g, "%" PRId64, s->rows[i]);
        crdi_grid_add(&g, "%.10g s", s->starts[i]);
        crdi_grid_add(&g, "%.10g s", s->stops[i]);
    }
    crdi_grid_print(&g, stdout, "");
    crdi_grid_clear(&g);
    printf("\n");
}

static void print_signals(crdi_cli* cli, const survey* s, const crdi_info_options* o)
{
    static const char* const titles[] = {"signal", "unit", "min", "max", ""};
    crdi_grid g;
    crdi_grid_init(&g, cli->ctx, 5, 0xC);
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) {
        crdi_grid_add(&g, "%s", titles[i]);
    }
    for (int i = 0; i < s->info->signal_count; i++) {
        const crd_signal_info* x = &s->info->signals[i];
        const extent* e = &s->signals[i];
        if (!crdi_match_any(&o->variables, x->name)) { continue; }
        const bool text = crd_type_kind(x->type) == CRD_BYTES;
        crdi_grid_add(&g, "%s", x->name);
        crdi_grid_add(&g, "%s", x->unit);
        if (text) {
            crdi_grid_add(&g, "%s", "");
            crdi_grid_add(&g, "%s", "");
            crdi_grid_add(&g, "%s", "text");
            continue;
        }
        crdi_grid_add(&g, "%.10g", e->min);
        crdi_grid_add(&g, "%.10g", e->max);
        if (e->not_finite) {
            crdi_grid_add(&g, "%" PRId64 " not finite", e->not_finite);
        } else {
            crdi_grid_add(&g, "%s", "");
        }
    }
    crdi_grid_print(&g, stdout, "");
    crdi_grid_clear(&g);
}

static void print_events(crdi_cli* cli, const survey* s)
{
    if (!s->info->event_count) { return; }
    crdi_grid g;
    crdi_grid_init(&g, cli->ctx, 3, 0x2);
    printf("\n");
    for (int i = 0; i < s->info->event_count; i++) {
        const crd_event_info* e = &s->info->events[i];
        crdi_grid_add(&g, "%s", event_names[e->kind]);
        crdi_grid_add(&g, "%.10g s", e->time);
        crdi_grid_add(&g, "%s", e->text);
    }
    crdi_grid_print(&g, stdout, "");
    crdi_grid_clear(&g);
}

// ---- for programs ------------------------------------------------------------------------------

static json_t* signal_to_json(const survey* s, int index)
{
    const crd_signal_info* x = &s->info->signals[index];
    const extent* e = &s->signals[index];
    json_t* j = json_object();
    json_object_set_new(j, "name", crdi_json_text(x->name));
    json_object_set_new(j, "unit", crdi_json_text(x->unit));
    json_object_set_new(j, "description", crdi_json_text(x->description));
    json_object_set_new(j, "group", json_integer(x->group));
    json_object_set_new(j, "text", json_boolean(crd_type_kind(x->type) == CRD_BYTES));
    json_object_set_new(j, "min", crdi_json_number(e->min));
    json_object_set_new(j, "max", crdi_json_number(e->max));
    json_object_set_new(j, "not_finite", json_integer(e->not_finite));
    if (x->label_count) {
        json_t* labels = json_object();
        for (int i = 0; i < x->label_count; i++) {
            char value[32];
            snprintf(value, sizeof value, "%" PRId64, x->labels[i].value);
            json_object_set_new(labels, value, crdi_json_text(x->labels[i].text));
        }
        json_object_set_new(j, "labels", labels);
    }
    return j;
}

static json_t* lists_to_json(const survey* s, json_t* j)
{
    const crd_recording_info* info = s->info;
    json_t* groups = json_array();
    for (int i = 0; i < info->group_count; i++) {
        json_t* g = json_object();
        json_object_set_new(g, "name", crdi_json_text(info->groups[i].name));
        json_object_set_new(g, "rows", json_integer(s->rows[i]));
        json_object_set_new(g, "start", crdi_json_number(s->starts[i]));
        json_object_set_new(g, "stop", crdi_json_number(s->stops[i]));
        json_array_append_new(groups, g);
    }
    json_object_set_new(j, "groups", groups);
    json_t* events = json_array();
    for (int i = 0; i < info->event_count; i++) {
        json_t* e = json_object();
        json_object_set_new(e, "kind", json_string(event_names[info->events[i].kind]));
        json_object_set_new(e, "time", crdi_json_number(info->events[i].time));
        json_object_set_new(e, "text", crdi_json_text(info->events[i].text));
        json_array_append_new(events, e);
    }
    json_object_set_new(j, "events", events);
    json_t* files = json_array();
    for (int i = 0; i < info->attachment_count; i++) {
        json_t* f = json_object();
        json_object_set_new(f, "name", crdi_json_text(info->attachments[i].name));
        json_object_set_new(f, "mime", crdi_json_text(info->attachments[i].mime));
        json_object_set_new(f, "size", json_integer((json_int_t)info->attachments[i].size));
        json_array_append_new(files, f);
    }
    json_object_set_new(j, "attachments", files);
    return j;
}

static json_t* survey_to_json(const survey* s, const crdi_info_options* o)
{
    const crd_recording_info* info = s->info;
    char date[40];
    json_t* j = json_object();
    json_object_set_new(j, "kind", json_string("recording"));
    json_object_set_new(j, "file", crdi_json_text(info->path));
    json_object_set_new(j, "format", crdi_json_text(info->format));
    json_object_set_new(j, "program", crdi_json_text(info->program));
    json_object_set_new(j, "comment", crdi_json_text(info->comment));
    json_object_set_new(j, "started", crdi_json_text(format_date(date, info->started)));
    json_object_set_new(j, "finished", json_boolean(!info->unfinished));
    // Of the first group: a CSV has no other.
    const bool any = info->group_count > 0;
    json_object_set_new(j, "rows", json_integer(any ? s->rows[0] : 0));
    json_object_set_new(j, "start", crdi_json_number(any ? s->starts[0] : NAN));
    json_object_set_new(j, "stop", crdi_json_number(any ? s->stops[0] : NAN));
    json_t* signals = json_array();
    for (int i = 0; i < info->signal_count; i++) {
        if (crdi_match_any(&o->variables, info->signals[i].name)) {
            json_array_append_new(signals, signal_to_json(s, i));
        }
    }
    json_object_set_new(j, "signals", signals);
    return lists_to_json(s, j);
}

// ---- the command -------------------------------------------------------------------------------

static crd_status check_patterns(crd_context* ctx, const crd_recording_info* info,
                                 const crdi_list* patterns)
{
    for (int i = 0; i < patterns->count; i++) {
        bool found = false;
        for (int k = 0; k < info->signal_count && !found; k++) {
            found = crdi_glob(patterns->items[i], info->signals[k].name);
        }
        if (!found) {
            return crdi_fail(ctx, CRD_E_NOT_FOUND, "--variables '%s' fits no signal of %s",
                             patterns->items[i], info->path);
        }
    }
    return CRD_OK;
}

crd_status crdi_info_recording(crdi_cli* cli, const char* path, const crdi_info_options* o)
{
    crd_status st = CRD_OK;
    crd_recording* r = NULL;
    survey s = {0};
    crd_arena arena;
    crd_arena_init(&arena, cli->ctx);
    CRD_TRY(crd_recording_open(cli->ctx, path, &r));
    CRD_TRY(check_patterns(cli->ctx, crd_recording_describe(r), &o->variables));
    CRD_TRY(walk(cli->ctx, &arena, r, &s));
    if (o->common.json) {
        st = crdi_json_print(cli, survey_to_json(&s, o));
    } else {
        print_head(&s);
        print_groups(cli, &s);
        print_signals(cli, &s, o);
        print_events(cli, &s);
        st = crdi_stdout_done(cli->ctx);
    }
fail:
    crd_recording_close(r);
    crd_arena_clear(&arena);
    return st;
}
