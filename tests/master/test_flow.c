// What inputs are told between samples, how wrong that was, and which outputs are made fresh.
#include "flows.h"

static const double H = 0.1;

// c[0] + c[1] s + ... of a cubic from t on.
static void local(double t, double c[4])
{
    static const double factorial[] = {1, 1, 2, 6};
    for (int i = 0; i < 4; i++) {
        c[i] = cubic(i, t) / factorial[i];
    }
}

// The polynomial of this degree that is nearest to c over [0, h], by what Legendre's polynomials
// say of x^2 and x^3 on [0, 1].
static void nearest(const double c[4], int degree, double h, double out[3])
{
    const double a = c[1] * h, b = c[2] * h * h, d = c[3] * h * h * h;
    if (degree == 0) {
        out[0] = c[0] + a / 2 + b / 3 + d / 4;
        out[1] = out[2] = 0;
    } else if (degree == 1) {
        out[0] = c[0] - b / 6 - d / 5;
        out[1] = (a + b + 0.9 * d) / h;
        out[2] = 0;
    } else {
        out[0] = c[0] + d / 20;
        out[1] = (a - 0.6 * d) / h;
        out[2] = (b + 1.5 * d) / h / h;
    }
}

static void check_told(int i, double t, double h, const double p[3])
{
    check(i < said_count);
    check_near(said[i].t, t, 1e-12);
    check_near(said[i].h, h, 1e-12);
    check_near(said[i].u, p[0], 1e-9);
    check_near(said[i].d1, p[1], 1e-8);
    check_near(said[i].d2, 2 * p[2], 1e-6);
}

typedef struct {
    crd_system* s;
    crd_master* m;
    crdi_prediction* f; // the only one, NULL: it is watched
} pair;

// A curve with so many derivatives to a listener that takes so many.
static crd_system* describe_pair(crd_context* ctx, int gives, int takes, int kind,
                                 crd_prediction predict, double stop)
{
    crd_system* s = new_system(ctx, H, stop);
    const int a = add_unit(s, "s", &curve_models[gives], 0);
    const int b = add_unit(s, "p", &listener_models[takes], 0);
    set_kind(s, a, kind);
    wire_as(s, a, b, predict);
    return s;
}

static pair open_pair(crd_context* ctx, crd_system* s)
{
    pair p = {.s = s, .m = open_run(ctx, s)};
    p.f = p.m->connections.prediction_count ? &p.m->connections.predictions[0] : NULL;
    return p;
}

static void check_all_told(crd_context* ctx, crd_system* s, int takes, int from)
{
    pair p = open_pair(ctx, s);
    run_all(ctx, p.m);
    check_int(said_count, 10);
    for (int i = from; i < 10; i++) {
        double c[4], n[3];
        local(i * H, c);
        nearest(c, takes, H, n);
        check_told(i, i * H, H, n);
    }
    close_run(p.m, p.s);
}

// ---- what inputs are told ----------------------------------------------------------------------

static void a_unit_gets_the_nearest_polynomial_of_the_degree_that_it_takes(void** state)
{
    for (int takes = 0; takes <= 2; takes++) { // hermite knows a cubic from the second step on
        check_all_told(*state, describe_pair(*state, 2, takes, CUBIC, CRD_PREDICTION_HERMITE, 1),
                       takes, 1);
    }
}

static void a_taylor_polynomial_is_told_as_it_is_or_as_its_mean(void** state)
{
    for (int takes = 0; takes <= 2; takes++) {
        pair p =
            open_pair(*state, describe_pair(*state, 2, takes, CUBIC, CRD_PREDICTION_TAYLOR2, 1));
        run_all(*state, p.m);
        for (int i = 0; i < 10; i++) {
            double c[4], n[3];
            local(i * H, c);
            c[3] = 0;
            nearest(c, takes, H, n);
            check_told(i, i * H, H, n);
        }
        close_run(p.m, p.s);
    }
}

static void adams_bashforth_holds_the_mean_of_the_curve_through_values(void** state)
{
    static const double w[3][4] = {{3 / 2.0, -1 / 2.0},
                                   {23 / 12.0, -16 / 12.0, 5 / 12.0},
                                   {55 / 24.0, -59 / 24.0, 37 / 24.0, -9 / 24.0}};
    for (int k = 0; k < 3; k++) {
        const crd_prediction predict = (crd_prediction)(CRD_PREDICTION_AB2 + k);
        pair p = open_pair(*state, describe_pair(*state, 2, 2, CUBIC, predict, 1));
        run_all(*state, p.m);
        check_near(said[0].u, cubic(0, 0), 0); // no past
        for (int i = k + 1; i < 10; i++) {
            double mean = 0;
            for (int j = 0; j < 4; j++) {
                mean += w[k][j] * cubic(0, (i - j) * H);
            }
            check_told(i, i * H, H, (double[3]){mean});
        }
        close_run(p.m, p.s);
    }
}

static void linear_and_quadratic_give_a_holding_unit_the_value_at_the_beginning(void** state)
{
    for (int k = 0; k < 2; k++) {
        const crd_prediction predict = k ? CRD_PREDICTION_QUADRATIC : CRD_PREDICTION_LINEAR;
        pair p = open_pair(*state, describe_pair(*state, 2, 0, CUBIC, predict, 1));
        run_all(*state, p.m);
        for (int i = 0; i < 10; i++) {
            check_told(i, i * H, H, (double[3]){cubic(0, i * H)});
        }
        close_run(p.m, p.s);
    }
}

