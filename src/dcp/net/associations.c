// The places of partners in a secured network, and what waits for their handshakes.
#include "dcp/net/secure.h"

#include <string.h>

// ---- what waits for a handshake ----------------------------------------------------------------

bool crdi_secure_queue_add(crdi_secure_net* s, int index, const uint8_t* bytes, size_t length)
{
    crdi_secure_peer* p = &s->peers[index];
    // One peer that does not answer leaves room for others.
    const bool much = p->queued > 0 && p->queued + length > QUEUE / 4;
    if (much || QUEUE_HEAD + length > QUEUE - s->queue_end) {
        s->counts.dropped++;
        return false;
    }
    uint8_t* at = s->queue + s->queue_end;
    crdi_store_le(at, 4, (uint64_t)index);
    crdi_store_le(at + 4, 4, length);
    if (length > 0) { memcpy(at + QUEUE_HEAD, bytes, length); }
    s->queue_end += QUEUE_HEAD + length;
    p->queued += QUEUE_HEAD + length;
    return true;
}

void crdi_secure_queue_take(crdi_secure_net* s, int index, bool send)
{
    if (s->peers[index].queued == 0) { return; }
    size_t kept = 0;
    size_t length = 0;
    for (size_t i = 0; i < s->queue_end; i += length) {
        const uint8_t* at = s->queue + i;
        length = QUEUE_HEAD + (size_t)crdi_load_le(at + 4, 4);
        if (crdi_load_le(at, 4) != (uint64_t)index) {
            memmove(s->queue + kept, at, length);
            kept += length;
        } else if (!send || !crdi_secure_seal(s, index, at + QUEUE_HEAD, length - QUEUE_HEAD)) {
            s->counts.dropped++;
        }
    }
    s->queue_end = kept;
    s->peers[index].queued = 0;
}

// ---- places ------------------------------------------------------------------------------------

void crdi_secure_forget_peer(crdi_secure_net* s, int index)
{
    crdi_secure_peer* p = &s->peers[index];
    if (p->phase == FREE) { return; }
    crdi_secure_queue_take(s, index, false);
    s->pending -= p->phase == PENDING;
    s->counts.peers--;
    s->ids[index] = s->there[index] = 0;
    sodium_memzero(p, sizeof *p);
}

// Which place may be given away: 1 rather than 5, 0 not. `own`: for a greeting of ours.
static int expendable(const crdi_secure_peer* p, double now, bool own)
{
    switch (p->phase) {
    case FREE:
        return 1;
    case UNPROVEN:
        return 2;
    case OPEN:
        if (p->retired && now - p->last_received > RETIRED_IDLE) { return 3; }
        return now - p->last_received > OPEN_IDLE ? 5 : 0;
    case PENDING:
        return own ? 4 : 0;
    }
    return 0;
}

int crdi_secure_make_peer_place(crdi_secure_net* s, bool own)
{
    const double now = crdi_secure_now(s);
    int best = -1, best_rank = 0, unproven = 0;
    int oldest_unproven = -1;
    for (int i = 0; i < s->count; i++) {
        const crdi_secure_peer* p = &s->peers[i];
        const int rank = expendable(p, now, own);
        if (p->phase == UNPROVEN) {
            unproven++;
            if (oldest_unproven < 0 || p->last_received < s->peers[oldest_unproven].last_received) {
                oldest_unproven = i;
            }
        }
        if (rank == 0) { continue; }
        if (best < 0 || rank < best_rank ||
            (rank == best_rank && p->last_received < s->peers[best].last_received)) {
            best = i;
            best_rank = rank;
        }
    }
    if (!own && unproven >= MOST_UNPROVEN) { best = oldest_unproven; }
    if (best < 0) {
        if (crdi_secure_first_time(s, SAID_FULL)) {
            crdi_log(s->base.ctx, CRD_LOG_WARNING,
                     "secured network: there are %d peers already, further ones are refused",
                     s->count);
        }
        return -1;
    }
    crdi_secure_forget_peer(s, best);
    crdi_secure_peer* p = &s->peers[best];
    uint64_t id = 0;
    while (id == 0) { // of 2^64: equal to another one by an accident that does not happen
        randombytes_buf(&id, sizeof id);
    }
    s->ids[best] = id;
    p->last_received = now;
    s->counts.peers++;
    return best;
}

int crdi_secure_find_id(const crdi_secure_net* s, uint64_t id)
{
    for (int i = 0; id != 0 && i < s->count; i++) {
        if (s->ids[i] == id) { return i; }
    }
    return -1;
}

bool crdi_secure_belongs(const crdi_secure_peer* p, const crd_dcp_address* from,
                         const crd_dcp_address* at)
{
    if (p->remote.transport != from->transport || p->remote.ip != from->ip) { return false; }
    const bool tcp = from->transport == CRD_DCP_TCP;
    return (p->remote.port == from->port || (tcp && p->greeted)) &&
           (tcp || crd_dcp_address_equal(&p->local, at));
}

int crdi_secure_find_association(const crdi_secure_net* s, const crd_dcp_address* local,
                                 const crd_dcp_address* to)
{
    const uint64_t key = crdi_secure_pack_address(to);
    int found = -1;
    for (int i = 0; i < s->count; i++) {
        if (s->there[i] != key) { continue; }
        const crdi_secure_peer* p = &s->peers[i];
        const bool any = to->transport == CRD_DCP_TCP && (local->port == 0 || p->local.port == 0);
        if (!any && !crd_dcp_address_equal(&p->local, local)) { continue; }
        if (p->phase == OPEN) { return i; }
        found = i;
    }
    return found;
}

void crdi_secure_use_association(crdi_secure_net* s, int index)
{
    const crdi_secure_peer* p = &s->peers[index];
    const uint64_t key = crdi_secure_pack_address(&p->remote);
    for (int i = 0; i < s->count; i++) {
        crdi_secure_peer* q = &s->peers[i];
        if (i == index || s->there[i] != key || q->phase != OPEN) { continue; }
        if (crd_dcp_address_equal(&q->local, &p->local)) {
            q->retired = true;
            s->there[i] = 0;
        }
    }
    s->there[index] = key;
}
