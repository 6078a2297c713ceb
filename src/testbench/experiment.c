// The experiment of Baumann et al. (2024), section 3: runs of the closed loop.
#include "testbench/experiment.h"
#include "shared/base_progress.h"

#include "cardan/master.h"
#include "shared/testbench.h"

#include <math.h>
#include <stdio.h>

#define DURATION 12.0    // s
#define IDEAL_STEP 1e-3  // s
#define PREVIOUS 1000000 // added to the seed of the run that networks learn from

enum { BED, CAR };

static const struct {
    const char *id, *name;
    crdi_bench_published published;
} cases[CRDI_BENCH_CASES] = {
    [CRDI_BENCH_IDEAL] = {"ideal", "ideal coupling", {NAN, NAN, NAN, -0.30, -2.50}},
    [CRDI_BENCH_ZOH] = {"zoh", "ZOH", {4.53, 0.01, 4.53, 0, 0}},
    [CRDI_BENCH_FOH] = {"foh", "FOH", {4.43, 0.86, 4.35, -0.07, -0.62}},
    [CRDI_BENCH_EROS] = {"eros", "EROS", {6.54, 2.12, 6.18, 0.10, -0.22}},
    [CRDI_BENCH_FOH_SWITCH] = {"foh-switch", "FOH with switching", {4.24, 0.79, 4.17, 0.12, -0.09}},
    [CRDI_BENCH_EROS_SWITCH] = {"eros-switch",
                                "EROS with switching",
                                {4.21, 0.88, 4.11, 0.12, -1.07}},
    [CRDI_BENCH_FOH_ABOVE] = {"foh-switch-above",
                              "FOH with switching, bins 2-4",
                              {4.24, 0.79, 4.17, 0.12, -0.09}},
    [CRDI_BENCH_EROS_ABOVE] = {"eros-switch-above",
                               "EROS with switching, bins 2-4",
                               {4.21, 0.88, 4.11, 0.12, -1.07}},
    [CRDI_BENCH_OPTIMAL] = {"optimal", "optimal", {2.94, 0.65, 2.87, -0.42, -4.39}},
    [CRDI_BENCH_TRAINED] = {"trained", "network, trained", {2.71, 0.67, 2.62, -0.38, -2.92}},
    [CRDI_BENCH_LEAST_SQUARES] = {"least-squares",
                                  "network, least squares",
                                  {NAN, NAN, NAN, NAN, NAN}},
    [CRDI_BENCH_AUTO] = {"auto", "auto", {NAN, NAN, NAN, NAN, NAN}},
    [CRDI_BENCH_COMMANDS] = {"commands", "commands, learned before", {NAN, NAN, NAN, NAN, NAN}},
};

crdi_bench_experiment_options crdi_bench_experiment_defaults(void)
{
    return (crdi_bench_experiment_options){
        .seed = 1, .latency = 57.5e-3, .jitter = 0.5e-3, .step = 10e-3};
}

// What makes the smooth plant of the models.
static const struct {
    int unit;
    const char *name, *value;
} smooth[] = {
    {BED, "t_throttle", "0.03"}, {BED, "t_air", "0.05"},        {BED, "t_fast", "0.02"},
    {BED, "damping", "0.45"},    {BED, "noise", "1"},           {BED, "filter_delay", "0.01"},
    {CAR, "inertia", "0.3"},     {CAR, "stiffness", "15e3"},    {CAR, "damping", "40"},
    {CAR, "uneven", "0.2"},      {CAR, "kp", "8500"},           {CAR, "ki", "4000"},
    {CAR, "t_foot", "0.1"},      {CAR, "unsteadiness", "0.05"}, {CAR, "pace", "1"},
    {CAR, "roughness", "1"},     {CAR, "shift_down", "0.15"},   {CAR, "shift_open", "0.15"},
    {CAR, "shift_up", "0.3"},
};

// ---- one system --------------------------------------------------------------------------------

