// Power bonds in a run: who takes part, what the exchange adds, what a correction takes out again.
// The linear oscillator of Rodriguez (2021), 5.4.1, cut between force and displacement, both masses
// by semi-implicit Euler; published numbers in the tolerances of the digits that are known.
#include "models.h"

#include "master/master.h"

#include <stdlib.h>

enum { AXES = 2 };

// Mass 1 and the coupling spring: x2, v2 in, f out. The arrays are components in the plane, of a
// motion along (0.6, 0.8).
typedef struct {
    double x2[AXES], v2[AXES], f[AXES], x, v, c;
    double x2s, v2s, fs; // the same as scalars
    double fk, v2k;      // in kN and km/h
    double plain, odd, part, energy;
    int64_t count, substeps; // 0: one
} mass1;

static double input(const double* u, double scalar)
{
    return 0.6 * u[0] + 0.8 * u[1] + scalar;
}

static double force1(const mass1* m)
{
    return 100 * (m->x - input(m->x2, m->x2s)) +
           m->c * (m->v - input(m->v2, m->v2s) - m->v2k / 3.6);
}

static void outputs1(void* self, double t)
{
    mass1* m = self;
    (void)t;
    m->fs = force1(m);
    m->fk = m->fs / 1000;
    m->f[0] = 0.6 * m->fs;
    m->f[1] = 0.8 * m->fs;
    m->energy = 0.5 * (m->v * m->v + 10 * m->x * m->x);
}

static crd_model_status start1(void* self, const crd_model_host* host, double t)
{
    mass1* m = self;
    (void)host;
    m->x = 0;
    m->v = 100;
    outputs1(m, t);
    return CRD_MODEL_OK;
}

static crd_model_status step1(void* self, const crd_model_host* host, double t, double h,
                              double* reached)
{
    mass1* m = self;
    (void)host;
    const double n = m->substeps ? (double)m->substeps : 1;
    for (int i = 0; i < (int)n; i++) {
        m->v -= h / n * (10 * m->x + m->c * m->v + force1(m));
        m->x += h / n * m->v;
    }
    *reached = t + h;
    return CRD_MODEL_OK;
}

#define ROW(T, field_, cause, unit_, ...)                                                          \
    {                                                                                              \
        .name = #field_, .type = CRD_FLOAT64, .causality = cause, .variability = CRD_CONTINUOUS,   \
        .offset = offsetof(T, field_), .unit = unit_, __VA_ARGS__                                  \
    }
#define ON_ALL .depends = "x2 v2 x2s v2s v2k"

static const crd_model_variable rows1[] = {
    ROW(mass1, x2, CRD_INPUT, "m", .size = AXES),
    ROW(mass1, v2, CRD_INPUT, "m/s", .size = AXES),
    ROW(mass1, f, CRD_OUTPUT, "N", .size = AXES, ON_ALL),
    ROW(mass1, x2s, CRD_INPUT, "m", .size = 0),
    ROW(mass1, v2s, CRD_INPUT, "m/s", .size = 0),
    ROW(mass1, fs, CRD_OUTPUT, "N", ON_ALL),
    ROW(mass1, fk, CRD_OUTPUT, "kN", ON_ALL),
    ROW(mass1, v2k, CRD_INPUT, "km/h", .size = 0),
    ROW(mass1, x, CRD_OUTPUT, "m", .depends = ""),
    ROW(mass1, v, CRD_OUTPUT, "m/s", .depends = ""),
    ROW(mass1, energy, CRD_OUTPUT, "J", .depends = ""),
    ROW(mass1, plain, CRD_OUTPUT, NULL, .depends = ""),
    {.name = "c",
     .type = CRD_FLOAT64,
     .causality = CRD_PARAMETER,
     .variability = CRD_TUNABLE,
     .offset = offsetof(mass1, c),
     .unit = "N.s/m"},
    {.name = "count",
     .type = CRD_INT64,
     .causality = CRD_OUTPUT,
     .variability = CRD_DISCRETE,
     .offset = offsetof(mass1, count),
     .depends = ""},
    {.name = "part",
     .type = CRD_FLOAT64,
     .causality = CRD_OUTPUT,
     .variability = CRD_DISCRETE,
     .offset = offsetof(mass1, part),
     .depends = "",
     .unit = "N"},
    ROW(mass1, odd, CRD_INPUT, NULL, .size = 0),
    {.name = "substeps",
     .type = CRD_INT64,
     .causality = CRD_PARAMETER,
     .variability = CRD_TUNABLE,
     .offset = offsetof(mass1, substeps)},
};
static const crd_model first_model = {.name = "first",
                                      .description = "mass 1 and the coupling spring",
                                      .size = sizeof(mass1),
                                      .variables = rows1,
                                      .variable_count = sizeof rows1 / sizeof *rows1,
                                      .default_step = 1e-3,
                                      .default_stop = 10,
                                      .initialize = start1,
                                      .outputs = outputs1,
                                      .step = step1};

// Mass 2: f in, x and v out.
typedef struct {
    double f[AXES], fs, fk, x[AXES], v[AXES], xs, vs, vk, plain, c;
    double energy, three[3], odd, pull;
    double at, speed;
    int64_t substeps; // 0: one
} mass2;

static void outputs2(void* self, double t)
{
    mass2* m = self;
    (void)t;
    m->xs = m->at;
    m->vs = m->speed;
    m->vk = 3.6 * m->speed;
    m->plain = m->speed;
    for (int i = 0; i < AXES; i++) {
        m->x[i] = (i ? 0.8 : 0.6) * m->at;
        m->v[i] = (i ? 0.8 : 0.6) * m->speed;
    }
    m->energy = 0.5 * (m->speed * m->speed + 1000 * m->at * m->at);
}

static crd_model_status start2(void* self, const crd_model_host* host, double t)
{
    mass2* m = self;
    (void)host;
    m->at = 0;
    m->speed = -100;
    outputs2(m, t);
    return CRD_MODEL_OK;
}

static crd_model_status step2(void* self, const crd_model_host* host, double t, double h,
                              double* reached)
{
    mass2* m = self;
    (void)host;
    const double f = input(m->f, m->fs) + 1000 * m->fk;
    const double n = m->substeps ? (double)m->substeps : 1;
    for (int i = 0; i < (int)n; i++) {
        m->speed += h / n * (f - m->c * m->speed - 1000 * m->at);
        m->at += h / n * m->speed;
    }
    *reached = t + h;
    return CRD_MODEL_OK;
}

