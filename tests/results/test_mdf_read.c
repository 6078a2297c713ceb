#include "check.h"
#include "results/mdf_maker.h"
#include "results/mdf_read.h"

#include <unistd.h>
#include <zlib.h>

#define PATH TEST_BUILD_DIR "/mdf_read.mf4"

static const channel_spec time_channel = {"time", .type = 2, .sync = 1, .data_type = 4, .bits = 64};

static crd_recording* open_file(crd_context* ctx, maker* m)
{
    make_save(m, PATH);
    crd_recording* r = NULL;
    const crd_status st = crd_recording_open(ctx, PATH, &r);
    if (st < 0) { fail_msg("%s", crd_error_text(ctx)); }
    return r;
}

static crd_table* read_file(crd_context* ctx, maker* m)
{
    make_save(m, PATH);
    crd_table* t = NULL;
    const crd_status st = crd_table_read(ctx, PATH, &t);
    if (st < 0) { fail_msg("%s", crd_error_text(ctx)); }
    return t;
}

// Opening and walking through all of it.
static crd_status try_file(crd_context* ctx, maker* m)
{
    make_save(m, PATH);
    crd_table* t = NULL;
    const crd_status st = crd_table_read(ctx, PATH, &t);
    crd_table_destroy(t);
    return st;
}

static void refuse(crd_context* ctx, maker* m, crd_status want, const char* part)
{
    const crd_status st = try_file(ctx, m);
    if (st != want || !strstr(crd_error_text(ctx), part) || !strstr(crd_error_text(ctx), PATH)) {
        fail_msg("%s: \"%s\", expected %s with \"%s\"", crd_status_name(st), crd_error_text(ctx),
                 crd_status_name(want), part);
    }
}

// Time k * 0.5 and x = k * k, both doubles.
static uint64_t make_simple(maker* m, unsigned rows, uint64_t* channels)
{
    const channel_spec specs[] = {time_channel, {"x", .data_type = 4, .byte = 8, .bits = 64}};
    const uint64_t dg = make_group(m, specs, 2, rows, 16, 0, channels);
    uint8_t data[16 * 64];
    for (unsigned k = 0; k < rows; k++) {
        put_f64(data + 16 * k, 0.5 * k);
        put_f64(data + 16 * k + 8, k * k);
    }
    make_link(m, dg, 2, make_block(m, "DT", 0, data, 16 * rows));
    make_chain(m, 0, dg);
    return dg;
}

// ---- what is read ------------------------------------------------------------------------------

static void integers_have_any_place_width_and_byte_order(void** state)
{
    // The same 64 bits below all channels: 0x0123456789abcdef and its negative.
    enum { ROWS = 2 };
    const uint64_t bits[ROWS] = {0x0123456789abcdefU, 0xfedcba9876543211U};
    channel_spec specs[256] = {time_channel};
    char names[256][32];
    unsigned count = 1;
    static const unsigned widths[] = {1, 3, 7, 8, 12, 16, 17, 24, 32, 33, 40, 48, 63, 64};
    for (unsigned kind = 0; kind < 4; kind++) {
        for (unsigned w = 0; w < sizeof widths / sizeof *widths; w++) {
            for (unsigned shift = 0; shift < 8; shift += 3) {
                snprintf(names[count], 32, "%u_%u_%u", kind, widths[w], shift);
                specs[count] = (channel_spec){names[count], .data_type = kind, .shift = shift,
                                              .byte = 8, .bits = widths[w]};
                count++;
            }
        }
    }
    maker m = make_file("MDF", 410);
    uint64_t channels[256];
    const uint64_t dg = make_group(&m, specs, count, ROWS, 17, 0, channels);
    uint8_t data[17 * ROWS] = {0};
    for (int k = 0; k < ROWS; k++) {
        put_f64(data + 17 * k, k);
        put_u64(data + 17 * k + 8, bits[k]);
        data[17 * k + 16] = 0xA5;
    }
    make_link(&m, dg, 2, make_block(&m, "DT", 0, data, sizeof data));
    make_chain(&m, 0, dg);
    crd_table* t = read_file(*state, &m);
    check_int(t->column_count, count - 1);
    for (unsigned i = 1; i < count; i++) {
        const channel_spec* s = &specs[i];
        for (int k = 0; k < ROWS; k++) {
            // Bit by bit: bit b of the number is bit (shift + b) counted from the lowest byte.
            const uint8_t* at = data + 17 * k + 8;
            const unsigned bytes = (s->shift + s->bits + 7) / 8;
            uint64_t x = 0;
            for (unsigned b = 0; b < s->bits; b++) {
                const unsigned place = (s->shift + b) / 8;
                const unsigned byte = s->data_type & 1 ? bytes - 1 - place : place;
                x |= (uint64_t)(at[byte] >> (s->shift + b) % 8 & 1) << b;
            }
            double want = (double)x;
            if (s->data_type >= 2 && x >> (s->bits - 1)) {
                want = -(double)((~x + 1) << (64 - s->bits) >> (64 - s->bits));
            }
            if (t->columns[i - 1].values[k] != want) {
                fail_msg("%s row %d: %.17g, expected %.17g", s->name, k,
                         t->columns[i - 1].values[k], want);
            }
        }
    }
    crd_table_destroy(t);
}

