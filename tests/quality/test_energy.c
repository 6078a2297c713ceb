#include "cardan/quality.h"
#include "check.h"
#include "shared/num.h"

static int setup(void** state)
{
    *state = crd_context_create(NULL);
    return *state ? 0 : -1;
}

static int teardown(void** state)
{
    crd_context_destroy(*state);
    return 0;
}

static void names_are_found_again(void** state)
{
    (void)state;
    for (int i = 0; i <= CRD_CORRECT_PROBE; i++) {
        crd_correction c = CRD_CORRECT_NONE;
        check(crd_correction_find(crd_correction_name((crd_correction)i), &c));
        check_int(c, i);
    }
    crd_correction c;
    check(!crd_correction_find("thesis", &c));
}

static void mu_follows_from_the_delays(void** state)
{
    (void)state;
    static const struct {
        double R;
        int order;
        double mu;
    } cases[] = {{1, 0, 0.5},    {1, 1, 0.5},    {2, 0, 0.625},   {2, 1, 0.5},   {5, 0, 0.7},
                 {10, 0, 0.725}, {10, 1, 0.5},   {20, 0, 0.7375}, {0.5, 0, 0.5}, {0.5, 1, 0.25},
                 {0.2, 1, 0.1},  {0.1, 1, 0.05}, {0.05, 1, 0.025}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const double h_ndf = 1e-3;
        check_near(crd_bond_mu(cases[i].R * h_ndf, h_ndf, cases[i].order), cases[i].mu, 1e-12);
    }
    check_near(crd_bond_delay(0.01, 0.001, 0), 0.01 * (1.5 - 0.05), 1e-15);
    check_near(crd_bond_delay(0.001, 0.01, 1), 0.001, 1e-15);
    check_near(crd_bond_delay(0.001, 0.01, 0), 0.01, 1e-15);
}

// With mean and difference: dP = fbar dv - vbar df, sum dP = [f v] - 2 sum vbar df.
static void residual_power_splits_into_a_telescoping_and_a_secular_part(void** state)
{
    (void)state;
    double f = 3, v = -2, sum = 0, secular = 0;
    for (int k = 1; k <= 100; k++) {
        const double f1 = 3 * cos(0.1 * k), v1 = -2 + sin(0.17 * k);
        const double dP = crd_bond_residual(f, v, f1, v1);
        check_near(dP, 0.5 * (f + f1) * (v1 - v) - 0.5 * (v + v1) * (f1 - f), 1e-13);
        sum += dP;
        secular += 0.5 * (v + v1) * (f1 - f);
        f = f1;
        v = v1;
    }
    check_near(sum, f * v - 3 * -2 - 2 * secular, 1e-12);
}

static void a_bond_keeps_its_books(void** state)
{
    (void)state;
    crd_bond bond = crd_bond_defaults();
    crd_bond_state s;
    crd_bond_start(&s, 2, 3);
    check_near(crd_bond_step(&bond, &s, 0.1, 0.1, 5, 7), 0, 0); // watched only
    check_near(s.power, 2 * 7 - 5 * 3, 0);
    check_near(s.energy, -0.1, 1e-15);
    check_near(s.error, -0.05, 1e-15);
    check_near(s.power_max, -1, 0);
    check_near(s.power_min, -1, 0);
    check_near(s.scale, 3.5, 1e-15);
    crd_bond_step(&bond, &s, 0.2, 0.2, 4, 1);
    check_near(s.power, 5 * 1 - 4 * 7, 0);
    check_near(s.energy, -0.1 - 23 * 0.2, 1e-14);
    check_near(s.power_min, -23, 0);
    check_near(s.power_max, -1, 0);
    check_near(s.v_max, 7, 0);
    check_int(s.steps, 2);
}

