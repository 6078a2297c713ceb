// A unit of datagrams on a network in memory with a virtual clock: cycles, ages, mistakes, a
// partner that vanishes, and one that a stand-in steps in for.
#include <math.h>
#include <stdio.h>

#include "shared/system.h"
#include "shared/wire.h"
#include "unit_test.h"
#include "virtual_clock.h"
#include "wire_rig.h"

static const double H = 0.01;
static const char layout[] =
    "layout: 1\n"
    "kind: { at: 0, type: uint8 }\n"
    "messages:\n"
    "  set: { direction: send, id: 1, cycle: 5 ms, counter: n,\n"
    "         fields: { n: { at: 1, type: uint8 },\n"
    "                   u: { type: int16, scale: 0.5, max: 100 } } }\n"
    "  fast: { direction: receive, id: 2, cycle: 10 ms, counter: n,\n"
    "          checksum: { field: c, type: xor8 },\n"
    "          fields: { n: { at: 1, type: uint8 }, y: { type: float64 },\n"
    "                    c: { type: uint8 } } }\n"
    "  slow: { direction: receive, id: 3, cycle: 50 ms,\n"
    "          fields: { z: { at: 1, type: uint16, scale: 0.1 } } }\n";

typedef struct lab {
    check_allocator allocator;
    crd_context* ctx;
    testnet* network;
    crd_dcp_net* net; // the partner's
    crd_arena arena;
    crdi_wire_catalog catalog;
    crdi_wire_state sent;
    wire_rig rig;
    crd_unit_spec spec, model;
    int64_t received;
    double u[64]; // set values that came
    uint64_t n[64];
} lab;

static lab* lab_create(void)
{
    static const char path[] = TEST_BUILD_DIR "/wire_unit.layout.yaml";
    FILE* f = fopen(path, "wb");
    check(f && fwrite(layout, 1, sizeof layout - 1, f) == sizeof layout - 1 && fclose(f) == 0);
    lab* w = calloc(1, sizeof *w);
    w->ctx = check_context(&w->allocator);
    w->network = virtual_begin(w->ctx);
    check_ok(testnet_join(w->network, HOST, &w->net));
    crd_dcp_address at = {HOST, 5001, CRD_DCP_UDP};
    check_ok(crd_dcp_net_listen(w->net, &at));
    crd_arena_init(&w->arena, w->ctx);
    check_ok(crdi_layout_load(w->ctx, path, &w->arena, &w->catalog));
    w->spec = crd_unit_spec_defaults();
    w->spec.name = "drive";
    w->spec.source = CRD_UNIT_FRAMES;
    w->spec.path = path;
    w->spec.address = "udp://127.0.0.1:5001";
    w->spec.link.local = "udp://127.0.0.1:5000";
    w->spec.link.contact = 0;
    return w;
}

static void lab_destroy(lab* w)
{
    wire_rig_end(&w->rig);
    crd_arena_clear(&w->arena);
    crd_dcp_net_destroy(w->net);
    virtual_end();
    crd_context_destroy(w->ctx);
    check_int(w->allocator.live, 0);
    free(w);
}

static void send_bytes(lab* w, const uint8_t* bytes, size_t length)
{
    const crd_dcp_address to = {HOST, 5000, CRD_DCP_UDP};
    check(crdi_dcp_net_send(w->net, &to, bytes, length));
}

static void send_fast(lab* w, double y, int damage)
{
    uint8_t data[64 + CRDI_WIRE_PAD] = {0};
    const crdi_wire_message* m = &w->catalog.messages[1];
    (void)crdi_wire_encode(m, (double[]){0, y, 0}, data);
    data[0] = 2;
    crdi_wire_seal(m, &w->sent, data);
    data[5] ^= (uint8_t)damage;
    send_bytes(w, data, (size_t)m->length);
}

static void send_slow(lab* w, double z)
{
    const uint16_t raw = (uint16_t)lround(10 * z);
    const uint8_t data[3] = {3, (uint8_t)raw, (uint8_t)(raw >> 8)};
    send_bytes(w, data, 3);
}

