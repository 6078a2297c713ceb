// What the numbers of a run mean, in a few sentences: what dominates, and what would help.
#include "master/verdict/judge.h"

#include "master/connection/paired.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// A held sine of angular frequency w has a relative defect of 0.4 w H: below a tenth there are 25
// samples in a period, and a prediction has something to follow.
#define SMOOTH 0.1
// A step that had to be this many times shorter is no advice.
#define MOST_REFINEMENT 1000.0
// Estimates are aimed a little below the goal.
#define MARGIN 0.9
// A connection with more than half of the sum of squares dominates.
#define DOMINANT 0.5
// Without rejection a controlled defect exceeds its tolerance by 3 to 6 now and then (steps are
// only corrected afterwards); beyond that the tolerance is not what was asked for.
#define WORST_DEFECT 5.0
// One step in a hundred at the floor is an event; more is a floor that is too high.
#define AT_FLOOR 0.01
// Jumps in this part of all steps: then it is jumps that make the defect.
#define OFTEN 0.01

double crdi_defect_goal(const crd_master* m)
{
    return m->plan->opt.defect_goal > 0 ? m->plan->opt.defect_goal : CRDI_DEFECT_GOAL;
}

double crdi_energy_goal(const crd_master* m)
{
    return m->plan->opt.energy_goal > 0 ? m->plan->opt.energy_goal : CRDI_ENERGY_GOAL;
}

// ---- words -------------------------------------------------------------------------------------

static void CRD_PRINTF(2, 3) say(crdi_judge* j, const char* format, ...)
{
    if (j->sentence_count == CRDI_ADVICE) { return; }
    char* text = j->texts[j->sentence_count];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(text, CRDI_SENTENCE, format, args);
    va_end(args);
    if (n >= CRDI_SENTENCE) { // cut at a whole character
        size_t end = CRDI_SENTENCE - 1;
        while (end > 0 && ((unsigned char)text[end - 1] & 0xC0) == 0x80) {
            end--;
        }
        text[end > 0 ? end - 1 : 0] = 0;
    }
    j->sentences[j->sentence_count++] = text;
}

typedef struct words {
    char text[40];
} words;

static words advice_percent(double x)
{
    words w;
    if (isinf(x)) {
        snprintf(w.text, sizeof w.text, "more than all");
    } else if (x >= 0.995 && x < 1e4) { // two digits, but no power of ten
        const double unit = pow(10, floor(log10(x) + 1));
        snprintf(w.text, sizeof w.text, "%.0f %%", unit * nearbyint(100 * x / unit));
    } else {
        snprintf(w.text, sizeof w.text, "%.2g %%", 100 * x);
    }
    return w;
}

static crdi_duration advice_seconds(double s)
{
    return crdi_duration_text(s, 3);
}

// To the next smaller number that is easy to say, and of which whole numbers make a second.
static double round_down(double x)
{
    static const double easy[] = {8, 5, 4, 2.5, 2, 1};
    const double power = pow(10, floor(log10(x) + 1e-9)), digits = x / power * (1 + 1e-9);
    size_t i = 0;
    while (i < 5 && easy[i] > digits) {
        i++;
    }
    return power * easy[i];
}

// ---- connections -------------------------------------------------------------------------------

static void say_broken(crdi_judge* j, const crd_master_report* r)
{
    if (r->flow_count == 0 || !isnan(r->flows[0].relative)) { return; }
    say(j,
        "the defect of %s -> %s is not a number: values on it were not finite, and nothing that "
        "came after them can be trusted",
        r->flows[0].from, r->flows[0].to);
}

bool crdi_verdict_blames_solvers(const crd_master* m)
{
    const crdi_judge* j = m->verdict.judge;
    const crd_master_report* r = crdi_verdict_last(m);
    for (int i = 0; j && i < r->flow_count; i++) {
        if (strcmp(r->flows[i].from, r->worst_part_of) != 0) { continue; }
        const crdi_end* from = &j->links[j->order[i]]->from;
        return crdi_estimate_blames_solvers(m, from->member, from->slot);
    }
    return false;
}

static bool is_of_late_pair(const crdi_judge* j, const crd_master_report* r)
{
    for (int i = 0; i < r->flow_count; i++) {
        if (strcmp(r->flows[i].from, r->worst_part_of) == 0) {
            const crdi_paired* w = j->links[j->order[i]]->paired;
            return w && crdi_paired_is_late(w);
        }
    }
    return false;
}

