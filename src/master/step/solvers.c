// What units' own solvers miss: the integration defect of Glumac 2023 (2a). In some steps of the
// run each unit that can go back makes its step once more, in two halves with the very same input;
// what that changes at its end is about the error of its one step. Then everything is what it was,
// to the last bit. A solver whose steps are shorter than the communication step anyway shows
// nothing.
#include "master/master.h"

#include <math.h>
#include <string.h>

typedef struct crdi_solvers {
    bool* able;           // (members)
    int64_t every;        // ticks between two looks
    bool due;             // run: this is one
    double *kept, *apart; // run: (plan->output_count) outputs of the step; squares of differences
    double* spare[4];     // run: outputs' derivatives, inputs, inputs' derivatives of one unit
    void** ends;          // run: (members) states at the end of the step
    int64_t looks;        // run
} crdi_solvers;

enum { LOOKS = 20 }; // in a run, so that they cost little whatever the units are

static bool is_able(const crdi_member* p)
{
    const crd_binding *in = p->in, *out = p->out;
    return crdi_member_saves(p) && (p->unit->info.flags & CRD_UNIT_CAN_VARY_STEP) && !p->async &&
           !p->ports && out && out->real_count > 0 && !out->integer_count && !out->bytes_count &&
           (!in || (!in->integer_count && !in->bytes_count)) &&
           !(p->unit->info.flags & CRD_UNIT_IS_SOURCE);
}

crd_status crdi_solvers_plan(crdi_plan* plan, crd_master* m)
{
    const bool asked = plan->sys->run.monitor & CRD_MONITOR_SOLVER;
    if (!asked || plan->paced || plan->controlled || plan->iterated || plan->times.multirate) {
        return CRD_OK;
    }
    const size_t n = (size_t)plan->member_count;
    size_t most = 1;
    crdi_solvers* s = crdi_arena_new(plan->arena, 1, sizeof *s);
    if (!s) { return CRD_E_MEMORY; }
    s->able = crdi_arena_new(plan->arena, n, sizeof *s->able);
    s->ends = crdi_arena_new(plan->arena, n, sizeof *s->ends);
    s->kept = crdi_arena_new(plan->arena, plan->output_count, sizeof *s->kept);
    s->apart = crdi_arena_new(plan->arena, plan->output_count, sizeof *s->apart);
    if (!s->able || !s->ends || !s->kept || !s->apart) { return CRD_E_MEMORY; }
    for (int i = 0; i < plan->member_count; i++) {
        const crdi_member* p = &plan->members[i];
        s->able[i] = is_able(p);
        plan->halves = plan->halves || s->able[i];
        if (p->out) { most = (size_t)fmax((double)most, p->out->real_count); }
        if (p->in) { most = (size_t)fmax((double)most, p->in->real_count); }
    }
    for (int k = 0; k < 4; k++) {
        s->spare[k] = crdi_arena_new(plan->arena, 2 * most, sizeof(double));
        if (!s->spare[k]) { return CRD_E_MEMORY; }
    }
    s->every = plan->times.tick_count / LOOKS > 1 ? plan->times.tick_count / LOOKS : 1;
    if (plan->halves) { m->solvers = s; }
    return CRD_OK;
}

// Before the step: states, if this is one to look at.
crd_status crdi_solvers_begin(crd_master* m)
{
    crdi_solvers* s = m->solvers;
    s->due = m->clock.n % s->every == s->every / 2 && m->clock.h == m->plan->times.tick &&
             !(m->live && crdi_live_disturbs(m));
    crd_status st = CRD_OK;
    for (int i = 0; s->due && i < m->plan->member_count && st >= 0; i++) {
        crdi_member* p = &m->plan->members[i];
        if (!s->able[i]) { continue; }
        m->running = i;
        st = crdi_member_left(m, i, p->unit->ops->state->save(p->unit, &p->run->state));
    }
    return st;
}

// The inputs as they were told for the whole step, s behind its beginning.
static void input_at(crd_master* m, const crdi_member* p, double s)
{
    for (int k = 0; k < p->flow_count; k++) {
        crdi_prediction* f = &m->connections.predictions[p->flows[k]];
        const double applied = f->applied;
        crdi_prediction_apply(f, f->begin - f->origin, m->clock.h);
        f->applied = applied;
        const double slope = f->slope[0] ? *f->slope[0] : 0, curve = f->slope[1] ? *f->slope[1] : 0;
        *f->to += s * (slope + 0.5 * s * curve);
        if (f->slope[0]) { *f->slope[0] += s * curve; }
    }
}

