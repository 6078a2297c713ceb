// What the slave asks of the units: values, states and steps. Everything foreign is called below
// crdi_crash_catch, with s->running saying whose code it is.
#include "serve/serve.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const crd_place from_master = {"the DCP master", 0};

// ---- units, made and unmade --------------------------------------------------------------------

// What a unit said about its failure, as the slave's own sentence.
static crd_status fail_unit(crdi_serve* s, int unit, crd_status st)
{
    if (st >= 0) { return st; }
    const crd_unit* u = s->stations[unit].unit;
    const char* text = crd_error_text(u->ctx);
    return crdi_fail(s->log, st, "unit '%s': %s", u->name, text[0] ? text : crd_status_text(st));
}

// Structural parameters of the master become settings of the units' descriptions.
static crd_status add_structural(crdi_serve* s, int unit)
{
    crdi_station* p = &s->stations[unit];
    crd_unit_spec* spec = &s->sys->units[unit];
    int count = 0;
    for (int i = 0; i < s->outlet_count; i++) {
        count += s->outlets[i].unit == unit && s->outlets[i].given >= 0;
    }
    if (count == 0) { return CRD_OK; }
    crd_setting* list =
        crdi_arena_new(&s->live, (size_t)p->parameter_count + (size_t)count, sizeof *list);
    if (!list) { return CRD_E_MEMORY; }
    int n = p->parameter_count;
    if (n) { memcpy(list, p->parameters, (size_t)n * sizeof *list); }
    for (int i = 0; i < s->outlet_count; i++) {
        const crdi_outlet* o = &s->outlets[i];
        if (o->unit != unit || o->given < 0) { continue; }
        list[n].variable = o->own_name;
        list[n].text = crdi_arena_format(&s->live, "%lld", (long long)o->given);
        list[n].place = from_master;
        if (!list[n++].text) { return CRD_E_MEMORY; }
    }
    spec->parameters = list;
    spec->parameter_count = n;
    return CRD_OK;
}

crd_status crdi_serve_make(crdi_serve* s)
{
    crd_status st = CRD_OK;
    crdi_serve_close(s);
    for (int i = 0; i < s->unit_count; i++) {
        CRD_TRY(add_structural(s, i));
    }
    s->resized = false;
    if (s->one) {
        if (!s->store) { CRD_TRY(crd_unit_store_create(s->log, &s->store)); }
        crdi_unit_store_isolate(s->store, s->sys->run.isolate);
        CRD_TRY(crd_unit_create_shared(s->log, s->store, &s->sys->units[0], &s->unit));
        s->stations[0].unit = s->unit;
        // Nobody tells derivatives of inputs.
        s->unit->input_order = 0;
    } else {
        crd_master_options opt = crd_master_defaults();
        opt.open_end = opt.guard_crashes = opt.no_statistics = true;
        opt.last_words = s->opt.last_words;
        opt.last_words_user = s->opt.last_words_user;
        CRD_TRY(crd_master_create(s->log, s->sys, &opt, &s->master));
        for (int i = 0; i < s->unit_count; i++) {
            s->stations[i].unit = crd_master_get_unit(s->master, i);
        }
    }
    s->phase = CRDI_PLANT_MADE;
fail:
    return st;
}

static void clear_values(crd_unit* u, crd_binding* b, crd_values* v)
{
    for (int i = 0; b && v->bytes && i < b->bytes_count; i++) {
        crd_free(u->ctx, v->bytes[i].data);
    }
    crd_binding_destroy(b);
    *v = (crd_values){0};
}

static void destroy_unit(void* with)
{
    crdi_serve* s = with;
    s->running = 0;
    crd_unit_destroy(s->unit);
    s->running = -1;
}

// After a crash in this process, where that is wanted.
static void end_process(const crdi_serve* s, const char* sentence, const char* unit)
{
    const crd_last_words words = {.sentence = sentence, .unit = unit, .results = ""};
    if (!s->opt.last_words) { return; }
    s->opt.last_words(s->opt.last_words_user, &words);
    _exit(crd_status_exit_code(CRD_E_CRASH));
}

