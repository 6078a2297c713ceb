// Values found from measurements, against an independent program with the same noise, and what
// can be found at all.
#include "cardan/twin.h"
#include "check.h"
#include "noise.h"
#include "shared/base.h"

#include <stdio.h>

static crd_netlist* netlist(crd_context* ctx, const char* text)
{
    crd_netlist* n = NULL;
    if (crd_netlist_parse(ctx, text, strlen(text), "twin.cir", NULL, &n) < 0) {
        fail_msg("%s", crd_error_text(ctx));
    }
    return n;
}

// Two capacities in a row (Rodriguez 2021, 4.3), in K above the air
static const char rc[] =
    "rc\n.thermal\nheat q0 1 10\nresistance r1 1 2 1\nresistance r2 2 3 2\n"
    "resistance r3 3 0 3\ncapacity c1 2 0.1 start=-1\ncapacity c2 3 0.2 start=1\n"
    ".endthermal\n.output T1=t(1) T2=t(2) T3=t(3)\n.tran 1m 5 uic\n.end\n";
static const double h = 1e-3;

// Outputs of the netlist at h, 2 h, ..., plus noise of sd 0.5 drawn row by row
static double* measure(crd_context* ctx, const crd_netlist* n, int rows, uint64_t seed)
{
    crd_circuit_options o = crd_circuit_defaults();
    o.method = CRD_METHOD_GAUSS4;
    o.step = h;
    crd_circuit* c = NULL;
    check_ok(crd_circuit_create(ctx, n, &o, &c));
    check_ok(crd_circuit_begin(c, 0));
    double* y = malloc((size_t)(rows * n->output_count) * sizeof *y);
    noise seeded = {.state = seed};
    for (int i = 0; i < rows; i++) {
        check_ok(crd_circuit_step(c));
        for (int j = 0; j < n->output_count; j++) {
            y[i * n->output_count + j] = crd_circuit_get_output(c, j) + 0.5 * noise_next(&seeded);
        }
    }
    crd_circuit_destroy(c);
    return y;
}

static double* columns(const double* y, int rows, int all, int first, int count)
{
    double* out = malloc((size_t)(rows * count) * sizeof *out);
    for (int i = 0; i < rows; i++) {
        memcpy(out + i * count, y + i * all + first, (size_t)count * sizeof *out);
    }
    return out;
}

static const crd_twin_sensor three[] = {
    {"s1", "t(1)", "K", 0.5}, {"s2", "t(2)", "K", 0.5}, {"s3", "t(3)", "K", 0.5}};

static crd_twin_parameter unknown(const crd_netlist* n, const char* name, double start,
                                  int32_t* part)
{
    *part = crd_netlist_part(n, name);
    return (crd_twin_parameter){
        .group = {.name = name, .parts = part, .count = 1}, .start = start, .sd = 1};
}

static crd_twin_spec spec_of(const crd_twin_sensor* sensors, int count)
{
    crd_twin_spec s = crd_twin_defaults();
    s.sensors = sensors;
    s.sensor_count = count;
    s.step = h;
    return s;
}

static const crd_twin_data no_window = {.from = (double)NAN, .to = (double)NAN};

// ---- the published scenarios -------------------------------------------------------------------

static void resistors(crd_context* ctx, uint64_t seed, int points, double out[3], double sd[3])
{
    crd_netlist* n = netlist(ctx, rc);
    int32_t parts[3];
    const crd_twin_parameter p[3] = {unknown(n, "r1", 10, &parts[0]),
                                     unknown(n, "r2", 10, &parts[1]),
                                     unknown(n, "r3", 10, &parts[2])};
    double* y = measure(ctx, n, 5000, seed);
    crd_twin_data data = no_window;
    data.rows = 5000;
    data.measurements = y;
    crd_twin_spec s = spec_of(three, 3);
    s.parameters = p;
    s.parameter_count = 3;
    crd_tune_options o = crd_tune_defaults();
    o.points = points;
    crd_arena arena;
    crd_arena_init(&arena, ctx);
    crd_tune_result r;
    if (crd_twin_tune(ctx, n, &s, &data, &o, &arena, &r) < 0) {
        fail_msg("%s", crd_error_text(ctx));
    }
    check(r.converged);
    memcpy(out, r.value, 3 * sizeof *out);
    memcpy(sd, r.sd, 3 * sizeof *sd);
    crd_arena_clear(&arena);
    crd_netlist_destroy(n);
    free(y);
}

