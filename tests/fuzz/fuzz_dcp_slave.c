// modules: dcp base
// Any bytes as what happens to a slave: PDUs, time that passes, duties that end, faults, logs.
//
// A record is  0 what:u8  1 n:u8  and for PDUs n bytes. With PATCH the sequence id, the receiver
// and the state_id are made right, so that what lies behind those checks is reached.
#include "fuzz.h"

#include <stdlib.h>

#include "../dcp/rig_description.h"
#include "dcp/slave/slave.h"

enum { PDU, PATCHED, STRANGE, WAIT, DONE, SIGNAL, PLANT, LOG, KINDS };

typedef struct world {
    crd_dcp_slave* slave;
    double now;
    uint8_t outcomes; // of callbacks, two bits each
    int calls;
} world;

static crd_dcp_outcome outcome(world* w)
{
    static const crd_dcp_outcome all[] = {CRD_DCP_DONE, CRD_DCP_DONE, CRD_DCP_LATER,
                                          CRD_DCP_FAILED};
    return all[w->outcomes >> (2 * (w->calls++ % 4)) & 3];
}

static crd_dcp_outcome enter(void* user, crd_dcp_state state, double now)
{
    world* w = user;
    if (state >= CRD_DCP_STATE_COUNT || now != w->now) { abort(); }
    return outcome(w);
}

static crd_dcp_outcome step(void* user, int64_t done, uint32_t steps, double resolution)
{
    if (done < 0 || steps == 0 || !(resolution > 0)) { abort(); }
    return outcome(user);
}

static crd_dcp_outcome set(void* user, int variable, const crd_dcp_slot* v)
{
    world* w = user;
    volatile double sum = 0;
    if (variable < 0 || variable >= RIG_VARIABLES) { abort(); }
    if (v->byte_count) {
        for (uint32_t i = 0; i < *v->byte_count; i++) {
            sum = sum + v->bytes[i];
        }
    } else {
        for (uint32_t i = 0; i < v->count; i++) {
            sum = sum + (v->real ? v->real[i] : (double)v->integer[i]);
        }
    }
    return w->outcomes == 0xFF ? CRD_DCP_FAILED : CRD_DCP_DONE;
}

static crd_dcp_outcome get(void* user, int variable, crd_dcp_slot* v)
{
    world* w = user;
    (void)variable;
    if (v->byte_count) {
        *v->byte_count = w->outcomes;
        memset(v->bytes, 'x', v->max_size);
    } else {
        for (uint32_t i = 0; i < v->count; i++) {
            if (v->real) {
                v->real[i] = w->now;
            } else {
                v->integer[i] = w->calls;
            }
        }
    }
    return w->outcomes == 0xFE ? CRD_DCP_FAILED : CRD_DCP_DONE;
}

static bool sent(void* user, const crd_dcp_address* to, const uint8_t* bytes, size_t length)
{
    world* w = user;
    crdi_dcp_pdu p;
    if (crdi_dcp_decode(bytes, length, &p) != CRDI_DCP_GOOD || p.type < CRDI_DCP_RSP_ACK) {
        abort();
    }
    return to->port != 7 && w->outcomes != 0xFD;
}

static bool open_at(void* user, const crd_dcp_address* at)
{
    (void)user;
    return at->port % 64 != 7;
}

static void receive(world* w, int kind, const uint8_t* data, size_t length)
{
    const crd_dcp_address master = {.ip = 0x7F000001, .port = 8081};
    const crd_dcp_address other = {.ip = kind == STRANGE && length % 2 ? 0x0A000001 : 0x7F000001,
                                   .port = 9999};
    const crd_dcp_address control = {.ip = 0x7F000001, .port = 8080};
    uint8_t* bytes = malloc(length ? length : 1); // exactly so many
    if (!bytes) { abort(); }
    if (length) { memcpy(bytes, data, length); }
    if (kind == PATCHED && length >= 4 && bytes[0] < CRDI_DCP_RSP_ACK) {
        const uint16_t seq = (uint16_t)(w->slave->last + 1);
        bytes[1] = (uint8_t)seq;
        bytes[2] = (uint8_t)(seq >> 8);
        bytes[3] = w->slave->id ? w->slave->id : 1;
        if (length >= 5 && bytes[0] <= CRDI_DCP_STC_RESET) { bytes[4] = (uint8_t)w->slave->state; }
    }
    crd_dcp_slave_receive(w->slave, kind == STRANGE ? &other : &master, &control, bytes, length,
                          w->now);
    free(bytes);
}

