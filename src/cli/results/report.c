// cardan report: results as one HTML file, as Markdown, or a few signals as a picture.
#include "cardan/master.h"
#include "cardan/system.h"
#include "cli/picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct report_options {
    crdi_common common;
    const char *output, *title, *system;
    crdi_list variables, references, plot;
    int format;
} report_options;

static const char* const formats[] = {"html", "md", NULL};

typedef struct report {
    crdi_cli* cli;
    const report_options* options;
    crdi_result* out;
    crd_arena arena;
    crd_report_run* runs;
    int count;
    const char* output;
    crd_text what; // of --system, as JSON
} report;

// ---- what ran, from a description --------------------------------------------------------------

// A description tells nothing about when and where the result was made.
static crd_status describe_system(report* r)
{
    crd_context* ctx = r->cli->ctx;
    crd_status st = CRD_OK;
    crd_system* system = NULL;
    crd_master* master = NULL;
    crdi_json* all = NULL;
    crdi_json_writer w;
    crd_text text;
    crd_text_init(&text, ctx);
    CRD_TRY(crdi_load_system(ctx, r->options->system, &system));
    CRD_TRY(crd_master_create(ctx, system, NULL, &master));
    CRD_TRY(crd_master_describe_run(master, &text));
    CRD_TRY(text.failed ? CRD_E_MEMORY : CRD_OK);
    CRD_TRY(crdi_json_parse_most(&r->arena, text.data, text.length, CRDI_JSON_RUN_BYTES,
                                 (crdi_json_source){.file = r->options->system}, &all));
    crdi_json_writer_init(&w, &r->what, CRDI_JSON_COMPACT);
    crdi_json_begin_object(&w, NULL);
    for (const crdi_json* m = all->first; m; m = m->next) {
        if (strcmp(m->key, "started") != 0 && strcmp(m->key, "machine") != 0 &&
            strcmp(m->key, "cardan") != 0) {
            crdi_json_put_tree(&w, m->key, m);
        }
    }
    crdi_json_end(&w);
    CRD_TRY(r->what.failed ? CRD_E_MEMORY : CRD_OK);
fail:
    crd_master_destroy(master);
    crd_system_destroy(system);
    crd_text_clear(&text);
    return st;
}

static bool says_what_ran(const crd_recording_info* info)
{
    for (int i = 0; i < info->attachment_count; i++) {
        if (strcmp(info->attachments[i].name, CRD_ATTACHMENT_RUN) == 0) { return true; }
    }
    return false;
}

// ---- opening -----------------------------------------------------------------------------------

static crd_status open_runs(report* r, const crdi_list* files)
{
    const crdi_list* references = &r->options->references;
    const int count = files->count + references->count;
    r->runs = crdi_arena_new(&r->arena, (size_t)count, sizeof *r->runs);
    if (!r->runs) { return CRD_E_MEMORY; }
    for (int i = 0; i < count; i++) {
        const bool reference = i >= files->count;
        const char* path = reference ? references->items[i - files->count] : files->items[i];
        crd_report_run* run = &r->runs[i];
        const crd_status st = crd_recording_open(r->cli->ctx, path, &run->recording);
        if (st < 0) { return st; }
        r->count++;
        run->reference = reference;
        run->label = crdi_file_stem(&r->arena, path);
        if (!run->label) { return CRD_E_MEMORY; }
        if (r->what.length && !reference &&
            !says_what_ran(crd_recording_describe(run->recording))) {
            run->what = r->what.data;
        }
    }
    return CRD_OK;
}

static crd_status choose_output(report* r, const crdi_list* files, const char* ending)
{
    crd_context* ctx = r->cli->ctx;
    const report_options* o = r->options;
    const char* stem = crdi_file_stem(&r->arena, files->items[0]);
    r->output = o->output;
    if (!r->output && stem) { r->output = crdi_arena_format(&r->arena, "%s.%s", stem, ending); }
    if (!r->output) { return CRD_E_MEMORY; }
    for (int i = 0; i < r->count; i++) {
        const char* path = crd_recording_describe(r->runs[i].recording)->path;
        const crd_status st =
            crdi_refuse_overwriting(ctx, r->output, path, "the report", "a result");
        if (st < 0) { return st; }
    }
    return crdi_refuse_overwriting(ctx, r->output, o->system, "the report",
                                   "the system description");
}

// ---- a picture of some signals -----------------------------------------------------------------

typedef struct line { // a signal of a run, read whole
    const crd_signal_info* info;
    const char* label;
    double *x, *y;
    size_t count, x_capacity, y_capacity;
    bool dashed;
} line;

// Length up to the next comma that is not inside the brackets of an element, x[1,2].
static size_t name_length(const char* text)
{
    int depth = 0;
    size_t n = 0;
    for (; text[n] && (text[n] != ',' || depth > 0); n++) {
        depth += (text[n] == '[') - (text[n] == ']');
    }
    return n;
}

