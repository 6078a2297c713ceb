// What a bond says it has created, against the energy of both masses and the spring, worked out
// from their states: the linear oscillator of Rodriguez (2021), 5.4.1, lossless, solved exactly
// inside of each unit, so that all that is gained or lost comes from the exchange.
#include "models.h"

#include "master/master.h"

#include <stdio.h>

extern const crd_model crd_model_lo_fd1, crd_model_lo_fd2;

enum { LINKS = 3 };
static const double STORED = 1e4; // J at the start: both masses at 100 m/s, springs at rest

typedef struct {
    crd_context* ctx;
    crd_system* s;
    crd_master* m;
    char element[80];
    crd_coupling_spec coupling;
    crd_connection_spec* links[LINKS];
} rig;

static void lay(rig* r, double step, double stop)
{
    *r = (rig){.ctx = crd_context_create(NULL)};
    r->s = new_system(r->ctx, step, stop);
    const int a = add_unit(r->s, "first", &crd_model_lo_fd1, 0);
    const int b = add_unit(r->s, "second", &crd_model_lo_fd2, 0);
    wire(r->s, a, "f", b, "f");
    wire(r->s, b, "x2", a, "x2");
    wire(r->s, b, "v2", a, "v2");
    for (int i = 0; i < LINKS; i++) {
        r->links[i] = &r->s->connections[i];
        r->links[i]->predict = CRD_PREDICTION_HOLD;
    }
}

static crd_bond_spec* tie(rig* r, crd_correction correct)
{
    crd_bond_spec b = crd_bond_spec_defaults();
    b.action_unit = 0;
    b.action = "f";
    b.flow_unit = 1;
    b.flow = "v2";
    b.correct = correct;
    check_ok(crd_system_add_bond(r->s, &b));
    return &r->s->bonds[0];
}

static void couple(rig* r, const char* algorithm, double delay)
{
    snprintf(r->element, sizeof r->element, "{\"algorithm\": \"%s\"}", algorithm);
    r->coupling = (crd_coupling_spec){
        .element = r->element,
        .channel = {.step = NAN, .burst = 1, .seed = 1, .delay = delay},
        .has_channel = delay > 0,
    };
    for (int i = 0; i < LINKS; i++) {
        r->links[i]->coupling = &r->coupling;
    }
}

static void begin(rig* r)
{
    check_run(crd_master_create(r->ctx, r->s, NULL, &r->m), r->ctx);
    check_run(crd_master_initialize(r->m), r->ctx);
}

static void run(rig* r)
{
    check_run(crd_master_create(r->ctx, r->s, NULL, &r->m), r->ctx);
    check_run(crd_master_run(r->m), r->ctx);
}

static void clear_away(rig* r)
{
    crd_master_destroy(r->m);
    crd_system_destroy(r->s);
    crd_context_destroy(r->ctx);
}

// With the spring between where both masses are, or, `told`, as the first unit has it.
static double energy(rig* r, bool told)
{
    const double x1 = value(r->m, "first.x1"), v1 = value(r->m, "first.v1");
    const double x2 = value(r->m, "second.x2"), v2 = value(r->m, "second.v2");
    const double f = told ? value(r->m, "first.f") : 100 * (x1 - x2);
    return 0.5 * (v1 * v1 + 10 * x1 * x1 + v2 * v2 + 1000 * x2 * x2 + f * f / 100);
}

static double created(const rig* r)
{
    return crdi_bond_get_balance(&r->m->energy.bonds[0]).created;
}

static void check_part(const char* what, double ours, double want, double part)
{
    if (!(fabs(ours - want) <= part * fabs(want))) {
        printf("%s: %.6g J, expected %.6g J within %g %%\n", what, ours, want, 100 * part);
        fail();
    }
}

// ---- late links --------------------------------------------------------------------------------

static void a_late_bond_tells_what_it_creates(void** state)
{
    (void)state;
    static const char* const algorithms[] = {"zoh", "foh", "eros", "auto"};
    static const double delays[] = {0, 1e-3, 2e-3, 5e-3, 10e-3, 20e-3};
    for (int a = 0; a < 4; a++) {
        for (int d = 0; d < 6; d++) {
            rig r;
            char what[64];
            snprintf(what, sizeof what, "%s, %g ms each way", algorithms[a], 1e3 * delays[d]);
            lay(&r, 1e-3, 10);
            couple(&r, algorithms[a], delays[d]);
            tie(&r, CRD_CORRECT_NONE);
            begin(&r);
            for (int part = 0; part < 5; part++) {
                check_run(crd_master_advance(r.m, 2000), r.ctx);
                const double gained = energy(&r, true) - STORED;
                // that far the lines between samples are from the truth, whenever one looks
                check_near(created(&r), gained, 0.01 * fabs(gained) + 1e-4 * STORED);
            }
            check_part(what, created(&r), energy(&r, false) - STORED, 0.05);
            check_run(crd_master_finish(r.m), r.ctx);
            const crd_bond_report* b = crd_master_get_report(r.m)->bonds;
            check_near(b->energy, created(&r), 0);
            check_near(b->work, 0, 0);
            clear_away(&r);
        }
    }
}

