// A master with its benches on a virtual network, among it the session of Rautenberg 2023,
// figure 7.
#include "motor_bench.h"
#include "testnet/testnet.h"

enum { MASTER = 0x0A000001, BENCH = 0x0A000002, BENCHES = 2 };
static const double begin = 1794710000.25;

typedef struct place {
    check_allocator allocator, network_allocator;
    crd_context *ctx, *network;
    testnet* t;
    crd_dcp_net *net, *nets[BENCHES];
    motor_bench* k[BENCHES];
    crdi_dcp_bench_peer* p[BENCHES];
    crd_dcp_master* m;
    int count;
    crdi_dcp_bench_plan plan;
    // the master's own side, and what is written down of it all
    FILE* csv;
    bool ready;         // conditioned
    double warm;        // when it is
    double operator_at; // somebody selects remote control at the bench
    double sampled;
    int last[2];     // states of master and slave
    char story[400]; // "0/0 1/1 ..."
    double at[64];   // when
    int changes;
    double gas, brake, v;
} place;

// ---- what is seen ------------------------------------------------------------------------------

static double now_of(const place* p)
{
    return testnet_now(p->t) - begin;
}

static void write_down(place* p)
{
    crd_dcp_state states[BENCHES];
    for (int i = 0; i < p->count; i++) {
        states[i] = crd_dcp_master_status(p->m, i).state;
    }
    p->ready = now_of(p) >= p->warm;
    const int master = crdi_dcp_master_state_of(states, p->count, p->ready);
    const int slave = (int)states[0];
    const bool changed = master != p->last[0] || slave != p->last[1];
    if (changed) {
        const size_t n = strlen(p->story);
        check(p->changes < 64 && n + 8 < sizeof p->story);
        snprintf(p->story + n, sizeof p->story - n, "%s%d/%d", n ? " " : "", master, slave);
        p->at[p->changes++] = now_of(p);
        p->last[0] = master;
        p->last[1] = slave;
    }
    if (p->csv && (changed || now_of(p) >= p->sampled + 0.5)) {
        p->sampled = now_of(p);
        const double left = p->warm - now_of(p);
        fprintf(p->csv, "%.3f,%d,%d,%.2f,%.2f,%.2f,%d,%.2f\n", now_of(p), master, slave, p->v * 3.6,
                p->gas, p->brake, left > 0, p->k[0]->m.is[MOTOR_OIL]);
    }
}

static void notice(void* user, const crd_dcp_notice* n)
{
    place* p = user;
    if (p->p[n->slave]) { crdi_dcp_bench_peer_notice(p->p[n->slave], n); }
    if (p->m && n->kind == CRD_DCP_NOTICE_STATE) { write_down(p); }
}

static bool asked(void* user) // while the master waits
{
    place* p = user;
    if (now_of(p) >= p->operator_at) { p->k[0]->m.ready = UINT32_MAX; }
    if (p->m) { write_down(p); }
    return false;
}

// ---- open and close ----------------------------------------------------------------------------

static void open_place(place* p, const crd_dcp_bench_config* c, int count)
{
    static const uint32_t ip = 0x0A000000, mask = 0xFF000000;
    const testnet_faults faults = {.delay = 0.001, .start = begin};
    *p = (place){.count = count, .last = {-1, -1}};
    p->ctx = check_context(&p->allocator);
    p->network = check_context(&p->network_allocator);
    check_ok(testnet_create(p->network, &faults, &p->t));
    check_ok(testnet_join(p->t, MASTER, &p->net));
    crd_dcp_slave_options opt = crd_dcp_slave_defaults();
    opt.allowed_ip = &ip;
    opt.allowed_mask = &mask;
    opt.allowed_count = 1;
    for (int i = 0; i < count; i++) {
        crd_dcp_address at = {(uint32_t)(BENCH + i), 8080, CRD_DCP_UDP};
        check_ok(testnet_join(p->t, at.ip, &p->nets[i]));
        check_ok(crd_dcp_net_listen(p->nets[i], &at));
        p->k[i] = motor_bench_make(c, true);
        const crd_dcp_link link = crd_dcp_net_link(p->nets[i]);
        motor_bench_link(p->k[i], &link, &opt);
        testnet_attach(p->nets[i], p->k[i]->r.slave);
    }
    p->plan = crdi_dcp_bench_plan_defaults();
    p->plan.name = "em";
}

