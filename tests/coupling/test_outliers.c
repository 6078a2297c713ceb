// Outliers on links that lose and delay: whatever the experts of the mixture are fooled into,
// `auto` is not worse than held. That is, as docs/explanation/coupling.md promises: in the mean its
// errors are at most 0.9 of the hold's; in 98 of 100 runs none of them is more than 2 % above; in
// no run is the RMS, of which it keeps account, more than 5 % above, nor C, of which it does not,
// 14 %, which is where complaints began. Signals, outliers and links are random; the promise was
// made before the seeds were drawn.
#include "coupling_test.h"

enum { SAMPLES = 3000, RUNS = 150, FIRST = 800000 };

typedef struct trial {
    double clean[SAMPLES], sent[SAMPLES];
    crd_replay_options link;
} trial;

static double between(uint32_t* x, double low, double high)
{
    return low + (high - low) * next_uniform(x);
}

// Smooth signals, filtered noise, both, and with steps; some have noise upon them.
static void make_signal(uint32_t* x, int kind, double* y)
{
    const double pi = acos(-1), rate = between(x, 0.05, 0.25);
    const double noise = next_uniform(x) < 0.3 ? 0 : between(x, 0, 0.05);
    double w[4], phase[4], size[4], low[4] = {0}, level = 0;
    for (int i = 0; i < 4; i++) {
        w[i] = 2 * pi / (15 * pow(40, next_uniform(x)));
        phase[i] = between(x, 0, 2 * pi);
        size[i] = next_uniform(x);
    }
    for (int n = 0; n < SAMPLES; n++) {
        double in = next_normal(x);
        y[n] = noise * next_normal(x);
        for (int i = 0; i < 4; i++) {
            low[i] += rate * (in - low[i]);
            in = low[i];
            if (kind != 1 && kind != 3) { y[n] += size[i] * sin(w[i] * n + phase[i]); }
        }
        if (kind == 1 || kind == 4) { y[n] += 2 * in; }
        if ((kind == 2 || kind == 3) && next_uniform(x) < 0.004) { level = 2 * next_normal(x); }
        y[n] += level + (kind == 3 ? 0.05 * sin(w[0] * n) : 0);
    }
}

// 0.1 to 2 % outliers of 5 to 50 standard deviations of the signal, or of a tenth of it; loss up to
// 20 % in bursts up to 8, jitter up to the delay itself.
static void make_trial(uint32_t seed, trial* t)
{
    uint32_t x = 7919 * seed + 17;
    for (int i = 0; i < 10; i++) {
        next_uniform(&x);
    }
    make_signal(&x, (int)seed % 5, t->clean);
    double sum = 0, squares = 0;
    for (int n = 0; n < SAMPLES; n++) {
        sum += t->clean[n] / SAMPLES;
        squares += t->clean[n] * t->clean[n] / SAMPLES;
    }
    const double sigma = sqrt(squares - sum * sum) * (seed / 5 % 2 ? 1 : 0.1);
    const double chance = 0.001 * pow(20, next_uniform(&x)), size = 5 * pow(10, next_uniform(&x));
    for (int n = 0; n < SAMPLES; n++) {
        const bool outlier = next_uniform(&x) < chance, down = next_uniform(&x) < 0.5;
        t->sent[n] = t->clean[n] + (outlier ? (down ? -size : size) * sigma : 0);
    }
    t->link = crd_replay_defaults();
    t->link.step = 0.01;
    t->link.delay = 0.01 * floor(between(&x, 1, 13));
    t->link.jitter = t->link.delay * (next_uniform(&x) < 0.3 ? 1 : next_uniform(&x));
    t->link.loss = between(&x, 0, 0.2);
    t->link.burst = (int)between(&x, 1, 9);
    t->link.seed = seed;
}

// RMS and C against what was sent and against the signal without its outliers.
typedef struct errors {
    double of[4];
} errors;

static errors run(crd_context* ctx, const trial* t, const char* algorithm)
{
    static double estimate[SAMPLES];
    crd_element* e = NULL;
    crd_replay r;
    crd_score sent = {0}, clean = {0};
    check_ok(crd_element_of_name(ctx, algorithm, &e));
    check_ok(crd_coupling_replay(ctx, e, &t->link, t->sent, SAMPLES, estimate, &r));
    crd_element_destroy(e);
    for (int n = 0; n < SAMPLES; n++) {
        crd_score_add(&sent, t->sent[n], estimate[n]);
        crd_score_add(&clean, t->clean[n], estimate[n]);
    }
    const crd_metrics a = crd_score_metrics(&sent), b = crd_score_metrics(&clean);
    return (errors){{a.rms, a.C, b.rms, b.C}};
}

// Before there was an account and bridges across gaps were bounded, 8 % of the runs were more than
// 2 % worse than held, the worst 49 times as bad.
static void a_run_with_outliers_is_not_worse_than_held(void** state)
{
    static trial t;
    double mean[4] = {0};
    int worse = 0;
    for (uint32_t seed = 0; seed < RUNS; seed++) {
        make_trial(FIRST + seed, &t);
        const errors hold = run(context_of(state), &t, "zoh"),
                     own = run(context_of(state), &t, "auto");
        bool above = false;
        for (int i = 0; i < 4; i++) {
            const double ratio = own.of[i] / hold.of[i];
            mean[i] += ratio / RUNS;
            above |= ratio > 1.02;
            if (!(ratio < (i % 2 ? 1.14 : 1.05))) {
                fail_msg("seed %u: error %d is %g of the hold's", FIRST + seed, i, ratio);
            }
        }
        worse += above;
    }
    check(worse <= RUNS / 50);
    for (int i = 0; i < 4; i++) {
        check(mean[i] < 0.9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        coupling_unit_test(a_run_with_outliers_is_not_worse_than_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
