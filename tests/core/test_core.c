#include "cardan/core.h"
#include "check.h"
#include "core/small.h"
#undef snprintf
#undef vsnprintf

typedef struct board {
    double now, tick;
    int critical, most_critical; // depth
    uint8_t in[16][64];
    size_t length[16];
    int waiting, sent;
    uint8_t out[64];
    char said[2000];
} board;

static double tell_time(void* user)
{
    board* b = user;
    return b->now += b->tick;
}

static bool send(void* user, const crd_dcp_address* to, const uint8_t* bytes, size_t length)
{
    board* b = user;
    memcpy(b->out, bytes, length < sizeof b->out ? length : sizeof b->out);
    b->sent++;
    return true;
}

static size_t receive(void* user, crd_dcp_address* from, crd_dcp_address* at, uint8_t* bytes,
                      size_t room)
{
    board* b = user;
    if (b->waiting == 0) { return 0; }
    const size_t n = b->length[--b->waiting];
    *from = (crd_dcp_address){0x7f000001, 4000, CRD_DCP_UDP};
    *at = (crd_dcp_address){0x7f000001, 8080, CRD_DCP_UDP};
    if (n <= room) { memcpy(bytes, b->in[b->waiting], n); }
    return n;
}

static void critical(void* user, bool enter)
{
    board* b = user;
    b->critical += enter ? 1 : -1;
    if (b->critical > b->most_critical) { b->most_critical = b->critical; }
}

static void take_line(void* user, crd_level level, const char* text)
{
    board* b = user;
    const size_t n = strlen(b->said);
    (void)crdi_snprintf(b->said + n, sizeof b->said - n, "%s\n", text);
}

static crd_core_port port_of(board* b)
{
    return (crd_core_port){.user = b,
                           .time = tell_time,
                           .send = send,
                           .receive = receive,
                           .critical = critical,
                           .log = take_line};
}

static _Alignas(16) unsigned char memory[512 * 1024];

static void a_port_says_what_it_lacks(void** state)
{
    const char* why = NULL;
    board b = {.tick = 1e-3};
    crd_core_port p = port_of(&b);
    p.time = NULL;
    check(!crd_core_start(&p, memory, sizeof memory, &why));
    check(strstr(why, "time is NULL; expected a function"));
    check(strstr(b.said, why)); // and said where it can be
    p.time = tell_time;
    b.tick = 0;
    check(!crd_core_start(&p, memory, sizeof memory, &why));
    check(strstr(why, "time stands still; expected a clock that runs"));
    b.tick = -1;
    check(!crd_core_start(&p, memory, sizeof memory, &why));
    check(strstr(why, "time goes back"));
    b.tick = NAN;
    check(!crd_core_start(&p, memory, sizeof memory, &why));
    check(strstr(why, "time is not a number"));
    b = (board){.tick = 1e-3};
    check(!crd_core_start(&p, NULL, 0, &why));
    for (size_t size = 0; size < 2600; size += 8) { // never more than it has
        memset(memory, 0x5a, sizeof memory);
        crd_core* core = crd_core_start(&p, memory + 1, size, &why);
        check(core ? size > 1000 : strstr(why, "too little memory") != NULL);
        for (size_t i = size + 1; i < size + 4000; i++) {
            check(memory[i] == 0x5a);
        }
    }
}

static void memory_is_what_it_was_given_and_is_sealed(void** state)
{
    const char* why = NULL;
    board b = {.tick = 1e-3};
    const crd_core_port p = port_of(&b);
    crd_core* core = crd_core_start(&p, memory, sizeof memory, &why);
    check(core);
    const size_t before = crd_core_get_state(core).used;
    crd_coupling_options o = crd_coupling_defaults();
    o.step = 1e-3;
    crd_coupling *one = NULL, *other = NULL;
    check_ok(crd_coupling_create(crd_core_context(core), &o, &one));
    check(crd_core_get_state(core).used > before);
    crd_core_seal(core);
    check_status(crd_coupling_create(crd_core_context(core), &o, &other), CRD_E_MEMORY);
    check(crd_core_get_state(core).refused > 0);
    check(strstr(crd_error_text(crd_core_context(core)), "out of memory"));
    for (int n = 0; n < 500; n++) { // what is there goes on
        crd_coupling_push(one, n, NAN, n);
        check(isfinite(crd_coupling_eval(one, 1e-3 * n)));
    }
    crd_coupling_destroy(one);
}

static crd_dcp_outcome take(void* user, int variable, const crd_dcp_slot* value)
{
    board* b = user;
    check(b->critical == 1);
    return CRD_DCP_DONE;
}

static crd_dcp_description slave_of_nothing(crd_dcp_variable* v)
{
    *v = crd_dcp_variable_defaults();
    v->name = "x";
    v->causality = CRD_INPUT;
    return (crd_dcp_description){.name = "x",
                                 .major = 1,
                                 .nrt = true,
                                 .variables = v,
                                 .variable_count = 1,
                                 .can_accept_config = true,
                                 .udp = {.offered = true, .max_pdu_size = 512}};
}

