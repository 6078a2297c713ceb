// The session that the DCP slaves of a system share: planned while the units are made, brought up
// when the first of them is initialised, brought down when the first of them ends.
//
// The session belongs to one thread at a time: the cycle thread, or the heartbeat thread, which
// sends heartbeats while the cycle thread is busy elsewhere for long (a slow FMU, a result file).
// The baton says whose turn it is; the cycle thread finds it free except in the moments when the
// heartbeat thread polls. Slaves with a budget have threads of their own: who waits for one of them
// in a session of several passes the baton on every millisecond.
#include "unit/dcp/session.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

// ---- whose turn it is --------------------------------------------------------------------------

void crdi_session_take_baton(crdi_session* s)
{
    if (sem_trywait(&s->baton) != 0) {
        atomic_fetch_add(&s->waiting, 1);
        while (sem_wait(&s->baton) != 0) {}
        atomic_fetch_sub(&s->waiting, 1);
    }
    atomic_fetch_add_explicit(&s->uses, 1, memory_order_relaxed);
}

void crdi_session_give_baton(crdi_session* s)
{
    sem_post(&s->baton);
}

// false: whoever has it does not come back in `ns`.
bool crdi_session_take_baton_within(crdi_session* s, int64_t ns)
{
    static const int64_t second = 1000000000;
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    const int64_t end = at.tv_nsec + ns;
    at.tv_sec += end / second;
    at.tv_nsec = end % second;
    while (sem_timedwait(&s->baton, &at) != 0) {
        if (errno != EINTR) { return false; }
    }
    return true;
}

// A semaphore is not fair: whoever gives it and wants it back would have it before those who wait.
void crdi_session_pass_baton(crdi_session* s)
{
    const struct timespec moment = {.tv_nsec = 200 * 1000};
    crdi_session_give_baton(s);
    if (atomic_load(&s->waiting) > 0) { nanosleep(&moment, NULL); }
    crdi_session_take_baton(s);
}

static void refresh_boards(crdi_session* s)
{
    const double now = crd_dcp_master_now(s->master);
    for (int i = 0; i < s->count; i++) {
        crdi_dcp_unit* u = s->units[i];
        if (!u) { continue; }
        const crd_dcp_slave_status t = crd_dcp_master_status(s->master, u->slave);
        crdi_dcp_board_refresh(u, &t, now);
    }
}

// Polls when the cycle thread did not come by for a tenth of a second.
static void* send_heartbeats(void* user)
{
    crdi_session* s = user;
    const struct timespec pause = {.tv_nsec = 100 * 1000 * 1000};
    int seen = -1;
    while (!atomic_load_explicit(&s->quit, memory_order_relaxed)) {
        const int uses = atomic_load_explicit(&s->uses, memory_order_relaxed);
        if (uses == seen && sem_trywait(&s->baton) == 0) {
            // A failure shows again in the next step; until then nothing goes on turning.
            if (crd_dcp_master_poll(s->master) < 0) { crdi_session_rest(s); }
            refresh_boards(s);
            crdi_session_give_baton(s);
        }
        seen = uses;
        nanosleep(&pause, NULL);
    }
    return NULL;
}

bool crdi_session_has_thread = true;

static void start_heartbeats(crdi_session* s)
{
    if (!crdi_session_has_thread) { return; }
    atomic_store(&s->quit, false);
    s->has_heartbeats = pthread_create(&s->heartbeats, NULL, send_heartbeats, s) == 0;
    if (!s->has_heartbeats) {
        crdi_log(s->ctx, CRD_LOG_WARNING,
                 "DCP: no thread for heartbeats: a slave that wants them may give up while "
                 "others compute");
    }
}

void crdi_session_end_heartbeats(crdi_session* s)
{
    if (!s->has_heartbeats) { return; }
    atomic_store(&s->quit, true);
    pthread_join(s->heartbeats, NULL);
    s->has_heartbeats = false;
}

// ---- what happens, in words --------------------------------------------------------------------

// Whoever guards the benches knows of each whether it is ours, and where it is.
static void tell_ward(crdi_session* s, crdi_dcp_unit* u)
{
    if (!s->ward) { return; }
    const crd_dcp_slave_spec spec = {.name = u->base.name, .control = u->address, .mode = u->mode};
    u->ward = 1 + crdi_ward_note(s->ward, u->ward - 1, s->ward_session, s->master, u->slave, &spec);
}

