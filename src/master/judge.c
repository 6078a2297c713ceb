// The verdict: how far inputs missed their outputs, what bonds put in, how steps and iterations
// went. Numbers come from the flows and watches; this puts them side by side, the worst first.
#include "master/judge.h"

#include <math.h>
#include <string.h>

// ---- room and facts ----------------------------------------------------------------------------

// "unit.variable", and [3] for the third element of an array.
static const char* end_name(crd_master* m, int member, int32_t variable, int element)
{
    const crd_unit* u = m->members[member].unit;
    const crd_variable* v = &u->info.variables[variable];
    if (v->rank == 0) { return crdi_arena_format(&m->arena, "%s.%s", u->name, v->name); }
    return crdi_arena_format(&m->arena, "%s.%s[%d]", u->name, v->name, element + 1);
}

static void describe_flow(const crd_master* m, const crdi_flow* f, crdi_judged* j)
{
    const crd_unit* target = m->members[f->target].unit;
    *j = (crdi_judged){
        .flow = f,
        .spec = f->spec,
        .from_name = f->from_name,
        .to_name = f->to_name,
        .unit = target->info.variables[f->to_variable].unit,
        .source = f->source,
        .target = f->target,
        .from_variable = f->from_variable,
        .scalar = m->members[f->source].unit->info.variables[f->from_variable].rank == 0,
        .hold_only = !f->slope[0],
        .gain = f->gain,
    };
}

static crd_status describe_watch(crd_master* m, int i, crdi_judged* j)
{
    const crdi_link* k = m->watched[i];
    const crd_unit* target = m->members[k->to_member].unit;
    *j = (crdi_judged){
        .watch = &m->watches[i],
        .spec = k->spec,
        .from_name = end_name(m, k->from_member, k->from_variable, k->from_element),
        .to_name = end_name(m, k->to_member, k->to_variable, k->to_element),
        .unit = target->info.variables[k->to_variable].unit,
        .source = k->from_member,
        .target = k->to_member,
        .from_variable = k->from_variable,
        .scalar = m->members[k->from_member].unit->info.variables[k->from_variable].rank == 0,
        .hold_only = true,
        .gain = m->watches[i].gain,
    };
    return j->from_name && j->to_name ? CRD_OK : CRD_E_MEMORY;
}

// Cycles of units, and whether all units of one save their state.
static crd_status find_loops(crd_master* m, crdi_judge* j)
{
    const size_t n = (size_t)m->member_count;
    crd_status st = CRD_E_MEMORY;
    int* first = crdi_new_array(m->ctx, n + 1, sizeof *first);
    int* edge = crdi_new_array(m->ctx, (size_t)j->count, sizeof *edge);
    int* size = crdi_new_array(m->ctx, n, sizeof *size);
    j->loop = crdi_arena_new(&m->arena, n, sizeof *j->loop);
    j->loop_saves = crdi_arena_new(&m->arena, n, sizeof *j->loop_saves);
    if (!first || !edge || !size || !j->loop || !j->loop_saves) { goto fail; }
    for (int i = 0; i < j->count; i++) {
        first[j->links[i].source + 1]++;
    }
    for (size_t i = 0; i < n; i++) {
        first[i + 1] += first[i];
    }
    for (int i = j->count - 1; i >= 0; i--) { // fills from the end, so that `first` comes out right
        edge[--first[j->links[i].source + 1]] = j->links[i].target;
    }
    for (size_t i = 0; i < n; i++) { // each has become the beginning of the one before
        first[i] = first[i + 1];
    }
    first[n] = j->count;
    const int loops = crdi_components(m->ctx, (int)n, first, edge, j->loop);
    if (loops < 0) { goto fail; }
    for (int i = 0; i < loops; i++) {
        j->loop_saves[i] = true;
    }
    for (size_t i = 0; i < n; i++) {
        size[j->loop[i]]++;
        if (!(m->members[i].unit->info.flags & CRD_UNIT_CAN_SAVE)) {
            j->loop_saves[j->loop[i]] = false;
        }
    }
    for (int i = 0; i < loops; i++) {
        j->loop_saves[i] = j->loop_saves[i] && size[i] > 1;
    }
    st = CRD_OK;
fail:
    crd_free(m->ctx, first);
    crd_free(m->ctx, edge);
    crd_free(m->ctx, size);
    return st;
}

static bool get_dimension(const crd_master* m, const crdi_judged* j, crd_dimension* out)
{
    const crd_unit* u = m->members[j->source].unit;
    return j->scalar && crdi_unit_dimension(u, j->from_variable, out);
}

