// The variable communication step: as long as the defects of all flows allow (Glumac 2023).
#include "master/master.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

static bool is_given(double x)
{
    return !isnan(x);
}

// The least time that is a multiple of both, 0 if there is none worth the name.
static double common_multiple(double a, double b)
{
    const double tick = crdi_common_tick(a, b);
    return tick > 0 ? a * round(b / tick) : 0;
}

// A unit with a step of its own makes several of them in one step of the run, which is then a
// multiple of it.
static crd_status plan_parts(crd_master* m)
{
    char at[512];
    const crd_control_spec* c = &m->sys->run.control;
    for (int i = 0; i < m->member_count; i++) {
        crdi_member* p = &m->members[i];
        const crd_unit* u = p->unit;
        const double own = u->spec->step > 0 ? u->spec->step : u->info.fixed_step;
        p->parts = 1;
        p->step = own > 0 ? own : 0;
        if (own > 0) {
            const double both = m->quantum > 0 ? common_multiple(m->quantum, own) : own;
            if (!(both > 0)) {
                return crdi_fail(m->ctx, CRD_E_RANGE,
                                 "unit '%s': its step %g s and those of others have no common "
                                 "multiple that a controlled step could be",
                                 u->name, own);
            }
            m->quantum = both;
        } else if (!(u->info.flags & CRD_UNIT_CAN_VARY_STEP)) {
            return crdi_fail(m->ctx, CRD_E_RANGE,
                             "%sunit '%s' cannot vary its step, which run.control asks for: give "
                             "it a 'step' of its own, of which it then makes several in each step "
                             "of the run, or leave out 'control'",
                             crdi_where(c->place, at, sizeof at), u->name);
        }
    }
    return CRD_OK;
}

// No step is longer than what is left, and none of units with steps of their own is shorter.
static void cut_stop(crd_master* m)
{
    if (!(m->quantum > 0)) { return; }
    const double parts = (m->stop - m->start) / m->quantum, count = floor(parts + 1e-6);
    if (parts - count <= 1e-6) { return; }
    m->stop = m->start + count * m->quantum;
    crdi_log(m->log, CRD_LOG_WARNING,
             "the stop time is no multiple of %g s, which units with a step of their own need: the "
             "run ends at %.10g s",
             m->quantum, m->stop);
}

static crd_status check_links(crd_master* m)
{
    char at[512];
    int flows = 0;
    for (int i = 0; i < m->link_count; i++) {
        const crdi_link* k = &m->links[i];
        flows += k->real;
        if (!k->spec->coupling) { continue; }
        return crdi_fail(m->ctx, CRD_E_UNSUPPORTED,
                         "%sthe coupling element needs samples at equal distances, which "
                         "run.control does not give: leave out one of them",
                         crdi_where(k->spec->place, at, sizeof at));
    }
    if (!flows) {
        return crdi_fail(
            m->ctx, CRD_E_RANGE,
            "%srun.control needs a connection between continuous real variables, whose defect it "
            "can keep small; there is none: give a 'step'",
            crdi_where(m->sys->run.control.place, at, sizeof at));
    }
    return CRD_OK;
}

static crd_status check_rollback(crd_master* m)
{
    char at[512];
    for (int i = 0; i < m->member_count; i++) {
        const crd_unit* u = m->members[i].unit;
        if (u->info.flags & CRD_UNIT_CAN_SAVE) { continue; }
        return crdi_fail(m->ctx, CRD_E_UNSUPPORTED,
                         "%srun.control.reject takes steps back, but unit '%s' (%s) cannot restore "
                         "its state: leave out 'reject'",
                         crdi_where(m->sys->run.control.place, at, sizeof at), u->name,
                         u->info.kind);
    }
    return CRD_OK;
}

// Time has to go on.
static double shortest_step(const crd_master* m)
{
    return 16 * DBL_EPSILON * fmax(fabs(m->start), fabs(m->stop));
}

