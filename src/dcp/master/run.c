// The phases of a session.
#include "dcp/master/master.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "dcp/net/net.h"

enum { MOST_LOGS = 100 }; // questions for a log at the end

// ---- aims --------------------------------------------------------------------------------------

// What is left in a log that has to be asked for; once deregistered, the slave forgets it.
static bool last_logs(crd_dcp_master* m, crdi_dcp_peer* p)
{
    const bool more = p->log_mode == 1 && p->prepared && p->logs_asked < MOST_LOGS &&
                      p->logs_empty < p->d->category_count;
    if (more) { crdi_dcp_ask_log(m, p); }
    return more;
}

static bool aim_down(crd_dcp_master* m, crdi_dcp_peer* p)
{
    const crd_dcp_state state = p->status.state;
    if (!p->known) {
        if (!crdi_dcp_asks(p, CRDI_DCP_INF_STATE)) {
            crdi_dcp_ask(m, p, &(crdi_dcp_pdu){.type = CRDI_DCP_INF_STATE});
        }
        return false;
    }
    switch (state) {
    case CRD_DCP_ALIVE:
        p->registered = p->touched = false;
        return true;
    case CRD_DCP_CONFIGURATION:
    case CRD_DCP_STOPPED:
    case CRD_DCP_ERRORRESOLVED:
        if (last_logs(m, p)) { return false; }
        crdi_dcp_begin(m, p, CRDI_DCP_STC_DEREGISTER, state, CRD_DCP_ALIVE, CRD_DCP_ALIVE);
        return false;
    case CRD_DCP_STOPPING:
        crdi_dcp_begin(m, p, 0, state, CRD_DCP_STOPPED, CRD_DCP_STOPPED);
        return false;
    case CRD_DCP_ERRORHANDLING:
        crdi_dcp_begin(m, p, 0, state, CRD_DCP_ERRORRESOLVED, CRD_DCP_ERRORRESOLVED);
        return false;
    default:
        crdi_dcp_begin(m, p, CRDI_DCP_STC_STOP, state, CRD_DCP_STOPPING, CRD_DCP_STOPPED);
        return false;
    }
}

// Whatever turns, also for the sake of conditioning.
static bool aim_at_rest(crd_dcp_master* m, crdi_dcp_peer* p)
{
    const crd_dcp_state state = p->status.state;
    const bool busy = (state > CRD_DCP_CONFIGURATION && state < CRD_DCP_STOPPED) ||
                      state == CRD_DCP_ERRORHANDLING;
    return p->known && !busy ? true : aim_down(m, p);
}

// Whether a slave that somebody has registered may be brought down.
static bool may_take_over(crd_dcp_master* m, crdi_dcp_peer* p)
{
    const char* state = crd_dcp_state_name((int)p->status.state);
    if (!m->opt.take_over) {
        crdi_dcp_peer_fail(m, p, "the DCP slave is in %s, registered by another master as slave %d",
                           state, p->id);
        return false;
    }
    if (crdi_dcp_in_run(p->status.state) && !m->opt.force) {
        crdi_dcp_peer_fail(m, p,
                           "the DCP slave is in %s, in a run of another master as slave %d: it is "
                           "left alone unless the take-over is forced (session.force)",
                           state, p->id);
        return false;
    }
    crdi_dcp_notify(m, p, CRD_DCP_NOTICE_REPAIR, CRD_DCP_NONE,
                    "the slave is in %s as slave %d of an earlier session: taken over", state,
                    p->id);
    return true;
}

enum { CONTACT, CONTACTING, DECIDE, TAKE_OVER, REGISTER, REGISTERED };

