// The safety of emulated benches on a virtual clock: masters that die in any state, links that are
// cut, set values and PDUs of all kinds. Short in the suite; the argument "long" makes all of it.
#include "../dcp/rig.h"

#include "shared/dcp_safety.h"
#include "testbench/bench.h"

static bool whole; // all of it

// ---- a bench and a master's hand over it -------------------------------------------------------

// What a campaign wants of a bench.
typedef struct sheet {
    crdi_testbench_kind kind;
    int inputs;
    const char* input[4]; // speed first
    double set[4];        // in the run
    const char *torque, *warm_up;
    double conditioning; // speed, 1/min; 0: nothing turns
} sheet;

static const sheet em = {CRDI_TESTBENCH_EM,
                         4,
                         {"speed_ref", "torque_ref", "voltage_ref", "oil_ref"},
                         {3000, 40, 350, 30},
                         "torque_calc",
                         "oil 60 degC; tolerance 1 K",
                         100};
static const sheet ice = {CRDI_TESTBENCH_ICE,
                          4,
                          {"speed_ref", "pedal_ref", "coolant_ref", "oil_ref"},
                          {3000, 30, 60, 60},
                          "torque_calc",
                          "coolant 60 degC; oil 60 degC; tolerance 2 K",
                          800};
static const sheet back_to_back = {CRDI_TESTBENCH_BACK_TO_BACK,
                                   3,
                                   {"speed_ref", "torque_ref", "voltage_ref"},
                                   {3000, 0.2, 36},
                                   "torque",
                                   "",
                                   0};

static const sheet traction = {CRDI_TESTBENCH_TRACTION,
                               4,
                               {"speed_ref", "torque_ref", "voltage_ref", "coolant_ref"},
                               {3000, 40, 380, 30},
                               "torque_calc",
                               "coolant 60 degC; tolerance 1 K",
                               100};

typedef struct hand {
    rig r;
    crdi_testbench* b;
    const crdi_plant_type* type;
    const sheet* sheet;
    uint16_t data;       // sequence id
    uint32_t number;     // bench.sequence
    double set[4];       // speed, torque, voltage, oil
    double beat, fed;    // when the last INF_state, the last data were sent
    bool alive, carries; // the master lives; its data arrive
    double last;         // the last sign of it that arrived
    double start;        // of the run, as it was said
    // what was seen
    double most_speed, least_speed, most_torque, least_torque, steepest;
    double before_set;
    crd_dcp_bench_phase phase;
    int64_t wrong_ways, moves; // changes of phase that the table does not have; all of them
} hand;

static double true_of(const hand* h, const char* name)
{
    const int i = crdi_testbench_find(h->sheet->kind, name);
    check(i >= 0);
    return crdi_testbench_true(h->b, i);
}

static crd_dcp_bench_phase phase_of(const hand* h)
{
    return crd_dcp_bench_get_state(crdi_testbench_bench(h->b)).phase;
}

static crd_dcp_state state_of(const hand* h)
{
    return crd_dcp_slave_state(h->r.slave);
}

static bool leads(crd_dcp_bench_phase from, crd_dcp_bench_phase to, int most)
{
    if (from == to) { return true; }
    for (int e = 0; e < CRDI_SAFETY_EVENTS && most > 0; e++) {
        const crd_dcp_bench_phase next = crdi_safety_step_of(from, (crdi_safety_event)e).next;
        if (next != from && leads(next, to, most - 1)) { return true; }
    }
    return false;
}

// Between two looks: a request, or a period of 1 ms, in which a state may pass at once.
static void look_at_phase(hand* h)
{
    const crd_dcp_bench_phase now = phase_of(h);
    if (now == h->phase) { return; }
    h->moves++;
    h->wrong_ways +=
        !leads(h->phase, now, 3) || (now == CRD_DCP_BENCH_RUN && h->phase != CRD_DCP_BENCH_ARMED &&
                                     h->phase != CRD_DCP_BENCH_CONDITIONED);
    h->phase = now;
}

static void observe(void* user, double time)
{
    hand* h = user;
    (void)time;
    const double speed = h->b ? true_of(h, "speed") : 0,
                 torque = h->b ? true_of(h, h->sheet->torque) : 0;
    h->most_speed = fmax(h->most_speed, speed);
    h->least_speed = fmin(h->least_speed, speed);
    h->most_torque = fmax(h->most_torque, torque);
    h->least_torque = fmin(h->least_torque, torque);
    const double set = h->b ? true_of(h, "speed_ref") : 0;
    h->steepest = fmax(h->steepest, fabs(set - h->before_set) / 1e-3);
    h->before_set = set;
}

