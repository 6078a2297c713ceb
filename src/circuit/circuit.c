// A circuit: what all forms share, and the choice of one.
#include "circuit/circuit.h"

#include <math.h>
#include <string.h>

crd_circuit_options crd_circuit_defaults(void)
{
    return (crd_circuit_options){
        .method = CRD_METHOD_TR, .max_iterations = 50, .tolerance = 1e-10, .projection = INFINITY};
}

static crd_status check_options(crd_context* ctx, const crd_circuit_options* o)
{
    if (!(o->step > 0 && isfinite(o->step))) {
        return crdi_fail(ctx, CRD_E_RANGE, "circuit: step = %g s, expected > 0", o->step);
    }
    if (o->max_iterations < 1) {
        return crdi_fail(ctx, CRD_E_RANGE, "circuit: max_iterations = %d, expected >= 1",
                         o->max_iterations);
    }
    if (!(o->tolerance > 0 && o->tolerance < 1)) {
        return crdi_fail(ctx, CRD_E_RANGE, "circuit: tolerance = %g, expected between 0 and 1",
                         o->tolerance);
    }
    if (!(o->projection >= 0)) {
        return crdi_fail(ctx, CRD_E_RANGE, "circuit: projection = %g, expected >= 0",
                         o->projection);
    }
    if ((int)o->method < CRD_METHOD_BDF1 || o->method > CRD_METHOD_GAUSS4) {
        return crdi_fail(ctx, CRD_E_RANGE, "circuit: method %d does not exist", (int)o->method);
    }
    if ((int)o->start < CRD_START_TR || o->start > CRD_START_CONSTANT) {
        return crdi_fail(ctx, CRD_E_RANGE, "circuit: start %d does not exist", (int)o->start);
    }
    return CRD_OK;
}

static const crdi_form* form_of(crd_circuit_form wanted)
{
    switch (wanted) {
    case CRD_FORM_AUTO:
    case CRD_FORM_DAE:
        return &crdi_form_dae;
    default:
        return NULL;
    }
}

static crd_status make_room(crd_circuit* c)
{
    const crd_netlist* n = c->n;
    int most = 0;
    for (int i = 0; i < n->expression_count + n->output_count; i++) {
        const crd_use* uses;
        const crd_expression* e =
            i < n->expression_count ? n->expressions[i] : n->outputs[i - n->expression_count].what;
        const int count = crd_expression_uses(e, &uses);
        most = count > most ? count : most;
    }
    c->inputs = crdi_new_array(c->ctx, (size_t)n->input_count, sizeof *c->inputs);
    c->uses = crdi_new_array(c->ctx, (size_t)most, sizeof *c->uses);
    if (!c->inputs || !c->uses) { return CRD_E_MEMORY; }
    for (int i = 0; i < n->input_count; i++) {
        c->inputs[i] = n->inputs[i].start;
    }
    return CRD_OK;
}

crd_status crd_circuit_create(crd_context* ctx, const crd_netlist* n,
                              const crd_circuit_options* opt, crd_circuit** out)
{
    crd_status st = check_options(ctx, opt);
    if (st < 0) { return st; }
    const crdi_form* form = form_of(opt->form);
    if (!form) {
        return crdi_fail(ctx, CRD_E_UNSUPPORTED, "circuit: form %d does not exist", (int)opt->form);
    }
    crd_circuit* c = crdi_new(ctx, sizeof *c);
    if (!c) { return CRD_E_MEMORY; }
    *c = (crd_circuit){.ctx = ctx, .n = n, .opt = *opt, .form = form};
    CRD_TRY(crdi_circuit_check(ctx, n));
    CRD_TRY(make_room(c));
    CRD_TRY(form->create(c, &c->self));
    *out = c;
    return CRD_OK;
fail:
    crd_circuit_destroy(c);
    return st;
}

void crd_circuit_destroy(crd_circuit* c)
{
    if (!c) { return; }
    if (c->self) { c->form->destroy(c, c->self); }
    crdi_free(c->ctx, c->inputs);
    crdi_free(c->ctx, c->uses);
    crdi_free(c->ctx, c);
}

crd_circuit_structure crd_circuit_get_structure(const crd_circuit* c)
{
    crd_circuit_structure s = {0};
    c->form->structure(c, &s);
    return s;
}

