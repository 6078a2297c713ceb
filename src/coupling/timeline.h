// Where a sample belongs: from its time stamp, its sequence number, or the order of arrival.
#pragma once
#include "coupling/coupling.h"

// A latency so little below k is k: time stamps are multiples of dT but for rounding.
#define CRDI_GRID_TOLERANCE 1e-6
enum { CRDI_NEVER = 1 << 30 };
#define CRDI_NUMBER_MAX (INT64_C(1) << 61) // larger sequence numbers are taken for this one

typedef struct crdi_timeline {
    double step, per_step, start_time;
    double stamp;        // time of the newest sample
    int64_t sequence;    // its number
    int outdated;        // samples in a row from before the history ...
    int64_t outdated_at; // ... since that one was the newest
    double odd_stamp;    // the last one that contradicted the numbers
    int odd;             // that many of them in a row ran as a clock does
} crdi_timeline;

typedef enum crdi_place {
    CRDI_PLACE_NEW,      // `steps` after the newest
    CRDI_PLACE_OLD,      // `steps` before it, within the history
    CRDI_PLACE_TOO_LATE, // before the history
    CRDI_PLACE_RESTART,  // the partner began anew, or was away longer than the history
} crdi_place;

void crdi_timeline_init(crdi_timeline* tl, double step, double start_time);
bool crdi_timeline_set_step(crdi_timeline* tl, double step);
void crdi_timeline_start(crdi_timeline* tl, double stamp, int64_t sequence);
/// `past` samples are there, `capacity` at most.
crdi_place crdi_timeline_place(crdi_timeline* tl, double stamp, int64_t sequence, int64_t past,
                               int64_t capacity, int64_t* steps);
/// The newest sample is now `steps` later. false if its stamp contradicts that and was not used.
bool crdi_timeline_advance(crdi_timeline* tl, double stamp, int64_t steps);
/// Is it plainly the next sample? What is rare or odd gets false: crdi_timeline_place knows.
static inline bool crdi_timeline_is_next(const crdi_timeline* tl, double stamp, int64_t sequence)
{
    return CRDI_USUALLY(sequence == tl->sequence + 1)
               ? stamp > tl->stamp && stamp < INFINITY
               : sequence < 0 && fabs((stamp - tl->stamp) * tl->per_step - 1) < 0.5;
}
static inline void crdi_timeline_next(crdi_timeline* tl, double stamp)
{
    tl->stamp = stamp;
    tl->sequence++;
}
/// Latency at time t in macro steps, < 0 before the newest sample, NaN if t is.
static inline double crdi_timeline_age(const crdi_timeline* tl, double t)
{
    return (t - tl->stamp) * tl->per_step;
}
static inline int crdi_timeline_k(double age)
{
    return age < CRDI_NEVER ? (int)(age + CRDI_GRID_TOLERANCE) : CRDI_NEVER;
}
