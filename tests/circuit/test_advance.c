// Steps of varying size against solutions in closed form and the references of Rodriguez 2021:
// accuracy, cost, corners, events, and what is left behind. Derivatives of outputs.
#include "circuit/build.h"
#include "shared/num.h"

static build b;
static crd_circuit_form form; // of all circuits below
static reference ref;

static const crd_circuit_method methods[] = {CRD_METHOD_BDF1, CRD_METHOD_BDF2, CRD_METHOD_BDF3,
                                             CRD_METHOD_TR, CRD_METHOD_TRBDF2};
#define METHODS (sizeof methods / sizeof *methods)

static crd_netlist* parse(crd_context* ctx, const char* text)
{
    crd_netlist* n = NULL;
    const crd_netlist_options o = {.max_parts = 1000};
    if (crd_netlist_parse(ctx, text, strlen(text), "text", &o, &n) < 0) {
        fail_msg("%s", crd_error_text(ctx));
    }
    return n;
}

static crd_circuit* begin(crd_context* ctx, const crd_netlist* n, crd_circuit_method method,
                          double step)
{
    crd_circuit_options o = crd_circuit_defaults();
    o.method = method;
    o.step = step;
    o.form = form;
    crd_circuit* c = NULL;
    if (crd_circuit_create(ctx, n, &o, &c) < 0 || crd_circuit_begin(c, 0) < 0) {
        fail_msg("%s", crd_error_text(ctx));
    }
    return c;
}

static crd_circuit_control control_of(double relative)
{
    crd_circuit_control k = crd_circuit_control_defaults();
    k.relative = relative;
    k.voltage = k.current = 1e-2 * relative;
    return k;
}

static void advance(crd_context* ctx, crd_circuit* c, double stop, const crd_circuit_control* k)
{
    if (crd_circuit_advance(c, stop, k) < 0) { fail_msg("%s", crd_error_text(ctx)); }
}

static void advance_to(crd_context* ctx, crd_circuit* c, double stop, const crd_circuit_control* k)
{
    while (crd_circuit_time(c) < stop) {
        advance(ctx, c, stop, k);
    }
    check(crd_circuit_time(c) == stop);
}

// ---- accuracy ----------------------------------------------------------------------------------

typedef struct outcome {
    double y, z;
    crd_circuit_counts counts;
} outcome;

// Errors of two signals, divided by their sizes, at the samples of the reference.
static outcome errors_of(crd_context* ctx, const watch* w, crd_circuit_method method,
                         double relative)
{
    crd_circuit* c = begin(ctx, &b.n, method, 1e-3);
    const crd_circuit_control k = control_of(relative);
    double y = 0, z = 0, size_y = 0, size_z = 0;
    for (int i = 0; i < ref.count; i++) {
        advance_to(ctx, c, ref.t[i], &k);
        y = fmax(y, fabs(run_difference(c, w) - ref.y[i]));
        z = fmax(z, fabs(crd_circuit_current(c, w->part) - ref.z[i]));
        size_y = fmax(size_y, fabs(ref.y[i]));
        size_z = fmax(size_z, fabs(ref.z[i]));
    }
    const outcome o = {y / size_y, z / size_z, crd_circuit_get_counts(c)};
    crd_circuit_destroy(c);
    return o;
}

// A method of order p makes steps with local errors of `relative`: about relative^(-1/(p+1)) of
// them, so that the error falls at least with relative^(p/(p+1)).
static void check_decades(crd_context* ctx, const watch* w, double most)
{
    for (size_t m = 0; m < METHODS; m++) {
        const int order = (int[]){1, 2, 3, 2, 2}[m];
        const double coarse = 1e-3, fine = 1e-6;
        const outcome a = errors_of(ctx, w, methods[m], coarse);
        const outcome o = errors_of(ctx, w, methods[m], fine);
        const double fall = pow(fine / coarse, order / (order + 1.0));
        if (!(a.y <= most && a.z <= most && o.y <= 3 * fall * most && o.z <= 3 * fall * most)) {
            fail_msg("method %d: errors %g, %g at 1e-3, %g, %g at 1e-6", (int)methods[m], a.y, a.z,
                     o.y, o.z);
        }
    }
}

static void errors_follow_the_tolerance_on_the_rlc_circuit(void** state)
{
    build_rlc(&b);
    reference_load(&ref, "rlc_reference.csv", 1, 2);
    ref.count = 200;
    const watch w = {2, 0, build_find(&b, "L1")};
    check_decades(*state, &w, 0.05);
}

