// A unit with a stand-in: change of hands without a step, there and back, by failure and by order.
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "unit/standby/standby.h"
#include "unit_test.h"

// ---- a bench that does what the test wants -----------------------------------------------------

// x' = 10 (gain u - x): speed in rad/s, the same in 1/min, power, a counter that only it has.
typedef struct rig {
    double torque, gain, speed, power, temperature;
    int32_t count;
} rig;

static double fail_from = INFINITY, fail_until = INFINITY, nan_from = INFINITY,
              nan_until = INFINITY;
static atomic_bool unreachable; // it cannot be initialised
static atomic_int ended;        // instances that were told that it is over

static void calm(void)
{
    fail_from = fail_until = nan_from = nan_until = INFINITY;
    unreachable = false;
    ended = 0;
    crdi_standby_has_threads = false;
}

static crd_model_status rig_initialize(void* self, const crd_model_host* host, double t)
{
    (void)self;
    (void)t;
    if (!unreachable) { return CRD_MODEL_OK; }
    host->log(host->user, CRD_MODEL_ERROR, "nobody answers");
    return CRD_MODEL_ERROR;
}

static void rig_outputs(void* self, double t)
{
    rig* r = self;
    r->power = r->torque * r->speed;
    r->temperature = t >= nan_from && t < nan_until ? (double)NAN : 25 + t;
}

static crd_model_status rig_step(void* self, const crd_model_host* host, double t, double h,
                                 double* reached)
{
    rig* r = self;
    (void)reached;
    if (t >= fail_from && t < fail_until) {
        host->log(host->user, CRD_MODEL_ERROR, "the bench is on fire");
        return CRD_MODEL_ERROR;
    }
    r->speed += 10 * h * (r->gain * r->torque - r->speed);
    r->count++;
    return CRD_MODEL_OK;
}

static crd_model_status rig_terminate(void* self, const crd_model_host* host)
{
    (void)self;
    (void)host;
    ended++;
    return CRD_MODEL_OK;
}

#define RIG(name_, field_, type_, cause_)                                                          \
    .name = name_, .type = type_, .causality = cause_, .offset = offsetof(rig, field_)

static const crd_model_variable rig_rows[] = {
    {RIG("torque", torque, CRD_FLOAT64, CRD_INPUT), .unit = "N.m"},
    {RIG("speed", speed, CRD_FLOAT64, CRD_OUTPUT), .unit = "rad/s", .depends = ""},
    {RIG("power", power, CRD_FLOAT64, CRD_OUTPUT), .unit = "W", .depends = "torque"},
    {RIG("temperature", temperature, CRD_FLOAT64, CRD_OUTPUT), .unit = "degC", .depends = ""},
    {RIG("count", count, CRD_INT32, CRD_OUTPUT), .variability = CRD_DISCRETE, .depends = ""},
    {RIG("gain", gain, CRD_FLOAT64, CRD_PARAMETER), .variability = CRD_FIXED, .start = 2},
};
static const crd_model rig_model = {.name = "rig",
                                    .size = sizeof(rig),
                                    .variables = rig_rows,
                                    .variable_count = 6,
                                    .initialize = rig_initialize,
                                    .outputs = rig_outputs,
                                    .step = rig_step,
                                    .terminate = rig_terminate};

// Its model: other names and units, somewhat wrong.
typedef struct stand {
    double demand, n, measured, ratio;
} stand;

static double stand_fails = INFINITY;

static crd_model_status stand_initialize(void* self, const crd_model_host* host, double t)
{
    (void)self;
    (void)host;
    (void)t;
    return CRD_MODEL_OK;
}

static void stand_outputs(void* self, double t)
{
    (void)self;
    (void)t;
}

static crd_model_status stand_step(void* self, const crd_model_host* host, double t, double h,
                                   double* reached)
{
    stand* s = self;
    (void)reached;
    if (t >= stand_fails) {
        host->log(host->user, CRD_MODEL_ERROR, "the model has left its range");
        return CRD_MODEL_ERROR;
    }
    s->n += 9 * h * (s->ratio * s->demand / 1000 * 30 / M_PI - s->n); // demand in N.mm
    return CRD_MODEL_OK;
}

#define STAND(name_, field_, cause_)                                                               \
    .name = name_, .type = CRD_FLOAT64, .causality = cause_, .offset = offsetof(stand, field_)