static const char stop_late[] = "stop: has taken ";

static void take_notice(void* user, const crd_dcp_notice* n)
{
    crdi_session* s = user;
    crdi_dcp_unit* u = s->units[n->slave];
    if (!u) { return; } // its unit is gone, the others go on
    if (n->kind == CRD_DCP_NOTICE_STATE) {
        u->fell = u->fell || n->state >= CRD_DCP_ERRORHANDLING;
        tell_ward(s, u);
    }
    if (u->bench) { crdi_dcp_bench_peer_notice(u->bench, n); }
    u->slow_stop = u->slow_stop || (u->bench && n->kind == CRD_DCP_NOTICE_LOG &&
                                    strncmp(n->text, stop_late, sizeof stop_late - 1) == 0);
    const crd_dcp_slave_status t = crd_dcp_master_status(s->master, n->slave);
    crdi_dcp_board_notice(u, n, &t);
    static const uint8_t of_log[] = {CRD_LOG_ERROR, CRD_LOG_ERROR, CRD_LOG_WARNING, CRD_LOG_INFO,
                                     CRD_LOG_DEBUG};
    crd_level level = CRD_LOG_INFO;
    switch (n->kind) {
    case CRD_DCP_NOTICE_LOG:
        level = n->level < sizeof of_log ? (crd_level)of_log[n->level] : CRD_LOG_INFO;
        break;
    case CRD_DCP_NOTICE_LOSS: // counted, and said once at the end
        level = CRD_LOG_DEBUG;
        break;
    default: // an error comes back as the failure of a step, too
        break;
    }
    crdi_log(s->ctx, level, "unit '%s': %s", u->base.name, n->text);
}

static crdi_session* failed_beside(const crdi_session* s)
{
    for (crdi_session* o = s->first ? *s->first : NULL; o; o = o->next) {
        if (o != s && atomic_load_explicit(&o->failed, memory_order_acquire)) { return o; }
    }
    return NULL;
}

// A step that is under way comes to its end, and the run ends behind it as other runs do; a slave
// that does not answer is not waited for.
static bool cancelled(void* user)
{
    static const double grace = 1; // s
    crdi_session* s = user;
    if (!s->running || s->stopped) { refresh_boards(s); }
    if (atomic_load_explicit(&s->given_up, memory_order_relaxed)) { return true; }
    if (s->emergency && __atomic_load_n(s->emergency, __ATOMIC_RELAXED)) { return true; }
    if (!s->running && !s->stopped && !s->because) { s->because = failed_beside(s); }
    if (s->because) { return true; }
    if (!s->interrupted || !__atomic_load_n(s->interrupted, __ATOMIC_RELAXED)) { return false; }
    if (!s->running) { return true; }
    const double now = crd_dcp_master_now(s->master);
    if (isnan(s->interrupted_at)) { s->interrupted_at = now; }
    return now > s->interrupted_at + grace;
}

// ---- life --------------------------------------------------------------------------------------

static void join_opener(crdi_session* s)
{
    if (!s->opening) { return; }
    pthread_join(s->opener, NULL);
    s->opening = false;
}

void crdi_session_end_opener(crdi_session* s)
{
    if (s->opening) { atomic_store_explicit(&s->given_up, true, memory_order_relaxed); }
    join_opener(s);
}

static crd_status create_session(crd_context* ctx, crdi_session** out)
{
    crd_context* own = crdi_context_child(ctx);
    crdi_session* s = own ? crdi_new(own, sizeof *s) : NULL;
    if (!s) {
        crd_context_destroy(own);
        return crdi_fail(ctx, CRD_E_MEMORY, "out of memory");
    }
    s->ctx = own;
    s->interrupted_at = NAN;
    sem_init(&s->baton, 0, 1);
    *out = s;
    return CRD_OK;
}