static void linear_and_quadratic_go_through_values_whatever_derivatives_are_known(void** state)
{
    for (int k = 0; k < 2; k++) {
        const crd_prediction predict = k ? CRD_PREDICTION_QUADRATIC : CRD_PREDICTION_LINEAR;
        pair p = open_pair(*state, describe_pair(*state, 2, 2, CUBIC, predict, 1));
        run_all(*state, p.m);
        for (int i = 0; i < 10; i++) { // before the start: what its derivatives there say
            const double x = i > 1 ? 0 : 4 * H * H * H * (i ? 1 : 8);
            const double a = cubic(0, i * H), b = cubic(0, (i - 1) * H) + (i ? 0 : 4 * H * H * H);
            const double c = cubic(0, (i - 2) * H) + x;
            const double bend = k ? (a - 2 * b + c) / (2 * H * H) : 0;
            check_told(i, i * H, H, (double[3]){a, (a - b) / H + bend * H, bend});
        }
        close_run(p.m, p.s);
    }
}

static void in_gauss_seidel_order_the_known_step_is_interpolated(void** state)
{
    for (int takes = 0; takes <= 2; takes++) {
        crd_system* s = describe_pair(*state, 2, takes, CUBIC, CRD_PREDICTION_AUTO, 1);
        check_ok(crd_system_set_scheme(s, "gauss-seidel: [s, p]", (crd_place){"", 0}));
        check_all_told(*state, s, takes, 0);
    }
}

static void in_gauss_seidel_order_hold_takes_the_newest_value(void** state)
{
    static const crd_prediction predict[] = {CRD_PREDICTION_HOLD, CRD_PREDICTION_LINEAR};
    for (int k = 0; k < 2; k++) {
        crd_system* s = describe_pair(*state, 2, 0, CUBIC, predict[k], 1);
        check_ok(crd_system_set_scheme(s, "gauss-seidel: [s, p]", (crd_place){"", 0}));
        pair p = open_pair(*state, s);
        run_all(*state, p.m);
        for (int i = 0; i < 10; i++) {
            check_told(i, i * H, H, (double[3]){cubic(0, (i + 1) * H)});
        }
        close_run(p.m, p.s);
    }
}

static void gain_and_offset_act_on_the_value_and_the_gain_on_derivatives(void** state)
{
    crd_system* s = describe_pair(*state, 2, 2, CUBIC, CRD_PREDICTION_TAYLOR2, 1);
    s->connections[0].gain = -3;
    s->connections[0].offset = 0.5;
    s->connections[0].has_transformation = true;
    pair p = open_pair(*state, s);
    run_all(*state, p.m);
    for (int i = 0; i < 10; i++) {
        check_told(
            i, i * H, H,
            (double[3]){-3 * cubic(0, i * H) + 0.5, -3 * cubic(1, i * H), -1.5 * cubic(2, i * H)});
    }
    close_run(p.m, p.s);
}

static void a_slow_source_is_predicted_over_all_of_its_step(void** state)
{
    crd_system* s = describe_pair(*state, 2, 0, CUBIC, CRD_PREDICTION_TAYLOR2, 1.2);
    s->units[0].step = 4 * H;
    pair p = open_pair(*state, s);
    run_all(*state, p.m);
    check_int(said_count, 12);
    for (int i = 0; i < 12; i++) {
        const double t = i / 4 * 4 * H, a = i % 4 * H, b = a + H; // of the piece
        const double mean =
            cubic(0, t) + cubic(1, t) * (a + b) / 2 + cubic(2, t) / 6 * (a * a + a * b + b * b);
        check_told(i, i * H, H, (double[3]){mean});
    }
    close_run(p.m, p.s);
}

static void a_slow_target_is_told_the_curve_over_all_of_its_step(void** state)
{
    for (int takes = 0; takes <= 1; takes++) {
        crd_system* s = describe_pair(*state, 2, takes, CUBIC, CRD_PREDICTION_HERMITE, 1.2);
        s->units[1].step = 4 * H;
        pair p = open_pair(*state, s);
        run_all(*state, p.m);
        check_int(said_count, 3);
        for (int i = 1; i < 3; i++) {
            double c[4], n[3];
            local(4 * i * H, c);
            nearest(c, takes, 4 * H, n);
            check_told(i, 4 * i * H, 4 * H, n);
        }
        close_run(p.m, p.s);
    }
}

// Each part of a step is a step for the unit: it gets what is nearest over that part.
static void a_step_in_parts_is_told_part_by_part(void** state)
{
    for (int takes = 0; takes <= 1; takes++) {
        crd_system* s = describe_pair(*state, 2, takes, CUBIC, CRD_PREDICTION_HERMITE, 0.8);
        use_control(s, 1);
        s->run.control.first = s->run.control.floor = s->run.control.ceiling = 2 * H;
        s->units[1].step = H / 2;
        pair p = open_pair(*state, s);
        run_all(*state, p.m);
        check_int(said_count, 16);
        for (int i = 4; i < 16; i++) {
            double c[4], n[3];
            local(i * H / 2, c);
            nearest(c, takes, H / 2, n);
            check_told(i, i * H / 2, H / 2, n);
        }
        close_run(p.m, p.s);
    }
}

static void adams_bashforth_of_a_slow_source_looks_over_all_of_its_step(void** state)
{
    crd_system* s = describe_pair(*state, 0, 0, CUBIC, CRD_PREDICTION_AB2, 1.2);
    s->units[0].step = 4 * H;
    pair p = open_pair(*state, s);
    run_all(*state, p.m);
    for (int i = 4; i < 12; i++) {
        const double t = i / 4 * 4 * H;
        check_near(said[i].u, 1.5 * cubic(0, t) - 0.5 * cubic(0, t - 4 * H), 1e-9);
    }
    close_run(p.m, p.s);
}

