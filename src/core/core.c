// Memory and five functions of a board as a context and the link of a slave.
#include "cardan/core.h"
#include "shared/base.h"

#include <math.h>
#include <string.h>

enum {
    ALIGN = 8,
    AT_ONCE = 16,        // datagrams of one turn: a flood does not keep the steps waiting
    LOOKS = 1000 * 1000, // at a clock until it is said to stand still
    LEAST = 1024,        // bytes
    PDU = 512,
    GARBAGE = 20, // bytes; answers per second
};

struct crd_core {
    crd_core_port port;
    crd_context* ctx;
    unsigned char* memory; // (size) behind this struct
    unsigned char* last;   // newest block in use, NULL
    size_t size, used;
    bool sealed;
    crd_core_state state;
    crd_dcp_slave* slave;
    crd_dcp_plant plant;
    uint8_t* pdu; // (room)
    size_t room;
    double now;
    int32_t looks; // turns with the same time
};

// ---- memory ------------------------------------------------------------------------------------

// Blocks stand behind each other, each behind its size. What is given back is free again when
// nothing newer is in use.
typedef union block {
    struct {
        size_t size;           // 0: given back
        unsigned char* before; // the block before it, NULL
    } is;
    unsigned char room[ALIGN];
} block;

static size_t rounded(size_t size)
{
    return (size + ALIGN - 1) / ALIGN * ALIGN;
}

static block* head_of(void* p)
{
    return (block*)((unsigned char*)p - sizeof(block));
}

static void* take_block(crd_core* c, size_t size)
{
    const size_t left = c->size - c->used;
    if (c->sealed) {
        c->state.refused++;
        return NULL;
    }
    if (size > left || rounded(size) + sizeof(block) > left) { return NULL; }
    unsigned char* before = c->last;
    c->last = c->memory + c->used + sizeof(block);
    head_of(c->last)->is.size = size;
    head_of(c->last)->is.before = before;
    c->used += rounded(size) + sizeof(block);
    if (c->used > c->state.most) { c->state.most = c->used; }
    return c->last;
}

static void give_block_back(crd_core* c, void* p)
{
    head_of(p)->is.size = 0;
    while (c->last && head_of(c->last)->is.size == 0) {
        c->used = (size_t)((unsigned char*)head_of(c->last) - c->memory);
        c->last = head_of(c->last)->is.before;
    }
}

static void* core_realloc(void* user, void* p, size_t size)
{
    crd_core* c = user;
    if (size == 0) {
        if (p) { give_block_back(c, p); }
        return NULL;
    }
    if (!p) { return take_block(c, size); }
    const size_t before = head_of(p)->is.size;
    if (size <= before) { return p; }
    void* q = take_block(c, size);
    if (!q) { return NULL; }
    memcpy(q, p, before);
    give_block_back(c, p);
    return q;
}

// ---- start -------------------------------------------------------------------------------------

static const char* look_at_clock(const crd_core_port* port)
{
    if (!port->time) {
        return "port: time is NULL; expected a function that says the time in s: deadmen and steps "
               "go by it";
    }
    const double first = port->time(port->user);
    for (int i = 0; i < LOOKS; i++) {
        const double now = port->time(port->user);
        if (!isfinite(first) || !isfinite(now)) {
            return "port: time is not a number; expected s since any moment";
        }
        if (now < first) { return "port: time goes back; expected s that never become less"; }
        if (now > first) { return NULL; }
    }
    return "port: time stands still; expected a clock that runs (is its timer started?)";
}

static void core_log(void* user, crd_level level, const char* text)
{
    const crd_core* c = user;
    c->port.log(c->port.user, level, text);
}

crd_core* crd_core_start(const crd_core_port* port, void* memory, size_t size, const char** why)
{
    const size_t lead = memory ? (ALIGN - (uintptr_t)memory % ALIGN) % ALIGN : 0;
    const size_t head = lead + rounded(sizeof(crd_core));
    static const char few[] = "port: too little memory; expected 2 KB and what is created";
    *why = look_at_clock(port);
    if (!*why && (!memory || size < head + LEAST)) { *why = few; }
    crd_core* c = NULL;
    if (!*why) {
        c = (crd_core*)((unsigned char*)memory + lead);
        *c =
            (crd_core){.port = *port, .memory = (unsigned char*)memory + head, .size = size - head};
        c->ctx = crdi_context_make(&(crd_context_options){.realloc = core_realloc,
                                                          .realloc_user = c,
                                                          .log = port->log ? core_log : NULL,
                                                          .log_user = c,
                                                          .level = CRD_LOG_INFO});
        *why = c->ctx ? NULL : few;
        c->now = port->time(port->user);
    }
    if (*why && port->log) { port->log(port->user, CRD_LOG_ERROR, *why); }
    return *why ? NULL : c;
}

crd_context* crd_core_context(crd_core* core)
{
    return core->ctx;
}

void crd_core_seal(crd_core* core)
{
    core->sealed = true;
}

crd_core_state crd_core_get_state(const crd_core* core)
{
    crd_core_state state = core->state;
    state.size = core->size;
    state.used = core->used;
    return state;
}

// ---- the slave ---------------------------------------------------------------------------------

static void critical(const crd_core* c, bool enter)
{
    if (c->port.critical) { c->port.critical(c->port.user, enter); }
}

