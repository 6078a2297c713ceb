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
    crd_iteration_report report;
} crdi_iteration;

static bool can_save(const crdi_member* p)
{
    return p->unit->info.flags & CRD_UNIT_CAN_SAVE;
}

bool crdi_iteration_skips(const crd_master* m, const crdi_member* p)
{
    return m->iteration && m->iteration->active && !can_save(p);
}

bool crdi_iteration_guesses(const crd_master* m)
{
    return m->iteration && m->iteration->active;
}

const crd_iteration_report* crdi_iteration_get_report(const crd_master* m)
{
    return m->iteration ? &m->iteration->report : NULL;
}

// ---- plan --------------------------------------------------------------------------------------

static int phase_of(const crd_master* m, int member)
{
    for (int i = 0; i < m->phase_count; i++) {
        const crdi_phase* p = &m->phases[i];
        for (int k = 0; k < p->batch_count; k++) {
            if (m->batch[p->batch_first + k] == member) { return i; }
        }
    }
    return 0;
}

static bool is_early(const crd_master* m, const crdi_flow* f)
{
    for (int i = 0; i < m->link_count; i++) {
        const crdi_link* k = &m->links[i];
        if (k->spec == f->spec && k->to_element == f->to_element &&
            k->to_variable == f->to_variable) {
            return k->early;
        }
    }
    return true;
}

// The source is there first, or never comes back: nothing is to be guessed.
static bool is_known(const crd_master* m, const crdi_flow* f)
{
    const crdi_member *a = &m->members[f->source], *b = &m->members[f->target];
    return !can_save(a) || !can_save(b) ||
           (!is_early(m, f) && phase_of(m, f->source) < phase_of(m, f->target));
}

static int unknowns(const crdi_flow* f)
{
    return f->rates[1] ? 3 : f->rates[0] ? 2 : 1;
}

static crd_status name_explicit(crd_master* m, crdi_iteration* it)
{
    const char* names = "";
    int able = 0;
    for (int i = 0; i < m->member_count && names; i++) {
        const crd_unit* u = m->members[i].unit;
        if (can_save(&m->members[i])) {
            able++;
            continue;
        }
        names = crdi_arena_format(&m->arena, "%s%s%s", names, names[0] ? ", " : "", u->name);
    }
    if (!names) { return CRD_E_MEMORY; }
    it->report.explicit_units = names;
    if (able) { return CRD_OK; }
    char at[512];
    return crdi_fail(m->ctx, CRD_E_UNSUPPORTED,
                     "%srun.iterate repeats steps, but no unit can restore its state (%s): leave "
                     "out 'iterate'",
                     crdi_where(m->sys->run.iterate.place, at, sizeof at), names);
}

static crd_status check(crd_master* m)
{
    char at[512];
    const crd_iterate_spec* spec = &m->sys->run.iterate;
    if (!(spec->tolerance > 0) || !isfinite(spec->tolerance)) {
        return crdi_fail(m->ctx, CRD_E_RANGE, "%srun.iterate.tolerance is %g, expected > 0",
                         crdi_where(spec->place, at, sizeof at), spec->tolerance);
    }
    if (spec->sweeps < 2) {
        return crdi_fail(m->ctx, CRD_E_RANGE, "%srun.iterate.sweeps is %d, expected 2 or more",
                         crdi_where(spec->place, at, sizeof at), spec->sweeps);
    }
    for (int i = 0; m->multirate && i < m->member_count; i++) {
        const crdi_member* p = &m->members[i];
        if (p->ticks == 1) { continue; }
        return crdi_fail(m->ctx, CRD_E_UNSUPPORTED,
                         "%srun.iterate needs one step for all units, but unit '%s' has one of "
                         "%g s: with 'control' units make several steps in one of the run",
                         crdi_where(spec->place, at, sizeof at), p->unit->name, p->step);
    }
    return CRD_OK;
}

