// Rautenberg 2023: the coupled benches on the WLTC, in one process and as processes over UDP.
#include "check.h"

#include "prints.h"
#include "shared/reproduce.h"

#include <unistd.h>

static const crdi_claim* find(const crdi_reproduction* r, const char* id)
{
    for (int i = 0; i < r->claim_count; i++) {
        if (strcmp(r->claims[i].id, id) == 0) { return &r->claims[i]; }
    }
    fail_msg("no row %s", id);
    return NULL;
}

static void check_rows(const crdi_reproduction* r)
{
    for (int i = 0; i < r->claim_count; i++) {
        const crdi_claim* c = &r->claims[i];
        if (!c->ok) {
            fail_msg("%s: ours %.9g, reference %.9g, tolerance %g", c->id, c->ours, c->reference,
                     c->tolerance);
        }
        // A row that compares nothing with nothing could not fail.
        check(c->rule == CRDI_CLAIM_SHOWN || isfinite(c->reference) || isfinite(c->published));
        for (int j = 0; j < i; j++) {
            check(strcmp(c->id, r->claims[j].id) != 0);
        }
    }
    for (int i = 0; i < r->figure_count; i++) {
        const crdi_figure* f = &r->figures[i];
        for (int64_t k = 0; k < f->rows * f->columns; k++) {
            if (!isfinite(f->values[k])) { fail_msg("%s has a gap", f->id); }
        }
    }
}

static void benches_drive_in_one_process_and_as_processes_on_the_virtual_clock(void** state)
{
    if (access(CYCLE, R_OK) != 0) { skip(); } // cmake/wltc.sh fetches it
    check_allocator a;
    crd_context* ctx = check_context(&a);
    crdi_reproduction* r = NULL;
    const crdi_reproduce_options o = {.quick = true, .cycle = CYCLE, .command = COMMAND};
    if (crdi_reproduce_with(ctx, "rautenberg2023", &o, &r) < 0) {
        fail_msg("%s", crd_error_text(ctx));
    }
    check_rows(r);
    check_prints(r, 13, 0, 0);
    check_int(r->figure_count, 5);
    check(find(r, "cold.sixty")->ours > 1800); // not within one cycle
    check_contains(find(r, "local.guard")->remark, "loops with a map");
    // Another run, not the same numbers again: a network, a session and limits are between them.
    check(find(r, "virtual.fuel")->ours != find(r, "virtual.fuel")->reference);
    crdi_reproduction_destroy(r);
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

static void a_cycle_that_is_not_there_is_named_with_what_fetches_it(void** state)
{
    check_allocator a;
    crd_context* ctx = check_context(&a);
    crdi_reproduction* r = NULL;
    const crdi_reproduce_options o = {.cycle = "no/such.csv"};
    check_status(crdi_reproduce_with(ctx, "rautenberg2023", &o, &r), CRD_E_NOT_FOUND);
    check_contains(crd_error_text(ctx), "no/such.csv");
    check_contains(crd_error_text(ctx), "cmake/wltc.sh");
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(benches_drive_in_one_process_and_as_processes_on_the_virtual_clock),
        cmocka_unit_test(a_cycle_that_is_not_there_is_named_with_what_fetches_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
