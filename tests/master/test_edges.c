// The edges of a run: calls in the wrong order, crashes in every phase, times far from zero, loops
// through values that are not real numbers.
#include "master/master.h"
#include "models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    crd_context* ctx;
    char log[2000];
} fixture;

static void keep(void* user, crd_level level, const char* text)
{
    fixture* f = user;
    (void)level;
    strncat(f->log, text, sizeof f->log - strlen(f->log) - 1);
}

static int setup(void** state)
{
    fixture* f = calloc(1, sizeof *f);
    crd_context_options opt = crd_context_defaults();
    opt.log = keep;
    opt.log_user = f;
    f->ctx = crd_context_create(&opt);
    *state = f;
    return f->ctx ? 0 : -1;
}

static int teardown(void** state)
{
    fixture* f = *state;
    crd_context_destroy(f->ctx);
    free(f);
    return 0;
}

static crd_master* created(crd_context* ctx, crd_system* s, bool guard)
{
    crd_master* m = NULL;
    crd_master_options opt = crd_master_defaults();
    opt.guard_crashes = guard;
    check_run(crd_master_create(ctx, s, &opt, &m), ctx);
    return m;
}

// ---- a model of many types ---------------------------------------------------------------------

// y = a u + b j with real y, u; j = i below 5: i + 1; q = not p: everything without delay.
typedef struct {
    double u, y, a, b;
    int32_t i, j;
    bool p, q;
    int64_t wide;
    uint64_t back;
    double array[3];
} mixed;

static void mixed_outputs(void* self, double t)
{
    mixed* m = self;
    (void)t;
    m->j = m->i < 5 ? m->i + 1 : 5;
    m->y = m->a * m->u + m->b * m->j;
    m->q = !m->p;
    m->wide = INT64_MAX - 1;
}

static crd_model_status mixed_initialize(void* self, const crd_model_host* host, double t)
{
    (void)host;
    mixed_outputs(self, t);
    return CRD_MODEL_OK;
}

#define OTHER(field, kind, cause)                                                                  \
    {                                                                                              \
        .name = #field, .type = kind, .causality = cause, .variability = CRD_DISCRETE,             \
        .offset = offsetof(mixed, field)                                                           \
    }

static const crd_model_variable mixed_variables[] = {
    REAL(mixed, u, CRD_INPUT, 0),
    REAL(mixed, y, CRD_OUTPUT, 0),
    REAL(mixed, a, CRD_PARAMETER, 1),
    REAL(mixed, b, CRD_PARAMETER, 0),
    OTHER(i, CRD_INT32, CRD_INPUT),
    OTHER(j, CRD_INT32, CRD_OUTPUT),
    OTHER(p, CRD_BOOLEAN, CRD_INPUT),
    OTHER(q, CRD_BOOLEAN, CRD_OUTPUT),
    OTHER(wide, CRD_INT64, CRD_OUTPUT),
    OTHER(back, CRD_UINT64, CRD_INPUT),
    {.name = "array",
     .type = CRD_FLOAT64,
     .causality = CRD_OUTPUT,
     .offset = offsetof(mixed, array),
     .size = 3,
     .depends = ""},
};
static const crd_model mixed_model = {.name = "mixed",
                                      .description = "many types",
                                      .size = sizeof(mixed),
                                      .variables = mixed_variables,
                                      .variable_count =
                                          sizeof mixed_variables / sizeof *mixed_variables,
                                      .default_step = 0.1,
                                      .default_stop = 1,
                                      .initialize = mixed_initialize,
                                      .outputs = mixed_outputs,
                                      .step = gain_step};

// ---- loops -------------------------------------------------------------------------------------

static void integers_in_a_loop_go_round_until_they_rest(void** state)
{
    fixture* f = *state;
    crd_system* s = new_system(f->ctx, 0.1, 1);
    const int a = add_unit(s, "a", &mixed_model, 0), b = add_unit(s, "b", &mixed_model, 0);
    wire(s, a, "j", b, "i");
    wire(s, b, "j", a, "i");
    crd_master* m = created(f->ctx, s, false);
    check_run(crd_master_initialize(m), f->ctx);
    check_near(value(m, "a.j"), 5, 0);
    check_near(value(m, "b.i"), 5, 0);
    const crd_loop_report* l = crd_master_get_report(m)->loops;
    check(l->converged && !l->newton && l->size == 0);
    crd_master_destroy(m);
    crd_system_destroy(s);
}

