// The element's line to the server: on a virtual clock, against a server that follows a script.
#include "rig.h"

static const char* const address = "unix:" TEST_BUILD_DIR "/test_learn_client.sock";

static peer far_end; // too large for the stack

static crd_learn_client_counts counts(const rig* r)
{
    return crd_learn_client_get_counts(r->client);
}

// Both ends up, HELLO read.
static void meet(rig* r, crd_context* ctx)
{
    rig_init(r, ctx, address);
    peer_listen(&far_end, ctx, address);
    rig_step(r);
    check_int(crd_learn_client_link(r->client), CRD_LEARN_ONLINE);
    peer_accept(&far_end);
    check(peer_hear(&far_end));
    check_int(far_end.message.type, CRDI_HELLO);
}

static void part(rig* r)
{
    rig_clear(r);
    peer_stop(&far_end);
}

// The same network with everything that it says times `gain`.
static crd_network scaled(const rig* r, double gain, double* weights)
{
    crd_network n = r->start;
    crdi_network_flatten(&r->start, weights);
    crdi_network_place(&n, weights);
    double* w3 = weights + (n.W3 - n.W1);
    for (int i = 0; i < n.n2; i++) {
        w3[i] *= gain;
    }
    return n;
}

// A network that is the hold of the newest sample: worse than where the element starts from.
static crd_network hold(const rig* r, double* weights)
{
    crd_network n = r->start;
    crdi_network_flatten(&r->start, weights);
    crdi_network_place(&n, weights);
    for (int i = 0; i < n.n1; i++) {
        for (int j = 0; j < n.m; j++) {
            weights[i * n.m + j] = j == 0;
        }
    }
    return n;
}

static void hello_says_what_the_element_is_and_samples_follow_in_order(void** state)
{
    rig r;
    meet(&r, *state);
    check_text(far_end.message.name, "rig.torque");
    check(far_end.message.step == RIG_STEP);
    const crd_network* n = &far_end.message.network;
    check_int(n->m, r.start.m);
    check(memcmp(n->W1, r.start.W1, (size_t)(n->n1 * n->m) * sizeof *n->W1) == 0);
    double newest = NAN;
    int64_t samples = 0, next = -1;
    for (int i = 0; i < 1000; i++) {
        rig_step(&r);
        while (peer_hear(&far_end)) {
            const crdi_message* m = &far_end.message;
            check_int(m->type, CRDI_SAMPLES);
            if (next >= 0) { check_int(m->first, next); }
            next = m->first + m->count;
            samples += m->count;
            for (int k = 0; k < m->count; k++) {
                check_int(m->k[k], RIG_K);
            }
            newest = m->values[m->count - 1];
        }
    }
    check(samples >= 960);
    check_int(counts(&r).sent, samples);
    check_int(counts(&r).dropped, 1); // the first, before anybody listened
    check(newest == rig_signal(r.n - 1 - RIG_K - (1000 - samples)));
    part(&r);
}

static void the_last_samples_and_a_bye_come_when_the_client_goes(void** state)
{
    rig r;
    meet(&r, *state);
    for (int i = 0; i < 40; i++) {
        rig_step(&r);
    }
    rig_clear(&r);
    int samples = 0;
    while (peer_hear(&far_end) && far_end.message.type == CRDI_SAMPLES) {
        samples += far_end.message.count;
    }
    check_int(samples, 40);
    check_int(far_end.message.type, CRDI_BYE);
    peer_stop(&far_end);
}

static void lost_samples_are_gaps_and_late_ones_keep_their_number(void** state)
{
    rig r;
    meet(&r, *state);
    const int64_t stamps[] = {100, 101, 104, 103, 105, 105, 106};
    const int64_t want[] = {100, 101, 104, 103, 105, 106};
    for (size_t i = 0; i < sizeof stamps / sizeof *stamps; i++) {
        crd_learn_client_step(r.client, (double)stamps[i], 0.01 * (double)stamps[i], r.now);
    }
    crd_learn_client_step(r.client, NAN, 1.07, r.now); // nothing there
    crd_learn_client_step(r.client, 8, -1e300, r.now); // a time that makes no sense: the next
    rig_clear(&r);
    int got = 0;
    int64_t base = 0;
    while (peer_hear(&far_end) && far_end.message.type == CRDI_SAMPLES) {
        for (int k = 0; k < far_end.message.count; k++, got++) {
            const int64_t sequence = far_end.message.first + k;
            if (got == 0) { base = sequence - want[0]; }
            if (got < 6) {
                check_int(sequence - base, want[got]);
                check(far_end.message.values[k] == (double)want[got]);
            } else {
                check_int(sequence - base, 107);
            }
        }
    }
    check_int(got, 7);
    peer_stop(&far_end);
}

