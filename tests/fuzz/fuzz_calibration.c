// Any bytes as a file of calibrations, and as what a bench says of them. What is accepted follows
// from its points and survives the way to the master.
//
// modules: dcp base
#include "fuzz.h"
#include "shared/dcp_calibration.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void must(bool holds)
{
    if (!holds) { __builtin_trap(); }
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    crd_context* ctx = crd_context_create(NULL);
    crdi_calibrations all;
    if (crdi_calibrations_parse(ctx, (const char*)data, size, "f", &all) == CRD_OK) {
        must(all.count >= 0 && all.count <= CRDI_CALIBRATIONS_MAX);
        for (int i = 0; i < all.count; i++) {
            const crdi_calibration* c = &all.of[i];
            must(c->gain >= 0.5 && c->gain <= 2 && isfinite(c->offset));
            must(crdi_calibrations_find(&all, c->name) == c); // none is there twice
            char line[200];
            crdi_calibration back;
            crdi_calibration_print(c, line, sizeof line);
            must(crdi_calibration_scan(line, &back));
            must(back.gain == c->gain && back.offset == c->offset);
        }
    }
    char text[300];
    snprintf(text, sizeof text, "%.*s", (int)(size < 299 ? size : 299), (const char*)data);
    crdi_calibration c;
    if (crdi_calibration_scan(text, &c)) {
        must(isfinite(c.gain) && c.gain != 0 && isfinite(c.offset));
    }
    crd_context_destroy(ctx);
    return 0;
}