static void errors_follow_the_tolerance_on_the_scalable_circuit(void** state)
{
    build_scalable(&b, 2);
    reference_load(&ref, "scrlc_N2_reference.csv", 1, 2);
    const watch w = {5, 0, build_find(&b, "L2")};
    check_decades(*state, &w, 0.05);
}

static void errors_follow_the_tolerance_on_the_rectifier(void** state)
{
    build_rectifier(&b);
    reference_load(&ref, "rectifier_reference.csv", 1, 2);
    const watch w = {1, 2, build_find(&b, "L1")};
    ref.count = 300;
    check_decades(*state, &w, 0.05);
}

static int64_t steps_of(crd_context* ctx, const crd_netlist* n, crd_circuit_method method,
                        double relative, double stop)
{
    crd_circuit* c = begin(ctx, n, method, 1e-3);
    const crd_circuit_control k = control_of(relative);
    advance_to(ctx, c, stop, &k);
    const int64_t steps = crd_circuit_get_counts(c).steps;
    crd_circuit_destroy(c);
    return steps;
}

static void a_higher_order_needs_fewer_steps(void** state)
{
    build_scalable(&b, 2);
    const int64_t one = steps_of(*state, &b.n, CRD_METHOD_BDF1, 1e-6, 1);
    const int64_t two = steps_of(*state, &b.n, CRD_METHOD_BDF2, 1e-6, 1);
    const int64_t three = steps_of(*state, &b.n, CRD_METHOD_BDF3, 1e-6, 1);
    const int64_t tr = steps_of(*state, &b.n, CRD_METHOD_TR, 1e-6, 1);
    check(one > 5 * two && 2 * two > 3 * three && tr < two);
}

static void steps_grow_where_nothing_happens(void** state)
{
    crd_netlist* n = parse(*state, "decay\nC1 1 0 1u ic=1\nR1 1 0 1k\n.tran 1u 1 uic\n.end\n");
    for (size_t m = 0; m < METHODS; m++) {
        crd_circuit* c = begin(*state, n, methods[m], 1e-6);
        const crd_circuit_control k = crd_circuit_control_defaults();
        advance_to(*state, c, 1, &k); // a thousand time constants
        check(crd_circuit_get_counts(c).steps < 600);
        check_near(crd_circuit_voltage(c, 1), 0, 2e-4);
        crd_circuit_destroy(c);
    }
    crd_netlist_destroy(n);
}

static void steps_keep_within_the_limits_given(void** state)
{
    build_scalable(&b, 2);
    crd_circuit* c = begin(*state, &b.n, CRD_METHOD_TR, 1e-3);
    crd_circuit_control k = control_of(1e-2);
    k.largest = 3e-4;
    for (double t = 0; t < 0.1; t = crd_circuit_time(c)) {
        advance(*state, c, 0.1, &k);
        check(crd_circuit_time(c) - t <= 3e-4 * (1 + 1e-9));
    }
    crd_circuit_destroy(c);
}

// ---- corners -----------------------------------------------------------------------------------

// v' = (u - v) / tau with u straight between corners, exactly.
static double follow(const double* t, const double* u, int count, double tau, double stop)
{
    double v = u[0];
    for (int i = 0; i + 1 < count && t[i] < stop; i++) {
        const double slope = t[i + 1] > t[i] ? (u[i + 1] - u[i]) / (t[i + 1] - t[i]) : 0;
        const double h = fmin(t[i + 1], stop) - t[i], lag = slope * tau;
        v = (v - u[i] + lag) * exp(-h / tau) + u[i] + slope * h - lag;
    }
    return v;
}

static void corners_of_a_pulse_are_stepped_onto(void** state)
{
    static const double t[] = {0,    1e-3,     1.001e-3, 3.001e-3, 3.002e-3,
                               6e-3, 6.001e-3, 8.001e-3, 8.002e-3, 1};
    static const double u[] = {0, 0, 1, 1, 0, 0, 1, 1, 0, 0};
    crd_netlist* n = parse(*state, "pulse\nV1 in 0 PULSE(0 1 1m 1u 1u 2m 5m)\nR1 in out 1k\n"
                                   "C1 out 0 1u ic=0\n.end\n");
    const int32_t out = crd_netlist_node(n, "out");
    for (size_t m = 0; m < METHODS; m++) {
        crd_circuit* c = begin(*state, n, methods[m], 1e-4);
        const crd_circuit_control k = control_of(1e-6);
        double next = crd_waveform_next(&n->waves[0], 0), worst = 0;
        int corners = 0;
        while (crd_circuit_time(c) < 9e-3) {
            advance(*state, c, 9e-3, &k);
            const double now = crd_circuit_time(c);
            check(now <= next); // bit for bit
            if (now == next) {
                corners++;
                next = crd_waveform_next(&n->waves[0], now);
            }
            worst = fmax(worst, fabs(crd_circuit_voltage(c, out) - follow(t, u, 10, 1e-3, now)));
        }
        check_int(corners, 8);
        check_int(crd_circuit_get_counts(c).events, 8);
        check_near(worst, 0, m == 0 ? 2e-3 : 5e-5);
        crd_circuit_destroy(c);
    }
    crd_netlist_destroy(n);
}

