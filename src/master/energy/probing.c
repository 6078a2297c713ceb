// Power bonds whose feedthrough is found by probing (crd_probe): for units that can only hold their
// inputs, cannot be asked again, and say nothing of their gains.
//
//   outputs(n+1) -> what was found of the gains -> fresh f, and what all three are held at next
//
// The unit with feedthrough gets the flow of the bond and, if it is connected too, the displacement
// of the same port, each as the mean of its prediction plus a probe. f becomes what it would be if
// it were evaluated again; that is what others see of it, and what is recorded.
#include "master/master.h"

#include <math.h>

static const crd_unit* unit_of(const crdi_plan* plan, int member)
{
    return plan->members[member].unit;
}

#define REFUSE(plan, p, format, ...)                                                               \
    crdi_fail((plan)->ctx, CRD_E_RANGE, "%sbond '%s': " format,                                    \
              crdi_where((p)->spec->place, (char[512]){0}, 512), (p)->name, __VA_ARGS__)

// ---- plan --------------------------------------------------------------------------------------

static crd_status check_run(crdi_plan* plan, const crdi_bond* p)
{
    if (plan->controlled || plan->iterated) {
        return REFUSE(plan, p,
                      "'correct: probe' takes steps of one length, once: remove 'run.%s', or "
                      "take 'correct: lead'",
                      plan->controlled ? "control" : "iterate");
    }
    if (p->axis_count != 1) {
        return REFUSE(plan, p,
                      "'correct: probe' is for one action and one flow, and these are %d: "
                      "'correct: lead' takes all of them",
                      p->axis_count);
    }
    if (!p->feeds) {
        return REFUSE(plan, p,
                      "%s does not depend on an input from the other unit without delay, and "
                      "%s neither: there is nothing to probe, remove 'correct: probe'",
                      p->action_name, p->flow_name);
    }
    return CRD_OK;
}

static crd_status probing_check_units(crdi_plan* plan, const crdi_energy* energy,
                                      const crdi_bond* p)
{
    const crdi_probing* q = p->probing;
    const crdi_member *a = &plan->members[q->member], *b = &plan->members[q->other];
    const bool a_real = plan->sys->units[q->member].real;
    if (a_real || plan->sys->units[q->other].real) {
        return REFUSE(
            plan, p,
            "'%s' is real, and hardware is neither probed nor corrected: remove 'correct: probe'",
            (a_real ? a : b)->unit->name);
    }
    if (a->ticks != b->ticks) {
        return REFUSE(plan, p,
                      "'%s' has a step of %g s and '%s' one of %g s: 'correct: probe' takes "
                      "units of one step, 'correct: lead' any",
                      a->unit->name, a->step, b->unit->name, b->step);
    }
    for (const crdi_bond* o = energy->bonds; o < p; o++) {
        if (o->probing && o->probing->member == q->member) {
            return REFUSE(plan, p,
                          "'%s' is probed for bond '%s' already, and two probes of one unit "
                          "would mix: one of them can take 'correct: lead'",
                          a->unit->name, o->name);
        }
    }
    return CRD_OK;
}

bool crdi_connection_dimension(const crdi_plan* plan, const crdi_connection* k, crd_dimension* out)
{
    const crd_unit *a = unit_of(plan, k->from.member), *b = unit_of(plan, k->to.member);
    if (crdi_unit_dimension(a, k->from.variable, out)) { return true; }
    if (!crdi_unit_dimension(b, k->to.variable, out)) { return false; }
    out->factor *= k->transform ? k->gain : 1; // there it is another number
    return true;
}

bool crdi_is_displacement(const crdi_plan* plan, const crdi_connection* k,
                          const crdi_connection* flow)
{
    crd_dimension v, x;
    if (k == flow || k->from.member != flow->from.member || k->to.member != flow->to.member ||
        !(k->real || k->spec->coupling) || !crdi_connection_dimension(plan, flow, &v) ||
        !crdi_connection_dimension(plan, k, &x)) {
        return false;
    }
    v.s++;
    v.rad = x.rad;
    return crd_dimension_equal(&v, &x);
}

