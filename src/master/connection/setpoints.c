// Commands of a coupling: set values that are sent to the unit whose output comes late. They are
// known here at once, and what they do there is learned by its elements (cardan/coupling.h).
//
// The time of a command is that at which the step of the source's unit begins in which it acts; the
// output at the end of the step is the first that shows it. On an emulated way there, what is sent
// at step n acts from n + way on, and a model's output at n is the source's at n + way; without one
// the input itself tells at n + 1 what has acted in the step before. Over the round trip all times
// at the source are earlier by the way there: estimates are what it will answer to what was sent in
// the step before.
//
// Losses and jitter on the way there are not known when a command is sent. A sample brings along
// what was acting when it was taken, as benches send it back, and puts the commands right.
#include "master/master.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { FOUND_MOST = 4, LIST = 300 }; // commands that are found; bytes of a list of names

// ---- before the run ----------------------------------------------------------------------------

static crd_place origin_of(const crdi_coupled* c)
{
    return c->of->spec->coupling->origin;
}

// Where the names of the commands of an element stand.
static crd_place commands_at(const crdi_coupled* c, int i)
{
    const crd_coupling_spec* s = c->of->spec->coupling;
    const crd_place its = i == 0 ? s->place : s->shadow_places[i - 1];
    return (crd_place){its.file, c->estimators[i].description->command_line};
}

// Where the names of the commands stand, else where the coupling does.
static crd_place commands_of(const crdi_coupled* c)
{
    for (int i = 0; i < c->estimator_count; i++) {
        const crd_element* e = c->estimators[i].description;
        if (e->options.commands > 0 && e->command_line > 0) { return commands_at(c, i); }
    }
    return origin_of(c);
}

static crd_status __attribute__((format(printf, 4, 5)))
refuse(const crdi_plan* plan, const crdi_coupled* c, crd_place place, const char* format, ...)
{
    char at[512], text[700];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    crdi_where(place.file && place.file[0] ? place : c->of->spec->place, at, sizeof at);
    return crdi_fail(plan->ctx, CRD_E_RANGE, "%scoupling of %s -> %s: %s", at, c->of->from_name,
                     c->of->to_name, text);
}

static bool uses(const crdi_estimator* p, crd_algorithm a)
{
    return p->description->options.algorithm == a;
}

static bool names_them(const crdi_estimator* p)
{
    return uses(p, CRD_ALGORITHM_AUTO) && p->description->options.commands > 0;
}

// An element `auto` in use knows what is sent to a unit whose output is late; as a shadow it shows
// what the signal alone would have been worth.
static bool finds_them(const crdi_coupled* c, const crdi_estimator* p)
{
    const double known = p->latency;
    const bool late = c->channel ? c->channel->delay + c->channel->jitter > 0
                                 : c->dated || c->script || (!isnan(known) && known > 0);
    return p == c->estimators && late && uses(p, CRD_ALGORITHM_AUTO) &&
           !p->description->no_commands;
}

static bool knows_them(const crdi_coupled* c, const crdi_estimator* p)
{
    return uses(p, CRD_ALGORITHM_COMMANDS) || names_them(p) || finds_them(c, p);
}

static bool any_uses(const crdi_coupled* c, crd_algorithm a)
{
    for (int i = 0; i < c->estimator_count; i++) {
        if (uses(&c->estimators[i], a)) { return true; }
    }
    return false;
}

static bool is_number(const crdi_plan* plan, const crdi_end* e)
{
    return crd_type_kind((crd_type)crdi_variable_at(plan, e)->type) != CRD_BYTES;
}

// Connections through which commands may come.
static bool leads_there(const crdi_plan* plan, const crdi_coupled* c, const crdi_connection* k)
{
    return k->to.member == c->of->from.member && k->from.member != k->to.member &&
           is_number(plan, &k->to);
}

static void list_inputs(const crdi_plan* plan, const crdi_coupled* c, char* text)
{
    size_t n = 0;
    text[0] = 0;
    for (int i = 0; i < plan->connection_count && n < LIST - 100; i++) {
        const crdi_connection* k = &plan->connections[i];
        if (!leads_there(plan, c, k)) { continue; }
        n += (size_t)snprintf(text + n, LIST - n, "%s%s.%.60s", n ? ", " : "",
                              c->source->unit->name, k->spec->to);
    }
    if (n == 0) { snprintf(text, LIST, "nothing that is"); }
}

