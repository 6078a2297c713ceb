// A system as a linear network: units linearised where the run stands, connections as links.
#include "cardan/analysis.h"
#include "cardan/fmi.h"
#include "cardan/master.h"
#include "shared/base.h"

#include <math.h>

enum { MOST_NUMBERS = 1000 };

typedef struct linearising {
    crd_context* ctx;
    crd_master* master;
    const crd_system* system;
    const crd_loop_options* o;
    crd_loop_model* model;
    crd_unit_port *inputs, *outputs; // of all units, unit by unit
    int *first_input, *first_output; // (units + 1)
    crd_linearised* units;
    crd_plant* blocks; // the same, for the network
    int link_count;
    crd_master_link* links; // that count
} linearising;

static const char* linearise_name_of(const linearising* z, int unit)
{
    return z->system->units[unit].name;
}

crd_status crd_master_prefer_exchange(crd_context* ctx, crd_system* s)
{
    for (int i = 0; i < s->unit_count; i++) {
        crd_unit_spec* u = &s->units[i];
        if (u->source != CRD_UNIT_FMU || u->interface != CRD_INTERFACE_AUTO) { continue; }
        crd_fmu_options options = crd_fmu_defaults();
        options.description_only = true;
        crd_fmu* fmu = NULL;
        const crd_status st = crd_fmu_open(ctx, u->path, &options, &fmu);
        if (st < 0) { return st; }
        if (crd_fmu_describe(fmu)->has_model_exchange) {
            u->interface = CRD_INTERFACE_MODEL_EXCHANGE;
        }
        crd_fmu_close(fmu);
    }
    return CRD_OK;
}

// ---- links that count --------------------------------------------------------------------------

static bool is_continuous(const crd_variable* v)
{
    return v->type == CRD_FLOAT64 && v->variability == CRD_CONTINUOUS;
}

// Links that carry continuous numbers from a unit with an inside
static crd_status choose_links(linearising* z)
{
    const int count = crd_master_link_count(z->master);
    z->links = crdi_arena_new(&z->model->arena, (size_t)count, sizeof *z->links);
    if (!z->links) { return CRD_E_MEMORY; }
    int left_out = 0;
    for (int i = 0; i < count; i++) {
        const crd_master_link l = crd_master_get_link(z->master, i);
        const crd_unit* from = crd_master_get_unit(z->master, l.from_unit);
        const crd_unit* to = crd_master_get_unit(z->master, l.to_unit);
        if (from->info.flags & CRD_UNIT_IS_SOURCE) { continue; }
        if (!is_continuous(&from->info.variables[l.from_variable]) ||
            !is_continuous(&to->info.variables[l.to_variable])) {
            left_out++;
            continue;
        }
        if (isnan(l.gain)) {
            return crdi_fail(z->ctx, CRD_E_UNSUPPORTED,
                             "%s:%d: %s.%s -> %s.%s has a map, which has no linear form",
                             l.spec->place.file, l.spec->place.line,
                             linearise_name_of(z, l.from_unit), l.spec->from,
                             linearise_name_of(z, l.to_unit), l.spec->to);
        }
        if (l.gain == 0) { continue; } // nothing passes
        z->links[z->link_count++] = l;
    }
    if (left_out) {
        crdi_log(z->ctx, CRD_LOG_WARNING,
                 "%d connection%s of discrete or other values %s left out: they are taken as "
                 "constant",
                 left_out, left_out == 1 ? "" : "s", left_out == 1 ? "is" : "are");
    }
    if (!z->link_count && crd_master_get_report(z->master)->pair_count) {
        return crdi_fail(
            z->ctx, CRD_E_UNSUPPORTED,
            "%s: all that its units exchange passes through pairs of wave ports, whose "
            "energy is bounded as said above: no loop is left to be analysed",
            z->model->name);
    }
    if (!z->link_count) {
        return crdi_fail(z->ctx, CRD_E_UNSUPPORTED,
                         "%s: no connection carries a continuous number between units, so there "
                         "is no loop",
                         z->model->name);
    }
    return CRD_OK;
}

// ---- units -------------------------------------------------------------------------------------

// Position of a port in ports[first .. *end - 1], added if it is new
static int place_port(crd_unit_port* ports, int first, int* end, crd_unit_port p)
{
    int i = first;
    while (i < *end && (ports[i].variable != p.variable || ports[i].element != p.element)) {
        i++;
    }
    if (i == *end) { ports[(*end)++] = p; }
    return i;
}

static crd_unit_port from_port(const crd_master_link* l)
{
    return (crd_unit_port){l->from_variable, l->from_element};
}

static crd_unit_port to_port(const crd_master_link* l)
{
    return (crd_unit_port){l->to_variable, l->to_element};
}