// A unit may crash when it is freed; what it had is lost then.
static void destroy_units(crdi_serve* s)
{
    if (s->unit && crdi_crash_catch(&s->running, destroy_unit, s)) {
        s->running = -1;
        end_process(s, "the unit crashed when it was freed", "");
        crdi_log(s->log, CRD_LOG_WARNING, "the unit crashed when it was freed");
    }
    s->unit = NULL;
    crd_master_destroy(s->master);
    s->master = NULL;
}

void crdi_serve_close(crdi_serve* s)
{
    for (int i = 0; i < s->outlet_count; i++) {
        crdi_outlet* o = &s->outlets[i];
        if (o->binding) { clear_values(s->stations[o->unit].unit, o->binding, &o->values); }
        o->binding = NULL;
    }
    for (int i = 0; i < s->unit_count; i++) {
        crdi_station* p = &s->stations[i];
        clear_values(p->unit, p->in, &p->inputs);
        clear_values(p->unit, p->out, &p->outputs);
        p->in = p->out = NULL;
        p->changed = p->fresh = false;
    }
    if (s->unit || s->master) { destroy_units(s); }
    for (int i = 0; i < s->unit_count; i++) {
        crdi_station* p = &s->stations[i];
        p->unit = NULL;
        s->sys->units[i].parameters = p->parameters;
        s->sys->units[i].parameter_count = p->parameter_count;
    }
    crd_arena_clear(&s->live);
    crd_arena_init(&s->live, s->ctx);
    s->phase = CRDI_PLANT_NONE;
}

// ---- bindings ----------------------------------------------------------------------------------

static crd_status plant_make_values(crdi_serve* s, const crd_binding* b, crd_values* v)
{
    v->real = crdi_arena_new(&s->live, (size_t)b->real_count, sizeof *v->real);
    v->integer = crdi_arena_new(&s->live, (size_t)b->integer_count, sizeof *v->integer);
    v->bytes = crdi_arena_new(&s->live, (size_t)b->bytes_count, sizeof *v->bytes);
    if (!v->real || !v->integer || !v->bytes) { return CRD_E_MEMORY; }
    for (int i = 0; i < b->bytes_count; i++) {
        const size_t room = (size_t)s->opt.max_text + 1;
        v->bytes[i].data = crdi_new(b->unit->ctx, room);
        if (!v->bytes[i].data) { return CRD_E_MEMORY; }
        v->bytes[i].capacity = room;
    }
    return CRD_OK;
}

// Elements of arrays of texts are variables of the description: there have to be as many.
static crd_status place_outlet(crdi_serve* s, crdi_outlet* o, int32_t first)
{
    const uint32_t size = s->stations[o->unit].unit->info.variables[o->variable].size;
    if (o->element >= 0 && (uint32_t)o->element >= size) {
        return crdi_fail(s->log, CRD_E_RANGE,
                         "'%s' is not there: the array of texts has %u elements with these "
                         "structural parameters, fewer than described",
                         o->name, size);
    }
    o->at = first + (o->element > 0 ? o->element : 0);
    o->count = o->element < 0 ? size : 1;
    return CRD_OK;
}

