// cardan bench session: who was in which state when, from records of sessions; as a table, as JSON,
// and drawn as Rautenberg 2023, Figure 7.
#include "cli/picture.h"
#include "shared/base_system.h"
#include "shared/board.h"
#include "shared/dcp_bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct session_options {
    crdi_common common;
    const char *output, *title;
    crdi_list results, variables;
} session_options;

enum { MOST_BENCHES = 16, MOST_SIGNALS = 12, MOST_RECORDS = 64, PHASES = CRD_DCP_BENCH_ARMED + 1 };

typedef struct bench_columns { // in a record; -1: none
    int state, phase, source, heat;
} bench_columns;

typedef struct record {
    const char* file;
    crd_table* t;
    int utc, master, note;
    double offset; // of its times, s
    double begin, end;
    bench_columns benches[MOST_BENCHES];
    const char* results; // of the run, NULL: none
    crd_table* run;
} record;

// One change: somebody is in this state for this long.
typedef struct entry {
    double time, lasts; // s
    int who;            // index of the bench, -1: the master
    int state, phase;
    bool stood_in; // where it is asked for
} entry;

// A line of the picture, which grows.
typedef struct trail {
    double *x, *y;
    int64_t count;
    size_t x_room, y_room;
} trail;

typedef struct command {
    crdi_cli* cli;
    const session_options* o;
    crd_arena arena;
    record* records;
    int record_count;
    const char* names[MOST_BENCHES];
    int bench_count;
    entry* entries;
    int entry_count;
    size_t entry_room;
} command;

// ---- reading -----------------------------------------------------------------------------------

static crd_status bench_session_find_column(command* c, record* r, const char* name, int* out)
{
    *out = crd_table_find(r->t, name);
    if (*out >= 0 && !r->t->columns[*out].texts) { return CRD_OK; }
    return crdi_fail(c->cli->ctx, CRD_E_FORMAT,
                     "%s: not a record of a session: it has no column '%s'; 'cardan run "
                     "--session-record FILE' writes one",
                     r->file, name);
}

static int bench_index(command* c, const char* name)
{
    for (int i = 0; i < c->bench_count; i++) {
        if (strcmp(c->names[i], name) == 0) { return i; }
    }
    if (c->bench_count == MOST_BENCHES) { return -1; }
    c->names[c->bench_count] = crdi_arena_text(&c->arena, name, strlen(name));
    return c->names[c->bench_count] ? c->bench_count++ : -1;
}

static int column_of(const record* r, const char* bench, const char* what)
{
    char name[256];
    snprintf(name, sizeof name, "%.200s.%s", bench, what);
    const int i = crd_table_find(r->t, name);
    return i >= 0 && !r->t->columns[i].texts ? i : -1;
}

static crd_status find_benches(command* c, record* r)
{
    for (int i = 0; i < MOST_BENCHES; i++) {
        r->benches[i] = (bench_columns){-1, -1, -1, -1};
    }
    for (int i = 0; i < r->t->column_count; i++) {
        const char* name = r->t->columns[i].name;
        const size_t length = strlen(name);
        char bench[200];
        if (length < 7 || length >= sizeof bench || i == r->master ||
            strcmp(name + length - 6, ".state") != 0 || r->t->columns[i].texts) {
            continue;
        }
        memcpy(bench, name, length - 6);
        bench[length - 6] = 0;
        const int k = bench_index(c, bench);
        if (k < 0) {
            return crdi_fail(c->cli->ctx, CRD_E_RANGE, "%s: more than %d benches", r->file,
                             MOST_BENCHES);
        }
        r->benches[k] = (bench_columns){i, column_of(r, bench, "phase"),
                                        column_of(r, bench, "source"), column_of(r, bench, "heat")};
    }
    return CRD_OK;
}

// NAN: nothing is known.
static double bench_session_value_at(const record* r, int column, int64_t row)
{
    return column < 0 ? (double)NAN : r->t->columns[column].values[row];
}

