// Pictures of a study, one panel under the other.
#pragma once
#include "cardan/results.h"
#include "cli/study/study_cli.h"

enum { CRDI_PICTURES = 24 };
typedef struct crdi_pictures {
    crdi_cli* cli;
    const crdi_study_file* f;
    crdi_study_rows rows; // that ended by themselves
    crd_arena arena;
    crd_plot_panel* panels;
    crd_plot_scale* scales;
    int count;
} crdi_pictures;

crd_status crdi_pictures_init(crdi_pictures* p, crdi_cli* cli, crdi_study* s, const char* where);
void crdi_pictures_clear(crdi_pictures* p);
// Of columns with commas between them: "x,y", "y", "x,y,z".
crd_status crdi_picture_scatter(crdi_pictures* p, const char* text);
crd_status crdi_picture_histogram(crdi_pictures* p, const char* text);
crd_status crdi_picture_convergence(crdi_pictures* p, const char* text);
crd_status crdi_picture_tornado(crdi_pictures* p, const char* text);
crd_status crdi_picture_heat(crdi_pictures* p, const char* text);
crd_status crdi_pictures_usual(crdi_pictures* p);    // a histogram of each number that is kept
crd_status crdi_pictures_scatters(crdi_pictures* p); // the first numbers over the first factors
crd_status crdi_pictures_svg(crdi_pictures* p, crd_text* out);
