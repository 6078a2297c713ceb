// Loops of units, and the macro-step map of one of them as the run couples it.
#include "master/master.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_NUMBERS = 160, NAMES = 400 }; // of a map's state; bytes of a loop's name

// ---- loops -------------------------------------------------------------------------------------

static bool any_connection(const crdi_plan* plan, const crdi_connection* k, const void* with)
{
    (void)plan;
    (void)with;
    return (k->gain != 0 || k->mapping) && !k->paired; // no map knows a pair
}

static bool is_watched(const crdi_connection* k)
{
    return k->curve && !k->mapping && !k->paired && k->gain != 0;
}

static bool is_inside(const crdi_connection* k, const int* component)
{
    return component[k->from.member] == component[k->to.member];
}

static void name_loop(crd_master* m, crdi_guard_loop* l)
{
    char text[NAMES] = "";
    size_t n = 0;
    for (int i = 0; i < l->inside_count; i++) {
        const crdi_connection* k = &m->plan->connections[l->inside[i]];
        const char* from = crdi_end_name(m->plan, &m->arena, &k->from);
        const char* to = crdi_end_name(m->plan, &m->arena, &k->to);
        const size_t need = from && to ? strlen(from) + strlen(to) + 8 : NAMES;
        if (n + need > NAMES / 2 && n > 0) {
            snprintf(text + n, sizeof text - n, " and %d more", l->inside_count - i);
            break;
        }
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s -> %s", n ? ", " : "",
                              from ? from : "", to ? to : "");
        if (n >= sizeof text) { n = sizeof text - 1; }
    }
    l->names = crdi_arena_text(&m->arena, text, strlen(text));
}

static crd_status fill_loop(crd_master* m, int loop)
{
    crdi_guard* g = &m->guard;
    crdi_guard_loop* l = &g->loops[loop];
    l->first = g->guarded_count;
    l->coupled = -1;
    for (int i = 0; i < l->inside_count; i++) {
        const crdi_connection* k = &m->plan->connections[l->inside[i]];
        if (!is_watched(k)) { continue; }
        if (k->couple >= 0) { l->coupled = l->inside[i]; }
        g->guarded[g->guarded_count++] =
            (crdi_guarded){.of = k,
                           .from = crdi_connection_from(m->plan, k),
                           .to = crdi_connection_to(m->plan, k),
                           .gain = k->gain,
                           .offset = k->offset,
                           .loop = loop,
                           .every = m->plan->members[k->from.member].ticks};
    }
    l->count = g->guarded_count - l->first;
    name_loop(m, l);
    return l->names ? CRD_OK : CRD_E_MEMORY;
}

// Members and connections by loop, all loops in one pass: there may be as many as units.
static crd_status sort_loops(crd_master* m, const int* component, const int* loop_of, int inside)
{
    crdi_guard* g = &m->guard;
    const crdi_plan* plan = m->plan;
    int* members = crdi_arena_new(&m->arena, (size_t)plan->member_count, sizeof *members);
    int* connections = crdi_arena_new(&m->arena, (size_t)inside, sizeof *connections);
    if (!members || !connections) { return CRD_E_MEMORY; }
    for (int i = 0; i < plan->member_count; i++) {
        const int loop = loop_of[component[i]];
        g->place[i] = (crdi_guard_place){loop, loop < 0 ? -1 : g->loops[loop].member_count++};
    }
    for (int i = 0; i < g->loop_count; i++) { // inside_count was counted before
        crdi_guard_loop* l = &g->loops[i];
        l->members = members;
        l->inside = connections;
        members += l->member_count;
        connections += l->inside_count;
        l->inside_count = 0;
    }
    for (int i = 0; i < plan->member_count; i++) {
        const crdi_guard_place p = g->place[i];
        if (p.loop >= 0) { g->loops[p.loop].members[p.at] = i; }
    }
    for (int i = 0; i < plan->connection_count; i++) {
        const crdi_connection* k = &plan->connections[i];
        if (!is_inside(k, component)) { continue; }
        crdi_guard_loop* l = &g->loops[g->place[k->to.member].loop];
        l->inside[l->inside_count++] = i;
    }
    return CRD_OK;
}

