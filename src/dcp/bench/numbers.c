// Sequence numbers, which both sides of a bench send and send back: one direction of them.
#include "dcp/bench/bench.h"

#include <math.h>

void crdi_bench_next_number(crdi_bench_sequence* s, double now)
{
    s->sent++;
    s->times[s->sent % CRDI_BENCH_RING] = now;
}

bool crdi_bench_take_number(crdi_bench_sequence* s, uint32_t number)
{
    const uint32_t ahead = number - s->theirs;
    if (s->has_theirs && (ahead == 0 || ahead > INT32_MAX)) { return false; }
    s->lost = s->has_theirs ? ahead - 1 : 0;
    s->theirs = number;
    s->has_theirs = true;
    if (!s->has_back) { // from now on they have to send ours back
        s->has_back = true;
        s->back = s->sent;
        s->lost = 0; // what they sent before is nobody's loss
    }
    return true;
}

void crdi_bench_take_echo(crdi_bench_sequence* s, uint32_t number, double now)
{
    if (s->sent - number > INT32_MAX) { return; } // we have not sent it
    if (s->has_back && number - s->back <= INT32_MAX) { s->back = number; }
    const uint32_t newer = number - s->timed;
    if (newer == 0 || newer > INT32_MAX || s->sent - number >= CRDI_BENCH_RING) { return; }
    s->timed = number;
    crd_dcp_round_trip* r = &s->round_trip;
    r->last = now - s->times[number % CRDI_BENCH_RING];
    r->least = r->count ? fmin(r->least, r->last) : r->last;
    r->most = r->count ? fmax(r->most, r->last) : r->last;
    r->sum += r->last;
    r->count++;
}
