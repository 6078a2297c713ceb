// Random linear systems: drawn, and solved exactly.
#include "random_system.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES = 200 };

// ---- numbers -----------------------------------------------------------------------------------

uint64_t random_mix(uint64_t z)
{
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double uniform(uint64_t* state)
{
    *state = random_mix(*state);
    return (double)(*state >> 11) * 0x1p-53;
}

static double between(uint64_t* state, double low, double high) // equal chances of equal ratios
{
    return low * pow(high / low, uniform(state));
}

double random_normal(uint64_t* state)
{
    const double r = sqrt(-2 * log(1 - uniform(state)));
    return r * cos(6.283185307179586 * uniform(state));
}

// exp(A) of an n x n matrix, row by row, by a Taylor series of degree 18 and squarings.
void random_exponential(int n, double* A)
{
    static _Thread_local double sum[WHOLE * WHOLE], term[WHOLE * WHOLE], next[WHOLE * WHOLE];
    double norm = 0;
    for (int i = 0; i < n; i++) {
        double row = 0;
        for (int j = 0; j < n; j++) {
            row += fabs(A[i * n + j]);
        }
        norm = fmax(norm, row);
    }
    int squarings = 0;
    for (; norm > 0.5 && squarings < 200; squarings++) {
        norm *= 0.5;
    }
    for (int i = 0; i < n * n; i++) {
        A[i] = ldexp(A[i], -squarings);
        term[i] = sum[i] = i % (n + 1) == 0;
    }
    for (int k = 1; k <= 18 + squarings; k++) {
        double* a = k <= 18 ? term : sum;
        const double* b = k <= 18 ? A : sum;
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < n; j++) {
                double s = 0;
                for (int l = 0; l < n; l++) {
                    s += a[i * n + l] * b[l * n + j];
                }
                next[i * n + j] = k <= 18 ? s / k : s;
            }
        }
        memcpy(a, next, (size_t)(n * n) * sizeof *a);
        for (int i = 0; k <= 18 && i < n * n; i++) {
            sum[i] += term[i];
        }
    }
    memcpy(A, sum, (size_t)(n * n) * sizeof *A);
}

// ln of the spectral radius, by squaring: rho = lim |A^k|^(1/k), k = 2^24.
static double log_radius(int n, const double* A)
{
    static _Thread_local double M[WHOLE * WHOLE], S[WHOLE * WHOLE];
    double r = 0;
    memcpy(M, A, (size_t)(n * n) * sizeof *M);
    for (int k = 0; k <= 24; k++) {
        double f = 0;
        for (int i = 0; i < n * n; i++) {
            f += M[i] * M[i];
        }
        f = sqrt(f);
        if (!(f > 0)) { return -INFINITY; }
        r += ldexp(log(f), -k);
        for (int i = 0; i < n * n; i++) {
            M[i] /= f;
        }
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < n; j++) {
                double s = 0;
                for (int l = 0; l < n; l++) {
                    s += M[i * n + l] * M[l * n + j];
                }
                S[i * n + j] = s;
            }
        }
        memcpy(M, S, (size_t)(n * n) * sizeof *M);
    }
    return r;
}

// ---- the coupled system ------------------------------------------------------------------------

static int first_state(const random_linear* s, int k)
{
    int n = 0;
    for (int i = 0; i < k; i++) {
        n += s->units[i].nx;
    }
    return n;
}

static int first_output(const random_linear* s, int k)
{
    int n = 0;
    for (int i = 0; i < k; i++) {
        n += s->units[i].ny;
    }
    return n;
}

// y = Y x of the coupled system (outputs x states): y = C x + D u, u = G y, without loops, so that
// as many sweeps as there are units solve it.
static void coupled_outputs(const random_linear* s, double* Y)
{
    const int n = first_state(s, s->traits.units);
    memset(Y, 0, (size_t)(s->outputs * n) * sizeof *Y);
    for (int sweep = 0; sweep <= s->traits.units; sweep++) {
        for (int k = 0; k < s->traits.units; k++) {
            const random_unit* p = &s->units[k];
            for (int i = 0; i < p->ny; i++) {
                double* row = Y + (first_output(s, k) + i) * n;
                memset(row, 0, (size_t)n * sizeof *row);
                for (int j = 0; j < p->nx; j++) {
                    row[first_state(s, k) + j] = p->C[i][j];
                }
                for (int j = 0; j < p->nu; j++) {
                    const double* of = Y + (first_output(s, p->from_unit[j]) + p->from_port[j]) * n;
                    for (int l = 0; l < n; l++) {
                        row[l] += p->D[i][j] * of[l];
                    }
                }
            }
        }
    }
}

