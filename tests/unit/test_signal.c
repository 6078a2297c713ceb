// Signal generators against their formulas.
#include <float.h>
#include <stdio.h>

#include "unit_test.h"

#include "unit/signal/shapes.h"

#define PI 3.14159265358979323846

static crd_unit_spec signal_spec(const crd_signal_spec* signals, int count)
{
    crd_unit_spec spec = crd_unit_spec_defaults();
    spec.name = "source";
    spec.source = CRD_UNIT_SIGNAL;
    spec.signals = signals;
    spec.signal_count = count;
    return spec;
}

static crd_signal_spec shaped(crd_signal_shape shape)
{
    crd_signal_spec s = crd_signal_spec_defaults();
    s.shape = shape;
    s.offset = 10;
    s.amplitude = 3;
    s.start = 0.5;
    s.frequency = 2;
    s.frequency2 = 8;
    s.duration = 2;
    s.phase = 0.3;
    return s;
}

// The generator alone, for many times.
typedef struct generator {
    crd_context* ctx;
    crdi_shape shape;
} generator;

static generator generate(const crd_signal_spec* s)
{
    generator g = {.ctx = crd_context_create(NULL)};
    if (crdi_shape_init(g.ctx, s, &g.shape) < 0) { fail_msg("%s", crd_error_text(g.ctx)); }
    return g;
}

static double at(generator* g, double t)
{
    return crdi_shape_eval(&g->shape, t, 0);
}

static void done(generator* g)
{
    crdi_shape_clear(g->ctx, &g->shape);
    crd_context_destroy(g->ctx);
}

// Central differences of value and slope; where the shape is smooth.
static void check_derivatives(generator* g, double t, double scale)
{
    const double d = 1e-5;
    const double slope = (at(g, t + d) - at(g, t - d)) / (2 * d);
    const double bend =
        (crdi_shape_eval(&g->shape, t + d, 1) - crdi_shape_eval(&g->shape, t - d, 1)) / (2 * d);
    check_near(crdi_shape_eval(&g->shape, t, 1), slope, 1e-5 * scale);
    check_near(crdi_shape_eval(&g->shape, t, 2), bend, 1e-4 * scale * scale);
}

static void constant_step_and_ramp_have_their_values(void** state)
{
    (void)state;
    crd_signal_spec s = shaped(CRD_SIGNAL_CONSTANT);
    generator g = generate(&s);
    check_near(at(&g, -1), 13, 0);
    check_near(at(&g, 7), 13, 0);
    done(&g);
    s = shaped(CRD_SIGNAL_STEP);
    g = generate(&s);
    check_near(at(&g, 0.499999), 10, 0);
    check_near(at(&g, 0.5), 13, 0);
    check_near(crdi_shape_eval(&g.shape, 0.5, 1), 0, 0);
    done(&g);
    s = shaped(CRD_SIGNAL_RAMP);
    g = generate(&s);
    check_near(at(&g, 0), 10, 0);
    check_near(at(&g, 0.5), 10, 0);
    check_near(at(&g, 1.5), 11.5, 1e-15);
    check_near(at(&g, 2.5), 13, 0);
    check_near(at(&g, 9), 13, 0);
    check_near(crdi_shape_eval(&g.shape, 1, 1), 1.5, 0);
    check_near(crdi_shape_eval(&g.shape, 3, 1), 0, 0);
    check_near(crdi_shape_eval(&g.shape, 0.4, 1), 0, 0);
    done(&g);
}

static void a_step_at_a_multiple_of_the_step_size_comes_in_time(void** state)
{
    (void)state;
    for (int k = 1; k < 1000; k++) {
        crd_signal_spec s = shaped(CRD_SIGNAL_STEP);
        s.start = k * 0.1;
        generator g = generate(&s);
        check_near(at(&g, (k - 1) * 0.1 + 0.1), 13, 0); // t + h, which may be below k * 0.1
        check_near(at(&g, (k - 2) * 0.1 + 0.1), 10, 0);
        done(&g);
    }
}

