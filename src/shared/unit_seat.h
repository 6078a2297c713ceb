/// A seat: where one page at a time moves the levers of a driver (`driver:` of a unit).
///
/// Two threads: the watcher's (a page's server) takes the seat for a page, gives it up and says
/// where the levers are to go; the thread that steps the unit looks once a step, moves the levers
/// and takes the seat away from a page that is silent. Neither waits for the other. Whoever lost
/// the seat has to take it again before it moves anything.
#pragma once
#include "cardan/system.h"
#include "cardan/unit.h"

#include <stdatomic.h>

typedef struct crdi_seat_goal {
    _Atomic double target; ///< NaN: where it is now
    _Atomic double rate;   ///< 1/s
} crdi_seat_goal;

typedef struct crdi_seat {
    const char* name; ///< of its unit
    const crd_driver_spec* driver;
    atomic_llong holder; ///< number of the page that has it, 0: nobody
    atomic_bool gone;    ///< that page's connection is closed; its silence counts all the same
    atomic_ullong signs; ///< of life of the holder, so far
    atomic_llong lost;   ///< how often a holder was silent for too long
    crdi_seat_goal goals[CRD_LEVERS_MAX];
} crdi_seat;

/// The seat of a driver, NULL: the unit is none.
crdi_seat* crdi_unit_seat(const crd_unit* u);

// ---- the watcher's thread: failures are sentences in `ctx`
// ---------------------------------------

/// CRD_E_STATE: another page has it. It moves nothing: levers go on to where they went, at rest
/// where nobody had it.
crd_status crdi_seat_take(crdi_seat* s, crd_context* ctx, int64_t page);
/// CRD_E_STATE: the page does not have it (any more).
crd_status crdi_seat_release(crdi_seat* s, crd_context* ctx, int64_t page);
void crdi_seat_leave(crdi_seat* s, int64_t page); ///< its connection is closed
/// A sign of life, with new targets of all levers, or none: count 0. CRD_E_RANGE: nothing is taken.
crd_status crdi_seat_drive(crdi_seat* s, crd_context* ctx, int64_t page, const double* values,
                           int count);
/// One lever: target NaN: it stays where it is; rate NaN: its fastest.
crd_status crdi_seat_go(crdi_seat* s, crd_context* ctx, int64_t page, int lever, double target,
                        double rate);

// ---- the unit's thread
// ---------------------------------------------------------------------------

/// Somebody has it, and has been silent for too long: nobody has it from now on. False: that page
/// has just gone by itself.
bool crdi_seat_expire(crdi_seat* s, int64_t holder);
