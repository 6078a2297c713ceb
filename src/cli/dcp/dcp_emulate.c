// cardan dcp emulate: a bad link between a master and its slaves.
#include "cardan/results.h"
#include "cli/realtime.h"
#include "shared/base_interrupt.h"
#include "shared/dcptools_relay.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

// ---- settings of a path ------------------------------------------------------------------------

typedef enum kind { TIME, PART, NUMBER, RATE, BYTES, CHOICE, ORDER, TRACE, CUT } kind;

// Each is an option for both directions, and a name for --there and --back.
#define SETTING_LIST(X)                                                                            \
    X(DELAY, "delay", "TIME", TIME, delay, "mean delay of a packet")                               \
    X(JITTER, "jitter", "TIME", TIME, jitter,                                                      \
      "how far delays spread around their mean: the half width of a uniform distribution, the "    \
      "standard deviation of the others")                                                          \
    X(DISTRIBUTION, "distribution", "NAME", CHOICE, distribution,                                  \
      "of the delays: uniform (unless given), normal, or gamma with a long tail")                  \
    X(CORRELATION, "correlation", "PART", PART, correlation,                                       \
      "of a delay with that of the packet before, below 1")                                        \
    X(LOSS, "loss", "PART", PART, loss,                                                            \
      "part of the packets that are lost, 0 to 1; streams repeat them, which takes time")          \
    X(BURSTS, "bursts", "PART", PART, burst,                                                       \
      "part of the packets at which a burst of losses begins")                                     \
    X(BURST_LENGTH, "burst-length", "N", NUMBER, burst_length,                                     \
      "packets that a burst lasts in the mean; 1 unless given")                                    \
    X(BURST_LOSS, "burst-loss", "PART", PART, burst_loss,                                          \
      "part of the packets in a burst that are lost; all unless given")                            \
    X(DUPLICATE, "duplicate", "PART", PART, duplicate, "part of the datagrams that come twice")    \
    X(REORDER, "reorder", "PART", PART, reorder,                                                   \
      "part of the datagrams that are held back, so that others overtake them")                    \
    X(REORDER_HOLD, "reorder-hold", "TIME", TIME, hold,                                            \
      "how long those are held back; 10 ms unless given")                                          \
    X(CORRUPT, "corrupt", "PART", PART, corrupt,                                                   \
      "part of the datagrams of which one byte becomes another")                                   \
    X(IN_ORDER, "in-order", "yes|no", ORDER, in_order,                                             \
      "whether datagrams queue behind each other, as on most links; yes unless given. With no, "   \
      "jitter lets them overtake each other")                                                      \
    X(RATE_LIMIT, "rate", "RATE", RATE, rate,                                                      \
      "most that passes, with the headers of IP and UDP or TCP: 125000 (bytes/s), '1 Mbit/s', "    \
      "'2 MB/s'")                                                                                  \
    X(QUEUE, "queue", "BYTES", BYTES, queue,                                                       \
      "bytes that may wait because of the rate; 65536 unless given, more is lost")                 \
    X(REPEAT, "repeat", "TIME", TIME, repeat,                                                      \
      "what a loss costs a stream; a round trip unless given")                                     \
    X(PLAY, "trace", "FILE", TRACE, trace_time,                                                    \
      "play the latencies of a recording, over and over, instead of delay and jitter; NaN is a "   \
      "loss (cardan dcp link -o writes such a file)")                                              \
    X(CUTS, "cut", "FROM..TO", CUT, cuts,                                                          \
      "nothing passes in this time, counted from the first packet on: '2 s..3 s'; '2 s..' for "    \
      "ever; several behind each other with commas. Datagrams are gone, streams wait")

typedef struct setting {
    const char* name;
    kind kind;
    size_t offset; // in crdi_dcp_path
} setting;

#define SETTING_ROW(id, name, metavar, kind, field, help)                                          \
    {name, kind, offsetof(crdi_dcp_path, field)},
static const setting settings[] = {SETTING_LIST(SETTING_ROW)};
#define SETTING_ENUM(id, name, metavar, kind, field, help) SET_##id,
enum { SETTING_LIST(SETTING_ENUM) SETTINGS, MOST = 64 };
static const char* const distributions[] = {"uniform", "normal", "gamma", NULL};

