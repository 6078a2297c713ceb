/// A power bond over a late and lossy link: the coupling's energy is bounded whatever the link
/// does.
///
/// A bond has an effort e (torque, force, voltage) and a flow f (speed, velocity, current); e f is
/// power. One side owns the flow and is given an effort, the other owns the effort and is given a
/// flow. Each side has a crd_pair_port. It acts like the end of a line of impedance b (a wave port,
/// Niemeyer and Slotine 1991), evaluated at the unit's own inner step, and it pays what it gives
/// to its unit from an energy tank: what this side has absorbed, and what the other side has
/// granted. Grants are sent as their sum since the start, so packets may be late, lost, doubled or
/// out of order; no clocks need to agree (cf. time-domain passivity, Hannaford and Ryu 2002).
///
/// Proved, for any network, unit, b and prediction: the coupling has never given more energy than
/// it took plus 3 h |action| |surprise| per side (the largest of both in an inner step h; a
/// surprise is an own value other than reckoned from the unit's last reaction). Nothing at all if
/// `surprise` is given and true. So between passive units nothing grows without bound. It rests on
/// the own values as they are handed over; how exact the result is, is another matter:
/// docs/explanation/pairs.md has figures.
///
/// One struct per side, no memory elsewhere, no lock, no failure after init, libc and libm only;
/// a copy of the struct is its saved state. A side belongs to one thread at a time.
///
///     crd_pair_init(ctx, &pair, &options);
///     each macro step H:
///         for each packet that has arrived:  crd_pair_receive(&pair, &packet, now);
///         for each inner step h:
///             action = crd_pair_act(&pair, own, now);     // own: e or f at the step's start
///             ... the unit does its step with the action held ...
///             crd_pair_done(&pair, mean);                 // mean of the own value over the step
///         crd_pair_send(&pair, now, &packet);             // and off it goes, once
///
/// Signs: e f > 0 at the side that owns the flow is power that leaves its unit into the bond, and
/// at the side that owns the effort it is power that enters its unit. So a mass there is driven by
/// J df/dt = ... - e, and a spring here makes e from the integral of f.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "cardan/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum crd_pair_side {
    CRD_PAIR_OWNS_FLOW,   ///< its unit makes the flow and is given an effort
    CRD_PAIR_OWNS_EFFORT, ///< its unit makes the effort and is given a flow
} crd_pair_side;

/// Start from crd_pair_defaults() and change what you need. Both sides need the same impedance (or
/// both learn it); inner steps may differ.
typedef struct crd_pair_options {
    crd_pair_side side;
    double step;  ///< inner step h, s; no default
    double macro; ///< macro step H, s, >= h; no default
    /// b in effort per flow. Near sqrt(k J) of what is coupled it is most accurate; any value is
    /// stable. 0: learned, from 1 on.
    double impedance;
    bool learn; ///< b is learned by the side that owns the effort, the other follows; default false
    /// Change of the mean own value per action within one inner step, > 0: h/(2 J) of an inertia,
    /// d + k h/2 of a spring and damper. 0: learned in the run, the default.
    double reaction;
    /// Bound of what the own value does in an inner step (its mean against its start) other than
    /// by the reaction, > 0: greatest acceleration of a bench times h/2. Then the tank is never in
    /// debt. 0: the largest so far times 1.5, the default. A surprise is never forgotten: a wrong
    /// measurement makes the port careful for the rest of its life.
    double surprise;
    /// For units that step once per macro step (h = H): half more reaction.
    bool strict;
    bool no_sync; ///< do not correct drifts of the integrals (it is done up to 30 ms delay)
    /// Bounds for what the network may cause, 0: none. A packet that grants more than `power_max`
    /// for the time since the last is refused; actions are cut at `action_max`.
    double power_max, action_max;
    uint32_t run; ///< number of this side's life, greater after each restart; default 1
} crd_pair_options;

/// What travels, once per macro step in each direction. Numbers only, so that it can be sent as an
/// array of CRD_PAIR_NUMBERS doubles.
typedef struct crd_pair_packet {
    double run, number;          ///< life of the sender and packet in it, from 1 on
    double time;                 ///< sender's clock at the end of its macro step
    double effort, flow;         ///< over the macro step
    double effort_sum, flow_sum; ///< integrals since the start
    double granted;              ///< energy since the start, never decreasing
    double impedance;            ///< b that the sender uses
    double
        echo; ///< receiver's clock: time of its newest packet here + how long that is ago; 0: none
} crd_pair_packet;

