// Reads what the recorder wrote block by block, with a reader of its own.
#include "cardan/results.h"
#include "check.h"
#include "results/recorder.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

// ThreadSanitizer takes its time, and what is in a file has nothing to do with threads.
#ifdef __SANITIZE_THREAD__
static const bool threaded = true;
#else
static const bool threaded = false;
#endif

// ---- a small reader ----------------------------------------------------------------------------

static uint8_t* bytes;
static size_t size;

static void load(const char* path)
{
    free(bytes);
    FILE* f = fopen(path, "rb");
    if (!f) { fail_msg("%s: %s", path, strerror(errno)); }
    fseek(f, 0, SEEK_END);
    size = (size_t)ftell(f);
    rewind(f);
    bytes = malloc(size + 1);
    check_int(fread(bytes, 1, size, f), size);
    fclose(f);
}

static uint64_t number(size_t at, int width)
{
    check(at + (size_t)width <= size);
    uint64_t x = 0;
    for (int i = width; i-- > 0;) {
        x = x << 8 | bytes[at + (size_t)i];
    }
    return x;
}

static double real_at(size_t at)
{
    const uint64_t x = number(at, 8);
    double d;
    memcpy(&d, &x, 8);
    return d;
}

// A block begins there, is whole, and has that many links.
static size_t block(uint64_t at, const char* tag, uint64_t links)
{
    if (at == 0 || at % 8 || at + 24 > size) { fail_msg("%s at %llu", tag, (long long)at); }
    if (memcmp(bytes + at, "##", 2) != 0 || memcmp(bytes + at + 2, tag, 2) != 0) {
        fail_msg("%.4s at %llu, expected ##%s", bytes + at, (long long)at, tag);
    }
    check_int(number(at + 4, 4), 0);
    check(number(at + 8, 8) <= size - at);
    check_int(number(at + 16, 8), links);
    return at;
}

static uint64_t link_of(size_t at, int i)
{
    return number(at + 24 + 8 * (size_t)i, 8);
}

static const char* text_at(uint64_t at, const char* tag)
{
    if (at == 0) { return ""; }
    block(at, tag, 0);
    const size_t length = number(at + 8, 8) - 24;
    check(memchr(bytes + at + 24, 0, length));
    return (const char*)bytes + at + 24;
}

enum { GROUPS = 8, CHANNELS = 32 };

typedef struct channel {
    size_t at; // of the CN
    const char *name, *unit, *comment;
    size_t byte, width;
    int type, data_type;
} channel;

typedef struct group {
    const char* name;
    uint64_t records, record_bytes;
    channel channels[CHANNELS];
    int channel_count;
    uint8_t* data; // (records)(record_bytes)
    int chunks;
} group;

static struct {
    bool finished;
    group groups[GROUPS];
    int group_count;
} file;

static void read_channels(group* g, uint64_t at)
{
    for (g->channel_count = 0; at; at = link_of(at, 0)) {
        block(at, "CN", 8);
        check(g->channel_count < CHANNELS);
        g->channels[g->channel_count++] = (channel){.at = at,
                                                    .name = text_at(link_of(at, 2), "TX"),
                                                    .unit = text_at(link_of(at, 6), "TX"),
                                                    .comment = text_at(link_of(at, 7), "TX"),
                                                    .type = bytes[at + 88],
                                                    .data_type = bytes[at + 90],
                                                    .byte = number(at + 92, 4),
                                                    .width = number(at + 96, 4) / 8};
    }
}

// One DZ: transposed, whole records. Returns how many.
static uint64_t read_chunk(group* g, uint64_t at, uint64_t offset)
{
    block(at, "DZ", 0);
    check(memcmp(bytes + at + 24, "DT", 2) == 0);
    check_int(bytes[at + 26], 1);
    check_int(number(at + 28, 4), g->record_bytes);
    uLongf original = number(at + 32, 8);
    const uint64_t packed = number(at + 40, 8), n = original / g->record_bytes;
    check_int(original % g->record_bytes, 0);
    check_int(number(at + 8, 8), 48 + packed);
    check(original <= 4 << 20 || n <= 64);
    uint8_t* planes = malloc(original);
    check_int(uncompress(planes, &original, bytes + at + 48, packed), Z_OK);
    check_int(original, n * g->record_bytes);
    g->data = realloc(g->data, offset + original);
    for (uint64_t b = 0; b < g->record_bytes; b++) {
        for (uint64_t r = 0; r < n; r++) {
            g->data[offset + r * g->record_bytes + b] = planes[b * n + r];
        }
    }
    free(planes);
    g->chunks++;
    return n;
}

static void read_data(group* g, uint64_t at)
{
    uint64_t records = 0;
    g->chunks = 0;
    if (at) {
        block(at, "HL", 1);
        check_int(bytes[at + 34], 1); // transposed deflate
        for (at = link_of(at, 0); at; at = link_of(at, 0)) {
            block(at, "DL", 2);
            check_int(number(at + 8, 8), 56);
            check_int(number(at + 40, 4), 0);
            check_int(number(at + 44, 4), 1);
            check_int(number(at + 48, 8), records * g->record_bytes);
            records += read_chunk(g, link_of(at, 1), records * g->record_bytes);
        }
    }
    if (file.finished) { check_int(g->records, records); }
    check(g->records <= records); // may lag behind by the last chunk
    g->records = records;
}

