// Units with a budget step on threads of their own. The units here stop in their step until the
// test lets them go on, and the test says with a budget of 0 or of years whether the run waits for
// them: so nothing depends on how fast anything is.
#include "models.h"

#include "shared/master_replay.h"

#include <stdio.h>

#include "master/step/async.h"

// x' = u by explicit Euler, y = x + d u; stops in its step while `closed`.
enum { STEPS = 64 };
typedef struct {
    double u, y, x, d;
    int32_t what;
} gated;

static sem_t entered, gate;
static atomic_bool closed, faulty;
static double lengths[STEPS];
static int made; // the unit's thread writes both, and the test reads them when it has come back

static crd_model_status gated_initialize(void* self, const crd_model_host* host, double t)
{
    gated* g = self;
    (void)host;
    (void)t;
    g->y = g->x + g->d * g->u;
    return CRD_MODEL_OK;
}

static void gated_outputs(void* self, double t)
{
    gated* g = self;
    (void)t;
    g->y = g->what == 3 && atomic_load(&faulty) ? NAN : g->x + g->d * g->u;
}

static crd_model_status gated_step(void* self, const crd_model_host* host, double t, double h,
                                   double* reached)
{
    gated* g = self;
    (void)host;
    if (atomic_load(&closed)) {
        sem_post(&entered);
        while (sem_wait(&gate) != 0) {}
    }
    if (made < STEPS) { lengths[made++] = h; }
    g->x += h * g->u;
    *reached = t + h;
    if (!atomic_load(&faulty)) { return CRD_MODEL_OK; }
    if (g->what == 4) { *nowhere = 1; }
    return g->what == 1 ? CRD_MODEL_TERMINATE : g->what == 2 ? CRD_MODEL_ERROR : CRD_MODEL_OK;
}

static const crd_model_variable gated_variables[] = {
    REAL(gated, u, CRD_INPUT, 0),
    {.name = "y",
     .type = CRD_FLOAT64,
     .causality = CRD_OUTPUT,
     .offset = offsetof(gated, y),
     .depends = "u"},
    REAL(gated, d, CRD_PARAMETER, 0),
    {.name = "x",
     .type = CRD_FLOAT64,
     .causality = CRD_LOCAL,
     .offset = offsetof(gated, x),
     .exact = true},
    {.name = "what",
     .type = CRD_INT32,
     .causality = CRD_PARAMETER,
     .variability = CRD_TUNABLE,
     .offset = offsetof(gated, what)},
};
#define GATED(identifier, fixed)                                                                   \
    static const crd_model identifier = {.name = #identifier,                                      \
                                         .description = "x' = u, y = x + d u",                     \
                                         .size = sizeof(gated),                                    \
                                         .variables = gated_variables,                             \
                                         .variable_count = 5,                                      \
                                         .default_step = 0.1,                                      \
                                         .default_stop = 1,                                        \
                                         .fixed_step = fixed,                                      \
                                         .initialize = gated_initialize,                           \
                                         .outputs = gated_outputs,                                 \
                                         .step = gated_step}
GATED(gated_model, false);
GATED(fixed_model, true);

static const double YEARS = 1e9;

// ---- a bench -----------------------------------------------------------------------------------

enum { LINES = 8 };
typedef struct {
    crd_context* ctx;
    crd_system* s;
    crd_master* m;
    char lines[LINES][512]; // warnings
    atomic_int count;
} bench;

static void hear(void* user, crd_level level, const char* text)
{
    bench* b = user;
    if (level != CRD_LOG_WARNING) { return; }
    const int i = atomic_fetch_add(&b->count, 1);
    if (i < LINES) { snprintf(b->lines[i], sizeof b->lines[i], "%s", text); }
}

static int setup(void** state)
{
    bench* b = calloc(1, sizeof *b);
    if (!b) { return -1; }
    crd_context_options opt = crd_context_defaults();
    opt.log = hear;
    opt.log_user = b;
    b->ctx = crd_context_create(&opt);
    sem_init(&entered, 0, 0);
    sem_init(&gate, 0, 0);
    atomic_store(&closed, false);
    atomic_store(&faulty, false);
    made = 0;
    *state = b;
    return 0;
}

static int teardown(void** state)
{
    bench* b = *state;
    crd_master_destroy(b->m);
    crd_system_destroy(b->s);
    crd_context_destroy(b->ctx);
    free(b);
    return 0;
}

