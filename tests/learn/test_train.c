#include "cardan/learn.h"
#include "check.h"
#include "learn/train.h"

enum { K = 3, M = 4, N = 5000 };
static const double eq12[M] = {2.4748, -0.6470, -0.1664, -0.6664}; // Baumann 2020
static const double eq20[M] = {6.5103, -1.5509, -9.9296, 5.9702};
static const double foh[M] = {4, -3, 0, 0};

typedef struct fixture {
    check_allocator memory;
    crd_context* ctx;
    double y[2 * N];
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

static crd_network morph(crd_context* ctx, const double* a)
{
    crd_network n;
    check_ok(crd_network_morph(ctx, &(crd_linear){M, K, a, NULL, 0}, 0.01, &n));
    return n;
}

static crd_training plain(void)
{
    crd_training t = crd_training_defaults();
    t.k = K;
    t.protect = 0;
    t.hold_out = 0;
    t.drop_after_jump = false;
    return t;
}

static crd_training usual(void)
{
    crd_training t = crd_training_defaults();
    t.k = K;
    return t;
}

static bool same_numbers(const crd_network* a, const crd_network* b)
{
    return memcmp(a->W1, b->W1, (size_t)crdi_network_size(a) * sizeof(double)) == 0 &&
           a->b3 == b->b3;
}

static void sine(double* y, int n)
{
    for (int i = 0; i < n; i++) {
        y[i] = sin(0.05 * i);
    }
}

// ---- descent -----------------------------------------------------------------------------------

static void adam_goes_the_way_of_an_independent_implementation(void** state)
{
    fixture* f = *state;
    // of an independent program: loss before epochs 1, 2, 10 and 50; V = W2 W1, W3, b3 after them
    static const struct {
        int epoch;
        double loss;
    } curve[] = {{1, 0.00010968495723251422},
                 {2, 9.306511713513431e-06},
                 {10, 1.62234466790799e-05},
                 {50, 7.079617079934617e-08}};
    static const double V[2][M] = {
        {3.9742714393242977, -2.9838394100143653, -0.0019353917017462374, -0.0020381496426622875},
        {-3.9761764179981776, 2.985297913974308, 0.0019710303857494453, 0.0020875202111267847}};
    crd_network start = morph(f->ctx, foh), out;
    crd_training t = plain();
    t.epochs = 50;
    t.rate = 1e-3;
    t.stages = 1;
    t.freeze_biases = false;
    double loss[50];
    crd_training_report r;
    sine(f->y, 200);
    check_ok(crd_learn_train(f->ctx, &t, f->y, 200, &start, &out, &r, loss));
    check_int(r.pairs, 194);
    check_int(r.epochs, 50);
    for (int i = 0; i < 4; i++) {
        check_near(loss[curve[i].epoch - 1], curve[i].loss, 1e-6 * curve[i].loss);
    }
    for (int j = 0; j < 2; j++) {
        for (int i = 0; i < M; i++) {
            double v = 0;
            for (int h = 0; h < 4; h++) {
                v += out.W2[4 * j + h] * out.W1[M * h + i];
            }
            check_near(v, V[j][i], 1e-7);
        }
    }
    check_near(out.W3[0], 0.9885456377103757, 1e-7);
    check_near(out.W3[1], -0.9886231367507364, 1e-7);
    check_near(out.b3, -0.00030305966860045224, 1e-7);
    crd_network_clear(f->ctx, &start);
    crd_network_clear(f->ctx, &out);
}

static void check_gradient(fixture* f, const crd_network* n)
{
    sine(f->y, 300);
    crd_training t = plain();
    t.epochs = 1;
    t.stages = 1;
    t.rate = 1e-6;
    t.freeze_biases = false;
    crd_network moved, own;
    check_ok(crd_learn_train(f->ctx, &t, f->y, 300, n, &moved, NULL, NULL));
    check_ok(crdi_network_like(f->ctx, n, &own));
    crdi_pairs p;
    check_ok(crdi_pairs_make(f->ctx, &t, 5, f->y, 300, &p));
    int steep = 0;
    for (int i = 0; i < crdi_network_size(&own); i++) {
        double* x = (double*)&own.W1[i];
        double up[CRDI_PAIR_KINDS], down[CRDI_PAIR_KINDS];
        const double old = *x, h = 1e-5;
        *x = old + h;
        crdi_pairs_measure(&p, &own, up);
        *x = old - h;
        crdi_pairs_measure(&p, &own, down);
        *x = old;
        const double slope = (up[0] - down[0]) / (2 * h) / (double)p.trained;
        if (fabs(slope) < 1e-5) { continue; } // the epsilon shows
        steep++;
        check_near(moved.W1[i] - old, -copysign(1e-6, slope), 3e-8);
    }
    check(2 * steep > crdi_network_size(&own));
    crdi_pairs_clear(f->ctx, &p);
    crd_network_clear(f->ctx, &moved);
    crd_network_clear(f->ctx, &own);
}

static void the_gradient_is_the_slope_of_the_loss(void** state)
{
    fixture* f = *state;
    // The first step of Adam goes against the sign of the gradient. Any shape, biases included.
    uint64_t seed = 3;
    double w[200], b[64];
    for (int i = 0; i < 200; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        w[i] = (double)(seed >> 33) / 2147483648.0 - 0.5;
        if (i < 64) { b[i] = 0.1 * w[i]; }
    }
    const crd_network shapes[] = {{.m = 5,
                                   .n1 = 3,
                                   .n2 = 7,
                                   .alpha = 0.1,
                                   .W1 = w,
                                   .b1 = b,
                                   .W2 = w + 15,
                                   .b2 = b + 3,
                                   .W3 = w + 40,
                                   .b3 = 0.02},
                                  {.m = 5,
                                   .n2 = 6,
                                   .alpha = 0.1,
                                   .W1 = w,
                                   .b1 = b,
                                   .W2 = w,
                                   .b2 = b,
                                   .W3 = w + 40,
                                   .b3 = 0.02},
                                  {.m = 5,
                                   .n1 = 3,
                                   .n2 = 4,
                                   .alpha = 0.1,
                                   .W1 = w,
                                   .b1 = b,
                                   .W2 = w + 15,
                                   .b2 = b + 3,
                                   .W3 = w + 40,
                                   .b3 = 0.02,
                                   .more = 1,
                                   .n_more = {6},
                                   .W_more = {w + 50},
                                   .b_more = {b + 20}},
                                  {.m = 5,
                                   .n1 = 3,
                                   .n2 = 4,
                                   .alpha = 0.1,
                                   .W1 = w,
                                   .b1 = b,
                                   .W2 = w + 15,
                                   .b2 = b + 3,
                                   .W3 = w + 40,
                                   .b3 = 0.02,
                                   .more = 2,
                                   .n_more = {5, 7},
                                   .W_more = {w + 50, w + 90},
                                   .b_more = {b + 20, b + 30}}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        check_gradient(f, &shapes[i]);
    }
}
static void the_same_arguments_give_the_same_network(void** state)
{
    fixture* f = *state;
    sine(f->y, 1000);
    crd_network start = morph(f->ctx, foh), out[3];
    const crd_network copy = start;
    crd_training t = plain();
    t.batch = 33;
    t.epochs = 5;
    for (int i = 0; i < 3; i++) {
        t.seed = i < 2 ? 1 : 2;
        check_ok(crd_learn_train(f->ctx, &t, f->y, 1000, &start, &out[i], NULL, NULL));
    }
    check(same_numbers(&out[0], &out[1]));
    check(!same_numbers(&out[0], &out[2])); // another order of the samples
    check(same_numbers(&start, &copy));
    for (int i = 0; i < 3; i++) {
        crd_network_clear(f->ctx, &out[i]);
    }
    crd_network_clear(f->ctx, &start);
}

static void one_batch_of_all_samples_is_the_full_batch(void** state)
{
    fixture* f = *state;
    sine(f->y, 200);
    crd_network start = morph(f->ctx, foh), out[2];
    double loss[2][10];
    crd_training t = plain();
    t.epochs = 10;
    for (int i = 0; i < 2; i++) {
        t.batch = i == 0 ? 0 : 194;
        check_ok(crd_learn_train(f->ctx, &t, f->y, 200, &start, &out[i], NULL, loss[i]));
    }
    check(same_numbers(&out[0], &out[1]));
    // a batch that is one sample short goes nearly the same way at first
    t.batch = 193;
    crd_network_clear(f->ctx, &out[1]);
    check_ok(crd_learn_train(f->ctx, &t, f->y, 200, &start, &out[1], NULL, loss[1]));
    check(!same_numbers(&out[0], &out[1]));
    // the loss of an epoch is the mean over all samples, whatever the batch, if nothing moves
    t.rate = 1e-12;
    for (int batch = 0; batch <= 50; batch += 25) { // 194 is no multiple of it
        t.batch = batch;
        crd_network_clear(f->ctx, &out[1]);
        check_ok(
            crd_learn_train(f->ctx, &t, f->y, 200, &start, &out[1], NULL, loss[batch ? 1 : 0]));
        for (int i = 0; i < 10; i++) {
            check_near(loss[1][i], loss[0][i], batch ? 1e-7 * loss[0][0] : INFINITY);
        }
    }
    crd_network_clear(f->ctx, &out[0]);
    crd_network_clear(f->ctx, &out[1]);
    crd_network_clear(f->ctx, &start);
}

static void frozen_biases_stay(void** state)
{
    fixture* f = *state;
    sine(f->y, 300);
    crd_network start = morph(f->ctx, eq12), out;
    crd_training t = plain();
    t.epochs = 20;
    check_ok(crd_learn_train(f->ctx, &t, f->y, 300, &start, &out, NULL, NULL));
    for (int i = 0; i < 4; i++) {
        check(out.b1[i] == 0);
    }
    check(out.b2[0] == 0 && out.b2[1] == 0 && out.b3 == 0);
    check(!same_numbers(&start, &out));
    crd_network_clear(f->ctx, &out);
    crd_network_clear(f->ctx, &start);
}

static void the_unit_of_the_signal_does_not_matter(void** state)
{
    fixture* f = *state;
    crd_network start = morph(f->ctx, eq12), out[2];
    crd_training_report r[2];
    crd_training t = plain();
    t.epochs = 50;
    for (int i = 0; i < 2; i++) { // outside of the range where Adam sees the signal as it is
        const double scale = i == 0 ? 0x1p-30 : 0x1p40;
        ((double*)start.b1)[2] = 0.125 * scale; // biases have the unit of the signal
        ((double*)start.b2)[1] = 0.25 * scale;
        start.b3 = 0.0625 * scale;
        for (int n = 0; n < 400; n++) {
            f->y[n] = scale * sin(0.05 * n);
        }
        check_ok(crd_learn_train(f->ctx, &t, f->y, 400, &start, &out[i], &r[i], NULL));
        r[i].loss_after /= scale * scale;
    }
    check(memcmp(out[0].W1, out[1].W1, 4 * M * sizeof(double)) == 0);
    check(memcmp(out[0].W2, out[1].W2, 2 * 4 * sizeof(double)) == 0);
    check_near(r[0].loss_after, r[1].loss_after, 1e-20);
    check(r[0].held_before == r[0].loss_before && r[0].held_after < 1); // nothing held out
    check(r[0].loss_before * 0x1p60 == r[1].loss_before * 0x1p-80 && r[0].loss_before > 0);
    check(r[0].loss_after < 1 && r[0].epochs == 50);
    for (int i = 0; i < 2; i++) {
        crd_network_clear(f->ctx, &out[i]);
    }
    crd_network_clear(f->ctx, &start);
}

static void biases_survive_a_signal_at_the_end_of_the_range(void** state)
{
    fixture* f = *state;
    static const double scales[] = {1e-320, 1e-300, 1e240};
    crd_training t = plain();
    t.epochs = 5;
    for (int i = 0; i < 3; i++) {
        crd_network start = morph(f->ctx, foh), out;
        double* b1 = (double*)start.b1;
        b1[0] = 3; // changes nothing but what is frozen
        b1[1] = -1e-30;
        for (int n = 0; n < 100; n++) {
            f->y[n] = scales[i] * sin(0.05 * n);
        }
        check_ok(crd_learn_train(f->ctx, &t, f->y, 100, &start, &out, NULL, NULL));
        for (int j = 0; j < crdi_network_size(&out); j++) {
            check(isfinite(out.W1[j]));
        }
        check_near(out.b1[0], 3, 0);
        check_near(out.b1[1], -1e-30, 0);
        crd_network_clear(f->ctx, &out);
        crd_network_clear(f->ctx, &start);
    }
}

static void losses_of_epochs_that_were_not_done_are_not_numbers(void** state)
{
    fixture* f = *state;
    double loss[8] = {0};
    crd_network start = morph(f->ctx, foh), out;
    crd_training_report r;
    crd_training t = usual();
    t.method = CRD_TRAIN_RIDGE;
    t.epochs = 8;
    sine(f->y, 400);
    check_ok(crd_learn_train(f->ctx, &t, f->y, 400, &start, &out, &r, loss));
    check_int(r.epochs, 0);
    for (int i = 0; i < 8; i++) {
        check(isnan(loss[i]));
    }
    crd_network_clear(f->ctx, &out);
    const bool stop = true;
    t.method = CRD_TRAIN_ADAM;
    t.stop = &stop;
    loss[0] = 1;
    check_ok(crd_learn_train(f->ctx, &t, f->y, 400, &start, &out, &r, loss));
    check_int(r.epochs, 0);
    check(isnan(loss[0]) && isnan(loss[7]));
    crd_network_clear(f->ctx, &out);
    crd_network_clear(f->ctx, &start);
}

static void the_smallest_networks_are_trained(void** state)
{
    fixture* f = *state;
    sine(f->y, 400);
    const double one = 1, zero = 0;
    // 1-1-1-1: one tap has no differences, one leaky ReLU with a slope of 1 is linear.
    const crd_network start = {1, 1, 1, 1, &one, &zero, &one, &zero, &one, 0};
    for (int method = CRD_TRAIN_ADAM; method <= CRD_TRAIN_RIDGE; method++) {
        crd_training t = usual();
        t.method = (crd_training_method)method;
        t.epochs = 10;
        crd_network out;
        check_ok(crd_learn_train(f->ctx, &t, f->y, 400, &start, &out, NULL, NULL));
        if (method == CRD_TRAIN_RIDGE) { check_near(crd_network_eval(&out, &one), 1, 1e-15); }
        crd_network_clear(f->ctx, &out);
    }
}

static void a_descent_that_explodes_leaves_the_start(void** state)
{
    fixture* f = *state;
    for (int n = 0; n < 400; n++) {
        f->y[n] = 1e200 * sin(0.05 * n);
    }
    crd_network start = morph(f->ctx, foh), out;
    crd_training t = plain();
    t.rate = 1000;
    t.epochs = 100;
    double loss[100];
    crd_training_report r;
    check_ok(crd_learn_train(f->ctx, &t, f->y, 400, &start, &out, &r, loss));
    for (int i = 0; i < crdi_network_size(&out); i++) {
        check(isfinite(out.W1[i]));
    }
    crd_network_clear(f->ctx, &out);
    t = usual();
    t.rate = 1000;
    check_ok(crd_learn_train(f->ctx, &t, f->y, 400, &start, &out, &r, NULL));
    check(r.held_after <= r.held_before);
    crd_network_clear(f->ctx, &out);
    crd_network_clear(f->ctx, &start);
}

// ---- which samples -----------------------------------------------------------------------------

static void gaps_leave_out_what_they_touch(void** state)
{
    fixture* f = *state;
    sine(f->y, 300);
    crd_network start = morph(f->ctx, foh), out;
    crd_training_report r;
    crd_training t = plain();
    t.epochs = 3;
    f->y[100] = NAN;
    f->y[200] = INFINITY;
    f->y[201] = 1e300;
    check_ok(crd_learn_train(f->ctx, &t, f->y, 300, &start, &out, &r, NULL));
    // each missing sample is a target once and an input of M targets
    check_int(r.dropped, (M + 1) + (M + 1 + 2));
    check_int(r.pairs + r.dropped, 300 - K - (M - 1));
    check(r.loss_after < 1);
    crd_network_clear(f->ctx, &out);
    for (int i = 0; i < 300; i++) {
        f->y[i] = i % 3 ? 1.0 * i : (double)NAN;
    }
    check_status(crd_learn_train(f->ctx, &t, f->y, 300, &start, &out, &r, NULL), CRD_E_RANGE);
    check_contains(crd_error_text(f->ctx), "0 of 300 samples");
    crd_network_clear(f->ctx, &start);
}

static void targets_that_nothing_could_tell_are_dropped(void** state)
{
    fixture* f = *state;
    for (int n = 0; n < 500; n++) {
        f->y[n] = sin(0.01 * n) + (n >= 300);
    }
    crd_network start = morph(f->ctx, foh), out;
    crd_training_report r;
    crd_training t = plain();
    t.epochs = 3;
    t.drop_after_jump = true;
    check_ok(crd_learn_train(f->ctx, &t, f->y, 500, &start, &out, &r, NULL));
    check_int(r.dropped, K);
    check_int(r.jumps, M - 1);
    crd_network_clear(f->ctx, &out);
    t.drop_after_jump = false;
    check_ok(crd_learn_train(f->ctx, &t, f->y, 500, &start, &out, &r, NULL));
    check_int(r.dropped, 0);
    check_int(r.jumps, M - 1 + K);
    crd_network_clear(f->ctx, &out);
    crd_network_clear(f->ctx, &start);
}

static void what_is_held_out_is_judged_by_and_not_trained_on(void** state)
{
    fixture* f = *state;
    sine(f->y, 1000);
    crd_network start = morph(f->ctx, eq12), out[2];
    crd_training_report r[2];
    crd_training t = plain();
    t.hold_out = 0.25;
    t.epochs = 30;
    for (int i = 0; i < 2; i++) {
        check_ok(crd_learn_train(f->ctx, &t, f->y, 1000, &start, &out[i], &r[i], NULL));
        for (int n = 760; n < 1000; n++) {
            f->y[n] *= 1 + 1e-5 * (n - 760) * (n - 760); // another end
        }
    }
    check_int(r[0].pairs, 994 - 248);
    check(same_numbers(&out[0], &out[1]));
    check(r[0].held_after != r[1].held_after);
    check_int(r[0].jumps, 0);
    check_near(r[0].smooth_before, (746 * r[0].loss_before + 248 * r[0].held_before) / 994, 1e-15);
    check_near(r[0].smooth_after, (746 * r[0].loss_after + 248 * r[0].held_after) / 994, 1e-15);
    check(r[0].better && r[0].held_after < r[0].held_before);
    for (int i = 0; i < 2; i++) {
        crd_network_clear(f->ctx, &out[i]);
    }
    crd_network_clear(f->ctx, &start);
}

// All four depths begin as the same linear algorithm; training makes each of them better, and least
// squares the same in all.
static void networks_of_every_depth_can_be_trained(void** state)
{
    fixture* f = *state;
    static const struct {
        int neurons[4], layers;
    } shapes[] = {{{4}, 1}, {{4, 2}, 2}, {{4, 4, 2}, 3}, {{4, 4, 4, 2}, 4}};
    double ridge[4];
    sine(f->y, 1000);
    for (int s = 0; s < 4; s++) {
        const double hold[M] = {1};
        const crd_linear l = {M, K, hold, NULL, 0};
        crd_network start, out;
        crd_training_report r;
        crd_training t = plain();
        check_ok(
            crd_network_morph_to(f->ctx, &l, 0.01, shapes[s].neurons, shapes[s].layers, &start));
        t.epochs = 200;
        check_ok(crd_learn_train(f->ctx, &t, f->y, 1000, &start, &out, &r, NULL));
        check(r.loss_after < 0.2 * r.loss_before);
        crd_network_clear(f->ctx, &out);
        t.method = CRD_TRAIN_RIDGE;
        check_ok(crd_learn_train(f->ctx, &t, f->y, 1000, &start, &out, &r, NULL));
        ridge[s] = r.loss_after;
        check_near(ridge[s] / ridge[0], 1, 1e-6);
        crd_network_clear(f->ctx, &out);
        crd_network_clear(f->ctx, &start);
    }
}

// ---- least squares -----------------------------------------------------------------------------

static void the_mean_map_knows_on_which_side_the_signal_is(void** state)
{
    fixture* f = *state;
    const double W1[2] = {-1, 1}, one = 1, zero = 0;
    crd_network n = {.m = 2,
                     .n1 = 1,
                     .n2 = 1,
                     .alpha = 0.25,
                     .W1 = W1,
                     .b1 = &zero,
                     .W2 = &one,
                     .b2 = &zero,
                     .W3 = &one};
    crd_training t = plain();
    crdi_pairs p;
    double a[2];
    for (int i = 0; i < 100; i++) {
        f->y[i] = i; // rises: the neuron gets -1
    }
    check_ok(crdi_pairs_make(f->ctx, &t, 2, f->y, 100, &p));
    crdi_mean_map(&p, &n, a);
    check_near(a[0], -0.25, 1e-15);
    check_near(a[1], 0.25, 1e-15);
    const double bias = 1.5;
    n.b2 = &bias; // now 0.5
    crdi_mean_map(&p, &n, a);
    check_near(a[0], -1, 1e-15);
    check_near(a[1], 1, 1e-15);
    crdi_pairs_clear(f->ctx, &p);
}

static void ridge_finds_the_recurrence_of_a_signal(void** state)
{
    fixture* f = *state;
    // Two sines and a constant obey y_s = sum a_i y_{s-k-i} with five taps exactly.
    for (int n = 0; n < 1000; n++) {
        f->y[n] = 3 + sin(0.2 * n) + 0.5 * sin(0.5 * n + 1);
    }
    const double zoh[5] = {1};
    crd_network start, out;
    check_ok(crd_network_morph(f->ctx, &(crd_linear){5, K, zoh, NULL, 0}, 0.01, &start));
    crd_training t = usual();
    t.method = CRD_TRAIN_RIDGE;
    t.ridge = 1e-12;
    crd_training_report r;
    check_ok(crd_learn_train(f->ctx, &t, f->y, 1000, &start, &out, &r, NULL));
    check(r.better);
    check(r.held_after < 1e-10);
    const double ones[5] = {1, 1, 1, 1, 1};
    check_near(crd_network_eval(&out, ones), 1, 1e-12);
    crd_network_clear(f->ctx, &out);
    t.ridge = 1e9; // a pull that nothing resists
    check_ok(crd_learn_train(f->ctx, &t, f->y, 1000, &start, &out, &r, NULL));
    check_near(r.held_after, r.held_before, 1e-6);
    crd_network_clear(f->ctx, &out);
    crd_network_clear(f->ctx, &start);
}

static void ridge_writes_the_network_of_the_morphism(void** state)
{
    fixture* f = *state;
    sine(f->y, 500);
    crd_network start = morph(f->ctx, foh), out, again;
    crd_training t = usual();
    t.method = CRD_TRAIN_RIDGE;
    check_ok(crd_learn_train(f->ctx, &t, f->y, 500, &start, &out, NULL, NULL));
    check_ok(crd_network_morph(f->ctx, &(crd_linear){M, K, out.W1, NULL, 0}, 0.01, &again));
    for (int i = 0; i < crdi_network_size(&out); i++) {
        check_near(out.W1[i], again.W1[i], 1e-15);
    }
    crd_network_clear(f->ctx, &out);
    crd_network_clear(f->ctx, &again);
    crd_network_clear(f->ctx, &start);
}

static void a_network_of_any_shape_can_be_linear(void** state)
{
    fixture* f = *state;
    static const double zeros[2000];
    for (int n1 = 1; n1 <= 5; n1 += 2) {
        for (int n2 = 1; n2 <= 7; n2++) {
            const crd_network empty = {.m = M,
                                       .n1 = n1,
                                       .n2 = n2,
                                       .alpha = 0.2,
                                       .W1 = zeros,
                                       .b1 = zeros,
                                       .W2 = zeros,
                                       .b2 = zeros,
                                       .W3 = zeros};
            crd_network n;
            check_ok(crdi_network_like(f->ctx, &empty, &n));
            for (int i = 0; i < crdi_network_size(&n); i++) {
                ((double*)n.W1)[i] = 7; // what was there does not matter
            }
            n.b3 = 7;
            if (n2 == 1) {
                check_status(crdi_network_write_linear(f->ctx, &n, eq20), CRD_E_UNSUPPORTED);
                n.alpha = 1;
            }
            check_ok(crdi_network_write_linear(f->ctx, &n, eq20));
            const double y[2][M] = {{1, -2, 3, 0.5}, {-1, 4, 0.25, 3}};
            for (int i = 0; i < 2; i++) {
                const double want = crd_linear_eval(&(crd_linear){M, K, eq20, NULL, 0}, y[i], 0);
                check_near(crd_network_eval(&n, y[i]), want, 1e-13);
            }
            crd_network_clear(f->ctx, &n);
        }
    }
}

// ---- jumps and the smooth part -----------------------------------------------------------------

typedef struct outcome {
    double over, under; // of the jump, 1 is right
    double rms;         // elsewhere
} outcome;

// Smooth, with jumps of that height: two in the first half, two in the second.
static void jumping(double* y, double omega, double height)
{
    for (int n = 0; n < 2 * N; n++) {
        const int jumps = (n >= 1500) + (n >= 4300) + (n >= 6000) + (n >= 8000);
        y[n] = sin(omega * n) + 0.3 * sin(2.3 * omega * n + 1) + height * jumps;
    }
}

static outcome judge(const crd_network* n, const double* y, double height)
{
    outcome o = {.over = 1, .under = 1};
    double sum = 0;
    int count = 0;
    for (int s = N + 20; s < 2 * N; s++) {
        double x[CRD_TAPS_MAX];
        for (int i = 0; i < n->m; i++) {
            x[i] = y[s - K - i];
        }
        const double e = crd_network_eval(n, x) - y[s];
        const int since = s >= 8000 ? s - 8000 : s >= 6000 ? s - 6000 : N;
        if (since < K) { continue; }
        if (since < K + n->m - 1 && height != 0) {
            o.over = fmax(o.over, 1 + e / height);
            o.under = fmin(o.under, 1 + e / height);
        } else {
            sum += e * e;
            count++;
        }
    }
    o.rms = sqrt(sum / count);
    return o;
}

// eq. 12 and 20 and FOH, slow and fast signals, jumps up and down, small and large, none.
static void training_never_gives_the_smooth_part_away(void** state)
{
    fixture* f = *state;
    static const double* const weights[] = {eq12, eq20, foh};
    static const double omegas[] = {0.0004, 0.01, 0.15}, heights[] = {0, 0.1, 1, -1, 10};
    for (int i = 0; i < 3 * 3 * 5; i++) {
        const double omega = omegas[i / 3 % 3], height = heights[i / 9];
        crd_network start = morph(f->ctx, weights[i % 3]), out;
        jumping(f->y, omega, height);
        crd_training t = usual();
        t.epochs = 200;
        crd_training_report r;
        check_ok(crd_learn_train(f->ctx, &t, f->y, N, &start, &out, &r, NULL));
        const outcome before = judge(&start, f->y, height), after = judge(&out, f->y, height);
        if (!(after.rms <= 3 * before.rms)) {
            fail_msg("omega = %g, height = %g, weights %d: smooth part %g, was %g", omega, height,
                     i % 3, after.rms, before.rms);
        }
        crd_network_clear(f->ctx, &out);
        crd_network_clear(f->ctx, &start);
    }
}

static void after_training_jumps_do_not_overshoot(void** state)
{
    fixture* f = *state;
    static const double* const weights[] = {eq12, eq20, foh};
    static const struct {
        double omega, height;
    } cases[] = {{0.0004, 0.1}, {0.0004, 1}, {0.0004, -1}, {0.0004, 10}, {0.01, 10}, {0.01, -10}};
    for (int i = 0; i < 3 * 6; i++) {
        const double omega = cases[i / 3].omega, height = cases[i / 3].height;
        crd_network start = morph(f->ctx, weights[i % 3]), out;
        jumping(f->y, omega, height);
        crd_training t = usual();
        t.epochs = 10;
        crd_training_report r;
        check_ok(crd_learn_train(f->ctx, &t, f->y, N, &start, &out, &r, NULL));
        const outcome before = judge(&start, f->y, height), after = judge(&out, f->y, height);
        check(r.guarded && r.better);
        check(before.over > 2.4);
        check(after.over < 1.05);
        check(after.under > 0.95);
        crd_network_clear(f->ctx, &out);
        crd_network_clear(f->ctx, &start);
    }
}

static void two_linear_neurons_are_enough_for_a_guard(void** state)
{
    fixture* f = *state;
    static const double zeros[100];
    const crd_network empty = {M, 2, 2, 0.01, zeros, zeros, zeros, zeros, zeros, 0};
    crd_network start, out;
    check_ok(crdi_network_like(f->ctx, &empty, &start));
    check_ok(crdi_network_write_linear(f->ctx, &start, eq20));
    jumping(f->y, 0.0004, 1);
    crd_training t = usual();
    t.epochs = 10;
    crd_training_report r;
    check_ok(crd_learn_train(f->ctx, &t, f->y, N, &start, &out, &r, NULL));
    check(r.guarded);
    check(judge(&out, f->y, 1).over < 1.05);
    crd_network_clear(f->ctx, &out);
    crd_network_clear(f->ctx, &start);
}

static void four_neurons_limit_both_directions(void** state)
{
    fixture* f = *state;
    // Jumps to and fro; the signal is so fast that only alternating weights follow it.
    for (int n = 0; n < 2 * N; n++) {
        const int half = n % N;
        f->y[n] = sin(0.05 * n) + 20 * (half >= 1500 && half < 3500);
    }
    static const double zeros[100];
    const crd_network empty = {M, 4, 4, 0.01, zeros, zeros, zeros, zeros, zeros, 0};
    crd_network start, out;
    check_ok(crdi_network_like(f->ctx, &empty, &start));
    check_ok(crdi_network_write_linear(f->ctx, &start, eq20));
    crd_training t = usual();
    t.epochs = 10;
    crd_training_report r;
    check_ok(crd_learn_train(f->ctx, &t, f->y, N, &start, &out, &r, NULL));
    check(r.guarded);
    check(r.smooth_after < r.smooth_before);
    double worst = 0, was = 0;
    for (int s = N + 10; s < 2 * N; s++) {
        const int half = s % N, since = half >= 3500 ? half - 3500 : half - 1500;
        if (since >= 0 && since < K) { continue; }
        const double x[M] = {f->y[s - K], f->y[s - K - 1], f->y[s - K - 2], f->y[s - K - 3]};
        worst = fmax(worst, fabs(crd_network_eval(&out, x) - f->y[s]));
        was = fmax(was, fabs(crd_network_eval(&start, x) - f->y[s]));
    }
    check(was > 100);
    check(worst < 0.6);
    crd_network_clear(f->ctx, &out);
    crd_network_clear(f->ctx, &start);
}

static void a_guarded_network_passes_every_level(void** state)
{
    fixture* f = *state;
    crd_network start = morph(f->ctx, eq20), out, next;
    jumping(f->y, 0.01, 1);
    crd_training t = usual();
    t.epochs = 10;
    crd_training_report r;
    check_ok(crd_learn_train(f->ctx, &t, f->y, N, &start, &out, &r, NULL));
    check(r.guarded);
    for (double level = -1000; level <= 1000; level += 50) {
        const double y[M] = {level, level, level, level};
        check_near(crd_network_eval(&out, y), level, 1e-8);
    }
    // ... and is a good start for the next training
    check_ok(crd_learn_train(f->ctx, &t, f->y, 2 * N, &out, &next, &r, NULL));
    check(r.smooth_after <= 2.25 * r.smooth_before);
    check(judge(&next, f->y, 1).over <= 1.01 * judge(&out, f->y, 1).over);
    crd_network_clear(f->ctx, &next);
    crd_network_clear(f->ctx, &out);
    crd_network_clear(f->ctx, &start);
}

static void levels_that_were_not_seen_are_not_distorted(void** state)
{
    fixture* f = *state;
    for (double size = 1; size <= 150; size *= 150) {
        for (int n = 0; n < N; n++) {
            f->y[n] = size * (1 + 0.5 * sin(0.001 * n)); // never negative
        }
        crd_network start = morph(f->ctx, foh), descended, out;
        crd_training t = plain();
        check_ok(crd_learn_train(f->ctx, &t, f->y, N, &start, &descended, NULL, NULL));
        t = usual();
        check_ok(crd_learn_train(f->ctx, &t, f->y, N, &start, &out, NULL, NULL));
        const double y[M] = {-size, -size, -size, -size};
        const double alone = fabs(crd_network_eval(&descended, y) + size); // descent
        const double kept = fabs(crd_network_eval(&out, y) + size);
        check(alone > 1e-3 * size);
        check(kept < 1e-3 * size);
        crd_network_clear(f->ctx, &descended);
        crd_network_clear(f->ctx, &out);
        crd_network_clear(f->ctx, &start);
    }
}

// ---- bad input and memory ----------------------------------------------------------------------

static void training_that_makes_no_sense_is_refused(void** state)
{
    fixture* f = *state;
    sine(f->y, 100);
    crd_network start = morph(f->ctx, foh), out;
    const crd_training good = usual();
    static const struct {
        const char* name;
        size_t offset;
    } doubles[] = {{"rate", offsetof(crd_training, rate)},
                   {"ridge", offsetof(crd_training, ridge)},
                   {"hold_out", offsetof(crd_training, hold_out)},
                   {"protect", offsetof(crd_training, protect)}};
    static const struct {
        const char* name;
        size_t offset;
    } ints[] = {{"k", offsetof(crd_training, k)},
                {"epochs", offsetof(crd_training, epochs)},
                {"batch", offsetof(crd_training, batch)},
                {"stages", offsetof(crd_training, stages)},
                {"method", offsetof(crd_training, method)}};
    for (int i = 0; i < 4; i++) {
        static const double bad[] = {NAN, -1};
        for (int j = 0; j < 2; j++) {
            crd_training t = good;
            memcpy((char*)&t + doubles[i].offset, &bad[j], sizeof bad[j]);
            check_status(crd_learn_train(f->ctx, &t, f->y, 100, &start, &out, NULL, NULL),
                         CRD_E_RANGE);
            check_contains(crd_error_text(f->ctx), doubles[i].name);
        }
    }
    for (int i = 0; i < 5; i++) {
        crd_training t = good;
        const int bad = -1;
        memcpy((char*)&t + ints[i].offset, &bad, sizeof bad);
        check_status(crd_learn_train(f->ctx, &t, f->y, 100, &start, &out, NULL, NULL), CRD_E_RANGE);
        check_contains(crd_error_text(f->ctx), ints[i].name);
    }
    check_status(crd_learn_train(f->ctx, &good, f->y, 9, &start, &out, NULL, NULL), CRD_E_RANGE);
    check_contains(crd_error_text(f->ctx), "9 samples, expected at least 11");
    ((double*)start.W2)[1] = NAN;
    check_status(crd_learn_train(f->ctx, &good, f->y, 100, &start, &out, NULL, NULL), CRD_E_RANGE);
    check_contains(crd_error_text(f->ctx), "W2[1]");
    crd_network wide = start;
    wide.n2 = 1000;
    check_status(crd_learn_train(f->ctx, &good, f->y, 100, &wide, &out, NULL, NULL), CRD_E_RANGE);
    check_contains(crd_error_text(f->ctx), "4-4-1000-1");
    crd_network_clear(f->ctx, &start);
}

static void every_allocation_may_fail(void** state)
{
    fixture* f = *state;
    jumping(f->y, 0.05, 2);
    crd_network start = morph(f->ctx, eq20);
    for (int method = 0; method < 3; method++) {
        crd_training t = usual();
        t.method = method == 0 ? CRD_TRAIN_RIDGE : CRD_TRAIN_ADAM;
        t.batch = method == 2 ? 10 : 0;
        t.epochs = 2;
        for (int64_t fail_at = 0;; fail_at++) {
            check(fail_at < 100);
            crd_network out = {0};
            const int64_t live = f->memory.live;
            f->memory.allocations = 0;
            f->memory.fail_at = fail_at;
            const crd_status st =
                crd_learn_train(f->ctx, &t, &f->y[1400], 200, &start, &out, NULL, NULL);
            f->memory.fail_at = -1;
            if (st == CRD_OK) {
                crd_network_clear(f->ctx, &out);
                check_int(f->memory.live, live);
                break;
            }
            check_int(st, CRD_E_MEMORY);
            check_int(f->memory.live, live);
        }
    }
    crd_network_clear(f->ctx, &start);
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(adam_goes_the_way_of_an_independent_implementation),
        test(the_gradient_is_the_slope_of_the_loss),
        test(networks_of_every_depth_can_be_trained),
        test(the_same_arguments_give_the_same_network),
        test(one_batch_of_all_samples_is_the_full_batch),
        test(frozen_biases_stay),
        test(the_unit_of_the_signal_does_not_matter),
        test(biases_survive_a_signal_at_the_end_of_the_range),
        test(losses_of_epochs_that_were_not_done_are_not_numbers),
        test(the_smallest_networks_are_trained),
        test(a_descent_that_explodes_leaves_the_start),
        test(gaps_leave_out_what_they_touch),
        test(targets_that_nothing_could_tell_are_dropped),
        test(what_is_held_out_is_judged_by_and_not_trained_on),
        test(the_mean_map_knows_on_which_side_the_signal_is),
        test(ridge_finds_the_recurrence_of_a_signal),
        test(ridge_writes_the_network_of_the_morphism),
        test(a_network_of_any_shape_can_be_linear),
        test(training_never_gives_the_smooth_part_away),
        test(after_training_jumps_do_not_overshoot),
        test(two_linear_neurons_are_enough_for_a_guard),
        test(four_neurons_limit_both_directions),
        test(a_guarded_network_passes_every_level),
        test(levels_that_were_not_seen_are_not_distorted),
        test(training_that_makes_no_sense_is_refused),
        test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
