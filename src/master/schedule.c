// What happens when: the grid of times, the phases of a tick, and the lists that a phase moves.
#include "master/master.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- the grid ----------------------------------------------------------------------------------

static const double MOST_TICKS = 9e15; // a double counts as far
static const double OPEN_TICKS = 1e13; // of a run without end: 300 years of 1 ms

double crdi_common_tick(double a, double b)
{
    double x = fmax(a, b), y = fmin(a, b);
    const double least = 1e-6 * y;
    while (y > least) {
        const double r = x - y * round(x / y);
        x = y;
        y = fabs(r) < 1e-9 * a ? 0 : fabs(r);
    }
    if (y != 0) { return 0; }
    const double longer = fmax(a, b);
    return longer / round(longer / x); // rid of the rounding errors of the remainders
}

static double first_given(double a, double b)
{
    return isnan(a) ? b : a;
}

// Start, stop and step: from the description, else from the first unit that says something.
static void choose_times(crd_master* m)
{
    const crd_run_spec* run = &m->sys->run;
    double start = run->start, stop = run->stop, step = run->step, tolerance = run->tolerance;
    for (int i = 0; i < m->member_count; i++) {
        const crd_unit_info* info = &m->members[i].unit->info;
        start = first_given(start, info->start);
        stop = first_given(stop, info->stop);
        tolerance = first_given(tolerance, info->tolerance);
        if (isnan(run->step) && info->step > 0 && !(step <= info->step)) { step = info->step; }
    }
    m->start = first_given(start, 0);
    m->stop = first_given(stop, m->start + 1);
    m->tick = first_given(step, (m->stop - m->start) / 1000);
    if (m->opt.open_end) { m->stop = m->start + OPEN_TICKS * m->tick; }
    m->tolerance = tolerance;
}

static crd_status check_times(crd_master* m)
{
    if (!isfinite(m->start)) {
        return crdi_fail(m->ctx, CRD_E_RANGE, "start time is %g, expected a number", m->start);
    }
    if (!isfinite(m->stop) || !(m->stop > m->start)) {
        return crdi_fail(m->ctx, CRD_E_RANGE,
                         "stop time is %g and start time %g: the stop must come after the start",
                         m->stop, m->start);
    }
    if (!(m->tick > 0) || !isfinite(m->tick)) {
        return crdi_fail(m->ctx, CRD_E_RANGE, "step is %g, expected > 0", m->tick);
    }
    return CRD_OK;
}

static crd_status member_ticks(crd_master* m)
{
    for (int i = 0; i < m->member_count; i++) {
        crdi_member* p = &m->members[i];
        const double fixed = p->unit->info.fixed_step;
        if (fixed > 0 && fabs(p->step - fixed) > 1e-9 * fixed) {
            return crdi_fail(
                m->ctx, CRD_E_RANGE,
                "unit '%s' steps by %g s only, but its step is %g s: give it 'step: %g'",
                p->unit->name, fixed, p->step, fixed);
        }
        const double unit = p->unit->info.step_unit, times = unit > 0 ? round(p->step / unit) : 1;
        if (unit > 0 && (times < 1 || fabs(p->step - times * unit) > 1e-6 * unit)) {
            return crdi_fail(m->ctx, CRD_E_RANGE,
                             "unit '%s' steps by multiples of %g s, but its step is %g s: give it "
                             "'step: %g'",
                             p->unit->name, unit, p->step, unit);
        }
        if (p->step > (m->stop - m->start) * (1 + 1e-9) && p->step > m->tick) {
            crdi_log(m->log, CRD_LOG_WARNING,
                     "unit '%s' never steps: its step of %g s is longer than the run of %g s",
                     p->unit->name, p->step, m->stop - m->start);
        }
        p->ticks = (int64_t)llround(fmin(p->step / m->tick, MOST_TICKS));
        if (p->ticks == 1) { p->step = m->tick; } // to the last bit, as on the short way
        m->multirate = m->multirate || p->ticks != 1;
        if (p->ticks > m->longest_ticks) { m->longest_ticks = p->ticks; }
    }
    return CRD_OK;
}