// A loop is a strongly connected part of the graph with a connection in it.
crd_status crdi_guard_find_loops(crd_master* m)
{
    crdi_guard* g = &m->guard;
    const crdi_plan* plan = m->plan;
    const size_t n = (size_t)plan->member_count;
    int* component = crdi_arena_new(&m->arena, n, sizeof *component);
    g->place = crdi_arena_new(&m->arena, n, sizeof *g->place);
    if (!component || !g->place) { return CRD_E_MEMORY; }
    const int count = crdi_plan_components(plan, any_connection, NULL, component);
    if (count < 0) { return CRD_E_MEMORY; }
    int* size = crdi_arena_new(&m->arena, (size_t)count, sizeof *size); // then the loop's number
    if (!size) { return CRD_E_MEMORY; }
    int inside = 0;
    for (int i = 0; i < plan->connection_count; i++) {
        const crdi_connection* k = &plan->connections[i];
        if (!is_inside(k, component)) { continue; }
        g->loop_count += size[component[k->to.member]]++ == 0;
        inside++;
    }
    g->loops = crdi_arena_new(&m->arena, (size_t)g->loop_count, sizeof *g->loops);
    g->guarded = crdi_arena_new(&m->arena, (size_t)inside, sizeof *g->guarded);
    if (!g->loops || !g->guarded) { return CRD_E_MEMORY; }
    for (int c = 0, loop = 0; c < count; c++) {
        if (size[c]) { g->loops[loop].inside_count = size[c]; }
        size[c] = size[c] ? loop++ : -1;
    }
    crd_status st = sort_loops(m, component, size, inside);
    for (int i = 0; i < g->loop_count && st >= 0; i++) {
        st = fill_loop(m, i);
    }
    return st;
}

// ---- units and links of a map ------------------------------------------------------------------

static crd_status refuse(crd_master* m, crdi_guard_loop* l, const char* what, const char* name,
                         const char* why)
{
    l->unknown = crdi_arena_format(&m->arena, "%s %s %s", what, name, why);
    return l->unknown ? CRD_OK : CRD_E_MEMORY;
}

static crd_status refuse_link(crd_master* m, crdi_guard_loop* l, const crdi_connection* k,
                              const char* why)
{
    const char* from = crdi_end_name(m->plan, &m->arena, &k->from);
    const char* to = crdi_end_name(m->plan, &m->arena, &k->to);
    const char* name = from && to ? crdi_arena_format(&m->arena, "%s -> %s", from, to) : NULL;
    return name ? refuse(m, l, "the connection", name, why) : CRD_E_MEMORY;
}

static void take_matrices(const crdi_model* p, crdi_macro_unit* u)
{
    u->states = p->linear.states;
    u->inputs = p->in_count;
    u->outputs = p->out_count;
    u->A = p->linear.A;
    u->B = p->linear.B;
    u->C = p->linear.C;
    u->D = p->linear.D;
}

static crd_status make_unit(crd_master* m, crdi_guard_loop* l, int i)
{
    const int member = l->members[i];
    const crdi_member* p = &m->plan->members[member];
    const crdi_model* model = NULL;
    const crd_status st = crdi_models_get(m, member, &model);
    if (st < 0) { return st; }
    if (model->status < 0) { return refuse(m, l, "unit", p->unit->name, model->why); }
    if (p->async) { return refuse(m, l, "unit", p->unit->name, "has a budget and may be late"); }
    crdi_macro_unit* u = &l->macro.units[i];
    take_matrices(model, u);
    u->ticks = (int)p->ticks;
    u->phase = p->phase;
    crdi_unit_inner(p->unit, &u->longest, &u->past, &u->points);
    if (crdi_refresh_has(m->plan, member) &&
        crd_defect_scheme_refreshes(m->plan->sys->run.feedthrough)) {
        u->refresh =
            p->unit->info.flags & CRD_UNIT_CAN_REFRESH ? CRDI_MACRO_ASKED : CRDI_MACRO_GAIN;
    }
    return CRD_OK;
}