crd_status crdi_master_plan_iteration(crd_master* m)
{
    crd_status st = CRD_OK;
    if (!m->iterated) { return CRD_OK; }
    CRD_TRY(check(m));
    crdi_iteration* it = crdi_arena_new(&m->arena, 1, sizeof *it);
    if (!it) { return CRD_E_MEMORY; }
    m->iteration = it;
    it->report = (crd_iteration_report){.on = true, .failed_time = NAN, .failed_flow = ""};
    CRD_TRY(name_explicit(m, it));
    it->flows = crdi_arena_new(&m->arena, (size_t)m->flow_count, sizeof *it->flows);
    if (!it->flows) { return CRD_E_MEMORY; }
    for (int i = 0; i < m->flow_count; i++) {
        crdi_flow* f = &m->flows[i];
        if (is_known(m, f)) { continue; }
        f->guessed = true;
        it->flows[it->count++] = i;
        it->n += unknowns(f);
    }
    m->rolls_back = true;
    if (it->n == 0) { return CRD_OK; } // no loop: one sweep does it
    it->x = crdi_arena_new(&m->arena, (size_t)it->n, sizeof *it->x);
    it->gx = crdi_arena_new(&m->arena, (size_t)it->n, sizeof *it->gx);
    if (!it->x || !it->gx) { return CRD_E_MEMORY; }
    crd_accel_options o = crd_accel_defaults();
    o.method = m->sys->run.iterate.acceleration;
    o.n = it->n;
    CRD_TRY(crd_accel_create(m->ctx, &o, &it->accel));
fail:
    return st;
}

void crdi_master_free_iteration(crd_master* m)
{
    if (m->iteration) { crd_accel_destroy(m->iteration->accel); }
}

// ---- the run -----------------------------------------------------------------------------------

static double tolerance_of(const crd_master* m, const crdi_flow* f)
{
    return f->tolerance > 0 ? f->tolerance : m->sys->run.iterate.tolerance * crdi_flow_scale(f);
}

// A derivative of order d moves the input by its d-th power of the step.
static void gather(const crd_master* m, const crdi_iteration* it, double* x)
{
    for (int i = 0; i < it->count; i++) {
        const crdi_flow* f = &m->flows[it->flows[i]];
        const crd_sample s = crdi_flow_sample(f);
        double unit = 1 / tolerance_of(m, f);
        for (int d = 0; d < unknowns(f); d++, unit *= m->h) {
            *x++ = s.y[d] * unit;
        }
    }
}

static void scatter(crd_master* m, const crdi_iteration* it, const double* x)
{
    for (int i = 0; i < it->count; i++) {
        crdi_flow* f = &m->flows[it->flows[i]];
        double unit = tolerance_of(m, f);
        f->guess = (crd_sample){.order = unknowns(f) - 1};
        for (int d = 0; d <= f->guess.order; d++, unit /= m->h) {
            f->guess.y[d] = *x++ * unit;
        }
    }
}

static const char* worst_flow(const crd_master* m, const crdi_iteration* it)
{
    const crdi_flow* worst = NULL;
    double most = -1;
    const double *x = it->x, *gx = it->gx;
    for (int i = 0; i < it->count; i++) {
        const crdi_flow* f = &m->flows[it->flows[i]];
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
    r->failed_time = m->n ? crdi_master_time_of(m, m->n + 1) : m->start + m->h;
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
    m->end = CRD_END_FAILED;
    return crdi_fail(m->ctx, CRD_E_CONVERGENCE,
                     "the iteration of the step to t = %.10g did not converge in %d sweeps: worst "
                     "over %s; residuals in tolerances: %s",
                     r->failed_time, m->sys->run.iterate.sweeps, r->failed_flow, history);
}

crd_status crdi_master_iterate(crd_master* m)
{
    crdi_iteration* it = m->iteration;
    const crd_iterate_spec* spec = &m->sys->run.iterate;
    crd_status st = CRD_OK;
    double residuals[CRD_RESIDUALS] = {0}, residual = INFINITY;
    int sweeps = 1;
    CRD_TRY(crdi_master_sweep(m)); // predicted
    it->report.steps++;
    if (it->n == 0) {
        it->report.sweeps++;
        it->report.most = 1;
        return CRD_OK;
    }
    gather(m, it, it->x);
    crd_accel_start(it->accel);
    it->active = true;
    for (; sweeps < spec->sweeps && residual > 1; sweeps++) {
        scatter(m, it, it->x);
        CRD_TRY(crdi_master_bring_back(m));
        CRD_TRY(crdi_master_sweep(m));
        gather(m, it, it->gx);
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
        CRD_TRY(crdi_master_bring_back(m));
        for (int i = 0; i < it->count; i++) {
            m->flows[it->flows[i]].guessed = false;
        }
        CRD_TRY(crdi_master_sweep(m));
        for (int i = 0; i < it->count; i++) {
            m->flows[it->flows[i]].guessed = true;
        }
    }
fail:
    it->active = false;
    return st;
}