// The tick that all units' steps are multiples of.
static crd_status choose_tick(crd_master* m)
{
    const double run_step = m->tick;
    for (int i = 0; i < m->member_count; i++) {
        crdi_member* p = &m->members[i];
        p->step = p->unit->spec->step > 0 ? p->unit->spec->step : run_step;
        const double tick = i ? crdi_common_tick(m->tick, p->step) : p->step;
        if (!(tick > 0)) {
            return crdi_fail(m->ctx, CRD_E_RANGE,
                             "unit '%s': its step %g s and the others' do not fit on one grid; "
                             "choose steps that are multiples of a common tick",
                             p->unit->name, p->step);
        }
        m->tick = tick;
    }
    const double most = fmax(fabs(m->start), fabs(m->stop));
    if (m->tick < 2 * DBL_EPSILON * most) {
        return crdi_fail(m->ctx, CRD_E_RANGE,
                         "step %g s is too short at times of %g s: a number of 64 bits cannot tell "
                         "them apart",
                         m->tick, most);
    }
    if ((m->stop - m->start) / m->tick > MOST_TICKS) {
        return crdi_fail(m->ctx, CRD_E_RANGE, "%g steps of %g s are too many",
                         (m->stop - m->start) / m->tick, m->tick);
    }
    return CRD_OK;
}

static bool all_vary_step(const crd_master* m)
{
    bool all = !m->multirate;
    for (int i = 0; i < m->member_count; i++) {
        all = all && (m->members[i].unit->info.flags & CRD_UNIT_CAN_VARY_STEP);
    }
    return all;
}

// How many ticks, and what happens to the rest of a tick before the stop time.
static crd_status count_ticks(crd_master* m)
{
    const double ticks = (m->stop - m->start) / m->tick;
    // What is no rest but rounding: of the step, times the number of steps, and of the times.
    const double most = fmax(fabs(m->start), fabs(m->stop));
    const double slack = 1e-9 * fmax(1, fmin(ticks, 1e6)) + 2 * DBL_EPSILON * most / m->tick;
    int64_t n = (int64_t)floor(ticks + slack);
    const double rest = m->stop - (m->start + (double)n * m->tick);
    m->last_tick = m->tick;
    if (rest > slack * m->tick) {
        if (all_vary_step(m)) {
            m->last_tick = rest;
            n++;
        } else {
            m->stop = m->start + (double)n * m->tick;
            crdi_log(m->log, CRD_LOG_WARNING,
                     "the stop time is not on the grid of steps and not all units can take a "
                     "shorter step: the run ends at %.10g s",
                     m->stop);
        }
    }
    if (n < 1) {
        return crdi_fail(m->ctx, CRD_E_RANGE, "step %g s is longer than the run", m->tick);
    }
    m->tick_count = n;
    return CRD_OK;
}

// Rows are taken at ticks: an interval between two of them takes the nearer.
static void choose_rows(crd_master* m)
{
    const double interval = m->sys->results.interval;
    const double every = fmin(interval / m->tick, (double)m->tick_count);
    m->row_every = every > 1 ? (int64_t)llround(every) : 1;
    const double real = (double)m->row_every * m->tick;
    if (interval > 0 && interval / m->tick <= (double)m->tick_count &&
        fabs(real - interval) > 1e-6 * interval) {
        crdi_log(m->log, CRD_LOG_WARNING,
                 "the interval of the results, %g s, is not a multiple of the step %g s: rows come "
                 "every %g s",
                 interval, m->tick, real);
    }
}

// A controlled run has no grid: every unit advances in every tick, however long it is.
static crd_status plan_free(crd_master* m)
{
    for (int i = 0; i < m->member_count; i++) {
        m->members[i].ticks = 1;
    }
    m->longest_ticks = m->row_every = 1;
    m->tick_count = INT64_MAX;
    m->last_tick = m->tick;
    return crdi_master_plan_control(m);
}

crd_status crdi_master_plan_grid(crd_master* m)
{
    crd_status st = CRD_OK;
    choose_times(m);
    CRD_TRY(check_times(m));
    if (m->controlled) { return plan_free(m); }
    CRD_TRY(choose_tick(m));
    CRD_TRY(member_ticks(m));
    CRD_TRY(count_ticks(m));
    choose_rows(m);
fail:
    return st;
}

// ---- the order of units ------------------------------------------------------------------------

// Whether an output of the target depends without delay on the input that this link feeds.
static bool feeds_through(const crd_master* m, const crdi_link* k)
{
    const crd_unit* u = m->members[k->to_member].unit;
    for (int v = 0; v < u->info.variable_count; v++) {
        if (u->info.variables[v].causality == CRD_OUTPUT &&
            crd_unit_depends(u, v, k->to_variable, false)) {
            return true;
        }
    }
    return false;
}

