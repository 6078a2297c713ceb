// The variable communication step: as long as the defects of all flows allow (Glumac 2023).
#include "master/master.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

static bool step_control_is_given(double x)
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
static crd_status plan_parts(crdi_plan* plan, crdi_control* c)
{
    char at[512];
    const crd_control_spec* spec = &plan->sys->run.control;
    for (int i = 0; i < plan->member_count; i++) {
        crdi_member* p = &plan->members[i];
        const crd_unit* u = p->unit;
        const double own = u->spec->step > 0 ? u->spec->step : u->info.fixed_step;
        p->run->parts = 1;
        p->step = own > 0 ? own : 0;
        if (own > 0) {
            const double both = c->quantum > 0 ? common_multiple(c->quantum, own) : own;
            if (!(both > 0)) {
                return crdi_fail(plan->ctx, CRD_E_RANGE,
                                 "unit '%s': its step %g s and those of others have no common "
                                 "multiple that a controlled step could be",
                                 u->name, own);
            }
            c->quantum = both;
        } else if (!(u->info.flags & CRD_UNIT_CAN_VARY_STEP)) {
            return crdi_fail(plan->ctx, CRD_E_RANGE,
                             "%sunit '%s' cannot vary its step, which run.control asks for: give "
                             "it a 'step' of its own, of which it then makes several in each step "
                             "of the run, or leave out 'control'",
                             crdi_where(spec->place, at, sizeof at), u->name);
        }
    }
    return CRD_OK;
}

// No step is longer than what is left, and none of units with steps of their own is shorter.
static void cut_stop(crdi_plan* plan, const crdi_control* c)
{
    if (!(c->quantum > 0)) { return; }
    const double parts = (plan->times.stop - plan->times.start) / c->quantum,
                 count = floor(parts + 1e-6);
    if (parts - count <= 1e-6) { return; }
    plan->times.stop = plan->times.start + count * c->quantum;
    crdi_log(plan->log, CRD_LOG_WARNING,
             "the stop time is no multiple of %g s, which units with a step of their own need: the "
             "run ends at %.10g s",
             c->quantum, plan->times.stop);
}

static crd_status check_links(crdi_plan* plan)
{
    char at[512];
    int flows = 0;
    for (int i = 0; i < plan->connection_count; i++) {
        const crdi_connection* k = &plan->connections[i];
        flows += k->real;
        if (!k->spec->coupling) { continue; }
        return crdi_fail(plan->ctx, CRD_E_UNSUPPORTED,
                         "%sthe coupling element needs samples at equal distances, which "
                         "run.control does not give: leave out one of them",
                         crdi_where(k->spec->place, at, sizeof at));
    }
    if (!flows) {
        return crdi_fail(
            plan->ctx, CRD_E_RANGE,
            "%srun.control needs a connection between continuous real variables, whose defect it "
            "can keep small; there is none: give a 'step'",
            crdi_where(plan->sys->run.control.place, at, sizeof at));
    }
    return CRD_OK;
}

// Why no step can be taken back, "": nothing is against it.
static const char* why_forward_only(const crdi_plan* plan)
{
    for (int i = 0; i < plan->member_count; i++) {
        const crd_unit* u = plan->members[i].unit;
        if (crdi_member_saves(&plan->members[i])) { continue; }
        return crdi_arena_format(plan->arena, "unit '%s' (%s) cannot restore its state", u->name,
                                 u->info.kind);
    }
    return plan->sys->run.pace.factor > 0 && !plan->opt.open_end ? "the run keeps the clock" : "";
}

