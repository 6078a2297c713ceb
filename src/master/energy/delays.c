// How late the signals of a bond are around its loop: mu is half of that in steps (Rodriguez 2021,
// 5.5; (5.42), (5.43)). From what the master knows of steps, predictions, schemes, and from what is
// measured of channels and benches. Corrections need it; the balance does not.
#include "master/master.h"

#include <math.h>
#include <string.h>

static const crd_unit* unit_of(const crdi_plan* plan, int member)
{
    return plan->members[member].unit;
}

static bool is_refreshed(const crdi_plan* plan, int member)
{
    return crdi_refresh_has(plan, member) &&
           crd_defect_scheme_refreshes(plan->sys->run.feedthrough);
}

// An element that holds leaves the latency as it is; the others predict what is not there yet.
static bool predicts_latency(const crdi_coupled* c)
{
    const crd_coupling_options* o = &c->estimators[0].description->options;
    return !(o->algorithm == CRD_ALGORITHM_LINEAR && o->design.method == CRD_METHOD_ZOH);
}

// A line or more over the step, not a constant. Elements that are not linear hold.
static bool gets_slope(const crdi_plan* plan, const crdi_connection* k)
{
    if (!k->coupled) { return k->prediction && k->prediction->slope[0]; }
    const crd_coupling_options* o = &k->coupled->estimators[0].description->options;
    return k->slope && plan->members[k->to.member].unit->info.max_input_order > 0 &&
           predicts_latency(k->coupled) &&
           (o->algorithm == CRD_ALGORITHM_LINEAR || o->reconstruction == CRD_RECONSTRUCT_SMOOTH);
}

// How old the input is, at the end of a step, that an output with feedthrough was worked out with.
// `h` is the target's step, H the longer one of both.
static double age_of(const crdi_plan* plan, const crdi_connection* k, double h, double H)
{
    if (is_refreshed(plan, k->to.member) || (k->coupled && gets_slope(plan, k))) { return 0; }
    switch (k->spec->coupling ? CRD_PREDICTION_HOLD : k->spec->predict) {
    case CRD_PREDICTION_HOLD:
        return H;
    case CRD_PREDICTION_LINEAR:
    case CRD_PREDICTION_QUADRATIC: // by value: that of the beginning of the step
        return gets_slope(plan, k) ? 0 : h;
    default: // by value: the mean over the step
        return gets_slope(plan, k) ? 0 : h / 2;
    }
}

// Explicit units of one step per exchange take their inputs as of its beginning. One that is solved
// inside of a step feels a held input half a step late; that is known of Model Exchange only.
static double inner_delay(const crdi_plan* plan, int member, double h)
{
    const crd_unit* u = unit_of(plan, member);
    const bool solved =
        u->info.kind && strstr(u->info.kind, " ME") && u->spec->solver.method != CRD_SOLVER_EULER;
    return solved ? h / 2 : 0;
}

// How late an input is on average over the target's step.
static double lag_of(const crdi_plan* plan, const crdi_connection* k, double h, double H)
{
    if (gets_slope(plan, k)) { return 0; }
    switch (k->spec->coupling ? CRD_PREDICTION_HOLD : k->spec->predict) {
    case CRD_PREDICTION_HOLD:
        return (H - h) / 2 + inner_delay(plan, k->to.member, h);
    case CRD_PREDICTION_LINEAR:
    case CRD_PREDICTION_QUADRATIC:
        return inner_delay(plan, k->to.member, h);
    default: // the mean
        return 0;
    }
}

static bool is_iterated(const crdi_plan* plan, const crdi_connection* k)
{
    const uint32_t both =
        unit_of(plan, k->from.member)->info.flags & unit_of(plan, k->to.member)->info.flags;
    return plan->iterated && both & CRD_UNIT_CAN_SAVE && k->spec->predict != CRD_PREDICTION_HOLD;
}

// The self delay of the way from an output with feedthrough through the other unit and back to it:
// crd_bond_delay, and beyond it what predictions, refreshed outputs and Gauss-Seidel take off.
//   action: from the unit with feedthrough to the other; flow: back from there
static double self_delay(const crdi_plan* plan, const crdi_connection* action,
                         const crdi_connection* flow, double h_df, double h_ndf)
{
    if (is_iterated(plan, action) && is_iterated(plan, flow)) { return 0; }
    const double H = fmax(h_df, h_ndf);
    const double turn = action->early && flow->early ? 0 : fmin(h_df, h_ndf);
    return fmax(age_of(plan, flow, h_df, H) + lag_of(plan, action, h_ndf, H) - turn, 0);
}