// Fixed weights on a channel with a fixed delay: the samples on their way are states.
static crd_status make_taps(crd_master* m, crdi_guard_loop* l, const crdi_connection* k,
                            crdi_macro_link* out)
{
    const crdi_coupled* c = k->coupled;
    const crd_channel_spec* s = c->channel;
    const double step = m->plan->times.tick;
    if (s && (s->jitter > 0 || s->loss > 0 || s->duplicate > 0)) {
        return refuse_link(m, l, k, "has a channel with jitter or loss");
    }
    if (m->plan->times.multirate || fabs(c->interval - step) > 1e-9 * step || c->dated ||
        c->script) {
        return refuse_link(m, l, k, "has an element with a step of its own");
    }
    if (crdi_setpoints_ahead(c) > 0) {
        return refuse_link(m, l, k, "has an element that looks over the round trip");
    }
    const double delay = s ? s->delay : 0;
    const int late = (int)ceil(delay / step - 1e-9);
    crd_linear linear = {0};
    const crd_element* e = c->estimators[0].description;
    const crd_status st = crd_element_linear(e, step, late, &linear);
    if (st == CRD_E_MEMORY) { return st; }
    if (st < 0) { return refuse_link(m, l, k, "has an element whose weights are not fixed"); }
    out->tap_count = late + linear.m;
    double* taps = crdi_arena_new(&m->arena, 2 * (size_t)out->tap_count, sizeof *taps);
    for (int i = 0; taps && i < linear.m; i++) {
        taps[late + i] = linear.a[i];
        taps[out->tap_count + late + i] = linear.A && c->slope ? linear.A[i] / step : 0;
    }
    out->taps = taps;
    out->rise = taps && linear.A && c->slope ? taps + out->tap_count : NULL;
    crd_linear_clear(e->ctx, &linear);
    return taps ? CRD_OK : CRD_E_MEMORY;
}

static crd_predictor predictor_of(crd_prediction p)
{
    return p == CRD_PREDICTION_LINEAR      ? CRD_PREDICT_TAYLOR1
           : p == CRD_PREDICTION_QUADRATIC ? CRD_PREDICT_TAYLOR2
           : p >= CRD_PREDICTION_TAYLOR1
               ? (crd_predictor)(CRD_PREDICT_TAYLOR1 + (p - CRD_PREDICTION_TAYLOR1))
               : CRD_PREDICT_HOLD;
}

static crd_status make_link(crd_master* m, crdi_guard_loop* l, const crdi_connection* k)
{
    crdi_macro_link* out = &l->macro.links[l->macro.link_count];
    const crdi_prediction* f = k->prediction;
    const crdi_model *from = NULL, *to = NULL;
    if (!is_watched(k)) { return refuse_link(m, l, k, "is not one of continuous real numbers"); }
    if (k->routed) { return refuse_link(m, l, k, "goes from slave to slave"); }
    if (k->corrected || k->probed) { return refuse_link(m, l, k, "is corrected by a power bond"); }
    (void)crdi_models_get(m, k->from.member, &from);
    (void)crdi_models_get(m, k->to.member, &to);
    *out = (crdi_macro_link){.from_unit = m->guard.place[k->from.member].at,
                             .to_unit = m->guard.place[k->to.member].at,
                             .from = crdi_models_output(from, k->from.slot),
                             .to = crdi_models_input(to, k->to.slot),
                             .gain = k->gain,
                             .phase = k->phase,
                             .early = k->early,
                             .predictor = f ? predictor_of(f->predict) : CRD_PREDICT_HOLD,
                             .textbook = !f || f->textbook || f->predict == CRD_PREDICTION_HOLD};
    if (out->from < 0 || out->to < 0) { return refuse_link(m, l, k, "is not in the models"); }
    crdi_macro_unit *source = &l->macro.units[out->from_unit],
                    *target = &l->macro.units[out->to_unit];
    for (int d = 0; f && d < 2; d++) {
        if (f->rates[d] && source->gives < d + 1) { source->gives = d + 1; }
        if (f->slope[d] && target->takes < d + 1) { target->takes = d + 1; }
    }
    l->selects = l->selects || (f && f->predict == CRD_PREDICTION_AUTO);
    l->macro.link_count++;
    return k->couple >= 0 ? make_taps(m, l, k, out) : CRD_OK;
}

// ---- rates -------------------------------------------------------------------------------------

// Links that choose go to one level; level < 0: all as the run has them.
static void set_level(crdi_guard_loop* l, int level)
{
    crdi_macro* c = &l->macro;
    bool all = level >= 0;
    for (int i = 0; i < c->link_count; i++) {
        all = all && l->links[i].predictor == CRD_PREDICT_COUNT; // chooses
    }
    crdi_macro_set_level(c, level < 0 ? 0 : level);
    c->strict = all && level == 0;
    for (int i = 0; i < c->link_count; i++) {
        if (l->links[i].predictor == CRD_PREDICT_COUNT) { continue; }
        c->links[i].predictor = l->links[i].predictor;
        c->links[i].textbook = l->links[i].textbook;
    }
    crdi_macro_size_links(c);
}

