// What there is to watch and to set, worked out once at the end of the initialisation.
#include "master/live/live.h"

#include <math.h>
#include <stdio.h>

static void* room(crdi_live* l, int n, size_t size)
{
    return crdi_arena_new(&l->arena, (size_t)n, size);
}

static const char* info_text_of(const char* text)
{
    return text ? text : "";
}

// ---- units and signals -------------------------------------------------------------------------

static crd_status describe_units(crdi_live* l)
{
    const crd_master* m = l->m;
    crdi_live_unit* units = room(l, m->plan->member_count, sizeof *units);
    if (!units) { return CRD_E_MEMORY; }
    for (int i = 0; i < m->plan->member_count; i++) {
        const crdi_member* p = &m->plan->members[i];
        const crd_unit* u = p->unit;
        units[i] = (crdi_live_unit){.name = u->name,
                                    .kind = info_text_of(u->info.kind),
                                    .remote = CRDI_UNIT_HAS(u, remote, begin) ||
                                              CRDI_UNIT_HAS(u, remote, link),
                                    .real = u->spec && u->spec->real,
                                    .step = p->step > 0 ? p->step : m->plan->times.tick,
                                    .budget = u->spec ? u->spec->budget : (double)NAN};
        if (u->info.flags & CRD_UNIT_IN_REAL_TIME) {
            l->cannot_pause = true;
            l->restless = u->name;
        }
    }
    l->info.units = units;
    l->info.unit_count = m->plan->member_count;
    return CRD_OK;
}

// In the order of the record, whose values stand by raster.
static crd_status describe_signals(crdi_live* l)
{
    const crd_master* m = l->m;
    const int n = crdi_record_signal_count(m);
    crdi_live_signal* signals =
        room(l, n < CRDI_LIVE_SIGNALS ? n : CRDI_LIVE_SIGNALS, sizeof *signals);
    l->sources = room(l, n < CRDI_LIVE_SIGNALS ? n : CRDI_LIVE_SIGNALS, sizeof *l->sources);
    const crdi_recorded** of = room(l, n, sizeof *of);
    if (!signals || !l->sources || !of) { return CRD_E_MEMORY; }
    for (int i = 0; i < n; i++) {
        of[crdi_record_value(m, i)->signal] = crdi_record_value(m, i);
    }
    int count = 0;
    for (int i = 0; i < n; i++) {
        const crdi_signal* s = crdi_record_signal(m, i);
        const crdi_offer* x = s->offer;
        const crd_variable* v =
            x ? NULL : &m->plan->members[s->member].unit->info.variables[s->variable];
        if (of[i]->kind == CRD_BYTES) { continue; }
        if (count == CRDI_LIVE_SIGNALS) {
            l->info.signals_left_out++;
            continue;
        }
        const crd_type type = x ? x->type : (crd_type)v->type;
        signals[count] =
            (crdi_live_signal){.name = s->name,
                               .unit = info_text_of(x ? x->unit : v->unit),
                               .description = info_text_of(x ? x->description : v->description),
                               .owner = s->member,
                               .type = type};
        l->sources[count++] = (crdi_live_source){.from = of[i]->from,
                                                 .real = of[i]->kind == CRD_REAL,
                                                 .is_unsigned = type == CRD_UINT64};
    }
    l->info.signals = signals;
    l->info.signal_count = count;
    return CRD_OK;
}

// ---- links -------------------------------------------------------------------------------------

static int signal_of(const crdi_live* l, const crdi_connection* k)
{
    const crd_master* m = l->m;
    const crd_unit* u = m->plan->members[k->from.member].unit;
    const int n = crdi_record_signal_count(m);
    for (int i = 0, at = 0; i < n; i++) {
        const crdi_signal* s = crdi_record_signal(m, i);
        const crd_type type =
            s->offer ? s->offer->type
                     : (crd_type)m->plan->members[s->member].unit->info.variables[s->variable].type;
        if (crd_type_kind(type) == CRD_BYTES) { continue; }
        if (at == l->info.signal_count) { break; }
        if (!s->offer && s->member == k->from.member &&
            crdi_variable_read(u, s->variable) == crdi_variable_read(u, k->from.variable) &&
            s->element == k->from.element) {
            return at;
        }
        at++;
    }
    return -1;
}

