// Mean-square stability under random arrival: the second moments of a linear system that a Markov
// chain switches go on as (Costa, Fragoso and Marques 2005, ch. 3)
//     S_w(n+1) = sum over v of p(v -> w) A_vw S_v(n) A_vw^T,
// S_v being the mean of z z^T where the chain is in v. They die out if and only if the spectral
// radius of this map is below 1; for control over links that lose samples see Schenato and others
// (2007). The largest eigenvalue of a positive map is real. Others may have the same modulus (those
// of an oscillation turn), so that powers alone settle slowly: Arnoldi's method finds it.
#include "analysis/varied.h"

#include "shared/num.h"

#include <string.h>

enum { KRYLOV = 24, RESTARTS = 40 };

typedef struct moments {
    const crdi_varied* s;
    int N;
    size_t square, length; // of one matrix, of all
    int* first;            // (states + 1) into edges
    crdi_next* edges;      // with the chances
    double* maps;          // (edges x N x N)
    double *half, *basis;  // (N x N), (KRYLOV + 1 x length)
    double cost;           // operations of one round of Arnoldi's method
    double H[(KRYLOV + 1) * KRYLOV];
} moments;

// to = the map of from
static void advance(const moments* m, const double* from, double* to)
{
    const int n = m->N;
    memset(to, 0, m->length * sizeof *to);
    for (int v = 0; v < m->s->states; v++) {
        const double* S = from + (size_t)v * m->square;
        for (int e = m->first[v]; e < m->first[v + 1]; e++) {
            const double *a = m->maps + (size_t)e * m->square, p = m->edges[e].chance;
            double* T = to + (size_t)m->edges[e].to * m->square;
            memset(m->half, 0, m->square * sizeof *m->half);
            for (int i = 0; i < n; i++) { // half = S A^T, by columns of A^T
                for (int k = 0; k < n; k++) {
                    const double x = a[i * n + k];
                    if (x == 0) { continue; }
                    for (int j = 0; j < n; j++) {
                        m->half[i * n + j] += x * S[k * n + j]; // (A S)_ij
                    }
                }
            }
            for (int j = 0; j < n; j++) {
                for (int k = 0; k < n; k++) {
                    const double x = p * a[j * n + k];
                    if (x == 0) { continue; }
                    for (int i = 0; i < n; i++) {
                        T[i * n + j] += x * m->half[i * n + k];
                    }
                }
            }
        }
    }
}

static double dot(size_t n, const double* a, const double* b)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

static void add_scaled(size_t n, double by, const double* x, double* y)
{
    for (size_t i = 0; i < n; i++) {
        y[i] += by * x[i];
    }
}

// A basis of the vectors that the map makes of basis[0]; returns its size.
static int arnoldi(moments* m)
{
    memset(m->H, 0, sizeof m->H);
    for (int k = 0; k < KRYLOV; k++) {
        double* next = m->basis + (size_t)(k + 1) * m->length;
        advance(m, m->basis + (size_t)k * m->length, next);
        for (int pass = 0; pass < 2; pass++) { // twice is enough
            for (int i = 0; i <= k; i++) {
                const double* q = m->basis + (size_t)i * m->length;
                const double h = dot(m->length, q, next);
                m->H[i * KRYLOV + k] += h;
                add_scaled(m->length, -h, q, next);
            }
        }
        const double size = sqrt(dot(m->length, next, next));
        m->H[(k + 1) * KRYLOV + k] = size;
        if (!(size > 1e-13 * fabs(m->H[0]))) { return k + 1; }
        for (size_t i = 0; i < m->length; i++) {
            next[i] /= size;
        }
    }
    return KRYLOV;
}