// States are whole numbers that somebody gave a name.
static crd_status check_states(command* c, const record* r, int column, int count)
{
    for (int64_t i = 0; column >= 0 && i < r->t->rows; i++) {
        const double x = bench_session_value_at(r, column, i);
        if (isnan(x) || (x == floor(x) && x >= -1 && x < count)) { continue; }
        return crdi_fail(c->cli->ctx, CRD_E_FORMAT,
                         "%s:%lld: %s is %g, expected a whole number from -1 to %d", r->file,
                         (long long)i + 3, r->t->columns[column].name, x, count - 1);
    }
    return CRD_OK;
}

static crd_status read_record(command* c, const char* file, record* r)
{
    crd_status st = CRD_OK;
    r->file = file;
    CRD_TRY(crd_table_read(c->cli->ctx, file, &r->t));
    CRD_TRY(bench_session_find_column(c, r, "master.state", &r->master));
    CRD_TRY(bench_session_find_column(c, r, "utc", &r->utc));
    r->note = crd_table_find(r->t, "note");
    CRD_TRY(find_benches(c, r));
    CRD_TRY(check_states(c, r, r->master, CRDI_DCP_MASTER_STATE_COUNT));
    for (int i = 0; i < c->bench_count; i++) {
        CRD_TRY(check_states(c, r, r->benches[i].state, CRD_DCP_STATE_COUNT));
        CRD_TRY(check_states(c, r, r->benches[i].phase, PHASES));
    }
    if (r->t->rows == 0 || !isfinite(bench_session_value_at(r, r->utc, 0))) {
        return crdi_fail(c->cli->ctx, CRD_E_FORMAT,
                         "%s: says nothing about when it was, expected a number in column 'utc'",
                         file);
    }
    r->begin = bench_session_value_at(r, r->utc, 0);
    r->end = r->begin + r->t->time[r->t->rows - 1] - r->t->time[0];
fail:
    return st;
}

static int by_time(const void* a, const void* b)
{
    const double x = ((const record*)a)->begin, y = ((const record*)b)->begin;
    return (x > y) - (x < y);
}

// As they were, one behind the other.
static crd_status put_in_order(command* c)
{
    qsort(c->records, (size_t)c->record_count, sizeof *c->records, by_time);
    for (int i = 0; i < c->record_count; i++) {
        record* r = &c->records[i];
        r->offset = r->begin - c->records[0].begin - r->t->time[0];
        if (i > 0 && r->begin < r[-1].end) {
            return crdi_fail(c->cli->ctx, CRD_E_RANGE,
                             "%s begins %.3g s before %s ends: expected sessions one after the "
                             "other",
                             r->file, r[-1].end - r->begin, r[-1].file);
        }
    }
    return CRD_OK;
}

static crd_status bench_session_read_all(command* c, const crdi_list* files)
{
    crd_status st = CRD_OK;
    const crdi_list* results = &c->o->results;
    if (files->count > MOST_RECORDS) {
        return crdi_fail(c->cli->ctx, CRD_E_RANGE, "%d records, expected up to %d", files->count,
                         MOST_RECORDS);
    }
    if (results->count > files->count) {
        return crdi_fail(c->cli->ctx, CRD_E_RANGE,
                         "--results %s: there are more results than records, expected one for each "
                         "record at most",
                         results->items[results->count - 1]);
    }
    c->records = crdi_arena_new(&c->arena, (size_t)files->count, sizeof *c->records);
    if (!c->records) { return CRD_E_MEMORY; }
    for (int i = 0; i < files->count; i++) {
        c->record_count++;
        CRD_TRY(read_record(c, files->items[i], &c->records[i]));
        if (i >= results->count) { continue; }
        c->records[i].results = results->items[i];
        CRD_TRY(crd_table_read(c->cli->ctx, results->items[i], &c->records[i].run));
    }
    CRD_TRY(put_in_order(c));
fail:
    return st;
}

// ---- who, what, for how long -------------------------------------------------------------------

static crd_status bench_session_add_entry(command* c, const entry* e)
{
    entry* all =
        crdi_grow(c->cli->ctx, c->entries, &c->entry_room, (size_t)c->entry_count + 1, sizeof *all);
    if (!all) { return CRD_E_MEMORY; }
    c->entries = all;
    all[c->entry_count++] = *e;
    return CRD_OK;
}

static int whole(double x) // -1: not known
{
    return isnan(x) ? -1 : (int)x;
}