// Steps beyond the tolerance are taken back unless somebody does not want it or nobody can. What is
// not kept then is said, now and in the verdict.
static crd_status plan_rejection(crdi_plan* plan, crdi_control* c)
{
    char at[512];
    const crd_control_spec* spec = &plan->sys->run.control;
    const char* why = isinf(spec->reject) ? "'reject' is off" : why_forward_only(plan);
    if (!why) { return CRD_E_MEMORY; }
    c->report.forward_only = why;
    if (*why && step_control_is_given(spec->reject) && !isinf(spec->reject)) {
        return crdi_fail(plan->ctx, CRD_E_UNSUPPORTED,
                         "%srun.control.reject takes steps back, but %s: leave out 'reject'",
                         crdi_where(spec->place, at, sizeof at), why);
    }
    if (*why && !isinf(spec->reject)) {
        crdi_log(plan->log, CRD_LOG_WARNING,
                 "%scontrol cannot keep the tolerance in every step: %s, so steps that turn out "
                 "too long are not taken back; the verdict counts them",
                 crdi_where(spec->place, at, sizeof at), why);
    }
    c->limit = *why ? INFINITY : step_control_is_given(spec->reject) ? spec->reject : 1;
    // A step that is taken back costs more than a few that are somewhat shorter: of ten periods of
    // oscillators one step in ten was at 0.9, next to none at 0.7.
    if (!*why && !step_control_is_given(spec->safety)) { c->options.safety = 0.7 * c->limit; }
    c->options.safety = fmin(c->options.safety, 1);
    plan->rolls_back = plan->rolls_back || !*why;
    return CRD_OK;
}

// Time has to go on.
static double shortest_step(const crdi_plan* plan)
{
    return 16 * DBL_EPSILON * fmax(fabs(plan->times.start), fabs(plan->times.stop));
}

crd_status crdi_control_plan(crdi_plan* plan, crdi_control* c)
{
    const crd_control_spec* spec = &plan->sys->run.control;
    crd_status st = CRD_OK;
    const double span = plan->times.stop - plan->times.start;
    crd_step_options o = crd_step_defaults();
    o.method = spec->method;
    o.tol = spec->tolerance;
    o.h1 = step_control_is_given(spec->first) ? spec->first : 0;
    o.kp = step_control_is_given(spec->kp) ? spec->kp : o.kp;
    o.ki = step_control_is_given(spec->ki) ? spec->ki : o.ki;
    o.theta_max = step_control_is_given(spec->growth) ? spec->growth : o.theta_max;
    o.safety = step_control_is_given(spec->safety) ? spec->safety : o.safety;
    const double least = shortest_step(plan);
    o.floor =
        step_control_is_given(spec->floor) ? spec->floor : fmin(fmax(1e-12 * span, least), span);
    o.ceiling = step_control_is_given(spec->ceiling) ? spec->ceiling : span;
    c->options = o;
    CRD_TRY(crd_step_check(plan->ctx, &o));
    if (o.floor < least) {
        char at[512];
        return crdi_fail(plan->ctx, CRD_E_RANGE,
                         "%srun.control.floor is %g s, which is too short at times of %g s: a "
                         "number of 64 bits cannot tell them apart",
                         crdi_where(spec->place, at, sizeof at), o.floor,
                         fmax(fabs(plan->times.start), fabs(plan->times.stop)));
    }
    CRD_TRY(check_links(plan));
    CRD_TRY(plan_parts(plan, c));
    if (c->quantum > span) {
        return crdi_fail(plan->ctx, CRD_E_RANGE,
                         "a controlled step has to be a multiple of %g s, which is longer than the "
                         "run",
                         c->quantum);
    }
    cut_stop(plan, c);
    plan->samples_middle = spec->middle;
    c->report = (crd_control_report){
        .on = true, .tolerance = o.tol, .shortest = INFINITY, .worst_flow = ""};
    CRD_TRY(plan_rejection(plan, c));
fail:
    return st;
}

// ---- the run -----------------------------------------------------------------------------------

// The order that the defect of all flows falls with: that of the lowest predictor.
static int lowest_order(const crd_master* m)
{
    int order = 8;
    for (int i = 0; i < m->connections.prediction_count; i++) {
        const int k = crd_predictor_order(m->connections.predictions[i].used);
        order = k < order && !m->connections.predictions[i].known ? k : order;
    }
    return order;
}

static double first_step(const crd_master* m, crd_sample* y)
{
    int order = 8;
    for (int i = 0; i < m->connections.prediction_count; i++) {
        const crdi_prediction* f = &m->connections.predictions[i];
        const double scale = m->plan->sys->run.control.absolute ? 1 : crdi_prediction_scale(f);
        y[i] = f->past.sample[0];
        // At rest derivatives say nothing of what is to come.
        if (y[i].y[0] == 0 && y[i].y[1] == 0 && y[i].y[2] == 0) { y[i].order = 0; }
        for (int d = 0; d < 3; d++) {
            y[i].y[d] /= scale;
        }
        const int k = crd_predictor_order(f->predict == CRD_PREDICTION_AUTO ? f->select.now
                                          : y[i].order == 0                 ? CRD_PREDICT_HOLD
                                          : y[i].order == 1                 ? CRD_PREDICT_TAYLOR1
                                                                            : CRD_PREDICT_TAYLOR2);
        order = k < order ? k : order;
    }
    return crd_step_first(&m->control.options, m->connections.prediction_count, y, order,
                          m->plan->times.stop - m->plan->times.start);
}