static crd_status describe_link(crdi_live* l, int i)
{
    crd_master* m = l->m;
    const crdi_connection* k = &m->plan->connections[i];
    crdi_member* b = &m->plan->members[k->to.member];
    const crd_variable* v = &b->unit->info.variables[k->to.variable];
    const bool real = crd_type_kind(v->type) == CRD_REAL;
    crdi_live_link* out = &l->links[i];
    crdi_live_wire* w = &l->wires[i];
    *out = (crdi_live_link){
        .from = crdi_end_short_name(m->plan, &l->arena, &k->from),
        .to = crdi_end_short_name(m->plan, &l->arena, &k->to),
        .unit = info_text_of(v->unit),
        .from_unit = k->from.member,
        .to_unit = k->to.member,
        .coupling = k->couple,
        .can_fault = real && !k->routed,
        .from_signal = signal_of(l, k),
    };
    if (!out->from || !out->to) { return CRD_E_MEMORY; }
    *w = (crdi_live_wire){
        .link = k,
        .couple = k->coupled,
        .to = crdi_slot(&b->inputs, crd_type_kind(v->type), k->to.slot),
        .type = (crd_type)v->type,
        .over = crdi_arena_format(&l->arena, "fault at %s is over", out->to),
    };
    l->faults[i] =
        (crdi_fault){.m = m, .member = b, .slot = real ? k->to.slot : -1, .applied = (double)NAN};
    if (w->couple) { snprintf(w->label, sizeof w->label, "%.39s", w->couple->estimators[0].label); }
    return w->over ? CRD_OK : CRD_E_MEMORY;
}

static crd_status describe_links(crdi_live* l)
{
    const int n = l->m->plan->connection_count;
    l->links = room(l, n, sizeof *l->links);
    l->wires = room(l, n, sizeof *l->wires);
    l->faults = room(l, n, sizeof *l->faults);
    if (!l->links || !l->wires || !l->faults) { return CRD_E_MEMORY; }
    for (int i = 0; i < n; i++) {
        const crd_status st = describe_link(l, i);
        if (st < 0) { return st; }
    }
    l->info.links = l->links;
    l->info.link_count = n;
    return CRD_OK;
}

static crd_status describe_bonds(crdi_live* l)
{
    const crd_master* m = l->m;
    crdi_live_bond* bonds = room(l, m->energy.bond_count, sizeof *bonds);
    if (!bonds) { return CRD_E_MEMORY; }
    for (int i = 0; i < m->energy.bond_count; i++) {
        const crdi_bond* p = &m->energy.bonds[i];
        bonds[i] = (crdi_live_bond){info_text_of(p->name), info_text_of(p->action_name),
                                    info_text_of(p->flow_name)};
    }
    l->info.bonds = bonds;
    l->info.bond_count = m->energy.bond_count;
    return CRD_OK;
}

static crd_status describe_ports(crdi_live* l)
{
    const crd_master* m = l->m;
    const int n = 2 * m->connections.pair_count;
    crdi_live_port* ports = room(l, n, sizeof *ports);
    if (!ports) { return CRD_E_MEMORY; }
    for (int i = 0; i < n; i++) {
        const crdi_paired* w = &m->connections.pairs[i / 2];
        ports[i] =
            (crdi_live_port){info_text_of(w->name),
                             crdi_end_short_name(m->plan, &l->arena, &w->sides[i % 2].gives->from)};
        if (!ports[i].output) { return CRD_E_MEMORY; }
    }
    l->info.ports = ports;
    l->info.port_count = n;
    return CRD_OK;
}

// ---- settings ----------------------------------------------------------------------------------