static const crd_model_variable rows2[] = {
    ROW(mass2, f, CRD_INPUT, "N", .size = AXES),
    ROW(mass2, fs, CRD_INPUT, "N", .size = 0),
    ROW(mass2, fk, CRD_INPUT, "kN", .size = 0),
    ROW(mass2, x, CRD_OUTPUT, "m", .size = AXES, .depends = ""),
    ROW(mass2, v, CRD_OUTPUT, "m/s", .size = AXES, .depends = ""),
    ROW(mass2, xs, CRD_OUTPUT, "m", .depends = ""),
    ROW(mass2, vs, CRD_OUTPUT, "m/s", .depends = ""),
    ROW(mass2, vk, CRD_OUTPUT, "km/h", .depends = ""),
    ROW(mass2, plain, CRD_OUTPUT, NULL, .depends = ""),
    ROW(mass2, three, CRD_OUTPUT, "m/s", .size = 3, .depends = ""),
    ROW(mass2, energy, CRD_OUTPUT, "J", .depends = ""),
    ROW(mass2, pull, CRD_OUTPUT, "N", .depends = ""),
    ROW(mass2, odd, CRD_INPUT, NULL, .size = 0),
    {.name = "c",
     .type = CRD_FLOAT64,
     .causality = CRD_PARAMETER,
     .variability = CRD_TUNABLE,
     .offset = offsetof(mass2, c),
     .unit = "N.s/m"},
    {.name = "substeps",
     .type = CRD_INT64,
     .causality = CRD_PARAMETER,
     .variability = CRD_TUNABLE,
     .offset = offsetof(mass2, substeps)},
};
static const crd_model second_model = {.name = "second",
                                       .description = "mass 2",
                                       .size = sizeof(mass2),
                                       .variables = rows2,
                                       .variable_count = sizeof rows2 / sizeof *rows2,
                                       .default_step = 1e-3,
                                       .default_stop = 10,
                                       .initialize = start2,
                                       .outputs = outputs2,
                                       .step = step2};

// ---- bench -------------------------------------------------------------------------------------

typedef struct {
    crd_context* ctx;
    crd_system* s;
    crd_master* m;
} bench;

static bench lay_in(crd_context* ctx, double step)
{
    bench t = {.ctx = ctx};
    t.s = new_system(t.ctx, step, 10);
    t.s->run.feedthrough = CRD_DEFECT_STRICT;
    add_unit(t.s, "first", &first_model, 0);
    add_unit(t.s, "second", &second_model, 0);
    return t;
}

static bench lay(double step)
{
    return lay_in(crd_context_create(NULL), step);
}

static void hold(crd_system* s, int from, const char* y, int to, const char* u)
{
    crd_connection_spec* c = wire(s, from, y, to, u);
    c->predict = CRD_PREDICTION_HOLD;
    c->place = (crd_place){"sys.yaml", s->connection_count};
}

static void wire_scalars(bench* t)
{
    hold(t->s, 1, "xs", 0, "x2s");
    hold(t->s, 1, "vs", 0, "v2s");
    hold(t->s, 0, "fs", 1, "fs");
}

static crd_bond_spec* tie(bench* t, const char* f, const char* v, crd_correction correct)
{
    crd_bond_spec b = crd_bond_spec_defaults();
    b.action_unit = 0;
    b.action = f;
    b.flow_unit = 1;
    b.flow = v;
    b.correct = correct;
    b.place = (crd_place){"sys.yaml", 20 + t->s->bond_count};
    check_ok(crd_system_add_bond(t->s, &b));
    return &t->s->bonds[t->s->bond_count - 1];
}

static void clear_away(bench* t)
{
    crd_master_destroy(t->m);
    crd_system_destroy(t->s);
    crd_context_destroy(t->ctx);
}

static void run(bench* t)
{
    check_run(crd_master_create(t->ctx, t->s, NULL, &t->m), t->ctx);
    check_run(crd_master_run(t->m), t->ctx);
}

// Of both masses and the spring, which knows where both are.
static double energy(bench* t)
{
    const double e = value(t->m, "first.x") - value(t->m, "second.xs");
    return value(t->m, "first.energy") + value(t->m, "second.energy") + 50 * e * e;
}

#define check_relative(ours, want, tolerance) check_near(ours, want, fabs((want) * (tolerance)))

// ---- what the exchange adds --------------------------------------------------------------------

static void a_bond_sees_what_the_exchange_adds(void** state)
{
    (void)state;
    bench t = lay(1e-3);
    wire_scalars(&t);
    tie(&t, "fs", "vs", CRD_CORRECT_NONE);
    run(&t);
    const crdi_bond* p = &t.m->energy.bonds[0];
    check_relative(energy(&t), 2.02425640e+04, 1e-8);
    check_relative(p->state.energy, 2.16647342e+04, 1e-8);
    check_relative(p->state.power_max, 7.516049e+03, 1e-6);
    check_relative(p->state.power_min, -1.630102e+03, 1e-6);
    check_near(p->bond.mu, 0.5, 1e-15);
    check_int(p->state.steps, 10000);
    assert_string_equal(p->name, "first.fs x second.vs");
    assert_string_equal(p->action_name, "first.fs");
    assert_string_equal(p->flow_name, "second.vs");
    clear_away(&t);
}

static void the_residual_power_grows_with_the_step(void** state)
{
    (void)state;
    bench t = lay(5e-3);
    wire_scalars(&t);
    tie(&t, "fs", "vs", CRD_CORRECT_NONE);
    run(&t);
    check_relative(energy(&t), 8.89079539e+05, 1e-8);
    check_relative(t.m->energy.bonds[0].state.power_max, 1.039165e+06, 1e-6);
    clear_away(&t);
}

static void the_power_correction_takes_it_out_again(void** state)
{
    (void)state;
    for (int damped = 0; damped < 2; damped++) {
        bench t = lay(1e-3);
        wire_scalars(&t);
        if (damped) {
            set(t.s, 0, "c", "0.1");
            set(t.s, 1, "c", "0.1");
        }
        tie(&t, "fs", "vs", CRD_CORRECT_POWER);
        run(&t);
        check_relative(energy(&t), damped ? 1.34864599e+03 : 9.95639825e+03, 1e-7);
        check_relative(t.m->energy.bonds[0].state.power_max, damped ? 3.882342e+03 : 4.556979e+03,
                       1e-6);
        check_relative(t.m->energy.bonds[0].state.energy, damped ? 4.90384245e+03 : 1.21194886e+04,
                       1e-7);
        clear_away(&t);
    }
}

static void the_lead_takes_its_secular_part_out(void** state)
{
    (void)state;
    bench t = lay(1e-3);
    wire_scalars(&t);
    tie(&t, "fs", "vs", CRD_CORRECT_LEAD);
    run(&t);
    check_relative(energy(&t), 9.86281534e+03, 1e-7);
    clear_away(&t);
    t = lay(1e-3);
    wire_scalars(&t);
    tie(&t, "fs", "vs", CRD_CORRECT_GATED); // smooth: the gate is open
    run(&t);
    check_relative(energy(&t), 9.86281534e+03, 1e-2);
    clear_away(&t);
}

