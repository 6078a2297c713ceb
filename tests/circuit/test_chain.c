// Tridiagonal matrices against plain elimination in long double.
#include "check.h"
#include "circuit/chain.h"

#include <float.h>
#include <stdio.h>

typedef struct problem {
    int32_t n;
    double *d, *e, *b, *x;
    long double *p, *y;
} problem;

static uint64_t seed = 20261115;

static double uniform(void) // 0 .. 1, SplitMix64
{
    uint64_t z = (seed += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static problem make(int32_t n)
{
    problem q = {.n = n};
    q.d = calloc((size_t)n, sizeof(double));
    q.e = calloc((size_t)n, sizeof(double));
    q.b = calloc((size_t)n, sizeof(double));
    q.x = calloc((size_t)n, sizeof(double));
    q.p = calloc((size_t)n, sizeof(long double));
    q.y = calloc((size_t)n, sizeof(long double));
    return q;
}

static void clear(problem* q)
{
    free(q->d);
    free(q->e);
    free(q->b);
    free(q->x);
    free(q->p);
    free(q->y);
}

// Links of 1 S (or around it), `ground` S to ground
static void fill(problem* q, double ground, bool random)
{
    for (int32_t k = 0; k < q->n; k++) {
        q->e[k] = random ? -0.25 - uniform() : -1;
        q->b[k] = uniform() - 0.5;
    }
    for (int32_t k = 0; k < q->n; k++) {
        const double left = k > 0 ? q->e[k - 1] : 0, right = k + 1 < q->n ? q->e[k] : 0;
        q->d[k] = ground * (random ? 2 * uniform() + 0.01 : 1) - (left + right);
    }
}

static void reference(problem* q)
{
    for (int32_t k = 0; k < q->n; k++) {
        const long double l = k > 0 ? q->e[k - 1] / q->p[k - 1] : 0;
        q->p[k] = q->d[k] - (k > 0 ? l * q->e[k - 1] : 0);
        q->y[k] = q->b[k] - (k > 0 ? l * q->y[k - 1] : 0);
    }
    for (int32_t k = q->n - 1; k >= 0; k--) {
        q->y[k] = (q->y[k] - (k + 1 < q->n ? q->e[k] * q->y[k + 1] : 0)) / q->p[k];
    }
}

// Where long double is double the reference is no better than what it judges.
static void needs_more_than_double(void)
{
    if (LDBL_MANT_DIG == DBL_MANT_DIG) { skip(); }
}

static void compare(problem* q, crd_context* ctx, double tolerance)
{
    crdi_chain* c = NULL;
    check_ok(crdi_chain_create(ctx, q->n, &c));
    check_ok(crdi_chain_factor(c, q->d, q->e));
    for (int again = 0; again < 2;
         again++) { // what a solution leaves behind does not disturb the next
        memcpy(q->x, q->b, (size_t)q->n * sizeof(double));
        crdi_chain_solve(c, q->x);
    }
    reference(q);
    long double largest = 0;
    for (int32_t k = 0; k < q->n; k++) {
        largest = fmaxl(largest, fabsl(q->y[k]));
    }
    for (int32_t k = 0; k < q->n; k++) {
        const long double off = fabsl(q->x[k] - q->y[k]);
        if (!(off <= tolerance * largest)) {
            fail_msg("n = %d, row %d: %.17g, expected %.17g, off by %g of the largest", (int)q->n,
                     (int)k, q->x[k], (double)q->y[k], (double)(off / largest));
        }
    }
    crdi_chain_destroy(c);
}

static void every_length_up_to_200_gives_the_exact_solution(void** state)
{
    needs_more_than_double();
    for (int32_t n = 1; n <= 200; n++) {
        problem q = make(n);
        for (int kind = 0; kind < 4; kind++) {
            fill(&q, kind < 2 ? 0.5 : 1e-4, kind % 2 == 1);
            compare(&q, *state, 1e-13);
        }
        clear(&q);
    }
}

static void long_chains_give_the_exact_solution(void** state)
{
    static const int32_t lengths[] = {1023, 5000, 9001, 40000};
    for (int j = 0; j < 4; j++) {
        problem q = make(lengths[j]);
        for (int kind = 0; kind < 2; kind++) {
            fill(&q, 0.1, kind == 1);
            compare(&q, *state, 1e-13);
        }
        clear(&q);
    }
}

// One volt is felt over 1/sqrt(ground) rows: lanes, blocks, and everything must not be cut off.
static void chains_that_hardly_hang_on_ground_are_not_truncated(void** state)
{
    needs_more_than_double();
    static const double ground[] = {1e-3, 1e-5, 1e-7, 1e-10};
    problem q = make(30000);
    for (int j = 0; j < 4; j++) {
        for (int kind = 0; kind < 2; kind++) {
            fill(&q, ground[j], kind == 1);
            // rounding of the given diagonal alone moves the solution by eps / ground
            compare(&q, *state, 1e-13 + 1e-16 / ground[j]);
        }
    }
    clear(&q);
}

static void half_uniform_chains_take_both_ways(void** state)
{
    problem q = make(20011);
    fill(&q, 0.3, false);
    for (int32_t k = 7000; k < 7100; k++) {
        q.d[k] += uniform();
    }
    for (int32_t k = 15000; k < q.n; k++) {
        q.d[k] += 2;
    }
    compare(&q, *state, 1e-13);
    clear(&q);
}

static void decoupled_and_positive_off_diagonals_are_solved(void** state)
{
    problem q = make(3000);
    fill(&q, 0.4, true);
    for (int32_t k = 0; k < q.n; k++) {
        q.e[k] = k % 7 == 3 ? 0 : k % 5 == 0 ? -q.e[k] : q.e[k];
    }
    compare(&q, *state, 1e-13);
    clear(&q);
}

static void matrices_that_are_not_positive_definite_are_refused(void** state)
{
    static const int32_t lengths[] = {1, 12, 300, 9000};
    for (int j = 0; j < 4; j++) {
        problem q = make(lengths[j]);
        crdi_chain* c = NULL;
        check_ok(crdi_chain_create(*state, q.n, &c));
        fill(&q, 0.5, false);
        q.d[q.n / 2] = -3;
        check_status(crdi_chain_factor(c, q.d, q.e), CRD_E_RANGE);
        check_contains(crd_error_text(*state), "is not positive");
        fill(&q, 0, false); // floats
        check_status(crdi_chain_factor(c, q.d, q.e), CRD_E_RANGE);
        fill(&q, 0.5, false);
        q.d[q.n - 1] = NAN;
        check_status(crdi_chain_factor(c, q.d, q.e), CRD_E_RANGE);
        fill(&q, 0.5, false);
        check_ok(crdi_chain_factor(c, q.d, q.e)); // and it still serves
        crdi_chain_destroy(c);
        clear(&q);
    }
}

static void all_instruction_sets_give_the_same_bits(void** state)
{
    for (int32_t n = 17; n < 12000; n += n < 200 ? 13 : 5555) {
        problem q = make(n);
        for (int kind = 0; kind < 2; kind++) {
            fill(&q, 0.2, kind == 1);
            crdi_chain* c = NULL;
            check_ok(crdi_chain_create(*state, n, &c));
            check_ok(crdi_chain_factor(c, q.d, q.e));
            double* y = calloc((size_t)n, sizeof(double));
            memcpy(y, q.b, (size_t)n * sizeof(double));
            crdi_chain_use(c, 0);
            crdi_chain_solve(c, y);
            for (int set = 1; set < 3; set++) {
                memcpy(q.x, q.b, (size_t)n * sizeof(double));
                crdi_chain_use(c, set);
                crdi_chain_solve(c, q.x);
                check(memcmp(q.x, y, (size_t)n * sizeof(double)) == 0);
            }
            free(y);
            crdi_chain_destroy(c);
        }
        clear(&q);
    }
}

static void every_allocation_may_fail_and_solving_makes_none(void** state)
{
    check_allocator a;
    crd_context* ctx = check_context(&a);
    problem q = make(9000);
    fill(&q, 0.5, true);
    bool done = false;
    const int64_t live = a.live;
    for (int64_t at = 0; !done; at++) {
        check(at < 100);
        a.fail_at = a.allocations + at;
        crdi_chain* c = NULL;
        crd_status st = crdi_chain_create(ctx, q.n, &c);
        if (st == CRD_OK) { st = crdi_chain_factor(c, q.d, q.e); }
        a.fail_at = -1;
        done = st == CRD_OK;
        if (!done) { check_int(st, CRD_E_MEMORY); }
        if (done) {
            const int64_t before = a.allocations;
            crdi_chain_solve(c, q.b);
            check_int(a.allocations, before);
        }
        crdi_chain_destroy(c);
        check_int(a.live, live);
    }
    clear(&q);
    crd_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_length_up_to_200_gives_the_exact_solution),
        cmocka_unit_test(long_chains_give_the_exact_solution),
        cmocka_unit_test(chains_that_hardly_hang_on_ground_are_not_truncated),
        cmocka_unit_test(half_uniform_chains_take_both_ways),
        cmocka_unit_test(decoupled_and_positive_off_diagonals_are_solved),
        cmocka_unit_test(matrices_that_are_not_positive_definite_are_refused),
        cmocka_unit_test(all_instruction_sets_give_the_same_bits),
        cmocka_unit_test(every_allocation_may_fail_and_solving_makes_none),
    };
    return cmocka_run_group_tests(tests, check_set_up, check_tear_down);
}