static void read_mdf(const char* path)
{
    load(path);
    check(size >= 168);
    file.finished = memcmp(bytes, "MDF     4.10    ", 16) == 0;
    if (!file.finished) { check(memcmp(bytes, "UnFinMF 4.10    ", 16) == 0); }
    check_int(number(28, 2), 410);
    check_int(number(60, 2), file.finished ? 0 : 1);
    block(64, "HD", 6);
    file.group_count = 0;
    for (uint64_t dg = link_of(64, 0); dg; dg = link_of(dg, 0)) {
        block(dg, "DG", 4);
        check_int(bytes[dg + 56], 0); // sorted
        const size_t cg = block(link_of(dg, 1), "CG", 6);
        check_int(link_of(cg, 0), 0);
        group* g = &file.groups[file.group_count++];
        g->name = text_at(link_of(cg, 2), "TX");
        g->records = number(cg + 80, 8);
        g->record_bytes = number(cg + 96, 4);
        read_channels(g, link_of(cg, 1));
        check(g->channel_count > 0);
        check_int(g->channels[0].type, 2);           // master
        check_int(bytes[g->channels[0].at + 89], 1); // of time
        check_text(g->channels[0].unit, "s");
        read_data(g, link_of(dg, 2));
    }
}

static void forget_mdf(void)
{
    for (int i = 0; i < GROUPS; i++) {
        free(file.groups[i].data);
        file.groups[i].data = NULL;
    }
    free(bytes);
    bytes = NULL;
}

static uint64_t value_bits(const group* g, uint64_t row, int c)
{
    uint64_t x = 0;
    const uint8_t* p = g->data + row * g->record_bytes + g->channels[c].byte;
    memcpy(&x, p, g->channels[c].width < 8 ? g->channels[c].width : 8);
    return x;
}

static double value_real(const group* g, uint64_t row, int c)
{
    const uint64_t x = value_bits(g, row, c);
    double d;
    memcpy(&d, &x, 8);
    return d;
}

// ---- a recording -------------------------------------------------------------------------------

static const crd_column reals[] = {
    {.name = "a", .unit = "m", .description = "", .type = CRD_FLOAT64},
    {.name = "b", .unit = "", .description = "", .type = CRD_FLOAT64},
};

static crd_recorder_options options(const char* path)
{
    return (crd_recorder_options){.path = path, .columns = reals, .column_count = 2};
}

// false: writing has failed
static bool record(crd_recorder* r, int64_t i)
{
    crd_word* row = crd_recorder_begin(r);
    if (!row) { return false; }
    row[0].real = (double)i * 1e-3;
    row[1].real = sin((double)i);
    row[2].real = (double)i / 7;
    crd_recorder_end(r);
    return true;
}

static void check_rows(const char* path, int64_t rows)
{
    read_mdf(path);
    check_int(file.group_count, 1);
    const group* g = &file.groups[0];
    check_int(g->channel_count, 3);
    if (rows >= 0) { check_int(g->records, rows); }
    for (uint64_t i = 0; i < g->records; i++) {
        check_near(value_real(g, i, 0), (double)i * 1e-3, 0);
        check_near(value_real(g, i, 1), sin((double)i), 0);
        check_near(value_real(g, i, 2), (double)i / 7, 0);
    }
}

static void every_row_is_in_the_file_bit_by_bit(void** state)
{
    const char* path = TEST_BUILD_DIR "/mdf_rows.mf4";
    static const int64_t counts[] = {0, 1, 63, 64, 65, 5000, 400000};
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        const crd_recorder_options opt = options(path);
        crd_recorder* r = NULL;
        check_ok(crd_recorder_create(*state, &opt, &r));
        for (int64_t i = 0; i < counts[k]; i++) {
            check(record(r, i));
        }
        check_ok(crd_recorder_finish(r));
        check_int(crd_recorder_rows(r), counts[k]);
        crd_recorder_destroy(r);
        check_rows(path, counts[k]);
        check(file.finished);
        if (counts[k] > 200000) { check(file.groups[0].chunks >= 3); }
    }
    forget_mdf();
}

static void a_file_without_columns_has_the_times(void** state)
{
    const char* path = TEST_BUILD_DIR "/mdf_times.mf4";
    const crd_recorder_options opt = {.path = path};
    crd_recorder* r = NULL;
    check_ok(crd_recorder_create(*state, &opt, &r));
    for (int i = 0; i < 100; i++) {
        crd_recorder_begin(r)->real = i;
        crd_recorder_end(r);
    }
    check_ok(crd_recorder_finish(r));
    crd_recorder_destroy(r);
    read_mdf(path);
    check_int(file.groups[0].records, 100);
    check_near(value_real(&file.groups[0], 99, 0), 99, 0);
    forget_mdf();
}

