// The reference form on linear circuits: counts, errors of Rodriguez 2021 (Tables 3.7 to 3.11),
// orders, beginnings, states, bad circuits.
#include "circuit/build.h"
#include "circuit/dae.h"

static build b;
static reference ref;

static crd_circuit* create_of(crd_context* ctx)
{
    return run_begin(ctx, &b, &(trial){CRD_METHOD_TR, 1e-3, CRD_START_TR, 0, 0});
}

static void check_counts(crd_context* ctx, int64_t n, int64_t m, int64_t p)
{
    crd_circuit* c = create_of(ctx);
    const crd_circuit_structure s = crd_circuit_get_structure(c);
    check_int(s.variables, n);
    check_int(s.constraints, m);
    check_int(s.differential, p);
    crd_circuit_destroy(c);
}

static void variables_and_constraints_are_counted_as_in_the_thesis(void** state)
{
    build_rlc(&b);
    check_counts(*state, 8, 5, 3);
    for (int loops = 1; loops <= 100; loops += 33) {
        build_scalable(&b, loops);
        check_counts(*state, 3 + 5 * loops, 3 + 3 * loops, 2 * loops);
    }
    build_rectifier(&b);
    check_counts(*state, 20, 19, 1);
    build_motor(&b);
    check_counts(*state, 49, 40, 9);
}

// Of [Phi_x; A], by elimination with complete pivoting after rows and columns are scaled to 1.
static int rank_of(const crd_circuit* c)
{
    enum { MOST = 32 };
    const crdi_dae* d = c->self;
    const crdi_least* l = &d->tangent.least;
    double a[MOST][MOST] = {0};
    check(l->rows <= MOST && l->columns <= MOST);
    for (size_t k = 0; k < l->count; k++) {
        a[l->row[k]][l->column[k]] += d->tangent.value[k];
    }
    for (int pass = 0; pass < 2 * MOST; pass++) { // a row, a column
        const int i = pass / 2;
        double large = 0;
        for (int j = 0; j < MOST; j++) {
            large = fmax(large, fabs(pass % 2 ? a[j][i] : a[i][j]));
        }
        for (int j = 0; j < MOST && large > 0; j++) {
            *(pass % 2 ? &a[j][i] : &a[i][j]) /= large;
        }
    }
    int rank = 0;
    for (bool used[MOST] = {false};; rank++) {
        int row = -1, column = -1;
        double top = 1e-12;
        for (int i = 0; i < MOST; i++) {
            for (int j = 0; j < MOST && !used[i]; j++) {
                if (fabs(a[i][j]) > top) {
                    top = fabs(a[i][j]);
                    row = i;
                    column = j;
                }
            }
        }
        if (row < 0) { return rank; }
        used[row] = true;
        for (int i = 0; i < MOST; i++) {
            const double f = a[i][column] / a[row][column];
            for (int j = 0; j < MOST && !used[i]; j++) {
                a[i][j] -= f * a[row][j];
            }
        }
    }
}

static void parallel_capacitors_leave_rank_7_of_8(void** state)
{
    build_rlc(&b);
    crd_circuit* c = create_of(*state);
    check_int(rank_of(c), 7);
    run_step(*state, c); // and yet it runs
    crd_circuit_destroy(c);
    build_scalable(&b, 2);
    c = create_of(*state);
    check_int(rank_of(c), 13);
    crd_circuit_destroy(c);
}

#define LENGTH(a) (sizeof(a) / sizeof *(a))

