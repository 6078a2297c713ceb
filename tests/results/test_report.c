#include "cardan/results.h"
#include "check.h"
#include "json_tree.h"
#include "results/report.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static check_allocator memory;
static char* text; // of the last report

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

// ---- thinning ----------------------------------------------------------------------------------

enum { POINTS = 400 };

// A trace of `rows` values of f, fed in pieces as a cursor would.
static void feed(crdi_trace* t, crd_arena* a, int64_t rows, int64_t promised, double (*f)(int64_t),
                 double (*time)(int64_t))
{
    check_ok(crdi_trace_init(t, a, promised, POINTS));
    double x[97], y[97];
    for (int64_t at = 0; at < rows;) {
        int64_t n = 0;
        for (; n < 97 && at < rows; n++, at++) {
            x[n] = time(at);
            y[n] = f(at);
        }
        crdi_trace_add(t, x, y, n);
    }
}

static double milliseconds(int64_t i)
{
    return (double)i * 1e-3;
}

static double smooth_with_spikes(int64_t i)
{
    if (i == 5003) { return 1000; }
    if (i == 77777) { return -1000; }
    return sin((double)i * 1e-3);
}

static void check_points(const crdi_trace* t, crdi_point* p, int64_t n, int64_t rows)
{
    check(n <= crdi_trace_most(t));
    check_int(p[0].row, 0);
    check_int(p[n - 1].row, rows - 1);
    for (int64_t i = 1; i < n; i++) {
        check(p[i].row > p[i - 1].row);
        check(p[i].time >= p[i - 1].time);
    }
}

static void spikes_stay_at_their_own_times(void** state)
{
    crd_arena a;
    crd_arena_init(&a, *state);
    crdi_trace t;
    const int64_t rows = 100000;
    feed(&t, &a, rows, rows, smooth_with_spikes, milliseconds);
    crdi_point* p = crdi_arena_new(&a, (size_t)crdi_trace_most(&t), sizeof *p);
    const int64_t n = crdi_trace_points(&t, p);
    check_points(&t, p, n, rows);
    check(n <= POINTS);
    int found = 0;
    for (int64_t i = 0; i < n; i++) {
        check_near(p[i].value, smooth_with_spikes(p[i].row), 0); // no value is made up
        check_near(p[i].time, milliseconds(p[i].row), 0);
        found += p[i].row == 5003 || p[i].row == 77777;
    }
    check_int(found, 2);
    check_near(t.min, -1000, 0);
    check_near(t.max, 1000, 0);
    check_near(t.last, smooth_with_spikes(rows - 1), 0);
    check_int(t.samples, rows);
    crd_arena_clear(&a);
}

static void the_envelope_of_noise_stays(void** state)
{
    // In every bin the lowest and the highest of its rows are there.
    crd_arena a;
    crd_arena_init(&a, *state);
    crdi_trace t;
    const int64_t rows = 40000;
    feed(&t, &a, rows, rows, smooth_with_spikes, milliseconds);
    crdi_point* p = crdi_arena_new(&a, (size_t)crdi_trace_most(&t), sizeof *p);
    const int64_t n = crdi_trace_points(&t, p);
    for (int64_t begin = 0; begin < rows; begin += t.width) {
        double low = (double)INFINITY, high = -(double)INFINITY, kept_low = low, kept_high = high;
        for (int64_t i = begin; i < begin + t.width && i < rows; i++) {
            low = fmin(low, smooth_with_spikes(i));
            high = fmax(high, smooth_with_spikes(i));
        }
        for (int64_t i = 0; i < n; i++) {
            if (p[i].row < begin || p[i].row >= begin + t.width) { continue; }
            kept_low = fmin(kept_low, p[i].value);
            kept_high = fmax(kept_high, p[i].value);
        }
        check_near(kept_low, low, 0);
        check_near(kept_high, high, 0);
    }
    crd_arena_clear(&a);
}

static void few_rows_are_kept_whole(void** state)
{
    crd_arena a;
    crd_arena_init(&a, *state);
    const int64_t sizes[] = {1, 2, 3, 99, POINTS - 1, POINTS};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        crdi_trace t;
        feed(&t, &a, sizes[k], sizes[k], smooth_with_spikes, milliseconds);
        crdi_point* p = crdi_arena_new(&a, (size_t)crdi_trace_most(&t), sizeof *p);
        check_int(crdi_trace_points(&t, p), sizes[k]);
    }
    crdi_trace t;
    feed(&t, &a, 0, 0, smooth_with_spikes, milliseconds);
    crdi_point none[CRDI_BIN_POINTS];
    check_int(crdi_trace_points(&t, none), 0);
    check(isnan(t.min) && isnan(t.last));
    crd_arena_clear(&a);
}

static void more_rows_than_promised_only_widen_the_bins(void** state)
{
    crd_arena a;
    crd_arena_init(&a, *state);
    const int64_t promises[] = {0, 10, POINTS, 5000};
    for (size_t k = 0; k < sizeof promises / sizeof *promises; k++) {
        crdi_trace t;
        const int64_t rows = 100000;
        feed(&t, &a, rows, promises[k], smooth_with_spikes, milliseconds);
        crdi_point* p = crdi_arena_new(&a, (size_t)crdi_trace_most(&t), sizeof *p);
        const int64_t n = crdi_trace_points(&t, p);
        check_points(&t, p, n, rows);
        int found = 0;
        for (int64_t i = 0; i < n; i++) {
            check_near(p[i].value, smooth_with_spikes(p[i].row), 0);
            found += p[i].row == 5003 || p[i].row == 77777;
            check(i == 0 || p[i].row - p[i - 1].row < 2500); // as fine at the start as at the end
        }
        check_int(found, 2);
    }
    crd_arena_clear(&a);
}

static double with_gaps(int64_t i)
{
    if (i == 3) { return (double)NAN; }                  // one row inside a bin
    if (i >= 20000 && i < 30000) { return (double)NAN; } // many bins
    if (i == 50000) { return (double)INFINITY; }
    return 1;
}

static void check_gaps(crd_context* ctx, int64_t promised)
{
    crd_arena a;
    crd_arena_init(&a, ctx);
    crdi_trace t;
    feed(&t, &a, 100000, promised, with_gaps, milliseconds);
    crdi_point* p = crdi_arena_new(&a, (size_t)crdi_trace_most(&t), sizeof *p);
    const int64_t n = crdi_trace_points(&t, p);
    check_int(t.bad, 10002);
    check_near(t.max, 1, 0);
    check_near(t.sum, 100000 - 10002, 0);
    int breaks = 0;
    for (int64_t i = 1; i < n; i++) {
        breaks += isnan(p[i].value) && !isnan(p[i - 1].value);
        // No line leads across: between finite neighbours there is no row that is not finite.
        if (isnan(p[i].value) || isnan(p[i - 1].value)) { continue; }
        for (int64_t row = p[i - 1].row + 1; row < p[i].row; row++) {
            check(isfinite(with_gaps(row)));
        }
    }
    check_int(breaks, 3);
    crd_arena_clear(&a);
}