// source -> slow -> sink
static void build(bench* b, const crd_model* slow_model, double step)
{
    b->s = new_system(b->ctx, 0.1, 2);
    const int source = add_unit(b->s, "source", &clock_model, 0);
    const int slow = add_unit(b->s, "slow", slow_model, step);
    const int sink = add_unit(b->s, "sink", &euler_model, 0);
    b->s->units[slow].budget = YEARS;
    wire(b->s, source, "y", slow, "u");
    wire(b->s, slow, "y", sink, "u");
}

static void start(bench* b, const crd_master_options* opt)
{
    check_run(crd_master_create(b->ctx, b->s, opt, &b->m), b->ctx);
    check_run(crd_master_initialize(b->m), b->ctx);
}

static crdi_runner* runner(const bench* b)
{
    return &b->m->async->runners[0];
}

static void wait_back(bench* b)
{
    while (sem_wait(&runner(b)->done) != 0) {}
    sem_post(&runner(b)->done);
}

// It goes on, its step comes to an end, and the run waits again.
static void open_gate(bench* b)
{
    atomic_store(&closed, false);
    sem_post(&gate);
    wait_back(b);
    runner(b)->budget = (int64_t)(YEARS * 1e9);
}

static void advance(bench* b, int64_t ticks)
{
    check_run(crd_master_advance(b->m, ticks), b->ctx);
}

// The unit stops in its next step, and the run goes on without it.
static void close_gate(bench* b)
{
    atomic_store(&closed, true);
    runner(b)->budget = 0;
    advance(b, 1);
    while (sem_wait(&entered) != 0) {}
}

static int64_t late(const bench* b, bool* now)
{
    return crdi_async_late(b->m, 1, now);
}

// ---- in time -----------------------------------------------------------------------------------

// A force and a displacement, a feedthrough loop, a unit with a longer step; every variable of
// every step in a file.
static void record(crd_context* ctx, bool budget, const char* scheme, crd_prediction predict,
                   double long_step, char* text, size_t room)
{
    static const struct {
        int from, to;
    } wires[] = {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 0}};
    static const char* const all[] = {"*"};
    crd_system* s = new_system(ctx, 0.1, 2);
    add_unit(s, "a", &exact_model, 0);
    const int b = add_unit(s, "b", &gain_model, 0);
    add_unit(s, "c", &exact_model, 0);
    const int d = add_unit(s, "d", &gated_model, 0);
    add_unit(s, "e", &euler_model, long_step);
    set(s, b, "a", "-0.4");
    set(s, b, "b", "1");
    set(s, d, "d", "0.3");
    for (size_t i = 0; i < sizeof wires / sizeof *wires; i++) {
        wire(s, wires[i].from, "y", wires[i].to, "u")->predict = predict;
    }
    for (int i = 0; i < s->unit_count && budget; i++) {
        if (i != 2) { s->units[i].budget = YEARS; }
    }
    check_ok(crd_system_set_scheme(s, scheme, (crd_place){"", 0}));
    s->run.threads = long_step > 0.1 ? 2 : 1;
    s->results.path = TEST_BUILD_DIR "/test_async.csv";
    s->results.patterns = all;
    s->results.pattern_count = 1;
    crd_master* m = NULL;
    check_run(crd_master_create(ctx, s, NULL, &m), ctx);
    check_run(crd_master_run(m), ctx);
    for (int i = 0; i < s->unit_count; i++) {
        bool now = true;
        check_int(crdi_async_late(m, i, &now), 0);
        check(!now);
    }
    crd_master_destroy(m);
    crd_system_destroy(s);
    FILE* f = fopen(TEST_BUILD_DIR "/test_async.csv", "r");
    check(f != NULL);
    const size_t n = fread(text, 1, room - 1, f);
    text[n] = 0;
    fclose(f);
    check(n > 1000 && n < room - 1);
}