typedef struct emulate_options {
    crdi_common common;
    const char* both[SETTINGS]; // in the order of the settings
    crdi_list listen, to, there, back;
    const char *near, *far, *listen_key, *to_key, *capture, *ports;
    int seed, memory;
    double idle;
    bool control_only, raw, realtime, plain;
} emulate_options;

typedef struct emulator {
    crdi_cli* cli;
    const emulate_options* o;
    crd_dcp_net *near, *far;
    crd_dcp_capture* capture;
    crdi_dcp_relay* relay;
    crd_arena arena;                     // latencies in s
    crd_table* traces[2 * SETTINGS + 2]; // that were read
    int trace_count;
    crd_dcp_address at[MOST], to[MOST];
    int count;
    bool buses; // of CAN
    crd_pace_report system;
} emulator;

static crd_status wrong_profile(crd_context* ctx, const char* option, const char* name,
                                const char* text, const char* expected)
{
    return crdi_fail(ctx, CRD_E_RANGE, "--%s%s%s '%s', expected %s", option, *name ? " " : "", name,
                     crdi_clip(text).text, expected);
}

static bool dcp_emulate_read_time(const char* text, double* out)
{
    crd_dimension dim, time;
    bool bare = false;
    (void)crd_dimension_parse("s", &time);
    return crd_quantity_parse(text, out, &dim, &bare) &&
           (bare || crd_dimension_equal(&dim, &time)) && *out >= 0;
}

// "2 s..3 s, 8 s.."
static bool read_cuts(const char* text, crdi_dcp_path* p)
{
    p->cut_count = 0;
    for (const char* at = text; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        const char* dots = strstr(at, "..");
        const size_t length = strcspn(at, ",");
        char from[32] = "", to[32] = "";
        if (!dots || dots >= at + length || p->cut_count == CRDI_DCP_CUTS_MAX) { return false; }
        const int rest = (int)(at + length - dots) - 2;
        const int a = snprintf(from, sizeof from, "%.*s", (int)(dots - at), at);
        const int b = snprintf(to, sizeof to, "%.*s", rest, dots + 2);
        if (a >= (int)sizeof from || b >= (int)sizeof to) { return false; }
        crdi_dcp_cut* c = &p->cuts[p->cut_count++];
        c->to = INFINITY;
        const bool ends = to[strspn(to, " ")] != 0;
        if (!dcp_emulate_read_time(from + strspn(from, " "), &c->from) ||
            (ends && !dcp_emulate_read_time(to + strspn(to, " "), &c->to)) || !(c->from < c->to)) {
            return false;
        }
    }
    return true;
}

static bool read_rate(const char* text, double* out)
{
    static const struct {
        const char* name;
        double factor;
    } units[] = {{"", 1},
                 {"bytes/s", 1},
                 {"B/s", 1},
                 {"kB/s", 1e3},
                 {"MB/s", 1e6},
                 {"GB/s", 1e9},
                 {"bit/s", 0.125},
                 {"kbit/s", 0.125e3},
                 {"Mbit/s", 0.125e6},
                 {"Gbit/s", 0.125e9}};
    const size_t n = crdi_number_prefix(text);
    const char* unit = text + n + strspn(text + n, " ");
    if (!crdi_parse_double(text, n, out) || !(*out > 0)) { return false; }
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(unit, units[i].name) == 0) {
            *out *= units[i].factor;
            return true;
        }
    }
    return false;
}