// Defects may be small and add up all the same.
static void say_error(const crd_master* m, crdi_judge* j, const crd_master_report* r)
{
    if (r->trust == CRD_TRUST_GOOD) { return; }
    if (j->grown >= 0) {
        const crd_flow_report* f = &r->flows[j->grown];
        say(j,
            "errors are not known, and the defect of %s has grown to %.2g times its RMS at the end "
            "of the run: the loop may be unstable with this step and prediction",
            f->from, f->max / f->rms);
    }
    if (j->grown >= 0 && !(r->worst_part >= CRDI_MUCH_PART)) { return; }
    if (j->at_worst) {
        say(j,
            "errors are not known: at worst the defects of %s have added up to %s of its RMS; a "
            "run with half the %s",
            r->worst_part_of, advice_percent(r->worst_part).text,
            is_of_late_pair(j, r) ? "delay would tell"
                                  : "step would tell (cardan compare --richardson)");
        return;
    }
    if (crdi_verdict_blames_solvers(m)) {
        say(j,
            "the estimated error of %s is %s of its RMS: what units' own solvers miss has added "
            "up, most of all "
            "that of '%s'; shorter steps of theirs, or another solver, would help",
            r->worst_part_of, advice_percent(r->worst_part).text, crdi_estimate_worst_solver(m));
        return;
    }
    say(j,
        "the estimated error of %s is %s of its RMS: defects have added up, and results are "
        "wrong by that much",
        r->worst_part_of, advice_percent(r->worst_part).text);
}

// In steps of the run that are controlled units of their own steps make several.
static bool has_several_rates(const crd_master* m)
{
    bool several = m->plan->times.multirate;
    for (int i = 0; m->plan->controlled && i < m->plan->member_count && !several; i++) {
        several = m->plan->members[i].unit->spec->step > 0;
    }
    return several;
}

// What makes the estimate too small, or too large, by more than a factor of two in one of ten runs
// and more: it takes outputs for smooth between samples, and all of a long step for known.
static void say_doubt(crd_master* m, const crd_master_report* r)
{
    if (!isfinite(r->worst_error)) { return; }
    const bool sequential = m->plan->sys->run.scheme == CRD_SCHEME_GAUSS_SEIDEL;
    const char* why = has_several_rates(m) && sequential ? "units have steps of their own" : "";
    bool jumps = false, predicts = false;
    for (int i = 0; i < r->flow_count; i++) {
        const bool held = !strcmp(r->flows[i].used, "hold");
        predicts = predicts || !held || m->plan->iterated || m->plan->controlled;
        jumps = jumps || r->flows[i].jumps > 0;
    }
    for (int i = 0; i < m->connections.prediction_count; i++) {
        jumps = jumps || *m->connections.predictions[i].event_count > 0;
    }
    if (predicts && jumps) { why = "signals jump inside of steps"; }
    if ((predicts || sequential) && crdi_guard_sees_rough(m)) {
        why = "samples do not follow the signals, which have noise or change too much in a step";
    }
    if (*why) {
        say(m->verdict.judge,
            "the estimated errors are doubtful, they may be wrong by more than a factor of two: "
            "%s; runs with shorter steps would tell (cardan compare --richardson)",
            why);
    }
}

// The worst whose defect is a number, -1: none.
static int advice_worst_of(const crd_master_report* r)
{
    int i = 0;
    while (i < r->flow_count && isnan(r->flows[i].relative)) {
        i++;
    }
    return i < r->flow_count ? i : -1;
}

static void say_dominant(crdi_judge* j, const crd_master_report* r, int worst, double goal)
{
    const crd_flow_report* f = &r->flows[worst];
    double sum = 0;
    int above = 0;
    for (int i = worst; i < r->flow_count; i++) {
        sum += r->flows[i].relative * r->flows[i].relative;
        above += r->flows[i].relative > goal;
    }
    const double share = f->relative * f->relative / sum;
    if (r->flow_count > 1 && share > DOMINANT) {
        say(j,
            "%s -> %s dominates: its defect is %s of the signal's scale, %.0f %% of the sum of "
            "squares of all",
            f->from, f->to, advice_percent(f->relative).text, 100 * share);
    } else if (above > 1) {
        say(j,
            "the largest defect is that of %s -> %s, %s of the signal's scale; %d of %d "
            "connections are above %s",
            f->from, f->to, advice_percent(f->relative).text, above, r->flow_count,
            advice_percent(goal).text);
    } else {
        say(j, "the defect of %s -> %s is %s of the signal's scale", f->from, f->to,
            advice_percent(f->relative).text);
    }
}