static void time_that_begins_anew_leaves_a_gap(void** state)
{
    rig r;
    meet(&r, *state);
    for (int i = 0; i < 2000; i++) {
        crd_learn_client_step(r.client, 1, 0.01 * i, r.now);
    }
    crd_learn_client_step(r.client, 2, 0, r.now); // the run starts again
    crd_learn_client_step(r.client, 3, 0.01, r.now);
    rig_clear(&r);
    int64_t newest = 0, of_two = 0, of_three = 0;
    while (peer_hear(&far_end) && far_end.message.type == CRDI_SAMPLES) {
        for (int k = 0; k < far_end.message.count; k++) {
            const int64_t sequence = far_end.message.first + k;
            if (far_end.message.values[k] == 1) { newest = sequence; }
            if (far_end.message.values[k] == 2) { of_two = sequence; }
            if (far_end.message.values[k] == 3) { of_three = sequence; }
        }
    }
    check_int(of_two, newest + 2);
    check_int(of_three, newest + 3);
    peer_stop(&far_end);
}

static void a_network_that_comes_is_used_and_kept_if_it_is_not_worse(void** state)
{
    rig r;
    double weights[512];
    meet(&r, *state);
    const crd_network same = scaled(&r, 1.0, weights);
    peer_send_network(&far_end, &same, 5);
    rig_step(&r);
    check_int(counts(&r).networks, 1);
    check_int(crd_coupling_get_counts(r.element).swaps, 1);
    check(peer_hear_type(&far_end, CRDI_OUTCOME));
    check_int(far_end.message.outcome, CRDI_SWAPPED);
    check_int(far_end.message.generation, 5);
    for (int i = 0; i < 1000; i++) {
        rig_step(&r);
    }
    check(peer_hear_type(&far_end, CRDI_OUTCOME));
    check_int(far_end.message.outcome, CRDI_KEPT);
    check_int(far_end.message.generation, 5);
    check(!peer_hear_type(&far_end, CRDI_OUTCOME));
    part(&r);
}

static void a_worse_network_is_rolled_back_and_the_server_hears_what_is_in_use(void** state)
{
    rig r;
    double weights[512];
    meet(&r, *state);
    for (int i = 0; i < 100; i++) {
        rig_step(&r);
    }
    const crd_network worse = hold(&r, weights);
    peer_send_network(&far_end, &worse, 2);
    for (int i = 0; i < 1000; i++) {
        rig_step(&r);
    }
    check_int(crd_coupling_get_counts(r.element).rollbacks, 1);
    check(peer_hear_type(&far_end, CRDI_OUTCOME));
    check_int(far_end.message.outcome, CRDI_SWAPPED);
    check(peer_hear_type(&far_end, CRDI_OUTCOME));
    check_int(far_end.message.outcome, CRDI_ROLLED_BACK);
    check_int(far_end.message.generation, 2);
    check(peer_hear(&far_end));
    check_int(far_end.message.type, CRDI_HELLO);
    check(memcmp(far_end.message.network.W1, r.start.W1,
                 (size_t)(r.start.n1 * r.start.m) * sizeof(double)) == 0);
    check(!peer_hear_type(&far_end, CRDI_OUTCOME));
    part(&r);
}

static void a_network_that_does_not_fit_is_refused_counted_and_told(void** state)
{
    rig r;
    double weights[512];
    static double many[CRDI_WEIGHTS_MAX];
    meet(&r, *state);
    crd_network bad[6];
    double w[6][512];
    bad[0] = scaled(&r, NAN, w[0]);
    bad[1] = scaled(&r, INFINITY, w[1]);
    bad[2] = scaled(&r, 1.5, w[2]); // constants come out wrong
    bad[3] = (crd_network){.m = 1, .n1 = 1, .n2 = 1, .alpha = 1};
    bad[4] = (crd_network){.m = r.start.m + 1, .n1 = r.start.n1, .n2 = r.start.n2, .alpha = 1};
    bad[5] = (crd_network){.m = 200, .n1 = 32, .n2 = 16, .alpha = 1}; // larger than any buffer here
    for (int i = 3; i < 6; i++) {
        crdi_network_place(&bad[i], many);
    }
    for (int i = 0; i < 6; i++) {
        peer_send_network(&far_end, &bad[i], i + 1);
        // The large one comes through a small buffer: some steps.
        for (int k = 0; k < 400 && counts(&r).refused <= i; k++) {
            rig_step(&r);
        }
        for (int k = 0; k < 400; k++) {
            rig_step(&r);
        }
        check_int(counts(&r).refused, i + 1);
        check(peer_hear_type(&far_end, CRDI_OUTCOME));
        check_int(far_end.message.outcome, CRDI_REFUSED);
        check_int(far_end.message.generation, i + 1);
    }
    check_int(crd_coupling_get_counts(r.element).swaps, 0);
    const crd_network good = scaled(&r, 1.0, weights);
    peer_send_network(&far_end, &good, 7); // the stream is still in step
    rig_step(&r);
    check_int(crd_coupling_get_counts(r.element).swaps, 1);
    check_int(counts(&r).connects, 1);
    check_int(counts(&r).malformed, 0);
    part(&r);
}

