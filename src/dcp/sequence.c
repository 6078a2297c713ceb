// What is counted of packets: which data are new, missing, repeated or overtaken; how many answers
// strangers get.
#include "shared/dcp.h"

#include <math.h>

int crdi_dcp_sequence_gap(const crdi_dcp_sequence* s, uint16_t seq)
{
    if (!s->begun) { return 0; }
    const uint16_t ahead = (uint16_t)(seq - s->last);
    return ahead == 0 || ahead > INT16_MAX ? -1 : ahead - 1;
}

void crdi_dcp_sequence_take(crdi_dcp_sequence* s, uint16_t seq)
{
    const uint16_t ahead = (uint16_t)(seq - s->last);
    s->window = (s->begun && ahead < 64 ? s->window << ahead : 0) | 1;
    s->last = seq;
    s->begun = true;
}

bool crdi_dcp_sequence_repeated(crdi_dcp_sequence* s, uint16_t seq)
{
    const uint16_t behind = (uint16_t)(s->last - seq);
    const uint64_t bit = behind < 64 ? UINT64_C(1) << behind : 0;
    const bool repeated = s->window & bit;
    s->window |= bit;
    return repeated;
}

bool crdi_dcp_rate_spend(crdi_dcp_rate* r, double per_second, double now)
{
    r->left = fmin(per_second, r->left + per_second * fmax(0, now - r->time));
    r->time = now;
    if (r->left < 1) { return false; }
    r->left -= 1;
    return true;
}

bool crd_dcp_address_equal(const crd_dcp_address* a, const crd_dcp_address* b)
{
    return a->ip == b->ip && a->port == b->port && a->transport == b->transport;
}
