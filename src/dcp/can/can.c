// One end of a CAN bus: an identifier stands for type, data_id or param_id, and sender.
#include "dcp/can/can.h"
#include "dcp/net/net.h"
#include "shared/base.h"

#include <stdlib.h>
#include <string.h>

enum { BURST = 256 }; // frames that are no message, before receive returns

struct crd_dcp_can {
    crd_context* ctx;
    crd_dcp_net* net;  // its packets are frames; NULL: only reads
    crdi_can_bus* bus; // of the net
    int count;
    const crdi_dcp_can_message** by_id;      // (count)
    const crdi_dcp_can_message** by_meaning; // (count)
    uint8_t frame[CRDI_DCP_CAN_ROOM];
    uint8_t payload[CRDI_CAN_PAYLOAD];
    crd_dcp_can_counts counts;
};

int crdi_can_compare_id(const crdi_dcp_can_message* x, const crdi_dcp_can_message* y)
{
    return x->can_id - y->can_id;
}

int crdi_can_compare_meaning(const crdi_dcp_can_message* x, const crdi_dcp_can_message* y)
{
    if (x->type != y->type) { return x->type - y->type; }
    if (x->id != y->id) { return x->id - y->id; }
    return x->sender - y->sender;
}

static int compare_id(const void* a, const void* b)
{
    return crdi_can_compare_id(*(const crdi_dcp_can_message* const*)a,
                               *(const crdi_dcp_can_message* const*)b);
}

static int compare_meaning(const void* a, const void* b)
{
    return crdi_can_compare_meaning(*(const crdi_dcp_can_message* const*)a,
                                    *(const crdi_dcp_can_message* const*)b);
}

static const crdi_dcp_can_message* find_message(const crd_dcp_can* c,
                                                const crdi_dcp_can_message** in,
                                                const crdi_dcp_can_message* key,
                                                int (*compare)(const void*, const void*))
{
    const crdi_dcp_can_message** found =
        c->count ? bsearch(&key, in, (size_t)c->count, sizeof *in, compare) : NULL;
    return found ? *found : NULL;
}

crd_status crdi_dcp_can_reader(crd_context* ctx, const crd_dcp_can_description* d,
                               crd_dcp_can** out)
{
    crd_dcp_can* c = crdi_new(ctx, sizeof *c);
    if (!c) { return CRD_E_MEMORY; }
    c->ctx = ctx;
    c->count = d->message_count;
    const size_t n = (size_t)c->count;
    c->by_id = crdi_new_array(ctx, n, sizeof *c->by_id);
    c->by_meaning = crdi_new_array(ctx, n, sizeof *c->by_meaning);
    if (!c->by_id || !c->by_meaning) {
        crd_dcp_can_destroy(c);
        return CRD_E_MEMORY;
    }
    for (size_t i = 0; i < n; i++) {
        c->by_id[i] = c->by_meaning[i] = &d->messages[i];
    }
    if (n) {
        qsort(c->by_id, n, sizeof *c->by_id, compare_id);
        qsort(c->by_meaning, n, sizeof *c->by_meaning, compare_meaning);
    }
    *out = c;
    return CRD_OK;
}

// With `bus`, which belongs to it from now on, also if it fails.
crd_status crdi_dcp_can_over(crd_context* ctx, const crd_dcp_can_description* d, crdi_can_bus* bus,
                             crd_dcp_can** out)
{
    crd_dcp_net* net = NULL;
    crd_status st = crdi_dcp_net_bus(ctx, bus, &net);
    if (st < 0) { return st; }
    st = crdi_dcp_can_reader(ctx, d, out);
    if (st < 0) {
        crd_dcp_net_destroy(net);
        return st;
    }
    (*out)->net = net;
    (*out)->bus = bus;
    return CRD_OK;
}

crd_status crd_dcp_can_create(crd_context* ctx, const crd_dcp_can_description* d, int fd,
                              crd_dcp_can** out)
{
    crdi_can_bus* bus = NULL;
    const crd_status st = crdi_can_bus_over(ctx, fd, &bus);
    return st < 0 ? st : crdi_dcp_can_over(ctx, d, bus, out);
}

crd_status crd_dcp_can_open(crd_context* ctx, const crd_dcp_can_description* d,
                            const char* interface, crd_dcp_can** out)
{
    crdi_can_bus* bus = NULL;
    const crd_status st = crdi_can_bus_open(ctx, interface, &bus);
    return st < 0 ? st : crdi_dcp_can_over(ctx, d, bus, out);
}

void crd_dcp_can_destroy(crd_dcp_can* c)
{
    if (!c) { return; }
    crd_dcp_net_destroy(c->net);
    crd_free(c->ctx, c->by_id);
    crd_free(c->ctx, c->by_meaning);
    crd_free(c->ctx, c);
}

crd_dcp_can_counts crd_dcp_can_get_counts(const crd_dcp_can* c)
{
    crd_dcp_can_counts counts = c->counts;
    counts.unknown += crdi_can_bus_counts(c->bus).bad;
    return counts;
}

// ---- data --------------------------------------------------------------------------------------

// Items of a payload, one behind the other, go to their places in the frame. A string that is
// shorter than its place ends with zeros. false: it does not fit.
static bool scatter_items(const crdi_dcp_can_message* m, const uint8_t* payload, size_t length,
                          uint8_t* frame)
{
    size_t at = 0;
    memset(frame, 0, CRDI_DCP_CAN_ROOM);
    for (int i = 0; i < m->item_count; i++) {
        const crdi_dcp_can_item* t = &m->items[i];
        size_t size = t->length;
        if (crdi_dcp_is_bytes(t->type)) {
            if (length - at < 4) { return false; }
            const uint32_t count = (uint32_t)crdi_load_le(payload + at, 4);
            if (count > t->length || (t->type == CRD_DCP_BINARY && count < t->length)) {
                return false;
            }
            at += 4;
            size = count;
        }
        if (length - at < size) { return false; }
        if (size) { memcpy(frame + t->offset, payload + at, size); }
        at += size;
    }
    return at == length;
}

