// cardan plot: results as pictures for papers and screens, or as text on the terminal.
#include "cli/picture.h"
#include "shared/base_units.h"

#include <math.h>
#include <string.h>

typedef struct plot_options {
    crdi_common common;
    const char *output, *title, *size, *font;
    crdi_list variables, panels, xy;
    double from, to; // s
    double dpi;
    int format, width;
    bool terminal, all;
} plot_options;

enum {
    MOST_PANELS = 24, // more than that nobody looks at in one picture
    ALONE = 8,        // up to so many signals have a panel each
    TOGETHER = 7,     // of one panel: as many as there are colours
};

typedef struct plot {
    crdi_cli* cli;
    const plot_options* options;
    crd_arena arena;
    crd_table** tables;
    const char** labels; // per table
    int table_count;
    crd_plot_panel* panels;
    crd_plot_scale* scales;
    int panel_count, signal_count, left_out, internal;
} plot;

// ---- signals -----------------------------------------------------------------------------------

// The first result that has the signal, in a unit of measure that goes together with this one: what
// later ones have is drawn over it, in its unit.
static const crd_table_column* first_of(const plot* p, const crd_table_column* c)
{
    double factor, offset;
    for (int i = 0; i < p->table_count; i++) {
        const crd_table* t = p->tables[i];
        if (c >= t->columns && c < t->columns + t->column_count) { break; }
        const int k = crd_table_find(t, c->name);
        const crd_table_column* other = k < 0 ? NULL : &t->columns[k];
        if (other && !other->texts && crdi_unit_convert(c->unit, other->unit, &factor, &offset)) {
            return other;
        }
    }
    return c;
}

// What couplings tell about themselves
static bool is_internal(const char* name)
{
    return strstr(name, ".coupling.") || crdi_ends_with(name, ".defect");
}

static const double* converted(plot* p, const crd_table_column* c)
{
    double factor, offset;
    (void)crdi_unit_convert(c->unit, first_of(p, c)->unit, &factor, &offset);
    if (factor == 1 && offset == 0) { return c->values; }
    double* own = crdi_arena_new(&p->arena, (size_t)c->rows + 1, sizeof *own);
    for (int64_t i = 0; own && i < c->rows; i++) {
        own[i] = factor * c->values[i] + offset;
    }
    return own; // NULL: the arena remembers
}

// The rows of the window
static crd_plot_series rows_of(plot* p, const crd_table_column* c, const char* label)
{
    const double* values = converted(p, c);
    if (!values) { return (crd_plot_series){.label = label}; }
    int64_t first = 0, end = c->rows;
    while (!isnan(p->options->from) && first < end && c->time[first] < p->options->from) {
        first++;
    }
    while (!isnan(p->options->to) && end > first && c->time[end - 1] > p->options->to) {
        end--;
    }
    return (crd_plot_series){
        .label = label, .x = c->time + first, .y = values + first, .count = end - first};
}

static crd_plot_panel* next_panel(plot* p, int room, crd_plot_series** series)
{
    if (p->panel_count == MOST_PANELS) { return NULL; }
    *series = crdi_arena_new(&p->arena, (size_t)room, sizeof **series);
    crd_plot_panel* panel = &p->panels[p->panel_count++];
    *panel = (crd_plot_panel){.series = *series};
    return panel;
}

// A panel for a column of a table, and what the other tables have under its name and can be drawn
// over it.
static crd_status add_panel(plot* p, int table, const crd_table_column* column)
{
    crd_plot_series* series;
    crd_plot_panel* panel = next_panel(p, p->table_count, &series);
    if (!series) { return CRD_E_MEMORY; }
    for (int i = 0; i < p->table_count; i++) {
        const int k = crd_table_find(p->tables[i], column->name);
        const crd_table_column* c = i == table ? column : k < 0 ? NULL : &p->tables[i]->columns[k];
        if (!c || c->texts || first_of(p, c) != column) { continue; }
        series[panel->series_count] =
            rows_of(p, c, p->table_count > 1 ? p->labels[i] : column->name);
        series[panel->series_count].dashed = panel->series_count > 0;
        panel->series_count++;
    }
    panel->title = p->table_count > 1 ? column->name : "";
    panel->y_label = column->unit;
    p->signal_count++;
    return CRD_OK;
}