// The largest eigenvalue of H (n x n), its vector y (n) by inverse iteration, and what is left of
// H y = theta y in the whole space: the last element of y times h_{n+1,n}.
static double ritz(const moments* m, int n, double* y, double* residual)
{
    double a[KRYLOV * KRYLOV], re[KRYLOV], im[KRYLOV], largest = 0;
    int32_t pivots[KRYLOV];
    for (int i = 0; i < n; i++) {
        memcpy(&a[i * n], &m->H[i * KRYLOV], (size_t)n * sizeof *a);
        y[i] = i == 0 ? 1 : 0;
    }
    *residual = INFINITY;
    if (crdi_num_eigenvalues(n, a, re, im) < 0) { return NAN; }
    for (int i = 0; i < n; i++) {
        largest = fmax(largest, hypot(re[i], im[i]));
    }
    for (int round = 0; round < 4; round++) {
        double size = 0;
        for (int i = 0; i < n; i++) {
            memcpy(&a[i * n], &m->H[i * KRYLOV], (size_t)n * sizeof *a);
            a[i * n + i] -= largest * (1 + 1e-12);
        }
        if (crdi_num_solve(n, a, y, pivots) < 0) { return largest; }
        for (int i = 0; i < n; i++) {
            size += y[i] * y[i];
        }
        for (int i = 0; i < n; i++) {
            y[i] /= sqrt(size);
        }
    }
    double rest = pow(m->H[n * KRYLOV + n - 1] * y[n - 1], 2); // and that of H itself, if theta
    for (int i = 0; i < n; i++) {                              // is not real
        double sum = -largest * y[i];
        for (int k = 0; k < n; k++) {
            sum += m->H[i * KRYLOV + k] * y[k];
        }
        rest += sum * sum;
    }
    *residual = sqrt(rest);
    return largest;
}

// basis[0] becomes the sum of y_i basis[i].
static void restart(moments* m, const double* y, int n)
{
    double* first = m->basis;
    for (size_t k = 0; k < m->length; k++) {
        double sum = 0;
        for (int i = 0; i < n; i++) {
            sum += y[i] * m->basis[(size_t)i * m->length + k];
        }
        first[k] = sum;
    }
    const double size = sqrt(dot(m->length, first, first));
    for (size_t k = 0; k < m->length; k++) {
        first[k] /= size;
    }
}

static crd_status moments_make(moments* m, crd_arena* arena, double effort, bool* fits)
{
    const crdi_varied* s = m->s;
    const double edges = (double)s->transitions;
    m->half = crdi_arena_new(arena, m->square, sizeof *m->half);
    if (!m->half) { return CRD_E_MEMORY; }
    double full = 0; // elements of a map that are not 0
    crdi_varied_matrix(s, 0, 0, m->half);
    for (size_t i = 0; i < m->square; i++) {
        full += m->half[i] != 0;
    }
    m->cost =
        KRYLOV * (edges * (2 * full * m->N + (double)m->square) + 2.0 * KRYLOV * (double)m->length);
    *fits = edges * (double)m->square < 2e7 && (double)m->length * KRYLOV < 4e7 && m->cost < effort;
    if (!*fits) { return CRD_OK; }
    m->first = crdi_arena_new(arena, (size_t)s->states + 1, sizeof *m->first);
    m->edges = crdi_arena_new(arena, (size_t)edges + (size_t)crdi_varied_most(s), sizeof *m->edges);
    m->maps = crdi_arena_new(arena, (size_t)edges * m->square, sizeof *m->maps);
    m->basis = crdi_arena_new(arena, (KRYLOV + 1) * m->length, sizeof *m->basis);
    if (!m->first || !m->edges || !m->maps || !m->basis) { return CRD_E_MEMORY; }
    for (int v = 0; v < s->states; v++) {
        const int n = crdi_varied_next(s, v, m->edges + m->first[v]);
        m->first[v + 1] = m->first[v] + n;
        for (int e = m->first[v]; e < m->first[v + 1]; e++) {
            crdi_varied_matrix(s, v, m->edges[e].to, m->maps + (size_t)e * m->square);
        }
    }
    return CRD_OK;
}

