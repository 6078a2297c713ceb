// modules: dcp base
// Any bytes as what a slave and the network between do to a master.
//
// The first byte chooses the plan, the rest are records  0 what:u8  1 n:u8  and for some n bytes.
// A slave of ours is behind them: HONEST hands requests to it and its answers back, DAMAGE changes
// a byte of an answer, so that the depths of a session are reached; RAW and ANSWER are all
// invented, ANSWER with the sequence id and slave id that the master waits for. Where the bytes
// end, the slave goes on honestly or is silent. Every wait of the master is one record: it must
// come to an end.
#include "fuzz.h"

#include <stdlib.h>

#include "../dcp/rig_description.h"
#include "dcp/net/net.h"
#include "shared/dcp.h"

enum { HONEST, DROP, DAMAGE, TWICE, RAW, ANSWER, TIME, FAULT, KINDS };
enum { QUEUE = 32, ROOM = 1200, MOST_WAITS = 400000 };

typedef struct packet {
    crd_dcp_address from, at;
    size_t length;
    uint8_t bytes[ROOM];
} packet;

typedef struct queue {
    packet packets[QUEUE];
    int first, count;
} queue;

typedef struct world {
    crd_dcp_net base;
    double now;
    const uint8_t* data;
    size_t left;
    bool silent; // at the end
    bool invented;
    bool again; // STC_register comes once more, perhaps behind STC_deregister: it is as a new one
    bool stubborn; // at the end: always in this state, refuses all with this code
    uint8_t state;
    uint16_t code;
    int waits;
    queue to_slave, to_master;
    packet current;
    uint16_t seq; // of the last request
    uint8_t id;
    crd_dcp_slave* slave;
} world;

static const crd_dcp_address master_at = {0x0A000001, 9000, CRD_DCP_UDP};
static const crd_dcp_address slave_at = {0x0A000002, 8080, CRD_DCP_UDP};

static void put(queue* q, const crd_dcp_address* from, const crd_dcp_address* at,
                const uint8_t* bytes, size_t length)
{
    if (q->count == QUEUE || length > ROOM) { return; } // as datagrams do
    packet* p = &q->packets[(q->first + q->count++) % QUEUE];
    p->from = *from;
    p->at = *at;
    p->length = length;
    if (length) { memcpy(p->bytes, bytes, length); }
}

static bool get(queue* q, packet* out)
{
    if (q->count == 0) { return false; }
    *out = q->packets[q->first];
    q->first = (q->first + 1) % QUEUE;
    q->count--;
    return true;
}

// ---- the slave ---------------------------------------------------------------------------------

static bool slave_sends(void* user, const crd_dcp_address* to, const uint8_t* bytes, size_t length)
{
    world* w = user;
    put(&w->to_master, &slave_at, to, bytes, length);
    return true;
}

static crd_dcp_outcome slave_gets(void* user, int variable, crd_dcp_slot* v)
{
    (void)user;
    if (v->byte_count) {
        *v->byte_count = 3;
        memcpy(v->bytes, "abc", 3);
    } else if (v->real) {
        v->real[0] = variable;
    } else {
        v->integer[0] = variable;
    }
    return CRD_DCP_DONE;
}

static void serve(world* w, int packets)
{
    packet p;
    while (packets-- > 0 && get(&w->to_slave, &p)) {
        crd_dcp_slave_receive(w->slave, &p.from, &p.at, p.bytes, p.length, w->now);
    }
    crd_dcp_slave_advance(w->slave, w->now);
}

// ---- the network -------------------------------------------------------------------------------

static bool net_send(crd_dcp_net* base, const crd_dcp_address* to, const uint8_t* bytes,
                     size_t length, crd_dcp_address* from)
{
    world* w = (world*)base;
    crdi_dcp_pdu p;
    if (crdi_dcp_decode(bytes, length, &p) != CRDI_DCP_GOOD) { abort(); }
    if (p.type < CRDI_DCP_RSP_ACK) {
        w->seq = p.seq;
        w->id = p.peer;
    }
    *from = master_at;
    put(&w->to_slave, &master_at, to, bytes, length);
    return true;
}

static bool net_receive(crd_dcp_net* base, crd_dcp_packet* out)
{
    world* w = (world*)base;
    if (!get(&w->to_master, &w->current)) { return false; }
    *out = (crd_dcp_packet){.from = w->current.from,
                            .at = w->current.at,
                            .bytes = w->current.bytes,
                            .length = w->current.length,
                            .time = w->now};
    return true;
}