static void gaps_stay_gaps(void** state)
{
    check_gaps(*state, 100000);
    check_gaps(*state, 10); // bins are merged on the way
}

static double all_at_once(int64_t i)
{
    (void)i;
    return 4.5;
}

static double counting(int64_t i)
{
    return (double)i;
}

static void rows_at_the_same_time_keep_their_order(void** state)
{
    crd_arena a;
    crd_arena_init(&a, *state);
    crdi_trace t;
    feed(&t, &a, 1000, 1000, counting, all_at_once);
    crdi_point* p = crdi_arena_new(&a, (size_t)crdi_trace_most(&t), sizeof *p);
    const int64_t n = crdi_trace_points(&t, p);
    check_points(&t, p, n, 1000);
    for (int64_t i = 1; i < n; i++) {
        check(p[i].value > p[i - 1].value);
    }
    crd_arena_clear(&a);
}

// ---- reports -----------------------------------------------------------------------------------

static const char folder[] = TEST_BUILD_DIR "/report";

static const char* in_folder(const char* name)
{
    static char path[8][512];
    static int turn;
    turn = (turn + 1) % 8;
    mkdir(folder, 0777);
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static const char* write_text(const char* name, const char* content)
{
    const char* path = in_folder(name);
    FILE* f = fopen(path, "wb");
    fputs(content, f);
    fclose(f);
    return path;
}

static char* read_text(const char* path)
{
    FILE* f = fopen(path, "rb");
    check(f != NULL);
    fseek(f, 0, SEEK_END);
    const long size = ftell(f);
    rewind(f);
    free(text);
    text = malloc((size_t)size + 1);
    check_int(fread(text, 1, (size_t)size, f), size);
    text[size] = 0;
    fclose(f);
    return text;
}

// As check_contains, without printing the whole page.
#define check_has(page, part)                                                                      \
    do {                                                                                           \
        if (!strstr(page, part)) {                                                                 \
            fail_msg("%s:%d: \"%s\" is not in the report", __FILE__, __LINE__, part);              \
        }                                                                                          \
    } while (0)

static int occurrences(const char* in, const char* what)
{
    int n = 0;
    while ((in = strstr(in, what))) {
        n++;
        in += strlen(what);
    }
    return n;
}

static const char plain_csv[] = "time,a.x,a.v,b.F,b.on\n[s],[m],[m/s],[N],\n"
                                "0,0.1,1,5,0\n0.5,0.30000000000000004,2,6,1\n1,0.7,3,-1e-300,1\n";

static const char what_ran[] =
    "{\"format\":1,\"cardan\":\"0.2.0\",\"system\":{\"file\":\"two.yaml\",\"title\":\"Two "
    "masses\",\"sha256\":null,\"base\":\"\"},\"started\":\"2026-11-15T07:00:00Z\","
    "\"machine\":{\"os\":\"Linux\",\"processors\":2},\"run\":{\"start\":0,\"stop\":1,\"step\":0.5,"
    "\"tolerance\":null,\"scheme\":\"jacobi\",\"threads\":1},\"units\":["
    "{\"name\":\"a\",\"kind\":\"FMU 2.0\",\"file\":\"d/a.fmu\",\"sha256\":\"0123456789abcdef\","
    "\"model\":\"Mass\",\"version\":null,\"tool\":null,\"date\":null,\"step\":0.5,\"inputs\":1,"
    "\"outputs\":2,\"parameters\":[{\"name\":\"m\",\"value\":\"100\",\"start\":\"1\",\"unit\":"
    "\"kg\"}]},"
    "{\"name\":\"b\",\"kind\":\"Native\",\"file\":null,\"sha256\":null,\"parameters\":[]}],"
    "\"connections\":[{\"from\":\"a.v\",\"to\":\"b.v\",\"unit\":\"m/s\",\"predict\":\"hold\","
    "\"gain\":1,\"offset\":0,\"mapped\":false},{\"from\":\"b.F\",\"to\":\"a.F\",\"unit\":\"N\","
    "\"predict\":\"linear\",\"gain\":-1,\"offset\":0,\"mapped\":false}],\"signals\":4}";

static const char verdict[] =
    "{\"format\":1,\"end\":\"failed\",\"message\":\"unit b: no <way>\",\"time\":1,\"steps\":2,"
    "\"wall_time\":0.25,\"units\":[{\"name\":\"a\",\"kind\":\"FMU 2.0\",\"steps\":2,"
    "\"step_size\":0.5,\"time_step\":0.001,\"time_get\":1e-6,\"time_set\":1e-6,"
    "\"worst_step\":0.0007,\"measured\":2}],\"loops\":[{\"text\":\"a.F, b.v\",\"size\":2,"
    "\"iterations\":4,\"residual\":1e-9,\"newton\":true,\"converged\":true}],\"warnings\":2}";

static crd_status write_report(crd_context* ctx, const char* csv, const char* out,
                               crd_report_run run, const crd_report_options* opt)
{
    crd_status st = CRD_OK;
    CRD_TRY(crd_recording_open(ctx, csv, &run.recording));
    st = crd_report_write(ctx, out, &run, 1, opt);
fail:
    crd_recording_close(run.recording);
    return st;
}

static void a_page_holds_everything(void** state)
{
    const char* csv = write_text("plain.csv", plain_csv);
    const char* out = in_folder("plain.html");
    const crd_report_options opt = {0};
    check_ok(write_report(*state, csv, out, (crd_report_run){.what = what_ran, .verdict = verdict},
                          &opt));
    const char* html = read_text(out);
    check_has(html, "<title>Two masses</title>");
    check_has(html, "Failed at 1 s: unit b: no &lt;way&gt;, 2 warnings");
    check_has(html, "class=\"verdict bad\"");
    check_has(html, "<td title=\"0123456789abcdef\">0123456789</td>");
    check_has(html, "<td>m</td><td class=\"r\">100</td><td class=\"r\">1</td><td>kg</td>");
    check_has(html, "<svg class=\"topology\"");
    check_has(html, "a.v \u2192 b.v [m/s]");
    check_has(html, "<dd>250\u00A0ms, 4 times real time</dd>");
    check_has(html, "<td>a.F, b.v</td>");
    check_int(occurrences(html, "<figure class=\"plot\""), 4);
    check_int(occurrences(html, "<h3 class=\"owner\">"), 2);
    check(!strstr(html, " src=") && !strstr(html, "@import") && !strstr(html, "url(http"));
    check_int(occurrences(html, "</html>"), 1);
}

// The value of a base64 digit
static unsigned digit(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char* p = strchr(digits, c);
    check(p && *p);
    return (unsigned)(p - digits);
}

static size_t decode(const char* p, unsigned char* out)
{
    size_t n = 0;
    for (; *p != '<'; p += 4) {
        const unsigned x = digit(p[0]) << 18 | digit(p[1]) << 12 |
                           (p[2] == '=' ? 0 : digit(p[2]) << 6) | (p[3] == '=' ? 0 : digit(p[3]));
        out[n++] = (unsigned char)(x >> 16);
        if (p[2] != '=') { out[n++] = (unsigned char)(x >> 8); }
        if (p[3] != '=') { out[n++] = (unsigned char)x; }
    }
    return n;
}

static void values_in_the_page_are_those_of_the_file(void** state)
{
    const char* csv = write_text("plain.csv", plain_csv);
    const char* out = in_folder("values.html");
    const crd_report_options opt = {0};
    check_ok(write_report(*state, csv, out, (crd_report_run){0}, &opt));
    const char* html = read_text(out);
    unsigned char bytes[64];
    const char* data = strstr(html, "id=\"d0-0\">");
    check(data != NULL);
    check_int(decode(data + 10, bytes), 3 * 12); // Float64 values, then Uint32 rows
    double values[3];
    memcpy(values, bytes, sizeof values);
    check_near(values[0], 0.1, 0);
    check_near(values[1], 0.30000000000000004, 0);
    check_near(values[2], 0.7, 0);
    check_int(bytes[24], 0);
    check_int(bytes[28], 1);
    check_int(bytes[32], 2);
    check_has(html, "\"t0\":0,\"dt\":0.5");

    // Times that do not follow a grid are in the page themselves.
    csv = write_text("irregular.csv", "time,x\n0,1\n0.1,2\n0.5,nan\n0.5,3\n");
    check_ok(write_report(*state, csv, out, (crd_report_run){0}, &opt));
    html = read_text(out);
    data = strstr(html, "id=\"d0-0\">");
    check_int(decode(data + 10, bytes), 4 * 16);
    double both[8];
    memcpy(both, bytes, sizeof both);
    check(isnan(both[2]));
    check_near(both[3], 3, 0);
    check_near(both[5], 0.1, 0);
    check_near(both[6], 0.5, 0);
    check_near(both[7], 0.5, 0);
}

static const char evil_csv[] =
    "time,</script><img src=x onerror=alert(1)>,\"a\"\"b'&amp;|*_`[x](http://evil.example)\",note\n"
    "0,1,2,<script>alert(2)</script>\n1,2,3,-->]]>\n2,2,3,\"a|b\"\n";
static const char evil_what[] =
    "{\"system\":{\"title\":\"</title><script>alert(3)</script>\"},\"units\":[{\"name\":"
    "\"<img src=x>\",\"kind\":\"\\\" "
    "onload=\\\"x\"},{\"name\":\"b</style>\"}],\"connections\":[{\"from\":"
    "\"<img src=x>.<u>\",\"to\":\"b</style>.</svg>\",\"unit\":\"</title>\"}]}";

static void foreign_texts_are_no_markup(void** state)
{
    const char* csv = write_text("evil.csv", evil_csv);
    const char* out = in_folder("evil.html");
    crd_report_options opt = {0};
    check_ok(write_report(*state, csv, out,
                          (crd_report_run){.what = evil_what, .label = "<i>label</i>"}, &opt));
    const char* html = read_text(out);
    check(!strstr(html, "<img") && !strstr(html, "alert(3)</script>") && !strstr(html, "<u>"));
    check(!strstr(html, "<i>") && !strstr(html, "<script>alert"));
    check(!strstr(html, "\" onload=\"x"));
    check_int(occurrences(html, "</title>"), occurrences(html, "<title>"));
    check_int(occurrences(html, "</style>"), occurrences(html, "<style>"));
    check_int(occurrences(html, "</svg>"), 2); // the drawing, and chart.js knows the word
    check_int(occurrences(html, "</script>"), occurrences(html, "<script"));

    opt.format = CRD_REPORT_MARKDOWN;
    out = in_folder("evil.md");
    check_ok(write_report(*state, csv, out, (crd_report_run){.what = evil_what}, &opt));
    const char* md = read_text(out);
    check(!strchr(md, '<') && !strstr(md, "](http"));
    check_has(md, "|a&#124;b|");
    for (const char* line = md; line; line = strchr(line, '\n')) { // every row has its columns
        line += *line == '\n';
        if (strncmp(line, "|&#60;/script&#62;", 18) != 0) { continue; }
        int bars = 0;
        for (const char* p = line; *p && *p != '\n'; p++) {
            bars += *p == '|';
        }
        check_int(bars, 8);
    }
}

// Names, units, descriptions, labels and texts; a signal of the same name in a second raster.
static const char* write_evil_mf4(crd_context* ctx)
{
    static const crd_label some[] = {{0, "off<i>"}, {1, "on"}}, other[] = {{0, "low"}, {1, "high"}};
    static const crd_column columns[] = {
        {.name = "o<i>.v", .unit = "m<i>", .description = "\"><i>tip", .type = CRD_FLOAT64},
        {.name = "o<i>.note", .unit = "", .description = "", .type = CRD_STRING},
        {.name = "o<i>.m", .unit = "", .description = "", .type = CRD_ENUMERATION, 0, some, 2},
        {.name = "o<i>.n", .unit = "", .description = "", .type = CRD_ENUMERATION, 0, other, 2},
        {.name = "o<i>.v", .unit = "m<i>", .description = "", .type = CRD_FLOAT64, .raster = 1},
    };
    static const crd_raster rasters[] = {{"fast", 0.1}, {"slow", 1}};
    const char* path = in_folder("evil.mf4");
    const crd_recorder_options opt = {
        .path = path, .columns = columns, .column_count = 5, .rasters = rasters, .raster_count = 2};
    crd_recorder* r = NULL;
    check_ok(crd_recorder_create(ctx, &opt, &r));
    for (int i = 0; i < 20; i++) {
        char note[16];
        snprintf(note, sizeof note, "n%d", i / 4);
        crd_word* row = crd_recorder_begin(r);
        row[0].real = 5 + 0.125 * i;
        row[crd_recorder_word(r, 0)].real = i;
        crd_word_set_bytes(&row[crd_recorder_word(r, 1)], note, strlen(note));
        row[crd_recorder_word(r, 2)].integer = row[crd_recorder_word(r, 3)].integer = i % 2;
        crd_recorder_end(r);
    }
    crd_recorder_destroy(r);
    return path;
}

static const char coupled[] =
    "{\"end\":\"stop "
    "time\",\"time\":1,\"couplings\":[{\"from\":\"a.v\",\"to\":\"b.v\",\"step\":0.01,"
    "\"algorithm\":\"auto\",\"scored\":494,\"C\":2.28742,\"M\":1,\"P\":2,\"rms\":0.0125,\"worst\":"
    "0.5,"
    "\"k_mean\":6.25,\"k_max\":8,\"sent\":501,\"lost\":25,\"repeated\":3,\"filled\":24,\"late\":17,"
    "\"too_late\":1,\"jumps\":2,\"shadows\":[{\"algorithm\":\"zoh\",\"C\":4.489,\"rms\":0.03,"
    "\"worst\":1.5},{\"algorithm\":\"b<i>nd\",\"C\":null,\"rms\":null,\"worst\":null}],"
    "\"hint\":\"'zoh' would <b>not have been "
    "better\"},{\"from\":\"b.F\",\"to\":\"a.F\",\"algorithm\":\"foh\","
    "\"k_mean\":1,\"k_max\":1,\"shadows\":[],\"hint\":\"\"}]}";

static void couplings_are_a_table_with_their_shadows_and_hints(void** state)
{
    const char* csv = write_text("plain.csv", plain_csv);
    const char* out = in_folder("coupled.html");
    const crd_report_run run = {.verdict = coupled};
    crd_report_options opt = {0};
    check_ok(write_report(*state, csv, out, run, &opt));
    const char* said = read_text(out);
    check_has(said, "<h2 id=\"couplings\">Couplings</h2>");
    check_has(said, "<td>a.v \u2192 b.v</td><td>auto</td><td class=\"r\">6.25</td>"
                    "<td class=\"r\">8</td><td class=\"r\">25</td><td class=\"r\">24</td>"
                    "<td class=\"r\">17</td><td class=\"r\">2</td><td class=\"r\">2.287</td>"
                    "<td class=\"r\">0.0125</td><td class=\"r\">0.5</td>");
    check_has(said, "<td>\u21B3 zoh (shadow)</td>");
    check_has(said, "<td class=\"r\">4.489</td><td class=\"r\">0.03</td><td class=\"r\">1.5</td>");
    check_has(said, "<td>\u21B3 b&lt;i&gt;nd (shadow)</td>");
    check_has(said, "a.v \u2192 b.v: &apos;zoh&apos; would &lt;b&gt;not have been better</p>");
    check_int(occurrences(said, "b.F \u2192 a.F"), 1); // without a hint
    check_ok(write_report(*state, csv, out, (crd_report_run){.verdict = verdict}, &opt));
    check(!strstr(read_text(out), "Couplings"));

    opt.format = CRD_REPORT_MARKDOWN;
    out = in_folder("coupled.md");
    check_ok(write_report(*state, csv, out, run, &opt));
    said = read_text(out);
    check_has(said, "|a.v \u2192 b.v|auto|6.25|8|25|24|17|2|2.287|0.0125|0.5|");
    check_has(said, "||\u21B3 zoh (shadow)|||||||4.489|0.03|1.5|");
    check_has(said, "a.v \u2192 b.v: 'zoh' would");
}

static const char judged[] =
    "{\"end\":\"stop time\",\"time\":1,\"flows\":[{\"from\":\"b.v<i>\",\"to\":\"a.v\",\"unit\":"
    "\"m/s\",\"predict\":\"auto\",\"used\":\"hermite\",\"share\":0.934,\"defect_rms\":0.0125,"
    "\"defect_max\":0.5,\"defect_max_time\":0.25,\"output_defect_rms\":null,\"relative\":0.0321,"
    "\"error_rms\":0.004,\"jumps\":2},{\"from\":\"a.F\",\"to\":\"b.F\",\"unit\":\"N\",\"used\":"
    "\"hold\",\"share\":1,\"defect_rms\":1e-6,\"defect_max\":2e-6,\"relative\":1e-5},{\"from\":"
    "\"a.x\",\"to\":\"b.x\",\"used\":\"hold\",\"defect_rms\":0,\"relative\":0}],\"bonds\":[{"
    "\"name\":\"a.F x b.v\",\"action\":\"a.F\",\"flow\":\"b.v\",\"correct\":\"none\",\"mu\":0.5,"
    "\"energy\":12.5,\"work\":0,\"transferred\":100,\"relative\":0.125,\"power_min\":-3,"
    "\"power_max\":7}],\"control\":{\"tolerance\":0.001,\"shortest\":1e-5,\"longest\":0.25,"
    "\"mean\":0.003,\"worst\":1.75,\"rejected\":4,\"at_floor\":0,\"at_ceiling\":1,\"events\":0},"
    "\"iteration\":{\"steps\":100,\"sweeps\":250,\"most\":9,\"failed\":1,\"failed_time\":0.5,"
    "\"failed_connection\":\"a.F -> b.F\",\"residuals\":[12,8,null,7.5],\"stepped_once\":\"c\"},"
    "\"defect_goal\":0.001,\"worst_defect\":0.0321,\"worst_energy\":0.125,\"error_note\":\"\","
    "\"advice\":[\"b.v<i> -> a.v dominates\",7]}";

static void quality_is_a_section_with_bars_tables_and_advice(void** state)
{
    const char* csv = write_text("plain.csv", plain_csv);
    const char* out = in_folder("judged.html");
    const crd_report_run run = {.verdict = judged};
    crd_report_options opt = {0};
    check_ok(write_report(*state, csv, out, run, &opt));
    const char* said = read_text(out);
    check_has(said, "<h2 id=\"quality\">Quality</h2>");
    check_has(said, ", largest defect 3.2 %");
    check_has(said, "<li>b.v&lt;i&gt; -&gt; a.v dominates</li>");
    check_has(said, "<td>b.v&lt;i&gt; \u2192 a.v</td><td>hermite (93 %)</td>"
                    "<td class=\"r\">0.0125</td><td class=\"r\">0.5</td><td class=\"r\">0.25</td>"
                    "<td>m/s</td><td class=\"r\">3.21\u00A0%</td><td class=\"r\">\u2013</td>"
                    "<td class=\"r\">0.004</td><td class=\"r\">\u2013</td><td "
                    "class=\"r\">\u2013</td><td class=\"r\">2</td>");
    check_has(said, "<td class=\"r\">12.5\u00A0%</td><td class=\"r\">-3 to 7</td>");
    check_has(said, "<td class=\"r\">0.001</td><td class=\"r\">10\u00A0\u00B5s</td>");
    check_has(said, "in tolerances: 12, 8, \u2013, 7.5. The largest was that of a.F -&gt; b.F.");
    check_has(said, "Stepped once, without going back: c.");
    check(!strstr(said, "<i>"));
    // Three bars, the first above the limit; the axis goes from 10^-5 to 10^-1 of the scale.
    check_int(occurrences(said, "<rect class=\"bar"), 3);
    check_int(occurrences(said, "<rect class=\"bar above\""), 1);
    check_int(occurrences(said, "class=\"grid\" d="), 5);
    check_has(said, "<title>limit: 0.1\u00A0%</title>");
    check_has(said, "<header class=\"top doubtful\">"); // a step that does not fit

    opt.format = CRD_REPORT_MARKDOWN;
    out = in_folder("judged.md");
    check_ok(write_report(*state, csv, out, run, &opt));
    said = read_text(out);
    check_has(said, "|b.v&#60;i&#62; \u2192 a.v|hermite (93 %)|0.0125|0.5|0.25|m/s|3.21\u00A0%|");
    check_has(said, "![defects of the connections](judged-plots/defects-001.svg)");
    check_has(read_text(in_folder("judged-plots/defects-001.svg")), "<svg class=\"defects\"");

    check_ok(write_report(*state, csv, in_folder("plain.html"),
                          (crd_report_run){.verdict = verdict}, &(crd_report_options){0}));
    check(!strstr(read_text(in_folder("plain.html")), "Quality"));
}

static const char paced[] =
    "{\"end\":\"stop time\",\"time\":60,\"units\":[{\"name\":\"engine<i>\",\"kind\":\"FMU 2.0\","
    "\"steps\":60000,\"budget\":0.0005,\"late\":12,\"link\":null},{\"name\":\"bench\",\"kind\":"
    "\"DCP\",\"steps\":60000,\"budget\":null,\"late\":0,\"link\":{\"in\":59997,\"out\":60000,"
    "\"lost\":3,\"duplicates\":1,\"reordered\":2,\"bad\":0,\"late\":4,\"age\":0.001,\"age_mean\":"
    "0.0011,\"age_max\":0.003,\"round_trip\":8e-5,\"round_trip_max\":null,\"state\":\"RUNNING\"}}],"
    "\"pace\":{\"on\":true,\"factor\":1,\"period\":0.001,\"cycles\":60000,\"lateness\":{\"count\":"
    "60000,\"mean\":1.1e-5,\"p50\":1e-5,\"p90\":2e-5,\"p99\":3e-5,\"p99.9\":4e-5,\"p99.99\":null,"
    "\"max\":0.00012,\"histogram\":[[0,3],[9.728e-06,59990],[0.000114688,7]]},\"busy\":{\"count\":"
    "60000,\"mean\":0.0003,\"p50\":0.0003,\"max\":0.0031,\"histogram\":[[0.000294912,59998],"
    "[0.002359296,1],[0.003014656,1],[7],\"x\"]},\"overrun_count\":2,\"worst\":{\"cycle\":12345,"
    "\"time\":12.345,\"late\":0.0021,\"busy\":0.0031,\"unit\":\"engine<i>\"},\"burst\":2,"
    "\"burst_time\":12.345,\"skipped\":0,\"overruns\":[{\"cycle\":12345,\"time\":12.345,\"late\":"
    "0.0021,\"busy\":0.0031,\"unit\":\"engine<i>\"},{\"cycle\":12346,\"time\":12.346,\"late\":"
    "0.0014,\"busy\":0.0024,\"unit\":null}],\"moved\":0,\"paused\":3.5,\"drift\":0,\"minor_"
    "faults\":"
    "12,\"major_faults\":0,\"voluntary_switches\":60012,\"involuntary_switches\":3,\"clock_steps\":"
    "1,"
    "\"clock_step\":-3.2,\"fifo\":true,\"priority\":80,\"locked\":true,\"cpu\":null,\"awake\":"
    "false,"
    "\"notes\":[\"no <b>CPU</b>\",7]}}";

static void a_run_on_the_clock_has_a_section_with_histograms_and_tables(void** state)
{
    const char* csv = write_text("plain.csv", plain_csv);
    const char* out = in_folder("paced.html");
    const crd_report_run run = {.verdict = paced};
    crd_report_options opt = {0};
    check_ok(write_report(*state, csv, out, run, &opt));
    const char* said = read_text(out);
    check_has(said, "<h2 id=\"realtime\">Real time</h2>");
    check_has(said, "<header class=\"top doubtful\">");
    check_has(said, "Reached its stop time 60 s, 2 overruns");
    check_has(said,
              "60000 cycles of 1\u00A0ms in real time, 2 of them not done when the next one was "
              "due; the worst by 2.1\u00A0ms, at 12.345 s, longest in engine&lt;i&gt;. The "
              "longest row was 2, from 12.345 s on.");
    check_has(said, "The run stood still for 3.5\u00A0s.");
    check_has(said, "the wall clock was set 1 time, by -3.2\u00A0s in all.");
    check_has(said,
              "had SCHED_FIFO 80, memory locked, on any CPU. In its loop: 0 major and 12 minor");
    check_has(said, "<li>no &lt;b&gt;CPU&lt;/b&gt;</li>");
    check_has(said, "<td>Wake-up after the deadline</td><td class=\"r\">11\u00A0\u00B5s</td>"
                    "<td class=\"r\">10\u00A0\u00B5s</td><td class=\"r\">20\u00A0\u00B5s</td>"
                    "<td class=\"r\">30\u00A0\u00B5s</td><td class=\"r\">40\u00A0\u00B5s</td>"
                    "<td class=\"r\">\u2013</td><td class=\"r\">120\u00A0\u00B5s</td>");
    check_has(said, "<tr><td class=\"r\">12.346</td><td class=\"r\">12346</td>"
                    "<td class=\"r\">1.4\u00A0ms</td><td class=\"r\">2.4\u00A0ms</td>"
                    "<td>\u2013</td></tr>");
    check_has(said, "<td>engine&lt;i&gt;</td><td class=\"r\">500\u00A0\u00B5s</td>"
                    "<td class=\"r\">60000</td><td class=\"r\">12</td>");
    check_has(said, "<td>bench</td><td class=\"r\">59997</td><td class=\"r\">60000</td>"
                    "<td class=\"r\">3</td><td class=\"r\">1</td><td class=\"r\">2</td>"
                    "<td class=\"r\">0</td><td class=\"r\">4</td>");
    check(!strstr(said, "<i>"));
    // Three and three bars; two cycles took longer than the period.
    check_int(occurrences(said, "<rect class=\"bar"), 6);
    check_int(occurrences(said, "<rect class=\"bar above\""), 2);
    check_has(said, "<title>251.2\u00A0\u00B5s to 316.2\u00A0\u00B5s: 59998 cycles</title>");
    check_has(said, "period 1\u00A0ms</text>");

    opt.format = CRD_REPORT_MARKDOWN;
    out = in_folder("paced.md");
    check_ok(write_report(*state, csv, out, run, &opt));
    said = read_text(out);
    check_has(said, "## Real time");
    check_has(said, "|Work of a cycle|300\u00A0\u00B5s|300\u00A0\u00B5s|\u2013|");
    check_has(said, "(paced-plots/realtime-001.svg)");
    check_has(read_text(in_folder("paced-plots/realtime-001.svg")), "<svg class=\"pace\"");

    check_ok(write_report(*state, csv, in_folder("plain.html"),
                          (crd_report_run){.verdict = verdict}, &(crd_report_options){0}));
    check(!strstr(read_text(in_folder("plain.html")), "Real time"));
}

static void numbers_of_a_pace_that_make_no_sense_do_no_harm(void** state)
{
    static const char* const strange[] = {
        "{\"pace\":{\"on\":true}}",
        "{\"pace\":{\"on\":true,\"period\":1e300,\"factor\":-1,\"overrun_count\":1e300,\"burst\":9,"
        "\"lateness\":{\"histogram\":[[1e300,1e17],[1e-300,1e17],[0,1],[-1,5],[1,-5],[1,1e300],[]]}"
        ","
        "\"busy\":{\"histogram\":[[1e9,1]]}}}",
        "{\"pace\":{\"on\":true,\"period\":1e-300,\"lateness\":{\"histogram\":[[5,1]]},"
        "\"overruns\":"
        "[1,{},[]],\"notes\":{},\"worst\":[]},\"units\":[{\"link\":{}},{\"budget\":1e300},3]}",
        "{\"pace\":{\"on\":true,\"period\":null,\"lateness\":[],\"busy\":{\"histogram\":{}}}}",
        "{\"pace\":{\"on\":\"yes\",\"overrun_count\":3}}",
        "{\"pace\":7}",
    };
    const char* csv = write_text("plain.csv", plain_csv);
    const char *html = in_folder("strange.html"), *markdown = in_folder("strange.md");
    for (size_t i = 0; i < 2 * sizeof strange / sizeof *strange; i++) {
        const bool even = i % 2 == 0;
        const crd_report_options opt = {.format = even ? CRD_REPORT_HTML : CRD_REPORT_MARKDOWN};
        check_ok(write_report(*state, csv, even ? html : markdown,
                              (crd_report_run){.verdict = strange[i / 2]}, &opt));
    }
}

static void a_poor_run_is_doubtful_even_if_it_reached_its_end(void** state)
{
    static const struct {
        const char *verdict, *top;
    } cases[] = {
        {"{\"end\":\"stop time\",\"flows\":[{\"relative\":0.09}],\"worst_defect\":0.09}", "good"},
        {"{\"end\":\"stop time\",\"flows\":[{\"relative\":0.2}],\"worst_defect\":0.2}", "doubtful"},
        {"{\"end\":\"stop time\",\"flows\":[{}],\"worst_defect\":null}", "doubtful"},
        {"{\"end\":\"stop time\",\"flows\":[],\"worst_defect\":null}", "good"},
        {"{\"end\":\"stop time\",\"worst_energy\":0.2}", "doubtful"},
    };
    const char* csv = write_text("plain.csv", plain_csv);
    const char* out = in_folder("poor.html");
    const crd_report_options opt = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char top[64];
        check_ok(
            write_report(*state, csv, out, (crd_report_run){.verdict = cases[i].verdict}, &opt));
        snprintf(top, sizeof top, "<header class=\"top %s\">", cases[i].top);
        check_has(read_text(out), top);
    }
}

