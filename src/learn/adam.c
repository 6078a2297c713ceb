// Adam (Kingma and Ba 2014) on the mean squared error of a network.
#include <math.h>
#include <string.h>

#include "learn/train.h"
#include "shared/base.h"
#include "shared/base_progress.h"
#include "shared/coupling.h"

enum { L = CRDI_LANES };

// The first of several layers is linear, so a sample only meets V = W2 W1 and c = W2 b1 + b2 (n2
// rows), and leaves behind dE/dV and dE/dc. What they mean for W1, b1, W2 and b2 is worked out once
// per step. Without a linear layer V = W2 and c = b2. Layers behind (`more`) are passed forwards
// and backwards one by one.
typedef struct descent {
    int m, n1, n2, size; // size: parameters with b3, which comes last
    crd_network shape;
    double alpha;
    double *w, *first, *second, *gradient; // (size) parameters and their moments
    double *V, *c, *dV, *dc;               // (n2 x m), (n2)
    double* sums;                          // (n2 x (m + 2) + 2) x lanes: dV, dc, dW3; db3, loss
    double *z, *d;                         // (n2 x lanes)
    double* behind; // sums of the layers behind: dW and db of each, dW3, x lanes
    double *z_more[2], *d_more[2],
        *back;        // (neurons x lanes); back: dE/dz of the first, (n2 x lanes)
    int64_t* order;   // (pairs) of mini-batches
    crdi_pairs batch; // one of them, gathered
} descent;

// Where the parts of a network stand among its parameters.
typedef struct places {
    double *W1, *b1, *W2, *b2, *W3, *b3;
    double *W_more[2], *b_more[2];
} places;

static places places_of(const descent* a, double* w)
{
    crd_network n = a->shape;
    crdi_network_place(&n, w);
    places p = {.W1 = w,
                .W2 = (double*)n.W2,
                .W3 = (double*)n.W3,
                .b1 = (double*)n.b1,
                .b2 = (double*)n.b2,
                .b3 = (double*)n.W3 + crdi_network_last(&n)};
    for (int h = 0; h < n.more; h++) {
        p.W_more[h] = (double*)n.W_more[h];
        p.b_more[h] = (double*)n.b_more[h];
    }
    return p;
}

static void collapse(descent* a)
{
    const places w = places_of(a, a->w);
    memset(a->V, 0, (size_t)(a->n2 * a->m) * sizeof *a->V);
    if (a->n1 == 0) {
        memcpy(a->V, w.W2, (size_t)(a->n2 * a->m) * sizeof *a->V);
        memcpy(a->c, w.b2, (size_t)a->n2 * sizeof *a->c);
        return;
    }
    for (int j = 0; j < a->n2; j++) {
        a->c[j] = w.b2[j];
        for (int h = 0; h < a->n1; h++) {
            const double u = w.W2[j * a->n1 + h];
            a->c[j] += u * w.b1[h];
            for (int i = 0; i < a->m; i++) {
                a->V[j * a->m + i] += u * w.W1[h * a->m + i];
            }
        }
    }
}

// out += s x, lane by lane
static inline void add_scaled(double* restrict out, double s, const double* restrict x)
{
    for (int l = 0; l < L; l++) {
        out[l] += s * x[l];
    }
}

static inline void adam_add_product(double* restrict out, const double* restrict x,
                                    const double* restrict y)
{
    for (int l = 0; l < L; l++) {
        out[l] += x[l] * y[l];
    }
}

// z := s(z), and its slope
static inline void bend(double alpha, double* restrict z, double* restrict slope)
{
    for (int l = 0; l < L; l++) {
        slope[l] = z[l] >= 0 ? 1 : alpha;
        z[l] *= slope[l];
    }
}

// The layers behind the first one, and the output into e.
static void pass_forwards(const descent* a, const places* w, double* e)
{
    const double* before = a->z;
    int count = a->n2;
    for (int h = 0; h < a->shape.more; h++) {
        for (int j = 0; j < a->shape.n_more[h]; j++) {
            double* z = &a->z_more[h][j * L];
            for (int l = 0; l < L; l++) {
                z[l] = w->b_more[h][j];
            }
            for (int i = 0; i < count; i++) {
                add_scaled(z, w->W_more[h][j * count + i], &before[i * L]);
            }
            bend(a->alpha, z, &a->d_more[h][j * L]);
        }
        before = a->z_more[h];
        count = a->shape.n_more[h];
    }
    for (int j = 0; j < count; j++) {
        add_scaled(e, w->W3[j], &before[j * L]);
    }
}

