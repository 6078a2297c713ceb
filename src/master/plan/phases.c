// What happens when: the order of units, the phases of a tick, and when a value moves.
#include "master/plan/plan.h"

#include <stdlib.h>
#include <string.h>

// ---- the order of units ------------------------------------------------------------------------

// Whether an output of the target depends without delay on the input that this link feeds.
static bool feeds_through(const crdi_plan* plan, const crdi_connection* k)
{
    const crd_unit* u = plan->members[k->to.member].unit;
    for (int v = 0; v < u->info.variable_count; v++) {
        if (u->info.variables[v].causality == CRD_OUTPUT &&
            crd_unit_depends(u, v, k->to.variable, false)) {
            return true;
        }
    }
    return false;
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
// the links that are `chosen`, downwards, so that deeper members come later. Links never go to a
// component with a higher number: taken from the highest on, each is looked at once.
static crd_status count_depth(const crdi_plan* plan, const bool* chosen, const int* component,
                              rank* ranks)
{
    int* first = crdi_new_array(plan->ctx, (size_t)plan->member_count + 2, sizeof *first);
    int* by = crdi_new_array(plan->ctx, (size_t)plan->connection_count + 1, sizeof *by);
    const bool there = first && by;
    for (int i = 0; there && i < plan->connection_count; i++) {
        first[component[plan->connections[i].from.member] + 1]++;
    }
    for (int c = 0; there && c < plan->member_count; c++) {
        first[c + 1] += first[c];
    }
    for (int i = 0; there && i < plan->connection_count; i++) {
        by[first[component[plan->connections[i].from.member]]++] = i;
    }
    for (int i = plan->connection_count - 1; there && i >= 0; i--) {
        const crdi_connection* k = &plan->connections[by[i]];
        const int inner = ranks[k->from.member].inner - 1;
        if (!chosen[by[i]] || component[k->from.member] == component[k->to.member]) { continue; }
        if (ranks[k->to.member].inner > inner) { ranks[k->to.member].inner = inner; }
    }
    crd_free(plan->ctx, first);
    crd_free(plan->ctx, by);
    return there ? CRD_OK : CRD_E_MEMORY;
}

static bool is_chosen(const crdi_plan* plan, const crdi_connection* k, const void* chosen)
{
    return ((const bool*)chosen)[k - plan->connections];
}

// The order of a Gauss-Seidel run from the dependency graph.
static crd_status order_members(crdi_plan* plan, int* order)
{
    crd_status st = CRD_E_MEMORY;
    const size_t n = (size_t)plan->member_count;
    rank* ranks = crdi_new_array(plan->ctx, n, sizeof *ranks);
    int* component = crdi_new_array(plan->ctx, n + 1, sizeof *component);
    bool* chosen = crdi_new_array(plan->ctx, (size_t)plan->connection_count + 1, sizeof *chosen);
    if (!ranks || !component || !chosen) { goto fail; }

    for (int i = 0; i < plan->connection_count; i++) {
        chosen[i] =
            !plan->connections[i].spec->coupling; // that gives what is known when the step begins
    }
    if (crdi_plan_components(plan, is_chosen, chosen, component) < 0) { goto fail; }
    for (int i = 0; i < plan->member_count; i++) {
        ranks[i] = (rank){.member = i, .outer = component[i]};
    }
    for (int i = 0; i < plan->connection_count; i++) {
        const crdi_connection* k = &plan->connections[i];
        chosen[i] = chosen[i] && component[k->from.member] == component[k->to.member] &&
                    feeds_through(plan, k);
    }
    if (crdi_plan_components(plan, is_chosen, chosen, component) < 0) { goto fail; }
    if (count_depth(plan, chosen, component, ranks) < 0) { goto fail; }
    qsort(ranks, n, sizeof *ranks, by_rank);
    for (size_t i = 0; i < n; i++) {
        order[i] = ranks[i].member;
    }
    st = CRD_OK;
fail:
    crd_free(plan->ctx, ranks);
    crd_free(plan->ctx, component);
    crd_free(plan->ctx, chosen);
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
    crdi_plan* plan;
    path* paths; // per member
    path now;
    crdi_phase* phases; // (members): there are as many at most
    int phase_count, batch;
} planner;

static crd_status plan_group(planner* p, const crd_group* g)
{
    if (g->kind == CRD_GROUP_UNIT) {
        path* own = &p->paths[g->unit];
        *own = p->now;
        own->phase = p->phase_count - 1;
        p->plan->batch[p->batch++] = g->unit;
        p->phases[own->phase].batch_count++;
        return CRD_OK;
    }
    if (p->now.depth == DEPTH) {
        return crdi_fail(p->plan->ctx, CRD_E_RANGE, "scheme: groups nest deeper than %d", DEPTH);
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
            p->phases[p->phase_count++] = (crdi_phase){.batch_first = p->batch};
        }
        open = shares;
        p->now.branch[level] = i;
        p->now.enter[level] = child->kind == CRD_GROUP_UNIT ? p->phase_count - 1 : p->phase_count;
        const crd_status st = plan_group(p, child);
        if (st < 0) { return st; }
    }
    p->now.depth--;
    return CRD_OK;
}

// When a link moves: at the beginning of the Jacobi group that holds both ends, or when the branch
// of the target has its turn in the Gauss-Seidel group that holds both.
static void place_connection(const path* from, const path* to, crdi_connection* k)
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