static void resistors_are_those_of_the_independent_program_to_its_digits(void** state)
{
    double v[3], sd[3];
    resistors(*state, 20210001, 7, v, sd);
    check_near(v[0], 0.9991274096479444, 2e-6);
    check_near(v[1], 2.0011820779076563, 2e-6);
    check_near(v[2], 2.9989863970706323, 2e-6);
    // its Cramer-Rao bounds at the truth; 2 %: here they are taken at the estimate
    check_near(sd[0], 0.0009612151684181111, 2e-5);
    check_near(sd[1], 0.0010763976344412751, 2e-5);
    check_near(sd[2], 0.0009307928741199678, 2e-5);
}

static void resistors_are_found_to_the_cramer_rao_bound(void** state)
{
    const double truth[3] = {1, 2, 3};
    double sum[3] = {0}, bound[3];
    for (uint64_t seed = 20210001; seed <= 20210020; seed++) {
        double v[3];
        resistors(*state, seed, 0, v, bound); // from 10, 10, 10
        for (int i = 0; i < 3; i++) {
            sum[i] += (v[i] - truth[i]) * (v[i] - truth[i]) / 20;
        }
    }
    for (int i = 0; i < 3; i++) {
        check(sqrt(sum[i]) <= 1.15 * bound[i]);
    }
}

static void capacitors_are_those_of_the_independent_program_to_its_digits(void** state)
{
    crd_netlist* n = netlist(*state, rc);
    int32_t parts[2];
    const crd_twin_parameter p[2] = {unknown(n, "c1", 1, &parts[0]),
                                     unknown(n, "c2", 10, &parts[1])};
    double* y = measure(*state, n, 5000, 20210001);
    double* two = columns(y, 5000, 3, 1, 2);
    crd_twin_data data = no_window;
    data.rows = 5000;
    data.measurements = two;
    crd_twin_spec s = spec_of(three + 1, 2);
    s.parameters = p;
    s.parameter_count = 2;
    crd_tune_options o = crd_tune_defaults();
    crd_arena arena;
    crd_arena_init(&arena, *state);
    crd_tune_result r;
    check_ok(crd_twin_tune(*state, n, &s, &data, &o, &arena, &r));
    check_near(r.value[0], 0.1000289602945201, 2e-7);
    check_near(r.value[1], 0.20005172189167614, 2e-7);
    check(r.ljung_box < 1.5 && r.flatness > 0.9);
    check_near(r.residual_rms[0], 0.5, 0.02);
    crd_arena_clear(&arena);
    crd_netlist_destroy(n);
    free(y);
    free(two);
}

static void noise_levels_come_from_the_data(void** state)
{
    crd_netlist* n = netlist(*state, rc);
    int32_t part;
    const crd_twin_parameter p = unknown(n, "r3", 1, &part);
    double* y = measure(*state, n, 5000, 3);
    crd_twin_data data = no_window;
    data.rows = 5000;
    data.measurements = y;
    crd_twin_sensor wrong[3];
    memcpy(wrong, three, sizeof wrong);
    wrong[0].sd = 5;
    wrong[2].sd = 0.01;
    crd_twin_spec s = spec_of(wrong, 3);
    s.parameters = &p;
    s.parameter_count = 1;
    crd_tune_options o = crd_tune_defaults();
    o.fit_noise = true;
    crd_arena arena;
    crd_arena_init(&arena, *state);
    crd_tune_result r;
    check_ok(crd_twin_tune(*state, n, &s, &data, &o, &arena, &r));
    for (int i = 0; i < 3; i++) {
        check_near(r.sensor_sd[i], 0.5, 0.02);
    }
    crd_arena_clear(&arena);
    crd_netlist_destroy(n);
    free(y);
}

