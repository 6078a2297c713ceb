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

// Driven to its limits: 78 % are not reached, 0.21 to 0.32 of the hold's error is left, as its slew
// rate is followed and the limit of its torque is not. Noise, latency and the heat that no command
// tells leave 0.05 only (the plant itself without its heat as model).
static void weakened_machine_loses_67_per_cent(void** state)
{
    check_plant(context_of(state), PLANT_WEAKENED, 0.33);
}

static void hydraulic_loses_55_per_cent(void** state)
{
    check_plant(context_of(state), PLANT_HYDRAULIC, 0.45);
}

// ---- commands that say nothing -----------------------------------------------------------------

// The signal has nothing to do with them: within 1 % of the signal alone over a run, from the first
// sample on.
static void commands_that_say_nothing_cost_nothing(void** state)
{
    crd_context* ctx = context_of(state);
    for (int kind = 0; kind < 3; kind++) {
        for (uint32_t seed = 1; seed <= 3; seed++) {
            plant_run p = plant_make((plant_kind)kind, 12000, seed, 0);
            plant_run other = plant_make((plant_kind)((kind + 1) % 3), 12000, seed + 90, 0);
            const crd_coupling_options alone = options(CRD_ALGORITHM_AUTO, 0),
                                       with = options(CRD_ALGORITHM_AUTO, 2);
            const double limit = run(ctx, &alone, &p, NULL, 6, 0);
            check_below(run(ctx, &with, &p, other.u, 6, 0), 1.01 * limit);
            plant_clear(&p);
            plant_clear(&other);
        }
    }
}

// Noise, spikes, constants, copies, not numbers, huge ones: finite, and within 1 % of the signal
// alone, as commands that say nothing.
static double garbage(int kind, int n, uint32_t* seed)
{
    const double x = next_uniform(seed);
    switch (kind) {
    case 0:
        return next_normal(seed);
    case 1:
        return x < 0.01 ? 1e60 * next_normal(seed) : 0;
    case 2:
        return x < 0.3 ? NAN : x < 0.4 ? INFINITY : x;
    case 3:
        return n / 100 % 2 ? 1e-200 : -1e-200;
    case 4:
        return 7;
    case 5:
        return 1e59 * sin(0.01 * n);
    default:
        return (double)n * n;
    }
}

static void garbage_in_commands_does_no_harm(void** state)
{
    crd_context* ctx = context_of(state);
    plant_run p = plant_make(PLANT_ENGINE, 6000, 5, 0);
    const crd_coupling_options alone = options(CRD_ALGORITHM_AUTO, 0);
    const double limit = run(ctx, &alone, &p, NULL, 6, 0);
    for (int kind = 0; kind <= 6; kind++) {
        for (int commands = 1; commands <= 8; commands += 7) {
            const crd_coupling_options o = options(CRD_ALGORITHM_COMMANDS, commands);
            uint32_t seed = 3;
            double* u[CRD_COMMANDS_MAX];
            for (int a = 0; a < CRD_COMMANDS_MAX; a++) {
                u[a] = calloc((size_t)p.count, sizeof *u[a]);
                for (int n = 0; n < p.count; n++) {
                    u[a][n] = garbage((kind + a / 2) % 7, n, &seed);
                }
            }
            const double error = run(ctx, &o, &p, u, 6, 0);
            check(isfinite(error));
            check_below(error, 1.01 * limit);
            for (int a = 0; a < CRD_COMMANDS_MAX; a++) {
                free(u[a]);
            }
        }
    }
    plant_clear(&p);
}