// ---- types, conversions, rasters ---------------------------------------------------------------

static const crd_label modes[] = {{7, "seven"}, {-2, "minus two"}};

static const crd_column all[] = {
    {.name = "f64", .unit = "V", .description = "volts", .type = CRD_FLOAT64},
    {.name = "f32", .unit = "", .description = "", .type = CRD_FLOAT32},
    {.name = "i8", .unit = "", .description = "", .type = CRD_INT8},
    {.name = "u8", .unit = "", .description = "", .type = CRD_UINT8},
    {.name = "i16", .unit = "", .description = "", .type = CRD_INT16},
    {.name = "u16", .unit = "", .description = "", .type = CRD_UINT16},
    {.name = "i32", .unit = "", .description = "", .type = CRD_INT32},
    {.name = "u32", .unit = "V", .description = "", .type = CRD_UINT32},
    {.name = "i64", .unit = "", .description = "", .type = CRD_INT64},
    {.name = "u64", .unit = "", .description = "", .type = CRD_UINT64},
    {.name = "on", .unit = "", .description = "", .type = CRD_BOOLEAN},
    {.name = "tick", .unit = "", .description = "", .type = CRD_CLOCK},
    {.name = "mode",
     .unit = "",
     .description = "",
     .type = CRD_ENUMERATION,
     .labels = modes,
     .label_count = 2},
    {.name = "text", .unit = "", .description = "", .type = CRD_STRING},
    {.name = "raw", .unit = "", .description = "", .type = CRD_BINARY},
    {.name = "time", .unit = "", .description = "", .type = CRD_INT8},
    {.name = "f64", .unit = "", .description = "", .type = CRD_INT8},
    {.name = "slow", .unit = "K", .description = "", .type = CRD_FLOAT32, .raster = 1},
};
enum { ALL = sizeof all / sizeof *all };

static void check_conversion(const channel* c, int count, const double* values,
                             const char* const* texts)
{
    const size_t cc = block(link_of(c->at, 4), "CC", 4 + (uint64_t)count + 1);
    const size_t data = cc + 24 + 8 * (4 + (size_t)count + 1);
    check_int(bytes[data], 7);
    check_int(number(data + 4, 2), count + 1);
    check_int(number(data + 6, 2), count);
    for (int i = 0; i < count; i++) {
        check_near(real_at(data + 24 + 8 * (size_t)i), values[i], 0);
        check_text(text_at(link_of(cc, 4 + i), "TX"), texts[i]);
    }
    check_int(link_of(cc, 4 + count), 0); // other values stay numbers
}

static void check_descriptions(void)
{
    static const int widths[ALL - 1] = {8, 4, 1, 1, 2, 2, 4, 4, 8, 8, 1, 1, 8, 256, 512, 1, 1};
    static const int types[ALL - 1] = {4, 4, 2, 0, 2, 0, 2, 0, 2, 0, 0, 0, 2, 7, 7, 2, 2};
    const group* g = &file.groups[0];
    check_int(g->channel_count, ALL);
    size_t byte = 8;
    for (int i = 1; i < ALL; i++) {
        const channel* c = &g->channels[i];
        check_text(c->name, i == ALL - 2 ? "time_2" : i == ALL - 1 ? "f64_2" : all[i - 1].name);
        check_text(c->unit, all[i - 1].unit);
        check_text(c->comment, all[i - 1].description);
        check_int(c->data_type, types[i - 1]);
        check_int(c->width, widths[i - 1]);
        check_int(c->byte, byte);
        byte += c->width;
    }
    check_int(g->record_bytes, byte);
    check_conversion(&g->channels[11], 2, (double[]){0, 1}, (const char*[]){"false", "true"});
    check_int(link_of(g->channels[12].at, 4), link_of(g->channels[11].at, 4)); // shared
    check_conversion(&g->channels[13], 2, (double[]){-2, 7}, (const char*[]){"minus two", "seven"});
    check_int(link_of(g->channels[1].at, 4), 0);
    check_int(link_of(g->channels[1].at, 6), link_of(g->channels[8].at, 6)); // one text for V
    check_text(file.groups[1].name, "slow ones");
    check_int(number(link_of(link_of(64, 0), 1) + 90, 2), '.'); // between the parts of a name
    check_text(file.groups[1].channels[1].name, "slow");
}

static void put_all(crd_recorder* r, int64_t i)
{
    crd_word* row = crd_recorder_begin_raster(r, 0);
    row[0].real = (double)i;
    row[crd_recorder_word(r, 0)].real = 0.1 * (double)i;
    row[crd_recorder_word(r, 1)].real = 0.1 * (double)i;
    for (int c = 2; c < 13; c++) {
        row[crd_recorder_word(r, c)].integer = -i * 1000003;
    }
    char text[300];
    memset(text, 'x', sizeof text);
    memcpy(text + 254, "\xE2\x82\xAC", 3); // does not fit as a whole
    crd_word_set_bytes(&row[crd_recorder_word(r, 13)], text, (size_t)(i % 300));
    crd_word_set_bytes(&row[crd_recorder_word(r, 14)], &i, 8);
    row[crd_recorder_word(r, 15)].integer = 1;
    row[crd_recorder_word(r, 16)].integer = 2;
    crd_recorder_end_raster(r, 0);
}

