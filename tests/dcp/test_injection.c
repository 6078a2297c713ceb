// Injection: PDUs of every type that others than the registered master send, from foreign addresses
// and ports, with right and wrong sequence ids, lengths and receivers, and old ones of the master
// sent again, in every state, to a slave, to a bench and (as answers, notifications and data) to a
// master. Nothing acts on them, and every one is counted. Who forges the master's very address is
// stopped by a key only.
#include "motor_bench.h"
#include "session.h"

#include "dcp/slave/slave.h"

static const uint32_t here = 0x7F000001;

// ---- what a slave knows ------------------------------------------------------------------------

static uint64_t mix(uint64_t h, const void* bytes, size_t n)
{
    const uint8_t* b = bytes;
    for (; b && n > 0; n -= n < 8 ? n : 8, b += 8) {
        uint64_t word = 0;
        memcpy(&word, b, n < 8 ? n : 8);
        h = (h ^ word) * UINT64_C(0x9E3779B97F4A7C15); // odd: no two words give the same
        h ^= h >> 29;
    }
    return h;
}

static uint64_t mix_list(uint64_t h, const crdi_dcp_list* l)
{
    return mix(h, l->entries, (size_t)l->end * sizeof *l->entries);
}

// All of it but what counts PDUs, answers and time: sessions, states, configuration and values.
static uint64_t knowledge(const crd_dcp_slave* s)
{
    crd_dcp_slave copy;
    memcpy(&copy, s, sizeof copy); // its padding, too
    copy.counts = (crd_dcp_slave_counts){0};
    copy.garbage = (crdi_dcp_rate){0};
    copy.now = 0;
    if (s->state == CRD_DCP_ALIVE) { copy.beat = copy.asked = 0; } // nobody's
    uint64_t h = mix(UINT64_C(0xCBF29CE484222325), &copy, sizeof copy);
    for (int i = 0; i < s->group_count; i++) {
        crdi_dcp_group g;
        memcpy(&g, &s->groups[i], sizeof g);
        g.arrived_seq.window = 0; // tells repeated from overtaken
        h = mix(h, &g, sizeof g);
        h = mix_list(mix_list(h, &g.in), &g.out);
        h = mix(h, g.targets, (size_t)g.target_count * sizeof *g.targets);
    }
    for (int i = 0; i < s->d->variable_count; i++) {
        const crd_dcp_slot* v = &s->values[i].slot;
        h = mix(h, v->real, v->count * sizeof *v->real);
        h = mix(h, v->integer, v->count * sizeof *v->integer);
        if (v->byte_count) { h = mix(h, v->bytes, *v->byte_count); }
    }
    h = mix(h, s->marks, (size_t)s->d->variable_count * sizeof *s->marks);
    return mix(h, s->dirty, (size_t)s->dirty_count * sizeof *s->dirty);
}

// Every PDU is in exactly one of them.
static int64_t counted(const crd_dcp_slave* s)
{
    const crd_dcp_slave_counts c = crd_dcp_slave_get_counts(s);
    return c.requests + c.dropped + c.data_in + c.data_old + c.data_dropped + c.data_foreign;
}

// ---- what is injected --------------------------------------------------------------------------

typedef struct forgery {
    crdi_dcp_pdu q;
    crd_dcp_address from, at;
    int longer;
} forgery;

static const uint8_t types[] = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09,
                                0x0A, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27,
                                0x28, 0x29, 0x2A, 0x2B, 0x80, 0x81, 0x82, 0xB0, 0xB1,
                                0xB2, 0xB3, 0xB4, 0xE0, 0xE1, 0xF0, 0xF1, 0x00, 0x44};
enum { TYPES = sizeof types };