static int64_t common_ticks(int64_t a, int64_t b)
{
    int64_t x = a, y = b;
    while (y) {
        const int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b;
}

// ---- late signals ------------------------------------------------------------------------------

bool crdi_member_is_far(const crd_unit* u)
{
    return (u->info.flags & (CRD_UNIT_DATES_OUTPUTS | CRD_UNIT_IN_REAL_TIME)) != 0;
}

static bool may_be_late(const crdi_plan* plan, const crdi_connection* k)
{
    const crd_unit* u = plan->members[k->from.member].unit;
    const bool far = crdi_member_is_far(u);
    return k->coupled ? !predicts_latency(k->coupled) && (k->coupled->channel || far) : far;
}

// In real time a unit that does not date its outputs is known by the age of its data and, for the
// way to it, by half the time that requests take.
double crdi_member_age(crd_master* m, int member)
{
    const crd_unit* u = unit_of(m->plan, member);
    crd_link_stats link;
    if (u->info.flags & CRD_UNIT_DATES_OUTPUTS) {
        return isnan(u->made) ? 0 : fmax(0, m->clock.time - u->made);
    }
    if (!(u->info.flags & CRD_UNIT_IN_REAL_TIME) || !crdi_member_link(m, member, &link)) {
        return 0;
    }
    if (!isfinite(link.age)) { return 0; }
    return link.age + (isfinite(link.round_trip) ? 0.5 * link.round_trip : 0);
}

// s that what is given now is late: as the element counts it, or the age of a bench's data, which
// has the way to the bench in it.
static double lateness(crd_master* m, const crdi_connection* k)
{
    if (k->coupled) { return (double)k->coupled->k * k->coupled->interval; }
    return crdi_member_age(m, k->from.member);
}

void crdi_bond_find_mu(crdi_plan* plan, crdi_bond* p)
{
    const crdi_axis* x = &p->axes[0];
    const crdi_connection *there = x->action, *back = x->flow;
    const crdi_member *a = &plan->members[p->action_member], *b = &plan->members[p->flow_member];
    const double fa = (double)a->ticks, fb = (double)b->ticks;
    p->every = common_ticks(a->ticks, b->ticks);
    for (int i = 1; i < p->axis_count; i++) { // of a node
        for (int side = 0; side < 2; side++) {
            p->every = common_ticks(p->every, p->axes[i].ports[side].member->ticks);
        }
    }
    if (!isnan(p->spec->mu)) { return; }
    if (p->probing) { // f is fresh, but a held one is half a step late
        p->bond.mu = 0.25;
        return;
    }
    if (p->feeds) {
        const double delay = p->swapped ? self_delay(plan, back, there, fb, fa)
                                        : self_delay(plan, there, back, fa, fb);
        p->bond.mu = 0.5 * delay / (double)p->every;
    }
    p->prompt_mu = p->bond.mu;
    p->late[0] = may_be_late(plan, there);
    p->late[1] = may_be_late(plan, back);
    if (p->bond.mu == 0 && !p->late[0] && !p->late[1] && p->bond.correction != CRD_CORRECT_NONE &&
        p->bond.correction != CRD_CORRECT_BALANCE) {
        char at[512];
        crdi_log(plan->log, CRD_LOG_WARNING,
                 "%sbond '%s': nothing to correct: %s. If you know better, give it a 'mu:'",
                 crdi_where(p->spec->place, at, sizeof at), p->name,
                 p->feeds ? "the exchange has no delay that would add energy"
                          : "neither output follows an input from the other unit without delay");
    }
}

void crdi_bond_follow_delay(crd_master* m, crdi_bond* p, double h)
{
    if (!p->late[0] && !p->late[1]) { return; }
    const double late = (p->late[0] ? lateness(m, p->axes[0].action) : 0) +
                        (p->late[1] ? lateness(m, p->axes[0].flow) : 0);
    p->late_sum += late * h;
    p->late_time += h;
    p->bond.mu = p->prompt_mu + 0.5 * p->late_sum / p->late_time / h;
}
