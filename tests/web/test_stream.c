// PlotJuggler's batches: what arrives at a socket is JSON, complete and small enough.
#include "check.h"
#include "json_tree.h"

#include "web/web.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MANY = 300 };

typedef struct ear {
    int fd;
    char target[64];
} ear;

static void open_ear(ear* e)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof in;
    e->fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    check(bind(e->fd, (struct sockaddr*)&in, sizeof in) == 0);
    check(getsockname(e->fd, (struct sockaddr*)&in, &length) == 0);
    snprintf(e->target, sizeof e->target, "pj://127.0.0.1:%d", ntohs(in.sin_port));
}

// On loopback a datagram is there when send has returned. NULL: none.
static const crdi_json* hear(const ear* e)
{
    char bytes[4000];
    const ssize_t n = recv(e->fd, bytes, sizeof bytes, 0);
    if (n < 0) { return NULL; }
    check(n < 1400);
    const crdi_json* j = json_tree(bytes, (size_t)n);
    check(json_is(j, CRDI_JSON_LIST));
    return j;
}

typedef struct table {
    crdi_live_signal signals[MANY];
    char names[MANY][32];
    crdi_live_info info;
    _Alignas(16) char row[sizeof(crdi_live_row) + MANY * sizeof(double)];
} table;

static crdi_live_row* row_of(table* t)
{
    return (crdi_live_row*)t->row;
}

static void fill(table* t, int count, const char* const* names)
{
    memset(t, 0, sizeof *t);
    for (int i = 0; i < count; i++) {
        snprintf(t->names[i], sizeof t->names[i], names ? names[i] : "u%d.signal[%d]",
                 names ? 0 : i % 7, i);
        t->signals[i] = (crdi_live_signal){.name = t->names[i], .type = CRD_FLOAT64};
    }
    t->info = (crdi_live_info){.signals = t->signals, .signal_count = count};
}

static void a_row_is_an_object_of_units(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    ear e;
    open_ear(&e);
    crdi_stream* s = NULL;
    check_ok(crdi_stream_open(ctx, e.target, &s));
    static table t;
    const char* const names[] = {"mass1.v", "motor.a.b", "lone", "mass1.x", "mass1.n"};
    fill(&t, 5, names);
    check_ok(crdi_stream_choose(s, &t.info, NULL, 0));
    row_of(&t)->time = 1.25;
    memcpy(row_of(&t)->values, (double[]){3.5, 2, -1, 1e-300, NAN}, 5 * sizeof(double));
    crdi_stream_row(s, row_of(&t));
    check(!hear(&e)); // not before the flush
    row_of(&t)->time = 1.5;
    crdi_stream_row(s, row_of(&t));
    crdi_stream_flush(s);
    const crdi_json* j = hear(&e);
    check(j);
    static const char want[] =
        "[{\"timestamp\":1.25,\"lone\":-1,\"mass1\":{\"v\":3.5,\"x\":1e-300},"
        "\"motor\":{\"a/b\":2}},"
        "{\"timestamp\":1.5,\"lone\":-1,\"mass1\":{\"v\":3.5,\"x\":1e-300},"
        "\"motor\":{\"a/b\":2}}]";
    check(crdi_json_equal(j, json_tree(want, strlen(want))));
    check(!hear(&e));
    crdi_stream_flush(s); // nothing new
    check(!hear(&e));
    check_int(crdi_stream_get_counts(s)->datagrams, 1);
    crdi_stream_close(s);
    close(e.fd);
    crd_context_destroy(ctx);
}

static void many_signals_take_many_datagrams_and_all_arrive(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    ear e;
    open_ear(&e);
    crdi_stream* s = NULL;
    check_ok(crdi_stream_open(ctx, e.target, &s));
    static table t;
    fill(&t, MANY, NULL);
    check_ok(crdi_stream_choose(s, &t.info, NULL, 0));
    check_int(crdi_stream_signals(s), MANY);
    for (int i = 0; i < MANY; i++) {
        row_of(&t)->values[i] = i + 0.1;
    }
    for (int r = 0; r < 3; r++) {
        row_of(&t)->time = r * 0.1;
        crdi_stream_row(s, row_of(&t));
    }
    crdi_stream_flush(s);
    int values = 0, datagrams = 0;
    for (const crdi_json* j = hear(&e); j; j = hear(&e)) {
        datagrams++;
        for (int i = 0; i < crdi_json_count(j); i++) {
            const crdi_json* object = crdi_json_item(j, i);
            check(json_is(crdi_json_member(object, "timestamp"), CRDI_JSON_NUMBER));
            for (const crdi_json* unit = object->first; unit; unit = unit->next) {
                values += json_is(unit, CRDI_JSON_OBJECT) ? crdi_json_count(unit) : 0;
            }
        }
    }
    check_int(values, 3 * MANY);
    check(datagrams > 10);
    check_int(crdi_stream_get_counts(s)->datagrams, datagrams);
    check_int(crdi_stream_get_counts(s)->dropped, 0);
    crdi_stream_close(s);
    close(e.fd);
    crd_context_destroy(ctx);
}