static crd_status add_unit(crd_system* s, const char* name, const char* model, uint64_t seed)
{
    int index = 0;
    char text[24];
    crd_unit_spec u = crd_unit_spec_defaults();
    u.name = name;
    u.source = CRD_UNIT_NATIVE;
    u.model = crdi_powertrain_model(model);
    const crd_status st = crd_system_add_unit(s, &u, &index);
    if (st < 0) { return st; }
    snprintf(text, sizeof text, "%llu", (unsigned long long)seed);
    return crd_system_set(s, index, "seed", text, (crd_place){"", 0});
}

static crd_status connect(crd_system* s, int from_unit, const char* from, const char* to,
                          const crd_coupling_spec* coupling)
{
    crd_connection_spec k = crd_connection_spec_defaults();
    k.from_unit = from_unit;
    k.from = from;
    k.to_unit = from_unit == BED ? CAR : BED;
    k.to = to;
    k.predict = CRD_PREDICTION_HOLD;
    k.coupling = coupling;
    return crd_system_add_connection(s, &k);
}

// The system of examples/experiment: `coupling` NULL is the ideal one.
static crd_status experiment_build(const crdi_bench_experiment* e,
                                   const crd_coupling_spec* coupling, uint64_t seed,
                                   crd_system** out)
{
    crd_status st = CRD_OK;
    crd_system* s = NULL;
    CRD_TRY(crd_system_create(e->ctx, &s));
    s->run.stop = DURATION;
    s->run.step = coupling ? e->options.step : IDEAL_STEP;
    s->run.threads = 1;
    // What a late signal does is what the tables are about: an overshoot of FOH is no alarm.
    s->run.guard.action = CRD_GUARD_NONE;
    CRD_TRY(add_unit(s, "bed", "pt_testbed", seed));
    CRD_TRY(add_unit(s, "car", "pt_accelerate", seed));
    for (size_t i = 0; e->options.plant == CRDI_BENCH_SMOOTH && i < sizeof smooth / sizeof *smooth;
         i++) {
        CRD_TRY(
            crd_system_set(s, smooth[i].unit, smooth[i].name, smooth[i].value, (crd_place){"", 0}));
    }
    CRD_TRY(connect(s, BED, "torque", "torque", coupling));
    CRD_TRY(connect(s, CAR, "shaft_speed", "speed_ref", NULL));
    CRD_TRY(connect(s, CAR, "torque_request", "torque_request", NULL));
    CRD_TRY(connect(s, CAR, "torque_limit", "torque_limit", NULL));
    *out = s;
    return CRD_OK;
fail:
    crd_system_destroy(s);
    return st;
}

// ---- one run -----------------------------------------------------------------------------------

// Columns that a run fills, macro step by macro step.
typedef struct series {
    double *sent, *received, *shaft_speed, *speed, *target;
} series;

static crd_status experiment_make_room(crdi_bench_experiment* e, series* x)
{
    double** const columns[] = {&x->sent, &x->received, &x->shaft_speed, &x->speed, &x->target};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        *columns[i] = crdi_arena_new(&e->arena, (size_t)e->count, sizeof **columns);
        if (!*columns[i]) { return CRD_E_MEMORY; }
    }
    return CRD_OK;
}

// What the car was told at the beginning of a step it says behind it.
static crd_status experiment_follow(const crdi_bench_experiment* e, crd_master* m, int64_t ticks,
                                    const series* x)
{
    crd_status st = CRD_OK;
    CRD_TRY(crd_master_initialize(m));
    for (int64_t n = 0; n < e->count; n++) {
        CRD_TRY(crd_master_value(m, "bed.torque", &x->sent[n]));
        CRD_TRY(crd_master_value(m, "car.shaft_speed", &x->shaft_speed[n]));
        CRD_TRY(crd_master_value(m, "car.speed", &x->speed[n]));
        CRD_TRY(crd_master_value(m, "car.target", &x->target[n]));
        CRD_TRY(crd_master_advance(m, 1));
        CRD_TRY(crd_master_value(m, "car.torque_used", &x->received[n]));
        if (ticks > 1) { CRD_TRY(crd_master_advance(m, ticks - 1)); }
    }
fail:
    return st;
}

