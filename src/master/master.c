// Life of a master: what create plans, in which order, and what destroy frees.
#include "master/master.h"

crd_master_options crd_master_defaults(void)
{
    return (crd_master_options){0};
}

static crd_status master_make_plan(crd_master* m, crdi_plan* plan)
{
    crd_status st = CRD_OK;
    CRD_TRY(crdi_plan_units(plan, &m->life.wish));
    CRD_TRY(crdi_async_check(plan));
    CRD_TRY(crdi_plan_connect(plan));
    CRD_TRY(crdi_plan_times(plan));
    if (plan->controlled) { CRD_TRY(crdi_control_plan(plan, &m->control)); }
    CRD_TRY(crdi_coupled_plan(plan, &m->connections));
    CRD_TRY(crdi_plan_phases(plan));
    CRD_TRY(crdi_bonds_plan(plan, &m->energy));
    CRD_TRY(crdi_paired_plan(plan, &m->connections, &m->energy));
    crdi_plan_kinds(plan);
    CRD_TRY(crdi_plan_bind(plan));
    CRD_TRY(crdi_plan_feeds(plan, &m->connections));
    crdi_setpoints_bind(plan, &m->connections);
    CRD_TRY(crdi_networks_plan(plan, &m->connections));
    CRD_TRY(crdi_refresh_plan(plan, &m->connections));
    CRD_TRY(crdi_bonds_bind(plan, &m->energy));
    CRD_TRY(crdi_paired_bind(plan, &m->connections));
    CRD_TRY(crdi_learning_plan(m));
    CRD_TRY(crdi_iteration_plan(plan, m));
    CRD_TRY(crdi_rollback_plan(m));
    CRD_TRY(crdi_pacing_plan(plan, &m->pace));
    CRD_TRY(crdi_solvers_plan(plan, m));
    CRD_TRY(crdi_record_plan(m));
    CRD_TRY(crdi_session_plan(m));
    crdi_step_init(m);
fail:
    return st;
}

crd_status crd_master_create(crd_context* ctx, const crd_system* sys, const crd_master_options* opt,
                             crd_master** out)
{
    crd_status st = CRD_OK;
    crd_master* m = crdi_new(ctx, sizeof *m);
    crdi_plan* plan = m ? crdi_new(ctx, sizeof *plan) : NULL;
    if (!plan) {
        crd_free(ctx, m);
        return CRD_E_MEMORY;
    }
    m->ctx = ctx;
    m->plan = plan;
    m->running = m->life.end_member = -1;
    crd_arena_init(&m->arena, ctx);
    crdi_record_init(m);
    CRD_TRY(crdi_events_init(m));
    *plan = (crdi_plan){.ctx = ctx,
                        .log = m->log,
                        .arena = &m->arena,
                        .sys = sys,
                        .opt = opt ? *opt : crd_master_defaults(),
                        .rule = sys->run.control.on ? &crdi_step_controlled : &crdi_step_fixed,
                        .controlled = sys->run.control.on,
                        .iterated = sys->run.iterate.on,
                        .estimated = sys->run.monitor & CRD_MONITOR_DEFECT};
    if (plan->opt.resume || plan->opt.save_file) { plan->opt.snapshots = true; }
    if (!plan->opt.stop) { plan->opt.stop = &m->cancelled; }
    plan->held = crdi_context_in(&m->arena);
    if (!plan->held) { CRD_TRY(CRD_E_MEMORY); }
    CRD_TRY(master_make_plan(m, plan));
    *out = m;
    return CRD_OK;
fail:
    crd_master_destroy(m);
    return st;
}

// Each unit with what belongs to it, from the last to the first. Takes off those that are done.
static void destroy_rest(void* with)
{
    crd_master* m = with;
    while (m->life.destroyed < m->plan->member_count) {
        const int i = m->plan->member_count - 1 - m->life.destroyed++;
        crdi_member* p = &m->plan->members[i];
        if (p->run->left || !p->unit) { continue; }
        crdi_values_clear(p->unit->ctx, p->in, &p->inputs);
        crdi_values_clear(p->unit->ctx, p->out, &p->outputs);
        crd_binding_destroy(p->in);
        crd_binding_destroy(p->out);
        crdi_paired_release(m, p);
        crdi_record_clear_member(m, i);
        m->running = i;
        crdi_rollback_free(p);
        crdi_solvers_forget(m, i);
        crd_unit_destroy(p->unit);
        m->running = -1;
        crdi_crash_check_child(m);
    }
}

// A unit may crash when it is freed, too. What it had is lost; the others go their way.
static void destroy_members(crd_master* m)
{
    if (!m->plan->opt.guard_crashes || !m->life.initialized) {
        destroy_rest(m);
        return;
    }
    crdi_crash_install();
    while (crdi_life_catch(m, destroy_rest, m) != 0) {
        crdi_log(m->log, CRD_LOG_WARNING, "unit '%s' crashed after the run, when it was freed",
                 m->plan->sys->units[m->running].name);
        m->running = -1;
    }
    crdi_crash_remove();
}

void crd_master_destroy(crd_master* m)
{
    if (!m) { return; }
    (void)crd_master_finish(m);
    crdi_record_free(m);
    crdi_exchange_free(m);
    crdi_tuning_free(m);
    crdi_iteration_free(m);
    const bool alone = crdi_async_clear(m);
    crdi_estimate_close(m);
    crdi_models_free(m);
    crdi_ladder_free(m);
    crdi_snapshots_free(m);
    crdi_handles_free(m);
    destroy_members(m);
    crdi_sentinel_stop(m);
    if (!alone) { return; } // a thread of a unit is still at it: what it may touch stays
    crd_context* ctx = m->ctx;
    crd_unit_store_destroy(m->plan->store);
    crdi_connections_free(m);
    crdi_learning_free(m);
    crdi_record_clear(m);
    crdi_events_clear(m);
    crd_free(ctx, m->plan->connections);
    crd_context_destroy(m->plan->held);
    crd_free(ctx, (void*)m->plan);
    crd_arena_clear(&m->arena);
    crd_free(ctx, m);
}