static void invent(world* w, int kind, uint8_t n)
{
    const size_t length = n < w->left ? n : w->left;
    uint8_t bytes[256];
    crd_dcp_address from = slave_at;
    memcpy(bytes, w->data, length);
    w->data += length;
    w->left -= length;
    w->invented = true;
    if (kind == ANSWER && length >= 4) {
        if (bytes[0] < CRDI_DCP_NTF_STATE_CHANGED) {
            bytes[1] = (uint8_t)w->seq;
            bytes[2] = (uint8_t)(w->seq >> 8);
            bytes[3] = w->id;
        } else if (bytes[0] < CRDI_DCP_DAT_INPUT_OUTPUT) {
            bytes[1] = w->id;
        }
    } else if (n % 8 == 7) {
        from.port = 1;
    }
    put(&w->to_master, &from, &master_at, bytes, length);
}

static void happen(world* w, int kind, uint8_t n)
{
    packet p;
    switch (kind) {
    case HONEST:
        serve(w, n % 16 + 1);
        break;
    case DROP:
        (void)get(n % 2 ? &w->to_slave : &w->to_master, &p);
        break;
    case DAMAGE:
        w->invented = true;
        serve(w, 1);
        if (w->to_master.count) {
            packet* q = &w->to_master.packets[w->to_master.first];
            if (q->length) { q->bytes[n % q->length] ^= (uint8_t)(n | 1); }
        }
        break;
    case TWICE:
        if (w->to_slave.count) {
            const packet q = w->to_slave.packets[w->to_slave.first];
            w->again |= q.bytes[0] == CRDI_DCP_STC_REGISTER;
            put(&w->to_slave, &q.from, &q.at, q.bytes, q.length);
        }
        break;
    case TIME:
        w->now += n < 128 ? n * 0.001 : n < 250 ? (n - 127) * 0.1 : 40;
        break;
    default:
        if (n % 2) {
            crd_dcp_slave_stop(w->slave, w->now);
        } else {
            crd_dcp_slave_fault(w->slave, CRD_DCP_E_GENERIC, w->now);
        }
        break;
    }
}

// Nothing works but INF_state, which always says the same.
static void refuse_all(world* w)
{
    packet p;
    while (get(&w->to_slave, &p)) {
        crdi_dcp_pdu q;
        uint8_t out[8];
        if (crdi_dcp_decode(p.bytes, p.length, &q) != CRDI_DCP_GOOD || q.type >= CRDI_DCP_RSP_ACK) {
            continue;
        }
        const bool state = q.type == CRDI_DCP_INF_STATE;
        const crdi_dcp_pdu answer = {.type = state ? CRDI_DCP_RSP_STATE_ACK : CRDI_DCP_RSP_NACK,
                                     .seq = q.seq,
                                     .peer = q.peer,
                                     .state = w->state,
                                     .expected = (uint16_t)(q.seq + 1),
                                     .error = w->code};
        put(&w->to_master, &slave_at, &p.from, out, crdi_dcp_encode(&answer, out, sizeof out));
    }
}

static void net_wait(crd_dcp_net* base, double seconds)
{
    world* w = (world*)base;
    if (++w->waits > MOST_WAITS) { abort(); } // it waits for ever
    if (w->left >= 2) {
        const int kind = w->data[0] % KINDS;
        const uint8_t n = w->data[1];
        w->data += 2;
        w->left -= 2;
        if (kind == RAW || kind == ANSWER) {
            invent(w, kind, n);
        } else {
            happen(w, kind, n);
        }
    } else if (w->stubborn) {
        refuse_all(w);
    } else if (!w->silent) {
        serve(w, QUEUE);
    }
    if (w->to_master.count == 0 && seconds < 1e9) { w->now += seconds; }
}

static crd_status net_listen(crd_dcp_net* base, crd_dcp_address* at)
{
    (void)base;
    *at = master_at;
    return CRD_OK;
}

static bool net_local(const crd_dcp_net* base, int index, crd_dcp_address* out)
{
    (void)base;
    *out = master_at;
    return index == 0;
}

static void net_close(crd_dcp_net* base, const crd_dcp_address* at)
{
    (void)base;
    (void)at;
}

static double net_now(const crd_dcp_net* base)
{
    return ((const world*)base)->now;
}

static uint32_t net_source(const crd_dcp_net* base, const crd_dcp_address* to)
{
    (void)base;
    (void)to;
    return master_at.ip;
}

static const crdi_dcp_net_ops ops = {.listen = net_listen,
                                     .local = net_local,
                                     .send = net_send,
                                     .receive = net_receive,
                                     .wait = net_wait,
                                     .close = net_close,
                                     .now = net_now,
                                     .source_ip = net_source};

// ---- the session -------------------------------------------------------------------------------

static void notice(void* user, const crd_dcp_notice* n)
{
    (void)user;
    if (strlen(n->text) >= 512 || strchr(n->text, '\n') || n->slave != 0) { abort(); }
}

