// The experiment of Baumann 2024, section 3: its models, and what its runs have to show.
#include "check.h"
#include "shared/testbench.h"
#include "shared/testbench_experiment.h"

#include <stdio.h>

static crd_context* ctx;
static crdi_bench_experiment* shared; // with the defaults
static crdi_bench_experiment* smooth; // the other plant

static int make_shared(void** state)
{
    ctx = crd_context_create(NULL);
    crdi_bench_experiment_options o = crdi_bench_experiment_defaults();
    o.plant = CRDI_BENCH_SMOOTH;
    return ctx && crdi_bench_experiment_run(ctx, NULL, &shared) >= 0 &&
                   crdi_bench_experiment_run(ctx, &o, &smooth) >= 0
               ? 0
               : -1;
}

static int drop_shared(void** state)
{
    crdi_bench_experiment_destroy(shared);
    crdi_bench_experiment_destroy(smooth);
    crd_context_destroy(ctx);
    return 0;
}

// ---- the models --------------------------------------------------------------------------------

static char message[256];

static void keep(void* user, crd_model_status status, const char* text)
{
    (void)user;
    (void)status;
    snprintf(message, sizeof message, "%s", text);
}

static const crd_model_host host = {.log = keep, .resources = ""};

typedef struct part {
    const crd_model* model;
    void* self;
    double t;
} part;

static part make(const char* name)
{
    part p = {.model = crdi_powertrain_model(name)};
    assert_non_null(p.model);
    p.self = calloc(1, p.model->size);
    crd_model_reset(p.model, p.self);
    return p;
}

static double* of(const part* p, const char* name)
{
    for (int i = 0; i < p->model->variable_count; i++) {
        if (!strcmp(p->model->variables[i].name, name)) {
            return (double*)((char*)p->self + p->model->variables[i].offset);
        }
    }
    fail_msg("%s has no %s", p->model->name, name);
    return NULL;
}

static void begin(part* p)
{
    check_int(p->model->initialize(p->self, &host, 0), CRD_MODEL_OK);
}

static void run(part* p, double seconds, double h)
{
    for (int64_t n = llround(seconds / h); n > 0; n--) {
        double reached = p->t + h;
        check_int(p->model->step(p->self, &host, p->t, h, &reached), CRD_MODEL_OK);
        p->t = reached;
    }
}

static void the_engine_gives_what_is_asked_for_and_holds_its_speed(void** state)
{
    part b = make("pt_testbed");
    *of(&b, "noise") = *of(&b, "resolution") = 0;
    begin(&b);
    *of(&b, "speed_ref") = 200;
    *of(&b, "torque_request") = 150;
    run(&b, 3, 0.01);
    check_near(*of(&b, "torque"), 150, 1e-6);
    check_near(*of(&b, "speed"), 200, 1e-3);
    *of(&b, "torque_request") = 1000;
    run(&b, 3, 0.01);
    check_near(*of(&b, "torque"), *of(&b, "torque_max"), 1e-6);
    free(b.self);
}

static void the_ignition_is_faster_than_the_throttle(void** state)
{
    double after[2];
    for (int way = 0; way < 2; way++) {
        part b = make("pt_testbed");
        *of(&b, "noise") = 0;
        *of(&b, "t_fast") = 0.02;
        begin(&b);
        *of(&b, "torque_request") = 100;
        run(&b, 3, 0.01);
        *of(&b, way ? "torque_limit" : "torque_request") = 0;
        run(&b, 0.06, 0.01);
        after[way] = *of(&b, "torque_shaft");
        free(b.self);
    }
    assert_true(after[0] > 60);
    check_near(after[1], 100 * exp(-3), 2); // three times its lag of 20 ms
}

