// Expressions: values against numbers computed elsewhere, derivatives against differences.
#include "check.h"
#include "circuit/expression.h"

#include <stdio.h>
#include <strings.h>

// v(a), v(b), v(c), i(v1) and time of the table below
enum { A, B, C, I, COUNT };
static const double values[COUNT] = {0.7, -1.3, 2.9, 0.25};
static const double now = 0.4;

static crd_status find_use(void* user, const crdi_scan* at, crd_use_kind kind, crdi_word a,
                           crdi_word b, crd_use* out, bool* found)
{
    (void)user, (void)at;
    *found = kind != CRD_USE_INPUT || crdi_word_is(a, "speed");
    *out = (crd_use){kind, *a.p == '0' ? -1 : (*a.p | 0x20) - 'a', -1};
    if (kind == CRD_USE_PAIR) { out->b = *b.p - 'a'; }
    if (kind == CRD_USE_CURRENT) { out->a = I; }
    return CRD_OK;
}

static crd_status find_parameter(void* user, const crdi_scan* at, crdi_word name, double* value,
                                 bool* found)
{
    (void)user, (void)at;
    *found = crdi_word_is(name, "r0");
    *value = 47;
    return CRD_OK;
}

static const crdi_function* find_function(void* user, crdi_word name)
{
    crdi_function* f = user;
    static const char body[] = "x+x}";
    static const char argument[] = "x";
    *f = (crdi_function){"twice", {{argument, 1}}, 1, {0}};
    f->body = (crdi_scan){NULL, body, body, body + 4, "f", 1};
    return crdi_word_is(name, "twice") ? f : NULL;
}

typedef struct fixture {
    check_allocator memory;
    crd_context* ctx;
    crdi_builder builder;
    crd_arena arena;
    crdi_function function;
} fixture;

static int set_up(void** state)
{
    static fixture f;
    f.ctx = check_context(&f.memory);
    crdi_builder_init(&f.builder, f.ctx);
    crd_arena_init(&f.arena, f.ctx);
    *state = &f;
    return 0;
}

static int tear_down(void** state)
{
    fixture* f = *state;
    crdi_builder_clear(&f->builder);
    crd_arena_clear(&f->arena);
    crd_context_destroy(f->ctx);
    check_int(f->memory.live, 0);
    return 0;
}

static crd_status read_n(fixture* f, const char* text, size_t n, bool constant, double* value,
                         crd_expression** e)
{
    crdi_scan s = {f->ctx, text, text, text + n, "x.cir", 7};
    crdi_names names = {.user = &f->function, .parameter = find_parameter, .why = "a parameter"};
    names.function = find_function;
    names.temperature = 300.15;
    if (!constant) { names.use = find_use; }
    crd_status st = crdi_expression_read(&f->builder, &s, &names, &f->arena, false, value, e);
    if (st == CRD_OK && !crdi_scan_end(&s)) {
        st = crdi_scan_fail(&s, CRD_E_FORMAT, "rest %s", crdi_word_clip(crdi_scan_look(&s)).text);
    }
    return st;
}

static crd_status read_text(fixture* f, const char* text, double* value, crd_expression** e)
{
    return read_n(f, text, strlen(text), false, value, e);
}

// The values that an expression uses, from the table
static double eval_at(const crd_expression* e, const double x[COUNT], double* gradient)
{
    const crd_use* uses;
    double v[32];
    const int n = crd_expression_uses(e, &uses);
    check(n <= 32);
    for (int i = 0; i < n; i++) {
        v[i] = uses[i].a < 0 ? 0 : x[uses[i].a];
        if (uses[i].kind == CRD_USE_PAIR) { v[i] -= x[uses[i].b]; }
    }
    return crd_expression_eval(e, v, now, gradient);
}

