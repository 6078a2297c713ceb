// Rodriguez 2021, ch. 3: references of the benchmark circuits, what their runs cost, rows.
#include "check.h"

#include "prints.h"
#include "reproduce/circuits.h"
#include "shared/reproduce.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// Rows of a file whose first column is the time; columns y and z are compared.
static void compare(const crdi_bench* b, const crdi_samples* s, const char* file, int y, int z,
                    double offset, double dy, double dz)
{
    char path[512], line[1024];
    snprintf(path, sizeof path, "%s/circuit/data/%s", TEST_SOURCE_DIR, file);
    FILE* f = fopen(path, "r");
    if (!f) { fail_msg("%s: cannot be read", path); }
    int rows = 0;
    check(fgets(line, sizeof line, f) != NULL);
    while (fgets(line, sizeof line, f)) {
        double v[16] = {0};
        char* at = line;
        for (int i = 0; i < 16 && *at && *at != '\n'; i++) {
            v[i] = strtod(at, &at);
            if (*at == ',') { at++; }
        }
        if (v[0] == 0) { continue; }
        const long i = lround(v[0] / b->until * b->samples) - 1;
        check(i >= 0 && i < s->count);
        check_near(s->y[i] + offset, v[y], dy);
        check_near(s->z[i], v[z], dz);
        rows++;
    }
    fclose(f);
    check(rows >= 100);
}

static void references_are_those_of_other_programs(void** state)
{
    static const struct {
        crdi_problem problem;
        int loops, watched;
        const char* file;
        int y, z;
        double offset, dy, dz;
    } cases[] = {
        {CRDI_RLC, 0, 0, "rlc_reference.csv", 1, 2, 0, 1e-12, 1e-12},
        {CRDI_SCALABLE, 2, 2, "scrlc_N2_reference.csv", 1, 2, 0, 1e-12, 1e-12},
        {CRDI_SCALABLE, 2, 1, "scrlc_N2_reference.csv", 3, 4, 0, 1e-12, 1e-12},
        {CRDI_SCALABLE, 100, 1, "scrlc_N100_reference.csv", 3, 4, 0, 1e-9, 1e-9},
        // The smallest errors judged by it are 3e-7 V and 2e-6 A, 4e-8 K and 0.02 W.
        {CRDI_RECTIFIER, 0, 0, "rectifier_reference.csv", 1, 2, 0, 3e-11, 3e-12},
        {CRDI_MOTOR, 0, 0, "pmsm_reference.csv", 2, 10, 300, 3e-11, 1e-8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        crdi_bench b;
        crdi_samples s;
        crd_arena a;
        crd_arena_init(&a, *state);
        check_ok(crdi_bench_init(&b, *state, cases[i].problem, cases[i].loops, cases[i].watched));
        check_ok(crdi_bench_reference(&b, &a, &s));
        compare(&b, &s, cases[i].file, cases[i].y, cases[i].z, cases[i].offset, cases[i].dy,
                cases[i].dz);
        crdi_bench_clear(&b);
        crd_arena_clear(&a);
    }
}

static void a_run_has_a_cost(void** state)
{
    for (int problem = 0; problem < CRDI_PROBLEMS; problem++) {
        crdi_bench b;
        double cost[2] = {0, 0};
        check_ok(crdi_bench_init(&b, *state, (crdi_problem)problem, 20, 1));
        crd_circuit_options o = crd_circuit_defaults();
        o.step = 0.5 * b.until / b.samples;
        check_ok(crdi_bench_cost(&b, &o, 0, &cost[0]));
        check(cost[0] > 0 && cost[0] < 1000);
        o.step = -1;
        check_status(crdi_bench_cost(&b, &o, 0, &cost[1]), CRD_E_RANGE);
        crdi_bench_clear(&b);
    }
}

static void every_allocation_of_a_circuit_may_fail(void** state)
{
    for (int problem = 0; problem < CRDI_PROBLEMS; problem++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        const int64_t live = a.live;
        crd_status st = CRD_E_MEMORY;
        for (int64_t at = 0; st != CRD_OK; at++) {
            crdi_bench b;
            crdi_samples s;
            crd_arena arena;
            crd_arena_init(&arena, ctx);
            a.fail_at = a.allocations + at;
            st = crdi_bench_init(&b, ctx, (crdi_problem)problem, 3, 2);
            if (st == CRD_OK) { st = crdi_samples_init(&b, &arena, &s); }
            a.fail_at = -1;
            check(st == CRD_OK || st == CRD_E_MEMORY);
            crdi_bench_clear(&b);
            crd_arena_clear(&arena);
            check_int(a.live, live);
        }
        crd_context_destroy(ctx);
    }
}

static crdi_reproduction* quick(crd_context* ctx)
{
    crdi_reproduction* r = NULL;
    check_ok(crdi_reproduce_with(ctx, "rodriguez2021-ch3", &(crdi_reproduce_options){.quick = true},
                                 &r));
    return r;
}

// What print leaves open is known for every number: ours rounds to it, or the row says that not.
static void rows_keep_the_printed_digits_or_say_why_not(void** state)
{
    crdi_reproduction* r = quick(*state);
    int printed = 0, open = 0, figures = 0;
    check_prints(r, 49, 3, 2);
    for (int i = 0; i < r->claim_count; i++) {
        const crdi_claim* c = &r->claims[i];
        check(c->rule != CRDI_CLAIM_SHOWN); // nothing was timed
        if (!c->ok) { fail_msg("%s: ours %.9g, reference %.9g", c->id, c->ours, c->reference); }
        if (isnan(c->published) || strncmp(c->id, "table", 5) != 0) { continue; }
        const double unit = pow(10, floor(log10(fabs(c->published))) - 1); // of the second digit
        if (strstr(c->remark, "NOT ")) {
            open++;
        } else {
            printed++;
            check_near(c->ours, c->published, 0.5 * unit);
        }
    }
    for (int i = 0; i < r->figure_count; i++) {
        figures += strcmp(r->figures[i].id, "fig3.12a") == 0 ||
                   strcmp(r->figures[i].id, "fig3.12b") == 0 ||
                   strcmp(r->figures[i].id, "fig3.14") == 0;
    }
    check(printed >= 40);
    check(open >= 8);
    check_int(figures, 3);
    crdi_reproduction_destroy(r);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, check_set_up, check_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(references_are_those_of_other_programs),
        TEST(a_run_has_a_cost),
        cmocka_unit_test(every_allocation_of_a_circuit_may_fail),
        TEST(rows_keep_the_printed_digits_or_say_why_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
