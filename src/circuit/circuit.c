// A circuit: what all forms share, and the choice of one.
#include "circuit/circuit.h"
#include "shared/base.h"
#include "shared/circuit_part.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

crd_circuit_options crd_circuit_defaults(void)
{
    return (crd_circuit_options){
        .method = CRD_METHOD_TR, .max_iterations = 50, .tolerance = 1e-10, .projection = INFINITY};
}

static crd_status circuit_check_options(crd_context* ctx, const crd_circuit_options* o)
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
    case CRD_FORM_AUTO: // see create_form
    case CRD_FORM_NODAL:
        return &crdi_form_nodal;
    case CRD_FORM_DAE:
        return &crdi_form_dae;
    default:
        return NULL;
    }
}

// AUTO: the fast form where it can, else the reference form.
static crd_status create_form(crd_circuit* c)
{
    const crd_status st = c->form->create(c, &c->self);
    if (st != CRD_E_UNSUPPORTED || c->opt.form != CRD_FORM_AUTO) { return st; }
    c->form = &crdi_form_dae;
    return c->form->create(c, &c->self);
}

static crd_status circuit_make_room(crd_circuit* c)
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
    c->inputs = crdi_arena_new(&c->arena, (size_t)n->input_count, sizeof *c->inputs);
    c->ends = crdi_arena_new(&c->arena, (size_t)n->input_count, sizeof *c->ends);
    c->rates = crdi_arena_new(&c->arena, (size_t)n->input_count, sizeof *c->rates);
    c->uses = crdi_arena_new(&c->arena, (size_t)most, sizeof *c->uses);
    if (c->arena.failed) { return CRD_E_MEMORY; }
    for (int i = 0; i < n->input_count; i++) {
        c->inputs[i] = n->inputs[i].start;
    }
    return CRD_OK;
}

crd_status crd_circuit_create(crd_context* ctx, const crd_netlist* n,
                              const crd_circuit_options* opt, crd_circuit** out)
{
    crd_status st = circuit_check_options(ctx, opt);
    if (st < 0) { return st; }
    const crdi_form* form = form_of(opt->form);
    if (!form) {
        return crdi_fail(ctx, CRD_E_UNSUPPORTED, "circuit: form %d does not exist", (int)opt->form);
    }
    crd_circuit* c = crdi_new(ctx, sizeof *c);
    if (!c) { return CRD_E_MEMORY; }
    *c = (crd_circuit){.ctx = ctx, .n = n, .opt = *opt, .form = form};
    crd_arena_init(&c->arena, ctx);
    CRD_TRY(crdi_circuit_check(ctx, n));
    CRD_TRY(circuit_make_room(c));
    CRD_TRY(crdi_past_init(c));
    CRD_TRY(create_form(c));
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
    crdi_control_destroy(c);
    crd_arena_clear(&c->arena);
    crd_free(c->ctx, c->rescue);
    crd_free(c->ctx, c);
}

crd_circuit_structure crd_circuit_get_structure(const crd_circuit* c)
{
    crd_circuit_structure s = {0};
    c->form->structure(c, &s);
    return s;
}

const char* crd_circuit_form_name(const crd_circuit* c)
{
    return c->form->name;
}

static bool differ(double is, double wanted)
{
    return fabs(is - wanted) > 1e-6 * fmax(fabs(is), fabs(wanted)) + 1e-9;
}

// Initial values that others contradict have become a compromise, or nothing.
static void warn_of_values(const crd_circuit* c)
{
    const crd_netlist* n = c->n;
    int said = 0;
    for (int32_t i = 0; i < n->part_count && said < 10; i++) {
        const crd_part* p = &n->parts[i];
        const crdi_part_store stores = crdi_part_kind_of(p)->stores;
        const bool capacitor = stores == CRDI_STORES_VOLTAGE;
        if (!p->has_ic || !stores) { continue; }
        const double is = capacitor
                              ? c->form->voltage(c, p->nodes[0]) - c->form->voltage(c, p->nodes[1])
                              : c->form->current(c, i);
        if (!differ(is, p->ic)) { continue; }
        crdi_log(c->ctx, CRD_LOG_WARNING,
                 "%s: %s begins with %g, not with ic = %g: parts around it contradict",
                 crdi_part_place(n, i).text, crdi_clip(crdi_part_name(n, i)).text, is, p->ic);
        said++;
    }
    for (int32_t i = 1; i < n->node_count && n->node_ic && said < 10; i++) {
        const double is = c->form->voltage(c, i);
        if (isnan(n->node_ic[i]) || !differ(is, n->node_ic[i])) { continue; }
        crdi_log(c->ctx, CRD_LOG_WARNING,
                 "circuit: node %s begins with %g, not with %g as .ic wants: only capacitors "
                 "remember",
                 crdi_clip(n->nodes[i]).text, is, n->node_ic[i]);
        said++;
    }
}