static void forget_extremes(hand* h)
{
    h->most_speed = h->most_torque = -INFINITY;
    h->least_speed = h->least_torque = INFINITY;
    h->steepest = 0;
}

static hand* make(const sheet* like, double heartbeat)
{
    hand* h = calloc(1, sizeof *h);
    rig* r = &h->r;
    h->sheet = like;
    r->ctx = check_context(&r->allocator);
    r->now = 1794710000.25;
    crdi_testbench_options o = crdi_testbench_defaults(like->kind);
    o.speed_up = 100;
    o.heartbeat = heartbeat;
    check_ok(crdi_testbench_create(r->ctx, &o, &h->b));
    h->type = crdi_plant_type_of(like->kind);
    const crd_dcp_link link = rig_link(r);
    check_ok(crdi_testbench_start(h->b, &link, NULL));
    r->slave = crdi_testbench_slave(h->b);
    r->d = *crdi_testbench_description(h->b);
    crdi_testbench_observe(h->b, observe, h);
    h->alive = h->carries = true;
    h->set[3] = 30;
    forget_extremes(h);
    crd_dcp_slave_advance(r->slave, r->now);
    return h;
}

static void destroy(hand* h)
{
    check_int(h->wrong_ways, 0);
    crdi_testbench_destroy(h->b);
    crd_context_destroy(h->r.ctx);
    free(h);
}

static void forget(hand* h)
{
    h->r.out_count = 0;
    h->r.listening_count = h->r.connected_count = 0;
    look_at_phase(h);
}

static void say(hand* h, const crdi_dcp_pdu* p)
{
    rig_tell(&h->r, p);
    forget(h);
}

static void ask(hand* h, crdi_dcp_pdu p)
{
    p.seq = h->r.seq++;
    p.peer = 1;
    if (p.type <= CRDI_DCP_STC_RESET) { p.state = (uint8_t)state_of(h); }
    say(h, &p);
    if (h->carries) { h->last = h->r.now; }
}
#define ASK(h, ...) ask(h, (crdi_dcp_pdu){__VA_ARGS__})

static void feed(hand* h)
{
    uint8_t payload[36];
    const size_t values = 8 * (size_t)h->sheet->inputs;
    h->number++;
    memcpy(payload, h->set, values);
    memcpy(payload + values, &h->number, 4);
    if (h->carries) {
        say(h, &(crdi_dcp_pdu){.type = CRDI_DCP_DAT_INPUT_OUTPUT,
                               .seq = h->data,
                               .id = 20,
                               .payload = payload,
                               .payload_length = values + 4});
        h->last = h->r.now;
    }
    h->data++;
}

// A master that lives sends a heartbeat each second and data every 10 ms.
static void go(hand* h, double until)
{
    rig* r = &h->r;
    while (r->now < until) {
        const double next = fmin(h->alive ? fmin(h->beat + 1, h->fed + 0.01) : INFINITY,
                                 fmax(r->now, crd_dcp_slave_next(r->slave)));
        r->now = fmin(until, fmax(r->now, next));
        crd_dcp_slave_advance(r->slave, r->now);
        forget(h);
        if (h->alive && r->now >= h->beat + 1) {
            h->beat = r->now;
            if (h->carries && state_of(h) != CRD_DCP_ALIVE) { ASK(h, .type = CRDI_DCP_INF_STATE); }
        }
        if (h->alive && r->now >= h->fed + 0.01) {
            h->fed = r->now;
            if (state_of(h) >= CRD_DCP_CONFIGURED && state_of(h) <= CRD_DCP_RUNNING) { feed(h); }
        }
    }
}

static bool wait_for(hand* h, crd_dcp_state state, double most)
{
    const double end = h->r.now + most;
    while (state_of(h) != state && h->r.now < end) {
        go(h, h->r.now + 0.005);
    }
    return state_of(h) == state;
}

static void put_text(hand* h, const char* name, const char* text)
{
    uint8_t payload[400];
    uint32_t length = (uint32_t)strlen(text);
    const int i = crdi_dcp_find_name(&h->r.d, name);
    check(i >= 0);
    const crd_dcp_slot s = {.type = CRD_DCP_STRING,
                            .count = 1,
                            .byte_count = &length,
                            .max_size = length,
                            .bytes = (uint8_t*)(uintptr_t)text};
    const size_t n = crdi_dcp_put(&s, 1, payload, sizeof payload);
    ASK(h, .type = CRDI_DCP_CFG_PARAMETER, .vr = h->r.d.variables[i].vr,
        .data_type = CRD_DCP_STRING, .payload = payload, .payload_length = n);
}