static crd_status list_changes(command* c, const record* r, int who, int state, int phase,
                               int source)
{
    const int64_t last = r->t->rows - 1;
    const int first = c->entry_count;
    for (int64_t i = 0; state >= 0 && i <= last; i++) {
        const entry e = {.time = r->t->time[i] + r->offset,
                         .who = who,
                         .state = whole(bench_session_value_at(r, state, i)),
                         .phase = whole(bench_session_value_at(r, phase, i)),
                         .stood_in =
                             whole(bench_session_value_at(r, source, i)) > CRDI_BOARD_BENCH};
        entry* before = c->entry_count > first ? &c->entries[c->entry_count - 1] : NULL;
        if (before && before->state == e.state && before->phase == e.phase &&
            before->stood_in == e.stood_in) {
            continue;
        }
        if (before) { before->lasts = e.time - before->time; }
        const crd_status st = bench_session_add_entry(c, &e);
        if (st < 0) { return st; }
    }
    if (c->entry_count > first) {
        entry* e = &c->entries[c->entry_count - 1];
        e->lasts = r->t->time[last] + r->offset - e->time;
    }
    return CRD_OK;
}

static crd_status list_record(command* c, const record* r, bool with_sources)
{
    crd_status st = CRD_OK;
    c->entry_count = 0;
    CRD_TRY(list_changes(c, r, -1, r->master, -1, -1));
    for (int i = 0; i < c->bench_count; i++) {
        CRD_TRY(list_changes(c, r, i, r->benches[i].state, r->benches[i].phase,
                             with_sources ? r->benches[i].source : -1));
    }
fail:
    return st;
}

static const char* state_name(const entry* e)
{
    const char* name =
        e->who < 0 ? crdi_dcp_master_state_name(e->state) : crd_dcp_state_name(e->state);
    return e->state < 0 || !name ? "unknown" : name;
}

static const char* phase_name(const entry* e)
{
    const char* name = e->phase > 0 ? crd_dcp_bench_phase_name(e->phase) : NULL;
    const bool known = e->state != CRD_DCP_ALIVE && e->state != CRD_DCP_CONFIGURATION;
    return name && known ? name : ""; // of one that was restarted it is that from before
}

static const char* note_at(const record* r, bool last)
{
    const crd_table_column* n = r->note < 0 ? NULL : &r->t->columns[r->note];
    const char* text = n && n->texts ? n->texts[last ? n->rows - 1 : 0] : NULL;
    return text ? text : "";
}

static const char* note_of(const record* r)
{
    return note_at(r, true);
}

// Of the links, from the first row; records from before have none.
static const char* security_of(const record* r)
{
    static const char begin[] = "security: ";
    const char* text = note_at(r, false);
    return strncmp(text, begin, sizeof begin - 1) == 0 ? text + sizeof begin - 1 : "";
}

// ---- as a table --------------------------------------------------------------------------------

static int by_moment(const void* a, const void* b)
{
    const entry *x = a, *y = b;
    if (x->time != y->time) { return x->time < y->time ? -1 : 1; }
    return x->who - y->who;
}

static crd_status show_record(command* c, const record* r, crdi_result* out)
{
    static const crdi_column columns[] = {{">time", "time", "%.3f s"},
                                          {"who", "who", "%s"},
                                          {">id", "state", "%d"},
                                          {"state", "name", "%s"},
                                          {"phase", "phase", "%s"},
                                          {">for", "for", "s"},
                                          {0}};
    char text[24];
    crd_status st = list_record(c, r, true);
    if (st < 0) { return st; }
    qsort(c->entries, (size_t)c->entry_count, sizeof *c->entries, by_moment);
    crdi_say(out, "%s: %s, %.3f s%s%s\n", r->file,
             crdi_utc((int64_t)fmin(fmax(r->begin, 0), 4e10), text), r->end - r->begin,
             *note_of(r) ? ": " : "", note_of(r));
    if (*security_of(r)) { crdi_say(out, "links: %s\n", security_of(r)); }
    crdi_result* lines = crdi_array(out, NULL);
    for (int i = 0; i < c->entry_count; i++) {
        const entry* e = &c->entries[i];
        crdi_put(crdi_row(lines), REAL("time", e->time),
                 TEXT("who", e->who < 0 ? "master" : c->names[e->who]),
                 AS(INT("state", e->state), e->state < 0 ? "-" : NULL), TEXT("name", state_name(e)),
                 TEXT("phase", crdi_worded(out, "%s%s%s", phase_name(e),
                                           e->stood_in && *phase_name(e) ? " " : "",
                                           e->stood_in ? "(stand-in)" : "")),
                 REAL("for", e->lasts));
    }
    crdi_show_table(out, lines, columns, "  ");
    return CRD_OK;
}