// Mass 2 ten times as often: Figs. 5.40 and 5.42.
static void two_rates_differ_by_mu(void** state)
{
    (void)state;
    static const struct {
        crd_prediction predict;
        double mu, none, power;
    } cases[] = {{CRD_PREDICTION_HOLD, 0.725, 3.01994796e+04, 9.98896593e+03},
                 {CRD_PREDICTION_LINEAR, 0.5, 2.01774555e+04, 9.93716637e+03}};
    for (int i = 0; i < 4; i++) {
        bench t = lay(1e-4);
        t.s->units[0].step = 1e-3;
        wire_scalars(&t);
        t.s->connections[2].predict = cases[i / 2].predict;
        tie(&t, "fs", "vs", i % 2 ? CRD_CORRECT_POWER : CRD_CORRECT_NONE);
        run(&t);
        const crdi_bond* p = &t.m->energy.bonds[0];
        check_near(p->bond.mu, cases[i / 2].mu, 1e-12);
        check_int(p->every, 10);
        check_int(p->state.steps, 10000);
        check_relative(energy(&t), i % 2 ? cases[i / 2].power : cases[i / 2].none, 1e-7);
        clear_away(&t);
    }
}

// ---- mu ----------------------------------------------------------------------------------------

static double mu_of(double h1, double h2, crd_prediction predict, const char* scheme, bool iterate,
                    crd_defect_scheme feedthrough)
{
    bench t = lay(fmin(h1, h2));
    wire_scalars(&t);
    t.s->units[0].step = h1;
    t.s->units[1].step = h2;
    t.s->run.feedthrough = feedthrough;
    t.s->units[0].refresh = CRD_REFRESH_YES;
    t.s->run.iterate.on = iterate;
    for (int i = 0; i < 3; i++) {
        t.s->connections[i].predict = predict;
    }
    check_ok(crd_system_set_scheme(t.s, scheme, (crd_place){"", 0}));
    tie(&t, "fs", "vs", CRD_CORRECT_NONE);
    check_run(crd_master_create(t.ctx, t.s, NULL, &t.m), t.ctx);
    const double mu = t.m->energy.bonds[0].bond.mu;
    clear_away(&t);
    return mu;
}

static void mu_follows_from_what_the_master_knows(void** state)
{
    (void)state;
    const crd_prediction hold_ = CRD_PREDICTION_HOLD, line = CRD_PREDICTION_LINEAR;
    const crd_defect_scheme strict = CRD_DEFECT_STRICT, fresh = CRD_DEFECT_FRESH;
    for (int order = 0; order < 2; order++) { // as published
        static const double R[] = {1, 2, 5, 10, 0.5, 0.2, 0.1};
        for (int i = 0; i < 7; i++) {
            const double h1 = R[i] >= 1 ? R[i] * 1e-3 : 1e-3, h2 = h1 / R[i];
            check_near(mu_of(h1, h2, order ? line : hold_, "jacobi", false, strict),
                       crd_bond_mu(h1, h2, order), 1e-12);
        }
    }
    // steps without a common multiple near by: the delay is shared over 6 ms
    check_near(mu_of(3e-3, 2e-3, hold_, "jacobi", false, strict), 0.5 * 3.5 / 6, 1e-12);
    check_near(mu_of(1e-3, 1e-3, hold_, "gauss-seidel", false, strict), 0, 0);
    const crd_prediction mean = CRD_PREDICTION_AB2;
    check_near(mu_of(1e-3, 1e-3, mean, "jacobi", false, strict), 0.25, 1e-12);
    check_near(mu_of(1e-3, 1e-3, mean, "jacobi", false, fresh), 0, 0);
    check_near(mu_of(1e-3, 1e-3, mean, "jacobi", true, strict), 0, 0);
    check_near(mu_of(1e-3, 1e-3, hold_, "jacobi", true, strict), 0.5, 1e-12);
}

static void a_mu_that_is_given_counts(void** state)
{
    (void)state;
    bench t = lay(1e-3);
    wire_scalars(&t);
    crd_bond_spec* b = tie(&t, "fs", "vs", CRD_CORRECT_POWER);
    b->mu = 0.3;
    b->ki = 0.25;
    b->limiter = 0.04;
    b->forget = 0.9;
    check_run(crd_master_create(t.ctx, t.s, NULL, &t.m), t.ctx);
    const crd_bond* got = &t.m->energy.bonds[0].bond;
    check_near(got->mu, 0.3, 0);
    check_near(got->ki, 0.25, 0);
    check_near(got->limiter, 0.04, 0);
    check_near(got->forget, 0.9, 0);
    clear_away(&t);
}

// Written the other way round, the unit with feedthrough gives the "flow": it is the same bond.
static void roles_follow_the_feedthrough(void** state)
{
    (void)state;
    bench t = lay(1e-3);
    wire_scalars(&t);
    crd_bond_spec b = crd_bond_spec_defaults();
    b.action_unit = 1;
    b.action = "vs";
    b.flow_unit = 0;
    b.flow = "fs";
    b.correct = CRD_CORRECT_NONE;
    check_ok(crd_system_add_bond(t.s, &b));
    run(&t);
    const crdi_bond* p = &t.m->energy.bonds[0];
    check_near(p->bond.mu, 0.5, 1e-15);
    // The power into unit 1 is then v f, which is what leaves unit 2: the sign turns.
    check_relative(p->state.energy, -2.16647342e+04, 1e-8);
    clear_away(&t);
}

// ---- components and units ----------------------------------------------------------------------

static void an_array_is_one_bond_with_components(void** state)
{
    (void)state;
    for (int i = 0; i < 4; i++) { // as arrays; as elements under one name; each with correction
        bench t = lay(1e-3);
        const crd_correction correct = i % 2 ? CRD_CORRECT_POWER : CRD_CORRECT_NONE;
        hold(t.s, 1, "x", 0, "x2");
        hold(t.s, 1, "v", 0, "v2");
        hold(t.s, 0, "f", 1, "f");
        if (i < 2) {
            tie(&t, "f", "v", correct);
        } else {
            tie(&t, "f[1]", "v[1]", correct)->name = "tip";
            tie(&t, "f[2]", "v[2]", correct)->name = "tip";
        }
        run(&t);
        check_int(t.m->energy.bond_count, 1);
        const crdi_bond* p = &t.m->energy.bonds[0];
        check_int(p->axis_count, 2);
        assert_string_equal(p->action_name, i < 2 ? "first.f" : "first.f[1], first.f[2]");
        assert_string_equal(p->name, i < 2 ? "first.f x second.v" : "tip");
        check_relative(energy(&t), i % 2 ? 9.95639825e+03 : 2.02425640e+04, 1e-6);
        check_relative(p->state.power_max, i % 2 ? 4.556979e+03 : 7.516049e+03, 1e-6);
        clear_away(&t);
    }
}

static void powers_are_in_watts_whatever_the_units(void** state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        bench t = lay(1e-3);
        hold(t.s, 1, "xs", 0, "x2s");
        hold(t.s, 1, "vk", 0, i ? "v2k" : "v2s"); // passes as it is; converted
        hold(t.s, 0, "fs", 1, "fk");              // N -> kN
        tie(&t, "fs", "vk", CRD_CORRECT_POWER);
        run(&t);
        check_relative(energy(&t), 9.95639825e+03, 1e-6);
        check_relative(t.m->energy.bonds[0].state.energy, 1.21194886e+04, 1e-6);
        clear_away(&t);
    }
}