static void rlc_errors_are_those_of_tables_3_7_and_3_8(void** state)
{
    static const trial t[] = {
        {CRD_METHOD_TR, 2.5e-3, CRD_START_TR, 0.250288e-3, 0.378136e-3},
        {CRD_METHOD_TR_CARRIED, 2.5e-3, CRD_START_TR, 0.250288e-3, 0.378136e-3},
        {CRD_METHOD_BDF2, 2.5e-3, CRD_START_CONSTANT, 0.842275e-3, 0.756599e-3},
        {CRD_METHOD_BDF3, 2.5e-3, CRD_START_CONSTANT, 0.142233e-3, 0.328401e-3},
        {CRD_METHOD_TR, 0.25e-3, CRD_START_TR, 2.50271e-6, 3.78125e-6},
        {CRD_METHOD_BDF2, 0.25e-3, CRD_START_CONSTANT, 8.44234e-6, 7.56967e-6},
        {CRD_METHOD_BDF3, 0.25e-3, CRD_START_CONSTANT, 1.34437e-6, 3.29312e-6},
        {CRD_METHOD_BDF2, 2.5e-3, CRD_START_TR, 0.998207e-3, 1.508709e-3},
        {CRD_METHOD_BDF3, 2.5e-3, CRD_START_TR, 0.0479249e-3, 0.0315774e-3},
        {CRD_METHOD_BDF3, 0.25e-3, CRD_START_TR, 4.79463e-8, 3.14376e-8},
        {CRD_METHOD_BDF2, 2.5e-3, CRD_START_MINIMUM, 0.999095e-3, 1.511841e-3},
        {CRD_METHOD_BDF3, 2.5e-3, CRD_START_MINIMUM, 0.0480491e-3, 0.0326938e-3},
        {CRD_METHOD_BDF1, 0.025e-3, CRD_START_MINIMUM, 0.296287e-3, 0.629294e-3},
    };
    build_rlc(&b);
    reference_load(&ref, "rlc_reference.csv", 1, 2);
    const watch w = {2, 0, build_find(&b, "L1")};
    run_trials(*state, &b, &ref, &w, t, LENGTH(t), 0.005);
}

static void scalable_rlc_errors_are_those_of_tables_3_10_and_3_11(void** state)
{
    static const trial t[] = {
        {CRD_METHOD_TR, 2.5e-3, CRD_START_TR, 0.408021e-3, 0.941851e-3},
        {CRD_METHOD_BDF1, 0.025e-3, CRD_START_MINIMUM, 0.147780e-3, 0.649773e-3},
        {CRD_METHOD_BDF2, 1e-3, CRD_START_CONSTANT, 0.135321e-3, 0.600049e-3},
        {CRD_METHOD_BDF3, 2.5e-3, CRD_START_CONSTANT, 0.376903e-3, 0.537172e-3},
        {CRD_METHOD_TR, 0.25e-3, CRD_START_TR, 4.07945e-6, 9.39194e-6},
        {CRD_METHOD_BDF2, 0.1e-3, CRD_START_CONSTANT, 1.35184e-6, 5.94078e-6},
        {CRD_METHOD_BDF3, 0.25e-3, CRD_START_CONSTANT, 3.67858e-6, 1.99920e-6},
        {CRD_METHOD_BDF3, 2.5e-3, CRD_START_TR, 0.0502215e-3, 0.287993e-3},
        {CRD_METHOD_BDF3, 0.25e-3, CRD_START_TR, 5.62104e-8, 5.01401e-7},
    };
    build_scalable(&b, 2);
    reference_load(&ref, "scrlc_N2_reference.csv", 1, 2);
    const watch w = {5, 0, build_find(&b, "L2")};
    run_trials(*state, &b, &ref, &w, t, LENGTH(t), 0.005);
}

static void gauss_methods_have_the_errors_of_their_prototypes(void** state)
{
    double e[2];
    build_scalable(&b, 2);
    reference_load(&ref, "scrlc_N2_reference.csv", 1, 2);
    const watch w = {5, 0, build_find(&b, "L2")};
    run_errors(*state, &b, &ref, &w, &(trial){CRD_METHOD_GAUSS2, 5e-3, CRD_START_TR, 0, 0}, e);
    check_near(e[0], 0.002e-3, 0.0005e-3);
    check_near(e[1], 0.06e-3, 0.005e-3);
    run_errors(*state, &b, &ref, &w, &(trial){CRD_METHOD_GAUSS4, 10e-3, CRD_START_TR, 0, 0}, e);
    check_near(e[0], 4e-8, 0.5e-8);
    check_near(e[1], 1.1e-6, 0.05e-6);
}

static void a_hundred_loops_run_with_the_error_of_the_first_loop_known(void** state)
{
    build_scalable(&b, 100);
    reference_load(&ref, "scrlc_N100_reference.csv", 3, 4);
    const watch w = {3, 0, build_find(&b, "L1")};
    double e[2];
    run_errors(*state, &b, &ref, &w, &(trial){CRD_METHOD_TR, 2.5e-3, CRD_START_TR, 0, 0}, e);
    check_near(e[0], 1.61e-3, 0.02e-3);
    check_near(e[1], 1.70e-3, 0.01e-3);
}

