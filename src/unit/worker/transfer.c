// Values and steps of a unit in a worker. What is set waits in the shared memory until the next
// request and goes with it; what was read after a step is fetched by the worker after the next one:
// a step is one request and one answer.
#include "unit/worker/worker.h"

#include <string.h>

enum { MOST_UNREAD = 8 }; // changes after which the worker does not fetch for nothing any more

// ---- bindings ----------------------------------------------------------------------------------

crd_status crdi_proxy_prepare(crd_unit* unit, crd_binding* b)
{
    crdi_proxy* u = (crdi_proxy*)unit;
    crdi_proxy_binding* p = crdi_new(unit->ctx, sizeof *p);
    if (!p) { return CRD_E_MEMORY; }
    p->binding = b;
    p->handle = -1;
    p->next = u->bindings;
    u->bindings = p;
    b->prepared = p;
    return CRD_OK;
}

static void fill_binding(crdi_mail* m, const void* with)
{
    const crd_binding* b = with;
    crdi_mail_put_u64(m, (uint64_t)b->count);
    crdi_mail_put(m, b->variables, (size_t)b->count * sizeof *b->variables);
}

// An area that a binding has left is used again if it is large enough.
static bool take_spare(crdi_proxy* u, crdi_proxy_binding* p, size_t bytes)
{
    for (crdi_proxy_binding** q = &u->spare; *q; q = &(*q)->next) {
        crdi_proxy_binding* s = *q;
        if (s->bytes < bytes) { continue; }
        p->handle = s->handle;
        p->at = s->at;
        p->bytes = s->bytes;
        *q = s->next;
        crd_free(u->base.ctx, s);
        return true;
    }
    return false;
}

crd_status crdi_proxy_bind(crdi_proxy* u, crdi_proxy_binding* p)
{
    crdi_worker* w = u->worker;
    const size_t bytes = crdi_channel_area_bytes(p->binding);
    if (p->handle >= 0) { return CRD_OK; }
    if (!take_spare(u, p, bytes)) {
        crdi_worker_lock(&w->lock);
        p->at = w->control ? crdi_worker_area(w, bytes) : SIZE_MAX;
        crdi_worker_unlock(&w->lock);
        if (p->at == SIZE_MAX) {
            return crdi_fail(u->base.ctx, CRD_E_RANGE,
                             "the values of the units of a worker process need more than %zu MB",
                             CRDI_CHANNEL_BYTES >> 20);
        }
        p->bytes = bytes;
        p->handle = u->handles++;
    }
    p->area = crdi_channel_area_at(w->memory, p->at, p->binding);
    if (u->base.spec->restart > 0 && !p->own) {
        p->own = crdi_new(u->base.ctx, p->bytes + 1);
        if (!p->own) { return CRD_E_MEMORY; }
    }
    const crdi_proxy_call c = {.request = {.op = CRDI_OP_BIND, .handle = p->handle, .area = p->at},
                               .fill = fill_binding,
                               .with = p->binding};
    return crdi_proxy_do(u, &c);
}

void crdi_proxy_unprepare(crd_unit* unit, crd_binding* b)
{
    crdi_proxy* u = (crdi_proxy*)unit;
    crdi_proxy_binding* p = b->prepared;
    if (!p) { return; }
    if (p->handle >= 0) {
        const crdi_proxy_call c = {.request = {.op = CRDI_OP_UNBIND, .handle = p->handle}};
        (void)crdi_proxy_do(u, &c); // what was set goes first
    }
    for (crdi_proxy_binding** q = &u->bindings; *q; q = &(*q)->next) {
        if (*q == p) {
            *q = p->next;
            break;
        }
    }
    b->prepared = NULL;
    crd_free(unit->ctx, p->own);
    p->own = NULL;
    if (p->handle < 0) {
        crd_free(unit->ctx, p);
        return;
    }
    if (p->waits) { u->waiting--; } // its worker is no more
    p->waits = false;
    p->next = u->spare;
    u->spare = p;
}

// ---- set ---------------------------------------------------------------------------------------

// The next binding that was set, as part of a request.
static bool take_waiting(crdi_proxy* u, crdi_request* r)
{
    for (crdi_proxy_binding* p = u->bindings; p && u->waiting; p = p->next) {
        if (!p->waits) { continue; }
        r->handle = p->handle;
        r->order = p->order;
        r->area = p->rates_only ? CRDI_SET_RATES : CRDI_SET_VALUES;
        p->waits = p->rates_only = false;
        u->waiting--;
        return true;
    }
    return false;
}

