// What a bond says it has created, against the energy of both masses and the spring, worked out
// from their states: the linear oscillator of Rodriguez (2021), 5.4.1, lossless, solved exactly
// inside of each unit, so that all that is gained or lost comes from the exchange.
#include "models.h"

#include "master/master.h"

#include <stdio.h>

extern const crd_model crd_model_lo_fd1, crd_model_lo_fd2, crd_model_lo_dd1, crd_model_lo_dd2;

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
    r->s->run.guard.action = CRD_GUARD_NONE; // explosions are what is measured here
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

// With the spring between where both masses are.
static double energy(rig* r)
{
    const double x1 = value(r->m, "first.x1"), v1 = value(r->m, "first.v1");
    const double x2 = value(r->m, "second.x2"), v2 = value(r->m, "second.v2");
    return 0.5 * (v1 * v1 + 10 * x1 * x1 + v2 * v2 + 1000 * x2 * x2 + 100 * (x1 - x2) * (x1 - x2));
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
                const double gained = energy(&r) - STORED;
                // that far the lines between samples are from the truth, whenever one looks
                check_near(created(&r), gained, 0.01 * fabs(gained) + 1e-4 * STORED);
            }
            check_part(what, created(&r), energy(&r) - STORED, 0.02);
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
    check_part("jitter and loss", created(&r), energy(&r) - STORED, 0.01);
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
            const double now = energy(&r);
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
        check_part("two rates", created(&r), energy(&r) - STORED, 0.01);
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
    check(energy(&r) > 1e15);
    check_part("20 ms", created(&r), energy(&r) - STORED, 0.05);
    const crdi_bond_balance b = crdi_bond_get_balance(&r.m->energy.bonds[0]);
    check(b.largest >= fabs(b.created) && b.passed > 0);
    check(crd_master_get_report(r.m)->worst_energy > 0.1);
    clear_away(&r);
}

// ---- other forms -------------------------------------------------------------------------------

// Both units have the spring, and are told where the other is.
static void two_displacements_and_their_spring_are_a_bond(void** state)
{
    (void)state;
    static const double delays[] = {0, 5e-3, 20e-3};
    for (int i = 0; i < 6; i++) {
        const bool damped = i >= 3;
        rig r = {.ctx = crd_context_create(NULL)};
        r.s = new_system(r.ctx, 1e-3, 5);
        const int a = add_unit(r.s, "first", &crd_model_lo_dd1, 0);
        const int b = add_unit(r.s, "second", &crd_model_lo_dd2, 0);
        wire(r.s, a, "x1", b, "x1");
        wire(r.s, a, "v1", b, "v1");
        wire(r.s, b, "x2", a, "x2");
        wire(r.s, b, "v2", a, "v2");
        snprintf(r.element, sizeof r.element, "{\"algorithm\": \"zoh\"}");
        r.coupling = (crd_coupling_spec){
            .element = r.element,
            .channel = {.step = NAN, .burst = 1, .seed = 1, .delay = delays[i % 3]},
            .has_channel = delays[i % 3] > 0,
        };
        for (int k = 0; k < 4; k++) {
            r.s->connections[k].coupling = &r.coupling;
        }
        if (damped) {
            set(r.s, a, "cc", "2");
            set(r.s, b, "cc", "2");
        }
        crd_bond_spec* bond = tie(&r, CRD_CORRECT_NONE);
        bond->action = "x1";
        bond->flow = "x2";
        bond->stiffness = "0.1 N/mm";
        bond->damping = damped ? "2 N.s/m" : "";
        begin(&r);
        double lost = 0, last = 200; // in the damper: the speed as a line, right to 1e-4
        for (int n = 0; n < 5000; n++) {
            check_run(crd_master_advance(r.m, 1), r.ctx);
            const double v = value(r.m, "first.v1") - value(r.m, "second.v2");
            lost += damped ? 1e-3 * (v * v + v * last + last * last) / 3 * 2 : 0;
            last = v;
        }
        const double x1 = value(r.m, "first.x1"), v1 = value(r.m, "first.v1");
        const double x2 = value(r.m, "second.x2"), v2 = value(r.m, "second.v2");
        const double now =
            0.5 * (v1 * v1 + 10 * x1 * x1 + v2 * v2 + 1000 * x2 * x2 + 100 * (x1 - x2) * (x1 - x2));
        char what[64];
        snprintf(what, sizeof what, "dd, %g ms, damping %d", 1e3 * delays[i % 3], damped);
        const double gained = now + lost - STORED;
        if (fabs(created(&r) - gained) > 0.02 * fabs(gained) + (damped ? 2e-4 * STORED : 0)) {
            printf("%s: %.6g J, expected %.6g J\n", what, created(&r), gained);
            fail();
        }
        clear_away(&r);
    }
}

