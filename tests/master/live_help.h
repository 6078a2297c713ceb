// A clock that the test moves, a model with things to set, and short words for commands.
#pragma once
#include "models.h"

#include "cardan/results.h"
#include "shared/live.h"

#include <stdio.h>

/// Stands still unless somebody sleeps on it; `asleep` is the watcher's chance to act.
typedef struct {
    int64_t ns, step; // a reading moves it by `step`
    int64_t slept;
    void (*asleep)(void* user);
    void* user;
} hand_clock;

static inline int64_t hand_now(void* user)
{
    hand_clock* c = user;
    return __atomic_add_fetch(&c->ns, c->step, __ATOMIC_RELAXED); // units read it on their threads
}

static inline int64_t hand_wall(void* user)
{
    return __atomic_load_n(&((hand_clock*)user)->ns, __ATOMIC_RELAXED);
}

static inline void hand_sleep(void* user, int64_t ns)
{
    hand_clock* c = user;
    c->slept++;
    if (c->slept > 10000) { fail_msg("it sleeps for ever"); }
    if (ns > c->ns) { c->ns = ns; }
    if (c->asleep) { c->asleep(c->user); }
}

static inline crd_clock hand_made(hand_clock* c)
{
    return (crd_clock){.now = hand_now, .sleep_until = hand_sleep, .wall = hand_wall, .user = c};
}

// y = gain of its inputs and of everything that can be set, so that each of them is seen.
typedef struct {
    double u, force, y, m, k[3], sum, last;
    int32_t count, seen;
    int64_t mode;
    bool on;
} desk;

static void desk_outputs(void* self, double t)
{
    desk* d = self;
    (void)t;
    d->y = d->last;
    d->sum = d->m + d->k[0] + 10 * d->k[1] + 100 * d->k[2] + d->force;
    d->seen = d->count + 100 * (int32_t)d->mode + (d->on ? 1000 : 0);
}

static crd_model_status desk_initialize(void* self, const crd_model_host* host, double t)
{
    desk* d = self;
    (void)host;
    d->last = d->u;
    desk_outputs(self, t);
    return CRD_MODEL_OK;
}

static crd_model_status desk_step(void* self, const crd_model_host* host, double t, double h,
                                  double* reached)
{
    desk* d = self;
    (void)host;
    d->last = d->u;
    *reached = t + h;
    return CRD_MODEL_OK;
}

static const char* const desk_modes[] = {"off", "slow", "fast", NULL};

static const crd_model_variable desk_variables[] = {
    REAL(desk, u, CRD_INPUT, 0),
    {.name = "force",
     .type = CRD_FLOAT64,
     .causality = CRD_INPUT,
     .variability = CRD_CONTINUOUS,
     .offset = offsetof(desk, force),
     .unit = "N",
     .description = "pulls"},
    {.name = "y",
     .type = CRD_FLOAT64,
     .causality = CRD_OUTPUT,
     .variability = CRD_CONTINUOUS,
     .offset = offsetof(desk, y),
     .depends = ""},
    {.name = "sum",
     .type = CRD_FLOAT64,
     .causality = CRD_OUTPUT,
     .variability = CRD_CONTINUOUS,
     .offset = offsetof(desk, sum),
     .depends = "force"},
    {.name = "seen",
     .type = CRD_INT32,
     .causality = CRD_OUTPUT,
     .variability = CRD_DISCRETE,
     .offset = offsetof(desk, seen),
     .depends = ""},
    {.name = "m",
     .type = CRD_FLOAT64,
     .causality = CRD_PARAMETER,
     .variability = CRD_TUNABLE,
     .offset = offsetof(desk, m),
     .start = 50,
     .unit = "kg",
     .min = 0,
     .max = 1000},
    {.name = "k",
     .type = CRD_FLOAT64,
     .causality = CRD_PARAMETER,
     .variability = CRD_TUNABLE,
     .size = 3,
     .offset = offsetof(desk, k),
     .start = 1},
    {.name = "count",
     .type = CRD_INT32,
     .causality = CRD_PARAMETER,
     .variability = CRD_TUNABLE,
     .offset = offsetof(desk, count),
     .start = 7},
    {.name = "mode",
     .type = CRD_ENUMERATION,
     .causality = CRD_PARAMETER,
     .variability = CRD_TUNABLE,
     .offset = offsetof(desk, mode),
     .start = 1,
     .items = desk_modes},
    {.name = "on",
     .type = CRD_BOOLEAN,
     .causality = CRD_PARAMETER,
     .variability = CRD_TUNABLE,
     .offset = offsetof(desk, on)},
    {.name = "last",
     .type = CRD_FLOAT64,
     .causality = CRD_PARAMETER,
     .variability = CRD_FIXED,
     .offset = offsetof(desk, last)},
};
static const crd_model desk_model = {.name = "desk",
                                     .description = "things to set",
                                     .size = sizeof(desk),
                                     .variables = desk_variables,
                                     .variable_count =
                                         sizeof desk_variables / sizeof *desk_variables,
                                     .default_step = 0.1,
                                     .default_stop = 1,
                                     .initialize = desk_initialize,
                                     .outputs = desk_outputs,
                                     .step = desk_step};

