// The course of a session: initialisation, the common start, steps, the end.
#include "unit/dcp/session.h"

#include <math.h>
#include <string.h>

crd_status crdi_session_initialize(crdi_dcp_unit* u)
{
    crdi_session* s = u->session;
    crdi_session_take_baton(s);
    crdi_session_put_inputs(u, 0);
    const crd_status st = crd_dcp_master_initialize(s->master, u->slave);
    if (st >= 0) { crdi_session_get_outputs(u); }
    (void)crdi_session_word_failure(u, st);
    crdi_session_give_baton(s);
    return st;
}

// Seconds between two data PDUs of the slave.
static double period_of(const crdi_dcp_unit* u)
{
    return u->resolution * fmax(1, u->base.spec->session.steps);
}

// Slaves in real time begin together, and their grid is that of the run. The clock of the net goes
// on with the monotonic one.
static void note_start(crdi_session* s)
{
    const int64_t now_ns = crdi_session_now();
    const double ahead = s->start - crd_dcp_master_now(s->master);
    for (int i = 0; i < s->count; i++) {
        crdi_dcp_unit* u = s->units[i];
        u->before = crd_dcp_master_status(s->master, u->slave);
        u->taken = u->before.data_in;
        if (u->mode == CRD_DCP_NRT) { continue; }
        u->base.origin = now_ns + llround(ahead * 1e9);
    }
}

static double lead_of(const crdi_session* s)
{
    double lead = 0;
    for (int i = 0; i < s->count && s->in_real_time; i++) {
        lead = fmax(lead, s->units[i]->base.spec->session.lead);
    }
    return lead;
}

// Tells the slaves when they begin, `time` being a second of the net, 0: at once.
static crd_status announce(crdi_session* s, double t, int64_t time)
{
    for (int i = 0; i < s->count; i++) {
        // Those in steps send theirs with each step, perhaps on threads of their own.
        if (s->units[i]->mode != CRD_DCP_NRT) { crdi_session_put_inputs(s->units[i], 0); }
    }
    s->running = true;
    s->begin = t;
    s->start = time > 0 ? (double)time : crd_dcp_master_now(s->master);
    return crd_dcp_master_announce(s->master, time);
}

// They have begun.
static crd_status begin_run(crdi_session* s)
{
    const crd_status st = crd_dcp_master_go(s->master);
    const double now = crd_dcp_master_now(s->master);
    if (st >= 0) { note_start(s); }
    for (int i = 0; i < s->count && st >= 0; i++) {
        if (s->units[i]->bench) {
            crdi_dcp_bench_peer_begin(s->units[i]->bench, fmax(now, s->start));
        }
    }
    return st;
}

static bool waits_for_start(const crdi_session* s)
{
    return s->in_real_time && s->tried && s->status >= 0 && !s->running && !s->stopped;
}

// Slaves far away have begun before that is known here. The run then begins some steps later in
// their grid, instead of with steps that are late.
static void begin_later(crdi_session* mine, crdi_session* others, double h)
{
    const double late = crd_dcp_master_now(mine->master) - mine->start;
    if (!mine->in_real_time || late <= h) { return; }
    const double shift = ceil(late / h) * h;
    mine->start += shift;
    note_start(mine);
    for (crdi_session* s = others; s; s = s->announced) {
        s->start += shift;
        if (s->status >= 0) { note_start(s); }
    }
}

// Sessions in real time have one grid: with the first of them all of the store begin. What is wrong
// with another one is told by its own unit.
static crd_status start_sessions(crdi_session* mine, double t, double h)
{
    crdi_session* const all = mine->in_real_time && mine->first ? *mine->first : NULL;
    double lead = lead_of(mine);
    for (crdi_session* s = all; s; s = s->next) {
        if (waits_for_start(s)) { lead = fmax(lead, lead_of(s)); }
    }
    const int64_t time = lead > 0 ? (int64_t)ceil(crd_dcp_master_now(mine->master) + lead) : 0;
    crd_status st = announce(mine, t, time);
    crdi_session* others = NULL; // that were told, one behind the other
    for (crdi_session* s = all; s; s = s->next) {
        if (!waits_for_start(s)) { continue; }
        crdi_session_take_baton(s);
        (void)announce(s, t, time);
        s->announced = others;
        others = s;
    }
    if (st >= 0) { st = begin_run(mine); }
    for (crdi_session* s = others; s; s = s->announced) {
        (void)begin_run(s);
    }
    if (st >= 0) { begin_later(mine, others, h); }
    for (crdi_session* s = others; s; s = s->announced) {
        crdi_session_give_baton(s);
    }
    return st;
}