static void the_power_correction_is_5_48_made_causal(void** state)
{
    (void)state;
    crd_bond bond = crd_bond_defaults();
    bond.correction = CRD_CORRECT_POWER;
    bond.ki = 0.25;
    const double H = 0.01, mu = 0.5;
    const double f[] = {1, 2.5, 1.5, -1, 0.5}, v[] = {0.2, 0.5, -0.1, 0.3, 0.05};
    crd_bond_state s;
    crd_bond_start(&s, f[0], v[0]);
    double E = 0, dE = 0, B = 0, v_max = 0;
    for (int k = 0; k < 4; k++) {
        E += dE + B * v[k + 1] * H;
        dE = mu * (f[k] * v[k + 1] - f[k + 1] * v[k]) * H;
        v_max = fmax(v_max, fabs(v[k + 1]));
        const double eps = 0.02 * v_max;
        B = -(dE + 0.25 * E) / H * v[k + 1] / (v[k + 1] * v[k + 1] + eps * eps);
        check_near(crd_bond_step(&bond, &s, H, H, f[k + 1], v[k + 1]), B, 1e-14);
        check_near(s.missed, E, 1e-15);
    }
}

static void the_limiter_bounds_the_correction_at_rest(void** state)
{
    (void)state;
    crd_bond bond = crd_bond_defaults();
    bond.correction = CRD_CORRECT_POWER;
    crd_bond_state s;
    crd_bond_start(&s, 0, 0);
    check_near(crd_bond_step(&bond, &s, 0.01, 0.01, 1, 0), 0, 0); // has never moved
    crd_bond_start(&s, 1, 1);
    for (double v = 1; v > 1e-300; v *= 0.01) { // B at most dE* / (H 2 eps)
        crd_bond_step(&bond, &s, 0.01, 0.01, 2, v);
        check(fabs(s.B) <= fabs(s.step_error) / 0.01 / (2 * 0.02 * s.v_max) * (1 + 1e-12));
    }
}

static void the_lead_is_two_mu_df_over_the_next_step(void** state)
{
    (void)state;
    crd_bond bond = crd_bond_defaults();
    bond.correction = CRD_CORRECT_LEAD;
    bond.mu = 0.725;
    crd_bond_state s;
    crd_bond_start(&s, 1, 0);
    check_near(crd_bond_step(&bond, &s, 0.01, 0.01, 3, 0), 2 * 0.725 * 2, 1e-15);
    check_near(crd_bond_step(&bond, &s, 0.01, 0.005, 4, 0), 2 * 0.725 * 0.5, 1e-15);
}

static void the_gate_opens_for_smooth_signals_and_closes_for_noise(void** state)
{
    (void)state;
    crd_bond bond = crd_bond_defaults();
    bond.correction = CRD_CORRECT_GATED;
    crd_bond_state s;
    crd_bond_start(&s, 0, 1);
    check_near(crd_bond_step(&bond, &s, 0.01, 0.01, 1, 1), 0, 0); // nothing known yet
    for (int k = 2; k < 200; k++) {
        crd_bond_step(&bond, &s, 0.01, 0.01, k, 1); // a ramp: df predicts df
    }
    check_near(crd_bond_gate(&s), 1, 1e-12);
    check_near(s.B, 1, 1e-12);
    for (int k = 0; k < 200; k++) {
        crd_bond_step(&bond, &s, 0.01, 0.01, k % 2 ? 1 : -1, 1); // the opposite of a lead
    }
    check_near(crd_bond_gate(&s), -1, 0.02); // the jump from the ramp is forgotten as 0.95^200
    crd_bond_start(&s, 0, 1);
    uint64_t seed = 7;
    double mean = 0;
    for (int k = 0; k < 4000; k++) { // white noise: differences have correlation -1/2
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        crd_bond_step(&bond, &s, 0.01, 0.01, (double)(seed >> 11) / 9007199254740992.0, 1);
        mean += crd_bond_gate(&s) / 4000;
        check(fabs(crd_bond_gate(&s)) <= 1);
    }
    check_near(mean, -0.5, 0.05);
}

