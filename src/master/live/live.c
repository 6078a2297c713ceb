// A run that is watched and steered: what is made before it, rows, and standing still.
#include "master/live/live.h"

#include <math.h>
#include <string.h>
#include <time.h>

static const int64_t SLICE = 5 * 1000 * 1000; // ns between two looks while the run stands still

crdi_live_options crdi_live_defaults(void)
{
    return (crdi_live_options){.row_gap = 0.5e-3, .status_gap = 0.05};
}

// ---- life --------------------------------------------------------------------------------------

static int64_t live_to_ns(double s, double otherwise)
{
    return (int64_t)(1e9 * (s >= 0 && s < 1e6 ? s : otherwise));
}

// Room for samples that a fault holds back, and for those that a new element begins with.
static crd_status live_make_room(crd_master* m)
{
    const int shared = m->connections.coupled_count > 64
                           ? 64 * CRDI_LIVE_FLIGHTS / m->connections.coupled_count
                           : CRDI_LIVE_FLIGHTS;
    for (int i = 0; i < m->connections.coupled_count; i++) {
        crdi_coupled* c = &m->connections.coupled[i];
        const double second = 1 / c->interval;
        const int most = shared > 16 ? shared : 16;
        const int held = second < most ? (int)second + 2 : most;
        const int capacity = c->flight_capacity + (c->channel ? 2 : 1) * held;
        crdi_flight* flights = crdi_arena_new(&m->arena, (size_t)capacity, sizeof *flights);
        if (!flights || crdi_coupled_remember(m, c) < 0) { return CRD_E_MEMORY; }
        c->flights = flights; // nothing is on its way yet
        c->flight_capacity = capacity;
        c->delay_max = fmin(1, (held - 2) * c->interval);
    }
    return CRD_OK;
}

crd_status crdi_live_create(crd_context* ctx, crd_master* m, const crdi_live_options* opt,
                            crdi_live** out)
{
    crd_status st = CRD_OK;
    if (m->live || m->connections.swap_ctx || m->life.initialized) {
        return crdi_fail(ctx, CRD_E_STATE,
                         "crdi_live_create comes once, between crd_master_create and "
                         "crd_master_initialize");
    }
    crdi_live* l = crdi_new(ctx, sizeof *l);
    if (!l) { return CRD_E_MEMORY; }
    l->owner = ctx;
    l->m = m;
    l->opt = opt ? *opt : crdi_live_defaults();
    l->row_gap = live_to_ns(l->opt.row_gap, 0.5e-3);
    l->status_gap = live_to_ns(l->opt.status_gap, 0.05);
    l->row_cycle = l->overrun_cycle = l->steps_left = -1;
    crd_arena_init(&l->arena, ctx);
    l->ctx = crdi_context_child(ctx);
    l->events = crdi_new_array(ctx, CRDI_LIVE_EVENTS, sizeof *l->events);
    l->postponed = crdi_new_array(ctx, CRDI_LIVE_ORDERS, sizeof *l->postponed);
    if (!l->ctx || !l->events || !l->postponed) {
        st = crdi_fail(ctx, CRD_E_MEMORY, "out of memory");
        goto fail;
    }
    CRD_TRY(crdi_ring_create(ctx, sizeof(crdi_live_order), CRDI_LIVE_ORDERS, &l->orders));
    // Each order leaves at most one thing, and orders come only once leftovers are taken.
    CRD_TRY(crdi_ring_create(ctx, sizeof(crdi_leftover), 4 * CRDI_LIVE_ORDERS, &l->leftovers));
    if (!l->opt.read_only) { CRD_TRY(live_make_room(m)); }
    CRD_TRY(crdi_live_introduce(l));
    m->live = l;
    crdi_connections_own(m, l->ctx);
    *out = l;
    return CRD_OK;
fail:
    crd_context_destroy(l->ctx);
    l->ctx = NULL;
    crdi_live_destroy(l);
    return st;
}

void crdi_live_destroy(crdi_live* l)
{
    if (!l) { return; }
    crd_master* m = l->m;
    crdi_events_lock(m);
    if (m->live == l) { m->live = NULL; }
    crdi_events_unlock(m);
    crdi_fault_clear(l, -1);
    crdi_live_free_returned(l);
    crdi_live_discard(l);
    crdi_live_free_knobs(l);
    crdi_ring_destroy(l->orders);
    crdi_ring_destroy(l->leftovers);
    crdi_ring_destroy(l->rows);
    crd_arena_clear(&l->arena);
    crd_context* ctx = l->owner;
    crd_free(ctx, l->postponed);
    crd_free(ctx, l->events);
    crd_free(ctx, l);
}

bool crdi_live_is_ready(const crdi_live* l)
{
    return atomic_load_explicit(&l->ready, memory_order_acquire);
}

const crdi_live_info* crdi_live_get_info(const crdi_live* l)
{
    return &l->info;
}

// ---- before and after --------------------------------------------------------------------------

static bool asks(const crdi_live* l)
{
    return l->opt.ask && atomic_load(&l->wishes) == 0;
}

