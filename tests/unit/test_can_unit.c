// A unit on a CAN bus of this host, with a scripted partner at its other end.
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "shared/system.h"
#include "shared/wire_can.h"
#include "unit/wire/wire_unit.h"
#include "unit_test.h"
#include "wire_rig.h"

static const double H = 0.002;
static const char dbc[] = "VERSION \"\"\n"
                          "BU_: Drive Gateway\n"
                          "BO_ 100 Set: 8 Gateway\n"
                          " SG_ Ref : 0|16@1- (0.1,0) [-300|300] \"1/min\" Drive\n"
                          " SG_ Count : 48|4@1+ (1,0) [0|15] \"\" Drive\n"
                          " SG_ Crc : 56|8@1+ (1,0) [0|255] \"\" Drive\n"
                          "BO_ 101 Actual: 8 Drive\n"
                          " SG_ Speed : 7|16@0- (0.1,0) [0|0] \"1/min\" Gateway\n"
                          " SG_ Count : 48|4@1+ (1,0) [0|15] \"\" Gateway\n"
                          " SG_ Crc : 56|8@1+ (1,0) [0|255] \"\" Gateway\n"
                          "BO_ 102 Rest: 2 Drive\n"
                          " SG_ Heat : 0|8@1+ (1,-40) [0|0] \"degC\" Gateway\n"
                          "BO_ 103 Long: 100 Drive\n"
                          " SG_ Text : 0|8@1+ (1,0) [0|0] \"\" Gateway\n"
                          "BA_DEF_ BO_ \"GenMsgCycleTime\" INT 0 10000;\n"
                          "BA_ \"GenMsgCycleTime\" BO_ 101 10;\n";
#define CHECKED "counter: Count, checksum: { field: Crc, type: crc8 } }"

typedef struct lab {
    check_allocator allocator;
    crd_context* ctx;
    crdi_can_bus* bus; // the partner's
    char name[64];
    wire_rig rig;
    crd_unit_spec spec;
    int count;       // of the partner's messages
    int came;        // messages Set
    uint8_t last[8]; // the newest of them
} lab;

static lab* lab_create(void)
{
    static const char path[] = TEST_BUILD_DIR "/can_unit.dbc";
    FILE* f = fopen(path, "wb");
    check(f && fwrite(dbc, 1, sizeof dbc - 1, f) == sizeof dbc - 1 && fclose(f) == 0);
    lab* w = calloc(1, sizeof *w);
    w->ctx = check_context(&w->allocator);
    snprintf(w->name, sizeof w->name, "udp://239.74.163.4:%d", 20000 + (int)getpid() % 20000);
    check_ok(crdi_can_bus_open(w->ctx, w->name, &w->bus));
    w->spec = crd_unit_spec_defaults();
    w->spec.name = "drive";
    w->spec.source = CRD_UNIT_CAN;
    w->spec.path = path;
    w->spec.address = w->name;
    w->spec.link.contact = 0;
    w->spec.link.timeout = 0;
    w->spec.send = (crd_message_list){"{ Set: { " CHECKED " }", {"x.yaml", 7}};
    w->spec.receive = (crd_message_list){"{ Actual: { " CHECKED ", Rest: }", {"x.yaml", 9}};
    return w;
}

static void lab_destroy(lab* w)
{
    wire_rig_end(&w->rig);
    crdi_can_bus_close(w->bus);
    crd_context_destroy(w->ctx);
    check_int(w->allocator.live, 0);
    free(w);
}

// SAE J1850, bit by bit.
static uint8_t crc8(const uint8_t* data, int count)
{
    unsigned crc = 0xFF;
    for (int i = 0; i < 8 * count; i++) {
        const unsigned bit = data[i / 8] >> (7 - i % 8) & 1;
        crc = (crc << 1 & 0xFF) ^ ((crc >> 7 ^ bit) ? 0x1D : 0);
    }
    return (uint8_t)(crc ^ 0xFF);
}

static void send(lab* w, uint32_t id, int length, const uint8_t* data)
{
    crdi_can_frame f = {.id = id, .length = (uint8_t)length};
    memcpy(f.data, data, (size_t)length);
    check(crdi_can_bus_send(w->bus, &f));
}