// A unit that says nothing is told by its partner's.
static void one_end_that_knows_its_unit_is_enough(void** state)
{
    (void)state;
    bench t = lay(1e-3);
    hold(t.s, 1, "xs", 0, "x2s");
    hold(t.s, 1, "plain", 0, "v2s");
    hold(t.s, 0, "fs", 1, "fs");
    tie(&t, "fs", "plain", CRD_CORRECT_NONE);
    run(&t);
    check_relative(t.m->energy.bonds[0].state.energy, 2.16647342e+04, 1e-8);
    clear_away(&t);
}

// ---- who is corrected --------------------------------------------------------------------------

static void corrections_go_to_virtual_units_first(void** state)
{
    (void)state;
    static const struct {
        bool real[2];
        const char* target;
    } cases[] = {
        {{false, false}, "second.fs"}, {{true, false}, "second.fs"}, {{false, true}, "first.v2s"}};
    for (int i = 0; i < 3; i++) {
        bench t = lay(1e-3);
        wire_scalars(&t);
        t.s->run.stop = 1;
        set(t.s, 0, "c", "0.1");
        set(t.s, 1, "c", "0.1");
        t.s->units[0].real = cases[i].real[0];
        t.s->units[1].real = cases[i].real[1];
        tie(&t, "fs", "vs", CRD_CORRECT_POWER);
        run(&t);
        const crdi_bond* p = &t.m->energy.bonds[0];
        assert_string_equal(p->axes[0].corrected->of->to_name, cases[i].target);
        check(p->axes[0].corrected->correction != 0);
        check_int(p->corrects_flow, cases[i].real[1]);
        // work: what corrections put in; it is of the size of what they were to take out
        check(p->state.work < 0 && fabs(p->state.work + p->state.error) < 0.2 * p->state.error);
        clear_away(&t);
    }
}

static void bonds_of_one_output_have_columns_of_their_own(void** state)
{
    (void)state;
    bench t = lay(1e-3);
    wire_scalars(&t);
    hold(t.s, 1, "vk", 0, "v2k");
    tie(&t, "fs", "vs", CRD_CORRECT_NONE);
    tie(&t, "fs", "vk", CRD_CORRECT_NONE);
    check_run(crd_master_create(t.ctx, t.s, NULL, &t.m), t.ctx);
    assert_string_equal(t.m->energy.bonds[0].signals[0].name, "first.fs.bond.power");
    assert_string_equal(t.m->energy.bonds[1].signals[0].name, "first.fs.bond2.power");
    clear_away(&t);
}

static void a_record_has_the_powers_and_corrections(void** state)
{
    (void)state;
    static const char* const names[] = {"first.fs.bond.power", "first.fs.bond.energy",
                                        "second.fs.correction"};
    for (int correct = 0; correct < 2; correct++) {
        bench t = lay(1e-3);
        wire_scalars(&t);
        tie(&t, "fs", "vs", correct ? CRD_CORRECT_LEAD : CRD_CORRECT_NONE);
        check_run(crd_master_create(t.ctx, t.s, NULL, &t.m), t.ctx);
        int found = 0;
        for (int i = 0; i < crd_master_signal_count(t.m); i++) {
            for (int k = 0; k < 3; k++) {
                found += strcmp(crd_master_signal_name(t.m, i), names[k]) == 0;
            }
        }
        check_int(found, 2 + correct);
        clear_away(&t);
    }
}

// Steps that are not all the same: what a correction adds is measured by the next one.
static void corrections_work_with_a_variable_step(void** state)
{
    (void)state;
    double added[2];
    for (int correct = 0; correct < 2; correct++) {
        bench t = lay(1e-3);
        wire_scalars(&t);
        t.s->run.control.on = true;
        t.s->run.control.tolerance = 0.01;
        t.s->run.control.middle = false;
        tie(&t, "fs", "vs", correct ? CRD_CORRECT_LEAD : CRD_CORRECT_NONE);
        run(&t);
        added[correct] = energy(&t) / 1e4 - 1;
        check_int(t.m->energy.bonds[0].state.steps, crd_master_get_report(t.m)->steps);
        check_int(t.m->energy.bonds[0].every, 1);
        clear_away(&t);
    }
    check(added[0] > 0.3);
    check(fabs(added[1]) < 0.25 * added[0]); // 0.178 of 0.797 was found to be left
}

static void bonds_that_nobody_looks_at_cost_nothing(void** state)
{
    (void)state;
    bench t = lay(1e-3);
    wire_scalars(&t);
    t.s->run.monitor = CRD_MONITOR_DEFECT;
    tie(&t, "fs", "vs", CRD_CORRECT_NONE);
    check_run(crd_master_create(t.ctx, t.s, NULL, &t.m), t.ctx);
    check_int(t.m->energy.bond_count, 0);
    clear_away(&t);
}

static void count_warnings(void* user, crd_level level, const char* text)
{
    if (level == CRD_LOG_WARNING && strstr(text, "nothing to correct")) { ++*(int*)user; }
}

static void a_correction_without_feedthrough_is_warned_of(void** state)
{
    (void)state;
    for (int given = 0; given < 2; given++) {
        int warnings = 0;
        bench t =
            lay_in(crd_context_create(&(crd_context_options){
                       .log = count_warnings, .log_user = &warnings, .level = CRD_LOG_WARNING}),
                   1e-3);
        hold(t.s, 0, "v", 1, "odd");
        hold(t.s, 1, "pull", 0, "odd");
        crd_bond_spec* b = tie(&t, "v", "pull", CRD_CORRECT_LEAD);
        if (given) { b->mu = 0.5; }
        check_run(crd_master_create(t.ctx, t.s, NULL, &t.m), t.ctx);
        check_near(t.m->energy.bonds[0].bond.mu, given ? 0.5 : 0, 0);
        check_int(warnings, !given);
        clear_away(&t);
    }
}

// ---- feedthrough found by probing --------------------------------------------------------------

// Units that tell nothing but their outputs, each solved well inside of its step.
static bench lay_boxes(crd_context* ctx, const char* c)
{
    bench t = lay_in(ctx, 5e-3);
    for (int i = 0; i < 2; i++) {
        set(t.s, i, "substeps", "200");
        set(t.s, i, "c", c);
    }
    t.s->units[0].refresh = CRD_REFRESH_NO;
    return t;
}

static bench lay_boxed(const char* c)
{
    return lay_boxes(crd_context_create(NULL), c);
}

// x1, v1, x2, v2 of both masses as one, over h.
static void true_step(double y[4], double c, double h)
{
    enum { PARTS = 50 };
    for (int i = 0; i < PARTS; i++) {
        double k[4][4], z[4];
        for (int s = 0; s < 4; s++) {
            const double a = s == 0 ? 0 : s == 3 ? h / PARTS : h / PARTS / 2;
            for (int j = 0; j < 4; j++) {
                z[j] = y[j] + (s ? a * k[s - 1][j] : 0);
            }
            const double f = 100 * (z[0] - z[2]) + c * (z[1] - z[3]);
            k[s][0] = z[1];
            k[s][1] = -10 * z[0] - c * z[1] - f;
            k[s][2] = z[3];
            k[s][3] = -1000 * z[2] - c * z[3] + f;
        }
        for (int j = 0; j < 4; j++) {
            y[j] += h / PARTS / 6 * (k[0][j] + 2 * k[1][j] + 2 * k[2][j] + k[3][j]);
        }
    }
}