static void whatever_stands_in_a_recording_stays_text(void** state)
{
    static const char loops[] = "{\"end\":\"stop time\",\"loops\":[{\"converged\":false}]}";
    const char* path = write_evil_mf4(*state);
    crd_report_run runs[2] = {{.label = "<i>one"}, {.label = "two"}};
    for (int i = 0; i < 2; i++) {
        runs[i].what = "{\"units\":[{\"name\":\"o<i>\"}]}";
        runs[i].verdict = loops;
        check_ok(crd_recording_open(*state, path, &runs[i].recording));
    }
    const char* out = in_folder("evil_mf4.html");
    const crd_report_options opt = {0};
    check_ok(crd_report_write(*state, out, runs, 2, &opt));
    const char* html = read_text(out);
    check(!strstr(html, "<i>") && !strstr(html, "\"><i"));
    check_has(html, "title=\"&quot;&gt;&lt;i&gt;tip\"");
    check_has(html, "<h3 class=\"owner\">o&lt;i&gt;</h3>");
    check_has(html, "o&lt;i&gt;.v (slow)");             // the other raster's
    check_has(html, "<header class=\"top doubtful\">"); // of the loop
    check_has(html, "\"t0\":5,");
    check_int(occurrences(html, "\"kind\":\"enumeration\""), 2); // labels differ
    for (int i = 0; i < 5; i++) {
        char cell[32];
        snprintf(cell, sizeof cell, "<td>n%d</td>", i);
        check_int(occurrences(html, cell), 2); // of both runs
    }
    for (int i = 0; i < 2; i++) {
        crd_recording_close(runs[i].recording);
    }
}