// The recording of a link: the column of latencies, in s or ms.
static crd_status read_trace(emulator* x, const char* path, crdi_dcp_path* p)
{
    crd_context* ctx = x->cli->ctx;
    crd_table* t = NULL;
    crd_status st = crd_table_read(ctx, path, &t);
    if (st < 0) { return st; }
    x->traces[x->trace_count++] = t;
    int column = t->column_count == 1 ? 0 : crd_table_find(t, "latency");
    if (column < 0) { column = crd_table_find(t, "delay"); }
    if (column < 0) {
        return crdi_fail(ctx, CRD_E_NOT_FOUND,
                         "%s has %d signals and none is called latency or delay", path,
                         t->column_count);
    }
    const crd_table_column* c = &t->columns[column];
    crd_dimension unit, time;
    (void)crd_dimension_parse("s", &time);
    if (c->texts || c->rows < 1 ||
        (c->unit[0] &&
         (!crd_dimension_parse(c->unit, &unit) || !crd_dimension_equal(&unit, &time)))) {
        return crdi_fail(ctx, CRD_E_RANGE, "%s: '%s' is %s, expected latencies in s or ms", path,
                         c->name,
                         c->texts      ? "text"
                         : c->rows < 1 ? "empty"
                                       : c->unit);
    }
    const double factor = c->unit[0] ? unit.factor : 1;
    double* delays = crdi_arena_new(&x->arena, (size_t)c->rows, sizeof *delays);
    if (!delays) { return CRD_E_MEMORY; }
    for (int64_t i = 0; i < c->rows; i++) {
        delays[i] = factor * c->values[i];
    }
    p->trace_time = c->time;
    p->trace_delay = delays;
    p->trace_count = c->rows;
    return CRD_OK;
}

// Sets one of them from its text. `name` is what stands before it in messages.
static crd_status set_profile(emulator* x, crdi_dcp_path* p, const setting* s, const char* option,
                              const char* name, const char* text)
{
    crd_context* ctx = x->cli->ctx;
    char* at = (char*)p + s->offset;
    double value = 0;
    switch (s->kind) {
    case TIME:
        if (!dcp_emulate_read_time(text, &value)) {
            return wrong_profile(ctx, option, name, text, "a time such as '20 ms'");
        }
        break;
    case PART:
        if (!crdi_parse_double(text, strlen(text), &value) || !(value >= 0 && value <= 1)) {
            return wrong_profile(ctx, option, name, text, "a part from 0 to 1");
        }
        break;
    case NUMBER:
        if (!crdi_parse_double(text, strlen(text), &value) || !(value >= 1 && value < 1e9)) {
            return wrong_profile(ctx, option, name, text, "a number of 1 or more");
        }
        break;
    case RATE:
        if (!read_rate(text, &value)) {
            return wrong_profile(ctx, option, name, text,
                                 "bytes per second, or a rate such as '1 Mbit/s' or '2 MB/s'");
        }
        break;
    case BYTES: {
        uint64_t bytes = 0;
        if (!crdi_parse_uint64(text, strlen(text), &bytes) || bytes == 0) {
            return wrong_profile(ctx, option, name, text, "a number of bytes");
        }
        *(size_t*)(void*)at = (size_t)bytes;
        return CRD_OK;
    }
    case CHOICE:
        for (int i = 0; distributions[i]; i++) {
            if (strcmp(text, distributions[i]) == 0) {
                p->distribution = (crdi_dcp_jitter)i;
                return CRD_OK;
            }
        }
        return wrong_profile(ctx, option, name, text, "uniform, normal or gamma");
    case ORDER:
        if (strcmp(text, "yes") != 0 && strcmp(text, "no") != 0) {
            return wrong_profile(ctx, option, name, text, "yes or no");
        }
        p->in_order = strcmp(text, "yes") == 0;
        return CRD_OK;
    case TRACE:
        return read_trace(x, text, p);
    case CUT:
        return read_cuts(text, p)
                   ? CRD_OK
                   : wrong_profile(ctx, option, name, text,
                                   "times such as '2 s..3 s', or '2 s..' for ever; 8 at most");
    }
    *(double*)(void*)at = value;
    return CRD_OK;
}

static const char* next_setting(void* user)
{
    int* i = user;
    return *i < SETTINGS ? settings[(*i)++].name : NULL;
}

// "delay=20 ms"
static crd_status set_one(emulator* x, crdi_dcp_path* p, const char* option, const char* text)
{
    crd_context* ctx = x->cli->ctx;
    const char* equals = strchr(text, '=');
    char name[32] = "";
    snprintf(name, sizeof name, "%.*s", equals ? (int)(equals - text) : (int)strlen(text), text);
    for (int i = 0; equals && i < SETTINGS; i++) {
        if (strcmp(settings[i].name, name) == 0) {
            return set_profile(x, p, &settings[i], option, name, equals + 1);
        }
    }
    int i = 0;
    const char* near = crdi_nearest(name, next_setting, &i);
    return crdi_fail(ctx, CRD_E_RANGE, "--%s '%s', expected NAME=VALUE such as delay='20 ms'%s%s%s",
                     option, crdi_clip(text).text, near && equals ? "; did you mean " : "",
                     near && equals ? near : "", near && equals ? "?" : "");
}