static bool chosen_by(const crdi_list* names, const char* name)
{
    for (int i = 0; i < names->count; i++) {
        const char* p = names->items[i];
        while (*p) { // "a,b": one or several per option
            const size_t n = name_length(p);
            char pattern[1024];
            snprintf(pattern, sizeof pattern, "%.*s", (int)n, p);
            if (strcmp(pattern, name) == 0 || crdi_glob(pattern, name)) { return true; }
            p += n + (p[n] == ',');
        }
    }
    return false;
}

static crd_status read_line(report* r, crd_recording* recording, int signal, line* l)
{
    crd_context* ctx = r->cli->ctx;
    crd_status st = CRD_OK;
    crd_cursor* cursor = NULL;
    l->info = &crd_recording_describe(recording)->signals[signal];
    CRD_TRY(crd_cursor_open(recording, l->info->group, &signal, 1, &cursor));
    for (crd_block b;;) {
        CRD_TRY(crd_cursor_next(cursor, &b));
        if (b.rows == 0) { break; }
        const size_t rows = (size_t)b.rows;
        double* x = crdi_grow(ctx, l->x, &l->x_capacity, l->count + rows, sizeof *x);
        if (x) { l->x = x; }
        double* y = crdi_grow(ctx, l->y, &l->y_capacity, l->count + rows, sizeof *y);
        if (y) { l->y = y; }
        if (!x || !y) {
            st = CRD_E_MEMORY;
            goto fail;
        }
        memcpy(l->x + l->count, b.time, rows * sizeof *x);
        memcpy(l->y + l->count, b.values[0], rows * sizeof *y);
        l->count += rows;
    }
fail:
    crd_cursor_close(cursor);
    return st;
}

// Signals with the same unit share a panel.
static crd_status draw_lines(report* r, line* lines, int count)
{
    crd_plot_panel* panels = crdi_arena_new(&r->arena, (size_t)count, sizeof *panels);
    crd_plot_series* series = crdi_arena_new(&r->arena, (size_t)count, sizeof *series);
    if (!panels || !series) { return CRD_E_MEMORY; }
    int panel_count = 0, n = 0;
    for (int i = 0; i < count; i++) {
        const char* unit = lines[i].info->unit;
        bool done = false;
        for (int k = 0; k < i && !done; k++) {
            done = strcmp(lines[k].info->unit, unit) == 0;
        }
        if (done) { continue; }
        crd_plot_panel* p = &panels[panel_count++];
        *p = (crd_plot_panel){.title = "", .y_label = unit, .series = &series[n]};
        for (int k = i; k < count; k++) {
            const line* l = &lines[k];
            if (strcmp(l->info->unit, unit) != 0) { continue; }
            series[n++] = (crd_plot_series){.label = l->label,
                                            .x = l->x,
                                            .y = l->y,
                                            .count = (int64_t)l->count,
                                            .dashed = l->dashed};
            p->series_count++;
        }
    }
    const char* title = r->options->title ? r->options->title : r->runs[0].label;
    const crd_plot_options picture = {.title = title, .x_label = "time [s]"};
    return crdi_picture_write(r->cli, r->output, &picture, panels, panel_count);
}

static crd_status make_picture(report* r)
{
    enum { MOST_LINES = 64 };
    crd_context* ctx = r->cli->ctx;
    const crdi_list* names = &r->options->plot;
    crd_status st = CRD_OK;
    int count = 0;
    line* lines = crdi_new_array(ctx, MOST_LINES, sizeof *lines);
    if (!lines) { return CRD_E_MEMORY; }
    for (int i = 0; i < r->count; i++) {
        const crd_recording_info* info = crd_recording_describe(r->runs[i].recording);
        for (int k = 0; k < info->signal_count; k++) {
            const crd_signal_info* s = &info->signals[k];
            if (crd_type_kind(s->type) == CRD_BYTES || !chosen_by(names, s->name)) { continue; }
            if (count == MOST_LINES) {
                st = crdi_fail(ctx, CRD_E_RANGE,
                               "--plot: more than %d lines fit; choose fewer signals", MOST_LINES);
                goto fail;
            }
            line* l = &lines[count++];
            l->dashed = r->runs[i].reference;
            l->label = r->count > 1
                           ? crdi_arena_format(&r->arena, "%s, %s", s->name, r->runs[i].label)
                           : s->name;
            if (!l->label) { CRD_TRY(CRD_E_MEMORY); }
            CRD_TRY(read_line(r, r->runs[i].recording, k, l));
        }
    }
    if (count == 0) {
        st = crdi_fail(ctx, CRD_E_NOT_FOUND, "--plot '%s' fits no numeric signal of %s",
                       names->items[0], crd_recording_describe(r->runs[0].recording)->path);
        goto fail;
    }
    CRD_TRY(draw_lines(r, lines, count));
    crdi_say(r->out, "%s: %d line%s\n", r->output, count, crdi_plural(count));
fail:
    for (int i = 0; i < count; i++) {
        crd_free(ctx, lines[i].x);
        crd_free(ctx, lines[i].y);
    }
    crd_free(ctx, lines);
    return st;
}

// ---- the command -------------------------------------------------------------------------------

