// Steps of many units in one request.
#include "unit/worker/program/serve.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 256 }; // lanes

struct crdi_seat {
    crdi_served* u;
    crd_advance* advance; // NULL: by set, step and get
    const crd_binding *in, *out;
    crd_values inputs, outputs;
    int32_t out_handle;
    uint32_t index; // of the unit
};

static crd_lane* lane_of(const crdi_server* s, int32_t seat)
{
    return &s->lanes[seat / BLOCK][seat % BLOCK];
}

static bool add_lanes(crdi_server* s, int32_t seat)
{
    if (seat / BLOCK < s->lane_blocks) { return true; }
    crd_lane** lanes = crdi_grow(s->ctx, s->lanes, &s->lane_capacity, (size_t)s->lane_blocks + 1,
                                 sizeof(crd_lane*));
    if (!lanes) { return false; }
    s->lanes = lanes;
    lanes[s->lane_blocks] = aligned_alloc(CRDI_CHANNEL_LINE, BLOCK * sizeof(crd_lane));
    return lanes[s->lane_blocks++] != NULL;
}

crd_status crdi_serve_seat(crdi_server* s, crdi_served* u, const crdi_request* r, crdi_mail* m)
{
    const crdi_channel_seat* at = crdi_mail_get(m, sizeof *at);
    crdi_seat* seats =
        crdi_grow(s->ctx, s->seats, &s->seat_capacity, (size_t)r->handle + 1, sizeof *seats);
    if (!at || !seats || !add_lanes(s, r->handle)) {
        return crdi_fail(u->unit->ctx, CRD_E_MEMORY, "out of memory");
    }
    s->seats = seats;
    s->seat_count = r->handle + 1;
    crdi_seat* seat = &seats[r->handle];
    *seat = (crdi_seat){.u = u,
                        .in = at->in < 0 ? NULL : u->bound[at->in].binding,
                        .out = at->out < 0 ? NULL : u->bound[at->out].binding,
                        .inputs.real = (double*)(s->memory + at->in_at),
                        .outputs.real = (double*)(s->memory + at->out_at),
                        .out_handle = at->out,
                        .index = r->unit};
    if (CRDI_UNIT_HAS(u->unit, lane, join)) {
        seat->advance = u->unit->ops->lane->join(u->unit, (int)r->unit, seat->in, &seat->inputs,
                                                 seat->out, &seat->outputs, lane_of(s, r->handle));
    }
    return CRD_OK;
}

static crd_status step_seat(crdi_seat* k, double t, double h)
{
    crd_unit* u = k->u->unit;
    crd_status st = k->u->late;
    k->u->late = CRD_OK;
    if (st >= 0 && k->in) { st = u->ops->set(u, k->in, &k->inputs); }
    if (st >= 0) { st = u->ops->step(u, t, h); }
    return st >= 0 && k->out ? u->ops->get(u, k->out, &k->outputs) : st;
}

static inline bool is_plain(const crdi_seat* k)
{
    return k->advance && k->u->late >= 0;
}

// Which of the seats was it? Units have been told apart by control->unit.
static int32_t find_failed(const crdi_server* s, int32_t first, int32_t count)
{
    const uint32_t unit = atomic_load_explicit(&s->control->unit, memory_order_relaxed);
    for (int32_t i = first; i < first + count; i++) {
        if (s->seats[i].index == unit) { return i; }
    }
    return first;
}

// As many units at once as can be. control->unit says which one runs: a handler may be asked.
static crd_status step_row(crdi_server* s, int32_t first, const crdi_request* r, int32_t* failed)
{
    crd_status st = CRD_OK;
    volatile int* at = (volatile int*)&s->control->unit;
    const int32_t end = first + (int32_t)r->length;
    const bool measures = crdi_served_measures(s->rows++); // then one by one
    for (int32_t i = first, n = 1; i < end && st >= 0; i += n) {
        crdi_seat* k = &s->seats[i];
        const int64_t begin = measures ? crdi_now_ns() : 0;
        const int32_t block = (i / BLOCK + 1) * BLOCK, last = end < block ? end : block;
        n = 1;
        if (!is_plain(k)) {
            *at = (int)k->index;
            st = step_seat(k, r->t, r->h);
        } else {
            while (!measures && i + n < last && k[n].advance == k->advance && k[n].u->late >= 0) {
                n++;
            }
            st = k->advance(lane_of(s, i), n, r->t, r->h, at);
        }
        if (measures) { crdi_served_note_step(k->u, crdi_now_ns() - begin); }
        if (st < 0) { *failed = find_failed(s, i, n); }
    }
    return st;
}

// Is there something of the unit that the master does not know?
static inline bool has_news(crdi_served* u)
{
    const crd_unit* unit = u->unit;
    if (u->known && u->known_events == unit->events && u->known_next_event == unit->next_event &&
        u->known_stop == unit->wants_stop) {
        return false;
    }
    u->known = true;
    u->known_events = unit->events;
    u->known_next_event = unit->next_event;
    u->known_stop = unit->wants_stop;
    return true;
}

static void take_few(crdi_server* s, const crdi_request* r)
{
    const double* from = r->few;
    for (const crdi_seat *k = &s->seats[r->handle], *end = k + r->length; k < end; k++) {
        for (int32_t i = 0; k->in && i < k->in->real_count; i++) {
            k->inputs.real[i] = *from++;
        }
    }
    s->inputs = NULL; // nothing else is looked at
}

static void give_few(const crdi_server* s, const crdi_request* r, crdi_answer* a)
{
    double* to = a->few;
    for (const crdi_seat *k = &s->seats[r->handle], *end = k + r->length; k < end; k++) {
        for (int32_t i = 0; k->out && i < k->out->real_count; i++) {
            *to++ = k->outputs.real[i];
        }
    }
}

void crdi_serve_row(crdi_server* s, const crdi_request* r)
{
    crdi_answer* a = &s->control->row;
    const int32_t first = r->handle, end = first + (int32_t)r->length;
    int32_t failed = -1;
    uint32_t flags = CRDI_FETCHED;
    s->in_call = true;
    if (r->order) {
        take_few(s, r);
    } else {
        s->inputs = (const char*)s->seats[first].inputs.real;
    }
    const crd_status st = step_row(s, first, r, &failed);
    bool news = false;
    for (int32_t i = first; i < end && st >= 0; i++) {
        const crdi_seat* k = &s->seats[i];
        if (k->u->watched_count && !crdi_served_fetch(k->u, k->out_handle)) {
            flags &= ~(uint32_t)CRDI_FETCHED;
        }
        news |= has_news(k->u);
    }
    s->in_call = false;
    for (int32_t i = first; i < end && (news || st < 0); i++) {
        crdi_served_report(s->seats[i].u, s->ctx, i == failed ? st : CRD_OK, 0);
    }
    if (r->order) { give_few(s, r, a); }
    a->status = st;
    a->flags = flags | (news ? (uint32_t)CRDI_LOOK : 0);
    crdi_serve_answer(s, a, r);
}