// What would be right here, but for `ahead` of its sequence id.
static crdi_dcp_pdu likely(const crd_dcp_slave* s, uint8_t type, int ahead)
{
    static const double values[5] = {40, 40, 40, 40, 0};
    crdi_dcp_pdu q = {.type = type,
                      .seq = (uint16_t)(s->last + 1 + ahead),
                      .peer = 1,
                      .state = (uint8_t)s->state,
                      .op_mode = CRD_DCP_SRT,
                      .major = 1,
                      .steps = 1,
                      .numerator = 1,
                      .denominator = 100,
                      .id = 10,
                      .vr = 2,
                      .data_type = CRD_DCP_FLOAT64,
                      .port = 9001,
                      .address = here,
                      .level = 3,
                      .mode = 1,
                      .max = 9};
    memcpy(q.uuid, rig_uuid, sizeof q.uuid);
    if (type == CRDI_DCP_CFG_OUTPUT) { q.vr = 11; }
    if (type == CRDI_DCP_CFG_TUNABLE_PARAMETER || type == CRDI_DCP_CFG_PARAMETER) { q.vr = 22; }
    if (type == CRDI_DCP_CFG_PARAMETER || type >= CRDI_DCP_DAT_INPUT_OUTPUT) {
        q.payload = (const uint8_t*)values;
        q.payload_length = 8;
    }
    for (int i = 0; i < s->group_count && type >= CRDI_DCP_DAT_INPUT_OUTPUT; i++) {
        const crdi_dcp_group* g = &s->groups[i];
        if (g->parameters != (type == CRDI_DCP_DAT_PARAMETER) || g->in.count == 0) { continue; }
        q.id = g->id;
        q.seq = (uint16_t)(g->arrived_seq.last + 1 + ahead);
        q.payload_length = 0;
        for (int k = 0; k < g->in.end; k++) {
            q.payload_length += crdi_dcp_size_of(g->in.entries[k].type);
        }
        check(q.payload_length <= sizeof values);
    }
    return q;
}

static void inject(rig* r, const forgery* f)
{
    uint8_t bytes[128] = {f->q.type, 1, 0, 1};
    size_t n = crdi_dcp_encode(&f->q, bytes, sizeof bytes - 1);
    if (n == 0) { n = 6; } // a type that does not exist
    n += (size_t)f->longer;
    uint8_t* copy = malloc(n);
    memcpy(copy, bytes, n);
    crd_dcp_slave_receive(r->slave, &f->from, &f->at, copy, n, r->now);
    free(copy);
}

// Whether somebody who is not the master may be answered: who asks for the state is told it, and in
// ALIVE, where there is no master, requests are answered.
static bool may_answer(const rig_packet* p, const forgery* f, crd_dcp_state state)
{
    const bool back = crd_dcp_address_equal(&p->to, &f->from) && p->bytes[0] >= CRDI_DCP_RSP_ACK &&
                      p->bytes[0] <= CRDI_DCP_RSP_LOG_ACK;
    return back && (state == CRD_DCP_ALIVE || p->bytes[0] == CRDI_DCP_RSP_STATE_ACK);
}

static void say(const forgery* f, const crd_dcp_slave* s, const char* what)
{
    char text[400], from[32];
    (void)crdi_dcp_print(&f->q, text, sizeof text);
    (void)crd_dcp_address_print(&f->from, from, sizeof from);
    fail_msg("%s in %s, %d bytes longer, from %s: %s", text, crd_dcp_state_name((int)s->state),
             f->longer, from, what);
}

// One PDU; the plant is `size` bytes at `plant`, which callbacks change, and `before` is all that
// was known before.
static void attack(rig* r, const forgery* f, uint64_t before, const void* plant, size_t size)
{
    const crd_dcp_state state = r->slave->state;
    const int64_t count = counted(r->slave);
    r->out_count = 0;
    inject(r, f);
    if (mix(knowledge(r->slave), plant, size) != before) { say(f, r->slave, "something acts"); }
    if (counted(r->slave) != count + 1) { say(f, r->slave, "it is not counted once"); }
    for (int i = 0; i < r->out_count; i++) {
        if (!may_answer(&r->out[i], f, state)) { say(f, r->slave, "it is answered"); }
    }
    r->out_count = 0;
}