bool crdi_live_wait_for_page(crdi_live* l, const volatile bool* stop)
{
    const int wanted =
        atomic_load_explicit(&l->state_seen, memory_order_acquire) == CRDI_LIVE_ENDED ? 2 : 1;
    const struct timespec pause = {.tv_nsec = SLICE};
    while (!*stop && atomic_load(&l->wishes) < wanted &&
           !(wanted == 1 && atomic_load(&l->alarm) != CRDI_CALM)) { // which the run fails by
        nanosleep(&pause, NULL);
    }
    return !*stop;
}

// ---- rows --------------------------------------------------------------------------------------

static size_t row_bytes(const crdi_live* l)
{
    return sizeof(crdi_live_row) + (size_t)l->info.signal_count * sizeof(double);
}

static crd_status make_rows(crdi_live* l)
{
    enum { BYTES = 4 << 20, LEAST = 64, MOST = 1 << 16 };
    size_t rows = LEAST;
    while (2 * rows <= MOST && 2 * rows * row_bytes(l) <= BYTES) {
        rows *= 2;
    }
    return crdi_ring_create(l->owner, row_bytes(l), l->opt.ring_rows ? l->opt.ring_rows : rows,
                            &l->rows);
}

static void write_row(crdi_live* l)
{
    crd_master* m = l->m;
    l->row_cycle = m->clock.n;
    crdi_record_read_extras(m);
    crdi_live_row* row = crdi_ring_write(l->rows);
    if (!row) {
        atomic_fetch_add_explicit(&l->lost, 1, memory_order_relaxed);
        return;
    }
    row->time = crd_master_time(m);
    row->cycle = m->clock.n;
    for (int i = 0; i < l->info.signal_count; i++) {
        const crdi_live_source* p = &l->sources[i];
        row->values[i] = p->real          ? *(const double*)p->from
                         : p->is_unsigned ? (double)*(const uint64_t*)p->from
                                          : (double)*(const int64_t*)p->from;
    }
    crdi_ring_commit(l->rows);
    l->row_count++;
}

const crdi_live_row* crdi_live_read(crdi_live* l)
{
    return crdi_live_is_ready(l) ? crdi_ring_read(l->rows) : NULL;
}

void crdi_live_release(crdi_live* l)
{
    crdi_ring_release(l->rows);
}

int64_t crdi_live_lost(const crdi_live* l)
{
    return atomic_load_explicit(&l->lost, memory_order_relaxed);
}

// ---- the cycle thread --------------------------------------------------------------------------

crd_status crdi_live_prepare(crd_master* m)
{
    crd_status st = CRD_OK;
    crdi_live* l = m->live;
    CRD_TRY(crdi_live_describe(l));
    CRD_TRY(make_rows(l));
    CRD_TRY(crdi_live_make_snapshots(l));
    crdi_events_start(m);
    l->state = l->opt.wait ? CRDI_LIVE_WAITING : CRDI_LIVE_RUNNING;
    atomic_store_explicit(&l->state_seen, (int)l->state, memory_order_relaxed);
    atomic_store_explicit(&l->ready, true, memory_order_release);
    return CRD_OK;
fail:
    return st == CRD_E_MEMORY ? crdi_fail(m->ctx, st, "out of memory") : st;
}

void crdi_live_publish(crd_master* m)
{
    crdi_live* l = m->live;
    const int64_t now = crdi_pacing_now(m);
    // Cycles that come a little early or late after one another are not left out.
    if (now - l->row_ns >= l->row_gap - l->row_gap / 4 || crdi_life_is_last(m)) {
        write_row(l);
        l->row_ns = now;
    }
    if (!m->plan->paced) { // the pacer has its own account
        if (l->cycle_ns) { crd_histogram_add(&l->busy, now - l->cycle_ns); }
        l->cycle_ns = now;
    }
    if (now - l->status_ns >= l->status_gap) { crdi_live_snapshot(l, now); }
}

static void stand(crdi_live* l, bool* stands)
{
    crd_master* m = l->m;
    if (*stands) { return; }
    *stands = true;
    __atomic_store_n(&m->life.stands, true, __ATOMIC_RELAXED);
    l->stands_ns = crdi_now_ns();
    l->cycle_ns = 0;
    crdi_pacing_pause(m);
    crdi_live_snapshot(l, crdi_pacing_now(m));
}

static void go_on(crdi_live* l)
{
    crd_master* m = l->m;
    __atomic_store_n(&m->life.stands, false, __ATOMIC_RELAXED);
    crdi_life_stood_still(m, crdi_now_ns() - l->stands_ns);
    crdi_pacing_resume(m);
    crdi_live_snapshot(l, crdi_pacing_now(m));
}

static bool may_run(crdi_live* l)
{
    if (l->state != CRDI_LIVE_RUNNING) { return false; }
    if (l->steps_left == 0) {
        l->state = CRDI_LIVE_PAUSED;
        l->steps_left = -1;
        return false;
    }
    if (l->steps_left > 0) { l->steps_left--; }
    return true;
}