// One binding of all inputs or outputs of a unit.
static crd_status bind_side(crdi_serve* s, int unit, crd_causality side, crd_binding** b,
                            crd_values* v)
{
    crd_status st = CRD_OK;
    crd_unit* u = s->stations[unit].unit;
    int32_t* list = crdi_new_array(s->ctx, (size_t)s->outlet_count, sizeof *list);
    int32_t* place = crdi_new_array(s->ctx, (size_t)u->info.variable_count, sizeof *place);
    if (!list || !place) { CRD_TRY(CRD_E_MEMORY); }
    int32_t n = 0;
    for (int i = 0; i < s->outlet_count; i++) {
        const crdi_outlet* o = &s->outlets[i];
        const bool here = o->unit == unit && o->causality == side && o->used;
        if (here && (n == 0 || list[n - 1] != o->variable)) { list[n++] = o->variable; }
    }
    if (n == 0) { goto fail; }
    CRD_TRY(fail_unit(s, unit, crd_binding_create(u, list, n, b)));
    CRD_TRY(plant_make_values(s, *b, v));
    for (int32_t j = 0; j < n; j++) {
        place[(*b)->variables[j]] = (*b)->offsets[j];
    }
    for (int i = 0; i < s->outlet_count; i++) {
        crdi_outlet* o = &s->outlets[i];
        if (o->unit == unit && o->causality == side && o->used) {
            CRD_TRY(place_outlet(s, o, place[o->variable]));
        }
    }
fail:
    crd_free(s->ctx, list);
    crd_free(s->ctx, place);
    return st;
}