// Whatever the angles: N.m times rad/s is a power.
static bool is_power(const crd_dimension* a, const crd_dimension* b)
{
    return a->kg + b->kg == 1 && a->m + b->m == 2 && a->s + b->s == -3 && a->A + b->A == 0 &&
           a->K + b->K == 0 && a->mol + b->mol == 0 && a->cd + b->cd == 0;
}

static bool is_bonded(const crd_master* m, const crdi_judged* j)
{
    const char* name = m->members[j->source].unit->info.variables[j->from_variable].name;
    for (int i = 0; i < m->sys->bond_count; i++) {
        const crd_bond_spec* b = &m->sys->bonds[i];
        if ((b->action_unit == j->source && strcmp(b->action, name) == 0) ||
            (b->flow_unit == j->source && strcmp(b->flow, name) == 0)) {
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
        known[i] = get_dimension(m, &j->links[i], &of[i]) && !is_bonded(m, &j->links[i]);
    }
    for (int a = 0; room && a < n && j->action < 0; a++) {
        for (int b = 0; known[a] && of[a].kg == 1 && b < n && j->action < 0; b++) {
            const crdi_judged *f = &j->links[a], *v = &j->links[b];
            if (known[b] && of[b].kg == 0 && f->source == v->target && f->target == v->source &&
                f->source != f->target && is_power(&of[a], &of[b])) {
                j->action = a;
                j->feedback = b;
            }
        }
    }
    crd_free(m->ctx, of);
    crd_free(m->ctx, known);
    return room ? CRD_OK : CRD_E_MEMORY;
}

static bool has_crashed(const crd_master* m)
{
    for (int i = 0; i < m->member_count; i++) {
        if (m->members[i].crashed) { return true; }
    }
    return false;
}

// Once, from the arena. After a crash it is too late: nothing may take memory then.
static bool make_room(crd_master* m)
{
    if (m->judge) { return true; }
    if (has_crashed(m)) { return false; }
    const bool watch = m->sys->run.monitor & CRD_MONITOR_DEFECT;
    const int flows = watch ? m->flow_count : 0, watches = watch ? m->watch_count : 0;
    crdi_judge* j = crdi_arena_new(&m->arena, 1, sizeof *j);
    if (!j) { return false; }
    j->count = flows + watches;
    const size_t n = (size_t)j->count;
    j->links = crdi_arena_new(&m->arena, n, sizeof *j->links);
    j->order = crdi_arena_new(&m->arena, n, sizeof *j->order);
    j->keys = crdi_arena_new(&m->arena, n, sizeof *j->keys);
    m->flow_reports = crdi_arena_new(&m->arena, n, sizeof *m->flow_reports);
    m->bond_reports = crdi_arena_new(&m->arena, (size_t)m->power_count, sizeof *m->bond_reports);
    if (!j->links || !j->order || !j->keys || !m->flow_reports || !m->bond_reports) {
        return false;
    }
    for (int i = 0; i < flows; i++) {
        describe_flow(m, &m->flows[i], &j->links[i]);
    }
    for (int i = 0; i < watches; i++) {
        if (describe_watch(m, i, &j->links[flows + i]) < 0) { return false; }
    }
    if (find_loops(m, j) < 0 || find_pair(m, j) < 0) { return false; }
    m->judge = j;
    return true;
}

// ---- connections -------------------------------------------------------------------------------

static double run_time(const crd_master* m)
{
    return crd_master_time(m) - m->start;
}

static double larger(double a, double b)
{
    return isnan(b) ? a : fmax(a, b); // b may not be measured
}

// What moves the input between two samples: the longer of the two steps.
static double step_between(const crd_master* m, int source, int target)
{
    return fmax(m->members[source].step, m->members[target].step);
}

static void report_predictor(const crdi_flow* f, crd_flow_report* r)
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

static void report_flow(const crd_master* m, const crdi_flow* f, crd_flow_report* r)
{
    const crd_defect_sum* c = &f->connection;
    report_predictor(f, r);
    r->predict = f->spec->predict;
    r->step = c->steps > 0 && c->time > 0 ? c->time / (double)c->steps
                                          : step_between(m, f->source, f->target);
    r->scale = crdi_flow_scale(f);
    const bool any = c->steps > 0 || c->broken > 0;
    r->rms = any ? crd_defect_rms(c) : 0;
    r->max = c->broken ? (double)NAN : c->max;
    r->max_time = c->max_time;
    r->output_rms = f->output.steps > 0 ? crd_defect_rms(&f->output) : (double)NAN;
    r->relative = larger(r->rms, r->output_rms) / r->scale;
    if (isnan(r->rms)) { r->relative = (double)NAN; }
    r->jumps = f->select.jumps;
    r->switches = f->select.switches;
}

static void report_watch(const crd_master* m, const crdi_judged* j, crd_flow_report* r)
{
    const crdi_watch* w = j->watch;
    const double time = run_time(m);
    r->predict = CRD_PREDICTION_HOLD;
    r->used = crd_predictor_name(CRD_PREDICT_HOLD);
    r->share = 1;
    r->order = crd_predictor_order(CRD_PREDICT_HOLD);
    r->step = step_between(m, j->source, j->target);
    r->scale = j->spec->scale > 0 ? j->spec->scale : w->size > 0 ? w->size : 1;
    r->rms = time > 0 ? sqrt(w->integral / time) : 0;
    r->max = isnan(r->rms) ? (double)NAN : w->max;
    r->max_time = w->max_time;
    r->output_rms = (double)NAN;
    r->relative = r->rms / r->scale;
}

static void report_error(const crd_master* m, const crdi_judged* j, crd_flow_report* r)
{
    const double* from = j->flow ? j->flow->from : j->watch->from;
    const double* outputs = m->members[j->source].outputs.real;
    double rms = (double)NAN, max = (double)NAN;
    if (from) { crdi_master_estimated(m, j->source, (int)(from - outputs), &rms, &max); }
    r->error_rms = fabs(j->gain) * rms;
    r->error_max = fabs(j->gain) * max;
}

static void report_link(const crd_master* m, const crdi_judged* j, crd_flow_report* r)
{
    *r = (crd_flow_report){.from = j->from_name,
                           .to = j->to_name,
                           .unit = j->unit ? j->unit : "",
                           .hold_only = j->hold_only};
    if (j->flow) {
        report_flow(m, j->flow, r);
    } else {
        report_watch(m, j, r);
    }
    report_error(m, j, r);
}

static double key_of(const crdi_judged* j, const crd_master* m)
{
    crd_flow_report r = {.hold_only = j->hold_only};
    if (j->flow) {
        report_flow(m, j->flow, &r);
    } else {
        report_watch(m, j, &r);
    }
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

static void report_bond(const crdi_power* p, crd_bond_report* r)
{
    const crd_bond_state* s = &p->state;
    const double net = s->error + s->work;
    *r = (crd_bond_report){
        .name = p->name,
        .action = p->action_name,
        .flow = p->flow_name,
        .correct = p->bond.correction,
        .mu = p->bond.mu,
        .energy = s->error,
        .residual = s->energy,
        .work = s->work,
        .transferred = s->scale,
        .relative = net == 0 ? 0 : net / s->scale,
        .power_min = s->power_min,
        .power_max = s->power_max,
    };
}

static double bond_key(const crd_bond_report* r)
{
    return isnan(r->relative) ? (double)INFINITY : fabs(r->relative);
}

static void report_bonds(crd_master* m, crd_master_report* r)
{
    const bool watched = m->sys->run.monitor & CRD_MONITOR_ENERGY;
    r->bonds = m->bond_reports;
    r->bond_count = watched ? m->power_count : 0;
    for (int i = 0; i < r->bond_count; i++) { // few: by insertion
        crd_bond_report b;
        report_bond(&m->powers[i], &b);
        int k = i;
        for (; k > 0 && bond_key(&m->bond_reports[k - 1]) < bond_key(&b); k--) {
            m->bond_reports[k] = m->bond_reports[k - 1];
        }
        m->bond_reports[k] = b;
    }
    r->worst_energy = r->bond_count ? fabs(m->bond_reports[0].relative) : (double)NAN;
}

static void report_steps(const crd_master* m, crd_master_report* r)
{
    const crd_iteration_report* i = crdi_iteration_get_report(m);
    if (i) { r->iteration = *i; }
    r->control.at_floor = m->step.at_floor;
    r->control.at_ceiling = m->step.at_ceiling;
}

void crdi_master_report_quality(crd_master* m)
{
    crd_master_report* r = &m->report;
    r->worst_defect = r->worst_energy = (double)NAN;
    r->error_note = "";
    if (!make_room(m)) { return; }
    crdi_judge* j = m->judge;
    for (int i = 0; i < j->count; i++) {
        j->keys[i] = key_of(&j->links[i], m);
    }
    sort_by_key(j->keys, j->order, j->count);
    for (int i = 0; i < j->count; i++) {
        report_link(m, &j->links[j->order[i]], &m->flow_reports[i]);
    }
    r->flows = m->flow_reports;
    r->flow_count = j->count;
    if (j->count) { r->worst_defect = m->flow_reports[0].relative; }
    report_bonds(m, r);
    report_steps(m, r);
    if (j->count && r->steps > 0) { r->error_note = crdi_master_estimate_note(m); }
    crdi_master_advise(m, r);
    r->advice = j->sentences;
    r->advice_count = j->sentence_count;
}
