// cardan can log: frames on a bus, in a log of candump or in a capture, as they are or as signals;
// into a recording. cardan frames log: the same of datagrams in a capture.
#include "cardan/results.h"
#include "cli/cli.h"
#include "shared/base_interrupt.h"
#include "shared/base_system.h"
#include "shared/dcptools_log.h"
#include "shared/system.h"
#include "shared/wire_can.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static const double LONGEST_WAIT = 0.2, REJOIN = 0.5; // s

typedef struct log_options {
    crdi_common common;
    const char *dbc, *output, *write, *layout;
    crdi_list messages; // patterns
    int count;          // -1: not given
    double duration;    // s, NaN: until it is stopped
} log_options;

typedef struct reader {
    crdi_cli* cli;
    crdi_result* out;
    const log_options* o;
    crd_arena arena;
    crdi_wire_catalog catalog; // message_count 0: none
    double** values;           // of the fields of each message, the newest
    crdi_wire_state* states;   // of each message of a layout
    uint8_t* packet;           // the last datagram, with CRDI_WIRE_PAD behind it
    crd_dcp_capture* written;
    crd_status status; // of what a capture has
    crd_recorder* recorder;
    bool rasters;  // one for each message
    int* first;    // column of the first field of each message
    int64_t begin; // ns: time of the first frame
    int64_t seen, unknown, short_ones, errors, wrong;
    const char* source;
} reader;

// ---- the recording -----------------------------------------------------------------------------

// Begins with the first frame: its time is 0.
static crd_status begin_recording(reader* r)
{
    const crdi_wire_catalog* c = &r->catalog;
    crd_context* ctx = r->cli->ctx;
    int count = 0;
    for (int i = 0; i < c->message_count; i++) {
        r->first[i] = count;
        count += c->messages[i].field_count;
    }
    r->rasters = crd_recorder_has_rasters(r->o->output);
    crd_column* columns = crdi_arena_new(&r->arena, (size_t)count, sizeof *columns);
    crd_raster* rasters = crdi_arena_new(&r->arena, (size_t)c->message_count, sizeof *rasters);
    if (!columns || !rasters) { return CRD_E_MEMORY; }
    for (int i = 0; i < c->message_count; i++) {
        const crdi_wire_message* m = &c->messages[i];
        rasters[i] = (crd_raster){m->name, 0};
        for (int k = 0; k < m->field_count; k++) {
            columns[r->first[i] + k] = (crd_column){
                .name = crdi_arena_format(&r->arena, "%s.%s", m->name, m->fields[k].name),
                .unit = m->fields[k].unit,
                .description = m->fields[k].comment,
                .type = CRD_FLOAT64,
                .raster = r->rasters ? i : 0};
        }
    }
    if (r->arena.failed) { return CRD_E_MEMORY; }
    const crd_recorder_options opt = {.path = r->o->output,
                                      .columns = columns,
                                      .column_count = count,
                                      .rasters = rasters,
                                      .raster_count = r->rasters ? c->message_count : 0,
                                      .started = r->begin,
                                      .title = c->file};
    return crd_recorder_create(ctx, &opt, &r->recorder);
}

// ---- one frame ---------------------------------------------------------------------------------

static const crdi_wire_message* message_of(const reader* r, const crdi_can_frame* f, int* index)
{
    *index = r->catalog.message_count ? crdi_can_recognise(&r->catalog, f) : -1;
    return *index < 0 ? NULL : &r->catalog.messages[*index];
}

static void print_signals(crd_text* t, const crdi_wire_message* m, const uint8_t* data,
                          const double* values)
{
    const char* between = "";
    crdi_text_add(t, "%s", m->name);
    for (int i = 0; i < m->field_count; i++) {
        const crdi_wire_field* s = &m->fields[i];
        if (!crdi_wire_present(m, s, data)) { continue; }
        const char* item = crdi_wire_item_name(s, (int64_t)crdi_wire_get_raw(s, data));
        crdi_text_add(t, "%s %s=%.10g%s%s", between, s->name, values[i], *s->unit ? " " : "",
                      s->unit);
        if (item) { crdi_text_add(t, " '%s'", item); }
        between = ",";
    }
}

