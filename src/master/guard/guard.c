// The guard (guard.h): what it knows at the start, what it sees in a step, what it does about it.
#include "master/master.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// Growth by the coupling over the run that is worth a word; and that counts as an explosion.
static const double worth_saying = 2.302585092994046, doubtful = 10, explosion = 1000;
// Nobody runs a plant until it is that much larger: of no use, whoever did it.
static const double beyond_use = 1e9;
// Signals of a loop that the map condemns, from their smallest stretch on.
static const double grown_enough = 5;
// Of the energy that passed a bond.
static const double much_energy = 0.1;
// Eigenvalues are good to some 1e-13 of the map's norm: what grows slower per step is not told.
static const double slowest = 1e-7;
enum {
    SAMPLES = 64,     // of a stretch, at least, where only sizes are noted
    LEAST_STEPS = 10, // of a run, before which evenness means nothing
};
static const char* const not_asked = "nobody has asked its units";
// Of the growth that is measured, this part has to be the coupling's by the map.
static const double enough = 0.3;

static const char* const states[] = {"off",    "calm",     "flagged", "undecided",
                                     "warned", "diverged", "limit"};

const char* crd_guard_state_name(crd_guard_state s)
{
    return s >= 0 && s <= CRD_GUARD_LIMIT ? states[s] : "";
}

bool crdi_guard_sees_rough(const crd_master* m)
{
    for (int i = 0; i < m->guard.guarded_count; i++) {
        if (crdi_growth_is_rough(&m->guard.guarded[i].watch)) { return true; }
    }
    return false;
}

crd_guard_report crdi_guard_get_report(const crd_master* m)
{
    const crdi_guard* g = &m->guard;
    crd_guard_report r = {.state = g->state,
                          .asked = g->spec.place.file && *g->spec.place.file,
                          .stopped = g->stopped,
                          .exploded = g->exploded && g->state == CRD_GUARD_UNDECIDED,
                          .time = g->text[0] ? g->time : (double)NAN,
                          .growth = NAN,
                          .text = g->text,
                          .help = g->help,
                          .note = g->note ? g->note : "",
                          .loops = g->loop_count};
    for (int i = 0; i < g->loop_count; i++) {
        const crdi_guard_loop* l = &g->loops[i];
        r.mapped += !l->unknown;
        const double excess = l->unknown ? 0 : crdi_guard_excess(l);
        if (excess > 0 && !(exp(excess) < r.growth)) { r.growth = exp(excess); }
    }
    return r;
}

// ---- what is said ------------------------------------------------------------------------------

// The worst that happened is what the verdict has; equals keep the first.
static bool claim(crd_master* m, crdi_guard_loop* l, crd_guard_state state, double time)
{
    crdi_guard* g = &m->guard;
    // What was done about it did not help: the next rung, however it is seen.
    const bool again = g->spec.action == CRD_GUARD_LADDER && (state == g->state || l->rung);
    const bool news = state > CRD_GUARD_FLAGGED && !l->named;
    l->named = l->named || news;
    if (state <= g->state && !again) {
        if (news) {
            crdi_log(m->log, CRD_LOG_WARNING, "guard: at t = %.6g s the loop %s grows, too", time,
                     l->names);
        }
        return false;
    }
    if (state > g->state) { g->state = state; }
    g->time = time;
    g->help[0] = 0;
    return true;
}

static crdi_duration tick_text(const crd_master* m)
{
    return crdi_duration_text(m->plan->times.tick, 4);
}

void crdi_guard_stop(crd_master* m)
{
    crdi_guard* g = &m->guard;
    crdi_events_note(m, CRD_EVENT_ERROR, g->text);
    if (m->life.end != CRD_END_NONE) { return; }
    g->stopped = true;
    crdi_life_end(m, CRD_END_GUARD, -1);
}

// Nobody stops it: said in the log, which makes it an event.
static void say(crd_master* m)
{
    const crdi_guard* g = &m->guard;
    crdi_log(m->log, CRD_LOG_WARNING, "guard: %s%s%s", g->text, g->help[0] ? "; " : "", g->help);
}