static void a_source_of_many_points_is_followed(void** state)
{
    static const double t[] = {0, 1e-3, 1.5e-3, 1.5e-3, 4e-3, 4.0001e-3, 7e-3, 1};
    static const double u[] = {0, 2, -1, -1, 3, 0, 1, 1};
    crd_netlist* n = parse(*state, "points\nV1 in 0 PWL(0 0 1m 2 1.5m -1 4m 3 4.0001m 0 7m 1)\n"
                                   "R1 in out 1k\nC1 out 0 1u ic=0\n.end\n");
    crd_circuit* c = begin(*state, n, CRD_METHOD_TR, 1e-3);
    const crd_circuit_control k = control_of(1e-6);
    while (crd_circuit_time(c) < 9e-3) {
        advance(*state, c, 9e-3, &k);
        const double want = follow(t, u, 8, 1e-3, crd_circuit_time(c));
        check_near(crd_circuit_voltage(c, crd_netlist_node(n, "out")), want, 1e-4);
    }
    crd_circuit_destroy(c);
    crd_netlist_destroy(n);
}

static void tr_does_not_ring_after_a_corner(void** state)
{
    // a capacitor across a ramp: its current jumps at the corners, and is C times the slope
    crd_netlist* n =
        parse(*state, "ring\nV1 1 0 PULSE(0 1 1m 1m 1m 1m 10m)\nC1 1 0 1u\nR1 1 0 1k\n.end\n");
    crd_circuit* c = begin(*state, n, CRD_METHOD_TR, 1e-4);
    const crd_circuit_control k = control_of(1e-4);
    const int32_t part = crd_netlist_part(n, "c1");
    while (crd_circuit_time(c) < 9e-3) {
        advance(*state, c, 9e-3, &k);
        const double t = crd_circuit_time(c); // the left side counts
        const double want = t > 1e-3 && t <= 2e-3 ? 1e-3 : t > 3e-3 && t <= 4e-3 ? -1e-3 : 0;
        check_near(crd_circuit_current(c, part), want, 1e-9);
    }
    crd_circuit_destroy(c);
    crd_netlist_destroy(n);
}

static void a_voltage_that_jumps_takes_capacitors_along(void** state)
{
    build_init(&b);
    build_source(&b, CRD_PART_VOLTAGE, "V1", 1, 0,
                 (crd_waveform){.kind = CRD_WAVE_PULSE, .v = {0, 5, 1e-3, 0, 0, 1, 2}});
    build_part(&b, CRD_PART_CAPACITOR, "C1", 1, 2, 1e-6);
    build_part(&b, CRD_PART_CAPACITOR, "C2", 2, 0, 4e-6);
    build_part(&b, CRD_PART_RESISTOR, "R1", 2, 0, 1e3);
    for (size_t m = 0; m < METHODS; m++) {
        crd_circuit* c = begin(*state, &b.n, methods[m], 1e-4);
        const crd_circuit_control k = control_of(1e-5);
        advance_to(*state, c, 2e-3, &k);
        check_near(crd_circuit_voltage(c, 1), 5, 1e-12);
        // a divider at once, then 5 uF through 1 kOhm
        check_near(crd_circuit_voltage(c, 2), exp(-0.2), m == 0 ? 5e-3 : 2e-4);
        crd_circuit_destroy(c);
    }
}

// ---- events ------------------------------------------------------------------------------------

static const char* const relaxation = "relaxation\nV1 in 0 10\nR1 in c 1k\nC1 c 0 1u ic=0\n"
                                      "S1 c d c 0 sw\nR2 d 0 100\n"
                                      ".model sw sw(vt=4 vh=2 ron=1 roff=1e12)\n.end\n";

// When C has been charged to 6 V and discharged to 2 V for the `count`-th time.
static double relaxation_moment(int count)
{
    double t = 0, v = 0;
    for (int k = 0; k < count; k++) {
        const double g = 1e-3 + (k % 2 == 0 ? 1 / (1e12 + 100) : 1 / 101.0);
        const double rest = 10e-3 / g, to = k % 2 == 0 ? 6 : 2;
        t += 1e-6 / g * log((v - rest) / (to - rest));
        v = to;
    }
    return t;
}