// What the unit has sent meanwhile.
static void take(lab* w)
{
    crd_dcp_packet p;
    while (crd_dcp_net_receive(w->net, &p)) {
        check_int(p.length, 4);
        check_int(p.bytes[0], 1);
        w->n[w->received % 64] = p.bytes[1];
        w->u[w->received++ % 64] = 0.5 * (int16_t)(p.bytes[2] | p.bytes[3] << 8);
    }
}

static void begin(lab* w)
{
    static const char* const outputs[] = {"fast.y", "slow.z"};
    check_int(w->rig.unit->ops->find(w->rig.unit, "set.n"), -1); // nobody's business
    wire_rig_begin(&w->rig, "set.u", outputs, H);
}

static crd_status advance(lab* w, int k, double input, double out[2])
{
    const crd_status st = wire_rig_step(&w->rig, k * H, H, input, out);
    take(w);
    return st;
}

static void messages_come_and_go_in_their_cycles(void** state)
{
    (void)state;
    lab* w = lab_create();
    double y[2];
    check_ok(crd_unit_create(w->ctx, &w->spec, &w->rig.unit));
    check_int(w->rig.unit->info.variable_count, 3);
    begin(w);
    (void)testnet_advance(w->network,
                          testnet_now(w->network) + 2e-3); // with what called the partner
    take(w);
    const int64_t before = w->received;
    const double start = testnet_now(w->network);
    for (int k = 0; k < 20; k++) {
        send_fast(w, 1.5 * k, 0);
        if (k % 5 == 0) { send_slow(w, 0.1 * k); }
        check_ok(advance(w, k, k, y));
        check_near(y[0], 1.5 * k, 0);
        check_near(y[1], 0.1 * (k - k % 5), 1e-9);
        check_near(testnet_now(w->network) - start, (k + 1) * H, 1e-6); // its time is the real one
    }
    (void)testnet_advance(w->network, start + 20 * H + 2e-3);
    take(w);
    check_int(w->received - before, 40); // every 5 ms, twice in a step
    check_int(wire_rig_stats(&w->rig).out, 40);
    check_near(w->u[(w->received - 1) % 64], 19, 0);
    for (int64_t i = before + 1; i < w->received; i++) {
        check_int(w->n[i % 64], (w->n[(i - 1) % 64] + 1) % 256);
    }
    const crd_link_stats l = wire_rig_stats(&w->rig);
    check_int(l.in, 24);
    check_int(l.lost + l.bad + l.duplicates + l.reordered + l.late, 0);
    check_near(l.age_max, 9e-3, 1e-6); // arrived 1 ms behind the beginning of each step
    check_ok(w->rig.unit->ops->terminate(w->rig.unit));
    lab_destroy(w);
}

static void mistakes_do_not_act_and_are_counted(void** state)
{
    (void)state;
    lab* w = lab_create();
    double y[2];
    check_ok(crd_unit_create(w->ctx, &w->spec, &w->rig.unit));
    begin(w);
    send_fast(w, 1, 0);
    check_ok(advance(w, 0, 300, y));
    send_fast(w, 2, 0x80); // damaged
    check_ok(advance(w, 1, 0, y));
    check_near(y[0], 1, 0);
    const crdi_wire_state was = w->sent;
    send_fast(w, 3, 0);
    w->sent = was; // the same number again
    send_fast(w, 4, 0);
    check_ok(advance(w, 2, 0, y));
    check_near(y[0], 3, 0);
    send_bytes(w, (const uint8_t[]){2, 0, 0}, 3); // too short
    send_bytes(w, (const uint8_t[]){9, 0, 0}, 3); // nobody's
    w->sent.last += 2;                            // two are missing
    send_fast(w, 5, 0);
    check_ok(advance(w, 3, 0, y));
    check_near(y[0], 5, 0);
    const crd_link_stats l = wire_rig_stats(&w->rig);
    check_int(l.in, 3);
    check_int(l.bad, 3);
    check_int(l.duplicates, 1);
    check_int(l.lost, 1);        // of the three that were skipped two came, damaged and too short
    check_near(w->u[1], 100, 0); // what the field takes at most
    check_ok(w->rig.unit->ops->terminate(w->rig.unit));
    lab_destroy(w);
}