// A ramp comes out of the measurement's filter late by its delay, whatever the delay.
static void the_low_pass_delays_by_what_it_says(void** state)
{
    static const double delays[] = {5e-3, 10e-3, 25e-3};
    for (int i = 0; i < 3; i++) {
        part b = make("pt_testbed");
        *of(&b, "noise") = *of(&b, "resolution") = *of(&b, "damping") = 0;
        *of(&b, "filter_delay") = delays[i];
        begin(&b);
        for (int n = 0; n < 2000; n++) {
            *of(&b, "torque_request") = 0.1 * n; // 100 N.m/s
            run(&b, 1e-3, 1e-3);
        }
        const double late = (*of(&b, "torque_shaft") - *of(&b, "torque")) / 100;
        check_near(late, delays[i], 1e-3); // one sample of its 1 kHz
        free(b.self);
    }
}

static void noise_has_its_size_and_comes_from_the_seed(void** state)
{
    double last[3];
    for (int i = 0; i < 3; i++) {
        part b = make("pt_testbed");
        *of(&b, "seed") = i == 2 ? 7 : 3;
        *of(&b, "filter_delay") = 2e-3;
        *of(&b, "noise") = 2;
        begin(&b);
        double sum = 0, square = 0;
        for (int n = 0; n < 4000; n++) {
            run(&b, 1e-3, 1e-3);
            sum += *of(&b, "torque");
            square += *of(&b, "torque") * *of(&b, "torque");
        }
        check_near(sum / 4000, 0, 0.15);
        const double sigma = sqrt(square / 4000);
        assert_true(sigma > 0.5 && sigma < 2); // the filter takes a part of it
        last[i] = *of(&b, "torque");
        free(b.self);
    }
    assert_true(last[0] == last[1]);
    assert_true(last[0] != last[2]);
}

static void the_driveline_swings_as_stiffness_and_inertias_say(void** state)
{
    part c = make("pt_accelerate");
    *of(&c, "begin") = 100; // nobody drives
    *of(&c, "shift_at") = 1000;
    *of(&c, "damping") = *of(&c, "uneven") = *of(&c, "unsteadiness") = 0;
    *of(&c, "f0") = 0;
    begin(&c);
    *of(&c, "torque") = 100;
    run(&c, 0.02, 1e-3);
    *of(&c, "torque") = 0;
    int crossings = 0;
    double first = 0, final = 0, before = *of(&c, "twist_torque");
    for (int n = 0; n < 3000; n++) {
        run(&c, 1e-3, 1e-3);
        const double now = *of(&c, "twist_torque");
        if (before < 0 && now >= 0) {
            const double at = c.t - 1e-3 * now / (now - before);
            if (crossings == 0) { first = at; }
            final = at;
            crossings++;
        }
        before = now;
    }
    assert_true(crossings > 5);
    // free-free mode of two inertias with a spring between them
    const double i = *of(&c, "ratio1"), r = *of(&c, "radius");
    const double light = *of(&c, "inertia") * i * i + *of(&c, "inertia2");
    const double heavy = *of(&c, "mass") * r * r;
    const double omega = sqrt(*of(&c, "stiffness") * (1 / light + 1 / heavy));
    check_near(2 * M_PI * (crossings - 1) / (final - first), omega, 0.01 * omega);
    free(c.self);
}

static void the_gearbox_takes_the_torque_away_at_its_time(void** state)
{
    part c = make("pt_accelerate");
    *of(&c, "shift_down") = *of(&c, "shift_open") = 0.15;
    *of(&c, "shift_up") = 0.3;
    begin(&c);
    *of(&c, "torque") = 120;
    run(&c, 3.19, 1e-3);
    check_near(*of(&c, "ratio"), *of(&c, "ratio1"), 0);
    check_near(*of(&c, "torque_limit"), *of(&c, "torque_max"), 0);
    run(&c, 0.2, 1e-3); // 3.39 s: open
    check_near(*of(&c, "torque_limit"), 0, 1e-9);
    run(&c, 0.6, 1e-3);
    check_near(*of(&c, "ratio"), *of(&c, "ratio2"), 0);
    check_near(*of(&c, "torque_limit"), *of(&c, "torque_max"), 0);
    free(c.self);
}