// One more signal in a panel. The first unit of measure has the left axis, the second the right
// one; with more of them the names say which is which.
static void add_signal(plot* p, crd_plot_panel* panel, const crd_table_column* c, int table)
{
    crd_plot_series* s = (crd_plot_series*)&panel->series[panel->series_count];
    const char* label = c->name;
    if (p->table_count > 1) {
        label = crdi_arena_format(&p->arena, "%s, %s", c->name, p->labels[table]);
    }
    bool right = false;
    const char* unit = first_of(p, c)->unit;
    if (panel->series_count == 0) {
        panel->y_label = unit;
    } else if (strcmp(panel->y_label, unit) != 0) {
        if (!panel->right_label) { panel->right_label = unit; }
        right = strcmp(panel->right_label, unit) == 0;
        if (!right) { label = crdi_arena_format(&p->arena, "%s [%s]", label, unit); }
    }
    *s = rows_of(p, c, label);
    s->right = right;
    s->dashed = table > 0;
    panel->series_count++;
    p->signal_count++;
}

// ---- panels ------------------------------------------------------------------------------------

// "a,b*": the patterns between the commas
static crd_status split(plot* p, const char* text, crdi_list* out)
{
    for (;;) {
        int depth = 0; // a comma in brackets is part of an index
        size_t n = 0;
        while (text[n] && (text[n] != ',' || depth > 0)) {
            depth += (text[n] == '[') - (text[n] == ']');
            n++;
        }
        const char* item = crdi_arena_text(&p->arena, text, n);
        if (!item) { return CRD_E_MEMORY; }
        const crd_status st = n ? crdi_list_add(p->cli->ctx, out, item) : CRD_OK;
        if (st < 0 || !text[n]) { return st; }
        text += n + 1;
    }
}

static crd_status add_chosen_panel(plot* p, const char* text)
{
    crd_status st = CRD_OK;
    crdi_list patterns = {0};
    CRD_TRY(split(p, text, &patterns));
    CRD_TRY(crdi_check_patterns(p->cli->ctx, &patterns, p->tables, p->table_count));
    crd_plot_series* series = NULL;
    crd_plot_panel* panel = next_panel(p, TOGETHER * 2, &series);
    if (!panel) {
        st = crdi_fail(p->cli->ctx, CRD_E_RANGE, "--panel more than %d times", MOST_PANELS);
        goto fail;
    }
    if (!series) {
        st = CRD_E_MEMORY;
        goto fail;
    }
    for (int k = 0; k < patterns.count; k++) {
        for (int i = 0; i < p->table_count; i++) {
            for (int c = 0; c < p->tables[i]->column_count; c++) {
                const crd_table_column* column = &p->tables[i]->columns[c];
                if (column->texts || !crdi_glob(patterns.items[k], column->name)) { continue; }
                if (panel->series_count == TOGETHER * 2) {
                    p->left_out++;
                } else {
                    add_signal(p, panel, column, i);
                }
            }
        }
    }
fail:
    crd_free(p->cli->ctx, patterns.items);
    return st;
}

static const crd_table_column* column_of(const plot* p, int table, const char* name)
{
    const int k = crd_table_find(p->tables[table], name);
    return k < 0 || p->tables[table]->columns[k].texts ? NULL : &p->tables[table]->columns[k];
}