crd_status crd_circuit_begin(crd_circuit* c, double t)
{
    if (!isfinite(t)) {
        return crdi_fail(c->ctx, CRD_E_RANGE, "circuit: begin at t = %g, expected a time", t);
    }
    c->t0 = t;
    c->steps = c->since = 0;
    c->iterations = 0;
    c->counts = (crd_circuit_counts){0};
    c->begun = false;
    const crd_status st = c->form->begin(c, t);
    c->begun = st == CRD_OK;
    if (c->begun) {
        crdi_past_begin(c);
        if (!c->warned && crd_log_level(c->ctx) >= CRD_LOG_WARNING) { warn_of_values(c); }
        c->warned = true;
    }
    crdi_control_reset(c, 0);
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
    c->rates[input] = 0;
    return CRD_OK;
}

// Gauss' methods and TR-BDF2 look inside their steps: what they find there is the input of that
// time, so that states follow it to the second order and outputs that depend on it at once are not
// half a step late.
crd_status crdi_circuit_set_ramp(crd_circuit* c, int input, double from, double to)
{
    const crd_status st = crd_circuit_set_input(c, input, to);
    if (st < 0 || c->opt.method < CRD_METHOD_TRBDF2) { return st; }
    c->rates[input] = (to - from) / c->opt.step;
    c->moving = c->moving || to != from;
    return CRD_OK;
}

void crdi_circuit_move_inputs(crd_circuit* c, double t)
{
    for (int i = 0; c->moving && i < c->n->input_count; i++) {
        c->inputs[i] = c->ends[i] + c->rates[i] * (t - c->ends_at);
    }
}

static void take_ends(crd_circuit* c)
{
    if (!c->moving) { return; }
    memcpy(c->ends, c->inputs, (size_t)c->n->input_count * sizeof *c->ends);
    c->ends_at = crdi_circuit_time(c, 1);
}

static void reach_ends(crd_circuit* c)
{
    if (!c->moving) { return; }
    memcpy(c->inputs, c->ends, (size_t)c->n->input_count * sizeof *c->ends);
    memset(c->rates, 0, (size_t)c->n->input_count * sizeof *c->rates);
    c->moving = false;
}

crd_status crdi_circuit_try(crd_circuit* c)
{
    const crd_status st = c->form->step(c);
    c->counts.iterations += c->iterations;
    if (st < 0) { return st; }
    c->steps++;
    c->since++;
    crdi_past_push(c);
    return CRD_OK;
}

// Where Newton's method fails on the way of a whole step, a part of it may do: 4, 16, 64 of them,
// then back to the step. `st` is what the whole step said, and what is said if none does.
static crd_status step_in_parts(crd_circuit* c, crd_status st)
{
    const double step = c->opt.step, t0 = c->t0;
    const int64_t steps = c->steps;
    const int iterations = c->iterations;
    if (!c->rescue) { c->rescue = crdi_new(c->ctx, crd_circuit_state_size(c)); }
    if (!c->rescue) { return CRD_E_MEMORY; }
    char why[400];
    snprintf(why, sizeof why, "%s", crd_error_text(c->ctx));
    crd_circuit_save(c, c->rescue);
    for (int parts = 4; parts <= 64; parts *= 4) {
        crd_status now = crdi_circuit_restep(c, step / parts);
        for (int i = 0; i < parts && now == CRD_OK; i++) {
            now = crdi_circuit_try(c);
        }
        const crd_status back = crdi_circuit_restep(c, step);
        if (now == CRD_OK && back == CRD_OK) {
            c->t0 = t0; // on the grid again
            c->steps = steps + 1;
            c->iterations += iterations;
            return CRD_OK;
        }
        crd_circuit_restore(c, c->rescue);
    }
    return crdi_fail(c->ctx, st, "%s", why);
}

