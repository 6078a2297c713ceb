// Steps of many units in one request for each worker that has some of them: inputs and outputs of
// the units lie side by side, one answer counts for all.
#include "unit/worker/worker.h"

#include <string.h>

typedef struct {
    crdi_proxy* unit;
    crdi_proxy_binding *in, *out;
    const double* inputs;
    double* outputs;
    double* to;         // where its inputs go, the seat or the request
    const double* from; // and its outputs come from
    crdi_worker* rows;  // first lane of a row that is under way: its workers
    uint32_t in_bytes, out_bytes;
    int id;
    int32_t seat;
    uint32_t life;  // of the worker in which it has the seat
    int32_t seated; // first lane: how many of the row have a seat
    bool begun;     // first lane
    bool planned;   // first lane
    int16_t order;  // crdi_row_order of the units of its worker
} lane_data;
_Static_assert(sizeof(lane_data) <= sizeof(crd_lane), "a lane is too small");

static inline lane_data* lane_at(crd_lane* first, int i)
{
    return (lane_data*)(void*)(first + i);
}

static inline bool has_seat(const lane_data* d)
{
    return d->life == d->unit->worker->life && !d->unit->begun;
}

// ---- beginning ---------------------------------------------------------------------------------

static void begin_alone(lane_data* d, double t, double h)
{
    crdi_proxy* u = d->unit;
    if (u->begun || u->worker->failed) { return; }
    if (d->in) {
        const crd_values v = {.real = (double*)d->inputs};
        if (crdi_proxy_set(&u->base, d->in->binding, &v) < 0) { return; }
    }
    crdi_proxy_push_step(u, t, h);
}

// Where the units of a worker that are in a row have few values these travel with request and
// answer.
static void plan_few(crd_lane* first, int count)
{
    enum { MOST = CRDI_FEW_INPUTS + CRDI_FEW_OUTPUTS };
    for (int i = 0; i < count && count <= MOST; i++) {
        lane_data* d = lane_at(first, i);
        crdi_worker* w = d->unit->worker;
        size_t in = 0, out = 0, in_at = 0, out_at = 0;
        for (int k = 0; k < count; k++) {
            const lane_data* e = lane_at(first, k);
            if (k == i) { in_at = in, out_at = out; }
            if (e->unit->worker != w) { continue; }
            in += e->in_bytes / sizeof(double);
            out += e->out_bytes / sizeof(double);
        }
        if (in > CRDI_FEW_INPUTS || out > CRDI_FEW_OUTPUTS || !has_seat(d)) { continue; }
        d->order = crdi_row_order((int)in, (int)out);
        d->to = w->few + in_at;
        d->from = w->control->row.few + out_at;
    }
    lane_at(first, 0)->planned = true;
}

// One of a row with few values is not in it: no order any more.
static void check_few(crd_lane* first, int count)
{
    bool all = true;
    for (int i = 0; i < count; i++) {
        all = all && has_seat(lane_at(first, i));
    }
    for (int i = 0; i < count && !all; i++) {
        lane_data* d = lane_at(first, i);
        if (d->order) { d->life = d->unit->worker->life - 1; } // by itself from now on
    }
}

static void push_row(crdi_worker* w, double t, double h)
{
    const crdi_worker_row* k = &w->row;
    crdi_request r = {
        .op = CRDI_OP_ROW, .handle = k->first, .length = (uint64_t)k->count, .t = t, .h = h};
    r.order = k->order;
    if (k->order) { memcpy(r.few, w->few, sizeof r.few); }
    crdi_worker_push(k->lead, &r);
    crdi_worker_unlock_push(w);
}

// The inputs of a unit to its seat, and the unit into the row of its worker. Seats were taken in
// the order of the lanes, so that those of a row are one behind the other.
static inline void sit_down(lane_data* d, lane_data* owner)
{
    crdi_proxy* u = d->unit;
    crdi_worker* w = u->worker;
    if (!w->row.pending) {
        crdi_worker_lock_push(w);
        w->row = (crdi_worker_row){.lead = u,
                                   .pending = true,
                                   .owner = owner,
                                   .first = d->seat,
                                   .id = d->id,
                                   .order = d->order,
                                   .outputs = d->from,
                                   .next = owner->rows};
        owner->rows = w;
    }
    if (__builtin_expect(u->waiting, 0)) { crdi_proxy_flush(u); }
    if (d->in_bytes == sizeof(double)) {
        *d->to = *d->inputs;
    } else if (d->in_bytes) {
        memcpy(d->to, d->inputs, d->in_bytes);
    }
    w->row.count++;
    owner->seated++;
}

