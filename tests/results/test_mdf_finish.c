// A file that was being written, as it is after each of the writer's writes and cut off at
// bytes all over it: finished, it opens, and its rows are whole and as many as there were.
#include "check.h"
#include "results/mdf_write.h"
#include "shared/results.h"

#include <stdio.h>
#include <unistd.h>

#define FILE_PATH TEST_BUILD_DIR "/mdf_finish.mf4"

enum { GROUPS = 2, MOST = 64 << 10, WRITES = 200, CHUNKS = 40, HOSTILE = 2000 };

// ---- the writer's writes -----------------------------------------------------------------------

static struct {
    size_t at, length;
    uint8_t bytes[4096];
} writes[WRITES];
static int write_count;
static bool noting;

ssize_t __real_pwrite(int fd, const void* p, size_t n, off_t offset);
ssize_t __wrap_pwrite(int fd, const void* p, size_t n, off_t offset);

ssize_t __wrap_pwrite(int fd, const void* p, size_t n, off_t offset)
{
    if (noting) {
        check(write_count < WRITES && n <= sizeof writes->bytes);
        writes[write_count].at = (size_t)offset;
        writes[write_count].length = n;
        memcpy(writes[write_count++].bytes, p, n);
    }
    return __real_pwrite(fd, p, n, offset);
}

static uint8_t image[MOST]; // of the file
static size_t size;

static void apply(int i, size_t length)
{
    check(writes[i].at + length <= MOST);
    memcpy(image + writes[i].at, writes[i].bytes, length);
    if (writes[i].at + length > size) { size = writes[i].at + length; }
}

static void apply_first(int count)
{
    memset(image, 0, sizeof image);
    size = 0;
    for (int i = 0; i < count; i++) {
        apply(i, writes[i].length);
    }
}

// ---- a recording -------------------------------------------------------------------------------

static struct {
    int group, write; // which writes it; the next one hangs it on
    int64_t rows;     // of its group, with it
} chunks[CHUNKS];
static int chunk_count;
static int64_t rows_put[GROUPS];

static double value_of(int group, int64_t row)
{
    return group == 0 ? sin((double)row) : (double)(row % 100);
}

static void put_rows(crdi_sink* s, int group, int count)
{
    for (int i = 0; i < count; i++, rows_put[group]++) {
        crd_word row[3] = {{.real = (double)rows_put[group] * 1e-3},
                           {.real = value_of(group, rows_put[group])},
                           {.integer = rows_put[group] % 7}};
        s->ops->row(s, group, row);
    }
    if (count == 0) { return; }
    // Each group's are three writes: the chunk, the link to it, the number of records.
    const int before = chunk_count && chunks[chunk_count - 1].write >= write_count ? 3 : 0;
    check(chunk_count < CHUNKS);
    chunks[chunk_count].group = group;
    chunks[chunk_count].write = write_count + before;
    chunks[chunk_count++].rows = rows_put[group];
}

