// results/read: an MF4 file of 200 signals, plain and as the recorder writes it (transposed and
// deflated), walked through with a cursor. The floor reads the plain file with read(2) and copies
// every byte once more. BENCH_MB in the environment is the size of the records, 128 unless told.
#include "benchmark.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIGNALS = 200, WORDS = SIGNALS + 1, REPEATS = 5, CHUNK = 1 << 20 };

static const char plain_path[] = BENCHMARK_SCRATCH "/read_plain.mf4";
static const char packed_path[] = BENCHMARK_SCRATCH "/read_packed.mf4";

static void fill_row(double* row, int64_t k)
{
    row[0] = 1e-3 * (double)k;
    for (int i = 1; i < WORDS; i++) {
        row[i] = (i % 5 + 1) * sin(1e-3 * (double)k * (i % 17 + 1) + i);
    }
}

static void must(bool good, const char* what)
{
    if (!good) {
        perror(what);
        exit(1);
    }
}

// ---- the plain file, block after block ---------------------------------------------------------

static uint64_t begin_block(FILE* f, const char* tag, uint64_t length, uint64_t links)
{
    static const char zeros[8];
    uint64_t at = (uint64_t)ftello(f);
    fwrite(zeros, 1, (8 - at % 8) % 8, f);
    at = (uint64_t)ftello(f);
    const uint64_t head[] = {length, links};
    char name[8] = {'#', '#', tag[0], tag[1]};
    fwrite(name, 1, 8, f);
    fwrite(head, 8, 2, f);
    return at;
}

static void write_links(FILE* f, const uint64_t* links, size_t n)
{
    fwrite(links, 8, n, f);
}

// The channels stand behind each other with a fixed distance, so that links are known beforehand.
static void write_channels(FILE* f, uint64_t first)
{
    for (int i = 0; i < WORDS; i++) {
        const uint64_t at = first + (uint64_t)i * (160 + 40);
        const uint64_t links[8] = {i + 1 < WORDS ? at + 200 : 0, 0, at + 160};
        uint32_t data[18] = {i ? 0x00040000 : 0x00040102, (uint32_t)(8 * i), 64};
        char name[16] = "";
        snprintf(name, sizeof name, "signal %d", i);
        must(begin_block(f, "CN", 160, 8) == at, "place of a channel");
        write_links(f, links, 8);
        fwrite(data, 1, sizeof data, f);
        begin_block(f, "TX", 40, 0);
        fwrite(name, 1, sizeof name, f);
    }
}

static void write_plain(int64_t rows)
{
    FILE* f = fopen(plain_path, "wb");
    must(f, plain_path);
    char id[64] = "MDF     4.10    bench   ";
    id[28] = (char)(410 & 255);
    id[29] = 410 >> 8;
    fwrite(id, 1, sizeof id, f);
    const uint64_t dg = 64 + 104, cg = dg + 64, cn = cg + 104, dt = cn + (uint64_t)WORDS * 200,
                   bytes = (uint64_t)rows * WORDS * 8;
    const uint64_t hd_links[10] = {dg}, dg_links[5] = {0, cg, dt};
    const uint64_t cg_links[10] = {0, cn, 0, 0, 0, 0, 0, (uint64_t)rows, 0, WORDS * 8};
    begin_block(f, "HD", 104, 6);
    write_links(f, hd_links, 10);
    begin_block(f, "DG", 64, 4);
    write_links(f, dg_links, 5);
    begin_block(f, "CG", 104, 6);
    write_links(f, cg_links, 10);
    write_channels(f, cn);
    must(begin_block(f, "DT", 24 + bytes, 0) == dt, "place of the data");
    for (int64_t k = 0; k < rows; k++) {
        double row[WORDS];
        fill_row(row, k);
        fwrite(row, sizeof *row, WORDS, f);
    }
    must(!ferror(f) && fclose(f) == 0, plain_path);
}