static crd_dcp_outcome core_enter(void* user, crd_dcp_state state, double now)
{
    crd_core* c = user;
    return c->plant.enter(c->plant.user, state, now);
}

static crd_dcp_outcome core_step(void* user, int64_t done, uint32_t steps, double resolution)
{
    crd_core* c = user;
    return c->plant.step(c->plant.user, done, steps, resolution);
}

static crd_dcp_outcome core_set(void* user, int variable, const crd_dcp_slot* value)
{
    crd_core* c = user;
    critical(c, true);
    const crd_dcp_outcome outcome = c->plant.set(c->plant.user, variable, value);
    critical(c, false);
    return outcome;
}

static crd_dcp_outcome core_get(void* user, int variable, crd_dcp_slot* value)
{
    crd_core* c = user;
    critical(c, true);
    const crd_dcp_outcome outcome = c->plant.get(c->plant.user, variable, value);
    critical(c, false);
    return outcome;
}

static double core_next(void* user)
{
    crd_core* c = user;
    return c->plant.next(c->plant.user);
}

static void core_advance(void* user, double now)
{
    crd_core* c = user;
    c->plant.advance(c->plant.user, now);
}

static bool core_send(void* user, const crd_dcp_address* to, const uint8_t* bytes, size_t length)
{
    crd_core* c = user;
    return c->port.send(c->port.user, to, bytes, length);
}

// A board has one address, which requests come to; data for another one would never arrive.
static bool core_listen(void* user, const crd_dcp_address* at)
{
    const crd_core* c = user;
    crdi_log(c->ctx, CRD_LOG_ERROR,
             "data are to come to port %u, which is not the board's; expected the port of requests",
             at->port);
    return false;
}

crd_dcp_slave_options crd_core_slave_defaults(const crd_dcp_description* d)
{
    crd_dcp_slave_options o = crd_dcp_slave_defaults();
    o.max_groups = 8;
    o.max_group_size = d->variable_count > 0 ? d->variable_count : 1;
    o.max_targets = 2;
    o.log_entries = 4;
    o.log_bytes = 200;
    o.max_pdu = PDU;
    o.max_garbage = GARBAGE;
    o.max_elements = 16;
    o.max_text = 128;
    return o;
}

crd_status crd_core_serve(crd_core* core, const crd_dcp_description* d, const crd_dcp_plant* plant,
                          const crd_dcp_slave_options* opt, crd_dcp_slave** out)
{
    const crd_dcp_slave_options o = opt ? *opt : crd_core_slave_defaults(d);
    if (!core->port.send || !core->port.receive) {
        return crdi_fail(core->ctx, CRD_E_UNSUPPORTED,
                         "port: %s is NULL; expected a function, a slave has a network",
                         core->port.send ? "receive" : "send");
    }
    if (core->slave) {
        return crdi_fail(core->ctx, CRD_E_UNSUPPORTED, "a second slave; expected one of a board");
    }
    core->plant = plant ? *plant : (crd_dcp_plant){0};
    const crd_dcp_plant* p = &core->plant;
    const crd_dcp_plant whole = {.user = core,
                                 .enter = p->enter ? core_enter : NULL,
                                 .step = p->step ? core_step : NULL,
                                 .set = p->set ? core_set : NULL,
                                 .get = p->get ? core_get : NULL,
                                 .next = p->next ? core_next : NULL,
                                 .advance = p->advance ? core_advance : NULL};
    const crd_dcp_link link = {.user = core, .send = core_send, .listen = core_listen};
    core->room = o.max_pdu;
    core->pdu = crdi_new(core->ctx, o.max_pdu);
    if (!core->pdu) { return CRD_E_MEMORY; }
    const crd_status st = crd_dcp_slave_create(core->ctx, d, &whole, &link, &o, &core->slave);
    if (st >= 0) { *out = core->slave; }
    return st;
}

// ---- the main loop -----------------------------------------------------------------------------

static void keep_time(crd_core* c)
{
    const double now = c->port.time(c->port.user);
    if (now > c->now) {
        c->now = now;
        c->looks = 0;
        c->state.stands_still = false;
    } else if (c->looks < LOOKS && ++c->looks == LOOKS) {
        c->state.stands_still = true;
        crdi_log(c->ctx, CRD_LOG_ERROR, "port: time stands still at %g s; no deadman acts", c->now);
        if (c->slave) { crd_dcp_slave_fault(c->slave, CRD_DCP_E_GENERIC, c->now); }
    }
}

static bool take_datagram(crd_core* c)
{
    crd_dcp_address from = {0}, at = {0};
    const size_t length = c->port.receive(c->port.user, &from, &at, c->pdu, c->room);
    if (length == 0) { return false; }
    if (length > c->room) {
        c->state.too_long++;
        return true;
    }
    c->state.received++;
    crd_dcp_slave_receive(c->slave, &from, &at, c->pdu, length, c->now);
    return true;
}

double crd_core_turn(crd_core* core)
{
    keep_time(core);
    if (!core->slave) { return INFINITY; }
    for (int i = 0; i < AT_ONCE && take_datagram(core); i++) {
        keep_time(core);
    }
    crd_dcp_slave_advance(core->slave, core->now);
    return crd_dcp_slave_next(core->slave);
}
