// Frames, IPv4 (RFC 791), UDP (RFC 768) and TCP (RFC 9293), big endian, down to PDUs.
#include "dcptools/log/log.h"
#include "shared/wire_can.h"

#include <string.h>

static unsigned load_be16(const uint8_t* p)
{
    return (unsigned)p[0] << 8 | p[1];
}

static uint32_t load_be32(const uint8_t* p)
{
    return (uint32_t)load_be16(p) << 16 | load_be16(p + 2);
}

// ---- ends --------------------------------------------------------------------------------------

static size_t frame_place_of(const crd_dcp_address* a)
{
    uint64_t h = (uint64_t)a->ip << 24 | (uint64_t)a->port << 8 | a->transport;
    h *= 0x9E3779B97F4A7C15U;
    return (size_t)(h >> 40) % CRDI_LOG_KNOWN;
}

bool crdi_log_is_known(const crdi_dcp_log* l, const crd_dcp_address* a)
{
    for (size_t i = frame_place_of(a); l->known[i].port; i = (i + 1) % CRDI_LOG_KNOWN) {
        if (crd_dcp_address_equal(&l->known[i], a)) { return true; }
    }
    return false;
}

void crdi_log_know(crdi_dcp_log* l, const crd_dcp_address* a)
{
    if (a->port == 0 || l->known_count >= CRDI_LOG_KNOWN / 2 || crdi_log_is_known(l, a)) { return; }
    size_t i = frame_place_of(a);
    while (l->known[i].port) {
        i = (i + 1) % CRDI_LOG_KNOWN;
    }
    l->known[i] = *a;
    l->known_count++;
}

static bool wanted_port(const crdi_dcp_log* l, unsigned a, unsigned b)
{
    for (int i = 0; i < l->opt.port_count; i++) {
        if (l->opt.ports[i] == a || l->opt.ports[i] == b) { return true; }
    }
    return l->opt.port_count == 0;
}

// ---- PDUs --------------------------------------------------------------------------------------

// Right in everything that can be looked at, so that hardly anything else looks like it.
static bool is_evidence(const crdi_dcp_pdu* p)
{
    if (crdi_dcp_is_request(p->type) && p->peer == 0) { return false; }
    switch (p->type) {
    case CRDI_DCP_STC_REGISTER:
        return p->state < CRD_DCP_STATE_COUNT && p->op_mode <= CRD_DCP_NRT && p->major == 1;
    case CRDI_DCP_CFG_PARAMETER:
    case CRDI_DCP_RSP_LOG_ACK:
    case CRDI_DCP_NTF_LOG:
    case CRDI_DCP_DAT_INPUT_OUTPUT:
    case CRDI_DCP_DAT_PARAMETER:
        return false; // of any length
    case CRDI_DCP_CFG_INPUT:
    case CRDI_DCP_CFG_TUNABLE_PARAMETER:
        return p->data_type < CRD_DCP_DATA_TYPE_COUNT;
    case CRDI_DCP_RSP_NACK:
    case CRDI_DCP_RSP_ERROR_ACK:
        return crd_dcp_error_name(p->error) != NULL;
    default:
        return p->state < CRD_DCP_STATE_COUNT;
    }
}

// IGNORED: known ends say something that is not DCP, or not yet.
typedef enum verdict { FOREIGN, IGNORED, SEEN } verdict;

static verdict take_pdu(crdi_dcp_log* l, double time, const crd_dcp_address* from,
                        const crd_dcp_address* to, const uint8_t* bytes, size_t length)
{
    crdi_dcp_pdu pdu = {0};
    if (l->opt.message) {
        const crdi_dcp_seen any = {time, *from, *to, bytes, length, CRDI_DCP_UNKNOWN, &pdu};
        l->counts.pdus++;
        l->enough = !l->opt.message(l->opt.user, &any);
        return SEEN;
    }
    const crdi_dcp_decoded decoded = crdi_dcp_decode(bytes, length, &pdu);
    const bool known =
        l->opt.port_count > 0 || crdi_log_is_known(l, from) || crdi_log_is_known(l, to);
    if (decoded == CRDI_DCP_UNKNOWN) { return known ? IGNORED : FOREIGN; }
    const bool sure = decoded == CRDI_DCP_GOOD && is_evidence(&pdu);
    if (!sure && !known) { return FOREIGN; }
    if (sure) {
        crdi_log_know(l, from);
        crdi_log_know(l, to);
    }
    const crdi_dcp_seen s = {time, *from, *to, bytes, length, decoded, &pdu};
    crdi_log_learn(l, &s);
    l->counts.pdus++;
    if (l->opt.seen && !l->opt.seen(l->opt.user, &s)) { l->enough = true; }
    return SEEN;
}

