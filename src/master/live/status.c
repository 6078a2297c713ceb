// Snapshots: plain copies of numbers. Three of them: the cycle thread fills one, the watcher looks
// at one, and the third changes hands by one exchange, so that neither waits.
#include "master/live/live.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NEWER = 4 };

crd_status crdi_live_make_snapshots(crdi_live* l)
{
    for (int i = 0; i < 3; i++) {
        crdi_live_status* s = &l->shots[i];
        s->units = crdi_arena_new(&l->arena, (size_t)l->info.unit_count, sizeof *s->units);
        s->links = crdi_arena_new(&l->arena, (size_t)l->info.link_count, sizeof *s->links);
        s->bonds = crdi_arena_new(&l->arena, (size_t)l->info.bond_count, sizeof *s->bonds);
        s->ports = crdi_arena_new(&l->arena, (size_t)l->info.port_count, sizeof *s->ports);
        if (!s->units || !s->links || !s->bonds || !s->ports) { return CRD_E_MEMORY; }
    }
    l->front = 0;
    l->back = 1;
    atomic_init(&l->middle, 2);
    return CRD_OK;
}

// ---- numbers -----------------------------------------------------------------------------------

static void show_unit(crd_master* m, int i, crdi_live_unit_state* out)
{
    const crdi_member* p = &m->plan->members[i];
    int64_t lasts;
    *out = (crdi_live_unit_state){
        .steps = crdi_async_steps(m, i, &lasts),
        .failed = p->run->crashed || (m->life.end == CRD_END_FAILED && m->life.end_member == i),
    };
    out->ns_last = lasts > p->run->ns_last ? lasts : p->run->ns_last;
    out->ns_worst = lasts > p->run->ns_worst ? lasts : p->run->ns_worst;
    out->late = crdi_async_late(m, i, &out->is_late);
    out->has_link = crdi_member_link(m, i, &out->link);
}

// As in the verdict.
static void show_prediction(const crdi_prediction* f, crdi_live_link_state* out)
{
    const crd_defect_sum* c = &f->connection;
    const bool any = c->steps > 0 || c->broken > 0;
    const double rms = any ? crd_defect_rms(c) : 0;
    const double output =
        f->output && f->output->steps > 0 ? crd_defect_rms(f->output) : (double)NAN;
    out->defect = any ? f->rms : 0;
    out->scale = crdi_prediction_scale(f);
    out->relative = isnan(rms) ? rms : (isnan(output) ? rms : fmax(rms, output)) / out->scale;
}

static void show_observed(const crd_master* m, const crdi_observed* w, crdi_live_link_state* out)
{
    const double time = m->clock.time - m->plan->times.start;
    out->defect = fabs(w->bias);
    out->scale = crdi_observed_scale(w);
    out->relative = time > 0 ? sqrt(w->integral / time) / out->scale : 0;
}

static void show_couple(const crd_master* m, const crdi_coupled* c, crdi_live_link_state* out)
{
    const crdi_estimator* p = &c->estimators[0];
    const crd_coupling_counts n = crd_coupling_get_counts(p->element);
    if (c->arrived) { out->age = crd_master_time(m) - crd_coupling_get_state(p->element).stamp; }
    out->k = (int)c->k;
    out->error = p->error;
    out->sent = c->sent;
    out->lost = c->lost;
    out->late = n.late + n.too_late;
    out->duplicates = n.duplicates;
    out->jumps = n.jumps;
    out->active = (int)c->active;
}

double crdi_live_value(const crdi_live_wire* w)
{
    if (w->couple) { return w->couple->estimators[0].estimate; } // written when its step begins
    switch (crd_type_kind(w->type)) {
    case CRD_REAL:
        return *(const double*)w->to;
    case CRD_INTEGER:
        return w->type == CRD_UINT64 ? (double)*(const uint64_t*)w->to
                                     : (double)*(const int64_t*)w->to;
    default:
        return (double)NAN;
    }
}