crd_status crdi_session_start_on(crdi_dcp_unit* u, int64_t origin, double t)
{
    crdi_session* s = u->session;
    crdi_session_take_baton(s);
    const double lead = lead_of(s), now = crd_dcp_master_now(s->master);
    crd_status st = announce(s, t, lead > 0 ? (int64_t)ceil(now + lead) : 0);
    if (st >= 0) { st = begin_run(s); }
    if (st >= 0 && u->base.origin != 0 && origin != 0) {
        s->begin = t + 1e-9 * (double)(u->base.origin - origin);
    }
    (void)crdi_session_word_failure(u, st);
    crdi_session_give_baton(s);
    return st;
}

// How many resolutions a step has, 0: it is no multiple.
static uint32_t session_run_steps_of(const crdi_dcp_unit* u, double h)
{
    const double n = round(h / u->resolution);
    return n >= 1 && n < UINT32_MAX && fabs(n * u->resolution - h) <= 1e-6 * u->resolution
               ? (uint32_t)n
               : 0;
}

crd_status crdi_session_check_step(const crdi_dcp_unit* u, double h)
{
    if (session_run_steps_of(u, h) > 0) { return CRD_OK; }
    return crdi_fail(u->base.ctx, CRD_E_RANGE,
                     "a step of %.10g s is not a multiple of the slave's time resolution of "
                     "%.10g s; expected another step (key 'step'), or another resolution (key "
                     "'session.resolution')",
                     h, u->resolution);
}

// A gap that is shorter than twice the watchdog is the watchdog's, unless somebody says how long it
// may be.
static void tell_pace(crdi_dcp_unit* u, double h)
{
    const crd_bench_spec* b = &u->base.spec->bench;
    const double watchdog =
        isnan(b->watchdog) ? crdi_dcp_bench_plan_defaults().watchdog : b->watchdog;
    crdi_dcp_bench_peer_set_pace(u->bench, h / period_of(u), b->gap > 0 ? 0 : 2 * watchdog / h);
}

crd_status crdi_session_begin(crdi_dcp_unit* u, double t, double h)
{
    crdi_session* s = u->session;
    const crd_status fits = crdi_session_check_step(u, h);
    if (fits < 0) { return fits; }
    const uint32_t steps = session_run_steps_of(u, h);
    crdi_session_take_baton(s);
    crd_status st = s->running ? CRD_OK : start_sessions(s, t, h);
    crdi_session_put_inputs(u, h);
    if (u->bench) {
        if (u->mode != CRD_DCP_NRT) { tell_pace(u, h); }
        crdi_dcp_bench_peer_send(u->bench, crd_dcp_master_now(s->master));
    }
    if (st >= 0) {
        st = u->mode == CRD_DCP_NRT ? crd_dcp_master_begin_step(s->master, u->slave, steps)
                                    : crd_dcp_master_send(s->master, u->slave);
    }
    (void)crdi_session_word_failure(u, st);
    crdi_session_give_baton(s);
    return st;
}

// When the newest data were made, on the clock of the net. In real time that is the slave's newest
// step on the common grid before they came; the outputs of the initialisation are those of the
// start.
static double made_at(const crdi_dcp_unit* u, const crd_dcp_slave_status* now)
{
    if (u->mode == CRD_DCP_NRT) { return now->data_time; }
    const double start = u->session->start, period = period_of(u);
    const double since = fmax(0, now->data_time - start);
    return start + floor(since / period + 1e-6) * period;
}

// What has come and gone since the start.
static void count_data(crdi_dcp_unit* u, const crd_dcp_slave_status* now)
{
    const crd_dcp_slave_status* was = &u->before;
    crd_link_stats* l = &u->link;
    l->in = now->data_in - was->data_in;
    l->out = now->data_out - was->data_out;
    l->duplicates = now->data_duplicates - was->data_duplicates;
    l->reordered = now->data_reordered - was->data_reordered;
    l->lost = now->data_missed - was->data_missed - l->reordered; // which came after all
    if (l->lost < 0) { l->lost = 0; }
    l->bad = now->data_bad - was->data_bad;
    l->foreign = now->foreign - was->foreign;
    l->round_trip = now->requests > 0 ? now->round_trip : (double)NAN;
    l->round_trip_max = now->requests > 0 ? now->round_trip_max : (double)NAN;
}