static int storm(rig* r, const void* plant, size_t size)
{
    static const crd_dcp_address from[] = {
        {0x7F000042, 8081, CRD_DCP_UDP}, {0x7F000042, 9999, CRD_DCP_UDP},
        {0x7F000001, 9999, CRD_DCP_UDP}, {0x7F000001, 8080, CRD_DCP_UDP},
        {0x7F000042, 8081, CRD_DCP_TCP}, {0x7F000001, 9999, CRD_DCP_TCP}};
    static const int ahead[] = {0, 1, -1, -8, 1000, INT16_MAX};
    static const uint8_t receivers[] = {1, 0, 2};
    int n = 0;
    const uint64_t before = mix(knowledge(r->slave), plant, size);
    for (int t = 0; t < TYPES; t++) {
        for (size_t w = 0; w < sizeof from / sizeof *from; w++) {
            for (int k = 0; k < 6 * 3 * 3; k++) {
                forgery f = {.q = likely(r->slave, types[t], ahead[k % 6]),
                             .from = from[w],
                             .at = {here, types[t] >= 0xF0 ? 9001 : 8080, from[w].transport},
                             .longer = k / 6 % 3 - 1};
                f.q.peer = receivers[k / 18 % 3];
                const bool welcome = r->slave->state == CRD_DCP_ALIVE &&
                                     types[t] == CRDI_DCP_STC_REGISTER && f.longer == 0 &&
                                     f.q.peer != 0;
                if (welcome) { continue; } // whoever comes first
                attack(r, &f, before, plant, size);
                n++;
            }
        }
    }
    return n;
}

// The same from the master's own address: everything but the next number is an old one.
static void replay(rig* r, const void* plant, size_t size)
{
    static const int ahead[] = {-1, -2, -8, -1000, INT16_MAX};
    if (r->slave->state == CRD_DCP_ALIVE) { return; }
    inject(r, &(forgery){.q = likely(r->slave, CRDI_DCP_INF_STATE, -2),
                         .from = rig_master,
                         .at = rig_control}); // the master has been heard now
    for (int t = 0; t < TYPES; t++) {
        for (int k = 0; k < 5; k++) {
            const forgery f = {.q = likely(r->slave, types[t], ahead[k] - (ahead[k] < 0)),
                               .from = rig_master,
                               .at = rig_control};
            const bool data = f.q.type >= CRDI_DCP_DAT_INPUT_OUTPUT;
            if (data && ahead[k] > 0) { continue; } // may be the next one behind many lost
            const uint64_t before = knowledge(r->slave), plant_before = mix(0, plant, size);
            const int64_t count = counted(r->slave);
            r->out_count = 0;
            inject(r, &f);
            if (knowledge(r->slave) != before) { say(&f, r->slave, "the slave acts on it"); }
            check(mix(0, plant, size) == plant_before);
            check_int(counted(r->slave), count + 1);
            for (int i = 0; i < r->out_count; i++) {
                check_int(r->out[i].bytes[0], CRDI_DCP_RSP_NACK);
                check_int(r->out[i].bytes[6] | r->out[i].bytes[7] << 8, 0x2013);
            }
            r->out_count = 0;
        }
    }
}

// ---- a slave -----------------------------------------------------------------------------------

static void step_on(rig* r, uint8_t type)
{
    rig_do(r, .type = type, .steps = 1);
    crd_dcp_slave_advance(r->slave, r->now);
    r->out_count = 0;
}

