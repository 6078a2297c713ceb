// Looking at a run: its time, its values, its report.
#include "master/master.h"
#include "shared/master_verdict.h"
#include "shared/sandbox.h"

#include <math.h>
#include <stdio.h>

double crd_master_time(const crd_master* m)
{
    return m->clock.time;
}

crd_end crd_master_ended(const crd_master* m)
{
    return m->life.end;
}

static crd_status verdict_report_read_value(crd_unit* u, int32_t variable, int32_t element,
                                            double* out)
{
    const crd_type type = u->info.variables[variable].type;
    const crd_kind kind = crd_type_kind(type);
    crd_binding* b = NULL;
    crd_values v = {0};
    crd_status st = CRD_OK;
    if (kind == CRD_BYTES) {
        return crdi_fail(u->ctx, CRD_E_RANGE, "'%s' is not a number",
                         u->info.variables[variable].name);
    }
    CRD_TRY(crd_binding_create(u, &variable, 1, &b));
    v.real = crdi_new_array(u->ctx, (size_t)b->real_count, sizeof *v.real);
    v.integer = crdi_new_array(u->ctx, (size_t)b->integer_count, sizeof *v.integer);
    if (!v.real || !v.integer) {
        st = CRD_E_MEMORY;
        goto fail;
    }
    CRD_TRY(u->ops->get(u, b, &v));
    *out = kind == CRD_REAL     ? v.real[element]
           : type == CRD_UINT64 ? (double)(uint64_t)v.integer[element]
                                : (double)v.integer[element];
fail:
    crd_free(u->ctx, v.real);
    crd_free(u->ctx, v.integer);
    crd_binding_destroy(b);
    return st;
}

crd_status crd_master_value(crd_master* m, const char* name, double* out)
{
    int unit = 0;
    const char* text = name;
    crd_status st = CRD_OK;
    if (!m->plan->sys->single) {
        CRD_TRY(crd_system_split(m->plan->sys, name, (crd_place){"", 0}, &unit, &text));
    }
    crd_unit* u = m->plan->members[unit].unit;
    int32_t variable = 0, element = 0;
    CRD_TRY(crd_unit_resolve(u, m->ctx, text, &variable, &element));
    if (!m->life.started || m->plan->members[unit].run->crashed) {
        return crdi_fail(m->ctx, CRD_E_STATE, "%s has no value: unit '%s' %s", name, u->name,
                         m->life.started ? "crashed" : "is not initialised");
    }
    if (crdi_async_busy(m, unit)) {
        return crdi_fail(m->ctx, CRD_E_STATE,
                         "%s has no value now: unit '%s' is late, its step is still under way",
                         name, u->name);
    }
    st = verdict_report_read_value(u, variable, element < 0 ? 0 : element, out);
    if (st < 0) { return crdi_member_refused(m->ctx, &m->plan->members[unit], st); }
fail:
    return st;
}

static void report_unit(crd_master* m, const crdi_member* p, crd_unit_report* r)
{
    // Extrapolate from the measured steps to all, without what the clock itself took.
    const int at = (int)(p - m->plan->members);
    int64_t lasts;
    const int64_t steps = crdi_async_steps(m, at, &lasts);
    const int64_t worst = lasts > p->run->ns_worst ? lasts : p->run->ns_worst;
    const int64_t clock = p->run->measured * crdi_tuning_clock_cost(m);
    const double mean = steps ? (crd_master_time(m) - m->plan->times.start) / (double)steps : 0;
    const double all = p->run->measured ? 1e-9 * (double)steps / (double)p->run->measured : 0;
    *r = (crd_unit_report){
        .name = p->unit->name,
        .kind = p->unit->info.kind,
        .steps = steps,
        .step_size = p->step > 0 ? p->step : mean,
        .time_step = all * fmax(0, (double)(p->run->ns_step - clock)),
        .time_get = all * fmax(0, (double)(p->run->ns_get - clock)),
        .time_set = all * fmax(0, (double)(p->run->ns_set - clock)),
        .worst_step = 1e-9 * (double)worst,
        .measured = p->run->measured,
        .worker = p->unit->worker,
        .budget = p->unit->spec ? p->unit->spec->budget : (double)NAN,
    };
    bool now = false;
    r->late = m->async ? crdi_async_late(m, at, &now) : 0;
    crd_link_stats* link = m->verdict.link_stats ? &m->verdict.link_stats[at] : NULL;
    if (link && crdi_member_link(m, at, link)) { r->link = link; }
    crd_standby_stats* standby = m->verdict.standby_stats ? &m->verdict.standby_stats[at] : NULL;
    if (standby && crd_unit_get_standby(p->unit, standby)) { r->standby = standby; }
}