// As asked: stops, climbs the ladder, or says it.
static void act(crd_master* m, crdi_guard_loop* l, bool proven)
{
    crdi_guard* g = &m->guard;
    const crd_guard_action action = g->spec.action;
    if (action == CRD_GUARD_LADDER && crdi_ladder_climb(m, (int)(l - g->loops))) { return; }
    const bool stops = action == CRD_GUARD_STOP || action == CRD_GUARD_LADDER ||
                       (proven && (action == CRD_GUARD_AUTO || g->blind));
    if (stops) {
        crdi_guard_stop(m);
    } else {
        say(m);
    }
}

// By what is left of the run.
static bool will_diverge(const crd_master* m, const crdi_guard_loop* l)
{
    const crdi_times* t = &m->plan->times;
    const double left = m->plan->opt.open_end ? INFINITY : (t->stop - m->clock.time) / t->tick;
    const double excess = l->unknown ? 0 : crdi_guard_excess(l);
    return excess > slowest && excess * left > worth_saying;
}

// At the start: "the loop ... will diverge by its coupling". Each is said; the verdict has the
// first.
static void flag(crd_master* m, crdi_guard_loop* l)
{
    crdi_guard* g = &m->guard;
    char why[200], text[CRDI_GUARD_TEXT], help[CRDI_GUARD_TEXT];
    l->suspect = true;
    const double excess = crdi_guard_excess(l), steps = ceil(worth_saying / excess);
    crdi_guard_explain(m, l, why, sizeof why);
    snprintf(text, sizeof text,
             "the coupling of the loop %s will diverge: its errors grow ten-fold in %.3g step%s "
             "(%s); %s",
             l->names, steps, steps == 1 ? "" : "s",
             crdi_duration_text(steps * m->plan->times.tick, 3).text, why);
    crdi_guard_advise(m, l, help, sizeof help);
    crdi_log(m->log, CRD_LOG_WARNING, "guard: %s; %s", text, help);
    if (!claim(m, l, CRD_GUARD_FLAGGED, m->clock.time)) { return; }
    memcpy(g->text, text, sizeof text);
    memcpy(g->help, help, sizeof help);
}

// ---- the start ---------------------------------------------------------------------------------

static crd_status note_off(crd_master* m)
{
    crdi_guard* g = &m->guard;
    if (g->loop_count == 0) { return CRD_OK; }
    g->note = crdi_arena_format(&m->arena,
                                "off: nobody watches whether the coupling of the loop %s%s "
                                "holds",
                                g->loops[0].names, g->loop_count > 1 ? ", and of others," : "");
    return g->note ? CRD_OK : CRD_E_MEMORY;
}

static crd_status note_unknown(crd_master* m)
{
    crdi_guard* g = &m->guard;
    for (int i = 0; i < g->loop_count; i++) {
        const crdi_guard_loop* l = &g->loops[i];
        if (!l->unknown) { continue; }
        g->note = crdi_arena_format(&m->arena,
                                    "nothing is known of the loop %s beforehand: %s; the growth of "
                                    "its %d defect%s is watched instead",
                                    l->names, l->unknown, l->count, l->count == 1 ? "" : "s");
        return g->note ? CRD_OK : CRD_E_MEMORY;
    }
    return CRD_OK;
}

void crdi_guard_watch_anew(const crd_master* m, crdi_guarded* p)
{
    const double usual = crdi_variable_at(m->plan, &p->of->from)->nominal;
    crdi_growth_start(&p->watch, p->gain * *p->from + p->offset, 1e-12 * fabs(p->gain) * usual);
}