// What the run has; where it chooses, the best that it can choose.
static crd_status find_rate(crdi_guard_loop* l, double* out)
{
    double best = INFINITY;
    crd_status st = CRD_E_CONVERGENCE;
    for (int level = l->selects ? 0 : -1; level < (l->selects ? 3 : 0); level++) {
        double rate = INFINITY;
        set_level(l, level);
        const crd_status found = crdi_macro_ln_rho(&l->macro, &rate);
        if (found == CRD_E_MEMORY) { return found; }
        if (found >= 0) { st = CRD_OK; }
        if (found >= 0 && rate < best) { best = rate; }
    }
    *out = best;
    return st;
}

static crd_status find_rates(crdi_guard_loop* l)
{
    double growth = 0;
    crd_status st = crdi_macro_exact(&l->macro, &growth, NULL);
    if (st >= 0) { st = find_rate(l, &l->rate); }
    l->exact = growth * l->macro.tick;
    return st;
}

double crdi_guard_excess(const crdi_guard_loop* l)
{
    return l->rate - (l->exact > 0 ? l->exact : 0);
}

// Units as they could be coupled: with the derivatives that they take and give.
static void use_capabilities(const crd_master* m, crdi_guard_loop* l)
{
    l->macro.refresh_count = 0;
    for (int i = 0; i < l->member_count; i++) {
        const crd_unit_info* info = &m->plan->members[l->members[i]].unit->info;
        crdi_macro_unit* u = &l->macro.units[i];
        u->takes = info->max_input_order < 2 ? info->max_input_order : 2;
        u->gives = info->max_output_order < 2 ? info->max_output_order : 2;
        u->refresh = info->flags & CRD_UNIT_CAN_REFRESH ? CRDI_MACRO_ASKED : CRDI_MACRO_STALE;
        if (u->refresh) { l->macro.order[l->macro.refresh_count++] = i; }
    }
}

double crdi_guard_try_level(const crd_master* m, crdi_guard_loop* l, int first, int last)
{
    enum { MOST = 32 };
    crdi_macro_unit units[MOST];
    int order[MOST];
    const int refreshed = l->macro.refresh_count;
    double best = INFINITY;
    if (l->member_count > MOST) { return INFINITY; }
    const size_t n = (size_t)l->member_count;
    memcpy(units, l->macro.units, n * sizeof *units);
    memcpy(order, l->macro.order, n * sizeof *order);
    use_capabilities(m, l);
    for (int level = first; level <= last; level++) {
        double rate = INFINITY;
        crdi_macro_set_level(&l->macro, level);
        if (crdi_macro_ln_rho(&l->macro, &rate) >= 0 && rate < best) { best = rate; }
    }
    memcpy(l->macro.units, units, n * sizeof *units);
    memcpy(l->macro.order, order, n * sizeof *order);
    l->macro.refresh_count = refreshed;
    set_level(l, -1);
    return best - fmax(l->exact, 0);
}

bool crdi_guard_try_tick(crdi_guard_loop* l, double tick, double* excess)
{
    const double rate = l->rate, exact = l->exact;
    bool good = crdi_macro_set_tick(&l->macro, tick) >= 0 && find_rates(l) >= 0;
    *excess = crdi_guard_excess(l);
    l->rate = rate;
    l->exact = exact;
    return good;
}

// ---- the map of a loop -------------------------------------------------------------------------

static crd_status map_fill(crd_master* m, crdi_guard_loop* l)
{
    crd_status st = CRD_OK;
    if (m->plan->iterated) { l->unknown = "steps are iterated"; }
    if (m->plan->controlled) { l->unknown = "steps are of any length"; }
    for (int i = 0; i < l->member_count && !l->unknown; i++) {
        CRD_TRY(make_unit(m, l, i));
    }
    for (int i = 0; i < l->inside_count && !l->unknown; i++) {
        CRD_TRY(make_link(m, l, &m->plan->connections[l->inside[i]]));
    }
    for (int i = 0; i < m->plan->refresh_count && !l->unknown; i++) {
        const crdi_guard_place p = m->guard.place[m->plan->refreshed[i]];
        if (p.loop == l - m->guard.loops && l->macro.units[p.at].refresh) {
            l->macro.order[l->macro.refresh_count++] = p.at;
        }
    }
fail:
    return st;
}

