// Rodriguez 2021, ch. 6: the rows of its benches.
#include "check.h"

#include "prints.h"
#include "shared/reproduce.h"

#include <math.h>

static const crdi_claim* find(const crdi_reproduction* r, const char* id)
{
    for (int i = 0; i < r->claim_count; i++) {
        if (strcmp(r->claims[i].id, id) == 0) { return &r->claims[i]; }
    }
    fail_msg("no row %s", id);
    return NULL;
}

static void rows_hold_and_every_printed_number_has_a_verdict(void** state)
{
    check_allocator a;
    crd_context* ctx = check_context(&a);
    crdi_reproduction* r = NULL;
    if (crdi_reproduce(ctx, "rodriguez2021-ch6", &r) < 0) { fail_msg("%s", crd_error_text(ctx)); }
    for (int i = 0; i < r->claim_count; i++) {
        const crdi_claim* c = &r->claims[i];
        if (!c->ok) {
            fail_msg("%s: ours %.9g, reference %.9g, tolerance %g", c->id, c->ours, c->reference,
                     c->tolerance);
        }
        for (int j = 0; j < i; j++) {
            check(strcmp(c->id, r->claims[j].id) != 0);
        }
    }
    check_prints(r, 35, 0, 0);
    // Measured, not copied: noise is in it.
    check(find(r, "table6.1.resistance")->ours != 44.7);
    check(find(r, "table6.1.torque_constant")->ours != 48.6);
    // The resistor is used, and 3 kW are enough.
    check(find(r, "bench.resistor")->ours > 1);
    check_int(r->figure_count, 4);
    for (int i = 0; i < r->figure_count; i++) {
        const crdi_figure* f = &r->figures[i];
        for (int64_t k = 0; k < f->rows * f->columns; k++) {
            if (!isfinite(f->values[k])) { fail_msg("%s has a gap", f->id); }
        }
        for (int64_t k = 1; k < f->rows; k++) {
            check(f->values[k * f->columns] > f->values[(k - 1) * f->columns]);
        }
    }
    crdi_reproduction_destroy(r);
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_hold_and_every_printed_number_has_a_verdict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