static crd_status read_paths(emulator* x, crdi_dcp_relay_options* opt)
{
    const emulate_options* o = x->o;
    crd_status st = CRD_OK;
    if (o->both[SET_PLAY] && (o->both[SET_DELAY] || o->both[SET_JITTER])) {
        return crdi_fail(x->cli->ctx, CRD_E_RANGE,
                         "--trace has its own delays, expected no --delay and --jitter with it");
    }
    for (int i = 0; i < SETTINGS; i++) {
        if (!o->both[i]) { continue; }
        CRD_TRY(set_profile(x, &opt->there, &settings[i], settings[i].name, "", o->both[i]));
        CRD_TRY(set_profile(x, &opt->back, &settings[i], settings[i].name, "", o->both[i]));
    }
    if (o->there.count + o->back.count > SETTINGS) {
        return crdi_fail(x->cli->ctx, CRD_E_RANGE, "more than %d times --there and --back",
                         (int)SETTINGS);
    }
    for (int i = 0; i < o->there.count; i++) {
        CRD_TRY(set_one(x, &opt->there, "there", o->there.items[i]));
    }
    for (int i = 0; i < o->back.count; i++) {
        CRD_TRY(set_one(x, &opt->back, "back", o->back.items[i]));
    }
fail:
    return st;
}

// ---- bringing it up ----------------------------------------------------------------------------

static crd_status read_ip(crd_context* ctx, const char* option, const char* text, uint32_t* out)
{
    struct in_addr a;
    if (!text) { return CRD_OK; }
    if (inet_pton(AF_INET, text, &a) != 1 || a.s_addr == 0) {
        return wrong_profile(ctx, option, "", text, "an own IPv4 address such as 192.168.2.6");
    }
    *out = ntohl(a.s_addr);
    return CRD_OK;
}

static crd_status dcp_emulate_read_ports(crd_context* ctx, const char* text,
                                         crdi_dcp_relay_options* opt)
{
    if (!text) { return CRD_OK; }
    const char* dash = strchr(text, '-');
    uint64_t from = 0, to = 0;
    if (!dash || !crdi_parse_uint64(text, (size_t)(dash - text), &from) ||
        !crdi_parse_uint64(dash + 1, strlen(dash + 1), &to) || from < 1 || to > 65535 ||
        from > to) {
        return wrong_profile(ctx, "data-ports", "", text, "two ports such as 2048-4095");
    }
    opt->port_from = (uint16_t)from;
    opt->port_to = (uint16_t)to;
    return CRD_OK;
}

// Two buses of CAN: frames of one go to the other, and back.
static crd_status read_buses(emulator* x)
{
    const emulate_options* o = x->o;
    x->buses = crdi_dcp_is_bus(o->to.items[0]) && crdi_dcp_is_bus(o->listen.items[0]);
    if (!x->buses || o->to.count > 1 || o->listen_key || o->to_key || o->both[SET_RATE_LIMIT]) {
        return crdi_fail(x->cli->ctx, CRD_E_RANGE,
                         "a CAN bus goes with another one, --listen can://vcan0 --to can://vcan1, "
                         "without keys and without --rate");
    }
    if (strcmp(o->to.items[0], o->listen.items[0]) == 0) {
        return crdi_fail(x->cli->ctx, CRD_E_RANGE,
                         "--listen and --to are both %s, expected two buses", o->to.items[0]);
    }
    x->at[0] = x->to[0] = (crd_dcp_address){CRDI_DCP_LOOPBACK, CRDI_DCP_BUS_PORT, CRD_DCP_CAN};
    x->count = 1;
    return CRD_OK;
}