static const struct {
    const char* text;
    double value;
} rows[] = {
    {"1+2*3", 7.0},
    {"-2^2", -4.0},
    {"2^3^2", 512.0},
    {"2**-1", 0.5},
    {"7%4", 3.0},
    {"(1+2)*3", 9.0},
    {"10k+1meg+2mil", 1010000.0000508},
    {"3.3uF", 3.3e-06},
    {"1e3", 1000.0},
    {"1e-3k", 1.0},
    {"5a", 5e-18},
    {"1 ? 2 : 1/0", 2.0},
    {"0 ? ln(0) : 4", 4.0},
    {"1<2 && 2>=2", 1.0},
    {"!(1==1) || 0", 0.0},
    {"3<>4", 1.0},
    {"3!=3", 0.0},
    {"min(3,-2)", -2.0},
    {"max(3,-2)", 3.0},
    {"limit(7,1,5)", 5.0},
    {"limit(-7,1,5)", 1.0},
    {"int(-2.7)", -2.0},
    {"floor(-2.7)", -3.0},
    {"ceil(-2.7)", -2.0},
    {"u(0)", 0.5},
    {"u(3)", 1.0},
    {"u(-3)", 0.0},
    {"uramp(-1)", 0.0},
    {"uramp(2.5)", 2.5},
    {"sgn(-9)", -1.0},
    {"pwr(-2,2)", -4.0},
    {"pow(-2,3)", -8.0},
    {"(-2)^0.5", 1.4142135623730951},
    {"log10(1000)", 3.0},
    {"ln(2)", 0.6931471805599453},
    {"log(2)", 0.6931471805599453},
    {"table(2.5,1,10,2,20,3,40)", 30.0},
    {"table(9,1,10,2,20,3,40)", 40.0},
    {"pwl(4,1,10,2,20,3,40)", 60.0},
    {"pwl(0,1,10,2,20)", 0.0},
    {"pi", 3.141592653589793},
    {"temp", 27.0},
    {"atan2(1,-1)", 2.356194490192345},
    {"1?2:0?3:4", 2.0},
    {"0?2:0?3:4", 4.0},
    {"--3", 3.0},
    {"-+-3", 3.0},
    {"v(a)+v(b)*v(c)", -3.0700000000000003},
    {"v(a,b)", 2.0},
    {"i(v1)*v(a)", 0.175},
    {"time*v(a)", 0.27999999999999997},
    {"v(c)/v(b)", -2.230769230769231},
    {"v(c)%v(a)", 0.10000000000000009},
    {"v(c)^v(a)", 2.107068228024711},
    {"v(b)^3", -2.197},
    {"v(b)^2", 1.6900000000000002},
    {"v(b)^0.5", 1.140175425099138},
    {"pwr(v(b),1.5)", -1.4822280526288794},
    {"pow(v(b),2.5)", 1.9268964684175434},
    {"2^v(b)", 0.40612619817811774},
    {"sin(v(a))", 0.644217687237691},
    {"cos(v(a))", 0.7648421872844885},
    {"tan(v(a))", 0.8422883804630794},
    {"asin(v(a))", 0.775397496610753},
    {"acos(v(a))", 0.7953988301841436},
    {"atan(v(b))", -0.9151007005533605},
    {"atan2(v(a),v(b))", 2.647651284670212},
    {"sinh(v(b))", -1.698382437292616},
    {"cosh(v(b))", 1.9709142303266285},
    {"tanh(v(b))", -0.8617231593133063},
    {"asinh(v(b))", -1.078451058954897},
    {"acosh(v(c))", 1.726710865622892},
    {"atanh(v(a))", 0.8673005276940531},
    {"exp(v(b))", 0.2725317930340126},
    {"ln(v(c))", 1.0647107369924282},
    {"log10(v(c))", 0.4623979978989561},
    {"sqrt(v(c))", 1.70293863659264},
    {"abs(v(b))", 1.3},
    {"min(v(a),v(b))", -1.3},
    {"max(v(a),v(b))", 0.7},
    {"limit(v(c),v(b),v(a))", 0.7},
    {"limit(v(a),v(b),v(c))", 0.7},
    {"u(v(b))", 0.0},
    {"uramp(v(a))", 0.7},
    {"sgn(v(b))", -1.0},
    {"v(b)>0 ? sqrt(v(b)) : v(b)*v(a)", -0.9099999999999999},
    {"v(a)<v(b)", 0.0},
    {"table(v(a),0,1,1,3,2,7)", 2.4},
    {"table(v(c),0,1,1,3,2,7)", 7.0},
    {"pwl(v(c),0,1,1,3,2,7)", 10.6},
    {"-v(a)^2", -0.48999999999999994},
    {"!v(a)", 0.0},
    {"exp(-v(a)*v(a))*sin(3*v(c)+v(b)/v(a))", 0.325248333584983},
    {"1e-15*(exp(v(a)/(1.5*25.85m))-1)", 6.922475599835844e-08},
    {"ternary_fcn(v(a)>1,v(b),v(c))", 2.9},
    {"floor(v(c))+ceil(v(b))+int(v(b))", 0.0},
    {"twice(v(a)+1)*twice(3)", 20.4},
    {"v(0)+v(a)", 0.7},
};

