// Whom to trust, and the change of hands without a step: what the run sees is
//
//     y = y_a + r,    r(t0) = y(t0) - y_a(t0),    r -> 0 with exp(-(t - t0) / fade)
//
// where a is who is in use since t0. Where the old one says nothing at t0, y goes on as the model
// does: y(t0) = y(t0 - h) + y_m(t0) - y_m(t0 - h).
#include "unit/standby/standby.h"

#include <math.h>
#include <string.h>

#include "unit/dcp/dcp_unit.h"

// A bench that is good again is not taken back at once: it may still be on its way to where it was.
enum {
    HYSTERESIS = 10, // times `after`: how long it has to be good at least, and between two looks
    MOST_LOOKS = 20, // then it is taken, however far it is
};
static const double NEAR = 0.05;   // of the largest magnitude: near enough
static const double CLOSING = 0.8; // of the distance at the last look: it still approaches

// ---- words -------------------------------------------------------------------------------------

// Pieces into a text of `room` bytes, cut where it is full. Formats nothing.
static void change_join(char* out, size_t room, const char* const* pieces)
{
    size_t used = 0;
    for (; *pieces; pieces++) {
        for (const char* p = *pieces; *p && used + 1 < room; p++) {
            out[used++] = *p;
        }
    }
    while (used > 0 && ((unsigned char)out[used - 1] & 0xC0) == 0x80 && used + 1 == room) {
        used--; // not half a character
    }
    out[used] = 0;
}

static void remark(crdi_standby* u, const char* what, const char* why)
{
    const char* const pieces[] = {u->prefix, what, why[0] ? ": " : "", why, NULL};
    change_join(u->remark, sizeof u->remark, pieces);
    __atomic_store_n(&u->base.remarks, u->base.remarks + 1, __ATOMIC_RELEASE);
}

const char* crdi_standby_reason(const crdi_standby* u, crdi_why why)
{
    switch (why) {
    case CRDI_WHY_WANTED:
        return "standby.use says so";
    case CRDI_WHY_SILENT:
        return u->silent;
    case CRDI_WHY_NUMBERS:
        return "an output of the bench is not a number";
    case CRDI_WHY_FAILED:
        return "the bench has failed";
    default:
        return "";
    }
}

static const char* reason(const crdi_standby* u, crdi_why why)
{
    return why == CRDI_WHY_FAILED ? u->failure : crdi_standby_reason(u, why);
}

// ---- the primary -------------------------------------------------------------------------------

static bool has_numbers(const crdi_standby* u, const crd_values* v, bool modelled)
{
    for (int i = 0; i < u->twofold_count; i++) {
        const crdi_twofold* o = &u->twofold[i];
        if (o->kind != CRD_REAL || (modelled && !o->modelled)) { continue; }
        for (uint32_t e = 0; e < o->size; e++) {
            if (isnan(v->real[o->at + (int32_t)e])) { return false; }
        }
    }
    return true;
}

// Counts of the sessions before this one come on top.
static void note_link(crdi_standby* u)
{
    const crd_unit* p = u->seat->unit;
    const crd_link_stats* past = &u->past;
    crd_link_stats* l = &u->link;
    if (!CRDI_UNIT_HAS(p, remote, link) || !p->ops->remote->link(p, l)) { return; }
    l->in += past->in;
    l->out += past->out;
    l->lost += past->lost;
    l->duplicates += past->duplicates;
    l->reordered += past->reordered;
    l->bad += past->bad;
    l->late += past->late;
    l->age_max = fmax(l->age_max, past->age_max);
    l->round_trip_max = fmax(l->round_trip_max, past->round_trip_max);
}

// Data have come lately. A unit that is not reached over a network has them always.
static bool has_news(crdi_standby* u, double t)
{
    if (!CRDI_UNIT_HAS(u->seat->unit, remote, link) || u->twofold_count == 0) { return true; }
    if (u->link.in != u->seen_in) { u->fresh = t; }
    u->seen_in = u->link.in;
    return t - u->fresh <= u->after && !(u->real_time && u->link.age > u->after);
}

