// A bench with an electric motor, emulated: its rig, its description, and a master's hand over it.
// Numbers after Rautenberg 2023: tables 2, 3, 5 and 6.
#pragma once
#include "rig.h"

#include "shared/dcp_bench.h"

// ---- the rig -----------------------------------------------------------------------------------

enum { MOTOR_SPEED, MOTOR_TORQUE, MOTOR_VOLTAGE, MOTOR_OIL, MOTOR_QUANTITIES };
enum { MOTOR_ITEMS = 4 };
static const double motor_induced = 0.05; // V min

typedef struct motor {
    double set[MOTOR_QUANTITIES], is[MOTOR_QUANTITIES];
    double heating, cooling, water; // K/s; 1/s; degC
    uint32_t ready;
    int error;
    bool remote;
    int given, withdrawn;
    double time, margin; // least of voltage - induced
    double last_speed_with_voltage;
    bool stuck;   // the speed does not follow
    bool charged; // the DC link does not lose its voltage
    int cuts;     // of the drive
    bool strict;  // set values are looked at
    double held;  // largest distance of the oil from its set value since it was near
    bool near;
} motor;

/// 25 to 80 degC in 9 min with full power; 80 to 50 in 7 min and 50 to 35 in 23 min against water
/// of 34.55 degC, whose distance it is that makes the last degrees slow.
static inline motor motor_make(void)
{
    return (motor){.is = {0, 0, 0, 25},
                   .set = {0, 0, 0, 25},
                   .heating = 55.0 / 540,
                   .cooling = 0.002567,
                   .water = 34.55,
                   .ready = (1u << MOTOR_ITEMS) - 1,
                   .margin = INFINITY};
}

static inline void motor_lag(double* x, double to, double seconds, double tau)
{
    *x = to + (*x - to) * exp(-seconds / tau);
}

static inline void motor_step(void* user, double seconds)
{
    motor* m = user;
    m->time += seconds;
    if (!m->stuck) { motor_lag(&m->is[MOTOR_SPEED], m->set[MOTOR_SPEED], seconds, 0.1); }
    motor_lag(&m->is[MOTOR_TORQUE], m->set[MOTOR_TORQUE], seconds, 0.02);
    if (!m->charged) { motor_lag(&m->is[MOTOR_VOLTAGE], m->set[MOTOR_VOLTAGE], seconds, 0.02); }
    double* oil = &m->is[MOTOR_OIL];
    const double to = m->set[MOTOR_OIL];
    if (*oil < to) {
        *oil = fmin(to, *oil + m->heating * seconds);
    } else if (*oil > to && *oil > m->water) {
        *oil = fmax(to, m->water + (*oil - m->water) * exp(-m->cooling * seconds));
    }
    if (fabs(*oil - to) < 0.5) { m->near = true; }
    if (m->near) { m->held = fmax(m->held, fabs(*oil - to)); }
    const double induced = motor_induced * fabs(m->is[MOTOR_SPEED]);
    if (fabs(m->is[MOTOR_SPEED]) > 1) {
        m->margin = fmin(m->margin, m->is[MOTOR_VOLTAGE] - induced);
    }
}

static inline void motor_set(void* user, int quantity, double value)
{
    motor* m = user;
    check(isfinite(value));
    if (m->strict) {
        static const double least[] = {0, -210, 0, 20}, most[] = {6500, 210, 400, 90};
        const double change = fabs(value - m->set[quantity]);
        check(value >= least[quantity] && value <= most[quantity]);
        // From where it was told to be, or where it was a period ago: the first set value of a run
        // starts there, and of the 1 1/min that counts as standstill it loses 0.1 in a period.
        const double jump = fmin(change, fabs(value - m->is[quantity]));
        if (quantity == MOTOR_SPEED) { check(jump <= 20.11 || (!m->remote && value < 1)); }
        if (!m->remote) { // nobody drives it any more
            check(quantity != MOTOR_TORQUE || value == 0);
            check(quantity != MOTOR_SPEED || value <= m->set[MOTOR_SPEED] + 1e-9);
        }
        if (quantity == MOTOR_TORQUE && m->is[MOTOR_SPEED] <= 49.9) { check(value == 0); }
    }
    if (quantity == MOTOR_OIL && value != m->set[MOTOR_OIL]) {
        m->near = false;
        m->held = 0;
    }
    m->set[quantity] = value;
}