static void halving_the_step_shows_the_order(void** state)
{
    static const struct {
        crd_circuit_method method;
        double step, order;
    } t[] = {{CRD_METHOD_BDF1, 0.5e-3, 1},   {CRD_METHOD_BDF2, 1.25e-3, 2},
             {CRD_METHOD_BDF3, 1.25e-3, 3},  {CRD_METHOD_TR, 2.5e-3, 2},
             {CRD_METHOD_TRBDF2, 2.5e-3, 2}, {CRD_METHOD_GAUSS2, 5e-3, 4}};
    build_rlc(&b);
    reference_load(&ref, "rlc_reference.csv", 1, 2);
    const watch w = {2, 0, build_find(&b, "L1")};
    for (size_t i = 0; i < LENGTH(t); i++) {
        double coarse[2], fine[2];
        run_errors(*state, &b, &ref, &w, &(trial){t[i].method, t[i].step, CRD_START_TR, 0, 0},
                   coarse);
        run_errors(*state, &b, &ref, &w, &(trial){t[i].method, t[i].step / 2, CRD_START_TR, 0, 0},
                   fine);
        check_near(log2(coarse[0] / fine[0]), t[i].order, 0.1);
        check_near(log2(coarse[1] / fine[1]), t[i].order, 0.1);
    }
}

// ---- beginnings --------------------------------------------------------------------------------

static void capacitors_share_their_current_from_the_first_moment(void** state)
{
    build_rlc(&b);
    b.waves[0] = build_dc(30); // a jump at the beginning: 3 A into 0.4 F and 0.2 F
    crd_circuit* c = create_of(*state);
    check_near(crd_circuit_current(c, build_find(&b, "C1")), 2, 1e-12);
    check_near(crd_circuit_current(c, build_find(&b, "C2")), 1, 1e-12);
    run_step(*state, c);
    check_near(crd_circuit_current(c, build_find(&b, "C1")),
               2 * crd_circuit_current(c, build_find(&b, "C2")), 1e-12);
    crd_circuit_destroy(c);
}

static void a_capacitor_across_a_source_carries_c_times_its_slope(void** state)
{
    build_init(&b);
    build_source(&b, CRD_PART_VOLTAGE, "V1", 1, 0, build_sine());
    build_storage(&b, CRD_PART_CAPACITOR, "C1", 1, 0, 1e-3, 0);
    crd_circuit* c = create_of(*state);
    check_near(crd_circuit_current(c, 1), 1e-3 * 100 * 10 * M_PI, 1e-9);
    check_near(crd_circuit_current(c, 0), -1e-3 * 100 * 10 * M_PI, 1e-9);
    crd_circuit_destroy(c);
}

static void without_initial_values_it_begins_at_rest(void** state)
{
    build_init(&b);
    build_source(&b, CRD_PART_VOLTAGE, "V1", 1, 0, build_dc(12));
    build_part(&b, CRD_PART_RESISTOR, "R1", 1, 2, 2);
    build_part(&b, CRD_PART_INDUCTOR, "L1", 2, 3, 1e-3);
    build_part(&b, CRD_PART_RESISTOR, "R2", 3, 0, 4);
    build_part(&b, CRD_PART_CAPACITOR, "C1", 3, 0, 1e-6);
    crd_circuit* c = create_of(*state);
    check_near(crd_circuit_voltage(c, 3), 8, 1e-12);
    check_near(crd_circuit_current(c, 2), 2, 1e-12);
    for (int i = 0; i < 10; i++) {
        run_step(*state, c);
    }
    check_near(crd_circuit_voltage(c, 3), 8, 1e-12); // and stays
    crd_circuit_destroy(c);
    b.n.uic = true; // now from nothing
    c = create_of(*state);
    check_near(crd_circuit_voltage(c, 3), 0, 1e-12);
    check_near(crd_circuit_current(c, 2), 0, 1e-12);
    check_near(crd_circuit_voltage(c, 2), 12, 1e-12); // no current through R1
    crd_circuit_destroy(c);
}