static void send_actual(lab* w, int tenths, int damage)
{
    uint8_t d[8] = {(uint8_t)(tenths >> 8), (uint8_t)tenths, [6] = (uint8_t)(w->count++ % 16)};
    d[7] = (uint8_t)(crc8(d, 7) ^ damage);
    send(w, 101, 8, d);
}

// What the unit has sent meanwhile, each message right and behind the one before.
static void take(lab* w)
{
    crdi_can_frame f;
    while (crdi_can_bus_receive(w->bus, &f)) {
        check_int(f.id, 100);
        check_int(f.length, 8);
        check_int(f.data[7], crc8(f.data, 7));
        if (w->came++) { check_int(f.data[6], (w->last[6] + 1) % 16); }
        memcpy(w->last, f.data, 8);
    }
}

static void begin(lab* w)
{
    static const char* const outputs[] = {"Actual.Speed", "Rest.Heat"};
    check_ok(crd_unit_create(w->ctx, &w->spec, &w->rig.unit));
    check_int(w->rig.unit->info.variable_count, 3); // counters and checksums are nobody's business
    wire_rig_begin(&w->rig, "Set.Ref", outputs, H);
    take(w);
    w->count = 5;
}

static void advance(lab* w, int k, double input, double out[2])
{
    check_ok(wire_rig_step(&w->rig, k * H, H, input, out));
    take(w);
}

static void messages_come_and_go(void** state)
{
    (void)state;
    lab* w = lab_create();
    double y[2];
    begin(w);
    const int before = w->came;
    for (int k = 0; k < 40; k++) {
        send_actual(w, -3 * k, 0);
        send(w, 102, 2, (const uint8_t[]){(uint8_t)(40 + k), 0});
        send(w, 500, 1, (const uint8_t[]){1}); // others talk, too
        advance(w, k, 1.5 * k, y);
        check_near(y[0], -0.3 * k, 1e-9);
        check_near(y[1], k, 0);
        check_int((int16_t)(w->last[0] | w->last[1] << 8), 15 * k);
    }
    check_int(w->came - before, 40); // no cycle is known: with every step
    const crd_link_stats l = wire_rig_stats(&w->rig);
    check_int(l.in, 80);
    check_int(l.out, 40);
    check_int(l.lost + l.bad + l.duplicates + l.reordered + l.foreign, 0);
    check(l.age_max >= 0);
    check_ok(w->rig.unit->ops->terminate(w->rig.unit));
    lab_destroy(w);
}

static void mistakes_do_not_act_and_are_counted(void** state)
{
    (void)state;
    lab* w = lab_create();
    double y[2];
    begin(w);
    send_actual(w, 10, 0);
    advance(w, 0, 1000, y);
    check_int((int16_t)(w->last[0] | w->last[1] << 8), 3000); // what the signal takes at most
    send_actual(w, 20, 1);                                    // damaged
    advance(w, 1, 0, y);
    check_near(y[0], 1, 1e-9);
    send_actual(w, 30, 0);
    w->count--; // the same number again
    send_actual(w, 40, 0);
    advance(w, 2, 0, y);
    check_near(y[0], 3, 1e-9);
    send(w, 101, 7, (const uint8_t[7]){0}); // too short
    w->count += 2;                          // one more is missing
    send_actual(w, 50, 0);
    // What only we send does not change what we send.
    send(w, 100, 8, (const uint8_t[8]){0xFF});
    advance(w, 3, 7, y);
    advance(w, 4, 7, y);
    check_near(y[0], 5, 1e-9);
    check_int(w->last[0], 70);
    const crd_link_stats l = wire_rig_stats(&w->rig);
    check_int(l.in, 3);
    check_int(l.bad, 2);
    check_int(l.duplicates, 1);
    check_int(l.lost, 1);
    check_int(l.foreign, 1);
    check_ok(w->rig.unit->ops->terminate(w->rig.unit));
    lab_destroy(w);
}

