// Every exchanged sample into a file of its own. Each element of a connection is a raster
// "from -> to": of a coupling with what arrives, when it arrives; of others with what the source
// gives at the communication points of the target. What a coupling's element makes of its samples
// stands beside it, in "from -> to: input".
//
// The cycle thread only puts rows into rings. A run on the clock never waits for them: what finds
// no room is left out and counted.
#include "master/master.h"
#include "master/replay/replay.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_COLUMNS = 8 }; // of a raster

typedef struct stream {
    const crdi_connection* link;
    const crdi_prediction* flow; // NULL: it is none
    const char *from, *to, *name;
    int couple;            // -1: none
    bool is_input;         // what a coupling's input is told
    bool both;             // the source's own communication points, too
    bool command;          // of a unit whose output is late: what was sent and what acted, too
    crdi_setpoint at;      // then: the input
    int columns;           // of the raster, without time
    int64_t count;         // run: rows so far
    int64_t events;        // run: of the source's unit, those that are known
    crdi_conversion value; // of a connection without coupling, into `now`
    union {
        double real;
        int64_t integer;
        // of the kind of the input
    } now;
} stream;

typedef struct crdi_exchange_writer {
    crd_recorder* recorder;
    stream* streams; // one per raster
    int stream_count;
    int* of_couple;           // raster of a coupling's samples
    bool clocked;             // rows tell the time of the clock
    int64_t samples, dropped; // run
} crdi_exchange_writer;

// ---- what is recorded --------------------------------------------------------------------------

static crd_status name_stream(crd_master* m, stream* s)
{
    const crdi_connection* k = s->link;
    s->from = crdi_end_written_name(m->plan, &m->arena, &k->from, k->spec->from);
    s->to = crdi_end_written_name(m->plan, &m->arena, &k->to, k->spec->to);
    if (!s->from || !s->to) { return CRD_E_MEMORY; }
    s->name =
        crdi_arena_format(&m->arena, "%s -> %s%s", s->from, s->to, s->is_input ? ": input" : "");
    return s->name ? CRD_OK : CRD_E_MEMORY;
}

static bool exchange_is_number(const crd_master* m, const crdi_connection* k)
{
    return crd_type_kind((crd_type)crdi_variable_at(m->plan, &k->to)->type) != CRD_BYTES;
}

// In the order of writing.
static int by_spec(const void* a, const void* b)
{
    const crdi_connection *x = *(const crdi_connection*const*)a,
                          *y = *(const crdi_connection*const*)b;
    if (x->spec != y->spec) { return x->spec < y->spec ? -1 : 1; }
    return x->to.element < y->to.element ? -1 : x->to.element > y->to.element;
}

// What the target gets was given at its own points: one of the two steps is a multiple of the
// other, and values move when the target's step begins (in Gauss-Seidel order just before it ends).
static bool steps_fit(const crd_master* m, const crdi_connection* k)
{
    const int64_t from = m->plan->members[k->from.member].ticks,
                  to = m->plan->members[k->to.member].ticks;
    return (from % to == 0 || to % from == 0) && (k->early || from == to);
}

static crd_status plan_streams(crd_master* m, crdi_exchange_writer* x)
{
    crd_status st = CRD_E_MEMORY;
    const size_t n = (size_t)m->plan->connection_count;
    const crdi_connection** order = crdi_new_array(m->ctx, n, sizeof *order);
    x->streams = crdi_arena_new(&m->arena, 2 * n, sizeof *x->streams);
    x->of_couple =
        crdi_arena_new(&m->arena, (size_t)m->connections.coupled_count, sizeof *x->of_couple);
    if (!order || !x->streams || !x->of_couple) { goto fail; }
    for (size_t i = 0; i < n; i++) {
        order[i] = &m->plan->connections[i];
    }
    if (n) { qsort((void*)order, n, sizeof *order, by_spec); }
    for (size_t i = 0; i < n; i++) {
        const crdi_connection* k = order[i];
        if (!exchange_is_number(m, k)) { continue; }
        for (int is_input = 0; is_input <= (k->couple >= 0); is_input++) {
            stream* s = &x->streams[x->stream_count];
            *s = (stream){.link = k, .couple = k->couple, .is_input = is_input};
            if (name_stream(m, s) < 0) { goto fail; }
            s->command = is_input == (k->couple >= 0) && crdi_setpoint_is_one(&m->connections, k);
            s->at = (crdi_setpoint){.at = k->to};
            if (s->command) { crdi_setpoint_bind(m->plan, &s->at); }
            if (k->couple < 0) {
                s->flow = k->prediction;
                s->both = s->flow || !steps_fit(m, k);
                s->events = m->plan->members[k->from.member].unit->events;
                s->value = crdi_conversion_of(m->plan, k, &s->now);
            } else if (!is_input) {
                x->of_couple[k->couple] = x->stream_count;
            } else {
                s->both = s->command;
            }
            x->stream_count++;
        }
    }
    st = CRD_OK;
fail:
    crd_free(m->ctx, (void*)order);
    return st;
}

