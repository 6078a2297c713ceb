// Values in payloads: bytes, conversions, bounds.
#include "check.h"

#include "shared/dcp.h"

#include <float.h>

// ---- slots -------------------------------------------------------------------------------------

static crd_dcp_slot reals(crd_dcp_data_type type, double* values, uint32_t count)
{
    return (crd_dcp_slot){.type = (uint8_t)type, .count = count, .real = values};
}

static crd_dcp_slot integers(crd_dcp_data_type type, int64_t* values, uint32_t count)
{
    return (crd_dcp_slot){.type = (uint8_t)type, .count = count, .integer = values};
}

typedef struct text {
    uint8_t bytes[16];
    uint32_t length;
} text;

static crd_dcp_slot text_slot(crd_dcp_data_type type, text* t, uint32_t max_size)
{
    return (crd_dcp_slot){.type = (uint8_t)type,
                          .count = 1,
                          .max_size = max_size,
                          .bytes = t->bytes,
                          .byte_count = &t->length};
}

static bool is_real(int type)
{
    return type == CRD_DCP_FLOAT32 || type == CRD_DCP_FLOAT64;
}

static size_t from_hex(const char* hex, uint8_t* out)
{
    size_t n = 0;
    for (; hex[2 * n]; n++) {
        const char digits[3] = {hex[2 * n], hex[2 * n + 1], 0};
        out[n] = (uint8_t)strtoul(digits, NULL, 16);
    }
    return n;
}

static void check_bytes(const uint8_t* got, size_t length, const char* hex)
{
    uint8_t want[256];
    check_int(length, from_hex(hex, want));
    for (size_t i = 0; i < length; i++) {
        if (got[i] != want[i]) { fail_msg("byte %zu is %02x, expected %s", i, got[i], hex); }
    }
}

// ---- bytes -------------------------------------------------------------------------------------

