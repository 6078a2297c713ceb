// cardan info on a recording: CSV, MF4, MAT. The data are walked through once, however long.
#include "cardan/results.h"
#include "cli/info/info.h"
#include "shared/base_system.h"

#include <inttypes.h>
#include <math.h>

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

static crd_status info_recording_walk(crd_context* ctx, crd_arena* arena, crd_recording* r,
                                      survey* s)
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

// ---- what is in it -----------------------------------------------------------------------------

static void info_recording_put_head(crdi_result* out, const survey* s)
{
    const crd_recording_info* i = s->info;
    const bool any = i->group_count > 0;
    char date[24];
    const char* started = i->started ? crdi_utc(i->started / 1000000000, date) : "";
    crdi_put(
        out, TEXT("kind", "recording"), TEXT("file", i->path), TEXT("format", i->format),
        TEXT("program", i->program), TEXT("comment", i->comment), TEXT_IF("started", started),
        BOOL("finished", !i->unfinished), INT("rows", any ? s->rows[0] : 0),
        REAL("start", any ? s->starts[0] : (double)NAN), // of the first group: a CSV has no other
        REAL("stop", any ? s->stops[0] : (double)NAN));
    crdi_say(out, "%s: recording of %d signal%s", i->path, i->signal_count,
             crdi_plural(i->signal_count));
    if (i->group_count == 1) {
        crdi_say(out, ", %" PRId64 " row%s", s->rows[0], crdi_plural(s->rows[0]));
        if (s->rows[0]) { crdi_say(out, " from %.10g s to %.10g s", s->starts[0], s->stops[0]); }
    } else {
        crdi_say(out, " in %d groups", i->group_count);
    }
    crdi_say(out, "\n");
    crdi_fact(out, "format", "%s%s", i->format,
              i->unfinished ? ", not closed by its writer: what is there was read" : "");
    crdi_fact_if(out, "program", i->program);
    crdi_fact_if(out, "started", started);
    crdi_fact_if(out, "comment", i->comment);
    for (int a = 0; a < i->attachment_count; a++) {
        crdi_fact(out, a ? "" : "attached", "%s, %s, %" PRIu64 " bytes", i->attachments[a].name,
                  i->attachments[a].mime, i->attachments[a].size);
    }
    crdi_say(out, "\n");
}

static void put_groups(crdi_result* out, crdi_result* groups, const survey* s)
{
    static const crdi_column columns[] = {{"group", "name", "%s"},    {">signals", "signals", "%d"},
                                          {">rows", "rows", "%d"},    {">from", "start", "%.10g s"},
                                          {">to", "stop", "%.10g s"}, {0}};
    for (int i = 0; i < s->info->group_count; i++) {
        crdi_result* row = crdi_row(groups);
        crdi_put(row, TEXT("name", s->info->groups[i].name), INT("rows", s->rows[i]),
                 REAL("start", s->starts[i]), REAL("stop", s->stops[i]),
                 CELL("signals", crdi_worded(row, "%d", s->info->groups[i].signal_count)));
    }
    if (s->info->group_count < 2) { return; }
    crdi_show_table(out, groups, columns, "");
    crdi_say(out, "\n");
}

static void info_recording_put_signal(crdi_result* row, const survey* s, int index)
{
    const crd_signal_info* x = &s->info->signals[index];
    const extent* e = &s->signals[index];
    const bool text = crd_type_kind(x->type) == CRD_BYTES;
    crdi_put(row, TEXT("name", x->name), TEXT("unit", x->unit), TEXT("description", x->description),
             INT("group", x->group), BOOL("text", text), AS(REAL("min", e->min), text ? "" : NULL),
             AS(REAL("max", e->max), text ? "" : NULL), INT("not_finite", e->not_finite));
    if (text) {
        crdi_put(row, CELL("remark", "text"));
    } else if (e->not_finite) {
        crdi_put(row, CELL("remark", crdi_worded(row, "%" PRId64 " not finite", e->not_finite)));
    }
    crdi_result* labels = x->label_count ? crdi_object(row, "labels") : NULL;
    for (int i = 0; i < x->label_count; i++) {
        crdi_put(labels, TEXT(crdi_worded(row, "%" PRId64, x->labels[i].value), x->labels[i].text));
    }
}

static void put_events(crdi_result* out, const survey* s)
{
    static const crdi_column columns[] = {
        {"", "kind", "%s"}, {">", "time", "%.10g s"}, {"", "text", "%s"}, {0}};
    crdi_result* events = crdi_array(out, "events");
    for (int i = 0; i < s->info->event_count; i++) {
        const crd_event_info* e = &s->info->events[i];
        crdi_put(crdi_row(events), TEXT("kind", event_names[e->kind]), REAL("time", e->time),
                 TEXT("text", e->text));
    }
    if (!s->info->event_count) { return; }
    crdi_say(out, "\n");
    crdi_show_table(out, events, columns, "");
}

static void put_recording(crdi_result* out, const survey* s, const crdi_info_options* o)
{
    static const crdi_column columns[] = {{"signal", "name", "%s"}, {"unit", "unit", "%s"},
                                          {">min", "min", "%.10g"}, {">max", "max", "%.10g"},
                                          {"", "remark", "%s"},     {0}};
    info_recording_put_head(out, s);
    crdi_result *signals = crdi_array(out, "signals"), *groups = crdi_array(out, "groups");
    for (int i = 0; i < s->info->signal_count; i++) {
        if (!crdi_match_any(&o->variables, s->info->signals[i].name)) { continue; }
        info_recording_put_signal(crdi_row(signals), s, i);
    }
    put_groups(out, groups, s);
    crdi_show_table(out, signals, columns, "");
    put_events(out, s);
    crdi_result* files = crdi_array(out, "attachments");
    for (int i = 0; i < s->info->attachment_count; i++) {
        const crd_attachment_info* a = &s->info->attachments[i];
        crdi_put(crdi_row(files), TEXT("name", a->name), TEXT("mime", a->mime),
                 INT("size", a->size));
    }
}

// ---- the command -------------------------------------------------------------------------------

static const char* signal_name(const void* info, int i)
{
    return ((const crd_recording_info*)info)->signals[i].name;
}

crd_status crdi_info_recording(crdi_cli* cli, const char* path, const crdi_info_options* o,
                               crdi_result* out)
{
    crd_status st = CRD_OK;
    crd_recording* r = NULL;
    survey s = {0};
    crd_arena arena;
    crd_arena_init(&arena, cli->ctx);
    CRD_TRY(crd_recording_open(cli->ctx, path, &r));
    const crd_recording_info* info = crd_recording_describe(r);
    CRD_TRY(crdi_check_names(cli->ctx, &o->variables, info->path, "signal", signal_name, info,
                             info->signal_count));
    CRD_TRY(info_recording_walk(cli->ctx, &arena, r, &s));
    put_recording(out, &s, o);
fail:
    crd_recording_close(r);
    crd_arena_clear(&arena);
    return st;
}
