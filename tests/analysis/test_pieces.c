#include "check.h"
#include "shared/base.h"

#include "cardan/analysis.h"

static double draw(uint32_t* x) // in [-1, 1)
{
    *x = *x * 1664525u + 1013904223u;
    return (double)*x / 2147483648.0 - 1;
}

enum { M = 5, N1 = 4, N2 = 3 };

typedef struct net {
    double W1[N1 * M], b1[N1], W2[N2 * N1], b2[N2], W3[N2];
    crd_network network;
} net;

static void make_random(net* n, uint32_t seed)
{
    *n = (net){.network = {.m = M, .n1 = N1, .n2 = N2, .alpha = 0.01, .b3 = 0.25}};
    double* const fields[] = {n->W1, n->b1, n->W2, n->b2, n->W3};
    const int sizes[] = {N1 * M, N1, N2 * N1, N2, N2};
    for (int f = 0; f < 5; f++) {
        for (int i = 0; i < sizes[f]; i++) {
            fields[f][i] = draw(&seed);
        }
    }
    n->network.W1 = n->W1;
    n->network.b1 = n->b1;
    n->network.W2 = n->W2;
    n->network.b2 = n->b2;
    n->network.W3 = n->W3;
}

static void a_random_network_is_its_piece_wherever_it_is_evaluated(void** state)
{
    uint32_t x = 5;
    for (uint32_t seed = 1; seed <= 20; seed++) {
        net n;
        make_random(&n, seed);
        crd_arena arena;
        crd_arena_init(&arena, *state);
        crd_pieces p;
        check_ok(crd_network_pieces(*state, &arena, &n.network, 3, &p));
        check_int(p.count, 8);
        int seen = 0;
        for (int i = 0; i < 300; i++) {
            double y[M];
            for (int t = 0; t < M; t++) {
                y[t] = 5 * draw(&x);
            }
            const uint32_t pattern = crd_network_pattern(&n.network, y);
            const int piece = p.of_pattern[pattern];
            check_int(p.linear[piece].k, 3);
            check_near(crd_linear_eval(&p.linear[piece], y, 0.5), crd_network_eval(&n.network, y),
                       1e-13);
            seen |= 1 << pattern;
        }
        check(seen & (seen - 1)); // more than one pattern was met
        crd_arena_clear(&arena);
    }
}

static void a_morphed_network_has_one_piece_the_algorithm_itself(void** state)
{
    for (int k = 0; k <= 6; k++) {
        crd_design d = crd_design_defaults(CRD_METHOD_EROS);
        crd_linear l;
        crd_network n;
        crd_pieces p;
        crd_arena arena;
        crd_arena_init(&arena, *state);
        check_ok(crd_linear_make(*state, &d, k, &l));
        check_ok(crd_network_morph(*state, &l, 0.01, &n));
        check_ok(crd_network_pieces(*state, &arena, &n, k, &p));
        // One neuron works where the other is damped. No signal has both above zero, or below.
        check_int(p.count, 1);
        check_int(p.patterns[0], 2);
        check(p.of_pattern[0] == -1 && p.of_pattern[3] == -1);
        for (int i = 0; i < l.m; i++) {
            check_near(p.linear[0].a[i], l.a[i], 1e-12 * (1 + fabs(l.a[i])));
        }
        check_near(p.linear[0].b, 0, 1e-13);
        crd_network_clear(*state, &n);
        crd_linear_clear(*state, &l);
        crd_arena_clear(&arena);
    }
}

static void three_bends_on_a_line_make_four_pieces(void** state)
{
    // One tap: each neuron bends at one place, y = 1, 2, -3
    const double W1[] = {1}, b1[] = {0}, W2[] = {1, -1, 1}, b2[] = {-1, 2, 3}, W3[] = {1, 2, 4};
    const crd_network n = {
        .m = 1, .n1 = 1, .n2 = 3, .alpha = 0.1, .W1 = W1, .b1 = b1, .W2 = W2, .b2 = b2, .W3 = W3};
    crd_arena arena;
    crd_arena_init(&arena, *state);
    crd_pieces p;
    check_ok(crd_network_pieces(*state, &arena, &n, 0, &p));
    bool met[8] = {false};
    for (double y = -5; y < 5; y += 0.25) {
        met[crd_network_pattern(&n, &y)] = true;
    }
    for (int i = 0; i < 8; i++) {
        check_int(p.of_pattern[i] >= 0, met[i]);
    }
    check_int(p.count, 4);
    crd_arena_clear(&arena);
}

