#include "cardan/results.h"
#include "check.h"

#include <float.h>
#include <stdio.h>

static check_allocator memory;
static char* text; // of the last plot

static int make_context(void** state)
{
    *state = check_context(&memory);
    return 0;
}

static int drop_context(void** state)
{
    crd_context_destroy(*state);
    free(text);
    text = NULL;
    return memory.live == 0 ? 0 : -1;
}

// Tags nest and texts hold no bare markup: enough to say that this is XML.
static void check_well_formed(const char* p)
{
    int depth = 0;
    for (; *p; p++) {
        if (*p == '&') { check(strchr(p, ';') && strchr(p, ';') - p <= 5); }
        check((unsigned char)*p >= 32 || *p == '\n');
        if (*p != '<') {
            check(*p != '>');
            continue;
        }
        const char* end = strchr(p, '>');
        check(end != NULL);
        for (const char* q = p + 1; q < end; q++) {
            check(*q != '<'); // the tag was not closed
        }
        depth += p[1] == '/' ? -1 : end[-1] == '/' ? 0 : 1;
        check(depth >= 0);
        p = end;
    }
    check_int(depth, 0);
}

static const char* plot(crd_context* ctx, const char* title, const crd_plot_panel* panels, int n)
{
    const char* path = TEST_BUILD_DIR "/plot.svg";
    check_ok(crd_plot_svg(ctx, path, title, "time / s", panels, n));
    FILE* f = fopen(path, "rb");
    fseek(f, 0, SEEK_END);
    const long size = ftell(f);
    rewind(f);
    free(text);
    text = malloc((size_t)size + 1);
    check_int(fread(text, 1, (size_t)size, f), size);
    text[size] = 0;
    fclose(f);
    check_well_formed(text);
    check(!strstr(text, "nan") && !strstr(text, "inf,") && !strstr(text, "e+"));
    return text;
}

static int occurrences(const char* in, const char* what)
{
    int n = 0;
    while ((in = strstr(in, what))) {
        n++;
        in += strlen(what);
    }
    return n;
}

static void ticks_are_round_numbers(void** state)
{
    const double x[] = {0, 10}, y[] = {-0.93, 1.02};
    const crd_plot_series s = {.label = "v", .x = x, .y = y, .count = 2};
    const crd_plot_panel p = {.title = "Mass", .y_label = "m/s", .series = &s, .series_count = 1};
    const char* svg = plot(*state, "One", &p, 1);
    check_contains(svg, ">0.5</text>");
    check_contains(svg, ">\xE2\x88\x92"
                        "0.5</text>");
    check_contains(svg, ">0</text>");
    check_contains(svg, ">10</text>");
    check_contains(svg, ">time / s</text>");
    check_contains(svg, ">m/s</text>");
    check_contains(svg, ">Mass</text>");
    check_contains(svg, "prefers-color-scheme:dark");
    check_int(occurrences(svg, "<path "), 2); // the curve and its key
}

static void small_and_large_values_share_a_power_of_ten(void** state)
{
    const double x[] = {0, 1}, y[] = {0, 2.4e6}, z[] = {0, 4.5e-7};
    const crd_plot_series s[] = {{.label = "a", .x = x, .y = y, .count = 2},
                                 {.label = "b", .x = x, .y = z, .count = 2}};
    const crd_plot_panel p[] = {{.series = &s[0], .series_count = 1},
                                {.series = &s[1], .series_count = 1}};
    const char* svg = plot(*state, "", p, 2);
    check_contains(svg, ">\u00D710\u2076</text>");
    check_contains(svg, ">2.5</text>");
    check_contains(svg, ">\u00D710\u207B\u2079</text>");
    check_contains(svg, ">500</text>");
}

static void texts_are_escaped(void** state)
{
    const crd_plot_series s = {.label = "<script>&\"x\"\x01"};
    const crd_plot_panel p = {.title = "a<b", .y_label = "c>d", .series = &s, .series_count = 1};
    const char* svg = plot(*state, "A & B", &p, 1);
    check_contains(svg, "&lt;script&gt;&amp;&quot;x&quot;?</text>");
    check_contains(svg, "A &amp; B");
    check_contains(svg, "no data");
}

static void long_series_keep_their_peaks_and_lose_their_length(void** state)
{
    enum { N = 1000000 };
    double* x = malloc(sizeof *x * N);
    double* y = malloc(sizeof *y * N);
    for (int i = 0; i < N; i++) {
        x[i] = i * 1e-6;
        y[i] = sin(i * 0.01);
    }
    y[333333] = 10; // one point, the top of the picture: y of the frame is 44 + 22
    const crd_plot_series s = {.label = "s", .x = x, .y = y, .count = N};
    const crd_plot_panel p = {.series = &s, .series_count = 1};
    const char* svg = plot(*state, "", &p, 1);
    check(strlen(svg) < 100000);
    check_contains(svg, ",66 ");
    free(x);
    free(y);
}

static double attribute(const char* tag, const char* name)
{
    const char* at = strstr(tag, name);
    check(at != NULL);
    return strtod(at + strlen(name), NULL);
}

