#include "coupling/timeline.h"

#include <math.h>

enum {
    RESTART_AFTER = 16,  // samples in a row from before the history: the partner began anew
    CLOCK_SET_AFTER = 4, // stamps in a row that contradict the numbers but run evenly
};

void crdi_timeline_init(crdi_timeline* tl, double step, double start_time)
{
    *tl = (crdi_timeline){.step = step,
                          .per_step = 1 / step,
                          .start_time = start_time,
                          .stamp = start_time,
                          .sequence = -1,
                          .odd_stamp = NAN};
}

bool crdi_timeline_set_step(crdi_timeline* tl, double step)
{
    if (!(step > 0) || !isfinite(step) || !isfinite(1 / step)) { return false; }
    tl->step = step;
    tl->per_step = 1 / step;
    return true;
}

static int64_t timeline_steps_of(const crdi_timeline* tl, double seconds)
{
    return llround(fmax(-1e15, fmin(seconds * tl->per_step, 1e15)));
}

static int64_t bounded(int64_t sequence)
{
    return sequence < CRDI_NUMBER_MAX ? sequence : CRDI_NUMBER_MAX;
}

void crdi_timeline_start(crdi_timeline* tl, double stamp, int64_t sequence)
{
    const bool known = isfinite(stamp);
    tl->sequence = sequence >= 0 ? bounded(sequence)
                   : known       ? timeline_steps_of(tl, stamp - tl->start_time)
                                 : 0;
    tl->stamp = known ? stamp : tl->start_time + (double)tl->sequence * tl->step;
    tl->outdated = 0;
}

crdi_place crdi_timeline_place(crdi_timeline* tl, double stamp, int64_t sequence, int64_t past,
                               int64_t capacity, int64_t* steps)
{
    const bool known = isfinite(stamp);
    const int64_t ahead = sequence >= 0 ? bounded(sequence) - tl->sequence
                          : known       ? timeline_steps_of(tl, stamp - tl->stamp)
                                        : 1;
    if (ahead > capacity) { return CRDI_PLACE_RESTART; }
    *steps = ahead > 0 ? ahead : -ahead;
    if (ahead > 0) { return CRDI_PLACE_NEW; }
    if (*steps < capacity && *steps < past) { return CRDI_PLACE_OLD; }
    if (tl->outdated_at != tl->sequence) { tl->outdated = 0; }
    tl->outdated_at = tl->sequence;
    tl->outdated++;
    const bool anew = (known && stamp > tl->stamp) || tl->outdated >= RESTART_AFTER;
    return anew ? CRDI_PLACE_RESTART : CRDI_PLACE_TOO_LATE;
}

// Was the partner's clock set back, or one stamp too large? A clock that is only too coarse stands
// still in between.
static bool clock_was_set(crdi_timeline* tl, double stamp, int64_t steps)
{
    const double run = (stamp - tl->odd_stamp) * tl->per_step;
    tl->odd = fabs(run - (double)steps) < 0.5 ? tl->odd + 1 : 0;
    tl->odd_stamp = stamp;
    return tl->odd >= CLOCK_SET_AFTER;
}

bool crdi_timeline_advance(crdi_timeline* tl, double stamp, int64_t steps)
{
    const bool contradicts = stamp <= tl->stamp;
    const bool use = isfinite(stamp) && (!contradicts || clock_was_set(tl, stamp, steps));
    tl->stamp = use ? stamp : tl->stamp + (double)steps * tl->step;
    tl->sequence += steps;
    tl->outdated = 0;
    return !contradicts;
}
