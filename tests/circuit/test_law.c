// Tables of expressions: they must not be told from the expressions themselves.
#include "check.h"
#include "circuit/law.h"

#include <stdio.h>

#define GAP                                                                                        \
    ".func viscosity(t) {1.458e-6*t^1.5/(t+110.4)}\n.func density(t) {101325/(287.05*t)}\n"        \
    ".func conductivity(t) {2.64638e-3*t^1.5/(t+245.4*10^(-12/t))}\n"                              \
    ".func taylor(t,w) {w^2*60m*1e-9*(density(t)/viscosity(t))^2*0.98}\n"                          \
    ".func nusselt(ta) {ta < 1700 ? 2 : ta < 1e4 ? 0.128*ta^0.367 : 0.409*ta^0.241}\n"             \
    ".func gap(t,w) {2m/(nusselt(taylor(t,w))*conductivity(t)*0.0367)}\n.input speed start=1570\n"

static crd_netlist* parse(crd_context* ctx, const char* law)
{
    char text[2000];
    crd_netlist* n = NULL;
    snprintf(text, sizeof text,
             "t\n" GAP "R1 a b {%s}\nC1 a 0 1m ic=400\nR2 a 0 1k\nC2 b 0 2m ic=310\nR3 b c 1k\n"
             "V1 c 0 320\n.tran 1m 1 uic\n.end\n",
             law);
    check_ok(crd_netlist_parse(ctx, text, strlen(text), "law.cir", NULL, &n));
    return n;
}

typedef struct probe {
    crd_context* ctx;
    crd_netlist* n;
    const crd_expression* e;
    const crd_use* uses;
    int count;
    crd_arena arena;
    crdi_law* law;
    double memory[8];
} probe;

static probe make(const char* law)
{
    probe p = {.ctx = crd_context_create(NULL)};
    p.n = parse(p.ctx, law);
    p.e = p.n->expressions[0];
    p.count = crd_expression_uses(p.e, &p.uses);
    crd_arena_init(&p.arena, p.ctx);
    check_ok(crdi_law_create(&p.arena, p.e, &p.law));
    check(crdi_law_numbers(p.law) <= 8);
    return p;
}

static void clear(probe* p)
{
    crd_arena_clear(&p->arena);
    crd_netlist_destroy(p->n);
    crd_context_destroy(p->ctx);
}

// Value and gradient at potentials a and b; returns whether they differ from those of the
// expression in any bit. They never differ by more than rounding.
static bool differs(probe* p, double a, double b, double speed)
{
    double x[4], g[4], want[4];
    for (int k = 0; k < p->count; k++) {
        x[k] = p->uses[k].kind == CRD_USE_INPUT ? speed : k == 0 ? a : b;
    }
    if (p->uses[0].kind == CRD_USE_PAIR) { x[0] = a - b; }
    const double y = crdi_law_eval(p->law, x, g, p->memory);
    const double exact = crd_expression_eval(p->e, x, 0, want);
    check(y == crdi_law_eval(p->law, x, NULL, p->memory) || p->memory[0] <= 17);
    if (isnan(exact)) {
        check(isnan(y));
        return false;
    }
    check(y == exact || fabs(y - exact) <= 2e-13 * fabs(exact));
    double scale = 0;
    for (int k = 0; k < p->count; k++) {
        scale = fmax(scale, p->uses[k].kind == CRD_USE_INPUT ? 0 : fabs(want[k]));
    }
    for (int k = 0; k < p->count; k++) {
        if (p->uses[k].kind == CRD_USE_INPUT) { continue; }
        check(fabs(g[k] - want[k]) <= 1e-8 * scale + 1e-10 * fabs(exact / (fabs(a) + fabs(b))));
    }
    return y != exact;
}

static void a_table_is_as_exact_as_its_expression(void** s)
{
    (void)s;
    const char* const laws[] = {
        "gap((v(a)+v(b))/2,speed)",
        "gap(sqrt(v(a)*v(b)),speed)",
        "1+exp(-v(a,b)/40)+2/(3+cos(v(a,b)/100))+atan(v(a,b)/50)^2",
        "v(a)+v(b) > 700 ? 2+tanh((v(a)+v(b))/300)+sqrt(v(a)+v(b)) : 3+log10(v(a)+v(b))",
    };
    for (size_t i = 0; i < sizeof laws / sizeof *laws; i++) {
        probe p = make(laws[i]);
        int tabled = 0;
        check(p.law);
        for (int k = 0; k < 20000; k++) {
            const double a = 280 + 0.01 * k, b = 300 + 40 * sin(0.001 * k);
            tabled += differs(&p, a, b, 1570);
        }
        check(tabled > 2000); // the table was in use
        clear(&p);
    }
}

// Both thresholds of the correlation, crossed slowly and back, and met within a rounding
static void no_branch_is_jumped_over(void** s)
{
    (void)s;
    static const double speeds[] = {240, 150, 100, 1570};
    for (int i = 0; i < 4; i++) {
        probe p = make("gap(v(a),speed)");
        for (int k = 0; k < 40000; k++) {
            differs(&p, 380 + 150 * sin(0.0007 * k), 0, speeds[i]);
        }
        clear(&p);
    }
    probe p = make("v(a) < 350 ? 1+exp(v(a)/300)+v(a)^1.3 : 2+exp(v(a)/200)+v(a)^1.7");
    for (int k = -1000; k <= 1000; k++) {
        differs(&p, 350 + k * 0x1p-44, 0, 0);
    }
    clear(&p);
}

