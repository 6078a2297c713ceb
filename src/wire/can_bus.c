// One end of a CAN bus: SocketCAN, or packets of cannelloni to a multicast group of this host.
//
// A packet of cannelloni, big endian:
//    0  u8   version = 2     2  u8   sequence number      5  frames, one behind the other:
//    1  u8   op code = 0     3  u16  number of frames
//    0  u32  id, flags of SocketCAN    5  u8     with length bit 7: flags of CAN FD
//    4  u8   length                       bytes  data, none of a remote frame
#include "shared/wire_can.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/can.h>
#include <linux/can/error.h>
#include <linux/can/raw.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    BURST = 256,      // packets without a frame for us, before receive returns
    PACKET = 65536,   // bytes of the largest
    HEAD = 5,         // of a packet
    VERSION = 2,      // of cannelloni
    LONG_FRAME = 0x80 // a bit of its length: CAN FD
};

struct crdi_can_bus {
    crd_context* ctx;
    char* name;
    int in, out;                // the same but of a multicast group; -1: it is gone
    bool borrowed;              // the descriptor is the caller's
    bool group;                 // packets of cannelloni
    struct sockaddr_in to, own; // of them: the group, and where ours come from
    const uint8_t *at, *end;    // of the packet that is being read
    int left;                   // frames in it
    int64_t packet_time;
    uint8_t sequence;
    uint32_t drops; // as the kernel counts them
    int error;      // errno of the trouble, 0: there is none
    char trouble[120];
    crdi_can_counts counts;
    uint8_t packet[PACKET];
};

// ---- trouble -----------------------------------------------------------------------------------

const char* crdi_can_bus_trouble(const crdi_can_bus* b)
{
    return b->error ? b->trouble : "";
}

crdi_can_counts crdi_can_bus_counts(const crdi_can_bus* b)
{
    return b->counts;
}

static void word_trouble(crdi_can_bus* b, bool gone)
{
    snprintf(b->trouble, sizeof b->trouble, "the CAN interface %.60s %s", b->name,
             gone ? "has vanished" : "is down");
}

// An interface that is down or gone is told once; other errors are those of a moment.
static void note_error(crdi_can_bus* b, int error)
{
    const bool gone = error == ENODEV || error == ENXIO, down = error == ENETDOWN;
    if (b->error || !(gone || down)) { return; }
    b->error = error;
    b->counts.downs++;
    word_trouble(b, gone);
}

// ---- sending -----------------------------------------------------------------------------------

static uint32_t id_of(const crdi_can_frame* f)
{
    return f->id | (f->extended ? CAN_EFF_FLAG : 0) | (f->remote ? CAN_RTR_FLAG : 0) |
           (f->error ? CAN_ERR_FLAG : 0);
}

static void take_id(crdi_can_frame* f, uint32_t id)
{
    f->error = id & CAN_ERR_FLAG;
    f->remote = id & CAN_RTR_FLAG;
    f->extended = id & CAN_EFF_FLAG;
    f->id = id & (f->error || f->extended ? CAN_EFF_MASK : CAN_SFF_MASK);
}

static ssize_t send_packet(crdi_can_bus* b, const crdi_can_frame* f)
{
    uint8_t p[HEAD + 6 + CRDI_CAN_LONGEST] = {VERSION, 0, b->sequence++, 0, 1};
    const uint32_t id = id_of(f);
    size_t n = HEAD;
    for (int shift = 24; shift >= 0; shift -= 8) {
        p[n++] = (uint8_t)(id >> shift);
    }
    p[n++] = (uint8_t)(f->length | (f->fd ? LONG_FRAME : 0));
    if (f->fd) { p[n++] = f->flags; }
    if (!f->remote) {
        memcpy(p + n, f->data, f->length);
        n += f->length;
    }
    return sendto(b->out, p, n, 0, (const struct sockaddr*)&b->to, sizeof b->to);
}

static ssize_t send_frame(crdi_can_bus* b, const crdi_can_frame* f)
{
    // A frame of CAN is the beginning of one of CAN FD.
    struct canfd_frame out = {.can_id = id_of(f), .len = f->length};
    if (f->fd) { out.flags = (uint8_t)(f->flags | CANFD_FDF); }
    memcpy(out.data, f->data, f->length);
    return write(b->out, &out, f->fd ? CANFD_MTU : CAN_MTU);
}

