#include "coupling_test.h"

static void a_morphed_network_is_the_linear_algorithm(void** state)
{
    crd_context* ctx = context_of(state);
    const double a[4] = {6.5103, -1.5509, -9.9296, 5.9702}; // Baumann 2020, eq. 20
    const crd_linear l = {4, 3, a, NULL, 0};
    uint32_t seed = 1;
    for (double alpha = 0; alpha <= 1; alpha += 0.25) {
        crd_network n;
        check_ok(crd_network_morph(ctx, &l, alpha, &n));
        check_int(n.n1, 4);
        check_int(n.n2, 2);
        for (int i = 0; i < 100; i++) {
            double y[4];
            for (int j = 0; j < 4; j++) {
                y[j] = next_normal(&seed);
            }
            check_near(crd_network_eval(&n, y), crd_linear_eval(&l, y, 0), 1e-13);
        }
        crd_network_clear(ctx, &n);
    }
}

static void a_network_of_any_shape_is_the_linear_algorithm(void** state)
{
    crd_context* ctx = context_of(state);
    const double a[4] = {6.5103, -1.5509, -9.9296, 5.9702};
    const crd_linear l = {4, 3, a, NULL, 0.375}; // its constant becomes that of the output
    static const struct {
        int neurons[4], layers;
        const char* shape;
    } shapes[] = {{{1, 2}, 2, "4-1-2-1"},
                  {{3, 4}, 2, "4-3-4-1"},
                  {{8, 6}, 2, "4-8-6-1"},
                  {{64, 64}, 2, "4-64-64-1"},
                  {{2}, 1, "4-2-1"},
                  {{10}, 1, "4-10-1"},
                  {{4, 2, 2}, 3, "4-4-2-2-1"},
                  {{3, 6, 4}, 3, "4-3-6-4-1"},
                  {{5, 2, 8, 6}, 4, "4-5-2-8-6-1"},
                  {{64, 64, 64, 64}, 4, "4-64-64-64-64-1"}};
    uint32_t seed = 1;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        crd_network n;
        char shape[80];
        check_ok(crd_network_morph_to(ctx, &l, 0.01, shapes[s].neurons, shapes[s].layers, &n));
        check_text(crd_network_shape(&n, shape, sizeof shape), shapes[s].shape);
        for (int i = 0; i < 100; i++) {
            double y[4];
            for (int j = 0; j < 4; j++) {
                y[j] = next_normal(&seed);
            }
            check_near(crd_network_eval(&n, y), crd_linear_eval(&l, y, 0), 1e-12);
        }
        crd_network_clear(ctx, &n);
    }
    crd_network n;
    static const struct {
        int neurons[5], layers;
        const char* says;
    } bad[] = {{{4, 3}, 2, "even"},          {{3}, 1, "even"},
               {{4, 2, 3}, 3, "even"},       {{65, 2}, 2, "4-65-2-1"},
               {{0, 2}, 2, "1 .. 4 layers"}, {{4, 2, 0}, 3, "4-4-2-0-1"},
               {{2}, 0, "0 hidden layers"},  {{2, 2, 2, 2, 2}, 5, "5 hidden layers"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        check_status(crd_network_morph_to(ctx, &l, 0.01, bad[i].neurons, bad[i].layers, &n),
                     CRD_E_RANGE);
        check_contains(crd_error_text(ctx), bad[i].says);
    }
}

// By hand, s the leaky ReLU with 0.5. 2-2-1: s(1) = 1, s(-3) = -1.5; 3 + 2 * 1 - (-1.5) = 6.5.
// 2-1-1-1-1-1: u = 2 - 1 + 1 = 2; s(-2) = -1; s(-1 + 3) = 2; s(-4 + 1) = -1.5; 10 - 1.5 * 2 = 7.
static void networks_of_other_depths_are_what_one_works_out_by_hand(void** state)
{
    (void)state;
    const double y[2] = {2, -1}, zero[2] = {0};
    const double W[4] = {1, 1, -1, 1}, out[2] = {2, -1};
    const crd_network one = {
        .m = 2, .n2 = 2, .alpha = 0.5, .W1 = W, .b1 = W, .W2 = W, .b2 = zero, .W3 = out, .b3 = 3};
    check_near(crd_network_eval(&one, y), 6.5, 1e-15);
    const double first[2] = {1, 1}, plus = 1, minus = -1, three = 3, twice = -2, two = 2;
    const crd_network four = {.m = 2,
                              .n1 = 1,
                              .n2 = 1,
                              .alpha = 0.5,
                              .W1 = first,
                              .b1 = &plus,
                              .W2 = &minus,
                              .b2 = zero,
                              .W3 = &two,
                              .b3 = 10,
                              .more = 2,
                              .n_more = {1, 1},
                              .W_more = {&plus, &twice},
                              .b_more = {&three, &plus}};
    check_near(crd_network_eval(&four, y), 7, 1e-15);
}