static crd_status plan(crd_dcp_master* m, const crd_dcp_slave_spec* spec)
{
    static const int in[] = {RIG_U, RIG_TEXT, RIG_PROFILE};
    static const int out[] = {RIG_SPEED, RIG_STATUS, RIG_TEMPS};
    static const int tuned[] = {RIG_KP, RIG_NAME};
    crd_status st = CRD_OK;
    CRD_TRY(crd_dcp_master_add(m, spec, NULL));
    CRD_TRY(crd_dcp_master_feed(m, 0, in, 3));
    CRD_TRY(crd_dcp_master_watch(m, 0, out, 3, 1));
    CRD_TRY(crd_dcp_master_tunable(m, 0, tuned, 2, NULL));
    CRD_TRY(crd_dcp_master_set(m, 0, RIG_NAME));
    CRD_TRY(crd_dcp_master_route(m, 0, RIG_SPEED, 0, RIG_TORQUE, 1, NULL));
fail:
    return st;
}

static void play(crd_dcp_master* m, world* w, crd_dcp_op_mode mode)
{
    crd_status st = CRD_OK;
    CRD_TRY(crd_dcp_master_configure(m));
    CRD_TRY(crd_dcp_master_initialize(m, -1));
    CRD_TRY(crd_dcp_master_run(m, 0, NULL));
    for (int i = 0; i < 5; i++) {
        CRD_TRY(crd_dcp_master_tune(m, 0, 0));
        if (mode == CRD_DCP_NRT) {
            CRD_TRY(crd_dcp_master_begin_step(m, 0, 1));
            CRD_TRY(crd_dcp_master_end_step(m, 0));
        } else {
            CRD_TRY(crd_dcp_master_send(m, 0));
            CRD_TRY(crd_dcp_master_wait(m, w->now + 0.3));
        }
    }
fail:
    return;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    if (size < 1) { return 0; }
    static world w; // large
    memset(&w, 0, sizeof w);
    crd_context* ctx = crd_context_create(NULL);
    crdi_dcp_net_init(&w.base, ctx, &ops);
    w.now = 1794710000;
    w.data = data + 1;
    w.left = size - 1;
    w.silent = data[0] & 1;
    if (data[0] & 128 && size > 2) {
        static const uint16_t codes[] = {0x1003, 0x1005, 0x200D, 0x2013, 0x1001, 0x2007, 0x200C, 0};
        w.stubborn = true;
        w.state = data[1] % (CRD_DCP_STATE_COUNT + 1);
        w.code = codes[data[2] % 8];
    }
    const crd_dcp_op_mode mode = data[0] & 2 ? CRD_DCP_SRT : CRD_DCP_NRT;
    // Rarely, as time passes by tens of seconds: of 1 ms most of an input were steps of the slave.
    static const crd_dcp_resolution rare = {
        .numerator = 1, .numerator_to = 1, .denominator = 20, .recommended = true};
    crd_dcp_description d = rig_description();
    d.resolutions = &rare;
    d.resolution_count = 1;
    d.can_log_on_notification = data[0] & 4;
    d.can_monitor_heartbeat = d.has_heartbeat = data[0] & 8;
    d.heartbeat_numerator = d.heartbeat_denominator = 1;
    const crd_dcp_plant plant = {.user = &w, .get = slave_gets};
    const crd_dcp_link link = {.user = &w, .send = slave_sends};
    crd_dcp_slave_options small = crd_dcp_slave_defaults();
    small.max_groups = small.max_group_size = 8;
    small.max_pdu = ROOM;
    if (crd_dcp_slave_create(ctx, &d, &plant, &link, &small, &w.slave) != CRD_OK) { abort(); }
    crd_dcp_master_options opt = crd_dcp_master_defaults();
    opt.notice = notice;
    opt.contact = 1;
    opt.retries = 3;
    opt.patience = 3;
    opt.lossless = data[0] & 16;
    opt.force = data[0] & 32;
    crd_dcp_master* m = NULL;
    if (crd_dcp_master_create(ctx, &w.base, &opt, &m) != CRD_OK) { abort(); }
    const crd_dcp_slave_spec spec = {.name = "motor",
                                     .description = &d,
                                     .control = slave_at,
                                     .mode = mode,
                                     .one_target = data[0] & 64};
    if (plan(m, &spec) != CRD_OK) { abort(); }
    play(m, &w, mode);
    const crd_status down = crd_dcp_master_stop(m);
    const crd_dcp_slave_status s = crd_dcp_master_status(m, 0);
    if (s.state >= CRD_DCP_STATE_COUNT || s.repeated < 0 || s.round_trip < 0) { abort(); }
    // With an honest slave at the end it comes down, if only it was said so.
    if (!w.silent && !w.stubborn && w.left == 0 && !w.invented && !w.again && down == CRD_OK &&
        crd_dcp_slave_state(w.slave) != CRD_DCP_ALIVE) {
        abort();
    }
    crd_dcp_master_destroy(m);
    crd_dcp_slave_destroy(w.slave);
    crd_context_destroy(ctx);
    return 0;
}