static inline void motor_cut(void* user)
{
    ((motor*)user)->cuts++;
}

static inline double motor_measure(void* user, int quantity)
{
    return ((motor*)user)->is[quantity];
}

static inline bool motor_ready(void* user, int item)
{
    return ((motor*)user)->ready & 1u << item;
}

static inline int motor_error(void* user)
{
    return ((motor*)user)->error;
}

static inline void motor_remote(void* user, bool given)
{
    motor* m = user;
    check(given != m->remote);
    m->remote = given;
    if (given) {
        m->given++;
    } else {
        m->withdrawn++;
    }
}

static const char* const motor_checklist[MOTOR_ITEMS] = {
    "battery emulator on", "temperature control on", "data acquisition ready",
    "remote control selected"};

// ---- its description ---------------------------------------------------------------------------

enum { // indices of variables
    MOTOR_N_REF,
    MOTOR_M_REF,
    MOTOR_U_REF,
    MOTOR_OIL_REF,
    MOTOR_N,
    MOTOR_M,
    MOTOR_U,
    MOTOR_OIL_OUT,
    MOTOR_POWER,
    MOTOR_VARIABLES
};

static inline crd_dcp_outcome motor_get_variable(void* user, int variable, crd_dcp_slot* value)
{
    const motor* m = user;
    check_int(variable, MOTOR_POWER);
    *value->real = m->is[MOTOR_TORQUE] * m->is[MOTOR_SPEED] * M_PI / 30;
    return CRD_DCP_DONE;
}

static inline crd_dcp_rig motor_ops(motor* m)
{
    return (crd_dcp_rig){.user = m,
                         .set = motor_set,
                         .measure = motor_measure,
                         .ready = motor_ready,
                         .error = motor_error,
                         .remote = motor_remote,
                         .step = motor_step,
                         .get_variable = motor_get_variable,
                         .cut = motor_cut};
}

static const char motor_limits[] =
    "speed 0..6500 1/min rate 2000 1/min/s; torque -210..210 N.m rate 5000 N.m/s; "
    "voltage 0..400 V rate 500 V/s; oil 20..90 degC; avoid speed 0..50 1/min with torque";

static inline crd_dcp_bench_config motor_config(void)
{
    static crd_dcp_quantity q[MOTOR_QUANTITIES];
    for (int i = 0; i < MOTOR_QUANTITIES; i++) {
        q[i] = crd_dcp_quantity_defaults();
    }
    q[MOTOR_SPEED].name = "speed";
    q[MOTOR_SPEED].role = CRD_DCP_ROLE_SPEED;
    q[MOTOR_SPEED].input = "n_ref";
    q[MOTOR_SPEED].output = "n";
    q[MOTOR_SPEED].trip_max = 7000;
    q[MOTOR_TORQUE].name = "torque";
    q[MOTOR_TORQUE].role = CRD_DCP_ROLE_TORQUE;
    q[MOTOR_TORQUE].input = "m_ref";
    q[MOTOR_TORQUE].output = "m";
    q[MOTOR_VOLTAGE].name = "voltage";
    q[MOTOR_VOLTAGE].role = CRD_DCP_ROLE_VOLTAGE;
    q[MOTOR_VOLTAGE].input = "u_ref";
    q[MOTOR_VOLTAGE].output = "u";
    q[MOTOR_OIL].name = "oil";
    q[MOTOR_OIL].role = CRD_DCP_ROLE_TEMPERATURE;
    q[MOTOR_OIL].input = "oil_ref";
    q[MOTOR_OIL].output = "oil";
    q[MOTOR_OIL].trip_max = 95;
    crd_dcp_bench_config c = crd_dcp_bench_defaults();
    c.limits = motor_limits;
    c.quantities = q;
    c.quantity_count = MOTOR_QUANTITIES;
    c.checklist = motor_checklist;
    c.checklist_count = MOTOR_ITEMS;
    c.stop_rate = 1000;
    c.heartbeat = 1e5; // the hand sends none
    return c;
}

