// Connections with a coupling, before the run: elements and channels are read and checked, rooms
// made, signals offered to the record.
#include "master/replay/exchange.h"
#include "shared/base_findings.h"
#include "shared/base_names.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_FLIGHTS = 1 << 20 };

// ---- plan --------------------------------------------------------------------------------------

static crd_status __attribute__((format(printf, 4, 5)))
refuse(crdi_plan* plan, const crdi_coupled* c, crd_status st, const char* format, ...)
{
    char at[512], text[400];
    const crd_connection_spec* s = c->of->spec;
    const crd_place place = s->coupling ? s->coupling->place : s->place;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    crdi_where(place.file && place.file[0] ? place : s->place, at, sizeof at);
    return crdi_fail(plan->ctx, st, "%scoupling of %s -> %s: %s", at,
                     c->of->from_name ? c->of->from_name : s->from,
                     c->of->to_name ? c->of->to_name : s->to, text);
}

static crd_status name_ends(crdi_plan* plan, crdi_connection* k, const crdi_coupled* c)
{
    const crd_connection_spec* s = k->spec;
    const crd_variable *a = crdi_variable_at(plan, &k->from), *b = crdi_variable_at(plan, &k->to);
    k->from_name = crdi_end_written_name(plan, plan->arena, &k->from, s->from);
    k->to_name = crdi_end_written_name(plan, plan->arena, &k->to, s->to);
    if (!k->from_name || !k->to_name) { return CRD_E_MEMORY; }
    const bool real = crd_type_kind((crd_type)a->type) == CRD_REAL &&
                      crd_type_kind((crd_type)b->type) == CRD_REAL;
    if (!real) {
        const crd_variable* wrong = crd_type_kind((crd_type)a->type) == CRD_REAL ? b : a;
        return refuse(plan, c, CRD_E_RANGE, "'%s' is %s, expected a real number", wrong->name,
                      crdi_type_names[wrong->type]);
    }
    return CRD_OK;
}

static bool is_part(double x)
{
    return x >= 0 && x <= 1;
}

static crd_status check_channel(crdi_plan* plan, const crdi_coupled* c)
{
    const crd_channel_spec* h = c->channel;
    if (!(h->delay >= 0) || !isfinite(h->delay)) {
        return refuse(plan, c, CRD_E_RANGE, "delay = %g s, expected >= 0", h->delay);
    }
    if (!(h->jitter >= 0) || !isfinite(h->jitter)) {
        return refuse(plan, c, CRD_E_RANGE, "jitter = %g s, expected >= 0", h->jitter);
    }
    if (!is_part(h->loss) || !is_part(h->duplicate)) {
        return refuse(plan, c, CRD_E_RANGE, "%s = %g, expected 0 to 1",
                      is_part(h->loss) ? "duplicate" : "loss",
                      is_part(h->loss) ? h->duplicate : h->loss);
    }
    if (h->burst < 1) {
        return refuse(plan, c, CRD_E_RANGE, "burst = %d, expected >= 1", h->burst);
    }
    return CRD_OK;
}

// FNV-1a: connections with the same seed do not lose the same samples, elements of one array do.
static uint64_t hash(const char* text, uint64_t h)
{
    for (; *text; text++) {
        h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    }
    return h;
}

crd_status crdi_channel_plan(crdi_plan* plan, crdi_coupled* c)
{
    const double loss = c->channel->loss;
    const char* target = plan->members[c->of->to.member].unit->name;
    c->seed = hash(c->of->spec->to, hash(target, c->channel->seed));
    // With that chance the part that is lost is `loss`, whatever the length of a burst.
    c->burst_chance = loss > 0 ? loss / (loss + c->channel->burst * (1 - loss)) : 0;
    return check_channel(plan, c);
}