static void a_boolean_that_negates_itself_has_no_start(void** state)
{
    fixture* f = *state;
    crd_system* s = new_system(f->ctx, 0.1, 1);
    const int a = add_unit(s, "a", &mixed_model, 0);
    wire(s, a, "q", a, "p");
    crd_master* m = created(f->ctx, s, false);
    check_status(crd_master_initialize(m), CRD_E_CONVERGENCE);
    check_contains(crd_error_text(f->ctx), "still change");
    check_contains(crd_error_text(f->ctx), "a.q");
    check(!crd_master_get_report(m)->loops[0].converged);
    crd_master_destroy(m);
    crd_system_destroy(s);
}

static void an_integer_in_a_real_loop_leaves_it_to_newton(void** state)
{
    fixture* f = *state;
    crd_system* s = new_system(f->ctx, 0.1, 1);
    const int a = add_unit(s, "a", &mixed_model, 0), b = add_unit(s, "b", &mixed_model, 0);
    set(s, a, "a", "-3"); // a fixed point would diverge
    set(s, a, "b", "1");
    set(s, b, "a", "2");
    wire(s, a, "y", b, "u");
    wire(s, b, "y", a, "u");
    wire(s, a, "j", b, "i");
    wire(s, b, "j", a, "i");
    crd_master* m = created(f->ctx, s, false);
    check_run(crd_master_initialize(m), f->ctx);
    check_near(value(m, "a.j"), 5, 0);
    check_near(value(m, "a.y"), 5.0 / 7, 1e-9); // y = -6 y + 5
    check(crd_master_get_report(m)->loops[0].newton);
    crd_master_destroy(m);
    crd_system_destroy(s);
}

// A ring of more unknowns than a dense matrix should have.
static void a_loop_of_thousands_of_unknowns_is_iterated(void** state)
{
    fixture* f = *state;
    enum { N = 2500 };
    static char names[N][16];
    crd_system* s = new_system(f->ctx, 0.1, 1);
    for (int i = 0; i < N; i++) {
        snprintf(names[i], sizeof names[i], "g%d", i);
        const int g = add_unit(s, names[i], &gain_model, 0);
        if (i == 0) {
            set(s, g, "a", "0.5");
            set(s, g, "b", "1");
        }
    }
    for (int i = 0; i < N; i++) {
        wire(s, i, "y", (i + 1) % N, "u");
    }
    crd_master* m = created(f->ctx, s, false);
    check_run(crd_master_initialize(m), f->ctx);
    check_near(value(m, "g2000.y"), 2, 1e-8); // y = y/2 + 1
    check(!crd_master_get_report(m)->loops[0].newton);
    crd_master_destroy(m);
    crd_system_destroy(s);
}

static void wide_integers_keep_their_bits_between_signed_and_unsigned(void** state)
{
    fixture* f = *state;
    crd_system* s = new_system(f->ctx, 0.1, 1);
    const int a = add_unit(s, "a", &mixed_model, 0), b = add_unit(s, "b", &mixed_model, 0);
    wire(s, a, "wide", b, "back");
    crd_master* m = created(f->ctx, s, false);
    check_run(crd_master_initialize(m), f->ctx);
    check(m->plan->members[b].inputs.integer[0] == INT64_MAX - 1);
    crd_master_destroy(m);
    crd_system_destroy(s);
}

// ---- texts -------------------------------------------------------------------------------------

enum { LONG_TEXT = 1000 };

typedef struct {
    char in[LONG_TEXT], out[LONG_TEXT];
} talker;

static void talker_outputs(void* self, double t)
{
    memset(((talker*)self)->out, 'x', t > 0.05 ? LONG_TEXT - 1 : 1);
}

static crd_model_status talker_initialize(void* self, const crd_model_host* host, double t)
{
    (void)host;
    talker_outputs(self, t);
    return CRD_MODEL_OK;
}

#define TEXT(field, cause)                                                                         \
    {                                                                                              \
        .name = #field, .type = CRD_STRING, .causality = cause, .variability = CRD_DISCRETE,       \
        .offset = offsetof(talker, field), .capacity = LONG_TEXT, .start_text = ""                 \
    }
