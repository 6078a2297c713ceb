// Algebraic loops at the start that are hard for Newton's method.
#include "models.h"

// y = u - atan(100 u) / 100, so that y = u is atan(100 u) = 0.
static void bend_outputs(void* self, double t)
{
    gain* g = self;
    (void)t;
    g->y = g->u - atan(100 * g->u) / 100;
}

static crd_model_status bend_initialize(void* self, const crd_model_host* host, double t)
{
    (void)host;
    bend_outputs(self, t);
    return CRD_MODEL_OK;
}

// y = u - atan(u): far from 0 whole steps run away, and |y - u| <= pi/2 is nothing beside |u|.
static void slope_outputs(void* self, double t)
{
    gain* g = self;
    (void)t;
    g->y = g->u - atan(g->u);
}

static crd_model_status slope_initialize(void* self, const crd_model_host* host, double t)
{
    (void)host;
    slope_outputs(self, t);
    return CRD_MODEL_OK;
}

static void a_loop_that_runs_away_is_not_taken_for_solved(void** state)
{
    (void)state;
    crd_model slope = plain_gain_model;
    slope.initialize = slope_initialize;
    slope.outputs = slope_outputs;
    crd_context* ctx = crd_context_create(NULL);
    crd_system* s = new_system(ctx, 0.1, 1);
    const int p = add_unit(s, "p", &slope, 0), q = add_unit(s, "q", &plain_gain_model, 0);
    set(s, p, "u", "20");
    set(s, q, "u", "20");
    wire(s, p, "y", q, "u");
    wire(s, q, "y", p, "u");
    crd_master* m = NULL;
    check_run(crd_master_create(ctx, s, NULL, &m), ctx);
    check_run(crd_master_initialize(m), ctx);
    check_near(value(m, "p.y"), 0, 1e-9);
    crd_master_destroy(m);
    crd_system_destroy(s);
    crd_context_destroy(ctx);
}

// From u = 0.03 whole steps of Newton's method lead to -0.095, 1.3, -268, ...
static void newton_takes_a_part_of_a_step_that_leads_away(void** state)
{
    (void)state;
    crd_model bend = plain_gain_model;
    bend.initialize = bend_initialize;
    bend.outputs = bend_outputs;
    crd_context* ctx = crd_context_create(NULL);
    crd_system* s = new_system(ctx, 0.1, 1);
    const int p = add_unit(s, "p", &bend, 0), q = add_unit(s, "q", &plain_gain_model, 0);
    set(s, p, "u", "0.03");
    set(s, q, "u", "0.03");
    wire(s, p, "y", q, "u");
    wire(s, q, "y", p, "u");
    crd_master* m = NULL;
    check_run(crd_master_create(ctx, s, NULL, &m), ctx);
    check_run(crd_master_initialize(m), ctx);
    check_near(value(m, "p.y"), 0, 1e-9);
    const crd_loop_report* l = crd_master_get_report(m)->loops;
    check_int(crd_master_get_report(m)->loop_count, 1);
    check(l->newton && l->converged && l->iterations >= 2 && l->iterations <= 10);
    check(l->residual <= s->run.loop_tolerance);
    crd_master_destroy(m);
    crd_system_destroy(s);
    crd_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(newton_takes_a_part_of_a_step_that_leads_away),
        cmocka_unit_test(a_loop_that_runs_away_is_not_taken_for_solved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
