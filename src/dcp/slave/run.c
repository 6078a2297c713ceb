// The slave's way through the states and through time.
#include "dcp/slave/slave.h"

#include <math.h>

enum { STEPS_AT_ONCE = 1000 };          // of one call, however far the time has jumped
static const double clock_error = 1e-6; // s: what a double leaves of the time since 1970

// ---- states ------------------------------------------------------------------------------------

static void enter_state(crd_dcp_slave* s, crd_dcp_state state)
{
    s->state = state;
    s->entry++;
    // A step goes on while a real-time slave goes from SYNCHRONIZING to RUNNING.
    if (state != CRD_DCP_SYNCHRONIZED && state != CRD_DCP_RUNNING) { s->pending = CRDI_NOTHING; }
    crdi_dcp_slave_send_pdu(s, &s->master,
                            &(crdi_dcp_pdu){.type = CRDI_DCP_NTF_STATE_CHANGED,
                                            .peer = s->id,
                                            .state = (uint8_t)state});
}

// Whether who listens at `a` gets what is sent to `b`.
static bool covers_address(const crd_dcp_address* a, const crd_dcp_address* b)
{
    return a->port == b->port && a->transport == b->transport && (a->ip == b->ip || a->ip == 0);
}

// Data come in where the master says; some of it through the socket that is open for requests.
static bool open_sources(crd_dcp_slave* s)
{
    for (int i = 0; s->link.listen && i < s->group_count; i++) {
        const crdi_dcp_group* g = &s->groups[i];
        bool open = !g->has_source || covers_address(&s->control, &g->source);
        for (int k = 0; k < i && !open; k++) {
            open = s->groups[k].has_source && covers_address(&s->groups[k].source, &g->source);
        }
        if (!open && !s->link.listen(s->link.user, &g->source)) { return false; }
    }
    return true;
}

static bool connect_targets(crd_dcp_slave* s)
{
    for (int i = 0; s->link.connect && i < s->group_count; i++) {
        const crdi_dcp_group* g = &s->groups[i];
        for (int k = 0; k < g->target_count; k++) {
            if (g->targets[k].transport == CRD_DCP_TCP &&
                !s->link.connect(s->link.user, &g->targets[k])) {
                return false;
            }
        }
    }
    return true;
}

static void send_scope(crd_dcp_slave* s, crdi_dcp_scope scope)
{
    const uint64_t entry = s->entry;
    for (int i = 0; i < s->group_count && s->entry == entry; i++) {
        crdi_dcp_group* g = &s->groups[i];
        if (g->out.count > 0 && (g->scope == CRDI_DCP_ALWAYS || g->scope == scope)) {
            crdi_dcp_send_group(s, g);
        }
    }
}

// What a state has to do before the plant's part. A fault inside moves the slave on.
static void begin_duty(crd_dcp_slave* s)
{
    switch (s->state) {
    case CRD_DCP_PREPARING:
        s->worn = true;
        if (!open_sources(s)) {
            crdi_dcp_slave_fault(s, CRD_DCP_E_INVALID_NETWORK_INFORMATION);
            return;
        }
        crdi_dcp_latch(s, false);
        break;
    case CRD_DCP_CONFIGURING:
        if (!connect_targets(s)) { crdi_dcp_slave_fault(s, CRD_DCP_E_INVALID_NETWORK_INFORMATION); }
        break;
    case CRD_DCP_INITIALIZING:
    case CRD_DCP_SYNCHRONIZING:
    case CRD_DCP_COMPUTING:
        crdi_dcp_latch(s, true);
        break;
    case CRD_DCP_SENDING_I:
        send_scope(s, CRDI_DCP_INITIALIZATION);
        break;
    case CRD_DCP_SENDING_D:
        send_scope(s, CRDI_DCP_RUN);
        break;
    default:
        break;
    }
}

static crd_dcp_outcome plant_step(crd_dcp_slave* s, uint32_t steps)
{
    if (!s->plant.step) { return CRD_DCP_DONE; }
    crdi_dcp_slave_flush(s);
    return s->plant.step(s->plant.user, s->steps_done, steps, s->resolution);
}