static crd_status experiment_sum_up(crdi_bench_experiment* e, crd_master* m, crdi_bench_run* r)
{
    crd_status st = CRD_OK;
    crd_score score = {0};
    for (int64_t n = 0; n < e->count; n++) {
        crd_score_add(&score, r->sent[n], r->received[n]);
    }
    r->metrics = crd_score_metrics(&score);
    // Largest before the shift, on the parabola through three points.
    int64_t at = 0;
    for (int64_t n = 1; n < e->count && e->time[n] < CRDI_EXPERIMENT_SHIFT; n++) {
        if (r->received[n] > r->received[at]) { at = n; }
    }
    r->peak = e->time[at];
    if (at > 0 && at + 1 < e->count) {
        const double a = r->received[at - 1], b = r->received[at], c = r->received[at + 1];
        const double bend = a - 2 * b + c;
        if (bend < 0) { r->peak += 0.5 * (a - c) / bend * e->options.step; }
    }
    CRD_TRY(crd_master_value(m, "car.energy_shaft", &r->energy));
    CRD_TRY(crd_master_value(m, "bed.energy", &r->given));
    CRD_TRY(crd_master_value(m, "car.distance", &r->distance));
    CRD_TRY(crd_master_value(m, "bed.noise", &e->noise)); // of all runs
    CRD_TRY(crd_master_value(m, "bed.filter_delay", &e->filter_delay));
    const crd_master_report* report = crd_master_get_report(m);
    r->k_mean = NAN;
    if (report->coupling_count > 0) {
        r->k_mean = report->couplings[0].k_mean;
        r->k_max = report->couplings[0].k_max;
        r->jumps = report->couplings[0].taps[0].counts.jumps;
    }
fail:
    return st;
}

// `record` false: a run that only serves another one; `learned` of commands in it, or NULL.
static crd_status perform(crdi_bench_experiment* e, crdi_bench_run* r, uint64_t seed, bool record,
                          crd_text* learned)
{
    crd_status st = CRD_OK;
    crd_system* s = NULL;
    crd_master* m = NULL;
    char* path = NULL;
    series x;
    const crdi_bench_experiment_options* o = &e->options;
    const crd_coupling_spec coupling = {.element = r->element,
                                        .place = {"", 0},
                                        .channel = {.step = NAN,
                                                    .delay = o->latency,
                                                    .jitter = o->jitter,
                                                    .burst = 1,
                                                    .seed = seed},
                                        .has_channel = true,
                                        .record = true};
    const int64_t ticks = r->element ? 1 : llround(o->step / IDEAL_STEP);
    CRD_TRY(experiment_make_room(e, &x));
    r->sent = x.sent;
    r->received = x.received;
    r->shaft_speed = x.shaft_speed;
    r->speed = x.speed;
    r->target = x.target;
    CRD_TRY(experiment_build(e, r->element ? &coupling : NULL, seed, &s));
    if (record && o->folder) {
        path = crdi_format(e->ctx, "%s/%s.mf4", o->folder, r->id);
        if (!path) { CRD_TRY(CRD_E_MEMORY); }
        s->results.path = path;
        s->results.interval = r->element ? 0 : o->step;
    }
    CRD_TRY(crd_master_create(e->ctx, s, NULL, &m));
    CRD_TRY(experiment_follow(e, m, ticks, &x));
    CRD_TRY(experiment_sum_up(e, m, r));
    if (learned) { CRD_TRY(crd_master_describe_weights(m, 0, learned)); }
    CRD_TRY(crd_master_finish(m));
fail:
    crd_master_destroy(m);
    crd_system_destroy(s);
    crd_free(e->ctx, path);
    return st;
}

// ---- all of them -------------------------------------------------------------------------------