crd_status crdi_guard_start(crd_master* m)
{
    crdi_guard* g = &m->guard;
    crd_status st = CRD_OK;
    g->spec = m->plan->sys->run.guard;
    const int64_t ticks = m->plan->times.tick_count;
    g->blind = g->spec.action == CRD_GUARD_NONE;
    g->state = g->blind ? CRD_GUARD_OFF : CRD_GUARD_CALM;
    if (!g->blind) { CRD_TRY(crdi_guard_check_limits(m)); }
    CRD_TRY(crdi_guard_find_loops(m));
    for (int i = 0; i < g->loop_count; i++) {
        crdi_guard_loop* l = &g->loops[i];
        l->unknown = not_asked;
        if (g->blind && !m->connections.network_count) { continue; }
        CRD_TRY(crdi_guard_make_map(m, l)); // for those who predict, too
        if (!g->blind && will_diverge(m, l)) { flag(m, l); }
    }
    for (int i = 0; i < g->guarded_count; i++) {
        crdi_guard_watch_anew(m, &g->guarded[i]);
    }
    CRD_TRY(g->blind ? note_off(m) : note_unknown(m));
    if (g->spec.action == CRD_GUARD_LADDER) { CRD_TRY(crdi_ladder_plan(m)); }
    // How many steps there will be is not known of controlled runs and those without an end.
    g->block = ticks == INT64_MAX || m->plan->opt.open_end ? 1 : ticks / CRDI_WATCH_BLOCKS + 1;
    for (g->sampled = 1; g->blind && g->sampled < g->block / SAMPLES; g->sampled *= 2) {}
    g->on = g->guarded_count > 0 || g->limited;
fail:
    return st;
}

static crdi_guard_loop* loop_of(const crd_master* m, const crdi_connection* k, int* link)
{
    const int loop = m->guard.place ? m->guard.place[k->to.member].loop : -1;
    crdi_guard_loop* l = loop < 0 ? NULL : &m->guard.loops[loop];
    for (int j = 0; l && !l->unknown && j < l->macro.link_count; j++) {
        if (l->of[j] != k) { continue; }
        *link = j;
        return l;
    }
    return NULL;
}

const crdi_macro* crdi_guard_map_of(const crd_master* m, const crdi_connection* k, int* link)
{
    const crdi_guard_loop* l = loop_of(m, k, link);
    return l ? &l->macro : NULL;
}

crdi_guard_foresight crdi_guard_foresee(crd_master* m, const crdi_connection* k)
{
    int link = 0;
    crdi_guard_loop* l = loop_of(m, k, &link);
    if (!l) { return CRDI_GUARD_UNKNOWN; }
    // Of a plant without losses every exchange makes errors grow: over the run, by less than half.
    const double ticks = (double)m->plan->times.tick_count;
    return crdi_guard_try_level(m, l, 1, 2) * ticks < 0.4 ? CRDI_GUARD_HOLDS : CRDI_GUARD_GROWS;
}

// ---- alarms ------------------------------------------------------------------------------------

// The stretch of the run that the last step belongs to. Where all are full, they become longer.
static int stretch(crd_master* m)
{
    crdi_guard* g = &m->guard;
    while ((m->clock.n - 1) / g->block >= CRDI_WATCH_BLOCKS) {
        for (int i = 0; i < g->guarded_count; i++) {
            crdi_growth_fold_blocks(&g->guarded[i].watch);
        }
        g->block *= 2;
        if (g->blind && g->sampled < g->block / SAMPLES) { g->sampled *= 2; }
    }
    return (int)((m->clock.n - 1) / g->block);
}

// Sizes of this loop's signals are what they were before.
static void freeze_scales(crd_master* m, const crdi_guard_loop* l, const crdi_guarded* seen)
{
    const int blocks = stretch(m) + 1;
    for (int i = l->first; i < l->first + l->count; i++) {
        const crdi_guarded* p = &m->guard.guarded[i];
        crdi_connections_freeze_scale(m, p->of,
                                      crdi_growth_calm_of(&p->watch, &seen->watch, blocks));
    }
}