static void exchange_add_column(crd_recorder_options* opt, crd_column* columns, stream* s,
                                crd_column c)
{
    c.raster = opt->raster_count;
    if (!c.unit) { c.unit = ""; }
    columns[opt->column_count++] = c;
    s->columns++;
}

static void add_acted(crd_recorder_options* opt, crd_column* columns, stream* s, const char* unit)
{
    if (!s->command) { return; }
    exchange_add_column(opt, columns, s,
                        (crd_column){.name = "acted",
                                     .unit = unit,
                                     .description = "what acted in the step before",
                                     .type = CRD_FLOAT64});
}

static void add_columns(const crd_master* m, const crdi_exchange_writer* x, stream* s,
                        crd_recorder_options* opt, crd_column* columns)
{
    const crd_variable* v = crdi_variable_at(m->plan, &s->link->to);
    const crd_type type = s->couple >= 0 ? CRD_FLOAT64 : (crd_type)v->type;
    if (s->is_input) {
        exchange_add_column(opt, columns, s,
                            (crd_column){.name = "input",
                                         .unit = v->unit,
                                         .description = "what the input was told",
                                         .type = CRD_FLOAT64});
        if (s->command) {
            exchange_add_column(opt, columns, s,
                                (crd_column){.name = "sent",
                                             .unit = v->unit,
                                             .description = "what the source gave",
                                             .type = CRD_FLOAT64});
        }
        add_acted(opt, columns, s, v->unit);
        return;
    }
    exchange_add_column(opt, columns, s,
                        (crd_column){.name = "value",
                                     .unit = v->unit,
                                     .description = "sample, as the input takes it",
                                     .type = type});
    exchange_add_column(opt, columns, s,
                        (crd_column){.name = "stamp",
                                     .unit = "s",
                                     .description = "time at which it was taken",
                                     .type = CRD_FLOAT64});
    exchange_add_column(
        opt, columns, s,
        (crd_column){.name = "sequence",
                     .description = "number of the sample; a gap is a sample that was lost",
                     .type = CRD_INT64});
    if (x->clocked) {
        exchange_add_column(opt, columns, s,
                            (crd_column){.name = "arrived",
                                         .unit = "s",
                                         .description = "on the clock, since the start of the run",
                                         .type = CRD_FLOAT64});
    }
    for (int d = 0; s->flow && d < 2 && s->flow->rates[d]; d++) {
        exchange_add_column(
            opt, columns, s,
            (crd_column){.name = d ? "rate2" : "rate",
                         .description = d ? "second derivative" : "first derivative",
                         .type = CRD_FLOAT64});
    }
    if (s->flow) {
        exchange_add_column(
            opt, columns, s,
            (crd_column){.name = "event",
                         .description = "the source had an event since the row before",
                         .type = CRD_BOOLEAN});
    }
    add_acted(opt, columns, s, v->unit);
}

// ---- what the file says of itself --------------------------------------------------------------

static void put_flag(crd_text* t, const char* name, bool x)
{
    crdi_text_add(t, ", \"%s\": %s", name, x ? "true" : "false");
}

static void exchange_put_number(crd_text* t, const char* name, double x)
{
    crdi_text_add(t, ", \"%s\": ", name);
    crdi_text_json_number(t, x);
}

// What predictions begin with is worked out from more than the outputs.
static void put_past(crd_text* t, const crd_history* h)
{
    crdi_text_add(t, ", \"past\": [");
    for (int i = 0; i < h->count; i++) {
        crdi_text_add(t, i ? ", {\"order\": %d" : "{\"order\": %d", h->sample[i].order);
        exchange_put_number(t, "y", h->sample[i].y[0]);
        exchange_put_number(t, "rate", h->sample[i].y[1]);
        exchange_put_number(t, "rate2", h->sample[i].y[2]);
        if (i + 1 < h->count) { exchange_put_number(t, "before", h->h[i]); }
        crdi_text_add(t, "}");
    }
    crdi_text_add(t, "]");
}