static crd_status experiment_check(crd_context* ctx, const crdi_bench_experiment_options* o)
{
    const double steps = DURATION / o->step, ticks = o->step / IDEAL_STEP;
    if (!(o->step >= 1e-3 && o->step <= 50e-3) || fabs(steps - nearbyint(steps)) > 1e-6 ||
        fabs(ticks - nearbyint(ticks)) > 1e-6) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "step: %g s, expected whole milliseconds from 1 ms to 50 ms that divide "
                         "the 12 s of the experiment",
                         o->step);
    }
    if (!(o->latency > 0 && o->latency <= 0.2)) {
        return crdi_fail(ctx, CRD_E_RANGE, "latency: %g s, expected more than 0 and at most 0.2 s",
                         o->latency);
    }
    if (!(o->jitter >= 0 && o->jitter <= o->latency)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "jitter: %g s, expected 0 to %g s: no sample arrives before it was taken",
                         o->jitter, o->latency);
    }
    if ((o->latency + o->jitter) / o->step > 16 * (1 + 1e-9)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "a latency of %g s is %.1f macro steps of %g s, expected 16 at most",
                         o->latency + o->jitter, (o->latency + o->jitter) / o->step, o->step);
    }
    if (o->seed >= 1000000000) {
        return crdi_fail(ctx, CRD_E_RANGE, "seed: %llu, expected less than 1000000000",
                         (unsigned long long)o->seed);
    }
    return CRD_OK;
}

static crd_status experiment_begin(crdi_bench_experiment* e)
{
    const crdi_bench_experiment_options* o = &e->options;
    e->k = (int)ceil((o->latency + o->jitter) / o->step - 1e-9);
    e->count = llround(DURATION / o->step);
    double* time = crdi_arena_new(&e->arena, (size_t)e->count, sizeof *time);
    if (!time) { return CRD_E_MEMORY; }
    for (int64_t n = 0; n < e->count; n++) {
        time[n] = (double)n * o->step;
    }
    e->time = time;
    for (int i = 0; i < CRDI_BENCH_CASES; i++) {
        e->runs[i].id = cases[i].id;
        e->runs[i].name = cases[i].name;
        e->runs[i].published = cases[i].published;
    }
    return CRD_OK;
}

// As the network: from a run that came before, with other noise, driver and link.
static crd_status learn_commands(crdi_bench_experiment* e)
{
    crdi_bench_run previous = e->runs[CRDI_BENCH_COMMANDS];
    crd_text learned;
    crd_text_init(&learned, e->ctx);
    crd_status st = perform(e, &previous, e->options.seed + PREVIOUS, false, &learned);
    if (st >= 0) { st = crdi_experiment_keep(e, &learned, &e->runs[CRDI_BENCH_COMMANDS].element); }
    crd_text_clear(&learned);
    return st;
}

static void experiment_tell(const crdi_bench_experiment* e, int done, const char* name)
{
    crdi_progress(e->ctx, name, done, CRDI_BENCH_CASES + 1, "runs");
}

crd_status crdi_bench_experiment_run(crd_context* ctx, const crdi_bench_experiment_options* opt,
                                     crdi_bench_experiment** out)
{
    const crdi_bench_experiment_options o = opt ? *opt : crdi_bench_experiment_defaults();
    crd_status st = experiment_check(ctx, &o);
    if (st < 0) { return st; }
    crdi_bench_experiment* e = crdi_new(ctx, sizeof *e);
    if (!e) { return CRD_E_MEMORY; }
    e->ctx = ctx;
    e->options = o;
    crd_arena_init(&e->arena, ctx);
    CRD_TRY(experiment_begin(e));
    experiment_tell(e, 0, "design and a run to learn from");
    CRD_TRY(crdi_experiment_design(e));
    // As in the paper: the network learns from a run with the optimal algorithm that came before,
    // with other noise, another driver's day and another link's.
    crdi_bench_run previous = e->runs[CRDI_BENCH_OPTIMAL];
    CRD_TRY(perform(e, &previous, o.seed + PREVIOUS, false, NULL));
    CRD_TRY(crdi_experiment_train(e, previous.sent));
    CRD_TRY(learn_commands(e));
    for (int i = 0; i < CRDI_BENCH_CASES; i++) {
        experiment_tell(e, 1 + i, e->runs[i].name);
        CRD_TRY(perform(e, &e->runs[i], o.seed, true, NULL));
    }
    CRD_TRY(crdi_experiment_judge(e));
    *out = e;
    return CRD_OK;
fail:
    crdi_bench_experiment_destroy(e);
    return st;
}

void crdi_bench_experiment_destroy(crdi_bench_experiment* e)
{
    if (!e) { return; }
    crd_arena_clear(&e->arena);
    crd_free(e->ctx, (void*)(uintptr_t)e->remarks);
    crd_free(e->ctx, e);
}