// Whatever the steps and the order: a line is told as that line.
static void a_line_stays_a_line_at_all_rates(void** state)
{
    static const crd_prediction predict[] = {CRD_PREDICTION_TAYLOR1, CRD_PREDICTION_LINEAR,
                                             CRD_PREDICTION_QUADRATIC, CRD_PREDICTION_AUTO};
    static const char* const schemes[] = {"jacobi", "gauss-seidel: [s, p]", "gauss-seidel: [p, s]"};
    for (int k = 0; k < 4 * 4 * 4 * 3; k++) {
        crd_system* s = describe_pair(*state, 2, 2, LINE, predict[k / 16 % 4], 2.4);
        s->units[0].step = (1 + k % 4) * H;
        s->units[1].step = (1 + k / 4 % 4) * H;
        check_ok(crd_system_set_scheme(s, schemes[k / 64], (crd_place){"", 0}));
        pair p = open_pair(*state, s);
        run_all(*state, p.m);
        for (int i = 0; i < said_count; i++) {
            check_near(said[i].u, 2 * said[i].t, 1e-9);
            check_near(said[i].d1, 2, 1e-8);
            check_near(said[i].d2, 0, 1e-6);
        }
        check_near(crd_defect_rms(&p.f->connection), 0, 1e-9);
        check_near(value(p.m, "p.y"), 2.4 * 2.4, 1e-9);
        close_run(p.m, p.s);
    }
}

// The target computes its long step when the source has made all of its short ones.
static void behind_a_faster_source_the_newest_three_values_count(void** state)
{
    crd_system* s = describe_pair(*state, 0, 2, CUBIC, CRD_PREDICTION_QUADRATIC, 1.2);
    s->units[1].step = 4 * H;
    check_ok(crd_system_set_scheme(s, "gauss-seidel: [s, p]", (crd_place){"", 0}));
    pair p = open_pair(*state, s);
    run_all(*state, p.m);
    check_int(said_count, 3);
    for (int i = 0; i < 3; i++) {
        const double end = 4 * (i + 1) * H;
        const double a = cubic(0, end), b = cubic(0, end - H), c = cubic(0, end - 2 * H);
        const double bend = (a - 2 * b + c) / (2 * H * H), slope = (a - b) / H + bend * H;
        check_told(i, 4 * i * H, 4 * H,
                   (double[3]){a - 4 * H * slope + 16 * H * H * bend, slope - 8 * H * bend, bend});
    }
    close_run(p.m, p.s);
}

// Where nobody looks at predictions in every step, settled ones are only looked at now and then.
// Whoever asks after each step has them all looked at.
static void steps_that_nobody_looks_at_are_as_all_others(void** state)
{
    crd_context* ctx = *state;
    static told alone[TOLD];
    crd_flow_report r[2];
    for (int i = 0; i < 2; i++) {
        crd_system* s = describe_pair(ctx, 0, 0, LEAP, CRD_PREDICTION_AUTO, 40);
        s->run.monitor = CRD_MONITOR_DEFECT;
        pair p = open_pair(ctx, s);
        while (crd_master_ended(p.m) == CRD_END_NONE) {
            check_run(crd_master_advance(p.m, i ? 1 : 1000), ctx);
        }
        check(p.m->connections.steady);
        check(i ? p.m->connections.steady[0].steps == 0 : p.m->connections.steady[0].steps > 0);
        check_run(crd_master_finish(p.m), ctx);
        r[i] = crd_master_get_report(p.m)->flows[0];
        check_int(said_count, 400);
        if (i == 0) { memcpy(alone, said, sizeof said); }
        close_run(p.m, p.s);
    }
    check_int(memcmp(alone, said, 400 * sizeof *said), 0);
    check_near(r[0].rms / r[1].rms, 1, 1e-12);
    check_near(r[0].step / r[1].step, 1, 1e-12);
    check_near(r[0].max, r[1].max, 0);
    check_near(r[0].max_time, r[1].max_time, 0);
    check_near(r[0].share, r[1].share, 0);
    check_near(r[0].scale, r[1].scale, 0);
    check_int(r[0].jumps, 1);
    check_int(r[1].jumps, 1);
    check_int(r[0].switches, r[1].switches);
}

// An output that follows inputs, whose derivatives the unit is not told, has no derivatives that
// are worth anything; one that does not follow them has the first.
typedef struct {
    double u, y, z;
    double dy[CRD_MODEL_MAX_ORDER], dz[CRD_MODEL_MAX_ORDER];
} follower;

static void follower_outputs(void* self, double t)
{
    follower* f = self;
    f->y = f->u;
    f->z = t;
    f->dz[0] = 1;
}

static crd_model_status follower_start(void* self, const crd_model_host* host, double t)
{
    (void)host;
    follower_outputs(self, t);
    return CRD_MODEL_OK;
}

static const crd_model_variable follower_variables[] = {
    REAL(follower, u, CRD_INPUT, 0),
    {.name = "y",
     .type = CRD_FLOAT64,
     .causality = CRD_OUTPUT,
     .offset = offsetof(follower, y),
     .depends = "u",
     .derivatives = offsetof(follower, dy)},
    {.name = "z",
     .type = CRD_FLOAT64,
     .causality = CRD_OUTPUT,
     .offset = offsetof(follower, z),
     .depends = "",
     .derivatives = offsetof(follower, dz)},
};
static const crd_model follower_model = {.name = "follower",
                                         .description = "y = u",
                                         .size = sizeof(follower),
                                         .variables = follower_variables,
                                         .variable_count = 3,
                                         .default_step = 0.1,
                                         .default_stop = 1,
                                         .max_output_derivative = 2,
                                         .initialize = follower_start,
                                         .outputs = follower_outputs,
                                         .step = gain_step};

static void derivatives_count_as_far_as_the_unit_knows_those_of_its_inputs(void** state)
{
    crd_system* s = describe_pair(*state, 2, 2, CUBIC, CRD_PREDICTION_AUTO, 1);
    const int f = add_unit(s, "f", &follower_model, 0);
    const int p = add_unit(s, "p1", &listener_models[2], 0);
    const int q = add_unit(s, "p2", &listener_models[2], 0);
    wire_as(s, 0, f, CRD_PREDICTION_AUTO);
    wire_as(s, f, p, CRD_PREDICTION_AUTO);
    wire_as(s, f, q, CRD_PREDICTION_AUTO)->from = "z";
    crd_master* m = open_run(*state, s);
    for (int i = 0; i < m->connections.prediction_count; i++) {
        const crdi_prediction* k = &m->connections.predictions[i];
        check_int(k->rates[0] != NULL, k->of->to.member != p);
        check_int(k->rates[1] != NULL, k->of->from.member == 0);
    }
    run_all(*state, m);
    close_run(m, s);
}