void crdi_proxy_flush(crdi_proxy* u)
{
    crdi_request r = {.op = CRDI_OP_SET};
    while (take_waiting(u, &r)) {
        crdi_worker_push(u, &r);
    }
}

static void fill_texts(crdi_mail* m, const void* with)
{
    const crd_values* v = ((const void* const*)with)[0];
    const crd_binding* b = ((const void* const*)with)[1];
    crdi_mail_put_bytes(m, v->bytes, b->bytes_count);
}

// What its worker cannot change.
static void __attribute__((cold, noinline)) keep_values(crdi_proxy_binding* p, const crd_values* v)
{
    const crd_binding* b = p->binding;
    const crdi_channel_area own = crdi_channel_area_at(p->own, 0, b);
    p->own_order = 0;
    if (b->real_count) { memcpy(own.real, v->real, (size_t)b->real_count * sizeof(double)); }
    if (b->integer_count) {
        memcpy(own.integer, v->integer, (size_t)b->integer_count * sizeof(int64_t));
    }
}

// Texts go at once, in order with what was set before.
static crd_status __attribute__((cold, noinline))
set_texts(crdi_proxy* u, crdi_proxy_binding* p, const crd_values* v)
{
    const void* with[] = {v, p->binding};
    const crdi_proxy_call c = {
        .request = {.op = CRDI_OP_SET, .handle = p->handle, .area = CRDI_SET_TEXTS},
        .fill = fill_texts,
        .with = with};
    return crdi_proxy_do(u, &c);
}

crd_status crdi_proxy_set(crd_unit* unit, const crd_binding* b, const crd_values* v)
{
    crdi_proxy* u = (crdi_proxy*)unit;
    crdi_proxy_binding* p = b->prepared;
    if (u->begun) { return CRD_OK; } // by `begin`, which was given the same
    crd_status st = CRD_OK;
    if (__builtin_expect(u->worker->failed || !u->created, 0)) { return crdi_worker_gone(u); }
    if (p->handle < 0) { CRD_TRY(crdi_proxy_bind(u, p)); }
    if (p->waits) { // twice without a step: each counts, as an event may come of it
        const crdi_proxy_call c = {.request = {.op = CRDI_OP_GET, .handle = -1}};
        CRD_TRY(crdi_proxy_do(u, &c));
    }
    if (b->real_count) { memcpy(p->area.real, v->real, (size_t)b->real_count * sizeof(double)); }
    if (b->integer_count) {
        memcpy(p->area.integer, v->integer, (size_t)b->integer_count * sizeof(int64_t));
    }
    u->epoch++;
    p->inputs = true;
    if (__builtin_expect(p->own != NULL, 0)) { keep_values(p, v); }
    if (b->bytes_count) { return set_texts(u, p, v); }
    p->waits = true;
    p->order = 0;
    u->waiting++;
fail:
    return st;
}

crd_status crdi_proxy_set_rates(crd_unit* unit, const crd_binding* b, const double* const* d,
                                int order)
{
    crdi_proxy* u = (crdi_proxy*)unit;
    crdi_proxy_binding* p = b->prepared;
    if (u->begun) { return CRD_OK; }
    if (order > CRDI_CHANNEL_ORDERS) { order = CRDI_CHANNEL_ORDERS; }
    if (__builtin_expect(u->worker->failed || p->handle < 0, 0)) { return crdi_worker_gone(u); }
    if (!p->waits) { // the values went ahead
        p->waits = p->rates_only = true;
        u->waiting++;
    }
    for (int k = 0; k < order; k++) {
        memcpy(p->area.rate[k], d[k], (size_t)b->real_count * sizeof(double));
    }
    p->order = (int16_t)order;
    u->epoch++;
    if (__builtin_expect(p->own != NULL, 0)) {
        const crdi_channel_area own = crdi_channel_area_at(p->own, 0, b);
        for (int k = 0; k < order; k++) {
            memcpy(own.rate[k], d[k], (size_t)b->real_count * sizeof(double));
        }
        p->own_order = (int16_t)order;
    }
    return CRD_OK;
}

