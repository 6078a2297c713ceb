// Commands take effect: on the cycle thread, between two steps. Nothing is made or freed here.
#include "master/live/live.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void leave(crdi_live* l, const crdi_leftover* x)
{
    crdi_leftover* to = crdi_ring_write(l->leftovers);
    if (!to) { return; } // there is room for all that may be
    *to = *x;
    crdi_ring_commit(l->leftovers);
}

// ---- settings ----------------------------------------------------------------------------------

static void note_refusal(crdi_live* l, const crdi_live_order* o, const crd_unit* u)
{
    char text[CRDI_LIVE_TEXT];
    snprintf(text, sizeof text, "%s: refused by unit '%.60s': %.120s",
             l->info.settings[o->setting].name, u->name, crd_error_text(u->ctx));
    crdi_events_note(l->m, CRD_EVENT_ERROR, text);
    leave(l, &(crdi_leftover){.refused = o->setting});
}

static crd_status set_value(crdi_live* l, const crdi_live_order* o)
{
    crd_master* m = l->m;
    const crdi_live_place* at = &l->places[o->setting];
    crdi_live_knob* k = &l->knobs[at->knob];
    crd_unit* u = m->plan->members[k->member].unit;
    const bool real = k->binding->real_count > 0;
    const double was = real ? k->values.real[at->element] : 0;
    const int64_t was_integer = real ? 0 : k->values.integer[at->element];
    if (real) {
        k->values.real[at->element] = o->real;
    } else {
        k->values.integer[at->element] = o->integer;
    }
    m->running = k->member;
    const crd_status st = u->ops->set(u, k->binding, &k->values);
    m->running = -1;
    if (st >= 0) {
        crdi_events_note(m, CRD_EVENT_MARK, o->text);
        return CRD_OK;
    }
    if (real) {
        k->values.real[at->element] = was;
    } else {
        k->values.integer[at->element] = was_integer;
    }
    note_refusal(l, o, u);
    return st == CRD_E_CRASH ? crdi_member_failed(m, k->member, st) : CRD_OK;
}

// A unit that is late is in its step: it can be told afterwards.
static bool is_busy(const crdi_live* l, const crdi_live_order* o)
{
    return crdi_async_busy(l->m, l->knobs[l->places[o->setting].knob].member);
}

static crd_status set_or_postpone(crdi_live* l, const crdi_live_order* o)
{
    if (!is_busy(l, o)) { return set_value(l, o); }
    if (l->postponed_count < CRDI_LIVE_ORDERS) {
        l->postponed[l->postponed_count++] = *o;
    } else {
        crdi_events_note(l->m, CRD_EVENT_ERROR,
                         "a setting was dropped: its unit is late and too many wait for it");
        leave(l, &(crdi_leftover){.refused = o->setting});
    }
    return CRD_OK;
}

static crd_status set_postponed(crdi_live* l)
{
    crd_status st = CRD_OK;
    int kept = 0;
    for (int i = 0; i < l->postponed_count; i++) {
        if (st < 0 || is_busy(l, &l->postponed[i])) {
            l->postponed[kept++] = l->postponed[i];
        } else {
            st = set_value(l, &l->postponed[i]);
        }
    }
    l->postponed_count = kept;
    return st;
}

// ---- couplings ---------------------------------------------------------------------------------

static void swap_element(crdi_live* l, const crdi_live_order* o)
{
    const crdi_estimator by = {
        .element = o->element, .description = o->description, .latency = o->latency};
    const crdi_estimator old = crdi_coupled_swap(l->m, l->wires[o->link].couple, &by);
    leave(l, &(crdi_leftover){old.element, old.description, old.learn, -1});
    crdi_events_note(l->m, CRD_EVENT_MARK, o->text);
}

// ---- all of them -------------------------------------------------------------------------------

static crd_status apply_order(crdi_live* l, const crdi_live_order* o)
{
    crd_master* m = l->m;
    switch (o->action) {
    case CRDI_LIVE_SET:
        return set_or_postpone(l, o);
    case CRDI_LIVE_COUPLE:
        swap_element(l, o);
        return CRD_OK;
    case CRDI_LIVE_START:
        l->state = CRDI_LIVE_RUNNING;
        l->steps_left = -1;
        break;
    case CRDI_LIVE_PAUSE:
        if (l->state == CRDI_LIVE_RUNNING) { l->state = CRDI_LIVE_PAUSED; }
        break;
    case CRDI_LIVE_STEP:
        l->state = CRDI_LIVE_RUNNING;
        l->steps_left = o->count;
        break;
    case CRDI_LIVE_STOP:
        crdi_life_stop_by_command(m);
        break;
    case CRDI_LIVE_FAULT:
        crdi_fault_begin(l, o, crd_master_time(m));
        break;
    case CRDI_LIVE_CLEAR:
        crdi_fault_clear(l, o->link);
        break;
    case CRDI_LIVE_MARK:
    case CRDI_LIVE_EMERGENCY: // comes by its own way
    case CRDI_LIVE_PREPARE:   // alike
    case CRDI_LIVE_TAKE:      // seats are told at once, and are marks here
    case CRDI_LIVE_RELEASE:
    case CRDI_LIVE_DRIVE:
    case CRDI_LIVE_GO:
    case CRDI_LIVE_CALIBRATE:
        break;
    }
    if (o->text[0]) { crdi_events_note(m, CRD_EVENT_MARK, o->text); }
    return CRD_OK;
}

static void say_not_done(crdi_live* l, const crdi_live_order* o)
{
    char text[CRDI_LIVE_TEXT];
    snprintf(text, sizeof text, "not done, the run has ended: %.200s", o->text);
    crdi_events_note(l->m, CRD_EVENT_ERROR, text);
}

// What came while the last step went on, or waited for a unit that was late. It was accepted, so
// what became of it is told.
void crdi_live_refuse_rest(crdi_live* l)
{
    for (int i = 0; i < l->postponed_count; i++) {
        say_not_done(l, &l->postponed[i]);
    }
    l->postponed_count = 0;
    for (const crdi_live_order* o; (o = crdi_ring_read(l->orders)) != NULL;) {
        if (o->action == CRDI_LIVE_MARK) {
            crdi_events_note(l->m, CRD_EVENT_MARK, o->text);
        } else {
            say_not_done(l, o);
        }
        if (o->element) { leave(l, &(crdi_leftover){o->element, o->description, NULL, -1}); }
        crdi_ring_release(l->orders);
    }
}

crd_status crdi_live_apply_commands(crdi_live* l, bool* any)
{
    crd_status st = l->postponed_count ? set_postponed(l) : CRD_OK;
    *any = false;
    for (const crdi_live_order* o; st >= 0 && (o = crdi_ring_read(l->orders)) != NULL;) {
        st = apply_order(l, o);
        crdi_ring_release(l->orders);
        *any = true;
    }
    return st;
}
