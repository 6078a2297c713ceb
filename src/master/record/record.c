// The record of a run: its file, and how a row is filled.
#include "master/master.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static crd_status record_make_columns(crd_master* m, crd_arena* room, crd_recorder_options* opt)
{
    crd_column* columns = crdi_arena_new(room, (size_t)m->record.signal_count, sizeof *columns);
    crd_raster* rasters = crdi_arena_new(room, (size_t)m->record.raster_count, sizeof *rasters);
    if (!columns || !rasters) { return CRD_E_MEMORY; }
    for (int i = 0; i < m->record.signal_count; i++) {
        const crdi_signal* s = &m->record.signals[i];
        const crdi_member* p = &m->plan->members[s->member];
        const crdi_offer* x = s->offer;
        if (x) {
            columns[i] = (crd_column){.name = x->name,
                                      .unit = x->unit,
                                      .description = x->description,
                                      .type = x->type,
                                      .raster = m->record.extras[s->member].raster,
                                      .labels = x->labels,
                                      .label_count = x->label_count};
            continue;
        }
        const crd_variable* v = &p->unit->info.variables[s->variable];
        columns[i] = (crd_column){.name = s->name,
                                  .unit = v->unit,
                                  .description = v->description,
                                  .type = (crd_type)v->type,
                                  .raster = m->record.extras[s->member].raster};
        if (i > 0 && s[-1].member == s->member && s[-1].variable == s->variable && !s[-1].offer) {
            columns[i].labels = columns[i - 1].labels; // the next element of an array
            columns[i].label_count = columns[i - 1].label_count;
            continue;
        }
        columns[i].labels =
            crdi_variable_labels(room, p->unit, s->variable, &columns[i].label_count);
        if (columns[i].label_count < 0) { return CRD_E_MEMORY; }
    }
    for (int i = 0; i < m->record.raster_count; i++) {
        rasters[i] =
            (crd_raster){.name = m->record.rasters[i].name,
                         .interval = (double)m->record.rasters[i].ticks * m->plan->times.tick};
    }
    opt->columns = columns;
    opt->column_count = m->record.signal_count;
    opt->rasters = rasters;
    opt->raster_count = m->record.raster_count;
    return CRD_OK;
}

enum { MOST_BYTES = 16 * 1024 * 1024 }; // of a description that is attached

// The description as it was read. A package or an FMU is no text, and what cannot be read is left
// out: the run does not depend on it. `bytes` belongs to the caller.
crd_status crdi_record_read_description(crd_master* m, crd_attachment* out, char** bytes)
{
    const char* path = m->plan->sys->file;
    const bool xml = crdi_ends_with(path, ".ssd");
    struct stat info;
    if (!xml && !crdi_ends_with(path, ".yaml") && !crdi_ends_with(path, ".yml")) { return CRD_OK; }
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) { return CRD_OK; }
    crd_status st = CRD_OK;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size <= MOST_BYTES) {
        const size_t size = (size_t)info.st_size;
        *bytes = crdi_new_array(m->ctx, size, 1);
        if (!*bytes) {
            st = CRD_E_MEMORY;
        } else if (read(fd, *bytes, size) == (ssize_t)size) {
            const char* slash = strrchr(path, '/');
            *out = (crd_attachment){.name = slash ? slash + 1 : path,
                                    .mime = xml ? "application/xml" : "application/yaml",
                                    .data = *bytes,
                                    .length = size};
        }
    }
    close(fd);
    return st;
}

// CSV has no room for anything but rows; then nothing is read, hashed or written down.
static bool takes_attachments(const char* path)
{
    return crdi_ends_with(path, ".mf4") || crdi_ends_with(path, ".mat");
}

// ---- a full disk -------------------------------------------------------------------------------

