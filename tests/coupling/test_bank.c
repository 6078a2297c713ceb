#include "coupling_test.h"

enum { SIGNALS = 600 }; // more than the block that is summed at once

// The same bad link for a bank and for as many elements: equal bits at any time.
static void check_equal(void** state, const crd_coupling_options* o, uint32_t seed)
{
    crd_context* ctx = context_of(state);
    static crd_coupling* single[SIGNALS];
    static double values[SIGNALS], out[SIGNALS];
    crd_coupling_bank* bank = NULL;
    check_ok(crd_coupling_bank_create(ctx, o, SIGNALS, &bank));
    for (int s = 0; s < SIGNALS; s++) {
        check_ok(crd_coupling_create(ctx, o, &single[s]));
    }
    for (int step = 0; step < 150; step++) {
        const double ratio = step == 60 ? 1.7 : step == 75 ? 0.3 : 1; // another macro step
        if (ratio != 1) {
            check(crd_coupling_bank_set_step(bank, o->step * ratio));
            for (int s = 0; s < SIGNALS; s++) {
                check(crd_coupling_set_step(single[s], o->step * ratio));
            }
        }
        // reordered, lost, twice, once far ahead
        const int64_t n = step == 100 ? 5000 : step + (int64_t)(6 * next_uniform(&seed)) - 3;
        const double stamp = next_uniform(&seed) < 0.1 ? NAN : (double)n * o->step;
        for (int s = 0; s < SIGNALS; s++) {
            values[s] = sin(0.03 * s + 0.2 * (double)n) * (1 + s);
            if (step > 0 && next_uniform(&seed) < 0.01) { values[s] = NAN; }
            crd_coupling_push(single[s], values[s], stamp, n < 0 ? 0 : n);
        }
        crd_coupling_bank_push(bank, values, stamp, n < 0 ? 0 : n);
        for (int i = 0; i < 4; i++) {
            const double t = o->step * (step - 2 + 9 * next_uniform(&seed));
            crd_coupling_bank_eval(bank, t, out);
            for (int s = 0; s < SIGNALS; s++) {
                const double want = crd_coupling_eval(single[s], t);
                if (memcmp(&out[s], &want, sizeof want) != 0) { check_near(out[s], want, 0); }
            }
        }
    }
    crd_coupling_counts sum = {0};
    for (int s = 0; s < SIGNALS; s++) {
        const crd_coupling_counts c = crd_coupling_get_counts(single[s]);
        sum.filled += c.filled;
        sum.late += c.late;
        sum.not_finite += c.not_finite;
        sum.duplicates += c.duplicates;
        sum.rewound += c.rewound;
        sum.beyond += c.beyond;
        sum.overflows += c.overflows;
        crd_coupling_destroy(single[s]);
    }
    const crd_coupling_counts c = crd_coupling_bank_get_counts(bank);
    check_int(c.filled, sum.filled);
    check_int(c.late, sum.late);
    check_int(c.not_finite, sum.not_finite);
    check_int(c.duplicates, sum.duplicates);
    check_int(c.rewound, sum.rewound);
    // A sample that is new for one signal makes a bank predict all of them again.
    check(c.beyond >= sum.beyond && (double)c.beyond <= 1.02 * (double)sum.beyond);
    check(c.overflows >= sum.overflows && (double)c.overflows <= 1.02 * (double)sum.overflows);
    check(c.filled > 0 && c.late > 0 && c.not_finite > 0 && c.duplicates > 0);
    crd_coupling_bank_destroy(bank);
}

static void a_bank_equals_as_many_elements_bit_for_bit(void** state)
{
    const crd_method methods[] = {CRD_METHOD_ZOH, CRD_METHOD_FOH, CRD_METHOD_EROS,
                                  CRD_METHOD_WIENER};
    for (int i = 0; i < 4; i++) {
        for (int reconstruction = 0; reconstruction <= CRD_RECONSTRUCT_OWN; reconstruction++) {
            crd_coupling_options o = crd_coupling_defaults();
            o.algorithm = CRD_ALGORITHM_LINEAR;
            o.step = 0.01;
            o.k_max = 5; // evaluated beyond it, too
            o.design = crd_design_defaults(methods[i]);
            o.reconstruction = reconstruction;
            o.detection = CRD_DETECT_NONE;
            check_equal(state, &o, 11 + (uint32_t)i);
            o.design.taps = 25;
            if (methods[i] == CRD_METHOD_WIENER) { check_equal(state, &o, 20); }
        }
    }
}