// The numbers are those of examples in the standard.
static void reference_values_have_their_bytes_both_ways(void** state)
{
    const struct {
        crd_dcp_data_type type;
        int64_t integer;
        double real;
        const char* hex;
    } rows[] = {
        {CRD_DCP_UINT8, 255, 0, "FF"},
        {CRD_DCP_INT8, -7, 0, "F9"},
        {CRD_DCP_UINT16, 7963, 0, "1B1F"},
        {CRD_DCP_UINT32, 335960, 0, "58200500"},
        {CRD_DCP_UINT32, UINT32_MAX, 0, "FFFFFFFF"},
        {CRD_DCP_INT16, -4963, 0, "9DEC"},
        {CRD_DCP_INT32, -89498498, 0, "7E5CAAFA"},
        {CRD_DCP_INT64, -8789498491988154686, 0, "C2E636B7B06D0586"},
        {CRD_DCP_INT64, INT64_MIN, 0, "0000000000000080"},
        {CRD_DCP_UINT64, -1, 0, "FFFFFFFFFFFFFFFF"}, // by its bits
        {CRD_DCP_FLOAT32, 0, 7256.2568359375, "0EC2E245"},
        {CRD_DCP_FLOAT64, 0, 46.428292315077009, "23315748D2364740"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t bytes[8];
        int64_t n = rows[i].integer;
        double x = rows[i].real;
        const uint8_t type = (uint8_t)rows[i].type;
        crd_dcp_slot s = is_real(type) ? reals(type, &x, 1) : integers(type, &n, 1);
        check_bytes(bytes, crdi_dcp_put(&s, 1, bytes, sizeof bytes), rows[i].hex);
        n = 0;
        x = 0;
        check_int(crdi_dcp_take(&s, &type, 1, bytes, crdi_dcp_size_of(type)), CRD_DCP_NONE);
        check_int(n, rows[i].integer);
        check(x == rows[i].real);
    }
}

static void strings_and_binaries_have_their_length_before_them(void** state)
{
    text a = {"beef", 4}, b = {{0x39, 0xE6, 0x29, 0xD2}, 4}, c = {"", 0};
    crd_dcp_slot slots[] = {text_slot(CRD_DCP_STRING, &a, 16), text_slot(CRD_DCP_BINARY, &b, 4),
                            text_slot(CRD_DCP_STRING, &c, 0)};
    const uint8_t types[] = {CRD_DCP_STRING, CRD_DCP_BINARY, CRD_DCP_STRING};
    uint8_t bytes[64];
    const size_t length = crdi_dcp_put(slots, 3, bytes, sizeof bytes);
    check_bytes(bytes, length, "04000000626565660400000039E629D200000000");
    a = b = c = (text){.length = 9};
    check_int(crdi_dcp_take(slots, types, 3, bytes, length), CRD_DCP_NONE);
    check(a.length == 4 && memcmp(a.bytes, "beef", 4) == 0);
    check(b.length == 4 && b.bytes[3] == 0xD2);
    check_int(c.length, 0);
}

static void a_group_of_all_kinds_is_read_as_it_was_captured(void** state)
{
    // the inputs of tests/dcp/golden/nrt_udp.txt
    const char* hex = "0000000000002840000000000000e03f04000000626565660400000039e629d2020000803f"
                      "0000004000004040";
    double torque = 0, load = 0, array[3] = {0};
    text name = {0}, blob = {0};
    int64_t mode = 0;
    crd_dcp_slot slots[] = {
        reals(CRD_DCP_FLOAT64, &torque, 1),   reals(CRD_DCP_FLOAT64, &load, 1),
        text_slot(CRD_DCP_STRING, &name, 16), text_slot(CRD_DCP_BINARY, &blob, 16),
        integers(CRD_DCP_UINT8, &mode, 1),    reals(CRD_DCP_FLOAT32, array, 3)};
    const uint8_t types[] = {9, 9, 10, 11, 0, 8};
    uint8_t bytes[64], again[64];
    const size_t length = from_hex(hex, bytes);
    check_int(crdi_dcp_take(slots, types, 6, bytes, length), CRD_DCP_NONE);
    check(torque == 12 && load == 0.5 && mode == 2);
    check(array[0] == 1 && array[1] == 2 && array[2] == 3);
    check(name.length == 4 && memcmp(name.bytes, "beef", 4) == 0);
    check(blob.length == 4 && blob.bytes[0] == 0x39);
    check_int(crdi_dcp_put(slots, 6, again, sizeof again), length);
    check(memcmp(again, bytes, length) == 0);
}

static void float32_is_the_nearest_to_the_double(void** state)
{
    double x[] = {0.1, 1 + 0x1p-24, 1 + 3 * 0x1p-24, 1e300, -1e300, 1e-60, -0.0, NAN, INFINITY};
    enum { N = sizeof x / sizeof *x };
    const double want[N] = {(double)0.1f, 1,   1 + 0x1p-22, INFINITY, -INFINITY, 0,
                            -0.0,         NAN, INFINITY};
    crd_dcp_slot s = reals(CRD_DCP_FLOAT32, x, N);
    const uint8_t type = CRD_DCP_FLOAT32;
    uint8_t bytes[4 * N];
    check_int(crdi_dcp_put(&s, 1, bytes, sizeof bytes), sizeof bytes);
    check_int(crdi_dcp_take(&s, &type, 1, bytes, sizeof bytes), CRD_DCP_NONE);
    for (int i = 0; i < N; i++) {
        check(x[i] == want[i] || (isnan(x[i]) && isnan(want[i])));
        check_int(signbit(x[i]) != 0, signbit(want[i]) != 0);
    }
}

// ---- conversions -------------------------------------------------------------------------------

// Rows: from, columns: to, in the order of crd_dcp_data_type.
static const char* const allowed[CRD_DCP_DATA_TYPE_COUNT] = {
    "XXXX.XXXXX..", // uint8
    ".XXX..XXXX..", // uint16
    "..XX...X.X..", // uint32
    "...X........", // uint64
    "....XXXXXX..", // int8
    ".....XXXXX..", // int16
    "......XX.X..", // int32
    ".......X....", // int64
    "........XX..", // float32
    ".........X..", // float64
    "..........X.", // string
    "...........X", // binary
};

static void conversions_are_those_that_lose_nothing(void** state)
{
    for (int from = 0; from < CRD_DCP_DATA_TYPE_COUNT; from++) {
        for (int to = 0; to < CRD_DCP_DATA_TYPE_COUNT; to++) {
            if (crdi_dcp_converts(from, to) != (allowed[from][to] == 'X')) {
                fail_msg("%s to %s: %d", crd_dcp_data_type_name(from), crd_dcp_data_type_name(to),
                         crdi_dcp_converts(from, to));
            }
        }
        check(!crdi_dcp_converts(from, CRD_DCP_DATA_TYPE_COUNT) && !crdi_dcp_converts(from, 255));
        check(!crdi_dcp_converts(CRD_DCP_DATA_TYPE_COUNT, from) && !crdi_dcp_converts(255, from));
    }
}

static void converted_numbers_keep_their_value(void** state)
{
    const int64_t low[] = {0, 0, 0, 0, INT8_MIN, INT16_MIN, INT32_MIN, INT64_MIN};
    const int64_t high[] = {UINT8_MAX, UINT16_MAX, UINT32_MAX, -1,
                            INT8_MAX,  INT16_MAX,  INT32_MAX,  INT64_MAX};
    int pairs = 0;
    for (int from = 0; from <= CRD_DCP_INT64; from++) {
        for (int to = 0; to <= CRD_DCP_FLOAT64; to++) {
            if (!crdi_dcp_converts(from, to)) { continue; }
            int64_t in[] = {low[from], high[from], 1}, out[3] = {99, 99, 99};
            double real[3] = {99, 99, 99};
            uint8_t bytes[24];
            const crd_dcp_slot source = integers(from, in, 3);
            // both pointers are there: the type decides
            const crd_dcp_slot target = {
                .type = (uint8_t)to, .count = 3, .real = real, .integer = out};
            const size_t length = crdi_dcp_put(&source, 1, bytes, sizeof bytes);
            const uint8_t type = (uint8_t)from;
            check_int(crdi_dcp_take(&target, &type, 1, bytes, length), CRD_DCP_NONE);
            for (int i = 0; i < 3; i++) {
                if (is_real(to)) {
                    check(real[i] == (double)in[i] && out[i] == 99);
                } else {
                    check(out[i] == in[i] && real[i] == 99);
                }
            }
            pairs++;
        }
    }
    check_int(pairs, 36);
}

static void types_that_do_not_convert_change_nothing(void** state)
{
    double x[] = {1, 2}, payload[] = {3, 4};
    int64_t n = 5;
    const crd_dcp_slot slots[] = {reals(CRD_DCP_FLOAT64, x, 1), integers(CRD_DCP_UINT8, &n, 1)};
    const uint8_t types[] = {CRD_DCP_FLOAT64, CRD_DCP_FLOAT64};
    check_int(crdi_dcp_take(slots, types, 2, (uint8_t*)payload, 16),
              CRD_DCP_E_INVALID_SOURCE_DATA_TYPE);
    const uint8_t nonsense[] = {CRD_DCP_FLOAT64, 200};
    check_int(crdi_dcp_take(slots, nonsense, 2, (uint8_t*)payload, 16),
              CRD_DCP_E_INVALID_SOURCE_DATA_TYPE);
    check(x[0] == 1 && n == 5);
}

// ---- bounds ------------------------------------------------------------------------------------

static void put_counts_everything_and_stays_in_its_room(void** state)
{
    double x[] = {1, 2, 3};
    int64_t n = -1;
    text t = {"abc", 3};
    const crd_dcp_slot slots[] = {reals(CRD_DCP_FLOAT64, x, 3), integers(CRD_DCP_INT16, &n, 1),
                                  text_slot(CRD_DCP_STRING, &t, 16), reals(CRD_DCP_FLOAT32, x, 0),
                                  integers(CRD_DCP_UINT8, &n, 1)};
    const size_t ends[] = {0, 24, 26, 33, 33, 34};
    uint8_t whole[34], bytes[40];
    check_int(crdi_dcp_put(slots, 5, whole, sizeof whole), 34);
    check_int(crdi_dcp_put(slots, 5, NULL, 0), 34);
    for (size_t room = 0; room <= 34; room++) {
        memset(bytes, 0xA5, sizeof bytes);
        check_int(crdi_dcp_put(slots, 5, bytes, room), 34);
        size_t written = 0;
        for (int i = 0; i < 6; i++) {
            if (ends[i] <= room) { written = ends[i]; }
        }
        check(memcmp(bytes, whole, written) == 0);
        for (size_t i = written; i < sizeof bytes; i++) {
            check_int(bytes[i], 0xA5);
        }
    }
    t.length = 1000; // a plant's mistake is not a read behind the memory
    check_int(crdi_dcp_put(&slots[2], 1, bytes, sizeof bytes), 4 + 16);
}

static void every_wrong_length_is_refused_and_changes_nothing(void** state)
{
    double x[2] = {1, 2};
    int64_t n = 5;
    text t = {"abc", 3}, u = {"d", 1};
    const crd_dcp_slot slots[] = {reals(CRD_DCP_FLOAT64, x, 2), text_slot(CRD_DCP_STRING, &t, 16),
                                  integers(CRD_DCP_INT32, &n, 1),
                                  text_slot(CRD_DCP_BINARY, &u, 16)};
    const uint8_t types[] = {CRD_DCP_FLOAT64, CRD_DCP_STRING, CRD_DCP_INT16, CRD_DCP_BINARY};
    uint8_t bytes[64] = {0};
    const crd_dcp_slot sent[] = {slots[0], slots[1], integers(CRD_DCP_INT16, &n, 1), slots[3]};
    const size_t right = crdi_dcp_put(sent, 4, bytes, sizeof bytes);
    check_int(right, 16 + 7 + 2 + 5);
    x[0] = -1, n = -1, t.length = 9, u.length = 9;
    for (size_t length = 0; length <= right + 8; length++) {
        uint8_t* exact = malloc(length ? length : 1);
        check(exact);
        memcpy(exact, bytes, length);
        const crd_dcp_error got = crdi_dcp_take(slots, types, 4, exact, length);
        free(exact);
        check_int(got, length == right ? CRD_DCP_NONE : CRD_DCP_E_INVALID_LENGTH);
        if (length == right) {
            check(x[0] == 1 && n == 5 && t.length == 3 && u.length == 1);
            x[0] = -1, n = -1, t.length = 9, u.length = 9;
        }
        check(x[0] == -1 && n == -1 && t.length == 9 && u.length == 9);
    }
}

static void lengths_of_strings_are_taken_for_hostile(void** state)
{
    text t = {"keep", 4};
    const crd_dcp_slot s = text_slot(CRD_DCP_STRING, &t, 8);
    const uint8_t type = CRD_DCP_STRING;
    const uint32_t claims[] = {9, 13, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFB, 0xFFFFFFFC, 0xFFFFFFFF};
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        uint8_t bytes[12] = {(uint8_t)claims[i], (uint8_t)(claims[i] >> 8),
                             (uint8_t)(claims[i] >> 16), (uint8_t)(claims[i] >> 24)};
        check_int(crdi_dcp_take(&s, &type, 1, bytes, sizeof bytes), CRD_DCP_E_INVALID_LENGTH);
    }
    // 4 + length is 0 in 32 bits, and then the integer would have the same bytes
    int64_t n = 5;
    const crd_dcp_slot two[] = {s, integers(CRD_DCP_UINT32, &n, 1)};
    const uint8_t types[] = {CRD_DCP_STRING, CRD_DCP_UINT32}, wraps[] = {0xFC, 0xFF, 0xFF, 0xFF};
    check_int(crdi_dcp_take(two, types, 2, wraps, 4), CRD_DCP_E_INVALID_LENGTH);
    check(t.length == 4 && memcmp(t.bytes, "keep", 4) == 0 && n == 5);
}