static void write_recording(crd_context* ctx)
{
    static const crd_column columns[] = {
        {.name = "a", .unit = "m", .description = "", .type = CRD_FLOAT64},
        {.name = "n", .unit = "", .description = "a text", .type = CRD_INT16},
        {.name = "b", .unit = "", .description = "", .type = CRD_FLOAT32, .raster = 1}};
    static const crd_raster rasters[] = {{"fast", 1e-3}, {"slow", 0}};
    static const crdi_field fields[] = {
        {CRD_FLOAT64, 0, 1}, {CRD_INT16, 0, 2}, {CRD_FLOAT32, 1, 1}};
    static const size_t words[] = {3, 2};
    static const crdi_rows rows = {fields, 3, words, GROUPS};
    static const crd_attachment first = {"a.yaml", "text/plain", "a: 1", 4};
    const crd_recorder_options opt = {.path = FILE_PATH,
                                      .columns = columns,
                                      .column_count = 3,
                                      .rasters = rasters,
                                      .raster_count = GROUPS,
                                      .title = "title"};
    crdi_sink* s = NULL;
    write_count = chunk_count = 0;
    memset(rows_put, 0, sizeof rows_put);
    check_ok(crdi_mdf_sink(ctx, &opt, &rows, &s));
    check_ok(s->ops->attach(s, &first));
    noting = true;
    s->ops->start(s);
    s->ops->event(s, &(crdi_event){CRD_EVENT_START, 0, ""});
    static const int counts[][GROUPS] = {{5, 3}, {1, 0}, {64, 2}, {0, 70}, {129, 1}, {3, 3}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        put_rows(s, 0, counts[i][0]);
        put_rows(s, 1, counts[i][1]);
        s->ops->flush(s);
        s->ops->event(s, &(crdi_event){CRD_EVENT_MARK, (double)i, "marked"});
    }
    check_ok(s->ops->attach(s, &first));
    s->ops->finish(s);
    noting = false;
    s->ops->destroy(s);
    for (int i = 0; i < chunk_count; i++) { // as it was said above
        check_int(writes[chunks[i].write + 1].length, 8);
        check_int(
            memcmp(writes[chunks[i].write + 1].bytes, &(uint64_t){writes[chunks[i].write].at}, 8),
            0);
    }
}

// ---- finishing it ------------------------------------------------------------------------------

static void write_image(void)
{
    FILE* f = fopen(FILE_PATH, "wb");
    check(f && fwrite(image, 1, size, f) == size && fclose(f) == 0);
}

static bool image_is_there(void)
{
    static uint8_t now[MOST];
    FILE* f = fopen(FILE_PATH, "rb");
    const size_t n = fread(now, 1, sizeof now, f);
    fclose(f);
    return n == size && memcmp(now, image, size) == 0;
}

static int64_t check_values(crd_recording* r, int group)
{
    const crd_group_info* g = &crd_recording_describe(r)->groups[group];
    const int signal = g->first_signal;
    crd_cursor* c = NULL;
    crd_block b;
    int64_t rows = 0;
    check_ok(crd_cursor_open(r, group, &signal, 1, &c));
    for (;;) {
        check_ok(crd_cursor_next(c, &b));
        if (b.rows == 0) { break; }
        for (int64_t i = 0; i < b.rows; i++, rows++) {
            check_near(b.time[i], (double)rows * 1e-3, 0);
            check_near(b.values[0][i], value_of(group, rows), 0);
        }
    }
    check_int(rows, g->rows);
    crd_cursor_close(c);
    return rows;
}

static void check_finished(crd_context* ctx, const int64_t least[GROUPS],
                           const int64_t most[GROUPS])
{
    write_image();
    check_ok(crdi_mdf_finish(ctx, FILE_PATH));
    crd_recording* r = NULL;
    check_ok(crd_recording_open(ctx, FILE_PATH, &r));
    const crd_recording_info* info = crd_recording_describe(r);
    check(!info->unfinished && info->group_count == GROUPS && info->event_count <= 7);
    for (int g = 0; g < GROUPS; g++) {
        const int64_t rows = check_values(r, g);
        if (rows < least[g] || rows > most[g]) {
            fail_msg("%zu bytes: %lld rows of group %d, expected %lld to %lld", size,
                     (long long)rows, g, (long long)least[g], (long long)most[g]);
        }
    }
    for (int i = 0; i < info->attachment_count; i++) {
        char* data = NULL;
        size_t length = 0;
        check_ok(crd_recording_attachment(r, i, &data, &length));
        check_text(data, "a: 1");
        crd_free(ctx, data);
    }
    crd_recording_close(r);
}

static bool is_refused(crd_context* ctx)
{
    write_image();
    if (crdi_mdf_finish(ctx, FILE_PATH) == CRD_OK) { return false; }
    check_contains(crd_error_text(ctx), "mdf_finish.mf4 cannot be finished and stays as it is");
    check(image_is_there());
    return true;
}