static void reals_have_16_32_or_64_bits_in_both_byte_orders(void** state)
{
    const channel_spec specs[] = {time_channel,
                                  {"f64", .data_type = 5, .byte = 8, .bits = 64},
                                  {"f32", .data_type = 4, .byte = 16, .bits = 32},
                                  {"f32b", .data_type = 5, .byte = 20, .bits = 32},
                                  {"f16", .data_type = 4, .byte = 24, .bits = 16},
                                  {"f16b", .data_type = 5, .byte = 26, .bits = 16}};
    uint8_t data[28] = {0};
    static const uint8_t big64[] = {0x40, 0x09, 0x21, 0xFB, 0x54, 0x44, 0x2D, 0x18};
    memcpy(data + 8, big64, 8);
    put_u32(data + 16, 0xC0490FDB);
    memcpy(data + 20, "\x3e\x80\x00\x00", 4);
    put_u16(data + 24, 0x3555); // 0.333251953125
    memcpy(data + 26, "\x80\x01", 2);
    maker m = make_file("MDF", 420);
    uint64_t channels[8];
    const uint64_t dg = make_group(&m, specs, 6, 1, 28, 0, channels);
    make_link(&m, dg, 2, make_block(&m, "DT", 0, data, sizeof data));
    make_chain(&m, 0, dg);
    crd_table* t = read_file(*state, &m);
    static const double want[] = {3.141592653589793, -3.1415927410125732, 0.25, 0.333251953125,
                                  -5.9604644775390625e-08};
    static const crd_type types[] = {CRD_FLOAT64, CRD_FLOAT32, CRD_FLOAT32, CRD_FLOAT32,
                                     CRD_FLOAT32};
    for (int i = 0; i < 5; i++) {
        check_near(t->columns[i].values[0], want[i], 0);
        check_int(t->columns[i].type, types[i]);
    }
    crd_table_destroy(t);
}

static void conversions_are_made_and_labels_kept(void** state)
{
    channel_spec specs[] = {time_channel,
                            {"line", .data_type = 0, .byte = 8, .bits = 8},
                            {"quotient", .data_type = 0, .byte = 8, .bits = 8},
                            {"mode", .data_type = 0, .byte = 8, .bits = 8},
                            {"flag", .data_type = 0, .byte = 8, .bits = 8},
                            {"table", .data_type = 0, .byte = 8, .bits = 8}};
    maker m = make_file("MDF", 410);
    uint64_t channels[6];
    const uint64_t dg = make_group(&m, specs, 6, 3, 9, 0, channels);
    uint8_t data[27] = {0};
    for (int k = 0; k < 3; k++) {
        put_f64(data + 9 * k, k);
        data[9 * k + 8] = (uint8_t)k;
    }
    make_link(&m, dg, 2, make_block(&m, "DT", 0, data, sizeof data));
    make_chain(&m, 0, dg);
    const uint64_t texts[] = {make_text(&m, "off"), make_text(&m, "on"), make_text(&m, "else")};
    const uint64_t bools[] = {make_text(&m, "false"), make_text(&m, "true"), 0};
    make_link(&m, channels[1], 4, make_conversion(&m, 1, (double[]){-40, 0.1}, 2, NULL, 0));
    make_link(&m, channels[2], 4, make_conversion(&m, 2, (double[]){1, 2, 3, 0, 1, 4}, 6, NULL, 0));
    make_link(&m, channels[3], 4, make_conversion(&m, 7, (double[]){0, 1}, 2, texts, 3));
    make_link(&m, channels[4], 4, make_conversion(&m, 7, (double[]){0, 1}, 2, bools, 3));
    make_link(&m, channels[5], 4, make_conversion(&m, 4, (double[]){0, 1}, 2, NULL, 0));
    crd_recording* r = open_file(*state, &m);
    const crd_recording_info* info = crd_recording_describe(r);
    check_int(info->signals[3 - 1].type, CRD_ENUMERATION);
    check_int(info->signals[3 - 1].label_count, 2);
    check_text(info->signals[3 - 1].labels[1].text, "on");
    check_int(info->signals[4 - 1].type, CRD_BOOLEAN);
    check_contains(check_log, "channel 'table': its conversion (type 4) is not made");
    crd_cursor* c = NULL;
    crd_block b;
    check_ok(crd_cursor_open(r, 0, (int[]){0, 1, 2, 4}, 4, &c));
    check_ok(crd_cursor_next(c, &b));
    check_int(b.rows, 3);
    for (int k = 0; k < 3; k++) {
        check_near(b.values[0][k], k * 0.1 + -40, 0);
        check_near(b.values[1][k], (1.0 * k * k + 2.0 * k + 3) / (k + 4.0), 1e-15);
        check_near(b.values[2][k], k, 0);
        check_near(b.values[3][k], k, 0);
    }
    crd_cursor_close(c);
    crd_recording_close(r);
}

static void invalid_values_are_not_a_number(void** state)
{
    const channel_spec specs[] = {
        time_channel,
        {"a", .data_type = 0, .byte = 8, .bits = 8, .flags = 2},
        {"b", .data_type = 0, .byte = 8, .bits = 8, .flags = 2, .invalid_bit = 9},
        {"c", .data_type = 0, .byte = 8, .bits = 8, .flags = 1},
        {"d", .data_type = 0, .byte = 8, .bits = 8}};
    maker m = make_file("MDF", 410);
    uint64_t channels[5];
    const uint64_t dg = make_group(&m, specs, 5, 2, 9, 2, channels);
    uint8_t data[22] = {0};
    data[8] = 7;
    data[9] = 1; // a
    data[11 + 8] = 8;
    data[11 + 10] = 2; // b
    make_link(&m, dg, 2, make_block(&m, "DT", 0, data, sizeof data));
    make_chain(&m, 0, dg);
    crd_table* t = read_file(*state, &m);
    check(isnan(t->columns[0].values[0]) && t->columns[0].values[1] == 8);
    check(t->columns[1].values[0] == 7 && isnan(t->columns[1].values[1]));
    check(isnan(t->columns[2].values[0]) && isnan(t->columns[2].values[1]));
    check(t->columns[3].values[0] == 7 && t->columns[3].values[1] == 8);
    crd_table_destroy(t);
}

