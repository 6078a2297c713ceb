// cardan reproduce: published tables and figures, with ours beside them.
#include "shared/reproduce.h"
#include "cardan/results.h"
#include "cli/cli.h"
#include "shared/base_interrupt.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

typedef struct reproduce_options {
    crdi_common common;
    crdi_list only;
    const char *figures, *cycle;
    bool quick, times, whole;
} reproduce_options;

static void put_claims(const crdi_reproduction* r, const crdi_list* only, crdi_result* out)
{
    static const char* const bounds[] = {"", "at most ", "at least ", ""};
    static const char* const rules[] = {"near", "at most", "at least", "shown"};
    static const char* const prints[] = {"", "agrees", "refuted", "not comparable"};
    static const crdi_column columns[] = {{"", "verdict", ""},
                                          {"what", "what", ""},
                                          {">published", "published", "%.10g"},
                                          {">ours", "ours", "%.10g"},
                                          {">reference", "reference", "%.10g"},
                                          {"tolerance", "accepted", ""},
                                          {"print", "print", ""},
                                          {"remark", "said", ""},
                                          {0}};
    crdi_say(out, "%s\n\n", r->paper);
    crdi_put(out, TEXT("paper", r->paper));
    crdi_result* list = crdi_array(out, "rows");
    for (int i = 0; i < r->claim_count; i++) {
        const crdi_claim* c = &r->claims[i];
        if (!crdi_match_any(only, c->id)) { continue; }
        const bool shown = c->rule == CRDI_CLAIM_SHOWN;
        crdi_result* row = crdi_row(list);
        crdi_put(row, TEXT("id", c->id), TEXT("what", c->what), REAL("published", c->published),
                 REAL("ours", c->ours), REAL("reference", c->reference),
                 REAL("tolerance", c->tolerance), BOOL("relative", c->relative),
                 TEXT("rule", rules[c->rule]), BOOL("ok", c->ok), TEXT("remark", c->remark),
                 c->print ? TEXT("print", prints[c->print]) : NONE("print"), TEXT("why", c->why),
                 CELL("verdict", shown   ? ""
                                 : c->ok ? "ok"
                                         : "MISS"));
        const char* accepted = shown ? "not judged"
                               : c->rule != CRDI_CLAIM_NEAR && c->tolerance == 0
                                   ? crdi_worded(row, "%sreference", bounds[c->rule])
                                   : crdi_worded(row, "%s%.3g%s", bounds[c->rule],
                                                 c->relative ? 100 * c->tolerance : c->tolerance,
                                                 c->relative ? " %" : "");
        crdi_put(row, CELL("accepted", accepted),
                 CELL("said", c->why[0] && c->remark[0] && strcmp(c->why, c->remark) != 0
                                  ? crdi_worded(row, "%s; %s", c->why, c->remark)
                              : c->why[0] ? c->why
                                          : c->remark));
    }
    crdi_show_table(out, list, columns, "");
}

// ---- figures -----------------------------------------------------------------------------------

static crd_status write_data(crd_context* ctx, const crdi_figure* f, const char* path)
{
    FILE* file = fopen(path, "w");
    if (!file) { return crdi_fail(ctx, CRD_E_IO, "%s: %s", path, strerror(errno)); }
    for (int j = 0; j < f->columns; j++) {
        const char* quote = strchr(f->names[j], ',') ? "\"" : "";
        fprintf(file, "%s%s%s%s", j ? "," : "", quote, f->names[j], quote);
    }
    for (int64_t i = 0; i < f->rows; i++) {
        for (int j = 0; j < f->columns; j++) {
            char text[32];
            crdi_format_double(text, f->values[i * f->columns + j]);
            fprintf(file, "%c%s", j ? ',' : '\n', text);
        }
    }
    fputc('\n', file);
    const bool failed = ferror(file) != 0;
    if (fclose(file) != 0 || failed) {
        return crdi_fail(ctx, CRD_E_IO, "%s: %s", path, strerror(errno));
    }
    return CRD_OK;
}

// "EROS gain" -> "EROS"
static const char* without_last_word(crd_arena* a, const char* name, const char* word)
{
    const char* at = strstr(name, word);
    return at && at > name ? crdi_arena_text(a, name, (size_t)(at - name) - 1)
                           : crdi_arena_text(a, name, strlen(name));
}