static void all_others_are_received_unless_said(void** state)
{
    (void)state;
    lab* w = lab_create();
    w->spec.send.text = "[Set]";
    w->spec.receive.text = NULL;
    check_ok(crd_unit_create(w->ctx, &w->spec, &w->rig.unit));
    check(w->rig.unit->ops->find(w->rig.unit, "Rest.Heat") >= 0);
    check(w->rig.unit->ops->find(w->rig.unit, "Actual.Count") >= 0); // nothing says that it counts
    check_int(w->rig.unit->ops->find(w->rig.unit, "Long.Text"), -1); // no frame
    check_near(w->rig.unit->info.step, 0.01, 0); // the cycle of Actual in the DBC file
    crd_unit_destroy(w->rig.unit);
    w->spec.send.text = NULL;
    check_ok(crd_unit_create(w->ctx, &w->spec, &w->rig.unit));
    check_int(w->rig.unit->info.variables[w->rig.unit->ops->find(w->rig.unit, "Set.Ref")].causality,
              CRD_OUTPUT);
    lab_destroy(w);
}

static void nobody_there_is_told_by_name(void** state)
{
    (void)state;
    lab* w = lab_create();
    const crd_experiment e = {.start = 0};
    w->spec.link.contact = 0.02;
    check_ok(crd_unit_create(w->ctx, &w->spec, &w->rig.unit));
    check_ok(crd_unit_instantiate(w->rig.unit));
    check_status(w->rig.unit->ops->enter_initialization(w->rig.unit, &e), CRD_E_UNIT);
    check_contains(crd_error_text(w->rig.unit->ctx), "no valid message 'Actual' from udp://239");
    lab_destroy(w);
}

static void what_is_wrong_is_told_with_its_line(void** state)
{
    (void)state;
    static const struct {
        const char *send, *receive, *says;
    } rows[] = {
        {"[Set,\n Sett]", NULL, "x.yaml:8: units.drive.send: 'Sett', expected a message of"},
        {"[Actual]", "[Rest,\nActual]", "x.yaml:10: units.drive.receive: Actual is sent already"},
        {"[Set, Set]", NULL, "Set is sent already (line 7)"},
        {"[Set]", "Long", "Long has 100 bytes, expected a message that is one frame"},
        {"{ Set: { counter: Counter } }", NULL, "send.Set.counter: 'Counter', expected a field"},
        {"{ Set:\n { counter: Ref } }", NULL, "x.yaml:8: Set: Ref cannot be the counter"},
        {"{ Set: { checksum: { field: Crc, type: crc16 } } }", NULL, "x.yaml:7: Set: Crc cannot"},
        {"{ Set: { checksum: { field: Crc, type: crc9 } } }", NULL, "'crc9' is not known"},
        {"{ Set: { cycle: 0 ms } }", NULL, "send.Set.cycle: '0 ms'"},
        {"{ Set: { period: 1 ms } }", NULL, "unknown key 'period'"},
        {"{ Set: 3 }", NULL, "x.yaml:7: units.drive.send.Set: "},
        {"[[Set]]", NULL, "x.yaml:7: units.drive.send: "},
        {NULL, "[]", "no message to send or receive"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        lab* w = lab_create();
        w->spec.send.text = rows[i].send;
        w->spec.receive.text = rows[i].receive;
        check(crd_unit_create(w->ctx, &w->spec, &w->rig.unit) < 0);
        check_contains(crd_error_text(w->ctx), rows[i].says);
        lab_destroy(w);
    }
    lab* w = lab_create();
    w->spec.link.local = "udp://127.0.0.1:5000";
    check(crd_unit_create(w->ctx, &w->spec, &w->rig.unit) < 0);
    check_contains(crd_error_text(w->ctx), "link.local means nothing on a CAN bus");
    lab_destroy(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_come_and_go),
        cmocka_unit_test(mistakes_do_not_act_and_are_counted),
        cmocka_unit_test(all_others_are_received_unless_said),
        cmocka_unit_test(nobody_there_is_told_by_name),
        cmocka_unit_test(what_is_wrong_is_told_with_its_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