static void check_all(const group* g, uint64_t i)
{
    const float single = (float)(0.1 * (double)i);
    uint32_t single_bits;
    memcpy(&single_bits, &single, 4);
    check_near(value_real(g, i, 0), (double)i, 0);
    check_near(value_real(g, i, 1), 0.1 * (double)i, 0);
    check_int(value_bits(g, i, 2), single_bits);
    const uint64_t n = (uint64_t)(-(int64_t)i * 1000003);
    for (int c = 3; c < 11; c++) {
        const size_t w = 8 * g->channels[c].width;
        check_int(value_bits(g, i, c), w == 64 ? n : n & ((UINT64_C(1) << w) - 1));
    }
    check_int(value_bits(g, i, 11), n != 0);
    check_int(value_bits(g, i, 12), n != 0);
    check_int(value_bits(g, i, 13), n);
    const uint8_t* text = g->data + i * g->record_bytes + g->channels[14].byte;
    const size_t length = i % 300 > 256 ? 254 : i % 300 < 255 ? i % 300 : i % 300;
    for (size_t k = 0; k < 256; k++) {
        check(k >= length ? text[k] == 0 : k < 254 ? text[k] == 'x' : text[k] >= 0x80);
    }
    char digits[17];
    snprintf(digits, sizeof digits, "%016llx", (long long)__builtin_bswap64(i));
    check_text((const char*)g->data + i * g->record_bytes + g->channels[15].byte, digits);
    check_int(value_bits(g, i, 16), 1);
    check_int(value_bits(g, i, 17), 2);
}

static void all_types_and_two_rasters_are_stored_in_their_own_width(void** state)
{
    const char* path = TEST_BUILD_DIR "/mdf_types.mf4";
    static const crd_raster rasters[] = {{"fast ones", 1e-3}, {"slow ones", 1}};
    const crd_recorder_options opt = {
        .path = path, .columns = all, .column_count = ALL, .rasters = rasters, .raster_count = 2};
    crd_recorder* r = NULL;
    check_ok(crd_recorder_create(*state, &opt, &r));
    check_int(crd_recorder_word(r, ALL - 1), 1);
    for (int64_t i = 0; i < 5000; i++) {
        put_all(r, i);
        if (i % 100 == 0) {
            crd_word* row = crd_recorder_begin_raster(r, 1);
            row[0].real = (double)i;
            row[1].real = 0.25 * (double)i;
            crd_recorder_end_raster(r, 1);
        }
    }
    check_ok(crd_recorder_finish(r));
    check_int(crd_recorder_rows(r), 5050);
    crd_recorder_destroy(r);
    read_mdf(path);
    check_int(file.group_count, 2);
    check_descriptions();
    check_int(file.groups[0].records, 5000);
    for (uint64_t i = 0; i < 5000; i++) {
        check_all(&file.groups[0], i);
    }
    check_int(file.groups[1].records, 50);
    for (uint64_t i = 0; i < 50; i++) {
        const float single = (float)(25 * i);
        uint32_t bits;
        memcpy(&bits, &single, 4);
        check_near(value_real(&file.groups[1], i, 0), 100.0 * (double)i, 0);
        check_int(value_bits(&file.groups[1], i, 1), bits);
    }
    forget_mdf();
}

// ---- events and attachments --------------------------------------------------------------------

static int count_events(const char* last_text)
{
    int n = 0;
    const char* text = "";
    for (uint64_t at = link_of(64, 4); at; at = link_of(at, 0), n++) {
        block(at, "EV", 5);
        text = text_at(link_of(at, 4), "TX");
        check_int(bytes[at + 65], 1); // a time
    }
    if (last_text) { check_text(text, last_text); }
    return n;
}

static void events_keep_kind_time_and_text(void** state)
{
    const char* path = TEST_BUILD_DIR "/mdf_events.mf4";
    const crd_recorder_options opt = options(path);
    crd_recorder* r = NULL;
    check_ok(crd_recorder_create(*state, &opt, &r));
    static const char* const names[] = {"start", "stop", "warning", "overrun", "error", "mark"};
    char large[400];
    memset(large, 'y', sizeof large);
    large[254] = '\xC3'; // a character of two bytes where the text is cut
    large[255] = '\xA4';
    large[399] = 0;
    for (int i = 0; i < CRD_EVENT_KIND_COUNT; i++) {
        crd_recorder_event(r, (crd_event_kind)i, 0.1 * i, i == 3 ? large : i == 4 ? "" : "what");
    }
    check_ok(crd_recorder_finish(r));
    crd_recorder_destroy(r);
    read_mdf(path);
    check_int(count_events("what"), 6);
    uint64_t at = link_of(64, 4);
    for (int i = 0; i < 6; i++, at = link_of(at, 0)) {
        check_text(text_at(link_of(at, 3), "TX"), names[i]);
        check_int(bytes[at + 64], i == 0 ? 3 : i == 1 ? 4 : 6);
        check_int(bytes[at + 67], i == 4 ? 1 : 2);
        check_near((double)number(at + 80, 8) * real_at(at + 88), 0.1 * i, 0);
        check_int(strlen(text_at(link_of(at, 4), "TX")), i == 3 ? 254 : i == 4 ? 0 : 4);
    }
    forget_mdf();
}