crd_status crdi_moment_radius(const crdi_varied* s, double* effort, double* out, double* error)
{
    crd_status st = CRD_OK;
    moments m = {.s = s, .N = s->size};
    crd_arena arena;
    bool fits = false;
    double y[KRYLOV];
    crd_arena_init(&arena, s->ctx);
    m.square = (size_t)m.N * (size_t)m.N;
    m.length = m.square * (size_t)s->states;
    *out = *error = NAN;
    CRD_TRY(moments_make(&m, &arena, *effort, &fits));
    if (!fits) { goto fail; }
    const double part = 1 / sqrt((double)s->states * m.N);
    for (size_t v = 0; v < (size_t)s->states; v++) {
        for (size_t i = 0; i < (size_t)m.N; i++) {
            m.basis[v * m.square + i * (size_t)m.N + i] = part;
        }
    }
    for (int i = 0; i<RESTARTS&& * effort> 0; i++) {
        const int n = arnoldi(&m);
        *effort -= m.cost;
        *out = ritz(&m, n, y, error);
        if (n < KRYLOV) { *error = 0; } // the space is closed
        const bool clear = *error < 1e-7 && fabs(*out - 1) > 1e4 * *error;
        if (n < KRYLOV || isnan(*out) || clear || *error < 1e-11 * *out) { break; }
        restart(&m, y, n);
    }
fail:
    crd_arena_clear(&arena);
    return st;
}

// ---- drawn --------------------------------------------------------------------------------------

static double draw(uint64_t* seed) // SplitMix64, [0, 1)
{
    uint64_t x = *seed += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return (double)((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

// The state of each link goes on by itself; the state of the whole.
static int draw_states(const crdi_varied* s, int state, uint64_t* seed)
{
    int next = 0, stride = 1;
    for (int l = 0; l < s->link_count; l++) {
        const crdi_varied_link* k = &s->links[l];
        const int part = crdi_varied_part(s, state, l);
        double x = draw(seed);
        int e = k->first[part];
        while (e + 1 < k->first[part + 1] && x >= k->next[e].chance) {
            x -= k->next[e++].chance;
        }
        next += stride * k->next[e].to;
        stride *= k->state_count;
    }
    return next;
}

// z <- A z / |A z|; ln |A z|
static double draw_step(int n, const double* a, double* z, double* next)
{
    double size = 0;
    for (int i = 0; i < n; i++) {
        next[i] = dot((size_t)n, a + (size_t)i * (size_t)n, z);
        size += next[i] * next[i];
    }
    size = sqrt(size);
    for (int i = 0; i < n; i++) {
        z[i] = size > 0 ? next[i] / size : 1 / sqrt(n);
    }
    return size > 0 ? log(size) : 0;
}

crd_status crdi_varied_drawn(crdi_varied* s, double* growth, double* error)
{
    enum { BATCHES = 20, STEPS = CRDI_VARIED_DRAWN / BATCHES, WARM = 1000 };
    const size_t n = (size_t)s->size;
    double states = 1, sum = 0, squares = 0;
    *growth = *error = NAN;
    for (int l = 0; l < s->link_count; l++) {
        states *= s->links[l].state_count;
    }
    if (states > 1e9 || n > 400) { return CRD_OK; }
    double* a = crdi_arena_new(&s->arena, n * n + 2 * n, sizeof *a);
    if (!a) { return CRD_E_MEMORY; }
    double *z = a + n * n, *next = z + n;
    for (size_t i = 0; i < n; i++) {
        z[i] = 1 / sqrt((double)n);
    }
    s->shared = false; // each on its own
    s->states = (int)states;
    uint64_t seed = 1;
    int state = 0;
    for (int b = -1; b < BATCHES; b++) {
        double part = 0;
        for (int t = 0; t < (b < 0 ? WARM : STEPS); t++) {
            const int to = draw_states(s, state, &seed);
            crdi_varied_matrix(s, state, to, a);
            part += draw_step((int)n, a, z, next);
            state = to;
        }
        if (b < 0) { continue; }
        sum += part / STEPS;
        squares += part / STEPS * part / STEPS;
    }
    const double mean = sum / BATCHES;
    *growth = mean;
    *error = sqrt(fmax(squares / BATCHES - mean * mean, 0) / (BATCHES - 1));
    return CRD_OK;
}