// Edges between members along the links that `keep` wants, as first/edge lists.
static crd_status member_graph(crd_master* m, const bool* keep, int** first_out, int** edge_out)
{
    int* first = crdi_new_array(m->ctx, (size_t)m->member_count + 2, sizeof *first);
    int* edge = crdi_new_array(m->ctx, (size_t)m->link_count + 1, sizeof *edge);
    *first_out = first;
    *edge_out = edge;
    if (!first || !edge) { return CRD_E_MEMORY; }
    for (int i = 0; i < m->link_count; i++) {
        if (keep[i]) { first[m->links[i].from_member + 2]++; }
    }
    for (int i = 0; i < m->member_count; i++) {
        first[i + 2] += first[i + 1];
    }
    for (int i = 0; i < m->link_count; i++) {
        if (keep[i]) { edge[first[m->links[i].from_member + 1]++] = m->links[i].to_member; }
    }
    return CRD_OK;
}

typedef struct {
    int member, outer, inner;
} rank;

// Sources first; inside a circle of units those whose outputs need fresh inputs come late; what is
// still open goes by the order of writing.
static int by_rank(const void* a, const void* b)
{
    const rank *x = a, *y = b;
    if (x->outer != y->outer) { return x->outer > y->outer ? -1 : 1; }
    if (x->inner != y->inner) { return x->inner > y->inner ? -1 : 1; }
    return x->member < y->member ? -1 : x->member > y->member;
}

// Numbers of components without a path between them say nothing: count the longest path along
// the links that `keep` wants, downwards, so that deeper members come later.
static void count_depth(const crd_master* m, const bool* keep, const int* component, rank* ranks)
{
    bool changed = true;
    for (int round = 0; changed && round < m->member_count; round++) {
        changed = false;
        for (int i = 0; i < m->link_count; i++) {
            const crdi_link* k = &m->links[i];
            if (!keep[i] || component[k->from_member] == component[k->to_member]) { continue; }
            if (ranks[k->to_member].inner > ranks[k->from_member].inner - 1) {
                ranks[k->to_member].inner = ranks[k->from_member].inner - 1;
                changed = true;
            }
        }
    }
}

// The order of a Gauss-Seidel run from the dependency graph.
static crd_status order_members(crd_master* m, int* order)
{
    crd_status st = CRD_E_MEMORY;
    const size_t n = (size_t)m->member_count;
    int *first = NULL, *edge = NULL, *first2 = NULL, *edge2 = NULL;
    rank* ranks = crdi_new_array(m->ctx, n, sizeof *ranks);
    int* component = crdi_new_array(m->ctx, n + 1, sizeof *component);
    bool* keep = crdi_new_array(m->ctx, (size_t)m->link_count + 1, sizeof *keep);
    if (!ranks || !component || !keep) { goto fail; }

    for (int i = 0; i < m->link_count; i++) {
        keep[i] = !m->links[i].spec->coupling; // that gives what is known when the step begins
    }
    CRD_TRY(member_graph(m, keep, &first, &edge));
    if (crdi_components(m->ctx, m->member_count, first, edge, component) < 0) {
        st = CRD_E_MEMORY;
        goto fail;
    }
    for (int i = 0; i < m->member_count; i++) {
        ranks[i] = (rank){.member = i, .outer = component[i]};
    }
    for (int i = 0; i < m->link_count; i++) {
        const crdi_link* k = &m->links[i];
        keep[i] =
            keep[i] && component[k->from_member] == component[k->to_member] && feeds_through(m, k);
    }
    CRD_TRY(member_graph(m, keep, &first2, &edge2));
    if (crdi_components(m->ctx, m->member_count, first2, edge2, component) < 0) {
        st = CRD_E_MEMORY;
        goto fail;
    }
    count_depth(m, keep, component, ranks);
    qsort(ranks, n, sizeof *ranks, by_rank);
    for (size_t i = 0; i < n; i++) {
        order[i] = ranks[i].member;
    }
    st = CRD_OK;
fail:
    crd_free(m->ctx, first);
    crd_free(m->ctx, edge);
    crd_free(m->ctx, first2);
    crd_free(m->ctx, edge2);
    crd_free(m->ctx, ranks);
    crd_free(m->ctx, component);
    crd_free(m->ctx, keep);
    return st;
}

// ---- phases ------------------------------------------------------------------------------------

// The way from the root of the tree of groups to a unit: which member was taken at each level.
enum { DEPTH = 16 };
typedef struct {
    const crd_group* group[DEPTH];
    int branch[DEPTH];
    int depth;
    int phase;        // in which the unit runs
    int enter[DEPTH]; // first phase of the branch taken at each level
} path;