static void* send_events(void* r)
{
    for (int i = 0; i < 100; i++) {
        crd_recorder_event(r, CRD_EVENT_MARK, i, "from another thread");
    }
    return NULL;
}

static void events_may_come_from_any_thread(void** state)
{
    const char* path = TEST_BUILD_DIR "/mdf_threads.mf4";
    const crd_recorder_options opt = options(path);
    crd_recorder* r = NULL;
    check_ok(crd_recorder_create(*state, &opt, &r));
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        check_int(pthread_create(&threads[i], NULL, send_events, r), 0);
    }
    for (int64_t i = 0; i < 20000; i++) {
        check(record(r, i));
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    check_ok(crd_recorder_finish(r));
    crd_recorder_destroy(r);
    check_rows(path, 20000);
    check_int(count_events("from another thread"), 400);
    forget_mdf();
}

static void of_very_many_events_the_number_is_kept_and_the_stop(void** state)
{
    const char* path = TEST_BUILD_DIR "/mdf_many.mf4";
    const crd_recorder_options opt = options(path);
    crd_recorder* r = NULL;
    check_ok(crd_recorder_create(*state, &opt, &r));
    for (int i = 0; i < 10000; i++) {
        crd_recorder_event(r, CRD_EVENT_OVERRUN, i, "late");
    }
    crd_recorder_event(r, CRD_EVENT_STOP, 10000, "the end");
    check_ok(crd_recorder_finish(r));
    crd_recorder_destroy(r);
    read_mdf(path);
    check_int(count_events("5968 more events are not in this file"), 4096 - 64 + 2);
    forget_mdf();
}

static void check_attachment(uint64_t at, const char* name, const char* mime, const char* data,
                             size_t length)
{
    block(at, "AT", 4);
    check_text(text_at(link_of(at, 1), "TX"), name);
    check_text(text_at(link_of(at, 2), "TX"), mime);
    const uint64_t flags = number(at + 56, 2), packed = number(at + 88, 8);
    check_int(flags & ~UINT64_C(2), 1); // embedded; a checksum is not there
    check_int(number(at + 80, 8), length);
    check_int(number(at + 8, 8), 96 + packed);
    char* back = malloc(length + 1);
    uLongf n = length;
    if (flags & 2) {
        check_int(uncompress((Bytef*)back, &n, bytes + at + 96, packed), Z_OK);
        check(packed < length);
    } else {
        check_int(packed, length);
        memcpy(back, bytes + at + 96, length);
    }
    check(n == length && memcmp(back, data, length) == 0);
    free(back);
}

static void files_go_into_the_file_at_the_start_and_at_the_end(void** state)
{
    const char* path = TEST_BUILD_DIR "/mdf_attached.mf4";
    static char large[100000];
    for (size_t i = 0; i < sizeof large; i++) {
        large[i] = (char)("abc"[i % 3] + i / 1000 % 20);
    }
    const crd_attachment first[] = {{"system.yaml", "application/yaml", "cardan: 1\n", 10},
                                    {"large", "", large, sizeof large}};
    crd_recorder_options opt = options(path);
    opt.attachments = first;
    opt.attachment_count = 2;
    crd_recorder* r = NULL;
    check_ok(crd_recorder_create(*state, &opt, &r));
    check_ok(crd_recorder_attach(
        r, &(crd_attachment){CRD_ATTACHMENT_VERDICT, "application/json", "{}", 2}));
    check(record(r, 0));
    check_ok(crd_recorder_finish(r));
    crd_recorder_destroy(r);
    check_rows(path, 1);
    const uint64_t at = link_of(64, 3), next = link_of(at, 0), last = link_of(next, 0);
    check_attachment(at, "system.yaml", "application/yaml", "cardan: 1\n", 10);
    check_attachment(next, "large", "", large, sizeof large);
    check_attachment(last, CRD_ATTACHMENT_VERDICT, "application/json", "{}", 2);
    check_int(link_of(last, 0), 0);
    forget_mdf();
}

static void title_start_and_tool_are_in_the_head(void** state)
{
    const char* path = TEST_BUILD_DIR "/mdf_head.mf4";
    crd_recorder_options opt = options(path);
    opt.title = "a <b> & c";
    opt.started = 1234567890123456789;
    crd_recorder* r = NULL;
    check_ok(crd_recorder_create(*state, &opt, &r));
    crd_recorder_destroy(r);
    read_mdf(path);
    check_contains(text_at(link_of(64, 5), "MD"), "<TX>a &lt;b&gt; &amp; c</TX>");
    check_int(number(64 + 72, 8), 1234567890123456789);
    const size_t fh = block(link_of(64, 1), "FH", 2);
    check_contains(text_at(link_of(fh, 1), "MD"), "<tool_id>cardan</tool_id>");
    check_contains(text_at(link_of(fh, 1), "MD"), crd_version());
    forget_mdf();
}

