// Loops for the tests of what varies: random plants with elements, and a run of them with the
// elements of the library, samples being late, overtaken and lost as the test says.
#pragma once
#include "check.h"

#include "cardan/analysis.h"

enum { MOST_STATES = 4, MOST_LINKS = 2, MOST_SAMPLES = 64 };

static uint64_t random_state = 1;
static inline double uniform(double low, double high)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return low + (high - low) * (double)(random_state >> 11) * 0x1p-53;
}

typedef struct loop_case {
    int n, links; // states; one output and one input for each link
    double A[MOST_STATES * MOST_STATES], B[MOST_STATES * MOST_LINKS], C[MOST_LINKS * MOST_STATES],
        D[MOST_LINKS * MOST_LINKS];
    double gain[MOST_LINKS];
    const char* element[MOST_LINKS]; // JSON
    int k[MOST_LINKS];
    crd_spread spread[MOST_LINKS];
    double dT;
} loop_case;

static inline crd_status make_model(crd_context* ctx, const loop_case* c, crd_loop_model* m)
{
    crd_loop_model_init(m, ctx, "test");
    m->varied = true;
    m->loop.dT = c->dT;
    static crd_plant_link links[MOST_LINKS];
    for (int l = 0; l < c->links; l++) {
        crd_element* e = NULL;
        links[l] = (crd_plant_link){.from = l, .to = (l + 1) % c->links, .gain = c->gain[l]};
        check_ok(crd_element_parse(ctx, c->element[l], strlen(c->element[l]), "", 1, &e));
        check_ok(crd_loop_model_add(m, e, c->dT, c->k[l], &links[l].element));
        crd_element_destroy(e);
        const crd_status st = crd_loop_model_vary(m, &c->spread[l], NULL, c->dT, c->k[l] * c->dT);
        if (st < 0) { return st; }
    }
    m->whole = (crd_plant){.states = c->n,
                           .inputs = c->links,
                           .outputs = c->links,
                           .A = c->A,
                           .B = c->B,
                           .C = c->C,
                           .D = c->D,
                           .link_count = c->links,
                           .links = links};
    return crd_loop_model_finish(m);
}

// ---- a run -------------------------------------------------------------------------------------

typedef struct loop_run {
    const loop_case* c;
    crd_coupling* element[MOST_LINKS];
    double x[MOST_STATES], y[MOST_LINKS];
    double sent[MOST_LINKS][MOST_SAMPLES]; // ring by number
    int64_t n;
} loop_run;

static inline void run_start(crd_context* ctx, loop_run* r, const loop_case* c, const double* x)
{
    *r = (loop_run){.c = c};
    memcpy(r->x, x, sizeof r->x);
    for (int l = 0; l < c->links; l++) {
        crd_element* e = NULL;
        crd_coupling_options o;
        check_ok(crd_element_parse(ctx, c->element[l], strlen(c->element[l]), "", 1, &e));
        check_ok(crd_element_options(e, c->dT, &o));
        check_ok(crd_coupling_create(ctx, &o, &r->element[l]));
        crd_element_destroy(e);
    }
}

static inline void run_end(loop_run* r)
{
    for (int l = 0; l < r->c->links; l++) {
        crd_coupling_destroy(r->element[l]);
    }
}

static inline void derivative(const loop_case* c, const double* x, const double* u, double* dx)
{
    for (int i = 0; i < c->n; i++) {
        dx[i] = 0;
        for (int k = 0; k < c->n; k++) {
            dx[i] += c->A[i * c->n + k] * x[k];
        }
        for (int k = 0; k < c->links; k++) {
            dx[i] += c->B[i * c->links + k] * u[k];
        }
    }
}

// x over a step with inputs u0 + theta u1: Runge and Kutta's method, 20 small steps
static inline void advance_plant(const loop_case* c, double* x, const double* u0, const double* u1)
{
    enum { PARTS = 20 };
    const double h = c->dT / PARTS;
    double k[4][MOST_STATES], z[MOST_STATES], u[MOST_LINKS];
    for (int p = 0; p < PARTS; p++) {
        for (int s = 0; s < 4; s++) {
            const double at = s == 0 ? 0 : s == 3 ? 1 : 0.5;
            for (int i = 0; i < c->links; i++) {
                u[i] = u0[i] + (p + at) / PARTS * u1[i];
            }
            for (int i = 0; i < c->n; i++) {
                z[i] = x[i] + (s ? h * at * k[s - 1][i] : 0);
            }
            derivative(c, z, u, k[s]);
        }
        for (int i = 0; i < c->n; i++) {
            x[i] += h / 6 * (k[0][i] + 2 * k[1][i] + 2 * k[2][i] + k[3][i]);
        }
    }
}

// Samples with these ages arrive, bit j of `arrivals` (links) for age j; then the plant steps.
// Outputs are sampled before the inputs change.
static inline void run_step(loop_run* r, const uint64_t* arrivals)
{
    const loop_case* c = r->c;
    double u0[MOST_LINKS] = {0}, u1[MOST_LINKS] = {0};
    const double t = (double)r->n * c->dT;
    for (int l = 0; l < c->links; l++) {
        r->sent[l][r->n % MOST_SAMPLES] = r->y[l];
        for (int age = 63; age >= 0; age--) {
            const int64_t number = r->n - age;
            if (number < 0 || !(arrivals[l] >> age & 1)) { continue; }
            crd_coupling_push(r->element[l], r->sent[l][number % MOST_SAMPLES],
                              (double)number * c->dT, number);
        }
        const int to = (l + 1) % c->links;
        u0[to] += c->gain[l] * crd_coupling_eval(r->element[l], t);
        u1[to] += c->gain[l] * c->dT * crd_coupling_slope(r->element[l], t);
    }
    advance_plant(c, r->x, u0, u1);
    for (int o = 0; o < c->links; o++) {
        r->y[o] = 0;
        for (int i = 0; i < c->n; i++) {
            r->y[o] += c->C[o * c->n + i] * r->x[i];
        }
        for (int i = 0; i < c->links; i++) {
            r->y[o] += c->D[o * c->links + i] * (u0[i] + u1[i]);
        }
    }
    r->n++;
}

// Which samples arrive when: a delay in steps for each, at most `burst` lost in a row.
typedef struct fate {
    uint64_t due[MOST_SAMPLES]; // by number of the step: bit j for age j
    int lost;                   // in a row so far
} fate;

static inline uint64_t next_arrivals(fate* f, int64_t n, const crd_variation* v, bool bounded)
{
    const bool may = !bounded || f->lost < v->burst;
    const bool lost = may && uniform(0, 1) < (bounded ? fmin(3 * v->loss, 0.6) : v->loss);
    double at = uniform(0, 1);
    int k = v->k_min;
    while (k < v->k_max) {
        at -= v->share ? v->share[k - v->k_min] : 1.0 / (v->k_max - v->k_min + 1);
        if (at < 0) { break; }
        k++;
    }
    f->lost = lost ? f->lost + 1 : 0;
    if (!lost) { f->due[(n + k) % MOST_SAMPLES] |= UINT64_C(1) << k; }
    const uint64_t now = f->due[n % MOST_SAMPLES];
    f->due[n % MOST_SAMPLES] = 0;
    return now;
}
