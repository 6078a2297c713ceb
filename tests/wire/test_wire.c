// Messages: what is refused, multiplexing, limits, counters and checksums. Bits and CRCs have
// peer_codec.py.
#include "check.h"
#include "shared/wire.h"

enum { MOST = 8 };

typedef struct rig {
    crd_context* ctx;
    crdi_wire_field fields[MOST];
    crdi_wire_message messages[2];
    crdi_wire_catalog catalog;
    uint8_t data[64 + CRDI_WIRE_PAD];
} rig;

// A message of 8 bytes: counter (4 bits), mode, speed, torque big-endian, checksum.
static void set_up(rig* r)
{
    *r = (rig){0};
    r->ctx = crd_context_create(NULL);
    check(r->ctx != NULL);
    const struct {
        const char* name;
        int start, length;
        bool big;
        crdi_wire_type type;
        double factor;
    } rows[] = {{"count", 0, 4, false, CRDI_WIRE_UNSIGNED, 1},
                {"mode", 4, 4, false, CRDI_WIRE_UNSIGNED, 1},
                {"speed", 8, 16, false, CRDI_WIRE_UNSIGNED, 0.5},
                {"torque", 31, 16, true, CRDI_WIRE_SIGNED, 0.1},
                {"check", 56, 8, false, CRDI_WIRE_UNSIGNED, 1}};
    for (int i = 0; i < 5; i++) {
        crdi_wire_field* f = &r->fields[i];
        *f = crdi_wire_field_init();
        f->name = rows[i].name, f->start = rows[i].start, f->length = rows[i].length;
        f->big = rows[i].big, f->type = rows[i].type, f->factor = rows[i].factor;
        f->line = 10 + i;
    }
    crdi_wire_message* m = &r->messages[0];
    *m = crdi_wire_message_init();
    m->name = "drive", m->length = 8, m->fields = r->fields, m->field_count = 5, m->line = 9;
    m->counter.field = 0;
    crdi_wire_checksum_init(&m->checksum, CRDI_WIRE_CRC8);
    m->checksum.field = 4;
    r->catalog = (crdi_wire_catalog){"a.yaml", r->messages, 1, crdi_wire_field_init()};
}

static void tear_down(rig* r)
{
    crd_context_destroy(r->ctx);
}

static void check_refused(rig* r, const char* what)
{
    check_status(crdi_wire_prepare(r->ctx, &r->catalog), CRD_E_FORMAT);
    check_contains(crd_error_text(r->ctx), what);
    tear_down(r);
}

static void bad_catalogs_are_refused_by_name(void** state)
{
    (void)state;
    rig r;
    set_up(&r), r.fields[2].start = 6;
    check_refused(&r, "a.yaml:12: drive: speed (from bit 6, 16 bits) overlaps mode (from bit 4, 4 "
                      "bits, line 11)");
    set_up(&r), r.fields[3].start = 55; // bit 7 of byte 6: two bytes, the second is the checksum's
    check_refused(&r, "overlaps torque");
    set_up(&r), r.fields[3].start = 63;
    check_refused(&r, "a.yaml:13: drive: torque ends at bit 71 behind the end, expected it inside "
                      "of the 64 bits (8 bytes)");
    set_up(&r), r.fields[2].length = 65;
    check_refused(&r, "speed has 65 bits, expected 1 to 64");
    set_up(&r), r.fields[2].type = CRDI_WIRE_FLOAT32;
    check_refused(&r, "speed has 16 bits, expected 32");
    set_up(&r), r.fields[2].factor = 0;
    check_refused(&r, "factor 0");
    set_up(&r), r.fields[2].min = 2, r.fields[2].max = 1;
    check_refused(&r, "limits 2 to 1");
    set_up(&r), r.fields[2].name = "mode";
    check_refused(&r, "two fields are called mode");
    set_up(&r), r.messages[0].counter.modulus = 17;
    check_refused(&r, "modulus 17 and step 1, expected a modulus of 2 to 16");
    set_up(&r), r.messages[0].counter.field = 3;
    check_refused(&r, "torque cannot be the counter");
    set_up(&r), r.messages[0].checksum.field = 2;
    check_refused(&r, "speed cannot be the checksum crc8, expected an unsigned field of 8 bits");
    set_up(&r), r.messages[0].checksum.count = 9;
    check_refused(&r, "over 9 bytes from byte 0 on");
    set_up(&r), r.messages[0].checksum.data_ids = 2, r.messages[0].checksum.data_id_bytes = 1;
    check_refused(&r, "2 data ids");
    set_up(&r), r.fields[2].selector = 2;
    check_refused(&r, "speed is selected by speed");
    set_up(&r), r.messages[0].length = 70000;
    check_refused(&r, "70000 bytes");
    set_up(&r), r.messages[1] = r.messages[0], r.catalog.message_count = 2;
    check_refused(&r, "two messages are called drive");
    set_up(&r), r.messages[1] = r.messages[0], r.catalog.message_count = 2;
    r.messages[1].name = "other", r.messages[1].line = 30;
    check_refused(&r, "a.yaml:30: other has the id 0x0 of drive (line 9)");
    set_up(&r), r.catalog.kind.length = 8, r.catalog.kind.name = "kind";
    check_refused(&r, "count overlaps the kind of the message");
}