// What is put into the loop in every step adds up.
static void say_growth(crd_master* m, const crdi_connection* k, const crd_flow_report* f)
{
    if (m->verdict.judge->grown >= 0 || !crdi_judge_sees_growth(m, k, f)) { return; }
    say(m->verdict.judge,
        "it has grown to %.2g times its RMS at the end of the run: the loop may be unstable with "
        "this step and prediction",
        f->max / f->rms);
}

static bool advice_is_held(const crd_flow_report* f)
{
    return strcmp(f->used, crd_predictor_name(CRD_PREDICT_HOLD)) == 0;
}

// In a loop a prediction is promised only if the map of the loop says that it holds.
static bool says_predict(crd_master* m, const crdi_connection* k, const crd_flow_report* f)
{
    crdi_judge* j = m->verdict.judge;
    // A line or a parabola is of no use to a unit that takes its beginning and holds it.
    const bool line = f->predict == CRD_PREDICTION_LINEAR || f->predict == CRD_PREDICTION_QUADRATIC;
    const bool asked = f->predict == CRD_PREDICTION_HOLD || (line && f->hold_only);
    if (!asked || f->relative > SMOOTH) { return false; }
    const bool loop = j->loop[k->from.member] == j->loop[k->to.member];
    const crdi_guard_foresight seen = loop ? crdi_guard_foresee(m, k) : CRDI_GUARD_HOLDS;
    if (seen == CRDI_GUARD_GROWS) { return false; }
    say(j, "%s is held though it changes little in a step of %s: 'predict: auto' %s", f->from,
        advice_seconds(f->step).text,
        seen == CRDI_GUARD_HOLDS ? "would follow it" : "follows it as far as the loop allows");
    return seen == CRDI_GUARD_HOLDS;
}

// Held because nothing better was found.
static bool says_rough(crdi_judge* j, const crd_flow_report* f, int64_t steps)
{
    if (f->predict != CRD_PREDICTION_AUTO || !advice_is_held(f)) { return false; }
    const bool jumps = (double)f->jumps > OFTEN * (double)steps && f->jumps > 0;
    if (jumps) {
        say(j,
            "%s jumps (%lld times), so it was held: communication points at the jumps, or a "
            "smaller step, would help",
            f->from, (long long)f->jumps);
    } else {
        say(j,
            "%s was held because no prediction was better: it changes too much in a step of %s, "
            "or is noisy",
            f->from, advice_seconds(f->step).text);
    }
    return true;
}

static const crdi_member* slower(const crd_master* m, const crdi_connection* k)
{
    const crdi_member *a = &m->plan->members[k->from.member], *b = &m->plan->members[k->to.member];
    return b->step > a->step ? b : a;
}

// From the order: the defect falls with H to its power.
static void say_step(crd_master* m, const crdi_connection* k, const crd_flow_report* f, double goal,
                     bool predictable)
{
    crdi_judge* j = m->verdict.judge;
    const char* as_it_is = predictable ? "as it is, " : "";
    const double factor = pow(MARGIN * goal / f->relative, 1.0 / f->order);
    if (m->plan->controlled) {
        const double now = m->plan->sys->run.control.tolerance;
        const double tolerance = round_down(now * MARGIN * goal / f->relative);
        if (!(tolerance > 0) || !isfinite(tolerance)) { return; }
        say(j, "%s'control: { tolerance: %.3g }' instead of %.3g would bring %s to about %s",
            as_it_is, tolerance, now, f->to, advice_percent(f->relative * tolerance / now).text);
        return;
    }
    const crdi_member* p = slower(m, k);
    const bool both = m->plan->members[k->from.member].step == m->plan->members[k->to.member].step;
    if (!(factor * MOST_REFINEMENT >= 1) || p->unit->info.fixed_step > 0) { return; }
    const double step = round_down(f->step * factor);
    const double then = f->relative * pow(step / f->step, f->order);
    if (!(step > 0) || !(step < f->step)) { return; }
    if (m->plan->times.multirate && !both) {
        say(j, "%s'step: %s' for unit '%s' instead of %s would bring %s to about %s", as_it_is,
            advice_seconds(step).text, p->unit->name, advice_seconds(p->step).text, f->to,
            advice_percent(then).text);
    } else {
        say(j, "%sH = %s instead of %s would bring %s to about %s", as_it_is,
            advice_seconds(step).text, advice_seconds(f->step).text, f->to,
            advice_percent(then).text);
    }
}