static void the_zone_and_its_summer_time_are_told_apart(void** state)
{
    const char* path = TEST_BUILD_DIR "/mdf_zone.mf4";
    static const int64_t starts[] = {1784100000000000000, 1768400000000000000}; // July, January
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
    for (int i = 0; i < 2; i++) {
        crd_recorder_options opt = options(path);
        opt.started = starts[i];
        crd_recorder* r = NULL;
        check_ok(crd_recorder_create(*state, &opt, &r));
        crd_recorder_destroy(r);
        load(path);
        check_int(number(64 + 80, 2), 60);
        check_int(number(64 + 82, 2), i == 0 ? 60 : 0);
        check_int(bytes[64 + 84], 2); // both are valid
    }
    unsetenv("TZ");
    tzset();
    forget_mdf();
}

static void enumerations_share_a_table_only_if_their_labels_are_the_same(void** state)
{
    static const crd_label gears[] = {{1, "first"}, {2, "second"}, {3, "third"}};
    static const crd_column columns[] = {
        {.name = "m[1]", .unit = "", .description = "", .type = CRD_ENUMERATION, 0, modes, 2},
        {.name = "m[2]", .unit = "", .description = "", .type = CRD_ENUMERATION, 0, modes, 2},
        {.name = "gear", .unit = "", .description = "", .type = CRD_ENUMERATION, 0, gears, 3},
        {.name = "plain", .unit = "", .description = "", .type = CRD_ENUMERATION},
    };
    const char* path = TEST_BUILD_DIR "/mdf_labels.mf4";
    const crd_recorder_options opt = {.path = path, .columns = columns, .column_count = 4};
    crd_recorder* r = NULL;
    check_ok(crd_recorder_create(*state, &opt, &r));
    crd_recorder_destroy(r);
    read_mdf(path);
    const channel* c = file.groups[0].channels;
    check_conversion(&c[1], 2, (double[]){-2, 7}, (const char*[]){"minus two", "seven"});
    check_int(link_of(c[2].at, 4), link_of(c[1].at, 4));
    check_conversion(&c[3], 3, (double[]){1, 2, 3}, (const char*[]){"first", "second", "third"});
    check_int(link_of(c[4].at, 4), 0);
    forget_mdf();
}

// The writer of a run that computes faster than it can write is never idle.
static void a_slow_raster_does_not_wait_for_the_end_of_a_fast_run(void** state)
{
    enum { WIDE = 31, RASTERS = GROUPS - 1 }; // the more there are, the less is collected of each
    const char* path = TEST_BUILD_DIR "/mdf_busy.mf4";
    static const crd_raster rasters[RASTERS] = {{"fast", 1e-3}, {"slow", 1}, {"c", 1}, {"d", 1},
                                                {"e", 1},       {"f", 1},    {"g", 1}};
    crd_column columns[WIDE];
    crdi_field fields[WIDE];
    crd_word row[WIDE + 1] = {{0}};
    for (int i = 0; i < WIDE; i++) {
        const bool slow = i == WIDE - 1;
        columns[i] = (crd_column){
            .name = "x", .unit = "", .description = "", .type = CRD_FLOAT64, .raster = slow};
        fields[i] = (crdi_field){CRD_FLOAT64, slow, slow ? 1 : i + 1};
    }
    const size_t words[RASTERS] = {WIDE, 2, 1, 1, 1, 1, 1};
    const crdi_rows rows = {fields, WIDE, words, RASTERS};
    const crd_recorder_options opt = {.path = path,
                                      .columns = columns,
                                      .column_count = WIDE,
                                      .rasters = rasters,
                                      .raster_count = RASTERS};
    crdi_sink* s = NULL;
    check_ok(crdi_mdf_sink(*state, &opt, &rows, &s));
    s->ops->start(s);
    s->ops->row(s, 1, row);
    for (int64_t i = 0; i < 45000; i++) { // about 11 MB
        row[0].real = (double)i;
        s->ops->row(s, 0, row);
    }
    read_mdf(path);
    check_int(file.groups[1].records, 1);
    s->ops->finish(s);
    check_int(s->error, 0);
    s->ops->destroy(s);
    forget_mdf();
}

// ---- what can go wrong -------------------------------------------------------------------------