static void moments_of_switching_have_the_error_of_the_solution(void** state)
{
    crd_netlist* n = parse(*state, relaxation);
    for (size_t m = 1; m < METHODS; m++) {
        double off[2] = {0, 0};
        for (int fine = 0; fine < 2; fine++) {
            crd_circuit* c = begin(*state, n, methods[m], 1e-5);
            const crd_circuit_control k = control_of(fine ? 1e-7 : 1e-4);
            int64_t seen = 0;
            while (seen < 9) {
                advance(*state, c, 5e-3, &k);
                const int64_t now = crd_circuit_get_counts(c).events;
                if (now > seen) {
                    const double t = relaxation_moment((int)now);
                    off[fine] = fmax(off[fine], fabs(crd_circuit_time(c) - t) / t);
                }
                seen = now;
            }
            crd_circuit_destroy(c);
        }
        if (!(off[0] < 1e-3 && off[1] < 2e-5)) {
            fail_msg("method %d: off by %g, %g", (int)methods[m], off[0], off[1]);
        }
    }
    crd_netlist_destroy(n);
}

static void a_switch_that_a_source_moves_is_hit_to_1e_9(void** state)
{
    crd_netlist* n = parse(*state, "sine\nVs g 0 SIN(0 1 50)\nRs g h 1k\nRh h 0 1k\n"
                                   "V1 in 0 1\nS1 in out h 0 sw\nR1 out 0 1k\nC1 out 0 1u ic=0\n"
                                   ".model sw sw(vt=0.1 vh=0.2 ron=1 roff=1meg)\n.end\n");
    // 0.5 sin passes 0.3 upwards and -0.1 downwards
    const double up = asin(0.6) / (100 * M_PI), down = (M_PI + asin(0.2)) / (100 * M_PI);
    for (size_t m = 0; m < METHODS; m++) {
        crd_circuit* c = begin(*state, n, methods[m], 1e-3);
        const crd_circuit_control k = control_of(1e-4);
        int64_t seen = 0;
        while (seen < 6) {
            advance(*state, c, 1, &k);
            const int64_t now = crd_circuit_get_counts(c).events;
            if (now > seen) {
                const double want = (double)(seen / 2) * 0.02 + (seen % 2 == 0 ? up : down);
                check_near(crd_circuit_time(c) / want, 1, 1e-9);
            }
            seen = now;
        }
        crd_circuit_destroy(c);
    }
    crd_netlist_destroy(n);
}

static void a_current_switch_is_hit_too(void** state)
{
    crd_netlist* n = parse(*state, "ramp\nVs g 0 PWL(0 0 1 10)\nRs g 0 1\n"
                                   "V1 in 0 1\nW1 in out Vs ws\nR1 out 0 1k\nC1 out 0 1u ic=0\n"
                                   ".model ws csw(it=-3 ih=0 ron=1 roff=1meg)\n.end\n");
    crd_circuit* c = begin(*state, n, CRD_METHOD_BDF2, 1e-3);
    const crd_circuit_control k = control_of(1e-4);
    while (crd_circuit_get_counts(c).events == 0) {
        advance(*state, c, 1, &k);
    }
    check_near(crd_circuit_time(c), 0.3, 1e-10); // -10 t passes -3 A downwards: it opens
    const double before = crd_circuit_voltage(c, crd_netlist_node(n, "out"));
    check_near(before, 1 / 1.001, 1e-4);
    advance_to(*state, c, 0.31, &k);
    check(crd_circuit_voltage(c, crd_netlist_node(n, "out")) < 0.01);
    crd_circuit_destroy(c);
    crd_netlist_destroy(n);
}

// x' = a x + f for two states
static void propagate(const double a[4], const double f[2], double t, double x[2])
{
    double e[9] = {a[0] * t, a[1] * t, f[0] * t, a[2] * t, a[3] * t, f[1] * t}, work[64];
    check_ok(crdi_num_expm(3, e, work));
    const double y[2] = {e[0] * x[0] + e[1] * x[1] + e[2], e[3] * x[0] + e[4] * x[1] + e[5]};
    x[0] = y[0];
    x[1] = y[1];
}

static const char* const buck = "buck\nV1 in 0 24\nVg g 0 pulse(0 5 0 10n 10n 4u 10u)\n"
                                "S1 in sw g 0 hi\nS2 sw 0 0 g lo\nL1 sw out 100u ic=0\n"
                                "C1 out 0 10u ic=0\nR1 out 0 5\n"
                                ".model hi sw(vt=2.5 vh=0 ron=10m roff=1meg)\n"
                                ".model lo sw(vt=-2.5 vh=0 ron=10m roff=1meg)\n.end\n";

