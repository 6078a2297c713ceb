// Any bytes as buildDescription.xml of a source FMU: whatever comes of it stays below sources/.
// modules: fmi archive xml base
#include "fmi/build/build.h"
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

static void check_path(const char* path)
{
    if (path[0] == '/' || path[0] == '-' || strncmp(path, "../", 3) == 0 || strstr(path, "/../")) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    crd_context* ctx = crd_context_create(NULL);
    if (!ctx) { return 0; }
    crd_arena arena;
    crd_arena_init(&arena, ctx);
    crdi_recipe r = {.arena = &arena};
    if (crdi_recipe_read_build(ctx, (const char*)data, size, "buildDescription.xml", "ramp",
                               "x86_64-linux", &r) == CRD_OK) {
        if (r.count == 0) { abort(); }
        for (size_t i = 0; i < r.count; i++) {
            check_path(r.sources[i].file);
            for (const char* const* o = r.sources[i].options; *o; o++) {
                if ((*o)[0] != '-') { abort(); }
                if (strncmp(*o, "-I", 2) == 0) { check_path(*o + 2); }
            }
        }
    }
    crdi_recipe_clear(ctx, &r);
    crd_arena_clear(&arena);
    crd_context_destroy(ctx);
    return 0;
}