static uint64_t make_deflated(maker* m, const uint8_t* data, size_t n, unsigned columns)
{
    uint8_t turned[4096], out[8192] = {'D', 'T', columns > 0};
    const size_t rows = columns ? n / columns : 0;
    memcpy(turned, data, n);
    for (size_t r = 0; r < rows; r++) {
        for (size_t c = 0; c < columns; c++) {
            turned[c * rows + r] = data[r * columns + c];
        }
    }
    uLongf length = sizeof out - 24;
    compress2(out + 24, &length, turned, n, 6);
    put_u32(out + 4, columns);
    put_u64(out + 8, n);
    put_u64(out + 16, length);
    return make_block(m, "DZ", 0, out, 24 + length);
}

static uint64_t make_list(maker* m, const uint64_t* blocks, unsigned n)
{
    uint8_t d[8 + 8 * 16] = {0};
    put_u32(d + 4, n);
    const uint64_t dl = make_block(m, "DL", 1 + n, d, 8 + 8 * n);
    for (unsigned i = 0; i < n; i++) {
        make_link(m, dl, 1 + i, blocks[i]);
    }
    return dl;
}

static void listed_deflated_and_transposed_data_is_the_same(void** state)
{
    enum { ROWS = 50, RECORD = 19 }; // blocks end in the middle of a record
    const channel_spec specs[] = {time_channel,
                                  {"x", .data_type = 4, .byte = 8, .bits = 64},
                                  {"n", .data_type = 2, .byte = 16, .bits = 16}};
    uint8_t data[ROWS * RECORD];
    for (int k = 0; k < ROWS; k++) {
        put_f64(data + RECORD * k, 0.1 * k);
        put_f64(data + RECORD * k + 8, sin(k));
        put_u16(data + RECORD * k + 16, (unsigned)(k - 25) & 0xffff);
        data[RECORD * k + 18] = 0xEE;
    }
    for (int way = 0; way < 6; way++) {
        maker m = make_file("MDF", 410);
        uint64_t channels[3], blocks[4];
        const uint64_t dg = make_group(&m, specs, 3, ROWS, RECORD, 0, channels);
        static const size_t cuts[] = {0, 100, 101, 500, sizeof data};
        for (int i = 0; i < 4; i++) {
            const uint8_t* from = data + cuts[i];
            const size_t n = cuts[i + 1] - cuts[i];
            blocks[i] = way == 2   ? make_deflated(&m, from, n, 0)
                        : way == 3 ? make_deflated(&m, from, n, RECORD)
                        : way == 5 ? make_deflated(&m, from, n, i % 2 ? RECORD : 0)
                                   : make_block(&m, "DT", 0, from, n);
        }
        uint64_t link = way == 0   ? make_block(&m, "DT", 0, data, sizeof data)
                        : way == 4 ? make_deflated(&m, data, sizeof data, RECORD)
                                   : make_list(&m, blocks, way == 1 ? 2 : 4);
        if (way == 1) { make_link(&m, link, 0, make_list(&m, blocks + 2, 2)); }
        if (way == 2 || way == 3) {
            const uint64_t hl = make_block(&m, "HL", 1, NULL, 8);
            make_link(&m, hl, 0, link);
            link = hl;
        }
        make_link(&m, dg, 2, link);
        make_chain(&m, 0, dg);
        crd_table* t = read_file(*state, &m);
        check_int(t->rows, ROWS);
        for (int k = 0; k < ROWS; k++) {
            check_near(t->time[k], 0.1 * k, 0);
            check_near(t->columns[0].values[k], sin(k), 0);
            check_near(t->columns[1].values[k], k - 25, 0);
        }
        crd_table_destroy(t);
    }
}

static void transposing_goes_back_for_all_shapes(void** state)
{
    static uint8_t in[3000], out[3000];
    crdi_mdf_transpose((const uint8_t*)"abc", out, 3, UINT32_MAX); // less than a row, and at once
    check_int(memcmp(out, "abc", 3), 0);
    for (size_t columns = 1; columns < 40; columns++) {
        for (size_t length = 0; length < 70 * columns && length < sizeof in; length += 7) {
            const size_t rows = length / columns;
            for (size_t i = 0; i < length; i++) {
                in[i] = (uint8_t)(i * 31 + i / 256 * 7);
            }
            crdi_mdf_transpose(in, out, length, columns);
            for (size_t i = 0; i < length; i++) {
                const bool tail = i >= rows * columns;
                const size_t from = tail ? i : i % columns * rows + i / columns;
                if (out[i] != in[from]) {
                    fail_msg("%zu bytes of %zu columns: byte %zu", length, columns, i);
                }
            }
        }
    }
}

static void texts_are_read_from_records_and_from_beside_them(void** state)
{
    const channel_spec specs[] = {time_channel,
                                  {"latin", .data_type = 6, .byte = 8, .bits = 32},
                                  {"utf8", .data_type = 7, .byte = 8, .bits = 32},
                                  {"utf16", .data_type = 9, .byte = 12, .bits = 64},
                                  {"far", .type = 1, .data_type = 7, .byte = 20, .bits = 64}};
    maker m = make_file("MDF", 410);
    uint64_t channels[5];
    const uint64_t dg = make_group(&m, specs, 5, 2, 28, 0, channels);
    uint8_t data[56] = {0};
    memcpy(data + 8,
           "\xe4"
           "bc",
           3);                                                // no zero needed, one is there
    memcpy(data + 12, "\xd8\x3d\xde\x00\x00\xe9\x00\x00", 8); // outside of the first plane
    put_u64(data + 20, 7);
    put_f64(data + 28, 1);
    memcpy(data + 36, "1e3\0", 4);
    memcpy(data + 40,
           "\x00"
           "a\x00"
           "b\x00"
           "c\x00"
           "d",
           8);                // full width
    put_u64(data + 48, 1000); // beyond: no text
    const uint8_t sd[] = {3, 0, 0, 0, 'o', 'n', 'e', 4, 0, 0, 0, 't', 'w', 'o', 0};
    make_link(&m, channels[4], 5, make_block(&m, "SD", 0, sd, sizeof sd));
    make_link(&m, dg, 2, make_block(&m, "DT", 0, data, sizeof data));
    make_chain(&m, 0, dg);
    crd_table* t = read_file(*state, &m);
    check_text(t->columns[0].texts[0], "\xc3\xa4"
                                       "bc");
    check_text(t->columns[1].texts[1], "1e3");
    check_near(t->columns[1].values[1], 1000, 0);
    check_text(t->columns[2].texts[0], "\xf0\x9f\x98\x80\xc3\xa9");
    check_text(t->columns[2].texts[1], "abcd");
    check_text(t->columns[3].texts[0], "two");
    check_text(t->columns[3].texts[1], "");
    check(isnan(t->columns[3].values[0]));
    check_int(t->columns[3].type, CRD_STRING);
    crd_table_destroy(t);
}

