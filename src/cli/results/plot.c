// cardan plot: results as SVG, signals of the same name in one panel.
#include "cardan/results.h"
#include "cli/cli.h"

#include <string.h>
#include <strings.h>

typedef struct plot_options {
    crdi_common common;
    const char *output, *title;
    crdi_list variables;
} plot_options;

enum { MOST_PANELS = 24 }; // more than that nobody looks at in one picture

typedef struct plot {
    crdi_cli* cli;
    const plot_options* options;
    crd_arena arena;
    crd_table** tables;
    const char** labels; // per table
    int table_count;
    crd_plot_panel* panels;
    int panel_count, left_out;
} plot;

static bool drawn_already(const plot* p, int table, const char* name)
{
    for (int i = 0; i < table; i++) {
        if (crd_table_find(p->tables[i], name) >= 0) { return true; }
    }
    return false;
}

// A panel for a column of a table, and what the other tables have under its name.
static crd_status add_panel(plot* p, int table, const crd_table_column* column)
{
    crd_plot_series* series = crdi_arena_new(&p->arena, (size_t)p->table_count, sizeof *series);
    if (!series) { return CRD_E_MEMORY; }
    int count = 0;
    for (int i = 0; i < p->table_count; i++) {
        const int k = crd_table_find(p->tables[i], column->name);
        const crd_table_column* c = i == table ? column : k < 0 ? NULL : &p->tables[i]->columns[k];
        if (!c || c->texts) { continue; }
        series[count] = (crd_plot_series){.label = p->table_count > 1 ? p->labels[i] : "",
                                          .x = c->time,
                                          .y = c->values,
                                          .count = c->rows,
                                          .dashed = count > 0};
        count++;
    }
    p->panels[p->panel_count++] = (crd_plot_panel){
        .title = column->name, .y_label = column->unit, .series = series, .series_count = count};
    return CRD_OK;
}

static crd_status make_panels(plot* p)
{
    p->panels = crdi_arena_new(&p->arena, MOST_PANELS, sizeof *p->panels);
    if (!p->panels) { return CRD_E_MEMORY; }
    for (int i = 0; i < p->table_count; i++) {
        const crd_table* t = p->tables[i];
        for (int k = 0; k < t->column_count; k++) {
            const crd_table_column* column = &t->columns[k];
            if (column->texts || !crdi_match_any(&p->options->variables, column->name) ||
                drawn_already(p, i, column->name)) {
                continue;
            }
            if (p->panel_count == MOST_PANELS) {
                p->left_out++;
                continue;
            }
            const crd_status st = add_panel(p, i, column);
            if (st < 0) { return st; }
        }
    }
    if (!p->panel_count) {
        return crdi_fail(p->cli->ctx, CRD_E_NOT_FOUND, "%s: no numeric signal to draw",
                         p->tables[0]->path);
    }
    if (p->left_out) {
        crdi_log(p->cli->ctx, CRD_LOG_WARNING,
                 "only the first %d signals are drawn, %d are left out; choose with --variables",
                 MOST_PANELS, p->left_out);
    }
    return CRD_OK;
}

static crd_status read_tables(plot* p, const crdi_list* files)
{
    p->tables = crdi_arena_new(&p->arena, (size_t)files->count, sizeof *p->tables);
    p->labels = crdi_arena_new(&p->arena, (size_t)files->count, sizeof *p->labels);
    if (!p->tables || !p->labels) { return CRD_E_MEMORY; }
    for (int i = 0; i < files->count; i++) {
        const crd_status st = crd_table_read(p->cli->ctx, files->items[i], &p->tables[i]);
        if (st < 0) { return st; }
        p->table_count++;
        p->labels[i] = crdi_file_stem(&p->arena, files->items[i]);
        if (!p->labels[i]) { return CRD_E_MEMORY; }
    }
    return CRD_OK;
}

static crd_status draw_panels(plot* p, const crdi_list* files, crdi_result* out)
{
    crd_context* ctx = p->cli->ctx;
    const char* output = p->options->output;
    if (!output) { output = crdi_arena_format(&p->arena, "%s.svg", p->labels[0]); }
    if (!output) { return CRD_E_MEMORY; }
    for (int i = 0; i < files->count; i++) {
        const crd_status st =
            crdi_refuse_overwriting(ctx, output, files->items[i], "the picture", "a result");
        if (st < 0) { return st; }
    }
    const char* ending = strrchr(output, '.');
    if (ending && !strchr(ending, '/') && strcasecmp(ending, ".svg") != 0) {
        return crdi_fail(ctx, CRD_E_UNSUPPORTED,
                         "%s: pictures are written as SVG, the name should end in .svg", output);
    }
    const char* title = p->options->title ? p->options->title : p->labels[0];
    const crd_status st = crd_plot_svg(ctx, output, title, "time [s]", p->panels, p->panel_count);
    if (st < 0) { return st; }
    crdi_say(out, "%s: %d signal%s of %d result%s\n", output, p->panel_count,
             crdi_plural(p->panel_count), p->table_count, crdi_plural(p->table_count));
    return CRD_OK;
}

static crd_status run_plot(crdi_cli* cli, const void* options, const crdi_list* arguments,
                           crdi_result* out)
{
    plot p = {.cli = cli, .options = options};
    crd_status st = CRD_OK;
    crd_arena_init(&p.arena, cli->ctx);
    CRD_TRY(read_tables(&p, arguments));
    CRD_TRY(crdi_check_patterns(cli->ctx, &p.options->variables, p.tables, p.table_count));
    CRD_TRY(make_panels(&p));
    CRD_TRY(draw_panels(&p, arguments, out));
fail:
    for (int i = 0; i < p.table_count; i++) {
        crd_table_destroy(p.tables[i]);
    }
    crd_arena_clear(&p.arena);
    return st;
}

static const crdi_option rows[] = {
    OPT_FILE(plot_options, output, "output", "svg",
             "picture to write; the name of the first result with .svg in the current folder "
             "unless given",
             .short_name = 'o'),
    CRDI_SIGNALS_OPTION(plot_options),
    OPT_TEXT(plot_options, title, "title", "TEXT",
             "title of the picture; the name of the first result unless given"),
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_plot = {
    .name = "plot",
    .arguments = "RESULT...",
    .summary = "draw results as SVG",
    .description = "Draws the signals of one or more results, one panel for each name: signals of "
                   "the same name lie over each other. Text columns are left out.",
    .examples = {{"cardan plot run.csv -o run.svg", "all signals of a run"},
                 {"cardan plot coupled.csv monolithic.csv --variables 'x*' -o both.svg",
                  "two runs over each other"}},
    OPTIONS(rows, plot_options),
    .min_arguments = 1,
    .max_arguments = -1,
    .extensions = "csv|mf4|mat",
    .run = run_plot,
};