static void buck_exactly(double stop, double x[2]) // current of L, voltage of C
{
    const double on = 1e-2, off = 1e6, g = 1 / on + 1 / off, l = 100e-6, c = 10e-6;
    const double a[4] = {-1 / g / l, -1 / l, 1 / c, -1 / (5 * c)};
    double t = 0;
    for (int k = 0; t < stop; k++) { // closed from 5 ns to 4.015 us
        const double to = k % 2 == 0 ? k / 2 * 10e-6 + 5e-9 : k / 2 * 10e-6 + 4.015e-6;
        const double f[2] = {24 / (k % 2 == 0 ? off : on) / g / l, 0};
        propagate(a, f, fmin(to, stop) - t, x);
        t = to;
    }
}

static void a_switching_converter_is_followed(void** state)
{
    crd_netlist* n = parse(*state, buck);
    double want[2] = {0, 0};
    buck_exactly(2e-4, want);
    for (size_t m = 1; m < METHODS; m++) {
        double off[2];
        for (int fine = 0; fine < 2; fine++) {
            crd_circuit* c = begin(*state, n, methods[m], 1e-6);
            const crd_circuit_control k = control_of(fine ? 1e-7 : 1e-3);
            advance_to(*state, c, 2e-4, &k);
            const double v = crd_circuit_voltage(c, crd_netlist_node(n, "out"));
            const double i = crd_circuit_current(c, crd_netlist_part(n, "l1"));
            off[fine] = fmax(fabs(v / want[1] - 1), fabs(i / want[0] - 1));
            crd_circuit_destroy(c);
        }
        if (!(off[0] < 2e-3 && off[1] < 1e-5)) {
            fail_msg("method %d: off by %g, %g", (int)methods[m], off[0], off[1]);
        }
    }
    crd_netlist_destroy(n);
}

static void switches_that_move_each_other_move_at_once(void** state)
{
    crd_netlist* n = parse(*state, "cascade\nVs g 0 PWL(0 0 1m 1)\nV1 a 0 1\n"
                                   "S1 a b g 0 sw\nRb b 0 1k\nS2 a c b 0 sw\nRc c 0 1k\n"
                                   "S3 a d c 0 sw\nRd d 0 1k\nCd d 0 1n ic=0\n"
                                   ".model sw sw(vt=0.5 vh=0 ron=1 roff=1g)\n.end\n");
    crd_circuit* c = begin(*state, n, CRD_METHOD_TR, 1e-4);
    const crd_circuit_control k = control_of(1e-4);
    advance_to(*state, c, 0.499e-3, &k);
    check(crd_circuit_voltage(c, crd_netlist_node(n, "d")) < 1e-3);
    advance_to(*state, c, 0.501e-3, &k);
    check_near(crd_circuit_voltage(c, crd_netlist_node(n, "d")), 1 / 1.001, 1e-6);
    crd_circuit_destroy(c);
    crd_netlist_destroy(n);
}

static void switches_without_rest_do_not_stop_the_run(void** state)
{
    // open it is to close, closed it is to open
    crd_netlist* n = parse(*state, "restless\nV1 1 0 1\nR1 1 2 1k\nS1 2 0 2 0 sw\nR3 2 3 1k\n"
                                   "C3 3 0 1u ic=0\n.model sw sw(vt=0.5 ron=1 roff=1g)\n.end\n");
    for (size_t m = 0; m < METHODS; m++) {
        crd_circuit* c = begin(*state, n, methods[m], 1e-4);
        const crd_circuit_control k = control_of(1e-3);
        for (int i = 0; i < 2000 && crd_circuit_time(c) < 1e-2; i++) {
            advance(*state, c, 1e-2, &k);
        }
        check(crd_circuit_time(c) == 1e-2);
        crd_circuit_destroy(c);
    }
    crd_netlist_destroy(n);
}

static void an_input_that_changes_begins_a_new_stretch(void** state)
{
    crd_netlist* n = parse(*state, "step\n.input u start=0\nV1 in 0 input(u)\nR1 in out 1k\n"
                                   "C1 out 0 1u ic=0\n.end\n");
    const int32_t out = crd_netlist_node(n, "out");
    crd_circuit* c = begin(*state, n, CRD_METHOD_TR, 1e-3);
    const crd_circuit_control k = control_of(1e-6);
    advance_to(*state, c, 1, &k); // long steps by now
    check_ok(crd_circuit_set_input(c, 0, 1));
    advance_to(*state, c, 1.001, &k);
    check_near(crd_circuit_voltage(c, out), -expm1(-1), 1e-5);
    crd_circuit_destroy(c);
    crd_netlist_destroy(n);
}

