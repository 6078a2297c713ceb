#include "check.h"
#include "reproduce/stop.h"

enum { K = 3 };
static const double hold[1] = {1}, eq12[4] = {2.4748, -0.6470, -0.1664, -0.6664},
                    eq20[4] = {6.5103, -1.5509, -9.9296, 5.9702}, line[2] = {4, -3},
                    line_slope[2] = {1, -1};
static const crd_linear zoh = {1, K, hold, NULL, 0}, trained = {4, K, eq12, NULL, 0},
                        designed = {4, K, eq20, NULL, 0}, foh = {2, K, line, line_slope, 0};

typedef struct fixture {
    check_allocator memory;
    crd_context* ctx;
} fixture;

static int setup(void** state)
{
    fixture* f = calloc(1, sizeof *f);
    f->ctx = check_context(&f->memory);
    *state = f;
    return 0;
}

static int teardown(void** state)
{
    fixture* f = *state;
    crd_context_destroy(f->ctx);
    const bool lost = f->memory.live != 0;
    free(f);
    return lost;
}

static crd_context* context_of(void** state)
{
    return ((fixture*)*state)->ctx;
}

static crdi_stop_result run(crd_context* ctx, const crdi_stop_run_options* o)
{
    crdi_stop_result r;
    check_ok(crdi_stop_run(ctx, o, &r));
    return r;
}

// ---- without stop ------------------------------------------------------------------------------

static void energies_of_the_linear_oscillator_are_those_of_the_monodromy(void** state)
{
    crd_context* ctx = context_of(state);
    crd_linear eros = {0};
    const crd_design d = crd_design_defaults(CRD_METHOD_EROS);
    check_ok(crd_linear_make(ctx, &d, K, &eros));
    // energy at 500 s, computed independently; 10 J at the beginning
    const struct {
        const crd_linear* l;
        bool own;
        double after, before;
    } rows[] = {{&zoh, false, 8.113179770749635, 8.528479679205738},
                {&trained, false, 6.974290275527612, 7.3270735945724494},
                {&designed, false, 6.821611544707186, 7.170806100885377},
                {&foh, false, 6.992559333227066, 7.350504861468861},
                {&foh, true, 6.993867951697631, 6.993870970935435},
                {&eros, true, 6.993855050107109, 6.993855398960119}};
    crdi_stop_run_options o = crdi_stop_run_defaults();
    o.oscillator.stop = false;
    o.whole = true;
    check_near(run(ctx, &o).energy, 6.993858097688207, 1e-9);
    o.whole = false;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        o.linear = rows[i].l;
        o.own = rows[i].own;
        o.sampling = CRDI_SAMPLE_AFTER;
        check_near(run(ctx, &o).energy, rows[i].after, 1e-5 * rows[i].after);
        o.sampling = CRDI_SAMPLE_BEFORE;
        const crdi_stop_result r = run(ctx, &o);
        check_near(r.energy, rows[i].before, 1e-5 * rows[i].before);
        check_int(r.jump_count, 0);
    }
    crd_linear_clear(ctx, &eros);
}

// Sums over whole periods of the slow mode, by which amplitudes are compared.
typedef struct growth {
    double early, late;
} growth;

static void see_growth(void* user, const crdi_row* r)
{
    growth* g = user;
    const double period = 2 * 3.14159265358979323846 / 0.38681;
    if (r->t >= 200 && r->t < 200 + 4 * period) { g->early += r->x1 * r->x1; }
    if (r->t >= 200 + 16 * period && r->t < 200 + 20 * period) { g->late += r->x1 * r->x1; }
}

static void growth_rates_are_the_real_parts_of_the_poles(void** state)
{
    const struct {
        const crd_linear* l;
        crdi_sampling sampling;
        double rate; // 1/s
    } rows[] = {{&zoh, CRDI_SAMPLE_AFTER, 7.349285394722301e-05},
                {&zoh, CRDI_SAMPLE_BEFORE, 1.233660518618962e-4},
                {&trained, CRDI_SAMPLE_AFTER, -7.445463490195626e-05},
                {&designed, CRDI_SAMPLE_AFTER, -9.972371545567747e-05},
                {&designed, CRDI_SAMPLE_BEFORE, -4.9850294630581616e-05}};
    crdi_stop_run_options o = crdi_stop_run_defaults();
    o.oscillator.stop = false;
    o.see = see_growth;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        growth g = {0};
        o.linear = rows[i].l;
        o.sampling = rows[i].sampling;
        o.user = &g;
        o.until = 200 + 20.1 * 2 * 3.14159265358979323846 / 0.38681;
        run(context_of(state), &o);
        const double time = 16 * 2 * 3.14159265358979323846 / 0.38681;
        check_near(0.5 * log(g.late / g.early) / time, rows[i].rate, 4e-6);
    }
}