// RMS error of x1 and x2 over 10 s; the run is then over.
static double error_of(bench* t, double c)
{
    check_run(crd_master_create(t->ctx, t->s, NULL, &t->m), t->ctx);
    check_run(crd_master_initialize(t->m), t->ctx);
    double y[4] = {0, 100, 0, -100}, sum = 0;
    int n = 0;
    for (; crd_master_ended(t->m) == CRD_END_NONE; n++) {
        check_run(crd_master_advance(t->m, 1), t->ctx);
        true_step(y, c, 5e-3);
        const double e1 = value(t->m, "first.x") - y[0], e2 = value(t->m, "second.xs") - y[2];
        sum += (e1 * e1 + e2 * e2) / 2;
    }
    check_int(n, 2000);
    check_run(crd_master_finish(t->m), t->ctx);
    return sqrt(sum / n);
}

static double error_with(crd_correction correct, const char* c)
{
    bench t = lay_boxed(c);
    wire_scalars(&t);
    tie(&t, "fs", "vs", correct)->mu = correct == CRD_CORRECT_PROBE ? (double)NAN : 0.75;
    const double e = error_of(&t, atof(c));
    clear_away(&t);
    return e;
}

static void probing_beats_corrections_that_know_nothing(void** state)
{
    (void)state;
    static const char* const dampers[] = {"0", "0.1"};
    for (int i = 0; i < 2; i++) {
        const double e = error_with(CRD_CORRECT_PROBE, dampers[i]);
        check(e < 0.06);
        for (int k = CRD_CORRECT_NONE; k < CRD_CORRECT_PROBE; k++) {
            check(e < 0.2 * error_with((crd_correction)k, dampers[i]));
        }
    }
}

static void probing_finds_the_feedthrough(void** state)
{
    (void)state;
    bench t = lay_boxed("2");
    wire_scalars(&t);
    tie(&t, "fs", "vs", CRD_CORRECT_PROBE);
    run(&t);
    const crdi_bond* p = &t.m->energy.bonds[0];
    check_int(p->probing->probe.inputs, 2);
    check_relative(p->probing->state.gain[0], -100, 0.02);
    check_relative(p->probing->state.gain[1], -2, 0.02);
    check_near(p->bond.mu, 0.25, 0);
    clear_away(&t);
}

// f is what it would be with x2 and v2 as they are, not with the ones that were probed.
static void others_see_the_action_fresh(void** state)
{
    (void)state;
    bench t = lay_boxed("0.1");
    wire_scalars(&t);
    tie(&t, "fs", "vs", CRD_CORRECT_PROBE);
    check_run(crd_master_create(t.ctx, t.s, NULL, &t.m), t.ctx);
    check_run(crd_master_initialize(t.m), t.ctx);
    check_run(crd_master_advance(t.m, 1000), t.ctx);
    double raw = 0, fresh = 0;
    for (int i = 0; i < 200; i++) {
        check_run(crd_master_advance(t.m, 1), t.ctx);
        const double f = 100 * (value(t.m, "first.x") - value(t.m, "second.xs")) +
                         0.1 * (value(t.m, "first.v") - value(t.m, "second.vs"));
        fresh = fmax(fresh, fabs(*t.m->energy.bonds[0].axes[0].f - f));
        raw = fmax(raw, fabs(value(t.m, "first.fs") - f));
    }
    check(raw > 10);
    check(fresh < 0.02 * raw);
    clear_away(&t);
}

static double probed_result(bench* t, double* put_in)
{
    run(t);
    const crd_master_report* r = crd_master_get_report(t->m);
    *put_in = r->bonds[0].energy + r->bonds[0].work;
    const double x = value(t->m, "first.x");
    clear_away(t);
    return x;
}

static void probes_do_not_depend_on_units_or_roles(void** state)
{
    (void)state;
    double x[4], E[4];
    for (int i = 0; i < 4; i++) {
        bench t = lay_boxed("0.1");
        hold(t.s, 1, "xs", 0, "x2s");
        hold(t.s, 1, i == 1 ? "vk" : "vs", 0, i == 1 ? "v2k" : "v2s");
        hold(t.s, 0, "fs", 1, i == 1 ? "fk" : "fs");
        crd_bond_spec* b = tie(&t, "fs", i == 1 ? "vk" : "vs", CRD_CORRECT_PROBE);
        if (i == 2) {
            *b = (crd_bond_spec){.action_unit = 1,
                                 .action = "vs",
                                 .flow = "fs",
                                 .correct = CRD_CORRECT_PROBE,
                                 .mu = NAN,
                                 .ki = NAN,
                                 .limiter = NAN,
                                 .forget = NAN};
        }
        for (int k = 0; i == 3 && k < 3; k++) {
            t.s->connections[k].predict = CRD_PREDICTION_AUTO; // the bond says what is told
        }
        x[i] = probed_result(&t, &E[i]);
    }
    for (int i = 1; i < 4; i++) {
        check_near(x[i], x[0], 1e-6);
        check_near(fabs(E[i]), fabs(E[0]), 1e-3); // the sign is that of the roles
    }
}

// Velocity alone: the unit integrates it by itself, or has a damper only.
static void a_flow_alone_is_probed_too(void** state)
{
    (void)state;
    bench t = lay_boxed("3");
    hold(t.s, 1, "vs", 0, "v2s");
    hold(t.s, 0, "fs", 1, "fs");
    tie(&t, "fs", "vs", CRD_CORRECT_PROBE);
    run(&t);
    const crdi_probing* q = t.m->energy.bonds[0].probing;
    check_int(q->probe.inputs, 1);
    check(q->probe.flow[0]);
    assert_string_equal(q->inputs[0]->of->to_name, "first.v2s");
    check_relative(q->state.gain[0], -3, 0.02);
    clear_away(&t);
}

static void probes_are_recorded(void** state)
{
    (void)state;
    static const char* const names[] = {"first.fs.bond.power", "second.fs.correction",
                                        "first.x2s.correction", "first.v2s.correction"};
    bench t = lay_boxed("0");
    wire_scalars(&t);
    tie(&t, "fs", "vs", CRD_CORRECT_PROBE);
    check_run(crd_master_create(t.ctx, t.s, NULL, &t.m), t.ctx);
    int found = 0;
    for (int i = 0; i < crd_master_signal_count(t.m); i++) {
        for (int k = 0; k < 4; k++) {
            found += strcmp(crd_master_signal_name(t.m, i), names[k]) == 0;
        }
    }
    check_int(found, 4);
    clear_away(&t);
}

// The defects are those of the predictions; hold's would be several times as large.
static void what_is_told_is_what_is_judged(void** state)
{
    (void)state;
    double worst[2];
    for (int probe = 0; probe < 2; probe++) {
        bench t = lay_boxed("0");
        wire_scalars(&t);
        tie(&t, "fs", "vs", probe ? CRD_CORRECT_PROBE : CRD_CORRECT_LEAD);
        run(&t);
        const crd_master_report* r = crd_master_get_report(t.m);
        check_int(r->flow_count, 3);
        worst[probe] = r->worst_defect;
        clear_away(&t);
    }
    check(worst[1] < 0.25 * worst[0]);
}