void crdi_standby_judge(crdi_standby* u, double t)
{
    note_link(u);
    u->trouble = !has_news(u, t)                    ? CRDI_WHY_SILENT
                 : !has_numbers(u, &u->seen, false) ? CRDI_WHY_NUMBERS
                                                    : CRDI_WHY_NONE;
    u->good = u->trouble == CRDI_WHY_NONE;
}

crd_status crdi_standby_lose(crdi_standby* u, crd_status st)
{
    crdi_standby_seat* s = u->seat;
    const char* const text[] = {crd_error_text(s->unit->ctx), NULL};
    const bool stays = u->use_wanted == CRDI_USE_BENCH && u->source == CRDI_BOARD_BENCH;
    if (stays || !u->model_good) {
        return crdi_fail(u->base.ctx, st, "%s%s", text[0],
                         stays ? "" : "; and its stand-in cannot take over");
    }
    change_join(u->failure, sizeof u->failure, text);
    u->past = u->link;
    u->link.state = -1;
    u->link.state_name = "";
    u->trouble = CRDI_WHY_FAILED;
    u->good = false;
    s->failed = true;
    if (s->unit->spec->source == CRD_UNIT_DCP) { crdi_session_let_go((crdi_dcp_unit*)s->unit); }
    u->seat = NULL;
    u->passing = s;
    if (u->source != CRDI_BOARD_BENCH) { remark(u, "the bench is lost", u->failure); }
    u->why = CRDI_WHY_FAILED;
    u->expected = u->base.spec->standby.rejoin;
    atomic_store_explicit(&u->post, CRDI_POST_WANTED, memory_order_release);
    return CRD_OK;
}

void crdi_standby_meet(crdi_standby* u, double t)
{
    const int post = atomic_load_explicit(&u->post, memory_order_acquire);
    if (post == CRDI_POST_HERE) { return; }
    if ((post == CRDI_POST_AWAY && u->use_wanted != CRDI_USE_MODEL) ||
        (post == CRDI_POST_GONE && u->use_wanted == CRDI_USE_BENCH)) {
        u->expected = true;
        atomic_store_explicit(&u->post, CRDI_POST_WANTED, memory_order_release);
    }
    if (post != CRDI_POST_READY) { return; }
    u->seat = u->passing;
    u->passing = NULL;
    u->good = false;
    u->fresh = t;
    u->seen_in = -1;
    u->unit_events = u->seat->unit->events + u->model->events;
    atomic_store_explicit(&u->post, CRDI_POST_HERE, memory_order_release);
    remark(u, "the bench runs again, the stand-in is still in use", "");
}

// ---- is it there yet? --------------------------------------------------------------------------

static void change_measure(crdi_standby* u)
{
    for (int i = 0; i < u->twofold_count; i++) {
        const crdi_twofold* o = &u->twofold[i];
        for (uint32_t e = 0; o->continuous && o->modelled && e < o->size; e++) {
            const int32_t k = o->at + (int32_t)e;
            u->size[k] = fmax(u->size[k], fmax(fabs(u->seen.real[k]), fabs(u->shadow.real[k])));
        }
    }
}

// Whether an output of the bench has come nearer to that of the model since the last look. Models
// are wrong, so it need not arrive.
static bool approaches(crdi_standby* u)
{
    bool any = false;
    for (int i = 0; i < u->twofold_count; i++) {
        const crdi_twofold* o = &u->twofold[i];
        for (uint32_t e = 0; o->continuous && o->modelled && e < o->size; e++) {
            const int32_t k = o->at + (int32_t)e;
            const double d = fabs(u->seen.real[k] - u->shadow.real[k]);
            any = any || (d > NEAR * u->size[k] && d < CLOSING * u->apart[k]);
            u->apart[k] = d;
        }
    }
    return any;
}

static void change_look(crdi_standby* u, double t)
{
    if (u->good) { change_measure(u); }
    if (u->source == CRDI_BOARD_BENCH || !u->good) {
        u->settled = u->good; // in use, it is where it is
        u->looks = 0;
        u->look_at = NAN;
        return;
    }
    if (u->settled || t < u->look_at - 1e-9 * u->h) { return; }
    const bool closing = approaches(u);
    u->settled = !isnan(u->look_at) && (!closing || ++u->looks >= MOST_LOOKS);
    u->look_at = t + HYSTERESIS * u->after;
}

// ---- change of hands ---------------------------------------------------------------------------