// All begin before the first is waited for: workers run side by side, and one that has several of
// the units is woken up once. A worker has one row at a time: where one is under way, this row
// begins when its end is asked for.
void crdi_proxy_begin_row(crd_lane* first, int count, double t, double h)
{
    lane_data* owner = lane_at(first, 0);
    if (owner->begun) { return; }
    if (!owner->planned) { plan_few(first, count); }
    if (owner->order) { check_few(first, count); }
    owner->rows = NULL;
    owner->seated = 0;
    for (int i = 0; i < count; i++) {
        lane_data* d = lane_at(first, i);
        const crdi_worker* w = d->unit->worker;
        if (__builtin_expect(w->row.pending && w->row.owner != owner, 0)) {
            for (crdi_worker* r = owner->rows; r; r = r->row.next) {
                r->row.pending = false;
                crdi_worker_unlock_push(r);
            }
            return;
        }
        if (has_seat(d) && !w->failed &&
            (!w->row.pending || d->seat == w->row.first + w->row.count)) {
            sit_down(d, owner);
        } else {
            d->life = w->life - 1; // by itself from now on
        }
    }
    for (crdi_worker* w = owner->rows; w; w = w->row.next) {
        push_row(w, t, h);
    }
    for (int i = 0; i < count && owner->seated < count; i++) {
        if (!has_seat(lane_at(first, i))) { begin_alone(lane_at(first, i), t, h); }
    }
    owner->begun = true;
}

void crdi_proxy_forget_row(crdi_worker* w)
{
    if (!w->row.pending) { return; }
    if (!w->failed) {
        (void)crdi_worker_await(w->row.lead, &w->control->row, w->row.number, w->row.outputs);
    }
    w->row.pending = false;
}

// ---- end ---------------------------------------------------------------------------------------

// false: not all of its units have simply done their step.
static inline bool end_row(crdi_worker* w)
{
    crdi_worker_row* r = &w->row;
    const bool answered =
        !w->failed && crdi_worker_await(r->lead, &w->control->row, r->number, r->outputs);
    r->pending = false;
    r->status = answered ? w->control->row.status : CRD_E_CRASH;
    r->flags = answered ? w->control->row.flags : 0;
    return r->status >= 0 && !(r->flags & CRDI_LOOK);
}

static inline void take_outputs(const lane_data* d)
{
    if (d->out_bytes == sizeof(double)) {
        *d->outputs = *d->from;
    } else if (d->out_bytes) {
        memcpy(d->outputs, d->from, d->out_bytes);
    }
}

// The unit that has ended its worker speaks for the others there.
static const lane_data* find_blamed_lane(crd_lane* first, int count, const lane_data* d)
{
    const crdi_worker* w = d->unit->worker;
    for (int i = 0; i < count; i++) {
        const lane_data* e = lane_at(first, i);
        if (e->unit->worker == w && e->unit->index == w->blamed) { return e; }
    }
    return d;
}

static crd_status end_lane(lane_data* d, bool seated, double t, double h)
{
    crdi_proxy* u = d->unit;
    const crdi_worker_row* r = &u->worker->row;
    crd_status st = CRD_OK;
    if (!seated) {
        st = u->begun ? crdi_proxy_end_step(u, t, h) : crdi_worker_gone(u);
        crd_values v = {.real = d->outputs};
        return st >= 0 && d->out ? crdi_proxy_get(&u->base, d->out->binding, &v) : st;
    }
    if (r->status < 0 || r->flags & CRDI_LOOK) { st = crdi_worker_take(u); }
    crdi_proxy_note_step(u, r->flags & CRDI_FETCHED, true);
    if (st >= 0) { take_outputs(d); }
    return st;
}