static void a_network_may_come_byte_by_byte(void** state)
{
    rig r;
    double weights[512];
    meet(&r, *state);
    const crd_network n = scaled(&r, 1.0, weights);
    const size_t bytes = peer_encode_network(&far_end, &n, 1);
    for (size_t i = 0; i < bytes; i++) {
        check_int(crd_coupling_get_counts(r.element).swaps, 0);
        check(send(far_end.fd, far_end.out_bytes + i, 1, MSG_NOSIGNAL) == 1);
        rig_step(&r);
    }
    check_int(crd_coupling_get_counts(r.element).swaps, 1);
    part(&r);
}

static void a_server_that_dies_within_a_network_changes_nothing(void** state)
{
    rig r;
    double weights[512];
    meet(&r, *state);
    const crd_network n = hold(&r, weights);
    const size_t bytes = peer_encode_network(&far_end, &n, 1);
    for (size_t cut = 0; cut < bytes; cut += 7) {
        check((cut == 0) || send(far_end.fd, far_end.out_bytes, cut, MSG_NOSIGNAL) == (ssize_t)cut);
        rig_step(&r);
        peer_close(&far_end);
        rig_step(&r);
        rig_step(&r);
        check_int(crd_learn_client_link(r.client), CRD_LEARN_OFFLINE);
        r.now += 31;
        rig_step(&r);
        check_int(crd_learn_client_link(r.client), CRD_LEARN_ONLINE);
        peer_accept(&far_end);
    }
    check_int(counts(&r).networks, 0);
    check_int(counts(&r).malformed, 0);
    check_int(crd_coupling_get_counts(r.element).swaps, 0);
    // The new connection begins with a HELLO again, and works.
    check(peer_hear(&far_end));
    check_int(far_end.message.type, CRDI_HELLO);
    const crd_network same = scaled(&r, 1.0, weights);
    peer_send_network(&far_end, &same, 1);
    rig_step(&r);
    check_int(crd_coupling_get_counts(r.element).swaps, 1);
    part(&r);
}

static void a_malformed_message_ends_the_connection_and_is_counted(void** state)
{
    rig r;
    double weights[512];
    meet(&r, *state);
    const crd_network n = scaled(&r, 1.0, weights);
    int64_t malformed = 0;
    // Every byte of header and shape; the numbers behind them are free.
    for (size_t i = 0; i < 42; i++) {
        if (i >= 12 && i < 36) { continue; } // generation and losses
        const size_t bytes = peer_encode_network(&far_end, &n, 1);
        far_end.out_bytes[i] ^= 0x80;
        check(send(far_end.fd, far_end.out_bytes, bytes, MSG_NOSIGNAL) == (ssize_t)bytes);
        rig_step(&r);
        const bool waits = i == 8 || i == 9; // for a longer body; what follows is none
        if (waits) {
            check(counts(&r).networks + counts(&r).malformed >= malformed);
            peer_close(&far_end);
            rig_step(&r);
            malformed = counts(&r).malformed;
        } else {
            check_int(counts(&r).malformed, ++malformed);
        }
        check_int(crd_learn_client_link(r.client), CRD_LEARN_OFFLINE);
        peer_close(&far_end);
        r.now += 31;
        rig_step(&r);
        check_int(crd_learn_client_link(r.client), CRD_LEARN_ONLINE);
        peer_accept(&far_end);
    }
    check_int(crd_coupling_get_counts(r.element).swaps, 0);
    const crdi_message hello = {.type = CRDI_HELLO, .step = 1, .network = n};
    peer_say(&far_end, &hello); // what only elements say
    rig_step(&r);
    check_int(counts(&r).malformed, malformed + 1);
    part(&r);
}