// A machine on the clock is not stopped because of a disk, unless that is asked for.
static void choose_on_full(crd_master* m, crd_recorder_options* opt)
{
    const char* asked = m->plan->sys->results.on_full;
    const bool bench = m->plan->paced && crdi_plan_has_hardware(m->plan);
    opt->on_full = bench ? CRD_ON_FULL_DROP : CRD_ON_FULL_STOP;
    opt->never_wait = m->plan->paced;
    opt->end = m->plan->times.stop;
    if (!asked) {
        // as it is
    } else if (strcmp(asked, "stop") == 0) {
        opt->on_full = CRD_ON_FULL_STOP;
    } else if (strcmp(asked, "thin") == 0) {
        opt->on_full = CRD_ON_FULL_THIN;
    } else if (strcmp(asked, "drop") == 0) {
        opt->on_full = CRD_ON_FULL_DROP;
    } else {
        opt->second = asked;
    }
    m->record.goes_on = opt->on_full != CRD_ON_FULL_STOP || opt->second;
}

// Says what happened so far; false: nothing did.
static bool note_loss(crd_master* m)
{
    const crd_recorder_loss l = crd_recorder_get_loss(m->record.recorder);
    char *text = m->record.note, *end = text + sizeof m->record.note;
    text[0] = 0;
    if (isnan(l.since) && l.lost == 0) { return false; }
    char* at = text + snprintf(text, sizeof m->record.note, "%s%sfrom t = %.6g s on",
                               l.reason[0] ? l.reason : "", l.reason[0] ? ": " : "", l.since);
    if (l.second) { at += snprintf(at, (size_t)(end - at), " the rest is in %.200s", l.second); }
    if (l.thin > 1) {
        at += snprintf(at, (size_t)(end - at), "%s rows are thinned out, at last to one of %d",
                       l.second ? ";" : "", l.thin);
    }
    if (l.lost || (!l.second && l.thin == 1)) {
        (void)snprintf(at, (size_t)(end - at), "%s rows are missing",
                       l.second || l.thin > 1 ? ";" : "");
    }
    return true;
}

static void __attribute__((cold, noinline)) look_for_loss(crd_master* m)
{
    m->record.warned = note_loss(m);
    if (m->record.warned) {
        crdi_log(m->log, CRD_LOG_WARNING, "%s: the disk is full or too slow, the run goes on; %s",
                 m->plan->sys->results.path, m->record.note);
    }
}

crd_recorder_loss crdi_record_loss(const crd_master* m)
{
    return m->record.recorder ? crd_recorder_get_loss(m->record.recorder)
                              : (crd_recorder_loss){.thin = 1, .since = NAN, .reason = ""};
}

const char* crdi_record_note(const crd_master* m)
{
    return m->record.note;
}

static crd_status create_recorder(crd_master* m, crd_arena* room, crd_text* what)
{
    crd_status st = CRD_OK;
    const crd_results_spec* r = &m->plan->sys->results;
    crd_attachment files[2] = {{.name = CRD_ATTACHMENT_RUN, .mime = "application/json"}};
    char* description = NULL;
    crd_recorder_options opt = {
        .path = r->path,
        .unit_row = r->unit_row,
        .mat_version = r->mat_version,
        .started = m->life.wall_start,
        .title = m->plan->sys->title && m->plan->sys->title[0] ? m->plan->sys->title : NULL,
        .attachments = files,
    };
    choose_on_full(m, &opt);
    CRD_TRY(record_make_columns(m, room, &opt));
    if (takes_attachments(r->path)) {
        CRD_TRY(crdi_record_reserve_verdict(m));
        CRD_TRY(crd_master_describe_run(m, what));
        CRD_TRY(crdi_record_read_description(m, &files[1], &description));
        files[0].data = what->data;
        files[0].length = what->length;
        opt.attachment_count = files[1].name ? 2 : 1;
    }
    CRD_TRY(crdi_record_open_spare(m));
    st = crd_recorder_create(m->record.ctx, &opt, &m->record.recorder);
    if (st < 0) {
        st = crdi_fail(m->ctx, st, "%s", crd_error_text(m->record.ctx));
        goto fail;
    }
    for (int i = 0; i < m->record.signal_count; i++) {
        m->record.values[i].word =
            crd_recorder_word(m->record.recorder, m->record.values[i].signal);
    }
    crdi_events_start(m);
fail:
    crd_free(m->ctx, description);
    return st;
}