static void a_slave_answers_and_long_datagrams_are_refused(void** state)
{
    const char* why = NULL;
    board b = {.tick = 1e-3};
    const crd_core_port p = port_of(&b);
    crd_core* core = crd_core_start(&p, memory, sizeof memory, &why);
    crd_dcp_variable v;
    const crd_dcp_description d = slave_of_nothing(&v);
    const crd_dcp_plant plant = {.user = &b, .set = take};
    crd_dcp_slave *slave = NULL, *second = NULL;
    check_ok(crd_core_serve(core, &d, &plant, NULL, &slave));
    check_status(crd_core_serve(core, &d, &plant, NULL, &second), CRD_E_UNSUPPORTED);
    crd_core_seal(core);
    const uint8_t request[] = {0x80, 1, 0, 7}; // INF_state
    memcpy(b.in[0], request, sizeof request);
    b.length[0] = sizeof request;
    b.length[1] = 100000;
    b.waiting = 2;
    crd_core_turn(core);
    check_int(b.sent, 1);
    check_int(b.out[0], 0xb0 + 2); // RSP_state_ack
    check_int(crd_core_get_state(core).too_long, 1);
    check_int(crd_core_get_state(core).received, 1);
    check_int(b.critical, 0);
}

static void a_clock_that_stops_in_the_run_is_a_fault(void** state)
{
    const char* why = NULL;
    board b = {.tick = 1e-3};
    const crd_core_port p = port_of(&b);
    crd_core* core = crd_core_start(&p, memory, sizeof memory, &why);
    crd_dcp_variable v;
    const crd_dcp_description d = slave_of_nothing(&v);
    crd_dcp_slave* slave = NULL;
    check_ok(crd_core_serve(core, &d, NULL, NULL, &slave));
    const uint8_t registers[] = {1, 1, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0,
                                 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0};
    memcpy(b.in[0], registers, sizeof registers);
    b.length[0] = sizeof registers;
    b.waiting = 1;
    crd_core_turn(core);
    check_int(crd_dcp_slave_state(slave), CRD_DCP_CONFIGURATION);
    b.tick = 0;
    for (int i = 0; i < 999999; i++) {
        crd_core_turn(core);
    }
    check(!crd_core_get_state(core).stands_still);
    for (int i = 0; i < 10; i++) {
        crd_core_turn(core);
    }
    check(crd_core_get_state(core).stands_still);
    check(strstr(b.said, "time stands still"));
    check_int(crd_dcp_slave_state(slave), CRD_DCP_ERRORRESOLVED);
    check_int(crd_dcp_slave_error(slave), CRD_DCP_E_GENERIC);
}

static void a_port_without_a_network_serves_nothing(void** state)
{
    const char* why = NULL;
    board b = {.tick = 1e-3};
    crd_core_port p = port_of(&b);
    p.receive = NULL;
    crd_core* core = crd_core_start(&p, memory, sizeof memory, &why);
    crd_dcp_variable v;
    const crd_dcp_description d = slave_of_nothing(&v);
    crd_dcp_slave* slave = NULL;
    check_status(crd_core_serve(core, &d, NULL, NULL, &slave), CRD_E_UNSUPPORTED);
    check(strstr(crd_error_text(crd_core_context(core)), "receive is NULL"));
    check(isinf(crd_core_turn(core)));
}

#define SAME(...)                                                                                  \
    do {                                                                                           \
        char want[200], got[200];                                                                  \
        const int n = snprintf(want, sizeof want, __VA_ARGS__);                                    \
        check_int(crdi_snprintf(got, sizeof got, __VA_ARGS__), n);                                 \
        assert_string_equal(got, want);                                                            \
    } while (0)

static void texts_are_formatted_as_by_the_c_library(void** state)
{
    static const double some[] = {
        0,        -0.0,      1,       -1,       0.1,    1.0 / 3,   2.0 / 3,
        1e-5,     1e-4,      0.00012, 123456,   999999, 1234567,   1e6,
        999999.5, 1e15,      1e17,    1e21,     1e100,  -2.5e-300, 1.7976931348623157e308,
        INFINITY, -INFINITY, 1e-7,    12345.678};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        SAME("%g|%.3g|%12g|%-12g|%+g|%.9g", some[i], some[i], some[i], some[i], some[i], some[i]);
    }
    uint64_t x = 1;
    for (int i = 0; i < 200000; i++) {
        double y;
        x = x * 6364136223846793005u + 1442695040888963407u;
        memcpy(&y, &x, sizeof y);
        if (!isnormal(y)) { continue; } // of others the fewest digits are fewer
        char want[40], got[40];
        crdi_snprintf(got, sizeof got, "%.17g", y); // the fewest digits that read back
        check(strtod(got, NULL) == y);
        snprintf(want, sizeof want, "%g", y);
        crdi_snprintf(got, sizeof got, "%g", y);
        assert_string_equal(got, want);
    }
    SAME("%d %u %5d|%-5d|%05d %x %X %c %s %.3s %8s|%-8s| %%", -12, 34u, 7, 7, -7, 255u, 255u, 'c',
         "text", "text", "text", "text");
    SAME("%lld %llu %zu %04llX %02X %ld %i", -1LL, 18446744073709551615ULL, (size_t)77, 255ULL, 7u,
         -9L, 3);
    SAME("%*d %.*s %.*g", 6, 42, 2, "abc", 4, 3.14159265);
    char small[8];
    check_int(crdi_snprintf(small, sizeof small, "%s", "longer than that"), 16);
    assert_string_equal(small, "longer ");
    check_int(crdi_snprintf(NULL, 0, "%d", 12345), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_port_says_what_it_lacks),
        cmocka_unit_test(memory_is_what_it_was_given_and_is_sealed),
        cmocka_unit_test(a_slave_answers_and_long_datagrams_are_refused),
        cmocka_unit_test(a_clock_that_stops_in_the_run_is_a_fault),
        cmocka_unit_test(a_port_without_a_network_serves_nothing),
        cmocka_unit_test(texts_are_formatted_as_by_the_c_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