static bool aim_register(crd_dcp_master* m, crdi_dcp_peer* p)
{
    switch (p->phase) {
    case CONTACT:
        p->phase = CONTACTING;
        p->contacting = true;
        p->contact_until = m->now + m->opt.contact;
        crdi_dcp_ask(m, p, &(crdi_dcp_pdu){.type = CRDI_DCP_INF_STATE});
        return false;
    case CONTACTING:
        if (p->known && !p->contacting) { p->phase = DECIDE; }
        return false;
    case DECIDE:
        if (p->status.state == CRD_DCP_ALIVE) {
            p->id = p->own_id;
            p->touched = true;
            p->phase = REGISTERED;
            crdi_dcp_begin(m, p, CRDI_DCP_STC_REGISTER, CRD_DCP_ALIVE, CRD_DCP_CONFIGURATION,
                           CRD_DCP_CONFIGURATION);
        } else if (may_take_over(m, p)) {
            p->going_down = p->touched = true;
            p->phase = TAKE_OVER;
        }
        return false;
    case TAKE_OVER:
        if (aim_down(m, p)) {
            p->going_down = false;
            p->phase = DECIDE;
        }
        return false;
    default:
        p->registered = true;
        p->beat = m->now + p->beat_pause;
        p->log_at = m->now + 1;
        crdi_dcp_wake(m, p, p->beat);
        return true;
    }
}

static bool aim_script(crd_dcp_master* m, crdi_dcp_peer* p)
{
    while (p->script_next < p->script_count && p->outbox_count < p->window) {
        crdi_dcp_push(m, p, &p->script[p->script_next++]);
    }
    if (p->script_next < p->script_count) { return false; }
    for (int i = 0; i < p->outbox_count; i++) { // a heartbeat may stay
        if (crdi_dcp_request_bytes(&p->outbox[i])[0] < CRDI_DCP_INF_STATE) { return false; }
    }
    return true;
}

// A change of state as an aim: begun at first, reached when it is over.
static bool aim_change(crd_dcp_master* m, crdi_dcp_peer* p, uint8_t type, crd_dcp_state from,
                       crd_dcp_state via, crd_dcp_state to)
{
    if (p->phase++ > 0) { return true; }
    crdi_dcp_begin(m, p, type, from, via, to);
    return false;
}

static bool aim_prepared(crd_dcp_master* m, crdi_dcp_peer* p)
{
    p->prepared = aim_change(m, p, CRDI_DCP_STC_PREPARE, CRD_DCP_CONFIGURATION, CRD_DCP_PREPARING,
                             CRD_DCP_PREPARED);
    return p->prepared;
}

static bool aim_configured(crd_dcp_master* m, crdi_dcp_peer* p)
{
    return aim_change(m, p, CRDI_DCP_STC_CONFIGURE, CRD_DCP_PREPARED, CRD_DCP_CONFIGURING,
                      CRD_DCP_CONFIGURED);
}

// The last phase of a turn: the data that the slave has sent.
static bool data_are_there(crd_dcp_master* m, crdi_dcp_peer* p)
{
    if (!crdi_dcp_fresh(m, p)) {
        if (isinf(p->data_until)) {
            p->data_until = m->now + m->opt.timeout;
            crdi_dcp_wake(m, p, p->data_until);
            return false;
        }
        if (m->now < p->data_until) { return false; }
        if (m->opt.lossless && p->spec.mode == CRD_DCP_NRT) {
            crdi_dcp_peer_fail(m, p,
                               "the DCP slave has sent its outputs, but not all came within "
                               "%g s: the network loses data; over TCP it does not, and 'session: "
                               "{ lossy: true }' goes on with the last values",
                               m->opt.timeout);
            return false;
        }
        crdi_dcp_notify(m, p, CRD_DCP_NOTICE_LOSS, CRD_DCP_NONE,
                        "outputs did not come within %g s: the last values stay", m->opt.timeout);
    }
    p->data_until = INFINITY;
    crdi_dcp_turn_over(m, p);
    return true;
}

// A turn: the slave computes, is asked for its outputs, and these arrive.
static bool aim_turn(crd_dcp_master* m, crdi_dcp_peer* p, const crdi_dcp_operation turn[2])
{
    if (p->phase >= 2) { return data_are_there(m, p); }
    const crdi_dcp_operation* o = &turn[p->phase++];
    crdi_dcp_begin(m, p, o->type, o->from, o->via, o->to);
    return false;
}

static bool aim_initialized(crd_dcp_master* m, crdi_dcp_peer* p)
{
    static const crdi_dcp_operation turn[2] = {{.type = CRDI_DCP_STC_INITIALIZE,
                                                .from = CRD_DCP_CONFIGURED,
                                                .via = CRD_DCP_INITIALIZING,
                                                .to = CRD_DCP_INITIALIZED},
                                               {.type = CRDI_DCP_STC_SEND_OUTPUTS,
                                                .from = CRD_DCP_INITIALIZED,
                                                .via = CRD_DCP_SENDING_I,
                                                .to = CRD_DCP_CONFIGURED}};
    return aim_turn(m, p, turn);
}