enum { CRD_PAIR_NUMBERS = sizeof(crd_pair_packet) / sizeof(double), CRD_PAIR_PAST = 64 };

/// What a packet turned out to be.
typedef enum crd_pair_news {
    CRD_PAIR_TAKEN,
    CRD_PAIR_OLD,     ///< doubled, or overtaken by a newer one: nothing is lost
    CRD_PAIR_REFUSED, ///< impossible: not finite, energy that decreases, leaps; nothing is changed
} crd_pair_news;

/// What a side looks like from outside. Energies in J since the start:
///     tank = absorbed - spent + received - granted - dumped.
typedef struct crd_pair_state {
    double tank;
    double absorbed, spent;   ///< energy that the unit gave to the port, and got from it
    double received, granted; ///< from and to the other side
    double dumped;            ///< thrown away: the tank holds no more than a few round trips need
    double debt;              ///< largest -tank so far: the most that this side can have created
    double impedance;         ///< b now
    double reaction;          ///< G or D now
    double delay;             ///< half the round trip, s; NaN: not known yet
    double age;               ///< since the last packet was taken, s; NaN: none yet
    int64_t steps, limited;   ///< inner steps; those with an action cut for want of energy
    int64_t taken, old, refused; ///< packets
    bool strict, unused[7];      ///< no gap: saved states are all of their bytes
} crd_pair_state;

/// All of a side. Read it by crd_pair_get_state.
typedef struct crd_pair_port {
    crd_pair_options opt;
    double b, reaction;
    double tank, gain, scale, forget; // J, J since the last packet, W, of scale per inner step
    double action, last, own;         // of this inner step and the one before; own: at its start
    double learned;                   // reaction that a step's cost is reckoned with
    double doubt;                     // largest surprise so far, own value
    double xy, xx;                    // sums for the reaction
    int64_t moved;                    // inner steps with another action than before
    // What has arrived
    double far_effort, far_flow, far_granted, far_effort_sum, far_flow_sum;
    double far_run, far_number, far_time, arrived, mean_age, round_trip;
    double wave_far, wave_own, wave_max; // integrals of the wave, and its largest value
    // What will be sent
    double effort_h, flow_h, effort_t, flow_t; // sums over the macro step, also weighted with time
    int64_t inner;                             // inner steps in it
    double effort_sum, flow_sum, granted, number;
    // Learning of b
    double past[CRD_PAIR_PAST][2], ee, ff;
    // Prediction in place of what has arrived
    double ahead_effort, ahead_flow;
    bool ahead;
    crd_pair_state count;
} crd_pair_port;

CRD_API crd_pair_options crd_pair_defaults(crd_pair_side side);

/// CRD_E_RANGE: an option makes no sense; the text says which.
CRD_API crd_status crd_pair_init(crd_context* ctx, crd_pair_port* pair,
                                 const crd_pair_options* opt);

/// Takes any packet at any time; whatever it contains, the side goes on with finite numbers.
CRD_API crd_pair_news crd_pair_receive(crd_pair_port* pair, const crd_pair_packet* packet,
                                       double now);

/// The effort (or flow) to be held over the inner step that begins. `own` is the own flow (effort)
/// at its start. Always finite; 0 if `own` is not.
CRD_API double crd_pair_act(crd_pair_port* pair, double own, double now);

/// The step is done: `mean` of the own value over it. A flow's is displacement / h; the mean of
/// begin and end is exact for a spring. An error here is an error of the energy balance.
CRD_API void crd_pair_done(crd_pair_port* pair, double mean);

/// The same where something between port and unit has the last word, such as the limits of a bench
/// or a drive that follows slowly: `action` is the mean of what was really done. Its energy is
/// booked, sent and learned from; what it took beyond the tank is a debt that the port pays back
/// before it gives anything again. Of a smaller action than asked for, the bound above holds.
CRD_API void crd_pair_done_as(crd_pair_port* pair, double action, double mean);

/// Ends the macro step. Call it once per macro step even if nothing can be sent.
CRD_API void crd_pair_send(crd_pair_port* pair, double now, crd_pair_packet* out);

/// Somebody knows better what the other side does now: used in place of what has arrived, until
/// the next call; the tank pays as before. Numbers that are not finite: back to what has arrived.
CRD_API void crd_pair_predict(crd_pair_port* pair, double effort, double flow);

CRD_API crd_pair_state crd_pair_get_state(const crd_pair_port* pair, double now);

#ifdef __cplusplus
}
#endif