static inline crd_dcp_variable motor_variable(const char* name, uint64_t vr, uint8_t causality)
{
    crd_dcp_variable v = crd_dcp_variable_defaults();
    v.name = name;
    v.vr = vr;
    v.causality = causality;
    v.variability = CRD_CONTINUOUS;
    v.type = CRD_DCP_FLOAT64;
    v.start = "0";
    if (causality == CRD_OUTPUT) {
        v.fixed_steps = false;
        v.default_steps = v.min_steps = 1;
        v.max_steps = 10000;
    }
    return v;
}

/// With `extension`, as crd_dcp_bench_declare makes it; value references from 100 on.
static inline crd_dcp_description* motor_description(crd_context* ctx,
                                                     const crd_dcp_bench_config* c, bool extension)
{
    static const crd_dcp_resolution resolutions[] = {
        {.numerator = 1, .numerator_to = 1, .denominator = 1000},
        {.numerator = 1, .numerator_to = 1, .denominator = 100, .recommended = true}};
    static const crd_dcp_ports ports[] = {{2048, 65535}};
    static crd_dcp_variable v[MOTOR_VARIABLES];
    static const char* const names[MOTOR_VARIABLES] = {"n_ref", "m_ref", "u_ref", "oil_ref", "n",
                                                       "m",     "u",     "oil",   "power"};
    for (int i = 0; i < MOTOR_VARIABLES; i++) {
        v[i] = motor_variable(names[i], (uint64_t)i + 1, i < MOTOR_N ? CRD_INPUT : CRD_OUTPUT);
    }
    v[MOTOR_OIL_REF].start = "25";
    crd_dcp_description* d = NULL;
    check_ok(crd_dcp_description_create(ctx, &d));
    d->file = "motor.dcpx";
    d->name = "motor bench";
    memcpy(d->uuid, rig_uuid, sizeof d->uuid);
    d->major = 1;
    d->srt = d->nrt = true;
    d->nrt_default_steps = d->nrt_min_steps = 1;
    d->nrt_max_steps = 1000;
    d->nrt_fixed_steps = false;
    d->resolutions = resolutions;
    d->resolution_count = 2;
    d->udp = (crd_dcp_endpoint){.offered = true,
                                .max_pdu_size = 65507,
                                .host = "127.0.0.1",
                                .port = 8080,
                                .has_data = true,
                                .has_parameter = true,
                                .data_host = "",
                                .parameter_host = "",
                                .data = ports,
                                .parameter = ports,
                                .data_count = 1,
                                .parameter_count = 1};
    d->can_accept_config = d->can_reset = d->can_vary_steps = true;
    d->variables = v;
    d->variable_count = MOTOR_VARIABLES;
    if (extension) { check_ok(crd_dcp_bench_declare(d, c, 100)); }
    return d;
}

// ---- a bench in hand ---------------------------------------------------------------------------

enum { MOTOR_LOGS = 128 };

typedef struct motor_bench {
    rig r; // slave, what it sends, and who asks it
    motor m;
    crd_dcp_bench_config c;
    crd_dcp_description* d;
    crd_dcp_bench* b;
    char states[256]; // entered, as two digits each
    char logs[MOTOR_LOGS][200];
    int log_count;
    double out[16]; // newest data
    int out_count;  // PDUs
    uint16_t in;    // sequence id of data
    uint32_t number, echo;
    bool extension;
    int64_t allocations;                 // until it was created
    void (*each)(struct motor_bench* k); // after each event
} motor_bench;