bool crdi_can_bus_send(crdi_can_bus* b, const crdi_can_frame* f)
{
    const bool fits = f->length <= (f->fd ? CRDI_CAN_LONGEST : CAN_MAX_DLEN) && b->out >= 0;
    ssize_t k = -1;
    while (fits) {
        k = b->group ? send_packet(b, f) : send_frame(b, f);
        if (k >= 0 || errno != EINTR) { break; }
    }
    if (k < 0) {
        if (fits) { note_error(b, errno); }
        b->counts.dropped++;
        return false;
    }
    b->counts.sent++;
    return true;
}

// ---- receiving ---------------------------------------------------------------------------------

// What the kernel says about a packet: when it had it, and how many it had no room for.
static int64_t read_control(crdi_can_bus* b, struct msghdr* m)
{
    int64_t time = 0;
    for (struct cmsghdr* c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_TIMESTAMPNS) {
            struct timespec t;
            memcpy(&t, CMSG_DATA(c), sizeof t);
            time = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
        } else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL) {
            uint32_t drops;
            memcpy(&drops, CMSG_DATA(c), sizeof drops);
            b->counts.overrun += (uint32_t)(drops - b->drops);
            b->drops = drops;
        }
    }
    return time;
}

static bool take_packet_frame(crdi_can_bus* b, crdi_can_frame* f)
{
    const uint8_t* p = b->at;
    *f = (crdi_can_frame){.time = b->packet_time};
    if (b->end - p < 5) { return false; }
    take_id(f, (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]);
    f->fd = p[4] & LONG_FRAME;
    f->length = p[4] & (LONG_FRAME - 1);
    p += 5;
    if (f->fd && p < b->end) { f->flags = *p++; }
    const size_t bytes = f->remote ? 0 : f->length;
    if (f->length > (f->fd ? CRDI_CAN_LONGEST : CAN_MAX_DLEN) || (size_t)(b->end - p) < bytes) {
        return false;
    }
    memcpy(f->data, p, bytes);
    b->at = p + bytes;
    b->left--;
    return true;
}

static bool take_frame(crdi_can_bus* b, size_t size, int64_t time, crdi_can_frame* f)
{
    struct canfd_frame in;
    if (size != CAN_MTU && size != CANFD_MTU) { return false; }
    memcpy(&in, b->packet, size);
    *f = (crdi_can_frame){.fd = size == CANFD_MTU, .length = in.len, .time = time};
    if (f->fd) { f->flags = in.flags & (CANFD_BRS | CANFD_ESI); }
    if (in.len > (f->fd ? CRDI_CAN_LONGEST : CAN_MAX_DLEN)) { return false; }
    take_id(f, in.can_id);
    memcpy(f->data, in.data, in.len);
    return true;
}

// A packet has been read: its first frame, if it holds one that is not ours.
static bool take_packet(crdi_can_bus* b, size_t size, const struct sockaddr_in* from,
                        struct msghdr* m, crdi_can_frame* out)
{
    const int64_t time = read_control(b, m);
    if (!b->group) {
        if (take_frame(b, size, time, out)) { return true; }
        b->counts.bad++;
        return false;
    }
    if (from->sin_addr.s_addr == b->own.sin_addr.s_addr && from->sin_port == b->own.sin_port) {
        return false;
    }
    if (size < HEAD || b->packet[0] != VERSION || b->packet[1] != 0) {
        b->counts.bad++;
        return false;
    }
    b->packet_time = time;
    b->left = b->packet[3] << 8 | b->packet[4];
    b->at = b->packet + HEAD;
    b->end = b->packet + size;
    return false;
}

// Once: more of the packet that is there, or the next. *out is valid with true.
static bool receive_once(crdi_can_bus* b, crdi_can_frame* out, bool* more)
{
    if (b->left > 0) {
        if (take_packet_frame(b, out)) { return true; }
        b->counts.bad++;
        b->left = 0;
        return false;
    }
    struct sockaddr_in from = {0};
    char control[128];
    struct iovec room = {b->packet, sizeof b->packet};
    struct msghdr m = {.msg_name = &from,
                       .msg_namelen = sizeof from,
                       .msg_iov = &room,
                       .msg_iovlen = 1,
                       .msg_control = control,
                       .msg_controllen = sizeof control};
    const ssize_t k = b->in < 0 ? -1 : recvmsg(b->in, &m, 0);
    if (k < 0 && b->in >= 0 && errno == EINTR) { return false; }
    if (k < 0 || (k == 0 && !b->group)) {
        if (k < 0 && b->in >= 0) { note_error(b, errno); }
        *more = false;
        return false;
    }
    return take_packet(b, (size_t)k, &from, &m, out);
}