static void a_string_beyond_its_max_size_is_a_fault_of_the_payload(void** state)
{
    text t = {"keep", 4};
    int64_t n = 5;
    const crd_dcp_slot slots[] = {text_slot(CRD_DCP_STRING, &t, 8), integers(CRD_DCP_UINT8, &n, 1)};
    const uint8_t types[] = {CRD_DCP_STRING, CRD_DCP_UINT8};
    const uint8_t fits[13] = {8, 0, 0, 0, 'a'}, beyond[14] = {9, 0, 0, 0, 'a'};
    check_int(crdi_dcp_take(slots, types, 2, beyond, sizeof beyond), CRD_DCP_E_INVALID_PAYLOAD);
    // a wrong length is found before
    check_int(crdi_dcp_take(slots, types, 2, beyond, sizeof beyond - 1), CRD_DCP_E_INVALID_LENGTH);
    check(t.length == 4 && n == 5);
    check_int(crdi_dcp_take(slots, types, 2, fits, sizeof fits), CRD_DCP_NONE);
    check(t.length == 8 && n == 0);
}

static void nothing_is_read_from_an_empty_payload(void** state)
{
    double x = 1;
    const crd_dcp_slot s = reals(CRD_DCP_FLOAT64, &x, 0);
    const uint8_t type = CRD_DCP_FLOAT64;
    check_int(crdi_dcp_take(NULL, NULL, 0, NULL, 0), CRD_DCP_NONE);
    check_int(crdi_dcp_take(&s, &type, 1, NULL, 0), CRD_DCP_NONE);
    check_int(crdi_dcp_put(&s, 1, NULL, 0), 0);
    check_int(crdi_dcp_put(NULL, 0, NULL, 0), 0);
    const crd_dcp_slot huge = {.type = CRD_DCP_FLOAT64, .count = UINT32_MAX, .real = &x};
    check_int(crdi_dcp_take(&huge, &type, 1, (uint8_t*)&x, 8), CRD_DCP_E_INVALID_LENGTH);
}