static void without_lateness_every_bit_is_that_of_a_run_without_budget(void** state)
{
    static char want[1 << 16], got[1 << 16];
    static const char* const schemes[] = {"jacobi", "gauss-seidel"};
    static const crd_prediction predictions[] = {CRD_PREDICTION_HOLD, CRD_PREDICTION_QUADRATIC,
                                                 CRD_PREDICTION_AUTO};
    bench* b = *state;
    for (int k = 0; k < 2; k++) {
        for (int p = 0; p < 3; p++) {
            for (int steps = 1; steps <= 2; steps++) {
                const double long_step = 0.1 * steps;
                record(b->ctx, false, schemes[k], predictions[p], long_step, want, sizeof want);
                record(b->ctx, true, schemes[k], predictions[p], long_step, got, sizeof got);
                if (strcmp(want, got) != 0) {
                    fail_msg("%s, predict %d, %d ticks: the records differ", schemes[k],
                             (int)predictions[p], steps);
                }
            }
        }
    }
}

// ---- late --------------------------------------------------------------------------------------

static void a_late_unit_is_held_and_catches_up_in_one_longer_step(void** state)
{
    bench* b = *state;
    bool now = true;
    build(b, &gated_model, 0);
    start(b, NULL);
    advance(b, 3);
    check_int(late(b, &now), 0);
    check(!now);
    const double held = value(b->m, "slow.y");
    check(held > 0);
    close_gate(b);
    check_int(late(b, &now), 1);
    check(now);
    advance(b, 3);
    check_int(late(b, &now), 4);
    check(value(b->m, "sink.u") == held);
    double x = 0;
    check_status(crd_master_value(b->m, "slow.y", &x), CRD_E_STATE);
    check_contains(crd_error_text(b->ctx), "unit 'slow' is late");
    open_gate(b);
    check_int(made, 4); // the step that it was in
    advance(b, 1);
    check_int(late(b, &now), 4);
    check(!now);
    check_int(made, 5);
    check_near(lengths[3], 0.1, 1e-12);
    check_near(lengths[4], 0.4, 1e-12); // from 0.4 to 0.8 with the input of 0.7
    check_near(value(b->m, "slow.x"), held + 0.1 * 0.3 + 0.4 * 0.7, 1e-12);
    advance(b, 1);
    check_near(lengths[5], 0.1, 1e-12);
    check_int(late(b, &now), 4);
    check_int(crd_master_get_report(b->m)->units[1].late, 4);
}

// Who records what is exchanged does not look into a unit that is in its step.
static void what_a_late_unit_gives_is_recorded_as_it_is_held(void** state)
{
    bench* b = *state;
    build(b, &gated_model, 0);
    b->s->connections[1].predict = CRD_PREDICTION_LINEAR;
    b->s->results.exchange = TEST_BUILD_DIR "/test_async_exchange.mf4";
    start(b, NULL);
    advance(b, 3);
    const double held = value(b->m, "slow.y");
    close_gate(b);
    advance(b, 3);
    open_gate(b);
    advance(b, 3);
    check_run(crd_master_finish(b->m), b->ctx);
    crdi_exchange* x = NULL;
    check_run(crdi_exchange_load(b->ctx, b->s->results.exchange, &x), b->ctx);
    check_int(x->link_count, 2);
    const crdi_exchange_link* k = &x->links[1];
    check_text(k->to, "sink.u");
    check_int(k->count, 11);
    for (int i = 4; i < 8; i++) {
        check(k->value[i] == held);
        check_near(k->events[i], i == 4, 0); // holding begins
    }
    check_near(k->events[8], 1, 0); // and ends
    crdi_exchange_destroy(x);
}

static void a_late_unit_with_a_fixed_step_catches_up_step_by_step(void** state)
{
    bench* b = *state;
    bool now = false;
    build(b, &fixed_model, 0);
    start(b, NULL);
    advance(b, 2);
    close_gate(b);
    advance(b, 4);
    check_int(late(b, &now), 5);
    open_gate(b);
    check_int(made, 3);
    advance(b, 1); // ticks 3 to 8
    check_int(made, 8);
    for (int i = 0; i < made; i++) {
        check_near(lengths[i], 0.1, 1e-12);
    }
    check_int(late(b, &now), 5);
    check(!now);
    check_int(runner(b)->at, b->m->clock.n);
    check_near(value(b->m, "slow.x"), 0.1 * (0 + 0.1 + 0.2) + 5 * 0.1 * 0.7, 1e-12);
}