static void events_end_the_past_of_a_probed_bond(void** state)
{
    (void)state;
    bench t = lay_boxed("0");
    wire_scalars(&t);
    tie(&t, "fs", "vs", CRD_CORRECT_PROBE);
    check_run(crd_master_create(t.ctx, t.s, NULL, &t.m), t.ctx);
    check_run(crd_master_initialize(t.m), t.ctx);
    check_run(crd_master_advance(t.m, 100), t.ctx);
    const crdi_probing* q = t.m->energy.bonds[0].probing;
    check(q->state.refreshed.count > 2 && q->lead != 0);
    t.m->plan->members[1].unit->events++;
    check_run(crd_master_advance(t.m, 1), t.ctx);
    check_int(q->state.refreshed.count, 1);
    check_near(q->lead, 0, 0); // held
    check(q->state.gain[0] != 0);
    check_run(crd_master_advance(t.m, 1), t.ctx);
    check_int(q->state.refreshed.count, 2);
    clear_away(&t);
}

static void look_for_better(void* user, crd_level level, const char* text)
{
    if (level == CRD_LOG_WARNING && strstr(text, "would be better")) { ++*(int*)user; }
}

static void where_prediction_is_better_it_is_said(void** state)
{
    (void)state;
    for (int can = 0; can < 2; can++) {
        int warnings = 0;
        bench t =
            lay_boxes(crd_context_create(&(crd_context_options){
                          .log = look_for_better, .log_user = &warnings, .level = CRD_LOG_WARNING}),
                      "0");
        wire_scalars(&t);
        if (can) { t.s->units[0].refresh = CRD_REFRESH_YES; }
        tie(&t, "fs", "vs", CRD_CORRECT_PROBE);
        check_run(crd_master_create(t.ctx, t.s, NULL, &t.m), t.ctx);
        check_int(warnings, can);
        clear_away(&t);
    }
}

// ---- bad input ---------------------------------------------------------------------------------

static void check_refused(bench* t, const char* const* texts)
{
    check(crd_master_create(t->ctx, t->s, NULL, &t->m) < 0);
    check_contains(crd_error_text(t->ctx), "sys.yaml:2");
    check_contains(crd_error_text(t->ctx), "bond '");
    for (int i = 0; texts[i]; i++) {
        check_contains(crd_error_text(t->ctx), texts[i]);
    }
    clear_away(t);
}

#define REFUSED(t, ...) check_refused(t, (const char* const[]){__VA_ARGS__, NULL})

static void names_that_do_not_exist_are_told(void** state)
{
    (void)state;
    bench t = lay(1e-3);
    wire_scalars(&t);
    tie(&t, "fz", "vs", CRD_CORRECT_NONE);
    REFUSED(&t, "'first' has no variable 'fz'", "did you mean");
    t = lay(1e-3);
    wire_scalars(&t);
    tie(&t, "fs", "v[3]", CRD_CORRECT_NONE);
    REFUSED(&t, "index 3, expected 1 to 2");
}

static void only_continuous_outputs_make_a_bond(void** state)
{
    (void)state;
    static const struct {
        const char *f, *v, *text;
    } cases[] = {
        {"v2s", "vs",
         "first.v2s is an input, expected the output that it is connected to, "
         "second.vs"},
        {"odd", "vs", "first.odd is an input, expected an output"},
        {"c", "vs", "first.c is a parameter, expected an output"},
        {"count", "vs", "first.count is a Int64, expected a continuous Float64"},
        {"part", "vs", "first.part is a discrete Float64"},
        {"f", "three", "first.f has 2 elements and second.three has 3"},
        {"f", "vs", "first.f has 2 elements and second.vs has 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bench t = lay(1e-3);
        wire_scalars(&t);
        tie(&t, cases[i].f, cases[i].v, CRD_CORRECT_NONE);
        REFUSED(&t, cases[i].text);
    }
    bench t = lay(1e-3);
    wire_scalars(&t);
    crd_bond_spec* b = tie(&t, "fs", "vs", CRD_CORRECT_NONE);
    b->flow_unit = 0;
    b->flow = "v";
    REFUSED(&t, "both are of unit 'first'");
}

static void outputs_that_are_not_reverse_partners_are_told(void** state)
{
    (void)state;
    bench t = lay(1e-3);
    hold(t.s, 1, "xs", 0, "x2s");
    hold(t.s, 0, "fs", 1, "fs");
    tie(&t, "fs", "vs", CRD_CORRECT_NONE);
    REFUSED(&t, "second.vs is not connected to an input of 'first', which gives first.fs",
            "both outputs of a bond have to be connected");
    t = lay(1e-3);
    add_unit(t.s, "third", &second_model, 0);
    hold(t.s, 1, "vs", 0, "v2s");
    hold(t.s, 0, "fs", 2, "fs");
    tie(&t, "fs", "vs", CRD_CORRECT_NONE);
    REFUSED(&t, "first.fs goes to third.fs, not to an input of 'second'");
}

static void products_that_are_no_power_are_told(void** state)
{
    (void)state;
    bench t = lay(1e-3);
    wire_scalars(&t);
    tie(&t, "fs", "xs", CRD_CORRECT_NONE);
    REFUSED(&t, "first.fs is in 'N' and second.xs in 'm': the product is not a power");
    t = lay(1e-3);
    hold(t.s, 1, "plain", 0, "odd");
    hold(t.s, 0, "fs", 1, "fs");
    tie(&t, "fs", "plain", CRD_CORRECT_NONE);
    REFUSED(&t, "second.plain has no unit");
}

static void a_pair_makes_one_bond(void** state)
{
    (void)state;
    bench t = lay(1e-3);
    wire_scalars(&t);
    tie(&t, "fs", "vs", CRD_CORRECT_NONE);
    tie(&t, "fs", "vs", CRD_CORRECT_POWER);
    REFUSED(&t, "first.fs and second.vs are a bond already, in line 20");
    t = lay(1e-3); // an element of what is there as a whole
    hold(t.s, 1, "v", 0, "v2");
    hold(t.s, 0, "f", 1, "f");
    tie(&t, "f", "v", CRD_CORRECT_NONE);
    tie(&t, "f[2]", "v[2]", CRD_CORRECT_NONE);
    REFUSED(&t, "are a bond already");
}

static void components_agree(void** state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        bench t = lay(1e-3);
        wire_scalars(&t);
        hold(t.s, 1, "v", 0, "v2");
        hold(t.s, 0, "f", 1, "f");
        tie(&t, "fs", "vs", CRD_CORRECT_NONE)->name = "tip";
        crd_bond_spec* b = tie(&t, "f", "v", i ? CRD_CORRECT_LEAD : CRD_CORRECT_NONE);
        b->name = "tip";
        if (i == 0) { b->mu = 0.25; }
        REFUSED(&t, "bond 'tip'", "differ from the bond of this name in line 20");
    }
}

