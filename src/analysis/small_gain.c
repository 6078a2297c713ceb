// What any sequence of ages and any weights of an element that adapts can do, as a disturbance of
// the loop with constant ages. The input of a link is
//     u_n = (constant weights on the samples) + delta_n,
// delta_n being weights on samples whose sum is 0, as constants pass every element: so it is a sum
// over changes of the signal, and where straight lines pass, too (foh), one over second
// differences:
//     |delta| <= J_p max |D^p y|,  p = 0, 1, 2.
// J_p is the largest sum of absolute values of these weights over all states of the link. An
// element that adapts adds at most r times the largest change (its gain-limit keeps it). The loop
// answers a deviation by the impulse response h, and sums over time of |D^p h| are gains for
// bounded signals (Desoer and Vidyasagar 1975): of all bounds of |delta_i| over |delta_j| the least
// counts. What passes without delay, the first sample of h, may be bounded by J_0, and what comes
// after it by J_1 or J_2: noise is not smooth, but answers to it are. If the spectral radius of
// these gains is below 1 the loop holds for all sequences: the small gain theorem, which does not
// ask how delta comes about, nor whether links are late together or each on its own. For holds it
// is the bounded-signal form of the criterion of Kao and Lincoln (2004).
#include "analysis/varied.h"

#include "shared/num.h"

#include <string.h>

enum {
    MOST_STEPS = 20000, // that are summed one by one
    CHECK = 64,         // steps between two looks at the rest
    AHEAD = 256,        // steps behind which only what decays slowly is left
    ORDERS = 3,
};
static const double gain_effort = 6e9; // operations

// A value or a slope that may deviate
typedef struct deviation {
    int link;
    bool slope;
    double J[ORDERS];
} deviation;

// Sums of what one source answers
typedef struct answer {
    double first;           // |h_0|
    double all[ORDERS];     // of |D^p h|, p = 1, 2
    double without[ORDERS]; // likewise without h_0
} answer;

typedef struct gains {
    crdi_varied* s;
    int N, count;
    deviation* list;
    double *a, *work; // (N x N) the map of constant ages; 3 N^2
    double rho;       // between its spectral radius and 1
    double* Q;        // (outputs x 2 x N x N), see find_rest
    double* trust;    // (outputs x 2) of rounding
    answer* answers;  // (count)
    double *M, *K;    // (count x count) changes over a deviation; what bounds i over j
} gains;

// Sums of absolute values of weights on samples by age, of those on changes, y_p = y_0 - sum over j
// < p of (y_j - y_j+1), and of those on their changes. NaN, INFINITY if a constant, or a line, does
// not pass.
static void find_weights(const double* w, int n, double J[ORDERS])
{
    double sum = 0, twice = 0;
    J[0] = J[1] = J[2] = 0;
    for (int i = 0; i < n; i++) {
        sum += w[i];
        twice += sum;
        J[0] += fabs(w[i]);
        J[1] += fabs(sum);
        J[2] += fabs(twice);
    }
    if (!(fabs(twice) < 1e-9 * (1 + J[2]))) { J[2] = (double)INFINITY; }
    if (!(fabs(sum) < 1e-9 * (1 + J[1]))) { J[1] = (double)NAN; }
}

// The largest differences of all states' weights to those of state `of`. false: constants do not
// pass.
static bool find_deviations(const crdi_varied_link* l, int of, double value[ORDERS],
                            double slope[ORDERS])
{
    enum { AGES = CRD_LATENCY_MAX + CRDI_VARIED_TAPS + 256 };
    double own[2][CRDI_VARIED_TAPS + 1], other[2][CRDI_VARIED_TAPS + 1], J[ORDERS];
    double* const out[2] = {value, slope};
    memset(value, 0, ORDERS * sizeof *value);
    memset(slope, 0, ORDERS * sizeof *slope);
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
            find_weights(difference[k], AGES, J);
            if (isnan(J[1])) { return false; }
            for (int p = 0; p < ORDERS; p++) {
                out[k][p] = fmax(out[k][p], J[p]);
            }
        }
    }
    return true;
}