// x' = A x of the coupled system, without forcing; n x n.
static void coupled_matrix(const random_linear* s, const double* Y, double* A)
{
    const int n = first_state(s, s->traits.units);
    memset(A, 0, (size_t)(n * n) * sizeof *A);
    for (int k = 0; k < s->traits.units; k++) {
        const random_unit* p = &s->units[k];
        for (int i = 0; i < p->nx; i++) {
            double* row = A + (first_state(s, k) + i) * n;
            for (int j = 0; j < p->nx; j++) {
                row[first_state(s, k) + j] += p->A[i][j];
            }
            for (int j = 0; j < p->nu; j++) {
                const double* of = Y + (first_output(s, p->from_unit[j]) + p->from_port[j]) * n;
                for (int l = 0; l < n; l++) {
                    row[l] += p->B[i][j] * of[l];
                }
            }
        }
    }
}

// The largest |lambda| and the largest real part.
static void find_rates(const random_linear* s, double* fastest, double* rate)
{
    static _Thread_local double Y[RANDOM_OUTPUTS * WHOLE], A[WHOLE * WHOLE];
    const int n = first_state(s, s->traits.units);
    coupled_outputs(s, Y);
    coupled_matrix(s, Y, A);
    *fastest = exp(log_radius(n, A));
    for (int k = 0; k < s->traits.units; k++) {
        double own[RANDOM_STATES * RANDOM_STATES];
        const random_unit* p = &s->units[k];
        for (int i = 0; i < p->nx * p->nx; i++) {
            own[i] = p->A[i / p->nx][i % p->nx];
        }
        *fastest = fmax(*fastest, exp(log_radius(p->nx, own)));
    }
    const double t = 1 / *fastest;
    for (int i = 0; i < n * n; i++) {
        A[i] *= t;
    }
    random_exponential(n, A);
    *rate = log_radius(n, A) / t;
}

// ---- drawing -----------------------------------------------------------------------------------

random_traits random_traits_of(uint64_t seed)
{
    uint64_t s = random_mix(seed ^ 0x7261697473u);
    random_traits t = {.steps = 600, .growth = NAN, .save = true, .linear = true};
    t.units = 2 + (int)(3 * uniform(&s));
    t.gauss_seidel = uniform(&s) < 0.5;
    t.multirate = uniform(&s) < 0.15;
    t.feedthrough = uniform(&s) < 0.5;
    t.output_order = uniform(&s) < 0.5 ? 0 : uniform(&s) < 0.5 ? 1 : 2;
    t.input_order = uniform(&s) < 0.4 ? 0 : uniform(&s) < 0.5 ? 1 : 2;
    t.refresh = uniform(&s) < 0.5;
    t.noise = uniform(&s) < 0.25 ? 0.01 : 0;
    t.jump = uniform(&s) < 0.3;
    t.forced = uniform(&s) < 0.7;
    t.c = between(&s, 0.01, 3);
    t.gain = between(&s, 0.1, 3);
    t.stiffness = between(&s, 1, 300);
    return t;
}

// Blocks -r, or a pair -zeta r +- i r sqrt(1 - zeta^2), seen in other coordinates.
static void draw_matrix(random_unit* p, const random_traits* t, uint64_t* s)
{
    double T[RANDOM_STATES][RANDOM_STATES], L[RANDOM_STATES][RANDOM_STATES] = {{0}};
    for (int i = 0; i < p->nx;) {
        const double r = between(s, 1 / t->stiffness, 1);
        const bool pair = i + 1 < p->nx && uniform(s) < 0.6;
        const double zeta = pair ? between(s, 0.01, 1) : 1;
        L[i][i] = -zeta * r;
        if (pair) {
            L[i + 1][i + 1] = -zeta * r;
            L[i][i + 1] = r * sqrt(1 - zeta * zeta);
            L[i + 1][i] = -L[i][i + 1];
        }
        i += pair ? 2 : 1;
    }
    // A = T L T^-1 with T = I + N, N strictly upper triangular, whose inverse is a finite series.
    for (int i = 0; i < p->nx; i++) {
        for (int j = 0; j < p->nx; j++) {
            T[i][j] = i == j ? 1 : j > i ? 0.5 * random_normal(s) : 0;
        }
    }
    for (int i = 0; i < p->nx; i++) { // rows of T L, then A T = T L column by column
        double row[RANDOM_STATES] = {0};
        for (int j = 0; j < p->nx; j++) {
            for (int l = 0; l < p->nx; l++) {
                row[j] += T[i][l] * L[l][j];
            }
        }
        for (int j = 0; j < p->nx; j++) {
            p->A[i][j] = row[j];
            for (int l = 0; l < j; l++) {
                p->A[i][j] -= p->A[i][l] * T[l][j];
            }
        }
    }
}