/// Everything but the slave.
static inline motor_bench* motor_bench_make(const crd_dcp_bench_config* c, bool extension)
{
    motor_bench* k = calloc(1, sizeof *k);
    rig* r = &k->r;
    r->ctx = check_context(&r->allocator);
    r->now = 1794710000.25;
    k->m = motor_make();
    k->c = *c;
    k->d = motor_description(r->ctx, &k->c, extension);
    k->extension = extension;
    r->d = *k->d; // the hand looks at the uuid
    const crd_dcp_rig ops = motor_ops(&k->m);
    check_ok(crd_dcp_bench_create(r->ctx, k->d, &k->c, &ops, &k->b));
    return k;
}

static inline void motor_bench_link(motor_bench* k, const crd_dcp_link* link,
                                    const crd_dcp_slave_options* opt)
{
    const crd_dcp_plant plant = crd_dcp_bench_plant(k->b);
    check_ok(crd_dcp_slave_create(k->r.ctx, k->d, &plant, link, opt, &k->r.slave));
    crd_dcp_bench_attach(k->b, k->r.slave);
    k->allocations = k->r.allocator.allocations;
}

static inline motor_bench* motor_bench_create(const crd_dcp_bench_config* c, bool extension)
{
    motor_bench* k = motor_bench_make(c, extension);
    const crd_dcp_link link = rig_link(&k->r);
    motor_bench_link(k, &link, NULL);
    crd_dcp_slave_advance(k->r.slave, k->r.now);
    return k;
}

static inline void motor_bench_destroy(motor_bench* k)
{
    check_int(k->r.allocator.allocations, k->allocations);
    crd_dcp_slave_destroy(k->r.slave);
    crd_dcp_bench_destroy(k->b);
    crd_dcp_description_destroy(k->d);
    crd_context_destroy(k->r.ctx);
    check_int(k->r.allocator.live, 0);
    free(k);
}

static inline double motor_f64(const uint8_t* at)
{
    double x;
    memcpy(&x, at, sizeof x);
    return x;
}