// ---- the inverter ------------------------------------------------------------------------------

static const char inverter[] =
    "inverter\n.subckt phase up low copper paste\n.thermal start=343.15\nheat qu up 208\n"
    "heat ql low 208\nresistance du up copper 7.516m\nresistance dl low copper 7.516m\n"
    "resistance dbc copper paste 30.47m\ncapacity c copper 1.27\n.endthermal\n.ends\n"
    "X1 1 2 7 10 phase\nX2 3 4 8 10 phase\nX3 5 6 9 10 phase\n.thermal start=343.15\n"
    "resistance sp 10 11 3.771m\nresistance hs 11 12 12.78m\nresistance w 12 13 1.837m\n"
    "capacity chs 11 30.79\ncapacity cw 12 114.42\ntemperature water 13 343.15\n.endthermal\n"
    ".output T7=t(7) T11=t(11) T12=t(12)\n.tran 1m 5 uic\n.end\n";

typedef struct six {
    int32_t dbc[3], c[3], hs, w, chs, cw;
    crd_twin_parameter p[6];
} six;

static void six_of(const crd_netlist* n, const double factor[6], six* s)
{
    const char* dbc[] = {"x1.dbc", "x2.dbc", "x3.dbc"};
    const char* c[] = {"x1.c", "x2.c", "x3.c"};
    for (int i = 0; i < 3; i++) {
        s->dbc[i] = crd_netlist_part(n, dbc[i]);
        s->c[i] = crd_netlist_part(n, c[i]);
        check(s->dbc[i] >= 0 && s->c[i] >= 0);
    }
    s->hs = crd_netlist_part(n, "hs");
    s->w = crd_netlist_part(n, "w");
    s->chs = crd_netlist_part(n, "chs");
    s->cw = crd_netlist_part(n, "cw");
    const int32_t* parts[] = {s->dbc, &s->hs, &s->w, s->c, &s->chs, &s->cw};
    const char* names[] = {"rdbc", "rhs", "rw", "cdbc", "chs", "cw"};
    const double truth[] = {30.47e-3, 12.78e-3, 1.837e-3, 1.27, 30.79, 114.42};
    for (int i = 0; i < 6; i++) {
        const int count = i == 0 || i == 3 ? 3 : 1;
        s->p[i] =
            (crd_twin_parameter){.group = {.name = names[i], .parts = parts[i], .count = count},
                                 .start = truth[i] * factor[i],
                                 .sd = 1};
    }
}

static const crd_twin_sensor cooler[] = {
    {"s7", "t(7)", "K", 0.5}, {"s11", "t(11)", "K", 0.5}, {"s12", "t(12)", "K", 0.5}};

static void the_inverter_is_found_from_wherever_one_starts(void** state)
{
    const double truth[6] = {30.47e-3, 12.78e-3, 1.837e-3, 1.27, 30.79, 114.42};
    const double starts[][6] = {{11.68 / 30.47, 5.457 / 12.78, 10.91 / 1.837, 1, 1, 1},
                                {1e3, 1e3, 1e3, 1e3, 1e3, 1e3},
                                {1e-3, 1e-3, 1e-3, 1e-3, 1e-3, 1e-3},
                                {1e3, 1e-3, 1, 1e-3, 1e3, 1}};
    crd_netlist* n = netlist(*state, inverter);
    double* y = measure(*state, n, 5000, 20210041);
    crd_twin_data data = no_window;
    data.rows = 5000;
    data.measurements = y;
    double first[6];
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        six s;
        six_of(n, starts[i], &s);
        crd_twin_spec spec = spec_of(cooler, 3);
        spec.parameters = s.p;
        spec.parameter_count = 6;
        crd_tune_options o = crd_tune_defaults();
        crd_arena arena;
        crd_arena_init(&arena, *state);
        crd_tune_result r;
        if (crd_twin_tune(*state, n, &spec, &data, &o, &arena, &r) < 0) {
            fail_msg("%s", crd_error_text(*state));
        }
        print_message("%zu: %.3f %.3f %.3f mK/W %.3f %.2f %.1f J/K, %d iterations\n", i,
                      1e3 * r.value[0], 1e3 * r.value[1], 1e3 * r.value[2], r.value[3], r.value[4],
                      r.value[5], r.iterations);
        check(r.converged);
        for (int j = 0; j < 6; j++) {
            if (!i) {
                first[j] = r.value[j];
                check_near(r.value[j], truth[j], 4 * r.sd[j]);
            }
            check_near(r.value[j], first[j], 1e-5 * first[j]);
        }
        crd_arena_clear(&arena);
    }
    crd_netlist_destroy(n);
    free(y);
}

