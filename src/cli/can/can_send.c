// cardan can send: frames, messages of a DBC file or a log of candump onto a bus.
#include "cli/cli.h"
#include "shared/base_interrupt.h"
#include "shared/wire_can.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct send_options {
    crdi_common common;
    const char *dbc, *log;
    double period, speed; // s; times as fast as recorded
    int count;            // -1: not given
} send_options;

typedef struct sender {
    crdi_cli* cli;
    const send_options* o;
    crd_arena arena;
    crdi_wire_catalog catalog;
    crdi_can_bus* bus;
    int64_t sent;
} sender;

// ---- frames from words -------------------------------------------------------------------------

// name=value: a number, or a name of the value table
static crd_status set_signal(sender* s, const crdi_wire_message* m, const char* text, size_t length,
                             double* values)
{
    crd_context* ctx = s->cli->ctx;
    const char* equals = memchr(text, '=', length);
    const size_t n = equals ? (size_t)(equals - text) : length;
    const char* name = crdi_arena_text(&s->arena, text, n);
    const char* value = equals ? crdi_arena_text(&s->arena, equals + 1, length - n - 1) : "";
    if (!name || !value) { return CRD_E_MEMORY; }
    const int i = crdi_wire_field_find(m, name);
    if (i < 0 || !equals) {
        return crdi_fail(ctx, CRD_E_NOT_FOUND, "message '%s' has no signal '%s', expected %s=value",
                         m->name, crdi_clip(name).text, m->field_count ? m->fields[0].name : "no ");
    }
    const crdi_wire_field* f = &m->fields[i];
    for (int k = 0; k < f->item_count; k++) {
        if (strcmp(f->items[k].name, value) != 0) { continue; }
        values[i] = (double)f->items[k].value * f->factor + f->offset;
        return CRD_OK;
    }
    if (!crdi_parse_double(value, strlen(value), &values[i]) || !isfinite(values[i])) {
        return crdi_fail(ctx, CRD_E_RANGE, "%s.%s = '%s', expected a number%s", m->name, name,
                         crdi_clip(value).text, f->item_count ? " or a name of its values" : "");
    }
    uint8_t room[CRDI_CAN_LONGEST + CRDI_WIRE_PAD];
    if (!crdi_wire_put(f, room, values[i])) {
        const double a = f->lowest * f->factor + f->offset, b = f->highest * f->factor + f->offset;
        return crdi_fail(ctx, CRD_E_RANGE, "%s.%s = %s, expected %.10g to %.10g %s", m->name, name,
                         value, fmin(a, b), fmax(a, b), f->unit);
    }
    return CRD_OK;
}

// "Set:SpeedRef=100,TorqueRef=5"; signals that are not said have their start values
static crd_status make_message(sender* s, const char* text, crdi_can_frame* out)
{
    crd_status st = CRD_OK;
    const size_t n = strcspn(text, ":");
    const char* name = crdi_arena_text(&s->arena, text, n);
    if (!name) { return CRD_E_MEMORY; }
    const int i = crdi_wire_message_find(&s->catalog, name);
    if (i < 0) {
        return crdi_fail(s->cli->ctx, CRD_E_NOT_FOUND,
                         "'%s' is no frame as 123#DEADBEEF and no message of %s",
                         crdi_clip(text).text, s->o->dbc);
    }
    const crdi_wire_message* m = &s->catalog.messages[i];
    double* values = crdi_arena_new(&s->arena, (size_t)m->field_count, sizeof *values);
    if (!values) { return CRD_E_MEMORY; }
    CRD_TRY(crdi_can_frame_for(s->cli->ctx, m, out));
    for (int k = 0; k < m->field_count; k++) {
        values[k] = m->fields[k].initial;
    }
    for (const char* p = text + n; *p; p += strcspn(p, ",")) {
        p++;
        CRD_TRY(set_signal(s, m, p, strcspn(p, ","), values));
    }
    (void)crdi_wire_encode(m, values, out->data);
fail:
    return st;
}

static crd_status make_frame(sender* s, const char* text, crdi_can_frame* out)
{
    const char* why = "";
    if (s->o->dbc && !strchr(text, '#')) { return make_message(s, text, out); }
    if (crdi_can_parse_frame(text, strlen(text), out, &why)) { return CRD_OK; }
    return crdi_fail(s->cli->ctx, CRD_E_RANGE, "'%s', expected %s%s", crdi_clip(text).text, why,
                     s->o->dbc ? "" : ", or with --dbc a message as Set:SpeedRef=100");
}

// ---- sending -----------------------------------------------------------------------------------

static crd_status send_one(sender* s, const crdi_can_frame* f)
{
    // A queue that is full has room again soon; an interface that is down has not.
    for (int i = 0; i < 1000 && !crdi_can_bus_send(s->bus, f); i++) {
        const char* trouble = crdi_can_bus_trouble(s->bus);
        if (*trouble || i == 999 || crdi_interrupted()) {
            return crdi_fail(s->cli->ctx, CRD_E_IO, "after %" PRId64 " frames: %s", s->sent,
                             *trouble ? trouble : "the bus takes no more of them");
        }
        const struct timespec t = {.tv_nsec = 1000000};
        (void)nanosleep(&t, NULL);
    }
    s->sent++;
    return CRD_OK;
}