// Samples come every step of the channel, else of the element, else of the source.
static crd_status choose_interval(crdi_plan* plan, crdi_coupled* c)
{
    const double own = c->estimators[0].description->step;
    const double given = c->channel && !isnan(c->channel->step) ? c->channel->step : own;
    c->interval = isnan(given) ? c->source->step : given;
    const double ticks = c->interval / plan->times.tick;
    if (!(ticks >= 0.5) || !(ticks < 9e15) || fabs(ticks - round(ticks)) > 1e-9 * ticks) {
        return refuse(plan, c, CRD_E_RANGE,
                      "its step of %g s is not a multiple of the run's tick of %g s: choose a step "
                      "of the run that divides it",
                      c->interval, plan->times.tick);
    }
    c->every = (int64_t)llround(ticks);
    if (!isnan(own) && fabs(own - c->interval) > 1e-9 * own) {
        crdi_log(plan->log, CRD_LOG_WARNING,
                 "coupling of %s -> %s: the element is made for a step of %g s, but its samples "
                 "come every %g s",
                 c->of->from_name, c->of->to_name, own, c->interval);
    }
    return CRD_OK;
}

// How long a sample may be on its way or was, in macro steps.
static double longest_way(const crdi_coupled* c)
{
    double s = c->channel ? c->channel->delay + c->channel->jitter : 0;
    if (c->dated) { s = CRD_LATENCY_MAX * c->interval; }
    for (int i = 0; i < c->estimator_count; i++) {
        s = fmax(s, isnan(c->estimators[i].latency) ? 0 : c->estimators[i].latency);
    }
    for (int64_t i = 0; c->script && i < c->script->count; i++) {
        s = fmax(s, c->script->samples[i].arrival - c->script->samples[i].stamp);
    }
    return s / c->interval + (c->setpoints ? c->setpoints->ahead : 0);
}

static crd_status coupled_plan_make_room(crdi_plan* plan, crdi_coupled* c)
{
    const double way = longest_way(c);
    if (!(way < MOST_FLIGHTS)) {
        return refuse(plan, c, CRD_E_RANGE,
                      "%.3g samples would be on their way at once, expected at most %d", way,
                      MOST_FLIGHTS);
    }
    c->ring = (int)way + 3;
    for (int i = 0; i < c->estimator_count; i++) {
        crdi_estimator* p = &c->estimators[i];
        p->made = crdi_arena_new(plan->arena, (size_t)c->ring, sizeof *p->made);
        p->made_for = crdi_arena_new(plan->arena, (size_t)c->ring, sizeof *p->made_for);
        if (!p->made || !p->made_for) { return CRD_E_MEMORY; }
        memset(p->made_for, 0xFF, (size_t)c->ring * sizeof *p->made_for);
        p->newest = -1;
    }
    if (c->setpoints && crdi_setpoints_make_room(plan, c) < 0) { return CRD_E_MEMORY; }
    if (c->script) {
        c->sent_values = crdi_arena_new(plan->arena, (size_t)c->ring, sizeof *c->sent_values);
        return c->sent_values ? CRD_OK : CRD_E_MEMORY;
    }
    if (!c->channel) { return CRD_OK; }
    c->flight_capacity = 2 * c->ring;
    c->flights = crdi_arena_new(plan->arena, (size_t)c->flight_capacity, sizeof *c->flights);
    return c->flights ? CRD_OK : CRD_E_MEMORY;
}