// Not while a unit of it is left.
void crdi_session_destroy(crdi_session* s)
{
    if (!s) { return; }
    for (crdi_session* o = s->first ? *s->first : NULL; o; o = o->next) {
        crdi_session_end_opener(o); // they look at each other
    }
    for (crdi_session** at = s->first; at && *at; at = &(*at)->next) {
        if (*at != s) { continue; }
        *at = s->next;
        break;
    }
    crdi_session_end_heartbeats(s);
    if (s->master && !s->stopped) { (void)crd_dcp_master_stop(s->master); }
    crd_dcp_master_destroy(s->master);
    crd_dcp_net_destroy(s->net);
    (void)crd_dcp_capture_close(s->capture);
    sem_destroy(&s->baton);
    crd_context* ctx = s->ctx;
    crd_free(ctx, s->units);
    crd_free(ctx, s->routes);
    crd_free(ctx, s);
    crd_context_destroy(ctx);
}

// On a bus the address is an id, and there may be several buses.
static bool same_slave(const crdi_dcp_unit* a, const crdi_dcp_unit* b)
{
    return crd_dcp_address_equal(&a->address, &b->address) &&
           (!a->can || strcmp(a->base.spec->address, b->base.spec->address) == 0);
}

// One slave is one unit, and one file the capture of one session.
static crd_status check_others(const crdi_session* s, const crdi_dcp_unit* u)
{
    const char* capture = u->base.spec->session.capture;
    for (const crdi_session* o = s->first ? *s->first : s; o; o = s->first ? o->next : NULL) {
        for (int i = 0; i < o->count; i++) {
            const crdi_dcp_unit* other = o->units[i];
            if (!other || other == u) { continue; }
            if (same_slave(other, u)) {
                return crdi_fail(u->base.ctx, CRD_E_RANGE,
                                 "dcp: '%s' is the slave of unit '%s' already, expected another "
                                 "address: a slave is one unit of a system",
                                 u->base.spec->address, other->base.name);
            }
            const char* theirs = other->base.spec->session.capture;
            if (o != s && capture && theirs && strcmp(capture, theirs) == 0) {
                return crdi_fail(u->base.ctx, CRD_E_RANGE,
                                 "session.capture: unit '%s' writes to '%s' already, expected "
                                 "another file: a slave with 'standby' has a session of its own",
                                 other->base.name, capture);
            }
        }
    }
    return CRD_OK;
}

crd_status crdi_session_join(crd_unit_store* store, crdi_dcp_unit* u)
{
    crd_status st = CRD_OK;
    crd_context* ctx = u->base.ctx;
    // A slave that may drop out while the run goes on takes nobody with it; a bus is a network of
    // its own.
    const bool alone = !store || u->base.spec->standby.model || u->can;
    crdi_session** place = alone ? &u->session : crdi_unit_store_session(store);
    if (!*place) {
        CRD_TRY(create_session(store ? crdi_unit_store_context(store) : ctx, place));
        if (store) {
            (*place)->first = crdi_unit_store_sessions(store);
            (*place)->next = *(*place)->first;
            *(*place)->first = *place;
        }
    }
    crdi_session* s = *place;
    u->session = s;
    u->own_session = alone;
    CRD_TRY(check_others(s, u));
    crdi_dcp_unit** units =
        crdi_grow(s->ctx, s->units, &s->capacity, (size_t)s->count + 1, sizeof(crdi_dcp_unit*));
    if (!units) { return crdi_fail(ctx, CRD_E_MEMORY, "out of memory"); }
    s->units = units;
    u->slave = s->count;
    units[s->count++] = u;
fail:
    return st;
}

void crdi_session_leave(crdi_dcp_unit* u)
{
    crdi_session* s = u->session;
    if (!s) { return; }
    (void)crdi_session_stop(u);
    crdi_session_end_heartbeats(s);
    for (int i = 0; i < s->count; i++) {
        if (s->units[i] == u) { s->units[i] = NULL; }
    }
    if (u->own_session) { crdi_session_destroy(s); }
    u->session = NULL;
}

// ---- the plan ----------------------------------------------------------------------------------

static bool same_key(const crdi_dcp_unit* a, const crdi_dcp_unit* b)
{
    const char *x = a->base.spec->session.key, *y = b->base.spec->session.key;
    return x == y || (x && y && strcmp(x, y) == 0);
}