static void jitter_and_loss_are_in_the_balance(void** state)
{
    (void)state;
    rig r;
    lay(&r, 1e-3, 10);
    couple(&r, "zoh", 4e-3);
    r.coupling.channel.jitter = 3e-3;
    r.coupling.channel.loss = 0.2;
    tie(&r, CRD_CORRECT_NONE);
    run(&r);
    check(created(&r) > 10 * STORED);
    check_part("jitter and loss", created(&r), energy(&r, true) - STORED, 0.01);
    check_part("jitter and loss", created(&r), energy(&r, false) - STORED, 0.05);
    clear_away(&r);
}

// ---- links in time -----------------------------------------------------------------------------

static void held_and_extrapolated_inputs_are_balanced_as_they_acted(void** state)
{
    (void)state;
    static const struct {
        crd_prediction predict;
        double step;
    } cases[] = {{CRD_PREDICTION_HOLD, 1e-3},
                 {CRD_PREDICTION_HOLD, 5e-3},
                 {CRD_PREDICTION_HOLD, 10e-3},
                 {CRD_PREDICTION_LINEAR, 5e-3},
                 {CRD_PREDICTION_LINEAR, 10e-3}};
    for (int scheme = 0; scheme < 2; scheme++) {
        for (int i = 0; i < 5; i++) {
            rig r;
            lay(&r, cases[i].step, 10);
            r.s->run.scheme = scheme ? CRD_SCHEME_GAUSS_SEIDEL : CRD_SCHEME_JACOBI;
            r.s->run.feedthrough = CRD_DEFECT_STRICT;
            for (int k = 0; k < LINKS; k++) {
                r.links[k]->predict = cases[i].predict;
            }
            tie(&r, CRD_CORRECT_NONE);
            run(&r);
            char what[64];
            snprintf(what, sizeof what, "case %d, scheme %d", i, scheme);
            // of all that is there: one step after the other the exchange conserves nearly all
            const double now = energy(&r, true);
            check_near(created(&r), now - STORED, 0.01 * fmax(now, STORED));
            clear_away(&r);
        }
    }
}

static void two_rates_are_balanced_each_at_its_own(void** state)
{
    (void)state;
    for (int slow = 0; slow < 2; slow++) {
        rig r;
        lay(&r, 1e-3, 10);
        r.s->units[slow].step = 4e-3;
        tie(&r, CRD_CORRECT_NONE);
        run(&r);
        check_part("two rates", created(&r), energy(&r, true) - STORED, 0.01);
        check_part("two rates", created(&r), energy(&r, false) - STORED, 0.05);
        clear_away(&r);
    }
}

// Written the other way round it is the same bond, and gains what it gains.
static void the_balance_does_not_depend_on_the_order(void** state)
{
    (void)state;
    double sum[2];
    for (int other = 0; other < 2; other++) {
        rig r;
        lay(&r, 1e-3, 2);
        couple(&r, "zoh", 3e-3);
        crd_bond_spec* b = tie(&r, CRD_CORRECT_NONE);
        if (other) {
            b->action_unit = 1;
            b->action = "v2";
            b->flow_unit = 0;
            b->flow = "f";
        }
        run(&r);
        sum[other] = created(&r);
        check(sum[other] > STORED);
        clear_away(&r);
    }
    check_near(sum[1], sum[0], 1e-9 * sum[0]);
}

static void what_explodes_shows_it(void** state)
{
    (void)state;
    rig r;
    lay(&r, 20e-3, 20);
    tie(&r, CRD_CORRECT_NONE);
    run(&r);
    check(energy(&r, true) > 1e15);
    check_part("20 ms", created(&r), energy(&r, true) - STORED, 0.05);
    const crdi_bond_balance b = crdi_bond_get_balance(&r.m->energy.bonds[0]);
    check(b.largest >= fabs(b.created) && b.passed > 0);
    check(crd_master_get_report(r.m)->worst_energy > 0.1);
    clear_away(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_late_bond_tells_what_it_creates),
        cmocka_unit_test(jitter_and_loss_are_in_the_balance),
        cmocka_unit_test(held_and_extrapolated_inputs_are_balanced_as_they_acted),
        cmocka_unit_test(two_rates_are_balanced_each_at_its_own),
        cmocka_unit_test(the_balance_does_not_depend_on_the_order),
        cmocka_unit_test(what_explodes_shows_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