typedef struct {
    crd_master* m;
    path* paths; // per member
    path now;
    int phases, batch;
} planner;

static crd_status plan_group(planner* p, const crd_group* g)
{
    if (g->kind == CRD_GROUP_UNIT) {
        path* own = &p->paths[g->unit];
        *own = p->now;
        own->phase = p->phases - 1;
        p->m->batch[p->batch++] = g->unit;
        p->m->phases[own->phase].batch_count++;
        return CRD_OK;
    }
    if (p->now.depth == DEPTH) {
        return crdi_fail(p->m->ctx, CRD_E_RANGE, "scheme: groups nest deeper than %d", DEPTH);
    }
    const int level = p->now.depth++;
    p->now.group[level] = g;
    // Units in a row that share their phase: all plain units of a Jacobi group, if they come
    // together; everything else opens a phase of its own.
    bool open = false;
    for (int i = 0; i < g->member_count; i++) {
        const crd_group* child = &g->members[i];
        const bool shares = g->kind == CRD_GROUP_JACOBI && child->kind == CRD_GROUP_UNIT;
        if (child->kind == CRD_GROUP_UNIT && !(shares && open)) {
            p->m->phases[p->phases++] = (crdi_phase){.batch_first = p->batch};
        }
        open = shares;
        p->now.branch[level] = i;
        p->now.enter[level] = child->kind == CRD_GROUP_UNIT ? p->phases - 1 : p->phases;
        const crd_status st = plan_group(p, child);
        if (st < 0) { return st; }
    }
    p->now.depth--;
    return CRD_OK;
}

// When a link moves: at the beginning of the Jacobi group that holds both ends, or when the branch
// of the target has its turn in the Gauss-Seidel group that holds both.
static void place_link(const path* from, const path* to, crdi_link* k)
{
    int level = 0;
    while (level + 1 < from->depth && level + 1 < to->depth &&
           from->branch[level] == to->branch[level]) {
        level++;
    }
    const crd_group* common = from->group[level];
    k->early = common->kind == CRD_GROUP_JACOBI;
    if (!k->early) {
        k->phase = to->enter[level];
        return;
    }
    k->phase = level == 0 ? 0 : to->enter[level - 1]; // first phase of the whole group
}

static crd_status default_group(crd_master* m, crd_group* out)
{
    const size_t n = (size_t)m->member_count;
    crd_group* leaves = crdi_arena_new(&m->arena, n, sizeof *leaves);
    int* order = crdi_arena_new(&m->arena, n, sizeof *order);
    if (!leaves || !order) { return CRD_E_MEMORY; }
    const bool jacobi = m->sys->run.scheme == CRD_SCHEME_JACOBI;
    for (int i = 0; i < m->member_count; i++) {
        order[i] = i;
    }
    if (!jacobi) {
        const crd_status st = order_members(m, order);
        if (st < 0) { return st; }
    }
    for (size_t i = 0; i < n; i++) {
        leaves[i] = (crd_group){.kind = CRD_GROUP_UNIT, .unit = order[i]};
    }
    *out = (crd_group){.kind = jacobi ? CRD_GROUP_JACOBI : CRD_GROUP_GAUSS_SEIDEL,
                       .members = leaves,
                       .member_count = m->member_count};
    return CRD_OK;
}

// Units of a batch do not see each other, so their order is free: the pinned ones come first.
static void pinned_first(crd_master* m)
{
    for (int i = 0; i < m->phase_count; i++) {
        crdi_phase* p = &m->phases[i];
        int* batch = m->batch + p->batch_first;
        for (int j = 0; j < p->batch_count; j++) {
            if (!m->members[batch[j]].pinned) { continue; }
            const int pinned = batch[j];
            memmove(batch + p->pinned_count + 1, batch + p->pinned_count,
                    (size_t)(j - p->pinned_count) * sizeof *batch);
            batch[p->pinned_count++] = pinned;
        }
    }
}

static double budget_of(const crd_master* m, int member)
{
    return m->members[member].unit->spec->budget;
}

// Those with a budget leave the batch and stand behind it, the shortest budget first.
static void async_last(crd_master* m)
{
    for (int i = 0; i < m->phase_count; i++) {
        crdi_phase* p = &m->phases[i];
        int* batch = m->batch + p->batch_first;
        const int all = p->batch_count;
        for (int j = all - 1; j >= 0; j--) {
            const int member = batch[j];
            if (!m->members[member].async) { continue; }
            p->batch_count--;
            p->async_count++;
            int k = j;
            for (; k + 1 < all; k++) {
                const bool behind =
                    k + 1 > p->batch_count && budget_of(m, batch[k + 1]) > budget_of(m, member);
                if (behind) { break; }
                batch[k] = batch[k + 1];
            }
            batch[k] = member;
        }
    }
}