// Outlines of bars, side by side about each abscissa.
static crd_status draw_bars(crd_context* ctx, const crdi_figure* f, const char* path)
{
    static const double side[4] = {0.05, 0.05, 0.95, 0.95}, height[4] = {0, 1, 1, 0};
    crd_status st = CRD_OK;
    crd_arena a;
    crd_arena_init(&a, ctx);
    const int64_t columns = f->columns - 1;
    const size_t corners = 4 * (size_t)f->rows;
    double* xy = crdi_arena_new(&a, 2 * corners * (size_t)columns, sizeof *xy);
    crd_plot_series* series = crdi_arena_new(&a, (size_t)columns, sizeof *series);
    if (!xy || !series) { CRD_TRY(CRD_E_MEMORY); }
    for (int64_t j = 0; j < columns; j++) {
        double *x = xy, *y = xy + corners;
        series[j] = (crd_plot_series){
            .label = f->names[j + 1], .x = x, .y = y, .count = (int64_t)corners, .dashed = j % 2};
        for (int64_t i = 0; i < f->rows; i++) {
            const double* at = f->values + i * f->columns;
            for (int k = 0; k < 4; k++) {
                *x++ = at[0] - 0.4 + 0.8 * ((double)j + side[k]) / (double)columns;
                *y++ = height[k] * at[j + 1];
            }
        }
        xy += 2 * corners;
    }
    const crd_plot_panel panel = {
        .title = "", .y_label = "", .series = series, .series_count = (int)columns};
    CRD_TRY(crd_plot_svg(ctx, path, f->title, f->names[0], &panel, 1));
fail:
    crd_arena_clear(&a);
    return st;
}

static crd_status draw_figure(crd_context* ctx, const crdi_figure* f, const char* path)
{
    if (f->kind == CRDI_FIGURE_BARS) { return draw_bars(ctx, f, path); }
    crd_status st = CRD_OK;
    crd_arena a;
    crd_arena_init(&a, ctx);
    const size_t rows = (size_t)f->rows, columns = (size_t)f->columns;
    double* v = crdi_arena_new(&a, rows * columns, sizeof *v);
    crd_plot_series* series = crdi_arena_new(&a, columns, sizeof *series);
    const bool pairs = f->kind == CRDI_FIGURE_BODE || f->kind == CRDI_FIGURE_CURVES;
    const int count = pairs ? (f->columns - 1) / 2 : f->columns - 1;
    if (!v || !series) { CRD_TRY(CRD_E_MEMORY); }
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < columns; j++) {
            v[j * rows + i] = f->values[i * columns + j];
        }
    }
    for (int e = 0; e < count; e++) {
        const size_t j = pairs ? 1 + 2 * (size_t)e : 1 + (size_t)e;
        const char* word = f->kind == CRDI_FIGURE_BODE ? "gain" : "Re ";
        crd_plot_series s = {.label =
                                 pairs ? without_last_word(&a, f->names[j], word) : f->names[j],
                             .x = v,
                             .y = &v[j * rows],
                             .count = f->rows,
                             .dashed = e > 0 && e % 2};
        if (!s.label) { CRD_TRY(CRD_E_MEMORY); }
        if (f->kind == CRDI_FIGURE_CURVES) { s.x = s.y, s.y = &v[(j + 1) * rows]; }
        series[e] = s;
        if (f->kind == CRDI_FIGURE_BODE) {
            s.y = &v[(j + 1) * rows];
            series[count + e] = s;
        }
    }
    crd_plot_panel panels[2] = {
        {.title = f->kind == CRDI_FIGURE_BODE ? "gain" : "",
         .y_label = f->kind == CRDI_FIGURE_CURVES ? "Im" : "",
         .series = series,
         .series_count = count},
        {.title = "phase", .y_label = "deg", .series = series + count, .series_count = count}};
    const crd_plot_scale scales[2] = {{.log_y = f->kind == CRDI_FIGURE_BODE || f->log_y}};
    const crd_plot_options opt = {.title = f->title,
                                  .x_label = f->kind == CRDI_FIGURE_CURVES ? "Re" : f->names[0],
                                  .log_x = f->kind == CRDI_FIGURE_BODE || f->log_x,
                                  .scales = scales};
    CRD_TRY(crd_plot_svg_scaled(ctx, path, &opt, panels, f->kind == CRDI_FIGURE_BODE ? 2 : 1));