// ---- with stop ---------------------------------------------------------------------------------

static void the_uncut_oscillator_hits_the_stop_when_it_should(void** state)
{
    crdi_stop_run_options o = crdi_stop_run_defaults();
    o.whole = true;
    const crdi_stop_result r = run(context_of(state), &o);
    const double times[3] = {4.314248202080749, 13.199597713913025, 22.458395907009013};
    const double speeds[3] = {-0.38096156398615716, -0.25510516467882044, -0.17233541834534738};
    for (int i = 0; i < 3; i++) {
        check_near(r.jumps[i].impact.t, times[i], 1e-6);
        check_near(r.jumps[i].impact.before, speeds[i], 1e-6);
        check_near(r.jumps[i].impact.after, -0.7 * speeds[i], 1e-6);
    }
    check_int(r.late_impacts, 0);
    check_near(r.late_max, 0.09891515875493866, 1e-6);
    check_near(r.energy, 0.0729921624409322, 1e-6);
}

static void only_the_hold_still_hits_the_stop_in_the_end(void** state)
{
    const struct {
        const crd_linear* l;
        double first, over, max, energy;
        bool hits;
    } rows[] = {{&zoh, 4.314208302130283, 1.0009, 0.100205, 0.0753035, true},
                {&designed, 4.314444025685495, 6.510658, 0.0984882, 0.0721292, false},
                {&trained, 4.321634455594612, 2.478034, 0.0975128, 0.0708072, false},
                {&foh, 4.314407829893732, 4.000318, 0.0989418, 0.0730290, false}};
    crdi_stop_run_options o = crdi_stop_run_defaults();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        o.linear = rows[i].l;
        const crdi_stop_result r = run(context_of(state), &o);
        check_near(r.jumps[0].impact.t, rows[i].first, 1e-6);
        check_near(r.jumps[0].over, rows[i].over, 1e-3);
        check((r.late_impacts > 0) == rows[i].hits);
        // late impacts graze the stop: their number is chaotic, amplitudes are not
        check_near(r.late_max, rows[i].max, 0.02 * rows[i].max);
        check_near(r.energy, rows[i].energy, 0.02 * rows[i].energy);
    }
}

static void a_mass_that_is_pressed_against_the_stop_rests_on_it(void** state)
{
    crdi_stop_run_options o = crdi_stop_run_defaults();
    o.oscillator.stop_at = 0.2; // above its equilibrium
    o.until = 100;
    o.late_from = 95;
    for (int i = 0; i < 2; i++) {
        o.whole = i == 0;
        o.linear = i == 0 ? NULL : &foh;
        const crdi_stop_result r = run(context_of(state), &o);
        check_near(r.late_min, 0.2, 1e-9);
        check_near(r.late_max, 0.2, 1e-6);
    }
}

static void an_element_is_as_good_as_its_weights(void** state)
{
    crd_context* ctx = context_of(state);
    crd_coupling_options opt = crd_coupling_defaults();
    opt.step = 1e-3;
    opt.algorithm = CRD_ALGORITHM_GIVEN;
    opt.given = &foh;
    opt.given_count = 1;
    opt.detection = CRD_DETECT_NONE;
    opt.reaction = CRD_REACT_NONE;
    crd_coupling* elements[3] = {0};
    const double first[3] = {1, 0, 0};
    crdi_continuation by_element[3] = {0};
    for (int i = 0; i < 3; i++) {
        opt.start_value = first[i];
        check_ok(crd_coupling_create(ctx, &opt, &elements[i]));
        by_element[i].element = elements[i];
    }
    const crdi_continuation by_weights = {.linear = &foh};
    const crdi_oscillator o = crdi_oscillator_defaults(true);
    crdi_cut a, b;
    crdi_cut_init(&a, &o, K, CRDI_SAMPLE_AFTER, by_weights, by_weights, by_weights);
    crdi_cut_init(&b, &o, K, CRDI_SAMPLE_AFTER, by_element[0], by_element[1], by_element[2]);
    int hits = 0;
    for (int n = 0; n < 15000; n++) {
        crdi_cut_step(&a);
        crdi_cut_step(&b);
        hits += a.row.hit;
        check(a.row.hit == b.row.hit);
        check_near(b.row.v1_hat, a.row.v1_hat, 1e-9);
        check_near(b.row.energy, a.row.energy, 1e-9);
    }
    check_int(hits, 2);
    for (int i = 0; i < 3; i++) {
        crd_coupling_destroy(elements[i]);
    }
}

// ---- training ----------------------------------------------------------------------------------

static void keep_v1(void* user, const crdi_row* r)
{
    ((double*)user)[r->n] = r->v1;
}