static void an_element_with_a_network_is_one_with_its_weights(void** state)
{
    crd_context* ctx = context_of(state);
    const double a[4] = {6.5, -1.5, -10, 6};
    const crd_linear l = {4, 3, a, NULL, 0};
    crd_network n;
    check_ok(crd_network_morph(ctx, &l, 0.01, &n));
    crd_coupling_options o = crd_coupling_defaults();
    o.step = 0.001;
    o.algorithm = CRD_ALGORITHM_NETWORK;
    o.network = &n;
    crd_coupling *with_network = NULL, *with_weights = NULL;
    check_ok(crd_coupling_create(ctx, &o, &with_network));
    o.algorithm = CRD_ALGORITHM_GIVEN;
    o.given = &l;
    o.given_count = 1;
    check_ok(crd_coupling_create(ctx, &o, &with_weights));
    crd_network_clear(ctx, &n); // the element has its own
    for (int i = 0; i < 200; i++) {
        const double y = sin(0.1 * i) + (i > 90);
        crd_coupling_push(with_network, y, i * o.step, i);
        crd_coupling_push(with_weights, y, i * o.step, i);
        const double t = (i + 3) * o.step;
        check_near(crd_coupling_eval(with_network, t), crd_coupling_eval(with_weights, t), 1e-12);
    }
    crd_coupling_destroy(with_network);
    crd_coupling_destroy(with_weights);
}

static void networks_that_make_no_sense_are_refused(void** state)
{
    crd_context* ctx = context_of(state);
    const double w[2] = {1, NAN}, zero = 0, one = 1;
    const crd_linear l = {2, 0, w, NULL, 0}, fine = {1, 0, &one, NULL};
    crd_network n = {0};
    check_status(crd_network_morph(ctx, &l, 0.01, &n), CRD_E_RANGE);
    check_status(crd_network_morph(ctx, &fine, -1, &n), CRD_E_RANGE);
    crd_coupling_options o = crd_coupling_defaults();
    crd_coupling* c = NULL;
    o.step = 1;
    o.algorithm = CRD_ALGORITHM_NETWORK;
    check_status(crd_coupling_create(ctx, &o, &c), CRD_E_RANGE);
    n = (crd_network){1, 1, 1, 0.01, &w[1], &zero, &one, &zero, &one, 0};
    o.network = &n;
    check_status(crd_coupling_create(ctx, &o, &c), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "W1[0]");
    n.n1 = 100000;
    check_status(crd_coupling_create(ctx, &o, &c), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "1-100000-1-1");
}

// ---- swapping ----------------------------------------------------------------------------------

enum { K = 3 };
static const double dT = 0.01;
static const double hold[2] = {1, 0}, line[2] = {1 + K, -K}, half_line[2] = {1 + 0.5 * K, -0.5 * K};

static crd_network two_taps(crd_context* ctx, const double* a)
{
    const crd_linear l = {2, K, a, NULL, 0};
    crd_network n;
    check_ok(crd_network_morph(ctx, &l, 0.01, &n));
    return n;
}

static crd_coupling* element_with(crd_context* ctx, const crd_network* n, bool any_gain)
{
    crd_coupling_options o = crd_coupling_defaults();
    o.step = dT;
    o.algorithm = CRD_ALGORITHM_NETWORK;
    o.network = n;
    o.any_gain = any_gain;
    crd_coupling* c = NULL;
    check_ok(crd_coupling_create(ctx, &o, &c));
    return c;
}

static double swing(double t)
{
    return 3 * sin(4 * t) + 1;
}

static void push_swing(crd_coupling* c, int n)
{
    crd_coupling_push(c, swing(n * dT), n * dT, n);
}

// Push sample n and evaluate when it is K steps old, as ever.
static double step_swing(crd_coupling* c, int n)
{
    push_swing(c, n);
    return crd_coupling_eval(c, (n + K) * dT);
}