static void attempts_come_after_1_s_then_twice_as_rarely_up_to_30_s(void** state)
{
    const double attempts[] = {0, 1, 3, 7, 15, 31, 61, 91, 121};
    for (int i = 1; i < 9; i++) {
        rig r;
        rig_init(&r, *state, address);
        (void)unlink(address + strlen("unix:"));
        for (r.now = 0; r.now < attempts[i] - 0.25; r.now += 0.25) {
            rig_step(&r);
            check_int(crd_learn_client_link(r.client), CRD_LEARN_OFFLINE);
        }
        peer_listen(&far_end, *state, address);
        r.now = attempts[i] - 0.001;
        rig_step(&r);
        check_int(crd_learn_client_link(r.client), CRD_LEARN_OFFLINE);
        r.now = attempts[i];
        rig_step(&r);
        check_int(crd_learn_client_link(r.client), CRD_LEARN_ONLINE);
        check_int(counts(&r).dropped, r.n);
        part(&r);
    }
}

static void a_clock_that_is_wrong_for_a_while_does_not_end_the_learning(void** state)
{
    rig r;
    rig_init(&r, *state, address);
    (void)unlink(address + strlen("unix:"));
    const double clocks[] = {1e9, NAN, 1e9 + 1, INFINITY, 5};
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        r.now = clocks[i];
        rig_step(&r);
    }
    peer_listen(&far_end, *state, address);
    r.now = 36;
    rig_step(&r);
    check_int(crd_learn_client_link(r.client), CRD_LEARN_ONLINE);
    part(&r);
}

static void a_server_that_does_not_read_costs_samples_and_nothing_else(void** state)
{
    (void)state;
    check_allocator a;
    crd_context* ctx = check_context(&a);
    rig r;
    meet(&r, ctx);
    const int64_t allocations = a.allocations;
    while (counts(&r).dropped < 1000) {
        rig_step(&r);
        check(r.n < 1000000);
    }
    check_int(a.allocations, allocations);
    check_int(crd_learn_client_link(r.client), CRD_LEARN_ONLINE);
    // It reads again: what it gets is in order, with a gap where samples were dropped.
    int64_t next = -1, gap = 0;
    for (int i = 0; i < 100000 && gap == 0; i++) {
        rig_step(&r);
        while (peer_hear(&far_end)) {
            check_int(far_end.message.type, CRDI_SAMPLES);
            if (next >= 0) { gap += far_end.message.first - next; }
            check(next < 0 || far_end.message.first >= next);
            next = far_end.message.first + far_end.message.count;
        }
    }
    check(gap >= 1000);
    part(&r);
    check_int(a.live, 1); // the context
    crd_context_destroy(ctx);
}

static void steps_do_not_allocate(void** state)
{
    (void)state;
    check_allocator a;
    crd_context* ctx = check_context(&a);
    rig r;
    double weights[512];
    meet(&r, ctx);
    const int64_t allocations = a.allocations;
    const crd_network same = scaled(&r, 1.0, weights);
    peer_send_network(&far_end, &same, 1);
    for (int i = 0; i < 1000; i++) {
        rig_step(&r);
        if (i == 500) { peer_close(&far_end); }
        if (i == 600) { r.now += 5; }
    }
    check_int(counts(&r).connects, 2);
    check_int(a.allocations, allocations);
    part(&r);
    check_int(a.live, 1); // the context
    crd_context_destroy(ctx);
}

static void a_reset_element_says_what_it_uses_again(void** state)
{
    rig r;
    double weights[512];
    meet(&r, *state);
    const crd_network n = hold(&r, weights);
    peer_send_network(&far_end, &n, 1);
    rig_step(&r);
    check_int(crd_coupling_get_counts(r.element).swaps, 1);
    crd_coupling_reset(r.element);
    r.n = 0;
    rig_step(&r);
    check(peer_hear_type(&far_end, CRDI_HELLO));
    check(memcmp(far_end.message.network.W1, crd_coupling_get_network(r.element)->W1,
                 (size_t)(r.start.n1 * r.start.m) * sizeof(double)) == 0);
    part(&r);
}