/// A master that is watched on a clock of the test's.
typedef struct {
    crd_context* ctx;
    crd_system* s;
    crd_master* m;
    crdi_live* l;
    hand_clock hand;
    crd_clock clock;
    int64_t heard; // events
} watched;

static inline crdi_live_options all_of_it(void)
{
    crdi_live_options o = crdi_live_defaults();
    o.row_gap = o.status_gap = 0;
    return o;
}

/// `w->ctx` and `w->s` are there.
static inline void watch_with(watched* w, const crdi_live_options* opt)
{
    w->clock = hand_made(&w->hand);
    w->hand.ns = 1000;
    crd_master_options o = crd_master_defaults();
    o.clock = &w->clock;
    check_run(crd_master_create(w->ctx, w->s, &o, &w->m), w->ctx);
    check_run(crdi_live_create(w->ctx, w->m, opt, &w->l), w->ctx);
    check(!crdi_live_is_ready(w->l));
    check_run(crd_master_initialize(w->m), w->ctx);
    check(crdi_live_is_ready(w->l));
}

static inline void watch(watched* w)
{
    const crdi_live_options o = all_of_it();
    watch_with(w, &o);
}

static inline void advance(watched* w, int64_t ticks)
{
    check_run(crd_master_advance(w->m, ticks), w->ctx);
}

static inline void stop_watching(watched* w)
{
    check_run(crd_master_finish(w->m), w->ctx);
    crdi_live_destroy(w->l);
    crd_master_destroy(w->m);
    crd_system_destroy(w->s);
    crd_context_destroy(w->ctx);
}

static inline void order(watched* w, crdi_live_command c)
{
    c.who = "page 127.0.0.1";
    if (crdi_live_send(w->l, &c) < 0) { fail_msg("refused: %s", crdi_live_error(w->l)); }
}

static inline void put(watched* w, const char* name, const char* text)
{
    order(w, (crdi_live_command){.action = CRDI_LIVE_SET, .name = name, .text = text});
}

static inline void do_it(watched* w, crdi_live_action action)
{
    order(w, (crdi_live_command){.action = action, .count = 1});
}

static inline void fault(watched* w, const char* to, crdi_fault_kind kind, double x,
                         double duration)
{
    order(w, (crdi_live_command){.action = CRDI_LIVE_FAULT,
                                 .name = to,
                                 .fault = kind,
                                 .value = x,
                                 .duration = duration});
}

static inline const crdi_live_link_state* link_now(watched* w, const char* to)
{
    const crdi_live_info* info = crdi_live_get_info(w->l);
    for (int i = 0; i < info->link_count; i++) {
        if (strcmp(info->links[i].to, to) == 0) { return &crdi_live_get_status(w->l)->links[i]; }
    }
    fail_msg("no link to %s", to);
    return NULL;
}

/// The next event; warnings, as of inputs without connection, are passed over.
static inline bool next_event(watched* w, crdi_live_event* e)
{
    while (crdi_live_get_event(w->l, w->heard, e)) {
        w->heard = e->number;
        if (e->kind != CRD_EVENT_WARNING) { return true; }
    }
    return false;
}

static inline void hear(watched* w, crd_event_kind kind, const char* text)
{
    crdi_live_event e;
    if (!next_event(w, &e)) { fail_msg("no event, expected '%s'", text); }
    check_text(e.text, text);
    check_int(e.kind, kind);
}

static inline void refused(watched* w, crdi_live_command c, crd_status want, const char* part)
{
    check_status(crdi_live_send(w->l, &c), want);
    check_contains(crdi_live_error(w->l), part);
}

/// The row at hand, which is given back; its values are valid until the next.
static inline const crdi_live_row* next_row(watched* w)
{
    const crdi_live_row* r = crdi_live_read(w->l);
    if (r) { crdi_live_release(w->l); }
    return r;
}

static inline int signal_named(watched* w, const char* name)
{
    const crdi_live_info* info = crdi_live_get_info(w->l);
    for (int i = 0; i < info->signal_count; i++) {
        if (strcmp(info->signals[i].name, name) == 0) { return i; }
    }
    fail_msg("no signal %s", name);
    return -1;
}