// ---- what is left behind -----------------------------------------------------------------------

static void a_rejected_step_leaves_nothing_behind(void** state)
{
    build_rectifier(&b);
    for (size_t m = 0; m < METHODS; m++) {
        crd_circuit* c = begin(*state, &b.n, methods[m], 1e-3);
        crd_circuit_control k = control_of(1e-5);
        k.smallest = 1e-12;
        advance(*state, c, 1, &k);
        check(crd_circuit_get_counts(c).rejected > 0);
        // on the same ladder, without a rejection
        crd_circuit* d = begin(*state, &b.n, methods[m], crd_circuit_time(c));
        advance(*state, d, 1, &k);
        check_int(crd_circuit_get_counts(d).rejected, 0);
        for (int i = 0; i < 200; i++) {
            check(crd_circuit_time(c) == crd_circuit_time(d));
            check(crd_circuit_voltage(c, 2) == crd_circuit_voltage(d, 2));
            check(crd_circuit_current(c, 6) == crd_circuit_current(d, 6));
            advance(*state, c, 1, &k);
            advance(*state, d, 1, &k);
        }
        check(crd_circuit_get_counts(d).rejected > 0); // there are, and at different times
        crd_circuit_destroy(c);
        crd_circuit_destroy(d);
    }
}

static void a_restored_state_goes_on_the_same_way_twice(void** state)
{
    crd_netlist* n = parse(*state, relaxation);
    crd_circuit* c = begin(*state, n, CRD_METHOD_BDF2, 1e-5);
    const crd_circuit_control k = control_of(1e-5);
    char* room = malloc(crd_circuit_state_size(c));
    advance_to(*state, c, 2e-3, &k);
    crd_circuit_save(c, room);
    double v[2];
    for (int i = 0; i < 2; i++) {
        crd_circuit_restore(c, room);
        check(crd_circuit_time(c) == 2e-3);
        advance_to(*state, c, 4e-3, &k);
        v[i] = crd_circuit_voltage(c, crd_netlist_node(n, "c"));
    }
    check(v[0] == v[1]);
    free(room);
    crd_circuit_destroy(c);
    crd_netlist_destroy(n);
}

static void fixed_steps_go_on_after_varying_ones(void** state)
{
    build_scalable(&b, 2);
    reference_load(&ref, "scrlc_N2_reference.csv", 1, 2);
    const crd_circuit_control k = control_of(1e-7);
    for (size_t m = 1; m < METHODS; m++) {
        crd_circuit* c = begin(*state, &b.n, methods[m], 1e-3);
        advance_to(*state, c, ref.t[49], &k); // 0.5 s
        check_ok(crd_circuit_set_step(c, 1e-4));
        for (int i = 0; i < 1000; i++) {
            run_step(*state, c);
        }
        check_near(crd_circuit_time(c), 0.6, 1e-12);
        check_near(crd_circuit_voltage(c, 5), ref.y[59], 1e-5);
        check_ok(crd_circuit_set_step(c, 0.5e-4)); // and with another step
        for (int i = 0; i < 2000; i++) {
            run_step(*state, c);
        }
        check_near(crd_circuit_voltage(c, 5), ref.y[69], 1e-5);
        advance_to(*state, c, 0.8, &k); // and back
        check_near(crd_circuit_voltage(c, 5), ref.y[79], 1e-5);
        crd_circuit_destroy(c);
    }
}