static const crd_model_variable talker_variables[] = {TEXT(in, CRD_INPUT), TEXT(out, CRD_OUTPUT)};
static const crd_model talker_model = {.name = "talker",
                                       .description = "its text becomes long",
                                       .size = sizeof(talker),
                                       .variables = talker_variables,
                                       .variable_count = 2,
                                       .default_step = 0.1,
                                       .default_stop = 1,
                                       .initialize = talker_initialize,
                                       .outputs = talker_outputs,
                                       .step = gain_step};

// Two rooms grow in the steps, that of the output and that of the input.
static void a_text_without_room_ends_the_run(void** state)
{
    (void)state;
    for (int granted = 0; granted <= 2; granted++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        crd_system* s = new_system(ctx, 0.1, 1);
        const int from = add_unit(s, "a", &talker_model, 0),
                  to = add_unit(s, "b", &talker_model, 0);
        wire(s, from, "out", to, "in");
        crd_master* m = created(ctx, s, false);
        check_run(crd_master_initialize(m), ctx);
        a.fail_at = a.allocations + granted;
        check_status(crd_master_advance(m, 5), granted < 2 ? CRD_E_MEMORY : CRD_OK);
        if (granted < 2) { check_contains(crd_error_text(ctx), "out of memory"); }
        crd_master_destroy(m);
        crd_system_destroy(s);
        crd_context_destroy(ctx);
        check_int(a.live, 0);
    }
}

// ---- order of calls and ends -------------------------------------------------------------------

static void calls_in_the_wrong_order_are_refused(void** state)
{
    fixture* f = *state;
    double x = 0;
    crd_system* s = new_system(f->ctx, 0.1, 1);
    add_unit(s, "e", &euler_model, 0);
    crd_master* m = created(f->ctx, s, false);
    check_status(crd_master_advance(m, 1), CRD_E_STATE);
    check_status(crd_master_value(m, "e.y", &x), CRD_E_STATE);
    check_contains(crd_error_text(f->ctx), "not initialised");
    check_run(crd_master_initialize(m), f->ctx);
    check_status(crd_master_initialize(m), CRD_E_STATE);
    check_run(crd_master_advance(m, 3), f->ctx);
    check_run(crd_master_finish(m), f->ctx);
    check_run(crd_master_finish(m), f->ctx);
    check_status(crd_master_advance(m, 1), CRD_E_STATE);
    crd_master_destroy(m);
    crd_system_destroy(s);
}

static void a_stop_during_the_initialisation_leaves_no_step(void** state)
{
    fixture* f = *state;
    volatile bool stop = true;
    crd_system* s = new_system(f->ctx, 0.1, 1);
    add_unit(s, "e", &euler_model, 0);
    crd_master* m = NULL;
    crd_master_options opt = crd_master_defaults();
    opt.stop = &stop;
    check_run(crd_master_create(f->ctx, s, &opt, &m), f->ctx);
    check_run(crd_master_run(m), f->ctx);
    check_int(crd_master_ended(m), CRD_END_INTERRUPTED);
    check_int(crd_master_get_report(m)->steps, 0);
    crd_master_destroy(m);
    crd_system_destroy(s);
}

// ---- crashes -----------------------------------------------------------------------------------

static int terminated;

static crd_status crash(crd_unit* u)
{
    *nowhere = 1;
    (void)u;
    return CRD_OK;
}

static crd_status count(crd_unit* u)
{
    (void)u;
    terminated++;
    return CRD_OK;
}

static crd_status refuse(crd_unit* u)
{
    return crdi_fail(u->ctx, CRD_E_UNIT, "it will not");
}

static void crash_when_freed(crd_unit* u)
{
    (void)crash(u);
}

// Three units with tables of their own, to be changed.
static crd_master* three(fixture* f, crd_system** s, crd_unit_ops tables[3])
{
    static const char* const names[] = {"a", "b", "c"};
    *s = new_system(f->ctx, 0.1, 1);
    for (int i = 0; i < 3; i++) {
        add_unit(*s, names[i], &euler_model, 0);
    }
    crd_master* m = created(f->ctx, *s, true);
    for (int i = 0; i < 3; i++) {
        tables[i] = *m->plan->members[i].unit->ops;
        tables[i].terminate = count;
        m->plan->members[i].unit->ops = &tables[i];
    }
    terminated = 0;
    return m;
}