static void the_same_over_tcp(void** state)
{
    rig r;
    peer_listen(&far_end, *state, "tcp:127.0.0.1:0");
    struct sockaddr_storage own;
    socklen_t size = sizeof own;
    check(getsockname(far_end.listening, (struct sockaddr*)&own, &size) == 0);
    uint16_t port = 0;
    memcpy(&port, (const char*)&own + 2, sizeof port);
    char text[64];
    snprintf(text, sizeof text, "tcp:127.0.0.1:%d", (port >> 8 | port << 8) & 0xffff);
    rig_init(&r, *state, text);
    struct pollfd p = {.fd = far_end.listening, .events = POLLIN};
    rig_step(&r);
    check(poll(&p, 1, 10000) == 1);
    peer_accept(&far_end);
    rig_step(&r);
    check_int(crd_learn_client_link(r.client), CRD_LEARN_ONLINE);
    p.fd = far_end.fd;
    check(poll(&p, 1, 10000) == 1);
    check(peer_hear(&far_end));
    check_int(far_end.message.type, CRDI_HELLO);
    part(&r);
    // Nobody there any more.
    rig_init(&r, *state, text);
    for (int i = 0; i < 100; i++) {
        rig_step(&r);
    }
    check(crd_learn_client_link(r.client) != CRD_LEARN_ONLINE);
    rig_clear(&r);
}

static void what_cannot_learn_is_refused_by_name(void** state)
{
    crd_learn_client* c = NULL;
    crd_coupling* element = NULL;
    crd_coupling_options opt = crd_coupling_defaults();
    opt.step = 0.01;
    check_ok(crd_coupling_create(*state, &opt, &element));
    check_status(crd_learn_client_create(*state, address, "mass1.F", 0.01, element, &c),
                 CRD_E_RANGE);
    check_contains(crd_error_text(*state), "mass1.F");
    crd_coupling_destroy(element);
    rig r;
    rig_init(&r, *state, address);
    check_status(crd_learn_client_create(*state, "unix", "x", 0.01, r.element, &c), CRD_E_RANGE);
    check_status(crd_learn_client_create(*state, address, "x", 0, r.element, &c), CRD_E_RANGE);
    check_status(crd_learn_client_create(*state, address, "x", NAN, r.element, &c), CRD_E_RANGE);
    rig_clear(&r);
}

static void every_failing_allocation_is_reported_and_leaves_nothing(void** state)
{
    rig r;
    rig_init(&r, *state, address);
    int64_t failures = 0;
    for (int64_t i = 0;; i++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        crd_learn_client* c = NULL;
        a.fail_at = a.allocations + i;
        const crd_status st = crd_learn_client_create(ctx, address, "x", 0.01, r.element, &c);
        a.fail_at = -1;
        crd_learn_client_destroy(c);
        check_int(a.live, 1); // the context
        crd_context_destroy(ctx);
        if (st == CRD_OK) { break; }
        check_int(st, CRD_E_MEMORY);
        failures++;
    }
    check(failures >= 3);
    rig_clear(&r);
}

static int make_context(void** state)
{
    *state = crd_context_create(NULL);
    return 0;
}

static int drop_context(void** state)
{
    crd_context_destroy(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hello_says_what_the_element_is_and_samples_follow_in_order),
        cmocka_unit_test(the_last_samples_and_a_bye_come_when_the_client_goes),
        cmocka_unit_test(lost_samples_are_gaps_and_late_ones_keep_their_number),
        cmocka_unit_test(time_that_begins_anew_leaves_a_gap),
        cmocka_unit_test(a_network_that_comes_is_used_and_kept_if_it_is_not_worse),
        cmocka_unit_test(a_worse_network_is_rolled_back_and_the_server_hears_what_is_in_use),
        cmocka_unit_test(a_network_that_does_not_fit_is_refused_counted_and_told),
        cmocka_unit_test(a_network_may_come_byte_by_byte),
        cmocka_unit_test(a_server_that_dies_within_a_network_changes_nothing),
        cmocka_unit_test(a_malformed_message_ends_the_connection_and_is_counted),
        cmocka_unit_test(attempts_come_after_1_s_then_twice_as_rarely_up_to_30_s),
        cmocka_unit_test(a_clock_that_is_wrong_for_a_while_does_not_end_the_learning),
        cmocka_unit_test(a_server_that_does_not_read_costs_samples_and_nothing_else),
        cmocka_unit_test(steps_do_not_allocate),
        cmocka_unit_test(a_reset_element_says_what_it_uses_again),
        cmocka_unit_test(the_same_over_tcp),
        cmocka_unit_test(what_cannot_learn_is_refused_by_name),
        cmocka_unit_test(every_failing_allocation_is_reported_and_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, make_context, drop_context);
}
