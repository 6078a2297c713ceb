// Overviews against what a loop over all samples finds.
#include "cardan/results.h"
#include "check.h"
#include "shared/base.h"
#include "shared/results.h"
#include "shared/results_overview.h"

#include <math.h>
#include <stdio.h>

#define FOLDER TEST_BUILD_DIR "/"
enum { ROWS = 700001 }; // more than the buckets of a pyramid: four rows each

static double time_of(int64_t i)
{
    return 0.001 * (double)i;
}

// A slow wave with needles of one sample; gaps in the second signal.
static double wave(int64_t i)
{
    return sin(1e-4 * (double)i) + (i % 99991 == 5 ? 10 : 0);
}

static double broken(int64_t i)
{
    return i >= 300000 && i < 500000 ? (double)NAN : (double)(i % 1000);
}

static const char* record(void** state)
{
    static const char path[] = FOLDER "overview.mf4";
    static bool done;
    if (done) { return path; }
    done = true;
    const crd_column columns[] = {{.name = "wave", .unit = "m", .description = ""},
                                  {.name = "broken", .unit = "", .description = ""}};
    const crd_recorder_options opt = {.path = path, .columns = columns, .column_count = 2};
    crd_recorder* r = NULL;
    check_ok(crd_recorder_create(*state, &opt, &r));
    for (int64_t i = 0; i < ROWS; i++) {
        crd_word* w = crd_recorder_begin(r);
        w[0].real = time_of(i);
        w[1].real = wave(i);
        w[2].real = broken(i);
        crd_recorder_end(r);
    }
    check_ok(crd_recorder_finish(r));
    crd_recorder_destroy(r);
    return path;
}

typedef struct fixture {
    crd_recording* files[2];
    crdi_overview* o;
    crd_arena arena;
} fixture;

static void begin(void** state, fixture* f, const char* a, const char* b)
{
    *f = (fixture){0};
    check_ok(crd_recording_open(*state, a, &f->files[0]));
    if (b) { check_ok(crd_recording_open(*state, b, &f->files[1])); }
    check_ok(crdi_overview_create(*state, f->files, b ? 2 : 1, &f->o));
    crd_arena_init(&f->arena, *state);
}

static void end(fixture* f)
{
    crdi_overview_destroy(f->o);
    crd_recording_close(f->files[0]);
    crd_recording_close(f->files[1]);
    crd_arena_clear(&f->arena);
}

static crdi_strip look(fixture* f, crdi_track t, double from, double to, int pixels)
{
    crdi_strip s;
    check_ok(crdi_overview_look(f->o, &t, 1, from, to, pixels, &f->arena, &s));
    check(!s.error);
    return s;
}

static void finish(fixture* f)
{
    while (crdi_overview_work(f->o, 1000000000)) {}
}

// All that strips say together: least, largest, and no sample of the window is outside of them.
static void covers(const crdi_strip* s, double (*f)(int64_t), double from, double to)
{
    double low = INFINITY, high = -INFINITY, seen_low = INFINITY, seen_high = -INFINITY;
    for (int64_t i = 0; i < ROWS; i++) {
        if (time_of(i) < from || time_of(i) > to) { continue; }
        low = fmin(low, f(i));
        high = fmax(high, f(i));
    }
    for (int64_t i = 0; i < s->count; i++) {
        seen_low = fmin(seen_low, s->low[i]);
        seen_high = fmax(seen_high, s->high[i]);
        check(i == 0 || s->time[i] > s->time[i - 1]);
        check(isnan(s->low[i]) || s->low[i] <= s->high[i]);
    }
    check_near(seen_low, low, 0);
    check_near(seen_high, high, 0);
}

static void all_of_it_has_every_needle_once_it_is_read(void** state)
{
    fixture f;
    begin(state, &f, record(state), NULL);
    double first, last;
    check(crdi_overview_span(f.o, &first, &last));
    check_near(first, 0, 0);
    check_near(last, time_of(ROWS - 1), 0);
    crdi_strip s = look(&f, (crdi_track){0, 0, -1, -1}, first, last, 500);
    check(s.count > 1); // there is a picture from the beginning
    finish(&f);
    s = look(&f, (crdi_track){0, 0, -1, -1}, first, last, 500);
    check_near(s.part, 1, 0);
    check(!s.samples && s.count >= 499 && s.count <= 503);
    covers(&s, wave, first, last);
    int needles = 0;
    for (int64_t i = 0; i < s.count; i++) {
        needles += s.high[i] > 5;
    }
    check_int(needles, 8); // rows 5, 99996, ... 699942
    end(&f);
}

static void a_window_is_exact_at_any_zoom(void** state)
{
    fixture f;
    begin(state, &f, record(state), NULL);
    const crdi_track t = {0, 0, -1, -1};
    for (int round = 0; round < 2; round++) { // before anything is built, and afterwards
        for (double span = 650; span > 0.004; span /= 3.7) {
            const double from = 0.37 * (700 - span), to = from + span;
            const crdi_strip s = look(&f, t, from, to, 300);
            if (s.part < 1) { continue; }
            double low = INFINITY, high = -INFINITY;
            for (int64_t i = (int64_t)(from / 0.001) + 1; time_of(i) <= to; i++) {
                low = fmin(low, wave(i));
                high = fmax(high, wave(i));
            }
            double seen_low = INFINITY, seen_high = -INFINITY;
            for (int64_t i = 0; i < s.count; i++) {
                seen_low = fmin(seen_low, s.low[i]);
                seen_high = fmax(seen_high, s.high[i]);
                if (!s.samples) { continue; }
                const int64_t row = llround(s.time[i] / 0.001);
                check_near(s.low[i], wave(row), 0);
            }
            check(seen_low <= low && seen_high >= high);
            // One bucket or pixel on both sides may be seen as well.
            check(seen_high <= 11.0 && seen_low >= -1.0);
        }
        finish(&f);
    }
    const crdi_strip s = look(&f, t, 99.9905, 100.0105, 300);
    check(s.samples);
    check_int(s.count, 22); // 20 in the window, one before and one behind
    end(&f);
}

