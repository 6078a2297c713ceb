// A CAN bus as a network: a packet is a frame as captures have it (LINKTYPE_CAN_SOCKETCAN). A bus
// has one address, which stands for all that are at it.
#include "dcp/net/net.h"
#include "shared/base.h"
#include "shared/base_system.h"
#include "shared/wire_can.h"

#include <math.h>
#include <string.h>
#include <time.h>

static const crd_dcp_address bus_address = {
    .ip = CRDI_DCP_LOOPBACK, .port = CRDI_DCP_BUS_PORT, .transport = CRD_DCP_CAN};
static const double PAUSE = 0.5; // s between looks for an interface that is gone

typedef struct bus_net {
    crd_dcp_net base; // first
    crdi_can_bus* bus;
    int64_t offset; // ns: UNIX time at create less the monotonic clock
    double retry;   // s: not before
    bool announced; // that there is trouble
    crdi_can_frame frame;
    uint8_t bytes[CRDI_CAN_PACKED]; // the last packet
} bus_net;

static double bus_now(const crd_dcp_net* n)
{
    return 1e-9 * (double)(crdi_clock_ns(CLOCK_MONOTONIC) + ((const bus_net*)n)->offset);
}

static void bus_destroy(crd_dcp_net* n)
{
    bus_net* b = (bus_net*)n;
    crdi_can_bus_close(b->bus);
    crd_free(n->ctx, b);
}

static crd_status bus_listen(crd_dcp_net* n, crd_dcp_address* at)
{
    (void)n;
    *at = bus_address; // where everybody is
    return CRD_OK;
}

static crd_status bus_connect(crd_dcp_net* n, const crd_dcp_address* to)
{
    (void)n, (void)to;
    return CRD_OK;
}

static bool bus_connected(const crd_dcp_net* n, const crd_dcp_address* to)
{
    (void)to;
    return !*crdi_can_bus_trouble(((const bus_net*)n)->bus);
}

static bool bus_local(const crd_dcp_net* n, int index, crd_dcp_address* out)
{
    (void)n;
    *out = bus_address;
    return index == 0;
}

static void bus_set_control(crd_dcp_net* n)
{
    (void)n;
}

static void bus_close(crd_dcp_net* n, const crd_dcp_address* at)
{
    (void)n, (void)at;
}

static bool bus_send(crd_dcp_net* n, const crd_dcp_address* to, const uint8_t* bytes, size_t length,
                     crd_dcp_address* from)
{
    crdi_can_frame f;
    (void)to;
    *from = bus_address;
    // What a controller says about its bus is for its own host.
    return crdi_can_unpack(bytes, length, &f) && !f.error &&
           crdi_can_bus_send(((bus_net*)n)->bus, &f);
}

// An interface that is down or gone is reported once, and used again when it is back.
static void look_after(bus_net* b)
{
    const char* trouble = crdi_can_bus_trouble(b->bus);
    if (*trouble && !b->announced) {
        crdi_log(b->base.ctx, CRD_LOG_WARNING, "%s; it is used again when it is back", trouble);
    }
    b->announced = *trouble;
    const double now = *trouble ? bus_now(&b->base) : 0;
    if (!*trouble || now < b->retry) { return; }
    b->retry = now + PAUSE;
    (void)crdi_can_bus_rejoin(b->bus);
}

static bool bus_receive(crd_dcp_net* n, crd_dcp_packet* out)
{
    bus_net* b = (bus_net*)n;
    if (crdi_can_bus_receive(b->bus, &b->frame)) {
        // The kernel's clock may be set; what came is not of the future.
        const int64_t ago = crdi_clock_ns(CLOCK_REALTIME) - b->frame.time;
        const double age = b->frame.time && ago > 0 ? 1e-9 * (double)ago : 0;
        *out = (crd_dcp_packet){.from = bus_address,
                                .at = bus_address,
                                .time = bus_now(n) - fmin(age, 1),
                                .bytes = b->bytes,
                                .length = crdi_can_pack(&b->frame, b->bytes)};
        return true;
    }
    look_after(b);
    return false;
}

static void bus_wait(crd_dcp_net* n, double seconds)
{
    crdi_can_bus_wait(((bus_net*)n)->bus, seconds);
}

static int bus_descriptor(const crd_dcp_net* n)
{
    return crdi_can_bus_descriptor(((const bus_net*)n)->bus);
}

static uint32_t bus_source_ip(const crd_dcp_net* n, const crd_dcp_address* to)
{
    (void)n, (void)to;
    return bus_address.ip;
}

crd_status crdi_dcp_net_bus(crd_context* ctx, crdi_can_bus* bus, crd_dcp_net** out)
{
    static const crdi_dcp_net_ops ops = {.destroy = bus_destroy,
                                         .listen = bus_listen,
                                         .connect = bus_connect,
                                         .connected = bus_connected,
                                         .local = bus_local,
                                         .set_control = bus_set_control,
                                         .send = bus_send,
                                         .receive = bus_receive,
                                         .wait = bus_wait,
                                         .close = bus_close,
                                         .now = bus_now,
                                         .descriptor = bus_descriptor,
                                         .source_ip = bus_source_ip,
                                         .can = true};
    bus_net* b = crdi_new(ctx, sizeof *b);
    if (!b) {
        crdi_can_bus_close(bus);
        return CRD_E_MEMORY;
    }
    crdi_dcp_net_init(&b->base, ctx, &ops);
    b->bus = bus;
    b->offset = crdi_clock_ns(CLOCK_REALTIME) - crdi_clock_ns(CLOCK_MONOTONIC);
    *out = &b->base;
    return CRD_OK;
}

// "can://vcan0", "can://239.74.163.2:43113"
bool crdi_dcp_is_bus(const char* text)
{
    return text && strncmp(text, "can://", 6) == 0;
}

crd_status crdi_dcp_bus_open(crd_context* ctx, const char* text, crdi_can_bus** out)
{
    const char* name = text + 6;
    char* group = strchr(name, ':') ? crdi_format(ctx, "udp://%s", name) : NULL;
    if (strchr(name, ':') && !group) { return CRD_E_MEMORY; }
    const crd_status st = crdi_can_bus_open(ctx, group ? group : name, out);
    crd_free(ctx, group);
    return st;
}

void crdi_dcp_capture_frame(crd_dcp_capture* c, const crdi_can_frame* f)
{
    uint8_t bytes[CRDI_CAN_PACKED];
    const size_t length = crdi_can_pack(f, bytes);
    crdi_dcp_capture_can(c, f->time ? f->time : crdi_clock_ns(CLOCK_REALTIME), bytes, length);
}