static void initial_values_of_nodes_reach_capacitors(void** state)
{
    static double ic[3] = {0, (double)NAN, 7};
    build_init(&b);
    build_source(&b, CRD_PART_VOLTAGE, "V1", 1, 0, build_dc(12));
    build_part(&b, CRD_PART_RESISTOR, "R1", 1, 2, 5);
    build_part(&b, CRD_PART_CAPACITOR, "C1", 2, 0, 1e-3);
    b.n.node_ic = ic;
    crd_circuit* c = create_of(*state);
    check_near(crd_circuit_voltage(c, 2), 7, 1e-12);
    check_near(crd_circuit_current(c, 2), 1, 1e-12);
    crd_circuit_destroy(c);
}

static void a_contradicting_initial_value_yields_to_the_circuit(void** state)
{
    build_init(&b);
    build_source(&b, CRD_PART_VOLTAGE, "V1", 1, 0, build_dc(3));
    build_storage(&b, CRD_PART_CAPACITOR, "C1", 1, 0, 1e-3, 5);
    build_part(&b, CRD_PART_RESISTOR, "R1", 1, 0, 10);
    crd_circuit* c = create_of(*state);
    check_near(crd_circuit_voltage(c, 1), 3, 1e-9);
    crd_circuit_destroy(c);
}

static void coupled_inductors_work_as_a_transformer(void** state)
{
    build_init(&b);
    build_source(&b, CRD_PART_VOLTAGE, "V1", 1, 0, build_sine());
    build_storage(&b, CRD_PART_INDUCTOR, "L1", 1, 0, 1, 0);
    build_storage(&b, CRD_PART_INDUCTOR, "L2", 2, 0, 4, 0);
    build_part(&b, CRD_PART_RESISTOR, "R1", 2, 0, 8);
    crd_part* k = build_part(&b, CRD_PART_MUTUAL, "K1", 0, 0, 1);
    k->refs[0] = 1;
    k->refs[1] = 2;
    crd_circuit* c = create_of(*state);
    for (int i = 0; i < 37; i++) {
        run_step(*state, c);
    }
    check_near(crd_circuit_voltage(c, 2), 2 * crd_circuit_voltage(c, 1), 1e-6);
    crd_circuit_destroy(c);
}

static void controlled_sources_follow_what_controls_them(void** state)
{
    build_init(&b);
    build_source(&b, CRD_PART_VOLTAGE, "V1", 1, 0, build_dc(2));
    build_part(&b, CRD_PART_RESISTOR, "R1", 1, 0, 4); // V1 carries -0.5 A
    static const crd_part_kind kinds[4] = {CRD_PART_VCVS, CRD_PART_CCCS, CRD_PART_VCCS,
                                           CRD_PART_CCVS};
    static const char* const names[4] = {"E1", "F1", "G1", "H1"};
    for (int i = 0; i < 4; i++) {
        crd_part* p = build_part(&b, kinds[i], names[i], 2 + i, 0, 3);
        p->nodes[2] = 1;
        p->nodes[3] = 0;
        p->refs[0] = 0;
        build_part(&b, CRD_PART_RESISTOR, "Rload", 2 + i, 0, 10);
    }
    crd_circuit* c = create_of(*state);
    run_step(*state, c);
    check_near(crd_circuit_voltage(c, 2), 6, 1e-12);
    check_near(crd_circuit_voltage(c, 3), 15, 1e-12); // 3 * -0.5 A out of node 3
    check_near(crd_circuit_voltage(c, 4), -60, 1e-12);
    check_near(crd_circuit_voltage(c, 5), -1.5, 1e-12);
    crd_circuit_destroy(c);
}