// ---- what can be found -------------------------------------------------------------------------

static crd_observability observe(crd_context* ctx, const crd_netlist* n, const crd_twin_spec* s,
                                 double from, crd_arena* arena)
{
    crd_twin_data data = no_window;
    data.rows = 5000;
    data.from = from;
    crd_observability o;
    if (crd_twin_observe(ctx, n, s, &data, false, arena, &o) < 0) {
        fail_msg("%s", crd_error_text(ctx));
    }
    return o;
}

static void without_a_sensor_at_the_source_its_resistance_cannot_be_found(void** state)
{
    crd_netlist* n = netlist(*state, rc);
    int32_t parts[3];
    const crd_twin_parameter p[3] = {unknown(n, "r1", 1, &parts[0]), unknown(n, "r2", 2, &parts[1]),
                                     unknown(n, "r3", 3, &parts[2])};
    crd_arena arena;
    crd_arena_init(&arena, *state);
    crd_twin_spec s = spec_of(three, 3);
    s.parameters = p;
    s.parameter_count = 3;
    crd_observability o = observe(*state, n, &s, (double)NAN, &arena);
    // independent: 5.7e3, 2.0e3, 9.9e2
    check_near(o.sigma[0], 5.7e3, 0.05e3);
    check_near(o.sigma[1], 2.0e3, 0.05e3);
    check_near(o.sigma[2], 9.9e2, 0.1e2);
    check_int(o.rank, 3);
    s.sensors = three + 1;
    s.sensor_count = 2;
    o = observe(*state, n, &s, (double)NAN, &arena);
    check_int(o.rank, 2);
    check_near(fabs(o.directions[2 * 3]), 1, 1e-9); // the direction is r1 itself
    check_near(o.posterior[0], 1, 1e-9);            // nothing learnt
    crd_arena_clear(&arena);
    crd_netlist_destroy(n);
}

static void everything_at_once_needs_one_absolute_anchor(void** state)
{
    crd_netlist* n = netlist(*state, rc);
    int32_t parts[5];
    const char* names[] = {"r1", "r2", "r3", "c1", "c2"};
    crd_twin_parameter p[5];
    for (int i = 0; i < 5; i++) {
        p[i] = unknown(n, names[i], (double)NAN, &parts[i]);
    }
    const int32_t q0 = crd_netlist_part(n, "q0");
    const crd_twin_source q = {
        .group = {.name = "q0", .parts = &q0, .count = 1}, .start = 10, .sd = 10};
    crd_arena arena;
    crd_arena_init(&arena, *state);
    crd_twin_spec s = spec_of(three, 3);
    s.parameters = p;
    s.parameter_count = 5;
    s.sources = &q;
    s.source_count = 1;
    const crd_observability o = observe(*state, n, &s, (double)NAN, &arena);
    check_int(o.unknowns, 6);
    check_int(o.rank, 5);
    // R up, C and Q down by the same factor
    const double* v = o.directions + 5 * 6;
    for (int i = 0; i < 6; i++) {
        check_near(v[i] / v[0], i < 3 ? 1 : -1, 1e-6);
    }
    crd_arena_clear(&arena);
    crd_netlist_destroy(n);
}