bool crdi_can_bus_receive(crdi_can_bus* b, crdi_can_frame* out)
{
    bool more = true;
    for (int i = 0; i < BURST && more; i++) {
        if (!receive_once(b, out, &more)) { continue; }
        b->counts.received++;
        b->counts.errors += out->error;
        return true;
    }
    return false;
}

void crdi_can_bus_wait(crdi_can_bus* b, double seconds)
{
    if (b->left > 0) { return; }
    struct pollfd p = {.fd = b->in, .events = POLLIN};
    const double ms = seconds > 0 ? 1e3 * seconds : 0;
    // The error of an interface that is down is always there: it must not make waiting busy.
    (void)poll(&p, b->error ? 0 : 1, ms > 1e6 ? 1000000 : (int)(ms + 0.999));
}

int crdi_can_bus_descriptor(const crdi_can_bus* b)
{
    return b->error ? -1 : b->in;
}

// ---- opening -----------------------------------------------------------------------------------

static void set_option(int fd, int level, int option, int value)
{
    (void)setsockopt(fd, level, option, &value, sizeof value);
}

static void close_sockets(crdi_can_bus* b)
{
    if (!b->borrowed && b->out >= 0 && b->out != b->in) { close(b->out); }
    if (!b->borrowed && b->in >= 0) { close(b->in); }
    b->in = b->out = -1;
}

// What can be done about an interface that is not usable.
static crd_status check_interface(crdi_can_bus* b, int s, struct sockaddr_can* at)
{
    struct ifreq name = {0};
    memcpy(name.ifr_name, b->name, strlen(b->name));
    if (ioctl(s, SIOCGIFINDEX, &name) < 0) {
        return crdi_fail(b->ctx, CRD_E_NOT_FOUND,
                         "CAN: there is no interface '%s': 'ip link' lists them; 'ip link add dev "
                         "%s type vcan' makes one without a bus",
                         b->name, b->name);
    }
    at->can_ifindex = name.ifr_ifindex;
    if (ioctl(s, SIOCGIFFLAGS, &name) == 0 && !(name.ifr_flags & IFF_UP)) {
        return crdi_fail(b->ctx, CRD_E_IO,
                         "CAN: the interface '%s' is down: 'ip link set %s up', of a real bus with "
                         "'type can bitrate 500000' before",
                         b->name, b->name);
    }
    return CRD_OK;
}

static crd_status open_interface(crdi_can_bus* b)
{
    const int s = socket(PF_CAN, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, CAN_RAW);
    if (s < 0 && (errno == EAFNOSUPPORT || errno == EPROTONOSUPPORT)) {
        return crdi_fail(b->ctx, CRD_E_UNSUPPORTED,
                         "CAN: this kernel has no SocketCAN (%s): load it with 'modprobe can_raw', "
                         "and the driver of the adapter, or 'modprobe vcan' for a bus without one",
                         strerror(errno));
    }
    if (s < 0) { return crdi_fail(b->ctx, CRD_E_IO, "CAN: no socket: %s", strerror(errno)); }
    struct sockaddr_can at = {.can_family = AF_CAN};
    crd_status st = check_interface(b, s, &at);
    set_option(s, SOL_CAN_RAW, CAN_RAW_FD_FRAMES, 1);
    set_option(s, SOL_CAN_RAW, CAN_RAW_ERR_FILTER, CAN_ERR_MASK);
    if (st == CRD_OK && bind(s, (const struct sockaddr*)&at, sizeof at) < 0) {
        st = crdi_fail(b->ctx, CRD_E_IO, "CAN: the interface '%s' cannot be used: %s", b->name,
                       strerror(errno));
    }
    if (st < 0) {
        close(s);
        return st;
    }
    b->in = b->out = s;
    return CRD_OK;
}

static bool parse_group(const char* text, struct sockaddr_in* out)
{
    char host[INET_ADDRSTRLEN];
    const char* colon = strrchr(text, ':');
    const size_t n = colon ? (size_t)(colon - text) : 0;
    int64_t port = 0;
    if (n == 0 || n >= sizeof host || !crdi_parse_int64(colon + 1, strlen(colon + 1), &port) ||
        port < 1 || port > 65535) {
        return false;
    }
    memcpy(host, text, n);
    host[n] = 0;
    *out = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    return inet_pton(AF_INET, host, &out->sin_addr) == 1 &&
           IN_MULTICAST(ntohl(out->sin_addr.s_addr));
}