// A command that is always NaN leaves the others useful; one that is constant, and a copy, are
// told.
static void odd_commands_are_told(void** state)
{
    crd_context* ctx = context_of(state);
    plant_run p = plant_make(PLANT_ENGINE, 6000, 5, 0);
    double *none = calloc((size_t)p.count, sizeof *none), *copy = calloc((size_t)p.count, 8);
    for (int n = 0; n < p.count; n++) {
        none[n] = NAN;
        copy[n] = 3 * p.u[0][n] - 1;
    }
    double* const u[] = {p.u[0], p.u[1], p.u[2], none, copy};
    const crd_coupling_options hold = options(CRD_ALGORITHM_LINEAR, 0),
                               o = options(CRD_ALGORITHM_COMMANDS, 5);
    crd_coupling_commands s;
    crd_coupling* c = NULL;
    check_ok(crd_coupling_create(ctx, &o, &c));
    for (int n = 0; n < p.count; n++) {
        tell(c, u, 5, n);
        if (n >= 6) { crd_coupling_push(c, p.noisy[n - 6], (n - 6) * PLANT_STEP, n - 6); }
        crd_coupling_eval(c, n * PLANT_STEP);
    }
    s = crd_coupling_get_commands(c);
    check_int(s.count, 5);
    check_int(s.not_finite, p.count);
    check_int(s.changes[3], 0);
    check(s.changes[0] > 100);
    check_int(s.copy_of[4], 0);
    check_int(s.copy_of[1], -1);
    check_int(s.given, p.count);
    crd_coupling_destroy(c);
    check_below(run(ctx, &o, &p, u, 6, 2000), 0.4 * run(ctx, &hold, &p, NULL, 6, 2000));
    free(none);
    free(copy);
    plant_clear(&p);
}

// ---- weights -----------------------------------------------------------------------------------

static void weights_serve_from_the_first_second_and_at_another_latency(void** state)
{
    crd_context* ctx = context_of(state);
    plant_run p = plant_make(PLANT_ENGINE, 6000, 5, 0), q = plant_make(PLANT_ENGINE, 2000, 6, 0);
    crd_coupling_options o = options(CRD_ALGORITHM_COMMANDS, 3),
                         hold = options(CRD_ALGORITHM_LINEAR, 0);
    crd_coupling* c = NULL;
    crd_command_weights w;
    double kept[CRD_COMMAND_WEIGHTS_MAX];
    check_ok(crd_coupling_create(ctx, &o, &c));
    check(!crd_coupling_get_weights(c, &w)); // nothing yet
    for (int n = 0; n < p.count; n++) {
        tell(c, p.u, 3, n);
        if (n >= 3) { crd_coupling_push(c, p.noisy[n - 3], (n - 3) * PLANT_STEP, n - 3); }
        crd_coupling_eval(c, n * PLANT_STEP);
    }
    check(crd_coupling_get_weights(c, &w));
    check_int(w.count, 27);
    memcpy(kept, w.w, 27 * sizeof *kept);
    crd_coupling_destroy(c);
    w.w = kept;
    o.command_weights = &w;
    const double h = run(ctx, &hold, &q, NULL, 8, 20);
    check_below(run(ctx, &o, &q, q.u, 8, 20), 0.4 * h);
    o.command_mixture = false;
    check_below(run(ctx, &o, &q, q.u, 8, 20), 0.4 * h);
    plant_clear(&p);
    plant_clear(&q);
}

static void weights_that_do_not_fit_are_refused(void** state)
{
    crd_context* ctx = context_of(state);
    double w[CRD_COMMAND_WEIGHTS_MAX] = {0};
    crd_coupling* c = NULL;
    crd_coupling_options o = options(CRD_ALGORITHM_COMMANDS, 2);
    crd_command_weights good = {CRD_COMMAND_BASIS, PLANT_STEP, 2, 18, w}, x = good;
    o.command_weights = &x;
    check_ok(crd_coupling_create(ctx, &o, &c));
    crd_coupling_destroy(c);
    x.basis = 1;
    check_status(crd_coupling_create(ctx, &o, &c), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "version of the weights of commands = 1, expected 2");
    x = good;
    x.step = 0.02;
    check_status(crd_coupling_create(ctx, &o, &c), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "0.02 s, expected the element's 0.01 s");
    x = good;
    x.commands = 3;
    check_status(crd_coupling_create(ctx, &o, &c), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "expected 18 for the 2 commands");
    for (int n = 1; n <= CRD_COMMANDS_MAX; n++) { // all of them are used, or the first products
        for (int i = 0; i < CRD_COMMAND_WEIGHTS_MAX; i++) {
            w[i] = 1;
        }
        o.commands = n;
        x = (crd_command_weights){CRD_COMMAND_BASIS, PLANT_STEP, n, crd_command_weights_count(n),
                                  w};
        check_ok(crd_coupling_create(ctx, &o, &c));
        crd_coupling_destroy(c);
    }
    o.commands = 2;
    x = good;
    w[3] = NAN;
    check_status(crd_coupling_create(ctx, &o, &c), CRD_E_RANGE);
    w[3] = 0;
    o.commands = 9;
    check_status(crd_coupling_create(ctx, &o, &c), CRD_E_RANGE);
    o.algorithm = CRD_ALGORITHM_RLS;
    o.commands = 1;
    check_status(crd_coupling_create(ctx, &o, &c), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "auto, commands or smith");
}