// ---- defects -----------------------------------------------------------------------------------

// Root of the mean square of c[1] s + c[2] s^2 + c[3] s^3 from power `from` on over [0, h].
static double rms_of(const double c[4], int from, double h)
{
    double sum = 0;
    for (int i = from; i < 4; i++) {
        for (int k = from; k < 4; k++) {
            sum += c[i] * c[k] * pow(h, i + k) / (i + k + 1);
        }
    }
    return sqrt(sum);
}

static void the_defect_of_a_cubic_is_what_the_prediction_left_out(void** state)
{
    static const crd_prediction predict[] = {CRD_PREDICTION_TAYLOR1, CRD_PREDICTION_TAYLOR2,
                                             CRD_PREDICTION_HERMITE};
    for (int k = 0; k < 3; k++) {
        pair p = open_pair(*state, describe_pair(*state, 2, 2, CUBIC, predict[k], 1));
        double square = 0;
        for (int i = 0; i < 10; i++) {
            double c[4];
            local(i * H, c);
            check_ok(crd_master_advance(p.m, 1));
            const int from = k == 2 && i == 0 ? 3 : k == 2 ? 4 : k + 2; // its first is taylor2
            double bias = 0, end = 0;
            for (int j = from; j < 4; j++) {
                bias -= c[j] * pow(H, j) / (j + 1);
                end += c[j] * pow(H, j);
            }
            check_near(p.f->rms, rms_of(c, from, H), 1e-9);
            check_near(p.f->bias, bias, 1e-9);
            check(p.f->max >= fabs(end) - 1e-9);
            square += H * rms_of(c, from, H) * rms_of(c, from, H);
        }
        const crd_flow_report* r = crd_master_get_report(p.m)->flows;
        check_near(r->rms, sqrt(square), 1e-9);
        check_near(r->scale, cubic(0, 1), 1e-12);
        check_near(r->relative, sqrt(square) / cubic(0, 1), 1e-9);
        close_run(p.m, p.s);
    }
}

static void of_a_told_mean_the_defect_is_that_of_the_mean(void** state)
{
    pair p = open_pair(*state, describe_pair(*state, 2, 0, CUBIC, CRD_PREDICTION_TAYLOR1, 1));
    for (int i = 0; i < 10; i++) {
        double c[4];
        local(i * H, c);
        check_ok(crd_master_advance(p.m, 1));
        const double bias = -(c[2] * H * H / 3 + c[3] * H * H * H / 4);
        check_near(p.f->bias, bias, 1e-10);
        check_near(p.f->rms, fabs(bias), 1e-10);
        check_near(p.f->max, fabs(bias), 1e-10);
    }
    close_run(p.m, p.s);
}

// To a unit that holds, linear and quadratic are a hold, and measured as that.
static void of_a_textbook_that_is_held_the_defect_is_that_of_hold(void** state)
{
    for (int k = 0; k < 2; k++) {
        const crd_prediction predict = k ? CRD_PREDICTION_QUADRATIC : CRD_PREDICTION_LINEAR;
        pair p = open_pair(*state, describe_pair(*state, 0, 0, LINE, predict, 1));
        run_all(*state, p.m);
        check_near(crd_defect_rms(&p.f->connection), 2 * H / sqrt(3), 1e-12);
        check_near(p.f->bias, -H, 1e-12);
        close_run(p.m, p.s);
    }
}

static void the_defect_of_a_sine_is_found_without_knowing_the_sine(void** state)
{
    pair p = open_pair(*state, describe_pair(*state, 2, 2, SINE, CRD_PREDICTION_TAYLOR1, 1));
    for (int i = 0; i < 10; i++) {
        check_ok(crd_master_advance(p.m, 1));
        double square = 0, max = 0;
        enum { N = 2000 };
        for (int k = 0; k < N; k++) {
            const double s = (k + 0.5) * H / N, t = i * H;
            const double d = sine(0, t) + s * sine(1, t) - sine(0, t + s);
            square += d * d / N;
            max = fmax(max, fabs(d));
        }
        check_near(p.f->rms, sqrt(square), 1e-6 * max);
        check_near(p.f->max, max, 2e-3 * max);
    }
    close_run(p.m, p.s);
}

static void a_slow_target_has_one_defect_for_all_of_its_step(void** state)
{
    crd_system* s = describe_pair(*state, 2, 2, CUBIC, CRD_PREDICTION_TAYLOR2, 0.8);
    s->units[1].step = 4 * H;
    pair p = open_pair(*state, s);
    for (int i = 0; i < 8; i++) {
        check_ok(crd_master_advance(p.m, 1));
        check_int(p.f->connection.steps, (i + 1) / 4);
    }
    check_near(p.f->rms, 4 * pow(4 * H, 3) / sqrt(7), 1e-9); // u leaves out 4 s^3
    check_near(p.f->max, 4 * pow(4 * H, 3), 1e-9);
    check_near(crd_defect_rms(&p.f->connection), p.f->rms, 1e-9);
    close_run(p.m, p.s);
}