static void values_are_those_computed_elsewhere(void** state)
{
    fixture* f = *state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double value;
        crd_expression* e = NULL;
        const crd_status st = read_text(f, rows[i].text, &value, &e);
        if (st < 0) { fail_msg("%s: %s", rows[i].text, crd_error_text(f->ctx)); }
        if (e) { value = eval_at(e, values, NULL); }
        if (!(fabs(value - rows[i].value) <= 1e-14 * (1e-3 + fabs(rows[i].value)))) {
            fail_msg("%s = %.17g, expected %.17g", rows[i].text, value, rows[i].value);
        }
    }
}

static void derivatives_are_those_of_small_differences(void** state)
{
    fixture* f = *state;
    int tried = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double value, gradient[32];
        crd_expression* e = NULL;
        check_ok(read_text(f, rows[i].text, &value, &e));
        if (!e) { continue; }
        const crd_use* uses;
        const int n = crd_expression_uses(e, &uses);
        (void)eval_at(e, values, gradient);
        double v[32], g[32];
        for (int k = 0; k < n; k++) {
            v[k] = uses[k].a < 0 ? 0 : values[uses[k].a];
            if (uses[k].kind == CRD_USE_PAIR) { v[k] -= values[uses[k].b]; }
        }
        for (int k = 0; k < n; k++) {
            const double at = v[k], h = 1e-4;
            double y[4];
            for (int m = 0; m < 4; m++) { // order 4
                static const double steps[] = {-2, -1, 1, 2};
                v[k] = at + steps[m] * h;
                y[m] = crd_expression_eval(e, v, now, g);
            }
            v[k] = at;
            const double d = (y[0] - 8 * y[1] + 8 * y[2] - y[3]) / (12 * h);
            if (!(fabs(d - gradient[k]) <= 1e-9 * (1 + fabs(d)))) {
                fail_msg("%s: derivative %d is %.12g, by differences %.12g", rows[i].text, k,
                         gradient[k], d);
            }
            tried++;
        }
    }
    check(tried > 50);
}

static void what_is_used_is_listed_once(void** state)
{
    fixture* f = *state;
    double value;
    crd_expression* e;
    const crd_use* uses;
    check_ok(read_text(f, "v(a)*v(a)+v(a,b)+i(v1)-v(a)*speed", &value, &e));
    check_int(crd_expression_uses(e, &uses), 4);
    check_int(uses[0].kind, CRD_USE_NODE);
    check_int(uses[1].kind, CRD_USE_PAIR);
    check_int(uses[1].b, B);
    check_int(uses[2].kind, CRD_USE_CURRENT);
    check_int(uses[3].kind, CRD_USE_INPUT);
    // What a constant condition does not choose is not used.
    check_ok(read_text(f, "r0 > 100 ? v(a) : v(b)", &value, &e));
    check_int(crd_expression_uses(e, &uses), 1);
    check_int(uses[0].a, B);
}