bool crdi_session_route(crdi_dcp_unit* from, int32_t output, crdi_dcp_unit* to, int32_t input)
{
    crdi_session* s = from->session;
    const bool in_time = from->mode != CRD_DCP_NRT && to->mode != CRD_DCP_NRT;
    crdi_dcp_bench_variables v;
    const bool bench = crdi_dcp_bench_find(to->d, &v); // takes data of its master only
    if (s != to->session || !in_time || !same_key(from, to) || bench ||
        from->base.spec->session.relay || to->base.spec->session.relay ||
        from->address.transport != to->address.transport ||
        !crdi_dcp_converts(from->d->variables[output].type, to->d->variables[input].type)) {
        return false;
    }
    struct route* routes = crdi_grow(s->ctx, s->routes, &s->route_capacity,
                                     (size_t)s->route_count + 1, sizeof *routes);
    if (!routes) { return false; }
    s->routes = routes;
    routes[s->route_count++] = (struct route){from, to, output, input};
    to->routed[input] = true;
    return true;
}

// What the units say, put together: the longest patience, the shortest heartbeat.
static crd_dcp_master_options options_of(crdi_session* s)
{
    const crd_dcp_master_options usual = crd_dcp_master_defaults();
    crd_dcp_master_options o = usual;
    o.contact = o.timeout = o.patience = 0;
    o.rest = usual.patience; // who turns is waited for, however little patience there is else
    o.retries = 0;
    for (int i = 0; i < s->count; i++) {
        const crd_session_spec* p = &s->units[i]->base.spec->session;
        const int retries = p->retries > 0 ? p->retries : usual.retries;
        o.contact = fmax(o.contact, isnan(p->contact) ? usual.contact : p->contact);
        o.timeout = fmax(o.timeout, isnan(p->timeout) ? usual.timeout : p->timeout);
        o.patience = fmax(o.patience, isnan(p->patience) ? usual.patience : p->patience);
        o.retries = retries > o.retries ? retries : o.retries;
        if (!isnan(p->heartbeat)) {
            o.heartbeat = o.heartbeat > 0 ? fmin(o.heartbeat, p->heartbeat) : p->heartbeat;
        }
        o.force = o.force || p->force;
        o.lossless = o.lossless && !p->lossy;
    }
    o.notice = take_notice;
    o.cancelled = cancelled;
    o.user = s;
    return o;
}

// The value of the one unit that says something; CRD_E_RANGE if two say different things.
static crd_status common_text(crdi_session* s, const char* key, size_t offset, const char** out)
{
    *out = NULL;
    const crdi_dcp_unit* first = NULL;
    for (int i = 0; i < s->count; i++) {
        const char* text =
            *(const char* const*)((const char*)&s->units[i]->base.spec->session + offset);
        if (text && *out && strcmp(text, *out) != 0) {
            return crdi_fail(
                s->ctx, CRD_E_RANGE,
                "session.%s: units '%s' and '%s' differ ('%s', '%s'), expected one for "
                "all DCP slaves of a system",
                key, first->base.name, s->units[i]->base.name, *out, text);
        }
        if (text && !*out) {
            *out = text;
            first = s->units[i];
        }
    }
    return CRD_OK;
}
#define COMMON_TEXT(s, field, out) common_text(s, #field, offsetof(crd_session_spec, field), out)

// Every key once. All slaves of a session are encrypted, or none.
static crd_status collect_keys(crdi_session* s, const char** keys, int* count)
{
    const crdi_dcp_unit *with = NULL, *without = NULL;
    for (int i = 0; i < s->count; i++) {
        const crdi_dcp_unit* u = s->units[i];
        const char* key = u->base.spec->session.key;
        const crd_status st =
            crdi_dcp_check_plain(s->ctx, &u->address, key != NULL, u->base.spec->session.plain,
                                 "session: { key: FILE } or session: { plain: true }");
        if (st < 0) { return st; }
        bool known = key == NULL;
        for (int k = 0; k < *count && !known; k++) {
            known = strcmp(keys[k], key) == 0;
        }
        if (!known && *count == CRD_DCP_MOST_KEYS) {
            return crdi_fail(s->ctx, CRD_E_RANGE, "session.key: more than %d keys in a system",
                             CRD_DCP_MOST_KEYS);
        }
        if (!known) { keys[(*count)++] = key; }
        *(key ? &with : &without) = u;
    }
    if (with && without) {
        return crdi_fail(s->ctx, CRD_E_RANGE,
                         "session.key: unit '%s' has one and unit '%s' has none, expected one for "
                         "each DCP slave of a system, or for none",
                         with->base.name, without->base.name);
    }
    return CRD_OK;
}