crd_status crdi_master_plan_phases(crd_master* m)
{
    crd_status st = CRD_E_MEMORY;
    const size_t n = (size_t)m->member_count;
    planner p = {.m = m};
    crd_group root = m->sys->run.group;
    m->batch = crdi_arena_new(&m->arena, n, sizeof *m->batch);
    m->phases = crdi_arena_new(&m->arena, n, sizeof *m->phases);
    p.paths = crdi_new_array(m->ctx, n, sizeof *p.paths);
    if (!m->batch || !m->phases || !p.paths) { goto fail; }
    if (m->sys->run.scheme != CRD_SCHEME_GROUPS) { CRD_TRY(default_group(m, &root)); }
    CRD_TRY(plan_group(&p, &root));
    m->phase_count = p.phases;
    pinned_first(m);
    async_last(m);
    for (int i = 0; i < m->link_count; i++) {
        crdi_link* k = &m->links[i];
        place_link(&p.paths[k->from_member], &p.paths[k->to_member], k);
    }
    st = CRD_OK;
fail:
    crd_free(m->ctx, p.paths);
    return st;
}

// ---- lists -------------------------------------------------------------------------------------

static int by_feed(const void* a, const void* b)
{
    const crdi_link *x = a, *y = b;
    if (x->phase != y->phase) { return x->phase < y->phase ? -1 : 1; }
    if (x->early != y->early) { return x->early ? -1 : 1; }
    if (x->to_member != y->to_member) { return x->to_member < y->to_member ? -1 : 1; }
    if (x->to_variable != y->to_variable) { return x->to_variable < y->to_variable ? -1 : 1; }
    return x->to_element < y->to_element ? -1 : x->to_element > y->to_element;
}

static crd_status append_link(crd_master* m, const crdi_link* k, crdi_feed* f)
{
    crdi_member *a = &m->members[k->from_member], *b = &m->members[k->to_member];
    const int from_type = a->unit->info.variables[k->from_variable].type;
    const int to_type = b->unit->info.variables[k->to_variable].type;
    const void* from = crdi_slot(&a->outputs, crd_type_kind(from_type), k->from_slot);
    void* to = crdi_slot(&b->inputs, crd_type_kind(to_type), k->to_slot);
    if (k->spec->coupling) {
        crdi_couple_bind(m, k, from, to,
                         k->slope && b->slope_order ? &b->slopes[0][k->to_slot] : NULL);
    } else if (crd_type_kind(from_type) != CRD_REAL || crd_type_kind(to_type) != CRD_REAL) {
        m->conversions[f->conversion_first + f->conversion_count++] = (crdi_conversion){
            .from = from,
            .to = to,
            .from_type = (uint8_t)from_type,
            .to_type = (uint8_t)to_type,
            .gain = k->gain,
            .offset = k->offset,
            .transform = k->transform,
            .chain = k->chain,
        };
    } else if (crdi_link_flows(m, k)) {
        m->flow_count++;
        return crdi_flow_bind(m, k, from, to, &m->flows[f->flow_first + f->flow_count++]);
    } else if (k->transform) {
        m->scaled[f->scaled_first + f->scaled_count++] =
            (crdi_scaled){from, to, k->gain, k->offset};
    } else {
        m->copies[f->copy_first + f->copy_count++] = (crdi_copy){from, to};
    }
    if (k->real && !crdi_link_flows(m, k) && (m->sys->run.monitor & CRD_MONITOR_DEFECT)) {
        m->watches[m->watch_count] = (crdi_watch){.from = from,
                                                  .to = to,
                                                  .gain = k->transform ? k->gain : 1,
                                                  .offset = k->transform ? k->offset : 0};
        m->watched[m->watch_count++] = k;
    }
    return CRD_OK;
}

