// The state of a whole run, saved and restored. What changes in a run stands in the arena of the
// master, in the structs of its parts, in the matrices of its linear models and in the units; the
// rest is a plan that nobody changes. So a state is a copy of those bytes, which fits the master it
// was taken from and no other, and a state of each unit.
//
// Not part of it, and left as they are: what measures the machine and not the run (threads, times
// of units), lanes, states that units have saved to take steps back, files.
#include "master/snapshot.h"

#include <stdio.h>
#include <string.h>

// ---- what can be saved -------------------------------------------------------------------------

static const char* why_not(const crdi_member* p)
{
    const crd_unit* u = p->unit;
    if (p->async) { return "it has a budget and steps on a thread of its own"; }
    if (crdi_member_is_hardware(p)) {
        return "time goes on behind a network, whatever is saved here";
    }
    if (!crdi_member_saves(p)) {
        return strncmp(u->info.kind, "FMU", 3) == 0
                   ? "its model description does not say canGetAndSetFMUstate (FMI 3.0: FMUState)"
                   : "its state is not all in one place";
    }
    for (int k = 0; k < 2; k++) {
        const crd_binding* b = k ? p->in : p->out;
        if (b && b->bytes_count) { return "it exchanges texts or blocks of bytes"; }
    }
    return NULL;
}

crd_status crdi_snapshot_check(crd_master* m, bool file)
{
    const crdi_connections* c = &m->connections;
    const char* what = !m->plan->opt.snapshots ? "the master was created without `snapshots`"
                       : m->plan->paced        ? "the run keeps the clock, which does not go back"
                       : m->live               ? "somebody watches the run and may steer it"
                       : m->exchange           ? "exchanged samples go to a file"
                       : crdi_record_is_open(m) && !file
                           ? "results go to a file, which does not go back; "
                             "keep them in memory (`columns`)"
                       : m->plan->opt.pass ? "a cycle is being learned"
                                           : NULL;
    if (what) { return crdi_fail(m->ctx, CRD_E_UNSUPPORTED, "the run cannot be saved: %s", what); }
    for (int i = 0; i < m->plan->member_count; i++) {
        const crdi_member* p = &m->plan->members[i];
        const char* why = why_not(p);
        if (!why) { continue; }
        return crdi_fail(m->ctx, CRD_E_UNSUPPORTED, "the run cannot be saved: unit '%s' (%s): %s",
                         p->unit->name, p->unit->info.kind, why);
    }
    for (int i = 0; i < c->coupled_count; i++) {
        for (int k = 0; k < c->coupled[i].estimator_count; k++) {
            if (!c->coupled[i].estimators[k].learn) { continue; }
            return crdi_fail(m->ctx, CRD_E_UNSUPPORTED,
                             "the run cannot be saved: the coupling of %s learns from a server",
                             c->coupled[i].of->to_name);
        }
    }
    return CRD_OK;
}

crd_status crd_master_can_save(crd_master* m)
{
    return crdi_snapshot_check(m, false);
}

// ---- what there is to copy ---------------------------------------------------------------------

static crd_status add_span(crd_snapshot* s, void* at, size_t size)
{
    if (size == 0) { return CRD_OK; }
    crdi_span* list =
        crdi_grow(s->of->ctx, s->spans, &s->span_room, (size_t)s->span_count + 1, sizeof *list);
    if (!list) { return CRD_E_MEMORY; }
    s->spans = list;
    list[s->span_count++] = (crdi_span){at, size};
    s->size += size;
    return CRD_OK;
}

// A chunk of the arena but for the lanes, which are the units' own.
static crd_status add_chunk(crd_snapshot* s, char* at, size_t size)
{
    const crd_master* m = s->of;
    size_t length = 0;
    char* lanes = crdi_lanes_room(m, &length);
    char* end = at + size;
    if (lanes < at || lanes >= end) { return add_span(s, at, size); }
    const crd_status st = add_span(s, at, (size_t)(lanes - at));
    return st < 0 ? st : add_span(s, lanes + length, (size_t)(end - lanes) - length);
}

static crd_status add_model(crd_snapshot* s, int member)
{
    const crd_linearised* l = crdi_models_known(s->of, member);
    crd_status st = CRD_OK;
    if (!l) { return CRD_OK; }
    const size_t n = (size_t)l->states, q = (size_t)l->inputs, r = (size_t)l->outputs;
    CRD_TRY(add_span(s, l->A, n * n * sizeof *l->A));
    CRD_TRY(add_span(s, l->B, n * q * sizeof *l->B));
    CRD_TRY(add_span(s, l->C, r * n * sizeof *l->C));
    CRD_TRY(add_span(s, l->D, r * q * sizeof *l->D));
fail:
    return st;
}

