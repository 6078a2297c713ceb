// Power bonds with a pair of wave ports. A macro step of a unit with ports:
//   packets that are due -> port -> inner steps: port acts, unit steps, port accounts -> packet
// The packets of a macro step leave when all units have made theirs, whatever the scheme.
#include "master/connection/paired.h"
#include "master/master.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { INNER = 10, MOST_INNER = 100000, MOST_PACKETS = 1 << 20 }; // inner steps by default

// Places among what a unit says about its port.
enum {
    FAR_INNER = CRD_PAIR_NUMBERS + offsetof(crdi_wave_account, inner) / sizeof(double),
    FAR_AGREEMENT = CRD_PAIR_NUMBERS + offsetof(crdi_wave_account, agreement) / sizeof(double),
};

#define REFUSE(plan, b, format, ...)                                                               \
    crdi_fail((plan)->ctx, CRD_E_RANGE, "%sbond '%s': " format,                                    \
              crdi_where((b)->spec->place, (char[512]){0}, 512), (b)->name, __VA_ARGS__)

// ---- plan --------------------------------------------------------------------------------------

static crd_status check_run(crdi_plan* plan, const crdi_bond* b)
{
    if (plan->controlled || plan->iterated) {
        return REFUSE(plan, b,
                      "a pair and run.%s, expected one of them: what a port has given and got "
                      "cannot be taken back",
                      plan->controlled ? "control" : "iterate");
    }
    if (plan->sys->results.exchange && plan->sys->results.exchange[0]) {
        return REFUSE(plan, b,
                      "a pair and results.exchange = '%s', expected one of them: its "
                      "packets are not written there",
                      plan->sys->results.exchange);
    }
    return CRD_OK;
}

static crd_status check_connection(crdi_plan* plan, const crdi_bond* b, const crdi_connection* k)
{
    const char *from = plan->members[k->from.member].unit->name,
               *to = plan->members[k->to.member].unit->name;
    const char* why = k->spec->coupling           ? "has a coupling element"
                      : k->mapping || !k->curve   ? "is not one of continuous real numbers"
                      : k->corrected || k->probed ? "is corrected for another bond"
                      : k->paired                 ? "belongs to another pair"
                                                  : NULL;
    if (!why) { return CRD_OK; }
    return REFUSE(plan, b, "%s.%s -> %s.%s %s, expected a connection that only the pair acts on",
                  from, k->spec->from, to, k->spec->to, why);
}

// What arrives over what is given, in SI.
static double ratio_of(const crdi_plan* plan, const crdi_connection* k)
{
    crd_dimension a, b;
    const double gain = k->transform ? k->gain : 1;
    const bool known =
        crdi_unit_dimension(plan->members[k->from.member].unit, k->from.variable, &a) &&
        crdi_unit_dimension(plan->members[k->to.member].unit, k->to.variable, &b);
    return known ? gain * b.factor / a.factor : gain;
}

static crd_status check_power(crdi_plan* plan, const crdi_bond* b, const crdi_axis* x)
{
    const double there = fabs(ratio_of(plan, x->action)), back = fabs(ratio_of(plan, x->flow));
    if (fabs(there - back) <= 1e-9 * back) { return CRD_OK; }
    return REFUSE(plan, b,
                  "its connections multiply the action by %g and the flow by %g, expected the same "
                  "number, as of a gear: else the connections themselves make power",
                  there, back);
}

// Effort per flow, which is a power per flow squared; radians do not count. 0: learned.
static crd_status find_impedance(crdi_plan* plan, const crdi_bond* b, const crdi_axis* x,
                                 double* out)
{
    const char* text = b->spec->impedance;
    crd_dimension dim, flow;
    bool bare = false;
    *out = 0;
    if (!text || !text[0] || strcmp(text, "learned") == 0) { return CRD_OK; }
    if (!crd_quantity_parse(text, out, &dim, &bare) || !(*out > 0)) { *out = NAN; }
    const bool known = crdi_connection_dimension(plan, x->flipped ? x->action : x->flow, &flow) &&
                       !(b->spec->factor && b->spec->factor[0]);
    if (known && !bare) {
        dim.kg += flow.kg, dim.m += flow.m, dim.s += flow.s, dim.A += flow.A, dim.K += flow.K;
    }
    if (isnan(*out) || (known && !bare && !crdi_bond_is_power(&dim, &flow))) {
        return REFUSE(plan, b,
                      "impedance = '%s', expected an effort per flow that is greater than 0, such "
                      "as 6 N.m.s/rad for a torque and a speed, 100 N.s/m, 50 Ohm, or learned",
                      text);
    }
    return CRD_OK;
}

