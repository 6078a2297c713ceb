// The master on networks that lose, delay, double, reorder and damage, and with slaves that die,
// are restarted, refuse, or belong to somebody else.
#include "session.h"

#include "dcp/master/master.h"
#include "testnet/testnet.h"

static const int inputs[] = {RIG_U, RIG_TORQUE};
static const int outputs[] = {RIG_SPEED, RIG_TICKS};

static void plan(session* s)
{
    for (int i = 0; i < s->count; i++) {
        check_ok(crd_dcp_master_feed(s->m, i, inputs, 1));
        check_ok(crd_dcp_master_watch(s->m, i, outputs, 2, 1));
    }
}

static void step_all(session* s, uint32_t steps)
{
    for (int i = 0; i < s->count; i++) {
        session_do(s, crd_dcp_master_begin_step(s->m, i, steps));
    }
    for (int i = 0; i < s->count; i++) {
        session_do(s, crd_dcp_master_end_step(s->m, i));
    }
}

static void run_on(const testnet_faults* bad, uint8_t transport, int steps, bool lossless)
{
    static session s;
    session_open(&s, bad, 3, transport, CRD_DCP_NRT);
    crd_dcp_master_options opt = crd_dcp_master_defaults();
    opt.lossless = lossless;
    opt.retries = 100;
    opt.contact = 60;
    opt.patience = 300;
    session_master(&s, &opt);
    plan(&s);
    session_do(&s, crd_dcp_master_configure(s.m));
    session_do(&s, crd_dcp_master_initialize(s.m, -1));
    session_do(&s, crd_dcp_master_run(s.m, 0, NULL));
    for (int k = 0; k < steps; k++) {
        step_all(&s, 2);
        for (int i = 0; i < 3; i++) {
            check_int(s.r[i]->step_count, k + 1);
            check_int(s.r[i]->ticks, 2 * (k + 1));
            check(session_integer(&s, i, RIG_TICKS)[0] <= 2 * (k + 1));
            if (lossless) { check_int(session_integer(&s, i, RIG_TICKS)[0], 2 * (k + 1)); }
        }
    }
    session_do(&s, crd_dcp_master_stop(s.m));
    for (int i = 0; i < 3; i++) {
        check_int(session_state(&s, i), CRD_DCP_ALIVE);
        const crd_dcp_slave_status k = crd_dcp_master_status(s.m, i);
        check_int(k.state, CRD_DCP_ALIVE);
        check(!k.lost);
        if (lossless) {
            check_int(k.data_in, steps + 1);
            check_int(k.data_missed, 0);
        }
    }
    session_close(&s);
}

static void
whatever_the_network_does_each_step_is_done_once_and_all_are_ALIVE_at_the_end(void** state)
{
    static const testnet_faults kinds[] = {
        {.delay = 0.005, .loss = 0.3, .start = 1000},
        {.delay = 0.005, .jitter = 0.2, .start = 1000},
        {.delay = 0.005, .duplicate = 0.5, .start = 1000},
        {.delay = 0.005, .jitter = 0.05, .duplicate = 0.3, .start = 1000},
        {.delay = 0.005, .jitter = 0.2, .loss = 0.3, .duplicate = 0.2, .start = 1000},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        for (uint64_t seed = 1; seed <= 5; seed++) {
            testnet_faults f = kinds[i];
            f.seed = seed;
            run_on(&f, CRD_DCP_UDP, 40, f.loss == 0 && f.jitter < 0.1);
        }
        testnet_faults f = kinds[i];
        f.seed = 77;
        run_on(&f, CRD_DCP_TCP, 40, f.jitter < 0.1 && f.loss == 0);
    }
}

static void damaged_packets_neither_end_a_session_nor_keep_it_from_its_end(void** state)
{
    static session s;
    int done = 0, sound = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        const testnet_faults good = {.delay = 0.001, .seed = seed, .start = 1000};
        session_open(&s, &good, 2, CRD_DCP_UDP, CRD_DCP_NRT);
        crd_dcp_master_options opt = crd_dcp_master_defaults();
        opt.lossless = false;
        opt.retries = 30;
        session_master(&s, &opt);
        plan(&s);
        session_do(&s, crd_dcp_master_configure(s.m));
        session_do(&s, crd_dcp_master_run(s.m, 0, NULL));
        check_ok(testnet_set(s.t, &(testnet_faults){.delay = 0.001, .corrupt = 0.02}));
        crd_status st = CRD_OK;
        for (int k = 0; k < 50 && st == CRD_OK; k++) {
            for (int i = 0; i < 2 && st == CRD_OK; i++) {
                st = crd_dcp_master_begin_step(s.m, i, 1);
                if (st == CRD_OK) { st = crd_dcp_master_end_step(s.m, i); }
            }
        }
        if (st == CRD_OK) {
            done++;
        } else { // a damaged request may bring a slave out of its way: then it is said which
            check_status(st, CRD_E_UNIT);
            check_contains(crd_error_text(s.ctx), "the DCP slave refuses STC_do_step");
        }
        sound += crd_dcp_master_stop(s.m) == CRD_OK;
        session_close(&s);
    }
    check(done >= 10);
    check_int(sound, 20);
}

