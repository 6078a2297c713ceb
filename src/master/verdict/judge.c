// The verdict: how far inputs missed their outputs, what bonds put in, how steps and iterations
// went. Numbers come from the connections; this puts them side by side, the worst first.
#include "master/verdict/judge.h"

#include "master/connection/paired.h"

#include <math.h>
#include <string.h>

// ---- room and facts ----------------------------------------------------------------------------

static crd_status name_ends(crd_master* m, crdi_connection* k)
{
    if (!k->from_name) { k->from_name = crdi_end_name(m->plan, &m->arena, &k->from); }
    if (!k->to_name) { k->to_name = crdi_end_name(m->plan, &m->arena, &k->to); }
    return k->from_name && k->to_name ? CRD_OK : CRD_E_MEMORY;
}

static bool is_hold_only(const crdi_connection* k)
{
    return k->prediction ? !k->prediction->slope[0] : !k->paired;
}

static bool is_judged(const crdi_plan* plan, const crdi_connection* k, const void* with)
{
    (void)plan;
    (void)with;
    return k->prediction || k->observed;
}

// Cycles of units, and whether all units of one save their state.
static crd_status find_loops(crd_master* m, crdi_judge* j)
{
    const int n = m->plan->member_count;
    int* size = crdi_arena_new(&m->arena, (size_t)n, sizeof *size);
    j->loop = crdi_arena_new(&m->arena, (size_t)n, sizeof *j->loop);
    j->loop_saves = crdi_arena_new(&m->arena, (size_t)n, sizeof *j->loop_saves);
    if (!size || !j->loop || !j->loop_saves) { return CRD_E_MEMORY; }
    const int loops = crdi_plan_components(m->plan, is_judged, NULL, j->loop);
    if (loops < 0) { return CRD_E_MEMORY; }
    for (int i = 0; i < n; i++) {
        size[j->loop[i]]++;
    }
    for (int i = 0; i < loops; i++) {
        j->loop_saves[i] = size[i] > 1;
    }
    for (int i = 0; i < n; i++) {
        if (!crdi_member_saves(&m->plan->members[i])) { j->loop_saves[j->loop[i]] = false; }
    }
    return CRD_OK;
}

static bool get_dimension(const crd_master* m, const crdi_connection* k, crd_dimension* out)
{
    const crd_unit* u = m->plan->members[k->from.member].unit;
    return crdi_variable_at(m->plan, &k->from)->rank == 0 &&
           crdi_unit_dimension(u, k->from.variable, out);
}

static bool is_bonded(const crd_master* m, const crdi_connection* k)
{
    const char* name = crdi_variable_at(m->plan, &k->from)->name;
    for (int i = 0; i < m->plan->sys->bond_count; i++) {
        const crd_bond_spec* b = &m->plan->sys->bonds[i];
        if ((b->action_unit == k->from.member && strcmp(b->action, name) == 0) ||
            (b->flow_unit == k->from.member && strcmp(b->flow, name) == 0)) {
            return true;
        }
    }
    return false;
}

// The first pair of connections, there and back between two units, whose product is a power and
// that no bond watches. Forces, torques, voltages and pressures are what has a kilogram in it.
static crd_status find_pair(crd_master* m, crdi_judge* j)
{
    enum { MOST = 1000 }; // all are compared with all
    const int n = j->count < MOST ? j->count : MOST;
    crd_dimension* of = crdi_new_array(m->ctx, (size_t)n, sizeof *of);
    bool* known = crdi_new_array(m->ctx, (size_t)n, sizeof *known);
    j->action = j->feedback = -1;
    const bool room = of && known;
    for (int i = 0; room && i < n; i++) {
        known[i] = get_dimension(m, j->links[i], &of[i]) && !is_bonded(m, j->links[i]);
    }
    for (int a = 0; room && a < n && j->action < 0; a++) {
        for (int b = 0; known[a] && of[a].kg == 1 && b < n && j->action < 0; b++) {
            const crdi_connection *f = j->links[a], *v = j->links[b];
            if (known[b] && of[b].kg == 0 && f->from.member == v->to.member &&
                f->to.member == v->from.member && f->from.member != f->to.member &&
                crdi_bond_is_power(&of[a], &of[b])) {
                j->action = a;
                j->feedback = b;
            }
        }
    }
    crd_free(m->ctx, of);
    crd_free(m->ctx, known);
    return room ? CRD_OK : CRD_E_MEMORY;
}