static void gaps_stay_gaps(void** state)
{
    fixture f;
    begin(state, &f, record(state), NULL);
    const crdi_track t = {0, 1, -1, -1};
    (void)look(&f, t, 0, 700, 100);
    finish(&f);
    const crdi_strip s = look(&f, t, 0, 700, 100);
    int empty = 0;
    for (int64_t i = 0; i < s.count; i++) {
        empty += isnan(s.low[i]);
    }
    check(empty >= 27 && empty <= 29); // 200 of 700 s are 28.6 pixels, and the edges have values
    end(&f);
}

static void a_difference_is_taken_at_the_times_of_the_first(void** state)
{
    const char* other = FOLDER "overview_other.csv";
    FILE* out = fopen(other, "wb");
    fputs("time,wave\n0,1\n100,3\n200,3\n", out); // a line, then a level
    fclose(out);
    fixture f;
    begin(state, &f, record(state), other);
    const crdi_track t = {0, 0, 1, 0};
    (void)look(&f, t, 0, 700, 100);
    finish(&f);
    for (int k = 0; k < 3; k++) {
        const double from = (double[]){10, 50.5, 150}[k];
        const crdi_strip s = look(&f, t, from, from + 0.02, 300);
        check(s.samples && s.count > 18);
        for (int64_t i = 0; i < s.count; i++) {
            const double b = s.time[i] < 100 ? 1 + 0.02 * s.time[i] : 3;
            check_near(s.low[i], wave(llround(s.time[i] / 0.001)) - b, 1e-12);
        }
    }
    const crdi_strip s = look(&f, t, 300, 300.02, 300);
    check(isnan(s.low[3])); // the other one has ended
    end(&f);
}

static void values_at_a_time_are_the_samples_on_both_sides(void** state)
{
    fixture f;
    begin(state, &f, record(state), NULL);
    double t[2], x[2];
    check_ok(crdi_overview_at(f.o, &(crdi_track){0, 0, -1, -1}, 123.4565, t, x));
    check_near(t[0], time_of(123456), 0);
    check_near(x[0], wave(123456), 0);
    check_near(x[1], wave(123457), 0);
    check_ok(crdi_overview_at(f.o, &(crdi_track){0, 0, -1, -1}, -1, t, x));
    check(isnan(x[0]) && x[1] == wave(0));
    check_ok(crdi_overview_at(f.o, &(crdi_track){0, 0, -1, -1}, 1e9, t, x));
    check(x[0] == wave(ROWS - 1) && isnan(x[1]));
    check_status(crdi_overview_at(f.o, &(crdi_track){0, 2, -1, -1}, 0, t, x), CRD_E_RANGE);
    check_status(crdi_overview_at(f.o, &(crdi_track){0, 0, 7, 0}, 0, t, x), CRD_E_RANGE);
    end(&f);
}

static void rows_are_the_middle_or_every_kth(void** state)
{
    fixture f;
    begin(state, &f, record(state), NULL);
    crdi_strip s;
    int64_t all = 0;
    const crdi_track t = {0, 0, -1, -1};
    check_ok(crdi_overview_rows(f.o, &t, 100, 200, 1000, false, &f.arena, &s, &all));
    check_int(all, 100001);
    check_int(s.count, 1000);
    check_near(s.time[0], 149.5, 1e-3);
    check_near(s.low[999], wave(llround(s.time[999] / 0.001)), 0);
    check_ok(crdi_overview_rows(f.o, &t, 0, 700, 7, true, &f.arena, &s, &all));
    check_int(s.count, 7);
    check_near(s.time[1] - s.time[0], time_of((ROWS + 6) / 7), 1e-9);
    check_near(s.low[6], wave(llround(s.time[6] / 0.001)), 0);
    end(&f);
}

static void texts_are_numbered_as_they_come(void** state)
{
    const char* path = FOLDER "overview_texts.csv";
    FILE* out = fopen(path, "wb");
    fputs("time,mode\n0,idle\n1,run\n2,run\n3,idle\n4,stop\n", out);
    fclose(out);
    fixture f;
    begin(state, &f, path, NULL);
    const crdi_track t = {0, 0, -1, -1};
    const crdi_strip s = look(&f, t, 0, 4, 100);
    check(s.samples && s.count == 5);
    const double expected[] = {0, 1, 1, 0, 2};
    for (int i = 0; i < 5; i++) {
        check_near(s.low[i], expected[i], 0);
    }
    int count = 0;
    const char* const* texts = crdi_overview_texts(f.o, &t, &count);
    check_int(count, 3);
    check_text(texts[2], "stop");
    end(&f);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, check_count_up, check_count_down)
    const struct CMUnitTest tests[] = {
        TEST(all_of_it_has_every_needle_once_it_is_read),
        TEST(a_window_is_exact_at_any_zoom),
        TEST(gaps_stay_gaps),
        TEST(a_difference_is_taken_at_the_times_of_the_first),
        TEST(values_at_a_time_are_the_samples_on_both_sides),
        TEST(rows_are_the_middle_or_every_kth),
        TEST(texts_are_numbered_as_they_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
