// Pictures that commands draw beside what they print: --plot FILE, -o FILE.
#pragma once
#include "cardan/results.h"
#include "cli/cli.h"

#define CRDI_PICTURE_ENDINGS "svg|png|pdf"
#define CRDI_PICTURE_HELP ": .svg, .png or .pdf; terminal: as text; -: SVG on standard output"
extern const char* const crdi_picture_formats[]; // in the order of crd_plot_format

// By `wanted` (-1: not said), else the ending of the name; "terminal", "-", and SVG without ending.
crd_status crdi_picture_format(crd_context* ctx, const char* path, int wanted,
                               crd_plot_format* out);
// As wide as the terminal, or `width` columns (0: not said).
void crdi_picture_terminal(const crdi_cli* cli, int width, crd_plot_options* out);
// Before the work is done: whether `path` (may be NULL) can be written.
crd_status crdi_picture_check(crdi_cli* cli, const char* path, const crdi_common* common);
crd_status crdi_picture_write(crdi_cli* cli, const char* path, const crd_plot_options* options,
                              const crd_plot_panel* panels, int panel_count);
