// Steps that are repeated until inputs and outputs fit together (waveform iteration).
//
// The unknowns x are the samples at the end of the step of all flows whose source has not advanced
// when the target's step begins: all of them in Jacobi order, those against the order in
// Gauss-Seidel. From the known start and the guessed end each input is reconstructed (Hermite); one
// sweep over all units makes g(x) of it. The step is done when g(x) = x within the tolerance.
// Units that cannot restore their state are stepped once, in the first sweep, and then are what
// they are.
#include "master/master.h"

#include <math.h>
#include <stdio.h>

typedef struct crdi_iteration {
    int* flows; // those with unknowns
    int count, n;
    double *x, *gx;    // values and derivatives, times powers of the step, in tolerances
    const char* worst; // run: input with the largest residual of the last sweep
    crd_accel* accel;
    bool active; // run: inputs come from the guess
    bool failed; // run: the step is made explicitly, as if nothing had been iterated
    crd_iteration_report report;
} crdi_iteration;

void crdi_iteration_moving(crd_master* m, crdi_note_moving* note, void* user)
{
    if (!m->iteration) { return; }
    note(user, (const void*)&m->iteration->worst);
    note(user, (const void*)&m->iteration->report.failed_flow);
}

bool crdi_iteration_skips(const crd_master* m, const crdi_member* p)
{
    return m->iteration && m->iteration->active && !crdi_member_saves(p);
}

bool crdi_iteration_guesses(const crd_master* m)
{
    return m->iteration && m->iteration->active && !m->iteration->failed;
}

bool crdi_iteration_fits(const crd_master* m)
{
    return m->iteration && !m->iteration->failed;
}

const crd_iteration_report* crdi_iteration_get_report(const crd_master* m)
{
    return m->iteration ? &m->iteration->report : NULL;
}

// ---- plan --------------------------------------------------------------------------------------

static int phase_of(const crdi_plan* plan, int member)
{
    for (int i = 0; i < plan->phase_count; i++) {
        const crdi_phase* p = &plan->phases[i];
        for (int k = 0; k < p->batch_count; k++) {
            if (plan->batch[p->batch_first + k] == member) { return i; }
        }
    }
    return 0;
}

// The source is there first, or never comes back: nothing is to be guessed.
static bool iterate_is_known(const crdi_plan* plan, const crdi_prediction* f)
{
    return !crdi_member_saves(f->source) || !crdi_member_saves(f->target) ||
           (!f->of->early && phase_of(plan, f->of->from.member) < phase_of(plan, f->of->to.member));
}

static int unknowns(const crdi_prediction* f)
{
    return f->rates[1] ? 3 : f->rates[0] ? 2 : 1;
}

static crd_status name_explicit(crdi_plan* plan, crdi_iteration* it)
{
    const char* names = "";
    int able = 0;
    for (int i = 0; i < plan->member_count && names; i++) {
        const crd_unit* u = plan->members[i].unit;
        if (crdi_member_saves(&plan->members[i])) {
            able++;
            continue;
        }
        names = crdi_arena_format(plan->arena, "%s%s%s", names, names[0] ? ", " : "", u->name);
    }
    if (!names) { return CRD_E_MEMORY; }
    it->report.explicit_units = names;
    if (able) { return CRD_OK; }
    char at[512];
    return crdi_fail(plan->ctx, CRD_E_UNSUPPORTED,
                     "%srun.iterate repeats steps, but no unit can restore its state (%s): leave "
                     "out 'iterate'",
                     crdi_where(plan->sys->run.iterate.place, at, sizeof at), names);
}