static crd_status list_ports(linearising* z)
{
    const size_t n = (size_t)z->link_count, units = (size_t)z->system->unit_count;
    crd_arena* a = &z->model->arena;
    z->inputs = crdi_arena_new(a, n, sizeof *z->inputs);
    z->outputs = crdi_arena_new(a, n, sizeof *z->outputs);
    z->first_input = crdi_arena_new(a, units + 1, sizeof *z->first_input);
    z->first_output = crdi_arena_new(a, units + 1, sizeof *z->first_output);
    z->units = crdi_arena_new(a, units, sizeof *z->units);
    z->blocks = crdi_arena_new(a, units, sizeof *z->blocks);
    if (!z->inputs || !z->outputs || !z->first_input || !z->first_output || !z->units ||
        !z->blocks) {
        return CRD_E_MEMORY;
    }
    int inputs = 0, outputs = 0;
    for (size_t u = 0; u < units; u++) {
        z->first_input[u] = inputs;
        z->first_output[u] = outputs;
        for (size_t i = 0; i < n; i++) {
            const crd_master_link* l = &z->links[i];
            if (l->to_unit == (int)u) {
                (void)place_port(z->inputs, z->first_input[u], &inputs, to_port(l));
            }
            if (l->from_unit == (int)u) {
                (void)place_port(z->outputs, z->first_output[u], &outputs, from_port(l));
            }
        }
    }
    z->first_input[units] = inputs;
    z->first_output[units] = outputs;
    return CRD_OK;
}

static crd_status linearise_units(linearising* z)
{
    z->model->exact = true;
    for (int u = 0; u < z->system->unit_count; u++) {
        const int in = z->first_input[u], out = z->first_output[u];
        const int inputs = z->first_input[u + 1] - in, outputs = z->first_output[u + 1] - out;
        if (inputs + outputs == 0) { continue; } // nothing of it is in a loop
        crd_unit* unit = crd_master_get_unit(z->master, u);
        crd_linearised* l = &z->units[u];
        const crd_status st =
            crd_unit_linearise(unit, z->inputs + in, inputs, z->outputs + out, outputs, l);
        if (st < 0) {
            return crdi_fail(z->ctx, st, "unit '%s' (%s): %s", linearise_name_of(z, u),
                             unit->info.kind, crd_error_text(unit->ctx));
        }
        z->blocks[u] = (crd_plant){.states = l->states,
                                   .inputs = l->inputs,
                                   .outputs = l->outputs,
                                   .A = l->A,
                                   .B = l->B,
                                   .C = l->C,
                                   .D = l->D};
        z->model->whole.states += l->states;
        z->model->exact = z->model->exact && l->exact;
        if (l->guessed) {
            crdi_log(z->ctx, CRD_LOG_WARNING,
                     "unit '%s' declares no states: it is linearised as one that has none",
                     linearise_name_of(z, u));
        }
    }
    return CRD_OK;
}

static crd_status join_units(linearising* z)
{
    crd_plant* p = &z->model->whole;
    const int units = z->system->unit_count;
    p->inputs = z->first_input[units];
    p->outputs = z->first_output[units];
    if (p->states > MOST_NUMBERS || p->inputs > MOST_NUMBERS || p->outputs > MOST_NUMBERS) {
        return crdi_fail(z->ctx, CRD_E_UNSUPPORTED,
                         "%s: the units have %d states, %d inputs and %d outputs in loops, at most "
                         "%d of each can be analysed",
                         z->model->name, p->states, p->inputs, p->outputs, MOST_NUMBERS);
    }
    return crd_plant_stack(&z->model->arena, z->blocks, units, p);
}

// ---- links with their elements -----------------------------------------------------------------

// What is known of the age of samples: the element's own word, else the emulated channel.
static int latency_of(const crd_master_link* l, const crd_element* given, double step)
{
    const crd_coupling_spec* s = l->spec->coupling;
    int k = given ? crd_element_latency(given, step) : -1;
    if (k < 0) { k = crd_element_latency(l->element, step); }
    if (k >= 0) { return k; }
    return s && s->has_channel ? (int)ceil(s->channel.delay / step - 1e-9) : 0;
}

static crd_status same_step(const linearising* z, const crd_master_link* l, double step)
{
    double* dT = &z->model->loop.dT;
    if (*dT == 0) { *dT = step; }
    if (fabs(*dT - step) <= 1e-9 * step) { return CRD_OK; }
    return crdi_fail(z->ctx, CRD_E_UNSUPPORTED,
                     "%s:%d: the element at %s.%s has a macro step of %g s, another one %g s; "
                     "expected the same for all, or --step",
                     l->spec->place.file, l->spec->place.line, linearise_name_of(z, l->to_unit),
                     l->spec->to, step, *dT);
}

