// modules: dcp base
//
// A bench behind a slave, and the bytes are what happens to it, two each: requests, set values,
// texts, faults of the rig, time, strangers. Seen from the rig:
// - set values stay within its limits;
// - nothing is driven without valid data in RUNNING that are no older than the watchdog allows;
// - behind the last data it comes to rest, whatever was before.
#include "shared/dcp.h"
#include "shared/dcp_bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

static void must(bool holds)
{
    if (!holds) { abort(); }
}

// ---- a bench -----------------------------------------------------------------------------------

enum { SPEED, TORQUE, VOLTAGE, OIL, QUANTITIES };
static const double least[] = {0, -210, 0, 20}, most[] = {6500, 210, 400, 90};

static const double watchdog = 0.5, period = 0.01; // s, as the defaults are
static const double turning = 100;                 // 1/min, more than what cooling down takes

typedef struct world {
    double set[QUANTITIES], is[QUANTITIES];
    uint8_t ready;
    int error;
    bool remote;
    double time; // s of the rig
    double seen; // the largest speed that was measured since the last set value
    double fed;  // when the master's data last came in RUNNING, -INFINITY
    const crd_dcp_slave* slave;
} world;

// In NRT steps lead through COMPUTING, COMPUTED and SENDING_D.
static bool runs(const world* w)
{
    const crd_dcp_state s = w->slave ? crd_dcp_slave_state(w->slave) : CRD_DCP_ALIVE;
    return s >= CRD_DCP_RUNNING && s <= CRD_DCP_SENDING_D;
}

static bool driven(const world* w)
{
    return runs(w) && w->time <= w->fed + watchdog + 3 * period;
}

static void rig_set(void* user, int i, double value)
{
    world* w = user;
    must(isfinite(value) && value >= least[i] && value <= most[i]);
    if (!w->remote || !driven(w)) {
        // A stop begins where the machine was measured, and goes down from there.
        must(i != TORQUE || value == 0);
        must(i != SPEED || value <= fmax(fmax(w->set[SPEED], w->seen), turning) + 1e-9);
    }
    if (i == SPEED) { w->seen = 0; }
    w->set[i] = value;
}

static double rig_measure(void* user, int i)
{
    world* w = user;
    if (i == SPEED) { w->seen = isfinite(w->is[i]) ? fmax(w->seen, fabs(w->is[i])) : INFINITY; }
    return w->is[i];
}

static bool rig_ready(void* user, int item)
{
    return ((world*)user)->ready & 1u << item;
}

static int rig_error(void* user)
{
    return ((world*)user)->error;
}

static void rig_remote(void* user, bool given)
{
    world* w = user;
    must(w->remote != given);
    w->remote = given;
}

static void rig_step(void* user, double seconds)
{
    world* w = user;
    w->time += seconds;
    for (int i = 0; i < QUANTITIES; i++) {
        w->is[i] = w->set[i] + (w->is[i] - w->set[i]) * exp(-seconds / (i == OIL ? 5 : 0.05));
    }
}

static bool send_nowhere(void* user, const crd_dcp_address* to, const uint8_t* bytes, size_t length)
{
    (void)user;
    (void)to;
    (void)bytes;
    return length > 0;
}

static crd_dcp_bench_config config(void)
{
    static crd_dcp_quantity q[QUANTITIES];
    static const char* const names[] = {"speed", "torque", "voltage", "oil"};
    static const char* const inputs[] = {"a", "b", "c", "d"};
    static const char* const items[] = {"on", "warm", "remote"};
    for (int i = 0; i < QUANTITIES; i++) {
        q[i] = crd_dcp_quantity_defaults();
        q[i].name = names[i];
        q[i].input = inputs[i];
        q[i].role = (crd_dcp_role)(CRD_DCP_ROLE_SPEED + i);
    }
    q[OIL].cool_down = 60;
    q[SPEED].trip_max = 6600;
    crd_dcp_bench_config c = crd_dcp_bench_defaults();
    c.limits = "speed 0..6500 1/min rate 2000 1/min/s; torque -210..210 N.m; voltage 0..400 V rate "
               "500 V/s; oil 20..90 degC; avoid speed 0..50 1/min with torque";
    c.quantities = q;
    c.quantity_count = QUANTITIES;
    c.checklist = items;
    c.checklist_count = 3;
    c.induced = 0.05;
    return c;
}