static void a_switch_closes_above_its_threshold_and_opens_below(void** state)
{
    build_init(&b);
    b.switches[0] = (crd_switch_model){"sm", 1, 0.5, 1, 1e6};
    b.n.switch_count = 1;
    b.waves[1] = (crd_waveform){.kind = CRD_WAVE_PULSE, .v = {0, 2, 0, 8e-3, 8e-3, 1e-3, 1}};
    build_source(&b, CRD_PART_VOLTAGE, "V1", 1, 0, build_dc(10));
    build_part(&b, CRD_PART_RESISTOR, "R1", 1, 2, 9);
    crd_part* s = build_part(&b, CRD_PART_SWITCH, "S1", 2, 0, 0);
    s->index = 0;
    s->nodes[2] = 3;
    s->nodes[3] = 0;
    build_part(&b, CRD_PART_VOLTAGE, "Vc", 3, 0, 0)->index = 1;
    b.n.wave_count = 2;
    crd_circuit* c = create_of(*state);
    bool closed[18];
    for (int i = 0; i < 17; i++) {
        run_step(*state, c);
        closed[i + 1] = crd_circuit_voltage(c, 2) < 5;
    }
    check(!closed[5] && closed[7]);   // 1.25 V, 1.75 V on the way up
    check(closed[12] && !closed[17]); // 1.25 V, 0 V on the way down
    check_near(crd_circuit_voltage(c, 2), 10 * 1e6 / (1e6 + 9), 1e-9);
    crd_circuit_destroy(c);
}

static void a_current_switch_looks_at_the_current_of_its_source(void** state)
{
    build_init(&b);
    b.switches[0] = (crd_switch_model){"wm", 0.5, 0, 2, 1e9};
    b.n.switch_count = 1;
    build_source(&b, CRD_PART_VOLTAGE, "V1", 1, 0, build_dc(10));
    crd_part* w = build_part(&b, CRD_PART_CURRENT_SWITCH, "W1", 1, 2, 0);
    w->index = 0;
    w->refs[0] = 3;
    build_part(&b, CRD_PART_RESISTOR, "R1", 2, 0, 8);
    build_source(&b, CRD_PART_VOLTAGE, "Vs", 3, 0,
                 (crd_waveform){.kind = CRD_WAVE_PULSE, .v = {0, -1, 2e-3, 1e-9, 1e-9, 1, 2}});
    build_part(&b, CRD_PART_RESISTOR, "R2", 3, 0, 1);
    crd_circuit* c = create_of(*state);
    run_step(*state, c);
    check(crd_circuit_voltage(c, 2) < 1e-6);
    for (int i = 0; i < 3; i++) {
        run_step(*state, c);
    }
    check_near(crd_circuit_current(c, 3), 1, 1e-12); // 1 A from node 3 through Vs to ground
    check_near(crd_circuit_voltage(c, 2), 8, 1e-12);
    crd_circuit_destroy(c);
}

static void slopes_of_sources_are_their_derivatives(void** state)
{
    static const double times[] = {0, 1, 3}, values[] = {2, 5, -1};
    const crd_waveform waves[] = {
        {.kind = CRD_WAVE_DC, .v = {4}},
        {.kind = CRD_WAVE_SIN, .v = {1, 3, 0.7, 0.5, 0.2, 30}},
        {.kind = CRD_WAVE_PULSE, .v = {-1, 2, 0.25, 0.5, 0.25, 0.5, 2}},
        {.kind = CRD_WAVE_PWL, .times = times, .values = values, .count = 3},
        {.kind = CRD_WAVE_EXP, .v = {1, 4, 0.3, 0.5, 1.3, 0.4}},
    };
    for (size_t i = 0; i < LENGTH(waves); i++) {
        for (double t = 0.1; t < 4; t += 0.37) { // no corner is that near
            const double d = 1e-5, to = crd_waveform_eval(&waves[i], t + d, NULL);
            const double from = crd_waveform_eval(&waves[i], t - d, NULL);
            check_near(crdi_waveform_slope(&waves[i], t), (to - from) / (2 * d), 1e-6);
        }
    }
}

static void an_input_sets_its_source(void** state)
{
    build_init(&b);
    b.inputs[0] = (crd_circuit_input){"u", "V", 4, 0};
    b.n.input_count = 1;
    build_source(&b, CRD_PART_VOLTAGE, "V1", 1, 0,
                 (crd_waveform){.kind = CRD_WAVE_INPUT, .input = 0});
    build_part(&b, CRD_PART_RESISTOR, "R1", 1, 0, 2);
    crd_circuit* c = create_of(*state);
    check_near(crd_circuit_current(c, 1), 2, 1e-12);
    check_ok(crd_circuit_set_input(c, 0, 6));
    run_step(*state, c);
    check_near(crd_circuit_current(c, 1), 3, 1e-12);
    check_status(crd_circuit_set_input(c, 1, 0), CRD_E_RANGE);
    check_status(crd_circuit_set_input(c, 0, (double)NAN), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "input u = nan");
    crd_circuit_destroy(c);
}