// out = a b, or a^T b
static void multiply(int n, const double* a, bool transposed, const double* b, double* out)
{
    memset(out, 0, (size_t)n * (size_t)n * sizeof *out);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < n; k++) {
            const double x = transposed ? a[k * n + i] : a[i * n + k];
            for (int j = 0; j < n && x != 0; j++) {
                out[i * n + j] += x * b[k * n + j];
            }
        }
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

static bool find_radius(gains* g)
{
    double *a = g->work, *re = a + (size_t)g->N * (size_t)g->N, *im = re + g->N, radius = 0;
    memcpy(a, g->a, (size_t)g->N * (size_t)g->N * sizeof *a);
    if (crdi_num_eigenvalues(g->N, a, re, im) < 0) { return false; }
    for (int i = 0; i < g->N; i++) {
        radius = fmax(radius, hypot(re[i], im[i]));
    }
    g->rho = fmax(0.1, sqrt(radius));
    return radius < 1 - 1e-11; // eigenvalues are good to some 1e-13
}

// The row c of D^p y, real numbers, AHEAD steps later: c A^AHEAD.
static void find_row(const gains* g, int output, int p, double* c, double* next)
{
    const int n = g->N, y = g->s->buffer[output];
    const double* scale = g->s->scale;
    memset(c, 0, (size_t)n * sizeof *c);
    c[y] = scale[y];
    c[y + 1] = -p * scale[y + 1];
    if (p == 2) { c[y + 2] = scale[y + 2]; }
    for (int t = 0; t < AHEAD; t++) {
        memset(next, 0, (size_t)n * sizeof *next);
        for (int k = 0; k < n; k++) {
            for (int j = 0; j < n && c[k] != 0; j++) {
                next[j] += c[k] * g->a[k * n + j];
            }
        }
        memcpy(c, next, (size_t)n * sizeof *c);
    }
}

// Q with z^T Q z = sum over n of rho^-2n (c A^n z)^2, by doubling. By Cauchy and Schwarz the sum of
// |c A^n z| is at most its root times (1 - rho^2)^-1/2: nearly all of it where one mode is left.
static void find_rest(gains* g, int output, int p, double* Q)
{
    const int n = g->N;
    const size_t square = (size_t)n * (size_t)n;
    double *b = g->work, *t = b + square, *u = t + square, largest = 0;
    find_row(g, output, p, t, u);
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            Q[i * n + j] = t[i] * t[j];
            b[i * n + j] = g->a[i * n + j] / g->rho;
        }
    }
    for (int round = 0; round < 50; round++) {
        double size = 0;
        multiply(n, Q, false, b, t);
        multiply(n, b, true, t, u);
        for (size_t i = 0; i < square; i++) {
            Q[i] += u[i];
            largest = fmax(largest, fabs(Q[i]));
            size = fmax(size, fabs(b[i]));
        }
        if (size < 1e-12) { break; }
        multiply(n, b, false, b, t);
        memcpy(b, t, square * sizeof *b);
    }
    // Each rounding error goes on as long as what it is an error of.
    g->trust[2 * output + p - 1] = 4 * n * 2.2e-16 * largest / (1 - g->rho * g->rho);
}

// Of the sum of |D^p y| behind AHEAD more steps
static double rest_of(const gains* g, int output, int p, const double* z, double* work)
{
    const int n = g->N;
    double sum = 0, length = 0;
    times(n, g->Q + (size_t)(2 * output + p - 1) * (size_t)n * (size_t)n, z, work);
    for (int i = 0; i < n; i++) {
        sum += z[i] * work[i];
        length += z[i] * z[i];
    }
    sum = fmax(sum, 0) + g->trust[2 * output + p - 1] * length;
    return sqrt(sum / (1 - g->rho * g->rho));
}

