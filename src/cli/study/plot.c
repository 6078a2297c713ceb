// cardan study plot: pictures of all runs.
#include "cli/study/pictures.h"

#include <string.h>

typedef struct plot_options {
    crdi_common common;
    const char *database, *output, *where;
    crdi_list scatter, histogram, heat, tornado, convergence;
    bool terminal;
} plot_options;

static crd_status add_all(crdi_pictures* p, const crdi_list* list,
                          crd_status (*add)(crdi_pictures* p, const char* text))
{
    crd_status st = CRD_OK;
    for (int i = 0; i < list->count && st >= 0; i++) {
        st = add(p, list->items[i]);
    }
    return st;
}

static crd_status run_plot(crdi_cli* cli, const void* options, const crdi_list* arguments,
                           crdi_result* out)
{
    const plot_options* o = options;
    crd_status st = CRD_OK;
    crdi_study* s = NULL;
    crdi_pictures p = {0};
    if (!o->output && !o->terminal) {
        return crdi_fail(cli->ctx, CRD_E_RANGE,
                         "--output FILE.svg, .png or .pdf says where to, or --terminal");
    }
    CRD_TRY(crdi_study_load(cli, arguments->items[0], o->database, &s));
    CRD_TRY(crdi_pictures_init(&p, cli, s, o->where));
    CRD_TRY(add_all(&p, &o->scatter, crdi_picture_scatter));
    CRD_TRY(add_all(&p, &o->heat, crdi_picture_heat));
    CRD_TRY(add_all(&p, &o->histogram, crdi_picture_histogram));
    CRD_TRY(add_all(&p, &o->tornado, crdi_picture_tornado));
    CRD_TRY(add_all(&p, &o->convergence, crdi_picture_convergence));
    if (p.count == 0) { CRD_TRY(crdi_pictures_usual(&p)); }
    const char* path = o->terminal ? "-" : o->output;
    const crd_plot_options picture = {.title = p.f->title,
                                      .scales = p.scales,
                                      .format = o->terminal                    ? CRD_PLOT_TERMINAL
                                                : crdi_ends_with(path, ".png") ? CRD_PLOT_PNG
                                                : crdi_ends_with(path, ".pdf") ? CRD_PLOT_PDF
                                                                               : CRD_PLOT_SVG,
                                      .color = o->terminal && cli->color};
    CRD_TRY(crd_plot_write(cli->ctx, path, &picture, p.panels, p.count));
    if (!o->terminal) {
        crdi_put(out, TEXT("file", path), INT("pictures", p.count), INT("runs", p.rows.count));
        crdi_say(out, "%s: %d picture%s of %lld runs\n", path, p.count, crdi_plural(p.count),
                 (long long)p.rows.count);
    }
fail:
    crdi_pictures_clear(&p);
    crdi_study_close(s);
    return st;
}

static const crdi_option rows[] = {
    CRDI_DATABASE_OPTION(plot_options),
    OPT_FILE(plot_options, output, "output", "svg|png|pdf", "the picture", .short_name = 'o'),
    OPT_LIST(plot_options, scatter, "scatter", "X,Y", "a dot for each run"),
    OPT_LIST(plot_options, heat, "heat", "X,Y,Z",
             "a dot for each run, coloured by Z in six classes of as many runs"),
    OPT_LIST(plot_options, histogram, "histogram", "Y", "how many runs have which number"),
    OPT_LIST(
        plot_options, tornado, "tornado", "Y",
        "from the mean of the fifth of runs with the lowest value of each factor to that with the "
        "highest"),
    OPT_LIST(plot_options, convergence, "convergence", "Y",
             "the mean with its interval of 95 % over the number of runs"),
    OPT_TEXT(plot_options, where, "where", "CONDITION", "only such runs, as for study show"),
    OPT_FLAG(plot_options, terminal, "terminal", "draw with letters on the terminal"),
    CRDI_JSON_OPTION("print what was drawn as JSON on standard output"),
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_study_plot = {
    .name = "study plot",
    .arguments = "STUDY",
    .summary = "draw the runs: scatter, heat map, histogram, tornado ...",
    .description = "Draws the runs of a study that ended by themselves; each option may be given "
                   "several times and adds a picture. Without any there is a histogram of each "
                   "number that is kept.",
    .examples = {{"cardan study plot spring.yaml --scatter second.k2,peak -o peak.svg",
                  "a dot a run"},
                 {"cardan study plot spring.yaml --tornado peak --terminal", "what matters most"}},
    OPTIONS(rows, plot_options),
    .min_arguments = 1,
    .max_arguments = 1,
    .extensions = "yaml|yml|study",
    .run = run_plot,
};
