// A system of FMUs as a linear network: units linearised where the run stands, connections as
// links.
#include "cli/analyze.h"

#include "cardan/fmi.h"
#include "cardan/master.h"
#include "cardan/system.h"
#include "shared/base_interrupt.h"

#include <math.h>

typedef struct builder {
    crd_context* ctx;
    const crdi_analyze_options* o;
    crdi_loop_case* c;
    crd_system* system;
    crd_master* master;
    crd_element* given;              // --element
    crd_unit_port *inputs, *outputs; // of all units, unit by unit
    int *first_input, *first_output; // (units + 1)
    crd_linearised* units;
    int link_count;
    crd_master_link* links; // that count
} builder;

// Linearising wants Model Exchange; what can do nothing else stays as it is.
static crd_status prefer_exchange(builder* b)
{
    for (int i = 0; i < b->system->unit_count; i++) {
        crd_unit_spec* u = &b->system->units[i];
        if (u->source != CRD_UNIT_FMU || u->interface != CRD_INTERFACE_AUTO) { continue; }
        crd_fmu_options options = crd_fmu_defaults();
        options.description_only = true;
        crd_fmu* fmu = NULL;
        const crd_status st = crd_fmu_open(b->ctx, u->path, &options, &fmu);
        if (st < 0) { return st; }
        if (crd_fmu_describe(fmu)->has_model_exchange) {
            u->interface = CRD_INTERFACE_MODEL_EXCHANGE;
        }
        crd_fmu_close(fmu);
    }
    return CRD_OK;
}

// To where the units are linearised: initialised, or after a run to --at.
static crd_status run_there(builder* b)
{
    crd_status st = CRD_OK;
    crd_master_options options = crd_master_defaults();
    // Units shall terminate and leave no files behind when somebody loses patience.
    options.stop = crdi_interrupt_catch(&(crdi_interrupt_options){.restart = true});
    options.guard_crashes = true;
    b->system->results.path = b->system->results.session = NULL;
    if (!isnan(b->o->at)) { b->system->run.stop = b->o->at; }
    CRD_TRY(crd_master_create(b->ctx, b->system, &options, &b->master));
    CRD_TRY(crd_master_initialize(b->master));
    const double start = crd_master_time(b->master);
    if (!isnan(b->o->at) && b->o->at < start) {
        CRD_TRY(crdi_fail(b->ctx, CRD_E_RANGE, "--at: %g s is before the start of the run at %g s",
                          b->o->at, start));
    }
    while (!isnan(b->o->at) && crd_master_ended(b->master) == CRD_END_NONE &&
           crd_master_time(b->master) < b->o->at) {
        CRD_TRY(crd_master_advance(b->master, 1000));
    }
    if (crd_master_ended(b->master) == CRD_END_INTERRUPTED) {
        CRD_TRY(
            crdi_fail(b->ctx, CRD_E_UNIT, "interrupted at t = %g s", crd_master_time(b->master)));
    }
    b->c->place = crdi_arena_format(&b->c->arena, "at t = %.9g s", crd_master_time(b->master));
    if (!b->c->place) { CRD_TRY(CRD_E_MEMORY); }
fail:
    return st;
}

static const char* name_of(const builder* b, int unit)
{
    return b->system->units[unit].name;
}

// Links that carry continuous numbers from a unit with an inside
static crd_status choose_links(builder* b)
{
    const int count = crd_master_link_count(b->master);
    b->links = crdi_arena_new(&b->c->arena, (size_t)count, sizeof *b->links);
    if (!b->links) { return CRD_E_MEMORY; }
    int left_out = 0;
    for (int i = 0; i < count; i++) {
        const crd_master_link l = crd_master_get_link(b->master, i);
        const crd_unit* from = crd_master_get_unit(b->master, l.from_unit);
        const crd_unit* to = crd_master_get_unit(b->master, l.to_unit);
        const crd_variable* x = &from->info.variables[l.from_variable];
        const crd_variable* y = &to->info.variables[l.to_variable];
        if (from->info.flags & CRD_UNIT_IS_SOURCE) { continue; }
        if (x->type != CRD_FLOAT64 || y->type != CRD_FLOAT64 || x->variability != CRD_CONTINUOUS ||
            y->variability != CRD_CONTINUOUS) {
            left_out++;
            continue;
        }
        if (isnan(l.gain)) {
            return crdi_fail(b->ctx, CRD_E_UNSUPPORTED,
                             "%s:%d: %s.%s -> %s.%s has a map, which has no linear form",
                             l.spec->place.file, l.spec->place.line, name_of(b, l.from_unit),
                             l.spec->from, name_of(b, l.to_unit), l.spec->to);
        }
        if (l.gain == 0) { continue; } // nothing passes
        b->links[b->link_count++] = l;
    }
    if (left_out) {
        crdi_log(b->ctx, CRD_LOG_WARNING,
                 "%d connection%s of discrete or other values %s left out: they are taken as "
                 "constant",
                 left_out, crdi_plural(left_out), left_out == 1 ? "is" : "are");
    }
    if (!b->link_count) {
        return crdi_fail(b->ctx, CRD_E_UNSUPPORTED,
                         "%s: no connection carries a continuous number between units, so there "
                         "is no loop",
                         b->c->name);
    }
    return CRD_OK;
}

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