// At the end of its step a unit has an input as it was at the beginning, or in the middle. In
// Gauss- Seidel order what is held is the newest value.
static bool comes_late(const crdi_plan* plan, const crdi_connection* k)
{
    const crdi_prediction* f = k->prediction;
    const bool held = !f || f->predict == CRD_PREDICTION_HOLD;
    const bool constant = held || !f->slope[0] || f->predict >= CRD_PREDICTION_AB2;
    return constant && !(held && plan->phase_count > 1);
}

// Of outputs of which a unit does not say what they depend on it is assumed that they follow.
static void find_stale(const crd_master* m, crdi_judge* j)
{
    enum { MOST = 1000 }; // all are compared with all
    for (int i = 0; i < j->count && j->count <= MOST && !m->plan->iterated; i++) {
        const crdi_end* from = &j->links[i]->from;
        const bool fresh = crdi_refresh_has(m->plan, from->member) &&
                           crd_defect_scheme_refreshes(m->plan->sys->run.feedthrough);
        for (int k = 0; k < j->count && !fresh && !j->stale[i]; k++) {
            const crdi_end* to = &j->links[k]->to;
            j->stale[i] = to->member == from->member && comes_late(m->plan, j->links[k]) &&
                          crd_unit_depends(m->plan->members[to->member].unit, from->variable,
                                           to->variable, false);
        }
    }
}

static const crdi_connection* judged(const crd_master* m, const crdi_judge* j, int i)
{
    return i < j->count ? j->links[i] : m->connections.coupled[i - j->count].of;
}

static void sort_by_key(const double* keys, int* order, int count);

// Cycles are numbered from the sinks on, by Tarjan.
static bool sort_along(crd_master* m, crdi_judge* j)
{
    const int all = j->count + m->connections.coupled_count, members = m->plan->member_count;
    double* keys = crdi_arena_new(&m->arena, (size_t)all, sizeof *keys);
    j->along = crdi_arena_new(&m->arena, (size_t)all, sizeof *j->along);
    j->missed = crdi_arena_new(&m->arena, (size_t)all, sizeof *j->missed);
    j->estimated = crdi_arena_new(&m->arena, (size_t)members, sizeof *j->estimated);
    j->arrives = crdi_arena_new(&m->arena, (size_t)members, sizeof *j->arrives);
    j->adds = crdi_arena_new(&m->arena, (size_t)members, sizeof *j->adds);
    if (!keys || !j->along || !j->missed || !j->estimated || !j->arrives || !j->adds) {
        return false;
    }
    for (int i = 0; i < all; i++) {
        const crdi_connection* k = judged(m, j, i);
        const int from = j->loop[k->from.member];
        keys[i] = 2.0 * from + (from == j->loop[k->to.member]);
    }
    sort_by_key(keys, j->along, all);
    return true;
}

static bool has_crashed(const crd_master* m)
{
    for (int i = 0; i < m->plan->member_count; i++) {
        if (m->plan->members[i].run->crashed) { return true; }
    }
    return false;
}

