// Links with hardware are not just cut: first a calmer element, which does not extrapolate, then
// the stand-ins of the benches, then the run ends and benches come to rest.
#include "master/master.h"

#include <math.h>
#include <stdio.h>

enum { USE_MODEL = 2 }; // of standby.use

// ---- plan --------------------------------------------------------------------------------------

static crd_status plan_calm(crd_master* m, crdi_coupled* c, int loop)
{
    crd_status st = CRD_OK;
    crd_coupling_options opt;
    crdi_calm* p = &m->guard.ladder.calms[m->guard.ladder.calm_count++];
    *p = (crdi_calm){.of = c, .loop = loop, .spare.latency = c->estimators[0].latency};
    CRD_TRY(crdi_coupled_remember(m, c));
    CRD_TRY(crd_element_of_name(m->ctx, "zoh", &p->spare.description));
    CRD_TRY(crd_element_options(p->spare.description, c->interval, &opt));
    opt.start_time = m->plan->times.start;
    CRD_TRY(crd_coupling_create(m->ctx, &opt, &p->spare.element));
fail:
    return st;
}

static crd_status plan_bench(crd_master* m, int member, int loop)
{
    crd_status st = CRD_OK;
    int32_t variable = 0, element = 0;
    crd_unit* u = m->plan->members[member].unit;
    if (!u->spec->standby.model) {
        st = crdi_fail(m->ctx, CRD_E_RANGE,
                       "guard: ladder: unit '%s' is in a loop and has no stand-in, so there is no "
                       "rung between a calmer element and the stop; expected 'standby:' in the "
                       "unit, or guard: stop",
                       u->name);
        return crdi_fail_at(m->ctx, st, m->guard.spec.place);
    }
    CRD_TRY(crd_unit_resolve(u, m->ctx, "standby.use", &variable, &element));
    crdi_bench_use* b = &m->guard.ladder.benches[m->guard.ladder.bench_count];
    *b = (crdi_bench_use){.member = member, .loop = loop};
    CRD_TRY(crd_binding_create(u, &variable, 1, &b->use));
    m->guard.ladder.bench_count++;
fail:
    return st;
}

crd_status crdi_ladder_plan(crd_master* m)
{
    crdi_guard* g = &m->guard;
    crdi_ladder* a = &g->ladder;
    crd_status st = CRD_OK;
    a->calms = crdi_arena_new(&m->arena, (size_t)g->guarded_count, sizeof *a->calms);
    a->benches = crdi_arena_new(&m->arena, (size_t)m->plan->member_count, sizeof *a->benches);
    if (!a->calms || !a->benches) { return CRD_E_MEMORY; }
    for (int i = 0; i < g->loop_count; i++) {
        const crdi_guard_loop* l = &g->loops[i];
        const int benches = a->bench_count;
        for (int k = 0; k < l->member_count; k++) {
            if (!crdi_member_is_hardware(&m->plan->members[l->members[k]])) { continue; }
            CRD_TRY(plan_bench(m, l->members[k], i));
        }
        for (int k = l->first; k < l->first + l->count && a->bench_count > benches; k++) {
            if (g->guarded[k].of->coupled) { CRD_TRY(plan_calm(m, g->guarded[k].of->coupled, i)); }
        }
    }
    if (a->bench_count == 0) {
        st = crdi_fail(m->ctx, CRD_E_RANGE,
                       "guard: ladder: no loop has a unit that is hardware (a DCP slave, or one "
                       "with a stand-in); expected guard: stop, or warn");
        return crdi_fail_at(m->ctx, st, g->spec.place);
    }
fail:
    return st;
}

// ---- the run -----------------------------------------------------------------------------------

static bool take_calm_elements(crd_master* m, int loop)
{
    crdi_ladder* a = &m->guard.ladder;
    bool any = false;
    for (int i = 0; i < a->calm_count; i++) {
        crdi_calm* p = &a->calms[i];
        if (p->loop != loop) { continue; }
        p->spare = crdi_coupled_swap(m, p->of, &p->spare);
        any = true;
    }
    return any;
}

static bool take_stand_ins(crd_master* m, int loop)
{
    crdi_ladder* a = &m->guard.ladder;
    int64_t use[1] = {USE_MODEL};
    const crd_values values = {.integer = use};
    bool any = false;
    for (int i = 0; i < a->bench_count; i++) {
        const crdi_bench_use* b = &a->benches[i];
        crd_unit* u = m->plan->members[b->member].unit;
        if (b->loop != loop || crdi_async_busy(m, b->member)) { continue; }
        m->running = b->member;
        any = u->ops->set(u, b->use, &values) >= 0 || any;
        m->running = -1;
    }
    return any;
}

// What was done shall be seen on its own: the watches begin anew. If the loop goes on growing as it
// did, by half of it at least, that is seen soon.
static void begin_anew(crd_master* m, crdi_guard_loop* l)
{
    double rate = 0;
    for (int i = l->first; i < l->first + l->count; i++) {
        crdi_guarded* p = &m->guard.guarded[i];
        rate = fmax(rate, p->watch.rate / (double)p->every);
        crdi_guard_watch_anew(m, p);
    }
    l->unknown = "it was changed in the run";
    l->rate = 0.5 * rate;
    l->exact = 0;
    l->suspect = rate > 0;
    l->done = false;
}

bool crdi_ladder_climb(crd_master* m, int loop)
{
    crdi_guard* g = &m->guard;
    crdi_guard_loop* l = &g->loops[loop];
    const char* did = NULL;
    while (!did && l->rung < CRDI_RUNG_STOP) {
        l->rung++;
        if (l->rung == CRDI_RUNG_ELEMENT && take_calm_elements(m, loop)) {
            did = "a calmer element (zoh) on its links";
        } else if (l->rung == CRDI_RUNG_STAND_IN && take_stand_ins(m, loop)) {
            did = "the stand-ins of its benches";
        }
    }
    if (!did) { return false; }
    snprintf(g->help, sizeof g->help, "the guard has put in %s", did);
    // The record cuts long texts off: what was done comes first.
    crdi_log(m->log, CRD_LOG_WARNING, "guard: %s: %s", g->help, g->text);
    g->state = CRD_GUARD_WARNED; // until it is seen that it did not help
    begin_anew(m, l);
    return true;
}

void crdi_ladder_free(crd_master* m)
{
    crdi_ladder* a = &m->guard.ladder;
    for (int i = 0; i < a->calm_count; i++) {
        crd_learn_client_destroy(a->calms[i].spare.learn);
        crd_coupling_destroy(a->calms[i].spare.element);
        crd_element_destroy(a->calms[i].spare.description);
    }
    for (int i = 0; i < a->bench_count; i++) {
        crd_binding_destroy(a->benches[i].use);
    }
    *a = (crdi_ladder){0};
}
