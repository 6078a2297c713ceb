// Connections with a coupling, before the run: elements and channels are read and checked, rooms
// made, signals offered to the record.
#include "master/master.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_FLIGHTS = 1 << 20 };

// ---- plan --------------------------------------------------------------------------------------

static crd_status __attribute__((format(printf, 4, 5)))
refuse(crd_master* m, const crdi_couple* c, crd_status st, const char* format, ...)
{
    char at[512], text[400];
    const crd_place place = c->spec->coupling->place;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    crdi_where(place.file && place.file[0] ? place : c->spec->place, at, sizeof at);
    return crdi_fail(m->ctx, st, "%scoupling of %s -> %s: %s", at, c->from_name, c->to_name, text);
}

static const char* end_name(crd_master* m, int member, const char* variable, int32_t whole_element)
{
    const char* unit = m->sys->single ? "" : m->members[member].unit->name;
    const char* dot = m->sys->single ? "" : ".";
    return whole_element < 0
               ? crdi_arena_format(&m->arena, "%s%s%s", unit, dot, variable)
               : crdi_arena_format(&m->arena, "%s%s%s[%d]", unit, dot, variable, whole_element + 1);
}

// A link of a whole array has the number of its element behind the name.
static bool is_whole(const crd_variable* v, const char* written)
{
    return v->rank > 0 && written[strlen(written) - 1] != ']';
}

static crd_status name_ends(crd_master* m, const crdi_link* k, crdi_couple* c)
{
    const crd_connection_spec* s = k->spec;
    const crd_variable* a = &m->members[k->from_member].unit->info.variables[k->from_variable];
    const crd_variable* b = &m->members[k->to_member].unit->info.variables[k->to_variable];
    c->from_name =
        end_name(m, k->from_member, s->from, is_whole(a, s->from) ? k->from_element : -1);
    c->to_name = end_name(m, k->to_member, s->to, is_whole(b, s->to) ? k->to_element : -1);
    if (!c->from_name || !c->to_name) { return CRD_E_MEMORY; }
    const bool real = crd_type_kind((crd_type)a->type) == CRD_REAL &&
                      crd_type_kind((crd_type)b->type) == CRD_REAL;
    if (!real) {
        const crd_variable* wrong = crd_type_kind((crd_type)a->type) == CRD_REAL ? b : a;
        return refuse(m, c, CRD_E_RANGE, "'%s' is %s, expected a real number", wrong->name,
                      crdi_type_name(wrong->type));
    }
    return CRD_OK;
}

static bool is_part(double x)
{
    return x >= 0 && x <= 1;
}

static crd_status check_channel(crd_master* m, const crdi_couple* c)
{
    const crd_channel_spec* h = c->channel;
    if (!(h->delay >= 0) || !isfinite(h->delay)) {
        return refuse(m, c, CRD_E_RANGE, "delay = %g s, expected >= 0", h->delay);
    }
    if (!(h->jitter >= 0) || !isfinite(h->jitter)) {
        return refuse(m, c, CRD_E_RANGE, "jitter = %g s, expected >= 0", h->jitter);
    }
    if (!is_part(h->loss) || !is_part(h->duplicate)) {
        return refuse(m, c, CRD_E_RANGE, "%s = %g, expected 0 to 1",
                      is_part(h->loss) ? "duplicate" : "loss",
                      is_part(h->loss) ? h->duplicate : h->loss);
    }
    if (h->burst < 1) { return refuse(m, c, CRD_E_RANGE, "burst = %d, expected >= 1", h->burst); }
    return CRD_OK;
}