// Inner steps of a unit for one macro step; fewer if its own step asks for it.
static crd_status find_parts(crdi_plan* plan, crdi_paired_side* s, double inner)
{
    const crdi_bond* b = s->of->bond;
    const crdi_member* p = s->member;
    const crd_unit* u = p->unit;
    if (s->far) { return CRD_OK; }
    const double parts = isnan(inner) || inner == 0 ? INNER : ceil(p->step / inner - 1e-9);
    if (p->async) {
        return REFUSE(plan, b, "unit '%s' has a budget, expected a unit that the run waits for",
                      u->name);
    }
    if (!(parts >= 1 && parts <= MOST_INNER)) {
        return REFUSE(plan, b, "inner = %g s, expected at least %g s: at most %d in a step of '%s'",
                      inner, p->step / MOST_INNER, MOST_INNER, u->name);
    }
    s->parts = crdi_member_is_hardware(p) ? 1 : (int)fmax(1, parts);
    const double own = u->info.fixed_step;
    const int64_t fixed = own > 0 ? llround(p->step / own) : 0;
    while (fixed > 0 && fixed % s->parts != 0) {
        s->parts--;
    }
    if (s->parts == 1) {
        crdi_log(plan->log, CRD_LOG_WARNING,
                 "bond '%s': unit '%s' makes one step in a macro step of %g s: its port is the "
                 "strict one, which is stable for slow units only and gives little%s",
                 b->name, u->name, p->step,
                 crdi_member_is_hardware(p) ? "; a slave with --pair has a port of its own" : "");
    }
    return CRD_OK;
}

// The variables of a port in the unit itself: at the input that this side of the bond drives.
static crd_status find_far(crdi_plan* plan, crdi_paired_side* s)
{
    const crd_unit* u = s->member->unit;
    int32_t at[CRDI_WAVE_VARIABLES];
    char name[256];
    for (int k = 0; k < CRDI_WAVE_VARIABLES; k++) {
        snprintf(name, sizeof name, "%s%s", s->gets->spec->to, crdi_wave_suffix(k));
        at[k] = u->ops->find ? u->ops->find(u, name) : -1;
        if (at[k] < 0 || u->info.variables[at[k]].type != CRD_FLOAT64) { return CRD_OK; }
    }
    if (s->own_offset != 0 || s->in_offset != 0) {
        return REFUSE(plan, s->of->bond,
                      "its connections add %g and %g, expected none: the port stands in '%s'",
                      s->own_offset, s->in_offset, u->name);
    }
    if (u->spec && u->spec->standby.model) {
        return REFUSE(plan, s->of->bond,
                      "unit '%s' has its port in itself and a stand-in, expected one of them: the "
                      "stand-in has no port",
                      u->name);
    }
    s->far = crdi_arena_new(plan->arena, 1, sizeof *s->far);
    if (!s->far) { return CRD_E_MEMORY; }
    memcpy(s->far->at, at, sizeof at);
    return CRD_OK;
}