crd_status crdi_master_plan_control(crd_master* m)
{
    const crd_control_spec* c = &m->sys->run.control;
    crd_status st = CRD_OK;
    if (!c->on) { return CRD_OK; }
    const double span = m->stop - m->start;
    crd_step_options o = crd_step_defaults();
    o.method = c->method;
    o.tol = c->tolerance;
    o.h1 = is_given(c->first) ? c->first : 0;
    o.kp = is_given(c->kp) ? c->kp : o.kp;
    o.ki = is_given(c->ki) ? c->ki : o.ki;
    o.theta_max = is_given(c->growth) ? c->growth : o.theta_max;
    o.safety = is_given(c->safety) ? c->safety : o.safety;
    const double least = shortest_step(m);
    o.floor = is_given(c->floor) ? c->floor : fmin(fmax(1e-12 * span, least), span);
    o.ceiling = is_given(c->ceiling) ? c->ceiling : span;
    m->step_options = o;
    CRD_TRY(crd_step_check(m->ctx, &o));
    if (o.floor < least) {
        char at[512];
        return crdi_fail(m->ctx, CRD_E_RANGE,
                         "%srun.control.floor is %g s, which is too short at times of %g s: a "
                         "number of 64 bits cannot tell them apart",
                         crdi_where(c->place, at, sizeof at), o.floor,
                         fmax(fabs(m->start), fabs(m->stop)));
    }
    CRD_TRY(check_links(m));
    CRD_TRY(plan_parts(m));
    if (m->quantum > span) {
        return crdi_fail(m->ctx, CRD_E_RANGE,
                         "a controlled step has to be a multiple of %g s, which is longer than the "
                         "run",
                         m->quantum);
    }
    cut_stop(m);
    if (is_given(c->reject)) { CRD_TRY(check_rollback(m)); }
    m->rolls_back = m->rolls_back || is_given(c->reject);
    m->samples_middle = c->middle;
    m->time = m->next_row = m->start;
    m->control = (crd_control_report){.on = true, .tolerance = o.tol, .shortest = INFINITY};
fail:
    return st;
}

// ---- the run -----------------------------------------------------------------------------------

// The order that the defect of all flows falls with: that of the lowest predictor.
static int lowest_order(const crd_master* m)
{
    int order = 8;
    for (int i = 0; i < m->flow_count; i++) {
        const int k = crd_predictor_order(m->flows[i].used);
        order = k < order && !m->flows[i].known ? k : order;
    }
    return order;
}

static double first_step(const crd_master* m, crd_sample* y)
{
    int order = 8;
    for (int i = 0; i < m->flow_count; i++) {
        const crdi_flow* f = &m->flows[i];
        const double scale = m->sys->run.control.absolute ? 1 : crdi_flow_scale(f);
        y[i] = f->past.sample[0];
        for (int d = 0; d < 3; d++) {
            y[i].y[d] /= scale;
        }
        const int k = crd_predictor_order(f->predict == CRD_PREDICTION_AUTO ? f->select.now
                                          : y[i].order == 0                 ? CRD_PREDICT_HOLD
                                          : y[i].order == 1                 ? CRD_PREDICT_TAYLOR1
                                                                            : CRD_PREDICT_TAYLOR2);
        order = k < order ? k : order;
    }
    return crd_step_first(&m->step_options, m->flow_count, y, order, m->stop - m->start);
}

crd_status crdi_master_start_control(crd_master* m)
{
    if (!m->controlled) { return CRD_OK; }
    if (!(m->step_options.h1 > 0)) {
        crd_sample* y = crdi_new_array(m->ctx, (size_t)m->flow_count, sizeof *y);
        if (!y) { return CRD_E_MEMORY; }
        m->step_options.h1 = first_step(m, y);
        crd_free(m->ctx, y);
    }
    crd_step_init(&m->step_options, m->step_options.h1, &m->step);
    m->control.first = m->step.h;
    return CRD_OK;
}

static double next_event(const crd_master* m)
{
    double t = INFINITY;
    for (int i = 0; i < m->member_count; i++) {
        t = fmin(t, m->members[i].unit->next_event);
    }
    return t;
}

static void plan_members(crd_master* m)
{
    for (int i = 0; i < m->member_count; i++) {
        crdi_member* p = &m->members[i];
        p->parts = p->step > 0 ? (int)fmax(1, round(m->h / p->step)) : p->middles ? 2 : 1;
    }
}