static void parameters_that_make_no_sense_are_refused(void** state)
{
    part b = make("pt_testbed"), c = make("pt_accelerate");
    *of(&b, "filter_delay") = 0;
    check_int(b.model->initialize(b.self, &host, 0), CRD_MODEL_ERROR);
    assert_non_null(strstr(message, "filter_delay >= 2 ms"));
    *of(&c, "efficiency") = 1.2;
    check_int(c.model->initialize(c.self, &host, 0), CRD_MODEL_ERROR);
    assert_non_null(strstr(message, "efficiency <= 1"));
    free(b.self);
    free(c.self);
}

// ---- the runs ----------------------------------------------------------------------------------

static void the_latency_is_six_macro_steps_all_the_time(void** state)
{
    const crdi_bench_run* zoh = &shared->runs[CRDI_BENCH_ZOH];
    check_int(shared->k, 6);
    check_int(shared->count, 1200);
    for (int64_t n = 6; n < shared->count; n++) {
        assert_true(zoh->received[n] == zoh->sent[n - 6]);
    }
    for (int i = CRDI_BENCH_ZOH; i < CRDI_BENCH_CASES; i++) {
        check_near(shared->runs[i].k_mean, 6, 0);
        check_int(shared->runs[i].k_max, 6);
    }
}

static void ideal_coupling_hands_the_torque_over_as_it_is(void** state)
{
    const crdi_bench_run* ideal = &shared->runs[CRDI_BENCH_IDEAL];
    for (int64_t n = 0; n < shared->count; n++) {
        assert_true(ideal->received[n] == ideal->sent[n]);
    }
    check_near(ideal->metrics.C, 0, 1e-7);
}

// Sprague and Geers by their formula, from the series.
static void errors_are_those_of_the_series(void** state)
{
    for (int i = CRDI_BENCH_ZOH; i < CRDI_BENCH_CASES; i++) {
        const crdi_bench_run* r = &shared->runs[i];
        double yy = 0, ee = 0, ye = 0;
        for (int64_t n = 0; n < shared->count; n++) {
            yy += r->sent[n] * r->sent[n];
            ee += r->received[n] * r->received[n];
            ye += r->sent[n] * r->received[n];
        }
        const double M = sqrt(yy / ee) - 1, P = acos(ye / sqrt(yy * ee)) / M_PI;
        check_near(r->metrics.C, hypot(M, P), 1e-12);
        check_near(r->change, r->metrics.C / shared->runs[CRDI_BENCH_ZOH].metrics.C - 1, 1e-15);
    }
}

static void the_torque_is_gone_during_the_shift(void** state)
{
    const crdi_bench_experiment* const both[] = {shared, smooth};
    for (int i = 0; i < 2; i++) {
        const crdi_bench_run* zoh = &both[i]->runs[CRDI_BENCH_ZOH];
        double least = 1e9;
        for (int64_t n = 0; n < both[i]->count; n++) {
            if (both[i]->time[n] > 3.2 && both[i]->time[n] < 3.6) {
                least = fmin(least, zoh->sent[n]);
            }
        }
        check_near(least, 0, 2);
    }
}

// Limits from the paper's tables, but for the error of ZOH itself, which is larger here.
static void edges_have_the_signs_of_table_2(void** state)
{
    const crdi_bench_run* r = shared->runs;
    check_near(100 * r[CRDI_BENCH_ZOH].metrics.C, 4.53, 1.2);
    check_near(r[CRDI_BENCH_EROS].change, 0.44, 0.2);
    static const int better[] = {
        CRDI_BENCH_FOH,        CRDI_BENCH_FOH_SWITCH, CRDI_BENCH_FOH_ABOVE, CRDI_BENCH_EROS_SWITCH,
        CRDI_BENCH_EROS_ABOVE, CRDI_BENCH_OPTIMAL,    CRDI_BENCH_TRAINED,   CRDI_BENCH_AUTO};
    for (size_t i = 0; i < sizeof better / sizeof *better; i++) {
        if (!(r[better[i]].change < 0)) { fail_msg("%s", r[better[i]].name); }
    }
}