// Into a state; transient ones are held there by a plant that takes its time. false: not in this
// mode, or never seen from outside.
static bool put_into(rig* r, crd_dcp_state state, crd_dcp_op_mode mode)
{
    static const uint8_t way[] = {CRDI_DCP_STC_PREPARE, CRDI_DCP_STC_CONFIGURE,
                                  CRDI_DCP_STC_INITIALIZE};
    const bool nrt = mode == CRD_DCP_NRT;
    if (state == CRD_DCP_SENDING_I || state == CRD_DCP_SENDING_D ||
        (!nrt && (state == CRD_DCP_COMPUTING || state == CRD_DCP_COMPUTED))) {
        return false;
    }
    r->enters[state] = CRD_DCP_LATER;
    r->steps = state == CRD_DCP_COMPUTING ? CRD_DCP_LATER : CRD_DCP_DONE;
    if (state == CRD_DCP_ALIVE) { return true; }
    rig_register(r, mode);
    rig_configure(r);
    for (int i = 0; i < 3 && r->slave->state < state && r->slave->state < CRD_DCP_CONFIGURED &&
                    state != CRD_DCP_CONFIGURATION;
         i++) {
        step_on(r, way[i]);
    }
    if (state == CRD_DCP_INITIALIZING || state == CRD_DCP_INITIALIZED) { step_on(r, way[2]); }
    if (state >= CRD_DCP_CONFIGURED) { // the master's first data
        rig_inputs(r, 7, 1, 2);
        rig_tune(r, 3, 1);
    }
    while (state >= CRD_DCP_SYNCHRONIZING && r->slave->state != state &&
           r->slave->state < CRD_DCP_RUNNING) {
        step_on(r, CRDI_DCP_STC_RUN);
    }
    if (state == CRD_DCP_COMPUTING || state == CRD_DCP_COMPUTED) {
        step_on(r, CRDI_DCP_STC_DO_STEP);
    }
    if (state == CRD_DCP_STOPPING || state == CRD_DCP_STOPPED) { step_on(r, CRDI_DCP_STC_STOP); }
    if (state >= CRD_DCP_ERRORHANDLING) {
        crd_dcp_slave_fault(r->slave, CRD_DCP_E_GENERIC, r->now);
    }
    r->out_count = 0;
    check_int(r->slave->state, state);
    return true;
}

// The master is as welcome as before.
static void go_on(rig* r)
{
    const crd_dcp_state state = r->slave->state;
    const bool data = state >= CRD_DCP_CONFIGURED && state <= CRD_DCP_SENDING_D;
    if (state == CRD_DCP_ALIVE) { return; }
    const crdi_dcp_pdu a = rig_ask(r, (crdi_dcp_pdu){.type = CRDI_DCP_INF_STATE});
    check_int(a.type, CRDI_DCP_RSP_STATE_ACK);
    check_int(a.state, state);
    const int64_t in = crd_dcp_slave_get_counts(r->slave).data_in;
    rig_inputs(r, 8, 3, 4);
    rig_tune(r, 4, 1);
    check_int(crd_dcp_slave_get_counts(r->slave).data_in - in, data ? 2 : 0);
}

static void a_slave_acts_on_nobody_but_its_master_in_any_state(void** test)
{
    (void)test;
    int n = 0, scenes = 0;
    for (int mode = CRD_DCP_SRT; mode <= CRD_DCP_NRT; mode++) {
        for (int state = 0; state < CRD_DCP_STATE_COUNT; state++) {
            rig* r = rig_create(NULL, NULL);
            // What a plant has seen and done: all counters and values behind the way out.
            const char* plant = (const char*)&r->u;
            const size_t size = sizeof *r - offsetof(rig, u);
            if (put_into(r, (crd_dcp_state)state, (crd_dcp_op_mode)mode)) {
                n += storm(r, plant, size);
                replay(r, plant, size);
                go_on(r);
                scenes++;
            }
            rig_destroy(r);
        }
    }
    check_int(scenes, 15 + 17);
    check(n > 250000);
}

// ---- a bench -----------------------------------------------------------------------------------

static int storm_bench(motor_bench* k)
{
    motor_go(k, k->r.now); // what is due at this time is done
    return storm(&k->r, &k->m, sizeof k->m);
}