static crd_dcp_outcome plant_duty(crd_dcp_slave* s)
{
    switch (s->state) {
    case CRD_DCP_COMPUTING:
        return plant_step(s, s->do_steps);
    case CRD_DCP_SENDING_I:
    case CRD_DCP_SENDING_D:
        return CRD_DCP_DONE;
    default:
        if (!s->plant.enter) { return CRD_DCP_DONE; }
        crdi_dcp_slave_flush(s);
        return s->plant.enter(s->plant.user, s->state, s->now);
    }
}

static void count_steps(crd_dcp_slave* s, uint32_t steps)
{
    s->steps_done += steps;
    s->counts.steps += steps;
}

// The duty of the state is done: on to the next one.
static void leave_state(crd_dcp_slave* s)
{
    switch (s->state) {
    case CRD_DCP_CONFIGURATION:
        s->worn = false;
        return;
    case CRD_DCP_ERRORHANDLING:
        enter_state(
            s, (crd_dcp_state)crdi_dcp_next_state_event(s->state, CRDI_DCP_SIG_RESOLVED, s->state));
        return;
    case CRD_DCP_SYNCHRONIZING:
        if (s->mode != CRD_DCP_NRT && s->now < s->start) { return; } // advance goes on
        break;
    case CRD_DCP_COMPUTING:
        count_steps(s, s->do_steps);
        break;
    default:
        break;
    }
    enter_state(s,
                (crd_dcp_state)crdi_dcp_next_state_event(s->state, CRDI_DCP_SIG_DONE, s->from_run));
    // Back from a step, and synchronizing came to its end in the meantime.
    if (s->state == CRD_DCP_SYNCHRONIZING && !s->synchronizing) { leave_state(s); }
}

static void end_duty(crd_dcp_slave* s, crd_dcp_outcome outcome)
{
    if (outcome == CRD_DCP_LATER ||
        (outcome != CRD_DCP_DONE && s->state == CRD_DCP_ERRORHANDLING)) {
        if (s->state == CRD_DCP_SYNCHRONIZING) {
            s->synchronizing = true;
        } else { // also where making safe has failed: no way out but done
            s->pending = s->state == CRD_DCP_COMPUTING ? CRDI_STEP : CRDI_DUTY;
        }
    } else if (outcome == CRD_DCP_DONE) {
        leave_state(s);
    } else {
        crdi_dcp_slave_fault(s, CRD_DCP_E_GENERIC);
    }
}

// Enters a state and does what has to be done there.
static void go_to_state(crd_dcp_slave* s, crd_dcp_state state)
{
    enter_state(s, state);
    const uint64_t entry = s->entry;
    begin_duty(s);
    if (s->entry != entry) { return; }
    const crd_dcp_outcome outcome = plant_duty(s);
    if (s->entry == entry) { end_duty(s, outcome); }
}

void crdi_dcp_slave_fault(crd_dcp_slave* s, crd_dcp_error code)
{
    if (crdi_dcp_next_state_event(s->state, CRDI_DCP_SIG_ERROR, s->state) < 0) { return; }
    s->error = code;
    s->synchronizing = false;
    go_to_state(s, CRD_DCP_ERRORHANDLING);
}

static void stop_run(crd_dcp_slave* s)
{
    s->synchronizing = false;
    go_to_state(s, CRD_DCP_STOPPING);
}

// ---- state changes -----------------------------------------------------------------------------

static void forget_configuration(crd_dcp_slave* s)
{
    if (s->link.close) { s->link.close(s->link.user); }
    crdi_dcp_unconfigure(s);
    s->error = CRD_DCP_NONE;
}

// CONFIGURATION again or for the first time. A plant that has been used goes back to its start.
static void go_to_configuration(crd_dcp_slave* s)
{
    s->beat = s->now;
    s->configurations++;
    if (s->worn) {
        go_to_state(s, CRD_DCP_CONFIGURATION);
    } else {
        enter_state(s, CRD_DCP_CONFIGURATION);
    }
}

static void register_at(crd_dcp_slave* s, const crd_dcp_address* from, const crd_dcp_address* at,
                        const crdi_dcp_pdu* p)
{
    s->id = p->peer;
    s->mode = p->op_mode;
    s->registered = s->last = p->seq;
    s->rewind = false;
    s->master = *from;
    s->control = *at;
    go_to_configuration(s);
}

static void deregister(crd_dcp_slave* s)
{
    enter_state(s, CRD_DCP_ALIVE);
    forget_configuration(s);
    s->log_count = 0;
    s->id = 0;
    s->mode = CRD_DCP_NRT;
}