static void a_virtual_master_counts_records(void** state)
{
    const channel_spec specs[] = {{"index", .type = 3, .sync = 1},
                                  {"x", .data_type = 0, .byte = 0, .bits = 8}};
    maker m = make_file("MDF", 410);
    uint64_t channels[2];
    const uint64_t dg = make_group(&m, specs, 2, 3, 1, 0, channels);
    make_link(&m, channels[0], 4, make_conversion(&m, 1, (double[]){5, 0.25}, 2, NULL, 0));
    make_link(&m, dg, 2, make_block(&m, "DT", 0, "\1\2\3", 3));
    make_chain(&m, 0, dg);
    crd_table* t = read_file(*state, &m);
    check_near(t->time[2], 5.5, 0);
    check_near(t->columns[0].values[2], 3, 0);
    crd_table_destroy(t);
}

static void a_record_identifier_is_skipped(void** state)
{
    maker m = make_file("MDF", 410);
    const channel_spec specs[] = {time_channel, {"x", .data_type = 0, .byte = 8, .bits = 8}};
    uint64_t channels[2];
    const uint64_t dg = make_group(&m, specs, 2, 2, 9, 0, channels);
    data_of(&m, dg)[0] = 2;
    uint8_t data[22] = {1, 0, [10] = 77, [11] = 1, [21] = 78};
    make_link(&m, dg, 2, make_block(&m, "DT", 0, data, sizeof data));
    make_chain(&m, 0, dg);
    crd_table* t = read_file(*state, &m);
    check_int(t->rows, 2);
    check_near(t->columns[0].values[0], 77, 0);
    check_near(t->columns[0].values[1], 78, 0);
    crd_table_destroy(t);
}

static void what_cannot_be_read_is_left_out_with_a_note(void** state)
{
    maker m = make_file("MDF", 410);
    uint64_t channels[8];
    const channel_spec lost[] = {{"angle", .type = 2, .sync = 2, .data_type = 4, .bits = 64},
                                 {"x", .data_type = 0, .byte = 0, .bits = 8}};
    make_chain(&m, 0, make_group(&m, lost, 2, 0, 8, 0, channels)); // no times
    const channel_spec specs[] = {time_channel,
                                  {"bytes", .data_type = 10, .byte = 0, .bits = 64},
                                  {"array", .data_type = 0, .byte = 0, .bits = 8},
                                  {"stream", .type = 4, .data_type = 0, .bits = 8},
                                  {"fine", .data_type = 0, .byte = 0, .bits = 8},
                                  {"fine", .data_type = 0, .byte = 1, .bits = 8}};
    const uint64_t dg = make_group(&m, specs, 6, 0, 8, 0, channels);
    make_link(&m, channels[2], 1, make_block(&m, "CA", 4, NULL, 32));
    make_chain(&m, 0, dg);
    const uint64_t remote = make_group(&m, specs, 1, 0, 8, 0, channels);
    uint64_t cg = 0;
    memcpy(&cg, m.bytes + remote + 24 + 8, 8);
    put_u16(data_of(&m, cg) + 16, 8);
    make_chain(&m, 0, remote);
    crd_recording* r = open_file(*state, &m);
    const crd_recording_info* info = crd_recording_describe(r);
    check_int(info->group_count, 1);
    check_int(info->signal_count, 2); // of the same name
    check_text(info->signals[0].name, "fine");
    check_text(info->signals[1].name, "fine");
    check_contains(check_log, "it has no channel of times");
    check_contains(check_log, "'bytes' is left out: it is neither a number nor a text");
    check_contains(check_log, "'array' is left out: arrays are not read");
    check_contains(check_log, "'stream' is left out");
    check_contains(check_log, "its times are in another group");
    crd_recording_close(r);
}

static void many_notes_become_a_number(void** state)
{
    maker m = make_file("MDF", 410);
    channel_spec specs[21] = {time_channel};
    for (int i = 1; i <= 20; i++) {
        specs[i] = (channel_spec){"b", .data_type = 10, .bits = 8};
    }
    uint64_t channels[21];
    make_chain(&m, 0, make_group(&m, specs, 21, 0, 8, 0, channels));
    crd_recording_close(open_file(*state, &m));
    check_contains(check_log, "and 12 more like these");
}