static void a_partner_that_vanishes_ends_the_run_by_name(void** state)
{
    (void)state;
    lab* w = lab_create();
    double y[2];
    w->spec.link.timeout = 0.1;
    check_ok(crd_unit_create(w->ctx, &w->spec, &w->rig.unit));
    begin(w);
    int k = 0;
    crd_status st = CRD_OK;
    for (; k < 100 && st >= 0; k++) {
        if (k < 10) { send_fast(w, k, 0); }
        send_slow(w, 0);
        st = advance(w, k, 0, y);
    }
    check_status(st, CRD_E_UNIT);
    // The last came at 91 ms, so that the cycle and the 100 ms are over behind 201 ms.
    check_int(k, 21);
    check_contains(crd_error_text(w->rig.unit->ctx),
                   "no valid message 'fast' from udp://127.0.0.1:5001");
    check_contains(crd_error_text(w->rig.unit->ctx), "link.timeout");
    check_ok(w->rig.unit->ops->terminate(w->rig.unit));
    lab_destroy(w);
}

static void nobody_there_is_told_at_the_start(void** state)
{
    (void)state;
    lab* w = lab_create();
    const crd_experiment e = {.start = 0};
    w->spec.link.contact = 0.25;
    check_ok(crd_unit_create(w->ctx, &w->spec, &w->rig.unit));
    check_ok(crd_unit_instantiate(w->rig.unit));
    const double start = testnet_now(w->network);
    check_status(w->rig.unit->ops->enter_initialization(w->rig.unit, &e), CRD_E_UNIT);
    check_near(testnet_now(w->network) - start, 0.25, 1e-6);
    check_contains(crd_error_text(w->rig.unit->ctx), "'fast'");
    check_contains(crd_error_text(w->rig.unit->ctx), "0.25 s");
    take(w);
    check_int(w->received, 50); // called from 0 on every 5 ms; that of 250 ms is still on its way
    lab_destroy(w);
}

// A model that says -1.
static const crd_signal_spec minus[] = {{.name = "fast.y", .amplitude = -1, .unit = ""},
                                        {.name = "slow.z", .amplitude = -1, .unit = ""}};

static void stand_in(lab* w)
{
    w->model = crd_unit_spec_defaults();
    w->model.source = CRD_UNIT_SIGNAL;
    w->model.signals = minus;
    w->model.signal_count = 2;
    w->spec.standby =
        (crd_standby_spec){.model = &w->model, .after = 0.03, .fade = 1e-3, .rejoin = true};
}

static void a_stand_in_takes_over_and_gives_back(void** state)
{
    (void)state;
    lab* w = lab_create();
    double y[2];
    stand_in(w);
    w->spec.link.timeout = 0; // it may be away for as long as it likes
    check_ok(crd_unit_create(w->ctx, &w->spec, &w->rig.unit));
    begin(w);
    for (int k = 0; k < 300; k++) {
        const bool there = k < 20 || k >= 60;
        if (there) { send_fast(w, 7, k >= 20 && k < 100 ? 1 : 0); } // back, but damaged at first
        if (there) { send_slow(w, 7); }
        check_ok(advance(w, k, 0, y));
        if (k < 20) { check_near(y[0], 7, 1e-9); }
        if (k >= 40 && k < 100) { check_near(y[0], -1, 1e-9); }
    }
    check_near(y[0], 7, 1e-9);
    crd_standby_stats s;
    check(crd_unit_get_standby(w->rig.unit, &s));
    check_int(s.takeovers, 1);
    check_int(s.returns, 1);
    check_int(wire_rig_stats(&w->rig).bad, 40);
    check_ok(w->rig.unit->ops->terminate(w->rig.unit));
    lab_destroy(w);
}

// Its first step is later than the time from which the grid of the run is known.
static void a_late_comer_goes_on_with_the_grid_of_the_run(void** state)
{
    (void)state;
    lab* w = lab_create();
    double y[2];
    check_ok(crd_unit_create(w->ctx, &w->spec, &w->rig.unit));
    begin(w);
    w->rig.unit->origin = virtual_now() - 500000000; // of 0 s
    const double start = testnet_now(w->network);
    for (int k = 50; k < 60; k++) {
        check_ok(advance(w, k, 0, y));
        check_near(testnet_now(w->network) - start, (k - 49) * H, 1e-6);
    }
    (void)testnet_advance(w->network, start + 10 * H + 2e-3);
    take(w);
    check_int(wire_rig_stats(&w->rig).out, 20);
    check_ok(w->rig.unit->ops->terminate(w->rig.unit));
    lab_destroy(w);
}