// A script counts samples as this coupling does.
static crd_status check_script(crdi_plan* plan, crdi_coupled* c)
{
    const int64_t most = plan->times.tick_count / c->every; // of samples in this run
    const crd_script* s = c->script;
    int64_t newest = -1;
    for (int64_t i = 0; i < s->count; i++) {
        const crd_script_sample* p = &s->samples[i];
        const double at = plan->times.start + (double)p->sequence * c->interval;
        const bool good = p->sequence >= 0 && isfinite(p->arrival) && isfinite(p->stamp) &&
                          (i == 0 || p->arrival >= p[-1].arrival);
        if (!good || !(fabs(p->stamp - at) <= 1e-3 * c->interval)) {
            return refuse(plan, c, CRD_E_RANGE,
                          "the recording has sample %lld taken at %.10g s, but with a step of %g s "
                          "it would be taken at %.10g s: the step has to be the recorded one",
                          (long long)p->sequence, p->stamp, c->interval, at);
        }
        if (p->sequence > newest && p->sequence <= most) { newest = p->sequence; }
    }
    uint8_t* copies = crdi_arena_new(plan->arena, (size_t)(newest + 1), sizeof *copies);
    if (!copies) { return CRD_E_MEMORY; }
    for (int64_t i = 0; i < s->count; i++) {
        if (s->samples[i].sequence > newest) { continue; }
        uint8_t* n = &copies[s->samples[i].sequence];
        *n = (uint8_t)(*n + (*n < UINT8_MAX));
    }
    c->copies = copies;
    c->copy_count = newest + 1;
    return CRD_OK;
}

crd_status crdi_element_of(const crdi_plan* plan, const crd_coupling_spec* s, int index,
                           crd_element** out)
{
    const char* text = index ? s->shadows[index - 1] : s->element;
    const crd_place at = index ? s->shadow_places[index - 1] : s->place;
    return crd_element_parse(plan->ctx, text, strlen(text), at.file ? at.file : "", at.line, out);
}

static crd_status parse_estimators(crdi_plan* plan, crdi_coupled* c)
{
    crd_status st = CRD_OK;
    const crd_coupling_spec* s = c->of->spec->coupling;
    c->estimators = crdi_arena_new(plan->arena, (size_t)s->shadow_count + 1, sizeof *c->estimators);
    if (!c->estimators) { return CRD_E_MEMORY; }
    for (; c->estimator_count <= s->shadow_count; c->estimator_count++) {
        crdi_estimator* p = &c->estimators[c->estimator_count];
        CRD_TRY(crdi_element_of(plan, s, c->estimator_count, &p->description));
        if (p->description->signal_count > 1) {
            st = refuse(plan, c, CRD_E_RANGE, "the element is for %d signals, a connection has one",
                        p->description->signal_count);
            c->estimator_count++;
            goto fail;
        }
    }
fail:
    return st;
}

// A label that no shadow before it has.
static crd_status label_estimator(crdi_plan* plan, crdi_coupled* c, int index)
{
    crdi_estimator* p = &c->estimators[index];
    p->label = p->description->label;
    for (int i = 1, times = 1; i < index && p->label; i++) {
        if (strcmp(c->estimators[i].label, p->label) == 0) {
            p->label = crdi_arena_format(plan->arena, "%s_%d", p->description->label, ++times);
            i = 0;
        }
    }
    return p->label ? CRD_OK : CRD_E_MEMORY;
}

static crd_status create_client(crdi_plan* plan, const crdi_coupled* c, crdi_estimator* p)
{
    if (!p->description->learn_server[0]) { return CRD_OK; }
    const char* name = p == c->estimators
                           ? c->of->to_name
                           : crdi_arena_format(plan->arena, "%s.%s", c->of->to_name, p->label);
    if (!name) { return CRD_E_MEMORY; }
    return crd_learn_client_create(plan->ctx, p->description->learn_server, name, c->interval,
                                   p->element, &p->learn);
}

static crd_status create_estimator(crdi_plan* plan, crdi_coupled* c, int index)
{
    crd_status st = CRD_OK;
    crd_coupling_options opt;
    crdi_estimator* p = &c->estimators[index];
    const crd_element* e = p->description;
    CRD_TRY(label_estimator(plan, c, index));
    CRD_TRY(crd_element_options(e, c->interval, &opt));
    opt.start_time = plan->times.start;
    opt.commands = p->commands;
    // A client of the learning server has a thread of its own, which may ask for memory.
    const bool learns = e->learn_server[0];
    st = crd_coupling_create(learns ? plan->ctx : plan->held, &opt, &p->element);
    CRD_TRY(learns ? st : crdi_held_failed(plan, st));
    CRD_TRY(create_client(plan, c, p));
    return CRD_OK;
fail:
    if (st == CRD_E_MEMORY) { return st; }
    const crd_coupling_spec* s = c->of->spec->coupling;
    return crdi_fail_at(plan->ctx, st, index ? s->shadow_places[index - 1] : s->place);
}