// ---- as JSON -----------------------------------------------------------------------------------

static void put_entries(crdi_result* all, const command* c, int who)
{
    for (int i = 0; i < c->entry_count; i++) {
        const entry* e = &c->entries[i];
        if (e->who != who) { continue; }
        crdi_result* o = crdi_row(all);
        crdi_put(o, REAL("time", e->time), REAL("for", e->lasts));
        crdi_put(o, ONLY_IF(e->state >= 0, INT("state", e->state)), TEXT("name", state_name(e)));
        if (who >= 0) {
            crdi_put(o, ONLY_IF(e->phase >= 0, INT("phase", e->phase)),
                     TEXT("phase_name", crd_dcp_bench_phase_name(e->phase)));
        }
    }
}

// What changed when, of a column of numbers.
static void put_changes(crdi_result* all, const record* r, int column)
{
    double before = NAN;
    for (int64_t i = 0; column >= 0 && i < r->t->rows; i++) {
        const double x = bench_session_value_at(r, column, i);
        if (isnan(x) || x == before) { continue; }
        before = x;
        crdi_result* o = crdi_row(all);
        crdi_put(o, REAL("time", r->t->time[i] + r->offset), REAL("value", x));
    }
}

static crd_status put_record(command* c, const record* r, crdi_result* o)
{
    char text[24];
    const crd_status st = list_record(c, r, false); // sources have a list of their own
    if (st < 0) { return st; }
    crdi_put(o, TEXT("file", r->file),
             TEXT("start", crdi_utc((int64_t)fmin(fmax(r->begin, 0), 4e10), text)),
             REAL("utc", r->begin), REAL("time", r->t->time[0] + r->offset),
             REAL("duration", r->end - r->begin), TEXT("note", note_of(r)),
             TEXT("security", security_of(r)));
    put_entries(crdi_array(o, "master"), c, -1);
    crdi_result* benches = crdi_array(o, "benches");
    for (int i = 0; i < c->bench_count; i++) {
        if (r->benches[i].state < 0) { continue; }
        crdi_result* b = crdi_row(benches);
        crdi_put(b, TEXT("unit", c->names[i]));
        put_entries(crdi_array(b, "states"), c, i);
        put_changes(crdi_array(b, "heat"), r, r->benches[i].heat);
        put_changes(crdi_array(b, "source"), r, r->benches[i].source);
    }
    return CRD_OK;
}

// ---- drawn -------------------------------------------------------------------------------------

static crd_status bench_session_add_point(command* c, trail* l, double x, double y)
{
    const size_t n = (size_t)l->count + 1;
    double* xs = crdi_grow(c->cli->ctx, l->x, &l->x_room, n, sizeof *xs);
    if (xs) { l->x = xs; }
    double* ys = xs ? crdi_grow(c->cli->ctx, l->y, &l->y_room, n, sizeof *ys) : NULL;
    if (!ys) { return CRD_E_MEMORY; }
    l->y = ys;
    xs[l->count] = x;
    ys[l->count++] = y;
    return CRD_OK;
}

// A value that holds until the next one: steps. What is not known is a gap, as between records.
static crd_status add_steps(command* c, trail* l, const record* r, int column, bool states)
{
    crd_status st = CRD_OK;
    double before = NAN;
    for (int64_t i = 0; column >= 0 && i < r->t->rows; i++) {
        const double time = r->t->time[i] + r->offset;
        double x = bench_session_value_at(r, column, i);
        if (states && x < 0) { x = NAN; }
        if (x == before && i + 1 < r->t->rows) { continue; }
        if (!isnan(before)) { CRD_TRY(bench_session_add_point(c, l, time, before)); }
        CRD_TRY(bench_session_add_point(c, l, time, x));
        before = x;
    }
    if (column >= 0) { CRD_TRY(bench_session_add_point(c, l, r->end - c->records[0].begin, NAN)); }
fail:
    return st;
}

