// Any bytes as a parameter set, and its values on their way through a transformation.
// modules: ssp system archive xml base
#include "cardan/system.h"
#include "fuzz.h"
#include "ssp/read.h"

static void use(crdi_ssp_reader* r, const char* text, size_t size)
{
    crdi_document* d = NULL;
    crdi_ssp_value* values = NULL;
    int count = 0;
    if (crdi_ssp_add_text(r, text, size, "", "t.ssv", NULL, CRDI_ROOT_SSV, &d) < 0 ||
        crdi_ssp_read_set(r, d, d->xml->root, "p.", &values, &count) < 0) {
        return;
    }
    const crd_transformation t = {
        .unit = "m", .gain = 2, .offset = 1, .has_transformation = true, .convert_units = true};
    for (int i = 0; i < count; i++) {
        (void)crdi_ssp_convert(r, &values[i], &t);
        (void)crdi_ssp_join(r, &values[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_system* s = NULL;
    if (ctx && crd_system_create(ctx, &s) == CRD_OK) {
        crdi_ssp_reader r = {.ctx = ctx, .s = s, .no_files = true};
        crd_arena_init(&r.arena, ctx);
        use(&r, (const char*)data, size);
        crdi_ssp_clear(&r);
    }
    crd_system_destroy(s);
    crd_context_destroy(ctx);
    return 0;
}
