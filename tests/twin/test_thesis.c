// The published filter (Rodriguez 2021, ch. 4) against an independent program with the same noise.
#include "cardan/twin.h"
#include "check.h"
#include "noise.h"
#include "shared/base.h"

#include <stdio.h>

enum { ROWS = 5000 };

typedef struct fixture {
    crd_context* ctx;
    crd_netlist* n;
    crd_arena arena;
    double all[3 * ROWS], two[2 * ROWS];
    int32_t parts[5];
    crd_twin_parameter resistors[3], capacitors[2];
} fixture;

static const char rc[] = "rc\n.thermal\nheat q0 1 10\nresistance r1 1 2 1\nresistance r2 2 3 2\n"
                         "resistance r3 3 0 3\ncapacity c1 2 0.1 start=-1\n"
                         "capacity c2 3 0.2 start=1\n.endthermal\n"
                         ".output T1=t(1) T2=t(2) T3=t(3)\n.tran 1m 5 uic\n.end\n";
static const crd_twin_sensor sensors[] = {
    {"s1", "t(1)", "K", 0.5}, {"s2", "t(2)", "K", 0.5}, {"s3", "t(3)", "K", 0.5}};

static int setup(void** state)
{
    fixture* f = calloc(1, sizeof *f);
    static const char* const names[] = {"r1", "r2", "r3", "c1", "c2"};
    f->ctx = crd_context_create(NULL);
    crd_arena_init(&f->arena, f->ctx);
    if (crd_netlist_parse(f->ctx, rc, strlen(rc), "rc.cir", NULL, &f->n) < 0) { return -1; }
    crd_circuit_options o = crd_circuit_defaults();
    o.method = CRD_METHOD_GAUSS4;
    o.step = 1e-3;
    crd_circuit* c = NULL;
    if (crd_circuit_create(f->ctx, f->n, &o, &c) < 0 || crd_circuit_begin(c, 0) < 0) { return -1; }
    noise seeded = {.state = 20210001};
    for (int i = 0; i < ROWS; i++) {
        crd_circuit_step(c);
        for (int j = 0; j < 3; j++) {
            f->all[3 * i + j] = crd_circuit_get_output(c, j) + 0.5 * noise_next(&seeded);
        }
        memcpy(f->two + 2 * i, f->all + 3 * i + 1, 2 * sizeof(double));
    }
    crd_circuit_destroy(c);
    for (int i = 0; i < 5; i++) {
        f->parts[i] = crd_netlist_part(f->n, names[i]);
        const crd_twin_parameter p = {
            .group = {.name = names[i], .parts = &f->parts[i], .count = 1},
            .start = i == 3 ? 1 : 10,
            .sd = sqrt(10)};
        *(i < 3 ? &f->resistors[i] : &f->capacitors[i - 3]) = p;
    }
    *state = f;
    return 0;
}

static int teardown(void** state)
{
    fixture* f = *state;
    crd_arena_clear(&f->arena);
    crd_netlist_destroy(f->n);
    crd_context_destroy(f->ctx);
    free(f);
    return 0;
}

static crd_twin_spec spec_of(const fixture* f, bool capacitors, double q)
{
    crd_twin_spec s = crd_twin_defaults();
    s.filter = CRD_TWIN_THESIS;
    s.sensors = capacitors ? sensors + 1 : sensors;
    s.sensor_count = capacitors ? 2 : 3;
    s.parameters = capacitors ? f->capacitors : f->resistors;
    s.parameter_count = capacitors ? 2 : 3;
    s.step = 1e-3;
    s.state_sd = 0.1;
    s.thesis_q = q;
    return s;
}

static crd_tune_result tune(fixture* f, const crd_twin_spec* s, const double* y, int passes)
{
    const crd_twin_data data = {
        .rows = ROWS, .measurements = y, .from = (double)NAN, .to = (double)NAN};
    crd_tune_options o = crd_tune_defaults();
    o.how = CRD_TUNE_PASSES;
    o.max_iterations = passes;
    crd_tune_result r;
    if (crd_twin_tune(f->ctx, f->n, s, &data, &o, &f->arena, &r) < 0) {
        fail_msg("%s", crd_error_text(f->ctx));
    }
    return r;
}

static void resistors_go_where_the_independent_filter_takes_them(void** state)
{
    // 2e-5 after one pass, 5e-6 after five: they agree to 7e-6 and 2e-6; where the two programs
    // part in the sixth digit is not known (the sources are constant here)
    fixture* f = *state;
    const crd_twin_spec s = spec_of(f, false, 100);
    crd_tune_result r = tune(f, &s, f->all, 1);
    check_near(r.value[0], 0.9980492828220966, 2e-5);
    check_near(r.value[1], 1.998954428688726, 2e-5);
    check_near(r.value[2], 2.999030853256743, 2e-5);
    r = tune(f, &s, f->all, 5);
    check_near(r.value[0], 0.9993995444643057, 5e-6);
    check_near(r.value[1], 2.00120631646245, 5e-6);
    check_near(r.value[2], 2.9989275772443587, 5e-6);
}

static void capacitors_converge_in_eleven_passes_as_published(void** state)
{
    fixture* f = *state;
    const crd_twin_spec s = spec_of(f, true, 1e3);
    const crd_tune_result r = tune(f, &s, f->two, 60);
    check(r.converged);
    check(r.iterations >= 11 && r.iterations <= 12);
    check_near(r.value[0], 0.09958519041679914, 1e-7);
    check_near(r.value[1], 0.20048951844391816, 2e-7);
}

static void a_filter_without_noise_is_an_error_and_not_nonsense(void** state)
{
    fixture* f = *state;
    const crd_twin_spec s = spec_of(f, false, 0);
    crd_twin* w = NULL;
    check_ok(crd_twin_create(f->ctx, f->n, &s, &w));
    check_ok(crd_twin_begin(w, 0));
    crd_status st = CRD_OK;
    for (int i = 0; i < ROWS && st == CRD_OK; i++) {
        st = crd_twin_step(w, f->all + 3 * i);
    }
    check_status(st, CRD_E_CONVERGENCE);
    check_contains(crd_error_text(f->ctx), "t = ");
    crd_twin_destroy(w);
}

static void it_is_saved_and_restored_too(void** state)
{
    fixture* f = *state;
    const crd_twin_spec s = spec_of(f, false, 100);
    crd_twin* w = NULL;
    check_ok(crd_twin_create(f->ctx, f->n, &s, &w));
    check_ok(crd_twin_begin(w, 0));
    void* kept = malloc(crd_twin_state_size(w));
    crd_estimate first = {0, 0};
    for (int i = 0; i < 200; i++) {
        if (i == 100) { crd_twin_save(w, kept); }
        check_ok(crd_twin_step(w, f->all + 3 * i));
    }
    first = crd_twin_parameter_now(w, 1);
    crd_twin_restore(w, kept);
    for (int i = 100; i < 200; i++) {
        check_ok(crd_twin_step(w, f->all + 3 * i));
    }
    check_near(crd_twin_parameter_now(w, 1).value, first.value, 0);
    check_near(crd_twin_parameter_now(w, 1).sd, first.sd, 0);
    free(kept);
    crd_twin_destroy(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resistors_go_where_the_independent_filter_takes_them),
        cmocka_unit_test(capacitors_converge_in_eleven_passes_as_published),
        cmocka_unit_test(a_filter_without_noise_is_an_error_and_not_nonsense),
        cmocka_unit_test(it_is_saved_and_restored_too),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