static const crd_model_variable stand_rows[] = {
    {STAND("demand", demand, CRD_INPUT), .unit = "N.mm"},
    {STAND("n", n, CRD_OUTPUT), .unit = "rpm", .depends = ""},
    {STAND("temperature.measured", measured, CRD_INPUT), .unit = "K"},
    {STAND("ratio", ratio, CRD_PARAMETER), .variability = CRD_FIXED, .start = 1.8},
};
static const crd_model stand_model = {.name = "stand",
                                      .size = sizeof(stand),
                                      .variables = stand_rows,
                                      .variable_count = 4,
                                      .initialize = stand_initialize,
                                      .outputs = stand_outputs,
                                      .step = stand_step};

static const crd_name_pair pairs[] = {{"torque", "demand"}, {"speed", "n"}};
static crd_unit_spec stand_spec, rig_spec;

static const crd_unit_spec* spec_of(void)
{
    stand_spec = crd_unit_spec_defaults();
    stand_spec.source = CRD_UNIT_NATIVE;
    stand_spec.model = &stand_model;
    rig_spec = crd_unit_spec_defaults();
    rig_spec.name = "em";
    rig_spec.source = CRD_UNIT_NATIVE;
    rig_spec.model = &rig_model;
    rig_spec.standby = (crd_standby_spec){.model = &stand_spec,
                                          .after = 0.01,
                                          .fade = 0.1,
                                          .rejoin = true,
                                          .names = pairs,
                                          .name_count = 2};
    return &rig_spec;
}

// ---- a run -------------------------------------------------------------------------------------

static const double H = 1e-3;

typedef struct run {
    crd_unit* u;
    crdi_standby* s;
    bound in, out;
    int n;
    double y, model; // the newest
    double worst;    // of what y did beyond the model's own change and what fades
} run;

enum { SPEED, WEIGHT, MODEL };

static run begin_run(crd_context* ctx, const crd_unit_spec* spec)
{
    run r = {.u = make(ctx, spec)};
    r.s = (crdi_standby*)r.u;
    r.in = bind_names(r.u, "torque");
    r.out = bind_names(r.u, "speed standby.weight model.speed standby.active");
    start(r.u, 0, 10);
    return r;
}

static double torque_at(double t)
{
    return 50 + 20 * sin(20 * t);
}

// Steps until t; the largest jump that neither of the two explains.
static void go_on(run* r, double until)
{
    for (; r->n * H < until - 1e-9; r->n++) {
        const double before = r->y, model_before = r->model, rest = r->s->rest[r->s->twofold[0].at];
        const double seen_before = r->s->seen.real[r->s->twofold[0].at];
        r->in.v.real[0] = torque_at(r->n * H);
        set(&r->in);
        step(r->u, r->n * H, H);
        get(&r->out);
        r->y = r->out.v.real[SPEED];
        r->model = r->out.v.real[MODEL];
        const double seen = r->s->seen.real[r->s->twofold[0].at];
        const double moved = fmax(fabs(r->model - model_before), fabs(seen - seen_before));
        const double beyond = fabs(r->y - before) - moved - fabs(rest) * (1 - exp(-H / 0.1));
        if (r->n > 0 && beyond > r->worst) { r->worst = beyond; }
    }
}

static void end_run(run* r)
{
    check_ok(r->u->ops->terminate(r->u));
    unbind(&r->in);
    unbind(&r->out);
    crd_unit_destroy(r->u);
}

static crd_standby_stats stats_of(const run* r)
{
    crd_standby_stats s;
    check(crd_unit_get_standby(r->u, &s));
    return s;
}

// ---- what is promised --------------------------------------------------------------------------