static bool aim_step(crd_dcp_master* m, crdi_dcp_peer* p)
{
    static const crdi_dcp_operation turn[2] = {{.type = CRDI_DCP_STC_DO_STEP,
                                                .from = CRD_DCP_RUNNING,
                                                .via = CRD_DCP_COMPUTING,
                                                .to = CRD_DCP_COMPUTED},
                                               {.type = CRDI_DCP_STC_SEND_OUTPUTS,
                                                .from = CRD_DCP_COMPUTED,
                                                .via = CRD_DCP_SENDING_D,
                                                .to = CRD_DCP_RUNNING}};
    return aim_turn(m, p, turn);
}

static bool aim_synchronized(crd_dcp_master* m, crdi_dcp_peer* p)
{
    if (p->phase == 0) { p->op.time = p->spec.mode == CRD_DCP_NRT ? 0 : m->run_time; }
    const bool reached = aim_change(m, p, CRDI_DCP_STC_RUN, CRD_DCP_CONFIGURED,
                                    CRD_DCP_SYNCHRONIZING, CRD_DCP_SYNCHRONIZED);
    if (!reached) { p->op.until += m->run_lead; }
    return reached;
}

static bool aim_running(crd_dcp_master* m, crdi_dcp_peer* p)
{
    if (p->phase == 0) { p->op.time = 0; } // goes on in the grid that the first one has set
    return aim_change(m, p, CRDI_DCP_STC_RUN, CRD_DCP_SYNCHRONIZED, CRD_DCP_RUNNING,
                      CRD_DCP_RUNNING);
}

// ---- up ----------------------------------------------------------------------------------------

static crd_status all_at(crd_dcp_master* m, crdi_dcp_aim* aim)
{
    (void)crdi_dcp_master_clock(m);
    for (int i = 0; i < m->count; i++) {
        crdi_dcp_aim_at(m, &m->peers[i], aim);
    }
    return crdi_dcp_pursue(m, -1, false);
}

// As if nothing had come.
static void begin_again(crd_dcp_master* m, crdi_dcp_peer* p)
{
    crdi_dcp_forget(p);
    p->aim = NULL;
    p->known = p->registered = p->touched = p->prepared = p->going_down = p->failed = false;
    p->doubts = p->errors_refused = 0;
    p->id = p->own_id;
    p->window = p->spec.control.transport == CRD_DCP_TCP ? CRDI_DCP_WINDOW : 1;
    p->retries = m->opt.retries;
    p->first_steps = 0;
    p->reason[0] = 0;
    // Not 0 as everybody else's, so that it is no other master's next number by accident.
    p->seq = (uint16_t)((uint64_t)llround(fmod(fabs(m->now), 1e6) * 1e3) * 7919U +
                        (uint64_t)p->index * 257U + 1U);
    p->status.state = CRD_DCP_ALIVE;
    p->status.error = CRD_DCP_NONE;
    p->status.lost = false;
}

// Streams for data: the receivers listen since they are PREPARED.
static crd_status connect_data(crd_dcp_master* m)
{
    for (int i = 0; i < m->bundle_count; i++) {
        const crdi_dcp_bundle* b = &m->bundles[i];
        if ((b->kind != CRDI_FEED && b->kind != CRDI_TUNE) || b->address.transport != CRD_DCP_TCP) {
            continue;
        }
        const crd_status st = crdi_dcp_net_connect(m->net, &b->address);
        if (st < 0) { return crdi_fail_in(m->ctx, st, "%s", m->peers[b->slave].spec.name); }
    }
    return CRD_OK;
}

static crd_status master_run_bring_up(crd_dcp_master* m)
{
    crd_status st = CRD_OK;
    CRD_TRY(crdi_dcp_master_lay_out(m));
    CRD_TRY(crdi_dcp_master_write_scripts(m, false));
    CRD_TRY(all_at(m, aim_register));
    CRD_TRY(all_at(m, aim_script));
    CRD_TRY(crdi_dcp_master_write_scripts(m, true));
    CRD_TRY(all_at(m, aim_script));
    CRD_TRY(all_at(m, aim_prepared));
    CRD_TRY(connect_data(m));
    CRD_TRY(all_at(m, aim_configured));
    m->progress = CRDI_READY;
fail:
    return st;
}