// One by one, in their order: some have failed, have news, or go by themselves.
static crd_status __attribute__((cold, noinline))
end_one_by_one(crd_lane* first, int count, double t, double h, volatile int* at)
{
    for (int i = 0; i < count; i++) {
        lane_data* d = lane_at(first, i);
        const crdi_worker* w = d->unit->worker;
        const bool seated = has_seat(d);
        *at = d->id;
        if (w->failed && seated) {
            const lane_data* b = find_blamed_lane(first, count, d);
            *at = b->id;
            return crdi_worker_gone(b->unit);
        }
        const crd_status st = end_lane(d, seated, t, h);
        if (st < 0) { return st; }
    }
    for (crdi_worker* w = lane_at(first, 0)->rows; w; w = w->row.next) { // says so, but of no unit
        if (w->row.status >= 0) { continue; }
        *at = w->row.id;
        return crdi_fail(w->row.lead->base.ctx, CRD_E_UNIT, "its worker's answer makes no sense");
    }
    return CRD_OK;
}

static crd_status proxy_advance(crd_lane* first, int count, double t, double h, volatile int* at)
{
    lane_data* owner = lane_at(first, 0);
    if (!owner->begun) {
        for (int i = 0; i < count; i++) { // of a step that nobody has ended
            crdi_proxy_forget_row(lane_at(first, i)->unit->worker);
        }
        crdi_proxy_begin_row(first, count, t, h);
    }
    owner->begun = false;
    bool plain = owner->seated == count;
    for (crdi_worker* w = owner->rows; w; w = w->row.next) {
        *at = w->row.id;
        plain = end_row(w) && plain;
    }
    if (__builtin_expect(!plain, 0)) { return end_one_by_one(first, count, t, h, at); }
    for (int i = 0; i < count; i++) {
        const lane_data* d = lane_at(first, i);
        crdi_proxy_note_step(d->unit, d->unit->worker->row.flags & CRDI_FETCHED, true);
        take_outputs(d);
    }
    return CRD_OK;
}

// ---- seats -------------------------------------------------------------------------------------

static void fill_seat(crdi_mail* m, const void* with)
{
    crdi_mail_put(m, with, sizeof(crdi_channel_seat));
}

static bool find_room(crdi_worker* w, const lane_data* d, crdi_channel_seat* s)
{
    crdi_worker_lock(&w->lock);
    s->in_at = crdi_worker_seat_area(w, 0, d->in_bytes);
    s->out_at = crdi_worker_seat_area(w, 1, d->out_bytes);
    crdi_worker_unlock(&w->lock);
    return s->in_at != SIZE_MAX && s->out_at != SIZE_MAX;
}

static bool take_seat(crdi_proxy* u, lane_data* d)
{
    crdi_worker* w = u->worker;
    crdi_channel_seat s = {.in = d->in ? d->in->handle : -1, .out = d->out ? d->out->handle : -1};
    if (!find_room(w, d, &s)) { return false; }
    d->seat = w->seats;
    const crdi_proxy_call c = {
        .request = {.op = CRDI_OP_SEAT, .handle = d->seat}, .fill = fill_seat, .with = &s};
    if (crdi_proxy_do(u, &c) < 0) { return false; }
    w->seats++;
    d->to = (double*)(w->memory + s.in_at);
    d->from = (const double*)(w->memory + s.out_at);
    d->life = w->life;
    if (d->out) { d->out->seat = d->from; } // also of a row with few values
    return true;
}

// Not for units that may begin anew: these find their inputs where they are set one by one.
crd_advance* crdi_proxy_join(crd_unit* unit, int id, const crd_binding* in,
                             const crd_values* inputs, const crd_binding* out, crd_values* outputs,
                             crd_lane* lane)
{
    crdi_proxy* u = (crdi_proxy*)unit;
    lane_data* d = (void*)lane;
    if (unit->spec->restart > 0 || (in && (in->integer_count || in->bytes_count)) ||
        (out && (out->integer_count || out->bytes_count))) {
        return NULL;
    }
    *d = (lane_data){.unit = u, .id = id};
    if (in) {
        d->in = in->prepared;
        d->inputs = inputs->real;
        d->in_bytes = (uint32_t)in->real_count * (uint32_t)sizeof(double);
        if (crdi_proxy_bind(u, d->in) < 0) { return NULL; }
    }
    if (out) {
        d->out = out->prepared;
        d->outputs = outputs->real;
        d->out_bytes = (uint32_t)out->real_count * (uint32_t)sizeof(double);
        if (crdi_proxy_bind(u, d->out) < 0) { return NULL; }
    }
    return take_seat(u, d) ? proxy_advance : NULL;
}