static void a_crash_at_the_end_leaves_the_others_their_end(void** state)
{
    crd_system* s = NULL;
    fixture* f = *state;
    crd_unit_ops tables[3];
    crd_master* m = three(f, &s, tables);
    tables[0].terminate = crash;
    tables[1].terminate = refuse;
    check_status(crd_master_run(m), CRD_E_CRASH);
    check_contains(crd_error_text(f->ctx), "unit 'a'");
    check_text(crd_master_get_report(m)->end_unit, "a");
    check_int(terminated, 1);
    crd_master_destroy(m);
    crd_system_destroy(s);
}

static void a_crash_at_the_end_does_not_hide_the_failure_before(void** state)
{
    crd_system* s = NULL;
    fixture* f = *state;
    crd_unit_ops tables[3];
    crd_master* m = three(f, &s, tables);
    tables[0].terminate = crash;
    tables[1].exit_initialization = refuse;
    check_status(crd_master_run(m), CRD_E_UNIT);
    check_contains(crd_error_text(f->ctx), "unit 'b' at the start: it will not");
    check_text(crd_master_get_report(m)->end_unit, "b");
    check_int(terminated, 2);
    double x = 0;
    check_status(crd_master_value(m, "a.y", &x), CRD_E_STATE);
    crd_master_destroy(m);
    crd_system_destroy(s);
}

static void a_crash_in_any_phase_of_the_start_names_the_unit(void** state)
{
    for (int phase = 0; phase < 2; phase++) {
        crd_system* s = NULL;
        fixture* f = *state;
        crd_unit_ops tables[3];
        crd_master* m = three(f, &s, tables);
        *(phase ? &tables[1].exit_initialization : &tables[1].instantiate) = crash;
        check_status(crd_master_run(m), CRD_E_CRASH);
        check_contains(crd_error_text(f->ctx), "unit 'b' at the start: crashed");
        check_int(terminated, phase ? 2 : 1);
        crd_master_destroy(m);
        crd_system_destroy(s);
    }
}

static void a_crash_when_a_unit_is_freed_is_a_warning(void** state)
{
    crd_system* s = NULL;
    fixture* f = *state;
    crd_unit_ops tables[3];
    crd_master* m = three(f, &s, tables);
    crd_unit* lost = m->plan->members[1].unit;
    crd_context* ctx = lost->ctx;
    void (*destroy)(crd_unit*) = tables[1].destroy;
    tables[1].destroy = crash_when_freed;
    check_run(crd_master_run(m), f->ctx);
    crd_master_destroy(m);
    check_contains(f->log, "unit 'b' crashed after the run");
    destroy(lost); // so that nothing leaks in this test
    crd_context_destroy(ctx);
    crd_system_destroy(s);
}

// ---- times -------------------------------------------------------------------------------------

static void times_far_from_zero_have_the_right_number_of_steps(void** state)
{
    fixture* f = *state;
    static const double starts[] = {1e9, 1e9 + 0.1, -1e9, -0.3, 123456789.123};
    for (int i = 0; i < 5; i++) {
        for (int steps = 1; steps < 400; steps += 7) {
            crd_system* s = new_system(f->ctx, 1e-6, 0);
            s->run.start = starts[i];
            s->run.stop = starts[i] + steps * 1e-6;
            add_unit(s, "c", &clock_model, 0);
            crd_master* m = created(f->ctx, s, false);
            check_run(crd_master_run(m), f->ctx);
            check_int(crd_master_get_report(m)->steps, steps);
            check_near(crd_master_time(m), s->run.stop, 0);
            crd_master_destroy(m);
            crd_system_destroy(s);
        }
    }
}

static void steps_below_the_resolution_of_time_are_refused(void** state)
{
    fixture* f = *state;
    crd_system* s = new_system(f->ctx, 1e-6, 1e12 + 1);
    s->run.start = 1e12;
    add_unit(s, "c", &clock_model, 0);
    crd_master* m = NULL;
    check_status(crd_master_create(f->ctx, s, NULL, &m), CRD_E_RANGE);
    check_contains(crd_error_text(f->ctx), "too short");
    crd_system_destroy(s);
}

static void the_common_tick_has_no_rounding_error(void** state)
{
    fixture* f = *state;
    crd_system* s = new_system(f->ctx, 0.1, 1);
    add_unit(s, "a", &euler_model, 0.1);
    add_unit(s, "b", &euler_model, 0.03);
    crd_master* m = created(f->ctx, s, false);
    check(crd_master_get_report(m)->step == 0.01);
    crd_master_destroy(m);
    crd_system_destroy(s);
}

