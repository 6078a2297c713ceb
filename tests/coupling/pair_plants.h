// Random passive plants on both sides of a bond, a bad network between them, and the same plants
// joined without a coupling. The plants are chains of masses; the bond cuts one of the springs:
//
//     A:  m0 -k- m1 .. ma |  port  |  spring k, d of the bond -- m(a+1) -k- .. mn   :B
//     A is given the effort e: M dv/dt = .. - e at ma; B is given the flow f at its spring's end.
//
// They are integrated by the implicit midpoint rule with a discrete gradient for springs with
// backlash (Gonzalez 1996), and Coulomb friction as a separate step that only takes energy. So a
// step conserves energy to rounding, E1 - E0 = work at the port + work of the outside - losses
// >= 0, whatever the step size, and what the tests find created was created by the coupling.
#pragma once
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cardan/pair.h"

enum { MASSES = 6, LINKS_MAX = MASSES + 1, AIR = 256 };

// ---- random numbers ----------------------------------------------------------------------------

typedef struct rng {
    uint64_t x;
} rng;

static inline double uniform(rng* r) // splitmix64
{
    uint64_t z = (r->x += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static inline double between(rng* r, double low, double high)
{
    return low + (high - low) * uniform(r);
}

static inline double log_between(rng* r, double low, double high)
{
    return low * pow(high / low, uniform(r));
}

static inline double normal(rng* r)
{
    double sum = -6;
    for (int i = 0; i < 12; i++) {
        sum += uniform(r);
    }
    return sum;
}

// ---- a chain -----------------------------------------------------------------------------------

typedef struct spring {
    int left, right; // masses, -1: the ground, or the port of side B (then `port`)
    bool port;
    double k, d, gap; // force 0 within +-gap
} spring;

typedef struct chain {
    int n, springs;
    double h; // step
    double m[MASSES], coulomb[MASSES];
    spring s[2 * LINKS_MAX];
    int port; // mass that the effort acts on, -1: the port is the end of a spring
    double x[MASSES], v[MASSES], x_port;
    double inverse[MASSES][MASSES];
    double lost, work; // J: losses, work of the outside force
    bool gaps, rubs;
} chain;

static inline double stretch(const spring* s, const double* x, double x_port)
{
    return (s->port ? x_port : s->left < 0 ? 0 : x[s->left]) - (s->right < 0 ? 0 : x[s->right]);
}

static inline double spring_energy(const spring* s, double z)
{
    const double over = fabs(z) - s->gap;
    return over > 0 ? 0.5 * s->k * over * over : 0;
}

static inline double spring_force(const spring* s, double z)
{
    const double over = fabs(z) - s->gap;
    return over > 0 ? copysign(s->k * over, z) : 0;
}

// Mean force over the step that makes force * (z1 - z0) the change of energy, exactly.
static inline double mean_force(const spring* s, double z0, double z1)
{
    if (s->gap == 0) { return 0.5 * s->k * (z0 + z1); }
    if (fabs(z1 - z0) < 1e-9 * (s->gap + fabs(z0))) { return spring_force(s, 0.5 * (z0 + z1)); }
    return (spring_energy(s, z1) - spring_energy(s, z0)) / (z1 - z0);
}

static inline double chain_energy(const chain* c)
{
    double E = 0;
    for (int i = 0; i < c->n; i++) {
        E += 0.5 * c->m[i] * c->v[i] * c->v[i];
    }
    for (int i = 0; i < c->springs; i++) {
        E += spring_energy(&c->s[i], stretch(&c->s[i], c->x, c->x_port));
    }
    return E;
}

// Midpoint: (M + h/2 D + h^2/4 K) vm = M v0 + h/2 (forces at x0); springs with a gap on the right.
static inline void chain_prepare(chain* c, double h)
{
    double a[MASSES][2 * MASSES] = {{0}};
    c->h = h;
    c->gaps = c->rubs = false;
    for (int i = 0; i < c->n; i++) {
        a[i][i] = c->m[i];
        a[i][MASSES + i] = 1;
        c->rubs |= c->coulomb[i] > 0;
    }
    for (int i = 0; i < c->springs; i++) {
        const spring* s = &c->s[i];
        // A gap's spring is implicit as if closed; the iteration corrects it.
        const double w = 0.5 * h * s->d + 0.25 * h * h * s->k;
        c->gaps |= s->gap > 0;
        if (s->left >= 0) { a[s->left][s->left] += w; }
        if (s->right >= 0) { a[s->right][s->right] += w; }
        if (s->left >= 0 && s->right >= 0) {
            a[s->left][s->right] -= w;
            a[s->right][s->left] -= w;
        }
    }
    for (int i = 0; i < c->n; i++) { // positive definite: no pivoting
        const double pivot = 1 / a[i][i];
        for (int j = 0; j < 2 * MASSES; j++) {
            a[i][j] *= pivot;
        }
        for (int k = 0; k < c->n; k++) {
            const double f = a[k][i];
            for (int j = 0; k != i && j < 2 * MASSES; j++) {
                a[k][j] -= f * a[i][j];
            }
        }
    }
    for (int i = 0; i < c->n; i++) {
        memcpy(c->inverse[i], &a[i][MASSES], sizeof c->inverse[i]);
    }
}

static inline void chain_rub(chain* c)
{
    for (int i = 0; i < c->n; i++) {
        const double dv = fmin(fabs(c->v[i]), c->coulomb[i] * c->h / c->m[i]);
        const double v = c->v[i] - copysign(dv, c->v[i]);
        c->lost += 0.5 * c->m[i] * (c->v[i] * c->v[i] - v * v);
        c->v[i] = v;
    }
}

// One step. `effort` is taken from the port mass, `flow` moves the end of the port's springs,
// `outside` is a force on mass 0. Out: the means of the flow of the port mass and of the effort.
static inline void chain_advance(chain* c, double effort, double flow, double outside,
                                 double* mean_flow, double* mean_effort)
{
    const double h = c->h;
    double r[MASSES], vm[MASSES];
    if (c->rubs) { chain_rub(c); }
    memcpy(vm, c->v, sizeof vm);
    for (int pass = 0; pass < (c->gaps ? 40 : 1); pass++) {
        for (int i = 0; i < c->n; i++) {
            r[i] = c->m[i] * c->v[i];
        }
        r[0] += 0.5 * h * outside;
        if (c->port >= 0) { r[c->port] -= 0.5 * h * effort; }
        double moved = 0;
        for (int i = 0; i < c->springs; i++) {
            const spring* s = &c->s[i];
            const double z0 = stretch(s, c->x, c->x_port);
            const double v = stretch(s, vm, flow); // of the last pass
            const double w = s->d + 0.5 * h * s->k;
            // Force without the part of the unknown velocities, which the matrix has.
            double f = s->k * z0 + (s->port ? w * flow : 0);
            if (s->gap > 0) {
                f = mean_force(s, z0, z0 + h * v) + s->d * v - w * (s->port ? v - flow : v);
            }
            if (s->left >= 0 && !s->port) { r[s->left] -= 0.5 * h * f; }
            if (s->right >= 0) { r[s->right] += 0.5 * h * f; }
        }
        for (int i = 0; i < c->n; i++) {
            double sum = 0;
            for (int j = 0; j < c->n; j++) {
                sum += c->inverse[i][j] * r[j];
            }
            moved = fmax(moved, fabs(sum - vm[i]) / (1e-300 + fabs(sum)));
            vm[i] = sum;
        }
        if (moved < 1e-13) { break; }
    }
    *mean_effort = 0;
    for (int i = 0; i < c->springs; i++) {
        const spring* s = &c->s[i];
        const double v = stretch(s, vm, flow);
        if (s->port) {
            const double z0 = stretch(s, c->x, c->x_port);
            *mean_effort += mean_force(s, z0, z0 + h * v) + s->d * v;
        }
        c->lost += s->d * v * v * h;
    }
    c->work += outside * vm[0] * h;
    for (int i = 0; i < c->n; i++) {
        c->x[i] += h * vm[i];
        c->v[i] += 2 * (vm[i] - c->v[i]);
    }
    c->x_port += h * flow;
    *mean_flow = c->port >= 0 ? vm[c->port] : 0;
}

// The same with one port: u is the effort or the flow; returns the mean of the own value.
static inline double chain_step(chain* c, double u, double outside)
{
    double f, e;
    const bool flow = c->port >= 0;
    chain_advance(c, flow ? u : 0, flow ? 0 : u, outside, &f, &e);
    return flow ? f : e;
}

static inline double chain_effort(const chain* c, double flow)
{
    double e = 0;
    for (int i = 0; i < c->springs; i++) {
        const spring* s = &c->s[i];
        if (s->port) {
            e += spring_force(s, stretch(s, c->x, c->x_port)) + s->d * stretch(s, c->v, flow);
        }
    }
    return e;
}

// The own value at the end of a step. A damper at the port answers to the flow that was given.
static inline double chain_own(const chain* c, double u)
{
    return c->port >= 0 ? c->v[c->port] : chain_effort(c, u);
}

// ---- random chains -----------------------------------------------------------------------------

typedef struct plants {
    chain a, b, whole;
    double ja, jb, k; // inertias of both sides, stiffness of the bond's spring
    double omega;     // largest natural frequency
    bool lossless;
} plants;

// Largest natural frequency of the whole: power iteration on M^-1 K.
static inline double largest_omega(const chain* c)
{
    double x[MASSES], y[MASSES], l = 0;
    for (int i = 0; i < c->n; i++) {
        x[i] = (i & 1) ? -1 : 1 + 0.1 * i;
    }
    for (int pass = 0; pass < 100; pass++) {
        memset(y, 0, sizeof y);
        for (int i = 0; i < c->springs; i++) {
            const spring* s = &c->s[i];
            const double f = s->k * stretch(s, x, 0);
            if (s->left >= 0) { y[s->left] += f / c->m[s->left]; }
            if (s->right >= 0) { y[s->right] -= f / c->m[s->right]; }
        }
        l = 0;
        for (int i = 0; i < c->n; i++) {
            l = fmax(l, fabs(y[i]));
        }
        for (int i = 0; i < c->n; i++) {
            x[i] = l > 0 ? y[i] / l : 0;
        }
    }
    return sqrt(l);
}

// Cuts the whole at spring `cut`: its left mass is the last of A, the spring is B's.
static inline void cut_plants(plants* p, int cut)
{
    const chain* w = &p->whole;
    const int last = w->s[cut].left;
    p->a = p->b = *w;
    p->a.n = last + 1;
    p->b.n = w->n - p->a.n;
    p->a.springs = p->b.springs = 0;
    p->a.port = last;
    p->b.port = -1;
    for (int i = 0; i < p->b.n; i++) {
        p->b.m[i] = w->m[p->a.n + i];
        p->b.v[i] = w->v[p->a.n + i];
        p->b.x[i] = w->x[p->a.n + i];
        p->b.coulomb[i] = w->coulomb[p->a.n + i];
    }
    for (int i = 0; i < w->springs; i++) {
        spring s = w->s[i];
        if (i == cut || s.left > last || s.right > last) {
            s.left = i == cut ? -1 : s.left < 0 ? -1 : s.left - p->a.n;
            s.right = s.right < 0 ? -1 : s.right - p->a.n;
            s.port = i == cut;
            p->b.s[p->b.springs++] = s;
        } else {
            p->a.s[p->a.springs++] = s;
        }
    }
    p->b.x_port = w->x[last];
}

static inline plants random_plants(rng* r, double h)
{
    plants p = {0};
    chain* w = &p.whole;
    const int na = 1 + (int)(3 * uniform(r) * uniform(r)),
              nb = 1 + (int)(3 * uniform(r) * uniform(r));
    p.omega = log_between(r, 3, 400);
    p.lossless = uniform(r) < 0.15;
    w->n = na + nb;
    w->port = -1;
    const double J = log_between(r, 0.01, 100);
    for (int i = 0; i < w->n; i++) {
        w->m[i] = J * log_between(r, 0.2, 5);
    }
    for (int i = 0; i + 1 < w->n; i++) {
        w->s[w->springs++] = (spring){.left = i, .right = i + 1, .k = log_between(r, 0.1, 10)};
    }
    for (int i = 0; i < w->n; i++) { // to the ground: some with springs
        if (uniform(r) < 0.2) {
            w->s[w->springs++] = (spring){.left = i, .right = -1, .k = log_between(r, 0.01, 1)};
        }
    }
    const double to = pow(p.omega / largest_omega(w), 2);
    for (int i = 0; i < w->springs; i++) {
        spring* s = &w->s[i];
        s->k *= to;
        if (!p.lossless) {
            s->d = 2 * log_between(r, 0.005, 0.5) * sqrt(s->k * w->m[s->left]) *
                   (s->right < 0 ? 0.3 : 1);
        }
    }
    if (!p.lossless) { // drag
        for (int i = 0; i < w->n; i++) {
            w->s[w->springs++] =
                (spring){.left = i, .right = -1, .d = w->m[i] * log_between(r, 0.05, 2)};
        }
    }
    double JA = 0, JB = 0;
    for (int i = 0; i < w->n; i++) {
        *(i < na ? &JA : &JB) += w->m[i];
    }
    if (!p.lossless && uniform(r) < 0.3) { w->coulomb[w->n - 1] = JA * log_between(r, 0.01, 1); }
    if (uniform(r) < 0.15) { w->s[na - 1].gap = log_between(r, 0.01, 0.3) / p.omega; }
    p.ja = JA;
    p.jb = JB;
    p.k = w->s[na - 1].k;
    for (int i = 0; i < w->n; i++) {
        w->v[i] = uniform(r) < 0.5 ? 0 : 1;
    }
    cut_plants(&p, na - 1);
    chain_prepare(&p.a, h);
    chain_prepare(&p.b, h);
    chain_prepare(w, h);
    return p;
}

static inline double rule_impedance(const plants* p, double tau)
{
    return 1 / (1 / sqrt(p->k * sqrt(p->ja * p->jb)) + tau / p->jb);
}

// ---- a bad network -----------------------------------------------------------------------------

typedef struct network {
    double delay, jitter; // s
    double loss, burst;   // part of packets, mean length of a loss
    double twice;         // part of packets that come twice
    bool bad;             // within a burst
    bool cut;             // nothing passes
    rng r;
    int n;
    struct {
        double at;
        crd_pair_packet packet;
    } air[AIR];
} network;

static inline void network_put(network* w, const crd_pair_packet* p, double at)
{
    if (w->n < AIR) {
        w->air[w->n].at = at;
        w->air[w->n++].packet = *p;
    }
}

static inline void network_send(network* w, const crd_pair_packet* p, double now)
{
    const double leave = 1 / w->burst, enter = w->loss < 1 ? w->loss / (1 - w->loss) * leave : 1;
    w->bad = uniform(&w->r) < (w->bad ? 1 - leave : enter);
    const double at = now + w->delay + w->jitter * uniform(&w->r);
    const bool twice = uniform(&w->r) < w->twice;
    const double again = at + 0.05 * uniform(&w->r);
    if ((w->loss > 0 && w->bad) || w->cut) { return; }
    network_put(w, p, at);
    if (twice) { network_put(w, p, again); }
}

static inline void network_deliver(network* w, crd_pair_port* to, double now, double clock)
{
    for (int i = 0; i < w->n;) {
        if (w->air[i].at > now + 1e-9) {
            i++;
            continue;
        }
        crd_pair_receive(to, &w->air[i].packet, clock);
        w->air[i] = w->air[--w->n];
    }
}

// ---- what drives them --------------------------------------------------------------------------

// Steps at random times through a lag, on mass 0; nothing after `until`.
typedef struct drive {
    double size, next, target, value, lag, until;
    rng r;
} drive;

static inline double drive_step(drive* d, double t, double h)
{
    if (t >= d->next) {
        d->target = t < d->until ? d->size * between(&d->r, -1, 1) : 0;
        d->next = t + log_between(&d->r, 0.3, 4);
    }
    d->value += (d->target - d->value) * h / (d->lag + h);
    return d->value;
}