// ---- streams -----------------------------------------------------------------------------------

// The one that was used longest ago makes room. NULL: out of memory.
static crdi_log_flow* find_flow(crdi_dcp_log* l, const crd_dcp_address* from,
                                const crd_dcp_address* to)
{
    crdi_log_flow* f = NULL; // to be used anew
    for (int i = 0; i < l->flow_count; i++) {
        crdi_log_flow* x = &l->flows[i];
        if (x->used && crd_dcp_address_equal(&x->from, from) && crd_dcp_address_equal(&x->to, to)) {
            x->age = ++l->age;
            return x;
        }
        if (!f || (f->used && (!x->used || x->age < f->age))) { f = x; }
    }
    if ((!f || f->used) && l->flow_count < CRDI_LOG_FLOWS) {
        const size_t need = (size_t)l->flow_count + 1;
        crdi_log_flow* more = crdi_grow(l->ctx, l->flows, &l->flow_room, need, sizeof *more);
        if (more) {
            l->flows = more;
            f = &l->flows[l->flow_count++];
            *f = (crdi_log_flow){0};
        }
    }
    if (!f) { return NULL; }
    f->used = true;
    f->synced = f->foreign = false;
    f->length = 0;
    f->early_count = 0;
    f->from = *from;
    f->to = *to;
    f->age = ++l->age;
    return f;
}

// The messages that are complete, of a stream without lengths in front of them.
static bool take_messages(crdi_dcp_log* l, crdi_log_flow* f, double time, bool* any)
{
    size_t at = 0, length = 0;
    while (!l->enough && f->length > at) {
        length = l->opt.framing.length(l->opt.framing.user, f->buffer + at, f->length - at);
        if (length == 0 || length > f->length - at) { break; }
        *any = take_pdu(l, time, &f->from, &f->to, f->buffer + at, length) == SEEN;
        at += length;
    }
    memmove(f->buffer, f->buffer + at, f->length - at);
    f->length -= at;
    return length != SIZE_MAX;
}

// The PDUs that are complete. false: this is not DCP, or no longer in step with it.
static bool take_pdus(crdi_dcp_log* l, crdi_log_flow* f, double time, bool* any)
{
    size_t at = 0;
    bool good = true;
    if (l->opt.message) { return take_messages(l, f, time, any); }
    while (good && !l->enough && f->length - at >= 4) {
        const uint32_t length = (uint32_t)crdi_load_le(f->buffer + at, 4);
        if (length > CRDI_LOG_MOST_PDU) {
            good = false;
        } else if (f->length - at - 4 < length) {
            break;
        } else {
            const verdict v = take_pdu(l, time, &f->from, &f->to, f->buffer + at + 4, length);
            *any = *any || v == SEEN;
            good = v != FOREIGN;
            at += 4 + (size_t)length;
        }
    }
    memmove(f->buffer, f->buffer + at, f->length - at);
    f->length -= at;
    return good;
}

static bool append_bytes(crdi_dcp_log* l, crdi_log_flow* f, const uint8_t* bytes, size_t length)
{
    uint8_t* more = crdi_grow(l->ctx, f->buffer, &f->capacity, f->length + length, 1);
    if (!more) { return false; }
    f->buffer = more;
    memcpy(f->buffer + f->length, bytes, length);
    f->length += length;
    f->next += (uint32_t)length;
    return true;
}

static void out_of_step(crdi_dcp_log* l, crdi_log_flow* f)
{
    l->counts.gaps += f->synced;
    f->synced = false;
    f->length = 0;
    f->early_count = 0;
}

static void store_early(crdi_dcp_log* l, crdi_log_flow* f, uint32_t seq, const uint8_t* bytes,
                        size_t length)
{
    if (f->early_count == CRDI_LOG_EARLY) { // it does not come any more
        out_of_step(l, f);
        return;
    }
    crdi_log_segment* s = &f->early[f->early_count];
    uint8_t* more = crdi_grow(l->ctx, s->bytes, &s->capacity, length, 1);
    if (!more) { return; }
    s->bytes = more;
    memcpy(s->bytes, bytes, length);
    s->seq = seq;
    s->length = length;
    f->early_count++;
}