static crd_status list_ports(builder* b)
{
    const size_t n = (size_t)b->link_count, units = (size_t)b->system->unit_count;
    b->inputs = crdi_arena_new(&b->c->arena, n, sizeof *b->inputs);
    b->outputs = crdi_arena_new(&b->c->arena, n, sizeof *b->outputs);
    b->first_input = crdi_arena_new(&b->c->arena, units + 1, sizeof *b->first_input);
    b->first_output = crdi_arena_new(&b->c->arena, units + 1, sizeof *b->first_output);
    b->units = crdi_arena_new(&b->c->arena, units, sizeof *b->units);
    if (!b->inputs || !b->outputs || !b->first_input || !b->first_output || !b->units) {
        return CRD_E_MEMORY;
    }
    int inputs = 0, outputs = 0;
    for (size_t u = 0; u < units; u++) {
        b->first_input[u] = inputs;
        b->first_output[u] = outputs;
        for (size_t i = 0; i < n; i++) {
            const crd_master_link* l = &b->links[i];
            if (l->to_unit == (int)u) {
                (void)place_port(b->inputs, b->first_input[u], &inputs, to_port(l));
            }
            if (l->from_unit == (int)u) {
                (void)place_port(b->outputs, b->first_output[u], &outputs, from_port(l));
            }
        }
    }
    b->first_input[units] = inputs;
    b->first_output[units] = outputs;
    return CRD_OK;
}

static crd_status linearise(builder* b)
{
    b->c->exact = true;
    for (int u = 0; u < b->system->unit_count; u++) {
        const int in = b->first_input[u], out = b->first_output[u];
        const int inputs = b->first_input[u + 1] - in, outputs = b->first_output[u + 1] - out;
        if (inputs + outputs == 0) { continue; } // nothing of it is in a loop
        crd_unit* unit = crd_master_get_unit(b->master, u);
        const crd_status st = crd_unit_linearise(unit, b->inputs + in, inputs, b->outputs + out,
                                                 outputs, &b->units[u]);
        if (st < 0) {
            return crdi_fail(b->ctx, st, "unit '%s' (%s): %s", name_of(b, u), unit->info.kind,
                             crd_error_text(unit->ctx));
        }
        b->c->exact = b->c->exact && b->units[u].exact;
        if (b->units[u].guessed) {
            crdi_log(b->ctx, CRD_LOG_WARNING,
                     "unit '%s' declares no states: it is linearised as one that has none",
                     name_of(b, u));
        }
    }
    return CRD_OK;
}

static void put_block(double* to, const double* from, int row, int rows, int column, int columns,
                      int width)
{
    for (int i = 0; i < rows; i++) {
        for (int k = 0; k < columns; k++) {
            to[(row + i) * width + column + k] = from[i * columns + k];
        }
    }
}

static crd_status assemble(builder* b)
{
    crd_plant* p = &b->c->whole;
    const int units = b->system->unit_count;
    p->inputs = b->first_input[units];
    p->outputs = b->first_output[units];
    for (int u = 0; u < units; u++) {
        p->states += b->units[u].states;
    }
    if (p->states > 1000 || p->inputs > 1000 || p->outputs > 1000) {
        return crdi_fail(b->ctx, CRD_E_UNSUPPORTED,
                         "%s: the units have %d states, %d inputs and %d outputs in loops, at most "
                         "1000 of each can be analysed",
                         b->c->name, p->states, p->inputs, p->outputs);
    }
    const size_t n = (size_t)p->states, in = (size_t)p->inputs, out = (size_t)p->outputs;
    double* A = crdi_arena_new(&b->c->arena, n * n, sizeof *A);
    double* B = crdi_arena_new(&b->c->arena, n * in, sizeof *B);
    double* C = crdi_arena_new(&b->c->arena, out * n, sizeof *C);
    double* D = crdi_arena_new(&b->c->arena, out * in, sizeof *D);
    if (!A || !B || !C || !D) { return CRD_E_MEMORY; }
    for (int u = 0, first = 0; u < units; u++) {
        const crd_linearised* l = &b->units[u];
        const int i = b->first_input[u], o = b->first_output[u];
        put_block(A, l->A, first, l->states, first, l->states, p->states);
        put_block(B, l->B, first, l->states, i, l->inputs, p->inputs);
        put_block(C, l->C, o, l->outputs, first, l->states, p->states);
        put_block(D, l->D, o, l->outputs, i, l->inputs, p->inputs);
        first += l->states;
    }
    p->A = A;
    p->B = B;
    p->C = C;
    p->D = D;
    return CRD_OK;
}