static void selectors_let_fields_share_bits(void** state)
{
    (void)state;
    const crdi_wire_range one = {1, 1}, some = {2, 5};
    rig r;
    set_up(&r);
    for (int i = 2; i <= 3; i++) { // both in the same 16 bits
        r.fields[i].start = i == 2 ? 8 : 15, r.fields[i].selector = 1;
        r.fields[i].selected_by = i == 2 ? &one : &some, r.fields[i].selected_by_count = 1;
    }
    check_ok(crdi_wire_prepare(r.ctx, &r.catalog));
    const crdi_wire_message* m = &r.messages[0];
    double out[MOST] = {-1, -1, -1, -1, -1};
    check_int(crdi_wire_encode(m, (double[]){0, 1, 100, -7, 0}, r.data), 0);
    check_int(r.data[1], 200);
    crdi_wire_decode(m, r.data, out);
    check_near(out[2], 100, 0);
    check_near(out[3], -1, 0); // not there: it stays
    check_int(crdi_wire_encode(m, (double[]){0, 4, 100, -7, 0}, r.data), 0);
    crdi_wire_decode(m, r.data, out);
    check_near(out[2], 100, 0);
    check_near(out[3], -7, 1e-12);
    r.fields[3].selected_by = &one;
    check_refused(&r, "overlaps");
}

static void values_out_of_range_are_limited_and_counted(void** state)
{
    (void)state;
    rig r;
    set_up(&r);
    r.fields[3].max = 50, r.fields[2].initial = 3;
    check_ok(crdi_wire_prepare(r.ctx, &r.catalog));
    const crdi_wire_message* m = &r.messages[0];
    double out[MOST] = {0};
    check_int(crdi_wire_encode(m, (double[]){0, 16, NAN, 1e9, 0}, r.data), 3);
    crdi_wire_decode(m, r.data, out);
    check_near(out[1], 15, 0);
    check_near(out[2], 3, 0);
    check_near(out[3], 50, 1e-12);
    check_int(crdi_wire_encode(m, (double[]){0, 0, -1, -INFINITY, 0}, r.data), 2);
    crdi_wire_decode(m, r.data, out);
    check_near(out[2], 0, 0);
    check_near(out[3], -3276.8, 1e-9);
    tear_down(&r);
}

static crdi_wire_verdict with_counter(rig* r, crdi_wire_state* s, unsigned counter)
{
    const crdi_wire_message* m = &r->messages[0];
    crdi_wire_put_raw(&m->fields[0], r->data, counter);
    crdi_wire_put_raw(&m->fields[4], r->data, crdi_wire_checksum_of(m, r->data));
    return crdi_wire_judge(m, s, r->data, 8);
}