static void diverge(crd_master* m, crdi_guard_loop* l, const crdi_guarded* seen)
{
    crdi_guard* g = &m->guard;
    char why[200];
    l->done = true;
    freeze_scales(m, l, seen);
    const char* from = crdi_end_name(m->plan, &m->arena, &seen->of->from);
    if (!claim(m, l, CRD_GUARD_DIVERGED, m->clock.time)) { return; }
    crdi_guard_explain(m, l, why, sizeof why);
    snprintf(g->text, sizeof g->text,
             "at t = %.6g s the loop %s diverges by its coupling, seen at %s: its errors grow by "
             "%.3g %% a step, the units coupled exactly would %s; %s",
             m->clock.time, l->names, from ? from : "", 100 * expm1(crdi_guard_excess(l)),
             l->exact > slowest ? "grow more slowly" : "not grow", why);
    crdi_guard_advise(m, l, g->help, sizeof g->help);
    act(m, l, true);
}

// A bond of the loop over which the exchange has created much of the energy that passed: no plant
// does that. NULL: there is none.
static const crdi_bond* creating_bond(const crd_master* m, const crdi_guard_loop* l)
{
    for (int i = 0; i < m->energy.bond_count; i++) {
        const crdi_bond* b = &m->energy.bonds[i];
        bool inside = false;
        for (int k = 0; k < l->member_count; k++) {
            inside = inside || l->members[k] == b->action_member;
        }
        crd_bond_report r;
        crdi_bond_report(b, &r);
        if (inside && r.relative > much_energy) { return b; }
    }
    return NULL;
}

// Without a map: the growth is too fast for the samples, which no plant does that they resolve.
static void warn(crd_master* m, crdi_guard_loop* l, const crdi_guarded* seen)
{
    crdi_guard* g = &m->guard;
    l->done = true;
    freeze_scales(m, l, seen);
    const char* from = crdi_end_name(m->plan, &m->arena, &seen->of->from);
    if (!claim(m, l, CRD_GUARD_WARNED, m->clock.time)) { return; }
    const crdi_bond* bond = creating_bond(m, l);
    snprintf(g->text, sizeof g->text,
             "at t = %.6g s the loop %s grows as couplings do that do not hold, by %.3g %% a step, "
             "seen at %s: %s%s%s%s",
             m->clock.time, l->names, 100 * expm1(seen->watch.rate / (double)seen->every),
             from ? from : "",
             bond ? "the exchange creates the energy, over bond "
                  : "it changes too much between two exchanges",
             bond ? bond->name : "", l->unknown ? "; it is not proven: " : "",
             l->unknown ? l->unknown : "");
    const bool hold = !l->unknown && l->selects &&
                      crdi_guard_try_level(m, l, 0, 0) * (double)m->plan->times.tick_count < 0.7;
    snprintf(g->help, sizeof g->help, "a step of %s instead of %s would tell, and help%s",
             crdi_duration_text(0.5 * m->plan->times.tick, 4).text, tick_text(m).text,
             hold ? "; by the map of the loop 'predict: hold' does not diverge" : "");
    act(m, l, false);
}

// Samples follow the growth: a plant that grows by itself looks the same.
static void wonder(crd_master* m, crdi_guard_loop* l, double rate, double time)
{
    crdi_guard* g = &m->guard;
    if (!claim(m, l, CRD_GUARD_UNDECIDED, time)) { return; }
    snprintf(g->text, sizeof g->text,
             "at t = %.6g s the loop %s grows%s: by its coupling, or by itself as an unstable "
             "plant does; the two cannot be told apart%s%s",
             time, l->names, rate > 0 ? " steadily" : "", l->unknown ? ": " : "",
             l->unknown ? l->unknown : "");
    snprintf(g->help, sizeof g->help,
             "'--step %s' would tell: growth by the coupling becomes slower, that of the plant "
             "stays",
             crdi_duration_text(0.5 * m->plan->times.tick, 4).text);
    const bool acts = g->spec.action == CRD_GUARD_STOP || g->spec.action == CRD_GUARD_LADDER;
    if (acts && m->life.end == CRD_END_NONE) {
        act(m, l, false);
    } else {
        crdi_events_note(m, CRD_EVENT_MARK, g->text);
    }
}

// A plant whose exchange is worth the name does not grow by 15 % between two of them.
static const double fastest_plant = 0.14;