static int source_of(const gains* g, int i)
{
    return g->s->links[g->list[i].link].link->from;
}

static int highest_order(const gains* g, int output)
{
    return g->s->depth[output] >= 2 ? 2 : g->s->depth[output];
}

// What each source does at step t after the kick.
static void add_step(gains* g, const double* z, int t)
{
    for (int i = 0; i < g->count; i++) {
        const int y = g->s->buffer[source_of(g, i)];
        const double* scale = g->s->scale;
        answer* to = &g->answers[i];
        const double h = scale[y] * z[y];
        if (t == 0) { to->first = fabs(h); }
        for (int p = 1; p <= highest_order(g, source_of(g, i)); p++) {
            const double h1 = scale[y + 1] * z[y + 1], h2 = p == 2 ? scale[y + 2] * z[y + 2] : 0;
            const double later = h - (t > 1 ? p * h1 : 0) + (t > 2 ? h2 : 0);
            to->all[p] += fabs(h - p * h1 + h2);
            to->without[p] += t > 0 ? fabs(later) : 0;
        }
    }
}

// What is left is little against what was, or there were steps enough.
static bool is_enough(const gains* g, const double* z, double* work, double* rest)
{
    bool enough = true;
    for (int i = 0; i < g->count; i++) {
        for (int p = 1; p <= highest_order(g, source_of(g, i)); p++) {
            rest[ORDERS * i + p] = rest_of(g, source_of(g, i), p, z, work);
            enough = enough && rest[ORDERS * i + p] <= 1e-3 * g->answers[i].without[p];
        }
    }
    return enough;
}

// After a kick by deviation j: sums one by one, and a bound of what comes after.
static void add_responses(gains* g, int j)
{
    const int n = g->N;
    double *z = g->work, *next = z + n, *rest = next + n;
    int last = MOST_STEPS + AHEAD;
    memset(g->answers, 0, (size_t)g->count * sizeof *g->answers);
    memset(rest, 0, ORDERS * (size_t)g->count * sizeof *rest);
    crdi_varied_kick(g->s, g->list[j].link, g->list[j].slope, z);
    for (int t = 0; t < last; t++) {
        const bool looks = t % CHECK == 0 && last == MOST_STEPS + AHEAD;
        if (looks && (is_enough(g, z, next, rest) || t + CHECK > MOST_STEPS)) { last = t + AHEAD; }
        add_step(g, z, t);
        times(n, g->a, z, next);
        memcpy(z, next, (size_t)n * sizeof *z);
    }
    for (int i = 0; i < g->count; i++) {
        for (int p = 1; p < ORDERS; p++) {
            const bool there = p <= highest_order(g, source_of(g, i));
            const double more = there ? rest[ORDERS * i + p] : (double)INFINITY;
            g->answers[i].all[p] += more;
            g->answers[i].without[p] += more;
        }
    }
}

// The least of what is known of deviation i after a deviation j of at most 1.
static double least_bound(const deviation* d, const answer* a)
{
    double least = INFINITY;
    for (int p = 1; p < ORDERS; p++) {
        if (!(d->J[p] < INFINITY)) { continue; }
        least = fmin(least, d->J[p] * a->all[p]);
        least = fmin(least, d->J[0] * a->first + d->J[p] * a->without[p]);
    }
    return least;
}