static void sine_and_chirp_follow_their_formula(void** state)
{
    (void)state;
    crd_signal_spec s = shaped(CRD_SIGNAL_SINE);
    generator g = generate(&s);
    check_near(at(&g, 0.49), 10, 0);
    for (int k = 0; k < 100; k++) {
        const double t = 0.5 + k * 0.037;
        check_near(at(&g, t), 10 + 3 * sin(2 * PI * 2 * (t - 0.5) + 0.3), 1e-13);
        if (k > 0) { check_derivatives(&g, t, 3 * 2 * PI * 2); }
    }
    // no loss of phase after a day
    const double late = 0.5 + 86400 + 0.125;
    check_near(at(&g, late), 10 + 3 * sin(2 * PI * 0.25 + 0.3), 1e-9);
    done(&g);
    s = shaped(CRD_SIGNAL_CHIRP);
    g = generate(&s);
    for (int k = 1; k < 100; k++) {
        const double tau = k * 0.0313, in = tau < 2 ? tau : 2;
        const double phase = 2 * PI * (2 * in + (8 - 2) / (2 * 2.0) * in * in + 8 * (tau - in));
        check_near(at(&g, 0.5 + tau), 10 + 3 * sin(phase), 1e-12);
        if (fabs(tau - 2) > 1e-3) { check_derivatives(&g, 0.5 + tau, 3 * 2 * PI * 8); }
    }
    done(&g);
}

static void a_chirp_reaches_its_amplitude_and_crosses_zero_as_often_as_it_should(void** state)
{
    (void)state;
    crd_signal_spec s = shaped(CRD_SIGNAL_CHIRP);
    s.offset = 0;
    s.start = 0;
    s.duration = 10;
    generator g = generate(&s);
    double peak = 0, last = -1e-9;
    int crossings = 0;
    for (int k = 1; k < 100000; k++) {
        const double y = at(&g, k * 1e-4);
        crossings += last < 0 && y >= 0;
        peak = fmax(peak, fabs(y));
        last = y;
    }
    check_near(peak, 3, 1e-5);
    check_int(crossings, 50); // (2 + 8) / 2 Hz for 10 s
    done(&g);
}

static void prbs_has_full_period_and_is_balanced(void** state)
{
    (void)state;
    for (int n = 3; n <= 16; n++) {
        crd_signal_spec s = shaped(CRD_SIGNAL_PRBS);
        s.order = n;
        s.offset = 0;
        s.amplitude = 1;
        s.start = 0;
        s.duration = 0.01;
        s.seed = 5;
        generator g = generate(&s);
        const int period = (1 << n) - 1;
        int8_t* bits = malloc(2 * (size_t)period);
        int sum = 0;
        for (int k = 0; k < 2 * period; k++) {
            const double y = at(&g, (k + 0.5) * s.duration);
            check(y == 1 || y == -1);
            bits[k] = (int8_t)y;
            if (k < period) { sum += bits[k]; }
        }
        check_int(sum, 1); // 2^(n-1) ones, one less of the others
        check(memcmp(bits, bits + period, (size_t)period) == 0);
        // every window of n bits but one occurs once: the period is not shorter
        uint8_t* seen = calloc((size_t)period + 1, 1);
        for (int k = 0; k < period; k++) {
            int word = 0;
            for (int i = 0; i < n; i++) {
                word = 2 * word + (bits[k + i] > 0);
            }
            check(!seen[word]);
            seen[word] = 1;
        }
        free(seen);
        free(bits);
        done(&g);
    }
}