// A bond in the plane does not depend on the directions of the axes, and along one of them it is
// that of a single force.
static void components_add_up_in_every_frame(void** state)
{
    (void)state;
    static const crd_correction all[] = {CRD_CORRECT_NONE, CRD_CORRECT_POWER, CRD_CORRECT_LEAD,
                                         CRD_CORRECT_GATED};
    const double cosine = 0.6, sine = 0.8, H = 0.01;
    for (int c = 0; c < 4; c++) {
        crd_bond bond = crd_bond_defaults();
        bond.correction = all[c];
        bond.ki = 0.25;
        crd_bond_state one, flat, turned;
        crd_bond_axis x[2] = {{.f = 1, .v = -1}, {0}},
                      y[2] = {{.f = 0.6, .v = -0.6}, {.f = 0.8, .v = -0.8}};
        crd_bond_start(&one, 1, -1);
        crd_bond_start_axes(&flat, 2, x);
        crd_bond_start_axes(&turned, 2, y);
        for (int k = 1; k < 200; k++) {
            const double f = cos(0.1 * k) + 0.2 * cos(0.9 * k), v = sin(0.13 * k) - 1;
            const double B = crd_bond_step(&bond, &one, H, H, f, v);
            x[0].f = f;
            x[0].v = v;
            x[1].f = x[1].v = 0;
            crd_bond_step_axes(&bond, &flat, H, H, 2, x);
            y[0].f = cosine * f;
            y[0].v = cosine * v;
            y[1].f = sine * f;
            y[1].v = sine * v;
            crd_bond_step_axes(&bond, &turned, H, H, 2, y);
            check_near(x[0].B, B, 0);
            check_near(x[1].B, 0, 0);
            check_near(y[0].B, cosine * B, 1e-12 * (1 + fabs(B)));
            check_near(y[1].B, sine * B, 1e-12 * (1 + fabs(B)));
        }
        check_near(flat.energy, one.energy, 0);
        check_near(turned.energy, one.energy, 1e-12);
        check_near(turned.scale, one.scale, 1e-12);
        check_near(turned.work, one.work, 1e-12);
        check_near(turned.v_max, one.v_max, 1e-14);
        check_int(turned.steps, 199);
    }
}

// What is not a number is not hidden in one component either.
static void a_broken_component_breaks_the_bond(void** state)
{
    (void)state;
    crd_bond bond = crd_bond_defaults();
    bond.correction = CRD_CORRECT_POWER;
    crd_bond_state s;
    crd_bond_axis x[2] = {{.f = 1, .v = 1}, {.f = 2, .v = 3}};
    crd_bond_start_axes(&s, 2, x);
    x[0] = (crd_bond_axis){.f = 1, .v = 1, .f_last = 1, .v_last = 1};
    x[1].f = NAN;
    x[1].v = 1;
    crd_bond_step_axes(&bond, &s, 0.1, 0.1, 2, x);
    check(isnan(s.power) && isnan(s.energy) && isnan(s.power_max) && isnan(s.power_min));
    check(isnan(x[0].B) && isnan(x[1].B));
}

static void bad_options_are_named(void** state)
{
    crd_bond b = crd_bond_defaults();
    check_ok(crd_bond_check(*state, &b));
    b.mu = -1;
    check_status(crd_bond_check(*state, &b), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "mu = -1");
    b = crd_bond_defaults();
    b.ki = NAN;
    check_status(crd_bond_check(*state, &b), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "ki");
    b = crd_bond_defaults();
    b.limiter = 0;
    check_status(crd_bond_check(*state, &b), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "limiter = 0");
    b = crd_bond_defaults();
    b.forget = 1.5;
    check_status(crd_bond_check(*state, &b), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "forget = 1.5");
}

// ---- linear oscillator, force-displacement (Rodriguez 2021, 5.4.1) -----------------------------