void crdi_record_init(crd_master* m)
{
    crd_text_init(&m->record.verdict, m->ctx);
    crdi_map_init(&m->record.hashes, m->ctx);
}

crd_status crdi_record_open(crd_master* m)
{
    const bool columns = m->plan->opt.columns;
    if (!m->plan->sys->results.path) {
        const crd_status bound = m->live || columns ? crdi_record_bind(m) : CRD_OK;
        return bound < 0 ? bound : crdi_columns_open(m);
    }
    crd_arena room;
    crd_text what;
    crd_arena_init(&room, m->ctx);
    crd_text_init(&what, m->ctx);
    crd_status st = crdi_record_bind(m);
    if (st == CRD_OK) { st = create_recorder(m, &room, &what); }
    if (st == CRD_OK) { st = crdi_columns_open(m); }
    crd_text_clear(&what);
    crd_arena_clear(&room);
    return st;
}

// Whoever watches sees it when the units are at rest, and whether one of them failed in that.
static void note_end(crd_master* m)
{
    char text[CRDI_TEXT];
    const double t = crdi_time_seen(m);
    crdi_life_end_text(m, text);
    crdi_record_event(m, CRD_EVENT_STOP, t, text);
    if (m->exchange) { crdi_exchange_event(m, CRD_EVENT_STOP, t, text); }
}

// May come after a crash in the middle of anything: nothing here takes memory from the heap then.
crd_status crdi_record_close(crd_master* m)
{
    m->record.closing = true;
    if (!m->record.recorder) {
        if (m->exchange) { note_end(m); }
        return CRD_OK;
    }
    for (int i = 0; i < m->plan->member_count; i++) {
        m->record.heap_lost = m->record.heap_lost || m->plan->members[i].run->crashed;
    }
    note_end(m);
    crdi_events_stop(m);
    if (takes_attachments(m->plan->sys->results.path) &&
        crd_master_describe_verdict(m, &m->record.verdict) == CRD_OK) {
        // Without a verdict the rows are still worth it.
        (void)crd_recorder_attach(m->record.recorder,
                                  &(crd_attachment){.name = CRD_ATTACHMENT_VERDICT,
                                                    .mime = "application/json",
                                                    .data = m->record.verdict.data,
                                                    .length = m->record.verdict.length});
    }
    const crd_status st = crd_recorder_finish(m->record.recorder);
    m->record.heap_lost = false; // the record is safe
    (void)note_loss(m);
    if (st == CRD_OK) { return CRD_OK; }
    snprintf(m->life.message, sizeof m->life.message, "%s", crd_error_text(m->record.ctx));
    return crdi_fail(m->ctx, st, "%s", m->life.message);
}

bool crdi_record_rescue(crd_master* m, const char* sentence)
{
    if (m->record.closing) { return false; } // what became of it is said
    m->record.heap_lost = true;
    crdi_events_note(m, CRD_EVENT_ERROR, sentence);
    const crd_status st = crdi_record_close(m);
    if (st < 0) { crdi_log_on(m->ctx, CRD_LOG_WARNING, crd_error_text(m->ctx)); }
    (void)crdi_exchange_close(m);
    return m->record.recorder && st >= 0;
}

// ---- rows --------------------------------------------------------------------------------------