static bool uses(const crd_coupling* c, const crd_network* n)
{
    return memcmp(crd_coupling_get_network(c)->W1, n->W1, 2 * sizeof *n->W1) == 0;
}

static void refused_swaps_change_nothing(void** state)
{
    crd_context* ctx = context_of(state);
    const double loud[2] = {2.02, -1}, nearly[2] = {2.009, -1}, three[3] = {2, -2, 1};
    const crd_linear l3 = {3, K, three, NULL, 0};
    crd_network good = two_taps(ctx, line), gain = two_taps(ctx, loud),
                fine = two_taps(ctx, nearly);
    crd_network longer;
    check_ok(crd_network_morph(ctx, &l3, 0.01, &longer));
    crd_coupling *c = element_with(ctx, &good, false), *twin = element_with(ctx, &good, false);
    crd_coupling* tolerant = element_with(ctx, &good, true);
    double W1[8];
    memcpy(W1, good.W1, sizeof W1);
    W1[3] = NAN;
    const double W3[2] = {INFINITY, -1};
    for (int n = 0; n < 100; n++) {
        crd_network bad[8] = {gain, longer, good, good, good, good, good, good};
        bad[2].W1 = W1;
        bad[3].W3 = W3;
        bad[4].b3 = NAN;
        bad[5].alpha = -1;
        bad[6].n2 = 65;
        bad[7].b3 = 0.05; // 1.25 % of the largest sample
        for (int i = 0; i < 8; i++) {
            if (i == 7 && n < 60) { continue; } // the largest is yet to come
            check(!crd_coupling_swap(c, &bad[i], 10));
        }
        check_near(step_swing(c, n), step_swing(twin, n), 0);
    }
    check_int(crd_coupling_get_counts(c).swaps, 0);
    check_int(crd_coupling_get_counts(c).rollbacks, 0);
    check(uses(c, &good));
    check(crd_coupling_swap(tolerant, &gain, 0));
    check(crd_coupling_swap(c, &fine, 0)); // 0.9 %
    crd_coupling_destroy(c);
    crd_coupling_destroy(twin);
    crd_coupling_destroy(tolerant);
    crd_coupling_options o = crd_coupling_defaults();
    o.step = dT;
    check_ok(crd_coupling_create(ctx, &o, &c));
    check(!crd_coupling_swap(c, &good, 0)); // no networks there
    check(crd_coupling_get_network(c) == NULL);
    crd_coupling_destroy(c);
    crd_network_clear(ctx, &good);
    crd_network_clear(ctx, &gain);
    crd_network_clear(ctx, &fine);
    crd_network_clear(ctx, &longer);
}

// From 2-4-2-1 to one, three and four hidden layers and back, each of them a line where the element
// began with a hold; what comes out is what an element with the line says, from then on.
static void a_network_of_another_shape_may_take_over(void** state)
{
    crd_context* ctx = context_of(state);
    static const struct {
        int neurons[4], layers;
    } shapes[] = {{{6}, 1}, {{4, 2, 2}, 3}, {{8, 4, 2, 6}, 4}, {{40, 30}, 2}, {{4, 2}, 2}};
    enum { SHAPES = sizeof shapes / sizeof *shapes };
    const crd_linear l = {2, K, line, NULL, 0};
    crd_network from = two_taps(ctx, hold), to = two_taps(ctx, line);
    crd_coupling *c = element_with(ctx, &from, false), *twin = element_with(ctx, &to, false);
    const int64_t allocations = ((coupling_test*)*state)->memory.allocations;
    crd_network other[SHAPES];
    for (int s = 0; s < SHAPES; s++) {
        check_ok(
            crd_network_morph_to(ctx, &l, 0.01, shapes[s].neurons, shapes[s].layers, &other[s]));
    }
    const int64_t made = ((coupling_test*)*state)->memory.allocations;
    check_int(made, allocations + SHAPES);
    for (int n = 0; n < 40 * SHAPES; n++) {
        if (n % 40 == 20) {
            check(crd_coupling_swap(c, &other[n / 40], n < 40 ? 10 : 0));
            char got[80], want[80];
            check_text(crd_network_shape(crd_coupling_get_network(c), got, sizeof got),
                       crd_network_shape(&other[n / 40], want, sizeof want));
        }
        const double x = step_swing(c, n), y = step_swing(twin, n);
        if (n > 20 + 1) { check_near(x, y, 1e-12); } // the difference fades over one step
    }
    check_int(((coupling_test*)*state)->memory.allocations, made);
    check_int(crd_coupling_get_counts(c).swaps, SHAPES);
    check_int(crd_coupling_get_counts(c).rollbacks, 0);
    // More weights than there is room for: 2 * 64 + 64 + 64 * 32 ...
    crd_network large;
    check_ok(crd_network_morph_to(ctx, &l, 0.01, (const int[]){64, 32}, 2, &large));
    check(!crd_coupling_swap(c, &large, 0));
    crd_network_clear(ctx, &large);
    crd_coupling_reset(c);
    check(uses(c, &from));
    crd_coupling_destroy(c);
    crd_coupling_destroy(twin);
    for (int s = 0; s < SHAPES; s++) {
        crd_network_clear(ctx, &other[s]);
    }
    crd_network_clear(ctx, &from);
    crd_network_clear(ctx, &to);
}