// Samples come every step of the channel, else of the element, else of the source.
static crd_status choose_interval(crd_master* m, crdi_couple* c)
{
    const double own = c->taps[0].description->step;
    const double given = c->channel && !isnan(c->channel->step) ? c->channel->step : own;
    c->interval = isnan(given) ? m->members[c->source].step : given;
    const double ticks = c->interval / m->tick;
    if (!(ticks >= 0.5) || !(ticks < 9e15) || fabs(ticks - round(ticks)) > 1e-9 * ticks) {
        return refuse(m, c, CRD_E_RANGE,
                      "its step of %g s is not a multiple of the run's tick of %g s: choose a step "
                      "of the run that divides it",
                      c->interval, m->tick);
    }
    c->every = (int64_t)llround(ticks);
    if (!isnan(own) && fabs(own - c->interval) > 1e-9 * own) {
        crdi_log(m->log, CRD_LOG_WARNING,
                 "coupling of %s -> %s: the element is made for a step of %g s, but its samples "
                 "come every %g s",
                 c->from_name, c->to_name, own, c->interval);
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

// How long a sample may be on its way or was, in macro steps.
static double longest_way(const crdi_couple* c)
{
    double s = c->channel ? c->channel->delay + c->channel->jitter : 0;
    if (c->dated) { s = CRD_LATENCY_MAX * c->interval; }
    for (int i = 0; i < c->tap_count; i++) {
        s = fmax(s, isnan(c->taps[i].latency) ? 0 : c->taps[i].latency);
    }
    for (int64_t i = 0; c->script && i < c->script->count; i++) {
        s = fmax(s, c->script->samples[i].arrival - c->script->samples[i].stamp);
    }
    return s / c->interval;
}

static crd_status make_room(crd_master* m, crdi_couple* c)
{
    const double way = longest_way(c);
    if (!(way < MOST_FLIGHTS)) {
        return refuse(m, c, CRD_E_RANGE,
                      "%.3g samples would be on their way at once, expected at most %d", way,
                      MOST_FLIGHTS);
    }
    c->ring = (int)way + 3;
    for (int i = 0; i < c->tap_count; i++) {
        crdi_tap* p = &c->taps[i];
        p->made = crdi_arena_new(&m->arena, (size_t)c->ring, sizeof *p->made);
        p->made_for = crdi_arena_new(&m->arena, (size_t)c->ring, sizeof *p->made_for);
        if (!p->made || !p->made_for) { return CRD_E_MEMORY; }
        memset(p->made_for, 0xFF, (size_t)c->ring * sizeof *p->made_for);
        p->newest = -1;
    }
    if (c->script) {
        c->sent_values = crdi_arena_new(&m->arena, (size_t)c->ring, sizeof *c->sent_values);
        return c->sent_values ? CRD_OK : CRD_E_MEMORY;
    }
    if (!c->channel) { return CRD_OK; }
    c->flight_capacity = 2 * c->ring;
    c->flights = crdi_arena_new(&m->arena, (size_t)c->flight_capacity, sizeof *c->flights);
    return c->flights ? CRD_OK : CRD_E_MEMORY;
}

// A script counts samples as this coupling does.
static crd_status check_script(crd_master* m, crdi_couple* c)
{
    const int64_t most = m->tick_count / c->every; // of samples in this run
    const crd_script* s = c->script;
    int64_t newest = -1;
    for (int64_t i = 0; i < s->count; i++) {
        const crd_script_sample* p = &s->samples[i];
        const double at = m->start + (double)p->sequence * c->interval;
        const bool good = p->sequence >= 0 && isfinite(p->arrival) && isfinite(p->stamp) &&
                          (i == 0 || p->arrival >= p[-1].arrival);
        if (!good || !(fabs(p->stamp - at) <= 1e-3 * c->interval)) {
            return refuse(m, c, CRD_E_RANGE,
                          "the recording has sample %lld taken at %.10g s, but with a step of %g s "
                          "it would be taken at %.10g s: the step has to be the recorded one",
                          (long long)p->sequence, p->stamp, c->interval, at);
        }
        if (p->sequence > newest && p->sequence <= most) { newest = p->sequence; }
    }
    uint8_t* copies = crdi_arena_new(&m->arena, (size_t)(newest + 1), sizeof *copies);
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

static crd_status parse_taps(crd_master* m, crdi_couple* c)
{
    crd_status st = CRD_OK;
    const crd_coupling_spec* s = c->spec->coupling;
    c->taps = crdi_arena_new(&m->arena, (size_t)s->shadow_count + 1, sizeof *c->taps);
    if (!c->taps) { return CRD_E_MEMORY; }
    for (; c->tap_count <= s->shadow_count; c->tap_count++) {
        crdi_tap* p = &c->taps[c->tap_count];
        const int shadow = c->tap_count - 1;
        const char* text = shadow < 0 ? s->element : s->shadows[shadow];
        const crd_place at = shadow < 0 ? s->place : s->shadow_places[shadow];
        CRD_TRY(crd_element_parse(m->ctx, text, strlen(text), at.file ? at.file : "", at.line,
                                  &p->description));
        if (p->description->signal_count > 1) {
            st = refuse(m, c, CRD_E_RANGE, "the element is for %d signals, a connection has one",
                        p->description->signal_count);
            c->tap_count++;
            goto fail;
        }
    }
fail:
    return st;
}

// A label that no shadow before it has.
static crd_status label_tap(crd_master* m, crdi_couple* c, int index)
{
    crdi_tap* p = &c->taps[index];
    p->label = p->description->label;
    for (int i = 1, times = 1; i < index && p->label; i++) {
        if (strcmp(c->taps[i].label, p->label) == 0) {
            p->label = crdi_arena_format(&m->arena, "%s_%d", p->description->label, ++times);
            i = 0;
        }
    }
    return p->label ? CRD_OK : CRD_E_MEMORY;
}

static crd_status create_client(crd_master* m, const crdi_couple* c, crdi_tap* p)
{
    if (!p->description->learn_server[0]) { return CRD_OK; }
    const char* name =
        p == c->taps ? c->to_name : crdi_arena_format(&m->arena, "%s.%s", c->to_name, p->label);
    if (!name) { return CRD_E_MEMORY; }
    return crd_learn_client_create(m->ctx, p->description->learn_server, name, c->interval,
                                   p->element, &p->learn);
}

static crd_status create_tap(crd_master* m, crdi_couple* c, int index)
{
    crd_status st = CRD_OK;
    char at[512];
    crd_coupling_options opt;
    crdi_tap* p = &c->taps[index];
    const crd_element* e = p->description;
    p->latency = e->latency_steps >= 0 ? e->latency_steps * c->interval : e->latency;
    CRD_TRY(label_tap(m, c, index));
    CRD_TRY(crd_element_options(e, c->interval, &opt));
    opt.start_time = m->start;
    CRD_TRY(crd_coupling_create(m->ctx, &opt, &p->element));
    CRD_TRY(create_client(m, c, p));
    return CRD_OK;
fail:
    if (st == CRD_E_MEMORY) { return st; }
    const crd_coupling_spec* s = c->spec->coupling;
    crdi_where(index ? s->shadow_places[index - 1] : s->place, at, sizeof at);
    at[strlen(at) > 2 ? strlen(at) - 2 : 0] = 0; // crdi_fail_in puts its own colon
    return at[0] ? crdi_fail_in(m->ctx, st, "%s", at) : st;
}

// ---- for the record ----------------------------------------------------------------------------

static crd_status offer(crd_master* m, crdi_couple* c, const char* what, crdi_coupled value)
{
    value.name = crdi_arena_format(&m->arena, "%s.coupling.%s", c->to_name, what);
    if (!value.name) { return CRD_E_MEMORY; }
    c->signals[c->signal_count++] = value;
    return CRD_OK;
}

static crd_status offer_error(crd_master* m, crdi_couple* c, const crdi_tap* p, const char* unit)
{
    if (!c->truth) { return CRD_OK; }
    const char* what = p == c->taps ? "error" : crdi_arena_format(&m->arena, "%s.error", p->label);
    if (!what) { return CRD_E_MEMORY; }
    return offer(m, c, what,
                 (crdi_coupled){.from = &p->error,
                                .type = CRD_FLOAT64,
                                .unit = unit,
                                .description = "estimate minus the undelayed value"});
}

static crd_status offer_signals(crd_master* m, crdi_couple* c, const char* unit)
{
    crd_status st = CRD_OK;
    enum { OWN = 4, ACTIVE = 3 };
    if (!c->spec->coupling->record) { return CRD_OK; }
    c->signals = crdi_arena_new(&m->arena, (size_t)(OWN + c->tap_count), sizeof *c->signals);
    crd_label* labels = crdi_arena_new(&m->arena, ACTIVE, sizeof *labels);
    if (!c->signals || !labels) { return CRD_E_MEMORY; }
    labels[0] = (crd_label){CRD_ACTIVE_ALGORITHM, c->taps[0].label};
    labels[1] = (crd_label){CRD_ACTIVE_ZOH, "ZOH"};
    labels[2] = (crd_label){CRD_ACTIVE_FOH, "FOH"};
    CRD_TRY(offer_error(m, c, &c->taps[0], unit));
    CRD_TRY(offer(m, c, "k",
                  (crdi_coupled){.from = &c->k,
                                 .type = CRD_INT32,
                                 .unit = "",
                                 .description = "latency in macro steps"}));
    CRD_TRY(offer(m, c, "jump",
                  (crdi_coupled){.from = &c->jump,
                                 .type = CRD_BOOLEAN,
                                 .unit = "",
                                 .description = "the newest sample is discontinuous"}));
    CRD_TRY(offer(m, c, "active",
                  (crdi_coupled){.from = &c->active,
                                 .type = CRD_ENUMERATION,
                                 .unit = "",
                                 .description = "what made the estimate",
                                 .labels = labels,
                                 .label_count = ACTIVE}));
    for (int i = 1; i < c->tap_count; i++) {
        CRD_TRY(offer_error(m, c, &c->taps[i], unit));
    }
fail:
    return st;
}

static crd_status create_couple(crd_master* m, crdi_link* k, crdi_couple* c)
{
    crd_status st = CRD_OK;
    const crd_coupling_spec* s = k->spec->coupling;
    const crd_unit* target = m->members[k->to_member].unit;
    c->spec = k->spec;
    c->source = k->from_member;
    c->target = k->to_member;
    c->gain = k->gain;
    c->offset = k->offset;
    c->channel = s->has_channel ? &s->channel : NULL;
    CRD_TRY(name_ends(m, k, c));
    c->script = crdi_script_find(m, c->to_name);
    if (c->channel) {
        CRD_TRY(check_channel(m, c));
        const double loss = c->channel->loss;
        c->seed = hash(k->spec->to, hash(target->name, c->channel->seed));
        // With that chance the part that is lost is `loss`, whatever the length of a burst.
        c->burst_chance = loss > 0 ? loss / (loss + c->channel->burst * (1 - loss)) : 0;
    }
    CRD_TRY(parse_taps(m, c));
    CRD_TRY(choose_interval(m, c));
    for (int i = 0; i < c->tap_count; i++) {
        CRD_TRY(create_tap(m, c, i));
    }
    // Without a channel, a latency that is known lies in front of the source.
    c->dated = !c->channel && !c->script &&
               m->members[c->source].unit->info.flags & CRD_UNIT_DATES_OUTPUTS;
    c->truth = c->channel || (isnan(c->taps[0].latency) && !c->dated);
    if (c->script) {
        CRD_TRY(check_script(m, c));
        c->truth = c->truth && !c->script->values;
    }
    CRD_TRY(make_room(m, c));
    c->tap_reports = crdi_arena_new(&m->arena, (size_t)c->tap_count, sizeof *c->tap_reports);
    if (!c->tap_reports) { return CRD_E_MEMORY; }
    if (c->taps[0].description->options.reconstruction == CRD_RECONSTRUCT_HOLD) {
        k->slope = false;
    }
    CRD_TRY(offer_signals(m, c, target->info.variables[k->to_variable].unit));
fail:
    return st;
}

crd_status crdi_master_plan_couples(crd_master* m)
{
    const size_t n = (size_t)m->couple_count;
    m->couples = crdi_arena_new(&m->arena, n, sizeof *m->couples);
    m->coupling_reports = crdi_arena_new(&m->arena, n, sizeof *m->coupling_reports);
    if (!m->couples || !m->coupling_reports) { return CRD_E_MEMORY; }
    for (int i = 0; i < m->link_count; i++) {
        crdi_link* k = &m->links[i];
        if (k->couple < 0) { continue; }
        const crd_status st = create_couple(m, k, &m->couples[k->couple]);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

void crdi_master_free_couples(crd_master* m)
{
    for (int i = 0; m->couples && i < m->couple_count; i++) {
        const crdi_couple* c = &m->couples[i];
        for (int t = 0; t < c->tap_count; t++) {
            crd_learn_client_destroy(c->taps[t].learn);
            crd_coupling_destroy(c->taps[t].element);
            crd_element_destroy(c->taps[t].description);
        }
    }
    crd_context_destroy(m->live_ctx);
}

void crdi_couple_bind(crd_master* m, const crdi_link* k, const double* from, double* to,
                      double* slope)
{
    crdi_couple* c = &m->couples[k->couple];
    c->from = from;
    c->to = to;
    c->slope = slope;
}