crd_status crd_circuit_begin(crd_circuit* c, double t)
{
    if (!isfinite(t)) {
        return crdi_fail(c->ctx, CRD_E_RANGE, "circuit: begin at t = %g, expected a time", t);
    }
    c->t0 = t;
    c->steps = 0;
    c->iterations = 0;
    c->begun = false;
    const crd_status st = c->form->begin(c, t);
    c->begun = st == CRD_OK;
    return st;
}

crd_status crd_circuit_set_input(crd_circuit* c, int input, double value)
{
    if (input < 0 || input >= c->n->input_count) {
        return crdi_fail(c->ctx, CRD_E_RANGE, "circuit: input %d of %d does not exist", input,
                         c->n->input_count);
    }
    if (!isfinite(value)) {
        return crdi_fail(c->ctx, CRD_E_RANGE, "circuit: input %s = %g, expected a finite value",
                         crdi_clip(c->n->inputs[input].name).text, value);
    }
    c->inputs[input] = value;
    return CRD_OK;
}

crd_status crd_circuit_step(crd_circuit* c)
{
    if (!c->begun) {
        return crdi_fail(c->ctx, CRD_E_STATE, "circuit: a step before crd_circuit_begin");
    }
    const crd_status st = c->form->step(c);
    if (st == CRD_OK) { c->steps++; }
    return st;
}

double crd_circuit_time(const crd_circuit* c)
{
    return crdi_circuit_time(c, 0);
}

double crd_circuit_voltage(const crd_circuit* c, int32_t node)
{
    return node >= 0 && node < c->n->node_count ? c->form->voltage(c, node) : (double)NAN;
}

double crd_circuit_current(const crd_circuit* c, int32_t part)
{
    const bool there =
        part >= 0 && part < c->n->part_count && c->n->parts[part].kind != CRD_PART_MUTUAL;
    return there ? c->form->current(c, part) : (double)NAN;
}

double crdi_circuit_expression(const crd_circuit* c, const crd_expression* e, double t,
                               double* gradient)
{
    const crd_use* uses;
    const int count = crd_expression_uses(e, &uses);
    for (int i = 0; i < count; i++) {
        switch (uses[i].kind) {
        case CRD_USE_NODE:
            c->uses[i] = c->form->voltage(c, uses[i].a);
            break;
        case CRD_USE_PAIR:
            c->uses[i] = c->form->voltage(c, uses[i].a) - c->form->voltage(c, uses[i].b);
            break;
        case CRD_USE_CURRENT:
            c->uses[i] = c->form->current(c, uses[i].a);
            break;
        case CRD_USE_INPUT:
            c->uses[i] = c->inputs[uses[i].a];
            break;
        }
    }
    return crd_expression_eval(e, c->uses, t, gradient);
}

double crd_circuit_get_output(crd_circuit* c, int output)
{
    if (output < 0 || output >= c->n->output_count) { return (double)NAN; }
    return crdi_circuit_expression(c, c->n->outputs[output].what, crdi_circuit_time(c, 0), NULL);
}

int crd_circuit_iterations(const crd_circuit* c)
{
    return c->iterations;
}

// A state is t0, steps, begun, the inputs, and what the form keeps.
static size_t head_size(const crd_circuit* c)
{
    return (3 + (size_t)c->n->input_count) * sizeof(double);
}

size_t crd_circuit_state_size(const crd_circuit* c)
{
    return head_size(c) + c->form->state_size(c);
}

void crd_circuit_save(const crd_circuit* c, void* state)
{
    const double head[3] = {c->t0, (double)c->steps, c->begun};
    char* to = state;
    memcpy(to, head, sizeof head);
    memcpy(to + sizeof head, c->inputs, (size_t)c->n->input_count * sizeof *c->inputs);
    c->form->save(c, to + head_size(c));
}

void crd_circuit_restore(crd_circuit* c, const void* state)
{
    double head[3];
    const char* from = state;
    memcpy(head, from, sizeof head);
    c->t0 = head[0];
    c->steps = (int64_t)head[1];
    c->begun = head[2] != 0;
    memcpy(c->inputs, from + sizeof head, (size_t)c->n->input_count * sizeof *c->inputs);
    c->form->restore(c, from + head_size(c));
}