static size_t gather_items(const crdi_dcp_can_message* m, const uint8_t* frame, uint8_t* payload)
{
    size_t at = 0;
    for (int i = 0; i < m->item_count; i++) {
        const crdi_dcp_can_item* t = &m->items[i];
        uint8_t size = t->length;
        if (crdi_dcp_is_bytes(t->type)) {
            while (t->type == CRD_DCP_STRING && size > 0 && frame[t->offset + size - 1] == 0) {
                size--;
            }
            crdi_store_le(payload + at, 4, size);
            at += 4;
        }
        memcpy(payload + at, frame + t->offset, size);
        at += size;
    }
    return at;
}

// ---- frames ------------------------------------------------------------------------------------

static bool put_frame(crd_dcp_can* c, const crdi_dcp_can_message* m, const uint8_t* bytes)
{
    crdi_can_frame f = {
        .id = m->can_id, .extended = m->can_id > CRDI_CAN_STANDARD, .length = m->length};
    uint8_t packed[CRDI_CAN_PACKED];
    crd_dcp_address bus = {0};
    memcpy(f.data, bytes, m->length);
    (void)crd_dcp_net_local(c->net, 0, &bus);
    return crdi_dcp_net_send(c->net, &bus, packed, crdi_can_pack(&f, packed));
}

bool crdi_dcp_can_send(crd_dcp_can* c, const crdi_dcp_pdu* p, uint8_t sender)
{
    const bool data = crdi_dcp_is_data(p->type), answer = p->type >= CRDI_DCP_RSP_ACK && !data;
    const crdi_dcp_can_message key = {.type = p->type,
                                      .sender = answer ? p->peer
                                                : data ? sender
                                                       : 0,
                                      .id = data ? p->id : 0};
    const crdi_dcp_can_message* m = find_message(c, c->by_meaning, &key, compare_meaning);
    uint8_t frame[CRDI_DCP_CAN_ROOM];
    bool good = m != NULL;
    if (good && data) {
        good = scatter_items(m, p->payload, p->payload_length, frame);
    } else if (good) {
        good = crdi_dcp_can_encode(p, frame) == m->length;
    }
    if (!good || !put_frame(c, m, frame)) {
        c->counts.dropped++;
        return false;
    }
    c->counts.sent++;
    return true;
}

// The message of a frame, NULL.
static const crdi_dcp_can_message* message_of(crd_dcp_can* c, const crdi_can_frame* f)
{
    if (f->remote || f->error || f->fd || f->id > UINT16_MAX ||
        f->extended != (f->id > CRDI_CAN_STANDARD)) {
        return NULL;
    }
    const crdi_dcp_can_message key = {.can_id = (uint16_t)f->id};
    return find_message(c, c->by_id, &key, compare_id);
}

bool crdi_dcp_can_take(crd_dcp_can* c, const crdi_can_frame* f, crdi_dcp_pdu* out, uint8_t* sender)
{
    const crdi_dcp_can_message* m = message_of(c, f);
    if (!m) {
        c->counts.unknown++;
        return false;
    }
    if (f->length != m->length) {
        c->counts.bad_length++;
        return false;
    }
    memcpy(c->frame, f->data, m->length);
    *out = (crdi_dcp_pdu){.type = m->type, .peer = m->sender, .id = m->id};
    if (crdi_dcp_can_decode(c->frame, m->length, out) != CRDI_DCP_GOOD) {
        c->counts.bad_length++;
        return false;
    }
    if (crdi_dcp_is_data(m->type)) {
        out->peer = 0;
        out->payload_length = gather_items(m, c->frame, c->payload);
        out->payload = c->payload;
    }
    if (sender) { *sender = m->sender; }
    c->counts.received++;
    return true;
}

bool crdi_dcp_can_receive(crd_dcp_can* c, crdi_dcp_pdu* out, uint8_t* sender, double* time)
{
    crd_dcp_packet p;
    crdi_can_frame f;
    for (int i = 0; i < BURST && crd_dcp_net_receive(c->net, &p); i++) {
        if (!crdi_can_unpack(p.bytes, p.length, &f) || !crdi_dcp_can_take(c, &f, out, sender)) {
            continue;
        }
        if (time) { *time = p.time; }
        return true;
    }
    return false;
}

crd_dcp_net* crdi_dcp_can_frames(const crd_dcp_can* c)
{
    return c->net;
}

uint8_t crdi_dcp_can_receiver(const crd_dcp_can* c, const crdi_dcp_pdu* p, uint8_t sender)
{
    const crdi_dcp_can_message key = {.type = p->type, .sender = sender, .id = p->id};
    const crdi_dcp_can_message* m = find_message(c, c->by_meaning, &key, compare_meaning);
    return m && m->receiver_count > 0 ? m->receivers[0] : 0;
}

bool crdi_dcp_can_for_master(const crd_dcp_can* c, const crdi_dcp_pdu* p, uint8_t sender)
{
    const crdi_dcp_can_message key = {.type = p->type, .sender = sender, .id = p->id};
    const crdi_dcp_can_message* m = find_message(c, c->by_meaning, &key, compare_meaning);
    return m && m->receiver_count > 0 && memchr(m->receivers, 0, (size_t)m->receiver_count);
}

void crd_dcp_can_wait(crd_dcp_can* c, double seconds)
{
    crd_dcp_net_wait(c->net, seconds);
}