crd_status crd_dcp_master_configure(crd_dcp_master* m)
{
    if (m->progress != CRDI_PLANNED) {
        return crdi_fail(m->ctx, CRD_E_STATE,
                         "the DCP session is configured already: stop it first");
    }
    (void)crdi_dcp_master_clock(m);
    m->failed = -1;
    m->due = INFINITY;
    for (int i = 0; i < m->count; i++) {
        begin_again(m, &m->peers[i]);
    }
    const crd_status st = master_run_bring_up(m);
    if (st == CRD_OK) { return st; }
    char why[CRDI_DCP_REASON];
    snprintf(why, sizeof why, "%s", crd_error_text(m->ctx));
    (void)crd_dcp_master_stop(m);
    return st == CRD_E_MEMORY ? st : crdi_fail(m->ctx, st, "%s", why);
}

// ---- on ----------------------------------------------------------------------------------------

static crd_status check_slave(crd_dcp_master* m, int slave, crdi_dcp_progress least,
                              crdi_dcp_progress most, const char* what)
{
    if (slave < 0 || slave >= m->count) {
        return crdi_fail(m->ctx, CRD_E_RANGE, "DCP master: %s of slave %d, but there are %d", what,
                         slave, m->count);
    }
    if (m->failed >= 0) { return crdi_dcp_failure(m); }
    if (m->progress < least || m->progress > most) {
        return crdi_fail(m->ctx, CRD_E_STATE, "%s: %s, but the DCP session is %s",
                         m->peers[slave].spec.name, what,
                         m->progress == CRDI_PLANNED ? "not configured"
                         : m->progress == CRDI_READY ? "not running"
                                                     : "running already");
    }
    return CRD_OK;
}

static void send_inputs(crd_dcp_master* m, crdi_dcp_peer* p)
{
    for (int i = 0; i < p->feed_count; i++) {
        crdi_dcp_bundle_send(m, &m->bundles[p->feeds[i]]);
    }
}

crd_status crd_dcp_master_initialize(crd_dcp_master* m, int slave)
{
    const int first = slave < 0 ? 0 : slave, last = slave < 0 ? m->count - 1 : slave;
    (void)crdi_dcp_master_clock(m);
    for (int i = first; i <= last; i++) {
        const crd_status st = check_slave(m, i, CRDI_READY, CRDI_READY, "initialisation");
        if (st < 0) { return st; }
    }
    crdi_dcp_net_hold(m->net, true);
    for (int i = first; i <= last; i++) {
        send_inputs(m, &m->peers[i]);
    }
    for (int i = first; i <= last; i++) {
        crdi_dcp_aim_at(m, &m->peers[i], aim_initialized);
    }
    crdi_dcp_net_hold(m->net, false);
    return crdi_dcp_pursue(m, slave < 0 ? -1 : slave, false);
}

crd_status crd_dcp_master_announce(crd_dcp_master* m, int64_t time)
{
    const double now = crdi_dcp_master_clock(m);
    for (int i = 0; i < m->count; i++) {
        const crd_status st = check_slave(m, i, CRDI_READY, CRDI_READY, "run");
        if (st < 0) { return st; }
    }
    // SYNCHRONIZING lasts until then: nobody makes a step before.
    m->run_time = time;
    m->run_lead = time > 0 ? fmax(0, (double)time - now) + 1 : 0;
    for (int i = 0; i < m->count; i++) {
        if (m->peers[i].spec.mode != CRD_DCP_NRT) { send_inputs(m, &m->peers[i]); }
    }
    m->progress = CRDI_RUNS;
    for (int i = 0; i < m->count; i++) {
        crdi_dcp_aim_at(m, &m->peers[i], aim_synchronized);
    }
    return CRD_OK;
}

crd_status crd_dcp_master_go(crd_dcp_master* m)
{
    const crd_status st = crdi_dcp_pursue(m, -1, false);
    return st < 0 ? st : all_at(m, aim_running);
}