// dE/dz of the first layer into `back`, and what the layers behind it leave.
static void pass_backwards(const descent* a, const places* w, const double* e)
{
    const int more = a->shape.more, last = a->shape.n_more[more - 1];
    double* sums = a->behind;
    for (int j = 0; j < last; j++) { // dW3; the slope becomes dE/d(what is bent)
        adam_add_product(sums, e, &a->z_more[more - 1][j * L]);
        sums += L;
        for (int l = 0; l < L; l++) {
            a->d_more[more - 1][j * L + l] *= w->W3[j] * e[l];
        }
    }
    for (int h = more - 1; h >= 0; h--) {
        const int rows = a->shape.n_more[h], count = h ? a->shape.n_more[h - 1] : a->n2;
        const double* before = h ? a->z_more[h - 1] : a->z;
        memset(a->back, 0, (size_t)count * L * sizeof *a->back);
        for (int j = 0; j < rows; j++) {
            const double* d = &a->d_more[h][j * L];
            for (int i = 0; i < count; i++, sums += L) {
                adam_add_product(sums, d, &before[i * L]);
                add_scaled(&a->back[i * L], w->W_more[h][j * count + i], d);
            }
            add_scaled(sums, 1, d);
            sums += L;
        }
        for (int i = 0; h > 0 && i < count * L; i++) {
            a->d_more[h - 1][i] *= a->back[i];
        }
    }
}

// Forward and backward over one block. dE is the error, its factor 2/N comes later.
static inline void run_block(const descent* a, places w, int m, int n2, const double* restrict x,
                             const double* restrict y, const double* restrict on,
                             double* restrict sums)
{
    const bool deep = a->shape.more > 0;
    double e[L];
    for (int l = 0; l < L; l++) {
        e[l] = *w.b3 - y[l];
    }
    for (int j = 0; j < n2; j++) {
        double* restrict z = &a->z[j * L];
        double* restrict slope = &a->d[j * L];
        for (int l = 0; l < L; l++) {
            z[l] = a->c[j];
        }
        for (int i = 0; i < m; i++) {
            add_scaled(z, a->V[j * m + i], &x[i * L]);
        }
        bend(a->alpha, z, slope);
        if (!deep) { add_scaled(e, w.W3[j], z); }
    }
    if (deep) { pass_forwards(a, &w, e); }
    double* restrict tail = &sums[n2 * (m + 2) * L];
    for (int l = 0; l < L; l++) {
        e[l] *= on[l];
        tail[l] += e[l];
        tail[L + l] += e[l] * e[l];
    }
    if (deep) { pass_backwards(a, &w, e); }
    for (int j = 0; j < n2; j++) {
        double* restrict s = &sums[j * (m + 2) * L];
        double* restrict d = &a->d[j * L];
        for (int l = 0; l < L; l++) {
            d[l] *= deep ? a->back[j * L + l] : w.W3[j] * e[l];
        }
        for (int i = 0; i < m; i++) {
            adam_add_product(&s[i * L], d, &x[i * L]);
        }
        for (int l = 0; l < L; l++) {
            s[m * L + l] += d[l];
        }
        adam_add_product(&s[(m + 1) * L], e, &a->z[j * L]);
    }
}

static double sum_lanes(const double* x)
{
    double sum = 0;
    for (int l = 0; l < L; l++) {
        sum += x[l];
    }
    return sum;
}

static int count_behind(const descent* a)
{
    int count = 0, before = a->n2;
    for (int h = 0; h < a->shape.more; before = a->shape.n_more[h], h++) {
        count += a->shape.n_more[h] * (before + 1);
    }
    return a->shape.more > 0 ? count + before : 0;
}

// In the order of pass_backwards.
static void sum_behind(const descent* a, double f, const places* g)
{
    const int more = a->shape.more;
    const double* s = a->behind;
    for (int j = 0; j < a->shape.n_more[more - 1]; j++, s += L) {
        g->W3[j] = f * sum_lanes(s);
    }
    for (int h = more - 1; h >= 0; h--) {
        const int count = h ? a->shape.n_more[h - 1] : a->n2;
        for (int j = 0; j < a->shape.n_more[h]; j++, s += L) {
            for (int i = 0; i < count; i++, s += L) {
                g->W_more[h][j * count + i] = f * sum_lanes(s);
            }
            g->b_more[h][j] = f * sum_lanes(s);
        }
    }
}