static void a_unit_that_never_steps_is_worth_a_warning(void** state)
{
    fixture* f = *state;
    crd_system* s = new_system(f->ctx, 0.1, 1);
    add_unit(s, "a", &euler_model, 0.1);
    add_unit(s, "b", &euler_model, 1e18);
    crd_master* m = created(f->ctx, s, false);
    check_contains(f->log, "unit 'b' never steps");
    check_run(crd_master_run(m), f->ctx);
    check_int(crd_master_get_report(m)->units[1].steps, 0);
    crd_master_destroy(m);
    crd_system_destroy(s);
}

// ---- rows --------------------------------------------------------------------------------------

static void the_name_of_an_array_records_its_elements_without_a_warning(void** state)
{
    fixture* f = *state;
    static const char* patterns[] = {"a.array", "a.nothing"};
    crd_system* s = new_system(f->ctx, 0.1, 1);
    add_unit(s, "a", &mixed_model, 0);
    s->results.patterns = patterns;
    s->results.pattern_count = 2;
    crd_master* m = created(f->ctx, s, false);
    check_int(crd_master_signal_count(m), 3);
    check_text(crd_master_signal_name(m, 2), "a.array[3]");
    check(!strstr(f->log, "'a.array'"));
    check_contains(f->log, "no variable matches 'a.nothing'");
    crd_master_destroy(m);
    s->results.pattern_count = 0;
    s->results.patterns = NULL;
    crd_system_destroy(s);
}

static void an_interval_off_the_grid_takes_the_nearest_and_says_so(void** state)
{
    fixture* f = *state;
    crd_system* s = new_system(f->ctx, 0.1, 1);
    add_unit(s, "a", &euler_model, 0);
    s->results.interval = 0.28;
    crd_master* m = created(f->ctx, s, false);
    check_contains(f->log, "rows come every 0.3 s");
    check_int(m->plan->times.row_every, 3);
    crd_master_destroy(m);
    f->log[0] = 0;
    s->results.interval = 0.3;
    m = created(f->ctx, s, false);
    check(!strstr(f->log, "interval"));
    crd_master_destroy(m);
    crd_system_destroy(s);
}

// A loop was seen to grow while one of its signals still stood at 3e-16: that is no scale for what
// it does later ("5.2e+17 % of scale" was read in a report).
static void what_is_at_rest_has_no_scale(void** state)
{
    (void)state;
    const crd_connection_spec spec = {0};
    crdi_observed w = {.size = 250};
    crdi_connection k = {.spec = &spec, .observed = &w};
    w.of = &k;
    crdi_connections_freeze_scale(NULL, &k, 3e-16);
    check_near(crdi_observed_scale(&w), 250, 0);
    crdi_connections_freeze_scale(NULL, &k, 0.5);
    check_near(crdi_observed_scale(&w), 0.5, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(integers_in_a_loop_go_round_until_they_rest),
        TEST(a_boolean_that_negates_itself_has_no_start),
        TEST(an_integer_in_a_real_loop_leaves_it_to_newton),
        TEST(a_loop_of_thousands_of_unknowns_is_iterated),
        TEST(wide_integers_keep_their_bits_between_signed_and_unsigned),
        TEST(a_text_without_room_ends_the_run),
        TEST(calls_in_the_wrong_order_are_refused),
        TEST(a_stop_during_the_initialisation_leaves_no_step),
        TEST(a_crash_at_the_end_leaves_the_others_their_end),
        TEST(a_crash_at_the_end_does_not_hide_the_failure_before),
        TEST(a_crash_in_any_phase_of_the_start_names_the_unit),
        TEST(a_crash_when_a_unit_is_freed_is_a_warning),
        TEST(times_far_from_zero_have_the_right_number_of_steps),
        TEST(steps_below_the_resolution_of_time_are_refused),
        TEST(the_common_tick_has_no_rounding_error),
        TEST(a_unit_that_never_steps_is_worth_a_warning),
        TEST(the_name_of_an_array_records_its_elements_without_a_warning),
        TEST(an_interval_off_the_grid_takes_the_nearest_and_says_so),
        cmocka_unit_test(what_is_at_rest_has_no_scale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