// ---- slaves that die ---------------------------------------------------------------------------

typedef struct death {
    session s;
    int who;
    double at; // on the clock
    bool back; // it is started again at once
    bool happened;
    crd_dcp_state in;
} death;

// Asked while the master waits.
static bool die(void* user)
{
    death* d = user;
    if (!d->happened && testnet_now(d->s.t) >= d->at) {
        d->happened = true;
        d->in = session_state(&d->s, d->who);
        if (d->back) {
            session_start_slave(&d->s, d->who);
        } else {
            testnet_attach(d->s.nets[d->who], NULL);
        }
    }
    return false;
}

static void note_death(void* user, const crd_dcp_notice* n)
{
    session_notice(&((death*)user)->s, n);
}

static crd_status whole_run(session* s, int steps)
{
    crd_status st = CRD_OK;
    CRD_TRY(crd_dcp_master_configure(s->m));
    CRD_TRY(crd_dcp_master_initialize(s->m, -1));
    CRD_TRY(crd_dcp_master_run(s->m, 0, NULL));
    for (int k = 0; k < steps; k++) {
        for (int i = 0; i < s->count; i++) {
            CRD_TRY(crd_dcp_master_begin_step(s->m, i, 1));
        }
        for (int i = 0; i < s->count; i++) {
            CRD_TRY(crd_dcp_master_end_step(s->m, i));
        }
    }
fail:
    return st;
}

static void open_death(death* d, uint8_t transport)
{
    session_open(&d->s, NULL, 3, transport, CRD_DCP_NRT);
    crd_dcp_master_options opt = crd_dcp_master_defaults();
    opt.cancelled = die;
    opt.notice = note_death;
    opt.user = d;
    opt.patience = 3;
    check_ok(crd_dcp_master_create(d->s.ctx, d->s.net, &opt, &d->s.m));
    for (int i = 0; i < 3; i++) {
        check_ok(crd_dcp_master_add(d->s.m, &d->s.spec[i], NULL));
    }
    plan(&d->s);
}

static void one_that_dies_anywhere_is_named_and_the_others_are_brought_down(void** state)
{
    static death d;
    bool met[CRD_DCP_STATE_COUNT] = {0};
    for (int tcp = 0; tcp < 2; tcp++) {
        for (int ms = 0; ms < 100; ms += tcp ? 7 : 1) {
            d = (death){.who = ms % 3, .at = 1000.25 + 0.001 * ms};
            open_death(&d, tcp ? CRD_DCP_TCP : CRD_DCP_UDP);
            const crd_status st = whole_run(&d.s, 20);
            check(d.happened);
            met[d.in] = true;
            check_status(st, CRD_E_UNIT);
            const char* name = d.s.spec[d.who].name;
            check(strncmp(crd_error_text(d.s.ctx), name, strlen(name)) == 0);
            const double before = testnet_now(d.s.t);
            const crd_status down = crd_dcp_master_stop(d.s.m);
            check(testnet_now(d.s.t) - before < 1); // not hanging on the dead one
            if (crd_dcp_master_status(d.s.m, d.who).state != CRD_DCP_ALIVE) {
                check_status(down, CRD_E_UNIT);
                check_contains(crd_error_text(d.s.ctx), name);
                check(crd_dcp_master_status(d.s.m, d.who).lost);
            }
            for (int i = 0; i < 3; i++) {
                if (i != d.who) { check_int(session_state(&d.s, i), CRD_DCP_ALIVE); }
            }
            session_close(&d.s);
        }
    }
    const crd_dcp_state must[] = {CRD_DCP_ALIVE,      CRD_DCP_CONFIGURATION, CRD_DCP_PREPARED,
                                  CRD_DCP_CONFIGURED, CRD_DCP_INITIALIZED,   CRD_DCP_SYNCHRONIZED,
                                  CRD_DCP_RUNNING,    CRD_DCP_COMPUTED};
    for (size_t i = 0; i < sizeof must / sizeof must[0]; i++) {
        if (!met[must[i]]) { fail_msg("nobody died in %s", crd_dcp_state_name((int)must[i])); }
    }
}

// A duty that takes its time on the slave in the middle, which dies there at once or comes to its
// end after twenty seconds.
typedef struct duty {
    death d; // first
    crd_dcp_state in;
    double since; // on the clock; 0: it has not come so far
    bool dies;
} duty;

static bool watch_duty(void* user)
{
    duty* k = user;
    session* s = &k->d.s;
    if (session_state(s, 1) != k->in || k->d.happened) { return false; }
    if (k->since == 0) { k->since = testnet_now(s->t); }
    if (k->dies) {
        k->d.happened = true;
        testnet_attach(s->nets[1], NULL);
    } else if (testnet_now(s->t) >= k->since + 20) {
        s->r[1]->enters[k->in] = CRD_DCP_DONE;
        crd_dcp_slave_done(s->r[1]->slave, CRD_DCP_DONE, testnet_now(s->t));
    }
    return false;
}