static bool can_be_set(const crdi_member* p, int32_t variable)
{
    const crd_variable* v = &p->unit->info.variables[variable];
    if (crd_type_kind(v->type) == CRD_BYTES || v->type == CRD_CLOCK || v->alias_of >= 0 ||
        v->size == 0) {
        return false;
    }
    if (v->causality == CRD_PARAMETER) { // DCP knows no state in which they could change then
        const bool dcp = p->unit->spec && p->unit->spec->source == CRD_UNIT_DCP;
        return v->variability == CRD_TUNABLE && !dcp;
    }
    if (v->causality != CRD_INPUT) { return false; }
    for (int32_t i = 0; p->in && i < p->in->count; i++) {
        const int32_t connected = p->in->variables[i];
        if (connected == variable || crdi_variable_read(p->unit, connected) == variable) {
            return false;
        }
    }
    return true;
}

// One value of a knob as a number; NaN: the unit does not tell it.
static double info_start_of(const crd_variable* v, const crdi_live_knob* k, uint32_t e)
{
    return crd_type_kind(v->type) == CRD_REAL ? k->values.real[e]
           : v->type == CRD_UINT64            ? (double)(uint64_t)k->values.integer[e]
                                              : (double)k->values.integer[e];
}

static crd_status info_add_setting(crdi_live* l, crdi_live_setting* settings, int knob, bool known,
                                   uint32_t e)
{
    const crdi_live_knob* k = &l->knobs[knob];
    const crd_variable* v = &l->m->plan->members[k->member].unit->info.variables[k->variable];
    const int at = l->info.setting_count;
    const crdi_end end = {.member = k->member, .variable = k->variable, .element = (int32_t)e};
    settings[at] = (crdi_live_setting){.name = crdi_end_short_name(l->m->plan, &l->arena, &end),
                                       .unit = info_text_of(v->unit),
                                       .description = info_text_of(v->description),
                                       .owner = k->member,
                                       .type = (crd_type)v->type,
                                       .start = known ? info_start_of(v, k, e) : (double)NAN,
                                       .min = v->min,
                                       .max = v->max,
                                       .input = v->causality == CRD_INPUT};
    if (!settings[at].name) { return CRD_E_MEMORY; }
    const bool real = crd_type_kind(v->type) == CRD_REAL;
    l->places[at] = (crdi_live_place){.knob = knob,
                                      .element = (int)e,
                                      .known = known,
                                      .real = real ? k->values.real[e] : 0,
                                      .integer = real ? 0 : k->values.integer[e]};
    l->info.setting_count++;
    return CRD_OK;
}

// A unit that does not tell the value is not told the others of an array either: one element of it
// cannot be set alone.
static crd_status add_knob(crdi_live* l, crdi_live_setting* settings, int member, int32_t variable)
{
    crd_status st = CRD_OK;
    crd_master* m = l->m;
    crd_unit* u = m->plan->members[member].unit;
    const crd_variable* v = &u->info.variables[variable];
    crdi_live_knob* k = &l->knobs[l->knob_count];
    *k = (crdi_live_knob){.member = member, .variable = variable};
    CRD_TRY(crd_binding_create(u, &variable, 1, &k->binding));
    const int knob = l->knob_count++; // from here on it is freed
    k->values.real = room(l, k->binding->real_count, sizeof *k->values.real);
    k->values.integer = room(l, k->binding->integer_count, sizeof *k->values.integer);
    if (!k->values.real || !k->values.integer) { return CRD_E_MEMORY; }
    k->has_dimension = crdi_unit_dimension(u, variable, &k->dimension);
    k->items = crdi_variable_labels(&l->arena, u, variable, &k->item_count);
    if (k->item_count < 0) { return CRD_E_MEMORY; }
    m->running = member;
    const bool known = u->ops->get(u, k->binding, &k->values) >= 0;
    m->running = -1;
    for (uint32_t e = 0; e < v->size && (known || v->size == 1); e++) {
        CRD_TRY(info_add_setting(l, settings, knob, known, e));
    }
fail:
    return st == CRD_E_MEMORY || st >= 0 ? st : CRD_OK; // what cannot be bound cannot be set
}