typedef struct oscillator {
    double x1, v1, x2, v2, c; // c: all three dampers
    double f;                 // output of the first mass
    double t2[2];             // input x2, v2 of the first mass ...
    double last[2];           // ... a macro step earlier
} oscillator;

static double energy_of(const oscillator* o)
{
    const double d = o->x1 - o->x2;
    return 0.5 * (o->v1 * o->v1 + o->v2 * o->v2 + 10 * o->x1 * o->x1 + 1000 * o->x2 * o->x2 +
                  100 * d * d);
}

// Manager step H with n1 and n2 micro steps; semi-implicit Euler; inputs are set at the start of
// each micro step, held (order 0) or extended (order 1) from the second macro step on.
static void macro_step(oscillator* o, double H, int n1, int n2, int order, double f, double f_last)
{
    const double u0 = o->x2, u1 = o->v2;
    const double du0 = order ? u0 - o->last[0] : 0, du1 = order ? u1 - o->last[1] : 0;
    const double df = order ? f - f_last : 0;
    double in0 = 0, in1 = 0;
    const double h1 = H / n1, h2 = H / n2;
    for (int j = 0; j < n1; j++) {
        in0 = u0 + du0 * j / n1;
        in1 = u1 + du1 * j / n1;
        const double c = o->c;
        o->v1 -= h1 * (c * o->v1 + c * (o->v1 - in1) + 10 * o->x1 + 100 * (o->x1 - in0));
        o->x1 += h1 * o->v1;
    }
    for (int j = 0; j < n2; j++) {
        o->v2 += h2 * (f + df * j / n2 - o->c * o->v2 - 1000 * o->x2);
        o->x2 += h2 * o->v2;
    }
    o->last[0] = u0;
    o->last[1] = u1;
    o->f = o->c * (o->v1 - in1) + 100 * (o->x1 - in0);
}

typedef struct outcome {
    double error1, error2, E;
    oscillator at_1s;
    crd_bond_state bond;
} outcome;

static outcome simulate(const crd_bond* bond, double c, double H, double t_end, int n1, int n2,
                        int order)
{
    double exact[4] = {0, 100, 0, -100};
    double A[16] = {0, 1, 0, 0, -110, -2 * c, 100, c, 0, 0, 0, 1, 100, c, -1100, -2 * c};
    double work[32];
    for (int i = 0; i < 16; i++) {
        A[i] *= H;
    }
    check_ok(crdi_num_expm(4, A, work));
    oscillator o = {.v1 = 100, .v2 = -100, .c = c};
    o.f = c * 200;
    o.last[0] = o.x2;
    o.last[1] = o.v2;
    outcome r = {0};
    crd_bond_start(&r.bond, o.f, o.v2);
    double f_last = o.f; // as applied, with correction: what is handed over is what is extended
    const int n = (int)lround(t_end / H);
    for (int k = 0; k < n; k++) {
        const double f = o.f + r.bond.B;
        macro_step(&o, H, n1, n2, k > 0 ? order : 0, f, f_last);
        f_last = f;
        crd_bond_step(bond, &r.bond, H, H, o.f, o.v2);
        double next[4] = {0};
        for (int i = 0; i < 4; i++) {
            for (int j = 0; j < 4; j++) {
                next[i] += A[4 * i + j] * exact[j];
            }
        }
        memcpy(exact, next, sizeof next);
        r.error1 = fmax(r.error1, fabs(o.x1 - exact[0]));
        r.error2 = fmax(r.error2, fabs(o.x2 - exact[2]));
        if (k + 1 == lround(1 / H)) { r.at_1s = o; }
    }
    r.E = energy_of(&o);
    return r;
}

#define check_relative(ours, want, tolerance) check_near(ours, want, fabs((want) * (tolerance)))