// The spring's force as a pressure on an area: connections with gains, and a factor that undoes
// them.
static void a_factor_makes_a_power(void** state)
{
    (void)state;
    double sum[2];
    for (int i = 0; i < 2; i++) {
        rig r;
        lay(&r, 1e-3, 2);
        if (i) {
            crd_bond_spec* b = tie(&r, CRD_CORRECT_LEAD);
            b->factor = "2";
        } else {
            tie(&r, CRD_CORRECT_LEAD);
        }
        run(&r);
        const crd_bond_report* b = crd_master_get_report(r.m)->bonds;
        sum[i] = b->energy + b->work;
        clear_away(&r);
    }
    check_near(sum[1], 2 * sum[0], 1e-9 * fabs(sum[0]));
}

// ---- benches -----------------------------------------------------------------------------------

// Mass 2 at the end of a late link: what it is told acts THERE steps later, what it gives is seen
// BACK steps later. Solved exactly: x'' = f - 1000 x.
enum { THERE = 3, BACK = 2, AWAY = THERE + BACK };
typedef struct {
    double f, x2, v2;
    double told[THERE], x[BACK + 1], v[BACK + 1];
} far_mass;

static crd_model_status far_start(void* self, const crd_model_host* host, double t)
{
    far_mass* m = self;
    (void)host;
    (void)t;
    for (int i = 0; i <= BACK; i++) {
        m->v[i] = -100;
    }
    m->v2 = -100;
    return CRD_MODEL_OK;
}

static crd_model_status far_step(void* self, const crd_model_host* host, double t, double h,
                                 double* reached)
{
    far_mass* m = self;
    (void)host;
    const double f = m->told[THERE - 1], w = sqrt(1000), c = cos(w * h), s = sin(w * h);
    for (int i = THERE - 1; i > 0; i--) {
        m->told[i] = m->told[i - 1];
    }
    m->told[0] = m->f;
    for (int i = BACK; i > 0; i--) {
        m->x[i] = m->x[i - 1];
        m->v[i] = m->v[i - 1];
    }
    const double y = m->x[0] - f / 1000, v = m->v[0];
    m->x[0] = f / 1000 + y * c + v * s / w;
    m->v[0] = v * c - y * w * s;
    *reached = t + h;
    return CRD_MODEL_OK;
}

static void far_outputs(void* self, double t)
{
    far_mass* m = self;
    (void)t;
    m->x2 = m->x[BACK];
    m->v2 = m->v[BACK];
}

#define ROW(field_, cause, unit_, ...)                                                             \
    {                                                                                              \
        .name = #field_, .type = CRD_FLOAT64, .causality = cause, .variability = CRD_CONTINUOUS,   \
        .offset = offsetof(far_mass, field_), .unit = unit_, __VA_ARGS__                           \
    }
static const crd_model_variable far_rows[] = {ROW(f, CRD_INPUT, "N", .size = 0),
                                              ROW(x2, CRD_OUTPUT, "m", .depends = ""),
                                              ROW(v2, CRD_OUTPUT, "m/s", .depends = "")};
static const crd_model far_model = {.name = "far",
                                    .description = "mass 2 at the end of a late link",
                                    .size = sizeof(far_mass),
                                    .variables = far_rows,
                                    .variable_count = 3,
                                    .default_step = 1e-3,
                                    .default_stop = 10,
                                    .initialize = far_start,
                                    .outputs = far_outputs,
                                    .step = far_step};