static void comments_programs_events_and_attachments_are_told(void** state)
{
    maker m = make_file("MDF", 410);
    uint64_t channels[2], cg = 0;
    const uint64_t dg = make_simple(&m, 3, channels);
    memcpy(&cg, m.bytes + dg + 24 + 8, 8);
    make_link(&m, cg, 2, make_text(&m, "10 ms"));
    make_link(&m, channels[1], 6, make_text(&m, "m"));
    make_link(&m, channels[1], 7,
              make_text(&m, "<CNcomment><TX>a &amp; b</TX><names/></CNcomment>"));
    put_u64(data_of(&m, HD), 1700000000000000000U);
    make_link(&m, HD, 5,
              make_text(&m, "<HDcomment>\n <TX xml:space='preserve'>run 7</TX></HDcomment>"));
    const uint64_t fh = make_block(&m, "FH", 2, NULL, 16);
    make_link(&m, fh, 1,
              make_text(&m, "<FHcomment><TX/><tool_id>Tool</tool_id><tool_version>"
                            "2.1</tool_version></FHcomment>"));
    make_link(&m, HD, 1, fh);
    static const char* const names[] = {"start", "overrun", "remark"};
    for (int i = 0; i < 3; i++) {
        uint8_t d[32] = {6, 1, 0, 4};
        put_u64(d + 16, (uint64_t)(int64_t)(25 * (i - 1)));
        put_f64(d + 24, 0.01);
        const uint64_t ev = make_block(&m, "EV", 5, d, sizeof d);
        make_link(&m, ev, 3, make_text(&m, names[i]));
        if (i == 1) { make_link(&m, ev, 4, make_text(&m, "late by 2 ms")); }
        make_chain(&m, 4, ev);
    }
    uint8_t at[40 + 300] = {3}; // embedded, deflated
    uLongf length = sizeof at - 40;
    compress2(at + 40, &length, (const uint8_t*)"xyzxyzxyzxyzxyz", 15, 6);
    put_u64(at + 24, 15);
    put_u64(at + 32, length);
    const uint64_t packed = make_block(&m, "AT", 4, at, 40 + length);
    make_link(&m, packed, 1, make_text(&m, "a.txt"));
    make_link(&m, packed, 2, make_text(&m, "text/plain"));
    make_chain(&m, 3, packed);
    memset(at, 0, sizeof at);
    make_chain(&m, 3, make_block(&m, "AT", 4, at, 40)); // another file
    at[0] = 1;
    put_u64(at + 24, 2);
    put_u64(at + 32, 2);
    memcpy(at + 40, "hi", 2);
    make_chain(&m, 3, make_block(&m, "AT", 4, at, 42));

    crd_recording* r = open_file(*state, &m);
    const crd_recording_info* info = crd_recording_describe(r);
    check_text(info->format, "MDF 4.10");
    check_text(info->program, "Tool 2.1");
    check_text(info->comment, "run 7");
    check_int(info->started, 1700000000000000000);
    check(!info->unfinished);
    check_text(info->groups[0].name, "10 ms");
    check_int(info->groups[0].rows, 3);
    check_text(info->signals[0].unit, "m");
    check_text(info->signals[0].description, "a & b");
    check_int(info->event_count, 3);
    check_int(info->events[0].kind, CRD_EVENT_START);
    check_near(info->events[0].time, -0.25, 0);
    check_int(info->events[1].kind, CRD_EVENT_OVERRUN);
    check_text(info->events[1].text, "late by 2 ms");
    check_int(info->events[2].kind, CRD_EVENT_MARK);
    check_text(info->events[2].text, "remark");
    check_int(info->attachment_count, 2);
    check_text(info->attachments[0].name, "a.txt");
    check_text(info->attachments[0].mime, "text/plain");
    char* data = NULL;
    size_t n = 0;
    check_ok(crd_recording_attachment(r, 0, &data, &n));
    check_int(n, 15);
    check_text(data, "xyzxyzxyzxyzxyz");
    crd_free(*state, data);
    check_ok(crd_recording_attachment(r, 1, &data, &n));
    check_text(data, "hi");
    crd_free(*state, data);
    crd_recording_close(r);
}

static void a_cursor_hands_out_blocks_without_allocating(void** state)
{
    enum { ROWS = 200000 };
    maker m = make_file("MDF", 410);
    const channel_spec specs[] = {time_channel, {"x", .data_type = 0, .byte = 8, .bits = 32}};
    uint64_t channels[2];
    const uint64_t dg = make_group(&m, specs, 2, ROWS, 12, 0, channels);
    uint8_t* data = malloc(12 * ROWS);
    for (unsigned k = 0; k < ROWS; k++) {
        put_f64(data + 12 * k, 1e-3 * k);
        put_u32(data + 12 * k + 8, k);
    }
    make_link(&m, dg, 2, make_block(&m, "DT", 0, data, 12 * ROWS));
    free(data);
    make_chain(&m, 0, dg);
    crd_recording* r = open_file(*state, &m);
    crd_cursor* c = NULL;
    check_ok(crd_cursor_open(r, 0, (int[]){0}, 1, &c));
    const int64_t before = check_memory.allocations;
    int64_t rows = 0;
    for (;;) {
        crd_block b;
        check_ok(crd_cursor_next(c, &b));
        if (b.rows == 0) { break; }
        check_int(b.first, rows);
        for (int64_t k = 0; k < b.rows; k++) {
            if (b.values[0][k] != (double)(rows + k) || b.time[k] != 1e-3 * (double)(rows + k)) {
                fail_msg("row %lld", (long long)(rows + k));
            }
        }
        rows += b.rows;
        check(b.rows <= 65536);
    }
    check_int(rows, ROWS);
    check_int(check_memory.allocations, before);
    crd_cursor_close(c);
    check_status(crd_cursor_open(r, 0, (int[]){1}, 1, &c), CRD_E_RANGE);
    crd_recording_close(r);
}

// ---- unfinished files --------------------------------------------------------------------------