static void sleep_until(int64_t ns)
{
    const struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static crd_status send_words(sender* s, const crdi_list* arguments)
{
    crd_status st = CRD_OK;
    const int count = arguments->count - 1;
    crdi_can_frame* frames = crdi_arena_new(&s->arena, (size_t)count, sizeof *frames);
    if (!frames) { return CRD_E_MEMORY; }
    for (int i = 0; i < count; i++) {
        CRD_TRY(make_frame(s, arguments->items[i + 1], &frames[i]));
    }
    const bool again = s->o->period > 0;
    const int64_t rounds = s->o->count > 0 ? s->o->count : again ? INT64_MAX : 1;
    const int64_t begin = crdi_now_ns();
    for (int64_t k = 0; k < rounds && !crdi_interrupted(); k++) {
        if (again) { sleep_until(begin + (int64_t)(1e9 * s->o->period * (double)k)); }
        for (int i = 0; i < count && !crdi_interrupted(); i++) {
            CRD_TRY(send_one(s, &frames[i]));
        }
    }
fail:
    return st;
}

// With the times between them that the log has; --speed 0: without
static crd_status send_log(sender* s, FILE* file, const char* name)
{
    char* line = NULL;
    size_t room = 0;
    crd_status st = CRD_OK;
    int64_t first = 0;
    const int64_t begin = crdi_now_ns();
    for (int number = 1; st >= 0 && !crdi_interrupted(); number++) {
        const ssize_t n = getline(&line, &room, file);
        crdi_can_frame f;
        const char *interface = "", *why = "";
        size_t length = 0;
        if (n < 0 || (s->o->count > 0 && s->sent >= s->o->count)) { break; }
        if (line[strspn(line, " \t\r\n")] == 0 || line[0] == '#') { continue; }
        if (!crdi_can_parse_line(line, (size_t)n, &f, &interface, &length, &why)) {
            st = crdi_fail(s->cli->ctx, CRD_E_FORMAT, "%s:%d: '%s', expected %s", name, number,
                           crdi_clip(line).text, why);
            break;
        }
        if (f.error) { continue; } // nobody can send those
        if (first == 0) { first = f.time; }
        if (s->o->speed > 0) {
            sleep_until(begin + (int64_t)((double)(f.time - first) / s->o->speed));
        }
        st = send_one(s, &f);
    }
    free(line);
    return st;
}

static crd_status open_log(sender* s)
{
    const bool standard = strcmp(s->o->log, "-") == 0;
    FILE* f = standard ? stdin : fopen(s->o->log, "re");
    if (!f) { return crdi_file_fail(s->cli->ctx, s->o->log, errno); }
    const crd_status st = send_log(s, f, standard ? "standard input" : s->o->log);
    if (!standard) { fclose(f); }
    return st;
}

// ---- the command -------------------------------------------------------------------------------

static crd_status run_can_send(crdi_cli* cli, const void* options, const crdi_list* arguments,
                               crdi_result* out)
{
    const send_options* o = options;
    sender s = {.cli = cli, .o = o};
    crd_status st = CRD_OK;
    if ((arguments->count > 1) == (o->log != NULL)) {
        return crdi_fail(
            cli->ctx, CRD_E_RANGE,
            "expected either frames, cardan can send can0 123#DEADBEEF, or --log FILE");
    }
    crd_arena_init(&s.arena, cli->ctx);
    if (o->dbc) { CRD_TRY(crdi_wire_dbc_read(&s.arena, o->dbc, &s.catalog)); }
    CRD_TRY(crdi_can_bus_open(cli->ctx, arguments->items[0], &s.bus));
    (void)crdi_interrupt_catch(&(crdi_interrupt_options){0});
    CRD_TRY(o->log ? open_log(&s) : send_words(&s, arguments));
fail:
    crdi_put(out, INT("sent", s.sent));
    if (st == CRD_OK && !o->common.quiet) {
        crdi_say(out, "%" PRId64 " frame%s sent\n", s.sent, crdi_plural(s.sent));
    }
    crdi_can_bus_close(s.bus);
    crd_arena_clear(&s.arena);
    return st;
}

static const crdi_option rows[] = {
    OPT_FILE(send_options, dbc, "dbc", "dbc",
             "messages can be said by name: Set:SpeedRef=100,Enable=1; signals that are not said "
             "have their start values"),
    OPT_FILE(send_options, log, "log", "log",
             "frames of a log of candump, as cardan can log writes it, too; - is standard input"),
    OPT_TIME(send_options, period, "period", CRDI_POSITIVE,
             "send the frames again and again, so long after one another"),
    OPT_INT(send_options, count, "count", "N",
            "end after so many times, or of a log so many frames", .short_name = 'n'),
    OPT_NUMBER(send_options, speed, "speed", "FACTOR", CRDI_NOT_NEGATIVE,
               "of a log: so many times as fast as it was; 0: without pauses", .otherwise = 1),
    OPT_FLAG(crdi_common, quiet, "quiet", "no count of frames"),
    CRDI_JSON_OPTION("print how many frames were sent as JSON"),
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_can_send = {
    .name = "can send",
    .arguments = "BUS [FRAME...]",
    .summary = "send CAN frames, messages of a DBC file, or a candump log",
    .description =
        "Sends frames to a CAN bus (see cardan can log): as cansend takes them, 123#DEADBEEF, "
        "12345678#AB with a long identifier, 123##1AB of CAN FD, 123#R; or by name with a DBC "
        "file; or all of a log, at the pace at which it was recorded.",
    .examples = {{"cardan can send vcan0 123#DEADBEEF", "one frame"},
                 {"cardan can send can0 --dbc drive.dbc Set:SpeedRef=100,Enable=1 --period 10ms",
                  "a message, cyclically"},
                 {"cardan can send vcan0 --log drive.log --speed 2", "a log, twice as fast"}},
    OPTIONS(rows, send_options),
    .min_arguments = 1,
    .max_arguments = -1,
    .run = run_can_send,
};