static void strange_json_is_borne(void** state)
{
    static const char* const strange[] = {
        "",
        "5",
        "[]",
        "{",
        "{\"units\":5,\"connections\":{},\"system\":[],\"run\":null}",
        "{\"units\":[1,null,{\"name\":7,\"parameters\":[{},3,{\"name\":\"x\",\"value\":1e400}]},"
        "{\"name\":\"\"},{\"name\":\"a\"}],\"connections\":[0,{\"from\":\"a\",\"to\":\"a.\"},"
        "{\"from\":\"a.x\",\"to\":\"a.y\"},{\"from\":\".x\",\"to\":\".\"}]}",
        "{\"end\":4,\"time\":\"x\",\"warnings\":1e300,\"units\":[[]],\"loops\":[{},7]}",
        "{\"couplings\":{\"from\":1}}",
        "{\"flows\":[3,null,{\"from\":7,\"relative\":1e300,\"share\":-1},{\"relative\":\"x\"},"
        "{\"relative\":-2},{\"relative\":1e-300}],\"defect_goal\":1e308,\"bonds\":[0,{\"mu\":[]}],"
        "\"control\":{\"mean\":{}},\"iteration\":{\"failed\":1e300,\"residuals\":[{},\"x\"]},"
        "\"advice\":[[],{}],\"worst_defect\":-1e308}",
        "{\"flows\":{},\"bonds\":7,\"control\":[],\"iteration\":1,\"advice\":\"x\"}",
        "{\"couplings\":[3,null,[],{\"from\":7,\"to\":null,\"k_mean\":\"x\",\"k_max\":1e300,"
        "\"lost\":-1,\"C\":[],\"shadows\":[0,null,[{}],{\"algorithm\":{}}],\"hint\":5},"
        "{\"shadows\":7,\"hint\":\"%s%n\"}]}"};
    const char *csv = write_text("plain.csv", plain_csv), *out = in_folder("strange.html");
    const crd_report_options opt = {0};
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
        check_ok(write_report(*state, csv, out,
                              (crd_report_run){.what = strange[i], .verdict = strange[i]}, &opt));
    }
}