static void given_weights_of_any_length_and_size_have_the_same_bits(void** state)
{
    uint32_t seed = 4;
    for (int m = 1; m < 40; m += 6) {
        for (int kind = 0; kind < 3; kind++) { // without A, with A, so large that it overflows
            double a[40], A[40], sum = 0, slope = 0;
            for (int i = 0; i < m; i++) {
                sum += a[i] = next_normal(&seed) * (kind == 2 ? 1e60 : 1);
                slope += A[i] = next_normal(&seed);
            }
            a[0] += 1 - sum;
            A[0] -= slope;
            const crd_linear l = {m, 0, a, kind == 1 ? A : NULL};
            crd_coupling_options o = crd_coupling_defaults();
            o.algorithm = CRD_ALGORITHM_GIVEN;
            o.given = &l;
            o.given_count = 1;
            o.any_gain = true;
            o.step = 0.01;
            o.k_max = 3;
            o.detection = CRD_DETECT_NONE;
            check_equal(state, &o, 3 + (uint32_t)m);
        }
    }
}

static void a_bank_refuses_steps_that_are_none(void** state)
{
    crd_coupling_options o = crd_coupling_defaults();
    o.algorithm = CRD_ALGORITHM_LINEAR;
    o.step = 0.5;
    o.detection = CRD_DETECT_NONE;
    crd_coupling_bank* b = NULL;
    check_ok(crd_coupling_bank_create(context_of(state), &o, 3, &b));
    const double steps[] = {0, -1, NAN, INFINITY, 1e-320};
    double out[3];
    for (int n = 0; n < 20; n++) {
        crd_coupling_bank_push(b, (double[]){n, -2.0 * n, 1}, 0.5 * n, n);
    }
    for (int i = 0; i < 5; i++) {
        check(!crd_coupling_bank_set_step(b, steps[i]));
    }
    crd_coupling_bank_eval(b, 10.5, out); // ramps go on
    check_near(out[0], 21, 1e-9);
    check(crd_coupling_bank_set_step(b, 0.25));
    crd_coupling_bank_eval(b, 10.5, out);
    check_near(out[0], 21, 1e-9);
    check_near(out[1], -42, 1e-9);
    check_near(out[2], 1, 1e-12);
    crd_coupling_bank_destroy(b);
}

static void a_bank_says_what_it_has_not(void** state)
{
    crd_context* ctx = context_of(state);
    crd_coupling_bank* b = NULL;
    crd_coupling_options o = crd_coupling_defaults();
    o.algorithm = CRD_ALGORITHM_LINEAR;
    o.step = 1;
    check_status(crd_coupling_bank_create(ctx, &o, 4, &b), CRD_E_UNSUPPORTED);
    check_contains(crd_error_text(ctx), "detection");
    o.detection = CRD_DETECT_NONE;
    check_status(crd_coupling_bank_create(ctx, &o, 0, &b), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "0 signals");
    o.reconstruction = CRD_RECONSTRUCT_SMOOTH;
    check_status(crd_coupling_bank_create(ctx, &o, 4, &b), CRD_E_UNSUPPORTED);
    check(b == NULL);
    crd_coupling_bank_destroy(NULL);
}

static void every_allocation_of_a_bank_may_fail(void** state)
{
    coupling_test* test = *state;
    crd_coupling_options o = crd_coupling_defaults();
    o.algorithm = CRD_ALGORITHM_LINEAR;
    o.step = 1;
    o.k_max = 2;
    o.detection = CRD_DETECT_NONE;
    const int64_t before = test->memory.live;
    crd_status st = CRD_E_MEMORY;
    for (int64_t fail_at = 0; st == CRD_E_MEMORY; fail_at++) {
        crd_coupling_bank* b = NULL;
        test->memory.allocations = 0;
        test->memory.fail_at = fail_at;
        st = crd_coupling_bank_create(test->ctx, &o, 3, &b);
        test->memory.fail_at = -1;
        crd_coupling_bank_destroy(b);
        check_int(test->memory.live, before);
        check(st == CRD_OK || fail_at < 50);
    }
    check_ok(st);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        coupling_unit_test(a_bank_equals_as_many_elements_bit_for_bit),
        coupling_unit_test(given_weights_of_any_length_and_size_have_the_same_bits),
        coupling_unit_test(a_bank_refuses_steps_that_are_none),
        coupling_unit_test(a_bank_says_what_it_has_not),
        coupling_unit_test(every_allocation_of_a_bank_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
