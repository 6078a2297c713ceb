// Any bytes as a parameter mapping, and what its transformations do to a value.
// modules: ssp system archive xml base
#include "cardan/system.h"
#include "fuzz.h"
#include "ssp/read.h"

static void use(crdi_ssp_reader* r, const char* text, size_t size)
{
    crdi_document* d = NULL;
    if (crdi_ssp_add_text(r, text, size, "", "t.ssm", NULL, CRDI_ROOT_SSM, &d) < 0) { return; }
    const crdi_xml_element* e = crdi_xml_child(d->xml->root, CRDI_SSM, "MappingEntry");
    for (; e; e = crdi_xml_same(e)) {
        const char* items[] = {"1", "-2", "true"};
        crdi_ssp_value v = {.name = "v",
                            .type = "Integer",
                            .items = items,
                            .count = 3,
                            .unit = "km",
                            .place = {"t", 1}};
        crd_transformation t;
        if (crdi_ssp_transformation(r, e, &t) < 0) { return; }
        (void)crdi_ssp_convert(r, &v, &t);
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
