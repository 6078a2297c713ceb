#include "reproduce/oscillator.h"

#include <math.h>
#include <string.h>

#include "shared/num.h"

enum { X1, V1, F };                    // signals
enum { BISECTIONS = 60, BOUNCES = 8 }; // with more of them in a macro step the mass comes to rest

crdi_oscillator crdi_oscillator_defaults(bool stop)
{
    return (crdi_oscillator){.m1 = 100,
                             .m2 = 1,
                             .c1 = 10,
                             .c2 = 10,
                             .cc = 10,
                             .d1 = 0.01,
                             .d2 = 0.01,
                             .dc = 0.01,
                             .x1 = 1,
                             .x2 = 1,
                             .step = 1e-3,
                             .stop = stop,
                             .stop_at = -0.1,
                             .e = 0.7};
}

// One mass: m x'' + d x' + c x = f + g t, weakly damped.
typedef struct mass {
    double m, d, c, f, g;
} mass;

static void propagate(const mass* s, double t, double* x, double* v)
{
    const double decay = s->d / (2 * s->m), omega = sqrt(s->c / s->m - decay * decay);
    const double slope = s->g / s->c, level = s->f / s->c - s->d * slope / s->c;
    // around the particular solution level + slope t the motion is free
    const double x0 = *x - level, v0 = *v - slope;
    const double a = (v0 + decay * x0) / omega;
    const double e = exp(-decay * t), cosine = cos(omega * t), sine = sin(omega * t);
    const double free = e * (x0 * cosine + a * sine);
    *x = level + slope * t + free;
    *v = slope - decay * free + e * omega * (a * cosine - x0 * sine);
}

static double energy_of(const crdi_oscillator* o, const crdi_row* r)
{
    const double d = r->x2 - r->x1;
    return 0.5 * (o->m1 * r->v1 * r->v1 + o->m2 * r->v2 * r->v2 + o->c1 * r->x1 * r->x1 +
                  o->c2 * r->x2 * r->x2 + o->cc * d * d);
}

// ---- cut ---------------------------------------------------------------------------------------

static const double* samples_of(const crdi_cut* s, int signal, int age)
{
    return &s->history[signal][s->head + age];
}

static void put_sample(crdi_cut* s, int signal, double value)
{
    s->history[signal][s->head] = value;
    s->history[signal][s->head + CRDI_CUT_HISTORY] = value;
}

// What the signal is told to be from this macro step to the next: input[0] + theta input[1].
static void continue_signal(crdi_cut* s, int signal, const crdi_continuation* by)
{
    const double* y = samples_of(s, signal, s->k);
    double* input = s->input[signal];
    input[1] = 0;
    if (by->element) {
        const double t = s->row.t, h = s->o.step;
        const int64_t from = s->row.n - s->k;
        if (from >= 0) { crd_coupling_push(by->element, y[0], (double)from * h, from); }
        input[0] = crd_coupling_eval(by->element, t);
        input[1] = 2 * (crd_coupling_eval(by->element, t + 0.5 * h) - input[0]);
    } else if (by->network) {
        input[0] = crd_network_eval(by->network, y);
    } else {
        input[0] = crdi_num_dot(by->linear->m, by->linear->a, y);
        if (by->linear->A) { input[1] = crdi_num_dot(by->linear->m, by->linear->A, y); }
    }
}

// F as half 2 sees it, with its inputs at `theta`.
static double force(const crdi_cut* s, double theta)
{
    const double x1 = s->input[X1][0] + theta * s->input[X1][1];
    const double v1 = s->input[V1][0] + theta * s->input[V1][1];
    return s->o.cc * (s->row.x2 - x1) + s->o.dc * (s->row.v2 - v1);
}

// The exchange at the macro step that was reached.
static void exchange(crdi_cut* s)
{
    crdi_row* r = &s->row;
    const double before = force(s, 1);
    s->head = s->head > 0 ? s->head - 1 : CRDI_CUT_HISTORY - 1;
    put_sample(s, X1, r->x1);
    put_sample(s, V1, r->v1);
    continue_signal(s, X1, &s->x1);
    continue_signal(s, V1, &s->v1);
    r->F = s->sampling == CRDI_SAMPLE_AFTER || r->n == 0 ? force(s, 0) : before;
    put_sample(s, F, r->F);
    continue_signal(s, F, &s->F);
    r->x1_hat = s->input[X1][0];
    r->v1_hat = s->input[V1][0];
    r->F_hat = s->input[F][0];
    r->energy = energy_of(&s->o, r);
}

void crdi_cut_init(crdi_cut* s, const crdi_oscillator* o, int k, crdi_sampling sampling,
                   crdi_continuation x1, crdi_continuation v1, crdi_continuation F_)
{
    memset(s, 0, sizeof *s);
    s->o = *o;
    s->k = k;
    s->sampling = sampling;
    s->x1 = x1;
    s->v1 = v1;
    s->F = F_;
    s->row = (crdi_row){.x1 = o->x1, .v1 = o->v1, .x2 = o->x2, .v2 = o->v2};
    const double first[CRDI_CUT_SIGNALS] = {o->x1, o->v1,
                                            o->cc * (o->x2 - o->x1) + o->dc * (o->v2 - o->v1)};
    for (int i = 0; i < CRDI_CUT_SIGNALS; i++) {
        for (int j = 0; j < 2 * CRDI_CUT_HISTORY; j++) {
            s->history[i][j] = first[i];
        }
    }
    exchange(s);
}