// Packets go out by the loopback interface and are sent back there to all who have joined.
static bool open_group(crdi_can_bus* b)
{
    const struct in_addr loopback = {htonl(INADDR_LOOPBACK)};
    const struct ip_mreq member = {b->to.sin_addr, loopback};
    const unsigned char hops = 0, loop = 1;
    socklen_t size = sizeof b->own;
    b->own = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = loopback};
    b->in = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    b->out = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    set_option(b->in, SOL_SOCKET, SO_REUSEADDR, 1);
    return b->in >= 0 && b->out >= 0 &&
           bind(b->in, (const struct sockaddr*)&b->to, sizeof b->to) == 0 &&
           setsockopt(b->in, IPPROTO_IP, IP_ADD_MEMBERSHIP, &member, sizeof member) == 0 &&
           setsockopt(b->out, IPPROTO_IP, IP_MULTICAST_IF, &loopback, sizeof loopback) == 0 &&
           setsockopt(b->out, IPPROTO_IP, IP_MULTICAST_TTL, &hops, sizeof hops) == 0 &&
           setsockopt(b->out, IPPROTO_IP, IP_MULTICAST_LOOP, &loop, sizeof loop) == 0 &&
           bind(b->out, (const struct sockaddr*)&b->own, sizeof b->own) == 0 &&
           getsockname(b->out, (struct sockaddr*)&b->own, &size) == 0;
}

static crd_status open_bus(crdi_can_bus* b)
{
    static const char udp[] = "udp://";
    b->group = strncmp(b->name, udp, sizeof udp - 1) == 0;
    if (b->group && !parse_group(b->name + sizeof udp - 1, &b->to)) {
        return crdi_fail(b->ctx, CRD_E_RANGE,
                         "CAN: '%s' is no bus of this host, expected a multicast group and a port "
                         "as udp://239.74.163.2:43113",
                         crdi_clip(b->name).text);
    }
    if (!b->group && (!*b->name || strlen(b->name) >= IFNAMSIZ || strpbrk(b->name, ":/ "))) {
        return crdi_fail(b->ctx, CRD_E_RANGE,
                         "CAN: '%s' is no name of an interface, expected one as can0, or "
                         "udp://239.74.163.2:43113 for a bus of this host",
                         crdi_clip(b->name).text);
    }
    crd_status st = CRD_OK;
    if (!b->group) {
        st = open_interface(b);
    } else if (!open_group(b)) {
        st = crdi_fail(b->ctx, CRD_E_IO, "CAN: the bus '%s' of this host cannot be used: %s",
                       b->name, strerror(errno));
    }
    if (st < 0) { return st; }
    set_option(b->in, SOL_SOCKET, SO_TIMESTAMPNS, 1);
    set_option(b->in, SOL_SOCKET, SO_RXQ_OVFL, 1);
    set_option(b->in, SOL_SOCKET, SO_RCVBUF, 4 << 20);
    set_option(b->in, SOL_SOCKET, SO_RCVBUFFORCE, 4 << 20); // who may, is not held to rmem_max
    return CRD_OK;
}

static crd_status make_bus(crd_context* ctx, const char* name, crdi_can_bus** out)
{
    crdi_can_bus* b = crdi_new(ctx, sizeof *b);
    if (!b) { return CRD_E_MEMORY; }
    b->ctx = ctx;
    b->in = b->out = -1;
    b->name = crdi_strdup(ctx, name);
    if (!b->name) {
        crd_free(ctx, b);
        return CRD_E_MEMORY;
    }
    *out = b;
    return CRD_OK;
}

crd_status crdi_can_bus_open(crd_context* ctx, const char* interface, crdi_can_bus** out)
{
    crdi_can_bus* b = NULL;
    crd_status st = make_bus(ctx, interface, &b);
    if (st < 0) { return st; }
    st = open_bus(b);
    if (st < 0) {
        crdi_can_bus_close(b);
        return st;
    }
    *out = b;
    return CRD_OK;
}

crd_status crdi_can_bus_over(crd_context* ctx, int fd, crdi_can_bus** out)
{
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) {
        return crdi_fail(ctx, CRD_E_IO, "CAN: the descriptor %d cannot be used: %s", fd,
                         strerror(errno));
    }
    crdi_can_bus* b = NULL;
    const crd_status st = make_bus(ctx, "of a descriptor", &b);
    if (st < 0) { return st; }
    b->in = b->out = fd;
    b->borrowed = true;
    *out = b;
    return CRD_OK;
}

void crdi_can_bus_close(crdi_can_bus* b)
{
    if (!b) { return; }
    close_sockets(b);
    crd_free(b->ctx, b->name);
    crd_free(b->ctx, b);
}