// ---- links -------------------------------------------------------------------------------------

// What is known of the age of samples: the element's own word, else the emulated channel.
static int latency_of(const crd_master_link* l, const crd_element* e, double step)
{
    const crd_coupling_spec* s = l->spec->coupling;
    return e->latency_steps >= 0 ? e->latency_steps
           : !isnan(e->latency)  ? (int)ceil(e->latency / step - 1e-9)
           : s && s->has_channel ? (int)ceil(s->channel.delay / step - 1e-9)
                                 : 0;
}

static crd_status same_step(builder* b, const crd_master_link* l, double step)
{
    double* dT = &b->c->loop.dT;
    if (*dT == 0) { *dT = step; }
    if (fabs(*dT - step) <= 1e-9 * step) { return CRD_OK; }
    return crdi_fail(b->ctx, CRD_E_UNSUPPORTED,
                     "%s:%d: the element at %s.%s has a macro step of %g s, another one %g s; "
                     "expected the same for all, or --step",
                     l->spec->place.file, l->spec->place.line, name_of(b, l->to_unit), l->spec->to,
                     step, *dT);
}

static crd_status make_link(builder* b, const crd_master_link* l, crd_plant_link* out)
{
    crd_status st = CRD_OK;
    int end = b->first_output[l->from_unit + 1];
    out->from = place_port(b->outputs, b->first_output[l->from_unit], &end, from_port(l));
    end = b->first_input[l->to_unit + 1];
    out->to = place_port(b->inputs, b->first_input[l->to_unit], &end, to_port(l));
    out->gain = l->gain;
    if (!l->element) { return CRD_OK; }
    const crd_element* e = b->given ? b->given : l->element;
    const double step = isnan(b->o->step) ? l->step : b->o->step;
    int k = latency_of(
        l, b->given && b->given->latency_steps < 0 && isnan(b->given->latency) ? l->element : e,
        step);
    CRD_TRY(same_step(b, l, step));
    CRD_TRY(crdi_one_latency(b->ctx, b->o->latency, step, k, &k));
    out->element = crdi_loop_add_element(b->c, e, step, k, &st);
    if (st < 0) {
        st = crdi_fail_in(b->ctx, st, "%s:%d", l->spec->place.file, l->spec->place.line);
    }
fail:
    return st;
}

static crd_status make_links(builder* b)
{
    crd_status st = CRD_OK;
    const size_t n = (size_t)b->link_count;
    crd_plant_link* links = crdi_arena_new(&b->c->arena, n, sizeof *links);
    b->c->elements = crdi_arena_new(&b->c->arena, n, sizeof *b->c->elements);
    if (!links || !b->c->elements) { return CRD_E_MEMORY; }
    if (b->o->elements.count) {
        CRD_TRY(crdi_load_element(b->ctx, b->o->elements.items[0], &b->given));
    }
    for (size_t i = 0; i < n; i++) {
        CRD_TRY(make_link(b, &b->links[i], &links[i]));
    }
    if (b->c->loop.dT == 0) { // direct links only
        b->c->loop.dT = crd_master_get_report(b->master)->step;
    }
    b->c->whole.links = links;
    b->c->whole.link_count = b->link_count;
    if (!b->c->element_count) {
        crdi_log(b->ctx, CRD_LOG_WARNING,
                 "%s: no connection has a coupling: all are taken as if signals came at once",
                 b->c->name);
    }
fail:
    return st;
}

crd_status crdi_loop_of_system(crd_context* ctx, const char* path, const crdi_analyze_options* o,
                               crdi_loop_case* out)
{
    crd_status st = CRD_OK;
    builder b = {.ctx = ctx, .o = o, .c = out};
    CRD_TRY(crdi_load_system(ctx, path, &b.system));
    CRD_TRY(prefer_exchange(&b));
    CRD_TRY(run_there(&b));
    CRD_TRY(choose_links(&b));
    CRD_TRY(list_ports(&b));
    CRD_TRY(linearise(&b));
    CRD_TRY(assemble(&b));
    CRD_TRY(make_links(&b));
    CRD_TRY(crdi_loop_finish(out));
fail:
    for (int i = 0; b.units && i < b.system->unit_count; i++) {
        crd_linearised_clear(&b.units[i]);
    }
    crd_element_destroy(b.given);
    if (b.master) {
        const crd_status finished = crd_master_finish(b.master);
        if (st == CRD_OK) { st = finished; }
    }
    crd_master_destroy(b.master);
    crd_system_destroy(b.system);
    crdi_interrupt_restore();
    return st;
}
