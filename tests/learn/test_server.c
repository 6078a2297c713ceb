// The server on a thread of its own, with elements and with those who are none.
#include "rig.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>
#include <time.h>

static const char* const address = "unix:" TEST_BUILD_DIR "/test_learn_server.sock";

enum { MOST_EVENTS = 4096, PATIENCE_S = 120 };

typedef struct host {
    crd_context *ctx, *near; // of the server's thread, of this one
    crd_learn_server* server;
    pthread_t thread;
    volatile bool stop;
    crd_status status;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    crd_learn_event events[MOST_EVENTS]; // texts are copied below
    char names[MOST_EVENTS][32], texts[MOST_EVENTS][128];
    int count, seen;
} host;

static host h;

static void note(void* user, const crd_learn_event* e)
{
    (void)user;
    pthread_mutex_lock(&h.lock);
    check(h.count < MOST_EVENTS);
    h.events[h.count] = *e;
    snprintf(h.names[h.count], sizeof h.names[0], "%s", e->name);
    snprintf(h.texts[h.count], sizeof h.texts[0], "%s", e->text);
    h.count++;
    pthread_cond_signal(&h.changed);
    pthread_mutex_unlock(&h.lock);
}

static void* serve(void* user)
{
    (void)user;
    h.status = crd_learn_server_run(h.server, &h.stop, NAN);
    return NULL;
}

static crd_learn_server_options options(void)
{
    crd_learn_server_options opt = crd_learn_server_defaults();
    opt.address = address;
    opt.note = note;
    opt.every = 1000;
    opt.keep = 4000;
    opt.training.epochs = 50;
    return opt;
}

static void start(const crd_learn_server_options* opt)
{
    memset(&h, 0, sizeof h);
    pthread_mutex_init(&h.lock, NULL);
    pthread_cond_init(&h.changed, NULL);
    h.ctx = crd_context_create(NULL);
    h.near = crd_context_create(NULL);
    check_ok(crd_learn_server_create(h.ctx, opt, &h.server));
    check(pthread_create(&h.thread, NULL, serve, NULL) == 0);
}

static void stop(void)
{
    __atomic_store_n(&h.stop, true, __ATOMIC_RELAXED);
    pthread_join(h.thread, NULL);
    check_ok(h.status);
    crd_learn_server_destroy(h.server);
    crd_context_destroy(h.ctx);
    crd_context_destroy(h.near);
    pthread_cond_destroy(&h.changed);
    pthread_mutex_destroy(&h.lock);
}

// Waits for the next event of this kind; others pass.
static int await(crd_learn_event_kind kind)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    int found = -1;
    pthread_mutex_lock(&h.lock);
    while (found < 0) {
        if (h.seen < h.count) {
            if (h.events[h.seen].kind == kind) { found = h.seen; }
            h.seen++;
        } else if (pthread_cond_timedwait(&h.changed, &h.lock, &until) == ETIMEDOUT) {
            break;
        }
    }
    pthread_mutex_unlock(&h.lock);
    if (found < 0) { fail_msg("no event of kind %d came", (int)kind); }
    return found;
}

// ---- somebody who speaks the protocol by hand --------------------------------------------------

typedef struct talker {
    int fd;
    uint8_t bytes[1 << 16];
    double weights[2048];
    crdi_inbox in;
    crdi_message message;
} talker;

static talker caller;