// No command takes effect after the beginning of the last step. What was sent before that was
// known is still taken here; false: it changed its mind about going on.
static bool close_before_last(crdi_live* l, crd_status* st)
{
    const crd_master* m = l->m;
    bool any = false;
    if (m->clock.n + 1 < m->plan->times.tick_count) { return true; }
    atomic_store(&l->closed, true);
    *st = crdi_live_apply_commands(l, &any);
    if (!any || *st < 0 || m->life.end != CRD_END_NONE || l->state == CRDI_LIVE_RUNNING) {
        return true;
    }
    atomic_store(&l->closed, false);
    return false;
}

crd_status crdi_live_steer(crd_master* m)
{
    crdi_live* l = m->live;
    bool stands = false, changed = false;
    if (l->row_cycle < 0) { // the start, which no tick shows
        write_row(l);
        l->row_ns = crdi_pacing_now(m);
        crdi_live_snapshot(l, l->row_ns);
    }
    for (;;) {
        if (__atomic_load_n(&m->life.emergency, __ATOMIC_ACQUIRE)) { break; }
        crd_status st = crdi_live_apply_commands(l, &changed);
        if (st < 0) { return st; }
        if (l->fault_count) { crdi_faults_expire(l, crd_master_time(m)); }
        if (m->life.end != CRD_END_NONE || (may_run(l) && close_before_last(l, &st))) {
            if (st < 0) { return st; }
            break;
        }
        if (stands && changed) { crdi_live_snapshot(l, crdi_pacing_now(m)); }
        stand(l, &stands);
        if (m->plan->opt.stop && *m->plan->opt.stop) {
            crdi_life_end(m, CRD_END_INTERRUPTED, -1);
            break;
        }
        crdi_pacing_sleep(m, SLICE);
    }
    if (stands) { go_on(l); }
    if (l->first_ns == 0) { l->first_ns = crdi_pacing_now(m); }
    return crdi_live_alarm(m, CRD_OK);
}

// ---- the end -----------------------------------------------------------------------------------

crd_status crdi_live_alarm(crd_master* m, crd_status st)
{
    if (!__atomic_load_n(&m->life.emergency, __ATOMIC_ACQUIRE) || st == CRD_E_CRASH) { return st; }
    // What a unit says that was told to give up is of no interest.
    crdi_life_end(m, CRD_END_FAILED, -1);
    const char* by = m->live->alarmed_by;
    return m->life.started
               ? crdi_fail(m->ctx, CRD_E_STATE, "%s at t = %.10g s", by, crd_master_time(m))
               : crdi_fail(m->ctx, CRD_E_STATE, "%s during the initialisation", by);
}

static void tell_outcome(crdi_live* l, crdi_live_state state)
{
    crdi_live_outcome* o = &l->outcomes[state - CRDI_LIVE_STOPPING];
    *o = (crdi_live_outcome){.state = state, .end = l->m->life.end};
    crdi_live_copy_text(o->message, sizeof o->message, crdi_live_reason(l->m));
    l->state = state;
    atomic_store_explicit(&l->state_seen, (int)state, memory_order_release);
    if (crdi_live_is_ready(l)) { crdi_live_snapshot(l, crdi_pacing_now(l->m)); }
}

void crdi_live_get_outcome(const crdi_live* l, crdi_live_outcome* out)
{
    const int state = atomic_load_explicit(&l->state_seen, memory_order_acquire);
    if (state >= CRDI_LIVE_STOPPING) {
        *out = l->outcomes[state - CRDI_LIVE_STOPPING];
    } else {
        *out = (crdi_live_outcome){.state = (crdi_live_state)state, .asks = asks(l)};
    }
}

crd_status crdi_live_close(crd_master* m)
{
    crdi_live* l = m->live;
    int was = CRDI_CALM;
    const bool calm = atomic_compare_exchange_strong(&l->alarm, &was, CRDI_OVER);
    const bool failed = m->life.end == CRD_END_FAILED; // by whatever made it fail
    crd_status st = CRD_OK;
    if (!calm && !failed) {
        __atomic_store_n(&m->life.emergency, true, __ATOMIC_RELEASE); // its page may not be so far
        st = crdi_events_note_failure(m, crdi_live_alarm(m, CRD_OK));
    } else if (!calm && strncmp(m->life.message, l->alarmed_by, strlen(l->alarmed_by)) != 0) {
        crdi_events_note(m, CRD_EVENT_MARK, l->alarmed_by); // it had failed already
    }
    atomic_store(&l->closed, true);
    crdi_live_refuse_rest(l);
    tell_outcome(l, CRDI_LIVE_STOPPING);
    return st;
}

void crdi_live_end(crd_master* m)
{
    char text[CRDI_TEXT];
    crdi_life_end_text(m, text);
    crdi_live_note_event(m, CRD_EVENT_STOP, crdi_time_seen(m), text);
    tell_outcome(m->live, CRDI_LIVE_ENDED);
}