static void draw_unit(random_linear* s, int k, uint64_t* r)
{
    const random_traits* t = &s->traits;
    random_unit* p = &s->units[k];
    *p = (random_unit){.system = s, .number = k, .name = {(char)('a' + k)}, .ticks = 1};
    p->nx = 1 + (int)(RANDOM_STATES * uniform(r));
    p->nu = 1 + (int)(RANDOM_PORTS * uniform(r));
    p->ny = 1 + (int)(RANDOM_PORTS * uniform(r));
    draw_matrix(p, t, r);
    const bool through = t->feedthrough && uniform(r) < 0.6;
    double speed = 0;
    for (int i = 0; i < p->nx; i++) {
        speed = fmax(speed, fabs(p->A[i][i]));
    }
    for (int i = 0; i < p->nx; i++) {
        for (int j = 0; j < p->nu; j++) {
            p->B[i][j] = t->gain * speed * random_normal(r);
        }
        for (int j = 0; j < FORCE; j++) {
            p->E[i][j] = t->forced ? speed * random_normal(r) : 0;
        }
        p->x0[i] = random_normal(r);
    }
    for (int i = 0; i < p->ny; i++) {
        for (int j = 0; j < p->nx; j++) {
            p->C[i][j] = random_normal(r);
        }
        for (int j = 0; j < p->nu; j++) {
            p->D[i][j] = through ? t->gain * random_normal(r) : 0;
        }
    }
    p->w0[1] = p->w0[2] = 1;
    p->omega = between(r, 0.02, 0.5); // of the fastest, by finish_draw
}

// A ring, and whatever else.
static void draw_wires(random_linear* s, uint64_t* r)
{
    const int n = s->traits.units;
    for (int k = 0; k < n; k++) {
        random_unit* p = &s->units[k];
        for (int j = 0; j < p->nu; j++) {
            p->from_unit[j] = j == 0 ? (k + n - 1) % n : (k + 1 + (int)((n - 1) * uniform(r))) % n;
            p->from_port[j] = (int)(s->units[p->from_unit[j]].ny * uniform(r));
        }
    }
}

bool random_unit_is_direct(const random_unit* p)
{
    double sum = 0;
    for (int i = 0; i < RANDOM_PORTS * RANDOM_PORTS; i++) {
        sum += fabs(p->D[i / RANDOM_PORTS][i % RANDOM_PORTS]);
    }
    return sum > 0;
}

// Whether unit k reaches itself through units with feedthrough only.
static bool is_loop(const random_linear* s, int k)
{
    bool reached[RANDOM_UNITS] = {false};
    for (int sweep = 0; sweep < RANDOM_UNITS; sweep++) {
        for (int i = 0; i < s->traits.units; i++) {
            const random_unit* p = &s->units[i];
            for (int j = 0; j < p->nu && random_unit_is_direct(p); j++) {
                const int from = p->from_unit[j];
                reached[i] = reached[i] || (from == k && random_unit_is_direct(&s->units[k])) ||
                             (reached[from] && random_unit_is_direct(&s->units[from]));
            }
        }
    }
    return reached[k] && random_unit_is_direct(&s->units[k]);
}

static void cut_loops(random_linear* s)
{
    for (int k = 0; k < s->traits.units; k++) {
        if (is_loop(s, k)) { memset(s->units[k].D, 0, sizeof s->units[k].D); }
    }
}

static void scale_gain(random_linear* s, double by)
{
    for (int k = 0; k < s->traits.units; k++) {
        for (int i = 0; i < RANDOM_STATES * RANDOM_PORTS; i++) {
            s->units[k].B[i / RANDOM_PORTS][i % RANDOM_PORTS] *= by;
        }
    }
}

