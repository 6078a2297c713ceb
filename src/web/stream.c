// PlotJuggler's UDP server: batches of samples as JSON.
//
// A datagram is a list of objects, {"timestamp": 1.25, "mass1": {"v": 3.2}}, which PlotJuggler
// shows as the tree mass1/v. It never waits: what the socket does not take is dropped and counted.
#include "web/web.h"

#include <errno.h>
#include <math.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { NUMBER = 24, BEGIN = 15 + NUMBER, ENDS = 3 }; // bytes: [{"timestamp": and }}]

typedef struct group {
    char* open; // "mass1":{ as JSON
    size_t length;
} group;

typedef struct chosen {
    int signal;
    int group;   // -1: a name without unit
    char* label; // "v": as JSON
    size_t length;
} chosen;

struct crdi_stream {
    crd_context* ctx;
    int fd;
    chosen* signals; // by group: an object has each of them once
    int count;
    group* groups;
    int group_count;
    crd_arena names;
    crdi_stream_counts counts;
    char datagram[CRDI_STREAM_BYTES];
    size_t length;
    size_t widest;  // bytes that a row can take
    int64_t rows;   // since the last flush
    int64_t stride; // every how-manieth row is sent
};

// ---- opening -----------------------------------------------------------------------------------

static crd_status parse_target(crd_context* ctx, const char* target, char host[256], char port[8])
{
    static const char scheme[] = "pj://";
    const char* p = target;
    if (strncmp(p, scheme, sizeof scheme - 1) != 0) {
        return crdi_fail(ctx, CRD_E_RANGE, "stream '%s': expected pj://HOST:PORT",
                         crdi_clip(target).text);
    }
    p += sizeof scheme - 1;
    const char* stop = NULL;
    const char* rest = NULL;
    if (*p == '[') {
        stop = strchr(++p, ']');
        rest = stop ? stop + 1 : NULL;
    } else {
        stop = p + strcspn(p, ":/");
        rest = stop;
    }
    int64_t number = CRDI_STREAM_PORT;
    size_t length = rest ? strlen(rest) : 0;
    if (length > 0 && rest[length - 1] == '/') { length--; }
    if (!stop || stop == p || stop - p > 255 || (length > 0 && *rest != ':') ||
        (length > 0 &&
         (!crdi_parse_int64(rest + 1, length - 1, &number) || number < 1 || number > 65535))) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "stream '%s': expected pj://HOST:PORT with a port from 1 to 65535, as in "
                         "pj://127.0.0.1:9870",
                         crdi_clip(target).text);
    }
    memcpy(host, p, (size_t)(stop - p));
    host[stop - p] = 0;
    snprintf(port, 8, "%d", (int)number);
    return CRD_OK;
}

static crd_status connect_to(crd_context* ctx, const char* target, const char* host,
                             const char* port, int* out)
{
    struct addrinfo* found = NULL;
    const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_family = AF_UNSPEC};
    // Known also where no file or server knows it.
    const char* name = strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
    const int gai = getaddrinfo(name, port, &hints, &found);
    if (gai != 0) {
        return crdi_fail(ctx, CRD_E_NOT_FOUND, "stream '%s': no host '%s': %s",
                         crdi_clip(target).text, crdi_clip(host).text, gai_strerror(gai));
    }
    int fd = -1, error = 0;
    for (const struct addrinfo* a = found; a && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) < 0) {
            error = errno;
            close(fd);
            fd = -1;
        } else if (fd < 0) {
            error = errno;
        }
    }
    freeaddrinfo(found);
    if (fd < 0) {
        return crdi_fail(ctx, CRD_E_IO, "stream '%s': %s", crdi_clip(target).text, strerror(error));
    }
    const int room = 1 << 20; // a flush may be many datagrams
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    *out = fd;
    return CRD_OK;
}