// "x,y": one over the other, of every result that has both
static crd_status add_xy(plot* p, const char* text)
{
    crd_context* ctx = p->cli->ctx;
    crd_status st = CRD_OK;
    crdi_list two = {0};
    const crd_table_column* first[2] = {NULL, NULL};
    crd_plot_series* series = NULL;
    CRD_TRY(split(p, text, &two));
    if (two.count != 2) {
        st = crdi_fail(ctx, CRD_E_RANGE, "--xy %s, expected two signals: --xy x,y", text);
        goto fail;
    }
    CRD_TRY(crdi_check_patterns(ctx, &two, p->tables, p->table_count));
    crd_plot_scale* scale = &p->scales[p->panel_count];
    crd_plot_panel* panel = next_panel(p, p->table_count, &series);
    if (!panel || !series) {
        st = panel ? CRD_E_MEMORY : crdi_fail(ctx, CRD_E_RANGE, "more than %d panels", MOST_PANELS);
        goto fail;
    }
    for (int i = 0; i < p->table_count; i++) {
        const crd_table_column *x = column_of(p, i, two.items[0]),
                               *y = column_of(p, i, two.items[1]);
        if (!x || !y) { continue; }
        if (!panel->series_count) {
            first[0] = first_of(p, x);
            first[1] = first_of(p, y);
        }
        for (int k = 0; k < 2; k++) {
            const crd_table_column* c = k ? y : x;
            if (first_of(p, c) == first[k]) { continue; }
            st = crdi_fail(ctx, CRD_E_RANGE,
                           "%s: %s is in '%s', which cannot be drawn over '%s' of the results "
                           "before it",
                           p->tables[i]->path, c->name, c->unit, first[k]->unit);
            goto fail;
        }
        if (x->time != y->time &&
            (x->rows != y->rows ||
             memcmp(x->time, y->time, (size_t)x->rows * sizeof *x->time) != 0)) {
            st = crdi_fail(ctx, CRD_E_RANGE,
                           "%s: %s and %s are not of the same times, expected two signals of one "
                           "raster",
                           p->tables[i]->path, x->name, y->name);
            goto fail;
        }
        const crd_plot_series of_y = rows_of(p, y, p->table_count > 1 ? p->labels[i] : "");
        series[panel->series_count] = rows_of(p, x, of_y.label);
        series[panel->series_count].x = series[panel->series_count].y;
        series[panel->series_count].y = of_y.y;
        series[panel->series_count++].dashed = i > 0;
        panel->y_label = crdi_arena_format(&p->arena, *first[1]->unit ? "%s / %s" : "%s", y->name,
                                           first[1]->unit);
        scale->x_label = crdi_arena_format(&p->arena, *first[0]->unit ? "%s / %s" : "%s", x->name,
                                           first[0]->unit);
    }
    if (!panel->series_count) {
        st = crdi_fail(ctx, CRD_E_NOT_FOUND, "--xy %s: no result has both as numbers", text);
        goto fail;
    }
    // lines end at the frame, and keep their shape within a column of dots
    *scale = (crd_plot_scale){.own_x = true, .x_label = scale->x_label, .keep_shape = true};
    p->signal_count += 2;
fail:
    crd_free(ctx, two.items);
    return st;
}

// Many signals of one result: those of one unit of measure together.
static crd_status add_together(plot* p, const crd_table_column* c)
{
    for (int i = 0; i < p->panel_count; i++) {
        crd_plot_panel* panel = &p->panels[i];
        if (panel->series_count < TOGETHER && strcmp(panel->y_label, c->unit) == 0) {
            add_signal(p, panel, c, 0);
            return CRD_OK;
        }
    }
    crd_plot_series* series;
    crd_plot_panel* panel = next_panel(p, TOGETHER, &series);
    if (!panel) {
        p->left_out++;
        return CRD_OK;
    }
    if (!series) { return CRD_E_MEMORY; }
    add_signal(p, panel, c, 0);
    return CRD_OK;
}

static bool is_chosen(plot* p, const crd_table_column* c)
{
    const plot_options* o = p->options;
    if (c->texts || !crdi_match_any(&o->variables, c->name)) { return false; }
    if (o->variables.count || o->all || !is_internal(c->name)) { return true; }
    p->internal++;
    return false;
}

static crd_status choose_panels(plot* p)
{
    int all = 0;
    for (int i = 0; i < p->tables[0]->column_count; i++) {
        all += is_chosen(p, &p->tables[0]->columns[i]);
    }
    p->internal = 0;
    const bool together = p->table_count == 1 && all > ALONE;
    for (int i = 0; i < p->table_count; i++) {
        for (int k = 0; k < p->tables[i]->column_count; k++) {
            const crd_table_column* column = &p->tables[i]->columns[k];
            if (!is_chosen(p, column) || first_of(p, column) != column) { continue; }
            crd_status st = CRD_OK;
            if (together) {
                st = add_together(p, column);
            } else if (p->panel_count == MOST_PANELS) {
                p->left_out++;
            } else {
                st = add_panel(p, i, column);
            }
            if (st < 0) { return st; }
        }
    }
    return CRD_OK;
}

