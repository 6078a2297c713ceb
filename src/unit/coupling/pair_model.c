// One side of a wave pair as a model: two of them, in any master, make a bond (cardan/pair.h).
//
// A step of the importer is an inner step. Before it the importer sets `own`, the unit's value now,
// and asks for `action`, which the unit gets over the step; as it may set other values then, that
// is only tried, and the step confirms it. A step that is over is booked when the next `own` is
// there.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cardan/pair.h"
#include "unit/coupling/coupling_model.h"

typedef struct pair_inputs {
    double own;         // now
    double mean, acted; // over the last step, of the own value and of the action; NaN: not known
    crd_pair_packet far;
} pair_inputs;

// What a step changes.
typedef struct pair_course {
    crd_pair_port port;
    crd_pair_packet packet;
    double begin;  // own value when the step under way began
    double step;   // length of the last one
    int64_t macro; // macro steps since the start that are over
    bool acting;
} pair_course;

typedef struct pair_self {
    pair_inputs in;
    // parameters
    double macro_step, impedance, action_max, power_max, surprise;
    int32_t run;
    // outputs
    double action;
    crd_pair_packet packet;
    double tank, dumped, debt, delay;

    double start;
    bool settled; // inputs have not been set since the last step, or since the initialisation
    bool tried;
    pair_inputs tried_inputs;
    pair_course now, trial;
} pair_self;

// ---- its variables -----------------------------------------------------------------------------

#define FIELD(field) .offset = offsetof(pair_self, field)
#define FAR(field_, text)                                                                          \
    {                                                                                              \
        .name = "far." #field_, .causality = CRD_INPUT, FIELD(in.far.field_),                      \
        .description = "of the other side: " text                                                  \
    }
#define SENT(field_, text)                                                                         \
    {                                                                                              \
        .name = "packet." #field_, .causality = CRD_OUTPUT, FIELD(packet.field_),                  \
        .depends = "own mean acted", .description = "for the other side: " text                    \
    }
#define BOTH(X)                                                                                    \
    X(run, "life of the sender"), X(number, "packet in it, from 1 on"),                            \
        X(time, "its clock at the end of its macro step, s"),                                      \
        X(effort, "effort over the macro step"), X(flow, "flow over the macro step"),              \
        X(effort_sum, "integral of the effort since the start"),                                   \
        X(flow_sum, "integral of the flow since the start"),                                       \
        X(granted, "energy granted since the start, J"), X(impedance, "impedance in use"),         \
        X(echo, "receiver's clock when it sent what is in use")
#define BOUND(field_, text)                                                                        \
    {                                                                                              \
        .name = #field_, .causality = CRD_PARAMETER, .variability = CRD_FIXED, FIELD(field_),      \
        .description = text                                                                        \
    }
#define SEEN(field_, unit_, text)                                                                  \
    {                                                                                              \
        .name = #field_, .causality = CRD_OUTPUT, FIELD(field_), .unit = unit_,                    \
        .description = text                                                                        \
    }

static const crd_model_variable rows[] = {
    {.name = "own",
     .causality = CRD_INPUT,
     FIELD(in.own),
     .description = "flow or effort of the unit now"},
    {.name = "mean",
     .causality = CRD_INPUT,
     FIELD(in.mean),
     .start = NAN,
     .description = "its mean over the last step; NaN: of begin and end"},
    {.name = "acted",
     .causality = CRD_INPUT,
     FIELD(in.acted),
     .start = NAN,
     .description = "what the unit really got over the last step; NaN: the action"},
    BOTH(FAR),
    {.name = "macro_step",
     .causality = CRD_PARAMETER,
     .variability = CRD_FIXED,
     FIELD(macro_step),
     .unit = "s",
     .description = "time between two packets"},
    BOUND(impedance, "effort per flow, the same on both sides; 0: learned"),
    BOUND(action_max, "bound of the action; 0: none"),
    BOUND(power_max, "bound of the power that packets grant, W; 0: none"),
    BOUND(surprise, "bound of what the own value does by itself in half a step; 0: learned"),
    {.name = "run",
     .type = CRD_INT32,
     .causality = CRD_PARAMETER,
     .variability = CRD_FIXED,
     FIELD(run),
     .start = 1,
     .description = "number of this side's life, greater after each restart"},
    {.name = "action",
     .causality = CRD_OUTPUT,
     FIELD(action),
     .description = "effort or flow for the unit, over the step that begins"},
    BOTH(SENT),
    SEEN(tank, "J", "energy in the tank of the port"),
    SEEN(dumped, "J", "energy thrown away so far"),
    SEEN(debt, "J", "largest debt of the tank so far"),
    SEEN(delay, "s", "half the round trip; -1: not known yet"),
};
enum { ROWS = sizeof rows / sizeof *rows };

// ---- its course --------------------------------------------------------------------------------