static void the_unit_has_the_variables_of_the_bench_and_some_more(void** state)
{
    (void)state;
    calm();
    lines l;
    crd_context* ctx = context_with_log(&l);
    crd_unit* u = make(ctx, spec_of());
    check_text(u->info.kind, "native + native");
    for (int i = 0; i < rig_model.variable_count; i++) {
        check_int(u->ops->find(u, rig_rows[i].name), i);
    }
    check_int(u->info.variable_count, 6 + 3 + 1);
    const crd_variable* v = &u->info.variables[u->ops->find(u, "model.speed")];
    check_text(v->unit, "rad/s");
    check_int(v->causality, CRD_OUTPUT);
    const int32_t use = u->ops->find(u, "standby.use");
    int64_t value = 0;
    check_int(u->info.variables[use].causality, CRD_INPUT);
    check(crdi_unit_item(u, use, "model", &value));
    check_int(value, CRDI_USE_MODEL);
    check(!crdi_unit_item(u, use, "none", &value));
    check_text(crdi_unit_item_at(u, u->ops->find(u, "standby.active"), CRDI_BOARD_COMING, &value),
               "coming");
    check(!(u->info.flags & (CRD_UNIT_CAN_SAVE | CRD_UNIT_CAN_REFRESH)));
    crd_link_stats link;
    check(!u->ops->state && !u->ops->remote->route && !u->ops->remote->link(u, &link));
    check_contains(l.text, "unit 'em': the stand-in does not have the outputs 'power', "
                           "'temperature', 'count'");
    const crd_unit_port in = {u->ops->find(u, "torque"), 0}, out = {u->ops->find(u, "speed"), 0};
    crd_linearised linear;
    check_int(crd_unit_linearise(u, &in, 1, &out, 1, &linear), CRD_E_UNSUPPORTED);
    check_contains(crd_error_text(u->ctx), "stand-in");
    crd_dimension d;
    check(crdi_unit_dimension(u, u->ops->find(u, "model.speed"), &d));
    check(d.rad == 1 && d.s == -1);
    check(!crdi_unit_dimension(u, use, &d));
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void without_trouble_it_is_the_bench_to_the_last_bit(void** state)
{
    (void)state;
    calm();
    crd_context* ctx = crd_context_create(NULL);
    run r = begin_run(ctx, spec_of());
    crd_unit_spec plain = rig_spec;
    plain.standby.model = NULL;
    crd_unit* u = make(ctx, &plain);
    bound in = bind_names(u, "torque"), out = bind_names(u, "speed power");
    start(u, 0, 10);
    bound both = bind_names(r.u, "speed power");
    for (int i = 0; i < 500; i++) {
        go_on(&r, (i + 1) * H);
        in.v.real[0] = torque_at(i * H);
        set(&in);
        step(u, i * H, H);
        get(&out);
        get(&both);
        check(both.v.real[0] == out.v.real[0] && both.v.real[1] == out.v.real[1]);
    }
    check_near(r.out.v.real[WEIGHT], 1, 0);
    check(fabs(r.model - r.y) > 1); // it runs beside
    check_int(r.u->remarks, 0);
    check_near(stats_of(&r).stood_in, 0, 0);
    unbind(&both);
    unbind(&in);
    unbind(&out);
    crd_unit_destroy(u);
    end_run(&r);
    crd_context_destroy(ctx);
}

static void a_bench_that_fails_is_stood_in_for_without_a_step(void** state)
{
    (void)state;
    calm();
    crd_context* ctx = crd_context_create(NULL);
    run r = begin_run(ctx, spec_of());
    fail_from = 1;
    go_on(&r, 1);
    const double before = r.y, gap = r.y - r.model;
    check(fabs(gap) > 5); // or there would be nothing to fade
    check_int(r.u->remarks, 0);
    const int64_t events = r.u->events;
    go_on(&r, 1 + H);
    check_near(r.y, before, 1.0);
    check(fabs(r.y - r.model) > 0.9 * fabs(gap));
    check_int(r.u->remarks, 1);
    check(r.u->events > events);
    check_contains(r.u->remark, "em: the stand-in takes over: ");
    check_contains(r.u->remark, "the bench is on fire");
    check_int(r.out.v.integer[0], CRDI_BOARD_COMING);
    go_on(&r, 1.1);
    check_near((r.y - r.model) / gap, exp(-0.99), 0.02);
    check_near(r.out.v.real[WEIGHT], exp(-0.99), 1e-9);
    go_on(&r, 3);
    check_near(r.y, r.model, 1e-6 * fabs(gap));
    check(r.worst <= 1e-9);
    const crd_standby_stats s = stats_of(&r);
    check_int(s.takeovers, 1);
    check_int(s.returns, 0);
    check_near(s.stood_in, 2, 1e-9);
    check_int(s.source, CRDI_BOARD_COMING);
    end_run(&r);
    crd_context_destroy(ctx);
}

static void what_the_model_does_not_have_is_held(void** state)
{
    (void)state;
    calm();
    crd_context* ctx = crd_context_create(NULL);
    run r = begin_run(ctx, spec_of());
    fail_from = 0.5;
    go_on(&r, 0.5);
    const double count = get_one(r.u, "count"), temperature = get_one(r.u, "temperature");
    check_near(count, 500, 0);
    go_on(&r, 0.8);
    check_near(get_one(r.u, "count"), 500, 0);
    check_near(get_one(r.u, "temperature"), temperature, 0);
    check_ok(crdi_standby_bring_up(r.s));
    fail_from = INFINITY;
    go_on(&r, 1.5);
    check(get_one(r.u, "count") < 900); // a new one, which counts anew
    check_near(get_one(r.u, "temperature"), 26.5, 0.02);
    end_run(&r);
    crd_context_destroy(ctx);
}

static void a_bench_that_is_back_is_taken_when_it_was_good_for_a_while(void** state)
{
    (void)state;
    calm();
    crd_context* ctx = crd_context_create(NULL);
    run r = begin_run(ctx, spec_of());
    fail_from = 1;
    fail_until = 1.5;
    go_on(&r, 2);
    check_int(r.s->post, CRDI_POST_WANTED);
    check_ok(crdi_standby_bring_up(r.s));
    check_int(r.s->post, CRDI_POST_READY);
    go_on(&r, 2 + H);
    check_contains(r.u->remark, "the bench runs again");
    go_on(&r, 2.3); // it has a time constant of 0.1 s, and begins at rest
    check_int(stats_of(&r).returns, 0);
    check_int(r.out.v.integer[0], CRDI_BOARD_MODEL);
    go_on(&r, 2.6); // ten times `after` without coming nearer
    check_near(r.y, r.s->seen.real[r.s->twofold[0].at], 15); // the model is 10 % wrong
    check_int(stats_of(&r).returns, 1);
    check_contains(r.u->remark, "em: the bench is in use again");
    check_int(r.out.v.integer[0], CRDI_BOARD_BENCH);
    go_on(&r, 4);
    check_near(r.out.v.real[WEIGHT], 1, 1e-6);
    check_near(r.y, r.s->seen.real[r.s->twofold[0].at], 1e-6);
    check(r.worst <= 1e-9);
    check_int(r.u->remarks, 3);
    end_run(&r);
    check_int(ended, 2); // both were told to end
    crd_context_destroy(ctx);
}

// It says something else for ever, and is taken all the same.
static void a_bench_need_not_agree_with_its_model_to_be_taken_back(void** state)
{
    (void)state;
    calm();
    crd_context* ctx = crd_context_create(NULL);
    static const crd_setting wrong = {.variable = "ratio", .text = "0.5"};
    crd_unit_spec spec = *spec_of();
    stand_spec.parameters = &wrong;
    stand_spec.parameter_count = 1;
    run r = begin_run(ctx, &spec);
    nan_from = 1;
    nan_until = 1.05;
    go_on(&r, 1.06);
    check_int(r.out.v.integer[0], CRDI_BOARD_MODEL);
    check(fabs(r.model) < 0.5 * fabs(r.s->seen.real[r.s->twofold[0].at]));
    go_on(&r, 1.3);
    check_int(r.out.v.integer[0], CRDI_BOARD_BENCH);
    check(r.worst <= 1e-9);
    end_run(&r);
    crd_context_destroy(ctx);
}

static void a_bench_can_be_swapped_for_its_model_and_back(void** state)
{
    (void)state;
    calm();
    crd_context* ctx = crd_context_create(NULL);
    run r = begin_run(ctx, spec_of());
    bound use = bind_names(r.u, "standby.use");
    go_on(&r, 1);
    use.v.integer[0] = CRDI_USE_MODEL;
    set(&use);
    go_on(&r, 1 + H);
    check_contains(r.u->remark, "the stand-in takes over: standby.use says so");
    check_int(r.out.v.integer[0], CRDI_BOARD_MODEL);
    go_on(&r, 1.05); // in the middle of the change
    use.v.integer[0] = CRDI_USE_AUTO;
    set(&use);
    go_on(&r, 1.05 + H); // it was good all the time
    check_int(r.out.v.integer[0], CRDI_BOARD_BENCH);
    go_on(&r, 1.06);
    use.v.integer[0] = CRDI_USE_MODEL;
    set(&use);
    go_on(&r, 2);
    check_near(r.y, r.model, 1e-2);
    check(r.worst <= 1e-9);
    use.v.integer[0] = 3;
    check_int(r.u->ops->set(r.u, use.b, &use.v), CRD_E_RANGE);
    check_contains(crd_error_text(r.u->ctx), "standby.use");
    fail_from = 2; // nobody needs it
    go_on(&r, 2.5);
    check_contains(r.u->remark, "em: the bench is lost: ");
    check_int(stats_of(&r).takeovers, 2);
    unbind(&use);
    end_run(&r);
    crd_context_destroy(ctx);
}

static void outputs_that_are_not_numbers_are_no_outputs(void** state)
{
    (void)state;
    calm();
    crd_context* ctx = crd_context_create(NULL);
    run r = begin_run(ctx, spec_of());
    nan_from = 0.5;
    nan_until = 0.6;
    go_on(&r, 0.52);
    check_contains(r.u->remark, "not a number");
    check(isfinite(get_one(r.u, "temperature")));
    check_near(get_one(r.u, "temperature"), 25.5, 0.01);
    go_on(&r, 0.69);
    check_int(r.out.v.integer[0], CRDI_BOARD_MODEL);
    go_on(&r, 0.71);
    check_int(r.out.v.integer[0], CRDI_BOARD_BENCH);
    check(r.worst <= 1e-9);
    end_run(&r);
    crd_context_destroy(ctx);
}

static void a_bench_that_has_to_be_used_fails_as_one_without_a_stand_in(void** state)
{
    (void)state;
    calm();
    crd_context* ctx = crd_context_create(NULL);
    static const crd_setting bench = {.variable = "standby.use", .text = "bench"};
    crd_unit_spec spec = *spec_of();
    spec.parameters = &bench;
    spec.parameter_count = 1;
    run r = begin_run(ctx, &spec);
    fail_from = 1;
    go_on(&r, 1);
    check_int(r.u->ops->step(r.u, 1, H), CRD_E_UNIT);
    check_contains(crd_error_text(r.u->ctx), "the bench is on fire");
    end_run(&r);
    crd_context_destroy(ctx);
}

static void when_both_fail_the_run_does(void** state)
{
    (void)state;
    calm();
    crd_context* ctx = crd_context_create(NULL);
    run r = begin_run(ctx, spec_of());
    stand_fails = 0.5;
    go_on(&r, 0.7); // nobody needs it
    check_int(r.out.v.integer[0], CRDI_BOARD_BENCH);
    check_contains(r.u->remark, "em: the stand-in cannot take over: it has failed");
    fail_from = 0.7;
    check_int(r.u->ops->step(r.u, 0.7, H), CRD_E_UNIT);
    check_contains(crd_error_text(r.u->ctx), "the bench is on fire");
    check_contains(crd_error_text(r.u->ctx), "cannot take over");
    end_run(&r);
    calm();
    stand_fails = 0.6;
    fail_from = 0.5;
    run other = begin_run(ctx, spec_of());
    go_on(&other, 0.6);
    check_int(other.u->ops->step(other.u, 0.6, H), CRD_E_UNIT);
    check_contains(crd_error_text(other.u->ctx), "the stand-in: ");
    check_contains(crd_error_text(other.u->ctx), "left its range");
    end_run(&other);
    stand_fails = INFINITY;
    crd_context_destroy(ctx);
}

static void a_run_may_begin_with_the_model_and_the_bench_join_later(void** state)
{
    (void)state;
    calm();
    crd_context* ctx = crd_context_create(NULL);
    static const crd_setting model = {.variable = "standby.use", .text = "model"};
    crd_unit_spec spec = *spec_of();
    spec.parameters = &model;
    spec.parameter_count = 1;
    unreachable = true;
    run r = begin_run(ctx, &spec);
    check_int(r.s->post, CRDI_POST_AWAY);
    go_on(&r, 1);
    check_int(r.s->post, CRDI_POST_AWAY);
    check_near(r.y, r.model, 0);
    check_near(stats_of(&r).stood_in, 1, 1e-9);
    bound use = bind_names(r.u, "standby.use");
    use.v.integer[0] = CRDI_USE_AUTO;
    set(&use);
    unbind(&use);
    go_on(&r, 1 + H);
    check_int(r.s->post, CRDI_POST_WANTED);
    check_int(crdi_standby_bring_up(r.s), CRD_E_UNIT);
    check_contains(crd_error_text(r.s->helper), "nobody answers");
    unreachable = false;
    check_ok(crdi_standby_bring_up(r.s));
    go_on(&r, 2);
    check_int(r.out.v.integer[0], CRDI_BOARD_BENCH);
    check_int(stats_of(&r).returns, 1);
    check(r.worst <= 1e-9);
    end_run(&r);
    crd_context_destroy(ctx);
}

static void a_bench_that_cannot_be_reached_at_the_start_is_an_error(void** state)
{
    (void)state;
    calm();
    crd_context* ctx = crd_context_create(NULL);
    const crd_experiment e = {.start = 0};
    unreachable = true;
    crd_unit* u = make(ctx, spec_of());
    check_ok(crd_unit_instantiate(u));
    crd_status st = u->ops->enter_initialization(u, &e);
    if (st >= 0) { st = u->ops->exit_initialization(u); }
    check_int(st, CRD_E_UNIT);
    check_contains(crd_error_text(u->ctx), "nobody answers");
    check_ok(u->ops->terminate(u));
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void what_does_not_go_together_is_refused(void** state)
{
    (void)state;
    calm();
    crd_context* ctx = crd_context_create(NULL);
    static const crd_name_pair wrong_unit[] = {{"power", "n"}};
    static const crd_name_pair wrong_type[] = {{"count", "n"}};
    static const crd_name_pair unknown[] = {{"speed", "nn"}};
    static const struct {
        const crd_name_pair* pairs;
        int count;
        crd_status st;
        const char* text;
    } cases[] = {{wrong_unit, 1, CRD_E_RANGE, "'n' is in 'rpm', 'power' of the unit in 'W'"},
                 {wrong_type, 1, CRD_E_RANGE, "'n' of the stand-in does not go with 'count'"},
                 {unknown, 1, CRD_E_NOT_FOUND, "standby.names: "},
                 {NULL, 0, CRD_E_RANGE, "has no output of the unit, such as 'speed'"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        crd_unit_spec spec = *spec_of();
        spec.place = (crd_place){"s.yaml", 7};
        spec.standby.names = cases[i].pairs;
        spec.standby.name_count = cases[i].count;
        crd_unit* u = NULL;
        check_status(crd_unit_create(ctx, &spec, &u), cases[i].st);
        check_contains(crd_error_text(ctx), "s.yaml:7: unit 'em': ");
        check_contains(crd_error_text(ctx), cases[i].text);
    }
    crd_unit_spec spec = *spec_of();
    static const crd_setting bad = {.variable = "rattio", .text = "1"};
    stand_spec.parameters = &bad;
    stand_spec.parameter_count = 1;
    stand_spec.place = (crd_place){"s.yaml", 9};
    crd_unit* u = NULL;
    check_status(crd_unit_create(ctx, &spec, &u), CRD_E_NOT_FOUND);
    check_contains(crd_error_text(ctx), "unit 'em.standby'");
    crd_context_destroy(ctx);
}

static void every_allocation_may_fail(void** state)
{
    (void)state;
    calm();
    check_survives_lack_of_memory(spec_of());
}

static void initialising_and_bringing_up_survive_a_lack_of_memory(void** state)
{
    (void)state;
    calm();
    const crd_experiment e = {.start = 0};
    bool done = false;
    for (int64_t n = 0; !done; n++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        const int64_t idle = a.live;
        crd_unit* u = make(ctx, spec_of());
        check_ok(crd_unit_instantiate(u));
        a.allocations = 0;
        a.fail_at = n;
        crd_status st = u->ops->enter_initialization(u, &e);
        if (st >= 0) { st = u->ops->exit_initialization(u); }
        if (st >= 0) { // the bench is lost, and comes back
            fail_from = 0;
            a.fail_at = -1;
            step(u, 0, H);
            a.allocations = 0;
            a.fail_at = n;
            fail_from = INFINITY;
            st = crdi_standby_bring_up((crdi_standby*)u);
            done = st >= 0;
        }
        a.fail_at = -1;
        check(st == CRD_OK || st == CRD_E_MEMORY);
        (void)u->ops->terminate(u);
        crd_unit_destroy(u);
        check_int(a.live, idle);
        crd_context_destroy(ctx);
    }
}

static void steps_do_not_allocate(void** state)
{
    (void)state;
    calm();
    check_allocator a;
    crd_context* ctx = check_context(&a);
    crd_unit* u = make(ctx, spec_of());
    bound in = bind_names(u, "torque");
    start(u, 0, 10);
    fail_from = 3; // that neither
    fail_until = 4;
    check_steps_do_not_allocate(&a, u, "torque", "speed model.speed standby.weight", H);
    check_int(u->remarks, 1);
    check_ok(u->ops->terminate(u));
    unbind(&in);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void the_board_tells_whose_outputs_they_are(void** state)
{
    (void)state;
    calm();
    crd_context* ctx = crd_context_create(NULL);
    run r = begin_run(ctx, spec_of());
    static crdi_board_state b;
    const crdi_board* board = crdi_unit_board(r.u);
    crdi_board_read(board, &b);
    check(b.has_standby);
    check_int(b.source, CRDI_BOARD_BENCH);
    check_near(b.weight, 1, 0);
    fail_from = 0.5;
    go_on(&r, 0.6);
    unreachable = true;
    check_int(crdi_standby_bring_up(r.s), CRD_E_UNIT);
    strcpy(r.s->lost, r.s->failure); // as the attendant does
    crdi_standby_show(r.s);
    crdi_board_read(board, &b);
    check_int(b.source, CRDI_BOARD_COMING);
    check_int(b.takeovers, 1);
    check_contains(b.standby, "on fire");
    check_contains(b.standby, "; not back: ");
    check(b.weight > 0.3 && b.weight < 0.5);
    check_int(b.moments[b.moment_count - 1].what, CRDI_BOARD_SOURCE);
    check_near(b.moments[b.moment_count - 1].value, CRDI_BOARD_COMING, 0);
    unreachable = false;
    check_ok(crdi_standby_bring_up(r.s));
    fail_from = INFINITY;
    go_on(&r, 1);
    crdi_standby_show(r.s);
    crdi_board_read(board, &b);
    check_int(b.source, CRDI_BOARD_BENCH);
    check_int(b.returns, 1);
    check_text(b.standby, "");
    end_run(&r);
    crd_context_destroy(ctx);
}

// ---- a twin ------------------------------------------------------------------------------------

static const char netlist[] =
    "rc\n.input q unit=W start=10\n.thermal\nheat q0 1 input(q)\n"
    "resistance r1 1 2 1\nresistance r2 2 0 2\ncapacity c1 2 0.1 start=1\n"
    ".endthermal\n.output T1=t(1) T2=t(2)\n.tran 1m 1 uic\n";
static const char description[] =
    "circuit: standby_rc.cir\nstep: 1 ms\nsensors: { T2: { sd: 0.1 } }\n"
    "parameters: { r2: { start: 3, sd: 0.5 } }\n";

typedef struct oven {
    double q, T1, T2;
} oven;

static void oven_outputs(void* self, double t)
{
    oven* o = self;
    (void)t;
    o->T1 = o->T2 + o->q;
}

static crd_model_status oven_step(void* self, const crd_model_host* host, double t, double h,
                                  double* reached)
{
    oven* o = self;
    (void)host;
    (void)reached;
    if (t >= fail_from) { return CRD_MODEL_ERROR; }
    o->T2 += h / 0.1 * (o->q - o->T2 / 2);
    return CRD_MODEL_OK;
}

static const crd_model_variable oven_rows[] = {
    {.name = "q",
     .type = CRD_FLOAT64,
     .causality = CRD_INPUT,
     .offset = offsetof(oven, q),
     .unit = "W",
     .start = 10},
    {.name = "T1",
     .type = CRD_FLOAT64,
     .causality = CRD_OUTPUT,
     .offset = offsetof(oven, T1),
     .unit = "K"},
    {.name = "T2",
     .type = CRD_FLOAT64,
     .causality = CRD_OUTPUT,
     .offset = offsetof(oven, T2),
     .unit = "K",
     .start = 1,
     .exact = true},
};
static const crd_model oven_model = {.name = "oven",
                                     .size = sizeof(oven),
                                     .variables = oven_rows,
                                     .variable_count = 3,
                                     .initialize = stand_initialize,
                                     .outputs = oven_outputs,
                                     .step = oven_step};

static void write_file(const char* path, const char* text)
{
    FILE* f = fopen(path, "w");
    check(f != NULL);
    fputs(text, f);
    fclose(f);
}

// It learns what the bench measures, is told when nothing is measured, and goes on from there.
static void a_twin_learns_from_the_bench_and_then_stands_in_for_it(void** state)
{
    (void)state;
    calm();
    write_file(TEST_BUILD_DIR "/standby_rc.cir", netlist);
    write_file(TEST_BUILD_DIR "/standby_twin.yaml", description);
    crd_context* ctx = crd_context_create(NULL);
    crd_unit_spec twin = crd_unit_spec_defaults();
    twin.source = CRD_UNIT_TWIN;
    twin.path = TEST_BUILD_DIR "/standby_twin.yaml";
    crd_unit_spec spec = crd_unit_spec_defaults();
    spec.name = "oven";
    spec.source = CRD_UNIT_NATIVE;
    spec.model = &oven_model;
    spec.standby.model = &twin;
    crd_unit* u = make(ctx, &spec);
    crdi_standby* s = (crdi_standby*)u;
    check(s->feeds_back && s->is_twin);
    check_near(u->info.step_unit, 1e-3, 0);
    bound in = bind_names(u, "q"), out = bind_names(u, "T2 model.T2 T1");
    start(u, 0, 10);
    fail_from = 2;
    double worst = 0, y = 1, learned = 0;
    int measured = -1;
    for (int k = 0; k < s->to_model.count; k++) {
        if (s->to_model.ways[k].measured) { measured = s->to_model.ways[k].slot; }
    }
    check(measured >= 0);
    for (int i = 0; i < 3000; i++) {
        in.v.real[0] = 10;
        set(&in);
        step(u, i * 1e-3, 1e-3);
        get(&out);
        worst = fmax(worst, fabs(out.v.real[0] - y) - (i < 500 ? 0.2 : 0.02));
        y = out.v.real[0];
        if (i == 1999) { learned = out.v.real[1]; }
        check(i < 2000 ? isfinite(s->to_model.values.real[measured])
                       : isnan(s->to_model.values.real[measured]));
    }
    check(worst <= 0);
    check_near(learned, 20, 0.1); // not 30, which its start value would give
    check_near(y, 20, 0.2);
    check_contains(u->remark, "takes over");
    check_ok(u->ops->terminate(u));
    unbind(&in);
    unbind(&out);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

// ---- threads -----------------------------------------------------------------------------------

static void nap(void)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    nanosleep(&moment, NULL);
}

static void the_attendant_brings_a_lost_bench_back_while_the_run_goes_on(void** state)
{
    (void)state;
    calm();
    crdi_standby_has_threads = true;
    crd_context* ctx = crd_context_create(NULL);
    run r = begin_run(ctx, spec_of());
    go_on(&r, 0.5);
    static crdi_board_state b;
    for (int i = 0; i < 3; i++) { // again and again
        const double t = r.n * H;
        fail_from = t; // nobody else is in a step
        fail_until = t + H / 2;
        go_on(&r, t + H);
        for (int k = 0; k < 10000 && stats_of(&r).returns == i; k++) {
            go_on(&r, (r.n + 1) * H);
            crdi_board_read(crdi_unit_board(r.u), &b);
            nap();
        }
        check_int(stats_of(&r).returns, i + 1);
    }
    check(r.worst <= 1e-9);
    end_run(&r);
    crd_context_destroy(ctx);
}

static void a_run_ends_at_once_while_a_bench_is_being_brought_up(void** state)
{
    (void)state;
    calm();
    crdi_standby_has_threads = true;
    crd_context* ctx = crd_context_create(NULL);
    run r = begin_run(ctx, spec_of());
    fail_from = 0.1;
    unreachable = true;
    go_on(&r, 0.2);
    for (int k = 0; k < 10000 && r.s->post != CRDI_POST_COMING; k++) {
        nap();
    }
    check_int(r.s->post, CRDI_POST_COMING);
    const int64_t before = crdi_now_ns();
    r.u->ops->remote->halt(r.u);
    end_run(&r);
    check(crdi_now_ns() - before < 900000000); // its first pause is a second
    crd_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_unit_has_the_variables_of_the_bench_and_some_more),
        cmocka_unit_test(without_trouble_it_is_the_bench_to_the_last_bit),
        cmocka_unit_test(a_bench_that_fails_is_stood_in_for_without_a_step),
        cmocka_unit_test(what_the_model_does_not_have_is_held),
        cmocka_unit_test(a_bench_that_is_back_is_taken_when_it_was_good_for_a_while),
        cmocka_unit_test(a_bench_need_not_agree_with_its_model_to_be_taken_back),
        cmocka_unit_test(a_bench_can_be_swapped_for_its_model_and_back),
        cmocka_unit_test(outputs_that_are_not_numbers_are_no_outputs),
        cmocka_unit_test(a_bench_that_has_to_be_used_fails_as_one_without_a_stand_in),
        cmocka_unit_test(when_both_fail_the_run_does),
        cmocka_unit_test(a_run_may_begin_with_the_model_and_the_bench_join_later),
        cmocka_unit_test(a_bench_that_cannot_be_reached_at_the_start_is_an_error),
        cmocka_unit_test(what_does_not_go_together_is_refused),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(initialising_and_bringing_up_survive_a_lack_of_memory),
        cmocka_unit_test(steps_do_not_allocate),
        cmocka_unit_test(the_board_tells_whose_outputs_they_are),
        cmocka_unit_test(a_twin_learns_from_the_bench_and_then_stands_in_for_it),
        cmocka_unit_test(the_attendant_brings_a_lost_bench_back_while_the_run_goes_on),
        cmocka_unit_test(a_run_ends_at_once_while_a_bench_is_being_brought_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
