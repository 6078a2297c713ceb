#include "cardan/results.h"
#include "check.h"

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

static const char* plot(crd_context* ctx, const crd_plot_options* options,
                        const crd_plot_panel* panels, int n)
{
    const char* path = TEST_BUILD_DIR "/plot_scaled.svg";
    check_ok(crd_plot_svg_scaled(ctx, path, options, panels, n));
    FILE* f = fopen(path, "rb");
    fseek(f, 0, SEEK_END);
    const long size = ftell(f);
    rewind(f);
    free(text);
    text = malloc((size_t)size + 1);
    check_int(fread(text, 1, (size_t)size, f), size);
    text[size] = 0;
    fclose(f);
    check(!strstr(text, "nan") && !strstr(text, "inf,") && !strstr(text, "e+"));
    return text;
}

static double attribute(const char* tag, const char* name)
{
    const char* at = strstr(tag, name);
    check(at != NULL);
    return strtod(at + strlen(name), NULL);
}

// Where point `n` of the only curve lies in parts of the frame, (0, 0) being below left.
static void place(const char* svg, int n, double at[2])
{
    const char* frame = strstr(svg, "<rect class=\"frame\"");
    check(frame != NULL);
    const double left = attribute(frame, " x=\""), top = attribute(frame, " y=\"");
    const double width = attribute(frame, " width=\""), height = attribute(frame, " height=\"");
    const char* p = strstr(strstr(svg, "<text class=\"key\""), " d=\"M");
    check(p != NULL);
    p += 5;
    for (int i = 0;; i++) {
        char* end = NULL;
        at[0] = (strtod(p, &end) - left) / width;
        check(*end == ',');
        at[1] = 1 - (strtod(end + 1, &end) - top) / height;
        if (i == n) { return; }
        check(*end == ' ');
        p = end + 1;
    }
}

static void equal_ratios_are_equally_long_on_logarithmic_axes(void** state)
{
    const double x[] = {1, 10, 100, 1000}, y[] = {0.01, 1, 10, 100};
    const crd_plot_series s = {.label = "g", .x = x, .y = y, .count = 4};
    const crd_plot_panel p = {.series = &s, .series_count = 1};
    const crd_plot_scale scale = {.log_y = true};
    const crd_plot_options o = {.x_label = "rad/s", .log_x = true, .scales = &scale};
    const char* svg = plot(*state, &o, &p, 1);
    const double expected[][2] = {{0, 0}, {1.0 / 3, 0.5}, {2.0 / 3, 0.75}, {1, 1}};
    for (int i = 0; i < 4; i++) {
        double at[2];
        place(svg, i, at);
        check_near(at[0], expected[i][0], 1e-3);
        check_near(at[1], expected[i][1], 1e-3);
    }
    check_contains(svg, ">1000</text>");
    check_contains(svg, ">0.01</text>");
    check_contains(svg, "class=\"fine\"");
    check_contains(svg, ">rad/s</text>");
}

static void far_powers_of_ten_have_raised_exponents(void** state)
{
    const double x[] = {1e-9, 1e7}, y[] = {1, 2};
    const crd_plot_series s = {.label = "g", .x = x, .y = y, .count = 2};
    const crd_plot_panel p = {.series = &s, .series_count = 1};
    const crd_plot_options o = {.log_x = true};
    const char* svg = plot(*state, &o, &p, 1);
    check_contains(svg, ">10\u207B\u2076</text>");
    check_contains(svg, ">10\u2076</text>");
    check_contains(svg, ">0.1</text>");
}

static void what_a_logarithm_cannot_show_is_a_gap(void** state)
{
    const double x[] = {0, 1, 2, 3, 4}, y[] = {1, 1, -1, 0, 2};
    const crd_plot_series s = {.label = "g", .x = x, .y = y, .count = 5};
    const crd_plot_panel p = {.series = &s, .series_count = 1};
    const crd_plot_scale scale = {.log_y = true};
    const crd_plot_options o = {.log_x = true, .scales = &scale};
    plot(*state, &o, &p, 1);
    double at[2];
    place(text, 0, at); // x = 1
    check_near(at[0], 0, 1e-3);
    const double nothing[] = {-1, -2};
    const crd_plot_series none = {.label = "g", .x = nothing, .y = nothing, .count = 2};
    const crd_plot_panel q = {.series = &none, .series_count = 1};
    plot(*state, &o, &q, 1);
}

