// The server over a real run: its start and end, and a page that steers while the run goes.
#include "run_help.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static const char token[] = "0123456789abcdef";

static crdi_web_options page_options(void)
{
    crdi_web_options o = crdi_web_defaults();
    o.token = token;
    return o;
}

// ---- a page in a thread ------------------------------------------------------------------------

typedef struct page {
    int port;
    bool greeted, done; // by itself
    int frames, statuses;
    bool ended; // a status said so
} page;

static bool get(int fd, void* out, size_t n)
{
    for (char* p = out; n > 0;) {
        const ssize_t k = recv(fd, p, n, 0);
        if (k <= 0) { return false; }
        p += k;
        n -= (size_t)k;
    }
    return true;
}

static void say(int fd, const char* text)
{
    const size_t n = strlen(text); // below 126; the mask of zeros leaves it readable
    unsigned char frame[160] = {0x81, (unsigned char)(0x80 | n)};
    memcpy(frame + 6, text, n);
    check(send(fd, frame, n + 6, MSG_NOSIGNAL) == (ssize_t)(n + 6));
}

// The next message into `out`; its opcode, 0: closed.
static int listen_to(int fd, char* out, size_t room)
{
    unsigned char head[2], more[8];
    if (!get(fd, head, 2)) { return 0; }
    uint64_t n = head[1];
    if (n == 126) {
        if (!get(fd, more, 2)) { return 0; }
        n = (uint64_t)more[0] << 8 | more[1];
    } else if (n == 127) {
        if (!get(fd, more, 8)) { return 0; }
        n = (uint64_t)more[4] << 24 | (uint64_t)more[5] << 16 | (uint64_t)more[6] << 8 | more[7];
    }
    if (n >= room || !get(fd, out, n)) { return 0; }
    out[n] = 0;
    return head[0] & 15;
}

