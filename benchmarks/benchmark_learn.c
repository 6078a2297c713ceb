// learn/train: 100 epochs of Adam over 5000 samples, a network of 4-4-2-1, all samples in one
// batch, against the bare multiply-adds of forward and backward, layer by layer and sample by
// sample, as the equations stand; and against 50 ms.
#include "benchmark.h"

#include <math.h>
#include <string.h>

enum { M = 4, N1 = 4, N2 = 2, SAMPLES = 5000, EPOCHS = 100, K = 3, REPEATS = 7 };

static double seconds_since(int64_t begin)
{
    return 1e-9 * (double)(crdi_now_ns() - begin);
}

static double train(crd_context* ctx, const double* y, const crd_network* start)
{
    crd_training t = crd_training_defaults();
    crd_network out;
    crd_training_report report;
    t.k = K;
    t.epochs = EPOCHS;
    t.protect = t.hold_out = 0;
    const int64_t begin = crdi_now_ns();
    benchmark_must(ctx, crd_learn_train(ctx, &t, y, SAMPLES, start, &out, &report, NULL));
    const double s = seconds_since(begin);
    crd_network_clear(ctx, &out);
    return s;
}

typedef struct layers {
    double W1[N1][M], b1[N1], W2[N2][N1], b2[N2], W3[N2], b3;
} layers;

static void add_sample(const layers* n, const double* y, int s, layers* g)
{
    double u[N1], z[N2], a[N2], e = n->b3 - y[s];
    for (int h = 0; h < N1; h++) {
        u[h] = n->b1[h];
        for (int i = 0; i < M; i++) {
            u[h] += n->W1[h][i] * y[s - K - i];
        }
    }
    for (int j = 0; j < N2; j++) {
        z[j] = n->b2[j];
        for (int h = 0; h < N1; h++) {
            z[j] += n->W2[j][h] * u[h];
        }
        a[j] = z[j] >= 0 ? z[j] : 0.01 * z[j];
        e += n->W3[j] * a[j];
    }
    double du[N1] = {0};
    g->b3 += e;
    for (int j = 0; j < N2; j++) {
        const double d = e * n->W3[j] * (z[j] >= 0 ? 1 : 0.01);
        g->W3[j] += e * a[j];
        g->b2[j] += d;
        for (int h = 0; h < N1; h++) {
            g->W2[j][h] += d * u[h];
            du[h] += d * n->W2[j][h];
        }
    }
    for (int h = 0; h < N1; h++) {
        g->b1[h] += du[h];
        for (int i = 0; i < M; i++) {
            g->W1[h][i] += du[h] * y[s - K - i];
        }
    }
}

static double sweep(const double* y, const crd_network* start)
{
    layers n = {0};
    memcpy(n.W1, start->W1, sizeof n.W1);
    memcpy(n.W2, start->W2, sizeof n.W2);
    memcpy(n.W3, start->W3, sizeof n.W3);
    const int64_t begin = crdi_now_ns();
    for (int e = 0; e < EPOCHS; e++) {
        layers g = {0};
        for (int s = K + M - 1; s < SAMPLES; s++) {
            add_sample(&n, y, s, &g);
        }
        n.b3 -= 1e-12 * (g.b3 + g.W1[0][0] + g.W2[1][1] + g.W3[0]); // the work cannot vanish
    }
    return n.b3 == 1 ? 0 : seconds_since(begin);
}

static void run_train(benchmark* b)
{
    static double y[SAMPLES];
    static const double a[M] = {6.5103, -1.5509, -9.9296, 5.9702};
    crd_context* ctx = crd_context_create(NULL);
    crd_network start;
    for (int n = 0; n < SAMPLES; n++) {
        y[n] = sin(0.001 * n) + 0.2 * sin(0.013 * n + 1);
    }
    benchmark_must(ctx,
                   crd_network_morph(ctx, &(crd_linear){.m = M, .k = K, .a = a}, 0.01, &start));
    double best = HUGE_VAL, floor = HUGE_VAL;
    for (int i = 0; i < REPEATS; i++) {
        best = fmin(best, train(ctx, y, &start));
        floor = fmin(floor, sweep(y, &start));
    }
    benchmark_report(b, "learn/train", best, "s", floor, 1,
                     "100 epochs, 5000 samples: %.2f ms; bare sums %.2f ms", 1e3 * best,
                     1e3 * floor);
    benchmark_report(b, "learn/train 50 ms", best, "s", 0.05, 1, "%.2f ms of 50 ms", 1e3 * best);
    crd_network_clear(ctx, &start);
    crd_context_destroy(ctx);
}

const benchmark_case benchmark_learn_cases[] = {{"learn/train", run_train}, {0}};