// Growth that samples do not follow is that of a coupling. Where it is slow, and they nearly do, it
// is a plant's as often as not (of 1500 unstable plants 18 look like this, of 100 couplings 4).
static bool looks_like_coupling(const crdi_guarded* p, crdi_growth alarm)
{
    const crdi_growth_watch* w = &p->watch;
    const double rate = w->rate / (double)p->every;
    const bool mild = rate < 0.03 && w->roughness < 0.8 && w->share < 0.19;
    return rate > fastest_plant || (alarm == CRDI_GROWTH_UNRESOLVED && rate > 0.008 && !mild);
}

// The part of a signal that is error, as the defects of the run make it; NaN: it is not known.
static double part_of_error(const crd_master* m, const crdi_guarded* p)
{
    double rms = NAN, max = NAN;
    crdi_estimate_of(m, p->of->from.member, p->of->from.slot, &rms, &max);
    return fabs(p->gain) * max / p->watch.size;
}

// Units are asked where they are now, unless the start has said it already.
static void decide(crd_master* m, crdi_guarded* p, crdi_growth alarm)
{
    crdi_guard_loop* l = &m->guard.loops[p->loop];
    if (l->done) { return; }
    if (!l->unknown && crdi_guard_look_again(m, l)) {
        const double excess = crdi_guard_excess(l);
        if (excess > slowest && excess > enough * p->watch.rate / (double)p->every) {
            diverge(m, l, p);
            return;
        }
        // What chooses its predictions may do worse than each of them.
        const bool beyond = p->watch.rate / (double)p->every > 2 * fmax(l->exact, 0) + slowest;
        if (l->selects && beyond && looks_like_coupling(p, alarm)) { warn(m, l, p); }
        l->suspect = will_diverge(m, l);
    } else if (looks_like_coupling(p, alarm) || creating_bond(m, l)) {
        warn(m, l, p);
    } else if (!(part_of_error(m, p) < 0.1)) { // known, and small: a plant, or steps that grow
        wonder(m, l, p->watch.rate, m->clock.time);
    }
    crdi_growth_calm(&p->watch);
}

// ---- steps -------------------------------------------------------------------------------------

static double defect_of(const crdi_guarded* p, double y)
{
    return p->of->prediction ? p->of->prediction->bias : crdi_growth_defect(&p->watch, *p->to, y);
}

// At the end of a stretch: where the map says that errors are ten-fold by now, and the signals have
// grown, samples may follow the growth as well as they like.
static void compare_stretches(crd_master* m, int blocks)
{
    crdi_guard* g = &m->guard;
    for (int i = 0; i < g->guarded_count; i++) {
        crdi_guarded* p = &g->guarded[i];
        crdi_guard_loop* l = &g->loops[p->loop];
        if (!l->suspect || l->done) { continue; }
        const bool by_now = crdi_guard_excess(l) * (double)m->clock.n > worth_saying;
        const double grown = by_now ? crdi_growth_of_blocks(&p->watch, blocks) : 1;
        if (!(grown > grown_enough)) { continue; }
        p->watch.rate = crdi_guard_excess(l) * (double)p->every;
        p->watch.calm = p->watch.size / grown;
        p->watch.window = -1;
        decide(m, p, CRDI_GROWTH_CONFIRMS);
    }
}

static void note_sizes(crd_master* m)
{
    const int at = stretch(m);
    for (int i = 0; i < m->guard.guarded_count; i++) {
        crdi_guarded* p = &m->guard.guarded[i];
        crdi_growth_note(&p->watch, p->gain * *p->from + p->offset, at);
    }
}

bool crdi_guard_is_on(const crd_master* m)
{
    return m->guard.on;
}