static void inputs_may_change_at_any_time(void** s)
{
    (void)s;
    probe p = make("gap((v(a)+v(b))/2,speed)");
    for (int k = 0; k < 20000; k++) {
        differs(&p, 300 + 0.01 * k, 310, 200 + (k % 700 < 300 ? k % 7 : k / 700) * 100);
    }
    clear(&p);
}

static void what_has_no_value_or_is_near_zero_stays_so(void** s)
{
    (void)s;
    probe p = make("exp(v(a))+sqrt(v(a))+ln(v(a)+2)+tanh(v(a))^0.3");
    const double at[] = {0, -0.0, 1e-310, -1, -5, (double)NAN, 1e-30, 1e300, 1, 2};
    check(p.law);
    for (int k = 0; k < 100; k++) {
        double x = at[k % 10], g;
        const double y = crdi_law_eval(p.law, &x, &g, p.memory);
        const double want = crd_expression_eval(p.e, &x, 0, NULL);
        check((isnan(y) && isnan(want)) || y == want || fabs(y - want) <= 1e-13 * fabs(want));
    }
    clear(&p);
}

static void there_is_no_table_where_there_is_no_neck(void** s)
{
    (void)s;
    const char* const laws[] = {"1k+v(a)", "exp(v(a))+exp(v(b))+exp(v(a)*v(b))+1",
                                "gap(v(a),speed)+sin(time)", "gap(v(a),v(b))",
                                "1+speed^1.5*exp(speed)*tanh(speed)"};
    for (size_t i = 0; i < sizeof laws / sizeof *laws; i++) {
        probe p = make(laws[i]);
        check(!p.law);
        check_int(crdi_law_numbers(p.law), 0);
        clear(&p);
    }
}

static void every_allocation_may_fail(void** s)
{
    (void)s;
    crd_context* plain = crd_context_create(NULL);
    crd_netlist* n = parse(plain, "gap((v(a)+v(b))/2,speed)");
    bool done = false;
    for (int64_t at = 0; !done; at++) {
        check_allocator a = {.fail_at = -1};
        crd_context* ctx = check_context(&a);
        crd_arena arena;
        crdi_law* law = NULL;
        crd_arena_init(&arena, ctx);
        a.fail_at = a.allocations + at;
        const crd_status st = crdi_law_create(&arena, n->expressions[0], &law);
        check(st == CRD_OK || (st == CRD_E_MEMORY && !law));
        done = st == CRD_OK;
        crd_arena_clear(&arena);
        a.fail_at = -1;
        crd_context_destroy(ctx);
        check_int(a.live, 0);
    }
    crd_netlist_destroy(n);
    crd_context_destroy(plain);
}

static void go(crd_circuit* c, int steps)
{
    for (int k = 0; k < steps; k++) {
        check_ok(crd_circuit_step(c));
    }
}

// Also in another circuit, which has never made a cell
static void a_restored_state_goes_on_with_the_same_bits(void** s)
{
    (void)s;
    crd_context* ctx = crd_context_create(NULL);
    crd_netlist* n = parse(ctx, "1k*gap((v(a)+v(b))/2,speed)");
    for (int begin = 1; begin < 400; begin += 7) {
        crd_circuit_options o = crd_circuit_defaults();
        crd_circuit *c = NULL, *other = NULL;
        o.form = CRD_FORM_NODAL;
        o.method = CRD_METHOD_TR;
        o.step = 1e-3;
        check_ok(crd_circuit_create(ctx, n, &o, &c));
        check_ok(crd_circuit_create(ctx, n, &o, &other));
        check_ok(crd_circuit_begin(c, 0));
        check_ok(crd_circuit_begin(other, 0));
        void* state = malloc(crd_circuit_state_size(c));
        go(c, begin);
        crd_circuit_save(c, state);
        go(c, 50);
        crd_circuit_restore(other, state);
        go(other, 50);
        const double want[2] = {crd_circuit_voltage(c, 1), crd_circuit_voltage(c, 2)};
        crd_circuit_restore(c, state);
        go(c, 50);
        for (int k = 0; k < 2; k++) {
            check(crd_circuit_voltage(c, k + 1) == want[k]);
            check(crd_circuit_voltage(other, k + 1) == want[k]);
        }
        free(state);
        crd_circuit_destroy(c);
        crd_circuit_destroy(other);
    }
    crd_netlist_destroy(n);
    crd_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_is_as_exact_as_its_expression),
        cmocka_unit_test(no_branch_is_jumped_over),
        cmocka_unit_test(inputs_may_change_at_any_time),
        cmocka_unit_test(what_has_no_value_or_is_near_zero_stays_so),
        cmocka_unit_test(there_is_no_table_where_there_is_no_neck),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(a_restored_state_goes_on_with_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