const crd_step_options* crdi_control_options(const crd_master* m)
{
    return &m->control.options;
}

crd_status crdi_control_start(crd_master* m)
{
    if (!(m->control.options.h1 > 0)) {
        crd_sample* y = crdi_new_array(m->ctx, (size_t)m->connections.prediction_count, sizeof *y);
        if (!y) { return CRD_E_MEMORY; }
        m->control.options.h1 = first_step(m, y);
        crd_free(m->ctx, y);
    }
    crd_step_init(&m->control.options, m->control.options.h1, &m->control.step);
    m->control.report.first = m->control.step.h;
    return CRD_OK;
}

static double next_event(const crd_master* m)
{
    double t = INFINITY;
    for (int i = 0; i < m->plan->member_count; i++) {
        t = fmin(t, m->plan->members[i].unit->next_event);
    }
    return t;
}

static void plan_members(crd_master* m)
{
    for (int i = 0; i < m->plan->member_count; i++) {
        crdi_member* p = &m->plan->members[i];
        p->run->parts = p->step > 0  ? (int)fmax(1, round(m->clock.h / p->step))
                        : p->middles ? 2
                                     : 1;
    }
}

// As the controller says, but not over an event that is known, a row that is due, or the end, and
// in multiples of what units need.
static double fit(const crd_master* m, double h)
{
    double rest = m->plan->times.stop - m->clock.time;
    if (m->control.quantum > 0) {
        const double count = floor(h / m->control.quantum + 1e-9),
                     most = floor(rest / m->control.quantum + 1e-6);
        return m->control.quantum * fmax(1, fmin(count, most));
    }
    const double event = next_event(m) - m->clock.time;
    if (event > 1e-9 * m->control.options.h1) { rest = fmin(rest, event); }
    rest = fmin(rest, crdi_record_next_row(m) - m->clock.time);
    // The rest in two equal steps rather than in a long and a tiny one: predictors of high order do
    // not like steps that differ much.
    return h >= rest * (1 - 1e-9) ? rest : h > 0.5 * rest ? 0.5 * rest : h;
}

static double controlled_end(const crd_master* m)
{
    const double t = m->clock.time + m->clock.h, slack = 1e-9 * m->clock.h;
    const double event = next_event(m);
    if (fabs(t - m->plan->times.stop) < slack) { return m->plan->times.stop; }
    if (fabs(t - crdi_record_next_row(m)) < slack) { return crdi_record_next_row(m); }
    return fabs(t - event) < slack ? event : t;
}

static double controlled_begin(crd_master* m)
{
    double h = m->control.step.h;
    for (int i = 0; i < m->connections.prediction_count; i++) {
        const crdi_prediction* f = &m->connections.predictions[i];
        if (f->predict == CRD_PREDICTION_AUTO) {
            const crd_select_options o = crdi_prediction_select_options(f);
            h = fmin(h, crd_select_ceiling(&o, &f->select));
        }
    }
    m->clock.h = fit(m, fmax(h, m->control.options.floor));
    m->control.tried_h = 0;
    m->control.useless = 0;
    plan_members(m);
    return m->clock.h;
}

// Of noise, of a jump, and of what came into the sample at the beginning, a part of the defect
// stays however short the step is. From this try and the one before, eps = rest + slope h: shorter
// ones are no use where the rest is beyond the limit by itself and most of what there is, twice in
// a row.
static bool helps(crdi_control* c, double h, double eps, double allowed)
{
    const double part = h / c->tried_h, rest = (eps - part * c->tried_eps) / (1 - part);
    const bool first = !(c->tried_h > 0);
    c->useless = !first && part < 1 && rest > allowed && eps < 3 * rest ? c->useless + 1 : 0;
    c->tried_h = h;
    c->tried_eps = eps;
    return c->useless < 2;
}