static void a_slow_target_of_a_textbook_meets_every_sample(void** state)
{
    crd_system* s = describe_pair(*state, 2, 2, CUBIC, CRD_PREDICTION_QUADRATIC, 0.8);
    s->units[1].step = 4 * H;
    pair p = open_pair(*state, s);
    check_ok(crd_master_advance(p.m, 4));
    for (int i = 4; i < 8; i++) {
        check_ok(crd_master_advance(p.m, 1));
        const double a = (i - 4) * H, b = a + H;
        // u goes through three values: it misses 4 s (s + h) (s + 2 h), most at the end.
        check_near(p.f->max, 4 * b * (b + H) * (b + 2 * H), 1e-9);
        check(p.f->rms < p.f->max && p.f->rms > 4 * a * (a + H) * (a + 2 * H));
    }
    close_run(p.m, p.s);
}

static void a_slow_source_has_one_defect_for_all_of_its_step(void** state)
{
    crd_system* s = describe_pair(*state, 2, 2, CUBIC, CRD_PREDICTION_TAYLOR2, 0.8);
    s->units[0].step = 4 * H;
    pair p = open_pair(*state, s);
    check_ok(crd_master_advance(p.m, 3));
    check_int(p.f->connection.steps, 0);
    check_ok(crd_master_advance(p.m, 5));
    check_int(p.f->connection.steps, 2);
    check_near(p.f->rms, 4 * pow(4 * H, 3) / sqrt(7), 1e-9);
    check_near(crd_defect_rms(&p.f->connection), p.f->rms, 1e-9);
    close_run(p.m, p.s);
}

// The last of four steps knows how that of its source has ended, the three before predicted it.
static void of_a_slow_source_only_the_last_step_is_interpolated(void** state)
{
    crd_system* s = describe_pair(*state, 2, 2, CUBIC, CRD_PREDICTION_TAYLOR2, 0.8);
    s->units[0].step = 4 * H;
    check_ok(crd_system_set_scheme(s, "gauss-seidel: [s, p]", (crd_place){"", 0}));
    pair p = open_pair(*state, s);
    check_ok(crd_master_advance(p.m, 8));
    check_int(p.f->connection.steps, 2);
    check_near(p.f->rms, 4 * sqrt(pow(3 * H, 7) / (7 * 4 * H)), 1e-9);
    check_near(p.f->max, 4 * pow(3 * H, 3), 1e-9);
    check_near(p.f->bias, -pow(3 * H, 4) / (4 * H), 1e-9);
    close_run(p.m, p.s);
}

static void interpolated_inputs_have_no_defect(void** state)
{
    crd_system* s = describe_pair(*state, 2, 2, CUBIC, CRD_PREDICTION_AUTO, 1);
    check_ok(crd_system_set_scheme(s, "gauss-seidel: [s, p]", (crd_place){"", 0}));
    pair p = open_pair(*state, s);
    run_all(*state, p.m);
    check_int(p.f->connection.steps, 10);
    check_near(crd_defect_rms(&p.f->connection), 0, 1e-12);
    close_run(p.m, p.s);
}

// A line, held: u - y goes from 0 to -2 s, times the gain.
static void a_held_connection_is_watched(void** state)
{
    static const struct {
        double source, target, length;
    } rates[] = {{0, 0, 0.1}, {0.4, 0, 0.4}, {0, 0.4, 0.4}, {0.2, 0.4, 0.4}, {0.4, 0.2, 0.4}};
    for (int k = 0; k < 5; k++) {
        crd_system* s = describe_pair(*state, 0, 0, LINE, CRD_PREDICTION_HOLD, 1.2);
        s->units[0].step = rates[k].source;
        s->units[1].step = rates[k].target;
        s->connections[0].gain = 3;
        s->connections[0].offset = -1;
        s->connections[0].has_transformation = true;
        pair p = open_pair(*state, s);
        check(!p.f);
        check_int(p.m->connections.observed_count, 1);
        run_all(*state, p.m);
        const crd_flow_report* r = crd_master_get_report(p.m)->flows;
        check_near(r->rms, 6 * rates[k].length / sqrt(3), 1e-12);
        check_near(r->max, 6 * rates[k].length, 1e-12);
        check_near(r->scale, 6 * 1.2 - 1, 1e-12);
        check_text(r->used, "hold");
        close_run(p.m, p.s);
    }
}

static void a_watch_and_a_flow_say_the_same_of_a_held_line(void** state)
{
    static const char* const patterns[] = {"*.defect"};
    double rms[2], max[2];
    for (int k = 0; k < 2; k++) {
        crd_system* s = describe_pair(*state, 0, 0, LINE, CRD_PREDICTION_HOLD, 1);
        s->results.patterns = patterns;
        s->results.pattern_count = k; // who records a defect makes it a flow
        pair p = open_pair(*state, s);
        check_int(p.m->connections.prediction_count, k);
        run_all(*state, p.m);
        const crd_flow_report* r = crd_master_get_report(p.m)->flows;
        rms[k] = r->rms;
        max[k] = r->max;
        if (k) { check_near(p.f->bias, -H, 1e-12); }
        close_run(p.m, p.s);
    }
    check_near(rms[0], rms[1], 1e-12);
    check_near(max[0], max[1], 1e-12);
}

static void without_monitors_nothing_is_watched(void** state)
{
    crd_system* s = describe_pair(*state, 0, 0, LINE, CRD_PREDICTION_HOLD, 1);
    s->run.monitor = 0;
    pair p = open_pair(*state, s);
    check_int(p.m->connections.observed_count, 0);
    run_all(*state, p.m);
    check_int(crd_master_get_report(p.m)->flow_count, 0);
    close_run(p.m, p.s);
}

static void the_scale_is_the_largest_magnitude_so_far(void** state)
{
    pair p = open_pair(*state, describe_pair(*state, 2, 2, SINE, CRD_PREDICTION_AUTO, 1.5));
    run_all(*state, p.m);
    check_near(crd_master_get_report(p.m)->flows[0].scale, sine(0, 0.8), 1e-12);
    close_run(p.m, p.s);
}