static void an_unfinished_file_is_read_as_far_as_it_goes(void** state)
{
    static const uint64_t lengths[] = {0, 24, 1 << 30}; // what its writer may have left
    for (int i = 0; i < 3; i++) {
        maker m = make_file("UnFinMF", 410);
        uint64_t channels[2], dt = 0;
        const uint64_t dg = make_simple(&m, 4, channels);
        memcpy(&dt, m.bytes + dg + 24 + 16, 8);
        put_u64(m.bytes + dt + 8, lengths[i]);
        make_bytes(&m, "half a ", 7); // of a record
        uint64_t cg = 0;
        memcpy(&cg, m.bytes + dg + 24 + 8, 8);
        put_u64(data_of(&m, cg) + 8, 0); // records
        crd_recording* r = open_file(*state, &m);
        check(crd_recording_describe(r)->unfinished);
        check_int(crd_recording_describe(r)->groups[0].rows, 4);
        crd_recording_close(r);
        crd_table* t = NULL;
        check_ok(crd_table_read(*state, PATH, &t));
        check_int(t->rows, 4);
        check_near(t->columns[0].values[3], 9, 0);
        crd_table_destroy(t);
    }
}

static void zeros_at_the_end_of_an_unfinished_file_are_no_rows(void** state)
{
    maker m = make_file("UnFinMF", 410);
    uint64_t channels[2], dt = 0;
    const uint64_t dg = make_simple(&m, 4, channels);
    memcpy(&dt, m.bytes + dg + 24 + 16, 8);
    put_u64(m.bytes + dt + 8, 0);
    make_bytes(&m, NULL, 160);
    crd_table* t = read_file(*state, &m);
    check_int(t->rows, 4);
    check_int(t->columns[0].rows, 4);
    check_contains(check_log, "the file is unfinished");
    crd_table_destroy(t);
}

static void lists_of_unfinished_files_end_with_the_last_whole_block(void** state)
{
    maker m = make_file("UnFinMF", 410);
    uint64_t channels[2];
    const uint64_t dg = make_simple(&m, 1, channels);
    uint8_t data[64] = {0};
    for (int k = 0; k < 4; k++) {
        put_f64(data + 16 * k, k);
    }
    const uint64_t blocks[] = {make_deflated(&m, data, 32, 16), 0, 0, 0};
    const uint64_t dl = make_list(&m, blocks, 4);
    put_u32(data_of(&m, dl) + 4, 0); // the number is old, links are what counts
    make_link(&m, dg, 2, dl);
    const uint64_t last = make_deflated(&m, data + 32, 32, 16);
    make_link(&m, dl, 2, last);
    for (int cut = 0; cut < 2; cut++) { // whole, and without its last byte
        maker copy = {.bytes = malloc(m.length), .length = m.length - (size_t)cut};
        memcpy(copy.bytes, m.bytes, copy.length);
        crd_table* t = read_file(*state, &copy);
        check_int(t->rows, cut ? 2 : 4);
        check_near(t->time[t->rows - 1], cut ? 1 : 3, 0);
        crd_table_destroy(t);
    }
    check_contains(check_log, "ends after 2 records");
    free(m.bytes);
}

// ---- what is refused ---------------------------------------------------------------------------

static void other_versions_and_unsorted_files_are_refused_with_the_way_out(void** state)
{
    static const unsigned versions[] = {300, 330, 399, 421, 430, 500};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        maker m = make_file("MDF", versions[i]);
        refuse(*state, &m, CRD_E_UNSUPPORTED, "expected 4.00 to 4.20");
    }
    maker m = make_file("MDF", 410);
    uint64_t channels[2], cg = 0;
    const uint64_t dg = make_simple(&m, 1, channels);
    memcpy(&cg, m.bytes + dg + 24 + 8, 8);
    make_link(&m, cg, 0, make_block(&m, "CG", 6, NULL, 32));
    data_of(&m, dg)[0] = 1;
    refuse(*state, &m, CRD_E_UNSUPPORTED, "not sorted");
    check_contains(crd_error_text(*state), "asammdf");
    m = make_file("MDF", 410);
    const uint64_t zstd = make_simple(&m, 1, channels);
    uint8_t data[16] = {0};
    const uint64_t dz = make_deflated(&m, data, 16, 0);
    data_of(&m, dz)[2] = 2;
    make_link(&m, zstd, 2, dz);
    refuse(*state, &m, CRD_E_UNSUPPORTED, "method 2");
}

static void a_file_that_ends_anywhere_is_refused_with_an_offset(void** state)
{
    maker m = make_file("MDF", 410);
    uint64_t channels[2];
    make_simple(&m, 4, channels);
    make_link(&m, HD, 5, make_text(&m, "comment"));
    const size_t length = m.length;
    for (size_t n = 8; n < length; n++) {
        maker copy = {.bytes = malloc(n), .length = n};
        memcpy(copy.bytes, m.bytes, n);
        refuse(*state, &copy, CRD_E_FORMAT, "offset ");
    }
    check_ok(try_file(*state, &m));
}

static void links_that_go_in_circles_end(void** state)
{
    uint64_t ch[2], blocks[2];
    maker m = make_file("MDF", 410);
    uint64_t dg = make_simple(&m, 1, ch);
    make_link(&m, dg, 0, dg);
    refuse(*state, &m, CRD_E_FORMAT, "two links lead to this block");
    m = make_file("MDF", 410);
    make_simple(&m, 1, ch);
    make_link(&m, ch[1], 0, ch[0]);
    refuse(*state, &m, CRD_E_FORMAT, "two links lead to this block");
    m = make_file("MDF", 410);
    make_simple(&m, 1, ch);
    make_link(&m, ch[1], 1, ch[1]); // a structure that is its own member
    refuse(*state, &m, CRD_E_FORMAT, "two links lead to this block");
    m = make_file("MDF", 410);
    dg = make_simple(&m, 1, ch);
    uint64_t dl = make_list(&m, NULL, 0);
    make_link(&m, dl, 0, dl);
    make_link(&m, dg, 2, dl);
    refuse(*state, &m, CRD_E_FORMAT, "two links lead to this block");
    m = make_file("MDF", 410);
    dg = make_simple(&m, 1, ch);
    memcpy(blocks, m.bytes + dg + 24 + 16, 8);
    blocks[1] = blocks[0];
    make_link(&m, dg, 2, make_list(&m, blocks, 2));
    refuse(*state, &m, CRD_E_FORMAT, "two links lead to this block");
    for (unsigned i = 3; i < 5; i++) { // attachments, events
        m = make_file("MDF", 410);
        uint8_t d[40] = {0};
        const uint64_t b = make_block(&m, i == 3 ? "AT" : "EV", i == 3 ? 4 : 5, d, sizeof d);
        make_link(&m, b, 0, b);
        make_link(&m, HD, i, b);
        refuse(*state, &m, CRD_E_FORMAT, "two links lead to this block");
    }
}

