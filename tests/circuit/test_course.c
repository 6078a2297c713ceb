// Runs of a circuit to a time: where they end, what they record, and what probes are called.
#include "allocations.h"
#include "cardan/circuit.h"

#include <math.h>

static const char text[] =
    "rc\n.input u source=v1 start=1\nV1 in 0 1\nR1 in out 1k\nC1 out 0 1u ic=0\n"
    ".tran 10u 5m uic\n.end\n";

typedef struct made {
    crd_arena arena;
    crd_netlist* n;
    crd_circuit* c;
    crd_circuit_probes probes;
} made;

static crd_status make(crd_context* ctx, const char* netlist, const char* list, made* m)
{
    crd_circuit_options o = crd_circuit_defaults();
    crd_status st = CRD_OK;
    *m = (made){0};
    crd_arena_init(&m->arena, ctx);
    o.step = 1e-5;
    CRD_TRY(crd_netlist_parse(ctx, netlist, strlen(netlist), "text", NULL, &m->n));
    CRD_TRY(crd_circuit_find_probes(ctx, m->n, &list, list ? 1 : 0, &m->arena, &m->probes));
    CRD_TRY(crd_circuit_create(ctx, m->n, &o, &m->c));
    CRD_TRY(crd_circuit_begin(m->c, 0));
fail:
    return st;
}

static void drop(made* m)
{
    crd_circuit_destroy(m->c);
    crd_netlist_destroy(m->n);
    crd_arena_clear(&m->arena);
}

static void a_run_makes_the_steps_that_one_would_make_by_hand(void** state)
{
    made a, b;
    check_ok(make(*state, text, "v(out), i(R1)", &a));
    check_ok(make(*state, text, "v(out)", &b));
    crd_circuit_record r = {.probes = a.probes.all, .probe_count = a.probes.count};
    // A stop between two steps is not passed.
    check_ok(crd_circuit_run_recorded(a.c, &(crd_circuit_course){.stop = 1.5e-5}, &r));
    check_int(r.rows, 2);
    check_ok(crd_circuit_run_recorded(a.c, &(crd_circuit_course){.stop = 5e-3}, &r));
    check_int(r.rows, 501);
    check_int(r.steps, 500);
    for (int i = 0; i <= 500; i++) {
        const double* row = r.values + 3 * i;
        check(row[0] == crd_circuit_time(b.c));
        check(row[1] == crd_circuit_probe_value(b.c, &b.probes.all[0]));
        check_near(row[1], 1 - exp(-1e3 * row[0]), 1e-4);
        check_near(row[2], 1e-3 * (1 - row[1]), 1e-12);
        if (i < 500) { check_ok(crd_circuit_step(b.c)); }
    }
    crd_free(*state, r.values);
    drop(&a);
    drop(&b);
}

static void runs_in_parts_are_one_run(void** state)
{
    made a, b;
    check_ok(make(*state, text, NULL, &a));
    check_ok(make(*state, text, NULL, &b));
    check_int(a.probes.count, 2); // all nodes
    double inputs[300];
    for (int i = 0; i < 300; i++) {
        inputs[i] = sin(0.1 * i);
    }
    const crd_circuit_record start = {.probes = a.probes.all,
                                      .probe_count = 2,
                                      .from = 1e-3,
                                      .every = 7,
                                      .inputs = inputs,
                                      .input_rows = 300};
    crd_circuit_record whole = start, parts = start;
    parts.probes = b.probes.all;
    check_ok(crd_circuit_run_recorded(a.c, &(crd_circuit_course){.stop = 5e-3}, &whole));
    for (int64_t before = -1; parts.steps != before;) {
        before = parts.steps;
        check_ok(
            crd_circuit_run_recorded(b.c, &(crd_circuit_course){.stop = 5e-3, .most = 13}, &parts));
    }
    check_int(whole.rows, 57); // steps 105, 112, ... 497
    check_int(parts.rows, whole.rows);
    check_near(whole.values[0], 105e-5, 1e-12);
    check(memcmp(whole.values, parts.values, (size_t)whole.rows * 3 * sizeof(double)) == 0);
    check_near(whole.values[1], inputs[104], 1e-12); // the source at the end of that step
    check_near(whole.values[3 * 56 + 1], inputs[299], 1e-12);
    crd_free(*state, whole.values);
    crd_free(*state, parts.values);
    drop(&a);
    drop(&b);
}