static crd_status read_extras(crd_master* m, crdi_raster* r)
{
    r->read = m->clock.n;
    for (int k = 0; k < r->member_count; k++) {
        const int i = m->record.readers[r->member_first + k];
        const crdi_member* p = &m->plan->members[i];
        crdi_extras* x = &m->record.extras[i];
        if (p->async && m->clock.n > 0) { continue; } // they came with its step
        m->running = i;
        const crd_status st =
            crdi_member_left(m, i, p->unit->ops->get(p->unit, x->binding, &x->values));
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

// What fails here fails in the step as well, and is told there.
void crdi_record_read_extras(crd_master* m)
{
    for (int i = 0; i < m->record.raster_count; i++) {
        crdi_raster* r = &m->record.rasters[i];
        if (r->member_count == 0 || r->read == m->clock.n) { continue; }
        r->read = m->clock.n;
        for (int k = 0; k < r->member_count; k++) {
            const int at = m->record.readers[r->member_first + k];
            const crdi_member* p = &m->plan->members[at];
            crdi_extras* x = &m->record.extras[at];
            if ((p->async && m->clock.n > 0) || m->clock.n % p->ticks != 0) { continue; }
            m->running = at;
            (void)p->unit->ops->get(p->unit, x->binding, &x->values);
            m->running = -1;
        }
    }
}

static crd_status __attribute__((cold, noinline)) fail_nan(crd_master* m, const crdi_recorded* p)
{
    const crdi_signal* s = &m->record.signals[p->signal];
    const crd_unit* u = m->plan->members[s->member].unit;
    if (crdi_member_lets_pass(m, s->member, u->info.variables[s->variable].name, crdi_time_seen(m),
                              *(const double*)p->from)) {
        return CRD_OK;
    }
    (void)crdi_fail(u->ctx, CRD_E_UNIT, "output '%s' is not a number (NaN)%s",
                    u->info.variables[s->variable].name, m->clock.n ? " after the step" : "");
    return crdi_member_failed(m, s->member, CRD_E_UNIT);
}

static bool is_allowed(const crd_master* m, const crdi_recorded* p)
{
    return isinf(*(const double*)p->from) ||
           m->plan->members[m->record.signals[p->signal].member].unit->spec->allow_nan;
}

// Outputs that only the record sees, where there is no file.
static crd_status look_for_nan(crd_master* m, const crdi_raster* r)
{
    const crdi_recorded* nan = NULL;
    for (int i = 0; i < r->value_count; i++) {
        const crdi_recorded* p = &m->record.values[r->value_first + i];
        if (p->watched && !isfinite(*(const double*)p->from) && (!nan || is_allowed(m, nan))) {
            nan = p;
        }
    }
    return nan ? fail_nan(m, nan) : CRD_OK;
}

static crd_status record_raster(crd_master* m, int index)
{
    crdi_raster* r = &m->record.rasters[index];
    const crd_status st = read_extras(m, r);
    if (st < 0) { return st; }
    if (m->record.columns) { crdi_columns_row(m, index); }
    if (!m->record.recorder) { return look_for_nan(m, r); }
    crd_word* row = crd_recorder_begin_raster(m->record.recorder, index);
    if (!row) {
        crdi_life_end(m, CRD_END_FAILED, -1); // finish says why
        return crdi_fail(m->ctx, CRD_E_IO, "%s: writing the results failed",
                         m->plan->sys->results.path);
    }
    const crdi_recorded* nan = NULL;
    row[0].real = crd_master_time(m);
    const crdi_recorded* values = m->record.values + r->value_first;
    for (int i = 0; i < r->value_count; i++) {
        const crdi_recorded* p = &values[i];
        if (p->kind == CRD_REAL) {
            const double x = *(const double*)p->from;
            row[p->word].real = x;
            if (__builtin_expect(!isfinite(x), 0) && p->watched && (!nan || is_allowed(m, nan))) {
                nan = p;
            }
        } else if (p->kind == CRD_INTEGER) {
            row[p->word].integer = *(const int64_t*)p->from;
        } else {
            const crd_bytes* b = p->from;
            crd_word_set_bytes(&row[p->word], b->data, b->length);
        }
    }
    crd_recorder_end_raster(m->record.recorder, index);
    if (m->record.goes_on && !m->record.warned) { look_for_loss(m); }
    return nan ? fail_nan(m, nan) : CRD_OK;
}

// Without a grid steps end at the rows' times, or where units do not allow that, the first step
// that reaches one makes the row.
static bool is_due(crd_master* m, const crdi_raster* r)
{
    if (!m->plan->controlled) {
        return m->clock.n % r->ticks == 0 || (r->at_end && m->clock.n == m->plan->times.tick_count);
    }
    const double interval = m->plan->sys->results.interval;
    const double slack = 1e-9 * interval;
    if (m->clock.time < m->record.next_row - slack && m->clock.time < m->plan->times.stop) {
        return false;
    }
    if (interval > 0) {
        m->record.next_row =
            m->plan->times.start +
            interval * (floor((m->clock.time + slack - m->plan->times.start) / interval) + 1);
    }
    return true;
}

crd_status crdi_record_rows(crd_master* m)
{
    if (!crdi_record_has_rows(m)) { return CRD_OK; }
    for (int i = 0; i < m->record.raster_count; i++) {
        const crdi_raster* r = &m->record.rasters[i];
        if (!is_due(m, r)) { continue; }
        const crd_status st = record_raster(m, i);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

double* crdi_record_next(crd_master* m)
{
    return &m->record.next_row;
}

double crdi_record_next_row(const crd_master* m)
{
    return crdi_record_has_rows(m) && m->plan->sys->results.interval > 0 ? m->record.next_row
                                                                         : (double)INFINITY;
}

// ---- for others --------------------------------------------------------------------------------

bool crdi_record_is_open(const crd_master* m)
{
    return m->record.recorder != NULL;
}

bool crdi_record_has_rows(const crd_master* m)
{
    return m->record.recorder || m->record.columns;
}

int64_t crdi_record_row_count(const crd_master* m)
{
    return m->record.recorder ? crd_recorder_rows(m->record.recorder) : crdi_columns_rows(m);
}

void crdi_record_event(crd_master* m, crd_event_kind kind, double time, const char* text)
{
    if (m->record.recorder) { crd_recorder_event(m->record.recorder, kind, time, text); }
}

crdi_extras* crdi_record_extras(crd_master* m, int member)
{
    return &m->record.extras[member];
}

bool crdi_record_needs(const crd_master* m, int member, int64_t tick)
{
    const crdi_member* p = &m->plan->members[member];
    const crdi_extras* x = &m->record.extras[member];
    if (!x->binding || !m->record.rasters || m->live) { return x->binding != NULL; }
    const crdi_raster* r = &m->record.rasters[x->raster];
    const int64_t row = (tick + r->ticks - 1) / r->ticks * r->ticks;
    return row < tick + p->ticks || (r->at_end && m->plan->times.tick_count < tick + p->ticks);
}

void crdi_record_free(crd_master* m)
{
    crd_recorder* r = m->record.recorder;
    m->record.recorder = NULL; // a unit may still crash
    crd_recorder_destroy(r);
    crdi_session_free(m);
    crdi_record_close_spare(m);
}

void crdi_record_clear(crd_master* m)
{
    crdi_columns_free(m);
    crd_text_clear(&m->record.verdict);
    crdi_map_clear(&m->record.hashes);
    crd_free(m->ctx, (void*)m->record.hash_texts);
    crd_free(m->ctx, m->record.signals);
}

void crdi_record_clear_member(crd_master* m, int member)
{
    crdi_extras* x = m->record.extras ? &m->record.extras[member] : NULL;
    if (!x) { return; }
    crdi_values_clear(m->plan->members[member].unit->ctx, x->binding, &x->values);
    crd_binding_destroy(x->binding);
}
