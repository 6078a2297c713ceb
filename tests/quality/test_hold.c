// Units that can only hold their inputs: the linear oscillator of Rodriguez Frade 2021 (case 1,
// force-displacement) with slaves that integrate exactly, fed with means of predictions.
#include "cardan/quality.h"
#include "check.h"
#include "shared/num.h"

typedef struct outcome {
    double rms;    // of the displacements' errors
    double energy; // relative error at the end
} outcome;

// x'' = -w2 x + force, exactly, under a constant force
static void advance(double w2, double force, double h, double x[2])
{
    const double w = sqrt(w2), rest = force / w2, a = x[0] - rest, v = x[1];
    x[0] = rest + a * cos(w * h) + v / w * sin(w * h);
    x[1] = -a * w * sin(w * h) + v * cos(w * h);
}

static void exact_advance(const double* A, double x[4])
{
    double next[4] = {0};
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 4; j++) {
            next[i] += A[4 * i + j] * x[j];
        }
    }
    memcpy(x, next, sizeof next);
}

// `fresh`: the force is evaluated again with the displacement that has just come.
static outcome simulate(crd_predictor p, double H, bool fresh)
{
    double x1[2] = {0, 100}, x2[2] = {0, -100}, exact[4] = {0, 100, 0, -100}, work[32];
    double A[16] = {0, 1, 0, 0, -110, 0, 100, 0, 0, 0, 0, 1, 100, 0, -1100, 0};
    for (int i = 0; i < 16; i++) {
        A[i] *= H;
    }
    check_ok(crdi_num_expm(4, A, work));
    crd_history displacement = {0}, force = {0};
    crd_sample s = {.order = 0};
    crd_history_push(&displacement, H, &s);
    crd_history_push(&force, H, &s);
    const int n = (int)lround(10 / H);
    double square = 0;
    for (int k = 0; k < n; k++) {
        const double u = crd_predict_mean(p, &displacement, H);
        const double f = crd_predict_mean(p, &force, H);
        advance(110, 100 * u, H, x1);
        advance(1000, f, H, x2);
        s.y[0] = x2[0];
        crd_history_push(&displacement, H, &s);
        s.y[0] = 100 * (x1[0] - (fresh ? x2[0] : u));
        crd_history_push(&force, H, &s);
        exact_advance(A, exact);
        const double d1 = x1[0] - exact[0], d2 = x2[0] - exact[2];
        square += (d1 * d1 + d2 * d2) / 2;
    }
    const double d = x1[0] - x2[0];
    const double E = 0.5 * (x1[1] * x1[1] + x2[1] * x2[1] + 10 * x1[0] * x1[0] +
                            1000 * x2[0] * x2[0] + 100 * d * d);
    return (outcome){sqrt(square / n), E / 1e4 - 1};
}

static void adams_bashforth_with_fresh_feedthrough_reaches_the_reference(void** state)
{
    (void)state;
    static const struct {
        double H, hold, ab2, ab3;
    } rows[] = {
        {1e-3, 1.04, 0.00631, 0.00159}, {5e-3, 28.3, 0.159, 0.0430}, {1e-2, 762, 0.665, 0.204}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const double H = rows[i].H;
        check_near(simulate(CRD_PREDICT_HOLD, H, false).rms / rows[i].hold, 1, 3e-3);
        check_near(simulate(CRD_PREDICT_AB2, H, true).rms / rows[i].ab2, 1, 3e-3);
        check_near(simulate(CRD_PREDICT_AB3, H, true).rms / rows[i].ab3, 1, 3e-3);
    }
    // neither ingredient suffices alone
    check_near(simulate(CRD_PREDICT_HOLD, 1e-3, true).rms, 0.338, 1e-3);
    check_near(simulate(CRD_PREDICT_AB2, 1e-3, false).rms, 0.259, 1e-3);
}

// The correction of the thesis at its best tuning: 0.42 m and 30 %.
static void ab4_keeps_displacement_and_energy_at_five_milliseconds(void** state)
{
    (void)state;
    const outcome r = simulate(CRD_PREDICT_AB4, 5e-3, true);
    check(r.rms <= 0.05);
    check(fabs(r.energy) <= 0.005);
    check_near(r.rms, 0.0444, 1e-4);
    check_near(r.energy, 0.0021, 1e-4);
}

// From values alone the mean of the parabola is the same, whichever way it is written.
static void the_mean_of_taylor2_is_ab3(void** state)
{
    (void)state;
    const outcome a = simulate(CRD_PREDICT_TAYLOR2, 5e-3, true);
    const outcome b = simulate(CRD_PREDICT_AB3, 5e-3, true);
    check_near(a.rms, b.rms, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adams_bashforth_with_fresh_feedthrough_reaches_the_reference),
        cmocka_unit_test(ab4_keeps_displacement_and_energy_at_five_milliseconds),
        cmocka_unit_test(the_mean_of_taylor2_is_ab3),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