// A segment in its turn, as far as it is new.
static bool take_segment(crdi_dcp_log* l, crdi_log_flow* f, double time, uint32_t seq,
                         const uint8_t* bytes, size_t length, bool* any)
{
    const uint32_t old = f->next - seq; // bytes that were here before
    return old >= length ||
           (append_bytes(l, f, bytes + old, length - old) && take_pdus(l, f, time, any));
}

static bool take_early(crdi_dcp_log* l, crdi_log_flow* f, double time, bool* any)
{
    for (int i = 0; i < f->early_count;) {
        crdi_log_segment s = f->early[i];
        if ((int32_t)(s.seq - f->next) > 0) {
            i++;
            continue;
        }
        f->early[i] = f->early[--f->early_count];
        f->early[f->early_count] = s; // its memory stays
        if (!take_segment(l, f, time, s.seq, s.bytes, s.length, any)) { return false; }
        i = 0;
    }
    return true;
}

// A stream that is met in its middle: at a segment that begins with a whole PDU.
static bool begins_here(const crdi_dcp_log* l, const crdi_log_flow* f, const uint8_t* bytes,
                        size_t length)
{
    crdi_dcp_pdu pdu;
    if (l->opt.message) { return true; }
    if (length < 4) { return false; }
    const uint64_t first = crdi_load_le(bytes, 4);
    if (first > length - 4 || crdi_dcp_decode(bytes + 4, first, &pdu) != CRDI_DCP_GOOD) {
        return false;
    }
    return is_evidence(&pdu) || l->opt.port_count > 0 || crdi_log_is_known(l, &f->from) ||
           crdi_log_is_known(l, &f->to);
}

static bool take_tcp(crdi_dcp_log* l, double time, crd_dcp_address from, crd_dcp_address to,
                     const uint8_t* p, size_t length)
{
    enum { FIN = 1, SYN = 2, RST = 4 };
    const size_t head = length >= 20 ? (size_t)(p[12] >> 4) * 4 : 0;
    if (head < 20 || head > length) { return false; }
    from.port = (uint16_t)load_be16(p);
    to.port = (uint16_t)load_be16(p + 2);
    if (!wanted_port(l, from.port, to.port)) { return false; }
    const uint32_t seq = load_be32(p + 4);
    const uint8_t flags = p[13];
    const uint8_t* bytes = p + head;
    const size_t count = length - head;
    crdi_log_flow* f = find_flow(l, &from, &to);
    bool any = false;
    if (!f) { return false; }
    if (flags & SYN) {
        f->synced = true;
        f->foreign = false;
        f->length = 0;
        f->early_count = 0;
        f->next = seq + 1;
        return false;
    }
    if (count > 0 && !f->foreign) {
        if (!f->synced && begins_here(l, f, bytes, count)) {
            f->synced = true;
            f->next = seq;
            f->length = 0;
        }
        const int32_t ahead = (int32_t)(seq - f->next);
        if (f->synced && ahead > 0) {
            any = true;
            store_early(l, f, seq, bytes, count);
        } else if (f->synced) {
            const size_t before = f->length;
            const bool good =
                take_segment(l, f, time, seq, bytes, count, &any) && take_early(l, f, time, &any);
            f->foreign = !good && !any;
            any = any || (good && f->length != before);
            if (!good) { out_of_step(l, f); }
        }
    }
    if (flags & (FIN | RST)) { f->used = false; }
    return any;
}

// ---- datagrams ---------------------------------------------------------------------------------

static bool take_udp(crdi_dcp_log* l, double time, crd_dcp_address from, crd_dcp_address to,
                     const uint8_t* p, size_t length)
{
    const size_t said = length >= 8 ? load_be16(p + 4) : 0;
    if (said < 8 || said > length) { return false; }
    from.port = (uint16_t)load_be16(p);
    to.port = (uint16_t)load_be16(p + 2);
    return wanted_port(l, from.port, to.port) &&
           take_pdu(l, time, &from, &to, p + 8, said - 8) == SEEN;
}

typedef enum outcome { OTHER, TAKEN, FRAGMENT, TRUNCATED } outcome;