static void a_bench_acts_on_nobody_but_its_master_from_remote_on_to_remote_off(void** test)
{
    (void)test;
    const crd_dcp_bench_config c = motor_config();
    motor_bench* k = motor_bench_create(&c, true);
    rig* r = &k->r;
    int n = storm_bench(k);
    motor_register(k, CRD_DCP_SRT);
    n += storm_bench(k);
    motor_configure(k, 1, true);
    motor_do(k, .type = CRDI_DCP_STC_PREPARE);
    n += storm_bench(k);
    motor_until(k, CRD_DCP_PREPARED, 1);
    motor_do(k, .type = CRDI_DCP_STC_CONFIGURE);
    n += storm_bench(k);
    motor_until(k, CRD_DCP_CONFIGURED, 4000);
    n += storm_bench(k);
    motor_do(k, .type = CRDI_DCP_STC_RUN);
    n += storm_bench(k);
    motor_until(k, CRD_DCP_SYNCHRONIZED, 1);
    motor_do(k, .type = CRDI_DCP_STC_RUN);
    n += storm_bench(k);
    for (int i = 0; i < 20; i++) { // under way, and while the speed changes
        motor_drive(k, 0.2, 3000, 40, 300, 40);
        n += i % 5 ? 0 : storm_bench(k);
    }
    check_near(k->m.is[MOTOR_SPEED], 3000, 1);
    check_near(k->m.is[MOTOR_TORQUE], 40, 1);
    motor_go(k, k->r.now);
    replay(r, &k->m, sizeof k->m);
    motor_drive(k, 0.2, 3000, 40, 300, 40); // and the master's data count as before
    check_int(r->slave->state, CRD_DCP_RUNNING);
    motor_do(k, .type = CRDI_DCP_STC_STOP);
    n += storm_bench(k);
    motor_until(k, CRD_DCP_STOPPED, 4000);
    (void)rig_ask(r, (crdi_dcp_pdu){.type = CRDI_DCP_INF_STATE}); // who is silent can be followed
    n += storm_bench(k);
    check_near(k->m.is[MOTOR_SPEED], 0, 1);
    check(n > 90000);
    motor_bench_destroy(k);
}

// ---- a master ----------------------------------------------------------------------------------

enum { ATTACKER = 0x0A000063 };

typedef struct liar {
    session s;
    crd_dcp_net* nets[2]; // on another host, on the slave's host at another port
    int64_t sent;
} liar;

static const int fed[] = {RIG_U, RIG_TORQUE}, watched[] = {RIG_SPEED, RIG_TICKS};

// Answers, notifications and data in the slave's name, with every number that may be waited for.
static void lie(liar* l, uint16_t port)
{
    static const uint8_t told[] = {0xB0, 0xB1, 0xB2, 0xB3, 0xB4, 0xE0,
                                   0xE1, 0xF0, 0xF1, 0x09, 0x80};
    static const double values[2] = {1e6, 77};
    const crd_dcp_address to = {SESSION_MASTER, port, CRD_DCP_UDP};
    const crd_dcp_slave_status k = crd_dcp_master_status(l->s.m, 0);
    for (size_t t = 0; t < sizeof told; t++) {
        for (int i = 0; i < 60; i++) {
            uint8_t bytes[64];
            crdi_dcp_pdu q = {.type = told[t],
                              .seq = (uint16_t)(told[t] >= 0xF0 ? k.data_in + i - 10 : i),
                              .peer = 1,
                              .state = (uint8_t)(i % CRD_DCP_STATE_COUNT),
                              .error = CRD_DCP_E_GENERIC,
                              .expected = 4711,
                              .id = (uint16_t)(1 + i % 3)};
            if (told[t] >= 0xF0) {
                q.payload = (const uint8_t*)values;
                q.payload_length = 12;
            }
            const size_t n = crdi_dcp_encode(&q, bytes, sizeof bytes);
            l->sent += crdi_dcp_net_send(l->nets[i % 2], &to, bytes, n);
        }
    }
}