static void put_signals(crdi_result* o, const crdi_wire_message* m, const uint8_t* data,
                        const double* values)
{
    crdi_put(o, TEXT("message", m->name));
    crdi_result* signals = crdi_object(o, "signals");
    for (int i = 0; i < m->field_count; i++) {
        if (!crdi_wire_present(m, &m->fields[i], data)) { continue; }
        crdi_put(signals, REAL(m->fields[i].name, values[i]));
    }
}

// A line of candump, and with names what it says
static crd_status print_frame(reader* r, const char* interface, size_t length,
                              const crdi_can_frame* f, const crdi_wire_message* m,
                              const double* values)
{
    char frame[CRDI_CAN_TEXT];
    crdi_can_print_frame(f, frame);
    const int64_t us = f->time / 1000;
    if (crdi_makes_json(r->out)) {
        crdi_put(r->out, REAL("time", 1e-9 * (double)f->time),
                 TEXT("interface", crdi_worded(r->out, "%.*s", (int)length, interface)),
                 TEXT("frame", frame));
        if (f->error) { crdi_put(r->out, TEXT("error", crdi_can_error_name(f))); }
        if (m) { put_signals(r->out, m, f->data, values); }
        return crdi_result_print(r->out->root);
    }
    crd_text t;
    crd_text_init(&t, r->cli->ctx);
    crdi_text_add(&t, "(%010" PRId64 ".%06" PRId64 ") %.*s %s", us / 1000000, us % 1000000,
                  length ? (int)length : 4, length ? interface : "can0", frame);
    if (f->error) { crdi_text_add(&t, "  %s", crdi_can_error_name(f)); }
    if (m) {
        crdi_text_add(&t, "  ");
        print_signals(&t, m, f->data, values);
    }
    crdi_text_add(&t, "\n");
    const bool good = !t.failed && fwrite(t.data, 1, t.length, stdout) == t.length;
    const crd_status st = t.failed ? CRD_E_MEMORY : good ? CRD_OK : crdi_stdout_done(r->cli->ctx);
    crd_text_clear(&t);
    return st;
}

// Signals that are not in this frame have their last values.
static bool record_frame(reader* r, int index, double time)
{
    const crdi_wire_catalog* c = &r->catalog;
    crd_word* row = crd_recorder_begin_raster(r->recorder, r->rasters ? index : 0);
    if (!row) { return false; }
    row[0].real = time;
    for (int i = r->rasters ? index : 0; i < (r->rasters ? index + 1 : c->message_count); i++) {
        for (int k = 0; k < c->messages[i].field_count; k++) {
            row[crd_recorder_word(r->recorder, r->first[i] + k)].real = r->values[i][k];
        }
    }
    crd_recorder_end_raster(r->recorder, r->rasters ? index : 0);
    return true;
}

// The newest values of a message; -1: of none.
static crd_status record_message(reader* r, int index, int64_t time)
{
    if (r->o->output && !r->recorder) {
        const crd_status st = begin_recording(r);
        if (st < 0) { return st; }
    }
    const bool good =
        index < 0 || !r->recorder || record_frame(r, index, 1e-9 * (double)(time - r->begin));
    return good ? CRD_OK : CRD_E_IO; // finish says why
}

// A frame of `interface`. CRD_OK: go on.
static crd_status take_frame(reader* r, const char* interface, size_t length,
                             const crdi_can_frame* f)
{
    int index = -1;
    const crdi_wire_message* m = message_of(r, f, &index);
    if (r->o->messages.count && !(m && crdi_match_any(&r->o->messages, m->name))) { return CRD_OK; }
    if (r->seen++ == 0) { r->begin = f->time; }
    r->errors += f->error;
    r->unknown += r->catalog.message_count && !m && !f->error;
    if (m && f->length < m->length) { // of more bytes the first are those of the message
        r->short_ones++;
        m = NULL;
    }
    if (m) { crdi_wire_decode(m, f->data, r->values[index]); }
    if (r->written) { crdi_dcp_capture_frame(r->written, f); }
    const crd_status st = record_message(r, m ? index : -1, f->time);
    if (st < 0) { return st; }
    if (r->recorder && !crdi_makes_json(r->out)) { return CRD_OK; }
    return print_frame(r, interface, length, f, m, m ? r->values[index] : NULL);
}

