// The choice of method and step, against the independent references of the benchmarks of
// Rodriguez 2021.
#include "circuit/build.h"

static crd_netlist* load(crd_context* ctx, const char* file)
{
    char path[512];
    crd_netlist* n = NULL;
    const crd_netlist_options o = {.max_parts = 10000};
    snprintf(path, sizeof path, "%s/circuit/data/%s", TEST_SOURCE_DIR, file);
    if (crd_netlist_load(ctx, path, &o, &n) < 0) { fail_msg("%s", crd_error_text(ctx)); }
    return n;
}

static crd_netlist* parse(crd_context* ctx, const char* text)
{
    crd_netlist* n = NULL;
    const crd_netlist_options o = {.max_parts = 1000};
    if (crd_netlist_parse(ctx, text, strlen(text), "text", &o, &n) < 0) {
        fail_msg("%s", crd_error_text(ctx));
    }
    return n;
}

typedef struct task {
    const char *file, *reference;
    int y, z; // columns of the first two outputs
    double grid, stop;
} task;

static const task rlc = {"rlc.cir", "rlc_reference.csv", 1, 2, 0.01, 10};
static const task scalable = {"scrlc.cir", "scrlc_N2_reference.csv", 1, 2, 0.01, 1};
static const task rectifier = {"rectifier.cir", "rectifier_reference.csv", 1, 2, 1e-3, 1};

static crd_circuit_choice choose(crd_context* ctx, const crd_netlist* n, double grid, double stop,
                                 double accuracy)
{
    crd_circuit_options o = crd_circuit_defaults();
    o.step = grid;
    crd_circuit_choice choice = {0};
    if (crd_circuit_choose(ctx, n, &o, accuracy, stop, &choice) < 0) {
        fail_msg("%s", crd_error_text(ctx));
    }
    return choice;
}

static double root_mean(double sum, int count, const double* y)
{
    double low = y[0], high = y[0];
    for (int i = 1; i < count; i++) {
        low = fmin(low, y[i]);
        high = fmax(high, y[i]);
    }
    return sqrt(sum / count) / (high - low);
}

// The worse of the errors of the first two outputs, over their ranges.
static double true_error(crd_context* ctx, const crd_netlist* n, const task* k,
                         const crd_circuit_choice* choice)
{
    static reference r;
    reference_load(&r, k->reference, k->y, k->z);
    crd_circuit_options o = crd_circuit_defaults();
    o.method = choice->method;
    o.step = choice->step;
    crd_circuit* c = NULL;
    check_ok(crd_circuit_create(ctx, n, &o, &c));
    check_ok(crd_circuit_begin(c, 0));
    double y = 0, z = 0;
    long done = 0;
    for (int i = 0; i < r.count; i++) {
        for (const long to = lround(r.t[i] / o.step); done < to; done++) {
            check_ok(crd_circuit_step(c));
        }
        y += pow(crd_circuit_get_output(c, 0) - r.y[i], 2);
        z += pow(crd_circuit_get_output(c, 1) - r.z[i], 2);
    }
    crd_circuit_destroy(c);
    return fmax(root_mean(y, r.count, r.y), root_mean(z, r.count, r.z));
}

static void check_choice(crd_context* ctx, const task* k, double accuracy)
{
    crd_netlist* n = load(ctx, k->file);
    const crd_circuit_choice choice = choose(ctx, n, k->grid, k->stop, accuracy);
    const double is = true_error(ctx, n, k, &choice);
    if (!(choice.error <= accuracy && is <= 1.1 * accuracy && is < 2 * choice.error &&
          choice.error < 2 * is)) {
        fail_msg("%s, accuracy %g: method %d, step %g: estimated %g, true %g", k->file, accuracy,
                 (int)choice.method, choice.step, choice.error, is);
    }
    check_near((double)choice.steps * choice.step, k->stop, 1e-9 * k->stop);
    crd_netlist_destroy(n);
}

static void the_choice_is_as_accurate_as_it_says(void** state)
{
    for (double accuracy = 1e-2; accuracy > 0.5e-5; accuracy /= 10) {
        check_choice(*state, &scalable, accuracy);
    }
    check_choice(*state, &rlc, 1e-3);
    check_choice(*state, &rlc, 1e-5);
    check_choice(*state, &rectifier, 1e-2);
    check_choice(*state, &rectifier, 1e-4);
}