// What the port needs to know, before the slave is configured.
static crd_status tell_far(crdi_plan* plan, crdi_paired_side* s, crd_pair_side side,
                           double impedance)
{
    crdi_paired_far* far = s->far;
    crd_unit* u = s->member->unit;
    crd_status st = CRD_OK;
    crd_binding* b = NULL;
    crd_values v = {0};
    if (s->of->bond->spec->over && side == CRD_PAIR_OWNS_FLOW) {
        return REFUSE(plan, s->of->bond,
                      "over: commands, but the side that owns the flow has its port in '%s', "
                      "expected it here, or no 'over'",
                      u->name);
    }
    CRD_TRY(crd_binding_create(u, far->at + CRDI_WAVE_FAR, CRD_PAIR_NUMBERS, &far->in));
    CRD_TRY(crdi_values_create(plan->arena, far->in, &far->inputs));
    CRD_TRY(crd_binding_create(u, far->at + CRDI_WAVE_OWN, CRDI_WAVE_VARIABLES - CRDI_WAVE_OWN,
                               &far->out));
    CRD_TRY(crdi_values_create(plan->arena, far->out, &far->outputs));
    CRD_TRY(crd_binding_create(u, far->at, CRDI_WAVE_FAR, &b));
    CRD_TRY(crdi_values_create(plan->arena, b, &v));
    v.real[CRDI_WAVE_SIDE] = side == CRD_PAIR_OWNS_FLOW ? 1 : 2;
    v.real[CRDI_WAVE_OWN_GAIN] = s->own_gain;
    v.real[CRDI_WAVE_IN_GAIN] = s->in_gain;
    v.real[CRDI_WAVE_SET_IMPEDANCE] = impedance;
    st = u->ops->set(u, b, &v);
fail:
    crd_binding_destroy(b);
    return st;
}

// The side that gives the action, and the one that gives the flow of the description. The action
// as it arrives times the flow is power into the unit that gives the flow; the pair counts an
// effort that resists there, so it has the other sign, unless the action is the flow of the pair.
static void orient(crdi_paired* w, crdi_plan* plan)
{
    const crdi_axis* x = w->axis;
    crdi_connection *there = x->action, *back = x->flow;
    const double sign = x->flipped ? 1 : -1;
    const double there_gain = there->transform ? there->gain : 1;
    const double there_offset = there->transform ? there->offset : 0;
    const double back_gain = back->transform ? back->gain : 1;
    const double back_offset = back->transform ? back->offset : 0;
    crdi_paired_side* acts = &w->sides[x->flipped ? CRD_PAIR_OWNS_FLOW : CRD_PAIR_OWNS_EFFORT];
    crdi_paired_side* flows = &w->sides[x->flipped ? CRD_PAIR_OWNS_EFFORT : CRD_PAIR_OWNS_FLOW];
    *acts = (crdi_paired_side){.of = w,
                               .gives = there,
                               .gets = back,
                               .member = &plan->members[there->from.member],
                               .own_gain = sign * x->gain,
                               .own_offset = sign * x->offset,
                               .in_gain = back_gain / x->v_gain,
                               .in_offset = back_offset - back_gain * x->v_offset / x->v_gain};
    *flows = (crdi_paired_side){.of = w,
                                .gives = back,
                                .gets = there,
                                .member = &plan->members[back->from.member],
                                .own_gain = x->v_gain,
                                .own_offset = x->v_offset,
                                .in_gain = sign * there_gain / x->gain,
                                .in_offset = there_offset - there_gain * x->offset / x->gain};
}

static crd_status make_way(crdi_plan* plan, crdi_paired_side* s)
{
    const crd_bond_spec* spec = s->of->bond->spec;
    const crdi_member* target = &plan->members[s->gives->to.member];
    crdi_coupled* way = &s->way;
    crd_status st = CRD_OK;
    way->of = s->gives;
    if (spec->has_channel) {
        way->channel = &spec->channel;
        CRD_TRY(crdi_channel_plan(plan, way));
    }
    // They arrive when a step of the other unit begins.
    const double longest =
        target->step + (way->channel ? way->channel->delay + way->channel->jitter : 0);
    if (!(longest / s->member->step < MOST_PACKETS)) {
        return REFUSE(plan, s->of->bond, "%.3g packets would be on their way at once, at most %d",
                      longest / s->member->step, MOST_PACKETS);
    }
    way->ring = (int)(longest / s->member->step) + 3;
    way->flight_capacity = 2 * way->ring;
    way->flights = crdi_arena_new(plan->arena, (size_t)way->flight_capacity, sizeof *way->flights);
    s->packets = crdi_arena_new(plan->arena, (size_t)way->ring, sizeof *s->packets);
    return way->flights && s->packets ? CRD_OK : CRD_E_MEMORY;
fail:
    return st;
}

