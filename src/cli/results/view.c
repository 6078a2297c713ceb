// cardan view: results and recordings in a browser, laid over each other.
#include "cli/run/run.h"
#include "shared/web.h"

#include <string.h>

typedef struct view_options {
    crdi_common common;
    crdi_watch_options page;
    const char* output;
    crdi_list variables;
    int pixels;
} view_options;

static crd_status export_view(crdi_cli* cli, crdi_view* v, const view_options* o,
                              const crdi_list* files, crdi_result* out)
{
    for (int i = 0; i < files->count; i++) {
        const crd_status st =
            crdi_refuse_overwriting(cli->ctx, o->output, files->items[i], "the page", "a result");
        if (st < 0) { return st; }
    }
    if (!crdi_ends_with(o->output, ".html") && strcmp(o->output, "-") != 0) {
        return crdi_fail(cli->ctx, CRD_E_UNSUPPORTED,
                         "%s: the viewer writes pages, the name should end in .html; cardan plot "
                         "draws pictures",
                         o->output);
    }
    const crd_status st = crdi_view_export(v, o->variables.items, o->variables.count,
                                           o->pixels < 0 ? 4000 : o->pixels, o->output);
    if (st < 0) { return crdi_fail(cli->ctx, st, "%s", crdi_view_error(v)); }
    if (strcmp(o->output, "-") != 0) { crdi_say(out, "%s: written\n", o->output); }
    return CRD_OK;
}

static crd_status run_view(crdi_cli* cli, const void* options, const crdi_list* arguments,
                           crdi_result* out)
{
    const view_options* o = options;
    crdi_view* v = NULL;
    crd_status st = crdi_view_create(cli->ctx, arguments->items, arguments->count, &v);
    if (st < 0) { return st; }
    st = o->output ? export_view(cli, v, o, arguments, out)
                   : crdi_page_serve(cli, &o->page, v, NULL);
    crdi_view_destroy(v);
    return st;
}

static const crdi_option rows[] = {
    OPT_FILE(view_options, output, "export", "html",
             "write one page that shows the results without a server, and end"),
    OPT_LIST(view_options, variables, "variables", "PATTERN",
             "of --export: signals that the page has, with * and ?; those of the layout, else the "
             "first ones, unless given"),
    OPT_INT(view_options, pixels, "pixels", "N",
            "of --export: extremes per signal, 16 to 16384; 4000 unless given"),
    CRDI_PAGE_OPTIONS(view_options, page),
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_view = {
    .name = "view",
    .arguments = "RESULT...",
    .summary = "look at results in a browser",
    .description =
        "Serves a page that shows the signals of results and recordings: panels by drag and drop, "
        "several files over each other, differences, x-y, spectra, histograms, cursors, units of "
        "measure, states and events. Files of many GB are read piece by piece. The address is "
        "printed on standard error; Ctrl-C ends it. Layouts are saved on request as "
        "RESULT.view.json beside the first file, and used again.",
    .examples = {{"cardan view run.mf4", "the address of the page is printed"},
                 {"cardan view before.mf4 after.mf4 measured.csv", "three laid over each other"},
                 {"cardan view run.mf4 --export run.html", "one file to be mailed"}},
    OPTIONS(rows, view_options),
    .min_arguments = 1,
    .max_arguments = -1,
    .extensions = "csv|mf4|mat",
    .run = run_view,
};