static void without_a_derivative_that_is_a_number_values_predict(void** state)
{
    for (int k = 0; k < 2; k++) {
        crd_system* s =
            describe_pair(*state, 2, 2, k ? BAD_CURVE : BAD_RATE, CRD_PREDICTION_AUTO, 1);
        pair p = open_pair(*state, s);
        check_ok(crd_master_advance(p.m, 100));
        check(p.f->blind);
        check_int(p.f->end.order, k); // what is known of it: the value, and the slope
        for (int i = 0; i < said_count; i++) {
            check(isfinite(said[i].u + said[i].d1 + said[i].d2));
        }
        close_run(p.m, p.s);
    }
}

// ---- fresh outputs -----------------------------------------------------------------------------

// curve -> g (y = 5 u) -> listener
static crd_system* describe_through(crd_context* ctx, const char* name, int kind,
                                    crd_prediction predict)
{
    crd_system* s = new_system(ctx, H, 1.2);
    const int a = add_unit(s, "s", &curve_models[2], 0);
    const int g = add_unit(s, name, &gain_model, 0);
    const int b = add_unit(s, "p", &listener_models[0], 0);
    set_kind(s, a, kind);
    set(s, g, "a", "5");
    wire_as(s, a, g, predict);
    wire_as(s, g, b, predict);
    return s;
}

static const crdi_prediction* flow_from(const crd_master* m, int member)
{
    for (int i = 0; i < m->connections.prediction_count; i++) {
        if (m->connections.predictions[i].of->from.member == member) {
            return &m->connections.predictions[i];
        }
    }
    fail_msg("no flow from member %d", member);
    return NULL;
}

static void outputs_that_are_handed_on_have_fresh_inputs(void** state)
{
    static const char* const names[] = {"g", "deaf"}; // asked again; by its known gain
    for (int k = 0; k < 2; k++) {
        for (int predict = CRD_PREDICTION_AUTO; predict < CRD_PREDICTION_COUNT; predict++) {
            if (predict >= CRD_PREDICTION_HOLD && predict <= CRD_PREDICTION_QUADRATIC) { continue; }
            crd_system* s = describe_through(*state, names[k], CUBIC, (crd_prediction)predict);
            crd_master* m = open_run(*state, s);
            for (int i = 1; i <= 12; i++) {
                check_ok(crd_master_advance(m, 1));
                check_near(flow_from(m, 1)->past.sample[0].y[0], 5 * cubic(0, i * H), 1e-9);
                check_near(m->plan->members[1].outputs.real[0], 5 * cubic(0, i * H), 1e-9);
            }
            close_run(m, s);
        }
    }
}

// Feedthrough behind feedthrough, the last unit described first.
static void fresh_outputs_follow_the_order_of_feedthrough(void** state)
{
    for (int k = 0; k < 2; k++) {
        crd_system* s = new_system(*state, H, 1);
        const int p = add_unit(s, "p", &listener_models[0], 0);
        const int a = add_unit(s, k ? "g1" : "g2", &gain_model, 0);
        const int b = add_unit(s, k ? "g2" : "g1", &gain_model, 0);
        const int first = k ? a : b, last = k ? b : a;
        const int c = add_unit(s, "s", &curve_models[2], 0);
        set(s, a, "a", "5");
        set(s, b, "a", "5");
        wire_as(s, c, first, CRD_PREDICTION_AUTO);
        wire_as(s, first, last, CRD_PREDICTION_AUTO);
        wire_as(s, last, p, CRD_PREDICTION_AUTO);
        crd_master* m = open_run(*state, s);
        for (int i = 1; i <= 10; i++) {
            check_ok(crd_master_advance(m, 1));
            check_near(flow_from(m, last)->past.sample[0].y[0], 25 * cubic(0, i * H), 1e-8);
        }
        close_run(m, s);
    }
}

static void all_connections_of_a_fresh_output_get_it(void** state)
{
    crd_system* s = describe_through(*state, "g", CUBIC, CRD_PREDICTION_TAYLOR1);
    for (int i = 0; i < 2; i++) {
        wire_as(s, 1, add_unit(s, i ? "p2" : "p1", &listener_models[0], 0), CRD_PREDICTION_TAYLOR1);
    }
    crd_master* m = open_run(*state, s);
    run_all(*state, m);
    int count = 0;
    for (int i = 0; i < m->connections.prediction_count; i++) {
        if (m->connections.predictions[i].of->from.member != 1) { continue; }
        check_near(m->connections.predictions[i].past.sample[0].y[0], 5 * cubic(0, 1.2), 1e-9);
        count++;
    }
    check_int(count, 3);
    close_run(m, s);
}

static void strict_outputs_are_those_of_the_prediction(void** state)
{
    crd_system* s = describe_through(*state, "g", CUBIC, CRD_PREDICTION_TAYLOR1);
    s->run.feedthrough = CRD_DEFECT_STRICT;
    crd_master* m = open_run(*state, s);
    for (int i = 1; i <= 12; i++) {
        check_ok(crd_master_advance(m, 1));
        const double t = (i - 1) * H;
        check_near(flow_from(m, 1)->past.sample[0].y[0], 5 * (cubic(0, t) + H * cubic(1, t)), 1e-9);
    }
    close_run(m, s);
}

static void hold_refreshes_nothing(void** state)
{
    crd_system* s = describe_through(*state, "g", CUBIC, CRD_PREDICTION_HOLD);
    crd_master* m = open_run(*state, s);
    check_int(m->plan->refresh_count, 0);
    for (int i = 1; i <= 12; i++) {
        check_ok(crd_master_advance(m, 1));
        check_near(m->plan->members[1].outputs.real[0], 5 * cubic(0, (i - 1) * H), 1e-9);
    }
    close_run(m, s);
}

