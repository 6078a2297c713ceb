/// What modules share of results. Not for users.
#pragma once
#include "cardan/results.h"

/// uPlot, which draws the plots of pages, as it is embedded.
typedef enum crdi_uplot_part { CRDI_UPLOT_JS, CRDI_UPLOT_CSS, CRDI_UPLOT_LICENSE } crdi_uplot_part;
const void* crdi_uplot(crdi_uplot_part part, size_t* length);