static bool enough(const reader* r, const crdi_can_frame* f)
{
    return (r->o->count > 0 && r->seen >= r->o->count) ||
           (f && r->seen && 1e-9 * (double)(f->time - r->begin) > r->o->duration);
}

// ---- a bus -------------------------------------------------------------------------------------

static void tell_trouble(reader* r, crdi_can_bus* bus, bool* announced)
{
    const char* trouble = crdi_can_bus_trouble(bus);
    if (*trouble && !*announced) {
        crdi_log(r->cli->ctx, CRD_LOG_WARNING, "%s; it is used again when it is back", trouble);
    }
    *announced = *trouble;
}

static crd_status say_listening(reader* r)
{
    crdi_json_lines(r->out, true);
    if (crdi_makes_json(r->out)) {
        crdi_put(r->out, TEXT("event", "listening"), TEXT("interface", r->source));
        return crdi_result_print(r->out->root);
    }
    if (!r->o->common.quiet) { fprintf(stderr, "listening on %s\n", r->source); }
    return CRD_OK;
}

static crd_status read_bus(reader* r)
{
    crdi_can_bus* bus = NULL;
    bool announced = false;
    crd_status st = crdi_can_bus_open(r->cli->ctx, r->source, &bus);
    if (st < 0) { return st; }
    (void)crdi_interrupt_catch(&(crdi_interrupt_options){0});
    st = say_listening(r);
    const int64_t begin = crdi_now_ns();
    int64_t retry = begin, last = INT64_MAX; // ns: what the kernel had until then belongs to it
    while (st >= 0 && !enough(r, NULL)) {
        const double rest = r->o->duration - 1e-9 * (double)(crdi_now_ns() - begin);
        crdi_can_frame f;
        if (last == INT64_MAX && (rest <= 0 || crdi_interrupted())) {
            last = crdi_clock_ns(CLOCK_REALTIME);
        }
        if (crdi_can_bus_receive(bus, &f) && f.time <= last) {
            st = take_frame(r, r->source, strlen(r->source), &f);
            continue;
        }
        if (last != INT64_MAX) { break; }
        tell_trouble(r, bus, &announced);
        if (announced && crdi_now_ns() >= retry) {
            retry = crdi_now_ns() + (int64_t)(1e9 * REJOIN);
            (void)crdi_can_bus_rejoin(bus);
        }
        if (fflush(stdout) != 0) { st = crdi_stdout_done(r->cli->ctx); }
        crdi_can_bus_wait(bus, rest < LONGEST_WAIT ? rest : LONGEST_WAIT);
    }
    const crdi_can_counts c = crdi_can_bus_counts(bus);
    if (c.overrun || c.bad || c.downs) {
        crdi_log(r->cli->ctx, CRD_LOG_WARNING,
                 "%s: %" PRId64 " frames lost for want of room, %" PRId64
                 " packets that are no frames, %" PRId64 " times down",
                 r->source, c.overrun, c.bad, c.downs);
    }
    crdi_can_bus_close(bus);
    return st;
}

// ---- a log -------------------------------------------------------------------------------------

static crd_status read_line(reader* r, const char* line, size_t length, int number, bool* done)
{
    crdi_can_frame f;
    const char *interface = "", *why = "";
    size_t n = 0;
    if (strspn(line, " \t\r\n") >= length || line[0] == '#') { return CRD_OK; }
    if (!crdi_can_parse_line(line, length, &f, &interface, &n, &why)) {
        char shown[64];
        snprintf(shown, sizeof shown, "%.*s", length < 60 ? (int)length : 60, line);
        return crdi_fail(r->cli->ctx, CRD_E_FORMAT, "%s:%d: '%s', expected %s", r->source, number,
                         crdi_clip(shown).text, why);
    }
    *done = enough(r, &f);
    const crd_status st = *done ? CRD_OK : take_frame(r, interface, n, &f);
    *done = *done || enough(r, NULL);
    return st;
}