static void patterns_choose(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crdi_stream* s = NULL;
    check_ok(crdi_stream_open(ctx, "pj://127.0.0.1", &s));
    static table t;
    const char* const names[] = {"mass1.v", "mass1.x", "motor.v"};
    fill(&t, 3, names);
    const char* const patterns[] = {"*.v"};
    check_ok(crdi_stream_choose(s, &t.info, patterns, 1));
    check_int(crdi_stream_signals(s), 2);
    crdi_stream_close(s);
    crd_context_destroy(ctx);
}

static void too_many_rows_are_thinned_and_counted(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crdi_stream* s = NULL;
    check_ok(crdi_stream_open(ctx, "pj://127.0.0.1:9", &s));
    static table t;
    fill(&t, 100, NULL);
    check_ok(crdi_stream_choose(s, &t.info, NULL, 0));
    for (int flush = 0; flush < 2; flush++) {
        for (int r = 0; r < 1000; r++) { // 100000 values, five times what is sent at a time
            crdi_stream_row(s, row_of(&t));
        }
        crdi_stream_flush(s);
    }
    check_int(crdi_stream_get_counts(s)->rows, 2000);
    check_int(crdi_stream_get_counts(s)->left_out, 800);
    crdi_stream_close(s);
    crd_context_destroy(ctx);
}

static void nobody_listening_does_no_harm(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    ear e;
    open_ear(&e);
    close(e.fd); // a port that is free
    crdi_stream* s = NULL;
    check_ok(crdi_stream_open(ctx, e.target, &s));
    static table t;
    fill(&t, 1, NULL);
    check_ok(crdi_stream_choose(s, &t.info, NULL, 0));
    for (int r = 0; r < 100; r++) {
        crdi_stream_row(s, row_of(&t));
        crdi_stream_flush(s);
    }
    const crdi_stream_counts* c = crdi_stream_get_counts(s);
    check_int(c->datagrams + c->dropped, 100);
    crdi_stream_close(s);
    crd_context_destroy(ctx);
}

static void wrong_targets_are_named(void** state)
{
    (void)state;
    static const char* const wrong[] = {"127.0.0.1:9870", "pj://",         "pj://:9870",
                                        "pj://h:0",       "pj://h:70000",  "pj://h:x",
                                        "pj://[::1",      "pj://[::1]x:1", "udp://h:1"};
    crd_context* ctx = crd_context_create(NULL);
    crdi_stream* s = NULL;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        check_status(crdi_stream_open(ctx, wrong[i], &s), CRD_E_RANGE);
        check_contains(crd_error_text(ctx), wrong[i]);
        check_contains(crd_error_text(ctx), "expected pj://HOST:PORT");
    }
    check_status(crdi_stream_open(ctx, "pj://256.256.256.256:1", &s), CRD_E_NOT_FOUND);
    static const char* const right[] = {"pj://127.0.0.1", "pj://127.0.0.1:1/", "pj://localhost:12"};
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        check_ok(crdi_stream_open(ctx, right[i], &s));
        crdi_stream_close(s);
    }
    crd_context_destroy(ctx);
}

static void every_allocation_may_fail(void** state)
{
    (void)state;
    static table t;
    fill(&t, 20, NULL);
    for (int fail_at = 0;; fail_at++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        crdi_stream* s = NULL;
        a.fail_at = a.allocations + fail_at;
        crd_status st = crdi_stream_open(ctx, "pj://127.0.0.1:9", &s);
        if (st == CRD_OK) { st = crdi_stream_choose(s, &t.info, NULL, 0); }
        a.fail_at = -1;
        if (s) { // another time it works
            check_ok(crdi_stream_choose(s, &t.info, NULL, 0));
            check_int(crdi_stream_signals(s), 20);
            crdi_stream_row(s, row_of(&t));
            crdi_stream_flush(s);
        }
        crdi_stream_close(s);
        crd_context_destroy(ctx);
        check_int(a.live, 0);
        if (st == CRD_OK) { break; }
        check_status(st, CRD_E_MEMORY);
        check(fail_at < 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_is_an_object_of_units),
        cmocka_unit_test(many_signals_take_many_datagrams_and_all_arrive),
        cmocka_unit_test(patterns_choose),
        cmocka_unit_test(too_many_rows_are_thinned_and_counted),
        cmocka_unit_test(nobody_listening_does_no_harm),
        cmocka_unit_test(wrong_targets_are_named),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