// One force moves two masses, and hears of both speeds: a node of three units, one balance.
static void a_node_of_three_units_is_the_sum_of_its_bonds(void** state)
{
    (void)state;
    double sum[2] = {0};
    for (int node = 0; node < 2; node++) {
        bench t = lay(1e-3);
        add_unit(t.s, "third", &second_model, 0);
        set(t.s, 0, "c", "3");
        hold(t.s, 1, "vs", 0, "v2s");
        hold(t.s, 2, "vk", 0, "v2k");
        hold(t.s, 0, "fs", 1, "fs");
        hold(t.s, 0, "fs", 2, "fs");
        crd_bond_spec* b = tie(&t, "fs", "vs", CRD_CORRECT_NONE);
        if (node) { b->name = "rod"; }
        b = tie(&t, "fs", "vk", CRD_CORRECT_NONE);
        b->flow_unit = 2;
        if (node) { b->name = "rod"; }
        run(&t);
        check_int(t.m->energy.bond_count, node ? 1 : 2);
        for (int i = 0; i < t.m->energy.bond_count; i++) {
            sum[node] += crdi_bond_get_balance(&t.m->energy.bonds[i]).created;
        }
        if (node) {
            assert_string_equal(t.m->energy.bonds[0].flow_name, "second.vs, third.vk");
            check_int(t.m->energy.bonds[0].axis_count, 2);
        }
        clear_away(&t);
    }
    check(fabs(sum[0]) > 1);
    check_near(sum[1], sum[0], 1e-9 * fabs(sum[0]));
    bench t = lay(1e-3);
    add_unit(t.s, "third", &second_model, 0);
    hold(t.s, 1, "vs", 0, "v2s");
    hold(t.s, 2, "vk", 0, "v2k");
    hold(t.s, 0, "fs", 1, "fs");
    hold(t.s, 0, "fs", 2, "fs");
    tie(&t, "fs", "vs", CRD_CORRECT_LEAD)->name = "rod";
    crd_bond_spec* b = tie(&t, "fs", "vk", CRD_CORRECT_LEAD);
    b->flow_unit = 2;
    b->name = "rod";
    REFUSED(&t, "a node of several units is watched, not corrected", "'correct: lead'");
}

// N.m per rad does not matter: 0.5 of "m" makes N and 1/s a power.
static void a_factor_makes_a_power_of_a_product(void** state)
{
    (void)state;
    double sum[2];
    for (int i = 0; i < 2; i++) {
        bench t = lay(1e-3);
        wire_scalars(&t);
        crd_bond_spec* b = tie(&t, "fs", "vs", CRD_CORRECT_LEAD);
        if (i) { b->factor = "0.25"; }
        run(&t);
        const crd_bond_report* r = crd_master_get_report(t.m)->bonds;
        sum[i] = r->energy + r->work;
        check_relative(energy(&t), 9.86e+03, 0.01); // the correction is in the unit of f
        clear_away(&t);
    }
    check_relative(sum[1], 0.25 * sum[0], 1e-9);
    bench t = lay(1e-3);
    wire_scalars(&t);
    tie(&t, "fs", "vs", CRD_CORRECT_NONE)->factor = "3 m2";
    REFUSED(&t, "with its factor 3 m2 is not a power", "a quantity in m-2");
    t = lay(1e-3);
    wire_scalars(&t);
    tie(&t, "fs", "xs", CRD_CORRECT_NONE);
    REFUSED(&t, "what is missing is a 'factor:' in s-1");
    t = lay(1e-3);
    wire_scalars(&t);
    tie(&t, "fs", "xs", CRD_CORRECT_NONE)->factor = "2 1/s"; // a power, if an odd one
    run(&t);
    clear_away(&t);
}

static void what_cannot_be_corrected_is_told(void** state)
{
    (void)state;
    bench t = lay(1e-3);
    wire_scalars(&t);
    t.s->units[0].real = t.s->units[1].real = true;
    tie(&t, "fs", "vs", CRD_CORRECT_LEAD);
    REFUSED(&t, "'first' and 'second' are both real", "remove 'correct: lead'");
    t = lay(1e-3);
    wire_scalars(&t);
    t.s->connections[2].gain = 0;
    t.s->connections[2].has_transformation = true;
    tie(&t, "fs", "vs", CRD_CORRECT_NONE);
    REFUSED(&t, "has gain 0: no power passes");
    t = lay(1e-3);
    wire_scalars(&t);
    hold(t.s, 1, "vk", 0, "v2k");
    tie(&t, "fs", "vs", CRD_CORRECT_POWER);
    tie(&t, "fs", "vk", CRD_CORRECT_LEAD);
    REFUSED(&t, "second.fs is corrected for another bond already");
    t = lay(1e-3);
    wire_scalars(&t);
    tie(&t, "fs", "vs", CRD_CORRECT_POWER)->ki = 3;
    REFUSED(&t, "ki = 3");
}

static bench lay_probed(void)
{
    bench t = lay_boxed("0");
    wire_scalars(&t);
    tie(&t, "fs", "vs", CRD_CORRECT_PROBE);
    return t;
}

static void what_cannot_be_probed_is_told(void** state)
{
    (void)state;
    bench t = lay_probed();
    t.s->run.control.on = true;
    t.s->run.control.tolerance = 0.01;
    REFUSED(&t, "steps of one length", "remove 'run.control'");
    t = lay_probed();
    t.s->run.iterate.on = true;
    REFUSED(&t, "remove 'run.iterate'");
    for (int i = 0; i < 2; i++) {
        t = lay_probed();
        t.s->units[i].real = true;
        REFUSED(&t, i ? "'second' is real" : "'first' is real",
                "hardware is neither probed nor corrected");
    }
    t = lay_probed();
    t.s->units[0].step = 10e-3;
    REFUSED(&t, "'first' has a step of 0.01 s and 'second' one of 0.005 s");
    t = lay_probed();
    check_ok(crd_system_set_scheme(t.s, "gauss-seidel", (crd_place){"", 0}));
    REFUSED(&t, "'second' and 'first' advance one after the other", "'scheme: jacobi'");
    t = lay_probed();
    t.s->connections[0].predict = CRD_PREDICTION_AB3;
    REFUSED(&t, "'predict: ab3' of second.xs -> first.x2s and 'correct: probe' both say");
    t = lay_probed();
    static const crd_coupling_spec zoh = {.element = "{\"algorithm\": \"zoh\"}",
                                          .place = {"sys.yaml", 3}};
    t.s->connections[0].coupling = &zoh; // the displacement belongs to it
    REFUSED(&t, "second.xs -> first.x2s has a coupling element", "'correct: balance'");
    t = lay_probed();
    hold(t.s, 1, "vk", 0, "v2k");
    hold(t.s, 0, "fk", 1, "fk");
    tie(&t, "fk", "vk", CRD_CORRECT_PROBE);
    REFUSED(&t, "'first' is probed for bond 'first.fs x second.vs' already");
}