static crd_status read_log(reader* r)
{
    const bool standard = strcmp(r->source, "-") == 0;
    FILE* f = standard ? stdin : fopen(r->source, "re");
    char* line = NULL;
    size_t room = 0;
    bool done = false;
    crd_status st = CRD_OK;
    if (!f) { return crdi_file_fail(r->cli->ctx, r->source, errno); }
    if (standard) { r->source = "standard input"; }
    crdi_json_lines(r->out, false);
    for (int number = 1; st >= 0 && !done; number++) {
        const ssize_t n = getline(&line, &room, f);
        if (n < 0) { break; }
        st = read_line(r, line, (size_t)n, number, &done);
    }
    free(line);
    if (!standard) { fclose(f); }
    return st;
}

// ---- captures ----------------------------------------------------------------------------------

static bool take_captured(void* user, const crdi_captured* c)
{
    reader* r = user;
    crdi_can_frame f;
    if (c->link != CRDI_DCP_LINK_CAN || c->whole > c->length ||
        !crdi_can_unpack(c->bytes, c->length, &f)) {
        r->wrong++;
        return true;
    }
    f.time = c->ns;
    if (enough(r, &f)) { return false; }
    r->status = take_frame(r, "can", 3, &f);
    return r->status >= 0 && !enough(r, NULL);
}

static crd_status read_capture(reader* r)
{
    FILE* f = fopen(r->source, "rbe");
    if (!f) { return crdi_file_fail(r->cli->ctx, r->source, errno); }
    crdi_json_lines(r->out, false);
    const crd_status st = crdi_capture_read(r->cli->ctx, f, r->source, take_captured, r);
    fclose(f);
    return st < 0 ? st : r->status;
}

// What is wrong with it, "" if nothing is.
static const char* verdict_of(reader* r, const crdi_wire_message* m, int index, size_t length)
{
    static const char* const words[] = {
        [CRDI_WIRE_GOOD] = "",
        [CRDI_WIRE_LENGTH] = "wrong length",
        [CRDI_WIRE_CHECKSUM] = "wrong checksum",
        [CRDI_WIRE_COUNTER] = "wrong counter",
        [CRDI_WIRE_REPEATED] = "repeated",
        [CRDI_WIRE_OLD] = "overtaken",
    };
    return words[crdi_wire_judge(m, &r->states[index], r->packet, length)];
}

static crd_status print_datagram(reader* r, const crdi_dcp_seen* s, const crdi_wire_message* m,
                                 const char* wrong, const double* values)
{
    char from[32], to[32];
    (void)crd_dcp_address_print(&s->from, from, sizeof from);
    (void)crd_dcp_address_print(&s->to, to, sizeof to);
    crdi_put(r->out, REAL("time", s->time), TEXT("from", from), TEXT("to", to),
             INT("length", s->length));
    if (*wrong) { crdi_put(r->out, TEXT("wrong", wrong)); }
    crdi_say(r->out, "%17.6f  %s -> %s  %zu bytes", s->time, from, strstr(to, "://") + 3,
             s->length);
    if (*wrong) { crdi_say(r->out, "  %s", wrong); }
    if (m) {
        crd_text t;
        crd_text_init(&t, r->cli->ctx);
        print_signals(&t, m, r->packet, values);
        put_signals(r->out, m, r->packet, values);
        crdi_say(r->out, "  %s", t.failed || !t.data ? "" : crdi_result_copy(r->out, t.data));
        crd_text_clear(&t);
    }
    crdi_say(r->out, "\n");
    return crdi_result_print(r->out->root);
}