static void dial(talker* t)
{
    crdi_address a;
    check_ok(crdi_address_parse(h.near, address, &a));
    *t = (talker){.fd = socket(AF_UNIX, SOCK_STREAM, 0)};
    t->in = (crdi_inbox){.bytes = t->bytes, .capacity = sizeof t->bytes};
    t->message = (crdi_message){.weights = t->weights, .weight_capacity = 2048};
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    setsockopt(t->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    check(connect(t->fd, (struct sockaddr*)&a.socket, a.length) == 0);
}

static void say_bytes(talker* t, const void* bytes, size_t n)
{
    (void)!send(t->fd, bytes, n, MSG_NOSIGNAL); // the server may have hung up already
}

static void say(talker* t, const crdi_message* m)
{
    uint8_t bytes[1 << 14];
    const size_t n = crdi_message_encode(m, bytes, sizeof bytes);
    check(n > 0);
    say_bytes(t, bytes, n);
}

// The next message; false: the server has hung up.
static bool hear(talker* t)
{
    const char* wrong = NULL;
    while (!crdi_inbox_next(&t->in, &t->message, &wrong)) {
        check(!wrong);
        uint8_t* at = NULL;
        const size_t room = crdi_inbox_room(&t->in, &at);
        const ssize_t n = recv(t->fd, at, room, 0);
        if (n < 0 && errno == EAGAIN) { fail_msg("the server says nothing"); }
        if (n <= 0) { return false; }
        crdi_inbox_add(&t->in, (size_t)n);
    }
    return true;
}

static void hang_up(talker* t)
{
    close(t->fd);
}

// A small network that holds: three neurons, and their mean through two leaky ReLUs.
static crdi_message hello(const char* name)
{
    static double weights[3 * 4 + 3 + 2 * 3 + 2 + 2 + 1];
    crdi_message m = {.type = CRDI_HELLO, .step = RIG_STEP};
    snprintf(m.name, sizeof m.name, "%s", name);
    m.network = (crd_network){.m = 4, .n1 = 3, .n2 = 2, .alpha = 0.5};
    memset(weights, 0, sizeof weights);
    for (int i = 0; i < 3; i++) {
        weights[4 * i] = 1;
        weights[15 + i] = 1.0 / 3;
        weights[18 + i] = -1.0 / 3;
    }
    weights[23] = 1 / 1.5;
    weights[24] = -1 / 1.5;
    crdi_network_place(&m.network, weights);
    return m;
}

static void say_samples(talker* t, int64_t first, int count)
{
    for (int at = 0; at < count;) {
        crdi_message m = {.type = CRDI_SAMPLES, .first = first + at};
        while (m.count < CRDI_BATCH && at < count) {
            m.values[m.count] = rig_signal(first + at++);
            m.k[m.count++] = RIG_K;
        }
        say(t, &m);
    }
}

static void expect_dismissal(const char* what)
{
    while (hear(&caller)) {
        if (caller.message.type == CRDI_BYE) { break; }
    }
    if (caller.message.type != CRDI_BYE) { fail_msg("no BYE after: %s", what); }
    check_int(caller.message.bye, CRDI_BYE_MALFORMED);
    check(!hear(&caller));
    hang_up(&caller);
}

// ---- tests -------------------------------------------------------------------------------------

static double rms_of(rig* r, int steps)
{
    double sum = 0;
    for (int i = 0; i < steps; i++) {
        const double e = rig_step(r);
        sum += e * e;
    }
    return sqrt(sum / steps);
}

static void an_element_becomes_better_while_it_runs(void** state)
{
    (void)state;
    crd_learn_server_options opt = options();
    start(&opt);
    rig r;
    rig_init(&r, h.near, crd_learn_server_address(h.server));
    rms_of(&r, 100);
    const double before = rms_of(&r, 1100);
    const int trained = await(CRD_LEARN_TRAINED);
    check_text(h.names[trained], "rig.torque");
    check_int(h.events[trained].k, RIG_K);
    check_int(h.events[trained].generation, 1);
    check(h.events[trained].report.better);
    check(h.events[trained].report.held_after < h.events[trained].report.held_before);
    // Step until it is there: the bytes are on their way.
    for (int i = 0; i < 100000 && crd_coupling_get_counts(r.element).swaps == 0; i++) {
        rig_step(&r);
        sched_yield();
    }
    check_int(crd_coupling_get_counts(r.element).swaps, 1);
    const double after = rms_of(&r, 900);
    if (!(after < 0.5 * before)) { fail_msg("rms %g before, %g after", before, after); }
    await(CRD_LEARN_SWAPPED);
    await(CRD_LEARN_KEPT);
    check_int(crd_coupling_get_counts(r.element).rollbacks, 0);
    rig_clear(&r);
    const int left = await(CRD_LEARN_LEFT);
    check_text(h.texts[left], "it is done");
    stop();
}

static void while_one_is_trained_others_are_served(void** state)
{
    (void)state;
    crd_learn_server_options opt = options();
    opt.training.epochs = 1000000; // for ever
    opt.training.protect = 0;
    opt.keep = 20000;
    start(&opt);
    dial(&caller);
    crdi_message m = hello("long");
    say(&caller, &m);
    say_samples(&caller, 0, 2000); // training begins
    rig r;
    rig_init(&r, h.near, address);
    await(CRD_LEARN_JOINED);
    rms_of(&r, 500);
    await(CRD_LEARN_JOINED);
    rig_clear(&r);
    await(CRD_LEARN_LEFT);
    pthread_mutex_lock(&h.lock);
    for (int i = 0; i < h.count; i++) {
        check(h.events[i].kind != CRD_LEARN_TRAINED);
    }
    pthread_mutex_unlock(&h.lock);
    stop(); // gives up what is under way
    while (hear(&caller)) {}
    check_int(caller.message.type, CRDI_BYE);
    hang_up(&caller);
}

static void a_network_that_was_rolled_back_is_not_sent_again(void** state)
{
    (void)state;
    crd_learn_server_options opt = options();
    opt.every = 2000;
    start(&opt);
    dial(&caller);
    const crdi_message m = hello("x");
    say(&caller, &m);
    say_samples(&caller, 0, 2000);
    check(hear(&caller));
    check_int(caller.message.type, CRDI_NETWORK);
    check_int(caller.message.generation, 1);
    check(caller.message.held_after < caller.message.held_before);
    crdi_message outcome = {.type = CRDI_OUTCOME, .generation = 1, .outcome = CRDI_SWAPPED};
    say(&caller, &outcome);
    await(CRD_LEARN_TRAINED);
    // The same samples again: training would give the same network.
    outcome.outcome = CRDI_ROLLED_BACK;
    say(&caller, &outcome);
    say(&caller, &m);
    say_samples(&caller, 0, 2000);
    const int again = await(CRD_LEARN_TRAINED);
    check_contains(h.texts[again], "given up this network before");
    check_int(h.events[again].generation, 0);
    // Others make another network, from the one before.
    say_samples(&caller, 2000, 2000);
    check(hear(&caller));
    check_int(caller.message.type, CRDI_NETWORK);
    check_int(caller.message.generation, 2);
    hang_up(&caller);
    stop();
}

static void nothing_is_sent_while_a_network_is_on_trial(void** state)
{
    (void)state;
    crd_learn_server_options opt = options();
    start(&opt);
    dial(&caller);
    const crdi_message m = hello("x");
    say(&caller, &m);
    say_samples(&caller, 0, 1000);
    check(hear(&caller));
    check_int(caller.message.type, CRDI_NETWORK);
    say_samples(&caller, 1000, 3000);
    crdi_message outcome = {.type = CRDI_OUTCOME, .generation = 1, .outcome = CRDI_REFUSED};
    say(&caller, &outcome);
    await(CRD_LEARN_REFUSED);
    pthread_mutex_lock(&h.lock);
    int trained = 0;
    for (int i = 0; i < h.seen; i++) {
        trained += h.events[i].kind == CRD_LEARN_TRAINED;
    }
    pthread_mutex_unlock(&h.lock);
    check_int(trained, 1);
    await(CRD_LEARN_TRAINED); // the samples that came meanwhile
    hang_up(&caller);
    stop();
}

static void a_constant_signal_is_nothing_to_learn_from(void** state)
{
    (void)state;
    crd_learn_server_options opt = options();
    start(&opt);
    dial(&caller);
    const crdi_message m = hello("constant");
    say(&caller, &m);
    for (int i = 0; i < 20; i++) {
        crdi_message s = {.type = CRDI_SAMPLES, .first = 64 * i, .count = 64};
        memset(s.k, RIG_K, sizeof s.k);
        say(&caller, &s);
    }
    const int trained = await(CRD_LEARN_TRAINED);
    check_int(h.events[trained].generation, 0);
    check(h.texts[trained][0] != 0);
    hang_up(&caller);
    stop();
}

static void who_sends_nonsense_is_dismissed_and_others_go_on(void** state)
{
    (void)state;
    crd_learn_server_options opt = options();
    start(&opt);
    rig r;
    rig_init(&r, h.near, address);
    rms_of(&r, 40);
    await(CRD_LEARN_JOINED);

    dial(&caller);
    say_bytes(&caller, "GET / HTTP/1.1\r\n\r\n", 18);
    expect_dismissal("another protocol");

    dial(&caller);
    say_samples(&caller, 0, 10);
    expect_dismissal("samples before HELLO");

    dial(&caller);
    crdi_message m = hello("nan");
    ((double*)m.network.W1)[0] = NAN;
    say(&caller, &m);
    expect_dismissal("NaN in the network");

    const crdi_message wrong[] = {
        {.type = CRDI_OUTCOME, .generation = 1, .outcome = CRDI_SWAPPED}, // nothing was sent
        {.type = CRDI_OUTCOME, .generation = 0, .outcome = CRDI_KEPT},
        {.type = CRDI_OUTCOME, .generation = INT64_MIN, .outcome = CRDI_ROLLED_BACK},
        {.type = CRDI_NETWORK, .generation = 1, .network = m.network},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        dial(&caller);
        m = hello("liar");
        say(&caller, &m);
        say(&caller, &wrong[i]);
        expect_dismissal("what makes no sense here");
    }
    rms_of(&r, 1200);
    const int trained = await(CRD_LEARN_TRAINED);
    check_text(h.names[trained], "rig.torque");
    check_int(crd_learn_client_get_counts(r.client).connects, 1);
    rig_clear(&r);
    stop();
}

static void every_byte_of_a_conversation_may_be_wrong(void** state)
{
    (void)state;
    crd_learn_server_options opt = options();
    start(&opt);
    uint8_t bytes[2048];
    const crdi_message m = hello("x");
    const crdi_message s = {.type = CRDI_SAMPLES, .count = 2, .k = {RIG_K, RIG_K}};
    size_t n = crdi_message_encode(&m, bytes, sizeof bytes);
    n += crdi_message_encode(&s, bytes + n, sizeof bytes - n);
    for (size_t i = 0; i < n; i++) {
        bytes[i] ^= 0xff;
        dial(&caller);
        say_bytes(&caller, bytes, n);
        shutdown(caller.fd, SHUT_WR);
        while (hear(&caller)) {}
        hang_up(&caller);
        bytes[i] ^= 0xff;
    }
    dial(&caller); // it is still there
    say(&caller, &m);
    say_samples(&caller, 0, 1000);
    check(hear(&caller));
    check_int(caller.message.type, CRDI_NETWORK);
    hang_up(&caller);
    stop();
}

static void sequence_numbers_from_anywhere_do_no_harm(void** state)
{
    (void)state;
    crd_learn_server_options opt = options();
    start(&opt);
    dial(&caller);
    const crdi_message m = hello("x");
    say(&caller, &m);
    const int64_t far = (INT64_C(1) << 60) - 100;
    const int64_t firsts[] = {0, far, -far, 5, far, 3999, 4001, -1, 0};
    for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++) {
        say_samples(&caller, firsts[i], 1);
        say_samples(&caller, firsts[i] + 10, 64);
    }
    crdi_message gaps = {.type = CRDI_SAMPLES, .first = far + 50, .count = CRDI_BATCH};
    for (int i = 0; i < CRDI_BATCH; i++) {
        gaps.values[i] = i % 2 ? NAN : -INFINITY;
        gaps.k[i] = CRDI_K_UNKNOWN;
    }
    say(&caller, &gaps);
    const crdi_message bye = {.type = CRDI_BYE};
    say(&caller, &bye);
    const int left = await(CRD_LEARN_LEFT);
    check_text(h.texts[left], "it is done");
    check(h.events[left].samples > 0 && h.events[left].samples <= opt.keep);
    hang_up(&caller);
    stop();
}