static void descent_goes_the_way_of_an_independent_implementation(void** state)
{
    crd_context* ctx = context_of(state);
    static double y[5001];
    crdi_stop_run_options o = crdi_stop_run_defaults();
    o.whole = true;
    o.until = 5;
    o.see = keep_v1;
    o.user = y;
    run(ctx, &o);
    crd_network start, out;
    check_ok(crd_network_morph(ctx, &designed, 0.01, &start));
    crd_training t = crd_training_defaults();
    t.k = K;
    t.protect = t.hold_out = 0;
    t.freeze_biases = t.drop_after_jump = false;
    t.epochs = 100;
    t.stages = 1;
    double loss[100];
    check_ok(crd_learn_train(ctx, &t, y, 5001, &start, &out, NULL, loss));
    const struct {
        int epoch;
        double loss;
    } curve[] = {{1, 0.007110892771096732},
                 {2, 0.006699307265183413},
                 {10, 0.003421174899151895},
                 {50, 0.0008234363385129505},
                 {100, 0.0006311742097490161}};
    for (int i = 0; i < 5; i++) {
        check_near(loss[curve[i].epoch - 1], curve[i].loss, 1e-6 * curve[i].loss);
    }
    crd_network_clear(ctx, &out);
    crd_network_clear(ctx, &start);
}

static crdi_stop_result run_trained(crd_context* ctx, const crd_linear* l, const crd_training* t,
                                    crdi_sampling sampling)
{
    crd_network n;
    check_ok(crd_network_morph(ctx, l, 0.01, &n));
    crdi_stop_run_options o = crdi_stop_run_defaults();
    o.linear = l;
    o.network = &n;
    o.train = t;
    o.sampling = sampling;
    o.until = 60;
    const crdi_stop_result r = run(ctx, &o);
    crd_network_clear(ctx, &n);
    return r;
}

// Plain descent makes the smooth part of v1 five to ten times worse.
static void after_training_jumps_do_not_overshoot_and_the_smooth_part_is_kept(void** state)
{
    crd_context* ctx = context_of(state);
    const double foh4[4] = {4, -3, 0, 0};
    const crd_linear foh_of_4 = {4, K, foh4, NULL, 0};
    const crd_linear* const starts[] = {&designed, &trained, &foh_of_4, &foh};
    for (int i = 0; i < 4 * 2; i++) {
        const crdi_sampling sampling = i / 4 == 0 ? CRDI_SAMPLE_AFTER : CRDI_SAMPLE_BEFORE;
        const crd_training t = crd_training_defaults();
        const crdi_stop_result before = run_trained(ctx, starts[i % 4], NULL, sampling);
        const crdi_stop_result after = run_trained(ctx, starts[i % 4], &t, sampling);
        check_near(after.jumps[0].over, before.jumps[0].over, 1e-9); // not trained yet
        for (int j = 1; j < 4; j++) {
            check(before.jumps[j].over > 2.4);
            check(after.jumps[j].over <= 1.05);
            check(after.jumps[j].under >= 0.95);
        }
        check(after.report.guarded);
        check(after.smooth_rms <= 3 * before.smooth_rms);
    }
}

static void seeds_and_batches_do_not_change_what_is_kept(void** state)
{
    crd_context* ctx = context_of(state);
    const crdi_stop_result before = run_trained(ctx, &designed, NULL, CRDI_SAMPLE_AFTER);
    for (uint64_t seed = 1; seed <= 3; seed++) {
        crd_training t = crd_training_defaults();
        t.batch = 32;
        t.epochs = 10;
        t.seed = seed;
        t.freeze_biases = seed % 2 == 0;
        t.drop_after_jump = seed < 3;
        const crdi_stop_result after = run_trained(ctx, &designed, &t, CRDI_SAMPLE_AFTER);
        check(after.jumps[1].over <= 1.05);
        check(after.smooth_rms <= 3 * before.smooth_rms);
    }
}

static void descent_alone_overshoots_less_but_gives_the_smooth_part_away(void** state)
{
    crd_context* ctx = context_of(state);
    crd_training t = crd_training_defaults();
    t.protect = t.hold_out = 0;
    t.freeze_biases = t.drop_after_jump = false;
    const crdi_stop_result before = run_trained(ctx, &designed, NULL, CRDI_SAMPLE_AFTER);
    const crdi_stop_result after = run_trained(ctx, &designed, &t, CRDI_SAMPLE_AFTER);
    check(after.jumps[1].over < 1.15);
    check(after.jumps[2].over < 1.15);
    check(after.smooth_rms > 5 * before.smooth_rms);
}

