// cardan coupling analyze: what an element does to a signal, whether a loop stays stable with it,
// and which bandwidth a recording has.
#include "cli/analyze/analyze.h"

#include <math.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

// ---- which of the three ------------------------------------------------------------------------

typedef enum subject { ELEMENTS, LOOP, RECORDING } subject;

static bool analyze_ends_with(const char* text, const char* const* endings)
{
    const size_t n = strlen(text);
    for (; *endings; endings++) {
        const size_t k = strlen(*endings);
        if (n > k && strcasecmp(text + n - k, *endings) == 0) { return true; }
    }
    return false;
}

// Loops and systems have their own key at the beginning of a line; JSON loops have it in quotes.
static bool is_loop_file(const char* path)
{
    static const char* const systems[] = {".ssp", ".ssd", ".fmu", NULL};
    if (analyze_ends_with(path, systems)) { return true; }
    char head[16384];
    crdi_file_head(path, head, sizeof head);
    const char* brace = head + strspn(head, " \t\r\n");
    const bool flow = *brace == '{';
    for (char* line = head; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char* word = flow ? line + strspn(line, " \t{\",") : line + (*line == '"');
        const size_t length = strcspn(word, ": \"\r\n");
        const char* after = word + length;
        after += strspn(after, "\" ");
        if (*after == ':' && ((length == 4 && strncmp(word, "loop", 4) == 0) ||
                              (length == 6 && strncmp(word, "cardan", 6) == 0))) {
            return true;
        }
    }
    return false;
}

static crd_status subject_of(crd_context* ctx, const char* text, subject* out)
{
    static const char* const recordings[] = {".csv", ".mf4", ".mdf", ".mat", NULL};
    static const char* const missing[] = {".csv", ".mf4", ".mdf",  ".mat", ".ssp",
                                          ".ssd", ".fmu", ".yaml", ".yml", NULL};
    struct stat info;
    *out = ELEMENTS;
    if (text[0] == '{') { return CRD_OK; }
    if (stat(text, &info) != 0) {
        return analyze_ends_with(text, missing)
                   ? crdi_fail(ctx, CRD_E_NOT_FOUND, "%s: no such file", text)
                   : CRD_OK;
    }
    *out = analyze_ends_with(text, recordings)           ? RECORDING
           : S_ISDIR(info.st_mode) || is_loop_file(text) ? LOOP
                                                         : ELEMENTS;
    return CRD_OK;
}

static crd_status run_analyze(crdi_cli* cli, const void* options, const crdi_list* arguments,
                              crdi_result* out)
{
    const crdi_analyze_options* o = options;
    crd_context* ctx = cli->ctx;
    subject first = ELEMENTS, other;
    crd_status st = CRD_OK;
    CRD_TRY(crdi_picture_check(cli, o->plot, &o->common));
    CRD_TRY(subject_of(ctx, arguments->items[0], &first));
    for (int i = 1; i < arguments->count; i++) {
        CRD_TRY(subject_of(ctx, arguments->items[i], &other));
        if (other != ELEMENTS || first != ELEMENTS) {
            return crdi_fail(
                ctx, CRD_E_RANGE,
                "%s and %s: expected elements, or one loop, or one recording; elements "
                "for a loop or a recording are given with --element",
                arguments->items[0], arguments->items[i]);
        }
    }
    for (int i = 0; i < arguments->count; i++) {
        for (int k = 0; k < 2; k++) {
            const char* written = k ? o->csv : o->plot;
            if (written && crdi_same_file(written, arguments->items[i])) {
                return crdi_fail(ctx, CRD_E_RANGE, "%s: would be overwritten; choose another file",
                                 written);
            }
        }
    }
    const bool asked = o->require_stable || !isnan(o->min_phase) || !isnan(o->min_gain) ||
                       !isnan(o->min_delay) || !isnan(o->min_distance);
    if (asked && first != LOOP) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "%s: only a loop or a system is stable and has margins, this is %s",
                         arguments->items[0], first == ELEMENTS ? "an element" : "a recording");
    }
    if ((!isnan(o->jitter) || o->loss || o->losses >= 0) && first != LOOP) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "%s: --jitter, --loss and --losses are for a loop or a system, this is %s",
                         arguments->items[0], first == ELEMENTS ? "an element" : "a recording");
    }
    switch (first) {
    case ELEMENTS:
        return crdi_analyze_elements(cli, o, arguments, out);
    case LOOP:
        return crdi_analyze_loop(cli, o, arguments->items[0], out);
    default:
        return crdi_analyze_recording(cli, o, arguments->items[0], out);
    }