static void the_branch_not_taken_does_not_touch_the_derivative(void** state)
{
    fixture* f = *state;
    double value, g[2];
    crd_expression* e;
    check_ok(read_text(f, "v(a) > 0 ? ln(v(a))/v(a) : v(b)", &value, &e));
    const double x[2] = {0, 3};
    check_near(crd_expression_eval(e, x, 0, g), 3, 0);
    check_near(g[0], 0, 0);
    check_near(g[1], 1, 0);
}

static void dividing_by_zero_while_running_is_infinite(void** state)
{
    fixture* f = *state;
    double value;
    crd_expression* e;
    check_ok(read_text(f, "1/v(a)", &value, &e));
    const double x = 0;
    check(isinf(crd_expression_eval(e, &x, 0, NULL)));
}

static void constants_are_folded(void** state)
{
    fixture* f = *state;
    double value;
    crd_expression* e;
    check_ok(read_n(f, "r0*(2+sqrt(9))", 14, true, &value, &e));
    check(!e);
    check_near(value, 235, 0);
}

static const struct {
    const char* text;
    crd_status status;
    const char* part;
} bad[] = {
    {"", CRD_E_FORMAT, "the end of the line"},
    {"1+", CRD_E_FORMAT, "a number or a name"},
    {"(1", CRD_E_FORMAT, "')'"},
    {"1)", CRD_E_FORMAT, "rest )"},
    {"1 ? 2", CRD_E_FORMAT, "':'"},
    {"foo", CRD_E_NOT_FOUND, "\"foo\""},
    {"foo(1)", CRD_E_UNSUPPORTED, "foo"},
    {"sin()", CRD_E_FORMAT, "\")\""},
    {"sin(1,2)", CRD_E_FORMAT, "1 argument"},
    {"min(1)", CRD_E_FORMAT, "','"},
    {"twice(1,2)", CRD_E_FORMAT, "')'"},
    {"1/0", CRD_E_RANGE, "divides 1 by 0"},
    {"v(a)+5/(2-2)", CRD_E_RANGE, "divides 5 by 0"},
    {"v(a)>0 ? 1/0 : 2", CRD_E_RANGE, "divides 1 by 0"},
    {"ln(0)", CRD_E_RANGE, "no finite value"},
    {"sqrt(-1)", CRD_E_RANGE, "no finite value"},
    {"exp(1000)", CRD_E_RANGE, "no finite value"},
    {"v()", CRD_E_FORMAT, "name of a node"},
    {"v(a,)", CRD_E_FORMAT, "name of a node"},
    {"i(a,b)", CRD_E_FORMAT, "')'"},
    {"table(v(a))", CRD_E_FORMAT, "0 numbers"},
    {"table(v(a),1)", CRD_E_FORMAT, "1 numbers"},
    {"table(v(a),1,2,1,3)", CRD_E_RANGE, "have to grow"},
    {"table(v(a),v(b),2)", CRD_E_RANGE, "constants"},
    {"10k4", CRD_E_FORMAT, "10k4"},
    {"1..2", CRD_E_FORMAT, "1..2"},
    {"1e999", CRD_E_FORMAT, "1e999"},
    {"10\xc3\xa4", CRD_E_FORMAT, "is not a number"},
    {"@", CRD_E_FORMAT, "@"},
};

static void bad_expressions_are_refused_with_their_line(void** state)
{
    fixture* f = *state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        double value;
        crd_expression* e;
        const crd_status st = read_text(f, bad[i].text, &value, &e);
        if (st != bad[i].status) {
            fail_msg("\"%s\" gave %s (%s), expected %s", bad[i].text, crd_status_name(st),
                     crd_error_text(f->ctx), crd_status_name(bad[i].status));
        }
        check_contains(crd_error_text(f->ctx), "x.cir:7: ");
        check_contains(crd_error_text(f->ctx), bad[i].part);
    }
    double value;
    crd_expression* e;
    check_status(read_n(f, "v(a)", 4, true, &value, &e), CRD_E_RANGE);
    check_contains(crd_error_text(f->ctx), "a parameter is a constant");
    check_status(read_n(f, "time", 4, true, &value, &e), CRD_E_RANGE);
}