static crd_status describe_settings(crdi_live* l)
{
    crd_master* m = l->m;
    crdi_live_setting* settings = room(l, CRDI_LIVE_SETTINGS, sizeof *settings);
    l->places = room(l, CRDI_LIVE_SETTINGS, sizeof *l->places);
    l->knobs = room(l, CRDI_LIVE_SETTINGS, sizeof *l->knobs);
    if (!settings || !l->places || !l->knobs) { return CRD_E_MEMORY; }
    l->info.settings = settings;
    for (int i = 0; i < m->plan->member_count; i++) {
        const crdi_member* p = &m->plan->members[i];
        const int32_t n = crdi_member_is_hidden(m->plan, i) ? 0 : p->unit->info.variable_count;
        for (int32_t v = 0; v < n; v++) {
            const uint32_t size = p->unit->info.variables[v].size;
            if (!can_be_set(p, v) || size > CRDI_LIVE_SETTINGS ||
                l->info.setting_count + (int)size > CRDI_LIVE_SETTINGS) {
                continue;
            }
            const crd_status st = add_knob(l, settings, i, v);
            if (st < 0) { return st; }
        }
    }
    return CRD_OK;
}

void crdi_live_free_knobs(crdi_live* l)
{
    for (int i = 0; i < l->knob_count; i++) {
        crd_binding_destroy(l->knobs[i].binding);
    }
    l->knob_count = 0;
}

// ---- all of it ---------------------------------------------------------------------------------

// What is known before any unit has begun; a watcher may look at it from now on.
crd_status crdi_live_introduce(crdi_live* l)
{
    const crd_master* m = l->m;
    l->info.title = info_text_of(m->plan->sys->title);
    l->info.file = info_text_of(m->plan->sys->file);
    l->info.results = info_text_of(m->plan->sys->results.path);
    l->info.read_only = l->opt.read_only;
    l->info.desk = l->opt.ask;
    l->info.calibrates = l->opt.calibration && !l->opt.read_only;
    l->boards = room(l, m->plan->member_count, sizeof *l->boards);
    l->board_units = room(l, m->plan->member_count, sizeof *l->board_units);
    l->seats = room(l, m->plan->member_count, sizeof *l->seats);
    if (!l->boards || !l->board_units || !l->seats) { return CRD_E_MEMORY; }
    l->info.seats = l->seats;
    for (int i = 0; i < m->plan->member_count; i++) {
        const crd_unit* u = m->plan->members[i].unit;
        crdi_seat* seat = crdi_unit_seat(u);
        if (seat) { l->seats[l->info.seat_count++] = seat; }
        const crdi_board* b = crdi_unit_board(u);
        if (!b) { continue; }
        l->boards[l->board_count] = b;
        l->board_units[l->board_count++] = u->name;
    }
    return CRD_OK;
}

int crdi_live_board_count(const crdi_live* l)
{
    return l->board_count;
}

const char* crdi_live_board_unit(const crdi_live* l, int board)
{
    return l->board_units[board];
}

void crdi_live_read_board(const crdi_live* l, int board, crdi_board_state* out)
{
    crdi_board_read(l->boards[board], out);
}

crd_status crdi_live_describe(crdi_live* l)
{
    crd_status st = CRD_OK;
    const crd_master* m = l->m;
    l->info.start = m->plan->times.start;
    l->info.stop = m->plan->opt.open_end ? (double)INFINITY : m->plan->times.stop;
    l->info.step = crdi_step_nominal(m);
    l->info.factor = m->plan->paced ? m->plan->sys->run.pace.factor : 0;
    l->info.wait = l->opt.wait;
    CRD_TRY(describe_units(l));
    CRD_TRY(describe_signals(l));
    CRD_TRY(describe_links(l));
    CRD_TRY(describe_bonds(l));
    CRD_TRY(describe_ports(l));
    CRD_TRY(describe_settings(l));
fail:
    return st;
}