// Once, from the arena. After a crash it is too late: nothing may take memory then.
static bool judge_make_room(crd_master* m)
{
    if (m->verdict.judge) { return true; }
    if (has_crashed(m)) { return false; }
    const bool watch = m->plan->sys->run.monitor & CRD_MONITOR_DEFECT;
    const int flows = watch ? m->connections.prediction_count : 0,
              watches = watch ? m->connections.observed_count : 0,
              ports = watch ? 2 * m->connections.pair_count : 0;
    crdi_judge* j = crdi_arena_new(&m->arena, 1, sizeof *j);
    if (!j) { return false; }
    const size_t n = (size_t)flows + (size_t)watches + (size_t)ports;
    j->links = crdi_arena_new(&m->arena, n, sizeof *j->links);
    j->order = crdi_arena_new(&m->arena, n, sizeof *j->order);
    j->keys = crdi_arena_new(&m->arena, n, sizeof *j->keys);
    j->stale = crdi_arena_new(&m->arena, n, sizeof *j->stale);
    m->verdict.flows = crdi_arena_new(&m->arena, n, sizeof *m->verdict.flows);
    m->verdict.bonds =
        crdi_arena_new(&m->arena, (size_t)m->energy.bond_count, sizeof *m->verdict.bonds);
    if (!j->links || !j->order || !j->keys || !j->stale || !m->verdict.flows || !m->verdict.bonds) {
        return false;
    }
    for (int i = 0; i < flows; i++) {
        j->links[i] = m->connections.predictions[i].of;
    }
    for (int i = 0; i < watches; i++) {
        j->links[flows + i] = m->connections.observed[i].of;
        if (name_ends(m, m->connections.observed[i].of) < 0) { return false; }
    }
    j->count = flows + watches;
    for (int i = 0; i < ports; i++) {
        crdi_connection* k = m->connections.pairs[i / 2].sides[i % 2].gets;
        if (!k->observed) { continue; }
        if (name_ends(m, k) < 0) { return false; }
        j->links[j->count++] = k;
    }
    find_stale(m, j);
    if (find_loops(m, j) < 0 || find_pair(m, j) < 0 || !sort_along(m, j)) { return false; }
    m->verdict.judge = j;
    return true;
}

// ---- connections -------------------------------------------------------------------------------

static double run_time(const crd_master* m)
{
    return crd_master_time(m) - m->plan->times.start;
}

// Of the integral of a square.
static double root_mean(const crd_master* m, double integral)
{
    const double time = run_time(m);
    return time > 0 ? sqrt(integral / time) : 0;
}

static double larger(double a, double b)
{
    return isnan(b) ? a : fmax(a, b); // b may not be measured
}

// What moves the input between two samples: the longer of the two steps.
static double step_between(const crd_master* m, const crdi_connection* k)
{
    return fmax(m->plan->members[k->from.member].step, m->plan->members[k->to.member].step);
}

static void report_predictor(const crdi_prediction* f, crd_flow_report* r)
{
    int64_t all = 0;
    int most = 0;
    for (int i = 0; i < CRD_PREDICT_COUNT; i++) {
        all += f->uses[i];
        if (f->uses[i] > f->uses[most]) { most = i; }
    }
    r->used = crd_predictor_name((crd_predictor)most);
    r->share = all ? (double)f->uses[most] / (double)all : 1;
    r->order = crd_predictor_order((crd_predictor)most);
    if (f->predict == CRD_PREDICTION_LINEAR || f->predict == CRD_PREDICTION_QUADRATIC) {
        r->used = crd_prediction_name(f->predict); // not quite Taylor: by differences only
    }
}

static void report_prediction(const crd_master* m, const crdi_prediction* f, crd_flow_report* r)
{
    const crd_defect_sum* c = &f->connection;
    report_predictor(f, r);
    r->predict = f->of->spec->predict;
    r->step = c->steps > 0 && c->time > 0 ? c->time / (double)c->steps : step_between(m, f->of);
    r->scale = crdi_prediction_scale(f);
    r->signal_rms = root_mean(m, f->square);
    const bool any = c->steps > 0 || c->broken > 0;
    r->rms = any ? crd_defect_rms(c) : 0;
    r->max = c->broken ? (double)NAN : c->max;
    r->max_time = c->max_time;
    r->output_rms = f->output && f->output->steps > 0 ? crd_defect_rms(f->output) : (double)NAN;
    r->relative = larger(r->rms, r->output_rms) / r->scale;
    if (isnan(r->rms)) { r->relative = (double)NAN; }
    r->jumps = f->network ? f->jumps : f->select.jumps;
    r->switches = f->network ? f->network->level.switches : f->select.switches;
}