static int connect_page(int port)
{
    char text[500];
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    check(connect(fd, (struct sockaddr*)&in, sizeof in) == 0);
    const int n =
        snprintf(text, sizeof text,
                 "GET /ws?token=%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\n"
                 "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                 "Sec-WebSocket-Version: 13\r\n\r\n",
                 token, port);
    check(send(fd, text, (size_t)n, MSG_NOSIGNAL) == n);
    char head[2000];
    size_t length = 0;
    do {
        check(length < sizeof head - 1 && get(fd, head + length++, 1));
        head[length] = 0;
    } while (!strstr(head, "\r\n\r\n"));
    check(strncmp(head, "HTTP/1.1 101", 12) == 0);
    check_contains(head, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="); // RFC 6455, 1.3
    return fd;
}

static void* visit(void* user)
{
    page* p = user;
    static const size_t room = 1 << 20;
    char* text = malloc(room);
    const int fd = connect_page(p->port);
    bool told = false;
    for (int kind = listen_to(fd, text, room); kind == 1 || kind == 2;
         kind = listen_to(fd, text, room)) {
        p->frames += kind == 2;
        if (kind == 1 && strstr(text, "\"is\":\"hello\"")) {
            p->greeted = true;
            say(fd, "{\"id\":1,\"do\":\"watch\",\"signals\":[\"clock.y\",\"int.y\"]}");
            say(fd, "{\"id\":2,\"do\":\"set\",\"name\":\"int.a\",\"value\":2}");
            say(fd, "{\"id\":3,\"do\":\"start\"}");
        }
        if (kind == 1 && strstr(text, "\"is\":\"status\"")) {
            p->statuses++;
            p->ended = p->ended || strstr(text, "\"state\":\"ended\"");
        }
        if (p->frames > 3 && p->statuses > 3 && !told) {
            told = true;
            say(fd, "{\"id\":4,\"do\":\"stop\"}");
        }
    }
    close(fd);
    free(text);
    p->done = true;
    return NULL;
}

static int port_of(const crdi_web* w)
{
    const char* colon = strrchr(crdi_web_url(w), ':');
    return atoi(colon + 1);
}

static void pages_watch_and_steer_a_run_to_its_end(void** state)
{
    (void)state;
    enum { PAGES = 3 };
    crd_context* ctx = crd_context_create(NULL);
    small_run r;
    open_run(&r, ctx, 1, 0.001, 1e6, 1, true, false);
    const crdi_web_options o = page_options();
    crdi_web* w = NULL;
    check_run(crdi_web_start(ctx, r.l, &o, &w), ctx);
    page pages[PAGES] = {0};
    pthread_t threads[PAGES];
    for (int i = 0; i < PAGES; i++) {
        pages[i].port = port_of(w);
        check(pthread_create(&threads[i], NULL, visit, &pages[i]) == 0);
    }
    check_run(crd_master_run(r.m), ctx); // until a page stops it
    crdi_web_stop(w, 20);
    for (int i = 0; i < PAGES; i++) {
        pthread_join(threads[i], NULL);
        check(pages[i].greeted && pages[i].done && pages[i].ended);
    }
    check_int(crd_master_ended(r.m), CRD_END_INTERRUPTED);
    check_near(value(r.m, "int.a"), 2, 0);
    close_run(&r);
    crd_context_destroy(ctx);
}

// ---- a server that runs out of memory now and then ---------------------------------------------

typedef struct poor {
    _Atomic uint64_t count;
    _Atomic int64_t live;
    _Atomic bool hungry;
} poor;

// One allocation in sixteen finds nothing.
static void* poor_realloc(void* user, void* p, size_t size)
{
    poor* a = user;
    if (size == 0) {
        a->live -= p != NULL;
        free(p);
        return NULL;
    }
    if (a->hungry && a->count++ * UINT64_C(0x9E3779B97F4A7C15) >> 60 == 7) { return NULL; }
    void* q = realloc(p, size);
    a->live += q && !p;
    return q;
}

typedef struct visitor {
    int port;
    _Atomic bool enough;
    int64_t heard; // bytes
} visitor;

static void* come_again(void* user)
{
    visitor* v = user;
    static const char* const says[] = {
        "{\"id\":1,\"do\":\"watch\",\"signals\":[\"clock.y\",\"int.y\"]}",
        "{\"id\":2,\"do\":\"couple\",\"to\":\"int.u\",\"element\":{\"algorithm\":\"foh\"}}",
        "{\"id\":3,\"do\":\"mark\",\"text\":\"here\"}", "{\"id\":4}"};
    for (int n = 0; !v->enough; n++) {
        char text[4096];
        struct sockaddr_in in = {.sin_family = AF_INET,
                                 .sin_port = htons((uint16_t)v->port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        const int fd = socket(AF_INET, SOCK_STREAM, 0);
        const struct timeval patience = {.tv_usec = 20000};
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        if (connect(fd, (struct sockaddr*)&in, sizeof in) == 0) {
            snprintf(text, sizeof text, "GET %s?token=%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%s\r\n",
                     n % 4 == 0   ? "/metrics"
                     : n % 4 == 1 ? "/live.js"
                                  : "/ws",
                     token, v->port,
                     n % 4 < 2 ? ""
                               : "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: "
                                 "dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n");
            (void)!send(fd, text, strlen(text), MSG_NOSIGNAL);
            for (int i = 0; i < 6; i++) {
                const ssize_t k = recv(fd, text, sizeof text, 0);
                v->heard += k > 0 ? k : 0;
                unsigned char frame[160] = {0x81, (unsigned char)(0x80 | strlen(says[i % 4]))};
                memcpy(frame + 6, says[i % 4], strlen(says[i % 4]));
                if (n % 4 >= 2) { (void)!send(fd, frame, strlen(says[i % 4]) + 6, MSG_NOSIGNAL); }
            }
        }
        close(fd);
    }
    return NULL;
}

static void a_server_without_memory_leaves_the_run_alone(void** state)
{
    (void)state;
    crd_context* mine = crd_context_create(NULL);
    small_run r;
    open_run(&r, mine, 1, 0.001, 0.6, 1, false, false);
    poor a = {0};
    crd_context_options co = crd_context_defaults();
    co.realloc = poor_realloc;
    co.realloc_user = &a;
    crd_context* ctx = crd_context_create(&co);
    crdi_web_options o = page_options();
    o.stream = "pj://127.0.0.1:9";
    crdi_web* w = NULL;
    check_run(crdi_web_start(ctx, r.l, &o, &w), ctx);
    a.hungry = true;
    visitor v = {.port = port_of(w)};
    pthread_t thread;
    check(pthread_create(&thread, NULL, come_again, &v) == 0);
    check_run(crd_master_run(r.m), mine);
    v.enough = true;
    pthread_join(thread, NULL);
    crdi_web_stop(w, 0.1);
    check_int(crd_master_ended(r.m), CRD_END_STOP_TIME);
    check(v.heard > 1000);
    crd_context_destroy(ctx);
    check_int(a.live, 0);
    close_run(&r);
    crd_context_destroy(mine);
}

// ---- start and end -----------------------------------------------------------------------------

static void a_page_can_end_before_its_run_begins(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    small_run r;
    open_run(&r, ctx, 1, 0.1, 1, 0, false, false);
    crdi_web_options o = page_options();
    o.stream = "pj://127.0.0.1:9";
    struct sigaction before, after;
    sigaction(SIGPIPE, NULL, &before);
    crdi_web* w = NULL;
    check_run(crdi_web_start(ctx, r.l, &o, &w), ctx);
    sigaction(SIGPIPE, NULL, &after);
    check(before.sa_handler == after.sa_handler);
    check_contains(crdi_web_url(w), "http://127.0.0.1:");
    check_contains(crdi_web_url(w), "/?token=0123456789abcdef");
    check_int(crdi_web_readers(w), 0);
    crdi_web_stop(w, 60); // nobody is there: at once
    crdi_web_stop(NULL, 0);
    close_run(&r);
    crd_context_destroy(ctx);
}

static void options_that_make_no_sense_are_refused(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    small_run r;
    open_run(&r, ctx, 1, 0.1, 1, 0, false, false);
    crdi_web* w = NULL;
    crdi_web_options o = page_options();
    o.rate = NAN;
    check_status(crdi_web_start(ctx, r.l, &o, &w), CRD_E_RANGE);
    o = page_options();
    o.stream_rate = 0;
    check_status(crdi_web_start(ctx, r.l, &o, &w), CRD_E_RANGE);
    o = page_options();
    o.address = "0.0.0.0";
    check_status(crdi_web_start(ctx, r.l, &o, &w), CRD_E_RANGE);
    o = page_options();
    o.page = false;
    check_status(crdi_web_start(ctx, r.l, &o, &w), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "neither a page nor a stream");
    o.stream = "pj:127.0.0.1";
    check_status(crdi_web_start(ctx, r.l, &o, &w), CRD_E_RANGE);
    o = page_options();
    o.cert = "c.pem";
    check_status(crdi_web_start(ctx, r.l, &o, &w), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "the key is missing");
    close_run(&r);
    crd_context_destroy(ctx);
}

static void every_allocation_of_the_start_may_fail(void** state)
{
    (void)state;
    crd_context* mine = crd_context_create(NULL);
    small_run r;
    open_run(&r, mine, 1, 0.1, 1, 0, false, false);
    crdi_web_options o = page_options();
    const char* const patterns[] = {"int.*", "clock.y"};
    o.stream = "pj://127.0.0.1:9";
    o.stream_signals = patterns;
    o.stream_signal_count = 2;
    for (int fail_at = 0;; fail_at++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        a.fail_at = a.allocations + fail_at;
        crdi_web* w = NULL;
        const crd_status st = crdi_web_start(ctx, r.l, &o, &w);
        if (st == CRD_OK) { crdi_web_stop(w, 0); }
        crd_context_destroy(ctx);
        check_int(a.live, 0);
        if (st == CRD_OK) { break; }
        check_status(st, CRD_E_MEMORY);
        check(fail_at < 1000);
    }
    close_run(&r);
    crd_context_destroy(mine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_watch_and_steer_a_run_to_its_end),
        cmocka_unit_test(a_server_without_memory_leaves_the_run_alone),
        cmocka_unit_test(a_page_can_end_before_its_run_begins),
        cmocka_unit_test(options_that_make_no_sense_are_refused),
        cmocka_unit_test(every_allocation_of_the_start_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