static bool take_datagram(void* user, const crdi_dcp_seen* s)
{
    reader* r = user;
    const int64_t time = llround(1e9 * s->time);
    const size_t room = CRDI_WIRE_LONGEST, n = s->length < room ? s->length : room;
    memcpy(r->packet, s->bytes, n);
    memset(r->packet + n, 0, CRDI_WIRE_PAD);
    const crdi_wire_message* m = crdi_wire_recognise_any(&r->catalog, r->packet, n);
    const int index = m ? (int)(m - r->catalog.messages) : -1;
    if (r->o->messages.count && !(m && crdi_match_any(&r->o->messages, m->name))) { return true; }
    if (r->seen && 1e-9 * (double)(time - r->begin) > r->o->duration) { return false; }
    if (r->seen++ == 0) { r->begin = time; }
    const char* wrong = m ? verdict_of(r, m, index, n) : "";
    r->unknown += !m;
    r->wrong += *wrong != 0;
    const bool whole = m && (size_t)m->length == n;
    if (whole && !*wrong) { crdi_wire_decode(m, r->packet, r->values[index]); }
    r->status = record_message(r, whole && !*wrong ? index : -1, time);
    if (r->status >= 0 && (!r->recorder || crdi_makes_json(r->out))) {
        r->status = print_datagram(r, s, whole && !*wrong ? m : NULL, wrong,
                                   whole ? r->values[index] : NULL);
    }
    return r->status >= 0 && !enough(r, NULL);
}

static size_t any_length(const void* user, const uint8_t* bytes, size_t there)
{
    return crdi_wire_stream_length(user, bytes, there, true);
}

static crd_status read_datagrams(reader* r)
{
    crdi_dcp_log* log = NULL;
    const crdi_dcp_log_options opt = {
        .message = take_datagram, .framing = {any_length, &r->catalog}, .user = r};
    FILE* f = fopen(r->source, "rbe");
    if (!f) { return crdi_file_fail(r->cli->ctx, r->source, errno); }
    crdi_json_lines(r->out, false);
    crd_status st = crdi_dcp_log_create(r->cli->ctx, &opt, &log);
    if (st >= 0) { st = crdi_dcp_log_read(log, f, r->source); }
    crdi_dcp_log_destroy(log);
    fclose(f);
    return st < 0 ? st : r->status;
}

static const char* message_name(const void* user, int i)
{
    return ((const reader*)user)->catalog.messages[i].name;
}

static crd_status load_messages(reader* r)
{
    crd_status st = CRD_OK;
    if (r->o->dbc) { CRD_TRY(crdi_wire_dbc_read(&r->arena, r->o->dbc, &r->catalog)); }
    if (r->o->layout) {
        CRD_TRY(crdi_layout_load(r->cli->ctx, r->o->layout, &r->arena, &r->catalog));
        r->packet = crdi_arena_new(&r->arena, CRDI_WIRE_LONGEST + CRDI_WIRE_PAD, 1);
        r->states = crdi_arena_new(&r->arena, (size_t)r->catalog.message_count, sizeof *r->states);
    }
    const crdi_wire_catalog* c = &r->catalog;
    const size_t n = (size_t)c->message_count;
    if (r->o->messages.count) {
        CRD_TRY(crdi_check_names(r->cli->ctx, &r->o->messages,
                                 r->o->layout ? r->o->layout
                                 : r->o->dbc  ? r->o->dbc
                                              : "no --dbc",
                                 "message", message_name, r, c->message_count));
    }
    r->values = crdi_arena_new(&r->arena, n, sizeof *r->values);
    r->first = crdi_arena_new(&r->arena, n, sizeof *r->first);
    for (size_t i = 0; r->values && i < n; i++) {
        const int fields = c->messages[i].field_count;
        r->values[i] = crdi_arena_new(&r->arena, (size_t)fields, sizeof **r->values);
        for (int k = 0; r->values[i] && k < fields; k++) {
            r->values[i][k] = NAN; // never seen
        }
    }
    CRD_TRY(crdi_arena_status(&r->arena));
    if (r->o->output && !n) {
        return crdi_fail(r->cli->ctx, CRD_E_RANGE,
                         "--output %s: what its columns are is said by --dbc FILE", r->o->output);
    }
    if (r->o->output) { CRD_TRY(crd_recorder_check_path(r->cli->ctx, r->o->output)); }
fail:
    return st;
}

// ---- the command -------------------------------------------------------------------------------

