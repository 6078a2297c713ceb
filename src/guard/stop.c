// The emergency stop: a page and a port of its own, and a key, button or contact of this machine.
//
// Everything on the page wants the token, an answer ends its connection, and there are few places:
// a new connection takes that of the oldest which has nothing to say, so that floods cannot keep
// anybody out. A device that vanishes counts as pressed.
#include "guard/guard.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/input.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PLACES = 32, REQUEST = 2048, USUAL_PORT = 8422, AT_ONCE = 16 };
static const int64_t most_ns = INT64_C(2000000000); // for a whole request

typedef struct visitor {
    int fd; // -1: the place is free
    int64_t since;
    char who[INET_ADDRSTRLEN];
    char text[REQUEST];
    size_t length;
} visitor;

typedef enum input_kind { NO_INPUT, KEYS, CONTACT } input_kind;

struct guard_stop {
    int door;
    visitor visitors[PLACES];
    input_kind kind;
    int input, code; // code: of the key, -1: any
    const char* path;
    char at_rest; // of a contact
    uint8_t event[sizeof(struct input_event)];
    size_t event_length;
    bool pressed;
    char by[GUARD_TEXT];
};

static void press(struct guard_stop* s, const char* by)
{
    if (s->pressed) { return; }
    s->pressed = true;
    snprintf(s->by, sizeof s->by, "emergency stop by %.480s", by);
}

// ---- the input ----------------------------------------------------------------------------------

// "key:/dev/input/event3", "key:/dev/input/event3:28", "gpio:/sys/class/gpio/gpio17/value"
static crd_status open_input(guard* g, struct guard_stop* s)
{
    char* text = g->page->input;
    s->input = s->code = -1;
    if (!text[0]) { return CRD_OK; }
    s->kind = strncmp(text, "key:", 4) == 0 ? KEYS : strncmp(text, "gpio:", 5) == 0 ? CONTACT : 0;
    if (s->kind == NO_INPUT) {
        return crdi_fail(g->ctx, CRD_E_RANGE,
                         "'%s' is no input, expected key:DEVICE, key:DEVICE:CODE or gpio:FILE",
                         text);
    }
    s->path = strchr(text, ':') + 1;
    char* colon = s->kind == KEYS ? strrchr(s->path, ':') : NULL;
    if (colon && colon[1] && colon[1 + strspn(colon + 1, "0123456789")] == 0) {
        s->code = atoi(colon + 1);
        *colon = 0;
    }
    struct stat about;
    const bool pipe = stat(s->path, &about) == 0 && S_ISFIFO(about.st_mode);
    s->input = open(s->path, (pipe ? O_RDWR : O_RDONLY) | O_NONBLOCK | O_CLOEXEC);
    if (s->input < 0 || (s->kind == CONTACT && pread(s->input, &s->at_rest, 1, 0) != 1)) {
        return crdi_fail(g->ctx, CRD_E_IO, "%s: %s", s->path, strerror(s->input < 0 ? errno : EIO));
    }
    return CRD_OK;
}

static void read_keys(struct guard_stop* s)
{
    char by[GUARD_TEXT];
    for (;;) {
        const ssize_t n =
            read(s->input, s->event + s->event_length, sizeof s->event - s->event_length);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) { return; }
        if (n <= 0) {
            snprintf(by, sizeof by, "%.300s, which is gone", s->path);
            press(s, by);
            return;
        }
        s->event_length += (size_t)n;
        if (s->event_length < sizeof s->event) { continue; }
        struct input_event e;
        memcpy(&e, s->event, sizeof e);
        s->event_length = 0;
        if (e.type == EV_KEY && e.value == 1 && (s->code < 0 || e.code == s->code)) {
            snprintf(by, sizeof by, "key %d of %.300s", (int)e.code, s->path);
            press(s, by);
        }
    }
}

static void look_at_input(struct guard_stop* s)
{
    char by[GUARD_TEXT], now = 0;
    if (s->kind == NO_INPUT || s->pressed) { return; }
    if (s->kind == KEYS) {
        read_keys(s);
    } else if (pread(s->input, &now, 1, 0) != 1 || now != s->at_rest) {
        snprintf(by, sizeof by, "the contact %.300s", s->path);
        press(s, by);
    }
}

// ---- the page -----------------------------------------------------------------------------------

static void leave(visitor* v)
{
    close(v->fd);
    v->fd = -1;
}