static crd_status read_addresses(emulator* x)
{
    const emulate_options* o = x->o;
    crd_context* ctx = x->cli->ctx;
    crd_status st = CRD_OK;
    if (o->to.count == 0 || o->listen.count != o->to.count || o->to.count > MOST) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "%d times --listen and %d times --to, expected a pair for each slave, %d "
                         "at most: --listen udp://127.0.0.2:8080 --to udp://127.0.0.1:8080",
                         o->listen.count, o->to.count, MOST);
    }
    if (crdi_dcp_is_bus(o->to.items[0]) || crdi_dcp_is_bus(o->listen.items[0])) {
        return read_buses(x);
    }
    for (; x->count < o->to.count; x->count++) {
        CRD_TRY(crd_dcp_address_parse(ctx, o->listen.items[x->count], &x->at[x->count]));
        CRD_TRY(crd_dcp_address_parse(ctx, o->to.items[x->count], &x->to[x->count]));
    }
fail:
    return st;
}

static crd_status open_net(emulator* x, const char* key, const crd_dcp_address* there, int count,
                           const char* words, crd_dcp_key_role role, crd_dcp_net** out)
{
    static const crdi_dcp_framing any = {crdi_dcp_framing_any, NULL};
    crd_context* ctx = x->cli->ctx;
    crd_status st = CRD_OK;
    for (int i = 0; i < count; i++) {
        CRD_TRY(crdi_dcp_check_plain(ctx, &there[i], key != NULL, x->o->plain && !key, words));
    }
    CRD_TRY(crd_dcp_net_create(ctx, out));
    if (x->o->raw) { crdi_dcp_net_set_framing(*out, &any); }
    if (key) { CRD_TRY(crdi_dcp_net_secure_files(ctx, &key, 1, role, NULL, out)); }
fail:
    return st;
}

static crd_status open_bus(emulator* x, const char* text, crd_dcp_net** out)
{
    struct crdi_can_bus* bus = NULL;
    const crd_status st = crdi_dcp_bus_open(x->cli->ctx, text, &bus);
    return st < 0 ? st : crdi_dcp_net_bus(x->cli->ctx, bus, out);
}

static crd_status open_nets(emulator* x)
{
    const emulate_options* o = x->o;
    crd_status st = CRD_OK;
    if (x->buses) {
        CRD_TRY(open_bus(x, o->listen.items[0], &x->near));
        return open_bus(x, o->to.items[0], &x->far);
    }
    CRD_TRY(open_net(x, o->listen_key, x->at, x->count, "--listen-key FILE or --plain",
                     CRD_DCP_BENCH_ROLE, &x->near));
    CRD_TRY(open_net(x, o->to_key, x->to, x->count, "--to-key FILE or --plain", CRD_DCP_MASTER_ROLE,
                     &x->far));
fail:
    return st;
}

static crd_status open_emulator(emulator* x)
{
    const emulate_options* o = x->o;
    crd_context* ctx = x->cli->ctx;
    crd_status st = CRD_OK;
    crdi_dcp_relay_options opt = crdi_dcp_relay_defaults();
    opt.control_only = o->control_only;
    opt.raw = o->raw;
    opt.there.in_order = opt.back.in_order = true;
    if (o->seed >= 0) { opt.seed = (uint64_t)o->seed; }
    if (o->memory > 0) { opt.memory = (size_t)o->memory << 20; }
    if (!isnan(o->idle)) { opt.idle = o->idle; }
    CRD_TRY(read_addresses(x));
    if (x->buses) { opt.raw = opt.control_only = true; }
    CRD_TRY(read_paths(x, &opt));
    CRD_TRY(read_ip(ctx, "near-address", o->near, &opt.near_ip));
    CRD_TRY(read_ip(ctx, "far-address", o->far, &opt.far_ip));
    CRD_TRY(dcp_emulate_read_ports(ctx, o->ports, &opt));
    CRD_TRY(open_nets(x));
    if (opt.far_ip == 0) { opt.far_ip = crdi_dcp_net_source_ip(x->far, &x->to[0]); }
    if (o->capture) {
        CRD_TRY(crd_dcp_capture_open(ctx, o->capture, &x->capture));
        crd_dcp_net_capture(x->near, x->capture);
        crd_dcp_net_capture(x->far, x->capture);
    }
    CRD_TRY(crdi_dcp_relay_create(ctx, x->near, x->far, &opt, &x->relay));
    for (int i = 0; i < x->count; i++) {
        CRD_TRY(crdi_dcp_relay_add(x->relay, &x->at[i], &x->to[i]));
    }
fail:
    return st;
}