static void patience_is_for_progress_and_not_for_life(void** state)
{
    static duty k;
    const crd_dcp_state duties[] = {CRD_DCP_PREPARING, CRD_DCP_CONFIGURING, CRD_DCP_INITIALIZING,
                                    CRD_DCP_SYNCHRONIZING, CRD_DCP_STOPPING};
    for (size_t i = 0; i < 2 * sizeof duties / sizeof duties[0]; i++) {
        for (int tcp = 0; tcp < 2; tcp++) {
            k = (duty){.in = duties[i / 2], .dies = i % 2 == 0};
            session* s = &k.d.s;
            session_open(s, NULL, 3, tcp ? CRD_DCP_TCP : CRD_DCP_UDP, CRD_DCP_NRT);
            crd_dcp_master_options opt = crd_dcp_master_defaults();
            opt.cancelled = watch_duty;
            opt.notice = note_death;
            opt.user = &k;
            opt.patience = 1800;
            check_ok(crd_dcp_master_create(s->ctx, s->net, &opt, &s->m));
            for (int j = 0; j < 3; j++) {
                s->spec[j].alive = 3;
                check_ok(crd_dcp_master_add(s->m, &s->spec[j], NULL));
            }
            s->r[1]->enters[k.in] = CRD_DCP_LATER;
            plan(s);
            crd_status st = whole_run(s, 3);
            const crd_status down = crd_dcp_master_stop(s->m);
            if (st == CRD_OK) { st = down; }
            check(k.since > 0);
            if (k.dies) {
                check_status(st, CRD_E_UNIT);
                check_contains(s->error, "is lost: no answer to ");
                check_contains(s->error, crd_dcp_state_name((int)k.in));
                check(testnet_now(s->t) < k.since + 6);
                check_int(session_state(s, 0), CRD_DCP_ALIVE);
                check_int(session_state(s, 2), CRD_DCP_ALIVE);
            } else {
                check_ok(st);
                check(testnet_now(s->t) >= k.since + 20);
            }
            session_close(s);
        }
    }
}

static void one_that_is_restarted_is_found_out(void** state)
{
    static death d;
    for (int ms = 0; ms < 100; ms += 3) {
        d = (death){.who = ms % 3, .at = 1000.25 + 0.001 * ms, .back = true};
        open_death(&d, CRD_DCP_UDP);
        const crd_status st = whole_run(&d.s, 20);
        check(d.happened);
        if (d.in != CRD_DCP_ALIVE) {
            check_status(st, CRD_E_UNIT);
            const char* name = d.s.spec[d.who].name;
            check(strncmp(crd_error_text(d.s.ctx), name, strlen(name)) == 0);
        }
        session_do(&d.s, crd_dcp_master_stop(d.s.m));
        for (int i = 0; i < 3; i++) {
            check_int(session_state(&d.s, i), CRD_DCP_ALIVE);
        }
        // The session can be brought up again.
        session_do(&d.s, whole_run(&d.s, 3));
        session_do(&d.s, crd_dcp_master_stop(d.s.m));
        session_close(&d.s);
    }
}

// ---- slaves of others --------------------------------------------------------------------------

// A session that ends without a word, its slaves in `state`.
static void leave_in(session* s, crd_dcp_state state)
{
    session_master(s, NULL);
    plan(s);
    session_do(s, crd_dcp_master_configure(s->m));
    if (state >= CRD_DCP_RUNNING) { session_do(s, crd_dcp_master_run(s->m, 0, NULL)); }
    if (state >= CRD_DCP_ERRORHANDLING) {
        for (int i = 0; i < s->count; i++) {
            crd_dcp_slave_fault(s->r[i]->slave, CRD_DCP_E_GENERIC, testnet_now(s->t));
        }
    }
    crd_dcp_master_destroy(s->m);
    s->m = NULL;
    crd_dcp_net_destroy(s->net); // another process
    check_ok(testnet_join(s->t, SESSION_MASTER, &s->net));
}

static void let_any_port_take_over(session* s)
{
    s->any_port = true;
    for (int i = 0; i < s->count; i++) {
        session_start_slave(s, i);
    }
}

