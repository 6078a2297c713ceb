// One unit over its step: inputs in, advance, outputs out; and what is said when that fails.
#include "master/master.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// "at t = 0.5", or where the run was before its first step
static const char* moment(const crd_master* m, char* buffer, size_t size)
{
    if (m->life.started) {
        snprintf(buffer, size, "at t = %.10g", crd_master_time(m));
    } else {
        snprintf(buffer, size, "at the start");
    }
    return buffer;
}

crd_status crdi_member_failed(crd_master* m, int member, crd_status st)
{
    char when[64];
    const crd_unit* u = m->plan->members[member].unit;
    m->life.end = CRD_END_FAILED;
    m->life.end_member = member;
    return crdi_fail(m->ctx, st, "unit '%s' %s: %s", u->name, moment(m, when, sizeof when),
                     crd_error_text(u->ctx));
}

crd_status crdi_member_left(crd_master* m, int member, crd_status st)
{
    m->running = -1;
    crdi_crash_check_child(m);
    return st < 0 ? crdi_member_failed(m, member, st) : CRD_OK;
}

crd_status crdi_member_crashed(crd_master* m, int member, int signal_number)
{
    char when[64];
    crdi_member* p = &m->plan->members[member];
    if (!signal_number) { return crdi_member_failed(m, member, CRD_E_CRASH); } // in a worker
    m->life.end = CRD_END_FAILED;
    m->life.end_member = member;
    m->running = -1;
    p->run->alive = false;
    p->run->crashed = true;
    const char* call = crdi_unit_last_call(p->unit);
    crd_status st = CRD_E_CRASH;
    if (signal_number == CRDI_CRASH_EXIT) {
        st = crdi_fail(m->ctx, st, "unit '%s' %s: tried to end the process with exit() in %s",
                       p->unit->name, moment(m, when, sizeof when), call);
    } else {
        st = crdi_fail(m->ctx, st, "unit '%s' %s: crashed in %s (%s)", p->unit->name,
                       moment(m, when, sizeof when), call, crdi_signal_text(signal_number));
    }
    crdi_unit_abandon(p->unit);
    return st;
}

crd_status crdi_member_get_rates(crdi_member* p)
{
    crd_status st = CRD_OK;
    for (int d = 0; st >= 0 && d < 2 && p->rates[d]; d++) {
        st = p->unit->ops->derivatives->get(p->unit, p->out, d + 1, p->rates[d]);
    }
    return st;
}

crd_status crdi_member_set(crdi_member* p)
{
    crd_unit* u = p->unit;
    if (!p->in) { return CRD_OK; }
    if (p->run->faults) { crdi_faults_apply(p); }
    crd_status st = u->ops->set(u, p->in, &p->inputs);
    if (st >= 0 && p->slope_order) {
        const double* const slopes[] = {p->slopes[0], p->slopes[1]};
        st = u->ops->derivatives->set(u, p->in, slopes, p->slope_order);
    }
    if (p->run->faults) { crdi_faults_undo(p); }
    return st;
}

// A unit has got what is nearest to the prediction among the polynomials that it takes. Its outputs
// and their derivatives at a point are those of the prediction itself, where it can be told.
void crdi_member_show_prediction(crd_master* m, const crdi_member* p, double t)
{
    for (int k = 0; k < p->flow_count; k++) {
        crdi_prediction* f = &m->connections.predictions[p->flows[k]];
        const double s = t - f->origin;
        *f->to = crd_poly_eval(&f->u, s) + f->correction;
        for (int d = 0; d < 2 && f->slope[d]; d++) {
            *f->slope[d] = crd_poly_derivative(&f->u, d + 1, s);
        }
    }
}

static crd_status show_prediction(crd_master* m, crdi_member* p, double t)
{
    crdi_member_show_prediction(m, p, t);
    return crdi_member_set(p);
}

// Set inputs, advance, get outputs; `measure` is a constant in both places of use.
static inline __attribute__((always_inline)) crd_status
run_member(crd_master* m, crdi_member* p, double t, double h, const bool measure)
{
    crd_unit* u = p->unit;
    crd_status st = CRD_OK;
    const int64_t t0 = measure ? crdi_pacing_now(m) : 0;
    st = crdi_member_set(p);
    if (st < 0) { return st; }
    const int64_t t1 = measure ? crdi_pacing_now(m) : 0;
    st = u->ops->step(u, t, h);
    if (st < 0) { return st; }
    const int64_t t2 = measure ? crdi_pacing_now(m) : 0;
    const bool holds = crdi_network_holds(p->network);
    if (p->shown && !holds) { st = show_prediction(m, p, t + h); }
    if (p->out && st >= 0) { st = u->ops->get(u, p->out, &p->outputs); }
    if (p->rates[0] && st >= 0 && (!holds || p->shows_rates)) { st = crdi_member_get_rates(p); }
    if (measure) {
        const int64_t t3 = crdi_pacing_now(m);
        p->run->ns_set += t1 - t0;
        p->run->ns_step += t2 - t1;
        p->run->ns_get += t3 - t2;
        p->run->ns_last = t3 - t0;
        if (t2 - t1 > p->run->ns_worst) { p->run->ns_worst = t2 - t1; }
        p->run->measured++;
    }
    return st;
}

