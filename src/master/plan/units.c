// The units of a run, and room for their values.
#include "master/plan/plan.h"
#include "shared/base_findings.h"

crd_status crdi_plan_units(crdi_plan* plan, bool* wish)
{
    const crd_system* sys = plan->sys;
    const size_t n = (size_t)sys->unit_count;
    plan->members = crdi_arena_new(plan->arena, n, sizeof *plan->members);
    plan->unit_names = crdi_arena_new(plan->arena, n, sizeof *plan->unit_names);
    crdi_member_state* run = crdi_arena_new(plan->arena, n, sizeof *run);
    if (!plan->members || !plan->unit_names || !run) { return CRD_E_MEMORY; }
    const crd_status stored = crd_unit_store_create(plan->log, &plan->store);
    if (stored < 0) { return crdi_fail(plan->ctx, stored, "%s", crd_error_text(plan->log)); }
    crdi_unit_store_isolate(plan->store, sys->run.isolate);
    crdi_unit_store_borrow(plan->store, plan->opt.store);
    if (sys->unit_count == 0) {
        return crdi_fail(plan->ctx, CRD_E_RANGE, "%s%sthe system has no units", sys->file,
                         sys->file[0] ? ": " : "");
    }
    for (int i = 0; i < sys->unit_count; i++) {
        crdi_member* p = &plan->members[i];
        p->run = &run[i];
        plan->member_count++;
        if (sys->units[i].path == crdi_unread_unit) { continue; }
        crd_status st = crd_unit_create_shared(plan->log, plan->store, &sys->units[i], &p->unit);
        if (st < 0) { st = crdi_fail(plan->ctx, st, "%s", crd_error_text(plan->log)); }
        if (crdi_go_on(plan->ctx, st) < 0) {
            plan->member_count--;
            return st;
        }
        if (st < 0) { continue; } // its connections are not looked at
        p->pinned = sys->units[i].pinned;
        plan->unit_names[i] = p->unit->name;
        plan->has_remote = plan->has_remote || CRDI_UNIT_HAS(p->unit, remote, begin);
        plan->has_remarks = plan->has_remarks || p->unit->remark;
        p->unit->wish = wish;
    }
    return CRD_OK;
}

crd_status crdi_member_refused(crd_context* ctx, const crdi_member* p, crd_status st)
{
    const char* text = crd_error_text(p->unit->ctx);
    return text[0] ? crdi_fail(ctx, st, "unit '%s': %s", p->unit->name, text) : st;
}

crd_status crdi_held_failed(const crdi_plan* plan, crd_status st)
{
    return st < 0 ? crdi_fail(plan->ctx, st, "%s", crd_error_text(plan->held)) : st;
}