static void write_packed(int64_t rows)
{
    crd_context* ctx = crd_context_create(NULL);
    char names[SIGNALS][16];
    crd_column columns[SIGNALS];
    for (int i = 0; i < SIGNALS; i++) {
        snprintf(names[i], sizeof names[i], "signal %d", i + 1);
        columns[i] = (crd_column){.name = names[i], .unit = "", .description = ""};
    }
    const crd_recorder_options opt = {
        .path = packed_path, .columns = columns, .column_count = SIGNALS};
    crd_recorder* r = NULL;
    benchmark_must(ctx, crd_recorder_create(ctx, &opt, &r));
    for (int64_t k = 0; k < rows; k++) {
        crd_word* w = crd_recorder_begin(r);
        must(w, packed_path);
        fill_row(&w->real, k);
        crd_recorder_end(r);
    }
    benchmark_must(ctx, crd_recorder_finish(r));
    crd_recorder_destroy(r);
    crd_context_destroy(ctx);
}

// ---- reading -----------------------------------------------------------------------------------

static double read_cursor(const char* path, double* sum)
{
    crd_context* ctx = crd_context_create(NULL);
    const int64_t begin = crdi_now_ns();
    crd_recording* r = NULL;
    crd_cursor* c = NULL;
    int signals[SIGNALS];
    for (int i = 0; i < SIGNALS; i++) {
        signals[i] = i;
    }
    benchmark_must(ctx, crd_recording_open(ctx, path, &r));
    benchmark_must(ctx, crd_cursor_open(r, 0, signals, SIGNALS, &c));
    for (;;) {
        crd_block b;
        benchmark_must(ctx, crd_cursor_next(c, &b));
        if (b.rows == 0) { break; }
        for (int i = 0; i < SIGNALS; i++) {
            *sum += b.values[i][b.rows - 1];
        }
    }
    crd_cursor_close(c);
    crd_recording_close(r);
    const double s = 1e-9 * (double)(crdi_now_ns() - begin);
    crd_context_destroy(ctx);
    return s;
}

static double read_floor(char* buffer, char* copy, double* sum)
{
    const int64_t begin = crdi_now_ns();
    const int fd = open(plain_path, O_RDONLY);
    must(fd >= 0, plain_path);
    for (;;) {
        const ssize_t n = read(fd, buffer, CHUNK);
        must(n >= 0, plain_path);
        if (n == 0) { break; }
        memcpy(copy, buffer, (size_t)n);
        *sum += copy[n / 2];
    }
    close(fd);
    return 1e-9 * (double)(crdi_now_ns() - begin);
}

static void read_case(benchmark* b)
{
    const char* text = getenv("BENCH_MB");
    const double mb = text && atof(text) > 0 ? atof(text) : 128;
    const int64_t rows = (int64_t)(mb * 1e6 / (WORDS * 8)) + 1;
    const double bytes = (double)rows * WORDS * 8;
    write_plain(rows);
    write_packed(rows);
    char *buffer = malloc(CHUNK), *copy = malloc(CHUNK);
    must(buffer && copy, "memory");
    double plain = INFINITY, packed = INFINITY, floor = INFINITY, sum = 0;
    for (int i = 0; i < REPEATS; i++) {
        floor = fmin(floor, read_floor(buffer, copy, &sum));
        plain = fmin(plain, read_cursor(plain_path, &sum));
        packed = fmin(packed, read_cursor(packed_path, &sum));
    }
    benchmark_report(b, "results/read/plain", plain, "s", floor, 8,
                     "%.0f MB of records: %.0f MB/s, read and copy %.0f MB/s%s", bytes / 1e6,
                     1e-6 * bytes / plain, 1e-6 * bytes / floor, isnan(sum) ? "!" : "");
    benchmark_report(b, "results/read/deflated", packed, "s", floor, 0,
                     "%.0f MB of records: %.0f MB/s", bytes / 1e6, 1e-6 * bytes / packed);
    benchmark_report(b, "results/read/300MB/s", packed, "s", bytes / 300e6, 1,
                     "deflated, against 300 MB of records a second");
    free(buffer);
    free(copy);
    remove(plain_path);
    remove(packed_path);
}

const benchmark_case benchmark_read_cases[] = {{"results/read", read_case}, {NULL, NULL}};