static crd_status make_pair(crdi_plan* plan, const crdi_bond* b, const crdi_axis* x, crdi_paired* w)
{
    crd_status st = CRD_OK;
    crdi_connection* both[] = {x->action, x->flow};
    *w = (crdi_paired){.bond = b, .axis = x, .name = b->name};
    CRD_TRY(check_run(plan, b));
    for (int i = 0; i < 2; i++) {
        CRD_TRY(check_connection(plan, b, both[i]));
        both[i]->paired = w;
        both[i]->real = false;
    }
    CRD_TRY(check_power(plan, b, x));
    orient(w, plan);
    for (int i = 0; i < 2; i++) {
        crdi_paired_side* s = &w->sides[i];
        const crd_unit* u = s->member->unit;
        CRD_TRY(find_far(plan, s));
        CRD_TRY(find_parts(plan, s, b->spec->inner));
        s->through = u->info.flags & CRD_UNIT_CAN_REFRESH &&
                     crd_unit_depends(u, s->gives->from.variable, s->gets->to.variable, false);
        if (!s->far) {
            s->next = s->member->ports;
            s->member->ports = s;
        }
        CRD_TRY(make_way(plan, s));
    }
    if (x->motion) {
        crdi_log(plan->log, CRD_LOG_WARNING,
                 "bond '%s': the displacement %s.%s -> %s.%s passes beside the pair, which "
                 "guarantees nothing about what it does",
                 b->name, plan->members[x->motion->from.member].unit->name, x->motion->spec->from,
                 plan->members[x->motion->to.member].unit->name, x->motion->spec->to);
    }
fail:
    return st;
}

// All ports of a unit act in the same inner steps.
static crd_status init_side(crdi_plan* plan, crdi_paired_side* s, crd_pair_side side)
{
    const crdi_paired* w = s->of;
    crd_pair_options o = crd_pair_defaults(side);
    crd_status st = CRD_OK;
    CRD_TRY(find_impedance(plan, w->bond, w->axis, &o.impedance));
    if (s->far) { return tell_far(plan, s, side, o.impedance); }
    for (const crdi_paired_side* p = s->member->ports; p; p = p->next) {
        s->parts = p->parts > s->parts ? p->parts : s->parts;
    }
    s->member->run->parts = s->parts;
    o.macro = s->member->step;
    o.step = o.macro / s->parts;
    o.strict = s->parts == 1;
    CRD_TRY(crd_pair_init(plan->ctx, &s->pair, &o));
    if (w->bond->spec->over && side == CRD_PAIR_OWNS_FLOW) {
        s->over = crdi_arena_new(plan->arena, 1, sizeof *s->over);
        if (!s->over) { return CRD_E_MEMORY; }
        CRD_TRY(crdi_pair_over_init(plan->ctx, s->over, o.macro, plan->times.start));
    }
fail:
    return st;
}

static crd_status offer_signals(crdi_plan* plan, crdi_paired* w)
{
    static const struct {
        const char *name, *unit, *description;
        size_t offset;
    } of[] = {
        {"tank", "J", "energy in the tank of the port", offsetof(crd_pair_state, tank)},
        {"dumped", "J", "energy thrown away so far", offsetof(crd_pair_state, dumped)},
        {"granted", "J", "energy granted to the other side so far",
         offsetof(crd_pair_state, granted)},
    };
    enum { EACH = sizeof of / sizeof *of };
    w->signals = crdi_arena_new(plan->arena, 2 * EACH, sizeof *w->signals);
    for (int i = 0; w->signals && i < 2; i++) {
        crdi_paired_side* s = &w->sides[i];
        const char* end = crdi_end_name(plan, plan->arena, &s->gives->from);
        for (int k = 0; k < EACH; k++) {
            const char* name =
                end ? crdi_arena_format(plan->arena, "%s.pair.%s", end, of[k].name) : NULL;
            if (!name) { return CRD_E_MEMORY; }
            w->signals[w->signal_count++] =
                (crdi_offer){.name = name,
                             .from = (const char*)&s->shown + of[k].offset,
                             .type = CRD_FLOAT64,
                             .unit = of[k].unit,
                             .description = of[k].description};
        }
    }
    return w->signals ? CRD_OK : CRD_E_MEMORY;
}