crd_status crdi_verdict_open_loops(crd_master* m, int most)
{
    m->verdict.loop_count = 0; // of an earlier call
    m->verdict.loops = crdi_arena_new(&m->arena, (size_t)most, sizeof *m->verdict.loops);
    return m->verdict.loops ? CRD_OK : CRD_E_MEMORY;
}

crd_loop_report* crdi_verdict_add_loop(crd_master* m)
{
    return &m->verdict.loops[m->verdict.loop_count++];
}

const crd_master_report* crdi_verdict_last(const crd_master* m)
{
    return &m->verdict.report;
}

bool crdi_verdict_is_complete(const crd_master* m)
{
    return m->verdict.units && m->verdict.judge;
}

// The units of one worker process behind what is there: "; a, b share worker process 1".
static int tell_worker(const crd_master* m, int worker, char* text, size_t room, int n)
{
    int count = 0;
    for (int i = 0; i < m->plan->member_count; i++) {
        const crd_unit* u = m->plan->members[i].unit;
        if (u->worker != worker) { continue; }
        n += snprintf(text + n, room - (size_t)n, "%s%.24s",
                      count++ ? ", "
                      : n     ? "; "
                              : "",
                      u->name);
    }
    return !count ? n
                  : n + snprintf(text + n, room - (size_t)n, " %s worker process %d",
                                 count > 1 ? "share" : "in", worker);
}

// Which units ran in workers. Without the heap, as it may be damaged.
static const char* tell_isolation(crd_master* m)
{
    enum { MOST = 8 }; // units that are named: the room is for them
    char* text = m->verdict.isolation;
    const size_t room = sizeof m->verdict.isolation;
    int units = 0, workers = 0, n = 0;
    for (int i = 0; i < m->plan->member_count; i++) {
        const int worker = m->plan->members[i].unit->worker;
        units += worker > 0;
        workers = worker > workers ? worker : workers;
    }
    if (!units) { return ""; }
    for (int w = 1; w <= workers && units <= MOST; w++) {
        n = tell_worker(m, w, text, room, n);
    }
    if (units > MOST) {
        n = snprintf(text, room, "%d units in %d worker process%s", units, workers,
                     workers > 1 ? "es" : "");
    }
    n += snprintf(text + n, room - (size_t)n, "; sandbox: ");
    crdi_sandbox_tell(text + n, room - (size_t)n);
    return text;
}