static crdi_connection* find_displacement(const crdi_plan* plan, const crdi_connection* flow)
{
    for (int i = 0; i < plan->connection_count; i++) {
        if (crdi_is_displacement(plan, &plan->connections[i], flow)) {
            return &plan->connections[i];
        }
    }
    return NULL;
}

static crd_status probing_take(crdi_plan* plan, crdi_bond* p, crdi_connection* k, int place)
{
    const crd_prediction predict = k->spec->predict;
    const crd_status st = crdi_bond_mark(plan, p, k);
    if (st < 0) { return st; }
    if (predict != CRD_PREDICTION_AUTO && predict != CRD_PREDICTION_HOLD) {
        return REFUSE(plan, p,
                      "'predict: %s' of %s.%s -> %s.%s and 'correct: probe' both say what is "
                      "given there: remove one of them",
                      crd_prediction_name(predict), unit_of(plan, k->from.member)->name,
                      k->spec->from, unit_of(plan, k->to.member)->name, k->spec->to);
    }
    k->probed = true;
    p->probing->taken[place] = k;
    return CRD_OK;
}

crd_status crdi_probing_plan(crdi_plan* plan, const crdi_energy* energy, crdi_bond* p,
                             crdi_connection* action, crdi_connection* flow)
{
    crd_status st = CRD_OK;
    CRD_TRY(check_run(plan, p));
    crdi_probing* q = p->probing = crdi_arena_new(plan->arena, 1, sizeof *q);
    if (!q) { return CRD_E_MEMORY; }
    q->member = action->from.member;
    q->other = action->to.member;
    CRD_TRY(probing_check_units(plan, energy, p));
    q->probe = crd_probe_defaults(); // a displacement, then a flow
    crdi_connection* displacement = find_displacement(plan, flow);
    q->probe.inputs = displacement ? 2 : 1;
    q->probe.flow[0] = !displacement;
    if (displacement) { CRD_TRY(probing_take(plan, p, displacement, 0)); }
    CRD_TRY(probing_take(plan, p, flow, q->probe.inputs - 1));
    CRD_TRY(probing_take(plan, p, action, CRD_PROBE_INPUTS));
fail:
    return st;
}

// ---- bind --------------------------------------------------------------------------------------

// Each unit sees what the other gave at the beginning of the step.
static crd_status check_order(crdi_plan* plan, const crdi_bond* p)
{
    const crdi_probing* q = p->probing;
    for (int i = 0; i < plan->connection_count; i++) {
        const crdi_connection* k = &plan->connections[i];
        const bool between = (k->from.member == q->member && k->to.member == q->other) ||
                             (k->from.member == q->other && k->to.member == q->member);
        if (between && k->probed && !k->early) {
            return REFUSE(plan, p,
                          "'%s' and '%s' advance one after the other: 'correct: probe' needs "
                          "'scheme: jacobi' for them",
                          unit_of(plan, q->other)->name, unit_of(plan, q->member)->name);
        }
    }
    return CRD_OK;
}

// Where f can be had with fresh inputs, or its gains, there is nothing to search for.
static crd_status check_need(crdi_plan* plan, const crdi_bond* p)
{
    const int member = p->probing->member;
    const crd_unit* u = unit_of(plan, member);
    if (crdi_refresh_has(plan, member)) {
        return REFUSE(plan, p,
                      "'%s' is evaluated again with fresh inputs, as others of them are "
                      "predicted, so there is nothing to probe: remove 'correct: probe', "
                      "or give '%s' 'refresh: no'",
                      u->name, u->name);
    }
    const bool asked = u->info.flags & CRD_UNIT_CAN_REFRESH;
    const bool gains = u->info.flags & CRD_UNIT_HAS_DIRECTIONAL;
    if ((asked || gains) && u->spec->refresh != CRD_REFRESH_NO) {
        char at[512];
        crdi_log(plan->log, CRD_LOG_WARNING,
                 "%sbond '%s': '%s' %s: 'predict: auto' without 'correct: probe' would be better",
                 crdi_where(p->spec->place, at, sizeof at), p->name, u->name,
                 asked ? "can be asked again with fresh inputs" : "knows its own feedthrough");
    }
    return CRD_OK;
}