static void a_refreshed_row_of_the_record_is_the_fresh_one(void** state)
{
    crd_system* s = describe_through(*state, "g", CUBIC, CRD_PREDICTION_AB2);
    s->results.path = TEST_BUILD_DIR "/test_flow_fresh.csv";
    crd_master* m = open_run(*state, s);
    run_all(*state, m);
    check_ok(crd_master_finish(m));
    close_run(m, s);
    FILE* f = fopen(TEST_BUILD_DIR "/test_flow_fresh.csv", "r");
    check(f != NULL);
    char line[256];
    check(fgets(line, sizeof line, f));
    int rows = 0;
    for (double t, y, g; fscanf(f, "%lf,%lf,%lf%*[^\n]", &t, &y, &g) == 3; rows++) {
        check_near(y, cubic(0, t), 1e-9);
        check_near(g, 5 * cubic(0, t), 1e-9);
    }
    fclose(f);
    check_int(rows, 13);
}

// Between two samples of a slow source its prediction is the best there is; the last sample is old.
static void what_a_slow_source_has_not_given_yet_is_predicted_not_stale(void** state)
{
    static const char* const names[] = {"g", "deaf"};
    for (int k = 0; k < 2; k++) {
        crd_system* s = describe_through(*state, names[k], LINE, CRD_PREDICTION_TAYLOR1);
        s->units[0].step = 4 * H;
        crd_master* m = open_run(*state, s);
        for (int i = 1; i <= 12; i++) {
            check_ok(crd_master_advance(m, 1));
            check_near(m->plan->members[1].outputs.real[0], 5 * 2 * i * H, 1e-9);
        }
        close_run(m, s);
    }
}

static void samples_that_come_within_a_step_count_at_its_end(void** state)
{
    static const char* const names[] = {"g", "deaf"};
    for (int k = 0; k < 2; k++) {
        crd_system* s = describe_through(*state, names[k], CUBIC, CRD_PREDICTION_TAYLOR2);
        s->units[0].step = 3 * H;
        s->units[1].step = 2 * H;
        crd_master* m = open_run(*state, s);
        for (int i = 1; i <= 12; i++) {
            check_ok(crd_master_advance(m, 1));
            if (i % 2) { continue; }
            const double t = i / 3 * 3 * H, h = i * H - t; // from the newest sample
            check_near(m->plan->members[1].outputs.real[0],
                       5 * (cubic(0, t) + h * (cubic(1, t) + h / 2 * cubic(2, t))), 1e-9);
        }
        close_run(m, s);
    }
}

static void between_its_steps_a_slow_unit_is_left_alone(void** state)
{
    crd_system* s = describe_through(*state, "g", CUBIC, CRD_PREDICTION_TAYLOR2);
    s->units[1].step = 4 * H;
    crd_master* m = open_run(*state, s);
    for (int i = 1; i <= 12; i++) {
        check_ok(crd_master_advance(m, 1));
        check_near(m->plan->members[1].outputs.real[0], 5 * cubic(0, i / 4 * 4 * H), 1e-9);
    }
    close_run(m, s);
}

// x' = u: the second derivative of x is the first of u, which nobody gives.
static void derivatives_of_fresh_inputs_come_from_differences(void** state)
{
    crd_system* s = describe_pair(*state, 0, 0, CUBIC, CRD_PREDICTION_TAYLOR2, 1);
    const int e = add_unit(s, "e", &exact_model, 0);
    wire_as(s, 0, e, CRD_PREDICTION_TAYLOR2);
    wire_as(s, e, add_unit(s, "q", &listener_models[0], 0), CRD_PREDICTION_TAYLOR2);
    crd_master* m = open_run(*state, s);
    for (int i = 1; i <= 10; i++) {
        check_ok(crd_master_advance(m, 1));
        const double a = cubic(0, i * H), b = cubic(0, (i - 1) * H), c = cubic(0, (i - 2) * H);
        const crd_sample* y = &flow_from(m, e)->past.sample[0];
        check_near(y->y[1], a, 1e-9);
        if (i > 1) { check_near(y->y[2], (1.5 * a - 2 * b + 0.5 * c) / H, 1e-8); }
    }
    close_run(m, s);
}

static void half_steps_do_not_spoil_fresh_outputs(void** state)
{
    static const char* const names[] = {"g", "deaf"};
    for (int k = 0; k < 2; k++) {
        crd_system* s = describe_through(*state, names[k], CUBIC, CRD_PREDICTION_TAYLOR1);
        use_control(s, 1);
        s->run.control.first = s->run.control.floor = s->run.control.ceiling = H;
        crd_master* m = open_run(*state, s);
        check_int(m->plan->members[1].middles != NULL, 1);
        while (crd_master_ended(m) == CRD_END_NONE) {
            check_ok(crd_master_advance(m, 1));
            check_near(m->plan->members[1].outputs.real[0], 5 * cubic(0, m->clock.time), 1e-9);
        }
        close_run(m, s);
    }
}

static int add_fmu(crd_system* s, const char* name, const char* model)
{
    char path[512];
    snprintf(path, sizeof path, "%s/fmus/fmi2/%s.fmu", TEST_BUILD_DIR, model);
    crd_unit_spec u = crd_unit_spec_defaults();
    u.name = name;
    u.path = path;
    int index = -1;
    check_ok(crd_system_add_unit(s, &u, &index));
    return index;
}

static crd_system* describe_oscillator(crd_context* ctx)
{
    crd_system* s = new_system(ctx, 5e-3, 0.5);
    const int a = add_fmu(s, "first", "lo_fd1"), b = add_fmu(s, "second", "lo_fd2");
    wire(s, b, "x2", a, "x2")->predict = CRD_PREDICTION_AUTO;
    wire(s, b, "v2", a, "v2")->predict = CRD_PREDICTION_AUTO;
    wire(s, a, "f", b, "f")->predict = CRD_PREDICTION_AUTO;
    return s;
}