static crd_status iterate_check(crdi_plan* plan)
{
    char at[512];
    const crd_iterate_spec* spec = &plan->sys->run.iterate;
    if (!(spec->tolerance > 0) || !isfinite(spec->tolerance)) {
        return crdi_fail(plan->ctx, CRD_E_RANGE, "%srun.iterate.tolerance is %g, expected > 0",
                         crdi_where(spec->place, at, sizeof at), spec->tolerance);
    }
    if (spec->sweeps < 2) {
        return crdi_fail(plan->ctx, CRD_E_RANGE, "%srun.iterate.sweeps is %d, expected 2 or more",
                         crdi_where(spec->place, at, sizeof at), spec->sweeps);
    }
    for (int i = 0; plan->times.multirate && i < plan->member_count; i++) {
        const crdi_member* p = &plan->members[i];
        if (p->ticks == 1) { continue; }
        return crdi_fail(plan->ctx, CRD_E_UNSUPPORTED,
                         "%srun.iterate needs one step for all units, but unit '%s' has one of "
                         "%g s: with 'control' units make several steps in one of the run",
                         crdi_where(spec->place, at, sizeof at), p->unit->name, p->step);
    }
    return CRD_OK;
}

crd_status crdi_iteration_plan(crdi_plan* plan, crd_master* m)
{
    crd_status st = CRD_OK;
    if (!plan->iterated) { return CRD_OK; }
    CRD_TRY(iterate_check(plan));
    crdi_iteration* it = crdi_arena_new(plan->arena, 1, sizeof *it);
    if (!it) { return CRD_E_MEMORY; }
    m->iteration = it;
    it->report = (crd_iteration_report){.on = true, .failed_time = NAN, .failed_flow = ""};
    CRD_TRY(name_explicit(plan, it));
    it->flows =
        crdi_arena_new(plan->arena, (size_t)m->connections.prediction_count, sizeof *it->flows);
    if (!it->flows) { return CRD_E_MEMORY; }
    for (int i = 0; i < m->connections.prediction_count; i++) {
        crdi_prediction* f = &m->connections.predictions[i];
        if (iterate_is_known(plan, f)) { continue; }
        f->guessed = true;
        it->flows[it->count++] = i;
        it->n += unknowns(f);
    }
    plan->rolls_back = true;
    if (it->n == 0) { return CRD_OK; } // no loop: one sweep does it
    it->x = crdi_arena_new(plan->arena, (size_t)it->n, sizeof *it->x);
    it->gx = crdi_arena_new(plan->arena, (size_t)it->n, sizeof *it->gx);
    if (!it->x || !it->gx) { return CRD_E_MEMORY; }
    crd_accel_options o = crd_accel_defaults();
    o.method = plan->sys->run.iterate.acceleration;
    o.n = it->n;
    CRD_TRY(crdi_held_failed(plan, crd_accel_create(plan->held, &o, &it->accel)));
fail:
    return st;
}

void crdi_iteration_free(crd_master* m)
{
    if (m->iteration) { crd_accel_destroy(m->iteration->accel); }
}

// ---- the run -----------------------------------------------------------------------------------

static double tolerance_of(const crd_master* m, const crdi_prediction* f)
{
    return f->tolerance > 0 ? f->tolerance
                            : m->plan->sys->run.iterate.tolerance * crdi_prediction_scale(f);
}

// A derivative of order d moves the input by its d-th power of the step.
static void iterate_gather(const crd_master* m, const crdi_iteration* it, double* x)
{
    for (int i = 0; i < it->count; i++) {
        crdi_prediction* f = &m->connections.predictions[it->flows[i]];
        const crd_sample s = crdi_prediction_sample(f);
        double unit = 1 / tolerance_of(m, f);
        for (int d = 0; d < unknowns(f); d++, unit *= m->clock.h) {
            *x++ = s.y[d] * unit;
        }
    }
}

static void scatter(crd_master* m, const crdi_iteration* it, const double* x)
{
    for (int i = 0; i < it->count; i++) {
        crdi_prediction* f = &m->connections.predictions[it->flows[i]];
        double unit = tolerance_of(m, f);
        f->guess = (crd_sample){.order = unknowns(f) - 1};
        for (int d = 0; d <= f->guess.order; d++, unit /= m->clock.h) {
            f->guess.y[d] = *x++ * unit;
        }
    }
}