// Who it should be, and why if it is the model.
static int change_choose(crdi_standby* u, crdi_why* why)
{
    const bool usable = u->seat && u->trouble != CRDI_WHY_NUMBERS;
    *why = u->why;
    if (u->use_wanted == CRDI_USE_MODEL && u->model_good) {
        if (u->source == CRDI_BOARD_BENCH || u->good) { *why = CRDI_WHY_WANTED; }
        return CRDI_BOARD_MODEL;
    }
    if (u->source == CRDI_BOARD_BENCH) {
        if (u->good || u->use_wanted == CRDI_USE_BENCH || !u->model_good) {
            return CRDI_BOARD_BENCH;
        }
        *why = u->trouble;
        return CRDI_BOARD_MODEL;
    }
    if (!u->model_good && usable) { return CRDI_BOARD_BENCH; }
    if (!u->good) {
        if (u->seat) { *why = u->trouble; }
        return CRDI_BOARD_MODEL;
    }
    return u->use_wanted == CRDI_USE_BENCH || u->settled ? CRDI_BOARD_BENCH : CRDI_BOARD_MODEL;
}

// `known`: the old one has outputs at this time.
static void change(crdi_standby* u, int to, bool known)
{
    const double* old = u->source == CRDI_BOARD_BENCH ? u->seen.real : u->shadow.real;
    const double* now = to == CRDI_BOARD_BENCH ? u->seen.real : u->shadow.real;
    for (int i = 0; i < u->twofold_count; i++) {
        const crdi_twofold* o = &u->twofold[i];
        for (uint32_t e = 0; o->continuous && e < o->size; e++) {
            const int32_t k = o->at + (int32_t)e;
            const double moved = to == CRDI_BOARD_MODEL ? u->shadow.real[k] - u->before[k] : 0;
            const double y = known ? old[k] + u->rest[k] : u->values.real[k] + moved;
            u->rest[k] = isfinite(y) && isfinite(now[k]) ? y - now[k] : 0;
        }
    }
    u->source = to;
    u->base.events++;
}

static void announce(crdi_standby* u, int to, crdi_why why)
{
    if (to == CRDI_BOARD_MODEL) {
        atomic_fetch_add_explicit(&u->takeovers, 1, memory_order_relaxed);
        remark(u, "the stand-in takes over", reason(u, why));
    } else {
        const bool alone = !u->model_good;
        atomic_fetch_add_explicit(&u->returns, 1, memory_order_relaxed);
        remark(u, "the bench is in use again", alone ? "the stand-in has failed" : "");
    }
}