static double observed_rms(const crd_master* m, const crdi_observed* w)
{
    return root_mean(m, w->integral);
}

void crdi_judge_coupled(const crd_master* m, const crdi_coupled* c, crd_coupling_report* r)
{
    const crdi_connection* k = c->of;
    double max = (double)NAN;
    if (!k->observed) { return; }
    r->scale = crdi_observed_scale(k->observed);
    r->signal_rms = root_mean(m, k->observed->square);
    r->relative = observed_rms(m, k->observed) / r->scale;
    crdi_estimate_of(m, k->from.member, k->from.slot, &r->error_rms, &max);
    r->error_rms *= fabs(k->gain);
}

static void report_observed(const crd_master* m, const crdi_observed* w, crd_flow_report* r)
{
    r->predict = CRD_PREDICTION_HOLD;
    r->used = w->of->paired ? "wave pair" : crd_predictor_name(CRD_PREDICT_HOLD);
    r->share = 1;
    r->order = crd_predictor_order(CRD_PREDICT_HOLD);
    r->step = step_between(m, w->of);
    r->scale = crdi_observed_scale(w);
    r->signal_rms = root_mean(m, w->square);
    r->rms = observed_rms(m, w);
    r->max = isnan(r->rms) ? (double)NAN : w->max;
    r->max_time = w->max_time;
    r->output_rms = (double)NAN;
    r->relative = r->rms / r->scale;
}

static void report_error(const crd_master* m, const crdi_connection* k, crd_flow_report* r)
{
    const double* from = k->prediction ? k->prediction->from : k->observed->from;
    double rms = (double)NAN, max = (double)NAN;
    if (from) { crdi_estimate_of(m, k->from.member, k->from.slot, &rms, &max); }
    r->error_rms = fabs(k->gain) * rms;
    r->error_max = fabs(k->gain) * max;
    r->error_bound = (double)NAN;
    r->solver_rms = fabs(k->gain) * crdi_solvers_missed(m, &k->from);
    if (from) {
        r->error_bound = fabs(k->gain) * crdi_estimate_bound(m, k->from.member, k->from.slot);
    }
}

static void report_defect(const crd_master* m, const crdi_connection* k, crd_flow_report* r)
{
    const char* unit = crdi_variable_at(m->plan, &k->to)->unit;
    *r = (crd_flow_report){.from = k->from_name,
                           .to = k->to_name,
                           .unit = unit ? unit : "",
                           .hold_only = is_hold_only(k)};
    if (k->prediction) {
        report_prediction(m, k->prediction, r);
    } else {
        report_observed(m, k->observed, r);
    }
}

static double key_of(const crd_master* m, const crdi_connection* k)
{
    crd_flow_report r;
    report_defect(m, k, &r);
    return isnan(r.relative) ? (double)INFINITY : r.relative; // what broke is the worst
}

static bool comes_before(const double* keys, int a, int b)
{
    return keys[a] > keys[b] || (keys[a] == keys[b] && a < b);
}

static void sift(const double* keys, int* order, int at, int count)
{
    const int moved = order[at];
    for (int child = 2 * at + 1; child < count; child = 2 * at + 1) {
        child += child + 1 < count && comes_before(keys, order[child], order[child + 1]);
        if (!comes_before(keys, moved, order[child])) { break; }
        order[at] = order[child];
        at = child;
    }
    order[at] = moved;
}