// The ports that the master has: that of its requests, and that of its data.
static void lie_everywhere(liar* l)
{
    uint16_t ports[8];
    int count = 0;
    const rig* r = l->s.r[0];
    if (r->slave->state != CRD_DCP_ALIVE) { ports[count++] = r->slave->master.port; }
    for (int i = 0; i < r->slave->group_count && count < 8; i++) {
        const crdi_dcp_group* g = &r->slave->groups[i];
        if (g->target_count > 0 && g->targets[0].port != ports[0]) {
            ports[count++] = g->targets[0].port;
        }
    }
    for (int i = 0; i < count; i++) {
        lie(l, ports[i]);
    }
}

static double run_with_lies(crd_dcp_op_mode mode, bool lies, int64_t* sent, int64_t* foreigners)
{
    static liar l;
    session* s = &l.s;
    l = (liar){0};
    session_open(s, NULL, 1, CRD_DCP_UDP, mode);
    session_master(s, NULL);
    check_ok(testnet_join(s->t, ATTACKER, &l.nets[0]));
    check_ok(testnet_join(s->t, SESSION_SLAVE, &l.nets[1]));
    for (int i = 0; i < 2; i++) {
        crd_dcp_address at = {i ? SESSION_SLAVE : ATTACKER, 7777, CRD_DCP_UDP};
        check_ok(crd_dcp_net_listen(l.nets[i], &at));
    }
    check_ok(crd_dcp_master_feed(s->m, 0, fed, 2));
    check_ok(crd_dcp_master_watch(s->m, 0, watched, 2, 1));
    session_do(s, crd_dcp_master_configure(s->m));
    if (lies) { lie_everywhere(&l); }
    session_do(s, crd_dcp_master_initialize(s->m, -1));
    session_do(s, crd_dcp_master_run(s->m, 0, NULL));
    session_real(s, 0, RIG_U)[0] = 12;
    for (int k = 0; k < 20 && mode == CRD_DCP_NRT; k++) {
        if (lies) { lie_everywhere(&l); }
        session_do(s, crd_dcp_master_begin_step(s->m, 0, 1));
        if (lies) { lie_everywhere(&l); }
        session_do(s, crd_dcp_master_end_step(s->m, 0));
        check_int(session_integer(s, 0, RIG_TICKS)[0], k + 1);
        check_near(session_real(s, 0, RIG_SPEED)[0], s->r[0]->speed, 0);
    }
    const double speed = session_real(s, 0, RIG_SPEED)[0];
    if (lies) { lie_everywhere(&l); }
    session_do(s, crd_dcp_master_stop(s->m));
    const crd_dcp_slave_status k = crd_dcp_master_status(s->m, 0);
    check_int(k.state, CRD_DCP_ALIVE);
    check_int(s->notices[CRD_DCP_NOTICE_REPAIR] + s->notices[CRD_DCP_NOTICE_ERROR] +
                  s->notices[CRD_DCP_NOTICE_LOSS],
              0);
    check_int(k.nacks + k.resynchronised + k.data_old + k.data_missed + k.data_bad, 0);
    *sent = l.sent;
    *foreigners = k.foreign;
    for (int i = 0; i < 2; i++) {
        crd_dcp_net_destroy(l.nets[i]);
    }
    session_close(s);
    return speed;
}

static void a_master_believes_nobody_but_its_slaves(void** test)
{
    (void)test;
    int64_t sent = 0, foreigners = 0;
    const double honest = run_with_lies(CRD_DCP_NRT, false, &sent, &foreigners);
    check_int(foreigners, 0);
    check_near(run_with_lies(CRD_DCP_NRT, true, &sent, &foreigners), honest, 0);
    check(sent > 10000);
    // those that came behind the last wait are not seen any more
    check(foreigners > sent - 2000 && foreigners <= sent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slave_acts_on_nobody_but_its_master_in_any_state),
        cmocka_unit_test(a_bench_acts_on_nobody_but_its_master_from_remote_on_to_remote_off),
        cmocka_unit_test(a_master_believes_nobody_but_its_slaves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
