#include "cardan/results.h"
#include "results/report.h"
#include "shared/results.h"

const void* crdi_uplot(crdi_uplot_part part, size_t* length)
{
    const crdi_asset* a = part == CRDI_UPLOT_JS    ? &crdi_uplot_js
                          : part == CRDI_UPLOT_CSS ? &crdi_uplot_css
                                                   : &crdi_uplot_license;
    *length = a->length;
    return a->data;
}

const void* crdi_chart(size_t* length)
{
    *length = crdi_chart_js.length;
    return crdi_chart_js.data;
}