crd_status crdi_paired_plan(crdi_plan* plan, crdi_connections* c, const crdi_energy* energy)
{
    crd_status st = CRD_OK;
    size_t count = 0;
    for (int i = 0; i < energy->paired_count; i++) {
        count += (size_t)energy->paired[i]->axis_count;
    }
    if (!count) { return CRD_OK; }
    c->pairs = crdi_arena_new(plan->arena, count, sizeof *c->pairs);
    if (!c->pairs) { return CRD_E_MEMORY; }
    for (int i = 0; i < energy->paired_count; i++) {
        const crdi_bond* b = energy->paired[i];
        for (int k = 0; k < b->axis_count; k++) {
            CRD_TRY(make_pair(plan, b, &b->axes[k], &c->pairs[c->pair_count++]));
        }
    }
    for (int i = 0; i < 2 * c->pair_count; i++) {
        CRD_TRY(init_side(plan, &c->pairs[i / 2].sides[i % 2], i % 2));
    }
fail:
    return st;
}

// What the port acts with against what the other unit gives at that time: the pair is stable over
// any link, and as wrong as the link is late.
static void observe(const crdi_plan* plan, crdi_paired_side* s)
{
    const bool here = !s->of->sides[0].far && !s->of->sides[1].far;
    if (!here || !(plan->sys->run.monitor & CRD_MONITOR_DEFECT)) { return; }
    s->seen = (crdi_observed){.of = s->gets,
                              .from = crdi_connection_from(plan, s->gets),
                              .to = s->to,
                              .gain = s->gets->gain,
                              .offset = s->gets->offset};
    s->gets->observed = &s->seen;
}

crd_status crdi_paired_bind(crdi_plan* plan, crdi_connections* c)
{
    crd_status st = CRD_OK;
    for (int i = 0; i < c->pair_count && st >= 0; i++) {
        for (int k = 0; k < 2; k++) {
            crdi_paired_side* s = &c->pairs[i].sides[k];
            s->own = crdi_connection_from(plan, s->gives);
            s->to = crdi_connection_to(plan, s->gets);
            observe(plan, s);
        }
        st = offer_signals(plan, &c->pairs[i]);
    }
    return st;
}

// ---- inner steps -------------------------------------------------------------------------------

static double own_of(const crdi_paired_side* s)
{
    return s->own_gain * *s->own + s->own_offset;
}

void crdi_paired_act(const crdi_member* p, double t, double h)
{
    for (crdi_paired_side* s = p->ports; s; s = s->next) {
        s->pair.opt.step = h; // the last macro step may be shorter
        s->begin = own_of(s);
        *s->to = s->in_gain * crd_pair_act(&s->pair, s->begin, t) + s->in_offset;
    }
}

// An output that follows its input at once has another value when the step begins than it had at
// the end of the last one, and that belongs to the mean.
crd_status crdi_paired_begin(const crdi_member* p)
{
    bool asks = false;
    for (const crdi_paired_side* s = p->ports; s; s = s->next) {
        asks = asks || s->through;
    }
    if (!asks) { return CRD_OK; }
    crd_values outputs = p->outputs;
    const crd_status st = p->unit->ops->get(p->unit, p->out, &outputs);
    for (crdi_paired_side* s = p->ports; s && st >= 0; s = s->next) {
        if (s->through) { s->begin = own_of(s); }
    }
    return st;
}

void crdi_paired_done(const crdi_member* p)
{
    for (crdi_paired_side* s = p->ports; s; s = s->next) {
        const double mean = 0.5 * (s->begin + own_of(s));
        const double input = crdi_fault_input(p, s->to);
        if (!s->of->agreed) { crdi_pair_answer_note(&s->answer, &s->pair, mean); }
        if (isnan(input)) {
            crd_pair_done(&s->pair, mean);
        } else { // somebody has put his hand between port and unit
            crd_pair_done_as(&s->pair, (input - s->in_offset) / s->in_gain, mean);
        }
    }
}

// ---- packets -----------------------------------------------------------------------------------