crd_status crdi_stream_open(crd_context* ctx, const char* target, crdi_stream** out)
{
    char host[256], port[8];
    crd_status st = parse_target(ctx, target, host, port);
    if (st < 0) { return st; }
    crdi_stream* s = crdi_new(ctx, sizeof *s);
    if (!s) { return CRD_E_MEMORY; }
    s->ctx = ctx;
    s->fd = -1;
    s->stride = 1;
    crd_arena_init(&s->names, ctx);
    CRD_TRY(connect_to(ctx, target, host, port, &s->fd));
    *out = s;
    return CRD_OK;
fail:
    crdi_stream_close(s);
    return st;
}

void crdi_stream_close(crdi_stream* s)
{
    if (!s) { return; }
    if (s->fd >= 0) { close(s->fd); }
    crd_arena_clear(&s->names);
    crd_free(s->ctx, s);
}

const crdi_stream_counts* crdi_stream_get_counts(const crdi_stream* s)
{
    return &s->counts;
}

int crdi_stream_signals(const crdi_stream* s)
{
    return s->count;
}

// ---- names -------------------------------------------------------------------------------------

// [text, text + length) as JSON and `tail` behind it, dots as slashes.
static char* json_name(crdi_stream* s, const char* text, size_t length, const char* tail,
                       size_t* out_length)
{
    char* plain = crdi_arena_text(&s->names, text, length);
    if (!plain) { return NULL; }
    for (char* p = plain; *p; p++) {
        if (*p == '.') { *p = '/'; }
    }
    crd_text t;
    crd_text_init(&t, s->ctx);
    crdi_text_json(&t, plain);
    crdi_text_add(&t, "%s", tail);
    char* made = t.failed ? NULL : crdi_arena_text(&s->names, t.data, t.length);
    *out_length = t.length;
    crd_text_clear(&t);
    return made;
}

static bool stream_is_wanted(const char* name, const char* const* patterns, int count)
{
    for (int i = 0; i < count; i++) {
        if (crdi_glob(patterns[i], name)) { return true; }
    }
    return count == 0;
}

static crd_status find_group(crdi_stream* s, crd_map* map, const char* name, size_t length,
                             int* out)
{
    *out = -1;
    if (length == 0) { return CRD_OK; }
    char* unit = crdi_arena_text(&s->names, name, length);
    if (!unit) { return CRD_E_MEMORY; }
    *out = crdi_map_find(map, unit);
    if (*out >= 0) { return CRD_OK; }
    group* g = &s->groups[s->group_count];
    g->open = json_name(s, unit, length, ":{", &g->length);
    if (!g->open) { return CRD_E_MEMORY; }
    *out = s->group_count++;
    return crdi_map_add(map, unit, *out, NULL);
}

static int by_group(const void* x, const void* y)
{
    const chosen *a = x, *b = y;
    return a->group != b->group ? (a->group > b->group) - (a->group < b->group)
                                : (a->signal > b->signal) - (a->signal < b->signal);
}

crd_status crdi_stream_choose(crdi_stream* s, const crdi_live_info* info,
                              const char* const* patterns, int pattern_count)
{
    enum { LONGEST = 200 }; // a name that leaves room for its value, escaped as it may be
    crd_status st = CRD_OK;
    const size_t most = (size_t)info->signal_count + 1;
    crd_map map;
    crdi_map_init(&map, s->ctx);
    s->count = s->group_count = 0; // it may have run out of memory before
    crd_arena_clear(&s->names);
    s->signals = crdi_arena_new(&s->names, most, sizeof *s->signals);
    s->groups = crdi_arena_new(&s->names, most, sizeof *s->groups);
    if (!s->signals || !s->groups) { CRD_TRY(CRD_E_MEMORY); }
    for (int i = 0; i < info->signal_count; i++) {
        const char* name = info->signals[i].name;
        if (strlen(name) > LONGEST || !stream_is_wanted(name, patterns, pattern_count)) {
            continue;
        }
        chosen* c = &s->signals[s->count];
        const char* dot = strchr(name, '.');
        const char* rest = dot ? dot + 1 : name;
        c->signal = i;
        CRD_TRY(find_group(s, &map, name, dot ? (size_t)(dot - name) : 0, &c->group));
        c->label = json_name(s, rest, strlen(rest), ":", &c->length);
        if (!c->label) { CRD_TRY(CRD_E_MEMORY); }
        // "\u001f" for a byte is the worst of escapes
        if (c->length + (c->group < 0 ? 0 : s->groups[c->group].length) > CRDI_STREAM_BYTES / 2) {
            continue;
        }
        s->count++;
    }
    qsort(s->signals, (size_t)s->count, sizeof *s->signals, by_group);
    s->widest = BEGIN + ENDS;
    for (int i = 0; i < s->count; i++) {
        const chosen* c = &s->signals[i];
        const bool enters = c->group >= 0 && (i == 0 || c[-1].group != c->group);
        s->widest += 1 + c->length + NUMBER + (enters ? 1 + s->groups[c->group].length : 0);
    }
fail:
    crdi_map_clear(&map);
    return st;
}