static void signals_are_grouped_by_owner_unit_and_range(void** state)
{
    // 10 forces of one unit, lengths of another, one of them far away, and one that hardly moves.
    char csv[2048];
    size_t n = 0;
#define EACH(format, ...)                                                                          \
    for (int i = 0; i < 10; i++) {                                                                 \
        n += (size_t)snprintf(csv + n, sizeof csv - n, format, __VA_ARGS__);                       \
    }
    n += (size_t)snprintf(csv + n, sizeof csv - n, "time");
    EACH(",a.F%d", i)
    n += (size_t)snprintf(csv + n, sizeof csv - n, ",b.x,b.y,b.far,b.fine,b.still\n[s]");
    EACH(",[%c]", 'N')
    n += (size_t)snprintf(csv + n, sizeof csv - n, ",[m],[m],[m],[m],[m]\n0");
    EACH(",%d", i)
    n += (size_t)snprintf(csv + n, sizeof csv - n, ",1,2,1000,0.5,1.5\n1");
    EACH(",%d", i + 2)
    snprintf(csv + n, sizeof csv - n, ",2,1,1001,0.501,1.5\n");
#undef EACH
    const char* path = write_text("groups.csv", csv);
    const char* out = in_folder("groups.html");
    const crd_report_options opt = {0};
    check_ok(write_report(*state, path, out, (crd_report_run){0}, &opt));
    const char* html = read_text(out);
    check_int(occurrences(html, "<figure class=\"plot\""), 2 + 3);
    check_has(html, "data-names=\"b.x b.y b.still\"");
    check_has(html, "data-names=\"a.F8 a.F9\"");
}

