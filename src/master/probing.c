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

static const crd_unit* unit_of(const crd_master* m, int member)
{
    return m->members[member].unit;
}

#define REFUSE(m, p, format, ...)                                                                  \
    crdi_fail((m)->ctx, CRD_E_RANGE, "%sbond '%s': " format,                                       \
              crdi_where((p)->spec->place, (char[512]){0}, 512), (p)->name, __VA_ARGS__)

// ---- plan --------------------------------------------------------------------------------------

static crd_status check_run(crd_master* m, const crdi_power* p)
{
    if (m->controlled || m->iterated) {
        return REFUSE(m, p,
                      "'correct: probe' takes steps of one length, once: remove 'run.%s', or "
                      "take 'correct: lead'",
                      m->controlled ? "control" : "iterate");
    }
    if (p->axis_count != 1) {
        return REFUSE(m, p,
                      "'correct: probe' is for one action and one flow, and these are %d: "
                      "'correct: lead' takes all of them",
                      p->axis_count);
    }
    if (!p->feeds) {
        return REFUSE(m, p,
                      "%s does not depend on an input from the other unit without delay, and "
                      "%s neither: there is nothing to probe, remove 'correct: probe'",
                      p->action_name, p->flow_name);
    }
    return CRD_OK;
}

static crd_status check_units(crd_master* m, const crdi_power* p)
{
    const crdi_probing* q = p->probing;
    const crdi_member *a = &m->members[q->member], *b = &m->members[q->other];
    const bool a_real = m->sys->units[q->member].real;
    if (a_real || m->sys->units[q->other].real) {
        return REFUSE(
            m, p,
            "'%s' is real, and hardware is neither probed nor corrected: remove 'correct: probe'",
            (a_real ? a : b)->unit->name);
    }
    if (a->ticks != b->ticks) {
        return REFUSE(m, p,
                      "'%s' has a step of %g s and '%s' one of %g s: 'correct: probe' takes "
                      "units of one step, 'correct: lead' any",
                      a->unit->name, a->step, b->unit->name, b->step);
    }
    for (const crdi_power* o = m->powers; o < p; o++) {
        if (o->probing && o->probing->member == q->member) {
            return REFUSE(m, p,
                          "'%s' is probed for bond '%s' already, and two probes of one unit "
                          "would mix: one of them can take 'correct: lead'",
                          a->unit->name, o->name);
        }
    }
    return CRD_OK;
}

static bool dimension_of(const crd_master* m, const crdi_link* k, crd_dimension* out)
{
    const crd_unit *a = unit_of(m, k->from_member), *b = unit_of(m, k->to_member);
    return crdi_unit_dimension(b, k->to_variable, out) ||
           crdi_unit_dimension(a, k->from_variable, out);
}

// The displacement that belongs to a flow: the first connection between the same units that is the
// flow times a time. Radians do not count.
static crdi_link* find_displacement(const crd_master* m, const crdi_link* flow)
{
    crd_dimension v, x;
    if (!dimension_of(m, flow, &v)) { return NULL; }
    v.s++;
    for (int i = 0; i < m->link_count; i++) {
        crdi_link* k = &m->links[i];
        if (k == flow || k->from_member != flow->from_member || k->to_member != flow->to_member ||
            !(k->real || k->spec->coupling) || !dimension_of(m, k, &x)) {
            continue;
        }
        v.rad = x.rad;
        if (crd_dimension_equal(&v, &x)) { return k; }
    }
    return NULL;
}

static crd_status take(crd_master* m, crdi_power* p, crdi_link* k, int place)
{
    const crd_prediction predict = k->spec->predict;
    const crd_status st = crdi_power_mark(m, p, k);
    if (st < 0) { return st; }
    if (predict != CRD_PREDICTION_AUTO && predict != CRD_PREDICTION_HOLD) {
        return REFUSE(m, p,
                      "'predict: %s' of %s.%s -> %s.%s and 'correct: probe' both say what is "
                      "told there: remove one of them",
                      crd_prediction_name(predict), unit_of(m, k->from_member)->name, k->spec->from,
                      unit_of(m, k->to_member)->name, k->spec->to);
    }
    k->probed = true;
    p->probing->specs[place] = k->spec;
    p->probing->elements[place] = k->to_element;
    return CRD_OK;
}

crd_status crdi_probing_plan(crd_master* m, crdi_power* p, crdi_link* action, crdi_link* flow)
{
    crd_status st = CRD_OK;
    CRD_TRY(check_run(m, p));
    crdi_probing* q = p->probing = crdi_arena_new(&m->arena, 1, sizeof *q);
    if (!q) { return CRD_E_MEMORY; }
    q->member = action->from_member;
    q->other = action->to_member;
    CRD_TRY(check_units(m, p));
    q->probe = crd_probe_defaults(); // a displacement, then a flow
    crdi_link* displacement = find_displacement(m, flow);
    q->probe.inputs = displacement ? 2 : 1;
    q->probe.flow[0] = !displacement;
    if (displacement) { CRD_TRY(take(m, p, displacement, 0)); }
    CRD_TRY(take(m, p, flow, q->probe.inputs - 1));
    CRD_TRY(take(m, p, action, CRD_PROBE_INPUTS));
fail:
    return st;
}

// ---- bind --------------------------------------------------------------------------------------

