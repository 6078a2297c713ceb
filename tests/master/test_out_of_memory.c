// Every allocation fails in turn, in systems with all that a master can be asked for: nothing
// crashes, nothing is lost.
#include "models.h"
#include "shared/base.h"

// Two integrators, extrapolated, and behind them an algebraic loop of two gains. NULL: no memory.
static crd_system* build(crd_context* ctx, const char* scheme)
{
    static const struct {
        const char* name;
        const crd_model* model;
    } units[] = {
        {"p", &gain_model}, {"q", &plain_gain_model}, {"a", &exact_model}, {"b", &euler_model}};
    static const struct {
        int from, to;
        crd_prediction order;
    } wires[] = {{0, 1, CRD_PREDICTION_HOLD},
                 {1, 0, CRD_PREDICTION_HOLD},
                 {3, 2, CRD_PREDICTION_QUADRATIC},
                 {2, 3, CRD_PREDICTION_LINEAR}};
    static const char* const patterns[] = {"*.y", "a.x"};
    crd_system* s = NULL;
    if (crd_system_create(ctx, &s) < 0) { return NULL; }
    s->run.step = 0.1;
    s->run.stop = 0.5;
    s->run.threads = 2;
    s->results.path = TEST_BUILD_DIR "/test_out_of_memory.csv";
    crd_status st = CRD_OK;
    for (int i = 0; i < 4 && st == CRD_OK; i++) {
        crd_unit_spec u = crd_unit_spec_defaults();
        u.name = units[i].name;
        u.source = CRD_UNIT_NATIVE;
        u.model = units[i].model;
        st = crd_system_add_unit(s, &u, NULL);
    }
    for (int i = 0; i < 4 && st == CRD_OK; i++) {
        crd_connection_spec c = crd_connection_spec_defaults();
        c.from_unit = wires[i].from;
        c.to_unit = wires[i].to;
        c.from = "y";
        c.to = "u";
        c.predict = wires[i].order;
        st = crd_system_add_connection(s, &c);
    }
    if (st == CRD_OK) { st = crd_system_set_scheme(s, scheme, (crd_place){"", 0}); }
    if (st == CRD_OK) { st = crd_system_set(s, 0, "a", "0.5", (crd_place){"", 0}); }
    if (st == CRD_OK) { st = crd_system_set(s, 0, "b", "1", (crd_place){"", 0}); }
    if (st < 0) {
        check_status(st, CRD_E_MEMORY);
        crd_system_destroy(s);
        return NULL;
    }
    s->results.patterns = patterns;
    s->results.pattern_count = 2;
    return s;
}

static void check_survived_with(const char* scheme, bool once)
{
    for (int64_t fail_at = 0;; fail_at++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        check(ctx != NULL);
        a.once = once;
        a.fail_at = a.allocations + fail_at;
        crd_master* m = NULL;
        crd_system* s = build(ctx, scheme);
        crd_status st = s ? crd_master_create(ctx, s, NULL, &m) : CRD_E_MEMORY;
        if (st == CRD_OK) { st = crd_master_run(m); }
        if (st == CRD_OK) {
            check(a.fail_at >= 0);                // otherwise a failure was overlooked
            a.fail_at = -1;                       // looking up a name takes memory too
            check_near(value(m, "p.y"), 2, 1e-9); // p = 0.5 q + 1, q = p
            check_int(crd_master_get_report(m)->loop_count, 1);
        } else if (st != CRD_E_MEMORY) {
            fail_msg("allocation %d: %s", (int)fail_at, crd_error_text(ctx));
        }
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

static void check_survived(const char* scheme)
{
    check_survived_with(scheme, false);
    check_survived_with(scheme, true);
}

static void every_allocation_may_fail_under_jacobi(void** state)
{
    (void)state;
    check_survived("jacobi");
}

static void every_allocation_may_fail_when_the_order_comes_from_the_graph(void** state)
{
    (void)state;
    check_survived("gauss-seidel");
}

static void every_allocation_may_fail_in_nested_groups(void** state)
{
    (void)state;
    check_survived("gauss-seidel: [p, {jacobi: [a, b]}, q]");
}

// Maps, stages, a unit with a step of its own, a file with rasters and attachments.
static crd_system* build_interchange(crd_context* ctx)
{
    static const crd_map_entry map[] = {{"0", "3"}, {"2", "4"}};
    static const crd_transformation via[] = {
        {.unit = "", .gain = 2, .offset = 0, .has_transformation = true}, {.unit = "kg"}};
    crd_system* s = NULL;
    if (crd_system_create(ctx, &s) < 0) { return NULL; }
    s->run.step = 0.1;
    s->run.stop = 0.5;
    s->results.path = TEST_BUILD_DIR "/test_out_of_memory.mf4";
    crd_status st = CRD_OK;
    static const char* const names[] = {"c", "e", "slow"};
    const crd_model* const models[] = {&clock_model, &euler_model, &euler_model};
    for (int i = 0; i < 3 && st == CRD_OK; i++) {
        crd_unit_spec u = crd_unit_spec_defaults();
        u.name = names[i];
        u.source = CRD_UNIT_NATIVE;
        u.model = models[i];
        u.step = i == 2 ? 0.2 : 0;
        st = crd_system_add_unit(s, &u, NULL);
    }
    for (int i = 0; i < 2 && st == CRD_OK; i++) {
        crd_connection_spec c = crd_connection_spec_defaults();
        c.to_unit = i + 1;
        c.from = i ? "y" : "what";
        c.to = "u";
        if (i) {
            c.via = via;
            c.via_count = 2;
        } else {
            c.map = map;
            c.map_count = 2;
        }
        st = crd_system_add_connection(s, &c);
    }
    if (st == CRD_OK) { st = crd_system_set(s, 1, "a", "0.5", (crd_place){"", 0}); }
    if (st < 0) {
        check_status(st, CRD_E_MEMORY);
        crd_system_destroy(s);
        return NULL;
    }
    return s;
}

static void every_allocation_may_fail_with_maps_rasters_and_attachments(void** state)
{
    (void)state;
    for (int64_t fail_at = 0;; fail_at++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        check(ctx != NULL);
        a.fail_at = a.allocations + fail_at;
        crd_master* m = NULL;
        crd_system* s = build_interchange(ctx);
        crd_master_options opt = crd_master_defaults();
        opt.guard_crashes = true;
        crd_text t;
        crd_text_init(&t, ctx);
        crd_status st = s ? crd_master_create(ctx, s, &opt, &m) : CRD_E_MEMORY;
        if (st == CRD_OK) { st = crd_master_describe_run(m, &t); }
        if (st == CRD_OK) { st = crd_master_run(m); }
        if (st == CRD_OK) { st = crd_master_describe_verdict(m, &t); }
        if (st < 0 && st != CRD_E_MEMORY) {
            fail_msg("allocation %d: %s", (int)fail_at, crd_error_text(ctx));
        }
        const bool done = st == CRD_OK && a.allocations < a.fail_at;
        crd_text_clear(&t);
        crd_master_destroy(m);
        crd_system_destroy(s);
        crd_context_destroy(ctx);
        check_int(a.live, 0);
        if (done) {
            check(fail_at > 60); // otherwise nothing was tried
            return;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail_under_jacobi),
        cmocka_unit_test(every_allocation_may_fail_when_the_order_comes_from_the_graph),
        cmocka_unit_test(every_allocation_may_fail_in_nested_groups),
        cmocka_unit_test(every_allocation_may_fail_with_maps_rasters_and_attachments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