static void there_is_room_for_so_many_and_no_more(void** state)
{
    (void)state;
    crd_learn_server_options opt = options();
    opt.clients = 1;
    start(&opt);
    static talker first;
    dial(&first);
    const crdi_message m = hello("first");
    say(&first, &m);
    await(CRD_LEARN_JOINED);
    dial(&caller);
    check(hear(&caller));
    check_int(caller.message.type, CRDI_BYE);
    check_int(caller.message.bye, CRDI_BYE_FULL);
    hang_up(&caller);
    hang_up(&first);
    await(CRD_LEARN_LEFT);
    dial(&caller);
    say(&caller, &m);
    await(CRD_LEARN_JOINED);
    hang_up(&caller);
    stop();
}

static void a_socket_file_is_taken_over_from_the_dead_only(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const char* path = address + strlen("unix:");
    crd_learn_server_options opt = options();
    crd_learn_server *a = NULL, *b = NULL;
    check_ok(crd_learn_server_create(ctx, &opt, &a));
    check_text(crd_learn_server_address(a), address);
    check_status(crd_learn_server_create(ctx, &opt, &b), CRD_E_IO);
    check_contains(crd_error_text(ctx), "in use");
    crd_learn_server_destroy(a);
    check(access(path, F_OK) < 0);

    // One that died leaves its file.
    crdi_address where;
    check_ok(crdi_address_parse(ctx, address, &where));
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    check(bind(fd, (struct sockaddr*)&where.socket, where.length) == 0);
    close(fd);
    check(access(path, F_OK) == 0);
    check_ok(crd_learn_server_create(ctx, &opt, &b));
    crd_learn_server_destroy(b);
    check(access(path, F_OK) < 0);

    FILE* f = fopen(path, "w"); // no socket at all
    check(f != NULL);
    fclose(f);
    check_status(crd_learn_server_create(ctx, &opt, &b), CRD_E_IO);
    check_contains(crd_error_text(ctx), "no socket");
    check(access(path, F_OK) == 0);
    unlink(path);

    opt.address = "unix:/nowhere/at/all";
    check_status(crd_learn_server_create(ctx, &opt, &b), CRD_E_IO);
    check_contains(crd_error_text(ctx), "/nowhere/at/all");
    crd_context_destroy(ctx);
}