static crd_status make_panels(plot* p)
{
    const plot_options* o = p->options;
    crd_status st = CRD_OK;
    p->panels = crdi_arena_new(&p->arena, MOST_PANELS, sizeof *p->panels);
    p->scales = crdi_arena_new(&p->arena, MOST_PANELS, sizeof *p->scales);
    if (!p->panels || !p->scales) { return CRD_E_MEMORY; }
    for (int i = 0; i < o->panels.count; i++) {
        CRD_TRY(add_chosen_panel(p, o->panels.items[i]));
    }
    for (int i = 0; i < o->xy.count; i++) {
        CRD_TRY(add_xy(p, o->xy.items[i]));
    }
    if (!p->panel_count || o->variables.count) { CRD_TRY(choose_panels(p)); }
    CRD_TRY(crdi_arena_status(&p->arena));
    if (!p->panel_count) {
        return crdi_fail(p->cli->ctx, CRD_E_NOT_FOUND, "%s: no numeric signal to draw",
                         p->tables[0]->path);
    }
    bool any = false;
    for (int i = 0; i < p->panel_count; i++) {
        for (int k = 0; k < p->panels[i].series_count; k++) {
            any |= p->panels[i].series[k].count > 0;
        }
    }
    if (!any && (!isnan(o->from) || !isnan(o->to))) {
        return crdi_fail(p->cli->ctx, CRD_E_RANGE,
                         "no row from %g s to %g s, expected a part of %g s to %g s", o->from,
                         o->to, p->tables[0]->rows ? p->tables[0]->time[0] : NAN,
                         p->tables[0]->rows ? p->tables[0]->time[p->tables[0]->rows - 1] : NAN);
    }
    if (!any) {
        return crdi_fail(p->cli->ctx, CRD_E_FORMAT, "%s: there is no row in it",
                         p->tables[0]->path);
    }
    if (p->left_out) {
        crdi_log(p->cli->ctx, CRD_LOG_WARNING,
                 "only the first %d signals are drawn, %d are left out; choose with --variables "
                 "or --panel",
                 p->signal_count, p->left_out);
    }
fail:
    return st;
}

// ---- the picture -------------------------------------------------------------------------------

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

// "160x90", "6.3inx9cm", "16x9cm", "160": mm unless it says otherwise
static crd_status read_size(crd_context* ctx, const char* text, crd_plot_options* out)
{
    static const struct {
        const char* name;
        double mm;
    } units[] = {{"mm", 1},         {"cm", 10},        {"in", 25.4},
                 {"pt", 25.4 / 72}, {"px", 25.4 / 96}, {"", 1}};
    double sizes[2] = {0, 0}, factors[2] = {1, 1};
    bool named[2] = {false, false};
    const char* at = text;
    int count = 0;
    bool good = true;
    for (; good && count < 2 && *at; count++) {
        const size_t n = crdi_number_prefix(at);
        good = n > 0 && crdi_parse_double(at, n, &sizes[count]) && sizes[count] > 0;
        at += n;
        size_t i = 0;
        while (strncmp(at, units[i].name, strlen(units[i].name)) != 0) {
            i++;
        }
        factors[count] = units[i].mm;
        named[count] = units[i].name[0];
        at += strlen(units[i].name);
        if (count == 0 && (*at == 'x' || *at == 'X') && at[1]) { at++; }
    }
    if (named[1] && !named[0]) { factors[0] = factors[1]; } // the unit behind is that of both
    sizes[0] *= factors[0];
    sizes[1] *= factors[1];
    if (!good || *at || count == 0 || !(sizes[0] < 1e6 && sizes[1] < 1e6)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "--size %s, expected a width, or a width and a height: 160, 160x90 (mm), "
                         "12x8cm, 6x4in, 800x600px",
                         text);
    }
    out->width = sizes[0];
    out->height = sizes[1];
    return CRD_OK;
}

// "DejaVu Serif 10": a name, a size in points, or both
static crd_status read_font(plot* p, crd_plot_options* out)
{
    const char* text = p->options->font;
    const char* last = strrchr(text, ' ');
    const char* number = last ? last + 1 : text;
    double size = 0;
    if (!crdi_parse_double(number, strlen(number), &size)) {
        out->font = text;
        return CRD_OK;
    }
    out->font_size = size;
    out->font = last ? crdi_arena_text(&p->arena, text, (size_t)(last - text)) : NULL;
    return last && !out->font ? CRD_E_MEMORY : CRD_OK;
}