static void structures_may_be_nested_eight_deep(void** state)
{
    for (int depth = 8; depth <= 9; depth++) {
        maker m = make_file("MDF", 410);
        uint64_t ch[2];
        make_simple(&m, 1, ch);
        uint64_t outer = ch[1];
        for (int i = 0; i < depth; i++) {
            const channel_spec s = {"inner", .data_type = 0, .bits = 8};
            const uint64_t inner = make_channel(&m, &s);
            make_link(&m, outer, 1, inner);
            outer = inner;
        }
        if (depth == 8) {
            crd_table* t = read_file(*state, &m);
            check_int(t->column_count, 1);
            check_text(t->columns[0].name, "inner");
            crd_table_destroy(t);
        } else {
            refuse(*state, &m, CRD_E_FORMAT, "more than 8 deep");
        }
    }
}

static void overlapping_blocks_cannot_multiply_the_data(void** state)
{
    maker m = make_file("MDF", 410);
    uint64_t ch[2], blocks[16];
    const uint64_t dg = make_simple(&m, 1, ch);
    for (int i = 0; i < 16; i++) { // each reaches to the end of the last
        blocks[i] = make_block(&m, "DT", 0, NULL, 8);
    }
    for (int i = 0; i < 16; i++) {
        put_u64(m.bytes + blocks[i] + 8, m.length - blocks[i]);
    }
    make_bytes(&m, NULL, 2000);
    for (int i = 0; i < 16; i++) {
        put_u64(m.bytes + blocks[i] + 8, m.length - blocks[i]);
    }
    const uint64_t dl = make_list(&m, blocks, 16);
    make_link(&m, dg, 2, dl);
    refuse(*state, &m, CRD_E_FORMAT, "the blocks overlap");
}

static void lies_about_lengths_and_counts_are_found(void** state)
{
    uint64_t ch[2], cg = 0, dt = 0;
    uint8_t data[80] = {0};
#define START()                                                                                    \
    m = make_file("MDF", 410);                                                                     \
    dg = make_simple(&m, 4, ch);                                                                   \
    memcpy(&cg, m.bytes + dg + 24 + 8, 8);                                                         \
    memcpy(&dt, m.bytes + dg + 24 + 16, 8)
    maker m;
    uint64_t dg, dz;
    START();
    put_u64(data_of(&m, cg) + 8, 5); // records
    refuse(*state, &m, CRD_E_FORMAT, "says it has 5 records of 16 bytes, there are 4");
    START();
    put_u64(data_of(&m, cg) + 8, UINT64_MAX);
    refuse(*state, &m, CRD_E_FORMAT, "records of 16 bytes");
    START();
    put_u32(data_of(&m, cg) + 24, UINT32_MAX);
    refuse(*state, &m, CRD_E_FORMAT, "expected at most");
    START();
    put_u32(data_of(&m, cg) + 24, 15);
    refuse(*state, &m, CRD_E_FORMAT, "channel 'x' has 64 bits at byte 8");
    START();
    put_u32(data_of(&m, ch[1]) + 4, UINT32_MAX);
    refuse(*state, &m, CRD_E_FORMAT, "channel 'x' has 64 bits");
    START();
    put_u32(data_of(&m, ch[1]) + 12, 2); // an invalidation bit, but no bytes for it
    refuse(*state, &m, CRD_E_FORMAT, "invalidation bit");
    START();
    put_u64(m.bytes + ch[1] + 8, 100); // too short for a channel
    refuse(*state, &m, CRD_E_FORMAT, "expected 8 links and 72 bytes");
    START();
    put_u64(m.bytes + ch[1] + 16, UINT64_MAX / 8);
    refuse(*state, &m, CRD_E_FORMAT, "links");
    START();
    put_u64(m.bytes + dt + 8, UINT64_MAX);
    refuse(*state, &m, CRD_E_FORMAT, "a block of 18446744073709551615 bytes");
    START();
    make_link(&m, dg, 2, ch[1]);
    refuse(*state, &m, CRD_E_FORMAT, "offset ");
    START();
    make_link(&m, dg, 1, dt);
    refuse(*state, &m, CRD_E_FORMAT, "a block '##DT', expected '##CG'");
    START();
    make_link(&m, dg, 0, UINT64_MAX - 7);
    refuse(*state, &m, CRD_E_FORMAT, "a link leads here");
    START();
    make_link(&m, ch[1], 2, dg); // the name
    refuse(*state, &m, CRD_E_FORMAT, "expected a text");
    START();
    make_link(&m, ch[1], 4, dg); // the conversion
    refuse(*state, &m, CRD_E_FORMAT, "not a conversion");
    START();
    make_link(&m, ch[1], 4, make_conversion(&m, 1, (double[]){1}, 1, NULL, 0));
    refuse(*state, &m, CRD_E_FORMAT, "a conversion with 1 values, expected 2");
    START();
    dz = make_deflated(&m, data, 64, 0);
    put_u64(data_of(&m, dz) + 8, (uint64_t)1 << 40); // a bomb that is none
    make_link(&m, dg, 2, dz);
    refuse(*state, &m, CRD_E_FORMAT, "which cannot be");
    START();
    dz = make_deflated(&m, data, 64, 0);
    put_u64(data_of(&m, dz) + 8, 80);
    make_link(&m, dg, 2, dz);
    refuse(*state, &m, CRD_E_FORMAT, "inflates to less");
    START();
    dz = make_deflated(&m, data, 80, 0);
    put_u64(data_of(&m, dz) + 8, 64);
    make_link(&m, dg, 2, dz);
    refuse(*state, &m, CRD_E_FORMAT, "inflates to more");
    START();
    dz = make_deflated(&m, data, 64, 0);
    data_of(&m, dz)[26] ^= 0xff;
    make_link(&m, dg, 2, dz);
    refuse(*state, &m, CRD_E_FORMAT, "offset ");
    START();
    dz = make_deflated(&m, data, 64, 16);
    put_u32(data_of(&m, dz) + 4, 0);
    make_link(&m, dg, 2, dz);
    refuse(*state, &m, CRD_E_FORMAT, "transposed with records of 0 bytes");
    START();
    put_f64(data_of(&m, dt) + 32, 0.25);
    refuse(*state, &m, CRD_E_FORMAT, "record 2 of the group: time goes back to 0.25");
    START();
    put_f64(data_of(&m, dt), NAN);
    refuse(*state, &m, CRD_E_FORMAT, "is not finite");
    START();
    uint8_t at[48] = {1};
    put_u64(at + 24, 1000);
    put_u64(at + 32, 1000);
    make_link(&m, HD, 3, make_block(&m, "AT", 4, at, sizeof at));
    refuse(*state, &m, CRD_E_FORMAT, "stored in 1000");
#undef START
}