static crd_status default_group(crdi_plan* plan, crd_group* out)
{
    const size_t n = (size_t)plan->member_count;
    crd_group* leaves = crdi_arena_new(plan->arena, n, sizeof *leaves);
    int* order = crdi_arena_new(plan->arena, n, sizeof *order);
    if (!leaves || !order) { return CRD_E_MEMORY; }
    const bool jacobi = plan->sys->run.scheme == CRD_SCHEME_JACOBI;
    for (int i = 0; i < plan->member_count; i++) {
        order[i] = i;
    }
    if (!jacobi) {
        const crd_status st = order_members(plan, order);
        if (st < 0) { return st; }
    }
    for (size_t i = 0; i < n; i++) {
        leaves[i] = (crd_group){.kind = CRD_GROUP_UNIT, .unit = order[i]};
    }
    *out = (crd_group){.kind = jacobi ? CRD_GROUP_JACOBI : CRD_GROUP_GAUSS_SEIDEL,
                       .members = leaves,
                       .member_count = plan->member_count};
    return CRD_OK;
}

// Units of a batch do not see each other, so their order is free: the pinned ones come first.
static crd_status pinned_first(crdi_plan* plan)
{
    int* others = crdi_new_array(plan->ctx, (size_t)plan->member_count, sizeof *others);
    if (!others) { return CRD_E_MEMORY; }
    for (int i = 0; i < plan->phase_count; i++) {
        crdi_phase* p = &plan->phases[i];
        int* batch = plan->batch + p->batch_first;
        int count = 0;
        for (int j = 0; j < p->batch_count; j++) {
            if (plan->members[batch[j]].pinned) {
                batch[p->pinned_count++] = batch[j];
            } else {
                others[count++] = batch[j];
            }
        }
        memcpy(batch + p->pinned_count, others, (size_t)count * sizeof *batch);
    }
    crd_free(plan->ctx, others);
    return CRD_OK;
}

static double budget_of(const crdi_plan* plan, int member)
{
    return plan->members[member].unit->spec->budget;
}

// Those with a budget leave the batch and stand behind it, the shortest budget first.
static void async_last(crdi_plan* plan)
{
    for (int i = 0; i < plan->phase_count; i++) {
        crdi_phase* p = &plan->phases[i];
        int* batch = plan->batch + p->batch_first;
        const int all = p->batch_count;
        for (int j = all - 1; j >= 0; j--) {
            const int member = batch[j];
            if (!plan->members[member].async) { continue; }
            p->batch_count--;
            p->async_count++;
            int k = j;
            for (; k + 1 < all; k++) {
                const bool behind = k + 1 > p->batch_count &&
                                    budget_of(plan, batch[k + 1]) > budget_of(plan, member);
                if (behind) { break; }
                batch[k] = batch[k + 1];
            }
            batch[k] = member;
        }
    }
}

static int by_feed(const void* a, const void* b)
{
    const crdi_connection *x = a, *y = b;
    if (x->phase != y->phase) { return x->phase < y->phase ? -1 : 1; }
    if (x->early != y->early) { return x->early ? -1 : 1; }
    if (x->to.member != y->to.member) { return x->to.member < y->to.member ? -1 : 1; }
    if (x->to.variable != y->to.variable) { return x->to.variable < y->to.variable ? -1 : 1; }
    return x->to.element < y->to.element ? -1 : x->to.element > y->to.element;
}

crd_status crdi_plan_phases(crdi_plan* plan)
{
    crd_status st = CRD_E_MEMORY;
    const size_t n = (size_t)plan->member_count;
    planner p = {.plan = plan};
    crd_group root = plan->sys->run.group;
    plan->batch = crdi_arena_new(plan->arena, n, sizeof *plan->batch);
    p.phases = crdi_new_array(plan->ctx, n, sizeof *p.phases);
    p.paths = crdi_new_array(plan->ctx, n, sizeof *p.paths);
    if (!plan->batch || !p.phases || !p.paths) { goto fail; }
    if (plan->sys->run.scheme != CRD_SCHEME_GROUPS) { CRD_TRY(default_group(plan, &root)); }
    CRD_TRY(plan_group(&p, &root));
    plan->phase_count = p.phase_count;
    plan->phases = crdi_arena_new(plan->arena, (size_t)p.phase_count, sizeof *plan->phases);
    if (!plan->phases) {
        st = CRD_E_MEMORY;
        goto fail;
    }
    memcpy(plan->phases, p.phases, (size_t)p.phase_count * sizeof *plan->phases);
    CRD_TRY(pinned_first(plan));
    async_last(plan);
    for (int i = 0; i < plan->phase_count; i++) {
        const crdi_phase* f = &plan->phases[i];
        for (int k = 0; k < f->batch_count + f->async_count; k++) {
            plan->members[plan->batch[f->batch_first + k]].phase = i;
        }
    }
    for (int i = 0; i < plan->connection_count; i++) {
        crdi_connection* k = &plan->connections[i];
        place_connection(&p.paths[k->from.member], &p.paths[k->to.member], k);
    }
    if (plan->connection_count) {
        qsort(plan->connections, (size_t)plan->connection_count, sizeof *plan->connections,
              by_feed);
    }
    st = crdi_plan_index(plan);
fail:
    crd_free(plan->ctx, p.phases);
    crd_free(plan->ctx, p.paths);
    return st;
}