void crdi_guard_step(crd_master* m)
{
    crdi_guard* g = &m->guard;
    const int64_t n = m->clock.n;
    if (!g->on || (n & (g->sampled - 1))) { return; }
    if (g->blind) {
        note_sizes(m);
        return;
    }
    const int at = g->guarded_count ? stretch(m) : 0;
    for (int i = 0; i < g->guarded_count; i++) {
        crdi_guarded* p = &g->guarded[i];
        if (m->plan->times.multirate && n % p->every != 0) { continue; }
        const double y = p->gain * *p->from + p->offset;
        const crdi_guard_loop* l = &g->loops[p->loop];
        const double expected = l->suspect ? (double)p->every * crdi_guard_excess(l) : 0;
        const crdi_growth alarm = crdi_growth_step(&p->watch, defect_of(p, y), y, at, expected);
        if (alarm != CRDI_GROWTH_NONE) { decide(m, p, alarm); }
    }
    if (g->guarded_count && n % g->block == 0) { compare_stretches(m, at + 1); }
    if (g->limited && !g->stopped) { crdi_guard_watch_limits(m); }
}

// The coupling did that: it is error for the most part, whatever the units would do by themselves;
// or a good part of it, and coupled exactly they would not grow like that.
static bool is_error(crd_master* m, const crdi_guarded* p, double grown)
{
    const double part = part_of_error(m, p), time = m->clock.time - m->plan->times.start;
    if (!(part > 0.1)) { return false; }
    return part > 0.5 || log(grown) > 2 * fmax(crdi_estimate_growth(m), 0) * time + worth_saying;
}

// Slower growth of units of which nothing is known. What explodes does so evenly, and swings: to
// become ten-fold a loop has to turn many times.
static bool is_doubtful(const crd_master* m, const crdi_guard_loop* l, const crdi_guarded* p,
                        int blocks)
{
    return l->unknown && m->clock.n >= LEAST_STEPS && !(part_of_error(m, p) < 0.1) &&
           crdi_growth_is_even(&p->watch, blocks) && crdi_growth_swings(&p->watch);
}

// Evenly, or samples do not follow it: not as t^3 grows, which begins to move out of rest.
static bool explodes(crd_master* m, const crdi_guarded* p)
{
    return crdi_growth_is_even(&p->watch, stretch(m) + 1) || crdi_growth_is_rough(&p->watch);
}

// There is no map that would tell, but an estimate may.
static void tell_by_errors(crd_master* m, crdi_guard_loop* l, crdi_guarded* p, double grown)
{
    crdi_guard* g = &m->guard;
    if (crdi_growth_is_even(&p->watch, stretch(m) + 1)) { freeze_scales(m, l, p); }
    const bool error = is_error(m, p, grown), sudden = explodes(m, p);
    if (!error && (!sudden || grown < beyond_use)) {
        if (sudden) { wonder(m, l, 0, m->clock.time); }
        // Who falls over does not swing: that is the plant. Nobody else passes unasked.
        g->exploded =
            g->exploded || (g->state == CRD_GUARD_UNDECIDED && g->spec.action != CRD_GUARD_WARN &&
                            crdi_growth_swings(&p->watch));
        return;
    }
    const char* from = crdi_end_name(m->plan, &m->arena, &p->of->from);
    l->done = true;
    if (!claim(m, l, CRD_GUARD_DIVERGED, m->clock.time)) { return; }
    snprintf(g->text, sizeof g->text,
             "at t = %.6g s the loop %s has grown %.2g-fold, by its coupling or by itself: nothing "
             "of it can be used%s%s",
             m->clock.time, l->names, grown, l->unknown ? "; why it was not known before: " : "",
             l->unknown ? l->unknown : "");
    if (error) {
        snprintf(
            g->text, sizeof g->text,
            "at t = %.6g s the loop %s has grown %.2g-fold by its coupling: by the estimate %s is "
            "wrong by %.2g %% of what it has become%s%s",
            m->clock.time, l->names, grown, from ? from : "", 100 * part_of_error(m, p),
            l->unknown ? "; why it was not known before: " : "", l->unknown ? l->unknown : "");
    }
    snprintf(g->help, sizeof g->help, "a shorter step, or less latency, would help");
    crdi_events_note(m, CRD_EVENT_ERROR, g->text);
}