static void more_accuracy_takes_more_steps_and_higher_order(void** state)
{
    crd_netlist* n = load(*state, "scrlc.cir");
    int64_t steps = 0;
    for (double accuracy = 1e-2; accuracy > 0.5e-6; accuracy /= 10) {
        const crd_circuit_choice c = choose(*state, n, 0.01, 1, accuracy);
        check(c.steps >= steps);
        check(c.method != CRD_METHOD_BDF1);
        steps = c.steps;
        if (accuracy < 1e-4) { check_int(c.method, CRD_METHOD_BDF3); }
    }
    crd_netlist_destroy(n);
}

static void without_outputs_every_node_counts(void** state)
{
    crd_netlist* n = parse(*state, "nodes\nV1 in 0 SIN(0 1 50)\nR1 in a 1k\nC1 a 0 1u ic=0\n"
                                   "R2 a b 10\nC2 b 0 1u ic=0\n.end\n");
    const crd_circuit_choice c = choose(*state, n, 1e-3, 0.1, 1e-4);
    check(c.worst == crd_netlist_node(n, "a") || c.worst == crd_netlist_node(n, "b"));
    check(c.error <= 1e-4 && c.error > 0);
    crd_netlist_destroy(n);
}

static void switching_circuits_have_a_choice_too(void** state)
{
    crd_netlist* n = parse(*state, "chopper\nV1 in 0 10\nVg g 0 PULSE(0 1 0.03m 1u 1u 0.5m 1m)\n"
                                   "S1 in a g 0 sw\nR1 a out 100\nC1 out 0 10u ic=0\n"
                                   "R2 out 0 1k\n.output v(out)\n"
                                   ".model sw sw(vt=0.5 ron=1 roff=1meg)\n.end\n");
    const crd_circuit_choice c = choose(*state, n, 1e-4, 1e-2, 1e-3);
    check(c.error <= 1e-3 && c.step < 1e-4); // a step is late by up to its size
    crd_netlist_destroy(n);
}

static void a_constant_output_does_not_decide(void** state)
{
    crd_netlist* n = parse(*state, "constant\nV1 a 0 5\nR1 a b 1k\nC1 b 0 1u ic=0\n"
                                   ".output v(a) v(0) v(b)\n.tran 1u 1 uic\n.end\n");
    const crd_circuit_choice c = choose(*state, n, 1e-4, 5e-3, 1e-4);
    check_int(c.worst, 2);
    crd_netlist_destroy(n);
}

static void what_cannot_be_is_said(void** state)
{
    crd_netlist* n = load(*state, "scrlc.cir");
    crd_circuit_options o = crd_circuit_defaults();
    crd_circuit_choice c;
    check_status(crd_circuit_choose(*state, n, &o, 1e-3, 1, &c), CRD_E_RANGE); // no step
    o.step = 0.01;
    const double bad[][2] = {
        {0, 1},       {1e-12, 1},          {2, 1},      {(double)NAN, 1}, {1e-3, 0},
        {1e-3, 1e-4}, {1e-3, (double)NAN}, {1e-3, 1e99}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        check_status(crd_circuit_choose(*state, n, &o, bad[i][0], bad[i][1], &c), CRD_E_RANGE);
        check_contains(crd_error_text(*state), "circuit: ");
    }
    crd_netlist_destroy(n);
}

static void every_allocation_may_fail(void** state)
{
    for (int64_t at = 0;; at++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        crd_netlist* n = parse(ctx, "rc\nV1 a 0 1\nR1 a b 1k\nC1 b 0 1m ic=0\n.end\n");
        crd_circuit_options o = crd_circuit_defaults();
        o.step = 0.1;
        crd_circuit_choice c;
        a.fail_at = a.allocations + at;
        a.once = at % 2 == 1;
        const crd_status st = crd_circuit_choose(ctx, n, &o, 0.1, 1, &c);
        a.fail_at = -1;
        crd_netlist_destroy(n);
        crd_context_destroy(ctx);
        check_int(a.live, 0);
        if (st == CRD_OK) { break; }
        check_status(st, CRD_E_MEMORY);
        check(at < 3000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_choice_is_as_accurate_as_it_says),
        cmocka_unit_test(more_accuracy_takes_more_steps_and_higher_order),
        cmocka_unit_test(without_outputs_every_node_counts),
        cmocka_unit_test(switching_circuits_have_a_choice_too),
        cmocka_unit_test(a_constant_output_does_not_decide),
        cmocka_unit_test(what_cannot_be_is_said),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, check_set_up, check_tear_down);
}