static crd_status resolve(const crdi_plan* plan, const crdi_coupled* c, const char* text,
                          crdi_end* out)
{
    crd_status st = CRD_OK;
    const char* variable = NULL;
    const crd_coupling_spec* s = c->of->spec->coupling;
    const crd_place place = s->origin;
    *out = (crdi_end){0};
    CRD_TRY(crd_system_split(plan->sys, text, place, &out->member, &variable));
    const crd_unit* u = plan->members[out->member].unit;
    st = crd_unit_resolve(u, plan->ctx, variable, &out->variable, &out->element);
    if (st < 0) { return crdi_fail_at(plan->ctx, st, place); }
    const crd_variable* v = &u->info.variables[out->variable];
    if (v->alias_of >= 0) { out->variable = v->alias_of; }
    if (out->element < 0 && v->size > 1) {
        return refuse(plan, c, origin_of(c),
                      "'%s' has %lld elements, expected one of them, such as %s[1]", text,
                      (long long)v->size, text);
    }
    if (out->element < 0) { out->element = 0; }
    if (!is_number(plan, out)) { return refuse(plan, c, origin_of(c), "'%s' is no number", text); }
fail:
    return st;
}

static bool same_end(const crdi_end* a, const crdi_end* b)
{
    return a->member == b->member && a->variable == b->variable && a->element == b->element;
}

static crd_status add_command(const crdi_plan* plan, crdi_coupled* c, const crdi_connection* k)
{
    crdi_setpoints* s = c->setpoints;
    for (int i = 0; i < s->count; i++) {
        if (!s->list[i].model && same_end(&s->list[i].at, &k->to)) {
            return refuse(plan, c, commands_of(c), "commands: '%s' is there twice",
                          s->list[i].name);
        }
    }
    if (s->count == CRD_COMMANDS_MAX) {
        return refuse(plan, c, commands_of(c), "more than %d commands", CRD_COMMANDS_MAX);
    }
    const char* name = crdi_end_written_name(plan, plan->arena, &k->to, k->spec->to);
    if (!name) { return CRD_E_MEMORY; }
    s->list[s->count++] = (crdi_setpoint){.name = name, .at = k->to, .couple = k->couple};
    return CRD_OK;
}

static crd_status add_named(const crdi_plan* plan, crdi_coupled* c, const char* text)
{
    crdi_end end;
    const crd_status st = resolve(plan, c, text, &end);
    if (st < 0) { return st; }
    for (int i = 0; i < plan->connection_count; i++) {
        const crdi_connection* k = &plan->connections[i];
        if (leads_there(plan, c, k) && (same_end(&k->to, &end) || same_end(&k->from, &end))) {
            return add_command(plan, c, k);
        }
    }
    char list[LIST];
    list_inputs(plan, c, list);
    return refuse(plan, c, commands_of(c), "commands: '%s' is not sent to '%s', expected %s", text,
                  c->source->unit->name, list);
}

static crd_status add_model(crdi_plan* plan, crdi_coupled* c, const char* text)
{
    crdi_end end;
    crdi_setpoints* s = c->setpoints;
    const crd_status st = resolve(plan, c, text, &end);
    if (st < 0) { return st; }
    if (end.member == c->of->from.member) {
        return refuse(plan, c, origin_of(c),
                      "model: '%s' is late itself, expected an output of another unit", text);
    }
    if (crdi_variable_at(plan, &end)->causality == CRD_INPUT) {
        return refuse(plan, c, origin_of(c), "model: '%s' is an input, expected an output", text);
    }
    s->list[s->count++] = (crdi_setpoint){.name = text, .at = end, .couple = -1, .model = true};
    plan->read[plan->read_count++] = end;
    return CRD_OK;
}