// ---- sending -----------------------------------------------------------------------------------

static void send_datagram(crdi_stream* s)
{
    if (s->length == 0) { return; }
    s->datagram[s->length++] = ']';
    // ECONNREFUSED tells of an earlier one: nobody listens there yet.
    ssize_t n = send(s->fd, s->datagram, s->length, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == ECONNREFUSED) {
        n = send(s->fd, s->datagram, s->length, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    if (n < 0) {
        s->counts.dropped++;
    } else {
        s->counts.datagrams++;
    }
    s->length = 0;
}

static void stream_put(crdi_stream* s, const char* bytes, size_t length)
{
    memcpy(s->datagram + s->length, bytes, length);
    s->length += length;
}

static void stream_put_double(crdi_stream* s, double x)
{
    char number[32];
    const int n = crdi_format_double(number, x);
    stream_put(s, number, (size_t)n);
}

// Ends what is open: the unit's object, the row's.
static void end_object(crdi_stream* s, bool begun, int inside)
{
    if (inside >= 0) { stream_put(s, "}", 1); }
    if (begun) { stream_put(s, "}", 1); }
}

static bool has_room(const crdi_stream* s, const chosen* c, bool begun, int inside)
{
    size_t need = 1 + c->length + NUMBER + ENDS;
    if (!begun) { need += BEGIN; }
    if (c->group >= 0 && c->group != inside) { need += 2 + s->groups[c->group].length; }
    return s->length + need <= CRDI_STREAM_BYTES;
}

void crdi_stream_row(crdi_stream* s, const crdi_live_row* row)
{
    s->counts.rows++;
    if (s->rows++ % s->stride != 0) {
        s->counts.left_out++;
        return;
    }
    if (!isfinite(row->time)) { return; }
    // A row stays in one piece if it can.
    if (s->length > 0 && s->length + s->widest > CRDI_STREAM_BYTES) { send_datagram(s); }
    bool begun = false;
    int inside = -1; // group whose object is open
    for (int i = 0; i < s->count; i++) {
        const chosen* c = &s->signals[i];
        const double x = row->values[c->signal];
        if (!isfinite(x)) { continue; } // JSON has no word for it
        if (!has_room(s, c, begun, inside)) {
            end_object(s, begun, inside);
            send_datagram(s);
            begun = false;
            inside = -1;
        }
        if (!begun) {
            stream_put(s, s->length ? "," : "[", 1);
            stream_put(s, "{\"timestamp\":", 13);
            stream_put_double(s, row->time);
            begun = true;
        }
        const bool enter = c->group >= 0 && c->group != inside;
        if (enter && inside >= 0) { stream_put(s, "}", 1); }
        stream_put(s, ",", 1);
        if (enter) { stream_put(s, s->groups[c->group].open, s->groups[c->group].length); }
        inside = c->group; // names without unit come first
        stream_put(s, c->label, c->length);
        stream_put_double(s, x);
    }
    end_object(s, begun, inside);
}

void crdi_stream_flush(crdi_stream* s)
{
    send_datagram(s);
    // More than anybody can look at, or a socket can carry, is thinned from the next flush on.
    const int64_t values = s->rows * (int64_t)s->count;
    s->stride = values > CRDI_STREAM_VALUES ? (values - 1) / CRDI_STREAM_VALUES + 1 : 1;
    s->rows = 0;
}
