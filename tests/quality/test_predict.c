#include "check.h"
#include "quality/signals.h"

// Samples of a polynomial with unequal steps; the newest is at t.
static crd_history history_of(const crd_poly* p, double t, int count, int order)
{
    static const double h[CRD_HISTORY - 1] = {0.1, 0.07, 0.15};
    crd_history y = {0};
    for (int i = count - 1; i >= 0; i--) {
        double at = t;
        for (int k = 0; k < i; k++) {
            at -= h[k];
        }
        const crd_sample s = sample_poly(p, at, order);
        crd_history_push(&y, i < CRD_HISTORY - 1 ? h[i] : 0, &s);
    }
    return y;
}

static crd_history sine_history(double t, double h, int order)
{
    crd_history y = {0};
    for (int i = CRD_HISTORY - 1; i >= 0; i--) {
        const crd_sample s = sample_sine(2, t - i * h, order);
        crd_history_push(&y, h, &s);
    }
    return y;
}

static void names_are_found_again(void** state)
{
    (void)state;
    for (int i = 0; i < CRD_PREDICT_COUNT; i++) {
        crd_predictor p = CRD_PREDICT_COUNT;
        check(crd_predictor_find(crd_predictor_name((crd_predictor)i), &p));
        check_int(p, i);
    }
    crd_predictor p = CRD_PREDICT_AB3;
    check(!crd_predictor_find("ab5", &p));
    check_int(p, CRD_PREDICT_AB3);
}

static void history_keeps_the_newest_first(void** state)
{
    (void)state;
    crd_history y = {0};
    for (int i = 0; i < 6; i++) {
        const crd_sample s = {{i, 0, 0}, 0};
        crd_history_push(&y, 0.1 * i, &s);
    }
    check_int(y.count, CRD_HISTORY);
    for (int i = 0; i < CRD_HISTORY; i++) {
        check_near(y.sample[i].y[0], 5 - i, 0);
    }
    for (int i = 0; i < CRD_HISTORY - 1; i++) {
        check_near(y.h[i], 0.1 * (5 - i), 0);
    }
    const crd_sample fresh = {{-1, 0, 0}, 0};
    crd_history_replace(&y, &fresh);
    check_near(y.sample[0].y[0], -1, 0);
    check_near(y.sample[1].y[0], 4, 0);
    crd_history_cut(&y);
    check_int(y.count, 1);
    check_near(crd_poly_eval(&(crd_poly){.c = {crd_predict_mean(CRD_PREDICT_AB3, &y, 1)}}, 0), -1,
               0);
}

static void each_predictor_is_exact_on_polynomials_of_its_degree(void** state)
{
    (void)state;
    static const struct {
        crd_predictor p;
        int degree, order;
        bool mean;
    } cases[] = {
        {CRD_PREDICT_HOLD, 0, 0, false},    {CRD_PREDICT_TAYLOR1, 1, 2, false},
        {CRD_PREDICT_TAYLOR2, 2, 2, false}, {CRD_PREDICT_HERMITE, 4, 2, false},
        {CRD_PREDICT_TAYLOR1, 1, 0, false}, {CRD_PREDICT_TAYLOR2, 2, 0, false},
        {CRD_PREDICT_TAYLOR2, 2, 1, false}, {CRD_PREDICT_AB2, 1, 0, true},
        {CRD_PREDICT_AB3, 2, 0, true},      {CRD_PREDICT_AB4, 3, 0, true},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        crd_poly p = {cases[k].degree, {0}};
        for (int i = 0; i <= p.degree; i++) {
            p.c[i] = 1 + 0.5 * i * (i % 2 ? -1 : 1);
        }
        const double t = 0.6, H = 0.13;
        const crd_history y = history_of(&p, t, 4, cases[k].order);
        const crd_poly u = crd_predict(cases[k].p, &y, H);
        check_near(crd_poly_mean(&u, 0, H), crd_poly_mean(&p, t, t + H), 1e-12);
        check_near(crd_predict_mean(cases[k].p, &y, H), crd_poly_mean(&p, t, t + H), 1e-12);
        if (!cases[k].mean) {
            check_near(crd_poly_eval(&u, H), crd_poly_eval(&p, t + H), 1e-11);
        } else {
            check_int(u.degree, 0);
        }
    }
}

static void adams_bashforth_has_its_weights(void** state)
{
    (void)state;
    static const double ab[3][4] = {{1.5, -0.5},
                                    {23.0 / 12, -16.0 / 12, 5.0 / 12},
                                    {55.0 / 24, -59.0 / 24, 37.0 / 24, -9.0 / 24}};
    for (int q = 2; q <= 4; q++) {
        for (int unit = 0; unit < 4; unit++) {
            crd_history y = {0};
            for (int i = 3; i >= 0; i--) {
                const crd_sample s = {{i == unit, 0, 0}, 0};
                crd_history_push(&y, 0.01, &s);
            }
            const crd_predictor p = (crd_predictor)(CRD_PREDICT_AB2 + q - 2);
            check_near(crd_predict_mean(p, &y, 0.01), unit < q ? ab[q - 2][unit] : 0, 1e-12);
        }
    }
    crd_history y = {0}; // variable step: y_k + H / (2 H_prev) dy
    const crd_sample a = {{2, 0, 0}, 0}, b = {{5, 0, 0}, 0};
    crd_history_push(&y, 0, &a);
    crd_history_push(&y, 0.04, &b);
    check_near(crd_predict_mean(CRD_PREDICT_AB2, &y, 0.01), 5 + 0.01 / (2 * 0.04) * 3, 1e-15);
}