static crd_status find_commands(const crdi_plan* plan, crdi_coupled* c, bool asked)
{
    int left = 0;
    for (int i = 0; i < plan->connection_count; i++) {
        const crdi_connection* k = &plan->connections[i];
        if (!leads_there(plan, c, k)) { continue; }
        if (c->setpoints->count == FOUND_MOST) {
            left++;
            continue;
        }
        const crd_status st = add_command(plan, c, k);
        if (st < 0) { return st; }
    }
    if (left) {
        crdi_log(plan->log, asked ? CRD_LOG_WARNING : CRD_LOG_INFO,
                 "coupling of %s -> %s: the first %d of %d values that are sent to '%s' count as "
                 "commands; 'commands:' chooses others",
                 c->of->from_name, c->of->to_name, FOUND_MOST, FOUND_MOST + left,
                 c->source->unit->name);
    }
    return CRD_OK;
}

// The element in use says which, or a shadow if it does not know any.
static const crdi_estimator* naming(const crdi_coupled* c)
{
    const crdi_estimator* found = NULL;
    for (int i = c->estimator_count - 1; i >= 0; i--) {
        const crdi_estimator* p = &c->estimators[i];
        const bool better = !found || i == 0 || p->description->options.commands > 0;
        if (knows_them(c, p) && better) { found = p; }
    }
    return found;
}

// All elements of a connection are told the same.
static crd_status check_others(const crdi_plan* plan, const crdi_coupled* c,
                               const crd_element* says)
{
    for (int i = 0; i < c->estimator_count; i++) {
        const crdi_estimator* p = &c->estimators[i];
        const crd_element* e = p->description;
        const int count = e->options.commands;
        if (count == 0 || e == says || uses(p, CRD_ALGORITHM_SMITH)) { continue; }
        bool same = count == says->options.commands && e->command_names;
        for (int a = 0; same && a < count; a++) {
            same = strcmp(e->command_names[a], says->command_names[a]) == 0;
        }
        if (same) { continue; }
        return refuse(plan, c, commands_at(c, i),
                      "other commands than those of %s, expected one list for all elements of a "
                      "connection",
                      says->options.commands ? "another element here"
                                             : "the element in use, which finds its own");
    }
    return CRD_OK;
}

static crd_status choose_commands(crdi_plan* plan, crdi_coupled* c)
{
    crd_status st = CRD_OK;
    const crd_coupling_spec* s = c->of->spec->coupling;
    const crdi_estimator* says = naming(c);
    const crd_element* e = says ? says->description : NULL;
    const bool smith = any_uses(c, CRD_ALGORITHM_SMITH);
    const int count = e ? e->options.commands : 0;
    if (smith && !s->model) {
        return refuse(plan, c, origin_of(c),
                      "smith needs a model, expected 'model: unit.output' beside it");
    }
    if (s->model && !smith && !e) {
        return refuse(plan, c, origin_of(c),
                      "no element here makes anything of a model, expected 'commands' or "
                      "'smith'");
    }
    if (count && !e->command_names) {
        return refuse(plan, c, commands_of(c),
                      "commands: %d, expected their names, such as [%s.%s]", count,
                      c->source->unit->name, "pedal");
    }
    if (e) { CRD_TRY(check_others(plan, c, e)); }
    const char* const* names = count ? e->command_names : NULL;
    const bool modelled = count && s->model && strcmp(names[0], s->model) == 0; // as it was saved
    if (s->model) { CRD_TRY(add_model(plan, c, s->model)); } // the first, for smith
    for (int i = modelled; i < count; i++) {
        CRD_TRY(add_named(plan, c, names[i]));
    }
    if (e && count == 0 && !s->model) {
        CRD_TRY(find_commands(plan, c, uses(says, CRD_ALGORITHM_COMMANDS)));
    }
    c->setpoints->found = count == 0 && !s->model;
    if (e && c->setpoints->count == 0 && uses(says, CRD_ALGORITHM_COMMANDS)) {
        return refuse(plan, c, origin_of(c),
                      "nothing is sent to '%s' that could be a command, expected "
                      "another algorithm",
                      c->source->unit->name);
    }
fail:
    return st;
}

// ---- ways --------------------------------------------------------------------------------------

static bool holds(const crdi_estimator* p)
{
    const crd_coupling_options* o = &p->description->options;
    return o->algorithm == CRD_ALGORITHM_LINEAR && o->design.method == CRD_METHOD_ZOH;
}