bool crdi_can_bus_rejoin(crdi_can_bus* b)
{
    if (!b->error) { return true; }
    if (!b->borrowed) { // an interface that was gone is another one when it comes back
        close_sockets(b);
        const crd_status st = open_bus(b);
        if (st == CRD_E_NOT_FOUND) { word_trouble(b, true); } // it was down before
        if (st < 0) { return false; }
        b->drops = 0;
    }
    b->error = 0;
    return true;
}

// ---- frames ------------------------------------------------------------------------------------

size_t crdi_can_pack(const crdi_can_frame* f, uint8_t out[CRDI_CAN_PACKED])
{
    const uint32_t id = id_of(f);
    const size_t bytes = f->remote ? 0 : f->length;
    for (int i = 0; i < 4; i++) {
        out[i] = (uint8_t)(id >> (24 - 8 * i));
    }
    out[4] = f->length;
    out[5] = f->fd ? (uint8_t)(f->flags | CANFD_FDF) : 0;
    out[6] = out[7] = 0;
    memcpy(out + 8, f->data, bytes);
    return 8 + bytes;
}

bool crdi_can_unpack(const uint8_t* bytes, size_t length, crdi_can_frame* out)
{
    if (length < 8) { return false; }
    // Who does not say that it is CAN FD shows it by a room or a length that only that has.
    const bool fd = bytes[5] & CANFD_FDF || length == CANFD_MTU || bytes[4] > CAN_MAX_DLEN;
    *out = (crdi_can_frame){.fd = fd, .length = bytes[4]};
    take_id(out, (uint32_t)bytes[0] << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3]);
    if (fd) { out->flags = bytes[5] & (CANFD_BRS | CANFD_ESI); }
    const size_t data = out->remote ? 0 : out->length;
    if (out->length > CRDI_CAN_LONGEST || data > length - 8) { return false; }
    memcpy(out->data, bytes + 8, data);
    return true;
}

int crdi_can_round_length(int length)
{
    static const int lengths[] = {8, 12, 16, 20, 24, 32, 48, 64};
    if (length <= 8) { return length; }
    for (size_t i = 1; i < sizeof lengths / sizeof *lengths; i++) {
        if (length <= lengths[i]) { return lengths[i]; }
    }
    return 0;
}

const char* crdi_can_error_name(const crdi_can_frame* f)
{
    static const struct {
        uint32_t bit;
        const char* name;
    } rows[] = {
        {CAN_ERR_BUSOFF, "bus off"},           {CAN_ERR_RESTARTED, "controller restarted"},
        {CAN_ERR_ACK, "nobody acknowledges"},  {CAN_ERR_TX_TIMEOUT, "sending timed out"},
        {CAN_ERR_LOSTARB, "arbitration lost"}, {CAN_ERR_PROT, "protocol violated"},
        {CAN_ERR_TRX, "transceiver"},          {CAN_ERR_BUSERROR, "bus error"},
    };
    if (f->id & CAN_ERR_CRTL) {
        const uint8_t c = f->data[1];
        return c & (CAN_ERR_CRTL_RX_PASSIVE | CAN_ERR_CRTL_TX_PASSIVE)     ? "error passive"
               : c & (CAN_ERR_CRTL_RX_WARNING | CAN_ERR_CRTL_TX_WARNING)   ? "error warning"
               : c & (CAN_ERR_CRTL_RX_OVERFLOW | CAN_ERR_CRTL_TX_OVERFLOW) ? "controller overrun"
                                                                           : "controller";
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (f->id & rows[i].bit) { return rows[i].name; }
    }
    return "error";
}

int crdi_can_recognise(const crdi_wire_catalog* c, const crdi_can_frame* f)
{
    if (f->error || f->remote) { return -1; }
    for (int i = 0; i < c->message_count; i++) {
        const crdi_wire_message* m = &c->messages[i];
        if (m->id == f->id && m->extended == f->extended) { return i; }
    }
    return -1;
}

crd_status crdi_can_frame_for(crd_context* ctx, const crdi_wire_message* m, crdi_can_frame* out)
{
    const int length = crdi_can_round_length(m->length);
    if (m->length != length || (length > 8 && !m->fd)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "message '%s' has %d bytes, expected at most 8, or in a frame of CAN FD "
                         "12, 16, 20, 24, 32, 48 or 64",
                         m->name, m->length);
    }
    *out = (crdi_can_frame){
        .id = m->id, .extended = m->extended, .fd = m->fd, .length = (uint8_t)length};
    return CRD_OK;
}