static void answer(visitor* v, const char* status, const char* type, const char* body)
{
    char text[4096];
    const int n = snprintf(text, sizeof text,
                           "HTTP/1.1 %s\r\nContent-Type: %s; charset=utf-8\r\nContent-Length: "
                           "%zu\r\nConnection: close\r\nCache-Control: no-store\r\n"
                           "Referrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n"
                           "Content-Security-Policy: default-src 'none'; style-src "
                           "'unsafe-inline'; form-action 'self'; frame-ancestors 'none'\r\n\r\n%s",
                           status, type, strlen(body), body);
    if (n > 0 && n < (int)sizeof text) {
        (void)send(v->fd, text, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    (void)shutdown(v->fd, SHUT_WR);
    leave(v);
}

static bool has_token(const guard* g, const char* request)
{
    const char* at = strstr(request, "token=");
    const char* end = strpbrk(request, " \r\n");  // of the method
    end = end ? strpbrk(end + 1, " \r\n") : NULL; // of what is asked for
    const size_t n = strlen(g->page->token);
    return at && end && at + 6 + n <= end && sodium_memcmp(at + 6, g->page->token, n) == 0 &&
           (at[6 + n] == ' ' || at[6 + n] == '&');
}

// "engine RUNNING", one in a line, for page and scripts.
static void list_benches(const guard* g, char* out, size_t room)
{
    size_t n = 0;
    out[0] = 0;
    for (int i = 0; i < atomic_load(&g->page->slave_count) && n < room; i++) {
        const crdi_ward_slave* s = &g->page->slaves[i];
        const char* state = crd_dcp_state_name((int)atomic_load(&s->state));
        n += (size_t)snprintf(out + n, room - n, "%.60s %s\n", s->name,
                              atomic_load(&s->held) ? state ? state : "?" : "released");
    }
}

static void show_page(const guard* g, visitor* v)
{
    char benches[1500], body[3000];
    list_benches(g, benches, sizeof benches);
    for (char* c = benches; *c; c++) { // names are of this machine, but it is HTML
        if (strchr("<>&", *c)) { *c = '_'; }
    }
    snprintf(body, sizeof body,
             "<!DOCTYPE html><title>Emergency stop</title><meta name=viewport "
             "content='width=device-width'><style>body{font:18px sans-serif;text-align:center}"
             "button{font-size:2em;padding:2em;border-radius:50%%;background:#c00;color:#fff}"
             "</style><form method=post action='/stop?token=%s'><button>EMERGENCY STOP</button>"
             "</form><pre>%s%s\nmemory %slocked, %s</pre><p>A convenience, not a safety function.",
             g->page->token, benches, g->acting ? "being stopped" : "guarded",
             g->locked ? "" : "not ", g->fifo ? "real-time priority" : "ordinary priority");
    answer(v, "200 OK", "text/html", body);
}

static void respond(guard* g, struct guard_stop* s, visitor* v)
{
    char by[64], benches[1500];
    const bool post = strncmp(v->text, "POST /stop?", 11) == 0;
    if (!has_token(g, v->text)) {
        answer(v, "403 Forbidden", "text/plain",
               "the token is missing or wrong; it is in the address that the run printed\n");
    } else if (post) {
        snprintf(by, sizeof by, "page %s", v->who);
        press(s, by);
        answer(v, "200 OK", "text/plain", "the benches are being stopped\n");
    } else if (strncmp(v->text, "GET /state?", 11) == 0) {
        list_benches(g, benches, sizeof benches);
        answer(v, "200 OK", "text/plain", benches);
    } else if (strncmp(v->text, "GET /?", 6) == 0) {
        show_page(g, v);
    } else {
        answer(v, "404 Not Found", "text/plain", "there is only GET /, GET /state, POST /stop\n");
    }
}

static void read_visitor(guard* g, struct guard_stop* s, visitor* v)
{
    const ssize_t n =
        recv(v->fd, v->text + v->length, sizeof v->text - 1 - v->length, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) { return; }
    if (n <= 0) {
        leave(v);
        return;
    }
    v->length += (size_t)n;
    v->text[v->length] = 0;
    if (strstr(v->text, "\r\n\r\n")) {
        respond(g, s, v);
    } else if (v->length == sizeof v->text - 1) {
        leave(v);
    }
}

// The place of the oldest that has not sent anything, else of the oldest.
static visitor* make_place(struct guard_stop* s)
{
    visitor *oldest = NULL, *idle = NULL;
    for (int i = 0; i < PLACES; i++) {
        visitor* v = &s->visitors[i];
        int bytes = 0;
        if (v->fd < 0) { return v; }
        (void)ioctl(v->fd, FIONREAD, &bytes);
        if (!oldest || v->since < oldest->since) { oldest = v; }
        if (bytes == 0 && (!idle || v->since < idle->since)) { idle = v; }
    }
    visitor* v = idle ? idle : oldest;
    leave(v);
    return v;
}

static void let_in(struct guard_stop* s)
{
    for (int i = 0; i < AT_ONCE; i++) {
        struct sockaddr_in from = {0};
        socklen_t length = sizeof from;
        const int fd =
            accept4(s->door, (struct sockaddr*)&from, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) { return; }
        visitor* v = make_place(s);
        *v = (visitor){.fd = fd, .since = crdi_now_ns()};
        (void)inet_ntop(AF_INET, &from.sin_addr, v->who, sizeof v->who);
    }
}

static crd_status open_door(guard* g, struct guard_stop* s)
{
    crdi_ward_page* p = g->page;
    char text[CRDI_WARD_TEXT + 16];
    crd_dcp_address at;
    const bool given = p->address[0] != 0, port = given && strchr(p->address, ':');
    snprintf(text, sizeof text, "tcp://%s%s", given ? p->address : "127.0.0.1", port ? "" : ":0");
    const crd_status st = crd_dcp_address_parse(g->ctx, text, &at);
    if (st < 0) { return st; }
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(at.ip)};
    const int on = 1;
    s->door = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    (void)setsockopt(s->door, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    // A port that was named is that one; else that of the guard before, the usual one, or any that
    // is free: another run may have taken it meanwhile.
    p->chosen |= at.port == 0;
    const uint16_t tries[] = {at.port ? at.port : USUAL_PORT, 0};
    bool bound = false;
    for (int i = 0; i < (p->chosen ? 2 : 1) && !bound; i++) {
        where.sin_port = htons(tries[i]);
        bound = bind(s->door, (const struct sockaddr*)&where, sizeof where) == 0;
    }
    if (!bound || listen(s->door, SOMAXCONN) != 0) {
        return crdi_fail(g->ctx, CRD_E_IO, "the emergency stop cannot be at %s: %s", text + 6,
                         strerror(errno));
    }
    socklen_t length = sizeof where;
    (void)getsockname(s->door, (struct sockaddr*)&where, &length);
    char host[INET_ADDRSTRLEN] = "";
    (void)inet_ntop(AF_INET, &where.sin_addr, host, sizeof host);
    snprintf(p->url, sizeof p->url, "http://%s:%d/?token=%s", host, ntohs(where.sin_port),
             p->token);
    // Another guard of this run is to be found where this one was.
    snprintf(p->address, sizeof p->address, "%s:%d", host, ntohs(where.sin_port));
    return CRD_OK;
}

crd_status guard_stop_open(guard* g)
{
    static struct guard_stop stop;
    g->stop = &stop;
    for (int i = 0; i < PLACES; i++) {
        stop.visitors[i].fd = -1;
    }
    const crd_status st = open_input(g, &stop);
    return st < 0 ? st : open_door(g, &stop);
}

bool guard_stop_look(guard* g, int ms, char cause[GUARD_TEXT])
{
    struct guard_stop* s = g->stop;
    struct pollfd p[4 + PLACES] = {{.fd = g->ward, .events = POLLIN},
                                   {.fd = g->acting ? -1 : g->master, .events = POLLIN},
                                   {.fd = s->door, .events = POLLIN},
                                   {.fd = s->kind == KEYS ? s->input : -1, .events = POLLIN}};
    for (int i = 0; i < PLACES; i++) {
        p[4 + i] = (struct pollfd){.fd = s->visitors[i].fd, .events = POLLIN};
    }
    (void)poll(p, 4 + PLACES, ms);
    const int64_t now = crdi_now_ns();
    for (int i = 0; i < PLACES; i++) {
        visitor* v = &s->visitors[i];
        if (v->fd < 0) { continue; }
        if (p[4 + i].revents) { read_visitor(g, s, v); }
        if (v->fd >= 0 && now - v->since > most_ns) { leave(v); }
    }
    if (p[2].revents) { let_in(s); }
    look_at_input(s);
    if (atomic_load(&g->page->asked)) { press(s, g->page->asker); }
    atomic_store(&g->page->guard_beat, now);
    if (!s->pressed) { return false; }
    snprintf(cause, GUARD_TEXT, "%s", s->by);
    return true;
}
