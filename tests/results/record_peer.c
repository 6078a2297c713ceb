// record_peer MODE PATH: a recording whose every value a test in another language can compute.
//
//   finish    20 000 rows at 1 ms, 2 000 at 10 ms, none and one irregular; finished
//   endless   the same rows until it is killed; a byte on stdout for every 1000
//   idle      300 rows, then a byte on stdout and nothing until it is killed
//   one       one raster only, for formats that have no more; 20 000 rows; finished
//   one5      the same as MAT version 5, one73 as 7.3
//   mend      nothing is recorded: a file that somebody else has cut off is finished
#include "cardan/results.h"
#include "shared/results.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const crd_label gears[] = {{3, "drive"}, {-1, "reverse"}, {0, "neutral <&> ä"}};

static const crd_column columns[] = {
    {.name = "unit.x", .unit = "N.m", .description = "a seventh, Größe", .type = CRD_FLOAT64},
    {.name = "unit.noise", .unit = "1", .description = "", .type = CRD_FLOAT64},
    {.name = "unit.f32", .unit = "rad/s", .description = "", .type = CRD_FLOAT32},
    {.name = "i8", .unit = "", .description = "", .type = CRD_INT8},
    {.name = "u8", .unit = "", .description = "", .type = CRD_UINT8},
    {.name = "i16", .unit = "", .description = "", .type = CRD_INT16},
    {.name = "u16", .unit = "", .description = "", .type = CRD_UINT16},
    {.name = "i32", .unit = "", .description = "", .type = CRD_INT32},
    {.name = "u32", .unit = "", .description = "", .type = CRD_UINT32},
    {.name = "i64", .unit = "", .description = "", .type = CRD_INT64},
    {.name = "u64", .unit = "", .description = "", .type = CRD_UINT64},
    {.name = "on", .unit = "", .description = "a Boolean", .type = CRD_BOOLEAN},
    {.name = "gear",
     .unit = "",
     .description = "",
     .type = CRD_ENUMERATION,
     .labels = gears,
     .label_count = 3},
    {.name = "text", .unit = "", .description = "", .type = CRD_STRING},
    {.name = "raw", .unit = "", .description = "", .type = CRD_BINARY},
    {.name = "v[1]", .unit = "m", .description = "", .type = CRD_FLOAT64},
    {.name = "v[2]", .unit = "m", .description = "", .type = CRD_FLOAT64},
    {.name = "time", .unit = "h", .description = "has the name of the master", .type = CRD_FLOAT64},
    // the second raster
    {.name = "slow.x", .unit = "K", .description = "", .type = CRD_FLOAT64, .raster = 1},
    {.name = "slow.on", .unit = "", .description = "", .type = CRD_BOOLEAN, .raster = 1},
    // the third and the fourth
    {.name = "never", .unit = "", .description = "", .type = CRD_INT32, .raster = 2},
    {.name = "once", .unit = "", .description = "", .type = CRD_INT32, .raster = 3},
};
enum { FIRST = 18, ALL = sizeof columns / sizeof *columns };

static const crd_raster rasters[] = {{"1 ms", 1e-3}, {"10 ms", 1e-2}, {"never", 0}, {"once", 0}};

static uint64_t noise(uint64_t i)
{
    uint64_t x = (i + 1) * 0x9E3779B97F4A7C15u;
    x ^= x >> 29;
    x *= 0xBF58476D1CE4E5B9u;
    return x ^ x >> 32;
}

static bool put_row(crd_recorder* r, int64_t i)
{
    crd_word* row = crd_recorder_begin_raster(r, 0);
    if (!row) { return false; }
    const uint64_t n = noise((uint64_t)i);
    char text[64];
    row[0].real = (double)i * 1e-3;
    row[crd_recorder_word(r, 0)].real = (double)i / 7 - 3;
    row[crd_recorder_word(r, 1)].real = (double)(n >> 11) * 0x1p-53 - 0.5;
    row[crd_recorder_word(r, 2)].real = (float)((double)i / 3);
    row[crd_recorder_word(r, 3)].integer = (int8_t)i;
    row[crd_recorder_word(r, 4)].integer = (uint8_t)i;
    row[crd_recorder_word(r, 5)].integer = (int16_t)(7 * i);
    row[crd_recorder_word(r, 6)].integer = (uint16_t)(7 * i);
    row[crd_recorder_word(r, 7)].integer = (int32_t)n;
    row[crd_recorder_word(r, 8)].integer = (uint32_t)n;
    row[crd_recorder_word(r, 9)].integer = (int64_t)n;
    row[crd_recorder_word(r, 10)].integer = (int64_t)n; // by its bits
    row[crd_recorder_word(r, 11)].integer = i / 100 % 2;
    row[crd_recorder_word(r, 12)].integer = i / 50 % 5 - 1; // 1 and 2 have no name
    snprintf(text, sizeof text, "%lld ä", (long long)(i / 10));
    crd_word_set_bytes(&row[crd_recorder_word(r, 13)], text, i % 10 == 9 ? 0 : strlen(text));
    crd_word_set_bytes(&row[crd_recorder_word(r, 14)], &n, (size_t)(i % 9));
    row[crd_recorder_word(r, 15)].real = 4.25;
    row[crd_recorder_word(r, 16)].real = i < 1000 ? -1 : 1e300;
    row[crd_recorder_word(r, 17)].real = (double)i;
    crd_recorder_end_raster(r, 0);
    return true;
}