// The loss, and its gradient by the parameters.
static double gradient(descent* a, const crdi_pairs* p)
{
    const int m = a->m, n1 = a->n1, n2 = a->n2;
    const places w = places_of(a, a->w);
    collapse(a);
    memset(a->sums, 0, (size_t)(n2 * (m + 2) + 2) * L * sizeof *a->sums);
    memset(a->behind, 0, (size_t)count_behind(a) * L * sizeof *a->behind);
    if (m == 4 && n2 == 2) { // the usual shape, with constants for the compiler
        for (int64_t b = 0; b < p->trained_blocks; b++) {
            run_block(a, w, 4, 2, &p->x[b * 4 * L], &p->y[b * L], &p->on[b * L], a->sums);
        }
    } else {
        for (int64_t b = 0; b < p->trained_blocks; b++) {
            run_block(a, w, m, n2, &p->x[b * m * L], &p->y[b * L], &p->on[b * L], a->sums);
        }
    }
    const places g = places_of(a, a->gradient);
    const double f = 2 / (double)p->trained;
    memset(a->gradient, 0, (size_t)a->size * sizeof *a->gradient);
    for (int j = 0; j < n2; j++) {
        const double* s = &a->sums[j * (m + 2) * L];
        for (int i = 0; i < m; i++) {
            a->dV[i] = f * sum_lanes(&s[i * L]);
        }
        const double dc = f * sum_lanes(&s[m * L]);
        g.b2[j] = dc;
        if (a->shape.more == 0) { g.W3[j] = f * sum_lanes(&s[(m + 1) * L]); } // else sum_behind
        if (n1 == 0) { memcpy(&g.W2[j * m], a->dV, (size_t)m * sizeof *a->dV); }
        for (int h = 0; h < n1; h++) {
            const double u = w.W2[j * n1 + h];
            double sum = dc * w.b1[h];
            g.b1[h] += u * dc;
            for (int i = 0; i < m; i++) {
                g.W1[h * m + i] += u * a->dV[i];
                sum += a->dV[i] * w.W1[h * m + i];
            }
            g.W2[j * n1 + h] = sum;
        }
    }
    if (a->shape.more > 0) { sum_behind(a, f, &g); }
    const double* tail = &a->sums[n2 * (m + 2) * L];
    *g.b3 = f * sum_lanes(tail);
    return sum_lanes(&tail[L]) / (double)p->trained;
}

static void freeze_biases(descent* a)
{
    const places g = places_of(a, a->gradient);
    memset(g.b1, 0, (size_t)a->n1 * sizeof *g.b1);
    memset(g.b2, 0, (size_t)a->n2 * sizeof *g.b2);
    for (int h = 0; h < a->shape.more; h++) {
        memset(g.b_more[h], 0, (size_t)a->shape.n_more[h] * sizeof *g.b_more[h]);
    }
    *g.b3 = 0;
}

// As in the paper's algorithm 1: epsilon counts after the moments have been corrected for their
// start at zero.
static void adam_step(descent* a, double rate, int64_t step)
{
    static const double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-7;
    const double mean = 1 / (1 - pow(beta1, (double)step)),
                 square = 1 / (1 - pow(beta2, (double)step));
    for (int i = 0; i < a->size; i++) {
        const double g = a->gradient[i];
        a->first[i] = beta1 * a->first[i] + (1 - beta1) * g;
        a->second[i] = beta2 * a->second[i] + (1 - beta2) * g * g;
        a->w[i] -= rate * (mean * a->first[i]) / (sqrt(square * a->second[i]) + epsilon);
    }
}