static void configure(hand* h, const char* planned, const char* initial)
{
    const uint16_t count = (uint16_t)h->sheet->inputs;
    ASK(h, .type = CRDI_DCP_CFG_TIME_RES, .numerator = 1, .denominator = 100);
    for (uint16_t i = 0; i < count; i++) {
        const int k = crdi_dcp_find_name(&h->r.d, h->sheet->input[i]);
        check(k >= 0);
        ASK(h, .type = CRDI_DCP_CFG_INPUT, .id = 20, .pos = i, .vr = h->r.d.variables[k].vr,
            .data_type = CRD_DCP_FLOAT64);
    }
    const int q = crdi_dcp_find_name(&h->r.d, "bench.sequence");
    ASK(h, .type = CRDI_DCP_CFG_INPUT, .id = 20, .pos = count, .vr = h->r.d.variables[q].vr,
        .data_type = CRD_DCP_UINT32);
    ASK(h, .type = CRDI_DCP_CFG_SCOPE, .id = 20);
    ASK(h, .type = CRDI_DCP_CFG_SOURCE_NETWORK, .id = 20, .port = 9001, .address = 0x7F000001);
    put_text(h, "bench.initial", initial);
    if (planned) { put_text(h, "bench.case", planned); }
    const uint8_t on = 1;
    const int e = crdi_dcp_find_name(&h->r.d, "bench.extension");
    ASK(h, .type = CRDI_DCP_CFG_PARAMETER, .vr = h->r.d.variables[e].vr, .data_type = CRD_DCP_UINT8,
        .payload = &on, .payload_length = 1);
}

static void register_it(hand* h)
{
    crdi_dcp_pdu p = {.type = CRDI_DCP_STC_REGISTER, .op_mode = CRD_DCP_SRT, .major = 1};
    memcpy(p.uuid, h->r.d.uuid, sizeof p.uuid);
    ask(h, p);
    check_int(state_of(h), CRD_DCP_CONFIGURATION);
    h->data = 0;
    h->number = 0;
}

// ---- masters that die --------------------------------------------------------------------------

// On the way to RUNNING, with set values that would turn it fast, until the slave is in `state`.
static void reach(hand* h, crd_dcp_state state)
{
    memcpy(h->set, h->sheet->set, sizeof h->set);
    register_it(h);
    configure(h, NULL, h->sheet->warm_up);
    if (state == CRD_DCP_CONFIGURATION) { return; }
    if (state == CRD_DCP_PREPARING) { crdi_testbench_switch(h->b, 0, false); }
    ASK(h, .type = CRDI_DCP_STC_PREPARE);
    if (state == CRD_DCP_PREPARING) { return; }
    check(wait_for(h, CRD_DCP_PREPARED, 1));
    if (state == CRD_DCP_PREPARED) { return; }
    ASK(h, .type = CRDI_DCP_STC_CONFIGURE);
    if (state == CRD_DCP_CONFIGURING) { return; }
    check(wait_for(h, CRD_DCP_CONFIGURED, 60));
    if (state == CRD_DCP_CONFIGURED) { return; }
    ASK(h, .type = CRDI_DCP_STC_INITIALIZE);
    check(wait_for(h, CRD_DCP_INITIALIZED, 1));
    if (state == CRD_DCP_INITIALIZED) { return; }
    ASK(h, .type = CRDI_DCP_STC_SEND_OUTPUTS);
    check(wait_for(h, CRD_DCP_CONFIGURED, 1));
    h->start = ceil(h->r.now + 2);
    ASK(h, .type = CRDI_DCP_STC_RUN, .time = (int64_t)h->start);
    if (state == CRD_DCP_SYNCHRONIZING) { return; }
    check(wait_for(h, CRD_DCP_SYNCHRONIZED, 4));
    if (state == CRD_DCP_SYNCHRONIZED) { return; }
    ASK(h, .type = CRDI_DCP_STC_RUN);
    check_int(state_of(h), CRD_DCP_RUNNING);
    if (state == CRD_DCP_RUNNING) { return; }
    go(h, h->r.now + 2);
    if (state == CRD_DCP_STOPPING || state == CRD_DCP_STOPPED) {
        ASK(h, .type = CRDI_DCP_STC_STOP);
    } else {
        crd_dcp_slave_fault(h->r.slave, CRD_DCP_E_GENERIC, h->r.now);
        forget(h);
    }
    if (state == CRD_DCP_STOPPED || state == CRD_DCP_ERRORRESOLVED) {
        check(wait_for(h, state, 20));
    }
}