// Texts of an array are set together: those that the master does not give are as they started.
static crd_status fill_texts(crdi_serve* s, crdi_outlet* head)
{
    for (int i = (int)(head - s->outlets); i < s->outlet_count; i++) {
        const crdi_outlet* o = &s->outlets[i];
        if (o->unit != head->unit || o->variable != head->variable ||
            o->element >= head->binding->bytes_count) {
            break;
        }
        const char* text = "";
        crd_status st = crdi_serve_start_text(s, o, &s->live, &text);
        crd_bytes* to = &head->values.bytes[o->element < 0 ? 0 : o->element];
        if (st >= 0 && o->type == CRD_DCP_STRING) {
            st = crd_bytes_set(head->binding->unit->ctx, to, text, strlen(text));
        }
        if (st >= 0 &&
            o->type == CRD_DCP_BINARY) { // no longer than max_text: start_text sees to it
            (void)crdi_dcp_hex_parse(text, strlen(text), to->data, to->capacity, &to->length);
        }
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

// A parameter has a binding of its own: when it is first asked for, tunable ones before they run.
static crd_status bind_parameter(crdi_serve* s, crdi_outlet* o)
{
    crdi_outlet* head = &s->outlets[o->head];
    crd_unit* u = s->stations[o->unit].unit;
    crd_status st = place_outlet(s, o, 0);
    if (head->binding || st < 0) { return st; }
    st = fail_unit(s, o->unit, crd_binding_create(u, &head->variable, 1, &head->binding));
    if (st >= 0) { st = plant_make_values(s, head->binding, &head->values); }
    if (st >= 0 && head->kind == CRD_BYTES) { st = fill_texts(s, head); }
    return st;
}

static crd_status bind_all(crdi_serve* s)
{
    crd_status st = CRD_OK;
    for (int i = 0; i < s->unit_count; i++) {
        crdi_station* p = &s->stations[i];
        CRD_TRY(bind_side(s, i, CRD_INPUT, &p->in, &p->inputs));
        CRD_TRY(bind_side(s, i, CRD_OUTPUT, &p->out, &p->outputs));
    }
    for (int i = 0; i < s->outlet_count; i++) {
        crdi_outlet* o = &s->outlets[i];
        if (o->used && o->causality == CRD_PARAMETER && o->variability == CRD_TUNABLE) {
            CRD_TRY(bind_parameter(s, o));
        }
    }
    s->phase = CRDI_PLANT_BOUND;
fail:
    return st;
}

// ---- values ------------------------------------------------------------------------------------

static crd_status set_unit(crdi_serve* s, int unit, const crd_binding* b, const crd_values* v)
{
    crd_unit* u = s->stations[unit].unit;
    s->running = unit;
    const crd_status st = u->ops->set(u, b, v);
    s->running = -1;
    return fail_unit(s, unit, st);
}

static crd_status get_unit(crdi_serve* s, int unit, const crd_binding* b, crd_values* v)
{
    crd_unit* u = s->stations[unit].unit;
    s->running = unit;
    const crd_status st = u->ops->get(u, b, v);
    s->running = -1;
    return fail_unit(s, unit, st);
}

// Inputs that have come, into the units.
static crd_status push_inputs(crdi_serve* s)
{
    for (int i = 0; i < s->unit_count; i++) {
        crdi_station* p = &s->stations[i];
        p->fresh = false;
        if (!p->changed) { continue; }
        p->changed = false;
        const crd_status st = set_unit(s, i, p->in, &p->inputs);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

static crd_status plant_check_count(crdi_serve* s, const crdi_outlet* o, const crd_dcp_slot* slot,
                                    const char* what)
{
    if (o->kind == CRD_BYTES || slot->count == o->count) { return CRD_OK; }
    return crdi_fail(s->log, CRD_E_RANGE, "'%s' has %u elements, but %u %s", o->name, o->count,
                     slot->count, what);
}

static crd_status take_slot(crdi_serve* s, const crdi_outlet* o, crd_values* v,
                            const crd_dcp_slot* slot)
{
    const crd_unit* u = s->stations[o->unit].unit;
    crd_status st = CRD_OK;
    CRD_TRY(plant_check_count(s, o, slot, "came"));
    CRD_TRY(fail_unit(s, o->unit, crdi_dcp_slot_get(u->ctx, slot, v, o->at)));
    const bool boolean = u->info.variables[o->variable].type == CRD_BOOLEAN;
    for (uint32_t i = 0; boolean && i < slot->count; i++) {
        v->integer[o->at + (int32_t)i] = slot->integer[i] != 0;
    }
fail:
    return st;
}

static crd_status give_slot(crdi_serve* s, const crdi_outlet* o, const crd_values* v,
                            crd_dcp_slot* slot)
{
    const crd_status st = plant_check_count(s, o, slot, "are wanted");
    if (st < 0 || crdi_dcp_slot_set(slot, v, o->at)) { return st; }
    return crdi_fail(s->log, CRD_E_RANGE,
                     "'%s' has %zu bytes, but its maxSize is %u: describe it with more", o->name,
                     v->bytes[o->at].length, slot->max_size);
}

// ---- states ------------------------------------------------------------------------------------

static crd_status instantiate_units(crdi_serve* s)
{
    crd_status st = CRD_OK;
    if (s->one) {
        s->running = 0;
        st = crd_unit_instantiate(s->unit);
        s->running = -1;
        st = fail_unit(s, 0, st);
    } else {
        st = crd_master_reach(s->master, CRD_STAGE_INSTANTIATED);
    }
    if (st >= 0) { s->phase = CRDI_PLANT_INSTANTIATED; }
    return st;
}

// Inputs start with what the units have in them.
static crd_status enter_initialization_mode(crdi_serve* s)
{
    crd_status st = CRD_OK;
    if (s->one) {
        const crd_experiment e = {.start = s->start,
                                  .has_tolerance = !isnan(s->tolerance),
                                  .tolerance = isnan(s->tolerance) ? 0 : s->tolerance};
        s->running = 0;
        st = s->unit->ops->enter_initialization(s->unit, &e);
        s->running = -1;
        st = fail_unit(s, 0, st);
    } else {
        st = crd_master_reach(s->master, CRD_STAGE_INITIALIZING);
    }
    for (int i = 0; st >= 0 && i < s->unit_count; i++) {
        crdi_station* p = &s->stations[i];
        if (p->in) { st = get_unit(s, i, p->in, &p->inputs); }
    }
    if (st >= 0) { s->phase = CRDI_PLANT_ENTERED; }
    return st;
}

static crd_status leave_initialization_mode(crdi_serve* s)
{
    crd_status st = push_inputs(s);
    if (st >= 0 && s->one) {
        s->running = 0;
        st = s->unit->ops->exit_initialization(s->unit);
        s->running = -1;
        st = fail_unit(s, 0, st);
    } else if (st >= 0) {
        st = crd_master_initialize(s->master);
    }
    if (st >= 0) { s->phase = CRDI_PLANT_RUNS; }
    return st;
}

// On to a phase, through those before it. What a phase needs comes when it is first asked for, as
// parameters and inputs arrive before the state that they are for.
static crd_status reach_phase(crdi_serve* s, crdi_plant_phase phase)
{
    crd_status st = CRD_OK;
    if (s->phase >= CRDI_PLANT_ENDED) {
        return crdi_fail(s->log, CRD_E_STATE, "the %s has ended, and needs a reset",
                         s->one ? "unit" : "system");
    }
    if (s->resized && s->phase >= CRDI_PLANT_INSTANTIATED) {
        return crdi_fail(s->log, CRD_E_STATE,
                         "a structural parameter came after the units were instantiated");
    }
    if (s->phase < CRDI_PLANT_MADE || s->resized) { CRD_TRY(crdi_serve_make(s)); }
    if (s->phase < CRDI_PLANT_BOUND) { CRD_TRY(bind_all(s)); }
    if (s->phase < CRDI_PLANT_INSTANTIATED) { CRD_TRY(instantiate_units(s)); }
    if (s->phase < phase && s->phase < CRDI_PLANT_ENTERED) {
        CRD_TRY(enter_initialization_mode(s));
    }
    if (s->phase < phase && s->phase < CRDI_PLANT_RUNS) { CRD_TRY(leave_initialization_mode(s)); }
fail:
    return st;
}

static crd_status initialize_units(crdi_serve* s)
{
    crd_status st = reach_phase(s, CRDI_PLANT_ENTERED);
    if (st >= 0) { st = push_inputs(s); }
    if (st >= 0 && !s->one) { st = crd_master_reach(s->master, CRD_STAGE_CONSISTENT); }
    return st;
}

static crd_status terminate_units(crdi_serve* s)
{
    const crdi_plant_phase before = s->phase;
    crd_status st = CRD_OK;
    if (before > CRDI_PLANT_RUNS || before < CRDI_PLANT_INSTANTIATED) { return CRD_OK; }
    s->phase = CRDI_PLANT_ENDED;
    if (!s->one) {
        st = crd_master_finish(s->master);
    } else if (before == CRDI_PLANT_RUNS) {
        s->running = 0;
        st = s->unit->ops->terminate(s->unit);
        s->running = -1;
        st = fail_unit(s, 0, st);
    }
    return st;
}

static crd_status enter_state(crdi_serve* s, crd_dcp_state state)
{
    switch (state) {
    case CRD_DCP_CONFIGURATION:
        crdi_serve_close(s);
        for (int i = 0; i < s->outlet_count; i++) {
            s->outlets[i].given = -1;
        }
        s->resized = false;
        return CRD_OK;
    case CRD_DCP_PREPARING:
        return reach_phase(s, CRDI_PLANT_INSTANTIATED);
    case CRD_DCP_INITIALIZING:
        return initialize_units(s);
    case CRD_DCP_SYNCHRONIZING:
        return reach_phase(s, CRDI_PLANT_RUNS);
    case CRD_DCP_STOPPING:
    case CRD_DCP_ERRORHANDLING:
        return terminate_units(s);
    default:
        return CRD_OK;
    }
}

// ---- steps -------------------------------------------------------------------------------------

typedef struct stride {
    int64_t done;
    uint32_t steps;
    double resolution;
} stride;

static crd_status plant_fail_at(crdi_serve* s, crd_status st, double t)
{
    return st < 0 ? crdi_fail_in(s->log, st, "at t = %.10g s", t) : st;
}

// A unit that steps by any length makes one step of it, others one for each of theirs.
static crd_status step_unit(crdi_serve* s, const stride* x)
{
    crd_unit* u = s->unit;
    const int64_t parts = s->varies ? 1 : (int64_t)x->steps * s->inner;
    const double h = x->resolution * (double)x->steps / (double)parts;
    crd_status st = CRD_OK;
    for (int64_t i = 0; i < parts && st >= 0; i++) {
        const double t = s->start + ((double)x->done + (double)i / s->inner) * x->resolution;
        s->running = 0;
        st = u->ops->step(u, t, h);
        s->running = -1;
        st = plant_fail_at(s, fail_unit(s, 0, st), t);
    }
    return st;
}

// The master's ticks may be shorter than the resolution, where units have steps of their own.
static crd_status step_system(crdi_serve* s, const stride* x)
{
    const double until = s->start + (double)(x->done + x->steps) * x->resolution;
    crd_status st = CRD_OK;
    while (st >= 0 && crd_master_ended(s->master) == CRD_END_NONE &&
           crd_master_time(s->master) < until - 1e-6 * x->resolution) {
        st = crd_master_advance(s->master, 1);
    }
    return st;
}

static bool wants_stop(const crdi_serve* s)
{
    return s->one ? s->unit->wants_stop : crd_master_ended(s->master) != CRD_END_NONE;
}

// What the slave asks for has passed already: units in real time need not wait for it once more.
static void start_grids(crdi_serve* s, const stride* x)
{
    for (int i = 0; i < s->unit_count; i++) {
        crd_unit* u = s->stations[i].unit;
        if (!(u->info.flags & CRD_UNIT_IN_REAL_TIME) || u->origin != 0) { continue; }
        u->origin = crdi_now_ns() - llround(1e9 * x->resolution * (double)x->steps);
    }
}

static crd_status step_units(crdi_serve* s, const stride* x)
{
    crd_status st = CRD_OK;
    CRD_TRY(reach_phase(s, CRDI_PLANT_RUNS));
    if (wants_stop(s)) { // since the last step, whose outputs have been sent
        const double t = s->start + (double)x->done * x->resolution;
        crd_dcp_slave_stop(s->slave, 0);
        if (crd_dcp_slave_state(s->slave) == CRD_DCP_COMPUTING) {
            return crdi_fail(s->log, CRD_E_UNIT, "the %s has ended the run at t = %.10g s",
                             s->one ? "unit" : "system", t);
        }
        return CRD_OK;
    }
    CRD_TRY(push_inputs(s));
    if (x->done == 0) { start_grids(s, x); }
    CRD_TRY(s->one ? step_unit(s, x) : step_system(s, x));
fail:
    return st;
}

// ---- for the slave -----------------------------------------------------------------------------

typedef enum request_kind { ENTER, STEP, SET, GET } request_kind;

typedef struct request {
    request_kind kind;
    crd_dcp_state state;
    stride stride;
    int variable;
    const crd_dcp_slot* from;
    crd_dcp_slot* to;
    crdi_serve* s;
    crd_status status; // what became of it
} request;

static crd_status set_value(crdi_serve* s, crdi_outlet* o, const crd_dcp_slot* slot)
{
    crd_status st = CRD_OK;
    crdi_station* p = &s->stations[o->unit];
    if (o->causality == CRD_STRUCTURAL_PARAMETER) {
        s->resized = s->resized || o->given != slot->integer[0];
        o->given = slot->integer[0];
    } else if (o->causality == CRD_PARAMETER) {
        crdi_outlet* head = &s->outlets[o->head];
        CRD_TRY(reach_phase(s, CRDI_PLANT_INSTANTIATED));
        CRD_TRY(bind_parameter(s, o));
        CRD_TRY(take_slot(s, o, &head->values, slot));
        CRD_TRY(set_unit(s, o->unit, head->binding, &head->values));
        p->fresh = false;
    } else {
        CRD_TRY(reach_phase(s, CRDI_PLANT_ENTERED));
        CRD_TRY(take_slot(s, o, &p->inputs, slot));
        p->changed = true;
    }
fail:
    return st;
}

static crd_status get_value(crdi_serve* s, const crdi_outlet* o, crd_dcp_slot* slot)
{
    crd_status st = CRD_OK;
    crdi_station* p = &s->stations[o->unit];
    CRD_TRY(reach_phase(s, CRDI_PLANT_ENTERED));
    // Between two steps (a wave port asks): an output that follows an input at once.
    if (p->changed && s->one && s->phase == CRDI_PLANT_RUNS &&
        p->unit->info.flags & CRD_UNIT_CAN_REFRESH) {
        CRD_TRY(push_inputs(s));
    }
    if (!p->fresh) {
        CRD_TRY(get_unit(s, o->unit, p->out, &p->outputs));
        p->fresh = true;
    }
    CRD_TRY(give_slot(s, o, &p->outputs, slot));
fail:
    return st;
}

static crd_status do_request(crdi_serve* s, const request* r)
{
    switch (r->kind) {
    case ENTER:
        return enter_state(s, r->state);
    case STEP:
        return step_units(s, &r->stride);
    case SET:
        return set_value(s, &s->outlets[s->outlet_of[r->variable]], r->from);
    case GET:
        return get_value(s, &s->outlets[s->outlet_of[r->variable]], r->to);
    }
    return CRD_OK;
}

static crd_status word_crash(crdi_serve* s, int signal_number)
{
    const int unit = s->running;
    crd_unit* u = s->stations[unit].unit;
    const char *call = crdi_unit_last_call(u), *name = sigdescr_np(signal_number);
    char text[400];
    s->running = -1;
    if (signal_number == CRDI_CRASH_EXIT) {
        snprintf(text, sizeof text, "unit '%.100s': tried to end the process with exit() in %s",
                 u->name, call);
    } else {
        snprintf(text, sizeof text, "unit '%.100s': crashed in %s (%s)", u->name, call,
                 name ? name : "a signal");
    }
    end_process(s, text, u->name);
    crdi_unit_abandon(u);
    return crdi_fail(s->log, CRD_E_CRASH, "%s", text);
}

static void run_request(void* with)
{
    request* r = with;
    r->status = do_request(r->s, r);
}

static crd_dcp_outcome call_guarded(crdi_serve* s, request r)
{
    r.s = s;
    const int crash = crdi_crash_catch(&s->running, run_request, &r);
    const crd_status st = crash ? word_crash(s, crash) : r.status;
    if (__atomic_load_n(&s->has_lines, __ATOMIC_ACQUIRE)) { crdi_serve_send_lines(s); }
    if (st >= 0) { return CRD_DCP_DONE; }
    s->phase = CRDI_PLANT_BROKEN;
    snprintf(s->failure, sizeof s->failure, "%s",
             st == CRD_E_MEMORY ? crd_status_text(st) : crd_error_text(s->log));
    crdi_log(s->ctx, CRD_LOG_ERROR, "%s", s->failure);
    crdi_serve_note(s, 0, s->failure);
    return CRD_DCP_FAILED;
}

static crd_dcp_outcome plant_enter(void* user, crd_dcp_state state, double now)
{
    (void)now;
    return call_guarded(user, (request){.kind = ENTER, .state = state});
}

static crd_dcp_outcome plant_step(void* user, int64_t done, uint32_t steps, double resolution)
{
    return call_guarded(user, (request){.kind = STEP, .stride = {done, steps, resolution}});
}

static crd_dcp_outcome plant_set(void* user, int variable, const crd_dcp_slot* value)
{
    return call_guarded(user, (request){.kind = SET, .variable = variable, .from = value});
}

static crd_dcp_outcome plant_get(void* user, int variable, crd_dcp_slot* value)
{
    return call_guarded(user, (request){.kind = GET, .variable = variable, .to = value});
}

crd_dcp_plant crdi_serve_plant(crdi_serve* s)
{
    return (crd_dcp_plant){
        .user = s, .enter = plant_enter, .step = plant_step, .set = plant_set, .get = plant_get};
}
