// Elements that know the commands, on plants of their own.
#include "plants.h"

static crd_coupling_options options(crd_algorithm a, int commands)
{
    crd_coupling_options o = crd_coupling_defaults();
    o.step = PLANT_STEP;
    o.algorithm = a;
    o.commands = commands;
    if (a == CRD_ALGORITHM_LINEAR) { o.design = crd_design_defaults(CRD_METHOD_ZOH); }
    return o;
}

// All commands of step n.
static void tell(crd_coupling* c, double* const* u, int count, int n)
{
    double now[CRD_COMMANDS_MAX];
    for (int a = 0; a < count; a++) {
        now[a] = u[a][n];
    }
    crd_coupling_command(c, now, n * PLANT_STEP);
}

#define check_below(x, limit) check_is_below(x, limit, #x)
static void check_is_below(double x, double limit, const char* what)
{
    if (x <= limit) { return; }
    fail_msg("%s = %g, expected at most %g", what, x, limit);
}

// RMS against the signal without noise, from `from` on, in per cent of its range.
static double run(crd_context* ctx, const crd_coupling_options* o, const plant_run* p,
                  double* const* u, int k, int from)
{
    crd_coupling* c = NULL;
    double sum = 0;
    check_ok(crd_coupling_create(ctx, o, &c));
    for (int n = 0; n < p->count; n++) {
        if (o->commands > 0) { tell(c, u, o->commands, n); }
        if (n >= k) { crd_coupling_push(c, p->noisy[n - k], (n - k) * PLANT_STEP, n - k); }
        const double e = crd_coupling_eval(c, n * PLANT_STEP) - p->y[n];
        if (n >= from) { sum += e * e; }
    }
    crd_coupling_destroy(c);
    return 100 * sqrt(sum / (p->count - from)) / p->range;
}

// What is left of the error of the hold after 20 s of learning, for latencies and seeds.
static void check_plant(crd_context* ctx, plant_kind kind, double most)
{
    for (int k = 6; k <= 8; k += 2) {
        for (uint32_t seed = 1; seed <= 3; seed++) {
            plant_run p = plant_make(kind, 6000, seed, 0.2);
            double* const model[1] = {p.model};
            const crd_coupling_options hold = options(CRD_ALGORITHM_LINEAR, 0),
                                       known = options(CRD_ALGORITHM_COMMANDS, p.commands),
                                       smith = options(CRD_ALGORITHM_SMITH, 1),
                                       learned = options(CRD_ALGORITHM_COMMANDS, 1);
            const double h = run(ctx, &hold, &p, NULL, k, 2000);
            check_below(run(ctx, &known, &p, p.u, k, 2000), most * h);
            check_below(run(ctx, &smith, &p, model, k, 2000), 0.5 * h);
            check_below(run(ctx, &learned, &p, model, k, 2000), 0.1 * h);
            plant_clear(&p);
        }
    }
}

static void engine_loses_60_per_cent(void** state)
{
    check_plant(context_of(state), PLANT_ENGINE, 0.40);
}

static void machine_loses_78_per_cent(void** state)
{
    check_plant(context_of(state), PLANT_MACHINE, 0.22);
}

static void hydraulic_loses_55_per_cent(void** state)
{
    check_plant(context_of(state), PLANT_HYDRAULIC, 0.45);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        coupling_unit_test(engine_loses_60_per_cent),
        coupling_unit_test(machine_loses_78_per_cent),
        coupling_unit_test(hydraulic_loses_55_per_cent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