static crd_status can_log_say_summary(const reader* r)
{
    crdi_result* out = r->out;
    if (crdi_makes_json(out)) {
        crdi_put(out, TEXT("event", "ended"), INT("frames", r->seen), INT("unknown", r->unknown),
                 INT("short", r->short_ones), INT("errors", r->errors), INT("wrong", r->wrong));
        return crdi_result_print(out->root);
    }
    const crd_status st = crdi_stdout_done(r->cli->ctx);
    if (r->o->common.quiet) { return st; }
    const bool frames = !r->o->layout;
    fprintf(stderr, "%" PRId64 " %s%s", r->seen, frames ? "frame" : "message",
            crdi_plural(r->seen));
    if (r->unknown) {
        fprintf(stderr, ", %" PRId64 " of no message in the %s", r->unknown,
                frames ? "DBC file" : "layout");
    }
    if (r->wrong) {
        fprintf(stderr, ", %" PRId64 " %s", r->wrong,
                frames ? "packets that are not CAN" : "wrong");
    }
    if (r->short_ones) { fprintf(stderr, ", %" PRId64 " too short", r->short_ones); }
    if (r->errors) { fprintf(stderr, ", %" PRId64 " error frames", r->errors); }
    fprintf(stderr, "\n");
    return st;
}

static crd_status finish_recording(reader* r, crd_status st)
{
    if (!r->recorder) { return st; }
    const crd_status closed = crd_recorder_finish(r->recorder);
    crd_recorder_destroy(r->recorder);
    return st == CRD_OK || closed == CRD_E_IO ? closed : st;
}

static bool is_capture(const char* path)
{
    return crdi_ends_with(path, ".pcapng") || crdi_ends_with(path, ".pcap");
}

static crd_status run_can_log(crdi_cli* cli, const void* options, const crdi_list* arguments,
                              crdi_result* out)
{
    const log_options* o = options;
    reader r = {.cli = cli, .out = out, .o = o, .source = arguments->items[0]};
    struct stat s;
    crd_status st = CRD_OK;
    crd_arena_init(&r.arena, cli->ctx);
    const bool is_bus = strcmp(r.source, "-") != 0 && stat(r.source, &s) != 0 &&
                        (!strchr(r.source, '/') || strstr(r.source, "://")) &&
                        !crdi_ends_with(r.source, ".log") && !is_capture(r.source);
    CRD_TRY(load_messages(&r));
    if (o->write && crdi_same_file(o->write, r.source)) {
        CRD_TRY(crdi_fail(cli->ctx, CRD_E_RANGE,
                          "--write %s is what is read, expected another file", o->write));
    }
    if (o->write) { CRD_TRY(crd_dcp_capture_open(cli->ctx, o->write, &r.written)); }
    CRD_TRY(is_bus ? read_bus(&r) : is_capture(r.source) ? read_capture(&r) : read_log(&r));
    if (o->output && !r.recorder) { CRD_TRY(begin_recording(&r)); } // of nothing
    CRD_TRY(can_log_say_summary(&r));
fail:
    st = finish_recording(&r, st);
    crd_arena_clear(&r.arena);
    const crd_status written = crd_dcp_capture_close(r.written);
    return st < 0 ? st : written;
}

static crd_status run_frames_log(crdi_cli* cli, const void* options, const crdi_list* arguments,
                                 crdi_result* out)
{
    const log_options* o = options;
    reader r = {.cli = cli, .out = out, .o = o, .source = arguments->items[0]};
    crd_status st = CRD_OK;
    crd_arena_init(&r.arena, cli->ctx);
    if (!o->layout) {
        CRD_TRY(crdi_fail(cli->ctx, CRD_E_RANGE,
                          "expected --layout FILE, which says what the "
                          "datagrams are"));
    }
    CRD_TRY(load_messages(&r));
    CRD_TRY(read_datagrams(&r));
    if (o->output && !r.recorder) { CRD_TRY(begin_recording(&r)); } // of nothing
    CRD_TRY(can_log_say_summary(&r));
fail:
    st = finish_recording(&r, st);
    crd_arena_clear(&r.arena);
    return st;
}