// One enumeration, at its value 1 throughout.
static crd_recording* open_mode(crd_context* ctx, const char* path, const crd_label* labels)
{
    const crd_column column = {.name = "mode",
                               .unit = "",
                               .description = "",
                               .type = CRD_ENUMERATION,
                               .labels = labels,
                               .label_count = 2};
    const crd_recorder_options opt = {.path = path, .columns = &column, .column_count = 1};
    crd_recorder* r = NULL;
    crd_recording* out = NULL;
    check_ok(crd_recorder_create(ctx, &opt, &r));
    for (int i = 0; i < 3; i++) {
        crd_word* row = crd_recorder_begin(r);
        row[0].real = i;
        row[crd_recorder_word(r, 0)].integer = 1;
        crd_recorder_end(r);
    }
    crd_recorder_destroy(r);
    check_ok(crd_recording_open(ctx, path, &out));
    return out;
}

static void values_that_two_runs_call_otherwise_do_not_share_a_plot(void** state)
{
    static const crd_label plain[] = {{0, "off"}, {1, "on"}}, other[] = {{0, "on"}, {1, "broken"}};
    crd_report_run runs[3] = {{.label = "a"}, {.label = "b"}, {.label = "c"}};
    runs[0].recording = open_mode(*state, in_folder("mode_a.mf4"), plain);
    runs[1].recording = open_mode(*state, in_folder("mode_b.mf4"), other);
    runs[2].recording = open_mode(*state, in_folder("mode_c.mf4"), plain);
    const char* out = in_folder("modes.html");
    check_ok(crd_report_write(*state, out, runs, 3, &(crd_report_options){0}));
    const char* html = read_text(out);
    check_has(html, "mode (2)"); // of b alone
    check(!strstr(html, "mode (3)"));
    for (int i = 0; i < 3; i++) {
        crd_recording_close(runs[i].recording);
    }
}