// ---- for the record ----------------------------------------------------------------------------

static crd_status offer(crdi_plan* plan, crdi_coupled* c, const char* what, crdi_offer value)
{
    value.name = crdi_arena_format(plan->arena, "%s.coupling.%s", c->of->to_name, what);
    if (!value.name) { return CRD_E_MEMORY; }
    c->signals[c->signal_count++] = value;
    return CRD_OK;
}

static crd_status offer_error(crdi_plan* plan, crdi_coupled* c, const crdi_estimator* p,
                              const char* unit)
{
    if (!c->truth) { return CRD_OK; }
    const char* what =
        p == c->estimators ? "error" : crdi_arena_format(plan->arena, "%s.error", p->label);
    if (!what) { return CRD_E_MEMORY; }
    return offer(plan, c, what,
                 (crdi_offer){.from = &p->error,
                              .type = CRD_FLOAT64,
                              .unit = unit,
                              .description = "estimate minus the undelayed value"});
}

static crd_status offer_signals(crdi_plan* plan, crdi_coupled* c, const char* unit)
{
    crd_status st = CRD_OK;
    enum { OWN = 4, ACTIVE = 3 };
    if (!c->of->spec->coupling->record) { return CRD_OK; }
    c->signals = crdi_arena_new(plan->arena, OWN + (size_t)c->estimator_count, sizeof *c->signals);
    crd_label* labels = crdi_arena_new(plan->arena, ACTIVE, sizeof *labels);
    if (!c->signals || !labels) { return CRD_E_MEMORY; }
    labels[0] = (crd_label){CRD_ACTIVE_ALGORITHM, c->estimators[0].label};
    labels[1] = (crd_label){CRD_ACTIVE_ZOH, "ZOH"};
    labels[2] = (crd_label){CRD_ACTIVE_FOH, "FOH"};
    CRD_TRY(offer_error(plan, c, &c->estimators[0], unit));
    CRD_TRY(offer(plan, c, "k",
                  (crdi_offer){.from = &c->k,
                               .type = CRD_INT32,
                               .unit = "",
                               .description = "latency in macro steps"}));
    CRD_TRY(offer(plan, c, "jump",
                  (crdi_offer){.from = &c->jump,
                               .type = CRD_BOOLEAN,
                               .unit = "",
                               .description = "the newest sample is discontinuous"}));
    CRD_TRY(offer(plan, c, "active",
                  (crdi_offer){.from = &c->active,
                               .type = CRD_ENUMERATION,
                               .unit = "",
                               .description = "what made the estimate",
                               .labels = labels,
                               .label_count = ACTIVE}));
    for (int i = 1; i < c->estimator_count; i++) {
        CRD_TRY(offer_error(plan, c, &c->estimators[i], unit));
    }
fail:
    return st;
}

static crd_status open_coupled(crdi_plan* plan, crdi_connection* k, crdi_coupled* c)
{
    crd_status st = CRD_OK;
    const crd_coupling_spec* s = k->spec->coupling;
    c->of = k; // until connections are sorted
    c->source = &plan->members[k->from.member];
    c->target = &plan->members[k->to.member];
    c->gain = k->gain;
    c->offset = k->offset;
    c->channel = s->has_channel ? &s->channel : NULL;
    CRD_TRY(name_ends(plan, k, c));
    c->script = crdi_script_find(plan, c->of->to_name);
    if (c->channel) { CRD_TRY(crdi_channel_plan(plan, c)); }
    CRD_TRY(parse_estimators(plan, c));
    CRD_TRY(choose_interval(plan, c));
    for (int i = 0; i < c->estimator_count; i++) {
        crdi_estimator* p = &c->estimators[i];
        const crd_element* e = p->description;
        p->latency = e->latency_steps >= 0 ? e->latency_steps * c->interval : e->latency;
    }
    // Without a channel, a latency that is known lies in front of the source.
    c->dated = !c->channel && !c->script && c->source->unit->info.flags & CRD_UNIT_DATES_OUTPUTS;
    for (int i = 1; i < c->estimator_count && c->dated; i++) { // shadows tell the same time
        crdi_estimator* p = &c->estimators[i];
        if (isnan(p->latency)) { p->latency = c->estimators[0].latency; }
    }
fail:
    return st;
}