// The points of the only curve in parts of the frame: (0, 0) is below left, (1, 1) above right.
static int curve_points(const char* svg, double (*points)[2], int most)
{
    const char* frame = strstr(svg, "<rect class=\"frame\"");
    check(frame != NULL);
    const double left = attribute(frame, " x=\""), top = attribute(frame, " y=\"");
    const double width = attribute(frame, " width=\""), height = attribute(frame, " height=\"");
    const char* at = strstr(strstr(svg, "<text class=\"key\""), " d=\"M"); // behind the legend
    check(at != NULL);
    int n = 0;
    for (at += 5; n < most; n++) {
        char* end = NULL;
        points[n][0] = (strtod(at, &end) - left) / width;
        check(*end == ',');
        points[n][1] = 1 - (strtod(end + 1, &end) - top) / height;
        if (*end != ' ') { return n + 1; }
        at = end;
    }
    fail_msg("more than %d points", most);
    return 0;
}

static void check_curve(crd_context* ctx, const double* x, const double* y, int count,
                        const double (*expected)[2], int expected_count)
{
    const crd_plot_series s = {.label = "s", .x = x, .y = y, .count = count};
    const crd_plot_panel p = {.series = &s, .series_count = 1};
    double points[16][2];
    check_int(curve_points(plot(ctx, "", &p, 1), points, 16), expected_count);
    for (int i = 0; i < expected_count; i++) {
        check_near(points[i][0], expected[i][0], 1e-3);
        check_near(points[i][1], expected[i][1], 1e-3);
    }
}

static void points_lie_where_the_axes_say(void** state)
{
    const double x[] = {2, 3, 5, 6}, y[] = {-1, 0.5, 0, 1}; // the axes begin at 2 and at -1
    const double expected[][2] = {{0, 0}, {0.25, 0.75}, {0.75, 0.5}, {1, 1}};
    check_curve(*state, x, y, 4, expected, 4);
}

static void long_numbers_make_room_at_the_left(void** state)
{
    const double x[] = {0, 1}, low[] = {0, 1}, high[] = {99999, 99999.5};
    double left[2];
    for (int i = 0; i < 2; i++) {
        const crd_plot_series s = {.label = "s", .x = x, .y = i ? high : low, .count = 2};
        const crd_plot_panel p = {.series = &s, .series_count = 1};
        const char* frame = strstr(plot(*state, "", &p, 1), "<rect class=\"frame\"");
        check(frame != NULL);
        left[i] = attribute(frame, " x=\"");
    }
    check_contains(text, ">99999.5</text>");
    check(left[1] - left[0] > 4 * 5); // 99999.5 has four letters more than 0.5
}

static void a_pixel_keeps_its_first_lowest_highest_and_last_point_in_their_order(void** state)
{
    enum { N = 9 };
    const double lowest_first[N] = {-1, 0, 0.2, -1, 0.3, 1, 0.1, 0.4, 1};
    const double highest_first[N] = {-1, 0.4, 0.1, 1, 0.3, -1, 0.2, 0, 1};
    const double rising[N] = {-1, -0.8, -0.6, -0.4, -0.2, 0, 0.2, 0.4, 1}; // its ends are both
    double x[N] = {0};
    for (int i = 1; i < N - 1; i++) {
        x[i] = 0.5003 + 1e-9 * i;
    }
    x[N - 1] = 1;
    const double a[][2] = {{0, 0}, {0.5, 0.5}, {0.5, 0}, {0.5, 1}, {0.5, 0.7}, {1, 1}};
    check_curve(*state, x, lowest_first, N, a, 6);
    const double b[][2] = {{0, 0}, {0.5, 0.7}, {0.5, 1}, {0.5, 0}, {0.5, 0.5}, {1, 1}};
    check_curve(*state, x, highest_first, N, b, 6);
    const double c[][2] = {{0, 0}, {0.5, 0.1}, {0.5, 0.7}, {1, 1}};
    check_curve(*state, x, rising, N, c, 4);
}

static void gaps_break_the_line(void** state)
{
    const double x[] = {0, 1, 2, 3, 4, 5}, y[] = {0, 1, (double)NAN, 1, (double)INFINITY, 0};
    const crd_plot_series s = {.label = "s", .x = x, .y = y, .count = 6, .dashed = true};
    const crd_plot_panel p = {.series = &s, .series_count = 1};
    const char* svg = plot(*state, "", &p, 1);
    const char* path = strstr(strstr(svg, "<text class=\"key\""), "<path "); // behind the legend
    check(path != NULL);
    *strchr(path, '>') = 0;
    check_int(occurrences(path, "M"), 3);
    check_contains(path, "dash");
}

