// Pictures of all commands: as SVG, PNG or PDF by their ending, or as text on the terminal.
#include "cli/picture.h"

#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

const char* const crdi_picture_formats[] = {"svg", "png", "pdf", "terminal", NULL};

crd_status crdi_picture_format(crd_context* ctx, const char* path, int wanted, crd_plot_format* out)
{
    const char* ending = strrchr(path, '.');
    for (int i = 0; i < 3 && ending; i++) {
        if (strcasecmp(ending + 1, crdi_picture_formats[i]) != 0) { continue; }
        *out = (crd_plot_format)i;
        if (wanted < 0 || wanted == i) { return CRD_OK; }
    }
    if (wanted >= 0) {
        *out = (crd_plot_format)wanted;
        return CRD_OK;
    }
    *out = strcmp(path, "terminal") == 0 ? CRD_PLOT_TERMINAL : CRD_PLOT_SVG;
    if (strcmp(path, "-") == 0 || !ending || strchr(ending, '/')) { return CRD_OK; }
    return crdi_fail(ctx, CRD_E_UNSUPPORTED,
                     "%s: pictures are written as SVG, PNG or PDF, the name should end in .svg, "
                     ".png or .pdf",
                     path);
}

void crdi_picture_terminal(const crdi_cli* cli, int width, crd_plot_options* out)
{
    struct winsize size = {0};
    const bool terminal = isatty(STDOUT_FILENO);
    out->format = CRD_PLOT_TERMINAL;
    out->color = terminal && cli->color;
    if (terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) { out->columns = size.ws_col; }
    if (width > 0) { out->columns = width; }
}

static bool is_on_stdout(const char* path)
{
    return strcmp(path, "-") == 0 || strcmp(path, "terminal") == 0;
}

crd_status crdi_picture_check(crdi_cli* cli, const char* path, const crdi_common* common)
{
    crd_plot_format format;
    if (path && common->json && is_on_stdout(path)) {
        return crdi_fail(cli->ctx, CRD_E_RANGE,
                         "--json and a picture on standard output, expected a file for the "
                         "picture: a name that ends in .svg, .png or .pdf");
    }
    return path ? crdi_picture_format(cli->ctx, path, -1, &format) : CRD_OK;
}

crd_status crdi_picture_write(crdi_cli* cli, const char* path, const crd_plot_options* options,
                              const crd_plot_panel* panels, int panel_count)
{
    crd_plot_options o = *options;
    const crd_status st = crdi_picture_format(cli->ctx, path, -1, &o.format);
    if (st < 0) { return st; }
    if (o.format == CRD_PLOT_TERMINAL) { crdi_picture_terminal(cli, 0, &o); }
    return crd_plot_write(cli->ctx, is_on_stdout(path) ? "-" : path, &o, panels, panel_count);
}