static void a_unit_with_a_longer_step_is_late_only_when_it_is_due(void** state)
{
    bench* b = *state;
    bool now = false;
    build(b, &gated_model, 0.2);
    start(b, NULL);
    advance(b, 3);
    close_gate(b); // due at the end of tick 4
    check_int(late(b, &now), 1);
    advance(b, 1);
    check_int(late(b, &now), 1);
    advance(b, 1);
    check_int(late(b, &now), 2);
    open_gate(b);
    const double old = b->m->plan->members[1].outputs.real[0];
    advance(b, 1); // not due, but what is there is taken
    check(b->m->plan->members[1].outputs.real[0] != old);
    check_int(late(b, &now), 2);
    advance(b, 1);
    check_int(late(b, &now), 2);
    check(!now);
    check_int(made, 3);
    check_near(lengths[2], 0.4, 1e-12);
}

// What was predicted before is not extended beyond the gap.
static void predictions_rest_on_the_held_output_and_begin_anew_behind_it(void** state)
{
    static const crd_prediction predictions[] = {CRD_PREDICTION_LINEAR, CRD_PREDICTION_QUADRATIC,
                                                 CRD_PREDICTION_TAYLOR2, CRD_PREDICTION_AUTO};
    static const char* const schemes[] = {"jacobi", "gauss-seidel"};
    for (int i = 0; i < 8; i++) {
        bench* b = *state;
        build(b, &gated_model, 0);
        set(b->s, 1, "d", i % 3 == 0 ? "0" : "0.25");
        check_ok(crd_system_set_scheme(b->s, schemes[i / 4], (crd_place){"", 0}));
        for (int k = 0; k < 2; k++) {
            b->s->connections[k].predict = predictions[i % 4];
        }
        start(b, NULL);
        advance(b, 4);
        close_gate(b);
        const double held = b->m->plan->members[1].outputs.real[0];
        advance(b, 1);
        for (int k = 0; k < 6; k++) {
            advance(b, 1);
            check_near(value(b->m, "sink.u"), held, 1e-12);
        }
        open_gate(b);
        advance(b, 2);
        check_near(b->m->plan->members[1].outputs.real[0], value(b->m, "slow.y"), 0);
        check(isfinite(value(b->m, "sink.y")));
        crd_master_destroy(b->m);
        crd_system_destroy(b->s);
        b->m = NULL;
        b->s = NULL;
    }
}

static void the_shortest_budget_is_looked_at_first(void** state)
{
    static const double budgets[] = {3, NAN, 1, 2, NAN, 0.5};
    static const char* const names[] = {"u0", "u1", "u2", "u3", "u4", "u5"};
    static const int want[] = {1, 4, 5, 2, 3, 0};
    bench* b = *state;
    b->s = new_system(b->ctx, 0.1, 1);
    for (int i = 0; i < 6; i++) {
        add_unit(b->s, names[i], &clock_model, 0);
        b->s->units[i].budget = budgets[i];
    }
    start(b, NULL);
    check_int(b->m->plan->phases[0].batch_count, 2);
    check_int(b->m->plan->phases[0].async_count, 4);
    for (int i = 0; i < 6; i++) {
        check_int(b->m->plan->batch[i], want[i]);
    }
}

// ---- what goes wrong ---------------------------------------------------------------------------

static void fail_when_it_comes_back(bench* b, const char* what, crd_status want, const char* part)
{
    crd_master_options opt = crd_master_defaults();
    opt.guard_crashes = true;
    build(b, &gated_model, 0);
    set(b->s, 1, "what", what);
    start(b, &opt);
    advance(b, 2);
    close_gate(b);
    advance(b, 1);
    atomic_store(&faulty, true);
    open_gate(b);
    check_status(crd_master_advance(b->m, 1), want);
    check_int(crd_master_ended(b->m), CRD_END_FAILED);
    check_contains(crd_error_text(b->ctx), "unit 'slow' at t = 0.4");
    check_contains(crd_error_text(b->ctx), part);
    check_ok(crd_master_finish(b->m));
}

static void a_failure_ends_the_run_when_it_is_seen(void** state)
{
    fail_when_it_comes_back(*state, "2", CRD_E_UNIT, "");
}

static void a_crash_ends_the_run_when_it_is_seen(void** state)
{
    fail_when_it_comes_back(*state, "4", CRD_E_CRASH, "crashed in");
}

static void an_output_that_is_no_number_is_the_fault_of_its_unit(void** state)
{
    fail_when_it_comes_back(*state, "3", CRD_E_UNIT, "output 'y' is not a number");
}