static char* repeat(const char* head, const char* unit, size_t n, const char* tail)
{
    const size_t u = strlen(unit), h = strlen(head), t = strlen(tail);
    char* text = malloc(h + n * u + t + 1);
    memcpy(text, head, h);
    for (size_t i = 0; i < n; i++) {
        memcpy(text + h + i * u, unit, u);
    }
    memcpy(text + h + n * u, tail, t + 1);
    return text;
}

static void depth_and_length_are_bounded(void** state)
{
    fixture* f = *state;
    static const struct {
        const char *head, *unit, *tail;
        size_t n;
        crd_status status;
    } cases[] = {
        {"", "(", "1", 1000000, CRD_E_RANGE},       {"", "!", "1", 1000000, CRD_E_RANGE},
        {"1", "^1", "", 1000000, CRD_E_RANGE},      {"", "-", "1", 1000000, CRD_OK},
        {"1", "?1:1", "", 1000000, CRD_E_RANGE},    {"1", "+1", "", 1000000, CRD_OK},
        {"v(a)", "+v(a)", "", 1000, CRD_OK},        {"v(a)", "+v(a)", "", 10000, CRD_E_RANGE},
        {"v(a)", "+v(a)", "", 100000, CRD_E_RANGE}, {"", "sin(", "1", 100000, CRD_E_RANGE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char* text = repeat(cases[i].head, cases[i].unit, cases[i].n, cases[i].tail);
        double value = 0;
        crd_expression* e;
        const crd_status st = read_text(f, text, &value, &e);
        free(text);
        if (st != cases[i].status) {
            fail_msg("%s%s... gave %s", cases[i].head, cases[i].unit, crd_status_name(st));
        }
        if (st == CRD_OK && e) { check_near(eval_at(e, values, NULL), 1001 * 0.7, 1e-9); }
    }
    check_int(f->builder.depth, 0);
    check_int(f->builder.count, 0);
}

static void every_allocation_may_fail(void** state)
{
    for (int64_t fail_at = 1;; fail_at++) {
        fixture f = {0};
        f.ctx = check_context(&f.memory);
        crdi_builder_init(&f.builder, f.ctx);
        crd_arena_init(&f.arena, f.ctx);
        f.memory.fail_at = fail_at;
        double value;
        crd_expression* e;
        const crd_status st =
            read_text(&f, "table(v(a),0,1,2,3)+sin(v(b)*v(c)+1)+v(a,b)/i(v1)", &value, &e);
        crdi_builder_clear(&f.builder);
        crd_arena_clear(&f.arena);
        crd_context_destroy(f.ctx);
        check_int(f.memory.live, 0);
        if (st == CRD_OK) {
            check(fail_at > 3);
            return;
        }
        check_status(st, CRD_E_MEMORY);
    }
}

static void evaluation_does_not_allocate(void** state)
{
    fixture* f = *state;
    double value, gradient[32];
    crd_expression* e;
    check_ok(read_text(f, "table(v(a),0,1,2,3)+sin(v(b)*v(c)+1)", &value, &e));
    const int64_t before = f->memory.allocations;
    for (int i = 0; i < 100; i++) {
        (void)eval_at(e, values, gradient);
    }
    check_int(f->memory.allocations, before);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(values_are_those_computed_elsewhere),
        TEST(derivatives_are_those_of_small_differences),
        TEST(what_is_used_is_listed_once),
        TEST(the_branch_not_taken_does_not_touch_the_derivative),
        TEST(dividing_by_zero_while_running_is_infinite),
        TEST(constants_are_folded),
        TEST(bad_expressions_are_refused_with_their_line),
        TEST(depth_and_length_are_bounded),
        cmocka_unit_test(every_allocation_may_fail),
        TEST(evaluation_does_not_allocate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