// What the emulated channel does to samples. A latency from elsewhere takes the place of its delay.
static crd_status vary(const linearising* z, const crd_master_link* l, double step, int k)
{
    const crd_coupling_spec* s = l->spec->coupling;
    crd_spread own = crd_spread_none();
    double delay = k * step;
    if (s && s->has_channel) {
        own.jitter = s->channel.jitter;
        own.loss = s->channel.loss;
        own.at_once = s->channel.burst;
        if (k == (int)ceil(s->channel.delay / step - 1e-9)) { delay = s->channel.delay; }
    }
    return crd_loop_model_vary(z->model, &own, &z->o->spread, step, delay);
}

static crd_status make_link(const linearising* z, const crd_master_link* l, crd_plant_link* out)
{
    crd_status st = CRD_OK;
    int end = z->first_output[l->from_unit + 1];
    out->from = place_port(z->outputs, z->first_output[l->from_unit], &end, from_port(l));
    end = z->first_input[l->to_unit + 1];
    out->to = place_port(z->inputs, z->first_input[l->to_unit], &end, to_port(l));
    out->gain = l->gain;
    if (!l->element) { return CRD_OK; }
    const crd_element* given = z->o->element;
    const double step = isnan(z->o->step) ? l->step : z->o->step;
    int k = latency_of(l, given, step);
    CRD_TRY(same_step(z, l, step));
    CRD_TRY(crd_loop_latency(z->ctx, z->o, step, k, &k));
    st = crd_loop_model_add(z->model, given ? given : l->element, step, k, &out->element);
    if (st >= 0 && z->o->varied) { st = vary(z, l, step, k); }
    if (st < 0) {
        st = crdi_fail_in(z->ctx, st, "%s:%d", l->spec->place.file, l->spec->place.line);
    }
fail:
    return st;
}

static crd_status make_links(const linearising* z)
{
    crd_loop_model* m = z->model;
    const size_t n = (size_t)z->link_count;
    crd_plant_link* links = crdi_arena_new(&m->arena, n, sizeof *links);
    if (!links) { return CRD_E_MEMORY; }
    for (size_t i = 0; i < n; i++) {
        const crd_status st = make_link(z, &z->links[i], &links[i]);
        if (st < 0) { return st; }
    }
    if (m->loop.dT == 0) { m->loop.dT = crd_master_get_report(z->master)->step; } // direct only
    m->whole.links = links;
    m->whole.link_count = z->link_count;
    if (!m->element_count) {
        crdi_log(z->ctx, CRD_LOG_WARNING,
                 "%s: no connection has a coupling: all are taken as if signals came at once",
                 m->name);
    }
    return CRD_OK;
}

// No linear map knows a pair: the bond is cut in the model, and this is said of it instead.
static void say_pairs(const linearising* z)
{
    const crd_master_report* r = crd_master_get_report(z->master);
    for (int i = 0; i < r->pair_count; i++) {
        const crd_pair_side_report* s = r->pairs[i].sides;
        const bool strict = s[0].state.strict || s[1].state.strict;
        crdi_log(z->ctx, CRD_LOG_WARNING,
                 "bond '%s' between '%s' and '%s' has a pair of wave ports and is cut here, as if "
                 "both units were not connected by it. %s It says nothing about accuracy, about "
                 "units that make energy themselves, and about other connections between them.",
                 r->pairs[i].name, s[0].unit, s[1].unit,
                 strict ? "In its whole life it gives both units together no more than it got "
                          "from them and three macro steps' worth of the largest action and "
                          "surprise, whatever delay, jitter and loss; as one unit makes a single "
                          "step in a macro step, that may be much."
                        : "In its whole life it gives both units together no more than it got "
                          "from them and three inner steps' worth of the largest action and "
                          "surprise on either side, whatever delay, jitter and loss.");
    }
}

crd_status crd_master_linearise(crd_master* m, const crd_system* s, const crd_loop_options* o,
                                crd_loop_model* out)
{
    crd_status st = CRD_OK;
    linearising z = {.ctx = out->ctx, .master = m, .system = s, .o = o, .model = out};
    out->varied = o->varied;
    out->place = crdi_arena_format(&out->arena, "at t = %.9g s", crd_master_time(m));
    if (!out->place) { CRD_TRY(CRD_E_MEMORY); }
    say_pairs(&z);
    CRD_TRY(choose_links(&z));
    CRD_TRY(list_ports(&z));
    CRD_TRY(linearise_units(&z));
    CRD_TRY(join_units(&z));
    CRD_TRY(make_links(&z));
    CRD_TRY(crd_loop_model_finish(out));
fail:
    for (int i = 0; z.units && i < s->unit_count; i++) {
        crd_linearised_clear(&z.units[i]);
    }
    return st;
}
