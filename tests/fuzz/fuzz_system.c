// Any bytes as a system description, as a scheme, as a quantity.
// modules: system base
#include "cardan/system.h"
#include "fuzz.h"

#include <string.h>

static void short_texts(crd_context* ctx, const char* bytes, size_t size)
{
    char text[128];
    if (size >= sizeof text) { return; }
    memcpy(text, bytes, size);
    text[size] = 0;
    crd_dimension dim;
    double x;
    bool bare;
    (void)crd_dimension_parse(text, &dim);
    (void)crd_quantity_parse(text, &x, &dim, &bare);
    crd_system* s = NULL;
    if (crd_system_of_fmu(ctx, text, &s) < 0) { return; }
    const char* variable = NULL;
    int unit = 0;
    (void)crd_system_set_scheme(s, text, (crd_place){"--scheme", 0});
    (void)crd_system_split(s, text, (crd_place){"", 0}, &unit, &variable);
    crd_system_destroy(s);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    crd_context* ctx = crd_context_create(NULL);
    if (!ctx) { return 0; }
    crd_system* s = NULL;
    if (crd_system_parse(ctx, (const char*)data, size, "folder/system.yaml", &s) == CRD_OK) {
        // what was accepted can be found again
        for (int i = 0; i < s->unit_count; i++) {
            if (crd_system_find(s, s->units[i].name) != i) { __builtin_trap(); }
        }
    }
    crd_system_destroy(s);
    short_texts(ctx, (const char*)data, size);
    crd_context_destroy(ctx);
    return 0;
}