// The unit's own packet, if it is a new one.
static bool take_from_unit(crdi_paired_side* s, crd_pair_packet* k)
{
    crdi_paired_far* far = s->far;
    crd_unit* u = s->member->unit;
    if (u->ops->get(u, far->out, &far->outputs) < 0) { return false; }
    memcpy(k, far->outputs.real, sizeof *k);
    if (!(k->number >= 1) || (k->number == far->number && k->run == far->run)) { return false; }
    far->number = k->number;
    far->run = k->run;
    return true;
}

static void send(crdi_paired_side* s, double t)
{
    crdi_coupled* way = &s->way;
    if (s->far) {
        crd_pair_packet own;
        if (!take_from_unit(s, &own)) { return; }
        s->packets[way->sent % way->ring] = own;
    }
    crdi_flight f = {.arrival = t, .stamp = t, .sequence = way->sent, .order = 2 * way->sent};
    crd_pair_packet* k = &s->packets[way->sent++ % way->ring];
    if (!s->far) { crd_pair_send(&s->pair, t, k); }
    if (s->over) { crdi_pair_over_sent(s->over, &s->pair, k); }
    crdi_channel_send(way, f);
}

// What a unit says about its port, in the words of the ports here.
static void show_far(crdi_paired_side* s)
{
    const double* x = s->far->outputs.real;
    crd_pair_packet k;
    crdi_wave_account a;
    memcpy(&k, x, sizeof k);
    memcpy(&a, x + CRD_PAIR_NUMBERS, sizeof a);
    s->shown = (crd_pair_state){.tank = a.tank,
                                .absorbed = a.absorbed,
                                .spent = a.spent,
                                .received = a.received,
                                .granted = k.granted,
                                .dumped = a.dumped,
                                .debt = a.debt,
                                .impedance = k.impedance,
                                .delay = NAN,
                                .age = NAN,
                                .limited = (int64_t)fmin(fmax(a.limited, 0), 1e15)};
}

// The newest packet that has come becomes inputs of the unit. The plain value stays as it was.
static void pass_to_unit(crdi_paired_side* s, double due)
{
    crdi_paired_side* other = &s->of->sides[s == s->of->sides];
    crdi_paired_far* far = s->far;
    crd_unit* u = s->member->unit;
    crdi_flight f;
    while (crdi_channel_next(&other->way, due, &f)) {
        const crd_pair_packet* k = &other->packets[f.sequence % other->way.ring];
        const double *now = far->inputs.real, run = now[0], number = now[1];
        if (k->run < run || (k->run == run && k->number <= number)) { continue; }
        memcpy(far->inputs.real, k, sizeof *k);
    }
    (void)u->ops->set(u, far->in, &far->inputs); // numbers cannot fail
    show_far(s);
}

static void receive(crdi_paired_side* s, double t, double due)
{
    if (s->far) {
        pass_to_unit(s, due);
        return;
    }
    crdi_paired_side* other = &s->of->sides[s == s->of->sides];
    crdi_flight f;
    while (crdi_channel_next(&other->way, due, &f)) {
        const crd_pair_packet* k = &other->packets[f.sequence % other->way.ring];
        const bool taken = crd_pair_receive(&s->pair, k, t) == CRD_PAIR_TAKEN;
        if (taken && s->over) { crdi_pair_over_receive(s->over, &s->pair, k); }
        if (taken && !s->received) {
            s->received = true;
            crd_pair_predict(&s->pair, NAN, NAN);
        }
    }
    if (s->over && s->received) { crdi_pair_over_begin(s->over, &s->pair, t); }
    s->shown = crd_pair_get_state(&s->pair, t);
}

// When both units have ended a step: what both say in their packets of it, as a port may have cut
// a single inner step.
static void look(crdi_paired_side* s, int64_t n, double t)
{
    const crdi_paired_side* other = &s->of->sides[s == s->of->sides];
    if (!s->gets->observed || n % s->member->ticks != 0 || n % other->member->ticks != 0) {
        return;
    }
    const crd_pair_packet *here = &s->packets[(s->way.sent - 1) % s->way.ring],
                          *there = &other->packets[(other->way.sent - 1) % other->way.ring];
    const double acted = s == s->of->sides ? here->effort : here->flow,
                 own = s == s->of->sides ? there->effort : there->flow,
                 missed = s->in_gain * (acted - own);
    crdi_observe_line(&s->seen, t, t - s->looked, s->missed, missed);
    s->missed = missed;
    s->looked = t;
}