static void put_order(const crd_master* m, crd_text* t)
{
    for (int i = 0; i < m->plan->member_count; i++) {
        crdi_text_add(t, i ? ", " : "");
        crdi_text_json(t, m->plan->members[m->plan->batch[i]].unit->name);
    }
}

// The target runs behind the source and has its outputs before they are evaluated again with fresh
// inputs; the rows have them afterwards.
static bool is_given_twice(const crd_master* m, const stream* s)
{
    const bool refreshed = crdi_refresh_has(m->plan, s->link->from.member);
    if (!refreshed || !s->flow || s->link->early) { return false; }
    for (int i = 0; i < m->plan->member_count; i++) { // who comes first?
        if (m->plan->batch[i] == s->link->from.member) { return true; }
        if (m->plan->batch[i] == s->link->to.member) { return false; }
    }
    return false;
}

static void exchange_put_connections(const crd_master* m, const crdi_exchange_writer* x,
                                     crd_text* t)
{
    bool first = true;
    for (int i = 0; i < x->stream_count; i++) {
        const stream* s = &x->streams[i];
        if (s->is_input) { continue; }
        const crdi_connection* k = s->link;
        crdi_text_add(t, first ? "\n  {\"from\": " : ",\n  {\"from\": ");
        first = false;
        crdi_text_json(t, s->from);
        crdi_text_add(t, ", \"to\": ");
        crdi_text_json(t, s->to);
        put_flag(t, "coupling", s->couple >= 0);
        put_flag(t, "curve", k->curve);
        put_flag(t, "transform", k->transform);
        put_flag(t, "mapped", k->mapping != NULL);
        put_flag(t, "twice", is_given_twice(m, s));
        exchange_put_number(t, "gain", k->gain);
        exchange_put_number(t, "offset", k->offset);
        crdi_text_add(t, ", \"predict\": ");
        crdi_text_json(t, crd_prediction_name(s->flow ? s->flow->predict : CRD_PREDICTION_HOLD));
        if (s->flow) { put_past(t, &s->flow->past); }
        exchange_put_number(t, "step",
                            s->couple >= 0 ? m->connections.coupled[s->couple].interval
                                           : m->plan->members[k->to.member].step);
        crdi_text_add(t, "}");
    }
}

// Connections of texts, which have no rows.
static void put_texts(const crd_master* m, crd_text* t)
{
    bool first = true;
    for (int i = 0; i < m->plan->connection_count; i++) {
        const crdi_connection* k = &m->plan->connections[i];
        if (exchange_is_number(m, k) || k->to.element > 0) { continue; }
        char* name =
            crdi_format(m->ctx, "%s.%s -> %s.%s", m->plan->members[k->from.member].unit->name,
                        k->spec->from, m->plan->members[k->to.member].unit->name, k->spec->to);
        t->failed = t->failed || !name;
        crdi_text_add(t, first ? "" : ", ");
        first = false;
        crdi_text_json(t, name ? name : "");
        crd_free(m->ctx, name);
    }
}

// What a replay has to know and cannot see in the rows.
static crd_status describe(crd_master* m, const crdi_exchange_writer* x, crd_text* t)
{
    char path[PATH_MAX];
    const char* file =
        m->plan->sys->file && m->plan->sys->file[0] ? realpath(m->plan->sys->file, path) : NULL;
    crdi_text_add(t, "{\"format\": 1, \"cardan\": ");
    crdi_text_json(t, crd_version());
    crdi_text_add(t, ", \"file\": ");
    crdi_text_json(t, file ? file : "");
    exchange_put_number(t, "start", m->plan->times.start);
    exchange_put_number(t, "stop", m->plan->times.stop);
    exchange_put_number(t, "tick", m->plan->times.tick);
    exchange_put_number(t, "step", m->plan->sys->run.step);
    exchange_put_number(t, "pace", m->plan->paced ? m->plan->sys->run.pace.factor : 0);
    put_flag(t, "controlled", m->plan->controlled);
    crdi_text_add(t, ", \"texts\": [");
    put_texts(m, t);
    crdi_text_add(t, "], \"order\": [");
    put_order(m, t);
    crdi_text_add(t, "], \"connections\": [");
    exchange_put_connections(m, x, t);
    crdi_text_add(t, "]}\n");
    return t->failed ? crdi_fail(m->ctx, CRD_E_MEMORY, "out of memory") : CRD_OK;
}