typedef enum death { KILLED, LINK_CUT, STOPPED_AND_GOES_ON, DATA_ONLY_LOST, DEATHS } death;

// When the deadman of where it is acts at the latest: 3 s of the heart, 0.5 s behind the last data,
// or behind the start if none have come.
static double deadman_of(const hand* h)
{
    switch (crdi_safety_deadman_of(phase_of(h))) {
    case CRDI_SAFETY_HEART:
        return h->last + 3;
    case CRDI_SAFETY_FIRST:
        return fmin(h->last + 3, h->start + 0.5);
    case CRDI_SAFETY_NEXT:
        return h->last + 0.5;
    default:
        return h->last;
    }
}

// `state` for a while, then it dies; at rest within the deadman's time and that of the stop on the
// sheet of the bench, and no set value acts behind the deadman's time.
static void die_in(const sheet* like, crd_dcp_state state, double after, death how)
{
    hand* h = make(like, 3);
    reach(h, state);
    const double begin = h->r.now;
    go(h, begin + after);
    const double deadman = deadman_of(h);
    if (state <= CRD_DCP_SYNCHRONIZED) { // set values of 3000 1/min have come, and move nothing
        check(h->most_speed < h->sheet->conditioning + h->type->speed_overshoot);
        check(h->most_torque < 1 && h->most_torque < h->type->torque_overshoot);
    }
    if (state == CRD_DCP_RUNNING && after > 1) { check(h->most_speed > 1000); } // there they do
    const bool was_moving = crdi_safety_mover_of(phase_of(h)) != CRDI_SAFETY_NOBODY;
    h->alive = how == LINK_CUT || how == DATA_ONLY_LOST;
    h->carries = false;
    if (how == STOPPED_AND_GOES_ON) { h->carries = true; }
    go(h, fmax(h->r.now, deadman + 0.02));
    if (how == STOPPED_AND_GOES_ON) { h->alive = true; } // with set values as if nothing had been
    // From here on nobody drives it: it only becomes slower.
    const double speed = fabs(true_of(h, "speed"));
    if (was_moving) { check(crdi_safety_mover_of(phase_of(h)) != CRDI_SAFETY_MASTER); }
    forget_extremes(h);
    const double until = deadman + h->type->stop_time + 0.02;
    while (h->r.now < until) {
        go(h, h->r.now + 0.05);
        check(crdi_safety_mover_of(phase_of(h)) != CRDI_SAFETY_MASTER);
    }
    check(h->most_speed <= speed + 5);
    if (was_moving) {
        check(fabs(true_of(h, "speed")) < 1 && fabs(true_of(h, h->sheet->torque)) < 1);
        check(phase_of(h) == CRD_DCP_BENCH_SAFE);
        check(state_of(h) == CRD_DCP_STOPPED || state_of(h) == CRD_DCP_ERRORRESOLVED ||
              state_of(h) == CRD_DCP_ERRORHANDLING);
    }
    destroy(h);
}

static void wherever_a_master_dies_the_machine_comes_to_rest_in_time(void** state)
{
    static const crd_dcp_state states[] = {
        CRD_DCP_CONFIGURATION, CRD_DCP_PREPARING,   CRD_DCP_PREPARED,      CRD_DCP_CONFIGURING,
        CRD_DCP_CONFIGURED,    CRD_DCP_INITIALIZED, CRD_DCP_SYNCHRONIZING, CRD_DCP_SYNCHRONIZED,
        CRD_DCP_RUNNING,       CRD_DCP_STOPPING,    CRD_DCP_STOPPED,       CRD_DCP_ERRORHANDLING,
        CRD_DCP_ERRORRESOLVED};
    static const double moments[] = {0.003, 0.35, 0.049, 1.2, 2.6};
    static const sheet* const benches[] = {&em, &ice, &back_to_back, &traction};
    enum { BENCHES = sizeof benches / sizeof *benches };
    const int count = whole ? 5 : CHECK_SHARE > 1 ? 1 : 2;
    int died = 0;
    for (size_t i = 0; i < BENCHES * (sizeof states / sizeof *states); i++) {
        const crd_dcp_state in = states[i / BENCHES];
        for (int k = 0; k < count; k++) {
            for (int how = 0; how < DEATHS; how++, died++) {
                die_in(benches[i % BENCHES], in,
                       in == CRD_DCP_SYNCHRONIZED ? fmin(moments[k], 0.4) : moments[k], (death)how);
            }
        }
    }
    check_int(died, BENCHES * 13 * count * DEATHS);
}