// One hidden layer, and three of them: 2 x 2 + 2 bends behind each other.
static void networks_of_other_depths_are_their_pieces_as_well(void** state)
{
    uint32_t x = 5;
    for (uint32_t seed = 1; seed <= 20; seed++) {
        net n;
        make_random(&n, seed);
        double W[N2 * M], more[2 * N2], b[2] = {draw(&x), draw(&x)};
        for (int i = 0; i < N2 * M; i++) {
            W[i] = draw(&x);
            if (i < 2 * N2) { more[i] = draw(&x); }
        }
        crd_network shapes[2] = {n.network, n.network};
        shapes[0].n1 = 0;
        shapes[0].W2 = W;
        shapes[1].more = 2;
        shapes[1].n_more[0] = shapes[1].n_more[1] = 2;
        shapes[1].W_more[0] = shapes[1].W_more[1] = more;
        shapes[1].b_more[0] = shapes[1].b_more[1] = b;
        for (int s = 0; s < 2; s++) {
            crd_arena arena;
            crd_arena_init(&arena, *state);
            crd_pieces p;
            check_ok(crd_network_pieces(*state, &arena, &shapes[s], 3, &p));
            int seen = 0;
            for (int i = 0; i < 300; i++) {
                double y[M];
                for (int t = 0; t < M; t++) {
                    y[t] = 5 * draw(&x);
                }
                const uint32_t pattern = crd_network_pattern(&shapes[s], y);
                const int piece = p.of_pattern[pattern];
                check(piece >= 0);
                check_near(crd_linear_eval(&p.linear[piece], y, 0.5),
                           crd_network_eval(&shapes[s], y), 1e-13);
                seen |= 1 << (pattern & 7);
            }
            check(seen & (seen - 1));
            crd_arena_clear(&arena);
        }
    }
}

static void networks_with_too_many_bends_are_refused(void** state)
{
    net n;
    make_random(&n, 1);
    n.network.n2 = CRD_PIECE_NEURONS_MAX + 1;
    crd_arena arena;
    crd_arena_init(&arena, *state);
    crd_pieces p;
    check_status(crd_network_pieces(*state, &arena, &n.network, 0, &p), CRD_E_UNSUPPORTED);
    check_contains(crd_error_text(*state), "13 neurons with a bend, which makes 2^13");
    make_random(&n, 1);
    n.W1[3] = NAN;
    check_status(crd_network_pieces(*state, &arena, &n.network, 0, &p), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "a weight that is not a number");
    crd_arena_clear(&arena);
}

static void every_failing_allocation_is_reported_and_leaves_nothing(void** state)
{
    (void)state;
    net n;
    make_random(&n, 1);
    for (int64_t fail_at = 0;; fail_at++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        const int64_t live = a.live;
        a.fail_at = a.allocations + fail_at;
        crd_arena arena;
        crd_arena_init(&arena, ctx);
        crd_pieces p;
        const crd_status st = crd_network_pieces(ctx, &arena, &n.network, 0, &p);
        crd_arena_clear(&arena);
        check_int(a.live, live);
        a.fail_at = -1;
        crd_context_destroy(ctx);
        if (st == CRD_OK) { break; }
        check_status(st, CRD_E_MEMORY);
    }
}

int main(void)
{
    crd_context* ctx = crd_context_create(NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(a_random_network_is_its_piece_wherever_it_is_evaluated, ctx),
        cmocka_unit_test_prestate(a_morphed_network_has_one_piece_the_algorithm_itself, ctx),
        cmocka_unit_test_prestate(three_bends_on_a_line_make_four_pieces, ctx),
        cmocka_unit_test_prestate(networks_of_other_depths_are_their_pieces_as_well, ctx),
        cmocka_unit_test_prestate(networks_with_too_many_bends_are_refused, ctx),
        cmocka_unit_test(every_failing_allocation_is_reported_and_leaves_nothing),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    crd_context_destroy(ctx);
    return failed;
}