static crd_dcp_description* describe(crd_context* ctx, const crd_dcp_bench_config* c)
{
    static const crd_dcp_resolution r = {.numerator = 1, .numerator_to = 1, .denominator = 100};
    static const crd_dcp_ports ports = {1, 65535};
    static crd_dcp_variable v[QUANTITIES];
    for (int i = 0; i < QUANTITIES; i++) {
        v[i] = crd_dcp_variable_defaults();
        v[i].name = c->quantities[i].input;
        v[i].vr = (uint64_t)i + 1;
        v[i].causality = CRD_INPUT;
        v[i].variability = CRD_CONTINUOUS;
        v[i].type = CRD_DCP_FLOAT64;
        v[i].start = "0";
    }
    crd_dcp_description* d = NULL;
    must(crd_dcp_description_create(ctx, &d) == CRD_OK);
    d->major = 1;
    d->srt = d->nrt = true;
    d->nrt_default_steps = d->nrt_min_steps = 1;
    d->nrt_max_steps = 100;
    d->resolutions = &r;
    d->resolution_count = 1;
    d->fixed_resolution = true;
    d->udp = (crd_dcp_endpoint){.offered = true, .port = 8080, .data = &ports, .data_count = 1};
    d->can_accept_config = d->can_reset = d->can_vary_steps = true;
    d->variables = v;
    d->variable_count = QUANTITIES;
    must(crd_dcp_bench_declare(d, c, 100) == CRD_OK);
    return d;
}

typedef struct hand {
    crd_dcp_slave* s;
    double now;
    uint16_t seq, data;
    uint32_t number;
    world* w;
} hand;

static const crd_dcp_address master = {0x7F000001, 8081, CRD_DCP_UDP};
static const crd_dcp_address strangers[] = {{0x7F000042, 8081, CRD_DCP_UDP},
                                            {0x7F000001, 9999, CRD_DCP_UDP}};
static const crd_dcp_address control = {0x7F000001, 8080, CRD_DCP_UDP};

static void tell_as(hand* h, const crd_dcp_address* from, crdi_dcp_pdu p)
{
    uint8_t bytes[2048];
    p.peer = 1;
    if (p.type < CRDI_DCP_DAT_INPUT_OUTPUT) { p.seq = h->seq++; }
    if (p.type <= CRDI_DCP_STC_RESET) { p.state = (uint8_t)crd_dcp_slave_state(h->s); }
    const size_t n = crdi_dcp_encode(&p, bytes, sizeof bytes);
    if (n > 0 && n <= sizeof bytes) {
        crd_dcp_slave_receive(h->s, from, &control, bytes, n, h->now);
    }
}

static void tell(hand* h, crdi_dcp_pdu p)
{
    tell_as(h, &master, p);
}

static void configure(hand* h, bool extension)
{
    const uint8_t on = extension;
    for (uint16_t i = 0; i < QUANTITIES; i++) {
        tell(h, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_INPUT,
                               .id = 1,
                               .pos = i,
                               .vr = 1u + i,
                               .data_type = CRD_DCP_FLOAT64});
    }
    for (uint16_t i = 0; i < 2; i++) {
        tell(h, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_INPUT,
                               .id = 1,
                               .pos = (uint16_t)(4 + i),
                               .vr = 105u + i,
                               .data_type = CRD_DCP_UINT32});
    }
    tell(h, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_SCOPE, .id = 1});
    tell(h, (crdi_dcp_pdu){
                .type = CRDI_DCP_CFG_SOURCE_NETWORK, .id = 1, .port = 8080, .address = 0x7F000001});
    tell(h, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_OUTPUT, .id = 2, .vr = 107});
    tell(h, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_STEPS, .id = 2, .steps = 1});
    tell(h, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_SCOPE, .id = 2});
    tell(h, (crdi_dcp_pdu){
                .type = CRDI_DCP_CFG_TARGET_NETWORK, .id = 2, .port = 8081, .address = 0x7F000001});
    tell(h, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_LOGGING, .level = 2, .mode = 2});
    tell(h, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_PARAMETER,
                           .vr = 100,
                           .data_type = CRD_DCP_UINT8,
                           .payload = &on,
                           .payload_length = 1});
}

// Limits of the peer, test case or initial temperatures: the text up to the next zero.
static size_t say_text(hand* h, const uint8_t* at, size_t left, uint8_t which)
{
    uint8_t payload[204];
    size_t n = 0;
    while (n < left && n < 200 && at[n] != 0) {
        n++;
    }
    payload[0] = (uint8_t)n;
    payload[1] = payload[2] = payload[3] = 0;
    memcpy(payload + 4, at, n);
    tell(h, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_PARAMETER,
                           .vr = 102u + which % 3,
                           .data_type = CRD_DCP_STRING,
                           .payload = payload,
                           .payload_length = n + 4});
    return n;
}