static void after_the_first_call_only_factors_allocate(void** state)
{
    check_allocator a;
    crd_context* ctx = check_context(&a);
    build_rectifier(&b);
    crd_circuit* c = begin(ctx, &b.n, CRD_METHOD_TR, 1e-3);
    const crd_circuit_control k = crd_circuit_control_defaults();
    advance(ctx, c, 1, &k);
    const int64_t before = a.allocations;
    for (int i = 0; i < 200; i++) {
        advance(ctx, c, 1, &k);
    }
    check_int(a.allocations, before); // those of KLU are its own
    crd_circuit_destroy(c);
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

static void every_allocation_of_the_first_call_may_fail(void** state)
{
    check_allocator a;
    crd_context* ctx = check_context(&a);
    crd_netlist* n = parse(ctx, relaxation);
    crd_circuit* c = begin(ctx, n, CRD_METHOD_TR, 1e-5);
    const crd_circuit_control k = crd_circuit_control_defaults();
    int64_t at = 0;
    for (;; at++) {
        a.fail_at = a.allocations + at;
        a.once = at % 2 == 1;
        const crd_status st = crd_circuit_advance(c, 1e-3, &k);
        a.fail_at = -1;
        if (st == CRD_OK) { break; }
        check_status(st, CRD_E_MEMORY);
        check(crd_circuit_time(c) == 0);
        check(at < 100);
    }
    check(at > 1);
    crd_circuit_destroy(c);
    crd_netlist_destroy(n);
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

// ---- derivatives -------------------------------------------------------------------------------

static const char* const charging = "charging\nV1 in 0 1\nR1 in out 1k\nC1 out 0 1u ic=0\n"
                                    ".output v(out) i(c1)\n.end\n";

static double slope_error(crd_context* ctx, const crd_netlist* n, crd_circuit_method method,
                          double step, bool unequal)
{
    crd_circuit* c = begin(ctx, n, method, step);
    check(crd_circuit_get_output_derivative(c, 0) == 0); // before the first step
    double worst = 0;
    for (int i = 0; crd_circuit_time(c) < 2e-3; i++) {
        if (unequal && i % 3 == 0) { check_ok(crd_circuit_set_step(c, step * (1 + i / 3 % 3))); }
        run_step(ctx, c);
        const double want = 1e3 * exp(-crd_circuit_time(c) / 1e-3);
        if (i > 3) {
            worst = fmax(worst, fabs(crd_circuit_get_output_derivative(c, 0) / want - 1));
        }
    }
    crd_circuit_destroy(c);
    return worst;
}

static void derivatives_of_outputs_have_the_order_of_the_method(void** state)
{
    crd_netlist* n = parse(*state, charging);
    for (int unequal = 0; unequal < 2; unequal++) {
        for (size_t m = 0; m < METHODS; m++) {
            const int order = (int[]){1, 2, 3, 2, 2}[m];
            const double coarse = slope_error(*state, n, methods[m], 2e-5, unequal);
            const double fine = slope_error(*state, n, methods[m], 5e-6, unequal);
            if (!(coarse < 0.1 && log2(coarse / fine) / 2 > order - 0.35)) {
                fail_msg("method %d: %g, %g", (int)methods[m], coarse, fine);
            }
        }
    }
    crd_netlist_destroy(n);
}

static void derivatives_begin_anew_after_a_corner(void** state)
{
    crd_netlist* n = parse(*state, "slopes\nV1 1 0 PWL(0 0 1m 2 3m -1 4m -1)\nR1 1 0 1k\n"
                                   "C1 1 0 1u\n.output v(1)\n.end\n");
    crd_circuit* c = begin(*state, n, CRD_METHOD_TR, 1e-4);
    const crd_circuit_control k = control_of(1e-4);
    crd_circuit_get_output_derivative(c, 0);
    while (crd_circuit_time(c) < 5e-3) {
        advance(*state, c, 5e-3, &k);
        const double t = crd_circuit_time(c); // the left side counts
        const double want = t <= 1e-3 ? 2000 : t <= 3e-3 ? -1500 : 0;
        check_near(crd_circuit_get_output_derivative(c, 0), want, 1e-6);
    }
    check(isnan(crd_circuit_get_output_derivative(c, 1)));
    crd_circuit_destroy(c);
    crd_netlist_destroy(n);
}

static void derivatives_belong_to_the_state(void** state)
{
    crd_netlist* n = parse(*state, charging);
    crd_circuit* c = begin(*state, n, CRD_METHOD_BDF3, 1e-5);
    crd_circuit_get_output_derivative(c, 0);
    char* room = malloc(crd_circuit_state_size(c));
    for (int i = 0; i < 20; i++) {
        run_step(*state, c);
    }
    crd_circuit_save(c, room);
    const double now = crd_circuit_get_output_derivative(c, 0);
    for (int i = 0; i < 7; i++) {
        run_step(*state, c);
    }
    const double later = crd_circuit_get_output_derivative(c, 0);
    crd_circuit_restore(c, room);
    check(crd_circuit_get_output_derivative(c, 0) == now && now != later);
    for (int i = 0; i < 7; i++) {
        run_step(*state, c);
    }
    check(crd_circuit_get_output_derivative(c, 0) == later);
    free(room);
    crd_circuit_destroy(c);
    crd_netlist_destroy(n);
}

// ---- wrong calls, and circuits that do not go on -----------------------------------------------

static void what_makes_no_sense_is_refused(void** state)
{
    build_rlc(&b);
    crd_circuit* c = run_begin(*state, &b, &(trial){CRD_METHOD_GAUSS2, 1e-3, CRD_START_TR, 0, 0});
    crd_circuit_control k = crd_circuit_control_defaults();
    check_status(crd_circuit_advance(c, 1, &k), CRD_E_UNSUPPORTED);
    check_contains(crd_error_text(*state), "TRBDF2");
    crd_circuit_destroy(c);
    c = begin(*state, &b.n, CRD_METHOD_TR, 1e-3);
    check_status(crd_circuit_advance(c, (double)NAN, &k), CRD_E_RANGE);
    check_status(crd_circuit_advance(c, (double)INFINITY, &k), CRD_E_RANGE);
    check_ok(crd_circuit_advance(c, -1, &k)); // behind us: nothing to do
    check(crd_circuit_time(c) == 0);
    crd_circuit_control bad[4] = {k, k, k, k};
    bad[0].relative = -1;
    bad[1].relative = bad[1].voltage = 0;
    bad[2].smallest = (double)NAN;
    bad[3].largest = -1;
    for (int i = 0; i < 4; i++) {
        check_status(crd_circuit_advance(c, 1, &bad[i]), CRD_E_RANGE);
        check_contains(crd_error_text(*state), "circuit: ");
    }
    check_status(crd_circuit_set_step(c, 0), CRD_E_RANGE);
    check_status(crd_circuit_set_step(c, (double)NAN), CRD_E_RANGE);
    crd_circuit_destroy(c);
}

static void what_has_no_solution_ends_by_name_and_time(void** state)
{
    crd_netlist* n = parse(*state, "end\nV1 1 0 PWL(0 1 1 -1)\nR1 1 2 1k\nC1 2 0 1u\n"
                                   "B1 3 0 V=sqrt(v(1))\nR3 3 0 1\n.end\n");
    crd_circuit* c = begin(*state, n, CRD_METHOD_TR, 1e-3);
    const crd_circuit_control k = crd_circuit_control_defaults();
    crd_status st = CRD_OK;
    for (int i = 0; i < 10000 && st == CRD_OK && crd_circuit_time(c) < 1; i++) {
        st = crd_circuit_advance(c, 1, &k);
    }
    check_status(st, CRD_E_CONVERGENCE);
    check_contains(crd_error_text(*state), "b1");
    check_contains(crd_error_text(*state), "t = 0.5");
    check_near(crd_circuit_time(c), 0.5, 1e-9); // as near as it goes
    crd_circuit_destroy(c);
    crd_netlist_destroy(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_follow_the_tolerance_on_the_rlc_circuit),
        cmocka_unit_test(errors_follow_the_tolerance_on_the_scalable_circuit),
        cmocka_unit_test(errors_follow_the_tolerance_on_the_rectifier),
        cmocka_unit_test(a_higher_order_needs_fewer_steps),
        cmocka_unit_test(steps_grow_where_nothing_happens),
        cmocka_unit_test(steps_keep_within_the_limits_given),
        cmocka_unit_test(corners_of_a_pulse_are_stepped_onto),
        cmocka_unit_test(a_source_of_many_points_is_followed),
        cmocka_unit_test(tr_does_not_ring_after_a_corner),
        cmocka_unit_test(a_voltage_that_jumps_takes_capacitors_along),
        cmocka_unit_test(moments_of_switching_have_the_error_of_the_solution),
        cmocka_unit_test(a_switch_that_a_source_moves_is_hit_to_1e_9),
        cmocka_unit_test(a_current_switch_is_hit_too),
        cmocka_unit_test(a_switching_converter_is_followed),
        cmocka_unit_test(switches_that_move_each_other_move_at_once),
        cmocka_unit_test(switches_without_rest_do_not_stop_the_run),
        cmocka_unit_test(an_input_that_changes_begins_a_new_stretch),
        cmocka_unit_test(a_rejected_step_leaves_nothing_behind),
        cmocka_unit_test(a_restored_state_goes_on_the_same_way_twice),
        cmocka_unit_test(fixed_steps_go_on_after_varying_ones),
        cmocka_unit_test(after_the_first_call_only_factors_allocate),
        cmocka_unit_test(every_allocation_of_the_first_call_may_fail),
        cmocka_unit_test(derivatives_of_outputs_have_the_order_of_the_method),
        cmocka_unit_test(derivatives_begin_anew_after_a_corner),
        cmocka_unit_test(derivatives_belong_to_the_state),
        cmocka_unit_test(what_makes_no_sense_is_refused),
        cmocka_unit_test(what_has_no_solution_ends_by_name_and_time),
    };
    int failed = 0;
    for (form = CRD_FORM_DAE; form <= CRD_FORM_NODAL; form++) {
        failed += cmocka_run_group_tests_name(form == CRD_FORM_DAE ? "reference form" : "fast form",
                                              tests, check_set_up, check_tear_down);
    }
    return failed;
}