static void every_register_has_the_longest_period(void** state)
{
    (void)state;
    for (int n = 3; n <= 31; n++) {
        const uint64_t period = (UINT64_C(1) << n) - 1;
        check_int(crdi_prbs_jump(n, 1, period), 1);
        uint64_t rest = period;
        for (uint64_t q = 2; q * q <= rest || rest > 1; q++) {
            if (q * q > rest) { q = rest; } // the last prime factor
            if (rest % q) { continue; }
            while (rest % q == 0) {
                rest /= q;
            }
            if (q == period) { break; } // a Mersenne prime: any x other than 1 will do
            check(crdi_prbs_jump(n, 1, period / q) != 1);
        }
        check(crdi_prbs_jump(n, 1, 1) == 2);
    }
}

static void prbs_does_not_depend_on_what_was_asked_before(void** state)
{
    (void)state;
    crd_signal_spec s = shaped(CRD_SIGNAL_PRBS);
    s.order = 11;
    s.start = 0;
    s.duration = 0.1;
    generator a = generate(&s), b = generate(&s);
    uint32_t x = 1;
    double in_order[3000];
    for (int k = 0; k < 3000; k++) {
        in_order[k] = at(&a, k * 0.1); // at the edges: the new bit counts
    }
    for (int k = 0; k < 3000; k++) {
        x = x * 1664525u + 1013904223u;
        const int j = (int)(x >> 8) % 3000;
        check_near(at(&b, j * 0.1), in_order[j], 0);
        check_near(at(&b, j * 0.1 + 0.05), in_order[j], 0);
    }
    done(&a);
    done(&b);
}

static void a_multisine_has_flat_lines_and_low_peaks(void** state)
{
    (void)state;
    enum { LINES = 32, SAMPLES = 4096 };
    for (uint64_t seed = 0; seed < 2; seed++) {
        crd_signal_spec s = shaped(CRD_SIGNAL_MULTISINE);
        s.offset = 1;
        s.amplitude = 2;
        s.start = 0;
        s.order = LINES;
        s.frequency2 = 16;
        s.seed = seed;
        generator g = generate(&s);
        const double period = LINES / s.frequency2;
        static double y[SAMPLES];
        double mean = 0, power = 0, peak = 0;
        for (int k = 0; k < SAMPLES; k++) {
            y[k] = at(&g, period * k / SAMPLES);
            mean += y[k] / SAMPLES;
        }
        for (int k = 0; k < SAMPLES; k++) {
            power += (y[k] - mean) * (y[k] - mean) / SAMPLES;
            peak = fmax(peak, fabs(y[k] - mean));
        }
        check_near(mean, 1, 1e-12);
        check_near(sqrt(power), 2 / sqrt(2), 1e-12); // as a sine of amplitude 2
        // Schroeder's phases: peak over effective value about 1.7, all in phase would be 8
        if (seed == 0) { check(peak / sqrt(power) < 1.9); }
        if (seed != 0) { check(peak / sqrt(power) < 4.5); }
        for (int line = 1; line <= LINES + 2; line++) {
            double c = 0, d = 0;
            for (int k = 0; k < SAMPLES; k++) {
                const double angle = 2 * PI * (double)((int64_t)line * k % SAMPLES) / SAMPLES;
                c += y[k] * cos(angle) * 2 / SAMPLES;
                d += y[k] * sin(angle) * 2 / SAMPLES;
            }
            check_near(hypot(c, d), line <= LINES ? 2 / sqrt(LINES) : 0, 1e-12);
        }
        check_derivatives(&g, 0.777, 2 * 2 * PI * 16);
        done(&g);
    }
}