// The first STC_run sets the grid of steps, the second one moves it if it names a time. Groups
// begin with it, so that slaves with equal times send at equal times.
static void set_grid(crd_dcp_slave* s, int64_t time)
{
    if (time == 0 && s->state == CRD_DCP_SYNCHRONIZED) { return; }
    s->start = time == 0 ? s->now : (double)time;
    s->grid = 0;
    for (int i = 0; i < s->group_count; i++) {
        s->groups[i].phase = 0;
    }
}

static void start_run(crd_dcp_slave* s, const crdi_dcp_pdu* p)
{
    if (s->mode != CRD_DCP_NRT) { set_grid(s, p->time); }
    if (s->state == CRD_DCP_SYNCHRONIZED) {
        enter_state(s, CRD_DCP_RUNNING);
    } else {
        go_to_state(s, CRD_DCP_SYNCHRONIZING);
    }
}

static void reset_run(crd_dcp_slave* s)
{
    s->resolution = (double)s->numerator / (double)s->denominator;
    s->steps_done = 0;
    s->first_steps = 0;
    s->synchronizing = false;
}

void crdi_dcp_change(crd_dcp_slave* s, const crd_dcp_address* from, const crd_dcp_address* at,
                     const crdi_dcp_pdu* p)
{
    const crd_dcp_state to = (crd_dcp_state)crdi_dcp_next_state(s->state, p->type, s->mode);
    switch (p->type) {
    case CRDI_DCP_STC_REGISTER:
        register_at(s, from, at, p);
        break;
    case CRDI_DCP_STC_DEREGISTER:
        deregister(s);
        break;
    case CRDI_DCP_STC_PREPARE:
        reset_run(s);
        go_to_state(s, to);
        break;
    case CRDI_DCP_STC_RUN:
        start_run(s, p);
        break;
    case CRDI_DCP_STC_DO_STEP:
        s->from_run = s->state;
        s->do_steps = p->steps;
        if (s->first_steps == 0) { s->first_steps = p->steps; }
        go_to_state(s, to);
        break;
    case CRDI_DCP_STC_STOP:
        stop_run(s);
        break;
    case CRDI_DCP_STC_RESET:
        forget_configuration(s);
        s->rewind = true;
        go_to_configuration(s);
        break;
    default:
        go_to_state(s, to);
        break;
    }
}

// ---- time --------------------------------------------------------------------------------------

static bool real_time(const crd_dcp_slave* s)
{
    return s->mode != CRD_DCP_NRT && s->state >= CRD_DCP_SYNCHRONIZING &&
           s->state <= CRD_DCP_RUNNING;
}

static double heartbeat_until(const crd_dcp_slave* s)
{
    const bool watched = s->state != CRD_DCP_ALIVE && s->state < CRD_DCP_ERRORHANDLING;
    return watched ? s->beat + crdi_dcp_heartbeat(s->d) : INFINITY;
}

static double synchronized_at(const crd_dcp_slave* s)
{
    const bool waits = real_time(s) && s->state == CRD_DCP_SYNCHRONIZING && !s->synchronizing;
    return waits ? s->start : INFINITY;
}

static double step_time(const crd_dcp_slave* s)
{
    return s->start + (double)s->grid * s->resolution;
}

static double step_due(const crd_dcp_slave* s)
{
    return real_time(s) && s->pending == CRDI_NOTHING ? step_time(s) : INFINITY;
}

// HRT: when a step that is under way has kept the next one waiting for too long.
static double step_until(const crd_dcp_slave* s)
{
    if (s->mode != CRD_DCP_HRT || !real_time(s) || s->pending != CRDI_STEP) { return INFINITY; }
    return step_time(s) + s->resolution + clock_error;
}

static void end_real_time_step(crd_dcp_slave* s)
{
    count_steps(s, 1);
    const uint64_t entry = s->entry;
    for (int i = 0; i < s->group_count && s->entry == entry; i++) {
        crdi_dcp_group* g = &s->groups[i];
        if (g->out.count == 0 || g->scope == CRDI_DCP_INITIALIZATION || ++g->phase < g->steps) {
            continue;
        }
        g->phase = 0;
        crdi_dcp_send_group(s, g);
    }
}