crd_status crd_circuit_step(crd_circuit* c)
{
    if (!c->begun) {
        return crdi_fail(c->ctx, CRD_E_STATE, "circuit: a step before crd_circuit_begin");
    }
    take_ends(c);
    crd_status st = crdi_circuit_try(c);
    const bool in_parts = c->opt.method <= CRD_METHOD_TRBDF2 &&
                          c->opt.method != CRD_METHOD_TR_CARRIED && !c->opt.fixed_iterations &&
                          !c->opt.refactor;
    if (st == CRD_E_CONVERGENCE && in_parts) { st = step_in_parts(c, st); }
    reach_ends(c);
    c->counts.steps += st == CRD_OK;
    return st;
}

crd_status crdi_circuit_restep(crd_circuit* c, double step)
{
    if (step == c->opt.step) { return CRD_OK; }
    const crd_status st = c->form->restep(c, step);
    if (st < 0) { return st; }
    c->t0 = crdi_circuit_time(c, 0);
    c->steps = 0;
    c->opt.step = step;
    return CRD_OK;
}

void crdi_circuit_restart(crd_circuit* c)
{
    c->form->restart(c);
    c->since = 0;
    *c->past.cut = 1;
}

crd_status crd_circuit_set_step(crd_circuit* c, double step)
{
    if (!(step > 0 && isfinite(step))) {
        return crdi_fail(c->ctx, CRD_E_RANGE, "circuit: step = %g s, expected > 0", step);
    }
    crdi_control_reset(c, step);
    return crdi_circuit_restep(c, step);
}

crd_circuit_counts crd_circuit_get_counts(const crd_circuit* c)
{
    return c->counts;
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
        part >= 0 && part < c->n->part_count && !crdi_part_kind_of(&c->n->parts[part])->couples;
    return there ? c->form->current(c, part) : (double)NAN;
}

// At the form's present voltages and currents.
static double evaluate(const crd_circuit* c, const crd_expression* e)
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
    return crd_expression_eval(e, c->uses, crdi_circuit_time(c, 0), NULL);
}

double crd_circuit_get_output(crd_circuit* c, int output)
{
    if (output < 0 || output >= c->n->output_count) { return (double)NAN; }
    return evaluate(c, c->n->outputs[output].what);
}

int crd_circuit_iterations(const crd_circuit* c)
{
    return c->iterations;
}

// A state is the head, the inputs, what derivatives are made from, and what the form keeps.
enum { T0, STEPS, SINCE, BEGUN, STEP, HEAD };

static size_t head_size(const crd_circuit* c)
{
    return (HEAD + (size_t)c->n->input_count + crdi_past_size(c)) * sizeof(double);
}

size_t crd_circuit_state_size(const crd_circuit* c)
{
    return head_size(c) + c->form->state_size(c);
}

void crd_circuit_save(const crd_circuit* c, void* state)
{
    const double head[HEAD] = {c->t0, (double)c->steps, (double)c->since, c->begun, c->opt.step};
    const size_t inputs = (size_t)c->n->input_count * sizeof *c->inputs;
    char* to = state;
    memcpy(to, head, sizeof head);
    if (inputs > 0) { memcpy(to + sizeof head, c->inputs, inputs); }
    memcpy(to + sizeof head + inputs, c->past.row, crdi_past_size(c) * sizeof(double));
    c->form->save(c, to + head_size(c));
}

void crd_circuit_restore(crd_circuit* c, const void* state)
{
    crdi_circuit_return(c, state);
    crdi_control_reset(c, 0);
}

void crdi_circuit_return(crd_circuit* c, const void* state)
{
    double head[HEAD];
    const size_t inputs = (size_t)c->n->input_count * sizeof *c->inputs;
    const char* from = state;
    memcpy(head, from, sizeof head);
    c->t0 = head[T0];
    c->steps = (int64_t)head[STEPS];
    if (head[STEP] != c->opt.step) { // the step is not part of the state, its time is
        c->t0 += head[STEPS] * head[STEP];
        c->steps = 0;
    }
    c->since = (int64_t)head[SINCE];
    c->begun = head[BEGUN] != 0;
    if (inputs > 0) { memcpy(c->inputs, from + sizeof head, inputs); }
    memcpy(c->past.row, from + sizeof head + inputs, crdi_past_size(c) * sizeof(double));
    c->form->restore(c, from + head_size(c));
}