// A loop whose signals grew so much and nobody said it: by its coupling, by itself, or not known.
static void look_back(crd_master* m, crdi_guard_loop* l, crdi_guarded* p, double grown)
{
    crdi_guard* g = &m->guard;
    const double steps = (double)m->clock.n;
    p->watch.calm = p->watch.size / grown;
    p->watch.window = -1;
    if (g->state == CRD_GUARD_WARNED && (l->done || l->rung) && explodes(m, p)) {
        g->state = CRD_GUARD_DIVERGED; // it was said, and it went on
    } else if (l->unknown || !crdi_guard_look_again(m, l)) {
        p->watch.rate = log(grown) / steps * (double)p->every;
        const bool even = crdi_growth_is_even(&p->watch, stretch(m) + 1);
        if (creating_bond(m, l) || (even && log(grown) / steps > fastest_plant)) {
            warn(m, l, p);
            g->state = CRD_GUARD_DIVERGED;
        } else {
            tell_by_errors(m, l, p, grown);
        }
    } else if (crdi_guard_excess(l) * steps > worth_saying) {
        diverge(m, l, p);
    } else if (log(grown) > 2 * l->exact * steps + worth_saying) {
        tell_by_errors(m, l, p, grown);
    }
}

// Values that are no numbers, whoever made them: nothing of the loop can be used.
static void break_off(crd_master* m, crdi_guard_loop* l, const crdi_guarded* p)
{
    crdi_guard* g = &m->guard;
    const char* from = crdi_end_name(m->plan, &m->arena, &p->of->from);
    if (!claim(m, l, CRD_GUARD_DIVERGED, m->clock.time)) { return; }
    snprintf(g->text, sizeof g->text,
             "at t = %.6g s %s is not finite: the loop %s has grown beyond all numbers, by its "
             "coupling or by itself, or a unit has failed",
             m->clock.time, from ? from : "", l->names);
    crdi_events_note(m, CRD_EVENT_ERROR, g->text);
}

// The verdict is about one loop: others that had trouble are named behind it.
static void name_others(crdi_guard* g)
{
    for (int i = 0; i < g->loop_count; i++) {
        const size_t n = strlen(g->text);
        if (!g->loops[i].named || strstr(g->text, g->loops[i].names)) { continue; }
        snprintf(g->text + n, sizeof g->text - n, "; the loop %s grows, too", g->loops[i].names);
    }
}

// It was said, and by the end it is error for the most part; or nobody knows errors, and it has
// grown on.
static bool went_on(crd_master* m, const crdi_guard_loop* l, const crdi_guarded* p, double grown)
{
    return part_of_error(m, p) > 0.5 ||
           (l->unknown && grown >= doubtful && m->guard.spec.action != CRD_GUARD_WARN);
}

// What grew a thousand-fold is not passed over, however it did.
void crdi_guard_finish(crd_master* m)
{
    crdi_guard* g = &m->guard;
    if (!g->on || m->life.end == CRD_END_FAILED || m->clock.n < 1) { return; }
    if (g->blind) { note_sizes(m); }
    const int blocks = stretch(m) + 1;
    for (int i = 0; i < g->guarded_count; i++) {
        crdi_guarded* p = &g->guarded[i];
        crdi_guard_loop* l = &g->loops[p->loop];
        if (l->named && g->state >= CRD_GUARD_DIVERGED) { continue; }
        const double grown = crdi_growth_of_blocks(&p->watch, blocks);
        const double y = p->gain * *p->from + p->offset;
        if (!isfinite(y)) {
            const bool may = isnan(y) && m->plan->members[p->of->from.member].unit->spec->allow_nan;
            if (!may) { break_off(m, l, p); }
        } else if (grown >= explosion) {
            if (l->unknown == not_asked && crdi_guard_make_map(m, l) < 0) { l->unknown = "memory"; }
            look_back(m, l, p, grown);
        } else if (g->state == CRD_GUARD_WARNED && l->done && went_on(m, l, p, grown)) {
            g->state = CRD_GUARD_DIVERGED;
        } else if (grown >= doubtful && !g->blind && is_doubtful(m, l, p, blocks)) {
            wonder(m, l, 0, m->clock.time);
        }
    }
    name_others(g);
}