static inline uint32_t motor_u32(const uint8_t* at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

// The text of an entry, its arguments put in.
static inline void motor_keep_log(motor_bench* k, const crdi_dcp_pdu* p)
{
    check(k->log_count < MOTOR_LOGS);
    char* out = k->logs[k->log_count++];
    const uint8_t* at = p->payload;
    for (int i = 0; i < k->d->template_count; i++) {
        const crd_dcp_log_template* t = &k->d->templates[i];
        if (t->id != p->template_id) { continue; }
        size_t n = 0;
        for (const char* c = t->message; *c; c++) {
            if (strncmp(c, "%string", 7) == 0) {
                const uint32_t length = motor_u32(at);
                n += (size_t)snprintf(out + n, 200 - n, "%.*s", (int)length, (const char*)at + 4);
                at += 4 + length;
                c += 6;
            } else if (strncmp(c, "%float64", 8) == 0) {
                n += (size_t)snprintf(out + n, 200 - n, "%g", motor_f64(at));
                at += 8;
                c += 7;
            } else if (n < 199) {
                out[n++] = *c;
                out[n] = 0;
            }
            check(n < 200);
        }
        check_int(at - p->payload, p->payload_length);
    }
}

static inline void motor_take_data(motor_bench* k, const crdi_dcp_pdu* p)
{
    const uint8_t* at = p->payload;
    for (int i = 0; i < 5; i++) {
        k->out[i] = motor_f64(at);
        at += 8;
    }
    k->out_count++;
    if (!k->extension) { return; }
    const int sizes[7] = {4, 4, 1, 1, 4, 4, 4};
    for (int i = 0; i < 7; i++) {
        k->out[5 + i] = sizes[i] == 1 ? at[0] : motor_u32(at);
        at += sizes[i];
    }
    k->echo = (uint32_t)k->out[5];
    check_int(at - p->payload, p->payload_length);
}

/// Takes in what it has sent.
static inline void motor_drain(motor_bench* k)
{
    for (int i = 0; i < k->r.out_count; i++) {
        crdi_dcp_pdu p;
        check_int(crdi_dcp_decode(k->r.out[i].bytes, k->r.out[i].length, &p), CRDI_DCP_GOOD);
        if (p.type == CRDI_DCP_NTF_STATE_CHANGED) {
            check(strlen(k->states) + 3 < sizeof k->states);
            snprintf(k->states + strlen(k->states), 3, "%02x", p.state);
        } else if (p.type == CRDI_DCP_NTF_LOG) {
            motor_keep_log(k, &p);
        } else if (p.type == CRDI_DCP_DAT_INPUT_OUTPUT) {
            motor_take_data(k, &p);
        } else {
            fail_msg("unexpected %s", crdi_dcp_type_name(p.type));
        }
    }
    k->r.out_count = 0;
}

/// Time goes on, from event to event.
static inline void motor_go(motor_bench* k, double until)
{
    rig* r = &k->r;
    do {
        r->now = fmin(until, fmax(r->now, crd_dcp_slave_next(r->slave)));
        crd_dcp_slave_advance(r->slave, r->now);
        motor_drain(k);
        if (k->each) { k->each(k); }
    } while (r->now < until || crd_dcp_slave_next(r->slave) <= until);
}

static inline void motor_for(motor_bench* k, double seconds)
{
    motor_go(k, k->r.now + seconds);
}

/// Until the slave is in this state; how long that took.
static inline double motor_until(motor_bench* k, crd_dcp_state state, double most)
{
    const double begin = k->r.now, end = begin + most;
    while (crd_dcp_slave_state(k->r.slave) != state) {
        if (k->r.now >= end) {
            fail_msg("still %s after %g s, expected %s",
                     crd_dcp_state_name(crd_dcp_slave_state(k->r.slave)), most,
                     crd_dcp_state_name(state));
        }
        motor_go(k, fmin(end, k->r.now + 0.01));
    }
    return k->r.now - begin;
}

/// A request that is acknowledged; what comes with it is taken in.
#define motor_do(k, ...)                                                                           \
    do {                                                                                           \
        motor_go(k, (k)->r.now); /* what is due has gone out */                                    \
        rig_do(&(k)->r, __VA_ARGS__);                                                              \
        motor_drain(k);                                                                            \
    } while (0)

static inline void motor_register(motor_bench* k, crd_dcp_op_mode mode)
{
    rig_register(&k->r, mode);
    k->r.listening_count = 0;
    k->in = 0;
    k->number = k->echo = 0;
}

static inline void motor_text(motor_bench* k, const char* name, const char* text)
{
    uint8_t payload[RIG_BYTES];
    uint32_t length = (uint32_t)strlen(text);
    int i = 0;
    while (strcmp(k->d->variables[i].name, name) != 0) {
        i++;
    }
    const crd_dcp_slot s = {.type = CRD_DCP_STRING,
                            .count = 1,
                            .byte_count = &length,
                            .max_size = length,
                            .bytes = (uint8_t*)(uintptr_t)text};
    const size_t n = crdi_dcp_put(&s, 1, payload, sizeof payload);
    check(n <= 400);
    motor_do(k, .type = CRDI_DCP_CFG_PARAMETER, .vr = k->d->variables[i].vr,
             .data_type = CRD_DCP_STRING, .payload = payload, .payload_length = n);
}

/// Groups 10 (out, every `steps`) and 20 (in), logs on notification; switches the extension on.
static inline void motor_configure(motor_bench* k, uint32_t steps, bool on)
{
    rig* r = &k->r;
    motor_do(k, .type = CRDI_DCP_CFG_TIME_RES, .numerator = 1, .denominator = 100);
    for (int i = MOTOR_N; i < MOTOR_VARIABLES; i++) {
        motor_do(k, .type = CRDI_DCP_CFG_OUTPUT, .id = 10, .pos = (uint16_t)(i - MOTOR_N),
                 .vr = k->d->variables[i].vr);
    }
    for (int i = 0; i < MOTOR_N; i++) {
        motor_do(k, .type = CRDI_DCP_CFG_INPUT, .id = 20, .pos = (uint16_t)i,
                 .vr = k->d->variables[i].vr, .data_type = CRD_DCP_FLOAT64);
    }
    if (k->extension) {
        for (uint16_t i = 0; i < 7; i++) {
            motor_do(k, .type = CRDI_DCP_CFG_OUTPUT, .id = 10, .pos = (uint16_t)(5 + i),
                     .vr = 107u + i);
        }
        for (uint16_t i = 0; i < 2; i++) {
            motor_do(k, .type = CRDI_DCP_CFG_INPUT, .id = 20, .pos = (uint16_t)(4 + i),
                     .vr = 105u + i, .data_type = CRD_DCP_UINT32);
        }
        for (uint8_t level = 0; level < 5; level++) {
            motor_do(k, .type = CRDI_DCP_CFG_LOGGING, .level = level, .mode = 2);
        }
        const uint8_t value = on;
        motor_do(k, .type = CRDI_DCP_CFG_PARAMETER, .vr = 100, .data_type = CRD_DCP_UINT8,
                 .payload = &value, .payload_length = 1);
    }
    motor_do(k, .type = CRDI_DCP_CFG_STEPS, .id = 10, .steps = steps);
    motor_do(k, .type = CRDI_DCP_CFG_SCOPE, .id = 10);
    motor_do(k, .type = CRDI_DCP_CFG_SCOPE, .id = 20);
    rig_network(r, CRDI_DCP_CFG_TARGET_NETWORK, 10, 8081);
    rig_network(r, CRDI_DCP_CFG_SOURCE_NETWORK, 20, 9001);
}

/// Set values, with the next sequence number.
static inline void motor_feed(motor_bench* k, double n, double m, double u, double oil)
{
    const double values[4] = {n, m, u, oil};
    uint8_t payload[40];
    memcpy(payload, values, 32);
    k->number++;
    const uint32_t numbers[2] = {k->number, k->echo};
    memcpy(payload + 32, numbers, 8);
    rig_tell(&k->r, &(crdi_dcp_pdu){.type = CRDI_DCP_DAT_INPUT_OUTPUT,
                                    .seq = k->in++,
                                    .id = 20,
                                    .payload = payload,
                                    .payload_length = k->extension ? 40 : 32});
    motor_drain(k);
}

/// Feeds every 10 ms.
static inline void motor_drive(motor_bench* k, double seconds, double n, double m, double u,
                               double oil)
{
    const int steps = (int)(seconds / 0.01 + 0.5);
    const double begin = k->r.now;
    for (int i = 1; i <= steps; i++) {
        motor_go(k, begin + i * 0.01);
        motor_feed(k, n, m, u, oil);
    }
}

/// From CONFIGURATION, configured, to RUNNING.
static inline void motor_start(motor_bench* k)
{
    motor_do(k, .type = CRDI_DCP_STC_PREPARE);
    motor_until(k, CRD_DCP_PREPARED, 1);
    motor_do(k, .type = CRDI_DCP_STC_CONFIGURE);
    motor_until(k, CRD_DCP_CONFIGURED, 4000);
    motor_do(k, .type = CRDI_DCP_STC_RUN);
    motor_until(k, CRD_DCP_SYNCHRONIZED, 1);
    motor_do(k, .type = CRDI_DCP_STC_RUN);
    check_int(crd_dcp_slave_state(k->r.slave), CRD_DCP_RUNNING);
}

static inline void motor_run(motor_bench* k, bool on)
{
    motor_register(k, CRD_DCP_SRT);
    motor_configure(k, 1, on);
    motor_start(k);
}

static inline const char* motor_find_log(const motor_bench* k, const char* begin)
{
    for (int i = k->log_count - 1; i >= 0; i--) {
        if (strncmp(k->logs[i], begin, strlen(begin)) == 0) { return k->logs[i]; }
    }
    return "";
}

static inline int motor_error_code(motor_bench* k)
{
    const int code = rig_ask(&k->r, (crdi_dcp_pdu){.type = CRDI_DCP_INF_ERROR}).error;
    motor_drain(k);
    return code;
}