static void what_has_nothing_to_probe_is_told(void** state)
{
    (void)state;
    bench t = lay(1e-3);
    hold(t.s, 1, "v", 0, "v2");
    hold(t.s, 0, "f", 1, "f");
    tie(&t, "f", "v", CRD_CORRECT_PROBE);
    REFUSED(&t, "one action and one flow, and these are 2");
    t = lay(1e-3);
    hold(t.s, 0, "v", 1, "odd");
    hold(t.s, 1, "pull", 0, "odd");
    tie(&t, "v", "pull", CRD_CORRECT_PROBE);
    REFUSED(&t, "first.v does not depend", "second.pull neither", "nothing to probe");
    t = lay_probed();
    t.s->run.feedthrough = CRD_DEFECT_FRESH;
    t.s->units[0].refresh = CRD_REFRESH_YES;
    hold(t.s, 1, "vk", 0, "v2k");
    t.s->connections[3].predict = CRD_PREDICTION_AB2;
    REFUSED(&t, "'first' is evaluated again with fresh inputs", "'refresh: no'");
}

// ---- memory ------------------------------------------------------------------------------------

static void balances_take_no_memory(void** state)
{
    check_allocator a;
    bench t = {.ctx = check_context(&a)};
    t.s = new_system(t.ctx, 1e-3, 1);
    add_unit(t.s, "first", &first_model, 0);
    add_unit(t.s, "second", &second_model, 0);
    wire_scalars(&t);
    tie(&t, "fs", "vs", *state ? CRD_CORRECT_PROBE : CRD_CORRECT_POWER);
    check_run(crd_master_create(t.ctx, t.s, NULL, &t.m), t.ctx);
    check_run(crd_master_initialize(t.m), t.ctx);
    check_run(crd_master_advance(t.m, 2), t.ctx);
    const int64_t before = a.allocations;
    check_run(crd_master_advance(t.m, 500), t.ctx);
    check_int(a.allocations, before);
    check_int(t.m->energy.bonds[0].state.steps, 502);
    clear_away(&t);
    check_int(a.live, 0);
}

static crd_status add_parts(crd_system* s, bool probe)
{
    static const char* const wires[][3] = {{"v", "v2", "1"}, {"x", "x2", "1"}, {"f", "f", "0"}};
    crd_status st = CRD_OK;
    for (int i = 0; i < 2 && st >= 0; i++) {
        crd_unit_spec u = crd_unit_spec_defaults();
        u.name = i ? "second" : "first";
        u.source = CRD_UNIT_NATIVE;
        u.model = i ? &second_model : &first_model;
        st = crd_system_add_unit(s, &u, NULL);
    }
    for (int i = 0; i < 3 && st >= 0; i++) {
        crd_connection_spec c = crd_connection_spec_defaults();
        c.from = wires[i][0];
        c.to = wires[i][1];
        c.from_unit = wires[i][2][0] - '0';
        c.to_unit = !c.from_unit;
        c.predict = CRD_PREDICTION_HOLD;
        st = crd_system_add_connection(s, &c);
    }
    crd_bond_spec b = crd_bond_spec_defaults();
    b.action_unit = 0;
    b.flow_unit = 1;
    b.action = probe ? "f[1]" : "f";
    b.flow = probe ? "v[1]" : "v";
    b.correct = probe ? CRD_CORRECT_PROBE : CRD_CORRECT_GATED;
    return st < 0 ? st : crd_system_add_bond(s, &b);
}

static void every_allocation_may_fail(void** state)
{
    for (int64_t fail_at = 0;; fail_at++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        a.fail_at = a.allocations + fail_at;
        crd_system* s = NULL;
        crd_master* m = NULL;
        crd_status st = crd_system_create(ctx, &s);
        if (st >= 0) {
            s->run.step = 1e-3;
            s->run.stop = 0.01;
            s->run.threads = 1;
            st = add_parts(s, *state != NULL);
        }
        if (st >= 0) { st = crd_master_create(ctx, s, NULL, &m); }
        if (st >= 0) { st = crd_master_run(m); }
        check(st == CRD_OK || st == CRD_E_MEMORY);
        if (st == CRD_OK) { check_int(m->energy.bonds[0].axis_count, *state ? 1 : 2); }
        crd_master_destroy(m);
        crd_system_destroy(s);
        crd_context_destroy(ctx);
        check_int(a.live, 0);
        if (st == CRD_OK) {
            check(fail_at > 30);
            return;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bond_sees_what_the_exchange_adds),
        cmocka_unit_test(the_residual_power_grows_with_the_step),
        cmocka_unit_test(the_power_correction_takes_it_out_again),
        cmocka_unit_test(the_lead_takes_its_secular_part_out),
        cmocka_unit_test(two_rates_differ_by_mu),
        cmocka_unit_test(mu_follows_from_what_the_master_knows),
        cmocka_unit_test(a_mu_that_is_given_counts),
        cmocka_unit_test(roles_follow_the_feedthrough),
        cmocka_unit_test(an_array_is_one_bond_with_components),
        cmocka_unit_test(powers_are_in_watts_whatever_the_units),
        cmocka_unit_test(one_end_that_knows_its_unit_is_enough),
        cmocka_unit_test(corrections_go_to_virtual_units_first),
        cmocka_unit_test(a_record_has_the_powers_and_corrections),
        cmocka_unit_test(bonds_of_one_output_have_columns_of_their_own),
        cmocka_unit_test(corrections_work_with_a_variable_step),
        cmocka_unit_test(bonds_that_nobody_looks_at_cost_nothing),
        cmocka_unit_test(a_correction_without_feedthrough_is_warned_of),
        cmocka_unit_test(a_node_of_three_units_is_the_sum_of_its_bonds),
        cmocka_unit_test(a_factor_makes_a_power_of_a_product),
        cmocka_unit_test(probing_beats_corrections_that_know_nothing),
        cmocka_unit_test(probing_finds_the_feedthrough),
        cmocka_unit_test(others_see_the_action_fresh),
        cmocka_unit_test(probes_do_not_depend_on_units_or_roles),
        cmocka_unit_test(a_flow_alone_is_probed_too),
        cmocka_unit_test(probes_are_recorded),
        cmocka_unit_test(what_is_told_is_what_is_judged),
        cmocka_unit_test(events_end_the_past_of_a_probed_bond),
        cmocka_unit_test(where_prediction_is_better_it_is_said),
        cmocka_unit_test(names_that_do_not_exist_are_told),
        cmocka_unit_test(only_continuous_outputs_make_a_bond),
        cmocka_unit_test(outputs_that_are_not_reverse_partners_are_told),
        cmocka_unit_test(products_that_are_no_power_are_told),
        cmocka_unit_test(a_pair_makes_one_bond),
        cmocka_unit_test(components_agree),
        cmocka_unit_test(what_cannot_be_corrected_is_told),
        cmocka_unit_test(what_cannot_be_probed_is_told),
        cmocka_unit_test(what_has_nothing_to_probe_is_told),
        cmocka_unit_test(balances_take_no_memory),
        cmocka_unit_test_prestate(balances_take_no_memory, (void*)"probe"),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test_prestate(every_allocation_may_fail, (void*)"probe"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
