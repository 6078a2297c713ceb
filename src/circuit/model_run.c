// A circuit as a model: an instance, and its steps.
#include "circuit/model.h"
#include "shared/circuit_part.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// A step of the circuit may miss the end of the communication step by this part of itself; more,
// and the next ones are made as long as is needed.
static const double slack = 1e-6;
static const double most_steps = 1e9; // in a communication step

struct crdi_circuit_run {
    crd_context* ctx; // of its own
    const crdi_circuit_model* model;
    crd_netlist* netlist; // NULL: the model's
    crd_circuit* circuit;
    double* values; // of the parameters that the netlist was read with
    double step;    // the parameter
    double inner;   // the circuit's present step
    void* before;   // room for a state, to go back to
    bool sure;      // linear: no step fails, nobody goes back
};

static void model_run_destroy(crdi_circuit_run* run)
{
    if (!run) { return; }
    crd_context* ctx = run->ctx;
    crd_circuit_destroy(run->circuit);
    crd_netlist_destroy(run->netlist);
    crd_free(ctx, run->values);
    crd_free(ctx, run->before);
    crd_free(ctx, run);
    crd_context_destroy(ctx);
}

void crdi_circuit_model_clear(void* self)
{
    crdi_circuit_self* own = self;
    model_run_destroy(own->run);
    own->run = NULL;
}

// ---- netlist and circuit -----------------------------------------------------------------------

// The netlist once more, with the parameters as they are set.
static crd_status read_again(crdi_circuit_run* run)
{
    crd_status st = CRD_OK;
    const crdi_circuit_model* m = run->model;
    crd_arena arena;
    crd_arena_init(&arena, run->ctx);
    const char** defines = crdi_arena_new(&arena, (size_t)m->parameter_count, sizeof *defines);
    CRD_TRY(defines ? CRD_OK : CRD_E_MEMORY);
    for (int i = 0; i < m->parameter_count; i++) {
        if (!isfinite(run->values[i])) {
            CRD_TRY(crdi_fail(run->ctx, CRD_E_RANGE, "parameter %s = %g, expected a finite value",
                              m->names[i], run->values[i]));
        }
        defines[i] = crdi_arena_format(&arena, "%s=%.17g", m->names[i], run->values[i]);
        CRD_TRY(defines[i] ? CRD_OK : CRD_E_MEMORY);
    }
    const crd_netlist_options o = {.defines = defines, .define_count = m->parameter_count};
    CRD_TRY(crd_netlist_parse(run->ctx, m->text, m->length, m->file, &o, &run->netlist));
fail:
    crd_arena_clear(&arena);
    return st;
}

static crd_status model_run_bring_up(crdi_circuit_run* run)
{
    crd_status st = CRD_OK;
    const crdi_circuit_model* m = run->model;
    const size_t count = (size_t)m->parameter_count;
    if (!(run->step > 0 && isfinite(run->step))) {
        return crdi_fail(run->ctx, CRD_E_RANGE, "step = %g s, expected > 0", run->step);
    }
    if (memcmp(run->values, m->starts, count * sizeof *run->values) != 0) {
        CRD_TRY(read_again(run));
    }
    crd_circuit_options o = crd_circuit_defaults();
    o.method = m->method;
    o.step = run->inner = run->step;
    CRD_TRY(
        crd_circuit_create(run->ctx, run->netlist ? run->netlist : m->netlist, &o, &run->circuit));
    run->before = crdi_new(run->ctx, crd_circuit_state_size(run->circuit));
    if (!run->before) { st = CRD_E_MEMORY; }
    run->sure = strcmp(crd_circuit_form_name(run->circuit), "nodal") == 0 &&
                crd_circuit_get_structure(run->circuit).ports == 0 &&
                m->netlist->expression_count == 0;
fail:
    return st;
}

static bool model_run_fits(void* self, const crdi_circuit_model* m)
{
    const crdi_circuit_self* own = self;
    const size_t bytes = (size_t)m->parameter_count * sizeof(double);
    return own->run && own->run->step == own->step &&
           memcmp(own->run->values, crdi_model_field(self, m->parameters), bytes) == 0;
}