static void directional_derivatives_of_an_fmu_make_its_force_fresh(void** state)
{
    for (int k = 0; k < 4; k++) { // fresh and strict, on a grid and controlled in half steps
        crd_system* s = describe_oscillator(*state);
        if (k % 2) { s->run.feedthrough = CRD_DEFECT_STRICT; }
        if (k / 2) { use_control(s, 1e-5); }
        crd_master* m = open_run(*state, s);
        check(!(m->plan->members[0].unit->info.flags & CRD_UNIT_CAN_REFRESH));
        const double kc = value(m, "first.kc"), cc = value(m, "first.cc");
        double worst = 0, scale = 0;
        check_near(cc, 0, 0);
        while (crd_master_ended(m) == CRD_END_NONE) {
            check_ok(crd_master_advance(m, 1));
            const crd_sample* y = &flow_from(m, 0)->past.sample[0];
            const double rate = kc * (value(m, "first.v1") - value(m, "second.v2"));
            if (k % 2 == 0) { check_near(y->y[1], rate, 1e-9 * kc * 1e4); }
            check(y->order >= 1);
            const double f = kc * (value(m, "first.x1") - value(m, "second.x2")) +
                             cc * (value(m, "first.v1") - value(m, "second.v2"));
            worst = fmax(worst, fabs(m->plan->members[0].outputs.real[0] - f));
            scale = fmax(scale, fabs(f));
        }
        if (k % 2) {
            check(worst > 1e-8 * scale); // of the prediction
        } else {
            check_near(worst, 0, 1e-11 * scale);
        }
        close_run(m, s);
    }
}

// y = u, u predicted by its slope and y evaluated again when the curve is known: another input that
// holds y gets what the unit gave at the end of its step, with the predicted u.
static void held_outputs_are_not_those_that_were_made_fresh_for_others(void** state)
{
    crd_system* s = new_system(*state, 0.1, 1);
    const int a = add_unit(s, "curve", &curve_models[1], 0);
    const int b = add_unit(s, "gain", &gain_model, 0);
    const int c = add_unit(s, "held", &listener_models[0], 0);
    set_kind(s, a, CUBIC);
    wire_as(s, a, b, CRD_PREDICTION_TAYLOR1);
    wire_as(s, b, c, CRD_PREDICTION_HOLD);
    const int d = add_unit(s, "other", &listener_models[1], 0);
    wire_as(s, b, d, CRD_PREDICTION_TAYLOR1);
    crd_master* m = open_run(*state, s);
    run_all(*state, m);
    check_int(said_count, 20);
    for (int n = 1; n < 10; n++) {
        const double t = 0.1 * (n - 1);
        check_near(said[2 * n].u, cubic(0, t) + 0.1 * cubic(1, t), 1e-9);
        check_near(said[2 * n + 1].u, cubic(0, 0.1 * n), 1e-9);
    }
    close_run(m, s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_unit_gets_the_nearest_polynomial_of_the_degree_that_it_takes),
        TEST(a_taylor_polynomial_is_told_as_it_is_or_as_its_mean),
        TEST(adams_bashforth_holds_the_mean_of_the_curve_through_values),
        TEST(linear_and_quadratic_give_a_holding_unit_the_value_at_the_beginning),
        TEST(linear_and_quadratic_go_through_values_whatever_derivatives_are_known),
        TEST(in_gauss_seidel_order_the_known_step_is_interpolated),
        TEST(in_gauss_seidel_order_hold_takes_the_newest_value),
        TEST(gain_and_offset_act_on_the_value_and_the_gain_on_derivatives),
        TEST(a_slow_source_is_predicted_over_all_of_its_step),
        TEST(a_slow_target_is_told_the_curve_over_all_of_its_step),
        TEST(a_step_in_parts_is_told_part_by_part),
        TEST(adams_bashforth_of_a_slow_source_looks_over_all_of_its_step),
        TEST(a_line_stays_a_line_at_all_rates),
        TEST(behind_a_faster_source_the_newest_three_values_count),
        TEST(steps_that_nobody_looks_at_are_as_all_others),
        TEST(derivatives_count_as_far_as_the_unit_knows_those_of_its_inputs),
        TEST(the_defect_of_a_cubic_is_what_the_prediction_left_out),
        TEST(of_a_told_mean_the_defect_is_that_of_the_mean),
        TEST(of_a_textbook_that_is_held_the_defect_is_that_of_hold),
        TEST(the_defect_of_a_sine_is_found_without_knowing_the_sine),
        TEST(a_slow_target_has_one_defect_for_all_of_its_step),
        TEST(a_slow_target_of_a_textbook_meets_every_sample),
        TEST(a_slow_source_has_one_defect_for_all_of_its_step),
        TEST(of_a_slow_source_only_the_last_step_is_interpolated),
        TEST(interpolated_inputs_have_no_defect),
        TEST(a_held_connection_is_watched),
        TEST(a_watch_and_a_flow_say_the_same_of_a_held_line),
        TEST(without_monitors_nothing_is_watched),
        TEST(the_scale_is_the_largest_magnitude_so_far),
        TEST(fresh_outputs_follow_the_order_of_feedthrough),
        TEST(without_a_derivative_that_is_a_number_values_predict),
        TEST(outputs_that_are_handed_on_have_fresh_inputs),
        TEST(all_connections_of_a_fresh_output_get_it),
        TEST(strict_outputs_are_those_of_the_prediction),
        TEST(hold_refreshes_nothing),
        TEST(a_refreshed_row_of_the_record_is_the_fresh_one),
        TEST(what_a_slow_source_has_not_given_yet_is_predicted_not_stale),
        TEST(samples_that_come_within_a_step_count_at_its_end),
        TEST(between_its_steps_a_slow_unit_is_left_alone),
        TEST(derivatives_of_fresh_inputs_come_from_differences),
        TEST(half_steps_do_not_spoil_fresh_outputs),
        TEST(directional_derivatives_of_an_fmu_make_its_force_fresh),
        TEST(held_outputs_are_not_those_that_were_made_fresh_for_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
