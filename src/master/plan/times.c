// The grid of times: start, stop, the tick, and how many ticks each unit's step has.
#include "master/plan/plan.h"

#include <float.h>
#include <math.h>

static const double MOST_TICKS = 9e15; // a double counts as far
static const double OPEN_TICKS = 1e13; // of a run without end: 300 years of 1 ms

double crdi_common_tick(double a, double b)
{
    double x = fmax(a, b), y = fmin(a, b);
    const double least = 1e-6 * y;
    while (y > least) {
        const double r = x - y * round(x / y);
        x = y;
        y = fabs(r) < 1e-9 * a ? 0 : fabs(r);
    }
    if (y != 0) { return 0; }
    const double longer = fmax(a, b);
    return longer / round(longer / x); // rid of the rounding errors of the remainders
}

static double first_given(double a, double b)
{
    return isnan(a) ? b : a;
}

// Start, stop and step: from the description, else from the first unit that says something.
static void choose_times(crdi_plan* plan)
{
    const crd_run_spec* run = &plan->sys->run;
    double start = run->start, stop = run->stop, step = run->step, tolerance = run->tolerance;
    double length = (double)NAN; // of the experiment that a unit has in mind
    for (int i = 0; i < plan->member_count; i++) {
        const crd_unit_info* info = &plan->members[i].unit->info;
        start = first_given(start, info->start);
        stop = first_given(stop, info->stop);
        length = first_given(length, info->stop - first_given(info->start, 0));
        tolerance = first_given(tolerance, info->tolerance);
        if (isnan(run->step) && info->step > 0 && !(step <= info->step)) { step = info->step; }
    }
    plan->times.start = first_given(start, 0);
    plan->times.stop = first_given(stop, plan->times.start + 1);
    if (isnan(run->stop) && plan->times.stop <= plan->times.start && length > 0) {
        plan->times.stop = plan->times.start + length; // it began later than the unit thought of
    }
    plan->times.tick = first_given(step, (plan->times.stop - plan->times.start) / 1000);
    if (plan->opt.open_end) {
        plan->times.stop = plan->times.start + OPEN_TICKS * plan->times.tick;
    }
    plan->times.tolerance = tolerance;
}

static crd_status times_check_times(crdi_plan* plan)
{
    if (!isfinite(plan->times.start)) {
        return crdi_fail(plan->ctx, CRD_E_RANGE, "start time is %g, expected a number",
                         plan->times.start);
    }
    if (!isfinite(plan->times.stop) || !(plan->times.stop > plan->times.start)) {
        return crdi_fail(plan->ctx, CRD_E_RANGE,
                         "stop time is %g and start time %g: the stop must come after the start",
                         plan->times.stop, plan->times.start);
    }
    if (!(plan->times.tick > 0) || !isfinite(plan->times.tick)) {
        return crdi_fail(plan->ctx, CRD_E_RANGE, "step is %g, expected > 0", plan->times.tick);
    }
    return CRD_OK;
}

static crd_status member_ticks(crdi_plan* plan)
{
    for (int i = 0; i < plan->member_count; i++) {
        crdi_member* p = &plan->members[i];
        const double fixed = p->unit->info.fixed_step;
        if (fixed > 0 && fabs(p->step - fixed) > 1e-9 * fixed) {
            return crdi_fail(
                plan->ctx, CRD_E_RANGE,
                "unit '%s' steps by %g s only, but its step is %g s: give it 'step: %g'",
                p->unit->name, fixed, p->step, fixed);
        }
        const double unit = p->unit->info.step_unit, times = unit > 0 ? round(p->step / unit) : 1;
        if (unit > 0 && (times < 1 || fabs(p->step - times * unit) > 1e-6 * unit)) {
            return crdi_fail(plan->ctx, CRD_E_RANGE,
                             "unit '%s' steps by multiples of %g s, but its step is %g s: give it "
                             "'step: %g'",
                             p->unit->name, unit, p->step, unit);
        }
        if (p->step > (plan->times.stop - plan->times.start) * (1 + 1e-9) &&
            p->step > plan->times.tick) {
            crdi_log(plan->log, CRD_LOG_WARNING,
                     "unit '%s' never steps: its step of %g s is longer than the run of %g s",
                     p->unit->name, p->step, plan->times.stop - plan->times.start);
        }
        p->ticks = (int64_t)llround(fmin(p->step / plan->times.tick, MOST_TICKS));
        if (p->ticks == 1) { p->step = plan->times.tick; } // to the last bit, as on the short way
        plan->times.multirate = plan->times.multirate || p->ticks != 1;
        if (p->ticks > plan->times.longest_ticks) { plan->times.longest_ticks = p->ticks; }
    }
    return CRD_OK;
}