static void log_something(world* w, uint8_t n)
{
    double x[2] = {w->now, n};
    uint32_t count = n;
    uint8_t text[255] = {0};
    const crd_dcp_slot numbers[] = {{.type = CRD_DCP_FLOAT64, .count = 1, .real = &x[0]},
                                    {.type = CRD_DCP_FLOAT64, .count = 1, .real = &x[1]}};
    const crd_dcp_slot texts = {
        .type = CRD_DCP_STRING, .count = 1, .max_size = 255, .bytes = text, .byte_count = &count};
    crd_dcp_slave_log(w->slave, n % 2 ? 1 : 2, n % 2 ? numbers : &texts, w->now);
}

static void happen(world* w, int kind, uint8_t n)
{
    switch (kind) {
    case WAIT:
        w->now += n < 128 ? n * 0.001 : n < 250 ? (n - 127) * 0.1 : 30;
        crd_dcp_slave_advance(w->slave, w->now);
        break;
    case DONE:
        crd_dcp_slave_done(w->slave, (crd_dcp_outcome)(n % 3), w->now);
        break;
    case SIGNAL:
        if (n % 4) {
            crd_dcp_slave_stop(w->slave, w->now);
        } else {
            crd_dcp_slave_fault(w->slave, CRD_DCP_E_GENERIC, w->now);
        }
        break;
    case PLANT:
        w->outcomes = n;
        break;
    default:
        log_something(w, n);
        break;
    }
}

// What data are written to has room for them: an arena hides it if not.
static void check_room(const crd_dcp_slave* s)
{
    for (int i = 0; i < s->group_count; i++) {
        const crdi_dcp_list* lists[] = {&s->groups[i].in, &s->groups[i].out};
        for (int k = 0; k < 2; k++) {
            for (int e = 0; e < lists[k]->end; e++) {
                const crdi_dcp_value* v = &s->values[lists[k]->entries[e].variable];
                if (!v->slot.bytes && v->slot.count > v->capacity) { abort(); }
                if (v->slot.bytes && v->slot.max_size > v->capacity) { abort(); }
            }
        }
    }
}

static void check(const world* w)
{
    const crd_dcp_state state = crd_dcp_slave_state(w->slave);
    if (state >= CRD_DCP_PREPARED && state <= CRD_DCP_SENDING_D) { check_room(w->slave); }
    const crd_dcp_slave_counts c = crd_dcp_slave_get_counts(w->slave);
    if (c.requests != c.acks + c.nacks + c.muted) { abort(); }
    if (state >= CRD_DCP_STATE_COUNT) { abort(); }
    if (isnan(crd_dcp_slave_next(w->slave))) { abort(); }
    const bool error = state >= CRD_DCP_ERRORHANDLING;
    if (error != (crd_dcp_slave_error(w->slave) != CRD_DCP_NONE)) { abort(); }
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    if (size < 1) { return 0; }
    crd_context* ctx = crd_context_create(NULL);
    world w = {.now = 1794710000};
    crd_dcp_variable variables[RIG_VARIABLES];
    memcpy(variables, rig_variables, sizeof variables);
    variables[RIG_TORQUE].rank = 1;
    variables[RIG_TORQUE].dimensions[0] = 100;
    crd_dcp_description d = rig_description();
    d.variables = variables;
    d.hrt = true;
    d.can_monitor_heartbeat = d.has_heartbeat = data[0] & 1;
    d.heartbeat_numerator = d.heartbeat_denominator = 1;
    d.can_vary_steps = data[0] & 2;
    const crd_dcp_plant plant = {.user = &w, .enter = enter, .step = step, .set = set, .get = get};
    const crd_dcp_link link = {.user = &w, .send = sent, .listen = open_at, .connect = open_at};
    crd_dcp_slave_options opt = crd_dcp_slave_defaults();
    opt.max_groups = 4;
    opt.max_group_size = 6;
    opt.max_targets = 2;
    opt.log_entries = 3;
    opt.max_pdu = 300;
    opt.max_elements = 8;
    opt.check_range = data[0] & 4;
    opt.any_port = data[0] & 8;
    if (crd_dcp_slave_create(ctx, &d, &plant, &link, &opt, &w.slave) != CRD_OK) { abort(); }
    for (size_t at = 1; at + 2 <= size;) {
        const int kind = data[at] % KINDS;
        const uint8_t n = data[at + 1];
        at += 2;
        if (kind <= STRANGE) {
            const size_t length = n < size - at ? n : size - at;
            receive(&w, kind, data + at, length);
            at += length;
        } else {
            happen(&w, kind, n);
        }
        check(&w);
    }
    crd_dcp_slave_destroy(w.slave);
    crd_context_destroy(ctx);
    return 0;
}