// Cycles whose units can all go back. Iteration is for units that step together.
static void say_iterate(crd_master* m, const crdi_connection* k)
{
    crdi_judge* j = m->verdict.judge;
    const int loop = j->loop[k->from.member];
    if (m->plan->iterated || m->plan->times.multirate || loop != j->loop[k->to.member] ||
        !j->loop_saves[loop]) {
        return;
    }
    char names[200];
    size_t n = 0;
    names[0] = 0;
    for (int i = 0; i < m->plan->member_count; i++) {
        if (j->loop[i] != loop) { continue; }
        const int added = snprintf(names + n, sizeof names - n, "%s%s", n ? ", " : "",
                                   m->plan->members[i].unit->name);
        if (added < 0 || n + (size_t)added >= sizeof names) { // by whole names
            names[n] = 0;
            break;
        }
        n += (size_t)added;
    }
    say(j,
        "the units of this loop can all go back (%s): 'iterate: true' would make inputs and "
        "outputs fit in every step",
        names);
}

// A unit that only takes constants cannot follow anything inside its step.
static void say_derivatives(crd_master* m, const crdi_connection* k, const crd_flow_report* f)
{
    const crd_unit* u = m->plan->members[k->to.member].unit;
    if (!f->hold_only || u->info.max_input_order > 0 || u->spec->source != CRD_UNIT_FMU) { return; }
    say(m->verdict.judge,
        "'%s' (%s) takes constants only: as Model Exchange, or exported so that it takes "
        "derivatives of its inputs, it would follow %s inside a step",
        u->name, u->info.kind, f->to);
}

// ---- bonds -------------------------------------------------------------------------------------

// f depends on v at once, but is never evaluated with the v that has just come.
static const crd_unit* stale_unit(const crd_master* m, const crd_bond_report* b)
{
    for (int i = 0; i < m->energy.bond_count; i++) {
        const crdi_bond* p = &m->energy.bonds[i];
        if (p->action_name != b->action || p->flow_name != b->flow) { continue; }
        const crd_unit* u = m->plan->members[p->action_member].unit;
        const bool can = u->info.flags & (CRD_UNIT_CAN_REFRESH | CRD_UNIT_HAS_DIRECTIONAL);
        return u->spec->source == CRD_UNIT_FMU && !can ? u : NULL;
    }
    return NULL;
}

static bool is_coupled(const crd_master* m, const crd_bond_report* b)
{
    for (int i = 0; i < m->energy.bond_count; i++) {
        const crdi_bond* p = &m->energy.bonds[i];
        if (p->action_name != b->action || p->flow_name != b->flow || !p->axis_count) { continue; }
        return p->axes[0].action->coupled || p->axes[0].flow->coupled;
    }
    return false;
}

static void say_bond(crd_master* m, const crd_master_report* r)
{
    if (r->bond_count == 0) { return; }
    crdi_judge* j = m->verdict.judge;
    const crd_bond_report* b = &r->bonds[0];
    if (isnan(b->relative)) {
        say(j, "the energy of bond '%s' is not a number: a value on it was not finite", b->name);
        return;
    }
    if (fabs(b->relative) <= crdi_energy_goal(m)) { return; }
    const char* verb = b->relative > 0 ? "put" : "took";
    const char* where = b->relative > 0 ? "into" : "out of";
    const double joule = fabs(b->energy + b->work);
    if (b->correct != CRD_CORRECT_NONE) {
        say(j,
            "bond '%s': in spite of 'correct: %s' the exchange %s %.3g J %s the system, %s of what "
            "passed: a smaller step would help, the residual energy falls with it",
            b->name, crd_correction_name(b->correct), verb, joule, where,
            advice_percent(fabs(b->relative)).text);
        return;
    }
    const crd_unit* u = stale_unit(m, b);
    say(j,
        "bond '%s': the exchange %s %.3g J %s the system, %s of what passed: %s would remove most "
        "of it%s%s%s",
        b->name, verb, joule, where, advice_percent(fabs(b->relative)).text,
        u                  ? "'correct: probe'"
        : is_coupled(m, b) ? "'correct: balance'"
                           : "'correct: lead'",
        u ? ", and so would '" : "", u ? u->name : "",
        u ? "' as Model Exchange, where outputs are evaluated with fresh inputs" : "");
}

static void say_pair(crdi_judge* j)
{
    if (j->action < 0) { return; }
    const char* f = j->links[j->action]->from_name;
    const char* v = j->links[j->feedback]->from_name;
    say(j, "%s and %s form a power bond: 'bonds: [[%s, %s]]' would watch their energy", f, v, f, v);
}

// ---- steps and iterations ----------------------------------------------------------------------