// All eigenvalues move by the same, as A + I moves those of the coupled system.
static void shift(random_linear* s, double by)
{
    for (int k = 0; k < s->traits.units; k++) {
        for (int i = 0; i < s->units[k].nx; i++) {
            s->units[k].A[i][i] += by;
        }
    }
    find_rates(s, &s->fastest, &s->rate);
}

static bool draw_once(random_linear* s, uint64_t* r)
{
    const random_traits* t = &s->traits;
    for (int k = 0; k < t->units; k++) {
        draw_unit(s, k, r);
    }
    draw_wires(s, r);
    cut_loops(s);
    s->outputs = first_output(s, t->units);
    for (int i = 0; i < 8; i++) { // a weaker coupling if it has to be
        find_rates(s, &s->fastest, &s->rate);
        if (s->rate < -1e-3 * s->fastest) { break; }
        scale_gain(s, 0.7);
    }
    s->H = t->c / s->fastest;
    if (isnan(t->growth)) { return s->rate < -1e-3 * s->fastest; }
    shift(s, t->growth / (t->steps * s->H) - s->rate);
    s->H = t->c / s->fastest;
    shift(s, t->growth / (t->steps * s->H) - s->rate);
    return true;
}

static void finish_draw(random_linear* s, uint64_t* r)
{
    const random_traits* t = &s->traits;
    const int jumping = (int)(t->units * uniform(r));
    const bool state = uniform(r) < 0.5;
    s->jump_time = s->H * floor(t->steps * (0.2 + 0.6 * uniform(r))) + s->H * uniform(r);
    for (int k = 0; k < t->units; k++) {
        random_unit* p = &s->units[k];
        p->omega *= s->fastest;
        p->jumps = t->jump && k == jumping;
        const double constant = random_normal(r);
        p->jump_w = t->forced && !state ? constant : 0;
        for (int i = 0; i < p->nx; i++) {
            const double x = random_normal(r);
            p->jump_x[i] = t->forced && !state ? 0 : x;
        }
        if (t->multirate && uniform(r) < 0.5) { p->ticks = uniform(r) < 0.5 ? 2 : 4; }
    }
    if (t->multirate) { s->units[0].ticks = 1; }
}

// ---- the exact solution ------------------------------------------------------------------------

// The coupled system with its forcing, for a time h: (x of all, w of all).
static void whole_step(const random_linear* s, const double* A, int n, double h, double* P)
{
    const int units = s->traits.units, m = n + FORCE * units;
    memset(P, 0, (size_t)(m * m) * sizeof *P);
    for (int i = 0; i < n; i++) {
        memcpy(P + i * m, A + i * n, (size_t)n * sizeof *P);
    }
    for (int k = 0; k < units; k++) {
        const random_unit* p = &s->units[k];
        const int w = n + FORCE * k;
        for (int i = 0; i < p->nx; i++) {
            memcpy(P + (first_state(s, k) + i) * m + w, p->E[i], sizeof p->E[i]);
        }
        P[w * m + w + 1] = p->omega;
        P[(w + 1) * m + w] = -p->omega;
    }
    for (int i = 0; i < m * m; i++) {
        P[i] *= h;
    }
    random_exponential(m, P);
}

static void apply(int m, const double* P, double* z)
{
    double r[WHOLE];
    for (int i = 0; i < m; i++) {
        r[i] = 0;
        for (int j = 0; j < m; j++) {
            r[i] += P[i * m + j] * z[j];
        }
    }
    memcpy(z, r, (size_t)m * sizeof *z);
}

static void jump_whole(const random_linear* s, int n, double* z)
{
    for (int k = 0; k < s->traits.units; k++) {
        const random_unit* p = &s->units[k];
        if (!p->jumps) { continue; }
        for (int i = 0; i < p->nx; i++) {
            z[first_state(s, k) + i] += p->jump_x[i];
        }
        z[n + FORCE * k + 2] += p->jump_w;
    }
}

// The rate of z: the generator itself.
static void rate_of(const random_linear* s, const double* A, int n, const double* z, double* dz)
{
    for (int i = 0; i < n; i++) {
        dz[i] = 0;
        for (int j = 0; j < n; j++) {
            dz[i] += A[i * n + j] * z[j];
        }
    }
    for (int k = 0; k < s->traits.units; k++) {
        const random_unit* p = &s->units[k];
        const double* w = z + n + FORCE * k;
        for (int i = 0; i < p->nx; i++) {
            for (int j = 0; j < FORCE; j++) {
                dz[first_state(s, k) + i] += p->E[i][j] * w[j];
            }
        }
        double* dw = dz + n + FORCE * k;
        dw[0] = p->omega * w[1];
        dw[1] = -p->omega * w[0];
        dw[2] = 0;
    }
}