// Heap sort: qsort may take memory.
static void sort_by_key(const double* keys, int* order, int count)
{
    for (int i = 0; i < count; i++) {
        order[i] = i;
    }
    for (int i = count / 2 - 1; i >= 0; i--) {
        sift(keys, order, i, count);
    }
    for (int last = count - 1; last > 0; last--) {
        const int x = order[0];
        order[0] = order[last];
        order[last] = x;
        sift(keys, order, 0, last);
    }
}

// ---- bonds, steps ------------------------------------------------------------------------------

static double bond_key(const crd_bond_report* r)
{
    return isnan(r->relative) ? (double)INFINITY : fabs(r->relative);
}

static void report_bonds(crd_master* m, crd_master_report* r)
{
    const bool watched = m->plan->sys->run.monitor & CRD_MONITOR_ENERGY;
    r->bonds = m->verdict.bonds;
    r->bond_count = watched ? m->energy.bond_count : 0;
    double most = 0; // that passed any of them: a billionth of it is rounding
    for (int i = 0; i < r->bond_count; i++) {
        most = fmax(most, m->energy.bonds[i].state.scale);
    }
    for (int i = 0; i < r->bond_count; i++) { // few: by insertion
        crd_bond_report b;
        crdi_bond_report(&m->energy.bonds[i], &b);
        if (fabs(b.energy + b.work) <= 1e-9 * most) { b.relative = 0; }
        int k = i;
        for (; k > 0 && bond_key(&m->verdict.bonds[k - 1]) < bond_key(&b); k--) {
            m->verdict.bonds[k] = m->verdict.bonds[k - 1];
        }
        m->verdict.bonds[k] = b;
    }
    r->worst_energy = r->bond_count ? fabs(m->verdict.bonds[0].relative) : (double)NAN;
}

static void report_steps(const crd_master* m, crd_master_report* r)
{
    const crd_iteration_report* i = crdi_iteration_get_report(m);
    if (i) { r->iteration = *i; }
    const crd_control_report c = crdi_control_get_report(m);
    r->control.at_floor = c.at_floor;
    r->control.at_ceiling = c.at_ceiling;
}

// Over connections that are predicted or held, and those with an element. What broke is the worst.
static void find_worst(crd_master_report* r)
{
    r->worst_defect = r->flow_count ? r->flows[0].relative : (double)NAN;
    r->worst_error = (double)NAN;
    for (int i = 0; i < r->flow_count; i++) {
        r->worst_error = larger(r->worst_error, r->flows[i].error_rms / r->flows[i].scale);
    }
    for (int i = 0; i < r->coupling_count; i++) {
        const crd_coupling_report* c = &r->couplings[i];
        if (!(c->scale > 0)) { continue; } // not known
        r->worst_error = larger(r->worst_error, c->error_rms / c->scale);
        if (!(c->relative <= r->worst_defect) && !(r->flow_count && isnan(r->worst_defect))) {
            r->worst_defect = c->relative;
        }
    }
}

static const double mostly_error = 0.5;
// The largest magnitude of the defect of a held sine is 2.4 times its RMS; twice that, reached in
// the last twentieth of the run, means that it grows.
static const double growth = 5, near_end = 0.95;

// What is small against the size is small. Below a billionth of what is usual it is rounding.
static double size_of(const crd_master* m, const crdi_connection* k, double rms)
{
    const double usual = fabs(k->gain) * crdi_variable_at(m->plan, &k->from)->nominal;
    return k->spec->scale > 0 ? k->spec->scale : fmax(rms, 1e-9 * usual);
}

static void weigh(crd_master_report* r, double part, const char* of)
{
    if (!(part > r->worst_part) && !isnan(r->worst_part)) { return; }
    if (isnan(part)) { return; }
    r->worst_part = part;
    r->worst_part_of = of;
}

