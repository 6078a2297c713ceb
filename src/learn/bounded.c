// A network that is least squares on the smooth part of a signal and does not overshoot at jumps.
//
// A linear algorithm says y_0 + E, the newest sample and what it expects of the time since then:
// E = sum_i c_i (y_i - y_{i+1}). On a smooth signal E stays small; a jump J among the inputs makes
// it c_i J, and that is the overshoot. So the network is made to say
//     y_0 + min(E, limit),    or with enough neurons    y_0 + max(-limit, min(E, limit)),
// with a limit above all that the smooth part has ever needed. There nothing changes; at jumps of
// any height and from any level the error is the limit. Descent on the squared error finds another
// solution: it makes the network a hold on that side of zero on which the signal was after the
// jump, and gives the compensation away there (Baumann 2020 does not mention it).
//
// With two leaky ReLUs s, one carries the signal: x = s(x + b) - b for x > -b, and b lies far
// outside of the signal. The other one takes away what is above the limit, in the direction in
// which most was lost. After a jump upwards E must not fall, so either all c_i >= 0, or only the
// part of E with c_i > 0 is limited and an undershoot remains; which is better, the signal says.
// Three and more carry the signal by a pair, without b; four and more limit both sides, for any c.
#include <math.h>
#include <string.h>

#include "learn/train.h"

enum { L = CRDI_LANES };
// The limit lies above what was needed so far, and as high as jumps of the size that was seen
// allow: the signal may become faster.
static const double margin = 1.5, part_of_jump = 0.01;
static const double far_away = 65536;

typedef struct reach {
    double smooth;   // largest |E| there
    double jump;     // largest difference of two samples at jumps
    double up, down; // squares of E at jumps
} reach;

static reach reach_of(const crdi_pairs* p, const double* E_weights)
{
    const int64_t places = (p->trained_blocks + p->held_blocks) * L;
    reach r = {0};
    for (int64_t s = 0; s < places; s++) {
        if (p->on[s] == 0) { continue; }
        const double* x = &p->x[s / L * p->m * L + s % L];
        double E = 0;
        for (int i = 0; i < p->m; i++) {
            E += E_weights[i] * x[i * L];
        }
        if (p->kind[s] != CRDI_PAIR_JUMP) {
            r.smooth = fmax(r.smooth, fabs(E));
            continue;
        }
        *(E > 0 ? &r.up : &r.down) += E * E;
        for (int i = 0; i < p->m - 1; i++) {
            r.jump = fmax(r.jump, fabs(x[i * L] - x[(i + 1) * L]));
        }
    }
    return r;
}

// The weights (m) of E, or of that part of it with c_i > 0.
static void weights_of_E(int m, const double* a, bool part, double* E)
{
    double c = 0;
    memset(E, 0, (size_t)m * sizeof *E);
    for (int i = 0; i < m - 1; i++) {
        c += a[i] - (i == 0); // of y_i - y_{i+1}
        if (part && c < 0) { continue; }
        E[i] += c;
        E[i + 1] -= c;
    }
}

// The first layer has E in its second neuron and what is carried in the others, of which the first
// is used. An idle limiter leaks alpha times its input; that is taken from what is carried. The
// limiters are one from `side` (1: above, -1: below), or one from each.
static void write_network(const crdi_pairs* p, const double* a, const double* E, double limit,
                          int side, crd_network* n)
{
    const bool both = n->n2 >= 4;
    const int m = n->m, limiters = both ? 2 : 1, carriers = n->n2 - limiters >= 2 ? 2 : 1;
    const double leak = n->alpha / (1 - n->alpha);
    double* W1 = (double*)n->W1; // of crdi_network_like: one block of ours
    double *W2 = (double*)n->W2, *b2 = (double*)n->b2, *W3 = (double*)n->W3;
    memset(W1, 0, (size_t)crdi_network_size(n) * sizeof *W1);
    n->b3 = 0;
    double size = 0;
    for (int i = 0; i < m; i++) {
        for (int h = 0; h < n->n1; h++) {
            W1[h * m + i] = h == 1 ? E[i] : a[i] + limiters * leak * E[i];
        }
        size += fabs(W1[i]);
    }
    for (int j = 0; j < carriers; j++) {
        W2[j * n->n1] = j == 0 ? 1 : -1;
        W3[j] = carriers == 1 ? 1 : (j == 0 ? 1 : -1) / (1 + n->alpha);
    }
    if (carriers == 1) {
        b2[0] = far_away * size * p->largest;
        n->b3 = -b2[0];
    }
    for (int i = 0; i < limiters; i++) {
        const int j = carriers + i, direction = i == 0 ? side : -side;
        W2[j * n->n1 + 1] = direction;
        b2[j] = -limit;
        W3[j] = -direction / (1 - n->alpha);
        n->b3 -= leak * direction * limit;
    }
}

crd_status crdi_train_bounded(crd_context* ctx, const crd_training* t, const crdi_pairs* p,
                              bool part, crd_network* n, bool* done)
{
    *done = false;
    if (n->m < 2 || n->n1 < 2 || n->n2 < 2 || n->more > 0 || n->alpha == 1 ||
        p->of_kind[CRDI_PAIR_JUMP] == 0) {
        return CRD_OK;
    }
    const bool both = n->n2 >= 4;
    double to[CRD_TAPS_MAX], a[CRD_TAPS_MAX], E[CRD_TAPS_MAX];
    crdi_mean_map(p, n, to);
    const crd_status st = crdi_ridge(ctx, p, to, t->ridge, !both && !part, a);
    if (st < 0) { return st; }
    weights_of_E(p->m, a, part && !both, E);
    const reach r = reach_of(p, E);
    const double limit = fmax(margin * r.smooth, part_of_jump * r.jump);
    write_network(p, a, E, limit, r.up >= r.down ? 1 : -1, n);
    *done = true;
    return CRD_OK;
}