// In a child process: a file may have `limit` bytes. Returns the child's exit code.
static int run_limited(const char* path, rlim_t limit)
{
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit most = {limit, limit};
        setrlimit(RLIMIT_FSIZE, &most);
        crd_context* ctx = crd_context_create(NULL);
        const crd_recorder_options opt = options(path);
        crd_recorder* r = NULL;
        if (crd_recorder_create(ctx, &opt, &r) < 0) { _exit(2); }
        int64_t i = 0;
        while (i < 10000000 && record(r, i)) {
            i++;
        }
        crd_recorder_event(r, CRD_EVENT_STOP, 0, "does not fit");
        const crd_status st = crd_recorder_finish(r);
        char told[64];
        snprintf(told, sizeof told, "%s; the file holds the first %lld of", strerror(EFBIG),
                 (long long)crd_recorder_rows(r));
        const bool good = strstr(crd_error_text(ctx), told);
        crd_recorder_destroy(r);
        crd_context_destroy(ctx);
        _exit(i == 10000000 ? 3 : st != CRD_E_IO ? 4 : !good ? 5 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void a_full_disk_stops_the_run_and_leaves_a_finished_file(void** state)
{
    const char* path = TEST_BUILD_DIR "/mdf_limited.mf4";
    check_int(run_limited(path, 500), 2); // create says so
    static const rlim_t limits[] = {3000, 4 << 20, 10000003};
    const int count = threaded ? 2 : 3;
    for (int i = 0; i < count; i++) {
        check_int(run_limited(path, limits[i]), 0);
        struct stat info;
        check(stat(path, &info) == 0);
        check(info.st_size <= (off_t)limits[i]);
        check_int(info.st_size % 8, 0); // without the half of a block that did not fit
        check_rows(path, -1);
        check(file.finished);
        check_int(count_events(NULL), 0);
        if (limits[i] > 5000000) { check(file.groups[0].records > 100000); }
    }
    forget_mdf();
}

static void a_place_that_cannot_be_written_is_refused(void** state)
{
    crd_recorder* r = NULL;
    crd_recorder_options opt = options(TEST_BUILD_DIR "/no/such/folder/x.mf4");
    check_status(crd_recorder_create(*state, &opt, &r), CRD_E_IO);
    check_contains(crd_error_text(*state), "the folder has to be there");
    static const crd_raster rasters[] = {{"a", 1}, {"b", 1}};
    opt = options(TEST_BUILD_DIR "/x.csv");
    opt.rasters = rasters;
    opt.raster_count = 2;
    check_status(crd_recorder_create(*state, &opt, &r), CRD_E_UNSUPPORTED);
    check_contains(crd_error_text(*state), ".mf4");
    static const crd_column lost[] = {
        {.name = "x", .unit = "", .description = "", .type = CRD_FLOAT64, .raster = 2}};
    opt.path = TEST_BUILD_DIR "/x.mf4";
    opt.columns = lost;
    opt.column_count = 1;
    check_status(crd_recorder_create(*state, &opt, &r), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "'x' is in raster 2, expected 0 to 1");
    check(!r);
    check(crd_recorder_has_rasters("a.MF4") && !crd_recorder_has_rasters("a.mat"));
}

// The rows that the file's CG tells of, read while it is written.
static int64_t counted_rows(const char* path)
{
    load(path);
    const uint64_t dg = link_of(64, 0);
    return (int64_t)number(link_of(dg, 1) + 80, 8);
}

static void rows_and_events_reach_the_file_of_a_slow_run_that_is_killed(void** state)
{
    const char* path = TEST_BUILD_DIR "/mdf_killed.mf4";
    unlink(path);
    int ends[2];
    check(pipe(ends) == 0);
    const pid_t child = fork();
    if (child == 0) {
        crd_context* ctx = crd_context_create(NULL);
        const crd_recorder_options opt = options(path);
        crd_recorder* r = NULL;
        if (crd_recorder_create(ctx, &opt, &r) < 0) { _exit(2); }
        crd_recorder_event(r, CRD_EVENT_START, 0, "go");
        for (int64_t i = 0; i < 20; i++) {
            // Ten now, ten after a flush: a list of two.
            while (i == 10 && counted_rows(path) < 10) {}
            if (!record(r, i)) { _exit(3); }
        }
        while (counted_rows(path) < 20) { // the test's time limit guards this
        }
        if (write(ends[1], "x", 1) != 1) { _exit(4); }
        pause();
        _exit(5);
    }
    char c = 0;
    check(read(ends[0], &c, 1) == 1);
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    check(WIFSIGNALED(status));
    close(ends[0]);
    close(ends[1]);
    check_rows(path, 20);
    check(!file.finished);
    check(file.groups[0].chunks >= 2);
    check_int(count_events("go"), 1);
    forget_mdf();
}

// Every pwrite of this program comes here (see CMakeLists.txt): at the `kill_at`-th the process
// dies, with half of a large write done. A link is 8 bytes and is there or not.
static atomic_int write_count;
static int kill_at = -1;

ssize_t __real_pwrite(int fd, const void* p, size_t n, off_t offset);
ssize_t __wrap_pwrite(int fd, const void* p, size_t n, off_t offset);

ssize_t __wrap_pwrite(int fd, const void* p, size_t n, off_t offset)
{
    if (atomic_fetch_add(&write_count, 1) == kill_at) {
        if (n > 64) { __real_pwrite(fd, p, n / 2, offset); }
        kill(getpid(), SIGKILL);
    }
    return __real_pwrite(fd, p, n, offset);
}

// true: it was killed
static bool run_and_die(const char* path, int at)
{
    const pid_t child = fork();
    if (child == 0) {
        kill_at = at;
        write_count = 0;
        crd_context* ctx = crd_context_create(NULL);
        const crd_recorder_options opt = options(path);
        crd_recorder* r = NULL;
        if (crd_recorder_create(ctx, &opt, &r) < 0) { _exit(2); }
        crd_recorder_event(r, CRD_EVENT_START, 0, "go");
        for (int64_t i = 0; i < 360000; i++) { // three chunks
            if (!record(r, i)) { _exit(3); }
        }
        crd_recorder_event(r, CRD_EVENT_STOP, 0, "stop");
        const crd_attachment a = {CRD_ATTACHMENT_VERDICT, "application/json", "{}", 2};
        if (crd_recorder_attach(r, &a) < 0 || crd_recorder_finish(r) < 0) { _exit(4); }
        crd_recorder_destroy(r);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    check(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

static void a_file_can_be_read_whichever_write_was_the_last(void** state)
{
    const char* path = TEST_BUILD_DIR "/mdf_dies.mf4";
    int at = 1; // the 0th is the head: create had not returned
    const int stride = threaded ? 8 : 1;
    for (;; at += stride) {
        const bool killed = run_and_die(path, at);
        check_rows(path, -1);
        check(file.finished == !killed);
        check(count_events(NULL) <= 2);
        for (uint64_t a = link_of(64, 3); a; a = link_of(a, 0)) {
            check_attachment(a, CRD_ATTACHMENT_VERDICT, "application/json", "{}", 2);
        }
        if (!killed) { break; }
    }
    check_int(file.groups[0].records, 360000);
    check(at > 12);
    forget_mdf();
}

static void nothing_is_allocated_between_create_and_destroy(void** state)
{
    const crd_recorder_options opt = options(TEST_BUILD_DIR "/mdf_zero.mf4");
    crd_recorder* r = NULL;
    check_ok(crd_recorder_create(*state, &opt, &r));
    const int64_t before = check_memory.allocations, live = check_memory.live;
    for (int64_t i = 0; i < 300000; i++) {
        check(record(r, i));
    }
    crd_recorder_event(r, CRD_EVENT_STOP, 0, "end");
    check_ok(crd_recorder_finish(r));
    check_int(check_memory.allocations, before);
    check_int(check_memory.live, live);
    crd_recorder_destroy(r);
}

static void every_allocation_may_fail(void** state)
{
    check_allocator a;
    crd_context* ctx = check_context(&a);
    static const crd_raster rasters[] = {{"fast ones", 1e-3}, {"slow ones", 1}};
    static char text[500];
    const crd_attachment attachment = {"a", "text/plain", text, sizeof text};
    const crd_recorder_options opt = {.path = TEST_BUILD_DIR "/mdf_memory.mf4",
                                      .columns = all,
                                      .column_count = ALL,
                                      .rasters = rasters,
                                      .raster_count = 2,
                                      .attachments = &attachment,
                                      .attachment_count = 1,
                                      .title = "title"};
    const int64_t first = a.allocations, live = a.live;
    for (int once = 0; once < (threaded ? 1 : 2); once++) {
        int failures = 0;
        for (;; failures++) {
            a.allocations = first;
            a.fail_at = first + failures;
            a.once = once;
            crd_recorder* r = NULL;
            crd_status st = crd_recorder_create(ctx, &opt, &r);
            if (st == CRD_OK) { st = crd_recorder_attach(r, &attachment); }
            crd_recorder_destroy(r);
            check_int(a.live, live);
            if (st == CRD_OK) { break; }
            check_status(st, CRD_E_MEMORY);
        }
        check(failures >= 30);
    }
    a.fail_at = -1;
    crd_context_destroy(ctx);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, check_count_up, check_count_down)
    const struct CMUnitTest tests[] = {
        TEST(every_row_is_in_the_file_bit_by_bit),
        TEST(a_file_without_columns_has_the_times),
        TEST(all_types_and_two_rasters_are_stored_in_their_own_width),
        TEST(events_keep_kind_time_and_text),
        TEST(events_may_come_from_any_thread),
        TEST(of_very_many_events_the_number_is_kept_and_the_stop),
        TEST(files_go_into_the_file_at_the_start_and_at_the_end),
        TEST(title_start_and_tool_are_in_the_head),
        TEST(the_zone_and_its_summer_time_are_told_apart),
        TEST(enumerations_share_a_table_only_if_their_labels_are_the_same),
        TEST(a_slow_raster_does_not_wait_for_the_end_of_a_fast_run),
        TEST(a_full_disk_stops_the_run_and_leaves_a_finished_file),
        TEST(a_place_that_cannot_be_written_is_refused),
        TEST(rows_and_events_reach_the_file_of_a_slow_run_that_is_killed),
        TEST(a_file_can_be_read_whichever_write_was_the_last),
        TEST(nothing_is_allocated_between_create_and_destroy),
        TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
