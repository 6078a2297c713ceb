// Which units share a worker process.
//
// A unit that says `isolate: process` has one of its own; units that name the same group share one.
// Those that are isolated because the run says so get as many workers as there are cores beside
// that of the master: units that an earlier run has found to be fast share one as long as their
// steps together are short, others go where there is least to do. An FMU that can be there once in
// a process, and a unit with a budget, which others must not wait for, one that may be restarted
// and one that may use the network are alone.
#include "unit/worker/worker.h"

#include <math.h>
#include <sched.h>
#include <string.h>

#include "shared/fmi_build.h"
#include "shared/system.h"
#include "unit/fmi/fmi_unit.h"

// How long is looked before somebody sleeps: as long as a step takes, if there is a core for each.
static const int64_t SPIN = 50000, SPIN_CROWDED = 5000; // ns

// Of all units that share a worker because they are fast, ns in a step. One that is not known
// counts as much.
static const int64_t SHORT = 20000;

static int core_count(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

static bool is_text(const char* a, const char* b)
{
    return a && strcmp(a, b) == 0;
}

bool crdi_worker_wanted(const crd_unit_store* store, const crd_unit* u)
{
    const crd_unit_spec* spec = u->spec;
    if (spec->source != CRD_UNIT_FMU || is_text(spec->isolate, "none")) { return false; }
    if (spec->isolate && spec->isolate[0]) { return true; }
    const crd_isolation which =
        store ? crdi_unit_store_isolation(store) : crdi_isolation_default(CRD_ISOLATE_NONE);
    if (which != CRD_ISOLATE_FOREIGN) { return which == CRD_ISOLATE_ALL; }
    const crdi_fmi_unit* f = (const crdi_fmi_unit*)u;
    char list[PATH_MAX];
    return !crdi_fmu_is_own(f->fmu, f->exchange, crdi_worker_find_own(list) ? list : NULL);
}

static bool must_be_alone(const crdi_proxy* u)
{
    const crdi_fmi_unit* f = (const crdi_fmi_unit*)u->inner;
    const bool once =
        f->exchange ? f->d->exchange.can_be_instantiated_once : f->d->can_be_instantiated_once;
    const crd_unit_spec* s = u->base.spec;
    const bool named = s->isolate && s->isolate[0];
    return once || !isnan(s->budget) || is_text(s->isolate, "process") || s->restart > 0 ||
           (s->network && !named);
}

int crdi_worker_choose(const int64_t* loads, int count, int most, int64_t cost)
{
    int best = -1;
    for (int i = 0; i < count; i++) {
        if (best < 0 || loads[i] < loads[best]) { best = i; }
    }
    const bool fits = best >= 0 && cost > 0 && loads[best] + cost <= SHORT;
    return fits || count >= most ? best : -1;
}

// NULL: a new one.
static crdi_worker* find_worker(crdi_worker* list, const crdi_proxy* u)
{
    enum { MOST = 256 };
    const char* group = u->base.spec->isolate;
    const int cores = core_count() < MOST ? core_count() : MOST;
    crdi_worker* workers[MOST];
    int64_t loads[MOST];
    int count = 0;
    if (must_be_alone(u)) { return NULL; }
    for (crdi_worker* w = list; w && count < MOST; w = w->next) {
        if (w->pid) { continue; } // what it may read is settled
        if (group && group[0]) {
            if (is_text(w->group, group)) { return w; }
            continue;
        }
        if (w->group) { continue; }
        workers[count] = w;
        loads[count++] = w->load;
    }
    if (group && group[0]) { return NULL; }
    const int at = crdi_worker_choose(loads, count, cores > 1 ? cores - 1 : 1, u->cost);
    return at < 0 ? NULL : workers[at];
}

// Many units of one FMU come one after the other: one looks for them and speaks for them.
static void recall_cost(crdi_worker* list, crdi_proxy* u)
{
    const crd_fmu* fmu = ((const crdi_fmi_unit*)u->inner)->fmu;
    for (const crdi_worker* w = list; w; w = w->next) {
        const crdi_proxy* last = w->unit_count ? w->units[w->unit_count - 1] : NULL;
        if (last && ((const crdi_fmi_unit*)last->inner)->fmu == fmu) {
            u->cost = last->cost;
            return;
        }
    }
    u->cost = crdi_worker_recall_cost(u);
    u->speaks = true;
}

static void share_cores(crdi_worker* list)
{
    int count = 1; // the master
    for (const crdi_worker* w = list; w; w = w->next) {
        count++;
    }
    const int64_t spin = count <= core_count() ? SPIN : SPIN_CROWDED;
    for (crdi_worker* w = list; w; w = w->next) {
        w->spin_ns = spin;
        if (w->control) { atomic_store(&w->control->spin_ns, spin); }
    }
}

crd_status crdi_worker_join(crdi_proxy* u, crd_unit_store* store)
{
    crd_context* ctx = store ? crdi_unit_store_context(store) : u->base.ctx;
    crdi_worker** list = store ? crdi_unit_store_workers(store) : NULL;
    recall_cost(list ? *list : NULL, u);
    crdi_worker* w = list ? find_worker(*list, u) : NULL;
    const char* group = u->base.spec->isolate;
    if (!w) {
        w = crdi_new(ctx, sizeof *w);
        if (!w) { return CRD_E_MEMORY; }
        w->ctx = ctx;
        crd_arena_init(&w->arena, ctx);
        w->list = list;
        w->id = list && *list ? (*list)->id + 1 : 1;
        w->group = must_be_alone(u) ? "" : group && group[0] ? group : NULL;
        w->memory_fd = w->life_fds[0] = w->life_fds[1] = -1;
        w->blamed = -1;
        w->spin_ns = core_count() > 1 ? SPIN : SPIN_CROWDED;
        if (list) {
            w->next = *list;
            *list = w;
            share_cores(*list);
        }
    }
    u->worker = w;
    u->base.worker = w->id;
    w->users++;
    w->load += u->cost ? u->cost : SHORT;
    crdi_proxy** units =
        crdi_grow(ctx, w->units, &w->unit_capacity, (size_t)w->unit_count + 1, sizeof(crdi_proxy*));
    if (!units) { return CRD_E_MEMORY; }
    w->units = units;
    u->index = w->unit_count;
    units[w->unit_count++] = u;
    return CRD_OK;
}

void crdi_worker_leave(crdi_proxy* u)
{
    crdi_worker* w = u->worker;
    if (u->speaks && u->answer && w->memory && !w->failed) { crdi_worker_remember_cost(u); }
    if (u->index >= 0) { w->units[u->index] = NULL; }
    u->worker = NULL;
    w->load -= u->cost ? u->cost : SHORT;
    if (w->row.lead == u) { w->row = (crdi_worker_row){0}; }
    if (--w->users) { return; }
    crdi_worker_stop(w);
    if (w->list) {
        for (crdi_worker** q = w->list; *q; q = &(*q)->next) {
            if (*q == w) {
                *q = w->next;
                break;
            }
        }
    }
    crd_arena_clear(&w->arena);
    crd_free(w->ctx, w->units);
    crd_free(w->ctx, w);
}