static crd_model_status pair_initialize(void* self, const crd_model_host* host, double t)
{
    pair_self* s = self;
    const crdi_coupling_model* m = host->model->user;
    crd_pair_options o = crd_pair_defaults(m->pair);
    o.step = m->base.default_step;
    o.macro = s->macro_step;
    o.impedance = s->impedance;
    o.action_max = s->action_max;
    o.power_max = s->power_max;
    o.surprise = s->surprise;
    o.run = s->run > 0 ? (uint32_t)s->run : 0;
    s->now = (pair_course){.step = o.step};
    s->start = t;
    s->settled = true;
    s->tried = false;
    crd_context* ctx = crdi_context_child(m->ctx);
    crd_status st = ctx ? crd_pair_init(ctx, &s->now.port, &o) : CRD_E_MEMORY;
    if (st == CRD_OK && s->run < 1) {
        st = crdi_fail(ctx, CRD_E_RANGE, "pair: run = %d, expected 1 or more", (int)s->run);
    }
    if (st < 0) {
        host->log(host->user, CRD_MODEL_ERROR, ctx ? crd_error_text(ctx) : "out of memory");
    }
    crd_context_destroy(ctx);
    return st < 0 ? CRD_MODEL_ERROR : CRD_MODEL_OK;
}

// The last step is booked, packets pass, and the port says what the next step gets.
static void turn(const pair_self* s, pair_course* c, double t)
{
    const pair_inputs* in = &s->in;
    if (c->acting) {
        const double mean = isnan(in->mean) ? 0.5 * (c->begin + in->own) : in->mean;
        c->port.opt.step = c->step;
        crd_pair_done_as(&c->port, isnan(in->acted) ? c->port.action : in->acted, mean);
    }
    const double over = floor((t - s->start) / s->macro_step + 1e-6);
    if (over > (double)c->macro && over < 1e15) {
        c->macro = (int64_t)over;
        crd_pair_send(&c->port, t, &c->packet);
    }
    if (in->far.number >= 1 &&
        (in->far.number != c->port.far_number || in->far.run != c->port.far_run)) {
        (void)crd_pair_receive(&c->port, &in->far, t);
    }
    c->begin = in->own;
    c->acting = true;
    (void)crd_pair_act(&c->port, in->own, t);
}

static void pair_show(pair_self* s, const pair_course* c, double t)
{
    const crd_pair_state k = crd_pair_get_state(&c->port, t);
    s->action = c->port.action;
    s->packet = c->packet;
    s->tank = k.tank;
    s->dumped = k.dumped;
    s->debt = k.debt;
    s->delay = isnan(k.delay) ? -1 : k.delay;
}

static void try_turn(pair_self* s, double t)
{
    const char *before = (const char*)&s->tried_inputs, *now = (const char*)&s->in;
    if (s->tried && memcmp(before, now, sizeof s->in) == 0) { return; } // NaN, too
    s->trial = s->now;
    turn(s, &s->trial, t);
    s->tried_inputs = s->in;
    s->tried = true;
}

static void pair_outputs(void* self, double t)
{
    pair_self* s = self;
    if (!s->settled) { try_turn(s, t); }
    s->settled = false;
    pair_show(s, s->tried ? &s->trial : &s->now, t);
}

static crd_model_status pair_step(void* self, const crd_model_host* host, double t, double h,
                                  double* reached)
{
    (void)host;
    (void)reached;
    pair_self* s = self;
    try_turn(s, t);
    s->now = s->trial;
    s->now.step = h;
    s->tried = false;
    s->settled = true; // what follows is the outputs at the end of this step
    return CRD_MODEL_OK;
}

// ---- create ------------------------------------------------------------------------------------

crd_status crdi_pair_model_build(crdi_coupling_model* m, const crdi_json* root, const char* file)
{
    const char *side = crdi_json_get_text(root, "pair"), *name = crdi_json_get_text(root, "name");
    const double step = crdi_json_get_number(root, "step");
    const bool flow = side && strcmp(side, "flow") == 0;
    if (!flow && !(side && strcmp(side, "effort") == 0)) {
        return crdi_fail(m->ctx, CRD_E_RANGE, "%s: pair = '%.40s', expected flow or effort", file,
                         side ? side : "");
    }
    if (!(step > 0 && isfinite(step))) {
        return crdi_fail(m->ctx, CRD_E_RANGE, "%s: step = %g, expected the inner step, > 0", file,
                         step);
    }
    if (!name || !crdi_coupling_is_identifier(name)) {
        return crdi_fail(m->ctx, CRD_E_RANGE,
                         "%s: name = '%.100s', expected letters, digits and '_' as in a name of C",
                         file, name ? name : "");
    }
    crd_model_variable* own = crdi_arena_new(&m->arena, ROWS, sizeof *own);
    const char* copy = crdi_arena_text(&m->arena, name, strlen(name));
    if (!own || !copy) { return CRD_E_MEMORY; }
    memcpy(own, rows, sizeof rows);
    for (int i = 0; i < ROWS; i++) {
        if (strcmp(own[i].name, "macro_step") == 0) { own[i].start = 10 * step; }
    }
    m->pair = flow ? CRD_PAIR_OWNS_FLOW : CRD_PAIR_OWNS_EFFORT;
    m->base.name = copy;
    m->base.description = flow ? "wave port of a unit that owns the flow and is given an effort"
                               : "wave port of a unit that owns the effort and is given a flow";
    m->base.size = sizeof(pair_self);
    m->base.variables = own;
    m->base.variable_count = ROWS;
    m->base.default_step = step;
    m->base.initialize = pair_initialize;
    m->base.outputs = pair_outputs;
    m->base.step = pair_step;
    m->base.pinned = false;
    m->base.kept = 0;
    m->base.clear = NULL;
    return CRD_OK;
}