static outcome take_ipv4(crdi_dcp_log* l, double time, const uint8_t* p, size_t length, bool cut)
{
    if (length < 20 || p[0] >> 4 != 4) { return OTHER; }
    const size_t head = (size_t)(p[0] & 15) * 4, total = load_be16(p + 2);
    // A total of 0: the machine that sent it leaves cutting it up to its network card.
    const size_t whole = total == 0 ? length : total;
    if (head < 20 || whole < head || (whole > length && !cut)) { return OTHER; }
    const uint8_t protocol = p[9];
    if (protocol != 17 && protocol != 6) { return OTHER; }
    if (load_be16(p + 6) & 0x3FFF) { return FRAGMENT; }
    if (whole > length) { return TRUNCATED; }
    const uint8_t transport = protocol == 17 ? CRD_DCP_UDP : CRD_DCP_TCP;
    const crd_dcp_address from = {.ip = load_be32(p + 12), .transport = transport};
    const crd_dcp_address to = {.ip = load_be32(p + 16), .transport = transport};
    const bool taken = protocol == 17 ? take_udp(l, time, from, to, p + head, whole - head)
                                      : take_tcp(l, time, from, to, p + head, whole - head);
    return taken ? TAKEN : OTHER;
}

// Where the IPv4 packet begins; 0 bytes are left if there is none.
static const uint8_t* unwrap(int link, const uint8_t* p, size_t* length)
{
    size_t skip = SIZE_MAX, type = SIZE_MAX; // offset of the EtherType
    switch (link) {
    case CRDI_DCP_LINK_RAW:
    case CRDI_DCP_LINK_IPV4:
    case 12: // as systems say RAW
    case 14:
        skip = 0;
        break;
    case CRDI_DCP_LINK_LOOPBACK: // in the order of the machine that wrote it; 2 is AF_INET on all
        skip = *length >= 4 && (crdi_load_le(p, 4) == 2 || load_be32(p) == 2) ? 4 : SIZE_MAX;
        break;
    case CRDI_DCP_LINK_LOOP:
        skip = *length >= 4 && load_be32(p) == 2 ? 4 : SIZE_MAX;
        break;
    case CRDI_DCP_LINK_ETHERNET:
        type = 12;
        while (*length >= type + 6 &&
               (load_be16(p + type) == 0x8100 || load_be16(p + type) == 0x88A8)) {
            type += 4;
        }
        skip = *length >= type + 2 && load_be16(p + type) == 0x0800 ? type + 2 : SIZE_MAX;
        break;
    case CRDI_DCP_LINK_LINUX:
        skip = *length >= 16 && load_be16(p + 14) == 0x0800 ? 16 : SIZE_MAX;
        break;
    case CRDI_DCP_LINK_LINUX_2:
        skip = *length >= 20 && load_be16(p) == 0x0800 ? 20 : SIZE_MAX;
        break;
    default:
        break;
    }
    if (skip > *length) {
        *length = 0;
        return p;
    }
    *length -= skip;
    return p + skip;
}

// The message says who has sent it; to whom a request goes is in it, all else is for the master or
// for everybody.
static outcome take_can(crdi_dcp_log* l, double time, const uint8_t* bytes, size_t length, bool cut)
{
    crdi_can_frame f;
    crdi_dcp_pdu pdu;
    uint8_t sender = 0;
    if (cut) { return TRUNCATED; }
    if (!l->can || !crdi_can_unpack(bytes, length, &f) ||
        !crdi_dcp_can_take(l->can, &f, &pdu, &sender)) {
        return OTHER;
    }
    const uint8_t to = crdi_dcp_is_request(pdu.type) ? pdu.peer
                       : crdi_dcp_is_data(pdu.type)  ? crdi_dcp_can_receiver(l->can, &pdu, sender)
                                                     : 0;
    const crdi_dcp_seen s = {time,
                             {.port = sender, .transport = CRD_DCP_CAN},
                             {.port = to, .transport = CRD_DCP_CAN},
                             bytes,
                             length,
                             CRDI_DCP_GOOD,
                             &pdu};
    l->counts.pdus++;
    if (l->opt.seen && !l->opt.seen(l->opt.user, &s)) { l->enough = true; }
    return TAKEN;
}

bool crdi_dcp_log_frame(crdi_dcp_log* l, int link, double time, const uint8_t* bytes, size_t length,
                        size_t whole)
{
    if (l->enough) { return false; }
    size_t left = length;
    const bool can = link == CRDI_DCP_LINK_CAN;
    const uint8_t* ip = unwrap(link, bytes, &left);
    const outcome o = can ? take_can(l, time, bytes, length, whole > length)
                          : take_ipv4(l, time, ip, left, whole > length);
    l->counts.frames++;
    l->counts.can += can && !l->can;
    l->counts.other += o == OTHER;
    l->counts.fragments += o == FRAGMENT;
    l->counts.truncated += o == TRUNCATED;
    return !l->enough;
}