// Asked: half of ZOH's error after one run to learn from. It is another run: the seeds differ.
static void commands_that_were_learned_in_a_run_halve_the_error(void** state)
{
    const crdi_bench_experiment* const both[] = {shared, smooth};
    for (int p = 0; p < 2; p++) {
        const crdi_bench_run *r = &both[p]->runs[CRDI_BENCH_COMMANDS],
                             *ideal = &both[p]->runs[CRDI_BENCH_IDEAL];
        assert_true(r->change <= -0.5);
        assert_true(isnan(r->published.C)); // ours
        assert_non_null(strstr(r->element, "\"weights\""));
        assert_true(fabs(r->energy - ideal->energy) <
                    0.5 * fabs(both[p]->runs[CRDI_BENCH_ZOH].energy - ideal->energy));
    }
}

// All 21 pairs, with both readings of the detection, and with other noise, driver and link.
static void edges_have_the_order_of_table_2(void** state)
{
    static const crdi_bench_case order[2][7] = {
        {CRDI_BENCH_TRAINED, CRDI_BENCH_OPTIMAL, CRDI_BENCH_EROS_SWITCH, CRDI_BENCH_FOH_SWITCH,
         CRDI_BENCH_FOH, CRDI_BENCH_ZOH, CRDI_BENCH_EROS},
        {CRDI_BENCH_TRAINED, CRDI_BENCH_OPTIMAL, CRDI_BENCH_EROS_ABOVE, CRDI_BENCH_FOH_ABOVE,
         CRDI_BENCH_FOH, CRDI_BENCH_ZOH, CRDI_BENCH_EROS}};
    for (uint64_t seed = 1; seed <= 3; seed++) {
        crdi_bench_experiment_options o = crdi_bench_experiment_defaults();
        crdi_bench_experiment* own = NULL;
        o.seed = seed;
        if (seed > 1) { check_int(crdi_bench_experiment_run(ctx, &o, &own), CRD_OK); }
        const crdi_bench_run* r = own ? own->runs : shared->runs;
        for (int reading = 0; reading < 2; reading++) {
            for (int i = 1; i < 7; i++) {
                const crdi_bench_run *better = &r[order[reading][i - 1]],
                                     *worse = &r[order[reading][i]];
                assert_true(better->published.C < worse->published.C);
                if (!(better->metrics.C < worse->metrics.C)) {
                    fail_msg("seed %d: %s, %s", (int)seed, better->name, worse->name);
                }
            }
        }
        crdi_bench_experiment_destroy(own);
    }
}

static void edges_have_the_effects_of_table_3(void** state)
{
    const crdi_bench_run *ideal = &shared->runs[CRDI_BENCH_IDEAL],
                         *zoh = &shared->runs[CRDI_BENCH_ZOH];
    check_near(ideal->peak - zoh->peak, -0.30, 0.1);
    check_near(100 * (ideal->energy / zoh->energy - 1), -2.50, 0.5);
    for (int i = CRDI_BENCH_FOH; i <= CRDI_BENCH_TRAINED; i++) {
        assert_true(shared->runs[i].energy < zoh->energy); // as all of them in the paper
    }
}