static void a_port_of_zero_is_chosen_by_the_system(void** state)
{
    (void)state;
    crd_learn_server_options opt = options();
    opt.address = "tcp:127.0.0.1:0";
    start(&opt);
    const char* real = crd_learn_server_address(h.server);
    check_contains(real, "tcp:127.0.0.1:");
    check(strcmp(real, "tcp:127.0.0.1:0") != 0);
    crd_learn_server* second = NULL;
    crd_learn_server_options taken = options();
    taken.address = real;
    crd_context* ctx = crd_context_create(NULL);
    check_status(crd_learn_server_create(ctx, &taken, &second), CRD_E_IO);
    check_contains(crd_error_text(ctx), "in use");
    crd_context_destroy(ctx);
    rig r;
    rig_init(&r, h.near, real);
    for (int i = 0; i < 1000000 && crd_learn_client_link(r.client) != CRD_LEARN_ONLINE; i++) {
        rig_step(&r);
        sched_yield();
    }
    rms_of(&r, 1100);
    await(CRD_LEARN_TRAINED);
    rig_clear(&r);
    stop();
}

static void options_that_make_no_sense_are_named(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_learn_server* s = NULL;
    crd_learn_server_options opt = options();
    opt.keep = 0;
    check_status(crd_learn_server_create(ctx, &opt, &s), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "keep = 0");
    opt = options();
    opt.every = -5;
    check_status(crd_learn_server_create(ctx, &opt, &s), CRD_E_RANGE);
    opt = options();
    opt.clients = 100000;
    check_status(crd_learn_server_create(ctx, &opt, &s), CRD_E_RANGE);
    opt = options();
    opt.address = "nowhere";
    check_status(crd_learn_server_create(ctx, &opt, &s), CRD_E_RANGE);
    crd_learn_server_destroy(NULL);
    crd_context_destroy(ctx);
}