crd_status (*crdi_session_open_net)(crd_context* ctx, crd_dcp_net** out) = crd_dcp_net_create;
int64_t (*crdi_session_now)(void) = crdi_now_ns;

static crd_status open_net(crdi_session* s, crd_dcp_master_options* o)
{
    crd_status st = CRD_OK;
    const char *local = NULL, *capture = NULL, *keys[CRD_DCP_MOST_KEYS];
    int key_count = 0;
    CRD_TRY(COMMON_TEXT(s, local, &local));
    CRD_TRY(COMMON_TEXT(s, capture, &capture));
    if (local) {
        char text[80];
        crd_dcp_address a;
        snprintf(text, sizeof text, "udp://%s:0", local);
        CRD_TRY(crd_dcp_address_parse(s->ctx, text, &a));
        o->local_ip = a.ip;
    }
    const crdi_dcp_unit* on_bus = s->units[0]->can ? s->units[0] : NULL; // then it is alone
    if (on_bus) {
        CRD_TRY(crdi_dcp_net_can_master(s->ctx, on_bus->base.spec->address, on_bus->can, &s->net));
    } else {
        CRD_TRY(collect_keys(s, keys, &key_count));
        CRD_TRY(crdi_session_open_net(s->ctx, &s->net));
    }
    if (key_count > 0) {
        CRD_TRY(
            crdi_dcp_net_secure_files(s->ctx, keys, key_count, CRD_DCP_MASTER_ROLE, NULL, &s->net));
    }
    s->ward = crdi_ward_of_process();
    if (s->ward && on_bus) { // it brings slaves to rest over IP
        s->ward = NULL;
        crdi_log(s->ctx, CRD_LOG_WARNING,
                 "unit '%s': the guard does not reach a CAN bus: if this process dies, it takes a "
                 "heartbeat of the slave ('cardan dcp slave --heartbeat') to end its run",
                 on_bus->base.name);
    }
    if (s->ward) {
        CRD_TRY(crdi_ward_join(s->ctx, s->ward, s->net, keys, key_count, &s->ward_session));
    }
    if (capture) {
        CRD_TRY(crd_dcp_capture_open(s->ctx, capture, &s->capture));
        crd_dcp_net_capture(s->net, s->capture);
    }
fail:
    return st;
}

static void move_values(const crdi_dcp_move* moves, int count)
{
    for (int i = 0; i < count; i++) {
        crdi_dcp_slot_copy(moves[i].to, moves[i].from);
    }
}

void crdi_session_put_inputs(crdi_dcp_unit* u, double seconds)
{
    move_values(u->inputs, u->input_count);
    if (u->bench) {
        const crdi_session* s = u->session;
        crdi_dcp_bench_peer_limit(u->bench, seconds, crd_dcp_master_now(s->master), s->ctx);
    }
}

void crdi_session_get_outputs(crdi_dcp_unit* u)
{
    move_values(u->outputs, u->output_count);
}