static crd_status run_measured(crd_master* m, crdi_member* p, double t, double h)
{
    return run_member(m, p, t, h, true);
}

// A step in several: of a unit with a step of its own in a controlled run, with a sample in the
// middle, and with ports of pairs, which act in each. The inputs are set anew in each, at their
// time. Measured as one.
static crd_status run_parts(crd_master* m, crdi_member* p, double t, double h)
{
    crd_unit* u = p->unit;
    const double part = h / p->run->parts;
    crd_status st = CRD_OK;
    const int64_t t0 = m->tuning.measure ? crdi_pacing_now(m) : 0;
    for (int i = 0; i < p->run->parts; i++) {
        const double at = t + i * part;
        for (int k = 0; k < p->flow_count; k++) {
            crdi_prediction* f = &m->connections.predictions[p->flows[k]];
            // The step began with what is nearest over all of it.
            if (i > 0 || !f->textbook) { crdi_prediction_apply(f, at - f->origin, part); }
        }
        if (p->ports) { crdi_paired_act(p, at, part); }
        CRD_TRY(crdi_member_set(p));
        if (p->ports) { CRD_TRY(crdi_paired_begin(p)); }
        CRD_TRY(u->ops->step(u, at, part));
        if (p->ports) {
            CRD_TRY(u->ops->get(u, p->out, &p->outputs));
            crdi_paired_done(p);
        }
        if (p->middles && 2 * (i + 1) == p->run->parts) {
            if (p->shown) { CRD_TRY(show_prediction(m, p, at + part)); }
            CRD_TRY(u->ops->get(u, p->out, &p->outputs));
            memcpy(p->middles, p->outputs.real, (size_t)p->out->real_count * sizeof(double));
        }
    }
    if (p->shown) { CRD_TRY(show_prediction(m, p, t + h)); }
    if (p->out && !p->ports) { CRD_TRY(u->ops->get(u, p->out, &p->outputs)); }
    if (p->rates[0]) { CRD_TRY(crdi_member_get_rates(p)); }
    if (m->tuning.measure) {
        const int64_t spent = crdi_pacing_now(m) - t0;
        p->run->ns_step += spent;
        p->run->ns_last = spent;
        if (spent > p->run->ns_worst) { p->run->ns_worst = spent; }
        p->run->measured++;
    }
fail:
    return st;
}

void crdi_member_step(const crd_master* m, const crdi_member* p, double* t, double* h)
{
    *t = p->ticks == 1 ? m->clock.time : crdi_time_of(m, m->clock.n + 1 - p->ticks);
    *h = m->plan->times.multirate ? p->step : m->clock.h;
}

void crdi_member_run(crd_master* m, crdi_member* p)
{
    double t, h;
    crdi_member_step(m, p, &t, &h);
    p->run->status = p->run->parts > 1 || p->ports ? run_parts(m, p, t, h)
                     : m->tuning.measure           ? run_measured(m, p, t, h)
                                                   : run_member(m, p, t, h, false);
    crdi_crash_check_child(m);
    p->run->stamp = m->clock.n + 1;
}

bool crdi_member_is_due(const crd_master* m, int member)
{
    if (m->plan->iterated && crdi_iteration_skips(m, &m->plan->members[member])) { return false; }
    return !m->plan->times.multirate || (m->clock.n + 1) % m->plan->members[member].ticks == 0;
}

bool crdi_member_lets_pass(crd_master* m, int member, const char* output, double t, double y)
{
    const crdi_member* p = &m->plan->members[member];
    if (!isinf(y) && !p->unit->spec->allow_nan) { return false; }
    if (p->run->gave_none) { return true; }
    p->run->gave_none = true;
    crdi_log(m->log, CRD_LOG_WARNING,
             "unit '%s': output '%s' is %s at %g s, and passes: what is worked out from it is not "
             "known",
             p->unit->name, output, isinf(y) ? "infinite" : "not a number (NaN)", t);
    return true;
}