// An instance has a circuit of its parameters. The circuit's own memory is the context's.
static crd_model_status provide(void* self, const crd_model_host* host)
{
    crdi_circuit_self* own = self;
    const crdi_circuit_model* m = host->model->user;
    if (model_run_fits(self, m)) { return CRD_MODEL_OK; }
    crdi_circuit_model_clear(self);
    const size_t count = (size_t)m->parameter_count;
    crd_context* ctx = crdi_context_child(m->ctx);
    crdi_circuit_run* run = ctx ? crdi_new(ctx, sizeof *run) : NULL;
    double* values = run ? crdi_new_array(ctx, count, sizeof *values) : NULL;
    if (!values) {
        if (run) { crd_free(ctx, run); }
        crd_context_destroy(ctx);
        return crdi_model_refuse(host, CRD_MODEL_ERROR, "out of memory: the circuit");
    }
    *run = (crdi_circuit_run){.ctx = ctx, .model = m, .values = values, .step = own->step};
    if (count) { memcpy(values, crdi_model_field(self, m->parameters), count * sizeof *values); }
    own->run = run;
    if (model_run_bring_up(run) < 0) {
        crdi_model_refuse(host, CRD_MODEL_ERROR, crd_error_text(ctx));
        crdi_circuit_model_clear(self);
        return CRD_MODEL_ERROR;
    }
    return CRD_MODEL_OK;
}

// ---- values ------------------------------------------------------------------------------------

