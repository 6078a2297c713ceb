// Faults: what is done to the value of an input on its way into the unit, and to the samples of a
// coupling. The values themselves stay as they are: they are disturbed at the unit's door and put
// right behind it, so that nothing is disturbed twice and an end leaves no trace.
#include "master/live/live.h"

#include <math.h>

const char* crdi_fault_name(crdi_fault_kind kind)
{
    static const char* const names[CRDI_FAULT_KINDS] = {"none", "hold",  "value", "offset",
                                                        "gain", "noise", "drop",  "delay"};
    return kind >= 0 && kind < CRDI_FAULT_KINDS ? names[kind] : "";
}

// ---- at the unit's door ------------------------------------------------------------------------

double crdi_fault_chance(int64_t fault, int64_t at)
{
    const uint64_t seed = crdi_scramble((uint64_t)fault * UINT64_C(0x9e3779b97f4a7c15) + 1);
    return (double)(crdi_scramble(seed + (uint64_t)at * UINT64_C(0x9e3779b97f4a7c15)) >> 11) *
           0x1p-53;
}

// Normal (Box and Muller), from the number of the fault and of the tick: a step that is repeated
// meets the same noise.
static double normal(const crdi_fault* f)
{
    const double a = 1 - crdi_fault_chance(f->number, 2 * f->m->clock.n);
    const double b = crdi_fault_chance(f->number, 2 * f->m->clock.n + 1);
    return sqrt(-2 * log(a)) * cos(6.283185307179586 * b);
}

static void disturb(crdi_fault* f)
{
    const crdi_member* p = f->member;
    double* x = &p->inputs.real[f->slot];
    double gain = 1;
    f->clean = *x;
    switch (f->kind) {
    case CRDI_FAULT_HOLD:
    case CRDI_FAULT_VALUE:
        *x = f->value;
        gain = 0;
        break;
    case CRDI_FAULT_OFFSET:
        *x += f->value;
        break;
    case CRDI_FAULT_GAIN:
        *x *= f->value;
        gain = f->value;
        break;
    case CRDI_FAULT_NOISE:
        *x += f->value * normal(f);
        break;
    default:
        break;
    }
    f->applied = *x;
    for (int d = 0; d < p->slope_order; d++) {
        f->clean_slopes[d] = p->slopes[d][f->slot];
        p->slopes[d][f->slot] *= gain;
    }
}

bool crdi_live_disturbs(const crd_master* m)
{
    return m->live->disturbed > 0;
}

void crdi_faults_apply(const crdi_member* p)
{
    for (crdi_fault* f = p->run->faults; f; f = f->next) {
        disturb(f);
    }
}

void crdi_faults_undo(const crdi_member* p)
{
    for (const crdi_fault* f = p->run->faults; f; f = f->next) {
        p->inputs.real[f->slot] = f->clean;
        for (int d = 0; d < p->slope_order; d++) {
            p->slopes[d][f->slot] = f->clean_slopes[d];
        }
    }
}

double crdi_fault_input(const crdi_member* p, const double* input)
{
    for (const crdi_fault* f = p->run->faults; f; f = f->next) {
        if (&p->inputs.real[f->slot] == input) { return f->applied; }
    }
    return (double)NAN;
}

// ---- beginning and end -------------------------------------------------------------------------

static bool is_of_coupling(crdi_fault_kind kind)
{
    return kind == CRDI_FAULT_DROP || kind == CRDI_FAULT_DELAY;
}

static void take_out(crdi_fault* f)
{
    crdi_fault** at = &f->member->run->faults;
    while (*at && *at != f) {
        at = &(*at)->next;
    }
    if (*at) { *at = f->next; }
    f->next = NULL;
}

static void end_fault(crdi_live* l, int link)
{
    crdi_fault* f = &l->faults[link];
    crdi_coupled* c = l->wires[link].couple;
    if (f->kind == CRDI_FAULT_NONE) { return; }
    if (is_of_coupling(f->kind)) {
        c->drop = c->delay = 0;
    } else {
        take_out(f);
        l->disturbed--;
    }
    f->kind = CRDI_FAULT_NONE;
    f->applied = (double)NAN;
    l->fault_count--;
}

void crdi_fault_begin(crdi_live* l, const crdi_live_order* o, double t)
{
    crdi_fault* f = &l->faults[o->link];
    crdi_coupled* c = l->wires[o->link].couple;
    const double now = isnan(f->applied) ? crdi_live_value(&l->wires[o->link]) : f->applied;
    end_fault(l, o->link); // one at a time
    f->kind = o->fault;
    f->number = o->number;
    f->value = o->fault == CRDI_FAULT_HOLD ? now : o->value;
    f->end = isnan(o->duration) ? (double)INFINITY : t + o->duration;
    l->fault_count++;
    if (is_of_coupling(f->kind)) {
        c->drop = f->kind == CRDI_FAULT_DROP ? f->value : 0;
        c->delay = f->kind == CRDI_FAULT_DELAY ? f->value : 0;
        c->drop_number = f->number;
        return;
    }
    f->next = f->member->run->faults;
    f->member->run->faults = f;
    l->disturbed++;
}

void crdi_fault_clear(crdi_live* l, int link)
{
    for (int i = link < 0 ? 0 : link; i < (link < 0 ? l->info.link_count : link + 1); i++) {
        end_fault(l, i);
    }
}

void crdi_faults_expire(crdi_live* l, double t)
{
    const double slack =
        1e-6 * l->m->plan->times.tick; // times are multiples of the tick but for rounding
    for (int i = 0; i < l->info.link_count; i++) {
        if (l->faults[i].kind == CRDI_FAULT_NONE || t + slack < l->faults[i].end) { continue; }
        end_fault(l, i);
        crdi_events_note(l->m, CRD_EVENT_MARK, l->wires[i].over);
    }
}
