// The coupling elements of the experiment: the published ones, the optimal one (Baumann 2024,
// sections 2.4 and 3.2.2), and networks that a previous run has taught (section 2.3).
#include "testbench/experiment.h"

#include "cardan/analysis.h"
#include "cardan/learn.h"

// The bands are those of the paper, eq. 43 and 44; relative degree r = 2, so that v = 1.
static crd_status find_optimum(crdi_bench_experiment* e)
{
    crd_goal g = crd_goal_defaults();
    g.dT = e->options.step;
    g.k = e->k;
    g.m = CRDI_EXPERIMENT_TAPS;
    g.phase = (crd_interval){0.1, 10};
    g.magnitude = (crd_interval){0.1, 55};
    g.omega_u = 10;
    return crd_goal_optimal(e->ctx, &g, e->optimal);
}

// ---- elements as texts -------------------------------------------------------------------------

static void experiment_design_put_numbers(crd_text* t, const double* x, int count)
{
    for (int i = 0; i < count; i++) {
        crdi_text_add(t, i ? ", " : "[");
        crdi_text_json_number(t, x[i]);
    }
    crdi_text_add(t, "]");
}

static void put_rows(crd_text* t, const double* x, int rows, int columns)
{
    for (int i = 0; i < rows; i++) {
        crdi_text_add(t, i ? ", " : "[");
        experiment_design_put_numbers(t, x + (size_t)i * (size_t)columns, columns);
    }
    crdi_text_add(t, "]");
}

crd_status crdi_experiment_keep(crdi_bench_experiment* e, crd_text* t, const char** out)
{
    *out = t->failed ? NULL : crdi_arena_text(&e->arena, t->data, t->length);
    crd_text_clear(t);
    return *out ? CRD_OK : CRD_E_MEMORY;
}

static crd_status element_of_network(crdi_bench_experiment* e, const crd_network* n,
                                     const char* name, const char** out)
{
    crd_text t;
    crd_text_init(&t, e->ctx);
    crdi_text_add(&t,
                  "{\"name\": \"%s\", \"algorithm\": \"network\", \"network\": {\"alpha\": ", name);
    crdi_text_json_number(&t, n->alpha);
    crdi_text_add(&t, ", \"W1\": ");
    put_rows(&t, n->W1, n->n1, n->m);
    crdi_text_add(&t, ", \"b1\": ");
    experiment_design_put_numbers(&t, n->b1, n->n1);
    crdi_text_add(&t, ", \"W2\": ");
    put_rows(&t, n->W2, n->n2, n->n1);
    crdi_text_add(&t, ", \"b2\": ");
    experiment_design_put_numbers(&t, n->b2, n->n2);
    crdi_text_add(&t, ", \"W3\": ");
    experiment_design_put_numbers(&t, n->W3, n->n2);
    crdi_text_add(&t, ", \"b3\": ");
    crdi_text_json_number(&t, n->b3);
    crdi_text_add(&t, "}}");
    return crdi_experiment_keep(e, &t, out);
}

crd_status crdi_experiment_design(crdi_bench_experiment* e)
{
    static const struct {
        crdi_bench_case which;
        const char* element;
    } words[] = {
        {CRDI_BENCH_ZOH, "{\"algorithm\": \"zoh\"}"},
        {CRDI_BENCH_FOH, "{\"algorithm\": \"foh\"}"},
        {CRDI_BENCH_EROS, "{\"algorithm\": \"eros\"}"},
        {CRDI_BENCH_FOH_SWITCH, "{\"algorithm\": \"foh+switch\"}"},
        {CRDI_BENCH_EROS_SWITCH, "{\"algorithm\": \"eros+switch\"}"},
        {CRDI_BENCH_FOH_ABOVE, "{\"algorithm\": \"foh+switch\", \"detect-band\": [0.25, 1]}"},
        {CRDI_BENCH_EROS_ABOVE, "{\"algorithm\": \"eros+switch\", \"detect-band\": [0.25, 1]}"},
        {CRDI_BENCH_AUTO, "{\"algorithm\": \"auto\", \"commands\": \"none\"}"},
        {CRDI_BENCH_COMMANDS,
         "{\"algorithm\": \"commands\", \"commands\": [\"bed.torque_request\", "
         "\"bed.speed_ref\", \"bed.torque_limit\"]}"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        e->runs[words[i].which].element = words[i].element;
    }
    const crd_status st = find_optimum(e);
    if (st < 0) { return st; }
    crd_text t;
    crd_text_init(&t, e->ctx);
    crdi_text_add(&t, "{\"name\": \"optimal\", \"algorithm\": \"linear\", \"weights\": {\"a\": ");
    experiment_design_put_numbers(&t, e->optimal, CRDI_EXPERIMENT_TAPS);
    crdi_text_add(&t, "}}");
    return crdi_experiment_keep(e, &t, &e->runs[CRDI_BENCH_OPTIMAL].element);
}

// ---- training ----------------------------------------------------------------------------------

// Two learning cycles of 100 epochs each, the second at a third of the rate; all else as Keras has
// it, for the paper does not say.
static crd_status descend(crdi_bench_experiment* e, const double* samples, const crd_network* start,
                          crd_network* out)
{
    crd_status st = CRD_OK;
    crd_network first = {0};
    crd_training_report report;
    crd_training t = crd_training_defaults();
    t.k = e->k;
    t.epochs = 100;
    t.stages = 1;
    t.batch = 32;
    t.rate = 1e-3;
    t.hold_out = 0;
    t.freeze_biases = false;
    t.drop_after_jump = false;
    t.protect = 0;
    t.seed = e->options.seed;
    CRD_TRY(crd_learn_train(e->ctx, &t, samples, e->count, start, &first, &report, NULL));
    t.rate = 3e-4;
    CRD_TRY(crd_learn_train(e->ctx, &t, samples, e->count, &first, out, &report, NULL));
fail:
    crd_network_clear(e->ctx, &first);
    return st;
}

static crd_status experiment_design_solve(crdi_bench_experiment* e, const double* samples,
                                          const crd_network* start, crd_network* out)
{
    crd_training_report report;
    crd_training t = crd_training_defaults();
    t.method = CRD_TRAIN_RIDGE;
    t.k = e->k;
    t.hold_out = 0;
    return crd_learn_train(e->ctx, &t, samples, e->count, start, out, &report, NULL);
}

crd_status crdi_experiment_train(crdi_bench_experiment* e, const double* samples)
{
    crd_status st = CRD_OK;
    crd_network start = {0}, descended = {0}, solved = {0};
    const crd_linear l = {CRDI_EXPERIMENT_TAPS, e->k, e->optimal, NULL, 0};
    CRD_TRY(crd_network_morph(e->ctx, &l, 0.01, &start));
    CRD_TRY(descend(e, samples, &start, &descended));
    CRD_TRY(experiment_design_solve(e, samples, &start, &solved));
    CRD_TRY(element_of_network(e, &descended, "trained", &e->runs[CRDI_BENCH_TRAINED].element));
    CRD_TRY(element_of_network(e, &solved, "least squares",
                               &e->runs[CRDI_BENCH_LEAST_SQUARES].element));
fail:
    crd_network_clear(e->ctx, &start);
    crd_network_clear(e->ctx, &descended);
    crd_network_clear(e->ctx, &solved);
    return st;
}