static void step_in_real_time(crd_dcp_slave* s)
{
    if (s->now > step_time(s) + s->resolution + clock_error) {
        s->counts.late_steps++;
        if (s->mode == CRD_DCP_HRT) {
            crdi_dcp_slave_fault(s, CRD_DCP_E_GENERIC);
            return;
        }
    }
    s->grid++;
    const uint64_t entry = s->entry;
    crdi_dcp_latch(s, true);
    if (s->entry != entry) { return; }
    const crd_dcp_outcome outcome = plant_step(s, 1);
    if (s->entry != entry) { return; }
    if (outcome == CRD_DCP_DONE) {
        end_real_time_step(s);
    } else if (outcome == CRD_DCP_LATER) {
        s->pending = CRDI_STEP;
    } else {
        crdi_dcp_slave_fault(s, CRD_DCP_E_GENERIC);
    }
}

static double plant_at(const crd_dcp_slave* s)
{
    return s->plant.next ? s->plant.next(s->plant.user) : INFINITY;
}

// The earliest thing that is due; false: nothing is.
static bool do_next(crd_dcp_slave* s)
{
    const double beat = heartbeat_until(s), until = step_until(s);
    const double synchronized = synchronized_at(s), due = step_due(s), plant = plant_at(s);
    if (plant <= s->now && plant <= fmin(fmin(beat, until), fmin(synchronized, due))) {
        s->plant.advance(s->plant.user, s->now);
    } else if (beat < s->now && beat < fmin(synchronized, due)) {
        crdi_dcp_slave_fault(s, CRD_DCP_E_HEARTBEAT_MISSED);
    } else if (until < s->now) {
        s->counts.late_steps++;
        crdi_dcp_slave_fault(s, CRD_DCP_E_GENERIC);
    } else if (synchronized <= s->now && synchronized <= due) {
        leave_state(s);
    } else if (due <= s->now) {
        step_in_real_time(s);
    } else {
        return false;
    }
    return true;
}

void crdi_dcp_slave_clock(crd_dcp_slave* s, double now)
{
    if (now > s->now && isfinite(now)) { s->now = now; }
}

void crd_dcp_slave_advance(crd_dcp_slave* s, double now)
{
    crdi_dcp_slave_clock(s, now);
    crdi_dcp_slave_hold(s);
    for (int i = 0; i < STEPS_AT_ONCE && do_next(s); i++) {}
    crdi_dcp_slave_release(s);
}

double crd_dcp_slave_next(const crd_dcp_slave* s)
{
    const double late = fmin(heartbeat_until(s), step_until(s)); // passed only behind it
    const double own = fmin(synchronized_at(s), step_due(s));
    return fmin(fmin(nextafter(late, INFINITY), plant_at(s)), own);
}

void crd_dcp_slave_done(crd_dcp_slave* s, crd_dcp_outcome outcome, double now)
{
    if (outcome == CRD_DCP_LATER) { return; }
    crdi_dcp_slave_clock(s, now);
    crdi_dcp_slave_hold(s);
    const bool real_time_step = s->pending == CRDI_STEP && s->state != CRD_DCP_COMPUTING;
    if (s->pending != CRDI_NOTHING) {
        s->pending = CRDI_NOTHING;
        if (!real_time_step) {
            end_duty(s, outcome);
        } else if (outcome == CRD_DCP_DONE) {
            end_real_time_step(s);
        } else {
            crdi_dcp_slave_fault(s, CRD_DCP_E_GENERIC);
        }
    } else if (s->synchronizing) { // perhaps while a step is looked at
        s->synchronizing = false;
        if (outcome != CRD_DCP_DONE) {
            crdi_dcp_slave_fault(s, CRD_DCP_E_GENERIC);
        } else if (s->state == CRD_DCP_SYNCHRONIZING) {
            leave_state(s);
        }
    }
    crd_dcp_slave_advance(s, now);
    crdi_dcp_slave_release(s);
}

void crd_dcp_slave_fault(crd_dcp_slave* s, crd_dcp_error code, double now)
{
    crdi_dcp_slave_clock(s, now);
    crdi_dcp_slave_hold(s);
    crdi_dcp_slave_fault(s, code);
    crdi_dcp_slave_release(s);
}

void crd_dcp_slave_stop(crd_dcp_slave* s, double now)
{
    crdi_dcp_slave_clock(s, now);
    crdi_dcp_slave_hold(s);
    if (crdi_dcp_next_state_event(s->state, CRDI_DCP_SIG_STOP, s->state) >= 0) { stop_run(s); }
    crdi_dcp_slave_release(s);
}