// The same with a real element: samples are pushed, the network is taken over by a swap on trial.
static void an_element_takes_the_trained_network_over(void** state)
{
    crd_context* ctx = context_of(state);
    crd_network start, out;
    check_ok(crd_network_morph(ctx, &designed, 0.01, &start));
    crd_coupling_options opt = crd_coupling_defaults();
    opt.step = 1e-3;
    opt.algorithm = CRD_ALGORITHM_NETWORK;
    opt.network = &start;
    opt.detection = CRD_DETECT_NONE;
    opt.reaction = CRD_REACT_NONE;
    crd_coupling* element = NULL;
    check_ok(crd_coupling_create(ctx, &opt, &element));
    const crdi_continuation others = {.linear = &designed}, v1 = {.element = element};
    const crdi_oscillator o = crdi_oscillator_defaults(true);
    static double y[5001];
    crdi_cut s;
    crd_training t = crd_training_defaults();
    t.k = K;
    double over[2] = {0};
    int hits = 0;
    crdi_impact last = {.t = -1};
    crdi_cut_init(&s, &o, K, CRDI_SAMPLE_AFTER, others, v1, others);
    for (int n = 0; n < 15000; n++) {
        if (n <= 5000) { y[n] = s.row.v1; }
        if (n == 8000) {
            check_ok(crd_learn_train(ctx, &t, y, 4998, &start, &out, NULL, NULL));
            check(crd_coupling_swap(element, &out, 6000)); // the second jump is part of the trial
            crd_network_clear(ctx, &out);
        }
        crdi_cut_step(&s);
        if (s.row.hit) {
            last = s.row.impact;
            hits++;
        }
        if (hits > 0 && s.row.t - last.t < 0.014) {
            const double part = (s.row.v1_hat - last.before) / (last.after - last.before);
            over[hits - 1] = fmax(over[hits - 1], part);
        }
    }
    check_int(hits, 2);
    check(over[0] > 6.4);
    check(over[1] <= 1.05);
    const crd_coupling_counts counts = crd_coupling_get_counts(element);
    check_int(counts.swaps, 1);
    check_int(counts.rollbacks, 0);
    crd_coupling_destroy(element);
    crd_network_clear(ctx, &start);
}

static void runs_that_make_no_sense_are_refused(void** state)
{
    crd_context* ctx = context_of(state);
    crdi_stop_result r;
    crdi_stop_run_options o = crdi_stop_run_defaults();
    check_status(crdi_stop_run(ctx, &o, &r), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "no weights");
    o.linear = &zoh;
    o.until = NAN;
    check_status(crdi_stop_run(ctx, &o, &r), CRD_E_RANGE);
    o.until = 5;
    o.k = -1;
    check_status(crdi_stop_run(ctx, &o, &r), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "k = -1");
    o.k = K;
    const crd_training t = crd_training_defaults();
    o.train = &t;
    check_status(crdi_stop_run(ctx, &o, &r), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "training needs a network");
}

static void every_allocation_may_fail(void** state)
{
    fixture* f = *state;
    crd_network n;
    check_ok(crd_network_morph(f->ctx, &designed, 0.01, &n));
    crd_training t = crd_training_defaults();
    t.epochs = 1;
    crdi_stop_run_options o = crdi_stop_run_defaults();
    o.linear = &designed;
    o.network = &n;
    o.train = &t;
    o.train_at = 0.1;
    o.swap_at = 0.2;
    o.until = 0.3;
    for (int64_t fail_at = 0;; fail_at++) {
        check(fail_at < 100);
        crdi_stop_result r;
        f->memory.allocations = 0;
        f->memory.fail_at = fail_at;
        const crd_status st = crdi_stop_run(f->ctx, &o, &r);
        f->memory.fail_at = -1;
        check_int(f->memory.live, 2); // the context and the network
        if (st == CRD_OK) { break; }
        check_int(st, CRD_E_MEMORY);
    }
    crd_network_clear(f->ctx, &n);
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(energies_of_the_linear_oscillator_are_those_of_the_monodromy),
        test(growth_rates_are_the_real_parts_of_the_poles),
        test(the_uncut_oscillator_hits_the_stop_when_it_should),
        test(only_the_hold_still_hits_the_stop_in_the_end),
        test(a_mass_that_is_pressed_against_the_stop_rests_on_it),
        test(an_element_is_as_good_as_its_weights),
        test(descent_goes_the_way_of_an_independent_implementation),
        test(after_training_jumps_do_not_overshoot_and_the_smooth_part_is_kept),
        test(seeds_and_batches_do_not_change_what_is_kept),
        test(descent_alone_overshoots_less_but_gives_the_smooth_part_away),
        test(an_element_takes_the_trained_network_over),
        test(runs_that_make_no_sense_are_refused),
        test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
