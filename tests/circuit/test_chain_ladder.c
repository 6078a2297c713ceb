// Ladders against companion models and plain elimination in long double.
#include "check.h"
#include "circuit/chain.h"

#include <float.h>
#include <stdio.h>

#define STEPS 6
#define DRIVEN 4

typedef long double real;

typedef struct ladder {
    int32_t n;
    double h;
    int method; // crdi_ladder_method
    double *link, *shunt, *r, *l, *s, *link_r, *link_l;
    bool* branch;
    int32_t driven[DRIVEN];
    int32_t driven_count;
    double *i[3], *vc[3], *v, *il[3]; // levels at the beginning, newest first; il: of links
    // the reference: x[0] newest
    real *ri[4], *rvc[4], *rv, *rvb; // rvb: voltage of the branch
    real *ril[3], *rvl, *gl, *u;     // of links: currents, voltages, across is i / gl - u
    double outer[2];
    real *g, *hist, *p, *b, *current, *potential;
} ladder;

static uint64_t seed = 20261115;

static double uniform(void) // 0 .. 1, SplitMix64
{
    uint64_t z = (seed += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static double* numbers(int32_t n)
{
    return calloc((size_t)n + 1, sizeof(double));
}
static real* reals(int32_t n)
{
    return calloc((size_t)n + 1, sizeof(real));
}

static ladder make(int32_t n)
{
    ladder q = {.n = n, .h = 2.5e-3};
    q.link = numbers(n);
    q.shunt = numbers(n);
    q.r = numbers(n);
    q.l = numbers(n);
    q.s = numbers(n);
    q.v = numbers(n);
    q.branch = calloc((size_t)n, sizeof(bool));
    q.link_r = numbers(n);
    q.link_l = numbers(n);
    for (int k = 0; k < 3; k++) {
        q.i[k] = numbers(n);
        q.vc[k] = numbers(n);
        q.il[k] = numbers(n);
        q.ril[k] = reals(n);
    }
    q.rvl = reals(n);
    q.gl = reals(n);
    q.u = reals(n);
    for (int k = 0; k < 4; k++) {
        q.ri[k] = reals(n);
        q.rvc[k] = reals(n);
    }
    q.rv = reals(n);
    q.rvb = reals(n);
    q.g = reals(n);
    q.hist = reals(n);
    q.p = reals(n);
    q.b = reals(n);
    q.current = reals(n);
    q.potential = reals(n);
    return q;
}

static void clear(ladder* q)
{
    for (int k = 0; k < 3; k++) {
        free(q->il[k]);
        free(q->ril[k]);
    }
    double* d[] = {q->link_r, q->link_l, q->link, q->shunt, q->r,     q->l,     q->s,
                   q->v,      q->i[0],   q->i[1], q->i[2],  q->vc[0], q->vc[1], q->vc[2]};
    for (size_t k = 0; k < sizeof d / sizeof *d; k++) {
        free(d[k]);
    }
    for (int k = 0; k < 4; k++) {
        free(q->ri[k]);
        free(q->rvc[k]);
    }
    real* r[] = {q->rvl,  q->gl, q->u, q->rv,      q->rvb,      q->g,
                 q->hist, q->p,  q->b, q->current, q->potential};
    for (size_t k = 0; k < sizeof r / sizeof *r; k++) {
        free(r[k]);
    }
    free(q->branch);
}

typedef enum sort { EQUAL, RANDOM, SPARSE, WEAK, LINE, LINKED, KINDS } sort;

static void fill_links(ladder* q, sort kind)
{
    for (int32_t k = 0; k <= q->n; k++) {
        const bool has = kind == LINE || (kind == LINKED && uniform() < 0.7);
        const bool random = kind == LINKED;
        q->link_r[k] = random && k % 4 > 0 ? uniform() : has ? 0.1 : 0;
        q->link_l[k] = has ? (random ? 0.01 + 0.1 * uniform() : 0.02) : 0;
        for (int j = 0; j < 3; j++) {
            q->il[j][k] = has ? uniform() - 0.5 : 0;
        }
    }
}

// EQUAL: the scalable RLC circuit of Rodriguez 2021; RANDOM: values around it, R in the branches;
// SPARSE: branches of all sorts, some missing; WEAK: links so strong that everything feels
// everything; LINE: a cable, equal R and L along, C across; LINKED: SPARSE with inductors in links
static void fill(ladder* q, sort kind)
{
    const bool mixed = kind == SPARSE || kind == LINKED, random = kind == RANDOM || mixed;
    const double strength = kind == WEAK ? 1e6 : 1;
    for (int32_t k = 0; k <= q->n; k++) {
        q->link[k] = strength * (random ? 0.2 + uniform() : 0.5);
    }
    q->link[q->n] = random ? uniform() : 0;
    for (int32_t k = 0; k < q->n; k++) {
        const int has = mixed ? (int)(8 * uniform()) : kind == LINE ? 4 : 7;
        q->shunt[k] = mixed && k % 3 == 0 ? uniform() : 0;
        q->branch[k] = !mixed || has > 0;
        q->r[k] = (has & 1) && random ? 3 * uniform() + 0.01 : 0;
        q->l[k] = has & 2 ? (random ? 0.05 + 0.1 * uniform() : 0.1) : 0;
        q->s[k] = has & 4 ? (random ? 1 + 30 * uniform() : 5) : 0;
        if (!(q->r[k] + q->l[k] + q->s[k] > 0)) { q->branch[k] = false; }
        q->v[k] = uniform() - 0.5;
        for (int j = 0; j < 3; j++) {
            q->i[j][k] = q->branch[k] ? uniform() - 0.5 : 0;
            q->vc[j][k] = q->s[k] > 0 && q->branch[k] ? uniform() - 0.5 : 0;
        }
        // what has no inductance follows from the voltage
        if (q->branch[k] && !(q->l[k] > 0)) {
            q->vc[0][k] = q->s[k] > 0 ? q->v[k] - q->r[k] * q->i[0][k] : 0;
            if (!(q->s[k] > 0)) { q->i[0][k] = q->v[k] / q->r[k]; }
        }
    }
    q->driven_count = 0;
    fill_links(q, kind);
    const int32_t places[DRIVEN] = {0, q->n / 3, q->n / 2 + 1, q->n - 1};
    for (int k = 0; k < DRIVEN; k++) {
        const bool inside = mixed || k % 3 == 0; // EQUAL and RANDOM: at the ends only
        const int32_t last = q->driven_count > 0 ? q->driven[q->driven_count - 1] : -1;
        if (inside && places[k] > last && places[k] < q->n) {
            q->driven[q->driven_count++] = places[k];
        }
    }
}

// The source of driven node `which` at the end of step `n`
static double source(int which, int n)
{
    return 10 * sin(0.3 * n + which + 0.5);
}

static void reference_begin(ladder* q)
{
    q->outer[0] = q->outer[1] = 0;
    for (int32_t k = 0; k <= q->n; k++) {
        for (int j = 0; j < 3; j++) {
            q->ril[j][k] = q->il[j][k];
        }
        q->rvl[k] = (k > 0 ? (real)q->v[k - 1] : 0) - (k < q->n ? q->v[k] : 0);
    }
    for (int32_t k = 0; k < q->n; k++) {
        for (int j = 0; j < 3; j++) {
            q->ri[j][k] = q->i[j][k];
            q->rvc[j][k] = q->vc[j][k];
        }
        q->current[k] = q->potential[k] = 0;
        q->rvb[k] = q->rv[k] = q->v[k];
    }
}

static void reference_links(ladder* q)
{
    static const real gamma[] = {0, 1, 1.5L, 11.0L / 6};
    static const real c[4][3] = {{0}, {1}, {2, -0.5L}, {3, -1.5L, 1.0L / 3}};
    for (int32_t k = 0; k <= q->n; k++) {
        const real l = q->link_l[k], r = q->link_r[k], h = q->h;
        q->gl[k] = q->link[k];
        q->u[k] = 0;
        if (!(l > 0)) { continue; }
        if (q->method == 0) {
            q->gl[k] = 1 / (r + 2 * l / h);
            q->u[k] = 2 * l / h * q->ril[0][k] + q->rvl[k] - r * q->ril[0][k];
        } else {
            q->gl[k] = 1 / (r + gamma[q->method] * l / h);
            for (int j = 0; j < q->method; j++) {
                q->u[k] += l / h * c[q->method][j] * q->ril[j][k];
            }
        }
    }
}

static void reference_move_links(ladder* q)
{
    for (int32_t k = 0; k <= q->n; k++) {
        q->rvl[k] = (k > 0 ? q->rv[k - 1] : q->outer[0]) - (k < q->n ? q->rv[k] : q->outer[1]);
        q->ril[2][k] = q->ril[1][k];
        q->ril[1][k] = q->ril[0][k];
        q->ril[0][k] = q->gl[k] * (q->rvl[k] + q->u[k]);
    }
}

static void reference_branches(ladder* q)
{
    static const real gamma[] = {0, 1, 1.5L, 11.0L / 6};
    static const real c[4][3] = {{0}, {1}, {2, -0.5L}, {3, -1.5L, 1.0L / 3}};
    for (int32_t k = 0; k < q->n; k++) {
        const real l = q->l[k], s = q->s[k], r = q->r[k], h = q->h;
        real z, past;
        if (q->method == 0) {
            z = r + 2 * l / h + h * s / 2;
            past = l > 0 ? -q->rvb[k] + r * q->ri[0][k] + 2 * q->rvc[0][k] +
                               (h * s / 2 - 2 * l / h) * q->ri[0][k]
                         : q->rvc[0][k] + h * s / 2 * q->ri[0][k];
        } else {
            real hi = 0, hc = 0;
            for (int j = 0; j < q->method; j++) {
                hi += c[q->method][j] * q->ri[j][k];
                hc += c[q->method][j] * q->rvc[j][k];
            }
            z = r + gamma[q->method] * l / h + h * s / gamma[q->method];
            past = hc / gamma[q->method] - l / h * hi;
        }
        q->g[k] = q->branch[k] ? 1 / z : 0;
        q->hist[k] = past + q->potential[k];
    }
}

static void reference_voltages(ladder* q)
{
    for (int32_t k = 0; k < q->n; k++) {
        const real l = k > 0 ? q->gl[k] / q->p[k - 1] : 0;
        q->p[k] = q->gl[k] + q->gl[k + 1] + q->shunt[k] + q->g[k] - (k > 0 ? l * q->gl[k] : 0);
        q->b[k] = q->g[k] * q->hist[k] + q->current[k] + q->gl[k] * q->u[k] -
                  q->gl[k + 1] * q->u[k + 1] + (k > 0 ? l * q->b[k - 1] : 0);
    }
    for (int32_t k = q->n - 1; k >= 0; k--) {
        q->rv[k] = (q->b[k] + (k + 1 < q->n ? q->gl[k + 1] * q->rv[k + 1] : 0)) / q->p[k];
    }
}

static void reference_step(ladder* q)
{
    static const real gamma[] = {0, 1, 1.5L, 11.0L / 6};
    static const real c[4][3] = {{0}, {1}, {2, -0.5L}, {3, -1.5L, 1.0L / 3}};
    reference_links(q);
    reference_branches(q);
    reference_voltages(q);
    reference_move_links(q);
    for (int32_t k = 0; k < q->n; k++) {
        const real i = q->g[k] * (q->rv[k] - q->hist[k]);
        real vc;
        if (q->method == 0) {
            vc = q->rvc[0][k] + (real)q->h * q->s[k] / 2 * (i + q->ri[0][k]);
        } else {
            vc = (real)q->h * q->s[k] * i;
            for (int j = 0; j < q->method; j++) {
                vc += c[q->method][j] * q->rvc[j][k];
            }
            vc /= gamma[q->method];
        }
        for (int j = 2; j > 0; j--) {
            q->ri[j][k] = q->ri[j - 1][k];
            q->rvc[j][k] = q->rvc[j - 1][k];
        }
        q->ri[0][k] = i;
        q->rvc[0][k] = vc;
        q->rvb[k] = q->rv[k] - q->potential[k];
    }
}

static crdi_ladder* begin(const ladder* q, crd_context* ctx)
{
    crdi_ladder* l = NULL;
    check_ok(crdi_ladder_create(ctx, q->n, q->driven, q->driven_count, &l));
    const crdi_ladder_parts parts = {q->link, q->shunt,  q->r,      q->l,
                                     q->s,    q->branch, q->link_r, q->link_l};
    check_ok(crdi_ladder_factor(l, &parts, (crdi_ladder_method)q->method, q->h));
    crdi_ladder_load(l, (const double* const*)q->i, (const double* const*)q->vc, q->v,
                     (const double* const*)q->il);
    return l;
}

static void drive(const ladder* q, crdi_ladder* l, int step)
{
    for (int32_t k = 0; k < q->driven_count; k++) {
        const double e = source(k, step);
        crdi_ladder_drive(l, k, q->link[0] * e, 0.1 * e);
    }
    crdi_ladder_outer(l, 0.2 * source(0, step), 0.3 * source(1, step));
}

static void near_all(const ladder* q, const crdi_ladder* l, double tolerance)
{
    real v = 0, i = 0, vc = 0;
    for (int32_t k = 0; k < q->n; k++) {
        v = fmaxl(v, fabsl(q->rv[k]));
        i = fmaxl(i, fabsl(q->ri[0][k]));
        vc = fmaxl(vc, fabsl(q->rvc[0][k]));
    }
    for (int32_t k = 0; k < q->n; k++) {
        const double a = crdi_ladder_voltage(l, k), b = crdi_ladder_current(l, k),
                     c = crdi_ladder_capacitor(l, k);
        if (!(fabsl(a - q->rv[k]) <= tolerance * v && fabsl(b - q->ri[0][k]) <= tolerance * i &&
              fabsl(c - q->rvc[0][k]) <= tolerance * vc)) {
            fail_msg("n = %d, method %d, node %d: v %.17g i %.17g vC %.17g, expected %.17g %.17g "
                     "%.17g",
                     (int)q->n, q->method, (int)k, a, b, c, (double)q->rv[k], (double)q->ri[0][k],
                     (double)q->rvc[0][k]);
        }
    }
    for (int32_t k = 0; k <= q->n; k++) {
        i = fmaxl(i, fabsl(q->ril[0][k]));
        if (!(q->link_l[k] > 0)) { continue; }
        check_near(crdi_ladder_link(l, k), (double)q->ril[0][k], (double)(tolerance * i));
    }
}

static void run(ladder* q, crd_context* ctx, double tolerance)
{
    crdi_ladder* l = begin(q, ctx);
    reference_begin(q);
    for (int n = 1; n <= STEPS; n++) {
        drive(q, l, n);
        for (int32_t k = 0; k < q->driven_count; k++) {
            const double e = source(k, n);
            q->current[q->driven[k]] = q->link[0] * e;
            q->potential[q->driven[k]] = 0.1 * e;
        }
        q->outer[0] = 0.2 * source(0, n);
        q->outer[1] = 0.3 * source(1, n);
        crdi_ladder_step(l);
        reference_step(q);
        near_all(q, l, tolerance);
    }
    crdi_ladder_destroy(l);
}

static void ladders_of_every_length_take_the_exact_steps(void** state)
{
    for (int32_t n = 1; n <= 200; n += n < 20 ? 1 : n < 45 ? 5 : 41) {
        ladder q = make(n);
        for (sort kind = EQUAL; kind < KINDS; kind++) {
            for (q.method = 0; q.method < 4; q.method++) {
                fill(&q, kind);
                run(&q, *state, 1e-12);
            }
        }
        clear(&q);
    }
}

static void ladders_of_many_blocks_take_the_exact_steps(void** state)
{
    // Where long double is double the reference is no better than what it judges.
    if (LDBL_MANT_DIG == DBL_MANT_DIG) { skip(); }
    static const int32_t lengths[] = {4115, 9001, 15000};
    for (int j = 0; j < 3; j++) {
        ladder q = make(lengths[j]);
        for (sort kind = EQUAL; kind < KINDS; kind++) {
            q.method = (j + (int)kind) % 4;
            fill(&q, kind);
            run(&q, *state, 1e-12);
        }
        clear(&q);
    }
}

static void what_was_stored_and_loaded_goes_on_as_before(void** state)
{
    ladder q = make(700);
    for (q.method = 0; q.method < 4; q.method++) {
        fill(&q, LINKED);
        crdi_ladder* l = begin(&q, *state);
        const int levels = crdi_ladder_levels(l);
        for (int n = 1; n <= 5; n++) {
            drive(&q, l, n);
            crdi_ladder_step(l);
        }
        double v = crdi_ladder_voltage(l, 350);
        crdi_ladder_store(l, q.i, q.vc, q.v, q.il);
        check_near(q.v[350], v, 0);
        crdi_ladder* other = begin(&q, *state);
        drive(&q, other, 5); // the potentials that belong to what was stored
        crdi_ladder_load(other, (const double* const*)q.i, (const double* const*)q.vc, q.v,
                         (const double* const*)q.il);
        for (int n = 6; n <= 9; n++) {
            drive(&q, l, n);
            drive(&q, other, n);
            crdi_ladder_step(l);
            crdi_ladder_step(other);
            for (int32_t k = 0; k < q.n; k++) {
                check_near(crdi_ladder_voltage(other, k), crdi_ladder_voltage(l, k), 1e-11);
                check_near(crdi_ladder_current(other, k), crdi_ladder_current(l, k), 1e-11);
            }
        }
        check_int(levels, q.method == 0 ? 1 : q.method);
        crdi_ladder_destroy(l);
        crdi_ladder_destroy(other);
    }
    clear(&q);
}

static void a_saved_state_gives_the_same_bits_again(void** state)
{
    ladder q = make(4500);
    for (q.method = 0; q.method < 4; q.method++) {
        fill(&q, q.method % 2 ? LINKED : LINE);
        crdi_ladder* l = begin(&q, *state);
        for (int n = 1; n <= 3; n++) {
            drive(&q, l, n);
            crdi_ladder_step(l);
        }
        void* saved = malloc(crdi_ladder_state_size(l));
        double* v = numbers(q.n);
        crdi_ladder_save(l, saved);
        for (int again = 0; again < 2; again++) {
            for (int n = 4; n <= 6; n++) {
                drive(&q, l, n);
                crdi_ladder_step(l);
            }
            for (int32_t k = 0; k < q.n; k++) {
                if (again == 0) { v[k] = crdi_ladder_voltage(l, k); }
                check_near(crdi_ladder_voltage(l, k), v[k], 0);
            }
            crdi_ladder_restore(l, saved);
        }
        free(saved);
        free(v);
        crdi_ladder_destroy(l);
    }
    clear(&q);
}

static void all_instruction_sets_give_the_same_bits(void** state)
{
    ladder q = make(4500);
    for (q.method = 0; q.method < 4; q.method++) {
        for (sort kind = EQUAL; kind < KINDS; kind++) {
            fill(&q, kind);
            double* v = numbers(q.n);
            for (int set = 0; set < 3; set++) {
                crdi_ladder* l = begin(&q, *state);
                crdi_ladder_use(l, set);
                for (int n = 1; n <= 3; n++) {
                    drive(&q, l, n);
                    crdi_ladder_step(l);
                }
                for (int32_t k = 0; k < q.n; k++) {
                    if (set == 0) { v[k] = crdi_ladder_voltage(l, k); }
                    check_near(crdi_ladder_voltage(l, k), v[k], 0);
                }
                crdi_ladder_destroy(l);
            }
            free(v);
        }
    }
    clear(&q);
}

static void what_hangs_on_nothing_is_refused(void** state)
{
    ladder q = make(50);
    fill(&q, EQUAL);
    crdi_ladder* l = NULL;
    check_ok(crdi_ladder_create(*state, q.n, NULL, 0, &l));
    const crdi_ladder_parts parts = {q.link, q.shunt, q.r, q.l, q.s, q.branch, q.link_r, q.link_l};
    q.l[20] = q.s[20] = 0;
    check_status(crdi_ladder_factor(l, &parts, CRDI_LADDER_TR, q.h), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "branch at node 20");
    memset(q.branch, 0, (size_t)q.n * sizeof(bool));
    q.link[0] = 0;
    check_status(crdi_ladder_factor(l, &parts, CRDI_LADDER_BDF2, q.h), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "nothing holds node");
    q.link[0] = 1;
    check_ok(crdi_ladder_factor(l, &parts, CRDI_LADDER_BDF2, q.h));
    crdi_ladder_destroy(l);
    clear(&q);
}

static void every_allocation_may_fail_and_a_step_makes_none(void** state)
{
    check_allocator a;
    crd_context* ctx = check_context(&a);
    ladder q = make(9000);
    fill(&q, SPARSE);
    const crdi_ladder_parts parts = {q.link, q.shunt, q.r, q.l, q.s, q.branch, q.link_r, q.link_l};
    const int64_t live = a.live;
    bool done = false;
    for (int64_t at = 0; !done; at++) {
        check(at < 100);
        a.fail_at = a.allocations + at;
        crdi_ladder* l = NULL;
        crd_status st = crdi_ladder_create(ctx, q.n, q.driven, q.driven_count, &l);
        if (st == CRD_OK) { st = crdi_ladder_factor(l, &parts, CRDI_LADDER_TR, q.h); }
        if (st == CRD_OK) { st = crdi_ladder_factor(l, &parts, CRDI_LADDER_BDF3, q.h); }
        a.fail_at = -1;
        done = st == CRD_OK;
        if (!done) { check_int(st, CRD_E_MEMORY); }
        if (!done && l) { check_ok(crdi_ladder_factor(l, &parts, CRDI_LADDER_BDF2, q.h)); }
        if (l) {
            const int64_t before = a.allocations;
            crdi_ladder_load(l, (const double* const*)q.i, (const double* const*)q.vc, q.v,
                             (const double* const*)q.il);
            for (int n = 0; n < 4; n++) {
                crdi_ladder_step(l);
            }
            check_int(a.allocations, before);
        }
        crdi_ladder_destroy(l);
        check_int(a.live, live);
    }
    clear(&q);
    crd_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ladders_of_every_length_take_the_exact_steps),
        cmocka_unit_test(ladders_of_many_blocks_take_the_exact_steps),
        cmocka_unit_test(what_was_stored_and_loaded_goes_on_as_before),
        cmocka_unit_test(a_saved_state_gives_the_same_bits_again),
        cmocka_unit_test(all_instruction_sets_give_the_same_bits),
        cmocka_unit_test(what_hangs_on_nothing_is_refused),
        cmocka_unit_test(every_allocation_may_fail_and_a_step_makes_none),
    };
    return cmocka_run_group_tests(tests, check_set_up, check_tear_down);
}