// ---- the envelope ------------------------------------------------------------------------------

static double uniform(uint64_t* s, double from, double to)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return from + (to - from) * (double)(*s >> 11) / 9007199254740992.0;
}

// A session with a case of its own and set values of all kinds every 10 ms.
static int drive_anything(hand* h, uint64_t* seed, int values)
{
    char planned[200];
    const double top = floor(uniform(seed, 600, 6500)), rate = floor(uniform(seed, 500, 8000));
    const double low = -floor(uniform(seed, 1, 250)), high = floor(uniform(seed, 1, 250));
    snprintf(planned, sizeof planned,
             "speed 0..%g 1/min rate %g 1/min/s; torque %g..%g N.m; avoid speed 0..50 1/min with "
             "torque",
             top, rate, low, high);
    configure(h, planned, "");
    ASK(h, .type = CRDI_DCP_STC_PREPARE);
    check(wait_for(h, CRD_DCP_PREPARED, 3));
    ASK(h, .type = CRDI_DCP_STC_CONFIGURE);
    check(wait_for(h, CRD_DCP_CONFIGURED, 1));
    ASK(h, .type = CRDI_DCP_STC_RUN);
    check(wait_for(h, CRD_DCP_SYNCHRONIZED, 1));
    ASK(h, .type = CRDI_DCP_STC_RUN);
    forget_extremes(h);
    int n = 0;
    for (; n < values && state_of(h) == CRD_DCP_RUNNING; n++) {
        const double odd[] = {0, -1e9, 1e9, NAN, INFINITY, top, 6500, -6500};
        if (uniform(seed, 0, 1) < 0.1) { h->set[0] = uniform(seed, -1000, 9000); }
        if (uniform(seed, 0, 1) < 0.1) { h->set[1] = uniform(seed, -400, 400); }
        h->set[2] = uniform(seed, 330, 420);
        if (uniform(seed, 0, 1) < 0.02) { h->set[0] = odd[(int)uniform(seed, 0, 8)]; }
        if (uniform(seed, 0, 1) < 0.02) { h->set[1] = odd[(int)uniform(seed, 0, 8)]; }
        go(h, h->r.now + 0.01);
        if (n == 1) { h->steepest = 0; } // the first starts from the measured speed, to 0.1 1/min
        if (!isfinite(h->set[0]) || !isfinite(h->set[1])) { h->set[0] = h->set[1] = 0; }
    }
    const double speed = h->type->speed_overshoot, torque = h->type->torque_overshoot;
    check(h->most_speed <= top + speed && h->least_speed >= -speed);
    check(h->most_torque <= high + torque && h->least_torque >= low - torque);
    // A millisecond of a clock that counts from 1970 is right to 0.24 us.
    check(h->steepest <= fmax(rate, h->type->stop_rate) * (1 + 5e-4));
    h->set[0] = h->set[1] = 0;
    if (state_of(h) == CRD_DCP_RUNNING) { ASK(h, .type = CRDI_DCP_STC_STOP); }
    check(wait_for(
        h, state_of(h) >= CRD_DCP_ERRORHANDLING ? CRD_DCP_ERRORRESOLVED : CRD_DCP_STOPPED, 600));
    ASK(h, .type = CRDI_DCP_STC_RESET); // it comes back without a registration
    check_int(state_of(h), CRD_DCP_CONFIGURATION);
    go(h, h->r.now + 0.2);
    return n;
}

static void no_set_value_leads_out_of_the_envelope(void** state)
{
    uint64_t seed = 42;
    const int wanted = whole ? 1000000 : 20000 / CHECK_SHARE;
    hand* h = make(&em, 3);
    register_it(h);
    int n = 0, sessions = 0;
    while (n < wanted) {
        n += drive_anything(h, &seed, 1000);
        sessions++;
    }
    check(sessions <= wanted / 500); // faults end few of them
    destroy(h);
}

// ---- anything ----------------------------------------------------------------------------------