static void the_linear_oscillator_gains_energy_as_published(void** state)
{
    (void)state;
    const crd_bond bond = crd_bond_defaults();
    const outcome r = simulate(&bond, 0, 1e-3, 10, 1, 1, 0);
    check_near(r.at_1s.x1, -4.524954263, 1e-9);
    check_near(r.at_1s.v1, -78.61176551, 1e-8);
    check_near(r.at_1s.x2, -3.734647104, 1e-9);
    check_near(r.at_1s.v2, 27.70693007, 1e-8);
    check_near(energy_of(&r.at_1s), 10581.14165, 1e-5);
    check_relative(r.error1, 2.45451130e-01, 1e-8);
    check_relative(r.error2, 2.07747006e+00, 1e-8);
    check_relative(r.E, 2.02425640e+04, 1e-8);
    check_relative(r.bond.energy, 2.16647342e+04, 1e-8);
    check_relative(r.bond.power_max, 7.516049e+03, 1e-6);
    check_relative(r.bond.power_min, -1.630102e+03, 1e-6);
    check_near((r.E - 1e4) / r.bond.energy, 0.472776, 1e-6); // mu as measured
    const outcome damped = simulate(&bond, 0.1, 1e-3, 10, 1, 1, 0);
    check_relative(damped.error2, 7.01332260e-01, 1e-8);
    check_relative(damped.bond.energy, 7.26248964e+03, 1e-8);
    const outcome coarse = simulate(&bond, 0, 5e-3, 10, 1, 1, 0);
    check_relative(coarse.E, 8.89079539e+05, 1e-8);
    check_relative(coarse.bond.power_max, 1.039165e+06, 1e-6);
}

static void the_power_correction_takes_the_energy_out_again(void** state)
{
    (void)state;
    crd_bond bond = crd_bond_defaults();
    bond.correction = CRD_CORRECT_POWER;
    bond.mu = crd_bond_mu(1e-3, 1e-3, 0);
    const outcome r = simulate(&bond, 0, 1e-3, 10, 1, 1, 0);
    check_relative(r.error1, 2.20088837e-01, 1e-7);
    check_relative(r.error2, 8.13899957e-02, 1e-7);
    check_relative(r.E, 9.95639825e+03, 1e-7);
    check_relative(r.bond.energy, 1.21194886e+04, 1e-7);
    check_relative(r.bond.power_max, 4.556979e+03, 1e-6);
    const outcome damped = simulate(&bond, 0.1, 1e-3, 10, 1, 1, 0);
    check_relative(damped.error1, 9.18580318e-02, 1e-7);
    check_relative(damped.E, 1.34864599e+03, 1e-7);
    const outcome coarse = simulate(&bond, 0, 5e-3, 10, 1, 1, 0); // chaotic: only a band
    check(fabs(coarse.E / 1e4 - 1) < 0.5);
}

static void the_lead_takes_out_the_secular_part(void** state)
{
    (void)state;
    crd_bond bond = crd_bond_defaults();
    bond.correction = CRD_CORRECT_LEAD;
    const outcome r = simulate(&bond, 0, 1e-3, 10, 1, 1, 0);
    check_relative(r.error1, 4.62190067e-01, 1e-7);
    check_relative(r.error2, 2.20122586e-01, 1e-7);
    check_relative(r.E, 9.86281534e+03, 1e-7);
    bond.correction = CRD_CORRECT_GATED; // a smooth force: the gate is open
    const outcome gated = simulate(&bond, 0, 1e-3, 10, 1, 1, 0);
    check_near(gated.E / r.E, 1, 0.01);
}