fail:
    crd_arena_clear(&a);
    return st;
}

static crd_status write_figures(crdi_cli* cli, const crdi_reproduction* r, const char* folder,
                                crdi_result* out)
{
    crd_status st = CRD_OK;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        return crdi_fail(cli->ctx, CRD_E_IO, "%s: %s", folder, strerror(errno));
    }
    for (int i = 0; i < r->figure_count; i++) {
        const crdi_figure* f = &r->figures[i];
        char* data = crdi_format(cli->ctx, "%s/%s.csv", folder, f->id);
        char* picture = data ? crdi_format(cli->ctx, "%s/%s.svg", folder, f->id) : NULL;
        st = picture ? write_data(cli->ctx, f, data) : CRD_E_MEMORY;
        if (st >= 0) { st = draw_figure(cli->ctx, f, picture); }
        if (st >= 0) { crdi_say(out, "%s and .svg: %s\n", data, f->title); }
        crd_free(cli->ctx, data);
        crd_free(cli->ctx, picture);
        if (st < 0) { return st; }
    }
    return st;
}

// ---- the command -------------------------------------------------------------------------------

static crd_status check_only(crdi_cli* cli, const crdi_reproduction* r, const crdi_list* only)
{
    for (int i = 0; i < only->count; i++) {
        bool fits = false;
        for (int j = 0; j < r->claim_count && !fits; j++) {
            fits = crdi_glob(only->items[i], r->claims[j].id);
        }
        if (!fits) {
            return crdi_fail(cli->ctx, CRD_E_NOT_FOUND,
                             "--only: '%s' fits no row, expected a pattern such as table1.*",
                             only->items[i]);
        }
    }
    return CRD_OK;
}

static crd_status judge_claims(crdi_cli* cli, const crdi_reproduction* r,
                               const reproduce_options* o, crdi_result* out)
{
    int rows = 0, missed = 0, shown = 0, print[CRDI_PRINT_INCOMPARABLE + 1] = {0};
    const char* first = NULL;
    for (int i = 0; i < r->claim_count; i++) {
        if (!crdi_match_any(&o->only, r->claims[i].id)) { continue; }
        print[r->claims[i].print]++;
        if (r->claims[i].rule == CRDI_CLAIM_SHOWN) {
            shown++;
            continue;
        }
        rows++;
        if (!r->claims[i].ok) {
            missed++;
            first = first ? first : r->claims[i].id;
        }
    }
    const int agree = print[CRDI_PRINT_AGREES], refuted = print[CRDI_PRINT_REFUTED],
              other = print[CRDI_PRINT_INCOMPARABLE];
    crdi_say(out, "\n%d of %d rows within their tolerance", rows - missed, rows);
    if (shown) { crdi_say(out, ", %d not judged", shown); }
    crdi_say(out, "; of %d printed value%s %d agree%s, %d %s refuted, %d cannot be compared\n",
             agree + refuted + other, crdi_plural(agree + refuted + other), agree,
             agree == 1 ? "s" : "", refuted, refuted == 1 ? "is" : "are", other);
    crdi_put(crdi_object(out, "counts"), INT("judged", rows), INT("ok", rows - missed),
             INT("not_judged", shown), INT("printed", agree + refuted + other), INT("agree", agree),
             INT("refuted", refuted), INT("not_comparable", other));
    if (missed == 0) { return CRD_OK; }
    return crdi_fail(cli->ctx, CRD_E_DIFFERENT, "%d row%s missed, the first is %s", missed,
                     missed > 1 ? "s are" : " is", first);
}