static bool solve(random_linear* s)
{
    static _Thread_local double Y[RANDOM_OUTPUTS * WHOLE], A[WHOLE * WHOLE], P[WHOLE * WHOLE];
    static _Thread_local double part[WHOLE * WHOLE];
    const int steps = s->traits.steps, n = first_state(s, s->traits.units);
    const int m = n + FORCE * s->traits.units;
    double z[3][WHOLE] = {{0}}, square[3][RANDOM_OUTPUTS] = {{0}};
    s->exact = calloc((size_t)(steps + 1) * (size_t)s->outputs, sizeof *s->exact);
    if (!s->exact) { return false; }
    coupled_outputs(s, Y);
    coupled_matrix(s, Y, A);
    whole_step(s, A, n, s->H, P);
    for (int k = 0; k < s->traits.units; k++) {
        memcpy(z[0] + first_state(s, k), s->units[k].x0, (size_t)s->units[k].nx * sizeof(double));
        memcpy(z[0] + n + FORCE * k, s->units[k].w0, sizeof s->units[k].w0);
    }
    for (int k = 0; k <= steps; k++) {
        const double before = s->jump_time - (k - 1) * s->H;
        if (k > 0 && s->traits.jump && before >= 0 && before < s->H) {
            whole_step(s, A, n, before, part);
            apply(m, part, z[0]);
            jump_whole(s, n, z[0]);
            whole_step(s, A, n, s->H - before, part);
            apply(m, part, z[0]);
        } else if (k > 0) {
            apply(m, P, z[0]);
        }
        rate_of(s, A, n, z[0], z[1]);
        rate_of(s, A, n, z[1], z[2]);
        for (int i = 0; i < s->outputs; i++) {
            for (int d = 0; d < 3; d++) {
                double y = 0;
                for (int j = 0; j < n; j++) {
                    y += Y[i * n + j] * z[d][j];
                }
                if (d == 0) { s->exact[k * s->outputs + i] = y; }
                square[d][i] += y * y / (steps + 1);
            }
        }
    }
    for (int k = 0, i = 0; k < s->traits.units; k++) {
        for (int j = 0; j < s->units[k].ny; j++, i++) {
            s->rms[i] = sqrt(square[0][i]);
            for (int d = 0; d < 3; d++) {
                s->units[k].rough[j][d] = s->traits.noise * sqrt(square[d][i]);
            }
        }
    }
    return true;
}

// ---- systems -----------------------------------------------------------------------------------

random_linear* random_linear_create(uint64_t seed, const random_traits* traits)
{
    random_linear* s = calloc(1, sizeof *s);
    if (!s) { return NULL; }
    s->seed = random_mix(seed);
    s->traits = *traits;
    uint64_t r = s->seed;
    int tries = 0;
    while (!draw_once(s, &r) && tries < TRIES) {
        tries++;
    }
    finish_draw(s, &r);
    if (tries == TRIES || !solve(s)) {
        random_linear_destroy(s);
        return NULL;
    }
    for (int k = 0, i = 0; k < traits->units; k++) {
        for (int j = 0; j < s->units[k].ny; j++, i++) {
            snprintf(s->names[i], sizeof s->names[i], "%c.y%d", s->units[k].name[0], j + 1);
        }
    }
    return s;
}

void random_linear_destroy(random_linear* s)
{
    if (s) { free(s->exact); }
    free(s);
}

const random_traits* random_linear_traits(const random_linear* s)
{
    return &s->traits;
}

double random_linear_step(const random_linear* s)
{
    return s->H;
}

int random_linear_outputs(const random_linear* s)
{
    return s->outputs;
}

double random_linear_exact(const random_linear* s, int n, int i)
{
    return s->exact[n * s->outputs + i];
}

double random_linear_rms(const random_linear* s, int i)
{
    return s->rms[i];
}

const char* random_linear_name(const random_linear* s, int i)
{
    return s->names[i];
}

double random_linear_growth(const random_linear* s)
{
    return s->rate * s->H;
}