// Mass 1 over the time h, with the stop.
static void move_first(const crdi_oscillator* o, crdi_row* r, mass s, double t, double h)
{
    double x = r->x1, v = r->v1;
    propagate(&s, h, &x, &v);
    for (int bounces = 0; o->stop && x < o->stop_at; bounces++) {
        if (bounces == BOUNCES) {
            x = o->stop_at;
            v = 0;
            break;
        }
        double low = 0, high = h, hit_x = 0, hit_v = 0;
        for (int i = 0; i < BISECTIONS; i++) {
            const double middle = 0.5 * (low + high);
            hit_x = r->x1;
            hit_v = r->v1;
            propagate(&s, middle, &hit_x, &hit_v);
            if (hit_x < o->stop_at) {
                high = middle;
            } else {
                low = middle;
            }
        }
        r->hit = true;
        r->impact = (crdi_impact){t + high, hit_v, -o->e * hit_v};
        x = o->stop_at;
        v = -o->e * hit_v;
        t += high;
        h -= high;
        s.f += s.g * high;
        r->x1 = x;
        r->v1 = v;
        if (!(h > 0)) { break; }
        propagate(&s, h, &x, &v);
    }
    r->x1 = x;
    r->v1 = v;
}

void crdi_cut_step(crdi_cut* s)
{
    const crdi_oscillator* o = &s->o;
    crdi_row* r = &s->row;
    const double h = o->step;
    const mass first = {o->m1, o->d1, o->c1, s->input[F][0], s->input[F][1] / h};
    const mass second = {o->m2, o->d2 + o->dc, o->c2 + o->cc,
                         o->cc * s->input[X1][0] + o->dc * s->input[V1][0],
                         (o->cc * s->input[X1][1] + o->dc * s->input[V1][1]) / h};
    r->hit = false;
    move_first(o, r, first, r->t, h);
    propagate(&second, h, &r->x2, &r->v2);
    r->n++;
    r->t = (double)r->n * h;
    exchange(s);
}

// ---- whole -------------------------------------------------------------------------------------

static void see_whole(crdi_whole* s)
{
    const crdi_oscillator* o = &s->o;
    crdi_row* r = &s->row;
    r->F = o->cc * (r->x2 - r->x1) + o->dc * (r->v2 - r->v1);
    r->x1_hat = r->x1;
    r->v1_hat = r->v1;
    r->F_hat = r->F;
    r->energy = energy_of(o, r);
}

static crd_status exponential(const crdi_whole* s, double t, double* out)
{
    double work[32];
    for (int i = 0; i < 16; i++) {
        out[i] = t * s->matrix[i];
    }
    return crdi_num_expm(4, out, work);
}

crd_status crdi_whole_init(crdi_whole* s, const crdi_oscillator* o)
{
    memset(s, 0, sizeof *s);
    s->o = *o;
    s->row = (crdi_row){.x1 = o->x1, .v1 = o->v1, .x2 = o->x2, .v2 = o->v2};
    const double matrix[16] = {0,
                               1,
                               0,
                               0,
                               -(o->c1 + o->cc) / o->m1,
                               -(o->d1 + o->dc) / o->m1,
                               o->cc / o->m1,
                               o->dc / o->m1,
                               0,
                               0,
                               0,
                               1,
                               o->cc / o->m2,
                               o->dc / o->m2,
                               -(o->c2 + o->cc) / o->m2,
                               -(o->d2 + o->dc) / o->m2};
    memcpy(s->matrix, matrix, sizeof matrix);
    see_whole(s);
    return exponential(s, o->step, s->step);
}

static void multiply_matrices(const double* a, const double* x, double* out)
{
    for (int i = 0; i < 4; i++) {
        out[i] = crdi_num_dot(4, &a[4 * i], x);
    }
}

void crdi_whole_step(crdi_whole* s)
{
    const crdi_oscillator* o = &s->o;
    crdi_row* r = &s->row;
    double x[4] = {r->x1, r->v1, r->x2, r->v2}, next[4], part[16];
    double t = r->t, h = o->step;
    multiply_matrices(s->step, x, next);
    r->hit = false;
    for (int bounces = 0; o->stop && next[0] < o->stop_at; bounces++) {
        if (bounces == BOUNCES) {
            next[0] = o->stop_at;
            next[1] = 0;
            break;
        }
        double low = 0, high = h;
        for (int i = 0; i < BISECTIONS; i++) {
            const double middle = 0.5 * (low + high);
            if (exponential(s, middle, part) < 0) { break; } // never: that of the step was fine
            multiply_matrices(part, x, next);
            if (next[0] < o->stop_at) {
                high = middle;
            } else {
                low = middle;
            }
        }
        r->hit = true;
        r->impact = (crdi_impact){t + high, next[1], -o->e * next[1]};
        memcpy(x, next, sizeof x);
        x[0] = o->stop_at;
        x[1] = r->impact.after;
        t += high;
        h -= high;
        memcpy(next, x, sizeof next);
        if (!(h > 0) || exponential(s, h, part) < 0) { break; }
        multiply_matrices(part, x, next);
    }
    r->x1 = next[0];
    r->v1 = next[1];
    r->x2 = next[2];
    r->v2 = next[3];
    r->n++;
    r->t = (double)r->n * o->step;
    see_whole(s);
}
