// Learning messages: what is written can be read, and nothing else can.
#include "learn/message.h"

#include "check.h"

#include <unistd.h>

enum { M = 5, N1 = 4, N2 = 2, WEIGHTS = N1 * (M + N2 + 1) + 2 * N2 + 1 };

static double weights_in[WEIGHTS], weights_out[WEIGHTS];

static crd_network network(void)
{
    crd_network n = {.m = M, .n1 = N1, .n2 = N2, .alpha = 0.01};
    for (int i = 0; i < WEIGHTS; i++) {
        weights_in[i] = 0.1 * i - 1.7;
    }
    crdi_network_place(&n, weights_in);
    return n;
}

static crdi_message example(crdi_message_type type)
{
    crdi_message m = {.type = type,
                      .name = "mass1.F",
                      .step = 0.01,
                      .first = 123456789012,
                      .count = 3,
                      .values = {1.5, -2.25e-300, 3},
                      .k = {6, CRDI_K_UNKNOWN, CRD_LATENCY_MAX},
                      .flags = {0, CRDI_FLAG_JUMP, 0},
                      .generation = 7,
                      .outcome = CRDI_ROLLED_BACK,
                      .bye = CRDI_BYE_SLOW,
                      .held_before = 0.5,
                      .held_after = 0.25,
                      .network = network()};
    return m;
}

static crdi_message reader(void)
{
    return (crdi_message){.weights = weights_out, .weight_capacity = WEIGHTS};
}

static void check_network(const crd_network* n)
{
    check_int(n->m, M);
    check_int(n->n1, N1);
    check_int(n->n2, N2);
    check(n->alpha == 0.01);
    check(n->W1 == weights_out);
    check(memcmp(weights_in, weights_out, sizeof weights_in) == 0);
    check(n->b3 == weights_in[WEIGHTS - 1]);
    check(n->W3[1] == weights_in[WEIGHTS - 2]);
}

static void check_equal(const crdi_message* a, const crdi_message* b)
{
    check_int(b->type, a->type);
    switch (a->type) {
    case CRDI_HELLO:
        check_text(b->name, a->name);
        check(a->step == b->step);
        check_network(&b->network);
        break;
    case CRDI_SAMPLES:
        check_int(b->first, a->first);
        check_int(b->count, a->count);
        check(memcmp(a->values, b->values, 3 * sizeof(double)) == 0);
        check(memcmp(a->k, b->k, 3) == 0 && memcmp(a->flags, b->flags, 3) == 0);
        break;
    case CRDI_NETWORK:
        check_int(b->generation, a->generation);
        check(a->held_before == b->held_before && a->held_after == b->held_after);
        check_network(&b->network);
        break;
    case CRDI_OUTCOME:
        check_int(b->generation, a->generation);
        check_int(b->outcome, a->outcome);
        break;
    default:
        check_int(b->bye, a->bye);
    }
}

static void every_message_reads_back_as_it_was_written(void** state)
{
    (void)state;
    uint8_t bytes[2048];
    for (crdi_message_type t = CRDI_HELLO; t < CRDI_MESSAGE_TYPES; t++) {
        const crdi_message m = example(t);
        crdi_message back = reader();
        memset(weights_out, 0, sizeof weights_out);
        const size_t n = crdi_message_encode(&m, bytes, sizeof bytes);
        check(n > CRDI_MESSAGE_HEADER);
        const char* wrong = crdi_message_decode(&back, bytes, n);
        check_text(wrong ? wrong : "", "");
        check_equal(&m, &back);
    }
}

static void the_bytes_are_those_of_the_tables(void** state)
{
    (void)state;
    uint8_t bytes[64];
    const crdi_message m = {
        .type = CRDI_OUTCOME, .generation = 0x0102030405060708, .outcome = CRDI_SWAPPED};
    const uint8_t want[] = {'C', 'R', 'D', 'L', 1, 4, 0, 0, 9, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1, 1};
    check_int(crdi_message_encode(&m, bytes, sizeof bytes), sizeof want);
    check(memcmp(bytes, want, sizeof want) == 0);
}

static void a_message_that_does_not_fit_is_not_begun(void** state)
{
    (void)state;
    uint8_t bytes[2048];
    for (crdi_message_type t = CRDI_HELLO; t < CRDI_MESSAGE_TYPES; t++) {
        const crdi_message m = example(t);
        const size_t n = crdi_message_encode(&m, bytes, sizeof bytes);
        for (size_t room = 0; room < n; room++) {
            check_int(crdi_message_encode(&m, bytes, room), 0);
        }
        check_int(crdi_message_encode(&m, bytes, n), n);
    }
}