static void a_failure_in_time_ends_the_run_at_once(void** state)
{
    bench* b = *state;
    build(b, &gated_model, 0);
    set(b->s, 1, "what", "2");
    atomic_store(&faulty, true);
    check_run(crd_master_create(b->ctx, b->s, NULL, &b->m), b->ctx);
    check_status(crd_master_run(b->m), CRD_E_UNIT);
    check_contains(crd_error_text(b->ctx), "unit 'slow' at t = 0:");
}

static void a_unit_on_its_own_thread_may_wish_the_end(void** state)
{
    bench* b = *state;
    build(b, &gated_model, 0);
    set(b->s, 1, "what", "1");
    atomic_store(&faulty, true);
    start(b, NULL);
    advance(b, 5);
    check_int(crd_master_ended(b->m), CRD_END_UNIT);
    check_text(crd_master_get_report(b->m)->end_unit, "slow");
    check_int(b->m->clock.n, 1);
}

static void a_run_that_is_to_stop_does_not_wait_for_a_unit(void** state)
{
    volatile bool stop = false;
    crd_master_options opt = crd_master_defaults();
    opt.stop = &stop;
    bench* b = *state;
    build(b, &gated_model, 0);
    start(b, &opt);
    advance(b, 1);
    atomic_store(&closed, true); // and the budget is years
    stop = true;
    advance(b, 5);
    while (sem_wait(&entered) != 0) {}
    check_int(crd_master_ended(b->m), CRD_END_INTERRUPTED);
    check_int(b->m->clock.n, 2);
    open_gate(b);
}

static void a_step_that_lasts_is_told_once(void** state)
{
    bench* b = *state;
    build(b, &gated_model, 0);
    start(b, NULL);
    close_gate(b);
    const int64_t now = crdi_now_ns();
    crdi_async_look(b->m, now);
    check_int(atomic_load(&b->count), 0);
    crdi_async_look(b->m, now + 1000000001);
    check_int(atomic_load(&b->count), 1);
    check_contains(b->lines[0], "unit 'slow' is in one step for more than 1 s");
    crdi_async_look(b->m, now + 5000000000);
    check_int(atomic_load(&b->count), 1);
    open_gate(b);
}

// ---- the end -----------------------------------------------------------------------------------

static void the_end_of_a_run_waits_for_a_step_under_way(void** state)
{
    bench* b = *state;
    build(b, &gated_model, 0);
    start(b, NULL);
    close_gate(b);
    sem_post(&gate);
    check_ok(crd_master_finish(b->m));
    check_int(atomic_load(&b->count), 0);
    check_int(made, 1);
}

static void what_happens_behind_the_end_is_told(void** state)
{
    bench* b = *state;
    build(b, &gated_model, 0);
    set(b->s, 1, "what", "2");
    start(b, NULL);
    close_gate(b);
    atomic_store(&faulty, true);
    sem_post(&gate);
    check_ok(crd_master_finish(b->m));
    check_int(atomic_load(&b->count), 1);
    check_contains(b->lines[0], "unit 'slow' failed in a step that was late");
}

static void a_unit_that_does_not_come_back_is_left_alone(void** state)
{
    bench* b = *state;
    const int64_t patience = crdi_async_patience;
    crdi_async_patience = 0;
    build(b, &gated_model, 0);
    start(b, NULL);
    close_gate(b);
    advance(b, 2);
    check_ok(crd_master_finish(b->m));
    crdi_async_patience = patience;
    check_int(atomic_load(&b->count), 1);
    check_contains(b->lines[0],
                   "unit 'slow' does not come back from the step that begins at t = 0");
    bool now = false;
    check_int(crdi_async_late(b->m, 1, &now), 3);
    open_gate(b); // now it has, and everything is freed
}

// What its thread may touch outlives the master, its context and the system.
static void a_unit_that_never_comes_back_outlives_the_run(void** state)
{
    bench* b = *state;
    const int64_t patience = crdi_async_patience;
    crdi_async_patience = 0;
    crd_master_options opt = crd_master_defaults();
    opt.guard_crashes = true;
    build(b, &gated_model, 0);
    start(b, &opt);
    close_gate(b);
    crd_master_destroy(b->m);
    b->m = NULL;
    crdi_async_patience = patience;
    check_int(atomic_load(&b->count), 1);
    // Its gate is never opened: the process ends with it.
}

