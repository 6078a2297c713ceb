// The description of a model that is made while the program runs; those of the build are written
// by export/describe.c with the same code.
#include <stdlib.h>

#include "cardan/fmi.h"
#include "fmi/export/describe.h"
#include "shared/base.h"

typedef void writer(FILE* f, const description* d);

static crd_status write_with(crd_context* ctx, writer* write, const description* d, crd_text* out)
{
    char* text = NULL;
    size_t length = 0;
    FILE* f = open_memstream(&text, &length);
    if (!f) { return crdi_fail(ctx, CRD_E_MEMORY, "out of memory: a model description"); }
    write(f, d);
    const bool good = !ferror(f);
    if (fclose(f) == 0 && good) { crdi_text_put(out, text, length); }
    free(text);
    if (!good || out->failed || !out->data) {
        return crdi_fail(ctx, CRD_E_MEMORY, "out of memory: a model description");
    }
    return CRD_OK;
}

crd_status crd_fmu_describe_model(crd_context* ctx, const crd_model* model, int version,
                                  const char* const* sources, int source_count,
                                  crd_text* description_xml, crd_text* build_xml)
{
    const description d = {.of = model,
                           .interfaces = FMU_COSIMULATION,
                           .version = crd_version(),
                           .source_count = source_count,
                           .sources = sources};
    const crd_status st =
        write_with(ctx, version == 2 ? describe_2 : describe_3, &d, description_xml);
    return st < 0 || (version == 2 && !model->libraries) ? st
                                                         : write_with(ctx, build_3, &d, build_xml);
}