static void what_the_history_is_too_short_for_is_done_at_lower_order(void** state)
{
    (void)state;
    crd_history y = {0};
    check_near(crd_predict_mean(CRD_PREDICT_HERMITE, &y, 0.1), 0, 0);
    crd_sample s = {{3, 0, 0}, 0};
    crd_history_push(&y, 0, &s);
    for (int i = 0; i < CRD_PREDICT_COUNT; i++) { // one value: hold
        const crd_poly u = crd_predict((crd_predictor)i, &y, 0.1);
        check_int(u.degree, 0);
        check_near(u.c[0], 3, 0);
    }
    s = (crd_sample){{4, 0, 0}, 0};
    crd_history_push(&y, 0.5, &s);
    check_near(crd_predict_mean(CRD_PREDICT_AB4, &y, 0.5), 4.5, 1e-15);
    const crd_poly line = crd_predict(CRD_PREDICT_HERMITE, &y, 0.5);
    check_int(line.degree, 1);
    check_near(line.c[1], 2, 1e-15);
    crd_history first = {0}; // one sample with derivatives: hermite starts as taylor2
    s = (crd_sample){{1, 2, 3}, 2};
    crd_history_push(&first, 0, &s);
    check_int(crd_predict(CRD_PREDICT_HERMITE, &first, 0.1).degree, 2);
}

static void hermite_goes_through_its_five_data(void** state)
{
    (void)state;
    crd_history y = {0};
    const crd_sample a = {{1, -2, 9}, 2}, b = {{0.5, 4, -7}, 2};
    crd_history_push(&y, 0, &a);
    crd_history_push(&y, 0.2, &b);
    const crd_poly u = crd_predict(CRD_PREDICT_HERMITE, &y, 0.1);
    check_int(u.degree, 4);
    for (int i = 0; i < 3; i++) {
        check_near(crd_poly_derivative(&u, i, 0), b.y[i], 1e-12);
    }
    check_near(crd_poly_eval(&u, -0.2), 1, 1e-12);
    check_near(crd_poly_derivative(&u, 1, -0.2), -2, 1e-11);
}

static void divided_differences_give_derivatives_on_unequal_steps(void** state)
{
    (void)state;
    const crd_poly p = {2, {1, -3, 2}};
    const crd_history y = history_of(&p, 0.5, 4, 0);
    const crd_sample e = crd_history_estimate(&y, 2);
    check_int(e.order, 2);
    check_near(e.y[1], -1, 1e-13);
    check_near(e.y[2], 4, 1e-12);
    const crd_sample one = crd_history_estimate(&y, 1); // first order: through two points
    check_int(one.order, 1);
    check_near(one.y[1], (crd_poly_eval(&p, 0.5) - crd_poly_eval(&p, 0.4)) / 0.1, 1e-13);
    const crd_history known = history_of(&p, 0.5, 4, 1); // y'' from the differences of y'
    check_near(crd_history_estimate(&known, 2).y[2], 4, 1e-12);
    check_near(crd_history_estimate(&known, 2).y[1], -1, 1e-13);
}

static void predictors_converge_with_their_order(void** state)
{
    (void)state;
    for (int i = 0; i < CRD_PREDICT_COUNT; i++) {
        for (int order = 0; order <= 2; order += 2) {
            const crd_predictor p = (crd_predictor)i;
            if (p == CRD_PREDICT_HERMITE && order == 0) { continue; } // is taylor2 then
            const bool mean = p >= CRD_PREDICT_AB2;
            double h[5], e[5];
            for (int k = 0; k < 5; k++) {
                h[k] = 0.1 / (1 << k);
                const crd_history y = sine_history(1, h[k], order);
                const crd_poly u = crd_predict(p, &y, h[k]);
                const double exact_mean = (cos(2.3) - cos(2 * (1 + h[k]) + 0.3)) / (2 * h[k]);
                e[k] = mean ? fabs(u.c[0] - exact_mean)
                            : fabs(crd_poly_eval(&u, h[k]) - sample_sine(2, 1 + h[k], 0).y[0]);
            }
            check_near(slope_of(5, h, e), crd_predictor_order(p), 0.15);
        }
    }
}

static void a_feedthrough_output_is_refreshed_with_its_gain(void** state)
{
    (void)state;
    const crd_sample y = {{1, 2, 3}, 2}, used = {{10, 20, 30}, 2}, fresh = {{11, 18, 30.5}, 2};
    const crd_sample r = crd_sample_refresh(&y, -2, &used, &fresh);
    check_near(r.y[0], -1, 0);
    check_near(r.y[1], 6, 0);
    check_near(r.y[2], 2, 0);
    const crd_sample value = {{1, 0, 0}, 0};
    check_near(crd_sample_refresh(&value, -2, &used, &fresh).y[1], 0, 0);
}

// The rule of the hold-out study: all 60 random oscillators stable at 0.15, 11 not at 0.3.
static void hermite_is_for_small_steps_only(void** state)
{
    (void)state;
    check(crd_hermite_stable(1, 0.15));
    check(crd_hermite_stable(3, 0.0499));
    check(!crd_hermite_stable(3, 0.0501));
    check(!crd_hermite_stable(1, 0.3));
    check(!crd_hermite_stable(NAN, 0.1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found_again),
        cmocka_unit_test(history_keeps_the_newest_first),
        cmocka_unit_test(each_predictor_is_exact_on_polynomials_of_its_degree),
        cmocka_unit_test(adams_bashforth_has_its_weights),
        cmocka_unit_test(what_the_history_is_too_short_for_is_done_at_lower_order),
        cmocka_unit_test(hermite_goes_through_its_five_data),
        cmocka_unit_test(divided_differences_give_derivatives_on_unequal_steps),
        cmocka_unit_test(predictors_converge_with_their_order),
        cmocka_unit_test(a_feedthrough_output_is_refreshed_with_its_gain),
        cmocka_unit_test(hermite_is_for_small_steps_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