// Estimated errors by the RMS of their signals: who has died away, or began with a peak, may be
// wrong by a third and by little of the largest value.
static void weigh_errors(const crd_master* m, crd_master_report* r)
{
    const crdi_judge* j = m->verdict.judge;
    for (int i = 0; i < r->flow_count; i++) {
        const crd_flow_report* f = &r->flows[i];
        weigh(r, f->error_rms / size_of(m, j->links[j->order[i]], f->signal_rms), f->from);
    }
    for (int i = 0; i < r->coupling_count; i++) {
        const crd_coupling_report* c = &r->couplings[i];
        if (!(c->scale > 0)) { continue; }
        const crdi_connection* k = m->connections.coupled[i].of;
        weigh(r, c->error_rms / size_of(m, k, c->signal_rms), c->from);
    }
}

// What a defect can do to a loop that nobody knows: at worst it always pushes with the motion. The
// error is then half the angle that the signal has turned by, w T / 2, or 1 / (2 zeta) where it
// dies away; both are pi / 4 of the way that it has made, by its largest magnitude. Who swings
// about something else than 0 does so by half of its range.
static double turned(double way, double size, double low, double high)
{
    const double range = high - low, by = way > 3 * range && range > 0 ? 0.5 * range : size;
    return by > 0 ? fmax(1, 0.785 * way / by) : (double)NAN;
}

// Beside the defect of the input there is that of an output which follows an input at once: it is
// that of the input at the beginning of the step, or in its middle.
static double with_age(const crdi_judge* j, int link, double rms, int64_t steps)
{
    const crdi_connection* k = j->links[link];
    const double moved = k->prediction ? k->prediction->moved : k->observed->moved,
                 late = k->prediction ? 0.5 : 1;
    return rms + (j->stale[link] && steps > 0 ? late * sqrt(moved / (double)steps) : 0);
}

static crdi_missed missed_by(const crd_master* m, const crdi_connection* k, const char* from,
                             double rms, double error, double signal)
{
    const double size = size_of(m, k, signal);
    const crdi_prediction* f = k->prediction;
    const crdi_observed* w = k->observed;
    return (crdi_missed){.from = from,
                         .part = rms / size,
                         .error = error / size,
                         .turned = f ? turned(f->way, f->size, f->low, f->high)
                                     : turned(w->way, w->size, w->low, w->high)};
}

static void find_missed(const crd_master* m, const crd_master_report* r)
{
    crdi_judge* j = m->verdict.judge;
    memset(j->estimated, 0, (size_t)m->plan->member_count * sizeof *j->estimated);
    for (int i = 0; i < r->flow_count; i++) {
        const crd_flow_report* f = &r->flows[i];
        const int link = j->order[i];
        const double rms = with_age(j, link, larger(f->rms, f->output_rms), r->steps);
        j->missed[link] = missed_by(m, j->links[link], f->from, rms, f->error_rms, f->signal_rms);
    }
    for (int i = 0; i < m->connections.coupled_count; i++) {
        const crdi_connection* k = m->connections.coupled[i].of;
        const crd_coupling_report* c = i < r->coupling_count ? &r->couplings[i] : NULL;
        const bool known = c && c->scale > 0 && k->observed;
        j->missed[j->count + i] =
            known ? missed_by(m, k, c->from, c->relative * c->scale, c->error_rms, c->signal_rms)
                  : (crdi_missed){.part = NAN, .error = NAN};
    }
    for (int i = 0; i < j->count + m->connections.coupled_count; i++) {
        if (!isnan(j->missed[i].error)) { j->estimated[judged(m, j, i)->from.member] = true; }
    }
}