// ---- states ------------------------------------------------------------------------------------

static void a_restored_state_goes_on_with_the_same_bits(void** state)
{
    build_scalable(&b, 3);
    const trial t = {CRD_METHOD_BDF3, 1e-3, CRD_START_TR, 0, 0};
    crd_circuit* c = run_begin(*state, &b, &t);
    char* room = malloc(crd_circuit_state_size(c));
    for (int i = 0; i < 20; i++) {
        run_step(*state, c);
    }
    crd_circuit_save(c, room);
    for (int i = 0; i < 20; i++) {
        run_step(*state, c);
    }
    const double first = crd_circuit_voltage(c, 5);
    crd_circuit_restore(c, room);
    check_near(crd_circuit_time(c), 0.02, 1e-15);
    for (int i = 0; i < 20; i++) {
        run_step(*state, c);
    }
    check(crd_circuit_voltage(c, 5) == first);
    free(room);
    crd_circuit_destroy(c);
}

static void a_step_allocates_nothing(void** state)
{
    check_allocator a;
    crd_context* ctx = check_context(&a);
    build_rectifier(&b);
    crd_circuit* c = create_of(ctx);
    const int64_t before = a.allocations;
    for (int i = 0; i < 300; i++) {
        run_step(ctx, c);
    }
    check_int(a.allocations, before);
    crd_circuit_destroy(c);
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

static void every_allocation_may_fail(void** state)
{
    for (int once = 0; once < 2; once++) {
        for (int64_t at = 0;; at++) {
            check_allocator a;
            crd_context* ctx = check_context(&a);
            build_rectifier(&b);
            crd_circuit_options o = crd_circuit_defaults();
            o.step = 1e-3;
            a.fail_at = a.allocations + at;
            a.once = once == 1;
            crd_circuit* c = NULL;
            const crd_status st = crd_circuit_create(ctx, &b.n, &o, &c);
            a.fail_at = -1;
            if (st == CRD_OK) { crd_circuit_destroy(c); }
            crd_context_destroy(ctx);
            check_int(a.live, 0);
            if (st == CRD_OK) { break; }
            check_status(st, CRD_E_MEMORY);
            check(at < 1000);
        }
    }
}

// ---- bad circuits ------------------------------------------------------------------------------

static void check_refused(crd_context* ctx, const char* a, const char* c)
{
    crd_circuit_options o = crd_circuit_defaults();
    o.step = 1e-3;
    crd_circuit* out = NULL;
    check_status(crd_circuit_create(ctx, &b.n, &o, &out), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), a);
    check_contains(crd_error_text(ctx), c);
    check(out == NULL);
}

static void circuits_without_a_solution_are_refused_by_name(void** state)
{
    build_rlc(&b);
    build_part(&b, CRD_PART_RESISTOR, "Rx", 4, 5, 1);
    check_refused(*state, "node 3 floats", "ground"); // nothing at all at 3
    build_rlc(&b);
    build_part(&b, CRD_PART_RESISTOR, "Rx", 3, 4, 1);
    check_refused(*state, "node 3 (and 1 more) floats", "ground");
    build_rlc(&b);
    build_source(&b, CRD_PART_VOLTAGE, "V2", 3, 0, build_dc(1));
    build_source(&b, CRD_PART_VOLTAGE, "V3", 1, 3, build_dc(1));
    check_refused(*state, "loop of voltage sources", "V3, V2, V1");
    build_rlc(&b);
    build_source(&b, CRD_PART_VOLTAGE, "V2", 2, 2, build_dc(1));
    check_refused(*state, "loop of voltage sources", "V2");
    build_rlc(&b);
    build_source(&b, CRD_PART_CURRENT, "I7", 0, 3, build_dc(1));
    check_refused(*state, "cutset of current sources", "I7");
    check_contains(crd_error_text(*state), "node 3");
}