static crd_status list_spans(crd_snapshot* s)
{
    crd_master* m = s->of;
    crd_status st = CRD_OK;
    const crdi_span parts[] = {
        {&m->clock, sizeof m->clock},         {&m->connections, sizeof m->connections},
        {&m->control, sizeof m->control},     {&m->energy, sizeof m->energy},
        {&m->guard, sizeof m->guard},         {&m->verdict, sizeof m->verdict},
        {crdi_record_next(m), sizeof(double)}};
    s->span_count = 0;
    s->size = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        CRD_TRY(add_span(s, parts[i].at, parts[i].size));
    }
    void* data = NULL;
    size_t used = 0;
    for (const void* c = NULL; (c = crdi_arena_chunk(&m->arena, c, &data, &used)) != NULL;) {
        CRD_TRY(add_chunk(s, data, used));
    }
    for (int i = 0; i < m->plan->member_count; i++) {
        CRD_TRY(add_model(s, i));
    }
fail:
    return st;
}

// ---- save --------------------------------------------------------------------------------------

static void copy_data(const crd_snapshot* s, bool back)
{
    char* p = s->data;
    for (int i = 0; i < s->span_count; p += s->spans[i++].size) {
        memcpy(back ? s->spans[i].at : p, back ? p : s->spans[i].at, s->spans[i].size);
    }
}

typedef struct {
    crd_snapshot* s;
    bool back;
    crd_status st;
} unit_pass;

static void pass_units(void* with)
{
    unit_pass* a = with;
    crd_master* m = a->s->of;
    for (int i = 0; i < m->plan->member_count && a->st >= 0; i++) {
        crd_unit* u = m->plan->members[i].unit;
        crdi_unit_part* p = &a->s->units[i];
        m->running = i;
        a->st = a->back ? u->ops->state->restore(u, p->state) : u->ops->state->save(u, &p->state);
        if (a->st < 0) { break; }
        if (a->back) {
            u->events = p->events;
            u->next_event = p->next_event;
            u->wants_stop = p->wants_stop;
            u->made = p->made;
            u->remarks = p->remarks;
            u->waited = p->waited;
        } else {
            *p = (crdi_unit_part){p->state,      u->events, u->remarks,   u->waited,
                                  u->next_event, u->made,   u->wants_stop};
        }
        m->running = -1;
    }
}

static crd_status snapshot_units(crd_snapshot* s, bool back)
{
    crd_master* m = s->of;
    unit_pass a = {s, back, CRD_OK};
    const int crash = crdi_life_catch(m, pass_units, &a);
    if (crash) { return crdi_member_crashed(m, m->running, crash); }
    return a.st < 0 ? crdi_member_left(m, m->running, a.st) : CRD_OK;
}

static crd_status check_moment(crd_master* m, const char* what)
{
    if (!m->life.started || m->life.finished || m->life.end == CRD_END_FAILED) {
        return crdi_fail(m->ctx, CRD_E_STATE, "the run cannot be %s: it %s", what,
                         !m->life.started   ? "is not initialised"
                         : m->life.finished ? "is finished"
                                            : "has failed");
    }
    return CRD_OK;
}

static crd_status snapshot_create(crd_master* m, crd_snapshot** out)
{
    const size_t n = (size_t)m->plan->member_count, rows = (size_t)crdi_columns_count(m);
    crd_snapshot* s = crdi_new(m->ctx, sizeof *s);
    if (!s) { return CRD_E_MEMORY; }
    s->of = m;
    s->units = crdi_new_array(m->ctx, n, sizeof *s->units);
    s->held = crdi_new_array(m->ctx, 2 * n, sizeof *s->held);
    s->rows = crdi_new_array(m->ctx, rows, sizeof *s->rows);
    s->after = m->snapshots;
    if (s->after) { s->after->before = s; }
    m->snapshots = s;
    if (!s->units || !s->held || !s->rows) {
        crd_snapshot_destroy(s);
        return CRD_E_MEMORY;
    }
    *out = s;
    return CRD_OK;
}