// ---- plans -------------------------------------------------------------------------------------

static void check_refused(bench* b, const char* part)
{
    crd_master* m = NULL;
    b->s->units[1].place = (crd_place){"car.yaml", 7};
    check(crd_master_create(b->ctx, b->s, NULL, &m) < 0);
    check(m == NULL);
    check_contains(crd_error_text(b->ctx), "car.yaml:7: ");
    check_contains(crd_error_text(b->ctx), "'slow'");
    check_contains(crd_error_text(b->ctx), part);
    crd_system_destroy(b->s);
    b->s = NULL;
}

static void what_cannot_work_is_refused_with_its_place(void** state)
{
    bench* b = *state;
    build(b, &gated_model, 0);
    b->s->units[1].pinned = true;
    check_refused(b, "'pinned'");
    build(b, &gated_model, 0);
    b->s->run.iterate.on = true;
    check_refused(b, "run.iterate");
    build(b, &gated_model, 0);
    b->s->run.control.on = true;
    check_refused(b, "run.control");
    build(b, &gated_model, 0);
    b->s->units[1].budget = -1;
    check_refused(b, "budget is -1 s, expected >= 0");
}

static void every_allocation_may_fail(void** state)
{
    (void)state;
    for (int64_t fail_at = 0;; fail_at++) {
        check_allocator a;
        bench b = {.ctx = check_context(&a)};
        build(&b, &gated_model, 0);
        wire(b.s, 2, "y", add_unit(b.s, "last", &exact_model, 0), "u")->predict =
            CRD_PREDICTION_QUADRATIC;
        b.s->units[2].budget = b.s->units[3].budget = YEARS;
        a.fail_at = a.allocations + fail_at;
        crd_status st = crd_master_create(b.ctx, b.s, NULL, &b.m);
        if (st == CRD_OK) { st = crd_master_run(b.m); }
        const bool done = st == CRD_OK;
        if (!done) { check_status(st, CRD_E_MEMORY); }
        crd_master_destroy(b.m);
        a.fail_at = -1;
        crd_system_destroy(b.s);
        crd_context_destroy(b.ctx);
        check_int(a.live, 0);
        if (done) { break; }
    }
}

static void a_cycle_allocates_nothing(void** state)
{
    (void)state;
    check_allocator a;
    bench b = {.ctx = check_context(&a)};
    build(&b, &gated_model, 0);
    start(&b, NULL);
    advance(&b, 2);
    const int64_t before = a.allocations;
    advance(&b, 3);
    close_gate(&b);
    advance(&b, 2);
    open_gate(&b);
    advance(&b, 3);
    check_int(a.allocations, before);
    crd_master_destroy(b.m);
    crd_system_destroy(b.s);
    crd_context_destroy(b.ctx);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_lateness_every_bit_is_that_of_a_run_without_budget),
        TEST(a_late_unit_is_held_and_catches_up_in_one_longer_step),
        TEST(what_a_late_unit_gives_is_recorded_as_it_is_held),
        TEST(a_late_unit_with_a_fixed_step_catches_up_step_by_step),
        TEST(a_unit_with_a_longer_step_is_late_only_when_it_is_due),
        TEST(predictions_rest_on_the_held_output_and_begin_anew_behind_it),
        TEST(the_shortest_budget_is_looked_at_first),
        TEST(a_failure_ends_the_run_when_it_is_seen),
        TEST(a_crash_ends_the_run_when_it_is_seen),
        TEST(an_output_that_is_no_number_is_the_fault_of_its_unit),
        TEST(a_failure_in_time_ends_the_run_at_once),
        TEST(a_unit_on_its_own_thread_may_wish_the_end),
        TEST(a_run_that_is_to_stop_does_not_wait_for_a_unit),
        TEST(a_step_that_lasts_is_told_once),
        TEST(the_end_of_a_run_waits_for_a_step_under_way),
        TEST(what_happens_behind_the_end_is_told),
        TEST(a_unit_that_does_not_come_back_is_left_alone),
        TEST(what_cannot_work_is_refused_with_its_place),
        TEST(every_allocation_may_fail),
        TEST(a_cycle_allocates_nothing),
        TEST(a_unit_that_never_comes_back_outlives_the_run), // the last: its gate stays closed
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