static void values_that_make_no_sense_are_refused_by_name(void** state)
{
    build_rlc(&b);
    b.parts[3].value = (double)INFINITY;
    check_refused(*state, "C1 = inf", "finite");
    build_rlc(&b);
    b.parts[1].value = (double)NAN;
    check_refused(*state, "R1 = nan", "finite");
    build_rlc(&b);
    b.parts[0].index = 9;
    check_refused(*state, "V1", "does not exist");
    build_rlc(&b);
    build_part(&b, CRD_PART_MUTUAL, "K1", 0, 0, 0.5)->refs[0] = 2;
    check_refused(*state, "K1", "two inductors");
    build_init(&b);
    check_refused(*state, "no parts", "circuit");
    build_rlc(&b);
    b.parts[1].value = -10; // negative resistances exist
    crd_circuit_destroy(create_of(*state));
    build_rlc(&b);
    build_part(&b, CRD_PART_INDUCTOR, "L2", 2, 0, -1);
    crd_part* k = build_part(&b, CRD_PART_MUTUAL, "K1", 0, 0, 0.5);
    k->refs[0] = 2;
    k->refs[1] = 5;
    check_refused(*state, "K1", "> 0");
}

static void options_that_make_no_sense_are_refused(void** state)
{
    build_rlc(&b);
    crd_circuit_options good = crd_circuit_defaults();
    good.step = 1e-3;
    crd_circuit_options bad[6] = {good, good, good, good, good, good};
    bad[0].step = 0;
    bad[1].step = (double)NAN;
    bad[2].max_iterations = 0;
    bad[3].tolerance = -1;
    bad[4].projection = -1;
    bad[5].method = (crd_circuit_method)99;
    for (int i = 0; i < 6; i++) {
        crd_circuit* c = NULL;
        check_status(crd_circuit_create(*state, &b.n, &bad[i], &c), CRD_E_RANGE);
        check_contains(crd_error_text(*state), "circuit: ");
    }
    crd_circuit* c = NULL;
    check_ok(crd_circuit_create(*state, &b.n, &good, &c));
    check_status(crd_circuit_step(c), CRD_E_STATE); // before begin
    check_status(crd_circuit_begin(c, (double)NAN), CRD_E_RANGE);
    check(isnan(crd_circuit_voltage(c, 77)) && isnan(crd_circuit_current(c, -1)));
    crd_circuit_destroy(c);
    crd_circuit_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables_and_constraints_are_counted_as_in_the_thesis),
        cmocka_unit_test(parallel_capacitors_leave_rank_7_of_8),
        cmocka_unit_test(rlc_errors_are_those_of_tables_3_7_and_3_8),
        cmocka_unit_test(scalable_rlc_errors_are_those_of_tables_3_10_and_3_11),
        cmocka_unit_test(gauss_methods_have_the_errors_of_their_prototypes),
        cmocka_unit_test(a_hundred_loops_run_with_the_error_of_the_first_loop_known),
        cmocka_unit_test(halving_the_step_shows_the_order),
        cmocka_unit_test(capacitors_share_their_current_from_the_first_moment),
        cmocka_unit_test(a_capacitor_across_a_source_carries_c_times_its_slope),
        cmocka_unit_test(without_initial_values_it_begins_at_rest),
        cmocka_unit_test(initial_values_of_nodes_reach_capacitors),
        cmocka_unit_test(a_contradicting_initial_value_yields_to_the_circuit),
        cmocka_unit_test(coupled_inductors_work_as_a_transformer),
        cmocka_unit_test(controlled_sources_follow_what_controls_them),
        cmocka_unit_test(a_switch_closes_above_its_threshold_and_opens_below),
        cmocka_unit_test(a_current_switch_looks_at_the_current_of_its_source),
        cmocka_unit_test(slopes_of_sources_are_their_derivatives),
        cmocka_unit_test(an_input_sets_its_source),
        cmocka_unit_test(a_restored_state_goes_on_with_the_same_bits),
        cmocka_unit_test(a_step_allocates_nothing),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(circuits_without_a_solution_are_refused_by_name),
        cmocka_unit_test(values_that_make_no_sense_are_refused_by_name),
        cmocka_unit_test(options_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests(tests, check_set_up, check_tear_down);
}