static void the_smooth_plant_is_the_one_it_was(void** state)
{
    const crdi_bench_run* zoh = &smooth->runs[CRDI_BENCH_ZOH];
    check_near(100 * zoh->metrics.C, 4.53, 0.5);
    check_near(100 * zoh->metrics.M, 0.01, 0.3);
    check_near(zoh->peak, 2, 0.2);
    check_near(smooth->runs[CRDI_BENCH_EROS].change, 0.44, 0.15);
    assert_true(smooth->runs[CRDI_BENCH_OPTIMAL].change <= -0.35);
    assert_true(smooth->runs[CRDI_BENCH_TRAINED].change <= -0.40);
    assert_true(smooth->runs[CRDI_BENCH_LEAST_SQUARES].change <= -0.40);
    assert_true(smooth->runs[CRDI_BENCH_AUTO].change <= -0.40);
    check_int(smooth->runs[CRDI_BENCH_FOH_SWITCH].jumps, 0);
    // and the paper's effects it does not have
    assert_true(fabs(smooth->runs[CRDI_BENCH_IDEAL].energy / zoh->energy - 1 + 0.025) > 0.005);
}

static void the_energy_comes_nearer_to_that_of_ideal_coupling(void** state)
{
    static const int which[] = {CRDI_BENCH_OPTIMAL, CRDI_BENCH_TRAINED, CRDI_BENCH_LEAST_SQUARES,
                                CRDI_BENCH_AUTO};
    const crdi_bench_experiment* const both[] = {shared, smooth};
    for (int p = 0; p < 2; p++) {
        const double ideal = both[p]->runs[CRDI_BENCH_IDEAL].energy;
        const double zoh = fabs(both[p]->runs[CRDI_BENCH_ZOH].energy - ideal);
        for (int i = 0; i < 4; i++) {
            assert_true(fabs(both[p]->runs[which[i]].energy - ideal) < 0.8 * zoh);
        }
        assert_true(ideal < both[p]->runs[CRDI_BENCH_ZOH].energy);
        assert_true(both[p]->runs[CRDI_BENCH_IDEAL].peak < both[p]->runs[CRDI_BENCH_ZOH].peak);
    }
}

// Goals say "met" where the numbers are, and not else.
static void goals_follow_from_the_numbers(void** state)
{
    assert_true(shared->goal_count > 8);
    for (int i = 0; i < shared->goal_count; i++) {
        const crdi_bench_goal* g = &shared->goals[i];
        check_int(g->met, g->ours <= g->wanted);
    }
}

static bool has_remark(const crdi_bench_experiment* e, const char* begin)
{
    for (int i = 0; i < e->remark_count; i++) {
        if (!strncmp(e->remarks[i], begin, strlen(begin))) { return true; }
    }
    return false;
}

// A pair is remarked on if and only if its order is another one; of equal ones there is none.
static void remarks_follow_from_the_numbers(void** state)
{
    for (int i = CRDI_BENCH_ZOH; i <= CRDI_BENCH_TRAINED; i++) {
        for (int j = CRDI_BENCH_ZOH; j <= CRDI_BENCH_TRAINED; j++) {
            const crdi_bench_run *a = &shared->runs[i], *b = &shared->runs[j];
            const bool mixed = strstr(a->name, "switching") && strstr(b->name, "switching") &&
                               !strstr(a->name, "2-4") != !strstr(b->name, "2-4");
            if (mixed) { continue; } // two readings of one method
            char text[160];
            snprintf(text, sizeof text, "%s is better than %s (", a->name, b->name);
            const bool differs = i != j && a->metrics.C < b->metrics.C * (1 - 0.0021) &&
                                 a->published.C > b->published.C;
            if (has_remark(shared, text) != differs) { fail_msg("%s: %d", text, differs); }
            snprintf(text, sizeof text, "%s is as good as %s (", a->name, b->name);
            const bool equal = i != j &&
                               fabs(a->metrics.C - b->metrics.C) < 0.0019 * a->metrics.C &&
                               a->published.C > b->published.C;
            if (has_remark(shared, text) != equal) { fail_msg("%s: %d", text, equal); }
        }
    }
}