static void show_link(const crdi_live* l, const crdi_live_status* s, int i,
                      crdi_live_link_state* out)
{
    const crd_master* m = l->m;
    const crdi_live_wire* w = &l->wires[i];
    const crdi_fault* f = &l->faults[i];
    const bool disturbed =
        f->kind != CRDI_FAULT_NONE && f->kind < CRDI_FAULT_DROP && !isnan(f->applied);
    const crdi_live_unit_state* source = &s->units[w->link->from.member];
    *out = (crdi_live_link_state){.value = disturbed ? f->applied : crdi_live_value(w),
                                  .defect = (double)NAN,
                                  .scale = (double)NAN,
                                  .relative = (double)NAN,
                                  .age = source->has_link ? source->link.age : (double)NAN,
                                  .k = -1,
                                  .error = (double)NAN,
                                  .fault = (int)f->kind,
                                  .fault_left = (double)NAN};
    const crdi_prediction* p = w->link->prediction;
    if (p) {
        show_prediction(p, out);
        crdi_live_copy_text(out->algorithm, sizeof out->algorithm, crd_predictor_name(p->used));
    } else if (w->couple) {
        show_couple(m, w->couple, out);
        if (w->link->observed) { show_observed(m, w->link->observed, out); }
        crdi_live_copy_text(out->algorithm, sizeof out->algorithm, w->couple->estimators[0].label);
    } else if (w->link->observed) {
        show_observed(m, w->link->observed, out);
        crdi_live_copy_text(out->algorithm, sizeof out->algorithm,
                            w->link->paired ? "wave pair" : crd_predictor_name(CRD_PREDICT_HOLD));
    } else if (w->link->paired) {
        crdi_live_copy_text(out->algorithm, sizeof out->algorithm, "wave pair");
    }
    if (f->kind != CRDI_FAULT_NONE && isfinite(f->end)) {
        out->fault_left = fmax(0, f->end - crd_master_time(m));
    }
}

static void show_bond(const crdi_bond* p, crdi_live_bond_state* out)
{
    const crd_bond_state* s = &p->state;
    *out = (crdi_live_bond_state){.residual = s->power,
                                  .energy = p->created - p->worked,
                                  .work = p->worked,
                                  .relative = p->created == 0 ? 0 : p->created / s->scale};
    for (int i = 0; i < p->axis_count; i++) {
        out->power += p->parts[i].f * p->parts[i].v;
    }
}

static void show_port(const crdi_paired_side* p, crdi_live_port_state* out)
{
    *out = (crdi_live_port_state){.tank = p->shown.tank,
                                  .dumped = p->shown.dumped,
                                  .predicted = p->over ? (double)p->over->used : (double)NAN};
}

// Simulated seconds per second over the last snapshots of the run as it runs now.
static double find_speed(crdi_live* l, double time, int64_t now)
{
    if (l->state != CRDI_LIVE_RUNNING || l->first_ns == 0) {
        if (l->state < CRDI_LIVE_STOPPING) {
            l->speed_count = 0;
            return 0;
        }
    } else {
        l->speeds[l->speed_count++ % CRDI_LIVE_SPEEDS] = (crdi_speed){time, now};
    }
    if (l->speed_count < 2) { return 0; }
    const int64_t n = l->speed_count;
    const crdi_speed* last = &l->speeds[(n - 1) % CRDI_LIVE_SPEEDS];
    const crdi_speed* old = &l->speeds[n > CRDI_LIVE_SPEEDS ? n % CRDI_LIVE_SPEEDS : 0];
    return last->ns > old->ns ? (last->time - old->time) / (1e-9 * (double)(last->ns - old->ns))
                              : 0;
}

// ---- the exchange ------------------------------------------------------------------------------

const char* crdi_live_reason(const crd_master* m)
{
    return m->life.message[0]               ? m->life.message
           : m->life.end == CRD_END_OVERRUN ? "a cycle was late, and the pace says to stop then"
           : m->life.end == CRD_END_GUARD   ? crdi_guard_get_report(m).text
           : m->life.stopped_by_page        ? "stopped by a command"
           : m->life.end == CRD_END_UNIT    ? "a unit wished the end"
                                            : "";
}

