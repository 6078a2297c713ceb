// Between two steps: outputs that follow inputs, and states that are saved and restored. What is
// asked there leaves no trace in what comes.
#include <math.h>
#include <stdio.h>

#include "sample_model.h"
#include "unit_test.h"

#include "cardan/coupling.h"

extern const crd_model crd_model_rot_1, crd_model_driven_oscillator, crd_model_pwm_lag;

// ---- kinds of units ----------------------------------------------------------------------------

typedef enum kind { NATIVE, CS2, CS3, ME2, ME3, KINDS } kind;

static const char* path_of(kind k, const char* name)
{
    static char path[512];
    const int version = k == CS2 || k == ME2 ? 2 : 3;
    snprintf(path, sizeof path, TEST_BUILD_DIR "/fmus/fmi%d/%s.fmu", version, name);
    return path;
}

static crd_unit_spec spec_of(kind k, const crd_model* model)
{
    crd_unit_spec spec = crd_unit_spec_defaults();
    spec.name = "u";
    spec.source = k == NATIVE ? CRD_UNIT_NATIVE : CRD_UNIT_FMU;
    spec.model = model;
    spec.path = k == NATIVE ? NULL : path_of(k, model->name);
    spec.interface = k == ME2 || k == ME3 ? CRD_INTERFACE_MODEL_EXCHANGE : CRD_INTERFACE_AUTO;
    return spec;
}

static bool can(const crd_unit* u, unsigned flag)
{
    return (u->info.flags & flag) != 0;
}

// A model under one kind of unit, which says that it evaluates outputs when they are read.
typedef struct subject {
    kind kind;
    const crd_model* model;
    crd_solver solver;
    const char *input, *outputs;
    int outputs_order; // derivatives that it gives
} subject;

static const subject subjects[] = {
    {NATIVE, &crd_model_rot_1, 0, "omega2", "tau phi1 omega1 phi2", 2},
    {CS2, &crd_model_rot_1, 0, "omega2", "tau phi1 omega1 phi2", 2},
    {CS3, &crd_model_rot_1, 0, "omega2", "tau phi1 omega1 phi2", 2},
    {NATIVE, &crd_model_driven_oscillator, 0, "u", "a x v", 0},
    {CS2, &crd_model_driven_oscillator, 0, "u", "a x v", 0},
    {CS3, &crd_model_driven_oscillator, 0, "u", "a x v", 0},
    {ME2, &crd_model_driven_oscillator, CRD_SOLVER_BDF, "u", "a x v", 1},
    {ME2, &crd_model_driven_oscillator, CRD_SOLVER_ADAMS, "u", "a x v", 1},
    {ME2, &crd_model_driven_oscillator, CRD_SOLVER_RK4, "u", "a x v", 1},
    {ME3, &crd_model_driven_oscillator, CRD_SOLVER_BDF, "u", "a x v", 1},
    {ME3, &crd_model_driven_oscillator, CRD_SOLVER_EULER, "u", "a x v", 1},
};
enum { SUBJECTS = sizeof subjects / sizeof *subjects, STEPS = 60, WIDTH = 4 };

static crd_unit* open_subject(crd_context* ctx, const subject* s, crd_unit_spec* spec)
{
    *spec = spec_of(s->kind, s->model);
    spec->refresh = CRD_REFRESH_YES;
    spec->solver.method = s->solver;
    return make(ctx, spec);
}

// The input and two derivatives at time t; `order` 0: held.
static void drive(bound* in, int order, double t, double other)
{
    in->v.real[0] = sin(3 * t) + other;
    set(in);
    const double d1 = 3 * cos(3 * t) - other, d2 = -9 * sin(3 * t) + 2 * other;
    const double* const d[] = {&d1, &d2};
    if (order) { check_ok(in->unit->ops->derivatives->set(in->unit, in->b, d, order)); }
}

// ---- outputs that follow -----------------------------------------------------------------------