static bool put_slow_row(crd_recorder* r, int64_t i)
{
    crd_word* row = crd_recorder_begin_raster(r, 1);
    if (!row) { return false; }
    row[0].real = (double)i * 1e-2;
    row[1].real = 300 + (double)i / 9;
    row[2].integer = i % 3 == 0;
    crd_recorder_end_raster(r, 1);
    return true;
}

static bool put_rows(crd_recorder* r, int64_t count, bool all)
{
    for (int64_t i = 0; i < count; i++) {
        if (!put_row(r, i)) { return false; }
        if (all && i % 10 == 0 && !put_slow_row(r, i / 10)) { return false; }
        if (all && i == 5) {
            crd_word* row = crd_recorder_begin_raster(r, 3);
            row[0].real = 0.005;
            row[1].integer = -7;
            crd_recorder_end_raster(r, 3);
        }
        if (i == 1000) { crd_recorder_event(r, CRD_EVENT_WARNING, 1, "x is large, Größe <7>"); }
        if (i % 1000 == 999 && count == INT64_MAX && write(STDOUT_FILENO, "x", 1) != 1) {
            return false;
        }
    }
    return true;
}

int main(int argc, char** argv)
{
    if (argc != 3) { return 2; }
    const char* mode = argv[1];
    const bool one = strncmp(mode, "one", 3) == 0, endless = strcmp(mode, "endless") == 0;
    const bool idle = strcmp(mode, "idle") == 0;
    char large[5000];
    for (size_t i = 0; i < sizeof large; i++) {
        large[i] = "{\"key\": 12}\n"[i % 12];
    }
    const crd_attachment attachments[] = {
        {"system.yaml", "application/yaml", "cardan: 1\n# ä\n", 15},
        {CRD_ATTACHMENT_RUN, "application/json", large, sizeof large},
        {"empty.txt", "text/plain", "", 0},
    };
    crd_context* ctx = crd_context_create(NULL);
    if (strcmp(mode, "mend") == 0) {
        const crd_status mended = crdi_mdf_finish(ctx, argv[2]);
        crd_context_destroy(ctx);
        return mended < 0;
    }
    const crd_recorder_options opt = {
        .path = argv[2],
        .columns = columns,
        .column_count = one ? FIRST : ALL,
        .rasters = rasters,
        .raster_count = one ? 1 : 4,
        .attachments = attachments,
        .attachment_count = 3,
        .started = 1700000000123456789,
        .title = "a <test> & more",
        .mat_version = strcmp(mode, "one5") == 0    ? 5
                       : strcmp(mode, "one73") == 0 ? 73
                                                    : 0,
    };
    crd_recorder* r = NULL;
    crd_status st = crd_recorder_create(ctx, &opt, &r);
    if (st == CRD_OK) {
        crd_recorder_event(r, CRD_EVENT_START, 0, "");
        if (put_rows(r, endless ? INT64_MAX : idle ? 300 : 20000, !one)) {
            if (idle && write(STDOUT_FILENO, "x", 1) == 1) { pause(); }
            crd_recorder_event(r, CRD_EVENT_OVERRUN, 12.5, "step 12500 took 3 ms");
            crd_recorder_event(r, CRD_EVENT_ERROR, 19.75, "it broke");
            crd_recorder_event(r, CRD_EVENT_STOP, 19.999, "the end");
        }
        const crd_attachment verdict = {CRD_ATTACHMENT_VERDICT, "application/json",
                                        "{\"ok\": true}", 12};
        st = crd_recorder_attach(r, &verdict);
        if (st == CRD_OK) { st = crd_recorder_finish(r); }
    }
    if (st < 0) { fprintf(stderr, "record_peer: %s\n", crd_error_text(ctx)); }
    crd_recorder_destroy(r);
    crd_context_destroy(ctx);
    return st < 0;
}