// The inputs from `from` to `tau` behind the beginning of the step.
static crd_status model_run_set_inputs(void* self, double from, double tau)
{
    const crdi_circuit_run* run = ((const crdi_circuit_self*)self)->run;
    const crdi_circuit_model* m = run->model;
    for (int i = 0; i < m->netlist->input_count; i++) {
        const crd_status st =
            crdi_circuit_set_ramp(run->circuit, i, crdi_model_input_at(self, m->inputs, i, from),
                                  crdi_model_input_at(self, m->inputs, i, tau));
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

void crdi_circuit_model_outputs(void* self, double t)
{
    (void)t;
    const crdi_circuit_run* run = ((const crdi_circuit_self*)self)->run;
    if (!run) { return; } // its initialisation failed
    const crdi_circuit_model* m = run->model;
    (void)model_run_set_inputs(self, 0, 0); // those that outputs name themselves
    for (int i = 0; i < m->netlist->output_count; i++) {
        double* y = crdi_model_field(self, m->outputs) + (ptrdiff_t)i * CRDI_MODEL_STRIDE;
        y[0] = crd_circuit_get_output(run->circuit, i);
        y[1] = crd_circuit_get_output_derivative(run->circuit, i);
    }
}

crd_model_status crdi_circuit_model_initialize(void* self, const crd_model_host* host, double t)
{
    const crd_model_status st = provide(self, host);
    if (st != CRD_MODEL_OK) { return st; }
    crdi_circuit_run* run = ((crdi_circuit_self*)self)->run;
    if (model_run_set_inputs(self, 0, 0) < 0 || crd_circuit_begin(run->circuit, t) < 0) {
        return crdi_model_refuse(host, CRD_MODEL_ERROR, crd_error_text(run->ctx));
    }
    return CRD_MODEL_OK;
}

// ---- steps -------------------------------------------------------------------------------------

typedef struct plan {
    int64_t count; // steps of the circuit
    double step;   // and how long they are
} plan;

static crd_status model_run_make_plan(const crdi_circuit_run* run, double end, plan* out)
{
    const double way = end - crd_circuit_time(run->circuit);
    const double n = fmax(1, ceil(way / run->step - slack));
    if (!(way > 0) || !(n <= most_steps)) {
        return crdi_fail(run->ctx, CRD_E_RANGE,
                         "the way to %.10g s takes %.3g steps of %g s, expected 1 to %g", end, n,
                         run->step, most_steps);
    }
    // The present step or that of the parameter where they fit: a difference of times has lost
    // their last bits.
    double step = way / n;
    if (fabs(way - n * run->step) <= slack * run->step) { step = run->step; }
    if (fabs(way - n * run->inner) <= slack * run->inner) { step = run->inner; }
    *out = (plan){(int64_t)n, step};
    return CRD_OK;
}

static crd_status change_step(crdi_circuit_run* run, double step)
{
    if (step == run->inner) { return CRD_OK; }
    const crd_status st = crd_circuit_set_step(run->circuit, step);
    if (st == CRD_OK) { run->inner = step; }
    return st;
}

static crd_status go(void* self, crdi_circuit_run* run, const plan* p)
{
    crd_status st = CRD_OK;
    CRD_TRY(change_step(run, p->step));
    for (int64_t i = 0; i < p->count; i++) {
        CRD_TRY(model_run_set_inputs(self, (double)i * p->step, ((double)i + 1) * p->step));
        CRD_TRY(crd_circuit_step(run->circuit));
    }
fail:
    return st;
}

static crd_status go_back(crdi_circuit_run* run, const void* state, double step)
{
    const crd_status st = change_step(run, step);
    if (st < 0) { return st; }
    crd_circuit_restore(run->circuit, state);
    (void)crd_circuit_get_output_derivative(run->circuit, 0); // a new circuit keeps no past unasked
    return CRD_OK;
}

crd_model_status crdi_circuit_model_step(void* self, const crd_model_host* host, double t, double h,
                                         double* reached)
{
    (void)reached;
    crdi_circuit_run* run = ((crdi_circuit_self*)self)->run;
    plan p = {0};
    if (!run) { return crdi_model_refuse(host, CRD_MODEL_ERROR, "the circuit is not initialised"); }
    const double inner = run->inner;
    crd_status st = model_run_make_plan(run, t + h, &p);
    if (st < 0) { return crdi_model_refuse(host, CRD_MODEL_ERROR, crd_error_text(run->ctx)); }
    const bool lonely = p.count == 1 && p.step == inner; // then the circuit goes back by itself
    const bool saved = !lonely && !run->sure;
    if (saved) { crd_circuit_save(run->circuit, run->before); }
    st = go(self, run, &p);
    if (st == CRD_OK) { return CRD_MODEL_OK; }
    const bool again = st == CRD_E_CONVERGENCE && (lonely || saved); // a shorter step may do
    const crd_model_status out = again ? CRD_MODEL_DISCARD : CRD_MODEL_ERROR;
    crdi_model_refuse(host, out, crd_error_text(run->ctx));
    return saved && go_back(run, run->before, inner) < 0 ? CRD_MODEL_ERROR : out;
}

// ---- states ------------------------------------------------------------------------------------

typedef struct head { // in front of the circuit's own bytes
    double inner;
    uint64_t sum; // over it and them: what comes from a file may be torn
} head;

static uint64_t sum_of(double inner, const char* bytes, size_t size)
{
    uint64_t sum = 0;
    memcpy(&sum, &inner, sizeof sum);
    return crdi_model_sum((sum ^ CRDI_MODEL_SUM) * 0x100000001b3u, bytes, size);
}

size_t crdi_circuit_model_outside(const void* self)
{
    const crdi_circuit_run* run = ((const crdi_circuit_self*)self)->run;
    return run ? sizeof(head) + crd_circuit_state_size(run->circuit) : 0;
}

void crdi_circuit_model_save(const void* self, void* state)
{
    const crdi_circuit_run* run = ((const crdi_circuit_self*)self)->run;
    char* bytes = (char*)state + sizeof(head);
    crd_circuit_save(run->circuit, bytes);
    const head h = {run->inner, sum_of(run->inner, bytes, crd_circuit_state_size(run->circuit))};
    memcpy(state, &h, sizeof h);
}

crd_model_status crdi_circuit_model_restore(void* self, const crd_model_host* host,
                                            const void* state, size_t size)
{
    head h;
    if (size == 0) { // before the initialisation
        crdi_circuit_model_clear(self);
        return CRD_MODEL_OK;
    }
    const crd_model_status st = provide(self, host);
    if (st != CRD_MODEL_OK) { return st; }
    crdi_circuit_run* run = ((crdi_circuit_self*)self)->run;
    if (size != crdi_circuit_model_outside(self)) {
        return crdi_model_refuse(host, CRD_MODEL_ERROR, "this is no state of this circuit");
    }
    const char* bytes = (const char*)state + sizeof h;
    memcpy(&h, state, sizeof h);
    if (!(h.inner > 0 && isfinite(h.inner)) || h.sum != sum_of(h.inner, bytes, size - sizeof h)) {
        return crdi_model_refuse(host, CRD_MODEL_ERROR, "this state of the circuit is damaged");
    }
    return go_back(run, bytes, h.inner) == CRD_OK
               ? CRD_MODEL_OK
               : crdi_model_refuse(host, CRD_MODEL_ERROR, crd_error_text(run->ctx));
}