static crdi_flow* flow_of(crd_master* m, const crdi_probing* q, int place)
{
    for (int i = 0; i < m->flow_count; i++) {
        crdi_flow* f = &m->flows[i];
        if (f->spec == q->specs[place] && f->to_element == q->elements[place]) { return f; }
    }
    return NULL;
}

// Each unit sees what the other gave at the beginning of the step.
static crd_status check_order(crd_master* m, const crdi_power* p)
{
    const crdi_probing* q = p->probing;
    for (int i = 0; i < m->link_count; i++) {
        const crdi_link* k = &m->links[i];
        const bool between = (k->from_member == q->member && k->to_member == q->other) ||
                             (k->from_member == q->other && k->to_member == q->member);
        if (between && k->probed && !k->early) {
            return REFUSE(m, p,
                          "'%s' and '%s' advance one after the other: 'correct: probe' needs "
                          "'scheme: jacobi' for them",
                          unit_of(m, q->other)->name, unit_of(m, q->member)->name);
        }
    }
    return CRD_OK;
}

// Where f can be had with fresh inputs, or its gains, there is nothing to search for.
static crd_status check_need(crd_master* m, const crdi_power* p)
{
    const int member = p->probing->member;
    const crd_unit* u = unit_of(m, member);
    for (int i = 0; i < m->refresh_count; i++) {
        if (m->refreshed[i] == member) {
            return REFUSE(m, p,
                          "'%s' is evaluated again with fresh inputs, as others of them are "
                          "predicted, so there is nothing to probe: remove 'correct: probe', "
                          "or give '%s' 'refresh: no'",
                          u->name, u->name);
        }
    }
    const bool asked = u->info.flags & CRD_UNIT_CAN_REFRESH;
    const bool gains = (u->info.flags & CRD_UNIT_HAS_DIRECTIONAL) != 0;
    if ((asked || gains) && u->spec->refresh != CRD_REFRESH_NO) {
        char at[512];
        crdi_log(m->log, CRD_LOG_WARNING,
                 "%sbond '%s': '%s' %s: 'predict: auto' without 'correct: probe' would be better",
                 crdi_where(p->spec->place, at, sizeof at), p->name, u->name,
                 asked ? "can be asked again with fresh inputs" : "knows its own feedthrough");
    }
    return CRD_OK;
}

crd_status crdi_probing_bind(crd_master* m, crdi_power* p)
{
    crdi_probing* q = p->probing;
    crd_status st = CRD_OK;
    CRD_TRY(check_order(m, p));
    CRD_TRY(check_need(m, p));
    for (int i = 0; i < q->probe.inputs; i++) {
        q->inputs[i] = flow_of(m, q, i);
    }
    q->action = flow_of(m, q, CRD_PROBE_INPUTS);
    crdi_member* a = &m->members[q->member];
    q->f = a->outputs.real + (q->action->from - a->outputs.real);
fail:
    return st;
}

// ---- run ---------------------------------------------------------------------------------------

static int64_t events_of(const crd_master* m, const crdi_probing* q)
{
    return crdi_member_events(&m->members[q->member]) + crdi_member_events(&m->members[q->other]);
}

static void hold(crdi_flow* f, double value, crd_predictor as)
{
    f->held = value;
    f->used = as;
}

void crdi_probing_start(crd_master* m, crdi_power* p)
{
    crdi_probing* q = p->probing;
    double y[CRD_PROBE_INPUTS];
    for (int i = 0; i < q->probe.inputs; i++) {
        y[i] = crdi_flow_sample(q->inputs[i]).y[0];
        hold(q->inputs[i], y[i], CRD_PREDICT_HOLD);
    }
    const double f = crdi_flow_sample(q->action).y[0];
    hold(q->action, f, CRD_PREDICT_HOLD);
    crd_probe_start(&q->probe, &q->state, f, y);
    q->events = events_of(m, q);
}

// f as it would be with what has just come, for all who get it.
static void refresh(crd_master* m, crdi_probing* q, double f)
{
    *q->f += (q->state.fresh - f) / q->action->gain;
    for (int i = 0; i < m->flow_count; i++) {
        if (m->flows[i].from == q->f) { m->flows[i].end = crdi_flow_sample(&m->flows[i]); }
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
    q->told = crd_probe_step(&q->probe, s, h, h_next, f, y, u);
    refresh(m, q, f);
    q->lead = q->told - s->fresh;
}

void crdi_master_probe(crd_master* m, double t)
{
    for (int i = 0; i < m->power_count; i++) {
        const crdi_power* p = &m->powers[i];
        if (!p->probing || (m->n + 1) % p->every != 0) { continue; }
        const double h = t - p->time, next = crdi_master_time_of(m, m->n + 1 + p->every) - t;
        if (h > 0) { probe(m, p->probing, h, next > 0 ? next : h); } // no next one: the end
    }
}

void crdi_probing_tell(crdi_probing* q)
{
    const crd_probe_state* s = &q->state;
    for (int i = 0; i < q->probe.inputs; i++) {
        const double deviation = s->probe[i][0];
        hold(q->inputs[i], s->u[i][0] - deviation, crd_probe_predictor(&q->probe, i));
        q->inputs[i]->correction = deviation;
    }
    hold(q->action, q->told, s->used);
}