static crd_status close_emulator(emulator* x)
{
    crdi_dcp_relay_destroy(x->relay);
    crd_dcp_net_destroy(x->near);
    crd_dcp_net_destroy(x->far);
    for (int i = 0; i < x->trace_count; i++) {
        crd_table_destroy(x->traces[i]);
    }
    crd_arena_clear(&x->arena);
    return crd_dcp_capture_close(x->capture);
}

// ---- what it says ------------------------------------------------------------------------------

static crd_status dcp_emulate_say_ready(const emulator* x, crdi_result* o)
{
    crdi_put(o, TEXT("event", "listening"));
    crdi_result* list = crdi_array(o, "channels");
    for (int i = 0; i < x->count; i++) {
        char at[32], to[32];
        (void)crd_dcp_address_print(&x->at[i], at, sizeof at);
        (void)crd_dcp_address_print(&x->to[i], to, sizeof to);
        const char* here = x->buses ? x->o->listen.items[0] : at;
        const char* there = x->buses ? x->o->to.items[0] : to;
        crdi_put(crdi_row(list), TEXT("at", here), TEXT("to", there));
        crdi_say(o, "listening at %s for %s\n", here, there);
    }
    return crdi_result_print(o->root);
}

typedef struct counter {
    const char *name, *key; // of text, of JSON
    size_t offset;
} counter;
#define AT(field) offsetof(crdi_dcp_path_counts, field)
static const counter counters[] = {
    {"received", "received", AT(received)},
    {"bytes received", "bytes_received", AT(bytes_received)},
    {"duplicated", "duplicated", AT(duplicated)},
    {"sent", "sent", AT(sent)},
    {"bytes sent", "bytes_sent", AT(bytes_sent)},
    {"lost", "lost", AT(lost)},
    {"cut", "cut", AT(cut)},
    {"queue full", "queue_full", AT(queue_full)},
    {"no room", "no_room", AT(no_room)},
    {"nowhere", "nowhere", AT(nowhere)},
    {"unsent", "unsent", AT(unsent)},
    {"waiting", "waiting", AT(waiting)},
    {"corrupted", "corrupted", AT(corrupted)},
    {"held", "held", AT(held)},
    {"reordered", "reordered", AT(reordered)},
    {"repeated", "repeated", AT(repeated)},
    {"bursts", "bursts", AT(bursts)},
};
#undef AT
enum { COUNTERS = sizeof counters / sizeof *counters };

static int64_t count_of(const crdi_dcp_path_counts* c, int i)
{
    return *(const int64_t*)(const void*)((const char*)c + counters[i].offset);
}

static void put_path(crdi_result* o, const char* key, const crdi_dcp_path_counts* c)
{
    crdi_result* path = crdi_object(o, key);
    for (int i = 0; i < COUNTERS; i++) {
        crdi_put(path, INT(counters[i].key, count_of(c, i)));
    }
    crdi_put(path, REAL("late", c->late));
}

static void say_counts(const crdi_dcp_relay_counts* c, crdi_result* out)
{
    static const crdi_column columns[] = {
        {"", "name", ""}, {">there", "there", ""}, {">back", "back", ""}, {0}};
    char late[32];
    crdi_result* list = crdi_array(out, NULL);
    for (int i = 0; i < COUNTERS; i++) {
        const int64_t a = count_of(&c->there, i), b = count_of(&c->back, i);
        const bool always = i == 0 || strcmp(counters[i].name, "sent") == 0;
        if (a == 0 && b == 0 && !always) { continue; }
        crdi_put(crdi_row(list), TEXT("name", counters[i].name), INT("there", a), INT("back", b));
    }
    crdi_show_table(out, list, columns, "");
    crdi_say(out, "up to %s late; %" PRId64 " port%s for data opened, %" PRId64 " closed",
             crdi_format_seconds(late, fmax(c->there.late, c->back.late)), c->opened,
             crdi_plural(c->opened), c->closed);
    if (c->unmapped) { crdi_say(out, ", %" PRId64 " could not be", c->unmapped); }
    if (c->outside) { crdi_say(out, ", %" PRId64 " addresses left alone", c->outside); }
    if (c->strangers) { crdi_say(out, "; %" PRId64 " requests of strangers", c->strangers); }
    crdi_say(out, "\n");
}