crd_status __real_crd_unit_create_shared(crd_context* ctx, crd_unit_store* store,
                                         const crd_unit_spec* spec, crd_unit** out);
crd_status __wrap_crd_unit_create_shared(crd_context* ctx, crd_unit_store* store,
                                         const crd_unit_spec* spec, crd_unit** out);

crd_status __wrap_crd_unit_create_shared(crd_context* ctx, crd_unit_store* store,
                                         const crd_unit_spec* spec, crd_unit** out)
{
    const crd_status st = __real_crd_unit_create_shared(ctx, store, spec, out);
    if (st >= 0 && strcmp((*out)->name, "bench") == 0) {
        (*out)->info.flags |= CRD_UNIT_DATES_OUTPUTS;
        (*out)->info.flags &= ~(uint32_t)CRD_UNIT_CAN_REFRESH;
        (*out)->made = NAN;
    }
    return st;
}

// What the bench gives now answers to what it was told five steps ago, and the other side is taken
// as it was then.
static void a_bench_tells_what_its_age_creates(void** state)
{
    (void)state;
    enum { STEPS = 3000 };
    static double first[STEPS + 1];
    rig r = {.ctx = crd_context_create(NULL)};
    r.s = new_system(r.ctx, 1e-3, 3);
    const int a = add_unit(r.s, "first", &crd_model_lo_fd1, 0);
    const int b = add_unit(r.s, "bench", &far_model, 0);
    wire(r.s, a, "f", b, "f")->predict = CRD_PREDICTION_HOLD;
    wire(r.s, b, "x2", a, "x2")->predict = CRD_PREDICTION_HOLD;
    wire(r.s, b, "v2", a, "v2")->predict = CRD_PREDICTION_HOLD;
    tie(&r, CRD_CORRECT_NONE);
    begin(&r);
    first[0] = 5000;
    double stored = 0;
    for (int n = 1; n <= STEPS; n++) {
        if (n > AWAY) { r.m->plan->members[b].unit->made = (n - AWAY) * 1e-3; }
        check_run(crd_master_advance(r.m, 1), r.ctx);
        const double x1 = value(r.m, "first.x1"), v1 = value(r.m, "first.v1"),
                     f = value(r.m, "first.f");
        const double x2 = value(r.m, "bench.x2"), v2 = value(r.m, "bench.v2");
        first[n] = 0.5 * (v1 * v1 + 10 * x1 * x1 + f * f / 100);
        if (n > AWAY) { stored = first[n - AWAY] + 0.5 * (v2 * v2 + 1000 * x2 * x2); }
    }
    check(stored > 2 * STORED);
    check_part("bench", created(&r), stored - STORED, 0.02);
    // held, and five steps late: half of six steps
    check_near(r.m->energy.bonds[0].bond.mu, 3, 0.02);
    clear_away(&r);
}

// ---- closing the balance -----------------------------------------------------------------------

// x1, v1, x2, v2 of both masses as one, over h.
static void true_step(double y[4], double h)
{
    enum { PARTS = 4 };
    for (int i = 0; i < PARTS; i++) {
        double k[4][4], z[4];
        for (int s = 0; s < 4; s++) {
            const double a = s == 0 ? 0 : s == 3 ? h / PARTS : h / PARTS / 2;
            for (int j = 0; j < 4; j++) {
                z[j] = y[j] + (s ? a * k[s - 1][j] : 0);
            }
            const double f = 100 * (z[0] - z[2]);
            k[s][0] = z[1];
            k[s][1] = -10 * z[0] - f;
            k[s][2] = z[3];
            k[s][3] = -1000 * z[2] + f;
        }
        for (int j = 0; j < 4; j++) {
            y[j] += h / PARTS / 6 * (k[0][j] + 2 * k[1][j] + 2 * k[2][j] + k[3][j]);
        }
    }
}

