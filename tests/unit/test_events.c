// What units know of jumps: those that happened, and the next one that will.
#include <math.h>
#include <stdio.h>

#include "me/me_test.h"
#include "unit_test.h"

#include "unit/signal/shapes.h"

extern const crd_model crd_model_pwm_lag, crd_model_bouncing_ball, crd_model_events;

// ---- signals -----------------------------------------------------------------------------------

static crd_unit_spec signal_spec(const crd_signal_spec* signals, int count)
{
    crd_unit_spec spec = crd_unit_spec_defaults();
    spec.name = "source";
    spec.source = CRD_UNIT_SIGNAL;
    spec.signals = signals;
    spec.signal_count = count;
    return spec;
}

static crd_signal_spec shaped(crd_signal_shape shape, double start, double duration)
{
    crd_signal_spec s = crd_signal_spec_defaults();
    s.name = "y";
    s.shape = shape;
    s.amplitude = 3;
    s.offset = 1;
    s.start = start;
    s.duration = duration;
    s.frequency = 2;
    s.frequency2 = 5;
    s.phase = 0.4;
    s.order = 5;
    return s;
}

enum { MOST = 8 };

// From event to event: there they are, and the signal is already behind each of them.
static void check_sequence(const crd_signal_spec* s, double t0, const double* expected, int count)
{
    crd_context* ctx = crd_context_create(NULL);
    const crd_unit_spec spec = signal_spec(s, 1);
    crd_unit* u = make(ctx, &spec);
    check_time(u->next_event, INFINITY, 0);
    start(u, t0, 1e9);
    double t = t0;
    for (int i = 0; i < count; i++) {
        const double next = u->next_event;
        check_time(next, expected[i], 4e-16 * fabs(expected[i]));
        step(u, t, next - t);
        t = next;
        check(u->next_event > t);
        crdi_shape shape;
        check_ok(crdi_shape_init(ctx, s, &shape));
        for (int order = 0; order <= 2; order++) { // a look behind
            const double later = t + 1e-7 * s->duration;
            const double here = crdi_shape_eval(&shape, t, order);
            check_near(here, crdi_shape_eval(&shape, later, order), 0.01 + 0.01 * fabs(here));
        }
        crdi_shape_clear(ctx, &shape);
    }
    check_time(u->next_event, INFINITY, 0);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void signals_know_their_next_event(void** state)
{
    (void)state;
    const double starts[] = {0.1, 0.7, 1e3 + 0.1, 1e6 / 3};
    for (int k = 0; k < 4; k++) {
        const double a = starts[k], d = 0.3;
        const crd_signal_spec step1 = shaped(CRD_SIGNAL_STEP, a, 1);
        check_sequence(&step1, a - 1, &a, 1);
        check_sequence(&step1, a, NULL, 0); // it is behind us
        const crd_signal_spec ramp = shaped(CRD_SIGNAL_RAMP, a, d);
        check_sequence(&ramp, a - 1, (double[]){a, a + d}, 2);
        check_sequence(&ramp, a + 0.1, (double[]){a + d}, 1);
        const crd_signal_spec chirp = shaped(CRD_SIGNAL_CHIRP, a, d);
        check_sequence(&chirp, a - 1, (double[]){a, a + d}, 2);
        const crd_signal_spec sine = shaped(CRD_SIGNAL_SINE, a, 1);
        check_sequence(&sine, a - 1, &a, 1);
        const crd_signal_spec sum = shaped(CRD_SIGNAL_MULTISINE, a, 1);
        check_sequence(&sum, a - 1, &a, 1);
    }
    const crd_signal_spec constant = shaped(CRD_SIGNAL_CONSTANT, 1, 1);
    check_sequence(&constant, 0, NULL, 0);
    crd_signal_spec flat = shaped(CRD_SIGNAL_STEP, 1, 1);
    flat.amplitude = 0;
    check_sequence(&flat, 0, NULL, 0);
}

static void tables_have_events_where_value_or_slope_jump(void** state)
{
    (void)state;
    const double times[] = {0, 0.1, 0.2, 0.3, 0.3, 0.5, 0.7};
    const double values[] = {1, 1, 3, 5, 2, 2, 2};
    crd_signal_spec s = shaped(CRD_SIGNAL_TABLE, 0.1, 1);
    s.times = times;
    s.values = values;
    s.table_count = 7;
    s.interpolation = CRD_INTERPOLATE_LINEAR; // 1 .. flat .. rises evenly .. jumps .. flat
    check_sequence(&s, 0, (double[]){0.1 + 0.1, 0.1 + 0.3}, 2);
    s.interpolation = CRD_INTERPOLATE_HOLD; // 1, 3, 5 and 2 at once, 2, 2
    check_sequence(&s, 0, (double[]){0.1 + 0.2, 0.1 + 0.3}, 2);
    s.start = 12345.6;
    check_sequence(&s, 0, (double[]){12345.6 + 0.2, 12345.6 + 0.3}, 2);
}

// Every change of the sequence is announced, and nothing else is.
static void a_binary_sequence_announces_its_changes(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const double starts[] = {0, 0.1, 1e7};
    for (int k = 0; k < 3; k++) {
        crd_signal_spec s = shaped(CRD_SIGNAL_PRBS, starts[k], 0.01);
        crdi_shape shape, ask;
        check_ok(crdi_shape_init(ctx, &s, &shape));
        check_ok(crdi_shape_init(ctx, &s, &ask));
        double next = crdi_shape_next(&ask, s.start, true);
        int changes = 0;
        for (int bit = 1; bit < 200; bit++) {
            const double edge = s.start + bit * s.duration;
            const double before = crdi_shape_eval(&shape, edge - 0.5 * s.duration, 0);
            const double y = crdi_shape_eval(&shape, edge, 0);
            if (y == before) {
                check(next > edge + 0.5 * s.duration);
                continue;
            }
            check_time(next, edge, 4e-16 * edge);
            next = crdi_shape_next(&ask, next, true);
            changes++;
        }
        check(changes > 50);
        crdi_shape_clear(ctx, &shape);
        crdi_shape_clear(ctx, &ask);
    }
    // so late that rounding is more than the slack of a bit
    crd_signal_spec s = shaped(CRD_SIGNAL_PRBS, 0, 1e-3);
    crdi_shape shape;
    check_ok(crdi_shape_init(ctx, &s, &shape));
    double t = 1e6;
    for (int n = 0; n < 1000; n++) {
        const double before = crdi_shape_eval(&shape, t, 0);
        t = crdi_shape_next(&shape, t, true);
        check_near(crdi_shape_eval(&shape, t, 0), 2 * s.offset - before, 0);
    }
    check(t < 1e6 + 1000 * 5 * 1e-3);
    crd_context_destroy(ctx);
}

static void signals_count_the_jumps_that_a_step_passes(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const double times[] = {0, 0.33, 0.34, 0.35, 0.75, 0.75}, values[] = {0, 1, 0, 1, 2, 0};
    crd_signal_spec signals[] = {shaped(CRD_SIGNAL_STEP, 0.2, 1), shaped(CRD_SIGNAL_RAMP, 0.5, 0.1),
                                 shaped(CRD_SIGNAL_TABLE, 0, 1)};
    signals[1].name = "r";
    signals[2].name = "t";
    signals[2].times = times;
    signals[2].values = values;
    signals[2].table_count = 6;
    signals[2].interpolation = CRD_INTERPOLATE_LINEAR;
    const crd_unit_spec spec = signal_spec(signals, 3);
    crd_unit* u = make(ctx, &spec);
    start(u, 0, 1);
    // 0.2 is passed by the step that ends there; kinks of the table do not count
    const int expected[] = {0, 1, 1, 1, 2, 3, 3, 4, 4, 4};
    const double next[] = {0.2, 0.33, 0.33, 0.5, 0.6, 0.75, 0.75, INFINITY, INFINITY, INFINITY};
    void* saved = NULL;
    for (int n = 0; n < 10; n++) {
        step(u, 0.1 * n, 0.1);
        check_int(u->events, expected[n]);
        check_time(u->next_event, next[n], 1e-15);
        if (n == 2) { check_ok(u->ops->state->save(u, &saved)); }
    }
    check_ok(u->ops->state->restore(u, saved));
    check_time(u->next_event, 0.33, 1e-15);
    const int64_t before = u->events;
    step(u, 0.3, 0.1); // 0.3 to 0.4
    check_int(u->events, before);
    step(u, 0.4, 0.3); // 0.5 and 0.6
    check(u->events > before);
    u->ops->state->free(u, &saved);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

// ---- recordings --------------------------------------------------------------------------------

static const char* write_recording(const char* text)
{
    static const char path[] = TEST_BUILD_DIR "/unit_events.csv";
    FILE* f = fopen(path, "w");
    check(f != NULL);
    fputs(text, f);
    check_int(fclose(f), 0);
    return path;
}

static void recordings_jump_where_they_have_two_rows_or_begin_again(void** state)
{
    (void)state;
    static const char text[] = "time,a\n1,0\n1.5,4\n2,3\n2,5\n2.5,5\n3,6\n";
    crd_context* ctx = crd_context_create(NULL);
    // from event to event: linear, held, linear and repeated, held and repeated
    const struct {
        bool hold, repeat;
        int count;
        double at[6];
    } cases[] = {{false, false, 3, {1.25, 2.25, 3.25}},
                 {true, false, 0, {0}},
                 {false, true, 6, {1.25, 2.25, 3.25, 4.25, 5.25, 6.25}},
                 {true, true, 3, {3.25, 5.25, 7.25}}};
    for (int k = 0; k < 4; k++) {
        crd_unit_spec spec = crd_unit_spec_defaults();
        spec.name = "rec";
        spec.source = CRD_UNIT_REPLAY;
        spec.path = write_recording(text);
        spec.time_offset = 0.25;
        spec.repeat = cases[k].repeat;
        spec.interpolation = cases[k].hold ? CRD_INTERPOLATE_HOLD : CRD_INTERPOLATE_LINEAR;
        crd_unit* u = make(ctx, &spec);
        check(u->info.flags & CRD_UNIT_CAN_REFRESH);
        check_time(u->next_event, INFINITY, 0);
        start(u, 0, 100);
        double t = 0;
        for (int i = 0; i < cases[k].count; i++) {
            check_time(u->next_event, cases[k].at[i], 1e-15);
            const double next = u->next_event;
            step(u, t, 0.5 * (next - t));
            check_int(u->events, i);
            check_time(u->next_event, next, 0);
            step(u, t + 0.5 * (next - t), 0.5 * (next - t));
            check_int(u->events, i + 1);
            t = next;
        }
        if (!cases[k].repeat) {
            step(u, t, 3);
            check_time(u->next_event, INFINITY, 0);
            check_int(u->events, cases[k].count); // rows of held columns do not count
        }
        crd_unit_destroy(u);
    }
    crd_context_destroy(ctx);
}

// ---- models and FMUs ---------------------------------------------------------------------------

typedef enum kind { NATIVE, CS2, CS3, ME2, ME3, KINDS } kind;

static crd_unit_spec spec_of(kind k, const crd_model* model)
{
    static char path[512];
    crd_unit_spec spec = crd_unit_spec_defaults();
    spec.name = "u";
    spec.source = k == NATIVE ? CRD_UNIT_NATIVE : CRD_UNIT_FMU;
    spec.model = model;
    snprintf(path, sizeof path, TEST_BUILD_DIR "/fmus/fmi%d/%s.fmu", k == CS2 || k == ME2 ? 2 : 3,
             model->name);
    spec.path = k == NATIVE ? NULL : path;
    spec.interface = k >= ME2 ? CRD_INTERFACE_MODEL_EXCHANGE : CRD_INTERFACE_AUTO;
    return spec;
}

// A pulse train: up at 0, 0.1 ..., down at 0.03, 0.13 ...; FMI 2 Co-Simulation hides all of it.
static void time_events_are_announced_and_counted(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int k = 0; k < KINDS; k++) {
        const crd_unit_spec spec = spec_of((kind)k, &crd_model_pwm_lag);
        crd_unit* u = make(ctx, &spec);
        check_time(u->next_event, INFINITY, 0);
        start(u, 0, 1);
        const double next[] = {0.03, 0.03, 0.1, 0.1, 0.1, 0.13, 0.13, 0.2};
        const int events[] = {0, 0, 1, 1, 1, 2, 2, 3};
        void* saved = NULL;
        for (int n = 0; n < 8; n++) {
            check_time(u->next_event, k == CS2 ? INFINITY : next[n], 1e-15);
            check_int(u->events, k == CS2 ? 0 : events[n]);
            if (n == 1) { check_ok(u->ops->state->save(u, &saved)); }
            step(u, 0.02 * n, 0.02);
        }
        check_ok(u->ops->state->restore(u, saved));
        check_time(u->next_event, k == CS2 ? INFINITY : 0.03, 1e-15);
        step(u, 0.02, 0.15); // 0.03, 0.1, 0.13
        check_time(u->next_event, k == CS2 ? INFINITY : 0.2, 1e-15);
        u->ops->state->free(u, &saved);
        crd_unit_destroy(u);
    }
    crd_context_destroy(ctx);
}

// A step that ends exactly at an event has handled it.
static void outputs_at_an_event_are_those_behind_it(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int k = 0; k < KINDS; k++) {
        if (k == CS2) { continue; }
        const crd_unit_spec spec = spec_of((kind)k, &crd_model_pwm_lag);
        crd_unit* u = make(ctx, &spec);
        start(u, 0, 1);
        double t = 0;
        for (int n = 1; n < 9; n++) {
            const double next = u->next_event;
            step(u, t, next - t);
            t = next;
            check_int(u->events, n);
            check_near(get_one(u, "u"), n % 2 ? 0 : 1, 0);
            check(u->next_event > t);
        }
        crd_unit_destroy(u);
    }
    crd_context_destroy(ctx);
}