// Spectral radius of all gains, r at values of links that adapt.
static double loop_gain(const gains* g, double r)
{
    const int n = g->count;
    double *k = g->work, *re = k + n * n, *im = re + n, largest = 0;
    for (int i = 0; i < n; i++) {
        const deviation* d = &g->list[i];
        const double own = g->s->links[d->link].element->adapts && !d->slope ? r : 0;
        for (int j = 0; j < n; j++) {
            k[i * n + j] = g->K[i * n + j] + own * g->M[i * n + j];
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

static bool list_deviations(gains* g, int state)
{
    g->count = 0;
    for (int l = 0; l < g->s->link_count; l++) {
        deviation value = {.link = l}, slope = {.link = l, .slope = true};
        const crdi_varied_link* link = &g->s->links[l];
        if (!find_deviations(link, crdi_varied_part(g->s, state, l), value.J, slope.J)) {
            return false;
        }
        if (value.J[0] > 0 || link->element->adapts) { g->list[g->count++] = value; }
        if (slope.J[0] > 0) { g->list[g->count++] = slope; }
    }
    return true;
}

static void try_ages(gains* g, const int* k, crdi_gain* out)
{
    const int state = crdi_varied_constant(g->s, k);
    if (state < 0 || !list_deviations(g, state)) { return; }
    crdi_varied_matrix(g->s, state, state, g->a);
    if (!find_radius(g)) { return; }
    for (int y = 0; y < g->s->w->outputs && g->count; y++) {
        bool used = false;
        for (int i = 0; i < g->count; i++) {
            used = used || source_of(g, i) == y;
        }
        for (int p = 1; used && p <= highest_order(g, y); p++) {
            find_rest(g, y, p, g->Q + (size_t)(2 * y + p - 1) * (size_t)g->N * (size_t)g->N);
        }
    }
    for (int j = 0; j < g->count; j++) {
        add_responses(g, j);
        for (int i = 0; i < g->count; i++) {
            g->M[i * g->count + j] = g->answers[i].all[1];
            g->K[i * g->count + j] = least_bound(&g->list[i], &g->answers[i]);
            if (!isfinite(g->K[i * g->count + j])) { return; }
        }
    }
    out->loop = fmin(out->known ? out->loop : INFINITY, g->count ? loop_gain(g, 0) : 0);
    out->allowed = fmax(out->known ? out->allowed : -1, g->count ? find_allowed(g) : 1e6);
    out->known = true;
}

crd_status crdi_small_gain(crdi_varied* s, crdi_gain* out)
{
    gains g = {.s = s, .N = s->size};
    const size_t n = (size_t)s->size, links = (size_t)s->link_count, room = 4 * links * links,
                 outputs = (size_t)s->w->outputs;
    *out = (crdi_gain){.allowed = -1, .loop = INFINITY};
    if (400.0 * (double)links * (double)n * (double)n * (double)n > gain_effort) { return CRD_OK; }
    g.list = crdi_arena_new(&s->arena, 2 * links, sizeof *g.list);
    g.answers = crdi_arena_new(&s->arena, 2 * links, sizeof *g.answers);
    g.a = crdi_arena_new(&s->arena, n * n, sizeof *g.a);
    g.Q = crdi_arena_new(&s->arena, 2 * outputs * n * n, sizeof *g.Q);
    g.trust = crdi_arena_new(&s->arena, 2 * outputs, sizeof *g.trust);
    g.work = crdi_arena_new(&s->arena, 3 * n * n + 2 * n + room + 6 * links, sizeof *g.work);
    g.M = crdi_arena_new(&s->arena, room, sizeof *g.M);
    g.K = crdi_arena_new(&s->arena, room, sizeof *g.K);
    int* k = crdi_arena_new(&s->arena, links, sizeof *k);
    if (!g.list || !g.answers || !g.a || !g.Q || !g.trust || !g.work || !g.M || !g.K || !k) {
        return CRD_E_MEMORY;
    }
    for (int place = 0; place < 3; place++) { // newest, middle and oldest of what may be constant
        for (size_t l = 0; l < links; l++) {
            const crd_variation* v = &s->links[l].v;
            const int middle = (v->k_min + v->k_max + v->burst + 1) / 2;
            k[l] = place == 0 ? v->k_min : place == 2 || middle > v->k_max ? v->k_max : middle;
        }
        try_ages(&g, k, out);
    }
    return CRD_OK;
}