static crd_status results_report_write_report(report* r, bool markdown)
{
    const report_options* o = r->options;
    const crd_report_options opt = {.format = markdown ? CRD_REPORT_MARKDOWN : CRD_REPORT_HTML,
                                    .title = o->title,
                                    .patterns = o->variables.items,
                                    .pattern_count = o->variables.count};
    const crd_status st = crd_report_write(r->cli->ctx, r->output, r->runs, r->count, &opt);
    if (st < 0) { return st; }
    const int references = o->references.count, results = r->count - references;
    crdi_say(r->out, "%s: %d result%s%s\n", r->output, results, crdi_plural(results),
             references ? " and a reference" : "");
    return CRD_OK;
}

static crd_status check_endings(report* r, bool picture, bool markdown)
{
    static const char* const pages[] = {".html", ".htm"};
    const char* path = r->options->output;
    if (!path || strncmp(path, "/dev/", 5) == 0) { return CRD_OK; }
    if (picture) { return crdi_picture_check(r->cli, path, &r->options->common); }
    const bool drawn = crdi_ends_with(path, ".svg") || crdi_ends_with(path, ".png");
    if (drawn || crdi_ends_with(path, ".pdf")) {
        return crdi_fail(
            r->cli->ctx, CRD_E_UNSUPPORTED, "%s: reports are written as HTML or Markdown%s", path,
            drawn ? "; --plot SIGNAL draws a picture" : "; a browser prints the HTML as PDF");
    }
    const bool page = crdi_ends_with(path, pages[0]) || crdi_ends_with(path, pages[1]);
    if ((markdown && page) || (!markdown && crdi_ends_with(path, ".md"))) {
        return crdi_fail(r->cli->ctx, CRD_E_RANGE, "%s does not go with --format %s", path,
                         markdown ? "md" : "html");
    }
    return CRD_OK;
}

static crd_status run_report(crdi_cli* cli, const void* options, const crdi_list* arguments,
                             crdi_result* out)
{
    report r = {.cli = cli, .options = options, .out = out};
    const report_options* o = options;
    const bool picture = o->plot.count > 0;
    const bool markdown =
        o->format == 1 || (o->format < 0 && o->output && crdi_ends_with(o->output, ".md"));
    crd_status st = CRD_OK;
    crd_arena_init(&r.arena, cli->ctx);
    crd_text_init(&r.what, cli->ctx);
    CRD_TRY(check_endings(&r, picture, markdown));
    if (o->system) { CRD_TRY(describe_system(&r)); }
    CRD_TRY(open_runs(&r, arguments));
    CRD_TRY(choose_output(&r, arguments, picture ? "svg" : markdown ? "md" : "html"));
    CRD_TRY(picture ? make_picture(&r) : results_report_write_report(&r, markdown));
fail:
    for (int i = 0; i < r.count; i++) {
        crd_recording_close(r.runs[i].recording);
    }
    crd_text_clear(&r.what);
    crd_arena_clear(&r.arena);
    return st;
}

static const crdi_option rows[] = {
    OPT_FILE(report_options, output, "output", "html|md|svg|png|pdf",
             "file to write; the name of the first result with .html, .md or .svg in the current "
             "folder unless given",
             .short_name = 'o'),
    OPT_CHOICE(
        report_options, format, "format", formats,
        "a page, or Markdown with its plots as SVG files in a folder beside it; as the ending "
        "of the output says, else html"),
    OPT_TEXT(report_options, title, "title", "TEXT",
             "title of the report; that of the system unless given"),
    CRDI_SIGNALS_OPTION(report_options),
    OPT_LIST(report_options, references, "reference", "FILE",
             "result to compare with, drawn dashed", .extensions = "csv|mf4|mat"),
    OPT_FILE(report_options, system, "system", "yaml|yml|ssp|ssd|fmu",
             "what ran, for results that do not say it themselves (CSV)", .metavar = "SYSTEM"),
    OPT_LIST(report_options, plot, "plot", "SIGNAL,...",
             "no report, only a picture of these signals" CRDI_PICTURE_HELP),
    CRDI_QUIET_OPTION,
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_report = {
    .name = "report",
    .arguments = "RESULT...",
    .summary = "make a report with plots out of results",
    .description =
        "Writes one HTML file that needs nothing else: how the run went, what ran, a drawing of "
        "the "
        "system, plots to zoom into, events, times and statistics. Several results are laid over "
        "each other: signals of the same name share a plot. MF4 and MAT results say what ran; for "
        "CSV --system does.",
    .examples = {{"cardan report run.mf4", "run.html, to mail or to print"},
                 {"cardan report a.mf4 b.mf4 --reference bench.mf4 -o report.html",
                  "two runs and a measurement over each other"},
                 {"cardan report run.csv --system system.yaml --format md",
                  "run.md and run-plots/"},
                 {"cardan report run.mf4 --plot motor.speed,motor.torque -o motor.svg",
                  "a picture of two signals"}},
    OPTIONS(rows, report_options),
    .min_arguments = 1,
    .max_arguments = -1,
    .extensions = "csv|mf4|mat",
    .run = run_report,
};