typedef struct count {
    int before, after;
    double last;
    bool ended;
} count;

static crd_status see_before(void* user, double t)
{
    count* x = user;
    x->before++;
    x->last = t;
    return CRD_OK;
}

static crd_status see_after(void* user, crd_circuit* c)
{
    count* x = user;
    check_near(crd_circuit_time(c), x->last, 1e-15);
    x->ended = ++x->after == 20;
    return x->after == 30 ? CRD_E_IO : CRD_OK;
}

static void who_watches_can_end_a_run(void** state)
{
    made m;
    count x = {0};
    check_ok(make(*state, text, NULL, &m));
    const crd_circuit_course course = {
        .stop = 5e-3, .before = see_before, .after = see_after, .user = &x, .ended = &x.ended};
    check_ok(crd_circuit_run(m.c, &course));
    check_int(x.after, 20);
    check_status(crd_circuit_run(m.c, &course), CRD_E_IO);
    check_int(x.after, 30);
    check_int(x.before, 30);
    drop(&m);
}

static void steps_that_vary_end_at_the_stop(void** state)
{
    made m;
    const crd_circuit_control control = crd_circuit_control_defaults();
    check_ok(make(*state, text, "v(out)", &m));
    crd_circuit_record r = {.probes = m.probes.all, .probe_count = 1};
    check_ok(crd_circuit_run_recorded(m.c, &(crd_circuit_course){.stop = 5e-3, .control = &control},
                                      &r));
    check(r.rows == r.steps + 1 && r.steps > 10 && r.steps < 500);
    check(r.values[2 * (r.rows - 1)] == 5e-3);
    check_near(r.values[2 * r.rows - 1], 1 - exp(-5), 1e-3);
    crd_free(*state, r.values);
    drop(&m);
}

static void probes_are_found_by_name_and_by_pattern(void** state)
{
    static const struct {
        const char *list, *first;
        int count;
    } good[] = {{"v(*)", "v(in)", 2},          {"V(OUT)", "V(OUT)", 1},
                {"v(in,out)", "v(in,out)", 1}, {"i(r?), i(C1)", "i(r1)", 2},
                {"v(0)", "v(0)", 1},           {"v(out), v(out), v(o*)", "v(out)", 1}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        made m;
        check_ok(make(*state, text, good[i].list, &m));
        check_int(m.probes.count, good[i].count);
        assert_string_equal(m.probes.all[0].name, good[i].first);
        drop(&m);
    }
    static const struct {
        const char *list, *says;
    } bad[] = {{"v(otu)", "signals 'v(otu)': no node fits 'otu', did you mean 'out'?"},
               {"y", "signals 'y': no .output fits 'y'; v(node) and i(part) are signals, too"},
               {" , ", "expected a list"},
               {"x(out)", "expected v(node)"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        made m;
        check(make(*state, text, bad[i].list, &m) < 0);
        if (!strstr(crd_error_text(*state), bad[i].says)) {
            fail_msg("%s, expected %s", crd_error_text(*state), bad[i].says);
        }
        drop(&m);
    }
}

static crd_status attempt(crd_context* ctx, const void* user)
{
    made m;
    crd_circuit_record r = {0};
    crd_status st = make(ctx, user, "v(*), i(*)", &m);
    if (st >= 0) {
        r.probes = m.probes.all;
        r.probe_count = m.probes.count;
        st = crd_circuit_run_recorded(m.c, &(crd_circuit_course){.stop = 1e-3}, &r);
    }
    crd_free(ctx, r.values);
    drop(&m);
    return st;
}

static void every_allocation_may_fail(void** state)
{
    (void)state;
    check_allocations(attempt, text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_makes_the_steps_that_one_would_make_by_hand),
        cmocka_unit_test(runs_in_parts_are_one_run),
        cmocka_unit_test(who_watches_can_end_a_run),
        cmocka_unit_test(steps_that_vary_end_at_the_stop),
        cmocka_unit_test(probes_are_found_by_name_and_by_pattern),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, check_count_up, check_count_down);
}