static void every_failing_allocation_is_reported_and_leaves_nothing(void** state)
{
    (void)state;
    int64_t failures = 0;
    for (int64_t i = 0;; i++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        crd_learn_server_options opt = options();
        crd_learn_server* s = NULL;
        a.fail_at = a.allocations + i;
        const crd_status st = crd_learn_server_create(ctx, &opt, &s);
        a.fail_at = -1;
        crd_learn_server_destroy(s);
        check_int(a.live, 1); // the context
        crd_context_destroy(ctx);
        check(access(address + strlen("unix:"), F_OK) < 0);
        if (st == CRD_OK) { break; }
        check_int(st, CRD_E_MEMORY);
        failures++;
    }
    check(failures >= 8);
}

static void it_serves_for_a_time(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_learn_server_options opt = options();
    crd_learn_server* s = NULL;
    check_ok(crd_learn_server_create(ctx, &opt, &s));
    check_ok(crd_learn_server_run(s, NULL, 0));
    check_ok(crd_learn_server_run(s, NULL, 0.001));
    crd_learn_server_destroy(s);
    crd_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_element_becomes_better_while_it_runs),
        cmocka_unit_test(while_one_is_trained_others_are_served),
        cmocka_unit_test(a_network_that_was_rolled_back_is_not_sent_again),
        cmocka_unit_test(nothing_is_sent_while_a_network_is_on_trial),
        cmocka_unit_test(a_constant_signal_is_nothing_to_learn_from),
        cmocka_unit_test(who_sends_nonsense_is_dismissed_and_others_go_on),
        cmocka_unit_test(every_byte_of_a_conversation_may_be_wrong),
        cmocka_unit_test(sequence_numbers_from_anywhere_do_no_harm),
        cmocka_unit_test(there_is_room_for_so_many_and_no_more),
        cmocka_unit_test(a_socket_file_is_taken_over_from_the_dead_only),
        cmocka_unit_test(a_port_of_zero_is_chosen_by_the_system),
        cmocka_unit_test(options_that_make_no_sense_are_named),
        cmocka_unit_test(every_failing_allocation_is_reported_and_leaves_nothing),
        cmocka_unit_test(it_serves_for_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