static void close_place(place* p)
{
    for (int i = 0; i < p->count; i++) {
        testnet_attach(p->nets[i], NULL);
        motor_bench_destroy(p->k[i]);
        crd_dcp_net_destroy(p->nets[i]);
    }
    crd_dcp_net_destroy(p->net);
    testnet_destroy(p->t);
    crd_context_destroy(p->network);
    crd_context_destroy(p->ctx);
    check_int(p->allocator.live, 0);
    check_int(p->network_allocator.live, 0);
}

// ---- the master --------------------------------------------------------------------------------

static void add_bench(place* p, int i)
{
    static const int inputs[] = {MOTOR_N_REF, MOTOR_M_REF, MOTOR_U_REF, MOTOR_OIL_REF};
    static const int outputs[] = {MOTOR_N, MOTOR_M, MOTOR_U, MOTOR_OIL_OUT, MOTOR_POWER};
    const crd_dcp_slave_spec spec = {.name = i ? "em2" : "em",
                                     .description = p->k[i]->d,
                                     .control = {(uint32_t)(BENCH + i), 8080, CRD_DCP_UDP},
                                     .mode = CRD_DCP_SRT,
                                     .numerator = 1,
                                     .denominator = 100};
    int index = -1, in[6], out[12];
    check_ok(crdi_dcp_bench_peer_create(p->ctx, p->k[i]->d, &p->plan, &p->p[i]));
    check_ok(crd_dcp_master_add(p->m, &spec, &index));
    check_ok(crdi_dcp_bench_peer_bind(p->p[i], p->m, index));
    memcpy(in, inputs, sizeof inputs);
    memcpy(out, outputs, sizeof outputs);
    check_int(crdi_dcp_bench_peer_inputs(p->p[i], in + 4), 2);
    check_int(crdi_dcp_bench_peer_outputs(p->p[i], out + 5), 7);
    check_ok(crd_dcp_master_feed(p->m, index, in, 6));
    check_ok(crd_dcp_master_watch(p->m, index, out, 12, 1));
}

static void open_master(place* p)
{
    crd_dcp_master_options o = crd_dcp_master_defaults();
    o.patience = 3600;
    o.notice = notice;
    o.cancelled = asked;
    o.user = p;
    check_ok(crd_dcp_master_create(p->ctx, p->net, &o, &p->m));
    for (int i = 0; i < p->count; i++) {
        add_bench(p, i);
    }
}

static void close_master(place* p)
{
    for (int i = 0; i < p->count; i++) {
        crdi_dcp_bench_peer_destroy(p->p[i]);
        p->p[i] = NULL;
    }
    crd_dcp_master* m = p->m;
    p->m = NULL;
    crd_dcp_master_destroy(m);
}