void crdi_live_snapshot(crdi_live* l, int64_t now)
{
    crd_master* m = l->m;
    crdi_live_status* s = &l->shots[l->back];
    s->number = ++l->number;
    s->state = l->state;
    const bool over = l->state >= CRDI_LIVE_STOPPING;
    s->end = over ? m->life.end : CRD_END_NONE;
    s->time = crd_master_time(m);
    s->h = m->clock.h;
    s->cycles = m->clock.n;
    s->elapsed_ns = l->first_ns ? now - l->first_ns : 0;
    s->speed = find_speed(l, s->time, now);
    s->rows = l->row_count;
    s->warnings = crdi_events_warnings(m);
    s->pace = *crdi_pacing_report(m);
    s->pace.on = m->plan->paced;
    if (!m->plan->paced) { s->pace.busy = l->busy; }
    crdi_live_copy_text(s->message, sizeof s->message, over ? crdi_live_reason(m) : "");
    crdi_live_copy_text(s->guard, sizeof s->guard, crdi_guard_get_report(m).text);
    for (int i = 0; i < l->info.unit_count; i++) {
        show_unit(m, i, &s->units[i]);
    }
    for (int i = 0; i < l->info.link_count; i++) {
        show_link(l, s, i, &s->links[i]);
    }
    for (int i = 0; i < l->info.bond_count; i++) {
        show_bond(&m->energy.bonds[i], &s->bonds[i]);
    }
    for (int i = 0; i < l->info.port_count; i++) {
        show_port(&m->connections.pairs[i / 2].sides[i % 2], &s->ports[i]);
    }
    l->status_ns = now;
    if (!over) { atomic_store_explicit(&l->state_seen, (int)l->state, memory_order_relaxed); }
    l->back = atomic_exchange_explicit(&l->middle, l->back | NEWER, memory_order_acq_rel) & 3;
}

enum { MOST_AT_ONCE = 10 };

// Overruns are kept as numbers; here, on the watcher's thread, is time to word them.
static void tell_overruns(crdi_live* l, const crdi_live_status* s)
{
    const crd_pace_report* r = &s->pace;
    char text[CRDI_LIVE_TEXT];
    const int64_t fresh = r->overruns - l->overruns_noted;
    if (fresh <= 0) { return; }
    int64_t noted = 0;
    for (int i = 0; i < r->kept_count; i++) {
        const crd_overrun_info* o = &r->kept[i];
        if (o->cycle <= l->overrun_cycle || noted == MOST_AT_ONCE) { continue; }
        crdi_pacing_word_overrun(o, l->m->plan, text, sizeof text);
        crdi_live_put_event(l, CRD_EVENT_OVERRUN, o->time, text);
        noted++;
    }
    if (r->kept_count) { l->overrun_cycle = r->kept[r->kept_count - 1].cycle; }
    if (fresh > noted) {
        snprintf(text, sizeof text, "overrun: %lld %scycles were late", (long long)(fresh - noted),
                 noted ? "more " : "");
        crdi_live_put_event(l, CRD_EVENT_OVERRUN, s->time, text);
    }
    l->overruns_noted = r->overruns;
}

const crdi_live_status* crdi_live_get_status(crdi_live* l)
{
    if (!crdi_live_is_ready(l)) { return NULL; }
    if (atomic_load_explicit(&l->middle, memory_order_relaxed) & NEWER) {
        l->front = atomic_exchange_explicit(&l->middle, l->front, memory_order_acq_rel) & 3;
        crdi_live_status* s = &l->shots[l->front];
        // With a cycle done the pacer has started, and what is asked of it stays as it is.
        if (s->pace.on && s->pace.cycles > 0 && s->state < CRDI_LIVE_STOPPING) {
            crdi_pacing_usage(l->m, &s->pace);
        }
        tell_overruns(l, s);
    }
    crdi_live_free_returned(l);
    return l->shots[l->front].number ? &l->shots[l->front] : NULL;
}