// ---- the file ----------------------------------------------------------------------------------

static crd_status create_recorder(crd_master* m, crdi_exchange_writer* x, crd_arena* room,
                                  crd_text texts[2])
{
    crd_status st = CRD_OK;
    char* description = NULL;
    const size_t n = (size_t)x->stream_count;
    crd_column* columns = crdi_arena_new(room, n * MOST_COLUMNS, sizeof *columns);
    crd_raster* rasters = crdi_arena_new(room, n, sizeof *rasters);
    crd_attachment files[3] = {{.name = CRD_ATTACHMENT_EXCHANGE, .mime = "application/json"},
                               {.name = CRD_ATTACHMENT_RUN, .mime = "application/json"}};
    crd_recorder_options opt = {
        .path = m->plan->sys->results.exchange,
        .columns = columns,
        .rasters = rasters,
        .started = m->life.wall_start,
        .title = m->plan->sys->title && m->plan->sys->title[0] ? m->plan->sys->title : NULL,
        .attachments = files,
    };
    if (!columns || !rasters) { return CRD_E_MEMORY; }
    for (; opt.raster_count < x->stream_count; opt.raster_count++) {
        stream* s = &x->streams[opt.raster_count];
        const crdi_member* target = &m->plan->members[s->link->to.member];
        add_columns(m, x, s, &opt, columns);
        rasters[opt.raster_count] = (crd_raster){
            .name = s->name,
            .interval = m->plan->controlled || (s->couple >= 0 && !s->is_input) ? 0 : target->step};
    }
    CRD_TRY(describe(m, x, &texts[0]));
    CRD_TRY(crd_master_describe_run(m, &texts[1]));
    CRD_TRY(crdi_record_read_description(m, &files[2], &description));
    for (int i = 0; i < 2; i++) {
        files[i].data = texts[i].data;
        files[i].length = texts[i].length;
    }
    opt.attachment_count = files[2].name ? 3 : 2;
    CRD_TRY(crd_recorder_create(m->ctx, &opt, &x->recorder));
fail:
    crd_free(m->ctx, description);
    return st;
}

crd_status crdi_exchange_open(crd_master* m)
{
    const char* path = m->plan->sys->results.exchange;
    if (!path) { return CRD_OK; }
    if (!crd_recorder_has_rasters(path)) {
        return crdi_fail(m->ctx, CRD_E_RANGE,
                         "%s: exchanged samples are written as MDF, the name should end in .mf4",
                         path);
    }
    crd_status st = CRD_OK;
    crd_arena room;
    crd_text texts[2];
    crdi_exchange_writer* x = crdi_arena_new(&m->arena, 1, sizeof *x);
    if (!x) { return CRD_E_MEMORY; }
    x->clocked = m->plan->paced;
    crd_arena_init(&room, m->ctx);
    crd_text_init(&texts[0], m->ctx);
    crd_text_init(&texts[1], m->ctx);
    CRD_TRY(plan_streams(m, x));
    if (x->stream_count == 0) {
        crdi_log(m->log, CRD_LOG_WARNING,
                 "%s is not written: the system has no connection whose values are numbers", path);
        goto fail;
    }
    CRD_TRY(create_recorder(m, x, &room, texts));
    crdi_events_lock(m); // a unit's own thread may have something to say
    m->exchange = x;
    crdi_events_unlock(m);
    if (crdi_record_is_open(m)) {
        crdi_exchange_event(m, CRD_EVENT_START, m->plan->times.start, "start");
    } else {
        crdi_events_start(m);
    }
fail:
    crd_text_clear(&texts[0]);
    crd_text_clear(&texts[1]);
    crd_arena_clear(&room);
    return st;
}

// After the record, whose end has told how the run ended. May come after a crash: takes no memory.
crd_status crdi_exchange_close(crd_master* m)
{
    crdi_exchange_writer* x = m->exchange;
    if (!x) { return CRD_OK; }
    char text[CRDI_TEXT] = "";
    if (x->dropped) {
        snprintf(text, sizeof text,
                 "%s: %lld " CRDI_GAPS ": writing it could not keep up with the run",
                 m->plan->sys->results.exchange, (long long)x->dropped);
        crdi_exchange_event(m, CRD_EVENT_WARNING, crd_master_time(m), text);
    }
    if (!crdi_record_is_open(m)) { crdi_events_stop(m); }
    const crd_status st = crd_recorder_finish(x->recorder);
    if (st >= 0 && x->dropped) { crdi_log_on(m->ctx, CRD_LOG_WARNING, text); }
    return st;
}