typedef struct picture {
    crd_plot_panel panels[4 + MOST_SIGNALS];
    crd_plot_scale scales[4 + MOST_SIGNALS];
    int count;
    trail trails[1 + 3 * MOST_BENCHES + MOST_SIGNALS];
    int trail_count;
    int signals, left_out;
} picture;

static crd_plot_series series_of(const char* label, const trail* l, bool dashed)
{
    return (crd_plot_series){
        .label = label, .x = l->x, .y = l->y, .count = l->count, .dashed = dashed};
}

static bool bench_session_says_something(const trail* l)
{
    for (int64_t i = 0; i < l->count; i++) {
        if (isfinite(l->y[i])) { return true; }
    }
    return false;
}

static crd_status names_of(command* c, const char* (*name)(int), int count, const char* const** out)
{
    const char** names = crdi_arena_new(&c->arena, (size_t)count, sizeof *names);
    if (!names) { return CRD_E_MEMORY; }
    for (int i = 0; i < count; i++) {
        names[i] = crdi_arena_text(&c->arena, name(i), strlen(name(i)));
        if (!names[i]) { return CRD_E_MEMORY; }
    }
    *out = names;
    return CRD_OK;
}

static crd_status draw_master(command* c, picture* p)
{
    crd_status st = CRD_OK;
    trail* l = &p->trails[p->trail_count++];
    crd_plot_series* s = crdi_arena_new(&c->arena, 1, sizeof *s);
    if (!s) { return CRD_E_MEMORY; }
    for (int i = 0; i < c->record_count; i++) {
        CRD_TRY(add_steps(c, l, &c->records[i], c->records[i].master, true));
    }
    *s = series_of("master", l, false);
    crd_plot_scale* scale = &p->scales[p->count];
    scale->y_name_count = CRDI_DCP_MASTER_STATE_COUNT;
    scale->bars = true;
    CRD_TRY(names_of(c, crdi_dcp_master_state_name, scale->y_name_count, &scale->y_names));
    p->panels[p->count++] =
        (crd_plot_panel){.title = "state of the master", .series = s, .series_count = 1};
fail:
    return st;
}

// A panel with one of the columns of all benches.
static crd_status draw_benches(command* c, picture* p, const char* title, const char* unit,
                               size_t offset, const char* (*name)(int), int count)
{
    crd_status st = CRD_OK;
    crd_plot_series* s = crdi_arena_new(&c->arena, MOST_BENCHES, sizeof *s);
    if (!s) { return CRD_E_MEMORY; }
    int used = 0;
    for (int k = 0; k < c->bench_count; k++) {
        trail* l = &p->trails[p->trail_count++];
        for (int i = 0; i < c->record_count; i++) {
            int column;
            memcpy(&column, (const char*)&c->records[i].benches[k] + offset, sizeof column);
            CRD_TRY(add_steps(c, l, &c->records[i], column, name != NULL));
        }
        if (bench_session_says_something(l)) { s[used++] = series_of(c->names[k], l, k > 0); }
    }
    if (used == 0 && count != CRD_DCP_STATE_COUNT) { return CRD_OK; }
    crd_plot_scale* scale = &p->scales[p->count];
    if (name) {
        scale->bars = true;
        scale->y_name_count = count;
        CRD_TRY(names_of(c, name, count, &scale->y_names));
    }
    p->panels[p->count++] =
        (crd_plot_panel){.title = title, .y_label = unit, .series = s, .series_count = used};
fail:
    return st;
}

// When the run of a record began: all its benches were running. NAN: never.
static double run_began(const command* c, const record* r)
{
    for (int64_t i = 0; i < r->t->rows; i++) {
        int running = 0, all = 0;
        for (int k = 0; k < c->bench_count; k++) {
            const double x = bench_session_value_at(r, r->benches[k].state, i);
            if (isnan(x)) { continue; }
            all++;
            running += x >= CRD_DCP_RUNNING && x <= CRD_DCP_SENDING_D;
        }
        if (all > 0 && running == all) { return r->t->time[i] + r->offset; }
    }
    return NAN;
}

