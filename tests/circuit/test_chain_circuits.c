// Circuits whose reduced network is a ladder: the fused steps against the general ones.
#include "cardan/circuit.h"
#include "check.h"
#include "circuit/nodal.h"

#include <stdio.h>

static uint64_t seed = 7;

static double uniform(void) // 0 .. 1, SplitMix64
{
    uint64_t z = (seed += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

typedef enum sort { LOOPS, LINE, MIXED, PIECES, CABLE, LINKED, SORTS } sort;

typedef struct name {
    char text[16];
} name;

static name before(int k) // the node that comes before a<k>
{
    name x;
    snprintf(x.text, sizeof x.text, k > 0 ? "a%d" : "in", k - 1);
    return x;
}

// The scalable circuit of Rodriguez 2021: a resistor, then L and C to ground
static void write_loops(crd_text* t, int n)
{
    crdi_text_add(t, "v1 in 0 input(e)\n");
    for (int k = 0; k < n; k++) {
        crdi_text_add(t, "r%d %s a%d 2\nl%d a%d b%d 0.1\nc%d b%d 0 0.2\n", k, before(k).text, k, k,
                      k, k, k, k);
    }
}

// A rod that is heated here and there, between two known temperatures
static void write_line(crd_text* t, int n)
{
    crdi_text_add(t, "v1 in 0 input(e)\nv2 out 0 3\n");
    for (int k = 0; k < n; k++) {
        crdi_text_add(t, "r%d %s a%d %g\nc%d a%d 0 %g\n", k, before(k).text, k, 0.1 + uniform(), k,
                      k, 0.01 + 0.01 * uniform());
        if (k % 5 == 2) { crdi_text_add(t, "i%d 0 a%d sin(1 2 %d)\n", k, k, 3 + k % 4); }
        if (k % 7 == 3) { crdi_text_add(t, "rg%d a%d 0 %g\n", k, k, 5 + uniform()); }
    }
    crdi_text_add(t, "rend out a%d 0.7\n", n - 1);
}

static void write_branch(crd_text* t, int k, const char* end)
{
    const int has = (int)(8 * uniform());
    char at[32], next[32];
    snprintf(at, sizeof at, "a%d", k);
    for (int part = 0; part < 3; part++) {
        if (!(has & 1 << part)) { continue; }
        snprintf(next, sizeof next, "m%d_%d", k, part);
        const char* to = has >> (part + 1) ? next : end;
        const char letter = "rlc"[part];
        const double value = part == 0 ? 1 + uniform() : 0.05 + 0.1 * uniform();
        const bool turned = uniform() < 0.5;
        crdi_text_add(t, "%cb%d %s %s %g\n", letter, k, turned ? to : at, turned ? at : to, value);
        snprintf(at, sizeof at, "%s", to);
    }
}

// Branches of all sorts, to ground or to a source, in any order of the lines; some are missing
static void write_mixed(crd_text* t, int n)
{
    crdi_text_add(t, "vrail rail 0 sin(0 3 7)\nv1 in 0 input(e)\n");
    for (int j = 0; j < n; j++) {
        const int k = (int)(((int64_t)j * 101 + 11) % n);
        crdi_text_add(t, "r%d a%d %s %g\n", k, k, before(k).text, 0.5 + uniform());
        if (k % 6 == 1) { crdi_text_add(t, "rp%d a%d a%d %g\n", k, k - 1, k, 1 + uniform()); }
        if (k % 9 == 4) { crdi_text_add(t, "rr%d rail a%d %g\n", k, k, 3 + uniform()); }
        write_branch(t, k, k % 8 == 5 ? "rail" : "0");
    }
}

// R and L along, C across
static void write_cable(crd_text* t, int n)
{
    crdi_text_add(t, "v1 in 0 input(e)\n");
    for (int k = 0; k < n; k++) {
        crdi_text_add(t, "r%d %s m%d 0.1\nl%d m%d a%d 0.02\nc%d a%d 0 0.01\n", k, before(k).text, k,
                      k, k, k, k, k);
    }
    crdi_text_add(t, "rload a%d 0 5\n", n - 1);
    crdi_text_add(
        t, "cs in 0 0.1\nrs in s 1\nls s 0 0.1\nrx a0 a0 1\nlx a0 x 1\nry x a0 1\n"); // known
}

// As mixed, with inductors between the nodes, from a source and to one
static void write_linked(crd_text* t, int n)
{
    crdi_text_add(t, "vrail rail 0 sin(0 3 7)\nv1 in 0 input(e)\n");
    for (int j = 0; j < n; j++) {
        const int k = (int)(((int64_t)j * 101 + 11) % n);
        const bool turned = k % 4 == 1;
        if (k % 5 == 3) {
            crdi_text_add(t, "r%d a%d %s %g\n", k, k, before(k).text, 0.5 + uniform());
        } else if (turned) {
            crdi_text_add(t, "l%d a%d %s %g\n", k, k, before(k).text, 0.01 + 0.02 * uniform());
        } else {
            crdi_text_add(t, "l%d %s a%d %g\n", k, before(k).text, k, 0.01 + 0.02 * uniform());
        }
        if (k % 9 == 4) { crdi_text_add(t, "rr%d rail a%d %g\n", k, k, 3 + uniform()); }
        crdi_text_add(t, "c%d a%d %s %g\n", k, k, k % 8 == 5 ? "rail" : "0",
                      0.01 + 0.02 * uniform());
    }
    crdi_text_add(t, "rend a%d z 0.3\nlend rail z 0.03\n", n - 1);
}

// Several chains, one of them a single node
static void write_pieces(crd_text* t, int n)
{
    crdi_text_add(t, "v1 in 0 input(e)\nrs in s 1\ncs s 0 0.1\n");
    for (int k = 0; k < n; k++) {
        crdi_text_add(t, "r%d %s a%d 1\nl%d a%d b%d 0.1\nc%d b%d 0 0.1\n", k,
                      before(k % 23 == 0 ? 0 : k).text, k, k, k, k, k, k);
    }
}

static crd_netlist* make(crd_context* ctx, sort what, int n)
{
    crd_text t;
    crd_text_init(&t, ctx);
    crdi_text_add(&t, "a ladder\n.input e start=1\n");
    switch (what) {
    case LOOPS:
        write_loops(&t, n);
        break;
    case LINE:
        write_line(&t, n);
        break;
    case MIXED:
        write_mixed(&t, n);
        break;
    case CABLE:
        write_cable(&t, n);
        break;
    case LINKED:
        write_linked(&t, n);
        break;
    default:
        write_pieces(&t, n);
        break;
    }
    crd_netlist* net = NULL;
    const crd_status st = crd_netlist_parse(ctx, t.data, t.length, "ladder.cir", NULL, &net);
    if (st < 0) { fail_msg("%s\n%s", crd_error_text(ctx), t.data); }
    crd_text_clear(&t);
    return net;
}

static crd_circuit* begin(crd_context* ctx, const crd_netlist* n, crd_circuit_options opt,
                          bool chains)
{
    crd_circuit* c = NULL;
    opt.no_chains = !chains;
    opt.form = CRD_FORM_NODAL;
    check_ok(crd_circuit_create(ctx, n, &opt, &c));
    const crd_circuit_structure s = crd_circuit_get_structure(c);
    if (!chains) { check_int(s.chain, 0); }
    if (chains && s.nodal > 24) { check_int(s.chain, s.nodal); }     // all of it
    if (chains && s.nodal > 24 && opt.method != CRD_METHOD_TRBDF2) { // and it is a ladder
        check(((const crdi_nodal*)c->self)->ladder != NULL);
    }
    check_ok(crd_circuit_begin(c, 0));
    return c;
}

static void equal(const crd_netlist* n, const crd_circuit* a, const crd_circuit* b,
                  double tolerance)
{
    double v = 1e-3, i = 1e-3; // what is nothing but rounding counts as nothing
    for (int32_t k = 0; k < n->node_count; k++) {
        v = fmax(v, fabs(crd_circuit_voltage(b, k)));
    }
    for (int32_t k = 0; k < n->part_count; k++) {
        i = fmax(i, fabs(crd_circuit_current(b, k)));
    }
    for (int32_t k = 0; k < n->node_count; k++) {
        const double x = crd_circuit_voltage(a, k), y = crd_circuit_voltage(b, k);
        if (!(fabs(x - y) <= tolerance * v)) {
            fail_msg("t = %g: V(%s) = %.17g, expected %.17g", crd_circuit_time(a), n->nodes[k], x,
                     y);
        }
    }
    for (int32_t k = 0; k < n->part_count; k++) {
        const double x = crd_circuit_current(a, k), y = crd_circuit_current(b, k);
        if (!(fabs(x - y) <= tolerance * i)) {
            fail_msg("t = %g: I(%s) = %.17g, expected %.17g", crd_circuit_time(a),
                     n->names + n->parts[k].name, x, y);
        }
    }
}

static void both(crd_circuit* a, crd_circuit* b, int from, int to)
{
    for (int k = from; k < to; k++) {
        const double e = 10 * sin(0.2 * k);
        check_ok(crd_circuit_set_input(a, 0, e));
        check_ok(crd_circuit_set_input(b, 0, e));
        check_ok(crd_circuit_step(a));
        check_ok(crd_circuit_step(b));
    }
}

// Every few steps everybody is looked at; in between nobody is.
static void run(crd_context* ctx, const crd_netlist* n, crd_circuit_options opt)
{
    crd_circuit *a = begin(ctx, n, opt, true), *b = begin(ctx, n, opt, false);
    equal(n, a, b, 1e-11);
    both(a, b, 0, 1);
    equal(n, a, b, 1e-11);
    both(a, b, 1, 12);
    equal(n, a, b, 1e-11);
    check_ok(crd_circuit_set_step(a, 0.6 * opt.step)); // anew, from what it has
    check_ok(crd_circuit_set_step(b, 0.6 * opt.step));
    equal(n, a, b, 1e-11);
    both(a, b, 12, 22);
    equal(n, a, b, 1e-11);
    check_ok(crd_circuit_begin(a, 1));
    check_ok(crd_circuit_begin(b, 1));
    both(a, b, 3, 9);
    equal(n, a, b, 1e-11);
    crd_circuit_destroy(a);
    crd_circuit_destroy(b);
}

static void every_method_gives_what_the_general_steps_give(void** state)
{
    static const crd_circuit_method methods[] = {CRD_METHOD_TR, CRD_METHOD_BDF1, CRD_METHOD_BDF2,
                                                 CRD_METHOD_BDF3, CRD_METHOD_TRBDF2};
    for (sort what = LOOPS; what < SORTS; what++) {
        crd_netlist* n = make(*state, what, what == LOOPS ? 150 : 70);
        for (int m = 0; m < 5; m++) {
            crd_circuit_options opt = crd_circuit_defaults();
            opt.step = 2.5e-3;
            opt.method = methods[m];
            for (opt.start = CRD_START_TR; opt.start <= CRD_START_CONSTANT; opt.start++) {
                run(*state, n, opt);
            }
        }
        crd_netlist_destroy(n);
    }
}

static void ladders_of_any_length_are_found(void** state)
{
    crd_circuit_options opt = crd_circuit_defaults();
    opt.step = 2.5e-3;
    for (int length = 1; length < 48; length += 3) {
        for (sort what = LOOPS; what < SORTS; what++) {
            crd_netlist* n = make(*state, what, length);
            opt.method = length % 2 ? CRD_METHOD_TR : CRD_METHOD_BDF2;
            run(*state, n, opt);
            crd_netlist_destroy(n);
        }
    }
}

static void ladders_of_many_blocks_give_the_same(void** state)
{
    crd_circuit_options opt = crd_circuit_defaults();
    opt.step = 2.5e-3;
    crd_netlist* n = make(*state, MIXED, 9000);
    crd_circuit *a = begin(*state, n, opt, true), *b = begin(*state, n, opt, false);
    both(a, b, 0, 6);
    equal(n, a, b, 1e-11);
    crd_circuit_destroy(a);
    crd_circuit_destroy(b);
    crd_netlist_destroy(n);
}

static void a_saved_state_goes_on_with_the_same_bits(void** state)
{
    for (sort what = LOOPS; what < SORTS; what++) {
        crd_netlist* n = make(*state, what, 90);
        for (int m = CRD_METHOD_BDF1; m <= CRD_METHOD_TR; m++) {
            crd_circuit_options opt = crd_circuit_defaults();
            opt.step = 2.5e-3;
            opt.method = (crd_circuit_method)m;
            crd_circuit *a = begin(*state, n, opt, true), *b = begin(*state, n, opt, true);
            both(a, b, 0, 9);
            void* saved = calloc(1, crd_circuit_state_size(a));
            crd_circuit_save(a, saved); // does not disturb it
            both(a, b, 9, 14);
            equal(n, a, b, 0);
            crd_circuit_restore(b, saved);
            for (int k = 9; k < 14; k++) {
                check_ok(crd_circuit_set_input(b, 0, 10 * sin(0.2 * k)));
                check_ok(crd_circuit_step(b));
            }
            equal(n, a, b, 0);
            // under another step it is the same but for rounding
            check_int(crd_circuit_state_size(b), crd_circuit_state_size(a));
            crd_circuit_restore(b, saved);
            check_ok(crd_circuit_set_step(b, 1e-3));
            crd_circuit_restore(b, saved);
            crd_circuit_restore(a, saved);
            check_ok(crd_circuit_set_step(a, 1e-3));
            both(a, b, 14, 20);
            equal(n, a, b, 1e-12);
            free(saved);
            crd_circuit_destroy(a);
            crd_circuit_destroy(b);
        }
        crd_netlist_destroy(n);
    }
}

static void variable_steps_and_fixed_ones_may_alternate(void** state)
{
    crd_circuit_options opt = crd_circuit_defaults();
    opt.step = 2.5e-3;
    crd_netlist* n = make(*state, MIXED, 60);
    crd_circuit *a = begin(*state, n, opt, true), *b = begin(*state, n, opt, false);
    both(a, b, 0, 5);
    const crd_circuit_control control = crd_circuit_control_defaults();
    for (int k = 0; k < 4; k++) {
        check_ok(crd_circuit_advance(a, 0.1, &control));
        check_ok(crd_circuit_advance(b, 0.1, &control));
    }
    check_near(crd_circuit_time(a), crd_circuit_time(b), 0);
    equal(n, a, b, 1e-9);
    both(a, b, 5, 9);
    equal(n, a, b, 1e-9);
    crd_circuit_destroy(a);
    crd_circuit_destroy(b);
    crd_netlist_destroy(n);
}

static void what_is_no_ladder_takes_the_general_way(void** state)
{
    static const char* const extra[] = {
        "rring a3 a40 1\n",                              // a ring
        "cs a3 a4 0.1\n",                                // a link with a capacitor
        "cp a5 0 0.1\n",                                 // two branches at a node
        "rt a9 z 1\ncz z 0 0.2\nry z y 1\ncy y 0 0.1\n", // a side chain
    };
    crd_circuit_options opt = crd_circuit_defaults();
    opt.step = 2.5e-3;
    for (int k = 0; k < 4; k++) {
        crd_text t;
        crd_text_init(&t, *state);
        crdi_text_add(&t, "no ladder\n.input e start=1\nv1 in 0 input(e)\nr0 in a0 1\n");
        for (int j = 1; j < 60; j++) {
            crdi_text_add(&t, "r%d a%d a%d 1\nl%d a%d b%d 0.1\nc%d b%d 0 0.1\n", j, j - 1, j, j, j,
                          j, j, j);
        }
        crdi_text_add(&t, "%s", extra[k]);
        crd_netlist* n = NULL;
        check_ok(crd_netlist_parse(*state, t.data, t.length, "none.cir", NULL, &n));
        crd_circuit *a = NULL, *b = NULL;
        opt.no_chains = false;
        opt.form = CRD_FORM_NODAL;
        check_ok(crd_circuit_create(*state, n, &opt, &a));
        opt.no_chains = true;
        check_ok(crd_circuit_create(*state, n, &opt, &b));
        check_ok(crd_circuit_begin(a, 0));
        check_ok(crd_circuit_begin(b, 0));
        both(a, b, 0, 8);
        equal(n, a, b, 1e-11);
        crd_circuit_destroy(a);
        crd_circuit_destroy(b);
        crd_netlist_destroy(n);
        crd_text_clear(&t);
    }
}

// Chains between few nodes: what they join is solved by itself.
static void chains_in_larger_networks_are_found(void** state)
{
    static const char* const joins[] = {
        "",                                                 // three chains from one node
        "rx e0 e1 1\nrz e1 e2 1\nrw e2 e0 1\n",             // and a ring at their other ends
        "dx e0 0 dm\n.model dm d(is=1e-12)\n",              // a diode
        "cx e0 e1 0.1\nlx e1 e2 0.2\nrq a0_5 e2 3\n",       // and branches into the middle
        "ry a0_9 0 1\nrb a0_20 a0_60 1\nrc a1_0 a1_70 1\n", // parts of a chain between its own
                                                            // nodes
    };
    static const crd_circuit_method methods[] = {CRD_METHOD_TR, CRD_METHOD_BDF2, CRD_METHOD_TRBDF2};
    for (size_t k = 0; k < sizeof joins / sizeof *joins; k++) {
        crd_text t;
        crd_text_init(&t, *state);
        crdi_text_add(&t, "chains\n.input e start=1\nv1 in 0 input(e)\nrin in m 1\ncm m 0 0.01\n");
        for (int chain = 0; chain < 3; chain++) {
            for (int j = 0; j < 80; j++) {
                if (j == 0) { crdi_text_add(&t, "rs%d m a%d_0 1\n", chain, chain); }
                if (j > 0) {
                    crdi_text_add(&t, "r%d_%d a%d_%d a%d_%d 0.1\n", chain, j, chain, j - 1, chain,
                                  j);
                }
                crdi_text_add(&t, "c%d_%d a%d_%d 0 %g\n", chain, j, chain, j,
                              0.01 + 0.01 * uniform());
            }
            crdi_text_add(&t, "re%d a%d_79 e%d 1\nce%d e%d 0 0.1\n", chain, chain, chain, chain,
                          chain);
        }
        crdi_text_add(&t, "%s", joins[k]);
        crd_netlist* n = NULL;
        check_ok(crd_netlist_parse(*state, t.data, t.length, "chains.cir", NULL, &n));
        for (int m = 0; m < 3; m++) {
            crd_circuit_options opt = crd_circuit_defaults();
            opt.step = 2.5e-3;
            opt.method = methods[m];
            opt.form = CRD_FORM_NODAL;
            crd_circuit *a = NULL, *b = NULL;
            check_ok(crd_circuit_create(*state, n, &opt, &a));
            opt.no_chains = true;
            check_ok(crd_circuit_create(*state, n, &opt, &b));
            check(crd_circuit_get_structure(a).chain > 150);
            check_int(crd_circuit_get_structure(b).chain, 0);
            check_ok(crd_circuit_begin(a, 0));
            check_ok(crd_circuit_begin(b, 0));
            both(a, b, 0, 6);
            equal(n, a, b, 1e-9); // of Newton's method
            crd_circuit_destroy(a);
            crd_circuit_destroy(b);
        }
        crd_netlist_destroy(n);
        crd_text_clear(&t);
    }
}

static void every_allocation_may_fail_and_a_step_makes_none(void** state)
{
    check_allocator al;
    crd_context* ctx = check_context(&al);
    crd_netlist* n = make(ctx, MIXED, 60);
    const int64_t live = al.live;
    bool done = false;
    for (int64_t at = 0; !done; at++) {
        check(at < 1000);
        al.fail_at = al.allocations + at;
        crd_circuit_options opt = crd_circuit_defaults();
        opt.step = 2.5e-3;
        opt.method = CRD_METHOD_BDF2;
        opt.form = CRD_FORM_NODAL;
        crd_circuit* c = NULL;
        const crd_status st = crd_circuit_create(ctx, n, &opt, &c);
        al.fail_at = -1;
        done = st == CRD_OK;
        if (!done) {
            check_int(st, CRD_E_MEMORY);
        } else {
            const int64_t before = al.allocations;
            check_ok(crd_circuit_begin(c, 0));
            for (int k = 0; k < 9; k++) {
                check_ok(crd_circuit_step(c));
            }
            check_int(al.allocations, before);
        }
        crd_circuit_destroy(c);
        check_int(al.live, live);
    }
    crd_netlist_destroy(n);
    crd_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_method_gives_what_the_general_steps_give),
        cmocka_unit_test(ladders_of_any_length_are_found),
        cmocka_unit_test(ladders_of_many_blocks_give_the_same),
        cmocka_unit_test(a_saved_state_goes_on_with_the_same_bits),
        cmocka_unit_test(variable_steps_and_fixed_ones_may_alternate),
        cmocka_unit_test(what_is_no_ladder_takes_the_general_way),
        cmocka_unit_test(chains_in_larger_networks_are_found),
        cmocka_unit_test(every_allocation_may_fail_and_a_step_makes_none),
    };
    return cmocka_run_group_tests(tests, check_set_up, check_tear_down);
}