static void options_that_make_no_sense_are_refused(void** state)
{
    const double nan = NAN;
    const struct {
        double latency, jitter, step;
        uint64_t seed;
        const char* says;
    } cases[] = {
        {0, 0, 0.01, 1, "latency: 0 s, expected more than 0"},
        {nan, 0, 0.01, 1, "latency: nan s"},
        {0.05, 0.06, 0.01, 1, "jitter: 0.06 s, expected 0 to 0.05 s"},
        {0.05, nan, 0.01, 1, "jitter: nan s"},
        {0.05, 0, 0.007, 1, "step: 0.007 s, expected whole milliseconds"},
        {0.05, 0, 0.0105, 1, "step: 0.0105 s"},
        {0.05, 0, nan, 1, "step: nan s"},
        {0.05, 0, 0.001, 1, "is 50.0 macro steps of 0.001 s, expected 16 at most"},
        {0.05, 0, 0.01, 1000000000, "seed: 1000000000, expected less"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        crdi_bench_experiment_options o = crdi_bench_experiment_defaults();
        crdi_bench_experiment* e = NULL;
        o.latency = cases[i].latency;
        o.jitter = cases[i].jitter;
        o.step = cases[i].step;
        o.seed = cases[i].seed;
        check_int(crdi_bench_experiment_run(ctx, &o, &e), CRD_E_RANGE);
        assert_null(e);
        if (!strstr(crd_error_text(ctx), cases[i].says)) {
            fail_msg("'%s', expected '%s'", crd_error_text(ctx), cases[i].says);
        }
    }
}

// Each of them would take minutes: some on the way, and then none.
static void allocations_may_fail(void** state)
{
    crdi_bench_experiment_options o = crdi_bench_experiment_defaults();
    o.step = 0.05;
    for (int64_t fail_at = 0;; fail_at = fail_at < 2 ? fail_at + 1 : 12 * fail_at) {
        check_allocator a;
        crd_context* own = check_context(&a);
        a.fail_at = a.allocations + fail_at;
        crdi_bench_experiment* e = NULL;
        const crd_status st = crdi_bench_experiment_run(own, &o, &e);
        if (st < 0 && st != CRD_E_MEMORY) { fail_msg("%s", crd_error_text(own)); }
        const bool done = st == CRD_OK;
        crdi_bench_experiment_destroy(e);
        crd_context_destroy(own);
        check_int(a.live, 0);
        if (done) { break; }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_engine_gives_what_is_asked_for_and_holds_its_speed),
        cmocka_unit_test(the_ignition_is_faster_than_the_throttle),
        cmocka_unit_test(the_low_pass_delays_by_what_it_says),
        cmocka_unit_test(noise_has_its_size_and_comes_from_the_seed),
        cmocka_unit_test(the_driveline_swings_as_stiffness_and_inertias_say),
        cmocka_unit_test(the_gearbox_takes_the_torque_away_at_its_time),
        cmocka_unit_test(parameters_that_make_no_sense_are_refused),
        cmocka_unit_test(the_latency_is_six_macro_steps_all_the_time),
        cmocka_unit_test(ideal_coupling_hands_the_torque_over_as_it_is),
        cmocka_unit_test(errors_are_those_of_the_series),
        cmocka_unit_test(the_torque_is_gone_during_the_shift),
        cmocka_unit_test(edges_have_the_signs_of_table_2),
        cmocka_unit_test(commands_that_were_learned_in_a_run_halve_the_error),
        cmocka_unit_test(edges_have_the_order_of_table_2),
        cmocka_unit_test(edges_have_the_effects_of_table_3),
        cmocka_unit_test(the_smooth_plant_is_the_one_it_was),
        cmocka_unit_test(the_energy_comes_nearer_to_that_of_ideal_coupling),
        cmocka_unit_test(goals_follow_from_the_numbers),
        cmocka_unit_test(remarks_follow_from_the_numbers),
        cmocka_unit_test(options_that_make_no_sense_are_refused),
        cmocka_unit_test(allocations_may_fail),
    };
    return cmocka_run_group_tests(tests, make_shared, drop_shared);
}