static void mistakes_are_found_and_counted(void** state)
{
    (void)state;
    rig r;
    set_up(&r);
    r.messages[0].counter.modulus = 15;
    check_ok(crdi_wire_prepare(r.ctx, &r.catalog));
    const crdi_wire_message* m = &r.messages[0];
    crdi_wire_state sent = {0}, s = {0};
    for (int i = 0; i < 40; i++) {
        (void)crdi_wire_encode(m, (double[]){0, 3, i, -i, 0}, r.data);
        crdi_wire_seal(m, &sent, r.data);
        check_int(crdi_wire_get_raw(&m->fields[0], r.data), i % 15);
        check_int(crdi_wire_judge(m, &s, r.data, 8), CRDI_WIRE_GOOD);
    }
    check_int(s.good, 40);
    check_int(crdi_wire_judge(m, &s, r.data, 7), CRDI_WIRE_LENGTH);
    for (int bit = 0; bit < 64; bit++) { // a CRC finds every single bit
        r.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        check_int(crdi_wire_judge(m, &s, r.data, 8), CRDI_WIRE_CHECKSUM);
        r.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    check_int(with_counter(&r, &s, 15), CRDI_WIRE_COUNTER); // no value of this counter
    for (int i = 0; i < 5; i++) {
        check_int(with_counter(&r, &s, 39 % 15), CRDI_WIRE_REPEATED);
    }
    check_int(with_counter(&r, &s, 43 % 15), CRDI_WIRE_GOOD);
    check_int(s.length, 1);
    check_int(s.checksum, 64);
    check_int(s.counter, 1);
    check_int(s.repeated, 5);
    check_int(s.stuck, 1);
    check_int(s.missing, 3);
    check_int(s.good, 41);
    tear_down(&r);
}

static void old_messages_are_not_taken_but_a_new_start_is(void** state)
{
    (void)state;
    rig r;
    set_up(&r);
    check_ok(crdi_wire_prepare(r.ctx, &r.catalog));
    crdi_wire_state s = {0};
    check_int(with_counter(&r, &s, 9), CRDI_WIRE_GOOD);
    check_int(with_counter(&r, &s, 12), CRDI_WIRE_GOOD); // 10 and 11 come later
    check_int(with_counter(&r, &s, 10), CRDI_WIRE_OLD);
    check_int(with_counter(&r, &s, 11), CRDI_WIRE_OLD);
    check_int(with_counter(&r, &s, 13), CRDI_WIRE_GOOD);
    check_int(s.old, 2);
    check_int(s.restarts, 0);
    for (unsigned i = 6; i < 8; i++) { // the partner has begun anew at 6
        check_int(with_counter(&r, &s, i), CRDI_WIRE_OLD);
    }
    check_int(with_counter(&r, &s, 8), CRDI_WIRE_GOOD);
    check_int(with_counter(&r, &s, 9), CRDI_WIRE_GOOD);
    check_int(s.restarts, 1);
    tear_down(&r);
}

// Profiles of AUTOSAR: two bytes of data id in front of the others (1), one of 16 behind them (2).
static void data_ids_belong_to_the_checksum(void** state)
{
    (void)state;
    rig r;
    set_up(&r);
    crdi_wire_checksum* c = &r.messages[0].checksum;
    c->data_ids = 1, c->data_id[0] = 0x3231, c->data_id_bytes = 2; // "12"
    check_ok(crdi_wire_prepare(r.ctx, &r.catalog));
    memcpy(r.data, "3456789", 7);
    check_int(crdi_wire_checksum_of(&r.messages[0], r.data), 0x4b); // of "123456789"
    c->data_ids = 16, c->data_id_bytes = 1, c->data_id_last = true;
    c->first = 3, c->count = 4; // "6789", with the counter's half of '3' as index
    c->data_id[3] = '5';
    const uint32_t behind = crdi_wire_checksum_of(&r.messages[0], r.data);
    c->data_ids = 0, c->first = 1, c->count = 5;
    memcpy(r.data + 1, "67895", 5);
    check_int(behind, crdi_wire_checksum_of(&r.messages[0], r.data));
    tear_down(&r);
}

static void datagrams_are_told_apart_by_their_kind(void** state)
{
    (void)state;
    rig r;
    set_up(&r);
    crdi_wire_field other = r.fields[2];
    r.fields[0].start = 40, r.fields[1].start = 44;
    r.catalog.kind.length = 8, r.catalog.kind.name = "kind", r.catalog.message_count = 2;
    r.messages[1] = crdi_wire_message_init();
    r.messages[1].name = "other", r.messages[1].id = 7, r.messages[1].length = 3;
    r.messages[1].fields = &other, r.messages[1].field_count = 1;
    check_ok(crdi_wire_prepare(r.ctx, &r.catalog));
    check(crdi_wire_recognise(&r.catalog, r.data, 8) == &r.messages[0]);
    r.data[0] = 7;
    check(crdi_wire_recognise(&r.catalog, r.data, 3) == &r.messages[1]);
    check(crdi_wire_recognise(&r.catalog, r.data, 0) == NULL);
    r.data[0] = 8;
    check(crdi_wire_recognise(&r.catalog, r.data, 8) == NULL);
    tear_down(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_catalogs_are_refused_by_name),
        cmocka_unit_test(selectors_let_fields_share_bits),
        cmocka_unit_test(values_out_of_range_are_limited_and_counted),
        cmocka_unit_test(mistakes_are_found_and_counted),
        cmocka_unit_test(old_messages_are_not_taken_but_a_new_start_is),
        cmocka_unit_test(data_ids_belong_to_the_checksum),
        cmocka_unit_test(datagrams_are_told_apart_by_their_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