static crd_status pass(crdi_standby* u, const crd_values* from, const crdi_twofold* o)
{
    if (o->kind == CRD_REAL) {
        const bool fades = o->continuous;
        for (uint32_t e = 0; e < o->size; e++) {
            const int32_t k = o->at + (int32_t)e;
            u->values.real[k] = from->real[k] + (fades ? u->rest[k] : 0);
        }
        return CRD_OK;
    }
    if (o->kind == CRD_INTEGER) {
        memcpy(u->values.integer + o->at, from->integer + o->at, o->size * sizeof *from->integer);
        return CRD_OK;
    }
    for (uint32_t e = 0; e < o->size; e++) {
        const crd_bytes* b = &from->bytes[o->at + (int32_t)e];
        const crd_status st =
            crd_bytes_set(u->base.ctx, &u->values.bytes[o->at + (int32_t)e], b->data, b->length);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

// What the model does not have is held: as it was when the bench had its say.
static void hold(crdi_standby* u, const crdi_twofold* o)
{
    if (o->kind == CRD_REAL) {
        memcpy(u->shadow.real + o->at, u->values.real + o->at, o->size * sizeof *u->shadow.real);
    } else if (o->kind == CRD_INTEGER) {
        memcpy(u->shadow.integer + o->at, u->values.integer + o->at,
               o->size * sizeof *u->shadow.integer);
    } else {
        for (uint32_t e = 0; e < o->size; e++) {
            const crd_bytes* b = &u->values.bytes[o->at + (int32_t)e];
            (void)crd_bytes_set(u->base.ctx, &u->shadow.bytes[o->at + (int32_t)e], b->data,
                                b->length);
        }
    }
}

static void show_model(crdi_standby* u, const crdi_twofold* o)
{
    if (o->kind == CRD_REAL) {
        for (uint32_t e = 0; e < o->size; e++) { // NaN would end the run, whoever is in use
            const double x = u->shadow.real[o->at + (int32_t)e];
            if (!isnan(x)) { u->values.real[o->model_at + (int32_t)e] = x; }
        }
    } else if (o->kind == CRD_INTEGER) {
        memcpy(u->values.integer + o->model_at, u->shadow.integer + o->at,
               o->size * sizeof *u->shadow.integer);
    } else {
        for (uint32_t e = 0; e < o->size; e++) {
            const crd_bytes* b = &u->shadow.bytes[o->at + (int32_t)e];
            (void)crd_bytes_set(u->base.ctx, &u->values.bytes[o->model_at + (int32_t)e], b->data,
                                b->length);
        }
    }
}

// Inner variables of the primary that somebody looks at.
static void pass_locals(crdi_standby* u)
{
    for (int k = 0; u->seat && k < u->seat->out.count; k++) {
        const crdi_way* w = &u->seat->out.ways[k];
        if (u->variables[w->own].causality == CRD_OUTPUT) { continue; }
        if (w->kind == CRD_REAL) {
            memcpy(u->values.real + w->at, u->seen.real + w->at, w->size * sizeof(double));
        } else if (w->kind == CRD_INTEGER) {
            memcpy(u->values.integer + w->at, u->seen.integer + w->at, w->size * sizeof(int64_t));
        }
    }
}

static void change_tell(crdi_standby* u, double t, double h)
{
    const bool model = u->source == CRDI_BOARD_MODEL;
    const int shown = model && !u->seat && u->expected ? CRDI_BOARD_COMING : u->source;
    u->values.integer[u->offsets[u->active]] = shown;
    u->values.real[u->offsets[u->weight]] = u->part;
    u->base.made = model ? t : u->seat ? u->seat->unit->made : (double)NAN;
    atomic_store_explicit(&u->shown_source, shown, memory_order_relaxed);
    atomic_store_explicit(&u->shown_why, model ? (int)u->why : CRDI_WHY_NONE, memory_order_relaxed);
    atomic_store_explicit(&u->shown_part, u->part, memory_order_relaxed);
    atomic_store_explicit(&u->now, t, memory_order_relaxed);
    if (model) {
        const double sum = atomic_load_explicit(&u->stood_in, memory_order_relaxed);
        atomic_store_explicit(&u->stood_in, sum + h, memory_order_relaxed);
    }
}

crd_status crdi_standby_hand_out(crdi_standby* u, double t, double h)
{
    crdi_why why;
    const bool nobody = u->source == CRDI_BOARD_MODEL && u->model_failed && !u->seat;
    if (nobody) { return CRD_E_UNIT; } // the model's sentence is there
    const bool usable = !u->model_failed && (u->initializing || has_numbers(u, &u->shadow, true));
    if (u->model_good && !usable) {
        remark(u, "the stand-in cannot take over",
               u->model_failed ? "it has failed" : "an output of it is not a number");
    }
    u->model_good = usable;
    for (size_t k = 0; k < u->real_count; k++) {
        u->rest[k] *= u->decay;
    }
    const int target = u->source == CRDI_BOARD_BENCH;
    u->part = target + (u->part - target) * u->decay;
    change_look(u, t);
    const int to = change_choose(u, &why);
    if (to != u->source) {
        const bool known = u->source == CRDI_BOARD_MODEL ? u->model_good : u->good;
        change(u, to, known);
        announce(u, to, why);
    }
    u->why = to == CRDI_BOARD_MODEL ? why : CRDI_WHY_NONE;
    for (int i = 0; i < u->twofold_count; i++) {
        const crdi_twofold* o = &u->twofold[i];
        const crd_status st = pass(u, to == CRDI_BOARD_BENCH ? &u->seen : &u->shadow, o);
        if (st < 0) { return st; }
        if (!o->modelled && to == CRDI_BOARD_BENCH) { hold(u, o); }
        if (o->modelled) { show_model(u, o); }
    }
    pass_locals(u);
    change_tell(u, t, h);
    return CRD_OK;
}