// The smaller root of (110 - w2)(1100 - w2) = 100^2 is w2 = 100: 0.628 s
static const int PERIOD = 628; // steps of 1 ms, of the slower motion

// RMS error of both displacements over the first ten periods; the rig stands there then.
static double error_of_ten(rig* r)
{
    double y[4] = {0, 100, 0, -100}, sum = 0;
    begin(r);
    for (int n = 0; n < 10 * PERIOD; n++) {
        check_run(crd_master_advance(r->m, 1), r->ctx);
        true_step(y, 1e-3);
        const double e1 = value(r->m, "first.x1") - y[0], e2 = value(r->m, "second.x2") - y[2];
        sum += (e1 * e1 + e2 * e2) / 2;
    }
    return sqrt(sum / (10 * PERIOD));
}

static double error_with(const char* algorithm, crd_correction correct, int real, double* gained,
                         int periods)
{
    rig r;
    lay(&r, 1e-3, 1e-3 * PERIOD * periods);
    couple(&r, algorithm, 5e-3);
    if (real >= 0) { r.s->units[real].real = true; }
    tie(&r, correct);
    const double e = error_of_ten(&r);
    check_run(crd_master_advance(r.m, (int64_t)PERIOD * (periods - 10)), r.ctx);
    *gained = energy(&r) / STORED - 1;
    clear_away(&r);
    return e;
}

static void late_links_conserve_energy_for_a_thousand_periods(void** state)
{
    (void)state;
    static const char* const algorithms[] = {"zoh", "foh", "eros", "auto"};
    for (int i = 0; i < 4; i++) {
        double without, with;
        const double alone = error_with(algorithms[i], CRD_CORRECT_NONE, -1, &without, 10);
        const double both =
            error_with(algorithms[i], CRD_CORRECT_BALANCE, -1, &with, 1000 / CHECK_SHARE);
        printf("%s: error %.3g m alone, %.3g m with balance; energy %+.3g alone, %+.3g with\n",
               algorithms[i], alone, both, without, with);
        check(both <= alone);
        check(with <= 0.01);
        check(with >= -0.05); // nor is much of it lost
    }
}

// What is real is left alone: the model on the other side gets the corrected motion.
static void the_model_beside_a_machine_is_corrected(void** state)
{
    (void)state;
    for (int real = 0; real < 2; real++) {
        double without, with;
        const double alone = error_with("auto", CRD_CORRECT_NONE, real, &without, 20);
        const double both = error_with("auto", CRD_CORRECT_BALANCE, real, &with, 200 / CHECK_SHARE);
        check(both <= alone);
        check(without > 1);
        check(fabs(with) <= 0.01);
    }
}

// A force that follows the displacement does not hear of a corrected velocity alone.
static void a_correction_beside_a_machine_has_an_effect(void** state)
{
    (void)state;
    static const crd_correction laws[] = {CRD_CORRECT_NONE, CRD_CORRECT_POWER, CRD_CORRECT_LEAD,
                                          CRD_CORRECT_GATED, CRD_CORRECT_BALANCE};
    double left[5];
    for (int i = 0; i < 5; i++) {
        rig r;
        lay(&r, 1e-3, 10);
        r.s->units[1].real = true;
        tie(&r, laws[i]);
        run(&r);
        left[i] = energy(&r) - STORED;
        const crd_bond_report* b = crd_master_get_report(r.m)->bonds;
        check_near(b->energy + b->work, left[i], 0.01 * fabs(left[i]) + 1e-3 * STORED);
        check(i == 0 ? b->work == 0 : b->work < 0);
        check(i == 0 || left[i] < 0.5 * left[0]);
        clear_away(&r);
    }
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
        cmocka_unit_test(two_displacements_and_their_spring_are_a_bond),
        cmocka_unit_test(a_factor_makes_a_power),
        cmocka_unit_test(a_bench_tells_what_its_age_creates),
        cmocka_unit_test(late_links_conserve_energy_for_a_thousand_periods),
        cmocka_unit_test(the_model_beside_a_machine_is_corrected),
        cmocka_unit_test(a_correction_beside_a_machine_has_an_effect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