static void multi_rate_differs_by_mu_alone(void** state)
{
    (void)state;
    crd_bond bond = crd_bond_defaults();
    const outcome hold = simulate(&bond, 0, 1e-3, 10, 1, 10, 0);
    check_relative(hold.E, 3.01994796e+04, 1e-8);
    check_relative(hold.bond.energy, 2.92918341e+04, 1e-8);
    check_near((hold.E - 1e4) / hold.bond.energy, 0.689594, 1e-6);
    const outcome foh = simulate(&bond, 0, 1e-3, 10, 1, 10, 1);
    check_relative(foh.E, 2.01774555e+04, 1e-8);
    check_relative(foh.bond.energy, 2.16630613e+04, 1e-8);
    const outcome fast = simulate(&bond, 0, 1e-3, 10, 10, 1, 1); // feedthrough in the fast unit
    check_near((fast.E - 1e4) / fast.bond.energy, 0.051489, 1e-6);
    bond.correction = CRD_CORRECT_POWER;
    bond.mu = crd_bond_mu(1e-3, 1e-4, 0);
    const outcome corrected = simulate(&bond, 0, 1e-3, 10, 1, 10, 0);
    check_relative(corrected.error1, 1.23617056e-01, 1e-7);
    check_relative(corrected.E, 9.98896593e+03, 1e-7);
}

// A drive that comes up to speed and stays there: hardly anything is created, so hardly anything
// may be taken out, whatever was found in the first moments.
static void a_speed_that_does_not_swing_is_not_braked(void** state)
{
    (void)state;
    crd_bond bond = crd_bond_defaults();
    bond.correction = CRD_CORRECT_BALANCE;
    bond.mu = 0;
    crd_bond_state s = {0};
    crd_bond_start(&s, 10, 0);
    double balance = 0, v = 0;
    for (int n = 1; n <= 20000; n++) {
        const double next = fmin(0.1 * n, 100);
        balance += 1e-3 * (0.5 * ((n % 7) - 3) - s.damper * v * 0.5 * (v + next));
        v = next;
        s.balance = balance;
        crd_bond_step(&bond, &s, 1e-3, 1e-3, 10, v);
    }
    check_near(balance, 0, 1);
}

// A negative damper of 0.1 at v = sin t is cancelled, and so is a positive one.
static void the_damper_closes_the_balance(void** state)
{
    (void)state;
    for (int sign = -1; sign <= 1; sign += 2) {
        crd_bond bond = crd_bond_defaults();
        bond.correction = CRD_CORRECT_BALANCE;
        bond.mu = 0;
        crd_bond_state s = {0};
        crd_bond_start(&s, 1, 0);
        double balance = 0, v = 0;
        for (int n = 1; n <= 100000; n++) {
            const double next = sin(1e-2 * n);
            balance += 1e-2 * (sign * 0.1 - s.damper) * v * 0.5 * (v + next);
            v = next;
            s.balance = balance;
            crd_bond_step(&bond, &s, 1e-2, 1e-2, cos(1e-2 * n), v);
        }
        check_near(s.damper, sign * 0.1, 0.01);
        check_near(balance, 0, 0.1); // 50 J would have been created
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found_again),
        cmocka_unit_test(mu_follows_from_the_delays),
        cmocka_unit_test(residual_power_splits_into_a_telescoping_and_a_secular_part),
        cmocka_unit_test(a_bond_keeps_its_books),
        cmocka_unit_test(the_power_correction_is_5_48_made_causal),
        cmocka_unit_test(the_limiter_bounds_the_correction_at_rest),
        cmocka_unit_test(the_lead_is_two_mu_df_over_the_next_step),
        cmocka_unit_test(the_gate_opens_for_smooth_signals_and_closes_for_noise),
        cmocka_unit_test(components_add_up_in_every_frame),
        cmocka_unit_test(a_broken_component_breaks_the_bond),
        cmocka_unit_test(bad_options_are_named),
        cmocka_unit_test(the_linear_oscillator_gains_energy_as_published),
        cmocka_unit_test(the_power_correction_takes_the_energy_out_again),
        cmocka_unit_test(the_lead_takes_out_the_secular_part),
        cmocka_unit_test(multi_rate_differs_by_mu_alone),
        cmocka_unit_test(the_damper_closes_the_balance),
        cmocka_unit_test(a_speed_that_does_not_swing_is_not_braked),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
