// The safety core: see its header. Its rules are one table.
#include "shared/dcp_safety.h"

#include <math.h>

// ---- the table ---------------------------------------------------------------------------------

#define PHASE(name) CRD_DCP_BENCH_##name
#define ON(name) CRDI_SAFETY_##name

// What is not listed does nothing. Nothing but data in RUNNING leads to RUN; every phase in which
// the machine may move is left towards rest by a stop, a fault and the deadman; a stop goes on to
// its end whatever happens meanwhile; and out of SAFE leads a reset or a new registration.
static const struct {
    uint8_t phase, event, next;
    bool cut;
} changes[] = {
    {PHASE(IDLE), ON(PREPARE), PHASE(PREPARATION), false},
    {PHASE(PREPARATION), ON(READY), PHASE(PREPARED), false},
    {PHASE(PREPARED), ON(CONFIGURE), PHASE(CONDITIONING), false},
    {PHASE(CONDITIONING), ON(WARM), PHASE(CONDITIONED), false},
    {PHASE(CONDITIONED), ON(START), PHASE(ARMED), false},
    {PHASE(ARMED), ON(DATA), PHASE(RUN), false},
    // the order of the stop
    {PHASE(SPEED_DOWN), ON(SLOW), PHASE(VOLTAGE_DOWN), false},
    {PHASE(VOLTAGE_DOWN), ON(LOW), PHASE(STAND_DOWN), false},
    {PHASE(VOLTAGE_DOWN), ON(HOT), PHASE(COOL_DOWN), false},
    {PHASE(COOL_DOWN), ON(COOL), PHASE(STAND_DOWN), false},
    {PHASE(STAND_DOWN), ON(STILL), PHASE(SAFE), false},
    // A machine that does not slow down loses its drive, and keeps its voltage: lowered, it would
    // feed back through the diodes of its inverter. Standstill takes the induced voltage away.
    {PHASE(SPEED_DOWN), ON(LATE), PHASE(SPEED_DOWN), true},
    {PHASE(VOLTAGE_DOWN), ON(LATE), PHASE(STAND_DOWN), false},
    {PHASE(COOL_DOWN), ON(LATE), PHASE(STAND_DOWN), false},
    {PHASE(STAND_DOWN), ON(LATE), PHASE(STAND_DOWN), true},
    {PHASE(SAFE), ON(RESET), PHASE(IDLE), false},
};

static const struct {
    uint8_t mover, deadman;
} phases[CRDI_SAFETY_PHASES] = {
    [PHASE(IDLE)] = {CRDI_SAFETY_NOBODY, CRDI_SAFETY_NO_DEADMAN},
    [PHASE(PREPARATION)] = {CRDI_SAFETY_NOBODY, CRDI_SAFETY_NO_DEADMAN},
    [PHASE(PREPARED)] = {CRDI_SAFETY_NOBODY, CRDI_SAFETY_HEART},
    [PHASE(CONDITIONING)] = {CRDI_SAFETY_CONDITION, CRDI_SAFETY_HEART},
    [PHASE(CONDITIONED)] = {CRDI_SAFETY_CONDITION, CRDI_SAFETY_HEART},
    [PHASE(ARMED)] = {CRDI_SAFETY_CONDITION, CRDI_SAFETY_FIRST},
    [PHASE(RUN)] = {CRDI_SAFETY_MASTER, CRDI_SAFETY_NEXT},
    [PHASE(SPEED_DOWN)] = {CRDI_SAFETY_ORDER, CRDI_SAFETY_STAGE},
    [PHASE(VOLTAGE_DOWN)] = {CRDI_SAFETY_ORDER, CRDI_SAFETY_STAGE},
    [PHASE(COOL_DOWN)] = {CRDI_SAFETY_ORDER, CRDI_SAFETY_STAGE},
    [PHASE(STAND_DOWN)] = {CRDI_SAFETY_ORDER, CRDI_SAFETY_STAGE},
    [PHASE(SAFE)] = {CRDI_SAFETY_NOBODY, CRDI_SAFETY_NO_DEADMAN},
};

crdi_safety_mover crdi_safety_mover_of(crd_dcp_bench_phase phase)
{
    return (crdi_safety_mover)phases[phase].mover;
}

crdi_safety_deadman crdi_safety_deadman_of(crd_dcp_bench_phase phase)
{
    return (crdi_safety_deadman)phases[phase].deadman;
}

crdi_safety_step crdi_safety_step_of(crd_dcp_bench_phase phase, crdi_safety_event event)
{
    const crdi_safety_deadman deadman = crdi_safety_deadman_of(phase);
    const bool before_stop = deadman != CRDI_SAFETY_STAGE && phase != CRD_DCP_BENCH_SAFE;
    if (before_stop && (event == CRDI_SAFETY_STOP || event == CRDI_SAFETY_FAULT ||
                        (event == CRDI_SAFETY_SILENCE && deadman != CRDI_SAFETY_NO_DEADMAN))) {
        return (crdi_safety_step){CRD_DCP_BENCH_SPEED_DOWN, false};
    }
    for (unsigned i = 0; i < sizeof changes / sizeof *changes; i++) {
        if (changes[i].phase == phase && changes[i].event == event) {
            return (crdi_safety_step){(crd_dcp_bench_phase)changes[i].next, changes[i].cut};
        }
    }
    return (crdi_safety_step){phase, false};
}