// Outputs are taken: how old they are, and whether they are those that were due. In real time data
// that come about the end of a step are in it or in the next: that alone is not late.
static void note_data(crdi_dcp_unit* u)
{
    const crdi_session* s = u->session;
    const crd_dcp_slave_status now = crd_dcp_master_status(s->master, u->slave);
    const bool fresh = now.data_in > u->taken;
    crd_link_stats* l = &u->link;
    u->taken = now.data_in;
    count_data(u, &now);
    l->state = (int)now.state;
    l->state_name = crd_dcp_state_name(l->state);
    crdi_dcp_board_data(u, &now, crd_dcp_master_now(s->master));
    const double age = crd_dcp_master_now(s->master) - made_at(u, &now);
    if (u->output_count == 0 || !isfinite(age)) { return; }
    l->age = fmax(0, age);
    u->age_sum += l->age;
    l->age_mean = u->age_sum / (double)++u->age_count;
    l->age_max = u->age_count > 1 ? fmax(l->age_max, l->age) : l->age;
    l->late += !fresh && (u->mode == CRD_DCP_NRT || l->age > 1.5 * period_of(u));
}

static crd_status end_step(crdi_dcp_unit* u)
{
    static const double slice = 1e-3; // s
    crdi_session* s = u->session;
    if (!s->shared) { return crd_dcp_master_end_step(s->master, u->slave); }
    for (;;) {
        bool done = false;
        const double until = crd_dcp_master_now(s->master) + slice;
        const crd_status st = crd_dcp_master_end_step_until(s->master, u->slave, until, &done);
        if (st < 0 || done) { return st; }
        crdi_session_pass_baton(s);
    }
}

// Not longer than to the end of the step on the clock, whatever comes or does not.
static crd_status wait_for_end(crdi_dcp_unit* u, double end)
{
    crdi_session* s = u->session;
    const double begin = crd_dcp_master_now(s->master);
    u->late += begin > end + u->resolution;
    const crd_status st = crd_dcp_master_wait(s->master, end);
    u->base.waited += llround(1e9 * (crd_dcp_master_now(s->master) - begin));
    return st;
}

crd_status crdi_session_end(crdi_dcp_unit* u, double t, double h)
{
    crdi_session* s = u->session;
    crd_status st = CRD_OK;
    crdi_session_take_baton(s);
    st = u->mode == CRD_DCP_NRT ? end_step(u) : wait_for_end(u, s->start + (t + h - s->begin));
    if (st == CRD_E_UNIT && !u->excused) {
        // The failure of another slave is told by the step of its own unit, in this tick or never.
        const char* text = crd_error_text(s->ctx);
        const crdi_dcp_unit* of = crdi_session_unit_of(s, &text);
        u->excused = of && of != u;
        if (u->excused) { st = CRD_OK; }
    }
    if (st >= 0) {
        crdi_session_get_outputs(u);
        note_data(u);
    }
    (void)crdi_session_word_failure(u, st);
    if (u->bench && st >= 0 && !u->excused) {
        st = crdi_session_word_bench_failure(
            u, crdi_dcp_bench_peer_check(u->bench, crd_dcp_master_now(s->master)));
        // The number that came back left with the inputs of a step so many steps ago.
        const crdi_dcp_bench_view v = crdi_dcp_bench_peer_view(u->bench);
        u->base.made = v.answers ? t + h - v.behind * h : (double)NAN;
    }
    crdi_session_give_baton(s);
    return st;
}

// Set values that were not sent as they were wanted.
static void tell_clamps(const crdi_dcp_unit* u)
{
    char text[240];
    for (int i = 0; u->bench && crdi_dcp_bench_peer_clamps(u->bench, i, text, sizeof text); i++) {
        if (text[0]) {
            crdi_log(u->base.ctx, CRD_LOG_WARNING, "unit '%s': %s", u->base.name, text);
        }
    }
}