static void a_network_may_come_before_the_first_sample(void** state)
{
    crd_context* ctx = context_of(state);
    crd_network from = two_taps(ctx, hold), to = two_taps(ctx, line);
    crd_coupling *c = element_with(ctx, &from, false), *twin = element_with(ctx, &to, false);
    crd_network offset = to;
    offset.b3 = 0.02; // as no sample is known, they are taken to be of size 1
    check(!crd_coupling_swap(c, &offset, 0));
    check(crd_coupling_swap(c, &to, 5));
    for (int n = 0; n < 30; n++) {
        check_near(step_swing(c, n), step_swing(twin, n), 0);
    }
    check_int(crd_coupling_get_counts(c).rollbacks, 0);
    crd_coupling_destroy(c);
    crd_coupling_destroy(twin);
    crd_network_clear(ctx, &from);
    crd_network_clear(ctx, &to);
}

static void the_difference_fades_over_one_macro_step(void** state)
{
    crd_context* ctx = context_of(state);
    crd_network from = two_taps(ctx, hold), to = two_taps(ctx, line);
    crd_coupling *c = element_with(ctx, &from, false), *same = element_with(ctx, &from, false);
    crd_coupling *old = element_with(ctx, &from, false), *new = element_with(ctx, &to, false);
    crd_coupling* all[4] = {c, same, old, new};
    enum { MICRO = 16, SWAP = 47 * MICRO + 5 }; // not at the beginning of a macro step
    double begin = 0, difference = 0, before = 0;
    for (int i = 0; i < 60 * MICRO; i++) {
        if (i == SWAP) {
            check(crd_coupling_swap(c, &to, 1000));
            check(crd_coupling_swap(same, &from, 1000));
        }
        double y[4];
        const double t = dT * i / MICRO + K * dT;
        for (int j = 0; j < 4; j++) {
            if (i % MICRO == 0) { push_swing(all[j], i / MICRO); }
            y[j] = crd_coupling_eval(all[j], t);
        }
        check_near(y[1], y[2], 0); // the same network is no change
        if (i == SWAP) {
            begin = t;
            difference = y[2] - y[3];
            check(fabs(difference) > 0.1);
            check_near(y[0], before, 1e-12);
        }
        const double rest = i < SWAP ? 0 : fmax(0, 1 - (t - begin) / dT);
        check_near(y[0], i < SWAP ? y[2] : y[3] + rest * difference, 1e-12);
        before = y[0];
    }
    check_int(crd_coupling_get_counts(c).swaps, 1);
    check(uses(c, &to) && !uses(same, &to));
    for (int j = 0; j < 4; j++) {
        crd_coupling_destroy(all[j]);
    }
    crd_network_clear(ctx, &from);
    crd_network_clear(ctx, &to);
}