static void feed(hand* h, uint8_t what, const crd_dcp_address* from)
{
    static const double odd[] = {0, 3000, 100, NAN, INFINITY, -1e300, 6500, 30};
    double values[4];
    uint8_t payload[40];
    for (int i = 0; i < 4; i++) {
        values[i] = odd[(what >> i) & 7];
    }
    const bool mine = from == &master;
    const uint32_t numbers[2] = {h->number + 1, h->number + 1};
    memcpy(payload, values, 32);
    memcpy(payload + 32, numbers, 8);
    const crdi_dcp_pdu q = {.type = CRDI_DCP_DAT_INPUT_OUTPUT,
                            .seq = h->data,
                            .id = 1,
                            .payload = payload,
                            .payload_length = 40};
    if (mine) {
        crd_dcp_slave_advance(h->s, h->now); // what is due before it comes
        if (runs(h->w)) { h->w->fed = h->w->time; }
        h->data++;
        h->number++;
    }
    tell_as(h, from, q);
}

static void wait(hand* h, double seconds)
{
    h->now += seconds;
    for (int i = 0; i < 200 && crd_dcp_slave_next(h->s) <= h->now; i++) {
        crd_dcp_slave_advance(h->s, h->now);
    }
}

// Nobody says anything any more, and nothing is broken: at once no torque, then no speed.
static void rest(hand* h, bool to_the_end)
{
    world* w = h->w;
    for (int i = 0; i < QUANTITIES; i++) {
        if (!isfinite(w->is[i])) { w->is[i] = w->set[i]; }
    }
    wait(h, watchdog + 3 * period);
    must(w->set[TORQUE] == 0);
    for (int i = 0; i < 400 && to_the_end; i++) { // 80 s: heartbeat, ramps, cooling down
        wait(h, 0.2);
    }
    must(!to_the_end || (w->set[SPEED] == 0 && fabs(w->is[SPEED]) < 1));
}

static void as_events(crd_context* ctx, const uint8_t* data, size_t size)
{
    world w = {.is = {0, 0, 0, 25}, .set = {0, 0, 0, 25}, .ready = 7, .fed = -INFINITY};
    const crd_dcp_rig rig = {.user = &w,
                             .set = rig_set,
                             .measure = rig_measure,
                             .ready = rig_ready,
                             .error = rig_error,
                             .remote = rig_remote,
                             .step = rig_step};
    const crd_dcp_link link = {.send = send_nowhere};
    const crd_dcp_bench_config c = config();
    crd_dcp_description* d = describe(ctx, &c);
    crd_dcp_bench* b = NULL;
    hand h = {.now = 1e6, .w = &w};
    must(crd_dcp_bench_create(ctx, d, &c, &rig, &b) == CRD_OK);
    const crd_dcp_plant plant = crd_dcp_bench_plant(b);
    crd_dcp_slave_options opt = crd_dcp_slave_defaults();
    opt.max_groups = 4;
    opt.max_group_size = 16;
    opt.max_pdu = 2048;
    must(crd_dcp_slave_create(ctx, d, &plant, &link, &opt, &h.s) == CRD_OK);
    crd_dcp_bench_attach(b, h.s);
    w.slave = h.s;
    for (size_t i = 0; i + 1 < size && i < 300; i += 2) {
        const uint8_t what = data[i + 1];
        switch (data[i] % 10) {
        case 0:
            tell(&h, (crdi_dcp_pdu){.type = CRDI_DCP_STC_REGISTER,
                                    .op_mode = what & 1 ? CRD_DCP_SRT : CRD_DCP_NRT,
                                    .major = 1});
            break;
        case 1:
            configure(&h, what & 1);
            break;
        case 2:
            tell(&h, (crdi_dcp_pdu){.type = (uint8_t)(2 + what % 9), .steps = 1});
            break;
        case 3:
            feed(&h, what, what & 128 ? &strangers[what >> 6 & 1] : &master);
            break;
        case 4:
            wait(&h, what * 0.005);
            break;
        case 5:
            w.ready = what & 7;
            break;
        case 6:
            w.error = what & 1;
            break;
        case 7:
            w.is[what % QUANTITIES] = what & 128 ? NAN : what * 50.0;
            break;
        case 8:
            i += say_text(&h, data + i + 2, size - i - 2, what);
            break;
        default:
            crd_dcp_bench_stop(b, h.now);
            break;
        }
    }
    rest(&h, size % 64 == 0);
    crd_dcp_slave_destroy(h.s);
    crd_dcp_bench_destroy(b);
    crd_dcp_description_destroy(d);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    crd_context* ctx = crd_context_create(NULL);
    if (ctx) { as_events(ctx, data, size); }
    crd_context_destroy(ctx);
    return 0;
}