// What was not as it should be, once for each slave.
static void session_run_sum_up(crdi_session* s)
{
    for (int i = 0; i < s->count; i++) {
        crdi_dcp_unit* u = s->units[i];
        if (!u) { continue; }
        const crd_dcp_slave_status t = crd_dcp_master_status(s->master, u->slave);
        if (s->running) { count_data(u, &t); } // with what came while they stopped
        const int64_t gone =
            t.data_missed - t.data_reordered; // repeated very late it looks reordered
        if (t.data_missed + t.data_old + t.data_bad > 0) {
            crdi_log(s->ctx, CRD_LOG_WARNING,
                     "unit '%s': of %lld data PDUs that came, %lld were old or repeated and %lld "
                     "wrong; %lld did not come",
                     u->base.name, (long long)t.data_in + t.data_old + t.data_bad,
                     (long long)t.data_old, (long long)t.data_bad,
                     (long long)(gone > 0 ? gone : 0));
        }
        if (t.foreign > 0) {
            crdi_log(s->ctx, CRD_LOG_WARNING,
                     "unit '%s': %lld PDUs came from others in its name; nothing acted on them",
                     u->base.name, (long long)t.foreign);
        }
        tell_clamps(u);
        if (u->late > 0) {
            crdi_log(s->ctx, CRD_LOG_WARNING, "unit '%s': %lld step%s ended late", u->base.name,
                     (long long)u->late, u->late == 1 ? "" : "s");
        }
        crdi_log(
            s->ctx, CRD_LOG_INFO,
            "unit '%s': %lld data PDUs in, %lld out, %lld requests (%lld repeated), round trip "
            "%.3g ms, %.3g ms at worst",
            u->base.name, (long long)t.data_in, (long long)t.data_out, (long long)t.requests,
            (long long)t.repeated, 1e3 * t.round_trip, 1e3 * t.round_trip_max);
    }
}

void crdi_session_rest(crdi_session* s)
{
    if (s->halted || s->stopped) { return; }
    s->halted = true;
    crd_dcp_master_halt(s->master);
}

void crdi_session_halt(crdi_dcp_unit* u)
{
    crdi_session* s = u->session;
    if (s->opening) {
        atomic_store_explicit(&s->given_up, true, memory_order_relaxed);
        return;
    }
    if (!s->master || s->stopped || !crdi_session_take_baton_within(s, 100000000)) { return; }
    crdi_session_rest(s);
    crdi_session_give_baton(s);
}

// Brings all down. What has failed behind the last step, or on the way down, has no other step to
// be told by.
static crd_status bring_down(crdi_session* s, crdi_dcp_unit* u)
{
    const crd_status late = s->worded ? CRD_OK : crd_dcp_master_poll(s->master);
    const crd_status before = crdi_session_word_failure(u, late);
    const crd_status st = crdi_session_word_failure(u, crd_dcp_master_stop(s->master));
    if (st < 0 || before < 0) { return st < 0 ? st : before; }
    for (int i = 0; i < s->count && !s->worded; i++) {
        const crdi_dcp_unit* of = s->units[i];
        if (!of || !(of->fell || of->slow_stop)) { continue; }
        return crdi_session_word_failure(
            u, crdi_fail(s->ctx, CRD_E_UNIT, "%s: the %s when the run ended", of->base.name,
                         of->fell ? "DCP slave went to ERRORHANDLING"
                                  : "bench did not come to rest in its time"));
    }
    return CRD_OK;
}

crd_status crdi_session_stop(crdi_dcp_unit* u)
{
    crdi_session* s = u->session;
    crdi_session_end_opener(s);
    if (!s->master || s->stopped) { return CRD_OK; }
    crdi_session_end_heartbeats(s);
    s->stopped = true;
    if (!crdi_session_take_baton_within(s, 2000000000)) {
        return crdi_fail(u->base.ctx, CRD_E_STATE,
                         "the DCP slaves cannot be stopped: the step of one of them does not end");
    }
    s->interrupted = NULL; // whoever interrupts wants the benches to be brought down
    s->emergency = NULL;
    s->because = NULL; // what is wrong now is its own
    const crd_status st = bring_down(s, u);
    if (s->status >= 0) { session_run_sum_up(s); }
    crdi_session_give_baton(s);
    return st;
}

void crdi_session_lock(crdi_dcp_unit* u)
{
    if (u->session->shared) { crdi_session_take_baton(u->session); }
}

void crdi_session_unlock(crdi_dcp_unit* u)
{
    if (u->session->shared) { crdi_session_give_baton(u->session); }
}

void crdi_session_let_go(crdi_dcp_unit* u)
{
    if (u->own_session) { atomic_store_explicit(&u->session->quit, true, memory_order_relaxed); }
}

void crdi_session_interrupt(crdi_dcp_unit* u)
{
    atomic_store_explicit(&u->session->given_up, true, memory_order_relaxed);
}