// The network that is used after the trial of `to` in an element with `from`.
static void check_trial(void** state, const double* from, const double* to, bool comes_back)
{
    coupling_test* test = *state;
    crd_network a = two_taps(test->ctx, from), b = two_taps(test->ctx, to);
    crd_coupling* c = element_with(test->ctx, &a, false);
    const int64_t allocations = test->memory.allocations;
    enum { BEGIN = 50, TRIAL = 30, MICRO = 16 };
    double before = 0;
    for (int n = 0; n < 200; n++) {
        if (n == BEGIN) { check(crd_coupling_swap(c, &b, TRIAL)); }
        push_swing(c, n);
        // the first prediction of the new one is made with this sample for the K-th after it
        const bool settled = n >= BEGIN + K + TRIAL - 1;
        if (from != to) { check_int(uses(c, &b), n >= BEGIN && !(settled && comes_back)); }
        check_int(crd_coupling_get_counts(c).rollbacks, settled && comes_back);
        for (int i = 0; i < MICRO; i++) { // networks differ by up to 0.36, the signal does 0.12
            const double now = crd_coupling_eval(c, (n + K) * dT + i * dT / MICRO);
            if (n > 3) { check_near(now, before, i == 0 ? 0.2 : 0.4 / MICRO); }
            before = now;
        }
    }
    check_int(crd_coupling_get_counts(c).swaps, 1);
    check_int(test->memory.allocations, allocations);
    crd_coupling_destroy(c);
    crd_network_clear(test->ctx, &a);
    crd_network_clear(test->ctx, &b);
}

static void a_worse_network_is_given_up_after_its_trial(void** state)
{
    check_trial(state, line, hold, true);
    check_trial(state, half_line, hold, true);
}

static void a_better_network_stays(void** state)
{
    check_trial(state, hold, line, false);
    check_trial(state, half_line, line, false);
    check_trial(state, line, line, false); // as good
}

// The coupling FMU: asked when a step begins and, with a latency of one more, when it ends.
static void a_network_is_judged_by_what_was_said_first(void** state)
{
    crd_context* ctx = context_of(state);
    static const double longer[2] = {K + 2, -(K + 1)};
    crd_network now = two_taps(ctx, line), end = two_taps(ctx, longer);
    for (int i = 0; i < 2; i++) {
        crd_coupling* c = element_with(ctx, i ? &end : &now, false);
        for (int n = 0; n < 150; n++) {
            if (n == 50) { check(crd_coupling_swap(c, i ? &now : &end, 30)); }
            step_swing(c, n);
            crd_coupling_eval(c, (n + K + 1) * dT);
        }
        check(uses(c, &end));
        check_int(crd_coupling_get_counts(c).rollbacks, i);
        crd_coupling_destroy(c);
    }
    crd_network_clear(ctx, &now);
    crd_network_clear(ctx, &end);
}

// What is said of the newest sample itself is compared when the next one comes.
static void trials_end_without_latency_too(void** state)
{
    crd_context* ctx = context_of(state);
    crd_network none = two_taps(ctx, hold), full = two_taps(ctx, line);
    for (int i = 0; i < 2; i++) { // nothing is to be compensated: the hold is right
        crd_coupling* c = element_with(ctx, i ? &full : &none, false);
        for (int n = 0; n < 100; n++) {
            if (n == 50) { check(crd_coupling_swap(c, i ? &none : &full, 20)); }
            push_swing(c, n);
            check_int(crd_coupling_get_counts(c).rollbacks, i == 0 && n >= 70);
            crd_coupling_eval(c, n * dT);
        }
        check(uses(c, &none));
        crd_coupling_destroy(c);
    }
    crd_network_clear(ctx, &none);
    crd_network_clear(ctx, &full);
}