static crd_status add_run(command* c, trail* l, const record* r, const char* name)
{
    const int k = r->run ? crd_table_find(r->run, name) : -1;
    const crd_table_column* column = k < 0 ? NULL : &r->run->columns[k];
    if (!column || column->texts || column->rows == 0) { return CRD_OK; }
    const double begin = run_began(c, r);
    if (isnan(begin)) {
        return crdi_fail(c->cli->ctx, CRD_E_RANGE,
                         "%s: no run began in this session, expected no results of it (%s)",
                         r->file, r->results);
    }
    crd_status st = CRD_OK;
    for (int64_t i = 0; i < column->rows; i++) {
        CRD_TRY(bench_session_add_point(c, l, begin + column->time[i] - r->run->time[0],
                                        column->values[i]));
    }
    CRD_TRY(bench_session_add_point(c, l, r->end - c->records[0].begin, NAN));
fail:
    return st;
}

static bool drawn_before(const command* c, int record_index, const char* name)
{
    for (int i = 0; i < record_index; i++) {
        if (c->records[i].run && crd_table_find(c->records[i].run, name) >= 0) { return true; }
    }
    return false;
}

static crd_status draw_signal(command* c, picture* p, const crd_table_column* column)
{
    if (p->signals == MOST_SIGNALS) {
        p->left_out++;
        return CRD_OK;
    }
    p->signals++;
    crd_status st = CRD_OK;
    trail* l = &p->trails[p->trail_count++];
    crd_plot_series* s = crdi_arena_new(&c->arena, 1, sizeof *s);
    if (!s) { return CRD_E_MEMORY; }
    for (int i = 0; i < c->record_count; i++) {
        CRD_TRY(add_run(c, l, &c->records[i], column->name));
    }
    *s = series_of("", l, false);
    p->panels[p->count++] = (crd_plot_panel){
        .title = column->name, .y_label = column->unit, .series = s, .series_count = 1};
fail:
    return st;
}

static crd_status draw_runs(command* c, picture* p)
{
    const crdi_list* patterns = &c->o->variables;
    crd_table* runs[MOST_RECORDS];
    int count = 0;
    for (int i = 0; i < c->record_count; i++) {
        if (c->records[i].run) { runs[count++] = c->records[i].run; }
    }
    if (count == 0) { return CRD_OK; }
    crd_status st = crdi_check_patterns(c->cli->ctx, patterns, runs, count);
    for (int i = 0; st >= 0 && i < c->record_count; i++) {
        const crd_table* t = c->records[i].run;
        for (int k = 0; st >= 0 && t && k < t->column_count; k++) {
            const crd_table_column* column = &t->columns[k];
            if (column->texts || !crdi_match_any(patterns, column->name) ||
                drawn_before(c, i, column->name)) {
                continue;
            }
            st = draw_signal(c, p, column);
        }
    }
    if (st >= 0 && p->left_out) {
        crdi_log(c->cli->ctx, CRD_LOG_WARNING,
                 "only the first %d signals are drawn, %d are left out; choose with --variables",
                 MOST_SIGNALS, p->left_out);
    }
    return st;
}

static crd_status bench_session_check_output(command* c, const crdi_list* files)
{
    const char* output = c->o->output;
    for (int i = 0; i < files->count + c->o->results.count; i++) {
        const char* file =
            i < files->count ? files->items[i] : c->o->results.items[i - files->count];
        if (crdi_same_file(output, file)) {
            return crdi_fail(c->cli->ctx, CRD_E_RANGE,
                             "%s: the picture would overwrite a record, expected another file",
                             output);
        }
    }
    return crdi_picture_check(c->cli, output, &c->o->common);
}

static crd_status draw_picture(command* c)
{
    crd_status st = CRD_OK;
    picture* p = crdi_arena_new(&c->arena, 1, sizeof *p);
    if (!p) { return CRD_E_MEMORY; }
    CRD_TRY(draw_master(c, p));
    CRD_TRY(draw_benches(c, p, "states of the benches", "", offsetof(bench_columns, state),
                         crd_dcp_state_name, CRD_DCP_STATE_COUNT));
    CRD_TRY(draw_benches(c, p, "what the benches do", "", offsetof(bench_columns, phase),
                         crd_dcp_bench_phase_name, PHASES));
    CRD_TRY(draw_benches(c, p, "distance from the temperature of the start", "K",
                         offsetof(bench_columns, heat), NULL, 0));
    CRD_TRY(draw_runs(c, p));
    const crd_plot_options o = {
        .title =
            c->o->title ? c->o->title : "States of master and benches (Rautenberg 2023, Fig. 7)",
        .x_label = "time [s]",
        .scales = p->scales};
    CRD_TRY(crdi_picture_write(c->cli, c->o->output, &o, p->panels, p->count));
fail:
    for (int i = 0; i < p->trail_count; i++) {
        crd_free(c->cli->ctx, p->trails[i].x);
        crd_free(c->cli->ctx, p->trails[i].y);
    }
    return st;
}