static bool rejects(crd_master* m, double eps)
{
    crdi_control* c = &m->control;
    const crd_step_options* o = &c->options;
    c->worst = eps;
    c->stuck = false;
    if (eps <= c->limit * o->tol || isinf(c->limit) || m->clock.h <= o->floor * (1 + 1e-9)) {
        return false;
    }
    c->stuck = !helps(c, m->clock.h, eps, c->limit * o->tol);
    if (c->stuck) { return false; }
    const double before = m->clock.h;
    c->step.h = m->clock.h;
    m->clock.h = fit(m, crd_step_reject(o, &c->step, eps, lowest_order(m)));
    plan_members(m);
    const bool shorter = m->clock.h < before * (1 - 1e-9); // units may not allow it
    c->report.rejected += shorter;
    return shorter;
}

static crd_status __attribute__((cold, noinline)) fail_broken(crd_master* m)
{
    for (int i = 0; i < m->connections.prediction_count; i++) {
        const crdi_prediction* f = &m->connections.predictions[i];
        if (isfinite(f->rms) && (isfinite(f->output_rms) || !f->middle)) { continue; }
        m->life.end = CRD_END_FAILED;
        return crdi_fail(m->ctx, CRD_E_UNIT,
                         "connection %s at t = %.10g: its defect is %g, so the step cannot "
                         "be controlled: a value or derivative that unit '%s' gives is not finite",
                         f->label, m->clock.time, isfinite(f->rms) ? f->output_rms : f->rms,
                         f->source->unit->name);
    }
    return CRD_OK;
}

static void note_worst(crd_master* m)
{
    crd_control_report* r = &m->control.report;
    const double part = m->control.worst / m->control.options.tol;
    r->beyond += part > fmax(1, isinf(m->control.limit) ? 1 : m->control.limit);
    if (!(part > r->worst)) { return; }
    r->worst = part;
    r->worst_flow = m->connections.worst ? m->connections.worst->label : "";
}

static crd_status controlled_next(crd_master* m)
{
    crd_control_report* r = &m->control.report;
    if (!isfinite(m->control.worst)) { return fail_broken(m); }
    note_worst(m);
    r->shortest = fmin(r->shortest, m->clock.h);
    r->longest = fmax(r->longest, m->clock.h);
    bool event = m->connections.jumped;
    for (int i = 0; i < m->connections.prediction_count; i++) {
        event = event || m->connections.predictions[i].past.count == 1; // cut
    }
    if (event) {
        r->events++;
        crd_step_event(&m->control.options, m->control.options.h1, &m->control.step);
        return CRD_OK;
    }
    // A step that was cut a little tells what the whole one would have been.
    const int order = lowest_order(m);
    const double cut = m->control.step.h / m->clock.h;
    if (m->control.stuck) { return CRD_OK; } // a defect that does not depend on the step
    if (m->control.quantum > 0 || (cut > 1 && cut < 3)) {
        (void)crd_step_next(&m->control.options, &m->control.step,
                            m->control.worst * pow(cut, order), order);
    } else {
        (void)crd_step_next_after(&m->control.options, &m->control.step, m->clock.h,
                                  m->control.worst, order);
    }
    // What was just too long is not tried again at once.
    if (m->control.tried_h > 0) { m->control.step.h = fmin(m->control.step.h, m->clock.h); }
    return CRD_OK;
}

static crd_status controlled_judge(crd_master* m, double eps, bool* again)
{
    *again = rejects(m, eps);
    return CRD_OK;
}

static double controlled_ahead(const crd_master* m, int64_t ticks)
{
    (void)ticks; // one
    return m->control.step.h;
}

const crdi_step_rule crdi_step_controlled = {controlled_begin, controlled_judge, controlled_end,
                                             controlled_next, controlled_ahead};

double crdi_step_nominal(const crd_master* m)
{
    return m->plan->controlled ? m->control.step.h : m->plan->times.tick;
}

void crdi_control_moving(crd_master* m, crdi_note_moving* note, void* user)
{
    note(user, (const void*)&m->control.report.worst_flow);
}

crd_control_report crdi_control_get_report(const crd_master* m)
{
    crd_control_report r = m->control.report;
    if (!r.on) { r.worst_flow = r.forward_only = ""; }
    r.at_floor = m->control.step.at_floor;
    r.at_ceiling = m->control.step.at_ceiling;
    return r;
}

double crdi_control_floor(const crd_master* m)
{
    return m->control.options.floor;
}