static void a_failed_one_is_brought_up_again(void** state)
{
    (void)state;
    lab* w = lab_create();
    double y[2];
    stand_in(w);
    w->spec.link.timeout = 0.1;
    w->spec.link.contact = 0.05;
    check_ok(crd_unit_create(w->ctx, &w->spec, &w->rig.unit));
    crdi_standby* s = (crdi_standby*)w->rig.unit;
    send_fast(w, 7, 0);
    send_slow(w, 7);
    begin(w);
    const double start = testnet_now(w->network);
    for (int k = 0; k < 300; k++) {
        const bool there = k < 20 || k >= 60;
        if (there) { send_fast(w, 7, 0); }
        if (there) { send_slow(w, 7); }
        if (k == 50) { // as the attendant does
            check_status(crdi_standby_bring_up(s), CRD_E_UNIT);
            check_contains(crd_error_text(s->helper), "no valid message 'fast'");
        }
        if (k == 100) { check_ok(crdi_standby_bring_up(s)); }
        check_ok(advance(w, k, 0, y));
        if (k >= 40 && k < 100) { check_near(y[0], -1, 1e-9); }
    }
    check_near(y[0], 7, 1e-9);
    check_near(testnet_now(w->network) - start, 300 * H, 1e-6);
    crd_standby_stats n;
    check(crd_unit_get_standby(w->rig.unit, &n));
    check_int(n.takeovers, 1);
    check_int(n.returns, 1);
    check_int(wire_rig_stats(&w->rig).lost + wire_rig_stats(&w->rig).bad, 0);
    check_ok(w->rig.unit->ops->terminate(w->rig.unit));
    lab_destroy(w);
}

static void each_allocation_may_fail(void** state)
{
    (void)state;
    lab* w = lab_create();
    const crd_experiment e = {.start = 0};
    int64_t n = 0;
    for (bool done = false; !done; n++) {
        check_allocator allocator;
        crd_context* ctx = check_context(&allocator);
        crd_unit* u = NULL;
        allocator.fail_at = allocator.allocations + n;
        crd_status st = crd_unit_create(ctx, &w->spec, &u);
        if (st >= 0) {
            st = crd_unit_instantiate(u);
            if (st >= 0) { st = u->ops->enter_initialization(u, &e); }
            crd_unit_destroy(u);
        }
        done = st >= 0;
        if (!done) { check_status(st, CRD_E_MEMORY); }
        crd_context_destroy(ctx);
        check_int(allocator.live, 0);
        check(n < 2000);
    }
    check(n > 10);
    lab_destroy(w);
}

static void wrong_links_are_refused(void** state)
{
    (void)state;
    static const struct {
        const char *address, *local, *says;
        bool listen;
    } rows[] = {
        {"udp://127.0.0.1:0", NULL, "port 0", false},
        {"127.0.0.1:5001", NULL, "no transport", false},
        {"tcp://127.0.0.1:5001", "tcp://127.0.0.1:5000", "expected udp://", false},
        {"udp://127.0.0.1:5001", "udp://127.0.0.1:5000", "expected one of them", true},
        {"udp://10.0.0.1:5001", NULL, "plain: true", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        lab* w = lab_create();
        w->spec.address = rows[i].address;
        w->spec.link.local = rows[i].local;
        w->spec.link.listen = rows[i].listen;
        check(crd_unit_create(w->ctx, &w->spec, &w->rig.unit) < 0);
        check_contains(crd_error_text(w->ctx), rows[i].says);
        lab_destroy(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_come_and_go_in_their_cycles),
        cmocka_unit_test(mistakes_do_not_act_and_are_counted),
        cmocka_unit_test(a_partner_that_vanishes_ends_the_run_by_name),
        cmocka_unit_test(nobody_there_is_told_at_the_start),
        cmocka_unit_test(a_stand_in_takes_over_and_gives_back),
        cmocka_unit_test(a_late_comer_goes_on_with_the_grid_of_the_run),
        cmocka_unit_test(a_failed_one_is_brought_up_again),
        cmocka_unit_test(each_allocation_may_fail),
        cmocka_unit_test(wrong_links_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