static void the_largest_network_fits_into_the_largest_message(void** state)
{
    (void)state;
    double* w = calloc(CRDI_WEIGHTS_MAX, sizeof *w);
    uint8_t* bytes = malloc(CRDI_MESSAGE_MAX);
    crdi_message m = {.type = CRDI_HELLO, .step = 1};
    memset(m.name, 'x', CRDI_NAME_MAX);
    m.network =
        (crd_network){.m = CRD_TAPS_MAX, .n1 = CRDI_HIDDEN_MAX, .n2 = CRDI_HIDDEN_MAX, .alpha = 1};
    m.network.more = CRD_NETWORK_LAYERS - 2;
    m.network.n_more[0] = m.network.n_more[1] = CRDI_HIDDEN_MAX;
    check_int(crdi_network_weights(&m.network), CRDI_WEIGHTS_MAX);
    crdi_network_place(&m.network, w);
    const size_t n = crdi_message_encode(&m, bytes, CRDI_MESSAGE_MAX);
    check(n > 0);
    crdi_message back = {.weights = w, .weight_capacity = CRDI_WEIGHTS_MAX};
    check(!crdi_message_decode(&back, bytes, n));
    check(crdi_network_same_shape(&back.network, &m.network));
    free(bytes);
    free(w);
}

static void networks_of_every_depth_pass(void** state)
{
    (void)state;
    static const crd_network shapes[] = {
        {.m = 3, .n2 = 2, .alpha = 0.5},
        {.m = 3, .n1 = 2, .n2 = 4, .alpha = 0.5},
        {.m = 3, .n1 = 2, .n2 = 2, .alpha = 0.5, .more = 1, .n_more = {2}},
        {.m = 3, .n1 = 2, .n2 = 2, .alpha = 0.5, .more = 2, .n_more = {2, 1}}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        uint8_t bytes[2048];
        crdi_message m = {.type = CRDI_NETWORK, .generation = 1, .network = shapes[s]};
        crdi_message back = reader();
        network(); // fills weights_in
        crdi_network_place(&m.network, weights_in);
        const size_t n = crdi_message_encode(&m, bytes, sizeof bytes);
        check(n > 0 && !crdi_message_decode(&back, bytes, n));
        check(crdi_network_same_shape(&back.network, &m.network));
        check(memcmp(weights_in, weights_out,
                     crdi_network_weights(&m.network) * sizeof *weights_in) == 0);
        check(crd_network_eval(&back.network, weights_in) ==
              crd_network_eval(&m.network, weights_in));
    }
}

static void a_message_cut_anywhere_is_refused(void** state)
{
    (void)state;
    uint8_t bytes[2048];
    for (crdi_message_type t = CRDI_HELLO; t < CRDI_MESSAGE_TYPES; t++) {
        const crdi_message m = example(t);
        const size_t n = crdi_message_encode(&m, bytes, sizeof bytes);
        // Cut off with the header unchanged: only weights may be missing, and then none are given.
        for (size_t k = 0; k < n; k++) {
            crdi_message back = reader();
            uint8_t* exact = malloc(k ? k : 1); // the sanitizer sees every byte beyond
            memcpy(exact, bytes, k);
            const char* wrong = crdi_message_decode(&back, exact, k);
            const bool in_weights = t == CRDI_NETWORK && k >= n - 8 * WEIGHTS;
            if (in_weights) {
                check(!wrong);
                check(!back.network.W1);
            } else {
                check(wrong != NULL);
            }
            // And with a header that says so.
            if (k >= CRDI_MESSAGE_HEADER) {
                const size_t body = k - CRDI_MESSAGE_HEADER;
                exact[8] = (uint8_t)body;
                exact[9] = (uint8_t)(body >> 8);
                check(crdi_message_decode(&back, exact, k) != NULL);
            }
            free(exact);
        }
        bytes[n] = 0;
        crdi_message back = reader();
        check(crdi_message_decode(&back, bytes, n + 1) != NULL);
    }
}

static void whatever_byte_is_wrong_no_message_is_larger_than_its_tables(void** state)
{
    (void)state;
    uint8_t bytes[2048];
    int refused = 0, taken = 0;
    for (crdi_message_type t = CRDI_HELLO; t < CRDI_MESSAGE_TYPES; t++) {
        const crdi_message m = example(t);
        const size_t n = crdi_message_encode(&m, bytes, sizeof bytes);
        for (size_t i = 0; i < n; i++) {
            for (int x = 1; x < 256; x++) {
                bytes[i] ^= (uint8_t)x;
                crdi_message back = reader();
                const char* wrong = crdi_message_decode(&back, bytes, n);
                bytes[i] ^= (uint8_t)x;
                refused += wrong != NULL;
                taken += !wrong;
                if (i < CRDI_MESSAGE_HEADER && back.type == t) { check(wrong != NULL); }
                if (wrong) { continue; }
                check(back.count <= CRDI_BATCH);
                check(memchr(back.name, 0, sizeof back.name) != NULL);
                if (t == CRDI_HELLO || t == CRDI_NETWORK) {
                    check_int(crdi_network_weights(&back.network), WEIGHTS);
                }
            }
        }
    }
    check(refused > 10000 && taken > 10000); // values are free, structure is not
}