static void the_flag_says_who_evaluates_outputs_when_they_are_read(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    // CRD_REFRESH_AUTO, YES, NO. Co-Simulation does not by itself: both standards forbid it.
    static const bool expected[KINDS][3] = {
        [NATIVE] = {true, true, false}, [CS2] = {false, true, false}, [CS3] = {false, true, false},
        [ME2] = {true, true, false},    [ME3] = {true, true, false},
    };
    for (int k = 0; k < KINDS; k++) {
        for (int r = CRD_REFRESH_AUTO; r <= CRD_REFRESH_NO; r++) {
            crd_unit_spec spec = spec_of((kind)k, &crd_model_driven_oscillator);
            spec.refresh = (crd_refresh)r;
            crd_unit* u = make(ctx, &spec);
            if (can(u, CRD_UNIT_CAN_REFRESH) != expected[k][r]) {
                fail_msg("%s with refresh %d: %d", u->info.kind, r, !expected[k][r]);
            }
            crd_unit_destroy(u);
        }
    }
    const crd_signal_spec signal = {.name = "y", .shape = CRD_SIGNAL_CONSTANT};
    crd_unit_spec spec = crd_unit_spec_defaults();
    spec.name = "s";
    spec.source = CRD_UNIT_SIGNAL;
    spec.signals = &signal;
    spec.signal_count = 1;
    crd_unit* u = make(ctx, &spec);
    check(can(u, CRD_UNIT_CAN_REFRESH));
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

// What the output with feedthrough (the first) and its derivative are, from the states.
static void expect(const subject* s, const double* y, double u, double du, double* value,
                   double* slope)
{
    if (s->model == &crd_model_rot_1) { // J1 = 10, c1 = 1, d1 = 1, ck = 1, dk = 2
        const double omega1 = y[2];
        const double fast = (-2 * y[1] - 3 * omega1 + y[3] + 2 * u) / 10;
        *value = y[1] - y[3] + 2 * (omega1 - u);
        *slope = omega1 - u + 2 * (fast - du);
    } else {
        const double w = 6.283185307179586, zeta = 0.1;
        *value = w * w * (u - y[1]) - 2 * zeta * w * y[2];
        *slope = w * w * (du - y[2]) - 2 * zeta * w * *value;
    }
}

// `asks`: between the steps, other inputs are set and outputs are read, with their derivatives.
static void run(const subject* s, int order, bool asks, double kept[STEPS][WIDTH])
{
    const double h = 0.02;
    crd_context* ctx = crd_context_create(NULL);
    crd_unit_spec spec;
    crd_unit* u = open_subject(ctx, s, &spec);
    check_int(u->info.max_output_order, s->outputs_order);
    start(u, 0, STEPS * h);
    bound in = bind_names(u, s->input), out = bind_names(u, s->outputs);
    // FMI 3 takes derivatives of inputs inside of steps: outputs' derivatives have those of before
    const bool slopes = s->kind != CS3 || !order;
    const double tolerance = s->kind == ME2 || s->kind == ME3 ? 1e-5 : 1e-12;
    for (int n = 0; n < STEPS; n++) {
        for (int trial = 0; asks && trial < 3; trial++) {
            const double other = trial == 2 ? 0 : 0.1 * (trial + n % 3);
            double value, slope, d[WIDTH];
            drive(&in, order, n * h, other);
            get(&out);
            expect(s, out.v.real, in.v.real[0], order ? 3 * cos(3 * n * h) - other : 0, &value,
                   &slope);
            check_near(out.v.real[0], value, 1e-12);
            if (!s->outputs_order) { continue; }
            check_ok(u->ops->derivatives->get(u, out.b, 1, d));
            if (slopes) { check_near(d[0], slope, tolerance); }
        }
        drive(&in, order, n * h, 0);
        step(u, n * h, h);
        get(&out);
        memcpy(kept[n], out.v.real, (size_t)out.b->real_count * sizeof(double));
    }
    unbind(&in);
    unbind(&out);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void outputs_follow_inputs_and_asking_leaves_no_trace(void** state)
{
    (void)state;
    for (int i = 0; i < SUBJECTS; i++) {
        for (int order = 0; order <= 2; order++) {
            double plain[STEPS][WIDTH] = {0}, asked[STEPS][WIDTH] = {0};
            run(&subjects[i], order, false, plain);
            run(&subjects[i], order, true, asked);
            if (memcmp(plain, asked, sizeof plain) != 0) {
                fail_msg("subject %d, order %d: another result after asking", i, order);
            }
        }
    }
}

// At the end of a run no FMU is asked for a later time, but its inputs may go on.
static void slopes_of_inputs_count_at_the_end_of_the_run_too(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int k = ME2; k <= ME3; k++) {
        const crd_unit_spec spec = spec_of((kind)k, &crd_model_driven_oscillator);
        crd_unit* u = make(ctx, &spec);
        start(u, 0, 0.1);
        bound in = bind_names(u, "u"), out = bind_names(u, "a x v");
        drive(&in, 2, 0, 0);
        step(u, 0, 0.1);
        drive(&in, 2, 0.1, 0);
        double d[3], value, slope;
        get(&out);
        check_ok(u->ops->derivatives->get(u, out.b, 1, d));
        expect(&subjects[SUBJECTS - 1], out.v.real, sin(0.3), 3 * cos(0.3), &value, &slope);
        check_near(out.v.real[0], value, 1e-12);
        check_near(d[0], slope, 1e-4 * fabs(slope));
        unbind(&in);
        unbind(&out);
        crd_unit_destroy(u);
    }
    crd_context_destroy(ctx);
}

static void a_native_model_gives_both_derivatives_of_its_fresh_outputs(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_unit_spec spec = spec_of(NATIVE, &sample_model);
    crd_unit* u = make(ctx, &spec);
    start(u, 0, 1);
    bound in = bind_names(u, "u"), out = bind_names(u, "y x");
    drive(&in, 2, 0, 0);
    step(u, 0, 0.1);
    drive(&in, 2, 0.1, 0.5); // y = 3 x + u, x' = u
    get(&out);
    const double v = sin(0.3) + 0.5, d1 = 3 * cos(0.3) - 0.5, d2 = -9 * sin(0.3) + 1;
    check_near(out.v.real[0], 3 * out.v.real[1] + v, 1e-15);
    double d[2];
    check_ok(u->ops->derivatives->get(u, out.b, 1, d));
    check_near(d[0], 3 * v + d1, 1e-14);
    check_ok(u->ops->derivatives->get(u, out.b, 2, d));
    check_near(d[0], 3 * d1 + d2, 1e-14);
    unbind(&in);
    unbind(&out);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

// ---- states ------------------------------------------------------------------------------------

enum { BEFORE = 7, BEHIND = 5, PASSES = 3 };

// `rows` steps from step `first` on, with all outputs and what is known of events.
static void walk(crd_unit* u, bound* in, bound* out, int first, int rows, double h,
                 double kept[][WIDTH + 1])
{
    for (int n = first; n < first + rows; n++) {
        if (in->b->count) { drive(in, u->info.max_input_order > 0 ? 2 : 0, n * h, 0); }
        step(u, n * h, h);
        get(out);
        double* row = kept[n - first];
        memcpy(row, out->v.real, (size_t)out->b->real_count * sizeof(double));
        row[WIDTH] = u->next_event;
    }
}

// A step that is repeated is the same, bit for bit, and once there is a state nothing is allocated.
static void check_repeats(const crd_unit_spec* spec, const char* input, const char* outputs)
{
    const double h = 0.03;
    check_allocator a;
    crd_context* ctx = check_context(&a);
    crd_unit* u = make(ctx, spec);
    check(can(u, CRD_UNIT_CAN_SAVE));
    start(u, 0, 100);
    bound in = bind_names(u, input), out = bind_names(u, outputs);
    double kept[PASSES][BEHIND][WIDTH + 1] = {0}, warmup[BEFORE][WIDTH + 1];
    walk(u, &in, &out, 0, BEFORE, h, warmup);
    void *first = NULL, *second = NULL;
    check_ok(u->ops->state->save(u, &first));
    check_ok(u->ops->state->save(u, &second));
    const int64_t before = a.allocations;
    for (int pass = 0; pass < PASSES; pass++) {
        if (pass) { check_ok(u->ops->state->restore(u, second)); }
        check_time(u->next_event, warmup[BEFORE - 1][WIDTH], 0);
        check_ok(u->ops->state->save(u, &second)); // where it is already
        walk(u, &in, &out, BEFORE, BEHIND, h, kept[pass]);
        if (memcmp(kept[0], kept[pass], sizeof kept[0]) != 0) {
            fail_msg("%s '%s': pass %d differs", u->info.kind, outputs, pass);
        }
    }
    check_int(a.allocations, before);
    u->ops->state->free(u, &first);
    u->ops->state->free(u, &second);
    unbind(&in);
    unbind(&out);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void a_repeated_step_is_the_same_for_models_and_fmus(void** state)
{
    (void)state;
    for (int i = 0; i < SUBJECTS; i++) {
        crd_unit_spec spec = spec_of(subjects[i].kind, subjects[i].model);
        spec.solver.method = subjects[i].solver;
        check_repeats(&spec, subjects[i].input, subjects[i].outputs);
    }
    for (int k = 0; k < KINDS; k++) { // with time events
        const crd_unit_spec spec = spec_of((kind)k, &crd_model_pwm_lag);
        check_repeats(&spec, "", "y u");
    }
}

static void a_repeated_step_is_the_same_for_signals_and_recordings(void** state)
{
    (void)state;
    const crd_signal_spec signals[] = {
        {.name = "p", .shape = CRD_SIGNAL_PRBS, .amplitude = 1, .duration = 0.04, .order = 5},
        {.name = "c", .shape = CRD_SIGNAL_CHIRP, .amplitude = 1, .frequency2 = 9, .duration = 0.3},
        {.name = "r", .shape = CRD_SIGNAL_RAMP, .amplitude = 1, .start = 0.22, .duration = 0.1},
    };
    crd_unit_spec spec = crd_unit_spec_defaults();
    spec.name = "s";
    spec.source = CRD_UNIT_SIGNAL;
    spec.signals = signals;
    spec.signal_count = 3;
    check_repeats(&spec, "", "p c r");
    static const char path[] = TEST_BUILD_DIR "/unit_refresh.csv";
    FILE* f = fopen(path, "w");
    check(f != NULL);
    fputs("time,a,b\n0,1,2\n0.1,3,1\n0.1,4,1\n0.25,2,7\n", f);
    check_int(fclose(f), 0);
    spec = crd_unit_spec_defaults();
    spec.name = "r";
    spec.source = CRD_UNIT_REPLAY;
    spec.path = path;
    spec.repeat = true;
    spec.interpolation = CRD_INTERPOLATE_LINEAR;
    check_repeats(&spec, "", "a b");
}

static void a_repeated_step_is_the_same_for_coupling_elements(void** state)
{
    (void)state;
    static const char json[] = "{\"element\": 1, \"name\": \"link\", \"step\": \"30 ms\", "
                               "\"algorithm\": \"auto\", \"latency\": 2}";
    crd_context* ctx = crd_context_create(NULL);
    const crd_model* model = NULL;
    if (crd_coupling_model_create(ctx, json, strlen(json), "link.json", &model) < 0) {
        fail_msg("%s", crd_error_text(ctx));
    }
    const crd_unit_spec spec = spec_of(NATIVE, model);
    check_repeats(&spec, "u", "y");
    crd_coupling_model_destroy(model);
    crd_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_flag_says_who_evaluates_outputs_when_they_are_read),
        cmocka_unit_test(outputs_follow_inputs_and_asking_leaves_no_trace),
        cmocka_unit_test(slopes_of_inputs_count_at_the_end_of_the_run_too),
        cmocka_unit_test(a_native_model_gives_both_derivatives_of_its_fresh_outputs),
        cmocka_unit_test(a_repeated_step_is_the_same_for_models_and_fmus),
        cmocka_unit_test(a_repeated_step_is_the_same_for_signals_and_recordings),
        cmocka_unit_test(a_repeated_step_is_the_same_for_coupling_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