static void open_feed(crd_master* m, const crdi_link* k, const crdi_feed* last, crdi_feed* f)
{
    *f = (crdi_feed){.member = k->to_member};
    if (last) {
        f->copy_first = last->copy_first + last->copy_count;
        f->scaled_first = last->scaled_first + last->scaled_count;
        f->flow_first = last->flow_first + last->flow_count;
        f->conversion_first = last->conversion_first + last->conversion_count;
    }
    const int index = (int)(f - m->feeds);
    crdi_phase* phase = &m->phases[k->phase];
    int* first = k->early ? &phase->early_first : &phase->late_first;
    int* count = k->early ? &phase->early_count : &phase->late_count;
    if (*count == 0) { *first = index; }
    (*count)++;
}

// Feeds that stand in a row as one.
static crdi_feed merge_feeds(const crd_master* m, int first, int count)
{
    if (count == 0) { return (crdi_feed){.member = -1}; }
    crdi_feed all = m->feeds[first];
    for (int i = 1; i < count; i++) {
        const crdi_feed* f = &m->feeds[first + i];
        all.copy_count += f->copy_count;
        all.scaled_count += f->scaled_count;
        all.flow_count += f->flow_count;
        all.conversion_count += f->conversion_count;
    }
    return all;
}

crd_status crdi_master_plan_lists(crd_master* m)
{
    const size_t n = (size_t)m->link_count;
    m->copies = crdi_arena_new(&m->arena, n, sizeof *m->copies);
    m->scaled = crdi_arena_new(&m->arena, n, sizeof *m->scaled);
    m->flows = crdi_arena_new(&m->arena, n, sizeof *m->flows);
    m->watches = crdi_arena_new(&m->arena, n, sizeof *m->watches);
    m->watched = crdi_arena_new(&m->arena, n, sizeof *m->watched);
    m->conversions = crdi_arena_new(&m->arena, n, sizeof *m->conversions);
    m->feeds = crdi_arena_new(&m->arena, n, sizeof *m->feeds);
    if (!m->copies || !m->scaled || !m->flows || !m->watches || !m->watched || !m->conversions ||
        !m->feeds) {
        return CRD_E_MEMORY;
    }
    if (n) { qsort(m->links, n, sizeof *m->links, by_feed); }
    crdi_feed* f = NULL;
    for (size_t i = 0; i < n; i++) {
        const crdi_link* k = &m->links[i];
        const crdi_link* before = i ? k - 1 : NULL;
        if (!before || before->phase != k->phase || before->early != k->early ||
            before->to_member != k->to_member) {
            crdi_feed* next = f ? f + 1 : m->feeds;
            open_feed(m, k, f, next);
            f = next;
        }
        const crd_status st = append_link(m, k, f);
        if (st < 0) { return st; }
    }
    for (int i = 0; i < m->phase_count; i++) {
        crdi_phase* p = &m->phases[i];
        p->early = merge_feeds(m, p->early_first, p->early_count);
        p->late = merge_feeds(m, p->late_first, p->late_count);
    }
    return crdi_master_index_flows(m);
}

// How many lanes of a phase, from each on, share their function.
static void count_rows(crd_master* m)
{
    for (int i = 0; i < m->phase_count; i++) {
        const crdi_phase* p = &m->phases[i];
        const int last = p->batch_first + p->batch_count - 1;
        for (int k = last; k >= p->batch_first; k--) {
            const bool same = k < last && m->advance[k] == m->advance[k + 1];
            m->lane_rows[k] = same ? m->lane_rows[k + 1] + 1 : 1;
        }
    }
}

// A member may take the short way if it has no derivatives to set and nobody asks for its stamp.
crd_status crdi_master_plan_lanes(crd_master* m)
{
    const size_t n = (size_t)m->member_count;
    char* room = crdi_arena_new(&m->arena, n + 1, sizeof *m->lanes);
    m->advance = crdi_arena_new(&m->arena, n, sizeof *m->advance);
    m->lane_rows = crdi_arena_new(&m->arena, n, sizeof *m->lane_rows);
    if (!room || !m->advance || !m->lane_rows) { return CRD_E_MEMORY; }
    enum { CACHE_LINE = 64 };
    m->lanes = (crd_lane*)(room + (CACHE_LINE - (uintptr_t)room % CACHE_LINE) % CACHE_LINE);
    for (int i = 0; i < m->member_count; i++) {
        crdi_member* p = &m->members[m->batch[i]];
        const bool brief = !p->slope_order && !p->feeds_flow && !p->async;
        if (brief && CRDI_UNIT_HAS(p->unit, lane, join)) {
            m->advance[i] = p->unit->ops->lane->join(p->unit, m->batch[i], p->in, &p->inputs,
                                                     p->out, &p->outputs, &m->lanes[i]);
        }
    }
    count_rows(m);
    return CRD_OK;
}