// ---- the command -------------------------------------------------------------------------------

static crd_status put_records(command* c, crdi_result* out)
{
    crdi_result* all = crdi_array(out, "records");
    crd_status st = CRD_OK;
    for (int i = 0; i < c->record_count; i++) {
        CRD_TRY(put_record(c, &c->records[i], crdi_row(all)));
        CRD_TRY(show_record(c, &c->records[i], out));
    }
    crdi_put(out, TEXT("picture", c->o->output));
    if (c->o->output) { crdi_say(out, "picture: %s\n", c->o->output); }
fail:
    return st;
}

static crd_status run_session(crdi_cli* cli, const void* options, const crdi_list* arguments,
                              crdi_result* out)
{
    command c = {.cli = cli, .o = options};
    crd_status st = CRD_OK;
    crd_arena_init(&c.arena, cli->ctx);
    if (!c.o->output && (c.o->results.count || c.o->variables.count || c.o->title)) {
        st = crdi_fail(cli->ctx, CRD_E_RANGE,
                       "--%s is about the picture, expected --output FILE too",
                       c.o->results.count     ? "results"
                       : c.o->variables.count ? "variables"
                                              : "title");
        goto fail;
    }
    if (c.o->variables.count && !c.o->results.count) {
        st = crdi_fail(cli->ctx, CRD_E_RANGE,
                       "--variables chooses signals of the run, expected --results FILE too");
        goto fail;
    }
    if (c.o->output) { CRD_TRY(bench_session_check_output(&c, arguments)); }
    CRD_TRY(bench_session_read_all(&c, arguments));
    if (c.o->output) { CRD_TRY(draw_picture(&c)); }
    CRD_TRY(put_records(&c, out));
fail:
    for (int i = 0; i < c.record_count; i++) {
        crd_table_destroy(c.records[i].t);
        crd_table_destroy(c.records[i].run);
    }
    crd_free(cli->ctx, c.entries);
    crd_arena_clear(&c.arena);
    return st;
}

static const crdi_option rows[] = {
    OPT_FILE(session_options, output, "output", CRDI_PICTURE_ENDINGS,
             "draw the states over time" CRDI_PICTURE_HELP, .short_name = 'o'),
    OPT_LIST(session_options, results, "results", "RESULT",
             "with --output: signals of the run below the states, of the first record, then of the "
             "second, and so on; their time begins when all benches run"),
    OPT_LIST(session_options, variables, "variables", "PATTERN",
             "with --results: only signals that fit, with * and ?"),
    OPT_TEXT(session_options, title, "title", "TEXT", "of the picture"),
    CRDI_JSON_OPTION("print the states as JSON on standard output"),
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_bench_session = {
    .name = "bench session",
    .arguments = "RECORD...",
    .summary = "who was in which state in a session with test benches",
    .description =
        "Shows records of sessions that 'cardan run --session-record' has written: the states of "
        "the master and of each bench with their numbers of Rautenberg (2023), Table 7, what the "
        "bench did, and for how long. Several records stand one after the other on one axis of "
        "time, as they were. With --output they are drawn as in its Figure 7: states, phases, how "
        "far media were from the temperatures of the start, and signals of the runs.",
    .examples = {{"cardan bench session session.csv", "a table of the states"},
                 {"cardan bench session a.csv b.csv -o states.svg --results a.mf4 --variables "
                  "'*speed'",
                  "two sessions and the speed of the first run, drawn"}},
    OPTIONS(rows, session_options),
    .min_arguments = 1,
    .max_arguments = -1,
    .extensions = "csv",
    .run = run_session,
};