const char* crdi_safety_event_name(int event)
{
    static const char* const names[CRDI_SAFETY_EVENTS] = {
        "prepare", "ready",   "configure", "warm", "start", "early", "foreign", "data", "stop",
        "fault",   "silence", "slow",      "low",  "hot",   "cool",  "still",   "late", "reset"};
    return event < 0 || event >= CRDI_SAFETY_EVENTS ? NULL : names[event];
}

// ---- phases and deadman ------------------------------------------------------------------------

void crdi_safety_init(crdi_safety* s, const crdi_safety_times* times)
{
    *s = (crdi_safety){.times = *times,
                       .phase = CRD_DCP_BENCH_IDLE,
                       .since = -INFINITY,
                       .received = -INFINITY,
                       .due = INFINITY,
                       .valid = -INFINITY};
}

bool crdi_safety_happens(crdi_safety* s, crdi_safety_event event, double now)
{
    const crdi_safety_step step = crdi_safety_step_of(s->phase, event);
    s->foreign += event == CRDI_SAFETY_FOREIGN;
    s->early += event == CRDI_SAFETY_EARLY;
    if (step.cut) { // once: the stage is not late a second time
        const bool first = !s->cut;
        s->cut = true;
        return first;
    }
    if (step.next == s->phase) { return false; }
    if (step.next == CRD_DCP_BENCH_IDLE) {
        s->cut = false;
        s->valid = -INFINITY;
    }
    s->phase = step.next;
    s->since = now;
    return true;
}

void crdi_safety_start(crdi_safety* s, double now, double start)
{
    (void)crdi_safety_happens(s, CRDI_SAFETY_START, now);
    if (s->phase != CRD_DCP_BENCH_ARMED) { return; }
    s->due = fmax(now, start);
    s->valid = -INFINITY;
}

void crdi_safety_data(crdi_safety* s, double now)
{
    s->valid = now;
    (void)crdi_safety_happens(s, CRDI_SAFETY_DATA, now);
}

double crdi_safety_deadline(const crdi_safety* s)
{
    const double heart = s->received + s->times.heart;
    switch (crdi_safety_deadman_of(s->phase)) {
    case CRDI_SAFETY_HEART:
        return fmax(heart, s->since); // not before the phase in which it counts
    case CRDI_SAFETY_FIRST:
        return fmin(fmax(heart, s->since), s->due + s->times.watchdog);
    case CRDI_SAFETY_NEXT:
        return s->valid + s->times.watchdog;
    default:
        return INFINITY;
    }
}

double crdi_safety_stage_end(const crdi_safety* s)
{
    switch (s->phase) {
    case CRD_DCP_BENCH_SPEED_DOWN:
        return s->since + s->times.speed;
    case CRD_DCP_BENCH_VOLTAGE_DOWN:
        return s->since + s->times.voltage;
    case CRD_DCP_BENCH_COOL_DOWN:
        return s->since + s->times.cool;
    case CRD_DCP_BENCH_STAND_DOWN:
        return s->since + s->times.stand;
    default:
        return INFINITY;
    }
}

bool crdi_safety_stopping(const crdi_safety* s)
{
    return s->phase >= CRD_DCP_BENCH_SPEED_DOWN && s->phase <= CRD_DCP_BENCH_SAFE;
}

// ---- envelope ----------------------------------------------------------------------------------

crdi_safety_range crdi_safety_unbounded(void)
{
    return (crdi_safety_range){.min = -INFINITY, .max = INFINITY, .rate = INFINITY};
}

void crdi_safety_axis_open(crdi_safety_axis* a)
{
    a->agreed = a->own;
}

bool crdi_safety_narrow(crdi_safety_axis* a, const crdi_safety_range* by)
{
    const double min = fmax(a->agreed.min, by->min), max = fmin(a->agreed.max, by->max);
    if (!(min <= max) || !(by->rate > 0)) { return false; }
    a->agreed = (crdi_safety_range){min, max, fmin(a->agreed.rate, by->rate)};
    return true;
}

crdi_safety_range crdi_safety_scaled(const crdi_safety_range* of, double factor)
{
    const double a = of->min / factor, b = of->max / factor;
    return (crdi_safety_range){.min = fmin(a, b), .max = fmax(a, b), .rate = INFINITY};
}

double crdi_safety_keep(const crdi_safety_axis* a, double x)
{
    return x < a->agreed.min ? a->agreed.min : x > a->agreed.max ? a->agreed.max : x;
}

double crdi_safety_keep_own(const crdi_safety_axis* a, double x)
{
    const double min = fmax(a->own.min, fmin(0, a->agreed.min));
    const double max = fmin(a->own.max, fmax(0, a->agreed.max));
    return x < min ? min : x > max ? max : x;
}

double crdi_safety_move(double from, double to, double rate, double seconds, bool* slow)
{
    const double most = rate * seconds, way = to - from;
    *slow = fabs(way) > most * (1 + 1e-9) + 1e-12 * fabs(to); // but for rounding
    return *slow ? from + copysign(most, way) : to;
}

bool crdi_safety_note(crdi_safety_clamps* c, double wanted, double used, double now)
{
    if (fabs(used - wanted) <= 1e-9 * fabs(used)) { // a unit's conversion rounds
        c->since = NAN;
        return false;
    }
    const bool begins = isnan(c->since) || c->count == 0;
    if (c->count == 0) {
        c->wanted = wanted;
        c->used = used;
    }
    c->last_wanted = wanted;
    c->values++;
    if (begins) {
        c->count++;
        c->since = now;
    }
    return begins;
}