static void slaves_of_an_earlier_session_are_taken_over_whatever_their_id_was(void** state)
{
    static session s;
    const crd_dcp_state left[] = {CRD_DCP_CONFIGURED, CRD_DCP_ERRORRESOLVED};
    for (size_t k = 0; k < 2; k++) {
        for (int tcp = 0; tcp < 2; tcp++) {
            session_open(&s, NULL, 2, tcp ? CRD_DCP_TCP : CRD_DCP_UDP, CRD_DCP_NRT);
            let_any_port_take_over(&s);
            s.spec[0].id = 7;
            s.spec[1].id = 200;
            leave_in(&s, left[k]);
            check_int(session_state(&s, 0), left[k]);
            s.spec[0].id = s.spec[1].id = 0;
            session_master(&s, NULL);
            plan(&s);
            session_do(&s, crd_dcp_master_configure(s.m));
            check_contains(s.repair, "taken over");
            session_do(&s, crd_dcp_master_run(s.m, 0, NULL));
            step_all(&s, 1);
            session_do(&s, crd_dcp_master_stop(s.m));
            check_int(session_state(&s, 0), CRD_DCP_ALIVE);
            check_int(session_state(&s, 1), CRD_DCP_ALIVE);
            session_close(&s);
        }
    }
}

static void a_slave_that_runs_for_another_master_is_left_alone_unless_it_is_forced(void** state)
{
    static session s;
    for (int force = 0; force < 2; force++) {
        session_open(&s, NULL, 2, CRD_DCP_UDP, CRD_DCP_NRT);
        let_any_port_take_over(&s);
        s.spec[1].id = 9;
        leave_in(&s, CRD_DCP_RUNNING);
        // The first one has gone.
        session_start_slave(&s, 0);
        crd_dcp_master_options opt = crd_dcp_master_defaults();
        opt.force = force;
        session_master(&s, &opt);
        plan(&s);
        const crd_dcp_slave_counts before = crd_dcp_slave_get_counts(s.r[1]->slave);
        const crd_status st = crd_dcp_master_configure(s.m);
        if (force) {
            check_ok(st);
            session_do(&s, crd_dcp_master_stop(s.m));
            check_int(session_state(&s, 1), CRD_DCP_ALIVE);
        } else {
            check_status(st, CRD_E_UNIT);
            check_contains(crd_error_text(s.ctx), "gear: the DCP slave is in RUNNING");
            check_contains(crd_error_text(s.ctx), "another master as slave 9");
            check_int(session_state(&s, 1), CRD_DCP_RUNNING);
            check_int(crd_dcp_slave_get_counts(s.r[1]->slave).nacks, before.nacks);
        }
        check_int(session_state(&s, 0), CRD_DCP_ALIVE);
        session_close(&s);
    }
}

static void a_slave_that_another_host_has_registered_cannot_be_taken_over(void** state)
{
    static session s;
    session_open(&s, NULL, 2, CRD_DCP_UDP, CRD_DCP_NRT);
    leave_in(&s, CRD_DCP_CONFIGURED);
    session_start_slave(&s, 0);
    crd_dcp_net_destroy(s.net);
    check_ok(testnet_join(s.t, 0x0A0000AA, &s.net));
    session_master(&s, NULL);
    plan(&s);
    check_status(crd_dcp_master_configure(s.m), CRD_E_UNIT);
    check_contains(crd_error_text(s.ctx), "gear: the DCP slave at udp://10.0.0.3:8080 is in "
                                          "CONFIGURED, registered by another master as slave 2, "
                                          "and does not answer STC_stop of this one");
    check_int(session_state(&s, 0), CRD_DCP_ALIVE);
    check_int(session_state(&s, 1), CRD_DCP_CONFIGURED);
    session_close(&s);
}

static void without_take_over_a_registered_slave_is_named(void** state)
{
    static session s;
    session_open(&s, NULL, 1, CRD_DCP_UDP, CRD_DCP_NRT);
    leave_in(&s, CRD_DCP_CONFIGURED);
    crd_dcp_master_options opt = crd_dcp_master_defaults();
    opt.take_over = false;
    session_master(&s, &opt);
    plan(&s);
    check_status(crd_dcp_master_configure(s.m), CRD_E_UNIT);
    check_contains(crd_error_text(s.ctx), "motor: the DCP slave is in CONFIGURED, registered by");
    check_int(session_state(&s, 0), CRD_DCP_CONFIGURED);
    session_close(&s);
}

static void nobody_at_home_is_said_in_time(void** state)
{
    static session s;
    for (int tcp = 0; tcp < 2; tcp++) {
        session_open(&s, NULL, 1, tcp ? CRD_DCP_TCP : CRD_DCP_UDP, CRD_DCP_NRT);
        s.spec[0].control.port = 8081; // nobody listens there
        session_master(&s, NULL);
        check_status(crd_dcp_master_configure(s.m), CRD_E_UNIT);
        check_contains(crd_error_text(s.ctx), "motor: no DCP slave answers at");
        check_contains(crd_error_text(s.ctx), "10.0.0.2:8081 within 5 s");
        check_near(testnet_now(s.t), 1005.25, 0.3);
        check_ok(crd_dcp_master_stop(s.m));
        session_close(&s);
    }
}

static bool begin_late(void* user)
{
    session* s = user;
    if (testnet_now(s->t) > 1003 && s->cancel_after == 0) {
        s->cancel_after = 1;
        testnet_attach(s->nets[0], s->r[0]->slave);
    }
    return false;
}