// Once all are open.
static crd_status finish_coupled(crdi_plan* plan, const crdi_connections* all, crdi_coupled* c)
{
    crd_status st = CRD_OK;
    crdi_connection* k = &plan->connections[c->of - plan->connections];
    const crd_unit* target = plan->members[k->to.member].unit;
    CRD_TRY(crdi_setpoints_plan(plan, all, c));
    for (int i = 0; i < c->estimator_count; i++) {
        CRD_TRY(create_estimator(plan, c, i));
    }
    c->truth = c->channel || (isnan(c->estimators[0].latency) && !c->dated);
    c->truth = c->truth && crdi_setpoints_ahead(c) == 0; // which is of another time
    if (c->script) {
        CRD_TRY(check_script(plan, c));
        c->truth = c->truth && !c->script->values;
    }
    CRD_TRY(coupled_plan_make_room(plan, c));
    c->tap_reports =
        crdi_arena_new(plan->arena, (size_t)c->estimator_count, sizeof *c->tap_reports);
    if (!c->tap_reports) { return CRD_E_MEMORY; }
    if (c->estimators[0].description->options.reconstruction == CRD_RECONSTRUCT_HOLD) {
        k->slope = false;
    }
    CRD_TRY(offer_signals(plan, c, target->info.variables[k->to.variable].unit));
fail:
    return st;
}

crd_status crdi_coupled_plan(crdi_plan* plan, crdi_connections* c)
{
    crd_status st = CRD_OK;
    const size_t n = (size_t)plan->coupled_count;
    c->coupled = crdi_arena_new(plan->arena, n, sizeof *c->coupled);
    c->reports = crdi_arena_new(plan->arena, n, sizeof *c->reports);
    if (!c->coupled || !c->reports) { return CRD_E_MEMORY; }
    c->coupled_count = plan->coupled_count;
    for (int i = 0; i < plan->connection_count; i++) {
        crdi_connection* k = &plan->connections[i];
        if (k->couple < 0) { continue; }
        CRD_TRY(crdi_go_on(plan->ctx, open_coupled(plan, k, &c->coupled[k->couple])));
    }
    CRD_TRY(crdi_findings_status(plan->ctx));
    plan->read = crdi_arena_new(plan->arena, n, sizeof *plan->read);
    if (!plan->read) { return CRD_E_MEMORY; }
    for (int i = 0; i < c->coupled_count; i++) {
        CRD_TRY(crdi_go_on(plan->ctx, finish_coupled(plan, c, &c->coupled[i])));
    }
    CRD_TRY(crdi_findings_status(plan->ctx));
fail:
    return st;
}

void crdi_coupled_bind(const crdi_plan* plan, crdi_connection* k, crdi_coupled* c)
{
    const crdi_member* b = c->target;
    c->of = k;
    c->from = crdi_connection_from(plan, k);
    c->to = crdi_connection_to(plan, k);
    c->slope = k->slope && b->slope_order ? &b->slopes[0][k->to.slot] : NULL;
    k->coupled = c;
    const bool watch = plan->sys->run.monitor & CRD_MONITOR_DEFECT;
    if (!watch || !c->truth || !k->curve || k->mapping) { return; }
    c->seen = (crdi_observed){.of = k,
                              .from = c->from,
                              .to = c->to,
                              .slope = plan->times.multirate ? NULL : c->slope,
                              .gain = k->gain,
                              .offset = k->offset};
    k->observed = &c->seen;
}