// Where nobody knows errors: those of a loop add up in it, and what arrives, by whatever is late on
// the way, is there in what goes on.
static void weigh_defects(const crd_master* m, crd_master_report* r)
{
    crdi_judge* j = m->verdict.judge;
    find_missed(m, r);
    memset(j->arrives, 0, (size_t)m->plan->member_count * sizeof *j->arrives);
    memset(j->adds, 0, (size_t)m->plan->member_count * sizeof *j->adds);
    for (int i = 0; i < j->count + m->connections.coupled_count; i++) {
        const crdi_missed* d = &j->missed[j->along[i]];
        const crdi_connection* k = judged(m, j, j->along[i]);
        const int from = j->loop[k->from.member], to = j->loop[k->to.member];
        const bool known = !isnan(d->error);
        double sum = d->part;
        if (from == to && !known) {
            sum *= d->turned;
            j->adds[from] = larger(j->adds[from], sum);
            weigh(r, j->arrives[from] + sum, d->from);
        } else if (from != to && !j->estimated[k->to.member]) {
            sum += known ? d->error : j->arrives[from] + j->adds[from];
            j->arrives[to] = larger(j->arrives[to], sum);
            weigh(r, sum, d->from);
        }
    }
}

bool crdi_judge_sees_growth(const crd_master* m, const crdi_connection* k, const crd_flow_report* f)
{
    const crdi_judge* j = m->verdict.judge;
    const double end = crd_master_time(m);
    return j->loop[k->from.member] == j->loop[k->to.member] && f->max > growth * f->rms &&
           end - f->max_time <= (1 - near_end) * run_time(m);
}

static int find_grown(const crd_master* m, const crd_master_report* r)
{
    const crdi_judge* j = m->verdict.judge;
    for (int i = 0; i < r->flow_count; i++) {
        const crd_flow_report* f = &r->flows[i];
        const bool seen = isnan(f->error_rms) && f->max > CRDI_DEFECT_GOAL * f->scale;
        if (seen && crdi_judge_sees_growth(m, j->links[j->order[i]], f)) { return i; }
    }
    return -1;
}

static void weigh_all(const crd_master* m, crd_master_report* r)
{
    crd_master_report defects = *r;
    weigh_errors(m, r);
    weigh_defects(m, &defects);
    const double part = r->worst_part, most = defects.worst_part;
    r->trust = part >= mostly_error     ? CRD_TRUST_SPOILT
               : part >= CRDI_MUCH_PART ? CRD_TRUST_DOUBTFUL
                                        : CRD_TRUST_GOOD;
    crdi_judge* j = m->verdict.judge;
    j->grown = find_grown(m, r);
    const bool at_worst = r->trust == CRD_TRUST_GOOD && (most >= CRDI_MUCH_PART || !(part > 0));
    if (r->trust == CRD_TRUST_GOOD && j->grown >= 0) { r->trust = CRD_TRUST_DOUBTFUL; }
    j->at_worst = at_worst;
    if (!at_worst || isnan(most)) { return; }
    r->worst_part = most;
    r->worst_part_of = defects.worst_part_of;
    if (most >= CRDI_MUCH_PART) { r->trust = CRD_TRUST_DOUBTFUL; }
}

const char* crd_trust_name(crd_trust t)
{
    return t == CRD_TRUST_SPOILT ? "spoilt" : t == CRD_TRUST_DOUBTFUL ? "doubtful" : "good";
}

void crdi_verdict_report(crd_master* m)
{
    crd_master_report* r = &m->verdict.report;
    r->worst_defect = r->worst_energy = r->worst_error = r->worst_part = (double)NAN;
    r->error_note = r->worst_part_of = "";
    if (!judge_make_room(m)) { return; }
    crdi_judge* j = m->verdict.judge;
    for (int i = 0; i < j->count; i++) {
        j->keys[i] = key_of(m, j->links[i]);
    }
    sort_by_key(j->keys, j->order, j->count);
    for (int i = 0; i < j->count; i++) {
        report_defect(m, j->links[j->order[i]], &m->verdict.flows[i]);
        report_error(m, j->links[j->order[i]], &m->verdict.flows[i]);
    }
    r->flows = m->verdict.flows;
    r->flow_count = j->count;
    find_worst(r);
    weigh_all(m, r);
    report_bonds(m, r);
    report_steps(m, r);
    const bool any = j->count || r->coupling_count || r->guard.loops > 0;
    if (any && r->steps > 0) { r->error_note = crdi_estimate_note(m); }
}