crd_status crdi_probing_bind(crdi_plan* plan, crdi_bond* p)
{
    crdi_probing* q = p->probing;
    crd_status st = CRD_OK;
    CRD_TRY(check_order(plan, p));
    CRD_TRY(check_need(plan, p));
    for (int i = 0; i < q->probe.inputs; i++) {
        q->inputs[i] = q->taken[i]->prediction;
    }
    q->action = q->taken[CRD_PROBE_INPUTS]->prediction;
    crdi_member* a = &plan->members[q->member];
    q->f = a->outputs.real + (q->action->from - a->outputs.real);
fail:
    return st;
}

// ---- run ---------------------------------------------------------------------------------------

static int64_t events_of(const crd_master* m, const crdi_probing* q)
{
    return crdi_member_events(&m->plan->members[q->member]) +
           crdi_member_events(&m->plan->members[q->other]);
}

static void hold(crdi_prediction* f, double value, crd_predictor as)
{
    f->held = value;
    f->used = as;
}

void crdi_probing_start(crd_master* m, crdi_bond* p)
{
    crdi_probing* q = p->probing;
    double y[CRD_PROBE_INPUTS];
    for (int i = 0; i < q->probe.inputs; i++) {
        y[i] = crdi_prediction_sample(q->inputs[i]).y[0];
        hold(q->inputs[i], y[i], CRD_PREDICT_HOLD);
    }
    const double f = crdi_prediction_sample(q->action).y[0];
    hold(q->action, f, CRD_PREDICT_HOLD);
    crd_probe_start(&q->probe, &q->state, f, y);
    q->events = events_of(m, q);
}

// f as it would be with what has just come, for all who get it.
static void probing_refresh(crd_master* m, crdi_probing* q, double f)
{
    *q->f += (q->state.fresh - f) / q->action->gain;
    for (int i = 0; i < m->connections.prediction_count; i++) {
        crdi_prediction* p = &m->connections.predictions[i];
        if (p->from == q->f) { crdi_prediction_resample(p); }
    }
}

static void probe(crd_master* m, crdi_probing* q, double h, double h_next)
{
    crd_probe_state* s = &q->state;
    const double f = q->action->end.y[0];
    double y[CRD_PROBE_INPUTS], u[CRD_PROBE_INPUTS]; // u: kept in the state
    for (int i = 0; i < q->probe.inputs; i++) {
        y[i] = q->inputs[i]->end.y[0];
    }
    const int64_t events = events_of(m, q);
    if (events != q->events) { crd_probe_event(&q->probe, s); }
    q->events = events;
    q->held = crd_probe_step(&q->probe, s, h, h_next, f, y, u);
    probing_refresh(m, q, f);
    q->lead = q->held - s->fresh;
}

void crdi_bonds_probe(crd_master* m, double t)
{
    for (int i = 0; i < m->energy.bond_count; i++) {
        const crdi_bond* p = &m->energy.bonds[i];
        if (!p->probing || (m->clock.n + 1) % p->every != 0) { continue; }
        const double h = t - p->time, next = crdi_time_of(m, m->clock.n + 1 + p->every) - t;
        if (h > 0) { probe(m, p->probing, h, next > 0 ? next : h); } // no next one: the end
    }
}

void crdi_probing_apply(crdi_probing* q)
{
    const crd_probe_state* s = &q->state;
    for (int i = 0; i < q->probe.inputs; i++) {
        const double deviation = s->probe[i][0];
        hold(q->inputs[i], s->u[i][0] - deviation, crd_probe_predictor(&q->probe, i));
        q->inputs[i]->correction = deviation;
    }
    hold(q->action, q->held, s->used);
}