static crd_status run_reproduce(crdi_cli* cli, const void* options, const crdi_list* arguments,
                                crdi_result* out)
{
    const reproduce_options* o = options;
    crd_status st = CRD_OK;
    crdi_reproduction* r = NULL;
    const bool drives = strcmp(arguments->items[0], "rautenberg2023") == 0;
    const char* alien = o->whole ? "--long" : o->cycle ? "--cycle" : NULL;
    if (alien && !drives) {
        return crdi_fail(cli->ctx, CRD_E_RANGE, "%s is for rautenberg2023 only, not for %s", alien,
                         arguments->items[0]);
    }
    if (o->times && (o->quick || strncmp(arguments->items[0], "rodriguez2021-ch", 16) != 0 ||
                     !strchr("34", arguments->items[0][16]))) {
        return crdi_fail(cli->ctx, CRD_E_RANGE,
                         "--times is for rodriguez2021-ch3 and "
                         "rodriguez2021-ch4, without --quick");
    }
    const crdi_reproduce_options with = {
        .quick = o->quick,
        .times = o->times,
        .whole = o->whole,
        .cycle = o->cycle,
        .command = "/proc/self/exe",
        .stop = drives ? crdi_interrupt_catch(&(crdi_interrupt_options){0}) : NULL};
    CRD_TRY(crdi_reproduce_with(cli->ctx, arguments->items[0], &with, &r));
    CRD_TRY(check_only(cli, r, &o->only));
    put_claims(r, &o->only, out);
    if (o->figures) { CRD_TRY(write_figures(cli, r, o->figures, out)); }
    CRD_TRY(judge_claims(cli, r, o, out));
fail:
    crdi_reproduction_destroy(r);
    return st;
}

static const crdi_option rows[] = {
    OPT_LIST(reproduce_options, only, "only", "PATTERN",
             "only rows whose id fits, such as table1.*"),
    OPT_FILE(reproduce_options, figures, "figures", NULL,
             "write the data (CSV) and a drawing (SVG) of each figure there", .metavar = "FOLDER"),
    OPT_FLAG(reproduce_options, quick, "quick",
             "measure no times, and leave out rows that take very many steps"),
    OPT_FLAG(reproduce_options, times, "times",
             "rodriguez2021-ch3 and -ch4: nothing but the times, beside those of the boards"),
    OPT_FLAG(reproduce_options, whole, "long",
             "rautenberg2023: the benches drive the whole WLTC, 30 minutes, not 120 s of it"),
    OPT_FILE(reproduce_options, cycle, "cycle", "csv|mf4|mat",
             "rautenberg2023: a recording of the WLTC, in km/h; build/cycles/wltc3b.csv unless "
             "given, which cmake/wltc.sh fetches"),
    CRDI_JSON_OPTION("print {paper, rows: [{id, published, ours, reference, tolerance, ok, print, "
                     "why, ...}], counts}"),
    CRDI_QUIET_OPTION,
    CRDI_COMMON_OPTIONS,
};
const crdi_command crdi_command_reproduce = {
    .name = "reproduce",
    .arguments = "PAPER",
    .summary = "compute published tables and figures anew",
    .description =
        "Computes the tables and figures of a paper and shows what was printed, what "
        "comes out here, what an independent computation says, and two verdicts a row. "
        "The first, ok or MISS, is about Cardan: does it compute what the independent "
        "computation (or, where there is none, the print) says, within the tolerance? "
        "Ends with 1 if a row does not. The second is about the print: it agrees "
        "(within 5 % or its last digit), is refuted (the paper's own formulas or data "
        "give another value), or is not comparable (the paper does not say enough, or "
        "ours is not the same thing), with the reason. Papers: baumann2024 and baumann2020 "
        "(latency compensation), glumac2023 (defects and variable steps), "
        "rodriguez2021-ch3 (circuits in real time; takes about a minute, as it measures "
        "times, too), rodriguez2021-ch4 (digital twins), rodriguez2021-ch5 (residual "
        "power and energy correction), rodriguez2021-ch6 (small test benches) and rautenberg2023 "
        "(coupled test benches on the WLTC, with the oil that gearbox and machine share: in one "
        "process, then with two benches as processes over UDP for 120 s on the virtual clock and, "
        "without --quick, in real time).",
    .examples = {{"cardan reproduce baumann2024", "all rows"},
                 {"cardan reproduce baumann2024 --only 'table1.*'", "limits of ZOH, FOH and EROS"},
                 {"cardan reproduce baumann2020 --figures pictures", "with figures"},
                 {"cardan reproduce glumac2023 --only 'order.*'", "orders of the defects"},
                 {"cardan reproduce rodriguez2021-ch3 --quick", "circuits, without times"},
                 {"cardan reproduce rodriguez2021-ch4 --figures pictures", "digital twins"},
                 {"cardan reproduce rodriguez2021-ch3 --times",
                  "what circuits cost on this machine"},
                 {"cardan reproduce rautenberg2023 --long", "the whole WLTC in real time"}},
    OPTIONS(rows, reproduce_options),
    .min_arguments = 1,
    .max_arguments = 1,
    .words = crdi_papers,
    .run = run_reproduce,
};
