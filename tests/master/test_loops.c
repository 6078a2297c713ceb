// Algebraic loops at the start that are hard for Newton's method.
#include "models.h"

// y = u - atan(a u) / a, so that y = u is atan(a u) = 0.
static void bend_outputs(void* self, double t)
{
    gain* g = self;
    (void)t;
    g->y = g->u - atan(g->a * g->u) / g->a;
}

static crd_model_status bend_initialize(void* self, const crd_model_host* host, double t)
{
    (void)host;
    bend_outputs(self, t);
    return CRD_MODEL_OK;
}

// The loop from the given start; its only solution is 0.
static crd_loop_report solve(const char* a, const char* start)
{
    crd_model bend = plain_gain_model;
    bend.initialize = bend_initialize;
    bend.outputs = bend_outputs;
    crd_context* ctx = crd_context_create(NULL);
    crd_system* s = new_system(ctx, 0.1, 1);
    const int p = add_unit(s, "p", &bend, 0), q = add_unit(s, "q", &plain_gain_model, 0);
    set(s, p, "a", a);
    set(s, p, "u", start);
    set(s, q, "u", start);
    wire(s, p, "y", q, "u");
    wire(s, q, "y", p, "u");
    crd_master* m = NULL;
    check_run(crd_master_create(ctx, s, NULL, &m), ctx);
    check_run(crd_master_initialize(m), ctx);
    check_near(value(m, "p.y"), 0, 1e-9);
    check_int(crd_master_get_report(m)->loop_count, 1);
    const crd_loop_report l = crd_master_get_report(m)->loops[0];
    check(l.newton && l.converged && l.residual <= s->run.loop_tolerance);
    crd_master_destroy(m);
    crd_system_destroy(s);
    crd_context_destroy(ctx);
    return l; // its text is gone
}

// Whole steps of Newton's method lead from 0.03 to -0.095, 1.3, -268, ...
static void newton_takes_a_part_of_a_step_that_leads_away(void** state)
{
    (void)state;
    const crd_loop_report l = solve("100", "0.03");
    check(l.iterations >= 2 && l.iterations <= 10);
}

// Far from 0 whole steps run away, and |y - u| <= pi/2 is nothing beside |u|.
static void a_loop_that_runs_away_is_not_taken_for_solved(void** state)
{
    (void)state;
    (void)solve("1", "20");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(newton_takes_a_part_of_a_step_that_leads_away),
        cmocka_unit_test(a_loop_that_runs_away_is_not_taken_for_solved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