// The tick that all units' steps are multiples of.
static crd_status choose_tick(crdi_plan* plan)
{
    const double run_step = plan->times.tick;
    for (int i = 0; i < plan->member_count; i++) {
        crdi_member* p = &plan->members[i];
        p->step = p->unit->spec->step > 0 ? p->unit->spec->step : run_step;
        const double tick = i ? crdi_common_tick(plan->times.tick, p->step) : p->step;
        if (!(tick > 0)) {
            return crdi_fail(plan->ctx, CRD_E_RANGE,
                             "unit '%s': its step %g s and the others' do not fit on one grid; "
                             "choose steps that are multiples of a common tick",
                             p->unit->name, p->step);
        }
        plan->times.tick = tick;
    }
    const double most = fmax(fabs(plan->times.start), fabs(plan->times.stop));
    if (plan->times.tick < 2 * DBL_EPSILON * most) {
        return crdi_fail(plan->ctx, CRD_E_RANGE,
                         "step %g s is too short at times of %g s: a number of 64 bits cannot tell "
                         "them apart",
                         plan->times.tick, most);
    }
    if ((plan->times.stop - plan->times.start) / plan->times.tick > MOST_TICKS) {
        return crdi_fail(plan->ctx, CRD_E_RANGE, "%g steps of %g s are too many",
                         (plan->times.stop - plan->times.start) / plan->times.tick,
                         plan->times.tick);
    }
    return CRD_OK;
}

static bool all_vary_step(const crdi_plan* plan)
{
    bool all = !plan->times.multirate;
    for (int i = 0; i < plan->member_count; i++) {
        all = all && (plan->members[i].unit->info.flags & CRD_UNIT_CAN_VARY_STEP);
    }
    return all;
}

// How many ticks, and what happens to the rest of a tick before the stop time.
static crd_status count_ticks(crdi_plan* plan)
{
    const double ticks = (plan->times.stop - plan->times.start) / plan->times.tick;
    // What is no rest but rounding: of the step, times the number of steps, and of the times.
    const double most = fmax(fabs(plan->times.start), fabs(plan->times.stop));
    const double slack =
        1e-9 * fmax(1, fmin(ticks, 1e6)) + 2 * DBL_EPSILON * most / plan->times.tick;
    int64_t n = (int64_t)floor(ticks + slack);
    const double rest = plan->times.stop - (plan->times.start + (double)n * plan->times.tick);
    plan->times.last_tick = plan->times.tick;
    if (rest > slack * plan->times.tick) {
        if (all_vary_step(plan)) {
            plan->times.last_tick = rest;
            n++;
        } else {
            plan->times.stop = plan->times.start + (double)n * plan->times.tick;
            crdi_log(plan->log, CRD_LOG_WARNING,
                     "the stop time is not on the grid of steps and not all units can take a "
                     "shorter step: the run ends at %.10g s",
                     plan->times.stop);
        }
    }
    if (n < 1) {
        return crdi_fail(plan->ctx, CRD_E_RANGE, "step %g s is longer than the run",
                         plan->times.tick);
    }
    plan->times.tick_count = n;
    return CRD_OK;
}

// Rows are taken at ticks: an interval between two of them takes the nearer.
static void choose_rows(crdi_plan* plan)
{
    const double interval = plan->sys->results.interval;
    const double every = fmin(interval / plan->times.tick, (double)plan->times.tick_count);
    plan->times.row_every = every > 1 ? (int64_t)llround(every) : 1;
    const double real = (double)plan->times.row_every * plan->times.tick;
    if (interval > 0 && interval / plan->times.tick <= (double)plan->times.tick_count &&
        fabs(real - interval) > 1e-6 * interval) {
        crdi_log(plan->log, CRD_LOG_WARNING,
                 "the interval of the results, %g s, is not a multiple of the step %g s: rows come "
                 "every %g s",
                 interval, plan->times.tick, real);
    }
}

// A controlled run has no grid: every unit advances in every tick, however long it is.
static void plan_free(crdi_plan* plan)
{
    for (int i = 0; i < plan->member_count; i++) {
        plan->members[i].ticks = 1;
    }
    plan->times.longest_ticks = plan->times.row_every = 1;
    plan->times.tick_count = INT64_MAX;
    plan->times.last_tick = plan->times.tick;
}

crd_status crdi_plan_times(crdi_plan* plan)
{
    crd_status st = CRD_OK;
    choose_times(plan);
    CRD_TRY(times_check_times(plan));
    if (plan->controlled) {
        plan_free(plan);
        return CRD_OK;
    }
    CRD_TRY(choose_tick(plan));
    CRD_TRY(member_ticks(plan));
    CRD_TRY(count_ticks(plan));
    choose_rows(plan);
fail:
    return st;
}