static void capacitors_do_not_show_in_the_steady_state(void** state)
{
    crd_netlist* n = netlist(*state, rc);
    int32_t parts[2];
    const crd_twin_parameter p[2] = {unknown(n, "c1", 0.1, &parts[0]),
                                     unknown(n, "c2", 0.2, &parts[1])};
    crd_arena arena;
    crd_arena_init(&arena, *state);
    crd_twin_spec s = spec_of(three + 1, 2);
    s.parameters = p;
    s.parameter_count = 2;
    crd_observability o = observe(*state, n, &s, (double)NAN, &arena);
    check_near(o.sigma[0], 1.2e3, 0.05e3);
    check_near(o.sigma[1], 2.8e2, 0.05e2);
    check_int(o.practical, 0);
    crd_twin_data late = no_window;
    late.rows = 20000;
    late.from = 19;
    check_ok(crd_twin_observe(*state, n, &s, &late, false, &arena, &o));
    check_int(o.practical, 2);
    crd_arena_clear(&arena);
    crd_netlist_destroy(n);
}

static void the_inverter_hides_two_of_its_eight_values(void** state)
{
    crd_netlist* n = netlist(*state, inverter);
    const double one[6] = {1, 1, 1, 1, 1, 1};
    six s6;
    six_of(n, one, &s6);
    crd_twin_parameter p[8];
    memcpy(p, s6.p, sizeof s6.p);
    const int32_t sp = crd_netlist_part(n, "sp");
    const int32_t die[6] = {crd_netlist_part(n, "x1.du"), crd_netlist_part(n, "x1.dl"),
                            crd_netlist_part(n, "x2.du"), crd_netlist_part(n, "x2.dl"),
                            crd_netlist_part(n, "x3.du"), crd_netlist_part(n, "x3.dl")};
    p[6] = (crd_twin_parameter){
        .group = {.name = "rsp", .parts = &sp, .count = 1}, .start = (double)NAN, .sd = 1};
    p[7] = (crd_twin_parameter){
        .group = {.name = "rdie", .parts = die, .count = 6}, .start = (double)NAN, .sd = 1};
    crd_arena arena;
    crd_arena_init(&arena, *state);
    crd_twin_spec s = spec_of(cooler, 3);
    s.parameters = p;
    s.parameter_count = 8;
    crd_observability o = observe(*state, n, &s, (double)NAN, &arena);
    check_int(o.rank, 6);
    check_near(o.posterior[7], 1, 1e-6); // the dies
    // the other null keeps Rdbc / 3 + Rsp
    crd_placement where[2];
    int count = 0;
    crd_twin_data data = no_window;
    data.rows = 5000;
    check_ok(crd_twin_place(*state, n, &s, &data, 0.5, NULL, 0, 2, &arena, where, &count));
    check_int(count, 2);
    check_int(where[0].rank, 7);
    check_int(where[1].rank, 8);
    print_message("place: %s, then %s\n", n->nodes[where[0].node], n->nodes[where[1].node]);
    // the silver paste tells Rsp from Rdbc, a junction (nodes 1 to 6) the dies
    check(strcmp(n->nodes[where[0].node], "10") == 0);
    const char* second = n->nodes[where[1].node];
    check(second[1] == 0 && second[0] >= '1' && second[0] <= '6');
    crd_arena_clear(&arena);
    crd_netlist_destroy(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resistors_are_those_of_the_independent_program_to_its_digits),
        cmocka_unit_test(resistors_are_found_to_the_cramer_rao_bound),
        cmocka_unit_test(capacitors_are_those_of_the_independent_program_to_its_digits),
        cmocka_unit_test(noise_levels_come_from_the_data),
        cmocka_unit_test(the_inverter_is_found_from_wherever_one_starts),
        cmocka_unit_test(without_a_sensor_at_the_source_its_resistance_cannot_be_found),
        cmocka_unit_test(everything_at_once_needs_one_absolute_anchor),
        cmocka_unit_test(capacitors_do_not_show_in_the_steady_state),
        cmocka_unit_test(the_inverter_hides_two_of_its_eight_values),
    };
    return cmocka_run_group_tests(tests, check_set_up, check_tear_down);
}