static void the_next_network_has_to_beat_the_best_so_far(void** state)
{
    crd_context* ctx = context_of(state);
    crd_network none = two_taps(ctx, hold), half = two_taps(ctx, half_line);
    crd_network full = two_taps(ctx, line);
    // full -> none, worse so far -> half: back to full. none -> full, better so far -> half: full.
    for (int better = 0; better < 2; better++) {
        crd_coupling* c = element_with(ctx, better ? &none : &full, false);
        for (int n = 0; n < 200; n++) {
            if (n == 50) { check(crd_coupling_swap(c, better ? &full : &none, 1000)); }
            if (n == 80) { check(crd_coupling_swap(c, &half, 30)); }
            step_swing(c, n);
            if (n == 100) { check(uses(c, &half)); }
        }
        check(uses(c, &full));
        check_int(crd_coupling_get_counts(c).swaps, 2);
        check_int(crd_coupling_get_counts(c).rollbacks, better ? 1 : 2);
        crd_coupling_destroy(c);
    }
    // The one to beat is kept although it is neither the first nor the last one.
    crd_coupling* long_ago = element_with(ctx, &none, false);
    for (int n = 0; n < 300; n++) {
        if (n == 50) { check(crd_coupling_swap(long_ago, &full, 20)); } // stays
        if (n == 150) { check(crd_coupling_swap(long_ago, &none, 1000)); }
        if (n == 200) { check(crd_coupling_swap(long_ago, &half, 30)); }
        step_swing(long_ago, n);
        if (n == 140) { check(uses(long_ago, &full)); }
    }
    check(uses(long_ago, &full));
    crd_coupling_destroy(long_ago);
    // One that was replaced before it said anything is no measure, and leaves no bump.
    crd_coupling *c = element_with(ctx, &full, false), *twin = element_with(ctx, &full, false);
    for (int n = 0; n < 100; n++) {
        const bool swap = n == 50;
        push_swing(c, n);
        push_swing(twin, n);
        if (swap) {
            check(crd_coupling_swap(c, &none, 20) && crd_coupling_swap(c, &half, 20) &&
                  crd_coupling_swap(c, &none, 20));
        }
        const double t = (n + K) * dT, y = crd_coupling_eval(twin, t);
        if (n <= 50) { check_near(crd_coupling_eval(c, t), y, 1e-12); }
        crd_coupling_eval(c, t);
    }
    check(uses(c, &full));
    check_int(crd_coupling_get_counts(c).rollbacks, 1);
    crd_coupling_destroy(c);
    crd_coupling_destroy(twin);
    crd_network_clear(ctx, &none);
    crd_network_clear(ctx, &half);
    crd_network_clear(ctx, &full);
}

static void reset_brings_the_network_of_create_back(void** state)
{
    crd_context* ctx = context_of(state);
    crd_network first = two_taps(ctx, half_line), second = two_taps(ctx, line);
    crd_network third = two_taps(ctx, hold);
    crd_coupling *c = element_with(ctx, &first, false), *fresh = element_with(ctx, &first, false);
    for (int n = 0; n < 77; n++) {
        if (n % 10 == 3) { check(crd_coupling_swap(c, n % 20 == 3 ? &second : &third, n % 7)); }
        step_swing(c, n);
    }
    crd_coupling_reset(c);
    check(uses(c, &first));
    check_int(crd_coupling_get_counts(c).swaps, 0);
    for (int n = 0; n < 100; n++) {
        check_near(step_swing(c, n), step_swing(fresh, n), 0);
    }
    check_int(crd_coupling_get_counts(c).rollbacks, 0);
    crd_coupling_destroy(c);
    crd_coupling_destroy(fresh);
    crd_network_clear(ctx, &first);
    crd_network_clear(ctx, &second);
    crd_network_clear(ctx, &third);
}

// Samples are used 1 .. 5 steps late or never; a new macro step and a restart fall into the trial.
static void trials_end_rightly_over_a_bad_link(void** state)
{
    crd_context* ctx = context_of(state);
    crd_network none = two_taps(ctx, hold), full = two_taps(ctx, line);
    for (uint32_t seed = 1; seed <= 20; seed++) {
        uint32_t x = seed;
        const bool worse = seed % 2;
        crd_coupling* c = element_with(ctx, worse ? &full : &none, false);
        double step = dT, t = 0;
        int64_t number = 0;
        for (int n = 0; n < 400; n++, t += step, number++) {
            if (n == 100) { check(crd_coupling_swap(c, worse ? &none : &full, 60)); }
            if (n == 130) { check(crd_coupling_set_step(c, step *= 1.5)); }
            if (n == 140) { number = 0; } // with a later stamp: the partner began anew
            if (next_uniform(&x) >= 0.2) { crd_coupling_push(c, swing(t), t, number); }
            const double y = crd_coupling_eval(c, t + step * (1 + (int)(5 * next_uniform(&x))));
            check(fabs(y) < 30);
        }
        check_int(crd_coupling_get_counts(c).restarts, 1);
        check(uses(c, &full));
        check_int(crd_coupling_get_counts(c).rollbacks, worse);
        crd_coupling_destroy(c);
    }
    crd_network_clear(ctx, &none);
    crd_network_clear(ctx, &full);
}