static crd_status halves(crd_master* m, crdi_member* p)
{
    crd_unit* u = p->unit;
    crd_status st = CRD_OK;
    const double t = m->clock.time, h = m->clock.h;
    CRD_TRY(u->ops->state->restore(u, p->run->state));
    for (int i = 0; i < 2; i++) {
        input_at(m, p, 0.5 * h * i);
        CRD_TRY(crdi_member_set(p));
        CRD_TRY(u->ops->step(u, t + 0.5 * h * i, 0.5 * h));
    }
    if (p->shown) {
        crdi_member_show_prediction(m, p, t + h);
        CRD_TRY(crdi_member_set(p));
    }
    CRD_TRY(u->ops->get(u, p->out, &p->outputs));
fail:
    return st;
}

static void keep(double* to, const double* from, int count)
{
    if (from) { memcpy(to, from, (size_t)count * sizeof *to); }
}

static void __attribute__((cold, noinline)) give_up(crd_master* m, int member)
{
    m->solvers->able[member] = false;
    crdi_log(
        m->log, CRD_LOG_WARNING,
        "unit '%s' at t = %.10g does not come back to where it was when its state is restored: "
        "'monitor: solver' leaves it alone from here on, and results may differ from those "
        "without it",
        m->plan->members[member].unit->name, crd_master_time(m));
}

// One unit, which is left as it was.
static crd_status look(crd_master* m, int member)
{
    crdi_solvers* s = m->solvers;
    crdi_member* p = &m->plan->members[member];
    crd_unit* u = p->unit;
    crd_status st = CRD_OK;
    const int in = p->in ? p->in->real_count : 0, out = p->out->real_count;
    const size_t at = (size_t)(p->outputs.real - m->plan->outputs);
    const int64_t events = u->events;
    const double next = u->next_event;
    const bool stops = u->wants_stop;
    keep(s->kept + at, p->outputs.real, out);
    keep(s->spare[0], p->inputs.real, in);
    for (int d = 0; d < 2; d++) {
        keep(s->spare[1 + d], p->slopes[d], in);
    }
    m->running = member;
    CRD_TRY(u->ops->state->save(u, &s->ends[member]));
    CRD_TRY(halves(m, p));
    for (int i = 0; i < out; i++) {
        const double d = p->outputs.real[i] - s->kept[at + (size_t)i];
        if (u->events == events) { s->apart[at + (size_t)i] += d * d; }
    }
    keep(p->outputs.real, s->kept + at, out);
    if (in) { keep(p->inputs.real, s->spare[0], in); }
    for (int d = 0; d < 2; d++) {
        if (p->slopes[d]) { keep(p->slopes[d], s->spare[1 + d], in); }
    }
    CRD_TRY(u->ops->state->restore(u, s->ends[member]));
    CRD_TRY(u->ops->get(u, p->out, &p->outputs));
    if (memcmp(p->outputs.real, s->kept + at, (size_t)out * sizeof(double)) != 0) {
        give_up(m, member);
        keep(p->outputs.real, s->kept + at, out);
    }
    u->events = events;
    u->next_event = next;
    u->wants_stop = stops;
fail:
    return crdi_member_left(m, member, st);
}

crd_status crdi_solvers_look(crd_master* m)
{
    crd_status st = CRD_OK;
    for (int i = 0; m->solvers->due && i < m->plan->member_count && st >= 0; i++) {
        if (m->solvers->able[i]) { st = look(m, i); }
    }
    m->solvers->looks += m->solvers->due;
    return st;
}

double crdi_solvers_missed(const crd_master* m, const crdi_end* from)
{
    const crdi_solvers* s = m->solvers;
    if (!s || !s->able[from->member] || s->looks == 0) { return (double)NAN; }
    const crdi_member* p = &m->plan->members[from->member];
    const double square = s->apart[p->outputs.real - m->plan->outputs + from->slot];
    return sqrt(square / (double)s->looks);
}

void crdi_solvers_forget(crd_master* m, int member)
{
    const crdi_member* p = &m->plan->members[member];
    if (m->solvers && m->solvers->ends[member] && !p->run->crashed) {
        p->unit->ops->state->free(p->unit, &m->solvers->ends[member]);
    }
}

void** crdi_solvers_state(const crd_master* m, int member)
{
    return m->solvers ? &m->solvers->ends[member] : NULL;
}