// s from sending a value until it is the unit's input, NaN: it is not sent over a network. An
// element there that makes up for it does so.
static double way_of(const crdi_plan* plan, const crdi_coupled* link)
{
    if (!link->channel) { return NAN; }
    const double tick = plan->times.tick;
    return holds(&link->estimators[0]) ? tick * ceil(link->channel->delay / tick - 1e-6) : 0;
}

// Of a value that goes there without an emulated network: it is taken to be as long as the way
// back, if that was given. Else samples are dated by the commands that they answer to, and their
// times at the source are those at which these were sent.
static double plain_way(const crdi_coupled* c)
{
    const double known = c->estimators[0].latency;
    return c->channel || isnan(known) ? 0 : known;
}

// Of all values that are sent to the source's unit over emulated networks, s.
static double shortest_way(const crdi_plan* plan, const crdi_connections* all,
                           const crdi_coupled* c)
{
    double way = NAN;
    for (int i = 0; i < plan->connection_count; i++) {
        const crdi_connection* k = &plan->connections[i];
        if (!leads_there(plan, c, k) || k->couple < 0) { continue; }
        way = fmin(way, way_of(plan, &all->coupled[k->couple]));
    }
    return isnan(way) ? plain_way(c) : way;
}

static int intervals(const crdi_coupled* c, double s)
{
    return (int)llround(s / c->interval);
}

// Lags in the elements' time, and how far that is ahead of the source's. A command that is sent
// acts from then on, and its time is the end of that step; an input tells it afterwards, and a
// model is asked at the end of its step, too. What takes a shorter way than that acts earlier in
// the elements' time than it is known: its lag is negative, and it is taken to stay as it is.
static void set_lags(const crdi_plan* plan, const crdi_connections* all, crdi_coupled* c)
{
    crdi_setpoints* s = c->setpoints;
    const int shortest = intervals(c, shortest_way(plan, all, c));
    int least = INT_MAX;
    s->step = intervals(c, c->source->step);
    for (int i = 0; i < s->count; i++) {
        crdi_setpoint* p = &s->list[i];
        const double sent = p->couple < 0 ? NAN : way_of(plan, &all->coupled[p->couple]);
        p->lag = p->model ? shortest : intervals(c, isnan(sent) ? plain_way(c) : sent);
        p->after = isnan(sent) && !p->model;
        s->after = s->after || p->after;
        s->before = s->before || !p->after;
        if (!p->after && p->lag < least) { least = p->lag; }
    }
    const bool whole = c->of->spec->coupling->target == CRD_TARGET_ROUND_TRIP;
    s->ahead = !whole ? 0 : s->before ? least : shortest;
    for (int i = 0; i < s->count; i++) {
        crdi_setpoint* p = &s->list[i];
        p->lag -= s->ahead;
        s->early = s->early > -p->lag ? s->early : -p->lag;
        s->room = s->room > p->lag ? s->room : p->lag;
    }
    s->room += s->step + s->early;
}

// Numbers that are sent back measure the round trip, but not when the source has acted within it.
static crd_status check_target(const crdi_plan* plan, const crdi_coupled* c)
{
    if (!c->dated || c->of->spec->coupling->target != CRD_TARGET_NOW ||
        !isnan(c->estimators[0].latency)) {
        return CRD_OK;
    }
    return refuse(
        plan, c, origin_of(c),
        "target: now: '%s' dates its samples by the set values that they answer to, which "
        "says how long both ways are together and nothing of one; expected 'latency' of "
        "the element beside it, such as latency: 30 ms, which is then taken for each "
        "way, or target: round-trip",
        c->source->unit->name);
}

static void tell_assumed(const crdi_plan* plan, const crdi_coupled* c)
{
    const crdi_setpoints* s = c->setpoints;
    const double known = c->estimators[0].latency;
    if (c->channel || (s->count == 0 && s->ahead == 0)) { return; }
    if (!isnan(known)) {
        crdi_log(plan->log, CRD_LOG_INFO,
                 "coupling of %s -> %s: '%s': %s: commands are taken to be on their way as long as "
                 "its samples, %g s",
                 c->of->from_name, c->of->to_name, c->source->unit->name,
                 c->dated ? "a latency is given, what it sends back is not used"
                          : "it does not send numbers back",
                 known);
    } else if (!c->dated && c->source->unit->info.flags & CRD_UNIT_IN_REAL_TIME) {
        crdi_log(plan->log, CRD_LOG_WARNING,
                 "coupling of %s -> %s: '%s' does not send numbers back and no 'latency' is given: "
                 "samples count as new, commands as acting at once",
                 c->of->from_name, c->of->to_name, c->source->unit->name);
    }
}