// As the controller says, but not over an event that is known, a row that is due, or the end, and
// in multiples of what units need.
static double fit(const crd_master* m, double h)
{
    double rest = m->stop - m->time;
    if (m->quantum > 0) {
        const double count = floor(h / m->quantum + 1e-9), most = floor(rest / m->quantum + 1e-6);
        return m->quantum * fmax(1, fmin(count, most));
    }
    const double event = next_event(m) - m->time;
    if (event > 1e-9 * m->step_options.h1) { rest = fmin(rest, event); }
    if (m->recorder && m->sys->results.interval > 0) { rest = fmin(rest, m->next_row - m->time); }
    // The rest in two equal steps rather than in a long and a tiny one: predictors of high order do
    // not like steps that differ much.
    return h >= rest * (1 - 1e-9) ? rest : h > 0.5 * rest ? 0.5 * rest : h;
}

double crdi_control_end(const crd_master* m)
{
    const double t = m->time + m->h, slack = 1e-9 * m->h;
    const double event = next_event(m);
    if (fabs(t - m->stop) < slack) { return m->stop; }
    if (m->recorder && fabs(t - m->next_row) < slack) { return m->next_row; }
    return fabs(t - event) < slack ? event : t;
}

double crdi_control_step(crd_master* m)
{
    double h = m->step.h;
    for (int i = 0; i < m->flow_count; i++) {
        const crdi_flow* f = &m->flows[i];
        if (f->predict == CRD_PREDICTION_AUTO) {
            h = fmin(h, crd_select_ceiling(&f->select_options, &f->select));
        }
    }
    m->h = fit(m, fmax(h, m->step_options.floor));
    plan_members(m);
    return m->h;
}

bool crdi_control_rejects(crd_master* m, double eps)
{
    const crd_step_options* o = &m->step_options;
    m->worst = eps;
    const double limit = m->sys->run.control.reject;
    if (isnan(limit) || eps <= limit * o->tol || m->h <= o->floor * (1 + 1e-9)) { return false; }
    const double before = m->h;
    m->step.h = m->h;
    m->h = fit(m, crd_step_reject(o, &m->step, eps, lowest_order(m)));
    plan_members(m);
    const bool shorter = m->h < before * (1 - 1e-9); // units may not allow it
    m->control.rejected += shorter;
    return shorter;
}

static crd_status __attribute__((cold, noinline)) fail_broken(crd_master* m)
{
    for (int i = 0; i < m->flow_count; i++) {
        const crdi_flow* f = &m->flows[i];
        if (isfinite(f->rms) && (isfinite(f->output_rms) || !f->middle)) { continue; }
        m->end = CRD_END_FAILED;
        return crdi_fail(m->ctx, CRD_E_UNIT,
                         "connection %s at t = %.10g: its defect is %g, so the step cannot "
                         "be controlled: a value or derivative that unit '%s' gives is not finite",
                         f->label, m->time, isfinite(f->rms) ? f->output_rms : f->rms,
                         m->members[f->source].unit->name);
    }
    return CRD_OK;
}

crd_status crdi_control_next(crd_master* m)
{
    crd_control_report* r = &m->control;
    if (!isfinite(m->worst)) { return fail_broken(m); }
    r->worst = fmax(r->worst, m->worst / m->step_options.tol);
    r->shortest = fmin(r->shortest, m->h);
    r->longest = fmax(r->longest, m->h);
    bool event = m->jumped;
    for (int i = 0; i < m->flow_count; i++) {
        event = event || m->flows[i].past.count == 1; // cut
    }
    if (event) {
        r->events++;
        crd_step_event(&m->step_options, m->step_options.h1, &m->step);
        return CRD_OK;
    }
    // A step that was cut a little tells what the whole one would have been.
    const int order = lowest_order(m);
    const double cut = m->step.h / m->h;
    if (m->quantum > 0 || (cut > 1 && cut < 3)) {
        (void)crd_step_next(&m->step_options, &m->step, m->worst * pow(cut, order), order);
    } else {
        (void)crd_step_next_after(&m->step_options, &m->step, m->h, m->worst, order);
    }
    return CRD_OK;
}