static void accept_all(crd_master* m, int64_t n, double t)
{
    const double due = t + 1e-6 * m->plan->times.tick;
    for (int i = 0; i < 2 * m->connections.pair_count; i++) {
        crdi_paired_side* s = &m->connections.pairs[i / 2].sides[i % 2];
        if (n % s->member->ticks == 0) { send(s, t); }
    }
    for (int i = 0; i < 2 * m->connections.pair_count; i++) {
        look(&m->connections.pairs[i / 2].sides[i % 2], n, t);
    }
    for (int i = 0; i < 2 * m->connections.pair_count; i++) {
        crdi_paired_side* s = &m->connections.pairs[i / 2].sides[i % 2];
        if (n % s->member->ticks == 0) { receive(s, t, due); }
    }
}

// Until a packet has arrived the other side is what the initialisation has found, as with coupling
// elements; the tank is empty, so nothing is given on the strength of it.
void crdi_paired_start(crd_master* m)
{
    for (int i = 0; i < m->connections.pair_count; i++) {
        crdi_paired* w = &m->connections.pairs[i];
        const double effort = own_of(&w->sides[CRD_PAIR_OWNS_EFFORT]);
        const double flow = own_of(&w->sides[CRD_PAIR_OWNS_FLOW]);
        for (int k = 0; k < 2; k++) {
            w->sides[k].looked = m->clock.time;
            if (w->sides[k].gets->observed) { crdi_observed_begin(&w->sides[k].seen); }
            if (w->sides[k].far) { continue; }
            crd_pair_predict(&w->sides[k].pair, effort, flow);
            w->sides[k].shown = crd_pair_get_state(&w->sides[k].pair, m->clock.time);
        }
    }
}

static double agreement(const crdi_paired_side* s)
{
    return s->far ? s->far->outputs.real[FAR_AGREEMENT] : crdi_pair_answer_of(&s->answer);
}

static crd_status __attribute__((cold, noinline)) fail_signs(crd_master* m, const crdi_paired* w)
{
    const crd_bond_spec* b = w->bond->spec;
    const char *action = w->bond->action_name, *flow = w->bond->flow_name;
    return crdi_fail(m->ctx, CRD_E_RANGE,
                     "%sbond '%s': the action %s as it arrives resists the flow %s, and the other "
                     "unit answers accordingly: expected an action that drives it (action times "
                     "flow is power into the flow's unit); with these signs write 'action: %s, "
                     "flow: %s'",
                     crdi_where(b->place, (char[512]){0}, 512), w->name, action, flow, flow,
                     action);
}

// One unit answers as the partner of a power, the other against it: whatever the signs are, they
// make power out of nothing, and no port can know that. A spring shows its sign late; then what
// has become a thousand times as large counts, too.
static bool is_no_power(crdi_paired* w, double a, double b)
{
    const double size = w->sides[0].pair.scale, least = fmin(a, b);
    if (a == 0 || b == 0 || w->sides[0].far || w->sides[1].far) { return false; }
    if (w->known == 0) { w->known = size; }
    return fmax(a, b) > 0.9 && (least < -0.9 || (least < -0.25 && size > 1e6 * w->known));
}

static crd_status __attribute__((cold, noinline))
fail_power(crd_master* m, const crdi_paired* w, const crdi_paired_side* wrong)
{
    const crdi_connection *a = w->axis->action, *f = w->axis->flow;
    return crdi_fail(m->ctx, CRD_E_RANGE,
                     "%sbond '%s': %s and %s are no power between these units: '%s' answers with "
                     "the wrong sign and '%s' with the right one, so what one gives the other does "
                     "not take (gains of their connections: %g and %g); expected the same signs "
                     "there and back",
                     crdi_where(w->bond->spec->place, (char[512]){0}, 512), w->name,
                     w->bond->action_name, w->bond->flow_name, wrong->member->unit->name,
                     w->sides[wrong == w->sides].member->unit->name, a->transform ? a->gain : 1,
                     f->transform ? f->gain : 1);
}