static void dcp_emulate_say_summary(const emulator* x, crdi_result* out)
{
    const crdi_dcp_relay_counts c = crdi_dcp_relay_get_counts(x->relay);
    crdi_put(out, TEXT("event", "ended"));
    put_path(out, "there", &c.there);
    put_path(out, "back", &c.back);
    crdi_put(out, INT("rewritten", c.rewritten), INT("outside", c.outside),
             INT("unmapped", c.unmapped), INT("opened", c.opened), INT("closed", c.closed),
             INT("strangers", c.strangers));
    say_counts(&c, out);
}

// ---- the command -------------------------------------------------------------------------------

// A secured network has handshakes to repeat now and then, of which poll knows nothing.
static void relay_on(emulator* x, const sigset_t* mask)
{
    const double most = x->o->listen_key || x->o->to_key ? 0.02 : x->buses ? 0.1 : 1;
    while (!crdi_interrupted()) {
        struct pollfd fds[2] = {{.fd = crd_dcp_net_descriptor(x->near), .events = POLLIN},
                                {.fd = crd_dcp_net_descriptor(x->far), .events = POLLIN}};
        const bool more = crdi_dcp_relay_poll(x->relay);
        const double left = crdi_dcp_relay_next(x->relay) - crd_dcp_net_now(x->near);
        const double wait = more ? 0 : fmax(0, fmin(left, most));
        const struct timespec t = {.tv_sec = (time_t)wait,
                                   .tv_nsec = (long)(1e9 * (wait - floor(wait)))};
        (void)ppoll(fds, 2, &t, mask);
    }
}

static crd_status run_emulate(crdi_cli* cli, const void* options, const crdi_list* arguments,
                              crdi_result* out)
{
    (void)arguments;
    emulator x = {.cli = cli, .o = options};
    crd_status st = CRD_OK;
    sigset_t mask; // signals come in waiting only: none is missed
    (void)crdi_interrupt_catch(&(crdi_interrupt_options){0});
    crdi_interrupt_block(&mask);
    crd_arena_init(&x.arena, cli->ctx);
    crdi_json_lines(out, true);
    CRD_TRY(open_emulator(&x));
    if (x.o->realtime) { CRD_TRY(crdi_realtime_serve(cli, &x.system)); }
    CRD_TRY(dcp_emulate_say_ready(&x, out));
    relay_on(&x, &mask);
    dcp_emulate_say_summary(&x, out);
fail:
    if (x.o->realtime) { crdi_realtime_leave(&x.system); }
    sigprocmask(SIG_SETMASK, &mask, NULL);
    const crd_status closed = close_emulator(&x);
    return st < 0 ? st : closed;
}

#define SETTING_OPTION(id, word, value, kind, field, text)                                         \
    {.name = word,                                                                                 \
     .type = SET_##id == SET_PLAY ? CRDI_OPT_FILE : CRDI_OPT_TEXT,                                 \
     .metavar = value,                                                                             \
     .choices = SET_##id == SET_DISTRIBUTION ? distributions : NULL,                               \
     .offset = offsetof(emulate_options, both) + SET_##id * sizeof(const char*),                   \
     .help = text},

