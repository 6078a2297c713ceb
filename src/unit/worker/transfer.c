// Values and steps of a unit in a worker. What is set waits in the shared memory until the next
// request and goes with it; what was read after a step is fetched by the worker after the next one:
// a step is one request and one answer.
#include "unit/worker/worker.h"

#include <string.h>

enum { MOST_UNREAD = 3 }; // steps in which the worker fetches for nothing

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
    if (b->bytes_count) { return set_texts(u, p, v); }
    p->waits = p->inputs = true;
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
    return CRD_OK;
}

// ---- get ---------------------------------------------------------------------------------------

// From now on the worker fetches it after each step.
static void watch(crdi_proxy* u, crdi_proxy_binding* p, int what)
{
    p->unread = 0;
    if (p->watch & (1u << what) || p->binding->bytes_count) { return; }
    p->watch |= 1u << what;
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

crd_status crdi_proxy_get(crd_unit* unit, const crd_binding* b, crd_values* v)
{
    crdi_proxy* u = (crdi_proxy*)unit;
    crdi_proxy_binding* p = b->prepared;
    crd_status st = CRD_OK;
    if (p->handle < 0 || p->fresh[0] != u->epoch || b->bytes_count) {
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
    p->unread = 0;
    if (b->real_count) { memcpy(v->real, p->area.real, (size_t)b->real_count * sizeof(double)); }
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
    if (p->handle < 0 || p->fresh[order] != u->epoch) {
        if (!u->created) { return crdi_worker_gone(u); }
        CRD_TRY(crdi_proxy_bind(u, p));
        const crdi_proxy_call c = {
            .request = {.op = CRDI_OP_RATES, .handle = p->handle, .order = (int16_t)order}};
        CRD_TRY(crdi_proxy_do(u, &c));
        p->fresh[order] = u->epoch;
        if (u->steps) { watch(u, p, order); }
    }
    p->unread = 0;
    memcpy(d, p->area.rate[order - 1], (size_t)b->real_count * sizeof *d);
fail:
    return st;
}

// ---- steps -------------------------------------------------------------------------------------

// One request: what waits of the last set, and the step.
static void push_step(crdi_proxy* u, double t, double h)
{
    crdi_request r = {.op = CRDI_OP_STEP, .handle = -1, .t = t, .h = h};
    crdi_worker_lock(&u->worker->lock);
    if (u->waiting > 1) {
        crdi_proxy_flush(u);
    } else if (u->waiting) {
        (void)take_waiting(u, &r);
    }
    crdi_worker_push(u, &r);
    crdi_worker_unlock(&u->worker->lock);
    u->begun = true;
}

void crdi_proxy_begin(crd_unit* unit, double t, double h)
{
    crdi_proxy* u = (crdi_proxy*)unit;
    if (u->begun || u->worker->failed || !u->created) { return; }
    push_step(u, t, h);
}

// What the worker fetched after the step is fresh; what nobody read is not fetched any more.
static void note_fetched(crdi_proxy* u)
{
    u->epoch++;
    if (!(u->answer->flags & CRDI_FETCHED)) { return; }
    for (crdi_proxy_binding* p = u->bindings; p; p = p->next) {
        if (!p->watch) { continue; }
        for (int k = 0; k <= CRDI_CHANNEL_ORDERS; k++) {
            if (p->watch & (1u << k)) { p->fresh[k] = u->epoch; }
        }
        if (__builtin_expect(++p->unread > MOST_UNREAD, 0)) {
            p->watch = 0;
            const crdi_request r = {.op = CRDI_OP_WATCH, .handle = p->handle};
            crdi_worker_lock(&u->worker->lock);
            crdi_worker_push(u, &r);
            crdi_worker_unlock(&u->worker->lock);
        }
    }
}

static crd_status end_step(crdi_proxy* u, double t, double h)
{
    const crd_status st = crdi_worker_wait(u, u->limit);
    u->begun = false;
    if (__builtin_expect(u->worker->failed, 0)) {
        return u->restarts < u->base.spec->restart ? crdi_proxy_restart(u, t, h)
                                                   : crdi_worker_gone(u);
    }
    note_fetched(u);
    return st;
}

crd_status crdi_proxy_step(crd_unit* unit, double t, double h)
{
    crdi_proxy* u = (crdi_proxy*)unit;
    if (__builtin_expect(u->worker->failed || !u->created, 0)) { return crdi_worker_gone(u); }
    if (!u->begun) { push_step(u, t, h); }
    return end_step(u, t, h);
}

// ---- set, step and get for many at once --------------------------------------------------------

typedef struct {
    crdi_proxy* unit;
    crdi_proxy_binding *in, *out;
    const double* inputs;
    double* outputs;
    size_t in_bytes, out_bytes;
    int id;
} lane_data;
_Static_assert(sizeof(lane_data) <= sizeof(crd_lane), "a lane is too small");

// All begin before the first is waited for: workers run side by side, and one that has several of
// the units is woken up once.
static crd_status proxy_advance(crd_lane* first, int count, double t, double h, volatile int* at)
{
    for (int i = 0; i < count; i++) {
        lane_data* d = (void*)(first + i);
        crdi_proxy* u = d->unit;
        if (u->begun || u->worker->failed) { continue; }
        if (d->in) {
            memcpy(d->in->area.real, d->inputs, d->in_bytes);
            if (!d->in->waits) { u->waiting++; }
            d->in->waits = d->in->inputs = true;
            d->in->order = 0;
        }
        push_step(u, t, h);
    }
    for (int i = 0; i < count; i++) {
        lane_data* d = (void*)(first + i);
        crdi_proxy* u = d->unit;
        *at = d->id;
        crd_status st = u->worker->failed && !u->begun ? crdi_worker_gone(u) : end_step(u, t, h);
        if (st >= 0 && d->out && d->out->fresh[0] != u->epoch) {
            crd_values v = {.real = d->outputs};
            st = crdi_proxy_get(&u->base, d->out->binding, &v);
        } else if (st >= 0 && d->out) {
            d->out->unread = 0;
            memcpy(d->outputs, d->out->area.real, d->out_bytes);
        }
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

crd_advance* crdi_proxy_join(crd_unit* unit, int id, const crd_binding* in,
                             const crd_values* inputs, const crd_binding* out, crd_values* outputs,
                             crd_lane* lane)
{
    crdi_proxy* u = (crdi_proxy*)unit;
    lane_data* d = (void*)lane;
    if ((in && (in->integer_count || in->bytes_count)) ||
        (out && (out->integer_count || out->bytes_count))) {
        return NULL;
    }
    *d = (lane_data){.unit = u, .id = id};
    if (in) {
        d->in = in->prepared;
        d->inputs = inputs->real;
        d->in_bytes = (size_t)in->real_count * sizeof(double);
        if (crdi_proxy_bind(u, d->in) < 0) { return NULL; }
    }
    if (out) {
        d->out = out->prepared;
        d->outputs = outputs->real;
        d->out_bytes = (size_t)out->real_count * sizeof(double);
        if (crdi_proxy_bind(u, d->out) < 0) { return NULL; }
    }
    return proxy_advance;
}