void crdi_exchange_free(crd_master* m)
{
    if (m->exchange) { crd_recorder_destroy(m->exchange->recorder); }
    m->exchange = NULL;
}

int64_t crdi_exchange_count(const crd_master* m)
{
    return m->exchange ? m->exchange->samples : 0;
}

void crdi_exchange_event(crd_master* m, crd_event_kind kind, double time, const char* text)
{
    if (m->exchange) { crd_recorder_event(m->exchange->recorder, kind, time, text); }
}

// ---- rows --------------------------------------------------------------------------------------

// NULL: left out. Where nobody hurries the run waits for room; a file that cannot be written any
// more does not end it, and is told at the end.
static crd_word* begin_row(const crd_master* m, crdi_exchange_writer* x, int raster)
{
    crd_word* row = m->plan->paced ? crd_recorder_try_raster(x->recorder, raster)
                                   : crd_recorder_begin_raster(x->recorder, raster);
    if (!row) { x->dropped++; }
    return row;
}

void crdi_exchange_arrived(const crd_master* m, const crdi_coupled* c, const crdi_flight* f)
{
    crdi_exchange_writer* x = m->exchange;
    const int raster = x->of_couple[c - m->connections.coupled];
    crd_word* row = begin_row(m, x, raster);
    if (!row) { return; }
    row[0].real = f->arrival;
    row[1].real = f->value;
    row[2].real = f->stamp;
    row[3].integer = f->sequence;
    if (x->clocked) { row[4].real = crdi_pacing_since_start(m); }
    crd_recorder_end_raster(x->recorder, raster);
    x->samples++;
}

// One sample of a connection without a coupling.
static void note_sample(const crd_master* m, crdi_exchange_writer* x, int raster, double t)
{
    stream* s = &x->streams[raster];
    const int64_t events = crdi_member_events(&m->plan->members[s->link->from.member]);
    crd_word* row = begin_row(m, x, raster);
    s->count++;
    if (!row) { return; }
    crdi_convert(&s->value);
    row[0].real = row[2].real = t;
    if (crd_type_kind((crd_type)s->value.to_type) == CRD_REAL) {
        row[1].real = s->now.real;
    } else {
        row[1].integer = s->now.integer;
    }
    row[3].integer = s->count - 1;
    int next = 4;
    if (x->clocked) { row[next++].real = crdi_pacing_since_start(m); }
    for (int d = 0; s->flow && d < 2 && s->flow->rates[d]; d++) {
        row[next++].real = s->flow->gain * *s->flow->rates[d];
    }
    if (s->flow) { row[next++].integer = events != s->events; }
    if (s->command) { row[next++].real = crdi_setpoint_acting(&s->at); }
    s->events = events;
    crd_recorder_end_raster(x->recorder, raster);
    x->samples++;
}

// What a coupling's input is told.
static void note_input(const crd_master* m, crdi_exchange_writer* x, int raster, double t)
{
    const stream* s = &x->streams[raster];
    const crdi_coupled* c = &m->connections.coupled[s->couple];
    crd_word* row = begin_row(m, x, raster);
    if (!row) { return; }
    row[0].real = t;
    row[1].real = c->estimators[0].estimate;
    if (s->command) {
        row[2].real = c->gain * *c->from + c->offset;
        row[3].real = crdi_setpoint_acting(&s->at);
    }
    crd_recorder_end_raster(x->recorder, raster);
}

void crdi_exchange_record(crd_master* m)
{
    crdi_exchange_writer* x = m->exchange;
    const double t = crd_master_time(m);
    for (int i = 0; i < x->stream_count; i++) {
        const stream* s = &x->streams[i];
        const crdi_connection* k = s->link;
        const int64_t target = m->plan->members[k->to.member].ticks;
        if (m->clock.n % target != 0 &&
            (!s->both || m->clock.n % m->plan->members[k->from.member].ticks != 0)) {
            continue;
        }
        if (s->couple < 0) {
            note_sample(m, x, i, t);
        } else if (s->is_input) {
            note_input(m, x, i, t);
        }
    }
}
