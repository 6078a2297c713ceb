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
    check_contains(svg, "&lt;script&gt;&amp;&quot;x&quot; </text>");
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

static void gaps_break_the_line(void** state)
{
    const double x[] = {0, 1, 2, 3, 4, 5}, y[] = {0, 1, (double)NAN, 1, (double)INFINITY, 0};
    const crd_plot_series s = {.label = "s", .x = x, .y = y, .count = 6, .dashed = true};
    const crd_plot_panel p = {.series = &s, .series_count = 1};
    const char* svg = plot(*state, "", &p, 1);
    const char* path = strstr(strstr(svg, "h22"), "<path "); // behind the legend
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
    check_contains(crd_error_text(*state), "/no/such/p.svg: cannot write the plot: No such");
    check_status(crd_plot_svg(*state, "/dev/full", "", "", NULL, 0), CRD_E_IO);
    check_contains(crd_error_text(*state), "No space left");
}

static void every_allocation_may_fail(void** state)
{
    (void)state;
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
        TEST(gaps_break_the_line),
        TEST(impossible_ranges_are_drawn_too),
        TEST(many_series_wrap_their_legend),
        TEST(a_plot_that_cannot_be_written_says_why),
        TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