crd_status crd_dcp_master_run(crd_dcp_master* m, double lead, double* start)
{
    crd_status st = CRD_OK;
    const double now = crdi_dcp_master_clock(m);
    if (!(lead >= 0 && lead <= 1e6)) {
        return crdi_fail(m->ctx, CRD_E_RANGE, "DCP master: a run %g s ahead, expected 0 to 1e6",
                         lead);
    }
    CRD_TRY(crd_dcp_master_announce(m, lead > 0 ? (int64_t)ceil(now + lead) : 0));
    CRD_TRY(crd_dcp_master_go(m));
    if (start) { *start = lead > 0 ? (double)m->run_time : now; }
fail:
    return st;
}

crd_status crd_dcp_master_send(crd_dcp_master* m, int slave)
{
    const crd_status st = check_slave(m, slave, CRDI_READY, CRDI_RUNS, "inputs");
    if (st == CRD_OK) { send_inputs(m, &m->peers[slave]); }
    return st;
}

crd_status crd_dcp_master_tune(crd_dcp_master* m, int slave, int group)
{
    const crd_status st = check_slave(m, slave, CRDI_READY, CRDI_RUNS, "parameters");
    if (st < 0) { return st; }
    crdi_dcp_peer* p = &m->peers[slave];
    bool found = false;
    for (int i = 0; i < p->tune_count; i++) {
        crdi_dcp_bundle* b = &m->bundles[p->tunes[i]];
        if (b->group != group) { continue; }
        found = true;
        crdi_dcp_bundle_send(m, b);
    }
    if (found) { return CRD_OK; }
    return crdi_fail(m->ctx, CRD_E_RANGE, "%s: there is no group %d of tunable parameters",
                     p->spec.name, group);
}

static crd_status master_run_check_steps(crd_dcp_master* m, const crdi_dcp_peer* p, uint32_t steps)
{
    const crd_dcp_description* d = p->d;
    if (!crdi_dcp_nrt_steps_fit(d, steps)) {
        const uint32_t least = d->nrt_fixed_steps ? d->nrt_default_steps : d->nrt_min_steps;
        const uint32_t most = d->nrt_fixed_steps ? d->nrt_default_steps : d->nrt_max_steps;
        return crdi_fail(m->ctx, CRD_E_RANGE, "%s: %u resolutions in a step, expected %u to %u",
                         p->spec.name, steps, least, most);
    }
    if (!d->can_vary_steps && p->first_steps && steps != p->first_steps) {
        return crdi_fail(m->ctx, CRD_E_RANGE,
                         "%s: %u resolutions in a step behind %u: its steps must be equal",
                         p->spec.name, steps, p->first_steps);
    }
    return CRD_OK;
}

crd_status crd_dcp_master_begin_step(crd_dcp_master* m, int slave, uint32_t steps)
{
    crd_status st = CRD_OK;
    CRD_TRY(check_slave(m, slave, CRDI_RUNS, CRDI_RUNS, "a step"));
    crdi_dcp_peer* p = &m->peers[slave];
    if (p->spec.mode != CRD_DCP_NRT || p->aim) {
        return crdi_fail(m->ctx, CRD_E_STATE, "%s: a step is begun, but %s", p->spec.name,
                         p->aim ? "the last one is not ended" : "it is not in NRT");
    }
    if (p->first_steps != steps || steps == 0) { CRD_TRY(master_run_check_steps(m, p, steps)); }
    if (p->first_steps == 0) { p->first_steps = steps; }
    (void)crdi_dcp_master_clock(m);
    p->op.steps = steps;
    crdi_dcp_net_hold(m->net, true); // inputs and request leave together
    send_inputs(m, p);
    crdi_dcp_aim_at(m, p, aim_step);
    crdi_dcp_net_hold(m->net, false);
fail:
    return st;
}

crd_status crd_dcp_master_end_step(crd_dcp_master* m, int slave)
{
    bool done = false;
    return crd_dcp_master_end_step_until(m, slave, INFINITY, &done);
}

crd_status crd_dcp_master_end_step_until(crd_dcp_master* m, int slave, double time, bool* done)
{
    if (slave < 0 || slave >= m->count) {
        return crdi_fail(m->ctx, CRD_E_RANGE, "DCP master: slave %d, but there are %d", slave,
                         m->count);
    }
    const crd_status st = crdi_dcp_pursue_until(m, slave, false, time);
    *done = !m->peers[slave].aim;
    return st;
}