// Smith's predictor learns nothing, but says how much of the changes its model accounts for.
static void smith_says_what_its_model_accounts_for(void** state)
{
    crd_context* ctx = context_of(state);
    plant_run p = plant_make(PLANT_ENGINE, 3000, 5, 0.2);
    double* const given[2] = {p.model, p.u[2]}; // of the second nothing follows by itself
    double part[2];
    for (int i = 0; i < 2; i++) {
        const crd_coupling_options o = options(CRD_ALGORITHM_SMITH, 1);
        crd_coupling* c = NULL;
        check_ok(crd_coupling_create(ctx, &o, &c));
        for (int n = 0; n < p.count; n++) {
            tell(c, &given[i], 1, n);
            if (n >= 6) { crd_coupling_push(c, p.noisy[n - 6], (n - 6) * PLANT_STEP, n - 6); }
            crd_coupling_eval(c, n * PLANT_STEP);
        }
        const crd_coupling_commands s = crd_coupling_get_commands(c);
        check_int(s.count, 1);
        check(s.changes[0] > 100);
        check_int(s.updates, 0);
        part[i] = s.part[0];
        crd_coupling_destroy(c);
    }
    check(part[0] > 0.8 && part[0] <= 1);
    check(part[1] < 0.1);
    plant_clear(&p);
}

// ---- links -------------------------------------------------------------------------------------

// Jitter, loss, samples out of order: nothing more is needed.
static void links_that_jitter_and_lose(void** state)
{
    crd_context* ctx = context_of(state);
    plant_run p = plant_make(PLANT_ENGINE, 6000, 5, 0);
    crd_element *with = NULL, *hold = NULL;
    crd_replay a, b;
    crd_replay_options r = crd_replay_defaults();
    r.step = PLANT_STEP;
    r.delay = 6 * PLANT_STEP;
    r.jitter = 3 * PLANT_STEP;
    r.loss = 0.1;
    r.burst = 3;
    r.first = 2000;
    r.commands = (const double* const*)p.u;
    r.command_count = 3;
    check_ok(crd_element_of_name(ctx, "commands", &with));
    check_ok(crd_element_of_name(ctx, "zoh", &hold));
    with->options.commands = 3;
    check_ok(crd_coupling_replay(ctx, with, &r, p.noisy, p.count, NULL, &a));
    check_ok(crd_coupling_replay(ctx, hold, &r, p.noisy, p.count, NULL, &b));
    check_below(crd_score_metrics(&a.score).rms, 0.4 * crd_score_metrics(&b.score).rms);
    check_int(a.weight_count, 27);
    check(a.commands.part[0] + a.commands.part[1] + a.commands.part[2] > 0.8);
    check_int(b.weight_count, 0);
    with->options.commands = 4;
    check_status(crd_coupling_replay(ctx, with, &r, p.noisy, p.count, NULL, &a), CRD_E_RANGE);
    crd_element_destroy(with);
    crd_element_destroy(hold);
    plant_clear(&p);
}