static void whichever_write_was_the_last_the_rows_are_there(void** state)
{
    write_recording(*state);
    for (int i = 1; i < write_count; i++) { // the last one is the end of an undisturbed file
        int64_t rows[GROUPS] = {0};
        for (int k = 0; k < chunk_count; k++) {
            if (chunks[k].write + 1 < i) { rows[chunks[k].group] = chunks[k].rows; }
        }
        apply_first(i);
        check_finished(*state, rows, rows);
        if (writes[i].length <= 64) { continue; } // a link, the first words: there or not
        for (size_t part = 1; part < writes[i].length; part += 29) {
            apply_first(i);
            apply(i, part);
            check_finished(*state, rows, rows);
        }
    }
}

// The disk has lost the end, which links lead to.
static void cut_off_anywhere_it_ends_with_the_last_whole_chunk(void** state)
{
    write_recording(*state);
    apply_first(write_count - 1);
    const size_t whole = size;
    for (size_t length = 0; length < whole; length += 5) {
        int64_t least[GROUPS] = {0}, most[GROUPS] = {0};
        for (int k = 0; k < chunk_count; k++) {
            const size_t end = writes[chunks[k].write].at + writes[chunks[k].write].length;
            if (end <= length) { least[chunks[k].group] = chunks[k].rows; }
            if (end <= length + 7) {
                most[chunks[k].group] = chunks[k].rows;
            } // without its padding
        }
        apply_first(write_count - 1);
        size = length;
        if (length >= writes[0].length) {
            check_finished(*state, least, most);
        } else if (!is_refused(*state)) { // names of events that did not come are not missed
            check_finished(*state, least, least);
        }
    }
}

static void what_is_finished_or_not_ours_stays_as_it_is(void** state)
{
    write_recording(*state);
    apply_first(write_count);
    write_image();
    check_ok(crdi_mdf_finish(*state, FILE_PATH));
    check(image_is_there());
    size = (size_t)snprintf((char*)image, sizeof image, "time,a\n0,1\n");
    check(is_refused(*state));
    size = 0;
    check(is_refused(*state));
    unlink(FILE_PATH);
    check_status(crdi_mdf_finish(*state, FILE_PATH), CRD_E_IO);
    check_contains(crd_error_text(*state), "No such file");
}

static uint64_t chance = 1;
static uint64_t draw(uint64_t below)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return chance % below;
}

static void change_something(void)
{
    const uint64_t at = CRDI_MDF_ID_SIZE + draw(size - CRDI_MDF_ID_SIZE - 8);
    if (draw(2)) {
        image[at] = (uint8_t)draw(256);
    } else { // a link, a length or a number
        crdi_mdf_set_u64(image + (at & ~UINT64_C(7)),
                         draw(3) ? draw(size) & ~UINT64_C(7) : draw(-1));
    }
}

static void hostile_bytes_are_finished_or_stay_as_they_are(void** state)
{
    write_recording(*state);
    int finished = 0, opened = 0;
    for (int i = 0; i < HOSTILE; i++) {
        apply_first(write_count - 1);
        if (draw(4) == 0) { size = writes[0].length + draw(size - writes[0].length); }
        for (uint64_t n = 1 + draw(4); n-- > 0;) {
            change_something();
        }
        write_image();
        if (crdi_mdf_finish(*state, FILE_PATH) < 0) {
            check(image_is_there());
            continue;
        }
        finished++;
        crd_recording* r = NULL;
        if (crd_recording_open(*state, FILE_PATH, &r) == CRD_OK) {
            check(!crd_recording_describe(r)->unfinished);
            opened++;
            crd_recording_close(r);
        } else {
            check(crd_error_text(*state)[0]);
        }
    }
    check(finished > HOSTILE / 10 && opened > HOSTILE / 20 && finished < HOSTILE);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, check_count_up, check_count_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(whichever_write_was_the_last_the_rows_are_there),
        TEST(cut_off_anywhere_it_ends_with_the_last_whole_chunk),
        TEST(what_is_finished_or_not_ours_stays_as_it_is),
        TEST(hostile_bytes_are_finished_or_stay_as_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
