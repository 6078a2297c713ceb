// Two units in a loop, recorded and replayed, for the tests of both.
#pragma once
#include "models.h"

#include "cardan/results.h"
#include "shared/master_replay.h"

#include <stdio.h>

enum { MOST_TICKS = 512 };

/// a.y -> b.u, b.y -> a.u: an oscillator in two halves.
typedef struct setup {
    const crd_coupling_spec *there, *back; // NULL: none
    crd_prediction predict;
    crd_scheme scheme;
    const crd_model *a, *b; // NULL: Euler
    double step_a, step_b;  // 0: the run's
    double stop;
    const char* exchange;
} setup;

/// What unit a and the input of unit b did, tick by tick.
typedef struct course {
    double a[MOST_TICKS], b[MOST_TICKS];
    int count;
} course;

static inline crd_coupling_spec coupling_of(const char* element)
{
    return (crd_coupling_spec){.element = element,
                               .place = {"pair.yaml", 7},
                               .channel = {.step = NAN, .burst = 1, .seed = 1},
                               .record = true};
}

/// With delay, jitter, loss in bursts and samples that come twice.
static inline crd_coupling_spec coupling_over_a_bad_network(const char* element, uint64_t seed)
{
    crd_coupling_spec c = coupling_of(element);
    c.has_channel = true;
    c.channel = (crd_channel_spec){.step = NAN,
                                   .delay = 0.024,
                                   .jitter = 0.017,
                                   .loss = 0.1,
                                   .burst = 2,
                                   .duplicate = 0.2,
                                   .seed = seed};
    return c;
}

static inline crd_system* pair(crd_context* ctx, const setup* u)
{
    crd_system* s = new_system(ctx, 0.01, u->stop > 0 ? u->stop : 2);
    const int a = add_unit(s, "a", u->a ? u->a : &euler_model, u->step_a);
    const int b = add_unit(s, "b", u->b ? u->b : &euler_model, u->step_b);
    set(s, a, "x", "1");
    if (!u->b) { set(s, b, "a", "-40"); }
    crd_connection_spec* c = wire(s, a, "y", b, "u");
    c->coupling = u->there;
    c->predict = u->predict;
    c = wire(s, b, "y", a, "u");
    c->coupling = u->back;
    c->predict = u->predict;
    s->run.scheme = u->scheme;
    s->results.exchange = u->exchange;
    return s;
}

static inline void run_through(crd_context* ctx, const crd_system* s, const crdi_replay_plan* plan,
                               const struct crd_clock* clock, course* out)
{
    crd_master* m = NULL;
    crd_master_options opt = crd_master_defaults();
    opt.clock = clock;
    if (plan) {
        opt.scripts = plan->scripts;
        opt.script_count = plan->script_count;
    }
    *out = (course){0};
    check_run(crd_master_create(ctx, s, &opt, &m), ctx);
    check_run(crd_master_initialize(m), ctx);
    for (;; out->count++) {
        check(out->count < MOST_TICKS);
        out->a[out->count] = value(m, "a.y");
        out->b[out->count] = value(m, "b.u");
        if (crd_master_ended(m) != CRD_END_NONE) { break; }
        check_run(crd_master_advance(m, 1), ctx);
    }
    check_int(crd_master_ended(m), CRD_END_STOP_TIME);
    check_run(crd_master_finish(m), ctx);
    crd_master_destroy(m);
}

static inline void record(crd_context* ctx, const setup* u, course* out)
{
    crd_system* s = pair(ctx, u);
    run_through(ctx, s, NULL, NULL, out);
    crd_system_destroy(s);
}

static inline crdi_exchange* load(crd_context* ctx, const char* path)
{
    crdi_exchange* x = NULL;
    check_run(crdi_exchange_load(ctx, path, &x), ctx);
    return x;
}

static inline void check_same_bits(const double* a, const double* b, int n)
{
    for (int i = 0; i < n; i++) {
        if (memcmp(&a[i], &b[i], sizeof *a) != 0) {
            fail_msg("tick %d: %.17g, expected %.17g", i, a[i], b[i]);
        }
    }
}

// ---- a unit that gives one of each kind, and one that takes them
// ----------------------------------

typedef struct whole {
    double y[3];
    int32_t n;
    bool flag;
    char text[16];
} whole;

static inline void whole_outputs(void* self, double t)
{
    whole* w = self;
    for (int i = 0; i < 3; i++) {
        w->y[i] = t + i;
    }
    w->n = (int32_t)floor(10 * t + 0.5);
    w->flag = w->n % 2 != 0;
    snprintf(w->text, sizeof w->text, "%d", (int)w->n);
}

static crd_model_status whole_initialize(void* self, const crd_model_host* host, double t)
{
    (void)host;
    whole_outputs(self, t);
    return CRD_MODEL_OK;
}

#define WHOLE(cause, depend)                                                                       \
    {                                                                                              \
        {.name = "y",                                                                              \
         .type = CRD_FLOAT64,                                                                      \
         .causality = cause,                                                                       \
         .size = 3,                                                                                \
         .unit = "m",                                                                              \
         .offset = offsetof(whole, y),                                                             \
         .depends = depend},                                                                       \
            {.name = "n",                                                                          \
             .type = CRD_INT32,                                                                    \
             .causality = cause,                                                                   \
             .variability = CRD_DISCRETE,                                                          \
             .offset = offsetof(whole, n),                                                         \
             .depends = depend},                                                                   \
            {.name = "flag",                                                                       \
             .type = CRD_BOOLEAN,                                                                  \
             .causality = cause,                                                                   \
             .variability = CRD_DISCRETE,                                                          \
             .offset = offsetof(whole, flag),                                                      \
             .depends = depend},                                                                   \
        {                                                                                          \
            .name = "text", .type = CRD_STRING, .causality = cause, .variability = CRD_DISCRETE,   \
            .offset = offsetof(whole, text), .capacity = 16, .depends = depend                     \
        }                                                                                          \
    }
static inline void nothing(void* self, double t)
{
    (void)self;
    (void)t;
}
static crd_model_status begin(void* self, const crd_model_host* host, double t)
{
    (void)self;
    (void)host;
    (void)t;
    return CRD_MODEL_OK;
}
static const crd_model_variable whole_rows[] = WHOLE(CRD_OUTPUT, "");
static const crd_model_variable sink_rows[] = WHOLE(CRD_INPUT, NULL);
static const crd_model whole_model = {.name = "whole",
                                      .description = "one of each",
                                      .size = sizeof(whole),
                                      .variables = whole_rows,
                                      .variable_count = 4,
                                      .initialize = whole_initialize,
                                      .outputs = whole_outputs,
                                      .step = gain_step};
static const crd_model sink_model = {.name = "sink",
                                     .description = "takes one of each",
                                     .size = sizeof(whole),
                                     .variables = sink_rows,
                                     .variable_count = 4,
                                     .initialize = begin,
                                     .outputs = nothing,
                                     .step = gain_step};

static inline crd_system* one_of_each(crd_context* ctx, const char* exchange)
{
    crd_system* s = new_system(ctx, 0.1, 1);
    const int w = add_unit(s, "w", &whole_model, 0), v = add_unit(s, "v", &sink_model, 0);
    wire(s, w, "y", v, "y")->gain = 2;
    s->connections[0].has_transformation = true;
    wire(s, w, "n", v, "n");
    wire(s, w, "flag", v, "flag");
    wire(s, w, "text", v, "text");
    s->results.exchange = exchange;
    return s;
}