// The inputs are written by the ports in each inner step; what is left is a look at the signs.
static crd_status begin_all(crd_master* m, crdi_rows rows, double t)
{
    (void)rows;
    (void)t;
    for (int i = 0; i < m->connections.pair_count; i++) {
        crdi_paired* w = &m->connections.pairs[i];
        if (w->agreed) { continue; }
        const double a = agreement(&w->sides[0]), b = agreement(&w->sides[1]);
        if (a < -0.5 && b < -0.5) { return fail_signs(m, w); }
        if (is_no_power(w, a, b)) { return fail_power(m, w, &w->sides[b < a]); }
        w->agreed = a > 0.5 && b > 0.5;
    }
    return CRD_OK;
}

const crdi_connection_kind crdi_kind_paired = {.begin = begin_all, .accept = accept_all};

void crdi_paired_release(crd_master* m, const crdi_member* p)
{
    for (int i = 0; i < 2 * m->connections.pair_count; i++) {
        const crdi_paired_side* s = &m->connections.pairs[i / 2].sides[i % 2];
        if (s->member != p || !s->far) { continue; }
        crd_binding_destroy(s->far->in);
        crd_binding_destroy(s->far->out);
    }
}

void crdi_paired_moving(const crdi_paired* w, crdi_note_moving* note, void* user)
{
    for (int i = 0; i < 2; i++) {
        if (w->sides[i].over) { crdi_coupling_moving(w->sides[i].over->element, note, user); }
    }
}

void crdi_paired_clear(crdi_paired* w)
{
    for (int i = 0; i < 2; i++) {
        if (w->sides[i].over) { crd_coupling_destroy(w->sides[i].over->element); }
    }
}

// ---- how it went -------------------------------------------------------------------------------

static double inner_of(const crdi_paired_side* s)
{
    return s->far ? s->far->outputs.real[FAR_INNER] : s->member->step / s->parts;
}

void crdi_paired_report(const crd_master* m, crd_pair_report* out)
{
    const double t = crd_master_time(m);
    for (int i = 0; i < m->connections.pair_count; i++) {
        const crdi_paired* w = &m->connections.pairs[i];
        out[i] = (crd_pair_report){.name = w->name};
        for (int k = 0; k < 2; k++) {
            const crdi_paired_side* s = &w->sides[k];
            out[i].sides[k] = (crd_pair_side_report){
                .unit = s->member->unit->name,
                .own = s->gives->spec->from,
                .inner = inner_of(s),
                .sent = s->way.sent,
                .lost = s->way.lost,
                .predicted = s->over ? s->over->used : 0,
                .state = s->far ? s->shown : crd_pair_get_state(&s->pair, t)};
        }
    }
}

void crdi_paired_warn(crd_master* m)
{
    enum { MANY = 50 }; // macro steps without a packet at the end
    const double t = crd_master_time(m);
    for (int i = 0; i < 2 * m->connections.pair_count; i++) {
        const crdi_paired_side* s = &m->connections.pairs[i / 2].sides[i % 2];
        const crdi_coupled* way = &s->of->sides[1 - i % 2].way;
        if (s->far || way->sent == 0) { continue; }
        const crd_pair_state is = crd_pair_get_state(&s->pair, t);
        if (is.taken == 0) {
            crdi_log(m->log, CRD_LOG_WARNING,
                     "bond '%s': no packet has come to '%s' (%lld sent, %lld lost): the units of "
                     "the bond ran apart",
                     s->of->name, s->member->unit->name, (long long)way->sent,
                     (long long)way->lost);
        } else if (is.age > MANY * s->pair.opt.macro + 10 * fmax(0, is.delay)) {
            crdi_log(m->log, CRD_LOG_WARNING,
                     "bond '%s': no packet has come to '%s' after t = %.6g s: the units of the "
                     "bond ran apart from then on",
                     s->of->name, s->member->unit->name, t - is.age);
        }
    }
}

bool crdi_paired_is_late(const crdi_paired* w)
{
    bool late = false;
    for (int i = 0; i < 2; i++) {
        const crdi_paired_side* s = &w->sides[i];
        const crd_channel_spec* c = s->way.channel;
        late = late || s->far || crdi_member_is_hardware(s->member) ||
               (c && c->delay + c->jitter + c->loss > 0);
    }
    return late;
}