static const crdi_option rows[] = {
    OPT_LIST(emulate_options, listen, "listen", "ADDRESS",
             "where the master finds the slave now, such as udp://127.0.0.2:8080; port 0 chooses "
             "one. Once for each --to"),
    OPT_LIST(emulate_options, to, "to", "ADDRESS",
             "the slave, such as udp://127.0.0.1:8080; several are several times --listen and "
             "--to. Both may be a CAN bus, can://vcan0 or can://239.74.163.2:43113 of this host: "
             "frames of one go to the other, and back"),
    SETTING_LIST(SETTING_OPTION) //
    OPT_LIST(emulate_options, there, "there", "NAME=VALUE",
             "one of the settings above for the way to the slaves only: --there delay='30 ms'"),
    OPT_LIST(emulate_options, back, "back", "NAME=VALUE", "and for the way back from them"),
    OPT_INT(emulate_options, seed, "seed", "N",
            "of the chance; 0 unless given. Equal seeds do the same to equal traffic"),
    OPT_FLAG(emulate_options, control_only, "control-only",
             "leave the network information in requests alone: data go past the emulator"),
    OPT_FLAG(emulate_options, raw, "raw",
             "what passes is not DCP but any datagrams or streams: nothing is looked into"),
    OPT_TEXT(emulate_options, near, "near-address", "IP",
             "own address on the master's side, where data for the slaves arrive; that of "
             "--listen unless given"),
    OPT_TEXT(emulate_options, far, "far-address", "IP",
             "own address on the slaves' side; that of the interface that leads to the first --to "
             "unless given"),
    OPT_TEXT(emulate_options, ports, "data-ports", "FROM-TO",
             "ports for the data of slaves that have the emulator's own address: they need other "
             "ones than the master says, and their descriptions have to allow them; any unless "
             "given"),
    OPT_FILE(emulate_options, listen_key, "listen-key", NULL,
             "encrypt and authenticate the master's side with this key (cardan dcp key)"),
    OPT_FILE(emulate_options, to_key, "to-key", NULL,
             "encrypt and authenticate the slaves' side; two emulators make a tunnel"),
    OPT_FLAG(emulate_options, plain, "plain",
             "no key on a side although it is beyond this host: for slaves and masters that have "
             "none, on a network that is trusted"),
    OPT_FILE(emulate_options, capture, "capture", "pcapng",
             "write all PDUs of both sides, for Wireshark and cardan dcp log"),
    OPT_COUNT(emulate_options, memory, "memory", "MIB",
              "most that may be on its way, in MiB; 16 unless given"),
    OPT_TIME(emulate_options, idle, "idle", CRDI_POSITIVE,
             "ports for data of a slave that was silent for so long are closed; 1 h unless given"),
    CRDI_REALTIME_OPTION(emulate_options, realtime),
    CRDI_JSON_OPTION("one line of JSON when it listens and one with all counters when it ends"),
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_dcp_emulate = {
    .name = "dcp emulate",
    .arguments = "",
    .summary = "a bad link to slaves: delay, jitter, loss",
    .description =
        "Stands between a master and its slaves and hands on what passes, late, sometimes not at "
        "all, twice or in another order. The master is told the addresses of --listen instead of "
        "the slaves' own. Data connections are led through it as well: network information in "
        "requests that configure them is rewritten, ports are opened for them, and closed when "
        "the slave is deregistered, reset or cleared. Datagrams of UDP are lost; streams of TCP "
        "stay whole, and a loss costs them time. Each direction has settings of its "
        "own if wanted. It ends with SIGINT or SIGTERM and tells what became of all packets. With "
        "keys it encrypts one side: two of them make a tunnel for masters and slaves that have no "
        "encryption.",
    .examples = {{"cardan dcp emulate --listen udp://127.0.0.2:8080 --to udp://127.0.0.1:8080 "
                  "--delay '20 ms' --jitter '2 ms' --loss 0.01",
                  "the same in both directions"},
                 {"cardan dcp emulate --listen udp://127.0.0.2:8080 --to udp://127.0.0.1:8080 "
                  "--delay '20 ms' --back delay='60 ms' --back rate='1 Mbit/s'",
                  "the way back is worse"},
                 {"cardan dcp emulate --listen udp://127.0.0.2:8080 --to udp://127.0.0.1:8080 "
                  "--trace link.csv --capture both.pcapng",
                  "a link that was measured with cardan dcp link -o"},
                 {"cardan dcp emulate --listen can://vcan0 --to can://vcan1 --delay '5 ms' --loss "
                  "0.01",
                  "frames between two CAN buses"},
                 {"cardan dcp emulate --listen udp://127.0.0.2:8080 --to udp://127.0.0.1:8080 "
                  "--cut '5 s..6 s'",
                  "somebody pulls the plug for a second"},
                 {"cardan dcp emulate --listen udp://127.0.0.2:8080 --to udp://10.1.0.2:9000 "
                  "--to-key link.key",
                  "one end of a tunnel; the other: --listen udp://10.1.0.2:9000 --listen-key "
                  "link.key --to udp://127.0.0.1:8080"}},
    OPTIONS(rows, emulate_options),
    .run = run_emulate,
};