static void impossible_ranges_are_drawn_too(void** state)
{
    static const double ranges[][2] = {
        {0, 0},
        {5, 5},
        {-DBL_MAX, DBL_MAX},
        {DBL_MIN, 2 * DBL_MIN},
        {1e-320, 2e-320},
        {1e16, 1e16},
        {1e16, 1e16 + 2},
        {1, 1 + DBL_EPSILON},
        {-1e-300, 0},
        {1e6, 1e6 + 1e-3},
        {DBL_MAX, DBL_MAX},
        {0.1, 0.3},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        const crd_plot_series s[] = {{.label = "s", .x = ranges[i], .y = ranges[i], .count = 2}};
        const crd_plot_panel p = {.series = s, .series_count = 1};
        plot(*state, "", &p, 1);
    }
    plot(*state, "nothing", NULL, 0);
}

static void times_since_1970_are_counted_from_a_round_one(void** state)
{
    const double x[] = {1700000093, 1700000113}, y[] = {1, 2};
    const crd_plot_series s = {.label = "s", .x = x, .y = y, .count = 2};
    const crd_plot_panel p = {.series = &s, .series_count = 1};
    const char* svg = plot(*state, "", &p, 1);
    check_contains(svg, ">+1700000000</text>");
    check_contains(svg, ">100</text>");
    check(!strstr(svg, "00010"));
    const double before[] = {-1700000113, -1700000093};
    const crd_plot_series t = {.label = "t", .x = before, .y = y, .count = 2};
    svg = plot(*state, "", &(crd_plot_panel){.series = &t, .series_count = 1}, 1);
    check_contains(svg, ">\xE2\x88\x92"
                        "1700000200</text>");
    check_contains(svg, ">100</text>"); // -1700000100
}

static void what_leaves_the_largest_axis_is_not_shown_inside_of_it(void** state)
{
    const double x[] = {0, 1, 2}, y[] = {1e308, 0, 3e307};
    const crd_plot_series s = {.label = "s", .x = x, .y = y, .count = 3};
    const char* svg = plot(*state, "", &(crd_plot_panel){.series = &s, .series_count = 1}, 1);
    check_contains(svg, ">\u00D710\u00B3\u2070\u2076</text>"); // not 10^300
    check_contains(svg, ">40</text>");
}

static void a_sample_alone_is_seen(void** state)
{
    const double x[] = {0, 1, 2, 3}, y[] = {0, 1, (double)NAN, 0.5};
    const crd_plot_series s = {.label = "s", .x = x, .y = y, .count = 4};
    const char* svg = plot(*state, "", &(crd_plot_panel){.series = &s, .series_count = 1}, 1);
    const char* path = strstr(strstr(svg, "<text class=\"key\""), "<path ");
    *strchr(path, '>') = 0;
    check_contains(strrchr(path, 'M'), "h0"); // a stroke without length and with round ends
}

static void many_series_wrap_their_legend(void** state)
{
    const double x[] = {0, 1};
    crd_plot_series s[20];
    char names[20][40];
    for (int i = 0; i < 20; i++) {
        snprintf(names[i], sizeof names[i], "unit%d.a_rather_long_name", i);
        s[i] = (crd_plot_series){.label = names[i], .x = x, .y = x, .count = 2};
    }
    const crd_plot_panel p = {.series = s, .series_count = 20};
    const char* svg = plot(*state, "", &p, 1);
    check_contains(svg, "dots");
    check_contains(svg, "unit19");
}

static void a_plot_that_cannot_be_written_says_why(void** state)
{
    check_status(crd_plot_svg(*state, TEST_BUILD_DIR "/no/such/p.svg", "", "", NULL, 0), CRD_E_IO);
    check_contains(crd_error_text(*state), "/no/such/p.svg: cannot be written: No such");
    check_status(crd_plot_svg(*state, "/dev/full", "", "", NULL, 0), CRD_E_IO);
    check_contains(crd_error_text(*state), "No space left");
}

static void every_allocation_may_fail(void** state)
{
    check_allocator a;
    crd_context* ctx = check_context(&a);
    const int64_t first = a.allocations, live = a.live;
    crd_status st;
    int failures = 0;
    do {
        a.allocations = first;
        a.fail_at = first + failures++;
        st = crd_plot_svg(ctx, TEST_BUILD_DIR "/plot_memory.svg", "", "", NULL, 0);
        check(st == CRD_OK || st == CRD_E_MEMORY);
        check_int(a.live, live);
    } while (st < 0);
    check(failures > 2);
    crd_context_destroy(ctx);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_context, drop_context)
    const struct CMUnitTest tests[] = {
        TEST(ticks_are_round_numbers),
        TEST(small_and_large_values_share_a_power_of_ten),
        TEST(texts_are_escaped),
        TEST(long_series_keep_their_peaks_and_lose_their_length),
        TEST(points_lie_where_the_axes_say),
        TEST(long_numbers_make_room_at_the_left),
        TEST(a_pixel_keeps_its_first_lowest_highest_and_last_point_in_their_order),
        TEST(gaps_break_the_line),
        TEST(impossible_ranges_are_drawn_too),
        TEST(many_series_wrap_their_legend),
        TEST(times_since_1970_are_counted_from_a_round_one),
        TEST(what_leaves_the_largest_axis_is_not_shown_inside_of_it),
        TEST(a_sample_alone_is_seen),
        TEST(a_plot_that_cannot_be_written_says_why),
        TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