// splitmix64, for the order of the samples
static uint64_t next_random(uint64_t* x)
{
    uint64_t z = *x += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static void shuffle(int64_t* order, int64_t n, uint64_t* seed)
{
    for (int64_t i = n - 1; i > 0; i--) {
        const int64_t j = (int64_t)(next_random(seed) % (uint64_t)(i + 1));
        const int64_t t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
}

static void gather_batch(crdi_pairs* batch, const crdi_pairs* p, const int64_t* order,
                         int64_t count)
{
    batch->trained = count;
    batch->trained_blocks = (count + L - 1) / L;
    memset(batch->on, 0, (size_t)batch->trained_blocks * L * sizeof *batch->on);
    for (int64_t s = 0; s < count; s++) {
        const double* from = &p->x[order[s] / L * p->m * L + order[s] % L];
        double* to = &batch->x[s / L * p->m * L + s % L];
        for (int i = 0; i < p->m; i++) {
            to[i * L] = from[i * L];
        }
        batch->y[s] = p->y[order[s]];
        batch->on[s] = 1;
    }
}

// One epoch; the loss is the mean over its steps, each before the step.
static double run_epoch(descent* a, const crd_training* t, const crdi_pairs* p, double rate,
                        uint64_t* seed, int64_t* steps)
{
    const bool whole = !a->order;
    const int64_t size = whole ? p->trained : t->batch;
    double sum = 0;
    if (!whole) { shuffle(a->order, p->trained, seed); }
    for (int64_t from = 0; from < p->trained; from += size) {
        const int64_t count = p->trained - from < size ? p->trained - from : size;
        if (!whole) { gather_batch(&a->batch, p, &a->order[from], count); }
        sum += (double)count * gradient(a, whole ? p : &a->batch);
        if (t->freeze_biases) { freeze_biases(a); }
        adam_step(a, rate, ++*steps);
    }
    return sum / (double)p->trained;
}

static crd_status allocate_adam(crd_context* ctx, const crd_training* t, const crdi_pairs* p,
                                descent* a)
{
    const size_t size = (size_t)a->size, m = (size_t)a->m, n2 = (size_t)a->n2;
    a->w = crdi_new_array(ctx, 4 * size, sizeof *a->w);
    a->V = crdi_new_array(ctx, n2 * m + n2 + m, sizeof *a->V);
    const size_t behind = (size_t)count_behind(a), more = 2 * 2 * CRD_NETWORK_NEURONS;
    const size_t widest = a->shape.more > 0 ? CRD_NETWORK_NEURONS : 0;
    a->sums =
        crdi_new_array(ctx, (n2 * (m + 2) + 2 + 2 * n2 + behind + (widest ? more + widest : 0)) * L,
                       sizeof *a->sums);
    if (!a->w || !a->V || !a->sums) { return CRD_E_MEMORY; }
    a->first = a->w + size;
    a->second = a->first + size;
    a->gradient = a->second + size;
    a->c = a->V + n2 * m;
    a->dV = a->c + n2;
    a->z = a->sums + (n2 * (m + 2) + 2) * L;
    a->d = a->z + n2 * L;
    a->behind = a->d + n2 * L;
    a->back = a->behind + behind * L;
    for (int h = 0; h < a->shape.more; h++) {
        a->z_more[h] = a->back + (widest + 2 * (size_t)h * widest) * L;
        a->d_more[h] = a->z_more[h] + widest * L;
    }
    if (t->batch == 0 || t->batch >= p->trained) { return CRD_OK; }
    const size_t room = ((size_t)t->batch + L - 1) / L * L;
    a->batch.m = a->m;
    a->order = crdi_new_array(ctx, (size_t)p->trained, sizeof *a->order);
    a->batch.x = crdi_new_array(ctx, room * m, sizeof *a->batch.x);
    a->batch.y = crdi_new_array(ctx, room, sizeof *a->batch.y);
    a->batch.on = crdi_new_array(ctx, room, sizeof *a->batch.on);
    if (!a->order || !a->batch.x || !a->batch.y || !a->batch.on) { return CRD_E_MEMORY; }
    for (int64_t i = 0; i < p->trained; i++) {
        a->order[i] = i;
    }
    return CRD_OK;
}

static bool is_finite(const double* w, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        sum += 0 * w[i];
    }
    return sum == 0;
}

crd_status crdi_adam(crd_context* ctx, const crd_training* t, const crdi_pairs* p, crd_network* n,
                     double* loss, int* epochs)
{
    crd_status st = CRD_OK;
    descent a = {.m = n->m, .n1 = n->n1, .n2 = n->n2, .alpha = n->alpha, .shape = *n};
    a.size = crdi_network_size(n) + 1;
    CRD_TRY(allocate_adam(ctx, t, p, &a));
    crdi_network_flatten(n, a.w);
    uint64_t seed = t->seed;
    int64_t steps = 0;
    int e = 0;
    for (; e < t->epochs; e++) {
        crdi_progress(ctx, "training", e, t->epochs, "epochs");
        if (t->stop && __atomic_load_n(t->stop, __ATOMIC_RELAXED)) { break; }
        const int stage = (int)((int64_t)e * t->stages / t->epochs);
        const double l = run_epoch(&a, t, p, t->rate * pow(10, -0.5 * stage), &seed, &steps);
        if (!(l < 1e300) || !is_finite(a.w, a.size)) { break; } // n stays as it is
        if (loss) { loss[e] = l; }
    }
    *epochs = e;
    if (e == t->epochs) {
        memcpy((double*)n->W1, a.w, (size_t)(a.size - 1) * sizeof *a.w);
        n->b3 = a.w[a.size - 1];
    }
fail:
    crd_free(ctx, a.w);
    crd_free(ctx, a.V);
    crd_free(ctx, a.sums);
    crd_free(ctx, a.order);
    crdi_pairs_clear(ctx, &a.batch);
    return st;
}
