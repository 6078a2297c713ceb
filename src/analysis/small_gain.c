// What any sequence of ages and any weights of an element that adapts can do, as a disturbance of
// the loop that holds with constant ages. The input of a link is
//     u_n = (constant weights on the samples) + delta_n,
//     |delta_n| <= (J + r) max over the past of |y_j - y_{j-1}|:
// weights whose sum is the same differ by a sum over changes of the signal. J is the largest sum of
// absolute values of these weights over all states of the link, r what an element that adapts adds
// (its gain-limit keeps it). The loop answers with changes |y - y'| <= M |delta|, M being sums of
// absolute values of impulse responses, the gain for bounded signals (Desoer and Vidyasagar 1975).
// If the spectral radius of diag(J + r) M is below 1 the loop holds for all sequences: the small
// gain theorem, which does not ask how delta comes about. For holds it is the bounded-signal form
// of the criterion of Kao and Lincoln (2004).
#include "analysis/varied.h"

#include "shared/num.h"

#include <string.h>

enum { MOST_STEPS = 400000 };

// A value or a slope that may deviate
typedef struct deviation {
    int link;
    bool slope;
    double J;
} deviation;

typedef struct gains {
    crdi_varied* s;
    int N, count;
    deviation* list;
    double *a, *P, *work; // (N x N) the map of constant ages, its norm; 2 N^2
    double decay;         // of the norm per step
    double* M;            // (count x count) changes of the source of i over deviation j
} gains;

// Weights on raw samples by age as weights on changes, y_p = y_0 - sum over j < p of (y_j - y_j+1):
// sum |cumulated weights|. NaN if the sum is not 0.
static double change_weights(const double* w, int n)
{
    double sum = 0, all = 0;
    for (int i = 0; i < n; i++) {
        sum += w[i];
        all += fabs(sum);
    }
    return fabs(sum) < 1e-9 * (1 + all) ? all : (double)NAN;
}

// The largest difference of all states' weights to those of state `of`.
static void find_deviations(const crdi_varied_link* l, int of, double* value, double* slope)
{
    enum { AGES = CRD_LATENCY_MAX + CRDI_VARIED_TAPS + 256 };
    double own[2][CRDI_VARIED_TAPS + 1], other[2][CRDI_VARIED_TAPS + 1];
    *value = *slope = 0;
    crdi_varied_weights(l, of, own[0], own[1]);
    for (int s = 0; s < l->state_count; s++) {
        double difference[2][AGES] = {{0}};
        crdi_varied_weights(l, s, other[0], other[1]);
        for (int k = 0; k < 2; k++) {
            for (int i = 0; i < l->states[s].count; i++) {
                difference[k][l->states[s].age[i] % AGES] += other[k][i];
            }
            for (int i = 0; i < l->states[of].count; i++) {
                difference[k][l->states[of].age[i] % AGES] -= own[k][i];
            }
        }
        const double v = change_weights(difference[0], AGES),
                     w = change_weights(difference[1], AGES);
        *value = isnan(v) ? v : fmax(*value, v);
        *slope = isnan(w) ? w : fmax(*slope, w);
        if (isnan(v) || isnan(w)) { return; }
    }
}

static void times(int n, const double* a, const double* z, double* out)
{
    for (int i = 0; i < n; i++) {
        double sum = 0;
        for (int k = 0; k < n; k++) {
            sum += a[i * n + k] * z[k];
        }
        out[i] = sum;
    }
}

// P = sum of (A^T)^i A^i by doubling, then |A z|_P <= decay |z|_P with decay^2 = 1 - 1 / |P|.
static bool find_norm(gains* g)
{
    const int n = g->N;
    const size_t square = (size_t)n * (size_t)n;
    double *a = g->work, *t = a + square, *values = t + square;
    memcpy(a, g->a, square * sizeof *a);
    memset(g->P, 0, square * sizeof *a);
    for (int i = 0; i < n; i++) {
        g->P[i * n + i] = 1;
    }
    for (int round = 0; round < 50; round++) {
        double size = 0;
        memset(t, 0, square * sizeof *t);
        for (int k = 0; k < n; k++) { // t = P a
            for (int i = 0; i < n; i++) {
                for (int j = 0; j < n; j++) {
                    t[i * n + j] += g->P[i * n + k] * a[k * n + j];
                }
            }
        }
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < n; j++) {
                double sum = 0;
                for (int k = 0; k < n; k++) {
                    sum += a[k * n + i] * t[k * n + j];
                }
                g->P[i * n + j] += sum;
                size = fmax(size, fabs(g->P[i * n + j]));
            }
        }
        if (!(size < 1e11)) { return false; }
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < n; j++) {
                double sum = 0;
                for (int k = 0; k < n; k++) {
                    sum += a[i * n + k] * a[k * n + j];
                }
                t[i * n + j] = sum;
            }
        }
        memcpy(a, t, square * sizeof *a);
    }
    memcpy(a, g->P, square * sizeof *a);
    if (crdi_num_symmetric(n, a, values, false) < 0) { return false; }
    g->decay = sqrt(1 - 1 / (values[n - 1] * (1 + 1e-6)));
    return g->decay < 1;
}