// ---- get ---------------------------------------------------------------------------------------

// From now on the worker fetches it after each step. Not of a unit whose model is evaluated to be
// read, derivatives even at other points: there are FMUs whose results depend on each evaluation,
// and in process there is none after half a step.
static void watch(crdi_proxy* u, crdi_proxy_binding* p, int what)
{
    if (u->base.info.flags & CRD_UNIT_CAN_REFRESH) { return; }
    if (p->watch & (1u << what) || p->binding->bytes_count) { return; }
    p->watch |= 1u << what;
    if (!u->watched) { u->watched = p->area.real; }
    const crdi_request r = {.op = CRDI_OP_WATCH, .handle = p->handle, .area = p->watch};
    crdi_worker_lock(&u->worker->lock);
    crdi_worker_push(u, &r);
    crdi_worker_unlock(&u->worker->lock);
}

typedef struct {
    const crd_binding* binding;
    crd_values* values;
} texts_wanted;

static crd_status take_texts(crdi_proxy* u, crdi_mail* m, void* into)
{
    const texts_wanted* t = into;
    return crdi_mail_get_bytes(m, u->base.ctx, t->values->bytes, t->binding->bytes_count);
}

// Is it known already what the values (order 0) or derivatives are?
static inline bool is_fresh(const crdi_proxy* u, const crdi_proxy_binding* p, int order)
{
    return p->handle >= 0 &&
           (p->fresh[order] == u->epoch || (u->fetched == u->epoch && p->watch & (1u << order)));
}

crd_status crdi_proxy_get(crd_unit* unit, const crd_binding* b, crd_values* v)
{
    crdi_proxy* u = (crdi_proxy*)unit;
    crdi_proxy_binding* p = b->prepared;
    crd_status st = CRD_OK;
    const bool seated = p->seat && u->in_row && u->fetched == u->epoch;
    if (!seated && (!is_fresh(u, p, 0) || b->bytes_count)) {
        if (!u->created) { return crdi_worker_gone(u); }
        CRD_TRY(crdi_proxy_bind(u, p));
        texts_wanted t = {b, v};
        const crdi_proxy_call c = {.request = {.op = CRDI_OP_GET, .handle = p->handle},
                                   .take = b->bytes_count ? take_texts : NULL,
                                   .into = &t};
        CRD_TRY(crdi_proxy_do(u, &c));
        p->fresh[0] = u->epoch;
        if (u->steps) { watch(u, p, 0); }
    }
    p->read = u->epoch;
    if (b->real_count) {
        memcpy(v->real, seated ? p->seat : p->area.real, (size_t)b->real_count * sizeof(double));
    }
    if (b->integer_count) {
        memcpy(v->integer, p->area.integer, (size_t)b->integer_count * sizeof(int64_t));
    }
fail:
    return st;
}

crd_status crdi_proxy_get_rates(crd_unit* unit, const crd_binding* b, int order, double* d)
{
    crdi_proxy* u = (crdi_proxy*)unit;
    crdi_proxy_binding* p = b->prepared;
    crd_status st = CRD_OK;
    if (order < 1 || order > CRDI_CHANNEL_ORDERS) {
        memset(d, 0, (size_t)b->real_count * sizeof *d);
        return CRD_OK;
    }
    if (!is_fresh(u, p, order)) {
        if (!u->created) { return crdi_worker_gone(u); }
        CRD_TRY(crdi_proxy_bind(u, p));
        const crdi_proxy_call c = {
            .request = {.op = CRDI_OP_RATES, .handle = p->handle, .order = (int16_t)order}};
        CRD_TRY(crdi_proxy_do(u, &c));
        p->fresh[order] = u->epoch;
        if (u->steps) { watch(u, p, order); }
    }
    p->read = u->epoch;
    memcpy(d, p->area.rate[order - 1], (size_t)b->real_count * sizeof *d);
fail:
    return st;
}

// ---- derivatives of variables ------------------------------------------------------------------

bool crdi_proxy_find_gain(crdi_proxy* u, const crdi_channel_gain* g, double* value)
{
    if (u->fetched != u->epoch || u->in_row) { return false; }
    for (int32_t i = 0; i < u->gain_count; i++) {
        const crdi_channel_gain* k = &u->gains[i];
        if (k->unknown != g->unknown || k->known != g->known || k->seed != g->seed) { continue; }
        *value = ((const double*)(u->worker->memory + u->gains_at))[i];
        u->gains_read = u->epoch;
        return true;
    }
    return false;
}