// The partner clamps a command; what acted is told with the sample, late.
static void what_acted_counts(void** state)
{
    crd_context* ctx = context_of(state);
    const int k = 6;
    plant_run p = plant_make(PLANT_ENGINE, 6000, 5, 0);
    const crd_coupling_options o = options(CRD_ALGORITHM_COMMANDS, 3);
    crd_coupling *told = NULL, *corrected = NULL;
    check_ok(crd_coupling_create(ctx, &o, &told));
    check_ok(crd_coupling_create(ctx, &o, &corrected));
    for (int n = 0; n < p.count; n++) {
        double wish[3] = {p.u[0][n], p.u[1][n], p.u[2][n]};
        tell(told, p.u, 3, n);
        if (n >= k) { // the echo puts right what had been wrong all the time
            tell(corrected, p.u, 3, n - k);
            crd_coupling_push(corrected, p.noisy[n - k], (n - k) * PLANT_STEP, n - k);
            crd_coupling_push(told, p.noisy[n - k], (n - k) * PLANT_STEP, n - k);
        }
        wish[0] += n % 500 >= 400 ? 0.3 : 0;
        crd_coupling_command(corrected, wish, n * PLANT_STEP);
        crd_coupling_eval(told, n * PLANT_STEP);
        crd_coupling_eval(corrected, n * PLANT_STEP);
    }
    crd_command_weights v, w;
    check(crd_coupling_get_weights(told, &v) && crd_coupling_get_weights(corrected, &w));
    for (int j = 0; j < v.count; j++) { // learned from the same
        check_near(v.w[j], w.w[j], 1e-9 * (1 + fabs(v.w[j])));
    }
    crd_coupling_destroy(told);
    crd_coupling_destroy(corrected);
    plant_clear(&p);
}

// More commands than there is room for products.
static void products_are_chosen_among_many_commands(void** state)
{
    crd_context* ctx = context_of(state);
    plant_run p = plant_make(PLANT_ENGINE, 6000, 5, 0), q = plant_make(PLANT_MACHINE, 6000, 9, 0);
    double* const u[] = {q.u[0], q.u[1], p.u[0], q.u[2], p.u[1], p.u[2]};
    const crd_coupling_options hold = options(CRD_ALGORITHM_LINEAR, 0),
                               o = options(CRD_ALGORITHM_COMMANDS, 6);
    check_below(run(ctx, &o, &p, u, 6, 2000), 0.45 * run(ctx, &hold, &p, NULL, 6, 2000));
    plant_clear(&p);
    plant_clear(&q);
}

static void the_step_does_not_allocate(void** state)
{
    crd_context* ctx = context_of(state);
    const coupling_test* t = *state;
    plant_run p = plant_make(PLANT_ENGINE, 1000, 5, 0);
    const crd_coupling_options o = options(CRD_ALGORITHM_COMMANDS, 3);
    crd_coupling* c = NULL;
    check_ok(crd_coupling_create(ctx, &o, &c));
    const int64_t before = t->memory.allocations;
    for (int n = 0; n < p.count; n++) {
        tell(c, p.u, 3, n);
        if (n >= 6) { crd_coupling_push(c, p.noisy[n - 6], (n - 6) * PLANT_STEP, n - 6); }
        crd_coupling_eval(c, n * PLANT_STEP);
    }
    check_int(t->memory.allocations, before);
    crd_coupling_destroy(c);
    plant_clear(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        coupling_unit_test(engine_loses_60_per_cent),
        coupling_unit_test(machine_loses_78_per_cent),
        coupling_unit_test(weakened_machine_loses_67_per_cent),
        coupling_unit_test(hydraulic_loses_55_per_cent),
        coupling_unit_test(commands_that_say_nothing_cost_nothing),
        coupling_unit_test(garbage_in_commands_does_no_harm),
        coupling_unit_test(odd_commands_are_told),
        coupling_unit_test(weights_serve_from_the_first_second_and_at_another_latency),
        coupling_unit_test(weights_that_do_not_fit_are_refused),
        coupling_unit_test(smith_says_what_its_model_accounts_for),
        coupling_unit_test(links_that_jitter_and_lose),
        coupling_unit_test(what_acted_counts),
        coupling_unit_test(products_are_chosen_among_many_commands),
        coupling_unit_test(the_step_does_not_allocate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