static void a_circle_is_round_where_units_are_equal(void** state)
{
    const double x[] = {-1, 1, 0, 0}, y[] = {0, 0, -1, 1};
    const crd_plot_series s = {.label = "L", .x = x, .y = y, .count = 4};
    const crd_plot_panel p = {.series = &s, .series_count = 1};
    const crd_plot_scale scale = {.own_x = true, .equal = true, .x_label = "Re L"};
    const crd_plot_options o = {.scales = &scale};
    const char* svg = plot(*state, &o, &p, 1);
    const char* frame = strstr(svg, "<rect class=\"frame\"");
    const double width = attribute(frame, " width=\""), height = attribute(frame, " height=\"");
    double at[4][2];
    for (int i = 0; i < 4; i++) {
        place(svg, i, at[i]);
    }
    check_near((at[1][0] - at[0][0]) * width, (at[3][1] - at[2][1]) * height, 0.3);
    check_contains(svg, ">Re L</text>");
}

static void lines_end_at_the_frame_of_a_given_range(void** state)
{
    const double x[] = {-1e9, 0, 1e9}, y[] = {-1e9, 0, 1e9}, one[] = {-1}, none[] = {0};
    const crd_plot_series s[] = {{.label = "L", .x = x, .y = y, .count = 3},
                                 {.label = "-1", .x = one, .y = none, .count = 1, .points = true}};
    const crd_plot_panel p[] = {{.series = s, .series_count = 2}, {.series = s, .series_count = 1}};
    const crd_plot_scale scales[] = {
        {.own_x = true, .x_low = -2, .x_high = 2, .y_low = -2, .y_high = 2}, {0}};
    const crd_plot_options o = {.scales = scales, .x_label = "below"};
    const char* svg = plot(*state, &o, p, 2);
    check_contains(svg, "<clipPath id=\"frame0\">");
    check_contains(svg, "clip-path=\"url(#frame0)\"");
    check(!strstr(svg, "frame1"));
    check_contains(svg, "points\"");
    check_contains(svg, ">below</text>");
    check_contains(svg, ">\xE2\x88\x92"
                        "2</text>");
}

static void the_plain_function_is_the_same_without_scales(void** state)
{
    const double x[] = {0, 1}, y[] = {3, 4};
    const crd_plot_series s = {.label = "a", .x = x, .y = y, .count = 2};
    const crd_plot_panel p = {.series = &s, .series_count = 1};
    const crd_plot_options o = {.title = "t", .x_label = "x"};
    char* scaled = strdup(plot(*state, &o, &p, 1));
    check_ok(crd_plot_svg(*state, TEST_BUILD_DIR "/plot_plain.svg", "t", "x", &p, 1));
    FILE* f = fopen(TEST_BUILD_DIR "/plot_plain.svg", "rb");
    for (const char* c = scaled; *c; c++) {
        check_int(fgetc(f), (unsigned char)*c);
    }
    check_int(fgetc(f), EOF);
    fclose(f);
    free(scaled);
}

static void values_may_have_names(void** state)
{
    static const char* const names[] = {"off", "on", "broken <>"};
    const double x[] = {0, 1, 1, 2}, y[] = {0, 0, 2, 2};
    const crd_plot_series s = {.label = "a", .x = x, .y = y, .count = 4};
    const crd_plot_panel p = {.series = &s, .series_count = 1};
    const crd_plot_scale scale = {.y_names = names, .y_name_count = 3};
    const crd_plot_options o = {.x_label = "s", .scales = &scale};
    const char* svg = plot(*state, &o, &p, 1);
    const double expected[][2] = {{0, 1 / 6.0}, {0.5, 1 / 6.0}, {0.5, 5 / 6.0}, {1, 5 / 6.0}};
    for (int i = 0; i < 4; i++) {
        double at[2];
        place(svg, i, at);
        check_near(at[0], expected[i][0], 1e-3);
        check_near(at[1], expected[i][1], 1e-3);
    }
    check_contains(svg, ">off<");
    check_contains(svg, ">on<"); // nobody is there
    check_contains(svg, ">broken &lt;&gt;<");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_context, drop_context)
    const struct CMUnitTest tests[] = {
        TEST(equal_ratios_are_equally_long_on_logarithmic_axes),
        TEST(far_powers_of_ten_have_raised_exponents),
        TEST(what_a_logarithm_cannot_show_is_a_gap),
        TEST(a_circle_is_round_where_units_are_equal),
        TEST(lines_end_at_the_frame_of_a_given_range),
        TEST(the_plain_function_is_the_same_without_scales),
        TEST(values_may_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