crd_status crdi_snapshot_take(crd_master* m, bool file, crd_snapshot** state)
{
    crd_status st = CRD_OK;
    crd_snapshot* s = *state;
    CRD_TRY(check_moment(m, "saved"));
    CRD_TRY(crdi_snapshot_check(m, file));
    if (s && s->of != m) {
        return crdi_fail(m->ctx, CRD_E_STATE, "the state to be used again is one of another run");
    }
    if (!s) { CRD_TRY(snapshot_create(m, &s)); }
    CRD_TRY(list_spans(s));
    char* data = crdi_grow(m->ctx, s->data, &s->data_room, s->size, 1);
    if (!data) { CRD_TRY(CRD_E_MEMORY); }
    s->data = data;
    CRD_TRY(snapshot_units(s, false)); // first: it may change what stands in the master
    copy_data(s, false);
    crdi_columns_save(m, s->rows);
    s->time = crd_master_time(m);
    s->end = m->life.end;
    s->end_member = m->life.end_member;
    s->wish = m->life.wish;
    *state = s;
    return CRD_OK;
fail:
    if (s && s != *state) { crd_snapshot_destroy(s); }
    return st;
}

crd_status crd_master_save(crd_master* m, crd_snapshot** state)
{
    return crdi_snapshot_take(m, false, state);
}

double crd_snapshot_time(const crd_snapshot* s)
{
    return s->time;
}

size_t crd_snapshot_size(const crd_snapshot* s)
{
    return s->size;
}

void crd_snapshot_destroy(crd_snapshot* s)
{
    if (!s) { return; }
    crd_master* m = s->of;
    for (int i = 0; s->units && i < m->plan->member_count; i++) {
        const crdi_member* p = &m->plan->members[i];
        if (s->units[i].state && !p->run->crashed) {
            p->unit->ops->state->free(p->unit, &s->units[i].state);
        }
    }
    *(s->before ? &s->before->after : &m->snapshots) = s->after;
    if (s->after) { s->after->before = s->before; }
    if (m->start == s) { m->start = NULL; }
    crd_free(m->ctx, s->units);
    crd_free(m->ctx, (void*)s->held);
    crd_free(m->ctx, s->rows);
    crd_free(m->ctx, s->spans);
    crd_free(m->ctx, s->data);
    crd_free(m->ctx, s);
}

void crdi_snapshots_free(crd_master* m)
{
    while (m->snapshots) {
        crd_snapshot_destroy(m->snapshots);
    }
}

// ---- restore -----------------------------------------------------------------------------------

// Newer than those of the copy.
void crdi_snapshot_hold(const crd_snapshot* s, bool back)
{
    crd_master* m = s->of;
    for (int i = 0; i < m->plan->member_count; i++) {
        void** const at[] = {&m->plan->members[i].run->state, crdi_solvers_state(m, i)};
        for (int k = 0; k < 2 && at[k]; k++) {
            *(back ? at[k] : &s->held[2 * i + k]) = back ? s->held[2 * i + k] : *at[k];
        }
    }
}

crd_status crd_master_restore(crd_master* m, const crd_snapshot* state)
{
    crd_status st = CRD_OK;
    CRD_TRY(check_moment(m, "set back"));
    if (!state || state->of != m) {
        return crdi_fail(m->ctx, CRD_E_STATE, "the state was not saved by this run");
    }
    CRD_TRY(crd_master_can_save(m));
    for (crd_snapshot* s = m->snapshots; s; s = s->after) {
        crdi_columns_branch(m, s->rows);
    }
    crdi_snapshot_hold(state, false);
    copy_data(state, true);
    crdi_snapshot_hold(state, true);
    CRD_TRY(snapshot_units((crd_snapshot*)state, true));
    crdi_columns_restore(m, state->rows);
    crdi_tuning_restart(m);
    m->life.end = state->end;
    m->life.end_member = state->end_member;
    m->life.wish = state->wish;
    m->life.stopped_by_page = false;
    __atomic_store_n(&m->cancelled, false, __ATOMIC_RELAXED);
    return CRD_OK;
fail:
    return crdi_events_note_failure(m, st);
}

crd_status crd_master_reset(crd_master* m)
{
    const crd_status st = check_moment(m, "set back");
    if (st < 0) { return st; }
    return m->start ? crd_master_restore(m, m->start) : crd_master_can_save(m);
}

crd_status crdi_snapshot_start(crd_master* m)
{
    if (!m->plan->opt.snapshots || crdi_snapshot_check(m, true) < 0) {
        return CRD_OK;
    } // said later
    return crdi_snapshot_take(m, true, &m->start);
}