// ---- join --------------------------------------------------------------------------------------

static void joined_slots_have_the_same_bytes(void** state)
{
    double x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    int64_t n[4] = {1, 2, 3, 4};
    text t = {"ab", 2};
    crd_dcp_slot slots[] = {
        reals(CRD_DCP_FLOAT64, x, 1),      reals(CRD_DCP_FLOAT64, x + 1, 2),  // run of 3
        reals(CRD_DCP_FLOAT64, x + 4, 1),                                     // x[3] is left out
        reals(CRD_DCP_FLOAT32, x + 5, 1),  reals(CRD_DCP_FLOAT32, x + 6, 1),  // run, float32
        text_slot(CRD_DCP_STRING, &t, 4),  text_slot(CRD_DCP_STRING, &t, 4),  // never
        integers(CRD_DCP_INT16, n, 1),     integers(CRD_DCP_INT16, n + 1, 1), // run, sent as int8
        integers(CRD_DCP_INT16, n + 2, 1),                                    // sent as int16
    };
    uint8_t types[] = {9, 9, 9, 8, 8, 10, 10, 4, 4, 5};
    enum { N = sizeof types };
    uint8_t before[128], after[128];
    const size_t length = crdi_dcp_put(slots, N, before, sizeof before);
    check_int(crdi_dcp_join(slots, types, N), 7);
    const uint32_t counts[] = {3, 1, 2, 1, 1, 2, 1};
    const uint8_t kept[] = {9, 9, 8, 10, 10, 4, 5};
    for (int i = 0; i < 7; i++) {
        check_int(slots[i].count, counts[i]);
        check_int(types[i], kept[i]);
    }
    check_int(crdi_dcp_put(slots, 7, after, sizeof after), length);
    check(memcmp(before, after, length) == 0);
    check_int(crdi_dcp_join(slots, NULL, 7), 6); // for put, the source types are of no interest
    check_int(crdi_dcp_put(slots, 6, after, sizeof after), length);
    check(memcmp(before, after, length) == 0);
    check_int(crdi_dcp_join(slots, NULL, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference_values_have_their_bytes_both_ways),
        cmocka_unit_test(strings_and_binaries_have_their_length_before_them),
        cmocka_unit_test(a_group_of_all_kinds_is_read_as_it_was_captured),
        cmocka_unit_test(float32_is_the_nearest_to_the_double),
        cmocka_unit_test(conversions_are_those_that_lose_nothing),
        cmocka_unit_test(converted_numbers_keep_their_value),
        cmocka_unit_test(types_that_do_not_convert_change_nothing),
        cmocka_unit_test(put_counts_everything_and_stays_in_its_room),
        cmocka_unit_test(every_wrong_length_is_refused_and_changes_nothing),
        cmocka_unit_test(lengths_of_strings_are_taken_for_hostile),
        cmocka_unit_test(a_string_beyond_its_max_size_is_a_fault_of_the_payload),
        cmocka_unit_test(nothing_is_read_from_an_empty_payload),
        cmocka_unit_test(joined_slots_have_the_same_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
