// What must hold for every run: no allocation in a step, the same bits whatever the threads,
// nothing lost when memory runs out.
#include "models.h"

#include <stdio.h>

enum { N = 12 };
static char names[N][16];

// A ring of integrators with cross connections, some extrapolated, in two rates.
static crd_system* net(crd_context* ctx, bool multirate)
{
    crd_system* s = NULL;
    if (crd_system_create(ctx, &s) < 0) { return NULL; }
    s->run.start = 0;
    s->run.stop = 1e6;
    s->run.step = 0.01;
    for (int i = 0; i < N; i++) {
        snprintf(names[i], sizeof names[i], "n%d", i);
        crd_unit_spec u = crd_unit_spec_defaults();
        u.name = names[i];
        u.source = CRD_UNIT_NATIVE;
        u.model = i % 3 ? &euler_model : &exact_model;
        u.step = multirate && i % 2 ? 0.05 : 0;
        if (crd_system_add_unit(s, &u, NULL) < 0 ||
            crd_system_set(s, i, "x", i % 2 ? "1" : "-0.5", (crd_place){"", 0}) < 0) {
            crd_system_destroy(s);
            return NULL;
        }
    }
    for (int i = 0; i < N; i++) {
        crd_connection_spec c = crd_connection_spec_defaults();
        c.from_unit = i;
        c.from = "y";
        c.to_unit = (i + 1) % N;
        c.to = "u";
        c.gain = i % 2 ? 1 : -1;
        c.has_transformation = true;
        c.predict = (crd_prediction)(CRD_PREDICTION_HOLD + i % 3);
        if (crd_system_add_connection(s, &c) < 0) {
            crd_system_destroy(s);
            return NULL;
        }
    }
    return s;
}

static void ten_thousand_steps_allocate_nothing(void** state)
{
    (void)state;
    for (int multirate = 0; multirate < 2; multirate++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        crd_system* s = net(ctx, multirate);
        s->results.path = TEST_BUILD_DIR "/test_properties.csv";
        crd_master_options opt = crd_master_defaults();
        opt.guard_crashes = true;
        crd_master* m = NULL;
        check_run(crd_master_create(ctx, s, &opt, &m), ctx);
        check_run(crd_master_initialize(m), ctx);
        const int64_t before = a.allocations;
        for (int i = 0; i < 10000; i++) {
            check_run(crd_master_advance(m, 1), ctx);
        }
        check_int(a.allocations, before);
        check_run(crd_master_finish(m), ctx);
        check_int(crd_master_get_report(m)->rows, 10001);
        crd_master_destroy(m);
        crd_system_destroy(s);
        crd_context_destroy(ctx);
        check_int(a.live, 0);
    }
}

static void run_with_threads(int threads, bool multirate, const char* scheme, double* out)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_system* s = net(ctx, multirate);
    s->run.stop = 20;
    s->run.threads = threads;
    check_ok(crd_system_set_scheme(s, scheme, (crd_place){"", 0}));
    crd_master* m = NULL;
    check_run(crd_master_create(ctx, s, NULL, &m), ctx);
    check_run(crd_master_run(m), ctx);
    for (int i = 0; i < N; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d.y", i);
        out[i] = value(m, name);
    }
    if (threads) { check_int(crd_master_get_report(m)->threads, threads); }
    crd_master_destroy(m);
    crd_system_destroy(s);
    crd_context_destroy(ctx);
}

static void the_bits_are_the_same_with_any_number_of_threads(void** state)
{
    (void)state;
    for (int multirate = 0; multirate < 2; multirate++) {
        double one[N], two[N], three[N], measured[N];
        run_with_threads(1, multirate, "jacobi", one);
        run_with_threads(2, multirate, "jacobi", two);
        run_with_threads(3, multirate, "jacobi", three);
        run_with_threads(0, multirate, "jacobi", measured);
        check(memcmp(one, two, sizeof one) == 0);
        check(memcmp(one, three, sizeof one) == 0);
        check(memcmp(one, measured, sizeof one) == 0);
        for (int i = 0; i < N; i++) {
            check(isfinite(one[i]));
        }
    }
}

static void two_runs_give_the_same_bits(void** state)
{
    (void)state;
    double one[N], two[N];
    run_with_threads(1, true, "jacobi", one);
    run_with_threads(1, true, "jacobi", two);
    check(memcmp(one, two, sizeof one) == 0);
}

static void every_allocation_may_fail(void** state)
{
    (void)state;
    for (int64_t fail_at = 0;; fail_at++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        check(ctx != NULL);
        a.fail_at = a.allocations + fail_at;
        crd_master* m = NULL;
        crd_system* s = net(ctx, true);
        crd_status st = s ? CRD_OK : CRD_E_MEMORY;
        if (s) {
            s->run.stop = 1;
            s->run.threads = 1;
            s->results.path = TEST_BUILD_DIR "/test_failing.csv";
            st = crd_master_create(ctx, s, NULL, &m);
            if (st == CRD_OK) { st = crd_master_run(m); }
        }
        if (st != CRD_OK) { check_status(st, CRD_E_MEMORY); }
        crd_master_destroy(m);
        crd_system_destroy(s);
        crd_context_destroy(ctx);
        check_int(a.live, 0);
        if (st == CRD_OK) {
            check(fail_at > 30); // otherwise nothing was tried
            return;
        }
    }
}

static void the_report_counts_every_step(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_system* s = net(ctx, true);
    s->run.stop = 10;
    crd_master* m = NULL;
    check_run(crd_master_create(ctx, s, NULL, &m), ctx);
    check_run(crd_master_run(m), ctx);
    const crd_master_report* r = crd_master_get_report(m);
    check_int(r->unit_count, N);
    check_int(r->steps, 1000);
    for (int i = 0; i < N; i++) {
        check_int(r->units[i].steps, i % 2 ? 200 : 1000);
        check(r->units[i].measured > 0 && r->units[i].time_step >= 0);
    }
    crd_master_destroy(m);
    crd_system_destroy(s);
    crd_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_thousand_steps_allocate_nothing),
        cmocka_unit_test(the_bits_are_the_same_with_any_number_of_threads),
        cmocka_unit_test(two_runs_give_the_same_bits),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(the_report_counts_every_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