static crd_status draw_panels(plot* p, const crdi_list* files, crdi_result* out)
{
    crd_context* ctx = p->cli->ctx;
    const plot_options* o = p->options;
    crd_status st = CRD_OK;
    const bool terminal = o->terminal || o->format == CRD_PLOT_TERMINAL;
    const char* output =
        o->output  ? o->output
        : terminal ? "-"
                   : crdi_arena_format(&p->arena, "%s.%s", p->labels[0],
                                       crdi_picture_formats[o->format < 0 ? 0 : o->format]);
    if (!output) { return CRD_E_MEMORY; }
    crd_plot_options picture = {.title = o->title,
                                .x_label = "time / s",
                                .scales = p->scales,
                                .width = 160,
                                .dpi = isnan(o->dpi) ? 0 : o->dpi};
    for (int i = 0; i < files->count; i++) {
        CRD_TRY(crdi_refuse_overwriting(ctx, output, files->items[i], "the picture", "a result"));
    }
    if (terminal) {
        crdi_picture_terminal(p->cli, o->width, &picture);
    } else {
        CRD_TRY(crdi_picture_format(ctx, output, o->format, &picture.format));
    }
    if (o->size) { CRD_TRY(read_size(ctx, o->size, &picture)); }
    if (o->font) { CRD_TRY(read_font(p, &picture)); }
    CRD_TRY(crd_plot_write(ctx, output, &picture, p->panels, p->panel_count));
    if (strcmp(output, "-") != 0) {
        crdi_say(out, "%s: %d signal%s of %d result%s\n", output, p->signal_count,
                 crdi_plural(p->signal_count), p->table_count, crdi_plural(p->table_count));
        if (p->internal) {
            crdi_say(out, "%d signal%s of couplings left out, --all draws them too\n", p->internal,
                     crdi_plural(p->internal));
        }
    }
fail:
    return st;
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
    OPT_FILE(plot_options, output, "output", "svg|png|pdf",
             "picture to write, - is standard output; the name of the first result with .svg in "
             "the current folder unless given",
             .short_name = 'o'),
    OPT_CHOICE(plot_options, format, "format", crdi_picture_formats,
               "what the picture is; the ending of its name says it unless given"),
    OPT_FLAG(plot_options, terminal, "terminal", "draw with letters on the terminal"),
    OPT_COUNT(plot_options, width, "width", "COLUMNS",
              "of the terminal; its own, else 80 unless given"),
    CRDI_SIGNALS_OPTION(plot_options),
    OPT_LIST(plot_options, panels, "panel", "PATTERN,...",
             "a panel with these signals; those of a second unit of measure have an axis at the "
             "right"),
    OPT_LIST(plot_options, xy, "xy", "X,Y", "a panel with one signal over another"),
    OPT_FLAG(plot_options, all, "all", "also what couplings tell about themselves"),
    OPT_TIME(plot_options, from, "from", CRDI_ANY, "where the part that is drawn begins"),
    OPT_TIME(plot_options, to, "to", CRDI_ANY, "where it ends"),
    OPT_TEXT(plot_options, title, "title", "TEXT", "title of the picture; none unless given"),
    OPT_TEXT(plot_options, size, "size", "WIDTHxHEIGHT",
             "in mm, or as in 12x8cm, 6x4in, 800x600px; 160 mm wide and as high as the "
             "panels need unless given"),
    OPT_TEXT(plot_options, font, "font", "NAME SIZE",
             "of the letters, the size in points: 'Times 10'; a sans-serif one of 9 unless given"),
    OPT_NUMBER(plot_options, dpi, "dpi", "NUMBER", CRDI_POSITIVE,
               "pixels per inch of a PNG; 300 unless given"),
    CRDI_QUIET_OPTION,
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_plot = {
    .name = "plot",
    .arguments = "RESULT...",
    .summary = "draw results as SVG, PNG, PDF or on the terminal",
    .description =
        "Draws the signals of one or more results. Up to eight signals have a panel each; of more, "
        "those with one unit of measure share a panel. Of several results, signals of the same "
        "name lie over each other. What couplings tell about themselves is left out unless asked "
        "for, texts are left out always.",
    .examples = {{"cardan plot run.csv -o run.pdf", "all signals of a run, as in a paper"},
                 {"cardan plot run.mf4 --terminal --variables 'motor.*'", "a quick look"},
                 {"cardan plot run.csv --panel motor.torque,motor.speed --from 2 --to '2500 ms' "
                  "--size 80x60 --font 'Times 8' -o fig3.pdf",
                  "one panel with two axes, for a column of a paper"},
                 {"cardan plot run.csv --xy plant.x,plant.v -o phase.png", "a phase plane"},
                 {"cardan plot coupled.csv monolithic.csv --variables 'x*' -o both.svg",
                  "two runs over each other"}},
    OPTIONS(rows, plot_options),
    .min_arguments = 1,
    .max_arguments = -1,
    .extensions = "csv|mf4|mat",
    .run = run_plot,
};