const crd_master_report* crdi_master_get_numbers(crd_master* m)
{
    crd_master_report* r = &m->verdict.report;
    if (!m->verdict.units) {
        m->verdict.units =
            crdi_arena_new(&m->arena, (size_t)m->plan->member_count, sizeof *m->verdict.units);
        const size_t benches = crdi_plan_has_hardware(m->plan) ? (size_t)m->plan->member_count : 0;
        m->verdict.link_stats =
            benches ? crdi_arena_new(&m->arena, benches, sizeof *m->verdict.link_stats) : NULL;
        m->verdict.standby_stats =
            benches ? crdi_arena_new(&m->arena, benches, sizeof *m->verdict.standby_stats) : NULL;
    }
    for (int i = 0; m->verdict.units && i < m->plan->member_count; i++) {
        report_unit(m, &m->plan->members[i], &m->verdict.units[i]);
    }
    crdi_coupled_report(m);
    if (m->connections.pair_count && !m->verdict.pairs) {
        m->verdict.pairs =
            crdi_arena_new(&m->arena, (size_t)m->connections.pair_count, sizeof *m->verdict.pairs);
    }
    if (m->verdict.pairs) { crdi_paired_report(m, m->verdict.pairs); }
    const bool stepped = m->clock.n > 0;
    *r = (crd_master_report){
        .end = m->life.end,
        .end_unit = m->life.end_member >= 0 ? m->plan->members[m->life.end_member].unit->name : "",
        .start = m->plan->times.start,
        .stop = m->plan->times.stop,
        .step = m->plan->controlled && stepped
                    ? (m->clock.time - m->plan->times.start) / (double)m->clock.n
                    : m->plan->times.tick,
        .time = crd_master_time(m),
        .steps = m->clock.n,
        .threads = crdi_tuning_threads(m),
        .wall_time = 1e-9 * (double)m->life.ns_wall,
        .initialization_time = 1e-9 * (double)m->life.ns_initialization,
        .units = m->verdict.units,
        .unit_count = m->verdict.units ? m->plan->member_count : 0,
        .isolation = tell_isolation(m),
        .loops = m->verdict.loops,
        .loop_count = m->verdict.loop_count,
        .couplings = m->connections.reports,
        .coupling_count = m->connections.coupled_count,
        .pairs = m->verdict.pairs,
        .pair_count = m->verdict.pairs ? m->connections.pair_count : 0,
        .rows = crdi_record_row_count(m),
        .results = m->plan->sys->results.path ? m->plan->sys->results.path : "",
        .rows_lost = crdi_record_loss(m).lost,
        .rows_thinned = crdi_record_loss(m).thinned,
        .record_note = crdi_record_note(m),
        .control = crdi_control_get_report(m),
        .guard = crdi_guard_get_report(m),
        .worst_defect = NAN,
        .worst_energy = NAN,
        .worst_error = NAN,
        .worst_part = NAN,
        .worst_part_of = "",
        .error_note = "",
        .pace = crdi_pacing_report(m),
        .exchange =
            m->exchange && m->plan->sys->results.exchange ? m->plan->sys->results.exchange : "",
        .exchanged = crdi_exchange_count(m),
    };
    r->control.mean = r->step;
    crdi_verdict_report(m);
    return r;
}

const crd_master_report* crd_master_get_report(crd_master* m)
{
    (void)crdi_master_get_numbers(m);
    crdi_verdict_advise(m, &m->verdict.report);
    return &m->verdict.report;
}

crd_status crdi_check_guard(crd_context* ctx, const crd_master* m)
{
    const crd_master_report* r = crdi_verdict_last(m);
    const crd_guard_report* g = &r->guard;
    if (g->exploded) {
        return crdi_fail(ctx, CRD_E_LIMIT,
                         "%s; %s; it has become a thousand times as large, which passes with "
                         "'guard: warn' only",
                         g->text, g->help);
    }
    if (g->state < CRD_GUARD_DIVERGED && r->end != CRD_END_GUARD) {
        if (r->trust < CRD_TRUST_SPOILT) { return CRD_OK; }
        const bool solvers = crdi_verdict_blames_solvers(m);
        return crdi_fail(ctx, CRD_E_LIMIT,
                         "by the estimate %s is wrong by %.2g %% of its RMS: %s spoilt the result; "
                         "a shorter step or another %s would help",
                         r->worst_part_of, 100 * r->worst_part,
                         solvers ? "the units' own solvers have" : "the coupling has",
                         solvers ? "solver" : "prediction");
    }
    return crdi_fail(ctx, CRD_E_LIMIT, "%s%s%s", g->text, *g->help ? "; " : "", g->help);
}