static uint8_t way_on(crd_dcp_state state)
{
    return state == CRD_DCP_CONFIGURATION                                 ? CRDI_DCP_STC_PREPARE
           : state == CRD_DCP_PREPARED                                    ? CRDI_DCP_STC_CONFIGURE
           : state == CRD_DCP_CONFIGURED || state == CRD_DCP_SYNCHRONIZED ? CRDI_DCP_STC_RUN
           : state == CRD_DCP_STOPPED || state == CRD_DCP_ERRORRESOLVED   ? CRDI_DCP_STC_RESET
                                                                          : 0;
}

static void act(hand* h, uint64_t* seed)
{
    const int what = (int)uniform(seed, 0, 24);
    uint8_t bytes[64];
    switch (what) {
    case 0:
        ASK(h, .type = (uint8_t)uniform(seed, 1, 11));
        break;
    case 1:
        crdi_testbench_switch(h->b, (int)uniform(seed, 0, 8), uniform(seed, 0, 1) < 0.8);
        break;
    case 2:
        crd_dcp_slave_fault(h->r.slave, CRD_DCP_E_GENERIC, h->r.now);
        forget(h);
        break;
    case 3:
        crd_dcp_bench_stop(crdi_testbench_bench(h->b), h->r.now);
        forget(h);
        break;
    case 4: // nobody sends for a while
        h->alive = !h->alive;
        break;
    case 5:
        for (size_t i = 0; i < sizeof bytes; i++) {
            bytes[i] = (uint8_t)uniform(seed, 0, 256);
        }
        rig_receive(&h->r, bytes, (size_t)uniform(seed, 0, 64));
        forget(h);
        break;
    case 6: { // somebody else, with the right ids
        crd_dcp_address from = rig_master;
        from.port = (uint16_t)(from.port + 1);
        crdi_dcp_pdu p = {.type = uniform(seed, 0, 1) < 0.7 ? CRDI_DCP_DAT_INPUT_OUTPUT
                                                            : (uint8_t)uniform(seed, 2, 11),
                          .seq = (uint16_t)(h->data + 1),
                          .id = 20,
                          .payload = bytes,
                          .payload_length = 36};
        const double values[4] = {6000, 200, 400, 25};
        memset(bytes, 0x40, sizeof bytes);
        memcpy(bytes, values, sizeof values);
        uint8_t whole_pdu[64];
        const size_t n = crdi_dcp_encode(&p, whole_pdu, sizeof whole_pdu);
        crd_dcp_slave_receive(h->r.slave, &from, &rig_control, whole_pdu, n, h->r.now);
        forget(h);
        break;
    }
    case 7:
        h->set[0] = uniform(seed, -1e4, 1e4);
        h->set[1] = uniform(seed, -500, 500);
        break;
    default: {
        const uint8_t type = way_on(state_of(h));
        if (state_of(h) == CRD_DCP_ALIVE) {
            register_it(h);
        } else if (state_of(h) == CRD_DCP_CONFIGURATION && what % 2) {
            configure(h, NULL, what % 4 == 1 ? "oil 28 degC; tolerance 1 K" : "");
        } else if (type) {
            ask(h, (crdi_dcp_pdu){.type = type});
        }
        break;
    }
    }
    go(h, h->r.now + uniform(seed, 0, what == 4 ? 0.7 : 0.06));
}

// Sequences of PDUs and faults: every change of the phase is one of the table, the machine stays in
// the limits of the bench, and left alone it comes to rest.
static void whatever_comes_goes_by_the_table(void** state)
{
    uint64_t seed = 99;
    const int sequences = whole ? 100000 : 300;
    int64_t runs = 0;
    hand* h = make(&em, 3);
    for (int n = 0; n < sequences; n++) {
        for (int i = 0; i < 12; i++) {
            act(h, &seed);
            runs += phase_of(h) == CRD_DCP_BENCH_RUN;
        }
        if (n % 100 == 99) {
            h->alive = false;
            go(h, h->r.now + 3.1 + h->type->stop_time);
            check(fabs(true_of(h, "speed")) < 1);
            for (int i = 0; i < 8; i++) {
                crdi_testbench_switch(h->b, i, true);
            }
            go(h, h->r.now + 2);
            h->alive = true;
        }
    }
    check(runs > sequences / 10 && h->moves > sequences);
    check(h->most_speed <= 6500 + h->type->speed_overshoot);
    destroy(h);
}

int main(int argc, char** argv)
{
    whole = argc > 1 && strcmp(argv[1], "long") == 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wherever_a_master_dies_the_machine_comes_to_rest_in_time),
        cmocka_unit_test(no_set_value_leads_out_of_the_envelope),
        cmocka_unit_test(whatever_comes_goes_by_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