static const crdi_option frames_rows[] = {
    OPT_FILE(log_options, layout, "layout", "yaml",
             "what the datagrams mean (docs/reference/frames.md)"),
    OPT_LIST(log_options, messages, "message", "PATTERN",
             "only messages of the layout that fit, with * and ?"),
    OPT_FILE(log_options, output, "output", "mf4|csv|mat",
             "record the fields instead of printing; in MF4 each message has its own times",
             .short_name = 'o'),
    OPT_INT(log_options, count, "count", "N", "end after so many datagrams", .short_name = 'n'),
    OPT_TIME(log_options, duration, "duration", CRDI_POSITIVE, "end after so long",
             .otherwise = INFINITY),
    OPT_FLAG(crdi_common, quiet, "quiet", "no count of datagrams on standard error"),
    CRDI_JSON_OPTION("one line of JSON for each, {time, from, to, length, message, signals}"),
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_frames_log = {
    .name = "frames log",
    .arguments = "FILE",
    .summary = "show cyclic datagrams of a capture by their layout",
    .description =
        "Reads UDP datagrams and TCP streams of a capture (pcapng, pcap) by the layout of a unit "
        "of datagrams: which message it is, the values of its fields, and what is wrong with it "
        "(length, checksum, counter). 'link: { capture: FILE }' of such a unit and 'cardan dcp "
        "emulate --raw --capture' write captures, tcpdump and Wireshark do, too.",
    .examples = {{"cardan frames log drive.pcapng --layout drive.layout.yaml", "both directions"},
                 {"cardan frames log drive.pcapng --layout drive.layout.yaml --message actual -o "
                  "actual.mf4",
                  "as a recording"}},
    OPTIONS(frames_rows, log_options),
    .min_arguments = 1,
    .max_arguments = 1,
    .extensions = "pcapng|pcap",
    .run = run_frames_log,
};

static const crdi_option rows[] = {
    OPT_FILE(log_options, dbc, "dbc", "dbc", "what the frames mean: names and values of signals"),
    OPT_LIST(log_options, messages, "message", "PATTERN",
             "only messages of the DBC file that fit, with * and ?"),
    OPT_FILE(log_options, output, "output", "mf4|csv|mat",
             "record the signals (with --dbc) instead of printing frames; in MF4 each message has "
             "its own times, in CSV and MAT each frame is a row with the last values of all",
             .short_name = 'o'),
    OPT_FILE(log_options, write, "write", "pcapng",
             "write the frames to this capture as well, for Wireshark", .short_name = 'w'),
    OPT_INT(log_options, count, "count", "N", "end after so many frames", .short_name = 'n'),
    OPT_TIME(log_options, duration, "duration", CRDI_POSITIVE, "end after so long",
             .otherwise = INFINITY),
    OPT_FLAG(crdi_common, quiet, "quiet", "no count of frames on standard error"),
    CRDI_JSON_OPTION("one line of JSON for each frame, {time, interface, frame, message, signals}"),
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_can_log = {
    .name = "can log",
    .arguments = "BUS|FILE",
    .summary = "show frames of a CAN bus or a log, as signals by a DBC file",
    .description =
        "Prints what passes on a CAN bus, or what a log of candump (- is standard input) or a "
        "capture (.pcapng, .pcap) has, as "
        "lines that candump -L writes: can-utils, python-can and cardan can send read them. With a "
        "DBC file the signals follow, or go into a recording that all other commands read. A bus "
        "is an interface of SocketCAN (can0, vcan0), CAN FD included, or one of this host that "
        "needs no driver, udp://GROUP:PORT with a multicast group: udp://239.74.163.2:43113.",
    .examples = {{"cardan can log can0 > drive.log", "as candump -L"},
                 {"cardan can log can0 --dbc drive.dbc --message Actual", "signals of one message"},
                 {"cardan can log drive.log --dbc drive.dbc -o drive.mf4", "a log as a recording"}},
    OPTIONS(rows, log_options),
    .min_arguments = 1,
    .max_arguments = 1,
    .extensions = "log|pcapng|pcap",
    .run = run_can_log,
};