static void state_events_are_counted(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int k = 0; k < KINDS; k++) {
        const crd_unit_spec spec = spec_of((kind)k, &crd_model_bouncing_ball);
        crd_unit* u = make(ctx, &spec);
        start(u, 0, 3);
        int64_t before = 0;
        int with = 0;
        for (int n = 0; n < 100; n++) { // it falls for 0.45 s from 1 m
            const double v = get_one(u, "velocity");
            step(u, 0.01 * n, 0.01);
            const bool bounced = get_one(u, "velocity") > v;
            if (k != CS2) { check_int(u->events > before, bounced); }
            with += u->events > before;
            before = u->events;
            check_time(u->next_event, INFINITY, 0);
        }
        check_int(with > 0, k != CS2);
        crd_unit_destroy(u);
    }
    crd_context_destroy(ctx);
}

static void an_early_return_for_an_event_counts(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_setting setting = {"gap", "0.03", NO_PLACE};
    crd_unit_spec spec = me_spec(TEST_BUILD_DIR "/unit_fmu3");
    spec.parameters = &setting;
    spec.parameter_count = 1;
    crd_unit* u = make(ctx, &spec);
    start(u, 0, 1);
    check_time(u->next_event, 0.03, 1e-15);
    step(u, 0, 0.1); // 0.03, 0.06, 0.09
    check_int(u->events, 3);
    check_time(u->next_event, 0.12, 1e-15);
    step(u, 0.1, 0.01);
    check_int(u->events, 3);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

// Only changes, and those of discrete inputs only.
static void changed_discrete_inputs_count(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int version = 2; version <= 3; version++) {
        const me_fmu m = {"oscillator", version, 2, 0, all_flags(version), UNKNOWN, false};
        crd_unit_spec spec = me_spec(me_folder(&m, "events"));
        spec.isolate = "none"; // a worker tells with the step, not when inputs are set
        crd_unit* u = make(ctx, &spec);
        start(u, 0, 10);
        bound in = bind_names(u, "u0 k");
        set(&in); // the first set tells the FMU all of them
        const int64_t first = u->events;
        const int values[] = {0, 0, 1, 1, 2}, expected[] = {0, 0, 1, 1, 2};
        for (int n = 0; n < 5; n++) {
            in.v.real[0] = n;
            in.v.integer[0] = values[n];
            set(&in);
            set(&in);
            check_int(u->events - first, expected[n]);
            step(u, 0.1 * n, 0.1);
            check_int(u->events - first, expected[n]);
        }
        unbind(&in);
        crd_unit_destroy(u);
    }
    crd_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signals_know_their_next_event),
        cmocka_unit_test(tables_have_events_where_value_or_slope_jump),
        cmocka_unit_test(a_binary_sequence_announces_its_changes),
        cmocka_unit_test(signals_count_the_jumps_that_a_step_passes),
        cmocka_unit_test(recordings_jump_where_they_have_two_rows_or_begin_again),
        cmocka_unit_test(time_events_are_announced_and_counted),
        cmocka_unit_test(outputs_at_an_event_are_those_behind_it),
        cmocka_unit_test(state_events_are_counted),
        cmocka_unit_test(an_early_return_for_an_event_counts),
        cmocka_unit_test(changed_discrete_inputs_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