// Not of a unit whose model is evaluated to be read; see `watch`.
void crdi_proxy_watch_gain(crdi_proxy* u, const crdi_channel_gain* g)
{
    crdi_worker* w = u->worker;
    if (!u->steps || u->gain_count == CRDI_CHANNEL_GAINS || w->failed ||
        u->base.info.flags & CRD_UNIT_CAN_REFRESH) {
        return;
    }
    for (int32_t i = 0; i < u->gain_count; i++) {
        if (u->gains[i].unknown == g->unknown && u->gains[i].known == g->known) { return; }
    }
    crdi_worker_lock(&w->lock);
    if (!u->gains_at) { u->gains_at = crdi_worker_area(w, CRDI_CHANNEL_GAINS * sizeof(double)); }
    if (u->gains_at != SIZE_MAX) {
        const crdi_request r = {.op = CRDI_OP_GAIN,
                                .handle = u->gain_count,
                                .length = (uint64_t)(uint32_t)g->unknown << 32 | (uint32_t)g->known,
                                .area = u->gains_at,
                                .t = g->seed};
        u->gains[u->gain_count++] = *g;
        u->gains_read = u->epoch;
        crdi_worker_push(u, &r);
    }
    crdi_worker_unlock(&w->lock);
}

// ---- steps -------------------------------------------------------------------------------------

void crdi_proxy_push_step(crdi_proxy* u, double t, double h)
{
    crdi_request r = {.op = CRDI_OP_STEP, .handle = -1, .t = t, .h = h};
    crdi_worker_lock_push(u->worker);
    if (u->waiting > 1) {
        crdi_proxy_flush(u);
    } else if (u->waiting) {
        (void)take_waiting(u, &r);
    }
    crdi_worker_push(u, &r);
    crdi_worker_unlock_push(u->worker);
    u->begun = true;
}

void crdi_proxy_begin(crd_unit* unit, double t, double h)
{
    crdi_proxy* u = (crdi_proxy*)unit;
    if (u->begun || u->worker->failed || !u->created) { return; }
    crdi_proxy_push_step(u, t, h);
}

void crdi_proxy_stop_watching(crdi_proxy* u)
{
    for (crdi_proxy_binding* p = u->bindings; p; p = p->next) {
        if (!p->watch || u->epoch - p->read <= MOST_UNREAD || (u->in_row && p->seat)) { continue; }
        p->watch = 0;
        if (u->watched == p->area.real) { u->watched = NULL; }
        const crdi_request r = {.op = CRDI_OP_WATCH, .handle = p->handle};
        crdi_worker_lock(&u->worker->lock);
        crdi_worker_push(u, &r);
        crdi_worker_unlock(&u->worker->lock);
    }
    if (u->gain_count && u->epoch - u->gains_read > MOST_UNREAD) {
        const crdi_request r = {.op = CRDI_OP_GAIN, .handle = -1};
        u->gain_count = 0;
        crdi_worker_lock(&u->worker->lock);
        crdi_worker_push(u, &r);
        crdi_worker_unlock(&u->worker->lock);
    }
}

crd_status crdi_proxy_end_step(crdi_proxy* u, double t, double h)
{
    crd_status st = crdi_worker_wait(u);
    u->begun = false;
    if (st >= 0 && u->base.spec->restart > 0) { st = crdi_proxy_keep(u, t + h); }
    if (__builtin_expect(u->worker->failed, 0)) {
        return u->restarts < u->base.spec->restart ? crdi_proxy_restart(u, t, h)
                                                   : crdi_worker_gone(u);
    }
    crdi_proxy_note_step(u, u->answer->flags & CRDI_FETCHED, false);
    return st;
}

crd_status crdi_proxy_step(crd_unit* unit, double t, double h)
{
    crdi_proxy* u = (crdi_proxy*)unit;
    if (__builtin_expect(u->worker->failed || !u->created, 0)) { return crdi_worker_gone(u); }
    if (!u->begun) { crdi_proxy_push_step(u, t, h); }
    return crdi_proxy_end_step(u, t, h);
}