static void several_runs_share_their_plots(void** state)
{
    const char* a = write_text("run_a.csv", "time,x,y\n0,1,2\n1,2,3\n");
    const char* b = write_text("run_b.csv", "time,y,z\n0,1,2\n1,2,3\n");
    const char* c = write_text("bench.csv", "time,x,only\n0,1,2\n2,2,3\n");
    const char* out = in_folder("runs.html");
    crd_report_run runs[3] = {{.label = "first"}, {.label = "first"}, {.reference = true}};
    check_ok(crd_recording_open(*state, a, &runs[0].recording));
    check_ok(crd_recording_open(*state, b, &runs[1].recording));
    check_ok(crd_recording_open(*state, c, &runs[2].recording));
    crd_report_options opt = {.title = "Three"};
    check_ok(crd_report_write(*state, out, runs, 3, &opt));
    const char* html = read_text(out);
    check_has(html, "{\"label\":\"first (2)\",\"reference\":false}");
    check_has(html, "{\"label\":\"bench.csv\",\"reference\":true}");
    check_int(occurrences(html, "<script type=\"text/plain\""), 5); // x, y twice each, z
    check_has(html, "1 signal that only the reference has is left out");
    check_has(html, "\"start\":0,\"stop\":2");

    opt.format = CRD_REPORT_MARKDOWN;
    out = in_folder("runs.md");
    check_ok(crd_report_write(*state, out, runs, 3, &opt));
    const char* md = read_text(out);
    check_has(md, "(runs-plots/plot-001.svg)");
    check_has(md, "|x|first|\u2013|1|2|1.5|2|2|\n");
    check_int(access(in_folder("runs-plots/plot-001.svg"), R_OK), 0);
    for (int i = 0; i < 3; i++) {
        crd_recording_close(runs[i].recording);
    }
}

static void patterns_choose_and_have_to_fit(void** state)
{
    const char* csv = write_text("plain.csv", plain_csv);
    const char* out = in_folder("patterns.html");
    const char* patterns[] = {"a.*", "nothing*"};
    crd_report_options opt = {.patterns = patterns, .pattern_count = 1};
    check_ok(write_report(*state, csv, out, (crd_report_run){0}, &opt));
    check_int(occurrences(read_text(out), "<figure class=\"plot\""), 2);
    opt.pattern_count = 2;
    check_status(write_report(*state, csv, out, (crd_report_run){0}, &opt), CRD_E_NOT_FOUND);
    check_contains(crd_error_text(*state), "nothing*");
}

static int part_files(void)
{
    int n = 0;
    DIR* d = opendir(folder);
    for (struct dirent* e; (e = readdir(d));) {
        n += strstr(e->d_name, ".part") != NULL;
    }
    closedir(d);
    return n;
}

static void a_result_is_never_overwritten(void** state)
{
    const char* csv = write_text("plain.csv", plain_csv);
    const crd_report_options opt = {0};
    check_status(write_report(*state, csv, csv, (crd_report_run){0}, &opt), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "overwrite");
    check_text(read_text(csv), plain_csv);
    check_status(
        write_report(*state, csv, in_folder("no/such/folder.html"), (crd_report_run){0}, &opt),
        CRD_E_IO);
    // What fails in the middle leaves the old report as it was.
    const char* out = write_text("kept.html", "old");
    const char* bad = write_text("bad.csv", "time,x\n1,1\n0,2\n");
    check(write_report(*state, bad, out, (crd_report_run){0}, &opt) < 0);
    check_text(read_text(out), "old");
    check_int(part_files(), 0);
}

