// One end of a CAN bus: an identifier stands for type, data_id or param_id, and sender.
#include "dcp/can/can.h"
#include "shared/base.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/can.h>
#include <linux/can/raw.h>
#include <net/if.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BURST = 256 }; // frames that are no message, before receive returns

struct crd_dcp_can {
    crd_context* ctx;
    int fd;
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

crd_status crd_dcp_can_create(crd_context* ctx, const crd_dcp_can_description* d, int fd,
                              crd_dcp_can** out)
{
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) {
        return crdi_fail(ctx, CRD_E_IO, "CAN: the descriptor %d cannot be used: %s", fd,
                         strerror(errno));
    }
    crd_dcp_can* c = crdi_new(ctx, sizeof *c);
    if (!c) { return CRD_E_MEMORY; }
    c->ctx = ctx;
    c->fd = fd;
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

void crd_dcp_can_destroy(crd_dcp_can* c)
{
    if (!c) { return; }
    crd_free(c->ctx, c->by_id);
    crd_free(c->ctx, c->by_meaning);
    crd_free(c->ctx, c);
}

crd_dcp_can_counts crd_dcp_can_get_counts(const crd_dcp_can* c)
{
    return c->counts;
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
    struct can_frame f = {.can_id = m->can_id, .can_dlc = m->length};
    if (m->can_id > CRDI_CAN_STANDARD) { f.can_id |= CAN_EFF_FLAG; }
    memcpy(f.data, bytes, m->length);
    ssize_t k = 0;
    do {
        k = write(c->fd, &f, sizeof f);
    } while (k < 0 && errno == EINTR);
    return k == (ssize_t)sizeof f;
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
static const crdi_dcp_can_message* message_of(crd_dcp_can* c, const struct can_frame* f)
{
    const bool extended = f->can_id & CAN_EFF_FLAG;
    const uint32_t id = f->can_id & (extended ? CAN_EFF_MASK : CAN_SFF_MASK);
    if (f->can_id & (CAN_RTR_FLAG | CAN_ERR_FLAG) || id > UINT16_MAX ||
        extended != (id > CRDI_CAN_STANDARD)) {
        return NULL;
    }
    const crdi_dcp_can_message key = {.can_id = (uint16_t)id};
    return find_message(c, c->by_id, &key, compare_id);
}

static bool take_frame(crd_dcp_can* c, const struct can_frame* f, crdi_dcp_pdu* out,
                       uint8_t* sender)
{
    const crdi_dcp_can_message* m = message_of(c, f);
    if (!m) {
        c->counts.unknown++;
        return false;
    }
    if (f->can_dlc != m->length) {
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

bool crdi_dcp_can_receive(crd_dcp_can* c, crdi_dcp_pdu* out, uint8_t* sender)
{
    for (int i = 0; i < BURST; i++) {
        struct can_frame f;
        const ssize_t k = read(c->fd, &f, sizeof f);
        if (k < 0 && errno == EINTR) { continue; }
        if (k <= 0) { return false; }
        if (k != (ssize_t)sizeof f || f.can_dlc > CRDI_DCP_CAN_ROOM) {
            c->counts.unknown++;
            continue;
        }
        if (take_frame(c, &f, out, sender)) { return true; }
    }
    return false;
}

void crd_dcp_can_wait(crd_dcp_can* c, double seconds)
{
    struct pollfd p = {.fd = c->fd, .events = POLLIN};
    const double ms = seconds > 0 ? 1e3 * seconds : 0;
    (void)poll(&p, 1, ms > 1e6 ? 1000000 : (int)(ms + 0.999));
}

// ---- SocketCAN ---------------------------------------------------------------------------------

crd_status crd_dcp_can_open(crd_context* ctx, const char* interface, int* fd)
{
    struct ifreq name = {0};
    if (!*interface || strlen(interface) >= sizeof name.ifr_name) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "CAN: '%s' is no name of an interface, expected one as can0",
                         crdi_clip(interface).text);
    }
    const int s = socket(PF_CAN, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, CAN_RAW);
    if (s < 0 && (errno == EAFNOSUPPORT || errno == EPROTONOSUPPORT)) {
        return crdi_fail(ctx, CRD_E_UNSUPPORTED,
                         "CAN: this kernel has no SocketCAN (%s): load it with 'modprobe can_raw', "
                         "and the driver of the adapter, or 'modprobe vcan' for a bus without one",
                         strerror(errno));
    }
    if (s < 0) { return crdi_fail(ctx, CRD_E_IO, "CAN: no socket: %s", strerror(errno)); }
    memcpy(name.ifr_name, interface, strlen(interface));
    struct sockaddr_can at = {.can_family = AF_CAN};
    crd_status st = CRD_OK;
    if (ioctl(s, SIOCGIFINDEX, &name) < 0) {
        st = crdi_fail(ctx, CRD_E_NOT_FOUND,
                       "CAN: there is no interface '%s': 'ip link' lists them; 'ip link add dev %s "
                       "type vcan' makes one without a bus",
                       interface, interface);
    } else {
        at.can_ifindex = name.ifr_ifindex;
        if (ioctl(s, SIOCGIFFLAGS, &name) == 0 && !(name.ifr_flags & IFF_UP)) {
            st = crdi_fail(
                ctx, CRD_E_IO,
                "CAN: the interface '%s' is down: 'ip link set %s up', of a real bus with "
                "'type can bitrate 500000' before",
                interface, interface);
        } else if (bind(s, (const struct sockaddr*)&at, sizeof at) < 0) {
            st = crdi_fail(ctx, CRD_E_IO, "CAN: the interface '%s' cannot be used: %s", interface,
                           strerror(errno));
        }
    }
    if (st < 0) {
        close(s);
        return st;
    }
    *fd = s;
    return CRD_OK;
}
