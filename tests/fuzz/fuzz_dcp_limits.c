// modules: dcp base
//
// Any text as the limits of a bench, and as initial temperatures; what is read is printed, read
// again, and checked against itself.
#include "shared/dcp_bench.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

static void must(bool holds)
{
    if (!holds) { abort(); }
}

static void as_limits(crd_context* ctx, const char* text, size_t size)
{
    crdi_dcp_limits l, again;
    char first[8192], second[8192];
    double tolerance = 0;
    if (crdi_dcp_initial_parse(ctx, text, size, &l, &tolerance) == CRD_OK) { must(tolerance > 0); }
    if (crdi_dcp_limits_parse(ctx, text, size, &l) < 0) {
        must(crd_error_text(ctx)[0]);
        return;
    }
    const int n = crdi_dcp_limits_print(&l, first, sizeof first);
    must(n >= 0 && (size_t)n < sizeof first && strlen(first) == (size_t)n);
    must(crdi_dcp_limits_parse(ctx, first, (size_t)n, &again) == CRD_OK);
    must(crdi_dcp_limits_print(&again, second, sizeof second) == n && strcmp(first, second) == 0);
    // A test case that needs what is allowed, and keeps clear of the same points, is allowed.
    must(crdi_dcp_limits_agree(ctx, &l, &l, &l) == CRD_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    crd_context* ctx = crd_context_create(NULL);
    if (ctx) { as_limits(ctx, (const char*)data, size < 4096 ? size : 4096); }
    crd_context_destroy(ctx);
    return 0;
}