static void every_allocation_may_fail(void** state)
{
    const char* csv = write_text("evil.csv", evil_csv);
    for (int i = 0; i < 4; i++) {
        const int format = i % 2;
        const char* went = i < 2 ? judged : paced;
        const crd_report_options opt = {.format = (crd_report_format)format, .title = "T"};
        const char* out = in_folder(format ? "memory.md" : "memory.html");
        crd_status st = CRD_E_MEMORY;
        int64_t n = 1;
        for (; st == CRD_E_MEMORY; n++) { // 0 is the context itself
            check(n < 5000);
            check_allocator failing;
            crd_context* ctx = check_context(&failing);
            failing.fail_at = n;
            st = write_report(ctx, csv, out, (crd_report_run){.what = what_ran, .verdict = went},
                              &opt);
            crd_context_destroy(ctx);
            check_int(failing.live, 0);
            check_int(part_files(), 0);
        }
        check_ok(st);
        check(n > 30);
    }
}

// ---- the drawing -------------------------------------------------------------------------------

static const char* draw(crd_context* ctx, const char* json, crd_text* t)
{
    crd_text_init(t, ctx);
    check_ok(crdi_report_drawing(ctx, json_tree(json, strlen(json)), true, t));
    return t->data ? t->data : "";
}

// `units` in a ring, each also connected to one far ahead.
static const char* ring(crd_context* ctx, int units, crd_text* svg)
{
    crd_text t;
    crd_text_init(&t, ctx);
    crdi_text_add(&t, "{\"units\":[");
    for (int i = 0; i < units; i++) {
        crdi_text_add(&t, "%s{\"name\":\"u%d\",\"kind\":\"FMU\"}", i ? "," : "", i);
    }
    crdi_text_add(&t, "],\"connections\":[");
    for (int i = 0; i < units; i++) {
        crdi_text_add(
            &t, "%s{\"from\":\"u%d.y\",\"to\":\"u%d.u\"},{\"from\":\"u%d.z\",\"to\":\"u%d.w\"}",
            i ? "," : "", i, (i + 1) % units, i, (i + 7) % units);
    }
    crdi_text_add(&t, "]}");
    const char* out = draw(ctx, t.data, svg);
    crd_text_clear(&t);
    return out;
}

static void check_inside(const char* svg)
{
    // Every box lies inside the picture.
    double width, height;
    const char* p = strstr(svg, "viewBox=\"0 0 ");
    check(p && sscanf(p, "viewBox=\"0 0 %lf %lf", &width, &height) == 2);
    while ((p = strstr(p, "<rect class=\"box\" rx=\"6\" x=\""))) {
        double x, y, w, h;
        check_int(sscanf(p,
                         "<rect class=\"box\" rx=\"6\" x=\"%lf \" y=\"%lf \" width=\"%lf \" "
                         "height=\"%lf",
                         &x, &y, &w, &h),
                  4);
        check(x >= 0 && y >= 0 && x + w <= width && y + h <= height);
        p++;
    }
}

static void systems_of_two_to_thirty_units_are_drawn(void** state)
{
    crd_text svg;
    for (int n = 2; n <= 30; n++) {
        const char* out = ring(*state, n, &svg);
        check_int(occurrences(out, "class=\"box\""), n);
        check_int(occurrences(out, "<path class=\"wire"), 2 * n);
        check(occurrences(out, "class=\"wire back\"") >= 1);
        check_inside(out);
        crd_text_clear(&svg);
    }
    check_text(ring(*state, 31, &svg), "");
    check_text(draw(*state, "{\"units\":[{\"name\":\"a\"}],\"connections\":[]}", &svg), "");
}

static void a_chain_reads_from_left_to_right(void** state)
{
    crd_text svg;
    const char* out =
        draw(*state,
             "{\"units\":[{\"name\":\"c\"},{\"name\":\"b\"},{\"name\":\"a\"}],\"connections\":["
             "{\"from\":\"a.y\",\"to\":\"b.u\"},{\"from\":\"b.y\",\"to\":\"c.u\"}]}",
             &svg);
    double x[3];
    const char* p = out;
    for (int i = 0; i < 3; i++) {
        p = strstr(p, "class=\"box\" rx=\"6\" x=\"");
        check(p && sscanf(p, "class=\"box\" rx=\"6\" x=\"%lf", &x[i]) == 1);
        p++;
    }
    check(x[2] < x[1] && x[1] < x[0]);
    check(!strstr(out, "wire back"));
    crd_text_clear(&svg);
}

static void more_ports_than_fit_share_the_last(void** state)
{
    crd_text t, svg;
    crd_text_init(&t, *state);
    crdi_text_add(&t, "{\"units\":[{\"name\":\"a\"},{\"name\":\"b\"}],\"connections\":[");
    for (int i = 0; i < 40; i++) {
        crdi_text_add(&t, "%s{\"from\":\"a.y%d\",\"to\":\"b.u%d\"}", i ? "," : "", i, i);
    }
    crdi_text_add(&t, "]}");
    const char* out = draw(*state, t.data, &svg);
    check_has(out, "y15 +24</text>");
    check_int(occurrences(out, "class=\"port\""), 32);
    crd_text_clear(&t);
    crd_text_clear(&svg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spikes_stay_at_their_own_times),
        cmocka_unit_test(the_envelope_of_noise_stays),
        cmocka_unit_test(few_rows_are_kept_whole),
        cmocka_unit_test(more_rows_than_promised_only_widen_the_bins),
        cmocka_unit_test(gaps_stay_gaps),
        cmocka_unit_test(rows_at_the_same_time_keep_their_order),
        cmocka_unit_test(a_page_holds_everything),
        cmocka_unit_test(values_in_the_page_are_those_of_the_file),
        cmocka_unit_test(foreign_texts_are_no_markup),
        cmocka_unit_test(couplings_are_a_table_with_their_shadows_and_hints),
        cmocka_unit_test(quality_is_a_section_with_bars_tables_and_advice),
        cmocka_unit_test(a_run_on_the_clock_has_a_section_with_histograms_and_tables),
        cmocka_unit_test(numbers_of_a_pace_that_make_no_sense_do_no_harm),
        cmocka_unit_test(a_poor_run_is_doubtful_even_if_it_reached_its_end),
        cmocka_unit_test(whatever_stands_in_a_recording_stays_text),
        cmocka_unit_test(strange_json_is_borne),
        cmocka_unit_test(signals_are_grouped_by_owner_unit_and_range),
        cmocka_unit_test(several_runs_share_their_plots),
        cmocka_unit_test(values_that_two_runs_call_otherwise_do_not_share_a_plot),
        cmocka_unit_test(patterns_choose_and_have_to_fit),
        cmocka_unit_test(a_result_is_never_overwritten),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(systems_of_two_to_thirty_units_are_drawn),
        cmocka_unit_test(a_chain_reads_from_left_to_right),
        cmocka_unit_test(more_ports_than_fit_share_the_last),
    };
    return cmocka_run_group_tests(tests, make_context, drop_context);
}
