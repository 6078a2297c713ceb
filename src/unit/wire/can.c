// `can`: messages of a CAN bus, by a DBC file.
#include "shared/base.h"
#include "shared/base_system.h"
#include "shared/dcp.h"
#include "shared/system.h"
#include "shared/wire_can.h"
#include "unit/wire/wire_unit.h"

#include <math.h>
#include <string.h>
#include <time.h>

static const double PAUSE = 0.5; // s between looks for an interface that is gone

typedef struct can_link {
    crdi_wire_link base; // first
    crd_context* ctx;
    const crd_unit_spec* spec;
    const crdi_wire_catalog* catalog;
    crdi_can_bus* bus;
    crd_dcp_capture* capture; // NULL
    crdi_can_frame frame;     // the last that came
    double empty;             // s: when nothing more was there
    double retry;             // s: not before
} can_link;

static double can_now(const crdi_wire_link* l)
{
    (void)l;
    return 1e-9 * (double)crdi_now_ns();
}

static void can_wait(crdi_wire_link* l, double seconds)
{
    (void)l;
    crdi_wire_sleep(seconds);
}

// The kernel's time is that of a clock that may be set: what came is not of the future, and came
// behind the last look at which nothing was there.
static double arrival(const can_link* c)
{
    const int64_t ago = crdi_clock_ns(CLOCK_REALTIME) - c->frame.time;
    const double now = can_now(&c->base);
    return c->frame.time ? fmax(c->empty, fmin(now, now - 1e-9 * (double)ago)) : now;
}

static void record(can_link* c, const crdi_can_frame* f)
{
    if (c->capture) { crdi_dcp_capture_frame(c->capture, f); }
}

// Messages that nobody asked for are others' business; one of ours, sent by somebody else, is not.
static bool can_receive(crdi_wire_link* l, crdi_wire_packet* out)
{
    can_link* c = (can_link*)l;
    while (crdi_can_bus_receive(c->bus, &c->frame)) {
        record(c, &c->frame);
        const int i = crdi_can_recognise(c->catalog, &c->frame);
        if (i < 0) { continue; }
        *out = (crdi_wire_packet){.message = i,
                                  .data = c->frame.data,
                                  .length = c->frame.length,
                                  .time = arrival(c),
                                  .foreign = c->catalog->messages[i].sent};
        return true;
    }
    c->empty = can_now(l);
    if (*crdi_can_bus_trouble(c->bus) && c->empty >= c->retry) {
        c->retry = c->empty + PAUSE;
        (void)crdi_can_bus_rejoin(c->bus);
    }
    return false;
}

static bool can_send(crdi_wire_link* l, const crdi_wire_message* m, const uint8_t* data)
{
    crdi_can_frame f = {
        .id = m->id, .extended = m->extended, .fd = m->fd, .length = (uint8_t)m->length};
    memcpy(f.data, data, f.length);
    if (!crdi_can_bus_send(((can_link*)l)->bus, &f)) { return false; }
    record((can_link*)l, &f);
    return true;
}

static const char* can_trouble(const crdi_wire_link* l)
{
    return crdi_can_bus_trouble(((const can_link*)l)->bus);
}

static crd_status can_close(crdi_wire_link* l)
{
    can_link* c = (can_link*)l;
    const crdi_can_counts n = crdi_can_bus_counts(c->bus);
    if (n.overrun || n.errors || n.bad || n.downs) {
        crdi_log(c->ctx, CRD_LOG_WARNING,
                 "unit '%s': %s: %lld frames lost for want of room, %lld error frames, %lld "
                 "packets that are no frames, %lld times down",
                 c->spec->name, c->spec->address, (long long)n.overrun, (long long)n.errors,
                 (long long)n.bad, (long long)n.downs);
    }
    crdi_can_bus_close(c->bus);
    const crd_status st = crd_dcp_capture_close(c->capture);
    crd_free(c->ctx, c);
    return st;
}

// ---- opening
// -------------------------------------------------------------------------------------

static crd_status can_load(crd_context* ctx, const crd_unit_spec* spec, crd_arena* arena,
                           crdi_wire_catalog* out)
{
    const crd_link_spec* k = &spec->link;
    const char* wrong = k->local ? "local" : k->listen ? "listen" : k->plain ? "plain" : NULL;
    if (wrong) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "link.%s means nothing on a CAN bus, expected contact, timeout or capture",
                         wrong);
    }
    const crd_status st = crdi_wire_dbc_read(arena, spec->path, out);
    return st < 0 ? st : crdi_layout_choose(ctx, spec, arena, out);
}

static crd_status can_open(crd_context* ctx, const crd_unit_spec* spec,
                           const crdi_wire_catalog* catalog, crdi_wire_link** out)
{
    static const crdi_wire_link_ops ops = {.now = can_now,
                                           .wait = can_wait,
                                           .receive = can_receive,
                                           .send = can_send,
                                           .trouble = can_trouble,
                                           .close = can_close};
    crdi_can_bus* bus = NULL;
    const crd_status st = crdi_can_bus_open(ctx, spec->address, &bus);
    if (st < 0) { return st; }
    can_link* c = crdi_new(ctx, sizeof *c);
    if (!c) {
        crdi_can_bus_close(bus);
        return CRD_E_MEMORY;
    }
    *c = (can_link){.base.ops = &ops, .ctx = ctx, .spec = spec, .catalog = catalog, .bus = bus};
    c->empty = can_now(&c->base);
    const crd_status opened =
        spec->link.capture ? crd_dcp_capture_open(ctx, spec->link.capture, &c->capture) : CRD_OK;
    if (opened < 0) {
        (void)can_close(&c->base);
        return opened;
    }
    *out = &c->base;
    return CRD_OK;
}

static crd_status can_create(crd_context* ctx, crd_unit_store* store, const crd_unit_spec* spec,
                             crd_place* place, crd_unit** out)
{
    static const crdi_wire_kind kind = {"CAN", "came from somebody else that are messages of ours",
                                        can_load, can_open};
    (void)store, (void)place;
    return crdi_wire_unit_create(ctx, spec, &kind, out);
}

const crdi_adapter crdi_adapter_can = {.create = can_create};