// The map goes through all phases up to the last of its own, of which the run may have as many as
// units: they are counted anew, in their order.
static void count_phases(crdi_macro* c)
{
    for (int last = -1, rank = 0;; rank++) {
        int next = INT_MAX;
        for (int i = 0; i < c->unit_count; i++) {
            const int p = c->units[i].phase;
            if (p > last && p < next) { next = p; }
        }
        for (int i = 0; i < c->link_count; i++) {
            const int p = c->links[i].phase;
            if (p > last && p < next) { next = p; }
        }
        if (next == INT_MAX) { return; }
        for (int i = 0; i < c->unit_count; i++) {
            if (c->units[i].phase == next) { c->units[i].phase = rank; }
        }
        for (int i = 0; i < c->link_count; i++) {
            if (c->links[i].phase == next) { c->links[i].phase = rank; }
        }
        last = next; // never below `rank`
    }
}

// What the run has; a link that chooses has no predictor of its own.
static crd_status keep_links(crd_master* m, crdi_guard_loop* l)
{
    const size_t n = (size_t)l->macro.link_count;
    l->links = crdi_arena_new(&m->arena, n, sizeof *l->links);
    l->of = crdi_arena_new(&m->arena, n, sizeof *l->of);
    if (!l->links || !l->of) { return CRD_E_MEMORY; }
    for (int i = 0; i < l->inside_count; i++) {
        const crdi_connection* k = &m->plan->connections[l->inside[i]];
        l->links[i] = l->macro.links[i];
        l->of[i] = k;
        if (k->prediction && k->prediction->predict == CRD_PREDICTION_AUTO) {
            l->links[i].predictor = CRD_PREDICT_COUNT;
        }
    }
    return CRD_OK;
}

static const char too_large[] = "its units have too many states for a map";

crd_status crdi_guard_make_map(crd_master* m, crdi_guard_loop* l)
{
    crd_status st = CRD_OK;
    const size_t n = (size_t)l->member_count;
    l->unknown = 4 * (int64_t)l->inside_count > MOST_NUMBERS ? too_large : NULL;
    if (l->unknown) { return CRD_OK; } // before its units are looked at: there may be many
    l->macro = (crdi_macro){.tick = m->plan->times.tick, .unit_count = l->member_count};
    l->macro.units = crdi_arena_new(&m->arena, n, sizeof *l->macro.units);
    l->macro.order = crdi_arena_new(&m->arena, n, sizeof *l->macro.order);
    l->macro.links = crdi_arena_new(&m->arena, (size_t)l->inside_count, sizeof *l->macro.links);
    if (!l->macro.units || !l->macro.order || !l->macro.links) { return CRD_E_MEMORY; }
    CRD_TRY(map_fill(m, l));
    if (l->unknown) { return CRD_OK; }
    count_phases(&l->macro);
    CRD_TRY(keep_links(m, l));
    int numbers = 4 * l->macro.link_count;
    for (int i = 0; i < l->member_count; i++) {
        numbers += l->macro.units[i].states;
    }
    if (numbers > MOST_NUMBERS) {
        l->unknown = too_large;
        return CRD_OK;
    }
    st = crdi_macro_init(&m->arena, &l->macro);
    if (st >= 0) { st = find_rates(l); }
    if (st == CRD_E_MEMORY) { return st; }
    if (st < 0) { l->unknown = "its map has no eigenvalues that can be found"; }
    return CRD_OK;
fail:
    return st;
}

bool crdi_guard_look_again(crd_master* m, crdi_guard_loop* l)
{
    if (l->unknown) { return false; }
    for (int i = 0; i < l->member_count; i++) {
        const crdi_model* model = NULL;
        (void)crdi_models_ask_again(m, l->members[i]);
        if (crdi_models_get(m, l->members[i], &model) < 0) { return false; }
        take_matrices(model, &l->macro.units[i]);
    }
    return crdi_macro_set_tick(&l->macro, m->plan->times.tick) >= 0 && find_rates(l) >= 0;
}