fail:
    return st;
}

// ---- options -----------------------------------------------------------------------------------

#define ROW(name_, type_, field)                                                                   \
    .name = name_, .type = type_, .offset = offsetof(crdi_analyze_options, field)
static const crdi_option rows[] = {
    {ROW("latency", CRDI_OPT_TEXT, latency), .short_name = 'k', .metavar = "K",
     .help = "age of the newest sample in macro steps when it is used: 6, 0,1,3,6 or 4..9 for "
             "several at once, or a time such as 60ms; of a loop: instead of what it says, and "
             "2..5 if samples take now so many steps and now so many"},
    {ROW("step", CRDI_OPT_QUANTITY, step), .metavar = "TIME", .unit = "s", .range = CRDI_POSITIVE,
     .help = "macro step: the time between two samples"},
    {ROW("element", CRDI_OPT_LIST, elements), .metavar = "ELEMENT",
     .help = "of a loop: this one instead of its own elements; of a recording: for which one a "
             "macro step is recommended"},
    {ROW("jitter", CRDI_OPT_QUANTITY, jitter), .metavar = "TIME", .unit = "s",
     .range = CRDI_NOT_NEGATIVE,
     .help = "of a loop: samples take their latency plus or minus this; instead of what it says"},
    {ROW("loss", CRDI_OPT_TEXT, loss), .metavar = "PART",
     .help = "of a loop: part of the samples that never arrive, 0.05 or '5 %'; instead of what it "
             "says"},
    {ROW("losses", CRDI_OPT_INT, losses), .metavar = "N",
     .help = "of a loop: most samples that are lost in a row, for the worst case; 3 unless given"},
    {ROW("magnitude", CRDI_OPT_NUMBER, magnitude), .metavar = "PERCENT", .range = CRDI_POSITIVE,
     .help = "tolerance of the magnitude; 3 unless given"},
    {ROW("phase", CRDI_OPT_NUMBER, phase), .metavar = "DEG", .range = CRDI_POSITIVE,
     .help = "tolerance of the phase; 3 unless given"},
    {ROW("omega", CRDI_OPT_TEXT, omega), .metavar = "LO..HI",
     .help = "frequencies of Bode data: 0.1..100 rad/s, 0.02..15 Hz, or a rising list 1,2,5 in "
             "rad/s"},
    {ROW("points", CRDI_OPT_INT, points), .metavar = "N",
     .help = "how many frequencies of LO..HI; 500 unless given"},
    {ROW("at", CRDI_OPT_QUANTITY, at), .metavar = "TIME", .unit = "s",
     .help =
         "of a system: linearise its units after a run to this time; at its start unless given"},
    {ROW("modes", CRDI_OPT_INT, modes), .metavar = "N",
     .help = "how many of the slowest modes are listed; 4 unless given"},
    {ROW("require-stable", CRDI_OPT_FLAG, require_stable),
     .help = "exit code 3 unless the loop is stable"},
    {ROW("min-phase-margin", CRDI_OPT_NUMBER, min_phase), .metavar = "DEG", .range = CRDI_POSITIVE,
     .help = "exit code 3 if the phase margin of the loop is smaller"},
    {ROW("min-gain-margin", CRDI_OPT_NUMBER, min_gain), .metavar = "FACTOR", .range = CRDI_POSITIVE,
     .help = "exit code 3 if a smaller change of the loop's gain, up or down, makes it unstable"},
    {ROW("min-delay-margin", CRDI_OPT_QUANTITY, min_delay), .metavar = "TIME", .unit = "s",
     .range = CRDI_POSITIVE, .help = "exit code 3 if a shorter delay makes the loop unstable"},
    {ROW("min-distance", CRDI_OPT_NUMBER, min_distance), .metavar = "D", .range = CRDI_POSITIVE,
     .help = "exit code 3 if |1 + L| becomes smaller; also for networks of several loops"},
    {ROW("signal", CRDI_OPT_TEXT, signal), .metavar = "NAME",
     .help = "of a recording: which signal"},
    {ROW("from", CRDI_OPT_QUANTITY, from), .metavar = "TIME", .unit = "s",
     .help = "of a recording: where to begin"},
    {ROW("to", CRDI_OPT_QUANTITY, to), .metavar = "TIME", .unit = "s",
     .help = "of a recording: where to end"},
    {ROW("part", CRDI_OPT_NUMBER, part), .metavar = "P", .range = CRDI_POSITIVE,
     .help = "of a recording: part of the power that lies in its bandwidth; 0.99 unless given"},
    {ROW("segment", CRDI_OPT_INT, length), .metavar = "N",
     .help = "of a recording: samples in a segment of Welch's method, a power of two; a quarter "
             "of the recording, at most 4096, unless given"},
    {ROW("csv", CRDI_OPT_FILE, csv), .metavar = "FILE", .extensions = "csv",
     .help = "write Bode data, Nyquist's curve or the spectrum"},
    {ROW("plot", CRDI_OPT_FILE, plot), .metavar = "FILE", .extensions = CRDI_PICTURE_ENDINGS,
     .help = "draw them" CRDI_PICTURE_HELP},
    {ROW("db", CRDI_OPT_FLAG, decibel), .help = "gains in dB in the picture and the CSV"},
    CRDI_UNPACKED_OPTION,
    CRDI_ISOLATE_OPTION,
    CRDI_JSON_OPTION("print the analysis as JSON on standard output"),
    CRDI_QUIET_OPTION,
    CRDI_COMMON_OPTIONS,
};