static void nonsense_is_called_by_its_name(void** state)
{
    (void)state;
    const struct {
        crdi_message_type type;
        size_t at;
        uint8_t value;
        const char* says;
    } cases[] = {
        {CRDI_BYE, 0, 'X', "no learning message"},
        {CRDI_BYE, 4, 2, "another version"},
        {CRDI_BYE, 5, 0, "unknown"},
        {CRDI_BYE, 5, 99, "unknown"},
        {CRDI_BYE, 6, 1, "unknown"},
        {CRDI_BYE, 10, 255, "too long"},
        {CRDI_BYE, 12, 9, "reason"},
        {CRDI_OUTCOME, 20, 0, "outcome"},
        {CRDI_OUTCOME, 20, 99, "outcome"},
        {CRDI_SAMPLES, 20, 0, "samples"},
        {CRDI_SAMPLES, 20, 65, "samples"},
        {CRDI_SAMPLES, 19, 0x7f, "sequence"},
        {CRDI_SAMPLES, 46, 121, "latency"},
        {CRDI_SAMPLES, 49, 2, "flags"},
        {CRDI_HELLO, 13, 1, "name"},
        {CRDI_HELLO, 14, 27, "control"},
        {CRDI_HELLO, 28, 0xff, "macro step"},
        {CRDI_HELLO, 30, 1, "shape"},
        {CRDI_NETWORK, 38, 0, "shape"},
        {CRDI_NETWORK, 38, 65, "shape"},
        {CRDI_NETWORK, 38, 5, "number of weights"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t bytes[2048];
        const crdi_message m = example(cases[i].type);
        crdi_message back = reader();
        const size_t n = crdi_message_encode(&m, bytes, sizeof bytes);
        bytes[cases[i].at] = cases[i].value;
        const char* wrong = crdi_message_decode(&back, bytes, n);
        check_contains(wrong ? wrong : "nothing", cases[i].says);
    }
}

static size_t encode_all(uint8_t* bytes, size_t capacity)
{
    size_t n = 0;
    for (crdi_message_type t = CRDI_HELLO; t < CRDI_MESSAGE_TYPES; t++) {
        const crdi_message m = example(t);
        n += crdi_message_encode(&m, bytes + n, capacity - n);
    }
    return n;
}

static void a_stream_in_pieces_of_any_size_gives_the_same_messages(void** state)
{
    (void)state;
    uint8_t stream[4096], box[1024];
    const size_t n = encode_all(stream, sizeof stream);
    for (size_t piece = 1; piece <= n; piece++) {
        crdi_inbox in = {.bytes = box, .capacity = sizeof box};
        crdi_message m = reader();
        const char* wrong = NULL;
        int next = CRDI_HELLO;
        for (size_t at = 0; at < n;) {
            uint8_t* to = NULL;
            size_t k = crdi_inbox_room(&in, &to);
            check(k > 0);
            k = k < piece ? k : piece;
            k = k < n - at ? k : n - at;
            memcpy(to, stream + at, k);
            crdi_inbox_add(&in, k);
            at += k;
            while (crdi_inbox_next(&in, &m, &wrong)) {
                const crdi_message want = example((crdi_message_type)next++);
                check_equal(&want, &m);
            }
            check(!wrong);
        }
        check_int(next, CRDI_MESSAGE_TYPES);
    }
}

static void a_network_too_large_for_its_reader_passes_and_the_stream_goes_on(void** state)
{
    (void)state;
    uint8_t stream[4096], box[100]; // less than the network's 400 bytes
    crdi_message m = example(CRDI_NETWORK);
    size_t n = crdi_message_encode(&m, stream, sizeof stream);
    m = example(CRDI_OUTCOME);
    n += crdi_message_encode(&m, stream + n, sizeof stream - n);
    for (size_t piece = 1; piece < sizeof box; piece++) {
        crdi_inbox in = {.bytes = box, .capacity = sizeof box};
        crdi_message got = {.weights = weights_out, .weight_capacity = 1};
        const char* wrong = NULL;
        int count = 0;
        for (size_t at = 0; at < n;) {
            uint8_t* to = NULL;
            size_t k = crdi_inbox_room(&in, &to);
            check(k > 0);
            k = k < piece ? k : piece;
            k = k < n - at ? k : n - at;
            memcpy(to, stream + at, k);
            crdi_inbox_add(&in, k);
            at += k;
            while (crdi_inbox_next(&in, &got, &wrong)) {
                check_int(got.type, count == 0 ? CRDI_NETWORK : CRDI_OUTCOME);
                if (count == 0) { check(!got.network.W1 && got.network.m == M); }
                check_int(got.generation, 7);
                count++;
            }
            check(!wrong);
        }
        check_int(count, 2);
    }
}

static void an_outbox_keeps_whole_messages_in_order_and_refuses_what_does_not_fit(void** state)
{
    (void)state;
    uint8_t box[100], box_in[100];
    crdi_outbox out = {.bytes = box, .capacity = sizeof box};
    crdi_inbox in = {.bytes = box_in, .capacity = sizeof box_in};
    crdi_message m = {.type = CRDI_OUTCOME, .outcome = CRDI_KEPT}; // 21 bytes
    int64_t put = 0, got = 0;
    for (int round = 0; round < 1000; round++) {
        m.generation = put + 1;
        if (crdi_outbox_put(&out, &m)) {
            put++;
        } else {
            check(crdi_outbox_room(&out) < 21);
        }
        uint8_t* to = NULL;
        size_t k = crdi_inbox_room(&in, &to); // a socket takes 13 bytes at a time
        k = k < 13 ? k : 13;
        k = k < out.tail - out.head ? k : out.tail - out.head;
        memcpy(to, out.bytes + out.head, k);
        out.head += k;
        crdi_inbox_add(&in, k);
        crdi_message back = reader();
        const char* wrong = NULL;
        while (crdi_inbox_next(&in, &back, &wrong)) {
            check_int(back.generation, ++got);
        }
        check(!wrong);
    }
    check(put < 1000 && got > 600);
    check(put - got <= 10);
}

static void addresses_are_numbers_and_paths(void** state)
{
    crdi_address a;
    check_ok(crdi_address_parse(*state, "unix:/tmp/x.sock", &a));
    check_int(a.socket.ss_family, AF_UNIX);
    check_ok(crdi_address_parse(*state, "tcp:127.0.0.1:5400", &a));
    check_int(a.socket.ss_family, AF_INET);
    check_ok(crdi_address_parse(*state, "tcp:[::1]:5400", &a));
    check_int(a.socket.ss_family, AF_INET6);
    check_ok(crdi_address_parse(*state, "tcp:::1:5400", &a));
    check_int(a.socket.ss_family, AF_INET6);
    const char* const bad[][2] = {
        {"", "expected unix:PATH"},   {"localhost:80", "expected unix:PATH"},
        {"unix:", "0 bytes"},         {"tcp:127.0.0.1", "port"},
        {"tcp:127.0.0.1:", "port"},   {"tcp:127.0.0.1:65536", "port"},
        {"tcp:127.0.0.1:-1", "port"}, {"tcp:localhost:80", "numeric"},
        {"tcp::80", "numeric"},       {"tcp:[]:80", "numeric"},
        {"tcp:1.2.3:80", "numeric"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        check_status(crdi_address_parse(*state, bad[i][0], &a), CRD_E_RANGE);
        check_contains(crd_error_text(*state), bad[i][1]);
    }
    char path[300] = "unix:";
    memset(path + 5, 'x', sizeof path - 6);
    path[sizeof path - 1] = 0;
    check_status(crdi_address_parse(*state, path, &a), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "107");
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
        cmocka_unit_test(every_message_reads_back_as_it_was_written),
        cmocka_unit_test(the_bytes_are_those_of_the_tables),
        cmocka_unit_test(a_message_that_does_not_fit_is_not_begun),
        cmocka_unit_test(the_largest_network_fits_into_the_largest_message),
        cmocka_unit_test(networks_of_every_depth_pass),
        cmocka_unit_test(a_message_cut_anywhere_is_refused),
        cmocka_unit_test(whatever_byte_is_wrong_no_message_is_larger_than_its_tables),
        cmocka_unit_test(nonsense_is_called_by_its_name),
        cmocka_unit_test(a_stream_in_pieces_of_any_size_gives_the_same_messages),
        cmocka_unit_test(a_network_too_large_for_its_reader_passes_and_the_stream_goes_on),
        cmocka_unit_test(an_outbox_keeps_whole_messages_in_order_and_refuses_what_does_not_fit),
        cmocka_unit_test(addresses_are_numbers_and_paths),
    };
    return cmocka_run_group_tests(tests, make_context, drop_context);
}