// What was said before a jump of what came after it counts neither for nor against a network.
static void jumps_do_not_decide_trials(void** state)
{
    crd_context* ctx = context_of(state);
    crd_network none = two_taps(ctx, hold), full = two_taps(ctx, line);
    for (int jump = -40; jump <= 40; jump += 5) {
        for (int worse = 0; worse < 2; worse++) {
            crd_coupling* c = element_with(ctx, worse ? &full : &none, false);
            for (int n = 0; n < 200; n++) {
                if (n == 70) { check(crd_coupling_swap(c, worse ? &none : &full, 40)); }
                crd_coupling_push(c, swing(n * dT) + (n >= 85 ? jump : 0), n * dT, n);
                crd_coupling_eval(c, (n + K) * dT);
            }
            check_int(crd_coupling_get_counts(c).jumps, jump != 0);
            check(uses(c, &full));
            crd_coupling_destroy(c);
        }
    }
    crd_network_clear(ctx, &none);
    crd_network_clear(ctx, &full);
}

static void hostile_networks_never_break_an_element(void** state)
{
    crd_context* ctx = context_of(state);
    const double values[] = {0, 1, -1e250, 1e250, NAN, INFINITY, 1e-320, 3};
    crd_network n = two_taps(ctx, line);
    crd_coupling* c = element_with(ctx, &n, true);
    uint32_t x = 5;
    for (int i = 0; i < 20000; i++) {
        if (next_uniform(&x) < 0.1) {
            double w[8];
            for (int j = 0; j < 8; j++) {
                w[j] = next_uniform(&x) < 0.02 ? 1e308 : pow(10, 8 * next_uniform(&x)) - 1e7;
            }
            crd_network other = n;
            other.W1 = w;
            check(crd_coupling_swap(c, &other, (int)(20 * next_uniform(&x)) - 5));
        }
        crd_coupling_push(c, values[(int)(8 * next_uniform(&x))], NAN,
                          i + (int)(3 * next_uniform(&x)));
        check(isfinite(crd_coupling_eval(c, dT * (i + 4 * next_uniform(&x)))));
        if (i % 700 == 0) { crd_coupling_reset(c); }
    }
    crd_coupling_destroy(c);
    crd_network_clear(ctx, &n);
}

static void every_allocation_of_an_element_with_a_network_may_fail(void** state)
{
    coupling_test* test = *state;
    crd_network n = two_taps(test->ctx, line);
    crd_coupling_options o = crd_coupling_defaults();
    o.step = dT;
    o.algorithm = CRD_ALGORITHM_NETWORK;
    o.network = &n;
    o.k_max = 2;
    const int64_t before = test->memory.live;
    crd_status st = CRD_E_MEMORY;
    for (int64_t fail_at = 0; st == CRD_E_MEMORY; fail_at++) {
        crd_coupling* c = NULL;
        test->memory.allocations = 0;
        test->memory.fail_at = fail_at;
        st = crd_coupling_create(test->ctx, &o, &c);
        test->memory.fail_at = -1;
        crd_coupling_destroy(c);
        check_int(test->memory.live, before);
        check(st == CRD_OK || fail_at < 60);
    }
    check_ok(st);
    crd_network_clear(test->ctx, &n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        coupling_unit_test(a_morphed_network_is_the_linear_algorithm),
        coupling_unit_test(a_network_of_any_shape_is_the_linear_algorithm),
        coupling_unit_test(an_element_with_a_network_is_one_with_its_weights),
        coupling_unit_test(networks_that_make_no_sense_are_refused),
        coupling_unit_test(refused_swaps_change_nothing),
        coupling_unit_test(networks_of_other_depths_are_what_one_works_out_by_hand),
        coupling_unit_test(a_network_of_another_shape_may_take_over),
        coupling_unit_test(a_network_may_come_before_the_first_sample),
        coupling_unit_test(the_difference_fades_over_one_macro_step),
        coupling_unit_test(a_worse_network_is_given_up_after_its_trial),
        coupling_unit_test(a_better_network_stays),
        coupling_unit_test(a_network_is_judged_by_what_was_said_first),
        coupling_unit_test(trials_end_without_latency_too),
        coupling_unit_test(the_next_network_has_to_beat_the_best_so_far),
        coupling_unit_test(reset_brings_the_network_of_create_back),
        coupling_unit_test(trials_end_rightly_over_a_bad_link),
        coupling_unit_test(jumps_do_not_decide_trials),
        coupling_unit_test(hostile_networks_never_break_an_element),
        coupling_unit_test(every_allocation_of_an_element_with_a_network_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