crd_status crdi_setpoints_plan(crdi_plan* plan, const crdi_connections* all, crdi_coupled* c)
{
    crd_status st = CRD_OK;
    crdi_setpoints* s = crdi_arena_new(plan->arena, 1, sizeof *s);
    if (!s) { return CRD_E_MEMORY; }
    c->setpoints = s;
    CRD_TRY(check_target(plan, c));
    s->list = crdi_arena_new(plan->arena, CRD_COMMANDS_MAX, sizeof *s->list);
    s->names = crdi_arena_new(plan->arena, CRD_COMMANDS_MAX, sizeof *s->names);
    if (!s->list || !s->names) { return CRD_E_MEMORY; }
    CRD_TRY(choose_commands(plan, c));
    set_lags(plan, all, c);
    tell_assumed(plan, c);
    for (int i = 0; i < s->count; i++) {
        s->names[i] = s->list[i].name;
    }
    for (int i = 0; i < c->estimator_count; i++) {
        crdi_estimator* p = &c->estimators[i];
        p->commands = uses(p, CRD_ALGORITHM_SMITH) ? 1 : knows_them(c, p) ? s->count : 0;
    }
    if (s->count == 0 && s->ahead == 0) { c->setpoints = NULL; }
fail:
    return st;
}

crd_status crdi_setpoints_make_room(crdi_plan* plan, crdi_coupled* c)
{
    crdi_setpoints* s = c->setpoints;
    const size_t n = (size_t)s->count;
    s->now = crdi_arena_new(plan->arena, n, sizeof *s->now);
    s->taken = crdi_arena_new(plan->arena, n * (size_t)(s->room + 1), sizeof *s->taken);
    s->acted = crdi_arena_new(plan->arena, n * (size_t)c->ring, sizeof *s->acted);
    return s->now && s->taken && s->acted ? CRD_OK : CRD_E_MEMORY;
}

bool crdi_setpoint_is_one(const crdi_connections* all, const crdi_connection* k)
{
    for (int i = 0; i < all->coupled_count; i++) {
        if (all->coupled[i].of->from.member == k->to.member) {
            return k->from.member != k->to.member;
        }
    }
    return false;
}

void crdi_setpoint_bind(const crdi_plan* plan, crdi_setpoint* p)
{
    const crdi_member* of = &plan->members[p->at.member];
    const crd_binding* b = p->model ? of->out : of->in;
    const crd_values* values = p->model ? &of->outputs : &of->inputs;
    p->kind = crd_type_kind((crd_type)crdi_variable_at(plan, &p->at)->type);
    p->unit = of->unit;
    for (int i = 0; i < b->count; i++) {
        if (b->variables[i] == p->at.variable) {
            p->acts = crdi_slot(values, p->kind, b->offsets[i] + p->at.element);
        }
    }
}

void crdi_setpoints_bind(const crdi_plan* plan, crdi_connections* all)
{
    for (int i = 0; i < all->coupled_count; i++) {
        crdi_setpoints* s = all->coupled[i].setpoints;
        for (int j = 0; s && j < s->count; j++) {
            crdi_setpoint* p = &s->list[j];
            const crd_script* script = p->model ? NULL : crdi_script_find(plan, p->name);
            p->script = script && script->acted ? script : NULL;
            p->link = p->couple < 0 ? NULL : &all->coupled[p->couple];
            crdi_setpoint_bind(plan, p);
        }
    }
}

// ---- the run -----------------------------------------------------------------------------------

// Benches keep set values to what was agreed.
double crdi_setpoint_acting(const crdi_setpoint* p)
{
    const crd_unit_remote_ops* remote = p->unit->ops->remote;
    double x = p->kind == CRD_REAL ? *(const double*)p->acts : (double)*(const int64_t*)p->acts;
    if (!p->model && remote && remote->acting) {
        (void)remote->acting(p->unit, p->at.variable, &x);
    }
    return x;
}