static bool all_save(const crd_master* m)
{
    for (int i = 0; i < m->plan->member_count; i++) {
        if (!(m->plan->members[i].unit->info.flags & CRD_UNIT_CAN_SAVE)) { return false; }
    }
    return true;
}

static void say_control(crd_master* m, const crd_master_report* r)
{
    const crd_control_report* c = &r->control;
    if (!c->on || r->steps == 0) { return; }
    if ((double)c->at_floor > AT_FLOOR * (double)r->steps) {
        say(m->verdict.judge,
            "%lld of %lld steps were as short as 'floor' allows (%s), where the tolerance cannot "
            "be kept: lower it, or ask for less",
            (long long)c->at_floor, (long long)r->steps,
            advice_seconds(crdi_control_floor(m)).text);
    }
    if (c->worst > WORST_DEFECT && *c->forward_only) {
        say(m->verdict.judge, "a step had a defect of %.3g tolerances over %s: %s", c->worst,
            c->worst_flow,
            all_save(m) ? "without 'reject: no', in a run that does not keep the clock, it would "
                          "have been taken back"
                        : "a smaller tolerance leaves room; not all units can go back");
    } else if (c->worst > WORST_DEFECT) {
        say(m->verdict.judge,
            "a step had a defect of %.3g tolerances over %s, which no shorter one made better: "
            "noise, a jump, or a signal that is next to nothing and needs a 'scale'",
            c->worst, c->worst_flow);
    }
}

static void say_iteration(crdi_judge* j, const crd_master_report* r)
{
    const crd_iteration_report* i = &r->iteration;
    if (!i->on || i->failed == 0) { return; }
    say(j,
        "the iteration did not converge in %lld of %lld steps, first at t = %.6g s%s%s: a smaller "
        "step would help, or more 'sweeps'",
        (long long)i->failed, (long long)i->steps, i->failed_time,
        i->failed_flow && *i->failed_flow ? ", where the worst was " : "",
        i->failed_flow ? i->failed_flow : "");
}

// A pair is as accurate as its link is fast.
static void say_link(crdi_judge* j, const crdi_paired* w)
{
    const crd_pair_state* s = &w->sides[CRD_PAIR_OWNS_FLOW].shown;
    const bool known = s->delay >= 0;
    if (!crdi_paired_is_late(w)) {
        say(j,
            "the pair of bond '%s' stays stable, but tells the other side once in a step: a "
            "smaller step would help",
            w->name);
        return;
    }
    say(j,
        "the pair of bond '%s' stays stable, but acts with what is %s old: %sa shorter link "
        "would help",
        w->name, known ? advice_seconds(s->delay).text : "nobody knows how",
        known && !w->bond->spec->over ? "'over: commands' or " : "");
}

static void advise_on_flows(crd_master* m, const crd_master_report* r)
{
    crdi_judge* j = m->verdict.judge;
    const double goal = crdi_defect_goal(m);
    const int worst = advice_worst_of(r);
    if (worst < 0 || !(r->flows[worst].relative > goal)) { return; }
    const crd_flow_report* f = &r->flows[worst];
    const crdi_connection* k = j->links[j->order[worst]];
    say_dominant(j, r, worst, goal);
    say_growth(m, k, f);
    if (k->paired) {
        say_link(j, k->paired);
        return;
    }
    const bool rough = says_rough(j, f, r->steps);
    const bool predictable = !rough && says_predict(m, k, f);
    if (!rough && !predictable) { say_derivatives(m, k, f); }
    if (!rough) { say_step(m, k, f, goal, predictable); }
    say_iterate(m, k);
}

static void say_all(crd_master* m, const crd_master_report* r)
{
    crdi_judge* j = m->verdict.judge;
    say_broken(j, r);
    say_error(m, j, r);
    say_iteration(j, r);
    say_bond(m, r);
    say_control(m, r);
    const bool good = j->sentence_count == 0;
    advise_on_flows(m, r);
    if (good && j->sentence_count == 0 && r->flow_count > 0) {
        say(j, "all defects are below %s of the signals", advice_percent(crdi_defect_goal(m)).text);
    } else if (r->bond_count == 0 && advice_worst_of(r) >= 0 &&
               r->flows[advice_worst_of(r)].relative > crdi_defect_goal(m)) {
        say_pair(j);
    }
    say_doubt(m, r);
}

void crdi_verdict_advise(crd_master* m, crd_master_report* r)
{
    crdi_judge* j = m->verdict.judge;
    if (!j) { return; }
    j->sentence_count = 0;
    if (r->steps > 0) { say_all(m, r); }
    r->advice = j->sentences;
    r->advice_count = j->sentence_count;
}