static crd_status dcp_session_set_parameters(crdi_session* s, crdi_dcp_unit* u, bool structural)
{
    for (int i = 0; i < u->d->variable_count; i++) {
        const uint8_t causality = u->d->variables[i].causality;
        const bool is = causality == CRD_STRUCTURAL_PARAMETER;
        if (!u->fed[i] || is != structural || (!is && causality != CRD_PARAMETER)) { continue; }
        crdi_dcp_slot_copy(crd_dcp_master_slot(s->master, u->slave, i), &u->values[i].slot);
        const crd_status st = crd_dcp_master_set(s->master, u->slave, i);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

// Inputs that are set here or connected, all outputs.
static crd_status plan_values(crdi_session* s, crdi_dcp_unit* u)
{
    crd_status st = CRD_OK;
    int* list = crdi_arena_new(&u->arena, (size_t)u->d->variable_count + 1, sizeof *list);
    if (!list) { return crdi_fail(s->ctx, CRD_E_MEMORY, "out of memory"); }
    CRD_TRY(dcp_session_set_parameters(s, u, true));
    CRD_TRY(dcp_session_set_parameters(s, u, false));
    int own[2] = {-1, -1}, count = 0; // inputs that the bench's side fills
    if (u->bench) {
        CRD_TRY(crdi_dcp_bench_peer_bind(u->bench, s->master, u->slave));
        count = crdi_dcp_bench_peer_inputs(u->bench, own);
        memcpy(list, own, (size_t)count * sizeof *own);
    }
    u->input_count = u->output_count = 0;
    for (int i = 0; i < u->d->variable_count; i++) {
        if (u->d->variables[i].causality != CRD_INPUT || !u->fed[i] || u->routed[i] ||
            i == own[0] || i == own[1]) {
            continue;
        }
        u->inputs[u->input_count++] =
            (crdi_dcp_move){&u->values[i].slot, crd_dcp_master_slot(s->master, u->slave, i)};
        list[count++] = i;
    }
    CRD_TRY(crd_dcp_master_feed(s->master, u->slave, list, count));
    for (int i = 0; i < u->d->variable_count; i++) {
        if (u->d->variables[i].causality != CRD_OUTPUT) { continue; }
        u->outputs[u->output_count] =
            (crdi_dcp_move){crd_dcp_master_slot(s->master, u->slave, i), &u->values[i].slot};
        list[u->output_count++] = i;
    }
    CRD_TRY(crd_dcp_master_watch(s->master, u->slave, list, u->output_count,
                                 (uint32_t)u->base.spec->session.steps));
fail:
    return st;
}

// A bench is an event loop beside its machine: it answers whatever the machine does. A model may
// compute for long.
static double alive_of(const crdi_dcp_unit* u)
{
    static const double usual = 3; // s
    const double given = u->base.spec->session.alive;
    return !isnan(given) ? given : u->bench ? usual : 0;
}

static crd_status plan_session(crdi_session* s)
{
    crd_status st = CRD_OK;
    for (int i = 0; i < s->count; i++) {
        crdi_dcp_unit* u = s->units[i];
        const crd_session_spec* p = &u->base.spec->session;
        CRD_TRY(crd_dcp_master_add(
            s->master,
            &(crd_dcp_slave_spec){.name = u->base.name,
                                  .description = u->d,
                                  .control = u->address,
                                  .mode = u->mode,
                                  .numerator = u->numerator,
                                  .denominator = u->denominator,
                                  .id = (uint8_t)(u->can ? u->address.port : p->id),
                                  .alive = alive_of(u),
                                  .one_target = p->one_target},
            &u->slave));
        CRD_TRY(plan_values(s, u));
        s->in_real_time = s->in_real_time || u->mode != CRD_DCP_NRT;
        s->shared = s->shared || (s->count > 1 && !isnan(u->base.spec->budget));
    }
    for (int i = 0; i < s->route_count; i++) {
        const struct route* r = &s->routes[i];
        CRD_TRY(crd_dcp_master_route(s->master, r->from->slave, r->output, r->to->slave, r->input,
                                     (uint32_t)r->from->base.spec->session.steps, NULL));
    }
fail:
    return st;
}

// ---- the course of things ----------------------------------------------------------------------

static crd_status dcp_session_bring_up(crdi_session* s)
{
    crd_status st = CRD_OK;
    crd_dcp_master_options o = options_of(s);
    CRD_TRY(open_net(s, &o));
    CRD_TRY(crd_dcp_master_create(s->ctx, s->net, &o, &s->master));
    CRD_TRY(plan_session(s));
    for (int i = 0; i < s->count; i++) {
        crdi_dcp_board_open(s->units[i], crd_dcp_net_now(s->net));
    }
    CRD_TRY(crd_dcp_master_configure(s->master));
    for (int i = 0; i < s->count; i++) {
        s->units[i]->fell = s->units[i]->slow_stop =
            false; // in an earlier session, from which it was taken over
    }
    start_heartbeats(s);
fail:
    return st;
}

const crdi_dcp_unit* crdi_session_unit_of(const crdi_session* s, const char** text)
{
    for (int i = 0; i < s->count; i++) {
        const char* name = s->units[i] ? s->units[i]->base.name : NULL;
        const size_t n = name ? strlen(name) : 0;
        if (name && strncmp(*text, name, n) == 0 && strncmp(*text + n, ": ", 2) == 0) {
            *text += n + 2;
            return s->units[i];
        }
    }
    return NULL;
}

// Why the bench has stopped, refuses or is not ready, in its own words; "". A set value that it has
// clamped some time ago is no reason, nor is that it came to rest when it was told to.
static const char* bench_says(const crdi_dcp_bench_peer* bench)
{
    if (!bench) { return ""; }
    const crdi_dcp_bench_view v = crdi_dcp_bench_peer_view(bench);
    const bool at_rest = strncmp(v.why, "stop: ", 6) == 0 && strncmp(v.why, "stop: by ", 9) != 0 &&
                         strncmp(v.why, stop_late, sizeof stop_late - 1) != 0;
    if (*v.why && strncmp(v.why, "clamped", 7) != 0 && !at_rest) { return v.why; }
    const bool ready = strstr(v.missing, "all items are met") != NULL;
    const bool conditioned = strstr(v.progress, "done") != NULL;
    return conditioned ? "" : *v.progress ? v.progress : ready ? "" : v.missing;
}

crd_status crdi_session_word_failure(crdi_dcp_unit* u, crd_status st)
{
    if (st >= 0) { return st; }
    u->session->worded = true;
    const crdi_session* s = u->session->because ? u->session->because : u->session;
    const char* text = crd_error_text(s->ctx);
    const crdi_dcp_unit* of = crdi_session_unit_of(s, &text);
    const bool other = of && of != u;
    const char* why = bench_says(of ? of->bench : u->bench);
    static const char last[] = "; its last message: "; // mostly the same words
    const char* message = *why ? strstr(text, last) : NULL;
    const bool same = message && strcmp(message + sizeof last - 1, why) == 0;
    const bool lost = s->master && crd_dcp_master_status(s->master, (of ? of : u)->slave).lost;
    return crdi_fail(u->base.ctx, st, "%s%s%s%.*s%s%s",
                     other ? "the session ends because of unit '" : "", other ? of->base.name : "",
                     other ? "': " : "", (int)(same ? (size_t)(message - text) : strlen(text)),
                     text,
                     !*why  ? ""
                     : lost ? "; the last that the bench said: "
                            : "; the bench says: ",
                     why);
}

crd_status crdi_session_word_bench_failure(crdi_dcp_unit* u, crd_status st)
{
    if (st >= 0) { return st; }
    char text[200];
    const size_t n = strlen(u->base.name);
    snprintf(text, sizeof text, "%s", crd_error_text(u->base.ctx));
    const bool named = strncmp(text, u->base.name, n) == 0 && strncmp(text + n, ": ", 2) == 0;
    const char* why = bench_says(u->bench);
    return crdi_fail(u->base.ctx, st, "%s%s%s", named ? text + n + 2 : text,
                     *why ? "; the bench says: " : "", why);
}

static void begin_life(crdi_session* s, const crd_experiment* e)
{
    s->tried = true;
    s->interrupted = e->interrupted;
    s->emergency = e->emergency;
    s->begin = e->start;
}

static void* open_session(void* user)
{
    crdi_session* s = user;
    s->status = dcp_session_bring_up(s);
    atomic_store_explicit(&s->failed, s->status < 0, memory_order_release);
    return NULL;
}

void crdi_session_approach(crdi_dcp_unit* u, const crd_experiment* e)
{
    crdi_session* s = u->session;
    const bool one = !s->first || !(*s->first)->next;
    // The net of a test belongs to one thread.
    if (s->tried || one || crdi_session_open_net != crd_dcp_net_create) { return; }
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before); // signals are for the cycle thread
    begin_life(s, e);
    s->opening = pthread_create(&s->opener, NULL, open_session, s) == 0;
    s->tried = s->opening; // else one behind the other
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

crd_status crdi_session_configure(crdi_dcp_unit* u, const crd_experiment* e)
{
    crdi_session* s = u->session;
    if (!s->tried) {
        begin_life(s, e);
        open_session(s);
    }
    join_opener(s);
    // Nobody looks at the others any more when units begin to go.
    for (crdi_session* o = s->status < 0 && s->first ? *s->first : NULL; o; o = o->next) {
        join_opener(o);
    }
    return crdi_session_word_failure(u, s->status);
}