// The newest of the script at t.
static double scripted(crdi_setpoint* p, const double* values, double t)
{
    const crd_script* s = p->script;
    while (p->at_time + 1 < s->time_count && s->times[p->at_time + 1] <= t) {
        p->at_time++;
    }
    while (p->at_time > 0 && s->times[p->at_time] > t) {
        p->at_time--;
    }
    return values[p->at_time];
}

// What is sent at t, and in `*acted` what acted in the step that ends then.
static double take(crdi_setpoint* p, double t, double* acted)
{
    const bool sent = p->link && !p->after;
    if (p->script) {
        *acted = scripted(p, p->script->acted, t);
        return sent && p->script->sent ? scripted(p, p->script->sent, t) : *acted;
    }
    *acted = crdi_setpoint_acting(p);
    return sent ? p->link->gain * *p->link->from + p->link->offset : *acted;
}

static void tell(const crdi_coupled* c, const double* u, double when)
{
    for (int i = 0; i < c->estimator_count; i++) {
        const crdi_estimator* p = &c->estimators[i];
        if (p->commands) { crd_coupling_command(p->element, u, when); }
    }
}

// What acts from n on, or with `step` what has acted from the step before on.
static double known(const crdi_setpoints* s, int i, int64_t n, int step)
{
    const crdi_setpoint* p = &s->list[i];
    int64_t of = n - p->lag - (p->after ? 0 : step);
    if (of >= s->number) { of = s->number - 1; }
    return s->taken[(of > 0 ? of : 0) % (s->room + 1) * s->count + i]; // it was always there
}

// Whether something that acts earlier than it is known is another than it was taken to be.
static bool was_mistaken(const crdi_setpoints* s)
{
    const int64_t n = s->number - 1, rows = s->room + 1;
    const double *row = &s->taken[n % rows * s->count],
                 *before = &s->taken[(n + rows - 1) % rows * s->count];
    for (int i = 0; n > 0 && i < s->count; i++) {
        if (s->list[i].lag < 0 && row[i] != before[i]) { return true; }
    }
    return false;
}

void crdi_setpoints_take(crdi_coupled* c, double t)
{
    crdi_setpoints* s = c->setpoints;
    const int64_t n = s->number++;
    double* row = &s->taken[n % (s->room + 1) * s->count];
    double* acted = &s->acted[c->sent % c->ring * s->count];
    for (int i = 0; i < s->count; i++) {
        row[i] = take(&s->list[i], t + 1e-3 * c->interval, &acted[i]);
        if (s->list[i].model) { acted[i] = known(s, i, n, s->step); }
    }
    const int64_t first = was_mistaken(s) ? n - s->early : n;
    for (int64_t of = s->after ? first : n + 1; of <= n; of++) {
        for (int i = 0; i < s->count; i++) {
            s->now[i] = known(s, i, of, s->step);
        }
        tell(c, s->now, t - (double)(n - of + s->step) * c->interval);
    }
    for (int i = 0; i < s->count; i++) {
        s->now[i] = known(s, i, n, 0);
    }
    if (s->before) { tell(c, s->now, t); }
}

void crdi_setpoints_echo(const crdi_coupled* c, int64_t sequence, double stamp)
{
    const crdi_setpoints* s = c->setpoints;
    if (!s->before || c->dated || sequence < 0 || sequence >= c->sent ||
        sequence < c->sent - c->ring) {
        return;
    }
    tell(c, &s->acted[sequence % c->ring * s->count], stamp - s->step * c->interval);
}

// ---- what was learned --------------------------------------------------------------------------

crd_status crd_master_describe_weights(const crd_master* m, int coupling, crd_text* out)
{
    const crdi_coupled* c = &m->connections.coupled[coupling];
    crd_command_weights w;
    for (int i = 0; c->setpoints && i < c->estimator_count; i++) {
        const crdi_estimator* p = &c->estimators[i];
        if (!p->commands || !crd_coupling_get_weights(p->element, &w)) { continue; }
        crd_element learned = *p->description;
        learned.options.algorithm = CRD_ALGORITHM_COMMANDS;
        learned.step = c->interval;
        learned.options.commands = w.commands;
        learned.options.command_weights = &w;
        learned.command_names = c->setpoints->names;
        return crd_element_write(&learned, out);
    }
    return CRD_E_STATE;
}