static const crdi_analyze_options defaults = {.common = CRDI_COMMON_DEFAULTS,
                                              .step = NAN,
                                              .magnitude = 3,
                                              .phase = 3,
                                              .at = NAN,
                                              .from = NAN,
                                              .to = NAN,
                                              .part = 0.99,
                                              .min_phase = NAN,
                                              .min_gain = NAN,
                                              .min_delay = NAN,
                                              .min_distance = NAN,
                                              .jitter = NAN,
                                              .losses = -1,
                                              .points = -1,
                                              .modes = -1,
                                              .length = -1};

const crdi_command crdi_command_analyze = {
    .name = "coupling analyze",
    .arguments = "ELEMENT...|LOOP|RECORDING",
    .summary = "Bode data of elements, margins of a loop, spectra",
    .description =
        "ELEMENT: a coupling element as a word (zoh, foh, eros ...), a file, or inline YAML. Its "
        "transfer function G_p from the signal to what the receiver sees of it: up to which part "
        "of the Nyquist frequency magnitude and phase keep their tolerances, where it amplifies "
        "most, what it does to constants and to noise. Of a network with leaky ReLUs every linear "
        "piece is analysed. LOOP: a loop file (key loop: transfer functions, or matrices and "
        "links), or a system whose FMUs are linearised (Model Exchange, or directional "
        "derivatives): Nyquist's criterion, margins, poles, and the exact map over one macro step; "
        "where samples take a varying time or are lost, whether it holds for every sequence of "
        "them and in the mean square; for elements that adapt, the gain-limit below which it does. "
        "RECORDING: spectrum of a signal (Welch), its bandwidth, and the macro step that elements "
        "need for it. Exit code 3 if a margin that you ask for is not kept.",
    .examples =
        {{"cardan coupling analyze eros --latency 6 --step 10ms", "limits and gain peaks"},
         {"cardan coupling analyze zoh foh eros --latency 0,1,3,6 --step 10ms --plot bode.svg",
          "a table over latencies, and a Bode plot"},
         {"cardan coupling analyze loop.yaml --element foh --min-phase-margin 30",
          "is the loop stable, and by which margin"},
         {"cardan coupling analyze loop.yaml --latency 2..4 --loss 0.1 --losses 2",
          "for samples that take 2 to 4 steps, of which 10 % are lost"},
         {"cardan coupling analyze system.yaml --require-stable --json",
          "the same for coupled FMUs"},
         {"cardan coupling analyze run.csv --signal motor.torque --latency 60ms",
          "bandwidth and macro step of a signal"}},
    .options = rows,
    .option_count = sizeof rows / sizeof *rows,
    .min_arguments = 1,
    .max_arguments = -1,
    .extensions = "yaml|yml|json|csv|mf4|mat|ssp|fmu",
    .size = sizeof(crdi_analyze_options),
    .defaults = &defaults,
    .run = run_analyze,
};