crd_status crd_dcp_master_poll(crd_dcp_master* m)
{
    crdi_dcp_pump(m);
    return m->failed >= 0 ? crdi_dcp_failure(m) : CRD_OK;
}

crd_status crd_dcp_master_wait(crd_dcp_master* m, double time)
{
    for (;;) {
        const crd_status st = crd_dcp_master_poll(m);
        if (st < 0) { return st; }
        double pause = fmin(time, m->due) - m->now;
        if (!(m->now < time)) { return CRD_OK; }
        if (m->opt.cancelled) {
            if (m->opt.cancelled(m->opt.user)) {
                return crdi_fail(m->ctx, CRD_E_UNIT, "interrupted while waiting for DCP slaves");
            }
            pause = fmin(pause, 0.1);
        }
        crd_dcp_net_wait(m->net, pause);
    }
}

// ---- from one process to another -----------------------------------------------------------

bool crdi_dcp_master_holds(const crd_dcp_master* m, int slave, crdi_dcp_hold* out)
{
    const crdi_dcp_peer* p = &m->peers[slave];
    *out = (crdi_dcp_hold){.id = p->id, .seq = p->seq, .state = p->status.state};
    return p->touched && p->status.state != CRD_DCP_ALIVE;
}

void crdi_dcp_master_adopt(crd_dcp_master* m, int slave, const crdi_dcp_hold* as)
{
    crdi_dcp_peer* p = &m->peers[slave];
    (void)crdi_dcp_master_clock(m);
    begin_again(m, p);
    p->id = p->own_id = as->id;
    p->seq = as->seq;
    p->status.state = as->state;
    p->registered = p->touched = true;
}

// ---- down --------------------------------------------------------------------------------------

static void close_streams(crd_dcp_master* m)
{
    for (int i = 0; i < m->bundle_count; i++) {
        const crdi_dcp_bundle* b = &m->bundles[i];
        if (b->address.transport == CRD_DCP_TCP && (b->kind == CRDI_FEED || b->kind == CRDI_TUNE)) {
            crd_dcp_net_close(m->net, &b->address);
        }
    }
    for (int i = 0; i < m->count; i++) {
        const crd_dcp_address* a = &m->peers[i].spec.control;
        if (a->transport == CRD_DCP_TCP) { crd_dcp_net_close(m->net, a); }
    }
}

static void turn_round(crd_dcp_master* m)
{
    (void)crdi_dcp_master_clock(m);
    m->stopping = true;
    for (int i = 0; i < m->count; i++) {
        crdi_dcp_peer* p = &m->peers[i];
        if (p->op.stage != CRDI_IDLE) { p->known = false; } // it may have gone on
        crdi_dcp_forget(p);
        p->aim = NULL;
        p->going_down = true;
        p->failed = false;
        p->logs_empty = p->logs_asked = 0;
        p->window = 1;
        if (p->status.lost) { p->retries = m->opt.retries < 2 ? m->opt.retries : 2; }
    }
}

void crd_dcp_master_halt(crd_dcp_master* m)
{
    turn_round(m);
    for (int i = 0; i < m->count; i++) {
        crdi_dcp_peer* p = &m->peers[i];
        if (p->touched) { crdi_dcp_aim_at(m, p, aim_at_rest); }
    }
}

crd_status crd_dcp_master_stop(crd_dcp_master* m)
{
    crd_dcp_master_halt(m); // all of them, before one is waited for
    (void)crdi_dcp_pursue(m, -1, true);
    for (int i = 0; i < m->count; i++) {
        crdi_dcp_peer* p = &m->peers[i];
        if (p->touched && !p->failed) { crdi_dcp_aim_at(m, p, aim_down); }
    }
    (void)crdi_dcp_pursue(m, -1, true);
    close_streams(m);
    m->stopping = false;
    m->progress = CRDI_PLANNED;
    m->failed = -1;
    for (int i = 0; i < m->count; i++) {
        crdi_dcp_peer* p = &m->peers[i];
        if (p->touched && m->failed < 0) { m->failed = i; }
        p->going_down = false;
        crdi_dcp_forget(p);
    }
    if (m->failed < 0) { return CRD_OK; }
    const crd_status st = crdi_dcp_failure(m);
    m->failed = -1;
    return st;
}