static void what_is_no_mdf_file_is_said_to_be_none(void** state)
{
    static const char* const contents[] = {"", "MDF     4.10    ", "time,x\n0,1\n"};
    for (int i = 0; i < 3; i++) {
        maker m = {0};
        make_bytes(&m, contents[i], strlen(contents[i]));
        make_save(&m, PATH); // its name ends in .mf4
        crd_recording* r = NULL;
        check_status(crd_recording_open(*state, PATH, &r), CRD_E_FORMAT);
        check_contains(crd_error_text(*state), "MDF file");
    }
}

static void every_allocation_may_fail(void** state)
{
    maker m = make_file("MDF", 410);
    uint64_t channels[2], blocks[1];
    const uint64_t dg = make_simple(&m, 4, channels);
    const uint64_t texts[] = {make_text(&m, "off"), make_text(&m, "on"), 0};
    make_link(&m, channels[1], 4, make_conversion(&m, 7, (double[]){0, 1}, 2, texts, 3));
    uint8_t data[64] = {0};
    blocks[0] = make_deflated(&m, data, 64, 16);
    make_link(&m, dg, 2, make_list(&m, blocks, 1));
    uint8_t d[40] = {1, 1};
    make_chain(&m, 4, make_block(&m, "EV", 5, d, 32));
    make_chain(&m, 3, make_block(&m, "AT", 4, d, 40));
    make_save(&m, PATH);
    check_allocator a;
    crd_context* ctx = check_context(&a);
    const int64_t first = a.allocations, live = a.live;
    int failures = 0;
    for (int i = 0;; i++) {
        failures = i / 2; // from there on, and there alone
        a.once = i % 2;
        a.allocations = first;
        a.fail_at = first + failures;
        crd_recording* r = NULL;
        crd_cursor* c = NULL;
        char* bytes = NULL;
        size_t n = 0;
        crd_table* t = NULL;
        crd_status st = crd_recording_open(ctx, PATH, &r);
        if (st == CRD_OK) { st = crd_recording_attachment(r, 0, &bytes, &n); }
        if (st == CRD_OK) { st = crd_cursor_open(r, 0, (int[]){0}, 1, &c); }
        if (st == CRD_OK) { st = crd_table_read(ctx, PATH, &t); }
        crd_table_destroy(t);
        crd_cursor_close(c);
        crd_free(ctx, bytes);
        crd_recording_close(r);
        check_int(a.live, live);
        if (st == CRD_OK) { break; }
        check_status(st, CRD_E_MEMORY);
        check_contains(crd_error_text(ctx), "out of memory");
    }
    check(failures >= 20);
    crd_context_destroy(ctx);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, check_log_up, check_count_down)
    const struct CMUnitTest tests[] = {
        TEST(integers_have_any_place_width_and_byte_order),
        TEST(reals_have_16_32_or_64_bits_in_both_byte_orders),
        TEST(conversions_are_made_and_labels_kept),
        TEST(invalid_values_are_not_a_number),
        TEST(listed_deflated_and_transposed_data_is_the_same),
        TEST(transposing_goes_back_for_all_shapes),
        TEST(texts_are_read_from_records_and_from_beside_them),
        TEST(a_virtual_master_counts_records),
        TEST(a_record_identifier_is_skipped),
        TEST(what_cannot_be_read_is_left_out_with_a_note),
        TEST(many_notes_become_a_number),
        TEST(comments_programs_events_and_attachments_are_told),
        TEST(a_cursor_hands_out_blocks_without_allocating),
        TEST(an_unfinished_file_is_read_as_far_as_it_goes),
        TEST(zeros_at_the_end_of_an_unfinished_file_are_no_rows),
        TEST(lists_of_unfinished_files_end_with_the_last_whole_block),
        TEST(other_versions_and_unsorted_files_are_refused_with_the_way_out),
        TEST(a_file_that_ends_anywhere_is_refused_with_an_offset),
        TEST(links_that_go_in_circles_end),
        TEST(structures_may_be_nested_eight_deep),
        TEST(overlapping_blocks_cannot_multiply_the_data),
        TEST(lies_about_lengths_and_counts_are_found),
        TEST(what_is_no_mdf_file_is_said_to_be_none),
        TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