static const char* worst_flow(const crd_master* m, const crdi_iteration* it)
{
    const crdi_prediction* worst = NULL;
    double most = -1;
    const double *x = it->x, *gx = it->gx;
    for (int i = 0; i < it->count; i++) {
        const crdi_prediction* f = &m->connections.predictions[it->flows[i]];
        for (int d = 0; d < unknowns(f); d++, x++, gx++) {
            if (!(fabs(*gx - *x) <= most)) {
                most = fabs(*gx - *x);
                worst = f;
            }
        }
    }
    return worst ? worst->label : "";
}

static void note_failure(crd_master* m, crdi_iteration* it, const double* residuals, int count)
{
    crd_iteration_report* r = &it->report;
    if (r->failed++ > 0) { return; }
    r->failed_time =
        m->clock.n ? crdi_time_of(m, m->clock.n + 1) : m->plan->times.start + m->clock.h;
    r->residual_count = count < CRD_RESIDUALS ? count : CRD_RESIDUALS;
    for (int i = 0; i < r->residual_count; i++) {
        r->residuals[i] = residuals[i];
    }
    r->failed_flow = it->worst;
}

static crd_status __attribute__((cold, noinline))
fail_iteration(crd_master* m, const crdi_iteration* it)
{
    char history[CRD_RESIDUALS * 12] = "";
    size_t at = 0;
    const crd_iteration_report* r = &it->report;
    for (int i = 0; i < r->residual_count; i++) {
        const int k =
            snprintf(history + at, sizeof history - at, "%s%.2g", at ? ", " : "", r->residuals[i]);
        at += k > 0 && (size_t)k < sizeof history - at ? (size_t)k : 0;
    }
    m->life.end = CRD_END_FAILED;
    return crdi_fail(m->ctx, CRD_E_CONVERGENCE,
                     "the iteration of the step to t = %.10g did not converge in %d sweeps: worst "
                     "over %s; residuals in tolerances: %s",
                     r->failed_time, m->plan->sys->run.iterate.sweeps, r->failed_flow, history);
}

crd_status crdi_iteration_step(crd_master* m)
{
    crdi_iteration* it = m->iteration;
    const crd_iterate_spec* spec = &m->plan->sys->run.iterate;
    crd_status st = CRD_OK;
    double residuals[CRD_RESIDUALS] = {0}, residual = INFINITY;
    int sweeps = 1;
    CRD_TRY(crdi_step_sweep(m)); // predicted
    it->report.steps++;
    if (it->n == 0) {
        it->report.sweeps++;
        it->report.most = 1;
        return CRD_OK;
    }
    iterate_gather(m, it, it->x);
    crd_accel_start(it->accel);
    it->active = true;
    for (; sweeps < spec->sweeps && residual > 1; sweeps++) {
        scatter(m, it, it->x);
        CRD_TRY(crdi_rollback_restore(m));
        CRD_TRY(crdi_step_sweep(m));
        iterate_gather(m, it, it->gx);
        it->worst = worst_flow(m, it);
        residual = crd_accel_step(it->accel, it->x, it->gx);
        if (sweeps <= CRD_RESIDUALS) { residuals[sweeps - 1] = residual; }
    }
    it->report.sweeps += sweeps;
    it->report.most = sweeps > it->report.most ? sweeps : it->report.most;
    if (!(residual <= 1)) {
        note_failure(m, it, residuals, sweeps - 1);
        if (spec->stop) {
            st = fail_iteration(m, it);
            goto fail;
        }
        CRD_TRY(crdi_rollback_restore(m));
        it->failed = true;
        CRD_TRY(crdi_step_sweep(m));
    }
fail:
    it->active = it->failed = false;
    return st;
}