#define go(p, expr)                                                                                \
    do {                                                                                           \
        const crd_status go_st = (expr);                                                           \
        if (go_st != CRD_OK) {                                                                     \
            fail_msg("%s:%d: %s: %s", __FILE__, __LINE__, #expr, crd_error_text((p)->ctx));        \
        }                                                                                          \
    } while (0)

static void set(place* p, int i, double n, double m, double u, double oil)
{
    const double values[] = {n, m, u, oil};
    for (int k = 0; k < 4; k++) {
        *crd_dcp_master_slot(p->m, i, k)->real = values[k];
    }
}

static double get(place* p, int i, int variable)
{
    return *crd_dcp_master_slot(p->m, i, variable)->real;
}

static void begin_run(place* p)
{
    go(p, crd_dcp_master_run(p->m, 0, NULL));
    for (int i = 0; i < p->count; i++) {
        crdi_dcp_bench_peer_begin(p->p[i], crd_dcp_master_now(p->m));
    }
}

// One interval of 10 ms: send, wait, look.
static crd_status interval(place* p)
{
    crd_status st = CRD_OK;
    const double now = crd_dcp_master_now(p->m);
    for (int i = 0; i < p->count; i++) {
        crdi_dcp_bench_peer_send(p->p[i], now);
        CRD_TRY(crd_dcp_master_send(p->m, i));
    }
    CRD_TRY(crd_dcp_master_wait(p->m, now + 0.01));
    for (int i = 0; i < p->count; i++) {
        CRD_TRY(crdi_dcp_bench_peer_check(p->p[i], crd_dcp_master_now(p->m)));
    }
    write_down(p);
fail:
    return st;
}

static void drive(place* p, double seconds)
{
    for (int i = 0; i < (int)(seconds / 0.01 + 0.5); i++) {
        go(p, interval(p));
    }
}

// ---- the session of figure 7 -------------------------------------------------------------------

// A vehicle with a driver who wants 50 km/h; the motor's speed follows the wheels.
static void drive_vehicle(place* p, double seconds, bool abort)
{
    const double mass = 1500, radius = 0.3, ratio = 8, dt = 0.01;
    for (int i = 0; i < (int)(seconds / dt + 0.5); i++) {
        p->gas = abort ? 0 : fmin(1, fmax(0, 0.5 * (50 / 3.6 - p->v)));
        p->brake = abort ? 0.3 : 0;
        const double measured = get(p, 0, MOTOR_M);
        const double force = measured * ratio / radius - (p->v > 0 ? p->brake * 12000 : 0) -
                             150 * (p->v > 0) - 0.4 * p->v * p->v;
        p->v = fmax(0, p->v + force / mass * dt);
        const double n = p->v / radius * ratio * 30 / M_PI;
        set(p, 0, n < 60 && p->gas > 0 ? 60 : n, 100 * p->gas, 400,
            34); // creeps where torque may be
        go(p, interval(p));
    }
}

static int find_pair(const place* p, const char* pair)
{
    int index = 0;
    for (const char* at = p->story; *at; at++) {
        if (strncmp(at, pair, strlen(pair)) == 0 && strchr(" ", at[strlen(pair)]) &&
            (at == p->story || at[-1] == ' ')) {
            return index;
        }
        index += *at == ' ';
    }
    fail_msg("no %s in %s", pair, p->story);
    return -1;
}

static double when(const place* p, const char* pair)
{
    return p->at[find_pair(p, pair)];
}

static void check_story(const place* p, double from)
{
    // REGISTER/ALIVE, CONFIGURE/CONFIGURATION; in APPLY the slave prepares, where somebody has to
    // select remote control, and conditions; in INITIALIZE nobody waits for anybody any more.
    check_text(p->story, "0/0 1/1 2/2 2/3 2/4 2/5 3/5 5/9 5/10 5/11 7/15 8/16 0/0");
    check_near(when(p, "1/1"), from, 0.1);
    check_near(when(p, "2/3"), p->operator_at, 0.12);                   // looked at every 0.1 s
    check_near(when(p, "2/5"), when(p, "2/4") + 8 / (55.0 / 540), 0.1); // 33 of 34 degC
    check_near(when(p, "3/5"), p->warm, 0.02); // the master's own coolant within 1 K
    check(when(p, "5/11") > p->warm && when(p, "5/11") < p->warm + 0.2);
}

static void session_with_conditioning_abort_and_second_run(void** state)
{
    crd_dcp_bench_config c = motor_config();
    c.induced = motor_induced;
    place p;
    open_place(&p, &c, 1);
    p.csv = fopen(TEST_BUILD_DIR "/dcp_bench_session.csv", "w");
    check(p.csv != NULL);
    fputs("time,master_state,slave_state,velocity_kmh,gas,brake,delta_t_status,oil_degC\n", p.csv);
    p.plan.limits = "torque -150..150 N.m; speed ..4000 1/min";
    p.plan.planned =
        "speed 0..4000 1/min rate 2000 1/min/s; torque -100..100 N.m; voltage 0..400 V; "
        "oil 30..60 degC; avoid speed 0..50 1/min with torque";
    p.plan.initial = "oil 34 degC; tolerance 1 K";
    for (int turn = 0; turn < 2; turn++) {
        const double from = now_of(&p);
        p.k[0]->m.ready = 7; // remote control is not selected
        p.operator_at = from + (turn ? 3 : 18);
        p.k[0]->m.is[MOTOR_OIL] = p.k[0]->m.set[MOTOR_OIL] = 25;
        p.warm = from + 110;
        p.story[0] = 0;
        p.changes = 0;
        p.last[0] = p.last[1] = -1;
        open_master(&p);
        write_down(&p);
        go(&p, crd_dcp_master_configure(p.m));
        check_contains(crdi_dcp_bench_peer_view(p.p[0]).missing, "all items are met");
        check_contains(crdi_dcp_bench_peer_view(p.p[0]).progress, "done, temperatures are held");
        if (turn == 0) { // figure 7: within 100 s the slave is ready, and waits for the master
            check_near(now_of(&p), 96.5, 0.5);
            check_int(p.last[0], CRDI_DCP_MASTER_APPLY);
        }
        while (!p.ready) { // the engine's coolant is not
            go(&p, crd_dcp_master_wait(p.m, crd_dcp_master_now(p.m) + 0.01));
            write_down(&p);
        }
        check_near(p.k[0]->m.is[MOTOR_OIL], 34, 0.01); // held meanwhile
        begin_run(&p);
        drive_vehicle(&p, turn ? 5 : 40, false);
        if (turn == 0) { check_near(p.v * 3.6, 50, 2); }
        check_int(crdi_dcp_bench_peer_view(p.p[0]).phase, CRD_DCP_BENCH_RUN);
        check(crdi_dcp_bench_peer_view(p.p[0]).gap <= 3);
        check(get(&p, 0, MOTOR_N) > 500);
        const double stop = now_of(&p);
        p.k[0]->m.margin = INFINITY;
        p.gas = 0; // the abort; the virtual driver brakes
        p.brake = 0.3;
        go(&p, crd_dcp_master_stop(p.m));
        write_down(&p);
        check_story(&p, from);
        check_near(when(&p, "7/15"), stop, 0.05);
        check_near(p.k[0]->m.is[MOTOR_SPEED], 0, 1);
        check(p.k[0]->m.margin > 0);
        const crd_dcp_round_trip r = crdi_dcp_bench_peer_view(p.p[0]).round_trip;
        check(r.count > 100 && r.least >= 0.002 && r.most <= 0.031); // 2 x 1 ms, two grids of 10 ms
        close_master(&p);
        p.v = 0;
    }
    check_int(p.k[0]->m.given, 2);
    check_int(p.k[0]->m.withdrawn, 2);
    fclose(p.csv);
    close_place(&p);
}

// ---- several benches, and refusals -------------------------------------------------------------

static void benches_in_a_session_wait_for_each_other(void** state)
{
    const crd_dcp_bench_config c = motor_config();
    place p;
    open_place(&p, &c, 2);
    p.k[1]->m.heating /= 3;
    p.plan.initial = "oil 30 degC";
    open_master(&p);
    go(&p, crd_dcp_master_configure(p.m));
    check_near(now_of(&p), 3 * 4 / (55.0 / 540), 0.5);
    check_near(p.k[0]->m.is[MOTOR_OIL], 30, 1e-9);
    check(p.k[0]->m.held <= 0.5);
    begin_run(&p);
    set(&p, 0, 1000, 10, 200, 30);
    set(&p, 1, 500, 5, 100, 30);
    drive(&p, 2);
    check_near(get(&p, 0, MOTOR_N), 1000, 1);
    check_near(get(&p, 1, MOTOR_N), 500, 1);
    // A bench that fails takes the other one down with it, both in their own way.
    p.k[0]->m.error = 7;
    crd_status st = CRD_OK;
    for (int i = 0; i < 20 && st == CRD_OK; i++) {
        st = interval(&p);
    }
    check_int(st, CRD_E_UNIT);
    check_contains(crdi_dcp_bench_peer_view(p.p[0]).why, "fault: error 7");
    p.k[0]->m.error = 0; // looked after
    go(&p, crd_dcp_master_stop(p.m));
    for (int i = 0; i < 2; i++) {
        check_near(p.k[i]->m.is[MOTOR_SPEED], 0, 1);
        check_int(crd_dcp_slave_state(p.k[i]->r.slave), CRD_DCP_ALIVE);
    }
    close_master(&p);
    close_place(&p);
}

static void the_master_refuses_before_it_says_anything(void** state)
{
    check_allocator a;
    crd_context* ctx = check_context(&a);
    const crd_dcp_bench_config c = motor_config();
    crd_dcp_description *d = motor_description(ctx, &c, true),
                        *plain = motor_description(ctx, &c, false);
    crdi_dcp_bench_peer* p = NULL;
    crdi_dcp_bench_plan plan = crdi_dcp_bench_plan_defaults();
    static const struct {
        const char *limits, *planned, *initial, *says;
        crd_status status;
    } cases[] = {
        {"", "speed 0..7000 1/min", "", "em: limit speed max", CRD_E_RANGE},
        {"speed ..3000 1/min", "speed 0..4000 1/min", "", "its peer allows", CRD_E_RANGE},
        {"", "speed", "", "em: test case: 'speed'", CRD_E_FORMAT},
        {"speed 1..0 V", "", "", "em: limits of the peer", CRD_E_FORMAT},
        {"", "", "oil 95 degC", "limit oil max", CRD_E_RANGE},
        {"", "", "oil", "em: 'oil'", CRD_E_FORMAT},
        {"", "spede 0..1 1/min", "", "did you mean speed?", CRD_E_RANGE},
    };
    plan.name = "em";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        plan.limits = cases[i].limits;
        plan.planned = cases[i].planned;
        plan.initial = cases[i].initial;
        check_status(crdi_dcp_bench_peer_create(ctx, d, &plan, &p), cases[i].status);
        check_contains(crd_error_text(ctx), cases[i].says);
    }
    char text[1100];
    memset(text, ' ', sizeof text);
    text[1099] = 0;
    plan.initial = NULL;
    plan.planned = text;
    check_status(crdi_dcp_bench_peer_create(ctx, d, &plan, &p), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "1099 bytes, expected up to 1024");
    plan.planned = NULL;
    plan.watchdog = -1;
    check_status(crdi_dcp_bench_peer_create(ctx, d, &plan, &p), CRD_E_RANGE);
    check_status(crdi_dcp_bench_peer_create(ctx, plain, &plan, &p), CRD_E_UNSUPPORTED);
    crd_dcp_description_destroy(d);
    crd_dcp_description_destroy(plain);
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

static void the_bench_refuses_a_case_that_its_master_did_not_check(void** state)
{
    const crd_dcp_bench_config c = motor_config();
    place p;
    open_place(&p, &c, 1);
    open_master(&p);
    crdi_dcp_bench_variables at;
    check(crdi_dcp_bench_find(p.k[0]->d, &at));
    crd_dcp_slot* s = crd_dcp_master_slot(p.m, 0, at.planned);
    *s->byte_count = (uint32_t)strlen("speed 0..9000 1/min");
    memcpy(s->bytes, "speed 0..9000 1/min", *s->byte_count);
    check_ok(crd_dcp_master_set(p.m, 0, at.planned));
    check_status(crd_dcp_master_configure(p.m), CRD_E_UNIT);
    check_contains(crd_error_text(p.ctx), "em");
    check_contains(crd_error_text(p.ctx), "PROPERTY_VIOLATED");
    check_contains(crdi_dcp_bench_peer_view(p.p[0]).why, "refused: limit speed max");
    check_int(p.k[0]->m.given, 0);
    check_ok(crd_dcp_master_stop(p.m));
    close_master(&p);
    close_place(&p);
}

static void what_is_clamped_is_seen_by_the_master(void** state)
{
    const crd_dcp_bench_config c = motor_config();
    place p;
    open_place(&p, &c, 1);
    open_master(&p);
    go(&p, crd_dcp_master_configure(p.m));
    begin_run(&p);
    set(&p, 0, 9000, 0, 400, 25); // what is no number never begins to move anything
    drive(&p, 0.05);
    check_text(crdi_dcp_bench_peer_view(p.p[0]).why,
               "clamped: speed = 9000 1/min, used 6500, limits 0 to 6500");
    set(&p, 0, 9000, 0, 400, NAN);
    drive(&p, 0.3);
    const crdi_dcp_bench_view v = crdi_dcp_bench_peer_view(p.p[0]);
    check_int(v.clamped & 1, 1);
    check_int(v.clamps, 1);
    check(v.refused > 20);
    check_text(v.why, "refused: the set value of oil is not a number"); // the newest
    go(&p, crd_dcp_master_stop(p.m));
    check_contains(crdi_dcp_bench_peer_view(p.p[0]).why, "refused: "); // the stop has no news
    close_master(&p);
    close_place(&p);
}

// ---- lost connections --------------------------------------------------------------------------

static void a_cut_cable_is_noticed_on_both_sides_and_the_bench_becomes_safe(void** state)
{
    const crd_dcp_bench_config c = motor_config();
    place p;
    open_place(&p, &c, 1);
    open_master(&p);
    go(&p, crd_dcp_master_configure(p.m));
    begin_run(&p);
    set(&p, 0, 3000, 50, 300, 25);
    drive(&p, 3);
    check_near(get(&p, 0, MOTOR_N), 3000, 1);
    const testnet_faults cut = {.loss = 1, .delay = 0.001};
    check_ok(testnet_set(p.t, &cut));
    const double cut_at = now_of(&p);
    crd_status st = CRD_OK;
    while (st == CRD_OK && now_of(&p) < cut_at + 2) {
        st = interval(&p);
    }
    check_int(st, CRD_E_UNIT);
    check_near(now_of(&p) - cut_at, 0.5, 0.021);
    check_contains(crd_error_text(p.ctx), "em: no new data for");
    testnet_advance(p.t, begin + cut_at + 0.4);
    while (testnet_now(p.t) < begin + cut_at + 10) {
        testnet_advance(p.t, begin + cut_at + 10);
    }
    const crd_dcp_bench_state s = crd_dcp_bench_get_state(p.k[0]->b);
    check_int(s.phase, CRD_DCP_BENCH_SAFE);
    check_int(s.reason, CRD_DCP_BENCH_WATCHDOG);
    check_near(s.safe_since - begin - cut_at, 0.5 + 2.9 + 0.1, 0.03);
    check(p.k[0]->m.margin > 0 || p.k[0]->m.margin > -20); // the start of the run has no guard here
    // The cable is back: the slave is found in Error, brought down, and runs again.
    const testnet_faults fine = {.delay = 0.001};
    check_ok(testnet_set(p.t, &fine));
    (void)crd_dcp_master_stop(p.m);
    close_master(&p);
    open_master(&p);
    go(&p, crd_dcp_master_configure(p.m));
    begin_run(&p);
    set(&p, 0, 1000, 0, 300, 25);
    drive(&p, 2);
    check_near(get(&p, 0, MOTOR_N), 1000, 1);
    go(&p, crd_dcp_master_stop(p.m));
    close_master(&p);
    close_place(&p);
}

static void a_lossy_line_within_the_gap_limit_is_borne(void** state)
{
    const crd_dcp_bench_config c = motor_config();
    place p;
    open_place(&p, &c, 1);
    open_master(&p);
    go(&p, crd_dcp_master_configure(p.m));
    begin_run(&p);
    set(&p, 0, 1000, 10, 300, 25);
    const testnet_faults bad = {.loss = 0.3, .duplicate = 0.1, .delay = 0.003, .jitter = 0.03};
    check_ok(testnet_set(p.t, &bad));
    drive(&p, 30);
    const crdi_dcp_bench_view v = crdi_dcp_bench_peer_view(p.p[0]);
    check(v.round_trip.count > 500 && v.round_trip.least >= 0.006);
    check_near(get(&p, 0, MOTOR_N), 1000, 1);
    const testnet_faults fine = {.delay = 0.001};
    check_ok(testnet_set(p.t, &fine));
    go(&p, crd_dcp_master_stop(p.m));
    close_master(&p);
    close_place(&p);
}

static void nothing_is_allocated_in_the_run(void** state)
{
    const crd_dcp_bench_config c = motor_config();
    place p;
    open_place(&p, &c, 1);
    open_master(&p);
    go(&p, crd_dcp_master_configure(p.m));
    begin_run(&p);
    set(&p, 0, 1000, 10, 300, 25);
    const int64_t before = p.allocator.allocations;
    drive(&p, 1);
    check_int(p.allocator.allocations, before);
    go(&p, crd_dcp_master_stop(p.m));
    close_master(&p);
    close_place(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(session_with_conditioning_abort_and_second_run),
        cmocka_unit_test(benches_in_a_session_wait_for_each_other),
        cmocka_unit_test(the_master_refuses_before_it_says_anything),
        cmocka_unit_test(the_bench_refuses_a_case_that_its_master_did_not_check),
        cmocka_unit_test(what_is_clamped_is_seen_by_the_master),
        cmocka_unit_test(a_cut_cable_is_noticed_on_both_sides_and_the_bench_becomes_safe),
        cmocka_unit_test(a_lossy_line_within_the_gap_limit_is_borne),
        cmocka_unit_test(nothing_is_allocated_in_the_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
