// Rodriguez 2021, ch. 4: the rows of its twins. With the definition LONG all of them, else those
// that take few steps.
#include "check.h"

#include "prints.h"
#include "shared/reproduce.h"

#include <math.h>

static crdi_reproduction* reproduce(crd_context* ctx, bool quick)
{
    crdi_reproduction* r = NULL;
    const crdi_reproduce_options o = {.quick = quick};
    if (crdi_reproduce_with(ctx, "rodriguez2021-ch4", &o, &r) < 0) {
        fail_msg("%s", crd_error_text(ctx));
    }
    return r;
}

static const crdi_claim* find(const crdi_reproduction* r, const char* id)
{
    for (int i = 0; i < r->claim_count; i++) {
        if (strcmp(r->claims[i].id, id) == 0) { return &r->claims[i]; }
    }
    fail_msg("no row %s", id);
    return NULL;
}

static void check_rows(const crdi_reproduction* r, int judged)
{
    int count = 0;
    for (int i = 0; i < r->claim_count; i++) {
        const crdi_claim* c = &r->claims[i];
        if (!c->ok) {
            fail_msg("%s: ours %.9g, reference %.9g, tolerance %g", c->id, c->ours, c->reference,
                     c->tolerance);
        }
        count += c->rule != CRDI_CLAIM_SHOWN;
        check(isfinite(c->ours));
        for (int j = 0; j < i; j++) {
            check(strcmp(c->id, r->claims[j].id) != 0);
        }
    }
    check(count >= judged);
}

static void check_figures(const crdi_reproduction* r, int figures)
{
    check(r->figure_count >= figures);
    for (int i = 0; i < r->figure_count; i++) {
        const crdi_figure* f = &r->figures[i];
        check(f->rows > 3 && f->columns > 1);
        for (int64_t k = 0; k < f->rows * f->columns; k++) {
            if (!isfinite(f->values[k])) { fail_msg("%s has a gap", f->id); }
        }
        for (int64_t k = 1; k < f->rows; k++) { // time or passes
            check(f->values[k * f->columns] > f->values[(k - 1) * f->columns]);
        }
    }
}

#ifdef LONG
static void all_rows_hold_and_the_bound_is_kept_over_many_seeds(void** state)
{
    crdi_reproduction* r = reproduce(*state, false);
    check_rows(r, 100);
    check_prints(r, 37, 0, 23);
    check_figures(r, 17);
    check(find(r, "scenario1.bound.r1")->ours > 0.5);
    check(find(r, "table4.8.case1.recommended")->rule == CRDI_CLAIM_SHOWN);
    crdi_reproduction_destroy(r);
}
#else
static void rows_hold(void** state)
{
    crdi_reproduction* r = reproduce(*state, true);
    check_rows(r, 60);
    check_prints(r, 33, 0, 0);
    check_figures(r, 15);
    check_near(find(r, "scenario2.passes")->ours, 11, 0);
    // What cannot be seen is named.
    check_contains(find(r, "observe.inverter.rank")->remark, "rdie");
    check_contains(find(r, "observe.inverter.junction")->remark, "rsp against rdbc");
    crdi_reproduction_destroy(r);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef LONG
        cmocka_unit_test(all_rows_hold_and_the_bound_is_kept_over_many_seeds),
#else
        cmocka_unit_test(rows_hold),
#endif
    };
    return cmocka_run_group_tests(tests, check_set_up, check_tear_down);
}