// Sum over time of |change of the source of each deviation's link| after a kick by deviation j, and
// a bound of what comes after: |change| <= |c| |z|_P as P >= I.
static bool add_responses(gains* g, int j)
{
    const int n = g->N;
    double *z = g->work, *next = z + n;
    crdi_varied_kick(g->s, g->list[j].link, g->list[j].slope, z);
    for (int t = 0; t < MOST_STEPS; t++) {
        double smallest = INFINITY, largest = 0;
        for (int i = 0; i < g->count; i++) {
            const int y = g->s->buffer[g->s->links[g->list[i].link].link->from];
            g->M[i * g->count + j] += fabs(g->s->scale[y] * z[y] - g->s->scale[y + 1] * z[y + 1]);
            smallest =
                fmin(smallest, g->M[i * g->count + j] / (g->s->scale[y] + g->s->scale[y + 1]));
        }
        if (t % 16 == 0) {
            times(n, g->P, z, next);
            for (int i = 0; i < n; i++) {
                largest += z[i] * next[i];
            }
            const double rest = sqrt(fmax(largest, 0)) * g->decay / (1 - g->decay);
            if (rest <= 1e-3 * smallest || rest < 1e-13) {
                for (int i = 0; i < g->count; i++) {
                    const int y = g->s->buffer[g->s->links[g->list[i].link].link->from];
                    g->M[i * g->count + j] += rest * (g->s->scale[y] + g->s->scale[y + 1]);
                }
                return true;
            }
        }
        times(n, g->a, z, next);
        memcpy(z, next, (size_t)n * sizeof *z);
    }
    return false;
}

// Spectral radius of diag(J + r) M, r at values of links that adapt.
static double loop_gain(const gains* g, double r)
{
    const int n = g->count;
    double *k = g->work, *re = k + n * n, *im = re + n, largest = 0;
    for (int i = 0; i < n; i++) {
        const deviation* d = &g->list[i];
        const double own = g->s->links[d->link].element->adapts && !d->slope ? r : 0;
        for (int j = 0; j < n; j++) {
            k[i * n + j] = (d->J + own) * g->M[i * n + j];
        }
    }
    if (crdi_num_eigenvalues(n, k, re, im) < 0) { return INFINITY; }
    for (int i = 0; i < n; i++) {
        largest = fmax(largest, hypot(re[i], im[i]));
    }
    return largest;
}

static double find_allowed(const gains* g)
{
    double low = 0, high = 1e6;
    if (!(loop_gain(g, 0) < 1)) { return -1; }
    if (loop_gain(g, high) < 1) { return high; }
    for (int i = 0; i < 200 && high - low > 1e-9 * high; i++) {
        const double r = i < 60 && low > 0 ? sqrt(low * high)
                         : low == 0        ? high / 10
                                           : (low + high) / 2;
        *(loop_gain(g, r) < 1 ? &low : &high) = r;
        if (low == 0 && high < 1e-12) { break; }
    }
    return low;
}

static crd_status try_ages(gains* g, const int* k, crdi_gain* out)
{
    const int state = crdi_varied_constant(g->s, k);
    if (state < 0) { return CRD_OK; }
    g->count = 0;
    for (int l = 0; l < g->s->link_count; l++) {
        double value = 0, slope = 0;
        find_deviations(&g->s->links[l], crdi_varied_part(g->s, state, l), &value, &slope);
        if (isnan(value) || isnan(slope)) { return CRD_OK; }
        if (value > 0 || g->s->links[l].element->adapts) {
            g->list[g->count++] = (deviation){l, false, value};
        }
        if (slope > 0) { g->list[g->count++] = (deviation){l, true, slope}; }
    }
    crdi_varied_matrix(g->s, state, state, g->a);
    if (!find_norm(g)) { return CRD_OK; }
    memset(g->M, 0, (size_t)g->count * (size_t)g->count * sizeof *g->M);
    for (int j = 0; j < g->count; j++) {
        if (!add_responses(g, j)) { return CRD_OK; }
    }
    out->loop = fmin(out->known ? out->loop : INFINITY, g->count ? loop_gain(g, 0) : 0);
    out->allowed = fmax(out->known ? out->allowed : -1, g->count ? find_allowed(g) : 1e6);
    out->known = true;
    return CRD_OK;
}

crd_status crdi_small_gain(crdi_varied* s, crdi_gain* out)
{
    crd_status st = CRD_OK;
    gains g = {.s = s, .N = s->size};
    const size_t n = (size_t)s->size, links = (size_t)s->link_count, room = 4 * links * links;
    g.list = crdi_arena_new(&s->arena, 2 * links, sizeof *g.list);
    g.a = crdi_arena_new(&s->arena, n * n, sizeof *g.a);
    g.P = crdi_arena_new(&s->arena, n * n, sizeof *g.P);
    g.work = crdi_arena_new(&s->arena, 2 * n * n + n + room + 4 * links, sizeof *g.work);
    g.M = crdi_arena_new(&s->arena, room, sizeof *g.M);
    int* k = crdi_arena_new(&s->arena, links, sizeof *k);
    *out = (crdi_gain){.allowed = -1, .loop = INFINITY};
    if (!g.list || !g.a || !g.P || !g.work || !g.M || !k) { return CRD_E_MEMORY; }
    for (int place = 0; place < 3; place++) { // newest, middle and oldest of what may be constant
        for (size_t l = 0; l < links; l++) {
            const crd_variation* v = &s->links[l].v;
            const int middle = (v->k_min + v->k_max + v->burst + 1) / 2;
            k[l] = place == 0 ? v->k_min : place == 2 || middle > v->k_max ? v->k_max : middle;
        }
        CRD_TRY(try_ages(&g, k, out));
    }
fail:
    return st;
}