static void a_table_is_held_or_joined_by_lines(void** state)
{
    (void)state;
    const double times[] = {0, 1, 1, 3}, values[] = {0, 2, 5, 1};
    crd_signal_spec s = shaped(CRD_SIGNAL_TABLE);
    s.offset = 0;
    s.amplitude = 1;
    s.times = times;
    s.values = values;
    s.table_count = 4;
    const struct {
        double t, linear, hold, slope;
    } rows[] = {
        {-9, 0, 0, 0}, {0.5, 0, 0, 2}, {0.75, 0.5, 0, 2}, {1.5, 5, 5, -2},
        {2, 4, 5, -2}, {3.5, 1, 1, 0}, {99, 1, 1, 0},     {0.6, 0.2, 0, 2}, // and back
    };
    for (int hold = 0; hold < 2; hold++) {
        s.interpolation = hold ? CRD_INTERPOLATE_HOLD : CRD_INTERPOLATE_LINEAR;
        generator g = generate(&s);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            check_near(at(&g, rows[i].t), hold ? rows[i].hold : rows[i].linear, 1e-15);
            check_near(crdi_shape_eval(&g.shape, rows[i].t, 1), hold ? 0 : rows[i].slope, 1e-14);
        }
        done(&g);
    }
}

static void several_signals_are_one_unit(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_signal_spec s[] = {shaped(CRD_SIGNAL_SINE), shaped(CRD_SIGNAL_STEP)};
    s[0].name = "a";
    s[0].unit = "N.m";
    s[1].name = "b";
    const crd_unit_spec spec = signal_spec(s, 2);
    crd_unit* u = make(ctx, &spec);
    check(u->info.flags & CRD_UNIT_IS_SOURCE);
    check_int(u->info.variables[1].variability, CRD_DISCRETE);
    start(u, 0.5, 2);
    bound out = bind_names(u, "b a");
    get(&out);
    check_near(out.v.real[0], 13, 0);
    check_near(out.v.real[1], 10 + 3 * sin(0.3), 1e-14);
    step(u, 0.5, 0.25);
    get(&out);
    check_near(out.v.real[1], 10 + 3 * sin(PI + 0.3), 1e-13);
    double d[2];
    check_ok(u->ops->derivatives->get(u, out.b, 1, d));
    check_near(d[0], 0, 0);
    check_near(d[1], 3 * 4 * PI * cos(PI + 0.3), 1e-11);
    void* saved = NULL;
    check_ok(u->ops->state->save(u, &saved));
    const double y = out.v.real[1];
    step(u, 0.75, 0.1);
    check_ok(u->ops->state->restore(u, saved));
    get(&out);
    check_near(out.v.real[1], y, 0);
    u->ops->state->free(u, &saved);
    crd_dimension dim;
    check(crdi_unit_dimension(u, 0, &dim) && dim.kg == 1 && dim.m == 2 && dim.s == -2);
    check(!crdi_unit_dimension(u, 1, &dim));
    unbind(&out);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void numbers_that_make_no_sense_are_refused_with_their_place(void** state)
{
    (void)state;
    const double times[] = {0, 2, 1}, values[] = {0, 1, 2};
    crd_signal_spec cases[12];
    const char* parts[12];
    int n = 0;
#define CASE(shape_, part, ...)                                                                    \
    do {                                                                                           \
        crd_signal_spec c = shaped(shape_);                                                        \
        __VA_ARGS__;                                                                               \
        cases[n] = c;                                                                              \
        parts[n++] = part;                                                                         \
    } while (0)
    CASE(CRD_SIGNAL_RAMP, "duration = 0, expected > 0", c.duration = 0);
    CASE(CRD_SIGNAL_CHIRP, "duration = -1, expected > 0", c.duration = -1);
    CASE(CRD_SIGNAL_PRBS, "duration = nan, expected > 0", c.duration = NAN);
    CASE(CRD_SIGNAL_PRBS, "order = 2, expected 3 to 31", c.order = 2);
    CASE(CRD_SIGNAL_PRBS, "order = 32, expected 3 to 31", c.order = 32);
    CASE(CRD_SIGNAL_SINE, "frequency = 0, expected > 0", c.frequency = 0);
    CASE(CRD_SIGNAL_CHIRP, "expected frequencies >= 0", c.frequency2 = -1);
    CASE(CRD_SIGNAL_MULTISINE, "frequency2 = 0, expected > 0", c.frequency2 = 0);
    CASE(CRD_SIGNAL_MULTISINE, "order = 0, expected 1 to 10000", c.order = 0);
    CASE(CRD_SIGNAL_STEP, "amplitude = inf, expected a finite number", c.amplitude = INFINITY);
    CASE(CRD_SIGNAL_TABLE, "the table is empty", c.table_count = 0);
    CASE(CRD_SIGNAL_TABLE, "time 1 in row 3 of the table comes after 2",
         (c.times = times, c.values = values, c.table_count = 3));
    for (int i = 0; i < n; i++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        crd_signal_spec pair[] = {shaped(CRD_SIGNAL_STEP), cases[i]};
        pair[0].name = "first";
        pair[1].place = (crd_place){"sys.yaml", 12};
        const crd_unit_spec spec = signal_spec(pair, 2);
        crd_unit* u = NULL;
        check_status(crd_unit_create(ctx, &spec, &u), CRD_E_RANGE);
        check_contains(crd_error_text(ctx), "sys.yaml:12: unit 'source': signal 'y'");
        check_contains(crd_error_text(ctx), parts[i]);
        crd_context_destroy(ctx);
        check_int(a.live, 0);
    }
    crd_context* ctx = crd_context_create(NULL);
    const crd_signal_spec twice[] = {shaped(CRD_SIGNAL_STEP), shaped(CRD_SIGNAL_STEP)};
    const crd_unit_spec spec = signal_spec(twice, 2);
    crd_unit* u = NULL;
    check_status(crd_unit_create(ctx, &spec, &u), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "two signals are called 'y'");
    crd_context_destroy(ctx);
}

static void steps_do_not_allocate(void** state)
{
    (void)state;
    check_allocator a;
    crd_context* ctx = check_context(&a);
    const double times[] = {0, 1, 2}, values[] = {0, 1, 2};
    crd_signal_spec s[CRD_SIGNAL_SHAPE_COUNT];
    const char* const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    for (int i = 0; i < CRD_SIGNAL_SHAPE_COUNT; i++) {
        s[i] = shaped((crd_signal_shape)i);
        s[i].name = names[i];
        s[i].times = times;
        s[i].values = values;
        s[i].table_count = 3;
    }
    const crd_unit_spec spec = signal_spec(s, CRD_SIGNAL_SHAPE_COUNT);
    crd_unit* u = make(ctx, &spec);
    start(u, 0, 100);
    check_steps_do_not_allocate(&a, u, "", "a b c d e f g h", 0.01);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

static void lack_of_memory_is_survived(void** state)
{
    (void)state;
    crd_signal_spec s[] = {shaped(CRD_SIGNAL_MULTISINE), shaped(CRD_SIGNAL_PRBS)};
    s[0].name = "a";
    const crd_unit_spec spec = signal_spec(s, 2);
    check_survives_lack_of_memory(&spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constant_step_and_ramp_have_their_values),
        cmocka_unit_test(a_step_at_a_multiple_of_the_step_size_comes_in_time),
        cmocka_unit_test(sine_and_chirp_follow_their_formula),
        cmocka_unit_test(a_chirp_reaches_its_amplitude_and_crosses_zero_as_often_as_it_should),
        cmocka_unit_test(prbs_has_full_period_and_is_balanced),
        cmocka_unit_test(every_register_has_the_longest_period),
        cmocka_unit_test(prbs_does_not_depend_on_what_was_asked_before),
        cmocka_unit_test(a_multisine_has_flat_lines_and_low_peaks),
        cmocka_unit_test(a_table_is_held_or_joined_by_lines),
        cmocka_unit_test(several_signals_are_one_unit),
        cmocka_unit_test(numbers_that_make_no_sense_are_refused_with_their_place),
        cmocka_unit_test(steps_do_not_allocate),
        cmocka_unit_test(lack_of_memory_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
