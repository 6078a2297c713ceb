// What became of the printed values of a paper: each has a verdict, and a reason unless it agrees.
#pragma once
#include "check.h"
#include "shared/reproduce.h"

#include <math.h>

static inline void check_prints(const crdi_reproduction* r, int agree, int refuted, int other)
{
    int counts[CRDI_PRINT_INCOMPARABLE + 1] = {0};
    for (int i = 0; i < r->claim_count; i++) {
        const crdi_claim* c = &r->claims[i];
        const bool far = fabs(c->ours - c->published) > 0.05 * fabs(c->published);
        const bool bound = c->rule == CRDI_CLAIM_AT_MOST || c->rule == CRDI_CLAIM_AT_LEAST;
        counts[c->print]++;
        check((c->print == CRDI_PRINT_NONE) == isnan(c->published));
        if (c->print == CRDI_PRINT_AGREES) { check(!far || bound); }
        if ((c->print >= CRDI_PRINT_REFUTED) != (c->why[0] != 0)) {
            fail_msg("%s: printed %g, ours %g, and nothing says why", c->id, c->published, c->ours);
        }
    }
    check_int(counts[CRDI_PRINT_AGREES], agree);
    check_int(counts[CRDI_PRINT_REFUTED], refuted);
    check_int(counts[CRDI_PRINT_INCOMPARABLE], other);
}