static void a_slave_that_starts_late_is_waited_for(void** state)
{
    static session s;
    session_open(&s, NULL, 1, CRD_DCP_UDP, CRD_DCP_NRT);
    testnet_attach(s.nets[0], NULL);
    crd_dcp_packet lost;
    crd_dcp_master_options opt = crd_dcp_master_defaults();
    opt.cancelled = begin_late;
    session_master(&s, &opt);
    plan(&s);
    session_do(&s, crd_dcp_master_configure(s.m));
    check(!crd_dcp_net_receive(s.nets[0], &lost));
    session_do(&s, crd_dcp_master_stop(s.m));
    session_close(&s);
}

// ---- refusals ----------------------------------------------------------------------------------

// A slave that refuses one type of request with one code, else does what ours does: between the
// net and the slave.
typedef struct censor {
    session s;
    uint8_t type;
    uint16_t code;
    int times; // -1: always
    crd_dcp_link inner;
} censor;

static bool censored(void* user)
{
    censor* c = user;
    crd_dcp_packet p;
    crd_dcp_slave* slave = c->s.r[0]->slave;
    while (crd_dcp_net_receive(c->s.nets[0], &p)) {
        crdi_dcp_pdu q;
        if (c->times != 0 && p.length && p.bytes[0] == c->type &&
            crdi_dcp_decode(p.bytes, p.length, &q) == CRDI_DCP_GOOD) {
            uint8_t out[8];
            const crdi_dcp_pdu nack = {.type = CRDI_DCP_RSP_NACK,
                                       .seq = q.seq,
                                       .peer = q.peer,
                                       .expected = (uint16_t)(q.seq + 1),
                                       .error = c->code};
            check_int(crdi_dcp_encode(&nack, out, sizeof out), 8);
            crdi_dcp_net_send(c->s.nets[0], &p.from, out, sizeof out);
            // For the slave it was a question for its state, so that the numbers stay in step.
            uint8_t instead[4] = {CRDI_DCP_INF_STATE, p.bytes[1], p.bytes[2], p.bytes[3]};
            const crd_dcp_address nowhere = p.from;
            c->times -= c->times > 0;
            crd_dcp_slave_receive(slave, &nowhere, &p.at, instead, 4, p.time);
            continue;
        }
        crd_dcp_slave_receive(slave, &p.from, &p.at, p.bytes, p.length, p.time);
    }
    crd_dcp_slave_advance(slave, testnet_now(c->s.t));
    return false;
}

static void note_censored(void* user, const crd_dcp_notice* n)
{
    session_notice(&((censor*)user)->s, n);
}

static void open_censor(censor* c, uint8_t type, uint16_t code, int times)
{
    session_open(&c->s, NULL, 2, CRD_DCP_UDP, CRD_DCP_NRT);
    testnet_attach(c->s.nets[0], NULL);
    c->type = type;
    c->code = code;
    c->times = times;
    crd_dcp_master_options opt = crd_dcp_master_defaults();
    opt.cancelled = censored;
    opt.notice = note_censored;
    opt.user = c;
    opt.patience = 3;
    check_ok(crd_dcp_master_create(c->s.ctx, c->s.net, &opt, &c->s.m));
    for (int i = 0; i < 2; i++) {
        check_ok(crd_dcp_master_add(c->s.m, &c->s.spec[i], NULL));
    }
    plan(&c->s);
    const int tuned[] = {RIG_KP};
    check_ok(crd_dcp_master_tunable(c->s.m, 0, tuned, 1, NULL));
    check_ok(crd_dcp_master_set(c->s.m, 0, RIG_R));
}

static void whatever_is_refused_is_said_with_its_code_and_the_other_comes_down(void** state)
{
    static censor c;
    const struct {
        uint8_t type;
        uint16_t code;
        const char* text;
    } rows[] = {
        {CRDI_DCP_STC_REGISTER, CRD_DCP_E_INVALID_UUID,
         "motor: the DCP slave refuses STC_register in ALIVE: 0x2011 INVALID_UUID (the slave has"},
        {CRDI_DCP_CFG_TIME_RES, CRD_DCP_E_INVALID_TIME_RESOLUTION,
         "motor: the DCP slave refuses CFG_time_res 1/100 s: 0x200F INVALID_TIME_RESOLUTION"},
        {CRDI_DCP_CFG_PARAMETER, CRD_DCP_E_INVALID_LENGTH,
         "refuses CFG_parameter of drive.R (float64): 0x2001 INVALID_LENGTH"},
        {CRDI_DCP_CFG_INPUT, CRD_DCP_E_INVALID_SOURCE_DATA_TYPE,
         "CFG_input of drive.u_dc (float64)"},
        {CRDI_DCP_CFG_OUTPUT, CRD_DCP_E_INVALID_VALUE_REFERENCE, "CFG_output of shaft.speed"},
        {CRDI_DCP_CFG_SCOPE, CRD_DCP_E_INVALID_SCOPE, "0x200A"},
        {CRDI_DCP_CFG_STEPS, CRD_DCP_E_INVALID_STEPS, "CFG_steps 1: 0x200E"},
        {CRDI_DCP_CFG_TARGET_NETWORK, CRD_DCP_E_INVALID_NETWORK_INFORMATION, "10.0.0.1"},
        {CRDI_DCP_CFG_SOURCE_NETWORK, CRD_DCP_E_INVALID_NETWORK_INFORMATION, "10.0.0.2"},
        {CRDI_DCP_CFG_TUNABLE_PARAMETER, CRD_DCP_E_INVALID_VALUE_REFERENCE, "ctrl.kp"},
        {CRDI_DCP_CFG_PARAM_NETWORK, CRD_DCP_E_INVALID_TRANSPORT_PROTOCOL, "0x2010"},
        {CRDI_DCP_STC_PREPARE, CRD_DCP_E_NO_STEPS,
         "refuses STC_prepare in CONFIGURATION: 0x3008 INCOMPLETE_CONFIG_STEPS"},
        {CRDI_DCP_STC_CONFIGURE, CRD_DCP_E_GENERIC, "STC_configure in PREPARED: 0x1001"},
        {CRDI_DCP_STC_INITIALIZE, 0x5001, "STC_initialize in CONFIGURED: 0x5001 unknown"},
        {CRDI_DCP_STC_RUN, CRD_DCP_E_INVALID_LENGTH, "STC_run in CONFIGURED: 0x2001"},
        {CRDI_DCP_STC_DO_STEP, CRD_DCP_E_NO_VARIABLE_STEPS, "STC_do_step in RUNNING: 0x4003"},
        {CRDI_DCP_STC_SEND_OUTPUTS, CRD_DCP_E_PDU_NOT_SUPPORTED, "STC_send_outputs in"},
        {CRDI_DCP_STC_DO_STEP, CRD_DCP_E_NOT_ALLOWED_IN_THIS_STATE,
         "STC_do_step in RUNNING: 0x1003"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        open_censor(&c, rows[i].type, rows[i].code, -1);
        check_status(whole_run(&c.s, 3), CRD_E_UNIT);
        check_contains(crd_error_text(c.s.ctx), rows[i].text);
        check(strncmp(crd_error_text(c.s.ctx), "motor: ", 7) == 0);
        testnet_attach(c.s.nets[0], c.s.r[0]->slave);
        session_do(&c.s, crd_dcp_master_stop(c.s.m));
        check_int(session_state(&c.s, 0), CRD_DCP_ALIVE);
        check_int(session_state(&c.s, 1), CRD_DCP_ALIVE);
        session_close(&c.s);
    }
}

static void one_that_refuses_to_stop_is_named_and_given_up(void** state)
{
    static session s;
    // A slave of which nothing works but its state: the rig's, by an aim that never succeeds.
    session_open(&s, NULL, 2, CRD_DCP_UDP, CRD_DCP_NRT);
    session_master(&s, NULL);
    plan(&s);
    session_do(&s, crd_dcp_master_configure(s.m));
    s.r[0]->enters[CRD_DCP_STOPPING] = CRD_DCP_LATER; // for ever
    const double before = testnet_now(s.t);
    check_status(crd_dcp_master_stop(s.m), CRD_E_UNIT);
    check_text(crd_error_text(s.ctx),
               "motor: the DCP slave is in STOPPING for more than 30 s, expected STOPPED");
    check_near(testnet_now(s.t) - before, 30, 1);
    check_int(session_state(&s, 1), CRD_DCP_ALIVE);
    // Later it can.
    crd_dcp_slave_done(s.r[0]->slave, CRD_DCP_DONE, testnet_now(s.t));
    session_do(&s, crd_dcp_master_stop(s.m));
    check_int(session_state(&s, 0), CRD_DCP_ALIVE);
    session_close(&s);
}

static void what_may_be_refused_does_not_matter(void** state)
{
    static censor c;
    const struct {
        uint8_t type;
        uint16_t code;
        int times;
    } rows[] = {
        {CRDI_DCP_CFG_STEPS, CRD_DCP_E_NOT_ALLOWED_IN_THIS_STATE, -1},
        {CRDI_DCP_CFG_STEPS, CRD_DCP_E_PDU_NOT_SUPPORTED, -1},
        {CRDI_DCP_CFG_LOGGING, CRD_DCP_E_INVALID_LOG_MODE, -1},
        {CRDI_DCP_CFG_SOURCE_NETWORK, CRD_DCP_E_INVALID_NETWORK_INFORMATION, 3},
        {CRDI_DCP_STC_DO_STEP, CRD_DCP_E_NOT_ALLOWED_IN_THIS_STATE, 2},
        {CRDI_DCP_STC_DO_STEP, CRD_DCP_E_TRANSITION_IN_PROGRESS, 2},
        {CRDI_DCP_STC_PREPARE, CRD_DCP_E_TRANSITION_IN_PROGRESS, 2},
        {CRDI_DCP_STC_SEND_OUTPUTS, CRD_DCP_E_INVALID_STATE_ID, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        open_censor(&c, rows[i].type, rows[i].code, rows[i].times);
        session_do(&c.s, whole_run(&c.s, 3));
        check_int(c.s.r[0]->ticks, 3);
        check_int(session_integer(&c.s, 0, RIG_TICKS)[0], 3);
        testnet_attach(c.s.nets[0], c.s.r[0]->slave);
        session_do(&c.s, crd_dcp_master_stop(c.s.m));
        session_close(&c.s);
    }
}

// ---- errors ------------------------------------------------------------------------------------

static void a_slave_in_error_is_told_with_its_code_and_the_others_come_down(void** state)
{
    static session s;
    for (int nrt = 0; nrt < 2; nrt++) {
        session_open(&s, NULL, 3, CRD_DCP_UDP, nrt ? CRD_DCP_NRT : CRD_DCP_SRT);
        session_master(&s, NULL);
        plan(&s);
        session_do(&s, crd_dcp_master_configure(s.m));
        session_do(&s, crd_dcp_master_run(s.m, 0, NULL));
        if (nrt) {
            step_all(&s, 1);
            session_do(&s, crd_dcp_master_begin_step(s.m, 1, 1));
        } else {
            session_do(&s, crd_dcp_master_wait(s.m, crd_dcp_master_now(s.m) + 0.1));
        }
        crd_dcp_slave_fault(s.r[1]->slave, CRD_DCP_E_HEARTBEAT_MISSED, testnet_now(s.t));
        check_status(nrt ? crd_dcp_master_end_step(s.m, 1)
                         : crd_dcp_master_wait(s.m, crd_dcp_master_now(s.m) + 1),
                     CRD_E_UNIT);
        check_contains(crd_error_text(s.ctx), "gear: the DCP slave went to ERROR");
        check_contains(crd_error_text(s.ctx), ": 0x1002 PROTOCOL_ERROR_HEARTBEAT_MISSED (the");
        check_int(crd_dcp_master_status(s.m, 1).error, CRD_DCP_E_HEARTBEAT_MISSED);
        check_status(crd_dcp_master_poll(s.m), CRD_E_UNIT);
        session_do(&s, crd_dcp_master_stop(s.m));
        for (int i = 0; i < 3; i++) {
            check_int(session_state(&s, i), CRD_DCP_ALIVE);
        }
        session_close(&s);
    }
}

static void a_slave_that_stops_by_itself_is_told(void** state)
{
    static session s;
    session_open(&s, NULL, 2, CRD_DCP_UDP, CRD_DCP_SRT);
    session_master(&s, NULL);
    plan(&s);
    session_do(&s, crd_dcp_master_configure(s.m));
    session_do(&s, crd_dcp_master_run(s.m, 0, NULL));
    crd_dcp_slave_stop(s.r[0]->slave, testnet_now(s.t));
    check_status(crd_dcp_master_wait(s.m, crd_dcp_master_now(s.m) + 1), CRD_E_UNIT);
    check_contains(crd_error_text(s.ctx), "motor: the DCP slave has stopped by itself (STOPPED)");
    session_do(&s, crd_dcp_master_stop(s.m));
    check_int(session_state(&s, 0), CRD_DCP_ALIVE);
    check_int(session_state(&s, 1), CRD_DCP_ALIVE);
    session_close(&s);
}

static bool refuse_to_wait(void* user)
{
    session* s = user;
    return --s->cancel_after == 0;
}

static void who_is_cancelled_says_so_and_can_still_be_stopped(void** state)
{
    static session s;
    for (int k = 1; k < 60; k++) {
        session_open(&s, NULL, 2, CRD_DCP_UDP, CRD_DCP_NRT);
        s.cancel_after = k;
        crd_dcp_master_options opt = crd_dcp_master_defaults();
        opt.cancelled = refuse_to_wait;
        session_master(&s, &opt);
        plan(&s);
        check_status(whole_run(&s, 20), CRD_E_UNIT);
        check_contains(crd_error_text(s.ctx), "interrupted");
        session_do(&s, crd_dcp_master_stop(s.m));
        check_int(session_state(&s, 0), CRD_DCP_ALIVE);
        check_int(session_state(&s, 1), CRD_DCP_ALIVE);
        session_close(&s);
    }
}

static void outputs_that_are_lost_are_an_error_where_nothing_may_be_lost(void** state)
{
    static session s;
    for (int lossless = 0; lossless < 2; lossless++) {
        const testnet_faults good = {.delay = 0.001, .seed = 3, .start = 1000};
        session_open(&s, &good, 1, CRD_DCP_UDP, CRD_DCP_NRT);
        crd_dcp_master_options opt = crd_dcp_master_defaults();
        opt.lossless = lossless;
        session_master(&s, &opt);
        plan(&s);
        session_do(&s, crd_dcp_master_configure(s.m));
        session_do(&s, crd_dcp_master_run(s.m, 0, NULL));
        step_all(&s, 1);
        check_ok(testnet_set(s.t, &(testnet_faults){.delay = 0.001, .loss = 0.3}));
        crd_status st = CRD_OK;
        for (int k = 0; k < 30 && st == CRD_OK; k++) {
            st = crd_dcp_master_begin_step(s.m, 0, 1);
            if (st == CRD_OK) { st = crd_dcp_master_end_step(s.m, 0); }
        }
        check_status(st, lossless ? CRD_E_UNIT : CRD_OK);
        if (lossless) {
            check_contains(crd_error_text(s.ctx), "motor: the DCP slave has sent its outputs, but");
        } else {
            check(s.notices[CRD_DCP_NOTICE_LOSS] > 3);
            check(crd_dcp_master_status(s.m, 0).data_missed > 3);
            check_int(s.r[0]->step_count, 31);
        }
        session_do(&s, crd_dcp_master_stop(s.m));
        session_close(&s);
    }
}

// ---- memory ------------------------------------------------------------------------------------

static crd_status make_and_run(session* s)
{
    crd_status st = CRD_OK;
    int group = 0;
    const int tuned[] = {RIG_KP};
    CRD_TRY(crd_dcp_master_create(s->ctx, s->net, NULL, &s->m));
    for (int i = 0; i < 2; i++) {
        CRD_TRY(crd_dcp_master_add(s->m, &s->spec[i], NULL));
        CRD_TRY(crd_dcp_master_feed(s->m, i, inputs, 2));
        CRD_TRY(crd_dcp_master_watch(s->m, i, outputs, 2, 1));
    }
    *session_integer(s, 0, RIG_N_TEMPS) = 7;
    CRD_TRY(crd_dcp_master_set(s->m, 0, RIG_N_TEMPS));
    CRD_TRY(crd_dcp_master_tunable(s->m, 0, tuned, 1, &group));
    CRD_TRY(crd_dcp_master_route(s->m, 0, RIG_STATUS, 1, RIG_TEXT, 1, NULL));
    CRD_TRY(crd_dcp_master_configure(s->m));
    CRD_TRY(crd_dcp_master_run(s->m, 0, NULL));
    CRD_TRY(crd_dcp_master_begin_step(s->m, 0, 1));
    CRD_TRY(crd_dcp_master_end_step(s->m, 0));
    CRD_TRY(crd_dcp_master_stop(s->m));
fail:
    return st;
}

static void every_allocation_may_fail(void** state)
{
    static session s;
    for (int once = 0; once < 2; once++) {
        crd_status st = CRD_E_MEMORY;
        int tries = 0;
        for (int fail_at = 0; st != CRD_OK; fail_at++, tries++) {
            session_open(&s, NULL, 2, CRD_DCP_UDP, CRD_DCP_NRT);
            s.allocator.fail_at = s.allocator.allocations + fail_at;
            s.allocator.once = once;
            st = make_and_run(&s);
            if (st != CRD_OK) { check_status(st, CRD_E_MEMORY); }
            for (int i = 0; i < 2; i++) {
                check_int(session_state(&s, i), CRD_DCP_ALIVE);
            }
            s.allocator.fail_at = -1;
            session_close(&s);
        }
        check(tries > 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            whatever_the_network_does_each_step_is_done_once_and_all_are_ALIVE_at_the_end),
        cmocka_unit_test(damaged_packets_neither_end_a_session_nor_keep_it_from_its_end),
        cmocka_unit_test(one_that_dies_anywhere_is_named_and_the_others_are_brought_down),
        cmocka_unit_test(patience_is_for_progress_and_not_for_life),
        cmocka_unit_test(one_that_is_restarted_is_found_out),
        cmocka_unit_test(slaves_of_an_earlier_session_are_taken_over_whatever_their_id_was),
        cmocka_unit_test(a_slave_that_runs_for_another_master_is_left_alone_unless_it_is_forced),
        cmocka_unit_test(a_slave_that_another_host_has_registered_cannot_be_taken_over),
        cmocka_unit_test(without_take_over_a_registered_slave_is_named),
        cmocka_unit_test(nobody_at_home_is_said_in_time),
        cmocka_unit_test(a_slave_that_starts_late_is_waited_for),
        cmocka_unit_test(whatever_is_refused_is_said_with_its_code_and_the_other_comes_down),
        cmocka_unit_test(one_that_refuses_to_stop_is_named_and_given_up),
        cmocka_unit_test(what_may_be_refused_does_not_matter),
        cmocka_unit_test(a_slave_in_error_is_told_with_its_code_and_the_others_come_down),
        cmocka_unit_test(a_slave_that_stops_by_itself_is_told),
        cmocka_unit_test(who_is_cancelled_says_so_and_can_still_be_stopped),
        cmocka_unit_test(outputs_that_are_lost_are_an_error_where_nothing_may_be_lost),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
